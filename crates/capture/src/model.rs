//! A causal language model as an ONNX graph with a key-value cache.

use super::CaptureError;
use super::context::OF_GRAPH;
use super::runtime::{self, Device, Placed, Placement, Runtime};
use half::f16;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, Session};
use ort::value::{
    DynTensor, DynTensorValueType, DynValue, Outlet, PrimitiveTensorElementType, Tensor,
    TensorElementType,
};
use specgap_base::files::UnfinishedFolder;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

const IDS: &str = "input_ids";
const MASK: &str = "attention_mask";
const POSITIONS: &str = "position_ids";
const LOGITS: &str = "logits";
const ACCEPTANCE: &str = "acceptance";
const OVERLAP: &str = "overlap";
const PAST: &str = "past_key_values.";
const PRESENT: &str = "present.";

/// Of folders that profiles are written to, where the system keeps temporary files.
const PROFILE_PREFIX: &str = ".specgap-profile-";

/// One tensor of the cache: an input and the output that becomes it.
#[derive(Clone, Debug, PartialEq)]
struct CacheTensor {
    past: String,
    present: String,
    element: TensorElementType,
    heads: i64,
    width: i64,
}

/// Which of the optional outputs a graph has, each \[batch, sequence\] and in \[0, 1\]:
/// what heads on a draft model predict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// `acceptance`: the probability that the token which was run is accepted.
    pub acceptance: bool,
    /// `overlap`: sum of min(p, q) over the next token.
    pub overlap: bool,
}

impl Heads {
    /// Returns how many there are.
    pub(super) fn count(self) -> usize {
        self.names().count()
    }

    /// The outputs' names.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let acceptance = self.acceptance.then_some(ACCEPTANCE);
        acceptance
            .into_iter()
            .chain(self.overlap.then_some(OVERLAP))
    }
}

/// What the graph offers of the contract of [`Model`].
#[derive(Clone, Debug, PartialEq)]
struct Contract {
    positions: bool,
    cache: Vec<CacheTensor>,
    heads: Heads,
    /// V if the graph states it.
    vocabulary: Option<usize>,
    /// K: rows that it gives behind each token.
    depths: usize,
}

/// A causal language model:
///
/// | input | shape | type |
/// | --- | --- | --- |
/// | `input_ids` | \[batch, sequence\] | i64 |
/// | `attention_mask` | \[batch, past + sequence\] | i64, 0 for padding on the left |
/// | `position_ids` | \[batch, sequence\] | i64, may be absent |
/// | `past_key_values.{i}.key`, `.value` | \[batch, heads, past, width\] | f32 or f16 |
///
/// | output | shape | type |
/// | --- | --- | --- |
/// | `logits` | \[batch, sequence, V\] | f32 or f16 |
/// | the same of a draft that writes K tokens at once | \[batch, sequence, K, V\] | entry j of place c is about token c + 1 + j |
/// | `present.{i}.key`, `.value` | \[batch, heads, past + sequence, width\] | as the past |
/// | `acceptance`, `overlap` | \[batch, sequence\] | f32 or f16, may be absent; see [`Heads`] |
///
/// The present of one run is handed to the next as its past without a copy, on
/// the device. Graphs without a cache are refused: each token would cost a run
/// over everything before it.
pub struct Model {
    session: Session,
    binding: IoBinding,
    /// Where the cache lives, and where logits are read.
    cache_memory: MemoryInfo<'static>,
    host_memory: MemoryInfo<'static>,
    contract: Contract,
    context: Option<usize>,
    path: PathBuf,
    vocabulary: usize,
    placement: Placement,
    cache: Cache,
}

/// Keys and values of some sequences; away from their model they are in the host's memory.
///
/// [`Model::take`] and [`Cache::gather`] make branches of it: what was read behind one
/// prefix is gone on with in several ways, or forgotten.
#[derive(Default)]
pub struct Cache {
    past: Vec<DynValue>,
    batch: usize,
    length: usize,
}

/// Columns of one sequence of a [`Cache`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Which sequence, from 0.
    pub sequence: usize,
    /// Its first column, and the one behind its last.
    pub columns: Range<usize>,
}

impl Stretch {
    /// All of a sequence's columns up to `length`.
    pub(super) fn whole(sequence: usize, length: usize) -> Self {
        Self {
            sequence,
            columns: 0..length,
        }
    }
}

impl Model {
    /// Opens a graph, checks it against the contract, and runs one token through
    /// it: to learn V, and which provider runs each node.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Model`] names the file and what is wrong with it, by input
    /// or output; [`CaptureError::Device`] if CUDA was demanded and cannot be had.
    pub fn open(runtime: &Runtime, path: &Path, device: Device) -> Result<Self, CaptureError> {
        let refuse = |message: String| CaptureError::Model(path.to_owned(), message);
        // Named here, as a missing file should not look like a broken one.
        std::fs::File::open(path).map_err(|source| CaptureError::reading(path, source))?;
        let temporary = std::env::temp_dir();
        let scratch = UnfinishedFolder::create(&temporary, PROFILE_PREFIX);
        let scratch =
            scratch.map_err(|source| CaptureError::File(temporary, "cannot be written", source))?;
        let (session, placed, refused) =
            runtime.open(path, device, &scratch.path().join("profile"))?;
        let contract = Contract::of(session.inputs(), session.outputs()).map_err(refuse)?;
        let unusable = |error: ort::Error| refuse(runtime::one_line(&error.to_string()));
        let context = session.metadata().map_err(unusable)?.custom(OF_GRAPH);
        let binding = session.create_binding().map_err(unusable)?;
        let memory = |device| {
            MemoryInfo::new(device, 0, AllocatorType::Device, MemoryType::Default).map_err(unusable)
        };
        let cache_memory = memory(match placed {
            Placed::Cpu => AllocationDevice::CPU,
            Placed::Cuda => AllocationDevice::CUDA,
        })?;
        let mut model = Self {
            session,
            binding,
            cache_memory,
            host_memory: memory(AllocationDevice::CPU)?,
            vocabulary: contract.vocabulary.unwrap_or(0),
            contract,
            context: context.and_then(|tokens| tokens.parse().ok()),
            path: path.to_owned(),
            placement: Placement {
                device: placed,
                refused,
                nodes: Default::default(),
            },
            cache: Cache::default(),
        };
        model.start(1).map_err(refuse)?;
        let logits = model.run(&[0], &[1], &[0]).map_err(refuse)?;
        let vocabulary = logits.vocabulary;
        model.vocabulary = vocabulary;
        model.clear();
        // Without a profile there is no evidence, and none is shown.
        if let Ok(file) = model.session.end_profiling()
            && let Ok(profile) = std::fs::read(file)
        {
            model.placement.nodes = runtime::nodes_by_provider(&profile);
        }
        model.placement = model.placement.believed(device, path)?;
        Ok(model)
    }

    /// The graph's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The graph's file, and how many tokens it takes where it says so.
    pub fn context(&self) -> (&Path, Option<usize>) {
        (&self.path, self.context)
    }

    /// V: logits a row, padding included.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// K: rows that it gives behind each token, for as many tokens; 1 as a rule.
    pub fn depths(&self) -> usize {
        self.contract.depths
    }

    /// Returns what it predicts beside the next token.
    pub fn heads(&self) -> Heads {
        self.contract.heads
    }

    /// Returns where it runs.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Forgets the cache and gets ready for `batch` sequences.
    ///
    /// # Errors
    ///
    /// What the runtime says.
    pub fn start(&mut self, batch: usize) -> Result<(), String> {
        self.clear();
        self.cache.batch = batch;
        let allocator = Allocator::default();
        for tensor in &self.contract.cache {
            let shape = [batch as i64, tensor.heads, 0, tensor.width];
            let empty = DynTensor::new(&allocator, tensor.element, shape).map_err(said)?;
            self.cache.past.push(empty.into_dyn());
        }
        Ok(())
    }

    /// Releases the cache.
    pub fn clear(&mut self) {
        self.put(Cache::default());
    }

    /// Columns of the cache: tokens that were run, padding included.
    pub fn length(&self) -> usize {
        self.cache.length
    }

    /// Takes the cache out of the model, which is as after [`Self::clear`].
    ///
    /// # Errors
    ///
    /// What the runtime says, if it cannot bring the cache to the host.
    pub fn take(&mut self) -> Result<Cache, String> {
        let mut cache = std::mem::take(&mut self.cache);
        if self.placement.device == Placed::Cuda {
            let to_host = |value: DynValue| {
                let tensor = value.downcast::<DynTensorValueType>().map_err(said)?;
                let on_host = tensor.to(AllocationDevice::CPU, 0).map_err(said)?;
                Ok(on_host.into_dyn())
            };
            let moved = cache.past.into_iter().map(to_host);
            cache.past = moved.collect::<Result<_, String>>()?;
        }
        self.clear();
        Ok(cache)
    }

    /// Goes on behind a cache of this model.
    pub fn put(&mut self, cache: Cache) {
        self.binding.clear();
        self.cache = cache;
    }

    /// Forgets all columns of the cache but the first `length`.
    ///
    /// # Errors
    ///
    /// What the runtime says.
    pub fn roll_back(&mut self, length: usize) -> Result<(), String> {
        if length >= self.cache.length {
            return Ok(());
        }
        let cache = self.take()?;
        let kept: Vec<_> = (0..cache.batch)
            .map(|sequence| Stretch::whole(sequence, length))
            .collect();
        self.branch(&cache, &kept)
    }

    /// Goes on behind stretches of a cache of this model, each a sequence of its own.
    pub(super) fn branch(&mut self, cache: &Cache, stretches: &[Stretch]) -> Result<(), String> {
        self.put(cache.gather(stretches)?);
        Ok(())
    }

    /// Runs tokens behind those in the cache and keeps their keys and values.
    ///
    /// All three are row by row, `batch` rows: `ids` and `positions` of as many
    /// columns as there are new tokens, `mask` of as many as old and new together.
    ///
    /// # Errors
    ///
    /// What the runtime says, or how an output breaks the contract.
    pub fn run(&mut self, ids: &[i64], mask: &[i64], positions: &[i64]) -> Result<Logits, String> {
        let batch = self.cache.batch.max(1);
        let sequence = ids.len() / batch;
        let length = self.cache.length + sequence;
        let mut bind = |name: &str, data: &[i64], columns: usize| {
            let tensor = Tensor::from_array(([batch, columns], data.to_vec())).map_err(said)?;
            self.binding.bind_input(name, &tensor).map_err(said)
        };
        bind(IDS, ids, sequence)?;
        bind(MASK, mask, length)?;
        if self.contract.positions {
            bind(POSITIONS, positions, sequence)?;
        }
        for (tensor, past) in self.contract.cache.iter().zip(&self.cache.past) {
            self.binding
                .bind_input(tensor.past.as_str(), past)
                .map_err(said)?;
        }
        // The binding keeps each input that it needs alive.
        self.cache.past.clear();
        // Bound anew each time, or the runtime would reuse buffers of the last size.
        for name in std::iter::once(LOGITS).chain(self.contract.heads.names()) {
            self.binding
                .bind_output_to_device(name, &self.host_memory)
                .map_err(said)?;
        }
        for tensor in &self.contract.cache {
            self.binding
                .bind_output_to_device(tensor.present.as_str(), &self.cache_memory)
                .map_err(said)?;
        }
        // Copies to and from a device may still be under way.
        self.binding.synchronize_inputs().map_err(said)?;
        let mut outputs = self.session.run_binding(&self.binding).map_err(said)?;
        self.binding.synchronize_outputs().map_err(said)?;
        let mut taken = |name: &str| {
            let value = outputs.remove(name);
            value.ok_or_else(|| format!("output {name} is missing"))
        };
        let value = taken(LOGITS)?;
        let of_rows = (self.contract.depths, self.vocabulary);
        let mut logits = Logits::new(value, batch, sequence, of_rows)?;
        for name in self.contract.heads.names() {
            logits.add_head(name, &taken(name)?, batch)?;
        }
        for tensor in &self.contract.cache {
            let present = taken(&tensor.present)?;
            let expected = [batch as i64, tensor.heads, length as i64, tensor.width];
            match present.dtype().tensor_shape() {
                Some(shape) if **shape == expected => self.cache.past.push(present),
                shape => {
                    let shape = shape.map(|shape| shape.to_vec()).unwrap_or_default();
                    return Err(format!(
                        "output {} has shape {shape:?}, expected {expected:?}",
                        tensor.present
                    ));
                }
            }
        }
        drop(outputs);
        self.cache.length = length;
        Ok(logits)
    }

    /// [`Self::run`], whose seconds are added to others.
    pub(super) fn run_timed(
        &mut self,
        ids: &[i64],
        mask: &[i64],
        positions: &[i64],
        seconds: &mut f64,
    ) -> Result<Logits, String> {
        let started = Instant::now();
        let logits = self.run(ids, mask, positions);
        *seconds += started.elapsed().as_secs_f64();
        logits
    }

    /// A run over these prompts, of which the first and the last are named, failed.
    pub(super) fn failed(
        &self,
        [first, last]: [&str; 2],
        position: usize,
        message: String,
    ) -> CaptureError {
        CaptureError::Run {
            path: self.path.clone(),
            first: first.to_owned(),
            last: last.to_owned(),
            position,
            message,
        }
    }

    /// Returns what it says of a prompt's text is no law, or no probability.
    pub(super) fn broken(&self, id: &str, position: usize, message: String) -> CaptureError {
        CaptureError::Logits {
            path: self.path.clone(),
            id: id.to_owned(),
            position,
            message,
        }
    }
}

/// The first V numbers of a row.
pub(super) fn cut(row: Result<&[f32], String>, vocabulary: usize) -> Result<&[f32], String> {
    let row = row?;
    row.get(..vocabulary)
        .ok_or_else(|| format!("has {} logits, expected {vocabulary}", row.len()))
}

/// V of the rows of both models: their own, or the first `asked` of both.
pub(super) fn common_vocabulary(
    target: &Model,
    draft: &Model,
    asked: Option<usize>,
) -> Result<usize, CaptureError> {
    let (p, q) = (target.vocabulary(), draft.vocabulary());
    match asked {
        None if p == q => Ok(p),
        Some(kept) if kept >= 1 && kept <= p.min(q) => Ok(kept),
        asked => Err(CaptureError::Vocabulary {
            target: p,
            draft: q,
            asked,
        }),
    }
}

impl Cache {
    /// Columns, padding included.
    pub fn length(&self) -> usize {
        self.length
    }

    /// A cache of some stretches, each a sequence of its own, padded on the left to the
    /// longest of them. Padding is 0 and has to be masked.
    ///
    /// # Errors
    ///
    /// What the runtime says, or that a stretch is not of this cache.
    pub fn gather(&self, stretches: &[Stretch]) -> Result<Self, String> {
        for Stretch { sequence, columns } in stretches {
            if *sequence >= self.batch || columns.start > columns.end || columns.end > self.length {
                return Err(format!(
                    "columns {columns:?} of sequence {sequence} are not in a cache of {} by {}",
                    self.batch, self.length
                ));
            }
        }
        let length = stretches.iter().map(|stretch| stretch.columns.len()).max();
        let length = length.unwrap_or(0);
        let past = self.past.iter().map(|value| {
            let half = value.dtype().tensor_type() == Some(TensorElementType::Float16);
            if half {
                gathered::<f16>(value, stretches, length)
            } else {
                gathered::<f32>(value, stretches, length)
            }
        });
        Ok(Self {
            past: past.collect::<Result<_, _>>()?,
            batch: stretches.len(),
            length,
        })
    }
}

/// One tensor of [`Cache::gather`]: \[sequences, heads, length, width\].
fn gathered<T: PrimitiveTensorElementType + Copy + Default + std::fmt::Debug + 'static>(
    value: &DynValue,
    stretches: &[Stretch],
    length: usize,
) -> Result<DynValue, String> {
    let (shape, data) = value.try_extract_tensor::<T>().map_err(said)?;
    let &[_, heads, old, width] = &**shape else {
        return Err(format!("a cache has shape {shape:?}, expected 4 axes"));
    };
    let (heads, old, width) = (heads as usize, old as usize, width as usize);
    let shape = [stretches.len(), heads, length, width];
    if shape.contains(&0) {
        let shape = shape.map(|size| size as i64);
        let element = value
            .dtype()
            .tensor_type()
            .unwrap_or(TensorElementType::Float32);
        let empty = DynTensor::new(&Allocator::default(), element, shape).map_err(said)?;
        return Ok(empty.into_dyn());
    }
    let mut kept = vec![T::default(); shape.iter().product()];
    let heads_of = kept.chunks_exact_mut(length * width);
    let sources = stretches
        .iter()
        .flat_map(|stretch| (0..heads).map(move |head| (stretch, head)));
    for (to, (Stretch { sequence, columns }, head)) in heads_of.zip(sources) {
        let first = (sequence * heads + head) * old;
        let from = (first + columns.start) * width..(first + columns.end) * width;
        let padding = (length - columns.len()) * width;
        if let (Some(from), Some(to)) = (data.get(from), to.get_mut(padding..)) {
            to.copy_from_slice(from);
        }
    }
    let tensor = Tensor::from_array((shape, kept)).map_err(said)?;
    Ok(tensor.into_dyn())
}

fn said(error: ort::Error) -> String {
    runtime::one_line(&error.to_string())
}

impl Contract {
    fn of(inputs: &[Outlet], outputs: &[Outlet]) -> Result<Self, String> {
        let input = |name: &str| inputs.iter().find(|outlet| outlet.name() == name);
        let output = |name: &str| outputs.iter().find(|outlet| outlet.name() == name);
        for name in [IDS, MASK] {
            let found = input(name).ok_or_else(|| {
                let present: Vec<_> = inputs.iter().take(8).map(Outlet::name).collect();
                format!("has no input {name} (it has {}); export a causal language model with a key-value cache", present.join(", "))
            })?;
            check_integers(found)?;
        }
        let positions = match input(POSITIONS) {
            Some(found) => {
                check_integers(found)?;
                true
            }
            None => false,
        };
        let logits = output(LOGITS).ok_or_else(|| format!("has no output {LOGITS}"))?;
        let rank = logits.dtype().tensor_shape().map(|shape| shape.len());
        let shape = check_numbers("output", logits, if rank == Some(4) { 4 } else { 3 })?;
        let fixed = |size: i64| usize::try_from(size).ok().filter(|&size| size > 0);
        let depths = match shape[..] {
            [_, _, depths, _] => fixed(depths).ok_or_else(|| {
                format!(
                    "output {LOGITS} has shape {}; of 4 axes the third, rows behind each token, must \
                     be a fixed number",
                    logits.dtype()
                )
            })?,
            _ => 1,
        };
        let vocabulary = shape.last().copied().and_then(fixed);
        let mut cache = Vec::new();
        for past in inputs {
            let name = past.name();
            if [IDS, MASK, POSITIONS].contains(&name) {
                continue;
            }
            let Some(rest) = name.strip_prefix(PAST) else {
                return Err(format!(
                    "input {name} is none of {IDS}, {MASK}, {POSITIONS}, {PAST}*; the graph needs what this command cannot give"
                ));
            };
            let shape = check_numbers("input", past, 4)?;
            let present = format!("{PRESENT}{rest}");
            let outlet = output(&present).ok_or_else(|| {
                format!("has input {name} and no output {present} to continue it")
            })?;
            check_numbers("output", outlet, 4)?;
            if outlet.dtype().tensor_type() != past.dtype().tensor_type() {
                return Err(format!("input {name} and output {present} differ in type"));
            }
            if shape[1] <= 0 || shape[3] <= 0 {
                return Err(format!(
                    "input {name} has shape {}; heads and width (axes 1 and 3) must be fixed numbers",
                    past.dtype()
                ));
            }
            cache.push(CacheTensor {
                past: name.to_owned(),
                present,
                element: past
                    .dtype()
                    .tensor_type()
                    .unwrap_or(TensorElementType::Float32),
                heads: shape[1],
                width: shape[3],
            });
        }
        let mut heads = Heads::default();
        for (name, found) in [
            (ACCEPTANCE, &mut heads.acceptance),
            (OVERLAP, &mut heads.overlap),
        ] {
            if let Some(outlet) = output(name) {
                check_numbers("output", outlet, 2)?;
                *found = true;
            }
        }
        if cache.is_empty() {
            return Err(format!(
                "has no inputs {PAST}*; graphs without a key-value cache are not supported, export one with it"
            ));
        }
        Ok(Self {
            positions,
            cache,
            heads,
            vocabulary,
            depths,
        })
    }
}

fn check_integers(outlet: &Outlet) -> Result<(), String> {
    let dtype = outlet.dtype();
    let rank = dtype.tensor_shape().map(|shape| shape.len());
    if dtype.tensor_type() == Some(TensorElementType::Int64) && rank == Some(2) {
        return Ok(());
    }
    Err(format!(
        "input {} is {dtype}; expected i64 of 2 axes, [batch, sequence]",
        outlet.name()
    ))
}

fn check_numbers(side: &str, outlet: &Outlet, rank: usize) -> Result<Vec<i64>, String> {
    let dtype = outlet.dtype();
    let shape = dtype.tensor_shape().map(|shape| shape.to_vec());
    match (dtype.tensor_type(), shape) {
        (Some(TensorElementType::Float32 | TensorElementType::Float16), Some(shape))
            if shape.len() == rank =>
        {
            Ok(shape)
        }
        _ => Err(format!(
            "{side} {} is {dtype}; expected f32 or f16 of {rank} axes",
            outlet.name()
        )),
    }
}

/// The logits of one run, \[batch, sequence, V\], and what heads predict with them.
pub struct Logits {
    value: DynValue,
    sequence: usize,
    vocabulary: usize,
    /// K: rows behind each token.
    depths: usize,
    half: bool,
    /// \[batch, sequence\], empty without the head.
    acceptance: Vec<f64>,
    overlap: Vec<f64>,
}

impl Logits {
    fn new(
        value: DynValue,
        batch: usize,
        sequence: usize,
        (depths, vocabulary): (usize, usize),
    ) -> Result<Self, String> {
        let shape = value.dtype().tensor_shape().map(|shape| shape.to_vec());
        let shape = shape.unwrap_or_default();
        let places = [batch as i64, sequence as i64];
        let fits = match shape[..] {
            [a, b, size] => depths == 1 && [a, b] == places && size > 0,
            [a, b, rows, size] => rows == depths as i64 && [a, b] == places && size > 0,
            _ => false,
        };
        let own = shape.last().and_then(|&size| usize::try_from(size).ok());
        let own = own.filter(|&own| fits && (vocabulary == 0 || own == vocabulary));
        let Some(vocabulary) = own else {
            let rows = match depths {
                1 => String::new(),
                _ => format!("{depths}, "),
            };
            return Err(format!(
                "output {LOGITS} has shape {shape:?}, expected [{batch}, {sequence}, {rows}{}]",
                if vocabulary == 0 {
                    "V".to_owned()
                } else {
                    vocabulary.to_string()
                }
            ));
        };
        let half = match value.dtype().tensor_type() {
            Some(TensorElementType::Float32) => false,
            Some(TensorElementType::Float16) => true,
            _ => return Err(format!("output {LOGITS} is neither f32 nor f16")),
        };
        Ok(Self {
            sequence,
            vocabulary,
            depths,
            half,
            value,
            acceptance: Vec::new(),
            overlap: Vec::new(),
        })
    }

    /// Takes what a head predicts.
    fn add_head(&mut self, name: &str, value: &DynValue, batch: usize) -> Result<(), String> {
        let shape = value.dtype().tensor_shape().map(|shape| shape.to_vec());
        let expected = [batch as i64, self.sequence as i64];
        if shape.as_deref() != Some(&expected) {
            return Err(format!(
                "output {name} has shape {:?}, expected {expected:?}",
                shape.unwrap_or_default()
            ));
        }
        let numbers: Vec<f64> = if value.dtype().tensor_type() == Some(TensorElementType::Float16) {
            let (_, data) = value.try_extract_tensor::<f16>().map_err(said)?;
            data.iter().map(|&x| x.into()).collect()
        } else {
            let (_, data) = value.try_extract_tensor::<f32>().map_err(said)?;
            data.iter().map(|&x| x.into()).collect()
        };
        if name == ACCEPTANCE {
            self.acceptance = numbers;
        } else {
            self.overlap = numbers;
        }
        Ok(())
    }

    /// The predicted acceptance of the last token that was run of a sequence; none without
    /// the head.
    ///
    /// # Errors
    ///
    /// That what the graph says is no probability.
    pub fn acceptance(&self, sequence: usize) -> Result<Option<f64>, String> {
        self.predicted(ACCEPTANCE, &self.acceptance, sequence)
    }

    /// The predicted overlap of the token after the last of a sequence; none without the
    /// head.
    ///
    /// # Errors
    ///
    /// That what the graph says is no probability.
    pub fn overlap(&self, sequence: usize) -> Result<Option<f64>, String> {
        self.predicted(OVERLAP, &self.overlap, sequence)
    }

    fn predicted(
        &self,
        name: &str,
        numbers: &[f64],
        sequence: usize,
    ) -> Result<Option<f64>, String> {
        let last = (sequence + 1) * self.sequence;
        let Some(&x) = last.checked_sub(1).and_then(|last| numbers.get(last)) else {
            return Ok(None);
        };
        if (0.0..=1.0).contains(&x) {
            return Ok(Some(x));
        }
        Err(format!("output {name} is {x}; it must be in [0, 1]"))
    }

    /// The row after the last token of a sequence, V numbers; `scratch` is used
    /// if they have to be converted.
    ///
    /// # Errors
    ///
    /// What the runtime says, or that there is no such sequence.
    pub fn last<'a>(
        &'a self,
        sequence: usize,
        scratch: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], String> {
        self.row(sequence, self.sequence.saturating_sub(1), scratch)
    }

    /// The rows after the last token of a sequence at every depth, K V numbers, of each its first
    /// `kept`; `scratch` is used if they have to be converted or cut.
    ///
    /// # Errors
    ///
    /// What the runtime says, or that there is no such sequence.
    pub fn last_depths<'a>(
        &'a self,
        sequence: usize,
        kept: usize,
        scratch: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], String> {
        let (depths, vocabulary) = (self.depths, self.vocabulary);
        if depths == 1 || kept > vocabulary {
            return cut(self.last(sequence, scratch), kept);
        }
        let mut all = Vec::with_capacity(depths * kept);
        let place = self.sequence.saturating_sub(1);
        for depth in 0..depths {
            let row = self.row_at(sequence, (place, depth), scratch)?;
            all.extend(row.iter().take(kept));
        }
        *scratch = all;
        Ok(scratch)
    }

    /// The logits after the token at a place among those that were run.
    ///
    /// # Errors
    ///
    /// What the runtime says, or that there is no such row.
    pub fn row<'a>(
        &'a self,
        sequence: usize,
        place: usize,
        scratch: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], String> {
        self.row_at(sequence, (place, 0), scratch)
    }

    fn row_at<'a>(
        &'a self,
        sequence: usize,
        (place, depth): (usize, usize),
        scratch: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], String> {
        let v = self.vocabulary;
        let begin = ((sequence * self.sequence + place) * self.depths + depth) * v;
        let range = begin..begin + v;
        let missing = || format!("output {LOGITS} has no row for sequence {sequence}");
        if place >= self.sequence {
            return Err(missing());
        }
        if self.half {
            let (_, data) = self.value.try_extract_tensor::<f16>().map_err(said)?;
            let row = data.get(range).ok_or_else(missing)?;
            scratch.clear();
            scratch.extend(row.iter().map(|number| number.to_f32()));
            return Ok(scratch);
        }
        let (_, data) = self.value.try_extract_tensor::<f32>().map_err(said)?;
        data.get(range).ok_or_else(missing)
    }
}
