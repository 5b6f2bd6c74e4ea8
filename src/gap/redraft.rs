//! The draft's row at a temperature of its own, and cut.
//!
//! A list of the draft's most probable tokens tells its k most probable ones, if it lists so
//! many, and the fewest with a given mass, if the list has that mass: such a row is known as
//! well as a full one. Where the list does not tell them, that is said, and nothing is measured.

use super::lists::{Lists, probabilities};
use super::metric::DraftRule;
use crate::distribution::Softmax;
use crate::log::{Row, RowKind};
use crate::row::Unlisted;

/// Fills `out` with the draft's row: shares of the listed tokens, which are all that can be
/// drawn if the row is cut. Logged rows are raw logits over `applied`. Gives what is known of the others.
pub(super) fn draft_row(
    lists: Option<&Lists>,
    applied: f64,
    row: &Row,
    rule: DraftRule,
    logits: &mut Vec<f64>,
    out: &mut Vec<f64>,
) -> Result<Unlisted, String> {
    let degrees = rule.temperature.0;
    let top_p = rule.top_p.map(|p| p.0).filter(|&p| p < 1.0);
    let is_cut = rule.top_k.is_some() || top_p.is_some();
    let softmax = Softmax {
        temperature: degrees / applied,
        top_k: rule.top_k,
        // Of a list the mass of the tokens that are not listed counts, unless they are cut.
        top_p: top_p.filter(|_| lists.is_none() || rule.top_k.is_some()),
    };
    let filled = match (row.draft_kind, is_cut) {
        // Cut as logarithms, which is the same.
        (RowKind::Probabilities, true) => {
            let logs: Vec<f64> = row.draft.iter().map(|x| x.ln()).collect();
            probabilities(&logs, RowKind::Logits, &softmax, logits, out)
        }
        (kind, _) => probabilities(&row.draft, kind, &softmax, logits, out),
    };
    filled.map_err(|error| format!("draft: {error}"))?;
    let Some(lists) = lists else {
        return Ok(Unlisted::NONE);
    };
    let own = row.draft.iter().filter(|x| !x.is_nan()).count();
    let top = lists.draft_top(own, own == row.draft.len());
    let [_, unlisted] = lists.unlisted(row, degrees);
    if let Some(k) = rule.top_k.filter(|&k| k > top && own < lists.vocabulary()) {
        return Err(format!(
            "lists the {top} most probable tokens of the draft, fewer than --draft-top-k {k}; \
             give at most {top}, or capture with a larger --top"
        ));
    }
    if !is_cut {
        return Ok(unlisted);
    }
    if let (None, Some(p)) = (rule.top_k, top_p) {
        nucleus(out, p, unlisted.mass, top, degrees)?;
    }
    // What the draft does not list cannot be drawn any more.
    for share in out.iter_mut().filter(|share| share.is_nan()) {
        *share = 0.0;
    }
    Ok(Unlisted::NONE)
}

/// Keeps the fewest most probable tokens that have a mass of p, as shares of it. The row lacks
/// a mass between bounds; its `top` largest shares are of the most probable tokens of all.
fn nucleus(shares: &mut [f64], p: f64, rest: [f64; 2], top: usize, at: f64) -> Result<(), String> {
    let mut order: Vec<usize> = (0..shares.len()).filter(|&i| !shares[i].is_nan()).collect();
    // As `Softmax` does: of equal ones those with smaller places first.
    order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
    // Shares are of the listed mass.
    let wanted = rest.map(|rest| p / (1.0 - rest).max(f64::MIN_POSITIVE));
    let count = |wanted: f64| {
        let mut sum = 0.0;
        let enough = order.iter().position(|&i| {
            sum += shares[i];
            sum >= wanted
        });
        enough.map(|last| last + 1).filter(|&count| count <= top)
    };
    let [few, many] = wanted.map(count);
    let kept = match (few, many) {
        (Some(few), Some(many)) if few == many => few,
        (_, None) => {
            return Err(format!(
                "the draft's listed tokens do not tell which have a mass of --draft-top-p {p} at \
                 temperature {at}: they may lack {:.6}; give a smaller mass, or capture with a \
                 larger --top",
                rest[1]
            ));
        }
        _ => {
            return Err(format!(
                "the mass that the draft does not list at temperature {at} is between {:.6} and \
                 {:.6}, which does not tell the tokens of --draft-top-p {p}; capture with this \
                 temperature among --rest-temperatures, or give one of them",
                rest[0], rest[1]
            ));
        }
    };
    let mass: f64 = order.iter().take(kept).map(|&i| shares[i]).sum();
    for (place, &i) in order.iter().enumerate() {
        shares[i] = if place < kept { shares[i] / mass } else { 0.0 };
    }
    Ok(())
}
