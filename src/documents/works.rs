//! What the documents say of others' work: `docs/project/works.toml`, rendered in `sources.md`.

use super::{files_below, is_as_generated, root, table};
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Works {
    work: Vec<Work>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    id: String,
    name: String,
    says: String,
    read: String,
    #[serde(default)]
    more: String,
    at: Vec<String>,
}

fn works() -> Vec<Work> {
    let text = std::fs::read_to_string(root().join("docs/project/works.toml")).unwrap();
    toml::from_str::<Works>(&text).unwrap().work
}

/// Numbers of arXiv, forums of OpenReview and commits that a text names.
fn named(text: &str) -> BTreeSet<&str> {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '.';
    let words: Vec<&str> = text
        .split(is_end)
        .map(|word| word.trim_matches('.'))
        .collect();
    let is_arxiv = |word: &str| {
        let Some((month, number)) = word.split_once('.') else {
            return false;
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        month.len() == 4
            && [4, 5].contains(&number.len())
            && digits(month)
            && digits(number)
            && ("01".."13").contains(&&month[2..])
    };
    let is_commit = |word: &str| {
        word.len() >= 7
            && word.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    let found = words
        .iter()
        .filter(|word| is_arxiv(word) || is_commit(word));
    let forums = words.windows(2).filter(|two| two[0] == "OpenReview");
    let mut all: BTreeSet<&str> = found.copied().collect();
    all.extend(forums.map(|two| two[1]));
    all
}

#[test]
fn every_work_that_is_named_has_a_line_and_every_line_a_place() {
    let works = works();
    let mut files = vec![root().join("README.md")];
    files_below(&root().join("docs"), &[".md"], &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for id in named(&text) {
            let has_line = works
                .iter()
                .any(|work| work.id == id || work.more.contains(id));
            assert!(
                has_line,
                "{}: docs/project/works.toml lacks {id}",
                file.display()
            );
        }
    }
    for work in &works {
        let kinds = ["paper", "code", "abstract", "second-hand", "unrecorded"];
        assert!(
            kinds.contains(&work.read.as_str()),
            "{}: {}",
            work.id,
            work.read
        );
        let name = work.name.split(" (").next().unwrap().to_lowercase();
        for place in &work.at {
            let text = std::fs::read_to_string(root().join("docs").join(place)).unwrap();
            let is_there = text.contains(&work.id) || text.to_lowercase().contains(&name);
            assert!(is_there, "{place} does not name {} ({name})", work.id);
        }
        assert!(!work.at.is_empty() && !work.says.is_empty(), "{}", work.id);
    }
    let text =
        "(2607.01179), v1.2, 2024.11, .3141.5926: at b8575e2, 1234567, OpenReview Xq6L, added";
    let expected = ["2607.01179", "Xq6L", "b8575e2"];
    assert!(named(text).into_iter().eq(expected), "{:?}", named(text));
}

#[test]
fn what_was_read_of_a_work_is_as_its_list_says() {
    let rows = works().into_iter().map(|work| {
        let read = match work.more.as_str() {
            "" => work.read,
            more => format!("{}: {more}", work.read),
        };
        let places = work.at.iter().map(|place| format!("[{place}](../{place})"));
        let places: Vec<String> = places.collect();
        [
            format!("{} ({})", work.name, work.id),
            work.says,
            read,
            places.join(", "),
        ]
    });
    let rows = table(["work", "what is said of it", "read", "where"], rows);
    is_as_generated("docs/project/sources.md", &[("works", rows)]);
}
