//! What rows are that are called something else: numbers that can be read, and give wrong
//! answers without a word.

use super::dtype::Dtype;

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

    /// Says what shows it, and what it is.
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

    /// Says how natural logarithms are made of them.
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

    /// Refuses rows that are called logits and are this. `instead` begins the cure of
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

    /// Returns what a unit of an entry adds to the natural logarithm; of probabilities nothing.
    pub fn factor(self) -> Option<f64> {
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
    pub fn probability(self, entry: f64) -> f64 {
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
    pub fn of(entries: &[f64], tolerance: f64) -> Option<Self> {
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

/// From so many tokens on no row of logits has a single 1 among zeros.
const MANY: usize = 8;

/// Looks at the first rows that are called logits, and tells if all of them are something else.
///
/// A form is believed only if every row has it, within what the rows' type rounds, and at least
/// two rows show it; a single row is enough where there are no others and its type rounds so little
/// that chance is excluded. A row whose entries are equal shows nothing, nor one with nearly all of its mass
/// on one token, nor one of whole numbers, which sum to 1 by chance; but a row with a single 1
/// among many zeros does.
///
/// # Example
/// ```
/// use specgap_entries::{Dtype, Form, FormGuard};
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
    /// Forms that every row has: how many rows show it, and the first of them.
    possible: Vec<(Form, usize, usize)>,
}

impl FormGuard {
    /// A guard for rows of a type.
    pub fn new(dtype: Dtype) -> Self {
        Self {
            tolerance: dtype.sum_tolerance(),
            looked: 0,
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

    /// Tells whether no further row could tell anything.
    pub fn is_done(&self) -> bool {
        self.possible.is_empty() || self.looked >= LOOKED_AT
    }

    /// Looks at a row, unless enough were. `rest` is the mass of tokens that it does not list.
    pub fn look(&mut self, number: usize, entries: &[f64], rest: f64) {
        if self.is_done() {
            return;
        }
        self.looked += 1;
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

    /// Returns what all rows are that were looked at, and the first that shows it.
    pub fn found(&self) -> Option<(Form, usize)> {
        let narrow = self.tolerance <= Dtype::F32.sum_tolerance();
        let enough = |shown: usize| shown >= 2 || (shown == 1 && self.looked == 1 && narrow);
        let found = self.possible.iter().find(|(_, shown, _)| enough(*shown));
        found.map(|&(form, _, first)| (form, first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Logits of so many tokens, as raw ones are: around some level of the row.
    fn logits(rng: &mut ChaCha8Rng, tokens: usize, scale: f64) -> Vec<f64> {
        let level = 20.0 * rng.random::<f64>() - 10.0;
        let one = |rng: &mut ChaCha8Rng| level + scale * (rng.random::<f64>() - 0.5);
        (0..tokens).map(|_| one(rng)).collect()
    }

    fn probabilities(logits: &[f64]) -> Vec<f64> {
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        logits.iter().map(|x| x.exp() / sum).collect()
    }

    fn found(dtype: Dtype, rows: &[Vec<f64>]) -> Option<(Form, usize)> {
        let mut guard = FormGuard::new(dtype);
        for number in FormGuard::rows(rows.len()) {
            guard.look(number, &rows[number], 0.0);
        }
        guard.found()
    }

    /// Returns what a row of probabilities is in a form.
    fn written(form: Form, row: &[f64]) -> Vec<f64> {
        let entry = |p: &f64| form.factor().map_or(*p, |factor| p.ln() / factor);
        row.iter().map(entry).collect()
    }

    #[test]
    fn every_form_is_found_and_logits_of_any_kind_are_left() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (tokens, rows) in [(2, 3), (3, 2), (50, 1), (50, 200), (1000, 5)] {
            let raw: Vec<Vec<f64>> = (0..rows).map(|_| logits(&mut rng, tokens, 2.0)).collect();
            let laws: Vec<Vec<f64>> = raw.iter().map(|row| probabilities(row)).collect();
            for form in Form::ALL {
                let rows: Vec<Vec<f64>> = laws.iter().map(|law| written(form, law)).collect();
                let (seen, first) = found(Dtype::F64, &rows).unwrap();
                assert_eq!(seen, form);
                let largest = laws[first].iter().copied().fold(0.0, f64::max);
                assert!(largest <= PEAKED || (form == Form::Probabilities && tokens >= MANY));
                if rows.len() > 2 {
                    let mut mixed = rows.clone();
                    mixed[1].clone_from(&raw[1]);
                    // As far as the row is looked at.
                    assert!(rows.len() > LOOKED_AT || found(Dtype::F64, &mixed).is_none());
                }
            }
            // Natural logarithms are logits, and so are they with their largest subtracted.
            let natural: Vec<Vec<f64>> = (laws.iter())
                .map(|law| law.iter().map(|p| p.ln()).collect())
                .collect();
            let shifted = |row: &Vec<f64>| {
                let high = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                row.iter().map(|x| x - high).collect()
            };
            let shifted: Vec<Vec<f64>> = natural.iter().map(shifted).collect();
            for dtype in [Dtype::F16, Dtype::F32, Dtype::F64] {
                for rows in [&raw, &natural, &shifted] {
                    assert_eq!(found(dtype, rows), None, "{tokens} tokens");
                }
            }
        }
    }

    /// Honest rows of all shapes, peaked ones among them: what chance does, where it can.
    #[test]
    fn honest_logits_are_hardly_ever_refused() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut alarms = 0;
        let trials = 30_000;
        for trial in 0..trials {
            let tokens = 2 + trial % 9;
            let rows = 1 + trial / 9 % 3;
            let scale = [0.5, 2.0, 8.0, 40.0][trial / 27 % 4];
            let dtype = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64][trial / 108 % 4];
            let rows: Vec<Vec<f64>> = (0..rows).map(|_| logits(&mut rng, tokens, scale)).collect();
            alarms += usize::from(found(dtype, &rows).is_some());
        }
        assert!(alarms * 5_000 <= trials, "{alarms} of {trials}");
        // Whole numbers sum to 1 by chance, and uniform rows show nothing.
        for row in [
            vec![0.0, 1.0],
            vec![1.0, 2.0, 2.0],
            vec![-1.0, -2.0, -2.0],
            vec![0.5, 0.5],
            vec![0.0; 9],
            vec![-(9f64.ln()); 9],
            vec![0.0, f64::NEG_INFINITY],
        ] {
            assert_eq!(found(Dtype::F64, &vec![row; 5]), None);
        }
        // A single row of a half type, too.
        let row = vec![0.5, 0.3, 0.2];
        assert_eq!(found(Dtype::F16, std::slice::from_ref(&row)), None);
        assert!(found(Dtype::F16, &[row.clone(), row.clone()]).is_some());
        assert!(found(Dtype::F32, &[row]).is_some());
        let mut one_hot = vec![0.0; 9];
        one_hot[4] = 1.0;
        assert_eq!(
            found(Dtype::F32, &[one_hot]),
            Some((Form::Probabilities, 0))
        );
    }
}
