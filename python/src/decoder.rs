//! A round of a decoder: drafts of nodes, and a tree verified, on rows where they lie.

use crate::errors::{Place, refused, refused_at};
use numpy::ndarray::Array2;
use numpy::{
    PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods, ToPyArray,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use specgap::decoder::{DecoderError, Entry, Law, Rule, Tree, draft, verify};
use specgap::plan::{Children, OfferedRows, Straddle};
use specgap::rounds::{self, TextToken};
use specgap::rule::RuleName;
use specgap::scheme::SchemeName;
use specgap::tree::{DraftTree, Price, heaviest};

fn law_named(name: &str) -> PyResult<Law> {
    Ok(match name {
        name if name == SchemeName::WITH_REPLACEMENT.as_str() => Law::WithReplacement,
        name if name == SchemeName::STRATIFIED.as_str() => Law::Stratified,
        name if name == SchemeName::STRATIFIED_INDEPENDENT.as_str() => Law::StratifiedIndependent,
        name if name == SchemeName::TOP.as_str() => Law::Certain,
        _ => {
            return Err(refused(format!(
                "law: {name} is none that trees are drafted by; say with-replacement, stratified, \
                 stratified-independent or top"
            )));
        }
    })
}

fn raised(error: &DecoderError) -> PyErr {
    let place = match error {
        DecoderError::Row(name, row, _) => Place {
            tensor: Some((*name).to_owned()),
            row: Some(*row),
            column: None,
        },
        _ => Place::default(),
    };
    refused_at(error.to_string(), place)
}

/// Rows that lie one behind the other.
enum Rows<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
}

fn rows<'py>(array: &Bound<'py, PyAny>, name: &str) -> PyResult<Rows<'py>> {
    let held = || refused(format!("{name}: is being written to by another call"));
    let rows = if let Ok(array) = array.cast::<PyArray2<f32>>() {
        Rows::F32(array.try_readonly().map_err(|_| held())?)
    } else if let Ok(array) = array.cast::<PyArray2<f64>>() {
        Rows::F64(array.try_readonly().map_err(|_| held())?)
    } else {
        return Err(PyTypeError::new_err(format!(
            "{name}: must be a matrix of float32 or float64"
        )));
    };
    Ok(rows)
}

fn slice<'a, T: numpy::Element>(
    array: &'a PyReadonlyArray2<'_, T>,
    name: &str,
) -> PyResult<&'a [T]> {
    let text = || {
        refused(format!(
            "{name}: rows are apart in memory; give numpy.ascontiguousarray of it"
        ))
    };
    array.as_slice().map_err(|_| text())
}

fn all_drafts<T: Entry>(
    rows: &[T],
    shape: (usize, usize),
    law: Law,
    n: usize,
    coins: &[f64],
) -> Result<Vec<i64>, DecoderError> {
    let mut drafts = vec![-1; shape.0 * n];
    for (row, drafts) in drafts.chunks_mut(n.max(1)).enumerate() {
        let entries = &rows[row * shape.1..][..shape.1];
        let found = draft(entries, row, law, n, &coins[row * n..][..n])?;
        for (into, token) in drafts.iter_mut().zip(found) {
            *into = i64::from(token);
        }
    }
    Ok(drafts)
}

/// Drafts of each row, -1 behind them where a row has fewer tokens than `n`.
#[pyfunction]
fn draft_rows<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    n: usize,
    law: &str,
    coins: PyReadonlyArray2<'py, f64>,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let rows = self::rows(rows, "rows")?;
    let law = law_named(law)?;
    let shape = match &rows {
        Rows::F32(array) => (array.shape()[0], array.shape()[1]),
        Rows::F64(array) => (array.shape()[0], array.shape()[1]),
    };
    if coins.shape() != [shape.0, n] {
        return Err(refused(format!(
            "coins: give {n} for each of {} rows",
            shape.0
        )));
    }
    let coins = slice(&coins, "coins")?;
    let drafts = match &rows {
        Rows::F32(array) => {
            let rows = slice(array, "rows")?;
            py.detach(|| all_drafts(rows, shape, law, n, coins))
        }
        Rows::F64(array) => {
            let rows = slice(array, "rows")?;
            py.detach(|| all_drafts(rows, shape, law, n, coins))
        }
    };
    let drafts = drafts.map_err(|error| raised(&error))?;
    let drafts = Array2::from_shape_vec((shape.0, n), drafts);
    Ok(drafts
        .map_err(|error| refused(error.to_string()))?
        .to_pyarray(py))
}

/// Trees at one price for all nodes, as a drafter reads `best-tree.price.json`.
#[pyclass(frozen, module = "specgap._native")]
struct Priced(Price);

#[pymethods]
impl Priced {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let price = Price::from_json(text).map_err(|error| refused(format!("tree: {error}")))?;
        Ok(Self(price))
    }

    /// The law that its trees are of.
    #[getter]
    fn law(&self) -> &str {
        &self.0.law
    }

    /// The most levels of a tree, and children of a node.
    #[getter]
    fn limits(&self) -> (usize, usize) {
        (self.0.levels, self.0.children)
    }

    /// Drafts of nodes of a depth by the rows behind them, at a price, and how likely each is accepted,
    /// as its node is with its own of `chances`.
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
    fn draft_rows(
        &self,
        rows: PyReadonlyArray2<'_, f32>,
        law: &str,
        price: f64,
        depth: usize,
        chances: Vec<f64>,
        coins: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Vec<(Vec<u32>, Vec<f64>)>> {
        let (law, most, shape) = (law_named(law)?, self.0.children, rows.shape());
        if chances.len() != shape[0] || coins.shape() != [shape[0], most] {
            return Err(refused(format!(
                "chances and coins: give one, and {most}, for each of {} rows",
                shape[0]
            )));
        }
        let (rows, coins) = (slice(&rows, "rows")?, slice(&coins, "coins")?);
        let each = rows.chunks_exact(shape[1].max(1)).zip(chances).enumerate();
        let drafted = each.map(|(at, (row, chance))| {
            let q: Vec<f64> = row.iter().map(|&mass| mass.into()).collect();
            let ids = heaviest(&q, self.0.heaviest);
            let masses: Vec<f64> = ids.iter().map(|&id| q[id]).collect();
            let count = self.0.children_at(price, &masses, depth, chance);
            let tokens = draft(row, at, law, count, &coins[at * most..][..count])?;
            let accepted = |&token: &u32| {
                let place = ids.iter().position(|&id| id == token as usize);
                chance * self.0.chance(&masses, place.unwrap_or(ids.len()), count)
            };
            let chances = tokens.iter().map(accepted).collect();
            Ok((tokens, chances))
        });
        drafted
            .collect::<Result<_, DecoderError>>()
            .map_err(|error| raised(&error))
    }
}

/// P(a round of a tree of strata keeps i tokens of a text, or more), given the text, i = 1, 2, .., as its
/// rule goes through it from its leaves: of p and q along the text, a row a level.
#[pyfunction]
fn kept_from_leaves(
    py: Python<'_>,
    rule: &str,
    widths: Vec<usize>,
    p: PyReadonlyArray2<'_, f64>,
    q: PyReadonlyArray2<'_, f64>,
    tokens: Vec<u32>,
) -> PyResult<Vec<f64>> {
    let named: RuleName = rule.parse().map_err(crate::errors::raised)?;
    let levels = named.entry().from_leaves;
    let levels =
        levels.ok_or_else(|| refused(format!("{rule}: goes through no tree from its leaves")))?;
    let words: Vec<String> = widths.iter().map(ToString::to_string).collect();
    let tree = DraftTree::named(&format!("prefix-{}", words.join("-")));
    let shape = tree.map_err(crate::errors::raised)?.shape();
    let vocab = p.shape()[1];
    let [p, q] = [slice(&p, "p")?, slice(&q, "q")?];
    py.detach(|| {
        let rows = p.chunks_exact(vocab).zip(q.chunks_exact(vocab));
        let here = rows
            .zip(&widths)
            .zip(&tokens)
            .map(|(((p, q), &count), &token)| {
                let children = Children::Strata(Straddle::Once);
                let at = [p, q].map(|row| row.get(token as usize).copied().unwrap_or(0.0));
                (
                    [(count, OfferedRows::of_rows((p, q), children, count))],
                    token,
                    at,
                )
            });
        // Behind a token that p lacks there is no text.
        let here: Vec<_> = here.take_while(|(_, _, [p, _])| *p > 0.0).collect();
        let text: Vec<TextToken<'_>> = here
            .iter()
            .map(|(rows, token, at)| TextToken {
                rows,
                token: *token,
                at: *at,
            })
            .collect();
        let mut reach = vec![0.0; shape.parent.len()];
        let mut kept = rounds::kept_from_leaves(&shape, levels, &text, &mut reach);
        kept.resize(shape.levels() + 1, 0.0);
        kept.remove(0);
        Ok(kept)
    })
}

/// The nodes that are kept of a tree, and the token behind them.
#[pyfunction]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
fn verify_tree<'py>(
    py: Python<'py>,
    p: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
    tokens: Vec<u32>,
    parents: Vec<usize>,
    law: &str,
    traversal: bool,
    levels: Vec<Vec<f64>>,
    coins: PyReadonlyArray1<'py, f64>,
) -> PyResult<(Vec<usize>, u32)> {
    let levels: Vec<&[f64]> = levels.iter().map(Vec::as_slice).collect();
    let rule = Rule {
        law: law_named(law)?,
        traversal,
        levels: &levels,
    };
    let tree = Tree {
        tokens: &tokens,
        parents: &parents,
    };
    let coins = coins.as_slice()?;
    let kept = match (rows(p, "p")?, rows(q, "q")?) {
        (Rows::F32(p), Rows::F32(q)) => {
            let (size, p, q) = (p.shape()[1], slice(&p, "p")?, slice(&q, "q")?);
            py.detach(|| verify(p, q, size, tree, rule, coins))
        }
        (Rows::F64(p), Rows::F64(q)) => {
            let (size, p, q) = (p.shape()[1], slice(&p, "p")?, slice(&q, "q")?);
            py.detach(|| verify(p, q, size, tree, rule, coins))
        }
        _ => return Err(PyTypeError::new_err("p and q: must be of one type")),
    };
    let kept = kept.map_err(|error| raised(&error))?;
    Ok((kept.path, kept.token))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Priced>()?;
    module.add_function(wrap_pyfunction!(draft_rows, module)?)?;
    module.add_function(wrap_pyfunction!(kept_from_leaves, module)?)?;
    module.add_function(wrap_pyfunction!(verify_tree, module)?)
}
