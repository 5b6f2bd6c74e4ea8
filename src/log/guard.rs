//! What rows are that are called something else: numbers that can be read, and give wrong
//! answers without a word.

use super::error::LogError;
use super::metadata::UnlistedTokens;
use super::reader::{Log, Row, RowKind};
use serde::{Deserialize, Serialize};

/// What entries of rows may be instead of what they are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// Entries in \[0, 1\] that sum to 1.
    Probabilities,
    /// 2^x sums to 1.
    Base2,
    /// 10^x sums to 1.
    Base10,
    /// e^-x sums to 1.
    Negative,
    /// 2^-x sums to 1.
    NegativeBase2,
    /// 10^-x sums to 1.
    NegativeBase10,
}

impl Form {
    /// All that logits are held against. Natural logarithms of probabilities are logits.
    pub const ALL: [Self; 6] = [
        Self::Probabilities,
        Self::Base2,
        Self::Base10,
        Self::Negative,
        Self::NegativeBase2,
        Self::NegativeBase10,
    ];

    /// What shows it, and what it is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probabilities => "entries are in [0, 1] and sum to 1: these are probabilities",
            Self::Base2 => "2^x sums to 1: these are logarithms of probabilities to base 2",
            Self::Base10 => "10^x sums to 1: these are logarithms of probabilities to base 10",
            Self::Negative => "exp(-x) sums to 1: these are negative log-likelihoods",
            Self::NegativeBase2 => "2^-x sums to 1: these are negative log-likelihoods to base 2",
            Self::NegativeBase10 => {
                "10^-x sums to 1: these are negative log-likelihoods to base 10"
            }
        }
    }

    /// How natural logarithms are made of them.
    pub fn cure(self) -> &'static str {
        match self {
            Self::Probabilities => "take natural logarithms",
            Self::Base2 => "multiply them by ln 2 = 0.6931472",
            Self::Base10 => "multiply them by ln 10 = 2.3025851",
            Self::Negative => "change their sign",
            Self::NegativeBase2 => "multiply them by -ln 2 = -0.6931472",
            Self::NegativeBase10 => "multiply them by -ln 10 = -2.3025851",
        }
    }

    /// What is said of rows that are called logits and are this. `instead` begins the cure of
    /// probabilities.
    pub fn refusal(self, instead: &str) -> String {
        let cure = match self {
            Self::Probabilities => format!("{instead} {}", self.cure()),
            _ => self.cure().to_owned(),
        };
        format!(
            "{}, as are all rows that were looked at, and no logits; {cure}",
            self.as_str()
        )
    }

    /// What a unit of an entry adds to the natural logarithm; of probabilities nothing.
    fn factor(self) -> Option<f64> {
        use std::f64::consts::{LN_2, LN_10};
        match self {
            Self::Probabilities => None,
            Self::Base2 => Some(LN_2),
            Self::Base10 => Some(LN_10),
            Self::Negative => Some(-1.0),
            Self::NegativeBase2 => Some(-LN_2),
            Self::NegativeBase10 => Some(-LN_10),
        }
    }

    /// The probability that an entry stands for.
    fn probability(self, entry: f64) -> f64 {
        self.factor().map_or(entry, |factor| (factor * entry).exp())
    }

    /// The largest probability of a row that has this form together with a rest of so much
    /// mass; nothing if it has not. NaN stands for tokens that are not listed.
    fn largest(self, row: &Extremes, entries: &[f64], rest: f64, tolerance: f64) -> Option<f64> {
        let ends = [row.low, row.high].map(|entry| self.probability(entry));
        let largest = ends[0].max(ends[1]);
        let most = 1.0 + tolerance;
        // Before the pass: raw logits are mostly told from all forms by their extremes.
        let hopeless = ends[0].min(ends[1]) < 0.0
            || largest > most
            || largest * entries.len() as f64 + rest < 1.0 - tolerance;
        if hopeless {
            return None;
        }
        let mut sum = rest;
        for chunk in entries.chunks(256) {
            let listed = chunk.iter().filter(|x| !x.is_nan());
            sum += listed.map(|&x| self.probability(x)).sum::<f64>();
            if sum > most {
                return None;
            }
        }
        (sum >= 1.0 - tolerance).then_some(largest)
    }

    /// The form of a row that cannot be what it is called.
    pub(super) fn of(entries: &[f64], tolerance: f64) -> Option<Self> {
        let row = Extremes::of(entries);
        let fits = |form: &Self| form.largest(&row, entries, 0.0, tolerance).is_some();
        Self::ALL.into_iter().find(fits)
    }
}

/// The least and the largest entry, and whether all are whole numbers.
struct Extremes {
    low: f64,
    high: f64,
    whole: bool,
}

impl Extremes {
    fn of(entries: &[f64]) -> Self {
        let mut all = Self {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            whole: true,
        };
        for &x in entries {
            all.low = all.low.min(x);
            all.high = all.high.max(x);
            all.whole &= !x.is_finite() || x.fract() == 0.0;
        }
        all
    }
}

/// Rows that are looked at before entries are believed to be what they are called.
const LOOKED_AT: usize = 64;

/// A row whose largest probability is above this has nearly the same form in all bases.
const PEAKED: f64 = 0.9;

/// From so many tokens on a row has no form by chance.
const MANY: usize = 8;

/// Looks at the first rows that are called logits, and tells if all of them are something else.
///
/// A form is believed only if every row has it, within what the rows' type rounds, and at least
/// two rows show it; a single row is enough where chance is excluded: by a narrow type or
/// many tokens. A row whose entries are equal shows nothing, nor one with nearly all of its mass
/// on one token, nor one of whole numbers, which sum to 1 by chance; but a row with a single 1
/// among many zeros does.
///
/// # Example
/// ```
/// use specgap::log::{Dtype, Form, FormGuard};
/// let mut guard = FormGuard::new(Dtype::F32);
/// guard.look(0, &[0.5, 0.3, 0.2], 0.0);
/// guard.look(1, &[0.1, 0.1, 0.8], 0.0);
/// assert_eq!(guard.found(), Some((Form::Probabilities, 0)));
/// guard.look(2, &[-0.5, 0.3, 1.2], 0.0);
/// assert_eq!(guard.found(), None);
/// ```
#[derive(Clone, Debug)]
pub struct FormGuard {
    tolerance: f64,
    looked: usize,
    width: usize,
    /// Forms that every row has: how many rows show it, and the first of them.
    possible: Vec<(Form, usize, usize)>,
}

impl FormGuard {
    /// For rows of a type.
    pub fn new(dtype: super::tensor::Dtype) -> Self {
        Self {
            tolerance: dtype.sum_tolerance(),
            looked: 0,
            width: 0,
            possible: Form::ALL.map(|form| (form, 0, 0)).to_vec(),
        }
    }

    /// The numbers of the rows to look at, of so many: evenly spaced.
    pub fn rows(count: usize) -> impl Iterator<Item = usize> {
        let shown = count.min(LOOKED_AT);
        (0..shown).map(move |index| {
            // Both are far below 2^64.
            (index as u128 * count as u128 / shown.max(1) as u128) as usize
        })
    }

    /// Whether no further row could tell anything.
    pub fn is_done(&self) -> bool {
        self.possible.is_empty() || self.looked >= LOOKED_AT
    }

    /// Looks at a row, unless enough were. `rest` is the mass of tokens that it does not list.
    pub fn look(&mut self, number: usize, entries: &[f64], rest: f64) {
        if self.is_done() {
            return;
        }
        self.looked += 1;
        self.width = self.width.max(entries.len());
        let (row, tolerance) = (Extremes::of(entries), self.tolerance);
        self.possible.retain_mut(|(form, shown, first)| {
            let Some(largest) = form.largest(&row, entries, rest, tolerance) else {
                return false;
            };
            let shows = match form {
                Form::Probabilities if entries.len() >= MANY => true,
                _ => largest <= PEAKED && !row.whole,
            };
            if shows && row.low < row.high {
                if *shown == 0 {
                    *first = number;
                }
                *shown += 1;
            }
            true
        });
    }

    /// What all rows are that were looked at, and the first that shows it.
    pub fn found(&self) -> Option<(Form, usize)> {
        let narrow = self.tolerance <= 1e-4 || self.width >= MANY;
        let enough = |shown: usize| shown >= 2 || (shown == 1 && self.looked == 1 && narrow);
        let found = self.possible.iter().find(|(_, shown, _)| enough(*shown));
        found.map(|&(form, _, first)| (form, first))
    }
}

/// Mass that lists leave out, in rows evenly spaced over a log that does not give it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MissingMass {
    /// Rows that were looked at.
    pub rows: usize,
    /// The mean of the target's, as its entries are called.
    pub target: f64,
    /// The same of the draft.
    pub draft: f64,
    /// What the lists of both would leave out, the larger of two means, if their entries were
    /// logarithms to base 2; where that is possible and much less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_2: Option<f64>,
}

impl MissingMass {
    /// From here on it has to be told first.
    pub const LARGE: f64 = 0.1;

    /// Whether either list leaves out much.
    pub fn is_large(&self) -> bool {
        self.target.max(self.draft) >= Self::LARGE
    }
}

/// Mass that the lists of one model leave out.
#[derive(Default)]
struct Left {
    by_e: f64,
    by_2: f64,
    above: bool,
}

impl Log {
    /// Refuses rows that are called logits and are something else: every one of up to 64 rows,
    /// evenly spaced over the log, shows it. See [`FormGuard`].
    ///
    /// # Errors
    /// Names the tensor, the first row that shows it, and the cure; as [`Log::read`], too.
    pub fn refuse_other_forms(&self) -> Result<(), LogError> {
        let (target, draft) = self.kinds();
        let (target_type, draft_type) = self.dtypes();
        let mut guards = [
            ("target", target, FormGuard::new(target_type)),
            ("draft", draft, FormGuard::new(draft_type)),
        ];
        let temperatures = &self.metadata().rest_temperatures;
        let whole = temperatures.iter().position(|&t| t == 1.0);
        let mut row = Row::default();
        for number in FormGuard::rows(self.positions()) {
            let done =
                |(_, kind, guard): &(_, _, FormGuard)| *kind != RowKind::Logits || guard.is_done();
            if guards.iter().all(done) {
                break;
            }
            self.read(number, &mut row)?;
            let rest = |rest: &[f64]| {
                let at = whole.and_then(|column| rest.get(column));
                at.copied().unwrap_or(0.0)
            };
            let rows = [
                (&row.target, row.target_kind, rest(&row.target_rest)),
                (&row.draft, row.draft_kind, rest(&row.draft_rest)),
            ];
            for ((_, called, guard), (entries, kind, rest)) in guards.iter_mut().zip(rows) {
                // Files of a log may differ in what they have.
                if kind != RowKind::Logits {
                    *called = kind;
                }
                guard.look(number, entries, rest);
            }
        }
        for (model, kind, guard) in guards {
            if let (RowKind::Logits, Some((form, number))) = (kind, guard.found()) {
                let tensor = format!("{model}_logits");
                let message = form.refusal(&format!("call the tensor {model}_probs, or"));
                return Err(LogError::row(self.path(), &tensor, number, message));
            }
        }
        Ok(())
    }

    /// The mass that lists of probabilities or of their logarithms leave out, if the log gives
    /// neither that mass nor says that what is left out is never drawn.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn missing_mass(&self) -> Result<Option<MissingMass>, LogError> {
        let (target, draft) = self.kinds();
        let told = self.has_rests().contains(&true)
            || self.metadata().unlisted == Some(UnlistedTokens::NeverDrawn);
        if told || !self.is_top_heavy() || [target, draft].contains(&RowKind::Logits) {
            return Ok(None);
        }
        let mut row = Row::default();
        let (mut rows, mut left) = (0, [Left::default(), Left::default()]);
        for number in FormGuard::rows(self.positions()) {
            self.read(number, &mut row)?;
            rows += 1;
            let models = [
                (&row.target, row.target_kind),
                (&row.draft, row.draft_kind),
            ];
            for (left, (entries, kind)) in left.iter_mut().zip(models) {
                let listed = || entries.iter().filter(|x| !x.is_nan());
                let by = |form: Form| listed().map(|&x| form.probability(x)).sum::<f64>();
                let sum = match kind {
                    RowKind::Probabilities => by(Form::Probabilities),
                    _ => listed().map(|x| x.exp()).sum(),
                };
                left.by_e += (1.0 - sum).max(0.0);
                let sum = match kind {
                    RowKind::LogProbabilities if listed().count() > 1 => by(Form::Base2),
                    _ => f64::INFINITY,
                };
                left.by_2 += (1.0 - sum).max(0.0);
                left.above |= sum > 1.0 + super::tensor::Dtype::F32.sum_tolerance();
            }
        }
        let mean = |sum: f64| sum / rows.max(1) as f64;
        let [target, draft] = left.each_ref().map(|left| mean(left.by_e));
        // Natural logarithms to base 2 sum to more than 1 in nearly any row.
        let much_less = |left: &Left| !left.above && left.by_2 <= 0.5 * left.by_e;
        let base_2 = (rows > 1 && left.iter().all(much_less))
            .then(|| mean(left.iter().map(|left| left.by_2).fold(0.0, f64::max)));
        Ok(Some(MissingMass {
            rows,
            target,
            draft,
            base_2,
        }))
    }
}
