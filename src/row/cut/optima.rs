//! Bounds on alpha* of rows that list some tokens only, one a draft law.
//!
//! Sets that hold all of the rest, or nothing of it, are sets of every completion. The upper
//! bounds look at these alone; the lower ones let the rest of q into any set for nothing.

use super::{CUT_ROUNDING, CutQuestion, CutRow, RowError};

impl CutRow<'_> {
    /// Of independent draws: tight.
    pub fn optimum_iid(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let more = self.more(Self::drafted_iid(drafts));
        self.rises(drafts, |row, n| Ok(row.with_replacement(n)?.rate), more)
    }

    /// Of sequential draws: P of drafts inside a set that holds the rest only rises as the
    /// rest is split into more tokens, and most if they are equal.
    pub fn optimum_sequential(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let more = self.more(self.drafted_in_turn(drafts));
        let [lower, upper] =
            self.rises(drafts, |row, n| Ok(row.without_replacement(n)?.rate), more)?;
        // Drafts that differ cover no less than independent ones.
        let independent = self.sure.with_replacement(drafts)?.rate.lower();
        let split = lower - self.meeting(drafts, 0) * self.spare;
        Ok([split.max(independent), upper])
    }

    /// Of independent draws that all differ: below as of sequential ones; above by sets that
    /// hold all tokens outside A, for which the rest is best one token.
    pub fn optimum_distinct(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let split = self.sure.distinct_conditioned(drafts)?.rate.lower();
        let merged = self.likely.distinct_conditioned(drafts)?.rate.upper();
        let of_both = self.tokens.iter().filter(|token| token.both().is_some());
        let listed: f64 = of_both.map(|token| token.least()[0]).sum();
        let lower = split - self.meeting_of_distinct(drafts);
        if drafts == 1 {
            return Ok([lower.max(ask.overlap[0]), ask.overlap[1]]);
        }
        Ok([lower, merged + (1.0 - listed)])
    }

    /// The meeting of independent draws given that all differ, where the rest is fewer tokens
    /// than there are: its P is at most that without the condition, over the probability of
    /// the condition.
    fn meeting_of_distinct(&self, drafts: usize) -> f64 {
        let b = self.unlisted[1].mass[1];
        if b <= 0.0 || self.spare == 0.0 || drafts < 2 {
            return 0.0;
        }
        // n! e_n of the listed tokens and one of mass b: P(all differ), at least.
        let mut differ = vec![0.0; drafts + 1];
        differ[0] = 1.0;
        let listed = self.tokens.iter().map(|token| token.least()[1]);
        for q in listed.chain([b]) {
            for k in (1..=drafts).rev() {
                differ[k] += k as f64 * q * differ[k - 1];
            }
        }
        let n = drafts as f64;
        let pairs = 0.5 * n * (n - 1.0);
        let met = pairs * b * b * self.spare / (differ[drafts] * (1.0 - CUT_ROUNDING));
        let all: f64 = (0..drafts).map(|k| 1.0 - k as f64 * self.spare).product();
        met.min(1.0 - all)
    }
}
