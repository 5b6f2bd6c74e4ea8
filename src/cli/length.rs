//! `specgap length`: how many tokens to draft, from logged text.

use super::gap::refuse_repetition;
use super::options::{Common, Cost, Counts, Folder, Kept, cost_ratio, read_timings};
use super::output::{CliError, Verdict, check_folder, write_together};
use super::printed::print_report;
use crate::log::Log;
use crate::report;
use crate::text::{
    self, ChainVerifier, FAMILIES, Family, Policy, RolloutList, Settings, TextError,
};
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Arguments of `specgap length`.
#[derive(Args, Debug)]
#[command(after_long_help = definitions())]
pub struct LengthArgs {
    /// Logs with sampled text: .safetensors or .npz files, or directories with a log.json.
    /// Texts of several are counted together.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Fixed lengths that are replayed; 1-4 is 1,2,3,4.
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = |text: &str| Counts::up_to(text, 1024))]
    lengths: Vec<Counts>,
    /// Policies beside fixed lengths: a family with its usual numbers, or NAME=NUMBER; all
    /// families if not given.
    #[arg(long, value_name = "NAME[=X],...", value_delimiter = ',', value_parser = policies, long_help = policies_help())]
    policies: Vec<Named>,
    /// token, block, greedy-block; all if not given.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = ChainVerifier::from_str)]
    verifiers: Vec<ChainVerifier>,
    /// The most tokens of a round, for policies that stop by themselves [default: 16, or as
    /// many as the log's rollouts have, if these are fewer].
    #[arg(long, alias = "max", value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_length: Option<u16>,
    /// Time of a draft step over that of a target step; a verifying pass then costs a target
    /// step.
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = cost_ratio)]
    cost_ratio: Option<Cost>,
    /// Measured times, as TOML or JSON (docs/formats.md).
    #[arg(long, value_name = "FILE", conflicts_with = "cost_ratio")]
    timings: Option<PathBuf>,
    /// The temperature at which the text was drawn, where the log does not say.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    folder: Folder,
}

/// What `--policies` names.
#[derive(Clone, Debug)]
struct Named {
    text: String,
    policies: Vec<Policy>,
}

fn policies(text: &str) -> Result<Named, String> {
    let policies = if text.contains('=') {
        vec![text.parse()?]
    } else {
        Family::named(text)?.usual().collect()
    };
    Ok(Named {
        text: text.to_owned(),
        policies,
    })
}

fn policies_help() -> String {
    let mut help = "Policies beside fixed lengths: a family with its usual numbers, or \
        NAME=NUMBER; all families if not given:\n"
        .to_owned();
    for family in &FAMILIES {
        help.push_str(&format!("- {}: {}\n", family.name, family.rule));
    }
    help
}

impl LengthArgs {
    fn settings(&self) -> Result<Settings, CliError> {
        let usual = Settings::default();
        let mut policies: Vec<Policy> = if self.policies.is_empty() {
            usual.policies
        } else {
            let named = self.policies.iter();
            named.flat_map(|named| named.policies.clone()).collect()
        };
        let fixed = |policy: &Policy| policy.family.name == "fixed";
        if !self.lengths.is_empty() {
            policies.retain(|policy| !fixed(policy));
        }
        if !policies.iter().any(fixed) {
            // What everything else is measured against.
            let mut lengths: Vec<Policy> = if self.lengths.is_empty() {
                let first = FAMILIES.iter().find(|family| family.name == "fixed");
                first
                    .into_iter()
                    .flat_map(|family| family.usual())
                    .collect()
            } else {
                let lengths = Counts::all(&self.lengths);
                lengths.into_iter().map(Policy::fixed).collect()
            };
            lengths.append(&mut policies);
            policies = lengths;
        }
        let mut each_once: Vec<Policy> = Vec::new();
        for policy in policies {
            if !each_once.contains(&policy) {
                each_once.push(policy);
            }
        }
        let mut verifiers = if self.verifiers.is_empty() {
            usual.verifiers
        } else {
            self.verifiers.clone()
        };
        verifiers.sort_unstable();
        verifiers.dedup();
        let timings = match (&self.cost_ratio, &self.timings) {
            (Some(cost), _) => Some(cost.timings.clone()),
            (None, Some(path)) => Some(read_timings(path)?),
            (None, None) => None,
        };
        Ok(Settings {
            policies: each_once,
            verifiers,
            timings,
            max_length: self.max_length.map(usize::from),
            temperature: self.temperature,
        })
    }

    /// The command that makes the report, without paths of the machine.
    fn command(&self) -> String {
        let name = |path: &Path| {
            path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into(),
            )
        };
        fn list<T: ToString>(items: &[T]) -> String {
            let words: Vec<String> = items.iter().map(ToString::to_string).collect();
            words.join(",")
        }
        let logs: Vec<String> = self.logs.iter().map(|path| name(path)).collect();
        let mut command = format!("specgap length {}", logs.join(" "));
        let mut option = |name: &str, value: String| {
            if !value.is_empty() {
                command.push_str(&format!(" --{name} {value}"));
            }
        };
        option("lengths", list(&Counts::all(&self.lengths)));
        let named: Vec<&str> = self
            .policies
            .iter()
            .map(|named| named.text.as_str())
            .collect();
        option("policies", named.join(","));
        option("verifiers", list(&self.verifiers));
        let most = self.max_length.map(|most| most.to_string());
        option("max-length", most.unwrap_or_default());
        let cost = self.cost_ratio.as_ref().map(|cost| cost.text.clone());
        option("cost-ratio", cost.unwrap_or_default());
        option(
            "timings",
            self.timings.as_deref().map(name).unwrap_or_default(),
        );
        option(
            "temperature",
            self.temperature
                .map_or_else(String::new, |t| format!("{t:?}")),
        );
        option(
            "vocab",
            self.kept.vocab.map_or_else(String::new, |n| n.to_string()),
        );
        command
    }
}

pub(super) fn run(args: &LengthArgs, common: &Common) -> Result<Verdict, CliError> {
    // Everything that can be refused is, before the long part.
    refuse_repetition(&args.logs)?;
    let mut settings = args.settings()?;
    if let Some(folder) = &args.folder.out {
        check_folder(folder)?;
    }
    let logs = args
        .logs
        .iter()
        .map(|path| common.open(path, args.kept.vocab))
        .collect::<Result<Vec<_>, _>>()
        .map_err(TextError::from)?;
    if args.policies.is_empty() {
        // Those that most logs cannot tell of.
        let has = |family: &&Family| match family.list {
            Some(RolloutList::HeadAcceptance) => logs.iter().all(Log::has_head_acceptance),
            Some(RolloutList::HeadOverlap) => logs.iter().all(Log::has_head_overlap),
            _ => false,
        };
        let heads = FAMILIES.iter().filter(has);
        settings.policies.extend(heads.flat_map(Family::usual));
    }
    let total = logs.iter().map(Log::positions).sum();
    let bar = common.progress(total);
    let report = text::measure(&logs, &settings, &args.command(), &|done| {
        bar.inc(done);
    })?;
    bar.finish_and_clear();
    let page = report::length::page(&report);
    if let Some(folder) = &args.folder.out {
        write_together(folder, &args.folder.files(&page, &report)?)?;
    }
    print_report(&report, &page, args.folder.out.as_deref(), common)?;
    Ok(Verdict::Agrees)
}

/// What the report's words mean, for `--help`.
fn definitions() -> String {
    let mut text = "Definitions:\n".to_owned();
    for (name, meaning) in text::definitions() {
        text.push_str(&format!("  {name}: {meaning}\n"));
    }
    text
}
