//! `specgap certify`.

use super::options::{Common, Format};
use super::output::{CliError, Verdict, read_document, read_problems};
use crate::certify::Certificate;
use crate::distribution::format_rational;
use crate::evaluate::{EnclosureError, enclose};
use crate::page::visible;
use crate::problem::{AnyProblem, Problem};
use crate::typed;
use clap::Args;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `specgap certify`.
#[derive(Args, Debug)]
pub(super) struct CertifyArgs {
    /// The problem file.
    problem: PathBuf,
    /// The certificate, as `specgap solve --out` writes it. Without one, i.i.d. and stratified
    /// drafts are verified by rule level, and the set that the run leaves is checked in fractions.
    certificate: Option<PathBuf>,
}

/// What became of a certificate, or of one run of the level rule.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Certified {
    /// 1.
    schema: u32,
    /// The problem's name.
    problem: String,
    /// The fraction that is proved, or null.
    optimal_acceptance_rate: Option<String>,
    /// Whether the certificate proves it; of a run, whether its two bounds agree.
    valid: bool,
    /// Why it does not.
    reason: Option<String>,
    /// Of a run: alpha* between what the rule accepts and the set's bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    enclosure: Option<Enclosed>,
}

/// What one run of the level rule proves.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Enclosed {
    /// The rule: level, or level-4 where that accepts more.
    rule: String,
    /// What it accepts at least.
    lower: f64,
    /// 1 + P(H) - Q(H), rounded up.
    upper: f64,
    /// The same, exactly.
    upper_bound: String,
    /// H.
    subset: Vec<usize>,
}

pub(super) fn run(args: &CertifyArgs, common: &Common) -> Result<Verdict, CliError> {
    let problems = read_problems(std::slice::from_ref(&args.problem))?;
    let [(_, _, AnyProblem::Single(problem))] = problems.as_slice() else {
        return Err(CliError::input(
            &args.problem,
            "give one single-step problem file",
        ));
    };
    let made = match &args.certificate {
        Some(path) => checked(path, problem)?,
        None => enclosed(&args.problem, problem)?,
    };
    let valid = made.valid;
    let mut out = super::colour::plain();
    match common.format {
        Format::Json => writeln!(out, "{}", typed::line(&made)?)?,
        Format::Text => writeln!(out, "{}", words(&made))?,
    }
    Ok(Verdict::of(valid))
}

/// A certificate of a file.
fn checked(path: &Path, problem: &Problem) -> Result<Certified, CliError> {
    let input = |message: String| CliError::input(path, message);
    let text = read_document(path)?;
    let (certificate, rest): (Certificate, _) =
        typed::json(&text).map_err(|refused| input(refused.to_string()))?;
    rest.map_err(|error| input(error.to_string()))?;
    let checked = certificate.check(problem);
    let proved = checked.as_ref().ok();
    Ok(Certified {
        schema: crate::report::JSON_SCHEMA,
        problem: problem.name().to_owned(),
        optimal_acceptance_rate: (proved.and_then(|rate| rate.get().rational()))
            .map(format_rational),
        valid: checked.is_ok(),
        reason: checked.err().map(|error| error.to_string()),
        enclosure: None,
    })
}

/// One run of the level rule.
fn enclosed(path: &Path, problem: &Problem) -> Result<Certified, CliError> {
    let made = Certified {
        schema: crate::report::JSON_SCHEMA,
        problem: problem.name().to_owned(),
        optimal_acceptance_rate: None,
        valid: true,
        reason: None,
        enclosure: None,
    };
    let found = match enclose(problem) {
        Ok(found) => found,
        Err(EnclosureError::Law(error)) => {
            return Err(CliError::input(
                path,
                format!(
                    "{error}: draft.scheme has to be with-replacement or stratified where no \
                     certificate is given; give one, as specgap solve --out writes it"
                ),
            ));
        }
        Err(error) => {
            return Ok(Certified {
                valid: false,
                reason: Some(error.to_string()),
                ..made
            });
        }
    };
    let rate = found.rate();
    Ok(Certified {
        optimal_acceptance_rate: rate.rational().map(format_rational),
        enclosure: Some(Enclosed {
            rule: found.rule.to_string(),
            lower: rate.lower(),
            upper: rate.upper(),
            upper_bound: format_rational(&found.upper),
            subset: found.subset,
        }),
        ..made
    })
}

/// Tokens of H that a line says.
const MOST_SHOWN: usize = 32;

fn words(made: &Certified) -> String {
    let name = visible(made.problem.clone());
    let set = |tokens: &[usize]| {
        let shown = tokens.iter().take(MOST_SHOWN).map(usize::to_string);
        let more = tokens.len().saturating_sub(MOST_SHOWN);
        let rest = (more > 0).then(|| format!("and {more} more (--format json)"));
        let list: Vec<String> = shown.chain(rest).collect();
        format!("{{{}}}", list.join(", "))
    };
    match (&made.enclosure, &made.optimal_acceptance_rate, &made.reason) {
        (None, Some(value), _) => {
            format!("{name}: the certificate proves alpha* = {value}, with tolerance 0")
        }
        (Some(found), Some(value), _) => format!(
            "{name}: rule {} accepts alpha* = {value} = 1 + P(H) - Q(H), in fractions, with H = {}",
            found.rule,
            set(&found.subset)
        ),
        (Some(found), None, _) => format!(
            "{name}: alpha* is from {}, which rule {} accepts, to {} = 1 + P(H) - Q(H), in \
             fractions, with H = {}: a width of {:.1e}",
            found.lower,
            found.rule,
            found.upper_bound,
            set(&found.subset),
            found.upper - found.lower
        ),
        (None, None, reason) => {
            let why = reason.clone();
            let why = why.unwrap_or_else(|| "it proves no exact value".to_owned());
            format!("{name}: REJECTED: {}", visible(why))
        }
    }
}
