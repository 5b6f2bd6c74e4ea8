//! Draft laws of the caller's own, measured beside those of the table.

use super::GapError;
use super::metric::{LawRef, OwnLawId};
use super::own::{DraftsOf, Law, OwnRow, by_commas, named, one_measured, own_told};
use serde::{Deserialize, Serialize};
use specgap_core::optimum::on_row;
use specgap_core::problem::Problem;
use specgap_core::scheme::{DraftScheme, SchemeName};
use specgap_core::verifier::{RrsWoSettings, VerifierName, rate_of_rows};
use specgap_number::distribution::Target;
use specgap_number::known::Known;
use std::sync::Arc;

/// How alpha* of an own law is got, for definitions.
pub(super) const STATUS: &str = "by the fastest method that is proved to find it at the row: a \
    maximum flow where sets are few, one sort where Q is convex in one score, linear thresholds \
    where it is in two; elsewhere between 1 + P(H) - Q(H) of the best set that was met, which is \
    the value, and Edmonds' bound below";

/// Of alpha* of a law that can only be drawn from.
const UNKNOWN: &str = "not known of a law that can only be drawn from: it is between 0 and 1";

/// Why nothing is measured of such a law without a rule.
const SAMPLED: &str = "it can only be drawn from, so that its alpha* is not known; name a rule of \
    your own with it, verifiers=[(rule, law)], which is drawn";

type Function = Arc<dyn Fn(OwnRow<'_>) -> Result<Arc<dyn DraftScheme>, String> + Send + Sync>;

/// A draft law of the caller's own, asked for at every position of a log: alpha* of its drafts
/// and what rules accept of them, at the positions at which laws of the table are measured, with
/// paired differences to these and intervals by prompt.
///
/// With Q(H) = P(all drafts are in H), alpha* = 1 + the least P(H) - Q(H) over sets H of tokens
/// ([`on_row`]): dimensionless, in \[0, 1\], between bounds that account for all rounding. They
/// meet but for rounding where a method is proved to find it, and elsewhere they need not:
/// reports then give bounds of the mean ([`Estimate::between`]).
///
/// Rules of the table are measured that are lossless for what the law is `made` as; rules of one's
/// own are given it as [`OwnRule::new`]`(name, &law, ..)`. Rows that list some tokens only are an
/// error, as for own rules.
///
/// # Example
/// The likeliest token and a draw from the others:
/// ```
/// use specgap_core::problem::RowLaw;
/// use specgap_core::scheme::SchemeName;
/// use specgap_measure::{OwnLaw, OwnRow, Settings};
/// let law = RowLaw::parse_json(r#"{"scheme": "composed", "law": {"law": "union", "of": [
///     {"law": "top", "drafts": 1},
///     {"law": "without-replacement", "drafts": 1, "avoid_top": 1}]}}"#)?;
/// let at = move |row: OwnRow<'_>| {
///     let found = law.on(row.draft.len(), &[row.draft.to_vec()]);
///     found.map_err(|error| error.to_string())
/// };
/// let law = OwnLaw::new("top and a draw", SchemeName::COMPOSED, &[2], at)?
///     .words("the likeliest token, and a draw from the others");
/// let (p, q) = ([0.125, 0.125, 0.75], [0.5, 0.25, 0.25]);
/// let row = OwnRow { target: &p, draft: &q, drafts: 2, position: 0, seed: 0 };
/// assert!((law.optimum(row)?.value() - 0.75).abs() < 1e-15);
/// let mut settings = Settings::new(&[1.0], &[2], 0)?;
/// settings.own_laws.push(law);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Estimate::between`]: specgap_statistics::Estimate::between
/// [`OwnRule::new`]: super::OwnRule::new
#[derive(Clone)]
pub struct OwnLaw {
    told: LawTold,
    made: SchemeName,
    /// `None` of a law that can only be drawn from, or that was read from a summary.
    function: Option<Function>,
}

/// What a summary says of a law, whose function stays where it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LawTold {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    words: String,
    pub(super) made: String,
    /// It can be drawn from and nothing else is known of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sampled: bool,
    drafts: Vec<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Rules that are not measured under it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<(String, String)>,
}

own_told!(OwnLaw by LawTold, "drafts");

impl LawTold {
    fn new(name: &str, made: SchemeName, drafts: &[usize], sampled: bool) -> Self {
        Self {
            name: name.to_owned(),
            words: String::new(),
            made: made.as_str().to_owned(),
            sampled,
            drafts: drafts.to_vec(),
            digest: None,
            without: Vec::new(),
        }
    }
}

impl OwnLaw {
    /// A law that has so many drafts a position, of any number if `drafts` is empty. `law` gives it
    /// at a pair of rows for `row.drafts`, by a scheme that calls itself `made`; it may draft fewer
    /// there. It is called from several threads, and what it returns must depend on nothing but the
    /// row.
    ///
    /// # Errors
    /// A name as [`OwnRule::new`](super::OwnRule::new) refuses it; no law but of 1 to 64 drafts.
    pub fn new(
        name: &str,
        made: SchemeName,
        drafts: &[usize],
        law: impl Fn(OwnRow<'_>) -> Result<Arc<dyn DraftScheme>, String> + Send + Sync + 'static,
    ) -> Result<Self, GapError> {
        let told = LawTold::new(name, made, drafts, false);
        Self::checked(told, made, Some(Arc::new(law))).map_err(GapError::Settings)
    }

    /// A law that can be drawn from and of which nothing else is known: of its alpha* that it is
    /// between 0 and 1. It is measured where an own rule is, which draws it by itself; else a report
    /// says that it is left out, and why.
    ///
    /// # Errors
    /// A name as [`OwnLaw::new`] refuses it.
    pub fn sampled(name: &str) -> Result<Self, GapError> {
        let made = SchemeName::EXPLICIT;
        let told = LawTold::new(name, made, &[], true);
        Self::checked(told, made, None).map_err(GapError::Settings)
    }

    fn checked(
        mut told: LawTold,
        made: SchemeName,
        function: Option<Function>,
    ) -> Result<Self, String> {
        named("law", &told.name)?;
        let most = specgap_row::MAX_DRAFTS;
        if let Some(n) = told.drafts.iter().find(|&&n| n == 0 || n > most) {
            return Err(format!(
                "own law {:?}: {n} drafts are out of range; there are 1 to {most}",
                told.name
            ));
        }
        told.drafts.sort_unstable();
        told.drafts.dedup();
        Ok(Self {
            told,
            made,
            function,
        })
    }

    /// A law of a summary, without a function: one that is made so.
    pub(super) fn carried(told: &LawTold, made: SchemeName) -> Result<Self, String> {
        Ok(Self::checked(told.clone(), made, None)?.words(&told.words))
    }

    /// Says of a rule why it is not measured under this law, which the report repeats.
    #[must_use]
    pub fn without(mut self, rule: &str, why: &str) -> Self {
        self.told.without.push((rule.to_owned(), why.to_owned()));
        self
    }

    /// Returns what its schemes call themselves, by which rules of the table are lossless for it or
    /// not.
    pub fn made(&self) -> SchemeName {
        self.made
    }

    /// The numbers of drafts that it has; none if it has any.
    pub fn numbers(&self) -> &[usize] {
        &self.told.drafts
    }

    /// Rules that are not measured under it, and why.
    pub fn lacks(&self) -> &[(String, String)] {
        &self.told.without
    }

    /// Returns whether it can be drawn from and nothing else is known of it.
    pub fn is_sampled(&self) -> bool {
        self.told.sampled
    }

    /// Returns whether it has n drafts; one that can only be drawn from may have any.
    pub fn fits(&self, drafts: usize) -> bool {
        self.numbers().is_empty() || self.numbers().contains(&drafts)
    }

    /// How its alpha* is got.
    pub(super) fn status(&self) -> &'static str {
        if self.is_sampled() { UNKNOWN } else { STATUS }
    }

    /// alpha* of its drafts at a pair of rows: dimensionless, in \[0, 1\], enclosed.
    ///
    /// # Errors
    /// Its own error; a scheme of another kind, over other tokens or of more drafts; a law that
    /// can only be drawn from, or was read from a summary.
    pub fn optimum(&self, row: OwnRow<'_>) -> Result<Known, GapError> {
        let problem = self.problem(row).map_err(GapError::Settings)?;
        self.best(&problem).map_err(GapError::Settings)
    }

    pub(super) fn best(&self, problem: &Problem) -> Result<Known, String> {
        let found = on_row(problem).map_err(|error| format!("own law {}: {error}", self.name()))?;
        Ok(found.rate)
    }

    /// Returns what a rule of the table accepts of it.
    pub(super) fn rate(
        &self,
        name: VerifierName,
        problem: &Problem,
        seed: u64,
    ) -> Result<Known, String> {
        let settings = RrsWoSettings {
            seed,
            ..RrsWoSettings::default()
        };
        rate_of_rows(name, problem, &settings).map_err(|error| {
            format!(
                "own law {}: {name}: {error}; name the verifiers to measure, without {name}",
                self.name()
            )
        })
    }

    /// The problem of one position.
    pub(super) fn problem(&self, row: OwnRow<'_>) -> Result<Problem, String> {
        let named = |why: String| format!("own law {}: {why}", self.name());
        let Some(function) = &self.function else {
            let why = match self.is_sampled() {
                true => SAMPLED,
                false => "it was read from a summary, which has no function; name it again",
            };
            return Err(named(why.to_owned()));
        };
        let law = function(row).map_err(named)?;
        if law.name() != self.made {
            return Err(named(format!(
                "it is said to be made as {}, and is {} here",
                self.made,
                law.name()
            )));
        }
        if law.drafts() > row.drafts {
            return Err(named(format!(
                "it drafts up to {} tokens here, and {} are asked for; ask for as many as it \
                 drafts at most",
                law.drafts(),
                row.drafts
            )));
        }
        let target = Target::new(row.target).map_err(|error| named(format!("p: {error}")))?;
        Problem::from_law("rows", target, law).map_err(|error| named(error.to_string()))
    }

    /// Returns why it is measured nowhere, if it is asked for in vain.
    pub(super) fn left_out(&self, asked: &[usize]) -> Option<String> {
        let name = self.name();
        if self.is_sampled() {
            return Some(format!("own law {name}: {SAMPLED}"));
        }
        let missing = asked.iter().copied().filter(|&n| !self.fits(n));
        let missing: Vec<usize> = missing.collect();
        (!missing.is_empty()).then(|| {
            let has = by_commas(self.numbers());
            format!(
                "own law {name} for {} drafts: it has {has}, so ask for ⟨drafts {has}⟩",
                by_commas(&missing)
            )
        })
    }

    /// Checks whether two parts were measured by one law; if not, why not, and what to do.
    pub(super) fn same(&self, other: &Self) -> Result<(), String> {
        let one_function = match (&self.function, &other.function) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => self.is_sampled() && other.is_sampled(),
        };
        one_measured(
            "law",
            self.name(),
            [&self.told.digest, &other.told.digest],
            one_function,
        )
    }
}

impl From<&OwnLaw> for DraftsOf {
    fn from(law: &OwnLaw) -> Self {
        Self(Law::Own(law.name().to_owned()))
    }
}

/// An own law that is asked at every position.
#[derive(Clone, Debug)]
pub(super) struct LawAsked {
    pub id: OwnLawId,
    pub law: OwnLaw,
    /// Rules of the table that are lossless for it.
    pub rules: Vec<VerifierName>,
    /// Its rates that are compared, of alpha* if no rule is named, each with that of another law.
    pub pairs: Vec<(Option<VerifierName>, LawRef)>,
}
