//! What a sampler keeps of rows, in words.

use crate::sampling::Cuts;

/// What is cut of rows, behind a comma; nothing if nothing is.
pub(in crate::report) fn served(kept: Option<Cuts>) -> String {
    kept.map_or_else(String::new, |kept| format!(", as served: {}", cuts(kept)))
}

/// What is kept of a row: `top-k 40, top-p 0.95`.
pub(in crate::report) fn cuts(kept: Cuts) -> String {
    kept.in_words()
}
