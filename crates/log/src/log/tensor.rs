//! A tensor as a place in a file, and its entries as numbers.

use super::error::LogError;
use super::source::{HeldBytes, Source, Window};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The type of a tensor's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dtype {
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Signed 32-bit integers.
    I32,
    /// Signed 64-bit integers.
    I64,
    /// Bytes, or truth values of a byte each: of `allowed` alone.
    U8,
}

impl Dtype {
    /// Bytes of one entry.
    pub fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
            Self::U8 => 1,
        }
    }

    /// Whether entries are floating point.
    pub fn is_float(self) -> bool {
        !matches!(self, Self::I32 | Self::I64 | Self::U8)
    }

    /// How far the sum of a row of probabilities of this type may be from 1.
    ///
    /// Rounding alone moves it by up to half a unit of each entry, and entries
    /// below the smallest subnormal number vanish: 2e-3 at V = 49,152 in f16.
    pub(crate) fn sum_tolerance(self) -> f64 {
        match self {
            Self::F64 => 1e-6,
            Self::F32 => 1e-4,
            _ => 2e-2,
        }
    }

    /// The most that rounding to the type moves a number of size at most 1: relative to the
    /// number, and where that is less, by itself.
    pub fn rounding(self) -> [f64; 2] {
        match self {
            Self::F16 => [2f64.powi(-11), 2f64.powi(-25)],
            Self::Bf16 => [2f64.powi(-8), 0.0],
            Self::F32 => [2f64.powi(-24), 0.0],
            _ => [2f64.powi(-53), 0.0],
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
        })
    }
}

/// A tensor that a program holds in memory.
#[derive(Clone, Debug)]
pub struct HeldTensor {
    /// Its name in a log, such as `target_logits`.
    pub name: String,
    /// The type of its entries.
    pub dtype: Dtype,
    /// Its shape; rows first.
    pub shape: Vec<usize>,
    /// Its entries.
    pub entries: Arc<dyn HeldBytes>,
}

/// A tensor in a file: row-major, little-endian, and checked to lie within it.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    source: Arc<Source>,
    start: u64,
}

impl Tensor {
    /// Checks that the shape's bytes lie within the source.
    pub(crate) fn within(
        name: String,
        dtype: Dtype,
        shape: Vec<usize>,
        source: Arc<Source>,
        start: u64,
        log: &Path,
    ) -> Result<Self, LogError> {
        let bytes = shape
            .iter()
            .try_fold(dtype.size() as u64, |bytes, &length| {
                bytes.checked_mul(length as u64)
            });
        let end = bytes.and_then(|bytes| start.checked_add(bytes));
        if end.is_none_or(|end| end > source.length()) {
            return Err(LogError::tensor(
                log,
                &name,
                format!(
                    "shape {shape:?} of {dtype} does not fit the file; it is truncated, or its \
                     header is wrong"
                ),
            ));
        }
        Ok(Self {
            name,
            dtype,
            shape,
            source,
            start,
        })
    }

    /// The same entries with a row for each depth of each position, [N, K, ...] as [N K, ...].
    #[must_use]
    pub(crate) fn by_depth(mut self) -> Self {
        let rows = self.shape.iter().take(2).product();
        self.shape.splice(..self.shape.len().min(2), [rows]);
        self
    }

    /// Where its bytes are.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The file that it is in.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Entries of one row; 1 for a vector.
    pub(crate) fn columns(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// Reads some rows.
    pub(crate) fn window(&self, rows: Range<usize>) -> Result<RowWindow<'_>, LogError> {
        // `within` proved that all rows together have fewer bytes than u64.
        let row_bytes = self.columns() * self.dtype.size();
        let start = self.start + rows.start as u64 * row_bytes as u64;
        let bytes = self.source.window(start, rows.len() * row_bytes)?;
        Ok(RowWindow {
            tensor: self,
            first: rows.start,
            row_bytes,
            bytes,
        })
    }
}

/// Rows of a tensor, as they are in the file.
#[derive(Debug)]
pub(crate) struct RowWindow<'a> {
    pub tensor: &'a Tensor,
    first: usize,
    row_bytes: usize,
    bytes: Window,
}

/// Scratch for half-precision rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    f16: Vec<f16>,
    bf16: Vec<bf16>,
    f32: Vec<f32>,
}

impl RowWindow<'_> {
    /// All rows, as they are in the file.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of a row.
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let start = (row - self.first) * self.row_bytes;
        self.bytes.get(start..start + self.row_bytes).unwrap_or(&[])
    }

    /// The first `count` floating-point entries of a row, exactly.
    pub(crate) fn floats(
        &self,
        row: usize,
        count: usize,
        scratch: &mut Scratch,
        out: &mut Vec<f64>,
    ) {
        let bytes = self.row(row);
        let bytes = bytes
            .get(..count * self.tensor.dtype.size())
            .unwrap_or(bytes);
        out.clear();
        match self.tensor.dtype {
            Dtype::F64 => out.extend(entries::<8>(bytes).map(f64::from_le_bytes)),
            Dtype::F32 => out.extend(entries::<4>(bytes).map(|b| f64::from(f32::from_le_bytes(b)))),
            Dtype::F16 => {
                scratch.f16.clear();
                scratch
                    .f16
                    .extend(entries::<2>(bytes).map(f16::from_le_bytes));
                scratch.f32.resize(scratch.f16.len(), 0.0);
                scratch.f16.convert_to_f32_slice(&mut scratch.f32);
                out.extend(scratch.f32.iter().map(|&x| f64::from(x)));
            }
            Dtype::Bf16 => {
                scratch.bf16.clear();
                scratch
                    .bf16
                    .extend(entries::<2>(bytes).map(bf16::from_le_bytes));
                scratch.f32.resize(scratch.bf16.len(), 0.0);
                scratch.bf16.convert_to_f32_slice(&mut scratch.f32);
                out.extend(scratch.f32.iter().map(|&x| f64::from(x)));
            }
            Dtype::I32 | Dtype::I64 | Dtype::U8 => {
                out.extend(self.integers_of(bytes).map(|x| x as f64));
            }
        }
    }

    /// The integers of a row.
    pub(crate) fn integers(&self, row: usize) -> impl Iterator<Item = i64> + '_ {
        self.integers_of(self.row(row))
    }

    fn integers_of<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = i64> + use<'b> {
        bytes
            .chunks_exact(self.tensor.dtype.size())
            .map(|chunk| match *chunk {
                [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
                [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
                [a] => i64::from(a),
                // Chunks are exact.
                _ => 0,
            })
    }
}

fn entries<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}
