//! `specgap schema`: JSON Schemas of what the program reads and writes.

use super::options::{Common, Format};
use super::output::{CliError, Verdict, width};
use crate::report;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::io::Write;

#[cfg(test)]
pub(crate) use super::{certify::Certified, explain::Explained};

/// Arguments of `specgap schema`.
#[derive(Args, Debug)]
pub(super) struct SchemaArgs {
    /// A command whose JSON is described, or a file that commands read; a list of all if none
    /// is given.
    #[arg(value_parser = names(), value_name = "NAME")]
    name: Option<String>,
}

/// A name, what it is about, and the file in docs/schema.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! described {
    ($($name:literal: $about:literal,)*) => {
        /// Everything that is described; a test writes the files from the types.
        pub(crate) const SCHEMAS: &[Described] = &[$(Described {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../docs/schema/", $name, ".json")),
        }),*];
    };
}

described! {
    "problem": "a problem file, for solve, verify, block and check",
    "log": "log.json, the index of a log in shards",
    "timings": "a file for --timings",
    "tree-topology": "a tree file for --trees",
    "certificate": "what solve --out writes and certify reads",
    "baseline": "what check --write-baseline writes and --baseline reads",
    "solve": "a line of solve --format json",
    "verify": "a line of verify --format json",
    "block": "a line of block --format json",
    "certify": "certify --format json",
    "check": "check --format json",
    "gap": "report.json of gap, merge and demo",
    "comparison": "report.json of gap with several logs",
    "length": "report.json of length",
    "tree": "report.json of tree",
    "paths": "report.json of paths",
    "relaxed": "report.json of relaxed",
    "audit": "report.json of audit",
    "counters": "report.json of counters",
    "import": "import --format json",
    "conformance": "manifest.json of conformance",
    "conformance-trees": "trees.json of conformance",
    "explain": "a line of explain --format json",
}

fn names() -> PossibleValuesParser {
    let values = SCHEMAS.iter();
    PossibleValuesParser::new(values.map(|one| PossibleValue::new(one.name).help(one.about)))
}

pub(super) fn run(args: &SchemaArgs, common: &Common) -> Result<Verdict, CliError> {
    let mut out = super::colour::plain();
    let asked = |one: &&Described| Some(one.name) == args.name.as_deref();
    match SCHEMAS.iter().find(asked) {
        Some(one) => out.write_all(one.text.as_bytes())?,
        None => {
            for one in SCHEMAS {
                match common.format {
                    Format::Json => {
                        let line = serde_json::json!({
                            "schema": report::JSON_SCHEMA,
                            "name": one.name,
                            "about": one.about,
                        });
                        writeln!(out, "{line}")?;
                    }
                    Format::Text => {
                        write!(
                            out,
                            "{}",
                            crate::page::definition(one.name, one.about, width())
                        )?;
                    }
                }
            }
        }
    }
    out.flush()?;
    Ok(Verdict::Agrees)
}
