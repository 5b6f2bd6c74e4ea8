//! The page of `sg.drafter`'s report, from what it found ([`DrafterReport`]).
//!
//! [`page`] alone decides what stands on it and in which order.

use super::certainty::point;
use super::columns::{head, row, table};
use super::length::numbers::{cost, entry, maybe, plus_minus};
use super::pictures::{chart, ends};
use super::sections::{if_any, of_numbers, section, shown};
use serde::Deserialize;
use specgap_page::plot::{Axis, Line, LinePlot};
use specgap_page::table::{Column, Row, Table};
use specgap_page::words::{counted, temperature};
use specgap_page::{Block, Figure, Page, Section, made_by};
use specgap_statistics::statistics::Estimate;
use std::collections::BTreeMap;

/// What `sg.drafter` found in a validation loop, as its JSON says it.
#[derive(Clone, Debug, Deserialize)]
pub struct DrafterReport {
    /// The version of these fields.
    pub schema: u32,
    /// The program and its version.
    pub tool: String,
    /// What was asked.
    pub settings: DrafterSettings,
    /// Positions that count.
    pub tokens: usize,
    /// Prompts.
    pub prompts: usize,
    /// Positions at which K tokens are left.
    pub starts: usize,
    /// Why the numbers may be of something else.
    pub warning: Option<String>,
    /// All numbers by their flat names.
    pub estimates: BTreeMap<String, Estimate>,
    /// By kind of drafts: tokens a call for 1 to K drafts a round.
    pub tokens_per_call: BTreeMap<String, Vec<Estimate>>,
    /// The best number of drafts by the cost of one.
    pub best_length: Vec<BestAt>,
    /// What each number is.
    pub definitions: BTreeMap<String, String>,
}

/// What a drafter was asked.
#[derive(Clone, Debug, Deserialize)]
pub struct DrafterSettings {
    /// K.
    pub depth: usize,
    /// The text's temperature.
    pub temperature: f64,
    /// Numbers of drafts of which alpha\* was asked.
    #[serde(default)]
    pub optima: Vec<usize>,
}

/// The best number of drafts at a cost.
#[derive(Clone, Debug, Deserialize)]
pub struct BestAt {
    /// What a drafted token costs, in steps of the target.
    pub cost_ratio: f64,
    /// How many are quickest on half of the prompts.
    pub length: usize,
    /// How much quicker on the others.
    pub speedup: Estimate,
}

/// Kinds of drafts with their rules: what they are called in flat names, in tables by kind, and on
/// the page.
const KINDS: [[&str; 3]; 5] = [
    ["", "sampled", "sampled, rejection"],
    ["_block", "block", "sampled, block verification"],
    [
        "_greedy_block",
        "greedy-block",
        "sampled, greedy block (one round)",
    ],
    ["_one_hot", "one-hot", "one-hot"],
    ["_exact_match", "exact-match", "sampled, exact match"],
];

/// The report as a page.
pub fn page(report: &DrafterReport) -> Page {
    let depth = report.settings.depth;
    let sampled = report.estimates.get("acceptance_length");
    let length = sampled.map_or_else(String::new, |one| plus_minus(one, 3));
    let (tokens, prompts) = (
        counted(report.tokens, "token"),
        counted(report.prompts, "prompt"),
    );
    let says = format!(
        "With {} a round puts out {length} tokens, the target's own included, from {} with as many \
         tokens left.",
        counted(depth, "sampled draft"),
        counted(report.starts, "start"),
    );
    let caution = report.warning.iter();
    let lead = caution.map(|why| Block::Caution(format!("Be careful: {why}.")));
    let sections = [
        Some(lengths(report)),
        Some(by_depth(report)),
        per_call(report),
        Some(of_numbers(
            "What every number is; those of metrics() by their names.",
            &report.definitions,
        )),
        Some(made_by(
            "",
            format!("{}, report schema {}.", report.tool, report.schema),
        )),
    ];
    Page {
        title: format!("A drafter's rounds: {length} tokens with K = {depth}"),
        subtitle: format!(
            "{tokens} of {prompts}, temperature {}",
            temperature(report.settings.temperature)
        ),
        lead: lead.chain([Block::Paragraph(says)]).collect(),
        sections: sections.into_iter().flatten().collect(),
        ..Page::default()
    }
    .picture_first()
}

fn lengths(report: &DrafterReport) -> Section {
    let named = |name: String| report.estimates.get(&name);
    let rows = KINDS.map(|[flat, kind, words]| {
        let by_means = named(format!("acceptance_length{flat}_by_means"));
        let calls = report.tokens_per_call.get(kind);
        row![
            words,
            maybe(named(format!("acceptance_length{flat}")), 3),
            maybe(by_means, 3),
            maybe(calls.and_then(|calls| calls.last()), 3),
        ]
    });
    let tree = |(name, one): (&String, &Estimate)| {
        let tree = name.strip_prefix("acceptance_length_tree_")?;
        let words = match tree.strip_prefix("threshold-") {
            Some(least) => format!("all nodes of product {least} or more"),
            None => {
                let (shape, rule) = tree.split_once(':').unwrap_or((tree, "level-4"));
                format!("strata, tree {shape}, {rule} (a sample)")
            }
        };
        Some(row![words, entry(one, 3), maybe(None, 3), maybe(None, 3)])
    };
    let trees = report.estimates.iter().filter_map(tree);
    let columns = head("drafts | #acceptance length | #by means | #tokens a call");
    let table = Table::new("acceptance-length", "Tokens a round", columns)
        .rows(rows.into_iter().chain(trees))
        .note("± is half of a 95% interval, by prompt.");
    let caption = "Sampled drafts a round, chosen on half of the prompts, at work on the others";
    let best = table! {
        "best-length", caption, at in report.best_length.iter();
        "#cost of a drafted token" => cost(at.cost_ratio),
        "#best K" => at.length,
        "#times as fast" => entry(&at.speedup, 3),
    };
    shown(
        "lengths | Acceptance lengths | Tokens a round and a call, by kind of drafts and rule.",
        [table],
    )
    .with(if_any(best))
}

/// How many of [`BY_DEPTH`] are about accepted drafts.
const ACCEPTED: usize = 4;

/// Numbers by depth: their flat name, and what they are called here.
const BY_DEPTH: [[&str; 2]; 8] = [
    ["acceptance_joint", "joint"],
    ["acceptance_conditional", "conditional"],
    ["acceptance_marginal", "marginal"],
    ["acceptance_joint_one_hot", "joint, one-hot"],
    ["overlap", "overlap"],
    ["coverage", "coverage"],
    ["lost_to_vocabulary", "lost to the vocabulary"],
    ["lost_to_drafter", "lost to the drafter"],
];

fn by_depth(report: &DrafterReport) -> Section {
    let optima = report.settings.optima.iter();
    let optima = optima.map(|n| [format!("alpha_star_{n}"), format!("α*, n = {n}")]);
    let own = |pair: &[&str; 2]| pair.map(str::to_owned);
    let (accepted, of_rows) = BY_DEPTH.split_at(ACCEPTED);
    let accepted: Vec<[String; 2]> = accepted.iter().map(own).collect();
    let of_rows: Vec<[String; 2]> = of_rows.iter().map(own).chain(optima).collect();
    let depths = 1..=report.settings.depth;
    let at = |name: &str, depth: usize| report.estimates.get(&format!("{name}_{depth}"));
    let table = |id: &str, caption: &str, names: &[[String; 2]]| {
        let rows = depths.clone().map(|depth| {
            let entries = names.iter().map(|[name, _]| maybe(at(name, depth), 3));
            Row::new(std::iter::once(depth.into()).chain(entries))
        });
        let columns = (names.iter()).map(|[_, words]| Column::number(words.as_str()));
        let columns = head("#depth").into_iter().chain(columns);
        Table::new(id, caption, columns.collect()).rows(rows)
    };
    let tables = [
        table("by-depth", "Sampled drafts that are accepted", &accepted),
        table("rows-by-depth", "Each depth's rows by themselves", &of_rows),
    ];
    let drawn = [
        "acceptance_joint",
        "acceptance_joint_one_hot",
        "overlap",
        "coverage",
    ];
    let lines = drawn.into_iter().enumerate().filter_map(|(hue, name)| {
        let [_, words] = BY_DEPTH.iter().find(|[own, _]| *own == name)?;
        let depths = depths.clone();
        let points = depths.filter_map(|depth| Some(point(depth as f64, at(name, depth)?)));
        Some(Line::solid(*words, hue, points))
    });
    let figure = of_lines(
        "by-depth",
        "Acceptance by depth",
        ("depth", "share"),
        lines.collect(),
        "Joint: all drafts up to this depth are accepted. Overlap: sum of min(p, q) of the row by \
         itself. Coverage: p's mass inside the draft's vocabulary, which overlap cannot pass.",
    );
    let words = "by-depth | Depth by depth | What becomes of a round's first, second, ... draft.";
    shown(words, tables).with([figure])
}

fn per_call(report: &DrafterReport) -> Option<Section> {
    let kinds: Vec<(&str, &Vec<Estimate>)> = (KINDS.iter())
        .filter_map(|[_, kind, words]| Some((*words, report.tokens_per_call.get(*kind)?)))
        .collect();
    let first = kinds.first()?;
    let rows = (0..first.1.len()).map(|at| {
        let entries = kinds.iter().map(|(_, found)| maybe(found.get(at), 3));
        Row::new(std::iter::once((at + 1).into()).chain(entries))
    });
    let columns = kinds.iter().map(|(words, _)| Column::number(*words));
    let columns = head("#drafts K").into_iter().chain(columns);
    let table = Table::new("tokens-per-call", "", columns.collect()).rows(rows);
    let lines = kinds.iter().enumerate().map(|(hue, (words, found))| {
        let points = found.iter().zip(1..);
        let points = points.map(|(one, length)| point(f64::from(length), one));
        Line::solid(*words, hue, points)
    });
    let figure = of_lines(
        "tokens-per-call",
        "Tokens for each target call, by draft length",
        ("drafts K a round", "tokens"),
        lines.collect(),
        "Rounds are replayed from each text's first token, and start where rounds end.",
    );
    let words =
        "tokens-per-call | Tokens a call | What a decoder gets, by the number of drafts a round.";
    Some(section(words, [table]).with([figure]))
}

/// A chart of lines over whole numbers.
fn of_lines(
    name: &str,
    title: &str,
    (x, y): (&str, &str),
    lines: Vec<Line>,
    caption: &str,
) -> Figure {
    let most = lines.iter().map(|line| line.points.len()).max();
    let stops = (1..=most.unwrap_or(0)).map(|at| (at as f64, at.to_string()));
    let plot = LinePlot::new(title, Axis::new(x, stops), y, lines);
    let said = ends(&plot.lines, |point| format!("{:.3}", point.y));
    let caption = format!("{caption} Bars: 95% intervals over prompts.");
    chart(name, &plot, &said, caption, None)
}
