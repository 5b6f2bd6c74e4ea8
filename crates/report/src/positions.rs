//! The table of positions as comma-separated values.

use specgap_measure::{Columns, Entry, PositionSink};
use specgap_page::csv;
use std::io::{self, Write};

/// Rows as lines of comma-separated values, after one with the columns' names (RFC 4180, but
/// for line ends, which are single). Numbers are the shortest decimals that read back as
/// the same `f64`.
///
/// # Example
/// ```
/// use specgap_measure::{Columns, Entry, PositionSink, Settings};
/// use specgap_report::CsvTable;
/// let columns = Columns::new(&Settings::new(&[1.0], &[2], 0)?);
/// let mut bytes = Vec::new();
/// let mut table = CsvTable::new(&mut bytes, &columns)?;
/// table.row(&[Entry::Text("a, b"), Entry::Integer(None), Entry::Number(Some(0.1))])?;
/// table.finish()?;
/// let text = String::from_utf8(bytes)?;
/// assert!(text.starts_with("log,number,prompt_id,"));
/// assert!(text.ends_with("\n\"a, b\",,0.1\n"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CsvTable<W> {
    out: W,
}

impl<W: Write> CsvTable<W> {
    /// Writes the line of names.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W, columns: &Columns) -> io::Result<Self> {
        let names: Vec<String> = columns.names().into_iter().map(|(name, _)| name).collect();
        writeln!(out, "{}", names.join(","))?;
        Ok(Self { out })
    }

    /// Flushes what is written to, and gives it back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> PositionSink for CsvTable<W> {
    fn row(&mut self, entries: &[Entry<'_>]) -> io::Result<()> {
        for (column, entry) in entries.iter().enumerate() {
            if column > 0 {
                self.out.write_all(b",")?;
            }
            match *entry {
                Entry::Text(text) => self.out.write_all(csv(text).as_bytes())?,
                Entry::Integer(Some(x)) => write!(self.out, "{x}")?,
                Entry::Number(Some(x)) => write!(self.out, "{x:?}")?,
                Entry::Integer(None) | Entry::Number(None) => {}
            }
        }
        self.out.write_all(b"\n")
    }
}
