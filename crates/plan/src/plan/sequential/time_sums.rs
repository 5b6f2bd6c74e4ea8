//! Sums over the time of the last draft, at several nodes of s side by side.

use super::arrivals::{Arrivals, Lanes, MOST, POWERS, TERMS, Value};
use super::race::Race;
use super::times::Times;
use multiversion::multiversion;
use specgap_number::quadrature::Resolution;

/// Pairs that the Hessian's light part is made of.
pub(super) const PARTS: usize = 3;
pub(super) const STEERING: [(usize, usize); PARTS] = [(1, 1), (1, 2), (2, 2)];

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
    pub(super) fn product<T: Value, const N: usize>(
        &self,
        sums: &[T],
        drafts: usize,
        terms: usize,
    ) -> Arrivals<T, N> {
        let (mut arrived, mut now) = ([T::all(0.0); N], [T::all(0.0); N]);
        let mut parts = self.arrived.iter().zip(&self.now).zip(sums);
        for m in 1..=drafts.min(terms) {
            let (mut r_sum, mut d_sum) = (T::all(0.0), T::all(0.0));
            for ((r, d), sum) in parts.by_ref().take(terms + 1 - m) {
                r_sum = r_sum + sum.scaled(*r);
                d_sum = d_sum + sum.scaled(*d);
            }
            let share = 1.0 / m as f64;
            if m < drafts {
                arrived[m] = r_sum.scaled(share);
            }
            now[m - 1] = d_sum.scaled(share);
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
    /// By node that is used: e^{-qt}, q all light tokens.
    quiet: Vec<f64>,
}

/// Sums over t at some nodes of s.
pub(super) struct Sums {
    /// By heavy token.
    pub(super) heavy: Vec<Lanes>,
    /// By pair.
    pub(super) light: Vec<Lanes>,
    /// Heavy with heavy (upper triangle, full rows), heavy with light, light with
    /// light: only if the Hessian is asked for.
    pub(super) heavy_pairs: Vec<Lanes>,
    pub(super) mixed: Vec<Lanes>,
    pub(super) light_pairs: [[Lanes; PARTS]; PARTS],
    /// Of the product of all tokens, at epsilon z^{n-1}.
    pub(super) density: Lanes,
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
        let nodes = used.iter().map(|&time| times.t.nodes[time]);
        Self {
            race,
            times,
            terms,
            weights: times.t.weights_at(resolution),
            expansions: (nodes.clone())
                .map(|time| Expansion::new(race.drafts, terms, time, times.scale))
                .collect(),
            quiet: nodes.map(|time| (-race.light * time).exp()).collect(),
            used,
        }
    }

    /// All sums over t at [`LANES`] nodes of s: `decays` has e^{-sw} of the heavy tokens, `sums`
    /// those of the light ones by pair.
    pub(super) fn sum(&self, decays: &[Lanes], sums: &[Lanes], couple: bool) -> Sums {
        let heavy = decays.len();
        let zero = Lanes::all(0.0);
        let mut result = Sums {
            heavy: vec![zero; heavy],
            light: vec![zero; sums.len()],
            heavy_pairs: vec![zero; if couple { heavy * heavy } else { 0 }],
            mixed: vec![zero; if couple { PARTS * heavy } else { 0 }],
            light_pairs: [[zero; PARTS]; PARTS],
            density: zero,
        };
        sum(self, decays, sums, couple, &mut result);
        result
    }

    /// The same for N drafts, or for any number where N is the most.
    #[inline(always)]
    fn sum_of<const N: usize>(
        &self,
        decays: &[Lanes],
        sums: &[Lanes],
        couple: bool,
        result: &mut Sums,
    ) {
        let race = self.race;
        let n = if N == MOST { race.drafts } else { N };
        let heavy = decays.len();
        let mut after = vec![Arrivals::<Lanes, N>::one(); heavy + 1];
        for (index, (&time, &weight)) in self.used.iter().zip(self.weights).enumerate() {
            let offset = time * heavy;
            let waits = &race.waits[offset..offset + heavy];
            let arrives = &race.arrives[offset..offset + heavy];
            for h in (0..heavy).rev() {
                let mut next = after[h + 1];
                let (q, u) = (race.heavy[h], decays[h]);
                next.token(n, waits[h], u.scaled(arrives[h]), u.scaled(q * waits[h]));
                after[h] = next;
            }
            let expansion = &self.expansions[index];
            // Tokens that do not compete and light ones.
            let mut before: Arrivals<Lanes, N> = if self.terms == 0 {
                Arrivals::one().times(&race.base[time], n)
            } else {
                let mut light: Arrivals<Lanes, N> = expansion.product(sums, n, self.terms);
                light.scale(self.quiet[index]);
                light.times(&race.base[time], n)
            };
            for h in 0..heavy {
                let (q, u, wait, arrived) = (race.heavy[h], decays[h], waits[h], arrives[h]);
                let now = q * wait;
                let plain = before.plain_of(&after[h + 1], n - 1);
                let dual = before.dual_of(&after[h + 1], n - 2);
                result.heavy[h] =
                    result.heavy[h] + (dual.scaled(arrived) + plain.scaled(now)).scaled(weight);
                if couple {
                    self.couple(h, index, weight, decays, &before, &after, result);
                }
                before.token(n, wait, u.scaled(arrived), u.scaled(now));
            }
            // `before` is now the whole product.
            result.density = result.density + before.dual[n - 1].scaled(weight);
            let parts = expansion.arrived.iter().zip(&expansion.now);
            let mut slots = result.light.iter_mut().zip(parts);
            for m in 1..=n.min(self.terms) {
                let plain = before.plain[n - m].scaled(weight);
                if m < n {
                    let dual = before.dual[n - 1 - m].scaled(weight);
                    for (slot, (arrived, now)) in slots.by_ref().take(self.terms + 1 - m) {
                        *slot = *slot + (dual.scaled(*arrived) + plain.scaled(*now));
                    }
                } else {
                    for (slot, (_, now)) in slots.by_ref().take(self.terms + 1 - m) {
                        *slot = *slot + plain.scaled(*now);
                    }
                }
            }
            if couple {
                let steering = self.steering(index);
                for (row, &(p, a, b)) in result.light_pairs.iter_mut().zip(&steering) {
                    for (slot, &(q, c, d)) in row.iter_mut().zip(&steering) {
                        if p + q <= n {
                            let factor = weight * (a * d + b * c);
                            *slot = *slot + before.plain[n - p - q].scaled(factor);
                        }
                        if p + q < n {
                            *slot = *slot + before.dual[n - 1 - p - q].scaled(weight * (a * c));
                        }
                    }
                }
            }
        }
    }

    /// (m, coefficient of z^m, coefficient of epsilon z^{m-1}) of the steering pairs.
    fn steering(&self, index: usize) -> [(usize, f64, f64); PARTS] {
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
    #[inline(always)]
    fn couple<const N: usize>(
        &self,
        h: usize,
        index: usize,
        weight: f64,
        decays: &[Lanes],
        before: &Arrivals<Lanes, N>,
        after: &[Arrivals<Lanes, N>],
        result: &mut Sums,
    ) {
        let race = self.race;
        let n = if N == MOST { race.drafts } else { N };
        let heavy = decays.len();
        let offset = self.used[index] * heavy;
        let factor = |h: usize| {
            let wait = race.waits[offset + h];
            (wait, race.arrives[offset + h], race.heavy[h] * wait)
        };
        let (_, arrived, now) = factor(h);
        if self.terms > 0 {
            for (slot, (m, a, b)) in result.mixed[PARTS * h..PARTS * h + PARTS]
                .iter_mut()
                .zip(self.steering(index))
            {
                if n >= m + 2 {
                    let dual = before.dual_of(&after[h + 1], n - 2 - m);
                    *slot = *slot + dual.scaled(weight * (arrived * a));
                }
                if n > m {
                    let plain = before.plain_of(&after[h + 1], n - 1 - m);
                    *slot = *slot + plain.scaled(weight * (arrived * b + now * a));
                }
            }
        }
        let mut middle = *before;
        for j in h + 1..heavy {
            let (wait, other_rung, other_now) = factor(j);
            let plain = middle.plain_of(&after[j + 1], n - 2);
            let slot = &mut result.heavy_pairs[j * heavy + h];
            *slot = *slot + plain.scaled(weight * (arrived * other_now + now * other_rung));
            if n > 2 {
                let dual = middle.dual_of(&after[j + 1], n - 3);
                *slot = *slot + dual.scaled(weight * (arrived * other_rung));
            }
            let u = decays[j];
            middle.token(n, wait, u.scaled(other_rung), u.scaled(other_now));
        }
    }
}

#[multiversion(targets = "simd")]
fn sum(column: &Column<'_>, decays: &[Lanes], sums: &[Lanes], couple: bool, result: &mut Sums) {
    // Loops over powers of z whose length is known are no loops.
    match column.race.drafts {
        2 => column.sum_of::<2>(decays, sums, couple, result),
        3 => column.sum_of::<3>(decays, sums, couple, result),
        4 => column.sum_of::<4>(decays, sums, couple, result),
        _ => column.sum_of::<MOST>(decays, sums, couple, result),
    }
}
