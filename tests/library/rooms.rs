//! Do the rooms of `src/`, its top-level modules, import each other only as listed
//! here? The sources are read as text; comments, strings and tests do not count.

use crate::imports::{Crate, Import};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Whose items a room may use, wherever they are re-exported. Nothing else is allowed,
/// and what is not used leaves the list.
const ALLOWED: [(&str, &[&str]); 36] = [
    ("panics", &[]),
    ("shown", &[]),
    ("files", &[]),
    ("rule_name", &[]),
    ("typed", &[]),
    ("sorted", &[]),
    ("side_by_side", &[]),
    ("entry_name", &["rule_name"]),
    ("scratch", &[]),
    ("distribution", &["scratch"]),
    ("known", &["distribution"]),
    ("number", &["distribution"]),
    ("quadrature", &["distribution"]),
    ("row", &["distribution", "known", "quadrature", "scratch"]),
    (
        "scheme",
        &["distribution", "entry_name", "number", "quadrature", "row"],
    ),
    ("problem", &["distribution", "files", "scheme", "typed"]),
    ("tree", &["distribution", "number", "problem", "typed"]),
    ("lp", &["distribution", "panics", "scheme"]),
    (
        "plan",
        &[
            "distribution",
            "known",
            "number",
            "problem",
            "quadrature",
            "scheme",
            "scratch",
        ],
    ),
    (
        "optimum",
        &["distribution", "known", "plan", "problem", "row", "scheme"],
    ),
    (
        "certify",
        &["distribution", "known", "lp", "plan", "problem", "scheme"],
    ),
    (
        "verifier",
        &[
            "distribution",
            "entry_name",
            "known",
            "number",
            "optimum",
            "plan",
            "problem",
            "row",
            "scheme",
        ],
    ),
    (
        "block",
        &[
            "distribution",
            "known",
            "lp",
            "number",
            "optimum",
            "plan",
            "problem",
            "rule_name",
            "scheme",
            "tree",
            "verifier",
        ],
    ),
    (
        "evaluate",
        &[
            "block",
            "certify",
            "distribution",
            "known",
            "lp",
            "number",
            "optimum",
            "plan",
            "problem",
            "row",
            "scheme",
            "tree",
            "verifier",
        ],
    ),
    (
        "claims",
        &[
            "block",
            "certify",
            "distribution",
            "evaluate",
            "known",
            "lp",
            "number",
            "optimum",
            "plan",
            "problem",
            "rounds",
            "scheme",
            "side_by_side",
            "text",
            "tree",
            "verifier",
        ],
    ),
    ("log", &["files", "side_by_side", "sorted", "typed"]),
    ("rounds", &["number", "rule_name"]),
    ("import", &["files", "log", "sorted", "typed"]),
    (
        "conformance",
        &[
            "distribution",
            "log",
            "problem",
            "rule_name",
            "scheme",
            "typed",
            "verifier",
        ],
    ),
    (
        "text",
        &[
            "distribution",
            // Means over prompts, and rows as probabilities.
            "gap",
            "log",
            "number",
            // The law of a selected draft.
            "plan",
            "rounds",
            // Which child of a tree's node a token comes through.
            "row",
            "scheme",
            "side_by_side",
            "tree",
            "typed",
            "verifier",
        ],
    ),
    // Of gap: rows as probabilities, and which logs are refused.
    (
        "audit",
        &[
            "distribution",
            "gap",
            "log",
            "rule_name",
            "side_by_side",
            "sorted",
        ],
    ),
    // Of plan: how one of several paths is selected, and its law.
    ("capture", &["files", "log", "panics", "plan", "typed"]),
    (
        "gap",
        &[
            "distribution",
            "known",
            "log",
            "rounds",
            "row",
            "scheme",
            "shown",
            "side_by_side",
            "sorted",
            "typed",
            "verifier",
        ],
    ),
    (
        "report",
        &[
            "audit",
            "block",
            "claims",
            "distribution",
            "evaluate",
            "gap",
            "known",
            "log",
            "lp",
            "scheme",
            "shown",
            "sorted",
            "text",
            "typed",
            "verifier",
        ],
    ),
    (
        "cli",
        &[
            "audit",
            "capture",
            "certify",
            "claims",
            "conformance",
            "distribution",
            "evaluate",
            "files",
            "gap",
            "import",
            "log",
            "panics",
            "problem",
            "report",
            "rounds",
            "row",
            "scheme",
            "shown",
            "side_by_side",
            "sorted",
            "text",
            "tree",
            "typed",
            "verifier",
        ],
    ),
    // The crate's root: modules, and what they share.
    ("", &["panics"]),
];

/// Pairs that no list may hold: a row knows no rule, no law and no problem, a law no
/// rule and no solver, plans and certificates know no solver, quadrature knows no integrand.
const NEVER: [(&str, &[&str]); 5] = [
    (
        "row",
        &[
            "verifier", "problem", "optimum", "evaluate", "plan", "scheme",
        ],
    ),
    ("scheme", &["verifier", "plan", "problem", "optimum"]),
    (
        "plan",
        &["optimum", "evaluate", "lp", "verifier", "certify"],
    ),
    ("quadrature", &["scheme", "optimum", "plan", "verifier"]),
    ("certify", &["optimum", "evaluate", "verifier", "block"]),
];

/// What `certify` may use of rooms that also solve: data, and no solver.
const DATA_FOR_CERTIFY: [(&str, &[&str]); 2] = [
    ("lp", &["Direction", "LinearProgram", "Relation"]),
    (
        "plan",
        &[
            "Coupling",
            "PlanMasses",
            "Rounding",
            "TransportPlan",
            "distinct",
        ],
    ),
];

#[test]
fn rooms_import_what_is_listed_and_nothing_else() {
    let crate_ = Crate::read(&|file| std::fs::read_to_string(Path::new("src").join(file)).ok());
    let imports = crate_.imports();
    assert!(imports.len() > 200, "{} imports", imports.len());
    let found: BTreeSet<(&str, &str)> = imports
        .iter()
        .map(|import| (room(&import.from), room(&import.file)))
        .filter(|(from, to)| from != to)
        .collect();
    let allowed: BTreeSet<(&str, &str)> = ALLOWED
        .iter()
        .flat_map(|(from, all)| all.iter().map(move |to| (*from, *to)))
        .collect();
    let not_allowed: Vec<&Import> = imports
        .iter()
        .filter(|import| {
            let pair = (room(&import.from), room(&import.file));
            pair.0 != pair.1 && !allowed.contains(&pair)
        })
        .collect();
    let unused: Vec<_> = allowed.difference(&found).collect();
    assert!(
        not_allowed.is_empty() && unused.is_empty(),
        "imports that are not allowed: {not_allowed:#?}\nentries without an import: {unused:?}"
    );
    let rooms: BTreeSet<&str> = ALLOWED.iter().map(|(from, _)| *from).collect();
    for file in crate_.files.keys() {
        assert!(rooms.contains(room(file)), "{file} is in no room");
    }
    for (from, never) in NEVER {
        for to in never {
            assert!(!allowed.contains(&(from, *to)), "{from} may not use {to}");
        }
    }
    for (data, items) in DATA_FOR_CERTIFY {
        for import in &imports {
            if room(&import.from) == "certify" && room(&import.file) == data {
                assert!(items.contains(&import.item.as_str()), "{import:?}");
            }
        }
    }
    no_circle("rooms", circles(&found));
}

#[test]
fn files_import_each_other_in_no_circle() {
    let crate_ = Crate::read(&|file| std::fs::read_to_string(Path::new("src").join(file)).ok());
    let imports = crate_.imports();
    let edges: BTreeSet<(&str, &str)> = imports
        .iter()
        .map(|import| (import.from.as_str(), import.file.as_str()))
        .collect();
    no_circle("files", circles(&edges));
}

fn no_circle(of: &str, found: Vec<BTreeSet<&str>>) {
    assert!(found.is_empty(), "{of} in a circle: {found:?}");
}

/// The room of a file: the first part of its name.
fn room(file: &str) -> &str {
    file.split('/').next().unwrap_or_default()
}

/// Sets of nodes that reach each other, of more than one node.
fn circles<'a>(edges: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let reach = |from: &'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for (_, to) in edges.iter().filter(|(from, _)| *from == at) {
                if seen.insert(*to) {
                    open.push(to);
                }
            }
        }
        seen
    };
    let nodes: BTreeSet<&str> = edges.iter().map(|(from, _)| *from).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        nodes.iter().map(|&node| (node, reach(node))).collect();
    let mut all = BTreeSet::new();
    for (node, ahead) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|set| set.contains(node));
        let circle: BTreeSet<&str> = ahead.iter().filter(back).copied().collect();
        if circle.len() > 1 {
            all.insert(circle);
        }
    }
    all.into_iter().collect()
}

#[test]
fn circles_are_found_whole_and_chains_are_none() {
    let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")];
    let found = circles(&edges.into_iter().collect());
    assert_eq!(found, [["a", "b", "c"].into_iter().collect()]);
    assert!(circles(&[("a", "b"), ("b", "c"), ("a", "c")].into_iter().collect()).is_empty());
}
