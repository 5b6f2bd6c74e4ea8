//! Reports of `specgap check`: its page, JSON, the ledger as Markdown, and JUnit XML.

use super::JSON_SCHEMA;
use super::columns::table;
use super::junit::{self, Case};
use super::sections::{definitions, if_any, of_table, section, shown};
use serde::Serialize;
use specgap_base::glossary;
use specgap_base::typed;
use specgap_exact::claims::{Changes, Checked, Claim, UNCHECKED, Value, Verdict};
use specgap_log::log::version;
use specgap_measure::Against;
use specgap_page::table::Entry;
use specgap_page::terminal::{self, Text};
use specgap_page::words::{counted, seconds};
use specgap_page::{Block, Page, Section, made_by};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What one problem file came to.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProblemCheck {
    /// Its name.
    #[serde(rename = "problem")]
    pub name: String,
    /// What is wrong.
    pub complaints: Vec<String>,
    /// Named values, for baselines.
    #[serde(skip)]
    pub values: BTreeMap<String, f64>,
    /// Wall-clock seconds.
    #[serde(skip)]
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
        let changes = self.changes.as_ref();
        self.claims.iter().all(Checked::is_ok)
            && self.failing().next().is_none()
            && changes.is_none_or(|changes| changes.regressions.is_empty())
    }

    fn failing(&self) -> impl Iterator<Item = &ProblemCheck> {
        let problems = self.problems.iter();
        problems.filter(|problem| !problem.complaints.is_empty())
    }
}

/// What `check --format json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Json<'a> {
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    evidence: BTreeMap<&'a str, &'a Value>,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonProblems<'a> {
    /// How many are as expected.
    passed: usize,
    /// How many are not.
    failed: usize,
    /// These.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<&'a ProblemCheck>,
    /// Why none were checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonChanges<'a> {
    /// Nothing got worse.
    ok: bool,
    #[serde(flatten)]
    changes: &'a Changes,
}

/// The run as data, one JSON object.
pub fn json(run: &CheckRun) -> Json<'_> {
    let claims = run.claims.iter().map(|checked| {
        let evidence = checked.finding.evidence.iter();
        JsonClaim {
            id: checked.claim.id,
            statement: checked.claim.statement,
            source: checked.claim.source,
            verdict: checked.verdict,
            expected: checked.claim.expected,
            ok: checked.is_ok(),
            evidence: evidence.map(|(name, value)| (*name, value)).collect(),
            violation: checked.finding.violation.as_deref(),
            explanation: checked.claim.explanation,
            counterexamples: checked.claim.counterexamples,
            seconds: checked.seconds,
        }
    });
    let failures: Vec<&ProblemCheck> = run.failing().collect();
    Json {
        schema: JSON_SCHEMA,
        claims: claims.collect(),
        problems: JsonProblems {
            passed: run.problems.len() - failures.len(),
            failed: failures.len(),
            failures,
            note: run.problems_note.as_deref(),
        },
        baseline: run.changes.as_ref().map(|changes| JsonChanges {
            ok: changes.regressions.is_empty(),
            changes,
        }),
        ok: run.is_ok(),
    }
}

/// Says what is wrong, a line each, and how the run came out.
pub fn in_short(run: &CheckRun) -> Page {
    let changed = run.claims.iter().filter(|checked| !checked.is_ok());
    let changed = changed.map(|checked| {
        let (id, expected) = (checked.claim.id, checked.claim.expected);
        let (verdict, why) = (checked.verdict, violation(checked));
        format!("CHANGED: {id} was expected to be {expected} and is {verdict}: {why}")
    });
    let failures = run.problems.iter().flat_map(|problem| {
        let complaints = problem.complaints.iter();
        complaints.map(|complaint| format!("FAILS: {}: {complaint}", problem.name))
    });
    let regressions = run.changes.iter().flat_map(|changes| &changes.regressions);
    let regressions = regressions.map(|regression| format!("REGRESSION: {regression}"));
    let wrong = changed.chain(failures).chain(regressions).map(Block::Wrong);
    Page {
        title: "specgap check".to_owned(),
        lead: wrong.chain([Block::Paragraph(conclusion(run))]).collect(),
        ..Page::default()
    }
}

/// The page of a run, with the command that makes it again.
pub fn page(run: &CheckRun, command: &str) -> Page {
    let ledger = ledger(run, command);
    let own = [claims(run), added(run), problems(run)];
    Page {
        sections: own.into_iter().flatten().chain(ledger.sections).collect(),
        ..in_short(run)
    }
}

/// The ledger alone, without times, so that two runs give one text.
pub fn ledger(run: &CheckRun, command: &str) -> Page {
    let all = table! {
        "claims", "", checked in run.claims.iter();
        "claim" => Entry {
            anchor: Some(checked.claim.id.to_owned()),
            ..Entry::plain(checked.claim.id)
        },
        "verdict" => Entry::from(checked.verdict.to_string()).bold(checked.verdict == Verdict::Refuted),
        "statement" => checked.claim.statement,
        "source" => checked.claim.source,
    };
    let about = "Every theorem, lemma and table that this field rests on and that a machine can check, \
        with what the check found.";
    let verdicts = [
        (
            "refuted | Refuted | Why, and what the check brought up.",
            Verdict::Refuted,
        ),
        (
            "supported | Supported | Why, and what the check brought up.",
            Verdict::Supported,
        ),
        (
            "holding | Holding | Why, and what the check brought up.",
            Verdict::Holds,
        ),
    ];
    let verdicts = verdicts.map(|(words, verdict)| {
        let claims = run.claims.iter();
        let claims = claims.filter(|checked| checked.verdict == verdict);
        section(words, claims.flat_map(reasons))
    });
    let unchecked = table! {
        "unchecked", "", (statement, why) in UNCHECKED.iter();
        "statement" => *statement,
        "why" => *why,
    };
    let unchecked = section(
        "unchecked | Not checked by machine | What nobody has made a program of.",
        [unchecked],
    );
    let words = definitions("What the verdicts mean.", glossary::of("check"));
    let made = made_by(
        command,
        format!("specgap {}, report schema {JSON_SCHEMA}.", version()),
    );
    let sections = verdicts.into_iter().chain([unchecked, words]);
    let sections = sections.filter(|one| !(one.blocks.is_empty() || run.claims.is_empty()));
    Page {
        title: "The claims ledger".to_owned(),
        lead: vec![Block::paragraph(about), all.into()],
        sections: sections.chain([made]).collect(),
        ..Page::default()
    }
}

/// Says what there is to a claim.
fn reasons(checked: &Checked) -> [Block; 4] {
    let claim = &checked.claim;
    let files = claim.counterexamples.iter();
    let files = files.map(|file| format!("counterexample: problems/{file}"));
    let evidence = checked.finding.evidence.iter();
    let evidence = evidence.map(|(name, value)| format!("{name}: {value}"));
    [
        Block::Heading(claim.id.to_owned()),
        Block::Paragraph(format!("{} ({})", claim.statement, claim.source)),
        Block::Paragraph(claim.explanation.to_owned()),
        Block::List(files.chain(evidence).collect()),
    ]
}

fn claims(run: &CheckRun) -> Option<Section> {
    let table = table! {
        "claims", "", checked in run.claims.iter();
        "claim" => checked.claim.id,
        "verdict" => checked.verdict.to_string(),
        "ok" => if checked.is_ok() { "ok" } else { "CHANGED" },
        "#time" => seconds(checked.seconds),
        "statement" => checked.claim.statement,
    };
    if_any(table).map(|table| shown("claims | Claims | What each states.", [table]))
}

fn added(run: &CheckRun) -> Option<Section> {
    let added = &run.changes.as_ref()?.added;
    let list = [Block::List(added.clone())];
    (!added.is_empty()).then(|| shown("added | Not in the baseline | What is new.", list))
}

fn problems(run: &CheckRun) -> Option<Section> {
    let values = |problem: &ProblemCheck| {
        let values = problem.values.iter();
        let values = values.map(|(name, value)| format!("{name} {value:.6}"));
        values.collect::<Vec<_>>().join(", ")
    };
    let table = table! {
        "problems", "", problem in run.problems.iter();
        "problem" => &problem.name,
        "result" => if problem.complaints.is_empty() { "passes" } else { "FAILS" },
        "values" => values(problem),
    };
    of_table(
        "problems | Problem files | What each came to.",
        if_any(table),
    )
}

/// Says what contradicts a claim.
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
    let failed = run.failing().count();
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

/// Claims and what is expected of each, for people.
pub fn list(claims: &[Claim], width: u16) -> Text {
    let table = table! {
        "claims", "", claim in claims.iter();
        "claim" => claim.id,
        "expected" => claim.expected.to_string(),
        "statement" => claim.statement,
    };
    let mut out = Text::default();
    terminal::table(&mut out, &table, width);
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
        let page = page(&run, "specgap check").markdown();
        for line in [
            "**1 problem passes, 1 fails; 1 regression against the baseline: NOT OK**\n",
            "> REGRESSION: mine.optimal\\_acceptance\\_rate was 0.8\n",
            "> FAILS: other: is 3/4, not 1/2\n",
            "| mine | passes | optimal\\_acceptance\\_rate 0.750000 |\n",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert!(!page.contains("ledger"), "{page}");
        run.problems.pop();
        run.changes = None;
        let page = in_short(&run).text(80, false);
        assert_eq!(page, "specgap check\n  1 problem passes, 0 fail: ok\n");
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
