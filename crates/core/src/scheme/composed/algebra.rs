//! What laws are composed of, before it is checked and put into normal form.

use num_traits::Signed;
use specgap_number::distribution::{Draft, Rational};

/// A draft law made of simpler ones.
///
/// Wherever all parts draw from the same q, the whole is sorted by q/p: mixtures,
/// independent unions, forced tokens, conditioning and merging keep q-convexity
/// (`docs/theory/laws.md`).
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{Composed, Composition, DraftScheme, Draws};
/// // The most probable token for sure, and two i.i.d. draws from q.
/// let q = Draft::new(&[0.5, 0.25, 0.25])?;
/// let law = Composition::Union(vec![
///     Composition::Fixed(vec![0]),
///     Composition::Draws { draft: q, count: 2, how: Draws::Independent },
/// ]);
/// let scheme = Composed::new(3, law)?;
/// assert_eq!((scheme.drafts(), scheme.has_sort_theorem()), (3, true));
/// assert_eq!(scheme.inside(&[0, 1]), 0.5625);
/// assert_eq!(scheme.inside(&[1, 2]), 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub enum Composition {
    /// These tokens, for sure; none of them if the list is empty.
    Fixed(Vec<usize>),
    /// `count` draws from `draft`.
    Draws {
        /// q.
        draft: Draft,
        /// How many, at least 1.
        count: usize,
        /// By which law.
        how: Draws,
    },
    /// Each token independently of the others, with its own chance: a race of clocks that
    /// is stopped at a given time.
    Poisson(Vec<Rational>),
    /// The drafts of all parts, drawn independently of one another.
    Union(Vec<Self>),
    /// One of the parts, chosen with its weight before anything is drawn. Weights are
    /// divided by their sum.
    Mixture(Vec<(Rational, Self)>),
    /// The law given that it drafts none of these tokens.
    Avoiding(Vec<usize>, Box<Self>),
    /// A law over more tokens, `into[i]` being what its token i counts as: sequences that
    /// are drawn together and told apart by their first tokens alone.
    Merged {
        /// A token of this vocabulary for each token of the law's own.
        into: Vec<usize>,
        /// The law over its own vocabulary.
        law: Box<Self>,
    },
}

/// How several drafts are drawn from one q.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draws {
    /// i.i.d.
    Independent,
    /// One after another, each renormalised over the tokens that are left.
    Sequential,
    /// As [`Self::Sequential`], in a race with a clock of this rate, q having rate 1: before
    /// each draw drafting ends with probability `rate / (rate + q of what is left)`.
    Stopped(Rational),
    /// i.i.d., given that all differ.
    Distinct,
}

/// The largest number of parts in one list.
pub const MOST_PARTS: usize = 64;

/// The deepest that laws may nest.
pub const MOST_LEVELS: usize = 32;

/// Why parts make no law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}{fault}")]
pub struct CompositionError {
    /// Which part, as in `of[1].of[0]: `; empty for the law itself.
    pub part: String,
    /// What is wrong with it.
    pub fault: CompositionFault,
}

/// What is wrong with a part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompositionFault {
    /// A token that does not exist: the token; V.
    #[error("token {0} is not in the vocabulary 0..{1}")]
    Token(usize, usize),
    /// A list of another length than the vocabulary: which list; its length; V.
    #[error("{0} has {1} entries; it must have {2}, one a token")]
    Vocabulary(&'static str, usize, usize),
    /// No draws, or more distinct ones than there are tokens: as given; the most.
    #[error("drafts is {0}; it must be in 1..={1}")]
    Count(usize, usize),
    /// A chance, weight or rate that is none: which; as given; what it may be.
    #[error("{0} is {1}; it must be {2}")]
    Value(String, String, &'static str),
    /// No parts, or too many.
    #[error("there are {0} parts; give 1 to {MOST_PARTS}")]
    Parts(usize),
    /// Laws within laws within laws.
    #[error("laws nest more than {MOST_LEVELS} deep; put unions and mixtures side by side")]
    Levels,
    /// The law drafts an avoided token for sure.
    #[error("every draw holds one of the tokens to avoid, so nothing is left to draw")]
    Impossible,
    /// Sequential draws of too many tokens to be conditioned: V; n.
    #[error(
        "{1} sequential draws from {0} tokens are too many to be conditioned, which lists \
         their sets; take the tokens out of q before drawing instead (avoid)"
    )]
    Conditioned(usize, usize),
    /// Nothing is ever drafted.
    #[error("the law never drafts a token; give at least one part that does")]
    Nothing,
}

impl From<CompositionFault> for CompositionError {
    fn from(fault: CompositionFault) -> Self {
        Self {
            part: String::new(),
            fault,
        }
    }
}

impl CompositionError {
    /// The same complaint about a part of the part at `place`.
    pub(super) fn within(self, place: &str) -> Self {
        let Self { part, fault } = self;
        let part = if part.is_empty() {
            format!("{place}: ")
        } else {
            format!("{place}.{part}")
        };
        Self { part, fault }
    }
}

impl Composition {
    /// The most drafts that a draw can have.
    pub fn most(&self) -> usize {
        match self {
            Self::Fixed(tokens) => tokens.len(),
            Self::Draws { count, .. } => *count,
            Self::Poisson(chances) => chances.iter().filter(|chance| chance.is_positive()).count(),
            Self::Union(parts) => parts
                .iter()
                .fold(0, |sum: usize, part| sum.saturating_add(part.most())),
            Self::Mixture(parts) => parts.iter().map(|(_, part)| part.most()).max().unwrap_or(0),
            Self::Avoiding(_, law) | Self::Merged { law, .. } => law.most(),
        }
    }
}
