//! How counts scatter of rules that carry numbers from token to token, given the whole text.

use super::moments::{CountMoments, spread};
use specgap_core::rounds::{BlockCarry, Carry, GivenOut};
use specgap_number::number::{Number, RunningSum};

/// Rounds of the rules [`Carry`] and [`BlockCarry`] along a text, token by token.
///
/// Text that was drawn behind a round's end tells of that round: these rules are lossless as a
/// text, so that [`carried_starts`](specgap_core::rounds::carried_starts) is the probability of a
/// start given the text *before* it. Given the whole text starts are a Markov chain all the same,
/// with other probabilities.
///
/// # Formula
/// a_j(t) the probability, given the text before token t, that the running round began j tokens
/// ago and keeps them, and g_j(t, y) what it gives out of p,
///
/// ```text
/// end_j(t) = (a_j(t) - sum over x of g_j(t, x)) f(t, y_t) / (p(y_t) sum over x of f(t, x)),
/// f(t, x) = p(x) - sum over j of g_j(t, x)
/// ```
///
/// is the probability that it ends with y_t, over that of y_t. So with R_s the probability of the
/// text from s on, given that a round starts there, over the target's,
///
/// ```text
/// R_s = sum over i of end_i(s + i) R_(s+i+1) / a_0(s),   R_N = 1
/// P_s(i) = end_i(s + i) R_(s+i+1) / (a_0(s) R_s)
/// ```
///
/// are the probabilities of rounds given the whole text. A round that goes on behind the last
/// token ends there. What is counted of them is as in
/// [`moments_of_chain`](super::moments_of_chain).
///
/// # Exactness
/// Exact in rationals, given the text.
///
/// # Complexity
/// O(V) a token, by block O(K V); O(N K) memory.
///
/// # Source
/// This project; `docs/theory/text-replay.md`, "Against a live decoder".
///
/// # Example
/// ```
/// use specgap_replay::replay::CarriedAlong;
///
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// let mut along = CarriedAlong::by_token(1);
/// along.take(Some((&p, &q)), 1);
/// // The last token that a text may have is not drafted.
/// along.take(None, 0);
/// let calls = along.spread().calls;
/// assert_eq!((calls.mean, calls.variance), (1.5, 0.25));
/// ```
#[derive(Clone, Debug)]
pub struct CarriedAlong<T> {
    most: usize,
    carry: Carries<T>,
    places: Vec<Place<T>>,
}

#[derive(Clone, Debug)]
enum Carries<T> {
    ByToken(Carry<T>),
    ByBlock(BlockCarry<T>),
}

/// What rounds do at a token, by their age.
#[derive(Clone, Debug)]
struct Place<T> {
    /// a_0.
    start: T,
    ends: Vec<T>,
    /// g of the token over its p.
    goes_on: Vec<T>,
}

impl<T: Number> CarriedAlong<T> {
    /// In front of a text, for rounds of at most `most` drafts of the rule [`Carry`].
    pub fn by_token(most: usize) -> Self {
        Self::with(most, Carries::ByToken(Carry::new(most)))
    }

    /// The same of the rule [`BlockCarry`].
    pub fn by_block(most: usize) -> Self {
        Self::with(most, Carries::ByBlock(BlockCarry::new(most)))
    }

    fn with(most: usize, carry: Carries<T>) -> Self {
        Self {
            most,
            carry,
            places: Vec::new(),
        }
    }

    /// Goes on behind the text's next token, of p above 0. There are no rows where nothing can be
    /// drafted, as at the last token that a text may have.
    pub fn take(&mut self, rows: Option<(&[T], &[T])>, token: usize) {
        let of_token = rows.and_then(|(p, q)| Some([p.get(token)?, q.get(token)?]));
        let (shares, totals, goes_on) = match (&mut self.carry, rows.zip(of_token)) {
            (Carries::ByToken(carry), Some(((p, q), [p_own, q_own]))) => {
                let (shares, standing) = (carry.kept(), carry.standing());
                let mut given = T::Sum::default();
                for (p, q) in p.iter().zip(q) {
                    given.add(&standing.times(q).smaller(p));
                }
                let own = standing.times(q_own).smaller(p_own).over(p_own);
                let drafting = shares.iter().take(self.most);
                let drafting = drafting.filter(|_| !standing.is_nil());
                let given = given.value();
                let of = |given: &T| {
                    let each = drafting.clone();
                    each.map(|share| share.over(&standing).times(given))
                        .collect::<Vec<_>>()
                };
                let (totals, goes_on) = (of(&given), of(&own));
                carry.pass(&q_own.over(p_own));
                (shares, totals, goes_on)
            }
            (Carries::ByBlock(carry), Some((rows, of_token))) => {
                let given: GivenOut<T> = carry.give_out(Some(rows));
                let [p, q] = of_token;
                let own = given.of_token(p, q).into_iter();
                let own = own.map(|share| share.over(p)).collect();
                let shares = carry.kept();
                carry.pass_given(&given, of_token);
                (shares, given.totals(), own)
            }
            // Every round ends here, and behind it nothing is asked.
            (Carries::ByToken(carry), None) => (carry.kept(), Vec::new(), Vec::new()),
            (Carries::ByBlock(carry), None) => (carry.kept(), Vec::new(), Vec::new()),
        };
        let free = T::one().excess_over(&T::total(&goes_on));
        let left = T::one().excess_over(&T::total(&totals));
        let mut totals = totals.into_iter();
        let ends = shares.iter().map(|share| {
            let stops = share.excess_over(&totals.next().unwrap_or_else(T::zero));
            match left.is_nil() {
                true => T::zero(),
                false => stops.times(&free).over(&left),
            }
        });
        self.places.push(Place {
            start: shares.first().cloned().unwrap_or_else(T::zero),
            ends: ends.collect(),
            goes_on,
        });
    }

    /// Mean and variance of calls and drafts, given the whole text.
    pub fn spread(&self) -> CountMoments<T> {
        let length = self.places.len();
        let mut rest = vec![T::zero(); length];
        rest.push(T::one());
        spread(length, |start, left| {
            let levels = self.most.min(left);
            let here = self.places[start..=start + levels].iter().enumerate();
            let parts: Vec<T> = here
                .map(|(age, place)| {
                    let behind = start + age + 1;
                    let of = |shares: &[T]| shares.get(age).cloned().unwrap_or_else(T::zero);
                    let mut part = of(&place.ends).times(&rest[behind]);
                    if behind == length {
                        part.gain(&of(&place.goes_on));
                    }
                    part
                })
                .collect();
            let whole = T::total(&parts);
            // Where no round can start nothing is counted.
            if whole.is_nil() {
                return (Vec::new(), levels);
            }
            rest[start] = whole.over(&self.places[start].start);
            let reached = (1..=levels).map(|age| T::total(&parts[age..]).over(&whole));
            (reached.collect(), levels)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::Rational;

    /// Sevenths, whose sums are rounded, and rows that leave nothing to draw.
    #[test]
    fn floats_follow_fractions_where_no_round_can_start() {
        let mut state = 7_u64;
        let mut row = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let share = Rational::new((state >> 33).rem_euclid(8).into(), 7.into());
            [share.clone(), share.complement()]
        };
        let mut without_start = 0;
        for _ in 0..60 {
            let rows: Vec<_> = (0..18).map(|_| [row(), row()]).collect();
            let floats = (rows.iter()).map(|rows| rows.clone().map(|row| row.map(|x| x.to_f64())));
            for most in 1..6 {
                let mut exact = CarriedAlong::<Rational>::by_token(most);
                let mut close = CarriedAlong::<f64>::by_token(most);
                for ([p, q], [p_close, q_close]) in rows.iter().zip(floats.clone()) {
                    let token = usize::from(p[0].is_nil());
                    exact.take(Some((p, q)), token);
                    close.take(Some((&p_close, &q_close)), token);
                }
                let starts = exact.places.iter();
                without_start += starts.filter(|place| place.start.is_nil()).count();
                let (exact, close) = (exact.spread().calls, close.spread().calls);
                assert!((exact.mean.to_f64() - close.mean).abs() < 1e-9, "{close:?}");
                assert!((exact.variance.to_f64() - close.variance).abs() < 1e-9);
            }
        }
        assert!(without_start > 1000, "{without_start}");
    }
}
