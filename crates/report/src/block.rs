//! Reports of `specgap block`.

use super::columns::row;
use super::exact_or_decimal;
use super::fractions::in_full;
use super::problems::{self, BEST, decimal, digits, entry};
use super::sections::section;
use specgap_base::once::grouped;
use specgap_exact::block::lemma_5_1_status;
use specgap_exact::evaluate::{
    BlockEvaluation, BlockVerification, Evaluated, OptimumMethod, Outcome, Reported,
};
use specgap_number::distribution::format_rational;
use specgap_number::known::Known;
use specgap_page::table::{Column, Entry, Row};
use specgap_page::words::counted;
use specgap_page::{Block, Page, Section};

/// The page of a problem.
pub fn page(found: &BlockEvaluation) -> Page {
    let (drafts, horizon) = (found.drafts, counted(found.horizon, "token"));
    let blocks = match drafts {
        1 => "draft block",
        _ => "independent draft blocks",
    };
    let short = match found.horizon == found.length {
        true => " (the file does not give the target after every whole block)",
        false => "",
    };
    let mut lines = vec![format!(
        "V = {}, L = {}, K = {drafts} {blocks}; output compared over {horizon}{short}",
        found.vocab, found.length
    )];
    if found.meets_file() == Some(true) {
        lines.push("expected values of the file: ok".to_owned());
    }
    let complaints = found.complaints().into_iter();
    let wrong = complaints.map(|one| format!("DISAGREES: {one}")).collect();
    let optimum = found
        .block_optimum()
        .map_or_else(|| "skipped".to_owned(), in_full);
    let answer = format!("optimum: E[tau] = {optimum}");
    let sections = [bounds(found), verifiers(found)];
    problems::page(&found.problem, answer, wrong, lines, sections)
}

/// Remarks in full sentences, each with all that it is of.
fn remarks(all: impl IntoIterator<Item = (String, String)>) -> impl Iterator<Item = Block> {
    let all = grouped(all).into_iter();
    all.map(|(remark, names)| Block::Paragraph(format!("{}: {remark}", names.join(", "))))
}

/// Says why there is no answer.
fn unrun<A: Reported>(outcome: &Outcome<A>) -> Option<String> {
    Some(format!("{}: {}", outcome.status(), outcome.reason()?))
}

/// A problem in a line of a table of problems.
pub fn line(found: &BlockEvaluation) -> Vec<(Column, String)> {
    let laws = || (found.verifiers.iter()).filter_map(|row| Some((row.name, row.outcome.done()?)));
    let lossless = laws().filter(|(_, law)| law.lossless);
    let best = problems::best(lossless, |(_, law)| law.expected_accepted_length.value());
    let none = || "-".to_owned();
    let columns = [
        ("V", found.vocab.to_string()),
        ("L", found.length.to_string()),
        ("K", found.drafts.to_string()),
        ("optimum", found.block_optimum().map_or_else(none, decimal)),
        (BEST, best.map_or_else(none, |(name, _)| name.to_string())),
        (
            "E[tau]",
            best.map_or_else(none, |(_, law)| decimal(&law.expected_accepted_length)),
        ),
    ];
    let solved = found.methods.iter();
    let solved = solved
        .filter(|method| method.outcome.done().is_some())
        .count();
    let expected = found.expected.as_ref().map_or(0, Vec::len);
    let checks = laws().count() + solved + expected;
    problems::line(&found.problem, columns, (checks, found.is_ok()))
}

fn bounds(found: &BlockEvaluation) -> Section {
    let written = |value: &Known| {
        let decimal = || format!("{:.12}", value.value());
        let exact = |exact| exact_or_decimal(exact, value.value());
        entry(value.rational().map_or_else(decimal, exact), value.value())
    };
    let methods = || found.methods.iter();
    let solved = methods().filter(|method| method.outcome.done().is_some());
    let solvers: Vec<String> = solved.map(OptimumMethod::name).collect();
    let largest = match solvers.is_empty() {
        true => "the largest of any coupling; too large here".to_owned(),
        false => format!("the largest of any coupling; by {}", solvers.join(", ")),
    };
    let optimum = found.block_optimum().map(written);
    let mut rows = vec![
        row![
            "per-depth bound",
            written(&found.per_depth_bound),
            "upper bound on the optimum"
        ],
        row!["optimum", optimum.unwrap_or("skipped".into()), largest],
        row![
            "Lemma 5.1",
            written(&found.lemma_5_1),
            lemma_5_1_status(found.drafts)
        ],
    ];
    if found.drafts > 1 {
        rows.push(row![
            "single-draft optimum",
            written(&found.single_draft_optimum),
            "what one of the drafts allows; greedy-block attains it"
        ]);
    }
    let table = problems::rows("bounds", "E[tau] | value | what it is", rows);
    let unsolved = methods().filter_map(|method| {
        let why = method.limit().or_else(|| unrun(&method.outcome))?;
        Some((why, method.name()))
    });
    section(
        "bounds | Bounds | What no verifier can pass, by every method.",
        [table],
    )
    .with(remarks(unsolved))
}

fn verifiers(found: &BlockEvaluation) -> Section {
    let all = || found.verifiers.iter();
    let names = "verifier | #E[tau] | #tokens/call | #of optimum | #TV | #undefined | lossless";
    let table = problems::rows("verifiers", names, all().map(|one| row(one, found)));
    let unrun = all().filter_map(|one| Some((unrun(&one.outcome)?, one.name.to_string())));
    let ran = all().filter(|one| one.outcome.done().is_some());
    let notes = ran.filter_map(|one| Some((one.note?.to_owned(), one.name.to_string())));
    section(
        "verifiers | Verifiers | What each accepts of a block, and whether its output is the target's.",
        [table],
    )
    .with(remarks(unrun.chain(notes)))
}

fn row(one: &BlockVerification, found: &BlockEvaluation) -> Row {
    let Some(law) = one.outcome.done() else {
        return Row::texts([one.name.as_str(), one.outcome.status()]);
    };
    let best = found.block_optimum().filter(|best| best.value() > 0.0);
    let share = best.map_or_else(String::new, |best| {
        let share = 100.0 * law.expected_accepted_length.value() / best.value();
        format!("{share:.2} %")
    });
    let lossless = match (law.lossless, one.name.is_proved_lossless(found.drafts)) {
        (true, true) => "yes",
        (true, false) => "here, not in general",
        (false, false) => "NO, as known",
        (false, true) => "NO, but it is proved to be",
    };
    let efficiency = law.block_efficiency();
    row![
        one.name.as_str(),
        digits(&law.expected_accepted_length, 12),
        entry(format!("{efficiency:.6}"), efficiency),
        share,
        distance(&law.total_variation),
        distance(&law.undefined_mass),
        lossless,
    ]
}

/// 0, or a short number; a short fraction where it is exact.
fn distance(value: &Known) -> Entry {
    let text = match &value.rational() {
        Some(exact) if format_rational(exact).len() <= 9 => format_rational(exact),
        _ if value.value() == 0.0 => "0".to_owned(),
        _ => format!("{:.2e}", value.value()),
    };
    entry(text, value.value())
}
