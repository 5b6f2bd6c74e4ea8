//! The plane of two thresholds, divided until nothing better can be in any part.
//!
//! Q(H) = f(x, y) with x, y the masses of H by the two scores, f a polynomial with coefficients
//! above 0. Then a minimiser H of P - Q satisfies Theorem 4 with l the slopes of f at its own
//! masses. A part of the plane is a box of l. In it,
//!
//! - tokens with p below l w at the box's lower corner are in H, those above it at the upper
//!   corner are out, so that the masses of H lie in a box as well;
//! - the slopes of f there bound l again, and the box shrinks, or vanishes;
//! - P - Q is bounded below: f is convex in each mass, so that for any l
//!   `P(H) - f >= P(H) - l.x(H) + min over the corners c of the masses of (l.c - f(c))`, and the
//!   first two terms are least where just the tokens with p < l w are in H.
//!
//! `docs/theory/laws.md`, section 5, has the proof.

use super::two::{Polynomial, Two};
use crate::optimum::Optimum;
use specgap_number::distribution::{PROBABILITY_RELATIVE_ERROR, TwoFloat};
use specgap_number::known::Known;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

/// A part is given up where it can lie below the best by no more than this.
const GIVEN_UP: f64 = 1e-13;

/// Most tokens that are read before the search ends where it is.
const MOST_READ: u64 = 1_000_000_000;

/// Up to this many tokens that may be on either side, all their subsets are tried.
const TRIED: usize = 10;

/// A token is on a side if p and l w differ by more than this share of them.
const ON_A_SIDE: f64 = 16.0 * f64::EPSILON;

/// Tokens whose p, a and b are in the same proportions, as one.
#[derive(Clone, Copy)]
struct Group {
    p: f64,
    w: [f64; 2],
}

impl Group {
    /// l w.
    fn price(&self, l: [f64; 2]) -> f64 {
        l[0] * self.w[0] + l[1] * self.w[1]
    }
}

/// A part of the plane.
#[derive(Clone)]
struct Part {
    /// Where l lies.
    low: [f64; 2],
    high: [f64; 2],
    /// P and masses of the tokens that are in for all of it.
    p: TwoFloat,
    x: [TwoFloat; 2],
    /// The groups that may be on either side.
    unsure: Vec<u32>,
    /// P - Q is no less than this in it.
    bound: f64,
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Part {}

impl PartialOrd for Part {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Part {
    fn cmp(&self, other: &Self) -> Ordering {
        // The least bound is the next to be looked at.
        other.bound.total_cmp(&self.bound)
    }
}

/// A set by the part it was found in.
struct Found {
    value: f64,
    /// Groups with p below l w here are in.
    low: [f64; 2],
    /// So are these.
    also: Vec<u32>,
}

struct Search<'a> {
    groups: Vec<Group>,
    f: &'a Polynomial,
    best: Found,
    /// The least bound of the parts that were given up.
    given_up: f64,
    parts: u64,
    read: u64,
}

pub(super) fn solve(two: &Two<'_>, f: &Polynomial) -> Optimum {
    let problem = two.problem;
    let target = problem.target().probabilities();
    let rows = two.scores.map(|row| row.probabilities());
    let (mut p, mut x) = (TwoFloat::ZERO, [TwoFloat::ZERO; 2]);
    let mut always = Vec::new();
    let mut groups: Vec<(Group, Vec<usize>)> = Vec::new();
    let mut known: HashMap<[u64; 2], usize> = HashMap::new();
    for token in 0..problem.vocab() {
        let w = rows.map(|row| row[token]);
        if two.is_forced(token) {
            always.push(token);
            p += target[token];
        } else if w == [0.0; 2] {
            continue;
        } else if target[token] == 0.0 {
            always.push(token);
            x[0] += w[0];
            x[1] += w[1];
        } else {
            let ratios = w.map(|w| (w / target[token]).to_bits());
            let at = *known.entry(ratios).or_insert(groups.len());
            if at == groups.len() {
                let none = Group {
                    p: 0.0,
                    w: [0.0; 2],
                };
                groups.push((none, Vec::new()));
            }
            let (group, members) = &mut groups[at];
            group.p += target[token];
            group.w[0] += w[0];
            group.w[1] += w[1];
            members.push(token);
        }
    }

    let nothing = problem.scheme().nothing();
    let mut search = Search::new(
        groups.iter().map(|(group, _)| *group).collect(),
        f,
        -nothing,
    );
    search.run(p, x);

    let mut subset = Vec::new();
    let found = &search.best;
    if !found.low[0].is_nan() {
        subset = always;
        for (index, (group, members)) in groups.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            if is_in(group, found.low) || found.also.binary_search(&index).is_ok() {
                subset.extend(members);
            }
        }
        subset.sort_unstable();
    }
    let held =
        specgap_number::distribution::compensated_sum(subset.iter().map(|&token| target[token]));
    let scan = problem.scheme().prefix_scan(&subset);
    let inside = scan.inside.last().copied().unwrap_or(nothing);
    let value = held - inside;
    let upper = value + scan.absolute_error + PROBABILITY_RELATIVE_ERROR + 4.0 * f64::EPSILON;
    // Rows and groups are rounded, which moves P and the masses by as much as Q has slope; the
    // sums and products of a bound.
    let drafts = problem.drafts() as f64 + f.degree as f64;
    let terms = f.terms.len() as f64;
    let error = (64.0 + 24.0 * drafts + 2.0 * terms) * f64::EPSILON;
    let lower = search.best.value.min(search.given_up) - error;
    let note = format!(
        "{} parts of the plane of two thresholds, {} tokens read in {} groups; P - Q is no less \
         than the best but for {:.1e}",
        search.parts,
        search.read,
        search.groups.len(),
        (value - lower).max(0.0)
    );
    Optimum {
        rate: Known::rate(1.0 + value, 1.0 + lower, 1.0 + upper),
        subset: Some(subset),
        note: Some(note),
    }
}

/// Returns whether a group is in for all l from `low` up.
fn is_in(group: &Group, low: [f64; 2]) -> bool {
    group.p < group.price(low) * (1.0 - ON_A_SIDE)
}

fn is_out(group: &Group, high: [f64; 2]) -> bool {
    group.p > group.price(high) * (1.0 + ON_A_SIDE)
}

impl<'a> Search<'a> {
    /// With the value of nothing at all: found before the search, and the set that is returned if
    /// it is best.
    fn new(groups: Vec<Group>, f: &'a Polynomial, value: f64) -> Self {
        Self {
            groups,
            f,
            best: Found {
                value,
                low: [f64::NAN; 2],
                also: Vec::new(),
            },
            given_up: f64::INFINITY,
            parts: 0,
            read: 0,
        }
    }

    fn run(&mut self, p: TwoFloat, x: [TwoFloat; 2]) {
        let all = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let root = Part {
            low: [0.0; 2],
            high: [f64::INFINITY; 2],
            p,
            x,
            unsure: (0..all).collect(),
            bound: f64::NEG_INFINITY,
        };
        let mut open = BinaryHeap::new();
        open.extend(self.look(root));
        while let Some(part) = open.pop() {
            if part.bound >= self.best.value - GIVEN_UP || self.read > MOST_READ {
                // No other part has a lower bound.
                self.given_up = self.given_up.min(part.bound);
                return;
            }
            match self.halves(&part) {
                Some(halves) => {
                    for half in halves {
                        open.extend(self.look(half));
                    }
                }
                // Too small to be cut.
                None => self.given_up = self.given_up.min(part.bound),
            }
        }
    }

    /// The part without what cannot hold an optimum, and bounded; `None` if nothing is left, or
    /// if it is given up.
    fn look(&mut self, mut part: Part) -> Option<Part> {
        self.parts += 1;
        loop {
            self.settle(&mut part);
            let (near, far) = self.masses(&part);
            let slack = |slope: f64, side: f64| slope * (1.0 + side * 64.0 * f64::EPSILON);
            let (down, up) = (self.f.slopes(near), self.f.slopes(far));
            let mut moved = false;
            for axis in 0..2 {
                let low = slack(down[axis], -(1.0 + self.f.degree as f64));
                let high = slack(up[axis], 1.0 + self.f.degree as f64);
                let width = part.high[axis] - part.low[axis];
                if low > part.low[axis] {
                    part.low[axis] = low;
                }
                if high < part.high[axis] {
                    part.high[axis] = high;
                }
                if part.low[axis] > part.high[axis] {
                    // No set in this part has slopes in this part.
                    return None;
                }
                // `!(<)` also holds for the infinite width at the start.
                let now = part.high[axis] - part.low[axis];
                moved |= width.is_infinite() || now < 0.9 * width;
            }
            if !moved || part.unsure.is_empty() {
                break;
            }
        }
        // So that just the groups that are in at the lower corner are out of `unsure`.
        self.settle(&mut part);
        if part.unsure.len() <= TRIED {
            self.try_all(&part);
            return None;
        }
        part.bound = part.bound.max(self.bound(&part));
        if part.bound >= self.best.value - GIVEN_UP {
            self.given_up = self.given_up.min(part.bound);
            return None;
        }
        Some(part)
    }

    /// Puts tokens on their sides.
    fn settle(&mut self, part: &mut Part) {
        self.read += part.unsure.len() as u64;
        let (groups, low, high) = (&self.groups, part.low, part.high);
        let (p, x) = (&mut part.p, &mut part.x);
        part.unsure.retain(|&index| {
            let group = &groups[index as usize];
            if is_in(group, low) {
                *p += group.p;
                x[0] += group.w[0];
                x[1] += group.w[1];
                return false;
            }
            !is_out(group, high)
        });
    }

    /// The masses without the unsure tokens, and with them.
    fn masses(&self, part: &Part) -> ([f64; 2], [f64; 2]) {
        let mut far = part.x;
        for &index in &part.unsure {
            let w = self.groups[index as usize].w;
            far[0] += w[0];
            far[1] += w[1];
        }
        (part.x.map(TwoFloat::value), far.map(TwoFloat::value))
    }

    /// Offers the set of the sure tokens and some others: of each the place, and its group.
    fn offer(&mut self, part: &Part, value: f64, also: impl Fn(usize, &Group) -> bool) {
        if value < self.best.value {
            let all = part.unsure.iter().enumerate();
            let also = all.filter(|&(at, &index)| also(at, &self.groups[index as usize]));
            self.best = Found {
                value,
                low: part.low,
                also: also.map(|(_, &index)| index).collect(),
            };
        }
    }

    /// All sets of the sure tokens and a few others.
    fn try_all(&mut self, part: &Part) {
        for mask in 0usize..1 << part.unsure.len() {
            let (mut p, mut x) = (part.p, part.x);
            for (bit, &index) in part.unsure.iter().enumerate() {
                if mask >> bit & 1 == 1 {
                    let group = self.groups[index as usize];
                    p += group.p;
                    x[0] += group.w[0];
                    x[1] += group.w[1];
                }
            }
            let value = p.value() - self.f.value(x.map(TwoFloat::value));
            self.offer(part, value, |bit, _| mask >> bit & 1 == 1);
        }
    }

    /// P - Q is no less in this part. Offers the sets that are met on the way.
    fn bound(&mut self, part: &Part) -> f64 {
        let (near, far) = self.masses(part);
        let f = self.f;
        let corners = [near, [far[0], near[1]], [near[0], far[1]], far];
        let values = corners.map(|corner| f.value(corner));
        // The lines between the corners, averaged over both sides.
        let mut chord = f.slopes(near);
        for axis in 0..2 {
            let width = far[axis] - near[axis];
            if width > 0.0 {
                let (one, other) = match axis {
                    0 => (values[1] - values[0], values[3] - values[2]),
                    _ => (values[2] - values[0], values[3] - values[1]),
                };
                chord[axis] = 0.5 * (one + other) / width;
            }
        }
        let middle = [0, 1].map(|axis| 0.5 * (part.low[axis] + part.high[axis]));
        let mut best = f64::NEG_INFINITY;
        for l in [chord, middle] {
            self.read += part.unsure.len() as u64;
            let mut below = TwoFloat::ZERO;
            let (mut p, mut x) = (part.p, part.x);
            for &index in &part.unsure {
                let group = self.groups[index as usize];
                let price = group.price(l);
                if group.p < price {
                    below += group.p - price;
                    p += group.p;
                    x[0] += group.w[0];
                    x[1] += group.w[1];
                }
            }
            let least = corners
                .iter()
                .zip(values)
                .map(|(c, value)| l[0] * (c[0] - near[0]) + l[1] * (c[1] - near[1]) - value)
                .fold(f64::INFINITY, f64::min);
            best = best.max((part.p + below).value() + least);
            let value = p.value() - f.value(x.map(TwoFloat::value));
            self.offer(part, value, |_, group| group.p < group.price(l));
        }
        best
    }

    /// Cuts a part in two, across where it matters more.
    fn halves(&self, part: &Part) -> Option<[Part; 2]> {
        let (near, far) = self.masses(part);
        let matters = |axis: usize| (part.high[axis] - part.low[axis]) * (far[axis] - near[axis]);
        let wider = usize::from(matters(1) > matters(0));
        let cut = |axis: usize| {
            let middle = 0.5 * (part.low[axis] + part.high[axis]);
            (part.low[axis] < middle && middle < part.high[axis]).then_some((axis, middle))
        };
        let (axis, middle) = cut(wider).or_else(|| cut(1 - wider))?;
        let (mut lower, mut upper) = (part.clone(), part.clone());
        lower.high[axis] = middle;
        upper.low[axis] = middle;
        Some([lower, upper])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::thresholds::enclose;
    use crate::problem::Problem;
    use crate::scheme::Product;
    use crate::scheme::tests::normalised;
    use specgap_number::distribution::{Draft, Target};

    /// Tokens of three sorts by p, a and b, none of them alike.
    fn groups(count: usize) -> Vec<Group> {
        let cycle = |i: usize, step: usize| ((i * step + 3) % 17 + 1) as f64 / 400.0;
        (0..count)
            .map(|i| Group {
                p: cycle(i, 5),
                w: [cycle(i, 7), cycle(i, 11)],
            })
            .collect()
    }

    fn search(f: &Polynomial, count: usize) -> Search<'_> {
        Search::new(groups(count), f, 0.0)
    }

    fn part(low: [f64; 2], high: [f64; 2], unsure: std::ops::Range<u32>) -> Part {
        Part {
            low,
            high,
            p: TwoFloat::ZERO,
            x: [TwoFloat::from(0.25), TwoFloat::from(0.1875)],
            unsure: unsure.collect(),
            bound: f64::NEG_INFINITY,
        }
    }

    /// A row that falls with the rank, with noise that its factor makes.
    fn falling(vocab: usize, step: usize, factor: usize) -> Vec<f64> {
        let mass = |token: usize| {
            let noise = ((token * factor + step) % 97) as f64 / 97.0;
            (3.0 * noise).exp() / (1.0 + token as f64).sqrt()
        };
        normalised(&(0..vocab).map(mass).collect::<Vec<f64>>())
    }

    /// A part that lies below the best by next to nothing is given up, and one that lies further
    /// below is not.
    #[test]
    fn parts_that_are_as_good_as_the_best_are_given_up() {
        let f = &polynomials()[0];
        let [p, a, b] = [71, 37, 59].map(|factor| falling(60, 0, factor));
        let looked = |best: f64| {
            let mut search = search(f, 0);
            let groups = (0..60).map(|token| Group {
                p: p[token],
                w: [a[token], b[token]],
            });
            search.groups = groups.collect();
            search.best.value = best;
            let all = Part {
                x: [TwoFloat::ZERO; 2],
                ..part([0.0; 2], [f64::INFINITY; 2], 0..60)
            };
            (search.look(all).map(|part| part.bound), search.given_up)
        };
        let bound = looked(0.0).0.unwrap();
        assert!(bound < -1e-3, "{bound}");
        let near = |share: f64| looked(bound + share * GIVEN_UP);
        assert_eq!(near(2.0), (Some(bound), f64::INFINITY));
        assert_eq!(near(0.5), (None, bound));
    }

    /// Products of one draft of each model, and of two and one.
    fn polynomials() -> [Polynomial; 2] {
        [[1, 1], [2, 1]].map(|powers| {
            let flat = Draft::new(&[0.5, 0.25, 0.25]).unwrap();
            let tilted = Draft::new(&[0.25, 0.25, 0.5]).unwrap();
            let rows = [vec![flat; powers[0]], vec![tilted; powers[1]]];
            let target = Target::new(&[0.25, 0.5, 0.25]).unwrap();
            let law = Product::new(rows.concat()).unwrap();
            let problem = Problem::new("two", target, law).unwrap();
            Two::of(&problem).unwrap().polynomial.unwrap()
        })
    }

    /// P, x and y of a part's sure groups and of those in a mask.
    fn sums(search: &Search<'_>, part: &Part, mask: usize) -> (f64, [f64; 2]) {
        let (mut p, mut x) = (part.p.value(), part.x.map(TwoFloat::value));
        for (bit, &index) in part.unsure.iter().enumerate() {
            if mask >> bit & 1 == 1 {
                let group = search.groups[index as usize];
                p += group.p;
                x[0] += group.w[0];
                x[1] += group.w[1];
            }
        }
        (p, x)
    }

    /// The part of the least bound comes first: what is given up is no less than the bound of the
    /// part that the search stops at, as no other has a lower one.
    #[test]
    fn parts_stand_by_their_bounds() {
        let bounded = |bound: f64| Part {
            bound,
            ..part([0.0; 2], [1.0; 2], 0..0)
        };
        assert!(bounded(-0.5) > bounded(-0.25) && bounded(0.5) < bounded(0.25));
        assert_eq!(
            bounded(0.5).partial_cmp(&bounded(0.5)),
            Some(Ordering::Equal)
        );
        let mut open: BinaryHeap<Part> = [0.25, -0.5, 0.0, -0.25].map(bounded).into();
        let popped: Vec<f64> = std::iter::from_fn(|| open.pop())
            .map(|part| part.bound)
            .collect();
        assert_eq!(popped, [-0.5, -0.25, 0.0, 0.25]);
    }

    /// For every l, P(H) - l.x(H) at its least over the sets, and the corners' least of
    /// l.c - f(c): the better of the chord's l and the middle's is the bound.
    #[test]
    fn a_bound_is_the_best_of_two_lines_by_enumeration() {
        for f in &polynomials() {
            for (low, high) in [([0.1, 0.2], [0.6, 0.9]), ([0.4, 0.3], [0.5, 0.4])] {
                let mut search = search(f, 9);
                let part = part(low, high, 0..9);
                let all = 1usize << 9;
                let (near, far) = (sums(&search, &part, 0).1, sums(&search, &part, all - 1).1);
                let corner = |i: usize| [[near[0], far[0]][i & 1], [near[1], far[1]][i >> 1]];
                let value = |i: usize| f.value(corner(i));
                let width = [far[0] - near[0], far[1] - near[1]];
                let chord = [
                    0.5 * (value(1) - value(0) + value(3) - value(2)) / width[0],
                    0.5 * (value(2) - value(0) + value(3) - value(1)) / width[1],
                ];
                let middle = [0, 1].map(|axis| 0.5 * (low[axis] + high[axis]));
                let of = |l: [f64; 2]| {
                    let sets = (0..all).map(|mask| {
                        let (p, x) = sums(&search, &part, mask);
                        p - l[0] * x[0] - l[1] * x[1]
                    });
                    let corners = (0..4).map(|i| {
                        let c = corner(i);
                        l[0] * c[0] + l[1] * c[1] - value(i)
                    });
                    let least = |all: f64, one: f64| all.min(one);
                    sets.fold(f64::INFINITY, least) + corners.fold(f64::INFINITY, least)
                };
                let expected = of(chord).max(of(middle));
                let truth = (0..all).map(|mask| {
                    let (p, x) = sums(&search, &part, mask);
                    p - f.value(x)
                });
                let truth = truth.fold(f64::INFINITY, f64::min);
                let offered = [chord, middle].map(|l| {
                    let held =
                        (0..9).filter(|&bit| search.groups[bit].p < search.groups[bit].price(l));
                    let (p, x) = sums(&search, &part, held.map(|bit| 1 << bit).sum());
                    p - f.value(x)
                });
                let found = search.bound(&part);
                assert!((found - expected).abs() < 4e-15, "{found} {expected}");
                assert!(found <= truth + 4e-15, "{found} {truth}");
                assert_eq!(search.read, 18);
                // The sets that are met are offered.
                assert!(offered[0].min(offered[1]) < -0.01, "{offered:?}");
                let best = offered[0].min(offered[1]).min(0.0);
                assert!((search.best.value - best).abs() < 4e-15, "{best}");
                // And of a few, all are tried.
                search.try_all(&part);
                assert!((search.best.value - truth.min(0.0)).abs() < 4e-15);
            }
        }
    }

    /// Then the other side is cut, or nothing.
    #[test]
    fn a_side_that_is_too_small_is_not_cut() {
        let f = &polynomials()[0];
        let search = search(f, 9);
        let next = 0.25f64.next_up();
        let [lower, _] = search
            .halves(&part([0.25, 0.0], [next, 1e-30], 0..9))
            .unwrap();
        assert_eq!(lower.high, [next, 5e-31]);
        assert!(search.halves(&part([0.25; 2], [next; 2], 0..9)).is_none());
    }

    #[test]
    fn sides_leave_room_for_rounding() {
        let group = Group {
            p: 1.0,
            w: [0.25, 0.5],
        };
        // 2/4 + 1/2 is p: on neither side. A little more or less decides.
        let price = [2.0, 1.0];
        assert_eq!(group.price(price), 1.0);
        let moved = |share: f64| price.map(|l| l * (1.0 + share));
        for (share, sides) in [
            (0.0, [false, false]),
            (15.0 * f64::EPSILON, [false, false]),
            (17.0 * f64::EPSILON, [true, false]),
            (-15.0 * f64::EPSILON, [false, false]),
            (-17.0 * f64::EPSILON, [false, true]),
        ] {
            assert_eq!(
                [is_in(&group, moved(share)), is_out(&group, moved(share))],
                sides
            );
        }
        // What is settled moves into the sums, or out of the way.
        let f = &polynomials()[0];
        let mut search = search(f, 3);
        search.groups = vec![group; 3];
        search.groups[1].p = 0.5;
        search.groups[2].p = 2.0;
        let mut part = part(price, price, 0..3);
        search.settle(&mut part);
        assert_eq!(part.unsure, [0]);
        assert_eq!(part.p.value(), 0.5);
        assert_eq!(part.x.map(TwoFloat::value), [0.5, 0.6875]);
        assert_eq!(search.read, 3);
    }

    /// Tokens of p = 0 are in, those that are never drafted are out, and tokens alike are one.
    #[test]
    fn tokens_are_searched_in_groups() {
        let target = Target::new(&[0.0, 0.125, 0.0625, 0.3125, 0.5]).unwrap();
        let rows = [[0.25, 0.5, 0.25, 0.0, 0.0], [0.5, 0.25, 0.125, 0.0, 0.125]];
        let all = rows.map(|row| Draft::new(&row).unwrap()).to_vec();
        let problem = Problem::new("groups", target, Product::new(all).unwrap()).unwrap();
        let found = enclose(&problem).unwrap();
        // Tokens 1 and 2 are one, token 4 another; H = {0, 1, 2} has P = 3/16 and Q = 7/8.
        assert_eq!(found.subset, Some(vec![0, 1, 2]));
        assert!((found.rate.value() - 0.3125).abs() < 1e-15, "{found:?}");
        let note = found.note.unwrap();
        assert!(
            note.starts_with("1 parts") && note.contains("in 2 groups"),
            "{note}"
        );
    }

    /// Few tokens are all tried: what is left between the bounds is rounding, as counted.
    #[test]
    fn what_is_allowed_for_rounding() {
        let target = Target::new(&[0.125, 0.125, 0.25, 0.5]).unwrap();
        let rows = [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125]];
        let rows = rows.map(|row| Draft::new(&row).unwrap());
        for (counts, terms) in [([1, 1], 1.0), ([2, 1], 1.0), ([3, 3], 1.0)] {
            let n = (counts[0] + counts[1]) as f64;
            let all = [0, 1].map(|k| vec![rows[k].clone(); counts[k]]).concat();
            let law = Product::new(all).unwrap();
            let problem = Problem::new("few", target.clone(), law).unwrap();
            let found = enclose(&problem).unwrap();
            // H is the first two: P = 1/4 and Q = (3/4)^n, or nothing.
            let value = 1.0 + (0.25 - 0.75f64.powf(n)).min(0.0);
            assert!((found.rate.value() - value).abs() < 1e-15, "{found:?}");
            // 24 for each draft and each degree; the scan's 3 n + 2, and 4 and 2 of P.
            let below = (64.0 + 24.0 * 2.0 * n + 2.0 * terms) * f64::EPSILON;
            let above = (3.0 * n + 2.0 + 4.0) * f64::EPSILON + PROBABILITY_RELATIVE_ERROR;
            let error = found.rate.value() - found.rate.lower();
            assert!((error - below).abs() < 2.0 * f64::EPSILON, "{n}: {error}");
            if value < 1.0 {
                let error = found.rate.upper() - found.rate.value();
                assert!((error - above).abs() < 2.0 * f64::EPSILON, "{n}: {error}");
            }
        }
    }
}
