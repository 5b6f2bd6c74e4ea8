//! The tables of a report on draft lengths.

use super::numbers::{bounded, cost, entry, maybe};
use crate::report::table::{Column, Entry, Group, Row, Table};
use crate::report::text::percent;
use crate::text::{AtCost, Bound, FAMILIES, LengthReport, PolicyResult};

/// The verifiers of the results, in their order.
pub(super) fn verifiers(report: &LengthReport) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in &report.results {
        if !names.contains(&row.verifier.as_str()) {
            names.push(&row.verifier);
        }
    }
    names
}

/// The results of a policy with a verifier.
pub(super) fn of<'a>(
    report: &'a LengthReport,
    verifier: &'a str,
    is_fixed: bool,
) -> impl Iterator<Item = &'a PolicyResult> {
    report
        .results
        .iter()
        .filter(move |row| row.verifier == verifier && (row.policy == "fixed") == is_fixed)
}

/// The best length and the bounds, by cost.
pub(super) fn by_cost(report: &LengthReport) -> Table {
    let verifiers: Vec<&str> = report
        .by_cost
        .first()
        .map(|at| at.chosen.iter().map(|one| one.verifier.as_str()).collect())
        .unwrap_or_default();
    let mut columns = vec![Column::words("cost ratio c")];
    for name in &verifiers {
        columns.push(Column::number("K").over(*name));
        columns.push(Column::number("speed-up").over(*name));
        columns.push(Column::number("coin-blind").over(*name));
    }
    columns.push(Column::number("oracle, token"));
    let row = |at: &AtCost, given: bool| {
        let name = if given {
            format!("{} (given)", cost(at.cost_ratio))
        } else {
            cost(at.cost_ratio)
        };
        let mut entries = vec![Entry::plain(name)];
        for name in &verifiers {
            let chosen = at.chosen.iter().find(|one| one.verifier == *name);
            let blind = at.coin_blind.iter().find(|one| one.verifier == *name);
            entries.push(chosen.map_or_else(Entry::none, |one| {
                Entry::titled(
                    one.parameter.to_string(),
                    format!(
                        "chosen on {} prompts, with {} there; reported on {} others",
                        one.chosen_on, one.speedup_where_chosen, one.reported_on
                    ),
                )
            }));
            entries.push(maybe(chosen.map(|one| &one.speedup), 2));
            entries.push(maybe(blind.and_then(|one| one.speedup.as_ref()), 2));
        }
        entries.push(entry(&at.oracle, 2));
        Row {
            reference: given,
            ..Row::new(entries)
        }
    };
    let given = report.at_cost.iter().map(|at| row(at, true));
    let rows: Vec<Row> = given
        .chain(report.by_cost.iter().map(|at| row(at, false)))
        .collect();
    Table::new(
        "by-cost",
        "The best fixed length K and its speed-up, by the cost of a draft step",
        columns,
    )
    .rows(rows)
    .note(
        "K is chosen on every other prompt, and its speed-up reported on the others. Coin-blind: \
         the most that lengths set at a round's start can give, on all prompts, for one who knows \
         the text. Oracle: the most that any lengths can give with token verification; block \
         verification is not bound by it. ±: 95%, over prompts. “(given)”: at the cost or the \
         times that were given; in all other rows a verifying pass costs a target step.",
    )
}

/// Fixed lengths, a table for each verifier.
pub(super) fn fixed(report: &LengthReport) -> Vec<Table> {
    let has_speed = report.timings.is_some();
    let mut tables: Vec<Table> = verifiers(report)
        .into_iter()
        .filter(|verifier| of(report, verifier, true).next().is_some())
        .map(|verifier| {
            let has_rounds = of(report, verifier, true).any(|row| row.tokens_per_call.is_some());
            let mut columns = vec![Column::words("K"), Column::number("E[τ]")];
            if has_rounds {
                columns.extend(
                    ["tokens per call", "calls/N", "discards/N", "break-even c"]
                        .map(Column::number),
                );
                if has_speed {
                    columns.push(Column::number("speed-up"));
                }
            }
            let rows = of(report, verifier, true).map(|row| {
                let mut entries = vec![
                    Entry::plain(row.parameter.to_string()),
                    maybe(row.expected_accepted_length.as_ref(), 3),
                ];
                if has_rounds {
                    entries.push(maybe(row.tokens_per_call.as_ref(), 3));
                    entries.push(maybe(row.verification_rate.as_ref(), 3));
                    entries.push(maybe(row.discard_rate.as_ref(), 3));
                    entries.push(maybe(row.break_even_cost_ratio.as_ref(), 3));
                    if has_speed {
                        entries.push(maybe(row.speedup.as_ref(), 2));
                    }
                }
                Row::new(entries)
            });
            let caption = if has_rounds {
                format!("Fixed lengths, {verifier} verification")
            } else {
                format!("One round, {verifier}")
            };
            Table::new(format!("fixed-{verifier}"), caption, columns).rows(rows.collect::<Vec<_>>())
        })
        .collect();
    let mut groups = tables.iter().flat_map(|table| &table.groups);
    let has_dash = groups.any(|group| {
        let mut entries = group.rows.iter().flat_map(|row| &row.entries);
        entries.any(Entry::is_none)
    });
    if let Some(last) = tables.last_mut() {
        let mut note = "Exact given the text; ±: 95% over prompts.".to_owned();
        if has_dash {
            note.push_str(" A dash: no text is that long, or the timings have no such pass.");
        }
        last.notes.push(note);
    }
    tables
}

/// Other policies, a table for each verifier.
pub(super) fn policies(report: &LengthReport) -> Vec<Table> {
    let has_speed = report.timings.is_some();
    verifiers(report)
        .into_iter()
        .filter_map(|verifier| {
            let mut columns = vec![
                Column::words("x"),
                Column::number("tokens per call"),
                Column::number("calls/N"),
                Column::number("discards/N"),
            ];
            if has_speed {
                columns.push(Column::number("speed-up"));
            }
            let mut table = Table::new(
                format!("policies-{verifier}"),
                format!("Policies, {verifier} verification"),
                columns,
            );
            for family in &FAMILIES {
                let rows = of(report, verifier, false).filter(|row| row.policy == family.name);
                let rows: Vec<Row> = rows.map(|row| policy(row, has_speed)).collect();
                if !rows.is_empty() {
                    table.groups.push(Group {
                        title: Some(format!("{} ({})", family.name, family.decided_on.as_str())),
                        rows,
                        main: false,
                    });
                }
            }
            (!table.is_empty()).then(|| {
                table.note(
                    "≥ and ≤: what the text shows of drafts up to a round's first rejection. In \
                     parentheses: what a policy is decided on. Its rule is among the definitions.",
                )
            })
        })
        .collect()
}

fn policy(row: &PolicyResult, has_speed: bool) -> Row {
    let mut entries = vec![
        Entry::plain(row.parameter.to_string()),
        maybe(row.tokens_per_call.as_ref(), 3),
        maybe(row.verification_rate.as_ref(), 3),
        match &row.discard_rate {
            Some(known) => entry(known, 3),
            None => bounded("≥", row.discard_rate_at_least.as_ref(), 3),
        },
    ];
    if has_speed {
        entries.push(match &row.speedup {
            Some(known) => entry(known, 2),
            None => bounded("≤", row.speedup_at_most.as_ref(), 2),
        });
    }
    Row::new(entries)
}

/// The bounds at the given cost.
pub(super) fn bounds(report: &LengthReport) -> Table {
    let has_speed = report.timings.is_some();
    let mut columns = vec![
        Column::words("bound"),
        Column::number("calls/N"),
        Column::number("discards/N"),
    ];
    if has_speed {
        columns.push(Column::number("speed-up"));
    }
    let row = |name: &str, bound: &Bound| {
        let mut entries = vec![
            Entry::plain(format!("{name}, {}", bound.verifier)),
            entry(&bound.verification_rate, 3),
            entry(&bound.discard_rate, 3),
        ];
        if has_speed {
            entries.push(maybe(bound.speedup.as_ref(), 2));
        }
        Row::new(entries)
    };
    let all = &report.bounds;
    let mut rows = vec![
        row("oracle", &all.oracle),
        row("oracle to the end", &all.oracle_to_the_end),
    ];
    rows.extend(all.coin_blind.iter().map(|bound| row("coin-blind", bound)));
    rows.extend(
        all.coin_blind_block
            .iter()
            .map(|bound| row("coin-blind", bound)),
    );
    Table::new("bounds", "What no choice of lengths can pass", columns)
        .rows(rows)
        .note(
            "The oracle bounds every policy with token verification, whatever it knows. Coin-blind \
             bounds those that set a length when a round begins; one that looks at drafted tokens \
             may pass it.",
        )
}

/// How often the entropy bound fails.
pub(super) fn entropy(report: &LengthReport) -> Table {
    let columns = vec![
        Column::words("rule"),
        Column::number("γ"),
        Column::number("violated at"),
    ];
    let rows = report.entropy_bounds.iter().map(|bound| {
        Row::new([
            Entry::plain(bound.policy.clone()),
            Entry::plain(bound.gamma.to_string()),
            Entry::titled(
                percent(bound.violated.mean),
                bound.violated.mean.to_string(),
            ),
        ])
    });
    Table::new(
        "entropy",
        "Positions at which sum of min(p, q) is below 1 − √(γ H(q))",
        columns,
    )
    .rows(rows.collect::<Vec<_>>())
    .note(
        "Entropy rules stop by this bound as though it held. It is no theorem: the draft's entropy \
         says nothing of the target.",
    )
}
