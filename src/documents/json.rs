//! The reference of JSON, from the schemas.

use super::cell;
use crate::cli::schema::SCHEMAS;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is known of the objects that a schema defines, and where they were described.
struct Described<'a> {
    /// The document that is being described.
    document: &'a str,
    /// Its definitions.
    definitions: &'a Map<String, Value>,
    /// The document in which an equal definition was described first.
    first: &'a BTreeMap<(String, String), String>,
}

fn name_of(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// Whether a definition is an object whose fields are described by themselves.
fn has_fields(definition: &Value) -> bool {
    definition["properties"].is_object()
}

impl Described<'_> {
    /// What values a schema takes, in a word or a few.
    fn kind(&self, schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = name_of(reference);
            let definition = &self.definitions[name];
            if has_fields(definition) {
                let key = (name.to_owned(), definition.to_string());
                let document = self.first.get(&key).map_or(self.document, String::as_str);
                return format!("[{name}](#{document}-{})", name.to_ascii_lowercase());
            }
            return self.kind(definition);
        }
        if let Some(value) = schema.get("const") {
            return format!("`{}`", value.as_str().unwrap_or_default());
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[choice].as_array() {
                let kinds: Vec<String> = choices.iter().map(|one| self.kind(one)).collect();
                return kinds.join(", ").replace(", null", " or null");
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            let names = values.iter().filter_map(Value::as_str);
            return names
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ");
        }
        let one = |name: &str| match name {
            "array" => match schema.get("items") {
                Some(items) => format!("list of {}", self.kind(items)),
                None => "list".to_owned(),
            },
            "object" => match schema.get("additionalProperties") {
                Some(Value::Object(values)) if !values.is_empty() => {
                    format!("by name, {}", self.kind(&Value::Object(values.clone())))
                }
                _ => "object".to_owned(),
            },
            "string" => "text".to_owned(),
            other => other.to_owned(),
        };
        match &schema["type"] {
            Value::String(name) => one(name),
            Value::Array(names) => {
                let names: Vec<String> = names.iter().filter_map(Value::as_str).map(one).collect();
                names.join(" or ")
            }
            _ => "any".to_owned(),
        }
    }

    /// A table of the fields of an object.
    fn fields(&self, object: &Value) -> String {
        let mut text = String::from("\n|field|type|meaning|\n|---|---|---|\n");
        let required = object["required"].as_array();
        for (name, field) in object["properties"].as_object().into_iter().flatten() {
            if *field == Value::Bool(false) {
                continue;
            }
            let needed = required.is_some_and(|all| all.iter().any(|one| one == name));
            let kind = self.kind(field);
            // What may be absent is absent where it would be null, or null.
            let (mark, kind) = match needed {
                true => ("", kind.as_str()),
                false => ("?", kind.trim_end_matches(" or null")),
            };
            let words = field["description"].as_str().unwrap_or_default();
            let words = words.trim_end_matches('.');
            text.push_str(&format!("|`{name}`{mark}|{kind}|{}|\n", cell(words)));
        }
        text
    }
}

/// The tables of a document and of the objects in it that no earlier one has.
fn document(name: &str, first: &mut BTreeMap<(String, String), String>) -> String {
    let about = SCHEMAS.iter().find(|one| one.name == name).unwrap().about;
    let schema: Value = serde_json::from_str(&crate::schemas::file(name)).unwrap();
    let none = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&none);
    let mut own: Vec<&String> = Vec::new();
    for (definition, value) in definitions {
        let key = (definition.clone(), value.to_string());
        if has_fields(value) && !first.contains_key(&key) {
            first.insert(key, name.to_owned());
            own.push(definition);
        }
    }
    let described = Described {
        document: name,
        definitions,
        first,
    };
    let mut text = format!(
        "\n## {name}\n\nThe schema `{name}` describes {}.\n",
        cell(about)
    );
    if has_fields(&schema) {
        text.push_str(&described.fields(&schema));
    } else {
        text.push_str(&format!("\nIt is one of: {}.\n", described.kind(&schema)));
    }
    for definition in own {
        let value = &definitions[definition];
        text.push_str(&format!("\n### {name} {definition}\n"));
        if let Some(words) = value["description"].as_str() {
            text.push_str(&format!("\n{}\n", cell(words)));
        }
        text.push_str(&described.fields(value));
    }
    text
}

/// The tables of some documents, each object once.
pub(super) fn tables(names: &[&str]) -> String {
    let mut first = BTreeMap::new();
    let texts: Vec<String> = (names.iter())
        .map(|name| document(name, &mut first))
        .collect();
    format!("\n{}\n", texts.concat())
}

/// The documents that commands print.
pub(super) const PRINTED: [&str; 14] = [
    "solve",
    "verify",
    "block",
    "certify",
    "check",
    "gap",
    "comparison",
    "length",
    "tree",
    "paths",
    "audit",
    "import",
    "conformance",
    "explain",
];

/// The documents that commands read, by the page that has them.
pub(super) const READ: [(&str, &[&str]); 2] = [
    (
        "docs/reference/problem-files.md",
        &[
            "problem",
            "certificate",
            "baseline",
            "timings",
            "tree-topology",
        ],
    ),
    ("docs/reference/log-format.md", &["log"]),
];

#[test]
fn every_schema_is_in_a_reference() {
    let mut known: Vec<&str> = PRINTED.to_vec();
    known.extend(READ.iter().flat_map(|(_, names)| names.iter()));
    for one in SCHEMAS {
        assert!(known.contains(&one.name), "{}", one.name);
    }
    assert_eq!(known.len(), SCHEMAS.len());
}
