//! InferenceX: golden acceptance lengths, one model and one mode.

use super::data::{Profile, one_line, rounded};

/// `MODEL: {MODE: {K: mean}}`, with the bonus token, to two decimals. A log does not say whether the
/// target was thinking, so that the mode is a name to be checked.
pub(super) fn file(profile: &Profile) -> (String, Vec<u8>) {
    let mut text = String::new();
    text.push_str("# Acceptance Length (AL) reference values measured with specgap.\n");
    for line in profile.source.lines() {
        text.push_str(&format!("# {line}\n"));
    }
    text.push_str(
        "# The mode is not in the log: name it thinking_on if the target was. Name the file \
         MODEL_METHOD.yaml.\n#\n# key = num_speculative_tokens; value = mean AL, the bonus token \
         included\n",
    );
    let model = profile.source.target.as_deref().unwrap_or("model");
    text.push_str(&format!("{}:\n  thinking_off:\n", quoted(model)));
    for curve in &profile.curves {
        let longest = curve.length as f64 + 1.0;
        let mean = rounded(curve.acceptance_length.mean, 2).clamp(1.0, longest);
        text.push_str(&format!("    {}: {mean:.2}\n", curve.length));
    }
    ("inferencex.yaml".to_owned(), text.into_bytes())
}

/// A name as a YAML key: plain where that is safe, else in double quotes.
fn quoted(name: &str) -> String {
    let name = one_line(name);
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    // Words that YAML takes for something else are short.
    match letter && name.len() > 5 && name.chars().all(plain) {
        true => name,
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_keys() {
        for (name, key) in [
            ("qwen3.8-27b", "qwen3.8-27b"),
            ("null", "\"null\""),
            ("1e5", "\"1e5\""),
            ("a: b\n# c", "\"a: b # c\""),
            // YAML ends lines at these, and eyes turn at the last.
            (
                "a\u{2028}b\u{2029}\u{85}",
                "\"a\\\\u{2028}b\\\\u{2029}\\\\u{85}\"",
            ),
            ("a\u{202e}", "\"a\\\\u{202e}\""),
            ("say \"x\" \\ y", "\"say \\\"x\\\" \\\\ y\""),
        ] {
            assert_eq!(quoted(name), key);
        }
    }
}
