//! Results as JSON: each field with what it is, its type and where it comes from, in one place.

use super::block::{BlockEvaluation, BlockLaw, BlockVerification, OptimumMethod};
use super::expectation::Expectation;
use super::method::MethodRun;
use super::proof::Basis;
use super::rule::RuleVerification;
use super::solve::{SiblingLaw, Solution};
use super::verify::{Assessment, Measured, Verification};
use super::{Agreement, Evaluated};
use crate::block::lemma_5_1_status;
use serde::{Serialize, Serializer};
use specgap_core::certify::Residuals;
use specgap_core::lp::BackendName;
use specgap_core::scheme::SchemeName;
use specgap_number::distribution::format_rational;
use specgap_number::known::{Kind, Known, Sampling};

/// Version of the JSON that commands print.
pub const JSON_SCHEMA: u32 = 1;

/// The fraction of an exact number.
fn fraction(number: &Known) -> Option<String> {
    number.rational().map(format_rational)
}

/// A bound, where there is one.
fn finite(bound: f64) -> Option<f64> {
    Some(bound).filter(|bound| bound.is_finite())
}

/// An object, and how it is made of results: `"words" field: type = value`. A field with a question
/// mark is left out where its value is `None`.
macro_rules! object {
    (
        $(#[$about:meta])*
        $public:vis struct $name:ident $(<$life:lifetime>)? ($($of:ident: $result:ty),*)
        $(let $local:pat = $init:expr;)*
        {
            $(
                $($words:literal)?
                $(#[$meta:meta])*
                $field:ident $(?: $some:ty)? $(: $type:ty)? = $value:expr,
            )*
        }
    ) => {
        #[derive(Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $(#[$about])*
        $public struct $name $(<$life>)? {$(
            $(#[doc = $words])?
            $(#[$meta])*
            $(#[serde(skip_serializing_if = "Option::is_none")] $field: Option<$some>)?
            $($field: $type)?,
        )*}

        impl $(<$life>)? $name $(<$life>)? {
            /// Takes what is written of it.
            $public fn of($($of: $result),*) -> Self {
                $(let $local = $init;)*
                Self { $($field: $value),* }
            }
        }
    };
}

macro_rules! written {
    ($($result:ident as $json:ident),*) => {$(
        impl Serialize for $result {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $json::of(self).serialize(serializer)
            }
        }
    )*};
}

written!(
    Solution as Solve,
    Verification as Verify,
    BlockEvaluation as Block
);

object! {
    /// A problem of a folder that the command does not take.
    pub struct NotTaken<'a>(name: &'a str, why: &'a str) {
        "1." schema: u32 = JSON_SCHEMA,
        "The problem's name." problem: &'a str = name,
        "`skipped`." status: &'a str = "skipped",
        "Why." reason: &'a str = why,
    }
}

object! {
    /// A number with the bounds that hold it, and its fraction if it is exact.
    struct Rate(rate: &Known) {
        "The nearest floating-point number." value: f64 = rate.value(),
        #[serde(flatten)]
        ends: Ends = Ends::of(rate),
    }
}

object! {
    struct Ends(rate: &Known) {
        "A lower bound." lower: Option<f64> = finite(rate.lower()),
        "An upper bound." upper: Option<f64> = finite(rate.upper()),
        "The fraction, if it is exact." exact: Option<String> = fraction(rate),
    }
}

object! {
    struct Asked<'a>(name: &'a str, law: SchemeName, sizes: [usize; 2])
    let [v, n] = sizes;
    {
        "1." schema: u32 = JSON_SCHEMA,
        "The problem's name." problem: &'a str = name,
        "The draft law." scheme: &'static str = law.as_str(),
        "V." vocab: usize = v,
        "n." drafts: usize = n,
    }
}

object! {
    /// alpha* of a problem by every method.
    pub struct Solve<'a>(solution: &'a Solution)
    let rate = &solution.optimal_acceptance_rate;
    {
        #[serde(flatten)]
        asked: Asked<'a> = Asked::of(&solution.problem, solution.scheme, [solution.vocab, solution.drafts]),
        "alpha*." optimal_acceptance_rate: Rate = Rate::of(rate),
        "Every method, run or skipped."
        methods: Vec<Method<'a>> = solution.methods.iter().map(Method::of).collect(),
        "Why alpha* is what it is." certificate: Certificate<'a> = Certificate::of(solution),
        "Whether the methods agree." agreement: &'a Agreement = &solution.agreement,
        "What is left open of alpha* where no method that would answer fits, if it is."
        limit?: &'a str = solution.limit.as_deref(),
        "Whether the problem file's expectation is met."
        expected?: ExpectedOptimum<'a> = solution.expected.as_ref().map(ExpectedOptimum::of),
        "For the two laws of different drafts, the other one's optimum."
        other_law_without_replacement?: Sibling =
            solution.sibling.as_ref().map(|sibling| Sibling::of(sibling, rate)),
        "Everything agrees and is as expected." ok: bool = solution.is_ok(),
    }
}

object! {
    /// A method on a problem.
    #[serde(rename = "MethodRun")]
    struct Method<'a>(run: &'a MethodRun)
    let answer = run.outcome.shown();
    let rigorous = answer.filter(|_| run.backend.is_none());
    {
        "Its name." name: &'static str = run.method.as_str(),
        "The solver of a linear program. minilp gives no multipliers, so that the answer of the \
         dual program stands in for them."
        backend?: &'static str = run.backend.map(BackendName::as_str),
        "What it found." value: Option<f64> = answer.map(|answer| answer.rate.value()),
        #[serde(flatten)]
        bounds: Option<Bounds> = rigorous.map(|answer| Bounds::of(&answer.rate)),
        "Wall-clock seconds." seconds: f64 = run.seconds,
        "How it ended: `optimal`, `imprecise`, `unsolved` or `skipped`."
        status: &'static str = run.outcome.status(),
        "Why there is no answer." reason?: &'a str = run.outcome.reason(),
        #[serde(flatten)]
        residuals: Option<Residuals> = answer.and_then(|answer| answer.residuals),
        "The tokens H that it found."
        subset?: &'a [usize] = answer.and_then(|answer| answer.subset.as_deref()),
        "A remark." note?: &'a str = answer.and_then(|answer| answer.note.as_deref()),
    }
}

object! {
    struct Bounds(rate: &Known) {
        "A rigorous lower bound, if there is one." lower: Option<f64> = finite(rate.lower()),
        "A rigorous upper bound, if there is one." upper: Option<f64> = finite(rate.upper()),
        "The fraction, if it is exact." exact?: String = fraction(rate),
    }
}

object! {
    /// The proof in short.
    struct Certificate<'a>(solution: &'a Solution)
    let proof = &solution.proof;
    let exact = solution.optimal_acceptance_rate.rational();
    {
        "H, ascending." subset: &'a [usize] = &proof.subset,
        "Whether an exact flow equals an exact cut."
        flow_equals_cut: bool = proof.basis == Basis::FlowEqualsCut && exact.is_some(),
        "What the proof rests on." basis: &'static str = proof.basis.as_str(),
        "P(H)." target_mass: f64 = proof.target_mass,
        "Q(H)." inside: f64 = proof.inside,
        "The proof in words." statement: String = solution.statement(),
    }
}

object! {
    /// What the problem file expects of alpha*.
    struct ExpectedOptimum<'a>(expected: &'a Expectation) {
        "Whether it is met." ok: bool = expected.is_ok(),
        "The value as the file writes it." optimal_acceptance_rate: &'a str = &expected.expected,
        "The largest difference that is allowed." tolerance: f64 = expected.tolerance,
        "Where the value comes from." source: Option<&'a str> = expected.source.as_deref(),
        "What is wrong, if anything is." complaint: Option<&'a str> = expected.complaint.as_deref(),
    }
}

object! {
    /// The other law of different drafts.
    struct Sibling(sibling: &SiblingLaw, rate: &Known) {
        "Its name." scheme: &'static str = sibling.scheme.as_str(),
        "Its alpha*." optimal_acceptance_rate: Rate = Rate::of(&sibling.rate),
        "Its alpha* less the problem's." difference: f64 = sibling.rate.value() - rate.value(),
    }
}

object! {
    /// Every verifier on a problem.
    pub struct Verify<'a>(found: &'a Verification)
    let verifiers = found.verifiers.iter();
    let verifier = |one: &'a Assessment| Verifier::of(one, found.is_unmet(one.name));
    {
        #[serde(flatten)]
        asked: Asked<'a> = Asked::of(&found.problem, found.scheme, [found.vocab, found.drafts]),
        "alpha*, if it was found."
        optimal_acceptance_rate: Option<Rate> = found.optimum.as_ref().ok().map(Rate::of),
        "Why it was not." optimal_acceptance_rate_reason?: &'a str =
            found.optimum.as_ref().err().map(String::as_str),
        "Every verifier, measured or skipped."
        verifiers: Vec<Verifier<'a>> = verifiers.map(verifier).collect(),
        "The rule that the file tabulates." rule?: Rule<'a> = found.rule.as_ref().map(Rule::of),
        "Nothing was refuted, and every expectation of the file is met." ok: bool = found.is_ok(),
    }
}

object! {
    /// A verifier, or why it was not run.
    #[serde(rename = "Measured")]
    struct Verifier<'a>(one: &'a Assessment, unmet: bool)
    let law = one.outcome.done();
    {
        "The verifier." name: &'static str = one.name.as_str(),
        "`measured` or `skipped`." status: &'static str = one.outcome.status(),
        #[serde(flatten)]
        law: Option<Law<'a>> = law.map(|law| Law::of(law)),
        "Why it was not measured: it is lossless under another draft law only, or too large."
        reason?: &'a str = one.outcome.reason(),
        "The file expects a rate of a verifier that was not run."
        expectation_unmet?: bool = (unmet && law.is_none()).then_some(true),
    }
}

object! {
    struct Law<'a>(law: &'a Measured)
    let rate = &law.membership;
    let variation = law.total_variation.as_ref();
    {
        "How often a draft is accepted by the algorithm."
        algorithmic_acceptance: f64 = law.algorithmic.value(),
        "How often the output is one of the drafts." membership_acceptance: f64 = rate.value(),
        "How well the membership acceptance is known." kind: Kind = rate.kind(),
        #[serde(flatten)]
        ends: Ends = Ends::of(rate),
        "How a rate by simulation came about." monte_carlo?: &'a Sampling = rate.sampling(),
        "alpha* less the membership acceptance."
        gap: Option<f64> = law.gap.as_ref().map(Known::value),
        "Of the output's law to the target's."
        total_variation: Option<f64> = variation.ok().map(|v| v.value),
        "Whether that was summed in exact arithmetic."
        total_variation_exact: bool = variation.is_ok_and(|v| v.exact.is_some()),
        "Why it was not summed."
        total_variation_reason?: &'a str = variation.err().map(String::as_str),
        "The token that is farthest off."
        worst_token: Option<usize> = variation.ok().and_then(|v| v.worst_token),
        "Total variation 0: exactly, or within 1e-11 in floating point."
        lossless: Option<bool> = law.lossless,
        "Above alpha* beyond all error bounds, which no correct program can be."
        exceeds_optimum: bool = law.exceeds_optimum,
        "Whether formula and enumeration agree." formula_agrees: Option<bool> = law.formula_agrees,
        "What the file expects."
        expected?: ExpectedRate = law.expected.as_ref().map(ExpectedRate::of),
        "What a reader must know about the numbers." note?: &'a str = law.note.as_deref(),
        "Nothing was refuted, and the expectation of the file is met." ok: bool = law.is_ok(),
    }
}

object! {
    /// What the problem file expects of a verifier.
    struct ExpectedRate(expected: &Expectation) {
        "The value." membership_acceptance: f64 = expected.value,
        "The largest difference that is allowed; at least 1e-12 for a rate that is not exact."
        tolerance: f64 = expected.tolerance,
        "How far the expected value lies outside the bounds."
        difference: Option<f64> = finite(expected.difference),
        "Whether it is met." ok: bool = expected.is_ok(),
    }
}

object! {
    /// A rule that a problem file tabulates.
    struct Rule<'a>(rule: &'a RuleVerification)
    {
        "What the file calls it." name: &'a str = &rule.name,
        "How often the output is one of the drafts."
        membership_acceptance: f64 = rule.membership.value(),
        #[serde(flatten)]
        ends: Ends = Ends::of(&rule.membership),
        "alpha* less that; below 0 if it accepts more than a lossless rule can."
        gap: Option<f64> = rule.gap.as_ref().map(Known::value),
        "Of the output's law to the target's." total_variation: f64 = rule.total_variation.value,
        "The token that is farthest off."
        worst_token: Option<usize> = rule.total_variation.worst_token,
        "Whether the total variation is 0." lossless: bool = rule.lossless,
        "Whether it is lossless." ok: bool = rule.complaint().is_none(),
    }
}

object! {
    /// Bounds, optimum and verifiers of a block problem with K drafts.
    pub struct Block<'a>(found: &'a BlockEvaluation)
    let program = found.block_lp();
    let best = found.best_method();
    let verifiers = found.verifiers.iter();
    let verifier = |row: &'a BlockVerification| BlockVerifier::of(row, found.drafts);
    {
        "1." schema: u32 = JSON_SCHEMA,
        "The problem's name." problem: &'a str = &found.problem,
        "K." drafts: usize = found.drafts,
        "V." vocab: usize = found.vocab,
        "L." length: usize = found.length,
        "How many output tokens are compared with the target." horizon: usize = found.horizon,
        "The block optimum where a program is small enough."
        block_lp: Option<f64> = program.map(Known::value),
        "The same as a fraction, if it is exact."
        block_lp_exact?: String = program.and_then(fraction),
        "The block optimum between bounds, by the best method that ran."
        block_optimum?: BlockOptimum =
            best.and_then(|way| Some(BlockOptimum::of(way.name, way.outcome.done()?))),
        "The sum of the single-step optima, prefixes in place of tokens."
        per_depth_bound: f64 = found.per_depth_bound.value(),
        "The value of Lemma 5.1." lemma_5_1: f64 = found.lemma_5_1.value(),
        "What that value is worth at this K."
        lemma_5_1_status: &'static str = lemma_5_1_status(found.drafts),
        "The sum over prefixes of min(p, q)."
        single_draft_optimum: f64 = found.single_draft_optimum.value(),
        "Every way to the optimum."
        methods: Vec<BlockMethod> = found.methods.iter().map(BlockMethod::of).collect(),
        "Every block verifier."
        verifiers: Vec<BlockVerifier<'a>> = verifiers.map(verifier).collect(),
        "Whether the expectations of the file are met; absent if it has none for this K."
        expected?: MeetsFile = found.meets_file().map(MeetsFile::of),
        "What disagrees, in words." disagreements: Vec<String> = found.complaints(),
        "Nothing disagrees." ok: bool = found.is_ok(),
    }
}

object! {
    /// The block optimum.
    struct BlockOptimum(name: &'static str, optimum: &Known) {
        "The nearest floating-point number." value: f64 = optimum.value(),
        "A lower bound." lower: Option<f64> = finite(optimum.lower()),
        "An upper bound." upper: Option<f64> = finite(optimum.upper()),
        "How well it is known." kind: Kind = optimum.kind(),
        "The fraction, if it is exact." exact?: String = fraction(optimum),
        "`transport`, `tree-program` or `block-lp`."
        method: &'static str = name.trim_start_matches("exact-"),
    }
}

object! {
    /// A way to the block optimum.
    struct BlockMethod(method: &OptimumMethod)
    let limit = method.limit();
    {
        "`exact-transport`, `tree-program` or `block-lp`." name: &'static str = method.name,
        "The solver of a linear program."
        backend?: &'static str = method.backend.map(BackendName::as_str),
        "What it found." value: Option<f64> = method.outcome.done().map(Known::value),
        "`ok`, `failed`, `skipped`, or `limit`: the search did all the work that is done for one \
         problem and left an interval wider than 1e-6."
        status: &'static str = limit.as_ref().map_or(method.outcome.status(), |_| "limit"),
        "Why there is no answer, or none that is sharp."
        reason?: String = limit.or_else(|| method.outcome.reason().map(str::to_owned)),
        "Recomputed from the unscaled program."
        primal_infeasibility?: f64 = method.primal_infeasibility,
        "Likewise." duality_gap?: f64 = method.duality_gap,
    }
}

object! {
    /// What the problem file expects.
    struct MeetsFile(met: bool) {
        "What was found." ok: bool = met,
    }
}

object! {
    /// A block verifier.
    struct BlockVerifier<'a>(row: &'a BlockVerification, drafts: usize)
    let law = row.outcome.done();
    let value = |of: fn(&BlockLaw) -> &Known| law.map(|law| of(law).value());
    let exact = |law: &BlockLaw| Some(ExactLaw::of([
        fraction(&law.expected_accepted_length)?,
        fraction(&law.total_variation)?,
        fraction(&law.undefined_mass)?,
    ]));
    {
        "The verifier." name: &'static str = row.name.as_str(),
        "`ok` or `skipped`." status: &'static str = row.outcome.status(),
        "E[tau], bonus excluded."
        expected_accepted_length: Option<f64> = value(|law| &law.expected_accepted_length),
        "That plus 1." block_efficiency: Option<f64> = law.map(BlockLaw::block_efficiency),
        "Of the whole output string to the target's."
        total_variation: Option<f64> = value(|law| &law.total_variation),
        "Of its first token alone."
        first_token_total_variation: Option<f64> = value(|law| &law.first_token_total_variation),
        "Probability that the output's law is 0/0."
        undefined_mass: Option<f64> = value(|law| &law.undefined_mass),
        "What was found." lossless: Option<bool> = law.map(|law| law.lossless),
        "What is proved at this K." proved_lossless: bool = row.name.is_proved_lossless(drafts),
        "The numbers as fractions, if they are exact." exact?: ExactLaw = law.and_then(exact),
        "What a reader must know." note?: &'static str = row.note,
        "Why it was skipped." reason?: &'a str = row.outcome.reason(),
    }
}

object! {
    /// A law in fractions.
    struct ExactLaw(fractions: [String; 3])
    let [length, variation, undefined] = fractions;
    {
        "E[tau]." expected_accepted_length: String = length,
        "Of the whole output string." total_variation: String = variation,
        "Of outputs whose law is 0/0." undefined_mass: String = undefined,
    }
}
