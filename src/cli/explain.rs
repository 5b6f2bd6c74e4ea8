//! `specgap explain`: what the words of reports and tables mean.

use super::options::{Common, Format};
use super::output::{CliError, Verdict, width};
use crate::gap::{self, Settings};
use crate::report;
use crate::rule::RULES;
use crate::scheme::SchemeName;
use crate::typed;
use crate::verifier::VerifierName;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// Arguments of `specgap explain`.
#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    /// A word of a report or a table, a draft law or a verifier; all words if none is given.
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Explained<'a> {
    /// 1.
    schema: u32,
    /// The word.
    word: &'a str,
    /// What it means.
    meaning: &'a str,
}

pub(super) fn run(args: &ExplainArgs, common: &Common) -> Result<Verdict, CliError> {
    let known = words();
    let mut out = std::io::stdout().lock();
    let wanted = args.words.join(" ");
    let found: Vec<(&str, &str)> = if wanted.is_empty() {
        known
            .iter()
            .map(|(word, meaning)| (word.as_str(), meaning.as_str()))
            .collect()
    } else {
        looked_up(&known, &wanted)?
    };
    for (word, meaning) in found {
        match common.format {
            Format::Json => {
                let schema = report::JSON_SCHEMA;
                let line = typed::line(&Explained {
                    schema,
                    word,
                    meaning,
                })?;
                writeln!(out, "{line}")?;
            }
            Format::Text if wanted.is_empty() && common.quiet => writeln!(out, "{word}")?,
            Format::Text => write!(out, "{}", crate::page::definition(word, meaning, width()))?,
        }
    }
    out.flush()?;
    Ok(Verdict::Agrees)
}

/// The word itself, or else every word that it is a part of.
fn looked_up<'a>(
    known: &'a BTreeMap<String, String>,
    wanted: &str,
) -> Result<Vec<(&'a str, &'a str)>, CliError> {
    let plain = |word: &str| word.to_lowercase().replace('α', "alpha");
    let wanted_plain = plain(wanted);
    let pick = |fits: &dyn Fn(&str) -> bool| -> Vec<(&'a str, &'a str)> {
        (known.iter())
            .filter(|(word, _)| fits(&plain(word)))
            .map(|(word, meaning)| (word.as_str(), meaning.as_str()))
            .collect()
    };
    let exact = pick(&|word| {
        let behind = word.split_once(' ').map(|(_, rest)| rest);
        word == wanted_plain || behind == Some(wanted_plain.as_str())
    });
    if !exact.is_empty() {
        return Ok(exact);
    }
    let near = pick(&|word| word.contains(&wanted_plain));
    if near.is_empty() {
        return Err(CliError::Missing {
            message: format!("{wanted}: is no word of a report; specgap explain -q lists them all"),
        });
    }
    Ok(near)
}

/// Words that texts use before, or without, a table that defines them.
const GENERAL: &str = include_str!("explain.txt");

/// Every word with what it means.
fn words() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = gap::definitions(Settings::BLOCK_LENGTH)
        .into_iter()
        .collect();
    for (word, meaning) in (crate::replay::length_definitions().into_iter())
        .chain(crate::replay::tree_definitions())
        .chain(crate::replay::paths_definitions())
        .chain(report::audit::definitions())
        .chain(crate::counters::counters_definitions())
        .chain(typed::glossary(GENERAL))
    {
        all.entry(word).or_insert(meaning);
    }
    for legend in [
        report::solve::DEFINITIONS,
        report::verify::DEFINITIONS,
        report::block::DEFINITIONS,
        report::check::DEFINITIONS,
    ] {
        for (word, meaning) in entries(legend) {
            all.entry(word).or_insert(meaning);
        }
    }
    for scheme in SchemeName::ALL {
        let name = format!("scheme {scheme}");
        all.entry(name).or_insert_with(|| scheme.law().to_owned());
    }
    for verifier in VerifierName::ALL {
        let meaning = || format!("{}; for {}", verifier.words(), verifier.draft_schemes());
        all.entry(format!("verifier {verifier}"))
            .or_insert_with(meaning);
    }
    for rule in RULES {
        let name = format!("verifier {}", rule.name);
        all.entry(name).or_insert_with(|| rule.words.to_owned());
    }
    all
}

/// The words of a legend: each at the start of a line, two blanks or more before what it
/// means, or one where the column is full; lines that begin with a blank go on.
fn entries(legend: &str) -> Vec<(String, String)> {
    let column = legend
        .lines()
        .filter(|line| line.starts_with(' '))
        .map(|line| line.len() - line.trim_start().len())
        .max();
    let Some(column) = column.or_else(|| {
        let first = legend.lines().next()?;
        let gap = first.find("  ")?;
        Some(gap + first[gap..].len() - first[gap..].trim_start().len())
    }) else {
        return Vec::new();
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for line in legend.lines() {
        let (Some(head), Some(rest)) = (line.get(..column), line.get(column..)) else {
            continue;
        };
        if head.trim().is_empty() {
            if let Some((_, meaning)) = found.last_mut() {
                meaning.push(' ');
                meaning.push_str(rest.trim());
            }
        } else if head.ends_with("  ") || head.ends_with(' ') && !head.trim().contains(' ') {
            found.push((head.trim().to_owned(), rest.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_legend_is_explained() {
        let known = words();
        for word in [
            "alpha*",
            "difference",
            "membership",
            "TV",
            "E[tau]",
            "tokens/call",
            "undefined",
            "refuted",
            "ok",
            "enclosed",
            "overlap",
            "gap",
            "verifier rrs",
            "scheme top",
            "coupling",
            "one-hot",
            "oracle",
            "draft-law",
        ] {
            let meaning = known.get(word).map(String::as_str).unwrap_or_default();
            assert!(meaning.len() > 20, "{word}: {meaning}");
        }
        assert!(
            known["alpha*"].ends_with("dimensionless, in [0, 1]"),
            "{}",
            known["alpha*"]
        );
        // A line of a legend without a word of its own is none.
        assert!(known.keys().all(|word| !word.contains("All rates")));
    }

    #[test]
    fn a_word_is_found_by_its_name_or_by_a_part_of_it() {
        let known = words();
        let names = |wanted: &str| -> Vec<String> {
            let found = looked_up(&known, wanted).unwrap();
            found.into_iter().map(|(word, _)| word.to_owned()).collect()
        };
        assert!(names("rrs-wo").contains(&"verifier rrs-wo".to_owned()));
        assert_eq!(names("α*"), ["alpha*"]);
        assert!(names("acceptance").contains(&"acceptance".to_owned()));
        assert!(names("optimal acc").contains(&"optimal acceptance rate".to_owned()));
        let error = looked_up(&known, "no such word").unwrap_err();
        assert!(error.to_string().contains("specgap explain -q"));
        assert_eq!(error.exit_code(), 2);
    }
}
