//! Rows of a round, how their drafts are drawn, and what is refused.

/// An entry of a row.
pub trait Entry: Copy + PartialOrd + Into<f64> + Send + Sync {
    /// How far the sum of a row may be from 1.
    const TOLERANCE: f64;
    /// No mass.
    const ZERO: Self;
}

impl Entry for f32 {
    const TOLERANCE: f64 = 1e-4;
    const ZERO: Self = 0.0;
}

impl Entry for f64 {
    const TOLERANCE: f64 = 1e-6;
    const ZERO: Self = 0.0;
}

/// How the drafts of a node are drawn from its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// Independent draws, each from the whole row.
    WithReplacement,
    /// Sure tokens, then one of each stratum; a token over a cut at most once.
    Stratified,
    /// The same, and each stratum for itself.
    StratifiedIndependent,
    /// The likeliest tokens, or any that are taken for certain.
    Certain,
}

/// What cannot be a round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecoderError {
    /// A row that is no distribution: `p`, `q` or what the caller calls it; its number; what is
    /// wrong.
    #[error("{0}: row {1} {2}; rows are probabilities that sum to 1")]
    Row(&'static str, usize, String),
    /// Arrays that do not fit each other.
    #[error("{0}")]
    Shape(String),
    /// A draft that the law cannot have drawn from this row: its number; its token.
    #[error("tokens: node {0} is token {1}, which its parent's row of q cannot have drafted")]
    Draft(usize, u32),
    /// Random numbers ran out: how many there were.
    #[error("coins: {0} are not enough; give one for each offer to a node in each pass, and two")]
    Coins(usize),
}
