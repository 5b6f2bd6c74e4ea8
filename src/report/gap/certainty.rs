//! How well a number is known, in words.
//!
//! Two uncertainties are kept apart. `± x` is about prompts that were not logged. How a
//! number came about is about the rows that were: it is exact, enclosed, Monte Carlo, or
//! that of truncated rows.

use super::select::{cell, laws, places};
use crate::gap::{Estimate, GapReport, Optimum, VerifierRow};
use crate::report::table::Entry;
use crate::report::text::{at_most, difference, listed, rate};

/// The `kind` of a number that was computed from truncated rows.
pub(super) const TRUNCATED: &str = "truncated";

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
        text: with_half_width(difference(estimate.mean), estimate),
        ..entry(estimate, how)
    }
}

/// True if some rows list only their most probable tokens, and the mass of the others
/// was spread over them: what is computed is then not the full rows' value.
///
/// Rows of a sampler that draws from the listed tokens alone have no such mass.
pub(super) fn is_truncated(report: &GapReport) -> bool {
    report.logs.iter().any(|log| !log.rest.is_empty())
}

/// The kind that a number of this report has. Reports once called numbers of truncated
/// rows enclosed, which they are not.
pub(super) fn kind<'a>(report: &GapReport, said: &'a str) -> &'a str {
    match said {
        "exact" | "enclosed" | "upper-bound" | "lower-bound" if is_truncated(report) => TRUNCATED,
        said => said,
    }
}

/// How a number of this kind came about, with the widest enclosure.
pub(super) fn exactness(kind: &str, width: f64) -> String {
    match kind {
        "exact" => "exact".to_owned(),
        "enclosed" => format!("enclosed, {}", at_most(width)),
        "upper-bound" => format!("upper bound, {}", at_most(width)),
        "lower-bound" => format!("lower bound, {}", at_most(width)),
        "monte-carlo" => format!("Monte Carlo, {}", at_most(width)),
        TRUNCATED => format!("truncated, {}", at_most(width)),
        // A report made before its kind was written down.
        "" => "not said".to_owned(),
        other => other.to_owned(),
    }
}

/// How a gap came about, with the widest enclosure: that of its two terms.
pub(super) fn of_gap(
    report: &GapReport,
    optimum: &Optimum,
    row: &VerifierRow,
) -> (&'static str, f64) {
    let any = |wanted: &str| optimum.kind == wanted || row.kind == wanted;
    let kind = if any("monte-carlo") {
        "monte-carlo"
    } else if any(TRUNCATED) || is_truncated(report) {
        TRUNCATED
    } else if row.kind == "exact" && optimum.kind == "exact" {
        "exact"
    } else {
        "enclosed"
    };
    (kind, optimum.width_max + row.width_max)
}

/// Numbers of a table with how they came about, to be told in one line under it.
#[derive(Default)]
pub(super) struct Tally<'a> {
    /// A kind, its widest enclosure, and what is known so.
    kinds: Vec<(&'a str, f64, Vec<String>)>,
}

impl<'a> Tally<'a> {
    /// Adds a number; `name` says whose it is.
    pub fn add(&mut self, kind: &'a str, width: f64, name: impl Into<String>) {
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
                let how = exactness(kind, *width);
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

/// The optima and verifiers of every cell, for the line under a table.
pub(super) fn of_rates(report: &GapReport) -> Tally<'_> {
    let mut tally = Tally::default();
    for (at, n) in places(report) {
        for cell in laws(report)
            .into_iter()
            .filter_map(|law| cell(report, at, n, law))
        {
            let optimum = &cell.optimal_acceptance_rate;
            tally.add(
                kind(report, &optimum.kind),
                optimum.width_max,
                format!("α* of {}", cell.scheme),
            );
            for row in &cell.verifiers {
                tally.add(kind(report, &row.kind), row.width_max, &row.name);
            }
        }
    }
    tally
}

/// The kinds: as the report calls them, as the page does, and what they mean.
const KINDS: [(&str, &str, &str); 4] = [
    (
        "exact",
        "exact",
        "A rational number, computed without rounding.",
    ),
    (
        "enclosed",
        "enclosed, w",
        "Rounding, and all that the computation left out, moves the value by no more than an \
             interval of width w, the widest of any position.",
    ),
    (
        "monte-carlo",
        "Monte Carlo, w",
        "A mean over simulated runs, with the width of an interval that holds the value with \
             probability 0.999 at each position; in a mean over positions most of it cancels, and \
             what is left is in the mean's interval.",
    ),
    (
        TRUNCATED,
        "truncated, w",
        "Rows list only their most probable tokens. The value is that of the listed tokens \
             with the rest of the mass spread evenly over 64 entries; rounding moves this value by \
             no more than an interval of width w. The full rows' value is another one: it lies \
             within the bounds “in [a, b]” where they are given, over all that the tokens not \
             listed may be.",
    ),
];

/// What each kind means, of those that the report has.
pub(super) fn definitions(report: &GapReport) -> Vec<(String, String)> {
    let mut kinds: Vec<&str> = Vec::new();
    for cell in &report.cells {
        kinds.push(kind(report, &cell.optimal_acceptance_rate.kind));
        kinds.extend(cell.verifiers.iter().map(|row| kind(report, &row.kind)));
    }
    kinds.extend(report.overlap.iter().map(|row| kind(report, &row.kind)));
    KINDS
        .iter()
        .filter(|(kind, _, _)| kinds.contains(kind))
        .map(|(_, word, meaning)| ((*word).to_owned(), (*meaning).to_owned()))
        .collect()
}

/// True for the name of a kind.
pub(super) fn is_kind(word: &str) -> bool {
    KINDS.iter().any(|(kind, _, _)| *kind == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_names_all_but_the_most() {
        let mut tally = Tally::default();
        tally.add("enclosed", 1e-13, "rrs");
        assert_eq!(tally.line(), "Computed: enclosed, 1.0e-13.");
        tally.add("enclosed", 2e-13, "greedy");
        tally.add("monte-carlo", 1e-5, "rrs-wo");
        assert_eq!(
            tally.line(),
            "Computed: enclosed, 2.0e-13 (all others); Monte Carlo, 1.0e-5 (rrs-wo)."
        );
    }
}
