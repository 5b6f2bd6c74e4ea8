//! Recursive rejection by falling level: what is left of the target over what is left of the
//! draft.

mod in_order;
mod laws;
mod limit;
mod strata;
mod symmetric;
#[cfg(test)]
mod tests;

pub(super) use limit::{ENTRY as LIMIT, iid_on_row};

use super::rule::EXACT_FORMULA_BITS;
use super::token_rule::of_row;
use super::{
    Acceptance, ConditionalLaw, Entry, Lossless, RowAnswer, RowRate, RowRule, RowRuleError,
    TokenRule, Verifier, VerifierError, VerifierName,
};
use crate::problem::Problem;
use crate::rule::RuleName;
use crate::scheme::{SchemeName, Straddle, Strata, Stratified, given, listed, ordered, passes};
use in_order::InOrder;
use laws::{LAWS, OF_STRATA};
pub(super) use laws::{straddle_of, stratified};
pub use limit::Level;
use specgap_number::distribution::{Draft, Rational, exact_value, token_id};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_plan::{LevelPasses, Levels, SYMMETRIC_LEVELS, SymmetricPasses};
use specgap_row::{Question, Row, RowError};
use std::sync::OnceLock;
use strata::Passes;
use symmetric::Symmetric;

/// The levels of `level-4`, as fractions.
const FOUR: [(u32, u32); 4] = [(4, 5), (1, 2), (1, 5), (0, 1)];

/// Most histories of drafts over cuts that are summed, times V.
const MOST_HISTORIES: f64 = 3e8;

/// A rule of a few passes over the drafts of one position: `level-4` for stratified and independent
/// drafts, and `rrs`, its form of one pass, for stratified ones.
///
/// # Strata
/// A turn of a stratum at level t gives out `min((R - t m)+/(1 - t), m)` of each token, where R
/// is what is left of p and m(x) = P(the stratum's draft is x and nothing is accepted yet). At
/// t = 0 that is rejection sampling. `level-4` has the levels .8, .5, .2 and 0, each over the
/// strata from the last to the first; `rrs` has level 0 alone. Under
/// [`Straddle::Once`], `rrs` takes drafts in order instead, each
/// against its law given the draft before, which an engine knows without sums over histories.
/// Behind the last turn the output is drawn from R; a certain token that comes out is a draft.
///
/// # I.i.d. drafts
/// Eight passes over all drafts at once, at the levels .8, .6, .45, .3, .15, 0, 0, 0 of
/// R/(n s^(n-1) Q), Q the mass of q whose clocks have not rung and s their sum; in each, clocks
/// ring at uniform moments, and the first to ring is accepted. Chances are floats; thinned, they
/// make a lossless rule whatever they are.
///
/// # Acceptance
/// 1 - the sum of R behind the last turn over all tokens that are not certain. Of independent
/// drafts never below alpha\* (1 - alpha\*/4), for one pass as for several
/// (`docs/theory/level-rule.md`, Theorem G). Where a token across a cut is drafted once, its turns
/// in two strata are apart, and the theorem does not hold: 11/15 of 1 are accepted in
/// `problems/refuted/slots-apart-below-three-quarters.toml`.
/// Of strata, algorithmic and membership acceptance are equal: at level 0 a token that is refused
/// has nothing left of p. Of i.i.d. drafts the last passes leave a little of both, so that
/// membership is above by at most what is stated.
///
/// # Exactness
/// Exact for up to [`MOST_EXACT_STRATA`] strata and a few i.i.d. drafts over small fractions: the
/// numbers of a pass are products of those of the passes before.
///
/// # Source
/// This project's (`docs/theory/level-rule.md`). One pass over independent laws is recursive
/// rejection (SpecInfer; Yang et al. 2024).
///
/// # Example
/// ```
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::{Straddle, Stratified};
/// use specgap_core::verifier::{VerifierName, verifier};
/// use specgap_number::distribution::{Draft, Target};
/// let q = Draft::new(&[0.25, 0.25, 0.25, 0.25])?;
/// let law = Stratified::new(q, 2, Straddle::Once);
/// let problem = Problem::new("quarters", Target::new(&[0.5, 0.25, 0.25, 0.0])?, law)?;
/// let rate = verifier(VerifierName::LEVEL_4, &problem)?.acceptance().membership;
/// assert_eq!(rate.value(), 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Staged {
    name: VerifierName,
    problem: Problem,
    float: OnceLock<Form<f64>>,
    exact: OnceLock<Form<Rational>>,
    /// Whether that is affordable: asked of every tuple.
    is_exact: OnceLock<bool>,
}

/// Of i.i.d. drafts.
const ROUNDED: &str = "chances of clocks are floats, and the last passes leave a little of p and q";

/// Most strata whose passes are computed exactly.
pub const MOST_EXACT_STRATA: usize = 4;

/// Most products a pass, over all tuples of i.i.d. drafts, that are computed exactly.
const MOST_EXACT_PRODUCTS: f64 = 10_000.0;

#[derive(Debug)]
enum Form<M: Number> {
    Passes(Passes<M>),
    InOrder(InOrder<M>),
    Symmetric(Symmetric<M>),
}

impl<M: Number> Form<M> {
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<M> {
        match self {
            Self::Passes(rule) => rule.conditional(tuple),
            Self::InOrder(rule) => rule.conditional(tuple),
            Self::Symmetric(rule) => rule.conditional(tuple),
        }
    }

    /// Returns how often a draft is accepted, and at most how often besides a draft is put out that
    /// was refused.
    fn rates(&self) -> [M; 2] {
        match self {
            Self::Passes(rule) => [rule.rejected.complement(), M::zero()],
            Self::InOrder(rule) => [rule.rejected().complement(), M::zero()],
            Self::Symmetric(rule) => [rule.rejected.complement(), rule.refused_draft.clone()],
        }
    }
}

impl Staged {
    /// `level-4`, of stratified or independent drafts.
    ///
    /// # Errors
    /// Any other scheme.
    pub fn four(problem: &Problem) -> Result<Self, VerifierError> {
        Self::of(VerifierName::LEVEL_4, LAWS, problem)
    }

    /// `rrs`, of stratified drafts.
    ///
    /// # Errors
    /// Any other scheme; drafts that straddle once, over so many cuts that their histories are too
    /// many.
    pub fn one(problem: &Problem) -> Result<Self, VerifierError> {
        let rule = Self::of(VerifierName::RRS, OF_STRATA, problem)?;
        let law = stratified(problem).filter(|_| problem.scheme().name() == SchemeName::STRATIFIED);
        let tuples = law.map_or(0.0, |law| law.histories());
        if tuples * problem.vocab() as f64 > MOST_HISTORIES {
            let verifier = VerifierName::RRS;
            return Err(VerifierError::TooMany(verifier, tuples));
        }
        Ok(rule)
    }

    fn of(
        name: VerifierName,
        laws: &[SchemeName],
        problem: &Problem,
    ) -> Result<Self, VerifierError> {
        if !laws.contains(&problem.scheme().name()) {
            return Err(VerifierError::scheme(name, problem));
        }
        Ok(Self {
            name,
            problem: problem.clone(),
            float: OnceLock::new(),
            exact: OnceLock::new(),
            is_exact: OnceLock::new(),
        })
    }

    fn form<M: Number>(
        &self,
        number: impl Fn(f64) -> M,
        strata: impl Fn(&Stratified) -> Strata<M>,
    ) -> Form<M> {
        let p = M::row(self.problem.target());
        let one_pass = self.name == VerifierName::RRS;
        let (certain, strata) = match stratified(&self.problem) {
            None if self.is_iid() => return self.symmetric(p, number),
            None => (Vec::new(), Strata::of_rows(self.rows())),
            Some(law) if one_pass && self.problem.scheme().name() == SchemeName::STRATIFIED => {
                return Form::InOrder(InOrder::new(p, &law, strata(&law)));
            }
            Some(law) => (law.certain().to_vec(), strata(&law)),
        };
        let level = |&(a, b): &(u32, u32)| M::fraction(&a.into(), &b.into());
        let levels: Vec<M> = FOUR.iter().map(level).collect();
        let levels = &levels[if one_pass { FOUR.len() - 1 } else { 0 }..];
        Form::Passes(Passes::new(p, &certain, &strata, levels))
    }

    fn is_iid(&self) -> bool {
        self.problem.scheme().name() == SchemeName::WITH_REPLACEMENT
    }

    /// The rows of independent drafts.
    fn rows<M: Number>(&self) -> Vec<Vec<M>> {
        let scheme = self.problem.scheme();
        let rows = (0..self.problem.drafts()).filter_map(|k| scheme.independent_draft(k));
        rows.map(|row| M::row(row)).collect()
    }

    fn symmetric<M: Number>(&self, p: Vec<M>, number: impl Fn(f64) -> M) -> Form<M> {
        let drafts = self.problem.drafts();
        let float = |row: &specgap_number::distribution::Distribution| row.probabilities().to_vec();
        let q = self.problem.scheme().draft().map(|q| (float(q), M::row(q)));
        let (float_q, q) = q.unwrap_or_default();
        let chances = symmetric::chances(&float(self.problem.target()), &float_q, drafts);
        let chances = chances
            .into_iter()
            .map(|pass| pass.into_iter().map(&number).collect())
            .collect();
        Form::Symmetric(Symmetric::new(&p, &q, drafts, chances))
    }

    fn float(&self) -> &Form<f64> {
        self.float
            .get_or_init(|| self.form(|x| x, |law| law.strata().clone()))
    }

    fn exact(&self) -> Option<&Form<Rational>> {
        let is_exact = || self.exact_cost() <= EXACT_FORMULA_BITS;
        (self.is_exact.get_or_init(is_exact)).then(|| self.exactly())
    }

    fn exactly(&self) -> &Form<Rational> {
        let number = |x: f64| exact_value(x).unwrap_or_default();
        let form = || self.form(number, |law| law.strata_exact().clone());
        self.exact.get_or_init(form)
    }

    /// The rate in `f64`, by passes at any vocabulary; `None` of drafts taken in order.
    fn enclosed(&self) -> Option<Known> {
        let (target, scheme) = (self.problem.target(), self.problem.scheme());
        let drafts = self.problem.drafts();
        let Some(draft) = scheme.draft() else {
            // What the rule of these rounded chances accepts: a turn multiplies a mass twice.
            let turns = (FOUR.len() * drafts + 16) as f64;
            let [rate, _] = self.float().rates();
            return Some(Known::rate_within(rate, 8.0 * turns * f64::EPSILON));
        };
        let Some(straddle) = straddle_of(scheme.name()) else {
            let passes = SymmetricPasses::solve(target, draft, drafts, &SYMMETRIC_LEVELS).ok()?;
            return Some(passes.acceptance_rate().clone());
        };
        let levels = match self.name == VerifierName::RRS {
            true if straddle == Straddle::Once => return None,
            true => Levels::ONE,
            false => Levels::FOUR,
        };
        let passes = LevelPasses::solve(target, draft, drafts, straddle, levels).ok()?;
        Some(passes.acceptance_rate().clone())
    }

    /// Bits of all numbers of an exact pass, about.
    fn exact_cost(&self) -> f64 {
        let (target, scheme) = (self.problem.target(), self.problem.scheme());
        let vocab = target.vocab() as f64;
        let own = |q: &Draft| q.exact_bits() as f64;
        let bits = scheme.draft().map_or_else(|| scheme.exact_bits(), own);
        let bits = target.exact_bits() as f64 + bits;
        let n = self.problem.drafts();
        if self.is_iid() {
            // A tuple's law takes n^2 products a pass.
            let tuples = vocab.powi(n as i32);
            if tuples * (n * n) as f64 > MOST_EXACT_PRODUCTS {
                return f64::INFINITY;
            }
            // Each pass adds the bits of a float to every number, n times to every price.
            let passes = SYMMETRIC_LEVELS.len() as f64;
            return n as f64 * (bits + passes * 60.0) * vocab * 10.0;
        }
        let k = stratified(&self.problem).map_or(n, |law| law.strata().strata().len());
        if k > MOST_EXACT_STRATA {
            return f64::INFINITY;
        }
        // Each turn's numbers are products of those of the k - 1 other strata.
        let growth = [1.0, 4.0, 16.0, 64.0, 256.0];
        bits * growth[k] * vocab
    }
}

impl Verifier for Staged {
    fn name(&self) -> VerifierName {
        self.name
    }

    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        self.float().conditional(tuple)
    }

    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        Some(self.exact()?.conditional(tuple))
    }

    fn acceptance(&self) -> Acceptance {
        if let Some(exact) = self.exact() {
            let [rate, besides] = exact.rates();
            if besides.is_nil() {
                return Acceptance::same(Known::exact(rate));
            }
            let value = rate.to_f64();
            return Acceptance {
                algorithmic: Known::exact(rate),
                membership: Known::rate(value, value, value + besides.to_f64() + f64::EPSILON),
                note: Some(ROUNDED.to_owned()),
            };
        }
        let [rate, besides] = self.float().rates();
        let algorithmic = self.enclosed().unwrap_or_else(|| {
            // Errors of what is left of p double with every draft at most.
            let error = 16.0 * f64::EPSILON * 4f64.powi(self.problem.drafts() as i32);
            Known::rate_within(rate, error)
        });
        if besides <= 0.0 {
            return Acceptance::same(algorithmic);
        }
        let most = algorithmic.upper() + besides + f64::EPSILON;
        Acceptance {
            membership: Known::rate(algorithmic.value(), algorithmic.lower(), most),
            algorithmic,
            note: Some(ROUNDED.to_owned()),
        }
    }

    fn has_rounded_parameter(&self) -> bool {
        self.is_iid()
    }

    fn steps_of_a_law(&self) -> [f64; 2] {
        let Some(Form::Passes(passes)) = self.exact() else {
            return [1.0; 2];
        };
        // Sums over tuples have the bits of all that is kept, which are many times those of p and q.
        let (target, scheme) = (self.problem.target(), self.problem.scheme());
        let own = scheme.exact_bits() + self.problem.drafts() as f64 * target.exact_bits() as f64;
        [1.0 + passes.bits() / own, 1.0]
    }

    fn handles_all_tokens(&self) -> bool {
        // What is left of p depends on the drafts, in this form alone.
        self.name == VerifierName::RRS && self.problem.scheme().name() == SchemeName::STRATIFIED
    }
}

/// What eight symmetric passes accept of i.i.d. drafts at a row, drafts that were refused and come out
/// of what is left included.
fn iid_on_row_of_four(row: &mut Row<'_>, drafts: usize) -> Result<RowAnswer, RowRuleError> {
    let passes = ordered(row, |p, q, _| {
        SymmetricPasses::solve(p, q, drafts.max(1), &SYMMETRIC_LEVELS)
    })??;
    let known = passes.acceptance_rate();
    let most = known.upper() + passes.refused_draft() + f64::EPSILON;
    Ok(Known::rate(known.value(), known.lower(), most).into())
}

/// The rate of four levels on a row; of i.i.d. drafts, of eight symmetric passes.
fn four_on_row(scheme: SchemeName) -> Option<RowRule> {
    if scheme == SchemeName::WITH_REPLACEMENT {
        // `level` accepts more, alpha*.
        return Some(RowRule {
            if_named: true,
            ..RowRule::always(RowRate::Planned(|row, drafts, _| {
                iid_on_row_of_four(row, drafts)
            }))
        });
    }
    if scheme == SchemeName::STRATIFIED {
        return Some(RowRule::of(Question {
            full: |row, drafts| passes(row, drafts, Straddle::Once, Levels::FOUR),
            // Half of alpha* is accepted of any law (docs/theory/level-rule.md, Theorem M).
            cut: |row, ask| {
                let [least, most] = listed(row, ask, Straddle::Once)?.optimum;
                Ok([0.5 * least, most])
            },
        }));
    }
    (scheme == SchemeName::STRATIFIED_INDEPENDENT).then_some(RowRule::of(Question {
        full: |row, drafts| passes(row, drafts, Straddle::Independent, Levels::FOUR),
        cut: |row, ask| Ok(listed(row, ask, Straddle::Independent)?.passes),
    }))
}

/// Returns what each draft accepts of a token, by passes over the strata.
fn strata_at_token(
    row: &mut Row<'_>,
    token: usize,
    drafts: usize,
    straddle: Straddle,
) -> Result<Vec<f64>, RowError> {
    let (p, _) = of_row(row, token);
    let mut masses = vec![0.0; drafts];
    for (slot, share) in given(row, token_id(token), p, drafts, straddle)? {
        if let Some(mass) = masses.get_mut(slot) {
            *mass = share * p;
        }
    }
    Ok(masses)
}

fn iid_at_token(row: &mut Row<'_>, y: usize, n: usize) -> Result<Vec<f64>, RowError> {
    let (p, _) = of_row(row, y);
    let drafts = n.max(1);
    let given = ordered(row, |target, draft, _| {
        let passes = SymmetricPasses::solve(target, draft, drafts, &SYMMETRIC_LEVELS).ok()?;
        Some(passes.given(token_id(y), p))
    })?;
    Ok(vec![p * given.unwrap_or(0.0) / drafts as f64; n])
}

fn exact_at_token(problem: &Problem, token: usize) -> Vec<Rational> {
    let p = problem.target().exact().probability(token);
    let drafts = problem.drafts();
    let masses = Staged::four(problem).ok().map(|rule| match rule.exactly() {
        Form::Passes(passes) => passes.masses(token_id(token), &p),
        Form::Symmetric(passes) => passes.masses(token, &p, drafts),
        Form::InOrder(_) => Vec::new(),
    });
    // Where the support is smaller than n, fewer are drafted.
    let mut masses = masses.unwrap_or_default();
    masses.resize(drafts, Rational::default());
    masses
}

/// `level-4` in the table of verifiers.
pub(super) const FOUR_LEVELS: Entry = Entry {
    rule: RuleName::LEVEL_4,
    acceptance: "1 - what is left of p outside the certain tokens behind the last pass",
    lossless: Lossless::Under(LAWS),
    build: |problem, _| Ok(Box::new(Staged::four(problem)?)),
    on_row: four_on_row,
    at_token: |scheme| {
        Ok(TokenRule {
            on_row: match straddle_of(scheme) {
                Some(Straddle::Once) => |row, y, n, _| strata_at_token(row, y, n, Straddle::Once),
                Some(Straddle::Independent) => {
                    |row, y, n, _| strata_at_token(row, y, n, Straddle::Independent)
                }
                None => |row, y, n, _| iid_at_token(row, y, n),
            },
            exact: exact_at_token,
            nested: false,
            sampled_from: None,
            on_lists: false,
        })
    },
    attains: |_| false,
    compared_with: &[VerifierName::LEVEL, VerifierName::RRS, VerifierName::GREEDY],
    by_default: true,
};
