//! One problem, every method, one verdict.
//!
//! [`solve`] runs three linear programs, the maximum flow, the enumeration of subsets, and
//! whatever algorithm applies besides, lets
//! [`crate::certify`] recompute the answer, and reports how far each method is
//! from it. A method that does not fit is listed as skipped, with the reason.

mod expectation;
mod lps;

pub use expectation::ExpectationCheck;

use crate::certify::{self, Certified, Residuals};
use crate::distribution::{Rational, format_rational};
use crate::known::{Kind, Known};
use crate::lp::BackendName;
use crate::optimum::{
    Optimum, ScaledInstance, closed_form, enumeration, flow, ratio_scan, submodular,
};
use crate::plan::{Rounding, TransportPlan};
use crate::problem::Problem;
use crate::scheme::{DistinctConditioned, DraftScheme, SchemeName, WithoutReplacement};
use std::sync::Arc;
use std::time::Instant;

/// Two floating-point solvers agree with the certified value within this.
pub const LP_TOLERANCE: f64 = 1e-9;

/// Widest certified enclosure that says anything: a wider one is a complaint.
pub const WIDEST_CERTIFIED: f64 = 1e-6;

/// What each method may take. Beyond it the method is skipped, and says so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Variables of a linear program for HiGHS.
    pub highs_variables: f64,
    /// Variables of a linear program for minilp.
    pub minilp_variables: f64,
    /// Entries of the merged sets for the maximum flow.
    pub flow_entries: f64,
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
            law_operations: 4.0e9,
            submodular_vocab: 64,
            coupling_entries: 20_000.0,
        }
    }
}

/// The methods by their names in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The full program over all (token, tuple) pairs.
    FullLp,
    /// The program over pairs with the token in the tuple.
    MembershipLp,
    /// The dual program, a weighted vertex cover.
    DualLp,
    /// Maximum flow on merged sets.
    MaxFlow,
    /// Every subset.
    SubsetEnumeration,
    /// The chain of tokens sorted by q/p.
    RatioScan,
    /// A formula.
    ClosedForm,
    /// The minimum-norm point of P - Q.
    Submodular,
}

impl Method {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FullLp => "full-lp",
            Self::MembershipLp => "membership-lp",
            Self::DualLp => "dual-lp",
            Self::MaxFlow => "max-flow",
            Self::SubsetEnumeration => "subset-enumeration",
            Self::RatioScan => "ratio-scan",
            Self::ClosedForm => "closed-form",
            Self::Submodular => "submodular",
        }
    }
}

/// How a method ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has an answer, and its own optimality conditions hold within
    /// [`LP_TOLERANCE`] (linear programs) or by construction.
    Optimal,
    /// A solver claims an answer whose recomputed optimality conditions fail.
    /// It is shown, and does not count.
    Imprecise,
    /// A solver gave no answer, with its own word for it. It does not count.
    Unsolved(String),
    /// Not run, with the reason.
    Skipped(String),
}

impl Status {
    /// The status in one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Imprecise => "imprecise",
            Self::Unsolved(_) => "unsolved",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Why there is no answer, where there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Unsolved(reason) | Self::Skipped(reason) => Some(reason),
            _ => None,
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
    /// How it ended.
    pub status: Status,
    /// alpha* as the method has it. A linear program's is a plain float: nothing
    /// rigorous is claimed for it.
    pub rate: Option<Known>,
    /// Optimality conditions of a linear program's answer.
    pub residuals: Option<Residuals>,
    /// A minimiser of P - Q, where the method gives one.
    pub subset: Option<Vec<usize>>,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Anything a reader must know.
    pub note: Option<String>,
}

impl MethodRun {
    fn skipped(method: Method, backend: Option<BackendName>, reason: impl Into<String>) -> Self {
        Self {
            method,
            backend,
            status: Status::Skipped(reason.into()),
            rate: None,
            residuals: None,
            subset: None,
            seconds: 0.0,
            note: None,
        }
    }

    fn of(method: Method, optimum: Optimum, seconds: f64) -> Self {
        Self {
            method,
            backend: None,
            status: Status::Optimal,
            rate: Some(optimum.rate),
            residuals: None,
            subset: optimum.subset,
            seconds,
            note: optimum.note,
        }
    }

    fn counts(&self) -> Option<&Known> {
        self.rate
            .as_ref()
            .filter(|_| self.status == Status::Optimal)
    }
}

/// What the answer rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A plan and a subset that meet, checked in exact arithmetic.
    FlowEqualsCut,
    /// A plan and a subset on rounded capacities, checked with an enclosure.
    FlowMeetsCut,
    /// A subset for the upper bound; the lower bound is a method's own
    /// enclosure (a theorem about the ratio scan, a formula, or the Lovász
    /// bound), since the problem is too large for a flow.
    Subset,
}

/// The proof that goes with the answer.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What it rests on.
    pub basis: Basis,
    /// H, ascending.
    pub subset: Vec<usize>,
    /// P(H).
    pub target_mass: f64,
    /// Q(H).
    pub inside: f64,
    /// P(H) and Q(H) as fractions, if the answer is exact.
    pub exact: Option<(Rational, Rational)>,
    /// The plan, where a flow made one.
    pub plan: Option<TransportPlan>,
}

/// The optimum under the other law of distinct drafts.
#[derive(Clone, Debug)]
pub struct SiblingLaw {
    /// Its name.
    pub scheme: SchemeName,
    /// Its alpha*.
    pub rate: Known,
}

/// Whether the methods agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Largest |method - certified value| over the methods that count.
    pub max_abs_difference: f64,
    /// How many methods count.
    pub methods: usize,
    /// What disagrees, in words; empty if nothing does.
    pub complaints: Vec<String>,
}

/// Everything that was found about one problem.
#[derive(Debug)]
pub struct Solution {
    /// Name of the problem.
    pub problem: String,
    /// Its scheme.
    pub scheme: SchemeName,
    /// V.
    pub vocab: usize,
    /// n.
    pub drafts: usize,
    /// alpha*.
    pub optimal_acceptance_rate: Known,
    /// Why that is so.
    pub proof: Proof,
    /// Every method, run or skipped.
    pub methods: Vec<MethodRun>,
    /// Whether they agree.
    pub agreement: Agreement,
    /// Whether the file's expectation is met; `None` if it has none.
    pub expected: Option<ExpectationCheck>,
    /// For the two laws without replacement, the other one's optimum.
    pub sibling: Option<SiblingLaw>,
}

impl Solution {
    /// True if all methods agree and the expectation is met.
    pub fn ok(&self) -> bool {
        self.agreement.complaints.is_empty()
            && self
                .expected
                .as_ref()
                .is_none_or(|check| check.complaint.is_none())
    }
}

/// Solves a problem by every method that fits, and certifies the answer.
///
/// # Example
/// ```
/// use specgap::problem::{AnyProblem, parse_toml};
/// use specgap::solve::{Limits, solve};
/// let AnyProblem::Single(problem) = parse_toml(r#"
///     schema = 1
///     name = "toy"
///     target = ["1/2", "1/2"]
///     drafts = 2
///     [draft]
///     scheme = "with-replacement"
///     q = ["3/4", "1/4"]
/// "#)? else { unreachable!() };
/// let solution = solve(&problem, &Limits::default());
/// assert!(solution.ok());
/// assert_eq!(solution.optimal_acceptance_rate.value(), 0.9375);
/// # Ok::<(), specgap::problem::FieldError>(())
/// ```
pub fn solve(problem: &Problem, limits: &Limits) -> Solution {
    let mut methods = lps::run(problem, limits);
    let mut complaints = Vec::new();

    let mut proved: Option<(Certified<Known>, Proof)> = None;
    let mut instance = None;
    let obstacle = flow_obstacle(problem, limits);
    if obstacle.is_none() {
        let started = Instant::now();
        let solved = flow::solve(problem);
        let optimum = solved.optimum();
        methods.push(MethodRun::of(
            Method::MaxFlow,
            optimum.clone(),
            started.elapsed().as_secs_f64(),
        ));
        instance =
            (problem.vocab() <= enumeration::LARGEST_NATIVE_VOCAB).then(|| solved.instance());
        let subset = optimum.subset.unwrap_or_default();
        let plan = solved.into_plan();
        match certify::optimum(problem, &plan, &subset) {
            Ok(rate) => {
                let basis = match plan.rounding {
                    Rounding::None => Basis::FlowEqualsCut,
                    Rounding::Grid { .. } => Basis::FlowMeetsCut,
                };
                if basis == Basis::FlowEqualsCut && rate.get().rational().is_none() {
                    complaints.push("max-flow: the plan and the cut do not meet".to_owned());
                }
                if plan.rounding == Rounding::None {
                    complaints.extend(check_coupling(problem, &plan, rate.get(), limits));
                }
                let proof = proof(problem, basis, subset, Some(plan), rate.get());
                proved = Some((rate, proof));
            }
            Err(error) => complaints.push(format!("max-flow: its certificate is refused: {error}")),
        }
    }
    if let Some(reason) = obstacle {
        methods.push(MethodRun::skipped(Method::MaxFlow, None, reason));
    }

    methods.push(enumerate(problem, instance.as_ref()));
    methods.push(scan(problem));
    methods.push(formula(problem));
    methods.push(minimise(problem, limits));

    let (rate, proof) = match proved {
        Some((rate, proof)) => (sharpen(rate.into_inner(), &methods), proof),
        None => without_flow(problem, &methods, &mut complaints),
    };
    let agreement = agree(&methods, &rate, complaints);
    let expected = problem
        .expected()
        .and_then(|expected| expectation::check(expected, &rate, problem));
    Solution {
        problem: problem.name().to_owned(),
        scheme: problem.scheme().name(),
        vocab: problem.vocab(),
        drafts: problem.drafts(),
        optimal_acceptance_rate: rate,
        proof,
        methods,
        agreement,
        expected,
        sibling: sibling(problem, limits),
    }
}

/// Why a problem is too large for the flow, if it is.
fn flow_obstacle(problem: &Problem, limits: &Limits) -> Option<String> {
    let scheme = problem.scheme();
    let entries = scheme.set_count() * problem.drafts() as f64;
    let operations = scheme.set_law_cost().max(match scheme.tuple_count() {
        few if few <= limits.coupling_entries => few,
        _ => scheme.set_check_cost(),
    });
    if entries > limits.flow_entries {
        return Some(format!(
            "{} set entries exceed the limit of {}",
            count(entries),
            limits.flow_entries
        ));
    }
    (operations > limits.law_operations).then(|| {
        format!(
            "deriving and checking the law of the sets takes {operations:.1e} operations; the \
             limit is {:.1e}",
            limits.law_operations
        )
    })
}

/// An exact value that a theorem gives (a formula, or the ratio scan) in place of an
/// enclosure that holds it.
fn sharpen(rate: Known, methods: &[MethodRun]) -> Known {
    if rate.rational().is_some() {
        return rate;
    }
    let exact = methods
        .iter()
        .filter(|run| run.backend.is_none())
        .find_map(|run| {
            let proven = matches!(run.method, Method::ClosedForm | Method::RatioScan);
            run.counts().filter(|_| proven)?.rational().cloned()
        });
    match exact.map(Known::exact) {
        Some(value) if value.lower() <= rate.upper() && value.upper() >= rate.lower() => value,
        _ => rate,
    }
}

/// Builds the full coupling of a small problem and has it checked.
fn check_coupling(
    problem: &Problem,
    plan: &TransportPlan,
    rate: &Known,
    limits: &Limits,
) -> Option<String> {
    let entries = problem.scheme().tuple_count() * problem.vocab() as f64;
    if entries > limits.coupling_entries
        || entries * (problem.scheme().exact_bits() + 1.0) > 100.0 * limits.coupling_entries
    {
        return None;
    }
    let coupling = crate::plan::Coupling::extend(problem, plan);
    match certify::coupling(problem, &coupling) {
        Ok(accepted) if Some(accepted.get()) == rate.rational() => None,
        Ok(accepted) => Some(format!(
            "coupling: its acceptance rate is {}",
            format_rational(accepted.get())
        )),
        Err(error) => Some(format!("coupling: {error}")),
    }
}

fn proof(
    problem: &Problem,
    basis: Basis,
    subset: Vec<usize>,
    plan: Option<TransportPlan>,
    rate: &Known,
) -> Proof {
    let exact = rate.rational().is_some().then(|| {
        (
            problem.target().exact().mass(&subset),
            problem.scheme().inside_exact(&subset),
        )
    });
    let (target_mass, inside) = match &exact {
        Some((p, q)) => (
            crate::distribution::round_nearest(p),
            crate::distribution::round_nearest(q),
        ),
        None => {
            let row = problem.target().probabilities();
            let mass = subset.iter().map(|&token| row[token]);
            (
                crate::distribution::compensated_sum(mass),
                problem.scheme().inside(&subset),
            )
        }
    };
    Proof {
        basis,
        subset,
        target_mass,
        inside,
        exact,
        plan,
    }
}

fn timed(method: Method, run: impl FnOnce() -> Optimum) -> MethodRun {
    let started = Instant::now();
    let optimum = run();
    MethodRun::of(method, optimum, started.elapsed().as_secs_f64())
}

fn enumerate(problem: &Problem, instance: Option<&ScaledInstance>) -> MethodRun {
    let skip = |limit: usize, numbers: &str| {
        let reason = format!(
            "{} tokens; 2^V subsets are tried up to {limit} {numbers}",
            problem.vocab()
        );
        MethodRun::skipped(Method::SubsetEnumeration, None, reason)
    };
    match instance {
        Some(ScaledInstance::Native(instance)) => {
            if problem.vocab() > enumeration::LARGEST_NATIVE_VOCAB {
                return skip(enumeration::LARGEST_NATIVE_VOCAB, "tokens");
            }
            timed(Method::SubsetEnumeration, || enumeration::solve(instance))
        }
        Some(ScaledInstance::Big(instance)) => {
            if problem.vocab() > enumeration::LARGEST_BIG_VOCAB {
                return skip(
                    enumeration::LARGEST_BIG_VOCAB,
                    "tokens when exact masses exceed 126 bits",
                );
            }
            timed(Method::SubsetEnumeration, || enumeration::solve(instance))
        }
        None => skip(enumeration::LARGEST_NATIVE_VOCAB, "tokens"),
    }
}

fn scan(problem: &Problem) -> MethodRun {
    let skip = |reason: &str| MethodRun::skipped(Method::RatioScan, None, reason);
    if !problem.scheme().has_sort_theorem() {
        return skip(if problem.scheme().fixed_drafts().is_some() {
            "the deterministic tokens break the order by q/p; closed-form covers this scheme"
        } else if problem.scheme().draft().is_some() {
            "no theorem says that sorting by q/p finds the optimum of this scheme; submodular \
             covers it"
        } else {
            "there is no single q to sort by; submodular covers this scheme"
        });
    }
    let started = Instant::now();
    match ratio_scan::solve(problem) {
        Some(optimum) => MethodRun::of(Method::RatioScan, optimum, started.elapsed().as_secs_f64()),
        None => skip("there is no single q to sort by"),
    }
}

fn formula(problem: &Problem) -> MethodRun {
    let started = Instant::now();
    match closed_form::solve(problem) {
        Some(optimum) => {
            MethodRun::of(Method::ClosedForm, optimum, started.elapsed().as_secs_f64())
        }
        None => MethodRun::skipped(
            Method::ClosedForm,
            None,
            "no formula is known for this scheme, n and pair of distributions",
        ),
    }
}

fn minimise(problem: &Problem, limits: &Limits) -> MethodRun {
    let scheme = problem.scheme();
    let needed = !scheme.has_sort_theorem() && scheme.fixed_drafts().is_none();
    let limit = if needed {
        submodular::LARGEST_VOCAB
    } else {
        limits.submodular_vocab
    };
    if problem.vocab() > limit {
        let reason = format!(
            "{} tokens; tried up to {limit} for this scheme",
            problem.vocab()
        );
        return MethodRun::skipped(Method::Submodular, None, reason);
    }
    let started = Instant::now();
    let found = submodular::solve(problem);
    let seconds = started.elapsed().as_secs_f64();
    match found {
        Some(optimum) => MethodRun::of(Method::Submodular, optimum, seconds),
        None => MethodRun {
            status: Status::Unsolved("the law's numbers leave the range of f64".to_owned()),
            seconds,
            ..MethodRun::skipped(Method::Submodular, None, "")
        },
    }
}

/// The best answer of a problem that is too large for a flow: the smallest
/// certified upper bound and the largest lower bound.
fn without_flow(
    problem: &Problem,
    methods: &[MethodRun],
    complaints: &mut Vec<String>,
) -> (Known, Proof) {
    let (mut value, mut lower, mut upper) = (1.0, 0.0f64, 1.0f64);
    let mut subset = Vec::new();
    let mut exact = None;
    for run in methods {
        let Some(rate) = run.counts().filter(|_| run.backend.is_none()) else {
            continue;
        };
        lower = lower.max(rate.lower());
        let proven = run.method == Method::ClosedForm || problem.scheme().has_sort_theorem();
        if let Some(found) = rate.rational().filter(|_| proven) {
            exact = Some(found.clone());
        }
        if let Some(found) = &run.subset {
            match certify::upper_bound_float(problem, found) {
                Ok(bound) => {
                    let (cut, bound) = *bound.get();
                    if bound < upper || subset.is_empty() {
                        upper = upper.min(bound);
                        value = cut;
                        subset.clone_from(found);
                    }
                }
                Err(error) => complaints.push(format!("{}: {error}", run.method.as_str())),
            }
        }
    }
    let rate = match exact {
        Some(value) => Known::exact(value),
        None => Known::rate(value, lower, upper),
    };
    let proof = proof(problem, Basis::Subset, subset, None, &rate.as_enclosure());
    (rate, proof)
}

fn named(run: &MethodRun) -> String {
    match run.backend {
        Some(backend) => format!("{} ({})", run.method.as_str(), backend.as_str()),
        None => run.method.as_str().to_owned(),
    }
}

/// Whether two results for one number can both be right: they meet, or are equal where
/// both are exact. A linear program's plain float is allowed [`LP_TOLERANCE`]. False for
/// NaN.
fn can_both_hold(one: &Known, other: &Known) -> bool {
    let ends = |rate: &Known| match rate.kind() {
        Kind::Float => (rate.value() - LP_TOLERANCE, rate.value() + LP_TOLERANCE),
        _ => (rate.lower(), rate.upper()),
    };
    match (one.rational(), other.rational()) {
        (Some(one), Some(other)) => one == other,
        _ => {
            let ((lower, upper), (least, most)) = (ends(one), ends(other));
            lower <= most && least <= upper
        }
    }
}

fn agree(methods: &[MethodRun], certified: &Known, mut complaints: Vec<String>) -> Agreement {
    let mut worst: f64 = 0.0;
    let mut counted = 0;
    // Methods that agree with the certified value, to be compared with one another.
    let mut agreeing: Vec<(&MethodRun, &Known)> = Vec::new();
    for run in methods {
        let Some(rate) = run.counts() else { continue };
        counted += 1;
        let difference = match &certified.rational() {
            Some(exact) if rate.rational().is_none() => certify::distance(rate.value(), exact),
            _ => (rate.value() - certified.value()).abs(),
        };
        worst = worst.max(difference);
        if can_both_hold(rate, certified) {
            agreeing.push((run, rate));
        } else {
            complaints.push(format!(
                "{} finds {}, the certified value is {}",
                named(run),
                describe(rate),
                describe(certified)
            ));
        }
    }
    // A wide certified enclosure holds what excludes one another.
    for (index, &(run, rate)) in agreeing.iter().enumerate() {
        for &(other, found) in &agreeing[..index] {
            if !can_both_hold(rate, found) {
                complaints.push(format!(
                    "{} finds {}, {} finds {}",
                    named(run),
                    describe(rate),
                    named(other),
                    describe(found)
                ));
            }
        }
    }
    if certified.width() > WIDEST_CERTIFIED {
        complaints.push(format!(
            "the certified value is {}, which is wider than {WIDEST_CERTIFIED:e}",
            describe(certified)
        ));
    }
    Agreement {
        max_abs_difference: worst,
        methods: counted,
        complaints,
    }
}

/// A value as people read it: the fraction where it is short.
pub(crate) fn describe(rate: &Known) -> String {
    match &rate.rational() {
        Some(value) => {
            let text = format_rational(value);
            if text.len() <= 40 {
                text
            } else {
                format!("{} (exact)", rate.value())
            }
        }
        None if rate.kind() == Kind::Float => rate.value().to_string(),
        None => format!("{} in [{}, {}]", rate.value(), rate.lower(), rate.upper()),
    }
}

/// A count that may be astronomical.
fn count(value: f64) -> String {
    if value < 1e15 {
        format!("{value}")
    } else {
        format!("{value:.1e}")
    }
}

/// The other law of distinct drafts, which a reader may have meant.
fn sibling(problem: &Problem, limits: &Limits) -> Option<SiblingLaw> {
    let scheme = problem.scheme();
    let draft = scheme.draft()?.clone();
    let drafts = problem.drafts();
    if drafts == 1 {
        return None;
    }
    let other: Arc<dyn DraftScheme> = if scheme.name() == SchemeName::WITHOUT_REPLACEMENT {
        Arc::new(DistinctConditioned::new(draft, drafts))
    } else if scheme.name() == SchemeName::DISTINCT_CONDITIONED {
        Arc::new(WithoutReplacement::new(draft, drafts))
    } else {
        return None;
    };
    let other = problem.with_scheme(other);
    let name = other.scheme().name();
    let rate = if flow_obstacle(&other, limits).is_none() {
        flow::solve(&other).optimum().rate
    } else {
        ratio_scan::solve(&other)?.rate
    };
    Some(SiblingLaw { scheme: name, rate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::parse_rational;

    fn run(method: Method, backend: Option<BackendName>, rate: Known) -> MethodRun {
        MethodRun {
            status: Status::Optimal,
            rate: Some(rate),
            ..MethodRun::skipped(method, backend, "")
        }
    }

    fn complaints(runs: &[MethodRun], certified: &Known) -> Vec<String> {
        agree(runs, certified, Vec::new()).complaints
    }

    #[test]
    fn methods_that_exclude_one_another_do_not_agree() {
        let certified = Known::rate(0.5, 0.0, 1.0);
        let all = run(Method::MaxFlow, None, Known::rate(1.0, 1.0, 1.0));
        let none = run(Method::Submodular, None, Known::rate(0.0, 0.0, 0.0));
        let found = complaints(&[all, none], &certified);
        // The pair, and a certified value that says nothing.
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("submodular finds 0 in [0, 0], max-flow finds 1 in [1, 1]"));
        assert!(found[1].contains("wider than 1e-6"), "{found:?}");
    }

    #[test]
    fn a_linear_program_is_held_to_its_own_tolerance() {
        let certified = Known::rate(0.5, 0.5 - 4e-7, 0.5 + 4e-7);
        let flow = run(
            Method::MaxFlow,
            None,
            Known::rate(0.5, 0.5 - 1e-12, 0.5 + 1e-12),
        );
        let program = |value: f64| {
            run(
                Method::DualLp,
                Some(BackendName::MiniLp),
                Known::float(value),
            )
        };
        for (value, count) in [
            (0.5 + 0.9e-9, 0),
            // Within the certified enclosure, and not what the flow says.
            (0.5 + 1e-8, 1),
            // Out of both: said once.
            (0.5 + 4.1e-7, 1),
        ] {
            let runs = [flow.clone(), program(value)];
            let found = complaints(&runs, &certified);
            assert_eq!(found.len(), count, "{value}: {found:?}");
        }
    }

    #[test]
    fn exact_values_agree_when_they_are_equal() {
        let exact = |text: &str| Known::exact(parse_rational(text).unwrap());
        let flow = run(Method::MaxFlow, None, exact("1/3"));
        let scan = |text: &str| run(Method::RatioScan, None, exact(text));
        let near = "333333333333333333333333333333/1000000000000000000000000000000";
        for (text, count) in [("1/3", 0), (near, 1)] {
            let runs = [flow.clone(), scan(text)];
            let found = complaints(&runs, &exact("1/3"));
            assert_eq!(found.len(), count, "{found:?}");
        }
    }
}
