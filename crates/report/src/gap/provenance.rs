//! What a log says of where it comes from.

use crate::columns::head;
use crate::sections::if_any;
use specgap_measure::{GapReport, LogSummary};
use specgap_page::table::{Entry, Row, Table};
use specgap_page::words::{count, counted, percent, temperature};
use specgap_page::{Block, Fact, Section};

/// Digits of a hash that are shown.
const SHORT_HASH: usize = 12;

/// Every log with all that is known of it.
pub(super) fn section(report: &GapReport) -> Option<Section> {
    let mut blocks = Vec::new();
    for (index, log) in report.logs.iter().enumerate() {
        blocks.push(Block::Heading(log.name.clone()));
        blocks.push(Block::Facts(facts(log)));
        blocks.extend(rest(log, index).map(Block::Table));
        blocks.extend(prompts(log));
    }
    (!blocks.is_empty()).then(|| {
        Section::new(
            "provenance",
            "Where the rows come from",
            "Models, text and rows of every log, as the log says.",
            blocks,
        )
    })
}

fn prompts(log: &LogSummary) -> Option<Block> {
    let prompts = &log.metadata.prompts;
    let lines = prompts.iter().map(|prompt| {
        let positions = counted(prompt.positions, "position");
        format!("{} (id {}): {positions}", prompt.name, prompt.id)
    });
    (!prompts.is_empty()).then(|| Block::Details {
        summary: counted(prompts.len(), "prompt"),
        blocks: vec![Block::List(lines.collect())],
    })
}

/// Mass that a log's rows do not list.
fn rest(log: &LogSummary, index: usize) -> Option<Table> {
    let number = |value: f64| Entry::titled(percent(value), value.to_string());
    let columns = head("temperature | #target, mean | #target, max | #draft, mean | #draft, max");
    let rows = log.rest.iter().map(|row| {
        let masses = [
            row.target_mean,
            row.target_max,
            row.draft_mean,
            row.draft_max,
        ];
        let name = Entry::plain(temperature(row.temperature));
        Row::new(std::iter::once(name).chain(masses.map(number)))
    });
    let id = format!("rest-{index}");
    let table = Table::new(id, "Mass outside the listed tokens", columns).rows(rows);
    if_any(table.note(
        "Rows list only their top tokens, and the rest of the mass lies outside: on which tokens \
         is not known, and the bounds “in [a, b]” hold for all. Masses are those that the log \
         gives, averaged in double precision.",
    ))
}

/// Everything that is known of a log.
fn facts(log: &LogSummary) -> Vec<Fact> {
    let metadata = &log.metadata;
    let mut facts = Vec::new();
    for (name, identity) in [
        ("target model", &metadata.target),
        ("draft model", &metadata.draft),
        ("tokenizer", &metadata.tokenizer),
    ] {
        if let Some(identity) = identity {
            facts.push(Fact {
                full: identity.sha256.as_ref().map(|_| identity.to_string()),
                ..Fact::new(name, format!("{identity:.SHORT_HASH$}"))
            });
        }
    }
    if let Some(runtime) = &metadata.runtime {
        facts.push(Fact::new("runtime", runtime));
    }
    if let Some(how) = &metadata.sampling {
        facts.push(Fact::new("tokens sampled", how.to_string()));
    }
    if let Some(applied) = metadata.temperature_applied.filter(|&one| one != 1.0) {
        let applied = temperature(applied);
        facts.push(Fact::new("logged rows divided by temperature", applied));
    }
    let rows = match log.rows.as_str() {
        "full" => format!("full, {} tokens", count(log.vocabulary)),
        "top-heavy" => format!(
            "top-heavy, at most {} of {} tokens listed",
            count(log.listed),
            count(log.vocabulary)
        ),
        other => format!("{other}, {} tokens", count(log.vocabulary)),
    };
    facts.push(Fact::new("rows", rows));
    let [target, draft] = &log.dtypes;
    let types = if target == draft {
        target.clone()
    } else {
        format!("{target} (target), {draft} (draft)")
    };
    facts.push(Fact::new("entries", types));
    let mut positions = counted(log.positions, "position");
    if !metadata.prompts.is_empty() {
        positions.push_str(&format!(
            ", {}",
            counted(metadata.prompts.len(), "complete prompt")
        ));
    }
    facts.push(Fact::new("size", positions));
    facts.extend(crate::files::files(&log.files));
    if let Some(tool) = &metadata.tool {
        facts.push(Fact::new("written by", tool));
    }
    if let Some(command) = &metadata.command {
        facts.push(Fact::new("command", command));
    }
    for (name, value) in &metadata.extra {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        facts.push(Fact::new(name, value));
    }
    if !log.ignored_tensors.is_empty() {
        facts.push(Fact::new(
            "tensors not used",
            log.ignored_tensors.join(", "),
        ));
    }
    facts
}
