//! The sets H with alpha* = 1 + p(H) - Q(H): each as a bit a token, with what its gradient needs.
//!
//! alpha* is a minimum over H of functions that are smooth in p and q, so that its gradient is
//! that of the function at the least H (Danskin): 1 on H for p, and that of -Q(H) for q.

use super::{Answered, Pairs, Typed, columns, fitting, matrices, scheme_named, softmax};
use crate::errors::refused;
use crate::watch::watched;
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use specgap::cli::HostError;
use specgap::known::Known;
use specgap::row::{RatioCut, Row, RowError, Rows, ScannedRate};
use specgap::scheme::SchemeName;
use std::ops::{AddAssign, MulAssign};

/// How a law's alpha* is found, with H.
type Scan = fn(&mut Row<'_>, usize) -> Result<ScannedRate, RowError>;

/// The scan of a law that has one.
fn scan_of(name: SchemeName) -> Option<Scan> {
    if name == SchemeName::WITH_REPLACEMENT {
        Some(|row, n| row.with_replacement(n))
    } else if name == SchemeName::WITHOUT_REPLACEMENT {
        Some(|row, n| row.without_replacement(n))
    } else if name == SchemeName::DISTINCT_CONDITIONED {
        Some(|row, n| row.distinct_conditioned(n))
    } else {
        None
    }
}

/// The least q/p in H, p(H), q(H), Q(H), and H in bytes of eight tokens, lowest bit first: of each
/// row for each number of drafts.
type Certificates<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<u8>>,
);

/// What was found of a row for one number of drafts.
struct Cut {
    rate: Known,
    /// The least q/p, p(H), q(H), Q(H).
    numbers: [f64; 4],
}

/// What was found of all rows.
struct Found {
    cuts: Vec<Cut>,
    sets: Vec<u8>,
}

impl Found {
    fn answered<'py>(&self, py: Python<'py>) -> Answered<'py> {
        let known: Vec<&Known> = self.cuts.iter().map(|cut| &cut.rate).collect();
        columns(py, &known)
    }

    fn shown(self, py: Python<'_>) -> PyResult<Certificates<'_>> {
        let column = |k: usize| {
            let numbers = self.cuts.iter().map(|cut| cut.numbers[k]);
            PyArray1::from_iter(py, numbers)
        };
        let (threshold, target, draft, inside) = (column(0), column(1), column(2), column(3));
        let bytes = self.sets.len() / self.cuts.len().max(1);
        let shape = [self.cuts.len(), bytes];
        let sets = PyArray1::from_vec(py, self.sets).reshape(shape)?;
        Ok((threshold, target, draft, inside, sets))
    }
}

/// A set as a least ratio that its tokens have, and another that those from an id on have.
#[derive(Clone, Copy)]
struct Bounds {
    below: f64,
    from: f64,
    id: usize,
}

impl Bounds {
    fn of(cut: RatioCut) -> Self {
        // No ratio is above infinity, and none is at least NaN.
        let from = if cut.ratio == f64::INFINITY {
            f64::NAN
        } else {
            cut.ratio.next_up()
        };
        Self {
            below: cut.ratio,
            from,
            id: cut.tied_below,
        }
    }

    /// Returns which of eight tokens are in the set, of their ratios and q.
    #[inline]
    fn byte(self, first: usize, ratios: &[f64; 8], draft: &[f64; 8], least: &mut [f64; 8]) -> u8 {
        let mut bounds = [self.from; 8];
        if first + 8 <= self.id {
            bounds = [self.below; 8];
        } else if first < self.id {
            bounds[..self.id - first].fill(self.below);
        }
        let mut byte = 0;
        for place in 0..8 {
            let ratio = ratios[place];
            let is_inside = (draft[place] > 0.0) & (ratio >= bounds[place]);
            byte |= u8::from(is_inside) << place;
            let own = if is_inside { ratio } else { f64::INFINITY };
            least[place] = if own < least[place] {
                own
            } else {
                least[place]
            };
        }
        byte
    }
}

/// Sets in bits, one behind the other, and the least q/p in each: infinite if it is empty or p is
/// 0 on it.
fn write_sets(cuts: &[RatioCut], rows: Rows<'_>, bits: &mut [u8]) -> Vec<f64> {
    let bytes = rows.draft.len().div_ceil(8);
    let bounds: Vec<Bounds> = cuts.iter().map(|&cut| Bounds::of(cut)).collect();
    let mut least = vec![[f64::INFINITY; 8]; cuts.len()];
    let mut write = |eight: usize, target: &[f64; 8], draft: &[f64; 8]| {
        // A zero of either sign is the same p.
        let ratios = std::array::from_fn(|place| draft[place] / (target[place] + 0.0));
        let sets = bits[eight..].iter_mut().step_by(bytes);
        for ((to, bounds), least) in sets.zip(&bounds).zip(&mut least) {
            *to = bounds.byte(8 * eight, &ratios, draft, least);
        }
    };
    let (target, last_target) = rows.target.as_chunks::<8>();
    let (draft, last_draft) = rows.draft.as_chunks::<8>();
    for (eight, (target, draft)) in target.iter().zip(draft).enumerate() {
        write(eight, target, draft);
    }
    if !last_draft.is_empty() {
        let (mut p, mut q) = ([1.0; 8], [0.0; 8]);
        p[..last_target.len()].copy_from_slice(last_target);
        q[..last_draft.len()].copy_from_slice(last_draft);
        write(target.len(), &p, &q);
    }
    let least_of = |one: &[f64; 8]| one.iter().copied().fold(f64::INFINITY, f64::min);
    least.iter().map(least_of).collect()
}

/// A row that is written into an array of the caller.
enum RowOut<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
}

impl RowOut<'_> {
    #[allow(clippy::cast_possible_truncation)]
    fn put(&mut self, row: &[f64]) {
        match self {
            Self::F32(own) => own.iter_mut().zip(row).for_each(|(to, &x)| *to = x as f32),
            Self::F64(own) => own.copy_from_slice(row),
        }
    }
}

/// An array of rows that the caller lends for writing.
enum Lent<'py> {
    F32(PyReadwriteArray2<'py, f32>),
    F64(PyReadwriteArray2<'py, f64>),
}

impl<'py> Lent<'py> {
    fn new(array: &Bound<'py, PyAny>, shape: [usize; 2]) -> PyResult<Self> {
        let lent = if let Ok(array) = array.cast::<PyArray2<f32>>() {
            Self::F32(array.try_readwrite().map_err(unfit)?)
        } else if let Ok(array) = array.cast::<PyArray2<f64>>() {
            Self::F64(array.try_readwrite().map_err(unfit)?)
        } else {
            let message = "rows are written into a matrix of float32 or float64";
            return Err(PyTypeError::new_err(message));
        };
        let own = match &lent {
            Self::F32(array) => array.shape(),
            Self::F64(array) => array.shape(),
        };
        if own != shape {
            let message = format!("rows of shape {shape:?} do not fit into {own:?}");
            return Err(refused(message));
        }
        Ok(lent)
    }

    fn rows(&mut self, columns: usize) -> PyResult<Vec<RowOut<'_>>> {
        Ok(match self {
            Self::F32(array) => {
                let rows = array.as_slice_mut().map_err(unfit)?;
                rows.chunks_mut(columns).map(RowOut::F32).collect()
            }
            Self::F64(array) => {
                let rows = array.as_slice_mut().map_err(unfit)?;
                rows.chunks_mut(columns).map(RowOut::F64).collect()
            }
        })
    }
}

/// Of rows that are lent elsewhere, or do not lie one behind the other.
fn unfit<E: std::fmt::Display>(error: E) -> PyErr {
    refused(format!("rows to write into: {error}"))
}

/// Scans rows for numbers of drafts; writes p and q, as distributions, where they are wanted.
fn of_pairs(
    py: Python<'_>,
    pairs: Pairs<'_>,
    scan: Scan,
    drafts: &[usize],
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    wanted: [Option<Vec<RowOut<'_>>>; 2],
) -> PyResult<Found> {
    let (rows, columns) = pairs.target.shape();
    let most = drafts.iter().copied().max().unwrap_or(1);
    let bytes = columns.div_ceil(8);
    let mut sets = vec![0; rows * drafts.len() * bytes];
    let [target_rows, draft_rows] = wanted.map(|rows_out| match rows_out {
        Some(places) => places.into_iter().map(Some).collect(),
        None => (0..rows).map(|_| None).collect::<Vec<_>>(),
    });
    let room_of_sets = sets.chunks_mut((drafts.len() * bytes).max(1));
    let places: Vec<_> = room_of_sets.zip(target_rows).zip(draft_rows).collect();
    let cuts = pairs.each(py, threads, progress, places, |room, number, place| {
        let ((bits, target_row), draft_row) = place;
        pairs.ask(number, most, room, |row| {
            let own = row.rows();
            for (to, from) in [(target_row, own.target), (draft_row, own.draft)] {
                if let Some(mut to) = to {
                    to.put(from);
                }
            }
            let found = (drafts.iter().map(|&n| scan(row, n)))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| error.to_string())?;
            let sets: Vec<RatioCut> = found.iter().map(|one| one.subset).collect();
            let least = write_sets(&sets, own, bits);
            let cuts = found.into_iter().zip(least).map(|(found, least)| Cut {
                numbers: [least, found.target_mass, found.draft_mass, found.inside],
                rate: found.rate,
            });
            Ok(cuts.collect::<Vec<Cut>>())
        })
    })?;
    let cuts = cuts.into_iter().flatten().collect();
    Ok(Found { cuts, sets })
}

/// alpha* of pairs of rows for several numbers of drafts, with certificates; p and q as
/// distributions are written into arrays, if these are given.
#[pyfunction]
#[pyo3(signature = (
    p, q, drafts, scheme, logits, temperature, threads, progress=None, p_out=None, q_out=None
))]
#[allow(clippy::too_many_arguments)]
fn certificates<'py>(
    py: Python<'py>,
    p: Typed<'py>,
    q: Typed<'py>,
    drafts: Vec<usize>,
    scheme: &str,
    logits: bool,
    temperature: f64,
    threads: usize,
    progress: Option<Bound<'py, PyAny>>,
    p_out: Option<Bound<'py, PyAny>>,
    q_out: Option<Bound<'py, PyAny>>,
) -> PyResult<(Answered<'py>, Certificates<'py>)> {
    let both = matrices(&p, &q, logits)?;
    let pairs = Pairs::of(&both, softmax(logits, temperature));
    let most = drafts.iter().copied().max().unwrap_or(0);
    let name = fitting(scheme_named(scheme)?, most, pairs)?;
    let scan =
        scan_of(name).ok_or_else(|| refused(format!("scheme: {name} is not solved by a scan")))?;
    let (rows, columns) = pairs.target.shape();
    let lend = |array: &Option<Bound<'py, PyAny>>| {
        let lent = array.as_ref().map(|one| Lent::new(one, [rows, columns]));
        lent.transpose()
    };
    let (mut p_out, mut q_out) = (lend(&p_out)?, lend(&q_out)?);
    let p_rows = p_out.as_mut().map(|lent| lent.rows(columns)).transpose()?;
    let q_rows = q_out.as_mut().map(|lent| lent.rows(columns)).transpose()?;
    let wanted = [p_rows, q_rows];
    let found = of_pairs(py, pairs, scan, &drafts, threads, progress.as_ref(), wanted)?;
    Ok((found.answered(py), found.shown(py)?))
}

/// Names of the laws that are solved by a scan.
#[pyfunction]
fn scanned() -> Vec<&'static str> {
    let all = SchemeName::ALL.into_iter();
    all.filter(|&one| scan_of(one).is_some())
        .map(SchemeName::as_str)
        .collect()
}

/// A type of gradients.
trait Real: numpy::Element + Copy + Default + AddAssign + MulAssign {
    fn of(x: f64) -> Self;
}

impl Real for f32 {
    #[allow(clippy::cast_possible_truncation)]
    fn of(x: f64) -> Self {
        x as Self
    }
}

impl Real for f64 {
    fn of(x: f64) -> Self {
        x
    }
}

/// Sets with a weight each, of one row.
#[derive(Clone, Copy)]
struct Weighted<'a> {
    sets: &'a [u8],
    weights: &'a [f64],
    centre: f64,
}

impl Weighted<'_> {
    /// Of each token the weights of the sets that hold it, less `centre`; times its entry of
    /// `row`, if there is one.
    fn sum<T: Real>(self, row: Option<&[T]>, into: &mut [T]) {
        into.fill(T::of(-self.centre));
        let bytes = into.len().div_ceil(8);
        for (set, &weight) in self.sets.chunks(bytes.max(1)).zip(self.weights) {
            // Of each byte the weight of each of its tokens, or 0.
            let one = [T::default(), T::of(weight)];
            let mut shares = [[T::default(); 8]; 256];
            for (byte, shares) in shares.iter_mut().enumerate() {
                for (place, share) in shares.iter_mut().enumerate() {
                    *share = one[byte >> place & 1];
                }
            }
            for (eight, &byte) in into.chunks_mut(8).zip(set) {
                for (to, &share) in eight.iter_mut().zip(&shares[usize::from(byte)]) {
                    *to += share;
                }
            }
        }
        if let Some(row) = row {
            for (to, &x) in into.iter_mut().zip(row) {
                *to *= x;
            }
        }
    }
}

fn write_gradient<'py, T: Real>(
    py: Python<'py>,
    sets: &[u8],
    weights: &[f64],
    centres: &[f64],
    rows: Option<&Bound<'py, PyAny>>,
    into: &Bound<'py, PyArray2<T>>,
    threads: usize,
) -> PyResult<()> {
    let mut into = into.try_readwrite().map_err(unfit)?;
    let [count, columns] = [into.shape()[0], into.shape()[1]];
    let drafts = weights.len().checked_div(count).unwrap_or(0);
    let bytes = drafts * columns.div_ceil(8);
    let rows = rows.map(|rows| rows.cast::<PyArray2<T>>().map(|rows| rows.readonly()));
    let rows = rows.transpose()?;
    let rows = rows.as_ref().map(|rows| rows.as_slice()).transpose()?;
    let fits = centres.len() == count
        && weights.len() == count * drafts
        && sets.len() == count * bytes
        && rows.is_none_or(|rows| rows.len() == count * columns);
    if !fits {
        let message = "sets, weights and rows are not of the same shape";
        return Err(refused(message));
    }
    let all = into.as_slice_mut()?;
    watched(py, threads, None, |host| {
        host.watch(|| {
            let each = all.par_chunks_mut(columns.max(1)).enumerate();
            each.for_each(|(number, into)| {
                let weighted = Weighted {
                    sets: &sets[number * bytes..][..bytes],
                    weights: &weights[number * drafts..][..drafts],
                    centre: centres[number],
                };
                let row = rows.map(|rows| &rows[number * columns..][..columns]);
                weighted.sum(row, into);
            });
            Ok::<(), HostError>(())
        })
    })
}

/// Writes the sum over certificates of a row of weight times (1 on H), less the row's centre, times
/// the row: the gradient of alpha* by p or q, or by the logits of these.
#[pyfunction]
#[pyo3(signature = (sets, weights, centres, rows, into, threads))]
#[allow(clippy::needless_pass_by_value)]
fn weigh_certificates<'py>(
    py: Python<'py>,
    sets: PyReadonlyArray2<'py, u8>,
    weights: PyReadonlyArray1<'py, f64>,
    centres: PyReadonlyArray1<'py, f64>,
    rows: Option<Bound<'py, PyAny>>,
    into: Bound<'py, PyAny>,
    threads: usize,
) -> PyResult<()> {
    let sets = sets.as_slice()?;
    let (weights, centres) = (weights.as_slice()?, centres.as_slice()?);
    let rows = rows.as_ref();
    if let Ok(into) = into.cast::<PyArray2<f32>>() {
        write_gradient(py, sets, weights, centres, rows, into, threads)
    } else if let Ok(into) = into.cast::<PyArray2<f64>>() {
        write_gradient(py, sets, weights, centres, rows, into, threads)
    } else {
        let message = "a gradient is written into a matrix of float32 or float64";
        Err(PyTypeError::new_err(message))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(certificates, module)?)?;
    module.add_function(wrap_pyfunction!(scanned, module)?)?;
    module.add_function(wrap_pyfunction!(weigh_certificates, module)?)
}
