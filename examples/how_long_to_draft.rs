//! How many tokens to draft, from logged text and the cost of a draft step.
//!
//!     cargo run --release --example how_long_to_draft -- models/logs/smollm2-demo 0.05

use specgap::log::Log;
use specgap::replay::{LengthSettings, Timings, measure_lengths};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(log), Some(cost)) = (arguments.next(), arguments.next()) else {
        return Err("give a log, and the time of a draft step over that of a target step".into());
    };
    let logs = [Log::open(&PathBuf::from(log))?];
    let settings = LengthSettings {
        timings: Some(Timings::cost_ratio(cost.parse()?)?),
        ..LengthSettings::default()
    };
    let report = measure_lengths(&logs, &settings, "how_long_to_draft", &|_| ())?;
    for best in report.at_cost.iter().flat_map(|at| &at.chosen) {
        println!(
            "{} drafts, verified by {}: {} tokens a round, {:.3} times as fast as the target alone",
            best.drafts, best.verifier, best.parameter, best.speedup.mean
        );
    }
    Ok(())
}
