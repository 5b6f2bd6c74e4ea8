//! Text of unknown origin, such as a prompt's name in a log, as people and programs are shown it.

/// The text with what is not seen made visible, as `\u{1b}`: control characters but line ends and
/// tabs, and what turns or hides the text around it. Terminals obey some of these, and eyes the
/// others.
pub fn visible(text: String) -> String {
    if !text.chars().any(is_hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Left and right, embedded, overridden and isolated.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => {
            true
        }
        // Lines and paragraphs, blanks of no width, annotations, and tags.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// A text as a field of comma-separated values. What a spreadsheet would take for a formula
/// stands behind an apostrophe, which spreadsheets take for the sign of a text; numbers stay.
pub fn csv(text: &str) -> String {
    let begins = |c: char| "=+-@\t\r\n\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(c);
    let mark = if text.starts_with(begins) && text.parse::<f64>().is_err() {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{mark}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{mark}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_seen() {
        let seen = |text: &str| visible(text.to_owned());
        assert_eq!(
            seen("\u{1b}]0;x\u{7}\u{1b}[2J"),
            "\\u{1b}]0;x\\u{7}\\u{1b}[2J"
        );
        assert_eq!(seen("a\u{202e}b\u{9b}c\rd"), "a\\u{202e}b\\u{9b}c\\u{d}d");
        for plain in ["α* ± 1\n\tnext", "naïve 日本 👩\u{200d}🔬", "مرحبا"] {
            assert_eq!(seen(plain), plain);
        }
    }

    #[test]
    fn a_spreadsheet_finds_no_formula() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+", "'+"),
            ("-x", "'-x"),
            ("\t=1", "'\t=1"),
            ("=a,\"b\"", "\"'=a,\"\"b\"\"\""),
            ("\r=1", "\"'\r=1\""),
            ("＝1", "'＝1"),
            ("-0.5", "-0.5"),
            ("+1e-3", "+1e-3"),
            ("a=b", "a=b"),
            ("a, b", "\"a, b\""),
            ("", ""),
        ] {
            assert_eq!(csv(text), field);
        }
    }
}
