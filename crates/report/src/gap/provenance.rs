//! What a log says of where it comes from.

use crate::columns::table;
use crate::sections::{if_any, of_all};
use specgap_measure::{GapReport, LogSummary};
use specgap_page::table::{Entry, Table};
use specgap_page::words::{count, counted, percent, temperature};
use specgap_page::{Block, Fact, Section};

/// Digits of a hash that are shown.
const SHORT_HASH: usize = 12;

/// Every log with all that is known of it.
pub(super) fn section(report: &GapReport) -> Option<Section> {
    let blocks = report.logs.iter().enumerate().flat_map(|(index, log)| {
        let first = [Block::Heading(log.name.clone()), Block::Facts(facts(log))];
        let rest = rest(log, index).map(Block::Table);
        first.into_iter().chain(rest).chain(prompts(log))
    });
    of_all(
        "provenance | Where the rows come from | Models, text and rows of every log, as the log says.",
        blocks.collect(),
    )
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
    let id = format!("rest-{index}");
    let table = table! {
        id, "Mass outside the listed tokens", row in log.rest.iter();
        "temperature" => temperature(row.temperature),
        "#target, mean" => number(row.target_mean),
        "#target, max" => number(row.target_max),
        "#draft, mean" => number(row.draft_mean),
        "#draft, max" => number(row.draft_max),
    };
    if_any(table.note(
        "Rows list only their top tokens, and the rest of the mass lies outside: on which tokens \
         is not known, and the bounds “in [a, b]” hold for all. Masses are those that the log \
         gives, averaged in double precision.",
    ))
}

/// Everything that is known of a log.
fn facts(log: &LogSummary) -> Vec<Fact> {
    let metadata = &log.metadata;
    let models = [
        ("target model", &metadata.target),
        ("draft model", &metadata.draft),
        ("tokenizer", &metadata.tokenizer),
    ];
    let models = models.into_iter().filter_map(|(name, identity)| {
        let identity = identity.as_ref()?;
        Some(Fact {
            full: identity.sha256.as_ref().map(|_| identity.to_string()),
            ..Fact::new(name, format!("{identity:.SHORT_HASH$}"))
        })
    });
    let (listed, all) = (count(log.listed), count(log.vocabulary));
    let rows = match log.rows.as_str() {
        "full" => format!("full, {all} tokens"),
        "top-heavy" => format!("top-heavy, at most {listed} of {all} tokens listed"),
        other => format!("{other}, {all} tokens"),
    };
    let [target, draft] = &log.dtypes;
    let types = match target == draft {
        true => target.clone(),
        false => format!("{target} (target), {draft} (draft)"),
    };
    let complete = match metadata.prompts.len() {
        0 => String::new(),
        prompts => format!(", {}", counted(prompts, "complete prompt")),
    };
    let applied = metadata.temperature_applied.filter(|&one| one != 1.0);
    let extent = format!("{}{complete}", counted(log.positions, "position"));
    let known = |name: &str, value: Option<String>| Some(Fact::new(name, value?));
    let measured = [
        known("runtime", metadata.runtime.clone()),
        known(
            "tokens sampled",
            metadata.sampling.as_ref().map(ToString::to_string),
        ),
        known(
            "logged rows divided by temperature",
            applied.map(temperature),
        ),
        known("rows", Some(rows)),
        known("entries", Some(types)),
        known("size", Some(extent)),
        crate::files::files(&log.files),
        known("written by", metadata.tool.clone()),
        known("command", metadata.command.clone()),
    ];
    let further = metadata.extra.iter().map(|(name, value)| {
        let text = value.as_str().map(str::to_owned);
        Fact::new(name, text.unwrap_or_else(|| value.to_string()))
    });
    let ignored = (!log.ignored_tensors.is_empty()).then(|| log.ignored_tensors.join(", "));
    models
        .chain(measured.into_iter().flatten())
        .chain(further)
        .chain(known("tensors not used", ignored))
        .collect()
}
