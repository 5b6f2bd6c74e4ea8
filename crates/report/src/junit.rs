//! Results of checks as JUnit XML.

use std::fmt::Write as _;

/// One test case.
#[derive(Default)]
pub(super) struct Case {
    /// Its class, `specgap.claims`.
    pub class: String,
    /// What is tested: a claim, a problem or a number.
    pub name: String,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Why it was not tested, if it was not.
    pub skipped: Option<String>,
    /// What is wrong; empty if nothing is.
    pub failures: Vec<String>,
    /// What was found, whether it is as expected or not.
    pub found: String,
}

/// One suite of cases; `failed` is what its failures are called.
pub(super) fn suite(name: &str, failed: &str, cases: &[Case]) -> String {
    let of = |is_so: fn(&Case) -> bool| cases.iter().filter(|case| is_so(case)).count();
    let skipped = of(|case| case.skipped.is_some());
    let time: f64 = cases.iter().map(|case| case.seconds).sum();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{time:.3}\"",
        cases.len(),
        of(|case| !case.failures.is_empty())
    );
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"{name}\" {counts}>");
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" skipped=\"{skipped}\" {counts}>"
    );
    for case in cases {
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            case.class,
            escape(&case.name),
            case.seconds
        );
        if let Some(why) = &case.skipped {
            let _ = writeln!(out, "><skipped message=\"{}\"/></testcase>", escape(why));
            continue;
        }
        if case.failures.is_empty() && case.found.is_empty() {
            out.push_str("/>\n");
            continue;
        }
        out.push_str(">\n");
        if let Some(first) = case.failures.first() {
            let _ = writeln!(
                out,
                "      <failure message=\"{}\" type=\"{failed}\">{}</failure>",
                escape(first),
                escape(&case.failures.join("\n"))
            );
        }
        if !case.found.is_empty() {
            let found = escape(&case.found);
            let _ = writeln!(out, "      <system-out>{found}</system-out>");
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// Text as XML takes it: markup escaped, control characters that XML 1.0 has no
/// way to write replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if (c as u32) < 0x20 || c == '\u{fffe}' || c == '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
