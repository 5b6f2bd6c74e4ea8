//! One half of the split: who competes, the race's clock, and what is emitted.
//!
//! `u_j = e^{-s w_j}`, `f_j` the factor of token j ([`Ring`]) with its last two parts
//! times u_j. Token i is emitted
//!
//! ```text
//! a_i = w_i sum over nodes s, t of c_s c_t e^{-s w_0} [ u_i (g_i z + epsilon q_i e_i)
//!           product over j != i of f_j ] at epsilon z^{n-1}.
//! ```
//!
//! Heavy tokens are multiplied one by one, and "without i" is a prefix times a
//! suffix: nothing is subtracted. Light tokens enter through
//! `log(1 + u (z r + epsilon q)) = sum over m of (-1)^{m+1} u^m (z r + epsilon q)^m / m`,
//! r = e^{qt} - 1 a series in q t, so that all of them together are the sums
//! `sum of q_j^k u_j^m` at the nodes of s, for a few pairs (m, k). "Without i" is
//! there a division by f_i, again a series, and a_i a polynomial in q_i and u_i.

use super::clock::Clock;
use super::lanes::{Decays, backward, forward, gather};
use super::ring::{MOST, POWERS, Ring, TERMS};
use crate::distribution::TwoFloat;
use crate::plan::slot_weights::nodes::{BLOCK, Nodes, PER_OCTAVE};

/// Light tokens, or groups of them, that need the same number of powers of q.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Powers q^1..q^terms are used.
    pub(super) terms: usize,
    /// `moments[k-1][item]`: sum of (q tau)^k over the item's tokens.
    pub(super) moments: Vec<Vec<f64>>,
}

impl Class {
    pub(super) fn len(&self) -> usize {
        self.moments.first().map_or(0, Vec::len)
    }
}

/// One half of the split.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) drafts: usize,
    /// w_0: 1 where tuples may be rejected, else 0.
    pub(super) reject: f64,
    /// q of the heavy tokens.
    pub(super) heavy: Vec<f64>,
    /// q summed over the light tokens.
    pub(super) light: f64,
    /// By time: product over all tokens that do not compete.
    pub(super) base: Vec<Ring>,
    /// By time and heavy token: e^{-qt} and 1 - e^{-qt}.
    waits: Vec<f64>,
    rings: Vec<f64>,
}

/// Pairs (m, k) in the order in which sums are kept.
pub(super) fn pairs(drafts: usize, terms: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..=drafts.min(terms)).flat_map(move |m| (m..=terms).map(move |k| (m, k)))
}

/// Where e^{-sw} is nothing.
const DEAD: f64 = 42.0;

/// Blocks that are summed before they join the others.
const STAGE: usize = 40;

/// Pairs that the Hessian's light part is made of.
const STEERING: [(usize, usize); 3] = [(1, 1), (1, 2), (2, 2)];

/// What is emitted, and more.
#[derive(Clone, Debug)]
pub(super) struct Emitted {
    pub(super) value: Vec<f64>,
    /// w_i^2 times the same integral with a factor s: value - decline is the
    /// derivative in log w_i, all other weights held.
    pub(super) decline: Vec<f64>,
    /// Edges of the Hessian's graph, if asked for.
    pub(super) edges: Option<Vec<f64>>,
}

/// Which nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// One an octave in s and t.
    Coarse,
    /// All, with exponentials by doubling.
    Fine,
}

/// Coefficients of a light token's factor at one time, by pair: of z^m and of
/// epsilon z^{m-1} in `(-1)^{m-1} (z r + epsilon q)^m`, over (q tau)^k.
struct Expansion {
    rung: Vec<f64>,
    now: Vec<f64>,
}

impl Expansion {
    fn new(drafts: usize, terms: usize, time: f64, scale: f64) -> Self {
        let scaled = time / scale;
        let (rung, now) = pairs(drafts, terms)
            .map(|(m, k)| {
                let sign = if m % 2 == 1 { 1.0 } else { -1.0 };
                (
                    sign * POWERS[m][k] * scaled.powi(k as i32),
                    sign * m as f64 * POWERS[m - 1][k - 1] * scaled.powi(k as i32 - 1) / scale,
                )
            })
            .unzip();
        Self { rung, now }
    }

    /// Product over light tokens of 1 + u (z r + epsilon q), from their sums by pair.
    fn ring(&self, sums: &[f64], drafts: usize, terms: usize) -> Ring {
        let (mut rung, mut now) = ([0.0; MOST], [0.0; MOST]);
        let parts = self.rung.iter().zip(&self.now).zip(sums);
        for ((m, _), ((r, d), sum)) in pairs(drafts, terms).zip(parts) {
            let part = sum / m as f64;
            if m < drafts {
                rung[m] += r * part;
            }
            now[m - 1] += d * part;
        }
        Ring::exponential(&rung, &now, drafts)
    }
}

/// By time: the product over tokens that are drafted and do not compete, and over
/// tokens of mass `absent` that are not drafted.
pub(super) fn base(clock: &Clock, drafts: usize, present: &[f64], absent: f64) -> Vec<Ring> {
    let (mut heavy, mut moments, mut light, mut terms) =
        (Vec::new(), [0.0; TERMS], TwoFloat::ZERO, 0);
    for &q in present {
        let Some(needed) = clock.terms(q) else {
            heavy.push(q);
            continue;
        };
        terms = terms.max(needed);
        light += q;
        let scaled = q * clock.scale;
        let mut power = scaled;
        for moment in moments.iter_mut().take(needed) {
            *moment += power;
            power *= scaled;
        }
    }
    let light = light.value();
    moments[0] = light * clock.scale;
    let sums: Vec<f64> = pairs(drafts, terms).map(|(_, k)| moments[k - 1]).collect();
    clock
        .times
        .iter()
        .map(|&time| {
            let expansion = Expansion::new(drafts, terms, time, clock.scale);
            let mut ring = expansion.ring(&sums, drafts, terms);
            ring.scale((-(light + absent) * time).exp());
            for q in &heavy {
                let wait = (-q * time).exp();
                ring.token(drafts, wait, -(-q * time).exp_m1(), q * wait);
            }
            ring
        })
        .collect()
}

/// What the nodes of one s hold.
struct Column<'a> {
    side: &'a Side,
    clock: &'a Clock,
    rule: Rule,
    terms: usize,
    expansions: &'a [Expansion],
    times: &'a [usize],
}

/// Sums over t at one s.
struct Sums {
    /// By heavy token.
    heavy: Vec<f64>,
    /// By pair.
    light: Vec<f64>,
    /// Heavy with heavy (upper triangle, full rows), heavy with light, light with
    /// light: only if the Hessian is asked for.
    heavy_pairs: Vec<f64>,
    mixed: Vec<f64>,
    light_pairs: [[f64; 3]; 3],
}

impl Side {
    pub(super) fn new(
        clock: &Clock,
        drafts: usize,
        reject: f64,
        heavy: Vec<f64>,
        light: f64,
        base: Vec<Ring>,
    ) -> Self {
        let mut waits = Vec::with_capacity(clock.times.len() * heavy.len());
        let mut rings = Vec::with_capacity(clock.times.len() * heavy.len());
        for t in &clock.times {
            for q in &heavy {
                waits.push((-q * t).exp());
                rings.push(-(-q * t).exp_m1());
            }
        }
        Self {
            drafts,
            reject,
            heavy,
            light,
            base,
            waits,
            rings,
        }
    }

    fn times(&self, clock: &Clock, rule: Rule) -> Vec<usize> {
        let stride = match rule {
            Rule::Coarse => clock.per_octave,
            Rule::Fine => 1,
        };
        (0..clock.times.len()).step_by(stride).collect()
    }

    /// Least and largest weight of a tuple.
    fn range(&self, weights: &[f64]) -> (f64, f64) {
        let mut top = [0.0; MOST];
        let mut least = f64::INFINITY;
        for &w in weights {
            least = least.min(w);
            if w > top[0] {
                top[0] = w;
                top[..self.drafts].sort_unstable_by(f64::total_cmp);
            }
        }
        let largest = self.reject + top[..self.drafts].iter().sum::<f64>();
        let least = if self.reject > 0.0 {
            self.reject
        } else {
            least
        };
        (least.min(largest), largest)
    }

    /// Emission of every item: heavy tokens first, then the classes in order.
    pub(super) fn emission(
        &self,
        clock: &Clock,
        classes: &[Class],
        weights: &[f64],
        rule: Rule,
        couple: bool,
    ) -> Emitted {
        let heavy = self.heavy.len();
        let terms = classes.iter().map(|class| class.terms).max().unwrap_or(0);
        let width = pairs(self.drafts, terms).count();
        let (least, largest) = self.range(weights);
        let mut emitted = Emitted {
            value: vec![0.0; weights.len()],
            decline: vec![0.0; weights.len()],
            edges: couple.then(|| vec![0.0; weights.len() * weights.len()]),
        };
        if weights.is_empty() || least.is_nan() || least <= 0.0 || !largest.is_finite() {
            return emitted;
        }
        let nodes = Nodes::new(least, largest);
        let stride = match rule {
            Rule::Coarse => PER_OCTAVE,
            Rule::Fine => 1,
        };
        let (s, weight): (Vec<f64>, &[f64]) = match rule {
            Rule::Coarse => (
                nodes.s.iter().copied().step_by(stride).collect(),
                &nodes.coarse_weight,
            ),
            Rule::Fine => (nodes.s.clone(), &nodes.weight),
        };
        let times = self.times(clock, rule);
        let expansions: Vec<Expansion> = times
            .iter()
            .map(|&time| Expansion::new(self.drafts, terms, clock.times[time], clock.scale))
            .collect();
        let column = Column {
            side: self,
            clock,
            rule,
            terms,
            expansions: &expansions,
            times: &times,
        };
        let sums = self.light_sums(&nodes, &s, classes, &weights[heavy..], rule, width);
        let mut coefficients = vec![0.0; s.len() * width];
        let mut decays = vec![0.0; heavy];
        for (node, (&s, &weight)) in s.iter().zip(weight).enumerate() {
            for (decay, w) in decays.iter_mut().zip(weights) {
                *decay = (-s * w).exp();
            }
            let share = weight * (-s * self.reject).exp();
            // Weights at the left end have either sign.
            if share == 0.0 {
                continue;
            }
            let at = column.sum(&decays, &sums[node * width..(node + 1) * width], couple);
            for (index, (&sum, &decay)) in at.heavy.iter().zip(&decays).enumerate() {
                emitted.value[index] += share * decay * sum;
                emitted.decline[index] += share * s * decay * sum;
            }
            for (slot, sum) in coefficients[node * width..(node + 1) * width]
                .iter_mut()
                .zip(&at.light)
            {
                *slot = share * sum;
            }
            if let Some(edges) = &mut emitted.edges {
                self.couple(edges, classes, weights, &decays, s, share * s, &at);
            }
        }
        for (index, &w) in weights[..heavy].iter().enumerate() {
            emitted.value[index] *= w;
            emitted.decline[index] *= w * w;
        }
        self.light_emission(
            &nodes,
            &s,
            classes,
            weights,
            rule,
            &coefficients,
            terms,
            &mut emitted,
        );
        emitted
    }

    /// `sum over items of moment_k u^m` by node of s and pair.
    fn light_sums(
        &self,
        nodes: &Nodes,
        s: &[f64],
        classes: &[Class],
        weights: &[f64],
        rule: Rule,
        width: usize,
    ) -> Vec<f64> {
        let mut sums = vec![0.0; s.len() * width];
        let mut partial = sums.clone();
        let all = classes.iter().map(|class| class.terms).max().unwrap_or(0);
        let mut start = 0;
        for class in classes {
            let own = &weights[start..start + class.len()];
            start += class.len();
            // Where this class's pairs are among all.
            let place: Vec<usize> = places(self.drafts, class.terms, all);
            for (block, chunk) in own.chunks(BLOCK).enumerate() {
                let (weights, moments) = gather(class, block, chunk);
                let mut walk = Decays::new(nodes, s, &weights, rule);
                let mut u = [0.0; BLOCK];
                let rows = partial.chunks_exact_mut(width).enumerate();
                for (node, row) in rows.take(alive(s, chunk)) {
                    walk.next(node, &mut u);
                    forward(self.drafts, &moments, &u, &place, row);
                }
                // In two stages, for the roundings.
                if block % STAGE == STAGE - 1 || (block + 1) * BLOCK >= own.len() {
                    for (sum, part) in sums.iter_mut().zip(&mut partial) {
                        *sum += std::mem::take(part);
                    }
                }
            }
        }
        sums
    }

    #[expect(clippy::too_many_arguments, reason = "one pass, one caller")]
    fn light_emission(
        &self,
        nodes: &Nodes,
        s: &[f64],
        classes: &[Class],
        weights: &[f64],
        rule: Rule,
        coefficients: &[f64],
        terms: usize,
        emitted: &mut Emitted,
    ) {
        let width = pairs(self.drafts, terms).count();
        let mut start = self.heavy.len();
        for class in classes {
            let own = &weights[start..start + class.len()];
            let place = places(self.drafts, class.terms, terms);
            for (block, chunk) in own.chunks(BLOCK).enumerate() {
                let (weights, moments) = gather(class, block, chunk);
                let mut walk = Decays::new(nodes, s, &weights, rule);
                let (mut value, mut decline) = ([0.0; BLOCK], [0.0; BLOCK]);
                let (mut u, mut sum) = ([0.0; BLOCK], [0.0; BLOCK]);
                let nodes_of = s.iter().enumerate().zip(coefficients.chunks_exact(width));
                for ((node, &s), row) in nodes_of.take(alive(s, chunk)) {
                    walk.next(node, &mut u);
                    backward(self.drafts, &moments, &u, &place, row, &mut sum);
                    for ((value, decline), sum) in value.iter_mut().zip(&mut decline).zip(&sum) {
                        *value += sum;
                        *decline += s * sum;
                    }
                }
                for (lane, &w) in chunk.iter().enumerate() {
                    let index = start + block * BLOCK + lane;
                    emitted.value[index] = w * value[lane];
                    emitted.decline[index] = w * w * decline[lane];
                }
            }
            start += class.len();
        }
    }

    /// Adds one node of s to the edges `w_i w_j * integral of s e^{-s w_0} [Z_i Z_j
    /// product of all f]`, Z = (f - wait)/f.
    #[expect(clippy::too_many_arguments, reason = "one node, one caller")]
    fn couple(
        &self,
        edges: &mut [f64],
        classes: &[Class],
        weights: &[f64],
        decays: &[f64],
        s: f64,
        share: f64,
        at: &Sums,
    ) {
        let (heavy, count) = (self.heavy.len(), weights.len());
        let strength: Vec<f64> = decays.iter().zip(weights).map(|(u, w)| u * w).collect();
        for i in 0..heavy {
            for j in 0..i {
                edges[i * count + j] +=
                    share * strength[i] * strength[j] * at.heavy_pairs[i * heavy + j];
            }
        }
        // Light items: their parts along the steering pairs.
        let mut parts: Vec<[f64; 3]> = Vec::with_capacity(count - heavy);
        let mut start = heavy;
        for class in classes {
            for (item, w) in weights[start..start + class.len()].iter().enumerate() {
                let u = (-s * w).exp();
                let moment = |k: usize| class.moments.get(k - 1).map_or(0.0, |row| row[item]);
                parts.push([w * u * moment(1), w * u * moment(2), w * u * u * moment(2)]);
            }
            start += class.len();
        }
        for (item, part) in parts.iter().enumerate() {
            let row = &mut edges[(heavy + item) * count..(heavy + item + 1) * count];
            for ((edge, strength), mixed) in
                row.iter_mut().zip(&strength).zip(at.mixed.chunks_exact(3))
            {
                let sum = mixed[0] * part[0] + mixed[1] * part[1] + mixed[2] * part[2];
                *edge += share * strength * sum;
            }
            let mut image = [0.0; 3];
            for (image, kernel) in image.iter_mut().zip(&at.light_pairs) {
                *image = share * (kernel[0] * part[0] + kernel[1] * part[1] + kernel[2] * part[2]);
            }
            for (edge, other) in row[heavy..heavy + item].iter_mut().zip(&parts) {
                *edge += image[0] * other[0] + image[1] * other[1] + image[2] * other[2];
            }
        }
    }

    /// Probability that every item is drafted within this side, over no weights: what
    /// it would be emitted if it always won (`others` true), or if the other
    /// competitors did (`others` false). And the density of all tuples of the side.
    pub(super) fn drafted(
        &self,
        clock: &Clock,
        classes: &[Class],
        others: bool,
    ) -> (Vec<f64>, f64) {
        let heavy = self.heavy.len();
        let terms = classes.iter().map(|class| class.terms).max().unwrap_or(0);
        let width = pairs(self.drafts, terms).count();
        let count = heavy + classes.iter().map(Class::len).sum::<usize>();
        let times = self.times(clock, Rule::Fine);
        let expansions: Vec<Expansion> = times
            .iter()
            .map(|&time| Expansion::new(self.drafts, terms, clock.times[time], clock.scale))
            .collect();
        let column = Column {
            side: self,
            clock,
            rule: Rule::Fine,
            terms,
            expansions: &expansions,
            times: &times,
        };
        let mut sums = vec![0.0; width];
        if others {
            for class in classes {
                let place = places(self.drafts, class.terms, terms);
                for ((_, k), slot) in pairs(self.drafts, class.terms).zip(place) {
                    sums[slot] += class.moments[k - 1].iter().sum::<f64>();
                }
            }
        }
        let decays = vec![if others { 1.0 } else { 0.0 }; heavy];
        let at = column.sum(&decays, &sums, false);
        let mut drafted = at.heavy;
        drafted.reserve(count - heavy);
        for class in classes {
            let place = places(self.drafts, class.terms, terms);
            let mut by_power = vec![0.0; class.terms];
            for ((m, k), slot) in pairs(self.drafts, class.terms).zip(place) {
                if others || m == 1 {
                    by_power[k - 1] += at.light[slot];
                }
            }
            for item in 0..class.len() {
                let terms = by_power.iter().zip(&class.moments);
                drafted.push(terms.map(|(sum, moment)| sum * moment[item]).sum());
            }
        }
        let mut total = 0.0;
        for (index, &time) in times.iter().enumerate() {
            let all = column.product(index, &decays, &sums);
            total += clock.weights[time] * all.d[self.drafts - 1];
        }
        (drafted, total)
    }
}

impl Column<'_> {
    /// Base and light tokens at a time.
    fn ground(&self, index: usize, sums: &[f64]) -> Ring {
        let n = self.side.drafts;
        let time = self.times[index];
        if self.terms == 0 {
            return self.side.base[time];
        }
        let mut light = self.expansions[index].ring(sums, n, self.terms);
        light.scale((-self.side.light * self.clock.times[time]).exp());
        light.times(&self.side.base[time], n)
    }

    fn product(&self, index: usize, decays: &[f64], sums: &[f64]) -> Ring {
        let side = self.side;
        let mut all = self.ground(index, sums);
        let offset = self.times[index] * side.heavy.len();
        for (h, (&q, &u)) in side.heavy.iter().zip(decays).enumerate() {
            let (wait, rung) = (side.waits[offset + h], side.rings[offset + h]);
            all.token(side.drafts, wait, u * rung, u * q * wait);
        }
        all
    }

    /// All sums over t at one s.
    fn sum(&self, decays: &[f64], sums: &[f64], couple: bool) -> Sums {
        let side = self.side;
        let n = side.drafts;
        let heavy = side.heavy.len();
        let mut result = Sums {
            heavy: vec![0.0; heavy],
            light: vec![0.0; sums.len()],
            heavy_pairs: vec![0.0; if couple { heavy * heavy } else { 0 }],
            mixed: vec![0.0; if couple { 3 * heavy } else { 0 }],
            light_pairs: [[0.0; 3]; 3],
        };
        let mut after = vec![Ring::ONE; heavy + 1];
        for (index, &time) in self.times.iter().enumerate() {
            let weight = match self.rule {
                Rule::Coarse => self.clock.coarse_weights[index],
                Rule::Fine => self.clock.weights[time],
            };
            let offset = time * heavy;
            let waits = &side.waits[offset..offset + heavy];
            let rings = &side.rings[offset..offset + heavy];
            for h in (0..heavy).rev() {
                let mut next = after[h + 1];
                let (q, u) = (side.heavy[h], decays[h]);
                next.token(n, waits[h], u * rings[h], u * q * waits[h]);
                after[h] = next;
            }
            let ground = self.ground(index, sums);
            let mut before = ground;
            for h in 0..heavy {
                let (q, u, wait, rung) = (side.heavy[h], decays[h], waits[h], rings[h]);
                let now = q * wait;
                let plain = before.plain(&after[h + 1], n - 1);
                let dual = before.dual(&after[h + 1], n - 2);
                result.heavy[h] += weight * (rung * dual + now * plain);
                if couple {
                    self.couple(h, index, weight, decays, &before, &after, &mut result);
                }
                before.token(n, wait, u * rung, u * now);
            }
            // `before` is now the whole product.
            let expansion = &self.expansions[index];
            let parts = expansion.rung.iter().zip(&expansion.now);
            for (((m, _), (rung, now)), slot) in
                pairs(n, self.terms).zip(parts).zip(&mut result.light)
            {
                let dual = if m < n { before.d[n - 1 - m] } else { 0.0 };
                *slot += weight * (rung * dual + now * before.c[n - m]);
            }
            if couple {
                let steering = self.steering(index);
                for (row, &(p, a, b)) in result.light_pairs.iter_mut().zip(&steering) {
                    for (slot, &(q, c, d)) in row.iter_mut().zip(&steering) {
                        let plain = if p + q <= n { before.c[n - p - q] } else { 0.0 };
                        let dual = if p + q < n {
                            before.d[n - 1 - p - q]
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
        let n = self.side.drafts;
        let scaled = self.clock.times[self.times[index]] / self.clock.scale;
        STEERING.map(|(m, k)| {
            let sign = if m % 2 == 1 { 1.0 } else { -1.0 };
            let rung = sign * POWERS[m][k] * scaled.powi(k as i32);
            let now = sign * m as f64 * POWERS[m - 1][k - 1] * scaled.powi(k as i32 - 1)
                / self.clock.scale;
            if m <= n {
                (m, rung, now)
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
        before: &Ring,
        after: &[Ring],
        result: &mut Sums,
    ) {
        let side = self.side;
        let n = side.drafts;
        let heavy = side.heavy.len();
        let offset = self.times[index] * heavy;
        let factor = |h: usize| {
            let wait = side.waits[offset + h];
            (wait, side.rings[offset + h], side.heavy[h] * wait)
        };
        let (_, rung, now) = factor(h);
        if self.terms > 0 {
            for (slot, (m, a, b)) in result.mixed[3 * h..3 * h + 3]
                .iter_mut()
                .zip(self.steering(index))
            {
                let mut sum = 0.0;
                if n >= m + 2 {
                    sum += rung * a * before.dual(&after[h + 1], n - 2 - m);
                }
                if n > m {
                    sum += (rung * b + now * a) * before.plain(&after[h + 1], n - 1 - m);
                }
                *slot += weight * sum;
            }
        }
        let mut middle = *before;
        for j in h + 1..heavy {
            let (wait, other_rung, other_now) = factor(j);
            let plain = middle.plain(&after[j + 1], n - 2);
            let dual = if n > 2 {
                middle.dual(&after[j + 1], n - 3)
            } else {
                0.0
            };
            result.heavy_pairs[j * heavy + h] +=
                weight * (rung * other_rung * dual + (rung * other_now + now * other_rung) * plain);
            let u = decays[j];
            middle.token(n, wait, u * other_rung, u * other_now);
        }
    }
}

/// Nodes before e^{-sw} is nothing for all weights. Neighbours in a class have similar
/// weights.
fn alive(s: &[f64], weights: &[f64]) -> usize {
    let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
    s.partition_point(|s| s * least <= DEAD)
}

/// Places of the pairs of a class among those of the class with most terms.
fn places(drafts: usize, terms: usize, all: usize) -> Vec<usize> {
    debug_assert!(terms <= all && all <= TERMS);
    pairs(drafts, all)
        .enumerate()
        .filter(|(_, (m, k))| *m <= drafts.min(terms) && *k <= terms)
        .map(|(place, _)| place)
        .collect()
}
