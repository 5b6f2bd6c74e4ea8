//! A row in the forms that suspects ask it in: masses by size, and its heaviest tokens in order.

use std::cell::OnceCell;

/// Cells of a binary order of magnitude.
const EACH: u32 = 16;

/// Probabilities below 2^-64 share the last cell.
const OCTAVES: u32 = 64;

/// Cells of probabilities by size.
pub(crate) const CELLS: usize = (EACH * OCTAVES) as usize + 1;

/// What the heaviest tokens that are kept in order leave to the others, at most.
const LEFT: f64 = 2e-4;

/// The cell of a probability: 16 to a factor of 2, from 1 downwards.
pub(crate) fn cell(x: f64) -> usize {
    // Exponent and the first four bits of the significand.
    let top = 1023u64 << 4;
    let own = x.to_bits() >> 48;
    usize::try_from(top.saturating_sub(own)).map_or(CELLS - 1, |cell| cell.min(CELLS - 1))
}

/// ln of the middle of a cell.
pub(crate) fn middle(cell: usize) -> f64 {
    let bits = (1023u64 << 4).saturating_sub(cell as u64);
    let low = f64::from_bits(bits << 48);
    let high = f64::from_bits((bits + 1) << 48);
    (0.5 * (low + high)).ln()
}

/// A row: p or q, as claimed.
#[derive(Clone, Debug)]
pub(crate) struct View<'a> {
    pub row: &'a [f64],
    /// The last entry stands for unlisted tokens.
    pub rest: bool,
    // What is below is made where it is asked for.
    sorted: OnceCell<Sorted>,
    /// Of the whole row, and of halves, quarters and eighths of its ids.
    total: OnceCell<f64>,
    parts: OnceCell<[f64; 14]>,
}

/// A row by size.
#[derive(Clone, Debug)]
struct Sorted {
    masses: Vec<f64>,
    order: Vec<u32>,
    /// Mass of the first k of the order, k = 1, 2, ..
    sums: Vec<f64>,
}

/// Rows up to this are short.
pub(crate) const SHORT: usize = 1024;

/// The mass of all of `size` tokens but one: summed where that one has most of it, which leaves no digits of
/// a difference.
pub(crate) fn all_but(place: usize, size: usize, at: impl Fn(usize) -> f64) -> f64 {
    match at(place) {
        own if own <= 0.5 => 1.0 - own,
        _ => total(size, |other| if other == place { 0.0 } else { at(other) }),
    }
}

/// The sum of f over the first `size` places. Of long rows it is that of eight sums, which wait for
/// each other no more.
pub(crate) fn total(size: usize, mut f: impl FnMut(usize) -> f64) -> f64 {
    if size <= SHORT {
        return (0..size).map(f).sum();
    }
    let mut lanes = [0.0; 8];
    for from in (0..size).step_by(8) {
        if from + 8 <= size {
            for (lane, sum) in lanes.iter_mut().enumerate() {
                *sum += f(from + lane);
            }
        } else {
            lanes[0] += (from..size).map(&mut f).sum::<f64>();
        }
    }
    lanes.iter().sum()
}

impl Sorted {
    fn of(row: &[f64], rest: bool) -> Self {
        let listed = row.len() - usize::from(rest && !row.is_empty());
        let tokens = row.get(..listed).unwrap_or(row);
        let mut masses = vec![0.0; CELLS];
        for x in tokens.iter().filter(|x| **x > 0.0) {
            if let Some(mass) = masses.get_mut(cell(*x)) {
                *mass += x;
            }
        }
        let total: f64 = masses.iter().sum();
        let mut held = 0.0;
        let is_enough = |mass: &f64| {
            held += mass;
            held >= total * (1.0 - LEFT)
        };
        let last = match listed > 4096 {
            true => masses.iter().position(is_enough),
            false => None,
        };
        let last = last.unwrap_or(CELLS - 1);
        let kept = (0u32..).zip(tokens);
        let kept = kept.filter(|(_, x)| **x > 0.0 && cell(**x) <= last);
        let mut order: Vec<u32> = kept.map(|(token, _)| token).collect();
        let at = |token: &u32| tokens.get(*token as usize).copied().unwrap_or(0.0);
        order.sort_unstable_by(|a, b| at(b).total_cmp(&at(a)).then(a.cmp(b)));
        let mut sum = 0.0;
        let sums = order.iter().map(|token| {
            sum += at(token);
            sum
        });
        let sums = sums.collect();
        Self {
            masses,
            order,
            sums,
        }
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(row: &'a [f64], rest: bool) -> Self {
        Self {
            row,
            rest,
            sorted: OnceCell::new(),
            total: OnceCell::new(),
            parts: OnceCell::new(),
        }
    }

    /// Mass by size of listed tokens.
    pub(crate) fn masses(&self) -> &[f64] {
        &self.sorted().masses
    }

    /// The heaviest tokens, heaviest first, that hold all but [`LEFT`] of what is listed.
    pub(crate) fn order(&self) -> &[u32] {
        &self.sorted().order
    }

    /// O(V) at first, and a sort of the heaviest tokens.
    fn sorted(&self) -> &Sorted {
        self.sorted.get_or_init(|| Sorted::of(self.row, self.rest))
    }

    /// The mass of part `at` of `of` of the ids, and where it begins and ends.
    pub(crate) fn part(&self, of: usize, at: usize) -> Option<(f64, [usize; 2])> {
        let ends = |of: usize, at: usize| [at, at + 1].map(|part| part * self.row.len() / of);
        let mass = |of: usize, at: usize| {
            let [from, to] = ends(of, at);
            self.row.get(from..to).map(|part| part.iter().sum::<f64>())
        };
        // Two halves, four quarters, eight eighths.
        let made = || {
            std::array::from_fn(|place| {
                let of = 1usize << (place + 2).ilog2();
                mass(of, place + 2 - of).unwrap_or(0.0)
            })
        };
        let known = match of {
            2 | 4 | 8 => self.parts.get_or_init(made).get(of + at - 2).copied(),
            _ => mass(of, at),
        };
        known.map(|mass| (mass, ends(of, at)))
    }

    pub(crate) fn at(&self, place: usize) -> f64 {
        self.row.get(place).copied().unwrap_or(0.0)
    }

    /// The mass of unlisted tokens.
    pub(crate) fn unlisted(&self) -> f64 {
        let last = self.row.last().filter(|_| self.rest);
        last.copied().unwrap_or(0.0)
    }

    pub(crate) fn is_rest(&self, place: usize) -> bool {
        self.rest && place + 1 == self.row.len()
    }

    /// The k-th heaviest of the tokens in order, from 0.
    pub(crate) fn value(&self, k: usize) -> Option<f64> {
        self.order().get(k).map(|token| self.at(*token as usize))
    }

    pub(crate) fn largest(&self) -> f64 {
        self.value(0).unwrap_or(0.0)
    }

    /// Counts the tokens in order that have at least this probability, and sums their mass.
    pub(crate) fn down_to(&self, least: f64) -> (usize, f64) {
        let kept = (self.order()).partition_point(|token| self.at(*token as usize) >= least);
        let last = kept.checked_sub(1);
        let mass = last.and_then(|last| self.sorted().sums.get(last));
        (kept, mass.copied().unwrap_or(0.0))
    }

    /// The smallest probability that is kept of the fewest heaviest tokens with this share of all.
    pub(crate) fn nucleus(&self, share: f64) -> Option<f64> {
        let total = *self.total.get_or_init(|| self.row.iter().sum());
        let sums = &self.sorted().sums;
        self.value(sums.partition_point(|sum| *sum < share * total))
    }

    /// The heaviest token.
    pub(crate) fn likeliest(&self) -> usize {
        self.order().first().map_or(0, |token| *token as usize)
    }
}

/// Returns the cell of an outcome if tokens stand in the row's order: [below, below + own).
pub(crate) fn by_id(row: &[f64], place: usize) -> [f64; 2] {
    let below: f64 = row.iter().take(place).sum();
    [below, below + row.get(place).copied().unwrap_or(0.0)]
}

/// Returns the cell of an outcome if tokens stand by falling mass.
pub(crate) fn by_mass(row: &[f64], place: usize) -> [f64; 2] {
    let own = row.get(place).copied().unwrap_or(0.0);
    let mut above = 0.0;
    for (other, x) in row.iter().enumerate() {
        if *x > own || (*x == own && other < place) {
            above += x;
        }
    }
    [above, above + own]
}

/// min(1, p/q).
pub(crate) fn ratio(p: f64, q: f64) -> f64 {
    if p >= q { 1.0 } else { p / q }
}

/// Returns the length of what two intervals have in common.
pub(crate) fn common(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[1].min(b[1]) - a[0].max(b[0])).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_fall_with_size() {
        assert_eq!(cell(1.0), 0);
        assert_eq!(cell(0.5), 16);
        assert_eq!([cell(0.0), cell(1e-300)], [CELLS - 1; 2]);
        for place in [1, 7, 100, 900] {
            assert_eq!(cell(middle(place).exp()), place);
        }
    }

    #[test]
    fn the_heaviest_stand_in_order() {
        let row = [0.1, 0.4, 0.0, 0.3, 0.2];
        let view = View::new(&row, false);
        assert_eq!(view.order(), [1, 3, 4, 0]);
        assert!((view.sorted().sums[2] - 0.9).abs() < 1e-15);
        assert_eq!(view.down_to(0.2).0, 3);
        assert_eq!(view.nucleus(0.65), Some(0.3));
        assert_eq!(view.nucleus(0.75), Some(0.2));
        let listed = View::new(&row, true);
        assert_eq!(listed.order(), [1, 3, 0]);
        assert_eq!(by_mass(&row, 4), [0.7, 0.7 + 0.2]);
        assert_eq!(by_id(&row, 1), [0.1, 0.5]);
    }
}
