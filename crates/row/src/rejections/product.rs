//! The probability that n sequential drafts are all rejected, by a product rule of Gauss
//! nodes.
//!
//! Notation of [`super`]. As in [`super::sampled`], P(all n are rejected) = E\[M(L_n)\] over
//! paths whose next token has law g_i/M(L'), and what follows a token depends on it through
//! q_i alone, smoothly. So a sum over the tokens of a narrow range of q needs few nodes:
//!
//! - Heavy tokens are branched over one by one.
//! - All others stand in [`BINS`] bins of q. In every state a bin's measure g is replaced by
//!   its own two-point Gauss rule, which has the same moments `sum of g q^k` for k = 0..3.
//!   These are sums over stretches of p/q,
//!
//! ```text
//! sum g q^k = L' S_{k+1}(L < p/q <= L') - R_k(L < p/q <= L') + B S_{k+1}(p/q <= L)
//!             - B x^{k+1} for every node x of the bin that was rejected before,
//! S_k = sum q^k,   R_k = sum p q^k.
//! ```
//!
//! - The last draft is M(L') in closed form, so that n drafts take n - 1 levels.
//!
//! One split into heavy tokens and bins serves all states: a rejected node stands for tokens
//! of its bin, and a finer split would list some of these again.
//!
//! # Exactness
//! With every token heavy this is the sum over all paths. A bin of width w adds about
//! `weight w^4/4320` times a fourth derivative, which grows like 1/(1-s)^4: bins are cut in
//! units of what is left of q after the heaviest tokens that can be gone. None of this is
//! bounded here. What a caller is told is the difference to a coarser split, which is about
//! the error of that one.

use super::sweep::{LEAST_REST, SUMS, Sums, Sweep, Token, add};

/// Bins of the tokens that are not branched over one by one.
const BINS: usize = 2;

/// Tokens of a bin that are branched over one by one all the same.
const FEW: usize = 4;

/// Where tokens are divided, in units of what is left of q after the heaviest tokens that
/// can be gone when a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// Tokens of this q and more are heavy.
    pub heavy: f64,
    /// Other tokens of this q and more are in the first bin.
    pub cut: f64,
    /// The most heavy tokens.
    pub most: usize,
}

/// The most drafts that a product rule is for.
pub(super) const MOST_DRAFTS: usize = 6;

/// By drafts from three on: a split, and one for the error.
const SPLITS: [[Split; 2]; MOST_DRAFTS - 2] = [
    [split(0.005, 256), split(0.02, 64)],
    [split(0.02, 64), split(0.05, 24)],
    [split(0.05, 24), split(0.1, 12)],
    [split(0.1, 12), split(0.2, 8)],
];

const fn split(heavy: f64, most: usize) -> Split {
    Split {
        heavy,
        cut: 0.1 * heavy,
        most,
    }
}

/// Splits that differ by more than this are followed by a finer one, if that is not too much
/// work: so many paths.
const WANTED: f64 = 1e-6;
const MOST_PATHS: f64 = 1e6;

/// A rule that differs by more than this from another says nothing.
const WORST: f64 = 1e-3;

/// The least q that any rule of up to `draws` drafts tells from others, given the heaviest entries
/// of a q that sums to 1.
pub(super) fn least_told_apart(draws: usize, heaviest: &[f64]) -> f64 {
    let mut rest = 1.0;
    let mut least = f64::INFINITY;
    for (splits, gone) in SPLITS.iter().zip(heaviest).take(draws.max(3) - 2) {
        rest -= gone;
        if rest >= LEAST_REST {
            least = least.min(FINER * splits[0].cut * rest);
        }
    }
    if least.is_finite() { least } else { 0.0 }
}

/// A finer split, in units of the fine one.
const FINER: f64 = 0.25;

/// P(all of `draws` drafts are rejected), and how far off it may be: the difference of two
/// splits, not a bound. `None` for other numbers of drafts, and where the splits disagree.
pub(super) fn estimate(sweep: &Sweep, draws: usize) -> Option<[f64; 2]> {
    let [fine, coarse] = draws.checked_sub(3).and_then(|at| SPLITS.get(at))?;
    let by = |split| ProductRule::new(sweep, split, draws);
    let mut rule = by(*fine);
    let value = rule.all_rejected(draws);
    if rule.ratios.is_empty() && sweep.all[0] <= 0.0 {
        // Every token is heavy.
        return Some([value, ROUNDING]);
    }
    let mut other = by(*coarse);
    if other.ranges == rule.ranges {
        // Where both come to the same, the other one has to be coarser still.
        other = by(Split {
            most: rule.heavy.len() / 2,
            ..*coarse
        });
    }
    let rough = other.all_rejected(draws);
    let mut found = [value, (value - rough).abs()];
    if found[1] > WANTED {
        let mut finer = by(Split {
            heavy: FINER * fine.heavy,
            cut: FINER * fine.cut,
            most: 2 * fine.most,
        });
        if (finer.width() as f64).powi(draws as i32 - 1) <= MOST_PATHS {
            let better = finer.all_rejected(draws);
            found = [better, (better - value).abs()];
        }
    }
    // Rounding: cells and moments are summed in one word.
    found[1] += ROUNDING;
    found.iter().all(|x| x.is_finite()).then_some(())?;
    (found[1] <= WORST).then_some(found)
}

/// Rounding of what is summed up in one word, which two splits have in common.
const ROUNDING: f64 = 1e-11;

/// A token that is branched over.
#[derive(Clone, Copy, Debug)]
struct Heavy {
    p: f64,
    q: f64,
    is_gone: bool,
}

/// Where a path of rejections has led.
#[derive(Clone, Copy, Debug)]
struct State {
    /// L.
    factor: f64,
    /// M(L).
    mass: f64,
    /// 1 - s.
    rest: f64,
}

/// Whom a branch is about.
#[derive(Clone, Copy, Debug)]
enum Who {
    Heavy(usize),
    Bin(usize),
}

#[derive(Clone, Copy, Debug)]
struct Branch {
    weight: f64,
    q: f64,
    who: Who,
}

/// The rule for one (p, q) and one split.
#[derive(Debug)]
pub(super) struct ProductRule<'a> {
    sweep: &'a Sweep,
    heavy: Vec<Heavy>,
    /// Where each bin ends.
    ranges: [[f64; 2]; BINS],
    /// Ratios of the listed tokens that are in bins, rising, and sums before each.
    ratios: Vec<f64>,
    sums: Vec<[Sums; BINS]>,
    /// Nodes that are gone.
    gone: Vec<(usize, f64)>,
    /// By level.
    branches: Vec<Vec<Branch>>,
}

impl<'a> ProductRule<'a> {
    /// For `draws` drafts. O(listed tokens).
    pub(super) fn new(sweep: &'a Sweep, split: Split, draws: usize) -> Self {
        let gone: f64 = sweep.heaviest.iter().take(draws.saturating_sub(2)).sum();
        let rest = (sweep.total - gone).max(0.0);
        let least = sweep.least;
        let mut heavy = (split.heavy * rest).max(least);
        let mut found: Vec<f64> = (sweep.listed.iter().map(|token| token.q))
            .filter(|&q| q >= heavy)
            .collect();
        if found.len() > split.most {
            found.sort_unstable_by(|a, b| b.total_cmp(a));
            // Ties of the last one are out.
            heavy = found[split.most].next_up();
        }
        let cut = (split.cut * rest).clamp(least, heavy);
        let held = |from: f64, to: f64| {
            let tokens = sweep.listed.iter();
            tokens
                .filter(|token| from <= token.q && token.q < to)
                .count()
        };
        if held(cut, heavy) <= FEW {
            heavy = cut;
        }
        let mut rule = Self {
            sweep,
            heavy: Vec::new(),
            ranges: [[cut, heavy], [0.0, cut]],
            ratios: Vec::new(),
            sums: vec![[[0.0; SUMS]; BINS]],
            gone: Vec::new(),
            branches: vec![Vec::new(); draws],
        };
        let mut sums = [[0.0; SUMS]; BINS];
        for &Token { p, q, ratio } in &sweep.listed {
            if q >= heavy {
                let is_gone = false;
                rule.heavy.push(Heavy { p, q, is_gone });
            } else {
                add(&mut sums[usize::from(q < cut)], p, q);
                rule.ratios.push(ratio);
                rule.sums.push(sums);
            }
        }
        rule
    }

    /// Branches of a state at most.
    pub(super) fn width(&self) -> usize {
        self.heavy.len() + 2 * BINS
    }

    /// P(all of `draws` drafts are rejected), for at least one and as many as the rule is
    /// for. O((heavy + 4)^(draws - 1)) sums over one cell each.
    pub(super) fn all_rejected(&mut self, draws: usize) -> f64 {
        let start = State {
            factor: 0.0,
            mass: 1.0,
            rest: 1.0,
        };
        self.left(start, draws)
    }

    /// The mean of M(L) after `draws` more rejections.
    fn left(&mut self, state: State, draws: usize) -> f64 {
        let offer = state.mass / state.rest;
        let factor = state.factor + offer;
        if !(state.rest > 0.0 && factor.is_finite()) {
            return self.sweep.unreachable;
        }
        let mass = if state.factor > 0.0 {
            self.sweep.mass(factor)
        } else {
            self.sweep.first
        };
        if draws <= 1 || mass <= 0.0 {
            return mass;
        }
        let mut branches = std::mem::take(&mut self.branches[draws - 1]);
        self.branch(state, [factor, offer], &mut branches);
        let (mut sum, mut weights) = (0.0, 0.0);
        for branch in &branches {
            let next = State {
                factor,
                mass,
                rest: state.rest - branch.q,
            };
            let left = if draws == 2 {
                self.closed(next)
            } else {
                match branch.who {
                    Who::Heavy(at) => self.heavy[at].is_gone = true,
                    Who::Bin(bin) => self.gone.push((bin, branch.q)),
                }
                let left = self.left(next, draws - 1);
                match branch.who {
                    Who::Heavy(at) => self.heavy[at].is_gone = false,
                    Who::Bin(_) => {
                        self.gone.pop();
                    }
                }
                left
            };
            sum += branch.weight * left;
            weights += branch.weight;
        }
        self.branches[draws - 1] = branches;
        // The weights sum to M(L'); where there are none, that is rounding.
        if weights > 0.0 { sum / weights } else { mass }
    }

    /// M(L') after the last draft.
    fn closed(&self, state: State) -> f64 {
        let next = state.factor + state.mass / state.rest;
        if state.rest > 0.0 && next.is_finite() {
            self.sweep.mass(next)
        } else {
            self.sweep.unreachable
        }
    }

    /// Adds what can be rejected next, with its weight g.
    fn branch(&self, state: State, [next, offer]: [f64; 2], branches: &mut Vec<Branch>) {
        branches.clear();
        for (at, heavy) in self.heavy.iter().enumerate() {
            let weight = offer * heavy.q - (heavy.p - state.factor * heavy.q).max(0.0);
            if weight > 0.0 && !heavy.is_gone {
                branches.push(Branch {
                    weight,
                    q: heavy.q,
                    who: Who::Heavy(at),
                });
            }
        }
        let before = self.up_to(state.factor);
        let until = self.up_to(next);
        let mut all = self.sums.last().copied().unwrap_or_default();
        for (sum, own) in all[BINS - 1].iter_mut().zip(self.sweep.all) {
            *sum += own;
        }
        for bin in 0..BINS {
            let mut moments = [0.0; 4];
            for (k, moment) in moments.iter_mut().enumerate() {
                let between = |at: usize| until[bin][at] - before[bin][at];
                *moment = next * between(k) - between(4 + k) + offer * before[bin][k];
            }
            for &(_, x) in self.gone.iter().filter(|gone| gone.0 == bin) {
                let mut power = offer * x;
                for moment in &mut moments {
                    *moment -= power;
                    power *= x;
                }
            }
            for [weight, q] in gauss(moments, self.ranges[bin]).into_iter().flatten() {
                let who = Who::Bin(bin);
                branches.push(Branch { weight, q, who });
            }
        }
    }

    /// Moments of the bins over tokens of p/q up to a factor. At L = 0 there are none: tokens
    /// of p = 0 have weight L' q like all others up to L'.
    fn up_to(&self, factor: f64) -> [Sums; BINS] {
        if factor < 1.0 {
            return [[0.0; SUMS]; BINS];
        }
        let place = self.ratios.partition_point(|&ratio| ratio <= factor);
        let mut sums = self.sums[place];
        for (sum, own) in sums[BINS - 1].iter_mut().zip(self.sweep.up_to(factor)) {
            *sum += own;
        }
        sums
    }
}

/// Weights and places of the two nodes with these moments; of one at the mean where the
/// moments have no two nodes within the range.
fn gauss(moments: [f64; 4], [low, high]: [f64; 2]) -> [Option<[f64; 2]>; 2] {
    let [weight, first, second, third] = moments;
    if weight <= 0.0 {
        return [None, None];
    }
    let mean = first / weight;
    let spread = second / weight - mean * mean;
    let skew = third / weight - mean * (3.0 * spread + mean * mean);
    let one = [Some([weight, mean.clamp(low, high)]), None];
    if spread <= 1e-12 * mean * mean || spread.is_nan() {
        return one;
    }
    let half = 0.5 * skew / spread;
    let root = half.hypot(spread.sqrt());
    // The larger one has no cancellation; their product is -spread.
    let far = half + root.copysign(half);
    let near = -spread / far;
    let (right, left) = (far.max(near), far.min(near));
    if mean + left < low || mean + right > high {
        return one;
    }
    let share = right / (right - left);
    [
        Some([weight * share, mean + left]),
        Some([weight * (1.0 - share), mean + right]),
    ]
}

#[cfg(test)]
mod tests {
    use super::gauss;

    /// Nodes with the moments of two masses are these masses.
    #[test]
    fn two_nodes_have_the_moments_that_are_given() {
        let moments = |nodes: &[[f64; 2]]| {
            std::array::from_fn(|k| nodes.iter().map(|[w, x]| w * x.powi(k as i32)).sum())
        };
        for nodes in [
            [[0.5, 0.25], [0.25, 0.75]],
            [[0.1, 0.25], [0.9, 0.5]],
            [[1.0, 0.1], [1.0, 0.9]],
        ] {
            let found = gauss(moments(&nodes), [0.05, 0.95]).map(Option::unwrap);
            for (found, node) in found.iter().flatten().zip(nodes.iter().flatten()) {
                assert!((found - node).abs() < 1e-14, "{found} {node}");
            }
            // The same in reverse is the same.
            let [a, b] = nodes;
            assert_eq!(gauss(moments(&[b, a]), [0.05, 0.95]), found.map(Some));
            // Where one of them is out of the range there is one, at the mean.
            let mean = moments(&nodes)[1] / moments(&nodes)[0];
            for range in [[a[1] + 1e-3, 0.95], [0.05, b[1] - 1e-3]] {
                let [one, none] = gauss(moments(&nodes), range);
                let [weight, place] = one.unwrap();
                assert_eq!((weight, none), (moments(&nodes)[0], None));
                assert!((place - mean).abs() < 1e-15);
            }
        }
        // Three masses have the moments of two nodes as well.
        let three = moments(&[[0.2, 0.1], [0.3, 0.4], [0.5, 0.6]]);
        let nodes = gauss(three, [0.0, 1.0]).map(Option::unwrap);
        for (found, given) in moments(&nodes).iter().zip(three) {
            assert!((found - given).abs() < 1e-15, "{found} {given}");
        }
        // One mass is one node, within the range; and nothing is none.
        assert_eq!(
            gauss([0.5, 0.125, 0.03125, 0.0078125], [0.0, 1.0]),
            [Some([0.5, 0.25]), None]
        );
        assert_eq!(
            gauss([0.5, 0.125, 0.03125, 0.0078125], [0.3, 1.0])[0],
            Some([0.5, 0.3])
        );
        assert_eq!(gauss([0.0, 0.1, 0.1, 0.1], [0.0, 1.0]), [None, None]);
        assert_eq!(gauss([-1e-20, 0.1, 0.1, 0.1], [0.0, 1.0]), [None, None]);
        assert_eq!(gauss([0.5, 0.125, f64::NAN, 0.0], [0.0, 1.0])[1], None);
    }
}
