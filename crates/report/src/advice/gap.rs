//! Advice of a gap report: other drafts and other rules at a position.

use super::{
    NOTHING_TO_CHANGE, as_engines_do, chosen, gain, measured_by, own_settings, shortfall, who,
};
use crate::columns::table;
use crate::points::bare;
use crate::sections::if_any;
use specgap_base::once::each_once;
use specgap_core::scheme::Here;
use specgap_page::table::Table;
use specgap_page::words::counted;
use specgap_statistics::advice::{Assumed, Change, Needs, Verdict};

/// What a gap report says of changes at one place.
#[derive(Default)]
pub(crate) struct Advised {
    /// What to change first, in a sentence.
    pub verdict: Option<String>,
    /// What is worth it, of each engine.
    pub changes: Option<Table>,
    /// What tells engines to do so.
    pub settings: Option<String>,
    /// How changes were chosen, where they were.
    pub chosen: &'static str,
    /// What is not.
    pub not_worth: Option<String>,
}

/// Says what changes are worth at one temperature, of one draft and of n, from what an engine does
/// if one is known; nothing where none was measured.
pub(crate) fn of_gap(
    changes: &[Change],
    engine: Option<&Assumed>,
    at: f64,
    n: usize,
) -> Option<Advised> {
    let here = |change: &&Change| {
        change.temperature == Some(at) && [Some(1), Some(n)].contains(&change.drafts)
    };
    let (one, several): (Vec<&Change>, Vec<&Change>) = (changes.iter())
        .filter(here)
        .partition(|change| change.drafts == Some(1));
    // Several drafts first, where they were asked for.
    let mut all: Vec<&Change> = several.into_iter().chain(one).collect();
    if all.is_empty() {
        return None;
    }
    all.retain(|change| engine.is_none_or(|engine| engine.starts(change)));
    if let Some(engine) = engine.filter(|_| all.is_empty()) {
        return Some(Advised {
            verdict: Some(nothing_from(engine, at)),
            ..Advised::default()
        });
    }
    let worth: Vec<Vec<&Change>> = groups(&all, |change| change.verdict == Verdict::Worth);
    let not_worth = groups(&all, |change| {
        ![Verdict::Worth, Verdict::Worse].contains(&change.verdict)
    });
    let first = worth.first().map(|group| sentence(group, engine));
    let not: Vec<String> = (not_worth.iter())
        .map(|group| not_worth_it(group, engine))
        .collect();
    let mut all = worth.iter().flatten().copied();
    let set = each_once(all.clone().flat_map(|change| own_settings(change, engine)));
    Some(Advised {
        verdict: first.or_else(|| Some(NOTHING_TO_CHANGE.to_owned())),
        changes: if_any(tabulated(all.clone(), engine)),
        settings: (!set.is_empty()).then(|| format!("{}.", set.join("; "))),
        chosen: chosen(&mut all),
        not_worth: (!not.is_empty()).then(|| not.join(" ")),
    })
}

/// Rows of a first screen.
const ROWS: usize = 5;

/// Tabulates changes that are worth it: by whom, what is done now and kept, what to do, what it gains.
fn tabulated<'a>(
    changes: impl Iterator<Item = &'a Change> + Clone,
    engine: Option<&Assumed>,
) -> Table {
    let engines = |change: &Change| match (engine, change.engines.is_empty()) {
        (Some(engine), _) => engine.engine.clone(),
        (None, true) => "others".to_owned(),
        (None, false) => change.engines.join(", "),
    };
    let more = changes.clone().count().saturating_sub(ROWS);
    let table = table! {
        "changes", "", change in changes.take(ROWS);
        "engine" => engines(change),
        "drafts now, and keeps" =>
            format!("{}: {}", in_short(&change.from, change), bare(&change.now)),
        "change to" => in_short(&change.to, change),
        "#gain, points" => gain(change).trim_end_matches(" points"),
    };
    match more {
        0 => table,
        more => table.note(format!("{} more below.", counted(more, "change"))),
    }
}

/// Says what is drafted and how it is verified, for a table.
fn in_short(way: &str, change: &Change) -> String {
    let n = change.drafts.unwrap_or(1);
    match (way, way.split_once('/')) {
        ("one-hot", _) => "the likeliest token".to_owned(),
        ("exact-match", _) => "one sampled token, kept if it is drawn".to_owned(),
        ("top/exact-match", _) => drafts_of("top", n),
        (_, Some((law, rule))) if law == rule => drafts_of(law, n),
        (_, Some((law, rule))) => format!("{n} {law} drafts, {rule}"),
        ("token", None) => "one sampled token, kept with min(1, p/q)".to_owned(),
        (other, None) => other.to_owned(),
    }
}

/// Says what a law drafts. To engines greedy drafts are the likeliest tokens, to the law of this name all
/// but the last.
pub(crate) fn drafts_of(law: &str, n: usize) -> String {
    match (law, n) {
        ("top", 1) => "the likeliest token".to_owned(),
        ("top", _) => format!("the {n} likeliest tokens"),
        ("greedy", 2) => "the likeliest token and a draw".to_owned(),
        ("greedy", 3..) => format!("the {} likeliest tokens and a draw", n - 1),
        _ => format!("{n} {law} drafts"),
    }
}

/// Changes from the same thing, together.
fn groups<'a>(all: &[&'a Change], is_one: impl Fn(&Change) -> bool) -> Vec<Vec<&'a Change>> {
    let mut groups: Vec<Vec<&Change>> = Vec::new();
    for &change in all.iter().filter(|change| is_one(change)) {
        let same = |group: &&mut Vec<&Change>| {
            (group.iter()).any(|other| (other.drafts, &other.from) == (change.drafts, &change.from))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(change),
            None => groups.push(vec![change]),
        }
    }
    groups
}

/// Says why nothing is said of what an engine does: it is the best there is, or was not measured.
fn nothing_from(engine: &Assumed, at: f64) -> String {
    let who = who(engine);
    let defaults: Vec<Here> = (engine.name().into_iter())
        .flat_map(|name| name.defaults().filter_map(|row| row.here))
        .collect();
    let Some(here) = defaults.first() else {
        return format!("Nothing is known here of what {who} drafts.");
    };
    match (defaults.iter().all(|here| here.one), here.verifier) {
        (true, _) if at == 0.0 => format!(
            "Nothing to change in {who} at temperature 0, where all ways of drafting one token are \
             alike."
        ),
        (true, "token") => format!(
            "Nothing to change in {who} with one draft: it is sampled and kept with min(1, p/q), and \
             no rule accepts more of one sampled draft."
        ),
        _ => format!(
            "Nothing is advised: what {who} drafts was not measured; it takes several --drafts, {}.",
            measured_by(*here)
        ),
    }
}

/// Says what is drafted now, and by whom: the beginning of a sentence.
pub(super) fn now(change: &Change, engine: Option<&Assumed>) -> String {
    match engine {
        None => {
            let engines = as_engines_do(change);
            let comma = if engines.is_empty() { "," } else { "" };
            format!("If you draft {}{engines}{comma}", drafted(change, "keep"))
        }
        Some(engine) => format!(
            "{} drafts {} unless told otherwise:",
            who(engine),
            drafted(change, "keeps")
        ),
    }
}

/// Says what is drafted now, with a verb for what becomes of it.
fn drafted(change: &Change, keep: &str) -> String {
    let n = change.drafts.unwrap_or(1);
    match (change.from.as_str(), change.from.split_once('/')) {
        ("one-hot", _) => "the likeliest token alone".to_owned(),
        ("exact-match", _) => {
            format!("one sampled token and {keep} it if it is the target's own draw")
        }
        ("top/exact-match", _) => drafts_of("top", n),
        (_, Some((law, rule))) => {
            format!("{} of {law} and verify them by {rule}", counted(n, "token"))
        }
        (other, None) => other.to_owned(),
    }
}

/// Says what could be done instead.
pub(super) fn then(change: &Change) -> String {
    match (change.to.split_once('/'), change.needs) {
        (Some((_, rule)), Needs::Rule) => format!("verify them by {rule}"),
        (Some((law, rule)), _) if law == rule => {
            let drafts = drafts_of(law, change.drafts.unwrap_or(1));
            format!("draft {drafts}, verified by `{rule}`")
        }
        (Some((law, rule)), _) => format!("draw {law} drafts and verify them by {rule}"),
        (None, _) => match change.from.as_str() {
            "exact-match" => "keep it with min(1, p/q)".to_owned(),
            _ => "sample it and keep it with min(1, p/q)".to_owned(),
        },
    }
}

/// A change that is worth it, or several from the same thing.
fn sentence(group: &[&Change], engine: Option<&Assumed>) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let instead: Vec<String> = (group.iter())
        .map(|change| format!("{}, {}", then(change), gain(change)))
        .collect();
    let told = format!("{} {}.", now(first, engine), instead.join("; or "));
    match (first.from.as_str(), engine) {
        ("exact-match", Some(_)) => told + &by_one_noise(first),
        _ => told,
    }
}

/// Says what two rows of overlap o keep of one draft by one noise, (1-TV)/(1+TV) = o/(2-o) at least:
/// convex, so that the mean overlap bounds the mean.
fn by_one_noise(change: &Change) -> String {
    let overlap = change.now.mean + change.difference.mean;
    format!(
        " An engine that goes on comparing tokens has a line to change: drawn by the target's noise, \
         some {:.1}% of the drafts or more are kept (shared-gumbel, docs/theory/shared-noise.md).",
        100.0 * overlap / (2.0 - overlap)
    )
}

/// Changes from the same thing that are not worth it.
fn not_worth_it(group: &[&Change], engine: Option<&Assumed>) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let each: Vec<String> = (group.iter())
        .map(|change| format!("{} ({})", then(change), shortfall(change)))
        .collect();
    let now = match engine {
        None => format!("If you draft {}:", drafted(first, "keep")),
        Some(_) => now(first, engine),
    };
    format!("{now} {}.", each.join("; "))
}
