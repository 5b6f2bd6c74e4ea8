//! The first lines of a gap report.

use super::certainty::is_truncated;
use super::own;
use super::select::{along_text, drafts, sampled_at, temperatures};
use crate::cautions;
use crate::files::with_models;
use specgap_measure::{GapReport, LogSummary, PlanRow, RateAudit};
use specgap_number::known::Kind;
use specgap_page::words::{at_most, count, counted, listed, percent, temperature};
use specgap_sampling::Cuts;

/// Clusters below which an interval is rough.
const FEW: usize = 10;

/// Says what the report is about, in a few words.
pub(super) fn title(report: &GapReport) -> String {
    let names: Vec<&str> = report.logs.iter().map(|log| log.name.as_str()).collect();
    match names.is_empty() {
        true => "Acceptance and gap report".to_owned(),
        false => format!("Acceptance and gap: {}", names.join(", ")),
    }
}

/// The extent and the models.
pub(super) fn subtitle(report: &GapReport) -> String {
    with_models(extent(report), report.logs.iter().map(|log| &log.metadata))
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

/// Says something of intervals by their unit; nothing of one cluster, which has none.
pub(super) fn over_clusters(report: &GapReport, says: impl FnOnce(&str) -> String) -> String {
    match report.clusters > 1 {
        true => says(&report.cluster_unit),
        false => String::new(),
    }
}

/// What that means.
pub(super) const SERVED: &str = "both models' logits are divided by the temperature; of the \
    softmax the top-k most probable tokens are kept, of these the fewest that have top-p of \
    their mass, of these the ones that have at least min-p times the largest; what is kept is \
    renormalised. Of equal tokens those with lower ids come first";

/// Says why it is this temperature that is spoken of, if the logs say it.
pub(super) fn why(report: &GapReport, at: f64) -> &'static str {
    match sampled_at(report) {
        Some(sampled) if sampled == at => ", at which the text was sampled,",
        _ => "",
    }
}

/// Says what may make all numbers others than those that are meant.
pub(super) fn first_cautions(report: &GapReport) -> Vec<String> {
    let logs = || report.logs.iter();
    let all = [
        own::caution(report),
        cautions::unfinished(logs().map(|log| log.metadata.unfinished())),
        cautions::at_depth(logs().filter_map(|log| log.depth)),
        cautions::without_draft(
            (logs().filter(|log| log.depth.is_none()))
                .map(|log| (log.without_draft, log.positions)),
        ),
        cautions::missing(logs().map(|log| log.missing_mass)),
        cautions::masked(logs().any(|log| log.masked)),
        cautions::repeated(logs().map(|log| log.repeated_positions).sum()),
    ];
    all.into_iter().flatten().collect()
}

/// Says what a reader has to know to read the numbers right.
pub(super) fn cautions(report: &GapReport, at: f64) -> Vec<String> {
    let [checks, rates] = short_plans(report);
    let logs = || report.logs.iter();
    let all = [
        greedy(report, at),
        longer_lists(report, at),
        surprise(report),
        cautions::looping(logs().map(|log| (log.positions, log.repetition))),
        cautions::parallel(
            // Where there are rows for each depth, they are what such a drafter has.
            logs().any(|log| log.metadata.is_parallel() && log.depth.is_none()),
        ),
        audits(report),
        checks,
        rates,
        clusters(report),
    ];
    all.into_iter().flatten().collect()
}

/// Texts that hardly look drawn from their rows; of rows that cannot tell, where a rate rests on
/// the text.
fn surprise(report: &GapReport) -> Option<String> {
    let rests_on_text = report.overlap.iter().any(|row| along_text(row).is_some());
    let tested = report.logs.iter().filter_map(|log| log.surprise.as_ref());
    let mut found = tested.filter(|one| one.z.is_some() || rests_on_text);
    found.find_map(cautions::surprise)
}

/// Logs whose text was not drawn from their rows, or whose draft's rows are about other positions.
pub(super) fn not_drawn(report: &GapReport) -> impl Iterator<Item = String> {
    report.logs.iter().flat_map(|log| {
        let found = [
            cautions::not_drawn(log.surprise.as_ref()),
            cautions::strange_draft(log.fit.as_ref()),
        ];
        (found.into_iter())
            .flatten()
            .map(|text| match report.logs.len() {
                1 => text,
                _ => format!("{}: {text}", log.name),
            })
    })
}

/// Says that further drafts at temperature 0 are the first one again.
fn greedy(report: &GapReport, at: f64) -> Option<String> {
    let alone = !report.redrafted.iter().any(|row| row.temperature == at);
    let several = drafts(report).into_iter().any(|n| n > 1);
    (at == 0.0 && alone && several).then(|| {
        "At temperature 0 the draft has all of its mass on one token too, so that further drafts \
         add nothing. Engines draft the likeliest tokens of a row that is not at 0: \
         --draft-temperature 1 says what these give."
            .to_owned()
    })
}

/// Says what rows that list only some tokens do to every number.
pub(super) fn truncation(report: &GapReport, at: f64) -> Option<String> {
    let listing = truncated(report)?;
    let masses: Vec<_> = cut_logs(report)
        .flat_map(|log| &log.rest)
        .filter(|rest| rest.temperature == at)
        .collect();
    let largest = |mass: fn(&specgap_measure::RestMass) -> f64| {
        masses.iter().map(|rest| mass(rest)).fold(0.0, f64::max)
    };
    let rest = if masses.is_empty() {
        String::new()
    } else {
        format!(
            " (at T = {} on average {} of the target's mass and {} of the draft's)",
            temperature(at),
            percent(largest(|rest| rest.target_mean)),
            percent(largest(|rest| rest.draft_mean))
        )
    };
    let consequence = if has_bounds(report) {
        "Bounds of what the full rows would give at the same positions, whatever the others are, \
         stand behind each number. The number is the middle of these bounds, and ± is about the \
         sample alone. Where the bounds are further apart than ±, they stand alone, “a to b”."
    } else {
        "The numbers are those of the truncated rows, and the full rows would give others."
    };
    Some(format!(
        "{listing}. They say of all other tokens{rest} no more than how much they have together. \
         {consequence}"
    ))
}

/// Says that rows list some tokens only, and how many.
pub(super) fn truncated(report: &GapReport) -> Option<String> {
    if !is_truncated(report) {
        return None;
    }
    let most = cut_logs(report).max_by_key(|log| log.listed)?;
    Some(format!(
        "Truncated rows: they list at most {} of {} tokens",
        count(most.listed),
        count(most.vocabulary)
    ))
}

/// Tells whether numbers of truncated rows come with bounds of the full rows'.
pub(super) fn has_bounds(report: &GapReport) -> bool {
    report.cells.iter().any(|cell| {
        let mut rows = cell.verifiers.iter();
        cell.optimal_acceptance_rate.estimate.truncation.is_some()
            || rows.any(|row| row.acceptance.truncation.is_some())
    })
}

/// Logs with rows that list some tokens only.
fn cut_logs(report: &GapReport) -> impl Iterator<Item = &LogSummary> {
    let is_cut = |log: &&LogSummary| {
        log.rows == "top-heavy" && log.metadata.unlisted.is_none() || !log.rest.is_empty()
    };
    report.logs.iter().filter(is_cut)
}

/// Width of the bounds of a single draft's acceptance above which lists are called too short.
const TOO_WIDE: f64 = 0.05;

/// List lengths that are asked for.
const LENGTHS: [usize; 3] = [256, 1024, 4096];

/// Says what to ask the engine for, if the lists say too little.
fn longer_lists(report: &GapReport, at: f64) -> Option<String> {
    let row = report.overlap.iter().find(|row| row.temperature == at)?;
    let bounds = row.estimate.truncation;
    let [low, high] = bounds.filter(|[low, high]| high - low > TOO_WIDE)?;
    let log = cut_logs(report).min_by_key(|log| log.listed)?;
    let has = match log.metadata.tops() {
        Some([target, draft]) if target.min(draft) > 0 => target.min(draft),
        _ => log.listed,
    };
    let wanted = LENGTHS.into_iter().find(|&length| length > has);
    let ask = match wanted.filter(|&length| length < log.vocabulary) {
        Some(length) => format!(
            "log the {} most probable tokens of each model",
            count(length)
        ),
        None => "log full rows".to_owned(),
    };
    let union = if log.own_lists && wanted.is_some() {
        ", and have both models score the tokens of both lists: what one list lacks of the other's \
         is a part of this"
    } else {
        ""
    };
    // What the text's own tokens tell needs no list.
    let along = match row.along_text.filter(|along| along.truncation.is_none()) {
        Some(_) => {
            " Several drafts need that; a single draft's acceptance by the text's own tokens, and \
             specgap length, do not."
        }
        None => "",
    };
    Some(format!(
        "The lists are too short for temperature {}: they leave a single draft's acceptance open by \
         {}, from {} to {}. To narrow it, {ask}{union}. Lower temperatures need less.{along}",
        temperature(at),
        percent(high - low),
        percent(low),
        percent(high)
    ))
}

/// Temperatures that the text does not belong to.
pub(super) fn sampling(report: &GapReport) -> Option<String> {
    let sampled = sampled_at(report)?;
    let kept = report.served.unwrap_or_default();
    let drawn = drawn_from(report)?.or_as(kept);
    // The most probable token is kept by any cut.
    let is_cut_alike = drawn.at(sampled) == kept.at(sampled) || sampled == 0.0;
    let others: Vec<String> = (temperatures(report).into_iter())
        .filter(|&at| at != sampled || !is_cut_alike)
        .map(|at| format!("T = {}", temperature(at)))
        .collect();
    let with = |kept: Cuts| match (is_cut_alike, kept.keep_all()) {
        (true, _) => String::new(),
        (false, true) => " from whole rows".to_owned(),
        (false, false) => format!(" with {}", kept.in_words(&[sampled])),
    };
    (!others.is_empty()).then(|| {
        format!(
            "The text was sampled at T = {}{}. What is said of {}{} is evaluated on that text, \
             which is not what would have been sampled there.",
            temperature(sampled),
            with(drawn),
            listed(&others),
            with(kept),
        )
    })
}

/// Returns what the text of every log was drawn from, if it is one and known.
fn drawn_from(report: &GapReport) -> Option<Cuts> {
    let mut known = report.logs.iter().map(|log| {
        let how = log.metadata.sampling.as_ref();
        how.map(|how| Cuts::from(how).effective())
    });
    let first = known.next()??;
    known.all(|other| other == Some(first)).then_some(first)
}

/// Estimates that the audit does not bear out.
fn audits(report: &GapReport) -> Option<String> {
    let outside = |audit: &&RateAudit| audit.kind != Kind::MonteCarlo && audit.outside > 0;
    let names: Vec<String> = (report.audits.iter().filter(outside))
        .map(|audit| {
            format!(
                "{} at T = {} with {}: {} of {}",
                audit.verifier,
                temperature(audit.temperature),
                counted(audit.drafts, "draft"),
                audit.outside,
                counted(audit.positions as usize, "audited position")
            )
        })
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Estimates are outside of the enclosure: {}. Measure again with --rrs-wo enclosed.",
            names.join("; ")
        )
    })
}

/// What a solved plan may lack by rounding.
const SHORT: f64 = 1e-9;

/// Plans that were solved, as a check or for their rate, and fall short of alpha*.
fn short_plans(report: &GapReport) -> [Option<String>; 2] {
    let of = |is_check: bool| short_names(report, is_check);
    let checks = of(true).map(|names| {
        format!(
            "Optimal plans that were solved as a check accept less than alpha*: {names}. The rate \
             of level is alpha* all the same, by a theorem; --plans every measures what the \
             plans accept."
        )
    });
    let rates = of(false).map(|names| {
        format!(
            "Plans of level did not reach alpha*: {names}. That is where their solver stopped, \
             and not what an optimal plan loses."
        )
    });
    [checks, rates]
}

fn short_names(report: &GapReport, is_check: bool) -> Option<String> {
    let short =
        |plan: &&PlanRow| plan.positions.is_some() == is_check && plan.shortfall_max > SHORT;
    let names: Vec<String> = (report.plans.iter().filter(short))
        .map(|plan| {
            format!(
                "{} at T = {} with {}: by up to {}",
                plan.scheme,
                temperature(plan.temperature),
                counted(plan.drafts, "draft"),
                at_most(plan.shortfall_max)
            )
        })
        .collect();
    (!names.is_empty()).then(|| names.join("; "))
}

/// Says what few clusters do to the intervals.
fn clusters(report: &GapReport) -> Option<String> {
    let unit = &report.cluster_unit;
    match report.clusters {
        0 | 1 => Some(format!(
            "There is one {unit} only, so that no interval can be given."
        )),
        few if few < FEW => Some(format!(
            "There are {few} {unit}s only. An interval from fewer than {FEW} is rough: its true \
             level may be far from 95%."
        )),
        _ => None,
    }
}
