//! What every reader is given, and what it gives.

use crate::counters::counted::{CountersError, MOST_DRAFTS, Rounds, Source};

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
        CountersError::File {
            file: self.name.to_owned(),
            message: message.into(),
        }
    }
}

/// What a reader finds.
pub(super) struct Read {
    pub(super) source: Source,
    pub(super) clusters: Vec<Rounds>,
    pub(super) by_request: bool,
    /// The group of each cluster, where any has one.
    pub(super) groups: Vec<Option<String>>,
    /// K where the file says it.
    pub(super) length: Option<usize>,
    pub(super) notes: Vec<(&'static str, String)>,
}

impl Read {
    pub(super) fn of(source: Source) -> Self {
        Self {
            source,
            clusters: Vec::new(),
            by_request: false,
            groups: Vec::new(),
            length: None,
            notes: Vec::new(),
        }
    }
}

/// The count of a place that is named by its position, 0, 1, ..
pub(super) fn place<'a>(places: &'a mut Vec<f64>, position: &str) -> Result<&'a mut f64, String> {
    let index: usize = position
        .trim()
        .parse()
        .ok()
        .filter(|&index| index < MOST_DRAFTS)
        .ok_or_else(|| format!("position {position:?} is none of 0 to {}", MOST_DRAFTS - 1))?;
    if places.len() <= index {
        places.resize(index + 1, 0.0);
    }
    places
        .get_mut(index)
        .ok_or_else(|| format!("position {position:?} has no place"))
}

/// Counts of places, from their rates by round: whole where the rates have all digits.
pub(super) fn by_rates(rates: &[f64], rounds: f64) -> Vec<f64> {
    let count = |rate: &f64| {
        let count = rate * rounds;
        let whole = count.round();
        if (count - whole).abs() <= 1e-9 * rounds.max(1.0) + 1e-6 {
            whole
        } else {
            count
        }
    };
    rates.iter().map(count).collect()
}
