//! The tables of a gap report as data, so that every format shows the same.

use super::words::{
    all_digits, attains, cell, count, difference, drafts, exactness, exactness_of, interval,
    p_value, percent, plus_minus, quantile, rate, schemes, signed_plus_minus, temperature,
    temperatures, verifiers,
};
use crate::gap::{Cell, GapReport, HISTOGRAM_EDGES, LogSummary, Optimum, StripToken, VerifierRow};
use std::collections::BTreeMap;

/// The level that a difference must reach after Holm's correction.
const LEVEL: f64 = 0.05;

/// How exact quantiles are, besides the values that they are of.
const QUANTILES: &str = "Quantiles are read off to 1/16384.";

pub(super) struct Table {
    /// Unique in a page.
    pub id: String,
    pub caption: String,
    pub columns: Vec<Column>,
    pub groups: Vec<Group>,
    pub notes: Vec<String>,
}

pub(super) struct Column {
    /// What spans it and its neighbours of the same name.
    pub over: Option<String>,
    pub name: String,
    pub numeric: bool,
}

pub(super) struct Group {
    pub title: Option<String>,
    pub rows: Vec<Row>,
}

pub(super) struct Row {
    /// A row of an optimum.
    pub optimum: bool,
    /// The first heads the row.
    pub entries: Vec<Entry>,
}

#[derive(Clone, Default)]
pub(super) struct Entry {
    pub text: String,
    /// All digits, or whatever else stands behind the text.
    pub title: Option<String>,
    pub strong: bool,
}

impl Entry {
    fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn titled(text: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            title: Some(title.into()),
            strong: false,
        }
    }

    fn number(value: f64) -> Self {
        Self::titled(rate(value), value.to_string())
    }

    fn maybe(value: Option<f64>) -> Self {
        value.map_or_else(|| Self::plain("–"), Self::number)
    }
}

fn words(name: &str) -> Column {
    Column {
        over: None,
        name: name.to_owned(),
        numeric: false,
    }
}

fn number(name: &str) -> Column {
    Column {
        over: None,
        name: name.to_owned(),
        numeric: true,
    }
}

impl Table {
    /// The column's name where there is one level only.
    pub(super) fn flat_names(&self) -> Vec<String> {
        self.columns
            .iter()
            .map(|column| match &column.over {
                Some(over) => format!("{over}, {}", column.name),
                None => column.name.clone(),
            })
            .collect()
    }
}

fn place(at: f64, n: usize) -> String {
    format!("T = {}, n = {n}", temperature(at))
}

/// Acceptance of every verifier beside its optimum: the field's Table 1.
///
/// One table, or one a temperature where that would be too wide to read.
pub(super) fn acceptance(report: &GapReport) -> Vec<Table> {
    let all = temperatures(report);
    if all.len() * drafts(report).len() <= WIDEST {
        return vec![acceptance_at(report, &all)];
    }
    let mut tables: Vec<Table> = all
        .iter()
        .map(|&at| {
            let one = acceptance_at(report, &[at]);
            Table {
                id: format!("{}-t{}", one.id, temperature(at)),
                caption: format!("T = {}: {}", temperature(at), lower_first(&one.caption)),
                ..one
            }
        })
        .collect();
    // What is said of all is said once.
    let last = tables.len() - 1;
    for table in &mut tables[..last] {
        table.notes.clear();
    }
    tables
}

/// Most pairs of a temperature and a number of drafts side by side.
const WIDEST: usize = 8;

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// The same for some temperatures.
pub(super) fn acceptance_at(report: &GapReport, chosen: &[f64]) -> Table {
    let mut places = Vec::new();
    for &at in chosen {
        for n in drafts(report) {
            if report
                .cells
                .iter()
                .any(|cell| cell.temperature == at && cell.drafts == n)
            {
                places.push((at, n));
            }
        }
    }
    let best: Vec<Option<f64>> = places.iter().map(|&(at, n)| best(report, at, n)).collect();
    let mut columns = vec![words("drafts and verifier")];
    columns.extend(places.iter().map(|&(at, n)| Column {
        over: Some(format!("T = {}", temperature(at))),
        name: format!("n = {n}"),
        numeric: true,
    }));
    columns.push(words("computed"));
    let mut groups = Vec::new();
    for scheme in schemes(report) {
        let cells: Vec<Option<&Cell>> = places
            .iter()
            .map(|&(at, n)| cell(report, at, n, scheme))
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let mut rows = vec![optimum_row(&cells)];
        for name in verifiers(report, scheme) {
            let found: Vec<Option<&VerifierRow>> = cells
                .iter()
                .map(|cell| cell.and_then(|cell| verifier(cell, name)))
                .collect();
            let mut entries = vec![Entry::plain(name)];
            for (found, best) in found.iter().zip(&best) {
                entries.push(found.map_or_else(
                    || Entry::plain("–"),
                    |row| {
                        let sampled = if row.kind == "monte-carlo" { " MC" } else { "" };
                        Entry {
                            text: format!("{}{sampled}", plus_minus(&row.acceptance)),
                            title: Some(format!(
                                "{}; {}",
                                all_digits(&row.acceptance),
                                exactness(&row.kind, row.width_max)
                            )),
                            strong: best.is_some_and(|best| row.acceptance.mean >= best),
                        }
                    },
                ));
            }
            let kinds = found
                .iter()
                .flatten()
                .map(|row| (row.kind.as_str(), row.width_max));
            entries.push(Entry::plain(exactness_of(kinds)));
            rows.push(Row {
                optimum: false,
                entries,
            });
        }
        groups.push(Group {
            title: Some(scheme.to_owned()),
            rows,
        });
    }
    let mut notes = vec![
        "Bold: the verifier that accepts most in its column. α*: the most that any lossless \
         verifier of these drafts can accept."
            .to_owned(),
    ];
    if report
        .cells
        .iter()
        .flat_map(|cell| &cell.verifiers)
        .any(|row| row.kind == "monte-carlo")
    {
        notes.push("MC: estimated by Monte Carlo.".to_owned());
    }
    Table {
        id: "acceptance".to_owned(),
        caption: "Acceptance rate, mean over positions ± half the width of its 95% interval"
            .to_owned(),
        columns,
        groups,
        notes,
    }
}

fn verifier<'a>(cell: &'a Cell, name: &str) -> Option<&'a VerifierRow> {
    cell.verifiers.iter().find(|row| row.name == name)
}

fn best(report: &GapReport, at: f64, n: usize) -> Option<f64> {
    report
        .cells
        .iter()
        .filter(|cell| cell.temperature == at && cell.drafts == n)
        .flat_map(|cell| &cell.verifiers)
        .map(|row| row.acceptance.mean)
        .max_by(f64::total_cmp)
}

fn optimum_row(cells: &[Option<&Cell>]) -> Row {
    let mut entries = vec![Entry::plain("α*, the optimum")];
    for cell in cells {
        entries.push(cell.map_or_else(
            || Entry::plain("–"),
            |cell| {
                let optimum = &cell.optimal_acceptance_rate;
                Entry::titled(
                    plus_minus(&optimum.estimate),
                    format!(
                        "{}; {}; {}",
                        all_digits(&optimum.estimate),
                        exactness(&optimum.kind, optimum.width_max),
                        optimum.status
                    ),
                )
            },
        ));
    }
    let found = || {
        cells
            .iter()
            .flatten()
            .map(|cell| &cell.optimal_acceptance_rate)
    };
    let mut statuses: Vec<&str> = Vec::new();
    for optimum in found() {
        if !statuses.contains(&optimum.status.as_str()) {
            statuses.push(&optimum.status);
        }
    }
    let kinds = exactness_of(found().map(|one| (one.kind.as_str(), one.width_max)));
    entries.push(Entry::plain(format!("{kinds}; {}", statuses.join(", "))));
    Row {
        optimum: true,
        entries,
    }
}

fn each_place(report: &GapReport) -> Vec<(f64, usize)> {
    let mut places = Vec::new();
    for at in temperatures(report) {
        for n in drafts(report) {
            places.push((at, n));
        }
    }
    places
}

/// How far every verifier is from its optimum.
pub(super) fn gaps(report: &GapReport) -> Table {
    let mut groups = Vec::new();
    for (at, n) in each_place(report) {
        let mut rows = Vec::new();
        for scheme in schemes(report) {
            let Some(cell) = cell(report, at, n, scheme) else {
                continue;
            };
            rows.extend(cell.verifiers.iter().map(|row| gap_row(cell, row)));
        }
        if !rows.is_empty() {
            groups.push(Group {
                title: Some(place(at, n)),
                rows,
            });
        }
    }
    let columns = vec![
        words("verifier"),
        words("drafts"),
        number("mean gap"),
        number("95% interval"),
        number("share of α*"),
        number("median"),
        number("95% quantile"),
        number("max"),
        number("none"),
        number("p"),
        words("computed"),
    ];
    let notes = vec![
        "Gap: α* minus acceptance at the same position. Share of α*: mean acceptance over mean \
         α*. None: positions with a gap below 1e-6. p: two-sided, that the gap is 0 on average. Enclosures are the sum of those of α* and of the acceptance."
            .to_owned(),
    ];
    Table {
        id: "gaps".to_owned(),
        caption: "Gap of every verifier over the positions".to_owned(),
        columns,
        groups,
        notes,
    }
}

/// How a gap came about, with the widest enclosure: that of its two terms.
fn gap_kind(optimum: &Optimum, row: &VerifierRow) -> (&'static str, f64) {
    let kind = if row.kind == "monte-carlo" || optimum.kind == "monte-carlo" {
        "monte-carlo"
    } else if row.kind == "exact" && optimum.kind == "exact" {
        "exact"
    } else {
        "enclosed"
    };
    (kind, optimum.width_max + row.width_max)
}

fn gap_row(cell: &Cell, row: &VerifierRow) -> Row {
    let optimum = &cell.optimal_acceptance_rate;
    let (kind, width) = gap_kind(optimum, row);
    let share = row.acceptance.mean / optimum.estimate.mean;
    let total: u64 = row.gap.histogram.iter().sum();
    let none = row.gap.histogram.first().copied().unwrap_or(0);
    let entries = vec![
        Entry::plain(&row.name),
        Entry::plain(&cell.scheme),
        Entry::titled(
            rate(row.gap.estimate.mean),
            row.gap.estimate.mean.to_string(),
        ),
        Entry::titled(interval(&row.gap.estimate), all_digits(&row.gap.estimate)),
        if share.is_finite() {
            Entry::titled(percent(share), share.to_string())
        } else {
            Entry::plain("–")
        },
        Entry::maybe(quantile(&row.gap.quantiles, 0.5)),
        Entry::maybe(quantile(&row.gap.quantiles, 0.95)),
        Entry::number(row.gap.max),
        if total == 0 {
            Entry::plain("–")
        } else {
            Entry::titled(
                percent(none as f64 / total as f64),
                format!("{none} of {total}"),
            )
        },
        Entry::titled(
            if attains(row) {
                "–".to_owned()
            } else {
                p_value(row.p_value)
            },
            row.p_value.to_string(),
        ),
        Entry::plain(exactness(kind, width)),
    ];
    Row {
        optimum: false,
        entries,
    }
}

/// The gaps at one place, or at all, in few columns.
pub(super) fn gaps_short(report: &GapReport, only: Option<(f64, usize)>) -> Table {
    let mut groups = Vec::new();
    let mut kinds: Vec<(&str, f64)> = Vec::new();
    for (at, n) in only.map_or_else(|| each_place(report), |place| vec![place]) {
        let mut rows = Vec::new();
        for cell in schemes(report)
            .into_iter()
            .filter_map(|scheme| cell(report, at, n, scheme))
        {
            let optimum = &cell.optimal_acceptance_rate;
            for row in &cell.verifiers {
                kinds.push(gap_kind(optimum, row));
                let share = row.acceptance.mean / optimum.estimate.mean;
                let share = if share.is_finite() {
                    percent(share)
                } else {
                    "–".to_owned()
                };
                let p = if attains(row) {
                    "–".to_owned()
                } else {
                    p_value(row.p_value)
                };
                rows.push(Row {
                    optimum: false,
                    entries: vec![
                        Entry::plain(&row.name),
                        Entry::plain(&cell.scheme),
                        Entry::plain(plus_minus(&row.gap.estimate)),
                        Entry::plain(share),
                        Entry::maybe(quantile(&row.gap.quantiles, 0.5)),
                        Entry::maybe(quantile(&row.gap.quantiles, 0.95)),
                        Entry::number(row.gap.max),
                        Entry::plain(p),
                    ],
                });
            }
        }
        if !rows.is_empty() {
            groups.push(Group {
                title: only.is_none().then(|| place(at, n)),
                rows,
            });
        }
    }
    let caption = match only {
        Some((at, n)) => format!("Gap to the optimum, {}", place(at, n)),
        None => "Gap to the optimum".to_owned(),
    };
    Table {
        id: "gaps-short".to_owned(),
        caption,
        columns: vec![
            words("verifier"),
            words("drafts"),
            number("mean gap"),
            number("of α*"),
            number("median"),
            number("95%"),
            number("max"),
            number("p"),
        ],
        groups,
        notes: vec![format!("Gaps are {}.", exactness_of(kinds.into_iter()))],
    }
}

/// Paired differences.
pub(super) fn comparisons(report: &GapReport) -> Option<Table> {
    let mut groups = Vec::new();
    let mut places: Vec<(f64, usize)> = Vec::new();
    for one in &report.comparisons {
        if !places.contains(&(one.temperature, one.drafts)) {
            places.push((one.temperature, one.drafts));
        }
    }
    for (at, n) in places {
        let here = report
            .comparisons
            .iter()
            .filter(|one| one.temperature == at && one.drafts == n);
        let rows = here.map(|one| {
            let verdict = if one.p_holm >= LEVEL {
                "not told apart"
            } else if one.difference.mean > 0.0 {
                "first accepts more"
            } else {
                "second accepts more"
            };
            Row {
                optimum: false,
                entries: vec![
                    Entry::plain(&one.first),
                    Entry::plain(&one.second),
                    Entry::titled(
                        difference(one.difference.mean),
                        one.difference.mean.to_string(),
                    ),
                    Entry::titled(interval(&one.difference), all_digits(&one.difference)),
                    Entry::titled(p_value(one.p_value), one.p_value.to_string()),
                    Entry::titled(p_value(one.p_holm), one.p_holm.to_string()),
                    Entry::plain(verdict),
                    Entry::plain(exactness(&one.kind, one.width_max)),
                ],
            }
        });
        groups.push(Group {
            title: Some(place(at, n)),
            rows: rows.collect(),
        });
    }
    (!groups.is_empty()).then(|| Table {
        id: "comparisons".to_owned(),
        caption: "Differences in acceptance on the same positions, first minus second".to_owned(),
        columns: vec![
            words("first"),
            words("second"),
            number("difference"),
            number("95% interval"),
            number("p"),
            number("p (Holm)"),
            words("at 5% after Holm"),
            words("computed"),
        ],
        groups,
        notes: vec![
            "p: two-sided, Student's t over clusters. Holm's correction is over all comparisons \
             of this report."
                .to_owned(),
        ],
    })
}

/// The published formula's error.
pub(super) fn formula(report: &GapReport) -> Option<Table> {
    let rows: Vec<Row> = report
        .published_formula
        .iter()
        .map(|one| Row {
            optimum: false,
            entries: vec![
                Entry::plain(place(one.temperature, one.drafts)),
                Entry::titled(
                    signed_plus_minus(&one.difference),
                    all_digits(&one.difference),
                ),
                Entry::titled(difference(one.min), one.min.to_string()),
                Entry::titled(difference(one.max), one.max.to_string()),
                Entry::plain(exactness(&one.kind, one.width_max)),
            ],
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "formula".to_owned(),
        caption: "Published value minus the value for the sequential law".to_owned(),
        columns: vec![
            words("cell"),
            number("mean"),
            number("smallest"),
            number("largest"),
            words("computed"),
        ],
        groups: vec![Group { title: None, rows }],
        notes: vec![
            "The published optimum without replacement is derived for a law other than the \
             sequential one that is sampled; positive: it promises more than can be had."
                .to_owned(),
        ],
    })
}

/// How well the optimal plans do.
pub(super) fn plans(report: &GapReport) -> Option<Table> {
    let timed = report.plans.iter().any(|one| one.seconds_mean.is_some());
    let rows: Vec<Row> = report
        .plans
        .iter()
        .map(|one| {
            let mut entries = vec![
                Entry::plain(format!(
                    "{}, {}",
                    one.scheme,
                    place(one.temperature, one.drafts)
                )),
                Entry::plain(format!("{:.1e}", one.shortfall_max)),
                Entry::plain(format!("{:.1e}", one.law_l1_max)),
                Entry::plain(format!("{:.1}", one.iterations_mean)),
                Entry::plain(format!("{:.0}", one.iterations_max)),
            ];
            if timed {
                entries.push(Entry::plain(one.seconds_mean.map_or_else(
                    || "–".to_owned(),
                    |seconds| format!("{:.2}", seconds * 1e3),
                )));
            }
            Row {
                optimum: false,
                entries,
            }
        })
        .collect();
    let mut columns = vec![
        words("cell"),
        number("below α*, at most"),
        number("law off p (L1), at most"),
        number("steps, mean"),
        number("steps, most"),
    ];
    if timed {
        columns.push(number("ms a solve, mean"));
    }
    (!rows.is_empty()).then(|| Table {
        id: "plans".to_owned(),
        caption: "Optimal plans, solved at every position".to_owned(),
        columns,
        groups: vec![Group { title: None, rows }],
        notes: vec![
            "Acceptance and output law are measured by a second integral that shares only the \
             plan's weights with the solve. What is below α* is enclosed as the gap of `optimal`; \
             what the law is off by is summed in double precision, without an enclosure."
                .to_owned(),
        ],
    })
}

/// Blocks.
pub(super) fn blocks(report: &GapReport) -> Option<Table> {
    let rows: Vec<Row> = report
        .blocks
        .iter()
        .map(|one| Row {
            optimum: false,
            entries: vec![
                Entry::plain(&one.metric),
                Entry::plain(temperature(one.temperature)),
                Entry::plain(one.length.to_string()),
                Entry::plain(one.drafts.to_string()),
                Entry::titled(
                    plus_minus(&one.expected_accepted_length),
                    all_digits(&one.expected_accepted_length),
                ),
                Entry::titled(count(one.blocks), one.blocks.to_string()),
                Entry::plain(exactness(&one.kind, 0.0)),
            ],
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "blocks".to_owned(),
        caption: "Expected accepted tokens of a block, bonus token excluded".to_owned(),
        columns: vec![
            words("bound"),
            number("T"),
            number("length L"),
            number("drafts K"),
            number("accepted tokens"),
            number("blocks"),
            words("computed"),
        ],
        groups: vec![Group { title: None, rows }],
        notes: vec![
            "Estimated along the text that was sampled, at the temperature it was sampled at; \
             no other temperature can be estimated from it. An average over sampled blocks: its \
             error is the interval's, not an enclosure."
                .to_owned(),
        ],
    })
}

/// All shares that some map of quantiles has, ascending.
fn shares<'a>(maps: impl Iterator<Item = &'a BTreeMap<String, f64>>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for key in maps.flat_map(|map| map.keys()) {
        if !all.contains(key) {
            all.push(key.clone());
        }
    }
    let value = |key: &String| key.parse::<f64>().unwrap_or(f64::INFINITY);
    all.sort_by(|a, b| value(a).total_cmp(&value(b)));
    all
}

fn share_name(key: &str) -> String {
    match key.parse::<f64>() {
        Ok(0.5) => "median".to_owned(),
        Ok(share) => format!("{}%", (share * 1e6).round() / 1e4),
        Err(_) => key.to_owned(),
    }
}

/// Overlap of target and draft.
pub(super) fn overlap(report: &GapReport) -> Option<Table> {
    let shares = shares(report.overlap.iter().map(|row| &row.quantiles));
    let mut columns = vec![words("temperature"), number("mean")];
    columns.extend(shares.iter().map(|share| Column {
        over: Some("quantile".to_owned()),
        name: share_name(share),
        numeric: true,
    }));
    columns.push(words("computed"));
    let rows: Vec<Row> = report
        .overlap
        .iter()
        .map(|row| {
            let mut entries = vec![
                Entry::plain(temperature(row.temperature)),
                Entry::titled(plus_minus(&row.estimate), all_digits(&row.estimate)),
            ];
            entries.extend(
                shares
                    .iter()
                    .map(|share| Entry::maybe(row.quantiles.get(share).copied())),
            );
            entries.push(Entry::plain(exactness(&row.kind, row.width_max)));
            Row {
                optimum: false,
                entries,
            }
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: "overlap".to_owned(),
        caption: "Overlap, the sum over tokens of min(p, q)".to_owned(),
        columns,
        groups: vec![Group { title: None, rows }],
        notes: vec![QUANTILES.to_owned()],
    })
}

/// Quantiles of optima and gaps in every cell.
pub(super) fn quantiles(report: &GapReport) -> Table {
    let shares = shares(report.cells.iter().flat_map(|cell| {
        std::iter::once(&cell.optimal_acceptance_rate.quantiles)
            .chain(cell.verifiers.iter().map(|row| &row.gap.quantiles))
    }));
    let mut columns = vec![words("drafts"), words("quantity")];
    columns.extend(shares.iter().map(|share| number(&share_name(share))));
    each_cell(
        report,
        "quantiles",
        "Quantiles over positions",
        columns,
        format!("{QUANTILES} The values are computed as the tables of acceptance and of gaps say."),
        |cell| {
            let values = |map: &BTreeMap<String, f64>| -> Vec<Entry> {
                shares
                    .iter()
                    .map(|share| Entry::maybe(map.get(share).copied()))
                    .collect()
            };
            let row = |optimum: bool, name: String, values: Vec<Entry>| Row {
                optimum,
                entries: [Entry::plain(&cell.scheme), Entry::plain(name)]
                    .into_iter()
                    .chain(values)
                    .collect(),
            };
            let mut rows = vec![row(
                true,
                "α*".to_owned(),
                values(&cell.optimal_acceptance_rate.quantiles),
            )];
            for one in &cell.verifiers {
                rows.push(row(
                    false,
                    format!("gap of {}", one.name),
                    values(&one.gap.quantiles),
                ));
            }
            rows
        },
    )
}

/// Histograms of gaps in every cell.
pub(super) fn histograms(report: &GapReport) -> Table {
    let mut columns = vec![words("drafts"), words("verifier")];
    columns.extend(bin_names().iter().map(|name| Column {
        over: Some("positions with a gap of".to_owned()),
        name: name.clone(),
        numeric: true,
    }));
    each_cell(
        report,
        "histograms",
        "Positions by their gap",
        columns,
        "Counts; the gaps are computed as their table says, and one within its enclosure of an edge \
         may belong on its other side."
            .to_owned(),
        |cell| {
            cell.verifiers
                .iter()
                .map(|one| {
                    let mut entries = vec![Entry::plain(&cell.scheme), Entry::plain(&one.name)];
                    for bin in 0..HISTOGRAM_EDGES.len() - 1 {
                        let text = one
                            .gap
                            .histogram
                            .get(bin)
                            .map_or("–".to_owned(), u64::to_string);
                        entries.push(Entry::plain(text));
                    }
                    Row {
                        optimum: false,
                        entries,
                    }
                })
                .collect()
        },
    )
}

fn each_cell(
    report: &GapReport,
    id: &str,
    caption: &str,
    columns: Vec<Column>,
    note: String,
    rows: impl Fn(&Cell) -> Vec<Row>,
) -> Table {
    let mut groups = Vec::new();
    for (at, n) in each_place(report) {
        let here = schemes(report)
            .into_iter()
            .filter_map(|scheme| cell(report, at, n, scheme));
        let rows: Vec<Row> = here.flat_map(&rows).collect();
        if !rows.is_empty() {
            groups.push(Group {
                title: Some(place(at, n)),
                rows,
            });
        }
    }
    Table {
        id: id.to_owned(),
        caption: caption.to_owned(),
        columns,
        groups,
        notes: vec![note],
    }
}

/// Names of the bins of a gap's histogram.
pub(super) fn bin_names() -> Vec<String> {
    let edge = |value: f64| {
        if value < 1e-3 {
            format!("{value:e}")
        } else {
            value.to_string()
        }
    };
    HISTOGRAM_EDGES
        .windows(2)
        .map(|pair| {
            if pair[0] < 0.0 {
                format!("< {}", edge(pair[1]))
            } else {
                format!("{}–{}", edge(pair[0]), edge(pair[1]))
            }
        })
        .collect()
}

/// Mass that a log's rows do not list.
pub(super) fn rest(log: &LogSummary, index: usize, n: Option<usize>) -> Option<Table> {
    let mut columns = vec![
        words("temperature"),
        number("target, mean"),
        number("target, max"),
        number("draft, mean"),
        number("draft, max"),
    ];
    if let Some(n) = n {
        columns.push(number(&format!("α* moves at most, mean, n = {n}")));
    }
    let rows: Vec<Row> = log
        .rest
        .iter()
        .map(|row| {
            let mut entries = vec![Entry::plain(temperature(row.temperature))];
            entries.extend(
                [
                    row.target_mean,
                    row.target_max,
                    row.draft_mean,
                    row.draft_max,
                ]
                .map(Entry::number),
            );
            if let Some(n) = n {
                entries.push(Entry::number(row.target_mean + n as f64 * row.draft_mean));
            }
            Row {
                optimum: false,
                entries,
            }
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        id: format!("rest-{index}"),
        caption: "Mass outside the listed tokens".to_owned(),
        columns,
        groups: vec![Group { title: None, rows }],
        notes: vec![super::words::REST_MEANING.to_owned()],
    })
}

/// Tokens of the strip with what was computed at each: the given ones.
pub(super) fn tokens<'a>(
    id: String,
    caption: String,
    verifier: &str,
    tokens: impl Iterator<Item = (&'a str, &'a StripToken)>,
) -> Table {
    let rows = tokens.map(|(prompt, token)| Row {
        optimum: false,
        entries: vec![
            Entry::plain(super::strip::visible(&token.text)),
            Entry::number(token.optimum),
            Entry::number(token.acceptance),
            Entry::number(token.optimum - token.acceptance),
            Entry::plain(prompt),
        ],
    });
    Table {
        id,
        caption,
        columns: vec![
            words("token"),
            number("α*"),
            number(verifier),
            number("gap"),
            words("text"),
        ],
        groups: vec![Group {
            title: None,
            rows: rows.collect(),
        }],
        notes: vec!["Computed as the table of gaps says for its cell.".to_owned()],
    }
}
