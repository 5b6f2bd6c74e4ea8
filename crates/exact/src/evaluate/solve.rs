//! `solve`: alpha* of one problem by every method.
//!
//! [`solve`] runs three linear programs, the maximum flow, the enumeration of subsets, and
//! whatever algorithm applies besides, lets [`specgap_core::certify`] recompute the answer, and
//! reports how far each method is from it. A method that does not fit is listed as
//! skipped, with the reason.

use super::agreement::{Agreement, too_wide};
use super::direct::{
    enumerate, flow_obstacle, formula, is_stratified, level, level_first, minimise, scan,
    two_scores,
};
use super::expectation::{Expectation, Wanted};
use super::method::{Limits, Method, MethodRun};
use super::proof::{Basis, Proof, statement};
use super::tolerances::Standard;
use super::{Evaluated, programs};
use specgap_core::certify::{self, Certified};
use specgap_core::coupling::{Coupling, Rounding, TransportPlan};
use specgap_core::optimum::{best, enumeration, flow};
use specgap_core::problem::Problem;
use specgap_core::scheme::{DistinctConditioned, DraftScheme, SchemeName, WithoutReplacement};
use specgap_number::distribution::format_rational;
use specgap_number::known::Known;
use std::sync::Arc;
use std::time::Instant;

/// The optimum under the other law of distinct drafts.
#[derive(Clone, Debug)]
pub struct SiblingLaw {
    /// The law's name.
    pub scheme: SchemeName,
    /// Its alpha*.
    pub rate: Known,
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
    /// What is left open of alpha\* where no method that answers it fits, if it is.
    pub limit: Option<String>,
    /// Whether the file's expectation is met; `None` if it has none.
    pub expected: Option<Expectation>,
    /// For the two laws without replacement, the other one's optimum.
    pub sibling: Option<SiblingLaw>,
}

impl Solution {
    /// The proof in words.
    pub fn statement(&self) -> String {
        let drafts = if self.scheme == SchemeName::COMPOSED {
            0
        } else {
            self.drafts
        };
        statement(&self.proof, &self.optimal_acceptance_rate, drafts)
    }
}

impl Evaluated for Solution {
    fn complaints(&self) -> Vec<String> {
        let unmet = self.expected.iter().flat_map(|check| &check.complaint);
        let all = self.agreement.complaints.iter().chain(unmet);
        all.cloned().collect()
    }
}

/// Solves a problem by every method that fits, and certifies the answer.
///
/// # Example
/// ```
/// use specgap_exact::evaluate::{Evaluated, Limits, solve};
/// use specgap_core::problem::{AnyProblem, parse_toml};
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
/// assert!(solution.is_ok());
/// assert_eq!(solution.optimal_acceptance_rate.value(), 0.9375);
/// # Ok::<(), specgap_core::problem::FieldError>(())
/// ```
pub fn solve(problem: &Problem, limits: &Limits) -> Solution {
    let mut methods = programs::run(problem, limits);
    let mut complaints = Vec::new();

    let mut proved: Option<(Certified<Known>, Proof)> = None;
    let mut instance = None;
    let early = level_first(problem, limits);
    let theorems = [scan(problem), two_scores(problem), formula(problem)];
    let obstacle = flow_obstacle(problem, limits, early.iter().chain(&theorems));
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
                let proof = Proof::new(problem, basis, subset, Some(plan), rate.get());
                proved = Some((rate, proof));
            }
            Err(error) => complaints.push(format!("max-flow: its certificate is refused: {error}")),
        }
    }
    if let Some(reason) = obstacle {
        methods.push(MethodRun::skipped(Method::MaxFlow, None, reason));
    }

    methods.push(enumerate(problem, instance.as_ref()));
    methods.extend(theorems);
    methods.push(minimise(problem, limits));
    let has_flow = proved.is_some();
    // Of drafts from several models nothing else may fit, and without a set nothing is known but 1.
    let tells_a_set = |run: &MethodRun| run.outcome.done().is_some_and(|one| one.subset.is_some());
    let is_needed = !has_flow
        && (is_stratified(problem)
            || problem.scheme().name() == SchemeName::PRODUCT && !methods.iter().any(tells_a_set));
    methods.extend(early.or_else(|| is_needed.then(|| level(problem))));

    let (rate, proof) = match proved {
        Some((rate, proof)) => (sharpen(rate.into_inner(), &methods), proof),
        None => without_flow(problem, &methods, &mut complaints),
    };
    let counted = methods
        .iter()
        .filter_map(|run| Some((run.name(), run.rate()?)));
    let mut agreement = Agreement::of(counted, "the certified value", &rate, complaints);
    let mut limit = too_wide(&rate).map(|wide| format!("the certified value is {wide}"));
    if has_flow {
        agreement.complaints.extend(limit.take());
        agreement.ok = agreement.complaints.is_empty();
    }
    Solution {
        limit,
        problem: problem.name().to_owned(),
        scheme: problem.scheme().name(),
        vocab: problem.vocab(),
        drafts: problem.drafts(),
        expected: expectation(problem, &rate),
        optimal_acceptance_rate: rate,
        proof,
        methods,
        agreement,
        sibling: sibling(problem),
    }
}

/// Compares alpha* with the problem file.
pub(super) fn expectation(problem: &Problem, rate: &Known) -> Option<Expectation> {
    let expected = problem.expected()?;
    let value = expected.optimal_acceptance_rate.as_ref()?;
    let wanted = Wanted::of(
        expected,
        "optimal_acceptance_rate",
        value,
        Standard::OPTIMUM,
    );
    Some(wanted.against(Some(rate), true))
}

/// The exact value that a theorem gives: a formula, or the ratio scan.
fn by_theorem(methods: &[MethodRun]) -> Option<Known> {
    methods
        .iter()
        .filter(|run| run.method.is_theorem())
        .filter_map(MethodRun::rate)
        .find(|rate| rate.rational().is_some())
        .cloned()
}

/// An exact value that a theorem gives in place of an enclosure that holds it.
fn sharpen(rate: Known, methods: &[MethodRun]) -> Known {
    if rate.rational().is_some() {
        return rate;
    }
    match by_theorem(methods) {
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
    let coupling = Coupling::extend(problem, plan);
    match certify::coupling(problem, &coupling) {
        Ok(accepted) if Some(accepted.get()) == rate.rational() => None,
        Ok(accepted) => Some(format!(
            "coupling: its acceptance rate is {}",
            format_rational(accepted.get())
        )),
        Err(error) => Some(format!("coupling: {error}")),
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
    for run in methods {
        let Some(answer) = run.outcome.done().filter(|_| run.backend.is_none()) else {
            continue;
        };
        lower = lower.max(answer.rate.lower());
        if let Some(found) = &answer.subset {
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
    let rate = by_theorem(methods).unwrap_or_else(|| Known::rate(value, lower, upper));
    let proof = Proof::new(problem, Basis::Subset, subset, None, &rate.as_enclosure());
    (rate, proof)
}

/// The other law of distinct drafts, which a reader may have meant.
fn sibling(problem: &Problem) -> Option<SiblingLaw> {
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
    let rate = best(&other).ok()?.rate;
    Some(SiblingLaw { scheme: name, rate })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::verify;
    use specgap_core::scheme::{Product, Straddle, Stratified, WithReplacement};
    use specgap_core::verifier::VerifierName;
    use specgap_number::distribution::{Draft, Target};

    fn wide(law: impl DraftScheme + 'static) -> Problem {
        let target = Target::new(&[1.0 / 300.0; 300]).unwrap();
        Problem::new("wide", target, law).unwrap()
    }

    /// A row of 300 tokens, `skip` of which come last.
    fn slope(skip: u16) -> Draft {
        let weight = |x: u16| f64::from((x + skip) % 300 + 1) / 45_150.0;
        Draft::new(&(0..300).map(weight).collect::<Vec<f64>>()).unwrap()
    }

    /// No flow, no sort and no minimiser: the level rule encloses alpha\* of strata, and what is
    /// left of other laws is a limit, which is no disagreement.
    #[test]
    fn where_nothing_fits_a_limit_is_reached_and_nothing_disagrees() {
        for (drafts, least) in [(4, 0.93), (60, 0.9973)] {
            let problem = wide(Stratified::new(slope(0), drafts, Straddle::Once));
            let solution = solve(&problem, &Limits::default());
            let rate = &solution.optimal_acceptance_rate;
            assert!(rate.width() < 1e-6 && rate.value() > least, "{rate:?}");
            assert!(solution.is_ok() && solution.limit.is_none());
        }
        // All of four models draft token 0 with .9, and the target has 1/300 of it.
        let heavy = |model: usize| {
            // Each model's others in an order of its own.
            let weight = |x: usize| 0.1 * ((x + 70 * model) % 299 + 1) as f64 / 44_850.0;
            let row: Vec<f64> = std::iter::once(0.9).chain((0..299).map(weight)).collect();
            Draft::new(&row).unwrap()
        };
        let heavy = || (0..4).map(heavy).collect();
        let sure = 1.0 + 1.0 / 300.0 - 0.9f64.powi(4);
        let apart = || (0..4).map(|model| slope(70 * model)).collect();
        for (rows, value) in [(heavy(), Some(sure)), (apart(), None)] {
            let solution = solve(&wide(Product::new(rows).unwrap()), &Limits::default());
            assert!(solution.is_ok(), "{:?}", solution.complaints());
            let rate = &solution.optimal_acceptance_rate;
            assert!(rate.width() < 1e-6, "{rate:?}");
            assert!(
                value.is_none_or(|value| (rate.value() - value).abs() < 1e-12),
                "{value:?} {rate:?}"
            );
            assert!(!solution.proof.subset.is_empty() || value.is_none());
        }
    }

    /// Why there is no flow.
    fn flow(solution: &Solution) -> Option<String> {
        let mut methods = solution.methods.iter();
        let run = methods.find(|run| run.method == Method::MaxFlow);
        run.unwrap().outcome.reason().map(str::to_owned)
    }

    /// Three strata of 180 tokens are 1e5 sets: a flow of many seconds, where the level rule takes
    /// one. What is small is solved by both.
    #[test]
    fn strata_are_cross_checked_by_a_flow_while_it_is_short() {
        let limits = Limits::default();
        let row = |vocab: u16| -> Vec<f64> {
            let total = f64::from(vocab) * f64::from(vocab + 1) / 2.0;
            (1..=vocab).map(|x| f64::from(x) / total).collect()
        };
        let of = |vocab: u16, straddle| {
            let law = Stratified::new(Draft::new(&row(vocab)).unwrap(), 3, straddle);
            let target = Target::new(&vec![1.0 / f64::from(vocab); vocab.into()]).unwrap();
            Problem::new("strata", target, law).unwrap()
        };
        let small = solve(&of(30, Straddle::Once), &limits);
        assert_eq!(flow(&small), None);
        let large = solve(&of(180, Straddle::Once), &limits);
        let reason = flow(&large).unwrap_or_default();
        assert!(
            reason.contains("the limit of 40000 where level-rule"),
            "{reason}"
        );
        let rate = &large.optimal_acceptance_rate;
        assert!(rate.width() < 1e-9 && large.is_ok(), "{rate:?}");
        // The flow says the same, where it is let.
        let patient = Limits {
            flow_entries_beside_level: 1e7,
            ..limits
        };
        let few = of(60, Straddle::Once);
        let hasty = Limits {
            flow_entries_beside_level: 0.0,
            ..limits
        };
        let [long, short] = [patient, hasty].map(|limits| solve(&few, &limits));
        assert!(flow(&long).is_none() && flow(&short).is_some());
        let [long, short] = [long, short].map(|solution| solution.optimal_acceptance_rate);
        assert!(short.lower() <= long.value() && long.value() <= short.upper());
    }

    /// 1,500 tokens are 2e6 entries of sets, a flow of seconds, and 5,000 a minute; the scan takes
    /// milliseconds. What is small is solved by both.
    #[test]
    fn long_flows_give_way_to_a_theorem() {
        let of = |vocab: u16| {
            let row = |step: u32| -> Vec<f64> {
                let weight = |x: u16| f64::from(1 + u32::from(x) * step % 64);
                let total: f64 = (0..vocab).map(weight).sum();
                (0..vocab).map(|x| weight(x) / total).collect()
            };
            let law = WithReplacement::new(Draft::new(&row(5)).unwrap(), 2);
            let target = Target::new(&row(3)).unwrap();
            Problem::new("iid", target, law).unwrap()
        };
        let large = solve(&of(1500), &Limits::default());
        let reason = flow(&large).unwrap_or_default();
        assert!(
            reason.contains("the limit of 2000000 where ratio-scan"),
            "{reason}"
        );
        assert!(large.is_ok() && large.optimal_acceptance_rate.rational().is_some());
        let hasty = Limits {
            flow_entries_beside_theorem: 0.0,
            ..Limits::default()
        };
        let [both, alone] = [Limits::default(), hasty].map(|limits| solve(&of(40), &limits));
        assert!(flow(&both).is_none() && flow(&alone).is_some());
        let [both, alone] = [both, alone].map(|solution| solution.optimal_acceptance_rate);
        assert!(both.rational().is_some() && both.rational() == alone.rational());
    }

    /// Of 30 tokens in each of three strata sums have thousands of bits, which p and q do not tell:
    /// the rate is still a fraction, and the law is summed in `f64`. With 4 in each both are fractions.
    #[test]
    fn strata_are_summed_in_fractions_while_these_are_short() {
        for (vocab, exact) in [(12u16, true), (90, false)] {
            let row = |step: u16| {
                let part = (2f64.powi(20) / f64::from(vocab) / 64.0).floor();
                let weight = |x: u16| part * f64::from(30 + x * step % 61) - f64::from(x);
                let row: Vec<f64> = (1..vocab).map(|x| weight(x) / 2f64.powi(20)).collect();
                let rest = 1.0 - row.iter().sum::<f64>();
                std::iter::once(rest).chain(row).collect::<Vec<f64>>()
            };
            let law = Stratified::new(Draft::new(&row(5)).unwrap(), 3, Straddle::Once);
            let target = Target::new(&row(7)).unwrap();
            let verified = verify(&Problem::new("strata", target, law).unwrap());
            let four = verified.measured(VerifierName::LEVEL_4).unwrap();
            assert!(four.is_ok() && four.membership.rational().is_some());
            let variation = four.total_variation.as_ref().unwrap();
            assert_eq!(variation.exact.is_some(), exact, "{vocab}");
        }
    }

    /// Recursive rejection of 60 drafts over strata has 2^59 histories, which are not summed.
    #[test]
    fn many_strata_are_verified_but_for_what_would_take_for_ever() {
        let law = Stratified::new(slope(0), 60, Straddle::Once);
        let verified = verify(&wide(law));
        let mut verifiers = verified.verifiers.iter();
        let rrs = verifiers.find(|one| one.name == VerifierName::RRS);
        let reason = rrs.and_then(|one| one.outcome.reason()).unwrap_or_default();
        assert!(reason.contains("too many to sum"), "{reason}");
        let four = verified.measured(VerifierName::LEVEL_4).unwrap();
        assert!(four.is_ok() && four.membership.value() > 0.95);
    }
}
