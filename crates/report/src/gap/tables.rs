//! The tables of a gap report.

use super::certainty::{of_gap, of_rates, of_row};
use super::first::{points, recovered};
use super::select::{
    LEVEL, ahead, cell, cells_at, each_cell, headline, is_lossy, is_measured, laws, place, places,
    quantile, told_apart, verifier, verifiers,
};
use super::summary::over_clusters;
use crate::certainty::{
    ALPHA, BETWEEN, Tally, all_digits, cut, entry, exactness, in_percent, number as of_estimate,
    signed_entry, signed_percent,
};
use crate::columns::{head, head_below, row, table};
use crate::length::numbers::entry as in_text;
use crate::sections::if_any;
use specgap_base::once::each_once;
use specgap_core::scheme::{ENGINES, Engine};
use specgap_measure::{
    BlockEstimate, Cell, ChainRounds, Comparison, FormulaError, GapReport, HISTOGRAM_EDGES,
    OneDraft, PlanRow, RateAudit, VerifierRow,
};
use specgap_number::known::Kind;
use specgap_page::table::{Column, Entry, Number, Row, Table};
use specgap_page::words::{at_most, count, counted, listed, p_value, percent, small, temperature};
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Most pairs of a temperature and a number of drafts side by side.
const WIDEST: usize = 8;

/// How exact quantiles are, besides the values that they are of.
const QUANTILES: &str = "Quantiles are read off to 1/16384.";

fn number(value: f64) -> Entry {
    Entry::titled(in_percent(value), value.to_string())
}

fn maybe(value: Option<f64>) -> Entry {
    value.map(number).into()
}

const MONTE_CARLO: &str = "MC: estimated by Monte Carlo.";

/// Every verifier at one place, a line each, in percent.
pub(super) fn in_a_line(report: &GapReport, at: f64, n: usize) -> Table {
    let columns = head("drafts and rule | #accepts % | #loses | #of α*");
    let id = match headline(report) == Some((at, n)) {
        true => "verifiers".to_owned(),
        false => format!("verifiers-t{}-n{n}", temperature(at)),
    };
    let mut table = Table::new(id, format!("At {}", place(at, n)), columns);
    let percent_of = |estimate: &Estimate, how: &str| {
        let entry = Entry::titled(points(estimate), format!("{}; {how}", all_digits(estimate)));
        entry.of(Number {
            percent: true,
            ..of_estimate(estimate)
        })
    };
    let cells: Vec<&Cell> = cells_at(report, at, n).collect();
    for cell in &cells {
        let optimum = &cell.optimal_acceptance_rate;
        let how = exactness(optimum.kind, optimum.width_max);
        let best = row!["α*", percent_of(&optimum.estimate, &how), "", ""];
        let best = Row::reference(best.entries);
        let rules = cell.verifiers.iter().map(|row| {
            let (kind, width) = of_gap(optimum, row);
            row![
                match is_lossy(row) {
                    true => format!("{}, not lossless", row.name),
                    false => row.name.clone(),
                },
                simulated(row, percent_of(&row.acceptance, &of_row(row))),
                percent_of(&row.gap.estimate, &exactness(kind, width)),
                of_optimum(cell, row),
            ]
        });
        let rows = std::iter::once(best).chain(rules).collect();
        table.group(cell.scheme.clone(), rows, false);
    }
    let mut rows = cells.iter().flat_map(|cell| &cell.verifiers);
    let is_simulated = rows.any(VerifierRow::is_simulated);
    (table.notes).extend(is_simulated.then(|| MONTE_CARLO.to_owned()));
    table.notes.extend(recovered(report, &cells));
    table
}

/// Marks what is estimated by Monte Carlo.
fn simulated(row: &VerifierRow, mut entry: Entry) -> Entry {
    let mark = if row.is_simulated() { " MC" } else { "" };
    entry.text.push_str(mark);
    entry
}

/// A verifier's share of its optimum, where both are measured.
fn of_optimum(cell: &Cell, row: &VerifierRow) -> Entry {
    let share = row.acceptance.mean / cell.optimal_acceptance_rate.estimate.mean;
    match share.is_finite() && is_measured(cell, row) {
        true => Entry::titled(percent(share), share.to_string()),
        false => Entry::none(),
    }
}

/// Acceptance of every verifier beside its optimum: the field's Table 1.
///
/// One table, or one a temperature where that would be too wide to read.
pub(super) fn acceptance(report: &GapReport) -> Vec<Table> {
    let places = places(report);
    let mut columns = head("drafts and verifier");
    columns.extend(places.iter().map(|&(at, n)| {
        Column::number(format!("n = {n}")).over(format!("T = {}", temperature(at)))
    }));
    let caption = format!(
        "Acceptance rate in percent, mean over positions{}",
        over_clusters(report, |unit| {
            format!(" ± half the width of its interval (95%, {unit}s)")
        })
    );
    let mut table = Table::new("acceptance", caption, columns);
    for law in laws(report) {
        let cells = places.iter().map(|&(at, n)| cell(report, at, n, law));
        let cells: Vec<Option<&Cell>> = cells.collect();
        let rules = verifiers(report, law).into_iter();
        let rules = rules.map(|name| verifier_row(report, &cells, name));
        let rows = std::iter::once(optimum_row(&cells)).chain(rules).collect();
        table.group(law.to_owned(), rows, false);
    }
    let rows = table.groups.iter().flat_map(|group| &group.rows);
    let has_bold = rows.flat_map(|row| &row.entries).any(|entry| entry.strong);
    let missing = verifiers_left_out(report);
    let is_between = |cell: &Cell| cell.optimal_acceptance_rate.estimate.between.is_some();
    let measured = || report.cells.iter().flat_map(|cell| &cell.verifiers);
    let notes = [
        Some(ALPHA.to_owned()),
        has_bold.then(|| {
            format!(
                "Bold: accepts most of its drafts' verifiers that were measured, and is told apart from \
                 the next one (paired, p < {LEVEL} after Holm's correction)."
            )
        }),
        (!missing.is_empty()).then(|| {
            let missing = listed(&missing);
            format!("Not measured, for reasons under “Left out”: {missing}.")
        }),
        report.cells.iter().any(is_between).then(|| BETWEEN.to_owned()),
        cut(rates(report)),
        has_open(report).then(|| OPEN.to_owned()),
        (measured().any(VerifierRow::is_simulated)).then(|| MONTE_CARLO.to_owned()),
        (measured().any(|row| row.kind == Kind::Estimate)).then(|| audited(report)),
        Some(of_rates(report).line()),
    ];
    let table = table.notes(notes);
    match places.len() <= WIDEST {
        true => vec![table],
        false => table.split(),
    }
}

/// Lists what is accepted and what could be, in every cell.
fn rates(report: &GapReport) -> impl Iterator<Item = &Estimate> {
    report.cells.iter().flat_map(|cell| {
        let rows = cell.verifiers.iter().map(|row| &row.acceptance);
        std::iter::once(&cell.optimal_acceptance_rate.estimate).chain(rows)
    })
}

/// What a range instead of a number says.
const OPEN: &str = "a to b: such bounds alone, where they are further apart than ±; nothing more is \
    known of that number.";

/// Tells whether some rate or gap is only known between bounds.
fn has_open(report: &GapReport) -> bool {
    let rows =
        (report.cells.iter()).flat_map(|cell| cell.verifiers.iter().map(move |row| (cell, row)));
    rows.into_iter().any(|(cell, row)| !is_measured(cell, row))
}

/// Verifiers of the table's laws that a line of the report leaves out: `law/verifier: why`.
fn verifiers_left_out(report: &GapReport) -> Vec<&str> {
    let laws = laws(report);
    let names = report.left_out.iter().filter_map(|line| {
        let (name, _) = line.split_once(": ")?;
        let (law, _) = name.split_once('/')?;
        laws.contains(&law).then_some(name)
    });
    names.collect()
}

/// Says what `est.` means, and how the estimates were checked.
fn audited(report: &GapReport) -> String {
    let meaning = "est.: an estimate by a fast rule, whose error is not proven";
    let sum = |count: fn(&RateAudit) -> u64| report.audits.iter().map(count).sum::<u64>();
    let (all, outside) = (sum(|audit| audit.positions), sum(|audit| audit.outside));
    if all == 0 {
        return format!("{meaning}.");
    }
    let largest = |of: fn(&RateAudit) -> f64| report.audits.iter().map(of).fold(0.0, f64::max);
    let finding = match outside {
        0 => "all are within their bounds".to_owned(),
        some => format!("{some} are outside of their bounds"),
    };
    format!(
        "{meaning}. Of {} the slow way was gone too, and {finding}; the largest difference is {}, \
         where the slow way is good to {}. See “Audit of estimates”.",
        counted(all as usize, "rate"),
        at_most(largest(|audit| audit.difference_max)),
        at_most(largest(|audit| audit.width_max))
    )
}

/// Fast rates against slow ones.
pub(super) fn audits(report: &GapReport) -> Option<Table> {
    let most = |value: f64| Entry::titled(at_most(value), value.to_string());
    let slow = |kind: Kind| match kind {
        Kind::MonteCarlo => "Monte Carlo interval",
        _ => "enclosure",
    };
    let caption = "Fast rates against the slow way at some positions";
    let table = table! {
        "audits", caption, audit in report.audits.iter();
        "verifier" => &audit.verifier,
        "#T" => temperature(audit.temperature),
        "#n" => audit.drafts,
        "#positions" => count(audit.positions as usize),
        "#largest difference" => most(audit.difference_max),
        "#mean difference" => number(audit.difference_mean),
        "slow way" => slow(audit.kind),
        "#its width, at most" => most(audit.width_max),
        "#outside" => Entry::from(audit.outside).bold(audit.outside > 0),
    };
    if_any(table.note(
        "Difference: of the fast rate to the middle of the slow one's bounds; where it is smaller \
         than their width it is within what the slow way knows. Outside: positions where the \
         fast rate is not within the bounds. A Monte Carlo interval misses 1 of 1,000 by itself. \
         --rrs-wo enclosed computes every position the slow way.",
    ))
}

fn optimum_row(cells: &[Option<&Cell>]) -> Row {
    let entry = |cell: &Cell| {
        let optimum = &cell.optimal_acceptance_rate;
        let how = exactness(optimum.kind, optimum.width_max);
        entry(&optimum.estimate, &how)
    };
    let entries = cells.iter().map(|cell| cell.map(entry).into());
    Row::reference(std::iter::once(Entry::plain("α*, the optimum")).chain(entries))
}

fn verifier_row(report: &GapReport, cells: &[Option<&Cell>], name: &str) -> Row {
    let entries = cells.iter().map(|cell| {
        let (cell, row) = cell.and_then(|cell| Some((cell, verifier(cell, name)?)))?;
        let mut entry = simulated(row, entry(&row.acceptance, &of_row(row)));
        if row.kind == Kind::Estimate {
            entry.text.push_str(" est.");
        }
        Some(entry.bold(told_apart(report, cell).is_some_and(|best| best.name == name)))
    });
    Row::new(std::iter::once(Entry::plain(name)).chain(entries.map(Entry::from)))
}

/// Tabulates how far every verifier is from its optimum.
pub(super) fn gaps(report: &GapReport) -> Table {
    let columns = head("verifier | drafts | #mean gap | #of α* | #median | #q95 | #max | #none");
    let caption = "Gap of every verifier over the positions, in percentage points";
    let mut table = Table::new("gaps", caption, columns);
    let mut tally = Tally::default();
    each_cell(report, &mut table, headline(report), |cell| {
        let rows = cell.verifiers.iter().map(|row| {
            let (kind, width) = of_gap(&cell.optimal_acceptance_rate, row);
            tally.add(kind, width, &row.name);
            gap_row(cell, row)
        });
        rows.collect()
    });
    table.notes.push(format!(
        "Gap: α* minus acceptance at the same position{}. Of α*: mean acceptance over \
         mean α*. q95: 95% of the positions have at most this gap. None: positions with a \
         gap below 1e-6.",
        over_clusters(report, |unit| format!("; ±: 95%, {unit}s"))
    ));
    (table.notes).extend(has_open(report).then(|| OPEN.to_owned()));
    table.note(tally.line())
}

fn gap_row(cell: &Cell, row: &VerifierRow) -> Row {
    let (kind, width) = of_gap(&cell.optimal_acceptance_rate, row);
    // What is known of the mean only between bounds is known of single positions no better.
    let is_open = row.gap.estimate.open().is_some();
    let single = |value: Option<f64>| maybe(value.filter(|_| !is_open));
    let total: u64 = row.gap.histogram.iter().sum();
    let none = row.gap.histogram.first().copied().unwrap_or(0);
    let share = || percent(none as f64 / total as f64);
    row![
        &row.name,
        &cell.scheme,
        entry(&row.gap.estimate, &exactness(kind, width)),
        of_optimum(cell, row),
        single(quantile(&row.gap.quantiles, 0.5)),
        single(quantile(&row.gap.quantiles, 0.95)),
        single(Some(row.gap.max)),
        (total > 0 && !is_open).then(|| Entry::titled(share(), format!("{none} of {total}"))),
    ]
}

/// Tabulates what engines do with one draft.
pub(super) fn one_draft(report: &GapReport) -> Option<Table> {
    let mut tally = Tally::default();
    for one in &report.one_draft {
        tally.add(one.kind, one.width_max, temperature(one.temperature));
    }
    fn of<'a>(one: &'a OneDraft, first: &str, second: &str) -> Option<&'a Comparison> {
        (one.differences.iter()).find(|pair| pair.first == first && pair.second == second)
    }
    let signed =
        |pair: &Comparison| signed_entry(&pair.difference, &exactness(pair.kind, pair.width_max));
    let holds_0 = |pair: &Comparison| {
        let bounds = pair.difference.truncation;
        bounds.is_some_and(|[low, high]| low < 0.0 && high > 0.0)
    };
    let verdict = |first: Option<&Comparison>| match (first.and_then(ahead), first) {
        (Some(Ordering::Greater), _) => "one-hot",
        (Some(_), _) => "token",
        (None, Some(pair)) if holds_0(pair) => "the lists are too short to tell",
        (None, _) => "not told apart",
    };
    let all = report.one_draft.iter();
    let all = all.map(|one| {
        (
            one,
            exactness(one.kind, one.width_max),
            of(one, "one-hot", "token"),
        )
    });
    let table = table! {
        "one-draft", "Acceptance of a single draft in percent, by what engines do with it",
        (one, how, first) in all;
        "#T" => temperature(one.temperature),
        "#one-hot" => entry(&one.one_hot, &how),
        "#token" => entry(&one.token, &how),
        "#exact-match" => entry(&one.exact_match, &how),
        "#one-hot − token" => first.map(signed),
        "#token − exact-match" => of(one, "token", "exact-match").map(signed),
        "at 5% after Holm" => verdict(first),
    };
    let table = table.note(
        "One-hot: the draft's likeliest token, kept with its p, which accepts p(argmax q). \
         Token: a draw from q, kept with min(1, p/q), which accepts the sum of min(p, q). \
         Exact-match: a draw from q that has to be the target's own draw, which accepts the sum of \
         p q. Differences are paired by position.",
    );
    if_any(table.note(tally.line()))
}

fn in_words(engine: &Engine) -> [String; 2] {
    let is_number = (engine.version).starts_with(|c: char| c.is_ascii_digit() || c == 'b');
    let comma = if is_number { "" } else { "," };
    let here = match engine.here {
        Some(here) => {
            let one = if here.one { ", n = 1" } else { "" };
            format!("{}{one}; {}", here.law, here.verifier)
        }
        None if engine.verified == "the block at once" => "block, in specgap length".to_owned(),
        None => "none".to_owned(),
    };
    [format!("{}{comma} {}", engine.name, engine.version), here]
}

/// The names of engines.
pub(super) fn engines() -> Table {
    table! {
        "engines", "What engines do, in the words of this page",
        (engine, [name, here]) in ENGINES.iter().map(|engine| (engine, in_words(engine)));
        "engine" => name,
        "setting" => engine.setting,
        "drafts at T > 0" => engine.drafts,
        "verified" => engine.verified,
        "here: drafts; verifier" => here,
    }
}

/// Paired differences.
pub(super) fn comparisons(report: &GapReport) -> Option<Table> {
    let columns = head("first | second | #difference | #p | #p (Holm) | at 5% after Holm");
    let caption =
        "Differences in acceptance on the same positions in percentage points, first minus second";
    let mut table = Table::new("comparisons", caption, columns);
    let mut tally = Tally::default();
    let all = report.comparisons.iter();
    for (at, n) in each_once(all.map(|one| (one.temperature, one.drafts))) {
        let here = |one: &&Comparison| one.temperature == at && one.drafts == n;
        let rows = report.comparisons.iter().filter(here).map(|one| {
            let lossy = |name: &str| {
                let mut rows = cells_at(report, at, n)
                    .flat_map(|cell| cell.verifiers.iter().map(move |row| (cell, row)));
                rows.any(|(cell, row)| {
                    is_lossy(row) && format!("{}/{}", cell.scheme, row.name) == name
                })
            };
            let verdict = match ahead(one) {
                None => "not told apart",
                Some(Ordering::Greater) if lossy(&one.first) => "first is not lossless",
                Some(Ordering::Less) if lossy(&one.second) => "second is not lossless",
                Some(Ordering::Greater) => "first accepts more",
                Some(_) => "second accepts more",
            };
            let is_known = one.difference.open().is_none();
            let p = |value: f64| is_known.then(|| Entry::titled(p_value(value), value.to_string()));
            let name = format!("{} − {}", one.first, one.second);
            row![
                &one.first,
                &one.second,
                tally.signed_entry(&one.difference, one.kind, one.width_max, name),
                p(one.p_value),
                p(one.p_holm),
                verdict,
            ]
        });
        table.group(place(at, n), rows.collect(), false);
    }
    let table = table.note(format!(
        "p: two-sided, Student's t over {}s. Holm's correction is over all comparisons of \
         this report.",
        report.cluster_unit
    ));
    if_any(table.note(tally.line()))
}

/// The published formula's error.
pub(super) fn formula(report: &GapReport) -> Option<Table> {
    let single = |one: &FormulaError, value: f64| {
        let is_known = one.difference.open().is_none();
        is_known.then(|| Entry::titled(signed_percent(value), value.to_string()))
    };
    let mut tally = Tally::default();
    let all = report.published_formula.iter();
    let table = table! {
        "formula", "Published value minus the value for the sequential law, in percentage points",
        (one, name) in all.map(|one| (one, place(one.temperature, one.drafts)));
        "cell" => &name,
        "#mean" => tally.signed_entry(&one.difference, one.kind, one.width_max, &name),
        "#smallest" => single(one, one.min),
        "#largest" => single(one, one.max),
    };
    let table = table.note(
        "The published optimum without replacement is derived for a law other than the \
         sequential one that is sampled; positive: it promises more than can be had.",
    );
    if_any(table.note(tally.line()))
}

/// Tabulates how well the optimal plans do.
pub(super) fn plans(report: &GapReport) -> Option<Table> {
    let timed = report.plans.iter().any(|one| one.seconds_mean.is_some());
    let checked = report.plans.iter().any(|one| one.positions.is_some());
    let positions = |one: &PlanRow| match one.positions {
        Some(positions) => count(usize::try_from(positions).unwrap_or(usize::MAX)),
        None => "all".to_owned(),
    };
    let (caption, note) = match checked {
        true => (
            "Optimal plans, solved at audited positions as a check",
            "That “level” accepts α* of i.i.d. drafts is a theorem (docs/theory/level-rule.md), and \
             what it accepts above is α* with its bounds, at every position. Its plans are solved at the \
             positions where fast rates are audited: a check of the theorem and of the solver. There \
             acceptance and output law are measured by a second integral that shares only the plan's \
             clocks with the solve. --plans every solves all. What the law is off by is summed in \
             double precision, without bounds on rounding.",
        ),
        false => (
            "Optimal plans, solved at every position",
            "At the positions where fast rates are audited, acceptance and output law are measured by a \
             second integral that shares only the plan's clocks with the solve (with --rrs-wo enclosed, \
             at all). Elsewhere acceptance is the solve's own, between bounds. What is below α* is known \
             as well as the gap of “level”; what the law is off by is summed in double precision, \
             without bounds on rounding.",
        ),
    };
    let table = table! {
        "plans", caption, one in report.plans.iter();
        "cell" => format!("{}, {}", one.scheme, place(one.temperature, one.drafts)),
        "#positions" if checked => positions(one),
        "#below α*, at most" => small(one.shortfall_max, 1),
        "#law off p (L1), at most" => one.law_l1_max.map(|error| small(error, 1)),
        "#ms a solve, mean" if timed => one.seconds_mean.map(|mean| format!("{:.2}", mean * 1e3)),
    };
    if_any(table.note(note))
}

/// Optimum and bounds of blocks.
pub(super) fn blocks(report: &GapReport) -> Option<Table> {
    let chosen = (report.blocks.iter()).filter(|one| one.metric == "block-optimum");
    let caption = "Expected accepted tokens of a block, bonus token excluded";
    block_table("blocks", caption, chosen)
}

/// Tabulates what SpecTr-GBV's Lemma 5.1 says of blocks.
pub(super) fn lemma(report: &GapReport) -> Option<Table> {
    let chosen = report.blocks.iter().filter(|one| one.metric == "lemma-5.1");
    let caption = "Value of SpecTr-GBV's Lemma 5.1, in accepted tokens of a block";
    let table = block_table("lemma", caption, chosen)?;
    Some(table.note(
        "Published as an upper bound, which it is not. For K ≥ 2 it is a lower bound of the block \
         optimum: some block verifier accepts at least as much. For K = 1 it is the optimum.",
    ))
}

fn block_table<'a>(
    id: &str,
    caption: &str,
    chosen: impl Iterator<Item = &'a BlockEstimate>,
) -> Option<Table> {
    let mut tally = Tally::default();
    let table = table! {
        id, caption, one in chosen.inspect(|one| tally.add(one.kind, 0.0, &one.metric));
        "quantity" => &one.metric,
        "#T" => temperature(one.temperature),
        "#length L" => one.length,
        "#drafts K" => one.drafts,
        "#accepted tokens" => in_text(&one.expected_accepted_length, 3),
        "#blocks" => Entry::titled(count(one.blocks), one.blocks.to_string()),
    };
    if_any(table.note(tally.line()))
}

/// Rounds of drafted chains along the text.
pub(super) fn rounds(report: &GapReport) -> Vec<Table> {
    let several = report.rounds.len() > 1;
    let (one, call) = ("accepted drafts of a round, E[τ]", "tokens per target call");
    let columns = [
        head("drafts"),
        head_below(one, "#token | #block | #− token | #greedy-block | #− block"),
        head_below(call, "#token | #block | #− token"),
    ];
    let columns = columns.concat();
    let table = |rounds: &ChainRounds| {
        let rows = rounds.lengths.iter().map(|row| {
            let entries = [
                &row.token,
                &row.block,
                &row.block_over_token,
                &row.greedy_block,
                &row.greedy_block_over_block,
                &row.token_per_call,
                &row.block_per_call,
                &row.block_over_token_per_call,
            ];
            let entries = entries.map(|estimate| in_text(estimate, 3));
            Row::new(std::iter::once(row.length.into()).chain(entries))
        });
        let t = temperature(rounds.temperature);
        let at = match several {
            true => format!(" at temperature {t}"),
            false => String::new(),
        };
        let unlisted = (rounds.unlisted > 0).then(|| {
            format!(
                " Rows do not list {} of the text's {} tokens: “in [a, b]” is from all of them \
                 rejected to all accepted, where such bounds are known.",
                count(rounds.unlisted),
                count(rounds.tokens)
            )
        });
        let caption = format!("Chains of drafts along the text{at}");
        let table = Table::new(format!("rounds-{t}"), caption, columns.clone());
        table.rows(rows).note(format!(
            "Exact given the text; ±: 95% over prompts, of differences paired by prompt. Text by text \
             token ≤ block ≤ greedy-block: the order is proved, and a difference is its size. E[τ] is \
             a mean over all positions, the same for every length; tokens per call is what a decoder \
             gets, whose rounds start where rounds ended. Greedy-block changes the target of the next \
             round, so that its rounds are not replayed.{}",
            unlisted.unwrap_or_default()
        ))
    };
    report.rounds.iter().map(table).collect()
}

/// All shares that some map of quantiles has, ascending.
fn shares<'a>(maps: impl Iterator<Item = &'a BTreeMap<String, f64>>) -> Vec<String> {
    let mut all = each_once(maps.flat_map(|map| map.keys().cloned()));
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

fn at_shares<'a>(
    values: &'a BTreeMap<String, f64>,
    shares: &'a [String],
) -> impl Iterator<Item = Entry> + 'a {
    shares.iter().map(|share| maybe(values.get(share).copied()))
}

/// Overlap of target and draft.
pub(super) fn overlap(report: &GapReport) -> Option<Table> {
    let shares = shares(report.overlap.iter().map(|row| &row.quantiles));
    let along_text = report.overlap.iter().any(|row| row.along_text.is_some());
    let quantiles = shares.iter();
    let quantiles = quantiles.map(|share| Column::number(share_name(share)).over("quantile"));
    let mut tally = Tally::default();
    let mut table = table! {
        "overlap-quantiles", "Overlap in percent, the sum over tokens of min(p, q)",
        (row, t) in report.overlap.iter().map(|row| (row, temperature(row.temperature)));
        "temperature" => &t,
        "#mean" => tally.entry(&row.estimate, row.kind, row.width_max, format!("T = {t}")),
        "#by the text" if along_text =>
            row.along_text.as_ref().map(|along| entry(along, "from the text's tokens")),
    };
    table.columns.extend(quantiles);
    let none = BTreeMap::new();
    let rows = table.groups.iter_mut().flat_map(|group| &mut group.rows);
    for (row, of) in rows.zip(&report.overlap) {
        let known = match of.estimate.open() {
            Some(_) => &none,
            None => &of.quantiles,
        };
        row.entries.extend(at_shares(known, &shares));
    }
    if along_text {
        table = table.note(
            "By the text: the mean of min(1, q(y)/p(y)) over the text's tokens y, which were drawn \
             at that temperature. It estimates the same number without bias and needs no other \
             token of a row.",
        );
    }
    if_any(table.note(QUANTILES).note(tally.line()))
}

/// Quantiles of optima and gaps in every cell.
pub(super) fn quantiles(report: &GapReport) -> Table {
    let shares = shares(report.cells.iter().flat_map(|cell| {
        let gaps = cell.verifiers.iter().map(|row| &row.gap.quantiles);
        std::iter::once(&cell.optimal_acceptance_rate.quantiles).chain(gaps)
    }));
    let mut columns = head("drafts | quantity");
    columns.extend(shares.iter().map(|share| Column::number(share_name(share))));
    let mut table = Table::new("quantiles", "Quantiles over positions, in percent", columns);
    let none = BTreeMap::new();
    each_cell(report, &mut table, None, |cell| {
        let row = |name: String, estimate: &Estimate, values: &BTreeMap<String, f64>| {
            let known = match estimate.open() {
                Some(_) => &none,
                None => values,
            };
            let names = [Entry::plain(&cell.scheme), Entry::plain(name)];
            Row::new(names.into_iter().chain(at_shares(known, &shares)))
        };
        let optimum = &cell.optimal_acceptance_rate;
        let optimum = row("α*".to_owned(), &optimum.estimate, &optimum.quantiles);
        let optimum = Row::reference(optimum.entries);
        let gaps = (cell.verifiers.iter()).map(|one| {
            let (name, gap) = (format!("gap of {}", one.name), &one.gap);
            row(name, &gap.estimate, &gap.quantiles)
        });
        std::iter::once(optimum).chain(gaps).collect()
    });
    table.note(format!(
        "{QUANTILES} The values are computed as the tables of acceptance and of gaps say. A dash: \
         bounds alone are known of the mean."
    ))
}

/// Histograms of gaps in every cell.
pub(super) fn histograms(report: &GapReport) -> Table {
    let mut columns = head("drafts | verifier");
    let bins = bin_names();
    let bins = bins.iter().map(Column::number);
    columns.extend(bins.map(|column| column.over("positions with a gap from")));
    let mut table = Table::new("histograms", "Positions by their gap", columns);
    each_cell(report, &mut table, None, |cell| {
        let row = |one: &VerifierRow| {
            let is_open = one.gap.estimate.open().is_some();
            let count = |bin| one.gap.histogram.get(bin).filter(|_| !is_open).copied();
            let bins = (0..HISTOGRAM_EDGES.len() - 1).map(|bin| count(bin).into());
            let names = [Entry::plain(&cell.scheme), Entry::plain(&one.name)];
            Row::new(names.into_iter().chain(bins))
        };
        cell.verifiers.iter().map(row).collect()
    });
    table.note(format!(
        "Counts of {}, each up to where the next column begins; the gaps are computed as their table says, and one within its enclosure of \
         an edge may belong on its other side.",
        counted(report.positions, "position")
    ))
}

/// Names of the bins of a gap's histogram: where each begins.
fn bin_names() -> Vec<String> {
    let edge = |value: f64| match value < 1e-3 {
        true => format!("{value:e}"),
        false => value.to_string(),
    };
    let name = |pair: &[f64]| match pair[0] < 0.0 {
        true => format!("< {}", edge(pair[1])),
        false => edge(pair[0]),
    };
    HISTOGRAM_EDGES.windows(2).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_core::scheme::SchemeName;
    use specgap_core::verifier::VerifierName;

    /// The last column names draft laws and verifiers that this program has.
    #[test]
    fn engines_are_named_in_words_of_this_program() {
        for engine in ENGINES {
            let Some(here) = engine.here else { continue };
            assert!(here.law.parse::<SchemeName>().is_ok(), "{engine:?}");
            assert!(here.verifier.parse::<VerifierName>().is_ok(), "{engine:?}");
        }
        let named = |name: &str| ENGINES.iter().any(|engine| engine.name == name);
        for name in "vLLM SGLang EAGLE llama.cpp mlx-lm TensorRT-LLM transformers".split(' ') {
            assert!(named(name), "{name}");
        }
    }
}
