//! Why tuples make no law.

/// Why tuples do not make a scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExplicitError {
    /// Not as many tuples as probabilities.
    #[error(
        "there are {tuples} tuples and {probabilities} probabilities; give one probability a tuple"
    )]
    Count {
        /// Number of tuples.
        tuples: usize,
        /// Number of probabilities.
        probabilities: usize,
    },
    /// A tuple of another length than the first.
    #[error(
        "tuple {index} has {length} tokens and drafts is {drafts}; all tuples must have that many"
    )]
    Ragged {
        /// Position of the tuple, from 0.
        index: usize,
        /// Its length.
        length: usize,
        /// The length it must have.
        drafts: usize,
    },
    /// A token outside the vocabulary.
    #[error("tuple {index} holds token {token}; the vocabulary is 0..{vocab}")]
    OutOfRange {
        /// Position of the tuple, from 0.
        index: usize,
        /// The token.
        token: i64,
        /// Vocabulary size.
        vocab: usize,
    },
}
