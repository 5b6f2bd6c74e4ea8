//! From a row of logits to a row of probabilities.

use super::{DistributionError, TwoFloat};

/// How a row of logits becomes a distribution: softmax of `logits / temperature`,
/// cut to the `top_k` most probable tokens, then to the smallest set of most
/// probable tokens that holds at least `top_p` of what is left, renormalised.
///
/// Ties are kept in the order of token ids. A logit of -inf is a token of
/// probability 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Divides the logits; finite and above 0. 1 leaves them alone.
    pub temperature: f64,
    /// Keeps this many tokens; at least 1.
    pub top_k: Option<usize>,
    /// Keeps this much probability; in (0, 1].
    pub top_p: Option<f64>,
}

impl Default for Softmax {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: None,
        }
    }
}

impl Softmax {
    /// Applies the rule to one row of `V` logits, returning `V` probabilities
    /// that sum to 1 up to rounding.
    ///
    /// # Exactness
    /// Each probability has a relative error of a few units in the last place
    /// (that of `exp`, plus one division); the normaliser is summed in
    /// double-double.
    ///
    /// # Errors
    /// NaN and +inf entries, a row with only -inf, an empty row, and settings out
    /// of range.
    ///
    /// # Complexity
    /// O(V), plus O(V log V) when `top_k` or `top_p` is set.
    ///
    /// # Example
    /// ```
    /// use specgap::distribution::Softmax;
    /// let row = Softmax::default().probabilities(&[0.0, f64::NEG_INFINITY, 0.0])?;
    /// assert_eq!(row, [0.5, 0.0, 0.5]);
    /// # Ok::<(), specgap::distribution::DistributionError>(())
    /// ```
    pub fn probabilities(&self, logits: &[f64]) -> Result<Vec<f64>, DistributionError> {
        self.check()?;
        if logits.is_empty() {
            return Err(DistributionError::Empty);
        }
        for (index, &value) in logits.iter().enumerate() {
            if value.is_nan() || value == f64::INFINITY {
                return Err(DistributionError::Logit { index, value });
            }
        }
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return Err(DistributionError::AllMasked);
        }
        let mut weights: Vec<f64> = logits
            .iter()
            .map(|&logit| ((logit - largest) / self.temperature).exp())
            .collect();
        if self.top_k.is_some() || self.top_p.is_some() {
            self.truncate(&mut weights, logits);
        }
        let mut total = TwoFloat::ZERO;
        for &weight in &weights {
            total += weight;
        }
        let total = total.value();
        for weight in &mut weights {
            *weight /= total;
        }
        Ok(weights)
    }

    fn check(&self) -> Result<(), DistributionError> {
        let setting = |name, value, limit| Err(DistributionError::Setting { name, value, limit });
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return setting("temperature", self.temperature, "finite and above 0");
        }
        if self.top_k == Some(0) {
            return setting("top_k", 0.0, "at least 1");
        }
        if let Some(top_p) = self.top_p
            && !(top_p > 0.0 && top_p <= 1.0)
        {
            return setting("top_p", top_p, "above 0 and at most 1");
        }
        Ok(())
    }

    /// Sets the weights of the tokens that are cut to zero. The order is that of
    /// the logits, which exponentials that underflow no longer show.
    fn truncate(&self, weights: &mut [f64], logits: &[f64]) {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
        let mut keep = self.top_k.unwrap_or(order.len()).min(order.len());
        if let Some(top_p) = self.top_p {
            let mut total = TwoFloat::ZERO;
            for &token in &order[..keep] {
                total += weights[token];
            }
            let wanted = top_p * total.value();
            let mut held = TwoFloat::ZERO;
            for (rank, &token) in order[..keep].iter().enumerate() {
                held += weights[token];
                if held.value() >= wanted {
                    keep = rank + 1;
                    break;
                }
            }
        }
        for &token in &order[keep..] {
            weights[token] = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_extreme_logits() {
        let row = Softmax::default()
            .probabilities(&[1e308, -1e308, 0.0])
            .unwrap();
        assert_eq!(row, [1.0, 0.0, 0.0]);
        let row = Softmax {
            temperature: 1e-3,
            ..Softmax::default()
        }
        .probabilities(&[3.0, 3.0]);
        assert_eq!(row.unwrap(), [0.5, 0.5]);
    }

    #[test]
    fn truncation_keeps_ties_by_token_id() {
        let top_two = Softmax {
            top_k: Some(2),
            ..Softmax::default()
        };
        assert_eq!(top_two.probabilities(&[1.0, 2.0, 1.0]).unwrap()[2], 0.0);
        let half = Softmax {
            top_p: Some(0.5),
            ..Softmax::default()
        };
        assert_eq!(half.probabilities(&[0.0; 4]).unwrap(), [0.5, 0.5, 0.0, 0.0]);
        let all = Softmax {
            top_p: Some(1.0),
            ..Softmax::default()
        };
        assert_eq!(all.probabilities(&[0.0; 4]).unwrap(), [0.25; 4]);
    }

    #[test]
    fn refuses_rows_and_settings_that_mean_nothing() {
        let plain = Softmax::default();
        assert!(matches!(
            plain.probabilities(&[0.0, f64::NAN]),
            Err(DistributionError::Logit { index: 1, .. })
        ));
        assert!(matches!(
            plain.probabilities(&[f64::INFINITY]),
            Err(DistributionError::Logit { index: 0, .. })
        ));
        assert!(matches!(
            plain.probabilities(&[f64::NEG_INFINITY; 3]),
            Err(DistributionError::AllMasked)
        ));
        assert!(matches!(
            plain.probabilities(&[]),
            Err(DistributionError::Empty)
        ));
        for bad in [
            Softmax {
                temperature: 0.0,
                ..plain
            },
            Softmax {
                temperature: f64::NAN,
                ..plain
            },
            Softmax {
                top_k: Some(0),
                ..plain
            },
            Softmax {
                top_p: Some(0.0),
                ..plain
            },
            Softmax {
                top_p: Some(1.5),
                ..plain
            },
        ] {
            assert!(matches!(
                bad.probabilities(&[0.0]),
                Err(DistributionError::Setting { .. })
            ));
        }
    }
}
