//! Polynomials in z, cut at z^{n-1}, with a first-order part in epsilon.
//!
//! In the race of the tokens' clocks, a token that may be among the drafts by time t
//! has the factor `e + z g + epsilon q e`: it has not arrived (e = e^{-qt}), has arrived
//! (g = 1 - e), or arrives now and is the last draft (density q e). The coefficient of
//! `epsilon z^{n-1}` in a product of such factors is the density of the n-th arrival.

use crate::plan::token_plan::MOST_SEQUENTIAL_DRAFTS;

/// Most drafts.
pub(super) const MOST: usize = MOST_SEQUENTIAL_DRAFTS;

/// `sum of (plain_m + epsilon dual_m) z^m` for m < n; what is above stays 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals {
    pub(super) plain: [f64; MOST],
    pub(super) dual: [f64; MOST],
}

impl Arrivals {
    pub(super) const ONE: Self = {
        let mut plain = [0.0; MOST];
        plain[0] = 1.0;
        Self {
            plain,
            dual: [0.0; MOST],
        }
    };

    /// Times `wait + z arrived + epsilon now`.
    #[inline(always)]
    pub(super) fn token(&mut self, n: usize, wait: f64, arrived: f64, now: f64) {
        for m in (1..n).rev() {
            self.dual[m] = wait * self.dual[m] + arrived * self.dual[m - 1] + now * self.plain[m];
            self.plain[m] = wait * self.plain[m] + arrived * self.plain[m - 1];
        }
        self.dual[0] = wait * self.dual[0] + now * self.plain[0];
        self.plain[0] *= wait;
    }

    /// Times another of its kind.
    #[inline(always)]
    pub(super) fn times(&self, other: &Self, n: usize) -> Self {
        let mut product = Self {
            plain: [0.0; MOST],
            dual: [0.0; MOST],
        };
        for m in 0..n {
            let (mut c, mut d) = (0.0, 0.0);
            for k in 0..=m {
                c += self.plain[k] * other.plain[m - k];
                d += self.plain[k] * other.dual[m - k] + self.dual[k] * other.plain[m - k];
            }
            product.plain[m] = c;
            product.dual[m] = d;
        }
        product
    }

    /// plain_m of the product of two.
    #[inline(always)]
    pub(super) fn plain_of(&self, other: &Self, m: usize) -> f64 {
        (0..=m).map(|k| self.plain[k] * other.plain[m - k]).sum()
    }

    /// dual_m of the product of two.
    #[inline(always)]
    pub(super) fn dual_of(&self, other: &Self, m: usize) -> f64 {
        (0..=m)
            .map(|k| self.plain[k] * other.dual[m - k] + self.dual[k] * other.plain[m - k])
            .sum()
    }

    /// `exp(sum over m >= 1 of p_m z^m) (1 + epsilon sum of q_m z^m)`.
    #[inline(always)]
    pub(super) fn exponential(p: &[f64; MOST], q: &[f64; MOST], n: usize) -> Self {
        let mut result = Self::ONE;
        for m in 1..n {
            let sum: f64 = (1..=m).map(|j| j as f64 * p[j] * result.plain[m - j]).sum();
            result.plain[m] = sum / m as f64;
        }
        for m in 0..n {
            result.dual[m] = (0..=m).map(|j| q[j] * result.plain[m - j]).sum();
        }
        result
    }

    pub(super) fn scale(&mut self, factor: f64) {
        for value in self.plain.iter_mut().chain(&mut self.dual) {
            *value *= factor;
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
        let mut product = Arrivals::ONE;
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
