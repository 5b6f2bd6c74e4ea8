//! How many exponential clocks have rung: those of similar rates all at once, at eight times side by
//! side.
//!
//! A clock of rate q has rung by t with odds r = e^{qt} - 1 to 1. For a set of clocks
//!
//! ```text
//! prod over i of (1 + r_i z) = exp(R_1 z - R_2 z^2/2 + R_3 z^3/3 - ...),   R_k = sum r_i^k,
//! ```
//!
//! and R_k is a series in the power sums of q t. While q t is small, twelve power sums
//! stand for any number of clocks.

use multiversion::multiversion;
use specgap_number::distribution::{exp_nonpositive, wait_and_ring};

/// Times side by side, and rates that are summed side by side.
pub(crate) const LANES: usize = 8;

pub(crate) type Lanes = [f64; LANES];

/// Rates summed before their sums join the others in two words.
pub(crate) const CHUNK: usize = 256;

/// Clocks taken one by one between two looks at whether enough has rung.
const TAKEN: usize = 16;

/// Rings that are less likely than this by all times are left out.
pub(crate) const NEGLIGIBLE: f64 = 1e-18;

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

/// Clocks: light ones by their power sums, and others one by one. Each may have a mark, p.
#[derive(Clone, Copy)]
pub(crate) struct Clocks<'a> {
    /// What the light ones are below; their sums of (q/scale)^m and, of marked clocks, of
    /// p (q/scale)^m, m from 1.
    pub(crate) scale: f64,
    pub(crate) plain: &'a [f64; POWERS],
    pub(crate) marked: &'a [f64; POWERS],
    /// Rates of the others, and p entry for entry: anything as long where no clock is marked.
    pub(crate) rates: &'a [f64],
    pub(crate) targets: &'a [f64],
}

/// P(N_t = k) for k from 0, one an entry of `plain`, at rising times, N_t the clocks that have rung by
/// t; and, of marked clocks, t times the density of "the token drawn from p rings at t, after k
/// others". Returns how many of the other clocks were taken before nothing that rings besides changed
/// much at any of the times, and whether it came to that.
///
/// All of it runs in vector registers, in an order that does not depend on how wide they are.
pub(crate) fn ring<const MARKED: bool>(
    clocks: &Clocks<'_>,
    times: &Lanes,
    plain: &mut [Lanes],
    marked: &mut [Lanes],
) -> (usize, bool) {
    match plain.len() {
        3 => ring_few::<3, MARKED>(clocks, times, plain, marked),
        4 => ring_few::<4, MARKED>(clocks, times, plain, marked),
        5 => ring_few::<5, MARKED>(clocks, times, plain, marked),
        6 => ring_few::<6, MARKED>(clocks, times, plain, marked),
        _ => ring_many::<MARKED>(clocks, times, plain, marked),
    }
}

#[multiversion(targets = "simd")]
fn ring_few<const N: usize, const MARKED: bool>(
    clocks: &Clocks<'_>,
    times: &Lanes,
    plain: &mut [Lanes],
    marked: &mut [Lanes],
) -> (usize, bool) {
    let (mut own_plain, mut own_marked) = ([[0.0; LANES]; N], [[0.0; LANES]; N]);
    expand::<MARKED>(clocks, times, &mut own_plain, &mut own_marked);
    let taken = take::<MARKED>(clocks, times, &mut own_plain, &mut own_marked);
    plain.copy_from_slice(&own_plain);
    if MARKED {
        marked.copy_from_slice(&own_marked);
    }
    taken
}

#[multiversion(targets = "simd")]
fn ring_many<const MARKED: bool>(
    clocks: &Clocks<'_>,
    times: &Lanes,
    plain: &mut [Lanes],
    marked: &mut [Lanes],
) -> (usize, bool) {
    expand::<MARKED>(clocks, times, plain, marked);
    take::<MARKED>(clocks, times, plain, marked)
}

/// The light clocks, by Newton's identities with odds in place of rates:
/// k e_k = sum over j of (-1)^{j-1} R_j e_{k-j}; and the sums of p q t r^k.
#[inline(always)]
fn expand<const MARKED: bool>(
    clocks: &Clocks<'_>,
    times: &Lanes,
    plain: &mut [Lanes],
    marked: &mut [Lanes],
) {
    let scale = clocks.scale;
    let terms = terms(scale * times[LANES - 1]);
    let (mut powers, mut marks) = ([[0.0; LANES]; POWERS], [[0.0; LANES]; POWERS]);
    let mut z = [1.0; LANES];
    for m in 0..terms {
        for lane in 0..LANES {
            z[lane] *= scale * times[lane];
            powers[m][lane] = z[lane] * clocks.plain[m];
            if MARKED {
                marks[m][lane] = z[lane] * clocks.marked[m];
            }
        }
    }
    let most = plain.len() - 1;
    let degree = most.min(terms);
    let (mut odds, mut marked_odds) = ([[0.0; LANES]; POWERS + 1], [[0.0; LANES]; POWERS + 1]);
    marked_odds[0] = marks[0];
    for k in 1..=degree {
        for m in k - 1..terms {
            let coefficient = EXPANSION[k - 1][m];
            for lane in 0..LANES {
                odds[k][lane] += coefficient * powers[m][lane];
            }
        }
        for m in if MARKED { k..terms } else { 0..0 } {
            let coefficient = EXPANSION[k - 1][m - 1];
            for lane in 0..LANES {
                marked_odds[k][lane] += coefficient * marks[m][lane];
            }
        }
    }
    plain[0] = [1.0; LANES];
    for k in 1..=most {
        let sum = alternating(&odds, plain, k, 1..=k.min(degree));
        for lane in 0..LANES {
            let value = sum[lane] / k as f64;
            plain[k][lane] = if value > 0.0 { value } else { 0.0 };
        }
    }
    let mut waits = [0.0; LANES];
    for lane in 0..LANES {
        waits[lane] = exp_nonpositive(-powers[0][lane]);
    }
    for k in if MARKED { 0..most + 1 } else { 0..0 } {
        let sum = alternating(&marked_odds, plain, k, 0..=k.min(degree));
        for lane in 0..LANES {
            let value = if sum[lane] > 0.0 { sum[lane] } else { 0.0 };
            marked[k][lane] = value * waits[lane];
        }
    }
    for count in plain {
        for lane in 0..LANES {
            count[lane] *= waits[lane];
        }
    }
}

/// The sum of odds_j counts_{k-j} over these j, the first of them with a plus.
#[inline(always)]
fn alternating(
    odds: &[Lanes],
    counts: &[Lanes],
    k: usize,
    over: std::ops::RangeInclusive<usize>,
) -> Lanes {
    let (mut sum, mut sign) = ([0.0; LANES], 1.0);
    for j in over {
        for lane in 0..LANES {
            sum[lane] += sign * odds[j][lane] * counts[k - j][lane];
        }
        sign = -sign;
    }
    sum
}

/// Clocks one by one.
#[inline(always)]
fn take<const MARKED: bool>(
    clocks: &Clocks<'_>,
    times: &Lanes,
    plain: &mut [Lanes],
    marked: &mut [Lanes],
) -> (usize, bool) {
    let mut taken = 0;
    if is_over::<MARKED>(times, plain) {
        return (taken, true);
    }
    let counts = if MARKED {
        plain.len().min(marked.len())
    } else {
        plain.len()
    };
    for (rates, targets) in clocks.rates.chunks(TAKEN).zip(clocks.targets.chunks(TAKEN)) {
        for (&rate, &p) in rates.iter().zip(targets) {
            let (mut waits, mut rings) = ([0.0; LANES], [0.0; LANES]);
            let mut now = [0.0; LANES];
            for lane in 0..LANES {
                let exponent = rate * times[lane];
                (waits[lane], rings[lane]) = wait_and_ring(exponent);
                if MARKED {
                    now[lane] = p * exponent * waits[lane];
                }
            }
            for k in (1..counts).rev() {
                for lane in 0..LANES {
                    if MARKED {
                        marked[k][lane] = marked[k][lane] * waits[lane]
                            + marked[k - 1][lane] * rings[lane]
                            + now[lane] * plain[k][lane];
                    }
                    plain[k][lane] =
                        plain[k][lane] * waits[lane] + plain[k - 1][lane] * rings[lane];
                }
            }
            for lane in 0..LANES {
                if MARKED {
                    marked[0][lane] = marked[0][lane] * waits[lane] + now[lane] * plain[0][lane];
                }
                plain[0][lane] *= waits[lane];
            }
        }
        taken += rates.len();
        if is_over::<MARKED>(times, plain) {
            return (taken, true);
        }
    }
    (taken, false)
}

/// Returns whether P(N_t < n), of marked clocks t P(N_t < n), is negligible at all of the times.
#[inline(always)]
pub(crate) fn is_over<const MARKED: bool>(times: &Lanes, plain: &[Lanes]) -> bool {
    let mut sums = [0.0; LANES];
    for count in plain {
        for lane in 0..LANES {
            sums[lane] += count[lane];
        }
    }
    let mut over = true;
    for lane in 0..LANES {
        let weight = if MARKED { times[lane] } else { 1.0 };
        over &= weight * sums[lane] < NEGLIGIBLE;
    }
    over
}
