//! What all results have in common.

/// What was found about a problem, which is its own JSON.
pub trait Evaluated: serde::Serialize {
    /// Lists what disagrees with a proof, a second computation or the problem file, in words; empty
    /// if all is well.
    fn complaints(&self) -> Vec<String>;

    /// Tells whether everything that was checked agrees.
    fn is_ok(&self) -> bool {
        self.complaints().is_empty()
    }
}
