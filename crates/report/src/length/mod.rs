//! The page of `specgap length`, from a [`LengthReport`].
//!
//! [`page`] alone decides what stands on it and in which order. What to set comes first,
//! then what it buys, then everything it follows from.
//!
//! # Example
//! ```no_run
//! use specgap_report::length::page;
//! use specgap_replay::replay::LengthReport;
//!
//! let report: LengthReport = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! std::fs::write("report.html", page(&report).html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod figures;
mod groups;
mod lead;
pub(super) mod numbers;
mod tables;

use super::replayed;
use super::sections::{first_shown, of_all, of_table, section, shown};
use specgap_page::words::{count, counted};
use specgap_page::{Block, Page, Section};
use specgap_replay::replay::LengthReport;

/// The report as a page.
pub fn page(report: &LengthReport) -> Page {
    let advises = !report.of.is_off(&report.surprise);
    let sections = [
        advises.then(|| what_to_set(report)).flatten(),
        advises.then(|| changes(report)).flatten(),
        fixed(report),
        groups::section(report),
        by_depth(report),
        round_starts(report),
        policies(report),
        Some(bounds(report)),
        draft_paths(report),
        Some(checks(report)),
        Some(replayed::definitions(&report.definitions)),
        Some(replayed::provenance(&report.of.logs, None)),
        replayed::left_out(&report.left_out),
        Some(replayed::made_by(&report.of, report.schema)),
    ];
    Page {
        title: lead::title(report),
        subtitle: lead::subtitle(report),
        lead: lead::lead(report),
        sections: first_shown(sections.into_iter().flatten().collect()),
        next: super::advice::after_lengths(report),
        papers: Vec::new(),
    }
    .picture_first()
}

fn what_to_set(report: &LengthReport) -> Option<Section> {
    let section = shown(
        "what-to-set | What to set, by cost | The best fixed length for each cost of a draft step, and \
         how far it is from what is possible.",
        [tables::by_cost(report)],
    );
    (!report.by_cost.is_empty()).then(|| section.with(figures::speed(report)))
}

fn changes(report: &LengthReport) -> Option<Section> {
    of_table(
        "changes | What one setting changes, by cost | What the speed-up gains by another rule or \
         other drafts.",
        tables::changes(report),
    )
}

fn fixed(report: &LengthReport) -> Option<Section> {
    let how = Block::paragraph(
        "Tokens per call is what a decoder gets: rounds are replayed from each text's first token. \
         E[τ], where a rule's rounds cannot be replayed, is that of one round from every position, \
         of K drafts or as many as tokens are left.",
    );
    let section = section(
        "fixed | Fixed lengths | A round of K drafts: what it accepts, what it costs and what it throws \
         away.",
        [how],
    );
    let tables = tables::fixed(report);
    (!tables.is_empty()).then(|| section.with(tables).with(figures::lengths(report)))
}

fn by_depth(report: &LengthReport) -> Option<Section> {
    let words = "by-depth | Depth by depth | What becomes of a round's first, second, ... token.";
    Some(shown(words, [tables::by_depth(report)?]))
}

/// Shows what profiles hold, where they were asked for.
fn round_starts(report: &LengthReport) -> Option<Section> {
    let section = of_all(
        "round-starts | How far rounds get | S_i, the share of rounds that accept at least i drafts, \
         over the places where rounds start; a round puts out 1 + S_1 + ... + S_K tokens. What \
         --profile writes for other tools.",
        tables::round_starts(report),
    );
    section.map(Section::main)
}

fn policies(report: &LengthReport) -> Option<Section> {
    let tables = tables::policies(report);
    if tables.is_empty() {
        return None;
    }
    let set = format!(
        "Policies that set a length as they go, with at most {} tokens a round. Target calls \
         follow from the text.",
        count(report.max_length)
    );
    let how = match &report.rollouts {
        Some(rollouts) => format!(
            "{set} Drafts behind a rejected token are from {} of the draft, of {} each: unbiased, \
             and what their chance adds is in the intervals.",
            counted(rollouts.rollouts, "rollout"),
            counted(rollouts.tokens, "token")
        ),
        None => format!(
            "{set} Drafts behind a rejected token are not in this log, so that discards are at \
             least, and speed-ups at most, what stands here; a policy whose speed-up is below a \
             fixed length's even so is not worth a second look."
        ),
    };
    let section = section(
        "policies | Policies that stop by themselves | Confidence, entropy and other rules, and heads \
         that predict acceptance.",
        [Block::Paragraph(how)],
    );
    let section = section.with(tables::chosen(report));
    Some(section.with(figures::fronts(report)).with(tables))
}

fn bounds(report: &LengthReport) -> Section {
    let section = section(
        "bounds | Bounds | What no lossless rule of one path can pass over several rounds, and what no \
         choice of lengths can.",
        tables::fewest(report),
    );
    section
        .with([tables::bounds(report)])
        .with(figures::rates(report))
}

/// Shows what the logs' draft paths could give.
fn draft_paths(report: &LengthReport) -> Option<Section> {
    let paths = report.draft_paths.as_ref()?;
    let logs = report.of.logs.iter().map(|log| log.name.as_str());
    Some(super::draft_paths::section(paths, logs))
}

fn checks(report: &LengthReport) -> Section {
    let has_entropy = !report.entropy_bounds.is_empty();
    section(
        "checks | Checks | Whether the text is what the identities need, and whether a bound that rules \
         rest on holds.",
        [Block::Paragraph(replayed::drawn(&report.surprise))],
    )
    .with(has_entropy.then(|| tables::entropy(report)))
}
