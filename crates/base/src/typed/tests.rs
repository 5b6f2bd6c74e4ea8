//! A refusal reads as the format's own reader refuses, wherever the text is broken.

use super::json;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // only what is refused is looked at
struct Whole {
    name: String,
    count: u8,
    share: Option<f64>,
    list: Vec<Part>,
    #[serde(default)]
    by_number: BTreeMap<u32, f32>,
    #[serde(default)]
    pair: Option<[i64; 2]>,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    any: Option<Any>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Part {
    at: usize,
    #[serde(flatten)]
    rest: Rest,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Rest {
    text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code)]
enum Kind {
    #[default]
    None,
    Some,
    Held {
        by: String,
    },
    Both(u8),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
#[allow(dead_code)]
enum Any {
    Number(f64),
    Text(String),
}

/// What serde_json says of a text, and what is said here.
fn both<T: DeserializeOwned + Debug>(text: &str) -> [Result<String, String>; 2] {
    let mut document = serde_json::Deserializer::from_str(text);
    let theirs = serde_path_to_error::deserialize::<_, T>(&mut document)
        .map(|value| format!("{value:?}"))
        .map_err(|error| format!("{} / {}", error.path(), error.inner()));
    let ours = json::<T>(text)
        .map(|(value, _)| format!("{value:?}"))
        .map_err(|error| format!("{} / {}", error.path, error.error));
    [theirs, ours]
}

fn both_toml<T: DeserializeOwned + Debug>(text: &str) -> [Result<String, String>; 2] {
    let theirs = toml::Deserializer::parse(text)
        .map_err(|error| format!(". / {error}"))
        .and_then(|document| {
            serde_path_to_error::deserialize::<_, T>(document)
                .map(|value| format!("{value:?}"))
                .map_err(|error| format!("{} / {}", error.path(), error.inner()))
        });
    let ours = super::toml::<T>(text)
        .map(|value| format!("{value:?}"))
        .map_err(|error| format!("{} / {}", error.path, error.error));
    [theirs, ours]
}

const SOUND: &str = r#"{
  "name": "n",
  "count": 3,
  "share": null,
  "list": [
    {"at": 1, "text": "a"},
    {"at": 2, "text": "b"}
  ],
  "by_number": {"1": 0.5, "2": 1},
  "pair": [1, -2],
  "kind": {"held": {"by": "me"}},
  "any": 1.5
}"#;

#[test]
fn texts_are_refused_in_the_words_of_serde_json() {
    assert!(json::<Whole>(SOUND).is_ok());
    let values = [
        "null",
        "true",
        "-1",
        "7",
        "300",
        "1.5",
        "1e30",
        "18446744073709551616",
        "\"x\"",
        "\"some\"",
        "[]",
        "[1]",
        "[1, 2, 3]",
        "{}",
        "{\"a\": 1}",
        "{\"both\": 3}",
        "{\"both\": \"x\"}",
        "{\"held\": {}}",
        "{\"none\": null}",
        "{\"3\": \"x\"}",
    ];
    let mut wrong = Vec::new();
    let mut tried = 0;
    for part in [
        "\"n\"",
        "3",
        "null",
        "1",
        "\"a\"",
        "2",
        "0.5",
        "[1, -2]",
        "{\"held\": {\"by\": \"me\"}}",
        "\"me\"",
        "1.5",
        "{\"at\": 2, \"text\": \"b\"}",
        "\"count\"",
        "\"by\"",
        "\"text\"",
    ] {
        for value in values {
            let text = SOUND.replacen(part, value, 1);
            let [theirs, ours] = both::<Whole>(&text);
            tried += 1;
            if theirs != ours {
                wrong.push(format!("{part} -> {value}\n  {theirs:?}\n  {ours:?}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {tried}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

const SOUND_TOML: &str = r#"
name = "n"
count = 3
list = [{at = 1, text = "a"}, {at = 2, text = "b"}]
pair = [1, -2]
any = 1.5

[kind]
held = {by = "me"}
"#;

#[test]
fn texts_are_refused_in_the_words_of_toml() {
    assert!(super::toml::<Whole>(SOUND_TOML).is_ok());
    let values = [
        "true",
        "-1",
        "7",
        "300",
        "1.5",
        "1e30",
        "\"x\"",
        "\"some\"",
        "[]",
        "[1]",
        "[1, 2, 3]",
        "{}",
        "{a = 1}",
        "[",
        "2020-01-01",
        "\"",
        "{both = 3}",
        "{both = \"x\"}",
        "99999999999999999999",
    ];
    let mut wrong = Vec::new();
    for part in [
        "\"n\"",
        "3",
        "1",
        "\"a\"",
        "[1, -2]",
        "1.5",
        "\"me\"",
        "count",
        "{at = 2, text = \"b\"}",
    ] {
        for value in values {
            let text = SOUND_TOML.replacen(part, value, 1);
            let [theirs, ours] = both_toml::<Whole>(&text);
            if theirs != ours {
                wrong.push(format!("{part} -> {value}\n  {theirs:?}\n  {ours:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn fields_are_read_by_name_and_not_by_place() {
    let text = r#"["a", 1, null, [], {}, null, "none", null]"#;
    let [theirs, _] = both::<Whole>(text);
    assert!(theirs.is_ok(), "serde_json takes them by place: {theirs:?}");
    let refused = json::<Whole>(text).err().map(|error| error.to_string());
    assert_eq!(
        refused.as_deref(),
        Some("invalid type: sequence, expected struct Whole at line 1 column 0")
    );
}
