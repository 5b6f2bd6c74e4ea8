//! The block optimum of K i.i.d. paths as a minimum over L numbers.
//!
//! Take one set `H_l` of prefixes a length l = 1..L. For a block y let in(y) be how many
//! of its prefixes lie in their sets, and out(y) = L - in(y). Then
//!
//! ```text
//! J(H) = sum over l of P(y^l in H_l) + sum over j = 1..L of [ 1 - q(out < j)^K ]
//! ```
//!
//! is at least `E[tau]` of every coupling, whatever the sets are: of the tau accepted
//! prefixes, some lie in their sets, at most in(y) of them, and all others are outside on
//! the draft that shares them, at most the largest out(x) of the K drafts. And some sets
//! attain the optimum. `docs/theory/block-optimum.md` has the proof.
//!
//! # The minimum
//! Let `a_j = q(in >= j)`, which falls in j. J is L + E in(y) - sum of `a_j^K`. Over
//! `a_j` between two numbers, `-a^K` is at least the chord of slope `-s_j` between them;
//! and for any slopes the least value of
//!
//! ```text
//! sum over y of [ p(y) in(y) - q(y) (s_1 + .. + s_in(y)) ]
//! ```
//!
//! over all sets is one pass up the tree: W(x, b) is the sum over tokens of the smaller of
//! W(xy, b) and W(xy, b+1), b being how many prefixes lie in their sets so far. That is a
//! lower bound over a box of a; the sets that attain it give an upper bound; and boxes
//! whose lower bound is not above the best upper one are cut in two, until none is left.
//! A cut goes through the a of those sets, where the chord is exact from then on. There are
//! finitely many such a; so in fractions the two bounds meet.

use specgap_core::tree::TokenTree;
use specgap_number::distribution::{Rational, round_down, round_up};
use specgap_number::known::Known;
use specgap_number::number::{Number, RunningSum};

/// Boxes looked at by [`path_optimum`] before it gives up on closing the bracket, in
/// units of one number of the deepest layer: some ten seconds, and less than a minute where this crate is not
/// optimised.
pub const MOST_WORK: f64 = 7e8;

/// One set of prefixes for each length 1..L: a proof that no verifier of K i.i.d. paths
/// has `E[tau]` above [`Self::bound`] in a round that starts with the target's own law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelSets {
    /// By length, from 1; then by number of the prefix.
    layers: Vec<Vec<bool>>,
}

impl LevelSets {
    /// The sets from one row of flags a length, `layers[l-1][i]` telling whether prefix i of l
    /// tokens is in the set; `None` if they are not L rows of V, V^2, .. V^L entries.
    pub fn new<T: Number>(tree: &TokenTree<T>, layers: Vec<Vec<bool>>) -> Option<Self> {
        let mut all = (1..).zip(&layers);
        let fits = all.all(|(depth, layer)| layer.len() == tree.width(depth));
        (fits && layers.len() == tree.length()).then_some(Self { layers })
    }

    /// Tells whether a prefix lies in the set of its length.
    pub fn contains(&self, node: specgap_core::tree::Node) -> bool {
        let layer = node.depth.checked_sub(1).and_then(|at| self.layers.get(at));
        layer.and_then(|layer| layer.get(node.index)) == Some(&true)
    }

    /// in(y) of every block.
    fn depths_within(&self, vocab: usize) -> Vec<usize> {
        let mut within = vec![0];
        for layer in &self.layers {
            let members = layer.iter().enumerate();
            let more = members.map(|(index, &is_in)| within[index / vocab] + usize::from(is_in));
            within = more.collect();
        }
        within
    }

    /// J(H): at least `E[tau]` of every coupling of K i.i.d. paths with the target's block,
    /// for any sets at all.
    /// Exact in rationals; in `f64` within [`rounding`].
    /// O(V^L).
    pub fn bound<T: Number>(&self, tree: &TokenTree<T>, drafts: usize) -> T {
        let length = tree.length();
        let mut sum = T::Sum::default();
        for (depth, layer) in (1..).zip(&self.layers) {
            let members = layer.iter().zip(tree.target_layer(depth));
            for (_, p) in members.filter(|(is_in, _)| **is_in) {
                sum.add(p);
            }
        }
        // q(out = k), k = 0..L.
        let mut outside = vec![T::Sum::default(); length + 1];
        let within = self.depths_within(tree.vocab());
        for (within, q) in within.iter().zip(tree.draft_layer(length)) {
            outside[length - within].add(q);
        }
        // 1 - q(out < j)^K from the mass of out >= j, so that small values keep their digits.
        let mut tail = T::Sum::default();
        for mass in outside.iter().skip(1).rev() {
            tail.merge(mass);
            let tail = tail.value();
            sum.add(&tail.times(&tail.complement().geometric_sum(drafts)));
        }
        sum.value()
    }
}

/// The block optimum, between two bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct PathOptimum<T> {
    /// The optimum is at least this, but for rounding.
    pub lower: T,
    /// The optimum is at most this, but for rounding: [`LevelSets::bound`] of
    /// [`Self::sets`].
    pub upper: T,
    /// The sets that prove the upper bound.
    pub sets: LevelSets,
    /// Boxes that were looked at.
    pub boxes: usize,
    /// What rounding may have done to each bound: [`rounding`] in `f64`, 0 in rationals.
    pub rounding: f64,
}

/// Returns what a bound of `f64` is off by at most, for blocks of `length` tokens and `drafts`
/// paths.
///
/// With u = 2^-53, a joint probability errs by 3L u relative and so does a cost of a leaf,
/// but for 3 more roundings; sums are kept in two words and rounded once a level; powers and
/// chords take 2K roundings. All of that is relative to what is added up, at most
/// L (K + 1) + L. Twice the sum is allowed.
pub fn rounding(length: usize, drafts: usize) -> f64 {
    let (l, k) = (length as f64, drafts as f64);
    f64::EPSILON * (4.0 * l + 2.0 * k + 8.0) * l * (k + 2.0)
}

/// The largest `E[tau]` of any coupling of K i.i.d. paths with the target's block.
///
/// # Formula
/// The minimum of [`LevelSets::bound`] over all sets; see the [module](self).
///
/// # Exactness
/// In rationals the bounds are exact, and equal unless `most_work` ran out. In `f64`
/// [`PathOptimum::known`] moves each outwards by [`rounding`].
///
/// # Complexity
/// O(L V^L) a box; at most `most_work` / (L V^L) boxes, and at least one. K = 1 takes one.
///
/// # Source
/// This crate's; a Kantorovich-Rubinstein duality between the target and the random set
/// of paths. `docs/theory/block-optimum.md`.
///
/// # Example
/// ```
/// use specgap_exact::block::level_sets::{MOST_WORK, path_optimum};
/// use specgap_number::distribution::{Draft, Rational, Target, format_rational};
/// use specgap_core::problem::BlockProblem;
/// use specgap_core::tree::TokenTree;
/// use std::collections::BTreeMap;
/// let target = BTreeMap::from([(String::new(), Target::new(&[0.5, 0.5])?)]);
/// let draft = BTreeMap::from([(String::new(), Draft::new(&[0.75, 0.25])?)]);
/// let problem = BlockProblem::new("one".to_owned(), 2, 1, 2, target, draft, None)?;
/// let best = path_optimum(&TokenTree::<Rational>::new(&problem), 2, MOST_WORK);
/// assert_eq!(format_rational(&best.upper), "15/16");
/// assert_eq!(best.lower, best.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn path_optimum<T: Number>(
    tree: &TokenTree<T>,
    drafts: usize,
    most_work: f64,
) -> PathOptimum<T> {
    let mut search = Search::new(tree, drafts.max(1));
    let work = (tree.length() * tree.width(tree.length())) as f64;
    let most_boxes = (most_work / work).max(1.0) as usize;
    let lower = search.run(most_boxes);
    PathOptimum {
        lower,
        upper: search.upper,
        sets: search.sets,
        boxes: search.boxes,
        rounding: match T::EXACT {
            true => 0.0,
            false => rounding(tree.length(), drafts),
        },
    }
}

impl PathOptimum<Rational> {
    /// The optimum: exact if the bounds met.
    pub fn known(&self) -> Known {
        if self.lower == self.upper {
            return Known::exact(self.upper.clone());
        }
        let (lower, upper) = (round_down(&self.lower), round_up(&self.upper));
        Known::enclosed(self.upper.to_f64(), lower, upper)
    }
}

impl PathOptimum<f64> {
    /// The optimum, enclosed.
    pub fn known(&self) -> Known {
        let (lower, upper) = (self.lower - self.rounding, self.upper + self.rounding);
        Known::enclosed(self.upper, lower, upper)
    }
}

/// Ranges of `a_1 >= .. >= a_L`, and the least J that they may hold.
#[derive(Clone, Debug)]
struct Region<T> {
    low: Vec<T>,
    high: Vec<T>,
    bound: T,
    /// The range to cut, and where.
    cut: (usize, T),
}

struct Search<'a, T: Number> {
    tree: &'a TokenTree<T>,
    drafts: usize,
    upper: T,
    sets: LevelSets,
    boxes: usize,
    /// The least bound of boxes that are closed but for rounding.
    floor: T,
}

/// Bounds nearer than this share of L are one number in `f64`.
const CLOSED: f64 = 1e-14;

impl<'a, T: Number> Search<'a, T> {
    fn new(tree: &'a TokenTree<T>, drafts: usize) -> Self {
        // No prefix in its set: J = L.
        let layers = (1..=tree.length())
            .map(|depth| vec![false; tree.width(depth)])
            .collect();
        let sets = LevelSets { layers };
        let upper = sets.bound(tree, drafts);
        Self {
            tree,
            drafts,
            floor: upper.clone(),
            upper,
            sets,
            boxes: 0,
        }
    }

    /// Narrows the bracket; returns its lower end.
    fn run(&mut self, most_boxes: usize) -> T {
        let length = self.tree.length();
        let everything = self.look_at(vec![T::zero(); length], vec![T::one(); length]);
        let mut open: Vec<Region<T>> = everything.into_iter().collect();
        while let Some(at) = self.least(&open) {
            let region = open.swap_remove(at);
            if !self.matters(&region.bound) || self.boxes >= most_boxes {
                return self.least_known(&region.bound);
            }
            let (side, place) = region.cut;
            for upper_half in [false, true] {
                let (mut low, mut high) = (region.low.clone(), region.high.clone());
                let end = if upper_half { &mut low } else { &mut high };
                end[side] = place.clone();
                let half = fall(&mut low, &mut high)
                    .then(|| self.look_at(low, high))
                    .flatten();
                if let Some(mut half) = half {
                    if half.bound < region.bound {
                        half.bound = region.bound.clone();
                    }
                    open.push(half);
                }
            }
        }
        self.least_known(&self.upper)
    }

    /// The lower end of the bracket, `bound` being the least of the boxes left.
    fn least_known(&self, bound: &T) -> T {
        self.upper.smaller(bound).smaller(&self.floor)
    }

    fn least(&self, open: &[Region<T>]) -> Option<usize> {
        (0..open.len()).reduce(|least, at| match open[at].bound < open[least].bound {
            true => at,
            false => least,
        })
    }

    /// Tells whether something below the best value may lie above this bound.
    fn matters(&self, bound: &T) -> bool {
        if T::EXACT {
            return *bound < self.upper;
        }
        self.upper.to_f64() - bound.to_f64() > CLOSED * self.tree.length() as f64
    }

    /// The lower bound over a box, and what its sets do for the upper one; `None` if
    /// nothing in the box is of interest.
    fn look_at(&mut self, low: Vec<T>, high: Vec<T>) -> Option<Region<T>> {
        self.boxes += 1;
        let (tree, drafts) = (self.tree, self.drafts);
        let ranges = low.iter().zip(&high);
        let slopes: Vec<T> = ranges.map(|(low, high)| slope(low, high, drafts)).collect();
        let mut sum = T::Sum::default();
        for (low, slope) in low.iter().zip(&slopes) {
            sum.add(&T::one());
            sum.add(&slope.times(low));
            sum.subtract(&low.power(drafts));
        }
        let (least, sets) = least_sets(tree, &slopes);
        sum.add(&least);
        let bound = sum.value();
        let value = sets.bound(tree, drafts);
        let masses = at_least(tree, &sets);
        if value < self.upper {
            self.upper = value;
            self.sets = sets;
        }
        if !self.matters(&bound) {
            return None;
        }
        // Where the chord is off most, at the sets' own masses.
        let mut cut: Option<(T, usize)> = None;
        for (side, mass) in masses.iter().enumerate() {
            if *mass <= low[side] || *mass >= high[side] {
                continue;
            }
            let rise = slopes[side].times(&mass.minus(&low[side]));
            let chord = low[side].power(drafts).plus(&rise);
            let off = chord.excess_over(&mass.power(drafts));
            if cut.as_ref().is_none_or(|(most, _)| off > *most) {
                cut = Some((off, side));
            }
        }
        let Some((_, side)) = cut else {
            // At the ends of a range and beyond them the chord is not above a^K: the bound is
            // at least the sets' value, but for rounding.
            self.floor = self.floor.smaller(&bound);
            return None;
        };
        Some(Region {
            low,
            high,
            bound,
            cut: (side, masses[side].clone()),
        })
    }
}

/// Narrows ranges to what `a_1 >= .. >= a_L` leaves; false if that is nothing.
fn fall<T: Number>(low: &mut [T], high: &mut [T]) -> bool {
    for side in 1..high.len() {
        if high[side] > high[side - 1] {
            high[side] = high[side - 1].clone();
        }
    }
    for side in (1..low.len()).rev() {
        if low[side - 1] < low[side] {
            low[side - 1] = low[side].clone();
        }
    }
    low.iter().zip(high.iter()).all(|(low, high)| low <= high)
}

/// (high^K - low^K) / (high - low), without the differences.
fn slope<T: Number>(low: &T, high: &T, drafts: usize) -> T {
    let mut sum = T::zero();
    let mut power = T::one();
    for _ in 0..drafts {
        sum = sum.times(high).plus(&power);
        power = power.times(low);
    }
    sum
}

/// q(in >= j), j = 1..L.
fn at_least<T: Number>(tree: &TokenTree<T>, sets: &LevelSets) -> Vec<T> {
    let length = tree.length();
    let mut masses = vec![T::Sum::default(); length + 1];
    let within = sets.depths_within(tree.vocab());
    for (within, q) in within.iter().zip(tree.draft_layer(length)) {
        masses[*within].add(q);
    }
    let mut sum = T::Sum::default();
    let falling = masses[1..].iter().rev().map(|mass| {
        sum.merge(mass);
        sum.value()
    });
    let mut falling: Vec<T> = falling.collect();
    falling.reverse();
    falling
}

/// The sets of the least `sum of p(y) in(y) - q(y) (s_1 + .. + s_in(y))`, and that least value.
fn least_sets<T: Number>(tree: &TokenTree<T>, slopes: &[T]) -> (T, LevelSets) {
    let (length, vocab) = (tree.length(), tree.vocab());
    let (target, draft) = (tree.target_layer(length), tree.draft_layer(length));
    // W(y, b) of the blocks, one row a b = 0..L.
    let (mut count, mut sum) = (T::zero(), T::Sum::default());
    let mut values = vec![vec![T::zero(); target.len()]];
    for slope in slopes {
        count = count.plus(&T::one());
        sum.add(slope);
        let sum = sum.value();
        let row = target.iter().zip(draft);
        let row = row.map(|(p, q)| p.times(&count).minus(&q.times(&sum)));
        values.push(row.collect());
    }
    // By length from L down: whether a prefix joins its set, one row a b before it.
    let mut joins: Vec<Vec<Vec<bool>>> = Vec::with_capacity(length);
    for depth in (1..=length).rev() {
        let mut rows = Vec::with_capacity(depth);
        let mut above = Vec::with_capacity(depth);
        for pair in values[..=depth].windows(2) {
            let (stays, rises) = (&pair[0], &pair[1]);
            let joins: Vec<bool> = stays.iter().zip(rises).map(|(s, r)| r < s).collect();
            let sums = (0..stays.len()).step_by(vocab).map(|start| {
                let mut sum = T::Sum::default();
                for at in start..start + vocab {
                    sum.add(if joins[at] { &rises[at] } else { &stays[at] });
                }
                sum.value()
            });
            above.push(sums.collect());
            rows.push(joins);
        }
        joins.push(rows);
        values = above;
    }
    joins.reverse();
    let mut within = vec![0usize];
    let mut layers = Vec::with_capacity(length);
    for rows in &joins {
        let all = 0..within.len() * vocab;
        let joins = |index: usize| rows[within[index / vocab]][index];
        let layer: Vec<bool> = all.clone().map(joins).collect();
        let more = all.map(|index| within[index / vocab] + usize::from(layer[index]));
        within = more.collect();
        layers.push(layer);
    }
    (values[0][0].clone(), LevelSets { layers })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::block::random_problem::random_problem;
    use crate::block::single_draft_optimum;
    use crate::block::transport::block_optimum;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::problem::BlockProblem;
    use specgap_number::distribution::{Draft, Target, ratio};
    use std::collections::BTreeMap;

    /// Random problems from a seed, and their trees in fractions.
    pub(crate) fn random_trees(
        seed: u64,
        count: usize,
        [vocab, length]: [usize; 2],
    ) -> impl Iterator<Item = (BlockProblem, TokenTree<Rational>)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..count).map(move |_| {
            let problem = random_problem(&mut rng, vocab, length);
            let tree = TokenTree::new(&problem);
            (problem, tree)
        })
    }

    #[test]
    fn meets_the_transport_exactly() {
        let mut cut = 0;
        for (vocab, length, drafts) in [(2, 1, 2), (2, 2, 2), (2, 2, 3), (2, 3, 2), (3, 2, 2)] {
            for (problem, tree) in random_trees(7, 12, [vocab, length]) {
                let truth = block_optimum(&tree, drafts).unwrap().unwrap();
                let found = path_optimum(&tree, drafts, MOST_WORK);
                assert_eq!(found.lower, truth, "{vocab} {length} {drafts}");
                assert_eq!(found.upper, truth, "{vocab} {length} {drafts}");
                assert_eq!(found.sets.bound(&tree, drafts), truth);
                assert_eq!(found.known(), Known::exact(truth.clone()));
                cut += found.boxes - 1;
                // One box is a bracket too.
                let rough = path_optimum(&tree, drafts, 0.0);
                assert!(rough.boxes == 1 && rough.lower <= truth && truth <= rough.upper);
                let float = path_optimum(&TokenTree::<f64>::new(&problem), drafts, MOST_WORK);
                let (known, truth) = (float.known(), truth.to_f64());
                assert!(known.lower() <= truth && truth <= known.upper());
                assert!(known.width() < 1e-12, "{known:?}");
            }
        }
        assert!(cut > 100, "{cut} cuts");
    }

    /// Ranges are cut inside. Where the masses lie at their ends there is nothing to cut.
    #[test]
    fn ranges_are_cut_inside() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let (mut cut, mut ended) = (0, 0);
        for trial in 0..200 {
            let problem = random_problem(&mut rng, 2, 2);
            let tree = TokenTree::<Rational>::new(&problem);
            let mut search = Search::new(&tree, 2);
            let unit = Rational::new(1.into(), 16.into());
            let mut at = || {
                let (a, b): (u32, u32) = (rng.random_range(0..16), rng.random_range(1..=16));
                let end = |x: u32| &unit * Rational::from_integer(x.into());
                // Every other range is at 0, where sets are empty.
                if trial % 2 == 0 {
                    (
                        Rational::zero(),
                        end(b) / Rational::from_integer(1000.into()),
                    )
                } else {
                    (end(a / 4), end(12 + b / 4))
                }
            };
            let (low, high): (Vec<_>, Vec<_>) = [at(), at()].into_iter().unzip();
            match search.look_at(low.clone(), high.clone()) {
                Some(region) => {
                    let (side, place) = region.cut;
                    assert!(low[side] < place && place < high[side], "{low:?} {high:?}");
                    cut += 1;
                }
                None => ended += 1,
            }
        }
        assert!(cut > 20 && ended > 20, "{cut} {ended}");
    }

    /// A box costs L V^L; with work for so many, none is opened once they were looked at.
    #[test]
    fn boxes_are_counted_by_what_they_cost() {
        for (seed, [vocab, length, drafts, most]) in [(9, [2usize, 3, 2, 3]), (17, [3, 2, 3, 4])] {
            let work = (most * length * vocab.pow(length as u32)) as f64;
            let (mut stopped, mut narrowed) = (0, 0);
            for (problem, tree) in random_trees(seed, 20, [vocab, length]) {
                let all = path_optimum(&tree, drafts, MOST_WORK);
                let few = path_optimum(&tree, drafts, work);
                let enough = all.boxes.min(most);
                assert!((enough..=most + 1).contains(&few.boxes), "{}", few.boxes);
                assert!(few.lower <= all.lower && all.upper <= few.upper);
                stopped += u32::from(few.boxes >= most && few.lower < few.upper);
                narrowed += u32::from(all.boxes > 8);
                // Rounding does not keep a search going that is done.
                let float = path_optimum(&TokenTree::<f64>::new(&problem), drafts, MOST_WORK);
                let boxes = [float.boxes, all.boxes];
                assert!(float.boxes <= 2 * all.boxes, "{boxes:?}");
            }
            assert!(stopped > 0 && narrowed > 0, "{stopped} {narrowed}");
        }
    }

    /// Bounds of `f64` are moved outwards by what is said of rounding, and so many boxes close
    /// the bracket: fewer would leave it open, and more are waste.
    #[test]
    fn bounds_are_moved_outwards_and_so_many_boxes_close_the_bracket() {
        for (length, drafts, units) in [(1, 1, 42.0), (2, 3, 220.0), (3, 2, 288.0)] {
            assert_eq!(rounding(length, drafts), units * f64::EPSILON);
        }
        let found = |lower: f64, upper: f64| PathOptimum {
            lower,
            upper,
            sets: LevelSets { layers: Vec::new() },
            boxes: 1,
            rounding: 0.125,
        };
        let known = found(1.0, 1.5).known();
        assert_eq!(
            (known.lower(), known.value(), known.upper()),
            (0.875, 1.5, 1.625)
        );
        let third = |numerator: u32| ratio(&numerator.into(), &3u32.into());
        let open = PathOptimum {
            lower: third(1),
            upper: third(2),
            sets: LevelSets { layers: Vec::new() },
            boxes: 1,
            rounding: 0.0,
        };
        let known = open.known();
        assert_eq!(known.kind(), specgap_number::known::Kind::Enclosed);
        assert_eq!(known.lower(), round_down(&third(1)));
        assert_eq!(known.upper(), round_up(&third(2)));
        assert!(known.lower() < known.value() && known.value() <= known.upper());
        let boxes = |vocab, length, drafts| -> Vec<usize> {
            let trees = random_trees(11, 6, [vocab, length]);
            let found = trees.map(|(_, tree)| path_optimum(&tree, drafts, MOST_WORK).boxes);
            found.collect()
        };
        let all = [boxes(2, 2, 2), boxes(3, 2, 2), boxes(2, 3, 3)];
        let expected = [
            [7, 5, 9, 11, 7, 3],
            [11, 9, 13, 21, 9, 19],
            [25, 43, 1, 13, 25, 7],
        ];
        assert_eq!(all, expected);
    }

    /// Shows that the search goes on in fractions where in `f64` the bounds would be one number.
    #[test]
    fn fractions_meet_however_near_the_bounds_are() {
        let small =
            |numerator: u32| ratio(&numerator.into(), &num_bigint::BigUint::from(10u32).pow(17));
        let row = |mass: Rational| vec![Rational::one().minus(&mass), mass];
        let mut searched = 0;
        for (p, q) in [(1, 3), (3, 1), (2, 1)] {
            let target = Target::from_rationals(row(small(p))).unwrap();
            let draft = Draft::from_rationals(row(small(q))).unwrap();
            let target = BTreeMap::from([(String::new(), target)]);
            let draft = BTreeMap::from([(String::new(), draft)]);
            let problem =
                BlockProblem::new("near".to_owned(), 2, 1, 2, target, draft, None).unwrap();
            let tree = TokenTree::<Rational>::new(&problem);
            let truth = block_optimum(&tree, 2).unwrap().unwrap();
            let found = path_optimum(&tree, 2, MOST_WORK);
            assert_eq!((&found.lower, &found.upper), (&truth, &truth), "{p} {q}");
            searched += found.boxes - 1;
        }
        assert!(searched > 0, "nothing was near");
    }

    /// A box of 4,096 blocks of 12 takes four milliseconds where this crate is not optimised.
    #[test]
    fn no_search_takes_a_minute() {
        let boxes = MOST_WORK / (12.0 * 4096.0);
        assert!((10_000.0..15_000.0).contains(&boxes), "{boxes}");
    }

    #[test]
    fn one_path_takes_one_box() {
        for (_, tree) in random_trees(8, 20, [3, 3]) {
            let found = path_optimum(&tree, 1, 0.0);
            assert_eq!(found.lower, single_draft_optimum(&tree));
            assert_eq!(found.upper, found.lower);
        }
    }

    #[test]
    fn any_sets_give_an_upper_bound() {
        let (_, tree) = random_trees(9, 1, [2, 2]).next().unwrap();
        let truth = block_optimum(&tree, 2).unwrap().unwrap();
        let mut met = false;
        for bits in 0u32..1 << 6 {
            let flag = |at: u32| bits >> at & 1 == 1;
            let layers = vec![(0..2).map(flag).collect(), (2..6).map(flag).collect()];
            let sets = LevelSets::new(&tree, layers).unwrap();
            let bound = sets.bound(&tree, 2);
            assert!(bound >= truth);
            met |= bound == truth;
        }
        assert!(met, "no sets attain the optimum");
        assert_eq!(LevelSets::new(&tree, vec![vec![true; 2]; 2]), None);
    }

    #[test]
    fn a_set_holds_the_prefixes_that_it_lists() {
        let sets = LevelSets {
            layers: vec![vec![true, false], vec![false, true, true, false]],
        };
        let held = |depth, index| sets.contains(specgap_core::tree::Node { depth, index });
        assert_eq!([held(1, 0), held(1, 1)], [true, false]);
        assert_eq!([0, 1, 2, 3].map(|i| held(2, i)), [false, true, true, false]);
        // The root, and what is no prefix.
        assert!(!held(0, 0) && !held(1, 2) && !held(3, 0));
    }
}
