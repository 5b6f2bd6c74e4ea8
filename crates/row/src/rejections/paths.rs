//! The probability that n sequential drafts are all rejected, enclosed.
//!
//! Notation of [`super`]. Tokens of the support are sorted by falling q
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
//!
//! # Rounding
//! With u = 2^-53, and all of it for what is left of q being at least 1e-18:
//!
//! 1. An entry of p or q is within 2.5u of its value. What is left of q is a
//!    difference of sums in two words: its error is a few 2^-104, and so it is
//!    within 3u relative once the entries' errors are counted.
//! 2. `M(L)` is within `13u P(p/q > L)`: entries 2.5u each of P and L Q, prefix sums 1u
//!    each, the product and the difference 1u each, and a token that the rounded ratio
//!    puts on the wrong side of L has |p - L q| below 3u p, where L Q <= P on these tokens.
//! 3. `L' = L + M(L)/(1-s)` is off by `(13u + 4u M)/(1-s) + u L'` on top of what L is
//!    off by, and the slope of M beyond L' is at most the part of q that is left there.
//!    So every step adds at most 20u to M(L') at once, and at most that again at every
//!    later one: an error e of L that a heavy token hides, by standing within e of L, had
//!    this token in the 1-s that it was divided by. After k steps M is within 20 k^2 u.
//! 4. A weight `g = B q - (p - L q)+` of one token is within `8u L' q` where p < L' q, and
//!    is 0 otherwise. The weight of a node is a difference of products with prefix
//!    sums: with S the sum of q over its tokens of p/q <= L',
//!    - `B Q(p/q <= L)`: 3u for the prefix sum, 2.5u for the entries, 1u for the product;
//!    - `L' Q(L < p/q <= L')`: two prefix sums 6u S L', 2.5u and 1u;
//!    - `P(L < p/q <= L')`: the same, since P <= L' Q on these tokens;
//!    - tokens on the wrong side of L: 3u L' q each.
//!
//!    These sum to less than 32u L' S. A removed token's `B q` is subtracted from a sum
//!    that holds it, which adds 2u L' S. **That product is not small**: L' is as large as
//!    M/(1-s), and S counts the tokens that are removed. Where a token of q = 1 - 1e-11
//!    is gone, 32u L' S is 4e-4 in place of 4e-15. So a node carries this error in its
//!    bounds ([`WEIGHT_ROUNDING`]), and so it says itself whether it is worth dividing:
//!    the parts leave the removed token out instead of subtracting it, and L' S is then
//!    at most the number of drafts.
//! 5. The moment, sum of g q, has the same bound with the sum of q^2 for S.
//! 6. `P_k = sum of g_i P_(k-1)(i) / M(L)`: the weights sum to M(L'), so that an error e
//!    of all P_(k-1), times M(L') as it always stands, is an error of e and no more.
//!    Sums run pairwise down a tree of at most 24 levels.
//!
//! 3 and 6 are at most 64u n^2 in all, or the 1e-12 that is allowed at least
//! ([`allowance`]); 4 and 5 are within the bounds themselves.

use super::curve::Curve;
use specgap_number::distribution::{TwoFloat, running_sums};
use std::sync::OnceLock;

/// Allowance for rounding in either direction, apart from that of weights: points 3 and 6
/// above.
fn allowance(draws: usize) -> f64 {
    let n = draws as f64;
    (32.0 * f64::EPSILON * n * n).max(1e-12)
}

/// Error of a weight, in units of L' S: point 4 above, 34u and a margin.
const WEIGHT_ROUNDING: f64 = 20.0 * f64::EPSILON;

/// A group of tokens, sorted by rising p/q, with prefix sums.
#[derive(Debug, Default)]
struct Node {
    /// Places by falling q.
    order: Vec<u32>,
    ratios: Vec<f64>,
    /// Sums of p, q, p q and q^2.
    target: Vec<f64>,
    draft: Vec<f64>,
    mixed: Vec<f64>,
    square: Vec<f64>,
}

impl Node {
    fn new(order: Vec<u32>, target: &[f64], draft: &[f64]) -> Self {
        let gathered =
            |row: &[f64]| -> Vec<f64> { order.iter().map(|&i| row[i as usize]).collect() };
        let (mut target, mut draft) = (gathered(target), gathered(draft));
        let over = |term: fn(f64, f64) -> f64| -> Vec<f64> {
            let pairs = target.iter().zip(&draft);
            pairs.map(|(&p, &q)| term(p, q)).collect()
        };
        let ratios = over(|p, q| p / q);
        let (mut mixed, mut square) = (over(|p, q| p * q), over(|_, q| q * q));
        for terms in [&mut target, &mut draft, &mut mixed, &mut square] {
            running_sums(terms);
        }
        Self {
            ratios,
            target,
            draft,
            mixed,
            square,
            order,
        }
    }
}

/// The tree of one (p, q). A node is built when it is first asked for: groups of light
/// tokens are hardly ever divided, and most of the tree is never seen.
#[derive(Debug)]
pub(super) struct RejectedPaths {
    /// p and q of the support by falling q.
    target: Vec<f64>,
    draft: Vec<f64>,
    /// Places by rising p/q.
    rising: Vec<u32>,
    /// By height, from the leaves' parents up.
    levels: Vec<Vec<OnceLock<Box<Node>>>>,
}

/// Bounds.
#[derive(Clone, Copy, Debug)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    const NOTHING: Self = Self::of(0.0, 0.0);

    const fn of(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    fn plus(self, other: Self) -> Self {
        Self::of(self.low + other.low, self.high + other.high)
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
    curve: &'a Curve,
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
    /// A guess of what the children's probabilities are.
    centre: f64,
}

impl RejectedPaths {
    /// `rising` has the tokens of q > 0 by rising p/q.
    pub(super) fn new(
        target: &[f64],
        draft: &[f64],
        rising: impl Iterator<Item = u32> + Clone,
    ) -> Self {
        // Positive numbers are in the order of their bits.
        let key = |token: u32| (!draft[token as usize].to_bits(), token);
        let mut order: Vec<(u64, u32)> = rising.clone().map(key).collect();
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(_, token)| token as usize).collect();
        let mut place = vec![0; draft.len()];
        for (at, &token) in (0u32..).zip(&order) {
            place[token] = at;
        }
        let mut levels = Vec::new();
        let mut nodes = order.len();
        while nodes > 1 {
            nodes = nodes.div_ceil(2);
            levels.push(std::iter::repeat_with(OnceLock::new).take(nodes).collect());
        }
        Self {
            target: order.iter().map(|&i| target[i]).collect(),
            draft: order.iter().map(|&i| draft[i]).collect(),
            rising: rising.map(|token| place[token as usize]).collect(),
            levels,
        }
    }

    /// Height of the root.
    fn top(&self) -> usize {
        self.levels.len()
    }

    /// A node of height 1 or more. O(tokens of its parent) the first time.
    fn tree_node(&self, height: usize, index: usize) -> &Node {
        self.levels[height - 1][index].get_or_init(|| {
            let start = index << height;
            let end = ((index + 1) << height).min(self.draft.len());
            let order: Vec<u32> = if height == self.top() {
                self.rising.clone()
            } else {
                let parent = self.tree_node(height + 1, index / 2);
                let held = |i: &u32| (start..end).contains(&(*i as usize));
                parent.order.iter().copied().filter(held).collect()
            };
            Box::new(Node::new(order, &self.target, &self.draft))
        })
    }

    /// Bounds on the probability that `draws` drafts are all rejected, at most
    /// `width` apart unless the work limit stops it.
    ///
    /// The threshold is the largest uncertainty that a single group of paths may
    /// contribute; it is lowered until the sum of them is narrow enough.
    pub(super) fn all_rejected(
        &self,
        curve: &Curve,
        draws: usize,
        width: f64,
        work_limit: u64,
    ) -> (f64, f64) {
        let mut best = (0.0f64, 1.0f64);
        let mut threshold = if draws <= 2 {
            // Every token by itself is affordable.
            0.0
        } else {
            width.max(1e-12) * 0.1f64.powi(i32::try_from(2 * draws).unwrap_or(64) - 5)
        };
        let mut left = work_limit;
        loop {
            let mut search = Search {
                paths: self,
                curve,
                threshold,
                work: 0,
                work_limit: left,
                removed: Vec::with_capacity(draws),
            };
            let mass = curve.at(0.0);
            let all = curve.total;
            let start = State {
                factor: Interval::NOTHING,
                rest_low: all,
                rest_high: all,
                mass: Interval::of(mass, mass),
            };
            let found = search.rejected(start, draws, 1.0);
            let rounding = allowance(draws);
            best.0 = best.0.max(found.low - rounding);
            best.1 = best.1.min(found.high + rounding);
            left = left.saturating_sub(search.work);
            let reached = best.1 - best.0;
            // Not even single tokens leave anything below this.
            if reached <= width || left == 0 || threshold < 1e-18 {
                return best;
            }
            // The width falls about as the root of the threshold; leave a margin,
            // since every round starts anew.
            threshold *= (0.7 * (width / reached).powi(2)).clamp(1e-4, 0.5);
        }
    }

    /// Sums of g_i and of g_i q_i over a node in one state, nothing excluded.
    fn weight(&self, height: usize, index: usize, factor: f64, offer: f64) -> Weight {
        if offer <= 0.0 {
            return Weight::default();
        }
        if !offer.is_finite() {
            return Weight {
                mass: f64::INFINITY,
                moment: f64::INFINITY,
                ..Weight::default()
            };
        }
        let next = factor + offer;
        if height == 0 {
            let (p, q) = (self.target[index], self.draft[index]);
            let mass = (offer * q - (p - factor * q).max(0.0)).max(0.0);
            let error = WEIGHT_ROUNDING * next * q;
            // Out of reach beyond all rounding.
            let error = if p > next * q + error { 0.0 } else { error };
            return Weight {
                mass,
                moment: mass * q,
                mass_error: error,
                moment_error: error * q,
            };
        }
        let node = self.tree_node(height, index);
        let ratios = &node.ratios;
        let below = ratios.partition_point(|&ratio| ratio <= factor);
        let between = below + ratios[below..].partition_point(|&ratio| ratio <= next);
        let split = |sums: &[f64]| {
            let up_to = |count: usize| match count {
                0 => 0.0,
                _ => sums[count - 1],
            };
            let (first, all) = (up_to(below), up_to(between));
            (first, all - first, all)
        };
        let (q_below, q_between, q_all) = split(&node.draft);
        let (_, p_between, _) = split(&node.target);
        let (square_below, square_between, square_all) = split(&node.square);
        let (_, mixed_between, _) = split(&node.mixed);
        Weight {
            mass: offer * q_below + (next * q_between - p_between).max(0.0),
            moment: offer * square_below + (next * square_between - mixed_between).max(0.0),
            mass_error: WEIGHT_ROUNDING * next * q_all,
            moment_error: WEIGHT_ROUNDING * next * square_all,
        }
    }
}

/// Rejected weight of a node, and how far rounding may have moved it.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    mass: f64,
    moment: f64,
    mass_error: f64,
    moment_error: f64,
}

/// Bounds on the weight of a node, and whether it is not to be divided.
#[derive(Clone, Copy, Debug)]
struct Held {
    low: Weight,
    high: Weight,
    indivisible: bool,
}

impl Search<'_> {
    /// Bounds on the probability that the next `draws` drafts are all rejected;
    /// `weight` is an upper bound on the probability of getting here.
    fn rejected(&mut self, state: State, draws: usize, weight: f64) -> Interval {
        self.work += 1;
        if draws == 0 {
            return Interval::of(1.0, 1.0);
        }
        if state.mass.high <= 0.0 {
            return Interval::NOTHING;
        }
        let rest_low = state.rest_low.value();
        let rest_high = state.rest_high.value();
        let most = Some(state.mass.high / rest_low).filter(|_| rest_low > 0.0);
        let offer = Interval::of(state.mass.low / rest_high, most.unwrap_or(f64::INFINITY));
        let factor = state.factor.plus(offer);
        let mass = Interval::of(self.curve.at(factor.high), self.curve.at(factor.low));
        let first = quotient(mass, state.mass);
        if draws == 1 {
            return first;
        }
        if self.work > self.work_limit || weight <= self.threshold {
            return Interval::of(0.0, first.high);
        }
        let step = Step {
            state,
            offer,
            factor,
            mass,
            after: draws - 1,
            weight,
            centre: self.centre(factor.low, mass.high, rest_high, draws - 1),
        };
        let top = self.paths.top();
        // The weights g_i sum to M(L'), so sum of g_i P_i is
        // centre M(L') + sum of g_i (P_i - centre): uncertain weights then count
        // with what P_i differs from the centre, and not with all of P_i.
        let centre = Interval::of(step.centre * mass.low, step.centre * mass.high);
        let sum = self.node(&step, top, 0).plus(centre);
        let bounds = quotient(sum, state.mass);
        // Never above the probability that the first of them is rejected.
        Interval::of(bounds.low, bounds.high.min(first.high))
    }

    /// The probability that `draws` drafts are rejected if s stays as it is.
    fn centre(&self, factor: f64, mass: f64, rest: f64, draws: usize) -> f64 {
        let (mut at, mut left) = (factor, mass);
        for _ in 0..draws {
            at += left / rest;
            left = self.curve.at(at);
        }
        let is_known = mass > 0.0 && left.is_finite();
        if is_known {
            (left / mass).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Bounds on the mean over a node of P_1(L', s + q_i), weighted with g_i, from
    /// the mean of q: M is convex and falls, L' + M(L')/(1-s-q) is convex and
    /// grows in q, so a chord of one and a tangent of the other bound their
    /// composition by a line on either side.
    fn last_draft(
        &self,
        step: &Step,
        held: (Weight, Weight),
        smallest: f64,
        largest: f64,
    ) -> Interval {
        let curve = self.curve;
        let (low_weight, high_weight) = held;
        let mean = |moment: f64, mass: f64, otherwise: f64| {
            let mean = Some(moment / mass).filter(|mean| mean.is_finite());
            mean.map_or(otherwise, |mean| mean.clamp(smallest, largest))
        };
        let mean_low = mean(low_weight.moment, high_weight.mass, smallest);
        let mean_high = mean(high_weight.moment, low_weight.mass, largest);
        let (rest_low, rest_high) = (step.state.rest_low, step.state.rest_high);
        let at = |factor: f64, mass: f64, rest: TwoFloat, q: f64| {
            let rest = (rest - TwoFloat::from(q)).value();
            let at = Some(factor + mass / rest).filter(|_| rest > 0.0);
            at.unwrap_or(f64::INFINITY)
        };
        // Above: M by its chord, the argument by its value at the mean.
        let near = at(step.factor.low, step.mass.low, rest_high, smallest);
        let far = at(step.factor.low, step.mass.low, rest_high, largest);
        let middle = at(step.factor.low, step.mass.low, rest_high, mean_low);
        let (top, bottom) = (curve.at(near), curve.at(far));
        let high = if far > near && far.is_finite() {
            top - (top - bottom) * ((middle - near) / (far - near)).clamp(0.0, 1.0)
        } else {
            top
        };
        // Below: the argument by its chord, M by its tangent.
        let near = at(step.factor.high, step.mass.high, rest_low, smallest);
        let far = at(step.factor.high, step.mass.high, rest_low, largest);
        let low = if far.is_finite() {
            let width = largest - smallest;
            let share = if width > 0.0 {
                (mean_high - smallest) / width
            } else {
                0.0
            };
            let middle = near + (far - near) * share;
            curve.tangent(middle, middle)
        } else {
            curve.unreachable
        };
        quotient(Interval::of(low, high), step.mass)
    }

    /// Bounds on the rejected weight of a node, without the tokens that are gone; `None`
    /// if it is 0.
    ///
    /// Removed groups are nodes of the same tree. One that holds this node is not met:
    /// a node that is a removed group is indivisible, and so nothing inside it is asked
    /// for.
    fn held(&self, step: &Step, height: usize, index: usize) -> Option<Held> {
        let paths = self.paths;
        let start = index << height;
        let end = ((index + 1) << height).min(paths.draft.len());
        let mut low = paths.weight(height, index, step.state.factor.low, step.offer.low);
        let mut high = paths.weight(height, index, step.state.factor.high, step.offer.high);
        let mut indivisible = height == 0;
        let mut gone = 0;
        for removed in &self.removed {
            if removed.start < start || end < removed.end {
                continue;
            }
            gone += 1;
            indivisible |= removed.start == start && removed.end == end;
            // A rejected token has p/q <= L, so its weight would be B q.
            let (most, least) = (paths.draft[removed.start], paths.draft[removed.end - 1]);
            low.mass -= step.offer.low * most;
            low.moment -= step.offer.low * most * most;
            if high.mass.is_finite() {
                high.mass -= step.offer.high * least;
                high.moment -= step.offer.high * least * least;
            }
        }
        if gone == end - start {
            // Every token of the node, whatever rounding leaves of the difference.
            return None;
        }
        // The weights of all tokens together are M(L').
        low.mass = (low.mass - low.mass_error).max(0.0);
        low.moment = (low.moment - low.moment_error).max(0.0);
        let mass = (high.mass + high.mass_error).min(step.mass.high);
        high.mass = mass.max(low.mass);
        let moment = (high.moment + high.moment_error).min(high.mass * paths.draft[start]);
        high.moment = moment.max(low.moment);
        (high.mass > 0.0).then_some(Held {
            low,
            high,
            indivisible,
        })
    }

    /// Bounds on the sum over a node of `g_i (P(L', s + q_i) - centre)`.
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
        let Some(Held {
            low,
            high,
            indivisible,
        }) = self.held(step, height, index)
        else {
            return Interval::NOTHING;
        };
        let share = (high.mass / state.mass.low).min(1.0) * step.weight;
        let rest_low = state.rest_low.value();
        // How far the state after rejecting one token of the node varies.
        let spread = ((largest - smallest) / (rest_low - largest).max(1e-300)).min(1.0);
        let again = if step.after == 1 { spread } else { 1.0 };
        let uncertainty = share * spread * again;
        let exhausted = self.work > self.work_limit;
        if !indivisible && uncertainty > self.threshold && !exhausted {
            let left = self.node(step, height - 1, 2 * index);
            let right = self.node(step, height - 1, 2 * index + 1);
            return left.plus(right);
        }
        let after = if step.after == 1 {
            self.last_draft(step, (low, high), smallest, largest)
        } else {
            let child = State {
                factor: step.factor,
                rest_low: at_least_zero(state.rest_low - TwoFloat::from(largest)),
                rest_high: state.rest_high - TwoFloat::from(smallest),
                mass: step.mass,
            };
            self.removed.push(Removed { start, end });
            let after = self.rejected(child, step.after, share);
            self.removed.pop();
            after
        };
        let (below, above) = (after.low - step.centre, after.high - step.centre);
        let (held_low, held_high) = (low.mass, high.mass);
        let low = below * if below > 0.0 { held_low } else { held_high };
        let high = above * if above > 0.0 { held_high } else { held_low };
        Interval::of(low, high)
    }
}

fn at_least_zero(value: TwoFloat) -> TwoFloat {
    let is_positive = value.value() > 0.0;
    if is_positive { value } else { TwoFloat::ZERO }
}

/// Bounds on a/b in [0, 1], for a <= b.
fn quotient(a: Interval, b: Interval) -> Interval {
    let low = Some(a.low / b.high).filter(|_| b.high > 0.0);
    let high = if a.high < b.low { a.high / b.low } else { 1.0 };
    Interval::of(low.map_or(0.0, |low| low.clamp(0.0, 1.0)), high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: [f64; 6] = [0.1, 0.1, 0.2, 0.25, 0.2, 0.15];
    /// Falling, so that places are tokens.
    const DRAFT: [f64; 6] = [0.4, 0.25, 0.15, 0.1, 0.06, 0.04];

    fn with_search(check: impl FnOnce(&mut Search<'_>, &Curve)) {
        let curve = Curve::new(&TARGET, &DRAFT);
        let rising = curve.tokens.iter().rev().copied();
        let paths = RejectedPaths::new(&TARGET, &DRAFT, rising);
        let mut search = Search {
            paths: &paths,
            curve: &curve,
            threshold: 1.0,
            work: 0,
            work_limit: 1000,
            removed: Vec::new(),
        };
        check(&mut search, &curve);
    }

    fn point(value: f64) -> Interval {
        Interval {
            low: value,
            high: value,
        }
    }

    /// The step from L = 1 with this much of q left, known without doubt.
    fn step(curve: &Curve, rest: f64) -> Step {
        let (factor, mass) = (1.0, curve.at(1.0));
        let offer = mass / rest;
        Step {
            state: State {
                factor: point(factor),
                rest_low: rest.into(),
                rest_high: rest.into(),
                mass: point(mass),
            },
            offer: point(offer),
            factor: point(factor + offer),
            mass: point(curve.at(factor + offer)),
            after: 1,
            weight: 1.0,
            centre: 0.0,
        }
    }

    fn weight_of(token: usize, step: &Step) -> f64 {
        let (p, q) = (TARGET[token], DRAFT[token]);
        (step.offer.low * q - (p - step.state.factor.low * q).max(0.0)).max(0.0)
    }

    /// One of two unlike tokens is gone, and it is not known which.
    #[test]
    fn the_weight_beside_a_removed_group_holds_whichever_token_is_gone() {
        with_search(|search, curve| {
            let step = step(curve, 0.7);
            search.removed.push(Removed { start: 0, end: 2 });
            for (height, index, tokens) in [(1, 0, 0..2), (2, 0, 0..4), (3, 0, 0..6)] {
                let held = search.held(&step, height, index).unwrap();
                assert_eq!(held.indivisible, height == 1);
                let mut ends = (f64::INFINITY, 0.0f64);
                for gone in 0..2 {
                    let left = || tokens.clone().filter(move |&token| token != gone);
                    let mass: f64 = left().map(|token| weight_of(token, &step)).sum();
                    let mass = mass.min(step.mass.high);
                    let moment: f64 = left()
                        .map(|token| weight_of(token, &step) * DRAFT[token])
                        .sum();
                    assert!(held.low.mass <= mass && mass <= held.high.mass, "{held:?}");
                    assert!(held.low.moment <= moment, "{gone}: {moment} {held:?}");
                    assert!(
                        moment <= held.high.moment || mass == step.mass.high,
                        "{gone}: {moment} {held:?}"
                    );
                    ends = (ends.0.min(mass), ends.1.max(mass));
                }
                // No wider than not knowing which.
                let slack = 1e-14;
                assert!(held.low.mass >= ends.0 - slack, "{held:?} {ends:?}");
                assert!(held.high.mass <= ends.1 + slack, "{held:?} {ends:?}");
            }
            // A node beside it is whole.
            let beside = search.held(&step, 1, 1).unwrap();
            let mass = weight_of(2, &step) + weight_of(3, &step);
            assert!((beside.low.mass - mass).abs() < 1e-14, "{beside:?} {mass}");
            // Both are gone: nothing is left, not even rounding.
            search.removed.push(Removed { start: 0, end: 2 });
            assert!(search.held(&step, 1, 0).is_none());
        });
    }

    #[test]
    fn what_is_allowed_for_rounding() {
        let n = |draws: usize| (draws * draws) as f64;
        for draws in [1, 2, 11] {
            assert_eq!(allowance(draws), 1e-12);
        }
        for draws in [12, 64] {
            assert!(32.0 * f64::EPSILON * n(draws) > 1e-12);
            assert_eq!(allowance(draws), 32.0 * f64::EPSILON * n(draws));
        }
        with_search(|search, curve| {
            let step = step(curve, 0.7);
            let next = step.factor.low;
            // A leaf by itself, and the root with all: in units of L' S.
            for (height, index, tokens) in [(0, 2, 2..3), (3, 0, 0..6)] {
                let found = search.paths.weight(height, index, 1.0, step.offer.low);
                let within = tokens.clone().filter(|&i| TARGET[i] <= next * DRAFT[i]);
                let sums: (f64, f64) = within
                    .map(|i| (DRAFT[i], DRAFT[i] * DRAFT[i]))
                    .fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
                let unit = 20.0 * f64::EPSILON * next;
                assert!((found.mass_error / (unit * sums.0) - 1.0).abs() < 1e-14);
                assert!((found.moment_error / (unit * sums.1) - 1.0).abs() < 1e-14);
                let mass: f64 = tokens.clone().map(|i| weight_of(i, &step)).sum();
                let moment: f64 = tokens.map(|i| weight_of(i, &step) * DRAFT[i]).sum();
                assert!((found.mass - mass).abs() < 1e-15, "{found:?} {mass}");
                assert!((found.moment - moment).abs() < 1e-15, "{found:?} {moment}");
            }
            // What cannot be rejected has no error, and an offer of nothing rejects nothing.
            let found = search.paths.weight(0, 5, 1.0, 0.5);
            assert_eq!((found.mass, found.mass_error), (0.0, 0.0));
            assert_eq!(search.paths.weight(3, 0, 1.0, 0.0).mass, 0.0);
            assert!(
                search
                    .paths
                    .weight(3, 0, 1.0, f64::INFINITY)
                    .mass
                    .is_infinite()
            );
            // Rounding widens what a node holds, to both sides.
            let held = search.held(&step, 0, 1).unwrap();
            let mass = weight_of(1, &step);
            let error = 20.0 * f64::EPSILON * next * DRAFT[1];
            assert!((held.low.mass - (mass - error)).abs() < 1e-17, "{held:?}");
            assert!((held.high.mass - (mass + error)).abs() < 1e-17, "{held:?}");
            assert!(held.indivisible);
        });
    }

    /// The last draft is a quotient of two masses, and nothing is looked at for it.
    #[test]
    fn the_last_draft_is_one_step() {
        with_search(|search, curve| {
            let mut state = step(curve, 0.7).state;
            let found = search.rejected(state, 1, 1.0);
            let expected = curve.at(1.0 + curve.at(1.0) / 0.7) / curve.at(1.0);
            assert_eq!(
                (found.low, found.high, search.work),
                (expected, expected, 1)
            );
            // No draft is left, or nothing of p.
            let found = search.rejected(state, 0, 1.0);
            assert_eq!((found.low, found.high, search.work), (1.0, 1.0, 2));
            // Paths that hardly happen are not followed: nothing is known but the first step.
            let found = search.rejected(state, 3, 1.0);
            assert_eq!((found.low, found.high, search.work), (0.0, expected, 3));
            state.mass = point(0.0);
            let found = search.rejected(state, 3, 1.0);
            assert_eq!((found.low, found.high, search.work), (0.0, 0.0, 4));
        });
    }

    /// Enclosures of any width hold the sum over all tuples, and are as narrow as asked.
    #[test]
    fn enclosures_hold_the_sum_over_all_tuples() {
        let curve = Curve::new(&TARGET, &DRAFT);
        let rising = || curve.tokens.iter().rev().copied();
        let paths = RejectedPaths::new(&TARGET, &DRAFT, rising());
        for draws in 1..=5 {
            let truth = super::super::summed::all_rejected(&TARGET, &DRAFT, draws);
            for width in [0.1, 1e-3, 1e-6, 1e-11] {
                let (low, high) = paths.all_rejected(&curve, draws, width, u64::MAX);
                assert!(
                    low <= truth && truth <= high,
                    "{draws} {width}: {low} {high} {truth}"
                );
                assert!(high - low <= width, "{draws} {width}: {low} {high}");
            }
            // What is found within a limit holds it too, and never nothing is known.
            for limit in [0, 1, 5, 30] {
                let (low, high) = paths.all_rejected(&curve, draws, 1e-9, limit);
                assert!(
                    low <= truth && truth <= high,
                    "{draws} {limit}: {low} {high} {truth}"
                );
                assert!(high < 0.5, "{draws} {limit}: {high}");
            }
        }
        // A token that is known but not which of two: spread by both, not by one.
        let (low, high) = paths.all_rejected(&curve, 2, 1.0, u64::MAX);
        assert!(high - low < 1e-11, "{low} {high}");
    }

    /// Weights that are known within bounds only may lie on the light tokens or on the
    /// heavy ones.
    #[test]
    fn the_last_draft_is_bounded_for_all_weights_within_bounds() {
        with_search(|search, curve| {
            let step = step(curve, 0.9);
            let tokens = 1..4;
            let mass = step.mass.low;
            let rejected = |token: usize| {
                let rest = 0.9 - DRAFT[token];
                curve.at(step.factor.low + mass / rest) / mass
            };
            let spread = rejected(3) - rejected(1);
            assert!(spread > 0.05, "{spread}");
            let laws = [
                [0.08, 0.01, 0.01],
                [0.01, 0.08, 0.01],
                [0.01, 0.01, 0.08],
                [0.04, 0.03, 0.03],
            ];
            let sums = laws.map(|law| {
                let moment: f64 = tokens.clone().zip(law).map(|(i, g)| g * DRAFT[i]).sum();
                (law.iter().sum::<f64>(), moment)
            });
            let ends = |pick: fn(f64, f64) -> f64, start: f64| {
                let (mass, moment) = sums
                    .iter()
                    .fold((start, start), |(a, b), x| (pick(a, x.0), pick(b, x.1)));
                Weight {
                    mass,
                    moment,
                    ..Weight::default()
                }
            };
            let held = (ends(f64::min, f64::INFINITY), ends(f64::max, 0.0));
            let bounds = search.last_draft(&step, held, DRAFT[3], DRAFT[1]);
            for (law, (sum, _)) in laws.iter().zip(sums) {
                let mean = tokens
                    .clone()
                    .zip(law)
                    .map(|(token, g)| g * rejected(token))
                    .sum::<f64>()
                    / sum;
                assert!(
                    bounds.low - 1e-14 <= mean && mean <= bounds.high + 1e-14,
                    "{law:?}: {mean} {bounds:?}"
                );
            }
            // Bounds that say more than that the tokens are these.
            assert!(bounds.high < rejected(3) - 0.1 * spread, "{bounds:?}");
            assert!(bounds.low > rejected(1) + 0.01 * spread, "{bounds:?}");
        });
    }
}
