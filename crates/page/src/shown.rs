//! Text of unknown origin, such as a prompt's name in a log, as people and programs are shown it.

pub use specgap_base::visible::visible;

/// A text as a field of comma-separated values, [`visible`]. What a spreadsheet would take for a formula
/// stands behind an apostrophe, which spreadsheets take for the sign of a text; numbers stay.
pub fn csv(text: &str) -> String {
    let text = &visible(text.to_owned());
    let begins = |c: char| "=+-@\t\r\n\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(c);
    let mark = match text.starts_with(begins) && text.parse::<f64>().is_err() {
        true => "'",
        false => "",
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{mark}{}\"", text.replace('"', "\"\"")),
        false => format!("{mark}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spreadsheet_finds_no_formula() {
        for (text, field) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+", "'+"),
            ("-x", "'-x"),
            ("\t=1", "'\t=1"),
            ("=a,\"b\"", "\"'=a,\"\"b\"\"\""),
            ("\r=1", "\\u{d}=1"),
            ("a\u{1b}[2J\u{85}\u{202e}", "a\\u{1b}[2J\\u{85}\\u{202e}"),
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
