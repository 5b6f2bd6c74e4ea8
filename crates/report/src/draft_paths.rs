//! What other reports than that of `specgap paths` say of a log with several draft paths.

use super::columns::table;
use super::length::numbers::{entry, maybe, plus_minus};
use super::sections::shown;
use specgap_measure::{DraftPaths, PossibleWithPaths};
use specgap_page::table::Table;
use specgap_page::words::{count, counted, temperature, words};
use specgap_page::{Block, Section};

/// K of the first lines.
const SHOWN: usize = 4;

/// A line for the first lines of a report of `logs`, by name: what some paths could give at
/// most.
pub(super) fn sentence<'a>(
    paths: &DraftPaths,
    logs: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let at = |drafts: usize| paths.by_drafts.iter().find(|at| at.drafts == drafts);
    let some = at(SHOWN.min(paths.logged_paths))?;
    let bound = some.upper_bound.as_ref()?;
    let one = at(1).and_then(|one| one.upper_bound.as_ref());
    let one = one.map_or_else(String::new, |one| {
        format!(", with one more than {}", plus_minus(one, 2))
    });
    let logs = words(logs);
    Some(format!(
        "Several draft paths: in a round that starts with the target's own law, with {} of {} no \
         verifier accepts more than {} tokens at temperature {}{one}; specgap paths {logs} says who gets how much of it.",
        counted(some.drafts, "path"),
        counted(paths.length, "token"),
        plus_minus(bound, 2),
        temperature(paths.temperature),
    ))
}

/// The section: bounds by K, and the command that tells the rest of `logs`, by name.
pub(super) fn section<'a>(paths: &DraftPaths, logs: impl Iterator<Item = &'a str>) -> Section {
    let logs = words(logs);
    let how = format!(
        "Accepted tokens a round, the target's own not counted, that K independent draft paths of {} \
         could give, averaged over {} of blocks at temperature {}. The upper bound is from {} with \
         {} each, its limits fitted on half of the prompts and reported on the other; the lower \
         bound, Lemma 5.1's value, is from the text.",
        counted(paths.length, "token"),
        counted(paths.starts, "start"),
        temperature(paths.temperature),
        counted(paths.anchors, "context"),
        counted(paths.logged_paths, "draft path"),
    );
    shown(
        "draft-paths | Several draft paths | What no verifier of K draft paths passes in a round that \
         starts with the target's own law, and what the best one has at least.",
        [
            Block::Paragraph(how),
            table(paths).into(),
            Block::paragraph("Which verifier gets how much of it:"),
            Block::Command(format!("specgap paths {logs}")),
        ],
    )
}

fn table(paths: &DraftPaths) -> Table {
    let pooled = |at: &&PossibleWithPaths| at.form.as_deref() == Some("pooled paths");
    let pooled: Vec<String> = (paths.by_drafts.iter().filter(pooled))
        .map(|at| count(at.drafts))
        .collect();
    let mut note = "Intervals are 95%, over prompts.".to_owned();
    if !pooled.is_empty() {
        note.push_str(&format!(
            " Contexts have {}: for K = {} the upper bound averages over contexts first, and lies \
             higher than it could.",
            counted(paths.logged_paths, "path"),
            pooled.join(", ")
        ));
    }
    if paths.by_drafts.iter().all(|at| at.upper_bound.is_none()) {
        note.push_str(" No upper bound: limits need a second prompt to be reported on.");
    }
    let table = table! {
        "draft-paths", "Accepted tokens a round, E[τ]", at in paths.by_drafts.iter();
        "paths K" => at.drafts,
        "#no verifier passes" => maybe(at.upper_bound.as_ref(), 3),
        "#the best one has at least" => entry(&at.lower_bound, 3),
    };
    table.note(note)
}
