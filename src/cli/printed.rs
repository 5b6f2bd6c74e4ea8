//! A report on standard output.

use super::options::{Common, Format};
use super::output::{CliError, width};
use crate::report::page::Page;
use std::io::Write;
use std::path::Path;

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
    let mut stdout = std::io::stdout().lock();
    match common.format {
        Format::Json => {
            serde_json::to_writer(&mut stdout, data)?;
            writeln!(stdout)?;
        }
        Format::Text => {
            if !common.quiet {
                write!(stdout, "{}", page.text(width(), common.verbose > 0))?;
            }
            match out {
                Some(folder) => {
                    writeln!(stdout, "report: {}", folder.join("report.html").display())?;
                }
                None if common.quiet => {}
                None => writeln!(
                    stdout,
                    "\n--out DIR writes this as a page with pictures, -v shows all tables, and specgap \
                     explain WORD says what a word means."
                )?,
            }
        }
    }
    Ok(())
}
