//! The time t of the last draft in the race of the tokens' timess: nodes of the integral
//! over t, and how many powers of q t a token needs there.
//!
//! The integrand is `e^{-t} q_k product of r_j(t)`, r = e^{qt} - 1, summed over tuples
//! with weights. In x = log t it is that of `crates/number/src/quadrature/log_time.rs`, and so is the bound
//! on the error of a trapezoidal rule: 8e-16 for n = 2, 7e-14 for n = 4 at three nodes an
//! octave, 5e-16 for n = 8 at four. The left end, below t = 0.02, is that of a
//! [`GeometricGrid`]. On the right the sum ends where P(fewer than n drafts) < 1e-19.

use super::arrivals::{MOST, POWERS, TERMS};
use specgap_number::quadrature::{GeometricGrid, log_time_error};

/// First node.
const START: f64 = 0.02;

/// P(N_t < n) at which the integral ends.
const NEGLIGIBLE: f64 = 1e-19;

/// Octaves of t at most.
const OCTAVES: usize = 960;

/// What leaving out higher powers of q t may do, relative to q.
const TRUNCATION: f64 = 1e-15;

/// The nodes in t.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) t: GeometricGrid,
    /// tau: powers of q are kept as powers of q tau.
    pub(super) scale: f64,
    /// Bound on the trapezoidal rule's error.
    pub(super) error: f64,
    /// P(N_t < n) after the last node.
    pub(super) missed: f64,
    /// Largest q for which k powers do, by k.
    limits: [f64; TERMS + 1],
}

/// Number and mass of the tokens with q in an octave.
#[derive(Clone, Copy, Debug, Default)]
struct Octave {
    count: f64,
    mass: f64,
}

/// P(fewer than `drafts` tokens by `time`), about: all tokens of an octave arrive alike.
fn still_fewer(octaves: &[Octave], drafts: usize, time: f64) -> f64 {
    let mut arrived = [0.0; MOST];
    arrived[0] = 1.0;
    for octave in octaves {
        let rate = octave.mass / octave.count * time;
        let odds = -(-rate).exp_m1();
        // Binomial coefficients times odds^m (1 - odds)^(count - m).
        let mut own = [0.0; MOST];
        let mut choose = 1.0;
        for (m, own) in own.iter_mut().enumerate().take(drafts) {
            let left = octave.count - m as f64;
            if left < 0.0 {
                break;
            }
            *own = choose * (-rate * left).exp();
            choose *= odds * left / (m + 1) as f64;
        }
        for m in (0..drafts).rev() {
            arrived[m] = (0..=m).map(|k| arrived[k] * own[m - k]).sum();
        }
    }
    arrived[..drafts].iter().sum()
}

impl Times {
    /// For `drafts` >= 2 drafts out of more than `drafts` tokens.
    pub(super) fn new(draft: &[f64], drafts: usize) -> Self {
        let mut bins = vec![Octave::default(); 2048];
        for &q in draft.iter().filter(|&&q| q > 0.0) {
            let bin = &mut bins[(q.to_bits() >> 52) as usize & 2047];
            bin.count += 1.0;
            bin.mass += q;
        }
        bins.retain(|bin| bin.mass > 0.0);
        let per_octave = if drafts <= 4 { 3 } else { 4 };
        let per = per_octave as f64;
        let start = (START.log2() * per).floor();
        let mut times: Vec<f64> = Vec::new();
        let mut tail = 1.0;
        // ln of the k-th moment of the time of the last draft.
        let mut moments = [f64::NEG_INFINITY; TERMS + 2];
        let mut before = 0.0f64;
        while times.len() < per_octave * OCTAVES
            && (!times.len().is_multiple_of(per_octave)
                || times.len() < 8 * per_octave
                || tail > NEGLIGIBLE)
        {
            let time = ((start + times.len() as f64) / per).exp2();
            for (k, moment) in moments.iter_mut().enumerate().skip(1) {
                let rise = tail * -(before / time).powi(k as i32) + tail;
                *moment = log_sum(*moment, rise.ln() + k as f64 * time.ln());
            }
            tail = still_fewer(&bins, drafts, time);
            before = time;
            times.push(time);
        }
        let mut limits = [0.0f64; TERMS + 1];
        for terms in 1..=TERMS {
            let worst = (1..=drafts.min(terms + 1))
                .map(|m| POWERS[m][terms + 1])
                .fold(0.0, f64::max);
            let log = TRUNCATION.ln() - worst.ln() - moments[terms + 1] + moments[1];
            limits[terms] = (log / terms as f64).exp().max(limits[terms - 1]);
        }
        Self {
            scale: before,
            error: log_time_error(drafts, std::f64::consts::LN_2 / per),
            missed: tail,
            limits,
            t: GeometricGrid::new(times, per_octave),
        }
    }

    /// Powers of q that a token needs; `None` if it is heavy.
    pub(super) fn terms(&self, q: f64) -> Option<usize> {
        (q <= self.limits[TERMS]).then(|| {
            let terms = self.limits.partition_point(|&limit| limit < q);
            // Few classes: from 6 on every other number of powers.
            match terms.max(1) {
                terms @ ..=5 => terms,
                terms @ ..=8 => terms.next_multiple_of(2),
                terms @ ..=12 => terms.next_multiple_of(4),
                _ => TERMS,
            }
        })
    }
}

fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = (a.min(b), a.max(b));
    if high == f64::NEG_INFINITY || high.is_nan() {
        return a;
    }
    high + (low - high).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::quadrature::Resolution;

    /// The time of the last draft from very many tokens is gamma distributed.
    #[test]
    fn integrates_gamma_densities_to_the_stated_error() {
        let draft = vec![1e-6; 1_000_000];
        for drafts in 2..=MOST {
            let times = Times::new(&draft, drafts);
            assert!(times.missed <= NEGLIGIBLE);
            // Whole octaves, as the coarse grid takes one time of each.
            let per_octave = if drafts <= 4 { 3 } else { 4 };
            assert_eq!(times.t.stride(Resolution::Coarse), per_octave);
            assert!(times.t.len().is_multiple_of(per_octave), "{drafts}");
            assert!(times.error < 1e-13, "n = {drafts}: {}", times.error);
            let factorial: f64 = (1..drafts).map(|k| k as f64).product();
            let terms = times.t.nodes.iter().zip(&times.t.weights);
            let sum: f64 = terms
                .map(|(t, weight)| weight * t.powi(drafts as i32 - 1) * (-t).exp() / factorial)
                .sum();
            assert!(
                (sum - 1.0).abs() < 1e-14 + times.error,
                "n = {drafts}: {sum}"
            );
        }
    }

    #[test]
    fn light_tokens_need_fewer_powers() {
        let mut draft = vec![1e-6; 900_000];
        draft.push(0.1);
        let times = Times::new(&draft, 3);
        assert_eq!(times.terms(0.1), None);
        let terms: Vec<usize> = [1e-2, 1e-3, 1e-4, 1e-6, 1e-17]
            .iter()
            .filter_map(|&q| times.terms(q))
            .collect();
        assert!(terms.windows(2).all(|pair| pair[0] >= pair[1]), "{terms:?}");
        assert_eq!(terms.last(), Some(&1));
    }
}
