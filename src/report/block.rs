//! Reports of `specgap block`.

use super::columns::head;
use super::exact_or_decimal;
use super::problems::{self, BEST, decimal};
use super::sections;
use crate::block::lemma_5_1_status;
use crate::distribution::format_rational;
use crate::evaluate::{BlockEvaluation, BlockLaw, Evaluated, OptimumMethod};
use crate::known::Known;
use crate::once::grouped;
use crate::page::table::{Column, Row, Table};
use crate::page::terminal::{self, Role, Text};
use crate::page::words::counted;
use std::fmt::Write as _;

/// What the words of the report mean.
pub fn definitions() -> String {
    sections::legend("block", 12)
}

/// A report for people; `width` wraps the tables and the prose.
pub fn text(evaluation: &BlockEvaluation, width: u16) -> Text {
    let mut out = Text::default();
    out.lines(Role::Heading, &evaluation.problem);
    let drafts = evaluation.drafts;
    let _ = writeln!(
        out,
        "  V = {}, L = {}, K = {drafts} {}; output compared over {}{}",
        evaluation.vocab,
        evaluation.length,
        if drafts == 1 {
            "draft block"
        } else {
            "independent draft blocks"
        },
        counted(evaluation.horizon, "token"),
        if evaluation.horizon == evaluation.length {
            " (the file does not give the target after every whole block)"
        } else {
            ""
        }
    );
    bounds(&mut out, evaluation, width);
    verifiers(&mut out, evaluation, width);
    let methods = evaluation.methods.iter().filter_map(|method| {
        let unrun = |reason: &str| format!("{}: {reason}", method.outcome.status());
        let remark = method
            .limit()
            .or_else(|| method.outcome.reason().map(unrun))?;
        Some((remark, method.name()))
    });
    let unrun = evaluation.verifiers.iter().filter_map(|row| {
        let reason = row.outcome.reason()?;
        Some((
            format!("{}: {reason}", row.outcome.status()),
            row.name.to_string(),
        ))
    });
    let notes = evaluation.verifiers.iter().filter_map(|row| {
        let note = row.note.filter(|_| row.outcome.done().is_some())?;
        Some((note.to_owned(), row.name.to_string()))
    });
    for (remark, names) in grouped(methods.chain(unrun).chain(notes)) {
        out.wrap(&format!("{}: {remark}", names.join(", ")), width);
    }
    for disagreement in evaluation.complaints() {
        out.wrap_after(Role::Bad, "DISAGREES", &format!(": {disagreement}"), width);
    }
    if evaluation.meets_file() == Some(true) {
        let _ = writeln!(out, "  expected values of the file: ok");
    }
    out
}

/// A problem in a line of a table of problems.
pub fn line(evaluation: &BlockEvaluation) -> Vec<(Column, String)> {
    let laws =
        || (evaluation.verifiers.iter()).filter_map(|row| Some((row.name, row.outcome.done()?)));
    let length = |law: &BlockLaw| law.expected_accepted_length.value();
    let lossless = laws().filter(|(_, law)| law.lossless);
    let best = lossless.reduce(|best, one| {
        if length(one.1) > length(best.1) {
            one
        } else {
            best
        }
    });
    let none = || "-".to_owned();
    let columns = [
        ("V", evaluation.vocab.to_string()),
        ("L", evaluation.length.to_string()),
        ("K", evaluation.drafts.to_string()),
        (
            "optimum",
            evaluation.block_optimum().map_or_else(none, decimal),
        ),
        (BEST, best.map_or_else(none, |(name, _)| name.to_string())),
        (
            "E[tau]",
            best.map_or_else(none, |(_, law)| decimal(&law.expected_accepted_length)),
        ),
    ];
    let solved = evaluation
        .methods
        .iter()
        .filter(|method| method.outcome.done().is_some());
    let expected = evaluation.expected.as_ref().map_or(0, Vec::len);
    let checks = (
        laws().count() + solved.count() + expected,
        evaluation.is_ok(),
    );
    problems::line(&evaluation.problem, columns, checks)
}

fn bounds(out: &mut Text, evaluation: &BlockEvaluation, width: u16) {
    let drafts = evaluation.drafts;
    let many = drafts > 1;
    let columns = head("E[tau] | value | what it is");
    let mut rows = Vec::new();
    let written = |value: &Known| {
        value.rational().map_or_else(
            || format!("{:.12}", value.value()),
            |exact| exact_or_decimal(exact, value.value()),
        )
    };
    rows.push(Row::texts([
        "per-depth bound".to_owned(),
        written(&evaluation.per_depth_bound),
        "upper bound on the optimum".to_owned(),
    ]));
    let solvers: Vec<String> = evaluation
        .methods
        .iter()
        .filter(|method| method.outcome.done().is_some())
        .map(OptimumMethod::name)
        .collect();
    rows.push(Row::texts([
        "optimum".to_owned(),
        evaluation
            .block_optimum()
            .map_or_else(|| "skipped".to_owned(), written),
        if solvers.is_empty() {
            "the largest of any coupling; too large here".to_owned()
        } else {
            format!("the largest of any coupling; by {}", solvers.join(", "))
        },
    ]));
    rows.push(Row::texts([
        "Lemma 5.1".to_owned(),
        written(&evaluation.lemma_5_1),
        lemma_5_1_status(drafts).to_owned(),
    ]));
    if many {
        rows.push(Row::texts([
            "single-draft optimum".to_owned(),
            written(&evaluation.single_draft_optimum),
            "what one of the drafts allows; greedy-block attains it".to_owned(),
        ]));
    }
    let table = Table::new("bounds", "", columns).rows(rows);
    terminal::table(out, &table, width, "  ");
}

fn verifiers(out: &mut Text, evaluation: &BlockEvaluation, width: u16) {
    let columns = head(
        "verifier | #E[tau] | #tokens/call | #of optimum | #TV | #undefined | \
         lossless",
    );
    let mut rows = Vec::new();
    for row in &evaluation.verifiers {
        let Some(law) = row.outcome.done() else {
            rows.push(Row::texts([row.name.as_str(), row.outcome.status()]));
            continue;
        };
        let length = law.expected_accepted_length.value();
        let share = evaluation
            .block_optimum()
            .filter(|best| best.value() > 0.0)
            .map_or_else(String::new, |best| {
                format!("{:.2} %", 100.0 * length / best.value())
            });
        let proved = row.name.is_proved_lossless(evaluation.drafts);
        rows.push(Row::texts([
            row.name.as_str().to_owned(),
            format!("{length:.12}"),
            format!("{:.6}", law.block_efficiency()),
            share,
            distance(&law.total_variation),
            distance(&law.undefined_mass),
            match (law.lossless, proved) {
                (true, true) => "yes",
                (true, false) => "here, not in general",
                (false, false) => "NO, as known",
                (false, true) => "NO, but it is proved to be",
            }
            .to_owned(),
        ]));
    }
    let table = Table::new("verifiers", "", columns).rows(rows);
    terminal::table(out, &table, width, "  ");
}

/// 0, or a short number; a short fraction where it is exact.
fn distance(value: &Known) -> String {
    match &value.rational() {
        Some(exact) if format_rational(exact).len() <= 9 => format_rational(exact),
        _ if value.value() == 0.0 => "0".to_owned(),
        _ => format!("{:.2e}", value.value()),
    }
}
