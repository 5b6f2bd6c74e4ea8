//! `specgap tree`: which tree of drafts to verify, from logged text.

use super::gap::{refuse_repetition, schemes, verifiers};
use super::options::{Cost, Folder, cost_ratio, read_timings};
use super::output::{CliError, check_folder, write_together};
use super::printed::print_report;
use super::{Common, Verdict};
use crate::log::Log;
use crate::report;
use crate::scheme::SchemeName;
use crate::text::{self, Limits, NamedTree, TextError, TreeReport, TreeSettings};
use crate::tree::{DraftTree, NAMES};
use crate::verifier::VerifierName;
use clap::Args;
use std::path::{Path, PathBuf};

/// Arguments of `specgap tree`.
#[derive(Args, Debug)]
#[command(after_long_help = definitions())]
pub struct TreeArgs {
    /// Logs with sampled text: .safetensors or .npz files, or directories with a log.json.
    /// Texts of several are counted together.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    #[arg(
        long,
        value_name = "FILE|NAME,...",
        value_delimiter = ',',
        help = trees_help()
    )]
    topology: Vec<String>,
    /// Laws of a node's children; all if not given.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = schemes())]
    schemes: Vec<SchemeName>,
    /// Verifiers of a node's children; all but single if not given.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = verifiers())]
    verifiers: Vec<VerifierName>,
    /// The most draft tokens of the best tree.
    #[arg(long, value_name = "B", default_value_t = TreeSettings::LIMITS.budget as u16, value_parser = clap::value_parser!(u16).range(1..=512))]
    budget: u16,
    /// Its most levels.
    #[arg(long, value_name = "D", default_value_t = TreeSettings::LIMITS.depth as u16, value_parser = clap::value_parser!(u16).range(1..=64))]
    max_depth: u16,
    /// The most children of its nodes.
    #[arg(long, value_name = "W", default_value_t = TreeSettings::LIMITS.branch as u16, value_parser = clap::value_parser!(u16).range(1..=16))]
    max_branch: u16,
    /// Time of a draft step over that of a target step; a verifying pass then costs a target
    /// step, however large the tree is.
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = cost_ratio)]
    cost_ratio: Option<Cost>,
    /// Measured times, as TOML or JSON (docs/formats.md).
    #[arg(long, value_name = "FILE", conflicts_with = "cost_ratio")]
    timings: Option<PathBuf>,
    /// Also say what the children of the trees' roots are worth, and what each verifier and no
    /// verifier makes of that: accepting most is not worth most.
    #[arg(long)]
    slot_values: bool,
    /// The temperature at which the text was drawn, where the log does not say.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Keep the first N tokens of every row, where models differ by padding.
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,
    /// Where the best tree goes too, in EAGLE's and in Sequoia's form.
    #[command(flatten)]
    folder: Folder,
}

fn trees_help() -> String {
    format!(
        "Trees to replay: files with a list of paths of child ranks, [[0],[1],[0,0]], or names: \
         {NAMES} [default: {}]",
        TreeSettings::TREES.join(",")
    )
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(
        || path.display().to_string(),
        |name| name.to_string_lossy().into(),
    )
}

/// A tree by its name, or from a file; `option` is what names it.
pub(super) fn named(option: &str, text: &str) -> Result<NamedTree, CliError> {
    let path = Path::new(text);
    let input = |message: String| CliError::Input {
        path: path.to_owned(),
        message,
    };
    match DraftTree::named(text) {
        Ok(tree) => Ok(NamedTree {
            name: text.to_owned(),
            tree,
        }),
        // A file, or what looks like one.
        Err(crate::tree::TopologyError::Name { .. })
            if path.exists() || path.extension().is_some() || path.components().count() > 1 =>
        {
            let contents = std::fs::read_to_string(path).map_err(|source| CliError::File {
                path: path.to_owned(),
                action: "cannot be read",
                source,
            })?;
            let tree = DraftTree::from_json(&contents).map_err(|error| input(error.to_string()))?;
            Ok(NamedTree {
                name: file_name(path),
                tree,
            })
        }
        Err(error) => Err(CliError::Missing {
            message: format!("{option}: {error}"),
        }),
    }
}

impl TreeArgs {
    fn settings(&self, seed: u64) -> Result<TreeSettings, CliError> {
        let names: Vec<&str> = if self.topology.is_empty() {
            TreeSettings::TREES.to_vec()
        } else {
            self.topology.iter().map(String::as_str).collect()
        };
        let mut trees: Vec<NamedTree> = Vec::new();
        for name in names {
            let tree = named("--topology", name)?;
            if let Some(other) = trees.iter().find(|other| other.name == tree.name) {
                if *other == tree {
                    continue;
                }
                return Err(CliError::Missing {
                    message: format!(
                        "--topology: two trees are called {}; rename one of the files",
                        tree.name
                    ),
                });
            }
            trees.push(tree);
        }
        let timings = match (&self.cost_ratio, &self.timings) {
            (Some(cost), _) => Some(cost.timings.clone()),
            (None, Some(path)) => Some(read_timings(path)?),
            (None, None) => None,
        };
        fn or<T: Copy>(given: &[T], usual: impl Iterator<Item = T>) -> Vec<T> {
            if given.is_empty() {
                usual.collect()
            } else {
                given.to_vec()
            }
        }
        let usual = VerifierName::ALL.into_iter();
        Ok(TreeSettings {
            trees,
            schemes: each_once(or(
                &self.schemes,
                SchemeName::ALL
                    .into_iter()
                    .filter(|law| law.entry().on_row.is_some()),
            )),
            verifiers: each_once(or(
                &self.verifiers,
                usual.filter(|rule| rule.entry().by_default),
            )),
            limits: Limits {
                budget: self.budget.into(),
                depth: self.max_depth.into(),
                branch: self.max_branch.into(),
            },
            timings,
            temperature: self.temperature,
            slot_values: self.slot_values,
            seed,
        })
    }

    /// The command that makes the report, without paths of the machine.
    fn command(&self, seed: u64) -> String {
        fn list<T: ToString>(items: &[T]) -> String {
            let words: Vec<String> = items.iter().map(ToString::to_string).collect();
            words.join(",")
        }
        let logs: Vec<String> = self.logs.iter().map(|path| file_name(path)).collect();
        let mut command = format!("specgap tree {}", logs.join(" "));
        let mut option = |name: &str, value: String| {
            if !value.is_empty() {
                command.push_str(&format!(" --{name} {value}"));
            }
        };
        let trees = self.topology.iter();
        let trees: Vec<String> = trees.map(|tree| file_name(Path::new(tree))).collect();
        option("topology", trees.join(","));
        option("schemes", list(&self.schemes));
        option("verifiers", list(&self.verifiers));
        let usual = TreeSettings::LIMITS;
        for (name, value, usual) in [
            ("budget", usize::from(self.budget), usual.budget),
            ("max-depth", usize::from(self.max_depth), usual.depth),
            ("max-branch", usize::from(self.max_branch), usual.branch),
        ] {
            if value != usual {
                option(name, value.to_string());
            }
        }
        let cost = self.cost_ratio.as_ref().map(|cost| cost.text.clone());
        option("cost-ratio", cost.unwrap_or_default());
        let timings = self.timings.as_deref();
        option("timings", timings.map(file_name).unwrap_or_default());
        option(
            "temperature",
            self.temperature
                .map_or_else(String::new, |t| format!("{t:?}")),
        );
        option(
            "vocab",
            self.vocab.map_or_else(String::new, |n| n.to_string()),
        );
        if seed != 0 {
            option("seed", seed.to_string());
        }
        if self.slot_values {
            command.push_str(" --slot-values");
        }
        command
    }
}

fn each_once<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}

/// The best tree as engines read it.
fn exports(report: &TreeReport) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let Some(best) = report.best.first() else {
        return Ok(Vec::new());
    };
    let line = |mut bytes: Vec<u8>| {
        bytes.push(b'\n');
        bytes
    };
    Ok(vec![
        (
            "best-tree.eagle.json".to_owned(),
            line(serde_json::to_vec(&best.paths)?),
        ),
        (
            "best-tree.sequoia.json".to_owned(),
            line(serde_json::to_vec(&best.growmap)?),
        ),
    ])
}

pub(super) fn run(args: &TreeArgs, common: &Common) -> Result<Verdict, CliError> {
    // Everything that can be refused is, before the long part.
    refuse_repetition(&args.logs)?;
    let settings = args.settings(common.seed)?;
    if let Some(folder) = &args.folder.out {
        check_folder(folder)?;
    }
    let logs = args
        .logs
        .iter()
        .map(|path| common.open(path, args.vocab))
        .collect::<Result<Vec<_>, _>>()
        .map_err(TextError::from)?;
    let total = logs.iter().map(Log::positions).sum();
    let bar = common.progress(total);
    let command = args.command(common.seed);
    let report = text::measure_trees(&logs, &settings, &command, &|done| {
        bar.inc(done);
    })?;
    bar.finish_and_clear();
    let page = report::tree::page(&report);
    if let Some(folder) = &args.folder.out {
        // The page comes last, so that it has everything beside it.
        let mut files = exports(&report)?;
        files.extend(args.folder.files(&page, &report)?);
        write_together(folder, &files)?;
    }
    if let Some(host) = &common.host {
        host.take(&report, &page, exports(&report)?)?;
        return Ok(Verdict::Agrees);
    }
    print_report(&report, &page, args.folder.out.as_deref(), common)?;
    Ok(Verdict::Agrees)
}

/// What the report's words mean, for `--help`.
fn definitions() -> String {
    let mut text = "Definitions:\n".to_owned();
    for (name, meaning) in text::tree_definitions() {
        text.push_str(&format!("  {name}: {meaning}\n"));
    }
    text
}
