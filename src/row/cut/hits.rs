//! Bounds on how often a token drawn from p is among the drafts, on rows that list some
//! tokens only.

use super::{CutQuestion, CutRow, REST_ENTRIES, ScanError};

impl CutRow<'_> {
    /// Of independent draws: sum of p (1 - (1-q)^n), of which listed tokens' part is known.
    pub fn hits_iid(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], ScanError> {
        let (a, b, n) = (self.target_rest, self.draft_rest, ask.drafts as f64);
        let drafted = |q: f64| -(n * (-q).ln_1p()).exp_m1();
        let spread = a * drafted(b / REST_ENTRIES as f64);
        Ok([
            ask.on_even[0] - spread,
            ask.on_even[1] - spread + a * drafted(b.min(1.0)),
        ])
    }

    /// Of sequential draws: a listed token is drafted least where the rest is many tokens,
    /// most where it is one.
    pub fn hits_sequential(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], ScanError> {
        let (a, even) = (self.target_rest, ask.on_even);
        let met = self.meeting(ask.drafts, 1);
        let lower = even[0] - a - met / REST_ENTRIES as f64;
        Ok([lower, even[1] + a + met])
    }
}
