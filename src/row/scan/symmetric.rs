//! Elementary symmetric polynomials of q along the chain of buckets.
//!
//! `prod (1 + q_i t)` truncated after t^n: coefficients are e_0..e_n. Two ways:
//!
//! *Power sums.* A threshold parts light tokens from heavy ones. Light tokens enter by
//! the power sums s_j of their bucket, and the light part of a prefix is
//! exp(s_1 t - s_2 t^2/2 + s_3 t^3/3 - ...). Heavy tokens are multiplied out, in a tree.
//!
//! *Every token multiplied*, in a tree: for rows without such a threshold, and for rows
//! scaled by a power of two.
//!
//! The error of either is in the doc of [`super`].

use super::{BUCKETS, Link, MAX_DRAFTS, ROUNDING};
use crate::distribution::Wide;
use multiversion::multiversion;

/// Tokens that one running product absorbs before it is set aside.
const ABSORBED: usize = 128;

/// The same, for heavy tokens of one bucket and for tokens walked one by one.
const FEW_ABSORBED: usize = 32;

/// Entries merged in a row at each of the two lower levels of the product tree.
const FAN: usize = 12;

/// e_n may not be below this share of the largest e_k: what underflows on the way
/// is then below 2^-60 of it.
const SMALLEST_SHARE: f64 = f64::from_bits((1023 - 980) << 52);
const LARGEST: f64 = f64::from_bits((1023 + 1000) << 52);

/// Largest power of two by which rows are scaled.
const EXPONENT_LIMIT: i32 = 1000;

/// Largest q of a light token, over the light mass L: while the power sums hold all
/// n terms, and while they are cut off.
const LIGHT_SHARE: f64 = 1.0 / 256.0;
const LIGHT_SHARE_CUT: f64 = 1.0 / 4096.0;

/// Least q, over L, of the light tokens whose powers from the sixth on are summed: for
/// the same two.
const HIGH_SHARE: f64 = 1.0 / 4096.0;
const HIGH_SHARE_CUT: f64 = 1.0 / 262_144.0;

/// Power sums a bucket, from s_2 on: for few draws, and for more. s_1 comes from the
/// bucket's masses.
const FEW_POWERS: usize = 4;
const POWERS: usize = 8;

/// Thresholds tried.
const TRIES: usize = 6;

/// Light masses below this are not worth the power sums.
const LEAST_LIGHT: f64 = f64::from_bits((1023 - 30) << 52);

/// Powers of less are left out: they matter below 2^-59, and might be denormal.
const LEAST_POWERED: f64 = f64::from_bits((1023 - 100) << 52);

/// Most tokens for one heavy one.
const LEAST_TOKENS_A_HEAVY: usize = 8;

/// What the power sums' rounding may cost, in units of u.
const SUMS_LIMIT: f64 = 400.0;

/// Tokens looked at together.
const LANES: usize = 16;
const BLOCK: usize = 256;

/// Which of the powers 2 to 5 hold another factor q, and which another q^2. Handed
/// over as an argument: four different products out of constants would be made one by
/// one instead of in one vector.
type Selectors = [[f64; FEW_POWERS]; 2];
const SELECTORS: Selectors = [[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]];

/// Four power sums of a bucket. Unaligned, half of them would straddle two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct PowerSums([f64; FEW_POWERS]);

/// Truncated products over the buckets of one position.
#[derive(Clone, Debug, Default)]
pub(super) struct Symmetric {
    /// Coefficients a polynomial, at least the degree and 1; 0 if not built.
    stride: usize,
    scale: f64,
    /// Roundings that a factor of a term of a prefix went through at most.
    path: f64,
    /// What inexact power sums add to the error, in units of u; 0 without them.
    sums_error: f64,
    active: Vec<f64>,
    absorbed: Vec<u32>,
    /// Products set aside, with their bucket and position.
    settled: Vec<(u16, u32)>,
    settled_products: Vec<f64>,
    /// Power sums of the light tokens by bucket: s_2 to s_5, and s_6 to s_9.
    low_powers: Vec<PowerSums>,
    high_powers: Vec<PowerSums>,
    /// Heavy tokens by bucket.
    heavy: Vec<(u16, u32)>,
    /// One polynomial before the first link, and one after each.
    prefixes: Vec<f64>,
}

impl Symmetric {
    pub(super) fn forget(&mut self) {
        self.stride = 0;
    }

    pub(super) fn is_ready(&self) -> bool {
        self.stride > 0
    }

    /// e_0.. of the buckets before link `index`.
    pub(super) fn prefix(&self, index: usize) -> &[f64] {
        &self.prefixes[index * self.stride..(index + 1) * self.stride]
    }

    fn last(&self) -> &[f64] {
        &self.prefixes[self.prefixes.len() - self.stride..]
    }

    /// e_n of the whole vocabulary.
    pub(super) fn whole(&self, draws: usize) -> f64 {
        self.last()[draws]
    }

    /// Whether e_n, and all that it is made of, stayed within the range of `f64`.
    pub(super) fn is_safe(&self, draws: usize) -> bool {
        let last = self.last();
        let largest = last[..=draws].iter().copied().fold(1.0, f64::max);
        largest <= LARGEST && last[draws] >= SMALLEST_SHARE * largest
    }

    /// The error of e_0..e_n of a prefix and up to `walked` tokens after it, in units of
    /// u and over the same of the whole vocabulary.
    pub(super) fn roundings(&self, draws: usize, walked: usize) -> f64 {
        let path = match walked {
            0 => self.path,
            _ => {
                let fan = 2.0 * Walk::fan(walked) as f64;
                self.path.max(FEW_ABSORBED as f64 + 1.0 + fan) + fan + 4.0
            }
        };
        draws as f64 * path + self.sums_error
    }

    /// Builds the prefixes, with q scaled by 2^`exponent`.
    pub(super) fn build(
        &mut self,
        most_drafts: usize,
        draft: &[f64],
        buckets: &[u16],
        links: &[Link],
        exponent: i32,
    ) {
        self.scale = power_of_two(exponent);
        if exponent == 0
            && let Some(threshold) = Threshold::find(draft, most_drafts)
        {
            self.add_powers(draft, buckets, threshold);
            let built = match most_drafts {
                ..=2 => self.sum_up::<3, FEW_POWERS>(draft, links, threshold),
                3 => self.sum_up::<4, FEW_POWERS>(draft, links, threshold),
                4 => self.sum_up::<5, FEW_POWERS>(draft, links, threshold),
                5 => self.sum_up::<6, FEW_POWERS>(draft, links, threshold),
                6 => self.sum_up::<7, POWERS>(draft, links, threshold),
                7 => self.sum_up::<8, POWERS>(draft, links, threshold),
                8 => self.sum_up::<9, POWERS>(draft, links, threshold),
                9..=16 => self.sum_up::<17, POWERS>(draft, links, threshold),
                17..=32 => self.sum_up::<33, POWERS>(draft, links, threshold),
                _ => self.sum_up::<{ MAX_DRAFTS + 1 }, POWERS>(draft, links, threshold),
            };
            if built {
                return;
            }
        }
        match most_drafts {
            ..=2 => self.multiply_out::<3>(draft, buckets, links),
            3 => self.multiply_out::<4>(draft, buckets, links),
            4 => self.multiply_out::<5>(draft, buckets, links),
            5 => self.multiply_out::<6>(draft, buckets, links),
            6 => self.multiply_out::<7>(draft, buckets, links),
            7 => self.multiply_out::<8>(draft, buckets, links),
            8 => self.multiply_out::<9>(draft, buckets, links),
            9..=16 => self.multiply_out::<17>(draft, buckets, links),
            17..=32 => self.multiply_out::<33>(draft, buckets, links),
            _ => self.multiply_out::<{ MAX_DRAFTS + 1 }>(draft, buckets, links),
        }
    }

    fn add_powers(&mut self, draft: &[f64], buckets: &[u16], threshold: Threshold) {
        self.heavy.clear();
        for powers in [&mut self.low_powers, &mut self.high_powers] {
            powers.clear();
            powers.resize(BUCKETS, PowerSums::default());
        }
        if let (Ok(low), Ok(high)) = (
            self.low_powers.as_mut_slice().try_into(),
            self.high_powers.as_mut_slice().try_into(),
        ) {
            let heavy = &mut self.heavy;
            add_powers(draft, buckets, threshold, &SELECTORS, low, high, heavy);
        }
    }

    /// The prefixes from power sums and heavy tokens; false if they would be too inexact.
    fn sum_up<const M: usize, const P: usize>(
        &mut self,
        draft: &[f64],
        links: &[Link],
        threshold: Threshold,
    ) -> bool {
        self.heavy.sort_unstable();
        self.stride = M;
        let mut tree = Tree::<M>::new();
        let mut heavy = self.heavy.iter().copied().peekable();
        let mut heavy_prefix = unit::<M>();
        let mut sums = [0.0; P];
        let (mut mass, mut rest) = (0.0, 0.0);
        let (mut entries, mut most_absorbed) = (0, 0);
        self.prefixes.clear();
        self.prefixes.extend_from_slice(&unit::<M>());
        for link in links {
            mass += link.own.draft;
            rest += link.own.draft_rest;
            while heavy
                .peek()
                .is_some_and(|&(bucket, _)| usize::from(bucket) == link.bucket)
            {
                let mut product = unit::<M>();
                let mut absorbed = 0;
                while absorbed < FEW_ABSORBED
                    && let Some((_, token)) =
                        heavy.next_if(|&(bucket, _)| usize::from(bucket) == link.bucket)
                {
                    let q = draft[token as usize];
                    absorb(&mut product, q);
                    let high = (q + 1.0) - 1.0;
                    mass -= high;
                    rest -= q - high;
                    absorbed += 1;
                }
                tree.push(&product);
                heavy_prefix = tree.prefix();
                entries += 1;
                most_absorbed = most_absorbed.max(absorbed);
            }
            let low = &self.low_powers[link.bucket].0;
            let high = &self.high_powers[link.bucket].0;
            for (sum, power) in sums.iter_mut().zip(low.iter().chain(high)) {
                *sum += power;
            }
            let light = light_product::<M, P>(f64::max(mass + rest, 0.0), &sums);
            self.prefixes
                .extend_from_slice(&multiply(&heavy_prefix, &light));
        }
        let crowd = links.iter().map(|link| link.tokens).max().unwrap_or(0);
        let additions = f64::from(crowd) + (links.len() + self.heavy.len()) as f64;
        let light = mass + rest;
        self.sums_error = threshold.sums_error(light, &sums, additions, draft.len());
        let heavy_path = if entries == 0 {
            0.0
        } else {
            most_absorbed as f64 + 1.0 + 2.0 * Tree::<M>::merges(entries) as f64
        };
        let steps = threshold.draws.min(P + 1) as f64 + 3.0;
        self.path = heavy_path.max(steps * threshold.excess(light)) + 2.0;
        // Also false for NaN.
        self.sums_error <= SUMS_LIMIT
    }

    fn multiply_out<const M: usize>(&mut self, draft: &[f64], buckets: &[u16], links: &[Link]) {
        self.stride = M;
        self.settled.clear();
        self.settled_products.clear();
        self.active.clear();
        self.active.resize(BUCKETS * M, 0.0);
        self.absorbed.clear();
        self.absorbed.resize(BUCKETS, 0);
        let (active, _) = self.active.as_chunks_mut::<M>();
        for product in active.iter_mut() {
            product[0] = 1.0;
        }
        if let (Ok(active), Ok(absorbed)) = (
            <&mut [[f64; M]; BUCKETS]>::try_from(active),
            <&mut [u32; BUCKETS]>::try_from(self.absorbed.as_mut_slice()),
        ) {
            for (&q, &bucket) in draft.iter().zip(buckets) {
                let index = usize::from(bucket) % BUCKETS;
                let product = &mut active[index];
                absorb(product, q * self.scale);
                absorbed[index] += 1;
                if absorbed[index] == ABSORBED as u32 {
                    self.settled.push((bucket, self.settled.len() as u32));
                    self.settled_products.extend_from_slice(product);
                    *product = unit();
                    absorbed[index] = 0;
                }
            }
        }
        self.settled.sort_unstable();
        self.chain::<M>(links);
        let crowd = links.iter().map(|link| link.tokens).max().unwrap_or(0);
        let absorbed = f64::from(crowd.min(ABSORBED as u32));
        let merges = Tree::<M>::merges(links.len() + self.settled.len());
        self.path = absorbed + 1.0 + 2.0 * merges as f64;
        self.sums_error = 0.0;
    }

    /// Prefix products at the ends of the links.
    fn chain<const M: usize>(&mut self, links: &[Link]) {
        let (active, _) = self.active.as_chunks::<M>();
        let (settled_products, _) = self.settled_products.as_chunks::<M>();
        let mut settled = self.settled.iter().peekable();
        let mut tree = Tree::<M>::new();
        self.prefixes.clear();
        self.prefixes.extend_from_slice(&unit::<M>());
        for link in links {
            while let Some(&&(bucket, place)) = settled.peek()
                && usize::from(bucket) == link.bucket
            {
                tree.push(&settled_products[place as usize]);
                settled.next();
            }
            tree.push(&active[link.bucket]);
            self.prefixes.extend_from_slice(&tree.prefix());
        }
    }

    /// Starts to absorb up to `tokens` tokens one by one after the buckets before link
    /// `index`.
    pub(super) fn walk(&self, index: usize, tokens: usize) -> Walk {
        let mut start = [0.0; MAX_DRAFTS + 1];
        start[..self.stride].copy_from_slice(self.prefix(index));
        Walk {
            top: start,
            middle: unit(),
            base: start,
            local: unit(),
            in_local: 0,
            in_middle: 0,
            fan: Walk::fan(tokens),
            scale: self.scale,
        }
    }

    /// The most that e_n of a prefix and of tokens of mass `mass` after it can be: that
    /// of infinitely many tokens. `roundings` as by [`Self::roundings`].
    pub(super) fn most(&self, index: usize, mass: f64, draws: usize, roundings: f64) -> f64 {
        let error = roundings * ROUNDING;
        let mut power = 1.0;
        let mut most = 0.0;
        let coefficients = self.prefix(index).iter().zip(self.last());
        for (k, (own, whole)) in coefficients.take(draws + 1).rev().enumerate() {
            most += (own + error * whole) * power;
            power *= mass * self.scale / (k + 1) as f64;
        }
        most
    }
}

/// Which tokens are light.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    draws: usize,
    largest: f64,
    /// Light tokens up to this are left out of s_6 and on.
    low: f64,
}

impl Threshold {
    /// A threshold that is a small share of the mass it leaves light.
    fn find(draft: &[f64], draws: usize) -> Option<Self> {
        let (share, high_share) = if draws <= POWERS + 1 {
            (LIGHT_SHARE, HIGH_SHARE)
        } else {
            (LIGHT_SHARE_CUT, HIGH_SHARE_CUT)
        };
        let mut largest = 0.5 * share;
        for _ in 0..TRIES {
            let (light, heavy) = light_mass(draft, largest);
            if light < LEAST_LIGHT || heavy > draft.len() / LEAST_TOKENS_A_HEAVY {
                return None;
            }
            if largest <= share * light {
                let low = if draws <= FEW_POWERS + 1 {
                    largest
                } else {
                    high_share * light
                };
                return Some(Self {
                    draws,
                    largest,
                    low,
                });
            }
            largest = 0.5 * share * light;
        }
        None
    }

    /// The most by which h_k of the light tokens exceeds e_k, k <= n.
    fn excess(&self, light: f64) -> f64 {
        let step = self.largest / light;
        let ratio = |i: usize| (1.0 + i as f64 * step) / (1.0 - i as f64 * step);
        1.01 * (0..self.draws).map(ratio).product::<f64>()
    }

    /// What errors of the power sums do to e_n, relative and in units of u: of s_1, of
    /// the others by `additions`, and by what is left out.
    fn sums_error(&self, light: f64, sums: &[f64], additions: f64, vocab: usize) -> f64 {
        let least = light - self.draws as f64 * self.largest;
        // Of the low tokens left out of s_j, and of all from s_10 on.
        let mut low_out = light * self.low.powi(FEW_POWERS as i32);
        let mut cut_off = 0.0;
        let mut share = 1.0;
        let mut total = 0.0;
        for j in 1..=self.draws {
            let sum = j.checked_sub(2).and_then(|index| sums.get(index));
            let error = match sum {
                _ if j == 1 => light + vocab as f64 * additions * f64::EPSILON,
                Some(sum) if j <= FEW_POWERS + 1 => (additions + j as f64) * sum,
                Some(sum) => {
                    low_out *= self.low;
                    cut_off = sum + low_out;
                    (additions + j as f64) * sum + low_out / ROUNDING
                }
                None => {
                    cut_off *= self.largest;
                    cut_off / ROUNDING
                }
            };
            share *= (self.draws + 1 - j) as f64 / least;
            total += error / j as f64 * share;
        }
        1.01 * total
    }
}

/// A prefix that grows by single tokens.
pub(super) struct Walk {
    top: [f64; MAX_DRAFTS + 1],
    middle: [f64; MAX_DRAFTS + 1],
    /// top times middle.
    base: [f64; MAX_DRAFTS + 1],
    local: [f64; MAX_DRAFTS + 1],
    in_local: usize,
    in_middle: usize,
    fan: usize,
    scale: f64,
}

impl Walk {
    /// Products merged in a row at each of two levels, for a number of tokens.
    fn fan(tokens: usize) -> usize {
        tokens.div_ceil(FEW_ABSORBED).isqrt() + 1
    }

    /// Adds a token and returns e_n of the prefix.
    pub(super) fn absorb(&mut self, q: f64, draws: usize) -> f64 {
        let local = &mut self.local[..=draws];
        for k in (1..=draws).rev() {
            local[k] += q * self.scale * local[k - 1];
        }
        let inside = coefficient(&self.base, local, draws);
        self.in_local += 1;
        if self.in_local == FEW_ABSORBED {
            self.settle(draws);
        }
        inside
    }

    fn settle(&mut self, draws: usize) {
        let merge = |into: &mut [f64], own: &mut [f64; MAX_DRAFTS + 1]| {
            for degree in (0..=draws).rev() {
                into[degree] = coefficient(into, own, degree);
            }
            *own = unit();
        };
        merge(&mut self.middle, &mut self.local);
        self.in_local = 0;
        self.in_middle += 1;
        if self.in_middle == self.fan {
            merge(&mut self.top, &mut self.middle);
            self.in_middle = 0;
        }
        for degree in 0..=draws {
            self.base[degree] = coefficient(&self.top, &self.middle, degree);
        }
    }
}

fn coefficient(a: &[f64], b: &[f64], degree: usize) -> f64 {
    let pairs = a[..=degree].iter().zip(b[..=degree].iter().rev());
    pairs.map(|(a, b)| a * b).sum()
}

/// Prefix products of a sequence in three levels.
struct Tree<const M: usize> {
    top: [f64; M],
    middle: [f64; M],
    low: [f64; M],
    /// top times middle.
    base: [f64; M],
    in_low: usize,
    in_middle: usize,
}

impl<const M: usize> Tree<M> {
    fn new() -> Self {
        Self {
            top: unit(),
            middle: unit(),
            low: unit(),
            base: unit(),
            in_low: 0,
            in_middle: 0,
        }
    }

    fn push(&mut self, product: &[f64; M]) {
        if self.in_low == FAN {
            self.middle = multiply(&self.middle, &self.low);
            self.low = unit();
            self.in_low = 0;
            self.in_middle += 1;
            if self.in_middle == FAN {
                self.top = multiply(&self.top, &self.middle);
                self.middle = unit();
                self.in_middle = 0;
            }
            self.base = multiply(&self.top, &self.middle);
        }
        self.low = multiply(&self.low, product);
        self.in_low += 1;
    }

    fn prefix(&self) -> [f64; M] {
        multiply(&self.base, &self.low)
    }

    /// Products between an entry and a prefix of `entries` entries.
    fn merges(entries: usize) -> usize {
        entries.min(2 * FAN + entries / (FAN * FAN)) + 3
    }
}

fn unit<const M: usize>() -> [f64; M] {
    let mut unit = [0.0; M];
    unit[0] = 1.0;
    unit
}

/// Multiplies by 1 + q t.
#[inline(always)]
fn absorb<const M: usize>(product: &mut [f64; M], q: f64) {
    let before = *product;
    for k in 1..M {
        product[k] = before[k] + q * before[k - 1];
    }
}

/// The product over light tokens from their power sums, s_1 and s_2...
#[inline(always)]
fn light_product<const M: usize, const P: usize>(mass: f64, sums: &[f64; P]) -> [f64; M] {
    let mut product = unit::<M>();
    for k in 1..M {
        // From the smallest term on.
        let mut sum = 0.0;
        for j in (2..=k.min(P + 1)).rev() {
            let term = sums[j - 2] * product[k - j];
            sum = if j % 2 == 0 { sum - term } else { sum + term };
        }
        sum += mass * product[k - 1];
        product[k] = (sum * (1.0 / k as f64)).max(0.0);
    }
    product
}

/// The mass of the tokens up to a threshold, and the number of those above.
#[multiversion(targets = "simd")]
fn light_mass(draft: &[f64], largest: f64) -> (f64, usize) {
    let mut sums = [0.0; LANES];
    let mut heavy = [0u64; LANES];
    let (chunks, rest) = draft.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            let light = chunk[lane] <= largest;
            sums[lane] += if light { chunk[lane] } else { 0.0 };
            heavy[lane] += u64::from(!light);
        }
    }
    for (lane, &q) in rest.iter().enumerate() {
        let light = q <= largest;
        sums[lane] += if light { q } else { 0.0 };
        heavy[lane] += u64::from(!light);
    }
    (sums.iter().sum(), heavy.iter().sum::<u64>() as usize)
}

/// Adds the powers of light tokens to their buckets, and lists the heavy ones.
#[multiversion(targets = "simd")]
fn add_powers(
    draft: &[f64],
    buckets: &[u16],
    threshold: Threshold,
    selectors: &Selectors,
    low_sums: &mut [PowerSums; BUCKETS],
    high_sums: &mut [PowerSums; BUCKETS],
    heavy: &mut Vec<(u16, u32)>,
) {
    let selectors = *selectors;
    let Threshold { largest, low, .. } = threshold;
    let mut light = [0.0; BLOCK];
    let blocks = draft.chunks(BLOCK).zip(buckets.chunks(BLOCK));
    for (block, (draft, buckets)) in (0u32..).zip(blocks) {
        let mut above = [0.0; BLOCK];
        for ((light, above), &q) in light.iter_mut().zip(&mut above).zip(draft) {
            *light = if (LEAST_POWERED..=largest).contains(&q) {
                q
            } else {
                0.0
            };
            *above = if q > low { q } else { 0.0 };
        }
        for (&q, &bucket) in light.iter().zip(buckets) {
            // The mask changes nothing and spares a bounds check.
            let sums = &mut low_sums[usize::from(bucket) % BUCKETS].0;
            for (sum, power) in sums.iter_mut().zip(low_powers(q, &selectors)) {
                *sum += power;
            }
        }
        let (chunks, _) = above.as_chunks::<LANES>();
        for (start, chunk) in (0..).step_by(LANES).zip(chunks) {
            // Without a branch first: most chunks hold none.
            if chunk.iter().fold(true, |none, &q| none & (q == 0.0)) {
                continue;
            }
            for (index, &q) in (start..).zip(chunk).filter(|&(_, &q)| q > 0.0) {
                let bucket = buckets[index];
                if q > largest {
                    heavy.push((bucket, block * BLOCK as u32 + index as u32));
                    continue;
                }
                let fourth = (q * q) * (q * q);
                let sums = &mut high_sums[usize::from(bucket) % BUCKETS].0;
                for (sum, power) in sums.iter_mut().zip(low_powers(q, &selectors)) {
                    *sum += power * fourth;
                }
            }
        }
    }
}

/// q^2, q^3, q^4 and q^5: q^2 times what the selectors select of q and of q^2.
#[inline(always)]
fn low_powers(q: f64, selectors: &Selectors) -> [f64; FEW_POWERS] {
    let square = q * q;
    let mut powers = [square; FEW_POWERS];
    for (selector, factor) in selectors.iter().zip([q, square]) {
        for (power, &select) in powers.iter_mut().zip(selector) {
            *power *= if select == 0.0 { 1.0 } else { factor };
        }
    }
    powers
}

/// The product, truncated.
#[inline(always)]
fn multiply<const M: usize>(a: &[f64; M], b: &[f64; M]) -> [f64; M] {
    let mut product = [0.0; M];
    for j in 0..M {
        for k in j..M {
            product[k] += a[j] * b[k - j];
        }
    }
    product
}

fn power_of_two(exponent: i32) -> f64 {
    let bounded = exponent.clamp(-EXPONENT_LIMIT, EXPONENT_LIMIT);
    f64::from_bits(((1023 + bounded) as u64) << 52)
}

/// The power of two that brings the product of the n largest entries near 1.
pub(super) fn balancing_exponent(draft: &[f64], draws: usize) -> i32 {
    let mut largest = [0.0f64; MAX_DRAFTS];
    let largest = &mut largest[..draws.clamp(1, MAX_DRAFTS)];
    for &q in draft {
        if q > largest[0] {
            // Ascending; the smallest drops out.
            let place = largest.partition_point(|&kept| kept < q);
            largest.copy_within(1..place, 0);
            largest[place - 1] = q;
        }
    }
    let exponents: f64 = largest
        .iter()
        .map(|&q| q.max(f64::MIN_POSITIVE).log2())
        .sum();
    -(exponents / largest.len() as f64).round() as i32
}

/// e_n along a chain of tokens, in numbers of unbounded range.
pub(super) fn wide(tokens: impl Iterator<Item = f64>, draws: usize) -> impl Iterator<Item = Wide> {
    let mut sums = vec![Wide::ZERO; draws + 1];
    sums[0] = Wide::from(1.0);
    tokens.map(move |q| {
        if q > 0.0 {
            let q = Wide::from(q);
            for k in (1..=draws).rev() {
                sums[k] = sums[k].plus(sums[k - 1].times(q));
            }
        }
        sums[draws]
    })
}

#[cfg(test)]
mod tests {
    use super::super::{BucketScan, Row, Rows};
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        let radius = (-2.0 * random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random_range(0.0..1.0)).cos()
    }

    fn normalised(mut row: Vec<f64>) -> Vec<f64> {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|entry| *entry /= total);
        row
    }

    /// A target whose ratios to the draft spread over buckets.
    fn near(draft: &[f64], spread: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
        normalised(
            draft
                .iter()
                .map(|q| q * (spread * normal(random)).exp())
                .collect(),
        )
    }

    fn lognormal(vocab: usize, width: f64, random: &mut ChaCha8Rng) -> Vec<f64> {
        normalised((0..vocab).map(|_| (width * normal(random)).exp()).collect())
    }

    /// Prefixes, walks through buckets and the rate against numbers of unbounded range;
    /// whether power sums were taken.
    fn check(target: &[f64], draft: &[f64], drafts: usize) -> bool {
        let mut scan = BucketScan::new();
        let mut position = scan.load(Rows { target, draft }, drafts).unwrap();
        let draws = drafts.min(position.draft_support());
        if draws < 2 || !position.prepare_symmetric(draws) {
            return false;
        }
        prefixes_and_walks(&mut position, draws);
        let by_power_sums = position.scan.symmetric.sums_error > 0.0;
        let found = position.distinct_conditioned(drafts).unwrap();
        let truth = position.distinct_by_wide_numbers(draws);
        let widest = if drafts <= 9 { 1e-12 } else { 1e-11 };
        assert!(found.rate.width() < widest, "{found:?}");
        assert!(
            found.rate.lower() <= truth.rate.upper(),
            "{found:?} {truth:?}"
        );
        assert!(
            truth.rate.lower() <= found.rate.upper(),
            "{found:?} {truth:?}"
        );
        by_power_sums
    }

    fn prefixes_and_walks(position: &mut Row<'_>, draws: usize) {
        let rows = position.rows;
        let mut order = Vec::new();
        for link in position.scan.links.clone() {
            position.scan.sort(rows, &link);
            let tokens = position.scan.sorted.iter();
            order.push(
                tokens
                    .map(|&(_, token)| rows.draft[token as usize])
                    .collect::<Vec<_>>(),
            );
        }
        let symmetric = &position.scan.symmetric;
        let flat = || order.iter().flatten().copied();
        let truth: Vec<Wide> = wide(flat(), draws).collect();
        let lower: Vec<Wide> = wide(flat(), draws - 1).collect();
        let (whole, whole_lower) = (*truth.last().unwrap(), *lower.last().unwrap());
        let close = |own: f64, truth: f64, walked: usize| {
            let error = 2.0 * symmetric.roundings(draws, walked) * ROUNDING;
            assert!((own - truth).abs() <= error, "{own} {truth} {error}");
        };
        let mut done = 0;
        for (index, tokens) in order.iter().enumerate() {
            let mut walk = symmetric.walk(index, tokens.len());
            for &q in tokens {
                let inside = walk.absorb(q, draws) / symmetric.whole(draws);
                close(inside, truth[done].over(whole), tokens.len());
                done += 1;
            }
            let prefix = symmetric.prefix(index + 1);
            let ends = (
                truth[done - 1].over(whole),
                lower[done - 1].over(whole_lower),
            );
            close(prefix[draws] / symmetric.whole(draws), ends.0, 0);
            close(prefix[draws - 1] / symmetric.last()[draws - 1], ends.1, 0);
        }
    }

    #[test]
    fn rows_of_language_models_take_power_sums() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for width in [1.0, 2.0, 4.0] {
            let draft = lognormal(20_000, width, &mut random);
            let target = near(&draft, 0.8, &mut random);
            for drafts in [2, 5, 6, 8] {
                assert!(check(&target, &draft, drafts), "{width} {drafts}");
            }
        }
        let draft = lognormal(50_000, 2.0, &mut random);
        assert!(check(&near(&draft, 0.8, &mut random), &draft, 16));
        // Few tokens: none of them is light.
        assert!(!check(&[0.25; 4], &[0.25; 4], 2));
    }

    #[test]
    fn a_row_as_heavy_as_light_tokens_may_be() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let draft = vec![1.0 / 512.0; 512];
        let target = near(&draft, 0.3, &mut random);
        for drafts in 2..=9 {
            assert!(check(&target, &draft, drafts));
        }
        let draft = vec![1.0 / 8192.0; 8192];
        for drafts in [10, 16, 33, 64] {
            assert!(check(&near(&draft, 0.3, &mut random), &draft, drafts));
        }
    }

    #[test]
    fn light_tokens_beside_heavy_ones() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut taken = 0;
        for tail in [0.5, 1e-3, 1e-6, 1e-9, 1e-12] {
            for heavy in [1, 3, 40] {
                let mut draft = lognormal(3000, 0.5, &mut random);
                draft.iter_mut().for_each(|q| *q *= tail);
                for index in 0..heavy {
                    draft[71 * index] += (1.0 - tail) / heavy as f64;
                }
                draft[5] = 1e-300;
                draft[6] = 0.0;
                let draft = normalised(draft);
                for spread in [0.02, 1.0] {
                    let target = near(&draft, spread, &mut random);
                    for drafts in [2, 3, 8, 12] {
                        taken += usize::from(check(&target, &draft, drafts));
                    }
                }
            }
        }
        assert!(taken > 40, "{taken}");
    }

    #[test]
    fn one_bucket_and_powers_of_the_smallest() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let mut draft = lognormal(10_000, 1.0, &mut random);
        for (index, q) in draft.iter_mut().enumerate().step_by(3) {
            *q *= 2f64.powi(-((index % 1000) as i32));
        }
        let draft = normalised(draft);
        for drafts in [2, 8] {
            assert!(check(&draft, &draft, drafts));
            assert!(check(&near(&draft, 0.005, &mut random), &draft, drafts));
        }
    }

    #[test]
    fn any_number_of_tokens_and_drafts() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        for _ in 0..150 {
            let vocab = 5000f64.powf(random.random_range(0.0..1.0)) as usize;
            let width = random.random_range(0.0..6.0);
            let draft = lognormal(vocab.max(1), width, &mut random);
            let spread = random.random_range(0.0..2.0);
            let target = near(&draft, spread, &mut random);
            check(&target, &draft, random.random_range(1..=16));
        }
    }
}
