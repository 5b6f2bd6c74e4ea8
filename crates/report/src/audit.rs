//! The page of `specgap audit`, its JUnit file, and the block for an issue.
//!
//! What to do comes first, then the verdicts, then everything they follow from, and last what it
//! would take to find more.

mod beside;

use self::beside::outcome;
use super::columns::table;
use super::junit::{self, Case};
use super::sections::{if_any, of_table, section, shown};
use specgap_audit::audit::{
    AuditReport, Claimed, Conclusion, HardCheck, Outcome, PLAIN_TEXT, PartReport, Tampering,
};
use specgap_base::glossary;
use specgap_log::log::RowsFrom;
use specgap_page::table::{Entry, Table};
use specgap_page::words::{count, counted, rate};
use specgap_page::{Block, Fact, Page, Section, visible};
use std::fmt::Write as _;

fn count_of(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX))
}

/// The report as a page: the verdicts, what they follow from, and last what other bugs would take.
pub fn page(report: &AuditReport) -> Page {
    let control = of_table(
        "control | Negative control | Tampered logs, each of which the audit has to refuse.",
        report.negative_control.as_deref().map(tampering),
    );
    let notes = Block::List(report.notes.clone());
    let notes = (!report.notes.is_empty()).then(|| shown("notes | Notes", [notes]));
    let verdicts = shown(
        "verdicts | The verdicts | What was tested, on how much, and what came of it.",
        [verdicts(report)],
    );
    let checks = section(
        "hard-checks | Hard checks | What may never happen, however short the log.",
        [hard_checks(report)],
    );
    let words = [Block::Definitions(definitions())];
    let sections = std::iter::once(verdicts)
        .chain(report.counts.as_ref().map(beside::counts))
        .chain(evidence_sections(report))
        .chain([checks])
        .chain(control.map(Section::main))
        .chain(notes)
        .chain([
            section("words | What the words mean", words),
            section("made-by | Made by", [Block::Facts(facts(report))]),
        ]);
    Page {
        title: format!("Audit: {} as {}", report.log, report.rule),
        subtitle: report.rule_words.clone(),
        lead: lead(report),
        sections: sections.collect(),
        next: super::advice::after_audit(report),
        ..Page::default()
    }
}

fn evidence_sections(report: &AuditReport) -> impl Iterator<Item = Section> {
    let groups = of_table(
        "groups | Where it fails | Groups of steps that e-BH names at the same level.",
        if_any(groups(report)),
    );
    let evidence = of_table(
        "evidence | Evidence | Bugs and scores with an e-value of 100 or more, by part.",
        if_any(evidence(report)),
    );
    let suspects = of_table(
        "suspects | Suspects | Laws that explain the log better than the claim does, strongest \
         first.",
        if_any(suspects(report)),
    );
    let excluded = of_table(
        "excluded | What would have been found | Departures from the claim, by cause and size.",
        if_any(excluded(report)),
    );
    // Where a cause is named, groups tell little more.
    let groups = groups.map(|one| Section {
        main: report.cause.is_none(),
        ..one
    });
    let all = [suspects, excluded, groups, evidence];
    all.into_iter().flatten()
}

/// Says what every word of the report means.
pub fn definitions() -> Vec<(String, String)> {
    glossary::of("audit")
}

/// The verdict in a line: what it is, what was excluded, and on how much it rests.
pub fn conclusion(report: &AuditReport) -> String {
    if let Some(words) = beside::refuted_counts(report) {
        return words;
    }
    format!("{} {}", verdict(report), looked(report))
}

fn verdict(report: &AuditReport) -> String {
    let (rule, is_text) = (&report.rule, report.rule == "text");
    let cause = report.cause.as_ref().map(|cause| cause.name.as_str());
    match report.conclusion {
        Conclusion::AsClaimed => {
            let what = match (is_text, report.lossy_by_design) {
                (true, _) => "nothing was found against p as the law of this text.".to_owned(),
                (false, Some(tv)) => format!(
                    "nothing was found against {rule}. The rule itself is lossy: its outputs are {} \
                     from p in total variation on these rows.",
                    rate(tv)
                ),
                (false, None) => format!("nothing was found against {rule}."),
            };
            let least = report
                .parts
                .last()
                .and_then(|part| part.smallest_tv_excluded);
            let pairs = match least.filter(|least| *least > report.exclude) {
                // So far no engine is off.
                Some(least) if least > 0.5 => ", but for bans of pairs of tokens".to_owned(),
                Some(least) => format!(", bans of unknown pairs of tokens from {} on", rate(least)),
                None => String::new(),
            };
            format!(
                "As claimed: {what} Causes that are looked for would have been found from TV {} a step on{pairs}.",
                rate(report.exclude)
            )
        }
        Conclusion::LosslessOther => format!(
            "Lossless, but not the rule you name: the log fits {} and not {rule}.",
            report.fits.as_deref().unwrap_or("another rule")
        ),
        Conclusion::Lossy if cause == Some("seed-reset-each-round") => {
            "Lossy: rounds of one text draw with the same random numbers.".to_owned()
        }
        Conclusion::Lossy => "Lossy: what comes out does not follow p.".to_owned(),
        Conclusion::NotTheRule if cause == Some("shared-stream") => {
            format!("Not {rule} with numbers of its own: requests share random numbers.")
        }
        Conclusion::NotTheRule if differs_from_plain(report) => {
            "Not the text that the target writes alone; whether it follows p is another question."
                .to_owned()
        }
        Conclusion::NotTheRule if outputs_fall(report) => {
            format!("Not {rule}, and what comes out does not follow p.")
        }
        Conclusion::NotTheRule => match report.cause.as_ref().and_then(|cause| cause.tv) {
            Some(tv) if tv > 1e-3 => format!(
                "Not {rule}: the engine does something else, which would move outputs {} from p in \
                 total variation; outputs by themselves are not refuted yet.",
                rate(tv)
            ),
            _ if report.cause.is_none() && !report.open.is_empty() => {
                format!("Not {rule}: {}.", report.open.join("; "))
            }
            _ => format!("Not {rule}: whether outputs follow p is not decided at this N."),
        },
        Conclusion::Undecided => match report.open.first() {
            Some(open) => format!("Undecided: {open}."),
            None => "Undecided: the log is too short to tell anything. Log more.".to_owned(),
        },
    }
}

/// Tells whether what comes out is refuted as a draw from p, as of a claim that does not say it is one.
fn outputs_fall(report: &AuditReport) -> bool {
    let capital = report.capital.as_ref();
    capital.is_some_and(|capital| capital.log10_outputs >= capital.log10_needed)
}

fn differs_from_plain(report: &AuditReport) -> bool {
    let mut checks = report.hard_checks.iter();
    checks.any(|check| check.name == PLAIN_TEXT && check.violations > 0)
}

fn looked(report: &AuditReport) -> String {
    if report.capital.is_none() {
        return format!("({})", counted(report.positions, "record"));
    }
    let texts = counted(report.requests.texts, "text");
    let (looked, tokens) = (report.looked_at, counted(report.positions, "token"));
    match looked == report.positions {
        true => format!("({tokens}, {texts}, all looked at)"),
        false => format!("({} of {tokens} looked at, {texts})", count(looked)),
    }
}

/// Says whose p it is.
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
    let assumed = report.is_sampling_assumed.then(|| {
        "Nothing says how the text was sampled: temperature 1 and no cuts were taken. If that is \
         wrong, so is this verdict: give --temperature, --top-k, --top-p, --min-p."
            .to_owned()
    });
    let lossy = report.lossy_by_design;
    let lossy = lossy.filter(|_| report.conclusion != Conclusion::AsClaimed);
    let lossy = lossy.map(|tv| {
        format!(
            "{} is lossy by design: {} from p in total variation on these rows.",
            report.rule,
            rate(tv)
        )
    });
    let failed = report.negative_control.iter().flatten();
    let failed: Vec<&str> = failed
        .filter(|one| one.refuted == Some(false))
        .map(|one| one.name.as_str())
        .collect();
    let failed = (!failed.is_empty()).then(|| {
        format!(
            "The negative control was not refused for {}: this audit cannot find them on such \
             rows.",
            failed.join(", ")
        )
    });
    // A page folds no caution away.
    let found = (assumed.into_iter())
        .chain(findings(report))
        .map(Block::Caution);
    let last = lossy.into_iter().chain(failed).map(Block::Caution);
    (unfinished.map(Block::Caution).into_iter())
        .chain([Block::Paragraph(conclusion(report))])
        .chain(found)
        .chain(report.surprise.as_ref().map(beside::surprise))
        .chain([Block::Paragraph(whose(report))])
        .chain(last)
        .collect()
}

/// Lists what was found against the engine, and what to do.
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
    let open = report.open.iter().skip(1);
    items.extend(open.map(|open| format!("also open: {open}")));
    let refuted = || {
        let parts = report.parts.iter();
        parts.filter(|part| part.verdict == Outcome::Refuted)
    };
    if report.capital.is_none() {
        items.extend(refuted().map(|part| match part.evidence.first() {
            Some(best) => format!(
                "{}: fits {}: {}. What to do: {}.",
                part.part, best.name, best.words, best.cure
            ),
            None => format!("{}: fails in some groups alone, see below", part.part),
        }));
    } else if report.cause.is_none() && refuted().next().is_some() {
        items.push(nearest(report));
    }
    items
}

/// Says what comes nearest, where no law explains the log by far.
fn nearest(report: &AuditReport) -> String {
    let near: Vec<String> = (report.suspects.iter().take(3))
        .map(|one| format!("{} (1e{:+.0})", one.words, one.log10_e_value))
        .collect();
    match near.is_empty() {
        true => "nothing that is known explains it".to_owned(),
        false => format!(
            "no single cause stands out; nearest, with their likelihood over the claim's: {}",
            near.join("; or ")
        ),
    }
}

fn violation(check: &HardCheck) -> String {
    let first = check.first_position;
    let first = first.map_or_else(String::new, |at| format!(", first at {at}"));
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
    match part.log10_e_value.abs() < 3.0 {
        true => format!("{:.3}", part.e_value),
        false => format!("1e{:+.1}", part.log10_e_value),
    }
}

fn verdicts(report: &AuditReport) -> Table {
    let mut table = table! {
        "verdicts", "", part in report.parts.iter();
        "part" => &part.part,
        "verdict" => Entry::plain(outcome(part.verdict)).bold(part.verdict == Outcome::Refuted),
        "#steps" => count_of(part.steps),
        "#e-value" => e_value(part),
    };
    let reasons = report.parts.iter();
    let reasons =
        reasons.filter_map(|part| Some(format!("{}: {}.", part.part, part.reason.as_ref()?)));
    table.notes.extend(reasons);
    let proved = match report.noise > 0.0 {
        true => " (proved without noise)",
        false => "",
    };
    table.note(match &report.capital {
        Some(capital) => format!(
            "Evidence against the rule as a whole is 1e{:+.1}, against p as the law of what comes \
             out 1e{:+.1}. {} refutes from 1e{:+.1} on: an engine that does what it claims, with \
             noise of {} on each logit, gets there with probability {:.0e} at most, whatever \
             numbers its requests share{proved}.",
            capital.log10_rule,
            capital.log10_outputs,
            match report.lossy_by_design {
                Some(_) => "The first",
                None => "Either",
            },
            capital.log10_needed,
            report.noise,
            report.false_alarm
        ),
        None => format!(
            "A part is refuted by an e-value of {:.0e}. An engine that does what it claims, within \
             a drift of {} of the mean of every score, fails this audit with probability {:.1e} at \
             most{}.",
            1.0 / report.alpha,
            report.tolerance,
            report.false_alarm,
            provided(report)
        ),
    })
}

/// Says what the guarantee takes for granted of random numbers.
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
    table! {
        "hard-checks", "", check in report.hard_checks.iter();
        "check" => &check.name,
        "#violations" => Entry::plain(count_of(check.violations)).bold(check.violations > 0),
        "what may not happen" => &check.words,
    }
}

/// Tabulates what has evidence, for logs.
fn suspects(report: &AuditReport) -> Table {
    let table = table! {
        "suspects", "", one in report.suspects.iter();
        "suspect" => &one.name,
        "what it says" => &one.words,
        "what to do" => &one.cure,
        "#log10 of its likelihood" => format!("{:.1}", one.log10_e_value),
    };
    table.note(
        "Each is a law of what an engine does, by its likelihood over the claim's. These are no \
         e-values: the best of many sizes is shown.",
    )
}

/// Tabulates what this log would have shown, and what it would not.
fn excluded(report: &AuditReport) -> Table {
    let table = table! {
        "excluded", "", one in report.excluded.iter();
        "cause" => &one.name,
        "size" => &one.words,
        "#TV of a step" => rate(one.tv),
        "#tokens it takes" => one.tokens.map(count_of),
        "would have been found" => yes(one.found),
    };
    table.note(
        "By cause the least size that would have been found with probability 99%, and the largest \
         that would not. Estimates from the log's own tokens. TV: total variation of what comes out \
         of a step from p.",
    )
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn evidence(report: &AuditReport) -> Table {
    let parts = report.parts.iter();
    table! {
        "evidence", "",
        (part, one) in parts.flat_map(|part| part.evidence.iter().map(move |one| (part, one)));
        "part" => &part.part,
        "#log10 e" => format!("{:.1}", one.log10_e_value),
        "bug or score, and what it says" => format!("{}: {}", one.name, one.words),
    }
}

fn groups(report: &AuditReport) -> Table {
    let all = (report.parts.iter()).flat_map(|part| part.groups.iter().map(move |one| (part, one)));
    // Of places in a round there are few, of prompts many.
    let (places, prompts): (Vec<_>, Vec<_>) = all.partition(|(_, one)| one.family != "prompt");
    let mut table = table! {
        "groups", "", (part, one) in places.into_iter().chain(prompts);
        "part" => &part.part,
        "group" => format!("{} {}", one.family, one.group),
        "#steps" => count_of(one.steps),
        "#log10 of its e-value" => format!("{:.1}", one.log10_e_value),
    };
    let first = &mut table.groups[0];
    let rest = first.rows.split_off(first.rows.len().min(FIRST_GROUPS));
    if rest.is_empty() {
        return table;
    }
    first.main = true;
    let all = counted(FIRST_GROUPS + rest.len(), "group");
    table.rows(rest).note(format!("{all} fail."))
}

/// Groups that short texts have.
const FIRST_GROUPS: usize = 6;

fn tampering(control: &[Tampering]) -> Table {
    let refused = |one: &Tampering| match (one.refuted, &one.reason) {
        (Some(true), _) => "yes".to_owned(),
        (Some(false), _) => "NO".to_owned(),
        (None, reason) => format!("not done: {}", reason.as_deref().unwrap_or("no reason")),
    };
    let table = table! {
        "control", "", one in control.iter();
        "tampered with" => Entry::titled(&one.name, &one.words),
        "refused" => Entry::plain(refused(one)).bold(one.refuted == Some(false)),
        "by" => one.by.join(", "),
        "#positions played" => count_of(one.positions),
        "this log is enough" => yes(one.own_positions_enough),
    };
    table.note(
        "Each bug is played along the log's rows. The last column says whether the log is long \
         enough to find it.",
    )
}

fn facts(report: &AuditReport) -> Vec<Fact> {
    let known = |name: &str, value: Option<String>| Some(Fact::new(name, value?));
    let requests = &report.requests;
    let log = format!(
        "{}, {}, {}, {} not audited",
        report.log,
        counted(report.positions, "position"),
        counted(report.rounds, "round"),
        count(report.not_audited)
    );
    let asked = format!(
        "{}, {} multiplied, {} averaged (seeds: {})",
        counted(requests.texts, "text"),
        count(requests.fresh),
        count(requests.averaged),
        requests.seeds
    );
    let command = Some(report.command.clone()).filter(|command| !command.is_empty());
    let facts = [
        known("command", command),
        crate::files::files(&report.files),
        known("tool", Some(report.tool.clone())),
        known("log", Some(log)),
        known("target", report.target.clone()),
        known("draft", report.draft.clone()),
        known("requests", Some(asked)),
        known(
            "claimed sampling",
            report.claimed.as_ref().map(claimed_words),
        ),
    ];
    facts.into_iter().flatten().collect()
}

fn claimed_words(claimed: &Claimed) -> String {
    let mut words = format!(
        "temperature {:?}, draft temperature {:?}",
        claimed.temperature, claimed.draft_temperature
    );
    for (name, value) in [
        ("top-k", claimed.top_k.map(|k| k.to_string())),
        ("top-p", claimed.top_p.map(|p| p.to_string())),
        ("min-p", claimed.min_p.map(|p| p.to_string())),
        ("draft top-k", claimed.draft_top_k.map(|k| k.to_string())),
        ("draft top-p", claimed.draft_top_p.map(|p| p.to_string())),
        ("draft min-p", claimed.draft_min_p.map(|p| p.to_string())),
    ] {
        if let Some(value) = value {
            let _ = write!(words, ", {name} {value}");
        }
    }
    if claimed.order_matters() {
        let order = claimed.cut_order.unwrap_or_default();
        let how = (claimed.cut_order).map_or(" (assumed; else give --cut-order)", |_| "");
        let _ = write!(words, ", cut order {order}{how}");
    }
    if claimed.draft_mask {
        words.push_str(", the draft masked too");
    }
    words
}

/// A Markdown block for an issue: what was tested, what was found, how to see it again.
pub fn issue(report: &AuditReport) -> String {
    let mut out = format!(
        "### Sampling audit: `{}`\n\n{}\n\n| part | verdict | steps | e-value | fits best |\n\
         | --- | --- | ---: | ---: | --- |\n",
        report.rule,
        conclusion(report)
    );
    for part in report.parts.iter() {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            part.part,
            outcome(part.verdict),
            part.steps,
            e_value(part),
            part.suspect.as_deref().unwrap_or("")
        );
    }
    out.push('\n');
    for check in (report.hard_checks.iter()).filter(|check| check.violations > 0) {
        let _ = writeln!(out, "- **{}**: {}", check.name, violation(check));
    }
    let cause = report.cause.as_ref().map(beside::cause);
    for line in (cause.into_iter()).chain(report.counts.as_ref().map(beside::counted_words)) {
        let _ = writeln!(out, "- {line}");
    }
    for part in report.parts.iter() {
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
        "\nAn engine that does what it claims fails with probability {:.1e} at most. {} Made by `{}` \
         ({}) on {} positions, {} rounds; {} tokens were looked at.",
        report.false_alarm,
        whose(report),
        report.command,
        report.tool,
        report.positions,
        report.rounds,
        report.looked_at
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
    let verdict = case("verdict", &report.rule);
    cases.push(match report.conclusion {
        Conclusion::AsClaimed => verdict,
        Conclusion::LosslessOther if report.ok => verdict,
        Conclusion::Undecided => skipped(verdict, conclusion(report)),
        _ => failed(verdict, conclusion(report)),
    });
    for check in &report.hard_checks {
        let case = case("hard-checks", &check.name);
        cases.push(match check.violations {
            0 => case,
            _ => failed(case, violation(check)),
        });
    }
    for part in report.parts.iter() {
        let case = case("parts", &part.part);
        cases.push(match part.verdict {
            Outcome::Consistent => case,
            Outcome::NotTestable => skipped(case, part.reason.clone().unwrap_or_default()),
            Outcome::Refuted => {
                let fits = match (&report.cause, part.evidence.first()) {
                    (Some(cause), _) => format!("{}: {}", cause.name, cause.words),
                    (None, Some(best)) => format!("{}: {}", best.name, best.words),
                    (None, None) => "no single cause".to_owned(),
                };
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
