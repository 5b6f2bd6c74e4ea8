//! All light tokens at once, by bins of log w.
//!
//! In a bin u^m = e^{-msw} is a polynomial in the place of log w, at every node of s. Tokens
//! enter through sums of moment t^j, and what they emit comes back as one polynomial for each
//! power of q.

use super::arrivals::{MOST, TERMS as POWERS};
use super::race::Class;
use super::time_sums::pairs;
use crate::plan::log_bins::{
    CHUNK, Place, ROOM, Run, TERMS, Table, gather, place_in_bin, power_sums, runs,
};
use multiversion::multiversion;
use specgap_number::distribution::TwoFloat;
use specgap_number::quadrature::{LaplaceGrid, PER_OCTAVE};
use specgap_number::scratch::Scratch;
use std::ops::Range;
use std::sync::LazyLock;

/// As for u itself; u^m is nothing, and 1, at smaller z.
const LOWEST: i64 = -174;
const COUNT: usize = 193;

/// Nodes side by side.
const ABREAST: usize = 8;

/// Bins whose parts of a sum are added up before they join those of the bins before.
const BATCH: usize = 16;

/// By m - 1.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    (1..=MOST)
        .map(|m| {
            let m = m as f64;
            let before = (m.log2() * PER_OCTAVE as f64).ceil() as i64;
            Table::new(m, LOWEST - before, COUNT)
        })
        .collect()
});

/// Tokens of one bin.
#[derive(Clone, Debug)]
struct Bin {
    place: i64,
    /// Powers of q that are used in it.
    terms: usize,
    /// Of the runs.
    members: Range<usize>,
}

/// Light tokens by bins of log w. Within a class they come nearly by rising weight, so
/// that there are hardly more runs than bins.
pub(super) struct Bins<'a> {
    drafts: usize,
    classes: &'a [Class],
    /// log w of the light tokens.
    logs: &'a [f64],
    /// By bin, each with its class and the class's first token.
    runs: Vec<(Run, usize, usize)>,
    bins: Vec<Bin>,
}

impl<'a> Bins<'a> {
    pub(super) fn new(drafts: usize, classes: &'a [Class], logs: &'a [f64]) -> Self {
        let mut all = Vec::new();
        let mut start = 0;
        for (number, class) in classes.iter().enumerate() {
            let own = runs(logs, start..start + class.len());
            all.extend(own.into_iter().map(|run| (run, number, start)));
            start += class.len();
        }
        all.sort_by_key(|(run, ..)| run.bin);
        let mut bins: Vec<Bin> = Vec::new();
        for (index, (run, class, _)) in all.iter().enumerate() {
            let terms = classes[*class].terms;
            match bins.last_mut() {
                Some(bin) if bin.place == run.bin => {
                    bin.terms = bin.terms.max(terms);
                    bin.members.end = index + 1;
                }
                _ => bins.push(Bin {
                    place: run.bin,
                    terms,
                    members: index..index + 1,
                }),
            }
        }
        Self {
            drafts,
            classes,
            logs,
            runs: all,
            bins,
        }
    }

    /// Sums over a bin of moment_k t^j, by k.
    fn power_sums(&self, bin: &Bin) -> [[f64; TERMS]; POWERS] {
        let mut sums = [[TwoFloat::ZERO; TERMS]; POWERS];
        for (run, class, first) in &self.runs[bin.members.clone()] {
            let centre = run.centre();
            let logs = &self.logs[run.members.clone()];
            let own = run.members.start - first..run.members.end - first;
            for (sums, moments) in sums.iter_mut().zip(&self.classes[*class].moments) {
                let chunks = logs.chunks(CHUNK).zip(moments[own.clone()].chunks(CHUNK));
                for (logs, moments) in chunks {
                    let part = power_sums(logs, moments, centre);
                    for (sum, part) in sums.iter_mut().zip(part) {
                        *sum += part;
                    }
                }
            }
        }
        sums.map(|row| row.map(TwoFloat::value))
    }

    /// `sum over tokens of moment_k u^m` by pair, `stride` apart, and node.
    pub(super) fn sums(&self, grid: &LaplaceGrid, terms: usize, stride: usize) -> Scratch<f64> {
        let mut totals = Scratch::filled(pairs(self.drafts, terms).count() * stride, 0.0);
        let mut part = Scratch::filled(totals.len(), 0.0);
        for batch in self.bins.chunks(BATCH) {
            part.fill(0.0);
            for bin in batch {
                let sums = self.power_sums(bin);
                let rows = pairs(self.drafts, terms).zip(part.chunks_exact_mut(stride));
                for ((m, k), part) in rows.filter(|((_, k), _)| *k <= bin.terms) {
                    let table = &TABLES[m - 1];
                    let Place { flat, end, first } = table.place(grid, bin.place);
                    for part in &mut part[..flat] {
                        *part += sums[k - 1][0];
                    }
                    add_polynomial(&sums[k - 1], &table.by_degree, first, &mut part[flat..end]);
                }
            }
            for (total, part) in totals.iter_mut().zip(&part) {
                *total += part;
            }
        }
        totals
    }

    /// What light tokens emit and how it declines, from the coefficients by pair and node.
    pub(super) fn emission(
        &self,
        grid: &LaplaceGrid,
        terms: usize,
        (coefficients, stride): (&[f64], usize),
        weights: &[f64],
        value: &mut [f64],
        decline: &mut [f64],
    ) {
        let steep: Scratch<f64> = (coefficients.chunks_exact(stride))
            .flat_map(|row| {
                let nodes = grid.s.nodes.iter().chain(std::iter::repeat(&0.0));
                row.iter()
                    .zip(nodes)
                    .map(|(coefficient, s)| s * coefficient)
            })
            .collect();
        for bin in &self.bins {
            let values = self.polynomials(grid, terms, (coefficients, stride), bin);
            let declines = self.polynomials(grid, terms, (&steep, stride), bin);
            for (run, class, first) in &self.runs[bin.members.clone()] {
                let class = &self.classes[*class];
                let own = run.members.start - first..run.members.end - first;
                let members = run.members.clone();
                let rows = class.moments.iter().zip(values.iter().zip(&declines));
                for (moments, polynomials) in rows {
                    add_values(
                        &self.logs[members.clone()],
                        run.centre(),
                        polynomials,
                        &moments[own.clone()],
                        &mut value[members.clone()],
                        &mut decline[members.clone()],
                    );
                }
                scale(
                    &weights[members.clone()],
                    &mut value[members.clone()],
                    &mut decline[members],
                );
            }
        }
    }

    /// The sums over m and the nodes of coefficient times u^m in a bin, by k.
    fn polynomials(
        &self,
        grid: &LaplaceGrid,
        terms: usize,
        (coefficients, stride): (&[f64], usize),
        bin: &Bin,
    ) -> [[f64; ROOM]; POWERS] {
        let mut polynomials = [[0.0; ROOM]; POWERS];
        let rows = pairs(self.drafts, terms).zip(coefficients.chunks_exact(stride));
        for ((m, k), row) in rows.filter(|((_, k), _)| *k <= bin.terms) {
            let table = &TABLES[m - 1];
            let Place { flat, end, first } = table.place(grid, bin.place);
            let polynomial = &mut polynomials[k - 1];
            gather(&row[flat..end], &table.by_size[first..], polynomial);
            polynomial[0] += row[..flat].iter().sum::<f64>();
        }
        polynomials
    }
}

/// Adds the polynomial of a bin at every node.
#[multiversion(targets = "simd")]
fn add_polynomial(sums: &[f64; TERMS], by_degree: &[Vec<f64>], first: usize, part: &mut [f64]) {
    let (groups, rest) = part.as_chunks_mut::<ABREAST>();
    let mut at = first;
    for part in groups {
        let mut own = *part;
        for (sum, row) in sums.iter().zip(by_degree) {
            if let Some(row) = row[at..].first_chunk::<ABREAST>() {
                for (own, value) in own.iter_mut().zip(row) {
                    *own += sum * value;
                }
            }
        }
        *part = own;
        at += ABREAST;
    }
    for (part, at) in rest.iter_mut().zip(at..) {
        for (sum, row) in sums.iter().zip(by_degree) {
            *part += sum * row[at];
        }
    }
}

/// Adds moment times polynomial, of two.
#[multiversion(targets = "simd")]
fn add_values(
    logs: &[f64],
    centre: [f64; 2],
    (first, second): (&[f64; ROOM], &[f64; ROOM]),
    moments: &[f64],
    values: &mut [f64],
    declines: &mut [f64],
) {
    let items = logs
        .iter()
        .zip(moments)
        .zip(values.iter_mut().zip(declines));
    for ((log, moment), (value, decline)) in items {
        let t = place_in_bin(*log, centre);
        let (mut a, mut b) = (first[TERMS - 1], second[TERMS - 1]);
        for (one, other) in first[..TERMS - 1].iter().zip(&second[..TERMS - 1]).rev() {
            a = a * t + one;
            b = b * t + other;
        }
        *value += moment * a;
        *decline += moment * b;
    }
}

/// From sums over s to emissions and their declines.
#[multiversion(targets = "simd")]
fn scale(weights: &[f64], values: &mut [f64], declines: &mut [f64]) {
    for ((weight, value), decline) in weights.iter().zip(values).zip(declines) {
        *value *= weight;
        *decline *= weight * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tier::Tier;
    use super::super::times::Times;
    use super::*;
    use crate::plan::log_bins::HALF;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::quadrature::Resolution;

    /// Powers of e^{-sw} against the exponential, and what lies beyond both ends of a table.
    #[test]
    fn tables_are_powers_of_the_exponential() {
        for (table, m) in TABLES.iter().zip(1..) {
            let m = f64::from(m);
            let size =
                |index: i64| (((table.lowest + index) as f64 + 0.5) / PER_OCTAVE as f64).exp2();
            let mut worst = 0.0f64;
            for (index, row) in (0..).zip(&table.by_size) {
                let z = size(index);
                for t in (-20..=20).map(|step| f64::from(step) / 20.0) {
                    let sum = row.iter().rev().fold(0.0, |sum, c| sum * t + c);
                    worst = worst.max((sum - (-m * z * (HALF * t).exp()).exp()).abs());
                }
            }
            assert!(worst < 6e-16, "{m}: {worst}");
            let before = m * size(-1) * HALF.exp();
            let after = m * size(COUNT as i64) * (-HALF).exp();
            assert!(
                before < 5e-18 && (-after).exp() < 1e-27,
                "{m}: {before} {after}"
            );
        }
    }

    /// What tokens emit by bins and one by one at every node, which share neither sums nor
    /// exponentials: weights over some octaves and over hundreds, out of order here and there,
    /// tokens that need few and many powers of q.
    #[test]
    fn bins_and_single_tokens_emit_alike() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (trial, drafts) in [2, 3, 4, 5, 8, 2, 3, 4].into_iter().enumerate() {
            let vocab = 700;
            let fall = [1.02f64, 1.1][trial % 2];
            let raw: Vec<f64> = (0..vocab)
                .map(|token| rng.random_range(0.5..1.5) * fall.powi(-token.min(300)))
                .collect();
            let total: f64 = raw.iter().sum();
            let q: Vec<f64> = raw.iter().map(|x| x / total).collect();
            let p = vec![1.0 / vocab as f64; vocab as usize];
            let times = Times::new(&q, drafts);
            let players: Vec<u32> = (0..vocab as u32).collect();
            let reject = f64::from(u8::from(trial % 3 == 0));
            let tier = Tier::new(&times, drafts, reject, (&p, &q), &players, &[], 0.0);
            let spread = [3.0, 20.0, 60.0, if reject > 0.0 { 500.0 } else { 60.0 }][trial % 4];
            let mut theta: Vec<f64> = (0..tier.tokens.len())
                .map(|item| spread * (item as f64 / 700.0 - 1.0) + rng.random_range(0.0..0.5))
                .collect();
            for _ in 0..20 {
                let (a, b) = (
                    rng.random_range(0..theta.len()),
                    rng.random_range(0..theta.len()),
                );
                theta.swap(a, b);
            }
            let emit = |by_bins| {
                tier.race.emit(
                    &times,
                    &tier.items.classes,
                    &theta,
                    (Resolution::Fine, by_bins),
                    false,
                )
            };
            let (bins, single) = (emit(true), emit(false));
            let all: f64 = single.value.iter().sum();
            assert!(all > 0.01, "{trial}: {all}");
            let off =
                |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum() };
            let error = off(&bins.value, &single.value);
            assert!(error < 2e-14 * all, "{trial}: {error:e} of {all}");
            let error = off(&bins.decline, &single.decline);
            assert!(error < 1e-12 * all, "{trial}: {error:e} of {all}");
        }
    }
}
