//! Is a function that one cannot see at once so long for a reason, and does its first line of
//! documentation say what it does?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Lines, the signature and the last brace among them.
const LONGEST: usize = 120;

/// Longer functions, by file and name, and why nothing is gained by cutting them.
const REASONS: &str = "
    generate.rs run_batch: one step of all models: what is read, drawn, kept and stopped
    steps.rs from_records: one refusal a field of a record
    sglang.rs text: one response of the engine, field by field
    hf.rs recorded: one array of the recording after the other
    lists.rs pair: both models' entries, walked side by side
    write.rs lists: one tensor after the other
    decode.rs object: the fields of one JSON object
    rows.rs position: what is read of a position, one after the other
";

#[test]
fn functions_are_short_or_have_a_reason() {
    let mut found = BTreeMap::new();
    each_file(&mut |name, code| {
        let long = functions(code).into_iter();
        let long = long.filter(|(_, lines)| *lines > LONGEST);
        found.extend(long.map(|(function, lines)| (format!("{name} {function}"), lines)));
    });
    assert!(found.len() > 5, "{found:?}");
    let reasons: BTreeSet<&str> = (REASONS.trim().lines())
        .map(|line| line.trim().split_once(": ").unwrap().0)
        .collect();
    let without: Vec<_> = (found.iter())
        .filter(|(function, _)| !reasons.contains(function.as_str()))
        .collect();
    assert!(
        without.is_empty(),
        "longer than {LONGEST} lines: {without:?}. Cut them, or give a reason in this file"
    );
    let short: Vec<_> = (reasons.iter())
        .filter(|function| !found.contains_key(**function))
        .collect();
    assert!(
        short.is_empty(),
        "no longer too long; leave them out: {short:?}"
    );
}

/// Of 1,000 functions with documentation so many begin with a question word in place of what they
/// do. It only falls.
const WITHOUT_A_VERB: usize = 26;

#[test]
fn first_lines_say_what_a_function_does() {
    let words = [
        "What", "Whether", "How", "Of", "Its", "Where", "By", "Which", "Why",
    ];
    let (mut all, mut without) = (0, Vec::new());
    each_file(&mut |name, code| {
        let (mut before, mut first) = ("", None);
        for line in code.lines().map(str::trim_start) {
            let is_new = !before.starts_with("///");
            match line.strip_prefix("/// ") {
                Some(text) if is_new => first = Some(text),
                _ if line.starts_with("///") || line.starts_with("#[") => {}
                _ => {
                    let is_function = line.starts_with("fn ") || line.contains(" fn ");
                    if let Some(text) = first.take().filter(|_| is_function) {
                        all += 1;
                        let word = text.split([' ', ',']).next().unwrap_or_default();
                        if words.contains(&word) {
                            without.push(format!("{name}: {text}"));
                        }
                    }
                }
            }
            before = line;
        }
    });
    let share = 1000 * without.len() / all;
    assert!(
        share <= WITHOUT_A_VERB,
        "{share} of 1,000, say what is returned or done: {without:#?}"
    );
}

/// The sources in their folders, tests left out. They are formatted, so that a function ends with
/// a brace below its own first letter.
fn each_file(visit: &mut dyn FnMut(&str, &str)) {
    read(Path::new("src"), visit);
    read(Path::new("crates"), visit);
}

fn read(folder: &Path, visit: &mut dyn FnMut(&str, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, visit);
        } else if name.ends_with(".rs") && !name.contains("tests") {
            let text = std::fs::read_to_string(&path).unwrap();
            visit(
                &name,
                text.split("#[cfg(test)]\nmod tests {").next().unwrap(),
            );
        }
    }
}

fn functions(code: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut all = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let margin = &line[..line.len() - body.len()];
        let Some(rest) = ["", "pub ", "pub(crate) ", "pub(super) "]
            .iter()
            .find_map(|public| body.strip_prefix(public)?.strip_prefix("fn "))
        else {
            continue;
        };
        let name: String = (rest.chars())
            .take_while(|&c| c.is_alphanumeric() || c == '_')
            .collect();
        let end = lines[start..].iter().position(|line| {
            *line == format!("{margin}}}")
                || (line.ends_with(';') && line.starts_with(&format!("{margin}fn ")))
        });
        all.push((name, end.map_or(0, |end| end + 1)));
    }
    all
}
