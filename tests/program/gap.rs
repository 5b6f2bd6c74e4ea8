//! `specgap gap` and `specgap demo`: the files, exit codes, baselines, and what
//! is refused, which leaves everything as it was.

use crate::made_log::{rows, write, write_drawn};
use crate::run::{ROOT, Run, cases, specgap};
use crate::says::Says;
use serde_json::Value;
use specgap::gap::{GapReport, Settings, measure};
use specgap::log::{Dtype, HeldTensor, KeptTokens, Log, Metadata};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `specgap gap` in a folder, by a line of words.
fn gap(folder: &Path, line: &str) -> Run {
    specgap(folder, ["gap"].into_iter().chain(line.split_whitespace()))
}

/// A folder with a log of 12 positions.
fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &rows(12), KeptTokens::All);
    folder
}

fn fixture(name: &str) -> PathBuf {
    Path::new(ROOT).join("tests/fixtures/logs").join(name)
}

/// Everything below a folder, by its path, hidden files too.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(contents(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
}

/// A refusal that changes nothing in the folder.
fn refused(folder: &Path, line: &str, words: &[&str]) {
    let before = contents(folder);
    let run = gap(folder, line);
    run.refused(words);
    assert!(
        !run.err.contains("positions in"),
        "measured first: {}",
        run.err
    );
    assert_eq!(contents(folder), before, "{line}");
}

const QUICK: &str = "--drafts 2 --temperature 1.0";

#[test]
fn a_log_becomes_a_folder_of_files() {
    let folder = folder_with_log();
    let run = gap(folder.path(), &format!("log {QUICK} --out made/report")).ok();
    assert!(run.err.starts_with("12 positions in "), "{}", run.err);
    let last = run.out.lines().last().unwrap();
    assert_eq!(last, "report: made/report/report.html");
    let made = folder.path().join("made/report");
    let files = contents(&made);
    let mut names: Vec<&str> = files
        .keys()
        .map(|path| path.strip_prefix(&made).unwrap().to_str().unwrap())
        .collect();
    for name in ["report.html", "report.json", "report.md"] {
        names.retain(|&found| found != name);
        assert!(files[&made.join(name)].len() > 1000, "{name}");
    }
    assert!(names.len() > 2, "{names:?}");
    assert!(names.iter().all(|name| name.ends_with(".svg")), "{names:?}");
    let json = std::fs::read_to_string(made.join("report.json")).unwrap();
    let report: GapReport = serde_json::from_str(&json).unwrap();
    assert_eq!((report.positions, report.clusters), (12, 3));
    assert_eq!(
        report.command,
        "specgap gap log --drafts 2 --temperature 1.0"
    );
    // Every plot that the page of text names is there.
    let page = std::fs::read_to_string(made.join("report.md")).unwrap();
    for name in names {
        assert!(page.contains(name));
    }
    // On standard output, the same object on one line, and nothing else.
    let run = gap(folder.path(), &format!("log {QUICK} --format json"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(run.out.lines().count(), 1);
    assert_eq!(
        serde_json::from_str::<Value>(&run.out).unwrap(),
        serde_json::from_str::<Value>(&json).unwrap()
    );
}

#[test]
fn files_are_the_same_to_the_byte_on_any_number_of_threads() {
    let folder = folder_with_log();
    let with = |threads: u32| {
        let line = format!("log --drafts 1,2 --temperature 0.8,1 --out r{threads} -q");
        let run = gap(folder.path(), &format!("{line} --threads {threads}"));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        assert_eq!(run.out, format!("report: r{threads}/report.html\n"));
        let made = folder.path().join(format!("r{threads}"));
        contents(&made)
            .into_iter()
            .map(|(path, bytes)| (path.strip_prefix(&made).unwrap().to_owned(), bytes))
            .collect::<Vec<_>>()
    };
    let one = with(1);
    assert!(one == with(2), "threads change a file");
}

#[test]
fn an_npz_log_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let report = |name: &str| {
        std::fs::copy(fixture(name), folder.path().join(name)).unwrap();
        let run = gap(folder.path(), &format!("{name} {QUICK} --format json")).ok();
        serde_json::from_str::<GapReport>(&run.out).unwrap()
    };
    let stored = report("numpy-stored.npz");
    let compressed = report("numpy-compressed.npz");
    assert!(stored.positions > 0);
    assert_eq!(stored.cells, compressed.cells);
    // The two are the same rows, whatever they are called: they would count twice.
    let run = gap(
        folder.path(),
        &format!("numpy-stored.npz numpy-compressed.npz {QUICK} --pool"),
    );
    run.refused(&["numpy-compressed.npz is numpy-stored.npz under another name"]);
}

#[test]
fn options_out_of_range_name_themselves() {
    let folder = folder_with_log();
    for (line, words) in cases(
        r#"
            -> <LOG>
            log --drafts 0 -> 0 drafts | 1 to 64
            log --drafts 2,65 -> 65 drafts | 1 to 64
            log --drafts two -> 'two' | --drafts
            log --drafts 2,,3 -> '' | --drafts
            log --drafts -> --drafts
            log --temperature nan -> temperature NaN | finite
            log --temperature 1,inf -> temperature inf | finite
            log --temperature -1 -> temperature -1 | not below 0
            log --top-k 0 -> --top-k 0 | at least 1
            log --top-p 0 -> --top-p 0 | above 0
            log --top-p -1 -> --top-p -1 | at most 1
            log --min-p 1.5 -> --min-p 1.5 | from 0 to 1
            log --draft-min-p -0.1 -> --draft-min-p -0.1
            log --temperature warm -> 'warm' | --temperature
            log --block-length 0 -> '0' | --block-length | 1..=64
            log --vocab 0 -> --vocab 0 | at least 1
            log --vocab 7 -> log | V = 6 | --vocab 7 | at most 6
            log --vocab 2 --drafts 2 -> shard-00000.safetensors: token | row 1, column 0 | of 2
            log --format yaml -> 'yaml' | --format | json
            log --threads 2000 -> '2000' | --threads
            log --seed - -> '-' | --seed
            log --plot -> --plot
            log log/../log -> log/../log | named twice
        "#,
    ) {
        refused(folder.path(), &format!("{line} --out report"), &words);
    }
}

#[test]
fn options_that_leave_nothing_to_measure_are_refused_with_the_cure() {
    let folder = folder_with_log();
    for (options, words) in cases(
        r#"
            --verifiers token -> --verifiers token --drafts 2 | one draft | --drafts 1
            --laws greedy --verifiers rrs -> --laws greedy --verifiers rrs | with-replacement, product, stratified and stratified-independent drafts only | ask for --laws with-replacement
            --laws distinct-conditioned --verifiers exact-match -> nothing to measure | exact-match | --laws with-replacement
            --laws hub --drafts 3 -> --laws hub --drafts 3 | 2 drafts | --drafts 2
            --verifiers spechub --drafts 3 -> --verifiers spechub --drafts 3 | hub for 3 | --drafts 2
            --laws without-replacement --verifiers optimal -> nothing to measure | optimal | --laws with-replacement
            --laws product -> --laws | product | distinct-conditioned
            --verifiers rrss -> --verifiers | rrss | k-seq
        "#,
    ) {
        let drafts = if options.contains("--drafts") {
            ""
        } else {
            "--drafts 2"
        };
        let line = format!("log --temperature 1.0 {drafts} {options} --out r");
        refused(folder.path(), &line, &words);
    }
    // What is left out beside something else is a line of the report.
    let line = "log --temperature 1.0 --drafts 2,3 --laws greedy,hub --verifiers greedy,rrs";
    let run = gap(folder.path(), &format!("{line} --format json")).ok();
    let lines = run.json()["left_out"].to_string();
    for part in ["hub for 3 drafts: ", "rrs: it is lossless for"] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
}

#[test]
fn a_log_gives_the_temperatures_and_drafts_that_it_has() {
    let folder = folder_with_log();
    let kept = KeptTokens::Top {
        count: 2,
        rest_temperatures: vec![1.0],
    };
    write(&folder.path().join("top"), &rows(6), kept);
    // Of the mass at another temperature there are bounds.
    let run = gap(folder.path(), "top --temperature 0.7 --drafts 2 -v").ok();
    run.out.says("Full rows move an optimum by");
    let kept = KeptTokens::Top {
        count: 2,
        rest_temperatures: Vec::new(),
    };
    write(&folder.path().join("bare"), &rows(6), kept);
    refused(
        folder.path(),
        "bare --temperature 0.7 --out report",
        &[
            "bare: target_logits lists some tokens alone",
            "target_logprobs",
            "target_rest",
            "never-drawn",
        ],
    );
    refused(
        folder.path(),
        "log --drafts 7 --temperature 1.0 --out report",
        &["log: position 0", "6 tokens", "--drafts"],
    );
    let run = gap(folder.path(), &format!("top {QUICK} -q"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

#[test]
fn logs_that_are_missing_or_damaged_are_named_and_an_earlier_report_stays() {
    let folder = folder_with_log();
    let path = folder.path();
    gap(path, &format!("log {QUICK} --out report -q")).ok();
    let refused = |log: &str, words: &[&str]| {
        refused(path, &format!("{log} {QUICK} --out report"), words);
        refused(path, &format!("log {log} {QUICK} --out report"), words);
    };
    refused("nowhere", &["nowhere", "No such file"]);
    refused("nowhere.npz", &["nowhere.npz", "No such file"]);
    std::fs::create_dir(path.join("empty")).unwrap();
    refused("empty", &["empty", "log.json"]);
    std::fs::write(path.join("notes.txt"), "no log").unwrap();
    refused("notes.txt", &["notes.txt", ".safetensors", ".npz"]);
    for name in ["hollow.safetensors", "hollow.npz"] {
        std::fs::write(path.join(name), "").unwrap();
        refused(name, &[name]);
    }
    refused(
        fixture("big-endian.npz").to_str().unwrap(),
        &["big-endian.npz: target_logits", "little-endian"],
    );

    let shard = path.join("damaged/shard-00000.safetensors");
    let damage = |change: &dyn Fn(&mut Vec<u8>)| {
        let _ = std::fs::remove_dir_all(path.join("damaged"));
        write(&path.join("damaged"), &rows(12), KeptTokens::All);
        let mut bytes = std::fs::read(&shard).unwrap();
        change(&mut bytes);
        std::fs::write(&shard, bytes).unwrap();
    };
    damage(&|bytes| bytes.truncate(bytes.len() - 5));
    refused("damaged", &["damaged/shard-00000.safetensors", "truncated"]);
    // The last entry of all.
    damage(&|bytes| {
        let end = bytes.len() - 4;
        bytes[end..].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    refused(
        "damaged",
        &["shard-00000.safetensors: ", "row 11, column 5", "NaN"],
    );
    std::fs::write(path.join("damaged/log.json"), "{\"schema\": 1").unwrap();
    refused("damaged", &["damaged/log.json"]);
    std::fs::write(path.join("damaged/log.json"), "{\"schema\": 99}").unwrap();
    refused("damaged", &["damaged/log.json", "schema"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_work() {
    let folder = folder_with_log();
    let path = folder.path();
    std::fs::write(path.join("file"), "kept").unwrap();
    refused(
        path,
        &format!("log {QUICK} --out file"),
        &["file: ", "--out names a folder"],
    );
    refused(
        path,
        &format!("log {QUICK} --out file/report"),
        &["file/report: cannot be written", "not a directory"],
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, symlink};
        symlink("nowhere", path.join("link")).unwrap();
        let run = gap(path, &format!("log {QUICK} --out link"));
        run.refused(&["link: ", "--out names a folder"]);
        std::fs::remove_file(path.join("link")).unwrap();
        let closed = path.join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
        // Some may write anywhere.
        if std::fs::write(closed.join("probe"), "").is_err() {
            for out in ["closed", "closed/report"] {
                let words = [out, "cannot be written", "denied"];
                refused(path, &format!("log {QUICK} --out {out}"), &words);
            }
        }
    }
    // All files or none: the page's name is taken, so the plots do not come either.
    let made = path.join("made");
    gap(path, &format!("log {QUICK} --out made -q")).ok();
    std::fs::remove_file(made.join("report.html")).unwrap();
    std::fs::create_dir(made.join("report.html")).unwrap();
    let before = contents(&made);
    let run = gap(path, "log --drafts 1 --temperature 0.5 --out made");
    run.refused(&["made/report.html", "is a folder"]);
    assert_eq!(contents(&made), before);
}

/// A file system that takes the first files and not all, by a limit on the size
/// of a file.
#[cfg(unix)]
#[test]
fn a_report_that_cannot_be_written_to_its_end_leaves_the_one_before() {
    let folder = folder_with_log();
    let path = folder.path();
    gap(path, &format!("log {QUICK} --out made -q")).ok();
    let before = contents(path);
    for out in ["made", "new"] {
        // Blocks of 512 bytes, or of 1024 in some shells.
        let limited = format!(
            "trap '' XFSZ; ulimit -f 40; exec \"$0\" gap log --drafts 1 --temperature 1.0 -q --out {out}"
        );
        let output = std::process::Command::new("sh")
            .current_dir(path)
            .args(["-c", &limited])
            .arg(env!("CARGO_BIN_EXE_specgap"))
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.contains(&format!("error: {out}/")) && error.contains("free some space"),
            "{error}"
        );
        assert!(contents(path) == before, "{out}: {error}");
    }
}

/// Pictures without titles with their numbers, and tables, beside the report.
#[test]
fn papers_get_pictures_and_tables_of_their_own() {
    let folder = folder_with_log();
    let path = folder.path();
    let line = format!(
        "log {QUICK} -q --drafts 2-3 --cost-ratio 0.25 --out r --figures svg --table latex,csv"
    );
    let line = line.replace(" --drafts 2 ", " ");
    gap(path, &line).ok();
    let read = |name: &str| std::fs::read_to_string(path.join("r").join(name)).unwrap();
    let (titled, bare) = (
        read("possible-t1.0-n3.svg"),
        read("figure-possible-t1.0-n3.svg"),
    );
    // In both as words about the picture, and drawn in one.
    let said = |svg: &str| svg.matches("What is possible and what rules get").count();
    assert_eq!(said(&titled), said(&bare) + 1);
    let rows = read("figure-possible-t1.0-n3.csv");
    assert!(rows.starts_with("row,what,value,low,high\n") && rows.contains("with-replacement,"));
    assert!(read("table-acceptance.tex").contains("\\toprule"));
    assert!(read("table-gaps.csv").starts_with("group,verifier,drafts,"));
    let report: GapReport = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(report.cost_ratio, Some(0.25));
    assert!(
        report.command.ends_with(" --cost-ratio 0.25"),
        "{}",
        report.command
    );
    let drafts: Vec<usize> = report.cells.iter().map(|cell| cell.drafts).collect();
    assert!(drafts.contains(&2) && drafts.contains(&3));
    refused(path, &format!("log {QUICK} --figures svg"), &["--out"]);
    refused(path, "log --drafts 4-2", &["--drafts", "a range ascends"]);
    refused(
        path,
        "log --drafts 2 --laws stratified --verifiers rrs",
        &[
            "rrs: with stratified drafts, its rate is not computed",
            "--laws with-replacement",
        ],
    );
    // The table has the draft's own rows alone, and says so.
    let run = gap(
        path,
        &format!("log {QUICK} --draft-top-k 1 --positions p.csv -q"),
    )
    .ok();
    run.err
        .says("note: --positions: its rows are of the draft's row as it is");
    let run = gap(path, &format!("log {QUICK} --positions p.csv -q")).ok();
    assert!(!run.err.contains("--positions"), "{}", run.err);
    refused(
        path,
        &format!("log {QUICK} --cost-ratio -1"),
        &["--cost-ratio", "0 or more"],
    );
}

/// Rows as an engine serves them: in every file of the report, and a baseline of other rows is
/// none.
#[test]
fn served_rows_say_so_wherever_they_are_told() {
    let folder = folder_with_log();
    let path = folder.path();
    let line = "log --drafts 2 --temperature 0,0.7,1 --top-p 0.9 --min-p 0.05 -q --out r";
    gap(path, line).ok();
    let read = |name: &str| std::fs::read_to_string(path.join("r").join(name)).unwrap();
    let report: GapReport = serde_json::from_str(&read("report.json")).unwrap();
    let served = report.served.unwrap();
    assert_eq!(
        (served.top_p, served.min_p, served.top_k),
        (Some(0.9), Some(0.05), None)
    );
    report
        .command
        .says("--temperature 0.0,0.7,1.0 --top-p 0.9 --min-p 0.05");
    for name in ["report.md", "report.html"] {
        let page = read(name);
        assert!(page.contains("as served: top-p 0.9, min-p 0.05"), "{name}");
        assert!(
            page.contains("sampled at T = 1.0 from whole rows"),
            "{name}"
        );
    }
    let again = line.replace("--out r", "--out again");
    gap(path, &format!("{again} --baseline r/report.json")).ok();
    gap(
        path,
        "log --drafts 2 --temperature 1 --baseline r/report.json",
    )
    .refused(&["r/report.json", "--top-p 0.9 --min-p 0.05"]);
    // A greedy decode: nothing is between 0 and 1 at any position, and all rules are alike.
    let greedy = report.cells.iter().filter(|cell| cell.temperature == 0.0);
    let mut seen = 0;
    for cell in greedy {
        for row in &cell.verifiers {
            assert!(row.gap.max.abs() < 1e-9, "{} {}", cell.scheme, row.name);
            seen += 1;
        }
    }
    assert!(seen > 4, "{seen}");
    let plain = gap(path, "log --drafts 2 --temperature 0").ok();
    assert!(
        plain.out.contains("--draft-temperature 1") && !plain.out.contains("as served"),
        "{}",
        plain.out
    );
}

/// Measured times: speeds at them by hand, and what is missing in a file.
#[test]
fn costs_make_speeds_and_say_what_a_better_rule_may_take() {
    let folder = folder_with_log();
    let path = folder.path();
    let table = "schema = 1\ntarget_step = { seconds = 0.02 }\ndraft_step = { seconds = 0.004 }\n\
        overhead = { seconds = 0.001 }\n\
        verify = [{ tokens = 1, seconds = 0.02 }, { tokens = 3, seconds = 0.025 }]\n\
        rules = [{ name = \"optimal\", seconds = 0.01 }, { name = \"rrs\", seconds = 0.002 }]\n";
    std::fs::write(path.join("times.toml"), table).unwrap();
    gap(
        path,
        &format!("log {QUICK} --timings times.toml -q --out r"),
    )
    .ok();
    let read = |name: &str| std::fs::read_to_string(path.join("r").join(name)).unwrap();
    let report: GapReport = serde_json::from_str(&read("report.json")).unwrap();
    assert!(
        report.command.ends_with(" --timings times.toml"),
        "{}",
        report.command
    );
    let costs = report.costs.as_ref().unwrap();
    assert!((costs.calls[0].seconds - 0.030).abs() < 1e-12, "{costs:?}");
    let cell = (report.cells.iter())
        .find(|cell| cell.scheme == "with-replacement")
        .unwrap();
    let rrs = (cell.verifiers.iter())
        .find(|row| row.name == "rrs")
        .unwrap();
    let (now, best) = (
        rrs.acceptance.mean,
        cell.optimal_acceptance_rate.estimate.mean,
    );
    let [speed, optimal] = [0.02 * (1.0 + now) / 0.032, 0.02 * (1.0 + best) / 0.040];
    let longer = 1e3 * 0.032 * (best - now) / (1.0 + now);
    let line = format!(
        "rrs (with-replacement) {speed:.3}; optimal, which takes 10.0 ms, {optimal:.3}; a rule that \
         attains the optimum pays if it takes at most "
    );
    let page = read("report.md");
    assert!(page.contains(&line), "{line}\n{page}");
    let (_, rest) = page.split_once(&line).unwrap();
    let (number, unit) = rest.split_once(' ').unwrap();
    let number: f64 = number.parse().unwrap();
    let scale = if unit.starts_with("ms") { 1.0 } else { 1e-3 };
    assert!(
        (number * scale - longer).abs() < 6e-3 * longer,
        "{number} {longer}"
    );
    let few = format!("log {QUICK} --drafts 3 --timings times.toml").replace("--drafts 2 ", "");
    refused(
        path,
        &few,
        &["times.toml", "verify", "4 tokens", "--drafts up to 2"],
    );
    std::fs::write(path.join("times.toml"), table.replace("\"rrs\"", "\"rss\"")).unwrap();
    refused(
        path,
        &format!("log {QUICK} --timings times.toml"),
        &["times.toml", "rules[1].name", "rss"],
    );
    refused(
        path,
        &format!("log {QUICK} --timings times.toml --cost-ratio 0.1"),
        &["--cost-ratio"],
    );
}

#[test]
fn a_report_is_its_own_baseline_until_a_number_leaves() {
    let folder = folder_with_log();
    let path = folder.path();
    let line = format!("log {QUICK} -q");
    assert_eq!(gap(path, &format!("{line} --out first")).code, Some(0));
    let run = gap(path, &format!("{line} --baseline first/report.json")).ok();
    assert!(run.err.contains("every number is in its interval"));

    let json = std::fs::read_to_string(path.join("first/report.json")).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut document: Value = serde_json::from_str(&json).unwrap();
        change(&mut document);
        std::fs::write(path.join("changed.json"), document.to_string()).unwrap();
    };
    changed(&|report| {
        let row = &mut report["cells"][0]["verifiers"][0];
        assert_eq!(row["name"], "rrs");
        row["acceptance"]["ci95"] = serde_json::json!([0.0, 0.125]);
    });
    let run = gap(
        path,
        &format!("{line} --baseline changed.json --out second"),
    );
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    let words = "regression: acceptance of rrs, with-replacement at T = 1, n = 2 is ";
    assert!(run.err.starts_with(words), "{}", run.err);
    assert!(run.err.contains("[0.000000, 0.125000]"), "{}", run.err);
    // The report of a regression is written, or who could look at it?
    assert!(path.join("second/report.json").exists());
    // A tolerance sees what an interval lets pass, and each number has a test case.
    let mut moved = 0.0;
    changed(&|report| {
        let mean = &mut report["cells"][0]["verifiers"][0]["acceptance"]["mean"];
        *mean = (mean.as_f64().unwrap() + 1e-6).into();
    });
    let against = format!("{line} --baseline changed.json");
    assert_eq!(gap(path, &against).code, Some(0));
    for (tolerance, code) in [("1e-9", 1), ("1e-3", 0)] {
        let run = gap(
            path,
            &format!("{against} --within {tolerance} --junit cases.xml"),
        );
        assert_eq!(run.code, Some(code), "{}", run.err);
        let xml = std::fs::read_to_string(path.join("cases.xml")).unwrap();
        assert_eq!(xml.matches("<failure").count(), code as usize, "{xml}");
        assert!(xml.contains("name=\"acceptance of rrs, with-replacement at T = 1, n = 2\""));
        assert!(xml.matches("<testcase").count() > 5);
        moved += run.err.matches("± 1e-9").count() as f64;
    }
    assert_eq!(moved, 1.0);
    refused(
        path,
        &format!("{line} --within 1e-9 --out x"),
        &["--baseline"],
    );
    refused(
        path,
        &format!("{against} --within -1 --out x"),
        &["--within", "1e-9"],
    );
    // So are the draft's other rows.
    let redrafted = format!("{line} --draft-temperature 0.5 --draft-top-k 3");
    gap(path, &format!("{redrafted} --out first")).ok();
    let own = "--baseline first/report.json --within 1e-9";
    gap(path, &format!("{redrafted} {own}")).ok();
    for other in [line.clone(), redrafted.replace("k 3", "k 2")] {
        let run = gap(path, &format!("{other} {own}"));
        assert_eq!(run.code, Some(1), "{}", run.err);
        for number in ["overlap at", "alpha* of", "acceptance of rrs,"] {
            let missing = format!("regression: {number}");
            let of_draft = |line: &str| {
                line.starts_with(&missing) && line.contains("the draft at T = 0.5 --top-k 3")
            };
            assert!(run.err.lines().any(of_draft), "{number}: {}", run.err);
        }
    }
    let json = std::fs::read_to_string(path.join("first/report.json")).unwrap();
    let mut document: Value = serde_json::from_str(&json).unwrap();
    let rate = &mut document["redrafted"][0]["cells"][0]["verifiers"][0]["acceptance"]["mean"];
    *rate = (rate.as_f64().unwrap() + 1e-6).into();
    std::fs::write(path.join("first/report.json"), document.to_string()).unwrap();
    let run = gap(path, &format!("{redrafted} {own}"));
    assert_eq!(
        (run.code, run.err.lines().count()),
        (Some(1), 1),
        "{}",
        run.err
    );
    gap(path, &format!("{line} --out first")).ok();
    // A number that is asked for no more is missing.
    let other = "log --drafts 1 --temperature 1.0 -q --baseline first/report.json";
    let run = gap(path, other);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("is missing"), "{}", run.err);

    let refused = |words: &[&str]| {
        let line = format!("{line} --baseline changed.json --out third");
        refused(path, &line, words);
    };
    changed(&|report| report["schema"] = 2.into());
    refused(&["changed.json: schema is 2", "compares with 1"]);
    changed(&|report| report["schema"] = "one".into());
    refused(&["changed.json: is no report.json", "schema"]);
    changed(&|report| report["cells"] = Value::Array(vec![]));
    refused(&["changed.json: cells is empty"]);
    changed(&|report| report["cells"][1]["verifiers"] = 3.into());
    refused(&["changed.json: is no report.json", "cells[1].verifiers"]);
    for text in ["", "{\"schema\": 1}", "[]", "<html>"] {
        std::fs::write(path.join("changed.json"), text).unwrap();
        refused(&["changed.json: is no report.json"]);
    }
    std::fs::remove_file(path.join("changed.json")).unwrap();
    refused(&["changed.json: cannot be read"]);
}

#[test]
fn the_demo_needs_nothing_but_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let run = specgap(
        path,
        ["demo", "--drafts", "1", "--temperature", "1.0", "-q"],
    );
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(run.out, "report: out/demo/report.html\n");
    let json = std::fs::read_to_string(path.join("out/demo/report.json")).unwrap();
    let report: GapReport = serde_json::from_str(&json).unwrap();
    assert!(report.positions > 100 && report.logs[0].vocabulary > 40_000);
    assert_eq!(report.logs[0].name, "smollm2-chat");
    let command = "specgap demo --drafts 1 --temperature 1.0";
    assert_eq!(report.command, command);
    assert!(path.join("out/demo/report.html").exists());
    assert!(path.join("out/demo/report.md").exists());

    let before = contents(path);
    std::fs::write(path.join("file"), "").unwrap();
    let run = specgap(path, ["demo", "--out", "file"]);
    run.refused(&["file: ", "--out names a folder"]);
    let run = specgap(path, ["demo", "--temperature", "-0.123"]);
    run.refused(&["-0.123"]);
    std::fs::remove_file(path.join("file")).unwrap();
    assert_eq!(contents(path), before);
}

#[test]
fn help_says_what_the_words_mean() {
    let here = Path::new(".");
    for command in ["gap", "demo"] {
        let run = specgap(here, [command, "--help"]).ok();
        let (_, definitions) = run.out.split_once("Definitions:").unwrap();
        for word in [
            "acceptance: ",
            "gap: ",
            "optimal acceptance rate: ",
            "overlap: ",
            "95% interval: ",
            "scheme without-replacement: ",
            "verifier k-seq: ",
            "block-optimum: ",
        ] {
            assert!(definitions.contains(word), "{command}: {word}");
        }
        let short = specgap(here, [command, "-h"]).out;
        assert!(!short.contains("Definitions:"));
    }
}

/// Where a text is there and nothing says at which temperature it was drawn, that is what is missing; and
/// the next command says what was said to this one.
#[test]
fn the_next_command_says_the_temperature_that_a_log_does_not() {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(40));
    let index = folder.path().join("log/log.json");
    let mut said: Value = serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
    said["metadata"].as_object_mut().unwrap().remove("sampling");
    std::fs::write(&index, said.to_string()).unwrap();
    let next = |line: &str| {
        let run = gap(folder.path(), line).ok();
        let (_, next) = run.out.split_once("next: ").unwrap();
        next.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let unsaid = next("log --drafts 2");
    assert!(
        unsaid
            .starts_with("specgap gap log --temperature T, with the T that the text was drawn at"),
        "{unsaid}"
    );
    let said = next("log --drafts 2 --temperature 1");
    let command = "length log --temperature 1 --cost-ratio 0.05";
    assert!(
        said.starts_with(&format!("specgap {command} says")),
        "{said}"
    );
    specgap(folder.path(), command.split_whitespace()).ok();
}

fn merge(folder: &Path, line: &str) -> Run {
    specgap(folder, ["merge"].into_iter().chain(line.split_whitespace()))
}

#[test]
fn parts_become_the_report_of_one_run_to_the_byte() {
    let folder = folder_with_log();
    let path = folder.path();
    let line = "log --drafts 1,3 --temperature 0.8,1";
    assert_eq!(gap(path, &format!("{line} --out whole -q")).code, Some(0));
    for index in 1..=3 {
        let run = gap(
            path,
            &format!("{line} --shard {index}/3 --partial part-{index}"),
        )
        .ok();
        assert_eq!(run.out, format!("summary of 4 positions: part-{index}\n"));
    }
    let run = merge(path, "part-3 part-1 part-2 --out merged");
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let files = |name: &str| -> BTreeMap<PathBuf, Vec<u8>> {
        contents(&path.join(name))
            .into_iter()
            .map(|(file, bytes)| {
                (
                    file.strip_prefix(path.join(name)).unwrap().to_owned(),
                    bytes,
                )
            })
            .collect()
    };
    assert!(files("whole").len() > 5);
    assert!(files("whole") == files("merged"));
    // Parts of parts, and the report that is its own baseline.
    let run = merge(path, "part-2 part-1 --partial first-two");
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "summary of 8 positions: first-two\n")
    );
    merge(path, "part-3 first-two --baseline whole/report.json -q").ok();
    // A summary beside a report is that of all positions.
    gap(path, &format!("{line} --partial all --out beside -q")).ok();
    assert!(files("whole") == files("beside"));
    merge(path, "part-1 part-2 part-3 --partial together").ok();
    assert_eq!(
        std::fs::read(path.join("all")).unwrap(),
        std::fs::read(path.join("together")).unwrap()
    );

    let refused = |line: &str, words: &[&str]| {
        let before = contents(path);
        merge(path, line).refused(words);
        assert_eq!(contents(path), before, "{line}");
    };
    // Any flipped bit that leaves a summary is seen by its hash; earlier versions wrote none.
    let part = std::fs::read_to_string(path.join("part-2")).unwrap();
    let bins = part.find("\"bins\":[[").unwrap();
    // The last digit of a number, so that it stays one.
    let digit = bins + part[bins..].find(',').unwrap() - 1;
    let mut flipped = part.clone().into_bytes();
    flipped[digit] ^= 1;
    std::fs::write(path.join("flipped"), flipped).unwrap();
    refused(
        "part-1 flipped part-3 --out x",
        &["flipped: sha256: is not that of the file", "write it again"],
    );
    std::fs::remove_file(path.join("flipped")).unwrap();
    let (older, _) = part.rsplit_once(",\"sha256\"").unwrap();
    std::fs::write(path.join("part-2"), format!("{older}}}\n")).unwrap();
    merge(path, "part-1 part-2 part-3 -q").ok();
    std::fs::write(path.join("part-2"), part).unwrap();
    refused(
        "part-1 part-3 --out x",
        &["positions 4 to 7 of log (12 in all)", "--incomplete"],
    );
    refused(
        "part-3 part-1 part-2 part-1 --out x",
        &[
            "part-1: does not go with part-1",
            "positions 0 to 3",
            "once",
        ],
    );
    refused(
        "part-1 first-two part-3 --out x",
        &["first-two: does not go with part-1"],
    );
    refused("log/log.json --out x", &["log.json: is the index of a log"]);
    refused("nowhere --out x", &["nowhere: cannot be read"]);
    refused("", &["<FILE>"]);
    let run = merge(path, "part-1 part-3 --incomplete --format json");
    let report: GapReport = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report.positions, 8);
    report.left_out.says("positions 4 to 7");
    let other = "log --drafts 1 --temperature 0.8,1 --shard 2/3 --partial other -q";
    assert_eq!(gap(path, other).code, Some(0));
    refused(
        "part-1 other part-3 --out x",
        &[
            "other: does not go with part-1",
            "--drafts 1,",
            "with 1,3",
            "same options",
        ],
    );
}

#[test]
fn parts_and_tables_are_named_rightly_or_refused() {
    let folder = folder_with_log();
    for (line, words) in cases(
        r#"
            log --shard 1/2 -> --partial
            log --shard 0/2 --partial p -> 0/2 | I/K
            log --shard 3/2 --partial p -> 3/2 | I/K
            log --shard 1 --partial p -> '1' | I/K
            log --shard 1/2 --partial p --out x -> --out
            log --partial log -> log: is a folder
            log --partial nowhere/p -> nowhere/p | No such file
            log --positions nowhere/p.csv -> nowhere/p.csv | No such file
            log --positions log -> log: is a folder
        "#,
    ) {
        refused(folder.path(), &line, &words);
    }
    #[cfg(not(feature = "parquet"))]
    refused(
        folder.path(),
        "log --positions p.parquet",
        &["p.parquet", "--features parquet", ".csv"],
    );
}

#[test]
fn a_table_of_positions_is_the_same_on_any_number_of_threads() {
    let folder = folder_with_log();
    let path = folder.path();
    let names: &[&str] = if cfg!(feature = "parquet") {
        &["csv", "parquet"]
    } else {
        &["csv"]
    };
    for name in names {
        let with = |threads: u32| {
            let file = format!("t{threads}.{name}");
            let line = format!("log --drafts 1,2 --temperature 0.8,1 -q --positions {file}");
            let run = gap(path, &format!("{line} --threads {threads}"));
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
            std::fs::read(path.join(file)).unwrap()
        };
        let one = with(1);
        assert!(one == with(2), "{name}");
        if *name == "csv" {
            assert_eq!(
                String::from_utf8(one).unwrap().lines().count(),
                1 + 12 * 2 * 2
            );
        } else {
            assert!(one.starts_with(b"PAR1") && one.ends_with(b"PAR1"));
        }
    }
}

/// What another reader of Parquet finds is what the other table says.
#[cfg(feature = "parquet")]
#[test]
fn the_parquet_table_says_what_the_other_one_says() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let folder = folder_with_log();
    let path = folder.path();
    for name in ["t.csv", "t.parquet"] {
        let line = format!("log --drafts 1,2 --temperature 0.8,1 -q --positions {name}");
        assert_eq!(gap(path, &line).code, Some(0));
    }
    let text = std::fs::read_to_string(path.join("t.csv")).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let file = std::fs::File::open(path.join("t.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let mut rows = 0;
    for row in reader.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let entries: Vec<&str> = lines.next().unwrap().split(',').collect();
        for (((name, field), wanted), entry) in row.get_column_iter().zip(&names).zip(&entries) {
            assert_eq!(name, wanted);
            let text = match field {
                Field::Null => String::new(),
                Field::Str(text) => text.clone(),
                Field::Long(x) => x.to_string(),
                Field::Double(x) => format!("{x:?}"),
                other => panic!("{other:?}"),
            };
            assert_eq!(text, *entry, "{name}");
        }
        rows += 1;
    }
    assert_eq!(rows, 12 * 2 * 2);
    assert_eq!(lines.next(), None);
}

#[test]
fn several_logs_are_compared_and_pooled_only_if_asked() {
    let folder = folder_with_log();
    let path = folder.path();
    // Another log of the same name elsewhere, of other rows under the same text.
    std::fs::create_dir(path.join("sub")).unwrap();
    write(&path.join("sub/log"), &rows(40)[20..], KeptTokens::All);
    let each = |log: &str| -> GapReport {
        let run = gap(path, &format!("{log} {QUICK} --format json"));
        serde_json::from_str(&run.out).unwrap()
    };
    let (first, second) = (each("log"), each("sub/log"));
    let run = gap(path, &format!("log sub/log {QUICK} --out both")).ok();
    for words in ["log-2 and log are paired", "12 positions of 3 prompts"] {
        assert!(run.out.contains(words), "{}", run.out);
    }
    assert_eq!(run.out.lines().last(), Some("report: both/report.html"));
    let read = |name: &str| std::fs::read_to_string(path.join("both").join(name)).unwrap();
    // Each log's own report is that of a run on it alone.
    for (folder, report) in [("log", &first), ("log-2", &second)] {
        let own: GapReport = serde_json::from_str(&read(&format!("{folder}/report.json"))).unwrap();
        assert_eq!(&own, report);
        assert!(read(&format!("{folder}/report.html")).contains("</html>"));
        assert!(read("report.html").contains(&format!("./{folder}/report.html")));
        assert!(read("report.md").contains(&format!("{folder}/report.md")));
    }
    let comparison: Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(comparison["kind"], "comparison");
    assert_eq!(comparison["paired"], true);
    assert_eq!(comparison["logs"][1]["against_first"]["positions"], 12);
    assert_eq!(comparison["logs"][1]["folder"], "log-2");
    let rate = comparison["rates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|rate| rate["verifier"] == "k-seq")
        .unwrap();
    for (report, estimate) in [&first, &second]
        .iter()
        .zip(rate["estimates"].as_array().unwrap())
    {
        let mut rows = report.cells[0].verifiers.iter();
        let row = rows.find(|row| row.name == "k-seq").unwrap();
        assert_eq!(
            (row.name.as_str(), &estimate["kind"]),
            ("k-seq", &"enclosed".into())
        );
        assert_eq!(estimate["mean"], row.acceptance.mean);
        assert_eq!(estimate["ci95"][0], row.acceptance.ci95[0]);
    }
    assert!(rate["differences"][0].is_null());
    assert_eq!(rate["differences"][1]["paired"], true);
    let read_all = |name: &str| read(name).split_whitespace().collect::<Vec<_>>().join(" ");
    for name in ["report.html", "report.md"] {
        assert!(
            read_all(name).contains("log-2 and log are paired"),
            "{name}"
        );
    }
    let run = gap(path, &format!("log sub/log {QUICK} --format json"));
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap(), comparison);

    // Together only if asked, and of one kind only.
    let run = gap(path, &format!("log sub/log {QUICK} --pool --format json"));
    let both: GapReport = serde_json::from_str(&run.out).unwrap();
    assert_eq!((both.positions, both.logs.len()), (32, 2));
    assert!(both.command.contains(" --pool "), "{}", both.command);
    for option in ["--baseline both/log/report.json", "--partial p"] {
        let words = [option.split(' ').next().unwrap(), "--pool"];
        refused(path, &format!("log sub/log {QUICK} {option}"), &words);
    }
    let line = format!("{QUICK} -q --partial");
    for (log, part) in [("log", "p1"), ("sub/log", "p2")] {
        assert_eq!(gap(path, &format!("{log} {line} {part}")).code, Some(0));
    }
    let words = [
        "2 logs that are all named log",
        "all parts of one log",
        "--pool",
    ];
    merge(path, "p1 p2").refused(&words);
    let run = merge(path, "p2 p1 --pool --format json");
    assert_eq!(serde_json::from_str::<GapReport>(&run.out).unwrap(), both);
}

/// More shards than a process may open, and a report of them.
#[cfg(unix)]
#[test]
fn a_log_of_more_shards_than_open_files_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let layout = specgap::log::Layout {
        dtype: specgap::log::Dtype::F32,
        shard_bytes: 1,
        ..specgap::log::Layout::new(crate::made_log::V)
    };
    let place = |n: usize| ((n / 5) as i64, (n % 5) as i64, 0);
    crate::made_log::write_at(&folder.path().join("log"), &rows(150), layout, place);
    let program = env!("CARGO_BIN_EXE_specgap");
    let output = std::process::Command::new("sh")
        .current_dir(folder.path())
        .args([
            "-c",
            "ulimit -n 64 && exec \"$0\" gap log --drafts 2 --temperature 1 --threads 2 --out out",
            program,
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(folder.path().join("out/report.html").exists());
}

/// Where no thread can be started, as with a limit on processes, the first one does all, and says
/// so; who asked for one has nothing to be told.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_cannot_be_started_are_told() {
    let folder = folder_with_log();
    let run = |threads: &str| {
        let args = format!("gap log {QUICK} --threads {threads}");
        let mut command = crate::run::command(folder.path(), args.split(' '));
        // No stack of this size can be had.
        let output = command.env("RUST_MIN_STACK", (1u64 << 46).to_string());
        let output = output.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        (output.stdout, said)
    };
    let (eight, said) = run("8");
    let note = "; 1 thread will do\n";
    assert!(
        said.starts_with("note: 8 threads cannot be started ("),
        "{said}"
    );
    assert!(said.contains(note), "{said}");
    let (one, alone) = run("1");
    assert!(!alone.contains(note), "{alone}");
    assert!(!eight.is_empty() && eight == one);
    // The pace is that of the thread that serves.
    for said in [said, alone] {
        assert!(said.contains("a second on 1 thread"), "{said}");
    }
}

/// What a run that was killed left in the folder goes with the next run into it.
#[test]
fn temporary_files_of_a_killed_run_are_removed() {
    let folder = folder_with_log();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let left = folder.path().join("out/.specgap-a1B2c3");
    std::fs::write(&left, "half a report").unwrap();
    gap(folder.path(), &format!("log {QUICK} --out out")).ok();
    assert!(!left.exists());
    let hidden = contents(&folder.path().join("out"));
    let mut names = hidden
        .keys()
        .map(|path| path.file_name().unwrap().to_str().unwrap());
    assert!(names.all(|name| !name.starts_with('.')), "{hidden:?}");
}

/// Of two runs into one folder one writes first, and then the other.
#[cfg(unix)]
#[test]
fn a_report_waits_for_another_that_is_being_written() {
    let folder = folder_with_log();
    let start = std::time::Instant::now();
    let line = format!("log {QUICK}");
    gap(folder.path(), &format!("{line} --out alone")).ok();
    let alone = start.elapsed();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let lock = std::fs::File::open(&out).unwrap();
    lock.lock().unwrap();
    let mut words = vec!["gap"];
    let line = format!("{line} --out out -q");
    words.extend(line.split_whitespace());
    let mut child = crate::run::command(folder.path(), words).spawn().unwrap();
    std::thread::sleep(3 * alone + std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none());
    assert_eq!(contents(&out), BTreeMap::new());
    drop(lock);
    assert!(child.wait().unwrap().success());
    assert_eq!(
        contents(&out)
            .keys()
            .map(|path| path.file_name())
            .collect::<Vec<_>>(),
        contents(&folder.path().join("alone"))
            .keys()
            .map(|path| path.file_name())
            .collect::<Vec<_>>()
    );
}

/// A law whose drafts may be equal needs no vocabulary as large as n; one whose may not, does.
#[test]
fn more_drafts_than_tokens_are_refused_only_where_they_have_to_differ() {
    let folder = tempfile::tempdir().unwrap();
    let layout = specgap::log::Layout {
        dtype: specgap::log::Dtype::F32,
        ..specgap::log::Layout::new(crate::made_log::V)
    };
    // Token 1 is within two tokens and never masked.
    let place = |n: usize| (0, n as i64, 1);
    crate::made_log::write_at(&folder.path().join("log"), &rows(6), layout, place);
    let line = "log --vocab 2 --drafts 3 --temperature 1 --out out";
    gap(folder.path(), &format!("{line} --laws with-replacement")).ok();
    let words = &["fewer than the 3 distinct drafts"];
    refused(
        folder.path(),
        &format!("{line} --laws without-replacement"),
        words,
    );
}

/// Another value of an option than two is refused, and so are parts that differ in it.
fn not_mixed(folder: &Path, line: &str, option: &str, ways: [&str; 2]) {
    let words = [option, ways[0], ways[1]];
    refused(folder, &format!("{line} {option} none"), &words);
    for (index, way) in (1..).zip(ways) {
        let part = format!("{line} {option} {way} --shard {index}/2 --partial {way}");
        gap(folder, &part).ok();
    }
    merge(folder, &ways.join(" ")).refused(&[option, "same options"]);
}

/// How rrs-wo is computed is an option, which the report's command names, and which parts have
/// to agree on.
#[test]
fn fast_rates_and_enclosed_ones_are_not_mixed() {
    let folder = folder_with_log();
    let line = "log --drafts 3 --temperature 1.0 --verifiers rrs-wo --format json";
    let of = |options: &str| -> GapReport {
        let run = gap(folder.path(), &format!("{line} {options}")).ok();
        serde_json::from_str(&run.out).unwrap()
    };
    let (fast, enclosed) = (of(""), of("--rrs-wo enclosed"));
    assert!(!fast.command.contains("--rrs-wo") && !fast.audits.is_empty());
    assert!(fast.audits.iter().all(|audit| audit.outside == 0));
    assert!(enclosed.command.ends_with("--rrs-wo enclosed") && enclosed.audits.is_empty());
    let line = "log --drafts 3 --temperature 1.0";
    not_mixed(folder.path(), line, "--rrs-wo", ["fast", "enclosed"]);
}

/// Where plans are solved is an option, which the report's command names, and which parts have to
/// agree on.
#[test]
fn plans_of_every_position_and_audited_ones_are_not_mixed() {
    let folder = folder_with_log();
    let line = "log --drafts 3 --temperature 1.0 --laws with-replacement --verifiers optimal";
    let of = |options: &str| -> GapReport {
        let run = gap(folder.path(), &format!("{line} --format json {options}")).ok();
        serde_json::from_str(&run.out).unwrap()
    };
    let (audited, every) = (of(""), of("--plans every"));
    assert!(!audited.command.contains("--plans") && every.command.ends_with("--plans every"));
    assert!(audited.plans[0].positions.is_some() && every.plans[0].positions.is_none());
    not_mixed(folder.path(), line, "--plans", ["audited", "every"]);
}

/// Changes what a log says of itself.
fn say(folder: &Path, change: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    let path = folder.join("log/log.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(index["metadata"].as_object_mut().unwrap());
    std::fs::write(path, index.to_string()).unwrap();
}

#[test]
fn the_temperature_is_that_of_the_text_unless_another_is_asked_for() {
    let folder = folder_with_log();
    let measured = |line: &str| {
        let run = gap(
            folder.path(),
            &format!("log --drafts 2 {line} --format json"),
        )
        .ok();
        let report: GapReport = serde_json::from_str(&run.out).unwrap();
        let mut all: Vec<f64> = report.cells.iter().map(|cell| cell.temperature).collect();
        all.dedup_by(|a, b| a == b);
        all.sort_by(f64::total_cmp);
        all.dedup();
        report.command.says("--temperature ");
        all
    };
    let sampled_at = |temperature: f64| {
        say(folder.path(), |metadata| {
            let sampling = serde_json::json!({"temperature": temperature});
            metadata.insert("sampling".to_owned(), sampling);
        });
    };
    for temperature in [1.0, 0.6, 0.0] {
        sampled_at(temperature);
        assert_eq!(measured(""), [temperature]);
        let run = gap(folder.path(), "log --drafts 2");
        // Where rows tell that it was not sampled there, that comes first.
        let words = match temperature {
            0.6 => "The text was not drawn from these rows".to_owned(),
            _ => format!("at temperature {temperature:?}, at which the text was sampled,"),
        };
        assert!(run.out.contains(&words), "{temperature}: {}", run.out);
    }
    assert_eq!(measured("--temperature 0.3,2"), [0.3, 2.0]);
    say(folder.path(), |metadata| drop(metadata.remove("sampling")));
    assert_eq!(measured(""), [0.7, 1.0]);
    assert!(
        !gap(folder.path(), "log --drafts 2")
            .out
            .contains("at which the text")
    );
}

#[test]
fn a_log_that_is_not_finished_says_so_in_the_first_lines() {
    let folder = folder_with_log();
    let prompts = |planned: usize| {
        say(folder.path(), |metadata| {
            let one = |id| serde_json::json!({"id": id, "name": "p", "positions": 4});
            metadata.insert("prompts".to_owned(), (0..3).map(one).collect());
            metadata.insert("planned_prompts".to_owned(), planned.into());
        });
    };
    for (planned, told) in [(5, true), (3, false)] {
        prompts(planned);
        for command in ["gap", "length", "tree", "paths"] {
            let more = if command == "paths" {
                " --length 2"
            } else {
                ""
            };
            let line = format!("{command} log{more}");
            let run = specgap(folder.path(), line.split(' ')).ok();
            let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
            let at = words.find("The capture did not finish: 3 of 5 prompts are in the log");
            assert_eq!(at.is_some(), told, "{command}: {words}");
            assert!(at.is_none_or(|at| at < 400), "{command}: {words}");
        }
        // Beside another log, too.
        write(&folder.path().join("other"), &rows(12), KeptTokens::All);
        let run = gap(folder.path(), &format!("log other {QUICK}"));
        assert_eq!(run.out.contains("did not finish"), told, "{}", run.out);
        std::fs::remove_dir_all(folder.path().join("other")).unwrap();
    }
}

#[test]
fn reports_have_the_digests_of_their_files_and_no_seed_that_nobody_said() {
    let folder = folder_with_log();
    let path = folder.path().join("log");
    let mut files: Vec<Value> = (std::fs::read_dir(&path).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap() != ".lock")
        .map(|path| {
            let digest = specgap::log::FileDigest::of_file(&path).unwrap();
            serde_json::to_value(digest).unwrap()
        })
        .collect();
    files.sort_by_key(|file| file["name"].to_string());
    assert!(files.len() >= 2);
    for line in [
        "gap log --drafts 2",
        "length log",
        "tree log",
        "paths log --length 2",
    ] {
        let run = specgap(folder.path(), line.split(' ').chain(["--format", "json"]));
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(
            report["logs"][0]["files"],
            Value::from(files.clone()),
            "{line}"
        );
        let metadata = &report["logs"][0]["metadata"];
        assert_eq!(
            metadata["sampling"],
            serde_json::json!({"temperature": 1.0})
        );
        assert!(metadata.get("temperature_applied").is_none());
    }
    // Parts together have what the whole has.
    for index in 1..=2 {
        let line = format!("log {QUICK} --shard {index}/2 --partial {index}.json");
        assert_eq!(gap(folder.path(), &line).code, Some(0));
    }
    let line = "merge 1.json 2.json --format json";
    let merged: Value = serde_json::from_str(&specgap(folder.path(), line.split(' ')).out).unwrap();
    assert_eq!(merged["logs"][0]["files"], Value::from(files));
}

/// Depths of a drafter whose rows depend on where a round began, side by side; each report and the
/// page of all say the command that makes them again.
#[test]
fn depths_are_compared() {
    // Two texts of one token.
    let held = |name: &str, dtype, shape: &[usize], entries: &[[u8; 4]]| {
        HeldTensor::new(name, dtype, shape, entries.concat())
    };
    let logits = |name: &str, shape: &[usize]| {
        held(
            name,
            Dtype::F32,
            shape,
            &vec![[0; 4]; shape.iter().product()],
        )
    };
    let one = 1i32.to_le_bytes();
    let tensors = vec![
        logits("target_logits", &[2, 2]),
        logits("draft_logits", &[2, 2, 2]),
        held("prompt_id", Dtype::I32, &[2], &[[0; 4], one]),
        held("position", Dtype::I32, &[2], &[[0; 4]; 2]),
    ];
    let log = Log::held("short".as_ref(), Metadata::default(), tensors, None).unwrap();
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let refused_one = measure(&[log.at_depth(2).unwrap()], &settings, "", &|_| ());
    let words = "no text with such rows is 2 tokens long";
    refused_one.unwrap_err().to_string().says(words);
    let folder = tempfile::tempdir().unwrap();
    let log = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/models/logs/smollm2-by-depth/eagle-kl-lists.safetensors"
    );
    std::fs::copy(log, folder.path().join("heads.safetensors")).unwrap();
    let run = gap(
        folder.path(),
        "heads.safetensors --depth 2,1 --drafts 2 --verifiers rrs --laws with-replacement --out all --format json",
    ).ok();
    let page: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let command = page["command"].as_str().unwrap();
    let start = "specgap gap heads.safetensors --depth 1,2 ";
    assert!(command.starts_with(start), "{command}");
    for (folder_of, depth, start) in [
        (
            "heads.safetensors-depth-1",
            1,
            "specgap gap heads.safetensors --",
        ),
        (
            "heads.safetensors-depth-2",
            2,
            "specgap gap heads.safetensors --depth 2 ",
        ),
    ] {
        let report = folder
            .path()
            .join("all")
            .join(folder_of)
            .join("report.json");
        let report = std::fs::read_to_string(report).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["logs"][0]["depth"]["depth"], depth);
        let command = report["command"].as_str().unwrap();
        assert!(command.starts_with(start), "{command}");
    }
    refused(
        folder.path(),
        "heads.safetensors --depth 5",
        &["depths 1 to 4, and none at depth 5"],
    );
}

/// Advice of `gap`, `length` and `tree` starts from an engine; of one that is none, that is refused.
#[test]
fn an_engine_is_named_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(40));
    let run = |line: &str| specgap(folder.path(), line.split_whitespace());
    for command in ["gap", "length", "tree"] {
        let wrong = run(&format!("{command} log --engine vlm"));
        wrong.refused(&["--engine", "vlm", "there are vLLM, SGLang", "'vLLM'"]);
        let made = run(&format!("{command} log --engine llama-cpp --format json")).ok();
        let report: Value = serde_json::from_str(&made.out).unwrap();
        assert_eq!(report["engine"]["engine"], "llama.cpp");
        assert_eq!(report["engine"]["known_by"], "option");
        let told = report["command"].as_str().unwrap();
        assert!(told.ends_with(" --engine llama.cpp"), "{told}");
    }
}

/// A draft whose rows are no better at their own positions than at others is said first, and a text that
/// is not of its rows, whatever tells its temperature.
#[test]
fn a_draft_that_knows_nothing_and_a_text_of_other_rows_come_first() {
    let folder = tempfile::tempdir().unwrap();
    // Rows of the two models that have nothing to do with each other.
    write_drawn(&folder.path().join("log"), &rows(150));
    let run = gap(folder.path(), "log --drafts 2").ok();
    let second = run.out.lines().nth(1).unwrap();
    assert!(
        second.contains("! The draft knows nothing of its position"),
        "{}",
        run.out
    );
    run.out
        .says("next: log the rows that the drafts are drawn from");
    assert!(!run.out.contains("What to change"), "{}", run.out);
    let report = gap(folder.path(), "log --drafts 2 --format json").json();
    assert_eq!(report["advice"].as_array().map_or(0, Vec::len), 0);
    let fit = &report["logs"][0]["fit"];
    assert!(fit["gain"]["ci95"][1].as_f64().unwrap() < 0.05, "{fit}");
    for command in ["length log --lengths 1,2", "tree log --trees 2x2"] {
        let run = specgap(folder.path(), command.split(' ')).ok();
        let second = run.out.lines().nth(1).unwrap();
        assert!(second.contains("! The draft knows nothing"), "{}", run.out);
        assert!(
            !run.out.contains("times as fast") && !run.out.contains("No tree"),
            "{}",
            run.out
        );
    }
    let profile = "length log --lengths 1,2 --profile vllm --out made";
    let run = specgap(folder.path(), profile.split(' '));
    run.refused(&["--profile", "about other positions"]);
    // The log says nothing, and the option does.
    say(folder.path(), |metadata| drop(metadata.remove("sampling")));
    let run = gap(folder.path(), "log --drafts 2 --temperature 4").ok();
    run.out.says("! The text was not drawn from these rows");
    let run = gap(folder.path(), "log --drafts 2 --temperature 1").ok();
    assert!(
        !run.out.contains("not drawn from these rows"),
        "{}",
        run.out
    );
    let many: Vec<String> = (1..=65).map(|t| format!("{t}")).collect();
    let line = format!("log --drafts 2 --temperature {}", many.join(","));
    gap(folder.path(), &line).refused(&["65 temperatures are too many", "64"]);
}

/// A report replaces another one whole: no picture stays that its page does not show.
#[test]
fn a_report_of_another_command_leaves_no_pictures_behind() {
    let folder = folder_with_log();
    let pictures = || {
        let files = contents(&folder.path().join("out")).into_keys();
        let svg = files.filter(|path| path.extension().is_some_and(|ending| ending == "svg"));
        svg.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    gap(folder.path(), &format!("log {QUICK} --out out")).ok();
    let before = pictures();
    assert!(!before.is_empty());
    std::fs::write(folder.path().join("out/own.svg"), "mine").unwrap();
    let line = ["length", "log", "--cost-ratio", "0.1", "--out", "out"];
    specgap(folder.path(), line).ok();
    let page = std::fs::read_to_string(folder.path().join("out/report.md")).unwrap();
    let (own, after): (Vec<_>, Vec<_>) = pictures().into_iter().partition(|name| name == "own.svg");
    assert_eq!(own.len(), 1);
    assert!(
        after != before && after.iter().all(|name| page.contains(name)),
        "{after:?}"
    );
}

/// Of two rows of overlap o one noise keeps one draft with o/(2-o) or more.
#[test]
fn an_engine_that_compares_tokens_hears_what_one_noise_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let log = Path::new(ROOT).join("models/logs/smollm2-demo");
    let told = |engine: &str, more: &str| {
        let line = format!("--drafts 1 --engine {engine} {more}");
        let words = std::iter::once("gap").chain(log.to_str());
        let run = specgap(folder.path(), words.chain(line.split_whitespace())).ok();
        run.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let report: Value = serde_json::from_str(&told("mlx-lm", "--format json")).unwrap();
    let overlap = report["one_draft"][0]["token"]["mean"].as_f64().unwrap();
    let least = 100.0 * overlap / (2.0 - overlap);
    let words = format!("some {least:.1}% of the drafts or more are kept");
    let said = told("mlx-lm", "");
    assert!(said.contains(&words), "{words}: {said}");
    assert!(!told("vLLM", "").contains("noise"));
}

/// Where many laws accept all, the title has the one that the advice names.
#[test]
fn the_title_and_the_advice_name_one_law() {
    let folder = tempfile::tempdir().unwrap();
    let same = rows(150).into_iter().map(|(_, q)| (q.clone(), q));
    write_drawn(&folder.path().join("same"), &same.collect::<Vec<_>>());
    let run = gap(folder.path(), "same --temperature 1 --drafts 3").ok();
    let first: Vec<&str> = run.out.lines().take(3).collect();
    let law = first[0].strip_prefix("same: ").unwrap();
    let law = law.split(" drafts").next().unwrap();
    let advice = first[1..].join(" ");
    assert!(advice.contains(&format!("draw {law}")), "{first:?}");
}
