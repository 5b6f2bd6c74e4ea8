//! Renders a gap report, or one of several logs, again from its `report.json`: `report.html`, `report.md`,
//! and every picture as SVG and PNG.
//!
//!     cargo run --release --example render_gap_report -- report.json out/

use specgap::gap::{GapReport, LogComparison};
use specgap::report::page::{Block, Link};
use specgap::report::{compare, gap};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(report), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give report.json and a folder to write to".into());
    };
    let text = std::fs::read(report)?;
    // Of several logs side by side, or of one.
    let mut page = match serde_json::from_slice::<LogComparison>(&text) {
        Ok(comparison) => compare::page(&comparison),
        Err(_) => gap::page(&serde_json::from_slice::<GapReport>(&text)?),
    };
    // Each log's own report may be elsewhere.
    for section in &mut page.sections {
        section.blocks.retain(|block| match block {
            Block::Links(links) => {
                let beside = |link: &Link| folder.join(format!("{}.html", link.file)).exists();
                links.iter().all(beside)
            }
            _ => true,
        });
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("report.html"), page.html()?)?;
    std::fs::write(folder.join("report.md"), page.markdown())?;
    for figure in page.figures() {
        std::fs::write(folder.join(figure.svg_file()), figure.svg()?)?;
        std::fs::write(folder.join(format!("{}.png", figure.name)), figure.png()?)?;
    }
    print!("{}", page.text(110, false));
    Ok(())
}
