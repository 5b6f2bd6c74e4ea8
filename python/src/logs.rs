//! Logs: files, and arrays in memory; and writing them.

use crate::arrays::{FetchedRows, HeldArray, dtype_named};
use crate::errors::{raised, refused};
use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use specgap::log::{
    EngineRecord, HeldTensor, KeptTokens, Layout, ListedPosition, Log as Rows, LogWriter as Writer,
    Metadata, Position, Row, RowKind,
};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a log's rows are. Opening it again costs reading its headers alone.
#[derive(Clone, Debug)]
enum Place {
    Files,
    Arrays {
        metadata: Box<Metadata>,
        tensors: Vec<HeldTensor>,
    },
}

/// Logged rows, of files or of arrays.
#[pyclass(frozen, module = "specgap._native")]
pub(crate) struct Log {
    path: PathBuf,
    vocabulary: Option<usize>,
    place: Place,
    /// What reports call it, if not by its path.
    name: Option<String>,
    /// Which of the draft's rows are read, where a position has one for each depth.
    depth: usize,
    rows: Rows,
}

impl Log {
    /// The log anew, for a command that takes it.
    pub(crate) fn opened(&self) -> PyResult<Rows> {
        let rows = open(&self.path, self.vocabulary, &self.place)?;
        let rows = at_depth(rows, self.depth)?;
        Ok(match &self.name {
            Some(name) => rows.called(name),
            None => rows,
        })
    }

    /// Tells whether it is in memory alone.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.place, Place::Arrays { .. })
    }

    fn of_tensors(
        path: PathBuf,
        tensors: impl Iterator<Item = PyResult<HeldTensor>>,
        metadata: &str,
        vocabulary: Option<usize>,
    ) -> PyResult<Self> {
        let tensors = tensors.collect::<PyResult<_>>()?;
        let metadata = Box::new(metadata_of(metadata)?);
        Self::made(path, vocabulary, Place::Arrays { metadata, tensors })
    }

    fn made(path: PathBuf, vocabulary: Option<usize>, place: Place) -> PyResult<Self> {
        let rows = open(&path, vocabulary, &place)?;
        Ok(Self {
            path,
            vocabulary,
            place,
            name: None,
            depth: 1,
            rows,
        })
    }
}

fn at_depth(rows: Rows, depth: usize) -> PyResult<Rows> {
    match depth {
        1 => Ok(rows),
        _ => rows.at_depth(depth).map_err(raised),
    }
}

fn open(path: &std::path::Path, vocabulary: Option<usize>, place: &Place) -> PyResult<Rows> {
    match place {
        Place::Files => Rows::open_with(path, vocabulary),
        Place::Arrays { metadata, tensors } => {
            Rows::held(path, (**metadata).clone(), tensors.clone(), vocabulary)
        }
    }
    .map_err(raised)
}

fn metadata_of(json: &str) -> PyResult<Metadata> {
    serde_json::from_str(json).map_err(|error| refused(format!("metadata: {error}")))
}

/// A row of a log: numbers of its tokens, and their probabilities or logits under p and q;
/// prompt, position and token; masses that it does not list; what heads predict.
type ReadRow<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    [Option<i64>; 3],
    [Bound<'py, PyArray1<f64>>; 2],
    [Option<f64>; 2],
);

#[pymethods]
impl Log {
    #[staticmethod]
    fn open(path: PathBuf, vocabulary: Option<usize>) -> PyResult<Self> {
        Self::made(path, vocabulary, Place::Files)
    }

    /// A log of arrays, each with its name and the name of its type.
    #[staticmethod]
    fn held(
        name: PathBuf,
        tensors: Vec<(String, Bound<'_, PyAny>, String)>,
        metadata: &str,
        vocabulary: Option<usize>,
    ) -> PyResult<Self> {
        let held = |(name, array, dtype): (String, Bound<'_, PyAny>, String)| {
            let dtype = dtype_named(&dtype, &name)?;
            let (entries, shape) = HeldArray::new(&array, dtype, &name)?;
            PyResult::Ok(HeldTensor {
                name,
                dtype,
                shape,
                entries: Arc::new(entries),
            })
        };
        let log = Self::of_tensors(name, tensors.into_iter().map(held), metadata, vocabulary)?;
        (log.rows.refuse_other_forms()).map_err(raised)?;
        Ok(log)
    }

    /// A log whose rows `fetch(name, first, count)` hands over when they are needed, as the
    /// bytes of these rows of a tensor. Of each tensor: its name, shape and type. `in_memory` says
    /// that no file of this path stands behind it.
    #[staticmethod]
    fn fetched(
        path: PathBuf,
        tensors: Vec<(String, Vec<usize>, String)>,
        fetch: &Bound<'_, PyAny>,
        metadata: &str,
        vocabulary: Option<usize>,
        in_memory: bool,
    ) -> PyResult<Self> {
        let held = |(name, shape, dtype): (String, Vec<usize>, String)| {
            let dtype = dtype_named(&dtype, &name)?;
            let rows = FetchedRows::new(fetch.clone().unbind(), &name, dtype, &shape, in_memory);
            PyResult::Ok(HeldTensor {
                name,
                dtype,
                shape,
                entries: Arc::new(rows),
            })
        };
        Self::of_tensors(path, tensors.into_iter().map(held), metadata, vocabulary)
    }

    /// The same log under another name, by which reports call it.
    fn called(&self, name: &str) -> PyResult<Self> {
        // What is in memory has no other name.
        let path = match self.rows.is_held() {
            true => PathBuf::from(name),
            false => self.path.clone(),
        };
        let mut log = Self::made(path, self.vocabulary, self.place.clone())?;
        log.name = Some(name.to_owned());
        log.depth = self.depth;
        log.rows = at_depth(log.rows, self.depth)?;
        Ok(log)
    }

    /// The same log with the draft's rows at a depth.
    fn at_depth(&self, depth: usize) -> PyResult<Self> {
        let rows = self.rows.at_depth(depth).map_err(raised)?;
        Ok(Self {
            path: self.path.clone(),
            vocabulary: self.vocabulary,
            place: self.place.clone(),
            name: self.name.clone(),
            depth,
            rows,
        })
    }

    #[getter]
    fn depth(&self) -> usize {
        self.depth
    }

    #[getter]
    fn depths(&self) -> usize {
        self.rows.depths()
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    #[getter]
    fn in_memory(&self) -> bool {
        self.is_held()
    }

    #[getter]
    fn kept(&self) -> Option<usize> {
        self.vocabulary
    }

    #[getter]
    fn positions(&self) -> usize {
        self.rows.positions()
    }

    #[getter]
    fn vocabulary(&self) -> usize {
        self.rows.vocabulary()
    }

    #[getter]
    fn listed(&self) -> usize {
        self.rows.listed()
    }

    #[getter]
    fn kinds(&self) -> (&'static str, &'static str) {
        let word = |kind| match kind {
            RowKind::Logits => "logits",
            RowKind::Probabilities => "probs",
            RowKind::LogProbabilities => "logprobs",
        };
        let (target, draft) = self.rows.kinds();
        (word(target), word(draft))
    }

    #[getter]
    fn dtypes(&self) -> (String, String) {
        let (target, draft) = self.rows.dtypes();
        (target.to_string(), draft.to_string())
    }

    /// Tells whether it says which tokens were drawn.
    #[getter]
    fn has_tokens(&self) -> bool {
        self.rows.has_tokens()
    }

    /// Tells whether target and draft list tokens of their own.
    #[getter]
    fn own_lists(&self) -> bool {
        self.rows.has_own_lists()
    }

    /// Tells whether it says of which positions it has no row of the draft.
    #[getter]
    fn may_lack_drafts(&self) -> bool {
        self.rows.may_lack_drafts()
    }

    /// Tensors of what an engine did that are there.
    #[getter]
    fn engine_tensors(&self) -> Vec<String> {
        self.rows
            .engine_tensors()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.rows.ignored_tensors().to_vec()
    }

    /// Returns what the log says of itself, as JSON.
    fn metadata(&self) -> PyResult<String> {
        let json = serde_json::to_string(self.rows.metadata());
        json.map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// One position: token ids (none where the row has all), the rows, prompt, position and
    /// token, masses that are not listed, and what heads predict.
    fn row<'py>(&self, py: Python<'py>, index: usize) -> PyResult<ReadRow<'py>> {
        if index >= self.rows.positions() {
            return Err(PyIndexError::new_err(format!(
                "position {index} is not below {}",
                self.rows.positions()
            )));
        }
        let mut row = Row::default();
        py.detach(|| self.rows.read(index, &mut row))
            .map_err(raised)?;
        let ids: Vec<i64> = row.token_ids.iter().map(|&id| i64::from(id)).collect();
        Ok((
            ids.to_pyarray(py),
            row.target.to_pyarray(py),
            row.draft.to_pyarray(py),
            [row.prompt_id, row.position, row.token],
            [
                row.target_rest.to_pyarray(py),
                row.draft_rest.to_pyarray(py),
            ],
            [row.head_acceptance, row.head_overlap],
        ))
    }

    /// Returns what an engine did, position by position: drafts, output, accepted, round, batch size,
    /// seed.
    #[allow(clippy::type_complexity)]
    fn engine(&self, py: Python<'_>) -> PyResult<Vec<(Vec<i64>, [Option<i64>; 5])>> {
        let records = py.detach(|| self.rows.engine_records()).map_err(raised)?;
        let parts = |one: EngineRecord| {
            let numbers = [
                one.output,
                one.accepted,
                one.round,
                one.batch_size,
                one.seed,
            ];
            (one.drafts, numbers)
        };
        Ok(records.into_iter().map(parts).collect())
    }
}

fn listed(ids: &[u32], entries: &[f32]) -> Vec<(u32, f32)> {
    ids.iter().copied().zip(entries.iter().copied()).collect()
}

/// Writes a log that survives being killed.
#[pyclass(frozen, module = "specgap._native")]
struct LogWriter {
    writer: Mutex<Option<Writer>>,
}

impl LogWriter {
    fn with<T>(&self, run: impl FnOnce(&mut Writer) -> PyResult<T>) -> PyResult<T> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writer
            .as_mut()
            .ok_or_else(|| refused("the log was closed; nothing more can be added"))?;
        run(writer)
    }
}

#[pymethods]
impl LogWriter {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        path: PathBuf,
        vocabulary: usize,
        dtype: &str,
        metadata: &str,
        top: Option<usize>,
        rest_temperatures: Vec<f64>,
        shard_bytes: usize,
        resume: bool,
        lists: bool,
    ) -> PyResult<Self> {
        let mut layout = Layout::new(vocabulary);
        layout.dtype = dtype_named(dtype, "dtype")?;
        layout.shard_bytes = shard_bytes;
        if let Some(count) = top {
            layout.tokens = KeptTokens::Top {
                count,
                rest_temperatures,
            };
        }
        if lists {
            layout.tokens = KeptTokens::Lists;
        }
        let writer = if resume && Writer::exists(&path) {
            Writer::resume(&path, layout)
        } else {
            Writer::create(&path, metadata_of(metadata)?, layout)
        };
        let writer = writer.map_err(raised)?;
        Ok(Self {
            writer: Mutex::new(Some(writer)),
        })
    }

    #[getter]
    fn positions(&self) -> PyResult<usize> {
        self.with(|writer| Ok(writer.positions()))
    }

    /// Adds a position, and what an engine did there, where that is known. With ids the rows are
    /// lists: tokens of the target and of the draft.
    #[allow(clippy::too_many_arguments)]
    fn append(
        &self,
        target: PyReadonlyArray1<'_, f32>,
        draft: Option<PyReadonlyArray1<'_, f32>>,
        ids: Option<(Vec<u32>, Vec<u32>)>,
        prompt_id: i64,
        position: i64,
        token: i64,
        drafts: Vec<i64>,
        output: Option<i64>,
        accepted: Option<i64>,
        round: Option<i64>,
        batch_size: Option<i64>,
        seed: Option<i64>,
    ) -> PyResult<()> {
        let contiguous = |_| refused("rows are to be contiguous");
        let target = target.as_slice().map_err(contiguous)?;
        let draft = match &draft {
            Some(draft) => draft.as_slice().map_err(contiguous)?,
            None => &[],
        };
        let record = EngineRecord {
            drafts,
            output,
            accepted,
            round,
            batch_size,
            seed,
            ..EngineRecord::default()
        };
        self.with(|writer| {
            // All of it or nothing is added.
            (writer.check_engine(&record, writer.positions())).map_err(raised)?;
            let added = match &ids {
                None => writer.append(&Position {
                    prompt_id,
                    position,
                    token,
                    target,
                    draft,
                }),
                Some((of_target, of_draft)) => writer.append_lists(&ListedPosition {
                    prompt_id,
                    position,
                    token,
                    target: &listed(of_target, target),
                    draft: &listed(of_draft, draft),
                }),
            };
            added.map_err(raised)?;
            if record == EngineRecord::default() {
                return Ok(());
            }
            writer.set_engine(&record).map_err(raised)
        })
    }

    /// Makes everything appended so far part of the log, for good.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.with(|writer| writer.commit().map_err(raised)))
    }

    /// Changes what the log says of itself; written by the next commit.
    fn set_metadata(&self, json: &str) -> PyResult<()> {
        let metadata = metadata_of(json)?;
        self.with(|writer| {
            let kept = writer.metadata().clone();
            *writer.metadata_mut() = Metadata {
                vocabulary: kept.vocabulary,
                rest_temperatures: kept.rest_temperatures,
                ..metadata
            };
            Ok(())
        })
    }

    /// Commits, and lets go of the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(open) = writer.as_mut() {
                open.commit().map_err(raised)?;
            }
            *writer = None;
            Ok(())
        })
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Log>()?;
    module.add_class::<LogWriter>()
}
