//! Compensated and double-double summation.
//!
//! Probabilities of a peaked distribution span hundreds of orders of
//! magnitude, and every optimum here is a difference of sums that are close to
//! one. Plain summation would lose the digits that the answer consists of.

use std::ops::{Add, Mul, Sub};

/// A sum carried in two `f64` words: `high + low`, with `|low| <= ulp(high)/2`.
///
/// # Exactness
/// Adding an `f64` has a relative error of at most 2^-104 of the running
/// magnitude (Knuth's two-sum, renormalised), so a sum of a million
/// non-negative terms is good to about 1e-25 relative before it is rounded.
///
/// # Example
/// ```
/// use specgap_number::distribution::TwoFloat;
/// let mut sum = TwoFloat::ZERO;
/// for term in [1.0, 1e-20, -1.0] {
///     sum += term;
/// }
/// assert_eq!(sum.value(), 1e-20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TwoFloat {
    high: f64,
    low: f64,
}

#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}

#[inline]
fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

impl TwoFloat {
    /// The number 0.
    pub const ZERO: Self = Self {
        high: 0.0,
        low: 0.0,
    };

    /// The number 1.
    pub const ONE: Self = Self {
        high: 1.0,
        low: 0.0,
    };

    /// The nearest `f64`.
    #[inline]
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    /// The leading and the trailing word.
    #[inline]
    pub fn words(self) -> (f64, f64) {
        (self.high, self.low)
    }

    /// The exact product of two `f64`, up to underflow.
    #[inline]
    pub fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self {
            high,
            low: a.mul_add(b, -high),
        }
    }

    /// This number divided by an `f64`, relative error about 2^-100.
    #[inline]
    pub fn divided_by(self, divisor: f64) -> Self {
        let first = self.high / divisor;
        let rest = self - Self::product(first, divisor);
        let second = rest.value() / divisor;
        let (high, low) = quick_two_sum(first, second);
        Self { high, low }
    }
}

impl From<f64> for TwoFloat {
    #[inline]
    fn from(value: f64) -> Self {
        Self {
            high: value,
            low: 0.0,
        }
    }
}

impl Add for TwoFloat {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (low, low_error) = two_sum(self.low, other.low);
        let (high, error) = quick_two_sum(high, error + low);
        let (high, low) = quick_two_sum(high, error + low_error);
        Self { high, low }
    }
}

impl Sub for TwoFloat {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self + Self {
            high: -other.high,
            low: -other.low,
        }
    }
}

impl Mul<f64> for TwoFloat {
    type Output = Self;
    #[inline]
    fn mul(self, factor: f64) -> Self {
        let main = Self::product(self.high, factor);
        let (high, low) = quick_two_sum(main.high, self.low.mul_add(factor, main.low));
        Self { high, low }
    }
}

impl Mul for TwoFloat {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        let main = Self::product(self.high, other.high);
        let cross = self.high.mul_add(other.low, self.low * other.high);
        let (high, low) = quick_two_sum(main.high, main.low + cross);
        Self { high, low }
    }
}

impl std::ops::AddAssign<f64> for TwoFloat {
    #[inline]
    fn add_assign(&mut self, term: f64) {
        *self = *self + Self::from(term);
    }
}

impl std::ops::AddAssign for TwoFloat {
    #[inline]
    fn add_assign(&mut self, term: Self) {
        *self = *self + term;
    }
}

/// A non-negative number of unbounded range: a [`TwoFloat`] times a power of
/// 2^512. Products of any number of probabilities neither under- nor overflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wide {
    mantissa: TwoFloat,
    exponent: i64,
}

impl Wide {
    /// 0.
    pub const ZERO: Self = Self {
        mantissa: TwoFloat::ZERO,
        exponent: 0,
    };

    const BASE: f64 = f64::from_bits((1023 + 512) << 52);
    const INVERSE: f64 = f64::from_bits((1023 - 512) << 52);
    const HIGH: f64 = f64::from_bits((1023 + 256) << 52);
    const LOW: f64 = f64::from_bits((1023 - 256) << 52);

    #[inline]
    fn scaled(mantissa: TwoFloat, factor: f64) -> TwoFloat {
        // A power of two: exact.
        TwoFloat {
            high: mantissa.high * factor,
            low: mantissa.low * factor,
        }
    }

    /// Brings the mantissa into [2^-256, 2^256), or to zero.
    #[inline]
    fn normalised(mut self) -> Self {
        if self.mantissa.high == 0.0 {
            return Self::ZERO;
        }
        while self.mantissa.high >= Self::HIGH {
            self.mantissa = Self::scaled(self.mantissa, Self::INVERSE);
            self.exponent += 1;
        }
        while self.mantissa.high < Self::LOW {
            self.mantissa = Self::scaled(self.mantissa, Self::BASE);
            self.exponent -= 1;
        }
        self
    }

    /// The sum.
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        if self.mantissa.high == 0.0 {
            return other;
        }
        if other.mantissa.high == 0.0 {
            return self;
        }
        let (large, small) = if self.exponent >= other.exponent {
            (self, other)
        } else {
            (other, self)
        };
        let mantissa = match large.exponent - small.exponent {
            0 => large.mantissa + small.mantissa,
            1 => large.mantissa + Self::scaled(small.mantissa, Self::INVERSE),
            // Below 2^-512 of the other.
            _ => return large,
        };
        Self {
            mantissa,
            exponent: large.exponent,
        }
        .normalised()
    }

    /// The product.
    #[inline]
    pub fn times(self, other: Self) -> Self {
        let mantissa = self.mantissa * other.mantissa;
        Self {
            mantissa,
            exponent: self.exponent + other.exponent,
        }
        .normalised()
    }

    /// The quotient, in `f64`: 0 where it underflows. `other` is above 0.
    #[inline]
    pub fn over(self, other: Self) -> f64 {
        if self.mantissa.high == 0.0 {
            return 0.0;
        }
        let quotient = self.mantissa.divided_by(other.mantissa.value()).value();
        match self.exponent - other.exponent {
            0 => quotient,
            1 => quotient * Self::BASE,
            -1 => quotient * Self::INVERSE,
            -2 => quotient * Self::INVERSE * Self::INVERSE,
            shift if shift > 1 => f64::INFINITY,
            _ => 0.0,
        }
    }
}

impl From<f64> for Wide {
    #[inline]
    fn from(value: f64) -> Self {
        Self {
            mantissa: TwoFloat::from(value),
            exponent: 0,
        }
        .normalised()
    }
}

/// The sum of the terms, rounded once at the end.
///
/// # Complexity
/// O(length).
///
/// # Example
/// ```
/// use specgap_number::distribution::compensated_sum;
/// assert_eq!(compensated_sum([0.1; 10]), 1.0);
/// ```
#[inline]
pub fn compensated_sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    // Several sums at a time: an addition need not wait for the one before.
    let mut lanes = [TwoFloat::ZERO; 4];
    let mut terms = terms.into_iter().fuse();
    while let Some(first) = terms.next() {
        lanes[0] += first;
        for lane in &mut lanes[1..] {
            *lane += terms.next().unwrap_or(0.0);
        }
    }
    let [a, b, c, d] = lanes;
    ((a + b) + (c + d)).value()
}

/// Numbers that are summed side by side. Of fewer, a loop over lanes is taken apart before it is made
/// one of vectors, and some then stay four times slower.
pub const LANES: usize = 32;

/// A sum of terms in [0, 1] that stays below 2, for functions compiled for wide vectors.
///
/// Every term is split into a multiple of 2^-52 and a rest; sums of the first are exact,
/// those of V rests err by less than V^2 2^-104.
#[derive(Clone, Copy, Debug, Default)]
pub struct SplitSum {
    multiples: [f64; LANES],
    rests: [f64; LANES],
}

impl SplitSum {
    /// Adds a term to each lane.
    #[inline(always)]
    pub fn add(&mut self, terms: &[f64; LANES]) {
        for (lane, term) in terms.iter().enumerate() {
            self.add_in(lane, *term);
        }
    }

    #[inline(always)]
    fn add_in(&mut self, lane: usize, term: f64) {
        let multiple = (term + 1.0) - 1.0;
        self.multiples[lane] += multiple;
        self.rests[lane] += term - multiple;
    }

    /// The sum of all lanes.
    #[inline(always)]
    pub fn value(&self) -> f64 {
        self.multiples.iter().sum::<f64>() + self.rests.iter().sum::<f64>()
    }

    /// The sum of all lanes, in two words.
    #[inline(always)]
    pub fn in_two(&self) -> TwoFloat {
        TwoFloat::from(self.multiples.iter().sum::<f64>())
            + TwoFloat::from(self.rests.iter().sum::<f64>())
    }

    /// 1 less the sum, rounded once.
    #[inline(always)]
    pub fn short_of_one(&self) -> f64 {
        (1.0 - self.multiples.iter().sum::<f64>()) - self.rests.iter().sum::<f64>()
    }
}

/// [`SplitSum`] of a term over two rows of one length.
#[inline(always)]
pub fn split_sum(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let [sum] = split_sums(a, b, |a, b| [term(a, b)]);
    sum
}

/// [`SplitSum`]s of several terms over two rows of one length.
#[inline(always)]
pub fn split_sums<const N: usize>(
    a: &[f64],
    b: &[f64],
    terms: impl Fn(f64, f64) -> [f64; N],
) -> [f64; N] {
    let mut sums = [SplitSum::default(); N];
    let ((a, a_end), (b, b_end)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    // Groups are walked through side by side, which takes a third of the time that looking both
    // up takes; and what is left over one by one, so that sums stay side by side.
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            for (sum, term) in sums.iter_mut().zip(terms(a[lane], b[lane])) {
                sum.add_in(lane, term);
            }
        }
    }
    for (lane, (a, b)) in a_end.iter().zip(b_end).enumerate() {
        for (sum, term) in sums.iter_mut().zip(terms(*a, *b)) {
            sum.add_in(lane, term);
        }
    }
    sums.map(|sum| sum.value())
}

/// A running sum of numbers in [0, 1] that stays below 2. A term is split into a
/// multiple of 2^-52, whose sums are exact, and a rest, whose sums of V terms err by less
/// than V^2 2^-104: as good as double-double here, and an addition waits for one other
/// instead of six. From the light end of a sorted row the rests alone carry small sums, with a
/// relative error of V 2^-53 while these are below V 2^-53.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnitSum {
    multiples: f64,
    rests: f64,
}

impl UnitSum {
    /// Adds a term.
    #[inline(always)]
    pub fn add(&mut self, term: f64) {
        let multiple = (term + 1.0) - 1.0;
        self.multiples += multiple;
        self.rests += term - multiple;
    }

    /// The sum.
    #[inline(always)]
    pub fn value(self) -> f64 {
        self.multiples + self.rests
    }
}

/// Turns non-negative terms into their running sums.
///
/// Every term is split into a multiple of 2^-52 C, C a power of two above what m terms of
/// the largest size would sum to, and a rest. Sums of the first are exact, and those of the
/// rests err by less than m^2 2^-105 C.
#[inline]
pub fn running_sums(terms: &mut [f64]) {
    let largest = terms.iter().copied().fold(0.0, f64::max);
    let most = largest * terms.len() as f64;
    if most < f64::MIN_POSITIVE {
        // Sums of denormal numbers are exact.
        let mut sum = 0.0;
        for term in terms {
            sum += *term;
            *term = sum;
        }
        return;
    }
    // At least `most`, at most twice that: its exponent, and one more.
    let above = f64::from_bits((((most.to_bits() >> 52) + 1).min(2045)) << 52);
    let (mut multiples, mut rests) = (0.0, 0.0);
    for term in terms {
        let multiple = (*term + above) - above;
        multiples += multiple;
        rests += *term - multiple;
        *term = multiples + rests;
    }
}

/// Hands on two rows of one length, [`LANES`] entries at a time, filled up with zeros.
#[inline(always)]
pub fn for_lanes(a: &[f64], b: &[f64], mut each: impl FnMut(&[f64; LANES], &[f64; LANES])) {
    let ((a, a_end), (b, b_end)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let (mut last_a, mut last_b) = ([0.0; LANES], [0.0; LANES]);
    for (lane, &value) in last_a.iter_mut().zip(a_end) {
        *lane = value;
    }
    for (lane, &value) in last_b.iter_mut().zip(b_end) {
        *lane = value;
    }
    let whole = a.len().min(b.len());
    let all = whole + usize::from(!a_end.is_empty());
    // `each` stands here once, so that it is compiled in place: with the registers of the
    // function that calls this, and no call for each group.
    for at in 0..all {
        let (a, b) = match (a.get(at), b.get(at)) {
            (Some(a), Some(b)) => (a, b),
            _ => (&last_a, &last_b),
        };
        each(a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_sums_keep_their_digits() {
        let hash = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64;
        for scale in [1.0, 1e-20, 1e-290, 1e-320, 0.0] {
            for size in [1e-16, 1e-17, 1e-24] {
                let terms: Vec<f64> = (0..20_000)
                    .map(|i| {
                        let size = if i % 1000 == 0 { 1e-16 } else { size };
                        scale * size * hash(i)
                    })
                    .collect();
                let mut sums = terms.clone();
                running_sums(&mut sums);
                let mut sum = TwoFloat::ZERO;
                for (term, own) in terms.iter().zip(&sums) {
                    sum += *term;
                    let truth = sum.value();
                    assert!((own - truth).abs() <= 2.0 * f64::EPSILON * truth, "{scale}");
                }
            }
        }
        running_sums(&mut []);
    }

    #[test]
    fn keeps_what_plain_summation_loses() {
        let terms: Vec<f64> = std::iter::once(1.0)
            .chain(std::iter::repeat_n(1e-17, 1000))
            .collect();
        assert_eq!(terms.iter().sum::<f64>(), 1.0);
        assert_eq!(compensated_sum(terms), 1.0 + 1e-14);
    }

    #[test]
    fn split_sums_are_rounded_once() {
        let terms: Vec<f64> = (0..1000u32)
            .map(|i| f64::from(i % 7) * 1e-4 / f64::from(i + 1) + 1e-20)
            .collect();
        for count in [0, 1, 31, 32, 33, 1000] {
            let own = &terms[..count];
            let sum = split_sum(own, own, |a, b| 0.25 * a + 0.75 * b);
            let exact = compensated_sum(own.iter().map(|a| 0.25 * a + 0.75 * a));
            assert!((sum - exact).abs() <= f64::EPSILON * exact, "{count}");
        }
        let mut sum = SplitSum::default();
        sum.add(&std::array::from_fn(
            |lane| if lane == 3 { 1.0 } else { 1e-30 },
        ));
        assert!((sum.short_of_one() + 31e-30).abs() < 1e-44);
    }

    #[test]
    fn wide_numbers_do_not_leave_their_range() {
        let tiny = Wide::from(f64::from_bits(1));
        let product = (0..64).fold(Wide::from(1.0), |product, _| product.times(tiny));
        assert_eq!(product.over(product), 1.0);
        assert_eq!(product.plus(product).over(product), 2.0);
        assert_eq!(Wide::from(1.0).plus(product).over(Wide::from(1.0)), 1.0);
        assert_eq!(product.over(Wide::from(1.0)), 0.0);
        assert_eq!(Wide::from(1e-200).over(Wide::from(1e100)), 1e-300);
        assert_eq!(Wide::ZERO.plus(tiny), tiny);
        assert_eq!(Wide::ZERO.over(product), 0.0);
    }

    #[test]
    fn products_and_quotients_invert() {
        let third = TwoFloat::ONE.divided_by(3.0);
        let back = third * 3.0 - TwoFloat::ONE;
        assert!(back.value().abs() < 1e-31, "{back:?}");
        let square = third * third;
        assert!((square * 9.0 - TwoFloat::ONE).value().abs() < 1e-30);
    }
}
