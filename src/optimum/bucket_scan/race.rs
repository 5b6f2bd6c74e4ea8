//! Q of sequential draws without replacement along the chain of buckets.
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
//! *Quadrature.* The integrands are those of `src/scheme/race.rs`, and so is the proof:
//! with tan a = 2 pi / (n h) the error of all terms together is at most
//! 2 cos^-n a / (e^{2 pi a / h} - 1). h is chosen to make that 1e-12.
//!
//! *Tails.* Left of t_L, P(N_t >= 2) <= t^2/2 bounds all terms together; right of
//! t_R = 45/s the factor s t e^{-st} does.
//!
//! # Cheap evaluation
//! The tokens of a bucket are held in classes by the size of q. While q t <= 1/16 for
//! the largest of a class, the whole class enters by its twelve power sums, else
//! token by token; and once so much of the chain has rung that P(N_t < n) < 1e-18, the
//! rest of the chain adds nothing.

use super::{BucketScan, MAX_DRAFTS, ROUNDING, Rows};
use crate::distribution::exp_nonpositive;
use crate::scheme::log_time_step;

/// Power sums kept of a class.
const POWERS: usize = 12;

/// Classes of q within a bucket: above 2^-9, and by factors of 8 below.
const CLASS_LIMITS: [f64; 5] = [
    f64::INFINITY,
    1.0 / 512.0,
    1.0 / 4096.0,
    1.0 / 32_768.0,
    1.0 / 262_144.0,
];

/// A class is expanded while its largest q t is at most this.
const EXPANSION_LIMIT: f64 = 1.0 / 16.0;

/// Tokens summed before their sums join those of the class.
const BLOCK: usize = 256;

/// Bound that the step is chosen for.
const QUADRATURE_ERROR: f64 = 1e-12;

/// t_L, and s t_R.
const FIRST_TIME: f64 = 2e-5;
const LAST_EXPONENT: f64 = 45.0;

/// Times beyond this are not evaluated; prefixes that would need them are passed
/// over.
const LATEST: f64 = 1e306;

/// What P(N_t < n) may be when the rest of a chain is left out.
const NEGLIGIBLE: f64 = 1e-18;

/// Tokens of one bucket with q of similar size.
#[derive(Clone, Copy, Debug)]
struct Class {
    start: u32,
    end: u32,
    largest: f64,
    /// Sums of (q / largest)^m, m = 1..
    sums: [f64; POWERS],
}

/// The chain of buckets as the race sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Race {
    ready: bool,
    /// q by bucket and class.
    draft: Vec<f64>,
    classes: Vec<Class>,
    /// First class of every link, and the end.
    first_class: Vec<u32>,
    /// Per link end: mass outside the prefix, and the sum of q/(1-q) inside.
    outside: Vec<f64>,
    odds: Vec<f64>,
    /// The token that holds more than half of q, and what the others hold.
    dominant: Option<(usize, f64)>,
    total: f64,
    integrals: Vec<f64>,
    token_outside: Vec<f64>,
    token_integrals: Vec<f64>,
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
    pub(super) fn new(draws: usize) -> Self {
        let (step, quadrature) = log_time_step(draws, QUADRATURE_ERROR);
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

    fn first_node(&self) -> f64 {
        FIRST_TIME.ln()
    }

    /// By how much sums of alternating terms may exceed the sums of non-negative
    /// ones that they stand for: -log(1-r)/y <= 1.067 for each of the n-1 factors.
    fn amplification(&self) -> f64 {
        1.067f64.powi(self.draws as i32)
    }
}

impl Race {
    pub(super) fn forget(&mut self) {
        self.ready = false;
    }

    /// Sorts tokens into classes and sums them up, once a position.
    pub(super) fn prepare(scan: &mut BucketScan, rows: Rows<'_>) {
        if scan.race.ready {
            return;
        }
        scan.group();
        let race = &mut scan.race;
        race.ready = true;
        race.total = scan.all.draft();
        race.dominant = dominant(rows.draft, race.total);
        race.draft.clear();
        race.classes.clear();
        race.first_class.clear();
        race.odds.clear();
        let mut odds = 0.0;
        for link in &scan.links {
            race.first_class.push(race.classes.len() as u32);
            let end = scan.starts[link.bucket] as usize;
            let tokens = &scan.by_bucket[end - link.tokens as usize..end];
            let limits = CLASS_LIMITS
                .iter()
                .zip(CLASS_LIMITS.iter().skip(1).chain([&0.0]));
            for (&upper, &lower) in limits {
                let start = race.draft.len();
                race.draft.extend(
                    tokens
                        .iter()
                        .map(|&token| rows.draft[token as usize])
                        .filter(|&q| q > lower && q <= upper),
                );
                if race.draft.len() > start {
                    race.classes.push(Class::of(&race.draft, start));
                    odds += odds_sum(&race.draft[start..], race.total, race.dominant);
                }
            }
            race.odds.push(odds);
        }
        race.first_class.push(race.classes.len() as u32);
        let mut outside = 0.0;
        race.outside.clear();
        race.outside.resize(scan.links.len(), 0.0);
        for (slot, link) in race.outside.iter_mut().zip(&scan.links).rev() {
            *slot = outside;
            outside += link.own.draft();
        }
    }

    /// Q at the end of every link, into `inside`; NaN where a prefix is passed over.
    /// Returns the bound on rounding.
    pub(super) fn prefixes(&mut self, rule: &Rule, inside: &mut Vec<f64>) -> f64 {
        let links = self.outside.len();
        self.integrals.clear();
        self.integrals.resize(links, 0.0);
        let mut operations = 0.0f64;
        if rule.draws > 2 {
            let mut integrals = std::mem::take(&mut self.integrals);
            let smallest = smallest_positive(&self.outside);
            self.for_each_node(rule, smallest, |time| {
                let mut counts = Counts::start(rule.draws);
                for (link, (integral, &s)) in integrals.iter_mut().zip(&self.outside).enumerate() {
                    self.ring(link, time, &mut counts);
                    if counts.is_over() {
                        break;
                    }
                    *integral += rule.step * counts.share(s, time);
                }
                operations = operations.max(counts.operations);
            });
            self.integrals = integrals;
        }
        inside.clear();
        for link in 0..links {
            let s = self.outside[link];
            inside.push(self.close(rule, s, self.odds[link], self.integrals[link]));
        }
        rounding(rule, operations, links, self.draft.len())
    }

    /// Q after each of the tokens `draft` that follow the links before `link`, into
    /// `inside`. Returns the bound on rounding.
    pub(super) fn tokens(
        &mut self,
        rule: &Rule,
        link: usize,
        draft: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator + Clone,
        inside: &mut Vec<f64>,
    ) -> f64 {
        let count = draft.len();
        let mut outsides = std::mem::take(&mut self.token_outside);
        let mut integrals = std::mem::take(&mut self.token_integrals);
        outsides.clear();
        outsides.resize(count, 0.0);
        integrals.clear();
        integrals.resize(count, 0.0);
        let mut outside = self.outside[link];
        for (slot, q) in outsides.iter_mut().rev().zip(draft.clone().rev()) {
            *slot = outside;
            outside += q;
        }
        let mut operations = 0.0f64;
        if rule.draws > 2 {
            let smallest = smallest_positive(&outsides);
            self.for_each_node(rule, smallest, |time| {
                let mut counts = Counts::start(rule.draws);
                for before in 0..link {
                    self.ring(before, time, &mut counts);
                    if counts.is_over() {
                        return;
                    }
                }
                for (slot, (q, &s)) in integrals.iter_mut().zip(draft.clone().zip(&outsides)) {
                    counts.token(q * time);
                    *slot += rule.step * counts.share(s, time);
                }
                operations = operations.max(counts.operations);
            });
        }
        let mut odds = if link == 0 { 0.0 } else { self.odds[link - 1] };
        inside.clear();
        for ((q, &s), &integral) in draft.zip(&outsides).zip(&integrals) {
            odds += odds_of(q, self.total, self.dominant);
            inside.push(self.close(rule, s, odds, integral));
        }
        self.token_outside = outsides;
        self.token_integrals = integrals;
        rounding(
            rule,
            operations,
            self.outside.len() + count,
            self.draft.len(),
        )
    }

    /// 1 - s (I_0 + I_1 + the rest) for a total mass that may not be 1.
    fn close(&self, rule: &Rule, s: f64, odds: f64, rest: f64) -> f64 {
        if s == 0.0 {
            return 1.0;
        }
        if rule.draws > 2 && LAST_EXPONENT / s > LATEST {
            return f64::NAN;
        }
        let share = s / self.total;
        (1.0 - share - share * odds - rest).clamp(0.0, 1.0)
    }

    fn for_each_node(&self, rule: &Rule, smallest: f64, mut visit: impl FnMut(f64)) {
        let last = (LAST_EXPONENT / smallest).min(LATEST).ln();
        let mut node = 0;
        loop {
            let x = rule.first_node() + node as f64 * rule.step;
            visit(x.exp());
            if x > last {
                break;
            }
            node += 1;
        }
    }

    /// Adds a link's clocks to the counts at a time.
    fn ring(&self, link: usize, time: f64, counts: &mut Counts) {
        let classes = self.first_class[link] as usize..self.first_class[link + 1] as usize;
        for class in &self.classes[classes] {
            if class.largest * time <= EXPANSION_LIMIT {
                counts.class(class, time);
            } else {
                for &q in &self.draft[class.start as usize..class.end as usize] {
                    counts.token(q * time);
                    if counts.is_over() {
                        return;
                    }
                }
            }
        }
    }
}

impl Class {
    /// The tokens from `start` on.
    fn of(draft: &[f64], start: usize) -> Self {
        const LANES: usize = 4;
        let tokens = &draft[start..];
        let largest = tokens.iter().copied().fold(0.0, f64::max);
        let mut sums = [0.0; POWERS];
        for block in tokens.chunks(BLOCK) {
            let mut lanes = [[0.0; LANES]; POWERS];
            for chunk in block.chunks(LANES) {
                let mut base = [0.0; LANES];
                for (slot, &q) in base.iter_mut().zip(chunk) {
                    *slot = q / largest;
                }
                let mut power = base;
                for sum in &mut lanes {
                    for lane in 0..LANES {
                        sum[lane] += power[lane];
                        power[lane] *= base[lane];
                    }
                }
            }
            for (sum, lanes) in sums.iter_mut().zip(&lanes) {
                *sum += lanes.iter().sum::<f64>();
            }
        }
        Self {
            start: start as u32,
            end: draft.len() as u32,
            largest,
            sums,
        }
    }
}

/// P(N_t = k), k < n, for a growing set.
struct Counts {
    probabilities: [f64; MAX_DRAFTS],
    draws: usize,
    operations: f64,
}

impl Counts {
    fn start(draws: usize) -> Self {
        let mut probabilities = [0.0; MAX_DRAFTS];
        probabilities[0] = 1.0;
        Self {
            probabilities,
            draws,
            operations: 0.0,
        }
    }

    /// The rest of the chain adds nothing.
    fn is_over(&self) -> bool {
        self.probabilities[..self.draws].iter().sum::<f64>() < NEGLIGIBLE
    }

    /// s t e^{-st} P(2 <= N_t < n).
    fn share(&self, s: f64, time: f64) -> f64 {
        let exponent = s * time;
        if exponent > 2.0 * LAST_EXPONENT {
            return 0.0;
        }
        let between: f64 = self.probabilities[2..self.draws].iter().sum();
        exponent * (-exponent).exp() * between
    }

    /// One more clock, of rate times time `exponent`.
    #[inline(always)]
    fn token(&mut self, exponent: f64) {
        let (waits, rings) = if exponent > EXPANSION_LIMIT {
            let waits = exp_nonpositive(-exponent);
            (waits, 1.0 - waits)
        } else {
            let rings = -(-exponent).exp_m1();
            (1.0 - rings, rings)
        };
        let counts = &mut self.probabilities[..self.draws];
        for k in (1..counts.len()).rev() {
            counts[k] = counts[k] * waits + counts[k - 1] * rings;
        }
        counts[0] *= waits;
        // A product, a sum, and the three of `waits`. (Its exponent and the few bits
        // that `rings` lost count once a path: exponents add up to what matters, and
        // a path rings fewer than n times.)
        self.operations += 5.0;
    }

    /// All clocks of a class: prod (1 + z r_i) = exp(sum (-1)^{k-1} R_k z^k / k) with
    /// R_k the sums of r^k, themselves series in the power sums of q t.
    fn class(&mut self, class: &Class, time: f64) {
        let z = class.largest * time;
        // Terms beyond this are below 1e-18 of the first.
        // z < 2^-octaves, and 2^-60 < 1e-18.
        let octaves = 1022usize.saturating_sub((z.to_bits() >> 52) as usize);
        let terms = (60 / octaves.max(1) + 2).min(POWERS);
        let mut powers = [0.0; POWERS];
        let mut power = 1.0;
        for (slot, &sum) in powers.iter_mut().zip(&class.sums).take(terms) {
            power *= z;
            *slot = power * sum;
        }
        let degree = (self.draws - 1)
            .min(POWERS)
            .min((class.end - class.start) as usize);
        // R_k, then e_k by k e_k = sum (-1)^{j-1} R_j e_{k-j}.
        let mut sums = [0.0; POWERS + 1];
        for k in 1..=degree.min(terms) {
            let coefficients = &EXPANSION[k - 1];
            let mut sum = 0.0;
            for m in k - 1..terms {
                sum += coefficients[m] * powers[m];
            }
            sums[k] = sum;
        }
        let mut symmetric = [0.0; MAX_DRAFTS];
        symmetric[0] = 1.0;
        let most = (self.draws - 1).min((class.end - class.start) as usize);
        for k in 1..=most {
            let mut sum = 0.0;
            let mut sign = 1.0;
            for j in 1..=k.min(degree) {
                sum += sign * sums[j] * symmetric[k - j];
                sign = -sign;
            }
            symmetric[k] = (sum / k as f64).max(0.0);
        }
        let waits = (-powers[0]).exp();
        let counts = &mut self.probabilities[..self.draws];
        for k in (0..counts.len()).rev() {
            let mut sum = 0.0;
            for j in 0..=k.min(most) {
                sum += symmetric[j] * counts[k - j];
            }
            counts[k] = waits * sum;
        }
        // The factor `waits`, its exponent, and the sum. Roundings in the symmetric
        // functions count once for each of the fewer than n classes that ring on a path.
        self.operations += self.draws as f64 + 6.0;
    }
}

/// `EXPANSION[k-1][m-1]` is the coefficient of y^m in (e^y - 1)^k.
const EXPANSION: [[f64; POWERS]; POWERS] = expansion();

const fn expansion() -> [[f64; POWERS]; POWERS] {
    let mut table = [[0.0; POWERS]; POWERS];
    let mut factorial = 1.0;
    let mut m = 0;
    while m < POWERS {
        factorial *= (m + 1) as f64;
        table[0][m] = 1.0 / factorial;
        m += 1;
    }
    let mut k = 1;
    while k < POWERS {
        // (e^y - 1)^{k+1} = (e^y - 1)^k (e^y - 1)
        let mut m = k;
        while m < POWERS {
            let mut i = k - 1;
            while i < m {
                table[k][m] += table[k - 1][i] * table[0][m - i - 1];
                i += 1;
            }
            m += 1;
        }
        k += 1;
    }
    table
}

/// Rounding of the recurrences, of the sums behind them, and of the closed forms,
/// for a chain of `links` prefixes over `tokens` tokens.
fn rounding(rule: &Rule, operations: f64, links: usize, tokens: usize) -> f64 {
    // Roundings in a sum over a class, or over odds.
    let sum = (BLOCK + tokens / BLOCK + 4) as f64;
    // s and the odds sum over classes, each is a relative error of a term below 1.
    let closed = 2.0 * (sum + 3.0 * links as f64 + 20.0);
    // Sums of q t enter exponents, which matter while they are below 60. On one path
    // fewer than n clocks ring, alone or in classes: a lone clock's 1 - waits is above
    // 1/17; a class's e_k takes k steps of at most 15 roundings, and a sum over n.
    let recurrences = if rule.draws > 2 {
        let draws = rule.draws as f64;
        let rings = draws * (40.0 + draws);
        rule.amplification() * (operations + rings) + 60.0 * sum + links as f64 + 600.0
    } else {
        0.0
    };
    2.0 * ROUNDING * (recurrences + closed)
}

fn smallest_positive(values: &[f64]) -> f64 {
    values
        .iter()
        .copied()
        .filter(|&s| s > 0.0)
        .fold(1.0, f64::min)
}

/// A token with more than half of the mass, and the sum of the others, which must
/// not be had by subtraction.
fn dominant(draft: &[f64], total: f64) -> Option<(usize, f64)> {
    let token = draft.iter().position(|&q| q > 0.5 * total)?;
    let others = draft[..token]
        .chunks(BLOCK)
        .chain(draft[token + 1..].chunks(BLOCK));
    Some((token, others.map(|block| block.iter().sum::<f64>()).sum()))
}

fn odds_of(q: f64, total: f64, dominant: Option<(usize, f64)>) -> f64 {
    let rest = match dominant {
        Some((_, others)) if q > 0.5 * total => others,
        _ => total - q,
    };
    if rest > 0.0 { q / rest } else { 0.0 }
}

fn odds_sum(draft: &[f64], total: f64, dominant: Option<(usize, f64)>) -> f64 {
    let block = |block: &[f64]| {
        block
            .iter()
            .map(|&q| odds_of(q, total, dominant))
            .sum::<f64>()
    };
    draft.chunks(BLOCK).map(block).sum()
}
