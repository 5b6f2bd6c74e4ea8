//! Gauss-Legendre quadrature, for audits only: no solve may use it.

/// Points and weights of the Gauss-Legendre rule on [-1, 1], by Newton's method on
/// the Legendre polynomial.
pub fn gauss_legendre(points: usize) -> Vec<(f64, f64)> {
    (0..points)
        .map(|k| {
            let mut x = (std::f64::consts::PI * (k as f64 + 0.75) / (points as f64 + 0.5)).cos();
            let mut derivative = 1.0;
            for _ in 0..8 {
                let (mut before, mut value) = (1.0, x);
                for degree in 2..=points {
                    let d = degree as f64;
                    (before, value) = (
                        value,
                        ((2.0 * d - 1.0) * x * value - (d - 1.0) * before) / d,
                    );
                }
                derivative = points as f64 * (x * value - before) / (x * x - 1.0);
                x -= value / derivative;
            }
            (x, 2.0 / ((1.0 - x * x) * derivative * derivative))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_polynomials_of_twice_the_degree() {
        for points in [1, 2, 5, 16, 20] {
            let rule = gauss_legendre(points);
            for degree in 0..2 * points as i32 {
                let sum: f64 = rule.iter().map(|(x, weight)| weight * x.powi(degree)).sum();
                let truth = if degree % 2 == 0 {
                    2.0 / f64::from(degree + 1)
                } else {
                    0.0
                };
                assert!((sum - truth).abs() < 1e-14, "{points} {degree}: {sum}");
            }
        }
    }
}
