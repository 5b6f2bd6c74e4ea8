//! Drafts of which all but the last are the heaviest tokens of q.

use super::memo::Star;
use super::scan::Row;
use multiversion::multiversion;
use specgap_number::distribution::{Rows, compensated_sum, heaviest, split_sums, split_total};
use specgap_number::known::Known;

impl Row<'_> {
    /// The `count` most probable tokens of q, falling, the lowest id first among equals;
    /// fewer if there are fewer. O(V) the first time.
    ///
    /// # Example
    /// ```
    /// use specgap_row::{Rows, Workspace};
    /// let rows = Rows { target: &[0.5, 0.25, 0.25], draft: &[0.25, 0.5, 0.25] };
    /// let mut workspace = Workspace::new();
    /// let mut row = workspace.load(rows, 3)?;
    /// assert_eq!(row.heaviest(2), [1, 0]);
    /// assert_eq!(row.top_mass(2).value(), 0.75);
    /// // Token 1 is a draft anyway, and the other tokens are halves of what is left of q.
    /// assert_eq!(row.accepted_with_fixed(1).value(), 1.0);
    /// # Ok::<(), specgap_row::RowError>(())
    /// ```
    pub fn heaviest(&mut self, count: usize) -> &[usize] {
        if self.memo().heaviest.len() < count {
            let most = count.max(self.most_drafts());
            let found = heaviest(self.rows().draft, most);
            let memo = self.memo();
            memo.heaviest = found;
            memo.light = None;
        }
        let top = &self.memo().heaviest;
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
        Known::rate_within((star.held + star.overlap) / p_sum, 8.0 * f64::EPSILON)
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
            _ => 1.0 + (star.held - star.excess) / p_sum,
        };
        Known::rate_within(rate, 32.0 * f64::EPSILON)
    }

    /// Returns how often a draw from p is among the drafts, all of which but the last are the
    /// `fixed` most probable tokens of q, the last being drawn from the others: p(top) + sum over
    /// the others of p q/(1 - q(top)). O(V).
    pub fn hits_with_fixed(&mut self, fixed: usize) -> Known {
        let (p_sum, _) = self.totals();
        let star = self.star(fixed);
        Known::rate_within((star.held + star.drawn) / p_sum, 8.0 * f64::EPSILON)
    }

    /// Returns what the `fixed` heaviest tokens leave of q: 1 - q(top), summed over the others.
    /// O(V).
    pub fn rest_of_draft(&mut self, fixed: usize) -> f64 {
        let (_, q_sum) = self.totals();
        self.star(fixed).rest / q_sum
    }

    /// The sums that three questions ask of, the first time; O(V).
    fn star(&mut self, fixed: usize) -> Star {
        let known = self.memo().stars.iter().find(|(count, _)| *count == fixed);
        if let Some(&(_, star)) = known {
            return star;
        }
        let (p_sum, _) = self.totals();
        let rows = self.rows();
        let top = self.heaviest(fixed).to_vec();
        // The sum over what no question fixes is the same for all.
        let all = self.memo().heaviest.clone();
        let light = match self.memo().light {
            Some(light) => light,
            None => between(rows, &all).map(|(_, q)| split_total(q)).sum(),
        };
        self.memo().light = Some(light);
        let others = all.iter().skip(fixed).map(|&token| rows.draft[token]);
        let rest = compensated_sum(std::iter::once(light).chain(others));
        let held = compensated_sum(top.iter().map(|&token| rows.target[token]));
        let mut star = Star {
            held,
            rest,
            ..Star::default()
        };
        if rest > 0.0 {
            for (p, q) in between(rows, &top) {
                let [overlap, excess, drawn] = with_last(p, q, rest, p_sum);
                star.overlap += overlap;
                star.excess += excess;
                star.drawn += drawn;
            }
        }
        self.memo().stars.push((fixed, star));
        star
    }
}

/// Returns what lies between some tokens.
fn between<'a>(rows: Rows<'a>, tokens: &[usize]) -> impl Iterator<Item = (&'a [f64], &'a [f64])> {
    let mut tokens = tokens.to_vec();
    tokens.sort_unstable();
    tokens.push(rows.draft.len());
    let mut start = 0;
    tokens.into_iter().map(move |end| {
        let part = start..end;
        start = end + 1;
        (&rows.target[part.clone()], &rows.draft[part])
    })
}

/// Sums of min(p, scale q/rest), of (scale q/rest - p)+, and of p q/rest, which does not vanish
/// where p q does.
#[multiversion(targets = "simd")]
fn with_last(p: &[f64], q: &[f64], rest: f64, scale: f64) -> [f64; 3] {
    // 1/rest is finite for all that is left but numbers next to none.
    let up = if rest < 1e-280 { 2f64.powi(600) } else { 1.0 };
    let inverse = 1.0 / (up * rest);
    split_sums(p, q, |p, q| {
        let share = (up * q) * inverse;
        let last = scale * share;
        let overlap = if last < p { last } else { p };
        let excess = if last > p { last - p } else { 0.0 };
        [overlap, excess, p * share]
    })
}
