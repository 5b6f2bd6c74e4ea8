//! Uniform numbers at which a kernel that takes them has one right answer.

use super::laws::Laws;

/// One choice of all uniform numbers of a vector.
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
const ALMOST_ONE: f64 = 1.0 - 1.0 / 16_777_216.0;
/// How far tests are from where they change, relatively.
const APART: f64 = 1e-3;
/// Kernels in f32 are given this much, relatively.
const ROUNDING: f64 = 1e-4;
/// Choices a vector has: a multiple of the ways a draft's test is put.
pub(super) fn count(drafts: usize) -> usize {
    4 * drafts
}

/// All choices for a vector.
pub(super) fn all(laws: &Laws, is_chain: bool) -> Vec<Coins> {
    let drafts = laws.keeps.len();
    let mut all = Vec::with_capacity(count(drafts));
    for at in 0..drafts {
        let keep = laws.keeps.get(at).copied().unwrap_or(0.0);
        for (way, test) in [0.0, keep * (1.0 - APART), keep * (1.0 + APART), ALMOST_ONE]
            .into_iter()
            .enumerate()
        {
            let tests: Vec<f64> = (laws.keeps.iter().enumerate())
                .map(|(k, &keep)| match k.cmp(&at) {
                    // A chain gets here by acceptances, siblings by rejections.
                    std::cmp::Ordering::Less if is_chain => 0.5 * keep,
                    std::cmp::Ordering::Less => 0.5 * (1.0 + keep),
                    std::cmp::Ordering::Equal => test,
                    std::cmp::Ordering::Greater => 0.5,
                })
                .map(|test| test.min(ALMOST_ONE))
                .collect();
            let accepted = outcome(&laws.keeps, &tests, is_chain);
            let law = usize::try_from(accepted).ok().filter(|_| is_chain);
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

fn outcome(keeps: &[f64], tests: &[f64], is_chain: bool) -> i64 {
    for (k, (&keep, &test)) in keeps.iter().zip(tests).enumerate() {
        let kept = if keep <= 0.0 {
            false
        } else if keep >= 1.0 || test < keep * (1.0 - ROUNDING) {
            true
        } else if test > keep * (1.0 + ROUNDING) {
            false
        } else {
            return -1;
        };
        if kept != is_chain {
            return k as i64;
        }
    }
    keeps.len() as i64
}

/// A number for the last draw, and the token that it stands for.
fn last(law: &[f64], way: usize) -> (f64, i64) {
    let total: f64 = law.iter().sum();
    if total <= 0.0 {
        return (0.5, -1);
    }
    let first = law.iter().position(|&x| x > 0.0).unwrap_or(0);
    let heaviest = (0..law.len())
        .max_by(|&a, &b| law[a].total_cmp(&law[b]).then(b.cmp(&a)))
        .unwrap_or(0);
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
    if law[token] < least * total {
        (middle.min(ALMOST_ONE), -1)
    } else {
        (middle.min(ALMOST_ONE), token as i64)
    }
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
            assert_eq!(outcome(&keeps, &tests, true), chain, "{tests:?}");
            assert_eq!(outcome(&keeps, &tests, false), siblings, "{tests:?}");
        }
        assert_eq!(outcome(&[1.0, 1.0], &[ALMOST_ONE, 0.0], true), 2);
        assert_eq!(outcome(&[0.0, 0.0], &[0.0, 0.0], false), 2);
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
