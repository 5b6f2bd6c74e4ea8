//! What one outcome makes of a capital.

/// What an outcome that the claim excludes counts for under a law that has it.
pub(crate) const IMPOSSIBLE: f64 = 1e30;

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

    /// The factor of a draft that was kept or not: a law that keeps it so often over the claim,
    /// which keeps it with probability `keep`, give or take `width`.
    pub(super) fn of_acceptance(kept: bool, own: f64, [keep, width]: [f64; 2]) -> Self {
        let [law, claim] = match kept {
            true => [own, keep],
            false => [1.0 - own, 1.0 - keep],
        };
        let mut price = 0.0;
        if width > 0.0 && keep > 0.0 && keep < 1.0 {
            price = width * ((own / keep - 1.0).abs() + ((1.0 - own) / (1.0 - keep) - 1.0).abs());
        }
        // Sums of many tokens are off by rounding: what it alone excludes is not impossible.
        Self::of(law, if claim > 1e-12 { claim } else { 0.0 }, price)
    }

    /// Tells whether the claim excludes what happened.
    pub(super) fn is_of_the_excluded(&self) -> bool {
        self.ratio > 1e20
    }
}
