//! A log of paired rows: what it has, and its positions in spans.

use super::beside::Beside;
use super::error::LogError;
use super::metadata::Metadata;
use super::row::RowKind;
use super::shard::Shard;
use specgap_entries::Dtype;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    pub(super) path: PathBuf,
    /// What it is called, if not as its file or directory.
    pub(super) called: Option<String>,
    pub(super) metadata: Metadata,
    pub(super) shards: Arc<Vec<Shard>>,
    /// Position numbers at which shards begin, and at last N.
    pub(super) starts: Vec<usize>,
    /// How many tokens of its round stand before the one that rows of the draft are about.
    pub(super) ahead: usize,
    /// Of every position the one before it in its text, once a depth beyond 1 was asked for.
    pub(super) before: Option<Arc<Vec<Option<usize>>>>,
    pub(super) vocabulary: usize,
    /// What `--vocab` asked for.
    pub(super) kept: Option<usize>,
    pub(super) ignored: Vec<String>,
}

/// Consecutive positions within one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub(super) shard: usize,
    /// Within the shard.
    pub(super) rows: Range<usize>,
    /// Number of the first position in the log.
    pub(super) first: usize,
}

impl Span {
    /// The numbers of its positions in the log.
    pub fn positions(&self) -> Range<usize> {
        self.first..self.first + self.rows.len()
    }
}

impl Log {
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

    /// Returns what it was [called](Self::called), or else its file or directory without the
    /// folders around it; `.` and `..` have the name of the directory that they lead to.
    pub fn name(&self) -> String {
        match &self.called {
            Some(name) => name.clone(),
            None => specgap_base::files::name(&self.path),
        }
    }

    /// Returns what the log says of itself.
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

    /// Returns how many tokens of every row are kept, if that was asked for when it was opened.
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

    /// Tells whether rows list some tokens and give the mass of the rest.
    pub fn is_top_heavy(&self) -> bool {
        self.shards.iter().any(Shard::is_top_heavy)
    }

    /// Tells whether target and draft list tokens of their own, not the same ones.
    pub fn has_own_lists(&self) -> bool {
        self.shards.iter().any(Shard::has_own_lists)
    }

    /// Tells whether the mass of unlisted tokens is given: of the target's rows, and of the
    /// draft's.
    pub fn has_rests(&self) -> [bool; 2] {
        Beside::RESTS.map(|one| self.all_have(one))
    }

    fn all_have(&self, one: Beside) -> bool {
        self.shards.iter().all(|shard| shard.beside[one].is_some())
    }

    /// Tells whether any file has it.
    pub(super) fn any_has(&self, one: Beside) -> bool {
        self.shards.iter().any(|shard| shard.beside[one].is_some())
    }

    /// Tells whether every position says which prompt it belongs to.
    pub fn has_prompts(&self) -> bool {
        self.all_have(Beside::PromptId)
    }

    /// Tells whether every position has the token that was drawn there.
    pub fn has_tokens(&self) -> bool {
        self.all_have(Beside::Token)
    }

    /// Tells whether any file has the acceptance that a head predicts. Of the positions of a file
    /// without, nothing is said: one with nothing but last tokens of texts, say.
    pub fn has_head_acceptance(&self) -> bool {
        self.any_has(Beside::HeadAcceptance)
    }

    /// Tells whether any file has the overlap that a head predicts. Of the positions of a file
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

    /// Tells whether any file says which positions have no row of the draft, or has none at all.
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

    /// Returns what the entries of target and draft rows are, in the first shard.
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

    /// The shard that a position is in, and its row there.
    pub(super) fn place(&self, index: usize) -> (usize, usize) {
        // The last shard that begins at or before it and is not empty.
        let shard = self.starts.partition_point(|&start| start <= index) - 1;
        let first = self.starts.get(shard).copied().unwrap_or(0);
        (shard, index - first)
    }
}
