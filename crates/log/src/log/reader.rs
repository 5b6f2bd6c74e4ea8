//! Opening a log and reading its rows.

use super::beside::{Beside, Columns, DRAFT_ROW};
use super::contents::Contents;
use super::error::{LogError, outside};
use super::metadata::{INDEX_NAME, Index, Metadata, SCHEMA, UnlistedTokens, Version};
use super::rollout_tensors::{HeldRollouts, names};
use super::source::{Source, Spool};
use super::sub_vocabulary::SubVocabulary;
use super::tensor::{HeldTensor, RowWindow, Tensor};
use super::{mask, npz, safetensors, shared};
use specgap_base::typed;
use specgap_entries::entries::{self, Dtype, Form, Scratch};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the entries of the rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Natural logarithms up to a constant of the row: `*_logits`.
    #[default]
    Logits,
    /// Probabilities: `*_probs`.
    Probabilities,
    /// Natural logarithms of probabilities: `*_logprobs`.
    LogProbabilities,
}

impl RowKind {
    const ALL: [Self; 3] = [Self::Logits, Self::Probabilities, Self::LogProbabilities];

    fn suffix(self) -> &'static str {
        match self {
            Self::Logits => "logits",
            Self::Probabilities => "probs",
            Self::LogProbabilities => "logprobs",
        }
    }
}

/// A log of paired rows: one file, or a directory of shards.
///
/// Rows are N positions of one (target, draft) pair over one vocabulary of V
/// tokens. They stay in their files and are read a [`Span`] at a time, so
/// that memory grows with V but not with N.
///
/// ```no_run
/// use specgap_log::log::{Log, Row};
/// let log = Log::open("log/".as_ref())?;
/// let mut row = Row::default();
/// for span in log.spans(64) {
///     let chunk = log.chunk(&span)?;
///     for index in chunk.positions() {
///         chunk.read(index, &mut row)?;
///         assert_eq!(row.target.len(), row.draft.len());
///     }
/// }
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
    /// What it is called, if not as its file or directory.
    called: Option<String>,
    metadata: Metadata,
    pub(super) shards: Arc<Vec<Shard>>,
    /// Position numbers at which shards begin, and at last N.
    pub(super) starts: Vec<usize>,
    /// How many tokens of its round stand before the one that rows of the draft are about.
    pub(super) ahead: usize,
    /// Of every position the one before it in its text, once a depth beyond 1 was asked for.
    pub(super) before: Option<Arc<Vec<Option<usize>>>>,
    vocabulary: usize,
    /// What `--vocab` asked for.
    kept: Option<usize>,
    ignored: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Shard {
    /// The draft's file; tensors know theirs.
    pub path: PathBuf,
    pub positions: usize,
    pub target: Tensor,
    pub target_kind: RowKind,
    /// Of each position the rows of all its depths, one after the other.
    pub draft: Tensor,
    pub draft_kind: RowKind,
    /// K: rows of the draft that a position has, one for each depth of a round that starts there.
    pub depths: usize,
    /// The tokens that the draft's rows are about, where these are not all.
    pub sub_vocabulary: Option<SubVocabulary>,
    pub beside: Columns<Tensor>,
    /// A text with the target's rows alone, which stand where the draft's would.
    pub is_text: bool,
    pub rollouts: HeldRollouts,
}

/// Consecutive positions within one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    shard: usize,
    /// Within the shard.
    rows: Range<usize>,
    /// Number of the first position in the log.
    first: usize,
}

impl Span {
    /// The numbers of its positions in the log.
    pub fn positions(&self) -> Range<usize> {
        self.first..self.first + self.rows.len()
    }
}

/// One position of a log.
///
/// `target` and `draft` have one entry for each listed token: all V of a full
/// row, or those of a top-heavy row, whose ids are in `token_ids`. Both are in order of
/// token id, whatever the order in the file: of equal tokens the first is the one with the
/// lowest id. Entries are what the file holds, exactly, as `f64`. Where target and draft
/// have lists of their own, the tokens are those of either, and an entry is NaN where its
/// row does not list the token, or none of its mass where the log says that unlisted tokens
/// are never drawn.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The target's row.
    pub target: Vec<f64>,
    /// The draft's row; NaN throughout where the log has none.
    pub draft: Vec<f64>,
    /// Whether the log has no row of the draft here (`draft_row` is 0): behind drafts that were
    /// all accepted an engine takes one more token from the target alone.
    pub lacks_draft: bool,
    /// What the target's entries are.
    pub target_kind: RowKind,
    /// What the draft's entries are.
    pub draft_kind: RowKind,
    /// Ids of the listed tokens; empty for a full row.
    pub token_ids: Vec<u32>,
    /// Target mass of the tokens that are not listed, for each of the
    /// metadata's `rest_temperatures`; empty for a full row.
    pub target_rest: Vec<f64>,
    /// Draft mass of the tokens that are not listed, for each of `rest_temperatures`.
    pub draft_rest: Vec<f64>,
    /// Which prompt it belongs to.
    pub prompt_id: Option<i64>,
    /// Its index in the generated text, from 0.
    pub position: Option<i64>,
    /// The token that was drawn from the target there.
    pub token: Option<i64>,
    /// Tokens that were drafted there.
    pub drafts: Vec<i64>,
    /// The token that a verifier put out there.
    pub output: Option<i64>,
    /// The probability of acceptance that a head predicts for `token`, from what the draft
    /// knows once it has read it.
    pub head_acceptance: Option<f64>,
    /// The overlap of both rows that a head predicts from what the draft knows.
    pub head_overlap: Option<f64>,
    /// 1 if `token` is the draft's likeliest, else 0, where the log says so beside its rows.
    pub hit: Option<f64>,
    /// The target's probability of the draft's likeliest token, said likewise.
    pub p_hit: Option<f64>,
    /// The draft's largest probability, said likewise.
    pub max_q: Option<f64>,
    /// Sum of min(p, q), said likewise.
    pub overlap: Option<f64>,
    /// The target's mass on tokens that the draft can draw, said likewise.
    pub covered: Option<f64>,
    scratch: Scratch,
    head: Vec<f64>,
    sorted: Vec<u32>,
    own_ids: [Vec<u32>; 2],
}

impl Row {
    /// Puts the listed tokens in order of their ids.
    fn sort_list(&mut self) {
        if self.token_ids.is_sorted() {
            return;
        }
        let entries = self.target.iter().zip(&self.draft);
        let mut tokens: Vec<(u32, f64, f64)> = (self.token_ids.iter().zip(entries))
            .map(|(&id, (&p, &q))| (id, p, q))
            .collect();
        tokens.sort_unstable_by_key(|&(id, ..)| id);
        self.token_ids.clear();
        self.target.clear();
        self.draft.clear();
        for (id, p, q) in tokens {
            self.token_ids.push(id);
            self.target.push(p);
            self.draft.push(q);
        }
    }

    /// Puts two lists together: the tokens of the target's, then those that the draft's alone
    /// has. A row has `absent` for tokens that it does not list.
    fn join_lists(&mut self, absent: [f64; 2]) {
        let [of_target, of_draft] = &self.own_ids;
        self.token_ids.clone_from(of_target);
        self.sorted.clone_from(of_target);
        self.sorted.sort_unstable();
        let alone = |id: &u32| self.sorted.binary_search(id).is_err();
        self.token_ids
            .extend(of_draft.iter().copied().filter(alone));
        let own: HashMap<u32, f64> = of_draft.iter().copied().zip(self.draft.drain(..)).collect();
        let entry = |id: &u32| own.get(id).copied().unwrap_or(absent[1]);
        self.draft.extend(self.token_ids.iter().map(entry));
        self.target.resize(self.token_ids.len(), absent[0]);
    }

    /// The id of the token at a place in `target` and `draft`.
    pub fn token_at(&self, place: usize) -> u32 {
        self.token_ids
            .get(place)
            .copied()
            .unwrap_or(u32::try_from(place).unwrap_or(u32::MAX))
    }
}

/// The rows of a [`Span`], as they are in the file.
#[derive(Debug)]
pub struct Chunk<'a> {
    log: &'a Log,
    shard: &'a Shard,
    span: Span,
    target: RowWindow<'a>,
    beside: Columns<RowWindow<'a>>,
    /// What the draft says; where it has a row for each depth, that is fetched row by row.
    drafted: Option<Drafted<'a>>,
}

/// What the draft says at some positions.
#[derive(Debug)]
pub(super) struct Drafted<'a> {
    pub(super) rows: RowWindow<'a>,
    pub(super) beside: Columns<RowWindow<'a>>,
}

impl Log {
    /// Opens a `.safetensors` or `.npz` file, or a directory with a `log.json`.
    ///
    /// Headers and shapes are checked here; entries when they are read.
    ///
    /// # Errors
    ///
    /// Files that are missing, truncated or of another format; headers that do
    /// not fit their files; tensors that are missing or whose shapes or types do
    /// not go together. Each names file and tensor.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        Self::open_with(path, None)
    }

    /// Opens a log and keeps the first `vocabulary` tokens of every row, for
    /// models that differ by padding at the end of the vocabulary.
    ///
    /// # Errors
    ///
    /// As [`Log::open`]; also if a row has fewer tokens.
    pub fn open_with(path: &Path, vocabulary: Option<usize>) -> Result<Self, LogError> {
        if path.is_dir() {
            return Self::open_directory(path, vocabulary);
        }
        let contents = read_file(path, &mut Spool::default())?;
        Self::single(path, contents, vocabulary)
    }

    /// Opens the bytes of a file, for tests and fuzzing; `name` ends in
    /// `.safetensors` or `.npz`.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn from_bytes(name: &Path, bytes: Arc<[u8]>) -> Result<Self, LogError> {
        let source = Source::Memory {
            entries: Arc::new(bytes),
            path: name.to_owned(),
        };
        Self::single(
            name,
            read_source(name, source, &mut Spool::default())?,
            None,
        )
    }

    /// A log of tensors that a program holds in memory, which are read where they lie.
    /// `name` stands for the path in messages and reports.
    ///
    /// # Errors
    ///
    /// As [`Log::open_with`].
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{Dtype, HeldTensor, Log, Metadata, Row};
    /// let rows = |name: &str, row: [f32; 2]| {
    ///     let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
    ///     HeldTensor::new(name, Dtype::F32, &[1, 2], bytes)
    /// };
    /// let tensors = vec![rows("target_logits", [0.0, 1.0]), rows("draft_logits", [2.0, 0.0])];
    /// let log = Log::held("mine".as_ref(), Metadata::default(), tensors, None)?;
    /// let mut row = Row::default();
    /// log.read(0, &mut row)?;
    /// assert_eq!(row.draft, [2.0, 0.0]);
    /// # Ok::<(), specgap_log::log::LogError>(())
    /// ```
    pub fn held(
        name: &Path,
        metadata: Metadata,
        tensors: Vec<HeldTensor>,
        vocabulary: Option<usize>,
    ) -> Result<Self, LogError> {
        let mut contents = Contents::default();
        for one in tensors {
            let source = Source::Held {
                entries: one.entries,
                path: name.to_owned(),
            };
            let tensor = Tensor::within(one.name, one.dtype, one.shape, Arc::new(source), 0, name)?;
            contents.tensors.insert(tensor.name.clone(), tensor);
        }
        let (shard, ignored) = Shard::new(name, contents)?;
        Self::assemble(name, metadata, vec![shard], ignored, vocabulary)
    }

    fn single(
        path: &Path,
        contents: Contents,
        vocabulary: Option<usize>,
    ) -> Result<Self, LogError> {
        let metadata = match &contents.metadata {
            Some(text) => typed::whole_json(text).map_err(|error| {
                LogError::format(
                    path,
                    format!(
                        "its metadata cannot be read: {error}; docs/reference/log-format.md says \
                         what each field holds"
                    ),
                )
            })?,
            None => Metadata::default(),
        };
        let (shard, ignored) = Shard::new(path, contents)?;
        Self::assemble(path, metadata, vec![shard], ignored, vocabulary)
    }

    /// A sharded log in memory, such as one that is compiled in: its `log.json`,
    /// and its shards in the order in which that lists them.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn embedded(name: &Path, index: &str, shards: &[&[u8]]) -> Result<Self, LogError> {
        let index = parse_index(name, index)?;
        if index.shards.len() != shards.len() {
            let (listed, has) = (index.shards.len(), shards.len());
            let message = format!("lists {listed} shards and has {has}");
            return Err(LogError::format(name, message));
        }
        let (mut all, mut ignored) = (Vec::new(), Vec::new());
        let mut spool = Spool::default();
        for (entry, &bytes) in index.shards.iter().zip(shards) {
            let path = name.join(&entry.file);
            if let Some(target) = &entry.target {
                let message = format!(
                    "has its target's rows in {:?}, which is not here",
                    target.file
                );
                return Err(LogError::format(&path, message));
            }
            let source = Source::Memory {
                entries: Arc::new(bytes.to_vec()),
                path: path.clone(),
            };
            let (shard, more) = Shard::new(&path, read_source(&path, source, &mut spool)?)?;
            all.push(shard);
            ignored.extend(more);
        }
        Self::assemble(name, index.metadata, all, ignored, None)
    }

    fn open_directory(path: &Path, vocabulary: Option<usize>) -> Result<Self, LogError> {
        let index = read_index(path)?;
        if index.shards.is_empty() {
            return Err(LogError::format(
                path,
                format!("its {INDEX_NAME} lists no shards; nothing was captured yet"),
            ));
        }
        let mut shards = Vec::with_capacity(index.shards.len());
        let mut ignored: Vec<String> = Vec::new();
        let mut spool = Spool::default();
        for entry in &index.shards {
            let file = path.join(shard_file(path, &entry.file)?);
            let mut contents = read_file(&file, &mut spool)?;
            if let Some(target) = &entry.target {
                let place = shared::find_target(path, &file, target)?;
                let theirs = (place.as_path(), read_file(&place, &mut spool)?);
                shared::take_target(path, &file, target, theirs, &mut contents)?;
            }
            let (shard, more) = Shard::new(&file, contents)?;
            if shard.positions != entry.positions {
                return Err(LogError::format(
                    &file,
                    format!(
                        "has {} positions where {INDEX_NAME} says {}; one of the two was replaced",
                        shard.positions, entry.positions
                    ),
                ));
            }
            for name in more {
                if !ignored.contains(&name) {
                    ignored.push(name);
                }
            }
            shards.push(shard);
        }
        Self::assemble(path, index.metadata, shards, ignored, vocabulary)
    }

    fn assemble(
        path: &Path,
        metadata: Metadata,
        shards: Vec<Shard>,
        ignored: Vec<String>,
        wanted: Option<usize>,
    ) -> Result<Self, LogError> {
        let refused = |message: String| Err(LogError::format(path, message));
        check_metadata(path, &metadata)?;
        if wanted == Some(0) {
            return refused("--vocab 0 keeps no token; give at least 1".to_owned());
        }
        let mut vocabulary = None;
        check_depths(&shards)?;
        for shard in &shards {
            let here = shard.vocabulary(&metadata, wanted)?;
            if let Some(before) = vocabulary.filter(|&before| before != here) {
                return Err(LogError::format(
                    &shard.path,
                    format!(
                        "has V = {here} where the shards before it have {before}; --vocab N keeps \
                         the first N tokens of all"
                    ),
                ));
            }
            vocabulary = Some(here);
            let temperatures = metadata.rest_temperatures.len();
            let mut rests = Beside::RESTS
                .iter()
                .filter_map(|one| shard.beside[*one].as_ref());
            if let Some(rest) = rests.find(|rest| rest.columns() != temperatures) {
                let message = format!(
                    "has {} columns but the metadata's rest_temperatures has {temperatures} entries",
                    rest.columns()
                );
                return Err(LogError::tensor(&shard.path, &rest.name, message));
            }
        }
        let mut starts = Vec::with_capacity(shards.len() + 1);
        let mut total = 0usize;
        for shard in &shards {
            starts.push(total);
            total = total
                .checked_add(shard.positions)
                .ok_or_else(|| LogError::format(path, "has too many positions"))?;
        }
        starts.push(total);
        if total == 0 {
            return refused("has no positions".to_owned());
        }
        let of_prompts = (metadata.prompts.iter())
            .try_fold(0usize, |sum, prompt| sum.checked_add(prompt.positions));
        if of_prompts.is_none_or(|sum| sum > total) {
            return refused(format!(
                "the prompts in its metadata have more positions than its {total}"
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            called: None,
            metadata,
            shards: Arc::new(shards),
            starts,
            ahead: 0,
            before: None,
            vocabulary: vocabulary.unwrap_or(0),
            kept: wanted,
            ignored,
        })
    }

    /// The file or directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log under another name than that of its file or directory, in reports.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        self.called = Some(name.to_owned());
        self
    }

    /// What it was [called](Self::called), or else its file or directory without the folders
    /// around it; `.` and `..` have the name of the directory that they lead to.
    pub fn name(&self) -> String {
        match &self.called {
            Some(name) => name.clone(),
            None => specgap_base::files::name(&self.path),
        }
    }

    /// What the log says of itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// N.
    pub fn positions(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// V.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// How many tokens of every row are kept, if that was asked for when it was opened.
    pub fn kept(&self) -> Option<usize> {
        self.kept
    }

    /// The most tokens that a row lists: V for full rows.
    pub fn listed(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.columns(self.vocabulary))
            .max()
            .unwrap_or(0)
    }

    /// Whether rows list some tokens and give the mass of the rest.
    pub fn is_top_heavy(&self) -> bool {
        self.shards.iter().any(Shard::is_top_heavy)
    }

    /// Whether target and draft list tokens of their own, not the same ones.
    pub fn has_own_lists(&self) -> bool {
        self.shards.iter().any(Shard::has_own_lists)
    }

    /// Whether the mass of unlisted tokens is given: of the target's rows, and of the
    /// draft's.
    pub fn has_rests(&self) -> [bool; 2] {
        Beside::RESTS.map(|one| self.all_have(one))
    }

    fn all_have(&self, one: Beside) -> bool {
        self.shards.iter().all(|shard| shard.beside[one].is_some())
    }

    /// Whether any file has it.
    pub(super) fn any_has(&self, one: Beside) -> bool {
        self.shards.iter().any(|shard| shard.beside[one].is_some())
    }

    /// Whether every position says which prompt it belongs to.
    pub fn has_prompts(&self) -> bool {
        self.all_have(Beside::PromptId)
    }

    /// Whether every position has the token that was drawn there.
    pub fn has_tokens(&self) -> bool {
        self.all_have(Beside::Token)
    }

    /// Whether any file has the acceptance that a head predicts. Of the positions of a file
    /// without, nothing is said: one with nothing but last tokens of texts, say.
    pub fn has_head_acceptance(&self) -> bool {
        self.any_has(Beside::HeadAcceptance)
    }

    /// Whether any file has the overlap that a head predicts. Of the positions of a file
    /// without, nothing is said: one with nothing but last tokens of texts, say.
    pub fn has_head_overlap(&self) -> bool {
        self.any_has(Beside::HeadOverlap)
    }

    /// Those of `drafts`, `output`, `accepted`, `round`, `batch_size` and `seed`, what an engine
    /// did at the positions, that are there.
    pub fn engine_tensors(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for shard in self.shards.iter() {
            for tensor in Beside::OF_ENGINE
                .iter()
                .filter_map(|one| shard.beside[*one].as_ref())
            {
                if !names.contains(&tensor.name.as_str()) {
                    names.push(&tensor.name);
                }
            }
        }
        names
    }

    /// Whether any file says of which positions it has no row of the draft, or has none at all.
    pub fn may_lack_drafts(&self) -> bool {
        let may = |shard: &Shard| shard.is_text || shard.beside[Beside::DraftRow].is_some();
        self.shards.iter().any(may)
    }

    /// Refuses a text with the target's rows alone, of which only an audit can be made.
    ///
    /// # Errors
    /// Names the file and what it lacks.
    pub fn refuse_texts(&self) -> Result<(), LogError> {
        match self.shards.iter().find(|shard| shard.is_text) {
            None => Ok(()),
            Some(shard) => Err(LogError::tensor(
                &shard.path,
                "draft_logits",
                "is missing, and so are draft_probs and draft_logprobs; a text with the target's \
                 rows alone is for specgap audit",
            )),
        }
    }

    /// Tensors in the files that specgap does not know.
    pub fn ignored_tensors(&self) -> &[String] {
        &self.ignored
    }

    /// What the entries of target and draft rows are, in the first shard.
    pub fn kinds(&self) -> (RowKind, RowKind) {
        self.shards
            .first()
            .map_or((RowKind::Logits, RowKind::Logits), |shard| {
                (shard.target_kind, shard.draft_kind)
            })
    }

    /// The types of target and draft rows, in the first shard.
    pub fn dtypes(&self) -> (Dtype, Dtype) {
        self.shards
            .first()
            .map_or((Dtype::F32, Dtype::F32), |shard| {
                (shard.target.dtype, shard.draft.dtype)
            })
    }

    /// All positions in order, in spans of at most `length` that do not cross
    /// shards.
    pub fn spans(&self, length: usize) -> Vec<Span> {
        self.spans_of(0..self.positions(), length)
    }

    /// The positions with these numbers, in order, in spans of at most `length` that
    /// do not cross shards.
    pub fn spans_of(&self, positions: Range<usize>, length: usize) -> Vec<Span> {
        let length = length.max(1);
        let mut spans = Vec::new();
        for (shard, (held, &start)) in self.shards.iter().zip(&self.starts).enumerate() {
            let end = positions.end.saturating_sub(start).min(held.positions);
            let begin = positions.start.saturating_sub(start);
            for first in (begin..end).step_by(length) {
                spans.push(Span {
                    shard,
                    rows: first..end.min(first.saturating_add(length)),
                    first: start + first,
                });
            }
        }
        spans
    }

    /// Reads the rows of a span.
    ///
    /// # Errors
    ///
    /// If a file was shortened or replaced since it was opened, or cannot be read.
    pub fn chunk(&self, span: &Span) -> Result<Chunk<'_>, LogError> {
        let shard = self
            .shards
            .get(span.shard)
            .filter(|shard| span.rows.end <= shard.positions)
            .ok_or_else(|| LogError::format(&self.path, "is not the log that this span is of"))?;
        Ok(Chunk {
            log: self,
            shard,
            span: span.clone(),
            target: shard.target.window(span.rows.clone())?,
            beside: Columns::of(|one| {
                let wanted = !one.is_apart() && !one.is_of_draft();
                let tensor = shard.beside[one].as_ref().filter(|_| wanted);
                let window = tensor.map(|tensor| tensor.window(span.rows.clone()));
                window.transpose()
            })?,
            drafted: match shard.depths {
                1 if self.ahead == 0 => Some(shard.drafted(span.rows.clone())?),
                _ => None,
            },
        })
    }

    /// Reads one position.
    ///
    /// # Errors
    ///
    /// As [`Log::chunk`] and [`Chunk::read`]; also if there is no such position.
    pub fn read(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        if index >= self.positions() {
            return Err(LogError::format(
                &self.path,
                format!("has {} positions, none of number {index}", self.positions()),
            ));
        }
        let (shard, place) = self.place(index);
        let span = Span {
            shard,
            rows: place..place + 1,
            first: index,
        };
        self.chunk(&span)?.read(index, row)
    }

    /// The shard that a position is in, and its row there.
    pub(super) fn place(&self, index: usize) -> (usize, usize) {
        // The last shard that begins at or before it and is not empty.
        let shard = self.starts.partition_point(|&start| start <= index) - 1;
        let first = self.starts.get(shard).copied().unwrap_or(0);
        (shard, index - first)
    }
}

/// K, of the draft's rows of shape [N, K, V]; `None` where they have no depths.
fn depths_of(path: &Path, draft: &Tensor) -> Result<Option<usize>, LogError> {
    match draft.shape[..] {
        [_, 0, _] => Err(LogError::tensor(
            path,
            &draft.name,
            "has no depth: its shape is [N, K, V], K from 1 on".to_owned(),
        )),
        [_, depths, _] => Ok(Some(depths)),
        _ => Ok(None),
    }
}

/// Refuses shards that differ in their depths, or whose positions do not say where in a text
/// they are.
fn check_depths(shards: &[Shard]) -> Result<(), LogError> {
    let Some(first) = shards.first() else {
        return Ok(());
    };
    for shard in shards {
        let refused = |name: &str, message| Err(LogError::tensor(&shard.path, name, message));
        if shard.depths != first.depths {
            let message = format!(
                "has {} depths where the shards before it have {}",
                shard.depths, first.depths
            );
            return refused(&shard.draft.name, message);
        }
        if shard.depths == 1 {
            continue;
        }
        let lacks = |one: &&Beside| shard.beside[**one].is_none();
        if let Some(&one) = [Beside::PromptId, Beside::Position].iter().find(lacks) {
            let (_, name, ..) = Beside::ALL[one as usize];
            let message = format!(
                "is missing; {} has a row for each depth, of which the row at depth d of position \
                 s is about position s + d - 1 of the same text",
                shard.draft.name
            );
            return refused(name, message);
        }
        if shard.beside[Beside::TokenIds].is_some() {
            let message = "lists the tokens of both rows, which are about other tokens at each \
                           depth; give target_token_ids and draft_token_ids";
            return refused("token_ids", message.to_owned());
        }
    }
    Ok(())
}

/// What a log says of itself that cannot be.
fn check_metadata(path: &Path, metadata: &Metadata) -> Result<(), LogError> {
    let refused = |message: String| Err(LogError::format(path, message));
    let applied = metadata.applied();
    if !(applied > 0.0 && applied.is_finite()) {
        return refused(format!(
            "temperature_applied is {applied}; it must be finite and > 0, and is 1 for raw logits"
        ));
    }
    if let Some(sampling) = &metadata.sampling {
        let (t, p) = (sampling.temperature, sampling.top_p.unwrap_or(1.0));
        if !(t >= 0.0 && t.is_finite()) {
            return refused(format!(
                "sampling.temperature is {t}; it must be finite and >= 0"
            ));
        }
        if !(0.0..=1.0).contains(&p) {
            return refused(format!("sampling.top_p is {p}; it must be in [0, 1]"));
        }
    }
    let rests = metadata.rest_temperatures.iter();
    if let Some(t) = rests.copied().find(|t| !(*t > 0.0 && t.is_finite())) {
        return refused(format!(
            "rest_temperatures has {t}; each must be finite and > 0"
        ));
    }
    let mut ids = HashMap::with_capacity(metadata.prompts.len());
    for (entry, prompt) in metadata.prompts.iter().enumerate() {
        if let Some(first) = ids.insert(prompt.id, entry) {
            return refused(format!(
                "prompts {first} and {entry} both have the id {}",
                prompt.id
            ));
        }
    }
    Ok(())
}

/// Reads and checks `log.json`.
pub(super) fn read_index(directory: &Path) -> Result<Index, LogError> {
    let path = directory.join(INDEX_NAME);
    let text =
        specgap_base::files::read_text(&path, specgap_base::files::DOCUMENT).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                LogError::format(
                    directory,
                    format!("has no {INDEX_NAME}; a sharded log is a directory with one"),
                )
            } else {
                LogError::reading(&path, source)
            }
        })?;
    parse_index(&path, &text)
}

fn parse_index(path: &Path, text: &str) -> Result<Index, LogError> {
    let unreadable = |error| LogError::format(path, format!("cannot be read: {error}"));
    // Before the fields, which another version may have named otherwise.
    let Version { schema } = typed::whole_json(text).map_err(unreadable)?;
    if schema != u64::from(SCHEMA) {
        return Err(LogError::format(
            path,
            format!("schema is {schema}; this version of specgap reads {SCHEMA}"),
        ));
    }
    let index: Index = typed::whole_json(text).map_err(unreadable)?;
    let mut seen = HashMap::with_capacity(index.shards.len());
    for (entry, shard) in index.shards.iter().enumerate() {
        if let Some(first) = seen.insert(shard.file.as_str(), entry) {
            return Err(LogError::format(
                path,
                format!(
                    "entries {first} and {entry} of its shards are both {:?}, whose positions \
                     would count twice; remove one of the two",
                    shard.file
                ),
            ));
        }
    }
    Ok(index)
}

/// A shard's name, if it is one: no folders, so that a log cannot point outside.
fn shard_file<'a>(directory: &Path, name: &'a str) -> Result<&'a Path, LogError> {
    let path = Path::new(name);
    if path
        .file_name()
        .is_some_and(|file| file == path.as_os_str())
    {
        Ok(path)
    } else {
        Err(LogError::format(
            &directory.join(INDEX_NAME),
            format!("shard {name:?} is not a plain file name"),
        ))
    }
}

/// Reads the header of a file; `spool` takes what has to be unpacked.
pub(super) fn read_file(path: &Path, spool: &mut Spool) -> Result<Contents, LogError> {
    read_source(path, Source::open(path)?, spool)
}

fn read_source(path: &Path, source: Source, spool: &mut Spool) -> Result<Contents, LogError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("safetensors") => safetensors::read(path, source),
        Some("npz") => npz::read(path, source, spool),
        _ => Err(LogError::format(
            path,
            "is no log: a log is a .safetensors or .npz file, or a directory with a log.json",
        )),
    }
}

impl Shard {
    /// What the draft says in some rows of its tensors.
    pub(super) fn drafted(&self, rows: Range<usize>) -> Result<Drafted<'_>, LogError> {
        Ok(Drafted {
            rows: self.draft.window(rows.clone())?,
            beside: Columns::of(|one| {
                let tensor = self.beside[one].as_ref().filter(|_| one.is_of_draft());
                let window = tensor.map(|tensor| tensor.window(rows.clone()));
                window.transpose()
            })?,
        })
    }

    /// Tells the integers of a tensor by row and column, where the file has it.
    pub(super) fn integers(
        &self,
        one: Beside,
        mut see: impl FnMut(&Tensor, [usize; 2], i64) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let Some(tensor) = &self.beside[one] else {
            return Ok(());
        };
        let window = tensor.window(0..self.positions)?;
        for row in 0..self.positions {
            for (column, value) in window.integers(row).enumerate() {
                see(tensor, [row, column], value)?;
            }
        }
        Ok(())
    }

    fn new(path: &Path, mut contents: Contents) -> Result<(Self, Vec<String>), LogError> {
        let refused = |name: &str, message: String| Err(LogError::tensor(path, name, message));
        let held = contents.names();
        let (target, target_kind) = rows_of(path, &mut contents, "target", &held)?;
        let is_text = is_text(&contents);
        let (mut draft, draft_kind) = match is_text {
            true => (target.clone(), target_kind),
            false => rows_of(path, &mut contents, "draft", &held)?,
        };
        let positions = target.rows();
        let depths = depths_of(path, &draft)?;
        let of_depths = |tensor: Tensor| match depths {
            Some(_) => tensor.by_depth(),
            None => tensor,
        };
        if draft.rows() != positions {
            return refused(
                &draft.name,
                format!(
                    "has {} rows but {} has {positions}; rows are pairs",
                    draft.rows(),
                    target.name
                ),
            );
        }
        draft = of_depths(draft);
        let mut beside = Columns::of(|one| {
            let tensor = take(path, &mut contents, one, (positions, depths))?;
            Ok(match one.is_of_draft() {
                true => tensor.map(of_depths),
                false => tensor,
            })
        })?;
        let sub_vocabulary = SubVocabulary::take(path, &mut contents, &draft)?;
        if is_text {
            beside[Beside::DraftRest] = beside[Beside::TargetRest].clone();
        }
        mask::check(path, &beside, target.columns())?;
        let token_ids = beside[Beside::TokenIds].as_ref();
        let own_ids = match Beside::OWN_IDS.map(|one| beside[one].as_ref()) {
            [None, None] => None,
            [Some(target), Some(draft)] => Some([target, draft]),
            [Some(_), None] => return Err(without_the_other(path, "draft")),
            [None, Some(_)] => return Err(without_the_other(path, "target")),
        };
        if let (Some(both), Some([target, _])) = (token_ids, own_ids) {
            return refused(
                &target.name,
                format!(
                    "is there beside {}, which lists the tokens of both rows; keep one of the two",
                    both.name
                ),
            );
        }
        let lists = match (token_ids, own_ids) {
            (Some(both), _) => vec![(&target, both), (&draft, both)],
            (None, Some([of_target, of_draft])) => vec![(&target, of_target), (&draft, of_draft)],
            (None, None) => Vec::new(),
        };
        for &(tensor, ids) in &lists {
            if tensor.columns() != ids.columns() {
                return refused(
                    &tensor.name,
                    format!(
                        "has {} columns but {} has {}; in a top-heavy log each column of a row \
                         belongs to the token id in the same place",
                        tensor.columns(),
                        ids.name,
                        ids.columns()
                    ),
                );
            }
        }
        if let (Some(_), Some((draft, ids))) = (&sub_vocabulary, lists.last()) {
            return refused(
                &draft.name,
                format!(
                    "lists the tokens of {}, and the file has d2t too; lists have the target's own \
                     ids, so leave d2t out",
                    ids.name
                ),
            );
        }
        // Else each column has its token.
        if lists.is_empty() && Beside::RESTS.iter().any(|one| beside[*one].is_some()) {
            return refused(
                "token_ids",
                "is missing although the mass of unlisted tokens is given".to_owned(),
            );
        }
        let mut rollouts = HeldRollouts::default();
        for name in names() {
            rollouts.tensors.extend(contents.tensors.remove_entry(name));
            rollouts
                .unreadable
                .extend(contents.unreadable.remove_entry(name));
        }
        let ignored = contents
            .tensors
            .into_keys()
            .chain(contents.unreadable.into_keys())
            .collect();
        Ok((
            Self {
                path: path.to_owned(),
                positions,
                target,
                target_kind,
                draft,
                draft_kind,
                depths: depths.unwrap_or(1),
                sub_vocabulary,
                beside,
                is_text,
                rollouts,
            },
            ignored,
        ))
    }

    /// V, after `--vocab`.
    fn vocabulary(&self, metadata: &Metadata, wanted: Option<usize>) -> Result<usize, LogError> {
        let of_tensor =
            |name: &str, message: String| Err(LogError::tensor(&self.path, name, message));
        let refused = |message: String| Err(LogError::format(&self.path, message));
        let width = if self.is_top_heavy() {
            metadata.vocabulary.ok_or_else(|| {
                LogError::format(
                    &self.path,
                    "lists token_ids, but the metadata does not say the vocabulary",
                )
            })?
        } else {
            let (target, draft) = match &self.sub_vocabulary {
                Some(some) => {
                    some.within(&self.path, self.target.columns())?;
                    (self.target.columns(), self.target.columns())
                }
                None => (self.target.columns(), self.draft.columns()),
            };
            if target != draft && wanted.is_none() {
                return of_tensor(
                    &self.draft.name,
                    format!(
                        "has V = {draft} but {} has V = {target}; if they differ by padding \
                         alone, --vocab N keeps the first N tokens of both",
                        self.target.name
                    ),
                );
            }
            let width = target.min(draft);
            if let Some(said) = metadata
                .vocabulary
                .filter(|&said| wanted.is_none() && said != width)
            {
                return of_tensor(
                    &self.target.name,
                    format!("has V = {width} but the metadata says {said}; --vocab N settles it"),
                );
            }
            width
        };
        if width == 0 {
            return of_tensor(&self.target.name, "has an empty vocabulary".to_owned());
        }
        if u32::try_from(width).is_err() {
            return refused(format!("V = {width} is more than 2^32 - 1"));
        }
        match wanted {
            None => Ok(width),
            Some(wanted) if wanted <= width => Ok(wanted),
            Some(wanted) => refused(format!(
                "has V = {width}, so --vocab {wanted} keeps nothing more; give at most {width}"
            )),
        }
    }

    fn is_top_heavy(&self) -> bool {
        self.beside[Beside::TokenIds].is_some() || self.has_own_lists()
    }

    fn has_own_lists(&self) -> bool {
        Beside::OWN_IDS
            .iter()
            .all(|one| self.beside[*one].is_some())
    }

    fn columns(&self, vocabulary: usize) -> usize {
        if self.has_own_lists() {
            self.target.columns().max(self.draft.columns())
        } else if self.is_top_heavy() {
            self.target.columns()
        } else {
            vocabulary
        }
    }
}

/// Whether a file has what came out and the target's rows, and nothing of a draft.
fn is_text(contents: &Contents) -> bool {
    let has = |name: &str| contents.tensors.contains_key(name);
    let of_draft = |name: &String| name.starts_with("draft");
    let names = contents.tensors.keys().chain(contents.unreadable.keys());
    (has("output") || has("token")) && !names.into_iter().any(of_draft)
}

/// One row has a list of its own.
fn without_the_other(path: &Path, model: &str) -> LogError {
    LogError::tensor(
        path,
        &format!("{model}_token_ids"),
        "is missing; where target and draft have lists of their own, both have their ids",
    )
}

/// Finds a model's rows under one of their three names; `held` names what the file has.
fn rows_of(
    path: &Path,
    contents: &mut Contents,
    model: &str,
    held: &str,
) -> Result<(Tensor, RowKind), LogError> {
    let refused = |name: &str, message: String| Err(LogError::tensor(path, name, message));
    let mut found = None;
    for kind in RowKind::ALL {
        let name = format!("{model}_{}", kind.suffix());
        if let Some(dtype) = contents.unreadable.get(&name) {
            return refused(
                &name,
                format!(
                    "has entries of type {dtype}; rows are f16, bf16, f32 or f64, little-endian"
                ),
            );
        }
        if let Some(tensor) = contents.tensors.remove(&name) {
            if found.is_some() {
                return refused(
                    &name,
                    format!("is a second form of the {model}'s rows; keep one of them"),
                );
            }
            found = Some((tensor, kind));
        }
    }
    let Some((tensor, kind)) = found else {
        return refused(
            &format!("{model}_logits"),
            format!(
                "is missing, and so are {model}_probs and {model}_logprobs; the file has {held}"
            ),
        );
    };
    let of_draft = model == "draft";
    let dimensions = tensor.shape.len();
    if !(dimensions == 2 || dimensions == 3 && of_draft) || !tensor.dtype.is_float() {
        return refused(
            &tensor.name,
            format!(
                "is {} of shape {:?}; rows are floating point of shape [N, V]{}",
                tensor.dtype,
                tensor.shape,
                match of_draft {
                    true => ", or [N, K, V] with a row for each depth",
                    false => "",
                }
            ),
        );
    }
    Ok((tensor, kind))
}

/// Takes an optional tensor and checks its type and shape.
fn take(
    path: &Path,
    contents: &mut Contents,
    one: Beside,
    (positions, depths): (usize, Option<usize>),
) -> Result<Option<Tensor>, LogError> {
    let (_, name, mut dimensions, float) = Beside::ALL[one as usize];
    let depths = depths.filter(|_| one.is_of_draft());
    let by_depth = depths.is_some();
    if by_depth {
        dimensions += 1;
    }
    let wanted = match (float, one) {
        (true, _) => "f64 (or another float) ",
        (_, Beside::Allowed) => "u8, bool, i64 or i32 ",
        _ => "i64 or i32 ",
    };
    let shape = match (by_depth, dimensions) {
        (true, 2) => "[N, K]",
        (true, _) => "[N, K, ...]",
        (false, 1) => "[N]",
        (false, _) => "[N, ...]",
    };
    let refused = |message: String| Err(LogError::tensor(path, name, message));
    if let Some(dtype) = contents.unreadable.get(name) {
        return refused(format!(
            "has entries of type {dtype}; it must be {wanted}of shape {shape}"
        ));
    }
    let Some(tensor) = contents.tensors.remove(name) else {
        return Ok(None);
    };
    if tensor.dtype.is_float() != float
        || tensor.shape.len() != dimensions
        || tensor.rows() != positions
        || depths.is_some_and(|depths| tensor.shape.get(1) != Some(&depths))
    {
        let of_rows = match depths {
            Some(depths) => format!(" and K = {depths}, as the draft's rows"),
            None => String::new(),
        };
        return refused(format!(
            "is {} of shape {:?}; it must be {wanted}of shape {shape} with N = {positions}{of_rows}",
            tensor.dtype, tensor.shape
        ));
    }
    Ok(Some(tensor))
}

impl Chunk<'_> {
    /// The numbers of its positions in the log.
    pub fn positions(&self) -> Range<usize> {
        self.span.positions()
    }

    /// Reads the position with this number in the log, and checks every entry.
    ///
    /// # Errors
    ///
    /// NaN, +inf, a row of only -inf, negative probabilities, probabilities
    /// that do not sum to 1 (within 1e-6 for f64, 1e-4 for f32, 2e-2 for the
    /// half types; what is within is for the reader to normalise), token ids
    /// that repeat or lie outside the vocabulary. Each names file, tensor, row
    /// and column. Also if the chunk does not hold the position.
    pub fn read(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        let read = self.read_rows(index, row);
        read.map_err(|error| error.at_depth_of(self.shard.depths))
    }

    fn read_rows(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        if !self.positions().contains(&index) {
            return Err(LogError::format(
                &self.shard.path,
                format!("position {index} is outside {:?}", self.positions()),
            ));
        }
        let shard = self.shard;
        let number = index - self.span.first + self.span.rows.start;
        let vocabulary = self.log.vocabulary;
        // The draft's row, where there is one, and its number in its window's tensor.
        let found = match &self.drafted {
            Some(_) => None,
            None => self.log.drafted_at(index)?,
        };
        let (drafted, of_draft) = match (&self.drafted, &found) {
            (Some(drafted), _) => (Some(drafted), number),
            (None, Some((drafted, row))) => (Some(drafted), *row),
            (None, None) => (None, 0),
        };
        let said = |one: Beside| drafted.and_then(|drafted| drafted.beside[one].as_ref());
        let Row {
            token_ids,
            sorted,
            own_ids,
            ..
        } = &mut *row;
        token_ids.clear();
        let own = &self.beside[Beside::TargetTokenIds];
        let listed = match (&self.beside[Beside::TokenIds], own) {
            (Some(window), _) => {
                self.read_ids(window, number, token_ids, sorted)?;
                [token_ids.len(); 2]
            }
            (None, Some(of_target)) => {
                own_ids.iter_mut().for_each(Vec::clear);
                let [target_ids, draft_ids] = &mut *own_ids;
                self.read_ids(of_target, number, target_ids, sorted)?;
                if let Some(window) = said(Beside::DraftTokenIds) {
                    self.read_ids(window, of_draft, draft_ids, sorted)?;
                }
                own_ids.each_ref().map(Vec::len)
            }
            (None, None) => match &shard.sub_vocabulary {
                Some(some) => [vocabulary, some.len()],
                None => [vocabulary; 2],
            },
        };
        let Row {
            target,
            draft,
            scratch,
            ..
        } = row;
        self.target.floats(number, listed[0], scratch, target);
        row.target_kind = shard.target_kind;
        row.draft_kind = shard.draft_kind;
        let full = !shard.is_top_heavy();
        check(&self.target, shard.target_kind, number, target, full)?;
        row.lacks_draft = drafted.is_none() || self.lacks_draft(number)?;
        draft.clear();
        if let Some(drafted) = drafted {
            (drafted.rows).floats(of_draft, listed[1], scratch, draft);
        }
        if !row.lacks_draft
            && let Some(drafted) = drafted
        {
            check(&drafted.rows, shard.draft_kind, of_draft, draft, full)?;
            if let Some(some) = &shard.sub_vocabulary {
                let absent = match shard.draft_kind {
                    RowKind::Probabilities => 0.0,
                    RowKind::Logits | RowKind::LogProbabilities => f64::NEG_INFINITY,
                };
                some.spread(draft, vocabulary, absent, &mut row.head);
            }
        } else {
            let width = match (&shard.sub_vocabulary, drafted) {
                (None, Some(_)) => draft.len(),
                // A list of no token.
                (None, None) if shard.has_own_lists() => 0,
                _ => vocabulary,
            };
            draft.clear();
            draft.resize(width, f64::NAN);
        }
        if shard.has_own_lists() {
            let absent = |kind| match (self.log.metadata.unlisted, kind) {
                (None, _) => f64::NAN,
                (Some(UnlistedTokens::NeverDrawn), RowKind::Probabilities) => 0.0,
                (Some(UnlistedTokens::NeverDrawn), _) => f64::NEG_INFINITY,
            };
            row.join_lists([absent(shard.target_kind), absent(shard.draft_kind)]);
        }
        row.sort_list();
        let rests = Beside::RESTS.map(|one| match one.is_of_draft() {
            true => (said(one), of_draft),
            false => (self.beside[one].as_ref(), number),
        });
        self.read_rests(rests, row)?;
        let scored = Beside::SCORED.map(|one| (said(one), of_draft));
        let [hit, p_hit, max_q, overlap] =
            scored.map(|(window, number)| self.head(window, number, row));
        (row.hit, row.p_hit, row.max_q, row.overlap) = (hit?, p_hit?, max_q?, overlap?);
        self.read_beside(number, row)
    }

    /// Reads the mass that rows do not list, of the target and of the draft.
    fn read_rests(
        &self,
        rests: [(Option<&RowWindow<'_>>, usize); 2],
        row: &mut Row,
    ) -> Result<(), LogError> {
        for ((one, (window, number)), out) in
            (Beside::RESTS.into_iter().zip(rests)).zip([&mut row.target_rest, &mut row.draft_rest])
        {
            out.clear();
            let Some(window) = window else {
                // Where there is no row, all of its mass is elsewhere.
                if self.shard.beside[one].is_some() {
                    out.resize(self.log.metadata.rest_temperatures.len(), 1.0);
                }
                continue;
            };
            window.floats(number, window.tensor.columns(), &mut row.scratch, out);
            if let Some(column) = out.iter().position(|x| !(0.0..=1.0).contains(x)) {
                let message = format!("{} is no mass; it must be in [0, 1]", out[column]);
                return Err(window.tensor.refused(number, column, message));
            }
        }
        Ok(())
    }

    /// Reads what is said of a position beside its rows.
    fn read_beside(&self, number: usize, row: &mut Row) -> Result<(), LogError> {
        let one = |of: Beside| {
            let window = self.beside[of].as_ref();
            window.and_then(|window| window.integers(number).next())
        };
        row.prompt_id = one(Beside::PromptId);
        row.position = one(Beside::Position);
        row.token = one(Beside::Token);
        row.output = one(Beside::Output);
        row.covered = self.head(self.beside[Beside::Coverage].as_ref(), number, row)?;
        let heads = Beside::HEADS.map(|one| (self.beside[one].as_ref(), number));
        let [acceptance, overlap] = heads.map(|(window, number)| self.head(window, number, row));
        (row.head_acceptance, row.head_overlap) = (acceptance?, overlap?);
        row.drafts.clear();
        if let Some(window) = &self.beside[Beside::Drafts] {
            row.drafts.extend(window.integers(number));
        }
        for of in [Beside::Token, Beside::Output, Beside::Drafts] {
            let Some(window) = &self.beside[of] else {
                continue;
            };
            for (column, id) in window.integers(number).enumerate() {
                let within = usize::try_from(id).is_ok_and(|id| id < self.log.vocabulary);
                if !within && id != -1 {
                    let message = outside(id, self.log.vocabulary);
                    return Err(window.tensor.refused(number, column, message));
                }
            }
        }
        Ok(())
    }

    /// Reads what is said of a position in one number, by a head or beside its rows; -1 stands
    /// for nothing.
    fn head(
        &self,
        window: Option<&RowWindow<'_>>,
        number: usize,
        row: &mut Row,
    ) -> Result<Option<f64>, LogError> {
        let Some(window) = window else {
            return Ok(None);
        };
        window.floats(number, 1, &mut row.scratch, &mut row.head);
        let x = row.head.first().copied().unwrap_or(-1.0);
        if !(0.0..=1.0).contains(&x) && x != -1.0 {
            return Err(LogError::entry(
                &self.shard.path,
                &window.tensor.name,
                number,
                0,
                format!("is {x}; it must be in [0, 1], and -1 stands for nothing"),
            ));
        }
        Ok((x >= 0.0).then_some(x))
    }

    /// Whether the log says that it has no row of the draft at a row of the shard.
    fn lacks_draft(&self, number: usize) -> Result<bool, LogError> {
        if self.shard.is_text {
            return Ok(true);
        }
        let Some(window) = &self.beside[Beside::DraftRow] else {
            return Ok(false);
        };
        match window.integers(number).next() {
            Some(0) => Ok(true),
            Some(1) | None => Ok(false),
            Some(other) => Err(LogError::entry(
                &self.shard.path,
                DRAFT_ROW,
                number,
                0,
                format!("is {other}; it is 1 where the draft has a row, and 0 where it has none"),
            )),
        }
    }

    /// Reads the ids of a list.
    fn read_ids(
        &self,
        window: &RowWindow<'_>,
        number: usize,
        ids: &mut Vec<u32>,
        sorted: &mut Vec<u32>,
    ) -> Result<(), LogError> {
        let name = &window.tensor.name;
        let refused =
            |column: usize, message: String| window.tensor.refused(number, column, message);
        for (column, id) in window.integers(number).enumerate() {
            if id == -1 {
                break;
            }
            let id = u32::try_from(id)
                .ok()
                .filter(|&id| (id as usize) < self.log.vocabulary)
                .ok_or_else(|| {
                    refused(
                        column,
                        format!(
                            "token {id} is outside the vocabulary of {}; unused places at the end \
                             are -1",
                            self.log.vocabulary
                        ),
                    )
                })?;
            ids.push(id);
        }
        if let Some((column, id)) = window
            .integers(number)
            .enumerate()
            .skip(ids.len())
            .find(|&(_, id)| id != -1)
        {
            return Err(refused(
                column,
                format!("token {id} stands after an unused place; unused places are at the end"),
            ));
        }
        if ids.is_empty() {
            return Err(LogError::row(
                window.tensor.path(),
                name,
                number,
                "lists no tokens",
            ));
        }
        sorted.clone_from(ids);
        sorted.sort_unstable();
        if let Some(&[id, _]) = sorted.array_windows().find(|[a, b]| a == b) {
            let column = ids.iter().rposition(|&x| x == id).unwrap_or(0);
            return Err(refused(column, format!("token {id} is listed twice")));
        }
        Ok(())
    }
}

/// Checks the entries of one row.
fn check(
    window: &RowWindow<'_>,
    kind: RowKind,
    number: usize,
    entries: &[f64],
    full: bool,
) -> Result<(), LogError> {
    let (path, name) = (window.tensor.path(), &window.tensor.name);
    let at = |column: usize, message: String| Err(window.tensor.refused(number, column, message));
    let instead = || instead(kind, entries, window.tensor.dtype);
    let largest = match entries::first_not_legal(entries) {
        Ok(largest) => largest,
        Err(column) => {
            return at(
                column,
                not_legal(entries, column, kind, window.tensor.dtype),
            );
        }
    };
    match kind {
        RowKind::Logits | RowKind::LogProbabilities if largest == f64::NEG_INFINITY => {
            let none = "is -inf at every token, which leaves nothing to draw";
            return Err(LogError::row(path, name, number, none));
        }
        RowKind::Probabilities => {
            if let Some(column) = entries::first_negative(entries) {
                let (x, instead) = (entries[column], instead());
                let message = format!("is {x}; probabilities are finite and >= 0: {instead}");
                return at(column, message);
            }
        }
        _ => {}
    }
    if kind == RowKind::Logits {
        return Ok(());
    }
    let sum: f64 = match kind {
        RowKind::Probabilities => entries::sum(entries),
        _ => entries::sum_of_exp(entries),
    };
    let tolerance = window.tensor.dtype.sum_tolerance();
    // Listed tokens of a top-heavy row have at most all of the mass.
    // A sum that overflowed to infinity or NaN is no sum.
    let fine = if full {
        (sum - 1.0).abs() <= tolerance
    } else {
        sum > 0.0 && sum <= 1.0 + tolerance
    };
    if !fine {
        let instead = instead();
        let message = format!("sums to {sum}, more than {tolerance} from 1; {instead}");
        return Err(LogError::row(path, name, number, message));
    }
    Ok(())
}

/// What is said of an entry that is NaN or +inf.
fn not_legal(entries: &[f64], column: usize, kind: RowKind, dtype: Dtype) -> String {
    let what = match entries.get(column).is_some_and(|x| x.is_nan()) {
        true => "NaN",
        false => "+inf",
    };
    let legal = match kind {
        RowKind::Probabilities => "probabilities are finite and >= 0",
        _ if what == "+inf" && dtype == Dtype::F16 => {
            "entries are finite, or -inf for tokens that cannot be drawn; f16 ends at 65504, \
             so take logits of a wider type, or subtract each row's largest"
        }
        _ => "entries are finite, or -inf for tokens that cannot be drawn",
    };
    format!("is {what}; {legal}")
}

/// What entries may be that are not the probabilities or logarithms that they are called.
fn instead(kind: RowKind, entries: &[f64], dtype: Dtype) -> String {
    let tolerance = dtype.sum_tolerance();
    let natural = || (entries::sum_of_exp(entries) - 1.0).abs() <= tolerance;
    match Form::of(entries, tolerance) {
        _ if kind == RowKind::Probabilities && natural() => {
            "exp(x) sums to 1: these are logarithms, call the tensor *_logprobs".to_owned()
        }
        Some(Form::Probabilities) => {
            format!("{}; call the tensor *_probs", Form::Probabilities.as_str())
        }
        Some(form) => format!(
            "{}; {}, and call the tensor *_logprobs",
            form.as_str(),
            form.cure()
        ),
        None => "if these are raw model outputs, call the tensor *_logits".to_owned(),
    }
}
