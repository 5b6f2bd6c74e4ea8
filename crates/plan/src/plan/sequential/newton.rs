//! The weights of one tier: Newton's method on groups of tokens, then on all.
//!
//! The Hessian of the convex function is the Laplacian of a graph: the edge between i
//! and j is the integral of `s` times what both compete for, and in the inner tier
//! each leaks to the rejecting slot. Edges are computed on one node an octave, which
//! steers; what is solved is measured on all nodes with all tokens.
//!
//! Four cases need care:
//!
//! - A group at the cut, of which some tokens stand at weight 1 and others move, enters the
//!   Laplacian with the share of its slope that moves. As a whole it was too heavy for what it
//!   lacked, and such solves gained half a digit per step.
//! - The common part of a step (all weights times one factor) is the mean by leaks: all that is
//!   lacking over all that leaks. It is taken apart where hardly anything leaks, and follows the
//!   curve of what is rejected. It is not the heaviest token's step: two tokens at e^6 times the
//!   others' weights that are almost a minimiser by themselves have a factor of their own.
//!   Moving all by it once stalled a row 2.5e-4 below alpha*.
//! - Where Newton's step does not help, each item moves by its own slope, or by half of that.
//!   Two that compete with each other alone would swing for ever at the whole.
//! - Steps in log w are cut at 2. While cut steps change nothing, they double up to 16. A few
//!   light tokens that compete with each other alone may start at e^-35 times the weights of all
//!   others, and have to come up.

use super::emission::{Emitted, weights};
use super::groups::Groups;
use super::tier::{Items, Tier};
use crate::plan::token_plan::SolvedTier;
use multiversion::multiversion;
use specgap_number::distribution::ln_normal;
use specgap_number::quadrature::{Resolution, laplacian};
use specgap_number::scratch::Scratch;

/// Steps in log w are cut to this.
const LONGEST_STEP: f64 = 2.0;

/// Most that cut steps are stretched, while they change nothing: by so little that they are
/// far from where they would.
const STRETCH: f64 = 8.0;
const NO_CHANGE: f64 = 1e-3;

/// Emission left over at which the groups' own problem is solved: its nodes are
/// coarser than that.
const GROUPS_SOLVED: f64 = 3e-6;

/// Below this, steps on groups end after a few that do not help.
const GROUPS_STALE: f64 = 1e-4;

/// Longest step that may be part of an extrapolation.
const LONGEST_EXTRAPOLATED: f64 = 0.1;

/// Steps that do not help before a solve gives up.
const STALE: usize = 4;

/// Steps on all tokens that were cut and do not help count as one in so many.
const CUT_STALE: usize = 4;

/// Shares of the step that each item takes by its own slope. Two items that compete
/// with each other alone swing for ever at the first.
const LOCAL_SHARES: [f64; 2] = [1.0, 0.5];

/// What held items may lack without calling for a change of scale.
const NOTHING: f64 = 1e-13;

impl Items {
    /// Newton steps in log w for each item in a given field, in log odds.
    fn local(&self, emitted: &Emitted) -> Scratch<f64> {
        let mut steps = Scratch::filled(self.wanted.len(), 0.0);
        let wanted = [&self.wanted[..], &self.low, &self.up, &self.goal];
        local_steps(wanted, [&emitted.value, &emitted.decline], &mut steps);
        steps
    }
}

#[multiversion(targets = "simd")]
fn local_steps(
    [wanted, low, up, goal]: [&[f64]; 4],
    [value, decline]: [&[f64]; 2],
    steps: &mut [f64],
) {
    let bounds = low.iter().zip(up).zip(wanted.iter().zip(goal));
    let emitted = value.iter().zip(decline);
    for ((step, ((low, up), (wanted, goal))), (value, decline)) in
        steps.iter_mut().zip(bounds).zip(emitted)
    {
        let slope = value - decline;
        let margin = 1e-14 * up;
        let (below, above) = (value - low, up - value);
        let below = if below > 1e-3 * margin {
            below
        } else {
            1e-3 * margin
        };
        let above = if above > margin { above } else { margin };
        let rate = slope * (1.0 / below + 1.0 / above);
        let offset = goal - ln_normal(below / above);
        let least = if rate > 1e-3 { rate } else { 1e-3 };
        let own = offset / least;
        let own = if own < LONGEST_STEP {
            own
        } else {
            LONGEST_STEP
        };
        let own = if own > -LONGEST_STEP {
            own
        } else {
            -LONGEST_STEP
        };
        // Where nothing changes with the weight, the slope says nothing.
        let blind = if value < wanted {
            LONGEST_STEP
        } else {
            -LONGEST_STEP
        };
        *step = if rate > 0.0 { own } else { blind };
    }
}

/// Stretches steps that were cut.
fn lengthen(from: &[f64], to: &mut [f64], stretch: f64) {
    if stretch > 1.0 {
        for (to, from) in to.iter_mut().zip(from) {
            let step = *to - from;
            if step.abs() > 0.99 * LONGEST_STEP {
                *to = from + stretch * step;
            }
        }
    }
}

/// Steps that shrink by a factor that stays are one geometric series, of which the rest is
/// added: `next` is where the combination of the last two steps is least (Anderson's mixing
/// of depth one), in squares weighted by how much each item's emission moves.
fn extrapolate(
    (from, before): (&[f64], &[f64]),
    (theta, step): (&[f64], &[f64]),
    emitted: &Emitted,
    next: &mut [f64],
) {
    let (mut product, mut square, mut longest) = (0.0, 0.0, 0.0f64);
    let slopes = emitted.value.iter().zip(&emitted.decline);
    for ((step, before), (value, decline)) in step.iter().zip(before).zip(slopes) {
        let slope = (value - decline).max(0.0);
        let change = step - before;
        product += slope * change * step;
        square += slope * change * change;
        longest = longest.max(step.abs());
    }
    let share = product / square;
    if longest > LONGEST_EXTRAPOLATED || share.is_nan() || share.abs() > 1.0 {
        return;
    }
    let moves = theta.iter().zip(from).zip(step.iter().zip(before));
    for (next, ((theta, from), (step, before))) in next.iter_mut().zip(moves) {
        *next -= share * ((theta - from) + (step - before));
    }
}

/// What held items lack.
fn waiting(lacking: &[f64], held: &[bool]) -> f64 {
    let terms = lacking.iter().zip(held).filter(|(_, held)| **held);
    terms.map(|(lacking, _)| lacking.max(0.0)).sum()
}

impl Tier<'_> {
    /// Newton's step for given right sides; of every item the share `free` moves, and `waiting`
    /// is what the others lack.
    ///
    /// Where hardly anything leaks, the common part of the step is the quotient of two
    /// small numbers: it is taken apart, and cut on its own.
    fn newton(
        &self,
        theta: &[f64],
        emitted: &Emitted,
        right: &[f64],
        free: &[f64],
        waiting: f64,
    ) -> Option<Vec<f64>> {
        let moving = (0..theta.len()).filter(|&item| free[item] > 0.0);
        let Some(heaviest) = moving.max_by(|&a, &b| emitted.value[a].total_cmp(&emitted.value[b]))
        else {
            return Some(vec![0.0; theta.len()]);
        };
        let mut common = 0.0;
        if !self.outer() || waiting > NOTHING {
            let (mut step, shared) = self.balance(theta, emitted, right, free)?;
            // What is rejected follows the mean by leaks. A single token may stand for
            // a few that leave the others nearly alone: the step is then theirs only.
            common = if self.outer() { step[heaviest] } else { shared };
            let better = self.curved(common, emitted);
            let far = 2.0 * LONGEST_STEP;
            if step.iter().all(|step| step.abs() <= far) || (!self.outer() && common.abs() <= far) {
                for (step, free) in step.iter_mut().zip(free) {
                    if *free > 0.0 {
                        *step += better - common;
                    }
                }
                return Some(step);
            }
            common = better;
        }
        let mut pinned = free.to_vec();
        pinned[heaviest] = 0.0;
        let (mut step, _) = self.balance(theta, emitted, right, &pinned)?;
        for (step, free) in step.iter_mut().zip(free) {
            if *free > 0.0 {
                *step = step.clamp(-LONGEST_STEP, LONGEST_STEP) + common;
            }
        }
        Some(step)
    }

    /// The common part of a step, with the curve of what is rejected: if little is, it
    /// falls like e^{-c}, else what is emitted rises like e^c.
    fn curved(&self, common: f64, emitted: &Emitted) -> f64 {
        let curved = if self.outer() {
            common
        } else if 2.0 * emitted.value.iter().sum::<f64>() > self.total {
            -(-common.min(0.95)).ln_1p()
        } else {
            common.max(-0.95).ln_1p()
        };
        curved.clamp(-LONGEST_STEP, LONGEST_STEP)
    }

    /// Solves the Laplacian. And the mean of the step by leaks: what all that is lacking
    /// is to what leaks.
    fn balance(
        &self,
        theta: &[f64],
        emitted: &Emitted,
        right: &[f64],
        free: &[f64],
    ) -> Option<(Vec<f64>, f64)> {
        let count = theta.len();
        let mut edges = emitted.edges.clone()?;
        let mut leaks = vec![0.0; count];
        if !self.outer() {
            for (leak, (decline, theta)) in leaks.iter_mut().zip(emitted.decline.iter().zip(theta))
            {
                *leak = (decline * self.race.reject * (-theta).exp()).max(0.0);
            }
            for (leak, free) in leaks.iter_mut().zip(free) {
                *leak *= free;
            }
        }
        let mut right = right.to_vec();
        for i in 0..count {
            for j in 0..i {
                let edge = &mut edges[i * count + j];
                let all = edge.max(0.0);
                leaks[i] += free[i] * (1.0 - free[j]) * all;
                leaks[j] += free[j] * (1.0 - free[i]) * all;
                *edge = free[i] * free[j] * all;
            }
        }
        let (mut lacking, mut leaking) = (0.0, 0.0);
        for item in 0..count {
            if free[item] <= 0.0 {
                leaks[item] = 1.0;
                right[item] = 0.0;
            } else {
                lacking += right[item];
                leaking += leaks[item];
            }
        }
        let shared = lacking / leaking;
        let step = laplacian(&mut edges, &mut leaks, &mut right)?;
        Some((step, if shared.is_finite() { shared } else { 0.0 }))
    }

    /// Newton's method on the groups, on coarse nodes.
    fn solve_groups(
        &self,
        groups: &Groups,
        touched: f64,
        limit: usize,
    ) -> (Vec<f64>, Emitted, usize) {
        let items = &groups.items;
        let resolution = self.steering(groups);
        let mut theta = self.first(groups, touched);
        let mut emitted = self.emission(items, &theta, resolution, true);
        let mut residual = self.residual(items, &theta, &emitted);
        let (mut iterations, mut stale, mut least) = (0, 0, residual);
        while iterations < limit && residual > GROUPS_SOLVED * touched && stale < STALE {
            iterations += 1;
            let right: Vec<f64> = items
                .wanted
                .iter()
                .zip(&emitted.value)
                .map(|(wanted, value)| wanted - value)
                .collect();
            let held: Vec<bool> = right
                .iter()
                .zip(&theta)
                .map(|(&lacking, &theta)| self.held(theta, lacking))
                .collect();
            let waiting = waiting(&right, &held);
            let free: Vec<f64> = (held.iter())
                .map(|&held| if held { 0.0 } else { 1.0 })
                .collect();
            let mut best: Option<(f64, Vec<f64>, Emitted)> = None;
            if let Some(step) = self.newton(&theta, &emitted, &right, &free, waiting) {
                for share in [1.0, 0.3] {
                    let mut next: Vec<f64> = theta
                        .iter()
                        .zip(&step)
                        .map(|(theta, step)| {
                            let step = share * step;
                            theta + step.clamp(-2.0 * LONGEST_STEP, 2.0 * LONGEST_STEP)
                        })
                        .collect();
                    self.bounded(&mut next);
                    let after = self.emission(items, &next, resolution, true);
                    let now = self.residual(items, &next, &after);
                    if best
                        .as_ref()
                        .is_none_or(|best| now < best.0 || best.0.is_nan())
                    {
                        best = Some((now, next, after));
                    }
                    if now < 0.6 * residual {
                        break;
                    }
                }
            }
            if best
                .as_ref()
                .is_none_or(|best| best.0 > 0.25 * residual || best.0.is_nan())
            {
                let local = items.local(&emitted);
                for share in LOCAL_SHARES {
                    let mut next: Vec<f64> = (theta.iter().zip(&local))
                        .map(|(theta, step)| theta + share * step)
                        .collect();
                    self.bounded(&mut next);
                    let after = self.emission(items, &next, resolution, true);
                    let other = self.residual(items, &next, &after);
                    if best
                        .as_ref()
                        .is_none_or(|best| other < best.0 || best.0.is_nan())
                    {
                        best = Some((other, next, after));
                    }
                    if best.as_ref().is_some_and(|best| best.0 < 0.9 * residual) {
                        break;
                    }
                }
            }
            if let Some((now, next, after)) = best {
                // Coarse nodes may leave a little that no weights can meet.
                stale = if now > 0.7 * least && residual < GROUPS_STALE * touched {
                    stale + 1
                } else {
                    0
                };
                least = least.min(now);
                (residual, theta, emitted) = (now, next, after);
            }
        }
        (theta, emitted, iterations)
    }

    /// Solves the tier, whose tuples have probability `touched`. O(V) a step on all
    /// tokens.
    pub(super) fn solve(&self, touched: f64, tolerance: f64, limit: usize) -> SolvedTier {
        let items = &self.items;
        if self.tokens.is_empty() {
            return SolvedTier::default();
        }
        let groups = self.groups();
        let (group_theta, mut coupled, mut iterations) = self.solve_groups(&groups, touched, limit);
        let standing: Vec<bool> = group_theta
            .iter()
            .map(|&theta| self.outer() && theta >= 0.0)
            .collect();
        let offset: Vec<f64> = group_theta
            .iter()
            .zip(&groups.at)
            .map(|(theta, at)| theta - at)
            .collect();
        let heavy = self.race.heavy.len();
        let mut theta: Scratch<f64> = self
            .spread(&groups, &groups.at, &offset, &standing)
            .iter()
            .zip(&items.goal)
            .map(|(offset, at)| offset + at)
            .collect();
        theta[..heavy].copy_from_slice(&group_theta[..heavy]);
        // Classes of which all groups stand at 0.
        for range in groups.classes.windows(2) {
            if standing[range[0]..range[1]].iter().all(|&stands| stands) {
                theta[groups.starts[range[0]]..groups.starts[range[1]]].fill(0.0);
            }
        }
        self.bounded(&mut theta);
        let mut emitted = self.emission(items, &theta, Resolution::Fine, false);
        let mut residual = self.residual(items, &theta, &emitted);
        let mut best = (residual, theta.clone(), emitted.value.clone());
        let mut stale = 0;
        let mut rate = 0.0;
        // A few light tokens that compete with each other alone, at e^-35 times the weights
        // of all others, would come up by one step after the other.
        let mut stretch = 1.0;
        // Weights before, and the step from them.
        let mut last: Option<(Scratch<f64>, Scratch<f64>)> = None;
        while residual > tolerance && iterations < 2 * limit && stale < STALE * CUT_STALE {
            iterations += 1;
            let lacking: Scratch<f64> = items
                .wanted
                .iter()
                .zip(&emitted.value)
                .map(|(wanted, value)| wanted - value)
                .collect();
            let held: Vec<bool> = lacking
                .iter()
                .zip(&theta)
                .map(|(&lacking, &theta)| self.held(theta, lacking))
                .collect();
            if rate > 0.05 {
                // The Hessian where the weights are now.
                let now: Vec<f64> = groups
                    .starts
                    .windows(2)
                    .zip(&groups.mass)
                    .map(|(range, mass)| {
                        let own = theta[range[0]..range[1]].iter().zip(&self.mass[range[0]..]);
                        own.map(|(theta, q)| theta * (q / mass)).sum()
                    })
                    .collect();
                coupled = self.emission(&groups.items, &now, self.steering(&groups), true);
            }
            // Groups see the sums of their free tokens, which may be a part of them.
            let (mut right, mut diagonal) = (Vec::new(), Vec::new());
            let (mut free, mut stand) = (Vec::new(), Vec::new());
            let (mut group_theta, mut place) = (Vec::new(), groups.at.clone());
            for (range, place) in groups.starts.windows(2).zip(&mut place) {
                let (mut sum, mut slope, mut all, mut any) = (0.0, 0.0, 0.0, false);
                let mut centre = 0.0;
                for item in range[0]..range[1] {
                    let own = (emitted.value[item] - emitted.decline[item]).max(0.0);
                    all += own;
                    if !held[item] {
                        sum += lacking[item];
                        slope += own;
                        centre += own * items.goal[item];
                        any = true;
                    }
                }
                // Where what moves is.
                centre /= slope;
                if centre >= items.goal[range[0]] && centre <= items.goal[range[1] - 1] {
                    *place = centre;
                }
                right.push(sum);
                diagonal.push(slope);
                stand.push(!any);
                free.push(match any {
                    false => 0.0,
                    true if slope > 0.0 => slope / all,
                    true => 1.0,
                });
                group_theta.push(theta[range[0]]);
            }
            let mut next = theta.clone();
            let local = items.local(&emitted);
            if let Some(step) = self.newton(
                &group_theta,
                &coupled,
                &right,
                &free,
                waiting(&lacking, &held),
            ) {
                let smooth: Vec<f64> = step
                    .iter()
                    .enumerate()
                    .map(|(group, step)| {
                        if group < heavy {
                            *step
                        } else if diagonal[group] > 0.0 {
                            step - right[group] / diagonal[group]
                        } else {
                            0.0
                        }
                    })
                    .collect();
                for (item, carried) in self
                    .spread(&groups, &place, &smooth, &stand)
                    .iter()
                    .enumerate()
                {
                    if held[item] {
                        continue;
                    }
                    let own = if item < heavy { 0.0 } else { local[item] };
                    next[item] += (carried + own).clamp(-2.0 * LONGEST_STEP, 2.0 * LONGEST_STEP);
                }
            }
            let step: Scratch<f64> = next
                .iter()
                .zip(&theta)
                .map(|(next, theta)| next - theta)
                .collect();
            if let Some((from, before)) = last.as_ref().filter(|_| stretch == 1.0) {
                extrapolate((from, before), (&theta, &step), &emitted, &mut next);
            }
            last = Some((theta.clone(), step));
            lengthen(&theta, &mut next, stretch);
            self.bounded(&mut next);
            let mut after = self.emission(items, &next, Resolution::Fine, false);
            let mut now = self.residual(items, &next, &after);
            if now.is_nan() || now > 0.5 * residual {
                for share in LOCAL_SHARES {
                    let mut other: Scratch<f64> = (theta.iter().zip(&local))
                        .map(|(theta, step)| theta + share * step)
                        .collect();
                    lengthen(&theta, &mut other, stretch);
                    self.bounded(&mut other);
                    let plain = self.emission(items, &other, Resolution::Fine, false);
                    let reached = self.residual(items, &other, &plain);
                    if reached < now || now.is_nan() {
                        (now, next, after) = (reached, other, plain);
                    }
                    if now < 0.9 * residual {
                        break;
                    }
                }
            }
            let longest = next.iter().zip(&theta).map(|(next, theta)| next - theta);
            let cut =
                longest.fold(0.0, |most: f64, step| most.max(step.abs())) > 0.99 * LONGEST_STEP;
            rate = now / residual;
            stretch = if cut && (rate - 1.0).abs() <= NO_CHANGE {
                STRETCH.min(2.0 * stretch)
            } else {
                1.0
            };
            (residual, theta, emitted) = (now, next, after);
            if residual < 0.7 * best.0 {
                stale = 0;
            } else {
                // Weights that are still on their way may come to help.
                stale += if cut { 1 } else { CUT_STALE };
            }
            if residual < best.0 {
                best = (residual, theta.clone(), emitted.value.clone());
            }
        }
        SolvedTier {
            weights: weights(&best.1),
            emitted: best.2,
            iterations,
            groups: groups.at.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(value: &[f64], decline: &[f64]) -> Emitted {
        Emitted {
            value: value.to_vec().into(),
            decline: decline.to_vec().into(),
            edges: None,
        }
    }

    fn near(found: f64, expected: f64) {
        let off = (found - expected).abs();
        assert!(off <= 1e-14 * expected.abs().max(1.0), "{found} {expected}");
    }

    /// A step is what is missing in log odds over how fast they rise, and not too long.
    #[test]
    fn local_steps_by_hand() {
        // (low, up, wanted, value, decline, step)
        let even = 0.0f64;
        let third = (1.0f64 / 3.0).ln();
        let rows = [
            // From 1/4 to 1/2, at a slope of 1/5.
            (
                0.0,
                1.0,
                0.5,
                0.25,
                0.05,
                -third / (0.2 * (4.0 + 4.0 / 3.0)),
            ),
            // The same between 1/2 and 1, and between 0 and 2.
            (
                0.5,
                1.0,
                0.75,
                0.625,
                0.525,
                -third / (0.1 * (8.0 + 8.0 / 3.0)),
            ),
            (0.0, 2.0, 1.0, 0.5, 0.1, -third / (0.4 * (2.0 + 2.0 / 3.0))),
            // And back.
            (0.0, 1.0, 0.5, 0.75, 0.55, third / (0.2 * (4.0 + 4.0 / 3.0))),
            // Too long, up and down.
            (0.0, 1.0, 0.5, 0.25, 0.24, 2.0),
            (0.0, 1.0, 0.5, 0.75, 0.74, -2.0),
            // It hardly rises: by no less than a thousandth. Then it does not rise at all.
            (0.0, 1.0, 0.5, 0.5 - 1e-5, 0.5 - 1e-5 - 1e-6, 0.04),
            (0.0, 1.0, 0.5, 0.25, 0.25, 2.0),
            (0.0, 1.0, 0.5, 0.75, 0.75, -2.0),
            (0.0, 1.0, 0.5, 0.75, 0.8, -2.0),
            // Beyond an end it counts as just within: ln 1e-17 and ln 1e14.
            (0.5, 1.0, 0.75, 0.5, -1e17, 0.0),
        ];
        for (low, up, wanted, value, decline, step) in rows {
            let mut found = [7.0];
            local_steps(
                [&[wanted], &[low], &[up], &[even]],
                [&[value], &[decline]],
                &mut found,
            );
            let off = (found[0] - step).abs();
            assert!(
                off < 1e-9,
                "{low} {up} {value} {decline}: {} {step}",
                found[0]
            );
        }
        // At the very ends, and beyond them: as far within as counts.
        for (value, slope, below, above) in [
            (0.0, 1e-15, 1e-17, 1.0),
            (-1e-3, 1e-15, 1e-17, 1.001),
            (1.0, 1e-12, 1.0, 1e-14),
            (1.5, 1e-12, 1.5, 1e-14),
        ] {
            let decline = value - slope;
            let mut found = [0.0];
            local_steps(
                [&[0.5], &[0.0], &[1.0], &[even]],
                [&[value], &[decline]],
                &mut found,
            );
            let odds: f64 = below / above;
            near(
                found[0],
                -odds.ln() / ((value - decline) * (1.0 / below + 1.0 / above)),
            );
        }
    }

    #[test]
    fn cut_steps_alone_are_stretched() {
        let from = [0.0, 1.0, -1.0, 5.0];
        let to = [2.0, 2.5, -3.0, 6.97];
        let stretched = |stretch: f64| {
            let mut to = to;
            lengthen(&from, &mut to, stretch);
            to
        };
        assert_eq!(stretched(1.0), to);
        assert_eq!(stretched(4.0), [8.0, 2.5, -9.0, 6.97]);
    }

    /// Steps of 0.08 and 0.02 go on as 0.02/4^k, which is 0.02/3 more.
    #[test]
    fn geometric_steps_are_added_up() {
        let extrapolated = |before: &[f64], step: &[f64], slopes: &[f64]| {
            let theta: Vec<f64> = before.iter().map(|before| 1.0 + before).collect();
            let mut next: Vec<f64> = theta.iter().zip(step).map(|(at, step)| at + step).collect();
            let emitted = emitted(slopes, &vec![0.0; slopes.len()]);
            extrapolate(
                (&vec![1.0; step.len()], before),
                (&theta, step),
                &emitted,
                &mut next,
            );
            next
        };
        near(extrapolated(&[0.08], &[0.02], &[1.0])[0], 1.1 + 0.02 / 3.0);
        // The ratio is of what emits more as it moves, and moves all.
        let both = extrapolated(&[0.08, 0.04], &[0.02, 0.01], &[0.5, 0.0]);
        near(both[0], 1.1 + 0.02 / 3.0);
        near(both[1], 1.05 + 0.01 / 3.0);
        let both = extrapolated(&[0.08, 0.04], &[0.02, 0.04], &[0.5, -0.5]);
        near(both[0], 1.1 + 0.02 / 3.0);
        near(both[1], 1.08 + 0.04 / 3.0);
        // Ratios of 1/4 and -1/2, weighted: changes of -0.06 and -0.06.
        let both = extrapolated(&[0.08, 0.04], &[0.02, -0.02], &[1.0, 0.5]);
        let share = (0.06 * 0.02 - 0.5 * 0.06 * 0.02) / (1.5 * 0.06 * 0.06);
        near(both[0], 1.1 + share * 0.02);
        near(both[1], 1.02 - share * 0.02);
        // Long ones, ones that hardly shrink, and ones that stand still are left as they are.
        assert_eq!(extrapolated(&[0.4], &[0.11], &[1.0]), [1.4 + 0.11]);
        assert_eq!(extrapolated(&[-0.4], &[-0.11], &[1.0]), [1.0 - 0.4 - 0.11]);
        assert_eq!(extrapolated(&[0.08], &[0.05], &[1.0]), [1.08 + 0.05]);
        assert_eq!(extrapolated(&[0.08], &[0.08], &[1.0]), [1.08 + 0.08]);
    }

    #[test]
    fn held_items_that_lack_something_wait() {
        let lacking = [0.5, 0.25, -1.0, 0.125];
        assert_eq!(waiting(&lacking, &[true, false, true, true]), 0.625);
        assert_eq!(waiting(&lacking, &[false; 4]), 0.0);
    }
}
