//! `specgap conformance`: test vectors for the kernels of inference engines.

use super::options::rule_parser;
use super::options::{Common, Format};
use super::output::{CliError, Verdict, check_folder, write_together};
use crate::conformance::{self, Settings, vectors};
use crate::page::counted;
use crate::rule::RuleName;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `specgap conformance`.
#[derive(Args, Debug)]
pub struct ConformanceArgs {
    /// Write manifest.json and the vectors, as .npz, into this folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Tokens of the vocabulary.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = Settings::VOCABULARIES)]
    vocab: Vec<usize>,
    /// Verifiers to take, instead of the usual ones.
    ///
    /// All if not given.
    #[arg(long = "verifiers", alias = "rules", value_name = "NAME,...", value_delimiter = ',', value_parser = rule_parser(|rule| rule.vectors.is_some()))]
    rules: Vec<RuleName>,
}

pub(super) fn run(args: &ConformanceArgs, common: &Common) -> Result<Verdict, CliError> {
    check_folder(&args.out)?;
    let settings = Settings {
        vocabularies: args.vocab.clone(),
        rules: if args.rules.is_empty() {
            conformance::rules()
        } else {
            args.rules.clone()
        },
        seed: common.seed,
    };
    let files = vectors(&settings)?;
    write_together(&args.out, &files)?;
    let bytes: usize = files.iter().map(|(_, contents)| contents.len()).sum();
    let vectors = files.len() - 1;
    match common.format {
        Format::Json => println!(
            "{}",
            json!({"schema": 1, "folder": args.out.display().to_string(), "files": vectors, "bytes": bytes})
        ),
        Format::Text => {
            let folder = args.out.display();
            println!(
                "{} of vectors, {:.1} MB: {folder}",
                counted(vectors, "file"),
                bytes as f64 / 1e6
            );
            println!("next: python scripts/conformance/harness.py {folder} --kernel MODULE");
        }
    }
    Ok(Verdict::Agrees)
}
