//! The page of findings: six cards of numbers that the shipped reports have.

use super::root;
use crate::advice::Change;
use crate::claims::{Claim, Verdict, ledger};
use crate::gap::{GapReport, LogComparison};
use crate::page::words::listed;
use crate::replay::{Drafts, LengthReport, TreeReport};
use crate::scheme::ENGINES;
use crate::statistics::Estimate;
use serde::de::DeserializeOwned;

/// The cards, with a hole `{name}` for each number that a report has.
const CARDS: &str = include_str!("cards.md");

/// What fills the holes of a card, by name.
type Holes = Vec<(&'static str, String)>;

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

fn report<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&text(&format!("reports/{name}/report.json"))).unwrap()
}

/// The rows of the first table behind a line, without its head.
fn rows(text: &str, behind: &str) -> Vec<Vec<String>> {
    let start = text.find(behind).unwrap_or_else(|| panic!("{behind}"));
    let lines = text[start..]
        .lines()
        .skip_while(|line| !line.starts_with('|'));
    let table = lines.take_while(|line| line.starts_with('|')).skip(2);
    let cells = table.map(|line| {
        let inside = line.trim_matches('|').replace("**", "");
        inside
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    });
    cells.collect()
}

/// The number that a cell begins with.
fn number(cell: &str) -> f64 {
    let number = cell.split(' ').next().unwrap();
    number.parse().unwrap_or_else(|_| panic!("{cell}"))
}

fn signed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}").replace('-', "−")
}

/// The least and the largest of some numbers.
fn ends(numbers: impl Iterator<Item = f64>) -> [f64; 2] {
    numbers.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], one| {
        [low.min(one), high.max(one)]
    })
}

/// "a to b" points of shares.
fn points(numbers: impl Iterator<Item = f64>) -> String {
    let [low, high] = ends(numbers);
    format!("{} to {}", signed(100.0 * low, 1), signed(100.0 * high, 1))
}

fn plus_minus(estimate: &Estimate, scale: f64, decimals: usize) -> String {
    let half = (estimate.ci95[1] - estimate.ci95[0]) / 2.0;
    format!(
        "{} ± {}",
        signed(scale * estimate.mean, decimals),
        signed(scale * half, decimals)
    )
}

/// What the study of four pairs says: rows of four drafts at T, and a column of differences.
struct Optimum(String);

impl Optimum {
    const LIKELIEST: usize = 9;
    const REJECTION: usize = 10;
    const GREEDY: usize = 11;

    fn read() -> Self {
        let found = Self(text("reports/optimum/report.md"));
        let head = "|pair, T|likeliest tokens|recursive rejection|level, i.i.d.|greedy|rrs-wo|α* \
            sequential|strata, level-4|α* strata|less likeliest|less rejection|less greedy|";
        assert!(found.0.contains(head), "the columns are others");
        found
    }

    fn column(&self, at: f64, column: usize) -> impl Iterator<Item = f64> {
        let all = rows(&self.0, "## 4 drafts").into_iter();
        all.filter(move |row| number(row[0].rsplit(", ").next().unwrap()) == at)
            .map(move |row| number(&row[column]))
    }

    /// The line that says in how many cells it is told apart.
    fn cells(&self, against: &str) -> (u32, u32) {
        let mut lines = self.0.lines();
        let line = lines.find(|line| line.contains(against)).unwrap();
        assert!(line.contains("to its loss in none"), "{line}");
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.iter().position(|&word| word == "cells.").unwrap();
        let of = |back: usize| words[at - back].parse().unwrap();
        (of(3), of(1))
    }
}

/// The finding of the first page, in a sentence.
pub(super) fn first() -> String {
    let optimum = Optimum::read();
    let at = |column: usize| points(optimum.column(1.0, column));
    format!(
        "With four drafts a position at T = 1, on four pairs of models of three families, it \
         accepts {} points more than the four likeliest tokens (as SGLang and EAGLE draft), and {} \
         more than i.i.d. drafts by recursive rejection.",
        at(Optimum::LIKELIEST),
        at(Optimum::REJECTION),
    )
}

/// Returns what the demo advises with four drafts and with one, as a table.
pub(super) fn demo() -> String {
    let report: GapReport = report("demo");
    let mut table = "\n|your engine now|change|accepted more|\n|---|---|---:|\n".to_owned();
    let known = |change: &&Change| matches!(change.drafts, Some(1 | 4));
    let mut changes: Vec<&Change> = report.advice.iter().filter(known).collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.drafts));
    for change in changes {
        let now = match &*change.from {
            "top/exact-match" => "the four likeliest tokens",
            "with-replacement/rrs" => "four i.i.d. drafts, recursive rejection",
            "one-hot" => "the likeliest token",
            "exact-match" => "one sampled token, kept if the target draws it",
            other => panic!("{other}"),
        };
        let to = match &*change.to {
            "stratified/level-4" => {
                "four drafts from strata, verified by level ([how](docs/guide/better-drafts.md))"
            }
            "token" => {
                "sample it, keep it with min(1, p/q) ([settings](docs/findings.md#3-one-switch-sample-the-one-draft))"
            }
            other => panic!("{other}"),
        };
        let who = match change.engines.is_empty() {
            true => String::new(),
            false => format!("{}: ", change.engines.join(", ")),
        };
        let more = plus_minus(&change.difference, 100.0, 1);
        table.push_str(&format!("|{who}{now}|{to}|+{more} points|\n"));
    }
    let of = &report.logs[0];
    table.push_str(&format!(
        "\nPoints: drafts accepted in 100 positions. SmolLM2-135M, a four-layer draft, {} prompts, T = 1, top-k 50; ± is 95%.\n",
        of.metadata.prompts.len()
    ));
    table
}

/// What drafts are worth by the clock: the first sentences of that report.
pub(super) fn seconds() -> String {
    let report = text("reports/seconds/report.md");
    let at = |temperature: &str| {
        let (_, section) = report
            .split_once(&format!("## T = {temperature}\n"))
            .unwrap();
        let speed = |arm: &str| {
            let row = section.split_once(&format!("| {arm} | ")).unwrap().1;
            row.split(' ').next().unwrap().to_owned()
        };
        [
            "4 likeliest",
            "4 strata, level-4",
            "4 strata, level-4, head of 8192",
        ]
        .map(speed)
    };
    let ([top, strata, short], [cold_top, cold_strata, cold_short]) = (at("1.0"), at("0.6"));
    format!(
        "\ntransformers writes {top} times as many tokens a second as without drafts with the four likeliest, \
         {strata} with four\nstrata by level, and {short} if the draft knows its 8,192 commonest tokens alone \
         (T = 1.0; at T = 0.6 {cold_top}, {cold_strata}, {cold_short}).\n"
    )
}

/// Breaks the finding into lines of a first page.
pub(super) fn first_lines() -> String {
    let mut lines = vec![String::new()];
    for word in first().split(' ') {
        let line = lines.last_mut().unwrap();
        if line.len() + word.len() > 108 {
            lines.push(word.to_owned());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    format!("\n{}\n", lines.join("\n"))
}

/// What is measured under the heads: of the 0.5B, then of the 1.5B.
struct Heads([String; 2]);

impl Heads {
    fn read() -> Self {
        let found = text("reports/qwen-head/report.md");
        let (first, second) = found.split_once("## The same on the 1.5B").unwrap();
        Self([first, second].map(str::to_owned))
    }

    fn rows(&self, of: usize, behind: &str) -> Vec<Vec<String>> {
        rows(&self.0[of], behind)
    }

    fn trees(&self, of: usize) -> Vec<Vec<String>> {
        self.rows(of, "|tree|nodes|`rrs`, i.i.d.|")
    }

    /// A column of trees that branch, from the least to the most.
    fn in_trees(&self, of: usize, column: usize) -> String {
        let trees = self.trees(of);
        let several = trees.iter().filter(|row| !row[0].contains("chain"));
        let [low, high] = ends(several.map(|row| number(&row[column])));
        format!("{low:.2} to {high:.2}")
    }

    fn by_depth(&self, of: usize) -> Vec<Vec<String>> {
        self.rows(of, "|depth|one sampled draft|one likeliest|")
    }

    /// Returns what likeliest tokens reach in trees that follow the text.
    fn following(&self, of: usize) -> &str {
        let (_, behind) = self.0[of].split_once(" reach ").unwrap();
        behind.split_once(" at a threshold").unwrap().0
    }

    /// Returns what recursive rejection of four drafts leaves of the optimum, by depth and head.
    fn losses() -> Vec<f64> {
        let of = |name: &str| {
            let logs = serde_json::from_str(&text(&format!("reports/qwen-head/{name}.json")));
            losses(&logs.unwrap(), 1.0, 4)
        };
        [of("depth"), of("depth-1.5b")].concat()
    }
}

fn strata() -> Holes {
    let optimum = Optimum::read();
    let (told, of) = optimum.cells("Against the best of these and `greedy` drafts");
    let tree = rows(
        &text("reports/engines/report.md"),
        "What engines' own ways would give",
    );
    let calls = |what: &str| {
        let row = tree.iter().find(|row| row[0].contains(what)).unwrap();
        row.last().unwrap().clone()
    };
    let heads = Heads::read();
    let head = |of: usize| {
        let [strata, likeliest, rejection] = [4, 5, 2].map(|column| heads.in_trees(of, column));
        format!("{strata}, likeliest tokens {likeliest}, recursive rejection {rejection}")
    };
    let from_leaves = text("reports/from-leaves/report.md");
    let leaves = rows(&from_leaves, "|tree, drafts|`rrs`|").swap_remove(0);
    vec![
        ("first", first()),
        ("over-greedy", points(optimum.column(1.0, Optimum::GREEDY))),
        ("tree-strata", calls("the same tree, strata, level-4")),
        ("tree-likeliest", calls("the tree of likeliest tokens")),
        ("tree-rejection", calls("the same tree, i.i.d. drafts")),
        ("head", head(0)),
        ("head-1.5b", head(1)),
        ("leaves-level", leaves[2].clone()),
        ("leaves-one", leaves[3].clone()),
        ("leaves-four", leaves[4].clone()),
        ("cold-top", points(optimum.column(0.1, Optimum::LIKELIEST))),
        ("cold-greedy", points(optimum.column(0.1, Optimum::GREEDY))),
        ("told", told.to_string()),
        ("of", of.to_string()),
        ("following", heads.following(0).to_string()),
        ("following-1.5b", heads.following(1).to_string()),
    ]
}

/// Returns what recursive rejection of so many i.i.d. drafts leaves of the optimum, log by log.
fn losses(logs: &LogComparison, at: f64, drafts: usize) -> Vec<f64> {
    let rates = |what: Option<&str>| -> Vec<f64> {
        let mut all = logs.rates.iter();
        let found = all.find(|rate| {
            rate.temperature == at
                && rate.drafts == Some(drafts)
                && rate.scheme.as_deref() == Some("with-replacement")
                && rate.verifier.as_deref() == what
        });
        let estimates = found.unwrap().estimates.iter();
        estimates
            .map(|one| one.as_ref().unwrap().estimate.mean)
            .collect()
    };
    let optimum = rates(None).into_iter().zip(rates(Some("rrs")));
    optimum.map(|(best, gets)| best - gets).collect()
}

fn rules() -> Holes {
    let of_text = rows(
        &text("docs/reference/carried.md"),
        "|draft, K|token|block|greedy block|",
    );
    let above = |column: usize| {
        let four = of_text.iter().filter(|row| row[0].ends_with(", 4"));
        let percent = four.map(|row| {
            let inside = row[column].split_once('(').unwrap().1.trim_end_matches(')');
            number(inside)
        });
        let [low, high] = ends(percent);
        format!("{low:.1} to {high:.1}%")
    };
    let ladder: LogComparison = report("ladder");
    let qwen: GapReport = report("qwen");
    let pair = (qwen.comparisons.iter())
        .find(|one| {
            (one.temperature, one.drafts) == (1.0, 3)
                && &*one.first == "with-replacement/level"
                && &*one.second == "with-replacement/rrs"
        })
        .unwrap();
    vec![
        ("loss", points(losses(&ladder, 1.0, 3).into_iter())),
        ("loss-cold", points(losses(&ladder, 0.3, 3).into_iter())),
        ("loss-qwen", plus_minus(&pair.difference, 100.0, 1)),
        ("loss-heads", points(Heads::losses().into_iter())),
        ("calls-token", above(1)),
        ("calls-block", above(2)),
        ("calls-carried", above(5)),
    ]
}

fn switch() -> Holes {
    let pairs: [(&str, GapReport); 2] = [
        ("Qwen2.5-Coder 1.5B, drafted by 0.5B", report("qwen")),
        ("SmolLM2-135M, a distilled draft", report("smollm2")),
    ];
    let more = |of: &GapReport, at: f64| {
        let row = of.one_draft.iter().find(|row| row.temperature == at)?;
        let mut differences = row.differences.iter();
        let one = differences.find(|one| (&*one.first, &*one.second) == ("one-hot", "token"))?;
        let turned = one.difference.negated();
        assert!(turned.ci95[0] > 0.0, "{at}: {turned:?}");
        Some(format!("+{}", plus_minus(&turned, 100.0, 1)))
    };
    let stops = [0.3, 0.5, 0.7, 1.0];
    let mut table = format!(
        "|points more|{}|\n|---|{}|\n",
        stops.map(|at| format!("T = {at:.1}")).join("|"),
        ["---:"; 4].join("|")
    );
    for (name, found) in &pairs {
        let cells = stops.map(|at| more(found, at).unwrap_or_else(|| "–".to_owned()));
        table.push_str(&format!("|{name}|{}|\n", cells.join("|")));
    }
    let settings: Vec<String> = (ENGINES.iter())
        .filter(|engine| {
            !engine.is_default && engine.here.is_some_and(|here| here.verifier == "token")
        })
        .map(|engine| match engine.setting.split_once(", ") {
            Some((code, words)) => format!("{} `{code}` ({words})", engine.name),
            None => format!("{} `{}`", engine.name, engine.setting),
        })
        .collect();
    let heads = Heads::read();
    let head = |of: usize| {
        let share = |cell: &str| format!("{:.1}%", 100.0 * number(cell));
        let depths = heads.by_depth(of);
        format!(
            "{} instead of {}",
            share(&depths[0][1]),
            share(&depths[0][2])
        )
    };
    vec![
        ("switch-table", table),
        ("one-draft", head(0)),
        ("one-draft-1.5b", head(1)),
        ("settings", listed(&settings)),
    ]
}

fn theorems() -> Holes {
    let all = ledger();
    let refuted: Vec<_> = (all.iter())
        .filter(|claim| claim.expected == Verdict::Refuted && claim.is_published())
        .collect();
    let mut table =
        "|published statement that is wrong|where|smallest counterexample|\n|---|---|---|\n"
            .to_owned();
    for claim in &refuted {
        let file = claim.counterexamples.first();
        let example = match file {
            Some(file) => format!("[{}](../problems/{file})", file.rsplit('/').next().unwrap()),
            None => format!("[in the ledger](../reports/claims.md#{})", claim.id),
        };
        table.push_str(&format!(
            "|{}|{}|{example}|\n",
            super::cell(claim.statement),
            super::cell(claim.source)
        ));
    }
    let own = all
        .iter()
        .find(|claim| claim.explanation.contains("33/16"))
        .unwrap();
    assert!(own.explanation.contains("It needs 2 calls"));
    assert_eq!(own.expected, Verdict::Refuted);
    let refutes = |claim: &&Claim| claim.expected == Verdict::Refuted;
    let standing = all.len() - all.iter().filter(refutes).count();
    vec![
        ("refuted", refuted.len().to_string()),
        ("statements", all.len().to_string()),
        ("theorems-table", table),
        ("own", own.id.to_string()),
        ("standing", standing.to_string()),
    ]
}

fn engines() -> Holes {
    let found = rows(&text("reports/engines/report.md"), "<!-- engines -->");
    let mut table = "|engine|without speculation|with it|\n|---|---|---|\n".to_owned();
    for row in &found {
        let [engine, _, without, with, _] = row.as_slice() else {
            panic!("{row:?}");
        };
        table.push_str(&format!("|{engine}|{without}|{with}|\n"));
        assert_eq!(without, "as-claimed", "a control fails");
    }
    let lossy = found.iter().filter(|row| row[3].contains("lossy"));
    vec![
        ("lossy", lossy.count().to_string()),
        ("engines", found.len().to_string()),
        ("engines-table", table),
    ]
}

fn lengths() -> Holes {
    let mut table =
        "|drafts and rule|where it is what runs|tokens per call|\n|---|---|---:|\n".to_owned();
    for row in rows(
        &text("reports/engines/report.md"),
        "What engines' own ways would give",
    ) {
        table.push_str(&format!("|{}|\n", row.join("|")));
    }
    let pairs = [
        ("SmolLM2, a four-layer draft", "length"),
        ("Qwen2.5-Coder 1.5B, drafted by 0.5B", "qwen-length"),
    ]
    .map(|(name, file)| {
        let length: LengthReport = report(file);
        let at = length.at_cost.unwrap();
        assert_eq!(at.cost_ratio, 0.05);
        let chosen = |drafts: Drafts, verifier: &str| {
            let mut all = at.chosen.iter();
            let found = all.find(|one| (one.drafts, &*one.verifier) == (drafts, verifier));
            let one = found.unwrap();
            format!("{}: {}", one.parameter, plus_minus(&one.speedup, 1.0, 2))
        };
        format!(
            "|{name}|{}|{}|{}|{}|\n",
            chosen(Drafts::OneHot, "token"),
            chosen(Drafts::Sampled, "token"),
            chosen(Drafts::Sampled, "block"),
            plus_minus(&at.oracle, 1.0, 2),
        )
    });
    let trees: TreeReport = report("tree");
    let grown = |scheme: &str, verifier: &str| {
        let mut all = trees.best.iter();
        all.find(|one| (&*one.scheme, &*one.verifier) == (scheme, verifier))
            .unwrap()
    };
    let calls = |scheme, verifier| plus_minus(&grown(scheme, verifier).tokens_per_call, 1.0, 2);
    let first = grown("stratified", "traversal-4");
    let heads = Heads::read();
    let chains = heads.rows(0, "|K|token verification|block verification|");
    let (chain, tree) = (chains.last().unwrap(), &heads.trees(0)[3]);
    vec![
        ("lengths-table", table),
        ("by-length", pairs.concat()),
        ("chain-token", chain[1].to_string()),
        ("chain", chain[0].to_string()),
        ("chain-block", chain[2].to_string()),
        ("tree-tokens", tree[4].to_string()),
        ("tree", tree[1].to_string()),
        ("grown", first.limits[0].to_string()),
        ("grown-traversal", calls("stratified", "traversal-4")),
        ("grown-level", calls("stratified", "level-4")),
        ("grown-rejection", calls("with-replacement", "rrs")),
        (
            "grown-most",
            plus_minus(&first.most_accepted_length.unwrap(), 1.0, 2),
        ),
        (
            "grown-kept",
            plus_minus(&first.expected_accepted_length, 1.0, 2),
        ),
    ]
}

/// The page's cards.
pub(super) fn cards() -> String {
    let holes = [
        strata(),
        rules(),
        switch(),
        theorems(),
        engines(),
        lengths(),
    ]
    .concat();
    let (mut text, mut filled) = (CARDS.to_owned(), 0);
    for (name, inside) in holes {
        let hole = format!("{{{name}}}");
        filled += CARDS.matches(&hole).count();
        text = text.replace(&hole, &inside);
    }
    assert_eq!(filled, CARDS.matches('{').count(), "holes are filled");
    format!("\n\n{text}")
}

/// A number that leaves a report leaves the page.
#[test]
fn cards_are_of_the_reports() {
    let optimum = Optimum::read();
    let four: Vec<f64> = optimum.column(1.0, Optimum::LIKELIEST).collect();
    assert_eq!(four.len(), 4, "a pair each");
    assert!(first().contains(&points(four.into_iter())));
    let mut moved = Optimum::read();
    moved.0 = moved.0.replace("+0.296 ± 0.056", "+0.796 ± 0.056");
    let [_, high] = ends(moved.column(1.0, Optimum::LIKELIEST));
    assert_eq!(high, 0.796);
    let all = cards();
    assert_eq!(all.matches("\n## ").count(), 6);
    assert_eq!(all.matches("*Where it does not win*").count(), 6);
}
