//! Acceptance rates of one (p, q) for many verifiers and numbers of drafts.

use super::naive::{self, Ranks};
use super::rrs_wo::Rejections;
use super::{RrsWo, RrsWoSettings};
use crate::distribution::{DistributionError, Draft, Target, compensated_sum, heaviest, split_sum};
use crate::known::Known;
use crate::optimum::bucket_scan::{Position, Rows, ScanError, sequential_subset};
use crate::plan::{PlanError, PlanMeasurement, PlanSettings, Rising, TokenPlan, measure};
use crate::problem::Problem;
use crate::scheme::{SchemeName, WithoutReplacement};
use multiversion::multiversion;

/// How a verifier's rate is computed at a row: part of the tables of laws and verifiers.
#[derive(Clone, Copy, Debug)]
pub struct RowRule {
    /// Answers for a row.
    pub answer: fn(&mut RowRates<'_>, RowQuestion) -> Result<RowAnswer, RowError>,
    /// The most drafts that it answers for.
    pub most: usize,
    /// Why it is computed only where that is asked for by an option of its own, and
    /// which; `None` if it is computed always.
    pub slow: Option<&'static str>,
}

impl RowRule {
    /// Any number of drafts, always.
    pub const fn of(
        answer: fn(&mut RowRates<'_>, RowQuestion) -> Result<RowAnswer, RowError>,
    ) -> Self {
        Self {
            answer,
            most: usize::MAX,
            slow: None,
        }
    }
}

/// Which rate of a row is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowQuestion {
    /// How the drafts are drawn.
    pub scheme: SchemeName,
    /// n.
    pub drafts: usize,
    /// Seed of whatever is random.
    pub seed: u64,
}

/// A verifier's rate at a row.
#[derive(Clone, Debug)]
pub struct RowAnswer {
    /// Membership acceptance.
    pub rate: Known,
    /// The plan that was solved for it, if one was.
    pub plan: Option<PlanMeasurement>,
}

impl From<Known> for RowAnswer {
    fn from(rate: Known) -> Self {
        Self { rate, plan: None }
    }
}

/// Why a row is not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// The scan refuses it.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The target's row is not a distribution.
    #[error("target: {0}")]
    Target(DistributionError),
    /// The draft's row is not a distribution.
    #[error("draft: {0}")]
    Draft(DistributionError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The law's drafts cannot be those of a log.
    #[error("{0} drafts have no row of their own")]
    Scheme(SchemeName),
}

/// Rounding of the integral that measures a plan's acceptance.
const PLAN_INTEGRAL_ERROR: f64 = 1e-12;

/// Membership acceptance of verifiers on one (p, q) for any n, in `f64`, enclosed.
///
/// [`Verifier::acceptance`](super::Verifier::acceptance) takes exact arithmetic where that
/// is affordable, and sorts the rows again for every n. Here `rrs` and `k-seq` ask the
/// buckets of a [`BucketScan`](crate::optimum::bucket_scan::BucketScan), `greedy` and
/// `spechub` pass over the rows, and `rrs-wo` shares its tree between all n.
///
/// # Formulas
/// With M(L) = sum of (p - L q)+:
/// - `rrs`: 1 - M(L_n), L_(k+1) = L_k + M(L_k), L_0 = 0.
/// - `k-seq`: 1 - (1-b)^n at the root rho*, b = sum of min(p/rho, q).
/// - `greedy`, `spechub`: p(top) + sum over others of min(p, q/(1-q(top))).
/// - `rrs-wo`: see [`RrsWo`].
/// - `naive`: sum of p_i P(i is drafted); see [`Naive`](super::Naive).
///
/// # Exactness
/// [`Kind::Enclosed`](crate::known::Kind::Enclosed): rounding is within the bounds. `rrs-wo` may be
/// [`Kind::MonteCarlo`](crate::known::Kind::MonteCarlo), as its settings say.
///
/// # Source
/// As the verifiers: Hu et al., App. A; SpecTr, eq. 5; SpecHub, Theorem 1.
///
/// # Example
/// ```
/// use specgap::optimum::bucket_scan::{BucketScan, Rows};
/// use specgap::verifier::RowRates;
/// let mut scan = BucketScan::new();
/// let rows = Rows { target: &[0.5, 0.5], draft: &[0.75, 0.25] };
/// let mut rates = RowRates::new(scan.load(rows, 2)?);
/// let rate = rates.rrs(2);
/// assert!(rate.lower() <= 0.8125 && 0.8125 <= rate.upper() && rate.width() < 1e-12);
/// assert_eq!(rates.position().with_replacement(2)?.rate.value(), 0.9375);
/// # Ok::<(), specgap::optimum::bucket_scan::ScanError>(())
/// ```
#[derive(Debug)]
pub struct RowRates<'a> {
    position: Position<'a>,
    /// The heaviest tokens of q, as far as they were asked for.
    top: Vec<usize>,
    rejections: Option<Rejections>,
    /// Of sequential drafts without replacement, as many as were asked for.
    ranks: Option<Ranks>,
    planned: Option<Planned>,
}

/// What plans are solved from: the rows, and the tokens of q > 0 by rising p/q.
#[derive(Debug)]
struct Planned {
    p: Target,
    q: Draft,
    rising: Rising,
}

impl<'a> RowRates<'a> {
    /// For the rows of a scan.
    pub fn new(position: Position<'a>) -> Self {
        Self {
            position,
            top: Vec::new(),
            rejections: None,
            ranks: None,
            planned: None,
        }
    }

    /// The scan, for the optima.
    pub fn position(&mut self) -> &mut Position<'a> {
        &mut self.position
    }

    /// alpha* of n drafts of a law, as its entry in the table computes it.
    ///
    /// # Errors
    /// More drafts than the scan was loaded for, or a law that is not one of a row.
    pub fn optimum(&mut self, scheme: SchemeName, drafts: usize) -> Result<Known, RowError> {
        let answers = scheme.entry().on_row.as_ref();
        let answers = answers.ok_or(RowError::Scheme(scheme))?;
        (answers.optimum)(self, drafts)
    }

    /// The `count` most probable tokens of q, falling, the lowest id first among equals;
    /// fewer if there are fewer. O(V) the first time.
    pub fn heaviest(&mut self, count: usize) -> &[usize] {
        if self.top.len() < count {
            let most = count.max(self.position.most_drafts());
            self.top = heaviest(self.position.rows().draft, most);
        }
        &self.top[..count.min(self.top.len())]
    }

    /// [`Rrs`](super::Rrs) on n i.i.d. drafts. O(n m), m tokens a bucket.
    pub fn rrs(&mut self, drafts: usize) -> Known {
        let drafts = drafts.max(1);
        let (mut factor, mut left) = (0.0, 1.0);
        for _ in 0..drafts {
            factor += left;
            left = self.position.residual_mass(factor);
        }
        Known::rate_within(1.0 - left, rounding(drafts))
    }

    /// [`KSeq`](super::KSeq) at its root rho* on n i.i.d. drafts: the crossing of
    /// C(rho) = 1 - M(rho), which rises, and of 1 - (1 - C/rho)^n, which falls. O(m) an
    /// evaluation, m tokens a bucket, some 50 of them.
    pub fn k_seq(&mut self, drafts: usize) -> Known {
        let drafts = drafts.max(1);
        let accepted = |factor: f64, mass: f64| {
            let one_draft = ((1.0 - mass).clamp(0.0, 1.0) / factor).min(1.0);
            -(drafts as f64 * (-one_draft).ln_1p()).exp_m1()
        };
        let (root, mass) = self
            .position
            .turning_factor(1.0, drafts as f64, |factor, mass| {
                1.0 - mass < accepted(factor, mass)
            });
        // The crossing of two curves is off by no more than the worse of them.
        Known::rate_within(accepted(root, mass), rounding(drafts))
    }

    /// [`GreedyVerifier`](super::GreedyVerifier): the n-1 heaviest tokens of q, and one
    /// drawn from the others. O(V).
    pub fn greedy(&mut self, drafts: usize) -> Known {
        self.with_fixed(drafts.max(1) - 1)
    }

    /// [`SpecHub`](super::SpecHub): two drafts, one of them the heaviest token of q. O(V).
    pub fn spechub(&mut self) -> Known {
        self.with_fixed(1)
    }

    /// [`Naive`](super::Naive) on n i.i.d. drafts: sum of p (1 - (1-q)^n). O(nV).
    pub fn naive(&self, drafts: usize) -> Known {
        let rounding = (4.0 * drafts as f64 + 16.0) * f64::EPSILON;
        let rows = self.position.rows();
        let (p_sum, q_sum) = self.position.totals();
        let rate = naive::independent(rows.target, rows.draft, q_sum, drafts.max(1)) / p_sum;
        Known::rate_within(rate, rounding)
    }

    /// [`Naive`](super::Naive) on n sequential drafts without replacement. What the first
    /// call computes serves fewer drafts: for several n, ask for the largest first. The
    /// cost is that of some hundred nodes, O(n^2) each for every octave of q and O(n) for
    /// every token that is likely to be drafted.
    pub fn naive_sequential(&mut self, drafts: usize) -> Known {
        let drafts = drafts.max(1);
        if self.position.draft_support() <= drafts {
            // All of the support is drafted.
            return self.with_fixed(drafts);
        }
        let (p_sum, q_sum) = self.position.totals();
        let rows = self.position.rows();
        let ranks = match self.ranks.take() {
            Some(ranks) if ranks.rates.len() >= drafts => ranks,
            _ => Ranks::new(rows.target, rows.draft, [p_sum, q_sum], drafts),
        };
        let rate = Known::rate_within(ranks.among(drafts), ranks.error);
        self.ranks = Some(ranks);
        rate
    }

    /// [`RrsWo`] on n sequential drafts without replacement. The tokens are sorted by p/q
    /// the first time.
    pub fn rrs_wo(&mut self, drafts: usize, settings: &RrsWoSettings) -> Known {
        let drafts = drafts.max(1);
        if self.rejections.is_none() {
            let rows = self.position.rows();
            let (p_sum, q_sum) = self.position.totals();
            let scaled = |row: &[f64], sum: f64| row.iter().map(|x| x / sum).collect::<Vec<f64>>();
            let (p, q) = (scaled(rows.target, p_sum), scaled(rows.draft, q_sum));
            let order = self.position.order(Rows {
                target: &p,
                draft: &q,
            });
            self.rejections = Some(Rejections::in_order(p, q, &order));
        }
        let Some(rejections) = &self.rejections else {
            return Known::rate(0.5, 0.0, 1.0);
        };
        if !rejections.is_reliable(drafts)
            && let Ok(rate) = self.small_rrs_wo(drafts, settings)
        {
            return rate;
        }
        rejections.acceptance(drafts, settings).membership
    }

    /// What the optimal plan of n i.i.d. drafts accepts, measured by the second integral
    /// of its law.
    ///
    /// # Errors
    /// Rows that are no distributions, or of different lengths; no drafts.
    pub fn independent_plan(&mut self, drafts: usize) -> Result<RowAnswer, RowError> {
        let Planned { p, q, rising } = self.planned()?;
        let solve = || TokenPlan::iid_in_order(p, q, rising, drafts, &PlanSettings::default());
        Ok(planned_rate(measure(p, q, solve)?))
    }

    /// The same for n sequential draws without replacement.
    ///
    /// # Errors
    /// Rows that are no distributions, or of different lengths; more drafts than
    /// [`MOST_SEQUENTIAL_DRAFTS`](crate::plan::MOST_SEQUENTIAL_DRAFTS).
    pub fn sequential_plan(&mut self, drafts: usize) -> Result<RowAnswer, RowError> {
        let Planned { p, q, .. } = self.planned()?;
        let solve = || {
            let subset = sequential_subset(p, q, drafts)?;
            let plan = TokenPlan::sequential(p, q, drafts, subset, &PlanSettings::default());
            plan.map_err(RowError::Plan)
        };
        Ok(planned_rate(measure(p, q, solve)?))
    }

    fn planned(&mut self) -> Result<&Planned, RowError> {
        let planned = match self.planned.take() {
            Some(planned) => planned,
            None => {
                let rows = self.position.rows();
                let p = Target::new(rows.target).map_err(RowError::Target)?;
                let q = Draft::new(rows.draft).map_err(RowError::Draft)?;
                let order = self.position.order(Rows {
                    target: p.probabilities(),
                    draft: q.probabilities(),
                });
                let rising = Rising::in_order(&p, &q, &order);
                Planned { p, q, rising }
            }
        };
        Ok(self.planned.insert(planned))
    }

    /// Small rows can be summed over their tuples.
    fn small_rrs_wo(&self, drafts: usize, settings: &RrsWoSettings) -> Result<Known, NotSmall> {
        let rows = self.position.rows();
        let (target, draft) = (Target::new(rows.target)?, Draft::new(rows.draft)?);
        let scheme = WithoutReplacement::new(draft, drafts);
        let problem = Problem::new("", target, scheme).map_err(|_| NotSmall)?;
        let rule = RrsWo::with_settings(&problem, *settings).map_err(|_| NotSmall)?;
        Ok(rule.acceptance_within(settings).membership)
    }

    /// p(top) + sum over the others of min(p, q/(1-q(top))), the top being the `fixed`
    /// heaviest tokens of q.
    fn with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.position.totals();
        let star = self.star(fixed);
        let overlap = match star.rest {
            0.0 => 0.0,
            rest => star.sum(|p, q| overlap(p, q, rest, p_sum)),
        };
        Known::rate_within((star.held + overlap) / p_sum, 8.0 * f64::EPSILON)
    }

    /// alpha* where all drafts but the last are fixed tokens: the k most probable ones
    /// of q, the last being drawn from the others.
    ///
    /// By the cut: only sets H that hold the fixed tokens can be left with nothing but
    /// drafts inside, and then `P(H) - Q(H) = p(top) + sum over the other i in H of
    /// p_i - q_i/(1 - q(top))`, smallest where H takes every negative term. The verifiers
    /// `greedy` and `spechub` reach the same number from the other side, by summing what
    /// they accept.
    pub fn optimum_with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.position.totals();
        let star = self.star(fixed);
        // Without others, the whole support is drafted.
        let rate = match star.rest {
            0.0 => star.held / p_sum,
            rest => 1.0 + (star.held - star.sum(|p, q| excess(p, q, rest, p_sum))) / p_sum,
        };
        Known::rate_within(rate, 32.0 * f64::EPSILON)
    }

    /// [`Naive`](super::Naive) where all drafts but the last are the `fixed` most probable
    /// tokens of q, the last being drawn from the others: p(top) + sum over the others of
    /// p q/(1 - q(top)). O(V).
    pub fn naive_with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.position.totals();
        let star = self.star(fixed);
        let drawn = match star.rest {
            0.0 => 0.0,
            rest => star.sum(|p, q| drawn(p, q, rest)),
        };
        Known::rate_within((star.held + drawn) / p_sum, 8.0 * f64::EPSILON)
    }

    fn star(&mut self, fixed: usize) -> Star<'_> {
        let mut top = self.heaviest(fixed).to_vec();
        let rows = self.position.rows();
        top.sort_unstable();
        let held = compensated_sum(top.iter().map(|&token| rows.target[token]));
        let mut parts = Vec::with_capacity(top.len() + 1);
        let mut start = 0;
        for end in top.into_iter().chain([rows.draft.len()]) {
            parts.push((&rows.target[start..end], &rows.draft[start..end]));
            start = end + 1;
        }
        let mut star = Star {
            held,
            rest: 0.0,
            parts,
        };
        star.rest = star.sum(|_, q| naive::total(q));
        star
    }
}

fn planned_rate(measured: PlanMeasurement) -> RowAnswer {
    // The law is p but for this error, and so is what it accepts.
    let error = measured.law_l1_error + PLAN_INTEGRAL_ERROR;
    let rate = measured.acceptance_rate;
    RowAnswer {
        rate: Known::enclosed(rate, rate - error, rate + error),
        plan: Some(measured),
    }
}

/// Why rrs-wo is not summed over tuples.
struct NotSmall;

impl From<DistributionError> for NotSmall {
    fn from(_: DistributionError) -> Self {
        Self
    }
}

/// Rows with some tokens of the draft taken out.
struct Star<'a> {
    /// Their p.
    held: f64,
    /// Sum of the other q.
    rest: f64,
    /// What lies between them.
    parts: Vec<(&'a [f64], &'a [f64])>,
}

impl Star<'_> {
    fn sum(&self, part: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        self.parts.iter().map(|(p, q)| part(p, q)).sum()
    }
}

/// Sum of min(p, scale q/rest).
#[multiversion(targets = "simd")]
fn overlap(p: &[f64], q: &[f64], rest: f64, scale: f64) -> f64 {
    split_sum(p, q, |p, q| {
        let last = scale * (q / rest);
        if last < p { last } else { p }
    })
}

/// Sum of p q/rest, which does not vanish where p q does.
#[multiversion(targets = "simd")]
fn drawn(p: &[f64], q: &[f64], rest: f64) -> f64 {
    split_sum(p, q, |p, q| p * (q / rest))
}

/// Sum of (scale q/rest - p)+.
#[multiversion(targets = "simd")]
fn excess(p: &[f64], q: &[f64], rest: f64, scale: f64) -> f64 {
    split_sum(p, q, |p, q| {
        let more = scale * (q / rest) - p;
        if more > 0.0 { more } else { 0.0 }
    })
}

/// M(L) is within 8 epsilon (1 + L) with L <= n, and a rate of n drafts adds up n such
/// errors at most.
fn rounding(drafts: usize) -> f64 {
    let n = drafts as f64;
    8.0 * f64::EPSILON * (n + 1.0) * (n + 1.0)
}
