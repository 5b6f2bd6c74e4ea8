//! What another temperature of the draft, or a cut of its row, would give.

use super::figures::{bands, hue, point};
use super::select::{NO_GAP, cells_at, headline, place};
use crate::certainty::Tally;
use crate::sections::shown;
use specgap_measure::{Cell, GapReport, KnownEstimate, Redrafted, RedraftedCell};
use specgap_page::plot::{Axis, Line, LinePlot, Stroke};
use specgap_page::table::{Column, Entry, Group, Row, Table};
use specgap_page::words::{percent, temperature};
use specgap_page::{Block, Figure, Section};

pub(super) fn section(report: &GapReport) -> Option<Section> {
    let (at, n) = headline(report)?;
    let rows: Vec<&Redrafted> = (report.redrafted.iter())
        .filter(|row| row.temperature == at)
        .collect();
    let first = rows.first()?;
    let mut blocks = vec![Block::Paragraph(format!(
        "The target's row is that of {} throughout; {}. Nothing was captured again: the text is the \
         target's, and the draft's row is made of the same logits.",
        place(at, n),
        how(first)
    ))];
    blocks.push(Block::Table(table(report, &rows, at, n)));
    blocks.extend(figure(report, &rows, at, n).map(Block::Figure));
    Some(shown(
        "redrafted",
        "The draft at another temperature",
        "What is accepted if the draft's row alone is sharpened, flattened or cut.",
        blocks,
    ))
}

/// Says what is done to the draft's row, besides its temperature.
fn how(row: &Redrafted) -> String {
    let mut cuts = Vec::new();
    if let Some(k) = row.draft_top_k {
        cuts.push(format!("its {k} most probable tokens"));
    }
    if let Some(p) = row.draft_top_p {
        cuts.push(format!("the fewest tokens with a mass of {p}"));
    }
    if let Some(p) = row.draft_min_p {
        cuts.push(format!("the tokens with at least {p} times the largest"));
    }
    if cuts.is_empty() {
        "the draft's is at the temperature over each column".to_owned()
    } else {
        let order = (row.draft_cut_order)
            .map_or_else(String::new, |order| format!(", in the order {order}"));
        format!(
            "the draft's is at the temperature over each column, cut to {}{order}",
            cuts.join(", then to ")
        )
    }
}

fn cells_of(row: &Redrafted, n: usize) -> impl Iterator<Item = &RedraftedCell> {
    row.cells.iter().filter(move |cell| cell.drafts == n)
}

fn table(report: &GapReport, rows: &[&Redrafted], at: f64, n: usize) -> Table {
    let mut columns = vec![
        Column::words("drafts and verifier"),
        Column::number(temperature(at)).over("as the target"),
    ];
    columns.extend(rows.iter().map(|row| {
        Column::number(temperature(row.draft_temperature)).over("temperature of the draft")
    }));
    let caption = format!(
        "Acceptance rate in percent by the draft's row, {}",
        place(at, n)
    );
    let mut table = Table::new("redrafted", caption, columns);
    let mut tally = Tally::default();
    let known = |tally: &mut Tally, one: Option<&KnownEstimate>, name: &str| {
        one.map_or_else(Entry::none, |one| {
            tally.entry(&one.estimate, one.kind, one.width_max, name)
        })
    };
    let name = "the overlap";
    let usual = report.overlap.iter().find(|row| row.temperature == at);
    let usual = usual.map_or_else(Entry::none, |row| {
        tally.entry(&row.estimate, row.kind, row.width_max, name)
    });
    let mut entries = vec![Entry::plain("overlap"), usual];
    entries.extend((rows.iter()).map(|row| known(&mut tally, Some(&row.overlap), name)));
    table.group("one draft".to_owned(), vec![Row::reference(entries)], true);
    for cell in cells_at(report, at, n) {
        let others: Vec<Option<&RedraftedCell>> = (rows.iter())
            .map(|row| cells_of(row, n).find(|other| other.scheme == cell.scheme))
            .collect();
        let optimum = &cell.optimal_acceptance_rate;
        let name = format!("α* of {}", cell.scheme);
        let own = tally.entry(&optimum.estimate, optimum.kind, optimum.width_max, &name);
        let mut entries = vec![Entry::plain("α*, the optimum"), own];
        entries.extend((others.iter()).map(|other| {
            let other = other.map(|other| &other.optimal_acceptance_rate);
            known(&mut tally, other, &name)
        }));
        let mut group = Group {
            title: Some(cell.scheme.clone()),
            rows: vec![Row::reference(entries)],
            main: true,
        };
        for row in &cell.verifiers {
            let own = tally.entry(&row.acceptance, row.kind, row.width_max, &row.name);
            let mut entries = vec![Entry::plain(&row.name), own];
            entries.extend((others.iter()).map(|other| {
                let verifiers = other.map_or(&[][..], |other| other.verifiers.as_slice());
                let other = verifiers.iter().find(|other| other.name == row.name);
                known(&mut tally, other.map(|other| &other.acceptance), &row.name)
            }));
            group.rows.push(Row::new(entries));
        }
        table.groups.push(group);
    }
    table.notes = vec![
        "Every column is of the same positions and the same target. The verifiers are told the \
         changed q: what they put out still has the target's law."
            .to_owned(),
        tally.line(),
    ];
    table
}

fn figure(report: &GapReport, rows: &[&Redrafted], at: f64, n: usize) -> Option<Figure> {
    if rows.len() < 2 {
        return None;
    }
    let mut lines = Vec::new();
    let mut said = Vec::new();
    for cell in cells_at(report, at, n) {
        let found: Vec<(f64, &RedraftedCell)> = (rows.iter())
            .filter_map(|row| {
                let cell = cells_of(row, n).find(|other| other.scheme == cell.scheme)?;
                Some((row.draft_temperature, cell))
            })
            .collect();
        lines.extend(lines_of(report, cell, &found));
        let of = |(at, cell): &(f64, &RedraftedCell)| {
            let optimum = &cell.optimal_acceptance_rate.estimate;
            format!(
                "{} at {}",
                point(*at, optimum).said(percent),
                temperature(*at)
            )
        };
        if let [first, .., last] = found.as_slice() {
            let ends = [first, last].map(of);
            said.push(format!(
                "α* of {} goes from {} to {}",
                cell.scheme, ends[0], ends[1]
            ));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let title = format!("Acceptance by the draft's temperature, {}", place(at, n));
    let stops = rows.iter().map(|row| row.draft_temperature);
    let plot = LinePlot {
        title: title.clone(),
        x: Axis::new(
            "temperature of the draft",
            stops.map(|x| (x, temperature(x))),
        ),
        y_label: "accepted, %".to_owned(),
        percent: true,
        lines,
        ..LinePlot::default()
    };
    Some(Figure {
        name: format!("acceptance-by-draft-temperature-t{}-n{n}", temperature(at)),
        alt: format!("{title}. {}.", said.join("; ")),
        caption: format!(
            "{title}. The target stays at T = {}. Solid: optima α*. Dashed: verifiers, in the hue of \
             their drafts; “= name” marks a verifier that attains the optimum. Bars: 95% intervals.{}",
            temperature(at),
            bands(report, &plot)
        ),
        canvas: plot.draw(),
        title,
    })
}

/// The optimum of a law and its verifiers.
fn lines_of(report: &GapReport, cell: &Cell, found: &[(f64, &RedraftedCell)]) -> Vec<Line> {
    let hue = hue(report, &cell.scheme);
    let mut optimum = Line {
        label: format!("α* {}", cell.scheme),
        hue,
        stroke: Stroke::Solid,
        points: (found.iter())
            .map(|(x, cell)| point(*x, &cell.optimal_acceptance_rate.estimate))
            .collect(),
    };
    let mut below = Vec::new();
    for (index, row) in cell.verifiers.iter().enumerate() {
        let points: Vec<_> = (found.iter())
            .filter_map(|(x, cell)| {
                let own = cell.verifiers.iter().find(|own| own.name == row.name)?;
                let (best, own) = (
                    &cell.optimal_acceptance_rate.estimate,
                    &own.acceptance.estimate,
                );
                let is_known = best.open().is_none() && own.open().is_none();
                let attains = is_known && (best.mean - own.mean).abs() < NO_GAP;
                Some((point(*x, own), attains))
            })
            .collect();
        if !points.is_empty() && points.iter().all(|(_, attains)| *attains) {
            optimum.label.push_str(&format!(" = {}", row.name));
        } else if !points.is_empty() {
            below.push(Line {
                label: format!("{}, {}", row.name, cell.scheme),
                hue,
                stroke: Stroke::Dashed(index),
                points: points.into_iter().map(|(point, _)| point).collect(),
            });
        }
    }
    let mut lines = vec![optimum];
    lines.append(&mut below);
    lines
}
