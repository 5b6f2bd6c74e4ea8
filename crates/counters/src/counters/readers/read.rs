//! What every reader is given, and what it makes of one record.

use crate::counters::counted::{CountersError, MOST_DRAFTS, Rounds};

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

/// Refuses files that are read together.
pub(super) fn refused(files: &[Text<'_>], message: impl Into<String>) -> CountersError {
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    CountersError::File(names.join(", "), message.into())
}

/// The count of a place that is named by its position, 0, 1, ..
pub(super) fn place<'a>(places: &'a mut Vec<f64>, position: &str) -> Result<&'a mut f64, String> {
    let index: usize = position
        .trim()
        .parse()
        .ok()
        // "00" beside "0" would be two of one place.
        .filter(|&index: &usize| index < MOST_DRAFTS && index.to_string() == position.trim())
        .ok_or_else(|| format!("position {position:?} is none of 0 to {}", MOST_DRAFTS - 1))?;
    if places.len() <= index {
        places.resize(index + 1, 0.0);
    }
    places
        .get_mut(index)
        .ok_or_else(|| format!("position {position:?} has no place"))
}

/// Counts of places, from their rates by round, which are printed within `digit`: whole where that
/// tells.
pub(super) fn by_rates(rates: &[f64], rounds: f64, digit: f64) -> Vec<f64> {
    let slack = 1e-9 * rounds.max(1.0) + 1e-6 + digit * rounds;
    let count = |rate: &f64| {
        let count = rate * rounds;
        let whole = count.round();
        if (count - whole).abs() <= slack && slack < 0.5 {
            whole
        } else {
            count
        }
    };
    rates.iter().map(count).collect()
}
