//! A report on standard output.

use super::colour::{self, painted};
use super::options::{Common, Folder, Format};
use super::output::{CliError, width};
use crate::page::Page;
use crate::page::paper::Files;
use crate::page::words::{words, wrapped};
use crate::typed;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;

/// Writes a report if a folder is named, with further files of it `beside`, and prints it.
pub(super) fn deliver(
    data: &impl serde::Serialize,
    page: &Page,
    beside: Files,
    folder: &Folder,
    common: &Common,
) -> Result<(), CliError> {
    if let Some(out) = &folder.out {
        // The page comes last, so that it has everything beside it.
        let mut files = beside.clone();
        files.extend(folder.files(page, data)?);
        folder.write(out, &files)?;
    }
    match &common.host {
        Some(host) => host.take(data, page, beside),
        None => print_report(data, page, folder.out.as_deref(), common),
    }
}

/// Says what a report's words mean, for `--help`.
pub(super) fn definitions(words: impl IntoIterator<Item = (impl Display, impl Display)>) -> String {
    let mut text = "Definitions:\n".to_owned();
    for (name, meaning) in words {
        text.push_str(&format!("  {name}: {meaning}\n"));
    }
    text
}

/// What can be done with a report that was printed.
const MORE: &str = "--out DIR writes this as a page with pictures, -v shows all tables, and specgap \
    explain WORD says what a word means.";

/// Names logs by the paths that were typed, where a page has the last part alone: so that the next
/// command runs where this one did. Logs stand between a command's name and its options.
fn as_typed(line: &str, arguments: impl Iterator<Item = String>) -> String {
    let after_command = |(at, _): (usize, &str)| Some(at + 8 + line[at + 8..].find(' ')?);
    let Some(start) = line
        .match_indices("specgap ")
        .next()
        .and_then(after_command)
    else {
        return line.to_owned();
    };
    let (command, rest) = line.split_at(start);
    let end = [" --", " says"]
        .into_iter()
        .filter_map(|end| rest.find(end))
        .min();
    let (logs, rest) = rest.split_at(end.unwrap_or(0));
    let mut logs = format!("{logs} ");
    for typed in arguments.filter(|one| Path::new(one).exists()) {
        let name = Path::new(&typed).file_name();
        if let Some(name) = name.and_then(|name| name.to_str()) {
            let of_page = format!(" {} ", words([name].into_iter()));
            logs = logs.replacen(&of_page, &format!(" {} ", words([&*typed].into_iter())), 1);
        }
    }
    format!("{command}{}{rest}", logs.trim_end())
}

/// Prints what a report says, as data or as its page, and where its files are.
pub(crate) fn print_report(
    data: &impl serde::Serialize,
    page: &Page,
    out: Option<&Path>,
    common: &Common,
) -> Result<(), CliError> {
    if let Some(host) = &common.host {
        return host.take(data, page, Vec::new());
    }
    let mut stdout = colour::stdout();
    match common.format {
        Format::Json => {
            writeln!(colour::plain(), "{}", typed::line(data)?)?;
        }
        Format::Text => {
            if !common.quiet {
                let text = page.spans(width(), common.verbose > 0);
                write!(stdout, "{}", painted(&text))?;
            }
            let next = page.last_line().filter(|_| !common.quiet);
            let last = next.map_or_else(String::new, |next| {
                wrapped(&as_typed(&next, std::env::args().skip(1)), width())
            });
            match out {
                Some(folder) => {
                    if !last.is_empty() {
                        write!(stdout, "\n{last}")?;
                    }
                    writeln!(stdout, "report: {}", folder.join("report.html").display())?;
                }
                None if common.quiet => {}
                None => write!(stdout, "\n{}{last}", wrapped(MORE, width()))?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::as_typed;

    #[test]
    fn the_next_command_names_logs_as_they_were_typed() {
        let arguments = || {
            ["crates/tables", "--out", "src/cli", "none/log"]
                .map(str::to_owned)
                .into_iter()
        };
        let line = |line: &str| as_typed(line, arguments());
        assert_eq!(
            line("next: specgap length tables --cost-ratio 0.05 says, and cli which tables"),
            "next: specgap length crates/tables --cost-ratio 0.05 says, and cli which tables"
        );
        assert_eq!(
            line("next: specgap cli log says"),
            "next: specgap cli log says"
        );
        assert_eq!(line("next: log tables too"), "next: log tables too");
    }
}
