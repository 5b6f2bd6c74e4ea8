//! `specgap check`.

use super::colour::{self, painted};
use super::meant;
use super::options::{Common, Folder, Format};
use super::output::{
    CliError, Verdict, json_file, progress, read_document, read_problems, width, write_whole,
};
use super::overwrites::Touched;
use super::printed::print_report;
use super::recorded::file_name;
use crate::claims::{Baseline, Claim, check_some, compare, ledger};
use crate::evaluate::{Evaluated, Limits, block, solve, verify};
use crate::page::is_of_a_page;
use crate::problem::{AnyProblem, BlockProblem, Problem};
use crate::report::check as report;
use crate::report::check::{CheckRun, ProblemCheck};
use crate::side_by_side;
use crate::typed;
use crate::verifier::VerifierName;
use clap::Args;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Where the repository keeps its problems.
const PROBLEMS: &str = "problems";

/// Arguments of `specgap check`.
#[derive(Args, Debug)]
#[command(mut_arg("out", |out| out.help("Write report.html, report.md, report.json and junit.xml here")))]
pub(super) struct CheckArgs {
    /// Exit with 1 if a result is not as in this file.
    ///
    /// If a verdict or a value differs.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write this run as a baseline.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Write what was checked as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    folder: Folder,
    /// Write the ledger as a Markdown page, alone.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Check these claims of the ledger only, or none of them.
    #[arg(long, value_name = "ID,...|none", value_delimiter = ',')]
    claims: Vec<String>,
    /// List the claims that would be checked, and check nothing.
    #[arg(long, conflicts_with_all = ["baseline", "write_baseline", "junit", "out", "report", "problems"])]
    list: bool,
    /// Problem files or folders to check beside the ledger [default: problems, if
    /// there is such a folder].
    #[arg(long, value_name = "PATH")]
    problems: Vec<PathBuf>,
}

/// What `--claims` says to leave the whole ledger out.
const NONE: &str = "none";

/// Returns which claims are asked for; all where none is named.
fn asked(names: &[String]) -> Result<impl Fn(&str) -> bool, CliError> {
    let known = ledger();
    for name in names.iter().filter(|name| *name != NONE) {
        if !known.iter().any(|claim| claim.id == name) {
            let meant = meant::nearest(name, known.iter().map(|claim| claim.id));
            let meant = meant.map_or_else(String::new, |id| format!("; did you mean {id}?"));
            return Err(CliError::missing(format!(
                "--claims {name}: is no claim of the ledger; specgap check --list has them{meant}"
            )));
        }
    }
    if names.len() > 1 && names.iter().any(|name| name == NONE) {
        return Err(CliError::missing(
            "--claims none leaves no room for others; name claims, or none",
        ));
    }
    let names = names.to_vec();
    Ok(move |id: &str| names.is_empty() || names.iter().any(|name| name == id))
}

/// Prints claims that are asked for, with what is expected of each.
fn list(asked: impl Fn(&str) -> bool, common: &Common) -> Result<Verdict, CliError> {
    let claims: Vec<Claim> = (ledger().into_iter())
        .filter(|claim| asked(claim.id))
        .collect();
    let mut out = colour::plain();
    match common.format {
        Format::Json => {
            for claim in &claims {
                writeln!(out, "{}", report::listed_json(claim)?)?;
            }
        }
        Format::Text => write!(out, "{}", report::list(&claims, width()))?,
    }
    out.flush()?;
    Ok(Verdict::Agrees)
}

pub(super) fn run(args: &CheckArgs, common: &Common) -> Result<Verdict, CliError> {
    let asked = asked(&args.claims)?;
    if args.list {
        return list(asked, common);
    }
    // All input is read before anything is run or written.
    let mut before = args.baseline.as_deref().map(read_baseline).transpose()?;
    if let Some(before) = &mut before {
        // What is not asked for is not missing.
        before.claims.retain(|id, _| asked(id) || !is_known(id));
    }
    let (problems, problems_note) = if args.problems.is_empty() && !Path::new(PROBLEMS).is_dir() {
        let note = "there is no folder named problems here; give --problems PATH";
        (Vec::new(), Some(note.to_owned()))
    } else if args.problems.is_empty() {
        (read_problems(&[PathBuf::from(PROBLEMS)])?, None)
    } else {
        (read_problems(&args.problems)?, None)
    };

    if args.baseline.is_some() || args.write_baseline.is_some() {
        refuse_one_name(&problems)?;
    }
    let own = |name: &str| name == "junit.xml" || is_of_a_page(name);
    (Touched::reading(problems.iter().map(|(path, _, _)| path)))
        .and_reading(&args.baseline)
        .writing("--write-baseline", args.write_baseline.as_deref())
        .writing("--junit", args.junit.as_deref())
        .writing("--report", args.report.as_deref())
        .folder(args.folder.out.as_deref(), own)
        .check()?;
    let count = ledger().iter().filter(|claim| asked(claim.id)).count();
    let total = count + problems.len();
    if total == 0 {
        return Err(CliError::missing(
            "there is nothing to check: no claims and no problem files",
        ));
    }
    let bar = progress(total, common.format == Format::Text, "checking");
    let claims = check_some(|claim| asked(claim.id), || bar.inc(1));
    let checks: Vec<ProblemCheck> = side_by_side::each(&problems, |(_, _, problem)| {
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
    });
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
        write_whole(path, &json_file(&now)?)?;
    }
    if let Some(path) = &args.junit {
        write_whole(path, report::junit(&run).as_bytes())?;
    }
    if let Some(path) = &args.report {
        let command = format!("specgap check --report {}", file_name(path));
        write_whole(path, report::ledger(&run, &command).markdown().as_bytes())?;
    }
    let data = report::json(&run);
    let page = report::page(&run, "specgap check");
    if let Some(folder) = &args.folder.out {
        let mut files = vec![("junit.xml".to_owned(), report::junit(&run).into_bytes())];
        files.extend(args.folder.files(&page, &data)?);
        args.folder.write(folder, &files)?;
    }
    if common.quiet && common.format == Format::Text {
        let text = report::in_short(&run).spans(width(), false);
        write!(colour::stdout(), "{}", painted(&text))?;
    }
    print_report(&data, &page, args.folder.out.as_deref(), common)?;
    Ok(Verdict::of(run.is_ok()))
}

/// Refuses two problems of one name, of which a baseline could hold one only.
fn refuse_one_name(problems: &[(PathBuf, bool, AnyProblem)]) -> Result<(), CliError> {
    let mut files = BTreeMap::new();
    for (path, _, problem) in problems {
        if let Some(other) = files.insert(problem.name(), path) {
            let message = format!(
                "name: is {:?}, as in {}; a baseline holds one problem a name: name one of the two otherwise",
                problem.name(),
                other.display()
            );
            return Err(CliError::input(path, message));
        }
    }
    Ok(())
}

/// Tells whether this version's ledger has a claim of that name.
fn is_known(id: &str) -> bool {
    ledger().iter().any(|claim| claim.id == id)
}

fn read_baseline(path: &Path) -> Result<Baseline, CliError> {
    let input = |message: String| CliError::input(path, message);
    let text = read_document(path)?;
    let baseline: Baseline = typed::whole_json(&text)
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
