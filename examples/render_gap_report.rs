//! Renders a gap report again from its `report.json`: `report.html`, `report.md`,
//! and every picture as SVG and PNG.
//!
//!     cargo run --release --example render_gap_report -- report.json out/

use specgap::gap::GapReport;
use specgap::report::gap::{html, markdown, pictures, text};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(report), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give report.json and a folder to write to".into());
    };
    let report: GapReport = serde_json::from_slice(&std::fs::read(report)?)?;
    let pictures = pictures(&report)?;
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("report.html"), html(&report, &pictures))?;
    std::fs::write(folder.join("report.md"), markdown(&report, &pictures))?;
    for picture in &pictures {
        std::fs::write(folder.join(picture.svg_file()), &picture.svg)?;
        std::fs::write(folder.join(format!("{}.png", picture.name)), &picture.png)?;
    }
    print!("{}", text(&report, 110, false));
    Ok(())
}
