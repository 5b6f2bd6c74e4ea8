//! The parts of the source whose mutants are tried.

/// A room is named after its folder, but for statistics and for plans that list sets.
pub const NAMES: [&str; 10] = [
    "audit",
    "block",
    "certify",
    "optimum",
    "plan",
    "rounds",
    "row",
    "scheme",
    "statistics",
    "verifier",
];

/// The room that a file belongs to.
pub fn of(file: &str) -> Option<&'static str> {
    if file.ends_with("tests.rs") {
        return None;
    }
    let (_, rest) = file.split_once("src/")?;
    if matches!(
        rest,
        "statistics.rs" | "gap/tally.rs" | "gap/pairing.rs"
    ) {
        return Some("statistics");
    }
    if rest == "coupling.rs" {
        return Some("plan");
    }
    let (folder, _) = rest.split_once('/')?;
    NAMES.into_iter().find(|&name| name == folder)
}
