//! `specgap demo`: the main job on the log that specgap ships.

use super::gap::{MeasureArgs, definitions, measure};
use super::options::Common;
use super::output::{CliError, Verdict, check_folder, page_files, write_together};
use super::printed::print_report;
use crate::gap::GapError;
use crate::log::Log;
use crate::report::gap::page;
use clap::Args;
use std::path::PathBuf;

/// The shipped log, compiled in: a demo needs no network, model or checkout.
const INDEX: &str = include_str!("../../models/logs/smollm2-demo/log.json");
const SHARDS: [&[u8]; 1] = [include_bytes!(
    "../../models/logs/smollm2-demo/shard-00000.safetensors"
)];

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
    let log = Log::embedded("smollm2-demo".as_ref(), INDEX, &SHARDS).map_err(GapError::from)?;
    let report = measure(log, &args.measure, "specgap demo", common)?;
    let page = page(&report);
    write_together(&args.out, &page_files(&page, &report)?)?;
    print_report(&report, &page, Some(&args.out), common)?;
    Ok(Verdict::Agrees)
}
