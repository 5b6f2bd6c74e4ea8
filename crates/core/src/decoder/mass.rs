//! Sums of a row by blocks: a draw, a cut and the heaviest tokens each look into few blocks.

use super::rows::{DecoderError, Entry};
use multiversion::multiversion;

const BLOCK: usize = 256;
const LANES: usize = 16;

/// A row, some of whose tokens do not count, and the sums up to the end of each block.
pub(super) struct Mass<'a, T> {
    row: &'a [T],
    without: Vec<usize>,
    sums: Vec<f64>,
    tops: Vec<T>,
    ends: Vec<f64>,
    lowest: T,
}

/// Where a sum is passed: a token, and the sums before and behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) token: usize,
    pub(super) before: f64,
    pub(super) after: f64,
}

impl<'a, T: Entry> Mass<'a, T> {
    /// One pass over a row.
    pub(super) fn of(row: &'a [T]) -> Self {
        let blocks = row.len().div_ceil(BLOCK);
        let mut mass = Self {
            row,
            without: Vec::new(),
            sums: vec![0.0; blocks],
            tops: vec![T::ZERO; blocks],
            ends: Vec::with_capacity(blocks),
            lowest: T::ZERO,
        };
        mass.lowest = look(row, &mut mass.sums, &mut mass.tops);
        mass.add_up();
        mass
    }

    /// The same of what has to be a distribution.
    pub(super) fn checked(
        row: &'a [T],
        name: &'static str,
        number: usize,
    ) -> Result<Self, DecoderError> {
        let mass = Self::of(row);
        let total = mass.total();
        let wrong = if total.is_nan() {
            "has NaN, or both infinities".to_owned()
        } else if mass.lowest < T::ZERO {
            "has an entry below 0".to_owned()
        } else if (total - 1.0).abs() > T::TOLERANCE {
            format!("sums to {total}")
        } else {
            return Ok(mass);
        };
        Err(DecoderError::Row(name, number, wrong))
    }

    fn add_up(&mut self) {
        self.ends.clear();
        let mut end = 0.0;
        for sum in &self.sums {
            end += sum;
            self.ends.push(end);
        }
    }

    pub(super) fn total(&self) -> f64 {
        self.ends.last().copied().unwrap_or(0.0)
    }

    fn block(&self, block: usize) -> impl Iterator<Item = (usize, T)> {
        let first = block * BLOCK;
        let last = self.row.len().min(first + BLOCK);
        let here = self.row[first..last].iter().copied();
        (first..).zip(here).map(|(at, x)| {
            let counts = self.without.is_empty() || !self.without.contains(&at);
            (at, if counts { x } else { T::ZERO })
        })
    }

    /// The heaviest token, the first of those that are equal.
    pub(super) fn heaviest(&self) -> Option<(usize, f64)> {
        let mut best = (0, T::ZERO);
        for (block, &top) in self.tops.iter().enumerate() {
            if top > best.1 {
                best = (block, top);
            }
        }
        let (block, top) = best;
        let at = (top > T::ZERO).then(|| self.block(block).find(|one| one.1 == top));
        at.flatten().map(|(at, x)| (at, x.into()))
    }

    /// Tokens that no longer count.
    pub(super) fn leave_out(&mut self, token: usize) {
        self.without.push(token);
        let block = token / BLOCK;
        let (mut sum, mut top) = (0.0, T::ZERO);
        for (_, x) in self.block(block) {
            sum += x.into();
            top = if x > top { x } else { top };
        }
        self.sums[block] = sum;
        self.tops[block] = top;
        self.add_up();
    }

    pub(super) fn leave_out_all(&mut self, tokens: &[u32]) {
        tokens
            .iter()
            .for_each(|&token| self.leave_out(token as usize));
    }

    pub(super) fn without(&self) -> &[usize] {
        &self.without
    }

    /// The first token behind which the sum is above `sum`, or, if `or_equal`, not below it; the last
    /// with any mass if there is none.
    pub(super) fn passes(&self, sum: f64, or_equal: bool) -> Option<Place> {
        let is_short = |end: f64| end < sum || !or_equal && end <= sum;
        let mut block = self.ends.partition_point(|&end| is_short(end));
        if block == self.ends.len() {
            block = self.tops.iter().rposition(|&top| top > T::ZERO)?;
        }
        let mut after = if block == 0 {
            0.0
        } else {
            self.ends[block - 1]
        };
        let mut last = None;
        for (token, x) in self.block(block) {
            let before = after;
            after += x.into();
            if x > T::ZERO {
                last = Some(Place {
                    token,
                    before,
                    after,
                });
                if !is_short(after) {
                    break;
                }
            }
        }
        last
    }

    /// Returns what counts of each token.
    #[cfg(test)]
    pub(super) fn entries(&self) -> Vec<f64> {
        let blocks = (0..self.ends.len()).flat_map(|block| self.block(block));
        blocks.map(|(_, x)| x.into()).collect()
    }

    /// A token in proportion to its entry.
    pub(super) fn draw(&self, coin: f64) -> Option<usize> {
        Some(self.passes(coin * self.total(), false)?.token)
    }
}

/// Sums and largest entries of the blocks; the least entry, or 0.
#[multiversion(targets = "simd")]
fn look<T: Entry>(row: &[T], sums: &mut [f64], tops: &mut [T]) -> T {
    let mut low = [T::ZERO; LANES];
    for (block, (sum, top)) in row.chunks(BLOCK).zip(sums.iter_mut().zip(tops)) {
        let (mut lanes, mut most) = ([0.0; LANES], [T::ZERO; LANES]);
        let whole = block.chunks_exact(LANES);
        let rest = whole.remainder();
        for some in whole.chain(std::iter::once(rest)) {
            let each = lanes.iter_mut().zip(&mut most).zip(&mut low);
            for (((lane, most), low), &x) in each.zip(some) {
                *lane += x.into();
                *most = if x > *most { x } else { *most };
                *low = if x < *low { x } else { *low };
            }
        }
        *sum = lanes.iter().sum();
        for x in most {
            *top = if x > *top { x } else { *top };
        }
    }
    let lowest = |a: T, b: T| if b < a { b } else { a };
    low.into_iter().fold(T::ZERO, lowest)
}
