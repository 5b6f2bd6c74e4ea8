//! Uniform numbers at which a kernel that takes them has one right answer.

use super::laws::Laws;
use super::rows::most;
use specgap_core::rule::RuleName;
use std::cmp::Ordering;

/// In which order drafts are tested, and what a test that comes up means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The draft is kept, and the next one's turn comes.
    Chain,
    /// The draft is put out.
    Siblings,
    /// From the last draft on: the chain is kept up to here.
    FromEnd,
}

impl Order {
    pub(super) fn of(rule: RuleName) -> Self {
        if rule == RuleName::CARRIED_BLOCK {
            Self::FromEnd
        } else if rule.is_chain() {
            Self::Chain
        } else {
            Self::Siblings
        }
    }
}

/// One choice of all uniform numbers of a vector, or of a request.
#[derive(Clone, Debug)]
pub(super) struct Coins {
    /// One for each draft.
    pub tests: Vec<f64>,
    /// How many drafts of a chain are accepted, or which sibling is (their number if none);
    /// -1 where rounding may decide.
    pub accepted: i64,
    /// For the token that is drawn in the end, by the inverse of the distribution function
    /// in order of id.
    pub last: f64,
    /// That token; -1 for any of positive probability.
    pub token: i64,
}

/// The largest uniform number that f32 has below 1.
pub(super) const ALMOST_ONE: f64 = 1.0 - 1.0 / 16_777_216.0;
/// How far tests are from where they change, relatively.
const APART: f64 = 1e-3;
/// Kernels in f32 are given this much, relatively.
pub(super) const ROUNDING: f64 = 1e-4;

/// All choices for a vector.
pub(super) fn all(laws: &Laws, order: Order) -> Vec<Coins> {
    let drafts = laws.keeps.len();
    let mut all = Vec::with_capacity(4 * drafts);
    for at in 0..drafts {
        let keep = laws.keeps.get(at).copied().unwrap_or(0.0);
        let ways = [0.0, keep * (1.0 - APART), keep * (1.0 + APART), ALMOST_ONE];
        for (way, test) in ways.into_iter().enumerate() {
            let tests: Vec<f64> = (laws.keeps.iter().enumerate())
                .map(|(k, &keep)| match (k.cmp(&at), order) {
                    // A chain gets here by acceptances, others by rejections.
                    (Ordering::Less, Order::Chain) => 0.5 * keep,
                    (Ordering::Less, Order::Siblings) | (Ordering::Greater, Order::FromEnd) => {
                        0.5 * (1.0 + keep)
                    }
                    (Ordering::Equal, _) => test,
                    _ => 0.5,
                })
                .map(|test| test.min(ALMOST_ONE))
                .collect();
            let accepted = outcome(&laws.keeps, &laws.spread, &tests, order);
            let law = usize::try_from(accepted).ok();
            let law = law.filter(|_| order != Order::Siblings);
            let law = law.and_then(|accepted| laws.next.get(accepted));
            let (last, token) = law.map_or((0.5, -1), |law| last(law, 4 * at + way));
            all.push(Coins {
                tests,
                accepted,
                last,
                token,
            });
        }
    }
    all
}

fn outcome(keeps: &[f64], spread: &[f64], tests: &[f64], order: Order) -> i64 {
    let count = keeps.len();
    for turn in 0..count {
        let from_end = order == Order::FromEnd;
        let k = if from_end { count - 1 - turn } else { turn };
        let (keep, test, spread) = (keeps[k], tests[k], spread[k]);
        let kept = if keep <= 0.0 && (spread == 0.0 || test > spread) {
            false
        } else if keep >= 1.0 || test < keep * (1.0 - ROUNDING) - spread {
            true
        } else if test > keep * (1.0 + ROUNDING) + spread {
            false
        } else {
            return -1;
        };
        match (kept, order) {
            (false, Order::Chain) | (true, Order::Siblings) => return k as i64,
            (true, Order::FromEnd) => return k as i64 + 1,
            _ => {}
        }
    }
    match order {
        Order::FromEnd => 0,
        _ => count as i64,
    }
}

/// A number for the last draw, and the token that it stands for.
fn last(law: &[f64], way: usize) -> (f64, i64) {
    let total: f64 = law.iter().sum();
    if total <= 0.0 {
        return (0.5, -1);
    }
    let first = law.iter().position(|&x| x > 0.0).unwrap_or(0);
    let heaviest = most(law.len(), |token| law[token]);
    let end = law.iter().rposition(|&x| x > 0.0).unwrap_or(0);
    // Sums of many f32 are off by more than those of few.
    let least = if law.len() > 1024 { 1e-2 } else { 1e-3 };
    let token = match way % 5 {
        0 => return (0.0, first as i64),
        1 => return (ALMOST_ONE, -1),
        2 => heaviest,
        3 => end,
        _ => first,
    };
    let before: f64 = law.iter().take(token).sum();
    let middle = (before + 0.5 * law[token]) / total;
    let is_sure = law[token] >= least * total;
    (
        middle.min(ALMOST_ONE),
        if is_sure { token as i64 } else { -1 },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_those_of_the_tests() {
        let keeps = [0.5, 0.0, 1.0];
        for (tests, chain, siblings) in [
            ([0.4, 0.0, 0.9], 1, 0),
            ([0.6, 0.0, 0.9], 0, 2),
            ([0.5, 0.0, 0.9], -1, -1),
        ] {
            let none = [0.0; 3];
            assert_eq!(outcome(&keeps, &none, &tests, Order::Chain), chain);
            assert_eq!(outcome(&keeps, &none, &tests, Order::Siblings), siblings);
            assert_eq!(outcome(&keeps, &none, &tests, Order::FromEnd), 3);
        }
        let two = |keeps: [f64; 2], spread, tests: [f64; 2], order| {
            outcome(&keeps, &[spread; 2], &tests, order)
        };
        assert_eq!(two([1.0; 2], 0.0, [ALMOST_ONE, 0.0], Order::Chain), 2);
        assert_eq!(two([0.0; 2], 0.0, [0.0; 2], Order::Siblings), 2);
        for (keeps, spread, accepted) in [
            ([0.5, 0.2], 0.0, 1),
            ([0.3, 0.2], 0.0, 0),
            ([0.3, 0.4], 0.01, 2),
            ([0.5, 0.3], 0.01, -1),
            ([0.5, 0.0], 0.01, 1),
            ([0.5, 0.0], 0.4, -1),
        ] {
            assert_eq!(two(keeps, spread, [0.4, 0.3], Order::FromEnd), accepted);
        }
    }

    #[test]
    fn the_last_number_stands_for_its_token() {
        let law = [0.0, 0.25, 0.0, 0.5, 0.25, 0.0];
        for way in 0..10 {
            let (number, token) = last(&law, way);
            assert!((0.0..1.0).contains(&number));
            if let Ok(token) = usize::try_from(token) {
                let before: f64 = law[..token].iter().sum();
                assert!(before <= number && number < before + law[token], "{way}");
            }
        }
        assert_eq!(last(&[0.0, 0.0], 0).1, -1);
    }
}
