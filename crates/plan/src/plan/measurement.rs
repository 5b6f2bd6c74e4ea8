//! A plan's solve timed, and its law audited.

use super::{PlanStatus, TokenPlan};
use specgap_number::distribution::{Draft, Target};
use specgap_number::known::Known;

/// One position, solved and audited: a row of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanMeasurement {
    /// alpha*, enclosed: [`TokenPlan::optimal_acceptance_rate`].
    pub optimum: Known,
    /// Acceptance of the plan: [`TokenPlan::acceptance_rate`].
    pub attained: Known,
    /// Acceptance of the plan by the second integral; in [0, 1].
    pub acceptance_rate: f64,
    /// Sum over tokens of |output - p|, by the second integral.
    pub law_l1_error: f64,
    /// Steps of the solve.
    pub iterations: usize,
    /// How the solve ended.
    pub status: PlanStatus,
    /// Wall-clock seconds of the solve, without the audit.
    pub seconds: f64,
}

/// Solves the plan of one position and measures its law by the second integral,
/// [`TokenPlan::law`].
///
/// # Errors
/// Those of `solve`.
///
/// # Complexity
/// That of the solve, and that of the audit.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_plan::plan::{PlanSettings, TokenPlan, measure};
/// let (p, q) = (Target::new(&[0.5, 0.3, 0.2])?, Draft::new(&[0.2, 0.3, 0.5])?);
/// let solve = || TokenPlan::iid(&p, &q, 3, &PlanSettings::default());
/// let measured = measure(&p, &q, solve)?;
/// assert!((measured.acceptance_rate - measured.optimum.value()).abs() < 1e-10);
/// assert!(measured.law_l1_error < 1e-10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn measure<E>(
    target: &Target,
    draft: &Draft,
    solve: impl FnOnce() -> Result<TokenPlan, E>,
) -> Result<PlanMeasurement, E> {
    let started = std::time::Instant::now();
    let plan = solve()?;
    let seconds = started.elapsed().as_secs_f64();
    let law = plan.law(target, draft);
    Ok(PlanMeasurement {
        optimum: plan.optimal_acceptance_rate().clone(),
        attained: plan.acceptance_rate().clone(),
        acceptance_rate: law.acceptance_rate,
        law_l1_error: law.l1_error,
        iterations: plan.iterations(),
        status: plan.status(),
        seconds,
    })
}
