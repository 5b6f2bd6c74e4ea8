//! Q of sequential draws without replacement, by an exponential race.
//!
//! Give token i an independent exponential clock of rate q_i; the order of
//! ringing is the order of the draws. All of the first n rings lie in H exactly
//! when n clocks of H have rung before the first clock outside does, and the
//! latter is exponential with rate s = 1 - q(H):
//!
//! ```text
//! Q(H) = integral over t > 0 of s e^{-st} P(N_t >= n) dt
//! ```
//!
//! with N_t the number of clocks of H that have rung by t, a sum of independent
//! indicators with success probability 1 - e^{-q_i t}. In x = log t the
//! integrand is analytic in a strip and falls off exponentially to the left and
//! doubly exponentially to the right, so the trapezoidal rule converges
//! geometrically in 1/step: `crates/number/src/quadrature/log_time.rs` has the proof. P(N_t >= n) is
//! 1 - P(N_t < n), so the bound counts twice.
//!
//! # Hardly anything outside
//! For s below 5e-305 the integral would have to go on beyond the range of `f64`. There
//! 1 - Q(H) <= P(N_t < n) + s t for any t, and t = 1e286 makes the second nothing: Q is
//! taken for 1, and the first is added to the error.

use super::PrefixScan;
use specgap_number::distribution::TwoFloat;
use specgap_number::quadrature::log_time_step;

/// Bound that the step is chosen for.
const QUADRATURE_ERROR: f64 = 1e-13;

/// Mass left of the first node, and e^{-CUTOFF} right of the last.
const LEFT_TAIL: f64 = 1e-19;
const CUTOFF: f64 = 50.0;

/// With less than this outside, the last node would be beyond 1e306.
const LEAST_OUTSIDE: f64 = CUTOFF / 1e306;

/// A time by which as little as that has hardly rung.
const SETTLED_BY: f64 = 1e286;

/// Q along the chain of prefixes of `order`, for `draws` sequential draws.
///
/// O(V n) a node, some hundred nodes. The bound on the error is that of the
/// quadrature, the tails, and three roundings a token and node.
pub(super) fn scan(row: &[f64], draws: usize, order: &[usize]) -> PrefixScan {
    let outside = outside_masses(row, order);
    let smallest = outside
        .iter()
        .copied()
        .filter(|&s| s >= LEAST_OUTSIDE)
        .fold(1.0, f64::min);
    // Half for P(N_t < n) and at most as much for the 1 that it is taken from.
    let (step, quadrature) = log_time_step(draws, QUADRATURE_ERROR / 2.0);
    let left = LEFT_TAIL.powf(1.0 / (draws as f64 + 1.0)).ln();
    let right = (CUTOFF / smallest).ln();
    let steps = ((right - left) / step).ceil() as usize;

    let mut sums = vec![0.0; order.len()];
    for node in 0..=steps {
        let x = left + node as f64 * step;
        accumulate(x, step, row, draws, order, &outside, &mut sums);
    }
    let mut support = 0;
    let inside = order
        .iter()
        .enumerate()
        .map(|(position, &token)| {
            support += usize::from(row[token] > 0.0);
            if support < draws {
                return 0.0;
            }
            if outside[position] < LEAST_OUTSIDE {
                return 1.0;
            }
            sums[position].clamp(0.0, 1.0)
        })
        .collect();
    let rounding = 4.0 * (support as f64 + steps as f64) * f64::EPSILON;
    PrefixScan {
        inside,
        absolute_error: 2.0 * quadrature
            + rounding
            + 4.0 * LEFT_TAIL
            + unsettled(row, draws, order, &outside),
    }
}

/// The most that Q is short of 1 where it is taken for 1, but for 1e-18.
fn unsettled(row: &[f64], draws: usize, order: &[usize], outside: &[f64]) -> f64 {
    let tiny = |s: f64| s > 0.0 && s < LEAST_OUTSIDE;
    if !outside.iter().any(|&s| tiny(s)) {
        return 0.0;
    }
    let mut count = Counts::start(draws);
    let mut held = 0;
    let mut most = 0.0f64;
    for (&token, &s) in order.iter().zip(outside) {
        count.absorb(row[token] * SETTLED_BY);
        held += usize::from(row[token] > 0.0);
        if tiny(s) && held >= draws {
            most = most.max(count.fewer());
        }
    }
    most
}

/// P(N_t = k) for k < draws, grown by one token at a time.
struct Counts(Vec<f64>);

impl Counts {
    fn start(draws: usize) -> Self {
        let mut count = vec![0.0; draws];
        count[0] = 1.0;
        Self(count)
    }

    /// One more clock, of rate times time `exponent`.
    fn absorb(&mut self, exponent: f64) {
        let count = &mut self.0;
        let waits = (-exponent).exp();
        let rings = -(-exponent).exp_m1();
        for k in (1..count.len()).rev() {
            count[k] = count[k] * waits + count[k - 1] * rings;
        }
        count[0] *= waits;
    }

    /// P(N_t < draws).
    fn fewer(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// 1 - q(H) for every prefix, summed from the far end so that it keeps its
/// digits when it is tiny.
pub(super) fn outside_masses(row: &[f64], order: &[usize]) -> Vec<f64> {
    let mut in_order = vec![false; row.len()];
    for &token in order {
        in_order[token] = true;
    }
    let mut left = TwoFloat::ZERO;
    for (token, &q) in row.iter().enumerate() {
        if !in_order[token] {
            left += q;
        }
    }
    let mut outside = vec![0.0; order.len()];
    for (position, &token) in order.iter().enumerate().rev() {
        outside[position] = left.value();
        left += row[token];
    }
    outside
}

/// Adds one node's share of the integral to every prefix.
fn accumulate(
    x: f64,
    step: f64,
    row: &[f64],
    draws: usize,
    order: &[usize],
    outside: &[f64],
    sums: &mut [f64],
) {
    let time = x.exp();
    let mut count = Counts::start(draws);
    for (position, &token) in order.iter().enumerate() {
        count.absorb(row[token] * time);
        let s = outside[position];
        let enough = (1.0 - count.fewer()).max(0.0);
        sums[position] += step * time * s * (-s * time).exp() * enough;
    }
}

#[cfg(test)]
mod tests {
    use super::scan;

    /// Masses that no time within the range of `f64` tells apart.
    #[test]
    fn what_is_taken_for_one_is_in_the_error_unless_it_is_known() {
        // One token alone cannot hold two drafts, and two that are all of q do.
        let known = scan(&[1.0, 1e-310], 2, &[0, 1]);
        assert_eq!(known.inside, [0.0, 1.0]);
        assert!(known.absolute_error < 1e-11, "{}", known.absolute_error);
        // The second draw is the second token but for 1e-20, which is more than is seen here.
        let open = scan(&[1.0, 1e-290, 1e-310], 2, &[0, 1, 2]);
        assert_eq!(open.inside, [0.0, 1.0, 1.0]);
        assert!(open.absolute_error > 0.999 && open.absolute_error < 1.0 + 1e-9);
        // What has rung by then for sure is no error.
        let settled = scan(&[1.0, 1e-280, 1e-310], 2, &[0, 1, 2]);
        assert_eq!(settled.inside, [0.0, 1.0, 1.0]);
        assert!(settled.absolute_error < 1e-11, "{}", settled.absolute_error);
    }
}
