//! Several drafts of one target as a ladder: rates by how good the draft is.

mod figures;
mod first;
mod rungs;

use self::rungs::{Ladder, ONE_DRAFT, attains, estimate, overlap, way};
use crate::gap::{ComparedEstimate, ComparedRate, LogComparison};
use crate::page::table::{Column, Entry, Group, Row, Table};
use crate::page::words::{counted, temperature};
use crate::page::{Block, Fact, Section};
use crate::report::advice::Said;
use crate::report::certainty::Tally;
use crate::report::columns::{head, head_below};
use crate::report::sections::shown;

/// Whether all logs are of the same text and there are enough of them.
pub(super) fn is_one(comparison: &LogComparison) -> bool {
    Ladder::of(comparison).is_some()
}

/// What a reader sees first.
pub(super) fn facts(comparison: &LogComparison, said: Option<Said>) -> Option<Vec<Fact>> {
    Some(first::lines(&Ladder::of(comparison)?, said))
}

/// The section, if there is a ladder.
pub(super) fn section(comparison: &LogComparison) -> Option<Section> {
    let ladder = Ladder::of(comparison)?;
    let mut blocks = vec![Block::Table(table(&ladder))];
    let (first, others) = figures::all(&ladder);
    blocks.extend(first.into_iter().map(Block::Figure));
    if !others.is_empty() {
        blocks.push(Block::Details {
            summary: "The same at the other temperatures, and of other drafts".to_owned(),
            blocks: others.into_iter().map(Block::Figure).collect(),
        });
    }
    Some(shown(
        "ladder",
        "By the quality of the draft",
        "How rates and losses depend on how near the draft is to the target.",
        blocks,
    ))
}

/// A log a row, from the worst draft to the best.
fn table(ladder: &Ladder<'_>) -> Table {
    let &Ladder {
        comparison, at, n, ..
    } = ladder;
    let mut columns = [head("draft"), head_below("one draft", "#overlap")].concat();
    let ways: Vec<(&ComparedRate, &str)> = (ONE_DRAFT.into_iter())
        .filter_map(|one| Some((way(comparison, at, one)?, one[2])))
        .filter(|(_, words)| *words != "token")
        .collect();
    columns.extend(
        ways.iter()
            .map(|(_, words)| Column::number(*words).over("one draft")),
    );
    let rates = ladder.rates(at, n);
    // A verifier that attains its optimum everywhere is no column of its own.
    let shown: Vec<&ComparedRate> = (rates.iter().copied())
        .filter(|rate| rate.verifier.is_none() || !attains(&rates, rate, &ladder.order))
        .collect();
    columns.extend(shown.iter().map(|rate| {
        let scheme = rate.scheme.clone().unwrap_or_default();
        Column::number(rate.verifier.as_deref().unwrap_or("α*")).over(scheme)
    }));
    let t = temperature(at);
    let caption = format!(
        "Acceptance in percent by draft at T = {t}; behind the first columns of {}",
        counted(n, "draft")
    );
    let mut table = Table::new(format!("ladder-t{t}"), caption, columns);
    let mut tally = Tally::default();
    let mut known = |one: Option<&ComparedEstimate>, name: &str| {
        one.map_or_else(Entry::none, |one| {
            tally.entry(&one.estimate, one.kind, one.width_max, name)
        })
    };
    let mut rows = Vec::new();
    for &log in &ladder.order {
        let own = overlap(comparison, at).and_then(|rate| estimate(rate, log));
        let mut entries = vec![Entry::plain(ladder.draft(log)), known(own, "the overlap")];
        entries.extend(
            ways.iter()
                .map(|(rate, words)| known(estimate(rate, log), words)),
        );
        entries.extend(shown.iter().map(|rate| {
            let name = rate.verifier.as_deref().or(rate.scheme.as_deref());
            known(estimate(rate, log), name.unwrap_or_default())
        }));
        rows.push(Row::new(entries));
    }
    table.groups.push(Group {
        title: None,
        rows,
        main: true,
    });
    table.notes = vec![
        "From the least overlap to the largest. The overlap is what one sampled draft is accepted \
         with; one-hot: the draft's likeliest token, kept with its p; strict: a sampled draft that \
         has to be the target's own draw. A verifier that attains its α* has no column."
            .to_owned(),
        tally.line(),
    ];
    table
}
