//! The ledger of claims: every theorem, lemma and table that the field rests on
//! and that a machine can check, with a verdict.
//!
//! A check searches for a violation of its claim, in exact arithmetic wherever
//! the claim is about exact quantities, on families of problems from fixed
//! seeds. It has no other way to end: a violation refutes, none leaves the claim
//! standing as far as its [`Claim::standing`] goes. So a verdict that changes means that
//! either the claim or the code has turned, and [`compare`] fails on it.

mod blocks;
mod family;
mod laws;
mod length;
mod optimum;
mod table;
mod text;
mod verifiers;

use crate::problem::{AnyProblem, Problem, parse_toml};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What is known about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Proved, and checked without exception on a stated family.
    Holds,
    /// No counterexample in a stated search; no proof.
    Supported,
    /// A counterexample is known, and was found again.
    Refuted,
}

impl Verdict {
    /// `holds`, `supported` or `refuted`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Supported => "supported",
            Self::Refuted => "refuted",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One number or text that a check brings up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// How many of something.
    Count(u64),
    /// A measured number; compared with a baseline within [`VALUE_TOLERANCE`].
    Number(f64),
    /// A fraction, a name, a sentence.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) if number.abs() >= 1e-4 || *number == 0.0 => {
                write!(f, "{:.6}", number)
            }
            Self::Number(number) => write!(f, "{number:.2e}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Two runs' numbers are the same within this, absolutely or relatively.
pub const VALUE_TOLERANCE: f64 = 1e-9;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The first violation of the claim, in words; `None` if there is none.
    pub violation: Option<String>,
    /// Named evidence, in the order it was brought up.
    pub evidence: Vec<(&'static str, Value)>,
}

impl Finding {
    fn count(&mut self, name: &'static str, count: u64) {
        self.evidence.push((name, Value::Count(count)));
    }
    fn number(&mut self, name: &'static str, number: f64) {
        self.evidence.push((name, Value::Number(number)));
    }
    fn text(&mut self, name: &'static str, text: impl Into<String>) {
        self.evidence.push((name, Value::Text(text.into())));
    }
    /// Records a violation unless `holds`; the first one stays.
    fn require(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(violation());
        }
    }
}

/// A statement, where it comes from, and a check that fails if it is wrong.
#[derive(Clone, Copy)]
pub struct Claim {
    /// Stable name.
    pub id: &'static str,
    /// What is claimed.
    pub statement: &'static str,
    /// Who claims it: paper and place.
    pub source: &'static str,
    /// What the check does, and for refuted claims what is wrong, in words that
    /// can be quoted.
    pub explanation: &'static str,
    /// [`Verdict::Holds`] if there is a proof, else [`Verdict::Supported`]: what a
    /// search without a violation leaves standing.
    pub standing: Verdict,
    /// The verdict that this version of the ledger expects.
    pub expected: Verdict,
    /// Problem files, below `problems/`, that are the smallest counterexamples.
    pub counterexamples: &'static [&'static str],
    /// Searches for a violation.
    pub check: fn() -> Finding,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("id", &self.id)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

/// A checked claim.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The claim.
    pub claim: Claim,
    /// What the check concludes.
    pub verdict: Verdict,
    /// What it found.
    pub finding: Finding,
    /// Wall-clock seconds.
    pub seconds: f64,
}

impl Checked {
    /// True if the verdict is the expected one.
    pub fn ok(&self) -> bool {
        self.verdict == self.claim.expected
    }
}

/// The whole ledger, in the order of the reports.
///
/// # Example
/// ```
/// use specgap::claims::{Verdict, check_one, ledger};
/// let claim = ledger().into_iter().find(|claim| claim.id == "wo-formula").unwrap();
/// assert_eq!(check_one(&claim).verdict, Verdict::Refuted);
/// ```
pub fn ledger() -> Vec<Claim> {
    [
        optimum::CLAIMS,
        laws::CLAIMS,
        verifiers::CLAIMS,
        table::CLAIMS,
        blocks::CLAIMS,
        length::CLAIMS,
        text::CLAIMS,
    ]
    .concat()
}

/// Statements of the literature that no check here covers, with the reason.
pub const UNCHECKED: [(&str, &str); 8] = [
    (
        "SpecTr, Lemma 2 and the paragraph on complexity: a plan in time polynomial in V^n",
        "a running time is measured in benches/, not proved by instances",
    ),
    (
        "SpecTr, Theorem 2, last sentence: the factor is found in O(V log n)",
        "as above",
    ),
    (
        "Hu et al., sec. 4.2: the optimum in O(V log V)",
        "as above; benches/ measures how the scan grows",
    ),
    (
        "Hu et al., Table 1 and Figures 1 and 2",
        "they need the rows of the models and texts used there, which are not published",
    ),
    (
        "SpecHub, Tables 1 to 3, and SpecTr's, SpecTr-GBV's and SpecDec++'s timings",
        "as above, and they depend on hardware",
    ),
    (
        "SpecHub, Theorem 3 and 4 read token by token",
        "the proofs compare single tokens' rates; the checks take the statement about the total",
    ),
    (
        "SpecDec++, Theorem 4.3: stop when the predicted rejection probability exceeds a threshold",
        "the threshold holds a problem-specific constant that the statement does not determine",
    ),
    (
        "SpecTr-GBV, Definition of its optimum over conditionally independent couplings, K >= 2",
        "the set of couplings is degenerate, see gbv-cic-trivial; what the sum in Lemma 5.1 is a \
         maximum of is therefore not defined",
    ),
];

/// Runs one check.
pub fn check_one(claim: &Claim) -> Checked {
    let started = std::time::Instant::now();
    let finding = (claim.check)();
    let verdict = match finding.violation {
        Some(_) => Verdict::Refuted,
        None => claim.standing,
    };
    Checked {
        claim: *claim,
        verdict,
        finding,
        seconds: started.elapsed().as_secs_f64(),
    }
}

/// Runs all checks, in parallel; the order is that of the ledger, and every
/// check has its own fixed seed.
pub fn check_all(done: impl Fn() + Sync) -> Vec<Checked> {
    ledger()
        .par_iter()
        .map(|claim| {
            let checked = check_one(claim);
            done();
            checked
        })
        .collect()
}

/// What a run leaves for the next one to be compared with: verdicts and evidence
/// by claim, values by problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Format version, 1.
    pub schema: u32,
    /// By claim id.
    pub claims: BTreeMap<String, BaselineClaim>,
    /// By problem name: named values.
    pub problems: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A claim in a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselineClaim {
    /// Its verdict.
    pub verdict: Verdict,
    /// Its evidence.
    pub evidence: BTreeMap<String, Value>,
}

impl Baseline {
    /// Of a run.
    pub fn new(checked: &[Checked], problems: BTreeMap<String, BTreeMap<String, f64>>) -> Self {
        let claims = checked
            .iter()
            .map(|checked| {
                let evidence = checked
                    .finding
                    .evidence
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                    .collect();
                let verdict = checked.verdict;
                (
                    checked.claim.id.to_owned(),
                    BaselineClaim { verdict, evidence },
                )
            })
            .collect();
        Self {
            schema: 1,
            claims,
            problems,
        }
    }
}

/// What changed from one run to another: what is gone or different is a
/// regression, what is new is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Verdicts and values that changed or are gone, in words.
    pub regressions: Vec<String>,
    /// Claims and problems that the baseline does not have.
    pub added: Vec<String>,
}

/// Compares a run with a baseline.
pub fn compare(before: &Baseline, now: &Baseline) -> Changes {
    let mut changes = Changes::default();
    for (id, old) in &before.claims {
        let Some(new) = now.claims.get(id) else {
            changes.regressions.push(format!("claim {id} is gone"));
            continue;
        };
        if old.verdict != new.verdict {
            changes.regressions.push(format!(
                "claim {id} was {} and is {}",
                old.verdict, new.verdict
            ));
        }
        for (name, value) in &old.evidence {
            match new.evidence.get(name) {
                None => changes
                    .regressions
                    .push(format!("claim {id}: {name} is gone")),
                Some(found) if !same(value, found) => {
                    changes
                        .regressions
                        .push(format!("claim {id}: {name} was {value:?} and is {found:?}"));
                }
                Some(_) => {}
            }
        }
    }
    for (problem, old) in &before.problems {
        let Some(new) = now.problems.get(problem) else {
            changes
                .regressions
                .push(format!("problem {problem} is gone"));
            continue;
        };
        for (name, value) in old {
            match new.get(name) {
                None => changes
                    .regressions
                    .push(format!("problem {problem}: {name} is gone")),
                Some(found) if !near(*value, *found) => {
                    changes.regressions.push(format!(
                        "problem {problem}: {name} was {value} and is {found}"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    let new_claims = now
        .claims
        .keys()
        .filter(|id| !before.claims.contains_key(*id));
    changes
        .added
        .extend(new_claims.map(|id| format!("claim {id}")));
    let new_problems = now
        .problems
        .keys()
        .filter(|name| !before.problems.contains_key(*name));
    changes
        .added
        .extend(new_problems.map(|name| format!("problem {name}")));
    changes
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= VALUE_TOLERANCE * a.abs().max(1.0) || a == b
}

fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Count(count) => Some(*count as f64),
        Value::Number(number) => Some(*number),
        Value::Text(_) => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => near(a, b),
        _ => a == b,
    }
}

/// A counterexample that is compiled in, so that the ledger needs no files.
fn shipped(text: &str) -> Result<AnyProblem, String> {
    parse_toml(text).map_err(|error| error.to_string())
}

/// As [`shipped`], for a single-step problem.
fn shipped_single(text: &str) -> Result<Problem, String> {
    match shipped(text)? {
        AnyProblem::Single(problem) => Ok(problem),
        AnyProblem::Block(problem) => Err(format!("{} is a block problem", problem.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_expectations_possible() {
        let ledger = ledger();
        let ids: std::collections::BTreeSet<_> = ledger.iter().map(|claim| claim.id).collect();
        assert_eq!(ids.len(), ledger.len());
        for claim in &ledger {
            assert_ne!(claim.standing, Verdict::Refuted, "{}", claim.id);
            let possible = claim.expected == Verdict::Refuted || claim.expected == claim.standing;
            assert!(possible, "{}", claim.id);
            for file in claim.counterexamples {
                assert!(
                    std::path::Path::new("problems").join(file).is_file(),
                    "{file}"
                );
            }
            let refuted = claim.expected == Verdict::Refuted;
            assert_eq!(refuted, !claim.counterexamples.is_empty(), "{}", claim.id);
        }
    }

    #[test]
    fn a_change_of_verdict_or_value_is_a_regression() {
        let claim = |verdict, number: f64| BaselineClaim {
            verdict,
            evidence: [("x".to_owned(), Value::Number(number))].into(),
        };
        let baseline = |verdict, number| Baseline {
            schema: 1,
            claims: [("a".to_owned(), claim(verdict, number))].into(),
            problems: [("p".to_owned(), [("alpha".to_owned(), number)].into())].into(),
        };
        let before = baseline(Verdict::Holds, 0.5);
        assert_eq!(compare(&before, &before), Changes::default());
        assert!(
            compare(&before, &baseline(Verdict::Holds, 0.5 + 1e-12))
                .regressions
                .is_empty()
        );
        assert_eq!(
            compare(&before, &baseline(Verdict::Refuted, 0.5))
                .regressions
                .len(),
            1
        );
        assert_eq!(
            compare(&before, &baseline(Verdict::Holds, 0.6))
                .regressions
                .len(),
            2
        );
        assert_eq!(compare(&before, &Baseline::default()).regressions.len(), 2);
        assert_eq!(compare(&Baseline::default(), &before).added.len(), 2);
    }
}
