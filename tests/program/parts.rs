//! Parts of `length`, `tree` and `counters`, put together by `merge`.

use crate::made_log::{rows, write_drawn};
use crate::run::{Run, cases, specgap};
use std::path::Path;

fn run(folder: &Path, line: &str) -> Run {
    specgap(folder, line.split_whitespace())
}

/// A folder with a log of eight texts of five tokens, and what a server counted.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(40));
    let request = |at: usize| {
        let all = [4 + at % 3, 6, 20 - at % 4];
        format!(
            "{{\"group\": \"g{}\", \"acceptance_histogram\": {all:?}, \"num_spec_tokens\": 2}}\n",
            at % 2
        )
    };
    let lines: String = (0..11).map(request).collect();
    std::fs::write(folder.path().join("requests.jsonl"), lines).unwrap();
    folder
}

/// Reports of parts in any order are the whole's, to the byte.
#[test]
fn parts_are_the_whole() {
    let folder = folder();
    let here = folder.path();
    for line in [
        "length log --lengths 1-3 --cost-ratio 0.1",
        "length log --verifiers token,carried-block --draft-top-k 2",
        "tree log --trees 2x2 --laws with-replacement --budget 4 --seed 5",
        "counters requests.jsonl --cost-ratio 0.1",
    ] {
        let whole = run(here, &format!("{line} --format json")).ok().out;
        for count in [1, 3, 7] {
            let parts: Vec<String> = (1..=count).rev().map(|at| format!("{at}.part")).collect();
            for (name, at) in parts.iter().zip((1..=count).rev()) {
                let shard = match count {
                    1 => String::new(),
                    _ => format!("--shard {at}/{count}"),
                };
                let made = run(here, &format!("{line} {shard} --partial {name}")).ok();
                assert_eq!(made.out, format!("part {at} of {count}: {name}\n"));
            }
            let merged = run(here, &format!("merge {} --format json", parts.join(" "))).ok();
            assert!(merged.out == whole, "{line}, {count} parts");
        }
    }
    // A report is of the whole.
    for command in [
        "length log --lengths 1",
        "tree log --trees 2x2",
        "audit log",
        "counters requests.jsonl",
    ] {
        let refused = run(here, &format!("{command} --shard 1/2 --out of-a-part"));
        assert_eq!(refused.code, Some(2), "{command}: {}", refused.out);
        assert!(!here.join("of-a-part").exists());
    }
    run(here, "length log --shard 1/2 --partial a.part").ok();
    run(here, "length log --shard 2/2 --partial b.part").ok();
    run(here, "merge a.part b.part --out made").ok();
    assert!(here.join("made/report.html").is_file());
}

#[test]
fn parts_that_do_not_go_together() {
    let folder = folder();
    let here = folder.path();
    for (line, name) in [
        ("length log --shard 1/2", "a"),
        ("length log --shard 2/2", "b"),
        ("length log --shard 2/3", "third"),
        ("length log --lengths 1-2 --shard 2/2", "other"),
        ("counters requests.jsonl --shard 2/2", "counts"),
        ("gap log --drafts 2 --temperature 1", "gap"),
    ] {
        run(here, &format!("{line} --partial {name}")).ok();
    }
    let whole = std::fs::read(here.join("b")).unwrap();
    std::fs::write(here.join("cut"), &whole[..whole.len() - 1]).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(here.join("changed"), changed).unwrap();
    std::fs::write(here.join("line"), &whole[..40]).unwrap();
    std::fs::write(here.join("empty"), "").unwrap();
    // The options in the line are what merge runs with.
    let typed = String::from_utf8_lossy(&std::fs::read(here.join("other")).unwrap())[..400]
        .find("1-2")
        .unwrap();
    let mut options = std::fs::read(here.join("other")).unwrap();
    options[typed + 2] = b'3';
    std::fs::write(here.join("options"), options).unwrap();
    let end = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let line = String::from_utf8_lossy(&whole[..end]).replace("specgap 0", "specgap 9");
    std::fs::write(
        here.join("version"),
        [line.as_bytes(), &whole[end..]].concat(),
    )
    .unwrap();
    for (line, words) in cases(
        r#"
            a -> of 2 parts these are missing: 2
            a third -> third | one of 3 parts, and a one of 2 | with --shard I/2
            a other -> other | does not go with a | --lengths 1,2 | of one command
            a counts -> counts | does not go with a
            a gap -> gap: is a summary of specgap gap | and a a part of specgap length
            gap counts -> gap: is a summary of specgap gap | and counts a part of specgap counters
            a a -> a: is part 1 of 2, and so is a; name each part once
            a empty -> empty: is empty | write it again
            empty -> empty: is empty | write it again
            a cut -> cut | not whole | write it again
            a changed -> changed | not what was written
            options -> options | not what was written
            a line -> line | no end
            a version -> version | was written by specgap 9
            a log/log.json -> log.json: is the index of a log
            a b --pool -> --pool | gap
            a b --cost-ratio 0.1 -> --cost-ratio | have their options with them
            a b --incomplete -> --incomplete
        "#,
    ) {
        run(here, &format!("merge {line}")).refused(&words);
    }
    // Of a log that changed meanwhile, in as many positions too.
    let mut reversed = rows(40);
    reversed.reverse();
    for (rows, words) in [
        (rows(45), "log: has 45 positions"),
        (reversed, "log: has 40 positions"),
    ] {
        std::fs::remove_dir_all(here.join("log")).unwrap();
        write_drawn(&here.join("log"), &rows);
        run(here, "merge a b").refused(&[words, "another log", "write the parts again"]);
    }
    for (line, words) in cases(
        r#"
            length log --shard 1/2 -> --partial
            tree log --shard 3/2 --partial x -> 2/8
            counters requests.jsonl --partial requests.jsonl -> --partial would replace it
            length log --partial x --out y -> --out
        "#,
    ) {
        run(here, &line).refused(&words);
        assert!(!here.join("x").exists(), "{line}");
    }
}
