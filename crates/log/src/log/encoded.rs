//! Tensors as bytes, and files made of them.

use super::metadata::{INDEX_NAME, METADATA_KEY};
use super::npy::NpyHeader;
use half::{bf16, f16};
use safetensors::tensor::{Dtype as SafeDtype, View};
use specgap_entries::Dtype;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Entries of a row in a type.
pub(super) fn encode(row: impl Iterator<Item = f32>, dtype: Dtype, bytes: &mut Vec<u8>) {
    match dtype {
        Dtype::F16 => bytes.extend(row.flat_map(|x| f16::from_f32(x).to_le_bytes())),
        Dtype::Bf16 => bytes.extend(row.flat_map(|x| bf16::from_f32(x).to_le_bytes())),
        Dtype::F64 => bytes.extend(row.flat_map(|x| f64::from(x).to_le_bytes())),
        _ => bytes.extend(row.flat_map(f32::to_le_bytes)),
    }
}

/// Lists of unequal length as rows of one width, filled up at the end: the width, and all entries.
pub(crate) fn filled<T: Copy>(lists: &[impl AsRef<[T]>], unused: T) -> (usize, Vec<T>) {
    let lists = || lists.iter().map(AsRef::as_ref);
    let width = lists().map(<[T]>::len).max().unwrap_or(0);
    let each = lists().flat_map(|list| {
        let rest = std::iter::repeat_n(unused, width - list.len());
        list.iter().copied().chain(rest)
    });
    (width, each.collect())
}

/// A tensor to be written.
pub(super) struct Encoded<'a> {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub data: Cow<'a, [u8]>,
}

impl View for &Encoded<'_> {
    fn dtype(&self) -> SafeDtype {
        match self.dtype {
            Dtype::F16 => SafeDtype::F16,
            Dtype::Bf16 => SafeDtype::BF16,
            Dtype::F32 => SafeDtype::F32,
            Dtype::F64 => SafeDtype::F64,
            Dtype::I32 => SafeDtype::I32,
            Dtype::I64 => SafeDtype::I64,
            Dtype::U8 => SafeDtype::U8,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

pub(super) fn write_safetensors(
    file: &mut impl Write,
    tensors: &[(impl AsRef<str>, Encoded<'_>)],
) -> io::Result<()> {
    let information = HashMap::from([(
        METADATA_KEY.to_owned(),
        format!("{{\"shard_of\": \"{INDEX_NAME}\"}}"),
    )]);
    let bytes = safetensors::serialize(
        tensors.iter().map(|(name, tensor)| (name.as_ref(), tensor)),
        Some(information),
    )
    .map_err(io::Error::other)?;
    file.write_all(&bytes)
}

pub(super) fn write_npz(
    file: &mut impl Write,
    tensors: &[(impl AsRef<str>, Encoded<'_>)],
) -> io::Result<()> {
    let mut archive = ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, tensor) in tensors {
        let descr = match tensor.dtype {
            Dtype::F16 => "<f2",
            Dtype::F32 => "<f4",
            Dtype::F64 => "<f8",
            Dtype::I32 => "<i4",
            Dtype::I64 => "<i8",
            Dtype::U8 => "|u1",
            Dtype::Bf16 => {
                return Err(io::Error::other(
                    "NumPy has no bf16; write f16 or f32, or safetensors",
                ));
            }
        };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(tensor.data.len() > (1 << 31));
        archive.start_file(format!("{}.npy", name.as_ref()), options)?;
        archive.write_all(&NpyHeader::bytes(descr, &tensor.shape))?;
        archive.write_all(&tensor.data)?;
    }
    file.write_all(&archive.finish()?.into_inner())
}
