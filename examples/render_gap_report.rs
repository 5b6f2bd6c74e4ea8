//! Renders a report of gap (of one log or of several), length, tree or paths again from its `report.json`:
//! `report.html`, `report.md`, and every picture as SVG; of length `report.json` too, with the
//! fields that are new.
//!
//!     cargo run --release --example render_gap_report -- report.json out/

use specgap::gap::{GapReport, LogComparison};
use specgap::page::{Block, Link};
use specgap::replay::{LengthReport, PathsReport, TreeReport};
use specgap::report::{compare, gap, length, paths, tree};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(report), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("give report.json and a folder to write to".into());
    };
    let text = std::fs::read(report)?;
    // What it is shows in the fields that it has.
    let mut page = if let Ok(comparison) = serde_json::from_slice::<LogComparison>(&text) {
        compare::page(&comparison)
    } else if let Ok(report) = serde_json::from_slice::<TreeReport>(&text) {
        tree::page(&report)
    } else if let Ok(report) = serde_json::from_slice::<LengthReport>(&text) {
        std::fs::create_dir_all(&folder)?;
        let json = serde_json::to_string(&report)? + "\n";
        std::fs::write(folder.join("report.json"), json)?;
        length::page(&report)
    } else if let Ok(report) = serde_json::from_slice::<PathsReport>(&text) {
        paths::page(&report)
    } else {
        gap::page(&serde_json::from_slice::<GapReport>(&text)?)
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
    }
    print!("{}", page.text(110, false));
    Ok(())
}
