//! The tables of a report on draft lengths.

use super::numbers::{bounded, cost, decimals, entry, maybe, plus_minus, rate_entry};
use crate::certainty::in_percent;
use crate::columns::{head, head_below, row, table};
use crate::sections::if_any;
use specgap_base::once::each_once;
use specgap_page::table::{Entry, Row, Table};
use specgap_page::words::{count, percent};
use specgap_replay::replay::{
    AboveFewest, AtCost, AtDepth, Chosen, ChosenPolicy, Drafts, FAMILIES, Family, LengthReport,
    PolicyResult, costs_shown,
};
use specgap_statistics::curve::Curve;
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
    let [block, one_hot, exact_match] = [
        [(Drafts::Sampled, "block"), token],
        [token, (Drafts::OneHot, "token")],
        [token, (Drafts::ExactMatch, "token")],
    ];
    let costs = || report.at_cost.iter().chain(&report.by_cost);
    let is_shown = |ways| costs().any(|at| pair(at, ways).is_some());
    let more = |at: &AtCost, ways| {
        let more = pair(at, ways).and_then(|[one, other]| at.more(one, other));
        maybe(more.as_ref(), 3)
    };
    let given = usize::from(report.at_cost.is_some());
    let caption = "What changing one setting adds to the speed-up, each side at its own best K";
    let table = table! {
        "changes", caption, (number, at) in costs().enumerate();
        "cost ratio c" => cost_entry(at, number < given),
        "#block − token verification" if is_shown(&block) => more(at, &block),
        "#sampled − one-hot drafts" if is_shown(&one_hot) => more(at, &one_hot),
        "#sampled − exact-match" if is_shown(&exact_match) => more(at, &exact_match),
    };
    let table = table.note(
        "Both lengths are chosen on half of the prompts, and the difference is paired over the \
         others: an interval above 0 shows that the first is quicker. One-hot and exact-match \
         drafts are verified token by token, and so are the sampled ones they are set against.",
    );
    // Where a pair is shown there is a cost to show it at.
    (table.columns.len() > 1).then_some(table)
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
    let sampled = (report.results.iter()).filter(|row| row.drafts == Drafts::Sampled);
    sampled.filter(move |row| row.verifier == verifier && (row.policy == "fixed") == is_fixed)
}

/// The best length and the bounds, by cost.
pub(super) fn by_cost(report: &LengthReport) -> Table {
    let first = report.by_cost.first();
    let first = first.map_or(&[][..], |at| at.chosen.as_slice());
    let (sampled, others): (Vec<_>, Vec<_>) =
        first.iter().partition(|one| one.drafts == Drafts::Sampled);
    let mut verifiers: Vec<&str> = sampled.iter().map(|one| one.verifier.as_str()).collect();
    // That of the verdict first: narrow texts have no others.
    let shown = costs_shown(report);
    let best = shown.first().and_then(|at| at.first());
    verifiers.sort_by_key(|name| best.is_none_or(|best| best.verifier != *name));
    let kinds: Vec<Drafts> = others.iter().map(|one| one.drafts).collect();
    let mut columns = head("cost ratio c");
    for name in &verifiers {
        columns.extend(head_below(name, "#K | #speed-up | #coin-blind"));
    }
    for kind in &kinds {
        columns.extend(head_below(kind.as_str(), "#K | #speed-up"));
    }
    columns.extend(head("#oracle, token"));
    let row = |at: &AtCost, given: bool| {
        let chosen = |drafts: Drafts, verifier: &str| {
            let chosen = at.found(drafts, verifier);
            let length = chosen.map(|one| {
                let prompts = [one.chosen_on, one.reported_on];
                chosen_entry(one.parameter, prompts, one.speedup_where_chosen)
            });
            [length.into(), maybe(chosen.map(|one| &one.speedup), 2)]
        };
        let mut entries = vec![cost_entry(at, given)];
        for name in &verifiers {
            let blind = at.coin_blind.iter().find(|one| one.verifier == *name);
            entries.extend(chosen(Drafts::Sampled, name));
            entries.push(maybe(blind.and_then(|one| one.speedup.as_ref()), 2));
        }
        entries.extend(kinds.iter().flat_map(|&kind| chosen(kind, "token")));
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
    let sampled = verifiers(report).into_iter().map(|verifier| {
        let rows = of(report, verifier, true).collect::<Vec<_>>();
        (verifier, format!("{verifier} verification"), rows)
    });
    let others = [Drafts::OneHot, Drafts::ExactMatch].map(|kind| {
        let rows = report.results.iter().filter(|row| row.drafts == kind);
        let rows = rows.filter(|row| row.policy == "fixed").collect();
        (kind.as_str(), format!("{kind} drafts"), rows)
    });
    let ways = sampled
        .chain(others)
        .filter(|(_, _, rows)| !rows.is_empty());
    let tables = ways.map(|(id, name, rows)| {
        // What a decoder gets where that is known, else what one round accepts.
        let has_rounds = rows.iter().any(|row| row.tokens_per_call.is_some());
        let caption = match has_rounds {
            true => format!("Fixed lengths, {name}"),
            false => format!("One round, {id}"),
        };
        table! {
            format!("fixed-{id}"), caption, row in rows.into_iter();
            "K" => row.parameter.to_string(),
            "#tokens per call" if has_rounds => maybe(row.tokens_per_call.as_ref(), 3),
            "#calls/N" if has_rounds => maybe(row.verification_rate.as_ref(), 3),
            "#discards/N" if has_rounds => maybe(row.discard_rate.as_ref(), 3),
            "#break-even c" if has_rounds => maybe(row.break_even_cost_ratio.as_ref(), 3),
            "#speed-up" if has_rounds && has_speed => maybe(row.speedup.as_ref(), 2),
            "#E[τ]" if !has_rounds => maybe(row.accepted_from_everywhere.as_ref(), 3),
        }
    });
    let mut tables: Vec<Table> = tables.collect();
    let mut groups = tables.iter().flat_map(|table| &table.groups);
    let has_dash = groups.any(|group| {
        let mut entries = group.rows.iter().flat_map(|row| &row.entries);
        entries.any(Entry::is_none)
    });
    if let Some(last) = tables.last_mut() {
        let dash = match has_dash {
            true => " A dash: no text is that long, or the timings have no such pass.",
            false => "",
        };
        last.notes
            .push(format!("Exact given the text; ±: 95% over prompts.{dash}"));
    }
    tables
}

/// Other policies, a table for each verifier.
pub(super) fn policies(report: &LengthReport) -> Vec<Table> {
    let has_speed = report.timings.is_some();
    let tables = verifiers(report).into_iter().map(|verifier| {
        let of_family = |family: &'static Family| {
            let rows = of(report, verifier, false);
            rows.filter(move |row| row.policy == family.name)
        };
        let all = || FAMILIES.iter().flat_map(|family| of_family(family).map(move |row| (family, row)));
        let caption = format!("Policies, {verifier} verification");
        let rows = table! {
            format!("policies-{verifier}"), caption, (_, row) in all();
            "x" => row.parameter.to_string(),
            "#tokens per call" => maybe(row.tokens_per_call.as_ref(), 3),
            "#calls/N" => maybe(row.verification_rate.as_ref(), 3),
            "#discards/N" => discards(row),
            "#speed-up" if has_speed => match &row.speedup {
                Some(known) => entry(known, 2),
                None => bounded("≤", row.speedup_at_most.as_ref(), 2),
            },
            "front" => row.on_front.map(|is_on_it| if is_on_it { "on it" } else { "passed" }),
        };
        let titles = all().map(|(family, _)| {
            let lacks = of_family(family).any(|row| row.discard_rate.is_none());
            let needs = if lacks { "; needs rollouts" } else { "" };
            ((), format!("{} ({}{needs})", family.name, family.decided_on.as_str()))
        });
        let needs = report.needs.as_ref().map_or_else(String::new, |command| {
            format!(
                " ≥ and ≤: what is known of the drafts; the rest needs rollouts of the draft, which are \
                 logged with: {command}"
            )
        });
        rows.grouped(titles, false).note(format!(
            "In parentheses: what a policy is decided on. Its rule is among the definitions. In the \
             last column: whether no policy with this verifier has fewer calls and fewer discards.{needs}"
        ))
    });
    tables.filter_map(if_any).collect()
}

fn discards(row: &PolicyResult) -> Entry {
    match &row.discard_rate {
        Some(known) => entry(known, 3),
        None => {
            let most = row.discard_rate_at_most.as_ref();
            Entry {
                under: most.map(|most| format!("≤ {}", plus_minus(most, 3))),
                ..bounded("≥", row.discard_rate_at_least.as_ref(), 3)
            }
        }
    }
}

/// The best parameter of each family beside the best fixed length, a table for each verifier.
pub(super) fn chosen(report: &LengthReport) -> Vec<Table> {
    let costs = costs_shown(report);
    let mut columns = head("policy");
    for at in &costs {
        let over = format!("c = {}", cost(at.cost_ratio));
        columns.extend(head_below(&over, "#x | #speed-up | #more than fixed"));
    }
    let table = |verifier: &str| {
        let fixed = costs.iter().flat_map(|at| {
            let one = at.found(Drafts::Sampled, verifier);
            [
                one.map(|one| one.parameter).into(),
                maybe(one.map(|one| &one.speedup), 2),
                Entry::none(),
            ]
        });
        let first = Row::reference(std::iter::once(Entry::plain("fixed")).chain(fixed));
        let rows = FAMILIES.iter().filter_map(|family| {
            let found = costs.iter().map(|at| {
                let mut all = at.policies.iter();
                all.find(|one| one.verifier == verifier && one.policy == family.name)
            });
            let found: Vec<Option<&ChosenPolicy>> = found.collect();
            let entries = found.iter().flat_map(|one| {
                let chosen = one.map(|one| {
                    let prompts = [one.chosen_on, one.reported_on];
                    chosen_entry(one.parameter, prompts, one.speedup_where_chosen)
                });
                let numbers = [
                    maybe(one.map(|one| &one.speedup), 2),
                    maybe(one.map(|one| &one.over_fixed), 3),
                ];
                std::iter::once(chosen.into()).chain(numbers)
            });
            let row = Row::new(std::iter::once(Entry::plain(family.name)).chain(entries));
            found.iter().any(Option::is_some).then_some(row)
        });
        let rows: Vec<Row> = rows.collect();
        let id = format!("chosen-{verifier}");
        let caption = format!("Each policy at its best, {verifier} verification");
        (!rows.is_empty()).then(|| {
            let rows = std::iter::once(first).chain(rows);
            Table::new(id, caption, columns.clone()).rows(rows).note(
                "Every number x and the fixed length are chosen on half of the prompts; speeds, \
                 and what they are more than the fixed length's, are from the others. The \
                 difference is paired by prompt: an interval above 0 shows that the policy is \
                 quicker than the best fixed length.",
            )
        })
    };
    verifiers(report).into_iter().filter_map(table).collect()
}

/// Tabulates what becomes of a round's first, second, ... token.
pub(super) fn by_depth(report: &LengthReport) -> Option<Table> {
    let rows = &report.by_depth;
    let has = |of: fn(&AtDepth) -> Option<Estimate>| rows.iter().any(|row| of(row).is_some());
    let (overlap, covered) = (has(|row| row.overlap), has(|row| row.covered));
    let rate = |one: Option<Estimate>| Entry::from(one.as_ref().map(rate_entry));
    let mut table = table! {
        "by-depth", "A round’s tokens, depth by depth, in percent", row in rows.iter();
        "#depth" => row.depth,
        "#starts" => count(row.starts),
        "#itself" => rate_entry(&row.marginal),
        "#if all before are" => rate(row.conditional),
        "#with all before" => rate_entry(&row.joint),
        "#overlap" if overlap => rate(row.overlap),
        "#draft can draw" if covered => rate(row.covered),
    };
    for column in &mut table.columns[2..5] {
        column.over = Some("accepted".to_owned());
    }
    let covered = match covered {
        true => {
            " “Draft can draw” is p’s mass on the draft’s tokens, p as it is: what it lacks to 100 is lost \
             whatever the draft’s row is."
        }
        false => "",
    };
    if_any(table.note(format!(
        "Sampled drafts, each verified by itself; over all starts with as many tokens left. E[τ] \
         adds up “with all before”, and is no sum of products of the other columns.{covered}"
    )))
}

/// The bounds at the given cost.
pub(super) fn bounds(report: &LengthReport) -> Table {
    let has_speed = report.timings.is_some();
    let all = &report.bounds;
    let oracles = [
        ("oracle", &all.oracle),
        ("oracle to the end", &all.oracle_to_the_end),
    ];
    let blind = all.coin_blind.iter().chain(&all.coin_blind_block);
    let rows = (oracles.into_iter()).chain(blind.map(|bound| ("coin-blind", bound)));
    let table = table! {
        "bounds", "What no choice of lengths can pass with a given verifier", (name, bound) in rows;
        "bound" => format!("{name}, {}", bound.verifier),
        "#calls/N" => entry(&bound.verification_rate, 3),
        "#discards/N" => entry(&bound.discard_rate, 3),
        "#speed-up" if has_speed => maybe(bound.speedup.as_ref(), 2),
    };
    table.note(
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
    let mut columns = head("K");
    columns.extend(head_below("no rule passes", "#tokens per call | #calls/N"));
    for &rule in &rules {
        columns.extend(head_below(rule, "#tokens per call | #more calls"));
    }
    let share = |value: f64| format!("{}%", decimals(100.0 * value, 2));
    let more = |one: &AboveFewest| {
        let [low, high] = one.more_calls.ci95;
        let mean = share(one.more_calls.mean);
        let text = match high > low {
            true => format!("{mean} ± {}", share((high - low) / 2.0)),
            false => mean,
        };
        Entry::titled(text, one.more_calls.mean.to_string())
    };
    let rows = rows.iter().map(|row| {
        let most = row.most.map(|most| most.to_string());
        let most = most.unwrap_or("no limit".to_owned());
        let mut row_of = row![
            most,
            entry(&row.tokens_per_call, 3),
            entry(&row.verification_rate, 3),
        ];
        row_of.entries.extend(rules.iter().flat_map(|rule| {
            let one = row.above.iter().find(|one| one.rule == *rule);
            [
                maybe(one.map(|one| &one.tokens_per_call), 3),
                one.map(more).into(),
            ]
        }));
        row_of
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
    let caption = "Positions at which sum of min(p, q) is below 1 − √(γ H(q))";
    let share = |share: f64| Entry::titled(percent(share), share.to_string());
    let table = table! {
        "entropy", caption, bound in report.entropy_bounds.iter();
        "rule" => &bound.policy,
        "#γ" => bound.gamma.to_string(),
        "#violated at" => share(bound.violated.mean),
    };
    table.note(
        "Entropy rules stop by this bound as though it held. It is no theorem: the draft's entropy \
         says nothing of the target.",
    )
}

/// Tabulates how far rounds get from their starts, by way, and each length against the one before.
pub(super) fn round_starts(report: &LengthReport) -> Vec<Table> {
    let each = report.round_starts.iter().map(|way| {
        let name = way.name();
        let caption = format!("{}: rounds by draft length", name.replace('-', " "));
        let longer = |length| way.longer.iter().find(|one| one.length == length);
        let curves = way.curves.iter().map(|curve| (curve, longer(curve.length)));
        let shares = |curve: &Curve| {
            let shares = curve.marginal.iter().map(|share| in_percent(share.mean));
            shares.collect::<Vec<_>>().join(" ")
        };
        let table = table! {
            format!("round-starts-{name}"), caption, (curve, longer) in curves;
            "#K" => curve.length,
            "#tokens a round" => entry(&curve.acceptance_length, 3),
            "#more than the length before" => maybe(longer.map(|one| &one.acceptance_length), 4),
            "#error of two runs" => longer
                .and_then(|one| one.error_of_two_runs)
                .map_or_else(String::new, |times| format!("{times:.1}")),
            "S_1 to S_K" => shares(curve),
        };
        table.note(
            "Rounds with K tokens of the text ahead, each with the probability that it starts there; S_i \
             in percent. \
             “More” is paired by prompt; “error of two runs” is the standard error that it would \
             have from two independent logs of as many prompts, over its own.",
        )
    });
    each.collect()
}
