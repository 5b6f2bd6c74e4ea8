//! A log whose tensors are given as they are, written whole or not at all.

use super::encoded::{Encoded, write_npz, write_safetensors};
use super::error::LogError;
use super::metadata::{INDEX_NAME, Index, Metadata, SCHEMA, ShardEntry};
use super::tensor::Tensor;
use specgap_base::files::{UnfinishedFolder, folder as folder_of};
use specgap_base::sorted::Map;
use specgap_base::typed;
use specgap_entries::Dtype;
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A tensor by its bytes: row-major and little-endian.
#[derive(Clone, Debug)]
pub struct RawTensor {
    /// The name in the file.
    pub name: &'static str,
    /// The type of its numbers.
    pub dtype: Dtype,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// The numbers, one after the other.
    pub data: Vec<u8>,
}

impl RawTensor {
    /// A vector of integers.
    pub fn integers(name: &'static str, values: &[i64]) -> Self {
        Self {
            name,
            dtype: Dtype::I64,
            shape: vec![values.len()],
            data: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

/// Of folders that are not complete.
const TEMPORARY_PREFIX: &str = ".specgap-log-";

/// A log in a folder of its own, which gets its name when it is complete. Dropped before,
/// it leaves nothing.
#[derive(Debug)]
pub struct WholeLog {
    folder: UnfinishedFolder,
    path: PathBuf,
    index: Index,
}

impl WholeLog {
    /// Begins a log beside where it will be. There must be nothing at its path.
    pub(crate) fn create(path: &Path, metadata: Metadata) -> Result<Self, LogError> {
        if path.symlink_metadata().is_ok() {
            return Err(LogError::format(
                path,
                "is there already; choose another name, or remove it",
            ));
        }
        let folder = UnfinishedFolder::create(folder_of(path), TEMPORARY_PREFIX)
            .map_err(|source| LogError::writing(path, 0, source))?;
        Ok(Self {
            folder,
            path: path.to_owned(),
            index: Index {
                schema: SCHEMA,
                metadata,
                shards: Vec::new(),
            },
        })
    }

    /// Adds a shard of some positions.
    pub(crate) fn shard(
        &mut self,
        positions: usize,
        tensors: &[RawTensor],
    ) -> Result<(), LogError> {
        let file = format!("shard-{:05}.safetensors", self.index.shards.len());
        let encoded = encoded(tensors);
        let bytes = tensors.iter().map(|tensor| tensor.data.len() as u64).sum();
        self.write(&file, bytes, |out| write_safetensors(out, &encoded))?;
        self.index.shards.push(ShardEntry {
            file,
            positions,
            target: None,
        });
        Ok(())
    }

    /// Returns what the log says of itself.
    pub(crate) fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.index.metadata
    }

    /// Writes the index, and gives the folder its name.
    pub(crate) fn finish(self) -> Result<(), LogError> {
        let mut text = typed::pretty(&self.index)
            .map_err(|error| LogError::format(&self.path, format!("cannot be written: {error}")))?;
        text.push('\n');
        self.write(INDEX_NAME, text.len() as u64, |out| {
            out.write_all(text.as_bytes())
        })?;
        (self.folder.rename(&self.path)).map_err(|source| LogError::writing(&self.path, 0, source))
    }

    fn write(
        &self,
        file: &str,
        bytes: u64,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), LogError> {
        let made = File::create(self.folder.path().join(file)).and_then(|made| {
            let mut out = BufWriter::with_capacity(1 << 20, made);
            write(&mut out)?;
            out.into_inner()
                .map_err(std::io::IntoInnerError::into_error)?
                .sync_all()
        });
        made.map_err(|source| LogError::writing(&self.path.join(file), bytes, source))
    }
}

fn encoded(tensors: &[RawTensor]) -> Vec<(&'static str, Encoded<'_>)> {
    (tensors.iter())
        .map(|tensor| {
            let encoded = Encoded {
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                data: Cow::Borrowed(&tensor.data),
            };
            (tensor.name, encoded)
        })
        .collect()
}

/// Tensors as an `.npz` archive.
pub fn npz(tensors: &[RawTensor]) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_npz(&mut bytes, &encoded(tensors))?;
    Ok(bytes)
}

/// Types that are not read, by the tensor's name.
pub type Unreadable = Map<String, String>;

/// The tensors of an `.npz` or `.safetensors` file that need not be a log, by name; and
/// the names of those whose types are not read.
pub fn tensors(path: &Path) -> Result<(Map<String, Tensor>, Unreadable), LogError> {
    let contents = super::open::read_file(path, &mut super::source::Spool::default())?;
    Ok((contents.tensors, contents.unreadable))
}
