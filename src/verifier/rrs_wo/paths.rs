//! The probability that n sequential drafts are all rejected, enclosed.
//!
//! Notation of [`super::RrsWo`]. Tokens of the support are sorted by falling q
//! and stand at the leaves of a binary tree. A node is a group of tokens with q
//! in a narrow range; at every node the tokens are also kept sorted by p/q with
//! prefix sums, so the total rejected weight of a node in a given state,
//!
//! ```text
//! sum over the node of g_i = B Q(p/q <= L) + L' Q(L < p/q <= L') - P(L < p/q <= L'),
//! ```
//!
//! with B = c M(L) and L' = L + B, takes two binary searches. A state is a box:
//! bounds on L and on 1-s. All of M falling in L, g rising in L and in B give
//! bounds for everything that follows from it.

use crate::distribution::TwoFloat;

/// Allowance for rounding in either direction. Values are in [0, 1], every M is
/// within a few epsilon of its value, errors of M are never amplified (M has slope
/// at most Q(p/q > L) <= 1-s against the factor 1/(1-s) of the step), and sums
/// run pairwise down a tree of at most 24 levels.
const ROUNDING: f64 = 1e-12;

/// M(L) = sum of (p - L q)+ for any L: tokens by falling p/q with prefix sums.
#[derive(Debug)]
struct Curve {
    ratios: Vec<f64>,
    /// Entry k: sums over the k tokens of the largest ratio.
    target: Vec<f64>,
    draft: Vec<f64>,
    /// Mass of p where q = 0.
    unreachable: f64,
}

impl Curve {
    fn new(target: &[f64], draft: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..draft.len()).filter(|&i| draft[i] > 0.0).collect();
        let ratio = |i: usize| target[i] / draft[i];
        order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
        let mut unreachable = TwoFloat::ZERO;
        for (p, q) in target.iter().zip(draft) {
            if *q <= 0.0 {
                unreachable += *p;
            }
        }
        let (mut p_sum, mut q_sum) = (unreachable, TwoFloat::ZERO);
        let mut curve = Self {
            ratios: Vec::with_capacity(order.len()),
            target: vec![p_sum.value()],
            draft: vec![0.0],
            unreachable: unreachable.value(),
        };
        for i in order {
            p_sum += target[i];
            q_sum += draft[i];
            curve.ratios.push(ratio(i));
            curve.target.push(p_sum.value());
            curve.draft.push(q_sum.value());
        }
        curve
    }

    fn at(&self, factor: f64) -> f64 {
        if !factor.is_finite() {
            return self.unreachable;
        }
        let count = self.ratios.partition_point(|&ratio| ratio > factor);
        (self.target[count] - factor * self.draft[count]).max(self.unreachable)
    }
}

/// One level of the tree: nodes of 2^height tokens, each sorted by rising p/q,
/// with prefix sums that start anew at each node.
#[derive(Debug, Default)]
struct Level {
    ratios: Vec<f64>,
    target: Vec<f64>,
    draft: Vec<f64>,
}

/// The tree and the curve of one (p, q).
#[derive(Debug)]
pub(super) struct RejectedPaths {
    curve: Curve,
    /// p and q of the support by falling q.
    target: Vec<f64>,
    draft: Vec<f64>,
    levels: Vec<Level>,
}

/// Bounds.
#[derive(Clone, Copy, Debug)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    const NOTHING: Self = Self {
        low: 0.0,
        high: 0.0,
    };

    fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

/// Bounds on where a path of rejections has led.
#[derive(Clone, Copy, Debug)]
struct State {
    /// L.
    factor: Interval,
    /// 1 - s, in two words: exact differences however little is left.
    rest_low: TwoFloat,
    rest_high: TwoFloat,
    /// M(L).
    mass: Interval,
}

/// A rejected token, or a group that holds it: positions by falling q.
#[derive(Clone, Copy, Debug)]
struct Removed {
    start: usize,
    end: usize,
}

struct Search<'a> {
    paths: &'a RejectedPaths,
    threshold: f64,
    work: u64,
    work_limit: u64,
    removed: Vec<Removed>,
}

/// What all children of a state have in common.
struct Step {
    state: State,
    /// B = c M(L).
    offer: Interval,
    /// L'.
    factor: Interval,
    /// M(L').
    mass: Interval,
    /// Drafts that follow the one being rejected.
    after: usize,
    /// Upper bound on the probability of the path so far.
    weight: f64,
}

impl RejectedPaths {
    pub(super) fn new(target: &[f64], draft: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..draft.len()).filter(|&i| draft[i] > 0.0).collect();
        order.sort_by(|&a, &b| draft[b].total_cmp(&draft[a]).then(a.cmp(&b)));
        let curve = Curve::new(target, draft);
        let target: Vec<f64> = order.iter().map(|&i| target[i]).collect();
        let draft: Vec<f64> = order.iter().map(|&i| draft[i]).collect();
        let mut paths = Self {
            curve,
            target,
            draft,
            levels: Vec::new(),
        };
        paths.grow();
        paths
    }

    /// Builds the levels by merging pairs of nodes.
    fn grow(&mut self) {
        let size = self.draft.len();
        let ratio = |i: u32| self.target[i as usize] / self.draft[i as usize];
        let mut order: Vec<u32> = (0..size).map(crate::scheme::token_id).collect();
        let mut width = 1;
        loop {
            let mut level = Level::default();
            for node in order.chunks_mut(width) {
                node.sort_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
                let (mut p_sum, mut q_sum) = (TwoFloat::ZERO, TwoFloat::ZERO);
                for &i in node.iter() {
                    p_sum += self.target[i as usize];
                    q_sum += self.draft[i as usize];
                    level.ratios.push(ratio(i));
                    level.target.push(p_sum.value());
                    level.draft.push(q_sum.value());
                }
            }
            self.levels.push(level);
            if width >= size {
                return;
            }
            width *= 2;
        }
    }

    /// M(L).
    pub(super) fn residual_mass(&self, factor: f64) -> f64 {
        self.curve.at(factor)
    }

    /// Bounds on the probability that `draws` drafts are all rejected, at most
    /// `width` apart unless the work limit stops it.
    ///
    /// The threshold is the largest uncertainty that a single group of paths may
    /// contribute; it is lowered until the sum of them is narrow enough.
    pub(super) fn all_rejected(&self, draws: usize, width: f64, work_limit: u64) -> (f64, f64) {
        let mut best = (0.0f64, 1.0f64);
        let mut threshold = if draws <= 2 {
            // Every token by itself is affordable.
            0.0
        } else {
            0.1 * width.max(1e-12)
        };
        let mut left = work_limit;
        loop {
            let mut search = Search {
                paths: self,
                threshold,
                work: 0,
                work_limit: left,
                removed: Vec::with_capacity(draws),
            };
            let mass = self.curve.at(0.0);
            let mut all = TwoFloat::ZERO;
            for &q in &self.draft {
                all += q;
            }
            let start = State {
                factor: Interval::NOTHING,
                rest_low: all,
                rest_high: all,
                mass: Interval {
                    low: mass,
                    high: mass,
                },
            };
            let found = search.rejected(start, draws, 1.0);
            best.0 = best.0.max(found.low - ROUNDING);
            best.1 = best.1.min(found.high + ROUNDING);
            left = left.saturating_sub(search.work);
            let reached = best.1 - best.0;
            // Not even single tokens leave anything below this.
            if reached <= width || left == 0 || threshold < 1e-18 {
                return best;
            }
            // Halving the width takes about a third of the threshold; leave a
            // margin, since every round starts anew.
            threshold *= (width / reached).powf(1.5).clamp(1e-3, 0.5);
        }
    }

    /// Bounds on the rejected weight of the node, before exclusions.
    fn weight(&self, height: usize, start: usize, end: usize, factor: f64, offer: f64) -> f64 {
        if offer <= 0.0 {
            return 0.0;
        }
        if !offer.is_finite() {
            return f64::INFINITY;
        }
        let next = factor + offer;
        if height == 0 {
            let (p, q) = (self.target[start], self.draft[start]);
            return (offer * q - (p - factor * q).max(0.0)).max(0.0);
        }
        let level = &self.levels[height];
        let ratios = &level.ratios[start..end];
        let below = ratios.partition_point(|&ratio| ratio <= factor);
        let between = below + ratios[below..].partition_point(|&ratio| ratio <= next);
        let sum = |sums: &[f64], count: usize| match count {
            0 => 0.0,
            _ => sums[start + count - 1],
        };
        let q_below = sum(&level.draft, below);
        let q_between = sum(&level.draft, between) - q_below;
        let p_between = sum(&level.target, between) - sum(&level.target, below);
        offer * q_below + (next * q_between - p_between).max(0.0)
    }
}

impl Search<'_> {
    /// Bounds on the probability that the next `draws` drafts are all rejected;
    /// `weight` is an upper bound on the probability of getting here.
    fn rejected(&mut self, state: State, draws: usize, weight: f64) -> Interval {
        self.work += 1;
        if draws == 0 {
            return Interval {
                low: 1.0,
                high: 1.0,
            };
        }
        if state.mass.high <= 0.0 {
            return Interval::NOTHING;
        }
        let rest_low = state.rest_low.value();
        let rest_high = state.rest_high.value();
        let offer = Interval {
            low: state.mass.low / rest_high,
            high: if rest_low > 0.0 {
                state.mass.high / rest_low
            } else {
                f64::INFINITY
            },
        };
        let factor = state.factor.plus(offer);
        let mass = Interval {
            low: self.paths.curve.at(factor.high),
            high: self.paths.curve.at(factor.low),
        };
        let first = quotient(mass, state.mass);
        if draws == 1 {
            return first;
        }
        if self.work > self.work_limit || weight <= self.threshold {
            return Interval {
                low: 0.0,
                high: first.high,
            };
        }
        let step = Step {
            state,
            offer,
            factor,
            mass,
            after: draws - 1,
            weight,
        };
        let top = self.paths.levels.len() - 1;
        let sum = self.node(&step, top, 0);
        let bounds = quotient(sum, state.mass);
        // Never above the probability that the first of them is rejected.
        Interval {
            low: bounds.low,
            high: bounds.high.min(first.high),
        }
    }

    /// Bounds on the sum over a node of g_i P(L', s + q_i).
    fn node(&mut self, step: &Step, height: usize, index: usize) -> Interval {
        let paths = self.paths;
        let start = index << height;
        let end = ((index + 1) << height).min(paths.draft.len());
        if start >= end {
            return Interval::NOTHING;
        }
        self.work += 1;
        let (largest, smallest) = (paths.draft[start], paths.draft[end - 1]);
        let state = &step.state;
        let mut held = Interval {
            low: paths.weight(height, start, end, state.factor.low, step.offer.low),
            high: paths.weight(height, start, end, state.factor.high, step.offer.high),
        };
        let mut indivisible = height == 0;
        for removed in &self.removed {
            if removed.end <= start || end <= removed.start {
                continue;
            }
            let inside = start <= removed.start && removed.end <= end;
            // A rejected token has p/q <= L, so its weight would be B q.
            if inside {
                held.low -= step.offer.low * paths.draft[removed.start];
                if held.high.is_finite() {
                    held.high -= step.offer.high * paths.draft[removed.end - 1];
                }
            } else {
                held.low -= step.offer.low * largest;
            }
            if removed.start == start && removed.end == end {
                if height == 0 {
                    return Interval::NOTHING;
                }
                indivisible = true;
            }
        }
        // The weights of all tokens together are M(L').
        held.low = held.low.max(0.0);
        held.high = held.high.min(step.mass.high).max(held.low);
        if held.high <= 0.0 {
            return Interval::NOTHING;
        }
        let share = (held.high / state.mass.low).min(1.0) * step.weight;
        let rest_low = state.rest_low.value();
        // How far the state after rejecting one token of the node varies.
        let spread = (largest - smallest) / (rest_low - largest).max(1e-300);
        if !indivisible && share > self.threshold && share * spread.min(1.0) > self.threshold {
            if self.work > self.work_limit {
                return Interval {
                    low: 0.0,
                    high: held.high,
                };
            }
            let left = self.node(step, height - 1, 2 * index);
            let right = self.node(step, height - 1, 2 * index + 1);
            return left.plus(right);
        }
        let child = State {
            factor: step.factor,
            rest_low: at_least_zero(state.rest_low - TwoFloat::from(largest)),
            rest_high: state.rest_high - TwoFloat::from(smallest),
            mass: step.mass,
        };
        self.removed.push(Removed { start, end });
        let after = self.rejected(child, step.after, share);
        self.removed.pop();
        Interval {
            low: held.low * after.low,
            high: held.high * after.high,
        }
    }
}

fn at_least_zero(value: TwoFloat) -> TwoFloat {
    if value.value() > 0.0 {
        value
    } else {
        TwoFloat::ZERO
    }
}

/// Bounds on a/b in [0, 1], for a <= b.
fn quotient(a: Interval, b: Interval) -> Interval {
    Interval {
        low: if b.high > 0.0 {
            (a.low / b.high).min(1.0)
        } else {
            0.0
        },
        high: if a.high < b.low { a.high / b.low } else { 1.0 },
    }
}
