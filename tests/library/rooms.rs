//! Do the rooms of a member, its top-level modules, import each other only as listed here? Between
//! members Cargo holds the arrows. The sources are read as text; comments, strings and tests do not
//! count.

use crate::imports::{Crate, Import};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Rooms, and whose items of the same member they may use, wherever these are re-exported. Nothing
/// else is allowed, and what is not used leaves the list.
const ALLOWED: &str = "
    evaluate: block
    claims: block evaluate
    import: log
    advice: statistics
    curve: statistics
    whole: replay
    distribution: scratch
    known: distribution
    number: distribution
    scheme: entry_name
    problem: rule scheme
    rule: entry_name scheme
    rounds: entry_name rule tree
    coupling: problem scheme
    tree: problem
    lp: scheme
    optimum: coupling problem scheme stop
    certify: coupling lp problem scheme
    verifier: coupling entry_name optimum problem scheme rule
";

/// Pairs that no list may hold, though Cargo would let them: a law knows no rule and no solver of
/// problems (its optimum on a row is a question to `row` or `plan`), certificates know no solver,
/// and an audit does not rest on a measurement.
const NEVER: [(&str, &[&str]); 3] = [
    ("scheme", &["verifier", "problem", "optimum"]),
    ("audit", &["gap"]),
    ("certify", &["optimum", "verifier"]),
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

/// Members that are one room, which the facade names so.
const ONE_ROOM: [(&str, &str); 9] = [
    ("capture", "capture"),
    ("entries", "entries"),
    ("measure", "gap"),
    ("page", "page"),
    ("plan", "plan"),
    ("report", "report"),
    ("row", "row"),
    ("sampling", "sampling"),
    ("tables", "tables"),
];

/// The member of each room that is not of the root.
fn members() -> BTreeMap<String, String> {
    let one = |(member, room): (&str, &str)| (room.to_owned(), member.to_owned());
    let mut all: BTreeMap<String, String> = ONE_ROOM.into_iter().map(one).collect();
    for folder in std::fs::read_dir("crates").unwrap() {
        let folder = folder.unwrap().path();
        let member = folder.file_name().unwrap().to_string_lossy().into_owned();
        if ONE_ROOM.iter().any(|(one, _)| *one == member) {
            continue;
        }
        let text = std::fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
        let rooms = text
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        all.extend(rooms.map(|room| (room.to_owned(), member.clone())));
    }
    all
}

/// A file of the rooms as if all were of one crate, which the facade makes of them.
fn source(file: &str) -> Option<String> {
    let members = || {
        let folders = std::fs::read_dir("crates").unwrap();
        let mut members: Vec<_> = folders.map(|one| one.unwrap().path().join("src")).collect();
        let is_one = |source: &Path| {
            let mut all = ONE_ROOM.iter();
            all.any(|(member, _)| source == Path::new("crates").join(member).join("src"))
        };
        members.retain(|source| source.is_dir() && !is_one(source));
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
        let one: String = (ONE_ROOM
            .iter()
            .map(|(_, room)| format!("pub mod {room};\n")))
        .collect();
        let facade = |line: &&str| !line.contains("use specgap_") || line.contains("panics");
        let own: Vec<&str> = own.lines().filter(facade).collect();
        format!("{}\n{}\n{one}", own.join("\n"), rooms.join("\n"))
    } else if let Some((member, room, inside)) = of_one_room(file) {
        let text = lines(&Path::new("crates").join(member).join("src").join(inside))?;
        text.replace("crate::", &format!("crate::{room}::"))
    } else {
        let mut places = members();
        places.push("src".into());
        places.iter().find_map(|place| lines(&place.join(file)))?
    };
    // `specgap_core::scheme` is the room `scheme`, and `specgap_row` the room `row`.
    let mut text = text;
    for (member, room) in ONE_ROOM {
        text = text.replace(
            &format!("specgap_{member}::"),
            &format!("specgap_{member}::{room}::"),
        );
        text = text.replace(
            &format!("specgap_{member} as "),
            &format!("specgap_{member}::{room} as "),
        );
    }
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

/// Of a file of a member that is one room: the member, the room, and its path there.
fn of_one_room(file: &str) -> Option<(&str, &str, String)> {
    ONE_ROOM.iter().find_map(|(member, room)| {
        let inside = match file.strip_prefix(room)? {
            ".rs" => return None,
            "/mod.rs" => "lib.rs",
            inside => inside.strip_prefix('/')?,
        };
        Some((*member, *room, inside.to_owned()))
    })
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
    let members = members();
    let within = |(from, to): &(&str, &str)| members.get(*from) == members.get(*to);
    let here: BTreeSet<(&str, &str)> = found.iter().copied().filter(within).collect();
    let listed = ALLOWED.trim().lines();
    let listed = listed.map(|line| line.trim().split_once(": ").unwrap());
    let allowed: BTreeSet<(&str, &str)> = listed
        .flat_map(|(from, all)| all.split(' ').map(move |to| (from, to)))
        .collect();
    let not_allowed: Vec<&Import> = imports
        .iter()
        .filter(|import| {
            let pair = (room(&import.from), room(&import.file));
            here.contains(&pair) && !allowed.contains(&pair)
        })
        .collect();
    let unused: Vec<_> = allowed.difference(&here).collect();
    assert!(
        not_allowed.is_empty() && unused.is_empty(),
        "imports that are not allowed: {not_allowed:#?}\nentries without an import: {unused:?}"
    );
    for (from, never) in NEVER {
        for to in never {
            assert!(!found.contains(&(from, *to)), "{from} may not use {to}");
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
            for (_, to) in edges.range((at, "")..).take_while(|(from, _)| *from == at) {
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
