//! Polynomials in z, cut at z^{n-1}, with a first-order part in epsilon.
//!
//! In the race of the tokens' clocks, a token that may be among the drafts by time t
//! has the factor `e + z g + epsilon q e`: it has not rung (e = e^{-qt}), has rung
//! (g = 1 - e), or rings now and is the last draft (density q e). The coefficient of
//! `epsilon z^{n-1}` in a product of such factors is the density of the n-th ring.

/// Most drafts.
pub(super) const MOST: usize = 8;

/// `sum of (c_m + epsilon d_m) z^m` for m < n; what is above stays 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) c: [f64; MOST],
    pub(super) d: [f64; MOST],
}

impl Ring {
    pub(super) const ONE: Self = {
        let mut c = [0.0; MOST];
        c[0] = 1.0;
        Self { c, d: [0.0; MOST] }
    };

    /// Times `wait + z rung + epsilon now`.
    #[inline(always)]
    pub(super) fn token(&mut self, n: usize, wait: f64, rung: f64, now: f64) {
        for m in (1..n).rev() {
            self.d[m] = wait * self.d[m] + rung * self.d[m - 1] + now * self.c[m];
            self.c[m] = wait * self.c[m] + rung * self.c[m - 1];
        }
        self.d[0] = wait * self.d[0] + now * self.c[0];
        self.c[0] *= wait;
    }

    /// Times another of its kind.
    pub(super) fn times(&self, other: &Self, n: usize) -> Self {
        let mut product = Self {
            c: [0.0; MOST],
            d: [0.0; MOST],
        };
        for m in 0..n {
            let (mut c, mut d) = (0.0, 0.0);
            for k in 0..=m {
                c += self.c[k] * other.c[m - k];
                d += self.c[k] * other.d[m - k] + self.d[k] * other.c[m - k];
            }
            product.c[m] = c;
            product.d[m] = d;
        }
        product
    }

    /// c_m of the product of two.
    #[inline(always)]
    pub(super) fn plain(&self, other: &Self, m: usize) -> f64 {
        (0..=m).map(|k| self.c[k] * other.c[m - k]).sum()
    }

    /// d_m of the product of two.
    #[inline(always)]
    pub(super) fn dual(&self, other: &Self, m: usize) -> f64 {
        (0..=m)
            .map(|k| self.c[k] * other.d[m - k] + self.d[k] * other.c[m - k])
            .sum()
    }

    /// `exp(sum over m >= 1 of p_m z^m) (1 + epsilon sum of q_m z^m)`.
    pub(super) fn exponential(p: &[f64; MOST], q: &[f64; MOST], n: usize) -> Self {
        let mut result = Self::ONE;
        for m in 1..n {
            let sum: f64 = (1..=m).map(|j| j as f64 * p[j] * result.c[m - j]).sum();
            result.c[m] = sum / m as f64;
        }
        for m in 0..n {
            result.d[m] = (0..=m).map(|j| q[j] * result.c[m - j]).sum();
        }
        result
    }

    pub(super) fn scale(&mut self, factor: f64) {
        for value in self.c.iter_mut().chain(&mut self.d) {
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
        let mut product = Ring::ONE;
        let (mut rung, mut now) = ([0.0; MOST], [0.0; MOST]);
        for &(z, e) in &tokens {
            product.token(n, 1.0, z, e);
            for m in 1..=n as i32 {
                let sign = if m % 2 == 1 { 1.0 } else { -1.0 };
                rung[m as usize] += sign * f64::powi(z, m) / f64::from(m);
                now[m as usize - 1] += sign * e * f64::powi(z, m - 1);
            }
        }
        let series = Ring::exponential(&rung, &now, n);
        for m in 0..n {
            assert!((product.c[m] - series.c[m]).abs() < 1e-16);
            assert!((product.d[m] - series.d[m]).abs() < 1e-16);
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
