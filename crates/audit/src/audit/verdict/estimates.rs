//! How strong a suspected departure is: the weight of an ensemble, and where drafts were cut.
//!
//! Likelihoods of what a log says, over a grid of values. They are sums over positions, so they are
//! made of a log in one pass, and are looked at if a suspect was named.

use crate::audit::evidence::bets::log_sum;
use crate::audit::evidence::judge::Step;
use crate::audit::model::engine::{Position, get};

/// Weights of the target in v = w p + (1 - w) q: hundredths.
const WEIGHTS: usize = 101;

/// Of 95% intervals.
const MISSED: f64 = 0.05;

/// Sizes of a top-k that are told apart.
const TOPS: [usize; 30] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 64, 80, 100, 128, 160, 200, 256,
    320, 400, 500, 640, 800, 1000,
];

/// Shares of a top-p that are told apart.
const SHARES: [f64; 16] = [
    0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99,
];

/// Likelihoods of one log.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    /// By hundredths of w, the sum of ln v(y) over outputs where something was drafted.
    mixed: Vec<f64>,
    outputs: u64,
    /// By k, the sum of ln of what the top-k holds of q.
    tops: Vec<f64>,
    /// By p, the same.
    shares: Vec<f64>,
    /// The largest rank of a draft in q, from 1; and the largest mass before one.
    deepest: usize,
    before: f64,
    drafts: u64,
}

impl Default for Estimates {
    fn default() -> Self {
        Self {
            mixed: vec![0.0; WEIGHTS],
            outputs: 0,
            tops: vec![0.0; TOPS.len()],
            shares: vec![0.0; SHARES.len()],
            deepest: 0,
            before: 0.0,
            drafts: 0,
        }
    }
}

impl Estimates {
    /// Looks at one step with one draft. O(V).
    pub(crate) fn look(&mut self, at: &Position<'_>, step: &Step, is_drawn: bool) {
        let &[draft] = step.drafts.as_slice() else {
            return;
        };
        let (p, q) = (get(at.p, step.output), get(at.q, step.output));
        if p > 0.0 && q > 0.0 {
            // Where one is 0 an end of the grid would be decided by a single token.
            self.outputs += 1;
            for (sum, hundredths) in self.mixed.iter_mut().zip(0u8..) {
                let w = f64::from(hundredths) / 100.0;
                *sum += (w * p + (1.0 - w) * q).ln();
            }
        }
        if is_drawn && !at.is_rest(draft) {
            self.drafted(at, draft);
        }
    }

    fn drafted(&mut self, at: &Position<'_>, draft: usize) {
        let own = get(at.q, draft);
        let (mut rank, mut before) = (1, 0.0);
        for (place, x) in at.q.iter().enumerate() {
            if *x > own && !at.is_rest(place) {
                rank += 1;
                before += x;
            }
        }
        self.drafts += 1;
        self.deepest = self.deepest.max(rank);
        self.before = self.before.max(before);
        // The likeliest thousand, in order.
        let most = TOPS.last().copied().unwrap_or(0);
        let listed = at.q.len() - usize::from(at.rest);
        let mut sorted: Vec<f64> = at.q.iter().take(listed).copied().collect();
        if sorted.len() > most {
            sorted.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
            sorted.truncate(most);
        }
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut held = 0.0;
        let sums: Vec<f64> = (sorted.iter())
            .map(|x| {
                held += x;
                held
            })
            .collect();
        for (sum, k) in self.tops.iter_mut().zip(TOPS) {
            let last = sums.get(k - 1).or(sums.last()).copied();
            // Ties at an end are all kept, as they are when rows are cut.
            *sum += last.unwrap_or(1.0).min(1.0).max(own).ln();
        }
        for (sum, share) in self.shares.iter_mut().zip(SHARES) {
            // Behind the thousandth token a share is held within a thousandth.
            let last = sums.iter().copied().find(|held| *held >= share);
            *sum += last.unwrap_or(share).min(1.0).max(own).ln();
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.mixed, &other.mixed),
            (&mut self.tops, &other.tops),
            (&mut self.shares, &other.shares),
        ] {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine += theirs;
            }
        }
        self.outputs += other.outputs;
        self.drafts += other.drafts;
        self.deepest = self.deepest.max(other.deepest);
        self.before = self.before.max(other.before);
    }

    /// The likeliest w, and those that the mixture over all of them does not refute at 5%.
    pub(crate) fn weight(&self) -> Option<[f64; 3]> {
        let best = (0..WEIGHTS).max_by(|&a, &b| self.mixed[a].total_cmp(&self.mixed[b]))?;
        let mean = log_sum(self.mixed.iter().copied()) - (WEIGHTS as f64).ln();
        let least = mean + MISSED.ln();
        let stands = |at: &usize| self.mixed[*at] >= least;
        let low = (0..WEIGHTS).find(stands)?;
        let high = (0..WEIGHTS).rfind(stands)?;
        (self.outputs > 0).then(|| [low, best, high].map(|at| at as f64 / 100.0))
    }

    /// The sizes that a top-k can have had: at least the deepest rank; and no draft would have been
    /// below that with probability 5% at least. `None` for its end if there is none on the grid.
    pub(crate) fn top(&self) -> Option<(usize, Option<usize>)> {
        let first = TOPS.iter().position(|k| *k >= self.deepest)?;
        let ends = self.last_that_fits(&self.tops, first);
        let high = ends.and_then(|at| TOPS.get(at).copied());
        (self.drafts > 0).then_some((self.deepest, high.map(|high| high.max(self.deepest))))
    }

    /// The same of a top-p.
    pub(crate) fn share(&self) -> Option<(f64, Option<f64>)> {
        let first = SHARES.iter().position(|share| *share > self.before)?;
        let ends = self.last_that_fits(&self.shares, first);
        let high = ends.and_then(|at| SHARES.get(at).copied());
        (self.drafts > 0).then_some((self.before, high))
    }

    /// Of cuts that hold more than the first one: the last under which all drafts would have been
    /// inside the first with probability 5%. `None` if no cut at all is refuted by it.
    fn last_that_fits(&self, held: &[f64], first: usize) -> Option<usize> {
        let inside = held.get(first)?;
        if *inside > MISSED.ln() {
            // All of q would do as well.
            return None;
        }
        (first..held.len())
            .take_while(|at| inside - held[*at] >= MISSED.ln())
            .last()
    }

    /// What a suspect's size is, in words; `None` for those that have none.
    pub(crate) fn words(&self, suspect: &str) -> Option<String> {
        match suspect {
            "ensemble" | "some-outputs-from-q" => {
                let [low, best, high] = self.weight()?;
                Some(format!(
                    "if v = w p + (1 - w) q is put out, w is {best:.2} ({low:.2} to {high:.2}, an \
                     estimate at 95%, of {} outputs)",
                    self.outputs
                ))
            }
            "top-10-drafts" | "top-50-drafts" | "nucleus-drafts" => {
                let mut ways = Vec::new();
                if let Some((low, Some(high))) = self.top() {
                    ways.push(format!("the {low} to {high} likeliest tokens of q (top-k)"));
                }
                if let Some((low, Some(high))) = self.share() {
                    ways.push(format!(
                        "the tokens that hold {low:.3} to {high:.2} of q (top-p)"
                    ));
                }
                (!ways.is_empty()).then(|| {
                    format!(
                        "all {} drafts are among {}: where drafts come from a cut of q, that is its \
                         size, at 95%",
                        self.drafts,
                        ways.join(", or among ")
                    )
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::evidence::play::draw;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const Q: [f64; 6] = [0.3, 0.25, 0.2, 0.15, 0.06, 0.04];
    const P: [f64; 6] = [0.05, 0.1, 0.15, 0.2, 0.2, 0.3];

    fn played(drafts: &[f64], outputs: &[f64], steps: usize, seed: u64) -> Estimates {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let at = Position::new(&P, &Q);
        let one = |draft: usize, output: usize| {
            let step = Step {
                drafts: vec![draft],
                accepted: false,
                output,
            };
            let mut one = Estimates::default();
            one.look(&at, &step, true);
            one
        };
        // The same step says the same, however often it is made.
        let each = [0, 1, 2, 3, 4, 5].map(|x| [0, 1, 2, 3, 4, 5].map(|y| one(x, y)));
        let mut found = Estimates::default();
        for _ in 0..steps {
            let [x, y] = [drafts, outputs].map(|law| draw(law, random.random()));
            found.add(&each[x][y]);
        }
        found
    }

    /// Of 200 logs at most 5% miss the weight, and most intervals are short.
    #[test]
    fn the_weight_of_an_ensemble_is_in_its_interval() {
        for w in [1.0, 0.9, 0.5] {
            let mixed: Vec<f64> = P
                .iter()
                .zip(Q)
                .map(|(p, q)| w * p + (1.0 - w) * q)
                .collect();
            let (mut missed, mut width) = (0, 0.0);
            for seed in 0..200 {
                let [low, best, high] = played(&Q, &mixed, 1500, seed).weight().unwrap();
                assert!(low <= best && best <= high);
                missed += u32::from(w < low - 1e-9 || w > high + 1e-9);
                width += (high - low) / 200.0;
            }
            assert!(missed <= 10 && width < 0.25, "{w}: {missed} {width}");
        }
    }

    /// Sizes of cuts by hand: a draft is among the first three of q with probability .75.
    #[test]
    fn cuts_have_the_sizes_that_drafts_allow() {
        let cut = [0.4, 1.0 / 3.0, 4.0 / 15.0, 0.0, 0.0, 0.0];
        let found = played(&cut, &P, 400, 1);
        // Twelve drafts of all of q, or of its first four, are among three with less than 5%.
        assert_eq!(found.top(), Some((3, Some(3))));
        let (low, high) = found.share().unwrap();
        assert!((low - 0.55).abs() < 1e-12 && (0.6..=0.75).contains(&high.unwrap()));
        let words = found.words("top-10-drafts").unwrap();
        assert!(
            words.starts_with("all 400 drafts are among the 3 to 3 likeliest"),
            "{words}"
        );
        // Drafts of all of q say nothing of a cut.
        let honest = played(&Q, &P, 400, 2);
        assert_eq!(honest.top(), Some((6, None)));
        assert_eq!(honest.words("nucleus-drafts"), None);
        assert_eq!(honest.words("argmax-drafts"), None);
        // Few drafts leave room above: .75^5 is more than 5%.
        let few = played(&cut, &P, 5, 4);
        assert!(few.top().unwrap().1.is_none());
        assert_eq!(Estimates::default().top(), None);
        assert_eq!(Estimates::default().weight(), None);
    }

    /// The upper end misses the cut that was made in 5% of logs at most.
    #[test]
    fn the_end_of_a_cut_is_rarely_too_low() {
        let cut = [0.3, 0.25, 0.2, 0.15, 0.06, 0.0].map(|x| x / 0.96);
        let mut missed = 0;
        for seed in 0..400 {
            let (low, high) = played(&cut, &P, 60, 100 + seed).top().unwrap();
            assert!(low <= 5);
            missed += u32::from(high.is_some_and(|high| high < 5));
        }
        assert!(missed <= 30, "{missed}");
    }
}
