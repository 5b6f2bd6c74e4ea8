//! Reports of `specgap solve`.

use super::columns::row;
use super::fractions::in_full;
use super::problems::{self, decimal, digits, entry};
use super::sections::section;
use specgap_base::once::grouped;
use specgap_exact::evaluate::{Evaluated, MethodRun, Outcome, Solution};
use specgap_number::distribution::format_rational;
use specgap_number::known::Known;
use specgap_page::table::{Column, Row};
use specgap_page::words::{counted, seconds, small};
use specgap_page::{Block, Page, Section};

/// The page of a problem.
pub fn page(solution: &Solution) -> Page {
    let rate = &solution.optimal_acceptance_rate;
    let agreement = &solution.agreement;
    let complaints = agreement.complaints.iter();
    let mut wrong: Vec<String> = complaints.map(|one| format!("DISAGREES: {one}")).collect();
    let mut lines = vec![
        format!("{}: {}", solution.scheme, solution.scheme.law()),
        format!("V = {}, n = {}", solution.vocab, solution.drafts),
    ];
    if agreement.methods > 0 || !agreement.ok {
        let verdict = match (agreement.ok, agreement.methods) {
            (true, 1) => "agrees",
            (true, _) => "agree",
            (false, _) => "do not all agree",
        };
        let methods = counted(agreement.methods, "method");
        let difference = small(agreement.max_abs_difference, 1);
        lines.push(format!(
            "{methods} {verdict}; largest difference {difference}"
        ));
    }
    lines.extend(
        (solution.limit.as_ref())
            .map(|limit| format!("limit reached: no method that would answer fits, and {limit}")),
    );
    lines.push(format!("certificate: {}", solution.statement()));
    lines.extend(solution.sibling.as_ref().map(|sibling| {
        let difference = sibling.rate.value() - rate.value();
        format!(
            "not the same law: under {} alpha* is {} ({difference:+.6} against this one)",
            sibling.scheme,
            sibling.rate.value()
        )
    }));
    if let Some(check) = &solution.expected {
        let source = check.source.as_ref();
        let source = source.map_or(String::new(), |s| format!(" ({s})"));
        match &check.complaint {
            None => lines.push(format!("expected: {}{source}: ok", check.expected)),
            Some(complaint) => wrong.push(format!("EXPECTATION FAILS: {complaint}{source}")),
        }
    }
    let answer = format!("alpha* = {}", in_full(rate));
    problems::page(&solution.problem, answer, wrong, lines, [methods(solution)])
}

/// Shows what every method found, or why it was not run.
fn methods(solution: &Solution) -> Section {
    let all = || solution.methods.iter();
    let skipped = all().filter_map(|run| match &run.outcome {
        Outcome::Skipped(reason) => Some((reason, run.name())),
        _ => None,
    });
    let skipped = grouped(skipped).into_iter();
    let skipped = skipped.map(|(reason, names)| format!("skipped {}: {reason}", names.join(", ")));
    let notes = all().filter_map(|run| match &run.outcome {
        Outcome::Done(answer) => Some(format!("{}: {}", run.name(), answer.note.as_ref()?)),
        Outcome::Failed(why) => Some(format!("{} {}: {why}", run.name(), run.outcome.status())),
        _ => None,
    });
    let run = all().filter(|run| !matches!(run.outcome, Outcome::Skipped(_)));
    let rows = run.map(|run| row(run, &solution.optimal_acceptance_rate));
    let columns = "method | #alpha* | #difference | #time | status";
    section(
        "methods | Methods | What each finds, and how far it is from the certified value.",
        [problems::rows("methods", columns, rows)],
    )
    .with(skipped.chain(notes).map(Block::Paragraph))
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
    let [value, difference] = match run.outcome.shown().map(|answer| &answer.rate) {
        None => ["".into(), "".into()],
        Some(rate) if rate.rational().is_some() && rate.rational() == certified.rational() => {
            [digits(rate, 12), "0".into()]
        }
        Some(rate) => {
            let difference = (rate.value() - certified.value()).abs();
            [digits(rate, 12), entry(small(difference, 1), difference)]
        }
    };
    let is_exact = run.rate().is_some_and(|rate| rate.rational().is_some());
    let status = match is_exact {
        true => "exact",
        false => run.outcome.status(),
    };
    row![run.name(), value, difference, seconds(run.seconds), status]
}
