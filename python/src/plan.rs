//! The optimal verifier of one pair of rows, to be run in a decoder.

use crate::arrays::Matrix;
use crate::errors::{raised, refused};
use crate::laws::{Given, RowLaw};
use crate::rates::{BadRow, Bounds, Typed, bounds, fill, softmax};
use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::plan::LevelPlan;
use specgap::problem::Problem;
use specgap::verifier::{Optimal, Verifier};

/// An optimal plan: by one clock a token, or set by set.
#[pyclass(frozen, module = "specgap._native")]
struct Plan {
    plan: Solved,
}

enum Solved {
    Level(Box<LevelPlan>),
    Sets(Box<Optimal>, Box<Problem>),
}

/// Tokens, and which draft each was.
type Emitted<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);

fn row(matrix: &Matrix<'_>, softmax: Option<Softmax>, name: &str) -> PyResult<Vec<f64>> {
    let entries = matrix.entries();
    if entries.shape().0 != 1 {
        return Err(refused(format!(
            "{name}: has {} rows; a plan is of one",
            entries.shape().0
        )));
    }
    if softmax.is_some() {
        entries.refuse_other_forms(name)?;
    }
    let (mut logits, mut row) = (Vec::new(), Vec::new());
    fill(name, entries, 0, softmax, &mut logits, &mut row).map_err(BadRow::raised)?;
    Ok(row)
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (p, q, n, scheme, logits, temperature))]
    fn new(
        py: Python<'_>,
        p: Typed<'_>,
        q: Typed<'_>,
        n: usize,
        scheme: &str,
        logits: bool,
        temperature: f64,
    ) -> PyResult<Self> {
        let softmax = softmax(logits, temperature);
        let p = row(&Matrix::new(&p.0, &p.1, "p")?, softmax, "p")?;
        let q = row(&Matrix::new(&q.0, &q.1, "q")?, softmax, "q")?;
        let of = |name: &str, error: &dyn std::error::Error| refused(format!("{name}: {error}"));
        let target = Target::new(&p).map_err(|error| of("p", &error))?;
        let draft = Draft::new(&q).map_err(|error| of("q", &error))?;
        if scheme != "with-replacement" {
            return Err(refused(format!(
                "scheme: there are plans for with-replacement, not for {scheme}"
            )));
        }
        let plan = py.detach(|| LevelPlan::iid(&target, &draft, n));
        let plan = Solved::Level(Box::new(plan.map_err(raised)?));
        Ok(Self { plan })
    }

    /// The plan for drafts of a law of one's own, by maximum flow.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)]
    fn of_law(
        py: Python<'_>,
        law: &RowLaw,
        p: Typed<'_>,
        qs: Vec<Typed<'_>>,
        logits: bool,
        temperature: f64,
    ) -> PyResult<Self> {
        let problem = law.single(&Given::new(&p, &qs, logits, temperature)?)?;
        let plan = py.detach(|| Optimal::new(&problem));
        let plan = plan.map_err(raised)?;
        let plan = Solved::Sets(Box::new(plan), Box::new(problem));
        Ok(Self { plan })
    }

    /// Runs the plan once for each tuple of drafts: tokens, and which draft it was, or -1.
    fn emit<'py>(
        &self,
        py: Python<'py>,
        drafts: PyReadonlyArray2<'py, i64>,
        seed: u64,
    ) -> PyResult<Emitted<'py>> {
        let drafts = drafts.as_array();
        let tuples = self.tuples(drafts)?;
        let plan = &self.plan;
        let (tokens, accepted): (Vec<i64>, Vec<i64>) = py.detach(|| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let verdicts = tuples.iter().map(|tuple| match plan {
                Solved::Level(plan) => plan.emit(tuple, &mut rng),
                Solved::Sets(rule, _) => rule.sample(tuple, &mut rng),
            });
            verdicts
                .map(|one| {
                    let slot = one.accepted.map_or(-1, |slot| slot as i64);
                    (i64::from(one.token), slot)
                })
                .unzip()
        });
        Ok((tokens.to_pyarray(py), accepted.to_pyarray(py)))
    }

    /// The probability that each draft of the tuples is emitted.
    fn accepted<'py>(
        &self,
        py: Python<'py>,
        drafts: PyReadonlyArray2<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let tuples = self.tuples(drafts.as_array())?;
        let flat: Vec<f64> = tuples
            .iter()
            .flat_map(|tuple| match &self.plan {
                Solved::Level(plan) => plan.accepted(tuple),
                Solved::Sets(rule, _) => rule.conditional(tuple).accepted,
            })
            .collect();
        Ok(flat.to_pyarray(py))
    }

    #[getter]
    fn residual<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        match &self.plan {
            Solved::Level(plan) => plan.residual().to_pyarray(py),
            Solved::Sets(rule, _) => rule.conditional(&[]).residual.to_pyarray(py),
        }
    }

    #[getter]
    fn optimum(&self) -> Bounds {
        match &self.plan {
            Solved::Level(plan) => bounds(plan.optimal_acceptance_rate()),
            Solved::Sets(rule, _) => bounds(&rule.acceptance().membership),
        }
    }

    #[getter]
    fn acceptance(&self) -> Bounds {
        match &self.plan {
            Solved::Level(plan) => bounds(plan.acceptance_rate()),
            Solved::Sets(rule, _) => bounds(&rule.acceptance().membership),
        }
    }

    #[getter]
    fn drafts(&self) -> usize {
        match &self.plan {
            Solved::Level(plan) => plan.drafts(),
            Solved::Sets(_, problem) => problem.drafts(),
        }
    }

    #[getter]
    fn vocabulary(&self) -> usize {
        match &self.plan {
            Solved::Level(plan) => plan.vocab(),
            Solved::Sets(_, problem) => problem.vocab(),
        }
    }
}

impl Plan {
    fn tuples(&self, drafts: ArrayView2<'_, i64>) -> PyResult<Vec<Vec<u32>>> {
        let (n, vocabulary) = (self.drafts(), self.vocabulary());
        // A law of one's own may draft fewer at times.
        let is_fewer = matches!(self.plan, Solved::Sets(..)) && drafts.ncols() < n;
        if drafts.ncols() != n && !is_fewer {
            return Err(refused(format!(
                "drafts: has {} tokens a tuple; the plan is for {n}",
                drafts.ncols()
            )));
        }
        let token = |&id: &i64| {
            let token = u32::try_from(id).ok();
            token
                .filter(|&id| (id as usize) < vocabulary)
                .ok_or_else(|| {
                    refused(format!(
                        "drafts: token {id} is outside the vocabulary of {vocabulary}"
                    ))
                })
        };
        let rows = drafts.rows().into_iter();
        rows.map(|row| row.iter().map(token).collect()).collect()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Plan>()
}
