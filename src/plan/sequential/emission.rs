//! What a tier emits for given weights: integrals over s and t.
//!
//! `u_j = e^{-s w_j}`, `f_j` the factor of token j ([`Arrivals`]) with its last two parts
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

use super::arrivals::{Arrivals, MOST, TERMS};
use super::kernels::{Decays, backward, forward, gather};
use super::race::{Class, Race};
use super::time_sums::{Column, Expansion, Sums, pairs, places};
use super::times::Times;
use crate::distribution::TwoFloat;
use crate::quadrature::{BLOCK, LaplaceGrid, Resolution};
use multiversion::multiversion;

fn most_terms(classes: &[Class]) -> usize {
    classes.iter().map(|class| class.terms).max().unwrap_or(0)
}

/// Where e^{-sw} is nothing.
const DEAD: f64 = 42.0;

/// Blocks that are summed before they join the others.
const STAGE: usize = 40;

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

/// By time: the product over tokens that are drafted and do not compete, and over
/// tokens of mass `absent` that are not drafted.
pub(super) fn base(times: &Times, drafts: usize, present: &[f64], absent: f64) -> Vec<Arrivals> {
    let (mut heavy, mut moments, mut light, mut terms) =
        (Vec::new(), [0.0; TERMS], TwoFloat::ZERO, 0);
    for &q in present {
        let Some(needed) = times.terms(q) else {
            heavy.push(q);
            continue;
        };
        terms = terms.max(needed);
        light += q;
        let scaled = q * times.scale;
        let mut power = scaled;
        for moment in moments.iter_mut().take(needed) {
            *moment += power;
            power *= scaled;
        }
    }
    let light = light.value();
    moments[0] = light * times.scale;
    let sums: Vec<f64> = pairs(drafts, terms).map(|(_, k)| moments[k - 1]).collect();
    times
        .t
        .nodes
        .iter()
        .map(|&time| {
            let expansion = Expansion::new(drafts, terms, time, times.scale);
            let mut product = expansion.product(&sums, drafts, terms);
            product.scale((-(light + absent) * time).exp());
            for q in &heavy {
                let wait = (-q * time).exp();
                product.token(drafts, wait, -(-q * time).exp_m1(), q * wait);
            }
            product
        })
        .collect()
}

/// A node of s: e^{-sw} of the heavy tokens, s, and its weight in an integral with a factor s.
struct Node<'a> {
    decays: &'a [f64],
    s: f64,
    share: f64,
}

/// Parts of the light items' factors along the steering pairs, at one node of s.
#[derive(Clone, Debug)]
struct Parts([Vec<f64>; 3]);

impl Parts {
    fn at(&self, item: usize) -> [f64; 3] {
        std::array::from_fn(|part| self.0[part].get(item).copied().unwrap_or(0.0))
    }
}

/// What edges between light items are made of, node by node of s.
#[derive(Clone, Debug, Default)]
struct LightEdges {
    /// With the sums over t for every two parts.
    nodes: Vec<(Parts, [[f64; 3]; 3])>,
}

impl LightEdges {
    fn parts(&self, s: f64, classes: &[Class], weights: &[f64]) -> Parts {
        let mut parts: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::with_capacity(weights.len()));
        let mut start = 0;
        for class in classes {
            for (item, w) in weights[start..start + class.len()].iter().enumerate() {
                let u = (-s * w).exp();
                let moment = |k: usize| class.moments.get(k - 1).map_or(0.0, |row| row[item]);
                parts[0].push(w * u * moment(1));
                parts[1].push(w * u * moment(2));
                parts[2].push(w * u * u * moment(2));
            }
            start += class.len();
        }
        Parts(parts)
    }

    /// Adds all nodes to the edges of the light items, which stand behind the heavy ones: row by
    /// row, so that a row stays at hand.
    fn add_to(&self, edges: &mut [f64], heavy: usize, count: usize) {
        for item in 0..count - heavy {
            let row = &mut edges[(heavy + item) * count + heavy..][..item];
            for (parts, kernel) in &self.nodes {
                let own = parts.at(item);
                let image = kernel.map(|row| row[0] * own[0] + row[1] * own[1] + row[2] * own[2]);
                add_images(row, image, &parts.0);
            }
        }
    }
}

#[multiversion(targets = "simd")]
fn add_images(row: &mut [f64], image: [f64; 3], [a, b, c]: &[Vec<f64>; 3]) {
    let parts = a.iter().zip(b).zip(c);
    for (edge, ((a, b), c)) in row.iter_mut().zip(parts) {
        *edge += image[0] * a + image[1] * b + image[2] * c;
    }
}

/// `sum over items of moment_k u^m` by node of s and pair.
#[multiversion(targets = "simd")]
fn light_sums(
    drafts: usize,
    (grid, s, resolution): (&LaplaceGrid, &[f64], Resolution),
    classes: &[Class],
    weights: &[f64],
    width: usize,
) -> Vec<f64> {
    let mut sums = vec![0.0; s.len() * width];
    let mut partial = sums.clone();
    let all = most_terms(classes);
    let mut start = 0;
    for class in classes {
        let own = &weights[start..start + class.len()];
        start += class.len();
        // Where this class's pairs are among all.
        let place: Vec<usize> = places(drafts, class.terms, all);
        for (block, chunk) in own.chunks(BLOCK).enumerate() {
            let (weights, moments) = gather(class, block, chunk);
            let mut walk = Decays::new(grid, s, &weights, resolution);
            let mut u = [0.0; BLOCK];
            let rows = partial.chunks_exact_mut(width).enumerate();
            for (node, row) in rows.take(alive(s, chunk)) {
                walk.next(node, &mut u);
                forward(drafts, &moments, &u, &place, row);
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

/// What light items emit, from the coefficients of each pair at the nodes of s. The emission's
/// lists begin with `heavy` others.
#[multiversion(targets = "simd")]
fn light_emission(
    (drafts, heavy, terms): (usize, usize, usize),
    (grid, s, resolution): (&LaplaceGrid, &[f64], Resolution),
    classes: &[Class],
    weights: &[f64],
    coefficients: &[f64],
    emitted: &mut Emitted,
) {
    let width = pairs(drafts, terms).count();
    let mut start = heavy;
    for class in classes {
        let own = &weights[start..start + class.len()];
        let place = places(drafts, class.terms, terms);
        for (block, chunk) in own.chunks(BLOCK).enumerate() {
            let (weights, moments) = gather(class, block, chunk);
            let mut walk = Decays::new(grid, s, &weights, resolution);
            let (mut value, mut decline) = ([0.0; BLOCK], [0.0; BLOCK]);
            let (mut u, mut sum) = ([0.0; BLOCK], [0.0; BLOCK]);
            let nodes_of = s.iter().enumerate().zip(coefficients.chunks_exact(width));
            for ((node, &s), row) in nodes_of.take(alive(s, chunk)) {
                walk.next(node, &mut u);
                backward(drafts, &moments, &u, &place, row, &mut sum);
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

impl Race {
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
        times: &Times,
        classes: &[Class],
        weights: &[f64],
        resolution: Resolution,
        couple: bool,
    ) -> Emitted {
        let heavy = self.heavy.len();
        let terms = most_terms(classes);
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
        let grid = LaplaceGrid::new(least, largest);
        let nodes = grid.s.nodes.iter().copied();
        let s: Vec<f64> = nodes.step_by(grid.s.stride(resolution)).collect();
        let weight = grid.s.weights_at(resolution);
        let column = Column::new(self, times, resolution, terms);
        let nodes_of_s = (&grid, &s[..], resolution);
        let sums = light_sums(self.drafts, nodes_of_s, classes, &weights[heavy..], width);
        let mut light = LightEdges::default();
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
                let node = Node {
                    decays: &decays,
                    s,
                    share: share * s,
                };
                self.couple(edges, &mut light, classes, weights, node, &at);
            }
        }
        for (index, &w) in weights[..heavy].iter().enumerate() {
            emitted.value[index] *= w;
            emitted.decline[index] *= w * w;
        }
        if let Some(edges) = &mut emitted.edges {
            light.add_to(edges, heavy, weights.len());
        }
        let sizes = (self.drafts, heavy, terms);
        light_emission(
            sizes,
            nodes_of_s,
            classes,
            weights,
            &coefficients,
            &mut emitted,
        );
        emitted
    }

    /// Adds one node of s to the edges of heavy tokens, `w_i w_j * integral of s e^{-s w_0} [Z_i Z_j
    /// product of all f]`, Z = (f - wait)/f; and keeps it for those of light ones.
    fn couple(
        &self,
        edges: &mut [f64],
        light: &mut LightEdges,
        classes: &[Class],
        weights: &[f64],
        Node { decays, s, share }: Node<'_>,
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
        let parts = light.parts(s, classes, &weights[heavy..]);
        let mixed: Vec<[f64; 3]> = (strength.iter().zip(at.mixed.chunks_exact(3)))
            .map(|(strength, mixed)| {
                std::array::from_fn(|part| share * strength * mixed.get(part).unwrap_or(&0.0))
            })
            .collect();
        for item in 0..count - heavy {
            let part = parts.at(item);
            let row = &mut edges[(heavy + item) * count..][..heavy];
            for (edge, mixed) in row.iter_mut().zip(&mixed) {
                *edge += mixed[0] * part[0] + mixed[1] * part[1] + mixed[2] * part[2];
            }
        }
        light.nodes.push((
            parts,
            at.light_pairs.map(|row| row.map(|pair| share * pair)),
        ));
    }

    /// Probability that every item is drafted within this tier, over no weights: what
    /// it would be emitted if it always won (`others` true), or if the other
    /// competitors did (`others` false). And the density of all tuples of the race.
    pub(super) fn drafted(
        &self,
        times: &Times,
        classes: &[Class],
        others: bool,
    ) -> (Vec<f64>, f64) {
        let heavy = self.heavy.len();
        let terms = most_terms(classes);
        let width = pairs(self.drafts, terms).count();
        let count = heavy + classes.iter().map(Class::len).sum::<usize>();
        let column = Column::new(self, times, Resolution::Fine, terms);
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
        (drafted, column.density(&decays, &sums))
    }
}

/// Nodes before e^{-sw} is nothing for all weights. Neighbours in a class have similar
/// weights.
fn alive(s: &[f64], weights: &[f64]) -> usize {
    let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
    s.partition_point(|s| s * least <= DEAD)
}
