//! Rates of rows: alpha* and what verifiers accept.

mod certificates;

use crate::arrays::{Entries, Matrix};
use crate::errors::{Place, bug, raised, refused, refused_at};
use crate::watch::{self, watched};
use numpy::PyArray1;
use pyo3::prelude::*;
use rayon::prelude::*;
use specgap::cli::HostError;
use specgap::distribution::{DistributionError, Draft, Softmax, Target};
use specgap::known::Known;
use specgap::optimum::row_question;
use specgap::problem::{Problem, ProblemError};
use specgap::row::{Row, Rows, Workspace};
use specgap::scheme::{MadeOf, SchemeName};
use specgap::verifier::{RrsWoSettings, VerifierName, any_of, rate_of_rows};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Pairs of rows, and how they become distributions.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    target: Entries<'a>,
    draft: Entries<'a>,
    /// Of logits; `None` for probabilities.
    softmax: Option<Softmax>,
}

/// Room for one pair.
#[derive(Default)]
struct Room {
    logits: Vec<f64>,
    target: Vec<f64>,
    draft: Vec<f64>,
    workspace: Workspace,
}

/// A row that cannot be used.
#[derive(Debug)]
pub(crate) struct BadRow {
    message: String,
    place: Place,
}

impl BadRow {
    /// A row of which nothing more is known.
    pub(crate) fn of(number: usize, message: &str) -> Self {
        Self {
            message: format!("row {number}: {message}"),
            place: Place {
                row: Some(number),
                ..Place::default()
            },
        }
    }

    pub(crate) fn raised(self) -> PyErr {
        refused_at(self.message, self.place)
    }
}

/// Entries of a call that is answered where it is made: fewer than starting a thread costs.
const SMALL: usize = 1 << 10;

/// A row as a distribution: of logits if there is a softmax.
pub(crate) fn fill(
    name: &str,
    entries: Entries<'_>,
    number: usize,
    softmax: Option<Softmax>,
    logits: &mut Vec<f64>,
    row: &mut Vec<f64>,
) -> Result<(), BadRow> {
    let bad = |message: String, column: Option<usize>| BadRow {
        message: format!("{name}: row {number}: {message}"),
        place: Place {
            tensor: Some(name.to_owned()),
            row: Some(number),
            column,
        },
    };
    let Some(softmax) = softmax else {
        entries.row(number, row);
        let entry = row.iter().position(|x| !(x.is_finite() && *x >= 0.0));
        if let Some(entry) = entry {
            let message = format!(
                "entry {entry} is {}; probabilities must be >= 0; if these are logits, say \
                 logits=True",
                row[entry]
            );
            return Err(bad(message, Some(entry)));
        }
        let (sum, tolerance) = (row.iter().sum::<f64>(), entries.sum_tolerance());
        if (sum - 1.0).abs() > tolerance {
            let message = format!(
                "sums to {sum}, and probabilities of this type to 1 within {tolerance:e}; if \
                 these are logits, say logits=True"
            );
            return Err(bad(message, None));
        }
        row.iter_mut().for_each(|x| *x /= sum);
        return Ok(());
    };
    entries.row(number, logits);
    softmax.fill(logits, row).map_err(|error| {
        let column = match error {
            DistributionError::Logit(index, _) => Some(index),
            _ => None,
        };
        bad(error.to_string(), column)
    })
}

impl<'a> Pairs<'a> {
    fn of((target, draft): &'a (Matrix<'_>, Matrix<'_>), softmax: Option<Softmax>) -> Self {
        Self {
            target: target.entries(),
            draft: draft.entries(),
            softmax,
        }
    }

    /// Answers a question of one pair.
    fn ask<T>(
        self,
        number: usize,
        most: usize,
        room: &mut Room,
        question: impl FnOnce(&mut Row<'_>) -> Result<T, String>,
    ) -> Result<T, BadRow> {
        let Room {
            logits,
            target,
            draft,
            workspace,
        } = room;
        fill("p", self.target, number, self.softmax, logits, target)?;
        fill("q", self.draft, number, self.softmax, logits, draft)?;
        let rows = Rows { target, draft };
        let mut row = workspace
            .load(rows, most)
            .map_err(|error| BadRow::of(number, &error.to_string()))?;
        question(&mut row).map_err(|message| BadRow::of(number, &message))
    }

    /// Answers of all pairs, each with a place of its own; of those that cannot be used, the
    /// first is raised.
    fn each<T: Send, P: Send>(
        self,
        py: Python<'_>,
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        places: Vec<P>,
        answer: impl Fn(&mut Room, usize, P) -> Result<T, BadRow> + Sync,
    ) -> PyResult<Vec<T>> {
        let rows = self.rows();
        let found: Vec<Result<T, BadRow>> = if rows * self.target.shape().1 <= SMALL {
            let all = places.into_iter().enumerate();
            let found = py.detach(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    let mut room = Room::default();
                    all.map(|(number, place)| answer(&mut room, number, place))
                        .collect()
                }))
            });
            if let Some(progress) = progress {
                progress.call1((rows, rows))?;
            }
            found.map_err(|_| bug(watch::BUG))?
        } else {
            watched(py, threads, progress, |host| {
                host.begin(rows);
                host.watch(|| {
                    let all = places.into_par_iter().enumerate();
                    let all = all.map_init(Room::default, |room, (number, place)| {
                        // Before it too: what was cut in pieces goes on with each.
                        host.step(0);
                        let answered = answer(room, number, place);
                        host.step(1);
                        answered
                    });
                    Ok::<_, HostError>(all.collect())
                })
            })?
        };
        let found: Result<Vec<T>, BadRow> = found.into_iter().collect();
        found.map_err(BadRow::raised)
    }

    fn rows(self) -> usize {
        self.target.shape().0
    }
}

/// Numbers of rows: value, lower, upper, and in a word how well each is known.
pub(crate) type Answered<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Vec<&'static str>,
);

/// A number as it is answered: value, lower, upper.
pub(crate) type Bounds = (f64, f64, f64);

pub(crate) fn bounds(known: &Known) -> Bounds {
    (known.value(), known.lower(), known.upper())
}

/// Numbers as they are answered.
pub(crate) fn columns<'py>(py: Python<'py>, known: &[&Known]) -> Answered<'py> {
    let column = |of: fn(&Known) -> f64| PyArray1::from_iter(py, known.iter().map(|one| of(one)));
    (
        column(Known::value),
        column(Known::lower),
        column(Known::upper),
        known.iter().map(|one| one.kind().as_str()).collect(),
    )
}

fn answered<'py>(
    py: Python<'py>,
    pairs: Pairs<'_>,
    most: usize,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    question: impl Fn(&mut Row<'_>, usize) -> Result<Known, String> + Sync,
) -> PyResult<Answered<'py>> {
    let places = vec![(); pairs.rows()];
    let known = pairs.each(py, threads, progress, places, |room, number, ()| {
        pairs.ask(number, most, room, |row| question(row, number))
    })?;
    Ok(columns(py, &known.iter().collect::<Vec<_>>()))
}

pub(crate) fn softmax(logits: bool, temperature: f64) -> Option<Softmax> {
    logits.then_some(Softmax { temperature })
}

/// A matrix and the name of its type.
pub(crate) type Typed<'py> = (Bound<'py, PyAny>, String);

fn matrices<'py>(
    p: &Typed<'py>,
    q: &Typed<'py>,
    logits: bool,
) -> PyResult<(Matrix<'py>, Matrix<'py>)> {
    let pair = (Matrix::new(&p.0, &p.1, "p")?, Matrix::new(&q.0, &q.1, "q")?);
    let (of_p, of_q) = (pair.0.entries().shape(), pair.1.entries().shape());
    if of_p != of_q {
        return Err(refused(format!(
            "p has shape {of_p:?} and q {of_q:?}; both are rows over one vocabulary, in pairs"
        )));
    }
    if logits {
        pair.0.entries().refuse_other_forms("p")?;
        pair.1.entries().refuse_other_forms("q")?;
    }
    Ok(pair)
}

/// The law of that name. What is none is told those that rows are asked about.
pub(crate) fn scheme_named(name: &str) -> PyResult<SchemeName> {
    name.parse().map_err(|_| {
        let laws = SchemeName::ALL.into_iter();
        let laws = laws.filter(|one| one.entry().on_row.is_some());
        let laws: Vec<&str> = laws.map(SchemeName::as_str).collect();
        let meant = SchemeName::nearest(name);
        let meant = meant.map_or_else(String::new, |one| format!("; did you mean {one}?"));
        refused(format!(
            "scheme: \"{name}\" is not a draft scheme; choose one of {}{meant}",
            laws.join(", ")
        ))
    })
}

/// alpha* of pairs of rows.
#[pyfunction]
#[pyo3(signature = (p, q, n, scheme, logits, temperature, threads, progress))]
#[allow(clippy::too_many_arguments)]
fn alpha<'py>(
    py: Python<'py>,
    p: Typed<'py>,
    q: Typed<'py>,
    n: usize,
    scheme: &str,
    logits: bool,
    temperature: f64,
    threads: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Answered<'py>> {
    let both = matrices(&p, &q, logits)?;
    let pairs = Pairs::of(&both, softmax(logits, temperature));
    let optimum = question(fitting(scheme_named(scheme)?, n, pairs)?, n)?;
    answered(py, pairs, n, threads, progress.as_ref(), |row, _| {
        optimum(row, n).map_err(|error| error.to_string())
    })
}

/// The law, if rows have as many tokens as it draws, as in a problem.
fn fitting(scheme: SchemeName, n: usize, pairs: Pairs<'_>) -> PyResult<SchemeName> {
    let (_, vocabulary) = pairs.target.shape();
    match n > vocabulary && scheme.draws_distinct_tokens() {
        true => Err(raised(ProblemError::MoreDraftsThanTokens(
            n, vocabulary, scheme,
        ))),
        false => Ok(scheme),
    }
}

fn question(scheme: SchemeName, n: usize) -> PyResult<specgap::row::Answer> {
    let answers = row_question(scheme).filter(|_| scheme.fits(n));
    answers.map(|one| one.full).ok_or_else(|| {
        let fitting = SchemeName::ALL.into_iter();
        let fitting = fitting.filter(|one| one.entry().on_row.is_some() && one.fits(n));
        let names: Vec<&str> = fitting.map(SchemeName::as_str).collect();
        refused(format!(
            "scheme: {scheme} has no optimum of rows for {n} drafts; take one of {}, or a problem \
             and solve()",
            names.join(", ")
        ))
    })
}

/// Returns what a verifier accepts of pairs of rows.
#[pyfunction]
#[pyo3(signature = (name, p, q, n, scheme, logits, temperature, seed, threads, progress))]
#[allow(clippy::too_many_arguments)]
fn acceptance<'py>(
    py: Python<'py>,
    name: &str,
    p: Typed<'py>,
    q: Typed<'py>,
    n: usize,
    scheme: Option<&str>,
    logits: bool,
    temperature: f64,
    seed: u64,
    threads: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Answered<'py>, &'static str)> {
    let both = matrices(&p, &q, logits)?;
    let pairs = Pairs::of(&both, softmax(logits, temperature));
    let verifier: VerifierName = name.parse().map_err(raised)?;
    let named = scheme.map(scheme_named).transpose()?;
    let scheme = drafts_for(verifier, named, n)?;
    let rule = verifier.on_row(scheme);
    let answered = answered(py, pairs, n, threads, progress.as_ref(), |row, number| {
        let seed = seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(rule) = rule else {
            return by_problem(verifier, row, (scheme, n), seed);
        };
        let answer = rule
            .answer(row, n, seed)
            .map_err(|error| error.to_string())?;
        Ok(answer.rate)
    })?;
    Ok((answered, scheme.as_str()))
}

/// The law of the drafts that a rule is measured with: the one that is named, or the first that it
/// has a rate for.
fn drafts_for(verifier: VerifierName, named: Option<SchemeName>, n: usize) -> PyResult<SchemeName> {
    let fits = |scheme: &SchemeName| scheme.fits(n) && verifier.is_lossless(*scheme, n);
    let first = || {
        let mut all = SchemeName::ALL.into_iter().filter(fits);
        all.find(|&scheme| verifier.on_row(scheme).is_some_and(|row| !row.if_named))
    };
    let found = match named {
        Some(scheme) => Some(scheme).filter(fits),
        None => first(),
    };
    found.ok_or_else(|| {
        let given = named.map_or("drafts".to_owned(), |scheme| format!("{scheme} drafts"));
        let others = VerifierName::ALL.into_iter();
        let others = others.filter(|one| named.is_some_and(|law| one.is_lossless(law, n)));
        let others: Vec<&str> = others.map(VerifierName::as_str).collect();
        let cure = match others.is_empty() {
            true => String::new(),
            false => format!("; of {given} take {}", any_of(&others)),
        };
        refused(format!(
            "{verifier} is for {}, and not for {n} {given}{cure}",
            verifier.draft_schemes()
        ))
    })
}

/// Returns what a rule accepts where no rate of rows is computed: of the pair as a problem.
fn by_problem(
    verifier: VerifierName,
    row: &Row<'_>,
    (scheme, n): (SchemeName, usize),
    seed: u64,
) -> Result<Known, String> {
    let MadeOf::OneDraft(make) = scheme.entry().made_of else {
        return Err(format!("{scheme} is not made of one draft distribution"));
    };
    let (p, q) = (Target::new(row.rows().target), Draft::new(row.rows().draft));
    let (p, q) = (
        p.map_err(|e| format!("p: {e}"))?,
        q.map_err(|e| format!("q: {e}"))?,
    );
    let problem = Problem::from_law("rows", p, make(q, n)).map_err(|error| error.to_string())?;
    let settings = RrsWoSettings {
        seed,
        ..RrsWoSettings::default()
    };
    rate_of_rows(verifier, &problem, &settings).map_err(|error| error.to_string())
}

/// The law of a rule's drafts: this one, if it is lossless for n of them, or else its own.
#[pyfunction]
#[pyo3(signature = (name, scheme, n))]
fn law_for(name: &str, scheme: Option<&str>, n: usize) -> PyResult<&'static str> {
    let verifier: VerifierName = name.parse().map_err(raised)?;
    let asked: Option<SchemeName> = scheme.map(str::parse).transpose().map_err(raised)?;
    let asked = asked.filter(|scheme| verifier.is_lossless(*scheme, n));
    let found = asked.map_or_else(|| drafts_for(verifier, None, n), Ok)?;
    Ok(found.as_str())
}

/// The name of a law of rows, of that or another of its names.
#[pyfunction]
fn law_named(name: &str) -> PyResult<&'static str> {
    Ok(scheme_named(name)?.as_str())
}

/// Names of the draft laws, each with its words and whether rows are answered.
#[pyfunction]
fn schemes() -> Vec<(&'static str, &'static str, bool)> {
    let all = SchemeName::ALL.into_iter();
    all.map(|one| (one.as_str(), one.law(), one.entry().on_row.is_some()))
        .collect()
}

/// Names of the verifiers, each with its words and the drafts it is lossless for.
#[pyfunction]
fn verifiers() -> Vec<(&'static str, &'static str, String)> {
    let all = VerifierName::ALL.into_iter();
    all.map(|one| (one.as_str(), one.words(), one.draft_schemes()))
        .collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(alpha, module)?)?;
    certificates::register(module)?;
    module.add_function(wrap_pyfunction!(acceptance, module)?)?;
    module.add_function(wrap_pyfunction!(law_for, module)?)?;
    module.add_function(wrap_pyfunction!(law_named, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(verifiers, module)?)
}
