//! How far rounds get from where they start.

use super::coins::Coins;
use super::survival::{ChainRule, Survival};
use specgap_number::number::Number;

/// Rounds of K drafts that have K tokens of the text ahead of them, in expectation given the text.
#[derive(Clone, Debug, PartialEq)]
pub struct FromStarts<T> {
    /// How many such rounds there are.
    pub rounds: T,
    /// How many of them accept at least 1, 2, ..., K drafts.
    pub reached: Vec<T>,
}

/// Returns how far rounds of `length` drafts get, over the places where they start.
///
/// # Formula
/// With w_s the probability that a round starts behind s tokens ([`Replay::starts`]) and m_i(s) the
/// probability that it accepts i drafts ([`Survival`]): the sums over s of w_s and of w_s m_i(s), for
/// all s with `length` tokens behind them. Divided by one another they are P(tau >= i) over round
/// starts, what a server's counters tell: a round that starts behind a rejected token meets other
/// rows than one that starts anywhere. No round that the text's end cut short counts, and w_s
/// depends on what lies before s alone, so that the text's end has no say in them.
///
/// # Exactness
/// Exact in rationals, given the text.
///
/// # Complexity
/// O(N K).
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChainRule, FixedLength, reached_from_starts, replay};
///
/// let coins = [0.5, 1.0, 0.25];
/// let replayed = replay(ChainRule::TOKEN, &coins, &FixedLength(2)).unwrap();
/// // From token 0 always, and from token 1 where the first draft was rejected.
/// let found = reached_from_starts(ChainRule::TOKEN, &coins, &replayed.starts, 2);
/// assert_eq!(found.rounds, 1.0 + 0.5);
/// assert_eq!(found.reached, [0.5 + 0.5 * 1.0, 0.5 + 0.5 * 0.25]);
/// ```
///
/// [`Replay::starts`]: super::Replay::starts
pub fn reached_from_starts<T: Number>(
    verifier: ChainRule,
    coins: &(impl Coins<T> + ?Sized),
    starts: &[T],
    length: usize,
) -> FromStarts<T> {
    let mut found = FromStarts {
        rounds: T::zero(),
        reached: vec![T::zero(); length],
    };
    for (start, weight) in starts.iter().enumerate() {
        let ahead = coins.ahead(start);
        if ahead.len() < length {
            continue;
        }
        found.rounds.gain(weight);
        let mut survival = Survival::new(verifier);
        for (sum, coin) in found.reached.iter_mut().zip(ahead) {
            survival.take(coin);
            sum.gain(&weight.times(survival.reached()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{FixedLength, replay};
    use specgap_number::distribution::{Rational, parse_rational};

    fn fraction(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    /// Rows over two tokens that depend on the whole prefix, and are never 0.
    fn rows(prefix: &[usize]) -> [[Rational; 2]; 2] {
        let code = prefix.iter().fold(1usize, |code, token| 2 * code + token);
        let row = |eighths: usize| {
            let first = fraction(&format!("{}/8", 1 + eighths % 7));
            let rest = Rational::one().excess_over(&first);
            [first, rest]
        };
        [row(code * 3 + 1), row(code * 5 + 2)]
    }

    /// Full rounds from a prefix on that accept at least `i` drafts, by the rule's definition: a
    /// draft is drawn, kept with min(1, p/q), else replaced from (p - q)+. No coins of a text.
    fn by_definition(prefix: &mut Vec<usize>, tokens: usize, length: usize, i: usize) -> Rational {
        if prefix.len() + length > tokens {
            return Rational::zero();
        }
        let begun = prefix.len();
        let mut sum = Rational::zero();
        from_within(prefix, begun, tokens, length, i, &Rational::one(), &mut sum);
        sum
    }

    fn from_within(
        prefix: &mut Vec<usize>,
        begun: usize,
        tokens: usize,
        length: usize,
        i: usize,
        weight: &Rational,
        sum: &mut Rational,
    ) {
        let accepted = prefix.len() - begun;
        let [p, q] = rows(prefix);
        let done = accepted == length;
        for token in 0..2 {
            let kept = p[token].smaller(&q[token]);
            let other = match done {
                true => p[token].clone(),
                false => p[token].excess_over(&q[token]),
            };
            prefix.push(token);
            if !done {
                from_within(prefix, begun, tokens, length, i, &weight.times(&kept), sum);
            }
            // The round ends here: what it counts, and the rounds behind it.
            let here = weight.times(&other);
            if !here.is_nil() {
                if accepted >= i {
                    sum.gain(&here);
                }
                sum.gain(&here.times(&by_definition(prefix, tokens, length, i)));
            }
            prefix.pop();
        }
    }

    /// All texts of six tokens, weighed by p, against the random process itself.
    #[test]
    fn rounds_where_they_start_are_those_of_the_process() {
        const TOKENS: usize = 6;
        for length in [1, 2, 3] {
            let mut sums = vec![Rational::zero(); length + 1];
            for text in 0..1usize << TOKENS {
                let tokens: Vec<usize> = (0..TOKENS).map(|t| text >> t & 1).collect();
                let mut weight = Rational::one();
                let mut ratios = Vec::new();
                for (at, &token) in tokens.iter().enumerate() {
                    let [p, q] = rows(&tokens[..at]);
                    weight = weight.times(&p[token]);
                    ratios.push(q[token].over(&p[token]));
                }
                let policy = FixedLength(length);
                let replayed = replay(ChainRule::TOKEN, &ratios, &policy).unwrap();
                let found =
                    reached_from_starts(ChainRule::TOKEN, &ratios, &replayed.starts, length);
                for (sum, one) in sums
                    .iter_mut()
                    .zip([found.rounds].iter().chain(&found.reached))
                {
                    sum.gain(&weight.times(one));
                }
            }
            for (i, sum) in sums.iter().enumerate() {
                let expected = by_definition(&mut Vec::new(), TOKENS, length, i);
                assert_eq!(*sum, expected, "K = {length}, i = {i}");
            }
        }
    }
}
