//! How long a text may become on its way through the steps of a tokenizer.
//!
//! A `tokenizer.json` may replace each `a` by `aa` as often as it likes, and the library that
//! runs it stops for nothing. Here each step is bounded by itself, and the bounds multiply.

use serde::Serialize;
use serde_json::Value;
use tokenizers::Tokenizer;

/// The most that one part may do to a text of any length.
const MOST: f64 = 1e6;

/// How many times as long a text may become, part by part.
pub(super) struct Growth([(&'static str, f64); 4]);

impl Growth {
    /// Of everything that a tokenizer does beside its model, which makes no more tokens than
    /// there are bytes.
    pub(super) fn of(tokenizer: &Tokenizer) -> Self {
        Self([
            ("normalizer", part(tokenizer.get_normalizer())),
            ("pre_tokenizer", part(tokenizer.get_pre_tokenizer())),
            ("post_processor", part(tokenizer.get_post_processor())),
            ("decoder", part(tokenizer.get_decoder())),
        ])
    }

    /// The part that is not to be run on any text.
    pub(super) fn too_much(&self) -> Option<(&'static str, f64)> {
        self.0.iter().copied().find(|&(_, times)| times > MOST)
    }

    /// From a text to its tokens.
    pub(super) fn encoding(&self) -> f64 {
        self.0.iter().take(3).map(|(_, times)| times).product()
    }
}

/// As the library reads it, whatever the file calls it.
fn part(part: Option<&impl Serialize>) -> f64 {
    part.and_then(|part| serde_json::to_value(part).ok())
        .map_or(1.0, |part| times(&part))
}

/// A bound on the bytes, or the tokens, behind a step for each before it.
fn times(step: &Value) -> f64 {
    let lists = ["normalizers", "pretokenizers", "processors", "decoders"];
    if let Some(steps) = lists.iter().find_map(|list| step.get(list)?.as_array()) {
        return steps.iter().map(times).product();
    }
    let length = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, str::len) as f64;
    let content = || length(step.get("content"));
    match step.get("type").and_then(Value::as_str) {
        Some("Replace") => match step.get("pattern").and_then(|one| one.get("String")) {
            Some(pattern) if length(Some(pattern)) > 0.0 => {
                (content() / length(Some(pattern))).max(1.0)
            }
            // A regular expression may find nothing between any two letters.
            _ => 1.0 + content(),
        },
        Some("Prepend") => 1.0 + length(step.get("prepend")),
        // The longest compatibility decomposition has 33 bytes for 3.
        Some("NFKC" | "NFKD") => 11.0,
        Some("NFC" | "NFD" | "Lowercase") => 3.0,
        Some("BertNormalizer") => 15.0,
        Some("ByteLevel") => 2.0,
        Some("Metaspace") => 4.0,
        // Its table may say anything; those that are in use do what NFKC does.
        Some("Precompiled") => 11.0,
        Some("TemplateProcessing") => {
            let pieces = |name: &str| step.get(name)?.as_array().map(Vec::len);
            pieces("single").unwrap_or(1).max(1) as f64
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tokenizer_that_doubles_texts_too_often_is_not_run() {
        use crate::{CaptureError, ChatTemplate, Prompt, Stop, TextCodec};
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let file = format!("{root}/tests/fixtures/tiny-model/tokenizer.json");
        let plain: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let read = |part: &str, list: &str, count: usize| {
            let step = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
            let mut tokenizer = plain.clone();
            tokenizer[part] = json!({"type": "Sequence", list: vec![step; count]});
            let path = folder.path().join("tokenizer.json");
            std::fs::write(&path, tokenizer.to_string()).unwrap();
            TextCodec::read(&path, ChatTemplate::None, &Stop::Never)
        };
        for (part, list) in [("normalizer", "normalizers"), ("decoder", "decoders")] {
            let refused = read(part, list, 40).map(drop).unwrap_err();
            assert!(matches!(refused, CaptureError::Tokenizer(..)));
            assert!(refused.to_string().contains(part), "{refused}");
        }
        let codec = read("normalizer", "normalizers", 19).unwrap();
        let encode = |text: &str| {
            let prompt = Prompt {
                id: "p".to_owned(),
                text: text.to_owned(),
            };
            codec.encode(&[prompt], usize::MAX).map(drop)
        };
        encode("bcd").unwrap();
        let refused = encode(&"a".repeat(5000)).unwrap_err().to_string();
        assert!(refused.contains("shorten it"), "{refused}");
    }

    #[test]
    fn bounds_of_steps_multiply() {
        let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
        assert_eq!(times(&double), 2.0);
        let many = vec![double.clone(); 40];
        let many = json!({"type": "Sequence", "normalizers": many});
        assert_eq!(times(&many), 2f64.powi(40));
        let nested = json!({"type": "Sequence", "decoders": [many, double]});
        assert_eq!(times(&nested), 2f64.powi(41));
        let steps = r#"
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"} -> 3
            {"type": "Replace", "pattern": {"String": "  "}, "content": " "} -> 1
            {"type": "Replace", "pattern": {"String": ""}, "content": "aa"} -> 3
            {"type": "Replace", "pattern": {"Regex": "x*"}, "content": "aa"} -> 3
            {"type": "Prepend", "prepend": "▁"} -> 4
            {"type": "ByteLevel", "add_prefix_space": true} -> 2
            {"type": "TemplateProcessing", "single": [{}, {}, {}]} -> 3
            {"type": "Strip"} -> 1
            null -> 1
        "#;
        for line in steps.trim().lines() {
            let (step, bound) = line.split_once(" -> ").unwrap();
            let step: Value = serde_json::from_str(step).unwrap();
            assert_eq!(times(&step), bound.parse::<f64>().unwrap(), "{step}");
        }
    }
}
