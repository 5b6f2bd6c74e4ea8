//! The file of a table of positions.

use super::output::{CliError, stage, unwritten};
use crate::files::{Staged, Unfinished};
#[cfg(feature = "parquet")]
use crate::gap::ParquetTable;
use crate::gap::{Columns, Entry, PositionSink, Settings};
use crate::report::CsvTable;
use std::io;
use std::path::{Path, PathBuf};

/// A table that is being written, and its place.
pub(super) struct Table {
    format: FileFormat,
    path: PathBuf,
}

enum FileFormat {
    Csv(CsvTable<Unfinished>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetTable<Unfinished>>),
}

impl Table {
    /// Begins the file, whose name says its format.
    pub(super) fn create(path: &Path, settings: &Settings) -> Result<Self, CliError> {
        let columns = Columns::new(settings);
        let parquet = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"));
        let format = if parquet {
            Self::parquet(path, &columns)
        } else {
            let table = CsvTable::new(stage(path)?, &columns);
            table
                .map(FileFormat::Csv)
                .map_err(|source| unwritten(path, source))
        };
        Ok(Self {
            format: format?,
            path: path.to_owned(),
        })
    }

    #[cfg(feature = "parquet")]
    fn parquet(path: &Path, columns: &Columns) -> Result<FileFormat, CliError> {
        ParquetTable::new(stage(path)?, columns)
            .map(|table| FileFormat::Parquet(Box::new(table)))
            .map_err(|source| unwritten(path, source))
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(path: &Path, _: &Columns) -> Result<FileFormat, CliError> {
        Err(CliError::missing(format!(
            "{}: this build does not write Parquet; build with `--features parquet`, or name a \
                 .csv file",
            path.display()
        )))
    }

    /// Completes the file and gives it its name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let file = match self.format {
            FileFormat::Csv(table) => table.finish(),
            #[cfg(feature = "parquet")]
            FileFormat::Parquet(table) => table.finish(),
        };
        file.and_then(Unfinished::finish)
            .and_then(Staged::rename)
            .map_err(|source| unwritten(&self.path, source))
    }
}

impl PositionSink for Table {
    fn row(&mut self, entries: &[Entry<'_>]) -> io::Result<()> {
        match &mut self.format {
            FileFormat::Csv(table) => table.row(entries),
            #[cfg(feature = "parquet")]
            FileFormat::Parquet(table) => table.row(entries),
        }
    }
}
