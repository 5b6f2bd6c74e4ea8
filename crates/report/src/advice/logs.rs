//! Advice of a comparison: one change on several logs, and one draft instead of another.

use super::gap::{now, then};
use super::{NOTHING_TO_CHANGE, gain, settings};
use crate::certainty::larger;
use crate::points::more;
use specgap_page::words::{counted, listed};
use specgap_statistics::advice::{Assumed, Change, Unit, Verdict};
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;

/// What a comparison says of changes.
pub(crate) struct Said {
    /// What to change first, in a sentence.
    pub verdict: String,
    /// What else is worth it, of other engines.
    pub others: Option<String>,
    /// What is not.
    pub not_worth: Option<String>,
}

/// Says what changes are worth on several logs, at one temperature, of one draft and of n: the
/// changes of each log with its name. Nothing where none was measured.
pub(crate) fn of_logs(
    logs: &[(&str, &[Change])],
    engine: Option<&Assumed>,
    at: f64,
    n: usize,
) -> Option<Said> {
    let mut from: Vec<(usize, &str)> = Vec::new();
    for (_, changes) in logs {
        let here = changes.iter().filter(|change| {
            change.temperature == Some(at) && engine.is_none_or(|engine| engine.starts(change))
        });
        for change in here {
            let drafts = change.drafts.unwrap_or(1);
            if [1, n].contains(&drafts) && !from.contains(&(drafts, &change.from)) {
                from.push((drafts, &change.from));
            }
        }
    }
    // Several drafts first, as on the page of one log.
    from.sort_by_key(|(drafts, _)| *drafts == 1);
    let (mut said, mut not_worth) = (Vec::new(), Vec::new());
    for (drafts, from) in from {
        let of_log = |(name, changes): &(&str, &'_ [Change])| -> Option<(String, Change)> {
            let mut all = changes.iter();
            let found = all.find(|one| {
                (one.temperature, one.drafts, one.from.as_str()) == (Some(at), Some(drafts), from)
            });
            Some(((*name).to_owned(), found?.clone()))
        };
        let all: Vec<(String, Change)> = logs.iter().filter_map(of_log).collect();
        let (worth, others): (Vec<_>, Vec<_>) =
            (all.into_iter()).partition(|(_, change)| change.verdict == Verdict::Worth);
        said.extend(on_logs(&worth, logs.len(), engine));
        not_worth.extend(others.first().map(|(_, change)| {
            let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
            let begins = now(change, engine);
            format!(
                "{begins} no change is shown to be worth it on {}.",
                listed(&names)
            )
        }));
    }
    let mut said = said.into_iter();
    let verdict = match said.next() {
        Some(first) => first,
        None if not_worth.is_empty() => return None,
        None => NOTHING_TO_CHANGE.to_owned(),
    };
    let others: Vec<String> = said.collect();
    let joined = |all: Vec<String>| (!all.is_empty()).then(|| all.join(" "));
    Some(Said {
        verdict,
        others: joined(others),
        not_worth: joined(not_worth),
    })
}

/// A change that is worth it on some of all logs: what most of them choose, and from the least that
/// it brings to the most. Logs are named where their intervals tell them apart.
fn on_logs(worth: &[(String, Change)], all: usize, engine: Option<&Assumed>) -> Option<String> {
    let count = |to: &str| worth.iter().filter(|(_, one)| one.to == to).count();
    let most = worth.iter().map(|(_, one)| count(&one.to)).max()?;
    let (_, first) = worth.iter().find(|(_, one)| count(&one.to) == most)?;
    let by_least =
        |a: &&(String, Change), b: &&(String, Change)| a.1.least().total_cmp(&b.1.least());
    let ends = [
        worth.iter().min_by(by_least)?,
        worth.iter().max_by(by_least)?,
    ];
    let [low, high] = ends.map(|(_, change)| gain(change));
    let apart = larger(&ends[1].1.difference, &ends[0].1.difference) == Some(Ordering::Greater);
    let brings = match (worth.len(), apart) {
        (1, _) => low,
        (_, true) => format!("from {low} ({}) to {high} ({})", ends[0].0, ends[1].0),
        (_, false) => format!("from {low} to {high}"),
    };
    let others = match worth.len() - most {
        0 => String::new(),
        more => format!(", or another law or rule on {more} of them"),
    };
    let place = match worth.len() {
        1 if all > 1 => format!("on {} alone", worth.first()?.0),
        some if some == all => format!("on each of {}", counted(all, "log")),
        some => format!("on {some} of {}", counted(all, "log")),
    };
    Some(format!(
        "{} {}{others}, {place}: {brings}{}.",
        now(first, engine),
        then(first),
        settings(first, engine)
    ))
}

/// Says how one sampled draft of a log is accepted beside that of the first: what to draft with.
pub(crate) fn of_draft(first: &str, later: &str, difference: &Estimate) -> String {
    let size = more(difference);
    match Verdict::of(difference, Unit::Acceptance.floor(0.0)) {
        Verdict::Worth => {
            format!("Draft with {later} instead of {first}: {size} points of one sampled draft")
        }
        Verdict::Worse => {
            format!("Draft with {first}: with {later} {size} points of one sampled draft")
        }
        Verdict::BelowFloor => format!(
            "{later} is hardly worth a change from {first}: {size} points of one sampled draft, less \
             than half a point"
        ),
        Verdict::NotToldApart | Verdict::Open => {
            format!("{later} is not told apart from {first}: {size} points of one sampled draft")
        }
    }
}
