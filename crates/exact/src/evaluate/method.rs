//! The methods that find alpha*, and how a run of one ended.

use super::Outcome;
use super::outcome::Reported;
use specgap_base::named;
use specgap_core::certify::Residuals;
use specgap_core::lp::BackendName;
use specgap_core::optimum::{Optimum, flow};
use specgap_number::known::Known;

/// What each method may take. Beyond it the method is skipped, and says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Variables of a linear program for HiGHS.
    pub highs_variables: f64,
    /// Variables of a linear program for minilp.
    pub minilp_variables: f64,
    /// Entries of the merged sets for the maximum flow.
    pub flow_entries: f64,
    /// The same where the level rule encloses alpha\* of strata within 1e-9.
    pub flow_entries_beside_level: f64,
    /// The same where a formula, the ratio scan or linear thresholds tell alpha\* within 1e-9.
    pub flow_entries_beside_theorem: f64,
    /// Operations for the law of the merged sets, and for checking it.
    pub law_operations: f64,
    /// Vocabulary for the submodular minimiser.
    pub submodular_vocab: usize,
    /// Tuples times vocabulary for building the full coupling exactly.
    pub coupling_entries: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            highs_variables: 20_000.0,
            minilp_variables: 2_500.0,
            flow_entries: 4.0e7,
            flow_entries_beside_level: flow::LARGEST_PLAN_OF_STRATA,
            flow_entries_beside_theorem: flow::LARGEST_PLAN,
            law_operations: 4.0e9,
            submodular_vocab: 64,
            coupling_entries: 20_000.0,
        }
    }
}

/// Entries of merged sets from which on a maximum flow of strata does not end.
pub(super) const LONGEST_FLOW_OF_STRATA: f64 = 1e5;

/// How narrow an enclosure is that stands for a long maximum flow.
pub(super) const NARROW: f64 = 1e-9;

named! {
    /// The methods by their names in reports.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Method {
        FullLp "full-lp" "The full program over all (token, tuple) pairs.";
        MembershipLp "membership-lp" "The program over pairs with the token in the tuple.";
        DualLp "dual-lp" "The dual program, a weighted vertex cover.";
        MaxFlow "max-flow" "Maximum flow on merged sets.";
        SubsetEnumeration "subset-enumeration" "Every subset.";
        RatioScan "ratio-scan" "The chain of tokens sorted by q/p.";
        LinearThresholds "linear-thresholds" "Sets below a plane of two scores.";
        ClosedForm "closed-form" "A formula.";
        Submodular "submodular" "The minimum-norm point of P - Q.";
        LevelRule "level-rule" "One run of the level rule, and what its set proves.";
    }
}

impl Method {
    /// Tells whether an exact value of it is alpha* by a theorem alone.
    pub(super) fn is_theorem(self) -> bool {
        matches!(
            self,
            Self::ClosedForm | Self::RatioScan | Self::LinearThresholds
        )
    }
}

/// What a method found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// alpha* as the method has it. A linear program's is a plain float: nothing
    /// rigorous is claimed for it.
    pub rate: Known,
    /// Optimality conditions of a linear program's answer.
    pub residuals: Option<Residuals>,
    /// A minimiser of P - Q, where the method gives one.
    pub subset: Option<Vec<usize>>,
    /// Anything a reader must know.
    pub note: Option<String>,
}

impl Reported for Answer {
    const DONE: &'static str = "optimal";
    const FAILED: &'static str = "unsolved";
}

impl From<Optimum> for Answer {
    fn from(optimum: Optimum) -> Self {
        Self {
            rate: optimum.rate,
            residuals: None,
            subset: optimum.subset,
            note: optimum.note,
        }
    }
}

/// One method's run on one problem.
#[derive(Clone, Debug)]
pub struct MethodRun {
    /// The method.
    pub method: Method,
    /// The solver, for linear programs.
    pub backend: Option<BackendName>,
    /// What it found. An answer counts if its own optimality conditions hold, within
    /// [`PROGRAM_TOLERANCE`](super::PROGRAM_TOLERANCE) (linear programs) or by
    /// construction.
    pub outcome: Outcome<Answer>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

impl MethodRun {
    pub(super) fn skipped(
        method: Method,
        backend: Option<BackendName>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            method,
            backend,
            outcome: Outcome::Skipped(reason.into()),
            seconds: 0.0,
        }
    }

    pub(super) fn of(method: Method, optimum: Optimum, seconds: f64) -> Self {
        Self {
            method,
            backend: None,
            outcome: Outcome::Done(optimum.into()),
            seconds,
        }
    }

    /// The rate, if it counts.
    pub fn rate(&self) -> Option<&Known> {
        self.outcome.done().map(|answer| &answer.rate)
    }

    /// The method with its solver, as in `dual-lp (minilp)`.
    pub fn name(&self) -> String {
        named(self.method.as_str(), self.backend)
    }
}

/// A method with its solver.
pub(super) fn named(method: &str, backend: Option<BackendName>) -> String {
    match backend {
        Some(backend) => format!("{method} ({})", backend.as_str()),
        None => method.to_owned(),
    }
}

/// A count that may be astronomical.
pub(super) fn count(value: f64) -> String {
    match value < 1e15 {
        true => format!("{value}"),
        false => format!("{value:.1e}"),
    }
}
