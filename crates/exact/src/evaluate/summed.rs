//! What a rule comes to, of the law of its output.

use super::tolerances::LOSSLESS_TOLERANCE;
use specgap_core::verifier::{OutputLaw, TotalVariation, total_variation, total_variation_exact};
use specgap_number::distribution::{Rational, Target};
use specgap_number::known::Known;
use specgap_number::number::Number;

/// What a rule comes to by the law of its output.
pub(super) struct Summed {
    pub(super) algorithmic: Known,
    pub(super) membership: Known,
    pub(super) variation: TotalVariation,
}

impl Summed {
    pub(super) fn exact(law: OutputLaw<Rational>, target: &Target) -> Self {
        Self {
            variation: total_variation_exact(&law, target),
            algorithmic: Known::exact(law.algorithmic),
            membership: Known::exact(law.membership),
        }
    }

    pub(super) fn float(law: OutputLaw<f64>, target: &Target) -> Self {
        Self {
            variation: total_variation(&law, target),
            algorithmic: Known::rate_within(law.algorithmic, LOSSLESS_TOLERANCE),
            membership: Known::rate_within(law.membership, LOSSLESS_TOLERANCE),
        }
    }

    /// Tells whether the output law is p: with tolerance 0 where fractions are, which are asked for.
    pub(super) fn is_lossless(&self, in_fractions: bool) -> bool {
        match &self.variation.exact {
            Some(exact) if in_fractions => exact.is_nil(),
            _ => self.variation.value <= LOSSLESS_TOLERANCE,
        }
    }
}
