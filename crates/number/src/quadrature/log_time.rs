//! The trapezoidal rule in x = log t for the race of the draws, and the proof of its error.
//!
//! Sequential draws are the order in which independent exponential clocks of rates q_i
//! ring. Let N_t be the number of clocks of a set H that have rung by t, and s = 1 - q(H).
//!
//! # The error of the trapezoidal rule
//! s e^{-st} P(N_t = k) = s e^{-t} e_k(r(t)) with r_i(t) = e^{q_i t} - 1 for i in H.
//! Let t = e^{x + ia}, |a| < pi/2, and tau = Re t, so that |t| = tau / cos a. For
//! z = q t with real part y and imaginary part v = y tan a, and because
//! |sin(v/2)| / sinh(y/2) <= |v| / y,
//!
//! ```text
//! |e^z - 1|^2 / (e^y - 1)^2 = 1 + sin^2(v/2) / sinh^2(y/2) <= 1 + tan^2 a = 1/cos^2 a.
//! ```
//!
//! Hence |e^{-t} e_k(r(t))| <= e^{-tau} e_k(r(tau)) / cos^k a, and on the line Im x = a
//! the integral of |t s e^{-t} (e_0 + .. + e_{n-1})(r(t))| dx is at most 1/cos^n a times
//! the integral of s e^{-s tau} P(N_tau < n) d tau, which is at most 1. A function that is
//! analytic in the strip |Im x| < a with such integrals at most M is integrated by
//! the trapezoidal rule of step h within 2 M / (e^{2 pi a / h} - 1) (Trefethen and
//! Weideman, SIAM Review 56 (2014), Theorem 5.1). tan a = 2 pi / (n h) is the best a,
//! up to the 1. P(N_t >= n) is 1 - P(N_t < n), which adds at most 1/cos a to M.

/// Bound on the error of the trapezoidal rule of a step in log t, for the integral of
/// s e^{-st} P(k <= N_t < n), 0 <= k < n = `draws`.
fn log_time_error(draws: usize, step: f64) -> f64 {
    let angle = (std::f64::consts::TAU / (draws as f64 * step)).atan();
    2.0 * angle.cos().powi(-(draws as i32)) / (std::f64::consts::TAU * angle / step).exp_m1()
}

/// A step in log t, and the bound on its error, which is at most `error`.
pub fn log_time_step(draws: usize, error: f64) -> (f64, f64) {
    let mut step = 0.5;
    while log_time_error(draws, step) > error {
        step *= 0.96;
    }
    (step, log_time_error(draws, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of the last of n draws from very many tokens is gamma distributed, and the
    /// integral of its density is 1.
    #[test]
    fn the_error_is_below_its_bound() {
        for draws in 1..=8usize {
            let factorial: f64 = (1..draws).map(|k| k as f64).product();
            for step in [1.0, 0.7, 0.5] {
                let density = |node: i32| {
                    let t = (f64::from(node) * step).exp();
                    t.powi(draws as i32) * (-t).exp() / factorial
                };
                let sum: f64 = (-400..20).map(density).sum::<f64>() * step;
                let bound = log_time_error(draws, step);
                assert!((sum - 1.0).abs() <= bound + 1e-14, "{draws} {step}: {sum}");
            }
            let (step, bound) = log_time_step(draws, 1e-13);
            assert!(bound <= 1e-13 && log_time_error(draws, step / 0.96) > 1e-13);
        }
    }
}
