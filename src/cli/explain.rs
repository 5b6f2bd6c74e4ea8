//! `specgap explain`: what the words of reports and tables mean.

use super::options::{Common, Format};
use super::output::{CliError, Verdict, width};
use super::{colour, meant};
use crate::gap::{self, Settings};
use crate::glossary;
use crate::once::each_once;
use crate::report;
use crate::rule::{RULES, RuleName};
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
    /// Words of a report or a table, draft laws or verifiers, also several; all words if none is
    /// given.
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
    let mut out = colour::stdout();
    let all = args.words.is_empty();
    let found: Vec<(&str, &str)> = if all {
        known
            .iter()
            .map(|(word, meaning)| (word.as_str(), meaning.as_str()))
            .collect()
    } else {
        let phrases = phrases(&known, &args.words);
        let found = phrases.iter().map(|phrase| looked_up(&known, phrase));
        each_once(found.collect::<Result<Vec<_>, _>>()?.concat())
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
            Format::Text if all && common.quiet => writeln!(out, "{word}")?,
            Format::Text => {
                let text = crate::page::definition(word, meaning, width());
                write!(out, "{}", colour::painted(&text))?;
            }
        }
    }
    out.flush()?;
    Ok(Verdict::Agrees)
}

/// A word as it is compared: without capitals, Greek letters and marks of a page.
fn plain(word: &str) -> String {
    let word = word
        .to_lowercase()
        .replace('α', "alpha")
        .replace('τ', "tau");
    word.replace(['`', '\\'], "").trim().to_owned()
}

/// Words that are known together are one phrase, as many as can be; any other is a phrase by
/// itself.
fn phrases(known: &BTreeMap<String, String>, words: &[String]) -> Vec<String> {
    let mut rest = words;
    let mut phrases = Vec::new();
    while !rest.is_empty() {
        let joined = |count: usize| {
            rest.iter()
                .take(count)
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let longest = (2..=rest.len().min(8))
            .rev()
            .map(|count| (count, joined(count)));
        let (count, phrase) = (longest.into_iter())
            .find(|(_, phrase)| !exactly(known, phrase).is_empty())
            .unwrap_or_else(|| (1, joined(1)));
        phrases.push(phrase);
        rest = rest.get(count..).unwrap_or_default();
    }
    phrases
}

/// The entries of a word by its own name: `rrs` is `verifier rrs` too.
fn exactly<'a>(known: &'a BTreeMap<String, String>, wanted: &str) -> Vec<(&'a str, &'a str)> {
    let wanted = plain(wanted);
    pick(known, |word| {
        let kind = word.split_once(' ');
        let behind = kind.filter(|(kind, _)| KINDS.contains(kind));
        word == wanted || behind.is_some_and(|(_, rest)| rest == wanted)
    })
}

/// What stands before the names of draft laws, verifiers and causes of an audit.
const KINDS: [&str; 3] = ["scheme", "verifier", "cause"];

fn pick(known: &BTreeMap<String, String>, fits: impl Fn(&str) -> bool) -> Vec<(&str, &str)> {
    (known.iter())
        .filter(|(word, _)| fits(&plain(word)))
        .map(|(word, meaning)| (word.as_str(), meaning.as_str()))
        .collect()
}

/// The word itself; or the parts of a table's head, such as `token, K = 4`; or else every word that
/// it is a part of.
fn looked_up<'a>(
    known: &'a BTreeMap<String, String>,
    wanted: &str,
) -> Result<Vec<(&'a str, &'a str)>, CliError> {
    let exact = exactly(known, wanted);
    if !exact.is_empty() {
        return Ok(exact);
    }
    if let Ok(rule) = wanted.parse::<RuleName>()
        && rule.as_str() != wanted
    {
        return looked_up(known, rule.as_str());
    }
    let parts: Vec<&str> = wanted
        .split(", ")
        .flat_map(|part| part.split(" = "))
        .collect();
    let named = parts.iter().flat_map(|part| {
        // Of two logs, by their names.
        let part = part.strip_prefix("minus ").map_or(*part, |_| "minus");
        exactly(known, part)
    });
    let named: Vec<_> = named.collect();
    if parts.len() > 1 && !named.is_empty() {
        return Ok(named);
    }
    let part = plain(wanted);
    let near = pick(known, |word| word.contains(&part));
    if !near.is_empty() {
        return Ok(near);
    }
    let plains: Vec<String> = known.keys().map(|word| plain(word)).collect();
    let meant = meant::nearest(&part, plains.iter().map(String::as_str));
    let meant = meant.map_or_else(String::new, |word| format!("; did you mean {word}?"));
    Err(CliError::missing(format!(
        "{wanted}: is no word of a report; specgap explain -q lists them all{meant}"
    )))
}

/// Every word with what it means.
fn words() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = glossary::of("words");
    for (word, meaning) in (gap::definitions(Settings::BLOCK_LENGTH).into_iter())
        .chain(crate::replay::length_definitions())
        .chain(crate::replay::tree_definitions())
        .chain(crate::replay::paths_definitions())
        .chain(glossary::all())
    {
        all.entry(word).or_insert(meaning);
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
    let causes = crate::audit::causes().into_iter();
    for (name, meaning) in causes.filter(|(name, _)| name.parse::<RuleName>().is_err()) {
        all.entry(format!("cause {name}")).or_insert(meaning);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_a_legend_is_explained() {
        let known = words();
        let words = "alpha*, difference, membership, TV, E[tau], tokens/call, undefined, refuted, ok, \
            enclosed, overlap, gap, verifier rrs, scheme top, coupling, one-hot, oracle, draft-law, same position, \
            A(k | y; n)";
        for word in words.split(", ") {
            let meaning = known.get(word).map(String::as_str).unwrap_or_default();
            assert!(meaning.len() > 20, "{word}: {meaning}");
        }
        assert!(
            known["alpha*"].contains("dimensionless, in [0, 1]"),
            "{}",
            known["alpha*"]
        );
        // Of several meanings, the one that is of no report alone.
        assert!(known["±"].contains("prompts"), "{}", known["±"]);
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
        let error = looked_up(&known, "acceptence").unwrap_err().to_string();
        assert!(error.ends_with("; did you mean acceptance?"), "{error}");
        assert_eq!(names("spectr-plan"), names("spectr-optimal"));
        assert_eq!(names("token, K = 4"), ["token", "verifier token", "K"]);
    }

    #[test]
    fn several_words_are_several_phrases() {
        let known = words();
        let split = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            phrases(&known, &words)
        };
        assert_eq!(split("gap alpha*"), ["gap", "alpha*"]);
        assert_eq!(
            split("draft law gap usual rules"),
            ["draft law", "gap", "usual rules"]
        );
        assert_eq!(split("nothing rrs"), ["nothing", "rrs"]);
    }
}
