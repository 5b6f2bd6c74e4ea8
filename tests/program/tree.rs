//! `specgap tree`: the files, exit codes, and what is refused, which leaves everything as it
//! was.

use crate::made_log::{rows, write_drawn};
use crate::run::{ROOT, Run, cases, specgap};
use serde_json::Value;
use specgap::replay::TreeReport;
use std::path::Path;

/// `specgap tree` in a folder, by a line of words.
fn tree(folder: &Path, line: &str) -> Run {
    specgap(folder, ["tree"].into_iter().chain(line.split_whitespace()))
}

/// A folder with a log of four texts of five tokens.
fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(20));
    folder
}

#[test]
fn a_log_becomes_a_folder_of_files() {
    let folder = folder_with_log();
    std::fs::write(folder.path().join("own.json"), "[[0],[1],[0,0]]\n").unwrap();
    let run = tree(
        folder.path(),
        "log --trees own.json,2x2 --laws with-replacement --verifiers rrs,exact-match --budget 5 \
         --max-depth 2 --max-branch 3 --cost-ratio 0.1 --out made",
    )
    .ok();
    assert!(run.out.starts_with("Draft trees: log, "), "{}", run.out);
    assert_eq!(run.out.lines().last(), Some("report: made/report.html"));
    let made = folder.path().join("made");
    let read = |name: &str| std::fs::read_to_string(made.join(name)).unwrap();
    let report: TreeReport = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!((report.of.positions, report.of.clusters), (20, 4));
    assert_eq!(
        report.of.command,
        "specgap tree log --trees own.json,2x2 --laws with-replacement --verifiers \
         rrs,exact-match --budget 5 --max-depth 2 --max-branch 3 --cost-ratio 0.1"
    );
    assert_eq!(report.trees["own.json"], [vec![0], vec![1], vec![0, 0]]);
    let names: Vec<(&str, &str)> = (report.results.iter())
        .map(|row| (row.tree.as_str(), row.verifier.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("own.json", "rrs"),
            ("own.json", "exact-match"),
            ("2x2", "rrs"),
            ("2x2", "exact-match")
        ]
    );
    let advised = specgap::report::tree::advised(&report).unwrap();
    let eagle: Vec<Vec<usize>> = serde_json::from_str(&read("best-tree.eagle.json")).unwrap();
    assert_eq!(eagle, advised);
    let sequoia: Value = serde_json::from_str(&read("best-tree.sequoia.json")).unwrap();
    assert_eq!(sequoia["size"], advised.len() + 1);
    assert!(sequoia["Successors"].is_array());
    // What it wrote, it takes.
    tree(folder.path(), "log --trees made/best-tree.eagle.json -q").ok();
    for file in ["best-tree.svg", "report.md", "report.html"] {
        assert!(made.join(file).exists(), "{file}");
    }
    assert!(read("best-tree.svg").starts_with("<svg"));
    assert!(read("report.html").contains("id=\"what-to-set\""));
}

/// Where draft steps cost time, a tree that grew node by node is too deep: trees within every depth
/// are tried, and none of a narrower limit is quicker where it is chosen.
#[test]
fn the_best_tree_is_as_flat_as_its_time_asks() {
    let quickest = |depth: usize| {
        let line = format!(
            "models/logs/smollm2-chat --trees chain-2 --laws stratified --verifiers level-4 \
             --budget 16 --max-depth {depth} --cost-ratio 0.1 --format json"
        );
        let run = tree(Path::new(ROOT), &line).ok();
        let report: TreeReport = serde_json::from_str(&run.out).unwrap();
        report.best[0].speedup_where_chosen.unwrap()
    };
    let (flat, any) = (quickest(2), quickest(8));
    assert!(flat > 1.5 && any > 0.995 * flat, "{flat} {any}");
}

/// A named tree is verified from its leaves where that keeps more, and where times have a step the
/// advised tree ends before it.
#[test]
fn no_table_has_more_than_what_is_advised() {
    let folder = tempfile::tempdir().unwrap();
    let times = "schema = 1\ntarget_step = { seconds = 1 }\ndraft_step = { seconds = 0.02 }\nverify = [\
                 { tokens = 1, seconds = 1 }, { tokens = 7, seconds = 1 }, { tokens = 8, seconds = 4 }]\n";
    std::fs::write(folder.path().join("step.toml"), times).unwrap();
    let log = Path::new(ROOT).join("models/logs/smollm2-chat");
    let best = |line: &str| {
        let line = format!("{} {line} --format json", log.display());
        let run = tree(folder.path(), &line).ok();
        let report: TreeReport = serde_json::from_str(&run.out).unwrap();
        report.best[0].clone()
    };
    let deep = best("--trees chain-10 --laws with-replacement --budget 10 --max-depth 2");
    let is_whole = deep.verifier.starts_with("traversal") && deep.paths.len() == 10;
    assert!(is_whole, "{deep:?}");
    let laws = "--laws with-replacement --verifiers rrs --trees chain-2";
    let short = best(&format!("{laws} --budget 7 --timings step.toml"));
    assert_eq!(
        best(&format!("{laws} --budget 8 --timings step.toml")).paths,
        short.paths
    );
    assert!(short.paths.len() > 4, "{:?}", short.paths);
}

#[test]
fn json_has_the_fixed_fields() {
    let folder = folder_with_log();
    let run = tree(folder.path(), "log --trees chain-2 --format json").ok();
    let value: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(
        (&value["schema"], &value["positions"]),
        (&1.into(), &20.into())
    );
    assert_eq!(value["temperature"], 1.0);
    let result = &value["results"][0];
    for field in ["tree", "nodes", "scheme", "verifier", "sequoia_prediction"] {
        assert!(!result[field].is_null(), "{field}");
    }
    for field in ["expected_accepted_length", "tokens_per_call"] {
        assert!(
            result[field]["mean"].is_f64() && result[field]["ci95"][1].is_f64(),
            "{field}"
        );
    }
    assert!(result["speedup"].is_null());
}

/// Rules that others have left behind are replayed where they, or their drafts, are named.
#[test]
fn older_rules_run_where_they_are_named() {
    let folder = folder_with_log();
    let pairs = |line: &str| -> String {
        let value = tree(
            folder.path(),
            &format!("log --trees 2x1 --format json {line}"),
        )
        .json();
        let results = value["results"].as_array().unwrap().iter();
        let pairs = results.map(|row| [&row["scheme"], &row["verifier"]].map(|name| name.as_str()));
        let pairs = pairs.map(|pair| pair.map(Option::unwrap).join("/"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let usual = pairs("");
    assert!(usual.contains("with-replacement/rrs ") && usual.contains("top/exact-match"));
    for older in ["k-seq", "naive-tree", "hub"] {
        assert!(!usual.contains(older), "{usual}");
    }
    assert_eq!(
        pairs("--verifiers k-seq,spechub"),
        "with-replacement/k-seq hub/spechub"
    );
    assert!(pairs("--laws hub").starts_with("hub/spechub"));
}

/// Trees of stratified drafts are put beside those of the same number of tokens, where both
/// were asked for.
#[test]
fn stratified_drafts_are_put_beside_trees_of_as_many_tokens() {
    let folder = folder_with_log();
    let asked = "log --trees eagle-25 --laws stratified,top --budget 8 --format json";
    let run = tree(folder.path(), asked).ok();
    let value: Value = serde_json::from_str(&run.out).unwrap();
    let equal = value["equal_nodes"].as_array().unwrap();
    let budgets: Vec<u64> = equal
        .iter()
        .filter_map(|one| one["budget"].as_u64())
        .collect();
    assert_eq!(budgets, [8, 25]);
    let names = |at: usize| -> Vec<(&str, &str)> {
        let beside = equal[at]["beside"].as_array().unwrap().iter();
        let mut names: Vec<_> = beside
            .map(|one| {
                (
                    one["tree"].as_str().unwrap(),
                    one["scheme"].as_str().unwrap(),
                )
            })
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(0), [("sequoia", "top")]);
    assert_eq!(
        names(1),
        [
            ("eagle-25", "stratified"),
            ("eagle-25", "top"),
            ("sequoia", "top")
        ]
    );
    assert!(equal[1]["beside"][0]["more"]["tokens_per_call"]["ci95"][0].is_f64());
    let run = tree(
        folder.path(),
        "log --trees eagle-25 --laws top --format json",
    );
    let value: Value = serde_json::from_str(&run.out).unwrap();
    assert!(value.get("equal_nodes").is_none());
}

/// One price for all nodes: falling with the budget, beside other trees, and a file for drafters.
#[test]
fn a_price_is_fitted_and_written_for_drafters() {
    let folder = folder_with_log();
    let line = "log --price --trees 2x2 --budget 6 --max-depth 2 --max-branch 3 --out made";
    let run = tree(folder.path(), line).ok();
    assert!(run.out.contains("One price for all nodes"), "{}", run.out);
    let made = folder.path().join("made");
    let read = |name: &str| std::fs::read_to_string(made.join(name)).unwrap();
    let report: TreeReport = serde_json::from_str(&read("report.json")).unwrap();
    let priced = report.priced.unwrap();
    assert_eq!((priced.chosen_on, priced.reported_on), (2, 2));
    let own: specgap::tree::Price = serde_json::from_str(&read("best-tree.price.json")).unwrap();
    assert_eq!(own, priced.price);
    assert_eq!(
        (own.levels, own.children, own.law.as_str()),
        (2, 3, "stratified")
    );
    // Of 4 and of 6 draft tokens; the second is that of the budget.
    let [four, six] = &priced.at[..] else {
        panic!("{:?}", priced.at);
    };
    assert!(four.price > six.price && six.price == own.price && four.nodes.mean < six.nodes.mean);
    let rules: Vec<&str> = six.by.iter().map(|by| by.verifier.as_str()).collect();
    assert_eq!(rules, ["level-4", "traversal", "traversal-4"]);
    let others = six.by[0].beside.iter();
    let names: Vec<&str> = others.clone().map(|other| other.trees.as_str()).collect();
    assert_eq!(names, ["one shape", "sequoia", "likeliest"]);
    for other in others {
        let apart = six.by[0].tokens_per_call.mean - other.tokens_per_call.mean;
        assert!((other.more.mean - apart).abs() < 1e-12);
    }
    // No rule accepts more of these drafts, and nearly all of it one does that goes from the leaves.
    let most = six.most_accepted_length.unwrap().mean;
    let accepted = six
        .by
        .iter()
        .map(|by| by.expected_accepted_length.unwrap().mean);
    let best = accepted.fold(0.0, f64::max);
    assert!((0.7 * most..=most + 1e-12).contains(&best), "{best} {most}");
    assert!(read("report.html").contains("any rule at most"));
    // Every position of the prompts that report has a root.
    assert_eq!(priced.children[0].iter().sum::<usize>(), 10);
    // Where a token costs as much as it ever brings, none is drafted; where it is for nothing, most.
    let timings = |seconds: f64| {
        let text = format!(
            "schema = 1\ntarget_step = {{ seconds = 1 }}\ndraft_step = {{ seconds = 0.000001 }}\n\
             verify = [{{ tokens = 1, seconds = 1 }}, {{ tokens = 40, seconds = {seconds} }}]\n"
        );
        std::fs::write(folder.path().join("times.toml"), text).unwrap();
        let line = "log --price --trees 2x2 --max-depth 2 --timings times.toml --format json";
        tree(folder.path(), line).json()["priced"]["price"]["price"]
            .as_f64()
            .unwrap()
    };
    let [dear, cheap] = [40.0, 1.01].map(timings);
    assert!(dear > 0.5 && cheap < 0.03, "{dear} {cheap}");
}

#[test]
fn a_price_that_the_log_does_not_tell_is_refused() {
    let folder = folder_with_log();
    write_drawn(&folder.path().join("one"), &rows(5));
    let lines = [
        ("one --price", "there is one prompt only"),
        (
            "log --price --max-depth 5",
            "no text is longer than a tree's 5 levels",
        ),
        (
            "log --price --max-depth 2 --laws top",
            "leave --laws and --verifiers out",
        ),
    ];
    for (line, words) in lines {
        let words = ["error: --price: ", words];
        tree(folder.path(), line).refused(&words);
    }
}

#[test]
fn what_is_no_tree_is_refused_with_the_cure() {
    let folder = folder_with_log();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("orphan.json", "[[0],[0,0,0]]");
    file("gap.json", "[[0],[2]]");
    file("twice.json", "[[0],[0]]");
    file("words.json", "[[0],[\"a\"]]");
    file("none.json", "[]");
    file("object.json", "{}");
    for (line, words) in cases(
        r#"
            log --trees orphan.json -> orphan.json | [0, 0, 0] | add it
            log --trees gap.json -> gap.json | [2] needs [1] | add it
            log --trees twice.json -> twice.json | listed twice
            log --trees words.json -> words.json | [1][0] | list of paths
            log --trees none.json -> none.json | no path
            log --trees object.json -> object.json | list of paths
            log --trees missing.json -> missing.json | cannot be read
            log --trees bush -> "bush" is no tree | eagle-25
            log --trees 99x99 -> at most 4096
            log --budget 0 -> --budget
            log --max-branch 99 -> --max-branch
            log --cost-ratio -1 -> is no cost
            log --laws hub --verifiers rrs -> no draft law and verifier | lossless for with-replacement
            log --laws greedy --verifiers rrs -> are left: rrs: it is lossless | so ask for --laws with-replacement
            log --laws top --verifiers traversal -> traversal: it takes no such children, so ask for --laws
            log --temperature 0.5 -> temperature
            nothing -> nothing
        "#,
    ) {
        tree(folder.path(), &format!("{line} --out made")).refused(&words);
        assert!(!folder.path().join("made").exists(), "{line}");
    }
}
