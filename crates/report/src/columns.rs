//! The columns of a table, as one text, and tables of a row for each thing.

use specgap_page::table::Column;

/// Columns by their names from the left, between bars; those of numbers begin with `#`.
pub(super) fn head(names: &str) -> Vec<Column> {
    let column = |name: &str| match name.strip_prefix('#') {
        Some(name) => Column::number(name),
        None => Column::words(name),
    };
    names.split(" | ").map(column).collect()
}

/// Heads these columns, if they are there at all.
pub(super) fn head_if(is_there: bool, names: &str) -> Vec<Column> {
    match is_there {
        true => head(names),
        false => Vec::new(),
    }
}

/// Heads these columns below a name that spans them.
pub(super) fn head_below(over: &str, names: &str) -> Vec<Column> {
    let columns = head(names).into_iter();
    columns.map(|column| column.over(over)).collect()
}

/// A row of what becomes an entry each.
macro_rules! row {
    ($($entry:expr),+ $(,)?) => {
        ::specgap_page::table::Row::new([$(::specgap_page::table::Entry::from($entry)),+])
    };
}

/// A table with a row for each thing: by column its name, as [`head`] has it, with `if` and a condition
/// where it is not always there, and what stands in it. `bold` says which rows are.
macro_rules! table {
    (
        $id:expr, $caption:expr, $one:pat in $all:expr $(, bold $bold:expr)?;
        $($name:literal $(if $is_there:expr)? => $entry:expr,)+
    ) => {{
        let mut columns = Vec::new();
        $(if true $(&& $is_there)? {
            columns.extend($crate::columns::head($name));
        })+
        let rows = $all.map(|$one| {
            let mut entries: Vec<::specgap_page::table::Entry> = Vec::new();
            $(if true $(&& $is_there)? {
                entries.push($entry.into());
            })+
            ::specgap_page::table::Row::new(entries).bold(false $(|| $bold)?)
        });
        ::specgap_page::table::Table::new($id, $caption, columns).rows(rows)
    }};
}

pub(super) use {row, table};
