//! Rules of the caller's own: which they are, and whether they are lossless.

use super::certainty::of_row;
use super::select::{each_cell, is_lossless, is_lossy};
use crate::certainty::{BETWEEN, entry, exactness};
use crate::columns::{head, row};
use crate::sections::{if_any, section as section_of};
use specgap_measure::GapReport;
use specgap_page::table::{Entry, Table};
use specgap_page::words::{at_most, listed};
use specgap_page::{Block, Section};

/// Says what a reader must know of rules that are not lossless before anything else.
pub(super) fn caution(report: &GapReport) -> Option<String> {
    let mut names: Vec<String> = (report.own_rules.iter())
        .filter_map(|rule| {
            let rows = (report.cells.iter()).flat_map(|cell| &cell.verifiers);
            let mut own = rows
                .filter(|row| row.name == rule.name && is_lossy(row))
                .peekable();
            own.peek()?;
            let away = own.filter_map(|row| row.own.as_ref()?.total_variation_max);
            Some(match away.fold(0.0, f64::max) {
                0.0 => format!("{} (it accepts more than α*)", rule.name),
                away @ ..0.005 => format!("{} (total variation up to {away:.1e})", rule.name),
                away => format!("{} (total variation up to {away:.2})", rule.name),
            })
        })
        .collect();
    names.dedup();
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!(
            "Not lossless {verb} {}: what is put out does not follow the target's own distribution. \
             α* is no limit of what such a rule accepts.",
            listed(&names)
        )
    })
}

/// Adds what the caller says of a rule or a law behind its name.
fn described(mut of: String, digest: Option<&str>, words: &str) -> String {
    if let Some(digest) = digest {
        of.push_str(&format!(", digest {digest}"));
    }
    if !words.is_empty() {
        of.push_str(&format!(": {words}"));
    }
    of
}

/// The rules, in every cell.
pub(super) fn section(report: &GapReport) -> Option<Section> {
    let columns = head(
        "rule | drafts | #accepts | #its draws leave | #by its own account | \
         #law off p (TV), at most | lossless",
    );
    let mut table = Table::new("own-rules", "Rules of the caller's own", columns);
    each_cell(report, &mut table, None, |cell| {
        let rows = cell.verifiers.iter().filter_map(|row| {
            let own = row.own.as_ref()?;
            let how = of_row(row);
            let away = own.total_variation_max;
            let verdict = match (is_lossy(row), is_lossless(row)) {
                (true, _) => "NO",
                (_, true) => "yes",
                (_, false) => "not said",
            };
            let noise =
                |noise: f64| Entry::titled(format!("± {:.2}", 100.0 * noise), noise.to_string());
            Some(row![
                &row.name,
                &cell.scheme,
                entry(&row.acceptance, &how),
                own.noise.map(noise),
                own.algorithmic
                    .as_ref()
                    .map(|estimate| entry(estimate, &how)),
                away.map(|away| Entry::titled(at_most(away), away.to_string())),
                Entry::plain(verdict).bold(verdict == "NO"),
            ])
        });
        rows.collect()
    });
    if table.is_empty() {
        return None;
    }
    let of = report.own_rules.iter().map(|rule| {
        let of = format!("{}, for {} drafts", rule.name, rule.scheme);
        described(of, rule.digest.as_deref(), &rule.words)
    });
    let section = section_of(
        "own-rules | Rules of your own | Which rules are in no table of specgap, and whether they are \
         lossless here.",
        [Block::List(of.collect())],
    );
    Some(section.with([table.note(
        "Accepts: the output is one of the drafts. Its draws leave: of a rule that was drawn, half the \
         95% interval that another seed would change, which the interval beside holds. By its own account: the rule says that it accepts \
         a draft. TV: half the sum over tokens of |law of the output − p|, the largest of any \
         position, in double precision. Nothing of these rules is known but what they say of \
         themselves at each position.",
    )]))
}

/// The draft laws of the caller's own, and how their optima are known.
pub(super) fn laws(report: &GapReport) -> Option<Section> {
    let columns = head("drafts | #α* | known");
    let mut table = Table::new("own-laws", "Draft laws of the caller's own", columns);
    let mut is_between = false;
    each_cell(report, &mut table, None, |cell| {
        if !report.own_laws.iter().any(|law| law.name == cell.scheme) {
            return Vec::new();
        }
        let best = &cell.optimal_acceptance_rate;
        let how = exactness(best.kind, best.width_max);
        is_between |= best.estimate.between.is_some();
        let known = match best.estimate.between {
            Some(_) => "between bounds that do not meet",
            None => how.as_str(),
        };
        vec![row![&cell.scheme, entry(&best.estimate, &how), known]]
    });
    if report.own_laws.is_empty() {
        return None;
    }
    let of = report.own_laws.iter().map(|law| {
        let made = match &law.made {
            Some(made) => format!(", made as {made}"),
            None => ", which can only be drawn from: nothing limits its α*".to_owned(),
        };
        let of = format!("{}{made}", law.name);
        described(of, law.digest.as_deref(), &law.words)
    });
    let mut table = table.note(
        "α*: 1 + the least P(H) − Q(H) over sets H of tokens, by the fastest method that is proved to find \
         it at a position.",
    );
    table.notes.extend(is_between.then(|| BETWEEN.to_owned()));
    let section = section_of(
        "own-laws | Draft laws of your own | Which laws are in no table of specgap, and how their optima \
         are known.",
        [Block::List(of.collect())],
    );
    Some(section.with(if_any(table)))
}
