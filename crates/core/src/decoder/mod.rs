//! A round of a decoder on rows of single or double precision: drafts of a node, and the
//! verification of a tree of them. What an engine runs between two passes of its models: nothing is
//! sorted, a stratum is swept once a pass, and sums are in `f64`.
//!
//! The laws and rules are those of [`crate::scheme`] and [`crate::rule`], where they are defined and
//! measured; here they are run. `python/specgap/rules.py` has them for readers.

mod drafts;
mod mass;
mod verify;

#[cfg(test)]
mod tests;

pub use drafts::draft;
pub use verify::{Kept, Rule, Tree, verify};

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
    /// A row that is no distribution.
    #[error("{name}: row {row} {what}; rows are probabilities that sum to 1")]
    Row {
        /// `p`, `q` or what the caller calls it.
        name: &'static str,
        /// Its number.
        row: usize,
        /// What is wrong.
        what: String,
    },
    /// Arrays that do not fit each other.
    #[error("{0}")]
    Shape(String),
    /// A draft that the law cannot have drawn from this row.
    #[error(
        "tokens: node {node} is token {token}, which its parent's row of q cannot have drafted"
    )]
    Draft {
        /// Its number.
        node: usize,
        /// Its token.
        token: u32,
    },
    /// Random numbers ran out.
    #[error(
        "coins: {given} are not enough; give one for each offer to a node in each pass, and two"
    )]
    Coins {
        /// How many there were.
        given: usize,
    },
}

/// What is left to chance.
trait Chance {
    /// True with `part` of `whole`.
    fn falls(&mut self, part: f64, whole: f64) -> Result<bool, DecoderError>;
    /// Whether a node is kept that is so likely to be, given that it was refused so far.
    fn keeps(&mut self, node: usize, chance: f64) -> Result<bool, DecoderError>;
    /// A token in proportion to its mass.
    fn draw<T: Entry>(&mut self, mass: &mass::Mass<'_, T>) -> Result<Option<usize>, DecoderError>;
}

/// Random numbers, even in [0, 1), one after the other: one for each decision, whatever its chance. From
/// the leaves each node has its own, and the draw the one behind these.
struct Coins<'a> {
    all: &'a [f64],
    next: usize,
    /// The chance that all offers to a node so far were refused.
    refused: Vec<f64>,
}

impl<'a> Coins<'a> {
    fn new(all: &'a [f64], nodes: usize) -> Result<Self, DecoderError> {
        if let Some(at) = all.iter().position(|coin| !(0.0..1.0).contains(coin)) {
            let text = format!("coins: number {at} is {}, outside [0, 1)", all[at]);
            return Err(DecoderError::Shape(text));
        }
        Ok(Self {
            all,
            next: nodes,
            refused: vec![1.0; nodes],
        })
    }

    fn next(&mut self) -> Result<f64, DecoderError> {
        let given = self.all.len();
        let coin = self.all.get(self.next);
        self.next += 1;
        coin.copied().ok_or(DecoderError::Coins { given })
    }
}

impl Chance for Coins<'_> {
    fn falls(&mut self, part: f64, whole: f64) -> Result<bool, DecoderError> {
        Ok(self.next()? * whole < part)
    }

    fn keeps(&mut self, node: usize, chance: f64) -> Result<bool, DecoderError> {
        let given = self.all.len();
        let coin = self.all.get(node).ok_or(DecoderError::Coins { given })?;
        self.refused[node] *= 1.0 - chance;
        Ok(*coin >= self.refused[node])
    }

    fn draw<T: Entry>(&mut self, mass: &mass::Mass<'_, T>) -> Result<Option<usize>, DecoderError> {
        Ok(mass.draw(self.next()?))
    }
}
