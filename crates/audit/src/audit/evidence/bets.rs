//! Bets whose capital cannot grow under the null, whatever the engine does within it.
//!
//! The claimed law of an outcome o is c, known from the log's rows before o is. The engine's
//! law is c', unknown. A bet is a function b >= 0 of the outcome with E_c b = 1, and R is the
//! largest value of b less the smallest. Its *drift* is d = (E_c' b - 1)/R, the difference
//! that c' makes to the mean of a score in [0, 1]. With a tolerance e, the capital is
//! multiplied by
//!
//! ```text
//! b(o) / ((1 + e R)(1 + ROUNDING))
//! ```
//!
//! If d <= e at every step, the capital is a supermartingale, since E_c' b = 1 + d R. More
//! generally the product of b/(1 + d R) is a martingale, so that the capital stays below one
//! wherever the sum of ln(1 + d R) is at most the sum of ln(1 + e R). `docs/theory/audit.md` has
//! the proof and what the second form allows.

/// The part of every bet that is not staked, so that one outcome that a bug excludes does
/// not end the suspicion.
pub(crate) const KEPT: f64 = 0.02;

/// What sums over all tokens may be off by, relatively: paid at every step.
const ROUNDING: f64 = 1e-9;

/// Where likelihood ratios are cut.
const CAPS: [f64; 16] = [
    1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 4096.0, 1e6,
];

/// The parts of a cut bet that are played.
const FRACTIONS: [f64; 3] = [1.0, 0.5, 0.2];

/// Bins of the ratio r/c: four an octave, from 2^-20 to 2^21.
const BINS: usize = 41 * 4;

/// How much of a bet against a bug is staked, and with which weight: all of it, or part,
/// for an engine that has the bug now and then.
pub(crate) const STAKES: [(f64, f64); 3] = [(1.0, 0.5), (0.25, 0.25), (0.0625, 0.25)];

/// Stakes on a score, up and down, each with the same weight.
pub(crate) const SCORE_STAKES: [f64; 14] = [
    0.8, 0.4, 0.2, 0.1, 0.05, 0.025, 0.0125, -0.8, -0.4, -0.2, -0.1, -0.05, -0.025, -0.0125,
];

/// The logarithm of what a stake multiplies the capital by: `gain` is b(o) - 1 and `range`
/// is R at a stake of 1.
pub(crate) fn log_step(gain: f64, range: f64, stake: f64, tolerance: f64) -> f64 {
    (stake * gain).ln_1p() - (tolerance * stake.abs() * range).ln_1p() - ROUNDING
}

/// A bet on one law against another: their ratio, cut at a cap (which is what a test against
/// all laws near c should play, Huber 1965), and less of it where that grows faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bet {
    cap: f64,
    /// E_c min(r/c, cap).
    total: f64,
    fraction: f64,
    /// R.
    pub range: f64,
}

impl Bet {
    /// The bet on `bug` against `claimed` that grows fastest under `bug`, from laws over the
    /// same outcomes; `None` if none grows. O(V).
    pub(crate) fn new(claimed: &[f64], bug: &[f64], tolerance: f64) -> Option<Self> {
        let mut bins = [(0.0f64, 0.0f64); BINS];
        let (mut lowest, mut highest) = (f64::INFINITY, 0.0f64);
        // Mass of the bug where the claim has none.
        let mut outside = 0.0;
        for (&c, &r) in claimed.iter().zip(bug) {
            if c > 0.0 {
                let ratio = r / c;
                lowest = lowest.min(ratio);
                highest = highest.max(ratio);
                if let Some(bin) = bins.get_mut(bin(ratio)) {
                    bin.0 += c;
                    bin.1 += r;
                }
            } else if r > 0.0 {
                outside += r;
                highest = f64::INFINITY;
            }
        }
        if highest - lowest < 1e-9 {
            return None;
        }
        let filled = bins.iter().filter(|(c, _)| *c > 0.0);
        let filled = filled.map(|&(c, r)| (r / c, c, KEPT.mul_add(c, (1.0 - KEPT) * r)));
        let filled: Vec<(f64, f64, f64)> = filled.collect();
        let outside = (1.0 - KEPT) * outside;
        let mut best: Option<(f64, f64, f64)> = None;
        for cap in CAPS {
            let total: f64 = filled.iter().map(|(ratio, c, _)| c * ratio.min(cap)).sum();
            let range = (1.0 - KEPT) * (highest.min(cap) - lowest) / total;
            let gain = |ratio: f64| (1.0 - KEPT) * (ratio.min(cap) / total - 1.0);
            for fraction in FRACTIONS {
                let inside = filled.iter();
                let inside = inside.map(|&(ratio, _, r)| r * (fraction * gain(ratio)).ln_1p());
                let inside: f64 = inside.sum();
                let beyond = match outside > 0.0 {
                    true => outside * (fraction * gain(cap)).ln_1p(),
                    false => 0.0,
                };
                let growth = inside + beyond - (tolerance * fraction * range).ln_1p() - ROUNDING;
                if growth > best.map_or(0.0, |(growth, ..)| growth) {
                    best = Some((growth, cap, fraction));
                }
            }
            if cap >= highest {
                break;
            }
        }
        let (_, cap, fraction) = best?;
        let total: f64 = claimed.iter().zip(bug).map(|(&c, &r)| r.min(cap * c)).sum();
        Some(Self {
            cap,
            total,
            fraction,
            range: fraction * (1.0 - KEPT) * (highest.min(cap) - lowest) / total,
        })
    }

    /// b(o) - 1, from what both laws give the outcome.
    pub(crate) fn gain(&self, claimed: f64, bug: f64) -> f64 {
        let ratio = if claimed > 0.0 {
            (bug / claimed).min(self.cap)
        } else if bug > 0.0 {
            self.cap
        } else {
            return 0.0;
        };
        self.fraction * (1.0 - KEPT) * (ratio / self.total - 1.0)
    }
}

/// Four bins an octave.
fn bin(ratio: f64) -> usize {
    let lowest = (1023u64 - 20) << 2;
    let place = (ratio.to_bits() >> 50).saturating_sub(lowest);
    usize::try_from(place).unwrap_or(BINS).min(BINS - 1)
}

/// ln of a sum of e^x.
pub(crate) fn log_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.map(|x| (x - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMED: [f64; 4] = [0.5, 0.3, 0.2, 0.0];

    /// The capital's mean after one step, over a law.
    fn mean(law: &[f64], bet: &Bet, bug: &[f64], stake: f64, tolerance: f64) -> f64 {
        let step = |i: usize| log_step(bet.gain(CLAIMED[i], bug[i]), bet.range, stake, tolerance);
        (0..4).map(|i| law[i] * step(i).exp()).sum()
    }

    /// Growth of half the square of the difference, against 1e-9 that a step costs.
    #[test]
    fn a_bet_that_gains_less_than_it_costs_is_not_made() {
        let bug = |off: f64| [0.5 + off, 0.3 - off, 0.2, 0.0];
        assert_eq!(Bet::new(&CLAIMED, &CLAIMED, 0.0), None);
        assert_eq!(Bet::new(&CLAIMED, &bug(1e-6), 0.0), None);
        assert!(Bet::new(&CLAIMED, &bug(1e-3), 0.0).is_some());
        assert_eq!(Bet::new(&CLAIMED, &bug(1e-3), 0.1), None);
    }

    #[test]
    fn a_bet_is_fair_under_the_claim_and_unfavourable_within_the_tolerance() {
        let bugs = [
            [0.1, 0.2, 0.7, 0.0],
            [1.0, 0.0, 0.0, 0.0],
            [0.4, 0.3, 0.2, 0.1],
        ];
        for tolerance in [0.0, 0.002, 0.05] {
            for bug in &bugs {
                let bet = Bet::new(&CLAIMED, bug, tolerance).unwrap();
                for (stake, _) in STAKES {
                    let fair = mean(&CLAIMED, &bet, bug, stake, 0.0);
                    // But for what is paid for rounding.
                    assert!((fair - 1.0 + ROUNDING).abs() < 1e-13, "{fair}");
                    // The worst law within total variation `tolerance`: mass moves from the
                    // outcome with the smallest gain that has any to the one with the largest.
                    // Without paying for it the bet would be favourable there.
                    let (mut worst, mut unpaid) = (0.0f64, 0.0f64);
                    for (from, to) in (0..3).flat_map(|a| (0..4).map(move |b| (a, b))) {
                        let mut law = CLAIMED;
                        law[from] -= tolerance;
                        law[to] += tolerance;
                        worst = worst.max(mean(&law, &bet, bug, stake, tolerance));
                        unpaid = unpaid.max(mean(&law, &bet, bug, stake, 0.0));
                    }
                    assert!(worst <= 1.0, "{bug:?} {tolerance} {worst}");
                    assert!(unpaid > 1.0 || tolerance == 0.0, "{bug:?} {tolerance}");
                }
            }
        }
    }

    /// Returns how fast the capital of a bet grows under the bug, E_c min(r/c, cap), and R: from the
    /// definition, outcome by outcome.
    fn growth(
        [claimed, bug]: [&[f64]; 2],
        (cap, fraction): (f64, f64),
        tolerance: f64,
    ) -> (f64, f64, f64) {
        let pairs = || claimed.iter().zip(bug).filter(|(c, r)| **c + **r > 0.0);
        let ratio = |c: f64, r: f64| if c > 0.0 { r / c } else { f64::INFINITY };
        let cut = |c: f64, r: f64| ratio(c, r).min(cap);
        let total: f64 = pairs().map(|(&c, &r)| r.min(cap * c)).sum();
        let gain = |c: f64, r: f64| fraction * 0.98 * (cut(c, r) / total - 1.0);
        let gains: Vec<f64> = pairs().map(|(&c, &r)| gain(c, r)).collect();
        let range = gains.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b))
            - gains.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        let mean = pairs().zip(&gains);
        let mean = mean.map(|((c, r), gain)| (0.02 * c + 0.98 * r) * (1.0 + gain).ln());
        let mean: f64 = mean.sum();
        (mean - (1.0 + tolerance * range).ln(), total, range)
    }

    /// Every outcome has a bin of its own in these laws, so that bins change nothing.
    #[test]
    fn the_bet_that_grows_fastest_is_played() {
        let claimed = [0.4, 0.3, 0.2, 0.05, 0.05, 0.0, 0.0];
        let bugs = [
            [0.1, 0.2, 0.6, 0.03, 0.07, 0.0, 0.0],
            [0.38, 0.25, 0.2, 0.1, 0.07, 0.0, 0.0],
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            [0.36, 0.24, 0.22, 0.0675, 0.0925, 0.02, 0.0],
            [0.2, 0.1, 0.1, 0.01, 0.0, 0.59, 0.0],
            [0.41, 0.282, 0.17, 0.03, 0.108, 0.0, 0.0],
        ];
        let mut played = std::collections::BTreeSet::new();
        for tolerance in [0.0, 0.002, 0.02, 0.1] {
            for bug in &bugs {
                let mut best: Option<(f64, f64, f64)> = None;
                for cap in CAPS {
                    for fraction in FRACTIONS {
                        let (grows, ..) = growth([&claimed, bug], (cap, fraction), tolerance);
                        if grows > best.map_or(2e-9, |(most, ..)| most + 1e-12) {
                            best = Some((grows, cap, fraction));
                        }
                    }
                }
                let found = Bet::new(&claimed, bug, tolerance);
                let Some((most, ..)) = best else {
                    assert_eq!(found, None, "{bug:?} {tolerance}");
                    continue;
                };
                let found = found.unwrap();
                let (cap, fraction) = (found.cap, found.fraction);
                let (same, total, range) = growth([&claimed, bug], (cap, fraction), tolerance);
                assert!((same - most).abs() < 1e-11, "{found:?} {same} {most}");
                assert!((found.total - total).abs() < 1e-15, "{found:?} {total}");
                let off = found.range / range - 1.0;
                assert!(off.abs() < 1e-12, "{found:?} {range}");
                for (&c, &r) in claimed.iter().zip(bug) {
                    let ratio = if c > 0.0 { (r / c).min(cap) } else { cap };
                    let gain = fraction * 0.98 * (ratio / total - 1.0);
                    let expected = if c + r > 0.0 { gain } else { 0.0 };
                    assert!((found.gain(c, r) - expected).abs() < 1e-14, "{c} {r}");
                }
                played.insert((cap.to_bits(), fraction.to_bits()));
            }
        }
        assert!(played.len() >= 6, "{}", played.len());
        // Nothing of the claim is left by a bug that puts all elsewhere: hard checks see that.
        assert_eq!(Bet::new(&[1.0, 0.0], &[0.0, 1.0], 0.0), None);
    }

    #[test]
    fn bins_are_four_an_octave() {
        for place in 0..BINS {
            let (octave, quarter) = (place as i32 / 4 - 20, place % 4);
            let least = (1.0 + 0.25 * quarter as f64) * 2f64.powi(octave);
            let below = [least.next_down(), least].map(bin);
            assert_eq!(below, [place.saturating_sub(1), place]);
        }
        let beyond = [0.0, 2f64.powi(-30), 2f64.powi(21), f64::INFINITY];
        assert_eq!(beyond.map(bin), [0, 0, BINS - 1, BINS - 1]);
    }

    /// (1 + s g)/(1 + e |s| R), less what rounding is paid.
    #[test]
    fn a_step_multiplies_capital_as_said() {
        for (gain, range, stake, tolerance, factor) in [
            (0.5, 2.0, 1.0, 0.0, 1.5),
            (0.5, 2.0, 0.5, 0.0, 1.25),
            (0.5, 2.0, -0.5, 0.0, 0.75),
            (0.5, 2.0, 1.0, 0.25, 1.0),
            (-0.5, 3.0, 0.5, 0.1, 0.75 / 1.15),
            (-0.5, 3.0, -0.5, 0.1, 1.25 / 1.15),
        ] {
            let log = log_step(gain, range, stake, tolerance);
            let expected = f64::ln(factor) - 1e-9;
            assert!((log - expected).abs() < 1e-15, "{gain} {stake} {tolerance}");
        }
    }

    #[test]
    fn log_sums_do_not_overflow() {
        let sum = log_sum([1e5, 1e5].into_iter());
        assert!((sum - 1e5 - 2f64.ln()).abs() < 1e-9);
        assert_eq!(log_sum(std::iter::empty()), f64::NEG_INFINITY);
        let none = f64::NEG_INFINITY;
        assert_eq!(log_sum([none, none].into_iter()), none);
        assert!((log_sum([0.0, none, 3f64.ln()].into_iter()) - 4f64.ln()).abs() < 1e-15);
    }
}
