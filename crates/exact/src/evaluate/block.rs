//! `block`: everything about one block problem.

use super::agreement::{Agreement, can_be_at_most, can_both_hold, describe, too_wide};
use super::expectation::{Expectation, Wanted};
use super::method::named;
use super::outcome::Reported;
use super::tolerances::{LOSSLESS_BLOCK_TOLERANCE, Standard};
use super::{Evaluated, Outcome};
use crate::block::level_sets::{MOST_WORK, path_optimum};
use crate::block::program::{BlockProgram, MAX_HIGHS_VARIABLES, MAX_MINILP_VARIABLES};
use crate::block::transport::{BlockTransport, MAX_EXACT_PAIRS, pair_count};
use crate::block::{
    Attains, BlockRule, OutputLaw, lemma_5_1, output_law, per_depth_bound, single_draft_optimum,
    tuple_count,
};
use specgap_core::lp::BackendName;
use specgap_core::problem::{BlockExpected, BlockProblem, ExpectedValue};
use specgap_core::tree::TokenTree;
use specgap_number::distribution::{Distribution, Rational};
use specgap_number::known::Known;
use specgap_number::number::Number;

/// Largest number of tuples of draft blocks that a verifier is run on.
const MAX_TUPLES: f64 = 2e5;

/// Largest number of steps (tuples, times the accept/refuse branches of one run,
/// times the V L probabilities that a run reads) that a verifier may take.
const MAX_STEPS: f64 = 3e8;

/// Largest number of runs that is enumerated in rationals, where all
/// conditionals are fractions; more are enumerated in `f64`.
const MAX_EXACT_RUNS: f64 = 5e3;

/// Largest size of the exact transport problem, in pairs times bits.
const MAX_TRANSPORT_BITS: f64 = 1e9;

/// Largest tree, in prefixes of L tokens times L, whose optimum is searched for in
/// rationals, and most work of that search.
const MAX_EXACT_TREE: usize = 2_000;
const MOST_EXACT_WORK: f64 = 4e5;

const EXACT_TRANSPORT: &str = "exact-transport";
const TREE_PROGRAM: &str = "tree-program";

/// One computation of the block optimum.
#[derive(Clone, Debug)]
pub struct OptimumMethod {
    /// `exact-transport`, `tree-program` or `block-lp`.
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

impl OptimumMethod {
    fn new(name: &'static str, backend: Option<BackendName>, outcome: Outcome<Known>) -> Self {
        Self {
            name,
            backend,
            outcome,
            primal_infeasibility: None,
            duality_gap: None,
        }
    }

    /// The method with its solver, as in `block-lp (highs)`.
    pub fn name(&self) -> String {
        named(self.name, self.backend)
    }

    /// Says what a search left open that did as much as it may, if it did: its answer is right and
    /// not sharp.
    pub fn limit(&self) -> Option<String> {
        let wide = too_wide(self.outcome.done()?)?;
        Some(format!(
            "limit reached: after all the work that is done for one problem the optimum is {wide}"
        ))
    }
}

/// What a verifier does with a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockLaw {
    /// `E[tau]`, bonus excluded.
    pub expected_accepted_length: Known,
    /// Total variation of the output string to the target's; see
    /// [`OutputLaw::total_variation`].
    pub total_variation: Known,
    /// Total variation of the first token's law to the target's.
    pub first_token_total_variation: Known,
    /// Probability that the output's law is 0/0.
    pub undefined_mass: Known,
    /// Whether [`Self::total_variation`] is 0, or at most
    /// [`LOSSLESS_BLOCK_TOLERANCE`] in `f64`.
    pub lossless: bool,
}

impl Reported for BlockLaw {
    const DONE: &'static str = "ok";
}

impl BlockLaw {
    fn of<T: PartialOrd>(law: OutputLaw<T>, known: fn(T) -> Known, tolerance: &T) -> Self {
        Self {
            lossless: law.total_variation <= *tolerance,
            expected_accepted_length: known(law.expected_accepted_length),
            total_variation: known(law.total_variation),
            first_token_total_variation: known(law.first_token_total_variation),
            undefined_mass: known(law.undefined_mass),
        }
    }

    /// `E[tau]` + 1: tokens per call of the target.
    pub fn block_efficiency(&self) -> f64 {
        self.expected_accepted_length.value() + 1.0
    }
}

/// A verifier and what it does.
#[derive(Clone, Debug)]
pub struct BlockVerification {
    /// Which one.
    pub name: BlockRule,
    /// Its law.
    pub outcome: Outcome<BlockLaw>,
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
    pub verifiers: Vec<BlockVerification>,
    /// What disagrees with a proof or a second computation; empty if nothing does. A
    /// refuted verifier that is lossy is no disagreement.
    pub disagreements: Vec<String>,
    /// The file's values against those found; `None` if it has none, or has them for
    /// another K.
    pub expected: Option<Vec<Expectation>>,
}

impl BlockEvaluation {
    /// The block optimum: by exact transport, else by the tree program, which always has an
    /// enclosure.
    pub fn block_optimum(&self) -> Option<&Known> {
        self.best_method().and_then(|method| method.outcome.done())
    }

    pub(super) fn best_method(&self) -> Option<&OptimumMethod> {
        let mut methods = self.methods.iter();
        methods.find(|method| method.outcome.done().is_some())
    }

    /// The optimum of the whole coupling as a program: exact, else that of the first solver
    /// whose answer was accepted. `None` where that is too large.
    pub fn block_lp(&self) -> Option<&Known> {
        let methods = self.methods.iter();
        let mut programs = methods.filter(|method| method.name != TREE_PROGRAM);
        programs.find_map(|method| method.outcome.done())
    }

    /// One verifier's row.
    pub fn verifier(&self, name: BlockRule) -> Option<&BlockVerification> {
        self.verifiers.iter().find(|row| row.name == name)
    }

    /// Tells whether the file's values, if it has any for this K, are those found.
    pub fn meets_file(&self) -> Option<bool> {
        let expected = self.expected.as_ref()?;
        Some(expected.iter().all(Expectation::is_ok))
    }
}

impl Evaluated for BlockEvaluation {
    fn complaints(&self) -> Vec<String> {
        let expected = self.expected.iter().flatten();
        let unmet = expected.filter_map(|expectation| expectation.complaint.clone());
        self.disagreements.iter().cloned().chain(unmet).collect()
    }
}

/// Bounds, optimum and verifiers of a problem with K i.i.d. drafts.
///
/// All conditionals being fractions and the problem small, the values are exact
/// (all but those of k-seq, whose scale is a root of a polynomial); else they
/// are `f64`, and the block optimum is exact still while it is affordable.
///
/// # Complexity
/// At most 2e5 tuples of blocks and 3e8 steps a verifier, [`MAX_EXACT_PAIRS`] pairs for
/// the exact transport; what is larger is skipped with the reason. The tree program takes at
/// most [`MOST_WORK`] steps and encloses the optimum of any problem.
///
/// # Example
/// ```
/// use specgap_exact::block::BlockRule;
/// use specgap_exact::evaluate::{Evaluated, block};
/// use specgap_core::problem::{AnyProblem, parse_toml};
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
/// let report = block(&problem, problem.drafts());
/// assert_eq!(report.block_optimum().unwrap().value(), 1.0);
/// let gbv = report.verifier(BlockRule::SPECTR_GBV).unwrap();
/// let law = gbv.outcome.done().unwrap();
/// assert_eq!(law.expected_accepted_length.rational(), Some(&"7/9".parse()?));
/// assert_eq!(law.undefined_mass.rational(), Some(&"2/9".parse()?));
/// assert!(report.is_ok(), "that spectr-gbv is lossy is known");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn block(problem: &BlockProblem, drafts: usize) -> BlockEvaluation {
    within(problem, drafts, MOST_WORK)
}

/// Evaluates with so much work at most for the search of the optimum.
fn within(problem: &BlockProblem, drafts: usize, work: f64) -> BlockEvaluation {
    let drafts = drafts.clamp(1, specgap_core::problem::MAX_DRAFTS);
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
        methods: optima(&tree, exact.as_ref(), &size, work),
        per_depth_bound: value(&|t| per_depth_bound(t, drafts), &|t| {
            per_depth_bound(t, drafts)
        }),
        lemma_5_1: value(&|t| lemma_5_1(t, drafts), &|t| lemma_5_1(t, drafts)),
        single_draft_optimum: value(&single_draft_optimum, &single_draft_optimum),
        verifiers: BlockRule::ALL
            .into_iter()
            .map(|name| BlockVerification {
                name,
                outcome: law(name, problem, &tree, fractions, &size),
                note: name.note(drafts),
            })
            .collect(),
        disagreements: Vec::new(),
        expected: None,
    };
    evaluation.disagreements = contradictions(&evaluation);
    evaluation.expected = problem
        .expected()
        .filter(|_| drafts == problem.drafts())
        .map(|expected| expectations(&evaluation, expected));
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

    fn tuples_of(&self, name: BlockRule) -> f64 {
        match name.is_single_draft() {
            true => self.single_tuples,
            false => self.tuples,
        }
    }

    /// Tuples times branches of one run.
    fn runs_of(&self, name: BlockRule) -> f64 {
        let branches = if name.entry().is_refuted {
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
    work: f64,
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
        primal_infeasibility: proved,
        duality_gap: proved,
        ..OptimumMethod::new(EXACT_TRANSPORT, None, outcome)
    }];
    let small = tree.length() * tree.width(tree.length()) <= MAX_EXACT_TREE;
    let closed = exact
        .filter(|_| small && size.fractions)
        .map(|exact| path_optimum(exact, size.drafts, MOST_EXACT_WORK).known())
        .filter(|known| known.rational().is_some());
    let bracketed = closed.unwrap_or_else(|| path_optimum(tree, size.drafts, work).known());
    let bracketed = Outcome::Done(bracketed);
    methods.push(OptimumMethod::new(TREE_PROGRAM, None, bracketed));
    let mut program = None;
    for name in BackendName::ALL {
        let limit = match name {
            BackendName::Highs => MAX_HIGHS_VARIABLES,
            BackendName::MiniLp => MAX_MINILP_VARIABLES,
        };
        let mut checked = None;
        let outcome = match name.backend() {
            None => {
                let name = name.as_str();
                Outcome::Skipped(format!("this build has no {name}; build with its feature"))
            }
            Some(_) if size.pairs > limit => too_many(limit),
            Some(backend) => {
                program = program.or_else(|| BlockProgram::new(tree, size.drafts));
                match program.as_ref().map(|p| p.solve(backend.as_ref())) {
                    Some(Ok(found)) => Outcome::Done(Known::float(checked.insert(found).value)),
                    Some(Err(error)) => Outcome::Failed(error.to_string()),
                    None => Outcome::Failed("the drafts' law is no distribution".to_owned()),
                }
            }
        };
        methods.push(OptimumMethod {
            primal_infeasibility: checked.map(|found| found.primal_infeasibility),
            duality_gap: checked.map(|found| found.duality_gap),
            ..OptimumMethod::new("block-lp", Some(name), outcome)
        });
    }
    methods
}

fn law(
    name: BlockRule,
    problem: &BlockProblem,
    tree: &TokenTree<f64>,
    fractions: Option<&TokenTree<Rational>>,
    size: &Size,
) -> Outcome<BlockLaw> {
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
    if name.entry().attains == Attains::Optimum && !size.affordable {
        return beyond();
    }
    let fractions = fractions.filter(|_| runs <= MAX_EXACT_RUNS && name.entry().is_exact);
    let law = match fractions {
        Some(tree) => (name.entry().fractions)(problem, size.drafts).map(|verifier| {
            let law = output_law(tree, verifier.as_ref());
            BlockLaw::of(law, Known::exact, &Rational::zero())
        }),
        None => (name.entry().floats)(problem, size.drafts).map(|verifier| {
            let law = output_law(tree, verifier.as_ref());
            BlockLaw::of(law, Known::float, &LOSSLESS_BLOCK_TOLERANCE)
        }),
    };
    law.map_or_else(beyond, Outcome::Done)
}

/// Lists what is against a proof: each line names the two sides.
fn contradictions(evaluation: &BlockEvaluation) -> Vec<String> {
    let mut found = Vec::new();
    let (bound, lemma) = (&evaluation.per_depth_bound, &evaluation.lemma_5_1);
    let optimum = evaluation.block_optimum();
    // That a solver gives up is news about the solver only while another one answered.
    if optimum.is_none() {
        for method in &evaluation.methods {
            if let Outcome::Failed(reason) = &method.outcome {
                found.push(format!("{}: {reason}", method.name()));
            }
        }
    }
    let lemmas = ("Lemma 5.1's value", lemma);
    let bounds = ("the per-depth bound", bound);
    found.extend(exceeds(lemmas, bounds));
    if let Some(optimum) = optimum {
        found.extend(exceeds(lemmas, ("the block optimum", optimum)));
        let methods = evaluation.methods.iter();
        let results = methods.filter_map(|method| Some((method.name(), method.outcome.done()?)));
        found = Agreement::of(results, "the block optimum", optimum, found).complaints;
        found.extend(exceeds(("block optimum", optimum), bounds));
        let of_one_draft = [
            ("Lemma 5.1", lemma),
            ("the single-draft optimum", &evaluation.single_draft_optimum),
        ];
        for (what, value) in of_one_draft {
            if evaluation.drafts == 1 && !can_both_hold(value, optimum) {
                let (value, optimum) = (describe(value), describe(optimum));
                found.push(format!(
                    "one draft: {what} is {value}, the block optimum {optimum}"
                ));
            }
        }
    }
    for row in &evaluation.verifiers {
        if row.name.is_proved_lossless(evaluation.drafts) {
            found.extend(against_proof(evaluation, row));
        }
    }
    found
}

/// Says that a value exceeds a limit, if it cannot be at most that; each has its name.
fn exceeds((what, value): (&str, &Known), (limits, limit): (&str, &Known)) -> Option<String> {
    (!can_be_at_most(value, limit)).then(|| {
        let (value, limit) = (describe(value), describe(limit));
        format!("{what} {value} exceeds {limits} {limit}")
    })
}

/// Lists what a verifier that is proved lossless does against a proof.
fn against_proof(evaluation: &BlockEvaluation, row: &BlockVerification) -> Vec<String> {
    let mut found = Vec::new();
    let Some(law) = row.outcome.done() else {
        return found;
    };
    let (name, length) = (row.name, &law.expected_accepted_length);
    if !law.lossless {
        let distance = law.total_variation.value();
        let off = format!("its total variation is {distance:e}");
        found.push(format!("{name} is proved lossless, but {off}"));
    }
    let optimum = evaluation.block_optimum();
    let limit = optimum.unwrap_or(&evaluation.per_depth_bound);
    let accepts = format!("{name} accepts {} tokens", describe(length));
    if !can_be_at_most(length, limit) {
        let limit = describe(limit);
        found.push(format!("{accepts}, more than the optimum {limit}"));
    }
    let attained = match name.entry().attains {
        Attains::OneDraft => Some(&evaluation.single_draft_optimum),
        Attains::Optimum => optimum,
        Attains::Nothing => None,
    };
    if let Some(best) = attained.filter(|best| !can_both_hold(length, best)) {
        let best = describe(best);
        found.push(format!("{accepts}; it is proved to attain {best}"));
    }
    found
}

/// The file's values against those found.
fn expectations(evaluation: &BlockEvaluation, expected: &BlockExpected) -> Vec<Expectation> {
    let mut all = Vec::new();
    let mut expect = |field, value: Option<&ExpectedValue>, found: Option<&Known>| {
        let wanted = value.map(|value| Wanted {
            field,
            value,
            tolerance: expected.tolerance.as_ref(),
            source: expected.source.as_deref(),
            standard: Standard::BLOCK,
        });
        all.extend(wanted.map(|wanted| wanted.against(found, true)));
    };
    let (bound, lemma) = (&evaluation.per_depth_bound, &evaluation.lemma_5_1);
    let (of_bound, of_lemma) = (&expected.per_depth_bound, &expected.lemma_5_1);
    expect(
        "block_lp",
        expected.block_lp.as_ref(),
        evaluation.block_lp(),
    );
    expect("per_depth_bound", of_bound.as_ref(), Some(bound));
    expect("lemma_5_1", of_lemma.as_ref(), Some(lemma));
    if let Some(wanted) = &expected.spectr_gbv {
        let gbv = evaluation.verifier(BlockRule::SPECTR_GBV);
        let gbv = gbv.and_then(|row| row.outcome.done());
        let length = gbv.map(|law| &law.expected_accepted_length);
        let field = "spectr_gbv.expected_accepted_length";
        expect(field, Some(&wanted.expected_accepted_length), length);
        let mass = gbv.map(|law| &law.undefined_mass);
        expect(
            "spectr_gbv.undefined_mass",
            wanted.undefined_mass.as_ref(),
            mass,
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::level_sets::tests::random_trees;

    #[test]
    fn a_search_that_ends_early_says_so_and_disagrees_with_nothing() {
        let (problem, _) = random_trees(4, 1, [2, 9]).next().unwrap();
        let found = within(&problem, 4, 0.0);
        let limit = found.methods.iter().find_map(OptimumMethod::limit);
        let limit = limit.unwrap_or_else(|| panic!("{:?}", found.methods));
        assert!(
            limit.contains("limit reached") && limit.contains("wider than 1e-6"),
            "{limit}"
        );
        assert!(found.is_ok(), "{:?}", found.complaints());
        let json = serde_json::to_value(&found).unwrap();
        let methods = json["methods"].as_array().unwrap();
        let method = methods
            .iter()
            .find(|one| one["name"] == TREE_PROGRAM)
            .unwrap();
        assert_eq!(
            (&method["status"], &method["reason"]),
            (&"limit".into(), &limit.into())
        );
        assert!(method["value"].is_number());
    }
}
