//! Rollouts: what the draft model writes on its own from some prefixes of the text.
//!
//! A rollout that starts at position r of a log has the prefix of r's rows, and K tokens
//!
//! ```text
//! x_1 ~ q(. | prefix),  x_2 ~ q(. | prefix, x_1),  ...,  x_K
//! ```
//!
//! with what was seen at each of them. `docs/reference/log-format.md` lists the tensors.

use super::error::LogError;
use super::metadata::RolloutRecord;
use super::reader::Log;
use super::rollout_tensors::{ARGMAX, ENTROPY, FLOATS, IDS, POSITION, Q, TOKEN, names};
use super::row::{Row, RowKind};
use super::shard::Shard;
use super::tensor::Tensor;
use specgap_base::sorted::Map;
use specgap_entries::{Dtype, Scratch};
use std::path::{Path, PathBuf};

/// The newest version of rollouts that is read: several start at a position.
const VERSION: u32 = 2;

const CURE: &str =
    "capture the log anew with ⟨rollouts⟩, or leave out its rollout_* tensors altogether";

/// One rollout, drawn from the draft behind one prefix of the text.
///
/// Each list has an entry a token. q is the draft's law of that token, given the prefix
/// and the tokens of the rollout before it, at the temperature of [`RolloutRecord`]; lists
/// that the log does not have are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rollout<'a> {
    /// The number of the position that it starts at: its prefix is that of this position's
    /// rows, so that the draft's row there is the law of its first token.
    pub position: usize,
    /// The tokens drawn.
    pub tokens: &'a [u32],
    /// q(token), in (0, 1\].
    pub q: &'a [f64],
    /// The token with the largest q, the lowest id among equals.
    pub argmax: &'a [u32],
    /// The largest q, in (0, 1\].
    pub top1: &'a [f64],
    /// -sum q ln q, in nats.
    pub entropy: &'a [f64],
    /// The largest q less the second largest, in \[0, 1\].
    pub margin: &'a [f64],
    /// The probability of acceptance that a head predicts for the token, from what the
    /// draft knows once it has read it, in \[0, 1\].
    pub acceptance: &'a [f64],
    /// p(token), p being the target's law that the log's `token` is drawn from.
    pub target_p: &'a [f64],
    /// Sum of min(p, q) over the vocabulary.
    pub overlap: &'a [f64],
    /// The overlap that a head predicts before the token is drawn, in \[0, 1\].
    pub head_overlap: &'a [f64],
}

impl<'a> Rollout<'a> {
    /// Lists its numbers in the order of `FLOATS`.
    fn floats(&self) -> [&'a [f64]; FLOATS.len()] {
        [
            self.q,
            self.top1,
            self.entropy,
            self.margin,
            self.acceptance,
            self.target_p,
            self.overlap,
            self.head_overlap,
        ]
    }
}

/// Columns of rollouts, one row each.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    positions: Vec<usize>,
    /// Tokens before each rollout's first, and at last of all.
    starts: Vec<usize>,
    tokens: Vec<u32>,
    argmax: Vec<u32>,
    /// In the order of `FLOATS`.
    floats: [Vec<f64>; FLOATS.len()],
}

impl Columns {
    pub(super) fn get(&self, index: usize) -> Option<Rollout<'_>> {
        let position = *self.positions.get(index)?;
        let begin = *self.starts.get(index)?;
        let end = self
            .starts
            .get(index + 1)
            .copied()
            .unwrap_or(self.tokens.len());
        let [
            q,
            top1,
            entropy,
            margin,
            acceptance,
            target_p,
            overlap,
            head_overlap,
        ] = self
            .floats
            .each_ref()
            .map(|list| list.get(begin..end).unwrap_or(&[]));
        Some(Rollout {
            position,
            tokens: self.tokens.get(begin..end).unwrap_or(&[]),
            argmax: self.argmax.get(begin..end).unwrap_or(&[]),
            q,
            top1,
            entropy,
            margin,
            acceptance,
            target_p,
            overlap,
            head_overlap,
        })
    }

    pub(super) fn push(&mut self, rollout: &Rollout<'_>) {
        self.positions.push(rollout.position);
        self.starts.push(self.tokens.len());
        self.tokens.extend(rollout.tokens);
        self.argmax.extend(rollout.argmax);
        for (list, more) in self.floats.iter_mut().zip(rollout.floats()) {
            list.extend(more);
        }
    }

    fn len(&self) -> usize {
        self.positions.len()
    }

    /// The tensors that hold them: name, type, shape and bytes. All have as many tokens.
    pub(super) fn encoded(&self) -> Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)> {
        let rollouts = self.len();
        let Some(length) = self.tokens.len().checked_div(rollouts) else {
            return Vec::new();
        };
        let integers = |values: &mut dyn Iterator<Item = i64>| -> Vec<u8> {
            values.flat_map(i64::to_le_bytes).collect()
        };
        let mut tensors = vec![(
            POSITION,
            Dtype::I64,
            vec![rollouts],
            // Positions are counted in memory, far below 2^63.
            integers(&mut self.positions.iter().map(|&position| position as i64)),
        )];
        for (name, ids) in [(TOKEN, &self.tokens), (ARGMAX, &self.argmax)] {
            if !ids.is_empty() {
                let bytes = integers(&mut ids.iter().map(|&id| i64::from(id)));
                tensors.push((name, Dtype::I64, vec![rollouts, length], bytes));
            }
        }
        for (name, list) in FLOATS.into_iter().zip(&self.floats) {
            if !list.is_empty() {
                let bytes = list.iter().flat_map(|x| x.to_le_bytes()).collect();
                tensors.push((name, Dtype::F64, vec![rollouts, length], bytes));
            }
        }
        tensors
    }
}

/// Refuses a rollout that does not go with those before it: other lengths, other lists.
pub(super) fn check_shape(
    directory: &Path,
    rollout: &Rollout<'_>,
    first: &Rollout<'_>,
) -> Result<(), LogError> {
    let k = rollout.tokens.len();
    // Of those before it, q has as many entries as tokens, too.
    let lists = |rollout: &Rollout<'_>| (rollout.argmax.len(), rollout.floats().map(<[f64]>::len));
    let (argmax, floats) = lists(rollout);
    let fits = k > 0
        && rollout.q.len() == k
        && first.tokens.len() == k
        && lists(first) == (argmax, floats)
        && (floats.iter().chain([&argmax])).all(|&length| length == 0 || length == k);
    if fits {
        return Ok(());
    }
    Err(LogError::format(
        directory,
        format!(
            "the rollout at position {} has lists of other lengths than its {k} tokens, or than \
             the rollouts before it; all have one token at least and the same lists",
            rollout.position
        ),
    ))
}

/// The rollouts of a log, checked to the entry.
///
/// # Example
///
/// ```
/// use specgap_log::log::{Layout, Log, LogWriter, Metadata, Position, Rollout};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("log");
/// let mut writer = LogWriter::create(&path, Metadata::default(), Layout::new(2))?;
/// let row = [0.0, 0.0];
/// writer.append(&Position { prompt_id: 0, position: 0, token: 1, target: &row, draft: &row })?;
/// writer.append_rollout(&Rollout {
///     position: 0,
///     tokens: &[1, 0],
///     q: &[0.5, 0.75],
///     ..Rollout::default()
/// })?;
/// writer.commit()?;
/// let rollouts = Log::open(&path)?.rollouts()?.unwrap();
/// let first = rollouts.iter().next().unwrap();
/// assert_eq!((first.position, first.tokens, first.q), (0, &[1, 0][..], &[0.5, 0.75][..]));
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rollouts {
    columns: Columns,
    length: usize,
    record: Option<RolloutRecord>,
    /// File and row of each, for messages.
    places: Vec<(usize, usize)>,
    files: Vec<PathBuf>,
    /// Those of each position, in the log's order.
    by_position: Map<usize, Vec<usize>>,
}

impl Rollouts {
    /// Counts them.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// K, the most tokens that one has.
    pub fn max_tokens(&self) -> usize {
        self.length
    }

    /// Returns how they were drawn, if the log says.
    pub fn record(&self) -> Option<&RolloutRecord> {
        self.record.as_ref()
    }

    /// The rollout of this number, in the log's order.
    pub fn get(&self, index: usize) -> Option<Rollout<'_>> {
        self.columns.get(index)
    }

    /// All of them, in the log's order.
    pub fn iter(&self) -> impl Iterator<Item = Rollout<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The number of the first rollout that starts at a position of the log, if one does.
    pub fn at(&self, position: usize) -> Option<usize> {
        self.paths_at(position).first().copied()
    }

    /// The numbers of all rollouts that start at a position of the log: draft paths, i.i.d.
    /// from q given the prefix.
    pub fn paths_at(&self, position: usize) -> &[usize] {
        self.by_position.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Every position at which one starts, in the log's order, with the numbers of all that
    /// start there.
    pub fn anchors(&self) -> impl Iterator<Item = (usize, &[usize])> {
        let all = self.by_position.iter();
        all.map(|(&position, paths)| (position, paths.as_slice()))
    }

    /// Checks a rollout against the rows of the position that it says it starts at: q of
    /// its first token must be the draft's there. Differences up to what the types of the
    /// rows and runs in other batches make are let pass.
    ///
    /// # Errors
    ///
    /// [`LogError::Entry`] names file, rollout and cure if they do not fit.
    pub fn check_row(&self, index: usize, row: &Row, log: &Log) -> Result<(), LogError> {
        let (Some(rollout), Some(record)) = (self.get(index), &self.record) else {
            // Without its temperature, a rollout's q cannot be compared.
            return Ok(());
        };
        let (Some(&token), Some(&q)) = (rollout.tokens.first(), rollout.q.first()) else {
            return Ok(());
        };
        let place = if row.token_ids.is_empty() {
            usize::try_from(token).ok()
        } else {
            // Of a token that is not listed, the row says nothing.
            row.token_ids.iter().position(|&id| id == token)
        };
        let entry = place.and_then(|place| row.draft.get(place));
        let Some(&entry) = entry.filter(|entry| !entry.is_nan()) else {
            return Ok(());
        };
        let probabilities = row.draft_kind == RowKind::Probabilities;
        let logit = |x: f64| if probabilities { x.ln() } else { x };
        let ratio = log.metadata().applied() / record.temperature;
        let largest = row.draft.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (largest, entry) = (logit(largest), logit(entry));
        let expected = if record.temperature == 0.0 {
            if entry == largest {
                0.0
            } else {
                f64::NEG_INFINITY
            }
        } else {
            let sum: f64 = row
                .draft
                .iter()
                .filter(|x| !x.is_nan())
                .map(|&x| ((logit(x) - largest) * ratio).exp())
                .sum();
            let listed = if row.token_ids.is_empty() {
                1.0
            } else if let Some(listed) = listed_mass(row, log, record) {
                listed
            } else {
                return Ok(());
            };
            (entry - largest) * ratio + (listed / sum).ln()
        };
        let step = match log.dtypes().1 {
            Dtype::F16 => 2f64.powi(-10),
            Dtype::Bf16 => 2f64.powi(-7),
            _ => 2f64.powi(-20),
        };
        let spread = if record.temperature == 0.0 {
            0.0
        } else {
            (0.1 + (entry - largest).abs() * step) * ratio
        };
        if (q.ln() - expected).abs() <= spread.max(1e-6) {
            return Ok(());
        }
        let (file, line) = self.places.get(index).copied().unwrap_or_default();
        let path = self.files.get(file).map_or(log.path(), PathBuf::as_path);
        Err(LogError::entry(
            path,
            Q,
            line,
            0,
            format!(
                "is {q}, but the draft's row at position {} gives token {token} probability {:.6} \
                 at temperature {}; the rollout belongs to another position or temperature; {CURE}",
                rollout.position,
                expected.exp(),
                record.temperature
            ),
        ))
    }
}

/// The draft's mass of the tokens that a top-heavy row lists, at the rollouts' temperature;
/// nothing if the log does not have it.
fn listed_mass(row: &Row, log: &Log, record: &RolloutRecord) -> Option<f64> {
    let temperatures = &log.metadata().rest_temperatures;
    let column = temperatures.iter().position(|&t| t == record.temperature)?;
    row.draft_rest.get(column).map(|rest| 1.0 - rest)
}

impl Log {
    /// Tells whether any of the log's files has rollouts.
    pub fn has_rollouts(&self) -> bool {
        self.shards.iter().any(|shard| !shard.rollouts.is_empty())
    }

    /// Reads all rollouts of the log, if it has any, and checks every entry.
    ///
    /// Memory: about 64 bytes a token of a rollout, and 100 a position that has one.
    ///
    /// # Errors
    ///
    /// [`LogError`] with file, tensor and entry: shapes that do not go together, a rollout
    /// at no position of the log or more than it says at the same, tokens outside the
    /// vocabulary, numbers that are no probabilities; a version of rollouts that is not
    /// known.
    pub fn rollouts(&self) -> Result<Option<Rollouts>, LogError> {
        if !self.has_rollouts() {
            return Ok(None);
        }
        let record = self.metadata().rollouts.clone();
        if let Some(record) = &record {
            check_record(self.path(), record)?;
        }
        let mut all = Rollouts {
            record,
            ..Rollouts::default()
        };
        let mut lists = None;
        for shard in self
            .shards
            .iter()
            .filter(|shard| !shard.rollouts.is_empty())
        {
            let tensors = Tensors::of(shard)?;
            let held: Vec<&str> = tensors.optional.keys().copied().collect();
            if let Some(before) = lists.as_ref().filter(|&before| *before != held) {
                return Err(LogError::format(
                    &shard.path,
                    format!(
                        "its rollouts have {held:?}, those of files before it {before:?}; {CURE}"
                    ),
                ));
            }
            lists = Some(held);
            tensors.read(self, shard, &mut all)?;
        }
        Ok(Some(all))
    }
}

fn check_record(path: &Path, record: &RolloutRecord) -> Result<(), LogError> {
    let refused = |message: String| Err(LogError::format(path, message));
    if !(1..=VERSION).contains(&record.version) {
        return refused(format!(
            "its rollouts are of version {}; this version of specgap reads 1 to {VERSION}",
            record.version
        ));
    }
    if record.paths == 0 || record.version == 1 && record.paths > 1 {
        return refused(format!(
            "its rollouts are of version {} with paths {}; version 1 has 1 at a position, \
                 and version 2 one or more",
            record.version, record.paths
        ));
    }
    let chance = record.inclusion_probability;
    if !(chance > 0.0 && chance <= 1.0) {
        return refused(format!(
            "its rollouts have inclusion_probability {chance}; it must be in (0, 1]"
        ));
    }
    let temperature = record.temperature;
    if !(temperature >= 0.0 && temperature.is_finite()) {
        return refused(format!(
            "its rollouts have temperature {temperature}; it must be finite and >= 0"
        ));
    }
    Ok(())
}

/// The tensors of one file, with shapes that go together.
struct Tensors<'a> {
    position: &'a Tensor,
    token: &'a Tensor,
    q: &'a Tensor,
    optional: Map<&'static str, &'a Tensor>,
}

impl<'a> Tensors<'a> {
    fn of(shard: &'a Shard) -> Result<Self, LogError> {
        let path = &shard.path;
        let refused = |name: &str, message: String| Err(LogError::tensor(path, name, message));
        if let Some((name, dtype)) = shard.rollouts.unreadable.first_key_value() {
            return refused(
                name,
                format!(
                    "has entries of type {dtype}; it must be i64, i32 or floating point; {CURE}"
                ),
            );
        }
        let get = |name: &str| shard.rollouts.tensors.get(name);
        let needed = |name: &'static str| {
            get(name).ok_or_else(|| {
                LogError::tensor(
                    path,
                    name,
                    format!("is missing although the file has other rollout_* tensors; {CURE}"),
                )
            })
        };
        let (position, token, q) = (needed(POSITION)?, needed(TOKEN)?, needed(Q)?);
        let rollouts = position.rows();
        if position.shape.len() != 1 || position.dtype.is_float() {
            return refused(
                POSITION,
                format!(
                    "is {} of shape {:?}; it must be i64 or i32 of shape [M]; {CURE}",
                    position.dtype, position.shape
                ),
            );
        }
        let columns = token.columns();
        for name in IDS.into_iter().chain(FLOATS) {
            let Some(tensor) = get(name) else { continue };
            let integers = IDS.contains(&name);
            let fits = tensor.shape.len() == 2
                && tensor.rows() == rollouts
                && tensor.columns() == columns
                && columns > 0
                && tensor.dtype.is_float() != integers;
            if !fits {
                return refused(
                    name,
                    format!(
                        "is {} of shape {:?}; it must be {} of shape [M, K], with M = {rollouts} as \
                         {POSITION} has and one K >= 1 for all; {CURE}",
                        tensor.dtype,
                        tensor.shape,
                        if integers {
                            "i64 or i32"
                        } else {
                            "floating point"
                        }
                    ),
                );
            }
        }
        let optional = names()
            .filter(|name| ![POSITION, TOKEN, Q].contains(name))
            .filter_map(|name| get(name).map(|tensor| (name, tensor)))
            .collect();
        Ok(Self {
            position,
            token,
            q,
            optional,
        })
    }

    fn read(&self, log: &Log, shard: &Shard, all: &mut Rollouts) -> Result<(), LogError> {
        let path = &shard.path;
        let rollouts = 0..self.position.rows();
        let positions = self.position.window(rollouts.clone())?;
        let tokens = self.token.window(rollouts.clone())?;
        let mut floats = Vec::new();
        for (list, name) in FLOATS.into_iter().enumerate() {
            let tensor = if name == Q {
                Some(self.q)
            } else {
                self.optional.get(name).copied()
            };
            if let Some(tensor) = tensor {
                floats.push((list, name, tensor.window(rollouts.clone())?));
            }
        }
        let argmax = (self.optional.get(ARGMAX))
            .map(|tensor| tensor.window(rollouts.clone()))
            .transpose()?;
        all.length = all.length.max(self.token.columns());
        let file = all.files.len();
        all.files.push(path.clone());
        let vocabulary = log.vocabulary();
        let (mut scratch, mut entries) = (Scratch::default(), Vec::new());
        for line in rollouts {
            let refuse = |name: &str, column: usize, message: String| {
                LogError::entry(path, name, line, column, format!("{message}; {CURE}"))
            };
            let position = positions.integers(line).next().unwrap_or(-1);
            let number = usize::try_from(position)
                .ok()
                .filter(|&number| number < log.positions())
                .ok_or_else(|| {
                    let message = format!(
                        "is {position}, which is no position of the log: it has {}, counted from 0 \
                         over all its files",
                        log.positions()
                    );
                    refuse(POSITION, 0, message)
                })?;
            let index = all.columns.positions.len();
            let most = all.record.as_ref().map_or(1, |record| record.paths);
            let here = all.by_position.at(number);
            if here.len() >= most {
                let message = format!(
                    "is {number}, where {} already; metadata.rollouts.paths says how many may",
                    match here.len() {
                        1 => "another rollout starts".to_owned(),
                        several => format!("{several} other rollouts start"),
                    }
                );
                return Err(refuse(POSITION, 0, message));
            }
            here.push(index);
            let outside = |name: &str, column: usize, id: i64| {
                let message = format!("token {id} is outside the vocabulary of {vocabulary}");
                refuse(name, column, message)
            };
            let begin = all.columns.tokens.len();
            let mut ended = false;
            for (column, id) in tokens.integers(line).enumerate() {
                // Unused places are at the end, and not the first.
                ended |= id == -1 && column > 0;
                if ended && id == -1 {
                    continue;
                }
                let token = u32::try_from(id)
                    .ok()
                    .filter(|&token| (token as usize) < vocabulary && !ended)
                    .ok_or_else(|| outside(TOKEN, column, id))?;
                all.columns.tokens.push(token);
            }
            let length = all.columns.tokens.len() - begin;
            all.columns.positions.push(number);
            all.columns.starts.push(begin);
            all.places.push((file, line));
            if let Some(argmax) = &argmax {
                for (column, id) in argmax.integers(line).take(length).enumerate() {
                    let token = u32::try_from(id)
                        .ok()
                        .filter(|&token| (token as usize) < vocabulary)
                        .ok_or_else(|| outside(ARGMAX, column, id))?;
                    all.columns.argmax.push(token);
                }
            }
            for (list, name, window) in &floats {
                window.floats(line, length, &mut scratch, &mut entries);
                let (low, high) = limits(name, vocabulary);
                // What a type rounds may lie beyond the limit by that much.
                let slack = if window.tensor.dtype == Dtype::F64 {
                    1e-9
                } else {
                    window.tensor.dtype.sum_tolerance()
                };
                for (column, &x) in entries.iter().enumerate() {
                    let fits = x >= low && x <= high * (1.0 + slack) + slack;
                    if !fits || *name == Q && x <= 0.0 {
                        let what = match *name {
                            Q => {
                                "the probability of a token that was drawn is in (0, 1]".to_owned()
                            }
                            ENTROPY => format!("an entropy is in [0, ln V], here [0, {high:.3}]"),
                            _ => "it must be in [0, 1]".to_owned(),
                        };
                        return Err(refuse(name, column, format!("is {x}; {what}")));
                    }
                }
                if let Some(list) = all.columns.floats.get_mut(*list) {
                    list.extend(&entries);
                }
            }
        }
        Ok(())
    }
}

fn limits(name: &str, vocabulary: usize) -> (f64, f64) {
    match name {
        ENTROPY => (0.0, (vocabulary as f64).ln()),
        _ => (0.0, 1.0),
    }
}
