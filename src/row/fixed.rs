//! Drafts of which all but the last are the heaviest tokens of q.

use super::scan::Row;
use crate::distribution::{compensated_sum, heaviest, split_sum};
use crate::known::Known;
use multiversion::multiversion;

impl Row<'_> {
    /// The `count` most probable tokens of q, falling, the lowest id first among equals;
    /// fewer if there are fewer. O(V) the first time.
    ///
    /// # Example
    /// ```
    /// use specgap::row::{Rows, Workspace};
    /// let rows = Rows { target: &[0.5, 0.25, 0.25], draft: &[0.25, 0.5, 0.25] };
    /// let mut workspace = Workspace::new();
    /// let mut row = workspace.load(rows, 3)?;
    /// assert_eq!(row.heaviest(2), [1, 0]);
    /// assert_eq!(row.top_mass(2).value(), 0.75);
    /// // Token 1 is a draft anyway, and the other tokens are halves of what is left of q.
    /// assert_eq!(row.accepted_with_fixed(1).value(), 1.0);
    /// # Ok::<(), specgap::row::RowError>(())
    /// ```
    pub fn heaviest(&mut self, count: usize) -> &[usize] {
        if self.memo.heaviest.len() < count {
            let most = count.max(self.most_drafts());
            self.memo.heaviest = heaviest(self.rows().draft, most);
        }
        let top = &self.memo.heaviest;
        &top[..count.min(top.len())]
    }

    /// p of the n most probable tokens of q. O(V) the first time.
    pub fn top_mass(&mut self, drafts: usize) -> Known {
        let (p_sum, _) = self.totals();
        let rows = self.rows();
        let top = self.heaviest(drafts);
        let held = compensated_sum(top.iter().map(|&token| rows.target[token]));
        Known::rate_within(held / p_sum, 8.0 * f64::EPSILON)
    }

    /// p(top) + sum over the others of min(p, q/(1-q(top))), the top being the `fixed`
    /// heaviest tokens of q: what a maximal coupling of p with one draw from the others
    /// accepts, the top being drafts anyway. O(V).
    pub fn accepted_with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.totals();
        let star = self.star(fixed);
        let overlap = match star.rest {
            0.0 => 0.0,
            rest => star.sum(|p, q| overlap(p, q, rest, p_sum)),
        };
        Known::rate_within((star.held + overlap) / p_sum, 8.0 * f64::EPSILON)
    }

    /// alpha* where all drafts but the last are fixed tokens: the k most probable ones
    /// of q, the last being drawn from the others.
    ///
    /// By the cut: only sets H that hold the fixed tokens can be left with nothing but
    /// drafts inside, and then `P(H) - Q(H) = p(top) + sum over the other i in H of
    /// p_i - q_i/(1 - q(top))`, smallest where H takes every negative term.
    /// [`Self::accepted_with_fixed`] reaches the same number from the other side.
    pub fn optimum_with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.totals();
        let star = self.star(fixed);
        // Without others, the whole support is drafted.
        let rate = match star.rest {
            0.0 => star.held / p_sum,
            rest => 1.0 + (star.held - star.sum(|p, q| excess(p, q, rest, p_sum))) / p_sum,
        };
        Known::rate_within(rate, 32.0 * f64::EPSILON)
    }

    /// How often a draw from p is among the drafts, all of which but the last are the
    /// `fixed` most probable tokens of q, the last being drawn from the others: p(top) + sum
    /// over the others of p q/(1 - q(top)). O(V).
    pub fn hits_with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.totals();
        let star = self.star(fixed);
        let drawn = match star.rest {
            0.0 => 0.0,
            rest => star.sum(|p, q| drawn(p, q, rest)),
        };
        Known::rate_within((star.held + drawn) / p_sum, 8.0 * f64::EPSILON)
    }

    /// What the `fixed` heaviest tokens leave of q: 1 - q(top), summed over the others. O(V).
    pub(crate) fn rest_of_draft(&mut self, fixed: usize) -> f64 {
        let (_, q_sum) = self.totals();
        self.star(fixed).rest / q_sum
    }

    fn star(&mut self, fixed: usize) -> Star<'_> {
        let mut top = self.heaviest(fixed).to_vec();
        let rows = self.rows();
        top.sort_unstable();
        let held = compensated_sum(top.iter().map(|&token| rows.target[token]));
        let mut parts = Vec::with_capacity(top.len() + 1);
        let mut start = 0;
        for end in top.into_iter().chain([rows.draft.len()]) {
            parts.push((&rows.target[start..end], &rows.draft[start..end]));
            start = end + 1;
        }
        let mut star = Star {
            held,
            rest: 0.0,
            parts,
        };
        star.rest = star.sum(|_, q| total(q));
        star
    }
}

/// Rows with some tokens of the draft taken out.
struct Star<'a> {
    /// Their p.
    held: f64,
    /// Sum of the other q.
    rest: f64,
    /// What lies between them.
    parts: Vec<(&'a [f64], &'a [f64])>,
}

impl Star<'_> {
    fn sum(&self, part: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
        self.parts.iter().map(|(p, q)| part(p, q)).sum()
    }
}

/// Sum of a row.
#[multiversion(targets = "simd")]
pub(super) fn total(q: &[f64]) -> f64 {
    split_sum(q, q, |q, _| q)
}

/// Sum of min(p, scale q/rest).
#[multiversion(targets = "simd")]
fn overlap(p: &[f64], q: &[f64], rest: f64, scale: f64) -> f64 {
    split_sum(p, q, |p, q| {
        let last = scale * (q / rest);
        if last < p { last } else { p }
    })
}

/// Sum of p q/rest, which does not vanish where p q does.
#[multiversion(targets = "simd")]
fn drawn(p: &[f64], q: &[f64], rest: f64) -> f64 {
    split_sum(p, q, |p, q| p * (q / rest))
}

/// Sum of (scale q/rest - p)+.
#[multiversion(targets = "simd")]
fn excess(p: &[f64], q: &[f64], rest: f64, scale: f64) -> f64 {
    split_sum(p, q, |p, q| {
        let more = scale * (q / rest) - p;
        if more > 0.0 { more } else { 0.0 }
    })
}
