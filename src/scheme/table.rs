//! What the rest of the crate asks of a draft law by its name.

use super::{DraftScheme, ExplicitError, LAWS};
use crate::distribution::{Draft, TupleProbabilities};
use crate::row::Answer;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// One draft law in the table [`LAWS`].
///
/// Reading of problem files, random problems of the claims, reports, colours, help
/// texts and error messages take what they need from here: a law is added by its file
/// and its line in the table.
#[derive(Debug)]
pub struct Law {
    /// The name in problem files, options and reports.
    pub name: &'static str,
    /// The law in one line.
    pub words: &'static str,
    /// Q(H) = P(all drafts in H), as a formula in words.
    pub inside: &'static str,
    /// Engines and methods that draft so; empty if none is known.
    pub engines: &'static str,
    /// Whether all drafts of a tuple are different by construction, so that n may not
    /// exceed V.
    pub distinct: bool,
    /// The only number of drafts that there is; `None` if any will do.
    pub only: Option<usize>,
    /// What the law is made of.
    pub made_of: MadeOf,
    /// Where it is proved that sorting by q/p finds the optimal subset; `None` where it
    /// does not.
    pub sort_theorem: Option<&'static str>,
    /// How rows of a log are answered; `None` if a log cannot hold such drafts.
    pub on_row: Option<OnRow>,
    /// Its colour in plots, the same in all: a number of the palette.
    pub hue: usize,
}

/// Builds a law from its numbers; by this a problem file's `[draft]` becomes one.
#[derive(Clone, Copy, Debug)]
pub enum MadeOf {
    /// From one draft distribution, `draft.q`, and n.
    OneDraft(fn(Draft, usize) -> Arc<dyn DraftScheme>),
    /// From a distribution a draft, `draft.qs`; `None` if there are none or they are of
    /// different lengths.
    EachDraft(fn(Vec<Draft>) -> Option<Arc<dyn DraftScheme>>),
    /// From V, n, and `draft.tuples` with their `draft.probabilities`.
    Tuples(TuplesToLaw),
}

/// V, n, tuples and their probabilities to a law.
pub type TuplesToLaw = fn(
    usize,
    usize,
    Vec<Vec<u32>>,
    TupleProbabilities,
) -> Result<Arc<dyn DraftScheme>, ExplicitError>;

impl MadeOf {
    /// The fields of `[draft]` that it reads, `scheme` apart.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::OneDraft(_) => &["draft.q"],
            Self::EachDraft(_) => &["draft.qs"],
            Self::Tuples(_) => &["draft.tuples", "draft.probabilities"],
        }
    }
}

/// What a law answers about one row of a log.
#[derive(Debug)]
pub struct OnRow {
    /// alpha* of n drafts.
    pub optimum: Answer,
    /// Why that is the optimum, for reports.
    pub status: &'static str,
    /// How often a draw from p is among the drafts, the sum of p_i P(i in A(X)): what
    /// `naive` accepts. `None` if it is not computed.
    pub hits: Option<Answer>,
}

/// A draft law by its name: a handle to its entry in [`LAWS`].
///
/// Handles compare, sort and hash by name.
///
/// # Example
/// ```
/// use specgap::scheme::SchemeName;
/// let law: SchemeName = "hub".parse()?;
/// assert_eq!(law, SchemeName::HUB);
/// assert!(law.fits(2) && !law.fits(3));
/// # Ok::<(), specgap::scheme::UnknownScheme>(())
/// ```
#[derive(Clone, Copy)]
pub struct SchemeName(pub(super) &'static Law);

impl SchemeName {
    /// Every law, in the order of the table.
    pub const ALL: [Self; LAWS.len()] = {
        let mut all = [Self(LAWS[0]); LAWS.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = Self(LAWS[index]);
            index += 1;
        }
        all
    };

    /// The entry.
    pub fn entry(self) -> &'static Law {
        self.0
    }

    /// The name as written in problem files, e.g. `with-replacement`.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// The law in one line, for reports.
    pub fn law(self) -> &'static str {
        self.0.words
    }

    /// True if all drafts of a tuple are different by construction, so that
    /// n may not exceed V.
    pub fn draws_distinct_tokens(self) -> bool {
        self.0.distinct
    }

    /// Whether the law has n drafts.
    pub fn fits(self, drafts: usize) -> bool {
        self.0.only.is_none_or(|only| only == drafts)
    }
}

impl PartialEq for SchemeName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for SchemeName {}

impl Hash for SchemeName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl PartialOrd for SchemeName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SchemeName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl fmt::Debug for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchemeName({})", self.0.name)
    }
}

impl fmt::Display for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not in [`LAWS`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a draft scheme; choose one of {known}", known = SchemeName::list())]
pub struct UnknownScheme(pub String);

impl SchemeName {
    /// All names, for messages.
    pub(crate) fn list() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl FromStr for SchemeName {
    type Err = UnknownScheme;
    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| UnknownScheme(text.to_owned()))
    }
}
