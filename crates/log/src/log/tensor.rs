//! A tensor as a place in a file, and its entries as numbers.

use super::error::LogError;
use super::source::{HeldBytes, Source, Window};
use specgap_entries::{Dtype, Scratch};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

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

impl HeldTensor {
    /// A tensor whose entries lie as in a file, row-major and little-endian, or are gathered so.
    pub fn new(
        name: &str,
        dtype: Dtype,
        shape: &[usize],
        entries: impl HeldBytes + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            entries: Arc::new(entries),
        }
    }
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

    /// Gives each depth of each position a row, [N, K, ...] as [N K, ...], with the same entries.
    #[must_use]
    pub(crate) fn by_depth(mut self) -> Self {
        let rows = self.shape.iter().take(2).product();
        self.shape.splice(..self.shape.len().min(2), [rows]);
        self
    }

    /// Returns where its bytes are.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The file that it is in.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    /// Says what is wrong with an entry.
    pub(super) fn refused(&self, row: usize, column: usize, message: String) -> LogError {
        LogError::entry(self.path(), &self.name, row, column, message)
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
        let dtype = self.tensor.dtype;
        let bytes = bytes.get(..count * dtype.size()).unwrap_or(bytes);
        dtype.read(bytes, scratch, out);
    }

    /// The integers of a row.
    pub(crate) fn integers(&self, row: usize) -> impl Iterator<Item = i64> + '_ {
        self.tensor.dtype.integers(self.row(row))
    }
}
