//! Problems: a target, a law of draft tuples, and what is expected of them.
//!
//! [`Problem`] is the single-step problem, [`BlockProblem`] a token tree. Both
//! are validated when they are built, so that everything downstream is total.
//! With feature `files`, `read` reads the files.

mod block;
mod error;
mod expected;
mod rule;

// What files say, and problems made of it.
#[cfg(feature = "files")]
mod build;
#[cfg(feature = "files")]
mod composed;
#[cfg(feature = "files")]
mod entries;
#[cfg(feature = "files")]
mod read;
#[cfg(feature = "files")]
mod row_law;

pub use block::{BlockExpected, BlockProblem, BlockProblemError, Conditionals, SpecTrGbvExpected};
pub use error::{FieldError, ProblemFileError};
pub use expected::{Expected, ExpectedValue};
pub use rule::Rule;

#[cfg(feature = "files")]
pub use read::{parse_json, parse_toml, read};
#[cfg(feature = "files")]
pub use row_law::RowLaw;
#[cfg(all(feature = "schema", feature = "files"))]
#[doc(hidden)]
pub use specgap_tables::File;

use crate::scheme::{DraftScheme, SchemeName};
use specgap_number::distribution::Target;
use std::sync::Arc;

/// The version of the problem file format that this build reads.
pub const SCHEMA: i64 = 1;

/// The largest number of drafts that a problem may have.
pub const MAX_DRAFTS: usize = 64;

/// The largest vocabulary that a problem may have.
pub const MAX_VOCAB: usize = 1 << 24;

/// Why a target and a draft scheme do not make a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// p and q are over different vocabularies: length of p; length of q.
    #[error("target has {0} entries and the draft {1}; both must be over one vocabulary")]
    Vocabulary(usize, usize),
    /// n out of range: n as given.
    #[error("drafts is {0}; it must be in 1..={MAX_DRAFTS}")]
    Drafts(usize),
    /// More distinct tokens are to be drawn than there are tokens: n as given; V; the scheme.
    #[error(
        "drafts is {0} and the vocabulary has {1} tokens; scheme {2} draws distinct tokens, so {cure}",
        cure = cure(*.1, *.2)
    )]
    MoreDraftsThanTokens(usize, usize, SchemeName),
}

/// What is to change where there are fewer tokens than drafts.
fn cure(vocab: usize, scheme: SchemeName) -> String {
    match scheme.entry().only {
        None => format!("drafts must be at most {vocab}"),
        Some(only) => format!("it needs {only} tokens at least: it takes {only} drafts, no fewer"),
    }
}

/// A single-step problem: p, the law of X, and n.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("bernoulli", Target::new(&[0.5, 0.5])?, scheme)?;
/// assert_eq!((problem.vocab(), problem.drafts()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Problem {
    name: String,
    target: Target,
    scheme: Arc<dyn DraftScheme>,
    expected: Option<Box<Expected>>,
    rule: Option<Arc<Rule>>,
}

impl Problem {
    /// A problem without expected values.
    ///
    /// # Errors
    /// Different vocabularies, n outside 1..=[`MAX_DRAFTS`], or n above V for
    /// a scheme whose drafts are distinct.
    pub fn new(
        name: impl Into<String>,
        target: Target,
        scheme: impl DraftScheme + 'static,
    ) -> Result<Self, ProblemError> {
        Self::from_law(name, target, Arc::new(scheme))
    }

    /// A problem without expected values, of a law that is one of several: what a table of laws
    /// builds.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_law(
        name: impl Into<String>,
        target: Target,
        scheme: Arc<dyn DraftScheme>,
    ) -> Result<Self, ProblemError> {
        Self::from_parts(name.into(), target, scheme, None)
    }

    fn from_parts(
        name: String,
        target: Target,
        scheme: Arc<dyn DraftScheme>,
        expected: Option<Expected>,
    ) -> Result<Self, ProblemError> {
        let (vocab, drafts) = (target.vocab(), scheme.drafts());
        if scheme.vocab() != vocab {
            return Err(ProblemError::Vocabulary(vocab, scheme.vocab()));
        }
        if drafts == 0 || drafts > MAX_DRAFTS {
            return Err(ProblemError::Drafts(drafts));
        }
        if drafts > vocab && scheme.name().draws_distinct_tokens() {
            let scheme = scheme.name();
            return Err(ProblemError::MoreDraftsThanTokens(drafts, vocab, scheme));
        }
        Ok(Self {
            name,
            target,
            scheme,
            expected: expected.map(Box::new),
            rule: None,
        })
    }

    /// The same target under another law of X over the same vocabulary and with
    /// as many drafts.
    pub fn with_scheme(&self, scheme: Arc<dyn DraftScheme>) -> Self {
        Self {
            scheme,
            expected: None,
            rule: None,
            ..self.clone()
        }
    }

    /// The same drafts for another target over the same vocabulary.
    ///
    /// # Errors
    /// Another vocabulary.
    pub fn with_target(&self, target: Target) -> Result<Self, ProblemError> {
        Self::from_law(self.name.clone(), target, Arc::clone(&self.scheme))
    }

    /// The problem's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// p.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The law of X.
    pub fn scheme(&self) -> &dyn DraftScheme {
        self.scheme.as_ref()
    }

    /// Vocabulary size V.
    pub fn vocab(&self) -> usize {
        self.target.vocab()
    }

    /// Number of drafts n.
    pub fn drafts(&self) -> usize {
        self.scheme.drafts()
    }

    /// The same with a rule that is tabulated for it.
    #[cfg(feature = "files")]
    pub(crate) fn with_rule(mut self, rule: Rule) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// The rule that the file tabulates.
    pub fn rule(&self) -> Option<&Rule> {
        self.rule.as_deref()
    }

    /// Returns what the file expects of the problem.
    pub fn expected(&self) -> Option<&Expected> {
        self.expected.as_deref()
    }
}

/// What a problem file holds.
#[derive(Clone, Debug)]
pub enum AnyProblem {
    /// A single-step problem.
    Single(Problem),
    /// A token tree.
    Block(BlockProblem),
}

impl AnyProblem {
    /// The problem's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Single(problem) => problem.name(),
            Self::Block(problem) => problem.name(),
        }
    }

    /// The single-step problem, if it is one.
    pub fn single(&self) -> Option<&Problem> {
        match self {
            Self::Single(problem) => Some(problem),
            Self::Block(_) => None,
        }
    }

    /// The block problem, if it is one.
    pub fn block(&self) -> Option<&BlockProblem> {
        match self {
            Self::Block(problem) => Some(problem),
            Self::Single(_) => None,
        }
    }
}
