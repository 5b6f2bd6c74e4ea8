//! Do options with a file leave links, pipes and devices what they are, does no output replace an
//! input, and does no name from a file reach a terminal as it is?

use crate::made_log::{rows, write};
use crate::run::{Run, cases, command, specgap};
use specgap::log::KeptTokens;
use std::path::Path;

fn run(folder: &Path, line: &str) -> Run {
    specgap(folder, line.split_whitespace())
}

fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &rows(6), KeptTokens::All);
    folder
}

const GAP: &str = "gap log --drafts 2 --temperature 1 --laws with-replacement -q";

fn problem(name: &str) -> String {
    format!(
        "schema = 1\nname = {name:?}\ntarget = [\"1/2\", \"1/2\"]\ndrafts = 2\n[draft]\n\
         scheme = \"with-replacement\"\nq = [\"1/4\", \"3/4\"]\n"
    )
}

#[cfg(unix)]
#[test]
fn a_file_option_writes_through_links_and_into_pipes() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = folder_with_log();
    let path = folder.path();
    let place = |name: &str| path.join(name);
    std::fs::write(place("q.toml"), problem("q")).unwrap();
    assert_eq!(run(path, &format!("{GAP} --out base")).code, Some(0));
    let made = std::process::Command::new("mkfifo")
        .arg(place("fifo"))
        .status();
    assert!(made.unwrap().success());
    std::fs::write(place("old"), "keep").unwrap();
    symlink("old", place("link")).unwrap();
    symlink("none", place("dangling")).unwrap();
    symlink("/dev/null", place("null")).unwrap();
    let gap = format!("{GAP} --baseline base/report.json");
    let lines = [
        format!("{GAP} --positions FILE"),
        format!("{GAP} --partial FILE"),
        format!("{gap} --junit FILE"),
        "check --claims none --problems q.toml -q --junit FILE".to_owned(),
        "check --claims none --problems q.toml -q --write-baseline FILE".to_owned(),
        "check --claims none --problems q.toml -q --report FILE".to_owned(),
    ];
    for line in &lines {
        let into = |name: &str| run(path, &line.replace("FILE", name));
        let reader = {
            let from = place("fifo");
            std::thread::spawn(move || std::fs::read(from).unwrap())
        };
        let piped = into("fifo");
        assert_eq!(piped.code, Some(0), "{line}: {}", piped.err);
        let wanted = reader.join().unwrap();
        assert!(!wanted.is_empty(), "{line}");
        for (link, target) in [("link", "old"), ("dangling", "none")] {
            let linked = into(link);
            assert_eq!(linked.code, Some(0), "{line}: {}", linked.err);
            assert!(place(link).symlink_metadata().unwrap().is_symlink());
            let now = std::fs::read(place(target)).unwrap();
            assert!(now.len().abs_diff(wanted.len()) < 20, "{line} {link}");
        }
        std::fs::remove_file(place("none")).unwrap();
        assert_eq!(into("null").code, Some(0), "{line}");
        assert!(place("null").symlink_metadata().unwrap().is_symlink());
        assert!(into("log").err.contains("is a folder"), "{line}");
    }
    let kind = place("fifo").symlink_metadata().unwrap().file_type();
    assert!(kind.is_fifo());
    let null = Path::new("/dev/null").metadata().unwrap().file_type();
    assert!(null.is_char_device());
    // Nothing is left beside them.
    let left = std::fs::read_dir(path).unwrap().flatten();
    let hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".specgap");
    assert_eq!(left.filter(|entry| hidden(&entry.file_name())).count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_is_a_file_like_any_other() {
    let folder = folder_with_log();
    let path = folder.path();
    let line = format!("{GAP} --partial p --positions /dev/stdout");
    let piped = run(path, &line);
    assert!(
        piped.out.starts_with("log,number,prompt_id"),
        "{}",
        piped.out
    );
    // What is printed stands behind it, also in a file.
    let into = std::fs::File::create(path.join("all")).unwrap();
    let mut child = command(path, line.split_whitespace());
    assert!(child.stdout(into).status().unwrap().success());
    let all = std::fs::read_to_string(path.join("all")).unwrap();
    assert_eq!(all, piped.out);
    assert!(all.contains("\nsummary of 6 positions: p\n"), "{all}");
}

#[test]
fn no_output_replaces_an_input() {
    let folder = folder_with_log();
    let path = folder.path();
    for (file, name) in [("q.toml", "q"), ("coin.toml", "coin")] {
        std::fs::write(path.join(file), problem(name)).unwrap();
    }
    std::fs::copy(path.join("q.toml"), path.join("q.json")).unwrap();
    let json = r#"{"schema":1,"name":"coin","target":["1/2","1/2"],"drafts":2,"draft":{"scheme":"with-replacement","q":["1/4","3/4"]}}"#;
    std::fs::write(path.join("coin.json"), json).unwrap();
    std::fs::create_dir(path.join("many")).unwrap();
    for (file, name) in [("1.toml", "a/b"), ("2.toml", "A_b")] {
        std::fs::write(path.join("many").join(file), problem(name)).unwrap();
    }
    run(path, &format!("{GAP} --partial part --out base")).ok();
    let shard = std::fs::read_dir(path.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.starts_with("shard"))
        .unwrap();
    let list = path.join("best-tree.eagle.json");
    std::fs::write(&list, "[[0],[1]]").unwrap();
    let before: Vec<(&str, Vec<u8>)> = [
        "log/log.json",
        "q.toml",
        "coin.json",
        "base/report.json",
        "part",
    ]
    .map(|file| (file, std::fs::read(path.join(file)).unwrap()))
    .into();
    let table = format!(
        r#"
        {GAP} --positions log/{shard} -> --positions would replace it
        {GAP} --positions base/../log/log.json -> log/log.json, which is read
        {GAP} --partial log/log.json -> --partial would replace it
        {GAP} --partial z --positions base/../z -> --partial and of --positions
        {GAP} --baseline base/report.json --out base -> base/report.json | another folder
        {GAP} --baseline base/report.json --junit base/report.json -> --junit would
        {GAP} --partial base/report.md --out base -> is the file of --partial
        merge part --partial part -> part: is read | --partial would replace it
        merge part --baseline base/report.json --out base -> base/report.json
        check --claims none --problems q.toml --write-baseline q.toml -> q.toml: is read
        check --claims none --problems q.toml --junit x --write-baseline x -> of --write-baseline and of --junit
        solve coin.json --out . -> coin.json | a certificate would replace it
        solve many --out c -> 2.toml | "A_b" | 1.toml
        tree log --trees best-tree.eagle.json --out . -> best-tree.eagle.json: is read
        audit log --rule token --markdown log/log.json -> --markdown would replace it
        "#
    );
    for (line, words) in cases(&table) {
        let run = run(path, &line);
        assert!(!run.err.contains("positions in"), "{line}: {}", run.err);
        run.refused(&words);
    }
    for (file, bytes) in before {
        assert_eq!(std::fs::read(path.join(file)).unwrap(), bytes, "{file}");
    }
    assert!(!path.join("c").exists() && !path.join("z").exists());
    // What is not there to be replaced, and what only lies beside.
    for line in [
        "solve coin.json --out c",
        "check --claims none --problems q.toml --write-baseline b.json -q",
        &format!("{GAP} --out log"),
    ] {
        let made = run(path, line);
        assert_eq!(made.code, Some(0), "{line}: {}", made.err);
    }
    assert!(path.join("log/report.html").exists());
    assert_eq!(run(path, GAP).code, Some(0));
}

#[test]
fn reports_of_several_logs_stay_in_their_folder() {
    let around = tempfile::tempdir().unwrap();
    let place = |name: &str| around.path().join(name);
    for log in ["a/log", "b/log", "c/report.json"] {
        std::fs::create_dir_all(place(log)).unwrap();
        std::fs::remove_dir(place(log)).unwrap();
        write(&place(log), &rows(6), KeptTokens::All);
    }
    std::fs::create_dir_all(place("a/log/sub")).unwrap();
    let options = "--drafts 2 --temperature 1 --laws with-replacement -q --out";
    run(
        &place("a/log/sub"),
        &format!("gap .. ../../../b/log {options} ../../../o/in"),
    )
    .ok();
    let names = |folder: &str| {
        let entries = std::fs::read_dir(place(folder)).unwrap().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("o"), ["in"]);
    assert!(!place("o/report.html").exists());
    assert_eq!(names("o/in"), ["log", "log-2"]);
    run(
        &place("a/log"),
        &format!("gap . ../../c/report.json {options} ../../p"),
    )
    .ok();
    assert_eq!(names("p"), ["log", "report.json-2"]);
    let text = std::fs::read_to_string(place("p/report.json")).unwrap();
    assert!(text.contains("\"kind\": \"comparison\""));
    assert!(place("p/log/report.json").is_file());
    // A log's file in the way of its report is seen before anything is measured.
    std::fs::write(place("b/log-2"), "").unwrap();
    let way = run(&place("b"), &format!("gap log ../a/log {options} ."));
    way.refused(&["log-2", "is not a folder"]);
}

#[cfg(target_os = "linux")]
#[test]
fn what_never_ends_is_not_read() {
    let folder = folder_with_log();
    let path = folder.path();
    std::fs::write(path.join("q.toml"), problem("q")).unwrap();
    for name in ["z.toml", "z.csv", "endless/log.json"] {
        let place = path.join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", place).unwrap();
    }
    for line in [
        "certify q.toml /dev/zero",
        "solve z.toml",
        "gap endless",
        "audit z.csv --rule token",
    ] {
        run(path, line).refused(&["bytes is not read"]);
    }
}

#[test]
fn names_do_not_reach_terminals_and_pages_as_they_are() {
    let folder = folder_with_log();
    let path = folder.path();
    let index = path.join("log/log.json");
    let mut log: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
    let name = "p\u{1b}]0;pwned\u{7}\u{202e}\r\\immediate\\write18{id}%";
    let record = serde_json::json!({"id": 0, "name": name, "positions": 5});
    log["metadata"]["prompts"] = serde_json::json!([record]);
    log["metadata"]["target"] = serde_json::json!({"name": "=t\u{1b}[2J"});
    std::fs::write(&index, log.to_string()).unwrap();
    let hidden = |text: &str| {
        let hidden = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
        text.chars().any(hidden)
    };
    let line =
        "gap log --drafts 2 --temperature 1 --laws with-replacement -v --out o --table latex,csv";
    let made = run(path, line).ok();
    assert!(!hidden(&made.out) && !hidden(&made.err), "{}", made.out);
    let mut seen = 0;
    for entry in std::fs::read_dir(path.join("o")).unwrap().flatten() {
        let file = entry.path();
        let kind = file.extension().unwrap().to_str().unwrap().to_owned();
        if ["html", "md", "tex"].contains(&kind.as_str()) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(!hidden(&text), "{}", file.display());
            seen += usize::from(text.contains("pwned"));
        }
    }
    assert!(seen > 1, "{seen} files have the prompt's name");
    for command in ["length", "tree", "paths"] {
        let told = run(path, &format!("{command} log -v"));
        assert!(!hidden(&told.out) && !hidden(&told.err), "{command}");
    }
    std::fs::write(
        path.join("q.toml"),
        problem("x").replace("\"x\"", "\"\\u001b[2J\""),
    )
    .unwrap();
    for command in ["solve", "verify", "check --claims none -v --problems"] {
        let told = run(path, &format!("{command} q.toml"));
        assert!(!hidden(&told.out) && !hidden(&told.err), "{}", told.out);
        let named = told.out.contains("\\u{1b}[2J");
        assert!(named || command.starts_with("check"), "{}", told.out);
    }
    let nowhere = specgap(path, ["solve", "\u{1b}[2J.toml"]);
    assert!(nowhere.err.contains("\\u{1b}[2J.toml") && !hidden(&nowhere.err));
}
