//! Target rows that a log takes from another one.
//!
//! Several drafts that were asked about the same prefixes have logs of their own, of which
//! the first is an ordinary one. The others have the draft's rows alone, and say for each
//! shard in which of the first log's files the target's rows are, and the ids, prompts,
//! positions and tokens that go with them. That file has to be the one that it was: its
//! length and a hash are in `log.json`.

use super::contents::Contents;
use super::error::LogError;
use super::hash::{hexadecimal, update};
use super::metadata::{INDEX_NAME, SharedShard};
use sha2::{Digest, Sha256};
use std::path::{Component, Path, PathBuf};

/// Tensors that a shard takes from the file with the target's rows.
pub(super) const SHARED: [&str; 9] = [
    "target_logits",
    "target_probs",
    "target_logprobs",
    "target_rest",
    "token_ids",
    "target_token_ids",
    "prompt_id",
    "position",
    "token",
];

/// Tells whether a tensor is as wide as the vocabulary or a list, so that the hash has three of its
/// rows.
fn is_wide(name: &str) -> bool {
    !["prompt_id", "position", "token"].contains(&name)
}

/// SHA-256 over the names and shapes of the shared tensors that a file has, over all of its
/// prompts, positions and tokens, and over the first, the middle and the last row of the
/// others. As the identity of a log: told apart is what nobody forged.
pub(super) fn digest(contents: &Contents) -> Result<String, LogError> {
    let mut hash = Sha256::new();
    for name in SHARED {
        let Some(tensor) = contents.tensors.get(name) else {
            continue;
        };
        let rows = tensor.rows();
        hash.update(name);
        hash.update((rows as u64).to_le_bytes());
        if is_wide(name) {
            for row in [0, rows / 2, rows.saturating_sub(1)] {
                update(&mut hash, Some(tensor), row..(row + 1).min(rows))?;
            }
        } else {
            update(&mut hash, Some(tensor), 0..rows)?;
        }
    }
    Ok(hexadecimal(hash))
}

/// Returns what a shard of another log says of `file`, a shard with the target's rows and these
/// contents.
pub(super) fn describe(
    directory: &Path,
    file: &str,
    contents: &Contents,
) -> Result<SharedShard, LogError> {
    let path = directory.join(file);
    let length = std::fs::metadata(&path).map_err(|source| LogError::reading(&path, source))?;
    let folder = directory
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| {
            LogError::format(
                directory,
                "has no name in UTF-8 by which another log could refer to it",
            )
        })?;
    Ok(SharedShard {
        file: format!("../{folder}/{file}"),
        bytes: length.len(),
        digest: digest(contents)?,
    })
}

/// Finds the file with a shard's target rows.
///
/// # Errors
/// A name that is not `../LOG/FILE`; a file that is missing, or has another length than when
/// the shard was written.
pub(super) fn find_target(
    directory: &Path,
    shard: &Path,
    target: &SharedShard,
) -> Result<PathBuf, LogError> {
    let path = sibling(directory, &target.file)?;
    let length = match std::fs::metadata(&path) {
        Ok(metadata) => metadata.len(),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(LogError::format(
                shard,
                format!(
                    "has its target's rows in {}, which is not there; logs of several drafts of \
                     one capture go together: keep their folders side by side, under their names",
                    target.file
                ),
            ));
        }
        Err(source) => return Err(LogError::reading(&path, source)),
    };
    if length != target.bytes {
        let message = format!("has {length} bytes, and had {}", target.bytes);
        return Err(replaced(directory, &path, &message));
    }
    Ok(path)
}

fn replaced(directory: &Path, path: &Path, what: &str) -> LogError {
    LogError::format(
        path,
        format!(
            "{what}, as {INDEX_NAME} of {} says; it is another file now: capture the drafts \
             together again",
            directory.display()
        ),
    )
}

/// Adds the target's rows of the file at `path`, whose contents are `theirs`, to what a shard
/// has.
///
/// # Errors
/// A file that has other rows than when the shard was written; tensors that both files have.
pub(super) fn take_target(
    directory: &Path,
    shard: &Path,
    target: &SharedShard,
    (path, mut theirs): (&Path, Contents),
    contents: &mut Contents,
) -> Result<(), LogError> {
    if digest(&theirs)? != target.digest {
        return Err(replaced(directory, path, "has other rows than it had"));
    }
    for name in SHARED {
        let Some(tensor) = theirs.tensors.remove(name) else {
            continue;
        };
        if contents.tensors.contains_key(name) {
            return Err(LogError::tensor(
                shard,
                name,
                format!(
                    "is there, and in {} too, where the shard's target rows are; keep one of them",
                    target.file
                ),
            ));
        }
        contents.tensors.insert(name.to_owned(), tensor);
    }
    Ok(())
}

/// `../LOG/FILE` beside a log, and nothing else: a log points to no other place.
fn sibling(directory: &Path, name: &str) -> Result<PathBuf, LogError> {
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    if let [
        Component::ParentDir,
        Component::Normal(log),
        Component::Normal(file),
    ] = parts[..]
    {
        // The folder may be a link, or be named by `.`: its own name counts.
        let own = directory.canonicalize();
        let own = own.map_err(|source| LogError::reading(directory, source))?;
        if let Some(around) = own.parent() {
            return Ok(around.join(log).join(file));
        }
    }
    Err(LogError::format(
        &directory.join(INDEX_NAME),
        format!("target rows in {name:?}, which is not ../LOG/FILE, a file of a log beside it"),
    ))
}
