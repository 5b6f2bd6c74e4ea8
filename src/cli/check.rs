//! `specgap check`.

use super::options::{Common, Format};
use super::output::{CliError, Verdict, progress, read_problems, width, write_whole};
use crate::claims::{Baseline, check_all, compare, ledger};
use crate::evaluate::{Evaluated, Limits, block, solve, verify};
use crate::problem::{AnyProblem, BlockProblem, Problem};
use crate::report::check as report;
use crate::report::check::{CheckRun, ProblemCheck};
use crate::verifier::VerifierName;
use clap::Args;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where the repository keeps its problems.
const PROBLEMS: &str = "problems";

/// Arguments of `specgap check`.
#[derive(Args, Debug)]
pub(super) struct CheckArgs {
    /// Fail if a verdict or a value differs from this file's.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write this run as a baseline.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the ledger as a Markdown page.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Problem files or folders to check beside the ledger [default: problems, if
    /// there is such a folder].
    #[arg(long, value_name = "PATH")]
    problems: Vec<PathBuf>,
}

pub(super) fn run(args: &CheckArgs, common: &Common) -> Result<Verdict, CliError> {
    // All input is read before anything is run or written.
    let before = args.baseline.as_deref().map(read_baseline).transpose()?;
    let (problems, problems_note) = if args.problems.is_empty() && !Path::new(PROBLEMS).is_dir() {
        let note = "there is no folder named problems here; give --problems PATH";
        (Vec::new(), Some(note.to_owned()))
    } else if args.problems.is_empty() {
        (read_problems(&[PathBuf::from(PROBLEMS)])?, None)
    } else {
        (read_problems(&args.problems)?, None)
    };

    let total = ledger().len() + problems.len();
    let bar = progress(total, common.format == Format::Text, "checking");
    let claims = check_all(|| bar.inc(1));
    let checks: Vec<ProblemCheck> = problems
        .par_iter()
        .map(|(_, _, problem)| {
            let started = Instant::now();
            let (complaints, values) = match problem {
                AnyProblem::Single(problem) => check_single(problem),
                AnyProblem::Block(problem) => check_block(problem),
            };
            bar.inc(1);
            ProblemCheck {
                name: problem.name().to_owned(),
                complaints,
                values,
                seconds: started.elapsed().as_secs_f64(),
            }
        })
        .collect();
    bar.finish_and_clear();

    let values = checks
        .iter()
        .map(|check| (check.name.clone(), check.values.clone()))
        .collect();
    let now = Baseline::new(&claims, values);
    let changes = before.as_ref().map(|before| compare(before, &now));
    let run = CheckRun {
        claims,
        problems: checks,
        problems_note,
        changes,
    };

    if let Some(path) = &args.write_baseline {
        let mut text = serde_json::to_string_pretty(&now)?;
        text.push('\n');
        write_whole(path, text.as_bytes())?;
    }
    if let Some(path) = &args.junit {
        write_whole(path, report::junit(&run).as_bytes())?;
    }
    if let Some(path) = &args.report {
        let command = format!("specgap check --report {}", path.display());
        write_whole(path, report::markdown(&run, &command).as_bytes())?;
    }
    let mut out = std::io::stdout().lock();
    match common.format {
        Format::Json => writeln!(out, "{}", report::json(&run)?)?,
        Format::Text => {
            let text = report::text(&run, width(), common.quiet, common.verbose > 0);
            write!(out, "{text}")?;
        }
    }
    out.flush()?;
    Ok(Verdict::of(run.is_ok()))
}

fn read_baseline(path: &Path) -> Result<Baseline, CliError> {
    let input = |message: String| CliError::Input {
        path: path.to_owned(),
        message,
    };
    let text = std::fs::read_to_string(path).map_err(|source| CliError::File {
        path: path.to_owned(),
        action: "cannot be read",
        source,
    })?;
    let baseline: Baseline = serde_json::from_str(&text)
        .map_err(|error| input(format!("{error}; write one with --write-baseline")))?;
    if baseline.schema != 1 {
        let message = format!("schema is {}; this build reads schema 1", baseline.schema);
        return Err(input(message));
    }
    Ok(baseline)
}

type Checks = (Vec<String>, BTreeMap<String, f64>);

fn check_single(problem: &Problem) -> Checks {
    let mut values = BTreeMap::new();
    let solution = solve(problem, &Limits::default());
    let mut complaints = solution.complaints();
    values.insert(
        "optimal_acceptance_rate".to_owned(),
        solution.optimal_acceptance_rate.value(),
    );
    let verification = verify(problem);
    complaints.extend(verification.complaints());
    for name in VerifierName::ALL {
        if let Some(measured) = verification.measured(name) {
            values.insert(
                format!("{}.acceptance_rate", name.as_str()),
                measured.membership.value(),
            );
        }
    }
    (complaints, values)
}

fn check_block(problem: &BlockProblem) -> Checks {
    let evaluation = block(problem, problem.drafts());
    let mut values = BTreeMap::new();
    values.insert("lemma_5_1".to_owned(), evaluation.lemma_5_1.value());
    values.insert(
        "per_depth_bound".to_owned(),
        evaluation.per_depth_bound.value(),
    );
    if let Some(optimum) = evaluation.block_optimum() {
        values.insert("block_lp".to_owned(), optimum.value());
    }
    for verifier in &evaluation.verifiers {
        if let Some(law) = verifier.outcome.done() {
            let name = format!("{}.expected_accepted_length", verifier.name.as_str());
            values.insert(name, law.expected_accepted_length.value());
        }
    }
    (evaluation.complaints(), values)
}
