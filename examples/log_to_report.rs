//! From a log of rows to the report of `specgap gap`: numbers, a page, pictures.
//!
//!     cargo run --release --example log_to_report -- models/logs/smollm2-demo out/

use specgap::gap::{Settings, measure};
use specgap::log::Log;
use specgap::report::gap::page;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(log), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give a log and a folder to write to".into());
    };
    let logs = [Log::open(&log)?];
    let settings = Settings::new(&[1.0], &[2, 3], 0)?;
    let report = measure(&logs, &settings, "log_to_report", &|_| ())?;
    println!("{} positions", report.positions);

    let page = page(&report);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("report.html"), page.html()?)?;
    std::fs::write(folder.join("report.md"), page.markdown())?;
    std::fs::write(
        folder.join("report.json"),
        serde_json::to_string_pretty(&report)?,
    )?;
    for figure in page.figures() {
        std::fs::write(folder.join(figure.svg_file()), figure.svg()?)?;
    }
    Ok(())
}
