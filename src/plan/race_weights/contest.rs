//! The weights of one half: Newton's method on groups of tokens, then on all.
//!
//! The Hessian of the convex function is the Laplacian of a graph: the edge between i
//! and j is the integral of `s` times what both compete for, and on the inner side
//! each leaks to the rejecting slot. Edges are computed on one node an octave, which
//! steers; what is solved is measured on all nodes with all tokens. On the outer side
//! theta = log w <= 0, and a token that stands at 0 and wants more is held there.

use super::clock::Clock;
use super::side::{Class, Emitted, Rule, Side, base};

/// Steps in log w are cut to this.
const LONGEST_STEP: f64 = 2.0;

/// Most that cut steps are stretched, while they change nothing: by so little that they are
/// far from where they would.
const STRETCH: f64 = 8.0;
const NO_CHANGE: f64 = 1e-3;

/// Range of log w. On the outer side the nodes in s reach down to the least weight;
/// few tokens can afford many.
const FLOOR_OUTER: f64 = -64.0;
const FLOOR_OUTER_FEW: f64 = -250.0;
const FEW: usize = 64;
const FLOOR_INNER: f64 = -600.0;
const CEILING: f64 = 90.0;

/// Widest group, and the most that its mass times its width squared may be.
const WIDEST: f64 = 0.125;
const SPREAD: f64 = 2e-6;

/// Emission left over at which the groups' own problem is solved: its nodes are
/// coarser than that.
const GROUPS_SOLVED: f64 = 1e-6;

/// Below this, steps on groups end after a few that do not help.
const GROUPS_STALE: f64 = 1e-4;

/// Steps that do not help before a solve gives up.
const STALE: usize = 4;

/// Steps on all tokens that were cut and do not help count as one in so many.
const CUT_STALE: usize = 4;

/// Shares of the step that each item takes by its own slope. Two items that compete
/// with each other alone swing for ever at the first.
const LOCAL_SHARES: [f64; 2] = [1.0, 0.5];

/// What held items may lack without calling for a change of scale.
const NOTHING: f64 = 1e-13;

/// Items up to which the Hessian is taken on all nodes.
const SMALL: usize = 16;

/// Tokens or groups: heavy tokens first, then the classes in order.
#[derive(Clone, Debug)]
struct Items {
    classes: Vec<Class>,
    wanted: Vec<f64>,
    /// Emission at weight 0 and at infinite weight.
    low: Vec<f64>,
    up: Vec<f64>,
}

/// One half of the split, ready to be solved.
#[derive(Clone, Debug)]
pub(super) struct Contest<'a> {
    clock: &'a Clock,
    side: Side,
    /// Token of every item.
    pub(super) tokens: Vec<u32>,
    items: Items,
    mass: Vec<f64>,
    at: Vec<f64>,
    /// Probability of the side's tuples, by the same integral; on the outer side, of
    /// all tuples.
    pub(super) total: f64,
}

/// Contiguous tokens of a class that share a weight while groups are solved.
struct Groups {
    items: Items,
    /// First item of every group, and the end; heavy tokens are groups of one.
    starts: Vec<usize>,
    at: Vec<f64>,
    mass: Vec<f64>,
    /// First group of every class, and the end.
    classes: Vec<usize>,
}

/// A solved side.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) weights: Vec<f64>,
    pub(super) emitted: Vec<f64>,
    pub(super) iterations: usize,
    pub(super) groups: usize,
}

fn coordinate(value: f64, low: f64, up: f64) -> f64 {
    let (below, above) = ((value - low).max(1e-300), (up - value).max(1e-300));
    (below / above).ln().clamp(-60.0, 60.0)
}

impl Items {
    /// Newton step in log w for one item in a given field, in log odds.
    fn local(&self, item: usize, emitted: &Emitted) -> f64 {
        let (value, wanted) = (emitted.value[item], self.wanted[item]);
        let slope = value - emitted.decline[item];
        let up = self.up[item];
        let margin = 1e-14 * up;
        let below = (value - self.low[item]).max(1e-3 * margin);
        let above = (up - value).max(margin);
        let rate = slope * (1.0 / below + 1.0 / above);
        let goal = coordinate(wanted, self.low[item], up);
        let offset = goal - (below / above).ln();
        if rate.is_nan() || rate <= 0.0 {
            return if value < wanted {
                LONGEST_STEP
            } else {
                -LONGEST_STEP
            };
        }
        (offset / rate.max(1e-3)).clamp(-LONGEST_STEP, LONGEST_STEP)
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

/// What held items lack.
fn waiting(lacking: &[f64], held: &[bool]) -> f64 {
    let terms = lacking.iter().zip(held).filter(|(_, held)| **held);
    terms.map(|(lacking, _)| lacking.max(0.0)).sum()
}

/// Solves `(diagonal of sums + leaks - edges) x = right`; the lower triangle of
/// `edges` is read and destroyed. Nothing is subtracted.
fn eliminate(edges: &mut [f64], leaks: &mut [f64], right: &mut [f64]) -> Vec<f64> {
    let count = leaks.len();
    let mut diagonal = vec![0.0; count];
    for k in (0..count).rev() {
        let (upper, lower) = edges.split_at_mut(k * count);
        let row = &lower[..k];
        let total = row.iter().sum::<f64>() + leaks[k];
        if !total.is_finite() || total <= 0.0 {
            continue;
        }
        diagonal[k] = total;
        for i in 0..k {
            let share = row[i] / total;
            if share == 0.0 {
                continue;
            }
            for (edge, other) in upper[i * count..i * count + i].iter_mut().zip(row) {
                *edge += share * other;
            }
            leaks[i] += share * leaks[k];
            right[i] += share * right[k];
        }
    }
    let mut step = vec![0.0; count];
    for k in 0..count {
        if diagonal[k] > 0.0 {
            let row = &edges[k * count..k * count + k];
            let pull: f64 = row.iter().zip(&step).map(|(a, b)| a * b).sum();
            let value = (right[k] + pull) / diagonal[k];
            step[k] = if value.is_finite() { value } else { 0.0 };
        }
    }
    step
}

impl<'a> Contest<'a> {
    /// Competitors `players`, drafted others `present`, and the mass of those that
    /// must not be drafted.
    pub(super) fn new(
        clock: &'a Clock,
        drafts: usize,
        reject: f64,
        rows: (&[f64], &[f64]),
        players: &[u32],
        present: &[f64],
        absent: f64,
    ) -> Self {
        let (target, draft) = rows;
        let q_of = |token: u32| draft[token as usize];
        let mut heavy: Vec<u32> = Vec::new();
        let mut by_terms: Vec<Vec<u32>> = vec![Vec::new(); super::ring::TERMS + 1];
        for &token in players {
            match clock.terms(q_of(token)) {
                Some(terms) => by_terms[terms].push(token),
                None => heavy.push(token),
            }
        }
        let light = crate::distribution::compensated_sum(
            by_terms.iter().flatten().map(|&token| q_of(token)),
        );
        let base = base(clock, drafts, present, absent);
        let heavy_mass: Vec<f64> = heavy.iter().map(|&token| q_of(token)).collect();
        let side = Side::new(clock, drafts, reject, heavy_mass, light, base);
        let classes_of = |by_terms: &[Vec<u32>]| -> Vec<Class> {
            let used = by_terms
                .iter()
                .enumerate()
                .filter(|(_, tokens)| !tokens.is_empty());
            used.map(|(terms, tokens)| Class {
                terms,
                moments: {
                    let scaled: Vec<f64> = tokens
                        .iter()
                        .map(|&token| q_of(token) * clock.scale)
                        .collect();
                    let mut moments = vec![scaled.clone()];
                    for k in 1..terms {
                        let power = moments[k - 1].iter().zip(&scaled);
                        moments.push(power.map(|(power, q)| power * q).collect());
                    }
                    moments
                },
            })
            .collect()
        };
        let list = |by_terms: &[Vec<u32>]| -> Vec<u32> {
            heavy
                .iter()
                .chain(by_terms.iter().flatten())
                .copied()
                .collect()
        };
        let bounds = |classes: &[Class]| -> (Vec<f64>, Vec<f64>, f64) {
            let (up, total) = side.drafted(clock, classes, true);
            let low = if reject > 0.0 {
                vec![0.0; up.len()]
            } else {
                side.drafted(clock, classes, false).0
            };
            (low, up, total)
        };
        // Sorted within each class by where the target lies between its bounds.
        let classes = classes_of(&by_terms);
        let (low, up, _) = bounds(&classes);
        let mut start = heavy.len();
        for tokens in by_terms.iter_mut().filter(|tokens| !tokens.is_empty()) {
            let mut keyed: Vec<(f64, u32)> = tokens
                .iter()
                .enumerate()
                .map(|(item, &token)| {
                    let item = start + item;
                    (
                        coordinate(target[token as usize], low[item], up[item]),
                        token,
                    )
                })
                .collect();
            keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            start += tokens.len();
            *tokens = keyed.into_iter().map(|(_, token)| token).collect();
        }
        let classes = classes_of(&by_terms);
        let (low, up, total) = bounds(&classes);
        let tokens = list(&by_terms);
        let wanted: Vec<f64> = tokens.iter().map(|&token| target[token as usize]).collect();
        let at = (0..tokens.len())
            .map(|item| coordinate(wanted[item], low[item], up[item]))
            .collect();
        Self {
            clock,
            mass: tokens.iter().map(|&token| q_of(token)).collect(),
            side,
            tokens,
            items: Items {
                classes,
                wanted,
                low,
                up,
            },
            at,
            total,
        }
    }

    fn outer(&self) -> bool {
        self.side.reject == 0.0
    }

    fn floor(&self) -> f64 {
        if !self.outer() {
            FLOOR_INNER
        } else if self.tokens.len() <= FEW {
            FLOOR_OUTER_FEW
        } else {
            FLOOR_OUTER
        }
    }

    fn groups(&self) -> Groups {
        let heavy = self.side.heavy.len();
        let mut groups = Groups {
            items: Items {
                classes: Vec::new(),
                wanted: self.items.wanted[..heavy].to_vec(),
                low: self.items.low[..heavy].to_vec(),
                up: self.items.up[..heavy].to_vec(),
            },
            starts: (0..heavy).collect(),
            at: self.at[..heavy].to_vec(),
            mass: self.mass[..heavy].to_vec(),
            classes: vec![heavy],
        };
        // Light mass is what is drafted of it.
        let total: f64 = self.items.up.iter().sum::<f64>().max(1e-300);
        let mut first = heavy;
        for class in &self.items.classes {
            let end = first + class.len();
            let mut moments = vec![Vec::new(); class.terms];
            let mut start = first;
            while start < end {
                let mut stop = start + 1;
                let mut held = self.items.up[start];
                while stop < end {
                    let width = self.at[stop] - self.at[start];
                    held += self.items.up[stop];
                    if width > 8.0 * WIDEST
                        || (width > 1e-12 && held / total * width * width > SPREAD)
                        || (width > WIDEST && held / total > 1e-9)
                    {
                        break;
                    }
                    stop += 1;
                }
                let sum = |values: &[f64]| values[start..stop].iter().sum::<f64>();
                for (row, own) in moments.iter_mut().zip(&class.moments) {
                    row.push(own[start - first..stop - first].iter().sum());
                }
                let mass = sum(&self.mass);
                let centre = self.at[start..stop]
                    .iter()
                    .zip(&self.mass[start..stop])
                    .map(|(at, q)| at * (q / mass))
                    .sum();
                groups.items.wanted.push(sum(&self.items.wanted));
                groups.items.low.push(sum(&self.items.low));
                groups.items.up.push(sum(&self.items.up));
                groups.starts.push(start);
                groups.at.push(centre);
                groups.mass.push(mass);
                start = stop;
            }
            groups.items.classes.push(Class {
                terms: class.terms,
                moments,
            });
            groups.classes.push(groups.starts.len());
            first = end;
        }
        groups.starts.push(self.tokens.len());
        groups
    }

    fn emission(&self, items: &Items, theta: &[f64], rule: Rule, couple: bool) -> Emitted {
        let weights: Vec<f64> = theta.iter().map(|theta| theta.exp()).collect();
        self.side
            .emission(self.clock, &items.classes, &weights, rule, couple)
    }

    /// Whether an item stays at a bound that it pushes against.
    fn held(&self, theta: f64, lacking: f64) -> bool {
        (self.outer() && theta >= 0.0 && lacking > 0.0)
            || (theta <= self.floor() && lacking < 0.0)
            || (!self.outer() && theta >= CEILING && lacking > 0.0)
    }

    /// Sum of |wanted - emitted| over the items that are not held.
    fn residual(&self, items: &Items, theta: &[f64], emitted: &Emitted) -> f64 {
        let terms = items.wanted.iter().zip(&emitted.value).zip(theta);
        terms
            .filter(|((wanted, value), theta)| !self.held(**theta, *wanted - *value))
            .map(|((wanted, value), _)| (wanted - value).abs())
            .sum()
    }

    fn bounded(&self, theta: &mut [f64]) {
        if self.outer() {
            for theta in theta.iter_mut() {
                *theta = theta.min(0.0);
            }
            let most = theta.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for theta in theta.iter_mut() {
                *theta = (*theta - most).max(self.floor());
            }
        } else {
            for theta in theta.iter_mut() {
                *theta = theta.clamp(FLOOR_INNER, CEILING);
            }
        }
    }

    /// Newton's step for given right sides; `held` items do not move, and `waiting` is
    /// what they lack.
    ///
    /// Where hardly anything leaks, the common part of the step is the quotient of two
    /// small numbers: it is taken apart, and cut on its own.
    fn newton(
        &self,
        theta: &[f64],
        emitted: &Emitted,
        right: &[f64],
        held: &[bool],
        waiting: f64,
    ) -> Option<Vec<f64>> {
        let free = (0..theta.len()).filter(|&item| !held[item]);
        let Some(heaviest) = free.max_by(|&a, &b| emitted.value[a].total_cmp(&emitted.value[b]))
        else {
            return Some(vec![0.0; theta.len()]);
        };
        let mut common = 0.0;
        if !self.outer() || waiting > NOTHING {
            let (mut step, shared) = self.balance(theta, emitted, right, held)?;
            // What is rejected follows the mean by leaks. A single token may stand for
            // a few that leave the others nearly alone: the step is then theirs only.
            common = if self.outer() { step[heaviest] } else { shared };
            let better = self.curved(common, emitted);
            let far = 2.0 * LONGEST_STEP;
            if step.iter().all(|step| step.abs() <= far) || (!self.outer() && common.abs() <= far) {
                for (step, held) in step.iter_mut().zip(held) {
                    if !held {
                        *step += better - common;
                    }
                }
                return Some(step);
            }
            common = better;
        }
        let mut pinned = held.to_vec();
        pinned[heaviest] = true;
        let (mut step, _) = self.balance(theta, emitted, right, &pinned)?;
        for (step, held) in step.iter_mut().zip(held) {
            if !held {
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
        held: &[bool],
    ) -> Option<(Vec<f64>, f64)> {
        let count = theta.len();
        let mut edges = emitted.edges.clone()?;
        let mut leaks = vec![0.0; count];
        if !self.outer() {
            for (leak, (decline, theta)) in leaks.iter_mut().zip(emitted.decline.iter().zip(theta))
            {
                *leak = (decline * self.side.reject * (-theta).exp()).max(0.0);
            }
        }
        let mut right = right.to_vec();
        for i in 0..count {
            for j in 0..i {
                let edge = &mut edges[i * count + j];
                *edge = edge.max(0.0);
                match (held[i], held[j]) {
                    (false, true) => leaks[i] += *edge,
                    (true, false) => leaks[j] += *edge,
                    _ => {}
                }
                if held[i] || held[j] {
                    *edge = 0.0;
                }
            }
        }
        let (mut lacking, mut leaking) = (0.0, 0.0);
        for item in 0..count {
            if held[item] {
                leaks[item] = 1.0;
                right[item] = 0.0;
            } else {
                lacking += right[item];
                leaking += leaks[item];
            }
        }
        let shared = lacking / leaking;
        let step = eliminate(&mut edges, &mut leaks, &mut right);
        Some((step, if shared.is_finite() { shared } else { 0.0 }))
    }

    fn first(&self, groups: &Groups, touched: f64) -> Vec<f64> {
        let mut theta = groups.at.clone();
        if self.outer() {
            // Where targets are cut if all are in proportion to q.
            let mut order: Vec<usize> = (0..theta.len()).collect();
            order.sort_by(|&a, &b| theta[a].total_cmp(&theta[b]));
            let mut left = touched;
            let mut open: f64 = groups.mass.iter().sum();
            let mut shift = 0.0;
            for &item in &order {
                shift = theta[item];
                let ratio = groups.items.wanted[item] / groups.mass[item];
                if ratio * open >= left {
                    break;
                }
                left -= groups.items.wanted[item];
                open -= groups.mass[item];
            }
            for theta in &mut theta {
                *theta -= shift;
            }
        }
        for theta in &mut theta {
            *theta = theta.clamp(-40.0, 40.0);
        }
        self.bounded(&mut theta);
        if !self.outer() {
            self.shift(groups, &mut theta, touched);
        }
        theta
    }

    /// Moves all weights of the inner side by one factor, so that as much is rejected
    /// as must be: the secant method in log odds, which are nearly linear.
    fn shift(&self, groups: &Groups, theta: &mut [f64], touched: f64) {
        let goal = coordinate(groups.items.wanted.iter().sum(), 0.0, touched);
        let (mut before, mut rate) = (None, 1.0);
        for _ in 0..8 {
            let emitted = self.emission(&groups.items, theta, self.steering_rule(groups), false);
            let now = coordinate(emitted.value.iter().sum(), 0.0, touched);
            if let Some((last, moved)) = before {
                let slope: f64 = (now - last) / moved;
                if slope.is_finite() && slope > 0.0 {
                    rate = slope.clamp(0.1, 2.0);
                }
            }
            let step = ((goal - now) / rate).clamp(-5.0, 5.0);
            if step.abs() < 0.1 || step.is_nan() {
                break;
            }
            before = Some((now, step));
            for theta in theta.iter_mut() {
                *theta = (*theta + step).clamp(FLOOR_INNER, CEILING);
            }
        }
    }

    /// Newton's method on the groups, on coarse nodes.
    fn solve_groups(
        &self,
        groups: &Groups,
        touched: f64,
        limit: usize,
    ) -> (Vec<f64>, Emitted, usize) {
        let items = &groups.items;
        let rule = self.steering_rule(groups);
        let mut theta = self.first(groups, touched);
        let mut emitted = self.emission(items, &theta, rule, true);
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
            let mut best: Option<(f64, Vec<f64>, Emitted)> = None;
            if let Some(step) = self.newton(&theta, &emitted, &right, &held, waiting) {
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
                    let after = self.emission(items, &next, rule, true);
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
                for share in LOCAL_SHARES {
                    let mut next: Vec<f64> = (0..theta.len())
                        .map(|item| theta[item] + share * items.local(item, &emitted))
                        .collect();
                    self.bounded(&mut next);
                    let after = self.emission(items, &next, rule, true);
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

    fn steering_rule(&self, groups: &Groups) -> Rule {
        if groups.at.len() <= SMALL {
            Rule::Fine
        } else {
            Rule::Coarse
        }
    }

    /// A function on the groups that are not held, carried to every item: the value
    /// itself for heavy tokens, straight lines between groups of a class.
    fn spread(&self, groups: &Groups, value: &[f64], held: &[bool]) -> Vec<f64> {
        let heavy = self.side.heavy.len();
        let mut spread = value[..heavy].to_vec();
        for range in groups.classes.windows(2) {
            let points: Vec<(f64, f64)> = (range[0]..range[1])
                .filter(|&group| !held[group])
                .map(|group| (groups.at[group], value[group]))
                .collect();
            let tokens = groups.starts[range[0]]..groups.starts[range[1]];
            let mut next = 0;
            for &at in &self.at[tokens] {
                while next < points.len() && points[next].0 <= at {
                    next += 1;
                }
                spread.push(
                    match (
                        next.checked_sub(1).and_then(|k| points.get(k)),
                        points.get(next),
                    ) {
                        (Some(a), Some(b)) => {
                            a.1 + (b.1 - a.1) * (at - a.0) / (b.0 - a.0).max(1e-300)
                        }
                        (Some(end), None) | (None, Some(end)) => end.1,
                        (None, None) => 0.0,
                    },
                );
            }
        }
        spread
    }

    /// Solves the side, whose tuples have probability `touched`. O(V) a step on all
    /// tokens.
    pub(super) fn solve(&self, touched: f64, tolerance: f64, limit: usize) -> Solved {
        let items = &self.items;
        if self.tokens.is_empty() {
            return Solved {
                weights: Vec::new(),
                emitted: Vec::new(),
                iterations: 0,
                groups: 0,
            };
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
        let heavy = self.side.heavy.len();
        let mut theta: Vec<f64> = self
            .spread(&groups, &offset, &standing)
            .iter()
            .zip(&self.at)
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
        let mut emitted = self.emission(items, &theta, Rule::Fine, false);
        let mut residual = self.residual(items, &theta, &emitted);
        let mut best = (residual, theta.clone(), emitted.value.clone());
        let mut stale = 0;
        let mut rate = 0.0;
        // A few light tokens that compete with each other alone, at e^-35 times the weights
        // of all others, would come up by one step after the other.
        let mut stretch = 1.0;
        while residual > tolerance && iterations < 2 * limit && stale < STALE * CUT_STALE {
            iterations += 1;
            let lacking: Vec<f64> = items
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
                coupled = self.emission(&groups.items, &now, self.steering_rule(&groups), true);
            }
            // Groups see the sums of their free tokens.
            let (mut right, mut diagonal, mut stand) = (Vec::new(), Vec::new(), Vec::new());
            let mut group_theta = Vec::new();
            for range in groups.starts.windows(2) {
                let free = (range[0]..range[1]).filter(|&item| !held[item]);
                let (mut sum, mut slope, mut any) = (0.0, 0.0, false);
                for item in free {
                    sum += lacking[item];
                    slope += emitted.value[item] - emitted.decline[item];
                    any = true;
                }
                right.push(sum);
                diagonal.push(slope);
                stand.push(!any);
                group_theta.push(theta[range[0]]);
            }
            let mut next = theta.clone();
            if let Some(step) = self.newton(
                &group_theta,
                &coupled,
                &right,
                &stand,
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
                for (item, carried) in self.spread(&groups, &smooth, &stand).iter().enumerate() {
                    if held[item] {
                        continue;
                    }
                    let own = if item < heavy {
                        0.0
                    } else {
                        items.local(item, &emitted)
                    };
                    next[item] += (carried + own).clamp(-2.0 * LONGEST_STEP, 2.0 * LONGEST_STEP);
                }
            }
            lengthen(&theta, &mut next, stretch);
            self.bounded(&mut next);
            let mut after = self.emission(items, &next, Rule::Fine, false);
            let mut now = self.residual(items, &next, &after);
            if now.is_nan() || now > 0.5 * residual {
                for share in LOCAL_SHARES {
                    let mut other: Vec<f64> = (0..theta.len())
                        .map(|item| theta[item] + share * items.local(item, &emitted))
                        .collect();
                    lengthen(&theta, &mut other, stretch);
                    self.bounded(&mut other);
                    let plain = self.emission(items, &other, Rule::Fine, false);
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
        Solved {
            weights: best.1.iter().map(|theta| theta.exp()).collect(),
            emitted: best.2,
            iterations,
            groups: groups.at.len(),
        }
    }
}
