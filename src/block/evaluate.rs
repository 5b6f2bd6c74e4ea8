//! Everything about one block problem, with every agreement checked.

use super::program::{BlockProgram, MAX_HIGHS_VARIABLES, MAX_MINILP_VARIABLES};
use super::transport::{BlockTransport, MAX_EXACT_PAIRS, pair_count};
use super::{
    Block, BlockOptimal, BlockVerifier, GreedyBlock, Selection, SpecTr, SpecTrGbv, Token,
    Traversal, lemma_5_1, output_law, per_depth_bound, single_draft_optimum, tuple_count,
};
use crate::distribution::{Distribution, Rational};
use crate::known::Known;
use crate::lp::BackendName;
use crate::number::Number;
use crate::problem::{BlockExpected, BlockProblem};
use crate::tree::TokenTree;
use std::fmt;
use std::str::FromStr;

/// Largest number of tuples of draft blocks that a verifier is run on.
pub const MAX_TUPLES: f64 = 2e5;

/// Largest number of steps (tuples, times the accept/refuse branches of one run,
/// times the V L probabilities that a run reads) that a verifier may take.
pub const MAX_STEPS: f64 = 3e8;

/// Largest number of runs that is enumerated in rationals, where all
/// conditionals are fractions; more are enumerated in `f64`.
pub const MAX_EXACT_RUNS: f64 = 5e3;

/// Largest total variation at which a law in `f64` is called the target's.
pub const LOSSLESS_TOLERANCE: f64 = 1e-12;

/// Largest difference between two computations of one number.
pub const AGREEMENT_TOLERANCE: f64 = 1e-9;

/// Tolerance for expected values where a file states none.
pub const EXPECTED_TOLERANCE: f64 = 1e-7;

/// Largest size of the exact transport problem, in pairs times bits.
const MAX_TRANSPORT_BITS: f64 = 1e9;

/// The block verifiers by their names in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockVerifierName {
    /// [`Token`]
    Token,
    /// [`Block`]
    Block,
    /// [`GreedyBlock`]
    GreedyBlock,
    /// [`SpecTr`] with [`Selection::KSeq`]
    SpecTrKSeq,
    /// [`SpecTr`] with [`Selection::Optimal`]
    SpecTrOptimal,
    /// [`Traversal`]
    Traversal,
    /// [`BlockOptimal`]
    BlockOptimal,
    /// [`SpecTrGbv`], for audit
    SpecTrGbv,
}

impl BlockVerifierName {
    /// Every verifier, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Token,
        Self::Block,
        Self::GreedyBlock,
        Self::SpecTrKSeq,
        Self::SpecTrOptimal,
        Self::Traversal,
        Self::BlockOptimal,
        Self::SpecTrGbv,
    ];

    /// The name in reports, e.g. `greedy-block`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Block => "block",
            Self::GreedyBlock => "greedy-block",
            Self::SpecTrKSeq => "spectr-k-seq",
            Self::SpecTrOptimal => "spectr-optimal",
            Self::Traversal => "traversal",
            Self::BlockOptimal => "block-optimal",
            Self::SpecTrGbv => "spectr-gbv",
        }
    }

    /// True if it looks at one draft however many there are.
    pub fn is_single_draft(self) -> bool {
        matches!(self, Self::Token | Self::Block | Self::GreedyBlock)
    }

    /// Whether its output is proved to follow the target with `drafts` drafts.
    /// False for `spectr-gbv` with two or more, where it is refuted.
    pub fn is_proved_lossless(self, drafts: usize) -> bool {
        self != Self::SpecTrGbv || drafts == 1
    }

    /// What a reader must know beside the numbers.
    pub fn note(self, drafts: usize) -> Option<&'static str> {
        if self.is_single_draft() {
            return (drafts > 1).then_some("uses the first of the drafts only");
        }
        match self {
            Self::SpecTrGbv if drafts > 1 => Some(
                "refuted for two or more drafts: may change the output's law; for audit, not for use",
            ),
            Self::SpecTrOptimal => {
                Some("one optimal plan a position; others may give another E[tau]")
            }
            _ => None,
        }
    }

    /// The verifier, in `f64` or exactly; `None` for `block-optimal` where the
    /// exact optimum is out of reach.
    pub fn verifier<T: Number>(
        self,
        problem: &BlockProblem,
        drafts: usize,
    ) -> Option<Box<dyn BlockVerifier<T>>> {
        Some(match self {
            Self::Token => Box::new(Token),
            Self::Block => Box::new(Block),
            Self::GreedyBlock => Box::new(GreedyBlock),
            Self::SpecTrKSeq => Box::new(SpecTr::new(problem, Selection::KSeq, drafts)),
            Self::SpecTrOptimal => Box::new(SpecTr::new(problem, Selection::Optimal, drafts)),
            Self::Traversal => Box::new(Traversal::new(drafts)),
            Self::BlockOptimal => {
                let tree = TokenTree::<Rational>::new(problem);
                Box::new(BlockOptimal::new(&tree, drafts)?)
            }
            Self::SpecTrGbv => Box::new(SpecTrGbv::new(drafts)),
        })
    }
}

impl fmt::Display for BlockVerifierName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not one of [`BlockVerifierName::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a block verifier; choose one of token, block, greedy-block, spectr-k-seq, \
     spectr-optimal, traversal, block-optimal, spectr-gbv"
)]
pub struct UnknownBlockVerifier(pub String);

impl FromStr for BlockVerifierName {
    type Err = UnknownBlockVerifier;
    fn from_str(text: &str) -> Result<Self, UnknownBlockVerifier> {
        Self::ALL
            .into_iter()
            .find(|name| name.as_str() == text)
            .ok_or_else(|| UnknownBlockVerifier(text.to_owned()))
    }
}

/// A result, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<R> {
    /// Computed and, where that applies, checked.
    Done(R),
    /// Not tried, with the reason.
    Skipped(String),
    /// Tried, and not accepted.
    Failed(String),
}

impl<R> Outcome<R> {
    /// The result.
    pub fn done(&self) -> Option<&R> {
        match self {
            Self::Done(result) => Some(result),
            _ => None,
        }
    }

    /// `ok`, `skipped` or `failed`.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Done(_) => "ok",
            Self::Skipped(_) => "skipped",
            Self::Failed(_) => "failed",
        }
    }

    /// Why there is no result.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Done(_) => None,
            Self::Skipped(reason) | Self::Failed(reason) => Some(reason),
        }
    }
}

/// One computation of the block optimum.
#[derive(Clone, Debug)]
pub struct OptimumMethod {
    /// `exact-transport` or `block-lp`.
    pub name: &'static str,
    /// The LP solver.
    pub backend: Option<BackendName>,
    /// The optimum.
    pub outcome: Outcome<Known>,
    /// Largest violation of a constraint, recomputed; 0 for the exact method.
    pub primal_infeasibility: Option<f64>,
    /// Upper bound minus value, recomputed; 0 for the exact method.
    pub duality_gap: Option<f64>,
}

/// What a verifier does with a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifierLaw {
    /// `E[tau]`, bonus excluded.
    pub expected_accepted_length: Known,
    /// Total variation of the output string to the target's; see
    /// [`super::OutputLaw::total_variation`].
    pub total_variation: Known,
    /// The same for the first token alone.
    pub first_token_total_variation: Known,
    /// Probability that the output's law is 0/0.
    pub undefined_mass: Known,
    /// Whether [`Self::total_variation`] is 0, or at most
    /// [`LOSSLESS_TOLERANCE`] in `f64`.
    pub lossless: bool,
}

impl VerifierLaw {
    /// `E[tau]` + 1: tokens per call of the target.
    pub fn block_efficiency(&self) -> f64 {
        self.expected_accepted_length.value() + 1.0
    }
}

/// A verifier and what it does.
#[derive(Clone, Debug)]
pub struct VerifierEvaluation {
    /// Which one.
    pub name: BlockVerifierName,
    /// Its law.
    pub outcome: Outcome<VerifierLaw>,
    /// What a reader must know.
    pub note: Option<&'static str>,
}

/// Everything about one problem with K drafts.
#[derive(Clone, Debug)]
pub struct BlockEvaluation {
    /// Name of the problem.
    pub problem: String,
    /// K.
    pub drafts: usize,
    /// V.
    pub vocab: usize,
    /// L.
    pub length: usize,
    /// How many tokens the output strings have, whose law is compared.
    pub horizon: usize,
    /// The block optimum, by every method.
    pub methods: Vec<OptimumMethod>,
    /// Sum of the single depths' optima: at least the block optimum.
    pub per_depth_bound: Known,
    /// Lemma 5.1's value: the optimum at K = 1, no upper bound for K >= 2.
    pub lemma_5_1: Known,
    /// The optimum with one draft.
    pub single_draft_optimum: Known,
    /// Every verifier.
    pub verifiers: Vec<VerifierEvaluation>,
    /// What disagrees with a proof, a second computation or the file; empty if
    /// all is well. A refuted verifier that is lossy is no disagreement.
    pub disagreements: Vec<String>,
    /// Whether the file's values were compared; `None` if it has none, or has
    /// them for another K.
    pub expected_ok: Option<bool>,
}

impl BlockEvaluation {
    /// The block optimum: the exact one, else that of the first solver whose
    /// answer was accepted.
    pub fn block_optimum(&self) -> Option<&Known> {
        self.methods.iter().find_map(|method| method.outcome.done())
    }

    /// One verifier's row.
    pub fn verifier(&self, name: BlockVerifierName) -> Option<&VerifierEvaluation> {
        self.verifiers.iter().find(|row| row.name == name)
    }

    /// Whether everything that was computed agrees.
    pub fn is_ok(&self) -> bool {
        self.disagreements.is_empty()
    }
}

/// What Lemma 5.1's value is worth with K drafts.
pub fn lemma_5_1_status(drafts: usize) -> &'static str {
    if drafts == 1 {
        "equals the optimum for one draft"
    } else {
        "not an upper bound for two or more drafts (refuted as one)"
    }
}

/// Bounds, optimum and verifiers of a problem with K i.i.d. drafts.
///
/// All conditionals being fractions and the problem small, the values are exact
/// (all but those of k-seq, whose scale is a root of a polynomial); else they
/// are `f64`, and the block optimum is exact still while it is affordable.
///
/// # Complexity
/// See [`MAX_TUPLES`], [`MAX_EXACT_PAIRS`]; what is larger is skipped with the
/// reason.
///
/// # Example
/// ```
/// use specgap::block::evaluate::{BlockVerifierName, evaluate};
/// use specgap::problem::{AnyProblem, parse_toml};
/// let text = r#"
/// schema = 1
/// name = "uniform"
/// drafts = 2
/// [block]
/// vocab = 2
/// length = 1
/// target = { "" = ["1/2", "1/2"] }
/// draft = { "" = ["1/2", "1/2"] }
/// "#;
/// let AnyProblem::Block(problem) = parse_toml(text)? else { panic!() };
/// let report = evaluate(&problem, problem.drafts());
/// assert_eq!(report.block_optimum().unwrap().value(), 1.0);
/// let gbv = report.verifier(BlockVerifierName::SpecTrGbv).unwrap();
/// let law = gbv.outcome.done().unwrap();
/// assert_eq!(law.expected_accepted_length.rational(), Some(&"7/9".parse()?));
/// assert_eq!(law.undefined_mass.rational(), Some(&"2/9".parse()?));
/// assert!(report.is_ok(), "that spectr-gbv is lossy is known");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn evaluate(problem: &BlockProblem, drafts: usize) -> BlockEvaluation {
    let drafts = drafts.clamp(1, crate::problem::MAX_DRAFTS);
    let tree = TokenTree::<f64>::new(problem);
    let size = Size::of(problem, &tree, drafts);
    let exact = size.affordable.then(|| TokenTree::<Rational>::new(problem));
    let fractions = exact.as_ref().filter(|_| size.fractions);

    let value = |float: &dyn Fn(&TokenTree<f64>) -> f64,
                 rational: &dyn Fn(&TokenTree<Rational>) -> Rational| {
        fractions.map_or_else(
            || Known::float(float(&tree)),
            |exact| Known::exact(rational(exact)),
        )
    };
    let mut evaluation = BlockEvaluation {
        problem: problem.name().to_owned(),
        drafts,
        vocab: problem.vocab(),
        length: problem.length(),
        horizon: tree.horizon(),
        methods: optima(&tree, exact.as_ref(), &size),
        per_depth_bound: value(&|t| per_depth_bound(t, drafts), &|t| {
            per_depth_bound(t, drafts)
        }),
        lemma_5_1: value(&|t| lemma_5_1(t, drafts), &|t| lemma_5_1(t, drafts)),
        single_draft_optimum: value(&single_draft_optimum, &single_draft_optimum),
        verifiers: BlockVerifierName::ALL
            .into_iter()
            .map(|name| VerifierEvaluation {
                name,
                outcome: law(name, problem, &tree, fractions, &size),
                note: name.note(drafts),
            })
            .collect(),
        disagreements: Vec::new(),
        expected_ok: None,
    };
    let mut disagreements = contradictions(&evaluation);
    let expected = problem
        .expected()
        .filter(|_| drafts == problem.drafts())
        .map(|expected| unexpected(&evaluation, expected));
    evaluation.expected_ok = expected.as_ref().map(Vec::is_empty);
    disagreements.extend(expected.unwrap_or_default());
    evaluation.disagreements = disagreements;
    evaluation
}

/// How large a problem is, decided before anything is enumerated.
struct Size {
    drafts: usize,
    length: usize,
    tuples: f64,
    single_tuples: f64,
    pairs: f64,
    /// Exact arithmetic on the leaves is affordable.
    affordable: bool,
    /// Every conditional is given in fractions.
    fractions: bool,
}

impl Size {
    fn of(problem: &BlockProblem, tree: &TokenTree<f64>, drafts: usize) -> Self {
        let rows = || {
            let target = problem.target().iter().map(|(_, row)| &**row);
            let draft = problem.draft().iter().map(|(_, row)| &**row);
            target.chain(draft)
        };
        let bits = rows().map(Distribution::exact_bits).max().unwrap_or(1) as f64;
        let pairs = pair_count(tree, drafts);
        let bits = bits * problem.length() as f64 * (drafts + 1) as f64;
        Self {
            drafts,
            length: problem.length(),
            tuples: tuple_count(tree, drafts),
            single_tuples: tuple_count(tree, 1),
            pairs,
            affordable: pairs <= MAX_EXACT_PAIRS && pairs * bits <= MAX_TRANSPORT_BITS,
            fractions: rows().all(Distribution::is_rational),
        }
    }

    fn tuples_of(&self, name: BlockVerifierName) -> f64 {
        if name.is_single_draft() {
            self.single_tuples
        } else {
            self.tuples
        }
    }

    /// Tuples times branches of one run.
    fn runs_of(&self, name: BlockVerifierName) -> f64 {
        let branches = if name == BlockVerifierName::SpecTrGbv {
            2f64.powi(i32::try_from(self.drafts * self.length).unwrap_or(i32::MAX))
        } else {
            1.0
        };
        self.tuples_of(name) * branches
    }
}

fn optima(
    tree: &TokenTree<f64>,
    exact: Option<&TokenTree<Rational>>,
    size: &Size,
) -> Vec<OptimumMethod> {
    let too_many = |limit: f64| {
        Outcome::Skipped(format!(
            "about {:.1e} pairs of target block and draft set; at most {limit:.1e} are solved",
            size.pairs
        ))
    };
    let outcome = match exact.and_then(|tree| BlockTransport::new(tree, size.drafts)) {
        None if size.pairs <= MAX_EXACT_PAIRS => {
            Outcome::Skipped("its integers are too long for exact arithmetic".to_owned())
        }
        None => too_many(MAX_EXACT_PAIRS),
        Some(transport) => match transport.check(&transport.solve()) {
            Ok(optimum) => Outcome::Done(Known::exact(optimum)),
            Err(refused) => Outcome::Failed(refused.to_string()),
        },
    };
    let proved = outcome.done().map(|_| 0.0);
    let mut methods = vec![OptimumMethod {
        name: "exact-transport",
        backend: None,
        outcome,
        primal_infeasibility: proved,
        duality_gap: proved,
    }];
    let mut program = None;
    for name in BackendName::ALL {
        let limit = match name {
            BackendName::Highs => MAX_HIGHS_VARIABLES,
            BackendName::MiniLp => MAX_MINILP_VARIABLES,
        };
        let mut method = OptimumMethod {
            name: "block-lp",
            backend: Some(name),
            outcome: too_many(limit),
            primal_infeasibility: None,
            duality_gap: None,
        };
        match name.backend() {
            None => {
                let reason = format!(
                    "this build has no {}; build with its feature",
                    name.as_str()
                );
                method.outcome = Outcome::Skipped(reason);
            }
            Some(_) if size.pairs > limit => {}
            Some(backend) => {
                if program.is_none() {
                    program = BlockProgram::new(tree, size.drafts);
                }
                method.outcome = match program.as_ref().map(|p| p.solve(backend.as_ref())) {
                    Some(Ok(checked)) => {
                        method.primal_infeasibility = Some(checked.primal_infeasibility);
                        method.duality_gap = Some(checked.duality_gap);
                        Outcome::Done(Known::float(checked.value))
                    }
                    Some(Err(error)) => Outcome::Failed(error.to_string()),
                    None => Outcome::Failed("the drafts' law is no distribution".to_owned()),
                };
            }
        }
        methods.push(method);
    }
    methods
}

fn law(
    name: BlockVerifierName,
    problem: &BlockProblem,
    tree: &TokenTree<f64>,
    fractions: Option<&TokenTree<Rational>>,
    size: &Size,
) -> Outcome<VerifierLaw> {
    let tuples = size.tuples_of(name);
    if tuples > MAX_TUPLES {
        return Outcome::Skipped(format!(
            "{tuples:.1e} tuples of draft blocks; at most {MAX_TUPLES:.0e} are enumerated"
        ));
    }
    let runs = size.runs_of(name);
    let steps = runs * (problem.vocab() * problem.length()) as f64;
    if steps > MAX_STEPS {
        return Outcome::Skipped(format!(
            "up to {steps:.1e} steps; at most {MAX_STEPS:.0e} are taken"
        ));
    }
    let beyond = || Outcome::Skipped("needs the exact block optimum".to_owned());
    if name == BlockVerifierName::BlockOptimal && !size.affordable {
        return beyond();
    }
    let fractions =
        fractions.filter(|_| runs <= MAX_EXACT_RUNS && name != BlockVerifierName::SpecTrKSeq);
    if let Some(tree) = fractions {
        let Some(verifier) = name.verifier(problem, size.drafts) else {
            return beyond();
        };
        let law = output_law(tree, verifier.as_ref());
        return Outcome::Done(VerifierLaw {
            lossless: law.total_variation.is_nil(),
            expected_accepted_length: Known::exact(law.expected_accepted_length),
            total_variation: Known::exact(law.total_variation),
            first_token_total_variation: Known::exact(law.first_token_total_variation),
            undefined_mass: Known::exact(law.undefined_mass),
        });
    }
    let Some(verifier) = name.verifier(problem, size.drafts) else {
        return beyond();
    };
    let law = output_law(tree, verifier.as_ref());
    Outcome::Done(VerifierLaw {
        lossless: law.total_variation <= LOSSLESS_TOLERANCE,
        expected_accepted_length: Known::float(law.expected_accepted_length),
        total_variation: Known::float(law.total_variation),
        first_token_total_variation: Known::float(law.first_token_total_variation),
        undefined_mass: Known::float(law.undefined_mass),
    })
}

/// What is against a proof: each line names the two sides.
fn contradictions(evaluation: &BlockEvaluation) -> Vec<String> {
    let mut found = Vec::new();
    let mut must = |holds: bool, text: &dyn Fn() -> String| {
        if !holds {
            found.push(text());
        }
    };
    for method in &evaluation.methods {
        if let Outcome::Failed(reason) = &method.outcome {
            let solver = method.backend.map_or(method.name, BackendName::as_str);
            // That a solver gives up is news about the solver only while
            // another one answered.
            must(evaluation.block_optimum().is_some(), &|| {
                format!("{} by {solver}: {reason}", method.name)
            });
        }
    }
    let bound = evaluation.per_depth_bound.value();
    let lemma = evaluation.lemma_5_1.value();
    must(lemma <= bound + AGREEMENT_TOLERANCE, &|| {
        format!("Lemma 5.1's value {lemma} exceeds the per-depth bound {bound}")
    });
    if let Some(optimum) = evaluation.block_optimum().map(|optimum| optimum.value()) {
        for method in &evaluation.methods {
            if let Some(other) = method.outcome.done() {
                must(
                    (other.value() - optimum).abs() <= AGREEMENT_TOLERANCE,
                    &|| {
                        let solver = method.backend.map_or(method.name, BackendName::as_str);
                        format!(
                            "block optimum: {optimum}, but {} by {solver}",
                            other.value()
                        )
                    },
                );
            }
        }
        must(optimum <= bound + AGREEMENT_TOLERANCE, &|| {
            format!("block optimum {optimum} exceeds the per-depth bound {bound}")
        });
        if evaluation.drafts == 1 {
            for (what, value) in [
                ("Lemma 5.1", &evaluation.lemma_5_1),
                ("the single-draft optimum", &evaluation.single_draft_optimum),
            ] {
                must(
                    (value.value() - optimum).abs() <= AGREEMENT_TOLERANCE,
                    &|| {
                        format!(
                            "one draft: {what} is {}, the block optimum {optimum}",
                            value.value()
                        )
                    },
                );
            }
        }
    }
    let limit = evaluation
        .block_optimum()
        .map_or(bound, |best| best.value());
    for row in &evaluation.verifiers {
        let Some(law) = row.outcome.done() else {
            continue;
        };
        let name = row.name;
        let length = law.expected_accepted_length.value();
        if !name.is_proved_lossless(evaluation.drafts) {
            continue;
        }
        must(law.lossless, &|| {
            let distance = law.total_variation.value();
            format!("{name} is proved lossless, but its total variation is {distance:e}")
        });
        must(length <= limit + AGREEMENT_TOLERANCE, &|| {
            format!("{name} accepts {length} tokens, more than the optimum {limit}")
        });
        let attained = match name {
            BlockVerifierName::GreedyBlock => Some(evaluation.single_draft_optimum.value()),
            BlockVerifierName::SpecTrGbv => Some(evaluation.single_draft_optimum.value()),
            BlockVerifierName::BlockOptimal => evaluation.block_optimum().map(|best| best.value()),
            _ => None,
        };
        if let Some(best) = attained {
            must((length - best).abs() <= AGREEMENT_TOLERANCE, &|| {
                format!("{name} accepts {length} tokens; it is proved to attain {best}")
            });
        }
    }
    found
}

/// What differs from the file's expectations.
fn unexpected(evaluation: &BlockEvaluation, expected: &BlockExpected) -> Vec<String> {
    let tolerance = expected.tolerance.unwrap_or(EXPECTED_TOLERANCE);
    let gbv = evaluation
        .verifier(BlockVerifierName::SpecTrGbv)
        .and_then(|row| row.outcome.done());
    let wanted = expected.spectr_gbv;
    let rows = [
        (
            "block_lp",
            expected.block_lp,
            evaluation.block_optimum().map(|value| value.value()),
        ),
        (
            "per_depth_bound",
            expected.per_depth_bound,
            Some(evaluation.per_depth_bound.value()),
        ),
        (
            "lemma_5_1",
            expected.lemma_5_1,
            Some(evaluation.lemma_5_1.value()),
        ),
        (
            "spectr_gbv.expected_accepted_length",
            wanted.map(|wanted| wanted.expected_accepted_length),
            gbv.map(|law| law.expected_accepted_length.value()),
        ),
        (
            "spectr_gbv.undefined_mass",
            wanted.and_then(|wanted| wanted.undefined_mass),
            gbv.map(|law| law.undefined_mass.value()),
        ),
    ];
    rows.into_iter()
        .filter_map(|(field, wanted, found)| {
            let wanted = wanted?;
            match found {
                None => Some(format!(
                    "expected.{field} is {wanted}, but it was not computed"
                )),
                Some(found) if (found - wanted).abs() <= tolerance => None,
                Some(found) => Some(format!(
                    "expected.{field} is {wanted}, found {found}; tolerance {tolerance:e}"
                )),
            }
        })
        .collect()
}
