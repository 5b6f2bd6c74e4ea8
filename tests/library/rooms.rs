//! Do the rooms of `src/`, its top-level modules, import each other only as listed
//! here? The sources are read as text; comments, strings and tests do not count.

use crate::imports::{Crate, Import};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Whose items a room may use, wherever they are re-exported. Nothing else is allowed,
/// and what is not used leaves the list.
const ALLOWED: [(&str, &[&str]); 39] = [
    ("panics", &[]),
    ("page", &[]),
    ("files", &[]),
    ("typed", &[]),
    ("sorted", &[]),
    ("side_by_side", &[]),
    ("entry_name", &[]),
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
    ("rule", &["entry_name", "scheme"]),
    ("coupling", &["distribution", "number", "problem", "scheme"]),
    ("tree", &["distribution", "number", "problem", "typed"]),
    ("lp", &["distribution", "panics", "scheme"]),
    (
        "plan",
        &["distribution", "known", "number", "quadrature", "scratch"],
    ),
    (
        "optimum",
        &[
            "coupling",
            "distribution",
            "known",
            "problem",
            "row",
            "scheme",
        ],
    ),
    (
        "certify",
        &[
            "coupling",
            "distribution",
            "known",
            "lp",
            "problem",
            "scheme",
        ],
    ),
    (
        "verifier",
        &[
            "coupling",
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
            "rule",
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
            "coupling",
            "distribution",
            "known",
            "lp",
            "number",
            "optimum",
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
            "coupling",
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
            "tree",
            "verifier",
        ],
    ),
    ("log", &["files", "side_by_side", "sorted", "typed"]),
    ("sampling", &["distribution", "log", "row"]),
    ("statistics", &[]),
    ("rounds", &["number", "rule", "tree"]),
    ("import", &["files", "log", "sorted", "typed"]),
    (
        "conformance",
        &[
            "distribution",
            "log",
            "problem",
            "rule",
            "scheme",
            "typed",
            "verifier",
        ],
    ),
    (
        "replay",
        &[
            "distribution",
            // Surprise, and what draft paths say.
            "gap",
            "log",
            "number",
            // The law of a selected draft.
            "plan",
            "rounds",
            // Which child of a tree's node a token comes through.
            "row",
            "sampling",
            "scheme",
            "side_by_side",
            "statistics",
            "tree",
            "typed",
            "verifier",
        ],
    ),
    (
        "audit",
        &[
            "distribution",
            "log",
            "rule",
            "sampling",
            "scheme",
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
            "sampling",
            "scheme",
            "side_by_side",
            "sorted",
            "statistics",
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
            "page",
            "sampling",
            "scheme",
            "sorted",
            "statistics",
            "replay",
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
            "page",
            "panics",
            "problem",
            "report",
            "rounds",
            "row",
            "sampling",
            "scheme",
            "side_by_side",
            "sorted",
            "statistics",
            "replay",
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
const NEVER: [(&str, &[&str]); 8] = [
    (
        "row",
        &[
            "verifier", "problem", "optimum", "evaluate", "plan", "scheme",
        ],
    ),
    ("scheme", &["verifier", "plan", "problem", "optimum"]),
    (
        "plan",
        &[
            "optimum", "evaluate", "lp", "verifier", "certify", "scheme", "problem",
        ],
    ),
    ("claims", &["replay", "gap", "log"]),
    ("audit", &["gap"]),
    ("gap", &["plan"]),
    ("quadrature", &["scheme", "optimum", "plan", "verifier"]),
    ("certify", &["optimum", "evaluate", "verifier", "block"]),
];

/// What `certify` may use of rooms that also solve: data, and no solver.
const DATA_FOR_CERTIFY: [(&str, &[&str]); 2] = [
    ("lp", &["Direction", "LinearProgram", "Relation"]),
    (
        "coupling",
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

/// Rooms that could be a crate together, and which of these crates each may use; each is
/// below the next. What such a crate uses, its users may use too.
const GROUPS: [(&str, &[&str], &[&str]); 12] = [
    (
        "number",
        &["scratch", "distribution", "known", "number", "quadrature"],
        &[],
    ),
    ("row", &["row"], &["number"]),
    ("plan", &["plan"], &["number"]),
    (
        "core",
        &[
            "rule",
            "entry_name",
            "panics",
            "scheme",
            "problem",
            "tree",
            "coupling",
            "lp",
            "optimum",
            "certify",
            "verifier",
            "rounds",
        ],
        &["row", "plan"],
    ),
    ("exact", &["block", "evaluate", "claims"], &["core"]),
    ("log", &["files", "log", "import"], &[]),
    ("page", &["page"], &[]),
    ("sampling", &["sampling"], &["number", "row", "log"]),
    ("measure", &["gap", "statistics"], &["core", "sampling"]),
    ("replay", &["replay"], &["measure"]),
    ("audit", &["audit", "conformance"], &["core", "sampling"]),
    (
        "capture",
        &["capture"],
        &["log", "plan", "sampling", "replay"],
    ),
];

/// What still stands between these groups and crates.
const BETWEEN_GROUPS: [(&str, &str); 1] = [
    // How a file is read of which nobody knows the length.
    ("problem", "files"),
];

#[test]
fn groups_of_rooms_could_be_crates() {
    let group = |room: &str| GROUPS.iter().find(|(_, rooms, _)| rooms.contains(&room));
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, _, uses) in GROUPS {
        let mut all = BTreeSet::from([name]);
        for used in uses {
            // Groups are listed from below, so that there is no circle.
            all.extend(&reach[used]);
        }
        reach.insert(name, all);
    }
    for (from, all) in ALLOWED {
        // The program's own rooms use all.
        let Some((name, ..)) = group(from) else {
            assert!(
                ["report", "cli", ""].contains(&from),
                "{from} is in no group"
            );
            continue;
        };
        for to in all {
            let known = BETWEEN_GROUPS.contains(&(from, to));
            let may = group(to).is_some_and(|(used, ..)| reach[name].contains(used));
            assert!(may != known, "{from} and {to}");
        }
    }
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
