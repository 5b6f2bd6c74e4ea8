//! Groups of prompts: what fixed lengths give each, and whether groups are told apart.

use super::numbers::{cost, decimals, entry, maybe, plus_minus, rate_entry};
use crate::columns::head;
use crate::sections::shown;
use specgap_page::table::{Entry, Row, Table};
use specgap_page::words::{count, counted, listed};
use specgap_page::{Block, Section};
use specgap_replay::replay::{ByGroup, Chosen, Drafts, GroupApart, LengthReport, OfGroup};
use specgap_statistics::statistics::Estimate;

/// Groups that the first lines name.
const NAMED: usize = 4;

/// A way in words.
fn way(one: &Chosen) -> String {
    match one.drafts {
        Drafts::Sampled => format!("sampled drafts, {} verification", one.verifier),
        other => format!("{other} drafts"),
    }
}

/// Tells whether it is of these drafts and this verifier.
fn is_of(one: &Chosen, drafts: Drafts, verifier: &str) -> bool {
    one.drafts == drafts && one.verifier == verifier
}

fn tokens_per_call<'a>(of: &'a OfGroup, best: &Chosen) -> Option<&'a Estimate> {
    let found = of
        .results
        .iter()
        .find(|one| is_of(best, one.drafts, &one.verifier) && one.length as u64 == best.parameter);
    found.map(|one| &one.tokens_per_call)
}

fn apart<'a>(all: &'a ByGroup, best: &Chosen) -> impl Iterator<Item = &'a GroupApart> {
    let (drafts, verifier) = (best.drafts, best.verifier.clone());
    (all.apart.iter()).filter(move |one| one.drafts == drafts && one.verifier == verifier)
}

/// The first lines' sentence: each group, and what is told apart.
pub(super) fn sentence(report: &LengthReport) -> Option<String> {
    let all = report.by_group.as_ref()?;
    let best = all.total.chosen.first()?;
    let parts: Vec<String> = (all.groups.iter().take(NAMED))
        .filter_map(|group| {
            let mean = tokens_per_call(group, best)?;
            let name = group.group.as_deref().unwrap_or_default();
            Some(format!("{name} {}", plus_minus(mean, 2)))
        })
        .collect();
    let more = all.groups.len().saturating_sub(NAMED);
    let more = match more {
        0 => String::new(),
        more => format!(", and {more} more below"),
    };
    let told: Vec<String> = apart(all, best)
        .filter(|one| one.is_told)
        .map(|one| one.group.clone())
        .collect();
    let told = match (all.groups.len(), told.len()) {
        (0 | 1, _) => String::new(),
        (_, 0) => " The groups are not told apart.".to_owned(),
        _ => format!(" Told apart from all others: {}.", listed(&told)),
    };
    let gains: Vec<String> = apart(all, best)
        .filter_map(|one| {
            let gain = one.own_gain.filter(|gain| gain.side().is_some())?;
            Some(format!(
                "{} of its own {} {}",
                one.group,
                counted(one.own_length?, "token"),
                plus_minus(&gain, 2)
            ))
        })
        .collect();
    let own = match (all.groups.len(), gains.len()) {
        (0 | 1, _) => String::new(),
        (_, 0) => " None is shown to gain by a length of its own.".to_owned(),
        _ => format!(" Speed-up gained by an own length: {}.", listed(&gains)),
    };
    Some(format!(
        "Tokens a call with {} ({}), by group: {}{more}.{told}{own}",
        counted(best.parameter as usize, "draft"),
        way(best),
        listed(&parts)
    ))
}

pub(super) fn section(report: &LengthReport) -> Option<Section> {
    let all = report.by_group.as_ref()?;
    let tables = all.total.chosen.iter().map(|best| table(all, best));
    let mut blocks: Vec<Block> = tables.map(Block::Table).collect();
    if blocks.is_empty() {
        // One prompt chooses nothing.
        blocks.push(Block::Table(rates(all)));
    }
    Some(shown(
        "by-group",
        "By group of prompts",
        "What each workload gets, and whether it wants a length of its own.",
        blocks,
    ))
}

fn name(of: &OfGroup) -> Entry {
    Entry::plain(of.group.clone().unwrap_or_else(|| "all prompts".to_owned()))
}

/// Tabulates what is accepted, where no length is chosen.
fn rates(all: &ByGroup) -> Table {
    let columns = head("group | #prompts | #tokens | #accepted");
    let rows = std::iter::once(&all.total).chain(&all.groups);
    let rows: Vec<Row> = rows
        .map(|of| {
            Row::new([
                name(of),
                Entry::plain(count(of.prompts)),
                Entry::plain(count(of.positions)),
                rate_entry(&of.acceptance),
            ])
        })
        .collect();
    let caption = "Acceptance by group of prompts, in percent";
    Table::new("by-group", caption, columns).rows(rows)
}

fn table(all: &ByGroup, best: &Chosen) -> Table {
    let columns = head(&format!(
        "group | #prompts | #tokens | #accepted | #tokens a call, K = {} | #less all others | told \
         apart | #own best K | #speed-up | #gained by it",
        best.parameter
    ));
    let chosen = |of: &OfGroup| {
        let own = of
            .chosen
            .iter()
            .find(|one| is_of(best, one.drafts, &one.verifier));
        own.cloned()
    };
    let row = |of: &OfGroup| {
        let own = chosen(of);
        let against = apart(all, best).find(|one| Some(&one.group) == of.group.as_ref());
        Row::new([
            name(of),
            Entry::plain(count(of.prompts)),
            Entry::plain(count(of.positions)),
            rate_entry(&of.acceptance),
            maybe(tokens_per_call(of, best), 3),
            maybe(against.map(|one| &one.tokens_per_call), 3),
            against.map_or_else(Entry::none, |one| {
                Entry::plain(if one.is_told { "yes" } else { "no" })
            }),
            own.as_ref()
                .map_or_else(Entry::none, |one| Entry::plain(one.parameter.to_string())),
            maybe(own.as_ref().map(|one| &one.speedup), 2),
            maybe(against.and_then(|one| one.own_gain.as_ref()), 3),
        ])
    };
    let equal = all
        .equal_weights
        .iter()
        .find(|one| is_of(best, one.drafts, &one.verifier) && one.length as u64 == best.parameter);
    let mut rows = vec![row(&all.total)];
    rows.extend(equal.map(|one| {
        let mut entries = vec![Entry::none(); columns.len()];
        entries[0] = Entry::plain("equal weights");
        entries[4] = entry(&one.tokens_per_call, 3);
        Row::new(entries)
    }));
    rows.extend(all.groups.iter().map(row));
    let id = match best.drafts {
        Drafts::Sampled => format!("by-group-{}", best.verifier),
        other => format!("by-group-{other}"),
    };
    let own = match all.ungrouped {
        0 => String::new(),
        some => format!(
            " {} of no group count in the total alone.",
            counted(some, "prompt")
        ),
    };
    Table::new(
        id,
        format!(
            "By group at c = {}: {}",
            cost(all.cost_ratio),
            way(best)
        ),
        columns,
    )
    .rows(rows)
    .note(format!(
        "K = {} is the best of all prompts. A best K is chosen on half of the prompts and its speed-up \
         is that of the others, in an order that follows from the texts alone: no number depends on \
         the order of prompts or files, and the total's K may differ from the one above, which goes by \
         the order of the log.{own}",
        decimals(best.parameter as f64, 0)
    ))
    .note(
        "Accepted: in percent. “Less all others” and “gained” have intervals that hold together for all groups with 95%; a \
         group whose interval holds 0 is not told apart.",
    )
}
