//! Exponential clocks of similar rates, all at once.
//!
//! A clock of rate q has rung by t with odds r = e^{qt} - 1 to 1. For a set of clocks
//!
//! ```text
//! prod over i of (1 + r_i z) = exp(R_1 z - R_2 z^2/2 + R_3 z^3/3 - ...),   R_k = sum r_i^k,
//! ```
//!
//! and R_k is a series in the power sums of q t. While q t is small, twelve power sums
//! stand for any number of clocks.

/// Power sums kept.
pub(crate) const POWERS: usize = 12;

/// Terms beyond this are below 1e-18 of the first, for q t up to `z`.
pub(crate) fn terms(z: f64) -> usize {
    // z < 2^-octaves, and 2^-60 < 1e-18.
    let octaves = 1022usize.saturating_sub((z.to_bits() >> 52) as usize);
    (60 / octaves.max(1) + 2).min(POWERS)
}

/// `EXPANSION[k-1][m-1]` is the coefficient of y^m in (e^y - 1)^k.
pub(crate) const EXPANSION: [[f64; POWERS]; POWERS] = expansion();

const fn expansion() -> [[f64; POWERS]; POWERS] {
    let mut table = [[0.0; POWERS]; POWERS];
    let mut factorial = 1.0;
    let mut m = 0;
    while m < POWERS {
        factorial *= (m + 1) as f64;
        table[0][m] = 1.0 / factorial;
        m += 1;
    }
    let mut k = 1;
    while k < POWERS {
        // (e^y - 1)^{k+1} = (e^y - 1)^k (e^y - 1)
        let mut m = k;
        while m < POWERS {
            let mut i = k - 1;
            while i < m {
                table[k][m] += table[k - 1][i] * table[0][m - i - 1];
                i += 1;
            }
            m += 1;
        }
        k += 1;
    }
    table
}
