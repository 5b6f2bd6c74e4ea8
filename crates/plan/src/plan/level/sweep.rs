//! One sweep over the tokens by falling p/q: when the clock of each starts.

use specgap_number::distribution::{TwoFloat, split_total};
use specgap_number::scratch::Scratch;

/// No tier: the token is never accepted.
pub(super) const NO_TIER: u32 = u32::MAX;

/// Newton's method converges from one side; a double root takes a step a bit.
const MOST_STEPS: usize = 64;

/// Where each token's clock starts, and how often each token is emitted by that.
#[derive(Debug)]
pub(super) struct Sweep {
    /// By token.
    pub(super) tier: Vec<u32>,
    /// By token: when its clock starts, in its tier's time.
    pub(super) delay: Vec<f64>,
    /// By token.
    pub(super) emitted: Scratch<f64>,
    /// Tiers; all but the last run until every clock has rung.
    pub(super) tiers: u32,
    /// When the last tier ends.
    pub(super) horizon: f64,
    /// The latest finite time of any tier.
    pub(super) latest: f64,
}

/// The mean price over a step from `s` to `t`, `(s^n - t^n)/(s - t)`, and t^(n - 1). No
/// difference is taken: the sum of s^i t^(n-1-i) by doubling n.
#[inline(always)]
pub(super) fn mean_price(s: f64, t: f64, drafts: usize) -> (f64, f64) {
    let most = drafts - 1;
    // The sum of m terms, s^m and t^m, for m the leading bits of n - 1.
    let (mut sum, mut high, mut low) = (0.0, 1.0, 1.0);
    for bit in (0..usize::BITS - most.leading_zeros()).rev() {
        sum *= high + low;
        high *= high;
        low *= low;
        if most >> bit & 1 == 1 {
            sum = sum * s + low;
            high *= s;
            low *= t;
        }
    }
    (sum * s + low, low)
}

/// The part of the mass `width` that a group of ratio `ratio` loses until it meets the ratio
/// `next`, and the mean price on the way; nothing if it is used up before.
///
/// With phi that part, the ratio meets `next` where
/// `ratio - next = phi (mean price - next)`: a convex function of phi, so that Newton's
/// method from 0 comes from one side.
fn until_met(
    [ratio, next]: [f64; 2],
    [s, width]: [f64; 2],
    price: f64,
    drafts: usize,
) -> Option<(f64, f64)> {
    let drop = ratio - next;
    let mut part = drop / (price - next);
    for _ in 0..MOST_STEPS {
        let after = (s - part * width).max(0.0);
        let (mean, power) = mean_price(s, after, drafts);
        let slope = drafts as f64 * power - next;
        if !(part < 1.0 && slope > 0.0) {
            return None;
        }
        let step = (drop - part * (mean - next)) / slope;
        if step <= 2.0 * f64::EPSILON * part {
            return Some((part, mean));
        }
        part += step;
    }
    let (mean, _) = mean_price(s, (s - part * width).max(0.0), drafts);
    (part < 1.0).then_some((part, mean))
}

/// The level rule for n i.i.d. drafts: `order` holds the tokens of q > 0 by rising p/q.
///
/// The price of a bit of draft mass is n s^(n-1), s the mass that is left. A group of tied
/// tokens of ratio l and mass W is used up if l is at least the price, or if its ratio does
/// not fall to that of the next token before; else the next token joins where it does.
///
/// A token that joins at time T has e^-(t - T) of its mass left at time t, so its clock is an
/// exponential one that starts at T. What it is emitted is q times the mean price over the
/// rest of its life. That is computed backwards from the steps that were taken, by sums of
/// positive terms: whatever Newton's method left, it is what these clocks emit.
pub(super) fn sweep(q: &[f64], order: &[(f64, u32)], drafts: usize) -> Sweep {
    let vocab = q.len();
    let mut found = Sweep {
        tier: vec![NO_TIER; vocab],
        delay: vec![0.0; vocab],
        emitted: Scratch::filled(vocab, 0.0),
        tiers: 0,
        horizon: f64::INFINITY,
        latest: 0.0,
    };
    // Of the step after a token joined, by its place in the order: the part of the group that
    // is lost, and the mean price.
    let mut parts = Scratch::filled(order.len(), 0.0);
    let mut means = Scratch::filled(order.len(), 0.0);
    let mut left = TwoFloat::from(split_total(q));
    let mut place = order.len();
    while place > 0 && order[place - 1].0 > 0.0 && found.horizon == f64::INFINITY {
        let first = place - 1;
        let mut at = first;
        let mut ratio = order[at].0;
        let mut width = TwoFloat::ZERO;
        let mut time = TwoFloat::ZERO;
        loop {
            let token = order[at].1 as usize;
            width += q[token];
            found.tier[token] = found.tiers;
            found.delay[token] = time.value();
            let next = if at > 0 { order[at - 1].0 } else { 0.0 };
            if next == ratio {
                at -= 1;
                continue;
            }
            let mass = width.value();
            let s = left.value().max(mass);
            let price = drafts as f64 * s.powi((drafts - 1) as i32);
            let met = if ratio < price {
                until_met([ratio, next], [s, mass], price, drafts)
            } else {
                None
            };
            let Some((part, mean)) = met else {
                parts[at] = 1.0;
                means[at] = mean_price(s, s - mass, drafts).0;
                left += -mass;
                break;
            };
            (parts[at], means[at]) = (part, mean);
            left += -part * mass;
            width += -part * mass;
            time += -(-part).ln_1p();
            ratio = next;
            if next == 0.0 {
                found.horizon = time.value();
                break;
            }
            at -= 1;
        }
        found.latest = found.latest.max(time.value());
        found.tiers += 1;
        // Backwards: the mean price over the rest of a life.
        let mut mean_left = TwoFloat::ZERO;
        for at in at..=first {
            mean_left += parts[at] * (means[at] - mean_left.value());
            let token = order[at].1 as usize;
            found.emitted[token] = q[token] * mean_left.value();
        }
        place = at;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_price_is_a_quotient_of_differences() {
        for drafts in [1usize, 2, 3, 4, 7, 8, 64, 1000] {
            for (s, t) in [(1.0, 0.5), (0.75, 0.0), (1.0, 0.875), (0.5, 0.5)] {
                let (mean, power) = mean_price(s, t, drafts);
                let sum: f64 = (0..drafts)
                    .map(|i| s.powi(i as i32) * f64::powi(t, (drafts - 1 - i) as i32))
                    .sum();
                assert!((mean - sum).abs() <= 1e-13 * sum, "{drafts} {s} {t}");
                let direct = t.powi(drafts as i32 - 1);
                assert!((power - direct).abs() <= 1e-13 * direct, "{drafts} {s} {t}");
            }
        }
    }
}
