//! Bounds on alpha* of rows that list some tokens only, one a draft law.
//!
//! Sets that hold all of the rest, or nothing of it, are sets of every completion. The upper
//! bounds look at these alone; the lower ones let the rest of q into any set for nothing.

use super::{CUT_ROUNDING, CutQuestion, CutRow, RowError, Token};

/// Whose row does not list a token that counts.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    No,
    Target,
    Draft,
}

impl CutRow<'_> {
    /// Bounds alpha* of independent draws: tight where both rows list the same tokens and the
    /// masses of the rest are known.
    pub fn optimum_iid(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let more = self.more(Self::drafted_iid(drafts));
        let [lower, upper] =
            self.rises(drafts, |row, n| Ok(row.with_replacement(n)?.rate), more)?;
        if self.is_merged_attained() {
            return Ok([lower, upper]);
        }
        let with = self.least_of_sets(drafts, true);
        let without = self.least_of_sets(drafts, false);
        Ok([lower, upper.min(with).min(without)])
    }

    /// The least of 1 + P(H) - q(H)^n over some sets H, of each the most over all
    /// completions: sets that hold what neither row lists, or sets that do not. Sets are
    /// taken along falling q/p, as each token would count.
    fn least_of_sets(&self, drafts: usize, with_rest: bool) -> f64 {
        let [target, draft] = self.unlisted;
        // p of a token, and bounds on q, that it adds if it is in H.
        let counts = |token: &Token| match (token.target, token.draft, with_rest) {
            (Some(p), Some(q), true) => Some((p[0], q, Open::No)),
            (Some(p), Some(q), false) => Some((p[1], q, Open::No)),
            // q of the rest may be where H is not.
            (Some(p), None, true) => Some((p[0], [0.0, draft.most()], Open::Draft)),
            (Some(_), None, false) => None,
            // p of the rest is in H anyway, or may be on these tokens.
            (None, Some(q), true) => Some((0.0, q, Open::No)),
            (None, Some(q), false) => Some((target.most(), q, Open::Target)),
            (None, None, _) => None,
        };
        let mut tokens: Vec<(f64, [f64; 2], Open)> =
            self.tokens.iter().filter_map(counts).collect();
        let ratio = |&(p, q, _): &(f64, [f64; 2], Open)| match p > 0.0 {
            true => q[1] / p,
            false => f64::INFINITY,
        };
        tokens.sort_by(|one, other| ratio(other).total_cmp(&ratio(one)));
        let mut outside = tokens.iter().filter(|one| one.2 == Open::Draft).count();
        let (mut p, mut least_q, mut most_q, mut open) = (0.0, 0.0, 0.0, 0.0);
        let value = |p: f64, [least_q, most_q]: [f64; 2], open: f64, outside: usize| {
            let (p, q) = if with_rest {
                // q of what is listed falls as the rest rises, and with the rest it rises.
                let hidden = outside as f64 * draft.most();
                let q = (most_q + draft.mass[0] - hidden).max(least_q);
                (p + target.mass[1], q)
            } else {
                (p + f64::min(open, target.mass[1]), least_q)
            };
            1.0 + p - q.min(1.0).powf(drafts as f64)
        };
        let mut least = value(p, [least_q, most_q], open, outside);
        for &(more, [low, high], kind) in &tokens {
            if kind == Open::Target {
                open += more;
            } else {
                p += more;
            }
            if kind == Open::Draft {
                outside -= 1;
            } else {
                (least_q, most_q) = (least_q + low, most_q + high);
            }
            least = least.min(value(p, [least_q, most_q], open, outside));
        }
        least
    }

    /// Bounds alpha* of sequential draws: P of drafts inside a set that holds the rest only rises
    /// as the rest is split into more tokens, and most if they are equal.
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

    /// Bounds alpha* of independent draws that all differ: below as of sequential ones; above by
    /// sets that hold all tokens outside A, for which the rest is best one token.
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

#[cfg(test)]
mod tests {
    use super::super::{CutRow, CutWorkspace, Listed, Unlisted};

    /// Rows of the tokens that are given and of others that are not; NaN: not listed.
    fn with_row(
        [target, draft]: [&[f64]; 2],
        rests: [[f64; 2]; 2],
        vocabulary: usize,
        check: impl FnOnce(&mut CutRow<'_>),
    ) {
        let listed = Listed {
            target,
            draft,
            unlisted: rests.map(|mass| Unlisted {
                mass,
                largest: f64::INFINITY,
            }),
            vocabulary,
            missing: target.len(),
        };
        let mut workspace = CutWorkspace::default();
        check(&mut workspace.load(listed, 4).unwrap().unwrap());
    }

    const QUARTER: [f64; 2] = [0.25, 0.25];

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    }

    /// 3/8, 3/8 and a quarter that is 1024 tokens and more.
    #[test]
    fn meetings_of_two_tokens_of_the_rest_by_hand() {
        with_row([&[0.5, 0.5]; 2], [QUARTER; 2], 5000, |row| {
            let spare = 1.0 / 1024.0;
            // 2 e_2 = 2 (9/64 + 3/16): one pair, 1/16 of the time, of the same piece.
            let differ = 2.0 * (9.0 / 64.0 + 3.0 / 16.0) * (1.0 - super::CUT_ROUNDING);
            close(row.meeting_of_distinct(2), 0.0625 * spare / differ);
            // Four of three tokens never differ: all of it may meet.
            let all = (1.0 - spare) * (1.0 - 2.0 * spare) * (1.0 - 3.0 * spare);
            close(row.meeting_of_distinct(4), 1.0 - all);
            // Sequential draws: the rest is 1/4 of all, 2/5 without one token, all without two.
            close(row.meeting(2, 0), 0.0625);
            close(row.meeting(4, 0), 0.0625 + 0.65 * 0.4 + 1.65);
            close(row.meeting(3, 1), 0.16 + 1.4);
        });
    }

    /// The same tokens are listed, and their masses are known.
    #[test]
    fn bounds_of_rows_that_are_alike_by_hand() {
        let rows: [&[f64]; 2] = [&[0.75, 0.25], &[0.25, 0.75]];
        with_row(rows, [[0.5, 0.5], QUARTER], 100, |row| {
            // p = 3/8, 1/8 and q = 3/16, 9/16; the rests share 1/4 at most.
            let [lower, upper] = row.overlap();
            close(lower, 5.0 / 16.0);
            close(upper, 9.0 / 16.0);
            // M(L): p - L q is 3/16 at L = 1, and the rest is 1/2 apart, or 1/4 as one.
            for (factor, least, most) in [
                (0.5, 0.28125 + 0.375, 0.28125 + 0.5),
                (1.0, 0.1875 + 0.25, 0.1875 + 0.5),
                (1.5, 0.09375 + 0.125, 0.09375 + 0.5),
                (3.0, 0.0, 0.5),
            ] {
                let [below, above] = row.residual_mass(factor);
                assert!((below - least).abs() < 1e-15, "{factor}: {below} {least}");
                assert!((above - most).abs() < 1e-15, "{factor}: {above} {most}");
            }
            // One draft: 1 - M(1). Two: L is 1 + M(1).
            let [lower, upper] = row.rejected_in_turn(1);
            close(lower, 1.0 - 0.6875);
            close(upper, 1.0 - 0.4375);
            let [lower, upper] = row.rejected_in_turn(2);
            let at = |row: &mut CutRow<'_>, factor: f64| row.residual_mass(factor);
            close(lower, 1.0 - at(row, 1.4375)[1]);
            close(upper, 1.0 - at(row, 1.6875)[0]);
        });
        // Each row lists a token of its own: what is listed may be in the other's rest.
        let apart: [&[f64]; 2] = [&[0.5, 0.5, f64::NAN], &[0.5, f64::NAN, 0.5]];
        with_row(apart, [QUARTER; 2], 100, |row| {
            // 3/8 of both; 1/4 of each of the others' 3/8.
            let [lower, upper] = row.overlap();
            close(lower, 0.375);
            close(upper, 0.375 + 0.25 + 0.25);
            // The target's token without its share of the draft's rest, and its own rest.
            let [least, most] = row.residual_mass(1.0);
            close(least, 0.125);
            close(most, 0.625);
        });
    }
}
