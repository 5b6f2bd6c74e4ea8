//! `specgap counters`: from what servers count to the draft length to set.

use super::options::{Common, Costs, Folder, Format, read_timings};
use super::output::{CliError, Verdict, read_document, width};
use super::overwrites::Touched;
use super::parts::Parted;
use super::printed::{self, deliver};
use super::profile::Profiles;
use super::recorded::{Recorded, file_name};
use crate::counters::{
    self, Counted, CountersError, Settings, Source, Text, counters_definitions, tool_definitions,
};
use crate::page::is_of_a_page;
use crate::profile::is_of_a_profile;
use crate::replay::Timings;
use crate::{report, typed};
use clap::Args;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `specgap counters`.
#[derive(Args, Debug)]
#[command(after_long_help = printed::definitions(counters_definitions()))]
pub struct CountersArgs {
    /// What GET /metrics of vLLM, SGLang, TensorRT-LLM, llama.cpp's server or MAX gives (two for what was
    /// between them), responses of a server that say what each request accepted, its log, or a
    /// benchmark's result: docs/guide/counters.md has every file by tool.
    #[arg(required_unless_present = "definitions", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which program wrote the files.
    ///
    /// Where they do not tell: prometheus, vllm-requests, vllm-bench, vllm-log, sglang-requests, sglang-bench,
    /// tensorrt-llm, llama-cpp, llama-cpp-log, mlx-vlm, omlx-log, atom, mlc, aiperf, speculators.
    #[arg(long, value_name = "PROGRAM", value_parser = Source::from_str)]
    from: Option<Source>,
    /// Count only series with this label, or rows with this column: engine=0, subset=HumanEval.
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = label)]
    chosen: Vec<Label>,
    #[command(flatten)]
    costs: Costs,
    /// Tokens a second of the same load at two draft lengths, from which the cost of a draft follows: 0=52,3=118, or
    /// a benchmark's results, 0=plain.json,3=drafts.json.
    #[arg(long, value_name = "K=T,K=T", value_parser = throughput, conflicts_with_all = ["cost_ratio", "timings"])]
    throughput: Option<Throughput>,
    /// Measured times by batch size, each a file as --timings takes it, for vLLM's
    /// num_speculative_tokens_per_batch_size.
    #[arg(long, value_name = "B=FILE,...", value_delimiter = ',', value_parser = batch)]
    timings_by_batch: Vec<Batch>,
    /// The longest length that is extrapolated to [default: 8, or as many as were drafted].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=64))]
    up_to: Option<u16>,
    /// What each tool means by an acceptance rate or length, and how each becomes the other.
    #[arg(long, exclusive = true)]
    definitions: bool,
    #[command(flatten)]
    profiles: Profiles,
    #[command(flatten)]
    pub(super) parted: Parted,
    #[command(flatten)]
    pub(super) folder: Folder,
}

/// A label with the value that counts.
#[derive(Clone, Debug)]
struct Label(String, String);

impl Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.0, self.1)
    }
}

fn label(text: &str) -> Result<Label, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok(Label(key.to_owned(), value.to_owned())),
        _ => Err("is a label and its value, such as engine=0".to_owned()),
    }
}

/// A batch size with the file of its times.
#[derive(Clone, Debug)]
struct Batch {
    size: usize,
    file: PathBuf,
}

fn batch(text: &str) -> Result<Batch, String> {
    let read = |(size, file): (&str, &str)| {
        let size: usize = size.trim().parse().ok().filter(|&size| size > 0)?;
        (!file.is_empty()).then(|| Batch {
            size,
            file: file.into(),
        })
    };
    let wrong = "is a batch size and a file of times, such as 8=times-8.toml";
    text.split_once('=')
        .and_then(read)
        .ok_or_else(|| wrong.to_owned())
}

/// Tokens a second at two draft lengths, ascending.
#[derive(Clone, Debug)]
struct Throughput {
    text: String,
    speeds: [(usize, Speed); 2],
}

/// Tokens a second, or the benchmark's result that has them.
#[derive(Clone, Debug)]
enum Speed {
    Known(f64),
    In(PathBuf),
}

impl Throughput {
    /// The files to read.
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.speeds.iter().filter_map(|(_, speed)| match speed {
            Speed::Known(_) => None,
            Speed::In(file) => Some(file),
        })
    }

    fn read(&self) -> Result<[(usize, f64); 2], CliError> {
        let one = |(length, speed): &(usize, Speed)| {
            let speed = match speed {
                Speed::Known(speed) => *speed,
                Speed::In(path) => counters::throughput(&Text {
                    name: &path.display().to_string(),
                    text: &read_document(path)?,
                })?,
            };
            Ok::<_, CliError>((*length, speed))
        };
        let [first, second] = &self.speeds;
        Ok([one(first)?, one(second)?])
    }
}

fn throughput(text: &str) -> Result<Throughput, String> {
    let one = |part: &str| {
        let (length, speed) = part.split_once('=')?;
        let length: usize = length.trim().parse().ok()?;
        let speed = match speed.trim().parse::<f64>() {
            Ok(speed) if speed.is_finite() && speed > 0.0 => Speed::Known(speed),
            Ok(_) => return None,
            Err(_) => Speed::In(speed.trim().into()),
        };
        (length <= Settings::MOST_LENGTH).then_some((length, speed))
    };
    let speeds: Option<Vec<_>> = text.split(',').map(one).collect();
    let mut speeds = speeds.unwrap_or_default();
    speeds.sort_by_key(|(length, _)| *length);
    match <[_; 2]>::try_from(speeds) {
        Ok(speeds) if speeds[0].0 < speeds[1].0 => Ok(Throughput {
            text: text.to_owned(),
            speeds,
        }),
        _ => Err("is tokens a second at two draft lengths, such as 0=52,3=118".to_owned()),
    }
}

/// Returns what rounds cost, as counts take it.
fn costs(timings: &Timings) -> counters::Costs {
    counters::Costs {
        target_step: timings.target_step.seconds,
        rounds: (0..=Settings::MOST_LENGTH)
            .map_while(|drafts| timings.round(drafts))
            .collect(),
    }
}

impl CountersArgs {
    fn settings(&self) -> Result<Settings, CliError> {
        let mut by_batch = Vec::new();
        for batch in &self.timings_by_batch {
            by_batch.push((batch.size, costs(&read_timings(&batch.file)?)));
        }
        by_batch.sort_by_key(|(size, _)| *size);
        let twice = by_batch.windows(2).find(|pair| pair[0].0 == pair[1].0);
        if let Some(pair) = twice {
            return Err(CliError::missing(format!(
                "⟨timings-by-batch⟩: batch size {} is there twice",
                pair[0].0
            )));
        }
        Ok(Settings {
            costs: self.costs.timings()?.as_ref().map(costs),
            by_batch,
            cost_source: None,
            up_to: self.up_to.map(usize::from),
            command: self.command(),
        })
    }

    /// The command that makes the report.
    fn command(&self) -> String {
        let mut command = Recorded::new("counters", &self.files);
        command.option("from", self.from);
        for label in &self.chosen {
            command.option("where", Some(label));
        }
        self.costs.record(&mut command);
        command.option(
            "throughput",
            self.throughput.as_ref().map(|given| &given.text),
        );
        let by_batch = self.timings_by_batch.iter();
        command
            .list(
                "timings-by-batch",
                by_batch.map(|batch| format!("{}={}", batch.size, file_name(&batch.file))),
            )
            .option("up-to", self.up_to)
            .list("profile", &self.profiles.profile);
        command.into_line()
    }
}

pub(super) fn run(args: &CountersArgs, common: &Common) -> Result<Verdict, CliError> {
    if args.definitions {
        let mut out = super::colour::plain();
        match common.format {
            Format::Text => write!(
                out,
                "{}",
                report::counters::definitions_page().text(width(), true)
            )?,
            Format::Json => {
                for one in tool_definitions() {
                    writeln!(out, "{}", typed::line(one)?)?;
                }
            }
        }
        return Ok(Verdict::Agrees);
    }
    let by_batch = args.timings_by_batch.iter().map(|batch| &batch.file);
    (args.parted.touched(Touched::reading(&args.files)))
        .and_reading(args.costs.file())
        .and_reading(by_batch)
        .and_reading(args.throughput.iter().flat_map(Throughput::files))
        .folder(args.folder.out.as_deref(), |name| {
            is_of_a_page(name) || is_of_a_profile(name)
        })
        .check()?;
    args.profiles.check(&args.folder, common)?;
    let mut settings = args.settings()?;
    let chosen: Vec<(String, String)> = args
        .chosen
        .iter()
        .map(|Label(key, value)| (key.clone(), value.clone()))
        .collect();
    let read = || counted(&args.files, args.from, &chosen);
    let Some(counted) = (args.parted).counts(read, &args.command(), common)? else {
        return Ok(Verdict::Agrees);
    };
    if let Some(given) = &args.throughput {
        let plain = counters::predict(&counted, &settings);
        let found = counters::cost_of_throughput(&plain.lengths, given.read()?);
        let (cost, note) =
            found.map_err(|message| CliError::missing(format!("⟨throughput⟩: {message}")))?;
        settings.costs = Some(counters::Costs::ratio(cost));
        settings.cost_source = Some(note);
    }
    let report = counters::predict(&counted, &settings);
    let page = report::counters::page(&report);
    let beside = args.profiles.of_counters(&report)?;
    deliver(&report, &page, beside, &args.folder, common)?;
    Ok(Verdict::Agrees)
}

/// Reads what files say was counted.
pub(super) fn counted(
    paths: &[PathBuf],
    from: Option<Source>,
    chosen: &[(String, String)],
) -> Result<Counted, CliError> {
    let mut texts = Vec::new();
    for path in paths {
        texts.push((path.display().to_string(), read_document(path)?));
    }
    let files: Vec<Text<'_>> = texts
        .iter()
        .map(|(name, text)| Text { name, text })
        .collect();
    Ok(counters::count(&files, from, chosen)?)
}

impl From<CountersError> for CliError {
    fn from(error: CountersError) -> Self {
        match error {
            CountersError::File(file, message) => Self::input(file, message),
            other => Self::missing(other.to_string()),
        }
    }
}
