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
//! *Quadrature.* The integrands are those of `src/quadrature/log_time.rs`, and so is the proof:
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
use crate::quadrature::log_time_step;
use crate::scheme::{Clocks, chances, summing};

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

/// Odds summed before their sum joins the others.
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
    clocks: Clocks,
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
    /// The rule that `integrals` were made with, and their rounding.
    made: Option<(Rule, f64)>,
    /// s I_2, s I_3.. of every link end, as many as that rule has.
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
        race.made = None;
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
    /// Returns the bounds on quadrature and on rounding. The integrals for one number of
    /// draws hold those for fewer.
    pub(super) fn prefixes(&mut self, draws: usize, inside: &mut Vec<f64>) -> (f64, f64) {
        let (rule, rounding) = match self.made {
            Some((rule, rounding)) if rule.draws >= draws => (rule, rounding),
            _ => {
                let rule = Rule::new(draws);
                let rounding = self.integrate(&rule);
                self.made = Some((rule, rounding));
                (rule, rounding)
            }
        };
        let kept = rule.draws - 2;
        inside.clear();
        for (link, (&s, &odds)) in self.outside.iter().zip(&self.odds).enumerate() {
            let rest = self.integrals[link * kept..][..draws - 2].iter().sum();
            inside.push(self.close(draws, s, odds, rest));
        }
        (rule.error, rounding)
    }

    fn integrate(&mut self, rule: &Rule) -> f64 {
        let (links, kept) = (self.outside.len(), rule.draws - 2);
        let mut integrals = std::mem::take(&mut self.integrals);
        integrals.clear();
        integrals.resize(links * kept, 0.0);
        let mut operations = 0.0f64;
        if kept > 0 {
            let smallest = smallest_positive(&self.outside);
            self.for_each_node(rule, smallest, |time| {
                let mut counts = Counts::start(rule.draws);
                let rows = integrals.chunks_exact_mut(kept).zip(&self.outside);
                for (link, (row, &s)) in rows.enumerate() {
                    self.ring(link, time, &mut counts);
                    if counts.is_over() {
                        break;
                    }
                    let weight = rule.step * first_outside(s, time);
                    for (integral, count) in row.iter_mut().zip(counts.two_or_more()) {
                        *integral += weight * count;
                    }
                }
                operations = operations.max(counts.operations);
            });
        }
        self.integrals = integrals;
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
                    let between: f64 = counts.two_or_more().iter().sum();
                    *slot += rule.step * first_outside(s, time) * between;
                }
                operations = operations.max(counts.operations);
            });
        }
        let mut odds = if link == 0 { 0.0 } else { self.odds[link - 1] };
        inside.clear();
        for ((q, &s), &integral) in draft.zip(&outsides).zip(&integrals) {
            odds += odds_of(q, self.total, self.dominant);
            inside.push(self.close(rule.draws, s, odds, integral));
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
    fn close(&self, draws: usize, s: f64, odds: f64, rest: f64) -> f64 {
        if s == 0.0 {
            return 1.0;
        }
        if draws > 2 && LAST_EXPONENT / s > LATEST {
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
            if class.clocks.largest * time <= EXPANSION_LIMIT {
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
        Self {
            start: start as u32,
            end: draft.len() as u32,
            clocks: Clocks::of(&draft[start..]),
        }
    }
}

/// s t e^{-st}: t times the density of the first ring outside.
fn first_outside(s: f64, time: f64) -> f64 {
    let exponent = s * time;
    if exponent > 2.0 * LAST_EXPONENT {
        return 0.0;
    }
    exponent * (-exponent).exp()
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

    /// P(N_t = k), 2 <= k < n.
    fn two_or_more(&self) -> &[f64] {
        &self.probabilities[2..self.draws]
    }

    /// One more clock, of rate times time `exponent`.
    #[inline(always)]
    fn token(&mut self, exponent: f64) {
        let (waits, rings) = chances(exponent, EXPANSION_LIMIT);
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

    /// All clocks of a class.
    fn class(&mut self, class: &Class, time: f64) {
        let mut symmetric = [0.0; MAX_DRAFTS];
        let symmetric = &mut symmetric[..self.draws];
        let waits = class.clocks.ring(time, symmetric);
        let most = (self.draws - 1).min(class.clocks.count);
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

/// Rounding of the recurrences, of the sums behind them, and of the closed forms,
/// for a chain of `links` prefixes over `tokens` tokens.
fn rounding(rule: &Rule, operations: f64, links: usize, tokens: usize) -> f64 {
    // Roundings in a sum over odds, and over a class.
    let odds = (BLOCK + tokens / BLOCK + 4) as f64;
    let sum = summing(tokens);
    // s and the odds sum over classes, each is a relative error of a term below 1.
    let closed = 2.0 * (odds + 3.0 * links as f64 + 20.0);
    // Sums of q t enter exponents, which matter while they are below 60. On one path
    // fewer than n clocks ring, alone or in classes: a lone clock's 1 - waits is above
    // 1/17; a class's e_k takes k steps of at most 15 roundings over its sums, and a sum
    // over n.
    let recurrences = if rule.draws > 2 {
        let draws = rule.draws as f64;
        let rings = draws * (40.0 + draws + sum);
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
