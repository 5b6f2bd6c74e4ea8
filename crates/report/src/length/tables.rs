//! The tables of a report on draft lengths.

use super::numbers::{bounded, cost, decimals, entry, maybe, plus_minus, rate_entry};
use crate::certainty::in_percent;
use crate::columns::{head, head_below, head_if};
use crate::sections::if_any;
use specgap_base::once::each_once;
use specgap_page::table::{Column, Entry, Row, Table};
use specgap_page::words::{count, percent};
use specgap_replay::replay::{
    AtCost, AtDepth, Bound, Chosen, Drafts, FAMILIES, LengthReport, PolicyResult, costs_shown,
};
use specgap_statistics::statistics::Estimate;
use std::fmt::Display;

/// The verifiers of sampled drafts, in their order.
pub(super) fn verifiers(report: &LengthReport) -> Vec<&str> {
    let rows = report.results.iter();
    let sampled = rows.filter(|row| row.drafts == Drafts::Sampled);
    each_once(sampled.map(|row| row.verifier.as_str()))
}

/// Tabulates what changing one setting is worth, by cost: block for token verification, and sampled
/// drafts for others.
pub(super) fn changes(report: &LengthReport) -> Option<Table> {
    fn pair<'a>(at: &'a AtCost, ways: &[(Drafts, &str); 2]) -> Option<[&'a Chosen; 2]> {
        let [one, other] = ways.map(|(drafts, verifier)| at.found(drafts, verifier));
        Some([one?, other?])
    }
    let token = (Drafts::Sampled, "token");
    let pairs = [
        (
            "block − token verification",
            [(Drafts::Sampled, "block"), token],
        ),
        (
            "sampled − one-hot drafts",
            [token, (Drafts::OneHot, "token")],
        ),
        (
            "sampled − exact-match",
            [token, (Drafts::ExactMatch, "token")],
        ),
    ];
    let costs = || report.at_cost.iter().chain(&report.by_cost);
    let shown: Vec<_> = (pairs.iter())
        .filter(|(_, ways)| costs().any(|at| pair(at, ways).is_some()))
        .collect();
    let given = usize::from(report.at_cost.is_some());
    // Where a pair is shown there is a cost to show it at.
    if shown.is_empty() {
        return None;
    }
    let rows = costs().enumerate().map(|(number, at)| {
        let entries = shown.iter().map(|(_, ways)| {
            let more = pair(at, ways).and_then(|[one, other]| at.more(one, other));
            maybe(more.as_ref(), 3)
        });
        Row::new(std::iter::once(cost_entry(at, number < given)).chain(entries))
    });
    let mut columns = head("cost ratio c");
    columns.extend(shown.iter().map(|(name, _)| Column::number(*name)));
    let caption = "What changing one setting adds to the speed-up, each side at its own best K";
    Some(Table::new("changes", caption, columns).rows(rows).note(
        "Both lengths are chosen on half of the prompts, and the difference is paired over the \
         others: an interval above 0 shows that the first is quicker. One-hot and exact-match \
         drafts are verified token by token, and so are the sampled ones they are set against.",
    ))
}

/// A cost, and whether it is the one that was given.
fn cost_entry(at: &AtCost, is_given: bool) -> Entry {
    let given = if is_given { " (given)" } else { "" };
    Entry::plain(format!("{}{given}", cost(at.cost_ratio)))
}

/// Shows what was chosen on some prompts, with its speed there, and reported on others.
fn chosen_entry(parameter: impl Display, [on, reported]: [usize; 2], speed: f64) -> Entry {
    Entry::titled(
        parameter.to_string(),
        format!("chosen on {on} prompts, with {speed} there; reported on {reported} others"),
    )
}

/// The results of a policy with a verifier of sampled drafts.
pub(super) fn of<'a>(
    report: &'a LengthReport,
    verifier: &'a str,
    is_fixed: bool,
) -> impl Iterator<Item = &'a PolicyResult> {
    report
        .results
        .iter()
        .filter(|row| row.drafts == Drafts::Sampled)
        .filter(move |row| row.verifier == verifier && (row.policy == "fixed") == is_fixed)
}

/// The best length and the bounds, by cost.
pub(super) fn by_cost(report: &LengthReport) -> Table {
    let mut verifiers: Vec<&str> = report
        .by_cost
        .first()
        .map(|at| {
            let sampled = at.chosen.iter().filter(|one| one.drafts == Drafts::Sampled);
            sampled.map(|one| one.verifier.as_str()).collect()
        })
        .unwrap_or_default();
    // That of the verdict first: narrow texts have no others.
    let shown = costs_shown(report);
    let best = shown.first().and_then(|at| at.first());
    verifiers.sort_by_key(|name| best.is_none_or(|best| best.verifier != *name));
    let kinds: Vec<Drafts> = (report.by_cost.first())
        .map(|at| {
            let others = at.chosen.iter().filter(|one| one.drafts != Drafts::Sampled);
            others.map(|one| one.drafts).collect()
        })
        .unwrap_or_default();
    let mut columns = vec![Column::words("cost ratio c")];
    for name in &verifiers {
        columns.extend(head_below(name, "#K | #speed-up | #coin-blind"));
    }
    for kind in &kinds {
        columns.extend(head_below(kind.as_str(), "#K | #speed-up"));
    }
    columns.push(Column::number("oracle, token"));
    let row = |at: &AtCost, given: bool| {
        let mut entries = vec![cost_entry(at, given)];
        let length = |one: &Chosen| {
            let prompts = [one.chosen_on, one.reported_on];
            chosen_entry(one.parameter, prompts, one.speedup_where_chosen)
        };
        for name in &verifiers {
            let chosen = at.found(Drafts::Sampled, name);
            let blind = at.coin_blind.iter().find(|one| one.verifier == *name);
            entries.push(chosen.map_or_else(Entry::none, length));
            entries.push(maybe(chosen.map(|one| &one.speedup), 2));
            entries.push(maybe(blind.and_then(|one| one.speedup.as_ref()), 2));
        }
        for &kind in &kinds {
            let chosen = at.found(kind, "token");
            entries.push(chosen.map_or_else(Entry::none, length));
            entries.push(maybe(chosen.map(|one| &one.speedup), 2));
        }
        entries.push(entry(&at.oracle, 2));
        Row {
            reference: given,
            main: shown.iter().any(|one| std::ptr::eq(*one, at)),
            ..Row::new(entries)
        }
    };
    let given: Vec<Row> = report.at_cost.iter().map(|at| row(at, true)).collect();
    // Measured times are another cost than the ratio that they come to.
    let is_given = |at: &AtCost| {
        let given = report.at_cost.as_ref().filter(|_| report.timings.is_none());
        given.is_some_and(|given| given.cost_ratio == at.cost_ratio)
    };
    let others = report.by_cost.iter().filter(|at| !is_given(at));
    let caption = "The best fixed length K and its speed-up, by the cost of a draft step";
    let table = Table {
        brief: true,
        ..Table::new("by-cost", caption, columns)
    };
    let table = table.main_rows(given);
    table.rows(others.map(|at| row(at, false))).note(
        "K is chosen on half of the prompts, and its speed-up reported on the others. Coin-blind: \
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
        .map(|verifier| {
            let name = format!("{verifier} verification");
            (
                verifier,
                name,
                of(report, verifier, true).collect::<Vec<_>>(),
            )
        })
        .chain([Drafts::OneHot, Drafts::ExactMatch].map(|kind| {
            let rows = report.results.iter().filter(|row| row.drafts == kind);
            let rows = rows.filter(|row| row.policy == "fixed").collect();
            (kind.as_str(), format!("{kind} drafts"), rows)
        }))
        .filter(|(_, _, rows)| !rows.is_empty())
        .map(|(id, name, rows)| {
            // What a decoder gets where that is known, else what one round accepts.
            let has_rounds = rows.iter().any(|row| row.tokens_per_call.is_some());
            let columns = match has_rounds {
                true => [
                    head("K | #tokens per call | #calls/N | #discards/N | #break-even c"),
                    head_if(has_speed, "#speed-up"),
                ]
                .concat(),
                false => head("K | #E[τ]"),
            };
            let rows = rows.into_iter().map(|row| {
                let mut entries = vec![Entry::plain(row.parameter.to_string())];
                if has_rounds {
                    let numbers = [
                        &row.tokens_per_call,
                        &row.verification_rate,
                        &row.discard_rate,
                        &row.break_even_cost_ratio,
                    ];
                    entries.extend(numbers.map(|number| maybe(number.as_ref(), 3)));
                    entries.extend(has_speed.then(|| maybe(row.speedup.as_ref(), 2)));
                } else {
                    entries.push(maybe(row.accepted_from_everywhere.as_ref(), 3));
                }
                Row::new(entries)
            });
            let caption = if has_rounds {
                format!("Fixed lengths, {name}")
            } else {
                format!("One round, {id}")
            };
            Table::new(format!("fixed-{id}"), caption, columns).rows(rows)
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
            let columns = [
                head("x | #tokens per call | #calls/N | #discards/N"),
                head_if(has_speed, "#speed-up"),
                head("front"),
            ]
            .concat();
            let mut table = Table::new(
                format!("policies-{verifier}"),
                format!("Policies, {verifier} verification"),
                columns,
            );
            for family in FAMILIES {
                let rows = of(report, verifier, false).filter(|row| row.policy == family.name);
                let rows: Vec<Row> = rows.map(|row| policy(row, has_speed)).collect();
                let lacks = of(report, verifier, false)
                    .any(|row| row.policy == family.name && row.discard_rate.is_none());
                let needs = if lacks { "; needs rollouts" } else { "" };
                if !rows.is_empty() {
                    table.group(
                        format!("{} ({}{needs})", family.name, family.decided_on.as_str()),
                        rows,
                        false,
                    );
                }
            }
            (!table.is_empty()).then(|| {
                let mut note =
                    "In parentheses: what a policy is decided on. Its rule is among the \
                                definitions. In the last column: whether no policy with this \
                                verifier has fewer calls and fewer discards."
                        .to_owned();
                if let Some(command) = &report.needs {
                    note.push_str(&format!(
                        " ≥ and ≤: what is known of the drafts; the rest needs rollouts of the \
                         draft, which are logged with: {command}"
                    ));
                }
                table.note(note)
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
            None => {
                let least = bounded("≥", row.discard_rate_at_least.as_ref(), 3);
                let most = row.discard_rate_at_most.as_ref();
                Entry {
                    under: most.map(|most| format!("≤ {}", plus_minus(most, 3))),
                    ..least
                }
            }
        },
    ];
    entries.extend(has_speed.then(|| match &row.speedup {
        Some(known) => entry(known, 2),
        None => bounded("≤", row.speedup_at_most.as_ref(), 2),
    }));
    entries.push(match row.on_front {
        Some(true) => Entry::plain("on it"),
        Some(false) => Entry::plain("passed"),
        None => Entry::none(),
    });
    Row::new(entries)
}

/// The best parameter of each family beside the best fixed length, a table for each verifier.
pub(super) fn chosen(report: &LengthReport) -> Vec<Table> {
    let costs = costs_shown(report);
    verifiers(report)
        .into_iter()
        .filter_map(|verifier| {
            let mut columns = vec![Column::words("policy")];
            for at in &costs {
                let over = format!("c = {}", cost(at.cost_ratio));
                columns.extend(head_below(&over, "#x | #speed-up | #more than fixed"));
            }
            let fixed = costs.iter().flat_map(|at| {
                let one = at.found(Drafts::Sampled, verifier);
                [
                    one.map_or_else(Entry::none, |one| Entry::plain(one.parameter.to_string())),
                    maybe(one.map(|one| &one.speedup), 2),
                    Entry::none(),
                ]
            });
            let first = std::iter::once(Entry::plain("fixed")).chain(fixed);
            let mut rows = vec![Row::reference(first)];
            for family in FAMILIES {
                let of = |at: &&&AtCost| {
                    let mut all = at.policies.iter();
                    all.any(|one| one.verifier == verifier && one.policy == family.name)
                };
                if !costs.iter().any(|at| of(&at)) {
                    continue;
                }
                let entries = costs.iter().flat_map(|at| {
                    let mut all = at.policies.iter();
                    let one = all.find(|one| one.verifier == verifier && one.policy == family.name);
                    [
                        one.map_or_else(Entry::none, |one| {
                            let prompts = [one.chosen_on, one.reported_on];
                            chosen_entry(one.parameter, prompts, one.speedup_where_chosen)
                        }),
                        maybe(one.map(|one| &one.speedup), 2),
                        maybe(one.map(|one| &one.over_fixed), 3),
                    ]
                });
                rows.push(Row::new(
                    std::iter::once(Entry::plain(family.name)).chain(entries),
                ));
            }
            (rows.len() > 1).then(|| {
                Table::new(
                    format!("chosen-{verifier}"),
                    format!("Each policy at its best, {verifier} verification"),
                    columns,
                )
                .rows(rows)
                .note(
                    "Every number x and the fixed length are chosen on half of the prompts; speeds, \
                     and what they are more than the fixed length's, are from the others. The \
                     difference is paired by prompt: an interval above 0 shows that the policy is \
                     quicker than the best fixed length.",
                )
            })
        })
        .collect()
}

/// Tabulates what becomes of a round's first, second, ... token.
pub(super) fn by_depth(report: &LengthReport) -> Option<Table> {
    let rows = &report.by_depth;
    let has = |of: fn(&AtDepth) -> bool| rows.iter().any(of);
    let (overlap, covered) = (
        has(|row| row.overlap.is_some()),
        has(|row| row.covered.is_some()),
    );
    let columns = [
        head("#depth | #starts"),
        head_below(
            "accepted",
            "#itself | #if all before are | #with all before",
        ),
        head_if(overlap, "#overlap"),
        head_if(covered, "#draft can draw"),
    ]
    .concat();
    let rate = |one: Option<&Estimate>| one.map_or_else(Entry::none, rate_entry);
    let rows = rows.iter().map(|row| {
        let mut entries = vec![
            Entry::plain(row.depth.to_string()),
            Entry::plain(count(row.starts)),
            rate_entry(&row.marginal),
            rate(row.conditional.as_ref()),
            rate_entry(&row.joint),
        ];
        entries.extend(overlap.then(|| rate(row.overlap.as_ref())));
        entries.extend(covered.then(|| rate(row.covered.as_ref())));
        Row::new(entries)
    });
    let note = "Sampled drafts, each verified by itself; over all starts with as many tokens left. E[τ] \
                adds up “with all before”, and is no sum of products of the other columns.";
    let note = match covered {
        true => format!(
            "{note} “Draft can draw” is p’s mass on the draft’s tokens, p as it is: what it lacks to \
             100 is lost whatever the draft’s row is."
        ),
        false => note.to_owned(),
    };
    let caption = "A round’s tokens, depth by depth, in percent";
    if_any(
        Table::new("by-depth", caption, columns)
            .rows(rows)
            .note(note),
    )
}

/// The bounds at the given cost.
pub(super) fn bounds(report: &LengthReport) -> Table {
    let has_speed = report.timings.is_some();
    let columns = [
        head("bound | #calls/N | #discards/N"),
        head_if(has_speed, "#speed-up"),
    ]
    .concat();
    let row = |name: &str, bound: &Bound| {
        let mut entries = vec![
            Entry::plain(format!("{name}, {}", bound.verifier)),
            entry(&bound.verification_rate, 3),
            entry(&bound.discard_rate, 3),
        ];
        entries.extend(has_speed.then(|| maybe(bound.speedup.as_ref(), 2)));
        Row::new(entries)
    };
    let all = &report.bounds;
    let mut rows = vec![
        row("oracle", &all.oracle),
        row("oracle to the end", &all.oracle_to_the_end),
    ];
    let blind = all.coin_blind.iter().chain(&all.coin_blind_block);
    rows.extend(blind.map(|bound| row("coin-blind", bound)));
    Table::new("bounds", "What no choice of lengths can pass with a given verifier", columns)
        .rows(rows)
        .note(
            "The oracle bounds calls, discards and speed of every policy with token verification, even \
             of one who knows the text and the coins; other verifiers may make fewer calls. Coin-blind \
             bounds those that set a length when a round begins; one that looks at drafted tokens \
             may pass it.",
        )
}

/// The least calls of any lossless rule of one path, and how far rules are from it.
pub(super) fn fewest(report: &LengthReport) -> Option<Table> {
    let rows = &report.bounds.fewest_calls;
    let above = rows.iter().flat_map(|row| &row.above);
    let rules = each_once(above.map(|one| one.rule.as_str()));
    let mut columns = [
        head("K"),
        head_below("no rule passes", "#tokens per call | #calls/N"),
    ]
    .concat();
    for &rule in &rules {
        columns.extend(head_below(rule, "#tokens per call | #more calls"));
    }
    let share = |value: f64| format!("{}%", decimals(100.0 * value, 2));
    let rows = rows.iter().map(|row| {
        let most = row
            .most
            .map_or_else(|| "no limit".to_owned(), |most| most.to_string());
        let mut entries = vec![
            Entry::plain(most),
            entry(&row.tokens_per_call, 3),
            entry(&row.verification_rate, 3),
        ];
        for &rule in &rules {
            let one = row.above.iter().find(|one| one.rule == rule);
            entries.push(maybe(one.map(|one| &one.tokens_per_call), 3));
            entries.push(one.map_or_else(Entry::none, |one| {
                let [low, high] = one.more_calls.ci95;
                let mean = share(one.more_calls.mean);
                let text = match high > low {
                    true => format!("{mean} ± {}", share((high - low) / 2.0)),
                    false => mean,
                };
                Entry::titled(text, one.more_calls.mean.to_string())
            }));
        }
        Row::new(entries)
    });
    let caption = "Over several rounds no lossless rule of one path makes fewer calls";
    if_any(Table::new("fewest-calls", caption, columns).rows(rows).note(
        "At most K drafts a round, any coupling, any memory; the mean over the target's texts, \
         estimated from these: exact given the text; ±: 95% over prompts. Beside it rules that \
         draft K tokens every round; more calls: (calls - fewest)/fewest, paired by prompt. \
         Means are bounded, single texts are not: by chance a rule may come out below. “No \
         limit” is attained by block verification with drafts as long as the text. Rounds of \
         greedy-block change the next round's target and are replayed where --verifiers names \
         it; the bound holds for them too.",
    ))
}

/// Tabulates how often the entropy bound fails.
pub(super) fn entropy(report: &LengthReport) -> Table {
    let columns = head("rule | #γ | #violated at");
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
    let caption = "Positions at which sum of min(p, q) is below 1 − √(γ H(q))";
    Table::new("entropy", caption, columns).rows(rows).note(
        "Entropy rules stop by this bound as though it held. It is no theorem: the draft's entropy \
         says nothing of the target.",
    )
}

/// Tabulates how far rounds get from their starts, by way, and each length against the one before.
pub(super) fn round_starts(report: &LengthReport) -> Vec<Table> {
    let each = report.round_starts.iter().map(|way| {
        let rows = way.curves.iter().map(|curve| {
            let longer = way.longer.iter().find(|one| one.length == curve.length);
            let shares: Vec<String> = (curve.marginal.iter())
                .map(|share| in_percent(share.mean))
                .collect();
            Row::new([
                Entry::plain(curve.length.to_string()),
                entry(&curve.acceptance_length, 3),
                maybe(longer.map(|one| &one.acceptance_length), 4),
                Entry::plain(match longer.and_then(|one| one.error_of_two_runs) {
                    Some(times) => format!("{times:.1}"),
                    None => String::new(),
                }),
                Entry::plain(shares.join(" ")),
            ])
        });
        let name = way.name();
        Table::new(
            format!("round-starts-{name}"),
            format!("{}: rounds by draft length", name.replace('-', " ")),
            head(
                "#K | #tokens a round | #more than the length before | #error of two runs | \
                 S_1 to S_K",
            ),
        )
        .rows(rows)
        .note(
            "Rounds with K tokens of the text ahead, each with the probability that it starts there; S_i \
             in percent. \
             “More” is paired by prompt; “error of two runs” is the standard error that it would \
             have from two independent logs of as many prompts, over its own.",
        )
    });
    each.collect()
}
