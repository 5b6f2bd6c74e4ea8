//! The reference of JSON, from the schemas.

use super::{cell, filled, root};
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

/// Tells whether a definition is an object whose fields are described by themselves.
fn has_fields(definition: &Value) -> bool {
    definition["properties"].is_object()
}

impl Described<'_> {
    /// Says what values a schema takes, in a word or a few.
    fn kind(&self, schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = name_of(reference);
            let definition = &self.definitions[name];
            if has_fields(definition) {
                let key = (name.to_owned(), definition.to_string());
                let document = self.first.get(&key).map_or(self.document, String::as_str);
                return format!("[{name}](#{document}-{})", name.to_ascii_lowercase());
            }
            // How well a number is known has a page of its own.
            if name == "Kind" {
                return "[kind](certainty.md#kinds)".to_owned();
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

    /// The rows of a table of the fields of an object, by the names of the fields.
    fn fields(&self, object: &Value) -> Vec<(String, String)> {
        let mut rows = Vec::new();
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
            let row = format!("|`{name}`{mark}|{kind}|{}|\n", cell(words));
            rows.push((name.clone(), row));
        }
        rows
    }
}

fn table<'a>(rows: impl Iterator<Item = &'a (String, String)>) -> String {
    let rows: String = rows.map(|(_, row)| row.as_str()).collect();
    match rows.is_empty() {
        true => rows,
        false => format!("\n|field|type|meaning|\n|---|---|---|\n{rows}"),
    }
}

/// Where what is described in several documents was described first.
#[derive(Default)]
struct Earlier {
    /// By the name and the text of a definition.
    definitions: BTreeMap<(String, String), String>,
    /// By the row of a field of a document itself.
    fields: BTreeMap<String, String>,
}

/// A table of the fields of a document itself, those apart that an earlier document has.
fn of_the_document(
    name: &str,
    rows: &[(String, String)],
    earlier: &mut BTreeMap<String, String>,
) -> String {
    let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut own = Vec::new();
    for field in rows {
        let first = earlier
            .entry(field.1.clone())
            .or_insert_with(|| name.to_owned());
        match first == name {
            true => own.push(field),
            false => same
                .entry(first.clone())
                .or_default()
                .push(format!("`{}`", field.0)),
        }
    }
    let mut text = table(own.into_iter());
    for (first, names) in same {
        text.push_str(&format!(
            "\nAs in [{first}](#{first}): {}.\n",
            names.join(", ")
        ));
    }
    text
}

/// The tables of a document and of the objects in it that no earlier one has.
fn document(name: &str, earlier: &mut Earlier) -> String {
    let about = SCHEMAS.iter().find(|one| one.name == name).unwrap().about;
    let schema: Value = serde_json::from_str(&crate::schemas::file(name)).unwrap();
    let none = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&none);
    let mut own: Vec<&String> = Vec::new();
    for (definition, value) in definitions {
        let key = (definition.clone(), value.to_string());
        if has_fields(value) && !earlier.definitions.contains_key(&key) {
            earlier.definitions.insert(key, name.to_owned());
            own.push(definition);
        }
    }
    let described = Described {
        document: name,
        definitions,
        first: &earlier.definitions,
    };
    let mut text = format!(
        "\n## {name}\n\nThe schema `{name}` describes {}.\n",
        cell(about)
    );
    if has_fields(&schema) {
        let rows = described.fields(&schema);
        text.push_str(&of_the_document(name, &rows, &mut earlier.fields));
    } else {
        text.push_str(&format!("\nIt is one of: {}.\n", described.kind(&schema)));
    }
    for definition in own {
        let value = &definitions[definition];
        text.push_str(&format!("\n### {name} {definition}\n"));
        if let Some(words) = value["description"].as_str() {
            text.push_str(&format!("\n{}\n", cell(words)));
        }
        text.push_str(&table(described.fields(value).iter()));
    }
    text
}

/// The tables of some documents, each object once.
pub(super) fn tables(names: &str) -> String {
    let mut earlier = Earlier::default();
    let names = names.split(' ');
    let texts: String = names.map(|name| document(name, &mut earlier)).collect();
    format!("\n{texts}\n")
}

/// The documents that commands print.
pub(super) const PRINTED: &str = "solve verify block certify check gap comparison length tree paths relaxed \
    audit counters import conformance conformance-trees explain";

/// The pages that have documents, and which.
const PAGES: [(&str, &str); 3] = [
    ("docs/reference/json.md", PRINTED),
    (
        "docs/reference/problem-files.md",
        "problem certificate baseline timings tree-topology",
    ),
    ("docs/reference/log-format.md", "log"),
];

/// The schemas are committed, and the tables say nothing else: so they are in the book alone.
/// `scripts/book` names the folder of its pages in the environment.
#[test]
fn every_schema_is_in_the_reference_of_the_book() {
    let mut known = Vec::new();
    for (page, names) in PAGES {
        known.extend(names.split(' '));
        let tables = tables(names);
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for name in names.split(' ') {
            assert!(tables.contains(&format!("\n## {name}\n")), "{page}: {name}");
            assert!(
                text.contains(&format!("schema/{name}.json)")),
                "{page}: {name}"
            );
        }
        if let Some(folder) = std::env::var_os("SPECGAP_BOOK") {
            let page = std::path::Path::new(&folder).join(page);
            std::fs::write(page, filled(&text, "json", &tables)).unwrap();
        }
    }
    for one in SCHEMAS {
        assert!(known.contains(&one.name), "{}", one.name);
    }
    assert_eq!(known.len(), SCHEMAS.len());
}
