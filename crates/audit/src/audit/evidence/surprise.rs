//! Surprise of what came out, against the entropy of the rows.

use crate::audit::beside::Surprise;
use crate::audit::model::engine::get;
use serde::{Deserialize, Serialize};

/// The normal quantile of a 95% interval.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// One step: the surprise of its token and what p leaves to chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// -ln p(y); infinite where p(y) is 0.
    pub surprise: f64,
    /// The entropy of p.
    pub entropy: f64,
    /// The variance of -ln p(y) under p.
    pub variance: f64,
}

impl Told {
    /// The surprise of what came out of a row. O(V).
    pub(crate) fn new(p: &[f64], output: usize) -> Self {
        let (mut entropy, mut squares) = (0.0, 0.0);
        for x in p.iter().filter(|x| **x > 0.0) {
            let log = -x.ln();
            entropy += x * log;
            squares += x * log * log;
        }
        Self {
            surprise: -get(p, output).max(0.0).ln(),
            entropy,
            variance: (squares - entropy * entropy).max(0.0),
        }
    }
}

/// Sums what all steps say together; `None` without any.
pub(crate) fn summed(steps: &[Told]) -> Option<Surprise> {
    let possible = || steps.iter().filter(|one| one.surprise.is_finite());
    let number = possible().count();
    if number == 0 {
        return None;
    }
    let n = number as f64;
    let sum = |of: fn(&Told) -> f64| possible().map(of).sum::<f64>();
    let (surprise, entropy) = (sum(|one| one.surprise), sum(|one| one.entropy));
    let off = surprise - entropy;
    let squares = sum(|one| (one.surprise - one.entropy).powi(2));
    let spread = sum(|one| one.variance).sqrt();
    let half = Z95 * squares.sqrt() / n;
    Some(Surprise {
        steps: number as u64,
        impossible: (steps.len() - number) as u64,
        surprise: surprise / n,
        entropy: entropy / n,
        difference: off / n,
        ci95: [off / n - half, off / n + half],
        z: (spread > 0.0).then(|| off / spread),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// By hand: p = (1/2, 1/4, 1/4, 0) has 3/2 ln 2 of entropy, and the surprise is ln 2 or 2 ln 2
    /// with 1/2 each, a variance of (ln 2)^2/4.
    #[test]
    fn one_step_and_several_by_hand() {
        let p = [0.5, 0.25, 0.25, 0.0];
        let two = 2f64.ln();
        let first = Told::new(&p, 0);
        assert!((first.surprise - two).abs() < 1e-15);
        assert!((first.entropy - 1.5 * two).abs() < 1e-15);
        assert!((first.variance - two * two / 4.0).abs() < 1e-15);
        assert_eq!(Told::new(&p, 3).surprise, f64::INFINITY);
        assert_eq!(Told::new(&p, 9).surprise, f64::INFINITY);
        let steps = [0, 1, 1, 3].map(|y| Told::new(&p, y));
        let found = summed(&steps).unwrap();
        assert_eq!((found.steps, found.impossible), (3, 1));
        assert!((found.surprise - 5.0 / 3.0 * two).abs() < 1e-15);
        assert!((found.difference - two / 6.0).abs() < 1e-15);
        // Half a ln 2 over sqrt(3/4) ln 2.
        assert!((found.z.unwrap() - 0.5 / 0.75f64.sqrt()).abs() < 1e-12);
        let half = Z95 * 0.75f64.sqrt() * two / 3.0;
        assert!((found.ci95[1] - found.difference - half).abs() < 1e-12);
        // Nothing left to chance has no z; nothing at all says nothing.
        assert_eq!(summed(&[Told::new(&[1.0], 0)]).unwrap().z, None);
        assert_eq!(summed(&[Told::new(&p, 3)]), None);
        assert_eq!(summed(&[]), None);
    }

    /// z of 2,000 texts of 60 tokens each: standard normal within what so many can tell (a mean
    /// within 5/sqrt(2000), a share of |z| > 1.96 within .05 -+ 5 sqrt(.05 .95/2000)), and each
    /// interval holds 0 as often. Seed fixed; a false alarm has probability 1e-5 at most.
    #[test]
    fn z_of_honest_texts_is_nearly_normal() {
        let mut random = ChaCha8Rng::seed_from_u64(41);
        let (mut sum, mut beyond, mut missed) = (0.0, 0u32, 0u32);
        for _ in 0..2000 {
            let steps: Vec<Told> = (0..60)
                .map(|_| {
                    let mut p = [0.0; 5];
                    p.iter_mut()
                        .for_each(|x| *x = random.random::<f64>().powi(2) + 1e-3);
                    specgap_core::rule::normalise(&mut p);
                    let y = crate::audit::evidence::play::draw(&p, random.random());
                    Told::new(&p, y)
                })
                .collect();
            let found = summed(&steps).unwrap();
            sum += found.z.unwrap();
            beyond += u32::from(found.z.unwrap().abs() > 1.96);
            missed += u32::from(found.ci95[0] > 0.0 || found.ci95[1] < 0.0);
        }
        assert!((sum / 2000.0).abs() < 0.112, "{sum}");
        for count in [beyond, missed] {
            let share = f64::from(count) / 2000.0;
            assert!((share - 0.05).abs() < 0.025, "{share}");
        }
    }
}
