//! What reports on replayed text say alike.

use super::length::numbers::decimals;
use super::text::{counted, temperature};
use crate::text::TextLog;

/// Prompts below which an interval is rough.
pub(super) const FEW: usize = 10;

/// A z that text drawn from its rows hardly has.
const SURPRISING: f64 = 4.0;

/// How much text of which models.
pub(super) fn subtitle(logs: &[TextLog], positions: usize, clusters: usize, at: f64) -> String {
    let mut parts = vec![format!(
        "{} of {}, temperature {}",
        counted(positions, "position"),
        counted(clusters, "prompt"),
        temperature(at)
    )];
    for log in logs {
        if let (Some(target), Some(draft)) = (&log.metadata.target, &log.metadata.draft) {
            let pair = format!("target {}, draft {}", target.name, draft.name);
            if !parts.contains(&pair) {
                parts.push(pair);
            }
        }
    }
    parts.join(" · ")
}

/// A caution where prompts are few; half of them choose `what`.
pub(super) fn few_prompts(clusters: usize, what: &str) -> Option<String> {
    match clusters {
        0 | 1 => Some("There is one prompt only, so that no interval can be given.".to_owned()),
        few if few < 2 * FEW => Some(format!(
            "There are {few} prompts, half of which choose a {what} and half report on it. An \
             interval from fewer than {FEW} is rough: its true level may be far from 95%."
        )),
        _ => None,
    }
}

/// A caution where the text hardly comes from its rows; z is that of its surprise.
pub(super) fn surprise(z: f64) -> Option<String> {
    (z.abs() > SURPRISING).then(|| {
        format!(
            "The text does not look drawn from these rows: its surprise is {} standard errors off \
             (z = {z:.1}). Text of another temperature, of another model or of a person makes every \
             number here wrong.",
            decimals(z.abs(), 1)
        )
    })
}
