//! What a terminal shows: help on one screen, tables within its columns, styles where they can be
//! shown, what was meant by a typo, and a meaning for every word of a table.

use crate::engine_log::{small, write as write_engine};
use crate::made_log::{rows, write_drawn};
use crate::made_paths::{Made, write as write_paths};
use crate::run::{ROOT, Run, cases, command, specgap};
use clap::CommandFactory;
use specgap::audit::{Rule, Settings, Simulator};
use specgap::log::Log;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A log of text, one with draft paths, one of an engine, and a problem of each kind.
fn fixtures() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_drawn(&at("log"), &rows(20));
    write_drawn(&at("other"), &rows(15));
    write_paths(&at("paths"), &Made::default());
    let log = Log::from_bytes(Path::new("small.safetensors"), small().into()).unwrap();
    let simulator = Simulator::new(Settings::new(Rule::TOKEN));
    let made = simulator.log(&log).unwrap();
    write_engine(&small(), &made, &at("engine.safetensors"), &[]);
    let metrics = Path::new(ROOT).join("tests/fixtures/engines/llama-cpp-metrics.txt");
    std::fs::copy(metrics, at("metrics.txt")).unwrap();
    for (from, to) in [
        ("hand", "single"),
        ("golden-blocks", "blocks"),
        ("without-replacement", "more"),
    ] {
        std::fs::create_dir(at(to)).unwrap();
        let from = Path::new(ROOT).join("problems").join(from);
        let mut files: Vec<_> = std::fs::read_dir(from).unwrap().flatten().collect();
        files.sort_by_key(std::fs::DirEntry::file_name);
        for file in files.iter().take(3) {
            std::fs::copy(file.path(), at(to).join(file.file_name())).unwrap();
        }
    }
    folder
}

/// Commands that print tables, with all that they have to say.
const LINES: [&str; 18] = [
    "gap log --cost-ratio 0.1 --out g",
    "gap log -v --drafts 2 --temperature 1 --top-p 0.9 --draft-temperature 0.8,1.2 --out h",
    "gap log other -v --drafts 2,3 --temperature 0.7,1.0 --out i",
    "length log -v --cost-ratio 0.05 --out l",
    "length log",
    "tree log -v --budget 6 --trees 2x2,chain-2 --slot-values --price --max-depth 2 --cost-ratio 0.05 --out t",
    "paths paths -v --paths 1-3 --length 2 --out p",
    "relaxed log -v",
    "counters metrics.txt -v --cost-ratio 0.05 --out c",
    "counters metrics.txt -v",
    "audit engine.safetensors --rule token -v --exclude 0.9 --noise 0 --out a",
    "solve single more",
    "solve single more -v",
    "verify single",
    "verify single -v",
    "block blocks",
    "check --problems single --claims none",
    "check --list",
];

fn narrow(folder: &Path, line: &str) -> Run {
    let output = command(folder, line.split_whitespace())
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    Run {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The heads of the tables of a text, and its labels: what stands before a colon where a paragraph
/// begins.
fn words_of_text(text: &str, words: &mut BTreeSet<String>) {
    let mut head: Option<Vec<&str>> = None;
    for line in text.lines() {
        let inside = line.trim();
        if inside.starts_with('┌') {
            head = Some(Vec::new());
        } else if let Some(lines) = head.as_mut().filter(|_| inside.starts_with('│')) {
            lines.push(inside);
        } else if inside.starts_with('╞') {
            // Heads that were broken into lines are in the page as they are.
            if let Some([only]) = head.take().as_deref() {
                let cells = only.trim_matches('│').split("  ");
                words.extend(cells.map(|cell| cell.trim().to_owned()));
            }
        } else if let Some(label) = label(line, "  ") {
            words.insert(label);
        }
    }
}

/// The same of a page in Markdown.
fn words_of_page(text: &str, words: &mut BTreeSet<String>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        let is_rule = pair[1].starts_with('|')
            && pair[1].contains("---")
            && pair[1].chars().all(|c| "|-: ".contains(c));
        if is_rule && pair[0].starts_with('|') {
            let cells = pair[0].trim_matches('|').split(" | ");
            words.extend(cells.map(|cell| {
                cell.trim()
                    .replace('\\', "")
                    .replace("&gt;", ">")
                    .replace("&lt;", "<")
            }));
        }
        words.extend(label(pair[0], "- "));
    }
}

/// The titles of a page's sections, and of what is folded away in them.
fn titles_of_page(text: &str) -> impl Iterator<Item = &str> {
    let titles = text.lines().filter_map(|line| {
        let folded = || {
            line.strip_prefix("<details><summary>")?
                .strip_suffix("</summary>")
        };
        line.strip_prefix("## ").or_else(folded)
    });
    // What a section is for is a sentence; a number is of the page's own, and some only open a part.
    let opens = ["Show", "More in words"];
    let is_sentence = |title: &str| title.ends_with('.') || title.starts_with(char::is_numeric);
    titles.filter(move |title| !is_sentence(title) && !opens.contains(title))
}

/// The titles of all sections that pages have, as the sources name them.
fn titles_of_sources(folder: &Path, titles: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            titles_of_sources(&entry.path(), titles);
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap();
        // Heads of sections: "id | Title | Purpose".
        for literal in text.split('"').skip(1).step_by(2) {
            let mut parts = literal.split(" | ");
            let is_id = |id: &str| {
                id.chars()
                    .all(|c| c.is_ascii_lowercase() || "-{}_".contains(c))
            };
            if let (Some(id), Some(title)) = (parts.next(), parts.next())
                && !id.is_empty()
                && is_id(id)
                && title.starts_with(char::is_uppercase)
            {
                titles.insert(title.to_owned());
            }
        }
    }
}

fn label(line: &str, start: &str) -> Option<String> {
    let (label, _) = line.strip_prefix(start)?.split_once(": ")?;
    let fits = label.starts_with(char::is_uppercase)
        && label.chars().count() < 25
        && label.chars().all(|c| c.is_alphabetic() || c == ' ');
    fits.then(|| label.to_owned())
}

/// Whether a part of a head is a number, or names no thing but its value: `K = 4`, `0.8`, `< 1e-6`.
fn is_number(part: &str) -> bool {
    let number = part
        .trim_start_matches(['<', '>', ' '])
        .trim_end_matches('%');
    number.parse::<f64>().is_ok()
}

#[test]
fn tables_fit_80_columns() {
    let folder = fixtures();
    let mut tables = 0;
    for line in LINES {
        let run = narrow(folder.path(), line);
        assert_eq!(run.code, Some(0), "{line}: {} {}", run.out, run.err);
        for text in run.out.lines() {
            tables += usize::from(text.contains('┌'));
            let long = text.chars().count() > 80;
            assert!(
                !(long && text.contains(['│', '┌', '└', '╞'])),
                "{line}: {text}"
            );
        }
        // The hint at the end is wrapped like any paragraph.
        let mut end = run
            .out
            .lines()
            .skip_while(|text| !text.starts_with("  --out DIR"));
        assert!(end.all(|text| text.chars().count() <= 80), "{line}");
    }
    assert!(tables > 40, "{tables}");
}

#[test]
fn explain_knows_the_words_of_every_table_and_label() {
    let folder = fixtures();
    let mut words: BTreeMap<String, &str> = BTreeMap::new();
    let mut titles = BTreeSet::new();
    titles_of_sources(&Path::new(ROOT).join("crates/report/src"), &mut titles);
    assert!(titles.len() > 40, "{}", titles.len());
    for line in LINES {
        let run = specgap(folder.path(), line.split_whitespace());
        assert_eq!(run.code, Some(0), "{line}: {}", run.err);
        let mut found = BTreeSet::new();
        words_of_text(&run.out, &mut found);
        if let Some((_, out)) = line.split_once("--out ") {
            let page = folder.path().join(out).join("report.md");
            let page = std::fs::read_to_string(page).unwrap();
            words_of_page(&page, &mut found);
            titles.extend(titles_of_page(&page).map(str::to_owned));
        }
        for word in found {
            words.entry(word).or_insert(line);
        }
    }
    assert!(words.len() > 100, "{}", words.len());
    let list = specgap(folder.path(), ["explain", "-q"]).out;
    let plain = |word: &str| {
        let word = word
            .to_lowercase()
            .replace('α', "alpha")
            .replace('τ', "tau");
        word.replace('`', "")
    };
    let mut known: BTreeSet<String> = list.lines().map(plain).collect();
    for name in list.lines().filter_map(|word| word.split_once(' ')) {
        if ["scheme", "verifier"].contains(&name.0) {
            known.insert(name.1.to_owned());
        }
    }
    // Logs are named by their files.
    known.extend(["log", "other"].map(str::to_owned));
    let mut unknown: Vec<String> = (titles.into_iter())
        .filter(|title| !known.contains(&plain(title)))
        .collect();
    for (word, line) in &words {
        let parts = word.split(", ").flat_map(|part| part.split(" = "));
        for part in parts.filter(|part| !part.is_empty() && !is_number(part)) {
            let part = part.strip_prefix("minus ").unwrap_or(part);
            if !known.contains(&plain(part)) {
                unknown.push(format!("{part:?} of {word:?} in {line}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn styles_are_for_terminals_alone() {
    let folder = fixtures();
    let escape = '\u{1b}';
    let run = |line: &str, set: &[(&str, &str)]| {
        let mut command = command(folder.path(), line.split_whitespace());
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
            command.env_remove(name);
        }
        let output = command.envs(set.iter().copied()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let solve = "solve single -v";
    let (piped, _) = run(solve, &[]);
    assert!(!piped.contains(escape));
    let (forced, _) = run(solve, &[("CLICOLOR_FORCE", "1")]);
    assert!(forced.contains("\u{1b}[1m"), "{forced}");
    assert!(
        !run(solve, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")])
            .0
            .contains(escape)
    );
    // Own errors look as clap's do.
    let (_, own) = run("solve none.toml", &[("CLICOLOR_FORCE", "1")]);
    let (_, claps) = run("solve --none", &[("CLICOLOR_FORCE", "1")]);
    let first = |text: &str| text.split("error:").next().unwrap().to_owned();
    assert!(
        own.starts_with(escape) && first(&own) == first(&claps),
        "{own} {claps}"
    );
    let (help, _) = run("gap -h", &[("CLICOLOR_FORCE", "1")]);
    assert!(help.contains(escape));
    assert!(!run("gap -h", &[]).0.contains(escape));
    // What programs read has none.
    let (json, _) = run("solve single --format json", &[("CLICOLOR_FORCE", "1")]);
    assert!(!json.contains(escape));
}

/// As in `specgap audit LOG | head -1`: the verdict is not the reader's, and files are written.
#[test]
fn a_reader_that_leaves_takes_no_exit_code_along() {
    let folder = fixtures();
    let at = folder.path();
    let wrong = "schema = 1\nname = \"wrong\"\ntarget = [0.5, 0.5]\ndrafts = 1\n\
        [draft]\nscheme = \"with-replacement\"\nq = [0.75, 0.25]\n\
        [expected]\noptimal_acceptance_rate = \"1/2\"\n";
    std::fs::write(at.join("wrong.toml"), wrong).unwrap();
    for (line, code) in [
        (
            "audit engine.safetensors --rule token --junit a.xml --out a",
            4,
        ),
        ("audit engine.safetensors --rule token -q --markdown -", 4),
        ("solve wrong.toml --out s", 1),
        ("solve wrong.toml single -v", 1),
        ("check --problems wrong.toml --claims none --out c", 1),
        ("certify wrong.toml", 0),
        ("counters metrics.txt --cost-ratio 0.05 --out t", 0),
        ("counters metrics.txt --partial p", 0),
        ("conformance --out v --vocab 5 --verifiers token", 0),
        ("gap log --drafts 2 --temperature 1 --partial g", 0),
        ("explain token", 0),
        ("schema", 0),
        ("cite", 0),
        ("completions bash", 0),
        ("solve nowhere.toml", 2),
    ] {
        for format in ["text", "json"] {
            // Nobody ever reads what is printed, whichever stream it goes to.
            let [out, err] = [(); 2].map(|()| std::io::pipe().unwrap().1);
            let mut run = command(at, line.split(' ').chain(["--format", format]));
            let ended = run.stdout(out).stderr(err).status().unwrap();
            assert_eq!(ended.code(), Some(code), "{line} --format {format}");
        }
    }
    for file in [
        "a.xml",
        "a/report.html",
        "s/report.json",
        "c/junit.xml",
        "p",
        "v/manifest.json",
        "g",
    ] {
        assert!(at.join(file).is_file(), "{file}");
    }
}

#[test]
fn a_typo_is_told_what_was_meant() {
    let folder = fixtures();
    let at = folder.path();
    for (line, meant) in cases(
        r#"
            gap logg -> 'log'
            gap engin.safetensors -> 'engine.safetensors'
            solve singel -> 'single'
            explain acceptence -> did you mean acceptance?
            explain gap alpa* -> did you mean alpha*?
            length log --verifiers blok -> similar value exists: 'block'
            counters metrics.txt --from prometeus -> 'prometheus'
            check --claims dual-integrl -> did you mean dual-integral?
        "#,
    ) {
        let run = specgap(at, line.split_whitespace());
        run.refused(&meant);
    }
    assert!(!specgap(at, ["gap", "nothing-like-it"]).err.contains("tip:"));
}

#[test]
fn several_words_are_explained_one_after_the_other() {
    let run = specgap(Path::new(ROOT), ["explain", "draft", "law", "worth", "gap"]).ok();
    let begins = |word: &str| {
        let start = format!("  {word}: ");
        run.out.lines().position(|line| line.starts_with(&start))
    };
    let places: Vec<_> = ["draft law", "worth", "gap"]
        .into_iter()
        .map(begins)
        .collect();
    assert!(places.iter().all(Option::is_some), "{}", run.out);
    assert!(places.is_sorted(), "{}", run.out);
}

#[test]
fn a_cost_that_no_acceptance_pays_for_is_warned_of() {
    let folder = fixtures();
    let gap = |cost: &str| {
        let line = format!("gap log --drafts 2 --temperature 1 --cost-ratio {cost}");
        let run = specgap(folder.path(), line.split_whitespace()).ok();
        run.err
    };
    assert!(gap("50").contains("warning: do not draft at this cost"));
    assert!(gap("1").contains("warning:"));
    assert!(!gap("0.99").contains("warning:"));
}

#[test]
fn a_file_that_is_no_summary_is_called_what_it_is() {
    let folder = fixtures();
    let at = folder.path();
    specgap(
        at,
        "gap log --drafts 2 --temperature 1 -q --out r".split(' '),
    )
    .ok();
    std::fs::write(at.join("other.json"), "{\"a\": 1}").unwrap();
    for (file, words) in [
        (
            "r/report.json",
            ["is a report, of specgap gap", "--partial"],
        ),
        ("log/log.json", ["is the index of a log", "--partial"]),
        ("other.json", ["is no summary", "--partial"]),
    ] {
        specgap(at, ["merge", file]).refused(&words);
    }
}

#[test]
fn a_folder_of_problems_is_a_table() {
    let folder = fixtures();
    // HiGHS is one method more.
    let block = if cfg!(feature = "highs") {
        "20 ok"
    } else {
        "19 ok"
    };
    for (line, first) in [
        ("solve single", ["5/6", "0.833333"]),
        ("verify single", ["0.833333", "ok"]),
        ("block blocks", ["0.480564", block]),
    ] {
        let run = specgap(folder.path(), line.split(' ')).ok();
        let rows: Vec<&str> = (run.out.lines())
            .filter(|line| line.contains(" ok "))
            .collect();
        assert_eq!(rows.len(), 3, "{}", run.out);
        assert!(run.out.lines().count() < 12, "{}", run.out);
        assert!(
            first.iter().all(|word| rows[0].contains(word)),
            "{}",
            rows[0]
        );
    }
    // What fails is told in full.
    let file = folder.path().join("single").join("coin-one-draft.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"5/6\""));
    std::fs::write(&file, text.replace("\"5/6\"", "\"4/6\"")).unwrap();
    let run = specgap(folder.path(), ["solve", "single"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.out.contains("EXPECTATION FAILS") && run.out.contains(" FAIL "),
        "{}",
        run.out
    );
}

/// A flag means one thing in all commands: what help says of it first, and what it takes, of which a
/// list is several.
#[test]
fn a_flag_has_one_meaning() {
    // What differs, and why.
    const OTHERWISE: [(&str, &str); 1] = [(
        "out",
        "where goes what a command makes: a report, a log, certificates or vectors",
    )];
    let mut meanings: BTreeMap<String, BTreeMap<[String; 2], Vec<String>>> = BTreeMap::new();
    for command in specgap::cli::Cli::command().get_subcommands() {
        let options = command.get_arguments().filter(|one| !one.is_hide_set());
        for (option, long) in options.filter_map(|one| Some((one, one.get_long()?))) {
            let takes = option.get_action().takes_values();
            let names = option.get_value_names().filter(|_| takes);
            let value = names.map_or_else(String::new, |names| names.join(" "));
            let help = option
                .get_help()
                .map_or_else(String::new, ToString::to_string);
            let meaning = [help, value.trim_end_matches(",...").to_owned()];
            let of_flag = meanings.entry(long.to_owned()).or_default();
            let commands = of_flag.entry(meaning).or_default();
            commands.push(command.get_name().to_owned());
        }
    }
    assert!(meanings.len() > 80, "{}", meanings.len());
    let excepted = |flag: &str| OTHERWISE.iter().any(|(name, _)| *name == flag);
    let several = meanings.iter().filter(|(_, all)| all.len() > 1);
    let (excused, wrong): (Vec<_>, Vec<_>) = several.partition(|(flag, _)| excepted(flag));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(excused.len(), OTHERWISE.len());
}

/// A text without code, places of links and comments.
fn without_code(text: &str) -> String {
    let mut text = text.to_owned();
    for (open, close) in [("```", "```"), ("<!--", "-->"), ("`", "`"), ("](", ")")] {
        let mut kept = String::new();
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once(open) {
            kept = kept + before + " ";
            rest = behind.split_once(close).map_or("", |(_, rest)| rest);
        }
        text = kept + rest;
    }
    text
}

/// The README, the titles of the guide, and what commands say before their tables.
fn first_things(folder: &Path) -> Vec<String> {
    let root = Path::new(ROOT);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let guide = std::fs::read_dir(root.join("docs/guide"))
        .unwrap()
        .flatten();
    let pages = guide.filter(|one| one.path().extension().is_some_and(|end| end == "md"));
    let mut all: Vec<String> = pages
        .map(|one| read(&one.path()).lines().next().unwrap().to_owned())
        .collect();
    all.push(read(&root.join("README.md")));
    for line in [
        "gap log --cost-ratio 0.1",
        "length log --cost-ratio 0.05",
        "tree log --budget 6",
        "audit engine.safetensors --rule token",
        "counters metrics.txt --cost-ratio 0.05",
    ] {
        let run = specgap(folder, line.split(' '));
        all.push(run.out.split("\n\n").next().unwrap().to_owned());
    }
    all
}

#[test]
fn every_word_of_first_pages_is_plain_or_explained() {
    let folder = fixtures();
    let known = specgap(folder.path(), ["explain", "-q"])
        .ok()
        .out
        .to_lowercase();
    let known: BTreeSet<&str> = known.lines().collect();
    let plain: BTreeSet<&str> = include_str!("plain_words.txt").split_whitespace().collect();
    let texts = first_things(folder.path()).join("\n");
    let words_of = without_code(&texts).replace('’', "'").to_lowercase();
    let words: BTreeSet<&str> = words_of
        .split(|c: char| !(c.is_alphabetic() || "-.'_/=*0123456789".contains(c)))
        .map(|word| word.trim_matches(|c: char| !c.is_alphabetic()))
        .map(|word| word.strip_suffix("'s").unwrap_or(word))
        .filter(|word| !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || "-.'".contains(c)))
        // Files and paths.
        .filter(|word| ![".md", ".html", ".npz", ".safetensors"].iter().any(|end| word.ends_with(end)))
        .collect();
    // A note is said behind its name, and an abbreviation ends in a dot.
    let named = |word: &str| words_of.contains(&format!("! {word}: "));
    let is_known = |word: &str| known.contains(word) || known.contains(&*format!("{word}."));
    let open: Vec<&&str> = (words.iter())
        .filter(|word| !is_known(word) && !named(word))
        .collect();
    let unknown: Vec<_> = open
        .iter()
        .filter(|word| !plain.contains(***word))
        .collect();
    assert!(
        unknown.is_empty(),
        "explain them (crates/base/src/glossary.txt), or say it in plain words: {unknown:?}"
    );
    let unused: Vec<_> = plain.iter().filter(|word| !open.contains(word)).collect();
    assert!(
        unused.is_empty(),
        "tests/program/plain_words.txt: {unused:?}"
    );
}

/// Without `-v` a report on the shipped log, or on made ones, is at most 40 lines.
#[test]
fn first_screens_have_at_most_forty_lines() {
    let folder = fixtures();
    let log = Path::new(ROOT).join("models/logs/smollm2-demo");
    let log = log.to_str().unwrap();
    let lines = [
        format!("length {log}"),
        format!("length {log} --cost-ratio 0.05"),
        format!("tree {log} --budget 32"),
        format!("tree {log} --budget 16 --cost-ratio 0.1"),
        "audit engine.safetensors --rule token".to_owned(),
        "counters metrics.txt".to_owned(),
        "counters metrics.txt --cost-ratio 0.05".to_owned(),
    ];
    for line in lines {
        let run = specgap(folder.path(), line.split(' '));
        let count = run.out.lines().count();
        assert!((5..=40).contains(&count), "{line}: {count}\n{}", run.out);
    }
}
