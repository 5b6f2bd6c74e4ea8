//! `specgap demo`: the main job on the log that specgap ships.

use super::gap::{MeasureArgs, definitions, measure};
use super::options::Common;
use super::output::{CliError, Verdict, check_folder, page_files, write_together};
use super::printed::print_report;
use crate::gap::GapError;
use crate::log::Log;
use crate::report::gap::page;
use clap::Args;
use std::path::{Path, PathBuf};

/// The shipped log, compiled in: a demo needs no network, model or checkout. Its rows list all that its
/// sampler keeps.
const INDEX: &str = include_str!("../../models/logs/smollm2-chat/log.json");
const SHARDS: [&[u8]; 2] = [
    include_bytes!("../../models/logs/smollm2-chat/shard-00000.safetensors"),
    include_bytes!("../../models/logs/smollm2-chat/shard-00001.safetensors"),
];
const NAME: &str = "smollm2-chat";
/// Where a checkout has it.
const SHIPPED: &str = "models/logs/smollm2-chat";

/// Arguments of `specgap demo`.
#[derive(Args, Debug)]
#[command(after_long_help = definitions())]
pub struct DemoArgs {
    #[command(flatten)]
    measure: MeasureArgs,
    /// Write report.html, report.md, report.json and the plots here.
    #[arg(long, value_name = "DIR", default_value = "out/demo")]
    out: PathBuf,
}

pub(super) fn run(args: &DemoArgs, common: &Common) -> Result<Verdict, CliError> {
    check_folder(&args.out)?;
    let log = Log::embedded(NAME.as_ref(), INDEX, &SHARDS).map_err(GapError::from)?;
    let report = measure(log, &args.measure, "specgap demo", common)?;
    let mut page = page(&report);
    page.next = next();
    write_together(&args.out, &page_files(&page, &report)?)?;
    print_report(&report, &page, Some(&args.out), common)?;
    Ok(Verdict::Agrees)
}

/// The next command, as it is typed where this one was.
fn next() -> String {
    // Cargo says so to what it runs.
    let program = match std::env::var_os("CARGO_PKG_NAME") {
        Some(_) => "cargo run --release --",
        None => "specgap",
    };
    if Path::new(SHIPPED).join("log.json").exists() {
        return format!(
            "{program} length {SHIPPED} --cost-ratio 0.05 says how many tokens to draft, and tree which tree"
        );
    }
    format!("save the rows of your own pair (docs/guide/tutorial.md), and {program} gap log.npz")
}
