//! Numbers, names and sentences of a gap report.

use crate::gap::{Cell, Estimate, GapReport, VerifierRow};
use std::collections::BTreeMap;

/// A gap below this counts as none: the upper edge of the first bin of
/// [`crate::gap::HISTOGRAM_EDGES`].
pub(super) const NO_GAP: f64 = 1e-6;

/// A temperature, always with a decimal point.
pub(super) fn temperature(value: f64) -> String {
    format!("{value:?}")
}

/// A rate or a difference of rates: four decimals, or powers of ten where those
/// would hide it.
pub(super) fn rate(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if size < 1e-4 {
        signed(format!("{value:.1e}"))
    } else {
        signed(format!("{value:.4}"))
    }
}

/// A minus sign instead of a hyphen.
fn signed(text: String) -> String {
    match text.strip_prefix('-') {
        Some(digits) => format!("−{digits}"),
        None => text,
    }
}

/// A difference, with its sign always.
pub(super) fn difference(value: f64) -> String {
    if value > 0.0 {
        format!("+{}", rate(value))
    } else {
        rate(value)
    }
}

/// Half the width of the interval; `None` where there is one cluster only, so
/// that no interval can be given.
pub(super) fn half_width(estimate: &Estimate) -> Option<f64> {
    let [low, high] = estimate.ci95;
    (high > low).then(|| (high - low) / 2.0)
}

/// `mean ± half the width of the 95% interval`.
pub(super) fn plus_minus(estimate: &Estimate) -> String {
    with_half_width(rate(estimate.mean), estimate)
}

/// The same with the sign of the mean.
pub(super) fn signed_plus_minus(estimate: &Estimate) -> String {
    with_half_width(difference(estimate.mean), estimate)
}

fn with_half_width(mean: String, estimate: &Estimate) -> String {
    match half_width(estimate) {
        Some(half) => format!("{mean} ± {}", rate(half)),
        None => mean,
    }
}

/// The 95% interval, or a dash.
pub(super) fn interval(estimate: &Estimate) -> String {
    let [low, high] = estimate.ci95;
    match half_width(estimate) {
        Some(_) => format!("[{}, {}]", rate(low), rate(high)),
        None => "–".to_owned(),
    }
}

/// All digits of an estimate, to stand behind a rounded one.
pub(super) fn all_digits(estimate: &Estimate) -> String {
    let [low, high] = estimate.ci95;
    format!("mean {}, 95% interval [{low}, {high}]", estimate.mean)
}

/// A p-value with two digits.
pub(super) fn p_value(value: f64) -> String {
    if value < 1e-300 {
        "< 1e-300".to_owned()
    } else if value < 1e-3 {
        format!("{value:.1e}")
    } else {
        format!("{value:.3}")
    }
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A whole number with thin separators.
pub(super) fn count(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 prompt`, `16 prompts`.
pub(super) fn counted(value: usize, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(value))
}

/// A width with two digits, rounded up.
fn at_most(width: f64) -> String {
    let text = format!("{width:.1e}");
    if text.parse::<f64>().is_ok_and(|shown| shown < width) {
        format!("{:.1e}", width * 1.05)
    } else {
        text
    }
}

/// How a number of this kind came about, with the widest enclosure.
pub(super) fn exactness(kind: &str, width: f64) -> String {
    match kind {
        "exact" => "exact".to_owned(),
        "enclosed" => format!("enclosed, {}", at_most(width)),
        "monte-carlo" => format!("Monte Carlo, {}", at_most(width)),
        // A report made before its kind was written down.
        "" => "–".to_owned(),
        other => other.to_owned(),
    }
}

/// The same for several cells of a row: each kind once, with the widest.
pub(super) fn exactness_of<'a>(kinds: impl Iterator<Item = (&'a str, f64)>) -> String {
    let mut widest: Vec<(&str, f64)> = Vec::new();
    for (kind, width) in kinds {
        match widest.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known = known.max(width),
            None => widest.push((kind, width)),
        }
    }
    let words: Vec<String> = widest
        .iter()
        .map(|(kind, width)| exactness(kind, *width))
        .collect();
    words.join("; ")
}

/// The value at a share of the positions, if the report has it.
pub(super) fn quantile(quantiles: &BTreeMap<String, f64>, share: f64) -> Option<f64> {
    quantiles
        .iter()
        .find(|(key, _)| {
            key.parse::<f64>()
                .is_ok_and(|key| (key - share).abs() < 1e-9)
        })
        .map(|(_, value)| *value)
}

/// The gap is below [`NO_GAP`] wherever it was measured.
pub(super) fn attains(verifier: &VerifierRow) -> bool {
    verifier.gap.max.abs() < NO_GAP && verifier.gap.estimate.mean.abs() < NO_GAP
}

/// The temperatures of the cells, ascending.
pub(super) fn temperatures(report: &GapReport) -> Vec<f64> {
    let mut all: Vec<f64> = report.cells.iter().map(|cell| cell.temperature).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// The numbers of drafts of the cells, ascending.
pub(super) fn drafts(report: &GapReport) -> Vec<usize> {
    let mut all: Vec<usize> = report.cells.iter().map(|cell| cell.drafts).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The schemes of the cells, in the order that they come in.
pub(super) fn schemes(report: &GapReport) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for cell in &report.cells {
        if !all.contains(&cell.scheme.as_str()) {
            all.push(&cell.scheme);
        }
    }
    all
}

/// The verifiers of a scheme, in the order that they come in.
pub(super) fn verifiers<'a>(report: &'a GapReport, scheme: &str) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for cell in report.cells.iter().filter(|cell| cell.scheme == scheme) {
        for verifier in &cell.verifiers {
            if !all.contains(&verifier.name.as_str()) {
                all.push(&verifier.name);
            }
        }
    }
    all
}

/// One cell of a report.
pub(super) fn cell<'a>(
    report: &'a GapReport,
    temperature: f64,
    drafts: usize,
    scheme: &str,
) -> Option<&'a Cell> {
    report.cells.iter().find(|cell| {
        cell.temperature == temperature && cell.drafts == drafts && cell.scheme == scheme
    })
}

/// The (temperature, n) that summaries speak of: the temperature nearest to 1,
/// and the most drafts up to 3, or else the fewest.
pub(super) fn headline(report: &GapReport) -> Option<(f64, usize)> {
    let temperature = temperatures(report)
        .into_iter()
        .min_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()))?;
    let mut counts: Vec<usize> = report
        .cells
        .iter()
        .filter(|cell| cell.temperature == temperature)
        .map(|cell| cell.drafts)
        .collect();
    counts.sort_unstable();
    let drafts = counts.iter().rev().find(|&&n| n <= 3).or(counts.first())?;
    Some((temperature, *drafts))
}

/// What the report is about, in a few words.
pub(super) fn title(report: &GapReport) -> String {
    let names: Vec<&str> = report.logs.iter().map(|log| log.name.as_str()).collect();
    if names.is_empty() {
        "Acceptance and gap report".to_owned()
    } else {
        format!("Acceptance and gap: {}", names.join(", "))
    }
}

/// N and its clusters.
pub(super) fn extent(report: &GapReport) -> String {
    let positions = counted(report.positions, "position");
    if report.cluster_unit == "position" {
        positions
    } else {
        format!(
            "{positions} of {}",
            counted(report.clusters, &report.cluster_unit)
        )
    }
}

/// The main numbers, in sentences.
pub(super) fn summary(report: &GapReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some((at, n)) = headline(report) else {
        sentences.push(format!(
            "Over {}, no cell of temperature, drafts and scheme was evaluated.",
            extent(report)
        ));
        return sentences;
    };
    sentences.push(format!(
        "Over {}, at temperature {} with {} a position:",
        extent(report),
        temperature(at),
        counted(n, "draft"),
    ));
    let cells = schemes(report)
        .into_iter()
        .filter_map(|scheme| cell(report, at, n, scheme));
    sentences.extend(
        cells
            .enumerate()
            .map(|(index, cell)| scheme_sentence(cell, index == 0)),
    );
    if let Some(row) = report.overlap.iter().find(|row| row.temperature == at) {
        sentences.push(format!(
            "A single draft would be accepted at {} of the positions.",
            plus_minus(&row.estimate)
        ));
    }
    sentences.push(if report.clusters <= 1 {
        format!(
            "There is one {} only, so that no interval can be given.",
            report.cluster_unit
        )
    } else {
        format!(
            "± is half the width of a 95% interval, clustered by {}.",
            report.cluster_unit
        )
    });
    sentences
}

/// What a scheme allows, and how far from it its verifiers stay.
fn scheme_sentence(cell: &Cell, first: bool) -> String {
    let optimum = &cell.optimal_acceptance_rate;
    let limit = plus_minus(&optimum.estimate);
    let mut out = if first {
        format!(
            "from {} drafts, no lossless verifier can accept more than {limit}",
            cell.scheme
        )
    } else {
        format!(
            "From {} drafts, none can accept more than {limit}",
            cell.scheme
        )
    };
    if cell.verifiers.is_empty() {
        out.push_str("; no verifier of them was run.");
        return out;
    }
    let mut rows: Vec<&VerifierRow> = cell.verifiers.iter().collect();
    rows.sort_by(|a, b| a.gap.estimate.mean.total_cmp(&b.gap.estimate.mean));
    let (attaining, below): (Vec<&VerifierRow>, Vec<&VerifierRow>) =
        rows.into_iter().partition(|verifier| attains(verifier));
    if !attaining.is_empty() {
        let names: Vec<&str> = attaining.iter().map(|row| row.name.as_str()).collect();
        let ending = if names.len() == 1 { "s" } else { "" };
        out.push_str(&format!(", which {} attain{ending}", names.join(" and ")));
    }
    for (index, verifier) in below.into_iter().enumerate() {
        let share = verifier.acceptance.mean / optimum.estimate.mean;
        let share = if share.is_finite() {
            format!(" ({} of it)", percent(share))
        } else {
            String::new()
        };
        let verb = if index == 0 { "; " } else { ", " };
        let short = if index == 0 {
            " falls short of this"
        } else {
            ""
        };
        out.push_str(&format!(
            "{verb}{}{short} by {}{share}",
            verifier.name,
            plus_minus(&verifier.gap.estimate)
        ));
    }
    out.push('.');
    out
}

/// What the rest mass of top-heavy rows means.
pub(super) const REST_MEANING: &str = "Rows list only their top tokens; the rest of the mass lies \
    outside and is spread evenly over 64 entries. The optimum with replacement is within (target \
    rest) of the full rows'. Masses are those that the log gives, averaged in double precision.";
