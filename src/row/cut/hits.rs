//! Bounds on how often a token drawn from p is among the drafts, on rows that list some
//! tokens only.

use super::{CutQuestion, CutRow, REST_ENTRIES, RowError};

impl CutRow<'_> {
    /// Of independent draws: sum of p (1 - (1-q)^n), of which listed tokens' part is known.
    pub fn hits_iid(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
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
    pub fn hits_sequential(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let (a, even) = (self.target_rest, ask.on_even);
        let met = self.meeting(ask.drafts, 1);
        let lower = even[0] - a - met / REST_ENTRIES as f64;
        Ok([lower, even[1] + a + met])
    }

    /// Of the heaviest tokens of q and one draw from the others: p(top) + sum over the
    /// others of p q/(1-q(top)), of which the unlisted tokens' part is at most
    /// a b/(1-q(top)).
    pub fn hits_with_fixed(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let (fixed, even) = (ask.drafts.saturating_sub(1), ask.on_even);
        let (a, b) = (self.target_rest, self.draft_rest);
        let outside = self.without(fixed) + b;
        let least = match fixed.checked_sub(1) {
            None => f64::INFINITY,
            Some(last) => (self.heaviest.get(last)).map_or(0.0, |&token| self.draft[token]),
        };
        if b < least {
            // No unlisted token is among the top.
            let drawn = a * (b / outside);
            return Ok([even[0] - drawn / REST_ENTRIES as f64, even[1] + drawn]);
        }
        // A top of unlisted tokens too has no less of q, so that the last draw hits any
        // other token no less often; and listed tokens above b stay in it.
        let mut lower = 0.0;
        for (token, (&p, &q)) in self.target.iter().zip(self.draft).enumerate() {
            let stays = q > b && self.heaviest.iter().take(fixed).any(|&one| one == token);
            lower += p * if stays { 1.0 } else { (q / outside).min(1.0) };
        }
        Ok([lower, 1.0])
    }
}
