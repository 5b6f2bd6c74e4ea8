//! Bounds on the overlap, on what rejection leaves, and on how often a token drawn from p is
//! among the drafts, on rows that list some tokens only.

use super::{Answer, CutQuestion, CutRow, RowError, Unlisted};

impl CutRow<'_> {
    /// On the sum of min(p, q). Tight where both rows list the same tokens, and where the
    /// masses of the rest are known.
    pub fn overlap(&self) -> [f64; 2] {
        let [target, draft] = self.unlisted;
        let least = |token: &super::Token| {
            let [p, q] = token.least();
            p.min(q)
        };
        let lower = self.tokens.iter().map(least).sum();
        let most = |token: &super::Token| token.both().map_or(0.0, |[p, q]| p.min(q));
        let of_both: f64 = self.tokens.iter().map(most).sum();
        // What is listed once can meet the rest of the other row, each with its own.
        let (mut of_target, mut of_draft) = (0.0, 0.0);
        for token in self.tokens {
            match (token.target, token.draft) {
                (Some([_, p]), None) => of_target += p.min(draft.most()),
                (None, Some([_, q])) => of_draft += q.min(target.most()),
                _ => {}
            }
        }
        let [a, b] = [target.mass[1], draft.mass[1]];
        let (of_target, of_draft) = (f64::min(b, of_target), f64::min(a, of_draft));
        let upper = of_both + of_target + of_draft + (b - of_target).min(a - of_draft);
        if self.is_alike {
            [lower, upper.min(self.overlap_of_alike())]
        } else {
            [lower, upper]
        }
    }

    /// The most that the overlap is, over all masses of the rest between their bounds: it
    /// rises with either while that is the smaller one, and with both if they are equal.
    fn overlap_of_alike(&self) -> f64 {
        let [target, draft] = self.unlisted;
        let common = target.mass[1].min(draft.mass[1]);
        let at = |one: &Unlisted| common.max(one.mass[0]);
        let (a, b) = (at(&target), at(&draft));
        // `both` has the most of a token, at the least mass of the rest.
        let scale = |rest: f64, one: &Unlisted| match 1.0 - one.mass[0] {
            0.0 => 0.0,
            listed => (1.0 - rest) / listed,
        };
        let (of_p, of_q) = (scale(a, &target), scale(b, &draft));
        let pairs = self.tokens.iter().filter_map(|token| token.both());
        let listed: f64 = pairs.map(|[p, q]| (p * of_p).min(q * of_q)).sum();
        listed + a.min(b)
    }

    /// Bounds a rule with a rate that rises with p and q of every token, and is largest where all
    /// tokens of the rest are one: tight where both rows list the same tokens and the masses of the
    /// rest are known. `reach` bounds P(a token of draft mass q is drafted), or by how much more it
    /// lets be accepted.
    pub fn rising_rule(
        &mut self,
        drafts: usize,
        answer: Answer,
        reach: impl Fn(f64) -> f64,
    ) -> Result<[f64; 2], RowError> {
        let more = self.more(reach);
        self.rises(drafts, answer, more)
    }

    /// On M(L) = sum of (p - L q)+: the least if the rest is one token, and the most if the
    /// rest of p and that of q are apart.
    pub fn residual_mass(&mut self, factor: f64) -> [f64; 2] {
        [self.least_left(factor), self.sure.residual_mass(factor)]
    }

    fn least_left(&self, factor: f64) -> f64 {
        let [target, draft] = self.unlisted;
        // Sums over the tokens of A, and over those that the target lists alone.
        let (mut left, mut p_of_both, mut q_of_both) = (0.0, 0.0, 0.0);
        let (mut each, mut together, mut of_draft) = (0.0, 0.0, 0usize);
        for token in self.tokens {
            match (token.target, token.draft) {
                (Some([p, p_most]), Some([q, q_most])) => {
                    left += (p - factor * q_most).max(0.0);
                    p_of_both += p_most;
                    q_of_both += q;
                }
                (Some([p, _]), None) => {
                    each += (p - factor * draft.most()).max(0.0);
                    together += p;
                }
                _ => of_draft += 1,
            }
        }
        let rest = target.mass[0] - target.mass[0].min(of_draft as f64 * target.most());
        let together = together + rest - factor * draft.mass[1];
        let merged = (1.0 - p_of_both) - factor * (1.0 - q_of_both);
        left + f64::max(each, together.max(merged))
    }

    /// Bounds the hits of independent draws: sum of p (1 - (1-q)^n). Tight.
    pub fn hits_iid(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let reach = Self::drafted_iid(ask.drafts);
        self.rising_rule(ask.drafts, |row, n| Ok(row.hits_iid(n)), reach)
    }

    /// Bounds the hits of sequential draws: a listed token is drafted least where the rest is many
    /// tokens, most where it is one.
    pub fn hits_sequential(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let more = self.more(self.drafted_in_turn(drafts));
        let [lower, upper] = self.rises(drafts, |row, n| Ok(row.hits_sequential(n)), more)?;
        Ok([lower - self.meeting(drafts, 1) * self.spare, upper])
    }

    /// Bounds what is kept where drafts and output have one noise, by its rate on full rows: an output
    /// of A least if the rest of p and that of q are apart and q of it is many tokens, most if the
    /// rest is one token.
    pub fn one_noise(&mut self, ask: CutQuestion, rate: Answer) -> Result<[f64; 2], RowError> {
        let met = self.meeting(ask.drafts, 0) * self.spare;
        let more = self.more(self.drafted_in_turn(ask.drafts));
        self.of_noise(ask, rate, met, more)
    }

    /// The same where every draft has a noise of its own, and the output all of them: however many
    /// tokens q of the rest is, apart from p it comes as early.
    pub fn several_noises(&mut self, ask: CutQuestion, rate: Answer) -> Result<[f64; 2], RowError> {
        let more = self.more(Self::drafted_iid(ask.drafts));
        self.of_noise(ask, rate, 0.0, more)
    }

    fn of_noise(
        &mut self,
        ask: CutQuestion,
        rate: Answer,
        met: f64,
        more: f64,
    ) -> Result<[f64; 2], RowError> {
        let drafts = ask.drafts;
        let split = rate(&mut self.sure, drafts)?.lower() - met;
        // One draft is kept with at least (1-TV)/(1+TV), and several no less.
        let lower = split.max(ask.overlap[0] / (2.0 - ask.overlap[0]));
        let upper = match &mut self.merged {
            Some(merged) => rate(merged, drafts)?.upper() + more,
            None => 1.0,
        };
        Ok([lower, upper])
    }

    /// Bounds recursive rejection sampling, which accepts 1 - M(L_n) with L_(k+1) = L_k + M(L_k): L
    /// grows with M, and M falls in L. On drafts without replacement it accepts no less, since L
    /// grows by more.
    pub fn rejected_in_turn(&mut self, drafts: usize) -> [f64; 2] {
        let (mut least, mut most) = (0.0, 0.0);
        let (mut least_left, mut most_left) = (1.0, 1.0);
        for _ in 0..drafts {
            least += least_left;
            most += most_left;
            least_left = self.residual_mass(least)[0];
            most_left = self.residual_mass(most)[1];
        }
        let [_, left] = self.residual_mass(least);
        let [left_at_most, _] = self.residual_mass(most);
        [1.0 - left, 1.0 - left_at_most]
    }
}
