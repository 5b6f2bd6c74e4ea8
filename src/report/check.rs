//! Reports of `specgap check`: text, JSON, Markdown and JUnit XML.

use super::JSON_SCHEMA;
use super::columns::head;
use super::junit::{self, Case};
use super::sections;
use crate::claims::{Changes, Checked, Claim, UNCHECKED, Value, Verdict};
use crate::gap::Against;
use crate::glossary;
use crate::page::table::{Entry, Row, Table};
use crate::page::terminal::{self, Role, Text};
use crate::page::words::{counted, seconds};
use crate::page::{markdown, visible};
use crate::typed;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What one problem file came to.
#[derive(Clone, Debug)]
pub struct ProblemCheck {
    /// The problem's name.
    pub name: String,
    /// What is wrong, in words; empty if nothing is.
    pub complaints: Vec<String>,
    /// Named values, for baselines.
    pub values: BTreeMap<String, f64>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// Everything that one run of `specgap check` found.
#[derive(Clone, Debug)]
pub struct CheckRun {
    /// The ledger.
    pub claims: Vec<Checked>,
    /// The problem files.
    pub problems: Vec<ProblemCheck>,
    /// Why there are no problem files, if there are none.
    pub problems_note: Option<String>,
    /// Comparison with a baseline, if one was given.
    pub changes: Option<Changes>,
}

impl CheckRun {
    /// True if every verdict is the expected one, every problem passes and
    /// nothing regressed.
    pub fn is_ok(&self) -> bool {
        self.claims.iter().all(Checked::is_ok)
            && self.failed() == 0
            && self
                .changes
                .as_ref()
                .is_none_or(|changes| changes.regressions.is_empty())
    }

    fn failed(&self) -> usize {
        self.problems
            .iter()
            .filter(|problem| !problem.complaints.is_empty())
            .count()
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    /// 1.
    schema: u32,
    /// Every claim that was checked.
    claims: Vec<JsonClaim<'a>>,
    /// The problem files.
    problems: JsonProblems<'a>,
    /// With `--baseline`: what changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<JsonChanges<'a>>,
    /// Everything is as expected.
    ok: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonClaim<'a> {
    /// Its name.
    id: &'a str,
    /// What it states.
    statement: &'a str,
    /// Who states it.
    source: &'a str,
    /// What the check found.
    verdict: Verdict,
    /// What the ledger expects.
    expected: Verdict,
    /// Whether these are the same.
    ok: bool,
    /// Named values.
    evidence: serde_json::Map<String, serde_json::Value>,
    /// What contradicts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<&'a str>,
    /// The proof or the search in words.
    explanation: &'a str,
    /// Problem files that refute it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    counterexamples: &'a [&'static str],
    /// Wall-clock seconds.
    seconds: f64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonProblems<'a> {
    /// How many are as expected.
    passed: usize,
    /// How many are not.
    failed: usize,
    /// These.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<JsonFailure<'a>>,
    /// Why none were checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonFailure<'a> {
    /// Its name.
    problem: &'a str,
    /// What is wrong.
    complaints: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonChanges<'a> {
    /// Nothing got worse.
    ok: bool,
    /// Verdicts that differ, values that differ by more than 1e-9, and what is gone.
    regressions: &'a [String],
    /// What is new.
    added: &'a [String],
}

/// One JSON object.
///
/// # Errors
/// None that a run can cause; serialisation is fallible by type.
pub fn json(run: &CheckRun) -> serde_json::Result<String> {
    let claims = run
        .claims
        .iter()
        .map(|checked| {
            let mut evidence = serde_json::Map::new();
            for (name, value) in &checked.finding.evidence {
                evidence.insert((*name).to_owned(), serde_json::to_value(value)?);
            }
            Ok(JsonClaim {
                id: checked.claim.id,
                statement: checked.claim.statement,
                source: checked.claim.source,
                verdict: checked.verdict,
                expected: checked.claim.expected,
                ok: checked.is_ok(),
                evidence,
                violation: checked.finding.violation.as_deref(),
                explanation: checked.claim.explanation,
                counterexamples: checked.claim.counterexamples,
                seconds: checked.seconds,
            })
        })
        .collect::<serde_json::Result<Vec<_>>>()?;
    let failed = run.failed();
    typed::line(&Json {
        schema: JSON_SCHEMA,
        claims,
        problems: JsonProblems {
            passed: run.problems.len() - failed,
            failed,
            failures: run
                .problems
                .iter()
                .filter(|problem| !problem.complaints.is_empty())
                .map(|problem| JsonFailure {
                    problem: &problem.name,
                    complaints: &problem.complaints,
                })
                .collect(),
            note: run.problems_note.as_deref(),
        },
        baseline: run.changes.as_ref().map(|changes| JsonChanges {
            ok: changes.regressions.is_empty(),
            regressions: &changes.regressions,
            added: &changes.added,
        }),
        ok: run.is_ok(),
    })
}

/// A report for people; `verbose` adds the evidence of every claim.
pub fn text(run: &CheckRun, width: u16, quiet: bool, verbose: bool) -> Text {
    let mut out = Text::default();
    let ledger = !quiet && !run.claims.is_empty();
    if ledger {
        let columns = head("claim | verdict | ok | #time | statement");
        let rows = run.claims.iter().map(|checked| {
            let ok = if checked.is_ok() { "ok" } else { "CHANGED" };
            Row::texts([
                checked.claim.id.to_owned(),
                checked.verdict.to_string(),
                ok.to_owned(),
                seconds(checked.seconds),
                checked.claim.statement.to_owned(),
            ])
        });
        let table = Table::new("claims", "", columns).rows(rows);
        terminal::table(&mut out, &table, width, "");
        out.add(Role::Plain, "\n");
    }
    for checked in &run.claims {
        if checked.verdict == Verdict::Refuted && !quiet {
            let title = format!("REFUTED: {} ({})", checked.claim.id, checked.claim.source);
            out.lines(Role::Heading, &title);
            out.wrap(checked.claim.explanation, width);
            let files = checked.claim.counterexamples.join(", ");
            out.wrap(&format!("counterexample: problems/{files}"), width);
            out.add(Role::Plain, "\n");
        }
        if !checked.is_ok() {
            let line = format!(
                "CHANGED: {} was expected to be {} and is {}: {}",
                checked.claim.id,
                checked.claim.expected,
                checked.verdict,
                violation(checked)
            );
            out.wrap(&line, width);
        }
        if verbose {
            out.lines(Role::Heading, checked.claim.id);
            for (name, value) in &checked.finding.evidence {
                out.wrap(&format!("{name}: {value}"), width);
            }
        }
    }
    for problem in &run.problems {
        for complaint in &problem.complaints {
            out.wrap(&format!("FAILS: {}: {complaint}", problem.name), width);
        }
    }
    if let Some(changes) = &run.changes {
        for regression in &changes.regressions {
            out.wrap(&format!("REGRESSION: {regression}"), width);
        }
        if !quiet && !changes.added.is_empty() {
            let added = format!("not in the baseline: {}", changes.added.join(", "));
            out.wrap(&added, width);
        }
    }
    if ledger {
        out.lines(
            Role::Plain,
            &format!("{}\n\n", sections::legend("check", 12)),
        );
    }
    out.lines(Role::Heading, &conclusion(run));
    out
}

/// What contradicts a claim, in words.
fn violation(checked: &Checked) -> &str {
    let found = checked.finding.violation.as_deref();
    found.unwrap_or("no violation found")
}

/// One line that says how the run came out.
fn conclusion(run: &CheckRun) -> String {
    let count = |verdict| {
        let claims = run.claims.iter();
        claims.filter(|checked| checked.verdict == verdict).count()
    };
    let failed = run.failed();
    let problems = match &run.problems_note {
        Some(note) => format!("no problems checked ({note})"),
        None => {
            let passed = run.problems.len() - failed;
            let pass = if passed == 1 { "passes" } else { "pass" };
            let fail = if failed == 1 { "fails" } else { "fail" };
            format!("{} {pass}, {failed} {fail}", counted(passed, "problem"))
        }
    };
    let baseline = match &run.changes {
        None => String::new(),
        Some(changes) => format!(
            "; {} against the baseline",
            counted(changes.regressions.len(), "regression")
        ),
    };
    let claims = match run.claims.len() {
        0 => String::new(),
        all => format!(
            "{}: {} hold, {} supported, {} refuted, {} changed; ",
            counted(all, "claim"),
            count(Verdict::Holds),
            count(Verdict::Supported),
            count(Verdict::Refuted),
            run.claims.iter().filter(|checked| !checked.is_ok()).count()
        ),
    };
    let verdict = if run.is_ok() { "ok" } else { "NOT OK" };
    format!("{claims}{problems}{baseline}: {verdict}")
}

/// A run as a Markdown page, for the summary of a job: how it came out, what got worse, the
/// problem files, and the ledger.
pub fn summary(run: &CheckRun, command: &str) -> String {
    let mut out = format!("# specgap check\n\n{}\n", conclusion(run));
    let mut list = |title: &str, lines: &mut dyn Iterator<Item = String>| {
        for (number, line) in lines.enumerate() {
            if number == 0 {
                let _ = writeln!(out, "\n## {title}\n");
            }
            let _ = writeln!(out, "- {line}");
        }
    };
    let regressions = run.changes.iter().flat_map(|changes| &changes.regressions);
    list("Worse than the baseline", &mut regressions.cloned());
    let changed = run.claims.iter().filter(|checked| !checked.is_ok());
    list(
        "Claims that are not as expected",
        &mut changed.map(|checked| {
            let (claim, found) = (&checked.claim, violation(checked));
            let (expected, verdict) = (claim.expected, checked.verdict);
            format!("{}: expected {expected}, is {verdict}: {found}", claim.id)
        }),
    );
    let failures = run.problems.iter().flat_map(|problem| {
        let complaints = problem.complaints.iter();
        complaints.map(|complaint| format!("{}: {complaint}", problem.name))
    });
    list("Problems that fail", &mut failures.into_iter());
    let added = run.changes.iter().flat_map(|changes| &changes.added);
    list("Not in the baseline", &mut added.cloned());
    if !run.problems.is_empty() {
        out.push_str("\n## Problem files\n\n");
        let columns = head("problem | result | values");
        let rows = run.problems.iter().map(|problem| {
            let result = match problem.complaints.is_empty() {
                true => "passes",
                false => "FAILS",
            };
            let values = problem.values.iter();
            let values: Vec<String> = values
                .map(|(name, value)| format!("{name} {value:.6}"))
                .collect();
            Row::texts([problem.name.clone(), result.to_owned(), values.join(", ")])
        });
        let table = Table::new("problems", "", columns).rows(rows);
        add_table(&mut out, &table);
    }
    if !run.claims.is_empty() {
        // Its title is a part of this page.
        let _ = write!(out, "\n#{}", markdown(run, command));
    }
    visible(out)
}

/// The ledger as a Markdown page, without times, so that two runs give one text.
pub fn markdown(run: &CheckRun, command: &str) -> String {
    let mut out = String::from("# The claims ledger\n\n");
    let _ = writeln!(
        out,
        "Generated by `{command}`; do not edit. Every theorem, lemma and table that this field \
         rests on and that a machine can check, with what the check found.\n"
    );
    for (term, meaning) in glossary::of::<Vec<_>>("check") {
        let _ = writeln!(out, "- **{term}**: {meaning}");
    }
    out.push('\n');
    let columns = head("claim | verdict | statement | source");
    let rows = run.claims.iter().map(|checked| {
        let claim = &checked.claim;
        Row::new([
            Entry {
                anchor: Some(claim.id.to_owned()),
                ..Entry::plain(claim.id)
            },
            Entry::plain(checked.verdict.to_string()).bold(checked.verdict == Verdict::Refuted),
            Entry::plain(claim.statement),
            Entry::plain(claim.source),
        ])
    });
    let table = Table::new("claims", "", columns).rows(rows);
    add_table(&mut out, &table);
    for (title, verdict) in [
        ("Refuted", Verdict::Refuted),
        ("Supported", Verdict::Supported),
        ("Holding", Verdict::Holds),
    ] {
        let claims = run.claims.iter();
        let mut claims = claims
            .filter(|checked| checked.verdict == verdict)
            .peekable();
        if claims.peek().is_some() {
            let _ = writeln!(out, "\n## {title}");
        }
        for checked in claims {
            let claim = &checked.claim;
            let _ = writeln!(out, "\n### {}\n", claim.id);
            let _ = writeln!(out, "> {}\n>\n> ({})\n", claim.statement, claim.source);
            let _ = writeln!(out, "{}\n", claim.explanation);
            for file in claim.counterexamples {
                let _ = writeln!(
                    out,
                    "- counterexample: [problems/{file}](../problems/{file})"
                );
            }
            for (name, value) in &checked.finding.evidence {
                let value = match value {
                    Value::Text(text) => text.clone(),
                    other => other.to_string(),
                };
                let _ = writeln!(out, "- {name}: {value}");
            }
        }
    }
    out.push_str("\n## Not checked by machine\n\n");
    let columns = head("statement | why");
    let rows = UNCHECKED
        .iter()
        .map(|(statement, reason)| Row::texts([*statement, *reason]));
    let table = Table::new("unchecked", "", columns).rows(rows);
    add_table(&mut out, &table);
    visible(out)
}

/// A table, with nothing behind its last line.
fn add_table(out: &mut String, table: &Table) {
    markdown::table(out, table);
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// Claims and what is expected of each, for people.
pub fn list(claims: &[Claim], width: u16) -> Text {
    let columns = head("claim | expected | statement");
    let rows = claims.iter().map(|claim| {
        let expected = claim.expected.to_string();
        Row::texts([claim.id.to_owned(), expected, claim.statement.to_owned()])
    });
    let table = Table::new("claims", "", columns).rows(rows);
    let mut out = Text::default();
    terminal::table(&mut out, &table, width, "");
    let _ = writeln!(out, "{}", counted(claims.len(), "claim"));
    out
}

/// One claim as a JSON object on a line.
///
/// # Errors
/// None that a claim can cause; serialisation is fallible by type.
pub fn listed_json(claim: &Claim) -> serde_json::Result<String> {
    typed::line(&serde_json::json!({
        "schema": JSON_SCHEMA,
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "expected": claim.expected,
    }))
}

/// JUnit XML, one test case a claim, a problem, and a number or verdict that got worse than
/// the baseline's. Each claim's case has its verdict, its statement and its evidence.
pub fn junit(run: &CheckRun) -> String {
    let mut cases: Vec<Case> = Vec::new();
    for checked in &run.claims {
        let claim = &checked.claim;
        let failure = (!checked.is_ok()).then(|| {
            let (expected, verdict) = (claim.expected, checked.verdict);
            format!("expected {expected}, is {verdict}: {}", violation(checked))
        });
        let mut found = format!(
            "{}: {} ({})",
            checked.verdict, claim.statement, claim.source
        );
        for (name, value) in &checked.finding.evidence {
            let _ = write!(found, "\n{name}: {value}");
        }
        cases.push(Case {
            class: "specgap.claims".to_owned(),
            name: claim.id.to_owned(),
            seconds: checked.seconds,
            failures: failure.into_iter().collect(),
            found,
            ..Case::default()
        });
    }
    for problem in &run.problems {
        let values = problem.values.iter();
        let found: Vec<String> = values
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        cases.push(Case {
            class: "specgap.problems".to_owned(),
            name: problem.name.clone(),
            seconds: problem.seconds,
            failures: problem.complaints.clone(),
            found: found.join("\n"),
            ..Case::default()
        });
    }
    if let Some(changes) = &run.changes {
        let case = |name: &str, failures| Case {
            class: "specgap.baseline".to_owned(),
            name: name.to_owned(),
            failures,
            ..Case::default()
        };
        for regression in &changes.regressions {
            // What changed, without what it was and is.
            let name = regression
                .split_once(" was ")
                .map_or(regression.as_str(), |cut| cut.0);
            cases.push(case(name, vec![regression.clone()]));
        }
        if changes.regressions.is_empty() {
            cases.push(case("nothing got worse", Vec::new()));
        }
    }
    junit::suite("specgap check", "changed", &cases)
}

/// A number against its baseline, in words.
pub fn told(number: &Against) -> String {
    let [low, high] = number.interval;
    // A mean that may not move is told with the digits that show how it moved.
    let digits = if low == high { 12 } else { 6 };
    let now = (number.now).map_or("is missing".to_owned(), |x| format!("is {x:.digits$}"));
    let what = &number.what;
    if low == high {
        format!(
            "{what} {now}; the baseline has {low:.digits$}, ± {:e}",
            number.slack
        )
    } else {
        format!("{what} {now}; the baseline has [{low:.digits$}, {high:.digits$}]")
    }
}

/// JUnit XML of a report of rows, one test case a number of its baseline.
pub fn junit_of_numbers(numbers: &[Against]) -> String {
    let cases: Vec<Case> = (numbers.iter())
        .map(|number| Case {
            class: "specgap.gap".to_owned(),
            name: number.what.clone(),
            failures: (!number.holds())
                .then(|| told(number))
                .into_iter()
                .collect(),
            found: number.now.map_or_else(String::new, |now| now.to_string()),
            ..Case::default()
        })
        .collect();
    junit::suite("specgap gap", "changed", &cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_own_problems_and_what_got_worse() {
        let problem = |name: &str, complaints: &[&str]| ProblemCheck {
            name: name.to_owned(),
            complaints: complaints.iter().map(ToString::to_string).collect(),
            values: BTreeMap::from([("optimal_acceptance_rate".to_owned(), 0.75)]),
            seconds: 0.0,
        };
        let mut run = CheckRun {
            claims: Vec::new(),
            problems: vec![problem("mine", &[]), problem("other", &["is 3/4, not 1/2"])],
            problems_note: None,
            changes: Some(Changes {
                regressions: vec!["mine.optimal_acceptance_rate was 0.8".to_owned()],
                added: Vec::new(),
            }),
        };
        let page = summary(&run, "specgap check");
        for line in [
            "1 problem passes, 1 fails; 1 regression against the baseline: NOT OK\n",
            "## Worse than the baseline\n\n- mine.optimal_acceptance_rate was 0.8\n",
            "## Problems that fail\n\n- other: is 3/4, not 1/2\n",
            "| mine | passes | optimal\\_acceptance\\_rate 0.750000 |\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert!(!page.contains("ledger"), "{page}");
        run.problems.pop();
        run.changes = None;
        let page = summary(&run, "specgap check");
        assert!(page.contains("1 problem passes, 0 fail: ok\n"), "{page}");
        assert!(!page.contains("## Problems that fail"), "{page}");
        assert_eq!(
            text(&run, 80, false, false).to_string(),
            "1 problem passes, 0 fail: ok\n"
        );
    }

    #[test]
    fn junit_escapes_what_xml_cannot_hold() {
        let run = CheckRun {
            claims: Vec::new(),
            problems: vec![ProblemCheck {
                name: "a<b>&\"'\u{1}".to_owned(),
                complaints: vec!["x < y".to_owned()],
                values: BTreeMap::new(),
                seconds: 0.0,
            }],
            problems_note: None,
            changes: None,
        };
        let xml = junit(&run);
        assert!(
            xml.contains("name=\"a&lt;b&gt;&amp;&quot;&apos;\u{fffd}\""),
            "{xml}"
        );
        assert!(
            xml.contains("failures=\"1\"") && xml.contains("x &lt; y"),
            "{xml}"
        );
        assert!(!run.is_ok());
    }
}
