//! The page of `specgap relaxed`, from a [`RelaxedReport`].

use super::columns::head;
use super::length::numbers::{decimals, entry, plus_minus};
use super::{certainty, replayed};
use specgap_page::plot::{Axis, Line, LinePlot, Point, Stroke};
use specgap_page::table::{Entry, Row, Table};
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
            "relaxed-rules",
            "Every relaxed rule",
            "What it keeps of one draft a position, and what that does to the law.",
            [Block::Table(table(report)), Block::Figure(figure(report))],
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
    let columns = head(
        "rule | #set to | #accepted | #TV | #KL, nats | #let through | #below the frontier | standing",
    );
    let rows = report.rules.iter().map(|one| {
        Row::new([
            Entry::plain(&one.rule),
            Entry::plain(format!("{} {}", one.parameter, one.value)),
            entry(&one.accepted, 3),
            entry(&one.variation, 3),
            one.divergence
                .as_ref()
                .map_or_else(|| Entry::plain("∞"), |one| entry(one, 3)),
            entry(&one.let_through, 4),
            entry(&one.below_frontier, 3),
            Entry::plain(standing(one)),
        ])
    });
    Table::new("relaxed", "One draft a position, by relaxed rules", columns)
        .rows(rows)
        .note("Intervals are 95%, over prompts.")
}

/// What is accepted by how far the output is from the target.
fn figure(report: &RelaxedReport) -> Figure {
    let mut by_rule: BTreeMap<&str, Vec<&RelaxedRate>> = BTreeMap::new();
    for one in &report.rules {
        by_rule.entry(&one.rule).or_default().push(one);
    }
    let most = report.rules.iter().map(|one| one.variation.mean);
    let most = most.fold(0.1, f64::max);
    let at = |x: f64| Point::new(x, report.overlap.mean + x);
    let mut lines = vec![Line {
        label: "frontier: no rule accepts more".to_owned(),
        hue: 4,
        stroke: Stroke::Dashed(0),
        points: vec![at(0.0), at(most)],
    }];
    for (hue, (rule, mut rates)) in by_rule.into_iter().enumerate() {
        rates.sort_by(|a, b| a.variation.mean.total_cmp(&b.variation.mean));
        let points = rates.iter();
        lines.push(Line {
            label: rule.to_owned(),
            hue,
            stroke: Stroke::Solid,
            points: points
                .map(|one| certainty::point(one.variation.mean, &one.accepted))
                .collect(),
        });
    }
    let title = "Accepted, by how far the output is from the target".to_owned();
    let steps = (most / 0.1).ceil() as usize;
    let plot = LinePlot {
        title: title.clone(),
        x: Axis::new(
            "total variation",
            (0..=steps).map(|step| (step as f64 / 10.0, decimals(step as f64 / 10.0, 1))),
        ),
        y_label: "accepted".to_owned(),
        lines,
        ..LinePlot::default()
    };
    let ends = report.rules.iter().map(|one| {
        let [accepted, off] = [&one.accepted, &one.variation].map(|one| decimals(one.mean, 3));
        format!("{}: {accepted} at {off}", name(one))
    });
    Figure {
        name: "relaxed".to_owned(),
        alt: format!("{title}. {}.", ends.collect::<Vec<_>>().join("; ")),
        caption: "The frontier begins at a lossless rule. Bars are 95% intervals over prompts."
            .to_owned(),
        canvas: plot.draw(),
        title,
    }
}
