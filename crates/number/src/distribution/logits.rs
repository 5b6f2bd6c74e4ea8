//! From a row of logits to a row of probabilities.

use super::exponential::exp_nonpositive;
use super::{DistributionError, TwoFloat};
use multiversion::multiversion;

/// Tokens whose weights are summed in plain `f64` before they join the
/// compensated sum.
const BLOCK: usize = 512;

/// How a row of logits becomes a distribution: softmax of `logits / temperature`.
///
/// A logit of -inf is a token of probability 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Divides the logits; finite and above 0. 1 leaves them alone.
    pub temperature: f64,
}

impl Default for Softmax {
    fn default() -> Self {
        Self { temperature: 1.0 }
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
    /// O(V).
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::Softmax;
    /// let row = Softmax::default().probabilities(&[0.0, f64::NEG_INFINITY, 0.0])?;
    /// assert_eq!(row, [0.5, 0.0, 0.5]);
    /// # Ok::<(), specgap_number::distribution::DistributionError>(())
    /// ```
    pub fn probabilities(&self, logits: &[f64]) -> Result<Vec<f64>, DistributionError> {
        self.check()?;
        if logits.is_empty() {
            return Err(DistributionError::Empty);
        }
        let largest = largest_logit(logits)?;
        let mut weights: Vec<f64> = logits
            .iter()
            .map(|&logit| ((logit - largest) / self.temperature).exp())
            .collect();
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

    /// The same as [`Self::probabilities`], into a row that is used again and
    /// again: nothing is allocated once `row` has grown to V entries. Takes `f32` or `f64` logits.
    ///
    /// # Exactness
    /// The loops are written to be vectorised and use an exponential of their
    /// own, so entries may differ from those of [`Self::probabilities`] in the
    /// last bits. An entry differs from the real-number softmax of the given
    /// logits by at most `2^-50 + 2^-52 |logit - largest| / temperature`,
    /// relative, and is 0 where the weight is below e^-690 of the largest (2e-300).
    /// What is downstream takes the row for what it is: `f64` numbers, to be
    /// divided by their exact sum.
    ///
    /// # Errors
    /// As for [`Self::probabilities`]; `row` then holds nothing of use.
    ///
    /// # Complexity
    /// O(V): three passes over memory.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::Softmax;
    /// let mut row = Vec::new();
    /// Softmax::default().fill(&[0.0f32, f32::NEG_INFINITY, 0.0], &mut row)?;
    /// assert_eq!(row, [0.5, 0.0, 0.5]);
    /// # Ok::<(), specgap_number::distribution::DistributionError>(())
    /// ```
    pub fn fill<L: Copy + Into<f64>>(
        &self,
        logits: &[L],
        row: &mut Vec<f64>,
    ) -> Result<(), DistributionError> {
        self.check()?;
        if logits.is_empty() {
            return Err(DistributionError::Empty);
        }
        row.clear();
        row.extend(logits.iter().map(|&logit| -> f64 { logit.into() }));
        let largest = largest_logit(row)?;
        softmax(row, largest, self.temperature);
        Ok(())
    }

    fn check(&self) -> Result<(), DistributionError> {
        let setting = |name, value, limit| Err(DistributionError::Setting(name, value, limit));
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            return setting("temperature", self.temperature, "finite and above 0");
        }
        Ok(())
    }
}

/// Logits to probabilities, given the largest logit.
#[multiversion(targets = "simd")]
fn softmax(row: &mut [f64], largest: f64, temperature: f64) {
    let mut total = TwoFloat::ZERO;
    for block in row.chunks_mut(BLOCK) {
        if temperature == 1.0 {
            block.iter_mut().for_each(|entry| *entry -= largest);
        } else {
            block
                .iter_mut()
                .for_each(|entry| *entry = (*entry - largest) / temperature);
        }
        total += exponentials(block);
    }
    let scale = 1.0 / total.value();
    row.iter_mut().for_each(|entry| *entry *= scale);
}

/// The largest logit; an error if there is none, or one that is NaN or +inf.
#[multiversion(targets = "simd")]
fn largest_logit(logits: &[f64]) -> Result<f64, DistributionError> {
    const LANES: usize = 8;
    let mut largest = [f64::NEG_INFINITY; LANES];
    let mut legal = [true; LANES];
    let (blocks, rest) = logits.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            let value = block[lane];
            legal[lane] &= value < f64::INFINITY;
            largest[lane] = if value > largest[lane] {
                value
            } else {
                largest[lane]
            };
        }
    }
    for (lane, &value) in rest.iter().enumerate() {
        legal[lane] &= value < f64::INFINITY;
        largest[lane] = largest[lane].max(value);
    }
    if legal != [true; LANES] {
        for (index, &value) in logits.iter().enumerate() {
            if value.is_nan() || value == f64::INFINITY {
                return Err(DistributionError::Logit(index, value));
            }
        }
    }
    let largest = largest.into_iter().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return Err(DistributionError::AllMasked);
    }
    Ok(largest)
}

/// Replaces non-positive exponents by their exponentials and returns the sum.
#[inline(always)]
fn exponentials(block: &mut [f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (chunks, rest) = block.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            chunk[lane] = exp_nonpositive(chunk[lane]);
            sums[lane] += chunk[lane];
        }
    }
    for (x, sum) in rest.iter_mut().zip(&mut sums) {
        *x = exp_nonpositive(*x);
        *sum += *x;
    }
    sums.iter().sum()
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
        let row = Softmax { temperature: 1e-3 }.probabilities(&[3.0, 3.0]);
        assert_eq!(row.unwrap(), [0.5, 0.5]);
    }

    #[test]
    fn filling_a_row_gives_the_same_probabilities() {
        let logits: Vec<f64> = (0..1000u32)
            .map(|i| match i % 97 {
                5 => f64::NEG_INFINITY,
                _ => f64::from(i * 7919 % 1000) * 0.05 - 20.0,
            })
            .collect();
        let mut row = vec![7.0; 3];
        for temperature in [1.0, 0.1, 1e-5, 3.0] {
            let rule = Softmax { temperature };
            let slow = rule.probabilities(&logits).unwrap();
            rule.fill(&logits, &mut row).unwrap();
            assert_eq!(row.len(), slow.len());
            for (&fast, &slow) in row.iter().zip(&slow) {
                // Exponents up to 690 carry half an ulp.
                assert!(
                    (fast - slow).abs() <= 2e-13 * slow + 1e-299,
                    "{fast} {slow}"
                );
            }
        }
        let mut refused = |logits: &[f32]| Softmax::default().fill(logits, &mut row);
        assert_eq!(refused(&[]), Err(DistributionError::Empty));
        assert_eq!(
            refused(&[f32::NEG_INFINITY; 20]),
            Err(DistributionError::AllMasked)
        );
        for (place, bad) in [(3, f32::NAN), (17, f32::INFINITY)] {
            let mut logits = [0.0; 20];
            logits[place] = bad;
            let error = refused(&logits).unwrap_err();
            assert!(matches!(error, DistributionError::Logit(index, _) if index == place));
        }
        let mut hot = [f32::MIN; 9];
        hot[4] = f32::MAX;
        refused(&hot).unwrap();
        assert_eq!(row[4], 1.0);
    }

    #[test]
    fn refuses_rows_and_settings_that_mean_nothing() {
        let plain = Softmax::default();
        assert!(matches!(
            plain.probabilities(&[0.0, f64::NAN]),
            Err(DistributionError::Logit(1, _))
        ));
        assert!(matches!(
            plain.probabilities(&[f64::INFINITY]),
            Err(DistributionError::Logit(0, _))
        ));
        assert!(matches!(
            plain.probabilities(&[f64::NEG_INFINITY; 3]),
            Err(DistributionError::AllMasked)
        ));
        assert!(matches!(
            plain.probabilities(&[]),
            Err(DistributionError::Empty)
        ));
        for temperature in [0.0, f64::NAN] {
            let bad = Softmax { temperature };
            assert!(matches!(
                bad.probabilities(&[0.0]),
                Err(DistributionError::Setting(..))
            ));
        }
    }
}
