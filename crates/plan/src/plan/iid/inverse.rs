//! log w of every token in a given field: the inverse of F.
//!
//! In the coordinate of the wanted ratio, log w is smooth and nearly a straight line. So in a bin
//! of the coordinate that holds many tokens Newton's method runs at the nodes of a Chebyshev series
//! alone, and the series has log w of the tokens. Where it does not fall fast enough, and
//! in bins of few tokens, Newton's method runs for each token. How near the outcome is to what is
//! wanted is measured afterwards, whichever way it came.

use super::emission::Field;
use super::groups::Curve;
use super::kernels::Bins;
use super::tier::Tier;
use crate::plan::log_bins::{HALF, Run, TERMS, chebyshev, place_in_bin, runs};
use multiversion::multiversion;
use specgap_number::scratch::Scratch;
use std::ops::Range;
use std::sync::LazyLock;

/// Bins of fewer tokens cost less token by token.
const MANY: usize = 48;

/// Longest last step of Newton's method: the next would be about its square.
const CLOSE: f64 = 1e-7;

/// Steps at most.
const STEPS: usize = 4;

/// Most that the last two coefficients of a series may be.
const TAIL: f64 = 2e-13;

/// Nodes in a bin, and what makes a series of the values there.
struct Nodes {
    /// From -1 to 1, ascending.
    at: [f64; TERMS],
    /// Shares of the values in a coefficient, by coefficient.
    shares: [[f64; TERMS]; TERMS],
    /// The polynomial of each coefficient, in powers.
    powers: [[f64; TERMS]; TERMS],
}

static NODES: LazyLock<Nodes> = LazyLock::new(|| {
    let angle = |node: usize| (TERMS - 1 - node) as f64 + 0.5;
    let step = std::f64::consts::PI / TERMS as f64;
    let share = |k: usize| if k == 0 { 1.0 } else { 2.0 } / TERMS as f64;
    Nodes {
        at: std::array::from_fn(|node| (angle(node) * step).cos()),
        shares: std::array::from_fn(|k| {
            std::array::from_fn(|node| share(k) * (k as f64 * angle(node) * step).cos())
        }),
        powers: chebyshev(),
    }
});

/// Fills in log w of tokens with these coordinates, which ascend; `curve` has a first guess.
pub(super) fn fill(
    tier: &Tier,
    field: &Field,
    curve: &Curve,
    coordinates: &[f64],
    logs: &mut [f64],
) {
    let bins = runs(coordinates, 0..coordinates.len());
    let mut points = Scratch::with_capacity(coordinates.len());
    for bin in &bins {
        if by_series(bin) {
            let [high, low] = bin.centre();
            points.extend(NODES.at.iter().map(|t| high + (low + HALF * t)));
        } else {
            points.extend_from_slice(&coordinates[bin.members.clone()]);
        }
    }
    let (found, steps) = follow(tier, field, curve, &points);
    let mut start = 0;
    let mut left: Vec<Range<usize>> = Vec::new();
    for bin in &bins {
        let members = bin.members.clone();
        if !by_series(bin) {
            let end = start + members.len();
            logs[members].copy_from_slice(&found[start..end]);
            start = end;
            continue;
        }
        let own = start..start + TERMS;
        start = own.end;
        let close = steps[own.clone()].iter().all(|step| step.abs() <= CLOSE);
        match series(&found[own]).filter(|_| close) {
            Some((middle, powers)) => {
                let (tokens, logs) = (&coordinates[members.clone()], &mut logs[members]);
                evaluate(tokens, bin.centre(), middle, &powers, logs);
            }
            None => left.push(members),
        }
    }
    let points: Scratch<f64> = (left.iter())
        .flat_map(|members| &coordinates[members.clone()])
        .copied()
        .collect();
    let (found, _) = follow(tier, field, curve, &points);
    let mut start = 0;
    for members in left {
        let end = start + members.len();
        logs[members].copy_from_slice(&found[start..end]);
        start = end;
    }
}

fn by_series(bin: &Run) -> bool {
    bin.members.len() >= MANY
}

/// log w at each coordinate by Newton's method from the curve, and the last step.
fn follow(
    tier: &Tier,
    field: &Field,
    curve: &Curve,
    coordinates: &[f64],
) -> (Scratch<f64>, Scratch<f64>) {
    let mut logs = Scratch::filled(coordinates.len(), 0.0);
    let mut steps = logs.clone();
    if coordinates.is_empty() {
        return (logs, steps);
    }
    curve.fill(coordinates, &mut logs);
    for _ in 0..STEPS {
        steps.copy_from_slice(&logs);
        Bins::new(&logs).improve(tier, field, coordinates, &mut logs);
        for (step, log) in steps.iter_mut().zip(&logs) {
            *step = log - *step;
        }
        if steps.iter().all(|step| step.abs() <= CLOSE) {
            break;
        }
    }
    (logs, steps)
}

/// The polynomial through the values at the nodes: the middle one, and the difference from it in
/// powers of t; `None` if the series does not fall to nothing.
fn series(values: &[f64]) -> Option<(f64, [f64; TERMS])> {
    let middle = values[TERMS / 2];
    let coefficients = NODES.shares.map(|shares| {
        let terms = shares.iter().zip(values);
        terms.map(|(share, value)| share * (value - middle)).sum()
    });
    let [.., before, last]: [f64; TERMS] = coefficients;
    if before.abs() + last.abs() > TAIL {
        return None;
    }
    let mut powers = [0.0; TERMS];
    for (coefficient, polynomial) in coefficients.iter().zip(&NODES.powers) {
        for (power, own) in powers.iter_mut().zip(polynomial) {
            *power += coefficient * own;
        }
    }
    powers
        .iter()
        .all(|power| power.is_finite())
        .then_some((middle, powers))
}

#[multiversion(targets = "simd")]
fn evaluate(
    coordinates: &[f64],
    centre: [f64; 2],
    middle: f64,
    powers: &[f64; TERMS],
    logs: &mut [f64],
) {
    for (log, coordinate) in logs.iter_mut().zip(coordinates) {
        let t = place_in_bin(*coordinate, centre);
        let mut sum = powers[TERMS - 1];
        for power in powers[..TERMS - 1].iter().rev() {
            sum = sum * t + power;
        }
        *log = middle + sum;
    }
}

#[cfg(test)]
mod tests {
    use super::super::emission::State;
    use super::super::groups::Groups;
    use super::super::kernels;
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The polynomial of degree 12 through values at the nodes is the one that they are of; and
    /// values that no such polynomial comes near are refused.
    #[test]
    fn a_series_is_what_it_was_made_of() {
        let polynomial = |t: f64| 30.0 + t * (0.7 + t * (-0.02 + t * (3e-3 - 1e-5 * t * t)));
        let values = NODES.at.map(polynomial);
        assert!(values.is_sorted());
        let (middle, powers) = series(&values).unwrap();
        assert!((middle - 30.0).abs() < 1e-14, "{middle}");
        let centre = [2.0, 0.0];
        let coordinates: Vec<f64> = (-8..=8)
            .map(|step| 2.0 + HALF * f64::from(step) / 8.0)
            .collect();
        let mut logs = vec![0.0; coordinates.len()];
        evaluate(&coordinates, centre, middle, &powers, &mut logs);
        for (log, x) in logs.iter().zip(&coordinates) {
            let direct = polynomial((x - 2.0) / HALF);
            assert!((log - direct).abs() < 2e-14, "{x}: {log} {direct}");
        }
        // T_11 and T_12 are in the tail, and |t| is far from all of them.
        for (degree, refused) in [(10, false), (11, true), (12, true)] {
            let cosine = |t: f64| (f64::from(degree) * t.acos()).cos();
            let values = NODES.at.map(|t| t + 2.0 * TAIL * cosine(t));
            assert_eq!(series(&values).is_none(), refused, "{degree}");
        }
        assert!(series(&NODES.at.map(f64::abs)).is_none());
        assert!(series(&[f64::NAN; TERMS]).is_none());
        assert!(series(&[f64::INFINITY; TERMS]).is_none());
    }

    /// A tier of tokens by way of its groups, solved.
    struct Solved {
        /// Of groups.
        tier: Tier,
        groups: Groups,
        /// Of the tokens.
        coordinates: Scratch<f64>,
        state: State,
        slope: Vec<f64>,
    }

    impl Solved {
        /// Tokens with these masses, wanted at these ratios, in a tier that has none yet.
        fn new(tier: Tier, mass: &[f64], wanted: &[f64]) -> Self {
            let coordinates = kernels::coordinates(&tier, wanted);
            let groups = Groups::new(&tier, mass, wanted, &coordinates, 1e-11);
            let tier = Tier {
                mass: groups.mass.clone(),
                ratio: groups.ratio.clone(),
                ..tier
            };
            let (state, _) = tier.solve(None, 1e-12, 60);
            let (_, slope) = tier.emission(&state.field, &state.weights);
            Self {
                tier,
                groups,
                coordinates,
                state,
                slope,
            }
        }

        /// log w by the groups' weights, or by others in their place.
        fn curve(&self, state: &State) -> Curve {
            Curve::new(&self.tier, &self.groups, state, &self.slope)
        }
    }

    /// Tokens of a tier in the field of its groups: F at the log w that were filled in is what
    /// was wanted, for bins of many tokens and of few, and nearly without ties.
    #[test]
    fn what_is_filled_in_emits_what_was_wanted() {
        let mut rng = ChaCha8Rng::seed_from_u64(21);
        for (trial, count) in [60, 400, 3000, 20_000, 3000, 20_000]
            .into_iter()
            .enumerate()
        {
            let drafts = 2 + trial % 3;
            let mut mass: Vec<f64> = (0..count)
                .map(|_| (-2.0 * rng.random::<f64>()).exp())
                .collect();
            let total: f64 = mass.iter().sum();
            let (base, rejected) = if trial < 4 {
                (0.0, Some(0.02))
            } else {
                (0.2, None)
            };
            mass.iter_mut()
                .for_each(|mass| *mass *= (1.0 - base) / total);
            let tier = Tier {
                mass: Vec::new(),
                ratio: Vec::new(),
                base,
                inside: 1.0,
                drafts,
                rejected,
            };
            // Rising with the mass below, but less steeply than of a prefix that is a minimiser.
            let (low, _) = tier.range();
            let mut below = 0.0;
            let mut wanted: Vec<f64> = (mass.iter())
                .map(|mass| {
                    below += mass;
                    below.powf(0.8)
                })
                .collect();
            let all: f64 = mass.iter().zip(&wanted).map(|(q, rise)| q * rise).sum();
            let touched = 1.0 - base.powi(drafts as i32) - rejected.unwrap_or(0.0);
            let scale = (touched - low * (1.0 - base)) / all;
            for wanted in &mut wanted {
                *wanted = low + scale * *wanted;
            }
            let solved = Solved::new(tier, &mass, &wanted);
            let (tier, coordinates, state) = (&solved.tier, &solved.coordinates, &solved.state);
            let curve = solved.curve(state);
            let mut logs = vec![0.0; count];
            fill(tier, &state.field, &curve, coordinates, &mut logs);
            let bins = runs(coordinates, 0..count);
            let by_series = bins.iter().filter(|bin| by_series(bin)).count();
            assert_eq!(by_series > 10, count >= 3000, "{trial}: {by_series}");
            let weights: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let (value, _) = tier.emission(&state.field, &weights);
            let (_, up) = tier.range();
            for ((value, ratio), x) in value.iter().zip(&wanted).zip(coordinates) {
                let error = (value - ratio).abs();
                assert!(error < 4e-15 * up, "{trial}, {x}: {value} for {ratio}");
            }
        }
    }

    /// A curve that is far off takes Newton's method far: then no series is believed, and each
    /// token takes its own steps.
    #[test]
    fn tokens_of_a_poor_curve_take_their_own_steps() {
        let count = 600;
        let mass = vec![1.0 / count as f64; count];
        let tier = Tier {
            mass: Vec::new(),
            ratio: Vec::new(),
            base: 0.0,
            inside: 1.0,
            drafts: 2,
            rejected: Some(0.1),
        };
        let wanted: Vec<f64> = (0..count)
            .map(|token| 0.9 * (1.0 + 0.02 * (token as f64 / 300.0 - 1.0)))
            .collect();
        let solved = Solved::new(tier, &mass, &wanted);
        let (tier, coordinates, state) = (&solved.tier, &solved.coordinates, &solved.state);
        let mut state_off = state.clone();
        state_off
            .weights
            .iter_mut()
            .for_each(|weight| *weight *= 1e-9);
        let curve = solved.curve(&state_off);
        let mut logs = vec![0.0; count];
        fill(tier, &state.field, &curve, coordinates, &mut logs);
        // As steps for each token leave them.
        let (alone, steps) = follow(tier, &state.field, &curve, coordinates);
        assert!(steps.iter().any(|step| step.abs() > CLOSE));
        assert_eq!(logs[..], alone[..]);
    }
}
