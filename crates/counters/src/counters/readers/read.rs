//! What every reader is given, and what it makes of one record.

use crate::counters::counted::{CountersError, MOST_DRAFTS, Rounds};
use std::fmt::Display;

/// A file that was read whole.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// Its name, for errors.
    pub name: &'a str,
    /// What is in it.
    pub text: &'a str,
}

impl Text<'_> {
    pub(super) fn refused(&self, message: impl Into<String>) -> CountersError {
        CountersError::File(self.name.to_owned(), message.into())
    }

    /// Refuses a line, which is counted from 0 here.
    pub(super) fn refused_at(&self, line: usize, message: impl Display) -> CountersError {
        self.refused(format!("line {}: {message}", line + 1))
    }
}

/// What one record says.
#[derive(Default)]
pub(super) struct Record {
    pub(super) rounds: Rounds,
    /// K, where the record says it.
    pub(super) length: Option<usize>,
    /// What has to be known of it.
    pub(super) note: Option<(&'static str, &'static str)>,
    /// Whether there are rates and no counts.
    pub(super) rates_alone: bool,
}

impl Record {
    pub(super) fn of(rounds: Rounds) -> Self {
        Self {
            rounds,
            ..Self::default()
        }
    }
}

/// Refuses a count that is said and is not what others come to, within `slack`.
pub(super) fn agree(
    name: &str,
    said: Option<f64>,
    (from, found): (&str, f64),
    slack: f64,
) -> Result<(), String> {
    match said.filter(|said| (said - found).abs() > slack) {
        Some(said) => Err(format!("{name}: is {said}, and {from} to {found}")),
        None => Ok(()),
    }
}

/// Refuses a mean of tokens a round that is said, if its own record's counts come to another one. Tools
/// write two places at least.
pub(super) fn agree_on_mean(name: &str, said: Option<f64>, counts: &Rounds) -> Result<(), String> {
    let said = said.filter(|_| counts.rounds > 0.0);
    let own = 1.0 + counts.accepted / counts.rounds;
    let agrees = agree(name, said, ("1 + accepted / rounds comes", own), 0.006);
    agrees.map_err(|message| format!("{message}; give both of one run, as the tool wrote them"))
}

/// Refuses a total of accepted drafts that is not what the places of the same run add up to: fields,
/// total and places. Places that are no whole counts are of rounded rates, and tell less.
pub(super) fn agree_by_place(
    [total, places]: [&str; 2],
    accepted: f64,
    reached: Option<&[f64]>,
) -> Result<(), String> {
    let whole = |reached: &&[f64]| reached.iter().all(|count| count.fract() == 0.0);
    let Some(sum) = reached.filter(whole).map(|reached| reached.iter().sum()) else {
        return Ok(());
    };
    let agrees = agree(total, Some(accepted), (&format!("{places} come"), sum), 0.5);
    agrees.map_err(|message| format!("{message}; give both of one run, as the tool wrote them"))
}

/// The word behind one of some names and behind signs that are skipped.
pub(super) fn word<'a>(
    line: &'a str,
    names: &[&str],
    skipped: fn(char) -> bool,
    ends: &[char],
) -> Option<&'a str> {
    let (_, rest) = names.iter().find_map(|name| line.split_once(name))?;
    rest.trim_start_matches(skipped).split(ends).next()
}

/// A count that is whole.
pub(super) fn whole(text: &str) -> Option<f64> {
    text.trim().parse::<u64>().ok().map(|count| count as f64)
}

/// Rates with commas between them.
pub(super) fn rates(list: &str) -> Option<Vec<f64>> {
    let rates = list.split(',').map(|rate| rate.trim().parse().ok());
    rates.collect()
}

/// Refuses files that are read together.
pub(super) fn refused(files: &[Text<'_>], message: impl Into<String>) -> CountersError {
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    CountersError::File(names.join(", "), message.into())
}

/// The count of a place that is named by its position, 0, 1, ..
pub(super) fn place<'a>(places: &'a mut Vec<f64>, position: &str) -> Result<&'a mut f64, String> {
    let index: Option<usize> = position.trim().parse().ok();
    // "00" beside "0" would be two of one place.
    let is_place = |index: &usize| *index < MOST_DRAFTS && index.to_string() == position.trim();
    let none = || format!("position {position:?} is none of 0 to {}", MOST_DRAFTS - 1);
    let index = index.filter(is_place).ok_or_else(none)?;
    places.resize(places.len().max(index + 1), 0.0);
    Ok(&mut places[index])
}

/// Counts of places, from their rates by round, which are printed within `digit`: whole where that
/// tells.
pub(super) fn by_rates(rates: &[f64], rounds: f64, digit: f64) -> Vec<f64> {
    let slack = 1e-9 * rounds.max(1.0) + 1e-6 + digit * rounds;
    let count = |rate: &f64| {
        let count = rate * rounds;
        let whole = count.round();
        let is_whole = (count - whole).abs() <= slack && slack < 0.5;
        if is_whole { whole } else { count }
    };
    rates.iter().map(count).collect()
}
