//! Tensors of a safetensors file.

use super::contents::Contents;
use super::error::LogError;
use super::metadata::METADATA_KEY;
use super::source::Source;
use super::tensor::{Dtype, Tensor};
use safetensors::SafeTensors;
use std::path::Path;
use std::sync::Arc;

const LENGTH_BYTES: u64 = 8;

/// Reads the header; the rows stay where they are.
pub(super) fn read(path: &Path, source: Source) -> Result<Contents, LogError> {
    let source = Arc::new(source);
    let length = usize::try_from(source.length())
        .map_err(|_| LogError::format(path, "is larger than this machine can address"))?;
    // The library checks that header and data fill the file to the byte, for
    // which it wants all of it; only the header's pages are touched.
    let all = source.window(0, length)?;
    let (header, metadata) = SafeTensors::read_metadata(&all).map_err(|error| {
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
            other => {
                contents.unreadable.insert(name, format!("{other:?}"));
                continue;
            }
        };
        let start = LENGTH_BYTES + header as u64 + info.data_offsets.0 as u64;
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
