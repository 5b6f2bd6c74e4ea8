//! All tokens of a tier at once, by [bins of log w](super::super::log_bins).
//!
//! Tokens enter through sums of mass t^k, and the emission comes back as one polynomial a bin.

use super::emission::Field;
use super::newton::LONGEST_STEP;
use super::tier::{MARGIN, Tier};
use crate::plan::log_bins::{
    CHUNK, HALF, LANES, Place, ROOM, Run, TERMS, Table, add_scaled, gather, place_in_bin,
    power_sums, runs,
};
use multiversion::multiversion;
use specgap_number::distribution::{
    LANES as LANES_OF_SUM, SplitSum, TwoFloat, exp_bounded, for_lanes, ln_normal,
};
use specgap_number::quadrature::LaplaceGrid;
use specgap_number::scratch::Scratch;
use std::sync::LazyLock;

/// Emissions are off by at most n times this, in sum: the error of the polynomials where
/// they make phi, and its integral over z up to 72 where emissions are read back.
pub(super) const ERROR: f64 = 5e-17;

/// z = 2^((i + 1/2)/3) for i from LOWEST up: before, f is 1 to 4e-18, and after, below
/// e^-64.
const LOWEST: i64 = -174;
const COUNT: usize = 192;

/// Bins whose parts of a transform are added up before they join those of the bins before.
const BATCH: usize = 16;

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(1.0, LOWEST, COUNT));

/// The tokens of a tier by bins of log w. Tokens come by rising p/q, so that there are
/// hardly more runs than bins.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    runs: Vec<Run>,
    lowest: i64,
    /// From the lowest bin to the highest.
    count: usize,
}

impl Bins {
    /// `logs` has log w of every token, within what [`exp_bounded`] takes.
    pub(super) fn new(logs: &[f64]) -> Self {
        let runs = runs(logs, 0..logs.len());
        let bins = || runs.iter().map(|run| run.bin);
        let (lowest, count) = match (bins().min(), bins().max()) {
            (Some(lowest), Some(highest)) => (lowest, (highest - lowest) as usize + 1),
            _ => (0, 0),
        };
        Self {
            runs,
            lowest,
            count,
        }
    }

    fn slot(&self, run: &Run) -> usize {
        (run.bin - self.lowest) as usize
    }

    /// Sum of mass e^{-s w} at every node.
    pub(super) fn transform(&self, grid: &LaplaceGrid, mass: &[f64], logs: &[f64]) -> Vec<f64> {
        let mut sums = vec![[TwoFloat::ZERO; TERMS]; self.count];
        for run in &self.runs {
            let members = run.members.clone();
            let slot = self.slot(run);
            let chunks = logs[members.clone()].chunks(CHUNK);
            for (logs, mass) in chunks.zip(mass[members].chunks(CHUNK)) {
                let own = power_sums(logs, mass, run.centre());
                for (sum, own) in sums[slot].iter_mut().zip(own) {
                    *sum += own;
                }
            }
        }
        let mut totals = vec![0.0; grid.s.len()];
        let mut part = vec![0.0; grid.s.len()];
        for (first, sums) in (self.lowest..).step_by(BATCH).zip(sums.chunks(BATCH)) {
            part.fill(0.0);
            for (bin, sums) in (first..).zip(sums) {
                let sums = sums.map(TwoFloat::value);
                if sums[0] == 0.0 {
                    continue;
                }
                let Place { flat, end, first } = TABLE.place(grid, bin);
                for part in &mut part[..flat] {
                    *part += sums[0];
                }
                for (sum, row) in sums.iter().zip(&TABLE.by_degree) {
                    add_scaled(*sum, &row[first..], &mut part[flat..end]);
                }
            }
            for (total, part) in totals.iter_mut().zip(&part) {
                *total += part;
            }
        }
        totals
    }

    /// By how many units of 2^-53 of its mass a transform is off at most, beside the table:
    /// `docs/theory/plans.md` counts them.
    pub(super) fn roundings(&self) -> usize {
        let own = CHUNK / LANES + 2 * TERMS + 4;
        own + BATCH * TERMS + self.count.div_ceil(BATCH)
    }

    /// For every bin the sum over nodes of coefficient times f.
    fn polynomials(&self, field: &Field) -> Vec<[f64; ROOM]> {
        let mut polynomials = vec![[0.0; ROOM]; self.count];
        let mut used = vec![false; self.count];
        for run in &self.runs {
            used[self.slot(run)] = true;
        }
        let rows = (self.lowest..).zip(polynomials.iter_mut().zip(used));
        for (bin, (polynomial, used)) in rows {
            if !used {
                continue;
            }
            let Place { flat, end, first } = TABLE.place(&field.grid, bin);
            gather(
                &field.coefficients[flat..end],
                &TABLE.by_size[first..],
                polynomial,
            );
            polynomial[0] += field.coefficients[..flat].iter().sum::<f64>();
        }
        polynomials
    }

    /// F at every token.
    pub(super) fn emission(
        &self,
        tier: &Tier,
        field: &Field,
        logs: &[f64],
        weights: &[f64],
    ) -> Scratch<f64> {
        let (low, _) = tier.range();
        let polynomials = self.polynomials(field);
        let mut values = Scratch::filled(logs.len(), 0.0);
        for run in &self.runs {
            let members = run.members.clone();
            emit(
                &logs[members.clone()],
                &weights[members.clone()],
                run.centre(),
                &polynomials[self.slot(run)],
                low,
                &mut values[members],
            );
        }
        values
    }

    /// One Newton step for every token in a given field; `coordinate` is that of the
    /// wanted ratio.
    pub(super) fn improve(&self, tier: &Tier, field: &Field, coordinate: &[f64], logs: &mut [f64]) {
        let (low, up) = tier.range();
        let polynomials = self.polynomials(field);
        let margin = MARGIN * up;
        let ends = Ends {
            low,
            up,
            floor: if tier.rejected.is_some() { 0.0 } else { margin },
            margin,
        };
        for run in &self.runs {
            let members = run.members.clone();
            step(
                &ends,
                run.centre(),
                &polynomials[self.slot(run)],
                &coordinate[members.clone()],
                &mut logs[members],
            );
        }
    }
}

#[multiversion(targets = "simd")]
fn emit(
    logs: &[f64],
    weights: &[f64],
    centre: [f64; 2],
    polynomial: &[f64; ROOM],
    low: f64,
    values: &mut [f64],
) {
    for ((value, log), weight) in values.iter_mut().zip(logs).zip(weights) {
        let t = place_in_bin(*log, centre);
        let mut sum = polynomial[TERMS - 1];
        for coefficient in polynomial[..TERMS - 1].iter().rev() {
            sum = sum * t + coefficient;
        }
        *value = low + weight * sum;
    }
}

/// The range of F, and how near to its ends log odds are taken.
struct Ends {
    low: f64,
    up: f64,
    floor: f64,
    margin: f64,
}

/// As [`Tier::inverse_step`], a token a lane.
#[multiversion(targets = "simd")]
fn step(
    ends: &Ends,
    centre: [f64; 2],
    polynomial: &[f64; ROOM],
    coordinate: &[f64],
    logs: &mut [f64],
) {
    for (log, wanted) in logs.iter_mut().zip(coordinate) {
        let t = place_in_bin(*log, centre);
        let (mut sum, mut derivative) = (polynomial[TERMS - 1], 0.0);
        for coefficient in polynomial[..TERMS - 1].iter().rev() {
            derivative = derivative * t + sum;
            sum = sum * t + coefficient;
        }
        let weight = exp_bounded(*log);
        let over = weight * sum;
        let slope = weight * (sum + derivative * (1.0 / HALF));
        let below = if over > ends.floor { over } else { ends.floor };
        let rest = ends.up - (ends.low + over);
        let above = if rest > ends.margin {
            rest
        } else {
            ends.margin
        };
        let odds = below / above;
        let offset = wanted - ln_normal(odds);
        // The rate of the log odds is slope (1/below + 1/above).
        let step = (offset * below) / (slope * (1.0 + odds));
        let step = if step < LONGEST_STEP {
            step
        } else {
            LONGEST_STEP
        };
        let step = if step > -LONGEST_STEP {
            step
        } else {
            -LONGEST_STEP
        };
        // Where F is flat, and where it is 0, the slope says nothing.
        let step = if slope > 0.0 && below > 0.0 {
            step
        } else {
            0.0
        };
        *log += step;
    }
}

/// log((rho - r_low)/(r_up - rho)) of every ratio, as [`Tier::coordinate`].
pub(super) fn coordinates(tier: &Tier, ratio: &[f64]) -> Scratch<f64> {
    let (low, up) = tier.range();
    let mut coordinates = Scratch::filled(ratio.len(), 0.0);
    let floor = tier.least_above_low();
    log_odds(ratio, [low, up], [floor, MARGIN * up], &mut coordinates);
    coordinates
}

#[multiversion(targets = "simd")]
fn log_odds(ratio: &[f64], [low, up]: [f64; 2], [floor, margin]: [f64; 2], odds: &mut [f64]) {
    for (odds, ratio) in odds.iter_mut().zip(ratio) {
        let (below, above) = (ratio - low, up - ratio);
        let below = if below > floor { below } else { floor };
        let above = if above > margin { above } else { margin };
        *odds = ln_normal(below / above);
    }
}

/// Masses times F, and the sum of |mass ratio - that|.
#[multiversion(targets = "simd")]
pub(super) fn emitted(mass: &[f64], ratio: &[f64], values: &mut [f64]) -> f64 {
    const WIDE: usize = 8;
    let mut sums = [0.0; WIDE];
    let rows = mass.chunks(WIDE).zip(ratio.chunks(WIDE));
    for (values, (mass, ratio)) in values.chunks_mut(WIDE).zip(rows) {
        for (((sum, value), mass), ratio) in sums.iter_mut().zip(values).zip(mass).zip(ratio) {
            *value *= mass;
            *sum += (mass * ratio - *value).abs();
        }
    }
    sums.iter().sum()
}

/// Adds what is accepted: of each token what it emits, at most p.
#[multiversion(targets = "simd")]
pub(super) fn add_accepted(target: &[f64], emitted: &[f64], accepted: &mut SplitSum) {
    for_lanes(target, emitted, |target, emitted| {
        let mut kept = [0.0; LANES_OF_SUM];
        for lane in 0..LANES_OF_SUM {
            let (p, a) = (target[lane], emitted[lane]);
            let positive = if a > 0.0 { a } else { 0.0 };
            kept[lane] = if a > p { p } else { positive };
        }
        accepted.add(&kept);
    });
}

#[cfg(test)]
mod tests {
    use super::super::super::log_bins::{WIDTH, exponentials, series};
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::distribution::compensated_sum;
    use specgap_number::quadrature::PER_OCTAVE;

    /// Where nothing is emitted whatever the weight is, it stays.
    #[test]
    fn a_weight_without_a_slope_stays() {
        let ends = Ends {
            low: 0.0,
            up: 1.0,
            floor: 1e-3,
            margin: 1e-3,
        };
        let mut logs = [0.25, -1.5];
        step(&ends, [0.0; 2], &[0.0; ROOM], &[3.0, -3.0], &mut logs);
        assert_eq!(logs, [0.25, -1.5]);
    }

    /// The table against the exponential, and what the emission of a token can be off by:
    /// the integral of the error over z.
    #[test]
    fn the_table_is_the_exponential() {
        let mut worst = [0.0f64; 2];
        for t in (-50..=50).map(|step| f64::from(step) / 50.0) {
            let mut integral = 0.0;
            for (index, row) in (LOWEST..).zip(&TABLE.by_size) {
                let z = ((index as f64 + 0.5) / PER_OCTAVE as f64).exp2();
                let sum = row.iter().rev().fold(0.0, |sum, c| sum * t + c);
                let error = (sum - (-z * (HALF * t).exp()).exp()).abs();
                worst[0] = worst[0].max(error);
                integral += WIDTH * z * error;
            }
            worst[1] = worst[1].max(integral);
        }
        assert!(worst[0] < 5e-16 && worst[1] < 1e-15, "{worst:?}");
        // Beyond both ends.
        assert!((series(((LOWEST as f64 - 0.5) / 3.0).exp2())[0] - 1.0).abs() < 1e-16);
        assert!(series(((LOWEST as f64 + COUNT as f64 + 0.5) / 3.0).exp2())[0].abs() < 1e-23);
    }

    /// 1/1, 1/2 .. of the powers of t that count, and nothing of those beyond.
    #[test]
    fn emission_in_a_bin_is_its_polynomial() {
        let polynomial: [f64; ROOM] =
            std::array::from_fn(|k| if k < TERMS { 1.0 / (k + 1) as f64 } else { 1e9 });
        let places = [-1.0, -0.5, 0.0, 0.75, 1.0];
        let logs = places.map(|t| 2.0 + HALF * t);
        let mut values = [0.0; 5];
        emit(
            &logs,
            &[0.5; 5],
            [2.0, 0.0],
            &polynomial,
            0.125,
            &mut values,
        );
        for (value, t) in values.into_iter().zip(places) {
            let terms = (0i32..).zip(&polynomial[..TERMS]);
            let sum: f64 = terms.map(|(k, share)| share * t.powi(k)).sum();
            assert!((value - (0.125 + 0.5 * sum)).abs() < 1e-14, "{t}: {value}");
        }
    }

    /// Tokens of a tier: log w mostly rising, some out of order, some far away.
    fn tokens(rng: &mut ChaCha8Rng, count: usize, spread: f64) -> (Vec<f64>, Vec<f64>) {
        let mut logs: Vec<f64> = (0..count)
            .map(|_| spread * (rng.random::<f64>() - 0.5))
            .collect();
        logs.sort_by(f64::total_cmp);
        for _ in 0..count / 20 {
            let (a, b) = (rng.random_range(0..count), rng.random_range(0..count));
            logs.swap(a, b);
        }
        let mass = (0..count)
            .map(|_| 0.9 * rng.random::<f64>() / count as f64)
            .collect();
        (logs, mass)
    }

    #[test]
    fn agrees_with_an_exponential_a_token_and_node() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for trial in 0..24u32 {
            let count = [1, 2, 7, 300][trial as usize % 4];
            let spread = [0.1, 3.0, 20.0, 90.0, 400.0, 600.0][trial as usize % 6];
            let (logs, mass) = tokens(&mut rng, count, spread);
            let mut weights = vec![0.0; count];
            exponentials(&logs, &mut weights);
            let drafts = 1 + trial as usize % 4;
            let rejected = (trial % 3 == 0).then_some(0.01);
            let tier = Tier {
                mass: Vec::new(),
                ratio: Vec::new(),
                base: 0.05,
                inside: 0.05 + mass.iter().sum::<f64>(),
                drafts,
                rejected,
            };
            let grid = tier.grid(&weights);
            let bins = Bins::new(&logs);
            let binned = bins.transform(&grid, &mass, &logs);
            for (m, (s, sum)) in grid.s.nodes.iter().zip(&binned).enumerate() {
                let terms = mass.iter().zip(&weights).map(|(m, w)| m * (-s * w).exp());
                let direct = compensated_sum(terms);
                let all: f64 = mass.iter().sum();
                assert!(
                    (sum - direct).abs() < 4e-15 * all,
                    "{trial} {m}: {sum} {direct}"
                );
            }
            let field = tier.field_at(grid, binned);
            let (values, slopes) = tier.emission(&field, &weights);
            let (low, up) = tier.range();
            let found = bins.emission(&tier, &field, &logs, &weights);
            for (token, (own, w)) in found.iter().zip(&weights).enumerate() {
                // Doubled exponentials lose digits over hundreds of octaves.
                let terms = (field.coefficients.iter().zip(&field.grid.s.nodes))
                    .map(|(c, s)| c * (-s * w).exp());
                let direct = low + w * compensated_sum(terms);
                assert!(
                    (own - direct).abs() < 4e-15 * up,
                    "{trial} {token}: {own} {direct}"
                );
            }
            // A step towards ratios nearby.
            let wanted: Vec<f64> = (values.iter())
                .map(|value| value * rng.random_range(0.9..1.1))
                .collect();
            let coordinate = coordinates(&tier, &wanted);
            for (own, &ratio) in coordinate.iter().zip(&wanted) {
                let direct = tier.coordinate(ratio);
                assert!((own - direct).abs() <= 1e-14 * direct.abs().max(1.0));
            }
            let mut moved = logs.clone();
            bins.improve(&tier, &field, &coordinate, &mut moved);
            for token in 0..count {
                if slopes[token] < 1e-6 * up {
                    continue;
                }
                let step = tier.inverse_step(values[token], slopes[token], wanted[token]);
                let own = moved[token] - logs[token];
                assert!((step - own).abs() < 1e-6, "{trial} {token}: {own} {step}");
            }
        }
    }

    #[test]
    fn nothing_and_what_is_no_number_are_no_trouble() {
        assert_eq!(Bins::new(&[]).count, 0);
        let grid = LaplaceGrid::new(1e-6, 1e4);
        assert!(
            Bins::new(&[])
                .transform(&grid, &[], &[])
                .iter()
                .all(|&sum| sum == 0.0)
        );
        for logs in [[f64::NAN, 0.0], [-690.0, 690.0], [1e-20, -1e-20]] {
            let bins = Bins::new(&logs);
            let sums = bins.transform(&grid, &[0.5, 0.5], &logs);
            assert_eq!(sums.len(), grid.s.len());
        }
    }
}
