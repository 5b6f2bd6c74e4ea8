//! Every word of reports and of texts about them, and what it means there: glossary.txt.
//!
//! A line of the file that begins with `#` names the reports whose words follow; `words` are those of
//! every first page, with an example each, and `texts` further ones of no report alone. A word is a line, its further names behind `||`, and what it means stands in
//! the indented lines behind it. Where reports take a word in several ways, `specgap explain` says
//! the first.

/// A word under its names, in some reports.
struct Entry {
    reports: &'static str,
    names: &'static str,
    meaning: String,
}

fn entries() -> Vec<Entry> {
    let mut reports = "";
    let mut all: Vec<Entry> = Vec::new();
    for line in include_str!("glossary.txt").lines() {
        if let Some(named) = line.strip_prefix("# ") {
            reports = named;
        } else if !line.starts_with(' ') {
            let meaning = String::new();
            all.push(Entry {
                reports,
                names: line,
                meaning,
            });
        } else if let Some(last) = all.last_mut() {
            if !last.meaning.is_empty() {
                last.meaning.push(' ');
            }
            last.meaning.push_str(line.trim());
        }
    }
    all
}

fn words<T: FromIterator<(String, String)>>(asked: impl Fn(&str) -> bool) -> T {
    (entries().into_iter())
        .filter(|entry| asked(entry.reports))
        .flat_map(|entry| {
            let names = entry.names.split(" || ");
            names.map(move |name| (name.to_owned(), entry.meaning.clone()))
        })
        .collect()
}

/// The words of a report, in their order.
///
/// ```
/// use std::collections::BTreeMap;
/// let words: BTreeMap<String, String> = specgap_base::glossary::of("verify");
/// assert!(words["gap"].starts_with("alpha* - membership"));
/// ```
pub fn of<T: FromIterator<(String, String)>>(report: &str) -> T {
    words(|reports| reports.split(' ').any(|one| one == report))
}

/// All words; one that means several things stands here several times.
pub fn all() -> Vec<(String, String)> {
    words(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_report_defines_a_word_once() {
        let mut known = BTreeSet::new();
        for entry in entries() {
            assert!(!entry.meaning.is_empty(), "{}", entry.names);
            for report in entry.reports.split(' ') {
                for name in entry.names.split(" || ") {
                    assert!(known.insert((report, name)), "{report}: {name}");
                }
            }
        }
        let reports: BTreeSet<&str> = known.into_iter().map(|(report, _)| report).collect();
        let asked = [
            "audit", "block", "check", "compare", "counters", "gap", "length", "paths", "relaxed",
            "solve", "texts", "tree", "verify", "words",
        ];
        assert_eq!(reports, asked.into());
    }
}
