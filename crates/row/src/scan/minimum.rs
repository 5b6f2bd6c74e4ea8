//! The least P - Q over the prefixes of the chain, for any law of the drafts.
//!
//! Ends of buckets first; then, as long as one could hold a lower value, the inside of the
//! most promising bucket, token by token. The bound within a bucket is proven in
//! `docs/theory/scan.md`.

use super::buckets::{Buckets, Link, Masses, Sorted, lower_edge};
use specgap_number::distribution::{RatioCut, Rows};
use specgap_number::known::Known;

/// Ratios below this may have lost digits; no order is claimed among them.
const DOUBTFUL_RATIO: f64 = f64::from_bits((1023 - 1000) << 52);

/// A law of the drafts along the chain of prefixes: what the scan has to know of it.
///
/// Q has to be convex in q(H) along any chain. `x` is q(H), normalised; other masses are
/// as they are in the rows.
pub(super) trait Chain {
    /// Q of the links up to and with `index`.
    fn at_end(&self, index: usize, x: f64) -> f64;

    /// Returns what the mass of a link errs by, relative to it, where that is not in
    /// [`Self::error`].
    fn slack(&self, _link: &Link) -> f64 {
        0.0
    }

    /// Returns what Q is at most after a mass `more` of a link's tokens, besides being below its
    /// chord over the link.
    fn most(&self, _index: usize, _link: &Link, _more: f64) -> f64 {
        f64::INFINITY
    }

    /// A walk begins, token by token, through the link `index` of so many tokens.
    fn enter(&mut self, _index: usize, _tokens: usize) {}

    /// The walk's next token, of mass `q`: Q of the prefix that ends with it.
    fn step(&mut self, q: f64, x: f64) -> f64;

    /// The most that P - Q errs by, in all that was asked.
    fn error(&self) -> f64;
}

/// What a scan found for one law and one n.
#[derive(Clone, Debug)]
pub struct ScannedRate {
    /// alpha*, a probability in [0, 1], with its enclosure.
    pub rate: Known,
    /// The set H that proves the upper bound: alpha* <= 1 + P(H) - Q(H).
    pub subset: RatioCut,
    /// P(H), the target's mass of the set.
    pub target_mass: f64,
    /// q(H), the draft's mass of the set.
    pub draft_mass: f64,
    /// Q(H), the probability that every draft lies in the set.
    pub inside: f64,
}

/// Buckets that may hold the minimum, each with a bound on P - Q in it.
pub(super) type Candidates = Vec<(f64, usize)>;

/// alpha* = 1 + min over prefixes of [P - Q], by the ends of buckets and by what is inside
/// those that `candidates`, a workspace, is left with.
pub(super) fn by_buckets(
    buckets: &mut Buckets,
    rows: Rows<'_>,
    candidates: &mut Candidates,
    mut chain: impl Chain,
) -> ScannedRate {
    let (target_total, draft_total) = buckets.totals();
    let mut best = Best::EMPTY;
    candidates.clear();
    let (mut held, mut q_start) = (0.0, 0.0);
    for (index, link) in buckets.links().iter().enumerate() {
        let mut end = link.before;
        end.merge(&link.own);
        let (held_end, x) = (end.target() / target_total, end.draft() / draft_total);
        let q_end = best.offer(held_end, x, chain.at_end(index, x), end_of(link));
        let bucket = Interior {
            least_slope: link.least_slope,
            most_slope: link.most_slope,
            mass: link.own.draft(),
            slack: chain.slack(link),
            target: link.own.target() / target_total,
            held,
            q_start,
            q_end,
        };
        if link.tokens > 1
            && let Some(turn) = bucket.turn()
        {
            let most = chain.most(index, link, turn);
            candidates.push((bucket.lower_bound(turn, most), index));
        }
        (held, q_start) = (held_end, q_end);
    }
    while let Some(index) = next_candidate(candidates, best.difference) {
        let link = buckets.links()[index];
        let tokens = buckets.sort(rows, &link);
        chain.enter(index, tokens.len());
        let step = |q, x| chain.step(q, x);
        best.walk(rows, (target_total, draft_total), link.before, tokens, step);
    }
    best.rate(chain.error())
}

/// The same by a walk through all tokens, sorted. `step` says Q after each of them, and
/// P - Q errs by `error`.
pub(super) fn by_tokens(
    buckets: &mut Buckets,
    rows: Rows<'_>,
    mut step: impl FnMut(f64) -> f64,
    error: f64,
) -> ScannedRate {
    let mut best = Best::EMPTY;
    let (totals, start) = (buckets.totals(), Masses::default());
    let tokens = buckets.sort_all(rows);
    best.walk(rows, totals, start, tokens, |q, _| step(q));
    best.rate(error)
}

/// A prefix and P - Q there, the least so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    difference: f64,
    cut: RatioCut,
    target: f64,
    draft: f64,
    inside: f64,
    /// P - Q is no less than this where Q or the order of tokens is not known.
    floor: f64,
}

impl Best {
    pub(super) const EMPTY: Self = Self {
        difference: 0.0,
        cut: RatioCut::EMPTY,
        target: 0.0,
        draft: 0.0,
        inside: 0.0,
        floor: 0.0,
    };

    /// The least P - Q so far.
    pub(super) fn difference(&self) -> f64 {
        self.difference
    }

    /// P - Q may be as low as this where nothing is known of it.
    pub(super) fn lower(&mut self, bound: f64) {
        self.floor = self.floor.min(bound);
    }

    /// Takes a prefix into account; returns what its Q is at most. NaN: it is not known.
    #[inline(always)]
    pub(super) fn offer(&mut self, target: f64, draft: f64, inside: f64, cut: RatioCut) -> f64 {
        if inside.is_nan() {
            self.lower(target - 1.0);
            return 1.0;
        }
        let difference = target - inside;
        if difference < self.difference {
            *self = Self {
                difference,
                cut,
                target,
                draft,
                inside,
                floor: self.floor,
            };
        }
        inside
    }

    /// Tokens in their order after a prefix that holds `sums`.
    #[inline(always)]
    fn walk(
        &mut self,
        rows: Rows<'_>,
        (target_total, draft_total): (f64, f64),
        mut sums: Masses,
        tokens: &[Sorted],
        mut inside: impl FnMut(f64, f64) -> f64,
    ) {
        let (sure, rest) = tokens.split_at(sure_tokens(tokens));
        for tokens in [sure, rest] {
            if let Some(&(key, _)) = tokens.first()
                && is_doubtful(f64::from_bits(!key))
            {
                self.lower(sums.target() / target_total - 1.0);
            }
            for &(key, token) in tokens {
                let (p, q) = (rows.target[token as usize], rows.draft[token as usize]);
                sums.add(p, q);
                let (held, x) = (sums.target() / target_total, sums.draft() / draft_total);
                self.offer(held, x, inside(q, x), at(key, token));
            }
        }
    }

    /// The answer, given the error of P - Q.
    pub(super) fn rate(self, error: f64) -> ScannedRate {
        // A subset whose P - Q may as well be positive proves less than none.
        let shown = if self.difference < -error {
            self
        } else {
            Self::EMPTY
        };
        ScannedRate {
            rate: Known::rate(
                1.0 + shown.difference,
                1.0 + self.floor.min(self.difference) - error,
                1.0 + shown.difference + error,
            ),
            subset: shown.cut,
            target_mass: shown.target,
            draft_mass: shown.draft,
            inside: shown.inside,
        }
    }
}

/// What is known about P - Q inside one bucket; P normalised, x = q(H) not.
pub(super) struct Interior {
    /// Bounds on dP/dx.
    pub(super) least_slope: f64,
    pub(super) most_slope: f64,
    /// q of the bucket, what that errs by relative to it, and P.
    pub(super) mass: f64,
    pub(super) slack: f64,
    pub(super) target: f64,
    /// P before it.
    pub(super) held: f64,
    /// The most that Q can be at its two ends.
    pub(super) q_start: f64,
    pub(super) q_end: f64,
}

impl Interior {
    /// Returns where, in x from the bucket's start, the two lines below P meet. `None` if P - Q is
    /// least at an end of the bucket: the chord above Q is no steeper than the one line, or no less
    /// steep than the other.
    #[inline(always)]
    pub(super) fn turn(&self) -> Option<f64> {
        let mass = self.mass;
        let rise = self.q_end - self.q_start;
        let (least, most) = (mass * (1.0 - self.slack), mass * (1.0 + self.slack));
        if self.least_slope * least >= rise || self.most_slope * most <= rise {
            return None;
        }
        if self.most_slope == f64::INFINITY {
            return Some(mass);
        }
        let turn = (self.most_slope * mass - self.target) / (self.most_slope - self.least_slope);
        Some(turn.clamp(0.0, mass))
    }

    /// The least that P - Q can be in the bucket, given what Q is at most at the turn
    /// besides being below its chord.
    pub(super) fn lower_bound(&self, turn: f64, most: f64) -> f64 {
        // Both lines, since the turn is rounded; the steep one may be 0 times infinity.
        let gentle = self.least_slope * turn;
        let steep = self.target - self.most_slope * (self.mass - turn);
        let chord = self.q_start + (self.q_end - self.q_start) * (turn / self.mass);
        let inside = chord.min(self.q_end).min(most);
        let line = gentle.min(steep) - 2.0 * self.slack * self.target;
        let at_turn = self.held + line - inside;
        let at_end = self.held + self.target - self.q_end;
        at_turn.min(self.held - self.q_start).min(at_end)
    }
}

/// Takes the most promising bucket off the list; `None` once none can hold a value
/// below `best`.
fn next_candidate(candidates: &mut Vec<(f64, usize)>, best: f64) -> Option<usize> {
    candidates.retain(|&(bound, _)| bound < best);
    let (place, _) = candidates
        .iter()
        .enumerate()
        .min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    Some(candidates.swap_remove(place).1)
}

/// Tokens before the first whose place in the order is not sure.
pub(super) fn sure_tokens(tokens: &[Sorted]) -> usize {
    tokens.partition_point(|&(key, _)| f64::from_bits(!key) >= DOUBTFUL_RATIO)
}

pub(super) fn end_of(link: &Link) -> RatioCut {
    RatioCut {
        ratio: lower_edge(link.bucket),
        tied_below: usize::MAX,
    }
}

pub(super) fn at(key: u64, token: u32) -> RatioCut {
    RatioCut {
        ratio: f64::from_bits(!key),
        tied_below: token as usize + 1,
    }
}

/// Returns whether a ratio is so small that its place in the order is not sure.
pub fn is_doubtful(ratio: f64) -> bool {
    ratio > 0.0 && ratio < DOUBTFUL_RATIO
}
