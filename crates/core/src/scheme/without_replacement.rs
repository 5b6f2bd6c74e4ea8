//! Sequential draws, each renormalised over the tokens not drawn yet.

use super::combinations::{Ranking, choose, falling_factorial, for_each_combination, over_subsets};
use super::law::{along, of_draft, tuples_in_both};
use super::race;
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetFamily, SetLaw,
    token_id, without,
};
use num_bigint::BigUint;
use specgap_number::distribution::{
    Draft, LEAST_PROPORTION, Proportions, Rational, TwoFloat, ratio,
};
use specgap_number::number::{Number, RunningSum};
use specgap_row::Question;
use std::sync::{Arc, OnceLock};

/// While the law of sets takes at most this many operations, Q along a chain is
/// summed over it; above, it is the race integral.
const LARGEST_ENUMERATED_LAW: f64 = 2.0e7;

/// n sequential draws from q without replacement: the k-th draw has law q
/// renormalised over the tokens not drawn before it (Hu et al., eq. 6; the
/// Plackett-Luce law).
///
/// It is **not** the law of [`super::DistinctConditioned`].
///
/// # Q(H)
/// n = 1: q(H). n = 2: the sum over x in H of `a(x) (q(H) - q(x))` with
/// `a(x) = q(x)/(1-q(x))`, O(V) along a chain. n >= 3: summed over the law of
/// sets while that takes at most 2e7 operations, else the
/// race integral over `s e^{-st} P(N_t >= n) dt`, where N_t counts the tokens of
/// H whose independent clocks of rate q have rung by t and s = 1 - q(H).
///
/// # Example
/// ```
/// use specgap_number::distribution::Draft;
/// use specgap_core::scheme::{DraftScheme, WithoutReplacement};
/// let scheme = WithoutReplacement::new(Draft::new(&[0.5, 0.3, 0.2])?, 2);
/// assert!((scheme.inside(&[0, 1]) - 18.0 / 35.0).abs() < 1e-15);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WithoutReplacement {
    draft: Draft,
    drafts: usize,
    /// Support by falling probability, ties by token id.
    by_mass: Vec<usize>,
    /// Draws that really happen: n, or the size of the support if smaller.
    draws: usize,
    /// Position in `by_mass` of every token, `None` off the support.
    rank_of: Vec<Option<usize>>,
    left: Remaining<f64>,
    /// Whether 1 over what is left may leave the range of `f64`.
    is_extreme: bool,
    proportions: Proportions,
    exact_left: OnceLock<Remaining<Rational>>,
}

impl WithoutReplacement {
    /// `drafts` (at least 1) sequential draws from `draft`.
    pub fn new(draft: Draft, drafts: usize) -> Self {
        let by_mass = by_falling_mass(&draft);
        let draws = drafts.max(1).min(by_mass.len());
        let mut rank_of = vec![None; draft.vocab()];
        for (rank, &token) in by_mass.iter().enumerate() {
            rank_of[token] = Some(rank);
        }
        let proportions = Proportions::of(&draft);
        let left = Remaining::of(proportions.row(&draft), &by_mass);
        let is_extreme = (left.masses.last()).is_some_and(|&least| least < LEAST_PROPORTION);
        let exact_left = OnceLock::new();
        Self {
            draft,
            drafts: drafts.max(1),
            by_mass,
            draws,
            rank_of,
            left,
            is_extreme,
            proportions,
            exact_left,
        }
    }

    /// Every draw is the whole support.
    fn is_whole_support(&self) -> bool {
        self.draws == self.by_mass.len()
    }

    fn exact_left(&self) -> &Remaining<Rational> {
        self.exact_left
            .get_or_init(|| Remaining::of(&Rational::row(&self.draft), &self.by_mass))
    }

    fn tuples<M: Number>(&self, left: &Remaining<M>, visit: &mut dyn FnMut(&[u32], &M)) {
        struct Walk<'a, M: Number> {
            scheme: &'a WithoutReplacement,
            left: &'a Remaining<M>,
            tuple: Vec<u32>,
            drawn: Vec<usize>,
        }
        fn descend<M: Number>(walk: &mut Walk<'_, M>, mass: &M, visit: &mut dyn FnMut(&[u32], &M)) {
            if walk.tuple.len() == walk.scheme.draws {
                visit(&walk.tuple, mass);
                return;
            }
            let mut sorted = walk.drawn.clone();
            sorted.sort_unstable();
            let rest = walk.left.without(&sorted);
            for rank in 0..walk.scheme.by_mass.len() {
                if walk.drawn.contains(&rank) {
                    continue;
                }
                walk.drawn.push(rank);
                walk.tuple.push(token_id(walk.scheme.by_mass[rank]));
                let next = mass.times(&walk.left.masses[rank].over(&rest));
                descend(walk, &next, visit);
                walk.drawn.pop();
                walk.tuple.pop();
            }
        }
        let mut walk = Walk {
            scheme: self,
            left,
            tuple: Vec::new(),
            drawn: Vec::new(),
        };
        descend(&mut walk, &M::one(), visit);
    }

    /// Probabilities of all sets of `draws` tokens among `ranks` (positions in
    /// `by_mass`), by growing subsets: f(A) sums f(A - x) q_x/(1 - q(A - x)).
    fn subset_masses<M: Number>(
        &self,
        left: &Remaining<M>,
        ranks: &[usize],
        mut visit: impl FnMut(&[usize], M),
    ) {
        if ranks.len() == self.draws && self.is_whole_support() {
            let all: Vec<usize> = (0..ranks.len()).collect();
            visit(&all, M::one());
            return;
        }
        let ranking = Ranking::new(ranks.len(), self.draws);
        // 1 over what is left overflows where that is denormal, but q over it does not.
        let divides_first = !M::EXACT && self.is_extreme;
        let mut level = vec![M::one()];
        for size in 1..=self.draws {
            // Each smaller subset's mass over what it leaves to draw from, or what it leaves.
            let mut share = Vec::with_capacity(level.len());
            let mut index = 0;
            for_each_combination(ranks.len(), size - 1, |subset| {
                let drawn: Vec<usize> = subset.iter().map(|&i| ranks[i]).collect();
                let rest = left.without(&drawn);
                share.push(match divides_first {
                    true => rest,
                    false => level[index].over(&rest),
                });
                index += 1;
            });
            let last = size == self.draws;
            let room = if last {
                0
            } else {
                ranking.choose(ranks.len(), size)
            };
            let mut next = Vec::with_capacity(room);
            for_each_combination(ranks.len(), size, |subset| {
                let mut mass = M::zero();
                for &member in subset {
                    let before = subset.iter().copied().filter(|other| *other != member);
                    let (drawn, q) = (ranking.rank(before), &left.masses[ranks[member]]);
                    mass.gain(&if divides_first {
                        q.over(&share[drawn]).times(&level[drawn])
                    } else {
                        q.times(&share[drawn])
                    });
                }
                if last {
                    visit(subset, mass);
                } else {
                    next.push(mass);
                }
            });
            level = next;
        }
    }

    fn set_masses<M: Number>(&self, left: &Remaining<M>) -> (SetFamily, Vec<M>) {
        let ranks: Vec<usize> = (0..self.by_mass.len()).collect();
        let (mut sets, mut masses) = (SetFamily::new(), Vec::new());
        let mut tokens: Vec<u32> = Vec::with_capacity(self.draws);
        self.subset_masses(left, &ranks, |subset, mass: M| {
            tokens.clear();
            tokens.extend(subset.iter().map(|&rank| token_id(self.by_mass[rank])));
            tokens.sort_unstable();
            sets.push(tokens.iter().copied());
            masses.push(mass);
        });
        (sets, masses)
    }

    fn scan_by_sets<M: Number>(&self, left: &Remaining<M>, order: &[usize]) -> Vec<M> {
        let ranks = order.iter().enumerate();
        let mut placed: Vec<(usize, usize)> = ranks
            .filter_map(|(position, &token)| Some((self.rank_of[token]?, position)))
            .collect();
        let mut gained = vec![M::Sum::default(); order.len()];
        if placed.len() >= self.draws {
            // `Remaining` wants ascending ranks.
            placed.sort_unstable();
            let ranks: Vec<usize> = placed.iter().map(|&(rank, _)| rank).collect();
            self.subset_masses(left, &ranks, |subset, mass: M| {
                let complete = subset.iter().map(|&i| placed[i].1).max().unwrap_or(0);
                gained[complete].add(&mass);
            });
        }
        let mut held = M::Sum::default();
        let each = gained.iter().map(|gain| {
            held.merge(gain);
            held.value()
        });
        each.collect()
    }

    fn scan_pairs(&self, order: &[usize]) -> PrefixScan {
        let left = &self.left;
        let [mut q_held, mut a_held, mut inside] = [TwoFloat::ZERO; 3];
        if !self.is_extreme {
            return PrefixScan::along(order, 8.0 * f64::EPSILON, |token| {
                if let Some(rank) = self.rank_of[token] {
                    let q = left.masses[rank];
                    let a = TwoFloat::from(q).divided_by(left.without(&[rank]));
                    // All terms are positive: nothing cancels.
                    inside += a * q_held + a_held * q;
                    q_held += q;
                    a_held += a;
                }
                inside.value().min(1.0)
            });
        }
        // q over what the heaviest token leaves is out of range: this token's part is q times the
        // share of the others that is held. Its q once it is held, and what the others held make of
        // the rest:
        let (mut heaviest, mut others) = (0.0, TwoFloat::ZERO);
        let total = left.without(&[]);
        let error = self.proportions.vouched(16.0 * f64::EPSILON);
        PrefixScan::along(order, error, |token| {
            if let Some(rank) = self.rank_of[token] {
                let q = left.masses[rank] / total;
                if rank == 0 {
                    heaviest = q;
                    inside += a_held * q;
                } else {
                    let a = TwoFloat::from(left.masses[rank]).divided_by(left.without(&[rank]));
                    inside += a * q_held + a_held * q + a * heaviest;
                    q_held += q;
                    a_held += a;
                    others += left.masses[rank];
                }
            }
            let share = others.value() / left.without(&[0]);
            (inside.value() + heaviest * share).min(1.0)
        })
    }
}

/// Support by falling probability, ties by token id.
pub(super) fn by_falling_mass(draft: &Draft) -> Vec<usize> {
    let row = draft.probabilities();
    let mut order = draft.support();
    if draft.is_rational() {
        let exact = draft.exact();
        order.sort_by(|&a, &b| exact.weights[b].cmp(&exact.weights[a]).then(a.cmp(&b)));
    } else {
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    }
    order
}

/// Mass left after some tokens were drawn, without cancellation: the sum over
/// everything below the longest drawn run of heaviest tokens, less the few
/// drawn tokens in it, each of which is lighter than a token that is left.
#[derive(Clone, Debug)]
struct Remaining<M: Number> {
    masses: Vec<M>,
    suffix: Vec<M::Sum>,
}

impl<M: Number> Remaining<M> {
    /// `row` may be q up to a factor.
    fn of(row: &[M], by_mass: &[usize]) -> Self {
        let masses: Vec<M> = by_mass.iter().map(|&token| row[token].clone()).collect();
        let mut suffix = vec![M::Sum::default(); masses.len() + 1];
        for rank in (0..masses.len()).rev() {
            suffix[rank] = suffix[rank + 1].clone();
            suffix[rank].add(&masses[rank]);
        }
        Self { masses, suffix }
    }

    /// `drawn`: ascending ranks.
    fn without(&self, drawn: &[usize]) -> M {
        let run = drawn
            .iter()
            .enumerate()
            .take_while(|&(i, &rank)| i == rank)
            .count();
        let mut rest = self.suffix[run].clone();
        for &rank in &drawn[run..] {
            rest.subtract(&self.masses[rank]);
        }
        rest.value()
    }
}

impl DraftScheme for WithoutReplacement {
    of_draft!(self, SchemeName::WITHOUT_REPLACEMENT, self.drafts);

    fn tuple_count(&self) -> f64 {
        falling_factorial(self.by_mass.len(), self.draws)
    }
    tuples_in_both!(self, tuples(&self.left, self.exact_left()));
    fn set_count(&self) -> f64 {
        choose(self.by_mass.len(), self.draws)
    }

    fn set_law(&self) -> SetLaw {
        let n = self.drafts as f64;
        let error = self.proportions.vouched(n * (n + 8.0) * f64::EPSILON);
        SetLaw::of(self.set_masses(&self.left), error)
    }

    fn set_law_cost(&self) -> f64 {
        if self.is_whole_support() {
            return 1.0;
        }
        over_subsets(self.by_mass.len(), self.draws, |size| (size * size) as f64)
    }

    fn set_check_cost(&self) -> f64 {
        if self.is_whole_support() {
            return 1.0;
        }
        self.set_count() * 2f64.powi(self.draws as i32) * (self.draws * self.draws) as f64
    }

    fn largest_checked_set(&self) -> usize {
        if self.is_whole_support() {
            usize::MAX
        } else {
            super::LARGEST_CHECKED_SET
        }
    }

    fn exact_scan_cost(&self) -> f64 {
        if self.draws > 2 {
            self.set_law_cost()
        } else {
            0.0
        }
    }

    fn adds_fractions(&self) -> bool {
        true
    }

    fn exact_bits(&self) -> f64 {
        // Every set drawn on the way contributes a denominator.
        let denominators: f64 = (1..self.draws)
            .map(|size| choose(self.by_mass.len(), size))
            .sum();
        self.draft.exact_bits() as f64 * (denominators + 1.0)
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        ExactSetLaw::from_probabilities(self.set_masses(self.exact_left()))
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        match self.draws {
            1 => {
                let row = self.draft.probabilities();
                let mut held = TwoFloat::ZERO;
                PrefixScan::along(order, 4.0 * f64::EPSILON, |token| {
                    held += row[token];
                    held.value().min(1.0)
                })
            }
            2 => self.scan_pairs(order),
            _ if self.set_law_cost() <= LARGEST_ENUMERATED_LAW => {
                let inside: Vec<f64> = self.scan_by_sets(&self.left, order);
                let n = self.drafts as f64;
                let absolute_error = (n * (n + 8.0) + 4.0) * f64::EPSILON;
                PrefixScan {
                    inside,
                    absolute_error: self.proportions.vouched(absolute_error),
                }
            }
            _ => race::scan(self.draft.probabilities(), self.draws, order),
        }
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        if self.draws != 2 {
            return self.scan_by_sets(self.exact_left(), order);
        }
        // The same closed form as in f64; a(x) = w_x / (S - w_x).
        let exact = self.draft.exact();
        let (mut held, mut a_held, mut inside) =
            (BigUint::default(), Rational::zero(), Rational::zero());
        along(order, |token| {
            let weight = &exact.weights[token];
            let a = ratio(weight, &(&exact.total - weight));
            let q = ratio(weight, &exact.total);
            inside.gain(&a.times(&ratio(&held, &exact.total)));
            inside.gain(&q.times(&a_held));
            held += weight;
            a_held.gain(&a);
            inside.clone()
        })
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        self.by_orders(&self.left, set)
    }

    fn set_probability_error(&self) -> f64 {
        let n = self.drafts as f64;
        self.proportions.vouched(2.0 * n * (n + 8.0) * f64::EPSILON)
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.by_orders(self.exact_left(), set)
    }
}

impl WithoutReplacement {
    /// Sums the sequential law over all orders of the set, sharing prefixes
    /// between orders only through the recursion on the set's own subsets.
    fn by_orders<M: Number>(&self, left: &Remaining<M>, set: &[u32]) -> M {
        let ranks = set.iter().map(|&token| self.rank_of[token as usize]);
        let mut ranks: Vec<usize> = match ranks.collect::<Option<Vec<usize>>>() {
            Some(ranks) if ranks.len() == self.draws => ranks,
            _ => return M::zero(),
        };
        if self.is_whole_support() {
            return M::one();
        }
        ranks.sort_unstable();
        let divides_first = !M::EXACT && self.is_extreme;
        let mut reached = vec![M::zero(); 1 << ranks.len()];
        reached[0] = M::one();
        for mask in 0..reached.len() - 1 {
            let members = |bit: usize| mask >> bit & 1 == 1;
            let drawn = (0..ranks.len()).filter(|&bit| members(bit));
            let drawn: Vec<usize> = drawn.map(|bit| ranks[bit]).collect();
            let rest = left.without(&drawn);
            let share = (!divides_first).then(|| reached[mask].over(&rest));
            for bit in (0..ranks.len()).filter(|&bit| !members(bit)) {
                let q = &left.masses[ranks[bit]];
                let gain = match &share {
                    Some(share) => q.times(share),
                    None => q.over(&rest).times(&reached[mask]),
                };
                reached[mask | 1 << bit].gain(&gain);
            }
        }
        reached.pop().unwrap_or_else(M::zero)
    }
}

/// [`WithoutReplacement`] in the table of laws.
pub const LAW: Law = Law {
    name: "without-replacement",
    aliases: &["gumbel-top-k", "sequential"],
    words: "n sequential draws from q, each renormalised over the tokens not drawn yet \
        (not the same law as distinct-conditioned)",
    inside: "a recursion, or a race integral",
    distinct: true,
    made_of: MadeOf::OneDraft(|draft, drafts| Arc::new(WithoutReplacement::new(draft, drafts))),
    sort_theorem: Some("docs/theory/sequential-draws.md, Theorem 1"),
    next_draft: Some(|_, before, weights| without(before, weights)),
    on_row: Some(OnRow {
        optimum: Question {
            full: |row, drafts| Ok(row.without_replacement(drafts)?.rate),
            cut: |row, ask| row.optimum_sequential(ask),
        },
        status: "optimal: the ratio scan, proved for this scheme (q-convexity)",
        hits: Some(Question {
            full: |row, drafts| Ok(row.hits_sequential(drafts)),
            cut: |row, ask| row.hits_sequential(ask),
        }),
    }),
    by_default: true,
    child_by_child: true,
    prefixed: true,
    hue: 1,
    ..Law::NONE
};
