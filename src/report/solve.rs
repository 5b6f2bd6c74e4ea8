//! Reports of `specgap solve`.

use super::columns::head;
use super::fractions::in_full;
use super::problems::{self, decimal};
use super::sections;
use crate::distribution::format_rational;
use crate::evaluate::{Evaluated, MethodRun, Outcome, Solution};
use crate::known::Known;
use crate::once::grouped;
use crate::page::table::{Column, Row, Table};
use crate::page::terminal::{self, Role, Text};
use crate::page::words::{counted, seconds, small};
use std::fmt::Write as _;

/// What the words of the report mean.
pub fn definitions() -> String {
    sections::legend("solve", 12)
}

/// A report for people; `width` wraps the table and the prose.
pub fn text(solution: &Solution, width: u16) -> Text {
    let rate = &solution.optimal_acceptance_rate;
    let mut out = Text::default();
    out.lines(Role::Heading, &solution.problem);
    out.wrap(
        &format!("{}: {}", solution.scheme, solution.scheme.law()),
        width,
    );
    let _ = writeln!(out, "  V = {}, n = {}", solution.vocab, solution.drafts);
    out.lines(Role::Heading, &format!("  alpha* = {}", in_full(rate)));
    let columns = head("method | #alpha* | #difference | #time | status");
    let was_run = |run: &&MethodRun| !matches!(run.outcome, Outcome::Skipped(_));
    let rows = solution.methods.iter().filter(was_run);
    let rows = rows.map(|run| row(run, rate));
    let table = Table::new("methods", "", columns).rows(rows);
    terminal::table(&mut out, &table, width, "  ");
    let skipped = solution
        .methods
        .iter()
        .filter_map(|run| match &run.outcome {
            Outcome::Skipped(reason) => Some((reason, run.name())),
            _ => None,
        });
    for (reason, names) in grouped(skipped) {
        out.wrap(&format!("skipped {}: {reason}", names.join(", ")), width);
    }
    for run in &solution.methods {
        let name = run.name();
        let line = match &run.outcome {
            Outcome::Done(answer) => answer.note.as_ref().map(|note| format!("{name}: {note}")),
            Outcome::Failed(reason) => Some(format!("{name} {}: {reason}", run.outcome.status())),
            _ => None,
        };
        if let Some(line) = line {
            out.wrap(&line, width);
        }
    }
    let methods = solution.agreement.methods;
    let (role, verdict) = match (solution.agreement.complaints.is_empty(), methods) {
        (true, 1) => (Role::Plain, "agrees"),
        (true, _) => (Role::Plain, "agree"),
        (false, 1) => (Role::Bad, "DISAGREES"),
        (false, _) => (Role::Bad, "DISAGREE"),
    };
    if methods > 0 || !solution.agreement.complaints.is_empty() {
        let difference = small(solution.agreement.max_abs_difference, 1);
        let _ = write!(out, "  {} ", counted(methods, "method"));
        out.add(role, verdict);
        let _ = writeln!(out, "; largest difference {difference}");
    }
    if let Some(limit) = &solution.limit {
        let limit = format!("limit reached: no method that would answer fits, and {limit}");
        out.wrap(&limit, width);
    }
    for complaint in &solution.agreement.complaints {
        out.wrap_after(Role::Bad, "DISAGREES", &format!(": {complaint}"), width);
    }
    out.wrap(&format!("certificate: {}", solution.statement()), width);
    if let Some(sibling) = &solution.sibling {
        let line = format!(
            "not the same law: under {} alpha* is {} ({:+.6} against this one)",
            sibling.scheme,
            sibling.rate.value(),
            sibling.rate.value() - rate.value()
        );
        out.wrap(&line, width);
    }
    if let Some(check) = &solution.expected {
        let source = check
            .source
            .as_deref()
            .map_or(String::new(), |s| format!(" ({s})"));
        match &check.complaint {
            None => out.wrap(&format!("expected: {}{source}: ok", check.expected), width),
            Some(complaint) => {
                let why = format!(": {complaint}{source}");
                out.wrap_after(Role::Bad, "EXPECTATION FAILS", &why, width);
            }
        }
    }
    out
}

/// The longest fraction that a line has room for.
const LONGEST_FRACTION: usize = 9;

/// A number as a short fraction, or how it is known.
fn in_short(number: &Known) -> String {
    let exact = match number.rational() {
        Some(exact) => Some(format_rational(exact)).filter(|text| text.len() <= LONGEST_FRACTION),
        None => Some("enclosed".to_owned()),
    };
    exact.unwrap_or_else(|| "long".to_owned())
}

/// A problem in a line of a table of problems.
pub fn line(solution: &Solution) -> Vec<(Column, String)> {
    let rate = &solution.optimal_acceptance_rate;
    let is_expected = usize::from(solution.expected.is_some());
    let checks = (solution.agreement.methods + is_expected, solution.is_ok());
    let columns = [
        ("V", solution.vocab.to_string()),
        ("n", solution.drafts.to_string()),
        ("alpha*", in_short(rate)),
        ("decimal", decimal(rate)),
    ];
    let mut line = problems::line(&solution.problem, columns, checks);
    if let (Some((_, cell)), Some(_), true) = (line.last_mut(), &solution.limit, solution.is_ok()) {
        "limit reached".clone_into(cell);
    }
    line
}

fn row(run: &MethodRun, certified: &Known) -> Row {
    let rate = run.outcome.shown().map(|answer| &answer.rate);
    let value = rate.map_or_else(String::new, |rate| format!("{:.12}", rate.value()));
    let difference = rate.map_or_else(String::new, |rate| {
        if rate.rational().is_some() && rate.rational() == certified.rational() {
            "0".to_owned()
        } else {
            small((rate.value() - certified.value()).abs(), 1)
        }
    });
    let status = if run.rate().is_some_and(|rate| rate.rational().is_some()) {
        "exact".to_owned()
    } else {
        run.outcome.status().to_owned()
    };
    Row::texts([run.name(), value, difference, seconds(run.seconds), status])
}
