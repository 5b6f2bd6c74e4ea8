//! `specgap conformance`: test vectors for the kernels of inference engines.

mod trees;

#[cfg(test)]
pub(crate) use trees::TreeVectors;

use super::options::rule_parser;
use super::options::{Common, Format};
use super::output::{CliError, Verdict, check_folder, write_together};
use crate::conformance::{self, Settings, vectors};
use crate::page::counted;
use crate::rule::RuleName;
use clap::Args;
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;

/// Arguments of `specgap conformance`.
#[derive(Args, Debug)]
pub struct ConformanceArgs {
    /// Write manifest.json and the vectors, as .npz, into this folder; of whole trees, trees.json.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Tokens of the vocabulary.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = Settings::VOCABULARIES)]
    vocab: Vec<usize>,
    /// Verifiers to take, instead of the usual ones.
    ///
    /// All if not given.
    #[arg(long = "verifiers", alias = "rules", value_name = "NAME,...", value_delimiter = ',', value_parser = rule_parser(|rule| rule.vectors.is_some() || rule.from_leaves.is_some()))]
    rules: Vec<RuleName>,
}

pub(super) fn run(args: &ConformanceArgs, common: &Common) -> Result<Verdict, CliError> {
    check_folder(&args.out)?;
    let every = || {
        conformance::rules()
            .into_iter()
            .chain(trees::rules())
            .collect()
    };
    let asked: Vec<RuleName> = match args.rules.is_empty() {
        true => every(),
        false => args.rules.clone(),
    };
    let (of_trees, rules): (Vec<_>, Vec<_>) =
        (asked.into_iter()).partition(|rule| rule.entry().from_leaves.is_some());
    let mut files = Vec::new();
    if !rules.is_empty() {
        let vocabularies = args.vocab.clone();
        let seed = common.seed;
        let settings = Settings {
            vocabularies,
            rules,
            seed,
        };
        files = vectors(&settings)?;
    }
    if !of_trees.is_empty() {
        let text = serde_json::to_string(&trees::vectors(&of_trees, common.seed)?);
        let text = text.map_err(|error| CliError::internal(error.to_string()))?;
        files.push(("trees.json".to_owned(), text.into_bytes()));
    }
    write_together(&args.out, &files)?;
    let bytes: usize = files.iter().map(|(_, contents)| contents.len()).sum();
    let is_vectors = |(name, _): &&(String, Vec<u8>)| name != "manifest.json";
    let vectors = files.iter().filter(is_vectors).count();
    let mut out = super::colour::plain();
    match common.format {
        Format::Json => writeln!(
            out,
            "{}",
            json!({"schema": 1, "folder": args.out.display().to_string(), "files": vectors, "bytes": bytes})
        )?,
        Format::Text => {
            let folder = args.out.display();
            writeln!(
                out,
                "{} of vectors, {:.1} MB: {folder}",
                counted(vectors, "file"),
                bytes as f64 / 1e6
            )?;
            writeln!(
                out,
                "next: python scripts/conformance/harness.py {folder} --kernel MODULE"
            )?;
        }
    }
    Ok(Verdict::Agrees)
}
