//! SpecTr's k-SEQ.

use super::residual::keep;
use super::single::EXACT_FORMULA_BITS;
use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, TokenRule, Verdict, Verifier,
    VerifierError, VerifierName, draw, happens, sequential,
};
use crate::distribution::{Draft, Rational, exact_value, round_nearest};
use crate::known::Known;
use crate::number::{Number, RunningSum, normalised};
use crate::problem::Problem;
use crate::row::{Question, Row, RowError, residual_error};
use crate::scheme::SchemeName;
use rand::RngCore;
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
/// rho* is irrational in general. [`KSeq::new`] takes an `f64` at or just above
/// it; the rule with that dyadic factor is rational, and its output law is p
/// exactly. Its acceptance is below that of rho* by about 1e-16.
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
/// use specgap::distribution::{Draft, Target};
/// use specgap::problem::Problem;
/// use specgap::scheme::WithReplacement;
/// use specgap::verifier::{KSeq, Verifier};
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
    /// Whether the factor is at or above the root in exact arithmetic.
    is_checked: bool,
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

/// min(p/rho, q) = min(p, rho q)/rho.
fn rule<M: Number>(target: &[M], draft: &[M], factor: &M, drafts: usize) -> Rule<M> {
    let offered: Vec<M> = draft.iter().map(|q| factor.times(q)).collect();
    let taken: Vec<M> = target
        .iter()
        .zip(&offered)
        .map(|(p, offer)| p.smaller(offer).over(factor))
        .collect();
    let one_draft = M::total(&taken);
    let share = repeats(&one_draft, drafts);
    let left: Vec<M> = target
        .iter()
        .zip(&taken)
        .map(|(p, taken)| p.excess_over(&share.times(taken)))
        .collect();
    // Nothing left means that nothing is ever rejected, up to rounding.
    let residual = normalised(&left).unwrap_or_else(|| target.to_vec()).into();
    Rule {
        wanted: target.to_vec(),
        offered,
        residual,
        one_draft,
    }
}

/// c = sum over k < n of (1-b)^k.
fn repeats<M: Number>(one_draft: &M, drafts: usize) -> M {
    let miss = one_draft.complement();
    let mut power = M::one();
    let mut sum = M::Sum::default();
    for _ in 0..drafts {
        sum.add(&power);
        power = power.times(&miss);
    }
    sum.value()
}

/// Sum of min(p, rho q).
fn covered<M: Number>(target: &[M], draft: &[M], factor: &M) -> M {
    let mut sum = M::Sum::default();
    for (p, q) in target.iter().zip(draft) {
        sum.add(&p.smaller(&factor.times(q)));
    }
    sum.value()
}

/// Whether the residual is non-negative: c <= rho, or nothing is accepted.
fn is_lossless<M: Number>(target: &[M], draft: &[M], factor: &M, drafts: usize) -> bool {
    let covered = covered(target, draft, factor);
    covered.is_nil() || &repeats(&covered.over(factor), drafts) <= factor
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

impl KSeq {
    /// With the smallest lossless `f64` factor: the root rho*, rounded up.
    ///
    /// Whether the factor is at or above the root is decided exactly where the
    /// exact test is affordable, else in compensated `f64` (and then the residual
    /// may be cut at zero by a rounding error of about 1e-16). O(V) an evaluation,
    /// some 60 of them.
    ///
    /// # Errors
    /// The drafts are not `with-replacement`.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        let draft = Self::draft_of(problem)?;
        let drafts = problem.drafts();
        let mut factor = Self::float_root(problem, &draft);
        let is_checked = Self::exact_bits(problem, &draft) <= EXACT_FORMULA_BITS;
        if is_checked {
            let (p, q) = (Rational::row(problem.target()), Rational::row(&draft));
            let test = |factor: f64| {
                exact_value(factor).is_some_and(|factor| is_lossless(&p, &q, &factor, drafts))
            };
            // Rounding moved the float root by a few units in the last place.
            let mut step = 1u64;
            while !test(factor) && factor < drafts as f64 {
                let next = f64::from_bits(factor.to_bits().saturating_add(step));
                factor = next.min(drafts as f64);
                step *= 2;
            }
        }
        let exact = exact_value(factor).unwrap_or_else(Rational::one);
        Ok(Self::build(problem, draft, exact, is_checked))
    }

    fn float_root(problem: &Problem, draft: &Draft) -> f64 {
        let (p, q) = (problem.target().probabilities(), draft.probabilities());
        let drafts = problem.drafts();
        bisect(drafts, |factor| is_lossless(p, q, &factor, drafts))
    }

    /// With a factor of one's own.
    ///
    /// # Errors
    /// The drafts are not `with-replacement`, or the factor is below the root,
    /// where the rule would not be lossless. Decided exactly.
    pub fn with_factor(problem: &Problem, factor: Rational) -> Result<Self, VerifierError> {
        let draft = Self::draft_of(problem)?;
        let (p, q) = (Rational::row(problem.target()), Rational::row(&draft));
        let positive = factor > Rational::zero();
        if !positive || !is_lossless(&p, &q, &factor, problem.drafts()) {
            return Err(VerifierError::Factor {
                factor: round_nearest(&factor),
                least: Self::new(problem)?.float_factor,
            });
        }
        Ok(Self::build(problem, draft, factor, true))
    }

    fn draft_of(problem: &Problem) -> Result<Draft, VerifierError> {
        match problem.scheme().draft() {
            Some(draft) if problem.scheme().name() == SchemeName::WITH_REPLACEMENT => {
                Ok(draft.clone())
            }
            _ => Err(VerifierError::scheme(VerifierName::K_SEQ, problem)),
        }
    }

    fn build(problem: &Problem, draft: Draft, factor: Rational, is_checked: bool) -> Self {
        Self {
            problem: problem.clone(),
            draft,
            float_factor: round_nearest(&factor),
            factor,
            is_checked,
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

    /// rho, exactly.
    pub fn exact_factor(&self) -> &Rational {
        &self.factor
    }

    /// The rates in `f64`.
    pub(super) fn enclosed(&self) -> Acceptance {
        let drafts = self.problem.drafts();
        let note = Some(format!("rho = {}", self.float_factor));
        let float = self.float();
        let none_log = drafts as f64 * (-float.one_draft.min(1.0)).ln_1p();
        let algorithmic = -none_log.exp_m1();
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

    fn float(&self) -> &Rule<f64> {
        self.float.get_or_init(|| {
            let (p, q) = (
                self.problem.target().probabilities(),
                self.draft.probabilities(),
            );
            rule(p, q, &self.float_factor, self.problem.drafts())
        })
    }

    fn exact(&self) -> &Rule<Rational> {
        self.exact.get_or_init(|| {
            let (p, q) = (
                Rational::row(self.problem.target()),
                Rational::row(&self.draft),
            );
            rule(&p, &q, &self.factor, self.problem.drafts())
        })
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
        for ((p, offer), residual) in self
            .wanted
            .iter()
            .zip(&self.offered)
            .zip(self.residual.iter())
        {
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
    fn name(&self) -> VerifierName {
        VerifierName::K_SEQ
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        self.float().conditional(tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        Some(self.exact().conditional(tuple))
    }

    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let float = self.float();
        for (position, &token) in tuple.iter().enumerate() {
            if happens(float.keeps(token), rng) {
                return Verdict {
                    token,
                    accepted: Some(position),
                };
            }
        }
        Verdict {
            token: draw(&float.residual, rng),
            accepted: None,
        }
    }

    fn has_rounded_parameter(&self) -> bool {
        true
    }

    fn has_unchecked_parameter(&self) -> bool {
        !self.is_checked
    }

    fn acceptance(&self) -> Acceptance {
        let drafts = self.problem.drafts();
        let note = Some(format!("rho = {}", self.float_factor));
        if Self::exact_bits(&self.problem, &self.draft) <= EXACT_FORMULA_BITS {
            let exact = self.exact();
            let miss = Rational::one() - &exact.one_draft;
            let none = (0..drafts).fold(Rational::one(), |power, _| power * &miss);
            let algorithmic = Rational::one() - none;
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
    let accepted = |factor: f64, mass: f64| {
        let one_draft = ((1.0 - mass).clamp(0.0, 1.0) / factor).min(1.0);
        -(drafts as f64 * (-one_draft).ln_1p()).exp_m1()
    };
    let (root, mass) = row.turning_factor(1.0, drafts as f64, |factor, mass| {
        1.0 - mass < accepted(factor, mass)
    });
    // The crossing of two curves is off by no more than the worse of them.
    Ok(Known::rate_within(
        accepted(root, mass),
        residual_error(drafts),
    ))
}

/// rho and b of a row.
fn root_of(row: &mut Row<'_>, drafts: usize) -> (f64, f64) {
    let one_draft = |factor: f64, mass: f64| ((1.0 - mass).clamp(0.0, 1.0) / factor).min(1.0);
    let (root, mass) = row.turning_factor(1.0, drafts as f64, |factor, mass| {
        let miss = -(drafts as f64 * (-one_draft(factor, mass)).ln_1p()).exp_m1();
        1.0 - mass < miss
    });
    (root, one_draft(root, mass))
}

/// What each draft accepts of a token: (1-b)^k min(p, rho q)/rho.
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
        masses(
            &p[token],
            &q[token],
            &rule.factor,
            one_draft,
            problem.drafts(),
        )
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

impl VerifierName {
    /// [`KSeq`]
    pub const K_SEQ: Self = Self(&ENTRY);
}

/// [`KSeq`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    name: "k-seq",
    words: "keep each draft with min(1, p/(rho q)), rho the same for all",
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

    #[test]
    fn bisection_ends_at_the_first_number_that_passes() {
        for root in [1.0, 1.0f64.next_up(), 1.7, 2.5, 3.0f64.next_down(), 3.0] {
            let mut tried = 0;
            let found = bisect(3, |factor| {
                tried += 1;
                factor >= root
            });
            assert_eq!(found, root);
            assert!(tried < 60, "{root}: {tried}");
        }
        assert_eq!(bisect(1, |factor| factor >= 1.0), 1.0);
    }

    /// c = 1 + (1-b) + (1-b)^2 is to be at most rho, with b = sum of min(p/rho, q).
    #[test]
    fn factors_are_lossless_from_the_root_on() {
        // b = 1/2 up to rho = 2: c = 7/4.
        let (p, q) = ([1.0, 0.0], [0.5, 0.5]);
        for (factor, expected) in [
            (1.75f64, true),
            (1.75f64.next_down(), false),
            (1.0, false),
            (3.0, true),
        ] {
            assert_eq!(is_lossless(&p, &q, &factor, 3), expected, "{factor}");
        }
        assert_eq!(repeats(&0.5, 3), 1.75);
        assert_eq!(covered(&[0.5, 0.5], &[0.75, 0.25], &1.5), 0.875);
        // Nothing in common: nothing is accepted, and nothing can be lost.
        assert!(is_lossless(&[1.0, 0.0], &[0.0, 1.0], &1.0, 3));
    }
}
