//! Rules of the caller's own, measured beside those of the table.

use super::GapError;
use super::metric::{LawRef, Other, Own, schemes};
use serde::{Deserialize, Serialize};
use specgap_core::rule::RuleName;
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::VerifierName;
use std::sync::Arc;

/// One pair of rows that an [`OwnRule`] is asked about.
///
/// Rows are as the rules of the table see them: at the temperature that is measured, and cut as
/// [`Settings::served`](super::Settings::served) says. Both sum to 1 up to rounding, have one entry
/// a token, and as many as one another: all V tokens of a full row; of a row that lists some, the
/// listed ones in the log's order, where nothing else can be drawn.
#[derive(Clone, Copy, Debug)]
pub struct OwnRow<'a> {
    /// p.
    pub target: &'a [f64],
    /// q.
    pub draft: &'a [f64],
    /// n.
    pub drafts: usize,
    /// The position's number in its log, from 0.
    pub position: usize,
    /// A seed of this position alone, for what is drawn at random.
    pub seed: u64,
}

/// What an [`OwnRule`] says of a pair of rows. Dimensionless, in \[0, 1\].
///
/// A report takes these for plain floating-point numbers ([`Kind::Float`]): nothing is known of
/// their rounding.
///
/// # Example
/// ```
/// use specgap_measure::OwnRate;
/// let rate = OwnRate::from(0.5);
/// assert_eq!((rate.membership, rate.algorithmic), (0.5, None));
/// ```
///
/// [`Kind::Float`]: specgap_number::known::Kind::Float
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnRate {
    /// P(the output is one of the drafts): what reports call acceptance.
    pub membership: f64,
    /// P(the rule accepts a draft, by its own account); `None` if it does not say.
    pub algorithmic: Option<f64>,
    /// Half the sum over tokens of |law of the output - p|: 0, but for rounding, if the rule is
    /// lossless here. `None` if the rule does not say, and then no report calls it lossless.
    pub total_variation: Option<f64>,
    /// The variance that draws leave of `membership`; `None` if nothing was drawn.
    pub noise: Option<f64>,
}

impl From<f64> for OwnRate {
    /// The rate of a rule that says what it accepts, and nothing else.
    fn from(membership: f64) -> Self {
        Self {
            membership,
            ..Self::default()
        }
    }
}

type Function = Arc<dyn Fn(OwnRow<'_>) -> Result<OwnRate, String> + Send + Sync>;

/// Whose drafts an [`OwnRule`] is for: those of a law of the table, or of an
/// [`OwnLaw`](super::OwnLaw).
#[derive(Clone, Debug, PartialEq)]
pub struct DraftsOf(pub(super) Law);

/// A law by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(super) enum Law {
    Table(SchemeName),
    Own(String),
}

impl From<SchemeName> for DraftsOf {
    fn from(scheme: SchemeName) -> Self {
        Self(Law::Table(scheme))
    }
}

impl From<String> for Law {
    fn from(name: String) -> Self {
        // A name of the table is none of an own law.
        law_of_rows(&name).map_or(Self::Own(name), Self::Table)
    }
}

impl From<Law> for String {
    fn from(law: Law) -> Self {
        law.name().to_owned()
    }
}

impl Law {
    fn name(&self) -> &str {
        match self {
            Self::Table(scheme) => scheme.as_str(),
            Self::Own(name) => name,
        }
    }
}

/// The law of the table that a report may have under this name: `composed` and others that are
/// given by more than a row are free for laws of one's own.
fn law_of_rows(name: &str) -> Option<SchemeName> {
    let found: SchemeName = name.parse().ok()?;
    schemes().any(|one| one == found).then_some(found)
}

/// Checks whether something of the caller's own, a rule or a law, may have a name.
pub(super) fn named(what: &str, name: &str) -> Result<(), String> {
    let refused = |why: String| Err(format!("own {what} {name:?}: {why}"));
    if name.trim().is_empty() || name.chars().count() > LONGEST {
        return refused(format!("give it a name of 1 to {LONGEST} letters"));
    }
    if let Some(odd) = name.chars().find(|&c| c.is_control() || "/,".contains(c)) {
        return refused(format!("its name has {odd:?}; take letters, digits and -"));
    }
    let known = name.parse::<VerifierName>().is_ok()
        || name.parse::<RuleName>().is_ok()
        || law_of_rows(name).is_some()
        || TAKEN.contains(&name);
    if known {
        return refused(
            "that is a name of the table already; give it one of its own (name=)".to_owned(),
        );
    }
    Ok(())
}

/// Joins several as options name them: `2,3`.
pub(super) fn by_commas<T: ToString>(all: &[T]) -> String {
    let words: Vec<String> = all.iter().map(ToString::to_string).collect();
    words.join(",")
}

/// Words without line breaks.
pub(super) fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks whether two parts were measured by one rule or law of this name; if not, why not, and
/// what to do. By digest, and where there is none by the function itself.
pub(super) fn one_measured(
    what: &str,
    name: &str,
    digests: [&Option<String>; 2],
    one_function: bool,
) -> Result<(), String> {
    match digests {
        [Some(one), Some(other)] if one == other => Ok(()),
        [None, None] if one_function => Ok(()),
        [Some(one), Some(other)] => Err(format!(
            "was measured with own {what} {name} of digest {other}, and the other part with one of \
             digest {one}; measure all parts with one {what}"
        )),
        _ => Err(format!(
            "was measured with own {what} {name}, and nothing tells that the other part was \
             measured with the same; give the {what} a digest in all parts"
        )),
    }
}

/// Returns why a row that lists some tokens only says nothing of a rule that accepts, or a law that
/// drafts, what is not listed.
pub(super) fn lists_refused(what: &str, does: &str, name: &str) -> String {
    format!(
        "own {what} {name}: the row lists some tokens only, and what a {what} of your own {does} \
         the others has no bounds; measure full rows, keep no more than is listed (top-k, top-p or \
         min-p), or leave the {what} out"
    )
}

/// What rules and laws of the caller's own say of themselves, from what a summary tells of them.
macro_rules! own_told {
    ($own:ident by $told:ident, $does:literal) => {
        impl std::fmt::Debug for $own {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.told.fmt(f)
            }
        }

        impl PartialEq for $own {
            /// Returns whether both say the same of themselves, and are known to be one.
            fn eq(&self, other: &Self) -> bool {
                self.told == other.told && self.same(other).is_ok()
            }
        }

        impl $own {
            /// Returns what a summary says of it.
            pub(super) fn as_told(&self) -> $told {
                self.told.clone()
            }

            #[doc = concat!("Says what it ", $does, ", in one line, for the page's definitions.")]
            #[must_use]
            pub fn words(mut self, words: &str) -> Self {
                self.told.words = $crate::own::one_line(words);
                self
            }

            /// Says what tells this one from others of its name: a hash of its source, or a version.
            ///
            /// Summaries of parts are merged only where both name one digest, or were made in one
            /// process with one function: a report of two under one name would be of neither.
            #[must_use]
            pub fn digest(mut self, digest: &str) -> Self {
                self.told.digest = Some(digest.to_owned());
                self
            }

            /// Returns its name.
            pub fn name(&self) -> &str {
                &self.told.name
            }

            #[doc = concat!("Returns what it ", $does, ", in one line; empty if it does not say.")]
            pub fn told(&self) -> &str {
                &self.told.words
            }

            /// Returns what tells it from others of its name, if it says so.
            pub fn digested(&self) -> Option<&str> {
                self.told.digest.as_deref()
            }
        }
    };
}
pub(super) use own_told;

/// A verification rule of the caller's own, asked at every position of a log as a rule of the
/// table is: the same rows, temperatures, cuts and numbers of drafts, paired differences to the
/// table's rules of the same drafts and to alpha*, intervals by prompt.
///
/// Whether it is lossless is not asked of it: the report says how far the law of its output is
/// from p, where the rule says it.
///
/// Rows that list some tokens only leave a rule of the table between bounds. Of an own rule none
/// are known, so that such a row is an error.
///
/// # Example
/// What a rule accepts that keeps a draft with p itself, of n independent drafts:
/// ```
/// use specgap_core::scheme::SchemeName;
/// use specgap_measure::{OwnRate, OwnRow, OwnRule, Settings};
/// let matches = |row: OwnRow<'_>| {
///     let n = i32::try_from(row.drafts).map_err(|error| error.to_string())?;
///     let missed = row.target.iter().zip(row.draft).map(|(p, q)| p * (1.0 - q).powi(n));
///     Ok(OwnRate::from(1.0 - missed.sum::<f64>()))
/// };
/// let rule = OwnRule::new("matching", SchemeName::WITH_REPLACEMENT, matches)?
///     .words("the target's own draw, if it was drafted");
/// let coin = OwnRow { target: &[0.5, 0.5], draft: &[0.75, 0.25], drafts: 1, position: 0, seed: 0 };
/// assert_eq!(rule.rate(coin)?.membership, 0.5);
/// let mut settings = Settings::new(&[1.0], &[2, 3], 0)?;
/// settings.own_rules.push(rule);
/// // A name of the table is one already.
/// assert!(OwnRule::new("rrs", SchemeName::WITH_REPLACEMENT, matches).is_err());
/// # Ok::<(), specgap_measure::GapError>(())
/// ```
#[derive(Clone)]
pub struct OwnRule {
    told: RuleTold,
    /// `None` of a rule that was read from a summary.
    function: Option<Function>,
}

/// What a summary says of a rule, whose function stays where it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTold {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    words: String,
    #[serde(rename = "scheme")]
    of: Law,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    drawn: bool,
}

own_told!(OwnRule by RuleTold, "does");

/// Letters of a name at most.
const LONGEST: usize = 64;

/// Names of columns, which a rule's name would be taken for.
const TAKEN: [&str; 4] = ["optimum", "overlap", "lower", "upper"];

impl OwnRule {
    /// A rule for drafts of a law: of the table, or `&law` of the caller's own. `rate` is called from several threads, and is asked about each
    /// pair of rows and n once; what it returns must depend on nothing else.
    ///
    /// # Errors
    /// A name that is empty, longer than 64 letters, a name or alias of the table of rules or of
    /// laws, or has a slash, a comma or a control character; a law that a log's rows do not make.
    pub fn new(
        name: &str,
        drafts: impl Into<DraftsOf>,
        rate: impl Fn(OwnRow<'_>) -> Result<OwnRate, String> + Send + Sync + 'static,
    ) -> Result<Self, GapError> {
        let told = RuleTold {
            name: name.to_owned(),
            words: String::new(),
            of: drafts.into().0,
            digest: None,
            drawn: false,
        };
        Self::checked(told, Some(Arc::new(rate))).map_err(GapError::Settings)
    }

    /// A rule of a summary: without a function.
    pub(super) fn carried(told: &RuleTold) -> Result<Self, String> {
        Ok(Self::checked(told.clone(), None)?.words(&told.words))
    }

    fn checked(told: RuleTold, function: Option<Function>) -> Result<Self, String> {
        named("rule", &told.name)?;
        if let Law::Table(scheme) = told.of
            && !schemes().any(|one| one == scheme)
        {
            return Err(format!(
                "own rule {:?}: a log's rows do not make {scheme} drafts",
                told.name
            ));
        }
        Ok(Self { told, function })
    }

    /// Says that what it accepts is a mean over draws, less the noise that it has in common with a
    /// number whose mean is known: right on average, and at one position maybe below 0 or above 1.
    #[must_use]
    pub fn drawn(mut self) -> Self {
        self.told.drawn = true;
        self
    }

    /// The name of the law of its drafts.
    pub fn scheme(&self) -> &str {
        self.told.of.name()
    }

    /// Returns its name behind that of the law of its drafts.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.scheme(), self.name())
    }

    pub(super) fn of(&self) -> &Law {
        &self.told.of
    }

    /// Returns what it says of a pair of rows.
    ///
    /// # Errors
    /// Its own error; a rate outside \[0, 1\]; a rule that was read from a summary, which has no
    /// function.
    pub fn rate(&self, row: OwnRow<'_>) -> Result<OwnRate, GapError> {
        self.asked(row).map_err(GapError::Settings)
    }

    pub(super) fn asked(&self, row: OwnRow<'_>) -> Result<OwnRate, String> {
        let named = |why: String| format!("own rule {}: {why}", self.name());
        let Some(function) = &self.function else {
            return Err(named(
                "it was read from a summary, which has no function; name it again".to_owned(),
            ));
        };
        let rate = function(row).map_err(named)?;
        let numbers = [
            ("acceptance", Some(rate.membership)),
            ("algorithmic acceptance", rate.algorithmic),
            ("total variation", rate.total_variation),
        ];
        for (what, number) in numbers {
            let room = if self.told.drawn { 1.0 } else { ROUNDING };
            let within = -room..=1.0 + room;
            if let Some(number) = number.filter(|number| !within.contains(number)) {
                return Err(named(format!(
                    "its {what} with n = {} is {number}; a probability is in [0, 1]",
                    row.drafts
                )));
            }
        }
        Ok(rate)
    }

    /// Checks whether two parts were measured by one rule; if not, why not, and what to do.
    pub(super) fn same(&self, other: &Self) -> Result<(), String> {
        let one_function = match (&self.function, &other.function) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        one_measured(
            "rule",
            self.name(),
            [&self.told.digest, &other.told.digest],
            one_function,
        )
    }
}

/// What a rate may be beyond [0, 1] by rounding.
const ROUNDING: f64 = 1e-9;

/// An own rule that is asked at every position.
#[derive(Clone, Debug)]
pub(super) struct OwnAsked {
    pub own: Own,
    pub rule: OwnRule,
    /// The law of its drafts.
    pub law: LawRef,
    /// Rules that its acceptance is compared with.
    pub pairs: Vec<Other>,
}
