//! Random numbers of a round, or whatever stands for them.

use super::mass::Mass;
use super::rows::{DecoderError, Entry};

/// What is left to chance.
pub(super) trait Chance {
    /// True with `part` of `whole`.
    fn falls(&mut self, part: f64, whole: f64) -> Result<bool, DecoderError>;
    /// Tells whether a node is kept that is so likely to be, given that it was refused so far.
    fn keeps(&mut self, node: usize, chance: f64) -> Result<bool, DecoderError>;
    /// A token in proportion to its mass.
    fn draw<T: Entry>(&mut self, mass: &Mass<'_, T>) -> Result<Option<usize>, DecoderError>;
}

/// Random numbers, even in [0, 1), one after the other: one for each decision, whatever its chance. From
/// the leaves each node has its own, and the draw the one behind these.
pub(super) struct Coins<'a> {
    all: &'a [f64],
    next: usize,
    /// The chance that all offers to a node so far were refused.
    refused: Vec<f64>,
}

impl<'a> Coins<'a> {
    pub(super) fn new(all: &'a [f64], nodes: usize) -> Result<Self, DecoderError> {
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

    pub(super) fn next(&mut self) -> Result<f64, DecoderError> {
        let given = self.all.len();
        let coin = self.all.get(self.next);
        self.next += 1;
        coin.copied().ok_or(DecoderError::Coins(given))
    }
}

impl Chance for Coins<'_> {
    fn falls(&mut self, part: f64, whole: f64) -> Result<bool, DecoderError> {
        Ok(self.next()? * whole < part)
    }

    fn keeps(&mut self, node: usize, chance: f64) -> Result<bool, DecoderError> {
        let given = self.all.len();
        let coin = self.all.get(node).ok_or(DecoderError::Coins(given))?;
        self.refused[node] *= 1.0 - chance;
        Ok(*coin >= self.refused[node])
    }

    fn draw<T: Entry>(&mut self, mass: &Mass<'_, T>) -> Result<Option<usize>, DecoderError> {
        Ok(mass.draw(self.next()?))
    }
}
