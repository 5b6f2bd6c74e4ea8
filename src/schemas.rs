//! JSON Schemas of what the program reads and writes, made from the types: docs/schema.
//!
//! Types that are serialised by derivation are described by derivation. `solve`, `verify` and
//! `block` write their objects field by field; what they write is repeated here as types, and
//! the tests hold it against what they print. With `SPECGAP_WRITE_DOCUMENTS=1` in the
//! environment the test writes the files.

use crate::cli::schema::SCHEMAS;
use crate::scheme::SchemeName;
use crate::verifier::VerifierName;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What `solve`, `verify` and `block` print.
mod printed {
    #![allow(dead_code)] // read by the derivation alone

    use crate::known::Kind;
    use schemars::JsonSchema;

    /// A number with the bounds that hold it, and its fraction if it is exact.
    #[derive(JsonSchema)]
    pub(super) struct Rate {
        /// The nearest floating-point number.
        value: f64,
        /// A rigorous lower bound.
        lower: Option<f64>,
        /// A rigorous upper bound.
        upper: Option<f64>,
        /// The fraction, if it is exact.
        exact: Option<String>,
    }

    /// A problem of a folder that the command does not take.
    #[derive(JsonSchema)]
    pub(super) struct NotTaken {
        /// 1.
        schema: u32,
        /// The problem's name.
        problem: String,
        /// `skipped`.
        status: String,
        /// Why.
        reason: String,
    }

    /// One result, or why there is none.
    #[derive(JsonSchema)]
    #[serde(untagged)]
    pub(super) enum Line<T> {
        Result(T),
        NotTaken(NotTaken),
    }

    /// alpha* of a problem by every method.
    #[derive(JsonSchema)]
    pub(super) struct Solve {
        /// 1.
        schema: u32,
        /// The problem's name.
        problem: String,
        /// The draft law.
        scheme: String,
        /// V.
        vocab: usize,
        /// n.
        drafts: usize,
        /// alpha*.
        optimal_acceptance_rate: Rate,
        /// Every method, run or skipped.
        methods: Vec<MethodRun>,
        /// Why alpha* is what it is.
        certificate: Certificate,
        /// Whether the methods agree.
        agreement: Agreement,
        /// Whether the problem file's expectation is met.
        #[serde(skip_serializing_if = "Option::is_none")]
        expected: Option<ExpectedOptimum>,
        /// For the two laws of different drafts, the other one's optimum.
        #[serde(skip_serializing_if = "Option::is_none")]
        other_law_without_replacement: Option<Sibling>,
        /// Everything agrees and is as expected.
        ok: bool,
    }

    /// A method on a problem.
    #[derive(JsonSchema)]
    pub(super) struct MethodRun {
        /// Its name.
        name: String,
        /// The solver of a linear program.
        #[serde(skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
        /// What it found.
        value: Option<f64>,
        /// A rigorous lower bound, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        lower: Option<f64>,
        /// A rigorous upper bound, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        upper: Option<f64>,
        /// The fraction, if it is exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        exact: Option<String>,
        /// Wall-clock seconds.
        seconds: f64,
        /// How it ended: `optimal`, `imprecise`, `failed`, `skipped` and the like.
        status: String,
        /// Why there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Recomputed from the unscaled program.
        #[serde(skip_serializing_if = "Option::is_none")]
        primal_infeasibility: Option<f64>,
        /// Likewise. minilp gives no multipliers, so that the answer of the dual program stands
        /// in for them.
        #[serde(skip_serializing_if = "Option::is_none")]
        dual_infeasibility: Option<f64>,
        /// Likewise.
        #[serde(skip_serializing_if = "Option::is_none")]
        duality_gap: Option<f64>,
        /// The tokens H that it found.
        #[serde(skip_serializing_if = "Option::is_none")]
        subset: Option<Vec<usize>>,
        /// A remark.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }

    /// The proof in short.
    #[derive(JsonSchema)]
    pub(super) struct Certificate {
        /// H, ascending.
        subset: Vec<usize>,
        /// Whether an exact flow equals an exact cut.
        flow_equals_cut: bool,
        /// What the proof rests on.
        basis: String,
        /// P(H).
        target_mass: f64,
        /// Q(H).
        inside: f64,
        /// The proof in words.
        statement: String,
    }

    /// How far methods are apart.
    #[derive(JsonSchema)]
    pub(super) struct Agreement {
        /// The largest difference from alpha* among the methods that count.
        max_abs_difference: f64,
        /// How many methods count.
        methods: usize,
        /// Whether they agree.
        ok: bool,
        /// What disagrees, in words.
        complaints: Vec<String>,
    }

    /// What the problem file expects of alpha*.
    #[derive(JsonSchema)]
    pub(super) struct ExpectedOptimum {
        /// Whether it is met.
        ok: bool,
        /// The value as the file writes it.
        optimal_acceptance_rate: String,
        /// The largest difference that is allowed.
        tolerance: f64,
        /// Where the value comes from.
        source: Option<String>,
        /// What is wrong, if anything is.
        complaint: Option<String>,
    }

    /// The other law of different drafts.
    #[derive(JsonSchema)]
    pub(super) struct Sibling {
        /// Its name.
        scheme: String,
        /// Its alpha*.
        optimal_acceptance_rate: Rate,
        /// Its alpha* less the problem's.
        difference: f64,
    }

    /// Every verifier on a problem.
    #[derive(JsonSchema)]
    pub(super) struct Verify {
        /// 1.
        schema: u32,
        /// The problem's name.
        problem: String,
        /// The draft law.
        scheme: String,
        /// V.
        vocab: usize,
        /// n.
        drafts: usize,
        /// alpha*, if it was found.
        optimal_acceptance_rate: Option<Rate>,
        /// Why it was not.
        #[serde(skip_serializing_if = "Option::is_none")]
        optimal_acceptance_rate_reason: Option<String>,
        /// Every verifier, measured or skipped.
        verifiers: Vec<Measured>,
        /// The rule that the file tabulates.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
        /// Nothing was refuted, and every expectation of the file is met.
        ok: bool,
    }

    /// A verifier, or why it was not run: then `name`, `status` and `reason` alone.
    #[derive(JsonSchema)]
    pub(super) struct Measured {
        /// The verifier.
        name: String,
        /// `measured`, `skipped` or `failed`.
        status: String,
        /// Why it was not measured: it is lossless under another draft law only, or failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The file expects a rate of a verifier that was not run.
        #[serde(skip_serializing_if = "Option::is_none")]
        expectation_unmet: Option<bool>,
        /// How often a draft is accepted by the algorithm.
        #[serde(skip_serializing_if = "Option::is_none")]
        algorithmic_acceptance: Option<f64>,
        /// How often the output is one of the drafts.
        #[serde(skip_serializing_if = "Option::is_none")]
        membership_acceptance: Option<f64>,
        /// How well the membership acceptance is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<Kind>,
        /// Its lower bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        lower: Option<f64>,
        /// Its upper bound.
        #[serde(skip_serializing_if = "Option::is_none")]
        upper: Option<f64>,
        /// The fraction, if it is exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        exact: Option<String>,
        /// How a rate by simulation came about.
        #[serde(skip_serializing_if = "Option::is_none")]
        monte_carlo: Option<MonteCarlo>,
        /// alpha* less the membership acceptance.
        #[serde(skip_serializing_if = "Option::is_none")]
        gap: Option<f64>,
        /// Of the output's law to the target's.
        #[serde(skip_serializing_if = "Option::is_none")]
        total_variation: Option<f64>,
        /// Whether that was summed in exact arithmetic.
        #[serde(skip_serializing_if = "Option::is_none")]
        total_variation_exact: Option<bool>,
        /// Why it was not summed.
        #[serde(skip_serializing_if = "Option::is_none")]
        total_variation_reason: Option<String>,
        /// The token that is farthest off.
        #[serde(skip_serializing_if = "Option::is_none")]
        worst_token: Option<usize>,
        /// Total variation 0: exactly, or within 1e-11 in floating point.
        #[serde(skip_serializing_if = "Option::is_none")]
        lossless: Option<bool>,
        /// Above alpha* beyond all error bounds, which no correct program can be.
        #[serde(skip_serializing_if = "Option::is_none")]
        exceeds_optimum: Option<bool>,
        /// Whether formula and enumeration agree.
        #[serde(skip_serializing_if = "Option::is_none")]
        formula_agrees: Option<bool>,
        /// What the file expects.
        #[serde(skip_serializing_if = "Option::is_none")]
        expected: Option<ExpectedRate>,
        /// What a reader must know about the numbers.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Nothing was refuted, and the expectation of the file is met.
        #[serde(skip_serializing_if = "Option::is_none")]
        ok: Option<bool>,
    }

    /// How a Monte Carlo mean came about.
    #[derive(JsonSchema)]
    pub(super) struct MonteCarlo {
        /// Of the interval.
        confidence: f64,
        /// How many.
        samples: u64,
        /// Of the generator.
        seed: u64,
    }

    /// What the problem file expects of a verifier.
    #[derive(JsonSchema)]
    pub(super) struct ExpectedRate {
        /// The value.
        membership_acceptance: f64,
        /// The largest difference that is allowed; at least 1e-12 for a rate that is not exact.
        tolerance: f64,
        /// How far the expected value lies outside the bounds.
        difference: Option<f64>,
        /// Whether it is met.
        ok: bool,
    }

    /// A rule that a problem file tabulates.
    #[derive(JsonSchema)]
    pub(super) struct Rule {
        /// What the file calls it.
        name: String,
        /// How often the output is one of the drafts.
        membership_acceptance: f64,
        /// Its lower bound.
        lower: Option<f64>,
        /// Its upper bound.
        upper: Option<f64>,
        /// The fraction, if it is exact.
        exact: Option<String>,
        /// alpha* less that; below 0 if it accepts more than a lossless rule can.
        gap: Option<f64>,
        /// Of the output's law to the target's.
        total_variation: f64,
        /// The token that is farthest off.
        worst_token: Option<usize>,
        /// Whether the total variation is 0.
        lossless: bool,
        /// Whether it is lossless and within its bounds.
        ok: bool,
    }

    /// Bounds, optimum and verifiers of a block problem with K drafts.
    #[derive(JsonSchema)]
    pub(super) struct Block {
        /// 1.
        schema: u32,
        /// The problem's name.
        problem: String,
        /// K.
        drafts: usize,
        /// V.
        vocab: usize,
        /// L.
        length: usize,
        /// How many output tokens are compared with the target.
        horizon: usize,
        /// The block optimum where a program is small enough.
        block_lp: Option<f64>,
        /// The same as a fraction, if it is exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        block_lp_exact: Option<String>,
        /// The block optimum between bounds, by the best method that ran.
        #[serde(skip_serializing_if = "Option::is_none")]
        block_optimum: Option<BlockOptimum>,
        /// The sum of the single-step optima, prefixes in place of tokens.
        per_depth_bound: f64,
        /// The value of Lemma 5.1.
        lemma_5_1: f64,
        /// What that value is worth at this K.
        lemma_5_1_status: String,
        /// The sum over prefixes of min(p, q).
        single_draft_optimum: f64,
        /// Every way to the optimum.
        methods: Vec<BlockMethod>,
        /// Every block verifier.
        verifiers: Vec<BlockVerifier>,
        /// Whether the expectations of the file are met; absent if it has none for this K.
        #[serde(skip_serializing_if = "Option::is_none")]
        expected: Option<MeetsFile>,
        /// What disagrees, in words.
        disagreements: Vec<String>,
        /// Nothing disagrees.
        ok: bool,
    }

    /// The block optimum.
    #[derive(JsonSchema)]
    pub(super) struct BlockOptimum {
        /// The nearest floating-point number.
        value: f64,
        /// A lower bound.
        lower: Option<f64>,
        /// An upper bound.
        upper: Option<f64>,
        /// How well it is known.
        kind: Kind,
        /// The fraction, if it is exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        exact: Option<String>,
        /// `transport` or `tree-program`.
        method: String,
    }

    /// A way to the block optimum.
    #[derive(JsonSchema)]
    pub(super) struct BlockMethod {
        /// `exact-transport`, `tree-program` or `block-lp`.
        name: String,
        /// The solver of a linear program.
        #[serde(skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
        /// What it found.
        value: Option<f64>,
        /// `ok`, `failed`, `skipped`, or `limit`: the search did all the work that is done for
        /// one problem and left an interval wider than 1e-6.
        status: String,
        /// Why there is no answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Recomputed from the unscaled program.
        #[serde(skip_serializing_if = "Option::is_none")]
        primal_infeasibility: Option<f64>,
        /// Likewise.
        #[serde(skip_serializing_if = "Option::is_none")]
        duality_gap: Option<f64>,
    }

    /// A block verifier.
    #[derive(JsonSchema)]
    pub(super) struct BlockVerifier {
        /// The verifier.
        name: String,
        /// `ok` or `skipped`.
        status: String,
        /// E[tau], bonus excluded.
        expected_accepted_length: Option<f64>,
        /// That plus 1.
        block_efficiency: Option<f64>,
        /// Of the whole output string to the target's.
        total_variation: Option<f64>,
        /// Of its first token alone.
        first_token_total_variation: Option<f64>,
        /// Probability that the output's law is 0/0.
        undefined_mass: Option<f64>,
        /// What was found.
        lossless: Option<bool>,
        /// What is proved at this K.
        proved_lossless: bool,
        /// The numbers as fractions, if they are exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        exact: Option<ExactLaw>,
        /// What a reader must know.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Why it was skipped.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }

    /// Fractions.
    #[derive(JsonSchema)]
    pub(super) struct ExactLaw {
        /// E\[tau\].
        expected_accepted_length: String,
        /// Of the whole output.
        total_variation: String,
        /// Probability that the output's law is 0/0; it counts as wrong.
        undefined_mass: String,
    }

    /// Whether the problem file's expectations are met.
    #[derive(JsonSchema)]
    pub(super) struct MeetsFile {
        /// Whether they are.
        ok: bool,
    }

    /// A tree file: EAGLE's list of paths of child ranks.
    #[derive(JsonSchema)]
    pub(super) struct TreeTopology(Vec<Vec<usize>>);

    /// What an import made, and the version of this.
    #[derive(JsonSchema)]
    pub(super) struct Import {
        /// 1.
        schema: u32,
        #[serde(flatten)]
        made: crate::import::Imported,
    }
}

/// The schema of a type as it is written, or as it is read.
fn of<T: JsonSchema>(contract: Contract) -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.contract = contract;
    settings.into_generator().into_root_schema_for::<T>()
}

fn written<T: JsonSchema>() -> Schema {
    of::<T>(Contract::Serialize)
}

fn read<T: JsonSchema>() -> Schema {
    of::<T>(Contract::Deserialize)
}

/// A problem file has a target and drafts, or a block: which one is not in a type.
fn problem() -> Schema {
    let mut schema = read::<crate::problem::File>();
    let names = |all: &[&str]| all.iter().map(|name| json!(name)).collect::<Vec<_>>();
    let schemes = names(&SchemeName::ALL.map(SchemeName::as_str));
    let verifiers = names(&VerifierName::ALL.map(VerifierName::as_str));
    if let Some(Value::Object(tables)) = schema.get_mut("$defs") {
        let scheme = &mut tables["DraftTable"]["properties"]["scheme"];
        *scheme = json!({"description": "The draft law.", "enum": schemes});
        tables["DraftTable"]["required"] = json!(["scheme"]);
        let rates = &mut tables["ExpectedTable"]["properties"]["acceptance_rate"];
        rates["propertyNames"] = json!({"enum": verifiers});
    }
    schema.insert("required".to_owned(), json!(["schema", "name"]));
    schema.insert(
        "oneOf".to_owned(),
        json!([
            {"required": ["target", "drafts", "draft"], "properties": {"block": false}},
            {"required": ["block"], "properties": {"target": false, "draft": false, "rule": false}},
        ]),
    );
    schema
}

fn schema(name: &str) -> Schema {
    match name {
        "problem" => problem(),
        "log" => read::<crate::log::Index>(),
        "timings" => read::<crate::replay::Timings>(),
        "tree-topology" => read::<printed::TreeTopology>(),
        "certificate" => read::<crate::certify::Certificate>(),
        "baseline" => read::<crate::claims::Baseline>(),
        "solve" => written::<printed::Line<printed::Solve>>(),
        "verify" => written::<printed::Line<printed::Verify>>(),
        "block" => written::<printed::Line<printed::Block>>(),
        "certify" => written::<crate::cli::schema::Certified>(),
        "check" => written::<crate::report::check::Json<'_>>(),
        "gap" => written::<crate::gap::GapReport>(),
        "comparison" => written::<crate::gap::LogComparison>(),
        "length" => written::<crate::replay::LengthReport>(),
        "tree" => written::<crate::replay::TreeReport>(),
        "paths" => written::<crate::replay::PathsReport>(),
        "audit" => written::<crate::audit::AuditReport>(),
        "import" => written::<printed::Import>(),
        "conformance" => written::<crate::conformance::Manifest>(),
        "explain" => written::<crate::cli::schema::Explained<'_>>(),
        other => panic!("{other} has no type"),
    }
}

/// What a doc comment says to readers of JSON: its first paragraph, without links of Rust.
fn plain(description: &str) -> String {
    let first = description.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("[`", "`")
        .replace("`]", "`")
        .replace("\\[", "[")
        .replace("\\]", "]")
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = plain(text);
            }
            fields.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The text of the schema of a name.
pub(crate) fn file(name: &str) -> String {
    let about = SCHEMAS.iter().find(|one| one.name == name).unwrap().about;
    let mut object = Map::new();
    let Value::Object(made) = schema(name).to_value() else {
        panic!("{name} is no object");
    };
    for (key, value) in made {
        // Names of types say nothing to a reader.
        let value = match key.as_str() {
            "title" => json!(format!("specgap {}: {about}", env!("CARGO_PKG_VERSION"))),
            _ => value,
        };
        object.insert(key, value);
    }
    let mut value = Value::Object(object);
    tidy(&mut value);
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn path(name: &str) -> PathBuf {
    root().join("docs/schema").join(format!("{name}.json"))
}

#[test]
fn schemas_are_those_of_the_types() {
    let mut known = Vec::new();
    for one in SCHEMAS {
        let text = file(one.name);
        known.push(path(one.name));
        if std::env::var_os("SPECGAP_WRITE_DOCUMENTS").is_some() {
            std::fs::write(path(one.name), text).unwrap();
            continue;
        }
        assert!(
            text == one.text,
            "docs/schema/{}.json is not what the types say; write it by \
             SPECGAP_WRITE_DOCUMENTS=1 cargo test --lib schemas",
            one.name
        );
    }
    let folder = std::fs::read_dir(root().join("docs/schema")).unwrap();
    for entry in folder {
        let path = entry.unwrap().path();
        assert!(known.contains(&path), "{} is of nothing", path.display());
    }
}

#[test]
fn descriptions_are_first_paragraphs() {
    assert_eq!(
        plain("A [`Known`] of E\\[tau\\],\nin one\nline.\n\n# Example\ncode"),
        "A `Known` of E[tau], in one line."
    );
}
