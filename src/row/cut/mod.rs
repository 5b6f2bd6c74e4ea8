//! Rows that list only some tokens: what the others can change.
//!
//! Such a row lists tokens L with their p and q, and the masses a of the target and b of the
//! draft outside them. The full row is one of many completions. For each number of a report
//! there are bounds that hold its value under every completion; `docs/truncated-rows.md`
//! has the proofs. Laws and verifiers name theirs in their entries.
//!
//! Two completions do most of the work. In the *even* one, 64 tokens share a and b: the
//! row that the report's values are of. In the *disjoint* one, one token has p = a, q = 0
//! and one has p = 0, q = b: nothing of the rest can be accepted.

mod hits;
mod optima;

use super::scan::{Row, RowError, Rows, Workspace};
use crate::distribution::heaviest;

/// Entries that stand for all tokens that a row does not list.
///
/// They share the rest's mass evenly, in both rows: one way to complete the row. What
/// any other way can change is [`CutRow`]'s to say. Several entries keep two drafts
/// from the rest from being one token.
pub(crate) const REST_ENTRIES: usize = 64;

/// Bounds are widened by this, which is more than any rate is off by rounding.
pub const CUT_ROUNDING: f64 = 1e-11;

/// Adds the rest to a row of listed tokens: the even completion.
pub(crate) fn complete_evenly(row: &mut Vec<f64>, rest: f64) {
    row.extend(std::iter::repeat_n(
        rest / REST_ENTRIES as f64,
        REST_ENTRIES,
    ));
}

/// Bounds [lower, upper] on a number of the full row, but for [`CUT_ROUNDING`].
pub type CutAnswer = fn(&mut CutRow<'_>, CutQuestion<'_, '_>) -> Result<[f64; 2], RowError>;

/// What is asked of a cut row, and what is known.
#[derive(Debug)]
pub struct CutQuestion<'q, 'r> {
    /// n.
    pub drafts: usize,
    /// The even completion.
    pub even: &'q mut Row<'r>,
    /// Bounds on the number in question on the even completion.
    pub on_even: [f64; 2],
    /// Bounds on the full row's sum of min(p, q).
    pub overlap: [f64; 2],
}

/// Room for the disjoint completion of one cut row after another.
#[derive(Debug, Default)]
pub struct CutWorkspace {
    target: Vec<f64>,
    draft: Vec<f64>,
    scan: Workspace,
}

/// A row of listed tokens, and what is known of the others.
#[derive(Debug)]
pub struct CutRow<'a> {
    disjoint: Row<'a>,
    target: &'a [f64],
    draft: &'a [f64],
    /// a.
    target_rest: f64,
    /// b.
    draft_rest: f64,
    /// The listed tokens of largest q, by falling q.
    heaviest: Vec<usize>,
    /// q of the listed tokens but the k heaviest, for k from 0: sums, so that nothing
    /// cancels.
    without: Vec<f64>,
}

impl CutWorkspace {
    /// For listed tokens' p and q, which sum to 1 - a and 1 - b; `None` if nothing is
    /// missing.
    ///
    /// # Errors
    /// As [`Workspace::load`] on the disjoint completion.
    pub fn load<'a>(
        &'a mut self,
        rows: Rows<'_>,
        [target_rest, draft_rest]: [f64; 2],
        most_drafts: usize,
    ) -> Result<Option<CutRow<'a>>, RowError> {
        if target_rest <= 0.0 && draft_rest <= 0.0 {
            return Ok(None);
        }
        for (row, listed, rest) in [
            (&mut self.target, rows.target, [target_rest, 0.0]),
            (&mut self.draft, rows.draft, [0.0, draft_rest]),
        ] {
            row.clear();
            row.extend(listed);
            row.extend(rest);
        }
        let (target, draft) = (&*self.target, &*self.draft);
        let disjoint = self.scan.load(Rows { target, draft }, most_drafts)?;
        let listed = rows.draft.len();
        let (target, draft) = (&target[..listed], &draft[..listed]);
        let heaviest = heaviest(draft, most_drafts);
        let others = draft.iter().enumerate();
        let others = others.filter(|(token, _)| !heaviest.contains(token));
        let mut without = vec![others.map(|(_, &q)| q).sum::<f64>()];
        for &token in heaviest.iter().rev() {
            without.push(without[without.len() - 1] + draft[token]);
        }
        without.reverse();
        Ok(Some(CutRow {
            disjoint,
            target,
            draft,
            target_rest,
            draft_rest,
            heaviest,
            without,
        }))
    }
}

impl<'a> CutRow<'a> {
    /// The disjoint completion.
    pub fn disjoint(&mut self) -> &mut Row<'a> {
        &mut self.disjoint
    }

    /// The masses a and b of the target and of the draft that are not listed.
    pub fn rests(&self) -> [f64; 2] {
        [self.target_rest, self.draft_rest]
    }

    /// Bounds on the full row's sum of min(p, q), given those on the even completion's.
    ///
    /// Listed tokens' part is known; the others' is between 0 and min(a, b), which the even
    /// completion reaches.
    pub fn overlap(&self, even: [f64; 2]) -> [f64; 2] {
        let most = self.target_rest.min(self.draft_rest);
        [even[0] - most, even[1]]
    }

    /// The mean number of pairs among n sequential drafts that are both from the rest, at
    /// most, `gone` more listed tokens being out: the probability of any event is off by no
    /// more where one token stands for all of the rest, and by a 64th of that where 64 do.
    ///
    /// Draw j is from the rest with probability at most c(j-1) = b / (b + q of the listed
    /// tokens but the j-1 heaviest), and c(j-2) if an earlier one was.
    fn meeting(&self, drafts: usize, gone: usize) -> f64 {
        let b = self.draft_rest;
        if b <= 0.0 {
            return 0.0;
        }
        let one = |drawn: usize| b / (b + self.without(drawn + gone));
        let mut sum = 0.0;
        let mut earlier = 0.0;
        for draw in 2..=drafts {
            earlier += one(draw - 2);
            sum += earlier * one(draw - 2);
        }
        sum
    }

    /// q of the listed tokens but the heaviest ones.
    fn without(&self, heaviest: usize) -> f64 {
        let last = self.without.len() - 1;
        self.without[heaviest.min(last)]
    }
}
