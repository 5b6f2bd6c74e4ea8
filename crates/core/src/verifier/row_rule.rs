//! How a verifier's rate is computed at a row of a log.

use specgap_number::known::Known;
use specgap_plan::{PlanError, PlanLaw};
use specgap_row::{Answer, CutAnswer, Question, Row, RowError};

/// How a verifier's rate is computed at a row: part of the table of verifiers.
///
/// [`Verifier::acceptance`](super::Verifier::acceptance) takes exact arithmetic where that
/// is affordable, and sorts p and q again for every n. Here they are a
/// [`Row`], whose answers serve all rules and numbers of drafts; `f64`, enclosed.
///
/// Formulas stand at each verifier.
///
/// # Exactness
/// [`Kind::Enclosed`](specgap_number::known::Kind::Enclosed): rounding is within the bounds. `rrs-wo` may be
/// [`Kind::MonteCarlo`](specgap_number::known::Kind::MonteCarlo), and its fast rate is
/// [`Kind::Estimate`](specgap_number::known::Kind::Estimate) from three drafts on.
///
/// # Source
/// As the verifiers: Hu et al., App. A; SpecTr, eq. 5; SpecHub, Theorem 1.
///
/// # Example
/// ```
/// use specgap_row::{Rows, Workspace};
/// use specgap_core::scheme::SchemeName;
/// use specgap_core::verifier::VerifierName;
/// let mut workspace = Workspace::new();
/// let rows = Rows { target: &[0.5, 0.5], draft: &[0.75, 0.25] };
/// let mut row = workspace.load(rows, 2)?;
/// let rule = VerifierName::RRS.on_row(SchemeName::WITH_REPLACEMENT).ok_or("no such rate")?;
/// let rate = rule.answer(&mut row, 2, 0)?.rate;
/// assert!(rate.lower() <= 0.8125 && 0.8125 <= rate.upper() && rate.width() < 1e-12);
/// assert_eq!(row.with_replacement(2)?.rate.value(), 0.9375);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowRule {
    /// What is computed.
    pub rate: RowRate,
    /// The same faster, with an error that is estimated instead of proven; `None` where
    /// there is nothing to gain.
    pub fast: Option<RowRate>,
    /// Bounds, on a row that lists only some tokens; `None` where no more is known than
    /// that it is at most alpha*. Asked only of rules that do not attain that.
    pub cut: Option<CutAnswer>,
    /// Whether its rate is alpha* at every row by a theorem, so that to compute it otherwise is
    /// a check: of the theorem, and of what computes it.
    pub by_theorem: bool,
    /// Whether a report measures it only where rules are named.
    pub if_named: bool,
}

/// What a [`RowRule`] computes of a row and n.
#[derive(Clone, Copy, Debug)]
pub enum RowRate {
    /// An answer of the row.
    Answer(Answer),
    /// One that may be a mean over random draws: also of their seed.
    Seeded(fn(&mut Row<'_>, usize, u64) -> Result<Known, RowError>),
    /// The acceptance of a plan that is solved for it; whether its law is measured too.
    Planned(fn(&mut Row<'_>, usize, bool) -> Result<RowAnswer, RowRuleError>),
}

/// Why a row has no rate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowRuleError {
    /// The row refuses it.
    #[error(transparent)]
    Row(#[from] RowError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// A verifier's rate at a row.
#[derive(Clone, Debug)]
pub struct RowAnswer {
    /// Membership acceptance.
    pub rate: Known,
    /// The plan that was solved for it, if one was.
    pub plan: Option<SolvedPlan>,
}

/// A plan that was solved for a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SolvedPlan {
    /// Sum over tokens of |output - p| by the second integral, where it was taken.
    pub law_l1_error: Option<f64>,
    /// Wall-clock seconds of the solve, without the second integral.
    pub seconds: f64,
}

impl From<Known> for RowAnswer {
    fn from(rate: Known) -> Self {
        Self { rate, plan: None }
    }
}

impl RowAnswer {
    /// Holds the rate of a plan, with its law where another integral measured it.
    pub(super) fn of_plan(rate: Known, law: Option<PlanLaw>, seconds: f64) -> Self {
        Self {
            rate,
            plan: Some(SolvedPlan {
                law_l1_error: law.map(|law| law.l1_error),
                seconds,
            }),
        }
    }
}

impl RowRule {
    /// Any number of drafts, always.
    pub const fn of(question: Question) -> Self {
        Self {
            cut: Some(question.cut),
            ..Self::always(RowRate::Answer(question.full))
        }
    }

    /// The same without bounds for cut rows.
    pub const fn always(rate: RowRate) -> Self {
        Self {
            rate,
            fast: None,
            cut: None,
            by_theorem: false,
            if_named: false,
        }
    }

    /// The rule with its fast rate, if it has one.
    #[must_use]
    pub fn quickened(self) -> Self {
        Self {
            rate: self.fast.unwrap_or(self.rate),
            fast: None,
            ..self
        }
    }

    /// The rate of n drafts; `seed` is that of whatever is random.
    ///
    /// # Errors
    /// Those of the row, or of its plan; more drafts than it was loaded for, where that
    /// matters.
    pub fn answer(
        &self,
        row: &mut Row<'_>,
        drafts: usize,
        seed: u64,
    ) -> Result<RowAnswer, RowRuleError> {
        Ok(match self.rate {
            RowRate::Answer(answer) => answer(row, drafts)?.into(),
            RowRate::Seeded(answer) => answer(row, drafts, seed)?.into(),
            RowRate::Planned(answer) => answer(row, drafts, true)?,
        })
    }

    /// The same with the acceptance of a plan by the integral that solved it: its output law
    /// is not measured by the second one.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn answer_by_the_solve(
        &self,
        row: &mut Row<'_>,
        drafts: usize,
        seed: u64,
    ) -> Result<RowAnswer, RowRuleError> {
        match self.rate {
            RowRate::Planned(answer) => answer(row, drafts, false),
            _ => self.answer(row, drafts, seed),
        }
    }
}
