//! Elementary symmetric polynomials of q along the chain of buckets.
//!
//! `prod (1 + q_i t)` truncated after t^n: coefficients are e_0..e_n, all terms are
//! positive, products of parts can be merged, and nothing is ever subtracted. The
//! number of roundings between an entry and a result is kept small by taking
//! products in a tree and is counted.

use super::{BUCKETS, Link, MAX_DRAFTS};
use crate::distribution::Wide;

/// Tokens that one running product absorbs before it is set aside.
const ABSORBED: usize = 128;

/// Entries merged in a row at each of the two lower levels of the product tree.
const FAN: usize = 16;

/// e_n may not be below this share of the largest e_k: what underflows on the way
/// is then below 2^-60 of it.
const SMALLEST_SHARE: f64 = f64::from_bits((1023 - 980) << 52);
const LARGEST: f64 = f64::from_bits((1023 + 1000) << 52);

/// Largest power of two by which rows are scaled.
const EXPONENT_LIMIT: i32 = 1000;

/// Truncated products over the buckets of one position.
#[derive(Clone, Debug, Default)]
pub(super) struct Symmetric {
    /// Coefficients a polynomial, at least the degree and 1; 0 if not built.
    stride: usize,
    scale: f64,
    /// Roundings on the longest path to a prefix.
    depth: f64,
    active: Vec<f64>,
    absorbed: Vec<u32>,
    /// Products set aside, with their bucket and position.
    settled: Vec<(u16, u32)>,
    settled_products: Vec<f64>,
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

    /// The power of two that multiplies q in all coefficients.
    pub(super) fn scale(&self) -> f64 {
        self.scale
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

    /// Roundings between an entry and a coefficient, if up to `walked` tokens are
    /// walked one by one after a prefix.
    pub(super) fn roundings(&self, walked: usize) -> f64 {
        let degree = self.stride as f64;
        self.depth + ABSORBED as f64 + degree * ((walked / ABSORBED) as f64 + 3.0)
    }

    /// Multiplies everything out, with q scaled by 2^`exponent`.
    pub(super) fn build(
        &mut self,
        most_drafts: usize,
        draft: &[f64],
        buckets: &[u16],
        links: &[Link],
        exponent: i32,
    ) {
        self.scale = power_of_two(exponent);
        match most_drafts + 1 {
            ..=3 => self.multiply_out::<3>(draft, buckets, links),
            4 => self.multiply_out::<4>(draft, buckets, links),
            5 => self.multiply_out::<5>(draft, buckets, links),
            6 => self.multiply_out::<6>(draft, buckets, links),
            7 => self.multiply_out::<7>(draft, buckets, links),
            8 => self.multiply_out::<8>(draft, buckets, links),
            9 => self.multiply_out::<9>(draft, buckets, links),
            10..=17 => self.multiply_out::<17>(draft, buckets, links),
            18..=33 => self.multiply_out::<33>(draft, buckets, links),
            _ => self.multiply_out::<{ MAX_DRAFTS + 1 }>(draft, buckets, links),
        }
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
        let entries = links.len() + self.settled.len();
        let merges = 2 * FAN + entries / (FAN * FAN) + 3;
        self.depth = (ABSORBED + M + merges * M) as f64;
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

    /// Starts to absorb tokens one by one after the buckets before link `index`.
    pub(super) fn walk(&self, index: usize) -> Walk {
        let mut walk = Walk {
            base: [0.0; MAX_DRAFTS + 1],
            local: [0.0; MAX_DRAFTS + 1],
            absorbed: 0,
            scale: self.scale,
        };
        walk.base[..self.stride].copy_from_slice(self.prefix(index));
        walk.local[0] = 1.0;
        walk
    }
}

/// A prefix that grows by single tokens.
pub(super) struct Walk {
    base: [f64; MAX_DRAFTS + 1],
    local: [f64; MAX_DRAFTS + 1],
    absorbed: usize,
    scale: f64,
}

impl Walk {
    /// Adds a token and returns e_n of the prefix.
    pub(super) fn absorb(&mut self, q: f64, draws: usize) -> f64 {
        let local = &mut self.local[..=draws];
        for k in (1..=draws).rev() {
            local[k] += q * self.scale * local[k - 1];
        }
        let coefficient = |base: &[f64], local: &[f64], degree: usize| -> f64 {
            let pairs = base[..=degree].iter().zip(local[..=degree].iter().rev());
            pairs.map(|(a, b)| a * b).sum()
        };
        let inside = coefficient(&self.base, local, draws);
        self.absorbed += 1;
        if self.absorbed == ABSORBED {
            for degree in (0..=draws).rev() {
                self.base[degree] = coefficient(&self.base, local, degree);
            }
            local.fill(0.0);
            local[0] = 1.0;
            self.absorbed = 0;
        }
        inside
    }
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
