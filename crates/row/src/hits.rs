//! How often a token drawn from p is among the drafts: the sum of p_i P(i is drafted).

use super::draft_rank::Ranks;
use super::scan::Row;
use multiversion::multiversion;
use specgap_number::distribution::{LANES, SplitSum, for_lanes, split_sum, split_sums};
use specgap_number::known::Known;

/// Numbers of drafts that one pass over the rows answers for.
const TOGETHER: usize = 8;

impl Row<'_> {
    /// For n independent draws from q: sum of p (1 - (1-q)^n). O(nV); where a row is loaded for
    /// at most 8 drafts, the first call serves the others.
    pub fn hits_iid(&mut self, drafts: usize) -> Known {
        let drafts = drafts.max(1);
        let rounding = (4.0 * drafts as f64 + 16.0) * f64::EPSILON;
        let rows = self.rows();
        let (p_sum, q_sum) = self.totals();
        let most = self.most_drafts().max(drafts);
        let hits = if most > TOGETHER {
            independent_hits(rows.target, rows.draft, q_sum, drafts)
        } else {
            if self.memo().hits.len() <= drafts {
                let hits = self.of_shares(|_, all| hits_up_to(rows.target, all.draft, most));
                self.memo().hits = hits;
            }
            self.memo().hits.get(drafts).copied().unwrap_or(f64::NAN)
        };
        Known::rate_within(hits / p_sum, rounding)
    }

    /// For n sequential draws without replacement. What the first call computes serves
    /// fewer drafts: for several n, ask for the largest first. The cost is that of some
    /// hundred nodes, O(n^2) each for every octave of q and O(n) for every token that is
    /// likely to be drafted.
    pub fn hits_sequential(&mut self, drafts: usize) -> Known {
        let drafts = drafts.max(1);
        if self.draft_support() <= drafts {
            // All of the support is drafted.
            return self.accepted_with_fixed(drafts);
        }
        let (p_sum, _) = self.totals();
        let rows = self.rows();
        self.kept(
            |ranks: &Ranks| ranks.rates.len() >= drafts,
            |row| row.of_shares(|_, all| Ranks::new(rows.target, all.draft, [p_sum, 1.0], drafts)),
            |ranks| Known::rate_within(ranks.among(drafts), ranks.error),
        )
    }

    /// The probability that a token is the k-th of n sequential draws without replacement,
    /// for each k < n. The cost is that of [`Self::hits_sequential`].
    pub fn drawn_at(&mut self, token: usize, drafts: usize) -> Vec<f64> {
        let (rows, (_, q_sum)) = (self.rows(), self.totals());
        let mut ranks = vec![0.0; drafts];
        if rows.draft.get(token).is_none_or(|&q| q <= 0.0) {
            return ranks;
        }
        let mut only = vec![0.0; rows.draft.len()];
        only[token] = 1.0;
        let support = self.draft_support();
        // The last token of the support is drawn when all others were.
        let open = drafts.min(support - 1);
        if open > 0 {
            let found = Ranks::new(&only, rows.draft, [1.0, q_sum], open);
            for (rank, rate) in ranks.iter_mut().zip(&found.rates) {
                *rank = rate.clamp(0.0, 1.0);
            }
        }
        if drafts >= support {
            let before: f64 = ranks[..open].iter().sum();
            ranks[open] = (1.0 - before).max(0.0);
        }
        ranks
    }
}

/// sum of p_i (1 - (1-q_i)^n), as p_i q_i (1 + (1-q_i) + .. + (1-q_i)^(n-1)): no
/// subtraction that could cancel. The q_i sum to `whole`, about 1, and are divided by it.
#[multiversion(targets = "simd")]
pub fn independent_hits(p: &[f64], q: &[f64], whole: f64, drafts: usize) -> f64 {
    let mut sum = SplitSum::default();
    for_lanes(p, q, |p, q| {
        let (mut series, mut others, mut first) = ([1.0; LANES], [0.0; LANES], [0.0; LANES]);
        for lane in 0..LANES {
            let q = q[lane] / whole;
            others[lane] = 1.0 - q;
            first[lane] = p[lane] * q;
        }
        for _ in 1..drafts {
            for lane in 0..LANES {
                series[lane] = 1.0 + others[lane] * series[lane];
            }
        }
        for lane in 0..LANES {
            series[lane] *= first[lane];
        }
        sum.add(&series);
    });
    sum.value()
}

/// The same for every number of drafts from 0 to `most`, which is at most [`TOGETHER`]; the q sum
/// to 1.
fn hits_up_to(p: &[f64], q: &[f64], most: usize) -> Vec<f64> {
    let (mut hits, mut sum) = (vec![0.0], 0.0);
    let by_draft = match most {
        0..=2 => hits_by_draft::<2>(p, q).to_vec(),
        3..=4 => hits_by_draft::<4>(p, q).to_vec(),
        _ => hits_by_draft::<TOGETHER>(p, q).to_vec(),
    };
    for share in by_draft {
        sum += share;
        hits.push(sum);
    }
    hits
}

/// Sums of p q (1-q)^j, j from 0 on.
#[multiversion(targets = "simd")]
fn hits_by_draft<const N: usize>(p: &[f64], q: &[f64]) -> [f64; N] {
    sums_of_misses(p, q, |p, q| p * q)
}

/// Sums of (p - q)+ (1-q)^j, j from 0 to 3, of rows that sum to 1: what of a residual j other drafts miss.
#[multiversion(targets = "simd")]
pub fn missed_by_up_to(p: &[f64], q: &[f64]) -> [f64; 4] {
    sums_of_misses(p, q, |p, q| if p > q { p - q } else { 0.0 })
}

/// Sum of (p - q)+ (1-q)^others, the rows' entries being divided by their sums.
#[multiversion(targets = "simd")]
pub fn missed_by(p: &[f64], q: &[f64], sums: [f64; 2], others: usize) -> f64 {
    split_sum(p, q, |p, q| {
        let (p, q) = (p / sums[0], q / sums[1]);
        let mut mass = if p > q { p - q } else { 0.0 };
        for _ in 0..others {
            mass *= 1.0 - q;
        }
        mass
    })
}

/// Sums of term(p, q) (1-q)^j, j from 0 on: what other drafts miss. Terms are in [0, 1] and sum to
/// less than 2, and that of (0, 0) is 0.
#[inline(always)]
fn sums_of_misses<const N: usize>(
    p: &[f64],
    q: &[f64],
    term: impl Fn(f64, f64) -> f64,
) -> [f64; N] {
    split_sums(p, q, |p, q| {
        let (mut next, other) = (term(p, q), 1.0 - q);
        [(); N].map(|()| {
            let own = next;
            next *= other;
            own
        })
    })
}
