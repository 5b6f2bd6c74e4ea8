//! The columns of a table, as one text.

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
