//! Q of sequential draws without replacement, of one prefix at a time.
//!
//! Give token i an independent clock of rate q_i. With s the mass outside H, n the
//! draws, and N_t the clocks of H that have rung by t,
//!
//! ```text
//! Q(H) = 1 - s (I_0 + ... + I_{n-1}),   s I_k = P(exactly k clocks of H ring before
//!                                                 the first one outside does)
//! I_k  = integral over t > 0 of e^{-t} e_k(r(t)) dt,    r_i(t) = e^{q_i t} - 1, i in H
//! I_0  = 1,    I_1 = sum over H of q_i / (1 - q_i)
//! ```
//!
//! (for q of total mass 1; any other total only rescales t). n = 2 is a closed form.
//! For k >= 2 the integral over x = log t is a trapezoidal sum of step h.
//!
//! # Error
//! *Quadrature.* The integrands are those of `crates/number/src/quadrature/log_time.rs`, and so is the proof:
//! with tan a = 2 pi / (n h) the error of all terms together is at most
//! 2 cos^-n a / (e^{2 pi a / h} - 1). h is chosen to make that 1e-12.
//!
//! *Tails.* Left of t_L, P(N_t >= 2) <= t^2/2 bounds all terms together; right of
//! t_R = 45/s the factor s t e^{-st} does.
//!
//! *Hardly anything outside.* For s below 5e-305 and n > 2, t_R is out of range. There
//! 1 - Q(H) <= P(N_t < n) + s t for any t. At t = 1e286 the second is below 1e-18; if the
//! first is too, then Q is taken for 1. Else it is not known: NaN. With fewer than n
//! clocks in H, Q is 0 exactly.
//!
//! *Rounding.* Masses are summed so that they keep their digits however small they are:
//! in lanes, over chunks in two words. (1 - q is not: where a token holds more than half of
//! the mass, what the others hold is summed by itself.) What a value errs by is counted while
//! it is computed, in `rounding`; `docs/theory/scan.md` has the count.
//!
//! # Cheap evaluation
//! The heaviest tokens, some two thousand, are held by octaves of q, each octave in the order
//! of the chain. Of the others only twelve power sums are kept, up to the start of every bucket. At a
//! time t all tokens of an octave and below enter by their joint power sums if q t <= 1/16
//! there, and those above token by token. Eight times are done side by side. So a prefix costs
//! some 60 times a few dozen clocks, however many tokens it has. Once so much has rung that
//! P(N_t < n) < 1e-18, later times add nothing.

use super::buckets::{Buckets, ROUNDING};
use super::lanes::{PowerSums, Running, SUMMING, integrand};
use crate::clocks::{Clocks, LANES, Lanes, POWERS, ring};
use specgap_number::distribution::Rows;
use specgap_number::quadrature::log_time_step;

/// A class is expanded while its largest q t is at most this.
const EXPANSION_LIMIT: f64 = 1.0 / 16.0;

/// Bound that the step is chosen for.
const QUADRATURE_ERROR: f64 = 1e-12;

/// t_L, and s t_R.
const FIRST_TIME: f64 = 2e-5;
const LAST_EXPONENT: f64 = 45.0;

/// With less than this outside, t_R would be beyond 1e306.
const LEAST_OUTSIDE: f64 = LAST_EXPONENT / 1e306;

/// A time by which as little as that has hardly rung.
const SETTLED_BY: f64 = 1e286;

/// Tokens that are held by themselves, about, and how many are looked at to choose them.
const HEAVY: usize = 2048;
const SAMPLES: usize = 4096;

/// Light tokens are lighter than 2^-6 at least, so that twelve powers of theirs give the odds to
/// the last digit.
const LEAST_HEAVY: f64 = 1.0 / 64.0;

/// How much lighter than it must be the lightest of the heavy tokens becomes, when more of them
/// are needed.
const FURTHER: f64 = 1.0 / 64.0;

/// The chain of buckets as the race sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Race {
    ready: bool,
    /// q by bucket, the first place of every link, and the end.
    draft: Vec<f64>,
    starts: Vec<u32>,
    slots: Vec<u32>,
    /// Tokens with q above 0.
    support: usize,
    /// q below which a token is light: a power of two.
    limit: f64,
    /// Before every link, and at the end: the power sums of light tokens over `limit`, and the
    /// odds of heavy ones but for the dominant.
    light: Vec<[f64; POWERS]>,
    heavy_odds: Vec<f64>,
    /// Heavy tokens by falling octaves, each in the order of the chain, and their links.
    heavy: Vec<(f64, u32)>,
    octaves: Vec<Octave>,
    unsorted: Vec<(f64, u32)>,
    places: Vec<usize>,
    /// Mass of every link.
    masses: Vec<f64>,
    /// Mass outside, per link end.
    outside: Vec<Running>,
    dominant: Option<Dominant>,
    total: f64,
    /// What the error of the quadrature is to be, if not [`QUADRATURE_ERROR`].
    aim: Option<f64>,
    prefix: Prefix,
    counts: Vec<Lanes>,
}

/// A token with more than half of the mass.
#[derive(Clone, Copy, Debug)]
struct Dominant {
    link: usize,
    draft: f64,
    /// What the others hold, which must not be had by subtraction.
    others: f64,
}

/// Heavy tokens with q in `[scale/2, scale)`.
#[derive(Clone, Copy, Debug)]
struct Octave {
    scale: f64,
    start: usize,
    end: usize,
}

/// The tokens of a prefix.
#[derive(Clone, Debug, Default)]
struct Prefix {
    /// Heavy tokens, by falling octaves.
    tokens: Vec<f64>,
    levels: Vec<Level>,
    /// Heavy tokens that follow the last whole link.
    more: Vec<f64>,
}

/// An octave of a prefix.
#[derive(Clone, Copy, Debug)]
struct Level {
    scale: f64,
    /// How many tokens of the prefix are in octaves above.
    above: usize,
    /// Power sums of all tokens in this octave or below.
    sums: [f64; POWERS],
}

/// Nodes, weights and the errors of one number of draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    draws: usize,
    step: f64,
    /// Quadrature, tails and truncated expansions.
    pub(super) error: f64,
}

impl Rule {
    fn new(draws: usize, aim: f64) -> Self {
        if draws <= 2 {
            // A closed form.
            return Self {
                draws,
                step: 0.0,
                error: 0.0,
            };
        }
        let (step, quadrature) = log_time_step(draws, aim);
        let tails = FIRST_TIME.powi(3) + (-LAST_EXPONENT * (-step).exp()).exp();
        // (e^y - 1)^k loses terms from y^13 on; their coefficients are below 25, and
        // q t summed over what still matters is below 60.
        let truncation = match draws {
            ..=4 => 1e-15,
            5..=8 => 3e-13,
            _ => 6e-12,
        };
        Self {
            draws,
            step,
            error: quadrature + tails + truncation,
        }
    }

    fn node(&self, index: usize) -> f64 {
        FIRST_TIME.ln() + index as f64 * self.step
    }

    /// Returns by how much sums of alternating terms may exceed the sums of non-negative ones that
    /// they stand for: -log(1-r)/y <= 1.067 for each of the n-1 factors.
    fn amplification(&self) -> f64 {
        1.067f64.powi(self.draws as i32)
    }
}

/// More tokens have to be held by themselves.
struct TooFewHeavy;

impl Race {
    pub(super) fn forget(&mut self) {
        self.ready = false;
    }

    /// Sorts tokens by link and sums them up, once a position.
    pub(super) fn prepare(&mut self, buckets: &Buckets, rows: Rows<'_>) {
        if self.ready {
            return;
        }
        self.ready = true;
        self.total = buckets.all().draft();
        self.support = buckets.support();
        buckets.gather_draft(rows, &mut self.draft, &mut self.starts, &mut self.slots);
        self.split(usual_limit(rows.draft));
    }

    /// Parts light tokens from heavy ones.
    fn split(&mut self, limit: f64) {
        self.limit = limit;
        self.light.clear();
        self.heavy_odds.clear();
        self.masses.clear();
        self.unsorted.clear();
        self.dominant = None;
        let half = 0.5 * self.total;
        let (mut light, mut odds, mut others) =
            (PowerSums::default(), Running::default(), Running::default());
        self.light.push(light.value());
        self.heavy_odds.push(odds.value());
        let ends = self.starts.iter().skip(1);
        for (link, (&start, &end)) in self.starts.iter().zip(ends).enumerate() {
            let rates = &self.draft[start as usize..end as usize];
            let mut mass = Running::default();
            mass.add(light.add(rates, limit) * limit);
            others.add(mass.value());
            let first = self.unsorted.len();
            append_heavy(rates, limit, link as u32, &mut self.unsorted);
            for &(q, _) in &self.unsorted[first..] {
                mass.add(q);
                if q > half {
                    self.dominant = Some(Dominant {
                        link,
                        draft: q,
                        others: 0.0,
                    });
                } else {
                    others.add(q);
                    odds.add(q / (self.total - q));
                }
            }
            self.light.push(light.value());
            self.heavy_odds.push(odds.value());
            self.masses.push(mass.value());
        }
        if let Some(dominant) = &mut self.dominant {
            dominant.others = others.value();
        }
        let mut outside = Running::default();
        self.outside.clear();
        self.outside.resize(self.masses.len(), outside);
        for (slot, &mass) in self.outside.iter_mut().zip(&self.masses).rev() {
            *slot = outside;
            outside.add(mass);
        }
        self.sort_heavy();
    }

    /// Sorts heavy tokens by octave, in the order they have within each.
    fn sort_heavy(&mut self) {
        self.octaves.clear();
        self.heavy.clear();
        let Some(most) = self.unsorted.iter().map(|&(q, _)| exponent(q)).max() else {
            return;
        };
        let least = exponent(self.limit);
        let places = &mut self.places;
        places.clear();
        places.resize(most - least + 1, 0);
        for &(q, _) in &self.unsorted {
            places[most - exponent(q)] += 1;
        }
        let mut end = 0;
        for (below, place) in places.iter_mut().enumerate() {
            let start = end;
            end += *place;
            *place = start;
            if end > start {
                let scale = f64::from_bits(((most - below + 1) as u64) << 52);
                self.octaves.push(Octave { scale, start, end });
            }
        }
        self.heavy.resize(end, (0.0, 0));
        for &(q, link) in &self.unsorted {
            let place = &mut places[most - exponent(q)];
            self.heavy[*place] = (q, link);
            *place += 1;
        }
    }

    /// Nodes for a number of draws.
    pub(super) fn rule(&self, draws: usize) -> Rule {
        Rule::new(draws, self.aim.unwrap_or(QUADRATURE_ERROR))
    }

    /// Mass of a link, as it is in the rows.
    pub(super) fn mass(&self, link: usize) -> f64 {
        self.masses[link]
    }

    /// Q of all links before `link` and the tokens `more` of that link, `rest` being its other
    /// tokens; NaN where it is not known. Beside it, the bound on rounding.
    pub(super) fn inside(
        &mut self,
        rule: &Rule,
        link: usize,
        more: &[f64],
        rest: &[f64],
    ) -> (f64, f64) {
        let draws = rule.draws;
        // Tokens of q = 0 are in the last bucket.
        let whole = (self.starts[link] as usize).min(self.support);
        if whole + more.iter().filter(|&&q| q > 0.0).count() < draws {
            return (0.0, 0.0);
        }
        let mut outside = match link.checked_sub(1) {
            _ if !(more.is_empty() && rest.is_empty()) => self.outside[link],
            Some(last) => self.outside[last],
            None => return (0.0, 0.0),
        };
        for &q in rest {
            outside.add(q);
        }
        let s = outside.value();
        if s == 0.0 {
            return (1.0, 0.0);
        }
        if draws == 2 {
            return (self.close(s, link, more, 0.0), rounding(rule, 0.0, 0, 0));
        }
        if s < LEAST_OUTSIDE {
            let settled = self.is_settled(draws, link, more);
            return (if settled { 1.0 } else { f64::NAN }, 0.0);
        }
        let (integral, bound) = loop {
            self.gather(link, more);
            match self.integrate(rule, s) {
                Ok(found) => break found,
                // Never twice: with this limit all nodes can be had.
                Err(TooFewHeavy) => self.split(limit_for((LAST_EXPONENT / s) * rule.step.exp())),
            }
        };
        (self.close(s, link, more, integral), bound)
    }

    /// Returns whether the drafts have rung at [`SETTLED_BY`].
    fn is_settled(&mut self, draws: usize, link: usize, more: &[f64]) -> bool {
        loop {
            self.gather(link, more);
            match self.count(draws, &[SETTLED_BY; LANES]) {
                Ok((_, is_over)) => return is_over,
                Err(TooFewHeavy) => self.split(limit_for(SETTLED_BY)),
            }
        }
    }

    /// Fills `prefix`.
    fn gather(&mut self, link: usize, more: &[f64]) {
        let Prefix {
            tokens,
            levels,
            more: heavy_more,
        } = &mut self.prefix;
        tokens.clear();
        levels.clear();
        heavy_more.clear();
        heavy_more.extend(more.iter().filter(|&&q| q >= self.limit));
        heavy_more.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut rest = heavy_more.as_slice();
        for octave in &self.octaves {
            let above = tokens.len();
            let members = &self.heavy[octave.start..octave.end];
            let count = members.partition_point(|&(_, of)| (of as usize) < link);
            tokens.extend(members[..count].iter().map(|&(q, _)| q));
            let own = rest.partition_point(|&q| q >= 0.5 * octave.scale);
            tokens.extend_from_slice(&rest[..own]);
            rest = &rest[own..];
            if tokens.len() > above {
                let mut sums = PowerSums::default();
                sums.add(&tokens[above..], octave.scale);
                levels.push(Level {
                    scale: octave.scale,
                    above,
                    sums: sums.value(),
                });
            }
        }
        let mut light = self.light[link];
        if !more.is_empty() {
            let mut sums = PowerSums::default();
            sums.add(more, self.limit);
            for (sum, own) in light.iter_mut().zip(sums.value()) {
                *sum += own;
            }
        }
        levels.push(Level {
            scale: self.limit,
            above: tokens.len(),
            sums: light,
        });
        let mut below: Option<Level> = None;
        for level in levels.iter_mut().rev() {
            if let Some(below) = below {
                let ratio = below.scale / level.scale;
                let mut power = 1.0;
                for (sum, own) in level.sums.iter_mut().zip(below.sums) {
                    power *= ratio;
                    *sum += power * own;
                }
            }
            below = Some(*level);
        }
    }

    /// Counts of the prefix's clocks at rising times. Returns the operations on a path, and
    /// whether P(N_t < n) is negligible at all of the times.
    fn count(&mut self, draws: usize, times: &Lanes) -> Result<(f64, bool), TooFewHeavy> {
        self.counts.resize(draws, [0.0; LANES]);
        let last = times[LANES - 1];
        let Prefix { tokens, levels, .. } = &self.prefix;
        let mut all = levels.iter();
        let level = all.find(|level| level.scale * last <= EXPANSION_LIMIT);
        let (sums, scale, above) = match level {
            Some(level) => (level.sums, level.scale, level.above),
            None => ([0.0; POWERS], 0.0, tokens.len()),
        };
        let rates = &tokens[..above];
        let clocks = Clocks {
            scale,
            plain: &sums,
            marked: &sums,
            rates,
            targets: rates,
        };
        let (taken, is_over) = ring::<false>(&clocks, times, &mut self.counts, &mut []);
        let lights = levels.last().map_or(0.0, |level| level.sums[0]);
        if level.is_none() && !is_over && lights > 0.0 {
            return Err(TooFewHeavy);
        }
        // A token: a product, a sum, and the three of its chance to wait. (Its exponent and
        // the few bits that its chance to ring lost count once a path: exponents add up to what
        // matters, and a path rings fewer than n times.) The power sums: the factor, its
        // exponent, and n more. Their other roundings count once a path too.
        Ok((5.0 * taken as f64 + draws as f64 + 6.0, is_over))
    }

    /// s (I_2 + .. + I_{n-1}) of the prefix, and the bound on rounding.
    fn integrate(&mut self, rule: &Rule, s: f64) -> Result<(f64, f64), TooFewHeavy> {
        let last = (LAST_EXPONENT / s).ln();
        let (mut sums, mut operations, mut node) = ([0.0; LANES], 0.0f64, 0);
        loop {
            let (mut times, mut weights) = ([0.0; LANES], [0.0; LANES]);
            let mut time = 0.0;
            for (slot, weight) in times.iter_mut().zip(&mut weights) {
                // The last node is the first one beyond `last`.
                if node == 0 || rule.node(node - 1) <= last {
                    time = rule.node(node).exp();
                    *weight = rule.step;
                    node += 1;
                }
                *slot = time;
            }
            let (own, is_over) = self.count(rule.draws, &times)?;
            if is_over {
                break;
            }
            operations = operations.max(own);
            let values = integrand(s, &times, &self.counts);
            for lane in 0..LANES {
                sums[lane] += weights[lane] * values[lane];
            }
            if rule.node(node - 1) > last {
                break;
            }
        }
        let levels = self.prefix.levels.len();
        Ok((sums.iter().sum(), rounding(rule, operations, node, levels)))
    }

    /// 1 - s (I_0 + I_1 + the rest) for a total mass that may not be 1.
    fn close(&self, s: f64, link: usize, more: &[f64], rest: f64) -> f64 {
        let share = s / self.total;
        let half = 0.5 * self.total;
        // q/(1-q) is the sum of all powers of q.
        let ratio = self.limit / self.total;
        let light = |sums: &[f64; POWERS]| {
            (sums.iter().rev()).fold(0.0, |sum, power| ratio * (sum + power))
        };
        let mut odds = Running::default();
        odds.add(light(&self.light[link]));
        odds.add(self.heavy_odds[link]);
        let mut has_dominant = self.dominant.is_some_and(|token| token.link < link);
        if !more.is_empty() {
            let mut sums = PowerSums::default();
            sums.add(more, self.limit);
            odds.add(light(&sums.value()));
            for &q in more.iter().filter(|&&q| q >= self.limit) {
                if q > half {
                    has_dominant = true;
                } else {
                    odds.add(q / (self.total - q));
                }
            }
        }
        // The dominant token's odds alone may leave the range of f64.
        let dominant = match &self.dominant {
            Some(dominant) if has_dominant => (s / dominant.others) * (dominant.draft / self.total),
            _ => 0.0,
        };
        (1.0 - share - share * odds.value() - dominant - rest).clamp(0.0, 1.0)
    }
}

/// Above it, about [`HEAVY`] tokens of a row.
fn usual_limit(draft: &[f64]) -> f64 {
    let stride = draft.len().div_ceil(SAMPLES).max(1);
    let mut counts = [0u32; 2048];
    for &q in draft.iter().step_by(stride) {
        counts[exponent(q)] += 1;
    }
    let mut left = HEAVY / stride;
    let mut limit = exponent(LEAST_HEAVY);
    let above: usize = counts[limit..].iter().map(|&count| count as usize).sum();
    left = left.saturating_sub(above);
    // 1 is the exponent of the least number with a finite inverse.
    while limit > 1 && counts[limit - 1] as usize <= left {
        limit -= 1;
        left -= counts[limit] as usize;
    }
    f64::from_bits((limit as u64) << 52)
}

/// Returns what light tokens have to be below for expansions until `last`.
fn limit_for(last: f64) -> f64 {
    let limit = (EXPANSION_LIMIT * FURTHER / last).min(LEAST_HEAVY);
    f64::from_bits((exponent(limit).max(1) as u64) << 52)
}

/// The exponent's bits.
fn exponent(q: f64) -> usize {
    (q.to_bits() >> 52) as usize & 2047
}

/// Appends the rates from `limit` on.
fn append_heavy(rates: &[f64], limit: f64, link: u32, heavy: &mut Vec<(f64, u32)>) {
    const CHUNK: usize = 64;
    let mut found = [0.0; CHUNK];
    for chunk in rates.chunks(CHUNK) {
        // Without a branch: a token that is not heavy is written over.
        let mut count = 0;
        for &q in chunk {
            found[count % CHUNK] = q;
            count += usize::from(q >= limit);
        }
        heavy.extend(found[..count].iter().map(|&q| (q, link)));
    }
}

/// Rounding of the recurrences, of the sums behind them, and of the closed forms, over `nodes`
/// nodes of a prefix with so many levels.
fn rounding(rule: &Rule, operations: f64, nodes: usize, levels: usize) -> f64 {
    // Roundings in a sum of powers, or in a mass.
    let sums = SUMMING + 8.0 + levels as f64;
    // s, the odds, and the quotient of two masses, each a relative error of a term
    // below 1.
    let closed = 5.0 * sums + 60.0;
    // Sums of q t enter exponents, which matter while they are below 60. On one path
    // fewer than n clocks ring, alone or together: a lone clock's chance to ring is within 10
    // roundings; the joint e_k takes k steps of at most 15 roundings over its sums, and a sum
    // over n. Where a node lies is rounded too: x = log t below 705, of which an
    // integrand of one hump notices less than 600 roundings of 1.
    let recurrences = if rule.draws > 2 {
        let draws = rule.draws as f64;
        let rings = draws * (40.0 + draws + sums);
        rule.amplification() * (operations + rings) + 60.0 * sums + nodes as f64 + 600.0
    } else {
        0.0
    };
    2.0 * ROUNDING * (recurrences + closed)
}

#[cfg(test)]
mod tests {
    use super::super::{Rows, Workspace};
    use super::*;
    use crate::scan::buckets::Buckets;
    use crate::test_rows::normalised;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Four tokens of q, three sequential draws: Q by the definition. Ratios q/p fall, and
    /// all prefixes are ends of buckets.
    fn best_by_definition(p: [f64; 4], q: [f64; 4]) -> f64 {
        let inside = |held: usize| {
            let mut sum = 0.0;
            for (x, y, z) in (0..held)
                .flat_map(|x| (0..held).map(move |y| (x, y)))
                .flat_map(|(x, y)| (0..held).map(move |z| (x, y, z)))
            {
                if x != y && y != z && x != z {
                    sum += q[x] * q[y] / (1.0 - q[x]) * q[z] / (1.0 - q[x] - q[y]);
                }
            }
            sum
        };
        let differences = (1..=4).map(|held| p[..held].iter().sum::<f64>() - inside(held));
        1.0 + differences.fold(0.0, f64::min)
    }

    /// A coarse quadrature is off by far more than rounding, and the enclosure says so, on
    /// both sides.
    #[test]
    fn the_enclosure_grows_with_the_error_of_the_quadrature() {
        let (mut below, mut above) = (0, 0);
        for step in 0..40 {
            let share = 0.05 + 0.01 * f64::from(step);
            let p = [0.05, 0.1, 0.15, 0.7];
            let q = [share, 0.5 * (0.9 - share), 0.5 * (0.9 - share), 0.1];
            let truth = best_by_definition(p, q);
            assert!(truth < 0.999);
            let mut scan = Workspace::new();
            scan.race.aim = Some(1e-3);
            let mut position = scan.load(Rows::new(&p, &q), 3).unwrap();
            let rate = position.without_replacement(3).unwrap().rate;
            assert!(
                rate.lower() <= truth && truth <= rate.upper(),
                "{rate:?} {truth}"
            );
            below += usize::from(truth < rate.value() - 1e-9);
            above += usize::from(truth > rate.value() + 1e-9);
        }
        assert!(below > 0 && above > 0, "{below} {above}");
    }

    #[test]
    fn a_rule_counts_quadrature_tails_and_truncation() {
        for (draws, truncation) in [(3, 1e-15), (4, 1e-15), (5, 3e-13), (8, 3e-13), (9, 6e-12)] {
            for aim in [1e-3, 1e-12] {
                let (step, quadrature) = log_time_step(draws, aim);
                let rule = Rule::new(draws, aim);
                let tails = 8e-15 + (-45.0 * (-step).exp()).exp();
                let expected = quadrature + tails + truncation;
                assert!((rule.error / expected - 1.0).abs() < 1e-12, "{draws} {aim}");
                assert_eq!(rule.node(0), 2e-5f64.ln());
                assert_eq!(rule.node(3), 2e-5f64.ln() + 3.0 * step);
                let amplification = rule.amplification() / 1.067f64.powf(draws as f64);
                assert!((amplification - 1.0).abs() < 1e-13);
                // Sums of 64 and 2 levels; paths of 10 operations over 7 nodes.
                let sums = SUMMING + 8.0 + 2.0;
                let n = draws as f64;
                let paths = rule.amplification() * (10.0 + n * (40.0 + n + sums));
                let all = paths + 60.0 * sums + 7.0 + 600.0 + 5.0 * sums + 60.0;
                assert_eq!(rounding(&rule, 10.0, 7, 2), 2.0 * ROUNDING * all);
            }
        }
        for draws in [1, 2] {
            let rule = Rule::new(draws, 1e-12);
            assert_eq!((rule.error, rule.step), (0.0, 0.0));
            let sums = SUMMING + 8.0;
            assert_eq!(
                rounding(&rule, 10.0, 7, 0),
                2.0 * ROUNDING * (5.0 * sums + 60.0)
            );
        }
    }

    /// What is as heavy as the limit is heavy, in the order given, over chunks of 64.
    #[test]
    fn heavy_tokens_are_listed_from_the_limit_on() {
        let rates: Vec<f64> = (0..130).map(|i| f64::from(i % 7)).collect();
        let mut heavy = vec![(9.0, 9)];
        append_heavy(&rates, 5.0, 3, &mut heavy);
        let mut expected = vec![(9.0, 9)];
        expected.extend(rates.iter().filter(|&&q| q >= 5.0).map(|&q| (q, 3)));
        assert_eq!(heavy, expected);
    }

    /// Q by the same nodes, all tokens one by one with the library's functions.
    fn by_tokens(race: &Race, rule: &Rule, inside: &[f64], outside: &[f64]) -> f64 {
        let sum = |row: &[f64]| {
            let mut sum = Running::default();
            row.iter().for_each(|&q| sum.add(q));
            sum.value()
        };
        let (s, total) = (sum(outside), race.total);
        if inside.iter().filter(|&&q| q > 0.0).count() < rule.draws {
            return 0.0;
        }
        let mut waiting = s / total;
        for (place, &q) in inside.iter().enumerate() {
            let others = if q > 0.5 * total {
                sum(&inside[..place]) + sum(&inside[place + 1..]) + s
            } else {
                total - q
            };
            waiting += s / others * (q / total);
        }
        let (mut node, mut integral) = (0, 0.0);
        while node == 0 || rule.node(node - 1) <= (LAST_EXPONENT / s).ln() {
            let time = rule.node(node).exp();
            let mut counts = vec![0.0; rule.draws];
            counts[0] = 1.0;
            for &q in inside {
                let (waits, rings) = ((-q * time).exp(), -(-q * time).exp_m1());
                for k in (1..counts.len()).rev() {
                    counts[k] = counts[k] * waits + counts[k - 1] * rings;
                }
                counts[0] *= waits;
            }
            let between: f64 = counts[2..].iter().sum();
            integral += rule.step * s * time * (-s * time).exp() * between;
            node += 1;
        }
        (1.0 - waiting - integral).clamp(0.0, 1.0)
    }

    /// Rows on which light tokens matter, on which they have to be taken one by one after
    /// all, with a token above 1/2, with ties, with masses over 40 decades.
    fn row(random: &mut ChaCha8Rng, kind: usize, vocab: usize) -> Vec<f64> {
        let entries = (0..vocab).map(|token| {
            let x: f64 = random.random_range(0.0..1.0);
            match kind {
                0 => (4.0 * x).exp(),
                1 if token == 7 => 3.0 * vocab as f64,
                1 => 0.1 + x,
                2 if token < 3 => 1e9 * (1.0 + x),
                2 => (6.0 * x).exp(),
                3 => 1.0,
                4 => 10f64.powf(-40.0 * x),
                _ if token % 3 == 0 => 0.0,
                _ => (9.0 * x).exp(),
            }
        });
        normalised(entries.collect())
    }

    #[test]
    fn a_prefix_is_what_its_tokens_make_it() {
        let mut random = ChaCha8Rng::seed_from_u64(41);
        let mut split_again = 0;
        for trial in 0..36 {
            let (kind, vocab) = (trial % 6, [300, 3000][trial / 6 % 2]);
            let q = row(&mut random, kind, vocab);
            let p: Vec<f64> = q
                .iter()
                .map(|&q| q * (2.0 * random.random_range(-1.0f64..1.0)).exp() + 1e-9)
                .collect();
            let p = normalised(p);
            let rows = Rows::new(&p, &q);
            let (mut buckets, mut race) = (Buckets::default(), Race::default());
            buckets.load(rows).unwrap();
            race.prepare(&buckets, rows);
            let usual = race.limit;
            let rule = race.rule([3, 4, 5, 6, 8, 16][(trial + trial / 6) % 6]);
            let links = race.masses.len();
            for place in [links / 3, links / 2, links - 2] {
                let all = race.draft.clone();
                let [start, end] = [race.starts[place] as usize, race.starts[place + 1] as usize];
                let middle = usize::midpoint(start, end);
                for cut in [start, middle] {
                    let (inside, outside) = all.split_at(cut);
                    let expected = by_tokens(&race, &rule, inside, outside);
                    let (more, rest) = if cut == start {
                        (&all[..0], &all[..0])
                    } else {
                        (&all[start..cut], &all[cut..end])
                    };
                    let (found, rounding) = race.inside(&rule, place, more, rest);
                    let bound = rounding + 1e-12;
                    assert!(
                        (found - expected).abs() <= bound && rounding < 1e-10,
                        "{trial} {place} of {links}: {found} {expected} {rounding:e}"
                    );
                }
            }
            split_again += usize::from(race.limit < usual);
        }
        assert!(split_again > 0, "light tokens were never too heavy");
    }
}
