//! The table of positions as Apache Parquet.

use super::{ColumnKind, Columns, Entry, PositionSink};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a row group: what is held in memory.
const GROUP: usize = 1 << 14;

/// Rows as a Parquet file: names are UTF-8 text, whole numbers 64-bit, numbers double;
/// what is not there is null. Row groups of 16,384 rows, so that memory does not grow with
/// the table; uncompressed.
pub struct ParquetTable<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

impl<W: Write + Send> std::fmt::Debug for ParquetTable<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetTable")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// Entries of the row group that is being filled; 1 in `there` for those that are no null.
#[derive(Debug)]
enum Column {
    Text(Vec<ByteArray>),
    Integer { entries: Vec<i64>, there: Vec<i16> },
    Number { entries: Vec<f64>, there: Vec<i16> },
}

impl<W: Write + Send> ParquetTable<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, columns: &Columns) -> io::Result<Self> {
        let names = columns.names();
        let mut fields = Vec::with_capacity(names.len());
        for (name, kind) in &names {
            let (physical, repetition) = match kind {
                ColumnKind::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
                ColumnKind::Integer => (Physical::INT64, Repetition::OPTIONAL),
                ColumnKind::Number => (Physical::DOUBLE, Repetition::OPTIONAL),
            };
            let text = (*kind == ColumnKind::Text).then_some(LogicalType::String);
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(repetition)
                .with_logical_type(text)
                .build()?;
            fields.push(Arc::new(field));
        }
        let schema = Type::group_type_builder("positions")
            .with_fields(fields)
            .build()?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("specgap ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let columns = names.iter().map(|(_, kind)| match kind {
            ColumnKind::Text => Column::Text(Vec::new()),
            ColumnKind::Integer => Column::Integer {
                entries: Vec::new(),
                there: Vec::new(),
            },
            ColumnKind::Number => Column::Number {
                entries: Vec::new(),
                there: Vec::new(),
            },
        });
        Ok(Self {
            file: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            columns: columns.collect(),
            rows: 0,
        })
    }

    /// Writes what is held, and the file's end; gives back what was written to.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_group()?;
        let mut out = self.file.into_inner()?;
        out.flush()?;
        Ok(out)
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else {
                return Err(io::Error::other("has fewer columns than a row"));
            };
            match column {
                Column::Text(entries) => {
                    writer
                        .typed::<ByteArrayType>()
                        .write_batch(entries, None, None)?;
                    entries.clear();
                }
                Column::Integer { entries, there } => {
                    writer
                        .typed::<Int64Type>()
                        .write_batch(entries, Some(there), None)?;
                    entries.clear();
                    there.clear();
                }
                Column::Number { entries, there } => {
                    writer
                        .typed::<DoubleType>()
                        .write_batch(entries, Some(there), None)?;
                    entries.clear();
                    there.clear();
                }
            }
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> PositionSink for ParquetTable<W> {
    fn row(&mut self, entries: &[Entry<'_>]) -> io::Result<()> {
        for (column, entry) in self.columns.iter_mut().zip(entries) {
            match (column, *entry) {
                (Column::Text(entries), Entry::Text(text)) => entries.push(text.into()),
                (Column::Integer { entries, there }, Entry::Integer(x)) => {
                    entries.extend(x);
                    there.push(i16::from(x.is_some()));
                }
                (Column::Number { entries, there }, Entry::Number(x)) => {
                    entries.extend(x);
                    there.push(i16::from(x.is_some()));
                }
                _ => return Err(io::Error::other("an entry is not of its column's kind")),
            }
        }
        self.rows += 1;
        if self.rows == GROUP {
            self.write_group()?;
        }
        Ok(())
    }
}
