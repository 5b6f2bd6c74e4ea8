//! What lists of the most probable tokens leave open: one log's rows cut to lists, and the gap
//! reports of the cut logs beside that of the log itself.
//!
//!     cargo bench --bench list_lengths -- cut LOG OUT 20 256
//!     specgap gap LOG --temperature 1 --out OUT/report-full
//!     specgap gap OUT/top-20 --temperature 1 --out OUT/report-20
//!     specgap gap OUT/top-256 --temperature 1 --out OUT/report-256
//!     cargo bench --bench list_lengths -- table OUT/report-*/report.json
//!
//! `cut` writes two logs for each K: `top-K`, in which either model lists its own K most probable
//! tokens, as engines do, and `top-K-union`, in which both score the tokens of both lists. Entries
//! are log-probabilities of the full softmax at the temperature that the log was written at.
//! `table` prints Markdown: each number of the reports, and what each of them allows to conclude.

use safetensors::tensor::{Dtype, TensorView};
use specgap::distribution::Softmax;
use specgap::gap::{Comparison, GapReport};
use specgap::log::{Log, Row, RowKind};
use specgap::report::gap::page;
use specgap::statistics::Estimate;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let usage = "give: cut LOG OUT K..., or: table REPORT.json...";
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        // Cargo adds it.
        .filter(|argument| argument != "--bench")
        .collect();
    if arguments.is_empty() {
        println!("{usage}");
        return Ok(());
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cut", log, out, lengths @ ..] if !lengths.is_empty() => {
            let lengths: Vec<usize> = (lengths.iter())
                .map(|length| length.parse().map_err(|_| format!("{length:?}: {usage}")))
                .collect::<Result<_, _>>()?;
            for made in cut(&Log::open(Path::new(log))?, Path::new(out), &lengths)? {
                println!("{}", made.display());
            }
        }
        ["table", reports @ ..] if !reports.is_empty() => {
            let reports: Vec<GapReport> = (reports.iter())
                .map(|path| {
                    let file = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
                    serde_json::from_slice(&file).map_err(|error| format!("{path}: {error}"))
                })
                .collect::<Result<_, _>>()?;
            print!("{}", table(&reports));
        }
        _ => return Err(usage.into()),
    }
    Ok(())
}

/// One log of lists, as it is gathered: ids and log-probabilities of target and draft.
#[derive(Default)]
struct Lists {
    of: [Vec<(Vec<i64>, Vec<f64>)>; 2],
}

/// Writes the logs that lists of these lengths make, and says where they are.
///
/// # Errors
/// A log whose own rows do not have the tokens that are asked for, or no masses of the others at
/// its own temperature; files that are there already or cannot be written.
pub fn cut(log: &Log, out: &Path, lengths: &[usize]) -> Result<Vec<PathBuf>, Failed> {
    let metadata = log.metadata();
    let applied = metadata.applied();
    let column = (metadata.rest_temperatures.iter()).position(|&at| at == applied);
    let is_cut = log.is_top_heavy();
    if log.has_own_lists() || is_cut && column.is_none() {
        return Err(
            "the log's rows have to be full, or list the same tokens for both models \
                    with the masses of the others at the temperature of the log"
                .into(),
        );
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if longest == 0
        || longest
            > metadata
                .tops()
                .map_or(log.listed(), |tops| tops[0].min(tops[1]))
    {
        return Err(format!("lists of {longest} tokens cannot be cut from this log").into());
    }
    let mut all: BTreeMap<(usize, bool), Lists> = (lengths.iter())
        .flat_map(|&length| {
            [
                ((length, false), Lists::default()),
                ((length, true), Lists::default()),
            ]
        })
        .collect();
    let mut labels: [Vec<i64>; 3] = Default::default();
    let mut row = Row::default();
    for number in 0..log.positions() {
        log.read(number, &mut row)?;
        let law = |entries: &[f64], kind: RowKind, rests: &[f64]| -> Result<Vec<f64>, Failed> {
            let mut law = Vec::new();
            match kind {
                RowKind::Probabilities => law.extend_from_slice(entries),
                _ => Softmax::default().fill(entries, &mut law)?,
            }
            let rest = column.and_then(|column| rests.get(column)).copied();
            let share = (1.0 - rest.unwrap_or(0.0)) / law.iter().sum::<f64>();
            law.iter_mut().for_each(|x| *x *= share);
            Ok(law)
        };
        let laws = [
            law(&row.target, row.target_kind, &row.target_rest)?,
            law(&row.draft, row.draft_kind, &row.draft_rest)?,
        ];
        let orders = laws.each_ref().map(|law| likeliest(law, longest));
        for ((length, union), lists) in &mut all {
            let own = orders.each_ref().map(|order| &order[..*length]);
            for model in 0..2 {
                let mut places = own[model].to_vec();
                if *union {
                    // In the same order for both.
                    places = own[0].to_vec();
                    places.extend(own[1].iter().filter(|place| !own[0].contains(place)));
                }
                let ids = places.iter().map(|&place| i64::from(row.token_at(place)));
                let entries = places.iter().map(|&place| laws[model][place].ln());
                lists.of[model].push((ids.collect(), entries.collect()));
            }
        }
        for (label, value) in labels
            .iter_mut()
            .zip([row.prompt_id, row.position, row.token])
        {
            label.extend(value);
        }
    }
    let mut made = Vec::new();
    for ((length, union), lists) in &all {
        let folder = out.join(format!(
            "top-{length}{}",
            if *union { "-union" } else { "" }
        ));
        write(log, &folder, *length, *union, lists, &labels)?;
        made.push(folder);
    }
    Ok(made)
}

/// The places of the k largest entries, falling; of equal ones the first.
fn likeliest(law: &[f64], k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..law.len()).collect();
    let falling = |a: &usize, b: &usize| law[*b].total_cmp(&law[*a]).then(a.cmp(b));
    if k < order.len() {
        order.select_nth_unstable_by(k, falling);
        order.truncate(k);
    }
    order.sort_unstable_by(falling);
    order
}

fn write(
    log: &Log,
    folder: &Path,
    length: usize,
    union: bool,
    lists: &Lists,
    labels: &[Vec<i64>; 3],
) -> Result<(), Failed> {
    let positions = log.positions();
    let integers = |values: &mut dyn Iterator<Item = i64>| -> Vec<u8> {
        values.flat_map(i64::to_le_bytes).collect()
    };
    let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    for (name, lists) in ["target", "draft"].into_iter().zip(&lists.of) {
        let width = lists.iter().map(|(ids, _)| ids.len()).max().unwrap_or(0);
        let shape = vec![positions, width];
        let ids = integers(&mut lists.iter().flat_map(|(ids, _)| {
            let unused = std::iter::repeat_n(-1, width - ids.len());
            ids.iter().copied().chain(unused)
        }));
        let entries = lists.iter().flat_map(|(_, entries)| {
            let unused = std::iter::repeat_n(0.0, width - entries.len());
            entries.iter().copied().chain(unused)
        });
        let entries = entries.flat_map(f64::to_le_bytes).collect();
        tensors.push((
            format!("{name}_logprobs"),
            Dtype::F64,
            shape.clone(),
            entries,
        ));
        match (union, name) {
            (false, _) => tensors.push((format!("{name}_token_ids"), Dtype::I64, shape, ids)),
            (true, "target") => tensors.push(("token_ids".to_owned(), Dtype::I64, shape, ids)),
            (true, _) => {}
        }
    }
    for (name, values) in ["prompt_id", "position", "token"].into_iter().zip(labels) {
        if values.len() == positions {
            let bytes = integers(&mut values.iter().copied());
            tensors.push((name.to_owned(), Dtype::I64, vec![positions], bytes));
        }
    }
    let mut metadata = log.metadata().clone();
    metadata.vocabulary = Some(log.vocabulary());
    metadata.rest_temperatures.clear();
    metadata.extra.insert("top".to_owned(), length.into());
    let mut metadata = serde_json::to_value(&metadata)?;
    if let Some(fields) = metadata.as_object_mut() {
        // The rollouts stay with the full log.
        fields.remove("rollouts");
    }
    let views = (tensors.iter())
        .map(|(name, dtype, shape, bytes)| {
            Ok((name, TensorView::new(*dtype, shape.clone(), bytes)?))
        })
        .collect::<Result<Vec<_>, Failed>>()?;
    let shard = "shard-00000.safetensors";
    std::fs::create_dir_all(folder.parent().unwrap_or(Path::new(".")))?;
    std::fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    std::fs::write(folder.join(shard), safetensors::serialize(views, None)?)?;
    let index = serde_json::json!({
        "schema": 1,
        "metadata": metadata,
        "shards": [{"file": shard, "positions": positions}],
    });
    Ok(std::fs::write(folder.join("log.json"), index.to_string())?)
}

/// A report's numbers by temperature, number of drafts, and words.
type Numbers = BTreeMap<(u64, usize), Vec<(String, Estimate)>>;

/// The reports side by side, as Markdown.
pub fn table(reports: &[GapReport]) -> String {
    let numbers: Vec<Numbers> = reports.iter().map(numbers).collect();
    let mut text = String::from("| T | drafts | number |");
    for report in reports {
        text += &format!(" {} |", lists(report));
    }
    text += &format!("\n| --- | --- | --- |{}\n", " --- |".repeat(reports.len()));
    for (&(temperature, drafts), rows) in numbers.first().into_iter().flatten() {
        for (name, _) in rows {
            let found: Option<Vec<&Estimate>> = (numbers.iter())
                .map(|one| {
                    let rows = one.get(&(temperature, drafts))?.iter();
                    rows.filter(|row| row.0 == *name).map(|row| &row.1).next()
                })
                .collect();
            // What one report has and another has not is not side by side.
            let Some(found) = found else { continue };
            let cells: Vec<String> = found.into_iter().map(interval).collect();
            text += &format!(
                "| {} | {drafts} | {name} | {} |\n",
                f64::from_bits(temperature),
                cells.join(" | ")
            );
        }
    }
    for report in reports {
        text += &format!("\n**{}.**", lists(report));
        for line in conclusions(report) {
            text += &format!(" {line}");
        }
        text += "\n";
    }
    text
}

/// What a report's rows list.
fn lists(report: &GapReport) -> String {
    let Some(log) = report.logs.first() else {
        return "no log".to_owned();
    };
    let is_cut = report
        .overlap
        .iter()
        .any(|row| row.estimate.truncation.is_some());
    match log.metadata.tops() {
        Some([target, draft]) if is_cut => format!(
            "{}, {}",
            target.min(draft),
            if log.own_lists {
                "each its own"
            } else {
                "both score both"
            }
        ),
        _ if is_cut => format!("{} listed", log.listed),
        _ => format!("full rows ({})", log.vocabulary),
    }
}

fn numbers(report: &GapReport) -> Numbers {
    let mut all = Numbers::new();
    let mut add = |temperature: f64, drafts: usize, name: String, one: Estimate| {
        let rows = all.entry((temperature.to_bits(), drafts)).or_default();
        rows.push((name, one));
    };
    for row in &report.overlap {
        add(
            row.temperature,
            1,
            "token: overlap".to_owned(),
            row.estimate,
        );
    }
    for one in &report.one_draft {
        add(
            one.temperature,
            1,
            "one-hot: p(argmax q)".to_owned(),
            one.one_hot,
        );
        add(
            one.temperature,
            1,
            "exact-match: sum of p q".to_owned(),
            one.exact_match,
        );
    }
    for cell in report.cells.iter().filter(|cell| cell.drafts > 1) {
        let best = cell.optimal_acceptance_rate.estimate;
        add(
            cell.temperature,
            cell.drafts,
            format!("α*, {}", cell.scheme),
            best,
        );
        for row in &cell.verifiers {
            let name = format!("{} on {}", row.name, cell.scheme);
            add(cell.temperature, cell.drafts, name, row.acceptance);
        }
    }
    all
}

/// `.323 to .499 (.176)`, or a number of full rows with its sampling interval.
fn interval(one: &Estimate) -> String {
    let words = match one.truncation {
        Some([low, high]) => format!("{low:.3} to {high:.3} ({:.3})", high - low),
        None => format!("{:.3} ± {:.3}", one.mean, 0.5 * (one.ci95[1] - one.ci95[0])),
    };
    words.replace("0.", ".")
}

/// What a report allows to conclude, and what to ask for.
fn conclusions(report: &GapReport) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &report.one_draft {
        let pair = |pair: &&Comparison| (pair.first == "one-hot") && (pair.second == "token");
        let Some(pair) = one.differences.iter().find(pair) else {
            continue;
        };
        let found = match pair.difference.truncation {
            Some([low, high]) if low <= 0.0 && high >= 0.0 => {
                format!("is open (their difference is from {low:.3} to {high:.3})")
            }
            _ if pair.p_holm >= 0.05 => "is not told by so few prompts".to_owned(),
            _ if pair.difference.mean > 0.0 => "is told: one-hot".to_owned(),
            _ => "is told: token".to_owned(),
        };
        lines.push(format!(
            "At T = {} the better single draft {found}.",
            one.temperature
        ));
    }
    for (&(temperature, drafts), rows) in &numbers(report) {
        let optima: Vec<&Estimate> = (rows.iter())
            .filter(|(name, _)| name.starts_with("α*"))
            .map(|(_, one)| one)
            .collect();
        let bounds = |one: &Estimate| one.truncation.unwrap_or([one.mean; 2]);
        let apart =
            |a: &Estimate, b: &Estimate| bounds(a)[0] > bounds(b)[1] || bounds(b)[0] > bounds(a)[1];
        let behind = |(at, a)| optima.iter().skip(at + 1).map(move |b| (a, *b));
        let pairs = || optima.iter().copied().enumerate().flat_map(behind);
        if optima.len() > 1 {
            lines.push(format!(
                "At T = {} α* tells {} of {} pairs of draft laws apart with {drafts} drafts.",
                f64::from_bits(temperature),
                pairs().filter(|(a, b)| apart(a, b)).count(),
                pairs().count()
            ));
        }
    }
    let page = page(report).markdown();
    let advice = page
        .split("\n")
        .find(|line| line.contains("lists are too short for temperature"));
    lines.push(match advice {
        Some(advice) => advice.trim_start_matches(['-', ' ', '>']).replace('\\', ""),
        None if report
            .overlap
            .iter()
            .all(|row| row.estimate.truncation.is_none()) =>
        {
            "Nothing is left open by the rows.".to_owned()
        }
        None => "Long enough for a single draft: it is left open by no more than .050.".to_owned(),
    });
    lines
}
