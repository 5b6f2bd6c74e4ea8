//! Moments of -ln p(x) over x ~ p.

/// What is asked of the logarithms of a row's probabilities.
#[derive(Default)]
pub struct Moments {
    /// The largest probability.
    pub top: f64,
    /// The mean of -ln p(x) over x ~ p, and its variance.
    pub mean: f64,
    /// The variance of -ln p(x).
    pub variance: f64,
}

impl Moments {
    /// The moments of a logged row of logarithms, or of probabilities, with what its entries become
    /// at a temperature.
    pub fn new(row: &[f64], logarithms: bool, temperature: f64, probabilities: &[f64]) -> Self {
        let top = probabilities.iter().copied().fold(0.0, f64::max);
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut first, mut second) = (0.0, 0.0);
        for (&entry, &mass) in row.iter().zip(probabilities) {
            // A token that is not listed, or where a cut leaves open what is kept.
            if entry.is_nan() || mass.is_nan() {
                continue;
            }
            // ln of the probability over the largest.
            let below = if mass <= 0.0 {
                0.0
            } else if logarithms {
                (entry - largest) / temperature
            } else {
                (entry / largest).ln() / temperature
            };
            first += mass * below;
            second += mass * below * below;
        }
        Self {
            top,
            mean: -top.ln() - first,
            variance: (second - first * first).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_row() {
        let probabilities = [0.5, 0.25, 0.25, 0.0];
        let logits = probabilities.map(f64::ln);
        for (row, logarithms) in [(&logits, true), (&probabilities, false)] {
            let moments = Moments::new(row, logarithms, 1.0, &probabilities);
            let half = 0.5f64.ln();
            assert!((moments.mean + 1.5 * half).abs() < 1e-15);
            // E[(ln p)^2] - H^2 = (1/2 + 4/2 - 9/4) (ln 2)^2.
            assert!((moments.variance - 0.25 * half * half).abs() < 1e-15);
            assert_eq!(moments.top, 0.5);
        }
        let open = [0.5, f64::NAN, 0.25, 0.0];
        assert!(Moments::new(&logits, true, 1.0, &open).mean.is_finite());
    }
}
