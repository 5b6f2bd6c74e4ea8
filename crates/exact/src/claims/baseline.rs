//! One run of the ledger against another.

use super::{Checked, Value, Verdict};
use serde::{Deserialize, Serialize};
use specgap_core::rule::RuleName;
use std::collections::BTreeMap;

/// Two runs' numbers are the same within this, absolutely or relatively.
pub const VALUE_TOLERANCE: f64 = 1e-9;

/// What a run leaves for the next one to be compared with: verdicts and evidence
/// by claim, values by problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
            match new.get(name).or_else(|| new.get(&written(name))) {
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

/// A value's name as this version writes it: rules had other names.
fn written(name: &str) -> String {
    let (rule, value) = name.split_once('.').unwrap_or((name, ""));
    match rule.parse::<RuleName>() {
        Ok(rule) => format!("{rule}.{value}"),
        Err(_) => name.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_rules_are_found_under_their_new_names() {
        let run = |name: &str| Baseline {
            problems: [("p".to_owned(), [(name.to_owned(), 0.5)].into())].into(),
            ..Baseline::default()
        };
        let was = run("naive.acceptance_rate");
        assert_eq!(
            compare(&was, &run("exact-match.acceptance_rate")),
            Changes::default()
        );
        assert_eq!(
            compare(&was, &run("rrs.acceptance_rate")).regressions.len(),
            1
        );
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
