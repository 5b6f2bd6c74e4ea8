//! Reports of `specgap verify`.

use super::columns::head;
use super::fractions::in_full;
use super::problems::{self, BEST, decimal};
use super::sections;
use crate::evaluate::{Evaluated, Measured, RuleVerification, Verification};
use crate::known::{Known, Sampling};
use crate::page::table::{Column, Row, Table};
use crate::page::terminal::{self, Role, Text};
use crate::page::words::{counted, small};
use num_traits::Zero;
use std::fmt::Write as _;

/// What the words of the report mean.
pub fn definitions() -> String {
    sections::legend("verify", 14)
        + "\nAll rates are dimensionless, in [0, 1], averaged over the law of the drafts. A rate is exact, or\n\
           enclosed (rounding and all that was left out are within the bounds), or a Monte Carlo mean."
}

/// A report for people; `width` wraps the table and the prose.
pub fn text(evaluation: &Verification, width: u16) -> Text {
    let mut out = Text::default();
    out.lines(Role::Heading, &evaluation.problem);
    let scheme = evaluation.scheme;
    out.wrap(&format!("{scheme}: {}", scheme.law()), width);
    let _ = writeln!(out, "  V = {}, n = {}", evaluation.vocab, evaluation.drafts);
    match &evaluation.optimum {
        Ok(rate) => out.lines(Role::Heading, &format!("  alpha* = {}", in_full(rate))),
        Err(reason) => out.wrap(&format!("alpha* is not known: {reason}"), width),
    }
    let columns = head("verifier | #algorithmic | #membership | #gap | #TV | lossless | rate");
    let rows = evaluation
        .verifiers
        .iter()
        .filter_map(|one| Some(row(one.name.as_str(), one.outcome.done()?, digits(width))))
        .chain((evaluation.rule.as_ref()).map(|rule| tabulated(rule, digits(width))));
    let table = Table::new("verifiers", "", columns).rows(rows);
    terminal::table(&mut out, &table, width, "  ");
    for one in &evaluation.verifiers {
        for line in one.outcome.done().map_or_else(Vec::new, |m| remarks(m)) {
            out.wrap(&format!("{}: {line}", one.name), width);
        }
        for line in evaluation.complaints_about(one) {
            out.wrap_as(Role::Bad, &format!("{}: {line}", one.name), width);
        }
    }
    if let Some((rule, line)) = (evaluation.rule.as_ref()).and_then(|r| Some((r, r.complaint()?))) {
        out.wrap_as(Role::Bad, &format!("{}: {line}", rule.name), width);
    }
    let mut other_drafts = Vec::new();
    for one in &evaluation.verifiers {
        let Some(reason) = one.outcome.reason() else {
            continue;
        };
        if one.name.is_lossless(scheme, evaluation.drafts) {
            out.wrap(&format!("skipped {}: {reason}", one.name), width);
        } else {
            other_drafts.push(format!("{} ({})", one.name, one.name.draft_schemes()));
        }
    }
    if !other_drafts.is_empty() {
        let list = other_drafts.join(", ");
        let line = format!("skipped, lossless only for other drafts: {list}");
        out.wrap(&line, width);
    }
    out
}

/// A problem in a line of a table of problems.
pub fn line(evaluation: &Verification) -> Vec<(Column, String)> {
    let rules = evaluation.verifiers.iter();
    let laws = rules.filter_map(|one| Some((one.name.as_str(), one.outcome.done()?)));
    let lossless = laws.filter(|(_, law)| law.lossless != Some(false));
    let rate = |law: &Measured| law.membership.value();
    let best = lossless.reduce(|best, one| {
        if rate(one.1) > rate(best.1) {
            one
        } else {
            best
        }
    });
    let best = |cell: &dyn Fn(&str, &Measured) -> Option<String>| {
        let cell = best.and_then(|(name, law)| cell(name, law));
        cell.unwrap_or_else(|| "-".to_owned())
    };
    let optimum = evaluation.optimum.as_ref();
    let columns = [
        ("V", evaluation.vocab.to_string()),
        ("n", evaluation.drafts.to_string()),
        ("alpha*", optimum.map_or_else(|_| "-".to_owned(), decimal)),
        (BEST, best(&|name, _| Some(name.to_owned()))),
        ("accepts", best(&|_, law| Some(decimal(&law.membership)))),
        (
            "gap",
            best(&|_, law| Some(small(law.gap.as_ref()?.value(), 2))),
        ),
    ];
    let checks = (evaluation.runs(), evaluation.is_ok());
    problems::line(&evaluation.problem, columns, checks)
}

/// What the table has no room for.
fn remarks(measured: &Measured) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(note) = &measured.note {
        lines.push(note.clone());
    }
    let rate = &measured.membership;
    if let Some(Sampling {
        confidence,
        samples,
        seed,
    }) = rate.sampling()
    {
        lines.push(format!(
            "Monte Carlo, {}, seed {seed}: in [{}, {}] with confidence {confidence}",
            counted(usize::try_from(*samples).unwrap_or(usize::MAX), "run"),
            rate.lower(),
            rate.upper()
        ));
    }
    if let Err(reason) = &measured.total_variation {
        lines.push(format!("TV not summed: {reason}"));
    }
    lines
}

/// A rule that the problem file tabulates.
fn tabulated(rule: &RuleVerification, digits: usize) -> Row {
    let lossless = match (rule.lossless, &rule.total_variation.exact) {
        (false, _) => "NO",
        (true, Some(exact)) if exact.is_zero() => "yes, exact",
        (true, _) => "yes",
    };
    Row::texts([
        rule.name.clone(),
        "-".to_owned(),
        format!("{:.digits$}", rule.membership.value()),
        (rule.gap.as_ref()).map_or_else(|| "-".to_owned(), |gap| small(gap.value(), 3)),
        small(rule.total_variation.value, 3),
        lossless.to_owned(),
        rule.membership.kind().to_string(),
    ])
}

/// Digits of a rate, of which a narrow terminal has room for some.
fn digits(width: u16) -> usize {
    if width < 100 { 6 } else { 12 }
}

fn row(name: &str, measured: &Measured, digits: usize) -> Row {
    let rate = |rate: &Known| format!("{:.digits$}", rate.value());
    let variation = measured.total_variation.as_ref();
    let lossless = match measured.lossless {
        None => "-",
        Some(false) => "NO",
        Some(true) if variation.is_ok_and(|v| v.exact.is_some()) => "yes, exact",
        Some(true) => "yes",
    };
    Row::texts([
        name.to_owned(),
        rate(&measured.algorithmic),
        rate(&measured.membership),
        measured
            .gap
            .as_ref()
            .map_or_else(|| "-".to_owned(), |gap| small(gap.value(), 3)),
        variation.map_or_else(|_| "-".to_owned(), |v| small(v.value, 3)),
        lossless.to_owned(),
        measured.membership.kind().to_string(),
    ])
}
