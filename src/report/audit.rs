//! The page of `specgap audit`, its JUnit file, and the block for an issue.
//!
//! What to do comes first, then the verdicts, then everything they follow from, and last what it
//! would take to find more.

mod beside;

use self::beside::outcome;
use super::columns::head;
use super::junit::{self, Case};
use super::sections::{glossary, if_any, of_table, shown};
use crate::audit::{
    AuditReport, Conclusion, HardCheck, MinimumN, Outcome, PartReport, Plan, Tampering,
};
use crate::log::RowsFrom;
use crate::page::table::{Entry, Row, Table};
use crate::page::words::{count, counted, rate};
use crate::page::{Block, Fact, Page, Section, visible};
use std::fmt::Write as _;

fn short_of(plan: &Plan) -> String {
    let positions = plan.multiplied as u64;
    let short: Vec<&str> = plan
        .minimum
        .iter()
        .filter(|one| one.positions.is_some_and(|n| n > positions))
        .map(|one| one.bug.as_str())
        .collect();
    if short.is_empty() {
        "The log is long enough for every bug that more than the tolerance comes of.".to_owned()
    } else {
        let (what, cure) = match plan.multiplied < plan.positions {
            true => (
                "Texts are",
                "Log longer texts; or say --seeds fresh, if requests drew random numbers of their \
                 own, and all positions count",
            ),
            false => ("The log is", "Log more"),
        };
        format!(
            "{what} too short to find with 99%: {}. {cure}.",
            short.join(", ")
        )
    }
}

fn minimum(plan: &Plan) -> Table {
    let columns = head("bug | first by | #needs | #outputs alone | #TV");
    let positions = plan.multiplied as u64;
    let row = |one: &MinimumN| {
        let needed = one.positions.map_or_else(|| "–".to_owned(), count_of);
        let enough = one.positions.is_some_and(|n| n <= positions);
        Row::new([
            Entry::titled(one.bug.clone(), one.words.clone()),
            Entry::plain(one.part.clone().unwrap_or_else(|| "–".to_owned())),
            Entry::plain(needed).bold(enough),
            Entry::plain(
                one.positions_by_output
                    .map_or_else(|| "–".to_owned(), count_of),
            ),
            Entry::plain(one.output_tv.map_or_else(|| "–".to_owned(), rate)),
        ])
    };
    Table::new("minimum", "", columns)
        .rows(plan.minimum.iter().map(row))
        .note(format!(
            "This log has {}{}. Needs: positions until a part is refuted with probability 99%; \
             outputs alone: until the target law is. An estimate, from engines with the bug that \
             were played on {}; – where none would do. TV: mean total variation between p and what \
             such an engine puts out, a sum over all tokens.",
            counted(plan.positions, "position"),
            match plan.multiplied < plan.positions {
                true => format!(", {} of them in its longest text", count(plan.multiplied)),
                false => String::new(),
            },
            counted(plan.rows, "row")
        ))
}

fn count_of(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX))
}

/// The report as a page: the verdicts, what they follow from, and last what other bugs would take.
pub fn page(report: &AuditReport) -> Page {
    let broken = report.hard_checks.iter().any(|check| check.violations > 0);
    let mut sections = vec![shown(
        "verdicts",
        "The verdicts",
        "What was tested, on how much, and what came of it.",
        [Block::Table(verdicts(report))],
    )];
    sections.extend(report.counts.as_ref().map(beside::counts));
    sections.extend(evidence_sections(report));
    sections.push(Section {
        main: broken,
        ..Section::new(
            "hard-checks",
            "Hard checks",
            "What may never happen, however short the log.",
            [Block::Table(hard_checks(report))],
        )
    });
    let control = of_table(
        "control",
        "Negative control",
        "Tampered logs, each of which the audit has to refuse.",
        report.negative_control.as_deref().map(tampering),
    );
    sections.extend(control.map(Section::main));
    if !report.notes.is_empty() {
        sections.push(shown(
            "notes",
            "Notes",
            "",
            [Block::List(report.notes.clone())],
        ));
    }
    if let Some(plan) = &report.plan {
        let blocks = [
            Block::Table(minimum(plan)),
            Block::Paragraph(short_of(plan)),
        ];
        sections.push(shown(
            "minimum",
            "Minimum N",
            "What it takes to find each bug: from the rows, not from what the engine did.",
            blocks,
        ));
    }
    sections.push(Section::new(
        "words",
        "What the words mean",
        "",
        [Block::Definitions(definitions())],
    ));
    sections.push(Section::new(
        "made-by",
        "Made by",
        "",
        [Block::Facts(facts(report))],
    ));
    Page {
        title: format!("Audit: {} as {}", report.log, report.rule),
        subtitle: report.rule_words.clone(),
        lead: lead(report),
        sections,
        next: super::advice::after_audit(report),
        papers: Vec::new(),
    }
}

fn evidence_sections(report: &AuditReport) -> impl Iterator<Item = Section> {
    let groups = of_table(
        "groups",
        "Where it fails",
        "Groups of steps that e-BH names at the same level.",
        if_any(groups(report)),
    );
    let evidence = of_table(
        "evidence",
        "Evidence",
        "Bugs and scores with an e-value of 100 or more, by part.",
        if_any(evidence(report)),
    );
    [groups, evidence].into_iter().flatten().map(Section::main)
}

/// The four parts, and whether numbers are fresh.
fn all_parts(report: &AuditReport) -> impl Iterator<Item = &PartReport> {
    report.parts.iter().chain(&report.fresh_numbers)
}

/// What every word of the report means.
pub fn definitions() -> Vec<(String, String)> {
    glossary(include_str!("audit.txt"))
}

/// The conclusion in words.
pub fn conclusion(report: &AuditReport) -> String {
    let rule = &report.rule;
    if let Some(words) = beside::refuted_counts(report) {
        return words;
    }
    match report.conclusion {
        Conclusion::AsClaimed if report.rule == "text" => {
            "As claimed: nothing was found against p as the law of this text.".to_owned()
        }
        Conclusion::AsClaimed => match report.lossy_by_design {
            Some(tv) => format!(
                "As claimed: nothing was found against {rule}. The rule itself is lossy: its \
                 outputs are {} from p in total variation on these rows.",
                rate(tv)
            ),
            None => format!("As claimed: nothing was found against {rule}."),
        },
        Conclusion::LosslessAnotherRule => format!(
            "Lossless, but not the rule you name: the log fits {} and not {rule}.",
            report.fits.as_deref().unwrap_or("another rule")
        ),
        Conclusion::Lossy => match &report.fresh_numbers {
            Some(fresh)
                if fresh.verdict == Outcome::Refuted
                    && report
                        .parts
                        .iter()
                        .all(|one| one.verdict != Outcome::Refuted) =>
            {
                "Lossy: each round follows the rule, and rounds of one text draw with the same \
                 random numbers."
                    .to_owned()
            }
            _ => "Lossy: what comes out does not follow p.".to_owned(),
        },
        Conclusion::NotTheRule => {
            format!("Not {rule}: {}", implied(report))
        }
        Conclusion::NotAsClaimed => format!("Not as claimed: the engine does not follow {rule}."),
        Conclusion::Undecided if report.requests.averaged > 0 => {
            "Undecided: each text by itself is too short to tell anything, and texts that may \
             share random numbers are not multiplied. If each request drew its own, say --seeds \
             fresh."
                .to_owned()
        }
        Conclusion::Undecided => {
            "Undecided: the log is too short to tell anything. Log more.".to_owned()
        }
    }
}

/// Whether the suspect costs p, where outputs alone do not show it yet.
fn implied(report: &AuditReport) -> String {
    let suspects = report
        .parts
        .iter()
        .filter_map(|part| part.suspect.as_deref());
    let bugs = report.plan.iter().flat_map(|plan| &plan.minimum);
    let known: Vec<&MinimumN> = suspects
        .filter_map(|suspect| bugs.clone().find(|one| one.bug == suspect))
        .collect();
    match known.iter().find_map(|one| Some((one, one.output_tv?))) {
        Some((one, tv)) if tv > 1e-9 => format!(
            "it fits {}, which moves outputs {} from p in total variation (computed from these \
             rows, not yet seen in the outputs).",
            one.bug,
            rate(tv)
        ),
        _ => "whether outputs follow p is not decided at this N.".to_owned(),
    }
}

/// Whose p it is.
fn whose(report: &AuditReport) -> String {
    let mut words = match report.rows_from {
        Some(RowsFrom::EngineProcessed) => {
            "p is the engine's own, recorded behind its temperature and truncation: a mistake in \
             these would be in p too, and is not seen here. Audit a plain scoring of the same text \
             as well (docs/guide/audit.md)."
        }
        Some(RowsFrom::EngineRaw) => {
            "p follows from the engine's raw logits and from the request's temperature and \
             truncation, which are applied here."
        }
        Some(RowsFrom::Scoring) => "p comes from a pass of the target apart from the sampling.",
        None => {
            "Whose p it is, the log does not say (rows_from in its metadata): rows that the engine \
             itself sampled from cannot show a mistake in them (docs/guide/audit.md)."
        }
    }
    .to_owned();
    if let Some(left) = report.not_comparable.as_ref().filter(|left| left.count > 0) {
        let reasons: Vec<String> = (left.reasons.iter())
            .map(|(reason, count)| format!("{count}: {reason}"))
            .collect();
        let _ = write!(
            words,
            " {} are not in the log, because p does not follow from their rows and these settings \
             ({}).",
            counted_u64(left.count, "round"),
            reasons.join("; ")
        );
    }
    words
}

fn lead(report: &AuditReport) -> Vec<Block> {
    let unfinished = super::cautions::unfinished([report.unfinished].into_iter());
    let mut lead: Vec<Block> = unfinished.map(Block::Caution).into_iter().collect();
    lead.push(Block::Paragraph(conclusion(report)));
    let items = findings(report);
    if !items.is_empty() {
        lead.push(Block::List(items));
    }
    lead.extend(report.surprise.as_ref().map(beside::surprise));
    lead.push(Block::Paragraph(whose(report)));
    if let Some(tv) = report.lossy_by_design
        && report.conclusion != Conclusion::AsClaimed
    {
        lead.push(Block::Caution(format!(
            "{} is lossy by design: {} from p in total variation on these rows.",
            report.rule,
            rate(tv)
        )));
    }
    let failed = report.negative_control.iter().flatten();
    let failed: Vec<&str> = failed
        .filter(|one| one.refuted == Some(false))
        .map(|one| one.name.as_str())
        .collect();
    if !failed.is_empty() {
        lead.push(Block::Caution(format!(
            "The negative control was not refused for {}: this audit cannot find them on such \
             rows.",
            failed.join(", ")
        )));
    }
    lead
}

/// What was found against the engine, and what to do.
fn findings(report: &AuditReport) -> Vec<String> {
    let broken = report.hard_checks.iter();
    let broken = broken.filter(|check| check.violations > 0);
    let mut items: Vec<String> = broken
        .map(|check| format!("{}: {}", check.name, violation(check)))
        .collect();
    items.extend(report.cause.as_ref().map(beside::cause));
    let counts = report.counts.as_ref();
    let counts = counts.filter(|counts| counts.verdict == Outcome::Refuted);
    items.extend(counts.map(|counts| format!("{}.", beside::counted_words(counts))));
    for part in all_parts(report).filter(|part| part.verdict == Outcome::Refuted) {
        if beside::explains(report, part) {
            continue;
        }
        items.push(match part.evidence.first() {
            Some(best) => format!(
                "{}: fits {}: {}. What to do: {}.",
                part.part, best.name, best.words, best.cure
            ),
            None => format!("{}: fails in some groups alone, see below", part.part),
        });
    }
    items
}

fn violation(check: &HardCheck) -> String {
    let first = check
        .first_position
        .map_or_else(String::new, |at| format!(", first at {at}"));
    format!(
        "{} ({}{first})",
        check.words,
        counted_u64(check.violations, "time")
    )
}

fn counted_u64(n: u64, what: &str) -> String {
    counted(usize::try_from(n).unwrap_or(usize::MAX), what)
}

fn e_value(part: &PartReport) -> String {
    if part.log10_e_value.abs() < 3.0 {
        format!("{:.3}", part.e_value)
    } else {
        format!("1e{:+.1}", part.log10_e_value)
    }
}

fn verdicts(report: &AuditReport) -> Table {
    let columns = head("part | verdict | #steps | #e-value | #smallest TV excluded");
    let rows = all_parts(report).map(|part| {
        let limit = part
            .smallest_tv_excluded
            .map_or_else(|| "–".to_owned(), rate);
        Row::new([
            Entry::plain(part.part.clone()),
            Entry::plain(outcome(part.verdict)).bold(part.verdict == Outcome::Refuted),
            Entry::plain(count_of(part.steps)),
            Entry::plain(e_value(part)),
            Entry::plain(limit),
        ])
    });
    let mut table = Table::new("verdicts", "", columns).rows(rows);
    for part in all_parts(report) {
        if let Some(reason) = &part.reason {
            table = table.note(format!("{}: {reason}.", part.part));
        }
    }
    table.note(format!(
        "A part is refuted by an e-value of {:.0e}, or by a group that e-BH names. An engine that \
         does what it claims, within a drift of {} of the mean of every score, fails this audit \
         with probability {:.1e} at most{}.",
        1.0 / report.alpha,
        report.tolerance,
        report.false_alarm,
        provided(report)
    ))
}

/// What the guarantee takes for granted of random numbers.
fn provided(report: &AuditReport) -> &'static str {
    let requests = &report.requests;
    match (requests.fresh > 1, requests.averaged > 0) {
        (true, true) => {
            ", whatever random numbers requests share whose e-values are averaged, if the others \
             drew their own"
        }
        (true, false) => ", if each request drew random numbers of its own",
        (false, true) => ", whatever random numbers its requests share",
        (false, false) => "",
    }
}

fn hard_checks(report: &AuditReport) -> Table {
    let columns = head("check | #violations | what may not happen");
    let rows = report.hard_checks.iter().map(|check| {
        Row::new([
            Entry::plain(check.name.clone()),
            Entry::plain(count_of(check.violations)).bold(check.violations > 0),
            Entry::plain(check.words.clone()),
        ])
    });
    Table::new("hard-checks", "", columns).rows(rows)
}

fn evidence(report: &AuditReport) -> Table {
    let columns = head("part | #log10 e | bug or score, and what it says");
    let rows = all_parts(report).flat_map(|part| {
        part.evidence.iter().map(|one| {
            Row::texts([
                part.part.clone(),
                format!("{:.1}", one.log10_e_value),
                format!("{}: {}", one.name, one.words),
            ])
        })
    });
    Table::new("evidence", "", columns).rows(rows)
}

fn groups(report: &AuditReport) -> Table {
    let columns = head("part | group | #steps | #log10 of its e-value");
    let rows = all_parts(report).flat_map(|part| {
        part.groups.iter().map(|one| {
            Row::texts([
                part.part.clone(),
                format!("{} {}", one.family, one.group),
                count_of(one.steps),
                format!("{:.1}", one.log10_e_value),
            ])
        })
    });
    Table::new("groups", "", columns).rows(rows)
}

fn tampering(control: &[Tampering]) -> Table {
    let columns = head("tampered with | refused | by | #positions played | this log is enough");
    let rows = control.iter().map(|one| {
        let refused = match (one.refuted, &one.reason) {
            (Some(true), _) => "yes".to_owned(),
            (Some(false), _) => "NO".to_owned(),
            (None, reason) => format!("not done: {}", reason.as_deref().unwrap_or("no reason")),
        };
        Row::new([
            Entry::titled(one.name.clone(), one.words.clone()),
            Entry::plain(refused).bold(one.refuted == Some(false)),
            Entry::plain(one.by.join(", ")),
            Entry::plain(count_of(one.positions)),
            Entry::plain(if one.own_positions_enough {
                "yes"
            } else {
                "no"
            }),
        ])
    });
    Table::new("control", "", columns).rows(rows).note(
        "Each bug is played on the log's rows, as often as its minimum N asks and half as much \
         again. The last column says whether the log's own length would do.",
    )
}

fn facts(report: &AuditReport) -> Vec<Fact> {
    let command = match report.command.as_str() {
        "" => None,
        command => Some(Fact::new("command", command)),
    };
    let mut facts: Vec<Fact> = command.into_iter().collect();
    facts.extend(crate::report::files::files(&report.files));
    facts.extend([
        Fact::new("tool", report.tool.clone()),
        Fact::new(
            "log",
            format!(
                "{}, {}, {}, {} not audited",
                report.log,
                counted(report.positions, "position"),
                counted(report.rounds, "round"),
                count(report.not_audited)
            ),
        ),
    ]);
    if let Some(target) = &report.target {
        facts.push(Fact::new("target", target.clone()));
    }
    if let Some(draft) = &report.draft {
        facts.push(Fact::new("draft", draft.clone()));
    }
    let requests = &report.requests;
    facts.push(Fact::new(
        "requests",
        format!(
            "{}, {} multiplied, {} averaged (seeds: {})",
            counted(requests.texts, "text"),
            count(requests.fresh),
            count(requests.averaged),
            requests.seeds
        ),
    ));
    if let Some(claimed) = &report.claimed {
        let mut words = format!(
            "temperature {:?}, draft temperature {:?}",
            claimed.temperature, claimed.draft_temperature
        );
        for (name, value) in [
            ("top-k", claimed.top_k.map(|k| k.to_string())),
            ("top-p", claimed.top_p.map(|p| p.to_string())),
            ("min-p", claimed.min_p.map(|p| p.to_string())),
            ("draft top-k", claimed.draft_top_k.map(|k| k.to_string())),
        ] {
            if let Some(value) = value {
                let _ = write!(words, ", {name} {value}");
            }
        }
        if claimed.order_matters() {
            let order = claimed.cut_order.unwrap_or_default();
            let how = claimed
                .cut_order
                .map_or(" (assumed; else give --cut-order)", |_| "");
            let _ = write!(words, ", cut order {order}{how}");
        }
        if claimed.draft_mask {
            words.push_str(", the draft masked too");
        }
        facts.push(Fact::new("claimed sampling", words));
    }
    facts
}

/// A Markdown block for an issue: what was tested, what was found, how to see it again.
pub fn issue(report: &AuditReport) -> String {
    let mut out = format!(
        "### Sampling audit: `{}`\n\n{}\n\n",
        report.rule,
        conclusion(report)
    );
    out.push_str("| part | verdict | steps | e-value | smallest TV excluded | fits best |\n");
    out.push_str("| --- | --- | ---: | ---: | ---: | --- |\n");
    for part in all_parts(report) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            part.part,
            outcome(part.verdict),
            part.steps,
            e_value(part),
            part.smallest_tv_excluded
                .map_or_else(|| "–".to_owned(), rate),
            part.suspect.as_deref().unwrap_or("")
        );
    }
    out.push('\n');
    for check in report
        .hard_checks
        .iter()
        .filter(|check| check.violations > 0)
    {
        let _ = writeln!(out, "- **{}**: {}", check.name, violation(check));
    }
    if let Some(cause) = &report.cause {
        let _ = writeln!(out, "- {}", beside::cause(cause));
    }
    if let Some(counts) = &report.counts {
        let _ = writeln!(out, "- {}", beside::counted_words(counts));
    }
    for part in all_parts(report) {
        if part.verdict == Outcome::Refuted
            && !beside::explains(report, part)
            && let Some(best) = part.evidence.first()
        {
            let _ = writeln!(
                out,
                "- **{}** fits `{}`: {}",
                part.part, best.name, best.words
            );
        }
        for group in &part.groups {
            let _ = writeln!(
                out,
                "- **{}** fails at {} {} (e-value 1e{:+.1}, {} steps)",
                part.part, group.family, group.group, group.log10_e_value, group.steps
            );
        }
    }
    if let Some(surprise) = &report.surprise {
        let _ = writeln!(out, "\n{}", beside::surprise_words(surprise));
    }
    let _ = writeln!(
        out,
        "\nAn e-value of {:.0e} refutes. An engine that does what it claims, within a drift of {}, \
         fails with probability {:.1e} at most{}. {} Made by `{}` ({}) on {} positions, {} rounds.",
        1.0 / report.alpha,
        report.tolerance,
        report.false_alarm,
        provided(report),
        whose(report),
        report.command,
        report.tool,
        report.positions,
        report.rounds
    );
    visible(out)
}

/// JUnit XML: one test case a hard check, a part and a tampered log.
pub fn junit(report: &AuditReport) -> String {
    let case = |class: &str, name: &str| Case {
        class: format!("specgap.audit.{class}"),
        name: name.to_owned(),
        ..Case::default()
    };
    let skipped = |case: Case, why: String| Case {
        skipped: Some(why),
        ..case
    };
    let failed = |case: Case, why: String| Case {
        failures: vec![why],
        ..case
    };
    let mut cases: Vec<Case> = Vec::new();
    for check in &report.hard_checks {
        let case = case("hard-checks", &check.name);
        cases.push(match check.violations {
            0 => case,
            _ => failed(case, violation(check)),
        });
    }
    for part in all_parts(report) {
        let case = case("parts", &part.part);
        cases.push(match part.verdict {
            Outcome::Consistent => case,
            Outcome::NotTestable => skipped(case, part.reason.clone().unwrap_or_default()),
            Outcome::Refuted => {
                let fits = beside::suspect(report, part).map_or_else(
                    || "no bug of the table".to_owned(),
                    |(name, words)| format!("{name}: {words}"),
                );
                let (e_value, steps) = (e_value(part), part.steps);
                failed(
                    case,
                    format!("e-value {e_value} on {steps} steps; fits {fits}"),
                )
            }
        });
    }
    if let Some(counts) = &report.counts {
        let words = beside::counted_words(counts);
        let case = case("counters", &counts.rule);
        cases.push(match counts.verdict {
            Outcome::Consistent => case,
            Outcome::NotTestable => skipped(case, words),
            Outcome::Refuted => failed(case, words),
        });
    }
    for one in report.negative_control.iter().flatten() {
        let case = case("negative-control", &one.name);
        cases.push(match one.refuted {
            Some(true) => case,
            Some(false) => failed(case, format!("not refused: {}", one.words)),
            None => skipped(case, one.reason.clone().unwrap_or_default()),
        });
    }
    junit::suite("specgap audit", "refuted", &cases)
}
