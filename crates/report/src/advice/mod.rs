//! Every sentence that advises: a [`Change`] from what an engine does now, what it is worth, and
//! what is not worth it. No page has advice of its own.

mod gap;
mod logs;
mod next;
mod text;

pub(super) use gap::{drafts_of, of_gap};
pub(super) use logs::{Said, of_draft, of_logs};
pub(super) use next::{
    after_audit, after_counters, after_gap, after_lengths, after_logs, after_paths, after_trees,
};
pub(super) use text::{
    as_it_does, no_reference, of_counts, of_engine, of_lengths, of_paths, of_tree,
};

use super::length::numbers::{decimals, plus_minus};
use super::points::{more, signed};
use specgap_core::scheme::Here;
use specgap_page::words::listed;
use specgap_statistics::advice::{Assumed, Basis, Change, KnownBy, Needs, Unit, Verdict};

/// Says what a change brings: its worst case, where only bounds are known.
pub(super) fn gain(change: &Change) -> String {
    let open = change.difference.open().is_some();
    let (number, unit) = match (change.unit, open) {
        (Unit::Acceptance, true) => (signed(change.least()), "points"),
        (Unit::Acceptance, false) => (more(&change.difference), "points"),
        (unit, open) => {
            let number = match open {
                true => decimals(change.least(), 2),
                false => plus_minus(&change.difference, 2),
            };
            let sign = if change.least() > 0.0 { "+" } else { "" };
            let unit = match unit {
                Unit::Speed => "times the target's speed",
                _ => "tokens for each target call",
            };
            (format!("{sign}{number}"), unit)
        }
    };
    let at_least = if open { "at least " } else { "" };
    format!("{at_least}{number} {unit}")
}

/// Says what a change brings that is not worth it, and why it is not.
pub(super) fn shortfall(change: &Change) -> String {
    let difference = &change.difference;
    let number = match change.unit {
        Unit::Acceptance => format!("{} points", more(difference)),
        Unit::Speed => format!("{} times the target's speed", plus_minus(difference, 2)),
        Unit::TokensPerCall => format!("{} tokens", plus_minus(difference, 2)),
    };
    let why = match (change.verdict, change.unit) {
        (Verdict::BelowFloor, Unit::Acceptance) => ", less than half a point",
        (Verdict::BelowFloor, _) => ", less than 1%",
        (Verdict::NotToldApart, _) => ", not told apart",
        (Verdict::Open, _) => ", which the rows leave open",
        (Verdict::Worse, _) => ", worse",
        (Verdict::Worth, _) => "",
    };
    format!("{number}{why}")
}

/// The engines that do what is done now, in brackets of a sentence.
fn as_engines_do(change: &Change) -> String {
    let verb = match change.engines.len() == 1 {
        true => "does",
        false => "do",
    };
    match change.engines.is_empty() {
        true => String::new(),
        false => format!(
            ", as {} {verb} unless told otherwise,",
            listed(&change.engines)
        ),
    }
}

/// Where changes were measured and none is worth it.
const NOTHING_TO_CHANGE: &str =
    "Nothing to change: no other drafts and no other rule are shown to be worth it here.";

/// Says what measures an engine's own way.
fn measured_by(here: Here) -> String {
    format!(
        "{} among --laws and {} among --verifiers",
        here.law, here.verifier
    )
}

/// The engine that advice starts from, as a subject.
fn who(engine: &Assumed) -> String {
    match engine.known_by {
        KnownBy::Option => engine.engine.clone(),
        KnownBy::Log => format!("{}, which the log names,", engine.engine),
    }
}

/// What is set for a change, engine by engine; of one engine its own settings.
fn own_settings<'a>(
    change: &'a Change,
    engine: Option<&'a Assumed>,
) -> impl Iterator<Item = &'a str> {
    let is_own = move |setting: &&str| {
        engine.is_none_or(|one| setting.starts_with(&format!("{}: ", one.engine)))
    };
    change.settings.iter().map(String::as_str).filter(is_own)
}

/// Says what is set for a change, in brackets: of one engine its own settings.
fn settings(change: &Change, engine: Option<&Assumed>) -> String {
    let all: Vec<&str> = own_settings(change, engine).collect();
    match (all.is_empty(), engine) {
        (false, _) => format!(" ({})", all.join("; ")),
        (true, Some(engine)) if change.needs == Needs::Setting => {
            format!(" ({} has no setting that does it)", engine.engine)
        }
        (true, _) => String::new(),
    }
}

/// Says how changes were chosen, where they were.
fn chosen<'a>(mut changes: impl Iterator<Item = &'a Change>) -> &'static str {
    match changes.any(|change| change.basis == Basis::CrossFitted) {
        true => " The change was chosen on half of the prompts and measured on the others.",
        false => "",
    }
}
