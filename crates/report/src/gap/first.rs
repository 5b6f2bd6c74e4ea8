//! The lines that a reader sees first: what the drafts get, what they could get, what that
//! is worth, and how sure it is.

use super::select::{
    ahead, along_text, attains, cells_at, compared, is_lossless, is_measured, opened_by, sampled_at,
};
use super::summary::{has_bounds, sampling, truncated};
use crate::advice::of_gap;
use crate::draft_paths;
use crate::points::{bare, in_points, plain};
use specgap_core::verifier::VerifierName;
use specgap_measure::{CallCosts, Cell, Comparison, GapReport, VerifierRow};
use specgap_number::known::Kind;
use specgap_page::Fact;
use specgap_page::table::Table;
use specgap_page::words::{listed, temperature};
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;

pub(super) use crate::points::{points, share};

/// Says what to change first, with a table of all changes and the lines, at one temperature and number
/// of drafts.
pub(super) fn lines(
    report: &GapReport,
    at: f64,
    n: usize,
) -> (Option<String>, Option<Table>, Vec<Fact>) {
    let cells: Vec<&Cell> = cells_at(report, at, n).collect();
    let paths = report.draft_paths.as_ref();
    let logs = report.logs.iter().map(|log| log.name.as_str());
    let paths = paths.and_then(|paths| draft_paths::sentence(paths, logs));
    let said = of_gap(&report.advice, report.engine.as_ref(), at, n).unwrap_or_default();
    let facts = [
        ("Possible", possible(report, &cells)),
        ("How sure", Some(how_sure(report, &cells) + said.chosen)),
        ("Settings", said.settings),
        ("Not worth it", said.not_worth),
        ("Worth", worth(report, &cells)),
        ("One draft", one_draft(report, at)),
        ("Usual rules", usual_rules(&cells)),
        ("Several paths", paths),
    ];
    let facts = (facts.into_iter()).filter_map(|(name, value)| Some(Fact::new(name, value?)));
    let verdict = said.verdict.or_else(|| void(report, at));
    (verdict, said.changes, facts.collect())
}

/// Says why nothing is advised, where that is not for want of differences.
fn void(report: &GapReport, at: f64) -> Option<String> {
    let short = |[done, planned]: [usize; 2]| done < planned;
    if (report.logs.iter()).any(|log| log.metadata.unfinished().is_some_and(short)) {
        return Some("Nothing is advised: the capture did not finish.".to_owned());
    }
    let sampled = sampled_at(report).filter(|&sampled| sampled != at)?;
    Some(format!(
        "Nothing is advised at temperature {}: the text was sampled at {}.",
        temperature(at),
        temperature(sampled)
    ))
}

/// The rule that drafts of a law are usually verified with: the first that was made for them.
pub(super) fn usual(cell: &Cell) -> Option<&VerifierRow> {
    let mut rows = cell.verifiers.iter();
    rows.find(|row| is_rule(row) && row.own.is_none())
}

/// Tells whether a verifier is a rule of engines and papers: neither a plan that is solved nor the
/// one that does not look at the drafts.
pub(super) fn is_rule(row: &VerifierRow) -> bool {
    let others = [VerifierName::OPTIMAL, VerifierName::EXACT_MATCH];
    !others.iter().any(|name| name.as_str() == row.name)
}

fn one_draft(report: &GapReport, at: f64) -> Option<String> {
    let sampled = (report.overlap.iter()).find(|row| row.temperature == at)?;
    let mut out = format!(
        "one sampled draft is accepted {} of the time",
        share(&sampled.estimate)
    );
    if let Some(along) = along_text(sampled) {
        out = format!(
            "one sampled draft is accepted {} of the time by the text's own tokens, which leave \
             nothing open (the lists alone: {})",
            share(along),
            share(&sampled.estimate)
        );
    }
    if let Some(one) = report.one_draft.iter().find(|one| one.temperature == at) {
        out.push_str(&format!(
            "; the draft's likeliest token instead {}",
            share(&one.one_hot)
        ));
    }
    Some(out + ".")
}

fn usual_rules(cells: &[&Cell]) -> Option<String> {
    let parts: Vec<String> = (cells.iter())
        .filter_map(|cell| {
            let row = usual(cell)?;
            let law = match row.name == cell.scheme {
                true => String::new(),
                false => format!(" ({})", cell.scheme),
            };
            Some(format!("{} {}{law}", row.name, share(&row.acceptance)))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("accepted are {}.", listed(&parts)))
}

fn possible(report: &GapReport, cells: &[&Cell]) -> Option<String> {
    let parts: Vec<String> = (cells.iter())
        .filter(|cell| cell.optimal_acceptance_rate.is_known())
        .map(|cell| {
            let optimum = &cell.optimal_acceptance_rate.estimate;
            format!("{} {}", cell.scheme, bare(optimum))
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let mut out = format!(
        "no lossless rule of one position at a time accepts more than {}.",
        listed(&parts)
    );
    let losing = |cell: &&&Cell| usual(cell).is_some_and(|row| !attains(row));
    let losses: Vec<String> = (cells.iter())
        .filter(losing)
        .filter_map(|cell| {
            let row = usual(cell)?;
            Some(format!("{} ({})", points(&row.gap.estimate), row.name))
        })
        .collect();
    if !losses.is_empty() {
        out.push_str(&format!(" Usual rules leave {} points", listed(&losses)));
        let better: Vec<String> = (cells.iter())
            .filter_map(|cell| {
                let (best, _, _) = better(report, cell)?;
                (!attains(best)).then(|| format!("{} {}", best.name, points(&best.gap.estimate)))
            })
            .collect();
        let better = match better.is_empty() {
            true => String::new(),
            false => format!("; {}", better.join(", ")),
        };
        out.push_str(&format!("{better}."));
    }
    let attained: Vec<String> = (cells.iter())
        .filter_map(|cell| {
            let row = usual(cell).filter(|row| attains(row))?;
            Some(row.name.clone())
        })
        .collect();
    if !attained.is_empty() {
        let verb = match attained.len() == 1 {
            true => "leaves",
            false => "leave",
        };
        out.push_str(&format!(" {} {verb} nothing.", listed(&attained)));
    }
    Some(out)
}

/// The rule of a law that accepts more than the usual one, by most, where a paired comparison
/// tells the two apart; and the usual one.
fn better<'a>(
    report: &'a GapReport,
    cell: &'a Cell,
) -> Option<(&'a VerifierRow, &'a VerifierRow, &'a Comparison)> {
    let usual = usual(cell)?;
    let rules = (cell.verifiers.iter())
        .filter(|row| is_rule(row) && is_lossless(row) && row.name != usual.name);
    let found = rules.filter_map(|row| {
        let one = compared(report, [cell, cell], [row, usual])?;
        let is_more = ahead(one) == Some(Ordering::Greater) && one.difference.open().is_none();
        is_more.then_some((row, usual, one))
    });
    found.max_by(|a, b| a.2.difference.mean.total_cmp(&b.2.difference.mean))
}

/// Says what a better rule of a law recovers of the loss of the usual one, where a paired
/// comparison tells the two apart.
pub(super) fn recovered(report: &GapReport, cells: &[&Cell]) -> Option<String> {
    cells.iter().find_map(|cell| {
        let (best, usual, found) = better(report, cell)?;
        is_measured(cell, usual).then(|| {
            format!(
                "{} recovers {} of the {} points that {} leaves.",
                best.name,
                points(&found.difference),
                in_points(usual.gap.estimate.mean),
                usual.name
            )
        })
    })
}

fn worth(report: &GapReport, cells: &[&Cell]) -> Option<String> {
    let rules = || (cells.iter()).filter_map(|cell| Some((*cell, usual(cell)?)));
    let mut losing: Vec<(&Cell, &VerifierRow)> = rules().filter(|(_, row)| !attains(row)).collect();
    if losing.is_empty() {
        // All of them are alike where nothing is lost.
        losing.extend(rules().next());
    }
    let (losing, open): (Vec<_>, Vec<_>) =
        (losing.into_iter()).partition(|(cell, row)| is_measured(cell, row));
    if losing.is_empty() && !open.is_empty() {
        return Some(format!(
            "not known: {} leave what usual rules lose open by more than its interval.",
            opened_by(report)
        ));
    }
    let parts: Vec<String> = (losing.iter())
        .map(|(cell, row)| {
            let [now, best] = [
                row.acceptance.mean,
                cell.optimal_acceptance_rate.estimate.mean,
            ]
            .map(|rate| 1.0 + rate);
            match attains(row) {
                true => format!("{} {now:.3}, which is the optimum", row.name),
                false => format!(
                    "{} {now:.3} → {best:.3} at the optimum (+{})",
                    row.name,
                    plain(best / now - 1.0)
                ),
            }
        })
        .collect();
    if parts.is_empty() {
        return None;
    }
    let mut out = format!(
        "tokens a call of the target, one position deep: {}, before the cost of the rule.",
        listed(&parts)
    );
    out.push_str(&match (&report.costs, report.cost_ratio) {
        (Some(costs), _) => speeds_at(costs, &losing),
        (None, Some(cost)) => {
            let speeds: Vec<String> = (losing.iter())
                .map(|(cell, row)| {
                    let speed = |rate: f64| (1.0 + rate) / (1.0 + cost);
                    format!(
                        "{} {:.3} → {:.3}",
                        row.name,
                        speed(row.acceptance.mean),
                        speed(cell.optimal_acceptance_rate.estimate.mean)
                    )
                })
                .collect();
            format!(
                " Times the target's own speed, if a draft step takes {cost} of a target step and \
                 checking the drafts takes one target step: {}.",
                listed(&speeds)
            )
        }
        (None, None) => {
            " --cost-ratio C makes that a speed, --timings FILE one at measured times.".to_owned()
        }
    });
    let solves = report.plans.iter().filter(|plan| {
        (losing.iter()).any(|(cell, _)| {
            plan.temperature == cell.temperature
                && plan.drafts == cell.drafts
                && plan.scheme == cell.scheme
        })
    });
    for plan in solves {
        if let Some(seconds) = plan.seconds_mean {
            out.push_str(&format!(
                " A plan that attains the optimum of {} took {} a position.",
                plan.scheme,
                specgap_page::seconds(seconds)
            ));
        }
    }
    Some(out)
}

/// Speeds at measured times, and how long a rule may take that attains the optimum.
///
/// A call takes C = t_d + t_v(n + 1) + t_o and the rule's own time, and gives 1 + a tokens; the
/// target alone takes t_0 a token. A rule that accepts b pays as long as it takes no more than
/// C (b - a)/(1 + a) longer than the one that accepts a.
fn speeds_at(costs: &CallCosts, losing: &[(&Cell, &VerifierRow)]) -> String {
    let parts: Vec<String> = (losing.iter())
        .filter_map(|(cell, row)| {
            let call = (costs.calls.iter()).find(|call| call.drafts == cell.drafts)?;
            let rule = |name: &str| {
                let rule = costs.rules.iter().find(|rule| rule.name == name);
                rule.map(|rule| rule.seconds)
            };
            let taken = call.seconds + rule(&row.name).unwrap_or(0.0);
            let speed = |rate: f64, time: f64| costs.target_step * (1.0 + rate) / time;
            let [now, best] = [
                row.acceptance.mean,
                cell.optimal_acceptance_rate.estimate.mean,
            ];
            let even = taken * (best - now) / (1.0 + now);
            let plan = VerifierName::OPTIMAL.as_str();
            let of_plan = rule(plan).map_or_else(String::new, |seconds| {
                format!(
                    "; {plan}, which takes {}, {:.3}",
                    specgap_page::seconds(seconds),
                    speed(best, call.seconds + seconds)
                )
            });
            let own = format!("{} ({}) {:.3}", row.name, cell.scheme, speed(now, taken));
            Some(match attains(row) {
                true => own,
                false => format!(
                    "{own}{of_plan}; a rule that attains the optimum pays if it takes at most {} \
                     longer a call",
                    specgap_page::seconds(even)
                ),
            })
        })
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(
        " Times the target's own speed, at the times of {} and one draft step a call: {}.",
        costs.file,
        parts.join(". ")
    )
}

/// What a range instead of a number says.
const OPEN: &str = "“a to b”: the true number lies between a and b, and this log cannot say where.";

/// Tells whether some number of the first lines is only known between bounds.
fn has_open(report: &GapReport, cells: &[&Cell]) -> bool {
    let of_cells = cells.iter().flat_map(|cell| {
        let rows = cell.verifiers.iter();
        let rates = rows.flat_map(|row| [&row.acceptance, &row.gap.estimate]);
        rates.chain([&cell.optimal_acceptance_rate.estimate])
    });
    let one = report.overlap.iter().map(|row| &row.estimate);
    of_cells
        .chain(one)
        .any(|estimate| estimate.open().is_some())
}

/// Every error that counts, in short.
fn how_sure(report: &GapReport, cells: &[&Cell]) -> String {
    let mut parts = Vec::new();
    if report.clusters > 1 {
        parts.push(format!(
            "± is 95% over {}s; losses are paired by position.",
            report.cluster_unit
        ));
    }
    let is_open = |cell: &&Cell| cell.optimal_acceptance_rate.kind == Kind::Truncated;
    let is_whole = report.logs.iter().any(|log| !log.rest.is_empty()) && !cells.iter().any(is_open);
    if is_whole && (report.served.is_some() || cells.iter().all(|cell| cell.temperature == 0.0)) {
        parts.push(
            "The log lists the likeliest tokens only; with these cuts none is missing.".to_owned(),
        );
    } else if let Some(truncated) = truncated(report) {
        let half = |estimate: &Estimate| {
            let [low, high] = estimate.truncation.filter(|_| estimate.open().is_none())?;
            Some((high - low) / 2.0)
        };
        let optima = (cells.iter())
            .filter_map(|cell| half(&cell.optimal_acceptance_rate.estimate))
            .fold(None, |most: Option<f64>, one| {
                Some(most.unwrap_or(0.0).max(one))
            });
        let widest = (cells.iter())
            .filter_map(|cell| usual(cell))
            .filter_map(|row| Some((row, half(&row.acceptance)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let bounds = match (optima, has_bounds(report)) {
            (_, false) => ". No bounds of these are in this report.".to_owned(),
            (None, true) => ".".to_owned(),
            (Some(optima), true) => {
                let rule = widest
                    .filter(|(_, half)| *half > optima)
                    .map_or_else(String::new, |(row, half)| {
                        format!(", and {} by at most {:.2}", row.name, 100.0 * half)
                    });
                format!(
                    ". Full rows move an optimum by at most {:.2} points{rule}.",
                    100.0 * optima
                )
            }
        };
        parts.push(truncated + &bounds);
        if has_open(report, cells) {
            parts.push(OPEN.to_owned());
        }
    } else if (cells.iter()).all(|cell| cell.optimal_acceptance_rate.kind == Kind::Enclosed) {
        let width = (cells.iter())
            .map(|cell| cell.optimal_acceptance_rate.width_max)
            .fold(0.0, f64::max);
        parts.push(match width > 0.0 {
            true => format!("Optima of full rows are enclosed to {width:.0e} at every position."),
            false => "Optima of full rows are exact at every position.".to_owned(),
        });
    }
    parts.extend(sampling(report));
    parts.join(" ")
}
