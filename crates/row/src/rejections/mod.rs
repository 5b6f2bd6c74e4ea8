//! How often sequential drafts without replacement are all rejected, draft by draft, for one
//! (p, q) and any number of drafts.
//!
//! The rule is recursive rejection sampling without replacement: with p_1 = p and q_1 = q,
//! keep draft k with probability `min(1, p_k(x)/q_k(x))`, else go on with p_(k+1)
//! proportional to `(p_k - q_k)+` and with q_(k+1), which is q_k without x, renormalised.
//!
//! # Two scalars are enough
//! A rejected token has `p_k(x) < q_k(x)`, so its residual is 0 from then on.
//! Suppose the residual is `r = (p - L q)+` with mass `M(L)`, and tokens of total
//! draft mass s were rejected; they all have `p <= L q`. With `c = 1/(1-s)`, the
//! next residual is `(r - M(L) c q)+` off the rejected tokens, and zero on them:
//! that is `(p - L' q)+` with
//!
//! ```text
//! L' = L + c M(L)
//! ```
//!
//! whichever token was drawn. So the state is (L, s), starting at (0, 0); the
//! rejected tokens enter through s and through not being drawn again. This draft
//! is rejected with probability `M(L')/M(L)`, and it is token i and rejected with
//! probability `g_i/M(L)`,
//!
//! ```text
//! g_i = (c M(L) q_i - (p_i - L q_i)+)+      sum over i not rejected before = M(L')
//! ```
//!
//! Hence, with `P_k(L, s)` the probability that the next k drafts are all
//! rejected, `P_1 = M(L')/M(L)` and
//! `P_k = sum of g_i P_(k-1)(L', s + q_i) / M(L)`; the rate of acceptance is
//! `1 - P_n(0, 0)`.
//!
//! - n = 1: sum of min(p, q). n = 2: one sum over the oversampled tokens, O(V log V).
//! - n >= 3: a sum over rejected paths, enclosed (`paths.rs`), or a mean over them
//!   (`sampled.rs`). Faster, with an error that is estimated: a product rule of Gauss nodes
//!   (`product.rs`, on `sweep.rs`), for many drafts a mean with controls (`controlled.rs`).
//! - Where almost nothing of q is left after a few draws, the sum over all tuples
//!   (`summed.rs`) if they are few.

mod controlled;
mod curve;
mod paths;
mod product;
mod sampled;
mod summed;
mod sweep;

use super::scan::{Row, Workspace};
use curve::Curve;
use paths::RejectedPaths;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sampled::PathSampler;
use specgap_number::distribution::{Rows, TwoFloat, compensated_sum, heaviest};
use specgap_number::known::{Known, Sampling};
use std::sync::OnceLock;
use sweep::Sweep;

/// Most draws of all Monte Carlo runs.
const MOST_DRAWS: u64 = 8_000_000;

/// How much work a rate of rejection without replacement may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RejectionBudget {
    /// Width of the enclosure that is aimed at.
    pub width: f64,
    /// Most groups of rejected paths that are looked at; with 0, Monte Carlo is taken
    /// at once where a sum over paths would be needed.
    pub work_limit: u64,
    /// An enclosure wider than this is replaced by Monte Carlo.
    pub widest: f64,
    /// Monte Carlo runs, of many drafts fewer: 8,000,000 draws at most.
    pub samples: u64,
    /// Seed of the Monte Carlo generator (ChaCha8).
    pub seed: u64,
    /// Confidence of the Monte Carlo interval.
    pub confidence: f64,
}

impl Default for RejectionBudget {
    fn default() -> Self {
        Self {
            width: 1e-6,
            work_limit: 10_000_000,
            widest: 1e-3,
            samples: 1_000_000,
            seed: 1,
            confidence: 0.999,
        }
    }
}

impl Row<'_> {
    /// Returns how often one of n sequential drafts without replacement is accepted by recursive
    /// rejection sampling. The tokens are sorted by p/q the first time; what all n have in common
    /// is kept.
    ///
    /// # Exactness
    /// Enclosed, or a mean over random draws, as the budget says.
    ///
    /// # Example
    /// ```
    /// use specgap_row::{RejectionBudget, Rows, Workspace};
    /// let mut workspace = Workspace::new();
    /// let rows = Rows { target: &[0.25, 0.25, 0.5], draft: &[0.5, 0.25, 0.25] };
    /// let mut row = workspace.load(rows, 2)?;
    /// // 3/4 at the first draft, half of the rest at the second.
    /// let rate = row.accepted_in_turn(2, &RejectionBudget::default());
    /// assert!((rate.value() - 0.875).abs() < 1e-12);
    /// # Ok::<(), specgap_row::RowError>(())
    /// ```
    pub fn accepted_in_turn(&mut self, drafts: usize, budget: &RejectionBudget) -> Known {
        let draft = self.rows().draft;
        let drafts = drafts.max(1);
        self.rejections(|all| all.acceptance(drafts, budget, Some(draft)).rate)
    }

    /// [`Self::accepted_in_turn`] for logs of many rows: without a sort up to six drafts, and
    /// hundreds of times as fast as an enclosure from three drafts on. `seed` is that of
    /// whatever is random.
    ///
    /// # Exactness
    /// Enclosed up to two drafts. From three on a number with an error that is estimated and
    /// not proven: the difference of two Gauss rules up to six drafts; four standard errors
    /// and what so few paths may have missed beyond
    /// ([`Kind::Estimate`](specgap_number::known::Kind::Estimate)). Where two rules disagree by more
    /// than 1e-3, and where almost nothing of q is left after a few draws, the answer is that
    /// of [`Self::accepted_in_turn`].
    ///
    /// # Source
    /// `docs/theory/rrs-wo.md`: the rules are this crate's.
    ///
    /// # Example
    /// ```
    /// use specgap_row::{RejectionBudget, Rows, Workspace};
    /// let mut workspace = Workspace::new();
    /// let target = [0.1, 0.2, 0.1, 0.3, 0.3];
    /// let draft = [0.3, 0.3, 0.2, 0.1, 0.1];
    /// let mut row = workspace.load(Rows::new(&target, &draft), 3)?;
    /// let budget = RejectionBudget::default();
    /// let fast = row.accepted_in_turn_fast(3, &budget);
    /// let enclosed = row.accepted_in_turn(3, &budget);
    /// assert!((fast.value() - enclosed.value()).abs() <= fast.width() + enclosed.width());
    /// # Ok::<(), specgap_row::RowError>(())
    /// ```
    pub fn accepted_in_turn_fast(&mut self, drafts: usize, budget: &RejectionBudget) -> Known {
        if drafts <= 1 {
            // However one draft is verified.
            return self.overlap();
        }
        match self.estimated_in_turn(drafts, budget.seed) {
            Some(rate) => rate,
            None => self.accepted_in_turn(drafts, budget),
        }
    }

    /// Asks what all numbers of drafts have in common.
    fn rejections<A>(&mut self, ask: impl FnOnce(&Rejections) -> A) -> A {
        let of_shares = |_: &mut Self, rows: Rows<'_>| Rejections::new(rows.target, rows.draft);
        self.kept(|_| true, |row| row.of_shares(of_shares), ask)
    }

    fn estimated_in_turn(&mut self, drafts: usize, seed: u64) -> Option<Known> {
        if drafts >= self.draft_support() {
            return None;
        }
        self.of_shares(|row, rows| row.estimated(rows, drafts, seed))
    }

    fn estimated(&mut self, rows: Rows<'_>, drafts: usize, seed: u64) -> Option<Known> {
        let sweep = match self.memo().take::<Sweep>() {
            Some(sweep) if sweep.draws >= drafts => sweep,
            other => {
                let most = self.most_drafts().max(drafts);
                let spare = other.or_else(|| self.memo().take_spare());
                let mut sweep = spare.unwrap_or_default();
                sweep.fill(rows, most, |top| product::least_told_apart(most, top));
                sweep
            }
        };
        let rate = |[rejected, error]: [f64; 2]| Known::estimate(1.0 - rejected, error);
        let pair = |rejected: f64| Known::rate_within(1.0 - rejected, PAIR_ROUNDING);
        let found = if !sweep.leaves_enough(drafts) {
            None
        } else if drafts == 2 {
            sweep.two_rejected(rows).map(pair)
        } else if drafts <= product::MOST_DRAFTS {
            product::estimate(&sweep, drafts).map(rate)
        } else {
            let rejected = |all: &Rejections| controlled::rejected(&all.curve, drafts, seed);
            self.rejections(|all| all.is_reliable(drafts).then(|| rejected(all)).map(rate))
        };
        self.memo().keep(sweep);
        found
    }

    /// Returns what each of n sequential drafts accepts of a token by recursive rejection sampling:
    /// P(the output is the token, and draft k was accepted) for each k < n. The tokens are sorted
    /// by p/q the first time.
    ///
    /// # Formula
    /// Over paths of k rejections, the mean of `min((p - L_k q)+, M(L_k) q/(1 - s_k))`: a path
    /// that is drawn by the weights g has the weight M(L_k), and accepts the token with
    /// `min((p - L_k q)+/M(L_k), q/(1 - s_k))`.
    ///
    /// # Exactness
    /// Sums for the first two drafts; from the third on unbiased means over `samples` paths,
    /// the same for the same seed.
    pub fn accepted_of_token_in_turn(
        &mut self,
        token: usize,
        drafts: usize,
        samples: usize,
        seed: u64,
    ) -> Vec<f64> {
        self.rejections(|all| all.accepted_of_token(token, drafts, samples, seed))
    }
}

/// Tuples times tokens up to which tuples are summed where the recursion is not reliable,
/// and the error of such a sum.
const SUMMED_ENTRIES: f64 = 1.0e7;
const SUMMED_ERROR: f64 = 1e-11;

/// Least mass of q that the recursion divides by. Masses are kept in two words, a few
/// 2^-104 each: what is left is good to 1e-13 relative.
const RELIABLE_REST: f64 = 1e-18;

/// The same of what the heaviest token alone leaves, which is summed without it: a normal number.
const RELIABLE_REST_OF_ONE: f64 = 1e-290;

/// Bound on the rounding of the sum for two drafts, in either direction: counted part by part in
/// `docs/theory/rrs-wo.md`, where the parts add up to less than this.
const PAIR_ROUNDING: f64 = 1e-12;

/// A rate, and what a reader must know about how it was computed.
pub struct RejectionRate {
    pub rate: Known,
    pub note: Option<&'static str>,
}

/// What all numbers of drafts have in common.
#[derive(Debug)]
pub struct Rejections {
    target: Vec<f64>,
    draft: Vec<f64>,
    curve: Curve,
    paths: OnceLock<RejectedPaths>,
    /// Tokens that can be drafted.
    support: usize,
    /// Target mass of them: no other draft exists.
    reachable: f64,
}

impl Rejections {
    /// Prepares a row of p and q. O(V log V).
    pub fn new(target: &[f64], draft: &[f64]) -> Self {
        let curve = Curve::new(target, draft);
        let drafted = curve.tokens.iter().map(|&token| target[token as usize]);
        Self {
            reachable: compensated_sum(drafted),
            support: curve.tokens.len(),
            curve,
            target: target.to_vec(),
            draft: draft.to_vec(),
            paths: OnceLock::new(),
        }
    }

    /// Tokens that can be drafted, where some of them are below `f64`.
    pub fn with_support(mut self, support: &[usize]) -> Self {
        if support.len() != self.support {
            self.support = support.len();
            self.reachable = compensated_sum(support.iter().map(|&token| self.target[token]));
        }
        self
    }

    fn paths(&self) -> &RejectedPaths {
        self.paths.get_or_init(|| {
            let rising = self.curve.tokens.iter().rev().copied();
            RejectedPaths::new(&self.target, &self.draft, rising)
        })
    }

    /// Draws that really happen.
    fn draws(&self, drafts: usize) -> usize {
        drafts.min(self.support)
    }

    /// Draws before which at least [`RELIABLE_REST`] of q is left however the
    /// heaviest tokens fall, of the second one [`RELIABLE_REST_OF_ONE`]: the recursion
    /// divides by what is left, and is not asked beyond that.
    fn reliable_draws(&self, drafts: usize) -> usize {
        let draws = self.draws(drafts);
        let top = heaviest(&self.draft, draws);
        let held: f64 = top.iter().map(|&token| self.draft[token]).sum();
        if held < 0.999 {
            return draws;
        }
        let mut others = self.draft.clone();
        for &token in &top {
            others[token] = 0.0;
        }
        let mut left = TwoFloat::from(compensated_sum(others));
        // Fewer where tokens are below `f64`: nothing that it holds is left then.
        let mut reliable = top.len();
        for (draw, &token) in top.iter().enumerate().rev() {
            // What is left of q before this draw, all heavier tokens gone.
            left += self.draft[token];
            let least = match draw {
                ..=1 => RELIABLE_REST_OF_ONE,
                _ => RELIABLE_REST,
            };
            if left.value() < least {
                reliable = draw;
            }
        }
        reliable
    }

    pub(crate) fn is_reliable(&self, drafts: usize) -> bool {
        self.reliable_draws(drafts) == self.draws(drafts)
    }

    /// The rate within a budget: enclosed if the enclosure gets narrow enough, else by
    /// Monte Carlo. Where almost nothing of q is left after a few draws, by a sum over all
    /// tuples if they are few, else enclosed by what fewer drafts accept. `proportions` is q
    /// up to a factor, with all digits of its entries; without it nothing is summed.
    pub fn acceptance(
        &self,
        drafts: usize,
        budget: &RejectionBudget,
        proportions: Option<&[f64]>,
    ) -> RejectionRate {
        let plain = |rate| RejectionRate { rate, note: None };
        let draws = self.draws(drafts);
        let reliable = self.is_reliable(drafts);
        let sums_paths = draws > 2 && draws < self.support;
        if budget.work_limit == 0 && sums_paths && reliable {
            return plain(self.monte_carlo(drafts, budget));
        }
        let (lower, upper) = self.enclosure(drafts, budget);
        let rate = Known::rate(0.5 * (lower + upper), lower, upper);
        if upper - lower <= budget.width {
            return plain(rate);
        }
        if !reliable {
            if let Some(draft) = proportions
                && self.summed_entries(drafts) <= SUMMED_ENTRIES
            {
                let rejected = summed::all_rejected(&self.target, draft, draws);
                return plain(Known::rate_within(1.0 - rejected, SUMMED_ERROR));
            }
            let upper = upper.min(self.most_possible(drafts)).max(lower);
            return RejectionRate {
                rate: Known::rate(0.5 * (lower + upper), lower, upper),
                note: Some(
                    "after a few draws too little of q is left to divide by: the lower bound is \
                     what fewer drafts accept, the upper what any rule does",
                ),
            };
        }
        if upper - lower <= budget.widest {
            return plain(rate);
        }
        plain(self.monte_carlo(drafts, budget))
    }

    /// What no rule passes, the target's mass on the draft's support included.
    fn most_possible(&self, drafts: usize) -> f64 {
        if self.support != self.curve.tokens.len() {
            // Some token that can be drafted is below `f64`.
            return self.reachable;
        }
        let (rows, mut workspace) = (Rows::new(&self.target, &self.draft), Workspace::new());
        let found = workspace.load(rows, drafts).ok();
        let found = found.and_then(|mut row| row.without_replacement(drafts).ok());
        found.map_or(1.0, |found| found.rate.upper())
    }

    fn accepted_of_token(
        &self,
        token: usize,
        drafts: usize,
        samples: usize,
        seed: u64,
    ) -> Vec<f64> {
        let mut masses = vec![0.0; drafts];
        let (Some(&p), Some(&q)) = (self.target.get(token), self.draft.get(token)) else {
            return masses;
        };
        if let Some(first) = masses.first_mut() {
            *first = p.min(q);
        }
        let draws = self.draws(drafts);
        // A token of p <= q has no residual once a draft was rejected.
        if draws < 2 || p <= q || q <= 0.0 {
            return masses;
        }
        masses[1] = self.second_accepts(p, q);
        if draws > 2 && samples > 0 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut sampler = PathSampler::new(&self.curve);
            for _ in 0..samples {
                sampler.accepts_of_token([p, q], &mut masses[..draws], &mut rng);
            }
            for mass in &mut masses[2..] {
                *mass /= samples as f64;
            }
        }
        masses
    }

    /// sum over rejected i of (q_i - p_i)+ min((p - q)/M(1), q/(1 - q_i)).
    fn second_accepts(&self, p: f64, q: f64) -> f64 {
        let left = self.curve.at(1.0);
        if left <= 0.0 {
            return 0.0;
        }
        let wanted = (p - q) / left;
        let mut sum = TwoFloat::ZERO;
        for &token in &self.curve.tokens {
            let (p_i, q_i) = (self.target[token as usize], self.draft[token as usize]);
            let rejected = q_i - p_i;
            if rejected > 0.0 {
                let rest = self.curve.rest(token, q_i);
                let drawn = if rest > 0.0 { q / rest } else { 1.0 };
                sum += rejected * wanted.min(drawn);
            }
        }
        sum.value()
    }

    /// Tuples times tokens.
    fn summed_entries(&self, drafts: usize) -> f64 {
        let tuples = (0..self.draws(drafts)).map(|drawn| (self.support - drawn) as f64);
        tuples.product::<f64>() * self.target.len() as f64
    }

    /// Lower and upper bound on the rate, as narrow as `budget.width` if the work limit
    /// permits.
    pub fn enclosure(&self, drafts: usize, budget: &RejectionBudget) -> (f64, f64) {
        let error = 4.0 * f64::EPSILON;
        let draws = self.draws(drafts);
        if draws == self.support {
            // Every token is offered in the end, and a rejected one has no
            // residual: all of p on the support is accepted.
            let (least, most) = (self.reachable - error, self.reachable + error);
            return (least.max(0.0), most.min(1.0));
        }
        let reliable = self.reliable_draws(drafts);
        let (lower, upper) = if reliable == 2 {
            let curve = &self.curve;
            let rejected = curve.two_sequential_rejected(&self.target, &self.draft);
            (rejected - PAIR_ROUNDING, rejected + PAIR_ROUNDING)
        } else {
            let (width, limit) = (budget.width, budget.work_limit);
            let paths = self.paths();
            paths.all_rejected(&self.curve, reliable, width, limit)
        };
        // A further draft can only accept more.
        let most = if reliable == draws { 1.0 - lower } else { 1.0 };
        let most = most.min(self.reachable + error);
        ((1.0 - upper).max(0.0), most.min(1.0))
    }

    /// The rate by simulation of rejected paths, with an empirical Bernstein interval.
    pub fn monte_carlo(&self, drafts: usize, budget: &RejectionBudget) -> Known {
        let mut rng = ChaCha8Rng::seed_from_u64(budget.seed);
        let draws = self.draws(drafts).max(1) as u64;
        let samples = budget.samples.min(MOST_DRAWS / draws).max(1);
        let RejectionBudget {
            seed, confidence, ..
        } = *budget;
        let mut sampler = PathSampler::new(&self.curve);
        let rejected = sampler.mean(self.draws(drafts), samples, confidence, &mut rng);
        let [value, lower, upper] =
            [rejected.mean, rejected.upper, rejected.lower].map(|x| 1.0 - x);
        let sampling = Sampling {
            confidence,
            samples,
            seed,
        };
        Known::monte_carlo(value, lower, upper, sampling)
    }
}

#[cfg(test)]
mod tests;
