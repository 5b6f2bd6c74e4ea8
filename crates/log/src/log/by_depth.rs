//! Drafts whose rows depend on where their round began: a row for each position and depth.
//!
//! Entry (s, j) of such a log, j from 0, is the draft's row for the token at position s + j when
//! the round begins at s, given the text's own tokens before s + j. One depth at a time, that is
//! a log like any other: the row of position t is entry (t - j, j), and the first j positions of
//! a text have none.

use super::beside::Beside;
use super::error::LogError;
use super::reader::Log;
use super::shard::Drafted;
use std::collections::HashMap;
use std::sync::Arc;

impl Log {
    /// K: how many rows of the draft a position has, one for each depth of a round that begins
    /// there. 1 for drafts whose rows depend on the text alone.
    pub fn depths(&self) -> usize {
        self.shards.first().map_or(1, |shard| shard.depths)
    }

    /// Returns the depth that the rows of the draft are read at, from 1.
    pub fn depth(&self) -> usize {
        self.ahead + 1
    }

    /// The tokens that the draft can draw, where these are not all: those of `d2t`.
    pub fn sub_vocabulary(&self) -> Option<&[u32]> {
        let shard = self.shards.first()?;
        Some(shard.sub_vocabulary.as_ref()?.ids())
    }

    /// Returns the same positions with the draft's rows at a depth, from 1 to [`Self::depths`]:
    /// that of position t is the row which a round that began at t - depth + 1 has for it. The
    /// first depth - 1 positions of every text have none. Shares all files with this log.
    ///
    /// # Errors
    /// A depth that the log does not have; texts with gaps.
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{Dtype, HeldTensor, Log, Metadata, Row};
    /// let floats = |name: &str, shape: &[usize], entries: &[f32]| {
    ///     let bytes: Vec<u8> = entries.iter().flat_map(|x| x.to_le_bytes()).collect();
    ///     HeldTensor::new(name, Dtype::F32, shape, bytes)
    /// };
    /// let numbers = |name: &str, [a, b]: [u8; 2]| {
    ///     HeldTensor::new(name, Dtype::I32, &[2], [a, 0, 0, 0, b, 0, 0, 0])
    /// };
    /// // Two positions, two depths, two tokens.
    /// let tensors = vec![
    ///     floats("target_logits", &[2, 2], &[0.0; 4]),
    ///     floats("draft_logits", &[2, 2, 2], &[1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0]),
    ///     numbers("prompt_id", [0, 0]),
    ///     numbers("position", [0, 1]),
    /// ];
    /// let log = Log::held("mine".as_ref(), Metadata::default(), tensors, None)?;
    /// let mut row = Row::default();
    /// log.read(1, &mut row)?;
    /// assert_eq!(row.draft, [3.0, 0.0]);
    /// // What the round that began at position 0 drafts second.
    /// log.at_depth(2)?.read(1, &mut row)?;
    /// assert_eq!(row.draft, [2.0, 0.0]);
    /// log.at_depth(2)?.read(0, &mut row)?;
    /// assert!(row.lacks_draft);
    /// # Ok::<(), specgap_log::log::LogError>(())
    /// ```
    pub fn at_depth(&self, depth: usize) -> Result<Self, LogError> {
        let most = self.depths();
        if depth == 0 || depth > most {
            return Err(LogError::format(
                self.path(),
                format!("has rows of the draft at depths 1 to {most}, and none at depth {depth}"),
            ));
        }
        let mut log = self.clone();
        log.ahead = depth - 1;
        if depth > 1 && log.before.is_none() {
            log.before = Some(Arc::new(log.read_before()?));
        }
        Ok(log)
    }

    /// Tells whether each position has a row of the draft at the depth that is read.
    ///
    /// # Errors
    /// Files that were shortened since the log was opened, or cannot be read.
    pub fn draft_rows(&self) -> Result<Vec<bool>, LogError> {
        let mut all = vec![true; self.positions()];
        for (shard, &first) in self.shards.iter().zip(&self.starts) {
            if shard.is_text {
                all[first..first + shard.positions].fill(false);
                continue;
            }
            shard.integers(Beside::DraftRow, |_, [row, _], value| {
                all[first + row] = value != 0;
                Ok(())
            })?;
        }
        for (number, one) in all.iter_mut().enumerate() {
            *one &= self.start_of_round(number).is_some();
        }
        Ok(all)
    }

    /// Reads what the draft says of a position at the depth that is read, with the number of the
    /// row; `None` at the first positions of a text.
    pub(super) fn drafted_at(
        &self,
        index: usize,
    ) -> Result<Option<(Drafted<'_>, usize)>, LogError> {
        let Some(start) = self.start_of_round(index) else {
            return Ok(None);
        };
        let (shard, row) = self.place(start);
        let Some(shard) = self.shards.get(shard) else {
            return Ok(None);
        };
        let row = row * shard.depths + self.ahead;
        Ok(Some((shard.drafted(row..row + 1)?, row)))
    }

    /// Finds where the round began whose draft at this depth is about a position; `None` if that is
    /// before its text.
    fn start_of_round(&self, index: usize) -> Option<usize> {
        let Some(before) = self.before.as_ref().filter(|_| self.ahead > 0) else {
            return Some(index);
        };
        (0..self.ahead).try_fold(index, |at, _| before.get(at).copied().flatten())
    }

    /// Finds the position before each in its text; texts may lie side by side, each in order.
    fn read_before(&self) -> Result<Vec<Option<usize>>, LogError> {
        // Of each prompt's text the last position, and its index.
        let mut ends: HashMap<i64, (usize, i64)> = HashMap::new();
        let mut all = Vec::with_capacity(self.positions());
        for (number, label) in self.labels()?.iter().enumerate() {
            let (prompt, position) = (label.prompt.unwrap_or(0), label.position.unwrap_or(-1));
            let end = ends.get(&prompt).filter(|_| position != 0);
            let wanted = end.map_or(0, |&(_, last)| last + 1);
            if position != wanted {
                return Err(LogError::format(
                    self.path(),
                    format!(
                        "position {number} is number {position} of the text of prompt {prompt}, \
                         where {wanted} is expected; the draft's rows at depth {} are found by \
                         counting, so log whole texts in order, from their first token (0) on",
                        self.ahead + 1
                    ),
                ));
            }
            all.push(end.map(|&(before, _)| before));
            ends.insert(prompt, (number, position));
        }
        Ok(all)
    }
}
