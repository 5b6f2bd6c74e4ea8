//! Which files an ONNX graph consists of.

use super::CaptureError;
use specgap_log::log::{FileDigest, FileIdentity, LogError};
use std::collections::BTreeSet;
use std::path::Path;

/// The files of a graph: the graph itself, then the weights beside it, by name.
///
/// # Errors
///
/// [`CaptureError::File`] if one cannot be read.
pub(super) fn files_of_graph(graph: &Path) -> Result<Vec<FileIdentity>, CaptureError> {
    let bytes = specgap_base::files::read(graph, LARGEST)
        .map_err(|source| CaptureError::reading(graph, source))?;
    let mut files = vec![identity(graph)?];
    let folder = graph.parent().unwrap_or(Path::new(""));
    for location in external_locations(&bytes) {
        files.push(identity(&folder.join(location))?);
    }
    Ok(files)
}

/// A file's name and SHA-256.
pub(super) fn identity(path: &Path) -> Result<FileIdentity, CaptureError> {
    let FileDigest { name, sha256, .. } =
        FileDigest::of_file(path).map_err(|error| match error {
            LogError::File(path, _, source) => CaptureError::reading(&path, source),
            other => other.into(),
        })?;
    Ok(FileIdentity {
        name,
        sha256: Some(sha256),
    })
}

/// What a graph may be without its weights, which is the most that its format can hold.
const LARGEST: u64 = 1 << 31;

// Field numbers of onnx.proto.
const MODEL_GRAPH: u64 = 7;
const GRAPH_INITIALIZER: u64 = 5;
const TENSOR_EXTERNAL_DATA: u64 = 13;
const ENTRY_KEY: u64 = 1;
const ENTRY_VALUE: u64 = 2;

/// The `location` of all external initializers of a serialized `ModelProto`.
/// What is not one yields nothing: the runtime will say what is wrong with it.
fn external_locations(model: &[u8]) -> BTreeSet<String> {
    let mut locations = BTreeSet::new();
    for graph in messages(model, MODEL_GRAPH) {
        for tensor in messages(graph, GRAPH_INITIALIZER) {
            for entry in messages(tensor, TENSOR_EXTERNAL_DATA) {
                let text = |field| messages(entry, field).next().unwrap_or_default();
                if text(ENTRY_KEY) == b"location"
                    && let Ok(location) = std::str::from_utf8(text(ENTRY_VALUE))
                {
                    locations.insert(location.to_owned());
                }
            }
        }
    }
    locations
}

/// The length-delimited values of one field of a protocol buffer message.
fn messages(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    std::iter::from_fn(move || {
        loop {
            let (field, value) = next_field(&mut rest)?;
            if let Some(value) = value
                && field == wanted
            {
                return Some(value);
            }
        }
    })
}

/// Takes a field off a message: its number, and its value if that is bytes.
/// Nothing at the end, or where the message is broken.
fn next_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Option<&'a [u8]>)> {
    let tag = varint(rest)?;
    let field = tag >> 3;
    let length = match tag & 7 {
        0 => return varint(rest).map(|_| (field, None)),
        1 => 8,
        5 => 4,
        2 => usize::try_from(varint(rest)?).ok()?,
        _ => return None,
    };
    let (value, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some((field, (tag & 7 == 2).then_some(value)))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![number << 3 | 2, value.len() as u8];
        bytes.extend(value);
        bytes
    }

    fn model() -> Vec<u8> {
        let entry =
            |key: &[u8], value: &[u8]| field(13, &[field(1, key), field(2, value)].concat());
        let tensor = [
            vec![0x08, 0x90, 0x01],
            entry(b"location", b"weights.bin"),
            entry(b"offset", b"0"),
        ]
        .concat();
        let inline = field(9, b"raw");
        let graph = [field(2, b"name"), field(5, &tensor), field(5, &inline)].concat();
        [vec![0x08, 0x09], field(2, b"producer"), field(7, &graph)].concat()
    }

    #[test]
    fn finds_where_external_weights_are() {
        let locations: Vec<_> = external_locations(&model()).into_iter().collect();
        assert_eq!(locations, ["weights.bin"]);
    }

    #[test]
    fn a_broken_model_yields_nothing_wrong() {
        let model = model();
        for end in 0..model.len() {
            let cut = external_locations(&model[..end]);
            assert!(cut.len() <= 1);
        }
        for at in 0..model.len() {
            let mut bent = model.clone();
            bent[at] ^= 0xff;
            assert!(external_locations(&bent).len() <= 1);
        }
        assert!(external_locations(&[0xff; 40]).is_empty());
    }
}
