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

use super::arrivals::{Arrivals, LANES, Lanes, MOST, TERMS, Value};
use super::bins::Bins;
use super::kernels::{Decays, backward, forward, gather};
use super::race::{Class, Race};
use super::time_sums::{Column, Expansion, PARTS, STEERING, Sums, pairs, places};
use super::times::Times;
use crate::plan::log_bins::{add_scaled, exponentials};
use multiversion::multiversion;
use specgap_number::distribution::{TwoFloat, exp_nonpositive};
use specgap_number::quadrature::{BLOCK, LaplaceGrid, Resolution};
use specgap_number::scratch::Scratch;

fn most_terms(classes: &[Class]) -> usize {
    classes.iter().map(|class| class.terms).max().unwrap_or(0)
}

/// Where e^{-sw} is nothing.
const DEAD: f64 = 42.0;

/// Blocks that are summed before they join the others.
const STAGE: usize = 40;

/// Light items from which on they are taken by bins, and not each at every node.
const MANY: usize = 512;

/// What is emitted, and more.
#[derive(Clone, Debug)]
pub(super) struct Emitted {
    pub(super) value: Scratch<f64>,
    /// w_i^2 times the same integral with a factor s: value - decline is the
    /// derivative in log w_i, all other weights held.
    pub(super) decline: Scratch<f64>,
    /// Edges of the Hessian's graph, if asked for.
    pub(super) edges: Option<Scratch<f64>>,
}

/// e^theta.
pub(super) fn weights(theta: &[f64]) -> Scratch<f64> {
    let mut weights = Scratch::filled(theta.len(), 0.0);
    exponentials(theta, &mut weights);
    weights
}

/// From values by node and pair to values by pair, `stride` apart, and node.
fn by_pair(by_node: &[f64], width: usize, stride: usize) -> Scratch<f64> {
    let mut values = Scratch::filled(width * stride, 0.0);
    for (node, row) in by_node.chunks_exact(width.max(1)).enumerate() {
        for (pair, value) in row.iter().enumerate() {
            values[pair * stride + node] = *value;
        }
    }
    values
}

/// The other way.
fn by_node(by_pair: &[f64], width: usize, stride: usize) -> Scratch<f64> {
    let mut values = Scratch::filled(width * stride, 0.0);
    for (pair, row) in by_pair.chunks_exact(stride).enumerate() {
        for (node, value) in row.iter().enumerate() {
            values[node * width + pair] = *value;
        }
    }
    values
}

/// By time: the product over tokens that are drafted and do not compete, and over
/// tokens of mass `absent` that are not drafted.
pub(super) fn base(
    times: &Times,
    drafts: usize,
    present: &[f64],
    absent: f64,
) -> Vec<Arrivals<f64, MOST>> {
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
            let mut product: Arrivals<f64, MOST> = expansion.product(&sums, drafts, terms);
            product.scale((-(light + absent) * time).exp());
            for q in &heavy {
                let wait = (-q * time).exp();
                product.token(drafts, wait, -(-q * time).exp_m1(), q * wait);
            }
            product
        })
        .collect()
}

/// A node of s: its lane, e^{-sw} of the heavy tokens, s, and its weight in an integral with a factor s.
struct Node<'a> {
    lane: usize,
    decays: &'a [Lanes],
    s: f64,
    share: f64,
}

/// Parts of the light items' factors along the steering pairs, at one node of s.
#[derive(Clone, Debug)]
struct Parts([Scratch<f64>; PARTS]);

impl Parts {
    fn at(&self, item: usize) -> [f64; PARTS] {
        std::array::from_fn(|part| self.0[part].get(item).copied().unwrap_or(0.0))
    }
}

/// What edges between light items are made of, node by node of s.
#[derive(Clone, Debug, Default)]
struct LightEdges {
    /// With the sums over t for every two parts.
    nodes: Vec<(Parts, [[f64; PARTS]; PARTS])>,
}

impl LightEdges {
    fn parts(s: f64, classes: &[Class], weights: &[f64]) -> Parts {
        Parts(STEERING.map(|(m, k)| {
            let mut part = Scratch::filled(weights.len(), 0.0);
            let mut start = 0;
            for class in classes {
                let own = start..start + class.len();
                if let Some(moments) = class.moments.get(k - 1) {
                    fill_part(m as f64 * s, &weights[own.clone()], moments, &mut part[own]);
                }
                start += class.len();
            }
            part
        }))
    }

    /// Adds all nodes to the edges of the light items, which stand behind the heavy ones: row by
    /// row, so that a row stays at hand.
    fn add_to(&self, edges: &mut [f64], heavy: usize, count: usize) {
        for item in 0..count - heavy {
            let row = &mut edges[(heavy + item) * count + heavy..][..item];
            for (parts, kernel) in &self.nodes {
                let own = parts.at(item);
                let mut image = [0.0; PARTS];
                for (image, row) in image.iter_mut().zip(kernel) {
                    for (kernel, own) in row.iter().zip(own) {
                        *image += kernel * own;
                    }
                }
                add_images(row, image, &parts.0);
            }
        }
    }
}

/// w u^m moment, for m s.
#[multiversion(targets = "simd")]
fn fill_part(s: f64, weights: &[f64], moments: &[f64], part: &mut [f64]) {
    for ((part, w), moment) in part.iter_mut().zip(weights).zip(moments) {
        *part = w * exp_nonpositive(-s * w) * moment;
    }
}

#[multiversion(targets = "simd")]
fn add_images(row: &mut [f64], image: [f64; PARTS], parts: &[Scratch<f64>; PARTS]) {
    for (image, part) in image.iter().zip(parts) {
        for (edge, part) in row.iter_mut().zip(part) {
            *edge += image * part;
        }
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
        theta: &[f64],
        resolution: Resolution,
        couple: bool,
    ) -> Emitted {
        let light = theta.len() - self.heavy.len();
        let by_bins = light >= MANY && resolution == Resolution::Fine;
        self.emit(times, classes, theta, (resolution, by_bins), couple)
    }

    /// The same, the light items by bins or one by one.
    pub(super) fn emit(
        &self,
        times: &Times,
        classes: &[Class],
        theta: &[f64],
        (resolution, by_bins): (Resolution, bool),
        couple: bool,
    ) -> Emitted {
        let heavy = self.heavy.len();
        let terms = most_terms(classes);
        let width = pairs(self.drafts, terms).count();
        let weights = weights(theta);
        let (least, largest) = self.range(&weights);
        let mut emitted = Emitted {
            value: Scratch::filled(weights.len(), 0.0),
            decline: Scratch::filled(weights.len(), 0.0),
            edges: couple.then(|| Scratch::filled(weights.len() * weights.len(), 0.0)),
        };
        if weights.is_empty() || least.is_nan() || least <= 0.0 || !largest.is_finite() {
            return emitted;
        }
        let grid = LaplaceGrid::new(least, largest);
        let nodes = grid.s.nodes.iter().copied();
        let s: Vec<f64> = nodes.step_by(grid.s.stride(resolution)).collect();
        let stride = s.len().next_multiple_of(LANES);
        let column = Column::new(self, times, resolution, terms);
        let nodes_of_s = (&grid, &s[..], resolution);
        let bins = by_bins.then(|| Bins::new(self.drafts, classes, &theta[heavy..]));
        let sums = match &bins {
            Some(bins) => bins.sums(&grid, terms, stride),
            None => {
                let own = &weights[heavy..];
                let sums = light_sums(self.drafts, nodes_of_s, classes, own, width);
                by_pair(&sums, width, stride)
            }
        };
        let mut edges = LightEdges::default();
        let mut coefficients = Scratch::filled(stride * width, 0.0);
        let mut shares = vec![0.0; stride];
        for ((share, s), weight) in shares.iter_mut().zip(&s).zip(grid.s.weights_at(resolution)) {
            *share = weight * (-s * self.reject).exp();
        }
        let mut decays = vec![Lanes([0.0; LANES]); heavy];
        let mut own_sums = vec![Lanes([0.0; LANES]); width];
        for (first, shares) in (0..).step_by(LANES).zip(shares.as_chunks::<LANES>().0) {
            // Weights at the left end have either sign.
            if shares.iter().all(|&share| share == 0.0) {
                continue;
            }
            let s = &s[first..s.len().min(first + LANES)];
            for (decay, w) in decays.iter_mut().zip(&weights) {
                for (decay, s) in decay.0.iter_mut().zip(s) {
                    *decay = (-s * w).exp();
                }
            }
            for (pair, sum) in own_sums.iter_mut().enumerate() {
                sum.0
                    .copy_from_slice(&sums[pair * stride + first..][..LANES]);
            }
            let at = column.sum(&decays, &own_sums, couple);
            for (index, (sums, decays)) in at.heavy.iter().zip(&decays).enumerate() {
                for (lane, s) in s.iter().enumerate() {
                    let part = shares[lane] * decays.0[lane] * sums.0[lane];
                    emitted.value[index] += part;
                    emitted.decline[index] += s * part;
                }
            }
            for (pair, sums) in at.light.iter().enumerate() {
                let slots = &mut coefficients[pair * stride + first..][..LANES];
                for ((slot, share), sum) in slots.iter_mut().zip(shares).zip(sums.0) {
                    *slot = share * sum;
                }
            }
            if let Some(heavy_edges) = &mut emitted.edges {
                for (lane, &s) in s.iter().enumerate() {
                    let node = Node {
                        lane,
                        decays: &decays,
                        s,
                        share: shares[lane] * s,
                    };
                    self.couple(heavy_edges, &mut edges, classes, &weights, node, &at);
                }
            }
        }
        for (index, &w) in weights[..heavy].iter().enumerate() {
            emitted.value[index] *= w;
            emitted.decline[index] *= w * w;
        }
        if let Some(all) = &mut emitted.edges {
            edges.add_to(all, heavy, weights.len());
        }
        if let Some(bins) = bins {
            bins.emission(
                &grid,
                terms,
                (&coefficients, stride),
                &weights[heavy..],
                &mut emitted.value[heavy..],
                &mut emitted.decline[heavy..],
            );
        } else {
            let sizes = (self.drafts, heavy, terms);
            let coefficients = by_node(&coefficients, width, stride);
            light_emission(
                sizes,
                nodes_of_s,
                classes,
                &weights,
                &coefficients,
                &mut emitted,
            );
        }
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
        Node {
            lane,
            decays,
            s,
            share,
        }: Node<'_>,
        at: &Sums,
    ) {
        let (heavy, count) = (self.heavy.len(), weights.len());
        let strength: Vec<f64> = (decays.iter().zip(weights))
            .map(|(u, w)| u.0[lane] * w)
            .collect();
        for i in 0..heavy {
            for j in 0..i {
                edges[i * count + j] +=
                    share * strength[i] * strength[j] * at.heavy_pairs[i * heavy + j].0[lane];
            }
        }
        let parts = LightEdges::parts(s, classes, &weights[heavy..]);
        let mixed: Vec<[f64; PARTS]> = (strength.iter().zip(at.mixed.chunks_exact(PARTS)))
            .map(|(strength, mixed)| {
                std::array::from_fn(|part| share * strength * mixed[part].0[lane])
            })
            .collect();
        for item in 0..count - heavy {
            let own = parts.at(item);
            let row = &mut edges[(heavy + item) * count..][..heavy];
            for (edge, mixed) in row.iter_mut().zip(&mixed) {
                *edge += (mixed.iter().zip(own)).map(|(a, b)| a * b).sum::<f64>();
            }
        }
        light.nodes.push((
            parts,
            at.light_pairs
                .map(|row| row.map(|pair| share * pair.0[lane])),
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
    ) -> (Scratch<f64>, f64) {
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
        let decays = vec![Lanes::all(if others { 1.0 } else { 0.0 }); heavy];
        let sums: Vec<Lanes> = sums.into_iter().map(Lanes::all).collect();
        let at = column.sum(&decays, &sums, false);
        let mut drafted = Scratch::filled(count, 0.0);
        for (drafted, sum) in drafted.iter_mut().zip(&at.heavy) {
            *drafted = sum.0[0];
        }
        let mut rest = &mut drafted[heavy..];
        for class in classes {
            let place = places(self.drafts, class.terms, terms);
            let mut by_power = vec![0.0; class.terms];
            for ((m, k), slot) in pairs(self.drafts, class.terms).zip(place) {
                if others || m == 1 {
                    by_power[k - 1] += at.light[slot].0[0];
                }
            }
            let (own, after) = rest.split_at_mut(class.len());
            for (sum, moments) in by_power.iter().zip(&class.moments) {
                add_scaled(*sum, moments, own);
            }
            rest = after;
        }
        (drafted, at.density.0[0])
    }
}

/// Nodes before e^{-sw} is nothing for all weights. Neighbours in a class have similar
/// weights.
fn alive(s: &[f64], weights: &[f64]) -> usize {
    let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
    s.partition_point(|s| s * least <= DEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// w u^m moment_k at m s, and nothing of moments that a class does not have.
    #[test]
    fn parts_of_light_items_by_hand() {
        let two = Class::new(2, vec![0.5].into());
        let one = Class::new(1, vec![0.25].into());
        let Parts(parts) = LightEdges::parts(2.0, &[one, two], &[1.0, 3.0]);
        for (part, (m, k)) in parts.iter().zip(STEERING) {
            let first = if k == 1 {
                0.25 * (-2.0 * m as f64).exp()
            } else {
                0.0
            };
            let second = 3.0 * 0.5f64.powi(k as i32) * (-6.0 * m as f64).exp();
            for (found, expected) in part.iter().zip([first, second]) {
                assert!(
                    (found - expected).abs() < 1e-15,
                    "{m} {k}: {found} {expected}"
                );
            }
        }
    }
}
