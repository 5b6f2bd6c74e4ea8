//! Reports of `specgap verify`.

use super::columns::row;
use super::fractions::in_full;
use super::problems::{self, BEST, decimal, digits, entry};
use super::sections::section;
use num_traits::Zero;
use specgap_exact::evaluate::{Evaluated, Measured, RuleVerification, Verification};
use specgap_number::known::{Known, Sampling};
use specgap_page::table::{Column, Entry, Row};
use specgap_page::words::{counted, small};
use specgap_page::{Block, Page, Section};

/// The page of a problem.
pub fn page(found: &Verification) -> Page {
    let answer = match &found.optimum {
        Ok(rate) => format!("alpha* = {}", in_full(rate)),
        Err(reason) => format!("alpha* is not known: {reason}"),
    };
    let lines = vec![
        format!("{}: {}", found.scheme, found.scheme.law()),
        format!("V = {}, n = {}", found.vocab, found.drafts),
    ];
    problems::page(
        &found.problem,
        answer,
        found.complaints(),
        lines,
        [verifiers(found)],
    )
}

/// Shows what every verifier does, or why it was not run.
fn verifiers(found: &Verification) -> Section {
    let all = || found.verifiers.iter();
    let rows = all()
        .filter_map(|one| Some(row(one.name.as_str(), one.outcome.done()?)))
        .chain(found.rule.as_ref().map(tabulated));
    let names = "verifier | #algorithmic | #membership | #gap | #TV | lossless | rate";
    let mut blocks = vec![problems::rows("verifiers", names, rows)];
    let mut say = |text: String| blocks.push(Block::Paragraph(text));
    for one in all() {
        for line in one.outcome.done().map_or_else(Vec::new, |m| remarks(m)) {
            say(format!("{}: {line}", one.name));
        }
    }
    let skipped = all().filter_map(|one| Some((one, one.outcome.reason()?)));
    let (own, other): (Vec<_>, Vec<_>) =
        skipped.partition(|(one, _)| one.name.is_lossless(found.scheme, found.drafts));
    for (one, reason) in own {
        say(format!("skipped {}: {reason}", one.name));
    }
    let other =
        (other.iter()).map(|(one, _)| format!("{} ({})", one.name, one.name.draft_schemes()));
    let other = other.collect::<Vec<_>>().join(", ");
    if !other.is_empty() {
        say(format!("skipped, lossless only for other drafts: {other}"));
    }
    section(
        "verifiers | Verifiers | Rates are averaged over the law of the drafts: exact, or enclosed \
         (rounding and all that was left out are within the bounds), or a Monte Carlo mean.",
        blocks,
    )
}

/// A problem in a line of a table of problems.
pub fn line(found: &Verification) -> Vec<(Column, String)> {
    let rules = found.verifiers.iter();
    let laws = rules.filter_map(|one| Some((one.name.as_str(), one.outcome.done()?)));
    let lossless = laws.filter(|(_, law)| law.lossless != Some(false));
    let best = problems::best(lossless, |(_, law)| law.membership.value());
    let best = |cell: &dyn Fn(&str, &Measured) -> Option<String>| {
        let cell = best.and_then(|(name, law)| cell(name, law));
        cell.unwrap_or_else(|| "-".to_owned())
    };
    let optimum = found.optimum.as_ref();
    let columns = [
        ("V", found.vocab.to_string()),
        ("n", found.drafts.to_string()),
        ("alpha*", optimum.map_or_else(|_| "-".to_owned(), decimal)),
        (BEST, best(&|name, _| Some(name.to_owned()))),
        ("accepts", best(&|_, law| Some(decimal(&law.membership)))),
        (
            "gap",
            best(&|_, law| Some(small(law.gap.as_ref()?.value(), 2))),
        ),
    ];
    problems::line(&found.problem, columns, (found.runs(), found.is_ok()))
}

/// Says what the table has no room for.
fn remarks(measured: &Measured) -> Vec<String> {
    let rate = &measured.membership;
    let sampled = rate.sampling().map(|Sampling { confidence, samples, seed }| {
        let runs = counted(usize::try_from(*samples).unwrap_or(usize::MAX), "run");
        let [lower, upper] = [rate.lower(), rate.upper()];
        format!("Monte Carlo, {runs}, seed {seed}: in [{lower}, {upper}] with confidence {confidence}")
    });
    let unsummed = measured.total_variation.as_ref().err();
    let unsummed = unsummed.map(|reason| format!("TV not summed: {reason}"));
    let all = [measured.note.clone(), sampled, unsummed];
    all.into_iter().flatten().collect()
}

/// Digits of a rate.
const DIGITS: usize = 9;

fn gap(gap: Option<&Known>) -> Entry {
    gap.map_or("-".into(), |gap| entry(small(gap.value(), 3), gap.value()))
}

/// A rule that the problem file tabulates.
fn tabulated(rule: &RuleVerification) -> Row {
    let variation = &rule.total_variation;
    let lossless = match (rule.lossless, &variation.exact) {
        (false, _) => "NO",
        (true, Some(exact)) if exact.is_zero() => "yes, exact",
        (true, _) => "yes",
    };
    row![
        &rule.name,
        "-",
        digits(&rule.membership, DIGITS),
        gap(rule.gap.as_ref()),
        entry(small(variation.value, 3), variation.value),
        lossless,
        rule.membership.kind().as_str(),
    ]
}

fn row(name: &str, measured: &Measured) -> Row {
    let variation = measured.total_variation.as_ref();
    let lossless = match measured.lossless {
        None => "-",
        Some(false) => "NO",
        Some(true) if variation.is_ok_and(|v| v.exact.is_some()) => "yes, exact",
        Some(true) => "yes",
    };
    row![
        name,
        digits(&measured.algorithmic, DIGITS),
        digits(&measured.membership, DIGITS),
        gap(measured.gap.as_ref()),
        variation.map_or("-".into(), |v| entry(small(v.value, 3), v.value)),
        lossless,
        measured.membership.kind().as_str(),
    ]
}
