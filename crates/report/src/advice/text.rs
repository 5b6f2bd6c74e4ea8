//! Advice of reports on replayed text: lengths, trees and paths.

use super::{gain, measured_by, settings, shortfall, who};
use crate::length::numbers::{cost, plus_minus};
use specgap_core::scheme::engines_with;
use specgap_page::words::{counted, listed};
use specgap_statistics::advice::{Assumed, Change, Needs, Verdict};
use std::cmp::Ordering;

/// `drafts/verifier, K`, apart.
fn apart(name: &str) -> Option<(&str, &str, &str)> {
    let (way, parameter) = name.rsplit_once(", ")?;
    let (drafts, verifier) = way.split_once('/')?;
    Some((drafts, verifier, parameter))
}

fn length(of: &str) -> usize {
    apart(of).and_then(|(_, _, k)| k.parse().ok()).unwrap_or(0)
}

/// Says what a change adds or takes, and whether that is worth it.
fn difference(change: &Change) -> String {
    let more = &change.difference;
    let size = plus_minus(more, 2);
    match change.verdict {
        Verdict::Worth => format!("{size} more"),
        Verdict::BelowFloor => format!("{size} more, less than 1%: not worth it"),
        Verdict::Worse => format!("{} less", plus_minus(&more.negated(), 2)),
        Verdict::NotToldApart | Verdict::Open => format!("no difference shown, {size}"),
    }
}

/// Says what an engine does unless told otherwise, and what to set instead: the first lines where
/// an engine is known.
pub(crate) fn of_engine(engine: &Assumed, changes: &[Change]) -> Vec<String> {
    let first = changes.first().and_then(|change| change.cost_ratio);
    let own: Vec<String> = (changes.iter())
        .filter(|change| change.cost_ratio == first && change.needs == Needs::Setting)
        .filter(|change| engine.starts(change))
        .map(|change| {
            let drafts = match apart(&change.from) {
                Some(("one-hot", _, _)) => "the likeliest token",
                _ => "a sampled token and keeps it if the target draws the same",
            };
            format!(
                "{} drafts {drafts} unless told otherwise: at c = {}, {} a round, {} times as fast as \
                 the target alone. Sampled drafts kept with min(1, p/q){}, with {}: {}.",
                who(engine),
                at(change),
                counted(length(&change.from), "token"),
                plus_minus(&change.now, 2),
                settings(change, Some(engine)),
                counted(length(&change.to), "token"),
                difference(change)
            )
        })
        .collect();
    if !own.is_empty() {
        return own;
    }
    let here = (engine.name().into_iter())
        .flat_map(|name| name.defaults().filter_map(|row| row.here))
        .next();
    vec![match here {
        Some(here) if !here.one => format!(
            "{} drafts a tree of the likeliest tokens unless told otherwise, which no draft length \
             measures: specgap tree does.",
            who(engine)
        ),
        Some(here) if here.verifier == "token" => format!(
            "{} samples its drafts and keeps them with min(1, p/q) unless told otherwise: token \
             verification is what it does now.",
            who(engine)
        ),
        _ => format!(
            "Nothing here tells what {} gets unless told otherwise.",
            who(engine)
        ),
    }]
}

/// A line each: of other verification, of the drafts of engines as they come unless one engine is
/// known, and of rules that stop by themselves, the last at every cost that is spoken of.
pub(crate) fn of_lengths(changes: &[Change], engine: Option<&Assumed>) -> Vec<String> {
    let first = changes.first().and_then(|change| change.cost_ratio);
    let here = || changes.iter().filter(|change| change.cost_ratio == first);
    let of = |needs: Needs, from: &str| {
        let is = |change: &&Change| {
            let [a, b] = [&change.from, &change.to].map(|name| apart(name).map(|one| one.0));
            change.needs == needs && a == Some(from) && b == Some("sampled")
        };
        here().find(is)
    };
    let mut lines = Vec::new();
    lines.extend(of(Needs::Rule, "sampled").map(|change| {
        format!(
            "Block against token verification at c = {}, each at its own best length, {} and {}: {}.",
            at(change),
            length(&change.to),
            length(&change.from),
            difference(change)
        )
    }));
    let kinds = [("one-hot", "One-hot"), ("exact-match", "Exact-match")];
    let kinds = kinds.into_iter().filter(|_| engine.is_none());
    let kinds = kinds.filter_map(|(kind, words)| Some((of(Needs::Setting, kind)?, words)));
    lines.extend(
        kinds
            .enumerate()
            .map(|(index, (change, words))| as_they_come(change, words, index == 0)),
    );
    for needs in [Needs::Rule, Needs::Head] {
        let all: Vec<&Change> = (changes.iter())
            .filter(|change| change.needs == needs)
            .filter(|change| apart(&change.to).is_some_and(|(what, _, _)| what != "sampled"))
            .collect();
        lines.extend(policies(needs, &all));
    }
    lines
}

fn at(change: &Change) -> String {
    cost(change.cost_ratio.unwrap_or(0.0))
}

/// `told`: with what sampled drafts are, and who has them.
fn as_they_come(change: &Change, words: &str, told: bool) -> String {
    let told = told.then(|| {
        let [sampling, told] = engines_with(|here| here.verifier == "token");
        format!(
            " kept with min(1, p/q), as {} can be told to draft and {} does,",
            listed(&told),
            listed(&sampling)
        )
    });
    format!(
        "{words} drafts, the default of {}, at c = {}: {} a round, {} times. Sampled drafts{} with {}: \
         {}.",
        listed(&change.engines),
        at(change),
        counted(length(&change.from), "token"),
        plus_minus(&change.now, 2),
        told.unwrap_or_default(),
        counted(length(&change.to), "token"),
        difference(change)
    )
}

/// Says what rules that stop by themselves add to the best that needs nothing new.
fn policies(needs: Needs, all: &[&Change]) -> Option<String> {
    let parts: Vec<String> = (all.iter())
        .filter_map(|change| {
            let (policy, _, parameter) = apart(&change.to)?;
            let shown = match change.verdict {
                Verdict::Worth => "worth it",
                Verdict::BelowFloor => "less than 1%: not worth it",
                Verdict::Worse => "slower",
                Verdict::NotToldApart | Verdict::Open => "no difference shown",
            };
            Some(format!(
                "at c = {} {policy} at {parameter}, {} more than {} ({shown})",
                at(change),
                plus_minus(&change.difference, 3),
                counted(length(&change.from), "token")
            ))
        })
        .collect();
    let what = match needs {
        Needs::Head => "What a trained head that stops drafting adds to that speed-up",
        _ => "What a rule that stops by itself and needs no head adds to that speed-up",
    };
    (!parts.is_empty()).then(|| format!("{what}: {}.", parts.join("; ")))
}

/// Tells whether a grown tree is worth more than the best that engines have: then it is advised,
/// else that one; and the difference in words.
pub(crate) fn of_tree(change: &Change) -> (bool, String) {
    let unit = match change.unit {
        specgap_statistics::advice::Unit::TokensPerCall => "tokens for each target call",
        _ => "of the target's speed",
    };
    let number = format!("{} {unit}", plus_minus(&change.difference, 2));
    let than = change.from.split(',').next().unwrap_or_default();
    match change.verdict {
        Verdict::Worth => (true, number),
        Verdict::BelowFloor => (
            false,
            format!("has {number} more, less than 1%: not worth it"),
        ),
        Verdict::Worse => {
            let less = plus_minus(&change.difference.negated(), 2);
            (false, format!("has {less} {unit} less than {than}"))
        }
        Verdict::NotToldApart | Verdict::Open => (
            false,
            format!("is not told apart from {than} ({number} more)"),
        ),
    }
}

/// Says that an engine does what a grown tree is compared with, behind the latter.
pub(crate) fn as_it_does(engine: Option<&Assumed>) -> String {
    engine.map_or_else(String::new, |engine| {
        format!(", as {} does unless told otherwise", who(engine))
    })
}

/// Says why a grown tree is compared with none.
pub(crate) fn no_reference(engine: Option<&Assumed>) -> String {
    let here = engine.and_then(|engine| {
        let row = engine.name()?.defaults().find_map(|row| row.here)?;
        let what = if row.one { "chains" } else { "trees" };
        Some(format!(
            "What {} does unless told otherwise was not replayed: it takes {what} in --trees, {}.",
            who(engine),
            measured_by(row)
        ))
    });
    here.unwrap_or_else(|| {
        "No tree that engines have is compared with it on the same prompts.".to_owned()
    })
}

/// Says what the length that was set is worth over the one that ran, by counts; nothing where these
/// are one, or not told apart.
pub(crate) fn of_counts(changes: &[Change]) -> String {
    let told = (changes.iter()).find(|change| change.verdict != Verdict::NotToldApart);
    told.map_or_else(String::new, |change| {
        let gain = match change.verdict {
            Verdict::Worth => gain(change),
            _ => format!("{}: not worth it", shortfall(change)),
        };
        format!(" Against {}, which ran: {gain}.", change.from)
    })
}

/// Says what to verify several paths by, and the differences to one path; nothing where no
/// difference was measured.
pub(crate) fn of_paths(changes: &[Change], drafts: usize) -> Option<(bool, String)> {
    let here = || (changes.iter()).filter(|change| change.drafts == Some(drafts));
    let is_worth = |change: &Change| change.verdict == Verdict::Worth;
    let said: Vec<String> = here()
        .map(|change| {
            let how = match change.from.ends_with("block") {
                true => "one path as a block",
                false => "one path token by token",
            };
            let more = plus_minus(&change.difference, 2);
            match (is_worth(change), change.difference.side()) {
                (true, _) => format!("+{more} over {how}"),
                (false, Some(Ordering::Greater)) => format!("+{more} over {how}, less than 1%"),
                _ => format!("not told to be ahead of {how}"),
            }
        })
        .collect();
    (!said.is_empty()).then(|| (here().all(is_worth), listed(&said)))
}
