//! Draft and target have their tokens from one noise.

pub(super) mod race;

use super::token_rule::{of_problem, of_row};
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowRule, RrsWoSettings, TokenRule, Verdict,
    Verifier, VerifierError, VerifierName, draft_of, looked_up, refused,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::SchemeName;
use race::Race;
use rand::{Rng, RngCore};
use specgap_number::distribution::{Distribution, Draft, Rational, Rows};
use specgap_number::known::Known;
use specgap_number::number::{Number, RunningSum, normalised};
use specgap_row::{Question, Row, RowError, SharedNoise};

/// Fractions of a rate times the bits of their sum, up to which it is summed in fractions.
pub(super) const EXACT_SUM_BITS: f64 = 2.5e7;

/// Tokens that are taken for a rate: each is a race of all others.
const MOST_TOKENS: usize = 256;

/// The same at one position of a log, and the width at which it ends.
const TOKENS_OF_A_ROW: usize = 48;
const WIDTH_OF_A_ROW: f64 = 1e-3;

/// Every token x has one number E_x ~ Exp(1), which draft and target share: the drafts are the n
/// tokens of least E_x/q_x, and the output is the token of least E_x/p_x. It is accepted if it
/// is a draft. Nobody needs a row of the other: the verifier looks whether its own token is among
/// the drafts, and a text is the one that the target writes alone with the same numbers.
///
/// Lossless whatever q is: the output does not depend on it. The drafts' law is
/// `without-replacement`. Tokens of q = 0 are no drafts; where fewer than n have q > 0, all of
/// them are.
///
/// # Acceptance
/// For an output y let l = p_y/q_y and a_j = (l q_j - p_j)+. Then
///
/// ```text
/// f_n(y) = integral over 0 < u < 1 of P(fewer than n of independent events of chance 1 - u^{a_j}),
/// f_n(y) = sum over sets T of fewer than n tokens with a_j > 0 of
///          (-1)^(n-1-|T|) C(m-1-|T|, n-1-|T|) / (1 + A - a(T)),
/// ```
///
/// m the number of such tokens, A the sum of their a_j, and 1 if m < n; the rate is the sum of
/// p_y f_n(y) over q_y > 0. For n = 1 it is the sum of `1 / sum over j of max(p_j/p_i, q_j/q_i)`, at
/// least (1-TV)/(1+TV). Proofs: `docs/theory/shared-noise.md`. Algorithmic and membership
/// acceptance are one by definition.
///
/// In fractions where these are few; else enclosed, by [`SharedNoise::rates`].
///
/// # Source
/// Gumbel-max: Maddison et al. 2014; the rule: trymirai/lalamo, pull request 209 (2026). One draft
/// and its bound: Daliri, Musco, Suresh, "Coupling without communication" (2024, 2025). The
/// formula for several drafts is specgap's.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithoutReplacement;
/// use specgap_core::verifier::{SharedGumbel, Verifier};
/// let scheme = WithoutReplacement::new(Draft::new(&[0.25, 0.75])?, 1);
/// let problem = Problem::new("coin", Target::new(&[0.5, 0.5])?, scheme)?;
/// // Of token 1 all, and of token 0 1 / (1 + 2 3/4 - 1/2).
/// assert_eq!(SharedGumbel::new(&problem)?.acceptance().membership.value(), 0.75);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedGumbel(OfNoise);

/// What both rules of noises are made of.
#[derive(Debug)]
pub(super) struct OfNoise {
    pub(super) problem: Problem,
    draft: Draft,
    /// At which the enclosure of a rate ends.
    pub(super) width: f64,
}

impl OfNoise {
    pub(super) fn new(
        problem: &Problem,
        law: SchemeName,
        verifier: VerifierName,
        settings: &RrsWoSettings,
    ) -> Result<Self, VerifierError> {
        Ok(Self {
            draft: draft_of(problem, law, verifier)?,
            problem: problem.clone(),
            width: settings.width,
        })
    }

    /// p and q in `f64`.
    pub(super) fn rows(&self) -> Rows<'_> {
        let target = self.problem.target().probabilities();
        Rows::new(target, self.draft.probabilities())
    }

    /// The last of some rates, where `f64` has every token of q.
    pub(super) fn last_of(&self, rates: &[Known]) -> Known {
        match rates.last() {
            // Tokens that `f64` takes for none may be all that is left to draw.
            Some(rate) if least(&self.draft) > 0.0 => rate.clone(),
            _ => Known::rate(0.5, 0.0, 1.0),
        }
    }

    fn bits(&self) -> f64 {
        (self.problem.target().exact_bits() + self.draft.exact_bits()) as f64
    }

    /// The sum over outputs of p_y and what `kept` says of them, in fractions where a sum of so many
    /// `terms` a token is not too much; else `enclosed`.
    pub(super) fn acceptance(
        &self,
        terms: f64,
        kept: impl Fn(&[Rational], &[Rational], usize) -> Option<Rational>,
        enclosed: impl FnOnce() -> Known,
    ) -> Acceptance {
        let terms = self.problem.vocab() as f64 * terms;
        if terms * terms * self.bits() > EXACT_SUM_BITS {
            return Acceptance::same(enclosed());
        }
        let (p, q) = of_problem(&self.problem);
        let mut rate = Rational::zero();
        for (token, p_token) in p.iter().enumerate() {
            if let Some(kept) = kept(&p, &q, token) {
                rate.gain(&p_token.times(&kept));
            }
        }
        Acceptance::same(Known::exact(rate))
    }
}

impl SharedGumbel {
    /// Makes one for `without-replacement` drafts.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn new(problem: &Problem) -> Result<Self, VerifierError> {
        Self::with_settings(problem, &RrsWoSettings::default())
    }

    /// The same with a width at which the enclosure of a rate ends.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn with_settings(
        problem: &Problem,
        settings: &RrsWoSettings,
    ) -> Result<Self, VerifierError> {
        let (law, rule) = (SchemeName::WITHOUT_REPLACEMENT, VerifierName::SHARED_GUMBEL);
        Ok(Self(OfNoise::new(problem, law, rule, settings)?))
    }

    /// The rate in `f64`, with its bounds.
    pub(super) fn enclosed(&self) -> Known {
        let OfNoise { problem, width, .. } = &self.0;
        let mut noise = SharedNoise::new(self.0.rows());
        let rates = noise.rates(problem.drafts(), *width, MOST_TOKENS);
        self.0.last_of(&rates)
    }

    /// The law given a tuple, in fractions.
    fn law(&self, tuple: &[u32]) -> ConditionalLaw<Rational> {
        let (p, q) = of_problem(&self.0.problem);
        let masses = Race::new(&p, &q, tuple).map(|race| race.masses(&p));
        of_masses(p, tuple, masses)
    }
}

/// The law given a tuple, by P(each output, the tuple); that of a draw from p where it is never drawn.
/// A token that is drafted twice is its first draft.
pub(super) fn of_masses<M: Number>(
    p: Vec<M>,
    tuple: &[u32],
    masses: Option<Vec<M>>,
) -> ConditionalLaw<M> {
    let masses = masses.and_then(|masses| normalised(&masses));
    let Some(mut masses) = masses else {
        return ConditionalLaw {
            accepted: vec![M::zero(); tuple.len()],
            rejected: M::one(),
            residual: p.into(),
        };
    };
    let take = |&token: &u32| std::mem::replace(&mut masses[token as usize], M::zero());
    let accepted = tuple.iter().map(take).collect();
    ConditionalLaw {
        accepted,
        rejected: M::total(&masses),
        residual: normalised(&masses).unwrap_or(p).into(),
    }
}

/// Draws the noise given the tuple that it gave, and returns the output with its E/p: the drafts
/// rang one after the other, at the rates that were left, and the others after all of them.
pub(super) fn output_of_noise(
    rows: Rows<'_>,
    tuple: &[u32],
    rng: &mut dyn RngCore,
) -> (f64, Option<usize>) {
    let (p, q) = (rows.target, rows.draft);
    let mut exponential = || -(-rng.random::<f64>()).ln_1p();
    let mut left = q.to_vec();
    let (mut time, mut first) = (0.0, (f64::INFINITY, None));
    for &token in tuple {
        let token = token as usize;
        time += exponential() / f64::total(&left);
        left[token] = 0.0;
        let clock = q[token] * time / p[token];
        if clock < first.0 {
            first = (clock, Some(token));
        }
    }
    for (token, (&p, &q)) in p.iter().zip(q).enumerate() {
        if p <= 0.0 || tuple.iter().any(|&draft| draft as usize == token) {
            continue;
        }
        let since = if q > 0.0 { q * time } else { 0.0 };
        let clock = (since + exponential()) / p;
        if clock < first.0 {
            first = (clock, Some(token));
        }
    }
    first
}

/// Which draft an output is; a draw from p for drafts that the law never draws.
pub(super) fn verdict(
    output: Option<usize>,
    p: &[f64],
    tuple: &[u32],
    rng: &mut dyn RngCore,
) -> Verdict {
    match output {
        Some(token) => looked_up(specgap_number::distribution::token_id(token), tuple),
        None => refused(p, rng),
    }
}

fn least(row: &Distribution) -> f64 {
    let all = row.probabilities().iter().enumerate();
    let positive = all.filter(|(token, _)| row.is_positive(*token));
    positive.fold(1.0, |least, (_, &mass)| least.min(mass))
}

/// P(fewer than n of the events happen) given an output, for n = 1, .., `drafts`.
fn among<M: Number>(p: &[M], q: &[M], token: usize, drafts: usize) -> Vec<M> {
    if q[token].is_nil() || p[token].is_nil() {
        return vec![M::zero(); drafts];
    }
    let ratio = p[token].over(&q[token]);
    let excess = p.iter().zip(q).map(|(p, q)| ratio.times(q).excess_over(p));
    let rates: Vec<M> = excess.filter(|rate| !rate.is_nil()).collect();
    let whole = M::one().plus(&M::total(&rates));
    // Sums of 1/(1 + A - a(T)), by the size of T.
    let mut by_size = vec![M::Sum::default(); drafts.min(rates.len() + 1)];
    add_sets(&rates, &whole, 0, &mut by_size);
    let by_size: Vec<M> = by_size.iter().map(RunningSum::value).collect();
    let fewer = |n: usize| {
        if rates.len() < n {
            return M::one();
        }
        let (mut plus, mut minus) = (M::zero(), M::zero());
        // C(m-1-|T|, n-1-|T|), from |T| = n-1 down.
        let mut ways = M::one();
        for size in (0..n).rev() {
            let is_even = (n - 1 - size).is_multiple_of(2);
            let side = if is_even { &mut plus } else { &mut minus };
            side.gain(&ways.times(&by_size[size]));
            let (above, below) = (rates.len() - size, n - size);
            ways = ways.times(&M::fraction(&above.into(), &below.into()));
        }
        plus.minus(&minus)
    };
    (1..=drafts).map(fewer).collect()
}

/// Adds 1/`rest` to the sets of `size`, and goes on with each of the rates taken off it.
fn add_sets<M: Number>(rates: &[M], rest: &M, size: usize, sums: &mut [M::Sum]) {
    let Some(sum) = sums.get_mut(size) else {
        return;
    };
    sum.add(&M::one().over(rest));
    if size + 1 < sums.len() {
        for (index, rate) in rates.iter().enumerate() {
            add_sets(&rates[index + 1..], &rest.minus(rate), size + 1, sums);
        }
    }
}

impl Verifier for SharedGumbel {
    fn name(&self) -> VerifierName {
        VerifierName::SHARED_GUMBEL
    }

    /// In fractions, rounded at the end.
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let law = self.law(tuple);
        let to_f64 = |row: &[Rational]| row.iter().map(Number::to_f64).collect::<Vec<f64>>();
        ConditionalLaw {
            accepted: to_f64(&law.accepted),
            rejected: law.rejected.to_f64(),
            residual: to_f64(&law.residual).into(),
        }
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        Some(self.law(tuple))
    }

    /// Draws the noise given the drafts. O(nV).
    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        let (_, output) = output_of_noise(self.0.rows(), tuple, rng);
        verdict(output, self.0.rows().target, tuple, rng)
    }

    fn acceptance(&self) -> Acceptance {
        let (vocab, drafts) = (self.0.problem.vocab(), self.0.problem.drafts());
        let kept = |p: &[_], q: &[_], token| among(p, q, token, drafts).pop();
        let enclosed = || self.enclosed();
        self.0
            .acceptance(subsets(vocab, drafts - 1), kept, enclosed)
    }

    fn handles_all_tokens(&self) -> bool {
        true
    }

    fn steps_of_a_law(&self) -> [f64; 2] {
        let (vocab, drafts) = (self.0.problem.vocab(), self.0.problem.drafts());
        // `f64` may not hold the tuples of a law.
        let bits = if least(&self.0.draft) > 0.0 {
            self.0.bits()
        } else {
            f64::INFINITY
        };
        let terms = subsets(vocab + drafts, drafts);
        // Sums of fractions that have little in common take longer than the fractions.
        [terms, 0.5 * bits * (vocab * vocab) as f64]
    }
}

/// About how many sets of up to so many tokens there are.
pub(super) fn subsets(vocab: usize, most: usize) -> f64 {
    let (mut count, mut all) = (1.0, 1.0);
    for size in 1..=most.min(vocab) {
        count *= (vocab + 1 - size) as f64 / size as f64;
        all += count;
    }
    all
}

const AT_TOKEN: TokenRule = TokenRule {
    on_row: |row, token, drafts, _| {
        let (p, _) = of_row(row, token);
        let ranks = row.shared_noise_at(token, drafts);
        Ok(ranks.into_iter().map(|rank| p * rank).collect())
    },
    exact: |problem, token| {
        let (p, q) = of_problem(problem);
        let mut before = Rational::zero();
        let fewer = among(&p, &q, token, problem.drafts()).into_iter();
        let ranks = fewer.map(|fewer| {
            let rank = p[token].times(&fewer.minus(&before));
            before = fewer;
            rank
        });
        ranks.collect()
    },
    nested: true,
    sampled_from: None,
    on_lists: false,
};

fn on_row(row: &mut Row<'_>, drafts: usize) -> Result<Known, RowError> {
    Ok(row.shared_noise(drafts, WIDTH_OF_A_ROW, TOKENS_OF_A_ROW))
}

/// [`SharedGumbel`] in the table of verifiers.
pub const ENTRY: Entry = Entry {
    rule: RuleName::SHARED_GUMBEL,
    acceptance: "sum of p_y times the integral over u of P(fewer than n of independent events of \
        chance 1 - u^((q_j p_y/q_y - p_j)+))",
    lossless: Lossless::Under(&[SchemeName::WITHOUT_REPLACEMENT]),
    build: |problem, settings| Ok(Box::new(SharedGumbel::with_settings(problem, settings)?)),
    on_row: |_| {
        Some(RowRule::of(Question {
            full: on_row,
            cut: |row, ask| row.one_noise(ask, on_row),
        }))
    },
    at_token: |_| Ok(AT_TOKEN),
    attains: |_| false,
    compared_with: &[VerifierName::RRS_WO],
    by_default: false,
};
