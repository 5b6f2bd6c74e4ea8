//! Tokens by the ratio of q to p.

use crate::scratch::Scratch;

/// A pair of rows over one vocabulary, V probabilities each, that sum to 1 within
/// [`NORMALISATION_TOLERANCE`](super::NORMALISATION_TOLERANCE).
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// p, the target model's row.
    pub target: &'a [f64],
    /// q, the draft model's row.
    pub draft: &'a [f64],
}

impl<'a> Rows<'a> {
    /// p and q.
    pub fn new(target: &'a [f64], draft: &'a [f64]) -> Self {
        Self { target, draft }
    }
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

    /// Tells whether a token with probabilities `target` and `draft` is in the set.
    #[inline]
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

/// From so many on, pairs are spread over cells before they are sorted.
const SPREAD: usize = 2048;

/// About as many cells as this.
const CELLS: u64 = 1 << 16;

/// Cells of more tokens are sorted by a method that many need.
const FEW: usize = 24;

/// The tokens of q > 0 by rising p/q, ties by id, each with its p/q.
///
/// Positive numbers are in the order of their bits. So the pairs are spread over cells by the
/// first bits, and the few of a cell are sorted by themselves. O(V), and O(m log m) in a cell
/// of m different ratios.
pub fn by_rising_ratio(rows: Rows<'_>) -> Scratch<(f64, u32)> {
    let mut pairs: Scratch<(f64, u32)> = Scratch::with_capacity(rows.draft.len());
    let tokens = (0u32..).zip(rows.target.iter().zip(rows.draft));
    // A zero of either sign is the same ratio.
    pairs.extend(tokens.filter_map(|(token, (p, q))| (*q > 0.0).then_some(((p + 0.0) / q, token))));
    let rising = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if pairs.len() < SPREAD {
        pairs.sort_unstable_by(rising);
        return pairs;
    }
    // Zeros have a cell of their own, as their bits are far from all others.
    let (mut least, mut most) = (u64::MAX, 0);
    for (ratio, _) in &pairs {
        let bits = ratio.to_bits();
        least = least.min(if bits == 0 { u64::MAX } else { bits });
        most = most.max(bits);
    }
    let least = least.min(most);
    let shift = ((most - least) / CELLS + 1)
        .next_power_of_two()
        .trailing_zeros();
    let cell = |ratio: f64| {
        let bits = ratio.to_bits();
        if bits < least {
            0
        } else {
            1 + ((bits - least) >> shift) as usize
        }
    };
    let mut starts = Scratch::filled(cell(f64::from_bits(most)) + 2, 0u32);
    for (ratio, _) in &pairs {
        starts[cell(*ratio) + 1] += 1;
    }
    let mut before = 0;
    for start in starts.iter_mut() {
        before += *start;
        *start = before;
    }
    let mut sorted = Scratch::<(f64, u32)>::of_any(pairs.len());
    for pair in &pairs {
        let place = &mut starts[cell(pair.0)];
        sorted[*place as usize] = *pair;
        *place += 1;
    }
    // Each cell begins where the one before it ended. Ties are in order already.
    let mut start = 0;
    for &end in starts.iter() {
        let end = end as usize;
        let own = &mut sorted[start..end];
        if own.len() > FEW {
            own.sort_by_key(|pair| pair.0.to_bits());
        } else {
            insert(own);
        }
        start = end;
    }
    sorted
}

/// Sorts by rising ratio, and leaves ties in their order. No ratio is negative.
fn insert(pairs: &mut [(f64, u32)]) {
    for next in 1..pairs.len() {
        let moved = pairs[next];
        let mut place = next;
        while place > 0 && pairs[place - 1].0.to_bits() > moved.0.to_bits() {
            pairs[place] = pairs[place - 1];
            place -= 1;
        }
        pairs[place] = moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn spreading_before_sorting_is_sorting() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for kind in 0..8 {
            for count in [0usize, 1, 5, SPREAD - 1, SPREAD, 20_000] {
                let mut entry = || match kind {
                    0 => rng.random::<f64>(),
                    1 => 10f64.powf(-300.0 * rng.random::<f64>()),
                    2 => f64::from(rng.random_range(0..3u8)),
                    3 => 0.25,
                    4 => f64::from_bits(rng.random_range(0..5u64)),
                    5 => 1.0 + f64::EPSILON * f64::from(rng.random_range(0..9u8)),
                    6 => -0.0 + f64::from(rng.random_range(0..2u8)) * 1e-320,
                    _ => (-4.0 * rng.random::<f64>()).exp(),
                };
                let p: Vec<f64> = (0..count).map(|_| entry()).collect();
                let q: Vec<f64> = (0..count).map(|_| entry()).collect();
                let rows = Rows::new(&p, &q);
                let mut plain: Vec<(f64, u32)> = (0..count)
                    .filter(|&i| q[i] > 0.0)
                    .map(|i| ((p[i] + 0.0) / q[i], i as u32))
                    .collect();
                plain.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let bits = |pairs: &[(f64, u32)]| -> Vec<(u64, u32)> {
                    pairs.iter().map(|&(r, i)| (r.to_bits(), i)).collect()
                };
                assert_eq!(bits(&by_rising_ratio(rows)), bits(&plain), "{kind} {count}");
            }
        }
    }
}
