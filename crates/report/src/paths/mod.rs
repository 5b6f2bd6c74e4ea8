//! The page of `specgap paths`, from a [`PathsReport`].
//!
//! [`page`] alone decides what stands on it and in which order: what several paths could give
//! and what is got of it, then verifier by verifier, then what it rests on.
//!
//! # Example
//! ```no_run
//! use specgap_report::paths::page;
//! use specgap_replay::replay::PathsReport;
//!
//! let report: PathsReport = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! std::fs::write("report.html", page(&report).html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod figures;
mod lead;
mod tables;

use super::replayed;
use super::sections::{if_any, of_table, section, shown};
use specgap_page::words::counted;
use specgap_page::{Block, Page, Section};
use specgap_replay::replay::PathsReport;

/// The report as a page.
pub fn page(report: &PathsReport) -> Page {
    let sections = [
        Some(possible(report)),
        Some(verifiers(report)),
        of_table(
            "distances | How far from the bound | The upper bound less what a verifier accepts, \
             prompt by prompt: the most that it can still gain.",
            if_any(tables::distances(report)),
        ),
        of_table(
            "upper-bounds | Upper bounds by what they are made of | The same bound from several \
             draft paths a context, from one, and from the text.",
            if_any(tables::upper_bounds(report)),
        ),
        checks(report),
        Some(replayed::definitions(&report.definitions)),
        Some(replayed::provenance(
            &report.of.logs,
            Some(&report.surprise),
        )),
        replayed::left_out(&report.left_out),
        Some(replayed::made_by(&report.of, report.schema)),
    ];
    Page {
        title: lead::title(report),
        subtitle: replayed::subtitle(&report.of),
        lead: lead::lead(report),
        sections: sections.into_iter().flatten().collect(),
        next: super::advice::after_paths(report),
        papers: Vec::new(),
    }
    .picture_first()
}

fn possible(report: &PathsReport) -> Section {
    shown(
        "possible | What several paths could give | For every number of paths, in a round that starts \
         with the target's own law: what no verifier passes, and what the best one here gets.",
        [tables::possible(report)],
    )
    .with(figures::by_drafts(report))
}

fn verifiers(report: &PathsReport) -> Section {
    let how = Block::Paragraph(format!(
        "E[τ] of a round with K paths of {}: accepted tokens, the target's own not counted, \
         averaged over {}. The first three look at one of the paths only.",
        counted(report.length, "token"),
        counted(report.starts, "start")
    ));
    let further = Block::paragraph(
        "E[τ] is about one round, from any position. A decoder's rounds follow each other: tokens per \
         call, the target's own counted, are replayed along each text. Greedy blocks change the target \
         of the next round and are not replayed.",
    );
    shown(
        "verifiers | Verifiers | What each of them accepts, by the number of paths.",
        [how, tables::verifiers(report).into(), further],
    )
    .with([tables::calls(report)])
}

fn checks(report: &PathsReport) -> Option<Section> {
    let how = Block::paragraph(
        "Two ways to the same numbers: along the text, which the target wrote, and along draft \
         paths, which the draft wrote. They share no random draw but the prompts. A difference far \
         outside its interval says that the rows, the text or the paths are not what the log says \
         they are.",
    );
    let section = section(
        "checks | Told twice | Numbers that the text and the draft paths both tell.",
        [how],
    );
    (!report.checks.is_empty()).then(|| section.with([tables::checks(report)]))
}
