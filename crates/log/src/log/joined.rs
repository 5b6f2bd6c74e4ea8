//! Small shards put together, so that a log of many commits is no folder of many files.

use super::beside::{DRAFT_ROW, HEAD_ACCEPTANCE, HEAD_OVERLAP};
use super::encoded::{Encoded, encode};
use super::error::LogError;
use super::open::read_file;
use super::rollout_tensors::names as rollout_names;
use super::source::Spool;
use super::tensor::Tensor;
use specgap_base::sorted::Map;
use specgap_entries::Dtype;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The tensors of shards, one behind the other, as a writer would have made them at once.
/// `None` if they do not go together: a writer with another layout began the log.
///
/// # Errors
///
/// As reading any of the files.
pub(super) fn join(files: &[PathBuf]) -> Result<Option<Vec<(String, Encoded<'static>)>>, LogError> {
    let mut spool = Spool::default();
    let mut shards: Vec<Map<String, Tensor>> = Vec::with_capacity(files.len());
    for file in files {
        let contents = read_file(file, &mut spool)?;
        if !contents.unreadable.is_empty() {
            return Ok(None);
        }
        shards.push(contents.tensors);
    }
    let names: BTreeSet<String> = shards.iter().flat_map(|s| s.keys().cloned()).collect();
    let mut joined = Vec::with_capacity(names.len());
    for name in names {
        let Some(tensor) = join_tensor(&name, &shards)? else {
            return Ok(None);
        };
        joined.push((name, tensor));
    }
    Ok(Some(joined))
}

fn join_tensor(
    name: &str,
    shards: &[Map<String, Tensor>],
) -> Result<Option<Encoded<'static>>, LogError> {
    let held = || shards.iter().filter_map(|shard| shard.get(name));
    let Some(first) = held().next() else {
        return Ok(None);
    };
    let columns = held().map(Tensor::columns).max().unwrap_or(0);
    let filler = filler(name, first.dtype);
    let fits = |tensor: &Tensor| {
        tensor.dtype == first.dtype
            && tensor.shape.len() == first.shape.len()
            && (tensor.columns() == columns || filler.is_some() && tensor.shape.len() < 3)
    };
    if !held().all(fits) {
        return Ok(None);
    }
    let of_rollouts = rollout_names().any(|own| own == name);
    let (mut rows, mut data) = (0, Vec::new());
    for shard in shards {
        if let Some(tensor) = shard.get(name) {
            let window = tensor.window(0..tensor.rows())?;
            let missing = columns - tensor.columns();
            if missing == 0 {
                data.extend_from_slice(window.bytes());
            } else {
                let Some(filler) = &filler else {
                    return Ok(None);
                };
                for row in 0..tensor.rows() {
                    data.extend_from_slice(window.row(row));
                    data.extend(filler.repeat(missing));
                }
            }
            rows += tensor.rows();
        } else if of_rollouts {
            // Without rollouts, or with a list less than the others have.
            if rollout_names().any(|other| shard.contains_key(other)) {
                return Ok(None);
            }
        } else {
            let names = ["target_logits", "target_logprobs"];
            let here = names.iter().find_map(|&name| shard.get(name));
            let here = here.map(Tensor::rows);
            let (Some(here), Some(filler)) = (here, &filler) else {
                return Ok(None);
            };
            data.extend(filler.repeat(here * columns));
            rows += here;
        }
    }
    let mut shape = first.shape.clone();
    if let Some(length) = shape.first_mut() {
        *length = rows;
    }
    if let [_, width] = &mut shape[..] {
        *width = columns;
    }
    Ok(Some(Encoded {
        dtype: first.dtype,
        shape,
        data: Cow::Owned(data),
    }))
}

/// Returns what stands where a row lists no token, a head says nothing, or all rows are there.
fn filler(name: &str, dtype: Dtype) -> Option<Vec<u8>> {
    let value = match name {
        "token_ids" | "target_token_ids" | "draft_token_ids" => {
            return Some((-1i32).to_le_bytes().to_vec());
        }
        DRAFT_ROW => return Some(1i64.to_le_bytes().to_vec()),
        "target_logits" | "draft_logits" | "target_logprobs" | "draft_logprobs" => {
            f32::NEG_INFINITY
        }
        HEAD_ACCEPTANCE | HEAD_OVERLAP => -1.0,
        _ => return None,
    };
    let mut bytes = Vec::new();
    encode(std::iter::once(value), dtype, &mut bytes);
    Some(bytes)
}
