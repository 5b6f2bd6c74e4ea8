//! What was measured, by its contents.

use super::beside::Beside;
use super::error::LogError;
use super::hash::hexadecimal;
use super::metadata::INDEX_NAME;
use super::reader::Log;
use super::shard::Shard;
use super::source::{FromStart, Source};
use super::tensor::Tensor;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use specgap_base::side_by_side;
use specgap_base::sorted::Map;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are hashed at a time.
const PIECE: usize = 1 << 20;

/// A file that was measured, or an array in memory, by its contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileDigest {
    /// The file, without its folders; of an array the name of its tensor.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// SHA-256 of them, in hexadecimal; of an array, of its entries row by row and little-endian.
    pub sha256: String,
}

impl FileDigest {
    /// Reads all of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    ///
    /// # Example
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a");
    /// std::fs::write(&path, "abc")?;
    /// let digest = specgap_log::log::FileDigest::of_file(&path)?;
    /// assert!(digest.sha256.starts_with("ba7816bf") && digest.bytes == 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_file(path: &Path) -> Result<Self, LogError> {
        let file = std::fs::File::open(path).map_err(|source| LogError::reading(path, source))?;
        Self::read(&file_name(path), file).map_err(|source| LogError::reading(path, source))
    }

    /// The digest of a file whose bytes were read.
    pub fn of_bytes(path: &Path, bytes: &[u8]) -> Self {
        Self {
            name: file_name(path),
            bytes: bytes.len() as u64,
            sha256: hexadecimal(Sha256::new_with_prefix(bytes)),
        }
    }

    fn read(name: &str, from: impl Read) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let mut from = io::BufReader::with_capacity(PIECE, from);
        let bytes = io::copy(&mut from, &mut hash)?;
        Ok(Self {
            name: name.to_owned(),
            bytes,
            sha256: hexadecimal(hash),
        })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

impl Log {
    /// Tells whether its rows are in memory, where no command finds them.
    pub fn is_held(&self) -> bool {
        let held = |shard: &Shard| matches!(&**shard.target.source(), Source::Held { entries, .. } if !entries.is_fetched());
        self.shards.iter().any(held)
    }

    /// SHA-256 of every file, or of every array in memory, that begins at one of these positions,
    /// by its place in the log. So parts of the positions that are hashed apart have each file
    /// once. Reads all bytes; rows that another library decodes count by their file, if there is
    /// one.
    ///
    /// # Errors
    /// Files that were replaced since the log was opened, or cannot be read.
    pub fn digests(&self, positions: &Range<usize>) -> Result<Map<usize, FileDigest>, LogError> {
        let (mut all, mut place) = (Vec::new(), 0);
        for (shard, &start) in self.shards.iter().zip(&self.starts) {
            let mut files: Vec<&Path> = Vec::new();
            for tensor in shard.tensors() {
                let held = matches!(&**tensor.source(), Source::Held { entries, .. } if !entries.is_fetched());
                if !held && files.contains(&tensor.path()) {
                    continue;
                }
                files.push(tensor.path());
                place += 1;
                if positions.contains(&start) {
                    all.push((place, tensor));
                }
            }
        }
        let all = side_by_side::each_or_stop(&all, |&(place, tensor)| {
            let digest = tensor.digest()?;
            Ok::<_, LogError>(digest.map(|digest| (place, digest)))
        })?;
        let mut all: Map<usize, FileDigest> = all.into_iter().flatten().collect();
        let index = self.path().join(INDEX_NAME);
        if index.is_file() {
            all.insert(0, FileDigest::of_file(&index)?);
        }
        Ok(all)
    }

    /// Refuses parts that were read of other files than these, which the log has by their place.
    ///
    /// # Errors
    /// The first file of which the parts have other bytes.
    pub fn refuse_other_parts(
        &self,
        files: &Map<usize, FileDigest>,
        of_parts: &BTreeMap<usize, FileDigest>,
    ) -> Result<(), LogError> {
        let other = files
            .iter()
            .find(|(place, file)| of_parts.get(place) != Some(file));
        let Some((_, file)) = other else {
            return Ok(());
        };
        Err(LogError::format(
            self.path(),
            format!(
                "has {} positions, and is another log than the parts are of: {} has changed since, or is another file; \
                 write the parts again",
                self.positions(),
                file.name
            ),
        ))
    }
}

impl Shard {
    /// All that is read of it, in a fixed order.
    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let beside = [
            Beside::TokenIds,
            Beside::TargetRest,
            Beside::DraftRest,
            Beside::PromptId,
            Beside::Position,
            Beside::Token,
            Beside::Drafts,
            Beside::Output,
            Beside::HeadAcceptance,
            Beside::HeadOverlap,
            Beside::Accepted,
            Beside::Round,
            Beside::BatchSize,
            Beside::Seed,
            Beside::DraftRow,
            Beside::TargetTokenIds,
            Beside::DraftTokenIds,
            Beside::Allowed,
            Beside::Group,
        ];
        let beside = beside
            .into_iter()
            .filter_map(|one| self.beside[one].as_ref());
        let draft = (!self.is_text).then_some(&self.draft);
        std::iter::once(&self.target)
            .chain(draft)
            .chain(beside)
            .chain(self.rollouts.tensors.values())
    }
}

impl Tensor {
    /// Digests its file, or its entries if these are in memory.
    fn digest(&self) -> Result<Option<FileDigest>, LogError> {
        let path = self.path();
        let read = match &**self.source() {
            Source::File(_) | Source::Memory { .. } => {
                FileDigest::read(&file_name(path), FromStart::new(Arc::clone(self.source())))
            }
            // The file that it was unpacked from.
            Source::Unpacked { .. } => return FileDigest::of_file(path).map(Some),
            Source::Held { entries, .. } if entries.is_fetched() => {
                return path
                    .is_file()
                    .then(|| FileDigest::of_file(path))
                    .transpose();
            }
            Source::Held { .. } => {
                FileDigest::read(&self.name, FromStart::new(Arc::clone(self.source())))
            }
        };
        read.map(Some)
            .map_err(|source| LogError::reading(path, source))
    }
}
