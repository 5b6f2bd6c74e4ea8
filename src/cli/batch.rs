//! What `solve`, `verify` and `block` share: problems in, one result after the
//! other out, a verdict at the end.

use super::colour::{self, painted};
use super::options::{Common, Format};
use super::output::{CliError, Verdict, progress, read_problems, width};
use crate::evaluate::{Evaluated, NotTaken};
use crate::page::table::Column;
use crate::page::terminal::Text;
use crate::page::{counted, visible};
use crate::problem::AnyProblem;
use crate::report::problems::table;
use crate::side_by_side;
use crate::typed;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Problems that are worked on before their results are printed: results appear
/// in order, soon, and are not all kept.
const BATCH: usize = 64;

/// A command that treats each problem on its own.
pub(super) trait ProblemCommand: Sync {
    /// The kind of problem that it takes.
    type Problem: Sync;
    /// What it finds.
    type Result: Evaluated + Send;

    /// In the progress bar, as in "solving".
    const DOING: &'static str;
    /// A problem of the other kind, which is refused when it was named and passed over when a folder
    /// holds it, and the command that takes it.
    const OTHERS: [&'static str; 2];
    /// Goes under a text report.
    const DEFINITIONS: fn() -> String;

    /// The problem, if it is of the right kind.
    const SELECT: fn(&AnyProblem) -> Option<&Self::Problem>;
    /// The result for people, so many columns wide.
    const TEXT: fn(&Self::Result, u16) -> Text;
    /// The columns of a table of results, and a result's line in it, where several problems are
    /// printed in short.
    const LINE: fn(&Self::Result) -> Vec<(Column, String)>;

    /// Called once all input is read and found good, before anything is worked on, with the
    /// problems and their files.
    fn prepare(&mut self, _: &[(&Path, &Self::Problem)]) -> Result<(), CliError> {
        Ok(())
    }
    /// Works on one problem; one result or more.
    fn work(&self, problem: &Self::Problem) -> Vec<Self::Result>;
    /// Called with each result after it is printed.
    fn keep(&mut self, _: &Self::Problem, _: &Self::Result) -> Result<(), CliError> {
        Ok(())
    }
    /// The last line, but for what was passed over.
    fn summary(&self, results: usize, agreeing: usize) -> String;
}

/// Runs a command over problem files and folders.
pub(super) fn run<C: ProblemCommand>(
    mut command: C,
    paths: &[PathBuf],
    common: &Common,
) -> Result<Verdict, CliError> {
    let problems = read_problems(paths)?;
    let [other, its_command] = C::OTHERS;
    let reason = format!("a {other}; see {its_command}");
    for (path, walked, problem) in &problems {
        if !walked && (C::SELECT)(problem).is_none() {
            let refusal = format!("this is a {other}; run {its_command} on it");
            return Err(CliError::input(path, refusal));
        }
    }
    let own = (problems.iter())
        .filter_map(|(path, _, problem)| Some((path.as_path(), (C::SELECT)(problem)?)));
    command.prepare(&own.collect::<Vec<_>>())?;
    let text = common.format == Format::Text;
    let bar = progress(problems.len(), text, C::DOING);
    let selected = problems.iter();
    let several = selected.filter(|(_, _, problem)| (C::SELECT)(problem).is_some());
    let in_short = several.count() > 1 && common.verbose == 0;
    let mut lines = Vec::new();
    let mut out = colour::stdout();
    let (mut results, mut agreeing, mut skipped) = (0, 0, 0);
    for batch in problems.chunks(BATCH) {
        let found: Vec<Vec<C::Result>> = side_by_side::each(batch, |(_, _, problem)| {
            let found = (C::SELECT)(problem).map(|problem| command.work(problem));
            bar.inc(1);
            found.unwrap_or_default()
        });
        for ((_, _, problem), found) in batch.iter().zip(&found) {
            let Some(selected) = (C::SELECT)(problem) else {
                skipped += 1;
                if !text {
                    let skipped = NotTaken::of(problem.name(), &reason);
                    writeln!(out, "{}", typed::line(&skipped)?)?;
                } else if common.verbose > 0 {
                    let name = visible(problem.name().to_owned());
                    writeln!(out, "{name}: skipped, {reason}\n")?;
                }
                continue;
            };
            for result in found {
                results += 1;
                agreeing += usize::from(result.is_ok());
                if in_short {
                    lines.push((C::LINE)(result));
                }
                if !text {
                    writeln!(out, "{}", typed::line(result)?)?;
                } else if !((in_short || common.quiet) && result.is_ok()) {
                    let text = (C::TEXT)(result, width());
                    bar.suspend(|| writeln!(out, "{}", painted(&text)))?;
                }
                command.keep(selected, result)?;
            }
        }
    }
    bar.finish_and_clear();
    if results == 0 {
        out.flush()?;
        return Err(CliError::missing(format!(
            "nothing was done: {} read, each {reason}",
            counted(skipped, "problem")
        )));
    }
    if text {
        if !lines.is_empty() && !common.quiet {
            write!(out, "{}", painted(&table(lines, width())))?;
        }
        if common.verbose > 0 {
            writeln!(out, "{}\n", (C::DEFINITIONS)())?;
        }
        let summary = command.summary(results, agreeing);
        match skipped {
            0 => writeln!(out, "{summary}")?,
            n => {
                let skipped = counted(n, other);
                writeln!(out, "{summary}; {skipped} skipped (see {its_command})")?;
            }
        }
    }
    out.flush()?;
    Ok(Verdict::of(agreeing == results))
}
