//! A table as data, so that every format shows the same.

use super::words::lower_first;

/// Rows in groups under named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Unique in a page.
    pub id: String,
    /// What it shows; empty where what stands above says it.
    pub caption: String,
    /// The columns, the first of which heads the rows.
    pub columns: Vec<Column>,
    /// The rows.
    pub groups: Vec<Group>,
    /// What stands under it: what its marks mean, and how its numbers came about.
    pub notes: Vec<String>,
    /// Where it is too wide, short texts have its first columns alone.
    pub brief: bool,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What spans it and its neighbours of the same name.
    pub over: Option<String>,
    /// What stands above the column.
    pub name: String,
    /// Set to the right.
    pub numeric: bool,
}

/// Some rows with a title over them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The title, if it has one.
    pub title: Option<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Its rows are shown in short texts too. A table without such rows is shown whole.
    pub main: bool,
}

impl Group {
    /// True if it has rows that short texts show.
    pub fn has_main(&self) -> bool {
        self.main || self.rows.iter().any(|row| row.main)
    }
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Set apart from the others: what they are measured against.
    pub reference: bool,
    /// Shown in short texts too, whatever its group is.
    pub main: bool,
    /// One a column; those that are missing at the end are empty.
    pub entries: Vec<Entry>,
}

/// What stands in one place of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// What is seen.
    pub text: String,
    /// A second line, smaller.
    pub under: Option<String>,
    /// All digits, or whatever else stands behind the text.
    pub title: Option<String>,
    /// The number that the text rounds, with all its digits.
    pub number: Option<Number>,
    /// Set in bold.
    pub strong: bool,
    /// The place in the page that it leads to.
    pub anchor: Option<String>,
}

/// A number with all its digits, as tables for papers and programs have it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number {
    /// The value; none where only its bounds are known.
    pub value: Option<f64>,
    /// The ends of its 95% interval.
    pub interval: Option<[f64; 2]>,
    /// Bounds of what it would be of full rows.
    pub bounds: Option<[f64; 2]>,
    /// A difference: its sign is always shown.
    pub signed: bool,
    /// The text has it in percent.
    pub percent: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(id: impl Into<String>, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            id: id.into(),
            caption: caption.into(),
            columns,
            ..Self::default()
        }
    }

    /// Returns it with rows that need no title.
    pub fn rows(mut self, rows: impl IntoIterator<Item = Row>) -> Self {
        self.groups.push(Group {
            rows: rows.into_iter().collect(),
            ..Group::default()
        });
        self
    }

    /// Adds rows that short texts show, if there are any, and not the others.
    pub fn main_rows(mut self, rows: Vec<Row>) -> Self {
        if !rows.is_empty() {
            self.groups.push(Group {
                title: None,
                rows,
                main: true,
            });
        }
        self
    }

    /// Adds rows with a title over them; `main` ones are shown in short texts too.
    pub fn group(&mut self, title: impl Into<String>, rows: Vec<Row>, main: bool) {
        self.groups.push(Group {
            title: Some(title.into()),
            rows,
            main,
        });
    }

    /// Returns it with its rows under titles, one a row, told apart by a key as well: those that follow
    /// each other with the same ones are a group, which short texts show if it is `main`.
    pub fn grouped<K: PartialEq>(
        mut self,
        titles: impl Iterator<Item = (K, String)>,
        main: bool,
    ) -> Self {
        let rows = std::mem::take(&mut self.groups)
            .into_iter()
            .flat_map(|group| group.rows);
        let mut last = None;
        for (row, title) in rows.zip(titles) {
            match self.groups.last_mut() {
                Some(group) if last.as_ref() == Some(&title) => group.rows.push(row),
                _ => self.group(title.1.clone(), vec![row], main),
            }
            last = Some(title);
        }
        self
    }

    /// Returns it with a line under it.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Returns it with these lines under it, of those that there are.
    pub fn notes(mut self, notes: impl IntoIterator<Item = Option<String>>) -> Self {
        self.notes.extend(notes.into_iter().flatten());
        self
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.rows.is_empty())
    }

    /// The column's names where there is one level only.
    pub fn flat_names(&self) -> Vec<String> {
        (self.columns.iter())
            .map(|column| match &column.over {
                Some(over) => format!("{over}, {}", column.name),
                None => column.name.clone(),
            })
            .collect()
    }

    /// The columns that are called so, behind the first, by their own name, by the name that spans
    /// them, or by both as [`Self::flat_names`] has it; `alpha` is α there. None if no column is.
    pub fn choose(&self, names: &[String]) -> Option<Self> {
        let plain = |name: &str| {
            let name = name.trim().to_lowercase();
            name.replace('α', "alpha").replace('−', "-")
        };
        let wanted: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let flat = self.flat_names();
        let is_wanted = |(column, flat): (&Column, &String)| {
            let over = column.over.as_deref();
            let all = [Some(column.name.as_str()), over, Some(flat.as_str())];
            (all.into_iter().flatten()).any(|name| wanted.contains(&plain(name)))
        };
        let found: Vec<bool> = self.columns.iter().zip(&flat).map(is_wanted).collect();
        if !found.contains(&true) {
            return None;
        }
        Some(self.with_columns(|index| index == 0 || found.get(index) == Some(&true)))
    }

    /// The same with these columns alone.
    pub(super) fn with_columns(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut part = self.clone();
        let mut index = 0;
        part.columns.retain(|_| {
            index += 1;
            keep(index - 1)
        });
        for row in part.groups.iter_mut().flat_map(|group| &mut group.rows) {
            let mut index = 0;
            row.entries.retain(|_| {
                index += 1;
                keep(index - 1)
            });
        }
        part
    }

    /// One table for each name that spans columns, with the columns that none spans in
    /// all of them; the table itself if there are not two such names. Rows that say
    /// nothing there are left out. Notes stay with the last.
    pub fn split(&self) -> Vec<Self> {
        let mut heads: Vec<&str> = Vec::new();
        for over in self.columns.iter().filter_map(|one| one.over.as_deref()) {
            if !heads.contains(&over) {
                heads.push(over);
            }
        }
        if heads.len() < 2 {
            return vec![self.clone()];
        }
        let last = heads.len() - 1;
        let parts = heads.iter().enumerate().map(|(index, head)| {
            let notes = match index == last {
                true => self.notes.clone(),
                false => Vec::new(),
            };
            Self {
                id: format!("{}-{index}", self.id),
                caption: format!("{head}: {}", lower_first(&self.caption)),
                notes,
                ..self.under_head(head)
            }
        });
        parts.collect()
    }

    fn under_head(&self, head: &str) -> Self {
        let kept: Vec<bool> = (self.columns.iter())
            .map(|column| column.over.as_deref().is_none_or(|over| over == head))
            .collect();
        let mut part = self.with_columns(|index| kept.get(index) == Some(&true));
        for column in &mut part.columns {
            column.over = None;
        }
        for group in &mut part.groups {
            group
                .rows
                .retain(|row| row.entries.iter().skip(1).any(|entry| !entry.is_none()));
        }
        part.groups.retain(|group| !group.rows.is_empty());
        part
    }
}

impl Column {
    /// A column of words.
    pub fn words(name: impl Into<String>) -> Self {
        Self {
            over: None,
            name: name.into(),
            numeric: false,
        }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self {
            numeric: true,
            ..Self::words(name)
        }
    }

    /// Spanned by a name that its neighbours share.
    pub fn over(mut self, over: impl Into<String>) -> Self {
        self.over = Some(over.into());
        self
    }
}

impl Row {
    /// A row of its entries.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        Self {
            entries: entries.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A row that others are measured against.
    pub fn reference(entries: impl IntoIterator<Item = Entry>) -> Self {
        Self {
            reference: true,
            ..Self::new(entries)
        }
    }

    /// Returns it with all that it has in bold, if it is.
    pub fn bold(mut self, strong: bool) -> Self {
        self.entries.iter_mut().for_each(|one| one.strong |= strong);
        self
    }

    /// A row of texts.
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::new(texts.into_iter().map(Entry::plain))
    }
}

impl Entry {
    /// What stands where there is nothing to say.
    const NONE: &'static str = "–";

    /// A text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A text with something behind it.
    pub fn titled(text: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            title: Some(title.into()),
            ..Self::plain(text)
        }
    }

    /// Returns it with the number that it rounds.
    pub fn of(mut self, number: Number) -> Self {
        self.number = Some(number);
        self
    }

    /// In bold, if it is.
    pub fn bold(mut self, strong: bool) -> Self {
        self.strong = strong;
        self
    }

    /// A dash.
    pub fn none() -> Self {
        Self::plain(Self::NONE)
    }

    /// True for a dash.
    pub fn is_none(&self) -> bool {
        self.text == Self::NONE
    }
}

/// A text each.
macro_rules! plain {
    ($($kind:ty),+) => {$(
        impl From<$kind> for Entry {
            fn from(text: $kind) -> Self {
                Self::plain(text.to_string())
            }
        }
    )+};
}

plain!(&str, &String, String, usize, u64);

/// A dash where there is nothing to say.
impl<T: Into<Entry>> From<Option<T>> for Entry {
    fn from(entry: Option<T>) -> Self {
        entry.map_or_else(Self::none, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_table_keeps_what_each_head_spans() {
        let columns = vec![
            Column::words("name"),
            Column::number("2").over("T = 1"),
            Column::number("3").over("T = 1"),
            Column::number("2").over("T = 2"),
        ];
        let table = Table::new("t", "Rates", columns)
            .rows([
                Row::texts(["a", "1", "2", "3"]),
                Row::new([
                    Entry::plain("b"),
                    Entry::none(),
                    Entry::none(),
                    Entry::plain("4"),
                ]),
            ])
            .note("a note");
        let parts = table.split();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].caption, "T = 1: rates");
        assert_eq!(parts[0].flat_names(), ["name", "2", "3"]);
        assert_eq!(parts[0].groups[0].rows.len(), 1);
        assert!(parts[0].notes.is_empty());
        assert_eq!(parts[1].groups[0].rows[1], Row::texts(["b", "4"]));
        assert_eq!(parts[1].notes, ["a note"]);
        assert_ne!(parts[0].id, parts[1].id);
        assert_eq!(parts[0].split(), [parts[0].clone()]);
    }
}
