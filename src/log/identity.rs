//! Whether two logs are the same rows, whatever they are called.

use super::error::LogError;
use super::reader::{Log, RowKind, Shard};
use super::tensor::{Scratch, Tensor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What tells a log from others: a hash of what it says of itself and of its shards.
///
/// A shard's hash covers its shape, its integers (prompts, positions, tokens) and three of
/// its rows: the first, the middle one and the last. Names of files and folders and the kind
/// of container do not count, so that a copy is known for one.
///
/// ```no_run
/// # use specgap::log::Log;
/// let log = Log::open("log".as_ref())?;
/// let copy = Log::open("copy-of-log".as_ref())?;
/// assert_eq!(log.identity()?, copy.identity()?);
/// # Ok::<(), specgap::log::LogError>(())
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

/// Rows of integers that are mapped at a time.
const ROWS: usize = 1 << 16;

impl Log {
    /// What tells this log from others. Reads the integers of the log and three rows a
    /// shard.
    ///
    /// # Errors
    /// Files that were shortened since the log was opened, or cannot be mapped.
    pub fn identity(&self) -> Result<LogIdentity, LogError> {
        let shards = self
            .shards
            .iter()
            .map(Shard::identity)
            .collect::<Result<Vec<_>, _>>()?;
        let mut hash = Sha256::new();
        // A map that cannot be written is none: what is hashed is then the shards alone.
        hash.update(serde_json::to_vec(self.metadata()).unwrap_or_default());
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
        let integers = [
            &self.prompt_id,
            &self.position,
            &self.token,
            &self.drafts,
            &self.output,
        ];
        for tensor in integers {
            update(&mut hash, tensor.as_ref(), 0..self.positions)?;
        }
        let last = self.positions.saturating_sub(1);
        for row in [0, self.positions / 2, last] {
            let row = row..(row + 1).min(self.positions);
            for tensor in [&self.target, &self.draft] {
                update(&mut hash, Some(tensor), row.clone())?;
            }
            for tensor in [&self.token_ids, &self.target_rest, &self.draft_rest] {
                update(&mut hash, tensor.as_ref(), row.clone())?;
            }
        }
        Ok(ShardIdentity {
            digest: hexadecimal(hash),
            positions: self.positions,
        })
    }
}

/// Adds rows of a tensor, as numbers.
fn update(
    hash: &mut Sha256,
    tensor: Option<&Tensor>,
    rows: std::ops::Range<usize>,
) -> Result<(), LogError> {
    let Some(tensor) = tensor else {
        hash.update([0]);
        return Ok(());
    };
    hash.update([1]);
    hash.update(tensor.dtype.to_string());
    hash.update((tensor.columns() as u64).to_le_bytes());
    let (mut scratch, mut floats) = (Scratch::default(), Vec::new());
    for first in rows.clone().step_by(ROWS) {
        let end = rows.end.min(first + ROWS);
        let window = tensor.window(first..end)?;
        for row in first..end {
            if tensor.dtype.is_float() {
                window.floats(row, tensor.columns(), &mut scratch, &mut floats);
                let bytes = floats.iter().flat_map(|x| x.to_bits().to_le_bytes());
                hash.update(bytes.collect::<Vec<u8>>());
            } else {
                for x in window.integers(row) {
                    hash.update(x.to_le_bytes());
                }
            }
        }
    }
    Ok(())
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
