//! What a plan emits, by a second path.
//!
//! Nothing here is shared with the solve: weights and tiers are read
//! off the plan, draft masses of the tiers are summed again, and the integral over
//! s is done with other nodes. Tokens enter through power sums in narrow bins of the
//! weight itself, where the solve's bins are of its logarithm.

use crate::plan::TokenPlan;
use multiversion::multiversion;
use specgap_number::distribution::{TwoFloat, exp_nonpositive, split_sum};

/// Step in log s: 3.3 nodes an octave, against the solve's 3.
const STEP: f64 = 0.21;

/// Where e^{-x} is nothing.
const CUT: f64 = 46.0;

/// What s times the largest sum of weights is at the first node: all that lies left of
/// it is below that, relatively.
const FIRST: f64 = 1e-18;

/// Up to this exponent e^{-x} is taken as its Taylor polynomial of degree 4, which is
/// then off by at most x^5/120 < 1e-17.
const LIGHT: f64 = 1e-3;
const LIGHT_TERMS: usize = 5;

/// From this exponent on e^{-x} is 0.
const HEAVY: f64 = 690.0;

/// More than s h is where s c is at most [`HEAVY`].
const WIDEST: f64 = 50.0;

/// Weights below this are nothing beside any other; it keeps the nodes finite.
const SMALLEST: f64 = 1e-300;

/// Bits of a weight that do not say which bin it is in: there are 16 bins an octave,
/// so that half of a bin's width is at most 1/33 of its centre.
const BIN_SHIFT: u32 = 48;

/// Power sums a bin. In a bin of centre c and half width h, with t = (w - c)/h,
/// e^{-sw} = e^{-sc} sum over k of (-sh)^k t^k / k!. What is left out is below
/// e^{-sc(1-e)} (e sc)^11 / 11! for e = h/c, which is largest at sc = 11/(1-e):
/// (e/(1-e))^11 / sqrt(22 pi) <= 2^-55 / 8.3 = 3.4e-18, whatever s is.
const TERMS: usize = 11;

/// Bins that are handled together, and running sums over the tokens of one.
const WIDTH: usize = 8;
const ROWS: usize = 4;

/// Tokens whose powers are summed in one go: sums of sums round less often than one
/// long sum.
const CHUNK: usize = 128;

/// The bin of a weight.
fn bin(weight: f64) -> usize {
    (weight.to_bits() >> BIN_SHIFT) as usize
}

/// Neighbouring bins side by side, ascending; where there are fewer, copies of the
/// last one with nothing in them.
#[derive(Clone, Debug)]
struct Block {
    centre: [f64; WIDTH],
    half: [f64; WIDTH],
    /// Sums of mass t^k, over k!.
    moments: [[f64; WIDTH]; TERMS],
    /// The integral as a polynomial in t.
    integral: [[f64; WIDTH]; TERMS],
}

impl Block {
    /// Lower end of the first bin and upper end of the last.
    fn ends(&self) -> (f64, f64) {
        let last = WIDTH - 1;
        (
            self.centre[0] - self.half[0],
            self.centre[last] + self.half[last],
        )
    }

    /// Sums of mass (s w)^j.
    fn light_moments(&self, s: f64) -> [f64; LIGHT_TERMS] {
        let mut sums = [0.0; LIGHT_TERMS];
        for lane in 0..WIDTH {
            let (z, narrow) = (s * self.centre[lane], self.half[lane] / self.centre[lane]);
            let mut scale = 1.0;
            for (j, sum) in sums.iter_mut().enumerate() {
                // (1 + narrow t)^j, with the moments' factorials taken out.
                let (mut own, mut falling) = (0.0, 1.0);
                for i in 0..=j {
                    own += falling * self.moments[i][lane];
                    falling *= (j - i) as f64 * narrow;
                }
                *sum += scale * own;
                scale *= z;
            }
        }
        sums
    }

    /// Adds sum over j of (-s w)^j/j! times the entries to the integral.
    fn add_light(&mut self, s: f64, entries: &[f64; LIGHT_TERMS]) {
        for lane in 0..WIDTH {
            let (z, narrow) = (s * self.centre[lane], self.half[lane] / self.centre[lane]);
            let mut scale = 1.0;
            for (j, entry) in entries.iter().enumerate() {
                let mut term = scale * entry;
                for i in 0..=j {
                    self.integral[i][lane] += term;
                    term *= (j - i) as f64 * narrow / (i + 1) as f64;
                }
                scale *= -z / (j + 1) as f64;
            }
        }
    }
}

/// Sums of mass t^k over the tokens of a bin.
#[multiversion(targets = "simd")]
fn power_sums(weights: &[f64], masses: &[f64], centre: f64, half: f64) -> [f64; TERMS] {
    let mut sums = [[0.0; ROWS]; TERMS];
    let mut add = |weights: &[f64; ROWS], masses: &[f64; ROWS]| {
        let mut t = [0.0; ROWS];
        for (t, weight) in t.iter_mut().zip(weights) {
            *t = (weight - centre) / half;
        }
        let mut power = *masses;
        for sums in &mut sums {
            for row in 0..ROWS {
                sums[row] += power[row];
                power[row] *= t[row];
            }
        }
    };
    let (weights, weights_end) = weights.as_chunks::<ROWS>();
    let (masses, masses_end) = masses.as_chunks::<ROWS>();
    for (weights, masses) in weights.iter().zip(masses) {
        add(weights, masses);
    }
    if !weights_end.is_empty() {
        let (mut weights, mut masses) = ([centre; ROWS], [0.0; ROWS]);
        weights[..weights_end.len()].copy_from_slice(weights_end);
        masses[..masses_end.len()].copy_from_slice(masses_end);
        add(&weights, &masses);
    }
    sums.map(|[a, b, c, d]| (a + b) + (c + d))
}

/// -sh, but where e^{-sc} is 0 already: there its powers must not become infinite.
#[inline(always)]
fn exponent(s: f64, half: f64) -> f64 {
    let x = s * half;
    if x < WIDEST { -x } else { -WIDEST }
}

/// Sum over all tokens of the blocks of mass e^{-s w}.
#[multiversion(targets = "simd")]
fn transform(s: f64, blocks: &[Block], decays: &mut [[f64; WIDTH]]) -> f64 {
    let mut sums = [0.0; WIDTH];
    for (block, decays) in blocks.iter().zip(decays) {
        let mut value = block.moments[TERMS - 1];
        let mut x = [0.0; WIDTH];
        for lane in 0..WIDTH {
            decays[lane] = exp_nonpositive(-s * block.centre[lane]);
            x[lane] = exponent(s, block.half[lane]);
        }
        for moments in block.moments[..TERMS - 1].iter().rev() {
            for lane in 0..WIDTH {
                value[lane] = value[lane] * x[lane] + moments[lane];
            }
        }
        for lane in 0..WIDTH {
            sums[lane] += decays[lane] * value[lane];
        }
    }
    sums.iter().sum()
}

/// Adds share e^{-s w} to the integrals, but for the factorials.
#[multiversion(targets = "simd")]
fn add_scaled(s: f64, share: f64, decays: &[[f64; WIDTH]], blocks: &mut [Block]) {
    for (block, decays) in blocks.iter_mut().zip(decays) {
        let mut term = decays.map(|decay| share * decay);
        let x = block.half.map(|half| exponent(s, half));
        for sums in &mut block.integral {
            for lane in 0..WIDTH {
                sums[lane] += term[lane];
                term[lane] *= x[lane];
            }
        }
    }
}

/// A polynomial in t at every weight of a bin.
#[multiversion(targets = "simd")]
fn evaluate(
    weights: &[f64],
    centre: f64,
    half: f64,
    polynomial: &[f64; TERMS],
    values: &mut [f64],
) {
    for (value, weight) in values.iter_mut().zip(weights) {
        let t = (weight - centre) / half;
        let mut sum = polynomial[TERMS - 1];
        for coefficient in polynomial[..TERMS - 1].iter().rev() {
            sum = sum * t + coefficient;
        }
        *value = sum;
    }
}

/// The tokens of one tier by rising bin of the weight.
struct Members {
    tokens: Vec<u32>,
    weights: Vec<f64>,
    masses: Vec<f64>,
    /// What rejects, 1 or 0.
    reject: f64,
    /// Mass of everything below the tier.
    base: f64,
    /// n - 1.
    others: i32,
}

impl Members {
    /// The first member of every bin.
    fn starts(&self) -> Vec<usize> {
        let mut starts = Vec::new();
        let mut last = None;
        for (member, &weight) in self.weights.iter().enumerate() {
            if last.replace(bin(weight)) != Some(bin(weight)) {
                starts.push(member);
            }
        }
        starts
    }

    fn blocks(&self, starts: &[usize]) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(starts.len().div_ceil(WIDTH));
        for (index, own) in starts.chunks(WIDTH).enumerate() {
            let mut block = Block {
                centre: [0.0; WIDTH],
                half: [0.0; WIDTH],
                moments: [[0.0; WIDTH]; TERMS],
                integral: [[0.0; WIDTH]; TERMS],
            };
            for lane in 0..WIDTH {
                let Some(&start) = own.get(lane) else {
                    block.centre[lane] = block.centre[lane - 1];
                    block.half[lane] = block.half[lane - 1];
                    continue;
                };
                let end = starts.get(index * WIDTH + lane + 1);
                let members = start..end.copied().unwrap_or(self.weights.len());
                let key = bin(self.weights[start]) as u64;
                let lower = f64::from_bits(key << BIN_SHIFT);
                let upper = f64::from_bits((key + 1) << BIN_SHIFT);
                block.centre[lane] = 0.5 * (lower + upper);
                block.half[lane] = 0.5 * (upper - lower);
                let (centre, half) = (block.centre[lane], block.half[lane]);
                let mut sums = [0.0; TERMS];
                let chunks = self.weights[members.clone()].chunks(CHUNK);
                for (weights, masses) in chunks.zip(self.masses[members].chunks(CHUNK)) {
                    let own = power_sums(weights, masses, centre, half);
                    for (sum, own) in sums.iter_mut().zip(own) {
                        *sum += own;
                    }
                }
                let mut factorial = 1.0;
                for (k, (moments, sum)) in block.moments.iter_mut().zip(sums).enumerate() {
                    factorial *= k.max(1) as f64;
                    moments[lane] = sum / factorial;
                }
            }
            blocks.push(block);
        }
        blocks
    }

    /// Integral over s > 0 of e^{-s w} field(s) ds for the weight w of every member,
    ///
    /// field(s) = e^{-s w_0} (b + phi)^{n-1}, phi(s) = sum of q_j e^{-s w_j};
    ///
    /// without a rejecting slot less b^{n-1}, the part where all others are below: that
    /// part is b^{n-1}/w whatever w is.
    ///
    /// The trapezoidal rule in log s. For every weight the integrand is a positive
    /// mixture of e^{-sW}, whose relative error is at most
    /// 2 sum over k >= 1 of |Gamma(1 + 2 pi i k/h)| < 1e-18 at this step. A bin costs an
    /// exponential at some 64 nodes, where s w is between [`LIGHT`] and [`HEAVY`]; left of
    /// them it enters through the first moments of s w.
    fn integrals(&self) -> Vec<f64> {
        let count = self.weights.len();
        let mut integrals = vec![0.0; count];
        let starts = self.starts();
        let mut blocks = self.blocks(&starts);
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return integrals;
        };
        let (smallest, largest) = (first.ends().0.max(SMALLEST), last.ends().1);
        let last = CUT / (smallest + self.reject);
        let first = FIRST / (f64::from(self.others + 1) * largest + self.reject);
        let nodes = ((last.ln() - first.ln()) / STEP).ceil() as usize + 1;
        let shrink: [f64; LIGHT_TERMS] = std::array::from_fn(|j| (-STEP * j as f64).exp());
        let mut moments = [0.0f64; LIGHT_TERMS];
        let mut decays = vec![[0.0; WIDTH]; blocks.len()];
        // Blocks below `light` are light, those from `end` on have decayed.
        let (mut light, mut end) = (0, 0);
        // s ds field(s) by node, and the first node at which each block is light.
        let mut shares = Vec::with_capacity(nodes);
        let mut light_from = vec![nodes; blocks.len()];
        for node in 0..nodes {
            let s = last * (-STEP * node as f64).exp();
            for (moment, shrink) in moments.iter_mut().zip(&shrink) {
                *moment *= shrink;
            }
            while light < blocks.len() && s * blocks[light].ends().1 <= LIGHT {
                for (moment, own) in moments.iter_mut().zip(blocks[light].light_moments(s)) {
                    *moment += own;
                }
                light_from[light] = node;
                light += 1;
            }
            while end < blocks.len() && s * blocks[end].ends().0 < HEAVY {
                end += 1;
            }
            let end = end.max(light);
            let far = transform(s, &blocks[light..end], &mut decays[light..end]);
            let phi = far + taylor(&moments, 1.0);
            let share = STEP * s * self.field(s, phi);
            add_scaled(s, share, &decays[light..end], &mut blocks[light..end]);
            shares.push(share);
        }
        for block in &mut blocks {
            let mut factorial = 1.0;
            for (k, integral) in block.integral.iter_mut().enumerate() {
                factorial *= k.max(1) as f64;
                for integral in integral {
                    *integral /= factorial;
                }
            }
        }
        // Nodes at which a block is light: sums of share times (s/s_k)^j, from the left
        // up to the node k that is its last.
        let mut sums = [0.0f64; LIGHT_TERMS];
        let mut left = light;
        for node in (0..nodes).rev() {
            for (sum, shrink) in sums.iter_mut().zip(&shrink) {
                *sum = *sum * shrink + shares[node];
            }
            let s = last * (-STEP * node as f64).exp();
            while left > 0 && light_from[left - 1] == node {
                left -= 1;
                blocks[left].add_light(s, &sums);
            }
        }
        for (index, &start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(count);
            let (block, lane) = (&blocks[index / WIDTH], index % WIDTH);
            evaluate(
                &self.weights[start..end],
                block.centre[lane],
                block.half[lane],
                &block.integral.map(|row| row[lane]),
                &mut integrals[start..end],
            );
        }
        integrals
    }

    fn field(&self, s: f64, phi: f64) -> f64 {
        if self.reject > 0.0 {
            return (-s * self.reject).exp() * (self.base + phi).powi(self.others);
        }
        // (b + phi)^{n-1} - b^{n-1} without subtracting.
        let (mut difference, mut power) = (0.0, 1.0);
        for _ in 0..self.others {
            // x^{k+1} - b^{k+1} = (x^k - b^k) x + b^k (x - b)
            difference = difference * (self.base + phi) + power * phi;
            power *= self.base;
        }
        difference
    }
}

/// Tokens by bin of their weight, with the weights and masses.
fn by_bin(tokens: &[u32], weight: &[f64], mass: &[f64]) -> (Vec<u32>, Vec<f64>, Vec<f64>) {
    let keys = tokens.iter().map(|&token| bin(weight[token as usize]));
    let (lowest, highest) = keys.clone().fold((usize::MAX, 0), |(low, high), key| {
        (low.min(key), high.max(key))
    });
    let mut slots = vec![0usize; (highest + 1).saturating_sub(lowest)];
    for key in keys {
        slots[key - lowest] += 1;
    }
    let mut start = 0;
    for slot in &mut slots {
        let count = *slot;
        *slot = start;
        start += count;
    }
    let mut sorted = vec![0; tokens.len()];
    let (mut weights, mut masses) = (vec![0.0; tokens.len()], vec![0.0; tokens.len()]);
    for &token in tokens {
        let own = weight[token as usize];
        let slot = &mut slots[bin(own) - lowest];
        sorted[*slot] = token;
        weights[*slot] = own;
        masses[*slot] = mass[token as usize];
        *slot += 1;
    }
    (sorted, weights, masses)
}

/// Sum over j of (-x)^j/j! times the entries.
fn taylor(entries: &[f64; LIGHT_TERMS], x: f64) -> f64 {
    let mut sum = 0.0;
    for j in (0..LIGHT_TERMS).rev() {
        sum = entries[j] - sum * x / (j + 1) as f64;
    }
    sum
}

/// How often every token is emitted before it is thinned, by a trapezoidal rule of its own
/// in log s. O(V).
pub(in crate::plan) fn emission(plan: &TokenPlan, draft: &[f64]) -> Vec<f64> {
    let n = plan.drafts() as f64;
    let power = plan.drafts() as i32 - 1;
    let mut tiers: Vec<Vec<u32>> = Vec::new();
    let mut never = Vec::new();
    for (token, &mass) in (0u32..).zip(draft) {
        match plan.tier_of(token) {
            Some(tier) => {
                let tier = tier as usize;
                if tiers.len() <= tier {
                    tiers.resize(tier + 1, Vec::new());
                }
                tiers[tier].push(token);
            }
            None => never.push(mass),
        }
    }
    let mut base = TwoFloat::from(split_sum(&never, &never, |mass, _| mass));
    let mut emitted = vec![0.0; plan.vocab()];
    for (tier, tokens) in (0u32..).zip(tiers) {
        let (tokens, weights, masses) = by_bin(&tokens, plan.weights(), draft);
        let members = Members {
            tokens,
            weights,
            masses,
            reject: plan.rejecting_weight(tier),
            base: base.value(),
            others: power,
        };
        let alone = if members.reject > 0.0 {
            0.0
        } else {
            members.base.powi(power)
        };
        for (slot, integral) in members.integrals().into_iter().enumerate() {
            let token = members.tokens[slot] as usize;
            let share = alone + members.weights[slot] * integral;
            emitted[token] = n * members.masses[slot] * share;
        }
        base += split_sum(&members.masses, &members.masses, |mass, _| mass);
    }
    emitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PlanSettings;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::distribution::{Draft, Target};
    use specgap_number::quadrature::gauss_legendre;

    /// Points a panel, and how much longer each panel's right end is than its left.
    const POINTS: usize = 20;
    const GROWTH: f64 = 2.5;

    /// The integrals by Gauss-Legendre panels.
    fn by_panels(members: &Members) -> Vec<f64> {
        let rule = gauss_legendre(POINTS);
        let (smallest, largest) = (
            members.weights[0],
            members.weights[members.weights.len() - 1],
        );
        let n = f64::from(members.others + 1);
        let last = 42.0 / (members.reject + smallest);
        let (mut left, mut right) = (0.0, 1.0 / (n * largest + members.reject));
        let mut sums = vec![0.0; members.weights.len()];
        while left < last {
            for &(x, weight) in &rule {
                let s = 0.5 * (left + right) + 0.5 * (right - left) * x;
                let ds = 0.5 * (right - left) * weight;
                let decays: Vec<f64> = members.weights.iter().map(|w| (-s * w).exp()).collect();
                let phi: f64 = decays.iter().zip(&members.masses).map(|(d, q)| d * q).sum();
                let all = (members.base + phi).powi(members.others);
                let field = if members.reject > 0.0 {
                    (-s * members.reject).exp() * all
                } else {
                    all - members.base.powi(members.others)
                };
                for (sum, decay) in sums.iter_mut().zip(&decays) {
                    *sum += ds * field * decay;
                }
            }
            (left, right) = (right, right * GROWTH);
        }
        sums
    }

    /// Two integrals of one function, and n = 2 without any: 40 tiers with weights over
    /// up to 16 decades.
    #[test]
    fn the_integrals_agree_with_panels_and_with_the_closed_form() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for trial in 0..40usize {
            let count = 1 + trial % 7 * 5;
            let spread = rng.random_range(0.1..37.0);
            let mut weights: Vec<f64> = (0..count)
                .map(|_| (spread * (rng.random::<f64>() - 0.5)).exp())
                .collect();
            weights.sort_by(f64::total_cmp);
            let masses: Vec<f64> = (0..count)
                .map(|_| 0.9 * rng.random::<f64>() / count as f64)
                .collect();
            let members = Members {
                tokens: (0..count as u32).collect(),
                base: 0.1,
                reject: f64::from(trial as u8 % 2),
                others: trial as i32 % 5,
                weights,
                masses,
            };
            let found = members.integrals();
            for (slot, (a, b)) in found.iter().zip(by_panels(&members)).enumerate() {
                assert!((a - b).abs() <= 3e-14 * b, "{trial} {slot}: {a} {b}");
            }
            if members.others == 1 {
                for (slot, found) in found.iter().enumerate() {
                    let own = members.weights[slot] + members.reject;
                    let mut sum = members.base * members.reject / own;
                    for (w, q) in members.weights.iter().zip(&members.masses) {
                        sum += q / (own + w);
                    }
                    assert!(
                        (found - sum).abs() <= 3e-15 * sum,
                        "{trial} {slot}: {found} {sum}"
                    );
                }
            }
        }
    }

    /// Bins with many tokens, in an order of their own, against an exponential a token
    /// and node.
    #[test]
    fn bins_of_many_tokens_agree_with_panels() {
        let mut rng = ChaCha8Rng::seed_from_u64(10);
        for (count, spread, reject, others) in [(700, 0.2, 1.0, 1), (900, 9.0, 0.0, 3)] {
            let weight: Vec<f64> = (0..count)
                .map(|_| (spread * (rng.random::<f64>() - 0.5)).exp())
                .collect();
            let mass: Vec<f64> = (0..count)
                .map(|_| 0.9 * rng.random::<f64>() / count as f64)
                .collect();
            let all: Vec<u32> = (0..count as u32).collect();
            let (tokens, weights, masses) = by_bin(&all, &weight, &mass);
            assert!(weights.is_sorted_by_key(|&weight| bin(weight)));
            let mut members = Members {
                base: 0.1,
                reject,
                others,
                weights,
                masses,
                tokens,
            };
            let found = members.integrals();
            for (slot, &token) in members.tokens.iter().enumerate() {
                assert_eq!(members.weights[slot], weight[token as usize]);
                assert_eq!(members.masses[slot], mass[token as usize]);
            }
            // Panels want the smallest weight first and the largest last.
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by(|&a, &b| members.weights[a].total_cmp(&members.weights[b]));
            members.weights = order.iter().map(|&slot| members.weights[slot]).collect();
            members.masses = order.iter().map(|&slot| members.masses[slot]).collect();
            for (a, &slot) in by_panels(&members).iter().zip(&order) {
                assert!((found[slot] - a).abs() <= 3e-14 * a, "{}: {a}", found[slot]);
            }
        }
    }

    /// The remainder stated at [`TERMS`], at both ends of bins.
    #[test]
    fn the_series_of_a_bin_ends_where_it_is_said_to() {
        for key in [1.0, 1.5, 1.99, 3e-9].map(bin) {
            let lower = f64::from_bits((key as u64) << BIN_SHIFT);
            let upper = f64::from_bits((key as u64 + 1) << BIN_SHIFT);
            let narrow = (upper - lower) / (upper + lower);
            for step in 0..400 {
                let z = 1e-3 * 1.035f64.powi(step);
                for t in [-1.0, -0.5, 0.7, 1.0] {
                    let x = -z * narrow * t;
                    // The next 40 terms, which is all there is.
                    let mut term = (1..TERMS).fold(1.0, |term, k| term * x / k as f64);
                    let mut rest = 0.0;
                    for k in TERMS..TERMS + 40 {
                        term *= x / k as f64;
                        rest += term;
                    }
                    assert!((rest * (-z).exp()).abs() < 3.5e-18, "{z} {t}: {rest}");
                }
            }
        }
    }

    #[test]
    fn extreme_weights_and_no_members_are_no_trouble() {
        let members = |weights: Vec<f64>| Members {
            tokens: (0..weights.len() as u32).collect(),
            masses: vec![0.25; weights.len()],
            weights,
            reject: 0.0,
            base: 0.0,
            others: 1,
        };
        assert!(members(Vec::new()).integrals().is_empty());
        assert!(by_bin(&[], &[], &[]).0.is_empty());
        for weights in [vec![5e-324], vec![1e-310, 1.0], vec![1e-280, 1e280]] {
            for integral in members(weights).integrals() {
                assert!(integral.is_finite(), "{integral}");
            }
        }
    }

    #[test]
    fn one_draft_is_emitted_as_it_comes() {
        let (p, q) = (
            Target::new(&[0.5, 0.3, 0.2]).unwrap(),
            Draft::new(&[0.2, 0.3, 0.5]).unwrap(),
        );
        let plan = TokenPlan::iid(&p, &q, 1, &PlanSettings::default()).unwrap();
        let law = plan.law(&p, &q);
        assert!((law.acceptance_rate - 0.7).abs() < 1e-12);
        assert!(law.l1_error < 1e-12);
    }
}
