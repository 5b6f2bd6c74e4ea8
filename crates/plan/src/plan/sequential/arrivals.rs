//! Polynomials in z, cut at z^{n-1}, with a first-order part in epsilon.
//!
//! In the race of the tokens' clocks, a token that may be among the drafts by time t
//! has the factor `e + z g + epsilon q e`: it has not arrived (e = e^{-qt}), has arrived
//! (g = 1 - e), or arrives now and is the last draft (density q e). The coefficient of
//! `epsilon z^{n-1}` in a product of such factors is the density of the n-th arrival.

use crate::plan::token_plan::MOST_SEQUENTIAL_DRAFTS;
use std::ops::{Add, Mul};

/// Most drafts.
pub(super) const MOST: usize = MOST_SEQUENTIAL_DRAFTS;

/// Values at so many nodes of s side by side.
pub(super) const LANES: usize = 8;

/// A value at each of [`LANES`] nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes(pub(super) [f64; LANES]);

/// What coefficients are: one number, or one at each of several nodes.
pub(super) trait Value: Copy + Add<Output = Self> + Mul<Output = Self> {
    fn all(value: f64) -> Self;
    fn scaled(self, factor: f64) -> Self;
}

impl Value for f64 {
    #[inline(always)]
    fn all(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn scaled(self, factor: f64) -> Self {
        factor * self
    }
}

impl Add for Lanes {
    type Output = Self;

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
        self
    }
}

impl Mul for Lanes {
    type Output = Self;

    #[inline(always)]
    fn mul(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own *= other;
        }
        self
    }
}

impl Value for Lanes {
    #[inline(always)]
    fn all(value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn scaled(mut self, factor: f64) -> Self {
        for own in &mut self.0 {
            *own *= factor;
        }
        self
    }
}

/// `sum of (plain_m + epsilon dual_m) z^m` for m < n; what is above stays 0. There is room
/// for N coefficients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals<T, const N: usize> {
    pub(super) plain: [T; N],
    pub(super) dual: [T; N],
}

impl<T: Value, const N: usize> Arrivals<T, N> {
    #[inline(always)]
    pub(super) fn one() -> Self {
        let mut plain = [T::all(0.0); N];
        plain[0] = T::all(1.0);
        Self {
            plain,
            dual: [T::all(0.0); N],
        }
    }

    /// Times `wait + z arrived + epsilon now`.
    #[inline(always)]
    pub(super) fn token(&mut self, n: usize, wait: f64, arrived: T, now: T) {
        for m in (1..n).rev() {
            self.dual[m] =
                self.dual[m].scaled(wait) + arrived * self.dual[m - 1] + now * self.plain[m];
            self.plain[m] = self.plain[m].scaled(wait) + arrived * self.plain[m - 1];
        }
        self.dual[0] = self.dual[0].scaled(wait) + now * self.plain[0];
        self.plain[0] = self.plain[0].scaled(wait);
    }

    /// Times another, which is the same at all nodes.
    #[inline(always)]
    pub(super) fn times<const M: usize>(&self, other: &Arrivals<f64, M>, n: usize) -> Self {
        let mut product = Self {
            plain: [T::all(0.0); N],
            dual: [T::all(0.0); N],
        };
        for m in 0..n {
            let (mut c, mut d) = (T::all(0.0), T::all(0.0));
            for k in 0..=m {
                c = c + self.plain[k].scaled(other.plain[m - k]);
                d = d
                    + self.plain[k].scaled(other.dual[m - k])
                    + self.dual[k].scaled(other.plain[m - k]);
            }
            product.plain[m] = c;
            product.dual[m] = d;
        }
        product
    }

    /// plain_m of the product of two.
    #[inline(always)]
    pub(super) fn plain_of(&self, other: &Self, m: usize) -> T {
        let mut sum = self.plain[0] * other.plain[m];
        for k in 1..=m {
            sum = sum + self.plain[k] * other.plain[m - k];
        }
        sum
    }

    /// dual_m of the product of two.
    #[inline(always)]
    pub(super) fn dual_of(&self, other: &Self, m: usize) -> T {
        let mut sum = T::all(0.0);
        for k in 0..=m {
            sum = sum + self.plain[k] * other.dual[m - k] + self.dual[k] * other.plain[m - k];
        }
        sum
    }

    /// `exp(sum over m >= 1 of p_m z^m) (1 + epsilon sum of q_m z^m)`.
    #[inline(always)]
    pub(super) fn exponential(p: &[T; N], q: &[T; N], n: usize) -> Self {
        let mut result = Self::one();
        for m in 1..n {
            let mut sum = T::all(0.0);
            for (j, (p, plain)) in (1..).zip(p[1..=m].iter().zip(result.plain[..m].iter().rev())) {
                sum = sum + (*p * *plain).scaled(f64::from(j));
            }
            result.plain[m] = sum.scaled(1.0 / m as f64);
        }
        for m in 0..n {
            let mut sum = T::all(0.0);
            for (q, plain) in q[..=m].iter().zip(result.plain[..=m].iter().rev()) {
                sum = sum + *q * *plain;
            }
            result.dual[m] = sum;
        }
        result
    }

    #[inline(always)]
    pub(super) fn scale(&mut self, factor: f64) {
        for value in self.plain.iter_mut().chain(&mut self.dual) {
            *value = value.scaled(factor);
        }
    }
}

/// `POWERS[m][k]` is the coefficient of y^k in (e^y - 1)^m, for k up to [`TERMS`] + 1.
pub(super) const TERMS: usize = 16;
pub(super) const POWERS: [[f64; TERMS + 2]; MOST + 1] = powers();

const fn powers() -> [[f64; TERMS + 2]; MOST + 1] {
    let mut table = [[0.0; TERMS + 2]; MOST + 1];
    table[0][0] = 1.0;
    let mut inverse = 1.0;
    let mut k = 1;
    while k < TERMS + 2 {
        inverse /= k as f64;
        table[1][k] = inverse;
        k += 1;
    }
    let mut m = 2;
    while m <= MOST {
        let mut k = m;
        while k < TERMS + 2 {
            let mut j = 1;
            while j < k {
                table[m][k] += table[1][j] * table[m - 1][k - j];
                j += 1;
            }
            k += 1;
        }
        m += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products token by token against the exponential of power sums.
    #[test]
    fn two_ways_to_multiply() {
        let n = 5;
        let tokens = [(0.1, 0.02), (0.03, 0.01), (0.2, 0.1), (1e-3, 1e-4)];
        let mut product = Arrivals::<f64, MOST>::one();
        let (mut arrived, mut now) = ([0.0; MOST], [0.0; MOST]);
        for &(z, e) in &tokens {
            product.token(n, 1.0, z, e);
            for m in 1..=n as i32 {
                let sign = if m % 2 == 1 { 1.0 } else { -1.0 };
                arrived[m as usize] += sign * f64::powi(z, m) / f64::from(m);
                now[m as usize - 1] += sign * e * f64::powi(z, m - 1);
            }
        }
        let series = Arrivals::exponential(&arrived, &now, n);
        for m in 0..n {
            assert!((product.plain[m] - series.plain[m]).abs() < 1e-16);
            assert!((product.dual[m] - series.dual[m]).abs() < 1e-16);
        }
    }

    #[test]
    fn powers_are_those_of_the_exponential() {
        let y: f64 = 0.01;
        for (m, row) in POWERS.iter().enumerate() {
            let sum: f64 = row.iter().rev().fold(0.0, |sum, c| sum * y + c);
            let direct = y.exp_m1().powi(m as i32);
            assert!((sum / direct - 1.0).abs() < 1e-14, "{m}");
        }
    }
}
