//! The two families of token plans, by i.i.d. drafts and by sequential draws.
//!
//! A [`TokenPlan`] is of one form for both. Here it is checked what is asked for, and the
//! family that solves a plan, or audits it, is chosen; neither family knows of the other.

use super::thinning::PlanLaw;
use super::token_plan::{Attained, Draws, PlanError, PlanSettings, TokenPlan};
use super::{Rising, iid, sequential};
use specgap_number::distribution::{Draft, RatioCut, Target};

/// One vocabulary, and a number of drafts that a plan handles.
fn validate(target: &Target, draft: &Draft, draws: Draws, drafts: usize) -> Result<(), PlanError> {
    if target.vocab() != draft.vocab() {
        return Err(PlanError::Vocabulary {
            target: target.vocab(),
            draft: draft.vocab(),
        });
    }
    if !(1..=draws.most()).contains(&drafts) {
        return Err(PlanError::Drafts { draws, drafts });
    }
    Ok(())
}

impl TokenPlan {
    /// Solves the plan of `drafts` i.i.d. drafts.
    ///
    /// alpha* is known to a few ulps, by the best prefix in the order of p/q.
    ///
    /// # Errors
    /// Rows of different length; no drafts.
    ///
    /// # Complexity
    /// O(V log V) to sort, then O(V): four polynomials of degree 12 a token, and Newton's
    /// method on some hundred groups; some 3 ms of one core at V = 49,152.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::{Draft, Target};
    /// use specgap_plan::plan::{PlanSettings, PlanStatus, TokenPlan};
    /// let (p, q) = (Target::new(&[0.5, 0.5])?, Draft::new(&[0.75, 0.25])?);
    /// let plan = TokenPlan::iid(&p, &q, 2, &PlanSettings::default())?;
    /// assert_eq!(plan.status(), PlanStatus::Optimal);
    /// assert!((plan.acceptance_rate().value() - 15.0 / 16.0).abs() < 1e-12);
    /// // Token 1 is short, so a pair that has it always emits it.
    /// assert_eq!(plan.accepted(&[0, 1]), [0.0, 1.0]);
    /// assert!(plan.law(&p, &q).l1_error < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iid(
        target: &Target,
        draft: &Draft,
        drafts: usize,
        settings: &PlanSettings,
    ) -> Result<Self, PlanError> {
        validate(target, draft, Draws::Iid, drafts)?;
        let rising = Rising::sorted(target, draft);
        Ok(iid::solve(target, &rising, drafts, settings))
    }

    /// [`Self::iid`] with the order of the same rows, which does not depend on n.
    pub fn iid_in_order(
        target: &Target,
        draft: &Draft,
        rising: &Rising,
        drafts: usize,
        settings: &PlanSettings,
    ) -> Result<Self, PlanError> {
        validate(target, draft, Draws::Iid, drafts)?;
        Ok(iid::solve(target, rising, drafts, settings))
    }

    /// What [`Self::iid_in_order`] accepts: solved as there, and not put together.
    pub fn attained_by_iid(
        (target, draft): (&Target, &Draft),
        rising: &Rising,
        drafts: usize,
        settings: &PlanSettings,
    ) -> Result<Attained, PlanError> {
        validate(target, draft, Draws::Iid, drafts)?;
        Ok(iid::attained(rising, drafts, settings))
    }

    /// Solves the plan of `drafts` sequential draws without replacement, n <= 8.
    ///
    /// If all drafts lie in H, `subset`, draft k is picked with probability
    /// `w(x_k) / (1 + sum over j of w(x_j))`, else one of the drafts outside H with
    /// probability `w(x_k)` over the sum of their weights. The plan is lossless whatever H
    /// is. It is optimal only if H is a minimiser of P - Q, such as
    /// `specgap_row::row::sequential_subset` finds.
    ///
    /// The acceptance of a lossless rule is a lower bound of alpha*, and 1 + P(H) - Q(H) an
    /// upper bound whatever H is. So a plan with status `optimal` is within
    /// [`TokenPlan::shortfall`] of alpha*, whatever is known of the scan that found H. (In
    /// floating point: the error of the quadrature in t is bounded by proof; rounding,
    /// truncated series and the left ends of both grids enter with allowances that are
    /// tested, not proven.)
    ///
    /// # Errors
    /// Rows of different length; `drafts` outside
    /// 1..=[`MOST_SEQUENTIAL_DRAFTS`](crate::plan::MOST_SEQUENTIAL_DRAFTS).
    ///
    /// # Complexity
    /// O(V) to sort by cells, and O(V) a step on all tokens: polynomials of degree 12 for each
    /// power of q that a token needs. Plus `M_s M_t` products of the heavy tokens (some tens, at
    /// most a few hundred; q times the time of the last draft above about 0.1), with about 100
    /// nodes of s and 40 of t.
    ///
    /// # Source
    /// The race of exponential clocks is the classical representation of the Plackett-Luce
    /// law.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::{Draft, Target};
    /// use specgap_row::row::sequential_subset;
    /// use specgap_plan::plan::{PlanSettings, PlanStatus, TokenPlan};
    /// let (p, q) = (Target::new(&[0.2, 0.3, 0.5])?, Draft::new(&[0.6, 0.3, 0.1])?);
    /// let subset = sequential_subset(&p, &q, 2)?;
    /// let plan = TokenPlan::sequential(&p, &q, 2, subset, &PlanSettings::default())?;
    /// assert_eq!(plan.status(), PlanStatus::Optimal);
    /// // H = {0, 1}: Q(H) = 0.6 * 3/4 + 0.3 * 6/7.
    /// let q_inside = 0.45 + 0.3 * 6.0 / 7.0;
    /// assert!((plan.acceptance_rate().value() - (1.0 + 0.5 - q_inside)).abs() < 1e-12);
    /// assert!(plan.optimal_acceptance_rate().width() < 1e-10);
    /// assert_eq!(plan.accepted(&[0, 2]), [0.0, 1.0]);
    /// assert!(plan.law(&p, &q).l1_error < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sequential(
        target: &Target,
        draft: &Draft,
        drafts: usize,
        subset: RatioCut,
        settings: &PlanSettings,
    ) -> Result<Self, PlanError> {
        validate(target, draft, Draws::Sequential, drafts)?;
        Ok(sequential::solve(target, draft, drafts, subset, settings))
    }

    /// The output law, by integrals that share nothing with the solve.
    ///
    /// # Complexity
    /// For i.i.d. drafts O(V): two polynomials of degree 10 a token, and exponentials only
    /// for bins of weights, 16 an octave. For sequential draws O(V) exponentials a node of
    /// s, some 400 nodes: a second or so at V = 49,152.
    pub fn law(&self, target: &Target, draft: &Draft) -> PlanLaw {
        let emitted = match self.draws() {
            Draws::Iid => iid::audit(self, draft.probabilities()),
            Draws::Sequential => sequential::audit(self, draft.probabilities()),
        };
        self.law_of(emitted, target)
    }
}
