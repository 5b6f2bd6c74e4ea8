//! SpecTr's k-SEQ.

use super::residual::keep;
use super::rule::{EXACT_FORMULA_BITS, in_both};
use super::token::sample_in_turn;
use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, TokenRule, Verdict, Verifier,
    VerifierError, VerifierName, draft_of, sequential,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use num_bigint::BigUint;
use rand::RngCore;
use specgap_number::distribution::{Draft, Rational, Target, exact_value, round_nearest};
use specgap_number::known::Known;
use specgap_number::number::{Number, RunningSum, normalised};
use specgap_row::{Question, Row, RowError, residual_error};
use std::sync::{Arc, OnceLock};

/// k-SEQ: keep each draft in turn with probability `min(1, p(x)/(rho q(x)))`,
/// with one factor rho for all of them; after the last one, draw from the
/// residual.
///
/// With `b = sum of min(p/rho, q)`, some draft is accepted with probability
/// `1 - (1-b)^n`, and the accepted token has law `min(p/rho, q)/b`. The residual
/// is therefore `p - c min(p/rho, q)` with
/// `c = (1 - (1-b)^n)/b = sum over k < n of (1-b)^k`. It is non-negative if
/// and only if `c <= rho` (or b = 0), that is
/// `rho b >= 1 - (1-b)^n`: the left side never falls with rho and the right side
/// never rises, so the lossless factors are those from one root rho* in [1, n]
/// upwards, and the acceptance is largest at rho*.
///
/// # Exactness
/// rho* is irrational in general. [`KSeq::new`] takes the smallest `f64` that is not
/// below it, decided in whole numbers; the rule with that dyadic factor is rational,
/// and its output law is p exactly. Its acceptance is below that of rho* by at most
/// 2^-52: along rho it falls by n b (1-b)^(n-1)/rho at most, which is no more than 1/rho.
///
/// # Acceptance
/// Algorithmic: `1 - (1-b)^n`. Membership adds
/// `(1-b)^n sum over y of p_res(y) [1 - (1 - r(y))^n]`, where
/// `r(y) = (q(y) - min(q(y), p(y)/rho))/(1-b)` is the law of a rejected draft.
/// At rho* itself that addition is 0: there the residual is `(p - rho* q)+`,
/// positive only where `p > rho* q`, and such a token is never rejected. It is
/// positive for larger factors.
///
/// # Guarantee
/// At rho*: at least `(1 - (1-1/n)^n) alpha*`, which is above `(1-1/e) alpha*`.
///
/// # Source
/// SpecTr, Algorithm 2, eq. 5 and Theorem 2 (with p and q swapped); Hu et al.,
/// App. A.2, eq. 31 to 33.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{KSeq, Verifier};
/// let scheme = WithReplacement::new(Draft::new(&[1.0, 0.0])?, 2);
/// let problem = Problem::new("one-hot draft", Target::new(&[0.5, 0.5])?, scheme)?;
/// // b = 1/(2 rho), and 1 - (1-b)^2 = rho b = 1/2.
/// let rule = KSeq::new(&problem)?;
/// assert!((rule.factor() - 0.5 / (1.0 - 0.5f64.sqrt())).abs() < 1e-15);
/// assert!((rule.acceptance().algorithmic.value() - 0.5).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KSeq {
    problem: Problem,
    draft: Draft,
    factor: Rational,
    float_factor: f64,
    float: OnceLock<Rule<f64>>,
    exact: OnceLock<Rule<Rational>>,
}

#[derive(Debug)]
struct Rule<M> {
    /// p.
    wanted: Vec<M>,
    /// rho q.
    offered: Vec<M>,
    residual: Arc<[M]>,
    /// b.
    one_draft: M,
}

/// What is decided of factors: with C = sum of min(p, rho q) and D = 1 - C, the sum of
/// (p - rho q)+, a factor is lossless where `(1 - C/rho)^n >= D`, that is
/// `(rho - 1 + D)^n >= D rho^n`.
struct Factors<'a> {
    target: &'a Target,
    draft: &'a Draft,
    drafts: usize,
}

/// Two `f64` probabilities that differ by more than this share of the larger one, and by more
/// than the absolute error of the lightest, stand in the order of the numbers they are of.
const SURE: (f64, f64) = (1e-14, 1e-320);

impl Factors<'_> {
    /// D as a fraction of whole numbers. O(V): p and rho q are compared in `f64`, and in whole
    /// numbers where these are too near to tell.
    fn missed(&self, factor: &Rational) -> (BigUint, BigUint) {
        let (target, draft) = (self.target.exact(), self.draft.exact());
        // p - rho q = (w unit - v offer)/(unit total of w), of weights w and v.
        let unit = factor.denom().magnitude() * &draft.total;
        let offer = factor.numer().magnitude() * &target.total;
        let float_factor = round_nearest(factor);
        let (mut wanted, mut offered) = (BigUint::default(), BigUint::default());
        let floats = self.target.probabilities().iter();
        for (token, (p, q)) in floats.zip(self.draft.probabilities()).enumerate() {
            let (w, v) = (&target.weights[token], &draft.weights[token]);
            let (low, high) = (*p, float_factor * q);
            let unsure = SURE.0 * low.max(high) + SURE.1;
            let is_long = high - low > unsure;
            if !is_long && (low - high > unsure || w * &unit > v * &offer) {
                wanted += w;
                offered += v;
            }
        }
        let missed = wanted * &unit - offered * offer;
        (missed, unit * &target.total)
    }

    /// Returns whether the residual is non-negative, exactly.
    fn is_lossless(&self, factor: &Rational) -> bool {
        let (missed, whole) = self.missed(factor);
        let (numerator, denominator) = (factor.numer().magnitude(), factor.denom().magnitude());
        let offered = numerator * &whole;
        // rho - C is not below 0, as C is at most rho.
        let left = &offered + &missed * denominator - denominator * &whole;
        let drafts = u32::try_from(self.drafts).unwrap_or(u32::MAX);
        left.pow(drafts) * whole >= missed * offered.pow(drafts)
    }

    /// The same in `f64`, from C or from D, whichever is small.
    fn seems_lossless(&self, factor: f64) -> bool {
        let (mut taken, mut missed) = (0.0, 0.0);
        let floats = self.target.probabilities().iter();
        for (p, q) in floats.zip(self.draft.probabilities()) {
            taken += p.min(factor * q);
            missed += (p - factor * q).max(0.0);
        }
        let drafts = self.drafts as f64;
        if taken < missed {
            return drafts * (-taken / factor).ln_1p() >= (-taken).ln_1p();
        }
        drafts * ((factor - 1.0 + missed) / factor).ln() >= missed.ln()
    }

    /// The smallest `f64` that is lossless. n is.
    fn smallest(&self) -> f64 {
        let most = self.drafts as f64;
        let guess = bisect(self.drafts, |factor| self.seems_lossless(factor));
        first_from(guess, most, |factor| {
            exact_value(factor).is_some_and(|factor| self.is_lossless(&factor))
        })
    }
}

/// The smallest `f64` in [1, n] that passes, by bisection between neighbours.
fn bisect(drafts: usize, mut lossless: impl FnMut(f64) -> bool) -> f64 {
    let (mut low, mut high) = (1.0, drafts as f64);
    if lossless(low) {
        return low;
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return high;
        }
        if lossless(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
}

/// The same from a guess on, with two tests where it is right: in steps that double until the
/// number lies between two that were tried, then by bisection. `most` is not tried.
fn first_from(guess: f64, most: f64, mut lossless: impl FnMut(f64) -> bool) -> f64 {
    let (mut low, mut high) = (1f64.to_bits() - 1, most.to_bits());
    let (mut next, mut step) = (guess.to_bits().min(high - 1), 1u64);
    while low + 1 < high {
        if next <= low || next >= high {
            next = u64::midpoint(low, high);
        }
        if lossless(f64::from_bits(next)) {
            high = next;
            next = high.saturating_sub(step);
        } else {
            low = next;
            next = low.saturating_add(step);
        }
        step = step.saturating_mul(2);
    }
    f64::from_bits(high)
}

impl KSeq {
    /// Makes one with the smallest lossless `f64` factor: the root rho*, rounded up.
    ///
    /// O(V) an evaluation in `f64`, some 60 of them, and in whole numbers as a rule two.
    ///
    /// # Errors
    /// The drafts are not `with-replacement`.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let draft = draft_of(problem, SchemeName::WITH_REPLACEMENT, VerifierName::K_SEQ)?;
        let factor = Self::factors(problem, &draft).smallest();
        let exact = exact_value(factor).unwrap_or_else(Rational::one);
        Ok(Self::build(problem, draft, exact))
    }

    fn factors<'a>(problem: &'a Problem, draft: &'a Draft) -> Factors<'a> {
        Factors {
            target: problem.target(),
            draft,
            drafts: problem.drafts(),
        }
    }

    /// Makes one with a factor of one's own.
    ///
    /// # Errors
    /// The drafts are not `with-replacement`, or the factor is below the root,
    /// where the rule would not be lossless. Decided exactly.
    pub fn with_factor(problem: &Problem, factor: Rational) -> Result<Self, VerifierError> {
        let draft = draft_of(problem, SchemeName::WITH_REPLACEMENT, VerifierName::K_SEQ)?;
        let factors = Self::factors(problem, &draft);
        if factor <= Rational::zero() || !factors.is_lossless(&factor) {
            let least = factors.smallest();
            return Err(VerifierError::Factor(round_nearest(&factor), least));
        }
        Ok(Self::build(problem, draft, factor))
    }

    fn build(problem: &Problem, draft: Draft, factor: Rational) -> Self {
        Self {
            problem: problem.clone(),
            draft,
            float_factor: round_nearest(&factor),
            factor,
            float: OnceLock::new(),
            exact: OnceLock::new(),
        }
    }

    fn exact_bits(problem: &Problem, draft: &Draft) -> f64 {
        let bits = problem.target().exact_bits() as f64 + draft.exact_bits() as f64 + 64.0;
        bits * (problem.drafts() + problem.vocab()) as f64 * problem.drafts() as f64
    }

    /// rho.
    pub fn factor(&self) -> f64 {
        self.float_factor
    }

    /// The rates in `f64`.
    pub(super) fn enclosed(&self) -> Acceptance {
        let drafts = self.problem.drafts();
        let note = Some(format!("rho = {}", self.float_factor));
        let float = self.float();
        let algorithmic = accepted(float.one_draft.min(1.0), drafts);
        let hits = float.residual_hits(&self.float_factor, drafts);
        // b is within 4 epsilon of its value, and the rate moves n times as fast;
        // the residual is off by a rounding of p at each token.
        let error = (8.0 * drafts as f64 + 8.0) * f64::EPSILON;
        Acceptance {
            algorithmic: Known::rate_within(algorithmic, error),
            membership: Known::rate_within(algorithmic + hits, 2.0 * error),
            note,
        }
    }

    /// min(p/rho, q) = min(p, rho q)/rho.
    fn rule<M: Number>(&self, factor: &M) -> Rule<M> {
        let (target, draft) = (M::row(self.problem.target()), M::row(&self.draft));
        let offered: Vec<M> = draft.iter().map(|q| factor.times(q)).collect();
        let pairs = target.iter().zip(&offered);
        let taken: Vec<M> = pairs
            .map(|(p, offer)| p.smaller(offer).over(factor))
            .collect();
        let one_draft = M::total(&taken);
        // c = sum over k < n of (1-b)^k.
        let share = one_draft.complement().geometric_sum(self.problem.drafts());
        let pairs = target.iter().zip(&taken);
        let left: Vec<M> = pairs
            .map(|(p, taken)| p.excess_over(&share.times(taken)))
            .collect();
        // Nothing left means that nothing is ever rejected, up to rounding.
        let residual = normalised(&left).unwrap_or_else(|| target.clone()).into();
        Rule {
            wanted: target,
            offered,
            residual,
            one_draft,
        }
    }

    fn float(&self) -> &Rule<f64> {
        self.float.get_or_init(|| self.rule(&self.float_factor))
    }

    fn exact(&self) -> &Rule<Rational> {
        self.exact.get_or_init(|| self.rule(&self.factor))
    }
}

impl<M: Number> Rule<M> {
    fn keeps(&self, token: u32) -> M {
        keep(&self.wanted[token as usize], &self.offered[token as usize])
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        let keep = tuple.iter().map(|&token| self.keeps(token)).collect();
        sequential(keep, self.residual.clone())
    }

    /// sum over y of p_res(y) [1 - (1 - r(y))^n] (1-b)^n
    /// = sum over y of p_res(y) [(1-b)^n - (1 - b - (1-b) r(y))^n].
    fn residual_hits(&self, factor: &M, drafts: usize) -> M {
        let miss = self.one_draft.complement();
        let power = |base: &M| (0..drafts).fold(M::one(), |power, _| power.times(base));
        let none = power(&miss);
        let mut sum = M::Sum::default();
        let tokens = self.wanted.iter().zip(&self.offered);
        for ((p, offer), residual) in tokens.zip(self.residual.iter()) {
            if residual.is_nil() || p >= offer {
                continue;
            }
            let refused = offer.excess_over(p).over(factor);
            let elsewhere = power(&miss.excess_over(&refused));
            sum.add(&residual.times(&none.excess_over(&elsewhere)));
        }
        sum.value()
    }
}

impl Verifier for KSeq {
    in_both!(self, VerifierName::K_SEQ, self.float(), self.exact());

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let float = self.float();
        sample_in_turn(|_, x| float.keeps(x), &float.residual, tuple, rng)
    }

    fn has_rounded_parameter(&self) -> bool {
        true
    }

    fn acceptance(&self) -> Acceptance {
        let drafts = self.problem.drafts();
        let note = Some(format!("rho = {}", self.float_factor));
        if Self::exact_bits(&self.problem, &self.draft) <= EXACT_FORMULA_BITS {
            let exact = self.exact();
            let algorithmic = exact.one_draft.complement().power(drafts).complement();
            let membership = &algorithmic + exact.residual_hits(&self.factor, drafts);
            return Acceptance {
                algorithmic: Known::exact(algorithmic),
                membership: Known::exact(membership),
                note,
            };
        }
        self.enclosed()
    }
}

/// The rate at the root rho*: the crossing of C(rho) = 1 - M(rho), which rises, and of
/// 1 - (1 - C/rho)^n, which falls. O(m) an evaluation, m tokens a bucket, some 50 of them.
fn on_row(row: &mut Row<'_>, drafts: usize) -> Result<Known, RowError> {
    let drafts = drafts.max(1);
    let (_, one_draft) = root_of(row, drafts);
    // The crossing of two curves is off by no more than the worse of them.
    let error = residual_error(drafts);
    Ok(Known::rate_within(accepted(one_draft, drafts), error))
}

/// 1 - (1-b)^n.
fn accepted(one_draft: f64, drafts: usize) -> f64 {
    -(drafts as f64 * (-one_draft).ln_1p()).exp_m1()
}

/// rho and b of a row.
fn root_of(row: &mut Row<'_>, drafts: usize) -> (f64, f64) {
    let one_draft = |factor: f64, mass: f64| ((1.0 - mass).clamp(0.0, 1.0) / factor).min(1.0);
    let (root, mass) = row.turning_factor(1.0, drafts as f64, |factor, mass| {
        1.0 - mass < accepted(one_draft(factor, mass), drafts)
    });
    (root, one_draft(root, mass))
}

/// Returns what each draft accepts of a token: (1-b)^k min(p, rho q)/rho.
fn masses<M: Number>(p: &M, q: &M, factor: &M, one_draft: &M, drafts: usize) -> Vec<M> {
    let miss = one_draft.complement();
    let mut mass = p.smaller(&factor.times(q)).over(factor);
    let mut masses = Vec::with_capacity(drafts);
    for _ in 0..drafts {
        masses.push(mass.clone());
        mass = mass.times(&miss);
    }
    masses
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, drafts, _| {
        let (p, q) = of_row(row, token);
        let (factor, one_draft) = root_of(row, drafts);
        Ok(masses(&p, &q, &factor, &one_draft, drafts))
    },
    exact: |problem, token| {
        let Ok(rule) = KSeq::new(problem) else {
            return vec![Rational::zero(); problem.drafts()];
        };
        let (p, q) = of_problem(problem);
        let one_draft = &rule.exact().one_draft;
        let (p, q, drafts) = (&p[token], &q[token], problem.drafts());
        masses(p, q, &rule.factor, one_draft, drafts)
    },
    nested: false,
    sampled_from: None,
    on_lists: false,
};

const ON_ROW: Question = Question {
    full: on_row,
    // The root moves by no more than the curve that it lies on, and rho is at most n.
    cut: |row, ask| {
        let drafts = ask.drafts;
        row.rising_rule(drafts, on_row, move |q| drafts as f64 * q)
    },
};

/// [`KSeq`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::K_SEQ,
    acceptance: "1 - (1-b)^n; at least (1-(1-1/n)^n) alpha*",
    lossless: Lossless::Under(&[SchemeName::WITH_REPLACEMENT]),
    build: |problem, _| Ok(Box::new(KSeq::new(problem)?)),
    on_row: |_| Some(RowRule::of(ON_ROW)),
    at_token: |_| Ok(AT_TOKEN),
    attains: |_| false,
    compared_with: &[VerifierName::RRS],
    by_default: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// From any guess, the first that passes is found, from a good one by two tests.
    #[test]
    fn the_first_that_passes_is_found_from_any_guess() {
        for root in [1.0, 1.0f64.next_up(), 1.7, 2.5, 3.0f64.next_down(), 3.0] {
            let from = |guess: f64| {
                let mut tried = Vec::new();
                let found = first_from(guess, 3.0, |factor| {
                    tried.push(factor);
                    factor >= root
                });
                assert_eq!(found, root, "from {guess}");
                assert!(tried.iter().all(|factor| (1.0..3.0).contains(factor)));
                tried.len()
            };
            assert!(from(root) <= 2);
            if root > 1.5 && root < 3.0 {
                assert!(from(root.next_up()) <= 4 && from(root.next_down()) <= 4);
            }
            for guess in [1.0, 1.3, 2.0, 3.0] {
                assert!(from(guess) <= 110, "{root} from {guess}");
            }
        }
        assert_eq!(first_from(1.0, 1.0, |_| false), 1.0);
    }

    /// c = 1 + (1-b) + (1-b)^2 is to be at most rho, with b = sum of min(p/rho, q).
    #[test]
    fn factors_are_lossless_from_the_root_on() {
        let rational = |text: &str| specgap_number::distribution::parse_rational(text).unwrap();
        let asked = |p: &[f64], q: &[f64], factor: &Rational| {
            let (target, draft) = (Target::new(p).unwrap(), Draft::new(q).unwrap());
            let factors = Factors {
                target: &target,
                draft: &draft,
                drafts: 3,
            };
            let is_lossless = factors.is_lossless(factor);
            // Rounded, the factor next below the root may be the root.
            if exact_value(round_nearest(factor)).as_ref() == Some(factor) {
                assert_eq!(factors.smallest() <= round_nearest(factor), is_lossless);
            }
            let (missed, whole) = factors.missed(factor);
            (is_lossless, Rational::fraction(&missed, &whole))
        };
        // b = 1/2 up to rho = 2: c = 7/4.
        let (p, q) = ([1.0, 0.0], [0.5, 0.5]);
        for (factor, expected) in [
            (1.75f64, true),
            (1.75f64.next_down(), false),
            (1.0, false),
            (0.5, false),
            (3.0, true),
        ] {
            let exact = exact_value(factor).unwrap();
            assert_eq!(asked(&p, &q, &exact).0, expected, "{factor}");
        }
        // Factors that no f64 holds, and that f64 sees as infinite.
        let below = rational("7/4") - rational("1e-300");
        assert!(!asked(&p, &q, &below).0 && asked(&p, &q, &rational("1e390")).0);
        // (p - rho q)+ = 1/2 - 3/8.
        let (_, missed) = asked(&[0.5, 0.5], &[0.75, 0.25], &rational("3/2"));
        assert_eq!(missed, rational("1/8"));
        // Nothing in common: nothing is accepted, and nothing can be lost. Nor where all is.
        assert!(asked(&[1.0, 0.0], &[0.0, 1.0], &Rational::one()).0);
        assert!(asked(&q, &q, &Rational::one()).0);
    }
}
