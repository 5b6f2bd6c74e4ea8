//! How well a number is known, in words.
//!
//! Two uncertainties are kept apart. `± x` is about prompts that were not logged. How a
//! number came about is about the rows that were: it is exact, enclosed, Monte Carlo, or
//! that of truncated rows.

use super::table::Entry;
use super::text::{at_most, difference, listed, rate};
use crate::gap::Estimate;
use crate::known::Kind;

/// Half the width of the interval; `None` where there is one cluster only, so
/// that no interval can be given.
fn half_width(estimate: &Estimate) -> Option<f64> {
    let [low, high] = estimate.ci95;
    (high > low).then(|| (high - low) / 2.0)
}

/// `mean ± half the width of the 95% interval`.
pub(super) fn plus_minus(estimate: &Estimate) -> String {
    with_half_width(rate(estimate.mean), estimate)
}

/// The same for a difference, with its sign always.
pub(super) fn signed_plus_minus(estimate: &Estimate) -> String {
    with_half_width(difference(estimate.mean), estimate)
}

fn with_half_width(mean: String, estimate: &Estimate) -> String {
    match half_width(estimate) {
        Some(half) => format!("{mean} ± {}", rate(half)),
        None => mean,
    }
}

/// Bounds of the full rows' mean: `in [a, b]`.
pub(super) fn bounds(estimate: &Estimate) -> Option<String> {
    let [low, high] = estimate.truncation?;
    Some(format!("in [{}, {}]", rate(low), rate(high)))
}

/// All digits of an estimate, to stand behind a rounded one.
pub(super) fn all_digits(estimate: &Estimate) -> String {
    let [low, high] = estimate.ci95;
    let mut out = format!("mean {}, 95% interval [{low}, {high}]", estimate.mean);
    if let Some([low, high]) = estimate.truncation {
        out.push_str(&format!(", full rows within [{low}, {high}]"));
    }
    out
}

/// A mean with its interval, over its bounds where rows are truncated.
pub(super) fn entry(estimate: &Estimate, how: &str) -> Entry {
    Entry {
        under: bounds(estimate),
        ..Entry::titled(
            plus_minus(estimate),
            format!("{}; {how}", all_digits(estimate)),
        )
    }
}

/// The same for a difference, with its sign always.
pub(super) fn signed_entry(estimate: &Estimate, how: &str) -> Entry {
    Entry {
        text: signed_plus_minus(estimate),
        ..entry(estimate, how)
    }
}

/// How a number of this kind came about, with the widest enclosure.
pub(super) fn exactness(kind: Kind, width: f64) -> String {
    match kind {
        Kind::Exact => "exact".to_owned(),
        Kind::Enclosed => format!("enclosed, {}", at_most(width)),
        Kind::MonteCarlo => format!("Monte Carlo, {}", at_most(width)),
        Kind::Truncated => format!("truncated, {}", at_most(width)),
        Kind::Estimate if width > 0.0 => format!("estimate, {}", at_most(width)),
        Kind::Estimate => "estimate".to_owned(),
        Kind::Float => "plain floating point, without bounds".to_owned(),
    }
}

/// Numbers of a table with how they came about, to be told in one line under it.
#[derive(Default)]
pub(super) struct Tally {
    /// A kind, its widest enclosure, and what is known so.
    kinds: Vec<(Kind, f64, Vec<String>)>,
}

impl Tally {
    /// Adds a number; `name` says whose it is.
    pub fn add(&mut self, kind: Kind, width: f64, name: impl Into<String>) {
        let name = name.into();
        match self.kinds.iter_mut().find(|(known, _, _)| *known == kind) {
            Some((_, widest, names)) => {
                *widest = widest.max(width);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            None => self.kinds.push((kind, width, vec![name])),
        }
    }

    /// The line: each kind once, with the widest enclosure, and whose numbers they
    /// are unless they are most.
    pub fn line(&self) -> String {
        let most = (0..self.kinds.len())
            .rev()
            .max_by_key(|&index| self.kinds[index].2.len());
        let parts: Vec<String> = self
            .kinds
            .iter()
            .enumerate()
            .map(|(index, (kind, width, names))| {
                let how = exactness(*kind, *width);
                if self.kinds.len() == 1 {
                    how
                } else if most == Some(index) {
                    format!("{how} (all others)")
                } else {
                    format!("{how} ({})", listed(names))
                }
            })
            .collect();
        format!("Computed: {}.", parts.join("; "))
    }
}

/// The kinds, what the page calls them, and what they mean.
const KINDS: [(Kind, &str, &str); 4] = [
    (
        Kind::Exact,
        "exact",
        "A rational number, computed without rounding.",
    ),
    (
        Kind::Enclosed,
        "enclosed, w",
        "Rounding, and all that the computation left out, moves the value by no more than an \
             interval of width w, the widest of any position.",
    ),
    (
        Kind::MonteCarlo,
        "Monte Carlo, w",
        "A mean over simulated runs, with the width of an interval that holds the value with \
             probability 0.999 at each position; in a mean over positions most of it cancels, and \
             what is left is in the mean's interval.",
    ),
    (
        Kind::Truncated,
        "truncated, w",
        "Rows list only their most probable tokens. The full rows' value lies within the bounds \
             “in [a, b]”, whatever the tokens not listed are, and the value that is shown is the \
             middle of these; w is the room for rounding in it.",
    ),
];

/// What each kind means, of those that are there: as the page calls it, and in words.
pub(super) fn meanings(kinds: &[Kind]) -> Vec<(String, String)> {
    KINDS
        .iter()
        .filter(|(kind, _, _)| kinds.contains(kind))
        .map(|(_, word, meaning)| ((*word).to_owned(), (*meaning).to_owned()))
        .collect()
}

/// True for the name of a kind.
pub(super) fn is_kind(word: &str) -> bool {
    KINDS.iter().any(|(kind, _, _)| kind.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_names_all_but_the_most() {
        let mut tally = Tally::default();
        tally.add(Kind::Enclosed, 1e-13, "rrs");
        assert_eq!(tally.line(), "Computed: enclosed, 1.0e-13.");
        tally.add(Kind::Enclosed, 2e-13, "greedy");
        tally.add(Kind::MonteCarlo, 1e-5, "rrs-wo");
        assert_eq!(
            tally.line(),
            "Computed: enclosed, 2.0e-13 (all others); Monte Carlo, 1.0e-5 (rrs-wo)."
        );
    }
}
