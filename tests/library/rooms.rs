//! Do the rooms of `src/` and of `crates/*/src/`, their top-level modules, import each other only as listed
//! here? The sources are read as text; comments, strings and tests do not count.

use crate::imports::{Crate, Import};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Whose items a room may use, wherever they are re-exported. Nothing else is allowed,
/// and what is not used leaves the list.
const ALLOWED: [(&str, &[&str]); 39] = [
    ("panics", &[]),
    ("page", &["sorted"]),
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
            "rule",
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
            "rule",
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
    (
        "capture",
        &[
            "files", "log", "panics", "plan", "typed", "rule", "scheme", "tree",
        ],
    ),
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
            "rule",
        ],
    ),
    // The crate's root: modules, and what they share.
    ("", &[]),
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

/// A file of the rooms as if all were of one crate, which the facade makes of them. Between
/// members Cargo holds the arrows; within one, and in which sense, this file does.
fn source(file: &str) -> Option<String> {
    let members = || {
        let folders = std::fs::read_dir("crates").unwrap();
        let mut members: Vec<_> = folders.map(|one| one.unwrap().path().join("src")).collect();
        members.retain(|source| source.is_dir());
        members
    };
    let lines = |path: &Path| std::fs::read_to_string(path).ok();
    let text = if file == "lib.rs" {
        let own = lines(Path::new("src/lib.rs"))?;
        let rooms = members()
            .into_iter()
            .filter_map(|member| lines(&member.join("lib.rs")));
        let rooms: String = rooms.collect();
        let is_room = |line: &&str| line.starts_with("pub mod ");
        let rooms: Vec<&str> = rooms.lines().filter(is_room).collect();
        let facade = |line: &&str| !line.contains("use specgap_") || line.contains("panics");
        let own: Vec<&str> = own.lines().filter(facade).collect();
        format!("{}\n{}", own.join("\n"), rooms.join("\n"))
    } else {
        let mut places = members();
        places.push("src".into());
        places.iter().find_map(|place| lines(&place.join(file)))?
    };
    // `specgap_core::scheme` is the room `scheme`.
    let mut out = String::new();
    for (place, piece) in text.split("specgap_").enumerate() {
        let piece = match (place, piece.split_once("::")) {
            (0, _) | (_, None) => piece.to_owned(),
            (_, Some((_, rest))) => format!("crate::{rest}"),
        };
        out.push_str(&piece);
    }
    Some(out)
}

#[test]
fn rooms_import_what_is_listed_and_nothing_else() {
    let crate_ = Crate::read(&source);
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
    let crate_ = Crate::read(&source);
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
