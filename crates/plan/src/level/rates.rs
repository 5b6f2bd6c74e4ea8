//! What a rule accepts and what none can pass, enclosed.

use specgap_number::known::Known;

/// What a rule by level accepts, and what no rule does.
#[derive(Clone, Debug)]
pub struct LevelRates {
    /// Probability that a draft is accepted, enclosed.
    pub acceptance: Known,
    /// alpha\*, between what is accepted and `1 + P(H) - Q(H)`.
    pub optimum: Known,
}

impl LevelRates {
    /// The rates from what is accepted and 1 + P(H) - Q(H), each with what it may be off by.
    pub(super) fn enclosed([accepted, error]: [f64; 2], [most, most_error]: [f64; 2]) -> Self {
        let (value, most) = (most.clamp(accepted, 1.0), most + most_error);
        let upper = (accepted + error).min(most).max(accepted);
        let acceptance = Known::rate(accepted, accepted - error, upper);
        Self {
            optimum: Known::rate(value, acceptance.lower(), most.max(value)),
            acceptance,
        }
    }

    /// No rule accepts more.
    pub(super) fn lower_to(&mut self, most: f64) {
        let upper = self.optimum.upper().min(most).max(self.acceptance.lower());
        let value = self.optimum.value().min(upper);
        self.optimum = Known::rate(value, self.acceptance.lower(), upper);
    }
}

/// What all plans by level answer: the documentation of alpha\*, of the residual, and of which tokens
/// are held, where that is known.
macro_rules! plan_answers {
    ($plan:ident: $optimum:literal; $residual:literal $(; $holds:literal)?) => {
        impl $plan {
            /// Probability that a draft is accepted, enclosed.
            pub fn acceptance_rate(&self) -> &specgap_number::known::Known {
                &self.rates.acceptance
            }

            #[doc = $optimum]
            pub fn optimal_acceptance_rate(&self) -> &specgap_number::known::Known {
                &self.rates.optimum
            }

            $(#[doc = $holds]
            pub fn holds(&self, token: u32) -> bool {
                self.held.get(token as usize) == Some(&true)
            })?

            #[doc = $residual]
            pub fn residual(&self) -> &std::sync::Arc<[f64]> {
                &self.thinning.residual
            }
        }
    };
}
pub(super) use plan_answers;
