//! NumPy arrays, read where they lie: any strides, any of the types that logs have.

#![allow(unsafe_code)]

use crate::errors::{Place, as_io, refused, refused_at};
use half::{bf16, f16};
use numpy::ndarray::ArrayView2;
use numpy::{
    PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use specgap::log::{Dtype, FormGuard, HeldBytes};
use std::{fmt, io};

/// A matrix of floating point, borrowed for reading while it lives.
pub(crate) enum Matrix<'py> {
    F16(PyReadonlyArray2<'py, f16>),
    Bf16(PyReadonlyArray2<'py, u16>),
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
}

/// Its entries, without the interpreter.
#[derive(Clone, Copy)]
pub(crate) enum Entries<'a> {
    F16(ArrayView2<'a, f16>),
    Bf16(ArrayView2<'a, u16>),
    F32(ArrayView2<'a, f32>),
    F64(ArrayView2<'a, f64>),
}

fn cast<'py, T: numpy::Element>(
    array: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<PyReadonlyArray2<'py, T>> {
    let array = array.cast::<PyArray2<T>>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{name}: must be a matrix of rows in native byte order"
        ))
    })?;
    array
        .try_readonly()
        .map_err(|_| refused(format!("{name}: is being written to by another call")))
}

impl<'py> Matrix<'py> {
    /// `dtype` is the name of the type; `bfloat16` comes as a view of `uint16`.
    pub(crate) fn new(array: &Bound<'py, PyAny>, dtype: &str, name: &str) -> PyResult<Self> {
        Ok(match dtype {
            "float16" => Self::F16(cast(array, name)?),
            "bfloat16" => Self::Bf16(cast(array, name)?),
            "float32" => Self::F32(cast(array, name)?),
            "float64" => Self::F64(cast(array, name)?),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "{name}: has entries of type {dtype}; rows are float16, bfloat16, float32 or \
                     float64"
                )));
            }
        })
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        match self {
            Self::F16(array) => Entries::F16(array.as_array()),
            Self::Bf16(array) => Entries::Bf16(array.as_array()),
            Self::F32(array) => Entries::F32(array.as_array()),
            Self::F64(array) => Entries::F64(array.as_array()),
        }
    }
}

impl Entries<'_> {
    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            Self::F16(view) => view.dim(),
            Self::Bf16(view) => view.dim(),
            Self::F32(view) => view.dim(),
            Self::F64(view) => view.dim(),
        }
    }

    fn dtype(&self) -> Dtype {
        match self {
            Self::F16(_) => Dtype::F16,
            Self::Bf16(_) => Dtype::Bf16,
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
        }
    }

    /// Refuses rows that are called logits and are something else.
    pub(crate) fn refuse_other_forms(&self, name: &str) -> PyResult<()> {
        let mut guard = FormGuard::new(self.dtype());
        let mut row = Vec::new();
        for number in FormGuard::rows(self.shape().0) {
            if guard.is_done() {
                break;
            }
            self.row(number, &mut row);
            guard.look(number, &row, 0.0);
        }
        guard.found().map_or(Ok(()), |(form, number)| {
            let message = form.refusal("leave logits=True out, or");
            let place = Place {
                tensor: Some(name.to_owned()),
                row: Some(number),
                column: None,
            };
            Err(refused_at(
                format!("{name}: row {number}: {message}"),
                place,
            ))
        })
    }

    /// Returns how far a row of probabilities may be from 1 in sum: the rounding of its type.
    pub(crate) fn sum_tolerance(&self) -> f64 {
        match self {
            Self::F16(_) | Self::Bf16(_) => 2e-2,
            Self::F32(_) => 1e-4,
            Self::F64(_) => 1e-6,
        }
    }

    /// One row, exactly; -0 is 0.
    pub(crate) fn row(&self, row: usize, into: &mut Vec<f64>) {
        into.clear();
        match self {
            Self::F16(view) => into.extend(view.row(row).iter().map(|x| x.to_f64())),
            Self::Bf16(view) => {
                into.extend(view.row(row).iter().map(|x| bf16::from_bits(*x).to_f64()));
            }
            Self::F32(view) => into.extend(view.row(row).iter().map(|&x| f64::from(x))),
            Self::F64(view) => into.extend(view.row(row).iter().copied()),
        }
        into.iter_mut().for_each(|x| *x += 0.0);
    }
}

/// An array that a log is read from: kept alive, and read where it lies.
pub(crate) struct HeldArray {
    /// Keeps the entries where they are.
    _owner: Py<PyAny>,
    first: *const u8,
    rows: usize,
    columns: usize,
    /// In bytes, from a row to the next and from a column to the next.
    strides: [isize; 2],
    size: usize,
}

// SAFETY: entries are only read, and the owner, whose reference count alone is touched by
// dropping it, keeps them in place; a `Py` may be dropped on any thread.
unsafe impl Send for HeldArray {}
// SAFETY: as above; nothing is written through a shared reference.
unsafe impl Sync for HeldArray {}

impl fmt::Debug for HeldArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldArray")
            .field("rows", &self.rows)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

/// The types of a log's tensors, by NumPy's names; `bfloat16` comes as a view of `uint16`.
pub(crate) fn dtype_named(dtype: &str, name: &str) -> PyResult<Dtype> {
    Ok(match dtype {
        "float16" => Dtype::F16,
        "bfloat16" => Dtype::Bf16,
        "float32" => Dtype::F32,
        "float64" => Dtype::F64,
        "int32" => Dtype::I32,
        "int64" => Dtype::I64,
        "uint8" if name == "allowed" => Dtype::U8,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "{name}: has entries of type {dtype}; rows are float16, bfloat16, float32 or \
                 float64, and tokens and numbers int32 or int64"
            )));
        }
    })
}

impl HeldArray {
    /// Holds an array of one or two axes, or of three of which the first two lie as one.
    pub(crate) fn new(
        array: &Bound<'_, PyAny>,
        dtype: Dtype,
        name: &str,
    ) -> PyResult<(Self, Vec<usize>)> {
        let untyped = array
            .cast::<PyUntypedArray>()
            .map_err(|_| PyTypeError::new_err(format!("{name}: must be a NumPy array")))?;
        let shape = untyped.shape().to_vec();
        let strides = untyped.strides();
        if cfg!(target_endian = "big") || untyped.dtype().itemsize() != dtype.size() {
            return Err(PyTypeError::new_err(format!(
                "{name}: is not little-endian {dtype}"
            )));
        }
        let (rows, columns, strides) = match (shape.as_slice(), strides) {
            (&[rows], &[stride]) => (rows, 1, [stride, 0]),
            (&[rows, columns], &[row, column]) => (rows, columns, [row, column]),
            // Rows of each depth, which lie behind one another.
            (&[rows, depths, columns], &[row, depth, column])
                if rows <= 1 || row == depth * depths.cast_signed() =>
            {
                (rows * depths, columns, [depth, column])
            }
            _ => {
                return Err(refused(format!(
                    "{name}: has {} axes; rows are [N, V], numbers of positions [N]",
                    shape.len()
                )));
            }
        };
        // SAFETY: the array is alive, and reading its description changes nothing.
        let first = unsafe { (*untyped.as_array_ptr()).fields.data }
            .cast::<u8>()
            .cast_const();
        let held = Self {
            _owner: array.clone().unbind(),
            first,
            rows,
            columns,
            strides,
            size: dtype.size(),
        };
        Ok((held, shape))
    }

    fn is_contiguous(&self) -> bool {
        let size = self.size.cast_signed();
        let columns = self.columns <= 1 || self.strides[1] == size;
        let rows = self.rows <= 1 || self.strides[0] == size * self.columns.cast_signed();
        columns && rows
    }
}

impl HeldBytes for HeldArray {
    fn length(&self) -> u64 {
        (self.rows * self.columns * self.size) as u64
    }

    fn contiguous(&self) -> Option<&[u8]> {
        if !self.is_contiguous() {
            return None;
        }
        let length = self.rows * self.columns * self.size;
        if length == 0 {
            return Some(&[]);
        }
        // SAFETY: by shape and strides, which NumPy keeps within the owner's memory, the
        // entries are these bytes; they live as long as `self` does.
        Some(unsafe { std::slice::from_raw_parts(self.first, length) })
    }

    fn gather(&self, start: u64, into: &mut [u8]) -> io::Result<()> {
        let first = start as usize / self.size;
        for (entry, bytes) in (first..).zip(into.chunks_exact_mut(self.size)) {
            let (row, column) = (entry / self.columns, entry % self.columns);
            if row >= self.rows {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let offset =
                self.strides[0] * row.cast_signed() + self.strides[1] * column.cast_signed();
            // SAFETY: row and column are within the shape, so the entry is within the
            // owner's memory; it is copied by bytes, whatever its alignment.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    self.first.offset(offset),
                    bytes.as_mut_ptr(),
                    self.size,
                );
            }
        }
        Ok(())
    }
}

/// A tensor whose rows a Python function hands over when they are needed: of files that are
/// read by a library of Python.
pub(crate) struct FetchedRows {
    /// `fetch(name, first, count)` gives the bytes of these rows, as an array of `uint8`.
    fetch: Py<PyAny>,
    name: String,
    rows: usize,
    row_bytes: usize,
    /// Whether the function has them in memory, and no file stands behind it.
    in_memory: bool,
}

impl FetchedRows {
    /// A tensor of this shape, rows first.
    pub(crate) fn new(
        fetch: Py<PyAny>,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        in_memory: bool,
    ) -> Self {
        let columns: usize = shape.iter().skip(1).product();
        Self {
            fetch,
            name: name.to_owned(),
            rows: shape.first().copied().unwrap_or(0),
            row_bytes: columns * dtype.size(),
            in_memory,
        }
    }

    fn fetched(&self, py: Python<'_>, start: usize, into: &mut [u8]) -> PyResult<()> {
        let (first, skipped) = (start / self.row_bytes, start % self.row_bytes);
        let count = (skipped + into.len()).div_ceil(self.row_bytes);
        let got = self.fetch.call1(py, (&self.name, first, count))?;
        let got = got.bind(py).cast::<PyArray1<u8>>()?.try_readonly();
        let got = got.map_err(|error| refused(error.to_string()))?;
        let bytes = (got.as_slice().ok()).and_then(|all| all.get(skipped..skipped + into.len()));
        let bytes = bytes.ok_or_else(|| {
            refused(format!(
                "{}: its rows are not {count} whole ones",
                self.name
            ))
        })?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

impl fmt::Debug for FetchedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedRows")
            .field("name", &self.name)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl HeldBytes for FetchedRows {
    fn length(&self) -> u64 {
        (self.rows * self.row_bytes) as u64
    }

    fn contiguous(&self) -> Option<&[u8]> {
        (self.rows * self.row_bytes == 0).then_some(&[])
    }

    fn is_fetched(&self) -> bool {
        !self.in_memory
    }

    fn gather(&self, start: u64, into: &mut [u8]) -> io::Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        Python::attach(|py| {
            self.fetched(py, start as usize, into)
                .map_err(|error| as_io(py, &error))
        })
    }
}
