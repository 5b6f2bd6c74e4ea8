//! Bounds on alpha* of rows that list some tokens only, one a draft law.
//!
//! One draw from q is one draw from q, whatever its law.

use super::{CUT_ROUNDING, CutQuestion, CutRow, REST_ENTRIES, RowError};

impl CutRow<'_> {
    /// Of independent draws: merging tokens cannot lower alpha*, splitting them cannot raise
    /// it; the even completion has the alpha* of one merged token.
    pub fn optimum_iid(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let (drafts, even) = (ask.drafts, ask.on_even);
        if drafts == 1 {
            return Ok(self.overlap(even));
        }
        let lower = self.disjoint.with_replacement(drafts)?.rate.lower();
        Ok([lower, even[1]])
    }

    /// Of sequential draws: P of drafts inside a set that holds the rest only rises as the
    /// rest is split, from one token to infinitely many, by no more than P of their meeting.
    /// And drafts that differ cover no less than independent ones.
    pub fn optimum_sequential(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let (drafts, even, a) = (ask.drafts, ask.on_even, self.target_rest);
        if drafts == 1 {
            return Ok(self.overlap(even));
        }
        let independent = self.disjoint.with_replacement(drafts)?.rate.lower();
        let met = self.meeting(drafts, 0);
        let lower = even[0] - a - met / REST_ENTRIES as f64;
        Ok([lower.max(independent), even[1] + a + met])
    }

    /// Of independent draws that all differ: as of sequential ones, with their own P of a
    /// meeting.
    pub fn optimum_distinct(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let (drafts, even, a) = (ask.drafts, ask.on_even, self.target_rest);
        if drafts == 1 {
            return Ok(self.overlap(even));
        }
        let merged = self.disjoint.distinct_conditioned(drafts)?;
        let upper = merged.rate.upper() + a;
        Ok([even[0] - a - self.meeting_of_distinct(drafts), upper])
    }

    /// Where the n-1 heaviest tokens of q are drafts anyway: p(top) + sum over the others of
    /// min(p, q/(1-q(top))).
    pub fn optimum_with_fixed(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let (fixed, even) = (ask.drafts.saturating_sub(1), ask.on_even);
        let (a, b) = (self.target_rest, self.draft_rest);
        let Some(last) = fixed.checked_sub(1) else {
            return Ok(self.overlap(even));
        };
        let others = self.without(fixed);
        // Fewer can be drawn: unlisted ones are among the top.
        let least = (self.heaviest.get(last)).map_or(0.0, |&token| self.draft[token]);
        if b < least {
            // No unlisted token is among the top.
            return Ok([even[0] - a.min(b / (others + b)), even[1]]);
        }
        // The top has q between that of the listed top and b more.
        let (mut lower, mut upper) = (0.0, a);
        for (&p, &q) in self.target.iter().zip(self.draft) {
            lower += p.min(q / (others + b));
            upper += if q >= least { p } else { p.min(q / others) };
        }
        Ok([lower, upper])
    }

    /// p of the n tokens of largest q, of which unlisted ones may be some. Which of equal
    /// ones are drafted is left open.
    pub fn top_mass(&mut self, ask: CutQuestion<'_, '_>) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let last = drafts.checked_sub(1).and_then(|k| self.heaviest.get(k));
        let least = last.map_or(0.0, |&token| self.draft[token]);
        let held = |belongs: &dyn Fn(f64) -> bool| -> f64 {
            let listed = self.target.iter().zip(self.draft);
            listed.filter(|(_, q)| belongs(**q)).map(|(p, _)| p).sum()
        };
        let most = held(&|q| q >= least);
        if least > self.draft_rest {
            // No unlisted token is among the top.
            let drafted = self.draft.iter().filter(|&&q| q >= least).count();
            let sure = if drafted == drafts {
                most
            } else {
                held(&|q| q > least)
            };
            return Ok([sure, most]);
        }
        Ok([held(&|q| q > self.draft_rest), most + self.target_rest])
    }

    /// The meeting of independent draws given that all differ: its P is at most that without
    /// the condition, over the probability of the condition.
    fn meeting_of_distinct(&self, drafts: usize) -> f64 {
        let (b, entries) = (self.draft_rest, REST_ENTRIES as f64);
        if b <= 0.0 {
            return 0.0;
        }
        // n! e_n of the listed tokens and one of mass b: P(all differ), at least.
        let mut differ = vec![0.0; drafts + 1];
        differ[0] = 1.0;
        for &q in self.draft.iter().chain([&b]) {
            for k in (1..=drafts).rev() {
                differ[k] += k as f64 * q * differ[k - 1];
            }
        }
        let met = pairs(drafts) * b * b / (entries * differ[drafts] * (1.0 - CUT_ROUNDING));
        let all: f64 = (0..drafts).map(|k| 1.0 - k as f64 / entries).product();
        met.min(1.0 - all)
    }
}

/// n (n-1) / 2.
fn pairs(drafts: usize) -> f64 {
    (drafts * (drafts - 1)) as f64 * 0.5
}
