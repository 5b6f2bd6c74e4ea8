//! Numbers by their leading bits: cells in which tokens are gathered instead of sorted.

use multiversion::multiversion;
use specgap_number::distribution::TwoFloat;

/// Cells of numbers that are not negative, the largest first; what is below the least number that is
/// not 0 comes last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells {
    most: u64,
    last: u64,
    shift: u32,
}

/// Bits behind the exponent.
const SIGNIFICAND: u32 = 52;

impl Cells {
    /// About so many cells, or four a number if these are fewer, of which none crosses a power of two;
    /// more than 1,076 where numbers are that wide apart.
    pub(super) fn of_octaves(row: &[f64], about: u64) -> Self {
        Self::shifted(row, about, SIGNIFICAND)
    }

    /// About so many cells, or four a number if these are fewer.
    pub(super) fn over(row: &[f64], about: u64) -> Self {
        Self::shifted(row, about, 63)
    }

    fn shifted(row: &[f64], about: u64, coarsest: u32) -> Self {
        let [least, most] = range(row);
        let least = least.min(most);
        // All cells are gone through: a short row has few.
        let about = about.min(4 * row.len() as u64 + 1);
        let width = (most - least) / about + 1;
        let shift = width.next_power_of_two().trailing_zeros().min(coarsest);
        let most = most >> shift;
        Self {
            most,
            last: most - (least >> shift) + 1,
            shift,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.last as usize + 1
    }

    /// The cell of a number.
    #[inline(always)]
    pub(super) fn of(&self, number: f64) -> usize {
        let bits = number.to_bits() >> self.shift;
        self.most.saturating_sub(bits).min(self.last) as usize
    }

    /// The least number of a cell.
    pub(super) fn least(&self, cell: usize) -> f64 {
        f64::from_bits(self.most.saturating_sub(cell as u64) << self.shift)
    }
}

/// The bits of the least and of the largest number above 0.
#[multiversion(targets = "simd")]
fn range(row: &[f64]) -> [u64; 2] {
    let (mut least, mut most) = (u64::MAX, 0);
    for number in row {
        // What is no number, or below 0, counts as 0.
        let bits = if *number > 0.0 { number.to_bits() } else { 0 };
        least = least.min(bits.wrapping_sub(1));
        most = most.max(bits);
    }
    [least.wrapping_add(1), most]
}

/// A number as a multiple of the last bit of numbers of its exponent.
#[inline(always)]
pub(super) fn significand(number: f64) -> u64 {
    let bits = number.to_bits();
    let fraction = bits & ((1 << SIGNIFICAND) - 1);
    let is_normal = u64::from(bits >> SIGNIFICAND > 0);
    fraction | is_normal << SIGNIFICAND
}

/// So many times the last bit of a number: a sum of up to 2^24 significands, exact.
pub(super) fn in_units(count: u128, number: f64) -> TwoFloat {
    const HALF: u32 = 40;
    let exponent = (number.to_bits() >> SIGNIFICAND).max(1);
    let unit = match exponent.checked_sub(u64::from(SIGNIFICAND)) {
        Some(above @ 1..) => f64::from_bits(above << SIGNIFICAND),
        _ => f64::from_bits(1 << (exponent - 1)),
    };
    let low = (count & ((1 << HALF) - 1)) as f64;
    let high = (count >> HALF) as f64 * (1u64 << HALF) as f64;
    TwoFloat::from(high * unit) + TwoFloat::from(low * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_fall_and_sums_in_them_are_exact() {
        let row = [
            5e-324,
            3e-310,
            1e-200,
            0.0,
            2f64.powi(-1022),
            0.3,
            0.3000001,
            0.7,
            1.0,
        ];
        for cells in [Cells::of_octaves(&row, 64), Cells::over(&row, 64)] {
            assert!(cells.count() < 1200 && cells.of(0.0) < cells.count());
            for (a, b) in row.iter().flat_map(|a| row.iter().map(move |b| (*a, *b))) {
                assert!(a <= b || cells.of(a) <= cells.of(b), "{a} {b}");
            }
            assert_eq!((cells.of(f64::INFINITY), cells.of(2.0)), (0, 0));
        }
        for number in row {
            let sum = in_units(3 * u128::from(significand(number)), number);
            let mut by_hand = TwoFloat::ZERO;
            (0..3).for_each(|_| by_hand += number);
            assert_eq!(sum, by_hand, "{number}");
        }
        let many = in_units(u128::from(significand(0.7)) << 24, 0.7);
        assert_eq!(many.value(), 0.7 * f64::from(1 << 24));
        assert_eq!(Cells::over(&[0.0, 0.0], 64).of(0.5), 0);
    }
}
