//! One sweep over the tokens by falling p/q: when the clock of each starts.

use specgap_number::distribution::split_total;
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

/// Steps of this length, n d/s or that over how far the price is above the ratio, are solved
/// for by a series.
const SMALL: f64 = 4e-5;

/// Up to this length the series starts Newton's method at 1e-8 of the root.
const ROUGH: f64 = 4e-3;

/// A running sum with what its roundings lost, all but the last: off by half an ulp and by its
/// terms times 2^-104. Nothing waits for what an addition lost until the next one.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    sum: f64,
    lost: f64,
    last: f64,
}

impl Running {
    #[inline(always)]
    fn add(&mut self, term: f64) {
        self.lost += self.last;
        let sum = self.sum + term;
        let added = sum - self.sum;
        self.last = (self.sum - (sum - added)) + (term - added);
        self.sum = sum;
    }

    #[inline(always)]
    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

/// -ln(1 - x).
#[inline(always)]
fn waited(x: f64) -> f64 {
    if x < 1e-3 {
        x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 3.0 + x * (0.25 + x * (0.2 + x / 6.0)))))
    } else {
        -(-x).ln_1p()
    }
}

/// How the price falls with the mass that is left: n, and the first terms of the mean price
/// over a step from s to s - d in powers of d/s.
#[derive(Clone, Copy, Debug)]
struct Prices {
    drafts: usize,
    terms: [f64; 3],
}

impl Prices {
    fn new(drafts: usize) -> Self {
        let n = drafts as f64;
        let first = (n - 1.0) / 2.0;
        let second = first * (n - 2.0) / 3.0;
        Self {
            drafts,
            terms: [first, second, second * (n - 3.0) / 4.0],
        }
    }

    /// n s^(n-1).
    #[inline(always)]
    fn at(&self, s: f64) -> f64 {
        let (mut power, mut square, mut left) = (self.drafts as f64, s, self.drafts - 1);
        while left > 0 {
            if left & 1 == 1 {
                power *= square;
            }
            square *= square;
            left >>= 1;
        }
        power
    }

    /// The part of the mass `width` that a group of ratio `ratio` loses until it meets the
    /// ratio `next`, and the mean price on the way; nothing if it is used up before.
    ///
    /// With phi that part, the ratio meets `next` where
    /// `ratio - next = phi (mean price - next)`: a convex function of phi, so that Newton's
    /// method from 0 comes from one side. Near ties have a short step, whose series is solved
    /// as it is.
    #[inline(always)]
    fn until_met(
        &self,
        [ratio, next]: [f64; 2],
        [s, width]: [f64; 2],
        price: f64,
    ) -> Option<(f64, f64)> {
        let drop = ratio - next;
        let steepness = 1.0 / (price - next);
        let part = drop * steepness;
        let step = part * width / s;
        let [first, second, third] = self.terms.map(|term| term * price * steepness);
        let (g, h, k) = (
            first * step,
            second * step * step,
            third * step * step * step,
        );
        let longest = g.max(self.drafts as f64 * step);
        if longest > ROUGH {
            return self.by_newton([ratio, next], [s, width], part);
        }
        // 1 = u (1 - g u + h u^2 - k u^3), to the fourth power of g.
        let mut part = part * (1.0 + (g + ((2.0 * g * g - h) + (5.0 * g * (g * g - h) + k))));
        if longest > SMALL {
            // Off by 20 of that power: one step of Newton's method squares it.
            let after = (s - part * width).max(0.0);
            let (mean, power) = mean_price(s, after, self.drafts);
            let slope = self.drafts as f64 * power - next;
            part += (drop - part * (mean - next)) / slope;
        }
        // At the root this is the mean price, and a part may underflow.
        let mean = if part > 0.0 {
            next + drop / part
        } else {
            price
        };
        (part < 1.0).then_some((part, mean))
    }

    #[inline(never)]
    fn by_newton(
        &self,
        [ratio, next]: [f64; 2],
        [s, width]: [f64; 2],
        mut part: f64,
    ) -> Option<(f64, f64)> {
        let drop = ratio - next;
        for _ in 0..MOST_STEPS {
            let after = (s - part * width).max(0.0);
            let (mean, power) = mean_price(s, after, self.drafts);
            let slope = self.drafts as f64 * power - next;
            if !(part < 1.0 && slope > 0.0) {
                return None;
            }
            let step = (drop - part * (mean - next)) / slope;
            if step <= 2.0 * f64::EPSILON * part {
                return Some((part, mean));
            }
            part += step;
        }
        let (mean, _) = mean_price(s, (s - part * width).max(0.0), self.drafts);
        (part < 1.0).then_some((part, mean))
    }
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
/// positive terms: whatever a root is off by, it is what these clocks emit.
pub(super) fn sweep(q: &[f64], order: &[(f64, u32)], drafts: usize) -> Sweep {
    let prices = Prices::new(drafts);
    // All in the order, so that what is far apart in memory is fetched by itself.
    let masses: Scratch<f64> = order.iter().map(|&(_, token)| q[token as usize]).collect();
    let mut tiers = Scratch::filled(order.len(), NO_TIER);
    let mut times = Scratch::filled(order.len(), 0.0);
    // Of the step after a token joined: the part of the group that is lost, and the mean
    // price; in its place later the mean price over the rest of the token's life.
    let mut parts = Scratch::filled(order.len(), 0.0);
    let mut means = Scratch::filled(order.len(), 0.0);
    let (mut tier, mut horizon, mut latest) = (0, f64::INFINITY, 0.0f64);
    let mut left = Running::default();
    left.add(split_total(q));
    let mut place = order.len();
    while place > 0 && order[place - 1].0 > 0.0 && horizon == f64::INFINITY {
        let first = place - 1;
        let mut at = first;
        let mut ratio = order[at].0;
        let (mut width, mut time) = (Running::default(), Running::default());
        loop {
            width.add(masses[at]);
            (tiers[at], times[at]) = (tier, time.value());
            let next = if at > 0 { order[at - 1].0 } else { 0.0 };
            if next == ratio {
                at -= 1;
                continue;
            }
            let mass = width.value();
            let s = left.value().max(mass);
            let price = prices.at(s);
            let met = if ratio < price {
                prices.until_met([ratio, next], [s, mass], price)
            } else {
                None
            };
            let Some((part, mean)) = met else {
                parts[at] = 1.0;
                means[at] = mean_price(s, s - mass, drafts).0;
                left.add(-mass);
                break;
            };
            (parts[at], means[at]) = (part, mean);
            let lost = part * mass;
            left.add(-lost);
            width.add(-lost);
            time.add(waited(part));
            ratio = next;
            if next == 0.0 {
                horizon = time.value();
                break;
            }
            at -= 1;
        }
        latest = latest.max(time.value());
        tier += 1;
        let mut rest = Running::default();
        for (part, mean) in parts[at..=first].iter().zip(&mut means[at..=first]) {
            rest.add(part * (*mean - rest.value()));
            *mean = rest.value();
        }
        place = at;
    }
    let mut found = Sweep {
        tier: vec![NO_TIER; q.len()],
        delay: vec![0.0; q.len()],
        emitted: Scratch::filled(q.len(), 0.0),
        tiers: tier,
        horizon,
        latest,
    };
    for at in place..order.len() {
        let token = order[at].1 as usize;
        found.tier[token] = tiers[at];
        found.delay[token] = times[at];
        found.emitted[token] = masses[at] * means[at];
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

    /// Where the series is taken, Newton's method finds the same.
    #[test]
    fn short_steps_are_those_of_newton() {
        let mut taken = 0;
        for drafts in [1usize, 2, 3, 4, 8, 64] {
            let prices = Prices::new(drafts);
            for drop in [1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3] {
                for (ratio, s, width) in [(0.3, 0.9, 0.5), (0.01, 0.97, 0.02), (0.9, 1.0, 1e-7)] {
                    let price = prices.at(s);
                    let direct = drafts as f64 * f64::powi(s, drafts as i32 - 1);
                    assert!((price - direct).abs() <= 1e-14 * drafts as f64 * direct);
                    if price <= ratio {
                        continue;
                    }
                    let both = [ratio, ratio - drop];
                    let start = (both[0] - both[1]) / (price - both[1]);
                    let newton = prices.by_newton(both, [s, width], start).unwrap();
                    let series = prices.until_met(both, [s, width], price).unwrap();
                    let error = (series.0 - newton.0).abs() / newton.0;
                    assert!(error < 1e-14, "{drafts} {drop} {ratio}: {error}");
                    assert!((series.1 - newton.1).abs() <= 1e-14 * drafts as f64 * newton.1);
                    taken += usize::from(series != newton);
                }
            }
        }
        assert!(taken > 0);
        for x in [1e-300, 1e-8, 9e-4, 1.1e-3, 0.5] {
            assert!((waited(x) + (-x).ln_1p()).abs() <= 4e-16 * waited(x), "{x}");
        }
    }
}
