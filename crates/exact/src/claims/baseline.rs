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
    /// The baseline of a run.
    pub fn new(checked: &[Checked], problems: BTreeMap<String, BTreeMap<String, f64>>) -> Self {
        let claims = checked.iter().map(|checked| {
            let evidence = checked.finding.evidence.iter();
            let evidence = evidence.map(|(name, value)| ((*name).to_owned(), value.clone()));
            let claim = BaselineClaim {
                verdict: checked.verdict,
                evidence: evidence.collect(),
            };
            (checked.claim.id.to_owned(), claim)
        });
        Self {
            schema: 1,
            claims: claims.collect(),
            problems,
        }
    }
}

/// What changed from one run to another: what is gone or different is a
/// regression, what is new is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// Verdicts that differ, values that differ by more than 1e-9, and what is gone.
    pub regressions: Vec<String>,
    /// What is new.
    pub added: Vec<String>,
}

/// Compares a run with a baseline.
pub fn compare(before: &Baseline, now: &Baseline) -> Changes {
    let mut changes = Changes::default();
    changes.look("claim", &before.claims, &now.claims, |name, old, new| {
        let (was, is) = (old.verdict, new.verdict);
        let verdict = (was != is).then(|| format!("{name} was {was} and is {is}"));
        let values = old.evidence.iter().filter_map(|(value, was)| {
            let name = format!("{name}: {value}");
            match new.evidence.get(value) {
                None => Some(format!("{name} is gone")),
                Some(is) => (!same(was, is)).then(|| format!("{name} was {was:?} and is {is:?}")),
            }
        });
        verdict.into_iter().chain(values).collect()
    });
    changes.look(
        "problem",
        &before.problems,
        &now.problems,
        |name, old, new| {
            let values = old.iter().filter_map(|(value, was)| {
                let name = format!("{name}: {value}");
                match new.get(value).or_else(|| new.get(&written(value))) {
                    None => Some(format!("{name} is gone")),
                    Some(is) => (!near(*was, *is)).then(|| format!("{name} was {was} and is {is}")),
                }
            });
            values.collect()
        },
    );
    changes
}

impl Changes {
    /// Adds those of all things of a kind; `each` lists what is worse of one that both have.
    fn look<T>(
        &mut self,
        kind: &str,
        before: &BTreeMap<String, T>,
        now: &BTreeMap<String, T>,
        each: impl Fn(&str, &T, &T) -> Vec<String>,
    ) {
        for (id, old) in before {
            let name = format!("{kind} {id}");
            self.regressions.extend(match now.get(id) {
                Some(new) => each(&name, old, new),
                None => vec![format!("{name} is gone")],
            });
        }
        let new = now.keys().filter(|id| !before.contains_key(*id));
        self.added.extend(new.map(|id| format!("{kind} {id}")));
    }
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
        let same = compare(&was, &run("exact-match.acceptance_rate"));
        assert_eq!(same, Changes::default());
        let other = compare(&was, &run("rrs.acceptance_rate"));
        assert_eq!(other.regressions.len(), 1);
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
        for (now, count) in [
            (baseline(Verdict::Holds, 0.5 + 1e-12), 0),
            (baseline(Verdict::Refuted, 0.5), 1),
            (baseline(Verdict::Holds, 0.6), 2),
            (Baseline::default(), 2),
        ] {
            assert_eq!(compare(&before, &now).regressions.len(), count, "{now:?}");
        }
        assert_eq!(compare(&Baseline::default(), &before).added.len(), 2);
    }
}
