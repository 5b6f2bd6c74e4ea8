//! The tables of a report on trees.

use crate::certainty::in_percent;
use crate::columns::{head, head_if};
use crate::length::numbers::{bounded, decimals, entry, maybe, rate_entry};
use crate::sections::if_any;
use specgap_page::table::{Entry, Row, Table};
use specgap_replay::replay::{EqualNodes, GrownTree, TreeReport};

/// A tree for each draft law and verifier.
pub(super) fn best(report: &TreeReport) -> Table {
    let timed = report.timings.is_some();
    let has_most = report
        .best
        .iter()
        .any(|tree| tree.most_accepted_length.is_some());
    let columns = [
        head("drafts | verifier | #tokens | #depth | #E[τ]"),
        head_if(has_most, "#any rule at most"),
        head("#tokens per call"),
        head_if(timed, "#speed-up"),
    ]
    .concat();
    let rows = report.best.iter().enumerate().map(|(index, tree)| {
        let depth = tree.paths.iter().map(Vec::len).max().unwrap_or(0);
        let mut entries = vec![
            Entry::plain(tree.scheme.clone()),
            Entry::plain(tree.verifier.clone()),
            Entry::plain(tree.paths.len().to_string()),
            Entry::plain(depth.to_string()),
            entry(&tree.expected_accepted_length, 3),
        ];
        entries.extend(has_most.then(|| maybe(tree.most_accepted_length.as_ref(), 3)));
        entries.push(entry(&tree.tokens_per_call, 3));
        entries.extend(timed.then(|| maybe(tree.speedup.as_ref(), 2)));
        if index == 0 {
            entries.iter_mut().for_each(|entry| entry.strong = true);
        }
        Row::new(entries)
    });
    let first = report.best.first();
    let note = first.map_or_else(String::new, |tree| {
        format!(
            "Each is grown on {} prompts, within {} tokens, depth {} and as many children as its \
             law takes, and reported on the {} others. Ordered by what the choosing prompts say.",
            tree.chosen_on, tree.limits[0], tree.limits[1], tree.reported_on
        )
    });
    Table::new("best", "", columns).rows(rows).note(note)
}

/// The trees of stratified drafts beside others, by number of tokens.
pub(super) fn equal_nodes(report: &TreeReport) -> Vec<Table> {
    let timed = report.timings.is_some();
    let table = |one: &EqualNodes| {
        let columns = [
            head("tree | drafts | verifier | #tokens | #tokens per call | #stratified has more"),
            head_if(timed, "#speed-up more"),
        ]
        .concat();
        let mut own = vec![
            Entry::plain("by slot"),
            Entry::plain(&one.scheme),
            Entry::plain(&one.verifier),
            Entry::plain(one.nodes.to_string()),
            entry(&one.tokens_per_call, 3),
            Entry::none(),
        ];
        own.extend(timed.then(Entry::none));
        own.iter_mut().for_each(|entry| entry.strong = true);
        let others = one.beside.iter().map(|other| {
            let mut entries = vec![
                Entry::plain(&other.tree),
                Entry::plain(&other.scheme),
                Entry::plain(&other.verifier),
                Entry::plain(other.nodes.to_string()),
                entry(&other.tokens_per_call, 3),
                entry(&other.more.tokens_per_call, 3),
            ];
            entries.extend(timed.then(|| maybe(other.more.speedup.as_ref(), 2)));
            Row::new(entries)
        });
        let rows: Vec<Row> = std::iter::once(Row::new(own)).chain(others).collect();
        Table::new(
            format!("equal-nodes-{}", one.budget),
            format!("Trees of at most {} tokens", one.budget),
            columns,
        )
        .rows(rows)
        .note(
            "Shape, draft law and verifier of each are chosen on half of the prompts; all numbers \
             are of the other half. Differences are paired by prompt, with 95% intervals.",
        )
    };
    report.equal_nodes.iter().map(table).collect()
}

/// Smaller trees, made as the best one.
pub(super) fn by_budget(tree: &GrownTree) -> Table {
    let timed = tree.by_budget.iter().any(|row| row.speedup.is_some());
    let columns = [
        head("#tokens | #depth | #last gain | #E[τ] | #tokens per call"),
        head_if(timed, "#speed-up"),
    ]
    .concat();
    let rows = tree.by_budget.iter().map(|row| {
        let mut entries = vec![
            Entry::plain(row.nodes.to_string()),
            Entry::plain(row.depth.to_string()),
            Entry::titled(decimals(row.last_gain, 3), row.last_gain.to_string()),
            entry(&row.expected_accepted_length, 3),
            entry(&row.tokens_per_call, 3),
        ];
        entries.extend(timed.then(|| maybe(row.speedup.as_ref(), 2)));
        if row.nodes == tree.paths.len() {
            entries.iter_mut().for_each(|entry| entry.strong = true);
        }
        Row::new(entries)
    });
    Table::new(
        "by-budget",
        format!(
            "What a larger tree buys: {} on {} drafts",
            tree.verifier, tree.scheme
        ),
        columns,
    )
    .rows(rows)
    .note(
        "The last gain is what each token more than in the row above adds to E[τ], as the prompts \
         that choose promise it; all other numbers are from the prompts that had no say. E[τ] is over \
         the positions at which the tree's depth is left, fewer for deeper trees.",
    )
}

/// Every tree that was asked for.
pub(super) fn results(report: &TreeReport) -> Vec<Table> {
    if report.results.is_empty() {
        return Vec::new();
    }
    let timed = report.timings.is_some();
    let mut results = report.results.iter();
    let has_most = results.any(|result| result.most_accepted_length.is_some());
    let columns = [
        head("drafts | verifier | #E[τ]"),
        head_if(has_most, "#any rule at most"),
        head("#if independent | #tokens per call"),
        head_if(timed, "#speed-up"),
    ]
    .concat();
    let mut table = Table::new("trees", "Trees, by draft law and verifier", columns);
    for result in &report.results {
        let title = format!(
            "{}: {} tokens, depth {}",
            result.tree, result.nodes, result.depth
        );
        let mut entries = vec![
            Entry::plain(result.scheme.clone()),
            Entry::titled(result.verifier.clone(), result.kind.clone()),
            maybe(result.expected_accepted_length.as_ref(), 3),
        ];
        entries.extend(has_most.then(|| maybe(result.most_accepted_length.as_ref(), 3)));
        entries.extend([
            Entry::titled(
                decimals(result.sequoia_prediction, 3),
                result.sequoia_prediction.to_string(),
            ),
            entry(&result.tokens_per_call, 3),
        ]);
        entries.extend(timed.then(|| maybe(result.speedup.as_ref(), 2)));
        let row = Row::new(entries);
        match table.groups.last_mut() {
            Some(group) if group.title.as_ref() == Some(&title) => group.rows.push(row),
            _ => table.group(title, vec![row], true),
        }
    }
    vec![table]
}

/// Trees that follow the text.
pub(super) fn dynamic(report: &TreeReport) -> Option<Table> {
    let timed = report
        .dynamic
        .iter()
        .any(|tree| tree.speedup_at_least.is_some());
    let columns = [
        head("least product of q | #draft tokens a round | #E[τ] | #tokens per call"),
        head_if(timed, "#speed-up"),
    ]
    .concat();
    let levels = report.dynamic.first()?.levels;
    let needs = report
        .dynamic
        .iter()
        .any(|tree| tree.nodes_per_round.is_none());
    let rows = report.dynamic.iter().map(|tree| {
        let mut entries = vec![
            Entry::plain(tree.threshold.to_string()),
            maybe(tree.nodes_per_round.as_ref(), 1),
            maybe(tree.expected_accepted_length.as_ref(), 3),
            entry(&tree.tokens_per_call, 3),
        ];
        entries.extend(timed.then(|| bounded("≥", tree.speedup_at_least.as_ref(), 2)));
        Row::new(entries)
    });
    let mut note = format!(
        "At most {levels} deep. Calls are exact given the text, draft tokens a weighted mean over \
         rollouts."
    );
    if needs {
        note.push_str(
            " A dash: draft tokens need rollouts; the command that logs them is under “Left out”.",
        );
    }
    if timed {
        note.push_str(" ≥: as if every round took a draft step for each depth.");
    }
    let caption = "Dynamic trees: every node whose product of q is large enough";
    Some(
        Table::new("dynamic", caption, columns)
            .rows(rows)
            .note(note),
    )
}

/// Tabulates what roots' children are worth.
pub(super) fn slot_values(report: &TreeReport) -> Option<Table> {
    let columns = head("verifier | #accepted | #value");
    let caption = "A root's children by what is below them: accepted, in percent, and worth";
    let mut table = Table::new("slot-values", caption, columns);
    for root in &report.slot_values {
        let values: Vec<String> = root
            .values
            .iter()
            .map(|value| decimals(*value, 2))
            .collect();
        let mut rows: Vec<Row> = root
            .rules
            .iter()
            .map(|rule| {
                Row::new([
                    Entry::plain(rule.verifier.clone()),
                    rate_entry(&rule.accepted),
                    entry(&rule.value, 3),
                ])
            })
            .collect();
        if root.most_value.is_some() {
            rows.push(Row::reference([
                Entry::plain("no verifier more"),
                (root.most_accepted.as_ref()).map_or_else(Entry::none, rate_entry),
                bounded("≤", root.most_value.as_ref(), 3),
            ]));
        }
        table.group(
            format!(
                "{}, {} drafts, children worth {} ({} below)",
                root.tree,
                root.scheme,
                values.join(", "),
                root.values_by
            ),
            rows,
            true,
        );
    }
    if_any(table.note(
        "Means over all positions: of verifiers at the text's tokens, of the last line over the \
         rows they were drawn from, so that chance may set one above the other. The most that \
         is accepted is alpha*; the most value is an upper bound, which need not be attained.",
    ))
}

/// Neighbouring positions.
pub(super) fn independence(report: &TreeReport) -> Table {
    let columns = head(
        "drafts | verifier | #children | positional vector | accepted by depth | #correlation | \
         #within prompts",
    );
    let numbers = |all: &[f64]| {
        let words: Vec<String> = all.iter().map(|value| in_percent(*value)).collect();
        Entry::titled(words.join(" "), format!("{all:?}"))
    };
    let correlation = |value: Option<f64>| {
        value.map_or_else(Entry::none, |value| {
            Entry::titled(decimals(value, 3), value.to_string())
        })
    };
    let rows = report.independence.iter().map(|row| {
        Row::new([
            Entry::plain(row.scheme.clone()),
            Entry::plain(row.verifier.clone()),
            Entry::plain(row.drafts.to_string()),
            numbers(&row.vector),
            numbers(&row.by_level),
            correlation(row.correlation),
            correlation(row.correlation_within_prompts),
        ])
    });
    let caption = "What one position tells of the next";
    Table::new("independence", caption, columns)
    .rows(rows)
    .note(
        "Vectors in percent. Accepted by depth: of rounds that got to a depth, the share that accept a child there. \
         Correlations are of the accepted shares of neighbouring positions.",
    )
}

/// Sequoia's trees.
pub(super) fn sequoia(report: &TreeReport) -> Option<Table> {
    let columns = head(
        "drafts | verifier | #tokens | #promised | #predicted | #exact | #exact/predicted | \
         #grown tree",
    );
    let rows = report.best.iter().filter_map(|tree| {
        let sequoia = tree.sequoia.as_ref()?;
        let plain = |value: f64| Entry::titled(decimals(value, 3), value.to_string());
        Some(Row::new([
            Entry::plain(tree.scheme.clone()),
            Entry::plain(tree.verifier.clone()),
            Entry::plain(sequoia.paths.len().to_string()),
            plain(sequoia.promised),
            plain(sequoia.predicted),
            entry(&sequoia.expected_accepted_length, 3),
            plain(sequoia.ratio),
            entry(&tree.expected_accepted_length, 3),
        ]))
    });
    let caption = "Sequoia's dynamic program: what it predicts, and what its tree accepts";
    if_any(Table::new("sequoia", caption, columns).rows(rows).note(
        "Promised: by the program, from the prompts that choose. Predicted: the same tree at \
         the mean rates of the prompts that report. Exact and grown tree: E[τ] on these.",
    ))
}
