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
//! *Hardly anything outside.* For s below 5e-305 and n > 2, t_R is out of range. There
//! 1 - Q(H) <= P(N_t < n) + s t for any t. At t = 1e286 the second is below 1e-18; if the
//! first is too, then Q is taken for 1. Else it is not known: NaN. With fewer than n
//! clocks in H, Q is 0 exactly.
//!
//! *Rounding.* Masses are summed so that they keep their digits however small they are:
//! by class in lanes, over classes and tokens in two words. (1 - q is not: where a token
//! holds more than half of the mass, what the others hold is summed by itself.) What a
//! value errs by is counted while it is computed, in `rounding`.
//!
//! # Cheap evaluation
//! The tokens of a bucket are held in classes by the size of q. While q t <= 1/16 for
//! the largest of a class, the whole class enters by its twelve power sums, else
//! token by token; and once so much of the chain has rung that P(N_t < n) < 1e-18, the
//! rest of the chain adds nothing.

use super::buckets::{Buckets, MAX_DRAFTS, ROUNDING};
use crate::distribution::{Rows, TwoFloat};
use crate::quadrature::log_time_step;
use crate::row::clocks::{Clocks, chances, summing};

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

/// With less than this outside, t_R would be beyond 1e306.
const LEAST_OUTSIDE: f64 = LAST_EXPONENT / 1e306;

/// A time by which as little as that has hardly rung.
const SETTLED_BY: f64 = 1e286;

/// Rates below this are summed one by one.
const TINY_RATE: f64 = 1e-290;

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
    /// Mass of every link.
    masses: Vec<f64>,
    /// Per link end: mass outside the prefix, and what is inside.
    outside: Vec<TwoFloat>,
    within: Vec<Within>,
    dominant: Option<Dominant>,
    total: f64,
    /// What the error of the quadrature is to be, if not [`QUADRATURE_ERROR`].
    aim: Option<f64>,
    /// The rule that `integrals` were made with, and their rounding.
    made: Option<(Rule, f64)>,
    /// s I_2, s I_3.. of every link end, as many as that rule has.
    integrals: Vec<f64>,
    /// Q at the end of every link.
    ends: Vec<f64>,
    token_outside: Vec<f64>,
    token_integrals: Vec<f64>,
    /// Q after every token of a walk.
    token_ends: Vec<f64>,
}

/// A token with more than half of the mass.
#[derive(Clone, Copy, Debug)]
struct Dominant {
    draft: f64,
    /// What the others hold, which must not be had by subtraction.
    others: f64,
}

/// A prefix.
#[derive(Clone, Copy, Debug, Default)]
struct Within {
    /// Clocks.
    count: usize,
    /// Sum of q/(1-q) without the dominant token.
    odds: TwoFloat,
    /// Whether the dominant token is one of them.
    has_dominant: bool,
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
    pub(super) fn prepare(&mut self, buckets: &mut Buckets, rows: Rows<'_>) {
        if self.ready {
            return;
        }
        buckets.group();
        self.ready = true;
        self.made = None;
        self.total = buckets.all().draft();
        self.dominant = None;
        self.draft.clear();
        self.classes.clear();
        self.first_class.clear();
        self.masses.clear();
        self.within.clear();
        let half = 0.5 * self.total;
        let mut within = Within::default();
        let mut others = TwoFloat::ZERO;
        for link in buckets.links() {
            self.first_class.push(self.classes.len() as u32);
            let tokens = buckets.members(link);
            let limits = CLASS_LIMITS
                .iter()
                .zip(CLASS_LIMITS.iter().skip(1).chain([&0.0]));
            let mut mass = TwoFloat::ZERO;
            for (&upper, &lower) in limits {
                let start = self.draft.len();
                self.draft.extend(
                    tokens
                        .iter()
                        .map(|&token| rows.draft[token as usize])
                        .filter(|&q| q > lower && q <= upper),
                );
                if self.draft.len() > start {
                    let class = Class::of(&self.draft, start);
                    let rates = &self.draft[start..];
                    let own = class.mass(rates);
                    mass += own;
                    within.count += rates.len();
                    within.odds += odds_sum(rates, self.total);
                    if class.clocks.largest > half {
                        within.has_dominant = true;
                        self.dominant = Some(Dominant {
                            draft: class.clocks.largest,
                            others: 0.0,
                        });
                        for &q in rates.iter().filter(|&&q| q <= half) {
                            others += q;
                        }
                    } else {
                        others += own;
                    }
                    self.classes.push(class);
                }
            }
            self.masses.push(mass.value());
            self.within.push(within);
        }
        if let Some(dominant) = &mut self.dominant {
            dominant.others = others.value();
        }
        self.first_class.push(self.classes.len() as u32);
        let mut outside = TwoFloat::ZERO;
        self.outside.clear();
        self.outside.resize(buckets.links().len(), outside);
        for (slot, &mass) in self.outside.iter_mut().zip(&self.masses).rev() {
            *slot = outside;
            outside += mass;
        }
    }

    pub(super) fn rule(&self, draws: usize) -> Rule {
        Rule::new(draws, self.aim.unwrap_or(QUADRATURE_ERROR))
    }

    /// Mass of a link, as it is in the rows.
    pub(super) fn mass(&self, link: usize) -> f64 {
        self.masses[link]
    }

    /// Q of the links up to and with one; NaN where it is not known. As of the last
    /// [`Self::prefixes`].
    pub(super) fn at_end(&self, link: usize) -> f64 {
        self.ends[link]
    }

    /// Q of the prefix that ends with a token; NaN where it is not known. As of the last
    /// [`Self::tokens`].
    pub(super) fn at_token(&self, place: usize) -> f64 {
        self.token_ends[place]
    }

    /// Computes Q at the end of every link. Returns the bounds on quadrature and on
    /// rounding. The integrals for one number of draws hold those for fewer.
    pub(super) fn prefixes(&mut self, draws: usize) -> (f64, f64) {
        let (rule, rounding) = match self.made {
            Some((rule, rounding)) if rule.draws >= draws => (rule, rounding),
            _ => {
                let rule = self.rule(draws);
                let rounding = self.integrate(&rule);
                self.made = Some((rule, rounding));
                (rule, rounding)
            }
        };
        let kept = rule.draws - 2;
        let settled = self.settled(draws);
        let mut ends = std::mem::take(&mut self.ends);
        ends.clear();
        for (link, (s, within)) in self.outside.iter().zip(&self.within).enumerate() {
            let rest = self.integrals[link * kept..][..draws - 2].iter().sum();
            ends.push(self.close(draws, s.value(), within, rest, link >= settled));
        }
        self.ends = ends;
        (rule.error, rounding)
    }

    fn integrate(&mut self, rule: &Rule) -> f64 {
        let (links, kept) = (self.outside.len(), rule.draws - 2);
        let mut integrals = std::mem::take(&mut self.integrals);
        integrals.clear();
        integrals.resize(links * kept, 0.0);
        let (mut operations, mut nodes) = (0.0f64, 0);
        if kept > 0 {
            let smallest = least_outside(self.outside.iter().map(|s| s.value()));
            nodes = for_each_node(rule, smallest, |time| {
                let mut counts = Counts::start(rule.draws);
                let rows = integrals.chunks_exact_mut(kept).zip(&self.outside);
                for (link, (row, s)) in rows.enumerate() {
                    self.ring(link, time, &mut counts);
                    if counts.is_over() {
                        break;
                    }
                    let weight = rule.step * first_outside(s.value(), time);
                    for (integral, count) in row.iter_mut().zip(counts.two_or_more()) {
                        *integral += weight * count;
                    }
                }
                operations = operations.max(counts.operations);
            });
        }
        self.integrals = integrals;
        rounding(rule, operations, nodes, self.draft.len())
    }

    /// The first link by whose end the drafts have rung at [`SETTLED_BY`], if any prefix
    /// has so little outside that this matters.
    fn settled(&self, draws: usize) -> usize {
        let tiny = |s: &TwoFloat| s.value() > 0.0 && s.value() < LEAST_OUTSIDE;
        if draws == 2 || !self.outside.iter().any(tiny) {
            return 0;
        }
        let mut counts = Counts::start(draws);
        (0..self.outside.len())
            .position(|link| {
                self.ring(link, SETTLED_BY, &mut counts);
                counts.is_over()
            })
            .unwrap_or(self.outside.len())
    }

    /// Computes Q after each of the tokens `draft` that follow the links before `link`.
    /// Returns the bound on rounding.
    pub(super) fn tokens(
        &mut self,
        rule: &Rule,
        link: usize,
        draft: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator + Clone,
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
            *slot = outside.value();
            outside += q;
        }
        let (mut operations, mut nodes) = (0.0f64, 0);
        let mut settled = 0;
        if rule.draws > 2 {
            // The state at a time before the tokens; `None` if nothing is left to ring.
            let start = |time: f64| {
                let mut counts = Counts::start(rule.draws);
                for before in 0..link {
                    self.ring(before, time, &mut counts);
                    if counts.is_over() {
                        return None;
                    }
                }
                Some(counts)
            };
            let smallest = least_outside(outsides.iter().copied());
            nodes = for_each_node(rule, smallest, |time| {
                let Some(mut counts) = start(time) else {
                    return;
                };
                for (slot, (q, &s)) in integrals.iter_mut().zip(draft.clone().zip(&outsides)) {
                    counts.token(q * time);
                    let between: f64 = counts.two_or_more().iter().sum();
                    *slot += rule.step * first_outside(s, time) * between;
                }
                operations = operations.max(counts.operations);
            });
            if outsides.iter().any(|&s| s > 0.0 && s < LEAST_OUTSIDE)
                && let Some(mut counts) = start(SETTLED_BY)
            {
                settled = draft
                    .clone()
                    .position(|q| {
                        counts.token(q * SETTLED_BY);
                        counts.is_over()
                    })
                    .unwrap_or(count);
            }
        }
        let mut within = match link.checked_sub(1) {
            Some(before) => self.within[before],
            None => Within::default(),
        };
        let mut ends = std::mem::take(&mut self.token_ends);
        ends.clear();
        for (place, ((q, &s), &integral)) in draft.zip(&outsides).zip(&integrals).enumerate() {
            within.count += usize::from(q > 0.0);
            within.odds += odds_of(q, self.total);
            within.has_dominant |= q > 0.5 * self.total;
            ends.push(self.close(rule.draws, s, &within, integral, place >= settled));
        }
        self.token_ends = ends;
        self.token_outside = outsides;
        self.token_integrals = integrals;
        rounding(rule, operations, nodes, self.draft.len())
    }

    /// 1 - s (I_0 + I_1 + the rest) for a total mass that may not be 1.
    fn close(&self, draws: usize, s: f64, within: &Within, rest: f64, settled: bool) -> f64 {
        if within.count < draws {
            return 0.0;
        }
        if s == 0.0 {
            return 1.0;
        }
        if draws > 2 && s < LEAST_OUTSIDE {
            return if settled { 1.0 } else { f64::NAN };
        }
        let share = s / self.total;
        // The dominant token's odds alone may leave the range of f64.
        let dominant = match &self.dominant {
            Some(dominant) if within.has_dominant => {
                (s / dominant.others) * (dominant.draft / self.total)
            }
            _ => 0.0,
        };
        (1.0 - share - share * within.odds.value() - dominant - rest).clamp(0.0, 1.0)
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

    /// Sum of the rates.
    fn mass(&self, rates: &[f64]) -> f64 {
        if self.clocks.largest > TINY_RATE {
            return self.clocks.mass();
        }
        let sum = rates.iter().fold(TwoFloat::ZERO, |sum, &q| sum + q.into());
        sum.value()
    }
}

/// Visits the nodes for prefixes with at least `smallest` outside; returns how many.
fn for_each_node(rule: &Rule, smallest: f64, mut visit: impl FnMut(f64)) -> usize {
    let last = (LAST_EXPONENT / smallest).ln();
    let mut node = 0;
    loop {
        let x = rule.first_node() + node as f64 * rule.step;
        visit(x.exp());
        node += 1;
        if x > last {
            return node;
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
/// over `nodes` nodes and `tokens` tokens.
fn rounding(rule: &Rule, operations: f64, nodes: usize, tokens: usize) -> f64 {
    // Roundings in a sum over odds, and in a mass: a class, and a few more.
    let odds = (tokens.min(BLOCK) + tokens / BLOCK + 12) as f64;
    let mass = summing(tokens) + 8.0;
    // s, the odds, and the quotient of two masses, each a relative error of a term
    // below 1.
    let closed = odds + 4.0 * mass + 40.0;
    // Sums of q t enter exponents, which matter while they are below 60. On one path
    // fewer than n clocks ring, alone or in classes: a lone clock's 1 - waits is above
    // 1/17; a class's e_k takes k steps of at most 15 roundings over its sums, and a sum
    // over n. Where a node lies is rounded too: x = log t below 705, of which an
    // integrand of one hump notices less than 600 roundings of 1.
    let recurrences = if rule.draws > 2 {
        let draws = rule.draws as f64;
        let rings = draws * (40.0 + draws + mass);
        rule.amplification() * (operations + rings) + 60.0 * mass + nodes as f64 + 600.0
    } else {
        0.0
    };
    2.0 * ROUNDING * (recurrences + closed)
}

/// The least mass outside that nodes are needed for.
fn least_outside(outside: impl Iterator<Item = f64>) -> f64 {
    outside.filter(|&s| s >= LEAST_OUTSIDE).fold(1.0, f64::min)
}

/// q/(1-q) of a token, which is not the dominant one.
fn odds_of(q: f64, total: f64) -> f64 {
    if q > 0.5 * total {
        0.0
    } else {
        q / (total - q)
    }
}

fn odds_sum(draft: &[f64], total: f64) -> f64 {
    let block = |block: &[f64]| block.iter().map(|&q| odds_of(q, total)).sum::<f64>();
    draft.chunks(BLOCK).map(block).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{Rows, Workspace};

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
            let (target, draft) = (&p[..], &q[..]);
            let mut position = scan.load(Rows { target, draft }, 3).unwrap();
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
}
