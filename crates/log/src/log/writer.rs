//! Writing a log that survives being killed.

use super::beside::{DRAFT_ROW, HEAD_ACCEPTANCE, HEAD_OVERLAP};
use super::encoded::{Encoded, encode, filled, write_npz, write_safetensors};
use super::engine::EngineRecord;
use super::error::{LogError, outside};
use super::joined::join;
use super::metadata::{INDEX_NAME, Index, Metadata, SCHEMA, ShardEntry, SharedShard};
use super::open::{read_file, read_index};
use super::reader::Log;
use super::rollouts::{Columns, Rollout, check_shape};
use super::row::RowKind;
use super::shared::{self, SHARED};
use specgap_base::files::Unfinished;
use specgap_base::typed;
use specgap_entries::{Dtype, FormGuard};
use std::borrow::Cow;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The kind of file that shards are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Container {
    /// `.safetensors`.
    #[default]
    Safetensors,
    /// `.npz`, without compression so that it can be read in place.
    Npz,
}

impl Container {
    fn extension(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Npz => "npz",
        }
    }
}

/// Which entries of a row are kept.
#[derive(Clone, Debug, PartialEq)]
pub enum KeptTokens {
    /// All V.
    All,
    /// The `count` most probable tokens of the target and those of the draft,
    /// for both rows, with the mass of all others at some temperatures.
    Top {
        /// How many of each.
        count: usize,
        /// The temperatures at which the rest's mass is computed, from the full
        /// row before it is rounded to the log's type.
        rest_temperatures: Vec<f64>,
    },
    /// Those that the caller lists, of the target and of the draft apart, by
    /// [`LogWriter::append_lists`].
    Lists,
}

/// How rows are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// V.
    pub vocabulary: usize,
    /// The type of the rows: f16, bf16, f32 or f64. Rows of the half types are
    /// shifted so that their largest entry is 0, where these types are finest;
    /// logits are defined up to a constant. Lists are f32 whatever it is.
    pub dtype: Dtype,
    /// Which of their entries.
    pub tokens: KeptTokens,
    /// The kind of file.
    pub container: Container,
    /// Rows are held in memory until they have this many bytes, then become a
    /// shard. 64 MiB unless told otherwise.
    pub shard_bytes: usize,
    /// K: rows of the draft that a position has, one for each depth of a round that begins
    /// there. 1 for drafts whose rows depend on the text alone; more with [`KeptTokens::All`].
    pub depths: usize,
}

impl Layout {
    /// Full f16 rows in safetensors shards of 64 MiB.
    pub fn new(vocabulary: usize) -> Self {
        Self {
            vocabulary,
            dtype: Dtype::F16,
            tokens: KeptTokens::All,
            container: Container::Safetensors,
            shard_bytes: 64 << 20,
            depths: 1,
        }
    }
}

/// One position to be written: raw logits of both models on the same prefix.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// Which prompt it belongs to.
    pub prompt_id: i64,
    /// Its index in the generated text, from 0.
    pub position: i64,
    /// The token drawn from the target there, -1 for none.
    pub token: i64,
    /// V logits of the target.
    pub target: &'a [f32],
    /// V logits of the draft; empty where the draft has no row, as behind drafts that were all
    /// accepted. In a log by depth K V of them, depth by depth; what lies beyond the text's end may
    /// be anything that is a row.
    pub draft: &'a [f32],
}

/// One position of which lists of tokens are known, as servers return them.
#[derive(Clone, Copy, Debug)]
pub struct ListedPosition<'a> {
    /// As in [`Position`].
    pub prompt_id: i64,
    /// As in [`Position`].
    pub position: i64,
    /// As in [`Position`].
    pub token: i64,
    /// Tokens, and the natural logarithms of the target's probabilities of them.
    pub target: &'a [(u32, f32)],
    /// The same of the draft; empty where the draft has no row.
    pub draft: &'a [(u32, f32)],
}

/// What heads on the draft model predict at a position of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeadValues {
    /// The probability that the position's token is accepted, from what the draft knows once
    /// it has read it.
    pub acceptance: Option<f64>,
    /// The overlap of both rows, from what the draft knows before the token is drawn.
    pub overlap: Option<f64>,
}

/// Writes a log as a directory of shards and a `log.json`.
///
/// Shards are written under temporary names, synced and renamed; `log.json` is
/// then replaced in the same way and lists complete shards only. What
/// [`LogWriter::commit`] returned from is on the disk and stays; what was
/// appended after it is lost with the process, and nothing else.
///
/// ```
/// use specgap_log::log::{Layout, Log, LogWriter, Metadata, Position, Row};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("log");
/// let mut writer = LogWriter::create(&path, Metadata::default(), Layout::new(3))?;
/// writer.append(&Position {
///     prompt_id: 0,
///     position: 0,
///     token: 1,
///     target: &[0.0, 1.0, f32::NEG_INFINITY],
///     draft: &[0.5, 0.5, 0.5],
/// })?;
/// writer.commit()?;
/// drop(writer);
/// let log = Log::open(&path)?;
/// let mut row = Row::default();
/// log.read(0, &mut row)?;
/// // Shifted: the largest entry of an f16 row is 0.
/// assert_eq!(row.target, [-1.0, 0.0, f64::NEG_INFINITY]);
/// assert_eq!(row.token, Some(1));
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Debug)]
pub struct LogWriter {
    directory: PathBuf,
    layout: Layout,
    index: Index,
    /// Whether small shards may become one.
    joins: bool,
    next_shard: usize,
    buffer: Buffer,
    /// Shards that are on the disk but not in the index yet.
    pending: Vec<ShardEntry>,
    top: Vec<u32>,
    listed: Vec<bool>,
    /// Whether the target's rows are in another log.
    follows: bool,
    /// What the target's and the draft's rows are, before anything is subtracted from them.
    guards: [FormGuard; 2],
    /// Held while the writer lives.
    _lock: File,
}

/// What is beside a position's rows.
#[derive(Debug)]
struct Said {
    /// Prompt, place and token.
    numbers: [i64; 3],
    lacks_draft: bool,
    heads: HeadValues,
    engine: Option<EngineRecord>,
}

#[derive(Debug, Default)]
struct Buffer {
    /// Of each position.
    said: Vec<Said>,
    /// Bytes of rows, each `width` entries wide; top-heavy rows are padded
    /// when they are written.
    target: Vec<u8>,
    draft: Vec<u8>,
    token_ids: Vec<Vec<u32>>,
    /// Where each model has a list of its own, `token_ids` has the target's.
    draft_ids: Vec<Vec<u32>>,
    target_rest: Vec<f64>,
    draft_rest: Vec<f64>,
    rollouts: Columns,
}

impl LogWriter {
    /// Begins a log in a directory that is made for it.
    ///
    /// # Errors
    ///
    /// If the directory holds a log already, or anything cannot be written.
    pub fn create(
        directory: &Path,
        mut metadata: Metadata,
        layout: Layout,
    ) -> Result<Self, LogError> {
        check_layout(directory, &layout)?;
        std::fs::create_dir_all(directory)
            .map_err(|source| LogError::writing(directory, 0, source))?;
        let lock = lock(directory)?;
        if directory.join(INDEX_NAME).exists() {
            return Err(LogError::format(
                directory,
                "holds a log already; choose another directory, or remove this one",
            ));
        }
        metadata.vocabulary = Some(layout.vocabulary);
        metadata.rest_temperatures = match &layout.tokens {
            KeptTokens::All | KeptTokens::Lists => Vec::new(),
            KeptTokens::Top {
                rest_temperatures, ..
            } => rest_temperatures.clone(),
        };
        if let KeptTokens::Top { count, .. } = layout.tokens {
            let top = metadata.extra.entry("top".to_owned());
            top.or_insert_with(|| count.into());
        }
        let index = Index {
            schema: SCHEMA,
            metadata,
            shards: Vec::new(),
        };
        let mut writer = Self::after(index, directory, layout, lock);
        writer.remove_strays()?;
        writer.write_index()?;
        Ok(writer)
    }

    /// Goes on with a log that was begun with the same layout.
    ///
    /// Files of shards that the index does not list, left by a process that was
    /// killed, are removed.
    ///
    /// # Errors
    ///
    /// If there is no log, another process writes it, its shards are damaged, or
    /// its vocabulary is not the layout's.
    pub fn resume(directory: &Path, layout: Layout) -> Result<Self, LogError> {
        check_layout(directory, &layout)?;
        if !Self::exists(directory) {
            // Says so, and leaves no lock in a folder without a log.
            read_index(directory)?;
        }
        // The lock before the index: what another writer commits in between is not
        // in an index that was read before, and would be removed below as a stray.
        let lock = lock(directory)?;
        let index = read_index(directory)?;
        if index.metadata.vocabulary != Some(layout.vocabulary) {
            return Err(LogError::format(
                directory,
                format!(
                    "was begun with a vocabulary of {}, not {}",
                    index
                        .metadata
                        .vocabulary
                        .map_or("unknown size".to_owned(), |v| v.to_string()),
                    layout.vocabulary
                ),
            ));
        }
        if !index.shards.is_empty() {
            // Opens every shard and checks its header.
            let listed = Log::open(directory)?.kinds().0 == RowKind::LogProbabilities;
            if listed != (layout.tokens == KeptTokens::Lists) {
                let begun = ["with rows of logits", "with lists of tokens"][usize::from(listed)];
                return Err(LogError::format(
                    directory,
                    format!("was begun {begun}; go on with these, or choose another directory"),
                ));
            }
        }
        let writer = Self::after(index, directory, layout, lock);
        writer.remove_strays()?;
        Ok(writer)
    }

    /// Goes on after what an index lists.
    fn after(index: Index, directory: &Path, layout: Layout, lock: File) -> Self {
        Self {
            directory: directory.to_owned(),
            layout,
            joins: true,
            next_shard: next_number(&index),
            index,
            buffer: Buffer::default(),
            pending: Vec::new(),
            top: Vec::new(),
            listed: Vec::new(),
            follows: false,
            // Rows come as f32, and may have been of a half type before.
            guards: [FormGuard::new(Dtype::F16), FormGuard::new(Dtype::F16)],
            _lock: lock,
        }
    }

    /// Tells whether a directory holds a log that [`LogWriter::resume`] could go on with.
    pub fn exists(directory: &Path) -> bool {
        directory.join(INDEX_NAME).is_file()
    }

    /// Reads what the log in a directory says of itself.
    ///
    /// # Errors
    ///
    /// If there is none, or its index cannot be read.
    pub fn said_by(directory: &Path) -> Result<Metadata, LogError> {
        Ok(read_index(directory)?.metadata)
    }

    /// Returns what the log says of itself; written by the next [`LogWriter::commit`].
    pub fn metadata(&self) -> &Metadata {
        &self.index.metadata
    }

    /// Changes what the log says of itself.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.index.metadata
    }

    /// Positions that are on the disk and listed.
    pub fn committed(&self) -> usize {
        self.index.shards.iter().map(|shard| shard.positions).sum()
    }

    /// Positions that were appended, committed or not: the number of the next one.
    pub fn positions(&self) -> usize {
        let pending: usize = self.pending.iter().map(|shard| shard.positions).sum();
        self.committed() + pending + self.buffer.said.len()
    }

    /// Bytes of one position's rows, about.
    pub fn position_bytes(&self) -> usize {
        let entry = self.layout.dtype.size();
        match &self.layout.tokens {
            KeptTokens::All => (1 + self.layout.depths) * entry * self.layout.vocabulary,
            // Most of the two models' top tokens are the same.
            KeptTokens::Top { count, .. } => {
                (2 * entry + 4) * (count + count / 2).min(self.layout.vocabulary)
            }
            // As those in memory, with their ids.
            KeptTokens::Lists => 2 * self.held_bytes() / self.buffer.said.len().max(1),
        }
    }

    /// Adds a position.
    ///
    /// # Errors
    ///
    /// Rows of another length than V, NaN, +inf, rows of only -inf, a token outside the
    /// vocabulary; rows that are no logits, as soon as two of them show it ([`FormGuard`]); also if
    /// a full shard cannot be written.
    pub fn append(&mut self, position: &Position<'_>) -> Result<(), LogError> {
        self.check(position)?;
        // Not as soon as a shard is full: what is appended last keeps room for rollouts.
        if self.is_full() {
            self.write_shard()?;
        }
        let ids = self.mark(&[position.target, position.draft]);
        self.add(position, ids);
        Ok(())
    }

    /// Adds a position of which lists are known. What a list leaves out of 1 is the mass of the
    /// tokens that it does not name.
    ///
    /// # Errors
    ///
    /// Tokens outside the vocabulary or listed twice, numbers that are no logarithms of
    /// probabilities, a target without a token, a log of full rows; also if a full shard cannot
    /// be written.
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{KeptTokens, Layout, ListedPosition, Log, LogWriter, Metadata, Row};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("log");
    /// let mut layout = Layout::new(1000);
    /// layout.tokens = KeptTokens::Lists;
    /// let mut writer = LogWriter::create(&path, Metadata::default(), layout)?;
    /// writer.append_lists(&ListedPosition {
    ///     prompt_id: 0,
    ///     position: 0,
    ///     token: 7,
    ///     target: &[(7, -0.25), (3, -2.0)],
    ///     draft: &[(7, -0.5)],
    /// })?;
    /// writer.commit()?;
    /// drop(writer);
    /// let log = Log::open(&path)?;
    /// let mut row = Row::default();
    /// log.read(0, &mut row)?;
    /// assert_eq!(row.target, [-2.0, -0.25]);
    /// # Ok::<(), specgap_log::log::LogError>(())
    /// ```
    pub fn append_lists(&mut self, position: &ListedPosition<'_>) -> Result<(), LogError> {
        if self.layout.tokens != KeptTokens::Lists {
            let message = "is a log of full rows; lists of tokens go to a log of their own";
            return Err(LogError::format(&self.directory, message));
        }
        let number = self.positions();
        self.check_token(position.token, number)?;
        self.check_list("target", position.target, number)?;
        self.check_list("draft", position.draft, number)?;
        if position.target.is_empty() {
            let message = "lists no token; the target has a row at every position";
            return Err(self.refused_list("target", number, message));
        }
        if self.is_full() {
            self.write_shard()?;
        }
        let lacks_draft = position.draft.is_empty();
        // A row that is not there is NaN, of some token.
        let no_row = [(0, f32::NAN)];
        let draft = if lacks_draft { &no_row } else { position.draft };
        let buffer = &mut self.buffer;
        for (list, ids, bytes) in [
            (position.target, &mut buffer.token_ids, &mut buffer.target),
            (draft, &mut buffer.draft_ids, &mut buffer.draft),
        ] {
            let mut list = list.to_vec();
            list.sort_by_key(|&(id, _)| id);
            encode(list.iter().map(|&(_, entry)| entry), Dtype::F32, bytes);
            ids.push(list.into_iter().map(|(id, _)| id).collect());
        }
        let numbers = [position.prompt_id, position.position, position.token];
        self.add_numbers(numbers, lacks_draft);
        Ok(())
    }

    fn refused_list(&self, model: &str, number: usize, message: &str) -> LogError {
        LogError::row(
            &self.directory,
            &format!("{model}_logprobs"),
            number,
            message,
        )
    }

    fn check_list(&self, model: &str, list: &[(u32, f32)], number: usize) -> Result<(), LogError> {
        let name = format!("{model}_logprobs");
        let entry =
            |column, message| LogError::entry(&self.directory, &name, number, column, message);
        let mut seen = std::collections::BTreeSet::new();
        let mut sum = 0.0;
        for (column, &(id, x)) in list.iter().enumerate() {
            if id as usize >= self.layout.vocabulary {
                let message = outside(i64::from(id), self.layout.vocabulary as i64);
                return Err(entry(column, message));
            }
            if !seen.insert(id) {
                return Err(entry(column, format!("token {id} is listed twice")));
            }
            // Of engines that round to half types, a probability may be a little above 1.
            if x.is_nan() || x > LARGEST_LOGARITHM {
                let message = format!("is {x}; logarithms of probabilities are at most 0");
                return Err(entry(column, message));
            }
            sum += f64::from(x).exp();
        }
        if sum > 1.0 + f64::from(LARGEST_LOGARITHM) {
            let message = format!(
                "has probabilities that sum to {sum}; give natural logarithms, at the temperature that \
                 the log says"
            );
            return Err(self.refused_list(model, number, &message));
        }
        Ok(())
    }

    fn check_token(&self, token: i64, number: usize) -> Result<(), LogError> {
        let tokens = i64::try_from(self.layout.vocabulary).unwrap_or(i64::MAX);
        if (-1..tokens).contains(&token) {
            return Ok(());
        }
        let message = outside(token, tokens);
        Err(LogError::entry(
            &self.directory,
            "token",
            number,
            0,
            message,
        ))
    }

    /// Refuses rows that cannot be written.
    pub(super) fn check(&mut self, position: &Position<'_>) -> Result<(), LogError> {
        let number = self.positions();
        if self.layout.tokens == KeptTokens::Lists {
            let message = "is a log of lists of tokens; full rows go to a log of their own";
            return Err(LogError::format(&self.directory, message));
        }
        self.check_token(position.token, number)?;
        let depths = self.layout.depths;
        let rows = [
            ("target_logits", position.target, 1),
            ("draft_logits", position.draft, depths),
        ];
        // The draft may have none.
        let given = if position.draft.is_empty() { 1 } else { 2 };
        let rows = || rows.into_iter().take(given);
        for (name, row, depths) in rows() {
            self.check_rows(name, row, (number, depths))?;
        }
        for ((name, row, _), guard) in rows().zip(&mut self.guards) {
            if guard.is_done() {
                continue;
            }
            let row = row.iter().take(self.layout.vocabulary);
            let entries: Vec<f64> = row.map(|&x| f64::from(x)).collect();
            guard.look(number, &entries, 0.0);
            // The first row alone may be an accident.
            if let Some((form, first)) = guard.found().filter(|&(_, first)| first < number) {
                let message = form.refusal("a writer of logs takes logits:");
                return Err(LogError::row(&self.directory, name, first, message));
            }
        }
        Ok(())
    }

    /// Tells whether the next position begins another shard.
    pub(super) fn is_full(&self) -> bool {
        self.held_bytes() >= self.layout.shard_bytes
    }

    fn held_bytes(&self) -> usize {
        self.buffer.target.len() + self.buffer.draft.len()
    }

    /// The tokens to list of a position with these rows; `None` if all are.
    pub(super) fn mark(&mut self, rows: &[&[f32]]) -> Option<Vec<u32>> {
        let KeptTokens::Top { count, .. } = self.layout.tokens else {
            return None;
        };
        self.listed.clear();
        self.listed.resize(self.layout.vocabulary, false);
        for row in rows {
            mark_top(row, count, &mut self.top, &mut self.listed);
        }
        let ids = (0..)
            .zip(&self.listed)
            .filter_map(|(id, &listed)| listed.then_some(id));
        Some(ids.collect())
    }

    /// Adds a position with the tokens that are listed of it, which are rising.
    pub(super) fn add(&mut self, position: &Position<'_>, ids: Option<Vec<u32>>) {
        let layout = &self.layout;
        let buffer = &mut self.buffer;
        let lacks_draft = position.draft.is_empty();
        let width = layout.vocabulary * layout.depths;
        let no_row = vec![f32::NAN; if lacks_draft { width } else { 0 }];
        let draft = if lacks_draft { &no_row } else { position.draft };
        let mut sides = vec![(draft, &mut buffer.draft, &mut buffer.draft_rest)];
        if !self.follows {
            let target = (position.target, &mut buffer.target, &mut buffer.target_rest);
            sides.push(target);
        }
        if let (
            KeptTokens::Top {
                rest_temperatures, ..
            },
            Some(ids),
        ) = (&layout.tokens, ids)
        {
            self.listed.clear();
            self.listed.resize(layout.vocabulary, false);
            for &id in &ids {
                if let Some(mark) = self.listed.get_mut(id as usize) {
                    *mark = true;
                }
            }
            for (row, bytes, rest) in sides {
                let shift = shift(row, layout.dtype);
                let kept = ids
                    .iter()
                    .filter_map(|&id| row.get(id as usize).map(|x| x - shift));
                encode(kept, layout.dtype, bytes);
                rest.extend(
                    rest_temperatures
                        .iter()
                        .map(|&temperature| match row.first() {
                            Some(x) if x.is_nan() => 0.0,
                            _ => rest_mass(row, &self.listed, temperature),
                        }),
                );
            }
            buffer.token_ids.push(ids);
        } else {
            for (rows, bytes, _) in sides {
                for row in rows.chunks(layout.vocabulary) {
                    let shift = shift(row, layout.dtype);
                    encode(row.iter().map(|x| x - shift), layout.dtype, bytes);
                }
            }
        }
        let numbers = [position.prompt_id, position.position, position.token];
        self.add_numbers(numbers, lacks_draft);
    }

    fn add_numbers(&mut self, numbers: [i64; 3], lacks_draft: bool) {
        self.buffer.said.push(Said {
            numbers,
            lacks_draft,
            heads: HeadValues::default(),
            engine: None,
        });
    }

    /// Says what heads predict at the position that was appended last. Of positions of which
    /// nothing is said, the log says nothing.
    ///
    /// # Errors
    ///
    /// Values outside \[0, 1\]; a position that is on the disk already, or none.
    pub fn set_head(&mut self, values: &HeadValues) -> Result<(), LogError> {
        let number = self.positions().saturating_sub(1);
        for (name, value) in [
            (HEAD_ACCEPTANCE, values.acceptance),
            (HEAD_OVERLAP, values.overlap),
        ] {
            let refused =
                |message: String| Err(LogError::entry(&self.directory, name, number, 0, message));
            if let Some(x) = value.filter(|x| !(0.0..=1.0).contains(x)) {
                return refused(format!("is {x}; what a head predicts is in [0, 1]"));
            }
            if self.buffer.said.is_empty() {
                return refused("belongs to no position that was appended".to_owned());
            }
        }
        if let Some(last) = self.buffer.said.last_mut() {
            last.heads = *values;
        }
        Ok(())
    }

    /// Says what an engine did at the position that was appended last: its drafts, how many
    /// were accepted, what came out, how far into its round it is, how many sequences were
    /// verified together, and the seed of its random numbers. `prompt` and `position` are those of the position, and are not read.
    /// Of positions of which nothing is said, the log says -1.
    ///
    /// # Errors
    ///
    /// Tokens outside the vocabulary, numbers below -1; a position that is on the disk
    /// already, or none.
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{EngineRecord, Layout, Log, LogWriter, Metadata, Position};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("log");
    /// let mut writer = LogWriter::create(&path, Metadata::default(), Layout::new(2))?;
    /// let (target, draft) = (&[0.0, 1.0], &[0.5, 0.5]);
    /// writer.append(&Position { prompt_id: 0, position: 0, token: 1, target, draft })?;
    /// let did = EngineRecord {
    ///     drafts: vec![1, 0],
    ///     output: Some(1),
    ///     accepted: Some(1),
    ///     round: Some(0),
    ///     ..EngineRecord::default()
    /// };
    /// writer.set_engine(&did)?;
    /// writer.commit()?;
    /// assert_eq!(Log::open(&path)?.engine_records()?[0].drafts, [1, 0]);
    /// # Ok::<(), specgap_log::log::LogError>(())
    /// ```
    pub fn set_engine(&mut self, record: &EngineRecord) -> Result<(), LogError> {
        let number = self.positions().saturating_sub(1);
        self.check_engine(record, number)?;
        let last = self.buffer.said.last_mut().ok_or_else(|| {
            LogError::row(
                &self.directory,
                "drafts",
                number,
                "belongs to no position that was appended",
            )
        })?;
        last.engine = Some(record.clone());
        Ok(())
    }

    /// Refuses what [`Self::set_engine`] does of the position of a number, before it is appended.
    ///
    /// # Errors
    ///
    /// Tokens outside the vocabulary, numbers below -1.
    pub fn check_engine(&self, record: &EngineRecord, number: usize) -> Result<(), LogError> {
        let path = &self.directory;
        let tokens = i64::try_from(self.layout.vocabulary).unwrap_or(i64::MAX);
        let drafts = record.drafts.iter().copied().enumerate();
        let single = |name, value: Option<i64>, end| Some((name, 0, value?, end));
        let all = drafts
            .map(|(column, token)| ("drafts", column, token, tokens))
            .chain(single("output", record.output, tokens))
            .chain(single("accepted", record.accepted, i64::MAX))
            .chain(single("round", record.round, i64::MAX))
            .chain(single("batch_size", record.batch_size, i64::MAX))
            .chain(single("seed", record.seed, i64::MAX));
        for (name, column, value, end) in all {
            if !(-1..end).contains(&value) {
                let message = if end == tokens {
                    outside(value, end)
                } else {
                    format!("is {value}; it is a count, or -1 for none")
                };
                return Err(LogError::entry(path, name, number, column, message));
            }
        }
        Ok(())
    }

    /// Adds a rollout from a position that was appended since the last commit. Rollouts
    /// go into the last shard of the commit, with the numbers that their positions have
    /// in the log. All of a log have as many tokens, and the same lists.
    ///
    /// # Errors
    ///
    /// A position that was not appended since the last commit; lists that do not go
    /// together, or not with the rollouts before it.
    pub fn append_rollout(&mut self, rollout: &Rollout<'_>) -> Result<(), LogError> {
        let (first, end) = (self.committed(), self.positions());
        if !(first..end).contains(&rollout.position) || self.buffer.said.is_empty() {
            return Err(LogError::format(
                &self.directory,
                format!(
                    "a rollout starts at position {}, but positions {first}..{end} were appended since the last commit",
                    rollout.position
                ),
            ));
        }
        let columns = &mut self.buffer.rollouts;
        check_shape(
            &self.directory,
            rollout,
            &columns.get(0).unwrap_or(*rollout),
        )?;
        columns.push(rollout);
        Ok(())
    }

    /// Makes everything appended so far part of the log, for good. If the last sixteen
    /// shards before it are small, they become one.
    ///
    /// # Errors
    ///
    /// If the disk is full or a file cannot be written; the log then is what it
    /// was after the last commit.
    pub fn commit(&mut self) -> Result<(), LogError> {
        if !self.buffer.said.is_empty() {
            self.write_shard()?;
        }
        self.list_pending()
    }

    /// Puts the shards that are on the disk into the index.
    pub(super) fn list_pending(&mut self) -> Result<(), LogError> {
        let listed = self.index.shards.len();
        self.index.shards.append(&mut self.pending);
        self.write_index().inspect_err(|_| {
            self.pending = self.index.shards.split_off(listed);
        })
    }

    /// Keeps every shard as it is written, because another log names it.
    pub(super) fn keep_files(&mut self) {
        self.joins = false;
    }

    /// Makes one shard of the last [`JOINED`] if none of them is larger than that part of a
    /// full one. So a log of many small commits has a file for every four MiB or so, and
    /// each row is written a few times at most.
    ///
    /// The new shard has a new name and is listed in place of the others before they are
    /// removed, so that a kill leaves the log with one or the others. It happens before the
    /// first shard of a commit is written, by what is listed then: a capture that goes on
    /// makes the files of one that was never stopped.
    fn join_small(&mut self) -> Result<(), LogError> {
        let shards = &self.index.shards;
        let Some(tail) = (shards.len().checked_sub(JOINED)).and_then(|first| shards.get(first..))
        else {
            return Ok(());
        };
        if tail.iter().any(|shard| shard.target.is_some()) {
            return Ok(());
        }
        let positions = tail.iter().map(|shard| shard.positions).sum();
        let files: Vec<PathBuf> = (tail.iter())
            .map(|shard| self.directory.join(&shard.file))
            .collect();
        let limit = (self.layout.shard_bytes / JOINED) as u64;
        for file in &files {
            let length = std::fs::metadata(file)
                .map_err(|source| LogError::reading(file, source))?
                .len();
            let ours = file.extension().is_some_and(|extension| {
                extension.to_str() == Some(self.layout.container.extension())
            });
            if length > limit || !ours {
                return Ok(());
            }
        }
        let Some(tensors) = join(&files)? else {
            return Ok(());
        };
        let name = self.shard_name(self.next_shard);
        self.write_tensors(&name, &tensors)?;
        self.next_shard += 1;
        let before = self.index.shards.clone();
        self.index.shards.truncate(before.len() - files.len());
        self.index.shards.push(ShardEntry {
            file: name,
            positions,
            target: None,
        });
        self.write_index().inspect_err(|_| {
            self.index.shards = before;
        })?;
        for file in files {
            // What stays is not listed, and the next writer removes it.
            let _ = std::fs::remove_file(file);
        }
        Ok(())
    }

    /// Checks a row, or one for each depth.
    fn check_rows(
        &self,
        name: &str,
        rows: &[f32],
        (number, depths): (usize, usize),
    ) -> Result<(), LogError> {
        let vocabulary = self.layout.vocabulary;
        if depths > 1 && rows.len() != depths * vocabulary {
            return Err(LogError::row(
                &self.directory,
                name,
                number,
                format!(
                    "has {} entries; {depths} depths of a vocabulary of {vocabulary} have {}",
                    rows.len(),
                    depths * vocabulary
                ),
            ));
        }
        match depths {
            1 => self.check_row(name, rows, number),
            _ => (rows.chunks(vocabulary).zip(1..)).try_for_each(|(row, depth)| {
                self.check_row(&format!("{name} at depth {depth}"), row, number)
            }),
        }
    }

    fn check_row(&self, name: &str, row: &[f32], number: usize) -> Result<(), LogError> {
        let path = &self.directory;
        let refused = |why: String| Err(LogError::row(path, name, number, why));
        let (entries, vocabulary) = (row.len(), self.layout.vocabulary);
        if entries != vocabulary {
            return refused(format!(
                "has {entries} entries; the vocabulary has {vocabulary}"
            ));
        }
        if let Some(column) = row.iter().position(|&x| x.is_nan() || x == f32::INFINITY) {
            return Err(LogError::entry(
                path,
                name,
                number,
                column,
                format!(
                    "is {}; logits are finite, or -inf for tokens that cannot be drawn",
                    row.get(column).copied().unwrap_or(f32::NAN)
                ),
            ));
        }
        if row.iter().all(|&x| x == f32::NEG_INFINITY) {
            return refused("is -inf at every token, which leaves nothing to draw".to_owned());
        }
        Ok(())
    }

    fn shard_name(&self, number: usize) -> String {
        format!("shard-{number:05}.{}", self.layout.container.extension())
    }

    /// Makes it a log whose target's rows are in another one.
    pub(super) fn follow(&mut self) {
        self.follows = true;
    }

    /// The log's folder.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Positions in memory.
    pub(super) fn held(&self) -> usize {
        self.buffer.said.len()
    }

    /// Shards that are on the disk and listed.
    pub(super) fn shards(&self) -> &[ShardEntry] {
        &self.index.shards
    }

    /// Returns what another log says of the shard that was written last.
    pub(super) fn last_shard(&self) -> Result<SharedShard, LogError> {
        let last = self.pending.last().ok_or_else(|| {
            LogError::format(&self.directory, "has no shard that another log could share")
        })?;
        let contents = read_file(
            &self.directory.join(&last.file),
            &mut super::source::Spool::default(),
        )?;
        shared::describe(&self.directory, &last.file, &contents)
    }

    /// Forgets all shards but the first `count`, and the prompts that were in them.
    pub(super) fn keep_shards(&mut self, count: usize) -> Result<(), LogError> {
        if self.index.shards.len() <= count {
            return Ok(());
        }
        self.index.shards.truncate(count);
        self.next_shard = next_number(&self.index);
        let mut left = self.committed();
        self.index.metadata.prompts.retain(|prompt| {
            let kept = prompt.positions <= left && left > 0;
            left = if kept { left - prompt.positions } else { 0 };
            kept
        });
        self.write_index()?;
        self.remove_strays()
    }

    /// Removes what an interrupted process left: shards that are not listed.
    fn remove_strays(&self) -> Result<(), LogError> {
        let failed = |source| LogError::File(self.directory.clone(), "cannot be read", source);
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let ours = name.starts_with("shard-") || name.starts_with(TEMPORARY_PREFIX);
            if ours && !self.index.shards.iter().any(|shard| shard.file == name) {
                std::fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    pub(super) fn write_shard(&mut self) -> Result<(), LogError> {
        self.write_shard_with(None)
    }

    /// Writes what is in memory as a shard, whose target's rows are in another log's file if
    /// one is given.
    pub(super) fn write_shard_with(&mut self, target: Option<SharedShard>) -> Result<(), LogError> {
        if self.joins && self.pending.is_empty() {
            self.join_small()?;
        }
        let name = self.shard_name(self.next_shard);
        let positions = self.buffer.said.len();
        let mut tensors = self.tensors();
        if target.is_some() {
            tensors.retain(|(name, _)| !SHARED.contains(name));
        }
        self.write_tensors(&name, &tensors)?;
        drop(tensors);
        self.pending.push(ShardEntry {
            file: name,
            positions,
            target,
        });
        self.next_shard += 1;
        self.buffer = Buffer::default();
        Ok(())
    }

    fn write_tensors(
        &self,
        name: &str,
        tensors: &[(impl AsRef<str>, Encoded<'_>)],
    ) -> Result<(), LogError> {
        let path = self.directory.join(name);
        let bytes: u64 = tensors.iter().map(|(_, t)| t.data.len() as u64).sum();
        write_replacing(&self.directory, &path, bytes, |file| {
            match self.layout.container {
                Container::Safetensors => write_safetensors(file, tensors),
                Container::Npz => write_npz(file, tensors),
            }
        })
    }

    fn tensors<'a>(&'a self) -> Vec<(&'static str, Encoded<'a>)> {
        let buffer = &self.buffer;
        let (n, dtype) = (buffer.said.len(), self.layout.dtype);
        let mut tensors = Vec::new();
        let mut put = |name, dtype, shape: Vec<usize>, data: Cow<'a, [u8]>| {
            tensors.push((name, Encoded { dtype, shape, data }));
        };
        let floats = |all: &mut dyn Iterator<Item = f64>| all.flat_map(f64::to_le_bytes).collect();
        let models = [
            ("target_logits", &buffer.target),
            ("draft_logits", &buffer.draft),
        ];
        match &self.layout.tokens {
            KeptTokens::All => {
                for (name, bytes) in models {
                    let shape = match (name, self.layout.depths) {
                        ("draft_logits", 2..) => {
                            vec![n, self.layout.depths, self.layout.vocabulary]
                        }
                        _ => vec![n, self.layout.vocabulary],
                    };
                    put(name, dtype, shape, bytes.into());
                }
            }
            KeptTokens::Top {
                rest_temperatures, ..
            } => {
                let (width, ids) = padded_ids(&buffer.token_ids);
                put("token_ids", Dtype::I32, vec![n, width], Cow::Owned(ids));
                for (name, bytes) in models {
                    let bytes = padded(bytes, &buffer.token_ids, width, dtype);
                    put(name, dtype, vec![n, width], Cow::Owned(bytes));
                }
                for (name, rest) in [
                    ("target_rest", &buffer.target_rest),
                    ("draft_rest", &buffer.draft_rest),
                ] {
                    let shape = vec![n, rest_temperatures.len()];
                    let bytes = floats(&mut rest.iter().copied());
                    put(name, Dtype::F64, shape, Cow::Owned(bytes));
                }
            }
            KeptTokens::Lists => {
                for (names, lists, bytes) in [
                    (LISTS[0], &buffer.token_ids, &buffer.target),
                    (LISTS[1], &buffer.draft_ids, &buffer.draft),
                ] {
                    let (width, ids) = padded_ids(lists);
                    put(names[0], Dtype::I32, vec![n, width], Cow::Owned(ids));
                    let rows = padded(bytes, lists, width, Dtype::F32);
                    put(names[1], Dtype::F32, vec![n, width], Cow::Owned(rows));
                }
            }
        }
        let integers = |all: &[i64]| all.iter().flat_map(|x| x.to_le_bytes()).collect();
        let said = &buffer.said;
        for (at, name) in ["prompt_id", "position", "token"].into_iter().enumerate() {
            let values: Vec<i64> = said.iter().map(|one| one.numbers[at]).collect();
            put(name, Dtype::I64, vec![n], Cow::Owned(integers(&values)));
        }
        type Head = fn(&HeadValues) -> Option<f64>;
        let heads: [(_, Head); 2] = [
            (HEAD_ACCEPTANCE, |heads| heads.acceptance),
            (HEAD_OVERLAP, |heads| heads.overlap),
        ];
        for (name, of) in heads {
            let values = said.iter().map(|one| of(&one.heads));
            if values.clone().any(|value| value.is_some()) {
                let bytes = floats(&mut values.map(|value| value.unwrap_or(-1.0)));
                put(name, Dtype::F64, vec![n], Cow::Owned(bytes));
            }
        }
        let rows = said.iter().map(|one| i64::from(!one.lacks_draft));
        let rows = said
            .iter()
            .any(|one| one.lacks_draft)
            .then(|| (DRAFT_ROW, vec![n], rows.collect()));
        for (name, shape, values) in engine_tensors(said).into_iter().chain(rows) {
            put(name, Dtype::I64, shape, Cow::Owned(integers(&values)));
        }
        for (name, dtype, shape, bytes) in buffer.rollouts.encoded() {
            put(name, dtype, shape, Cow::Owned(bytes));
        }
        tensors
    }

    fn write_index(&mut self) -> Result<(), LogError> {
        let path = self.directory.join(INDEX_NAME);
        let mut text = typed::pretty(&self.index)
            .map_err(|error| LogError::format(&path, format!("cannot be written: {error}")))?;
        text.push('\n');
        write_replacing(&self.directory, &path, text.len() as u64, |file| {
            file.write_all(text.as_bytes())
        })
    }
}

/// Ids and logarithms of lists, of the target and of the draft.
const LISTS: [[&str; 2]; 2] = [
    ["target_token_ids", "target_logprobs"],
    ["draft_token_ids", "draft_logprobs"],
];

/// How far above 0 the logarithm of a probability may be, by rounding.
const LARGEST_LOGARITHM: f32 = 1e-2;

const TEMPORARY_PREFIX: &str = ".writing-";

/// How many small shards in a row become one.
const JOINED: usize = 16;

/// The number of the next shard: behind that of every shard that is listed.
fn next_number(index: &Index) -> usize {
    let numbers = index.shards.iter().filter_map(|shard| {
        let (number, _) = shard.file.strip_prefix("shard-")?.split_once('.')?;
        number.parse::<usize>().ok()
    });
    numbers.fold(index.shards.len(), |next, number| {
        next.max(number.saturating_add(1))
    })
}

/// Writes a file under a temporary name, syncs it, renames it, and syncs the
/// directory.
fn write_replacing(
    directory: &Path,
    path: &Path,
    bytes: u64,
    write: impl FnOnce(&mut Unfinished) -> io::Result<()>,
) -> Result<(), LogError> {
    let failed = |source| LogError::writing(path, bytes, source);
    specgap_base::files::replace(path, TEMPORARY_PREFIX, write).map_err(failed)?;
    #[cfg(unix)]
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed)?;
    Ok(())
}

fn lock(directory: &Path) -> Result<File, LogError> {
    let path = directory.join(".lock");
    let file = File::create(&path).map_err(|source| LogError::writing(&path, 0, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LogError::format(
            directory,
            "is being written by another process; wait for it or choose another directory",
        )),
        Err(TryLockError::Error(source)) => Err(LogError::writing(&path, 0, source)),
    }
}

fn check_layout(directory: &Path, layout: &Layout) -> Result<(), LogError> {
    let refused = |message: String| Err(LogError::format(directory, message));
    if layout.vocabulary == 0 || i32::try_from(layout.vocabulary).is_err() {
        return refused(format!(
            "a vocabulary of {} cannot be written; it is at least 1 and below 2^31",
            layout.vocabulary
        ));
    }
    if !layout.dtype.is_float() {
        return refused(format!("rows cannot be written as {}", layout.dtype));
    }
    if layout.dtype == Dtype::Bf16 && layout.container == Container::Npz {
        return refused("NumPy has no bf16; write f16 or f32, or safetensors".to_owned());
    }
    if layout.depths == 0 || layout.depths > 1 && layout.tokens != KeptTokens::All {
        return refused(format!(
            "{} depths of lists cannot be written; rows by depth are full rows, of at least one \
             depth: keep all tokens",
            layout.depths
        ));
    }
    if let KeptTokens::Top {
        count,
        rest_temperatures,
    } = &layout.tokens
    {
        if *count == 0 {
            return refused("top-heavy rows keep at least one token".to_owned());
        }
        if let Some(t) = rest_temperatures
            .iter()
            .find(|t| !(t.is_finite() && **t > 0.0))
        {
            return refused(format!(
                "the mass of the rest is wanted at temperature {t}; temperatures are finite and > 0"
            ));
        }
    }
    Ok(())
}

/// Sum over unlisted i of exp(l_i / t), over the same sum over all i.
fn rest_mass(row: &[f32], listed: &[bool], temperature: f64) -> f64 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (mut kept, mut rest) = (0.0, 0.0);
    for (&x, &listed) in row.iter().zip(listed) {
        let mass = ((f64::from(x) - f64::from(largest)) / temperature).exp();
        if listed {
            kept += mass;
        } else {
            rest += mass;
        }
    }
    rest / (kept + rest)
}

/// Marks the `count` largest entries; of equal ones, those with smaller ids.
fn mark_top(row: &[f32], count: usize, order: &mut Vec<u32>, listed: &mut [bool]) {
    order.clear();
    order.extend((0..).zip(row).map(|(id, _): (u32, _)| id));
    let count = count.min(order.len());
    // -0 is as large as 0.
    let key = |id: u32| row.get(id as usize).map_or(f32::NEG_INFINITY, |x| x + 0.0);
    if let Some(last) = count.checked_sub(1).filter(|_| count < order.len()) {
        order.select_nth_unstable_by(last, |&a, &b| key(b).total_cmp(&key(a)).then(a.cmp(&b)));
    }
    for &id in order.iter().take(count) {
        // A token that cannot be drawn says nothing.
        if key(id) > f32::NEG_INFINITY
            && let Some(mark) = listed.get_mut(id as usize)
        {
            *mark = true;
        }
    }
}

/// Returns what is subtracted from a row of logits, which are defined up to a constant: its largest
/// entry where the type is a half, so that the entries that matter are near 0, where a half type is
/// finest. At 20, f16 has steps of 1/64, which is 1.6% of a probability.
fn shift(row: &[f32], dtype: Dtype) -> f32 {
    match dtype {
        Dtype::F16 | Dtype::Bf16 => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
        _ => 0.0,
    }
}

/// Makes tensors of what an engine did: those of which anything was said, -1 where it was not.
fn engine_tensors(said: &[Said]) -> Vec<(&'static str, Vec<usize>, Vec<i64>)> {
    let (rows, records) = (said.len(), || said.iter().map(|one| one.engine.as_ref()));
    let drafts = records().map(|record| record.map_or(&[][..], |one| &one.drafts));
    let mut tensors = Vec::new();
    let (width, chains) = filled(&drafts.collect::<Vec<_>>(), -1);
    if width > 0 {
        tensors.push(("drafts", vec![rows, width], chains));
    }
    type Field = fn(&EngineRecord) -> Option<i64>;
    let fields: [(&'static str, Field); 5] = [
        ("output", |one| one.output),
        ("accepted", |one| one.accepted),
        ("round", |one| one.round),
        ("batch_size", |one| one.batch_size),
        ("seed", |one| one.seed),
    ];
    for (name, field) in fields {
        let values = records().map(|record| record.and_then(field));
        if values.clone().any(|value| value.is_some()) {
            let values = values.map(|value| value.unwrap_or(-1)).collect();
            tensors.push((name, vec![rows], values));
        }
    }
    tensors
}

/// Lists as rows of one width, -1 behind them.
fn padded_ids(lists: &[Vec<u32>]) -> (usize, Vec<u8>) {
    // The bytes of -1.
    let (width, ids) = filled(lists, u32::MAX);
    (width, ids.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// Ragged rows, each filled up with -inf.
fn padded(bytes: &[u8], ids: &[Vec<u32>], width: usize, dtype: Dtype) -> Vec<u8> {
    let mut out = Vec::with_capacity(ids.len() * width * dtype.size());
    let mut rest = bytes;
    for row in ids {
        let (here, after) = rest
            .split_at_checked(row.len() * dtype.size())
            .unwrap_or((rest, &[]));
        rest = after;
        out.extend(here);
        encode(
            std::iter::repeat_n(f32::NEG_INFINITY, width - row.len()),
            dtype,
            &mut out,
        );
    }
    out
}
