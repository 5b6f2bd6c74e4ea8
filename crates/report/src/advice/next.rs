//! What to do next: the last line of a first screen, on pages and on a terminal.

use specgap_audit::audit::{AuditReport, Conclusion};
use specgap_counters::counters::{CountersReport, Kind};
use specgap_measure::{DraftFit, GapReport, LogComparison, Surprise};
use specgap_page::words::words;
use specgap_replay::replay::{LengthReport, MeasuredTexts, PathsReport, TreeReport};

/// Says what to mend where rows are not those of the text or drafts: nothing else is worth doing.
fn mended<'a>(
    mut texts: impl Iterator<Item = &'a Surprise>,
    mut drafts: impl Iterator<Item = &'a DraftFit>,
) -> Option<String> {
    let is_off = texts.any(|surprise| surprise.not_drawn().is_some());
    let mend = match is_off {
        true => "log the text with the rows that it was drawn from, and measure again",
        false if drafts.any(DraftFit::is_strange) => {
            "log the rows that the drafts are drawn from, by the target's ids, and measure again"
        }
        false => return None,
    };
    Some(mend.to_owned())
}

fn mended_texts(of: &MeasuredTexts, surprise: &Surprise) -> Option<String> {
    let fits = of.logs.iter().filter_map(|log| log.fit.as_ref());
    mended([surprise].into_iter(), fits)
}

/// A command on the logs of a report.
fn again<'a>(command: &str, names: impl Iterator<Item = &'a str>) -> String {
    format!("specgap {command} {}", words(names))
}

fn on_texts(command: &str, of: &MeasuredTexts) -> String {
    again(command, of.logs.iter().map(|log| log.name.as_str()))
}

pub(crate) fn after_gap(report: &GapReport) -> String {
    let surprises = || report.logs.iter().filter_map(|log| log.surprise.as_ref());
    let fits = report.logs.iter().filter_map(|log| log.fit.as_ref());
    let names = || report.logs.iter().map(|log| log.name.as_str());
    let is_unsaid = report.logs.iter().any(|log| log.unsaid_temperature);
    mended(surprises(), fits).unwrap_or_else(|| match surprises().next() {
        Some(_) => {
            let mut length = again("length", names());
            if let Some(row) = report.overlap.first().filter(|_| is_unsaid) {
                length.push_str(&format!(" --temperature {}", row.temperature));
            }
            format!(
                "{length} --cost-ratio 0.05 says how many tokens to draft where a draft step takes a \
                 twentieth of a target step, and tree which tree"
            )
        }
        None if is_unsaid => {
            let gap = again("gap", names());
            format!(
                "{gap} --temperature T, with the T that the text was drawn at (sampling.temperature in the \
                 metadata says it for good); then specgap length and tree say how much to draft"
            )
        }
        None => {
            "log the text too (prompt_id, position, token) and its temperature; then specgap length \
                 and tree say how much to draft"
                .to_owned()
        }
    })
}

pub(crate) fn after_logs(comparison: &LogComparison) -> String {
    let logs = || comparison.logs.iter();
    let surprises = logs().filter_map(|log| log.surprise.as_ref());
    let fits = logs().filter_map(|log| log.fit.as_ref());
    mended(surprises, fits).unwrap_or_else(|| {
        "specgap length LOG --cost-ratio C, of the draft that you choose, says how many tokens to \
         draft"
            .to_owned()
    })
}

pub(crate) fn after_lengths(report: &LengthReport) -> String {
    mended_texts(&report.of, &report.surprise).unwrap_or_else(|| match &report.at_cost {
        Some(at) => {
            let (tree, cost) = (on_texts("tree", &report.of), at.cost_ratio);
            format!("{tree} --cost-ratio {cost} says whether a tree gets more")
        }
        None => {
            let length = on_texts("length", &report.of);
            format!("{length} --cost-ratio 0.05 chooses for a draft step of a twentieth of a target step")
        }
    })
}

pub(crate) fn after_trees(report: &TreeReport) -> String {
    mended_texts(&report.of, &report.surprise).unwrap_or_else(|| match report.timings {
        Some(_) => {
            "--out DIR writes the tree as EAGLE and Sequoia read it; specgap audit tests what an \
                    engine samples with it"
                .to_owned()
        }
        None => {
            let tree = on_texts("tree", &report.of);
            format!(
                "{tree} --cost-ratio 0.05 chooses for a draft step of a twentieth of a target step"
            )
        }
    })
}

pub(crate) fn after_paths(report: &PathsReport) -> String {
    mended_texts(&report.of, &report.surprise).unwrap_or_else(|| {
        let tree = on_texts("tree", &report.of);
        format!("{tree} says what one tree gets of as many tokens")
    })
}

pub(crate) fn after_counters(report: &CountersReport) -> String {
    let best = report.best.as_ref();
    match best.filter(|best| best.kind != Kind::Counted) {
        Some(best) => format!("run K = {}, and count again", best.length),
        None => "log rows: specgap gap says what other drafts and rules would get".to_owned(),
    }
}

pub(crate) fn after_audit(report: &AuditReport) -> String {
    let next = match report.conclusion {
        Conclusion::AsClaimed => "specgap gap says what a better rule would get of these rows",
        Conclusion::Undecided => "log what the first line asks for, and audit again",
        Conclusion::LosslessOther => {
            "name the rule that runs with --rule; specgap gap says what each would accept"
        }
        _ if report.rule == "text" => "mend it, write the texts again and audit again",
        _ => "mend it, record again and audit again; specgap conformance tests its kernel alone",
    };
    next.to_owned()
}
