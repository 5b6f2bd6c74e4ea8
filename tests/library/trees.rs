//! Do trees replayed along text give what an independent implementation of the same
//! definitions gives, and what the engine of chains gives where a tree is a chain? The values
//! are from one in another language, over four texts of a Markov pair (see `text.rs`), with
//! i.i.d. children and rrs at every node.

use crate::made_log::{self, rows};
use crate::replay::{DRAFT, TARGET, TEXTS, near, ratios};
use crate::says::Says;
use specgap::log::{KeptTokens, Log};
use specgap::replay::{
    Limits, NamedTree, Timings, TreeReport, TreeSettings, measure_trees, threshold_accepted,
    threshold_nodes,
};
use specgap::rounds::{ChainRule, ChildShares, FixedLength, accepted_lengths, replay, replay_tree};
use specgap::row::{Rows, Workspace};
use specgap::scheme::SchemeName;
use specgap::tree::DraftTree;
use specgap::verifier::VerifierName;

/// Trees and E[tau] over starts with the tree's depth left.
const TREES: [(&str, f64); 3] = [
    ("[[0],[1],[2]]", 0.91397145298005),
    ("[[0],[1],[0,0],[0,1],[1,0],[1,1]]", 1.5624062935716283),
    (
        "[[0],[1],[0,0],[0,1],[0,0,0],[0,0,0,0]]",
        1.9328374463715152,
    ),
];

/// What rrs gives three i.i.d. children along a text.
fn shares(text: &[usize]) -> ChildShares<f64> {
    let rule = VerifierName::RRS
        .at_token(SchemeName::WITH_REPLACEMENT)
        .unwrap();
    let mut workspace = Workspace::new();
    let mut table = Vec::new();
    for (before, &token) in std::iter::once(&0).chain(text).zip(text) {
        let rows = Rows {
            target: &TARGET[*before],
            draft: &DRAFT[*before],
        };
        let mut row = workspace.load(rows, 3).unwrap();
        table.extend(rule.shares(&mut row, token, 3, 0).unwrap());
    }
    ChildShares::new(text.len(), rule.nested, [(3, table)])
}

#[test]
fn the_engine_gives_the_other_implementations_values() {
    for (paths, expected) in TREES {
        let shape = DraftTree::from_json(paths).unwrap().shape();
        let (mut sum, mut starts) = (0.0, 0);
        for text in &TEXTS {
            let found = replay_tree(&shape, &shares(text));
            sum += found.accepted;
            starts += found.whole;
        }
        near(sum / starts as f64, expected, paths);
    }
}

#[test]
fn a_chain_is_a_fixed_length() {
    for length in [1, 2, 3, 5, 20] {
        let shape = DraftTree::named(&format!("chain-{length}"))
            .unwrap()
            .shape();
        for text in &TEXTS {
            let found = replay_tree(&shape, &shares(text));
            let ratios = ratios(text);
            let other = replay(ChainRule::TOKEN, &ratios, &FixedLength(length)).unwrap();
            near(found.calls, other.calls, "calls");
            for (one, other) in found.starts.iter().zip(&other.starts) {
                near(*one, *other, "starts");
            }
            let (sum, starts) = accepted_lengths(ChainRule::TOKEN, &ratios, length)[length - 1];
            near(found.accepted, sum, "accepted");
            assert_eq!(found.whole, starts);
            // A chain's drafts by levels are the drafts of its rounds.
            let levels = (0..).zip(&found.rounds);
            let drafts: f64 = levels.map(|(n, count)| f64::from(n) * count).sum();
            near(drafts, other.drafts_set_at_start(), "drafts");
        }
    }
}

/// All paths of at most so many tokens behind a token, with their products of q.
fn nodes(before: usize, levels: usize) -> Vec<(Vec<usize>, f64)> {
    let mut all = vec![(Vec::new(), 1.0)];
    let mut from = 0;
    for _ in 0..levels {
        let to = all.len();
        for index in from..to {
            let (path, product): (Vec<usize>, f64) = all[index].clone();
            let last = path.last().copied().unwrap_or(before);
            for (token, q) in DRAFT[last].iter().enumerate() {
                all.push(([&path[..], &[token]].concat(), product * q));
            }
        }
        from = to;
    }
    all.remove(0);
    all
}

/// The tree itself, node by node, against what text and rollouts tell of it.
#[test]
fn dynamic_trees_are_those_of_the_likeliest_nodes() {
    for (threshold, levels) in [(0.3, 3), (0.1, 3), (0.03, 4)] {
        for before in 0..5 {
            let all = nodes(before, levels);
            let tree: Vec<_> = all.iter().filter(|node| node.1 >= threshold).collect();
            // Every rollout with its probability.
            let mut mean = 0.0;
            for (path, chance) in all.iter().filter(|node| node.0.len() == levels) {
                let befores = std::iter::once(&before).chain(path);
                let q: Vec<f64> = befores.zip(path).map(|(a, &b)| DRAFT[*a][b]).collect();
                mean += chance * threshold_nodes(&q, &threshold, levels);
            }
            near(mean, tree.len() as f64, "nodes");
            for text in TEXTS.iter().map(|text| &text[..levels]) {
                let befores = std::iter::once(&before).chain(text);
                let q: Vec<f64> = befores.zip(text).map(|(a, &b)| DRAFT[*a][b]).collect();
                let within = (1..=levels)
                    .take_while(|&depth| tree.iter().any(|node| node.0 == text[..depth]))
                    .count();
                assert_eq!(threshold_accepted(&q, &threshold, levels), within);
            }
        }
    }
}

/// Rounds by hand, and the mean of their nodes over rollouts.
#[test]
fn a_report_follows_dynamic_trees() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    crate::replay_rollouts::write(&path, &crate::replay_rollouts::WHOLE);
    let settings = TreeSettings {
        schemes: vec![SchemeName::TOP],
        timings: Some(Timings::cost_ratio(0.1).unwrap()),
        limits: Limits {
            budget: 6,
            depth: 8,
            branch: 3,
        },
        ..settings(&["chain-2"])
    };
    let log = || Log::open(&path).unwrap();
    let report = measure_trees(&[log()], &settings, "test", &|_| {}).unwrap();
    let q = |before: usize, tokens: &[usize]| -> Vec<f64> {
        let befores = std::iter::once(&before).chain(tokens);
        befores.zip(tokens).map(|(a, &b)| DRAFT[*a][b]).collect()
    };
    assert_eq!(report.dynamic.len(), 6);
    for tree in &report.dynamic {
        assert_eq!(tree.levels, 4, "as long as the rollouts");
        let (mut calls, mut nodes, mut accepted, mut starts, mut steps) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (prompt, text) in TEXTS.iter().enumerate() {
            let (mut start, mut before) = (0, 0);
            while start < text.len() {
                let room = 4.min(text.len() - start - 1);
                let rollout = crate::replay_rollouts::rollout_tokens(prompt, start, 4);
                nodes += threshold_nodes(&q(before, &rollout), &tree.threshold, room);
                calls += 1.0;
                steps += room as f64;
                let on = q(before, &text[start..]);
                start += threshold_accepted(&on, &tree.threshold, room) + 1;
                before = text[start - 1];
            }
            for start in 0..=text.len() - 4 {
                let before = if start == 0 { 0 } else { text[start - 1] };
                let on = q(before, &text[start..]);
                accepted += threshold_accepted(&on, &tree.threshold, 4) as f64;
                starts += 1.0;
            }
        }
        // Rows of the log are logarithms of type f32.
        let close = |found: f64, expected: f64, what: &str| {
            assert!(
                (found - expected).abs() < 1e-5,
                "{what}: {found}, {expected}"
            );
        };
        close(tree.tokens_per_call.mean, 56.0 / calls, "tokens per call");
        close(tree.nodes_per_round.unwrap().mean, nodes / calls, "nodes");
        let length = tree.expected_accepted_length.unwrap().mean;
        close(length, accepted / starts, "E[tau]");
        let speed = 56.0 / (calls + 0.1 * steps);
        close(tree.speedup_at_least.unwrap().mean, speed, "speed");
    }
    let page = specgap::report::tree::page(&report).markdown();
    page.says("Deterministic trees that follow the text");
    // Of a log without rollouts the calls are known, and the command for the rest.
    let plain = folder.path().join("plain");
    made_log::write(&plain, &rows(30), KeptTokens::All);
    let plain = Log::open(&plain).unwrap();
    let report = measure_trees(&[plain], &settings, "test", &|_| {}).unwrap();
    assert!(
        report
            .dynamic
            .iter()
            .all(|tree| tree.nodes_per_round.is_none())
    );
    assert!(
        report
            .dynamic
            .iter()
            .all(|tree| tree.tokens_per_call.mean >= 1.0)
    );
    let says = "specgap capture ... --rollouts 8 --every 4";
    assert!(report.left_out.iter().any(|line| line.contains(says)));
}

/// Roots' children are worth what is below them, and no rule has more than the bound.
#[test]
fn what_slots_are_worth_is_told_beside_what_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    made_log::write(&path, &rows(30), KeptTokens::All);
    let log = || Log::open(&path).unwrap();
    let settings = TreeSettings {
        slot_values: true,
        price: false,
        ..settings(&["chain-2", "2x1", "2x2", "3x1"])
    };
    let report = measure_trees(&[log()], &settings, "test", &|_| {}).unwrap();
    let asked = specgap::gap::Settings::new(&[1.0], &[2, 3], 0).unwrap();
    let gap = specgap::gap::measure(&[log()], &asked, "", &|_| ()).unwrap();
    let mut bounded = 0;
    let mut worth_more = 0;
    for root in &report.slot_values {
        let what = format!("{} {}", root.tree, root.scheme);
        let n: usize = root.tree[..1].parse().unwrap();
        assert_eq!(root.values.len(), n, "{what}");
        for value in &root.values {
            let expected = if root.tree == "2x2" {
                // Below is a tree of its own, "2x1".
                let mut below = report.results.iter();
                let below = below.find(|row| {
                    (row.tree.as_str(), &row.scheme, &row.verifier)
                        == ("2x1", &root.scheme, &root.values_by)
                });
                1.0 + below.unwrap().expected_accepted_length.unwrap().mean
            } else {
                1.0
            };
            near(*value, expected, &what);
        }
        for rule in &root.rules {
            if root.tree != "2x2" {
                near(rule.value.mean, rule.accepted.mean, &what);
            }
            worth_more += usize::from(rule.value.mean > 1.2 * rule.accepted.mean);
        }
        let mut cells = gap.cells.iter();
        let cell = cells.find(|cell| cell.drafts == n && cell.scheme == root.scheme);
        if let (Some(cell), Some(most)) = (cell, root.most_accepted) {
            let optimum = cell.optimal_acceptance_rate.estimate.mean;
            assert!((most.mean - optimum).abs() < 1e-9, "{what}");
            // Layers of alpha*: between all of it at the least and at the largest value.
            let most_value = root.most_value.unwrap().mean;
            let [low, high] =
                [f64::min, f64::max].map(|of| root.values.iter().copied().reduce(of).unwrap());
            assert!(low * optimum - 1e-9 <= most_value && most_value <= high * optimum + 1e-9);
            bounded += 1;
        }
    }
    assert!(bounded >= 6 && worth_more > 3, "{bounded} {worth_more}");
    let page = specgap::report::tree::page(&report).markdown();
    assert!(page.contains("no verifier more"), "{page}");
}

/// v = (3, 1), p = (.5, .3, .2), q = (.2, .3, .5), two i.i.d. drafts: the most value is 2.2.
#[test]
fn rules_of_the_example_have_less_than_the_most_value() {
    let rows = Rows {
        target: &[0.5, 0.3, 0.2],
        draft: &[0.2, 0.3, 0.5],
    };
    // rho in 1..2.5: b = .2 + .5/rho and 1 - (1 - b)^2 = rho b.
    let b_of = |rho: f64| 0.2 + 0.5 / rho;
    let (mut low, mut high) = (1.0, 2.5);
    for _ in 0..200 {
        let rho = (low + high) / 2.0;
        let b = b_of(rho);
        if b * (2.0 - b) > rho * b {
            low = rho;
        } else {
            high = rho;
        }
    }
    let b = b_of(low);
    let k_seq = b * (2.0 - b);
    let mut workspace = Workspace::new();
    for (rule, accepted, value) in [
        (VerifierName::RRS, 0.76, 2.16),
        (VerifierName::NAIVE_TREE, 0.76, 2.16),
        (VerifierName::K_SEQ, k_seq, 2.0 * b + k_seq),
    ] {
        let shares = rule.at_token(SchemeName::WITH_REPLACEMENT).unwrap();
        let (mut of_value, mut of_accepted) = (0.0, 0.0);
        for (token, p) in rows.target.iter().enumerate() {
            let mut row = workspace.load(rows, 2).unwrap();
            let found = shares.shares(&mut row, token, 2, 0).unwrap();
            of_accepted += p * found.iter().sum::<f64>();
            of_value += p * (3.0 * found[0] + found[1]);
        }
        near(of_accepted, accepted, &format!("{rule} accepts"));
        near(of_value, value, &format!("{rule} is worth"));
        assert!(of_value < 2.2);
    }
}

pub fn settings(trees: &[&str]) -> TreeSettings {
    TreeSettings {
        trees: trees
            .iter()
            .map(|name| NamedTree {
                name: (*name).to_owned(),
                tree: DraftTree::named(name).unwrap(),
            })
            .collect(),
        schemes: SchemeName::ALL.to_vec(),
        verifiers: TreeSettings::rules().collect(),
        limits: Limits {
            budget: 6,
            depth: 3,
            branch: 3,
        },
        timings: None,
        temperature: None,
        slot_values: false,
        price: false,
        engine: None,
        seed: 0,
        parts: specgap::replay::Parts::Whole,
    }
}

fn report(folder: &std::path::Path, tokens: KeptTokens) -> TreeReport {
    let log = folder.join(format!("{tokens:?}").replace(|c: char| !c.is_alphanumeric(), ""));
    made_log::write(&log, &rows(30), tokens);
    let log = Log::open(&log).unwrap();
    measure_trees(
        &[log],
        &settings(&["chain-2", "2x2", "3x1"]),
        "test",
        &|_| {},
    )
    .unwrap()
}

/// With times no tree is slower on the prompts that choose than those grown within fewer levels.
#[test]
fn the_quickest_of_all_depths_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    made_log::write(&path, &rows(40), KeptTokens::All);
    let log = Log::open(&path).unwrap();
    for cost in [0.05, 0.2, 0.4] {
        let mut before = std::collections::BTreeMap::new();
        for depth in 1..=4 {
            let mut settings = settings(&["chain-1"]);
            settings.limits.depth = depth;
            settings.timings = Some(Timings::cost_ratio(cost).unwrap());
            let logs = std::slice::from_ref(&log);
            let report = measure_trees(logs, &settings, "test", &|_| {}).unwrap();
            for tree in report.best {
                let pair = (tree.scheme, tree.verifier);
                let speed = tree.speedup_where_chosen.unwrap();
                let shallower = before.insert(pair.clone(), speed).unwrap_or(0.0);
                assert!(speed >= shallower - 1e-12, "{cost} {depth} {pair:?}");
            }
        }
    }
}

/// From the leaves: a chain as block verification, one level as the rule at a node, and of i.i.d.
/// children no less than `rrs`; of rows that list some tokens in one pass, between bounds.
#[test]
fn trees_from_their_leaves_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts");
    crate::replay_rollouts::write(&path, &crate::replay_rollouts::WHOLE);
    let log = || Log::open(&path).unwrap();
    let asked = settings(&["chain-2", "2x2", "3x1"]);
    let whole = measure_trees(&[log()], &asked, "test", &|_| {}).unwrap();
    let value = |tree: &str, scheme: &str, verifier: &str| {
        let mut of = whole.results.iter().filter(|result| {
            (result.tree.as_str(), result.scheme.as_str()) == (tree, scheme)
                && result.verifier == verifier
        });
        of.next().unwrap().tokens_per_call.mean
    };
    let lengths = specgap::replay::LengthSettings::default();
    let lengths = specgap::replay::measure_lengths(&[log()], &lengths, "", &|_| ()).unwrap();
    let of_two = specgap::replay::Parameter::Count(2);
    let block = lengths
        .results
        .iter()
        .find(|one| one.policy == "fixed" && one.verifier == "block" && one.parameter == of_two);
    let block = block.unwrap().tokens_per_call.unwrap().mean;
    for law in ["with-replacement", "stratified"] {
        near(value("chain-2", law, "traversal"), block, law);
    }
    let at_a_node = [
        ("with-replacement", "traversal", "rrs"),
        ("stratified", "traversal-4", "level-4"),
        ("stratified-independent", "traversal-4", "level-4"),
    ];
    for (law, from_leaves, at_a_node) in at_a_node {
        near(
            value("3x1", law, from_leaves),
            value("3x1", law, at_a_node),
            law,
        );
    }
    let [leaves, root] = ["traversal", "rrs"].map(|rule| value("2x2", "with-replacement", rule));
    assert!(leaves > root + 1e-3, "{leaves} {root}");
    // No rule passes what drafts allow, and none but these is known to come near.
    for one in &whole.results {
        let most = one.most_accepted_length.map(|most| most.mean);
        let accepted = one.expected_accepted_length.unwrap().mean;
        match ["with-replacement", "stratified", "stratified-independent"]
            .contains(&one.scheme.as_str())
        {
            true => assert!(accepted <= most.unwrap() + 1e-12, "{one:?}"),
            false => assert_eq!(most, None, "{one:?}"),
        }
    }
    let grown = whole
        .best
        .iter()
        .find(|one| one.verifier == "traversal-4")
        .unwrap();
    assert!(grown.most_accepted_length.unwrap().mean >= grown.expected_accepted_length.mean);
    // No engine has it.
    let now = &whole.reference.as_ref().unwrap().verifier;
    assert!(!now.starts_with("traversal"), "{now}");
    assert!(grown.sequoia.is_none() && grown.tokens_per_call.mean > 1.0);
    assert!(
        whole
            .independence
            .iter()
            .all(|one| !one.verifier.starts_with("traversal"))
    );

    let listed = report(
        folder.path(),
        KeptTokens::Top {
            count: 3,
            rest_temperatures: vec![1.0],
        },
    );
    // One pass has bounds, and passes by levels have none.
    let of = |rule: &'static str| (listed.results.iter()).filter(move |one| one.verifier == rule);
    assert!(of("traversal").count() > 3 && of("traversal-4").count() == 0);
    for one in of("traversal") {
        let ends = one.tokens_per_call.truncation.unwrap();
        assert!(
            ends[0] < ends[1] && one.most_accepted_length.is_none(),
            "{one:?}"
        );
    }
    let first = listed.best.first().unwrap();
    assert!(first.tokens_per_call.truncation.is_some(), "{first:?}");
    let left_out = listed.left_out.join("\n");
    assert!(
        left_out.contains("traversal-4 on with-replacement drafts")
            && !left_out.contains("traversal on"),
        "{left_out}"
    );
    assert!(left_out.contains("Log full rows"), "{left_out}");
}

#[test]
fn a_report_has_every_law_and_rule_that_fits_and_says_what_it_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(folder.path(), KeptTokens::All);
    assert_eq!((report.of.positions, report.of.clusters), (30, 6));
    for (tree, nodes) in [("chain-2", 2), ("2x2", 6), ("3x1", 3)] {
        for scheme in SchemeName::ALL {
            for verifier in VerifierName::ALL {
                let fits = [1, 2, 3].map(|n| {
                    let children = match tree {
                        "chain-2" => n == 1,
                        "2x2" => n == 2,
                        _ => n == 3,
                    };
                    children && scheme.fits(n) && verifier.is_lossless(scheme, n)
                });
                let expected = verifier.at_token(scheme).is_some() && fits.contains(&true);
                let found = report.results.iter().find(|result| {
                    (
                        result.tree.as_str(),
                        result.scheme.as_str(),
                        result.verifier.as_str(),
                    ) == (tree, scheme.as_str(), verifier.as_str())
                });
                assert_eq!(found.is_some(), expected, "{tree} {scheme} {verifier}");
                let Some(found) = found else { continue };
                assert_eq!(found.nodes, nodes);
                let accepted = found.expected_accepted_length.unwrap().mean;
                assert!((0.0..=2.0).contains(&accepted), "{accepted}");
                assert!(found.tokens_per_call.mean >= 1.0);
            }
        }
    }
    // The same tree: lossless rules of one draft accept alike, and rejection beats a look.
    let value = |tree: &str, scheme: &str, verifier: &str| {
        let of = report.results.iter().find(|result| {
            (
                result.tree.as_str(),
                result.scheme.as_str(),
                result.verifier.as_str(),
            ) == (tree, scheme, verifier)
        });
        of.unwrap().tokens_per_call.mean
    };
    for rule in ["rrs", "k-seq", "naive-tree"] {
        near(
            value("chain-2", "with-replacement", rule),
            value("chain-2", "with-replacement", "token"),
            rule,
        );
    }
    assert!(
        value("2x2", "with-replacement", "rrs") > value("2x2", "with-replacement", "exact-match")
    );
    let left_out = report.left_out.join("\n");
    for words in [
        "optimal on with-replacement",
        "EAGLE-2",
        "spechub on hub drafts: chain-2",
    ] {
        assert!(left_out.contains(words), "{words}: {left_out}");
    }
    // The best trees are within their limits, and their exports are the same tree.
    assert!(!report.best.is_empty());
    for best in &report.best {
        let tree = DraftTree::new(best.paths.clone()).unwrap();
        assert!(tree.len() <= 6 && tree.depth() <= 3);
        assert_eq!(tree.sequoia(), best.growmap);
        assert_eq!((best.chosen_on, best.reported_on), (3, 3));
        let reached: f64 = best.drawn.nodes.iter().map(|node| node.reached).sum();
        near(
            reached,
            best.expected_accepted_length.mean,
            "sum over nodes",
        );
    }
    // Differences are of the same prompts, and the page says what they do not tell apart.
    let first = &report.best[0];
    assert!(first.minus_best.is_none());
    for best in &report.best[1..] {
        let difference = best.minus_best.unwrap().tokens_per_call.mean;
        let expected = best.tokens_per_call.mean - first.tokens_per_call.mean;
        assert!(
            (difference - expected).abs() < 1e-12,
            "{difference} {expected}"
        );
    }
    let reference = report.reference.as_ref().unwrap();
    assert!(report.trees.contains_key(&reference.tree));
    let difference = &reference.best_minus_this.tokens_per_call;
    let expected = first.tokens_per_call.mean - reference.tokens_per_call.mean;
    assert!((difference.mean - expected).abs() < 1e-12);
    let first_lines = |mut report: TreeReport| {
        // The rows are made, and the text is not theirs: then nothing is advised.
        report.surprise.z = Some(0.0);
        let text = specgap::report::tree::page(&report).markdown();
        text.split("\n## ").next().unwrap().to_owned()
    };
    let said = |mean: f64| {
        let mut report = report.clone();
        let reference = report.reference.as_mut().unwrap();
        reference.best_minus_this.tokens_per_call = specgap::statistics::Estimate {
            mean,
            ci95: [mean - 0.1, mean + 0.1],
            truncation: None,
            between: None,
        };
        first_lines(report)
    };
    let verify = format!("verify {} with", reference.tree);
    let verdict_has_it = |lead: &str| {
        let mut bold = lead.lines().filter(|line| line.starts_with("**"));
        bold.next().unwrap().contains(&verify)
    };
    let apart = said(0.5);
    assert!(
        apart.contains("draft the tree below")
            && apart.contains("0.50 ± 0.10")
            && !verdict_has_it(&apart),
        "{apart}"
    );
    let alike = said(0.05);
    assert!(
        verdict_has_it(&alike) && alike.contains("is not told apart"),
        "{alike}"
    );
    assert!(verdict_has_it(&said(-0.5)));
    // Of a report that has no such difference, as older ones, nothing is advised.
    let alone = first_lines(TreeReport {
        reference: None,
        ..report.clone()
    });
    assert!(
        !alone.contains("draft the tree")
            && alone.contains("No tree that engines have is compared"),
        "{alone}"
    );

    // Stratified drafts by slot, at the budget; EAGLE's tree was not named.
    let [equal] = report.equal_nodes.as_slice() else {
        panic!("{:?}", report.equal_nodes);
    };
    assert_eq!(equal.budget, 6);
    assert!(equal.nodes <= 6 && equal.depth <= 3 && equal.promised > 0.0);
    assert!(equal.scheme.starts_with("stratified"));
    assert_eq!(equal.paths.len(), equal.nodes);
    let [sequoia] = equal.beside.as_slice() else {
        panic!("{:?}", equal.beside);
    };
    assert_eq!(sequoia.tree, "sequoia");
    assert!(!sequoia.scheme.starts_with("stratified"));
    let more = equal.tokens_per_call.mean - sequoia.tokens_per_call.mean;
    assert!((more - sequoia.more.tokens_per_call.mean).abs() < 1e-9);

    let hub = report.best.iter().find(|best| best.verifier == "spechub");
    assert!(hub.is_some_and(|best| best.paths.len() % 2 == 0));
    for result in &report.results {
        assert!(report.definitions.contains_key(&result.verifier));
        assert!(report.definitions.contains_key(&result.scheme));
    }
}

#[test]
fn a_report_is_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        let name = folder.path().join(threads.to_string());
        std::fs::create_dir(&name).unwrap();
        pool.install(|| report(&name, KeptTokens::All))
    };
    let (one, many) = (on(1), on(5));
    assert_eq!(one, many);
    let text = serde_json::to_string(&one).unwrap();
    let read: TreeReport = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}
