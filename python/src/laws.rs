//! Draft laws of one's own, on pairs of rows.

use crate::arrays::{Entries, Matrix};
use crate::errors::{raised, refused};
use crate::problems::DraftLaw;
use crate::rates::{Answered, BadRow, Typed, columns, fill, softmax};
use crate::watch::watched;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;
use specgap::cli::HostError;
use specgap::distribution::{Softmax, Target};
use specgap::known::Known;
use specgap::optimum::on_row;
use specgap::problem::{self, Problem};
use specgap::verifier::{RrsWoSettings, VerifierName, rate_of_rows};

/// What the drafts are drawn by at every row.
#[pyclass(frozen, module = "specgap._native")]
pub(crate) struct RowLaw {
    law: problem::RowLaw,
}

/// p(H), Q(H), and H in bytes of eight tokens, lowest bit first: of each row.
type Sets<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<u8>>,
);

/// Rows of p, and of q those of the law: as many as p, or one for all.
pub(crate) struct Given<'py> {
    target: Matrix<'py>,
    drafts: Vec<Matrix<'py>>,
    softmax: Option<Softmax>,
}

impl<'py> Given<'py> {
    pub(crate) fn new(
        p: &Typed<'py>,
        qs: &[Typed<'py>],
        logits: bool,
        temperature: f64,
    ) -> PyResult<Self> {
        let name = |index: usize| draft_name(index, qs.len());
        let target = Matrix::new(&p.0, &p.1, "p")?;
        let drafts = (qs.iter().enumerate())
            .map(|(index, q)| Matrix::new(&q.0, &q.1, &name(index)))
            .collect::<PyResult<Vec<_>>>()?;
        let (rows, vocabulary) = target.entries().shape();
        for (index, draft) in drafts.iter().enumerate() {
            let shape = draft.entries().shape();
            if shape.1 != vocabulary || (shape.0 != rows && shape.0 != 1) {
                return Err(refused(format!(
                    "p has shape {:?} and {} {shape:?}; a draft has a row for each of p's, or one \
                     for all, over one vocabulary",
                    (rows, vocabulary),
                    name(index)
                )));
            }
        }
        if logits {
            target.entries().refuse_other_forms("p")?;
            for (index, draft) in drafts.iter().enumerate() {
                draft.entries().refuse_other_forms(&name(index))?;
            }
        }
        Ok(Self {
            target,
            drafts,
            softmax: softmax(logits, temperature),
        })
    }
}

fn draft_name(index: usize, of: usize) -> String {
    match of {
        1 => "q".to_owned(),
        _ => format!("q[{index}]"),
    }
}

/// The same without the interpreter.
struct Views<'a> {
    target: Entries<'a>,
    drafts: Vec<Entries<'a>>,
    softmax: Option<Softmax>,
}

impl Given<'_> {
    fn views(&self) -> Views<'_> {
        Views {
            target: self.target.entries(),
            drafts: self.drafts.iter().map(Matrix::entries).collect(),
            softmax: self.softmax,
        }
    }
}

impl RowLaw {
    /// The law without the interpreter.
    pub(crate) fn law(&self) -> &problem::RowLaw {
        &self.law
    }

    /// The problem of one pair, or what is wrong with it.
    fn problem(&self, views: &Views<'_>, number: usize) -> Result<Problem, BadRow> {
        let (mut logits, mut row) = (Vec::new(), Vec::new());
        let softmax = views.softmax;
        fill("p", views.target, number, softmax, &mut logits, &mut row)?;
        let of = |message: String| BadRow::of(number, &message);
        let target = Target::new(&row).map_err(|error| of(format!("p: {error}")))?;
        let mut rows = Vec::with_capacity(views.drafts.len());
        for (index, &entries) in views.drafts.iter().enumerate() {
            let name = draft_name(index, views.drafts.len());
            let at = if entries.shape().0 == 1 { 0 } else { number };
            fill(&name, entries, at, softmax, &mut logits, &mut row)?;
            rows.push(row.clone());
        }
        let law = self.law.on(target.vocab(), &rows);
        let law = law.map_err(|error| of(error.to_string()))?;
        Problem::from_law("rows", target, law).map_err(|error| of(error.to_string()))
    }

    /// The problem of the only pair.
    pub(crate) fn single(&self, given: &Given<'_>) -> PyResult<Problem> {
        let rows = given.target.entries().shape().0;
        if rows != 1 {
            return Err(refused(format!("p: has {rows} rows; a plan is of one")));
        }
        self.problem(&given.views(), 0).map_err(BadRow::raised)
    }

    fn each<T: Send>(
        &self,
        py: Python<'_>,
        given: &Given<'_>,
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        question: impl Fn(&Problem, usize) -> Result<T, String> + Sync,
    ) -> PyResult<Vec<T>> {
        let (law, views) = (self, given.views());
        let rows = views.target.shape().0;
        let found = watched(py, threads, progress, |host| {
            host.begin(rows);
            host.watch(|| {
                let one = |number: usize| {
                    host.step(0);
                    let problem = law.problem(&views, number)?;
                    let found = question(&problem, number);
                    host.step(1);
                    found.map_err(|message| BadRow::of(number, &message))
                };
                let each = (0..rows).into_par_iter();
                Ok::<_, HostError>(each.map(one).collect::<Vec<_>>())
            })
        })?;
        // The first bad row, whichever was met first.
        let found: Result<Vec<T>, BadRow> = found.into_iter().collect();
        found.map_err(BadRow::raised)
    }
}

#[pymethods]
impl RowLaw {
    /// Of the table `[draft]` of a problem file, without q, as JSON.
    #[new]
    fn new(json: &str) -> PyResult<Self> {
        let law = problem::RowLaw::parse_json(json).map_err(raised)?;
        Ok(Self { law })
    }

    /// Returns what it is made as: a law of the table, or composed, product or explicit.
    #[getter]
    fn made(&self) -> &'static str {
        self.law.made().as_str()
    }

    /// alpha* of rows, and the sets that prove its upper bounds.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (p, qs, logits, temperature, threads, progress))]
    fn alpha<'py>(
        &self,
        py: Python<'py>,
        p: Typed<'py>,
        qs: Vec<Typed<'py>>,
        logits: bool,
        temperature: f64,
        threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Answered<'py>, usize, Option<Sets<'py>>)> {
        let given = Given::new(&p, &qs, logits, temperature)?;
        let bytes = given.target.entries().shape().1.div_ceil(8);
        let found = self.each(py, &given, threads, progress.as_ref(), |problem, _| {
            let found = on_row(problem).map_err(|error| error.to_string())?;
            let set = found.subset.map(|set| {
                let mut bits = vec![0u8; bytes];
                for token in &set {
                    bits[token / 8] |= 1 << (token % 8);
                }
                let target = problem.target().probabilities();
                let held: f64 = set.iter().map(|&token| target[token]).sum();
                (held, problem.scheme().inside(&set), bits)
            });
            Ok((found.rate, problem.drafts(), set))
        })?;
        let known: Vec<&Known> = found.iter().map(|(rate, ..)| rate).collect();
        let answered = columns(py, &known);
        let drafts = found.iter().map(|&(_, drafts, _)| drafts).max();
        let sets = found.iter().map(|(.., set)| set.as_ref());
        let Some(sets) = sets.collect::<Option<Vec<_>>>() else {
            return Ok((answered, drafts.unwrap_or(0), None));
        };
        let bits: Vec<u8> = sets.iter().flat_map(|set| set.2.iter().copied()).collect();
        let bits = PyArray1::from_vec(py, bits).reshape([sets.len(), bytes])?;
        let held = PyArray1::from_iter(py, sets.iter().map(|set| set.0));
        let inside = PyArray1::from_iter(py, sets.iter().map(|set| set.1));
        Ok((answered, drafts.unwrap_or(0), Some((held, inside, bits))))
    }

    /// Returns what a rule of the table accepts of rows.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (name, p, qs, logits, temperature, seed, threads, progress))]
    fn acceptance<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        p: Typed<'py>,
        qs: Vec<Typed<'py>>,
        logits: bool,
        temperature: f64,
        seed: u64,
        threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Answered<'py>, usize)> {
        let name: VerifierName = name.parse().map_err(raised)?;
        let given = Given::new(&p, &qs, logits, temperature)?;
        let found = self.each(py, &given, threads, progress.as_ref(), |problem, number| {
            let settings = RrsWoSettings {
                seed: seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                ..RrsWoSettings::default()
            };
            let rate = rate_of_rows(name, problem, &settings);
            Ok((rate.map_err(|error| error.to_string())?, problem.drafts()))
        })?;
        let known: Vec<&Known> = found.iter().map(|(rate, _)| rate).collect();
        let drafts = found.iter().map(|&(_, drafts)| drafts).max();
        Ok((columns(py, &known), drafts.unwrap_or(0)))
    }

    /// The law at one row: of these rows of q.
    #[allow(clippy::needless_pass_by_value)]
    fn at(&self, vocabulary: usize, qs: Vec<PyReadonlyArray1<'_, f64>>) -> PyResult<DraftLaw> {
        let rows: Vec<Vec<f64>> = qs.iter().map(|q| q.as_array().to_vec()).collect();
        let law = self.law.on(vocabulary, &rows);
        Ok(DraftLaw::of(law.map_err(raised)?))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RowLaw>()
}
