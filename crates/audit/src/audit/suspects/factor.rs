//! What one outcome makes of a capital.

/// What an outcome that the claim excludes counts for under a law that has it.
const IMPOSSIBLE: f64 = 1e30;

/// A law over the claim at what happened, and how much the claim's noise could add to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Factor {
    pub ratio: f64,
    /// The sum over outcomes of the half-width of the claim times |f/c - 1|.
    pub price: f64,
}

impl Factor {
    pub(crate) const ONE: Self = Self {
        ratio: 1.0,
        price: 0.0,
    };

    pub(super) fn of(law: f64, claim: f64, price: f64) -> Self {
        let ratio = match claim > 0.0 {
            true => law.max(0.0) / claim,
            false if law > 0.0 => IMPOSSIBLE * law,
            false => 1.0,
        };
        Self { ratio, price }
    }
}
