//! Sums over the time of the last draft at one node of s.

use super::arrivals::{Arrivals, MOST, POWERS, TERMS};
use super::race::Race;
use super::times::Times;
use crate::quadrature::Resolution;

/// Pairs that the Hessian's light part is made of.
const STEERING: [(usize, usize); 3] = [(1, 1), (1, 2), (2, 2)];

/// Pairs (m, k) in the order in which sums are kept.
pub(super) fn pairs(drafts: usize, terms: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..=drafts.min(terms)).flat_map(move |m| (m..=terms).map(move |k| (m, k)))
}

/// Places of the pairs of a class among those of the class with most terms.
pub(super) fn places(drafts: usize, terms: usize, all: usize) -> Vec<usize> {
    debug_assert!(terms <= all && all <= TERMS);
    pairs(drafts, all)
        .enumerate()
        .filter(|(_, (m, k))| *m <= drafts.min(terms) && *k <= terms)
        .map(|(place, _)| place)
        .collect()
}

/// Coefficients of a light token's factor at one time, by pair: of z^m and of
/// epsilon z^{m-1} in `(-1)^{m-1} (z r + epsilon q)^m`, over (q tau)^k.
pub(super) struct Expansion {
    arrived: Vec<f64>,
    now: Vec<f64>,
}

/// The entries of an [`Expansion`] for a pair; `scaled` is t over tau.
fn coefficients(m: usize, k: usize, scaled: f64, scale: f64) -> (f64, f64) {
    let sign = if m % 2 == 1 { 1.0 } else { -1.0 };
    (
        sign * POWERS[m][k] * scaled.powi(k as i32),
        sign * m as f64 * POWERS[m - 1][k - 1] * scaled.powi(k as i32 - 1) / scale,
    )
}

impl Expansion {
    pub(super) fn new(drafts: usize, terms: usize, time: f64, scale: f64) -> Self {
        let scaled = time / scale;
        let (arrived, now) = pairs(drafts, terms)
            .map(|(m, k)| coefficients(m, k, scaled, scale))
            .unzip();
        Self { arrived, now }
    }

    /// Product over light tokens of 1 + u (z r + epsilon q), from their sums by pair.
    #[inline(always)]
    pub(super) fn product(&self, sums: &[f64], drafts: usize, terms: usize) -> Arrivals {
        let (mut arrived, mut now) = ([0.0; MOST], [0.0; MOST]);
        let parts = self.arrived.iter().zip(&self.now).zip(sums);
        for ((m, _), ((r, d), sum)) in pairs(drafts, terms).zip(parts) {
            let part = sum / m as f64;
            if m < drafts {
                arrived[m] += r * part;
            }
            now[m - 1] += d * part;
        }
        Arrivals::exponential(&arrived, &now, drafts)
    }
}

/// The nodes of t, ready for any s.
pub(super) struct Column<'a> {
    race: &'a Race,
    times: &'a Times,
    terms: usize,
    weights: &'a [f64],
    /// By node that is used.
    expansions: Vec<Expansion>,
    used: Vec<usize>,
}

/// Sums over t at one s.
pub(super) struct Sums {
    /// By heavy token.
    pub(super) heavy: Vec<f64>,
    /// By pair.
    pub(super) light: Vec<f64>,
    /// Heavy with heavy (upper triangle, full rows), heavy with light, light with
    /// light: only if the Hessian is asked for.
    pub(super) heavy_pairs: Vec<f64>,
    pub(super) mixed: Vec<f64>,
    pub(super) light_pairs: [[f64; 3]; 3],
}

impl<'a> Column<'a> {
    /// For light tokens of at most `terms` powers.
    pub(super) fn new(
        race: &'a Race,
        times: &'a Times,
        resolution: Resolution,
        terms: usize,
    ) -> Self {
        let stride = times.t.stride(resolution);
        let used: Vec<usize> = (0..times.t.len()).step_by(stride).collect();
        Self {
            race,
            times,
            terms,
            weights: times.t.weights_at(resolution),
            expansions: (used.iter())
                .map(|&time| Expansion::new(race.drafts, terms, times.t.nodes[time], times.scale))
                .collect(),
            used,
        }
    }

    /// The sum over t of the product of all tokens, at epsilon z^{n-1}.
    pub(super) fn density(&self, decays: &[f64], sums: &[f64]) -> f64 {
        let weighted = self.weights.iter().enumerate().map(|(index, weight)| {
            weight * self.product(index, decays, sums).dual[self.race.drafts - 1]
        });
        weighted.sum()
    }

    /// Tokens that do not compete and light ones, at a time.
    #[inline(always)]
    fn all_but_heavy<const N: usize>(&self, index: usize, sums: &[f64]) -> Arrivals {
        let n = if N == 0 { self.race.drafts } else { N };
        let time = self.used[index];
        if self.terms == 0 {
            return self.race.base[time];
        }
        let mut light = self.expansions[index].product(sums, n, self.terms);
        light.scale((-self.race.light * self.times.t.nodes[time]).exp());
        light.times(&self.race.base[time], n)
    }

    fn product(&self, index: usize, decays: &[f64], sums: &[f64]) -> Arrivals {
        let race = self.race;
        let mut all = self.all_but_heavy::<0>(index, sums);
        let offset = self.used[index] * race.heavy.len();
        for (h, (&q, &u)) in race.heavy.iter().zip(decays).enumerate() {
            let (wait, arrived) = (race.waits[offset + h], race.arrives[offset + h]);
            all.token(race.drafts, wait, u * arrived, u * q * wait);
        }
        all
    }

    /// All sums over t at one s.
    pub(super) fn sum(&self, decays: &[f64], sums: &[f64], couple: bool) -> Sums {
        // Loops over powers of z whose length is known are no loops.
        match self.race.drafts {
            2 => self.sum_of::<2>(decays, sums, couple),
            3 => self.sum_of::<3>(decays, sums, couple),
            4 => self.sum_of::<4>(decays, sums, couple),
            _ => self.sum_of::<0>(decays, sums, couple),
        }
    }

    /// The same for N drafts, or for any number where N = 0.
    fn sum_of<const N: usize>(&self, decays: &[f64], sums: &[f64], couple: bool) -> Sums {
        let race = self.race;
        let n = if N == 0 { race.drafts } else { N };
        let heavy = race.heavy.len();
        let mut result = Sums {
            heavy: vec![0.0; heavy],
            light: vec![0.0; sums.len()],
            heavy_pairs: vec![0.0; if couple { heavy * heavy } else { 0 }],
            mixed: vec![0.0; if couple { 3 * heavy } else { 0 }],
            light_pairs: [[0.0; 3]; 3],
        };
        let mut after = vec![Arrivals::ONE; heavy + 1];
        for (index, (&time, &weight)) in self.used.iter().zip(self.weights).enumerate() {
            let offset = time * heavy;
            let waits = &race.waits[offset..offset + heavy];
            let arrives = &race.arrives[offset..offset + heavy];
            for h in (0..heavy).rev() {
                let mut next = after[h + 1];
                let (q, u) = (race.heavy[h], decays[h]);
                next.token(n, waits[h], u * arrives[h], u * q * waits[h]);
                after[h] = next;
            }
            let mut before = self.all_but_heavy::<N>(index, sums);
            for h in 0..heavy {
                let (q, u, wait, arrived) = (race.heavy[h], decays[h], waits[h], arrives[h]);
                let now = q * wait;
                let plain = before.plain_of(&after[h + 1], n - 1);
                let dual = before.dual_of(&after[h + 1], n - 2);
                result.heavy[h] += weight * (arrived * dual + now * plain);
                if couple {
                    self.couple(h, index, weight, decays, &before, &after, &mut result);
                }
                before.token(n, wait, u * arrived, u * now);
            }
            // `before` is now the whole product.
            let expansion = &self.expansions[index];
            let parts = expansion.arrived.iter().zip(&expansion.now);
            for (((m, _), (arrived, now)), slot) in
                pairs(n, self.terms).zip(parts).zip(&mut result.light)
            {
                let dual = if m < n { before.dual[n - 1 - m] } else { 0.0 };
                *slot += weight * (arrived * dual + now * before.plain[n - m]);
            }
            if couple {
                let steering = self.steering(index);
                for (row, &(p, a, b)) in result.light_pairs.iter_mut().zip(&steering) {
                    for (slot, &(q, c, d)) in row.iter_mut().zip(&steering) {
                        let plain = if p + q <= n {
                            before.plain[n - p - q]
                        } else {
                            0.0
                        };
                        let dual = if p + q < n {
                            before.dual[n - 1 - p - q]
                        } else {
                            0.0
                        };
                        *slot += weight * (a * c * dual + (a * d + b * c) * plain);
                    }
                }
            }
        }
        result
    }

    /// (m, coefficient of z^m, coefficient of epsilon z^{m-1}) of the steering pairs.
    fn steering(&self, index: usize) -> [(usize, f64, f64); 3] {
        let n = self.race.drafts;
        let scaled = self.times.t.nodes[self.used[index]] / self.times.scale;
        STEERING.map(|(m, k)| {
            let (arrived, now) = coefficients(m, k, scaled, self.times.scale);
            if m <= n {
                (m, arrived, now)
            } else {
                (m, 0.0, 0.0)
            }
        })
    }

    /// Pairs of heavy token h with the light tokens and with the heavy ones before it.
    #[expect(clippy::too_many_arguments, reason = "one node, one caller")]
    fn couple(
        &self,
        h: usize,
        index: usize,
        weight: f64,
        decays: &[f64],
        before: &Arrivals,
        after: &[Arrivals],
        result: &mut Sums,
    ) {
        let race = self.race;
        let n = race.drafts;
        let heavy = race.heavy.len();
        let offset = self.used[index] * heavy;
        let factor = |h: usize| {
            let wait = race.waits[offset + h];
            (wait, race.arrives[offset + h], race.heavy[h] * wait)
        };
        let (_, arrived, now) = factor(h);
        if self.terms > 0 {
            for (slot, (m, a, b)) in result.mixed[3 * h..3 * h + 3]
                .iter_mut()
                .zip(self.steering(index))
            {
                let mut sum = 0.0;
                if n >= m + 2 {
                    sum += arrived * a * before.dual_of(&after[h + 1], n - 2 - m);
                }
                if n > m {
                    sum += (arrived * b + now * a) * before.plain_of(&after[h + 1], n - 1 - m);
                }
                *slot += weight * sum;
            }
        }
        let mut middle = *before;
        for j in h + 1..heavy {
            let (wait, other_rung, other_now) = factor(j);
            let plain = middle.plain_of(&after[j + 1], n - 2);
            let dual = if n > 2 {
                middle.dual_of(&after[j + 1], n - 3)
            } else {
                0.0
            };
            result.heavy_pairs[j * heavy + h] += weight
                * (arrived * other_rung * dual + (arrived * other_now + now * other_rung) * plain);
            let u = decays[j];
            middle.token(n, wait, u * other_rung, u * other_now);
        }
    }
}
