//! The page of `specgap relaxed`, from a [`RelaxedReport`].

use super::columns::table;
use super::length::numbers::{decimals, entry, plus_minus};
use super::pictures::chart;
use super::{certainty, replayed};
use specgap_page::plot::{Axis, Line, LinePlot, Point};
use specgap_page::table::{Entry, Table};
use specgap_page::words::listed;
use specgap_page::{Block, Figure, Page, Section};
use specgap_replay::replay::{RelaxedRate, RelaxedReport, Standing};
use std::collections::BTreeMap;

/// The report as a page.
pub fn page(report: &RelaxedReport) -> Page {
    let title = Some(format!(
        "a lossless rule keeps {} of its drafts",
        decimals(report.overlap.mean, 3)
    ));
    let sections = [
        super::sections::shown(
            "relaxed-rules | Every relaxed rule | What it keeps of one draft a position, and what \
             that does to the law.",
            [Block::from(table(report)), figure(report).into()],
        ),
        replayed::definitions(&report.definitions),
        replayed::provenance(&report.of.logs, Some(&report.surprise)),
        replayed::made_by(&report.of, report.schema),
    ];
    Page {
        title: replayed::title("Relaxed rules", &report.of, &report.surprise, title),
        subtitle: replayed::subtitle(&report.of),
        lead: replayed::lead(&report.of, &report.surprise, || says(report), []),
        sections: Vec::<Section>::from(sections),
        next: "specgap gap LOG says what drafts and rules gain that change no law".to_owned(),
        papers: Vec::new(),
    }
    .picture_first()
}

/// What to do: nothing that is dominated, and what the others cost.
fn says(report: &RelaxedReport) -> Vec<Block> {
    let by = |standing: Standing| {
        let mut names: Vec<(&RelaxedRate, Vec<String>)> = Vec::new();
        for one in report.rules.iter().filter(|one| one.standing == standing) {
            match names.last_mut().filter(|(first, _)| first.rule == one.rule) {
                Some((_, values)) => values.push(one.value.to_string()),
                None => names.push((one, vec![one.value.to_string()])),
            }
        }
        let named = |(one, values): &(&RelaxedRate, Vec<String>)| {
            format!("{} ({} {})", one.rule, one.parameter, values.join(", "))
        };
        names.iter().map(named).collect::<Vec<String>>()
    };
    let mut lines = vec![format!(
        "None of these rules keeps the target's law. A lossless one keeps {} of one draft a position, and a rule whose \
         output is TV from the target keeps TV more at most.",
        plus_minus(&report.overlap, 3)
    )];
    let dominated = by(Standing::Dominated);
    if !dominated.is_empty() {
        lines.push(format!(
            "Do not use {}: token verification keeps more, and changes nothing.",
            listed(&dominated)
        ));
    }
    let below = by(Standing::BelowFrontier);
    if !below.is_empty() {
        lines.push(format!(
            "Below the frontier: {}. A mixture of p and q, \"ensemble\", keeps more as far from the target.",
            listed(&below)
        ));
    }
    lines.into_iter().map(Block::Paragraph).collect()
}

fn name(one: &RelaxedRate) -> String {
    format!("{} ({} = {})", one.rule, one.parameter, one.value)
}

fn standing(one: &RelaxedRate) -> &'static str {
    match one.standing {
        Standing::Lossless => "lossless",
        Standing::OnFrontier => "on the frontier",
        Standing::BelowFrontier => "below it",
        Standing::Dominated => "dominated",
    }
}

fn table(report: &RelaxedReport) -> Table {
    let divergence = |one: &RelaxedRate| match &one.divergence {
        Some(one) => entry(one, 3),
        None => Entry::plain("∞"),
    };
    let table = table! {
        "relaxed", "One draft a position, by relaxed rules", one in report.rules.iter();
        "rule" => &one.rule,
        "#set to" => format!("{} {}", one.parameter, one.value),
        "#accepted" => entry(&one.accepted, 3),
        "#TV" => entry(&one.variation, 3),
        "#KL, nats" => divergence(one),
        "#let through" => entry(&one.let_through, 4),
        "#below the frontier" => entry(&one.below_frontier, 3),
        "standing" => standing(one),
    };
    table.note("Intervals are 95%, over prompts.")
}

/// What is accepted by how far the output is from the target.
fn figure(report: &RelaxedReport) -> Figure {
    let mut by_rule: BTreeMap<&str, Vec<&RelaxedRate>> = BTreeMap::new();
    for one in &report.rules {
        by_rule.entry(&one.rule).or_default().push(one);
    }
    let most = report.rules.iter().map(|one| one.variation.mean);
    let most = most.fold(0.1, f64::max);
    let frontier = [0.0, most].map(|x| Point::new(x, report.overlap.mean + x));
    let mut lines = vec![Line::solid("frontier: no rule accepts more", 4, frontier).dashed(0)];
    for (hue, (rule, mut rates)) in by_rule.into_iter().enumerate() {
        rates.sort_by(|a, b| a.variation.mean.total_cmp(&b.variation.mean));
        let points = rates.iter();
        let points = points.map(|one| certainty::point(one.variation.mean, &one.accepted));
        lines.push(Line::solid(rule, hue, points));
    }
    let steps = (most / 0.1).ceil() as usize;
    let stops = (0..=steps).map(|step| step as f64 / 10.0);
    let x = Axis::new("total variation", stops.map(|at| (at, decimals(at, 1))));
    let title = "Accepted, by how far the output is from the target";
    let plot = LinePlot::new(title, x, "accepted", lines);
    let ends = report.rules.iter().map(|one| {
        let [accepted, off] = [&one.accepted, &one.variation].map(|one| decimals(one.mean, 3));
        format!("{}: {accepted} at {off}", name(one))
    });
    let said = ends.collect::<Vec<_>>().join("; ");
    let caption =
        "The frontier begins at a lossless rule. Bars are 95% intervals over prompts.".to_owned();
    chart("relaxed", &plot, &said, caption, None)
}
