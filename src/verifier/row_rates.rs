//! Acceptance rates of one (p, q) for many verifiers and numbers of drafts.

use super::rrs_wo::Rejections;
use super::{Rate, RrsWo, RrsWoSettings, naive};
use crate::distribution::{Draft, Target, compensated_sum, heaviest};
use crate::plan::VocabularyMismatch;
use crate::problem::Problem;
use crate::scheme::WithoutReplacement;
use std::sync::OnceLock;

/// Membership acceptance of verifiers on one (p, q) for any n, in `f64`, enclosed.
///
/// [`Verifier::acceptance`](super::Verifier::acceptance) takes exact arithmetic where that
/// is affordable, and passes over the rows again for every n. Here the tokens are sorted by p/q once; then `rrs` and `k-seq` take O(log V) operations a
/// draft, `greedy` and `spechub` one pass, and `rrs-wo` shares its tree between all n.
///
/// # Formulas
/// With M(L) = sum of (p - L q)+:
/// - `rrs`: 1 - M(L_n), L_(k+1) = L_k + M(L_k), L_0 = 0.
/// - `k-seq`: 1 - (1-b)^n at the root rho*, b = sum of min(p/rho, q).
/// - `greedy`, `spechub`: p(top) + sum over others of min(p, q/(1-q(top))).
/// - `rrs-wo`: see [`RrsWo`].
///
/// # Exactness
/// [`Rate::Enclosed`]: rounding is within the bounds. `rrs-wo` may be
/// [`Rate::MonteCarlo`], as its settings say.
///
/// # Source
/// As the verifiers: Hu et al., App. A; SpecTr, eq. 5; SpecHub, Theorem 1.
///
/// # Example
/// ```
/// use specgap::distribution::{Draft, Target};
/// use specgap::verifier::RowRates;
/// let (p, q) = (Target::new(&[0.5, 0.5])?, Draft::new(&[0.75, 0.25])?);
/// let rates = RowRates::new(&p, &q)?;
/// let rate = rates.rrs(2);
/// assert!(rate.lower() <= 0.8125 && 0.8125 <= rate.upper() && rate.width() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RowRates<'a> {
    target: &'a Target,
    draft: &'a Draft,
    rejections: OnceLock<Rejections>,
}

impl<'a> RowRates<'a> {
    /// For rows of one vocabulary.
    ///
    /// # Errors
    /// Rows of different length.
    pub fn new(target: &'a Target, draft: &'a Draft) -> Result<Self, VocabularyMismatch> {
        if target.vocab() != draft.vocab() {
            return Err(VocabularyMismatch {
                target: target.vocab(),
                draft: draft.vocab(),
            });
        }
        Ok(Self {
            target,
            draft,
            rejections: OnceLock::new(),
        })
    }

    fn rejections(&self) -> &Rejections {
        self.rejections.get_or_init(|| {
            let (p, q) = (self.target.probabilities(), self.draft.probabilities());
            let drafted = || p.iter().zip(q).filter(|&(_, &q)| q > 0.0);
            let reachable = compensated_sum(drafted().map(|(&p, _)| p));
            Rejections::new(p, q, drafted().count(), reachable)
        })
    }

    /// [`Rrs`](super::Rrs) on n i.i.d. drafts. O(n log V).
    pub fn rrs(&self, drafts: usize) -> Rate {
        let drafts = drafts.max(1);
        let rejected = self.rejections().curve().all_rejected(drafts);
        Rate::within(1.0 - rejected, rounding(drafts))
    }

    /// [`KSeq`](super::KSeq) at its root rho* on n i.i.d. drafts. O(log V) an evaluation,
    /// some 55 of them.
    pub fn k_seq(&self, drafts: usize) -> Rate {
        let drafts = drafts.max(1);
        let (_, accepted) = self.rejections().curve().k_seq(drafts);
        // The crossing of two curves is off by no more than the worse of them.
        Rate::within(accepted, rounding(drafts))
    }

    /// [`GreedyVerifier`](super::GreedyVerifier): the n-1 heaviest tokens of q, and one
    /// drawn from the others. O(V).
    pub fn greedy(&self, drafts: usize) -> Rate {
        self.with_fixed(drafts.max(1) - 1)
    }

    /// [`SpecHub`](super::SpecHub): two drafts, one of them the heaviest token of q. O(V).
    pub fn spechub(&self) -> Rate {
        self.with_fixed(1)
    }

    /// [`Naive`](super::Naive) on n i.i.d. drafts: sum of p (1 - (1-q)^n). O(nV).
    pub fn naive(&self, drafts: usize) -> Rate {
        let (p, q) = (self.target.probabilities(), self.draft.probabilities());
        let rounding = (4.0 * drafts as f64 + 16.0) * f64::EPSILON;
        Rate::within(naive::independent(p, q, drafts.max(1)), rounding)
    }

    /// [`Naive`](super::Naive) on two sequential drafts without replacement: sum of
    /// p_i q_i (1 + sum over j != i of q_j/(1-q_j)). O(V).
    pub fn naive_of_two_sequential(&self) -> Rate {
        let (p, q) = (self.target.probabilities(), self.draft.probabilities());
        if self.rejections().support() <= 2 {
            // Both tokens are drafted.
            return self.with_fixed(2);
        }
        Rate::within(naive::two_sequential(p, q), 96.0 * f64::EPSILON)
    }

    /// [`RrsWo`] on n sequential drafts without replacement.
    pub fn rrs_wo(&self, drafts: usize, settings: &RrsWoSettings) -> Rate {
        let drafts = drafts.max(1);
        let rejections = self.rejections();
        if !rejections.is_reliable(drafts) {
            // Small rows can be summed over their tuples.
            let scheme = WithoutReplacement::new(self.draft.clone(), drafts);
            if let Ok(problem) = Problem::new("", self.target.clone(), scheme)
                && let Ok(rule) = RrsWo::with_settings(&problem, *settings)
            {
                return rule.acceptance_within(settings).membership;
            }
        }
        rejections.acceptance(drafts, settings).membership
    }

    /// p(top) + sum over the others of min(p, q/(1-q(top))), the top being the `fixed`
    /// heaviest tokens of q.
    fn with_fixed(&self, fixed: usize) -> Rate {
        let (p, q) = (self.target.probabilities(), self.draft.probabilities());
        let top = heaviest(q, fixed);
        let mut others = q.to_vec();
        for &token in &top {
            others[token] = 0.0;
        }
        let rest = compensated_sum(others.iter().copied());
        let held = top.iter().map(|&token| p[token]);
        let last = p.iter().zip(&others).map(|(&p, &q)| match q {
            0.0 => 0.0,
            q => p.min(q / rest),
        });
        Rate::within(compensated_sum(held.chain(last)), 8.0 * f64::EPSILON)
    }
}

/// M(L) is within 2 epsilon (1 + L) with L <= n, and a rate of n drafts adds up n such
/// errors at most.
fn rounding(drafts: usize) -> f64 {
    let n = drafts as f64;
    4.0 * f64::EPSILON * (n + 1.0) * (n + 1.0)
}
