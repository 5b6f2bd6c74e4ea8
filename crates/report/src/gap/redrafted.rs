//! What another temperature of the draft, or a cut of its row, would give.

use super::figures::{bands, hue, point};
use super::select::{NO_GAP, cells_at, headline, place};
use crate::certainty::Tally;
use crate::columns::head;
use crate::pictures::chart;
use crate::sections::shown;
use specgap_measure::{Cell, GapReport, KnownEstimate, Redrafted, RedraftedCell};
use specgap_page::plot::{Axis, Line, LinePlot, Point};
use specgap_page::table::{Column, Entry, Row, Table};
use specgap_page::words::{percent, temperature};
use specgap_page::{Block, Figure, Section};

pub(super) fn section(report: &GapReport) -> Option<Section> {
    let (at, n) = headline(report)?;
    let rows: Vec<&Redrafted> = (report.redrafted.iter())
        .filter(|row| row.temperature == at)
        .collect();
    let how = format!(
        "The target's row is that of {} throughout; {}. Nothing was captured again: the text is the \
         target's, and the draft's row is made of the same logits.",
        place(at, n),
        how(rows.first()?)
    );
    let section = shown(
        "redrafted | The draft at another temperature | What is accepted if the draft's row alone is \
         sharpened, flattened or cut.",
        [Block::Paragraph(how)],
    );
    let section = section.with([table(report, &rows, at, n)]);
    Some(section.with(figure(report, &rows, at, n)))
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
    let mut columns = head("drafts and verifier");
    columns.push(Column::number(temperature(at)).over("as the target"));
    columns.extend(rows.iter().map(|row| {
        Column::number(temperature(row.draft_temperature)).over("temperature of the draft")
    }));
    let caption = format!(
        "Acceptance rate in percent by the draft's row, {}",
        place(at, n)
    );
    let mut table = Table::new("redrafted", caption, columns);
    let mut tally = Tally::default();
    let known = |one: &KnownEstimate| (one.estimate, one.kind, one.width_max);
    // Words, whose numbers they are, and these as the target and by each row.
    let mut line = |what: &str, name: &str, own: Option<_>, others: Vec<Option<_>>| {
        let entries = std::iter::once(own).chain(others).map(|one| {
            let entry =
                one.map(|(estimate, kind, width)| tally.entry(&estimate, kind, width, name));
            Entry::from(entry)
        });
        Row::new(std::iter::once(Entry::plain(what)).chain(entries))
    };
    let usual = report.overlap.iter().find(|row| row.temperature == at);
    let usual = usual.map(|row| (row.estimate, row.kind, row.width_max));
    let others = rows.iter().map(|row| Some(known(&row.overlap)));
    let overlap = line("overlap", "the overlap", usual, others.collect());
    table.group("one draft", vec![Row::reference(overlap.entries)], true);
    for cell in cells_at(report, at, n) {
        let others: Vec<Option<&RedraftedCell>> = (rows.iter())
            .map(|row| cells_of(row, n).find(|other| other.scheme == cell.scheme))
            .collect();
        let optimum = &cell.optimal_acceptance_rate;
        let name = format!("α* of {}", cell.scheme);
        let own = (optimum.estimate, optimum.kind, optimum.width_max);
        let optima =
            (others.iter()).map(|other| Some(known(&other.as_ref()?.optimal_acceptance_rate)));
        let best = line("α*, the optimum", &name, Some(own), optima.collect());
        let mut all = vec![Row::reference(best.entries)];
        for row in &cell.verifiers {
            let own = (row.acceptance, row.kind, row.width_max);
            let others = others.iter().map(|other| {
                let mut verifiers = other.as_ref()?.verifiers.iter();
                Some(known(
                    &verifiers.find(|other| other.name == row.name)?.acceptance,
                ))
            });
            all.push(line(&row.name, &row.name, Some(own), others.collect()));
        }
        table.group(cell.scheme.clone(), all, true);
    }
    let table = table.note(
        "Every column is of the same positions and the same target. The verifiers are told the \
         changed q: what they put out still has the target's law.",
    );
    table.note(tally.line())
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
            let rate = point(*at, &cell.optimal_acceptance_rate.estimate).said(percent);
            format!("{rate} at {}", temperature(*at))
        };
        if let [first, .., last] = found.as_slice() {
            let (law, [from, to]) = (&cell.scheme, [first, last].map(of));
            said.push(format!("α* of {law} goes from {from} to {to}"));
        }
    }
    if lines.is_empty() {
        return None;
    }
    let title = format!("Acceptance by the draft's temperature, {}", place(at, n));
    let stops = rows.iter().map(|row| row.draft_temperature);
    let stops = stops.map(|x| (x, temperature(x)));
    let x = Axis::new("temperature of the draft", stops);
    let plot = LinePlot {
        percent: true,
        ..LinePlot::new(title, x, "accepted, %", lines)
    };
    let t = temperature(at);
    let caption = format!(
        "{}. The target stays at T = {t}. Solid: optima α*. Dashed: verifiers, in the hue of \
         their drafts; “= name” marks a verifier that attains the optimum. Bars: 95% intervals.{}",
        plot.title,
        bands(report, &plot)
    );
    let name = format!("acceptance-by-draft-temperature-t{t}-n{n}");
    Some(chart(name, &plot, &said.join("; "), caption, None))
}

/// The optimum of a law and its verifiers.
fn lines_of(report: &GapReport, cell: &Cell, found: &[(f64, &RedraftedCell)]) -> Vec<Line> {
    let hue = hue(report, &cell.scheme);
    let best = found.iter();
    let best = best.map(|(x, cell)| point(*x, &cell.optimal_acceptance_rate.estimate));
    let mut optimum = Line::solid(format!("α* {}", cell.scheme), hue, best);
    let mut below = Vec::new();
    for (index, row) in cell.verifiers.iter().enumerate() {
        let known = found.iter().filter_map(|(x, cell)| {
            let own = cell.verifiers.iter().find(|own| own.name == row.name)?;
            let best = &cell.optimal_acceptance_rate.estimate;
            let own = &own.acceptance.estimate;
            let is_known = best.open().is_none() && own.open().is_none();
            let attains = is_known && (best.mean - own.mean).abs() < NO_GAP;
            Some((point(*x, own), attains))
        });
        let (points, attains): (Vec<Point>, Vec<bool>) = known.unzip();
        if !points.is_empty() && attains.iter().all(|attains| *attains) {
            optimum.label.push_str(&format!(" = {}", row.name));
        } else if !points.is_empty() {
            let label = format!("{}, {}", row.name, cell.scheme);
            below.push(Line::solid(label, hue, points).dashed(index));
        }
    }
    std::iter::once(optimum).chain(below).collect()
}
