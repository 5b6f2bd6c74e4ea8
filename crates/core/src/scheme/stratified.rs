//! Certain tokens, then one draw from each stratum of the rest.

use super::law::{of_draft, tuples_in_both};
use super::strata_rows::{limit, listed};
use super::without_replacement::by_falling_mass;
use super::{
    DraftScheme, ExactSetLaw, Law, MadeOf, OnRow, PrefixScan, SchemeName, SetFamily, SetLaw,
    set_of, token_id,
};
use num_bigint::BigUint;
use specgap_number::distribution::{Draft, Rational};
use specgap_number::number::{Number, RunningSum};
pub use specgap_plan::Straddle;
use specgap_plan::{Children, SURE_BITS};
use specgap_row::Question;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Certain tokens F, then one draw from each of k = n - |F| strata of what is left of q.
///
/// While |F| < n - 1 and the heaviest token x outside F has (n - |F|) q(x) >= s (1 - q(F)), it
/// joins F, with s = 1 - 2^-40, so that rounding of q does not decide it. The other tokens are laid on [0, 1) by their share of what is left, heaviest first (ties:
/// lowest id), and stratum j is [j/k, (j+1)/k). No token outside F is longer than a stratum, so
/// each meets two strata at most. A tuple is F, then the draft of each stratum in order; P(x is
/// drafted) = min(1, c q(x)) under [`Straddle::Once`].
///
/// With [`Straddle::Once`], a token T with shares a of stratum j and b of stratum j + 1 is never
/// drafted twice: if it is the draft of stratum j, the next is drawn from the rest of its
/// stratum; else the next is T with probability b/(1 - a).
///
/// # Q(H)
/// 0 unless F is in H. Independent strata: the product over strata of their share in H. Once: a
/// chain with two states a stratum, whether its draft is the token across its right cut. O(k)
/// for each further token of H.
///
/// # Theorems
/// Q(H) <= q(H)^n for every H, so that alpha\* is never below that of n i.i.d. drafts, for any
/// target; and Q under `Once` is never above Q of independent strata (`docs/theory/stratified.md`).
///
/// # Source
/// Deville, "Une nouvelle (encore une!) méthode de tirage à probabilités inégales" (1998), and
/// Chauvet, "On a characterization of ordered pivotal sampling" (2012), for the design. Its use
/// for drafts, and the statement on Q, are this project's.
///
/// # Example
/// ```
/// use specgap_core::scheme::{DraftScheme, Straddle, Stratified};
/// use specgap_number::distribution::Draft;
/// let q = Draft::new(&[0.5, 0.25, 0.25])?;
/// // Token 0 is certain, the other two share the second draft.
/// let scheme = Stratified::new(q.clone(), 2, Straddle::Once);
/// assert_eq!(scheme.certain(), [0]);
/// assert_eq!(scheme.inside(&[0, 2]), 0.5);
/// // Three tokens of 1/3: the one in the middle lies across the cut, and is drafted once.
/// let third = Draft::from_rationals(vec![specgap_number::distribution::Rational::new(1.into(), 3.into()); 3])?;
/// assert_eq!(Stratified::new(third.clone(), 2, Straddle::Once).inside(&[1]), 0.0);
/// assert!((Stratified::new(third, 2, Straddle::Independent).inside(&[1]) - 1.0 / 9.0).abs() < 1e-15);
/// # Ok::<(), specgap_number::distribution::DistributionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stratified {
    draft: Draft,
    drafts: usize,
    straddle: Straddle,
    certain: Vec<usize>,
    pieces: Vec<Vec<Piece>>,
    /// The length of a stratum.
    length: BigUint,
    float: Strata<f64>,
    exact: OnceLock<Strata<Rational>>,
}

/// Where a token lies, in units of which a stratum has the total weight of all strata's tokens.
#[derive(Clone, Debug)]
struct Piece {
    token: usize,
    length: BigUint,
    across_right: bool,
}

/// The strata of a draft law, in one arithmetic.
#[derive(Clone, Debug)]
pub struct Strata<M> {
    strata: Vec<Vec<Share<M>>>,
}

/// A token's part of a stratum.
#[derive(Clone, Debug)]
pub struct Share<M> {
    /// The token.
    pub token: usize,
    /// Which part of the stratum it has.
    pub share: M,
    /// Whether the token lies across the cut to the next stratum.
    pub across_right: bool,
    /// P(it is drafted here) where the draft before was not the token across the cut between
    /// them, and where it was.
    pub given: [M; 2],
}

impl<M: Number> Share<M> {
    /// The mass of draws that have it, from those of the two states of the draft before.
    pub fn after(&self, before: &[M; 2]) -> M {
        let [fresh, across] = &self.given;
        before[0].times(fresh).plus(&before[1].times(across))
    }
}

impl<M: Number> Strata<M> {
    /// The laws of each stratum's draft given the draft before. Lengths are subtracted as
    /// integers, so that in `f64` no share loses digits.
    fn new(straddle: Straddle, pieces: &[Vec<Piece>], length: &BigUint) -> Self {
        let mut across: Option<&Piece> = None;
        let mut strata = Vec::with_capacity(pieces.len());
        for stratum in pieces {
            let before = across.filter(|_| straddle == Straddle::Once);
            let again = before.and_then(|a| stratum.iter().find(|b| b.token == a.token));
            let left = before.zip(again);
            across = stratum.iter().find(|piece| piece.across_right);
            let given = |piece: &Piece| {
                let Some((a, b)) = left else {
                    let share = M::fraction(&piece.length, length);
                    return [share.clone(), share];
                };
                // The token across the cut has a of the stratum before and b of this one.
                let others = length - &a.length;
                if piece.token == a.token {
                    return [M::fraction(&b.length, &others), M::zero()];
                }
                let rest = M::fraction(&piece.length, &(length - &b.length));
                let fresh = M::fraction(&(&others - &b.length), &others);
                [rest.times(&fresh), rest]
            };
            let share = |piece: &Piece| Share {
                token: piece.token,
                share: M::fraction(&piece.length, length),
                across_right: piece.across_right,
                given: given(piece),
            };
            strata.push(stratum.iter().map(share).collect());
        }
        Self { strata }
    }

    /// A stratum for each row, of whole laws: independent drafts, and no token over a cut.
    pub fn of_rows(rows: Vec<Vec<M>>) -> Self {
        let share = |(token, share): (usize, M)| Share {
            token,
            across_right: false,
            given: [share.clone(), share.clone()],
            share,
        };
        let stratum = |row: Vec<M>| {
            let all = row.into_iter().enumerate();
            all.filter(|(_, mass)| !mass.is_nil()).map(share).collect()
        };
        Self {
            strata: rows.into_iter().map(stratum).collect(),
        }
    }

    /// The strata: what each token has of them.
    pub fn strata(&self) -> &[Vec<Share<M>>] {
        &self.strata
    }

    /// Returns for the draft of stratum `j`, for each token of the stratum, in its order, the sum
    /// over all draws that have it there of their probability times the product of their drafts'
    /// weights. `weight` is asked for a stratum and a place in it.
    pub fn weighed<'a>(&self, j: usize, weight: impl Fn(usize, usize) -> &'a M) -> Vec<M> {
        let strata = &self.strata;
        let mut before = [M::one(), M::zero()];
        for (at, stratum) in strata.iter().enumerate().take(j) {
            let mut sums = [M::Sum::default(), M::Sum::default()];
            for (place, share) in stratum.iter().enumerate() {
                let mass = share.after(&before).times(weight(at, place));
                sums[usize::from(share.across_right)].add(&mass);
            }
            before = sums.map(|sum| sum.value());
        }
        let mut behind = [M::one(), M::one()];
        for (at, stratum) in strata.iter().enumerate().skip(j + 1).rev() {
            let mut sums = [M::Sum::default(), M::Sum::default()];
            for (place, share) in stratum.iter().enumerate() {
                let mass = weight(at, place).times(&behind[usize::from(share.across_right)]);
                for (sum, given) in sums.iter_mut().zip(&share.given) {
                    sum.add(&given.times(&mass));
                }
            }
            behind = sums.map(|sum| sum.value());
        }
        let own = strata.get(j).into_iter().flatten().enumerate();
        own.map(|(place, share)| {
            let mass = share.after(&before).times(weight(j, place));
            mass.times(&behind[usize::from(share.across_right)])
        })
        .collect()
    }

    /// Visits all draws of the strata that have only tokens for which `counts` holds, with their
    /// probabilities.
    fn draws(&self, counts: &dyn Fn(usize) -> bool, visit: &mut dyn FnMut(&[u32], &M)) {
        struct Walk<'a> {
            counts: &'a dyn Fn(usize) -> bool,
            draw: Vec<u32>,
        }
        fn descend<M: Number>(
            walk: &mut Walk<'_>,
            left: &[Vec<Share<M>>],
            (mass, across): (&M, bool),
            visit: &mut dyn FnMut(&[u32], &M),
        ) {
            let Some((stratum, left)) = left.split_first() else {
                return visit(&walk.draw, mass);
            };
            for share in stratum {
                let given = &share.given[usize::from(across)];
                if given.is_nil() || !(walk.counts)(share.token) {
                    continue;
                }
                walk.draw.push(token_id(share.token));
                descend(walk, left, (&mass.times(given), share.across_right), visit);
                walk.draw.pop();
            }
        }
        let draw = Vec::new();
        let mut walk = Walk { counts, draw };
        descend(&mut walk, &self.strata, (&M::one(), false), visit);
    }
}

impl Stratified {
    /// `drafts` (at least 1) tokens from `draft`.
    pub fn new(draft: Draft, drafts: usize, straddle: Straddle) -> Self {
        let drafts = drafts.max(1);
        let order = by_falling_mass(&draft);
        let weights = &draft.exact().weights;
        let mut left: BigUint = order.iter().map(|&token| &weights[token]).sum();
        let mut certain = Vec::new();
        for &token in &order {
            let number = drafts - certain.len();
            let short = (&left << SURE_BITS) - &left;
            if number < 2 || (&weights[token] * number) << SURE_BITS < short {
                break;
            }
            left -= &weights[token];
            certain.push(token);
        }
        let k = drafts - certain.len();
        let pieces = pieces(&order[certain.len()..], weights, &left, k);
        Self {
            float: Strata::new(straddle, &pieces, &left),
            draft,
            drafts,
            straddle,
            certain,
            pieces,
            length: left,
            exact: OnceLock::new(),
        }
    }

    /// The tokens that are always drafted, heaviest first; the whole support if that has fewer
    /// than n tokens.
    pub fn certain(&self) -> &[usize] {
        &self.certain
    }

    /// In how many ways the tokens over cuts may have been drafted before the last draft.
    pub fn histories(&self) -> f64 {
        let over = self
            .pieces
            .iter()
            .flatten()
            .filter(|piece| piece.across_right);
        2f64.powi(over.count().min(1000) as i32)
    }

    /// The strata in `f64`, each share the nearest to the exact one.
    pub fn strata(&self) -> &Strata<f64> {
        &self.float
    }

    /// The strata exactly.
    pub fn strata_exact(&self) -> &Strata<Rational> {
        self.exact
            .get_or_init(|| Strata::new(self.straddle, &self.pieces, &self.length))
    }

    fn tuple(&self, draw: &[u32]) -> Vec<u32> {
        let certain = self.certain.iter().map(|&token| token_id(token));
        certain.chain(draw.iter().copied()).collect()
    }

    fn tuples<M: Number>(&self, strata: &Strata<M>, visit: &mut dyn FnMut(&[u32], &M)) {
        strata.draws(&|_| true, &mut |draw, mass| visit(&self.tuple(draw), mass));
    }

    fn merged<M: Number>(&self, strata: &Strata<M>) -> (SetFamily, Vec<M>) {
        let mut merged: BTreeMap<Vec<u32>, M> = BTreeMap::new();
        self.tuples(strata, &mut |tuple, mass| {
            let set = merged.entry(set_of(tuple.iter().copied()));
            set.or_insert_with(M::zero).gain(mass);
        });
        merged.into_iter().unzip()
    }

    /// Q along a chain: each token is looked up in the one or two strata that it has a part of.
    fn along<M: Number>(&self, strata: &Strata<M>, order: &[usize]) -> Vec<M> {
        let mut places: Vec<[Option<usize>; 2]> = vec![[None; 2]; self.draft.vocab()];
        for (j, stratum) in strata.strata.iter().enumerate() {
            for share in stratum {
                let place = &mut places[share.token];
                place[usize::from(place[0].is_some())] = Some(j);
            }
        }
        let mut missing = self.certain.len();
        // From each state to each state, with drafts in H alone.
        let nothing = || [[M::zero(), M::zero()], [M::zero(), M::zero()]];
        let mut steps: Vec<[[M; 2]; 2]> = vec![nothing(); strata.strata.len()];
        let mut inside = Vec::with_capacity(order.len());
        for &token in order {
            missing -= usize::from(self.certain.contains(&token));
            for j in places[token].iter().copied().flatten() {
                let own = strata.strata[j].iter().find(|share| share.token == token);
                if let Some(share) = own {
                    let to = usize::from(share.across_right);
                    for (row, given) in steps[j].iter_mut().zip(&share.given) {
                        row[to].gain(given);
                    }
                }
            }
            inside.push(if missing > 0 {
                M::zero()
            } else {
                let mut states = [M::one(), M::zero()];
                for [fresh, across] in &steps {
                    let to = |z: usize| {
                        let fresh = states[0].times(&fresh[z]);
                        fresh.plus(&states[1].times(&across[z]))
                    };
                    states = [to(0), to(1)];
                }
                states[0].plus(&states[1])
            });
        }
        inside
    }

    /// P(A(X) = set): the draws that are within the set, and need all of it.
    fn of_set<M: Number>(&self, strata: &Strata<M>, set: &[u32]) -> M {
        let is_certain = |token: u32| self.certain.contains(&(token as usize));
        let others: Vec<u32> = set.iter().copied().filter(|&x| !is_certain(x)).collect();
        if set.len() - others.len() < self.certain.len() {
            return M::zero();
        }
        let mut sum = M::Sum::default();
        let counts = |token: usize| others.contains(&token_id(token));
        strata.draws(&counts, &mut |draw, mass| {
            if others.iter().all(|token| draw.contains(token)) {
                sum.add(mass);
            }
        });
        sum.value()
    }
}

/// Lays tokens side by side and cuts them into k strata.
fn pieces(order: &[usize], weights: &[BigUint], total: &BigUint, k: usize) -> Vec<Vec<Piece>> {
    if *total == BigUint::default() {
        return Vec::new();
    }
    let mut strata: Vec<Vec<Piece>> = vec![Vec::new(); k];
    let (mut at, mut end) = (BigUint::default(), BigUint::default());
    let mut j = 0;
    for &token in order {
        end += &weights[token] * k;
        while at < end && j < k {
            let cut = total * (j + 1);
            let stop = if end <= cut { &end } else { &cut };
            strata[j].push(Piece {
                token,
                length: stop - &at,
                across_right: end > cut,
            });
            at = stop.clone();
            if at == cut {
                j += 1;
            }
        }
    }
    strata
}

fn straddling(straddle: Straddle) -> SchemeName {
    match straddle {
        Straddle::Once => SchemeName::STRATIFIED,
        Straddle::Independent => SchemeName::STRATIFIED_INDEPENDENT,
    }
}

impl DraftScheme for Stratified {
    of_draft!(self, straddling(self.straddle), self.drafts);

    fn tuple_count(&self) -> f64 {
        self.pieces.iter().map(|own| own.len() as f64).product()
    }
    tuples_in_both!(self, tuples(&self.float, self.strata_exact()));

    fn set_law(&self) -> SetLaw {
        SetLaw::of(self.merged(&self.float), self.set_probability_error())
    }

    fn exact_bits(&self) -> f64 {
        // Given the draft before, a draft has a denominator of two factors.
        2.0 * self.drafts as f64 * self.draft.exact_bits() as f64
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        ExactSetLaw::from_probabilities(self.merged(self.strata_exact()))
    }

    fn adds_fractions(&self) -> bool {
        true
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let k = self.pieces.len() as f64;
        PrefixScan {
            inside: self.along(&self.float, order),
            // A state's share is a sum of as many roundings as the stratum has tokens, and of
            // the two of each share.
            absolute_error: k * (order.len() as f64 + 16.0) * f64::EPSILON,
        }
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        self.along(self.strata_exact(), order)
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        self.of_set(&self.float, set)
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.of_set(self.strata_exact(), set)
    }
}

/// What both kinds of strata have in the table of laws.
macro_rules! of_strata {
    ($straddle:expr) => {
        Law {
            made_of: MadeOf::OneDraft(|draft, drafts| {
                Arc::new(Stratified::new(draft, drafts, $straddle))
            }),
            next_draft: Some(|row, before, weights| {
                row.strata().next_draft($straddle, before, weights);
            }),
            on_row: Some(OnRow {
                optimum: Question {
                    full: |row, drafts| Ok(limit(row, drafts, $straddle)?.optimum),
                    cut: |row, ask| Ok(listed(row, ask, $straddle)?.optimum),
                },
                status: "between what passes over strata accept and 1 + P(H) - Q(H) of what they leave",
                hits: None,
            }),
            child_by_child: true,
            children: Some(Children::Strata($straddle)),
            ..Law::NONE
        }
    };
}

/// [`Stratified`] with tokens across a cut drafted once, in the table of laws.
pub const LAW: Law = Law {
    name: "stratified",
    words: "certain tokens, then one draw from each stratum of the rest of q, none twice",
    inside: "0 unless H holds the certain tokens, else a chain over strata",
    distinct: true,
    by_default: true,
    hue: 7,
    ..of_strata!(Straddle::Once)
};

/// [`Stratified`] with independent strata, in the table of laws.
pub const INDEPENDENT: Law = Law {
    name: "stratified-independent",
    words: "certain tokens, then one draw from each stratum of the rest of q, independently",
    inside: "0 unless H holds the certain tokens, else the product of each stratum's share in H",
    // Its numbers are those of `stratified` to a thousandth or two: named, not by default.
    hue: 8,
    ..of_strata!(Straddle::Independent)
};

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_plan::Strata as Laid;

    /// 3 q(5) is 1 - 2.8e-17, which is a third; a token that lacks 1e-11 of it is not sure.
    #[test]
    fn rounding_does_not_decide_which_tokens_are_sure() {
        let row = [1.0, 1.0, 3.0, 3.0, 2.0, 5.0].map(|x| x / 15.0);
        let less = |by: f64| [1.0 + 5.0 * by, 1.0, 3.0, 3.0, 2.0, 5.0 - 5.0 * by].map(|x| x / 15.0);
        for (row, sure) in [(row, &[5][..]), (less(2e-13), &[5]), (less(1e-11), &[])] {
            let q = Draft::new(&row).unwrap();
            let laid = Laid::of(&q, 3);
            assert_eq!(laid.certain(), sure);
            let exact = Stratified::new(q, 3, Straddle::Once);
            let exact: Vec<u32> = exact.certain().iter().map(|&x| token_id(x)).collect();
            assert_eq!(exact, sure, "{row:?}");
        }
    }
}
