//! The best of several things that could be done, chosen on prompts that do not measure it.

use crate::half_of;
use crate::statistics::{Clustered, Estimate};
use std::cmp::Ordering;

/// Something that could be done, beside what is done now.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// By prompt: the sum over its positions of what it gets more than what is done now.
    pub more: Vec<f64>,
    /// How far full rows may be below and above the sum of all of these; nothing of full rows.
    pub open: Option<[f64; 2]>,
    /// How much has to be built for it: what is less comes first of what is alike.
    pub effort: u8,
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// By all prompts.
    pub all: usize,
    /// By the prompts of each half ([`half_of`]).
    pub halves: [usize; 2],
    /// What is gained: on each half by the choice of the other one.
    pub difference: Estimate,
}

/// Prompts that a choice takes: two that choose and two that measure.
const LEAST: usize = 4;

/// Chooses on each half of the prompts, and measures on the other half.
///
/// `sizes` are the positions of each prompt. The choice is the candidate with the largest mean at
/// its worst, whatever rows do not list; and instead of it one that takes less effort, if the paired
/// difference between the two is not told from 0 or is less than `floor`, and if it is itself worth
/// the change. `None` of fewer than four prompts, or without a candidate.
///
/// # Formula
/// With S_c the sums of the candidate that the other half of prompt c chose, m_c its positions:
/// `sum of S_c / sum of m_c`, with the interval of [`Clustered`]. Bounds are rigorous: a half's
/// share of what rows leave open is at most the whole.
///
/// # Example
/// ```
/// use specgap_statistics::advice::{Candidate, cross_fitted};
///
/// let one = |more: [f64; 4], effort| Candidate { more: more.to_vec(), open: None, effort };
/// // The first has one lucky prompt; the second is steady.
/// let found = cross_fitted(
///     &[10.0; 4],
///     &[one([9.0, 0.0, 0.0, 0.0], 1), one([2.0, 2.1, 1.9, 2.0], 1)],
///     0.005,
/// );
/// let found = found.unwrap();
/// assert_eq!(found.halves, [0, 1]);
/// // The lucky one on the second and third prompt, the steady one on the others.
/// assert!((found.difference.mean - (0.0 + 0.0 + 2.0 + 2.0) / 40.0).abs() < 1e-15);
/// ```
#[must_use]
pub fn cross_fitted(sizes: &[f64], candidates: &[Candidate], floor: f64) -> Option<Choice> {
    if sizes.len() < LEAST {
        return None;
    }
    let among = Among {
        sizes,
        candidates,
        floor,
    };
    let all = among.best(|_| true)?;
    let halves = [
        among.best(|prompt| half_of(prompt) == 0)?,
        among.best(|prompt| half_of(prompt) == 1)?,
    ];
    let sums = sizes.iter().enumerate().filter_map(|(prompt, &size)| {
        let chosen = candidates.get(halves[1 - half_of(prompt)])?;
        Some((*chosen.more.get(prompt)?, size))
    });
    let used = match halves {
        [one, two] if one == two => vec![one],
        both => both.to_vec(),
    };
    let open = used.iter().filter_map(|&one| candidates.get(one)?.open);
    let open = open.reduce(|[a, b], [c, d]| [a + c, b + d]);
    let difference = Clustered::new(sums).estimate();
    Some(Choice {
        all,
        halves,
        difference: among.opened(difference, open),
    })
}

struct Among<'a> {
    sizes: &'a [f64],
    candidates: &'a [Candidate],
    floor: f64,
}

impl Among<'_> {
    fn opened(&self, of: Estimate, open: Option<[f64; 2]>) -> Estimate {
        let count: f64 = self.sizes.iter().sum();
        Estimate {
            truncation: open.map(|[low, high]| [of.mean - low / count, of.mean + high / count]),
            ..of
        }
    }

    /// Returns what a candidate gets more than another, or than what is done now, on some prompts.
    fn more(&self, one: usize, than: Option<usize>, on: impl Fn(usize) -> bool) -> Estimate {
        let of = |at: usize, prompt: usize| {
            let sums = self.candidates.get(at).map(|one| &one.more);
            sums.and_then(|sums| sums.get(prompt))
                .copied()
                .unwrap_or(0.0)
        };
        let prompts = self.sizes.iter().enumerate();
        let prompts: Vec<(f64, f64)> = prompts
            .filter(|&(prompt, _)| on(prompt))
            .map(|(prompt, &size)| {
                let less = than.map_or(0.0, |than| of(than, prompt));
                (of(one, prompt) - less, size)
            })
            .collect();
        let open = |at: usize| self.candidates.get(at)?.open;
        let open = match (open(one), than.and_then(open)) {
            (Some([a, b]), Some([c, d])) => Some([a + d, b + c]),
            (one, other) => one.or(other.map(|[low, high]| [high, low])),
        };
        self.opened(Clustered::new(prompts.iter().copied()).estimate(), open)
    }

    fn worst(&self, one: usize, on: impl Fn(usize) -> bool) -> f64 {
        let more = self.more(one, None, on);
        more.truncation.map_or(more.mean, |[low, _]| low)
    }

    fn is_worth(&self, more: &Estimate) -> bool {
        super::Verdict::of(more, self.floor) == super::Verdict::Worth
    }

    fn best(&self, on: impl Fn(usize) -> bool + Copy) -> Option<usize> {
        let by_worst = |&a: &usize, &b: &usize| -> Ordering {
            self.worst(a, on).total_cmp(&self.worst(b, on))
        };
        // The first of those that are alike.
        let all = || (0..self.candidates.len()).rev();
        let best = all().max_by(by_worst)?;
        let effort = |at: usize| self.candidates.get(at).map_or(0, |one| one.effort);
        let needed = self.is_worth(&self.more(best, None, on));
        let simpler = all().filter(|&one| {
            effort(one) < effort(best)
                && !self.is_worth(&self.more(best, Some(one), on))
                && (!needed || self.is_worth(&self.more(one, None, on)))
        });
        let least_first =
            |a: &usize, b: &usize| effort(*b).cmp(&effort(*a)).then_with(|| by_worst(a, b));
        Some(simpler.max_by(least_first).unwrap_or(best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(more: &[f64], effort: u8) -> Candidate {
        Candidate {
            more: more.to_vec(),
            open: None,
            effort,
        }
    }

    const SIZES: [f64; 6] = [10.0; 6];

    #[test]
    fn what_is_alike_and_simpler_comes_first() {
        let best = one(&[1.01, 1.09, 1.03, 1.08, 1.0, 1.06], 4);
        let simpler = one(&[1.0, 1.1, 1.02, 1.08, 1.0, 1.05], 2);
        let found = cross_fitted(&SIZES, &[best.clone(), simpler.clone()], 0.005).unwrap();
        assert_eq!((found.all, found.halves), (1, [1, 1]));
        // The plain paired difference, as both halves agree.
        assert!((found.difference.mean - 6.25 / 60.0).abs() < 1e-15);
        // As simple: the larger one.
        let alike = Candidate { effort: 2, ..best };
        let found = cross_fitted(&SIZES, &[alike, simpler], 0.005).unwrap();
        assert_eq!(found.all, 0);
        // One that is told apart by more than the floor stays.
        let far = one(&[2.0, 2.1, 2.02, 2.08, 2.0, 2.1], 4);
        let near = one(&[1.0, 1.1, 1.02, 1.08, 1.0, 1.05], 2);
        assert_eq!(cross_fitted(&SIZES, &[near, far], 0.005).unwrap().all, 1);
    }

    #[test]
    fn a_candidate_counts_at_its_worst() {
        let wide = Candidate {
            open: Some([60.0, 1.0]),
            ..one(&[3.0; 6], 1)
        };
        let sure = Candidate {
            open: Some([0.6, 1.2]),
            ..one(&[1.0, 1.1, 0.9, 1.0, 1.1, 0.9], 1)
        };
        let found = cross_fitted(&SIZES, &[wide.clone(), sure], 0.005).unwrap();
        assert_eq!((found.all, found.halves), (1, [1, 1]));
        let [low, high] = found.difference.truncation.unwrap();
        assert!((low - 0.09).abs() < 1e-12 && (high - 0.12).abs() < 1e-12);
        // Alone it is taken, with all that is open.
        let found = cross_fitted(&SIZES, &[wide], 0.005).unwrap();
        let [low, _] = found.difference.truncation.unwrap();
        assert!((low - (0.3 - 1.0)).abs() < 1e-12);
    }

    /// Among candidates that are noise the winner seems good where it was chosen, and is worth
    /// nothing where it was not.
    #[test]
    fn the_best_of_noise_gains_nothing() {
        // Each is good on one prompt of twelve, and bad on its neighbour of the other half.
        let candidates: Vec<Candidate> = (0..12)
            .map(|at| {
                let mut more = vec![0.0; 12];
                more[at] = 5.0;
                more[at ^ 1] = -5.0;
                one(&more, 1)
            })
            .collect();
        let found = cross_fitted(&[10.0; 12], &candidates, 0.005).unwrap();
        assert!(found.difference.mean < 0.0, "{found:?}");
        assert_eq!(cross_fitted(&[10.0; 3], &[one(&[1.0; 3], 1)], 0.005), None);
        assert_eq!(cross_fitted(&[10.0; 6], &[], 0.005), None);
    }
}
