//! How often the output is drafted where draft and target have their tokens from one noise.
//!
//! Every token x has one number E_x ~ Exp(1). Drafts are the n tokens of least E_x/q_x, the
//! output is the token of least E_x/p_x.
//!
//! # One output
//! Let the output be y, and t = E_y/p_y, which is Exp(1) whatever y is. The others have
//! E_j > p_j t, and by how much is Exp(1) again. With l = p_y/q_y, y rings in the draft's race
//! at l t, and j before it iff E_j < q_j l t: with chance 1 - e^{-t a_j}, a_j = (l q_j - p_j)+,
//! independently. So
//!
//! ```text
//! P(y is the draft after k others | output y) = integral over t > 0 of
//!     e^{-t} P(exactly k clocks of rates a_j have rung by t) dt:
//! ```
//!
//! y in a race of its own, where its rate is 1 and those of the others are a_j. That is what
//! [`super::Ranks`] answers, with its error.
//!
//! # All outputs
//! F_n(l), the sum of these for k < n, falls in l, as the a_j rise. So where it is known at two
//! tokens, it is known between bounds at all whose p/q lies between theirs. [`SharedNoise`] takes
//! one token after the other, each in the middle of the p that is least well known. For n = 1
//! all are known in closed form: F_1 = 1/(1 + A(l)), A(l) = sum of a_j, by sums along the
//! order of p/q. What lies between two tokens is estimated as F_1 goes.
//!
//! # Rounding
//! |dF_n/d log l| <= n + 1, and as much where all a_j grow by one factor: a_j is chance
//! x = t a_j, and the sum of x e^{-x} P(n-1 others) <= sum of (1 - e^{-x}) P(n-1 others)
//! = n P(n have rung) <= n; l q_j = a_j + p_j adds t, whose integral is 1. An a_j from
//! rounded p, q and l is that of an l and a factor which are off by a few epsilon.

use super::draft_rank::Ranks;
use super::scan::Row;
use specgap_number::distribution::{Rows, TwoFloat, by_rising_ratio};
use specgap_number::known::Known;

/// Above this p/q, clocks leave the range of `f64`.
const LARGEST_RATIO: f64 = 1e290;

/// Epsilons by which l, and the a_j as a whole, may be off together.
const ROUNDINGS: f64 = 24.0;

/// How often an output is drafted, token by token. The rows sum to 1.
#[derive(Debug)]
pub struct SharedNoise<'a> {
    rows: Rows<'a>,
    /// Of y and the others, in a race of y's own.
    clocks: Vec<f64>,
    only: Vec<f64>,
}

/// How often an output is each draft.
#[derive(Clone, Debug)]
pub struct Drafted {
    /// P(y is draft k | the output is y), k from 0.
    pub ranks: Vec<f64>,
    /// Bounds on their sums, for n = 1 and on.
    pub among: Vec<[f64; 2]>,
}

impl<'a> SharedNoise<'a> {
    /// Makes one for rows that sum to 1. O(V).
    pub fn new(rows: Rows<'a>) -> Self {
        let zeros = vec![0.0; rows.draft.len()];
        Self {
            rows,
            clocks: zeros.clone(),
            only: zeros,
        }
    }

    /// P(y is draft k | the output is y) for k < `drafts`; zeros where p or q of y is 0. O(V),
    /// and some hundred nodes of [`Ranks`].
    pub fn of_token(&mut self, token: usize, drafts: usize) -> Drafted {
        let (p, q) = (self.rows.target[token], self.rows.draft[token]);
        let mut ranks = vec![0.0; drafts];
        if q <= 0.0 || p <= 0.0 {
            let among = vec![[0.0; 2]; drafts];
            return Drafted { ranks, among };
        }
        let ratio = p / q;
        let [draft, target, own] = if ratio <= 1.0 {
            [ratio, 1.0, 1.0]
        } else {
            let inverse = 1.0 / ratio.min(LARGEST_RATIO);
            [1.0, inverse, inverse]
        };
        let each = self.rows.target.iter().zip(self.rows.draft);
        let (mut whole, mut others) = (TwoFloat::ZERO, 0);
        for ((clock, (p, q)), place) in self.clocks.iter_mut().zip(each).zip(0..) {
            *clock = match place == token {
                true => own,
                false => (draft * q - target * p).max(0.0),
            };
            whole += *clock;
            others += usize::from(*clock > 0.0);
        }
        others -= 1;
        let open = drafts.min(others);
        let mut error = (drafts as f64 + 1.0) * ROUNDINGS * f64::EPSILON;
        if open > 0 {
            self.only[token] = 1.0;
            let found = Ranks::new(&self.only, &self.clocks, [1.0, whole.value()], open);
            self.only[token] = 0.0;
            error += found.error;
            for (rank, rate) in ranks.iter_mut().zip(&found.rates) {
                *rank = rate.clamp(0.0, 1.0);
            }
        }
        if drafts > others {
            // As many as could come first have.
            ranks[others] = (1.0 - ranks[..others].iter().sum::<f64>()).max(0.0);
        }
        // Beyond the largest ratio F falls on, but where all that have q are drafted.
        let is_capped = ratio > LARGEST_RATIO;
        let support = self.rows.draft.iter().filter(|q| **q > 0.0).count();
        let mut sum = 0.0f64;
        let bounds = (1..).zip(&ranks).map(|(n, rank)| {
            sum += rank;
            let least = match is_capped {
                true => f64::from(u8::from(n >= support)),
                false => sum - error,
            };
            [least.max(0.0), (sum + error).min(1.0)]
        });
        let among = bounds.collect();
        Drafted { ranks, among }
    }

    /// P(the output is among n drafts) for n = 1, .., `drafts`, enclosed. Tokens are taken one by
    /// one until all rates are known to `width`, and `most` at most. A sort, and O(V) for each of
    /// some hundred nodes a token.
    pub fn rates(&mut self, drafts: usize, width: f64, most: usize) -> Vec<Known> {
        let order = by_rising_ratio(self.rows);
        let mut spans = Spans::of(self.rows, &order, drafts);
        // One draft needs no bounds.
        for _ in 0..if drafts > 1 { most } else { 0 } {
            let Some(place) = spans.next(width) else {
                break;
            };
            let token = order[spans.first + place].1 as usize;
            spans.learn(place, &self.of_token(token, drafts));
        }
        spans.rates()
    }
}

/// Tokens that follow one another in the order of p/q and are not known one by one.
#[derive(Clone, Debug)]
struct Span {
    /// Places, from the first to before the last.
    from: usize,
    to: usize,
    /// F_n for n = 1, .. of a token at or before the first, and of one at or behind the last.
    upper: Vec<f64>,
    lower: Vec<f64>,
}

/// What is known of F at all tokens of p and q above 0, by rising p/q.
struct Spans {
    /// Tokens before these have p = 0.
    first: usize,
    /// p/q at each place.
    ratios: Vec<f64>,
    /// Sums of p, and of p F_1, over the places before each.
    sums: Vec<[f64; 2]>,
    open: Vec<Span>,
    /// Sums of p F_n over places that are known: least, likely and most.
    known: Vec<[TwoFloat; 3]>,
    /// How many these are.
    taken: usize,
}

impl Spans {
    fn of(rows: Rows<'_>, order: &[(f64, u32)], drafts: usize) -> Self {
        let first = order.partition_point(|&(ratio, _)| ratio <= 0.0);
        let [mut p_before, mut q_before, mut kept] = [TwoFloat::ZERO; 3];
        let mut sums = vec![[0.0; 2]];
        for (place, &(ratio, token)) in order.iter().enumerate() {
            let (p, q) = (rows.target[token as usize], rows.draft[token as usize]);
            if place >= first {
                let others = (ratio * q_before.value() - p_before.value()).max(0.0);
                // p/q may be infinite: then nothing is kept, or there are no others.
                let alone = if others.is_nan() {
                    1.0
                } else {
                    1.0 / (1.0 + others)
                };
                p_before += p;
                kept += p * alone;
                sums.push([p_before.value(), kept.value()]);
            }
            q_before += q;
        }
        let whole = Span {
            from: 0,
            to: sums.len() - 1,
            upper: vec![1.0; drafts],
            lower: vec![0.0; drafts],
        };
        Self {
            first,
            ratios: order[first..].iter().map(|&(ratio, _)| ratio).collect(),
            open: Some(whole).into_iter().filter(|span| span.to > 0).collect(),
            sums,
            known: vec![[TwoFloat::ZERO; 3]; drafts],
            taken: 0,
        }
    }

    /// p of the places, and p F_1.
    fn between(&self, from: usize, to: usize) -> [f64; 2] {
        [0, 1].map(|k| (self.sums[to][k] - self.sums[from][k]).max(0.0))
    }

    /// How far apart the bounds of each rate are, because of one span.
    fn widths<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = f64> + 'a {
        let [mass, _] = self.between(span.from, span.to);
        let ends = span.upper.iter().zip(&span.lower);
        ends.map(move |(upper, lower)| mass * (upper - lower))
    }

    /// The token to take next: the last, the first, and then the one in the middle of the p of
    /// the span that leaves most open; `None` once all rates are known to `width`.
    fn next(&self, width: f64) -> Option<usize> {
        let last = self.sums.len().checked_sub(2)?;
        // An end that is not known.
        if let Some(end) = [last, 0]
            .into_iter()
            .find(|end| self.open_at(*end).is_some())
        {
            return Some(end);
        }
        let mut open = vec![0.0; self.known.len()];
        let mut widest: Option<(f64, &Span)> = None;
        for span in &self.open {
            let mut all = 0.0;
            for (open, width) in open.iter_mut().zip(self.widths(span)) {
                *open += width;
                all += width;
            }
            if widest.is_none_or(|(most, _)| all > most) {
                widest = Some((all, span));
            }
        }
        if open.iter().all(|open| *open <= width) {
            return None;
        }
        let (_, span) = widest?;
        let middle = 0.5 * (self.sums[span.from][0] + self.sums[span.to][0]);
        let within = &self.sums[span.from + 1..span.to];
        Some(span.from + within.partition_point(|sum| sum[0] < middle))
    }

    /// The open span that holds a place.
    fn open_at(&self, place: usize) -> Option<usize> {
        let mut open = self.open.iter();
        open.position(|span| (span.from..span.to).contains(&place))
    }

    /// Takes in what is known of one place, and so of all of its p/q.
    fn learn(&mut self, place: usize, drafted: &Drafted) {
        let Some(index) = self.open_at(place) else {
            return;
        };
        let span = self.open.swap_remove(index);
        let ratio = self.ratios[place];
        let own = &self.ratios[span.from..span.to];
        let ends = [
            own.partition_point(|r| *r < ratio),
            own.partition_point(|r| *r <= ratio),
        ];
        let [from, to] = ends.map(|end| span.from + end);
        let [mass, _] = self.between(from, to);
        let (mut before, mut behind) = (span.clone(), span);
        (before.to, behind.from) = (from, to);
        let mut sum = 0.0;
        for (k, (rank, &[least, most])) in drafted.ranks.iter().zip(&drafted.among).enumerate() {
            sum += rank;
            for (known, value) in self.known[k].iter_mut().zip([least, sum.min(1.0), most]) {
                *known += mass * value;
            }
            // Rounding does not move bounds apart.
            before.lower[k] = least.min(before.upper[k]);
            behind.upper[k] = most.max(behind.lower[k]);
        }
        let both = [before, behind].into_iter();
        self.open.extend(both.filter(|span| span.from < span.to));
        self.taken += 1;
    }

    fn rates(&self) -> Vec<Known> {
        let count = self.sums.len() - 1;
        let steps = (self.open.len() + self.taken) as f64;
        let rounding = (ROUNDINGS + 4.0 * steps) * f64::EPSILON;
        let [_, alone] = self.between(0, count);
        let of_more = (1..self.known.len()).map(|k| {
            let [mut least, mut value, mut most] = self.known[k].map(TwoFloat::value);
            for span in &self.open {
                let [mass, kept] = self.between(span.from, span.to);
                let (upper, lower) = (span.upper[k], span.lower[k]);
                least += mass * lower;
                most += mass * upper;
                // As F_1 lies between its values at the ends.
                let (first, last) = (span.upper[0], span.lower[0]);
                let height = match first > last {
                    true => ((kept - mass * last) / (first - last)).clamp(0.0, mass),
                    false => 0.5 * mass,
                };
                value += mass * lower + (upper - lower) * height;
            }
            Known::rate(value, least - rounding, most + rounding)
        });
        let first = Known::rate_within(alone, 2.0 * rounding);
        std::iter::once(first).chain(of_more).collect()
    }
}

/// The rates of a row, for n = 1 and on.
struct SharedRates(Vec<Known>);

impl Row<'_> {
    /// P(the output is among n drafts) where both have their tokens from one noise, enclosed. What
    /// the first call computes serves all numbers of drafts that the row was loaded for. See
    /// [`SharedNoise::rates`].
    pub fn shared_noise(&mut self, drafts: usize, width: f64, most: usize) -> Known {
        let drafts = drafts.max(1);
        let all = self.most_drafts().max(drafts);
        self.kept(
            |rates: &SharedRates| rates.0.len() >= drafts,
            |row| {
                row.of_shares(|_, rows| SharedRates(SharedNoise::new(rows).rates(all, width, most)))
            },
            |rates| rates.0[drafts - 1].clone(),
        )
    }

    /// P(y is draft k | the output is y) for k < `drafts`. See [`SharedNoise::of_token`].
    pub fn shared_noise_at(&mut self, token: usize, drafts: usize) -> Vec<f64> {
        self.of_shares(|_, rows| SharedNoise::new(rows).of_token(token, drafts).ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rows::normalised;
    use crate::{RowError, Workspace};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn row(vocab: usize, nats: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let entries = (0..vocab).map(|_| (-nats * rng.random::<f64>()).exp());
        normalised(entries.collect())
    }

    /// P(fewer than n events of chance 1 - u^a), integrated by Simpson's rule in log u.
    fn by_simpson(p: &[f64], q: &[f64], y: usize, drafts: usize) -> f64 {
        let ratio = p[y] / q[y];
        let integrand = |x: f64| {
            let t = x.exp();
            let mut count = vec![0.0; drafts];
            count[0] = 1.0;
            for j in (0..p.len()).filter(|&j| j != y) {
                let waits = (-t * (ratio * q[j] - p[j]).max(0.0)).exp();
                for k in (0..drafts).rev() {
                    let below = if k > 0 { count[k - 1] } else { 0.0 };
                    count[k] = count[k] * waits + below * (1.0 - waits);
                }
            }
            t * (-t).exp() * count.iter().sum::<f64>()
        };
        let (from, to, steps) = (-32.0, 4.0, 6000);
        let step = (to - from) / f64::from(steps);
        let weight = |k: i32| match k {
            0 => 1.0,
            _ if k == steps => 1.0,
            _ if k % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (0..=steps)
            .map(|k| weight(k) * integrand(from + step * f64::from(k)))
            .sum::<f64>()
            * step
            / 3.0
    }

    #[test]
    fn ranks_of_a_token_are_the_integral() -> Result<(), RowError> {
        let mut rng = ChaCha8Rng::seed_from_u64(71);
        for vocab in [2, 3, 6, 40] {
            let (p, q) = (row(vocab, 5.0, &mut rng), row(vocab, 5.0, &mut rng));
            let mut workspace = Workspace::new();
            let mut loaded = workspace.load(Rows::new(&p, &q), 4)?;
            for y in 0..vocab.min(7) {
                let mut sum = 0.0;
                for (k, rank) in loaded.shared_noise_at(y, 4).iter().enumerate() {
                    sum += rank;
                    let other = by_simpson(&p, &q, y, k + 1);
                    assert!(
                        (sum - other).abs() < 1e-11,
                        "{vocab} {y} {k}: {sum} {other}"
                    );
                }
            }
        }
        Ok(())
    }

    /// Few tokens taken: the bounds hold what all of them give, narrow as more are taken, and
    /// the value is much closer than they are.
    #[test]
    fn few_tokens_enclose_what_all_give() {
        let mut rng = ChaCha8Rng::seed_from_u64(72);
        for nats in [3.0, 9.0, 30.0] {
            let (p, q) = (row(300, nats, &mut rng), row(300, nats, &mut rng));
            let mut noise = SharedNoise::new(Rows::new(&p, &q));
            let all = noise.rates(8, 0.0, usize::MAX);
            let direct: f64 = (0..300)
                .map(|y| p[y] * noise.of_token(y, 8).ranks[..3].iter().sum::<f64>())
                .sum();
            assert!((all[2].value() - direct).abs() < 1e-11);
            let mut before = f64::INFINITY;
            for most in [2, 8, 32, 64] {
                let some = noise.rates(8, 0.0, most);
                let widest = some.iter().map(Known::width).fold(0.0, f64::max);
                assert!(widest <= before);
                before = widest;
                for (some, all) in some.iter().zip(&all) {
                    assert!(all.width() < 1e-10, "{all:?}");
                    assert!(some.lower() <= all.upper() && all.lower() <= some.upper());
                    let off = (some.value() - all.value()).abs();
                    assert!(off < 0.5 * some.width() + 1e-11, "{most} {some:?} {all:?}");
                }
            }
            assert!(before < 0.02, "{before}");
            let narrow = noise.rates(8, 1e-3, usize::MAX);
            assert!(narrow.iter().all(|rate| rate.width() < 1e-3 + 1e-10));
        }
    }

    /// Where no token is heavy, rings are a Poisson process: F_n = 1 - (A/(1+A))^n.
    #[test]
    fn many_light_tokens_are_a_poisson_process() {
        let vocab = 1 << 18;
        let half = 1.0 / vocab as f64;
        let p: Vec<f64> = (0..vocab).map(|x| half * [0.5, 1.5][x % 2]).collect();
        let q: Vec<f64> = (0..vocab).map(|x| half * [1.5, 0.5][x % 2]).collect();
        let rates = SharedNoise::new(Rows::new(&p, &q)).rates(8, 1e-9, 8);
        // Of the light half of p, l = 1/3 and A = 0; of the other, l = 3 and A = 3 3/4 - 1/4.
        let far: f64 = 3.0 * 0.75 - 0.25;
        for (n, rate) in (1..).zip(&rates) {
            let expected = 1.0 - 0.75 * (far / (1.0 + far)).powi(n);
            assert!(
                (rate.value() - expected).abs() < 1e-4,
                "{n} {rate:?} {expected}"
            );
            assert!(rate.width() < 1e-9, "{rate:?}");
        }
    }

    #[test]
    fn rows_that_are_far_apart() -> Result<(), RowError> {
        let of = |p: &[f64], q: &[f64], drafts: usize| -> Result<Vec<Known>, RowError> {
            let mut workspace = Workspace::new();
            let mut row = workspace.load(Rows::new(p, q), drafts)?;
            Ok((1..=drafts).map(|n| row.shared_noise(n, 0.0, 9)).collect())
        };
        let about = |rate: &Known, value: f64| {
            let error = value.mul_add(1e-12, 1e-11);
            assert!(
                (rate.value() - value).abs() < error && rate.width() < 1e-10,
                "{rate:?} {value}"
            );
        };
        // One-hot rows that are equal, and that differ; as many drafts as there are tokens.
        for rates in [
            of(&[1.0, 0.0], &[1.0, 0.0], 3)?,
            of(&[0.5, 0.5], &[0.5, 0.5], 2)?,
        ] {
            rates.iter().for_each(|rate| about(rate, 1.0));
        }
        of(&[0.0, 1.0], &[1.0, 0.0], 3)?
            .iter()
            .for_each(|rate| about(rate, 0.0));
        // A likely output that is hardly ever drafted, and one that never is.
        for q in [1e-300, 5e-324] {
            let rates = of(&[0.5, 0.25, 0.25], &[q, 0.5, 0.5], 3)?;
            about(&rates[0], 0.5);
            about(&rates[1], 0.5);
            about(&rates[2], 1.0);
        }
        let rates = of(&[0.5, 0.25, 0.25], &[0.0, 0.5, 0.5], 3)?;
        rates.iter().for_each(|rate| about(rate, 0.5));
        // l = 1e-300 for one token.
        let rates = of(&[1e-300, 1.0], &[0.5, 0.5], 2)?;
        about(&rates[0], 0.5);
        about(&rates[1], 1.0);
        Ok(())
    }
}
