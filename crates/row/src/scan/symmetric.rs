//! Elementary symmetric polynomials of q along the chain of buckets.
//!
//! `prod (1 + q_i t)` truncated after t^n has the coefficients e_0..e_n. Each bucket's
//! tokens are multiplied into a product of their own, and a tree joins the products along
//! the chain. `docs/theory/scan.md` counts the roundings. Rows whose e_n leaves the range of `f64`
//! are scaled by a power of two; those that leave it even so take numbers of unbounded
//! range.

use super::buckets::{BUCKETS, Buckets, Link, MAX_DRAFTS, ROUNDING};
use specgap_number::distribution::Wide;

/// Tokens that one running product absorbs before it is set aside.
const ABSORBED: usize = 64;

/// The same, for tokens walked one by one.
const FEW_ABSORBED: usize = 32;

/// Entries merged in a row at each of the two lower levels of the product tree.
const FAN: usize = 12;

/// e_n may not be below this share of the largest e_k: a product that underflows on the
/// way is then off by less than 2^-94 of it.
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
    /// Roundings that a factor of a term of a prefix went through at most.
    path: f64,
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

    /// Makes the prefixes ready for `draws`, at most `most_drafts`, of the tokens in
    /// `buckets`; false if e_n does not fit `f64`.
    pub(super) fn prepare(
        &mut self,
        most_drafts: usize,
        draws: usize,
        draft: &[f64],
        buckets: &Buckets,
    ) -> bool {
        if self.stride == 0 {
            self.build(most_drafts, draft, buckets, 0);
        }
        if !self.is_safe(draws) {
            let exponent = balancing_exponent(draft, draws);
            self.build(most_drafts, draft, buckets, exponent);
        }
        self.is_safe(draws)
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

    /// Returns whether e_n, and all that it is made of, stayed within the range of `f64`.
    fn is_safe(&self, draws: usize) -> bool {
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
        draws as f64 * path
    }

    /// Builds the prefixes, with q scaled by 2^`exponent`.
    fn build(&mut self, most_drafts: usize, draft: &[f64], buckets: &Buckets, exponent: i32) {
        self.scale = power_of_two(exponent);
        match most_drafts {
            ..=2 => self.multiply_out::<3>(draft, buckets),
            3 => self.multiply_out::<4>(draft, buckets),
            4 => self.multiply_out::<5>(draft, buckets),
            5 => self.multiply_out::<6>(draft, buckets),
            6 => self.multiply_out::<7>(draft, buckets),
            7 => self.multiply_out::<8>(draft, buckets),
            8 => self.multiply_out::<9>(draft, buckets),
            9..=16 => self.multiply_out::<17>(draft, buckets),
            17..=32 => self.multiply_out::<33>(draft, buckets),
            _ => self.multiply_out::<{ MAX_DRAFTS + 1 }>(draft, buckets),
        }
    }

    fn multiply_out<const M: usize>(&mut self, draft: &[f64], buckets: &Buckets) {
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
            for (&q, &bucket) in draft.iter().zip(buckets.of()) {
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
        let links = buckets.links();
        self.chain::<M>(links);
        let crowd = links.iter().map(|link| link.tokens).max().unwrap_or(0);
        let absorbed = f64::from(crowd.min(ABSORBED as u32));
        let merges = Tree::<M>::merges(links.len() + self.settled.len());
        self.path = absorbed + 1.0 + 2.0 * merges as f64;
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
    /// of infinitely many tokens.
    pub(super) fn most(&self, index: usize, mass: f64, draws: usize) -> f64 {
        let error = self.roundings(draws, 0) * ROUNDING;
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
fn balancing_exponent(draft: &[f64], draws: usize) -> i32 {
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

/// e_0..e_n of some tokens, in numbers of unbounded range.
pub(super) struct WideProduct {
    coefficients: [Wide; MAX_DRAFTS + 1],
    draws: usize,
}

impl WideProduct {
    pub(super) fn new(draws: usize) -> Self {
        let mut coefficients = [Wide::ZERO; MAX_DRAFTS + 1];
        coefficients[0] = Wide::from(1.0);
        Self {
            coefficients,
            draws,
        }
    }

    pub(super) fn absorb(&mut self, q: f64) {
        if q > 0.0 {
            let q = Wide::from(q);
            for k in (1..=self.draws).rev() {
                let more = self.coefficients[k - 1].times(q);
                self.coefficients[k] = self.coefficients[k].plus(more);
            }
        }
    }

    /// e_n.
    pub(super) fn last(&self) -> Wide {
        self.coefficients[self.draws]
    }
}

#[cfg(test)]
mod tests {
    use super::super::distinct::by_wide_numbers;
    use super::super::{Row, Rows, Workspace};
    use super::*;
    use crate::test_rows::normalised;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        let radius = (-2.0 * random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random_range(0.0..1.0)).cos()
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

    /// e_n below 2^-980 of the largest, or e_k above 2^1000, is not trusted.
    #[test]
    fn products_near_the_ends_of_the_range_are_not_trusted() {
        let of = |prefixes: [f64; 3]| {
            let symmetric = Symmetric {
                stride: 3,
                prefixes: prefixes.to_vec(),
                ..Symmetric::default()
            };
            [1, 2].map(|draws| symmetric.is_safe(draws))
        };
        let (least, most) = (2f64.powi(-980), 2f64.powi(1000));
        assert_eq!(of([1.0, 0.5, least]), [true, true]);
        assert_eq!(of([1.0, 0.5, least.next_down()]), [true, false]);
        assert_eq!(of([1.0, 4.0, 2.0 * least]), [true, false]);
        assert_eq!(of([1.0, most, most]), [true, true]);
        assert_eq!(of([1.0, 2.0 * most, most]), [false, false]);
    }

    /// How e_n was had.
    #[derive(Debug, PartialEq)]
    enum Way {
        Plain,
        Scaled,
        Wide,
    }

    /// Prefixes, walks through buckets and the rate against numbers of unbounded range.
    fn check(target: &[f64], draft: &[f64], drafts: usize) -> Way {
        let mut scan = Workspace::new();
        let mut position = scan.load(Rows { target, draft }, drafts).unwrap();
        let draws = drafts.min(position.draft_support());
        let Workspace {
            buckets, symmetric, ..
        } = &mut *position.scan;
        if draws < 2 || !symmetric.prepare(drafts, draws, draft, buckets) {
            return Way::Wide;
        }
        let way = if symmetric.scale == 1.0 {
            Way::Plain
        } else {
            Way::Scaled
        };
        prefixes_and_walks(&mut position, draws);
        let found = position.distinct_conditioned(drafts).unwrap();
        let truth = by_wide_numbers(&mut position.scan.buckets, position.rows, draws);
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
        way
    }

    fn prefixes_and_walks(position: &mut Row<'_>, draws: usize) {
        let rows = position.rows;
        let mut order = Vec::new();
        for link in position.scan.buckets.links().to_vec() {
            let tokens = position.scan.buckets.sort(rows, &link).iter();
            let masses = tokens.map(|&(_, token)| rows.draft[token as usize]);
            order.push(masses.collect::<Vec<_>>());
        }
        let symmetric = &position.scan.symmetric;
        let wide = |draws: usize| -> Vec<Wide> {
            let mut product = WideProduct::new(draws);
            let tokens = order.iter().flatten();
            tokens
                .map(|&q| {
                    product.absorb(q);
                    product.last()
                })
                .collect()
        };
        let (truth, lower) = (wide(draws), wide(draws - 1));
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
    fn rows_of_language_models() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for width in [1.0, 2.0, 4.0] {
            let draft = lognormal(20_000, width, &mut random);
            let target = near(&draft, 0.8, &mut random);
            for drafts in [2, 5, 6, 8] {
                assert_eq!(check(&target, &draft, drafts), Way::Plain);
            }
        }
        let draft = lognormal(50_000, 2.0, &mut random);
        assert_eq!(
            check(&near(&draft, 0.8, &mut random), &draft, 16),
            Way::Plain
        );
        assert_eq!(check(&[0.25; 4], &[0.25; 4], 2), Way::Plain);
    }

    #[test]
    fn flat_rows() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for (vocab, counts) in [(512, [2, 5, 9]), (8192, [10, 33, 64])] {
            let draft = vec![1.0 / vocab as f64; vocab];
            let target = near(&draft, 0.3, &mut random);
            for drafts in counts {
                assert_eq!(check(&target, &draft, drafts), Way::Plain);
            }
        }
    }

    #[test]
    fn light_tokens_beside_heavy_ones() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
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
                        assert_eq!(check(&target, &draft, drafts), Way::Plain);
                    }
                }
            }
        }
    }

    /// 64 tokens of 100 whose product is far below the range of `f64`: one power of two
    /// brings those of similar size back, and none those that span it.
    #[test]
    fn rows_that_leave_the_range() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        for (tail, way) in [
            (1e-2, Way::Plain),
            (1e-20, Way::Scaled),
            (1e-290, Way::Scaled),
        ] {
            let mut draft = lognormal(100, 0.5, &mut random);
            draft.iter_mut().for_each(|q| *q *= tail);
            draft[17] = 1.0;
            let draft = normalised(draft);
            for spread in [0.02, 1.0] {
                let target = near(&draft, spread, &mut random);
                assert_eq!(check(&target, &draft, 64), way, "{tail}");
            }
        }
        let decades: Vec<f64> = (0..100).map(|i| 10f64.powi(-3 * i)).collect();
        let draft = normalised(decades);
        let target = near(&draft, 0.02, &mut random);
        assert_eq!(check(&target, &draft, 64), Way::Wide);
    }

    #[test]
    fn one_bucket_over_a_thousand_octaves() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let mut draft = lognormal(10_000, 1.0, &mut random);
        for (index, q) in draft.iter_mut().enumerate().step_by(3) {
            *q *= 2f64.powi(-((index % 1000) as i32));
        }
        let draft = normalised(draft);
        for drafts in [2, 8] {
            assert_eq!(check(&draft, &draft, drafts), Way::Plain);
            let target = near(&draft, 0.005, &mut random);
            assert_eq!(check(&target, &draft, drafts), Way::Plain);
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
