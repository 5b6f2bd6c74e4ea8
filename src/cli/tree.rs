//! `specgap tree`: which tree of drafts to verify, from logged text.

use super::gap::schemes;
use super::options::{Costs, Drafting};
use super::output::{CliError, read_document};
use super::parts::Parted;
use super::recorded::file_name;
use super::texts::{BEST_TREE, Texts};
use super::{Common, Verdict, printed};
use crate::once::each_once;
use crate::page::paper::Files;
use crate::replay::{Limits, NamedTree, TreeReport, TreeSettings};
use crate::report;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use crate::tree::{DraftTree, NAMES};
use crate::typed;
use crate::verifier::VerifierName;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::Path;
use std::str::FromStr;

/// Arguments of `specgap tree`.
#[derive(Args, Debug)]
#[command(after_long_help = printed::definitions(crate::replay::tree_definitions()))]
pub struct TreeArgs {
    #[arg(
        long = "trees",
        aliases = ["topology", "tree"],
        value_name = "FILE|NAME,...",
        value_delimiter = ',',
        help = trees_help()
    )]
    topology: Vec<String>,
    /// Draft laws to take, instead of the usual ones.
    ///
    /// Of a node's children; all but stratified-independent if not given, and hub only where verifiers are.
    #[arg(long = "laws", alias = "schemes", value_name = "NAME,...", value_delimiter = ',', value_parser = schemes())]
    schemes: Vec<SchemeName>,
    /// Verifiers to take, instead of the usual ones.
    ///
    /// Of a node's children, or of a tree from its leaves; all but token if not given, and k-seq,
    /// naive-tree and spechub only where laws are.
    #[arg(long, alias = "rules", value_name = "NAME,...", value_delimiter = ',', value_parser = rules())]
    verifiers: Vec<RuleName>,
    /// The most draft tokens of the best tree.
    #[arg(long, value_name = "B", default_value_t = TreeSettings::LIMITS.budget as u16, value_parser = clap::value_parser!(u16).range(1..=512))]
    budget: u16,
    /// Its most levels.
    #[arg(long, value_name = "D", default_value_t = TreeSettings::LIMITS.depth as u16, value_parser = clap::value_parser!(u16).range(1..=64))]
    max_depth: u16,
    /// The most children of its nodes.
    #[arg(long, value_name = "W", default_value_t = TreeSettings::LIMITS.branch as u16, value_parser = clap::value_parser!(u16).range(1..=16))]
    max_branch: u16,
    #[command(flatten)]
    costs: Costs,
    #[command(flatten)]
    drafting: Drafting,
    /// Also say what the children of the trees' roots are worth, and what each verifier and no
    /// verifier makes of that: accepting most is not worth most.
    #[arg(long)]
    slot_values: bool,
    /// Also fit one price for all nodes, and measure trees that follow the draft's rows by it.
    ///
    /// Of stratified drafts: on half of the prompts, with as many draft tokens in the mean as
    /// budget says, or what timings make of a token's place in the pass. Beside trees of one
    /// shape. An engine's drafter reads best-tree.price.json.
    #[arg(long)]
    price: bool,
    /// Where the best tree goes too, in EAGLE's and in Sequoia's form.
    #[command(flatten)]
    pub(super) texts: Texts,
    #[command(flatten)]
    pub(super) parted: Parted,
}

fn rules() -> impl TypedValueParser<Value = RuleName> {
    let all = TreeSettings::rules();
    let all = all.map(|rule| PossibleValue::new(rule.as_str()).help(rule.words()));
    PossibleValuesParser::new(all).try_map(|name| RuleName::from_str(&name))
}

fn trees_help() -> String {
    format!(
        "Trees to replay: files with a list of paths of child ranks, [[0],[1],[0,0]], or names: \
         {NAMES} [default: {}]",
        TreeSettings::TREES.join(",")
    )
}

/// A tree by its name, or from a file; `option` is what names it.
pub(super) fn named(option: &str, text: &str) -> Result<NamedTree, CliError> {
    let path = Path::new(text);
    let input = |message: String| CliError::input(path, message);
    match DraftTree::named(text) {
        Ok(tree) => Ok(NamedTree {
            name: text.to_owned(),
            tree,
        }),
        // A file, or what looks like one.
        Err(crate::tree::TopologyError::Name { .. })
            if path.exists() || path.extension().is_some() || path.components().count() > 1 =>
        {
            let contents = read_document(path)?;
            let tree = DraftTree::from_json(&contents).map_err(|error| input(error.to_string()))?;
            Ok(NamedTree {
                name: file_name(path),
                tree,
            })
        }
        Err(error) => Err(CliError::missing(format!("{option}: {error}"))),
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
            let tree = named("⟨trees⟩", name)?;
            if let Some(other) = trees.iter().find(|other| other.name == tree.name) {
                if *other == tree {
                    continue;
                }
                return Err(CliError::missing(format!(
                    "⟨trees⟩: two trees are called {}; rename one of the files",
                    tree.name
                )));
            }
            trees.push(tree);
        }
        fn or<T: Copy>(given: &[T], usual: impl Iterator<Item = T>) -> Vec<T> {
            if given.is_empty() {
                usual.collect()
            } else {
                given.to_vec()
            }
        }
        let at_nodes = VerifierName::ALL.into_iter();
        let mut others: Vec<RuleName> = at_nodes
            .filter(|one| !one.entry().by_default)
            .map(|one| one.entry().rule)
            .collect();
        let are_named = !self.schemes.is_empty() || !self.verifiers.is_empty();
        if !are_named {
            others.extend(TreeSettings::OLDER);
        }
        // Whose drafts only an older rule takes, but for a look whether a token is one.
        let is_usual = |law: &SchemeName| are_named || *law != SchemeName::HUB;
        Ok(TreeSettings {
            trees,
            schemes: each_once(or(
                &self.schemes,
                SchemeName::ALL
                    .into_iter()
                    .filter(|law| law.entry().on_row.is_some() && law.entry().by_default)
                    .filter(is_usual),
            )),
            verifiers: each_once(or(
                &self.verifiers,
                TreeSettings::rules().filter(|rule| !others.contains(rule)),
            )),
            limits: Limits {
                budget: self.budget.into(),
                depth: self.max_depth.into(),
                branch: self.max_branch.into(),
            },
            timings: self.costs.timings()?,
            temperature: self.texts.temperature,
            engine: self.drafting.engine,
            slot_values: self.slot_values,
            price: self.price,
            seed,
            parts: self.parted.rows(),
        })
    }

    /// The command that makes the report.
    fn command(&self, seed: u64) -> String {
        let mut command = self.texts.recorded("tree");
        let trees = self.topology.iter().map(|tree| file_name(Path::new(tree)));
        command
            .list("trees", trees)
            .list("laws", &self.schemes)
            .list("verifiers", &self.verifiers);
        let usual = TreeSettings::LIMITS;
        for (name, value, usual) in [
            ("budget", usize::from(self.budget), usual.budget),
            ("max-depth", usize::from(self.max_depth), usual.depth),
            ("max-branch", usize::from(self.max_branch), usual.branch),
        ] {
            command.option(name, (value != usual).then_some(value));
        }
        self.costs.record(&mut command);
        self.drafting.record(&mut command);
        self.texts.record(&mut command);
        command
            .option("seed", (seed != 0).then_some(seed))
            .flag("slot-values", self.slot_values)
            .flag("price", self.price);
        command.into_line()
    }
}

/// The tree that is advised and the price, as engines read them.
fn exports(report: &TreeReport) -> Result<Files, CliError> {
    let mut files = Vec::new();
    if let Some(paths) = report::tree::advised(report) {
        let [eagle, sequoia] = report::tree::as_engines_read(paths)?;
        files.extend([("eagle", eagle), ("sequoia", sequoia)]);
    }
    if let Some(priced) = &report.priced {
        files.push(("price", typed::line(&priced.price)?));
    }
    let named = files.into_iter();
    let named = named.map(|(name, line)| {
        (
            format!("{BEST_TREE}{name}.json"),
            (line + "\n").into_bytes(),
        )
    });
    Ok(named.collect())
}

pub(super) fn run(args: &TreeArgs, common: &Common) -> Result<Verdict, CliError> {
    let settings = args.settings(common.seed)?;
    let command = args.command(common.seed);
    // Where these are names, there are no such files.
    let read = args.topology.iter().map(Path::new).chain(args.costs.file());
    args.texts.report(
        (&read.collect::<Vec<_>>(), &args.parted),
        common,
        |path| args.texts.open(path, common),
        |logs, bar| {
            let progress = |done| bar.inc(done);
            let found = crate::replay::measure_trees(logs, &settings, &command, &progress);
            args.parted.ended(found, &settings.parts, &command, common)
        },
        report::tree::page,
        exports,
    )
}
