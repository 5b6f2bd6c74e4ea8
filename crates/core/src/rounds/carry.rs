//! What rules that carry numbers from token to token keep: lossless as a text, not round by
//! round.
//!
//! The numbers are functions of the text so far. They do not depend on where its rounds began or
//! on what was drafted.

use super::survival::{scaled, starts_along};
use num_bigint::BigUint;
use specgap_number::number::Number;
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
/// assert_eq!((carry.start(), carry.standing(), carry.keeps(&4.0)), (&0.5, 0.5, 0.5));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Carry<T> {
    most: usize,
    /// By kept drafts, the last of rounds that have kept K and draft no more. As 1 less the others
    /// it would be rounded to more than 0 where no such round began.
    kept: VecDeque<T>,
}

impl<T: Number> Carry<T> {
    /// In front of a text, for rounds of at most `most` drafts.
    pub fn new(most: usize) -> Self {
        Self::from_shares(most, [T::one()])
    }

    /// Inside a text, where these are w_0, w_1, ...; what is behind the first `most` is 0.
    pub fn from_shares(most: usize, shares: impl IntoIterator<Item = T>) -> Self {
        let mut kept: VecDeque<T> = shares.into_iter().take(most).collect();
        if kept.len() == most || kept.is_empty() {
            kept.push_back(T::one().excess_over(&T::total(&kept)));
        }
        Self { most, kept }
    }

    /// w_0, w_1, ..., at most K of them; those that are not there are 0.
    pub fn shares(&self) -> impl Iterator<Item = &T> {
        self.kept.iter().take(self.most)
    }

    /// d: the probability that a draft stands at the next token, if one can be drafted there.
    pub fn standing(&self) -> T {
        T::total(self.shares())
    }

    /// The probability that a round starts in front of the next token.
    pub fn start(&self) -> &T {
        &self.kept[0]
    }

    /// w_0, w_1, .., the last of rounds that have kept K drafts and draft no more.
    pub fn kept(&self) -> Vec<T> {
        self.kept.iter().cloned().collect()
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
        for share in self.kept.iter_mut().take(self.most) {
            *share = if accepted.is_nil() {
                T::zero()
            } else {
                share.over(&standing).times(&accepted)
            };
        }
        self.kept.push_front(T::one().excess_over(&accepted));
        self.kept.truncate(self.most.saturating_add(1));
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
/// s_j drafted, a_j kept; at the start s_0 = a_0 = 1. Of rows p and q ages j < K give out g_j, in
/// two steps. First all together, in proportion to what they drafted and to how many drafts they
/// have to go, as far as they have kept enough:
///
/// `c_j = (K - j)/K s_j`, `C = sum of c_j`, `m(y) = min(q(y), p(y)/C)`,
/// `b_j = min(c_j, a_j / sum of m)`, `g_j(y) = b_j m(y)`
///
/// Then, the youngest first, what they drafted and kept beyond that, evenly on what is left of p:
///
/// `h_j(y) = min(s_j q(y) - b_j m(y), what is left of p(y))`,
/// `g_j(y) += h_j(y) min(1, (a_j - sum of b_j m)/sum of h_j)`
///
/// Behind a token y `s'_(j+1) = s_j q(y)/p(y)`, `a'_(j+1) = g_j(y)/p(y)`, and `s'_0 = a'_0` is 1
/// less all these a'.
///
/// A round settles its path from its end backwards, by [`GivenOut::stops`]: it stops at its last
/// node, of age j, with a_j/s_j, at an earlier one with (a_j - sum g_j)/(s_j - sum g_j), and in
/// front of its first draft surely. Where it stops, the next token is drawn from
/// p - sum over j of g_j, normalised.
///
/// # Exactness
/// Exact in rationals. In `f64` sums over V have an error that does not grow with V; shares above
/// 2^332 count as that.
///
/// # Complexity
/// O(V) a step and age, two passes; O(K + V) memory.
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
    /// C.
    offered: T,
    /// Ages ascending; none of ages that draft nothing more.
    ages: Vec<Age<T>>,
}

/// What one age gives out.
#[derive(Clone, Debug, PartialEq)]
struct Age<T> {
    drafted: T,
    /// b: what it gives of min(q, p/C).
    together: T,
    /// What it then gives of its own, at most 1.
    alone: T,
    /// The sum of g over all tokens.
    total: T,
}

impl<T: Number> Age<T> {
    /// Returns what it has drafted of a token beyond that, as far as it is left.
    fn room(&self, q: &T, together: &T, left: &T) -> T {
        scaled(&self.drafted, q).excess_over(together).smaller(left)
    }
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

    /// Returns what is drafted and kept of each age from 0 on; those that are not there have 0.
    pub fn ages(&self) -> impl Iterator<Item = &[T; 2]> {
        self.ages.iter()
    }

    /// The probability that a round starts in front of the next token.
    pub fn start(&self) -> &T {
        &self.ages[0][1]
    }

    /// a_0, a_1, ..: the probability that the running round began j tokens ago and keeps them.
    pub fn kept(&self) -> Vec<T> {
        self.ages.iter().map(|[_, kept]| kept.clone()).collect()
    }

    /// Returns what rounds give out of these rows; of no rows, as at the last token that a text may
    /// have, nothing.
    pub fn give_out(&self, rows: Option<(&[T], &[T])>) -> GivenOut<T> {
        let mut given = GivenOut {
            offered: T::zero(),
            ages: Vec::new(),
        };
        let Some((p, q)) = rows else {
            return given;
        };
        let number = |count: usize| T::fraction(&count.into(), &1u32.into());
        for (age, [drafted, _]) in self.ages.iter().take(self.most).enumerate() {
            let share = number(self.most - age).over(&number(self.most));
            let together = drafted.times(&share);
            given.offered.gain(&together);
            given.ages.push(Age {
                drafted: drafted.clone(),
                together,
                alone: T::zero(),
                total: T::zero(),
            });
        }
        let even: Vec<T> = (p.iter().zip(q)).map(|(p, q)| given.even(p, q)).collect();
        let sum = T::total(&even);
        for (age, [_, kept]) in given.ages.iter_mut().zip(&self.ages) {
            if scaled(&age.together, &sum) > *kept {
                age.together = kept.over(&sum);
            }
            age.total = age.together.times(&sum);
        }
        // Together first, then each age alone.
        let mut left: Vec<T> = (p.iter().zip(&even))
            .map(|(p, even)| {
                let given = given.ages.iter().map(|age| age.together.times(even));
                given.fold(p.clone(), |left, given| left.excess_over(&given))
            })
            .collect();
        for (age, [_, kept]) in given.ages.iter_mut().zip(&self.ages) {
            let more = kept.excess_over(&age.total);
            if more.is_nil() {
                continue;
            }
            let rooms: Vec<T> = (q.iter().zip(&even).zip(&left))
                .map(|((q, even), left)| age.room(q, &age.together.times(even), left))
                .collect();
            let room = T::total(&rooms);
            if room.is_nil() {
                continue;
            }
            age.alone = more.over(&room).smaller(&T::one());
            age.total.gain(&room.times(&age.alone).smaller(&more));
            for (left, room) in left.iter_mut().zip(&rooms) {
                *left = left.excess_over(&room.times(&age.alone));
            }
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
        self.ages.truncate(given.ages.len());
        for ([drafted, kept], share) in self.ages.iter_mut().zip(&shares) {
            *drafted = scaled(drafted, &ratio);
            if !T::EXACT {
                let most = BigUint::from(1u32) << 332u32;
                *drafted = drafted.smaller(&T::fraction(&most, &1u32.into()));
            }
            *kept = if p.is_nil() { T::zero() } else { share.over(p) };
            // Rounding alone can bring it above.
            *kept = kept.smaller(drafted).smaller(&free);
            free = free.excess_over(kept);
        }
        self.ages.push_front([free.clone(), free]);
    }
}

impl<T: Number> GivenOut<T> {
    /// The sum of g_j over all tokens, ages ascending; none of ages that draft nothing more.
    pub fn totals(&self) -> Vec<T> {
        self.ages.iter().map(|age| age.total.clone()).collect()
    }

    /// m of a token.
    fn even(&self, p: &T, q: &T) -> T {
        match scaled(&self.offered, q) > *p {
            true => p.over(&self.offered),
            false => q.clone(),
        }
    }

    /// g_j of a token, ages ascending, one after the other; then what is left of its p.
    fn share_out(&self, p: &T, q: &T, mut to: impl FnMut(T)) -> T {
        let even = self.even(p, q);
        // All together, then each alone.
        let mut left = self.ages.iter().fold(p.clone(), |left, age| {
            left.excess_over(&age.together.times(&even))
        });
        for age in &self.ages {
            let together = age.together.times(&even);
            let alone = age.room(q, &together, &left).times(&age.alone);
            left = left.excess_over(&alone);
            to(together.plus(&alone));
        }
        left
    }

    /// g_j of a token, ages ascending.
    pub fn of_token(&self, p: &T, q: &T) -> Vec<T> {
        let mut shares = Vec::with_capacity(self.ages.len());
        self.share_out(p, q, |share| shares.push(share));
        shares
    }

    /// Returns what no age gives out of a token: where a round stops, the next token is drawn in
    /// proportion to it.
    pub fn free(&self, p: &T, q: &T) -> T {
        self.share_out(p, q, |_| ())
    }

    /// The probability that a round of this age, by the numbers in front of these rows, stops at
    /// its node if it has not stopped behind it.
    pub fn stops(&self, carry: &BlockCarry<T>, age: usize) -> T {
        let Some([drafted, kept]) = carry.ages.get(age) else {
            return T::one();
        };
        let total = self.ages.get(age);
        let total = total.map_or_else(T::zero, |age| age.total.clone());
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
    let mut carry = BlockCarry::new(most);
    starts_along(rows, |&(p, q, token)| {
        carry.pass(Some((p, q)), token);
        carry.start().clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::draw;
    use crate::rounds::carried_starts;
    use specgap_number::distribution::Rational;

    /// Rows of three tokens with zeros among them, and tokens of the text.
    fn texts() -> Vec<Vec<[Vec<Rational>; 2]>> {
        let mut state = 11_u64;
        let mut next = |below: u64| draw(&mut state, below);
        let mut row = || -> Vec<Rational> {
            let weights: Vec<u64> = (0..3).map(|_| next(5)).collect();
            let total = weights.iter().sum::<u64>().max(1);
            let share = |&weight: &u64| Rational::new(weight.into(), total.into());
            let mut row: Vec<Rational> = weights.iter().map(share).collect();
            if weights.iter().all(|&weight| weight == 0) {
                row[0] = Rational::one();
            }
            row
        };
        let mut text = || (0..7).map(|_| [row(), row()]).collect();
        (0..40).map(|_| text()).collect()
    }

    /// A token of positive p.
    fn token(p: &[Rational], place: usize) -> usize {
        let (mut tokens, count) = ((0..3).cycle().skip(place), 3);
        tokens.find(|&token| !p[token].is_nil()).unwrap_or(count)
    }

    #[test]
    fn what_is_given_out_keeps_its_limits_and_floats_follow() {
        let mut limits = [0; 3];
        for rows in texts() {
            for most in 1..=4 {
                let mut carry = BlockCarry::<Rational>::new(most);
                let mut close = BlockCarry::<f64>::new(most);
                for (place, [p, q]) in rows.iter().enumerate() {
                    let given = carry.give_out(Some((p, q)));
                    let all: Rational = carry.ages.iter().map(|[_, kept]| kept).sum();
                    assert_eq!(all, Rational::one());
                    let shares: Vec<Vec<Rational>> =
                        p.iter().zip(q).map(|(p, q)| given.of_token(p, q)).collect();
                    for (age, [drafted, kept]) in carry.ages.iter().take(most).enumerate() {
                        let total: Rational = shares.iter().map(|share| &share[age]).sum();
                        assert_eq!(total, given.ages[age].total);
                        assert!(total <= *kept && kept <= drafted);
                        limits[0] += usize::from(total == *kept);
                        let each = shares.iter().zip(q);
                        assert!(each.clone().all(|(share, q)| share[age] <= drafted * q));
                        limits[1] += each.filter(|(share, q)| share[age] == drafted * *q).count();
                    }
                    for (share, p) in shares.iter().zip(p) {
                        let total: Rational = share.iter().sum();
                        assert!(total <= *p);
                        limits[2] += usize::from(total == *p);
                    }
                    let floats = [p, q].map(|row| row.iter().map(Number::to_f64).collect());
                    let [p_close, q_close]: [Vec<f64>; 2] = floats;
                    let token = token(p, place);
                    carry.pass(Some((p, q)), token);
                    close.pass(Some((&p_close, &q_close)), token);
                    assert!((carry.start().to_f64() - close.start()).abs() < 1e-12);
                }
            }
        }
        assert!(limits.iter().all(|&met| met > 100), "{limits:?}");
    }

    #[test]
    fn one_draft_by_block_is_one_by_token() {
        for rows in texts() {
            let places = rows.iter().enumerate();
            let text: Vec<(&[Rational], &[Rational], usize)> = places
                .map(|(place, [p, q])| (&p[..], &q[..], token(p, place)))
                .collect();
            let ratio =
                |(p, q, token): &(&[Rational], &[Rational], usize)| q[*token].over(&p[*token]);
            let ratios: Vec<Rational> = text.iter().map(ratio).collect();
            assert_eq!(carried_block_starts(&text, 1), carried_starts(&ratios, 1));
            assert_eq!(carried_block_starts(&text, 0), vec![Rational::one(); 7]);
        }
    }

    #[test]
    fn extreme_rows_leave_probabilities() {
        let rows = [
            ([1.0 - 1e-300, 1e-300], [0.0, 1.0]),
            ([1e-300, 1.0 - 1e-300], [1.0, 0.0]),
            ([0.5, 0.5], [0.5, 0.5]),
        ];
        for tokens in 0..2_usize.pow(6) {
            let mut carry = BlockCarry::new(4);
            for place in 0..6 {
                let (p, q) = &rows[place % 3];
                let token = tokens >> place & 1;
                let given = carry.give_out(Some((p, q)));
                for age in 0..=4 {
                    let stops = given.stops(&carry, age);
                    assert!((0.0..=1.0).contains(&stops), "{stops}");
                }
                carry.pass(Some((p, q)), token);
                assert!((0.0..=1.0).contains(carry.start()));
            }
        }
        // Behind the last token nothing is drafted.
        let mut carry = BlockCarry::<f64>::new(3);
        carry.pass(None, 0);
        assert_eq!(carry.start(), &1.0);
    }
}
