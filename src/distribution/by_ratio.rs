//! Tokens by the ratio of q to p.

/// A pair of rows over one vocabulary, V probabilities each, that sum to 1 within
/// [`NORMALISATION_TOLERANCE`](super::NORMALISATION_TOLERANCE).
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// p, the target model's row.
    pub target: &'a [f64],
    /// q, the draft model's row.
    pub draft: &'a [f64],
}

/// A set of tokens that sorting by q/p cuts off: the certificate of an upper bound.
///
/// It holds the tokens of positive q whose ratio r = q/p, rounded to `f64` (and
/// infinite where p = 0), is above `ratio`, and of those with r = `ratio` the ones
/// with an id below `tied_below`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioCut {
    /// The threshold on q/p.
    pub ratio: f64,
    /// The tie rule: tokens at the threshold are in if their id is below this.
    pub tied_below: usize,
}

impl RatioCut {
    /// The empty set.
    pub const EMPTY: Self = Self {
        ratio: f64::INFINITY,
        tied_below: 0,
    };

    /// Whether a token with probabilities `target` and `draft` is in the set.
    pub fn contains(&self, token: usize, target: f64, draft: f64) -> bool {
        let ratio = if target == 0.0 {
            f64::INFINITY
        } else {
            draft / target
        };
        draft > 0.0 && (ratio > self.ratio || ratio == self.ratio && token < self.tied_below)
    }

    /// The tokens of the set, ascending. O(V).
    pub fn tokens(&self, rows: Rows<'_>) -> Vec<usize> {
        rows.target
            .iter()
            .zip(rows.draft)
            .enumerate()
            .filter(|&(token, (&p, &q))| self.contains(token, p, q))
            .map(|(token, _)| token)
            .collect()
    }
}

/// Sorts what is sorted but for neighbours: `precedes(a, b)` says that a has to stand
/// before b.
pub(crate) fn settle<T: Copy>(items: &mut [T], precedes: impl Fn(&T, &T) -> bool) {
    for next in 1..items.len() {
        let mut place = next;
        while place > 0 && precedes(&items[place], &items[place - 1]) {
            items.swap(place, place - 1);
            place -= 1;
        }
    }
}
