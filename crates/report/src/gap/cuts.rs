//! What a sampler keeps of rows, in words.

use specgap_sampling::Cuts;

/// Says what is cut of rows, behind a comma; nothing if nothing is.
pub(crate) fn served(kept: Option<Cuts>, temperatures: &[f64]) -> String {
    kept.map_or_else(String::new, |kept| {
        format!(", as served: {}", kept.in_words(temperatures))
    })
}
