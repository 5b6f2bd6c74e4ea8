//! JSON Schemas of what the program reads and writes, made from the types: docs/schema.
//!
//! Types that are serialised by derivation are described by derivation, and with
//! `SPECGAP_WRITE_DOCUMENTS=1` in the environment the test writes the files.

use crate::cli::schema::{Described, SCHEMAS};
use crate::scheme::SchemeName;
use crate::verifier::VerifierName;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A tree file: EAGLE's list of paths of child ranks.
#[derive(JsonSchema)]
#[allow(dead_code)] // read by the derivation alone
struct TreeTopology(Vec<Vec<usize>>);

/// What an import made, and the version of this.
#[derive(JsonSchema)]
#[allow(dead_code)] // read by the derivation alone
struct Import {
    /// 1.
    schema: u32,
    #[serde(flatten)]
    made: crate::import::Imported,
}

/// One result, or why there is none.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)] // read by the derivation alone
enum Line<T> {
    Result(T),
    NotTaken(crate::evaluate::NotTaken<'static>),
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

fn described(name: &str) -> &'static Described {
    SCHEMAS.iter().find(|one| one.name == name).unwrap()
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
        "tree-topology" => read::<TreeTopology>(),
        "certificate" => read::<crate::certify::Certificate>(),
        "baseline" => read::<crate::claims::Baseline>(),
        "solve" => written::<Line<crate::evaluate::Solve<'_>>>(),
        "verify" => written::<Line<crate::evaluate::Verify<'_>>>(),
        "block" => written::<Line<crate::evaluate::Block<'_>>>(),
        "certify" => written::<crate::cli::schema::Certified>(),
        "check" => written::<crate::report::check::Json<'_>>(),
        "gap" => written::<crate::gap::GapReport>(),
        "comparison" => written::<crate::gap::LogComparison>(),
        "length" => written::<crate::replay::LengthReport>(),
        "tree" => written::<crate::replay::TreeReport>(),
        "paths" => written::<crate::replay::PathsReport>(),
        "relaxed" => written::<crate::replay::RelaxedReport>(),
        "audit" => written::<crate::audit::AuditReport>(),
        "counters" => written::<crate::counters::CountersReport>(),
        "import" => written::<Import>(),
        "conformance" => written::<crate::conformance::Manifest>(),
        "conformance-trees" => written::<crate::cli::conformance::TreeVectors>(),
        "explain" => written::<crate::cli::schema::Explained<'_>>(),
        other => panic!("{other} has no type"),
    }
}

/// Makes a doc comment what readers of JSON need: its first paragraph, without links of Rust.
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
    let about = described(name).about;
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
