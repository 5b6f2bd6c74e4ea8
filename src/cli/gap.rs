//! `specgap gap`: logged rows to a report.

use super::output::{CliError, check_folder, progress, width, write_together};
use super::{Common, Format, Verdict};
use crate::gap::{self, GapError, GapReport, Settings};
use crate::log::Log;
use crate::report;
use crate::scheme::SchemeName;
use crate::verifier::VerifierName;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

/// Arguments of `specgap gap`.
#[derive(Args, Debug)]
#[command(after_long_help = definitions())]
pub struct GapArgs {
    /// Logs: .safetensors or .npz files, or directories with a log.json.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    #[command(flatten)]
    measure: MeasureArgs,
    /// Keep the first N tokens of every row, where models differ by padding.
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,
    /// Write report.html, report.md, report.json and the plots here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Exit with 1 if a number of this report.json is missing or left its interval.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

const BLOCK_LENGTH: u16 = 5;

/// What to measure; shared with `specgap demo`.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Numbers of drafts, 1 to 64.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "2,3,4"
    )]
    drafts: Vec<usize>,
    /// Temperatures of target and draft.
    #[arg(
        long,
        value_name = "T,...",
        value_delimiter = ',',
        allow_negative_numbers = true,
        default_value = "0.7,1.0"
    )]
    temperature: Vec<f64>,
    /// Draft schemes whose optima and verifiers are measured; all if not given.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = schemes())]
    schemes: Vec<SchemeName>,
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = verifiers(),
        help = verifiers_help(),
        long_help = verifiers_help()
    )]
    verifiers: Vec<VerifierName>,
    /// Solve the optimal plans of sequential draws too, for up to 8 drafts; takes longer
    /// than everything else together.
    #[arg(long)]
    sequential_plans: bool,
    /// Length L of the blocks whose bounds are estimated from sampled text.
    #[arg(long, value_name = "L", default_value_t = BLOCK_LENGTH, value_parser = clap::value_parser!(u16).range(1..=64))]
    block_length: u16,
    /// Put the time of the optimal plans' solves into the report, which then
    /// differs from run to run.
    #[arg(long)]
    timing: bool,
}

/// The schemes of a log's drafts, with their words.
fn schemes() -> impl TypedValueParser<Value = SchemeName> {
    PossibleValuesParser::new(
        Settings::schemes()
            .into_iter()
            .map(|scheme| PossibleValue::new(scheme.as_str()).help(scheme.law())),
    )
    .try_map(|name| SchemeName::from_str(&name))
}

/// All verifiers, with their words.
fn verifiers() -> impl TypedValueParser<Value = VerifierName> {
    PossibleValuesParser::new(VerifierName::ALL.map(|name| {
        let words = format!("{}; for {}", name.rule(), name.draft_schemes());
        PossibleValue::new(name.as_str()).help(words)
    }))
    .try_map(|name| VerifierName::from_str(&name))
}

fn verifiers_help() -> String {
    let usual = Settings::verifiers();
    let others: Vec<&str> = VerifierName::ALL
        .into_iter()
        .filter(|name| !usual.contains(name))
        .map(VerifierName::as_str)
        .collect();
    let but = if others.is_empty() {
        String::new()
    } else {
        format!(" but {}", others.join(", "))
    };
    format!("Verifiers that are measured; all{but} if not given")
}

pub(super) fn run(args: &GapArgs, common: &Common) -> Result<Verdict, CliError> {
    // Everything that can be refused is, before the long part.
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    refuse_repetition(&args.logs)?;
    let logs = args
        .logs
        .iter()
        .map(|path| Log::open_with(path, args.vocab))
        .collect::<Result<Vec<_>, _>>()
        .map_err(GapError::from)?;
    if let Some(folder) = &args.out {
        check_folder(folder)?;
    }
    let names: Vec<String> = args
        .logs
        .iter()
        .map(|path| {
            path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            )
        })
        .collect();
    let report = measure(
        &logs,
        &args.measure,
        &format!("specgap gap {}", names.join(" ")),
        args.vocab,
        common,
    )?;
    let verdict = match (&args.baseline, baseline) {
        (Some(path), Some(baseline)) => compare(&report, path, &baseline)?,
        _ => Verdict::Agrees,
    };
    finish(&report, args.out.as_deref(), common)?;
    Ok(verdict)
}

/// ` --name a,b`, or nothing.
fn option<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<&str> = values.collect();
    if values.is_empty() {
        return String::new();
    }
    format!(" --{name} {}", values.join(","))
}

/// Measures logs, with a progress bar and a line on how long it took.
pub(super) fn measure(
    logs: &[Log],
    args: &MeasureArgs,
    command: &str,
    vocab: Option<usize>,
    common: &Common,
) -> Result<GapReport, CliError> {
    let mut settings = Settings::new(&args.temperature, &args.drafts, common.seed)?;
    settings.block_length = usize::from(args.block_length);
    settings.timing = args.timing;
    settings.sequential_plans = args.sequential_plans;
    if !args.schemes.is_empty() {
        settings.schemes.clone_from(&args.schemes);
    }
    if !args.verifiers.is_empty() {
        settings.verifiers.clone_from(&args.verifiers);
    }
    let list = |values: Vec<String>| values.join(",");
    let command = format!(
        "{command} --drafts {} --temperature {}{}{}{}{}{}{}",
        list(settings.drafts.iter().map(ToString::to_string).collect()),
        list(
            settings
                .temperatures
                .iter()
                .map(|t| format!("{t:?}"))
                .collect()
        ),
        option("schemes", args.schemes.iter().map(|s| s.as_str())),
        option("verifiers", args.verifiers.iter().map(|v| v.as_str())),
        if args.sequential_plans {
            " --sequential-plans"
        } else {
            ""
        },
        if args.block_length == BLOCK_LENGTH {
            String::new()
        } else {
            format!(" --block-length {}", settings.block_length)
        },
        vocab.map_or_else(String::new, |n| format!(" --vocab {n}")),
        if common.seed == 0 {
            String::new()
        } else {
            format!(" --seed {}", common.seed)
        },
    );
    let total = logs.iter().map(Log::positions).sum();
    let people = common.format == Format::Text && !common.quiet;
    let bar = progress(total, people, "positions");
    let start = Instant::now();
    let report = gap::measure(logs, &settings, &command, &|done| bar.inc(done as u64))?;
    bar.finish_and_clear();
    if people {
        let seconds = start.elapsed().as_secs_f64();
        eprintln!(
            "{} in {seconds:.1} s: {:.1} a second on {}",
            report::counted(total, "position"),
            total as f64 / seconds.max(1e-9),
            report::counted(rayon::current_num_threads(), "thread")
        );
    }
    Ok(report)
}

/// Prints a report, and writes its files if a folder is named.
pub(super) fn finish(
    report: &GapReport,
    out: Option<&Path>,
    common: &Common,
) -> Result<(), CliError> {
    if let Some(folder) = out {
        write_files(report, folder)?;
    }
    let mut stdout = std::io::stdout().lock();
    match common.format {
        Format::Json => {
            serde_json::to_writer(&mut stdout, report)?;
            writeln!(stdout)?;
        }
        Format::Text => {
            if !common.quiet {
                write!(
                    stdout,
                    "{}",
                    report::gap::page(report).text(width(), common.verbose > 0)
                )?;
            }
            if let Some(folder) = out {
                writeln!(stdout, "report: {}", folder.join("report.html").display())?;
            }
        }
    }
    Ok(())
}

fn write_files(report: &GapReport, folder: &Path) -> Result<(), CliError> {
    let failed = |error: report::DrawError| CliError::Internal {
        message: error.to_string(),
    };
    let page = report::gap::page(report);
    let mut json = serde_json::to_vec_pretty(report)?;
    json.push(b'\n');
    let mut files = Vec::new();
    for figure in page.figures() {
        let svg = figure.svg().map_err(failed)?;
        files.push((figure.svg_file(), svg.into_bytes()));
        let png = figure.png().map_err(failed)?;
        files.push((format!("{}.png", figure.name), png));
    }
    files.push(("report.json".to_owned(), json));
    files.push(("report.md".to_owned(), page.markdown().into_bytes()));
    // Last, so that a report.html has everything beside it.
    files.push((
        "report.html".to_owned(),
        page.html().map_err(failed)?.into_bytes(),
    ));
    write_together(folder, &files)
}

/// A log that is named twice would count twice, and narrow every interval.
fn refuse_repetition(logs: &[PathBuf]) -> Result<(), CliError> {
    let mut seen = Vec::new();
    for path in logs {
        // What cannot be found is refused when it is opened.
        let Ok(place) = path.canonicalize() else {
            continue;
        };
        if seen.contains(&place) {
            return Err(CliError::Input {
                path: path.clone(),
                message: "is named twice; its positions would count twice".to_owned(),
            });
        }
        seen.push(place);
    }
    Ok(())
}

/// What the report's words mean, for `--help`.
pub(super) fn definitions() -> String {
    let mut text = "Definitions:\n".to_owned();
    for (name, meaning) in gap::definitions(usize::from(BLOCK_LENGTH)) {
        text.push_str(&format!("  {name}: {meaning}\n"));
    }
    text
}

fn read_baseline(path: &Path) -> Result<GapReport, CliError> {
    let text = std::fs::read_to_string(path).map_err(|source| CliError::File {
        path: path.to_owned(),
        action: "cannot be read",
        source,
    })?;
    let refused = |message: String| CliError::Input {
        path: path.to_owned(),
        message,
    };
    // Before the fields, which another version may have named otherwise.
    let document: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| refused(format!("is no report.json of specgap gap: {error}")))?;
    match document.get("schema").map(serde_json::Value::as_u64) {
        Some(Some(schema)) if schema == u64::from(gap::SCHEMA) => {}
        Some(Some(schema)) => {
            return Err(refused(format!(
                "schema is {schema}; this version of specgap compares with {}",
                gap::SCHEMA
            )));
        }
        _ => {
            return Err(refused(
                "is no report.json of specgap gap: schema is not a number".to_owned(),
            ));
        }
    }
    let report: GapReport = serde_path_to_error::deserialize(document).map_err(|error| {
        refused(format!(
            "is no report.json of specgap gap: {}: {}",
            error.path(),
            error.inner()
        ))
    })?;
    if report.cells.is_empty() {
        return Err(refused(
            "cells is empty: there is nothing to compare with".to_owned(),
        ));
    }
    Ok(report)
}

fn compare(report: &GapReport, path: &Path, baseline: &GapReport) -> Result<Verdict, CliError> {
    let regressions = gap::regressions(report, baseline);
    let mut stderr = std::io::stderr().lock();
    for regression in &regressions {
        let [low, high] = regression.interval;
        let now = regression
            .now
            .map_or("is missing".to_owned(), |x| format!("is {x:.6}"));
        writeln!(
            stderr,
            "regression: {} {now}; the baseline has [{low:.6}, {high:.6}]",
            regression.what
        )?;
    }
    if regressions.is_empty() {
        writeln!(
            stderr,
            "baseline {}: every number is in its interval",
            path.display()
        )?;
        Ok(Verdict::Agrees)
    } else {
        Ok(Verdict::Disagrees)
    }
}
