//! Whether two logs are the same rows, whatever they are called.

use super::beside::Beside;
use super::error::LogError;
use super::hash::{hexadecimal, update};
use super::reader::Log;
use super::row::RowKind;
use super::shard::Shard;
use super::sub_vocabulary::SubVocabulary;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use specgap_base::typed;

/// What tells a log from others: a hash of what it says of itself and of its shards.
///
/// A shard's hash covers its shape, its integers (prompts, positions, tokens) and three of
/// its rows: the first, the middle one and the last. Names of files and folders and the kind
/// of container do not count, so that a copy is known for one. Bytes are folded to 256 bits
/// before they are hashed, which is fast and tells logs apart that nobody forged.
///
/// ```no_run
/// # use specgap_log::log::Log;
/// let log = Log::open("log".as_ref())?;
/// let copy = Log::open("copy-of-log".as_ref())?;
/// assert_eq!(log.identity()?, copy.identity()?);
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogIdentity {
    /// SHA-256 over the metadata and the shards' hashes, in hexadecimal.
    pub digest: String,
    /// The shards, in order.
    pub shards: Vec<ShardIdentity>,
}

/// A shard of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardIdentity {
    /// SHA-256, in hexadecimal.
    pub digest: String,
    /// Its positions.
    pub positions: usize,
}

impl Log {
    /// Returns what tells this log from others. Reads the integers of the log and three rows a
    /// shard.
    ///
    /// # Errors
    /// Files that were shortened since the log was opened, or cannot be read.
    pub fn identity(&self) -> Result<LogIdentity, LogError> {
        let shards = self
            .shards
            .iter()
            .map(Shard::identity)
            .collect::<Result<Vec<_>, _>>()?;
        let mut hash = Sha256::new();
        if self.ahead > 0 {
            hash.update((self.ahead as u64).to_le_bytes());
        }
        // A map that cannot be written is none: what is hashed is then the shards alone.
        hash.update(typed::line(self.metadata()).unwrap_or_default());
        for shard in &shards {
            hash.update([0]);
            hash.update(&shard.digest);
        }
        Ok(LogIdentity {
            digest: hexadecimal(hash),
            shards,
        })
    }
}

impl Shard {
    fn identity(&self) -> Result<ShardIdentity, LogError> {
        let mut hash = Sha256::new();
        hash.update((self.positions as u64).to_le_bytes());
        for kind in [self.target_kind, self.draft_kind] {
            hash.update([match kind {
                RowKind::Logits => 0u8,
                RowKind::Probabilities => 1,
                RowKind::LogProbabilities => 2,
            }]);
        }
        let labels = [Beside::PromptId, Beside::Position, Beside::Token];
        for one in labels.into_iter().chain([Beside::Drafts, Beside::Output]) {
            update(&mut hash, self.beside[one].as_ref(), 0..self.positions)?;
        }
        // Only where they are, so that logs without them keep the digest that they had.
        let rounds = [Beside::Accepted, Beside::Round, Beside::BatchSize];
        for one in rounds
            .into_iter()
            .chain([Beside::Seed, Beside::DraftRow, Beside::Allowed])
        {
            let Some(tensor) = &self.beside[one] else {
                continue;
            };
            hash.update(&tensor.name);
            update(&mut hash, Some(tensor), 0..self.positions)?;
        }
        for id in self.sub_vocabulary.iter().flat_map(SubVocabulary::ids) {
            hash.update(id.to_le_bytes());
        }
        let last = self.positions.saturating_sub(1);
        for row in [0, self.positions / 2, last] {
            let row = row..(row + 1).min(self.positions);
            let of_draft = row.start * self.depths..row.end * self.depths;
            let rows = |one: Beside| match one.is_of_draft() {
                true => of_draft.clone(),
                false => row.clone(),
            };
            update(&mut hash, Some(&self.target), row.clone())?;
            update(&mut hash, Some(&self.draft), of_draft.clone())?;
            for one in [Beside::TokenIds, Beside::TargetRest, Beside::DraftRest] {
                update(&mut hash, self.beside[one].as_ref(), rows(one))?;
            }
            for one in Beside::OWN_IDS {
                if let Some(tensor) = &self.beside[one] {
                    update(&mut hash, Some(tensor), rows(one))?;
                }
            }
        }
        Ok(ShardIdentity {
            digest: hexadecimal(hash),
            positions: self.positions,
        })
    }
}
