//! A claim, and what its check found.

use serde::{Deserialize, Serialize};
use specgap_base::{names, shown_by_name};
use specgap_core::optimum::best;
use specgap_core::problem::{AnyProblem, BlockProblem, Problem, parse_toml};
use specgap_number::distribution::{Rational, format_rational};
use std::fmt;

/// What is known about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Proved, and checked without exception on a stated family.
    Holds,
    /// No counterexample in a stated search; no proof.
    Supported,
    /// A counterexample is known, and was found again.
    Refuted,
}

names!(Verdict: Holds "holds", Supported "supported", Refuted "refuted");

shown_by_name!(Verdict);

/// One number or text that a check brings up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Value {
    /// How many of something.
    Count(u64),
    /// A measured number; compared with a baseline within 1e-9.
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

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The first violation of the claim, in words; `None` if there is none.
    pub violation: Option<String>,
    /// Named evidence, in the order it was brought up.
    pub evidence: Vec<(&'static str, Value)>,
}

impl Finding {
    pub(super) fn count(&mut self, name: &'static str, count: u64) {
        self.evidence.push((name, Value::Count(count)));
    }
    /// Adds to a count, which is 0 before.
    pub(super) fn add(&mut self, name: &'static str, more: u64) {
        match self.evidence.iter_mut().find(|(known, _)| *known == name) {
            Some((_, Value::Count(count))) => *count += more,
            _ => self.count(name, more),
        }
    }
    /// Counts one more if it holds.
    pub(super) fn tally(&mut self, name: &'static str, holds: bool) {
        self.add(name, u64::from(holds));
    }
    pub(super) fn counted(&self, name: &str) -> u64 {
        match self.evidence.iter().find(|(known, _)| *known == name) {
            Some((_, Value::Count(count))) => *count,
            _ => 0,
        }
    }
    pub(super) fn number(&mut self, name: &'static str, number: f64) {
        self.evidence.push((name, Value::Number(number)));
    }
    pub(super) fn text(&mut self, name: &'static str, text: impl Into<String>) {
        self.evidence.push((name, Value::Text(text.into())));
    }
    pub(super) fn fraction(&mut self, name: &'static str, fraction: &Rational) {
        self.text(name, format_rational(fraction));
    }
    /// Records a violation unless `holds`; the first one stays.
    pub(super) fn require(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        if !holds && self.violation.is_none() {
            self.violation = Some(violation());
        }
    }
    /// Requires that two ways to something agree; `name` says of what.
    pub(super) fn same<T: PartialEq + fmt::Debug>(
        &mut self,
        found: T,
        wanted: T,
        name: impl FnOnce() -> String,
    ) {
        let same = found == wanted;
        self.require(same, || format!("{}: {found:?}, not {wanted:?}", name()));
    }
    /// Requires the same where [`Self::about`] says of what.
    pub(super) fn equal<T: PartialEq + fmt::Debug>(&mut self, found: T, wanted: T) {
        let same = found == wanted;
        self.require(same, || format!("{found:?}, not {wanted:?}"));
    }
    /// Requires that one number is not above another; `name` says what is.
    pub(super) fn at_most<T: PartialOrd + fmt::Display>(&mut self, name: &str, less: T, more: T) {
        let holds = less <= more;
        self.require(holds, || format!("{name}: {less} is above {more}"));
    }
    /// Requires that more than so many of each were looked at: else a check says nothing.
    pub(super) fn enough(&mut self, names: &[&str], least: u64) {
        for name in names {
            let is_enough = self.counted(name) > least;
            self.require(is_enough, || format!("too few {name} for a check"));
        }
    }
    /// Checks something, which is named with what violates the claim there. It is a violation if
    /// something that the check needs is missing.
    pub(super) fn about(
        &mut self,
        name: impl FnOnce() -> String,
        check: impl FnOnce(&mut Self) -> Option<()>,
    ) {
        let is_known = self.violation.is_some();
        let is_whole = check(self).is_some();
        self.require(is_whole, || "not checked".to_owned());
        let new = self.violation.take();
        self.violation = match is_known {
            true => new,
            false => new.map(|violation| format!("{}: {violation}", name())),
        };
    }
    /// Problems that are compiled in, so that the ledger needs no files.
    pub(super) fn shipped<P: Shipped, const N: usize>(
        &mut self,
        texts: [&str; N],
    ) -> Option<[P; N]> {
        let mut problems = Vec::with_capacity(N);
        for text in texts {
            match parse_toml(text) {
                Ok(problem) => problems.extend(P::of(problem)),
                Err(error) => self.text("not read", error.to_string()),
            }
        }
        problems.try_into().ok()
    }
    /// alpha\* of a problem, which is evidence.
    pub(super) fn optimum(&mut self, name: &'static str, problem: &Problem) -> Rational {
        let alpha = optimum(problem);
        self.fraction(name, &alpha);
        alpha
    }
}

/// A kind of problem that claims come with.
pub(super) trait Shipped: Sized {
    fn of(problem: AnyProblem) -> Option<Self>;
}

impl Shipped for Problem {
    fn of(problem: AnyProblem) -> Option<Self> {
        problem.single().cloned()
    }
}

impl Shipped for BlockProblem {
    fn of(problem: AnyProblem) -> Option<Self> {
        problem.block().cloned()
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
    /// The verdict that this version of the ledger expects. [`Verdict::Holds`] takes a proof.
    pub expected: Verdict,
    /// Problem files, below `problems/`, that are the smallest counterexamples.
    pub counterexamples: &'static [&'static str],
    /// Searches for a violation.
    pub check: fn(&mut Finding),
}

impl Claim {
    /// Tells whether the statement stands in a paper as it is: it is not this crate's own, and no
    /// reading or guess of what papers say.
    pub fn is_published(&self) -> bool {
        let others = ["ours", "this crate", "a reading", "a natural"];
        !others.iter().any(|other| self.source.starts_with(other))
    }
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
    pub fn is_ok(&self) -> bool {
        self.verdict == self.claim.expected
    }
}

/// The claims of a file: verdict, name and check of each, the files of its counterexamples, and what
/// is claimed, who claims it, what the check does. A check `of` these files takes their problems.
macro_rules! claims {
    (@holds) => { $crate::claims::Verdict::Holds };
    (@supported) => { $crate::claims::Verdict::Supported };
    (@refuted) => { $crate::claims::Verdict::Refuted };
    (@by $check:expr $(, $file:literal)*) => { $check };
    (@of $check:expr, $($file:literal),+) => {
        |finding: &mut $crate::claims::Finding| {
            let texts = [$(include_str!(concat!("../../../../problems/", $file))),+];
            if let Some(problems) = finding.shipped(texts) {
                $check(finding, problems);
            }
        }
    };
    ($($verdict:ident $id:literal $by:ident $check:expr, $(in [$($file:literal),+])?
        $statement:literal, $source:literal, $explanation:literal;)+) => {
        pub(super) const CLAIMS: &[$crate::claims::Claim] = &[$($crate::claims::Claim {
            id: $id,
            statement: $statement,
            source: $source,
            explanation: $explanation,
            expected: $crate::claims::claim::claims!(@$verdict),
            counterexamples: &[$($($file),+)?],
            check: $crate::claims::claim::claims!(@$by $check $($(, $file)+)?),
        }),+];
    };
}
pub(super) use claims;

/// alpha* of a small problem, exactly.
pub(super) fn optimum(problem: &Problem) -> Rational {
    let rate = best(problem).map(|optimum| optimum.rate);
    rate.ok()
        .and_then(|rate| rate.rational().cloned())
        .unwrap_or_default()
}
