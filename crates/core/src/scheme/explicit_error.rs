//! Why tuples make no law.

/// Why tuples do not make a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplicitError {
    /// Not as many tuples as probabilities: number of tuples; number of probabilities.
    #[error("there are {0} tuples and {1} probabilities; give one probability a tuple")]
    Count(usize, usize),
    /// A tuple of another length than the first: position of the tuple, from 0; its length; the
    /// length it must have.
    #[error("tuple {0} has {1} tokens and drafts is {2}; all tuples must have that many")]
    Ragged(usize, usize, usize),
    /// A token outside the vocabulary: position of the tuple, from 0; the token; vocabulary size.
    #[error("tuple {0} holds token {1}; the vocabulary is 0..{2}")]
    OutOfRange(usize, i64, usize),
}
