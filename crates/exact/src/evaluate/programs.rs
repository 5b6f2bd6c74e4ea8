//! The three linear programs on every solver.

use super::Outcome;
use super::method::{Answer, Limits, Method, MethodRun, count};
use super::tolerances::PROGRAM_TOLERANCE;
use specgap_core::certify::{self, Residuals};
use specgap_core::coupling::Coupling;
use specgap_core::lp::formulation::{TupleLaw, dual, full, membership};
use specgap_core::lp::{Backend, BackendName, LinearProgram, LpAnswer, LpStatus};
use specgap_core::problem::Problem;
use specgap_number::distribution::compensated_sum;
use specgap_number::known::Known;
use std::time::Instant;

/// Runs full, membership and dual program on each backend.
pub(super) fn run(problem: &Problem, limits: &Limits) -> Vec<MethodRun> {
    let tuples = problem.scheme().tuple_count();
    let members = tuples * (problem.drafts().min(problem.vocab()) as f64);
    let dual = tuples + problem.vocab() as f64;
    let sizes = [
        (Method::FullLp, tuples * problem.vocab() as f64, "variables"),
        (Method::MembershipLp, members, "variables"),
        // The dual has one row a membership, which is what it costs.
        (Method::DualLp, members.max(dual), "rows"),
    ];
    let limit = |backend| match backend {
        BackendName::Highs => limits.highs_variables,
        BackendName::MiniLp => limits.minilp_variables,
    };
    let any = sizes.iter().any(|&(_, size, _)| {
        let mut backends = BackendName::ALL.into_iter();
        backends.any(|backend| size <= limit(backend))
    });
    let law = any.then(|| TupleLaw::of(problem.scheme()));

    let mut answers = Vec::new();
    let mut runs = Vec::new();
    for (method, size, unit) in sizes {
        for backend in BackendName::ALL {
            let skip = |reason: String| MethodRun::skipped(method, Some(backend), reason);
            let Some(solver) = backend.backend() else {
                runs.push(skip(
                    "this build has no HiGHS; build with --features highs".to_owned(),
                ));
                continue;
            };
            if size > limit(backend) {
                runs.push(skip(format!(
                    "{} {unit} exceed the limit of {}",
                    count(size),
                    limit(backend)
                )));
                continue;
            }
            let Some(law) = &law else { continue };
            if law.probabilities.iter().any(|mass| !mass.is_finite()) {
                runs.push(skip("the law's numbers leave the range of f64".to_owned()));
                continue;
            }
            let (run, program, answer) = run_one(problem, law, method, solver.as_ref());
            runs.push(run);
            answers.push((method, backend, program, answer));
        }
    }
    // minilp gives no multipliers: the membership program and the dual program
    // are each other's dual, so each one's answer proves the other's.
    let target = problem.target().probabilities();
    for run in &mut runs {
        let (Some(backend), Outcome::Imprecise(found)) = (run.backend, &mut run.outcome) else {
            continue;
        };
        let find = |wanted: Method| {
            let found = answers
                .iter()
                .find(|(method, name, ..)| *method == wanted && *name == backend);
            found.and_then(|(.., program, answer)| Some((program, answer.primal.as_deref()?)))
        };
        let (Some((_, y)), Some((program, own))) = (find(Method::DualLp), find(run.method)) else {
            continue;
        };
        let membership = find(Method::MembershipLp).map(|(_, primal)| primal);
        found.residuals = paired(target, program, run.method, own, y, membership);
        run.outcome = judged(found.clone());
    }
    runs
}

/// Residuals of an answer whose multipliers come from the other program.
fn paired(
    target: &[f64],
    program: &LinearProgram,
    method: Method,
    own: &[f64],
    dual_answer: &[f64],
    membership_answer: Option<&[f64]>,
) -> Option<Residuals> {
    match method {
        Method::FullLp => {
            let heaviest = (0..target.len()).max_by(|&a, &b| target[a].total_cmp(&target[b]))?;
            // The heaviest token's row is left out: shift its multiplier to 0.
            let shift = dual_answer[heaviest];
            let multipliers: Vec<f64> = (0..target.len())
                .filter(|&token| token != heaviest)
                .map(|token| dual_answer[token] - shift)
                .chain(dual_answer[target.len()..].iter().map(|z| z + shift))
                .collect();
            certify::residuals(program, own, &multipliers)
        }
        Method::MembershipLp => certify::residuals(program, own, dual_answer),
        _ => certify::residuals(program, own, membership_answer?),
    }
}

/// An answer counts if its optimality conditions hold.
fn judged(answer: Answer) -> Outcome<Answer> {
    let good = answer.residuals.is_some_and(|r| {
        let all = [r.primal_infeasibility, r.dual_infeasibility, r.duality_gap];
        all.iter().all(|residual| *residual <= PROGRAM_TOLERANCE)
    });
    match good {
        true => Outcome::Done(answer),
        false => Outcome::Imprecise(answer),
    }
}

fn run_one(
    problem: &Problem,
    law: &TupleLaw,
    method: Method,
    solver: &dyn Backend,
) -> (MethodRun, LinearProgram, LpAnswer) {
    let target = problem.target().probabilities();
    let started = Instant::now();
    let (program, pairs): (LinearProgram, Vec<(usize, usize)>) = match method {
        Method::FullLp => (full(target, law), Vec::new()),
        Method::MembershipLp => membership(target, law),
        _ => (dual(target, law), Vec::new()),
    };
    let answer = solver.solve(&program);
    let seconds = started.elapsed().as_secs_f64();
    let failed = |reason: &str| Outcome::Failed(reason.to_owned());
    let outcome = match (&answer.status, &answer.primal) {
        (LpStatus::Optimal, Some(primal)) => {
            let (subset, note) = match method {
                Method::MembershipLp => (None, Some(extended(problem, &pairs, primal))),
                Method::DualLp => {
                    let (subset, integral) = vertex(target, law, primal);
                    let note = if integral {
                        "the answer is a 0/1 vertex: H = {i : y_i = 1}"
                    } else {
                        "the answer is not a vertex; H is its best level set {i : y_i >= t}"
                    };
                    (Some(subset), Some(note.to_owned()))
                }
                _ => (None, None),
            };
            let dual = answer.dual.as_ref();
            judged(Answer {
                rate: Known::float(program.objective_at(primal)),
                residuals: dual.and_then(|dual| certify::residuals(&program, primal, dual)),
                subset,
                note,
            })
        }
        (LpStatus::Infeasible, _) => failed("the solver calls the program infeasible"),
        (LpStatus::Unbounded, _) => failed("the solver calls the program unbounded"),
        (LpStatus::Failed(reason), _) => failed(reason),
        (LpStatus::Optimal, None) => failed("the solver returned no solution"),
    };
    let run = MethodRun {
        method,
        backend: Some(solver.name()),
        outcome,
        seconds,
    };
    (run, program, answer)
}

/// Extends the membership program's answer to a full coupling, and says what it accepts.
fn extended(problem: &Problem, pairs: &[(usize, usize)], primal: &[f64]) -> String {
    let accepted = pairs.iter().zip(primal);
    let accepted = accepted.map(|(&(tuple, token), &mass)| (tuple, token, mass));
    let coupling = Coupling::extend_float(problem, accepted);
    let (error, accepted) = certify::coupling_float(problem, &coupling);
    format!(
        "extended to a full coupling: accepts {accepted:.12}, largest error of a marginal \
         {error:.1e}"
    )
}

/// A 0/1 vertex of the dual from any optimal answer: by total unimodularity
/// every level set {i : y_i >= t}, 0 < t <= 1, is optimal; the best of them by
/// the dual objective is taken. Also whether the answer was 0/1 to begin with.
fn vertex(target: &[f64], law: &TupleLaw, answer: &[f64]) -> (Vec<usize>, bool) {
    let y = &answer[..target.len()];
    let near = |value: f64, whole: f64| (value - whole).abs() <= PROGRAM_TOLERANCE;
    let is_whole = |&value: &f64| near(value, 0.0) || near(value, 1.0);
    let positive = y.iter().copied().filter(|&value| value > PROGRAM_TOLERANCE);
    let mut levels: Vec<f64> = positive.collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup_by(|a, b| near(*a, *b));
    let mut best = (1.0, Vec::new());
    for level in levels {
        let inside = |token: usize| y[token] >= level - PROGRAM_TOLERANCE;
        let held: Vec<usize> = (0..target.len()).filter(|&token| inside(token)).collect();
        // y = 1 on H, and z = 1 on every tuple that is not inside H
        let mass = held.iter().map(|&token| target[token]);
        let tuples = law.tuples.iter().zip(&law.probabilities);
        let outside = tuples.filter(|(tuple, _)| !tuple.iter().all(|&x| inside(x as usize)));
        let value = compensated_sum(mass.chain(outside.map(|(_, &probability)| probability)));
        if value < best.0 {
            best = (value, held);
        }
    }
    (best.1, answer.iter().all(is_whole))
}
