//! Problems: solved, verified, and the law of their drafts.

use crate::errors::{raised, refused};
use crate::rates::{Bounds, bounds};
use crate::watch::watched;
use numpy::{PyArray1, PyArray2, PyArrayMethods, ToPyArray};
use pyo3::prelude::*;
use specgap::cli::{CliError, HostError};
use specgap::distribution::{Draft, Target};
use specgap::evaluate::{
    Evaluated, Limits, block as evaluate_block, check_names, solve as solve_one, verify_with,
};
use specgap::optimum::{best, on_row};
use specgap::problem::{AnyProblem, Problem, parse_json, parse_toml, read};
use specgap::report::{block as block_report, solve as solve_report, verify as verify_report};
use specgap::rounds::{ChainRule, FixedLength, fewest_calls, replay};
use specgap::scheme::{DraftScheme, MadeOf, SchemeName};
use specgap::verifier::{RrsWoSettings, VerifierName, rate_of_rows};
use std::path::PathBuf;
use std::sync::Arc;

/// One problem's result: JSON, text for people, and whether all is well.
type Result1 = (String, String, bool);

/// Tuples of drafts, one a row, and their probabilities.
type Tuples<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray1<f64>>);

fn failed(message: String) -> HostError {
    HostError::Command(CliError::Missing(message))
}

/// Problems of a kind, of a file or folder, or of text.
fn problems<P>(
    path: Option<PathBuf>,
    text: Option<String>,
    kind: impl Fn(AnyProblem) -> Option<P>,
) -> PyResult<Vec<P>> {
    let all = match (path, text) {
        (Some(path), _) => read(&path).map_err(raised)?,
        (None, Some(text)) => {
            let json = text.trim_start().starts_with('{');
            let parsed = if json {
                parse_json(&text)
            } else {
                parse_toml(&text)
            };
            let name = PathBuf::from("problem");
            vec![(name, parsed.map_err(raised)?)]
        }
        (None, None) => Vec::new(),
    };
    all.into_iter()
        .filter_map(|(path, problem)| {
            let refused = |error| refused(format!("{}: {error}", path.display()));
            match check_names(&problem) {
                Ok(()) => kind(problem).map(Ok),
                Err(error) => Some(Err(refused(error))),
            }
        })
        .collect()
}

fn single(problem: AnyProblem) -> Option<Problem> {
    match problem {
        AnyProblem::Single(problem) => Some(problem),
        AnyProblem::Block(_) => None,
    }
}

fn each<P: Sync, R: Evaluated>(
    py: Python<'_>,
    problems: Vec<P>,
    threads: usize,
    run: impl Fn(&P) -> R + Sync,
    text: impl Fn(&R) -> String + Sync,
) -> PyResult<Vec<Result1>> {
    if problems.is_empty() {
        return Err(refused(
            "there is no problem of this kind here; problems with a block are for sg.block, others for \
             sg.solve and sg.verify",
        ));
    }
    watched(py, threads, None, |host| {
        let one = |problem: &P| {
            let result = run(problem);
            let json = serde_json::to_string(&result).map_err(|error| failed(error.to_string()))?;
            Ok((json, text(&result), result.is_ok()))
        };
        host.watch(|| {
            let all = problems.iter().map(one);
            all.collect::<Result<Vec<Result1>, HostError>>()
        })
    })
}

/// Columns of a text report.
const WIDTH: u16 = 100;

/// alpha* by every method.
#[pyfunction]
#[pyo3(signature = (path, text, threads))]
fn solve(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<String>,
    threads: usize,
) -> PyResult<Vec<Result1>> {
    let limits = Limits::default();
    each(
        py,
        problems(path, text, single)?,
        threads,
        |problem| solve_one(problem, &limits),
        |solution| solve_report::page(solution).text(WIDTH, false),
    )
}

/// Every verifier.
#[pyfunction]
#[pyo3(signature = (path, text, seed, threads))]
fn verify(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<String>,
    seed: u64,
    threads: usize,
) -> PyResult<Vec<Result1>> {
    let settings = RrsWoSettings {
        seed,
        ..RrsWoSettings::default()
    };
    each(
        py,
        problems(path, text, single)?,
        threads,
        |problem| verify_with(problem, &settings),
        |verified| verify_report::page(verified).text(WIDTH, false),
    )
}

/// The optimum and the verifiers of blocks, for so many drafts if not the problem's own.
#[pyfunction]
#[pyo3(signature = (path, text, drafts, threads))]
fn block(
    py: Python<'_>,
    path: Option<PathBuf>,
    text: Option<String>,
    drafts: Option<usize>,
    threads: usize,
) -> PyResult<Vec<Result1>> {
    if let Some(drafts) = drafts.filter(|drafts| !(1..=64).contains(drafts)) {
        return Err(refused(format!("drafts is {drafts}; it is 1 to 64")));
    }
    let blocks = problems(path, text, |problem| match problem {
        AnyProblem::Single(_) => None,
        AnyProblem::Block(problem) => Some(problem),
    })?;
    each(
        py,
        blocks,
        threads,
        |problem| evaluate_block(problem, drafts.unwrap_or_else(|| problem.drafts())),
        |found| block_report::page(found).text(WIDTH, false),
    )
}

/// Target calls of a text with these q/p of its tokens, for rounds of so many drafts: the fewest of
/// any lossless rule of one path, and those of token and of block verification.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
fn calls(ratios: Vec<f64>, drafts: usize) -> (f64, f64, f64) {
    let by = |verifier| {
        let replayed = replay(verifier, &ratios, &FixedLength(drafts));
        replayed.map_or(0.0, |found| found.calls)
    };
    let [token, block] = [ChainRule::TOKEN, ChainRule::BLOCK].map(by);
    (fewest_calls(&ratios, drafts), token, block)
}

/// A law of drafts, by its name and q.
#[pyclass(frozen, module = "specgap._native")]
pub(crate) struct DraftLaw {
    law: Arc<dyn DraftScheme>,
}

impl DraftLaw {
    pub(crate) fn of(law: Arc<dyn DraftScheme>) -> Self {
        Self { law }
    }

    fn problem(&self, p: &[f64]) -> Result<Problem, String> {
        let target = Target::new(p).map_err(|error| format!("p: {error}"))?;
        Problem::from_law("rows", target, Arc::clone(&self.law)).map_err(|error| error.to_string())
    }
}

#[pymethods]
impl DraftLaw {
    #[new]
    fn new(scheme: &str, q: Vec<f64>, n: usize) -> PyResult<Self> {
        let name: SchemeName = scheme.parse().map_err(raised)?;
        let MadeOf::OneDraft(make) = name.entry().made_of else {
            return Err(refused(format!(
                "scheme: {name} is not made of one draft distribution"
            )));
        };
        let draft = Draft::new(&q).map_err(|error| refused(format!("q: {error}")))?;
        let vocabulary = q.len();
        let most = if name.draws_distinct_tokens() {
            vocabulary.min(64)
        } else {
            64
        };
        if !name.fits(n) || !(1..=most).contains(&n) {
            return Err(refused(format!(
                "n is {n}; {name} over {vocabulary} tokens has {}",
                name.entry()
                    .only
                    .map_or(format!("1 to {most} drafts"), |only| format!(
                        "{only} drafts"
                    ))
            )));
        }
        Ok(Self {
            law: make(draft, n),
        })
    }

    /// Returns how many tuples have positive probability.
    #[getter]
    fn count(&self) -> f64 {
        self.law.tuple_count()
    }

    /// The most drafts of a draw.
    #[getter]
    fn drafts(&self) -> usize {
        self.law.drafts()
    }

    /// alpha* of this target: value, lower, upper.
    fn alpha(&self, py: Python<'_>, p: Vec<f64>) -> PyResult<Bounds> {
        let found = py.detach(|| on_row(&self.problem(&p)?).map_err(|error| error.to_string()));
        Ok(bounds(&found.map_err(refused)?.rate))
    }

    /// Returns what a rule of the table accepts of this target: value, lower, upper.
    fn acceptance(&self, py: Python<'_>, name: &str, p: Vec<f64>) -> PyResult<Bounds> {
        let name: VerifierName = name.parse().map_err(raised)?;
        let found = py.detach(|| {
            let rate = rate_of_rows(name, &self.problem(&p)?, &RrsWoSettings::default());
            rate.map_err(|error| error.to_string())
        });
        Ok(bounds(&found.map_err(refused)?))
    }

    /// All tuples of positive probability, in order, and their probabilities. Where fewer than n
    /// are drafted, -1 stands behind them.
    fn tuples<'py>(&self, py: Python<'py>) -> PyResult<Tuples<'py>> {
        let n = self.law.drafts();
        let (mut tuples, mut probabilities) = (Vec::new(), Vec::new());
        self.law.for_each_tuple(&mut |tuple, probability| {
            tuples.extend(tuple.iter().map(|&token| i64::from(token)));
            tuples.resize(tuples.len() + n - tuple.len().min(n), -1);
            probabilities.push(probability);
        });
        let tuples = tuples.to_pyarray(py).reshape([probabilities.len(), n])?;
        Ok((tuples, probabilities.to_pyarray(py)))
    }
}

/// alpha* of one pair under any law of one draft distribution: value, lower, upper.
#[pyfunction]
fn optimum(py: Python<'_>, p: Vec<f64>, q: Vec<f64>, n: usize, scheme: &str) -> PyResult<Bounds> {
    let law = DraftLaw::new(scheme, q, n)?;
    let problem = law.problem(&p).map_err(refused)?;
    let found = py.detach(|| best(&problem)).map_err(raised)?;
    Ok(bounds(&found.rate))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DraftLaw>()?;
    module.add_function(wrap_pyfunction!(solve, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(block, module)?)?;
    module.add_function(wrap_pyfunction!(calls, module)?)?;
    module.add_function(wrap_pyfunction!(optimum, module)?)
}
