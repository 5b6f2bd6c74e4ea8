//! Tensors of a safetensors file.

use super::beside::ALLOWED;
use super::contents::{Contents, MOST_TENSORS};
use super::error::LogError;
use super::metadata::METADATA_KEY;
use super::source::Source;
use super::tensor::Tensor;
use safetensors::SafeTensorError;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use specgap_base::typed;
use specgap_entries::Dtype;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

const LENGTH_BYTES: u64 = 8;

/// Longer headers are refused, as the library does.
const LONGEST_HEADER: u64 = 100_000_000;

/// Reads the header; the rows stay where they are.
pub(super) fn read(path: &Path, source: Source) -> Result<Contents, LogError> {
    let source = Arc::new(source);
    let (header, metadata) = header(&source)?.map_err(|error| {
        LogError::format(
            path,
            format!(
                "is not a whole safetensors file ({error}); it is truncated, damaged or another \
                 format"
            ),
        )
    })?;
    let mut contents = Contents {
        metadata: metadata
            .metadata()
            .as_ref()
            .and_then(|map| map.get(METADATA_KEY).cloned()),
        ..Contents::default()
    };
    for (name, info) in metadata.tensors() {
        let dtype = match info.dtype {
            safetensors::Dtype::F16 => Dtype::F16,
            safetensors::Dtype::BF16 => Dtype::Bf16,
            safetensors::Dtype::F32 => Dtype::F32,
            safetensors::Dtype::F64 => Dtype::F64,
            safetensors::Dtype::I32 => Dtype::I32,
            safetensors::Dtype::I64 => Dtype::I64,
            safetensors::Dtype::U8 | safetensors::Dtype::BOOL if name == ALLOWED => Dtype::U8,
            other => {
                contents.unreadable.insert(name, format!("{other:?}"));
                continue;
            }
        };
        let start = LENGTH_BYTES + header + info.data_offsets.0 as u64;
        let tensor = Tensor::within(
            name.clone(),
            dtype,
            info.shape.clone(),
            source.clone(),
            start,
            path,
        )?;
        contents.tensors.insert(name, tensor);
    }
    Ok(contents)
}

/// A header of no more entries than a file of ours or of a model has, each of which takes some
/// time and memory more than its text. The library does not name a tensor that is wrong by itself.
struct FewEntries(Vec<(String, TensorInfo)>);

impl<'de> Deserialize<'de> for FewEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(Vec::new()))
    }
}

impl<'de> Visitor<'de> for FewEntries {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        let mut count = 0;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "__metadata__" => {
                    map.next_value::<Option<HashMap<String, String>>>()?;
                }
                _ => self.0.push((name, map.next_value()?)),
            }
            count += 1;
            if count > MOST_TENSORS {
                return Err(A::Error::custom(format!(
                    "more than {MOST_TENSORS} tensors"
                )));
            }
        }
        Ok(self)
    }
}

/// Says what is wrong with one tensor by itself.
fn of_tensor(info: &TensorInfo) -> Option<String> {
    let (start, end) = info.data_offsets;
    let bits = (info.shape.iter().copied())
        .try_fold(1usize, usize::checked_mul)
        .and_then(|entries| entries.checked_mul(info.dtype.bitsize()));
    let held = end.checked_sub(start);
    (bits.is_none() || held.and_then(|bytes| bytes.checked_mul(8)) != bits).then(|| {
        format!(
            "its data_offsets are {start} to {end}, and its shape {:?} of {:?} takes {}",
            info.shape,
            info.dtype,
            bits.map_or("more than there is".to_owned(), |bits| format!(
                "{} bytes",
                bits / 8
            ))
        )
    })
}

/// The length of the header and what it says, or what is wrong with it, if header and tensors fill the
/// file to the byte.
///
/// The library checks that the tensors lie one behind the other. It would want all of the file
/// to check its length.
fn header(source: &Source) -> Result<Result<(u64, Metadata), String>, LogError> {
    let wrong = |error: SafeTensorError| Ok(Err(error.to_string()));
    if source.length() < LENGTH_BYTES {
        return wrong(SafeTensorError::HeaderTooSmall);
    }
    let first = source.window(0, LENGTH_BYTES as usize)?;
    let length = first
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if length > LONGEST_HEADER {
        return wrong(SafeTensorError::HeaderTooLarge);
    }
    if LENGTH_BYTES + length > source.length() {
        return wrong(SafeTensorError::InvalidHeaderLength);
    }
    let bytes = source.window(LENGTH_BYTES, length as usize)?;
    let left = source.length() - LENGTH_BYTES - length;
    Ok(parsed(&bytes, left).map(|metadata| (length, metadata)))
}

/// Reads what a header says, if its tensors fill the `left` bytes behind it.
fn parsed(bytes: &[u8], left: u64) -> Result<Metadata, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| SafeTensorError::InvalidHeader(error).to_string())?;
    let FewEntries(each) = typed::plain_json(text).map_err(|said| format!("its header: {said}"))?;
    for (name, info) in &each {
        if let Some(said) = of_tensor(info) {
            return Err(format!("its header: {name}: {said}"));
        }
    }
    let metadata: Metadata = serde_json::from_str(text)
        .map_err(|error| SafeTensorError::InvalidHeaderDeserialization(error).to_string())?;
    let tensors = metadata.tensors();
    let last = tensors.iter().max_by_key(|(_, info)| info.data_offsets.1);
    match last {
        Some((name, info)) if info.data_offsets.1 as u64 != left => Err(format!(
            "its header: {name} ends at byte {} of the {left} behind the header",
            info.data_offsets.1
        )),
        None if left > 0 => Err(SafeTensorError::MetadataIncompleteBuffer.to_string()),
        _ => Ok(metadata),
    }
}
