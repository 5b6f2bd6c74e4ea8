//! alpha* by submodular minimisation, for any law.
//!
//! Q(H) is the sum of D over the sets inside H, so Q is supermodular and
//! F = P - Q submodular, with F(empty) = 0 but for laws that may draft nothing, where
//! F - F(empty) stands for F. Its minimum equals the largest sum of
//! negative parts over the base polytope (Edmonds), and the two meet at the
//! point of least norm (Fujishige), which Wolfe's algorithm finds. Any convex
//! combination of bases proves a lower bound and any subset an upper one, so the
//! answer carries its own duality gap, recomputed in exact arithmetic.

use super::Optimum;
use super::costs::are_within;
use super::ratio_scan::float_order;
use crate::problem::Problem;
use crate::scheme::Score;
use num_traits::{One, Zero};
use specgap_number::distribution::{
    PROBABILITY_RELATIVE_ERROR, Rational, compensated_sum, exact_value, round_down, round_up,
};
use specgap_number::known::Known;

/// Largest vocabulary that is tried; each step sorts V tokens, scans the law
/// once and solves a system of at most V + 1 equations.
pub const LARGEST_VOCAB: usize = 256;

/// Stop when upper and lower bound are this close, in `f64`.
const GAP: f64 = 1e-12;

/// Most floating-point operations that the search may take.
const WORK_LIMIT: f64 = 4.0e9;

/// The same of [`enclose`], which is asked of row after row.
const ROW_WORK_LIMIT: f64 = 6.0e7;

/// How often the scores are weighed again by the best set so far.
const WEIGHINGS: usize = 12;

/// Bounds are recomputed exactly while the bits of all orders and of all sets stay within these.
const EXACT_LIMITS: [f64; 2] = [1.0e6, 1.0e7];

/// Tokens in the order of a base's greedy construction.
type Order = Vec<usize>;

/// Minimises P - Q by the minimum-norm point (Fujishige and Wolfe).
///
/// # Exactness
/// Enclosed: the subset's value above, the base's negative part below. Both are
/// recomputed as exact rationals and rounded outwards where numbers are small
/// enough; the width is the duality gap. Where they coincide the answer is exact.
///
/// # Complexity
/// Each step one prefix scan, O(V log V) for sorting and O(k^3) for k <= V + 1
/// bases; at most `20 V + 200` steps and a fixed budget of operations, after which
/// the gap reached is reported.
///
/// # Errors
/// `None` if a law's numbers left the range of `f64`, so that there is no base to
/// recompute a bound from.
pub fn solve(problem: &Problem) -> Option<Optimum> {
    solve_within(problem, WORK_LIMIT)
}

/// alpha* between bounds at any vocabulary: the same search with a budget for a row, which begins
/// along the law's scores.
///
/// # Exactness
/// Enclosed. Every set that is met is an upper bound, and so is the one that is returned; every
/// mean of bases is a lower one (Edmonds). How far they are apart is what the budget left.
///
/// # Errors
/// As [`solve`].
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::optimum::submodular;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::Product;
/// let rows = [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]];
/// let rows = rows.iter().map(|row| Draft::new(row)).collect::<Result<_, _>>()?;
/// let target = Target::new(&[0.1, 0.2, 0.7])?;
/// let problem = Problem::new("three models", target, Product::new(rows).unwrap())?;
/// let found = submodular::enclose(&problem).unwrap().rate;
/// // H = {0, 1}: 1 + 0.3 - 0.9 * 0.4 * 0.9.
/// assert!((found.upper() - 0.976).abs() < 1e-12 && found.width() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn enclose(problem: &Problem) -> Option<Optimum> {
    run(Search::along_scores(problem), ROW_WORK_LIMIT)
}

fn solve_within(problem: &Problem, limit: f64) -> Option<Optimum> {
    let order = (0..problem.vocab()).collect();
    run(Search::new(problem, order), limit)
}

fn run(mut search: Search<'_>, limit: f64) -> Option<Optimum> {
    let problem = search.problem;
    let mut work = 0.0;
    for _ in 0..20 * problem.vocab() + 200 {
        work += search.step_cost();
        if work > limit || search.upper.0 - search.lower.0 <= GAP || !search.step() {
            break;
        }
    }
    search.certificate()
}

struct Search<'a> {
    problem: &'a Problem,
    bases: Vec<(Order, Vec<f64>)>,
    /// Inner products of the bases.
    gram: Vec<Vec<f64>>,
    shares: Vec<f64>,
    point: Vec<f64>,
    /// F of the best subset, and the subset.
    upper: (f64, Vec<usize>),
    /// Largest negative part, with the bases and shares that have it.
    lower: (f64, Vec<Order>, Vec<f64>),
    /// How often Q was scanned along an order of all tokens.
    scans: u64,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, order: Order) -> Self {
        let mut search = Self::before(problem);
        let base = search.base(&order);
        search.point.clone_from(&base);
        search.push(order, base);
        search.note_lower();
        search
    }

    /// From the best order by the law's scores over p: each by itself, then with weights. Where Q
    /// is a product of powers of masses, 1/mass of the best set is what its thresholds have
    /// (`docs/theory/laws.md`, Theorem 4); elsewhere it is a guess.
    fn along_scores(problem: &'a Problem) -> Self {
        let (target, vocab) = (problem.target().probabilities(), problem.vocab());
        let mut search = Self::before(problem);
        let mut best: Order = (0..vocab).collect();
        let Some(scores) = problem.scheme().scores() else {
            return Self::new(problem, best);
        };
        let row = |score: &Score<'_>| (0..vocab).map(|token| score.weight(token)).collect();
        let rows: Vec<Vec<f64>> = scores.distinct.iter().map(row).collect();
        let mut least = f64::INFINITY;
        let mut tried = |search: &mut Self, weights: &[f64]| {
            let mixed = |token| match scores.forced.binary_search(&token) {
                Ok(_) => f64::INFINITY,
                Err(_) => rows
                    .iter()
                    .zip(weights)
                    .map(|(row, by)| row[token] * by)
                    .sum(),
            };
            let mixed: Vec<f64> = (0..vocab).map(mixed).collect();
            let mut order = float_order(target, &mixed);
            order.extend((0..vocab).filter(|&token| !(target[token] > 0.0 || mixed[token] > 0.0)));
            search.base(&order);
            let improved = search.upper.0 < least;
            if improved {
                least = search.upper.0;
                best = order;
            }
            improved
        };
        for alone in 0..rows.len() {
            let mut weights = vec![0.0; rows.len()];
            weights[alone] = 1.0;
            tried(&mut search, &weights);
        }
        for _ in 0..WEIGHINGS {
            let mass = |row: &Vec<f64>| search.upper.1.iter().map(|&token| row[token]).sum::<f64>();
            let weights = rows.iter().map(|row| mass(row).max(1e-12).recip());
            let weights: Vec<f64> = weights.collect();
            if !tried(&mut search, &weights) {
                break;
            }
        }
        let found = (search.upper, search.scans);
        let mut search = Self::new(problem, best);
        search.scans += found.1;
        if found.0.0 < search.upper.0 {
            search.upper = found.0;
        }
        search
    }

    fn before(problem: &'a Problem) -> Self {
        Self {
            problem,
            bases: Vec::new(),
            gram: Vec::new(),
            shares: vec![1.0],
            point: Vec::new(),
            upper: (-problem.scheme().nothing(), Vec::new()),
            lower: (f64::NEG_INFINITY, Vec::new(), Vec::new()),
            scans: 0,
        }
    }

    /// The extreme base of an order: increments of F along it. Also remembers
    /// the best prefix as a subset.
    fn base(&mut self, order: &[usize]) -> Vec<f64> {
        self.scans += 1;
        let target = self.problem.target().probabilities();
        let scan = self.problem.scheme().prefix_scan(order);
        let mut base = vec![0.0; target.len()];
        let mut before = self.problem.scheme().nothing();
        let mut held = specgap_number::distribution::TwoFloat::ZERO;
        let mut best = None;
        for (position, (&token, &inside)) in order.iter().zip(&scan.inside).enumerate() {
            base[token] = target[token] - (inside - before);
            before = inside;
            held += target[token];
            let value = held.value() - inside;
            if value < self.upper.0 {
                self.upper.0 = value;
                best = Some(position);
            }
        }
        if let Some(position) = best {
            self.upper.1 = order[..=position].to_vec();
            self.upper.1.sort_unstable();
        }
        base
    }

    fn push(&mut self, order: Order, base: Vec<f64>) {
        let others = self.bases.iter();
        let mut row: Vec<f64> = others.map(|(_, other)| dot(other, &base)).collect();
        for (known, &product) in self.gram.iter_mut().zip(&row) {
            known.push(product);
        }
        row.push(dot(&base, &base));
        self.gram.push(row);
        self.bases.push((order, base));
    }

    fn note_lower(&mut self) {
        let negative = compensated_sum(self.point.iter().map(|x| x.min(0.0)));
        let negative = negative - self.problem.scheme().nothing();
        if negative > self.lower.0 {
            let orders = self.bases.iter().map(|(order, _)| order.clone()).collect();
            self.lower = (negative, orders, self.shares.clone());
        }
    }

    /// Floating-point operations of a step: a system of as many equations as there are bases,
    /// their sum, and a scan.
    fn step_cost(&self) -> f64 {
        let size = self.bases.len() as f64;
        let scan = 40.0 * self.problem.drafts() as f64;
        size.powi(3) / 3.0 + (size + scan) * self.problem.vocab() as f64
    }

    /// One major step; false when the point of least norm is reached.
    fn step(&mut self) -> bool {
        let mut order: Order = (0..self.point.len()).collect();
        order.sort_by(|&a, &b| self.point[a].total_cmp(&self.point[b]).then(a.cmp(&b)));
        let base = self.base(&order);
        let norm = dot(&self.point, &self.point);
        let progress = norm - dot(&self.point, &base);
        if progress <= 1e-17 * norm.max(1e-12) || self.bases.iter().any(|(_, b)| *b == base) {
            return false;
        }
        self.push(order, base);
        self.shares.push(0.0);
        loop {
            let Some(affine) = self.affine_minimiser() else {
                return false;
            };
            if affine.iter().all(|&share| share > 1e-15) {
                self.shares = affine;
                break;
            }
            let keep = move_towards(&mut self.shares, &affine);
            if keep.iter().all(|&k| !k) {
                return false;
            }
            retain(&mut self.bases, &keep);
            retain(&mut self.shares, &keep);
            retain(&mut self.gram, &keep);
            for row in &mut self.gram {
                retain(row, &keep);
            }
        }
        let total: f64 = self.shares.iter().sum();
        for share in &mut self.shares {
            *share /= total;
        }
        for (token, x) in self.point.iter_mut().enumerate() {
            let bases = self.bases.iter().zip(&self.shares);
            *x = compensated_sum(bases.map(|((_, base), share)| base[token] * share));
        }
        self.note_lower();
        true
    }

    /// Shares (possibly negative) of the point of least norm in the affine hull
    /// of the bases: proportional to the solution of (G + 1) u = 1 with G the
    /// Gram matrix. `None` if the system is singular. It is a Gram matrix itself, so that no
    /// pivot has to be looked for.
    fn affine_minimiser(&self) -> Option<Vec<f64>> {
        let size = self.bases.len();
        let row = |row: &Vec<f64>| -> Vec<f64> {
            let shifted = row.iter().map(|product| 1.0 + product);
            shifted.chain([1.0]).collect()
        };
        let mut rows: Vec<Vec<f64>> = self.gram.iter().map(row).collect();
        for column in 0..size {
            if rows[column][column] < 1e-14 {
                return None;
            }
            let (above, below) = rows.split_at_mut(column + 1);
            let pivot_row = &above[column];
            for row in below {
                let factor = row[column] / pivot_row[column];
                for (entry, pivot) in row[column..].iter_mut().zip(&pivot_row[column..]) {
                    *entry -= factor * pivot;
                }
            }
        }
        let mut solution = vec![0.0; size];
        for i in (0..size).rev() {
            let known: f64 = (i + 1..size).map(|j| rows[i][j] * solution[j]).sum();
            solution[i] = (rows[i][size] - known) / rows[i][i];
        }
        let total: f64 = solution.iter().sum();
        let is_usable = total.is_finite() && total != 0.0;
        is_usable.then(|| solution.iter().map(|value| value / total).collect())
    }

    /// Bits of the entries of all orders, and of all sets.
    fn exact_costs(&self) -> [f64; 2] {
        let scheme = self.problem.scheme();
        let bits = scheme.exact_bits() + self.problem.target().exact_bits() as f64;
        let entries = self.problem.vocab() as f64 * self.lower.1.len() as f64;
        [bits * entries, scheme.set_count() * bits]
    }

    /// Upper and lower bound again, from the subset and the orders alone.
    fn certificate(&self) -> Option<Optimum> {
        let shares = &self.lower.2;
        let usable = shares.iter().all(|share| share.is_finite())
            && shares.iter().any(|&share| share > 0.0)
            && self.lower.0.is_finite()
            && self.upper.0.is_finite();
        if !usable {
            return None;
        }
        let subset = self.upper.1.clone();
        let scheme = self.problem.scheme();
        let rate = if are_within(self.exact_costs(), EXACT_LIMITS) {
            let upper = Rational::one() + self.exact_difference(&subset);
            let lower = Rational::one() + self.exact_lower();
            if lower == upper {
                Known::exact(upper)
            } else {
                let (below, above) = (round_down(&lower), round_up(&upper));
                Known::rate(round_up(&upper), below, above)
            }
        } else {
            let scan_error = scheme.prefix_scan(&(0..self.problem.vocab()).collect::<Vec<_>>());
            let error = scan_error.absolute_error + PROBABILITY_RELATIVE_ERROR + f64::EPSILON;
            let slack = 3.0 * error * self.problem.vocab() as f64;
            let value = 1.0 + self.upper.0;
            Known::rate(value, 1.0 + self.lower.0 - slack, value + error)
        };
        let note = Some(format!(
            "duality gap {:.1e}; orders along which Q was scanned: {}",
            rate.width(),
            self.scans
        ));
        Some(Optimum {
            rate,
            subset: Some(subset),
            note,
        })
    }

    fn exact_difference(&self, subset: &[usize]) -> Rational {
        self.problem.target().exact().mass(subset) - self.problem.scheme().inside_exact(subset)
    }

    fn exact_lower(&self) -> Rational {
        let target = self.problem.target().exact();
        let exact = |share: &f64| exact_value(share.max(0.0)).unwrap_or_default();
        let shares: Vec<Rational> = self.lower.2.iter().map(exact).collect();
        let total: Rational = shares.iter().sum();
        let mut gained = vec![Rational::zero(); self.problem.vocab()];
        for (order, share) in self.lower.1.iter().zip(&shares) {
            let mut before = self.problem.scheme().nothing_exact();
            let along = self.problem.scheme().prefix_scan_exact(order);
            for (&token, inside) in order.iter().zip(along) {
                gained[token] += (&inside - before) * share;
                before = inside;
            }
        }
        let gained = gained.into_iter().enumerate();
        let each = gained.map(|(token, gained)| target.probability(token) - gained / &total);
        let negative: Rational = each.filter(|x| *x < Rational::zero()).sum();
        negative - self.problem.scheme().nothing_exact()
    }
}

/// Moves shares towards those of the affine minimiser until one vanishes. Says which are left.
fn move_towards(shares: &mut [f64], affine: &[f64]) -> Vec<bool> {
    let mut length: f64 = 1.0;
    for (&now, &then) in shares.iter().zip(affine) {
        if then < now && then <= 1e-15 {
            length = length.min(now / (now - then));
        }
    }
    for (now, then) in shares.iter_mut().zip(affine) {
        *now += length * (then - *now);
    }
    let smallest = shares.iter().copied().fold(f64::INFINITY, f64::min);
    shares.iter().map(|&s| s > smallest.max(1e-15)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    compensated_sum(a.iter().zip(b).map(|(x, y)| x * y))
}

/// Keeps the entries whose flag is set.
fn retain<T>(entries: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter();
    entries.retain(|_| flags.next().copied().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::{flow, iid, row_of_bits};
    use crate::scheme::tests::normalised;
    use crate::scheme::{Composed, Composition, DraftScheme, Draws, Product};
    use specgap_number::distribution::{Draft, Target};
    use std::sync::Arc;

    /// Three models, and a list of tokens beside two: what a flow finds exactly is between the
    /// bounds, which a search without a budget would let meet.
    #[test]
    fn bounds_hold_what_a_flow_finds() {
        let row = |seed: u64| -> Vec<f64> {
            let weights = (0..9u64).map(|i| ((i * i + seed) * 2_654_435_761 % 97 + 1) as f64);
            normalised(&weights.collect::<Vec<f64>>())
        };
        let draft = |seed| Draft::new(&row(seed)).unwrap();
        for seed in 0..20 {
            let three = Product::new((1..4).map(|k| draft(7 * seed + k)).collect()).unwrap();
            let draws = |draft| Composition::Draws {
                draft,
                count: 2,
                how: Draws::Sequential,
            };
            let listed = Composition::Mixture(vec![
                (Rational::one(), Composition::Fixed(vec![2, 5])),
                (Rational::one(), draws(draft(seed + 50))),
                (Rational::one(), draws(draft(seed + 60))),
            ]);
            let listed = Composed::new(9, listed).unwrap();
            let laws: [Arc<dyn DraftScheme>; 2] = [Arc::new(three), Arc::new(listed)];
            for law in laws {
                let target = Target::new(&row(seed + 90)).unwrap();
                let problem = Problem::from_law("bounds", target, law).unwrap();
                let truth = flow::solve(&problem).optimum().rate;
                let found = enclose(&problem).unwrap();
                assert!(found.rate.lower() <= truth.upper(), "{found:?} {truth:?}");
                assert!(truth.lower() <= found.rate.upper(), "{found:?} {truth:?}");
                assert!(found.rate.width() < 1e-9, "{found:?}");
                let subset = found.subset.unwrap();
                let target = problem.target().exact().mass(&subset);
                let cut = target - problem.scheme().inside_exact(&subset);
                let proved = round_down(&(Rational::one() + cut));
                assert!(proved <= found.rate.upper(), "{proved} {:?}", found.rate);
            }
        }
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        let problem = iid(&[0.5, 0.5], &[0.75, 0.25], 2);
        let search = || Search::new(&problem, vec![0, 1]);
        assert!(search().certificate().is_some());
        for shares in [vec![f64::NAN], vec![f64::INFINITY], vec![0.0], vec![]] {
            let mut search = search();
            search.lower.2 = shares;
            assert!(search.certificate().is_none(), "{:?}", search.lower);
        }
        let mut search = search();
        search.upper.0 = f64::NAN;
        assert!(search.certificate().is_none());
    }

    /// p = q, one draft, numbers of some 990 bits: the point of least norm is any
    /// order's, and proves that alpha* = 1: in fractions while V times the bits of as many orders
    /// are within the limit.
    #[test]
    fn certificates_are_exact_while_they_are_cheap() {
        for (vocab, orders, is_exact) in [
            (490, 1, true),
            (520, 1, false),
            (122, 4, true),
            (130, 4, false),
        ] {
            let row = row_of_bits(vocab, 0, 1000);
            let problem = iid(&row, &row, 1);
            let bits = 2.0 * problem.target().exact_bits() as f64;
            let work = bits * (vocab * orders) as f64 / EXACT_LIMITS[0];
            assert!((work - 1.0).abs() < 0.1, "{work}");
            let mut search = Search::new(&problem, (0..problem.vocab()).collect());
            search.lower.1 = vec![search.lower.1[0].clone(); orders];
            search.lower.2 = vec![1.0 / orders as f64; orders];
            let rate = search.certificate().unwrap().rate;
            assert_eq!(rate.rational().is_some(), is_exact, "{rate:?}");
            assert_eq!(rate.upper(), 1.0);
        }
    }

    /// No step is begun that would end beyond the limit, and what is known by then is told.
    #[test]
    fn searches_end_where_their_work_does() {
        let row = |factor: usize| -> Vec<f64> {
            let whole = (0..10).map(|token| (token * factor % 11 + 1) as f64);
            normalised(&whole.collect::<Vec<f64>>())
        };
        let problem = iid(&row(5), &row(3), 2);
        let scans = |limit: f64| {
            let found = solve_within(&problem, limit).unwrap();
            let note = found.note.unwrap();
            let scans: u64 = note.rsplit(' ').next().unwrap().parse().unwrap();
            (scans, found.rate.width())
        };
        let step = |bases: f64| bases.powi(3) / 3.0 + (bases + 80.0) * 10.0;
        assert_eq!(scans(step(1.0) - 1.0).0, 1);
        assert_eq!(scans(step(1.0)).0, 2);
        assert_eq!(scans(step(1.0) + step(2.0) - 1.0).0, 2);
        let (few, wide) = scans(step(1.0) + step(2.0));
        assert_eq!(few, 3);
        let (all, narrow) = scans(WORK_LIMIT);
        assert!(all > 3 && narrow < wide, "{all}: {narrow} {wide}");
    }

    /// Shares move until the first of those that fall below 0 is there.
    #[test]
    fn moves_end_where_a_share_vanishes_by_hand() {
        let moved = |shares: [f64; 3], affine: [f64; 3]| {
            let mut shares = shares;
            let keep = move_towards(&mut shares, &affine);
            (shares, keep)
        };
        // A quarter of the way, where the last one is 0; half of it would end the second.
        assert_eq!(
            moved([0.25, 0.5, 0.25], [2.25, -0.5, -0.75]),
            ([0.75, 0.25, 0.0], vec![true, true, false])
        );
        // Two at once.
        assert_eq!(
            moved([0.5, 0.125, 0.375], [1.5, -0.125, -0.375]),
            ([1.0, 0.0, 0.0], vec![true, false, false])
        );
        // One that has nothing and shall have less ends it at once.
        assert_eq!(
            moved([0.5, 0.0, 0.5], [1.0, -0.5, 0.5]),
            ([0.5, 0.0, 0.5], vec![true, false, true])
        );
        // One that rises from nothing does not, if only to next to nothing.
        assert_eq!(
            moved([0.5, 0.0, 0.5], [0.25, 1e-16, 0.75]),
            ([0.25, 1e-16, 0.75], vec![true, false, true])
        );
        assert_eq!(
            moved([0.5, 0.5, 0.0], [1.0, -0.5, 0.5]),
            ([0.75, 0.0, 0.25], vec![true, false, true])
        );
    }

    /// Bases of which one is as good as a sum of others have no point of least norm, and the
    /// search is over.
    #[test]
    fn a_step_to_nowhere_is_none() {
        let problem = iid(&[0.25, 0.25, 0.5], &[0.5, 0.25, 0.25], 2);
        let mut search = Search::new(&problem, (0..problem.vocab()).collect());
        let point = search.point.clone();
        let mut order = vec![0, 1, 2];
        order.sort_by(|&a, &b| point[a].total_cmp(&point[b]));
        let next = search.base(&order);
        assert!(next != point);
        let across = 1.0 + dot(&point, &next);
        search.gram[0][0] = across * across / (1.0 + dot(&next, &next)) - 1.0;
        assert!(!search.step());
        assert_eq!((search.point, search.shares.len()), (point, 2));
    }

    /// Too many sets to recompute the bounds exactly: they still hold the exact optimum, and many
    /// steps bring them together.
    #[test]
    fn bounds_in_floating_point_hold_the_exact_optimum() {
        for seed in 1..4u64 {
            let row = |step: u64| -> Vec<f64> {
                let raw = (0..32u64).map(|i| ((i * i * step + i * seed) % 61 + 1) as f64);
                normalised(&raw.collect::<Vec<f64>>())
            };
            let problem = iid(&row(7), &row(11), 6);
            let truth = crate::optimum::ratio_scan::solve(&problem).unwrap().rate;
            assert!(truth.width() < 1e-9 && truth.upper() < 0.99, "{truth:?}");
            let mut search = Search::new(&problem, (0..problem.vocab()).collect());
            // A few steps leave a gap, and more close it.
            for (steps, widest) in [(3, 1.0), (600, 1e-7)] {
                for _ in 0..steps {
                    if search.upper.0 - search.lower.0 <= GAP || !search.step() {
                        break;
                    }
                }
                let found = search.certificate().unwrap().rate;
                assert!(found.lower() <= truth.upper(), "{found:?} {truth:?}");
                assert!(truth.lower() <= found.upper(), "{found:?} {truth:?}");
                assert!(found.width() < widest, "{seed} {steps}: {found:?}");
                assert!(found.rational().is_none());
                // 3 n + 2 of the scan, P and a sum; below, thrice that for every token.
                let error = 21.0 * f64::EPSILON + PROBABILITY_RELATIVE_ERROR;
                assert_eq!(found.value(), 1.0 + search.upper.0);
                let above = found.upper() - found.value();
                assert!(
                    (above - error).abs() < 2.0 * f64::EPSILON,
                    "{above} {error}"
                );
                let below = 1.0 + search.lower.0 - found.lower();
                let cut = found.lower() == 0.0;
                assert!(
                    cut || (below - 96.0 * error).abs() < 2.0 * f64::EPSILON,
                    "{below}"
                );
            }
        }
    }
}
