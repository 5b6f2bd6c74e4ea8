//! Tensors of an `.npz` archive.
//!
//! Members that are stored are read in place; compressed ones are unpacked once to a temporary
//! file without a name, one for all of a log, so that memory and open files stay bounded.

use super::beside::ALLOWED;
use super::contents::{Contents, MOST_TENSORS};
use super::error::LogError;
use super::metadata::INDEX_NAME;
use super::npy::NpyHeader;
use super::source::{FromStart, Source, Spool};
use super::tensor::Tensor;
use specgap_entries::Dtype;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use zip::{CompressionMethod, ZipArchive};

/// More than any metadata of ours, less than would hurt.
const LARGEST_METADATA: u64 = 256 << 20;

/// Reads the members' headers; the rows stay where they are.
pub(super) fn read(path: &Path, source: Source, spool: &mut Spool) -> Result<Contents, LogError> {
    let source = Arc::new(source);
    let reader = BufReader::new(FromStart::new(source.clone()));
    members(path, &source, spool, reader)
}

fn members<R: Read + Seek>(
    path: &Path,
    source: &Arc<Source>,
    spool: &mut Spool,
    reader: R,
) -> Result<Contents, LogError> {
    let damaged = |error: &dyn std::fmt::Display| {
        LogError::format(
            path,
            format!(
                "is not a whole .npz archive ({error}); it is truncated, damaged or another format"
            ),
        )
    };
    let mut archive = ZipArchive::new(reader).map_err(|error| damaged(&error))?;
    if archive.len() > MOST_TENSORS {
        return Err(damaged(&format!("more than {MOST_TENSORS} members")));
    }
    let mut contents = Contents::default();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| damaged(&error))?;
        let member_name = member.name().map_err(|error| damaged(&error))?.into_owned();
        let size = member.size();
        if member_name == INDEX_NAME {
            let mut text = String::new();
            (&mut member)
                .take(LARGEST_METADATA)
                .read_to_string(&mut text)
                .map_err(|error| damaged(&error))?;
            contents.metadata = Some(text);
            continue;
        }
        let Some(name) = member_name.strip_suffix(".npy").map(str::to_owned) else {
            contents
                .unreadable
                .insert(member_name, "not an .npy member".to_owned());
            continue;
        };
        let refused = |message: String| LogError::tensor(path, &name, message);
        let stored = member.compression() == CompressionMethod::Stored;
        let data_start = member.data_start();
        let header = NpyHeader::read(&mut member)
            .map_err(|message| refused(format!("its .npy header cannot be read: {message}")))?;
        let dtype = match header.descr.as_str() {
            "<f2" => Dtype::F16,
            "<f4" => Dtype::F32,
            "<f8" => Dtype::F64,
            "<i4" => Dtype::I32,
            "<i8" => Dtype::I64,
            "|b1" | "|u1" if name == ALLOWED => Dtype::U8,
            other => {
                contents.unreadable.insert(name, format!("NumPy's {other}"));
                continue;
            }
        };
        if header.fortran_order && header.shape.len() > 1 {
            return Err(refused(
                "is in Fortran (column-major) order; save numpy.ascontiguousarray of it".to_owned(),
            ));
        }
        let shape: Option<Vec<usize>> = header
            .shape
            .iter()
            .map(|&length| usize::try_from(length).ok())
            .collect();
        let bytes = shape.as_ref().and_then(|shape| {
            shape
                .iter()
                .try_fold(dtype.size() as u64, |bytes, &n| bytes.checked_mul(n as u64))
        });
        let (Some(shape), Some(bytes)) = (shape, bytes) else {
            return Err(refused(format!(
                "shape {:?} is larger than this machine can address",
                header.shape
            )));
        };
        if header.length.checked_add(bytes) != Some(size) {
            return Err(refused(format!(
                "shape {shape:?} of {dtype} takes {bytes} bytes but its member has {}; the header \
                 is wrong",
                size.saturating_sub(header.length)
            )));
        }
        let tensor = if stored {
            let start = data_start
                .and_then(|start| start.checked_add(header.length))
                .ok_or_else(|| damaged(&"a member without a place"))?;
            Tensor::within(name.clone(), dtype, shape, source.clone(), start, path)?
        } else {
            let (start, unpacked) = unpack(path, &name, bytes, &mut member, spool)?;
            Tensor::within(name.clone(), dtype, shape, Arc::new(unpacked), start, path)?
        };
        if contents.tensors.insert(name.clone(), tensor).is_some() {
            return Err(refused("is in the archive twice".to_owned()));
        }
    }
    Ok(contents)
}

/// Unpacks what follows a member's header. Returns where it begins, and in what.
fn unpack(
    path: &Path,
    name: &str,
    bytes: u64,
    member: &mut impl Read,
    spool: &mut Spool,
) -> Result<(u64, Source), LogError> {
    let (start, copied) = spool
        .append(&mut member.take(bytes.saturating_add(1)))
        .map_err(|error| {
            LogError::tensor(
                path,
                name,
                format!(
                    "cannot be unpacked to a temporary file ({error}); it takes {bytes} bytes \
                     there, save it with numpy.savez instead of savez_compressed to avoid this"
                ),
            )
        })?;
    if copied != bytes {
        return Err(LogError::tensor(
            path,
            name,
            format!("unpacks to {copied} bytes where {bytes} are declared; the archive is damaged"),
        ));
    }
    Ok((start, spool.source(path)))
}
