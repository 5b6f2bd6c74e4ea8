//! Every cell between the lines of the tokens, in whole numbers.
//!
//! Token i is the line `l_1 a_i + l_2 b_i = p_i`, and lies in the set on its far side. Every
//! cell has a stretch of some line on its boundary. So each line is walked from one end to the
//! other: where another line crosses it, that token changes sides, and between two crossings
//! the sets with and without the line's own token are the two cells there.
//!
//! Three lines through one point, and lines that lie on one another, are taken apart by moving
//! p_i by an infinitesimal that is infinitely smaller for each next token. For targets so
//! close to p some cell is optimal for p as well (`docs/theory/laws.md`, section 4).

use super::two::Two;
use crate::optimum::Optimum;
use crate::optimum::costs::are_within;
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, Zero};
use specgap_number::distribution::{Rational, TwoFloat};
use specgap_number::known::Known;
use std::cmp::Ordering;
use std::collections::HashSet;

/// The most bit operations for sorting the crossings of all lines, operations for evaluating Q
/// in all cells, and bits times cells of exact values.
const LIMITS: [f64; 3] = [4.0e8, 4.0e8, 2.0e9];

/// Values within this of the best are compared exactly.
const NEAR: f64 = 1e-9;

pub(super) fn is_affordable(two: &Two<'_>) -> bool {
    are_within(costs(two), LIMITS)
}

/// Returns what all cells take, as [`LIMITS`] counts it.
fn costs(two: &Two<'_>) -> [f64; 3] {
    let problem = two.problem;
    let (scheme, vocab) = (problem.scheme(), problem.vocab() as f64);
    let cells = 2.0 * vocab * vocab;
    let rows = two.scores.iter().map(|row| row.exact_bits() as f64);
    let bits = problem.target().exact_bits() as f64 + rows.sum::<f64>();
    let each = match &two.polynomial {
        Some(polynomial) => 20.0 * polynomial.terms.len() as f64,
        None => 40.0 * vocab * problem.drafts() as f64 + scheme.exact_scan_cost(),
    };
    [
        vocab * vocab * (vocab + 1.0).log2() * (bits + 64.0),
        cells * each,
        vocab * (scheme.exact_bits() + bits) * (1.0 + scheme.exact_scan_cost()),
    ]
}

/// The tokens that are not on a side anyway: p > 0 and some score.
#[derive(Default)]
struct Lines {
    tokens: Vec<usize>,
    p: Vec<BigInt>,
    a: Vec<BigInt>,
    b: Vec<BigInt>,
}

/// a_j b_i - a_i b_j.
fn minor(lines: &Lines, i: usize, j: usize) -> BigInt {
    &lines.a[j] * &lines.b[i] - &lines.a[i] * &lines.b[j]
}

/// Where the lines of i and j cross, along that of i: numerator over the minor and something
/// positive that depends on i alone.
struct Crossing {
    token: usize,
    numerator: BigInt,
    minor: BigInt,
}

impl Lines {
    /// Returns what scales the crossings along line i: a_i, or b_i where that is 0.
    fn scale(&self, i: usize) -> &[BigInt] {
        if self.a[i].is_zero() {
            &self.b
        } else {
            &self.a
        }
    }

    fn crossing(&self, i: usize, j: usize) -> Option<Crossing> {
        let minor = minor(self, i, j);
        if minor.is_zero() {
            return None;
        }
        let w = self.scale(i);
        Some(Crossing {
            token: j,
            numerator: &self.p[j] * &w[i] - &w[j] * &self.p[i],
            minor,
        })
    }

    /// Returns which of two crossings comes first along line i, the p's being moved.
    fn compare(&self, i: usize, j: &Crossing, k: &Crossing) -> Ordering {
        let sign = |value: BigInt| {
            let flipped = j.minor.is_negative() != k.minor.is_negative();
            let order = value.cmp(&BigInt::zero());
            if flipped { order.reverse() } else { order }
        };
        let order = sign(&j.numerator * &k.minor - &k.numerator * &j.minor);
        if order != Ordering::Equal || j.token == k.token {
            return order;
        }
        // The derivatives by p_i, p_j and p_k; the lowest token is moved the farthest.
        let w = self.scale(i);
        let mut moved = [
            (i, &w[k.token] * &j.minor - &w[j.token] * &k.minor),
            (j.token, &w[i] * &k.minor),
            (k.token, -(&w[i] * &j.minor)),
        ];
        moved.sort_by_key(|(token, _)| *token);
        let first = moved.into_iter().find(|(_, value)| !value.is_zero());
        first.map_or(Ordering::Equal, |(_, value)| sign(value))
    }

    /// Returns whether j is in the set all along line i, which it is parallel to.
    fn is_in_along(&self, i: usize, j: usize) -> bool {
        // w_j = k w_i: k p_i against p_j, with k = w_j / w_i in either score.
        let w = self.scale(i);
        match (&w[j] * &self.p[i]).cmp(&(&self.p[j] * &w[i])) {
            Ordering::Equal => i < j,
            order => order == Ordering::Greater,
        }
    }
}

/// A set, and the masses of it that a value is computed from.
struct Held {
    inside: Vec<bool>,
    p: TwoFloat,
    x: [TwoFloat; 2],
}

struct Best<'a> {
    two: &'a Two<'a>,
    /// Error of Q in `f64`.
    slack: f64,
    float: f64,
    exact: Rational,
    subset: Vec<usize>,
    seen: HashSet<Vec<u64>>,
    visited: u64,
    compared: u64,
}

impl Best<'_> {
    fn offer(&mut self, held: &Held) {
        self.visited += 1;
        let p = held.p.value();
        let tokens = || -> Vec<usize> {
            (0..held.inside.len())
                .filter(|&token| held.inside[token])
                .collect()
        };
        let scheme = self.two.problem.scheme();
        let inside = match &self.two.polynomial {
            Some(polynomial) => polynomial.value(held.x.map(TwoFloat::value)),
            None => scheme.inside(&tokens()),
        };
        if p - inside > self.float + self.slack {
            return;
        }
        let mut key = vec![0u64; held.inside.len().div_ceil(64)];
        for (token, _) in held
            .inside
            .iter()
            .enumerate()
            .filter(|(_, inside)| **inside)
        {
            key[token / 64] |= 1 << (token % 64);
        }
        if !self.seen.insert(key) {
            return;
        }
        self.compared += 1;
        let subset = tokens();
        let target = self.two.problem.target().exact();
        let exact = target.mass(&subset) - scheme.inside_exact(&subset);
        let fewer = exact == self.exact && subset.len() < self.subset.len();
        if exact < self.exact || fewer {
            self.float = self.float.min(p - inside);
            self.exact = exact;
            self.subset = subset;
        }
    }
}

pub(super) fn solve(two: &Two<'_>) -> Optimum {
    let problem = two.problem;
    let vocab = problem.vocab();
    let (p, rows) = (problem.target().exact(), two.scores.map(|row| row.exact()));
    let whole = |value: &BigUint| BigInt::from(value.clone());
    let (mut lines, mut start) = (Lines::default(), vec![false; vocab]);
    for (token, within) in start.iter_mut().enumerate() {
        let scored = rows.iter().any(|row| !row.weights[token].is_zero());
        if two.is_forced(token) || (scored && p.weights[token].is_zero()) {
            *within = true;
        } else if scored {
            lines.tokens.push(token);
            lines.p.push(whole(&p.weights[token]));
            lines.a.push(whole(&rows[0].weights[token]));
            lines.b.push(whole(&rows[1].weights[token]));
        }
    }

    let order: Vec<usize> = (0..vocab).collect();
    let slack = match two.polynomial {
        Some(_) => NEAR,
        None => NEAR.max(4.0 * problem.scheme().prefix_scan(&order).absolute_error),
    };
    let nothing = problem.scheme().nothing_exact();
    let mut best = Best {
        two,
        slack,
        float: -problem.scheme().nothing(),
        exact: -nothing,
        subset: Vec::new(),
        seen: HashSet::new(),
        visited: 0,
        compared: 0,
    };
    best.offer(&held(two, &start));
    for i in 0..lines.tokens.len() {
        walk(two, &lines, i, &start, &mut best);
    }
    let note = format!(
        "{} sets between the lines of {} tokens in the plane of two thresholds; {} of them were \
         compared exactly",
        best.visited,
        lines.tokens.len(),
        best.compared
    );
    Optimum {
        rate: Known::exact(Rational::one() + best.exact),
        subset: Some(best.subset),
        note: Some(note),
    }
}

fn held(two: &Two<'_>, inside: &[bool]) -> Held {
    let target = two.problem.target().probabilities();
    let mut held = Held {
        inside: inside.to_vec(),
        p: TwoFloat::ZERO,
        x: [TwoFloat::ZERO; 2],
    };
    for token in (0..inside.len()).filter(|&token| inside[token]) {
        held.p += target[token];
        if !two.is_forced(token) {
            for (x, row) in held.x.iter_mut().zip(two.scores) {
                *x += row.probabilities()[token];
            }
        }
    }
    held
}

/// Offers the cells on both sides of line i.
fn walk(two: &Two<'_>, lines: &Lines, i: usize, start: &[bool], best: &mut Best<'_>) {
    let target = two.problem.target().probabilities();
    let mut inside = start.to_vec();
    let mut crossings = Vec::new();
    for j in (0..lines.tokens.len()).filter(|&j| j != i) {
        match lines.crossing(i, j) {
            None => inside[lines.tokens[j]] = lines.is_in_along(i, j),
            Some(crossing) => {
                // Behind its crossing a token of positive minor is in, before it one of negative.
                inside[lines.tokens[j]] = crossing.minor.is_negative();
                crossings.push(crossing);
            }
        }
    }
    crossings.sort_by(|j, k| lines.compare(i, j, k));
    let mut held = held(two, &inside);
    let toggle = |held: &mut Held, token: usize| {
        let sign = if held.inside[token] { -1.0 } else { 1.0 };
        held.inside[token] = !held.inside[token];
        held.p += sign * target[token];
        for (x, row) in held.x.iter_mut().zip(two.scores) {
            *x += sign * row.probabilities()[token];
        }
    };
    let own = lines.tokens[i];
    let both = |held: &mut Held, best: &mut Best<'_>| {
        best.offer(held);
        toggle(held, own);
        best.offer(held);
        toggle(held, own);
    };
    both(&mut held, best);
    for crossing in crossings {
        toggle(&mut held, lines.tokens[crossing.token]);
        both(&mut held, best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::row_of_bits;
    use crate::problem::Problem;
    use crate::scheme::{Composed, Composition, DraftScheme, Draws, Product};
    use specgap_number::distribution::{Draft, Target};

    /// A draft of each of two models, numbers of some 990 bits: sorting decides.
    #[test]
    fn cells_are_walked_while_they_are_affordable() {
        for (vocab, expected) in [(122, true), (142, false)] {
            let row = |light: usize| row_of_bits(vocab, light, 1000);
            let target = Target::new(&row(0)).unwrap();
            let drafts = [1, 2].map(|token| Draft::new(&row(token)).unwrap());
            let size = vocab as f64;
            let bits = 3.0 * target.exact_bits() as f64 + 64.0;
            let sorting = size * size * (size + 1.0).log2() * bits / LIMITS[0];
            assert!((sorting - 1.0).abs() < 0.25, "{sorting}");
            let law = Product::new(drafts.to_vec()).unwrap();
            let problem = Problem::new("two", target, law).unwrap();
            let two = Two::of(&problem).unwrap();
            assert_eq!(is_affordable(&two), expected, "{sorting}");
        }
    }

    /// Sorting, values and exact values of the cells of four tokens.
    #[test]
    fn costs_of_cells_by_hand() {
        let rows = [[0.25, 0.25, 0.125, 0.375], [0.125, 0.375, 0.25, 0.25]];
        let target = Target::new(&[0.125, 0.125, 0.25, 0.5]).unwrap();
        let costs = |law: std::sync::Arc<dyn DraftScheme>| {
            let problem = Problem::from_law("costs", target.clone(), law.clone()).unwrap();
            let two = Two::of(&problem).unwrap();
            assert!(is_affordable(&two));
            (costs(&two), law.exact_bits(), law.exact_scan_cost())
        };
        // Whole numbers of 3, 3 and 4 bits, with one to spare. Four tokens have 32 cells.
        let sorting = 16.0 * 5f64.log2() * (10.0 + 64.0);
        let drafts = rows.map(|row| Draft::new(&row).unwrap());
        let law = Product::new(drafts.to_vec()).unwrap();
        let (found, bits, scan) = costs(std::sync::Arc::new(law));
        let exact = 4.0 * (bits + 10.0) * (1.0 + scan);
        assert_eq!(found, [sorting, 32.0 * 20.0, exact]);
        // Three draws of one of both, and Q is no polynomial.
        let draws = drafts.map(|draft| Composition::Draws {
            draft,
            count: 3,
            how: Draws::Sequential,
        });
        let law = Composed::new(4, Composition::Union(draws.to_vec())).unwrap();
        let (found, bits, scan) = costs(std::sync::Arc::new(law));
        assert!(scan > 1.0);
        let exact = 4.0 * (bits + 10.0) * (1.0 + scan);
        assert_eq!(found, [sorting, 32.0 * (40.0 * 4.0 * 6.0 + scan), exact]);
    }

    /// Lines through one point come in the order that they have once each p is moved, the lowest
    /// token's the farthest.
    #[test]
    fn lines_through_one_point_come_as_if_they_were_moved() {
        let slopes = [
            (1, 2),
            (2, 1),
            (3, 1),
            (0, 1),
            (1, 3),
            (5, 2),
            (1, 0),
            (4, 7),
        ];
        // At (1, 1); in the second, thousandths of thousandths apart.
        let lines = |unit: BigInt, moved: bool| {
            let of = |number: i32| BigInt::from(number);
            let p = (0u32..).zip(slopes).map(|(token, (a, b))| {
                let further = if moved {
                    BigInt::from(10).pow(21 - 3 * token)
                } else {
                    BigInt::zero()
                };
                of(a + b) * &unit + further
            });
            Lines {
                tokens: (0..slopes.len()).collect(),
                p: p.collect(),
                a: slopes.iter().map(|(a, _)| of(*a)).collect(),
                b: slopes.iter().map(|(_, b)| of(*b)).collect(),
            }
        };
        let (at_one_point, moved) = (
            lines(BigInt::one(), false),
            lines(BigInt::from(10).pow(27), true),
        );
        let each = || 0..slopes.len();
        for i in each() {
            for j in each().filter(|j| *j != i) {
                for k in each().filter(|k| ![i, j].contains(k)) {
                    let order = |lines: &Lines| {
                        let crossing = |other| lines.crossing(i, other).unwrap();
                        lines.compare(i, &crossing(j), &crossing(k))
                    };
                    assert_ne!(order(&moved), Ordering::Equal);
                    assert_eq!(order(&at_one_point), order(&moved), "{i} {j} {k}");
                }
            }
        }
    }
}
