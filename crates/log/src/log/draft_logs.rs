//! Writing the logs of several drafts at the same positions.

use super::engine::EngineRecord;
use super::error::LogError;
use super::metadata::Metadata;
use super::rollouts::Rollout;
use super::writer::{HeadValues, Layout, LogWriter, Position};
use std::path::{Path, PathBuf};

/// One position of several drafts: raw logits of all models on the same prefix.
#[derive(Clone, Copy, Debug)]
pub struct SharedPosition<'a> {
    /// Which prompt it belongs to.
    pub prompt_id: i64,
    /// Its index in the generated text, from 0.
    pub position: i64,
    /// The token drawn from the target there, -1 for none.
    pub token: i64,
    /// The seed of the prompt's own random numbers, 0 or more; -1 for none.
    pub seed: i64,
    /// V logits of the target.
    pub target: &'a [f32],
    /// V logits of each draft, in the order of the logs.
    pub drafts: &'a [&'a [f32]],
}

/// Writes one log a draft, in folders side by side, of which the target's rows are stored
/// once: in the first, which is a log like any other. The others refer to its files, so that
/// all of them are read as logs, wherever the folder around them is.
///
/// Top-heavy rows list the same tokens in all logs: the most probable ones of the target and
/// of every draft.
///
/// [`DraftLogs::commit`] commits the first log first. A process that is killed between two
/// logs leaves the later ones a commit behind; [`DraftLogs::open`] takes the others back to
/// what all of them have.
///
/// ```
/// use specgap_log::log::{DraftLogs, Layout, Log, Metadata, Row, SharedPosition};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// let logs = [path.join("small"), path.join("large")];
/// let both = || vec![Metadata::default(); 2];
/// let mut writer = DraftLogs::open(&logs, both(), &Layout::new(3), 1)?;
/// writer.append(&SharedPosition {
///     prompt_id: 0,
///     position: 0,
///     token: 1,
///     seed: 20,
///     target: &[0.0, 1.0, 0.5],
///     drafts: &[&[0.0, 0.0, 0.0], &[0.0, 2.0, 1.0]],
/// })?;
/// writer.commit()?;
/// drop(writer);
/// let mut row = Row::default();
/// Log::open(&logs[1])?.read(0, &mut row)?;
/// assert_eq!((row.target[1], row.draft[0]), (0.0, -2.0));
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Debug)]
pub struct DraftLogs {
    writers: Vec<LogWriter>,
}

impl DraftLogs {
    /// Begins logs in these folders, which lie side by side, or goes on with those that are
    /// there. What they say of themselves is in `metadata`, which counts where they are new.
    ///
    /// `most_behind` is how many prompts a log may lack that another has: those of a commit.
    ///
    /// # Errors
    ///
    /// As [`LogWriter::create`] and [`LogWriter::resume`]; logs that lack more prompts than
    /// an interrupted commit can have left; shards that are not the same positions.
    pub fn open(
        folders: &[PathBuf],
        metadata: Vec<Metadata>,
        layout: &Layout,
        most_behind: usize,
    ) -> Result<Self, LogError> {
        let mut writers = Vec::with_capacity(folders.len());
        for (folder, metadata) in folders.iter().zip(metadata) {
            let mut writer = if LogWriter::exists(folder) {
                LogWriter::resume(folder, layout.clone())?
            } else {
                LogWriter::create(folder, metadata, layout.clone())?
            };
            if !writers.is_empty() {
                writer.follow();
            }
            if folders.len() > 1 {
                writer.keep_files();
            }
            writers.push(writer);
        }
        let mut logs = Self { writers };
        logs.level(folders, most_behind)?;
        Ok(logs)
    }

    /// Takes all logs back to the shards that every one of them has.
    fn level(&mut self, folders: &[PathBuf], most_behind: usize) -> Result<(), LogError> {
        let prompts = |writer: &LogWriter| writer.metadata().prompts.len();
        let most = self.writers.iter().map(prompts).max().unwrap_or(0);
        let shared = self.writers.iter().map(|writer| writer.shards().len());
        let shared = shared.min().unwrap_or(0);
        for (writer, folder) in self.writers.iter().zip(folders) {
            let own = prompts(writer);
            if most - own > most_behind {
                return Err(LogError::format(
                    folder,
                    format!(
                        "has {own} prompts where a log beside it has {most}, more than an \
                         interrupted capture leaves; it was removed or is of another capture. \
                         Capture into another folder, or remove all logs of this one"
                    ),
                ));
            }
        }
        let positions = |writer: &LogWriter| -> Vec<usize> {
            let shards = writer.shards().iter().take(shared);
            shards.map(|shard| shard.positions).collect()
        };
        let first = self.writers.first().map(positions);
        for (writer, folder) in self.writers.iter().zip(folders) {
            if Some(positions(writer)) != first {
                return Err(LogError::format(
                    folder,
                    "has other shards than the log that holds its target's rows; the two are not \
                     of one capture",
                ));
            }
        }
        for writer in &mut self.writers {
            writer.keep_shards(shared)?;
        }
        Ok(())
    }

    /// The logs' writers, in the order of the folders.
    pub fn writers(&self) -> &[LogWriter] {
        &self.writers
    }

    /// Changes what every log says of itself.
    pub fn metadata_mut(&mut self) -> impl Iterator<Item = &mut Metadata> {
        self.writers.iter_mut().map(LogWriter::metadata_mut)
    }

    /// Adds a position to all logs.
    ///
    /// # Errors
    ///
    /// As [`LogWriter::append`]; also where there are not as many drafts as logs.
    pub fn append(&mut self, position: &SharedPosition<'_>) -> Result<(), LogError> {
        if position.drafts.len() != self.writers.len() {
            return Err(LogError::format(
                self.folder(),
                format!(
                    "a position has rows of {} drafts, and there are {} logs",
                    position.drafts.len(),
                    self.writers.len()
                ),
            ));
        }
        let of = |draft| Position {
            prompt_id: position.prompt_id,
            position: position.position,
            token: position.token,
            target: position.target,
            draft,
        };
        for (writer, &draft) in self.writers.iter_mut().zip(position.drafts) {
            writer.check(&of(draft))?;
        }
        if self.writers.first().is_some_and(LogWriter::is_full) {
            self.write_shards()?;
        }
        let mut rows = vec![position.target];
        rows.extend(position.drafts);
        let ids = self.writers.first_mut().and_then(|first| first.mark(&rows));
        for (writer, &draft) in self.writers.iter_mut().zip(position.drafts) {
            writer.add(&of(draft), ids.clone());
            if position.seed >= 0 {
                writer.set_engine(&EngineRecord {
                    seed: Some(position.seed),
                    ..EngineRecord::default()
                })?;
            }
        }
        Ok(())
    }

    /// Says what heads of each draft predict at the position that was appended last.
    ///
    /// # Errors
    ///
    /// As [`LogWriter::set_head`].
    pub fn set_heads(&mut self, values: &[HeadValues]) -> Result<(), LogError> {
        for (writer, values) in self.writers.iter_mut().zip(values) {
            writer.set_head(values)?;
        }
        Ok(())
    }

    /// Adds a rollout of the first draft to its log.
    ///
    /// # Errors
    ///
    /// As [`LogWriter::append_rollout`].
    pub fn append_rollout(&mut self, rollout: &Rollout<'_>) -> Result<(), LogError> {
        let first = self.writers.first_mut();
        first.map_or(Ok(()), |first| first.append_rollout(rollout))
    }

    /// Makes everything appended so far part of the logs.
    ///
    /// # Errors
    ///
    /// As [`LogWriter::commit`]; a log then may be a commit behind the others.
    pub fn commit(&mut self) -> Result<(), LogError> {
        if self.writers.first().is_some_and(|first| first.held() > 0) {
            self.write_shards()?;
        }
        self.writers
            .iter_mut()
            .try_for_each(LogWriter::list_pending)
    }

    /// Ends the shard of all logs: all have the same positions.
    fn write_shards(&mut self) -> Result<(), LogError> {
        let Some((first, others)) = self.writers.split_first_mut() else {
            return Ok(());
        };
        first.write_shard()?;
        if others.is_empty() {
            return Ok(());
        }
        let target = first.last_shard()?;
        for writer in others {
            writer.write_shard_with(Some(target.clone()))?;
        }
        Ok(())
    }

    fn folder(&self) -> &Path {
        (self.writers.first()).map_or(Path::new(""), LogWriter::directory)
    }
}
