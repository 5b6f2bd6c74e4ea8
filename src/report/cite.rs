//! What a paper cites: specgap, and the papers whose rules and laws a report has, as BibTeX.

use serde_json::Value;

/// The file of the repository that says who made specgap, and when.
const CITATION: &str = include_str!("../../CITATION.cff");

/// A paper, and the names of a report's rules and laws that are from it; none if it is always cited.
struct Paper {
    key: &'static str,
    authors: &'static str,
    title: &'static str,
    year: &'static str,
    arxiv: &'static str,
    names: &'static [&'static str],
}

/// Papers whose title, authors and number were looked up; docs/project/sources.md says what each has.
const PAPERS: [Paper; 9] = [
    Paper {
        key: "leviathan2023fast",
        authors: "Leviathan, Yaniv and Kalman, Matan and Matias, Yossi",
        title: "Fast Inference from Transformers via Speculative Decoding",
        year: "2023",
        arxiv: "2211.17192",
        // One draft is in every report.
        names: &[],
    },
    Paper {
        key: "sun2023spectr",
        authors: "Sun, Ziteng and Suresh, Ananda Theertha and Ro, Jae Hun and Beirami, Ahmad and \
                  Jain, Himanshu and Yu, Felix",
        title: "{SpecTr}: Fast Speculative Decoding via Optimal Transport",
        year: "2023",
        arxiv: "2310.15141",
        names: &["with-replacement", "k-seq"],
    },
    Paper {
        key: "jeon2024recursive",
        authors: "Jeon, Wonseok and Gagrani, Mukul and Goel, Raghavv and Park, Junyoung and Lee, \
                  Mingu and Lott, Christopher",
        title: "Recursive Speculative Decoding: Accelerating {LLM} Inference via Sampling Without \
                Replacement",
        year: "2024",
        arxiv: "2402.14160",
        names: &["rrs", "rrs-wo", "without-replacement"],
    },
    Paper {
        key: "chen2024sequoia",
        authors: "Chen, Zhuoming and May, Avner and Svirschevski, Ruslan and Huang, Yuhsun and \
                  Ryabinin, Max and Jia, Zhihao and Chen, Beidi",
        title: "Sequoia: Scalable, Robust, and Hardware-aware Speculative Decoding",
        year: "2024",
        arxiv: "2402.12374",
        names: &["sequoia"],
    },
    Paper {
        key: "sun2024block",
        authors: "Sun, Ziteng and Mendlovic, Uri and Leviathan, Yaniv and Aharoni, Asaf and \
                  Beirami, Ahmad and Ro, Jae Hun and Suresh, Ananda Theertha",
        title: "Block Verification Accelerates Speculative Decoding",
        year: "2024",
        arxiv: "2403.10444",
        names: &["block"],
    },
    Paper {
        key: "sun2024spechub",
        authors: "Sun, Ryan and Zhou, Tianyi and Chen, Xun and Sun, Lichao",
        title: "{SpecHub}: Provable Acceleration to Multi-Draft Speculative Decoding",
        year: "2024",
        arxiv: "2411.05289",
        names: &["hub", "spechub"],
    },
    Paper {
        key: "hu2025optimal",
        authors: "Hu, Zhengmian and Zheng, Tong and Viswanathan, Vignesh and Chen, Ziyi and Rossi, \
                  Ryan A. and Wu, Yihan and Manocha, Dinesh and Huang, Heng",
        title: "Towards Optimal Multi-draft Speculative Decoding",
        year: "2025",
        arxiv: "2502.18779",
        names: &[
            "with-replacement",
            "without-replacement",
            "distinct-conditioned",
            "greedy",
        ],
    },
    Paper {
        key: "weng2025traversal",
        authors: "Weng, Yepeng and Hu, Qiao and Chen, Xujie and Liu, Li and Mei, Dianwen and Qiu, \
                  Huishi and Tian, Jiang and Shi, Zhongchao",
        title: "Traversal Verification for Speculative Tree Decoding",
        year: "2025",
        arxiv: "2505.12398",
        names: &["traversal"],
    },
    Paper {
        key: "lin2026spectrgbv",
        authors: "Lin, Yijun and Sheng, Jinhao and Cai, Qingyue and Zhou, Feng",
        title: "{SpecTr-GBV}: Multi-Draft Block Verification Accelerating Speculative Decoding",
        year: "2026",
        arxiv: "2604.25925",
        names: &["spectr-gbv", "lemma-5.1"],
    },
];

/// BibTeX of specgap, and of the papers whose rules and laws stand in a report; of all papers
/// without one. `tool` is what wrote the report, with its version.
///
/// # Example
/// ```
/// use specgap::report::cite::bibtex;
/// let report = serde_json::json!({"tool": "specgap 0.1.0", "cells": [{"scheme": "hub"}]});
/// let text = bibtex(Some(&report));
/// assert!(text.contains("title = {{SpecHub}: Provable") && !text.contains("Sequoia"));
/// assert!(bibtex(None).contains("Sequoia"));
/// ```
pub fn bibtex(report: Option<&Value>) -> String {
    let mut names = Vec::new();
    if let Some(report) = report {
        strings(report, &mut names);
    }
    let tool = report.and_then(|report| report.get("tool")?.as_str());
    let mut out = software(tool);
    for paper in &PAPERS {
        let always = report.is_none() || paper.names.is_empty();
        if always || paper.names.iter().any(|name| names.contains(name)) {
            out.push_str(&format!(
                "\n@misc{{{},\n  author = {{{}}},\n  title = {{{}}},\n  year = {{{}}},\n  \
                 eprint = {{{}}},\n  archivePrefix = {{arXiv}},\n}}\n",
                paper.key, paper.authors, paper.title, paper.year, paper.arxiv
            ));
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
    let usual = crate::log::tool();
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
    use crate::block::BlockVerifierName;
    use crate::rule::RULES;
    use crate::scheme::SchemeName;

    /// No name is one that reports never have, and every field that is cited is in the file.
    #[test]
    fn papers_go_by_names_of_rules_and_laws() {
        let others = ["lemma-5.1", "sequoia"];
        for paper in &PAPERS {
            for &name in paper.names {
                assert!(
                    RULES.iter().any(|rule| rule.name == name)
                        || name.parse::<SchemeName>().is_ok()
                        || name.parse::<BlockVerifierName>().is_ok()
                        || others.contains(&name),
                    "{name}"
                );
            }
            assert_eq!(bibtex(None).matches(paper.arxiv).count(), 1);
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
        assert_eq!(keys(&bibtex(None)).len(), 1 + PAPERS.len());
        // Braces are closed, so that BibTeX reads it.
        let all = bibtex(None);
        assert_eq!(all.matches('{').count(), all.matches('}').count());
    }
}
