//! The tables of a report on trees.

use crate::certainty::in_percent;
use crate::columns::{head, head_if, row, table};
use crate::length::numbers::{bounded, decimals, entry, maybe, rate_entry};
use crate::sections::if_any;
use specgap_page::table::{Entry, Row, Table};
use specgap_replay::replay::{EqualNodes, GrownTree, TreeReport};
use specgap_statistics::statistics::Estimate;

/// A tree for each draft law and verifier.
pub(super) fn best(report: &TreeReport) -> Table {
    let timed = report.timings.is_some();
    let mut all = report.best.iter();
    let has_most = all.any(|tree| tree.most_accepted_length.is_some());
    let first = report.best.first();
    let note = first.map_or_else(String::new, |tree| {
        format!(
            "Each is grown on {} prompts, within {} tokens, depth {} and as many children as its \
             law takes, and reported on the {} others. Ordered by what the choosing prompts say.",
            tree.chosen_on, tree.limits[0], tree.limits[1], tree.reported_on
        )
    });
    let table = table! {
        "best", "", (index, tree) in report.best.iter().enumerate(), bold index == 0;
        "drafts" => &tree.scheme,
        "verifier" => &tree.verifier,
        "#tokens" => tree.paths.len(),
        "#depth" => tree.paths.iter().map(Vec::len).max().unwrap_or(0),
        "#E[τ]" => entry(&tree.expected_accepted_length, 3),
        "#any rule at most" if has_most => maybe(tree.most_accepted_length.as_ref(), 3),
        "#tokens per call" => entry(&tree.tokens_per_call, 3),
        "#speed-up" if timed => maybe(tree.speedup.as_ref(), 2),
    };
    table.note(note)
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
        let row = |tree: &str, [law, rule]: [&String; 2], nodes: usize, tokens: &Estimate| {
            row![tree, law, rule, nodes, entry(tokens, 3)]
        };
        let mut own = row(
            "by slot",
            [&one.scheme, &one.verifier],
            one.nodes,
            &one.tokens_per_call,
        );
        own.entries.resize(columns.len(), Entry::none());
        let others = one.beside.iter().map(|other| {
            let names = [&other.scheme, &other.verifier];
            let mut row = row(&other.tree, names, other.nodes, &other.tokens_per_call);
            row.entries.push(entry(&other.more.tokens_per_call, 3));
            (row.entries).extend(timed.then(|| maybe(other.more.speedup.as_ref(), 2)));
            row
        });
        let id = format!("equal-nodes-{}", one.budget);
        let caption = format!("Trees of at most {} tokens", one.budget);
        let rows = std::iter::once(own.bold(true)).chain(others);
        Table::new(id, caption, columns).rows(rows).note(
            "Shape, draft law and verifier of each are chosen on half of the prompts; all numbers \
             are of the other half. Differences are paired by prompt, with 95% intervals.",
        )
    };
    report.equal_nodes.iter().map(table).collect()
}

/// Smaller trees, made as the best one.
pub(super) fn by_budget(tree: &GrownTree) -> Table {
    let timed = tree.by_budget.iter().any(|row| row.speedup.is_some());
    let caption = format!(
        "What a larger tree buys: {} on {} drafts",
        tree.verifier, tree.scheme
    );
    let table = table! {
        "by-budget", caption, row in tree.by_budget.iter(), bold row.nodes == tree.paths.len();
        "#tokens" => row.nodes,
        "#depth" => row.depth,
        "#last gain" => plain(row.last_gain),
        "#E[τ]" => entry(&row.expected_accepted_length, 3),
        "#tokens per call" => entry(&row.tokens_per_call, 3),
        "#speed-up" if timed => maybe(row.speedup.as_ref(), 2),
    };
    table.note(
        "The last gain is what each token more than in the row above adds to E[τ], as the prompts \
         that choose promise it; all other numbers are from the prompts that had no say. E[τ] is over \
         the positions at which the tree's depth is left, fewer for deeper trees.",
    )
}

/// A number without an interval.
fn plain(value: f64) -> Entry {
    Entry::titled(decimals(value, 3), value.to_string())
}

/// Every tree that was asked for.
pub(super) fn results(report: &TreeReport) -> Vec<Table> {
    if report.results.is_empty() {
        return Vec::new();
    }
    let timed = report.timings.is_some();
    let mut results = report.results.iter();
    let has_most = results.any(|result| result.most_accepted_length.is_some());
    let rows = table! {
        "trees", "Trees, by draft law and verifier", result in report.results.iter();
        "drafts" => &result.scheme,
        "verifier" => Entry::titled(&result.verifier, &result.kind),
        "#E[τ]" => maybe(result.expected_accepted_length.as_ref(), 3),
        "#any rule at most" if has_most => maybe(result.most_accepted_length.as_ref(), 3),
        "#if independent" => plain(result.sequoia_prediction),
        "#tokens per call" => entry(&result.tokens_per_call, 3),
        "#speed-up" if timed => maybe(result.speedup.as_ref(), 2),
    };
    let titles = report.results.iter().map(|result| {
        let (tree, nodes, depth) = (&result.tree, result.nodes, result.depth);
        ((), format!("{tree}: {nodes} tokens, depth {depth}"))
    });
    vec![rows.grouped(titles, true)]
}

/// Trees that follow the text.
pub(super) fn dynamic(report: &TreeReport) -> Option<Table> {
    let all = || report.dynamic.iter();
    let timed = all().any(|tree| tree.speedup_at_least.is_some());
    let levels = report.dynamic.first()?.levels;
    let mut note = format!(
        "At most {levels} deep. Calls are exact given the text and q of its tokens, draft tokens a weighted \
         mean over rollouts."
    );
    if all().any(|tree| tree.nodes_per_round.is_none()) {
        note.push_str(
            " A dash: draft tokens need rollouts; the command that logs them is under “Left out”.",
        );
    }
    if timed {
        note.push_str(" ≥: as if every round took a draft step for each depth.");
    }
    let table = table! {
        "dynamic", "Dynamic trees: every node whose product of q is large enough", tree in all();
        "least product of q" => tree.threshold.to_string(),
        "#draft tokens a round" => maybe(tree.nodes_per_round.as_ref(), 1),
        "#E[τ]" => maybe(tree.expected_accepted_length.as_ref(), 3),
        "#tokens per call" => entry(&tree.tokens_per_call, 3),
        "#speed-up" if timed => bounded("≥", tree.speedup_at_least.as_ref(), 2),
    };
    Some(table.note(note))
}

/// Tabulates what roots' children are worth.
pub(super) fn slot_values(report: &TreeReport) -> Option<Table> {
    let columns = head("verifier | #accepted | #value");
    let caption = "A root's children by what is below them: accepted, in percent, and worth";
    let mut table = Table::new("slot-values", caption, columns);
    for root in &report.slot_values {
        let values = root.values.iter().map(|value| decimals(*value, 2));
        let values: Vec<String> = values.collect();
        let rules = root.rules.iter();
        let rules = rules.map(|rule| {
            row![
                &rule.verifier,
                rate_entry(&rule.accepted),
                entry(&rule.value, 3)
            ]
        });
        let most = root.most_value.as_ref().map(|most| {
            let accepted = root.most_accepted.as_ref().map(rate_entry);
            Row::reference(row!["no verifier more", accepted, bounded("≤", Some(most), 3)].entries)
        });
        let title = format!(
            "{}, {} drafts, children worth {} ({} below)",
            root.tree,
            root.scheme,
            values.join(", "),
            root.values_by
        );
        table.group(title, rules.chain(most).collect(), true);
    }
    if_any(table.note(
        "Means over all positions: of verifiers at the text's tokens, of the last line over the \
         rows they were drawn from, so that chance may set one above the other. The most that \
         is accepted is alpha*; the most value is an upper bound, which need not be attained.",
    ))
}

/// Neighbouring positions.
pub(super) fn independence(report: &TreeReport) -> Table {
    let numbers = |all: &[f64]| {
        let words: Vec<String> = all.iter().map(|value| in_percent(*value)).collect();
        Entry::titled(words.join(" "), format!("{all:?}"))
    };
    let table = table! {
        "independence", "What one position tells of the next", row in report.independence.iter();
        "drafts" => &row.scheme,
        "verifier" => &row.verifier,
        "#children" => row.drafts,
        "positional vector" => numbers(&row.vector),
        "accepted by depth" => numbers(&row.by_level),
        "#correlation" => row.correlation.map(plain),
        "#within prompts" => row.correlation_within_prompts.map(plain),
    };
    table.note(
        "Vectors in percent. Accepted by depth: of rounds that got to a depth, the share that accept a \
         child there. Correlations are of the accepted shares of neighbouring positions.",
    )
}

/// Sequoia's trees.
pub(super) fn sequoia(report: &TreeReport) -> Option<Table> {
    let all = report.best.iter();
    let all = all.filter_map(|tree| Some((tree, tree.sequoia.as_ref()?)));
    let caption = "Sequoia's dynamic program: what it predicts, and what its tree accepts";
    let table = table! {
        "sequoia", caption, (tree, sequoia) in all;
        "drafts" => &tree.scheme,
        "verifier" => &tree.verifier,
        "#tokens" => sequoia.paths.len(),
        "#promised" => plain(sequoia.promised),
        "#predicted" => plain(sequoia.predicted),
        "#exact" => entry(&sequoia.expected_accepted_length, 3),
        "#exact/predicted" => plain(sequoia.ratio),
        "#grown tree" => entry(&tree.expected_accepted_length, 3),
    };
    if_any(table.note(
        "Promised: by the program, from the prompts that choose. Predicted: the same tree at \
         the mean rates of the prompts that report. Exact and grown tree: E[τ] on these.",
    ))
}
