//! What rules that carry numbers from token to token keep: lossless as a text, not round by
//! round.
//!
//! The numbers are functions of the text so far. They do not depend on where its rounds began or
//! on what was drafted.

use super::survival::scaled;
use specgap_number::number::{Number, RunningSum};
use std::collections::VecDeque;

/// What the rule `carried` keeps between two tokens of a text: the probability, given the text so
/// far, that the running round has kept j drafts, for each j at which it drafts one more.
///
/// A draft is kept with probability min(1, p/(d q)), d being the sum of these. Every other token
/// is drawn from (p - d q)+, normalised: behind a rejected draft, and behind a round whose drafts
/// were all kept. The text is the target's, since min(p, d q) + (p - d q)+ = p. A round alone is
/// not.
///
/// # Formula
/// At the start w_0 = 1; d = w_0 + ... + w_(K-1). Behind a token with r = q/p there,
/// w'_(j+1) = (w_j/d) min(1, d r) for j < K and w'_0 = 1 - min(1, d r).
///
/// # Exactness
/// Exact in rationals. In `f64` good to a few units of the last place per token.
///
/// # Complexity
/// O(K) a token, O(K) memory.
///
/// # Source
/// This project; `docs/theory/several-rounds.md`, section 5.
///
/// # Example
/// ```
/// use specgap_core::rounds::Carry;
/// let mut carry = Carry::new(1);
/// assert_eq!(carry.standing(), 1.0);
/// // The target writes a token that was drafted half as often as it is written.
/// carry.pass(&0.5);
/// // A draft stands at the next token half of the time. It is kept with p/(d q) = 1/(d r).
/// assert_eq!((carry.start(), carry.standing(), carry.keeps(&4.0)), (0.5, 0.5, 0.5));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Carry<T> {
    most: usize,
    /// By kept drafts, of rounds that draft one more.
    drafting: VecDeque<T>,
    start: T,
}

impl<T: Number> Carry<T> {
    /// In front of a text, for rounds of at most `most` drafts.
    pub fn new(most: usize) -> Self {
        let mut drafting = VecDeque::from([T::one()]);
        drafting.truncate(most);
        Self {
            most,
            drafting,
            start: T::one(),
        }
    }

    /// Inside a text, where these are w_0, w_1, ...; what is behind the first `most` is 0.
    pub fn from_shares(most: usize, shares: impl IntoIterator<Item = T>) -> Self {
        let drafting: VecDeque<T> = shares.into_iter().take(most).collect();
        Self {
            most,
            start: drafting.front().cloned().unwrap_or_else(T::one),
            drafting,
        }
    }

    /// w_0, w_1, ..., at most K of them; those that are not there are 0.
    pub fn shares(&self) -> impl Iterator<Item = &T> {
        self.drafting.iter()
    }

    /// d: the probability that a draft stands at the next token, if one can be drafted there.
    pub fn standing(&self) -> T {
        T::total(&self.drafting)
    }

    /// The probability that a round starts in front of the next token.
    pub fn start(&self) -> &T {
        &self.start
    }

    /// The probability that a draft with this q/p is kept: min(1, 1/(d q/p)).
    pub fn keeps(&self, ratio: &T) -> T {
        let offered = scaled(&self.standing(), ratio);
        if offered <= T::one() {
            return T::one();
        }
        T::one().over(&offered)
    }

    /// Goes on behind a token of the text with this q/p. What is not drafted, such as the last
    /// token that a text may have, has a ratio of 0.
    pub fn pass(&mut self, ratio: &T) {
        let standing = self.standing();
        let accepted = scaled(&standing, ratio).smaller(&T::one());
        for share in &mut self.drafting {
            *share = if accepted.is_nil() {
                T::zero()
            } else {
                share.over(&standing).times(&accepted)
            };
        }
        self.start = T::one().excess_over(&accepted);
        self.drafting.push_front(self.start.clone());
        self.drafting.truncate(self.most);
    }
}

/// What the rule `carried-block` keeps between two tokens of a text: for each age j, what a round
/// that began j tokens ago has drafted and kept of the text so far.
///
/// Both are shares of the probability of the text. *Drafted* is the probability that a round
/// began j tokens ago and drafted these j tokens; *kept* that it also keeps them. Kept is at most
/// drafted, and all kept together are 1.
///
/// # Formula
/// s_j drafted, a_j kept; at the start s_0 = a_0 = 1. At rows p and q, youngest age first,
///
/// `g_j(y) = min(c_j q(y), p(y) - sum over i < j of g_i(y)), j < K`
///
/// c_j the largest number of at most s_j with sum over y of g_j(y) <= a_j. Behind a token y
/// `s'_(j+1) = s_j q(y)/p(y)`, `a'_(j+1) = g_j(y)/p(y)`, and `s'_0 = a'_0` is 1 less all these a'.
///
/// A round settles its path from its end backwards, by [`GivenOut::stops`]: it stops at its last
/// node, of age j, with a_j/s_j, at an earlier one with (a_j - sum g_j)/(s_j - sum g_j), and in
/// front of its first draft surely. Where it stops, the next token is drawn from
/// p - sum over j of g_j, normalised.
///
/// # Exactness
/// Exact in rationals: c_j is found in finitely many steps. In `f64` sums over V have an error that
/// does not grow with V.
///
/// # Complexity
/// O(V) a step and age, some five steps; O(K) memory.
///
/// # Source
/// This project; `docs/theory/several-rounds.md`, section 6.
///
/// # Example
/// ```
/// use specgap_core::rounds::BlockCarry;
/// let mut carry = BlockCarry::new(2);
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// carry.pass(Some((&p, &q)), 1);
/// // Token 1 was drafted half as often as the target writes it, and all of that is kept.
/// assert_eq!(carry.start(), &0.5);
/// carry.pass(Some((&p, &q)), 1);
/// assert_eq!(carry.start(), &0.5);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BlockCarry<T> {
    most: usize,
    /// By age, at most K: drafted and kept.
    ages: VecDeque<[T; 2]>,
}

/// What each age gives out of a row: g of [`BlockCarry`].
#[derive(Clone, Debug, PartialEq)]
pub struct GivenOut<T> {
    /// c_j, ages ascending; none of ages that draft nothing more.
    scales: Vec<T>,
    /// The sum of g_j over all tokens.
    totals: Vec<T>,
}

impl<T: Number> BlockCarry<T> {
    /// In front of a text, for rounds of at most `most` drafts.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ages: VecDeque::from([[T::one(), T::one()]]),
        }
    }

    /// Inside a text in front of whose next token a round starts with probability `start`; of each
    /// age from 1 on, at most K, what is drafted and kept.
    pub fn from_ages(most: usize, start: T, older: impl IntoIterator<Item = [T; 2]>) -> Self {
        let mut ages: VecDeque<[T; 2]> = older.into_iter().take(most).collect();
        ages.push_front([start.clone(), start]);
        Self { most, ages }
    }

    /// What is drafted and kept of each age from 0 on; those that are not there have 0.
    pub fn ages(&self) -> impl Iterator<Item = &[T; 2]> {
        self.ages.iter()
    }

    /// The probability that a round starts in front of the next token.
    pub fn start(&self) -> &T {
        &self.ages[0][1]
    }

    /// What rounds give out of these rows; of no rows, as at the last token that a text may have,
    /// nothing.
    pub fn give_out(&self, rows: Option<(&[T], &[T])>) -> GivenOut<T> {
        let mut given = GivenOut {
            scales: Vec::new(),
            totals: Vec::new(),
        };
        let Some((p, q)) = rows else {
            return given;
        };
        let mut left = p.to_vec();
        for [drafted, kept] in self.ages.iter().take(self.most) {
            let (scale, total) = largest_scale(&left, q, drafted, kept);
            if !scale.is_nil() {
                for (left, q) in left.iter_mut().zip(q) {
                    *left = left.excess_over(&scaled(&scale, q));
                }
            }
            given.scales.push(scale);
            given.totals.push(total);
        }
        given
    }

    /// Goes on behind a token of the text, as [`Self::give_out`] has it of these rows.
    pub fn pass(&mut self, rows: Option<(&[T], &[T])>, token: usize) {
        let given = self.give_out(rows);
        match rows.and_then(|(p, q)| Some((p.get(token)?, q.get(token)?))) {
            Some((p, q)) => self.pass_given(&given, [p, q]),
            None => self.pass_given(&given, [&T::one(), &T::zero()]),
        }
    }

    /// The same where what is given out is known, of the token's p and q.
    pub fn pass_given(&mut self, given: &GivenOut<T>, [p, q]: [&T; 2]) {
        let shares = given.of_token(p, q);
        let ratio = if p.is_nil() { T::zero() } else { q.over(p) };
        let mut free = T::one();
        self.ages.truncate(given.scales.len());
        for ([drafted, kept], share) in self.ages.iter_mut().zip(&shares) {
            *drafted = scaled(drafted, &ratio);
            *kept = if p.is_nil() { T::zero() } else { share.over(p) };
            // Rounding alone can bring it above.
            *kept = kept.smaller(drafted).smaller(&free);
            free = free.excess_over(kept);
        }
        self.ages.push_front([free.clone(), free]);
    }
}

impl<T: Number> GivenOut<T> {
    /// g_j of a token, ages ascending.
    pub fn of_token(&self, p: &T, q: &T) -> Vec<T> {
        let mut left = p.clone();
        let each = self.scales.iter().map(|scale| {
            let share = scaled(scale, q).smaller(&left);
            left = left.excess_over(&share);
            share
        });
        each.collect()
    }

    /// What no age gives out of a token: where a round stops, the next token is drawn in
    /// proportion to it.
    pub fn free(&self, p: &T, q: &T) -> T {
        let shares = self.of_token(p, q);
        shares
            .iter()
            .fold(p.clone(), |left, share| left.excess_over(share))
    }

    /// The probability that a round of this age, by the numbers in front of these rows, stops at
    /// its node if it has not stopped behind it.
    pub fn stops(&self, carry: &BlockCarry<T>, age: usize) -> T {
        let Some([drafted, kept]) = carry.ages.get(age) else {
            return T::one();
        };
        let total = self.totals.get(age).cloned().unwrap_or_else(T::zero);
        let path = drafted.excess_over(&total);
        let stops = kept.excess_over(&total);
        if age == 0 {
            T::one()
        } else if stops.is_nil() {
            // As behind tokens that the target does not write.
            T::zero()
        } else if stops >= path {
            T::one()
        } else {
            stops.over(&path)
        }
    }
}

/// The largest scale of at most `most` for which min(scale q, left) adds up to at most `wanted`,
/// and what it then adds up to.
///
/// The sum is concave and piecewise linear in the scale, so that Newton's steps from below rise to
/// the end of finitely many pieces.
fn largest_scale<T: Number>(left: &[T], q: &[T], most: &T, wanted: &T) -> (T, T) {
    if most.is_nil() || wanted.is_nil() {
        return (T::zero(), T::zero());
    }
    let at = |scale: &T| {
        let (mut capped, mut open) = (T::Sum::default(), T::Sum::default());
        let mut count = 0;
        for (left, q) in left.iter().zip(q).filter(|(_, q)| !q.is_nil()) {
            if scaled(scale, q) >= *left {
                capped.add(left);
                count += 1;
            } else {
                open.add(q);
            }
        }
        (capped.value(), open.value(), count)
    };
    let sum = |capped: &T, open: &T, scale: &T| capped.plus(&scaled(scale, open));
    let (capped, open, _) = at(most);
    let whole = sum(&capped, &open, most);
    if whole <= *wanted {
        return (most.clone(), whole);
    }
    let (mut scale, mut before) = (T::zero(), None);
    loop {
        let (capped, open, count) = at(&scale);
        // As many as before are the same ones: the scale is exact. It never falls, but by rounding.
        if before.is_some_and(|before| count <= before) || open.is_nil() {
            return (scale.clone(), sum(&capped, &open, &scale).smaller(wanted));
        }
        before = Some(count);
        scale = wanted.excess_over(&capped).over(&open).smaller(most);
    }
}

/// For every token of a text, the probability that a round of the rule [`BlockCarry`] starts in
/// front of it, with at most `most` drafts a round; `rows` has p, q and the token of each place.
///
/// # Exactness
/// Exact in rationals, given the text.
///
/// # Complexity
/// O(N K V).
///
/// # Example
/// ```
/// use specgap_core::rounds::carried_block_starts;
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// let rows = [(&p[..], &q[..], 1); 3];
/// assert_eq!(carried_block_starts(&rows, 1), [1.0, 0.5, 0.75]);
/// assert_eq!(carried_block_starts(&rows, 2), [1.0, 0.5, 0.5]);
/// ```
pub fn carried_block_starts<T: Number>(rows: &[(&[T], &[T], usize)], most: usize) -> Vec<T> {
    let Some((_, drafted)) = rows.split_last() else {
        return Vec::new();
    };
    let mut carry = BlockCarry::new(most);
    let mut starts = vec![T::one()];
    for &(p, q, token) in drafted {
        carry.pass(Some((p, q)), token);
        starts.push(carry.start().clone());
    }
    starts
}
