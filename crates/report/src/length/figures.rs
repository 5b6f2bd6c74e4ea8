//! The pictures of a report on draft lengths.

use super::numbers::{cost, decimals, plus_minus};
use super::tables::{of, verifiers};
use crate::certainty::{larger, point};
use crate::pictures::{chart, ends};
use specgap_page::Figure;
use specgap_page::plot::{Axis, Line, LinePlot, Point};
use specgap_replay::replay::{
    AtCost, Chosen, ChosenPolicy, DecidedOn, Drafts, FAMILIES, LengthReport, Parameter,
    PolicyResult, costs_shown,
};
use std::cmp::Ordering;

/// The colour of a verifier, the same in every picture.
fn hue(verifier: &str) -> usize {
    match verifier {
        "token" => 0,
        "block" => 1,
        "greedy-block" => 2,
        _ => 3,
    }
}

/// The oracle's.
const ORACLE: usize = 4;

fn length(row: &PolicyResult) -> Option<f64> {
    match row.parameter {
        Parameter::Count(count) => Some(count as f64),
        Parameter::Threshold(_) => None,
    }
}

/// Says what a line ends with, for readers who do not see it.
fn said(lines: &[Line]) -> String {
    ends(lines, |point| decimals(point.y, 3))
}

/// Speed-up by cost.
pub(super) fn speed(report: &LengthReport) -> Option<Figure> {
    let first = report.by_cost.first()?;
    let line = |label: String, hue, value: &dyn Fn(&AtCost) -> Option<f64>| {
        let costs = report.by_cost.iter();
        let points = costs.filter_map(|at| Some(Point::new(at.cost_ratio, value(at)?)));
        Line::solid(label, hue, points)
    };
    let oracle = "oracle: no lengths are quicker with token verification".to_owned();
    let mut lines = vec![line(oracle, ORACLE, &|at| Some(at.oracle.mean)).dashed(0)];
    let (sampled, others): (Vec<&Chosen>, Vec<&Chosen>) =
        (first.chosen.iter()).partition(|one| one.drafts == Drafts::Sampled);
    for chosen in others {
        lines.push(line(
            format!("best fixed length, {} drafts", chosen.drafts),
            5 + chosen.drafts as usize,
            &|at| Some(at.found(chosen.drafts, &chosen.verifier)?.speedup.mean),
        ));
    }
    for chosen in sampled {
        let name = chosen.verifier.as_str();
        let fixed = |at: &AtCost| Some(at.found(Drafts::Sampled, name)?.speedup.mean);
        let blind = |at: &AtCost| {
            let bound = at.coin_blind.iter().find(|one| one.verifier == name)?;
            Some(bound.speedup?.mean)
        };
        lines.extend([
            line(format!("best fixed length, {name}"), hue(name), &fixed),
            line(format!("coin-blind, {name}"), hue(name), &blind).dashed(1),
        ]);
    }
    let mut ratios: Vec<f64> = report.by_cost.iter().map(|at| at.cost_ratio).collect();
    let after: Vec<f64> = ratios.iter().skip(1).copied().collect();
    let mut after = after.into_iter();
    // Names that would run into the next one are left out.
    ratios.retain(|ratio| after.next().is_none_or(|next| next > 1.4 * ratio));
    let x = Axis {
        label: "cost ratio c: a draft step over a target step".to_owned(),
        stops: (ratios.into_iter())
            .map(|ratio| (ratio, cost(ratio)))
            .collect(),
        log: true,
    };
    let title = "Speed-up by the cost of a draft step";
    let plot = LinePlot {
        y_covers: Some([1.0, 1.0]),
        ..LinePlot::new(title, x, "times as fast as the target alone", lines)
    };
    let caption = format!(
        "{title}; a verifying pass costs a target step. Solid: the fixed length that is best \
         on half of the prompts, on the others. Dashed: what bounds it."
    );
    Some(chart(
        "speed-by-cost",
        &plot,
        &said(&plot.lines),
        caption,
        quicker(report),
    ))
}

/// Says what the best length gives at the least and the largest cost, if their intervals are apart.
fn quicker(report: &LengthReport) -> Option<String> {
    let ends = [report.by_cost.first()?, report.by_cost.last()?];
    let [cheap, dear] = ends.map(AtCost::first);
    let [cheap, dear] = [cheap?, dear?];
    (larger(&cheap.speedup, &dear.speedup) == Some(Ordering::Greater)).then(|| {
        format!(
            "The best fixed length is {} times as fast as the target alone at c = {}, {} times at {}",
            decimals(cheap.speedup.mean, 2),
            cost(ends[0].cost_ratio),
            decimals(dear.speedup.mean, 2),
            cost(ends[1].cost_ratio)
        )
    })
}

/// Finds the shortest and the longest length of a verifier, where their intervals are apart.
fn from_to(report: &LengthReport) -> Option<[&PolicyResult; 2]> {
    let verifier = *verifiers(report).first()?;
    let known = || of(report, verifier, true).filter(|row| row.tokens_per_call.is_some());
    let by_length = |a: &&PolicyResult, b: &&PolicyResult| {
        let of = |row: &PolicyResult| length(row).unwrap_or(0.0);
        of(a).total_cmp(&of(b))
    };
    let ends = [known().min_by(by_length)?, known().max_by(by_length)?];
    let [short, long] = ends.map(|row| row.tokens_per_call.as_ref());
    (larger(long?, short?) == Some(Ordering::Greater)).then_some(ends)
}

fn longer(report: &LengthReport) -> Option<String> {
    let [short, long] = from_to(report)?;
    let tokens = |row: &PolicyResult| Some(decimals(row.tokens_per_call.as_ref()?.mean, 2));
    Some(format!(
        "{} verification gives {} tokens for each target call with K = {}, {} with K = {}",
        short.verifier,
        tokens(short)?,
        short.parameter,
        tokens(long)?,
        long.parameter
    ))
}

fn fewer_calls(report: &LengthReport) -> Option<String> {
    let [short, long] = from_to(report)?;
    let means = |row: &PolicyResult| {
        let [calls, discards] = [row.verification_rate?, row.discard_rate?];
        Some([calls, discards].map(|one| decimals(one.mean, 2)))
    };
    let ([calls, discards], [fewer, more]) = (means(short)?, means(long)?);
    Some(format!(
        "From K = {} to {}, {} verification makes {fewer} instead of {calls} calls for each token, and \
         discards {more} instead of {discards} drafts",
        short.parameter, long.parameter, short.verifier
    ))
}

/// Draws what a round accepts, and what a decoder gets for a call, by length.
pub(super) fn lengths(report: &LengthReport) -> Option<Figure> {
    let mut lines = Vec::new();
    for verifier in verifiers(report) {
        let rows = || of(report, verifier, true);
        let calls = rows().filter_map(|row| Some(point(length(row)?, &row.tokens_per_call?)));
        let label = format!("tokens per call, {verifier}");
        lines.push(Line::solid(label, hue(verifier), calls));
        // What one round accepts, where rounds cannot be replayed. Intervals of all lines would hide
        // one another.
        if !rows().any(|row| row.tokens_per_call.is_some()) {
            let one_round = rows().filter_map(|row| {
                let accepted = row.accepted_from_everywhere?;
                Some(Point::new(length(row)?, accepted.mean + 1.0))
            });
            let label = format!("E[τ] + 1 of one round, {verifier}");
            lines.push(Line::solid(label, hue(verifier), one_round).dashed(1));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    let points = lines.iter().flat_map(|line| &line.points);
    let mut stops: Vec<f64> = points.map(|point| point.x).collect();
    stops.sort_by(f64::total_cmp);
    stops.dedup();
    if stops.is_empty() {
        return None;
    }
    let title = "Tokens for each target call, by draft length";
    let stops = stops.into_iter().map(|x| (x, x.to_string()));
    let plot = LinePlot::new(title, Axis::new("drafts K a round", stops), "tokens", lines);
    let caption = format!(
        "{title}. Solid: what a decoder gets, its rounds replayed along the text. Dashed: one \
         round from every position alike, its own token counted. Bars: 95% intervals over \
         prompts, of solid lines. Points at the same place are set side by side."
    );
    Some(chart(
        "tokens-per-call",
        &plot,
        &said(&plot.lines),
        caption,
        longer(report),
    ))
}

/// Target calls over discards. Intervals would set points aside that have to be where they are.
fn means(row: &PolicyResult) -> Option<Point> {
    Some(Point::new(
        row.discard_rate?.mean,
        row.verification_rate?.mean,
    ))
}

fn ascending(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// Target calls against discards.
pub(super) fn rates(report: &LengthReport) -> Option<Figure> {
    let mut lines = Vec::new();
    for verifier in verifiers(report) {
        let points = while_it_pays(of(report, verifier, true).filter_map(means).collect());
        if points.is_empty() {
            continue;
        }
        let line = |what: &str, points| {
            Line::solid(
                format!("{what}, {verifier}"),
                hue(verifier),
                ascending(points),
            )
        };
        lines.push(line("fixed lengths", points));
        let blind = report.by_cost.iter().filter_map(|at| {
            let bound = at.coin_blind.iter().find(|one| one.verifier == verifier)?;
            let x = bound.discard_rate.mean;
            Some(Point::new(x, bound.verification_rate.mean))
        });
        lines.push(line("coin-blind at costs from 0.01 to 0.8", blind.collect()).dashed(1));
        let schedule = of(report, verifier, false).filter(|row| row.policy == "schedule");
        let schedule: Vec<Point> = schedule.filter_map(means).collect();
        if !schedule.is_empty() {
            lines.push(line("schedule", schedule).dashed(4));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let oracle = &report.bounds.oracle;
    let oracle = Point::new(oracle.discard_rate.mean, oracle.verification_rate.mean);
    lines.push(Line::solid("oracle, token", ORACLE, [oracle]).dashed(0));
    let says = "lower and further left is better at every cost. Points of a solid line: lengths K, \
                from the left as in the tables; longer ones, which save less than 1% of the calls, \
                are not drawn.";
    let name = "calls-and-discards".to_owned();
    let title = "Target calls against discarded drafts".to_owned();
    Some(against_discards(
        name,
        title,
        lines,
        says,
        fewer_calls(report),
    ))
}

/// Lines of target calls over discarded drafts.
fn against_discards(
    name: String,
    title: String,
    lines: Vec<Line>,
    says: &str,
    finding: Option<String>,
) -> Figure {
    let points = lines.iter().flat_map(|line| &line.points);
    let most = points.map(|point| point.x).fold(0.0, f64::max);
    let x = Axis::new(
        "discarded drafts for each token of the text",
        round_stops(most),
    );
    let caption = format!("{title}: {says}");
    let plot = LinePlot::new(title, x, "target calls for each token of the text", lines);
    chart(name, &plot, &said(&plot.lines), caption, finding)
}

/// Each family's target calls against its discards, a picture for each verifier.
pub(super) fn fronts(report: &LengthReport) -> Vec<Figure> {
    let each = verifiers(report).into_iter();
    each.filter_map(|verifier| front(report, verifier))
        .collect()
}

fn front(report: &LengthReport, verifier: &str) -> Option<Figure> {
    let points = |family: &str| -> Vec<Point> {
        let rows = of(report, verifier, family == "fixed");
        let rows = rows.filter(|row| row.policy == family);
        ascending(rows.filter_map(means).collect())
    };
    let mut lines = vec![Line::solid(
        "fixed lengths",
        0,
        while_it_pays(points("fixed")),
    )];
    // What stops by itself, where its drafts are known.
    let families = (FAMILIES.iter()).filter(|family| family.decided_on != DecidedOn::EarlierRounds);
    for (index, family) in families.enumerate() {
        let label = format!("{}: {}", family.name, family.decided_on.as_str());
        let line = Line::solid(label, 1 + index, points(family.name)).dashed(index);
        lines.extend(Some(line).filter(|line| !line.points.is_empty()));
    }
    if lines.len() < 2 {
        return None;
    }
    let title = format!("Policies: target calls against discarded drafts, {verifier} verification");
    let says = "a policy below the solid line makes fewer calls for the same discards. Points of a \
                line: its numbers x; their intervals are in the tables.";
    let (name, finding) = (format!("policies-{verifier}"), stopping(report, verifier));
    Some(against_discards(name, title, lines, says, finding))
}

/// Says what a policy adds to the best fixed length at the first cost that is spoken of, where it
/// is told apart; the one that adds most where it was chosen.
fn stopping(report: &LengthReport, verifier: &str) -> Option<String> {
    let at = *costs_shown(report).first()?;
    let told = |one: &&ChosenPolicy| {
        one.verifier == verifier && one.over_fixed.side() == Some(Ordering::Greater)
    };
    let best = (at.policies.iter().filter(told))
        .max_by(|a, b| a.speedup_where_chosen.total_cmp(&b.speedup_where_chosen))?;
    Some(format!(
        "At c = {}, {} at {} adds {} to the speed-up of the best fixed length",
        cost(at.cost_ratio),
        best.policy,
        best.parameter,
        plus_minus(&best.over_fixed, 3)
    ))
}

/// Points up to the first that lowers y by less than 1%.
fn while_it_pays(mut points: Vec<Point>) -> Vec<Point> {
    let idle = points
        .array_windows()
        .position(|[before, after]| after.y > 0.99 * before.y);
    points.truncate(idle.map_or(points.len(), |index| index + 1));
    points
}

/// Round values from 0 to at least `most`.
fn round_stops(most: f64) -> Vec<(f64, String)> {
    let step = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
        .into_iter()
        .find(|step| most / step <= 7.0)
        .unwrap_or(200.0);
    let count = (most / step).ceil().clamp(1.0, 20.0) as usize;
    let name = |value: f64| match value == 0.0 {
        true => "0".to_owned(),
        false => cost(value),
    };
    let stops = (0..=count).map(|index| index as f64 * step);
    stops.map(|value| (value, name(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_reach_the_last_point() {
        for most in [0.0, 0.03, 0.4, 1.0, 9.7, 300.0] {
            let stops = round_stops(most);
            assert!(
                stops[stops.len() - 1].0 >= most.min(300.0),
                "{most}: {stops:?}"
            );
            assert!((2..=21).contains(&stops.len()));
        }
        assert_eq!(round_stops(0.4)[1], (0.1, "0.1".to_owned()));
    }

    #[test]
    fn lengths_that_save_nothing_are_not_drawn() {
        let points = [0.7, 0.6, 0.58, 0.579, 0.5].map(|y| Point::new(y, y));
        assert_eq!(while_it_pays(points.to_vec()), points[..3]);
        assert_eq!(while_it_pays(points[..2].to_vec()), points[..2]);
    }
}
