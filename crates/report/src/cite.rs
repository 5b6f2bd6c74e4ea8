//! What a paper cites: specgap, and the papers whose rules and laws a report has, as BibTeX.

use serde_json::Value;

/// The file of the repository that says who made specgap, and when.
const CITATION: &str = include_str!("../../../CITATION.cff");

/// Papers whose title, authors and number were looked up (docs/project/sources.md says what each has).
/// Before each stand the names of a report's rules and laws that are from it; none if it is always
/// cited, as one draft is in every report.
const PAPERS: &str = include_str!("papers.bib");

/// Each paper as BibTeX, with the names.
fn papers() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    let papers = PAPERS.split('%').filter_map(|paper| paper.split_once('\n'));
    papers.map(|(names, entry)| (names.split_whitespace().collect(), entry))
}

/// BibTeX of specgap, and of the papers whose rules and laws stand in a report; of all papers
/// without one. `tool` is what wrote the report, with its version.
///
/// # Example
/// ```
/// use specgap_report::cite::bibtex;
/// let report = serde_json::json!({"tool": "specgap 0.1.0", "cells": [{"scheme": "hub"}]});
/// let text = bibtex(Some(&report));
/// assert!(text.contains("title = {{SpecHub}: Provable") && !text.contains("Sequoia"));
/// assert!(bibtex(None).contains("Sequoia"));
/// ```
pub fn bibtex(report: Option<&Value>) -> String {
    let mut found = Vec::new();
    if let Some(report) = report {
        strings(report, &mut found);
    }
    let tool = report.and_then(|report| report.get("tool")?.as_str());
    let mut out = software(tool);
    for (names, entry) in papers() {
        let always = report.is_none() || names.is_empty();
        if always || names.iter().any(|name| found.contains(name)) {
            out.push_str(&format!("\n{entry}"));
        }
    }
    out
}

/// Every text in the data, but not the names of its fields.
fn strings<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(all) => all.iter().for_each(|one| strings(one, into)),
        Value::Object(fields) => fields.values().for_each(|one| strings(one, into)),
        _ => {}
    }
}

/// A field of the citation file, where it stands on a line of its own.
fn field(name: &str) -> Option<&'static str> {
    let mut lines = CITATION.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
    Some(value.trim_matches('"'))
}

fn software(tool: Option<&str>) -> String {
    let usual = specgap_log::log::tool();
    let version = tool.unwrap_or(&usual).trim_start_matches("specgap ");
    let date = field("date-released").unwrap_or_default();
    let year = date.split('-').next().unwrap_or_default();
    let mut out = format!(
        "@misc{{specgap,\n  author = {{{{The specgap authors}}}},\n  title = {{{}}},\n  year = \
         {{{year}}},\n  note = {{Version {version}}},\n",
        field("title").unwrap_or("specgap")
    );
    // Where there is one.
    if let Some(url) = field("repository-code").or_else(|| field("url")) {
        out.push_str(&format!("  url = {{{url}}},\n"));
    }
    out + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_core::rule::RULES;
    use specgap_core::scheme::SchemeName;

    /// No name is one that reports never have, and every field that is cited is in the file.
    #[test]
    fn papers_go_by_names_of_rules_and_laws() {
        let others = ["lemma-5.1", "sequoia"];
        for (names, entry) in papers() {
            for name in names {
                assert!(
                    RULES.iter().any(|rule| rule.name == name)
                        || name.parse::<SchemeName>().is_ok()
                        || others.contains(&name),
                    "{name}"
                );
            }
            assert_eq!(bibtex(None).matches(entry).count(), 1);
        }
        assert_eq!(field("version"), Some(env!("CARGO_PKG_VERSION")));
        let date: Vec<usize> = field("date-released")
            .unwrap()
            .split('-')
            .map(|part| part.parse().unwrap())
            .collect();
        assert!(date.len() == 3 && date[0] >= 2025);
    }

    #[test]
    fn a_report_cites_what_it_has() {
        let report = serde_json::json!({
            "tool": "specgap 9.8.7 (abc)",
            "cells": [{"scheme": "with-replacement", "verifiers": [{"name": "k-seq"}]}],
            "traversal": 1,
        });
        let text = bibtex(Some(&report));
        assert!(text.starts_with("@misc{specgap,"));
        assert!(text.contains("note = {Version 9.8.7 (abc)}"), "{text}");
        let keys = |text: &str| -> Vec<String> {
            (text.lines())
                .filter_map(|line| {
                    Some(
                        line.strip_prefix("@misc{")?
                            .trim_end_matches(',')
                            .to_owned(),
                    )
                })
                .collect()
        };
        assert_eq!(
            keys(&text),
            [
                "specgap",
                "leviathan2023fast",
                "sun2023spectr",
                "hu2025optimal"
            ]
        );
        assert_eq!(keys(&bibtex(None)).len(), 1 + papers().count());
        // Braces are closed, so that BibTeX reads it.
        let all = bibtex(None);
        assert_eq!(all.matches('{').count(), all.matches('}').count());
    }
}
