//! Rows into a log on disk, and going on with one.

use super::CaptureError;
use super::generate::{Capture, Generation, Row, RowSink, SinkError};
use super::graph_file::{files_of_graph, identity};
use super::model::{Heads, Model};
use super::rollouts::{DrawnRollout, RolloutPlan};
use super::runtime::Runtime;
use super::sampling::seed_of_text;
use super::tokens::{EncodedPrompt, TextCodec};
use serde_json::{Value, json};
use specgap_log::log::{
    DraftLogs, Drafter, FileIdentity, HeadValues, KeptTokens, Layout, LogWriter, Metadata,
    PromptRecord, Rollout, RolloutRecord, Sampling, SharedPosition,
};
use specgap_sampling::Cuts;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Room left for the index and for what a file system needs itself.
const SLACK_BYTES: u64 = 1 << 20;

/// Where rows come from: the files by name and SHA-256, and what ran them.
#[derive(Clone, Debug)]
pub struct Provenance {
    target: Vec<FileIdentity>,
    drafts: Vec<Vec<FileIdentity>>,
    tokenizer: FileIdentity,
    prompts: FileIdentity,
    command: Option<String>,
}

impl Provenance {
    /// Reads all files to name them by their contents, the weights beside the
    /// graphs included.
    ///
    /// # Errors
    ///
    /// [`CaptureError::File`] if one cannot be read.
    pub fn read(
        target: &Path,
        drafts: &[PathBuf],
        tokenizer: &Path,
        prompts: &Path,
    ) -> Result<Self, CaptureError> {
        let (target, drafts) = rayon::join(
            || files_of_graph(target),
            || {
                let files = drafts.iter().map(|draft| files_of_graph(draft));
                files.collect::<Result<Vec<_>, _>>()
            },
        );
        Ok(Self {
            target: target?,
            drafts: drafts?,
            tokenizer: identity(tokenizer)?,
            prompts: identity(prompts)?,
            command: None,
        })
    }

    /// Notes the command that is running.
    #[must_use]
    pub fn with_command(mut self, command: String) -> Self {
        self.command = Some(command);
        self
    }

    /// Returns what the log of a draft, by its number, says of itself.
    fn metadata(
        &self,
        capture: &Capture,
        (number, draft): (usize, &Model),
        runtime: &Runtime,
        layout: &Layout,
    ) -> Metadata {
        let settings = capture.settings();
        let sampling = &settings.sampling;
        let target = capture.target();
        let files = self.drafts.get(number).map_or(&[][..], Vec::as_slice);
        let mut metadata = Metadata {
            tool: Some(specgap_log::log::tool()),
            command: self.command.clone(),
            target: self.target.first().cloned(),
            draft: files.first().cloned(),
            tokenizer: Some(self.tokenizer.clone()),
            runtime: Some(format!(
                "ONNX Runtime {}, {}",
                runtime.version(),
                target.placement().device.provider()
            )),
            temperature_applied: Some(1.0),
            sampling: Some(Sampling {
                temperature: sampling.temperature(),
                top_k: sampling.top_k(),
                top_p: sampling.top_p(),
                min_p: None,
                cut_order: sampling.cuts().map(Cuts::order),
                seed: Some(settings.seed),
                max_tokens: Some(settings.max_tokens),
                chat: Some(capture.codec().chat().name().to_owned()),
            }),
            rollouts: settings.rollouts.map(|plan| RolloutRecord {
                version: if plan.paths > 1 { 2 } else { 1 },
                tokens: plan.tokens,
                every: plan.every,
                paths: plan.paths,
                inclusion_probability: 1.0 / plan.every as f64,
                temperature: sampling.temperature(),
                target: plan.target,
            }),
            // Rows of a round that come at once look at no token of it.
            drafter: (draft.depths() > 1).then_some(Drafter::Parallel),
            ..Metadata::default()
        };
        let stop: Vec<u32> = capture.codec().stop_tokens().collect();
        let placement = |model: &Model| {
            json!({
                "provider": model.placement().device.provider(),
                "nodes": model.placement().nodes,
            })
        };
        let mut extra = vec![
            ("prompts_file", json!(self.prompts)),
            (
                "target_weights",
                json!(self.target.get(1..).unwrap_or_default()),
            ),
            ("draft_weights", json!(files.get(1..).unwrap_or_default())),
            ("batch", json!(settings.batch)),
            ("stop_tokens", json!(stop)),
            ("dtype", json!(layout.dtype)),
            ("top", json!(top_count(layout))),
            ("target_ran_on", placement(target)),
            ("draft_ran_on", placement(draft)),
        ];
        if self.drafts.len() > 1 {
            let together = self.drafts.iter().map(|files| files.first());
            let names = together.map(|file| file.map(|file| &file.name));
            extra.push(("drafts_together", json!(names.collect::<Vec<_>>())));
        }
        let heads: Vec<&str> = draft.heads().names().collect();
        if !heads.is_empty() {
            extra.push(("draft_heads", json!(heads)));
        }
        let extra = extra.into_iter();
        metadata.extra = extra
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        metadata
    }
}

fn top_count(layout: &Layout) -> Option<usize> {
    match layout.tokens {
        KeptTokens::All | KeptTokens::Lists => None,
        KeptTokens::Top { count, .. } => Some(count),
    }
}

/// Returns what a capture has to have in common with the log that it continues, by the
/// name that a message gives it.
fn settings_of(metadata: &Metadata) -> Vec<(&'static str, Value)> {
    let hash = |file: &Option<FileIdentity>| json!(file.as_ref().map(|file| &file.sha256));
    let extra = |name: &str| metadata.extra.get(name).cloned().unwrap_or_default();
    let hashes = |name: &str| -> Value {
        let files: Vec<FileIdentity> = serde_json::from_value(extra(name)).unwrap_or_default();
        json!(files.iter().map(|file| &file.sha256).collect::<Vec<_>>())
    };
    let sampling = metadata.sampling.clone().unwrap_or_default();
    let rollouts = metadata.rollouts.as_ref();
    let prompts: Option<FileIdentity> = serde_json::from_value(extra("prompts_file")).ok();
    vec![
        ("the file of ⟨target⟩", hash(&metadata.target)),
        ("the weights of ⟨target⟩", hashes("target_weights")),
        ("the file of ⟨draft⟩", hash(&metadata.draft)),
        ("the weights of ⟨draft⟩", hashes("draft_weights")),
        ("the list of ⟨draft⟩", extra("drafts_together")),
        ("the file of ⟨tokenizer⟩", hash(&metadata.tokenizer)),
        ("the file of ⟨prompts⟩", hash(&prompts)),
        ("⟨temperature⟩", json!(sampling.temperature)),
        ("⟨top-k⟩", json!(sampling.top_k)),
        ("⟨top-p⟩", json!(sampling.top_p)),
        ("⟨cut-order⟩", json!(sampling.cut_order.unwrap_or_default())),
        ("⟨seed⟩", json!(sampling.seed)),
        ("⟨max-tokens⟩", json!(sampling.max_tokens)),
        ("⟨chat⟩", json!(sampling.chat)),
        ("⟨stop⟩", extra("stop_tokens")),
        ("⟨batch⟩", extra("batch")),
        ("⟨vocab⟩", json!(metadata.vocabulary)),
        ("⟨dtype⟩", extra("dtype")),
        ("⟨top⟩", extra("top")),
        ("⟨rest-temperatures⟩", json!(metadata.rest_temperatures)),
        ("⟨rollouts⟩", json!(rollouts.map(|record| record.tokens))),
        ("⟨every⟩", json!(rollouts.map(|record| record.every))),
        ("⟨paths⟩", json!(rollouts.map(|record| record.paths))),
        (
            "⟨rollout-target⟩",
            json!(rollouts.is_some_and(|record| record.target)),
        ),
        ("the runtime or ⟨device⟩", json!(metadata.runtime)),
    ]
}

/// The first setting in which two captures differ: its name, its value in the
/// log and now.
fn difference(logged: &Metadata, now: &Metadata) -> Option<(&'static str, Value, Value)> {
    settings_of(logged)
        .into_iter()
        .zip(settings_of(now))
        .find(|((_, logged), (_, now))| logged != now)
        .map(|((name, logged), (_, now))| (name, logged, now))
}

/// A log that takes the rows of a capture, one commit a batch: after a kill, it
/// holds the batches that were finished, and continues behind them.
///
/// Of several drafts it is a folder of logs, one a draft, named as [`draft_names`] says, which
/// have the target's rows in common ([`DraftLogs`]).
pub struct LogSink {
    logs: DraftLogs,
    path: PathBuf,
    codec: Arc<TextCodec>,
    done: HashSet<usize>,
    plan: Option<RolloutPlan>,
    heads: Heads,
    folders: Vec<PathBuf>,
    /// The numbers in the log of positions that are not committed, by prompt and
    /// position; kept where there are rollouts.
    numbers: HashMap<(usize, usize), usize>,
    seed: u64,
    /// What the log says of each prompt's random numbers, of the batch that runs.
    seeds: HashMap<usize, i64>,
}

impl LogSink {
    /// Begins a log at `path`, or goes on with the one that is there.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Resume`] names the first setting in which the log there
    /// differs from this capture; [`CaptureError::Occupied`] for a folder with
    /// other files; [`CaptureError::Log`] if the log cannot be read or written.
    pub fn open(
        path: &Path,
        capture: &Capture,
        runtime: &Runtime,
        provenance: &Provenance,
        layout: Layout,
    ) -> Result<Self, CaptureError> {
        let folders = folders(path, capture)?;
        let mut metadata: Vec<Metadata> = (capture.drafts().enumerate())
            .map(|draft| provenance.metadata(capture, draft, runtime, &layout))
            .collect();
        for (folder, metadata) in folders.iter().zip(&mut metadata) {
            if !LogWriter::exists(folder) {
                refuse_occupied(folder, &[])?;
                continue;
            }
            metadata.vocabulary = Some(layout.vocabulary);
            if let KeptTokens::Top {
                rest_temperatures, ..
            } = &layout.tokens
            {
                metadata.rest_temperatures.clone_from(rest_temperatures);
            }
            let logged = LogWriter::said_by(folder)?;
            if let Some((setting, logged, now)) = difference(&logged, metadata) {
                return Err(CaptureError::Resume {
                    path: folder.clone(),
                    setting,
                    logged: logged.to_string(),
                    now: now.to_string(),
                });
            }
        }
        if folders.len() > 1 {
            refuse_occupied(path, &folders)?;
        }
        let logs = DraftLogs::open(&folders, metadata, &layout, capture.settings().batch)?;
        let done = (logs.writers().first())
            .map_or(&[][..], |first| first.metadata().prompts.as_slice())
            .iter()
            .filter_map(|prompt| usize::try_from(prompt.id).ok())
            .collect();
        Ok(Self {
            logs,
            path: path.to_owned(),
            codec: Arc::clone(capture.codec()),
            done,
            plan: capture.settings().rollouts,
            heads: capture.draft().heads(),
            folders,
            numbers: HashMap::new(),
            seed: capture.settings().seed,
            seeds: HashMap::new(),
        })
    }

    /// Says how many prompts the log will have, with the next commit: until it has them, reports
    /// tell that it is not finished.
    pub fn plan(&mut self, prompts: usize) {
        for metadata in self.logs.metadata_mut() {
            metadata.planned_prompts = Some(prompts);
        }
    }

    /// The prompts that are in the log, by their number in the file.
    pub fn done(&self) -> &HashSet<usize> {
        &self.done
    }

    /// The folder of each draft's log.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Bytes that so many more positions may take.
    pub fn bytes_of(&self, positions: usize) -> u64 {
        let heads = self.heads.count() as u64;
        // Prompt, position, token, seed and what heads predict, 8 bytes each.
        let rows: usize = (self.logs.writers().iter())
            .map(LogWriter::position_bytes)
            .sum();
        let each = rows as u64 + 32 + 8 * heads;
        // A rollout's position, and 6 numbers a token, or 8 with the target; more with heads.
        let of_rollouts = self.plan.map_or(0, |plan| {
            let numbers = if plan.target { 8 } else { 6 } + heads;
            let each = (plan.tokens as u64).saturating_mul(8 * numbers) + 8;
            each.saturating_mul(plan.most(positions) as u64)
        });
        each.saturating_mul(positions as u64)
            .saturating_add(of_rollouts)
    }

    /// Bytes left on the log's disk, if the system says.
    pub fn free_space(&self) -> Option<u64> {
        fs4::available_space(&self.path).ok()
    }
}

impl RowSink for LogSink {
    fn begin(&mut self, prompts: &[EncodedPrompt], positions: usize) -> Result<(), SinkError> {
        let seeds = (prompts.iter()).map(|one| (one.index, seed_of_text(self.seed, &one.id)));
        self.seeds = seeds.collect();
        let needed = self.bytes_of(positions).saturating_add(SLACK_BYTES);
        match self.free_space() {
            Some(free) if free < needed => Err(Box::new(CaptureError::DiskFull {
                path: self.path.clone(),
                prompts: prompts.len(),
                needed,
                free,
            })),
            _ => Ok(()),
        }
    }

    fn append(&mut self, row: &Row<'_>) -> Result<(), SinkError> {
        if self.plan.is_some() {
            let place = (row.prompt, row.position);
            let number = self.logs.writers().first().map(LogWriter::positions);
            self.numbers.insert(place, number.unwrap_or(usize::MAX));
        }
        let mut drafts = vec![row.draft];
        drafts.extend(row.others.iter().map(|other| other.draft));
        // Indices and counts are far below 2^63.
        self.logs.append(&SharedPosition {
            prompt_id: row.prompt as i64,
            position: row.position as i64,
            token: i64::from(row.token),
            seed: self.seeds.get(&row.prompt).copied().unwrap_or(-1),
            target: row.target,
            drafts: &drafts,
        })?;
        let mut heads = vec![HeadValues {
            acceptance: row.head_acceptance,
            overlap: row.head_overlap,
        }];
        heads.extend(row.others.iter().map(|other| HeadValues {
            acceptance: other.head_acceptance,
            overlap: other.head_overlap,
        }));
        self.logs.set_heads(&heads)?;
        Ok(())
    }

    fn append_rollout(&mut self, rollout: &DrawnRollout) -> Result<(), SinkError> {
        let place = (rollout.prompt, rollout.position);
        let number = self.numbers.get(&place).copied();
        self.logs.append_rollout(&Rollout {
            // The writer refuses a position that was not appended.
            position: number.unwrap_or(usize::MAX),
            tokens: &rollout.tokens,
            q: &rollout.q,
            argmax: &rollout.argmax,
            top1: &rollout.top1,
            entropy: &rollout.entropy,
            margin: &rollout.margin,
            target_p: &rollout.target_p,
            overlap: &rollout.overlap,
            acceptance: &rollout.head_acceptance,
            head_overlap: &rollout.head_overlap,
        })?;
        Ok(())
    }

    fn commit(&mut self, finished: &[Generation]) -> Result<(), SinkError> {
        self.numbers.clear();
        for metadata in self.logs.metadata_mut() {
            for generation in finished {
                metadata.prompts.push(PromptRecord {
                    id: generation.prompt as i64,
                    name: generation.id.clone(),
                    positions: generation.tokens.len(),
                });
                for &token in &generation.tokens {
                    metadata
                        .token_text
                        .entry(i64::from(token))
                        .or_insert_with(|| self.codec.decode(&[token]));
                }
            }
        }
        self.logs.commit()?;
        self.done
            .extend(finished.iter().map(|generation| generation.prompt));
        Ok(())
    }
}

/// Returns where each draft's log is: `path` itself of one draft, folders in it of several.
fn folders(path: &Path, capture: &Capture) -> Result<Vec<PathBuf>, CaptureError> {
    let graphs: Vec<&Path> = capture.drafts().map(Model::path).collect();
    if graphs.len() == 1 {
        return Ok(vec![path.to_owned()]);
    }
    if LogWriter::exists(path) {
        return Err(CaptureError::Occupied(path.to_owned()));
    }
    Ok(draft_names(&graphs)
        .into_iter()
        .map(|name| path.join(name))
        .collect())
}

/// Returns what the logs of several drafts are called: as their files are, without the ending; with
/// the folder before it, where that does not tell them apart; numbered where that does not.
///
/// ```
/// use specgap_capture::draft_names;
/// use std::path::Path;
/// let names = |paths: &[&str]| draft_names(&paths.iter().map(Path::new).collect::<Vec<_>>());
/// assert_eq!(names(&["out/q3.onnx", "out/q4.onnx"]), ["q3", "q4"]);
/// assert_eq!(names(&["a/model.onnx", "b/model.onnx"]), ["a-model", "b-model"]);
/// assert_eq!(names(&["model.onnx", "model.ONNX"]), ["model", "model-2"]);
/// ```
pub fn draft_names(graphs: &[&Path]) -> Vec<String> {
    let word = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let stem = |path: &Path| word(path.file_stem());
    let with_folder = |path: &Path| {
        let folder = word(path.parent().and_then(Path::file_name));
        let parts = [folder, stem(path)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("-")
    };
    // On file systems that know no capitals, too.
    let apart = |names: &[String]| {
        let distinct: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        distinct.len() == names.len()
    };
    let mut names: Vec<String> = graphs.iter().map(|path| stem(path)).collect();
    if !apart(&names) {
        names = graphs.iter().map(|path| with_folder(path)).collect();
    }
    let mut taken = HashSet::new();
    for name in &mut names {
        let (plain, mut number) = (name.clone(), 2);
        while !taken.insert(name.to_lowercase()) {
            *name = format!("{plain}-{number}");
            number += 1;
        }
    }
    names
}

/// A folder with files that no log has is somebody's. `own` are folders that may be in it.
fn refuse_occupied(path: &Path, own: &[PathBuf]) -> Result<(), CaptureError> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Ok(());
    };
    let foreign = entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // What a process leaves that is killed before its first commit.
        name != ".lock" && !name.starts_with(".writing-") && !own.contains(&entry.path())
    });
    if foreign {
        return Err(CaptureError::Occupied(path.to_owned()));
    }
    Ok(())
}
