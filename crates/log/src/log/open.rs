//! Opening a log: its files, its metadata, and whether they go together.

use super::beside::Beside;
use super::contents::Contents;
use super::error::LogError;
use super::metadata::{INDEX_NAME, Index, Metadata, SCHEMA, Version};
use super::reader::Log;
use super::shard::Shard;
use super::source::{Source, Spool};
use super::tensor::{HeldTensor, Tensor};
use super::{npz, safetensors, shared};
use specgap_base::typed;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

impl Log {
    /// Opens a `.safetensors` or `.npz` file, or a directory with a `log.json`.
    ///
    /// Headers and shapes are checked here; entries when they are read.
    ///
    /// # Errors
    ///
    /// Files that are missing, truncated or of another format; headers that do
    /// not fit their files; tensors that are missing or whose shapes or types do
    /// not go together. Each names file and tensor.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        Self::open_with(path, None)
    }

    /// Opens a log and keeps the first `vocabulary` tokens of every row, for
    /// models that differ by padding at the end of the vocabulary.
    ///
    /// # Errors
    ///
    /// As [`Log::open`]; also if a row has fewer tokens.
    pub fn open_with(path: &Path, vocabulary: Option<usize>) -> Result<Self, LogError> {
        if path.is_dir() {
            return Self::open_directory(path, vocabulary);
        }
        let contents = read_file(path, &mut Spool::default())?;
        Self::single(path, contents, vocabulary)
    }

    /// Opens the bytes of a file, for tests and fuzzing; `name` ends in
    /// `.safetensors` or `.npz`.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn from_bytes(name: &Path, bytes: Arc<[u8]>) -> Result<Self, LogError> {
        let source = Source::Memory {
            entries: Arc::new(bytes),
            path: name.to_owned(),
        };
        Self::single(
            name,
            read_source(name, source, &mut Spool::default())?,
            None,
        )
    }

    /// A log of tensors that a program holds in memory, which are read where they lie.
    /// `name` stands for the path in messages and reports.
    ///
    /// # Errors
    ///
    /// As [`Log::open_with`].
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{Dtype, HeldTensor, Log, Metadata, Row};
    /// let rows = |name: &str, row: [f32; 2]| {
    ///     let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
    ///     HeldTensor::new(name, Dtype::F32, &[1, 2], bytes)
    /// };
    /// let tensors = vec![rows("target_logits", [0.0, 1.0]), rows("draft_logits", [2.0, 0.0])];
    /// let log = Log::held("mine".as_ref(), Metadata::default(), tensors, None)?;
    /// let mut row = Row::default();
    /// log.read(0, &mut row)?;
    /// assert_eq!(row.draft, [2.0, 0.0]);
    /// # Ok::<(), specgap_log::log::LogError>(())
    /// ```
    pub fn held(
        name: &Path,
        metadata: Metadata,
        tensors: Vec<HeldTensor>,
        vocabulary: Option<usize>,
    ) -> Result<Self, LogError> {
        let mut contents = Contents::default();
        for one in tensors {
            let source = Source::Held {
                entries: one.entries,
                path: name.to_owned(),
            };
            let tensor = Tensor::within(one.name, one.dtype, one.shape, Arc::new(source), 0, name)?;
            contents.tensors.insert(tensor.name.clone(), tensor);
        }
        let (shard, ignored) = Shard::new(name, contents)?;
        Self::assemble(name, metadata, vec![shard], ignored, vocabulary)
    }

    fn single(
        path: &Path,
        contents: Contents,
        vocabulary: Option<usize>,
    ) -> Result<Self, LogError> {
        let metadata = match &contents.metadata {
            Some(text) => typed::plain_json(text).map_err(|said| {
                LogError::format(path, format!("its metadata: {said}; {FIELDS}"))
            })?,
            None => Metadata::default(),
        };
        let (shard, ignored) = Shard::new(path, contents)?;
        Self::assemble(path, metadata, vec![shard], ignored, vocabulary)
    }

    /// A sharded log in memory, such as one that is compiled in: its `log.json`,
    /// and its shards in the order in which that lists them.
    ///
    /// # Errors
    ///
    /// As [`Log::open`].
    pub fn embedded(name: &Path, index: &str, shards: &[&[u8]]) -> Result<Self, LogError> {
        let index = parse_index(name, index)?;
        if index.shards.len() != shards.len() {
            let (listed, has) = (index.shards.len(), shards.len());
            let message = format!("lists {listed} shards and has {has}");
            return Err(LogError::format(name, message));
        }
        let (mut all, mut ignored) = (Vec::new(), Vec::new());
        let mut spool = Spool::default();
        for (entry, &bytes) in index.shards.iter().zip(shards) {
            let path = name.join(&entry.file);
            if let Some(target) = &entry.target {
                let message = format!(
                    "has its target's rows in {:?}, which is not here",
                    target.file
                );
                return Err(LogError::format(&path, message));
            }
            let source = Source::Memory {
                entries: Arc::new(bytes.to_vec()),
                path: path.clone(),
            };
            let (shard, more) = Shard::new(&path, read_source(&path, source, &mut spool)?)?;
            all.push(shard);
            ignored.extend(more);
        }
        Self::assemble(name, index.metadata, all, ignored, None)
    }

    fn open_directory(path: &Path, vocabulary: Option<usize>) -> Result<Self, LogError> {
        let index = read_index(path)?;
        if index.shards.is_empty() {
            return Err(LogError::format(
                path,
                format!("its {INDEX_NAME} lists no shards; nothing was captured yet"),
            ));
        }
        let mut shards = Vec::with_capacity(index.shards.len());
        let mut ignored: Vec<String> = Vec::new();
        let mut spool = Spool::default();
        for entry in &index.shards {
            let file = path.join(shard_file(path, &entry.file)?);
            let mut contents = read_file(&file, &mut spool)?;
            if let Some(target) = &entry.target {
                let place = shared::find_target(path, &file, target)?;
                let theirs = (place.as_path(), read_file(&place, &mut spool)?);
                shared::take_target(path, &file, target, theirs, &mut contents)?;
            }
            let (shard, more) = Shard::new(&file, contents)?;
            if shard.positions != entry.positions {
                return Err(LogError::format(
                    &file,
                    format!(
                        "has {} positions where {INDEX_NAME} says {}; one of the two was replaced",
                        shard.positions, entry.positions
                    ),
                ));
            }
            for name in more {
                if !ignored.contains(&name) {
                    ignored.push(name);
                }
            }
            shards.push(shard);
        }
        Self::assemble(path, index.metadata, shards, ignored, vocabulary)
    }

    fn assemble(
        path: &Path,
        metadata: Metadata,
        shards: Vec<Shard>,
        ignored: Vec<String>,
        wanted: Option<usize>,
    ) -> Result<Self, LogError> {
        let refused = |message: String| Err(LogError::format(path, message));
        check_metadata(path, &metadata)?;
        if wanted == Some(0) {
            return refused("⟨vocab 0⟩ keeps no token; give at least 1".to_owned());
        }
        let mut vocabulary = None;
        check_depths(&shards)?;
        check_text(&shards)?;
        for shard in &shards {
            let here = shard.vocabulary(&metadata, wanted)?;
            if let Some(before) = vocabulary.filter(|&before| before != here) {
                return Err(LogError::format(
                    &shard.path,
                    format!(
                        "has V = {here} where the shards before it have {before}; ⟨vocab N⟩ keeps \
                         the first N tokens of all"
                    ),
                ));
            }
            vocabulary = Some(here);
            let temperatures = metadata.rest_temperatures.len();
            let mut rests = Beside::RESTS
                .iter()
                .filter_map(|one| shard.beside[*one].as_ref());
            if let Some(rest) = rests.find(|rest| rest.columns() != temperatures) {
                let message = format!(
                    "has {} columns but the metadata's rest_temperatures has {temperatures} entries",
                    rest.columns()
                );
                return Err(LogError::tensor(&shard.path, &rest.name, message));
            }
        }
        let mut starts = Vec::with_capacity(shards.len() + 1);
        let mut total = 0usize;
        for shard in &shards {
            starts.push(total);
            total = total
                .checked_add(shard.positions)
                .ok_or_else(|| LogError::format(path, "has too many positions"))?;
        }
        starts.push(total);
        if total == 0 {
            return refused("has no positions".to_owned());
        }
        let of_prompts = (metadata.prompts.iter())
            .try_fold(0usize, |sum, prompt| sum.checked_add(prompt.positions));
        if of_prompts.is_none_or(|sum| sum > total) {
            return refused(format!(
                "the prompts in its metadata have more positions than its {total}"
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            called: None,
            metadata,
            shards: Arc::new(shards),
            starts,
            ahead: 0,
            before: None,
            vocabulary: vocabulary.unwrap_or(0),
            kept: wanted,
            ignored,
        })
    }
}

const FIELDS: &str = "docs/reference/log-format.md says what each field holds";

/// Refuses shards of which some say where their positions are in a text, or which token came out, and
/// others do not.
fn check_text(shards: &[Shard]) -> Result<(), LogError> {
    for one in [Beside::PromptId, Beside::Position, Beside::Token] {
        let of = |is: bool| {
            shards
                .iter()
                .find(|shard| shard.beside[one].is_some() == is)
        };
        if let (Some(with), Some(without)) = (of(true), of(false)) {
            let (_, name, ..) = Beside::ALL[one as usize];
            let message = format!(
                "is missing, and {} has it; put it into all shards of the log, or into none",
                with.path.display()
            );
            return Err(LogError::tensor(&without.path, name, message));
        }
    }
    Ok(())
}

/// Refuses shards that differ in their depths, or whose positions do not say where in a text
/// they are.
fn check_depths(shards: &[Shard]) -> Result<(), LogError> {
    let Some(first) = shards.first() else {
        return Ok(());
    };
    for shard in shards {
        let refused = |name: &str, message| Err(LogError::tensor(&shard.path, name, message));
        if shard.depths != first.depths {
            let message = format!(
                "has {} depths where the shards before it have {}",
                shard.depths, first.depths
            );
            return refused(&shard.draft.name, message);
        }
        if shard.depths == 1 {
            continue;
        }
        let lacks = |one: &&Beside| shard.beside[**one].is_none();
        if let Some(&one) = [Beside::PromptId, Beside::Position].iter().find(lacks) {
            let (_, name, ..) = Beside::ALL[one as usize];
            let message = format!(
                "is missing; {} has a row for each depth, of which the row at depth d of position \
                 s is about position s + d - 1 of the same text",
                shard.draft.name
            );
            return refused(name, message);
        }
        if shard.beside[Beside::TokenIds].is_some() {
            let message = "lists the tokens of both rows, which are about other tokens at each \
                           depth; give target_token_ids and draft_token_ids";
            return refused("token_ids", message.to_owned());
        }
    }
    Ok(())
}

/// Refuses what a log says of itself that cannot be.
fn check_metadata(path: &Path, metadata: &Metadata) -> Result<(), LogError> {
    let refused = |message: String| Err(LogError::format(path, message));
    let applied = metadata.applied();
    if !(applied > 0.0 && applied.is_finite()) {
        return refused(format!(
            "temperature_applied is {applied}; it must be finite and > 0, and is 1 for raw logits"
        ));
    }
    if let Some(sampling) = &metadata.sampling {
        let (t, p) = (sampling.temperature, sampling.top_p.unwrap_or(1.0));
        if !(t >= 0.0 && t.is_finite()) {
            return refused(format!(
                "sampling.temperature is {t}; it must be finite and >= 0"
            ));
        }
        if !(0.0..=1.0).contains(&p) {
            return refused(format!("sampling.top_p is {p}; it must be in [0, 1]"));
        }
    }
    let rests = metadata.rest_temperatures.iter();
    if let Some(t) = rests.copied().find(|t| !(*t > 0.0 && t.is_finite())) {
        return refused(format!(
            "rest_temperatures has {t}; each must be finite and > 0"
        ));
    }
    let mut ids = HashMap::with_capacity(metadata.prompts.len());
    for (entry, prompt) in metadata.prompts.iter().enumerate() {
        if let Some(first) = ids.insert(prompt.id, entry) {
            return refused(format!(
                "prompts {first} and {entry} both have the id {}",
                prompt.id
            ));
        }
    }
    Ok(())
}

/// Reads and checks `log.json`.
pub(super) fn read_index(directory: &Path) -> Result<Index, LogError> {
    let path = directory.join(INDEX_NAME);
    let text =
        specgap_base::files::read_text(&path, specgap_base::files::DOCUMENT).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                LogError::format(
                    directory,
                    format!("has no {INDEX_NAME}; a sharded log is a directory with one"),
                )
            } else {
                LogError::reading(&path, source)
            }
        })?;
    parse_index(&path, &text)
}

fn parse_index(path: &Path, text: &str) -> Result<Index, LogError> {
    let unreadable = |said: String| LogError::format(path, format!("{said}; {FIELDS}"));
    // Before the fields, which another version may have named otherwise.
    let Version { schema } = typed::plain_json(text).map_err(unreadable)?;
    if schema != u64::from(SCHEMA) {
        return Err(LogError::format(
            path,
            format!("schema is {schema}; this version of specgap reads {SCHEMA}"),
        ));
    }
    let index: Index = typed::plain_json(text).map_err(unreadable)?;
    let mut seen = HashMap::with_capacity(index.shards.len());
    for (entry, shard) in index.shards.iter().enumerate() {
        if let Some(first) = seen.insert(shard.file.as_str(), entry) {
            return Err(LogError::format(
                path,
                format!(
                    "entries {first} and {entry} of its shards are both {:?}, whose positions \
                     would count twice; remove one of the two",
                    shard.file
                ),
            ));
        }
    }
    Ok(index)
}

/// A shard's name, if it is one: no folders, so that a log cannot point outside.
fn shard_file<'a>(directory: &Path, name: &'a str) -> Result<&'a Path, LogError> {
    let path = Path::new(name);
    if path
        .file_name()
        .is_some_and(|file| file == path.as_os_str())
    {
        Ok(path)
    } else {
        Err(LogError::format(
            &directory.join(INDEX_NAME),
            format!("shard {name:?} is not a plain file name"),
        ))
    }
}

/// Reads the header of a file; `spool` takes what has to be unpacked.
pub(super) fn read_file(path: &Path, spool: &mut Spool) -> Result<Contents, LogError> {
    read_source(path, Source::open(path)?, spool)
}

fn read_source(path: &Path, source: Source, spool: &mut Spool) -> Result<Contents, LogError> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("safetensors") => safetensors::read(path, source),
        Some("npz") => npz::read(path, source, spool),
        _ => Err(LogError::format(
            path,
            "is no log: a log is a .safetensors or .npz file, or a directory with a log.json",
        )),
    }
}
