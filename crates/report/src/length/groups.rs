//! Groups of prompts: what fixed lengths give each, and whether groups are told apart.

use super::numbers::{cost, decimals, entry, maybe, plus_minus, rate_entry};
use crate::columns::{head, row, table};
use crate::sections::shown;
use specgap_page::Section;
use specgap_page::table::{Entry, Row, Table};
use specgap_page::words::{count, counted, listed};
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
    let mut results = of.results.iter();
    let found = results
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
    let tables = all.total.chosen.iter().map(|best| of_way(all, best));
    let mut tables: Vec<Table> = tables.collect();
    if tables.is_empty() {
        // One prompt chooses nothing.
        tables.push(rates(all));
    }
    Some(shown(
        "by-group | By group of prompts | What each workload gets, and whether it wants a length of its \
         own.",
        tables,
    ))
}

fn name(of: &OfGroup) -> Entry {
    Entry::plain(of.group.clone().unwrap_or_else(|| "all prompts".to_owned()))
}

/// Tabulates what is accepted, where no length is chosen.
fn rates(all: &ByGroup) -> Table {
    let caption = "Acceptance by group of prompts, in percent";
    table! {
        "by-group", caption, of in std::iter::once(&all.total).chain(&all.groups);
        "group" => name(of),
        "#prompts" => count(of.prompts),
        "#tokens" => count(of.positions),
        "#accepted" => rate_entry(&of.acceptance),
    }
}

fn of_way(all: &ByGroup, best: &Chosen) -> Table {
    let row = |of: &OfGroup| {
        let mut chosen = of.chosen.iter();
        let own = chosen.find(|one| is_of(best, one.drafts, &one.verifier));
        let against = apart(all, best).find(|one| Some(&one.group) == of.group.as_ref());
        row![
            name(of),
            count(of.prompts),
            count(of.positions),
            rate_entry(&of.acceptance),
            maybe(tokens_per_call(of, best), 3),
            maybe(against.map(|one| &one.tokens_per_call), 3),
            against.map(|one| if one.is_told { "yes" } else { "no" }),
            own.map(|one| one.parameter),
            maybe(own.map(|one| &one.speedup), 2),
            maybe(against.and_then(|one| one.own_gain.as_ref()), 3),
        ]
    };
    let columns = head(&format!(
        "group | #prompts | #tokens | #accepted | #tokens a call, K = {} | #less all others | told \
         apart | #own best K | #speed-up | #gained by it",
        best.parameter
    ));
    let mut equal = all.equal_weights.iter();
    let equal = equal
        .find(|one| is_of(best, one.drafts, &one.verifier) && one.length as u64 == best.parameter);
    let equal = equal.map(|one| {
        let mut entries = vec![Entry::none(); columns.len()];
        entries[0] = Entry::plain("equal weights");
        entries[4] = entry(&one.tokens_per_call, 3);
        Row::new(entries)
    });
    let rows = std::iter::once(row(&all.total))
        .chain(equal)
        .chain(all.groups.iter().map(row));
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
    let caption = format!("By group at c = {}: {}", cost(all.cost_ratio), way(best));
    let table = Table::new(id, caption, columns).rows(rows).note(format!(
        "K = {} is the best of all prompts. A best K is chosen on half of the prompts and its speed-up \
         is that of the others, in an order that follows from the texts alone: no number depends on \
         the order of prompts or files, and the total's K may differ from the one above, which goes by \
         the order of the log.{own}",
        decimals(best.parameter as f64, 0)
    ));
    table.note(
        "Accepted: in percent. “Less all others” and “gained” have intervals that hold together for \
         all groups with 95%; a group whose interval holds 0 is not told apart.",
    )
}
