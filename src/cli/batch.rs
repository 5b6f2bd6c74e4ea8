//! What `solve`, `verify` and `block` share: problems in, one result after the
//! other out, a verdict at the end.

use super::colour::{self, painted};
use super::options::{Common, Format, Problems};
use super::output::{CliError, Verdict, progress, read_problems, width};
use super::overwrites::Touched;
use super::recorded::Recorded;
use crate::evaluate::{Evaluated, NotTaken};
use crate::glossary;
use crate::page::table::Column;
use crate::page::{Page, agree, counted, definition, disagree, is_of_a_page, visible};
use crate::problem::AnyProblem;
use crate::report::problems::{table, whole};
use crate::side_by_side;
use crate::typed;
use std::io::Write;
use std::path::Path;

/// Problems that are worked on before their results are printed: results appear
/// in order, soon, and are not all kept.
const BATCH: usize = 64;

/// A command that treats each problem on its own.
pub(super) trait ProblemCommand: Sync {
    /// The kind of problem that it takes.
    type Problem: Sync;
    /// What it finds.
    type Result: Evaluated + Send;

    /// The command, which its words stand under, too.
    const NAME: &'static str;
    /// What it makes of a problem.
    const RESULT: &'static str = "problem";
    /// In the progress bar, as in "solving".
    const DOING: &'static str;
    /// A problem of the other kind, which is refused when it was named and passed over when a folder
    /// holds it, and the command that takes it.
    const OTHERS: [&'static str; 2];

    /// The problem, if it is of the right kind.
    const SELECT: fn(&AnyProblem) -> Option<&Self::Problem>;
    /// The result for people.
    const PAGE: fn(&Self::Result) -> Page;
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
    /// The options that make other results.
    fn recorded(&self, _: &mut Recorded) {}
    /// Called with each result after it is printed; what is for files of its own may be taken out.
    fn keep(&mut self, _: &Self::Problem, _: &mut Self::Result) -> Result<(), CliError> {
        Ok(())
    }
    /// The last line, but for what was passed over.
    fn summary(&self, results: usize, agreeing: usize) -> String {
        let (all, wrong) = (counted(results, Self::RESULT), results - agreeing);
        format!("{all}: {}, {}", agree(agreeing), disagree(wrong))
    }
}

/// Runs a command over problem files and folders.
pub(super) fn run<C: ProblemCommand>(
    mut command: C,
    Problems { problems, folder }: &Problems,
    common: &Common,
) -> Result<Verdict, CliError> {
    let mut line = Recorded::new(C::NAME, problems);
    command.recorded(&mut line);
    let problems = read_problems(problems)?;
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
    Touched::reading(problems.iter().map(|(path, _, _)| path))
        .folder(folder.out.as_deref(), is_of_a_page)
        .check()?;
    command.prepare(&own.collect::<Vec<_>>())?;
    let text = common.format == Format::Text;
    let bar = progress(problems.len(), text, C::DOING);
    let selected = problems.iter();
    let several = selected.filter(|(_, _, problem)| (C::SELECT)(problem).is_some());
    let in_short = several.count() > 1 && common.verbose == 0;
    let (mut lines, mut kept) = (Vec::new(), Vec::new());
    let mut out = colour::stdout();
    let (mut results, mut agreeing, mut skipped) = (0, 0, 0);
    for batch in problems.chunks(BATCH) {
        let found: Vec<Vec<C::Result>> = side_by_side::each(batch, |(_, _, problem)| {
            let found = (C::SELECT)(problem).map(|problem| command.work(problem));
            bar.inc(1);
            found.unwrap_or_default()
        });
        for ((_, _, problem), found) in batch.iter().zip(found) {
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
            for mut result in found {
                results += 1;
                agreeing += usize::from(result.is_ok());
                lines.push((C::LINE)(&result));
                if !text {
                    writeln!(out, "{}", typed::line(&result)?)?;
                } else if !((in_short || common.quiet) && result.is_ok()) {
                    let text = (C::PAGE)(&result).spans(width(), common.verbose > 0);
                    bar.suspend(|| writeln!(out, "{}", painted(&text)))?;
                }
                command.keep(selected, &mut result)?;
                kept.extend(folder.out.is_some().then_some(result));
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
    let mut summary = command.summary(results, agreeing);
    if skipped > 0 {
        let skipped = counted(skipped, other);
        summary.push_str(&format!("; {skipped} skipped (see {its_command})"));
    }
    if text {
        if in_short && !common.quiet {
            write!(out, "{}", painted(&table(lines.clone(), width())))?;
        }
        if common.verbose > 0 {
            for (word, meaning) in glossary::of::<Vec<_>>(C::NAME) {
                write!(out, "{}", painted(&definition(&word, &meaning, width())))?;
            }
            writeln!(out)?;
        }
        writeln!(out, "{summary}")?;
    }
    if let Some(place) = &folder.out {
        let pages = kept.iter().map(C::PAGE).collect();
        let page = whole(C::NAME, &line.into_line(), summary, lines, pages);
        folder.write(place, &folder.files(&page, &kept)?)?;
        if text {
            writeln!(out, "report: {}", place.join("report.html").display())?;
        }
    }
    out.flush()?;
    Ok(Verdict::of(agreeing == results))
}
