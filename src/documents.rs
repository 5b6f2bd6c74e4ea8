//! Tables in the documents are those of the crate and of its benches, and links in them
//! lead somewhere.
//!
//! What stands between two comments, `<!-- laws -->` and `<!-- end of laws -->`, is
//! generated. With `SPECGAP_WRITE_DOCUMENTS=1` in the environment the test writes it.

mod findings;
mod json;
mod options;
#[path = "../benches/results/mod.rs"]
mod results;
mod rules;
mod works;

use crate::claims::{Claim, Verdict, ledger};
use crate::distribution::Draft;
use crate::evaluate::{Limits, block, solve, verify};
use crate::once::each_once;
use crate::problem::{AnyProblem, parse_toml};
use crate::scheme::{MadeOf, SchemeName, drafted_by};
use crate::verifier::{Lossless, VerifierName};
use results::{Row, Run, Span};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A text on one line of a table, with what Markdown would read as its own made plain.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Every second piece is between two backticks, where all but a bar stays as it is.
    let pieces = line.split('`').enumerate().map(|(number, piece)| {
        let piece = piece.replace('|', "\\|");
        match number % 2 {
            0 => piece.replace('*', "\\*").replace('<', "\\<"),
            _ => piece,
        }
    });
    pieces.collect::<Vec<_>>().join("`")
}

/// The text with what stands between the marks of `name` replaced.
fn filled(text: &str, name: &str, inside: &str) -> String {
    let (open, close) = (
        format!("<!-- {name} -->"),
        format!("<!-- end of {name} -->"),
    );
    let start = text.find(&open).expect("the opening mark") + open.len();
    let end = start + text[start..].find(&close).expect("the closing mark");
    format!("{}{inside}{}", &text[..start], &text[end..])
}

fn is_as_generated(file: &str, parts: &[(&str, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let found = std::fs::read_to_string(&path).unwrap();
    let generated = parts.iter().fold(found.clone(), |text, (name, inside)| {
        filled(&text, name, inside)
    });
    if std::env::var_os("SPECGAP_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    assert!(
        found == generated,
        "{file} does not say what the crate and benches/results.json say; write it by \
         SPECGAP_WRITE_DOCUMENTS=1 cargo test --lib documents"
    );
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| format!("|{}|\n", cells.join("|"));
    let mut text = format!("\n{}", line(head.map(str::to_owned)));
    text.push_str(&line(head.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

/// Says how alpha* is found without a flow.
fn method(scheme: SchemeName) -> String {
    let law = scheme.entry();
    let fixed = match law.made_of {
        MadeOf::OneDraft(make) => {
            let draft = Draft::new(&[0.25; 4]).unwrap();
            make(draft, law.only.unwrap_or(2)).fixed_drafts().is_some()
        }
        MadeOf::EachDraft(_) => return "linear thresholds for two models, else submodular minimiser (docs/theory/laws.md)".to_owned(),
        MadeOf::Parts(_) => return "ratio scan where its parts have one score, linear thresholds where they have two (docs/theory/laws.md)".to_owned(),
        MadeOf::Tuples(_) => false,
    };
    match law.sort_theorem {
        Some(source) => format!("ratio scan ({source})"),
        None if fixed => "closed form".to_owned(),
        None => "submodular minimiser".to_owned(),
    }
}

fn laws() -> String {
    table(
        [
            "scheme",
            "law of the n drafts",
            "Q(H) = P(all drafts in H)",
            "alpha* without a flow",
        ],
        SchemeName::ALL.into_iter().map(|scheme| {
            let law = scheme.entry();
            let mut words = law.words.to_owned();
            if let Some(only) = law.only {
                words.push_str(&format!(" (n = {only})"));
            }
            let engines = drafted_by(scheme.as_str());
            if !engines.is_empty() {
                words.push_str(&format!("; drafted so by {}", engines.join(", ")));
            }
            let method = method(scheme);
            [format!("`{scheme}`"), words, law.inside.to_owned(), method]
        }),
    )
}

fn verifiers() -> String {
    table(
        ["verifier", "drafts", "rule", "acceptance"],
        VerifierName::ALL.into_iter().map(|name| {
            let drafts = match name.entry().lossless {
                Lossless::Under(schemes) => {
                    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
                    names.collect::<Vec<_>>().join(", ")
                }
                Lossless::OneDraft => "any, n = 1".to_owned(),
                Lossless::Always => "any".to_owned(),
            };
            let (rule, acceptance) = (name.words(), name.entry().acceptance);
            [
                format!("`{name}`"),
                drafts,
                rule.to_owned(),
                acceptance.to_owned(),
            ]
        }),
    )
}

/// Says how the ledger stands, in a sentence.
fn glossary() -> String {
    let words: Vec<(String, String)> = crate::glossary::of("words");
    let same = words.chunk_by(|one, other| one.1 == other.1);
    let rows = same.map(|names| {
        let (meaning, example) = names[0].1.split_once(" Example: ").unwrap();
        let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
        [
            cell(&names.join(", ")),
            cell(meaning.trim_end_matches('.')),
            cell(example),
        ]
    });
    table(["word", "meaning", "example"], rows)
}

fn claims() -> String {
    let ledger = ledger();
    let stand = |verdict| ledger.iter().filter(move |claim| claim.expected == verdict);
    let own = ledger
        .iter()
        .filter(|claim| claim.source.starts_with("ours"));
    let are = |number: usize| match number {
        1 => "1 is".to_owned(),
        number => format!("{number} are"),
    };
    let refuted = stand(Verdict::Refuted);
    let (published, others): (Vec<&Claim>, Vec<&Claim>) =
        refuted.partition(|claim| claim.is_published());
    format!(
        "The ledger has {} statements, of which {} specgap's own: {} hold, {} supported, and {} \
         refuted. Of the refuted, {} published and {} natural readings or guesses.",
        ledger.len(),
        are(own.count()),
        stand(Verdict::Holds).count(),
        are(stand(Verdict::Supported).count()),
        are(published.len() + others.len()),
        are(published.len()),
        are(others.len())
    )
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder whose names end so.
fn files_below(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, endings, found);
        } else if endings
            .iter()
            .any(|end| path.to_string_lossy().ends_with(end))
        {
            found.push(path);
        }
    }
}

/// Counts the problem files.
fn problems() -> usize {
    let mut found = Vec::new();
    files_below(&root().join("problems"), &[".toml", ".json"], &mut found);
    found.len()
}

/// Three digits of a number, two below 100; zeros at the end say nothing and are left out.
fn digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let magnitude = number.abs().log10().floor() as i32;
    let behind = if number.abs() < 100.0 { 1 } else { 2 } - magnitude;
    let text = match usize::try_from(behind) {
        Ok(behind) => format!("{number:.behind$}"),
        Err(_) => format!(
            "{:.0}",
            (number * 10f64.powi(behind)).round() * 10f64.powi(-behind)
        ),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => results::thousands(text.parse().unwrap()),
    }
}

fn span(Span(least, greatest): Span) -> String {
    let (least, greatest) = (digits(least), digits(greatest));
    match least == greatest {
        true => least,
        false => format!("{least} to {greatest}"),
    }
}

/// A bench: a row for each thing that was measured, a column for each way of specgap's and
/// each baseline, then where and when.
fn speed(run: &Run) -> String {
    let rows = each_once(run.rows.iter().map(|row| row.row.clone()));
    let ways = each_once(run.rows.iter().map(|row| row.way.clone()));
    let baselines = each_once(run.rows.iter().filter_map(|row| row.baseline.clone()));
    let line = |cells: Vec<String>| format!("|{}|\n", cells.join("|"));
    let head = [vec![String::new()], ways.clone(), baselines.clone()].concat();
    let rule = vec!["---".to_owned(); head.len()];
    let mut text = format!("\n\n{}{}", line(head), line(rule));
    for name in rows {
        let same: Vec<&Row> = run.rows.iter().filter(|row| row.row == name).collect();
        let cell = |found: Option<&&Row>, of: &dyn Fn(&Row) -> [Option<String>; 3]| {
            let parts = found.map_or([None, None, None], |row| of(row));
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        let mut cells = vec![name.clone()];
        cells.extend(ways.iter().map(|way| {
            cell(same.iter().find(|row| row.way == *way), &|row| {
                let alone = row.baseline.is_none();
                let ours = format!("{} {}", span(row.ours), row.unit);
                [Some(ours), None, row.note.clone().filter(|_| alone)]
            })
        }));
        cells.extend(baselines.iter().map(|baseline| {
            let beside = |row: &&&Row| row.baseline.as_ref() == Some(baseline);
            cell(same.iter().find(beside), &|row| {
                let theirs = row
                    .theirs
                    .map(|theirs| format!("{} {}", span(theirs), row.unit));
                let ratio = row.ratio.map(|ratio| format!("({})", span(ratio)));
                [theirs, ratio, row.note.clone()]
            })
        }));
        text.push_str(&line(cells));
    }
    let words = [
        Some(&run.machine),
        run.software.as_ref(),
        run.remark.as_ref(),
    ];
    let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
    text.push_str(&format!(
        "\nMeasured on {}: {}.\n\n",
        run.date,
        words.join("; ")
    ));
    text
}

#[test]
fn documents_say_what_the_crate_and_its_benches_say() {
    let measured = results::read().unwrap();
    assert_eq!(measured.schema, 1);
    let of = |bench: &str| match measured.benches.get(bench) {
        Some(run) => speed(run),
        None => "\n\nNot measured yet.\n\n".to_owned(),
    };
    is_as_generated(
        "README.md",
        &[
            ("finding", findings::first_lines()),
            ("demo", findings::demo()),
            ("seconds", findings::seconds()),
            ("claims", claims()),
            ("problems", problems().to_string()),
        ],
    );
    is_as_generated("docs/reference/glossary.md", &[("glossary", glossary())]);
    is_as_generated(
        "docs/reference/laws-and-verifiers.md",
        &[("laws", laws()), ("verifiers", verifiers())],
    );
    is_as_generated("docs/findings.md", &[("findings", findings::cards())]);
    is_as_generated(
        "docs/guide/better-drafts.md",
        &[("rules", rules::better()), ("seconds", findings::seconds())],
    );
    is_as_generated("docs/theory/shared-noise.md", &[("rules", rules::noise())]);
    is_as_generated("reports/rules/report.md", &[("pairs", rules::pairs())]);
    is_as_generated("docs/theory/claims.md", &[("claims", claims())]);
    is_as_generated(
        "docs/theory/exact.md",
        &[("problems", problems().to_string())],
    );
    is_as_generated(
        "docs/project/speed.md",
        &[
            ("speed of the scan", of("scan")),
            ("speed of a report", of("gap")),
            ("speed of texts", of("text")),
            ("speed of the flow", of("flow")),
        ],
    );
    // Without models, help texts of two commands say so and list no option.
    if cfg!(feature = "onnx") {
        is_as_generated(
            "docs/reference/commands.md",
            &[("options", options::options())],
        );
    }
}

#[test]
fn numbers_have_few_digits() {
    let few = [0.0003, 0.0712, 0.7, 1.0, 45.2, 132.4, 3912.0, 2_001_000.0].map(digits);
    assert_eq!(few.join(" "), "0.0003 0.071 0.7 1 45 132 3,910 2,000,000");
    assert_eq!(span(Span(0.055, 0.07)), "0.055 to 0.07");
    assert_eq!(span(Span(1.203, 1.199)), "1.2");
}

/// The anchor that a heading has on the page.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// The lines of a Markdown text that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence && !line.starts_with("    ")
    })
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

/// Finds what stands between `open` and the next `close`, each time.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open)
        .skip(1)
        .filter_map(move |rest| Some(rest.split_once(close)?.0))
}

/// Says what is wrong with a link of a document, if anything is.
fn fault(document: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let path = document.parent().unwrap().join(file);
    if !file.is_empty() && !path.exists() {
        return Some(format!("{}: no file {link}", document.display()));
    }
    let there = match file {
        "" => text.to_owned(),
        _ if heading.is_empty() => return None,
        _ => std::fs::read_to_string(path).unwrap(),
    };
    let known = heading.is_empty() || anchors(&there).contains(heading);
    (!known).then(|| format!("{}: no heading {link}", document.display()))
}

/// The documents that are written by hand, parts of them generated.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"]
        .map(|file| root().join(file))
        .to_vec();
    found.extend(["models/README.md", "reports/README.md"].map(|file| root().join(file)));
    files_below(&root().join("docs"), &[".md"], &mut found);
    found
}

/// Measurements that are described by hand, beside what commands print.
fn measurements() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files_below(&root().join("reports"), &["report.md"], &mut found);
    found.retain(|file| !file.with_file_name("report.json").exists());
    found
}

/// A text without what is generated: tables below a mark, and the lines of tables.
fn by_hand(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<!-- ") {
        kept.push_str(before);
        let name = behind.split(" -->").next().unwrap_or_default();
        let close = format!("<!-- end of {name} -->");
        rest = behind.split_once(&close).map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// The first page is short, the changelog is a page, and all of it can be read.
#[test]
fn documents_are_short_and_every_one_is_in_the_index() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    for (file, most) in [("README.md", 120), ("CHANGELOG.md", 60)] {
        let lines = read(file).lines().count();
        assert!(lines <= most, "{file} has {lines} lines");
    }
    let (proofs, others): (Vec<PathBuf>, Vec<PathBuf>) = documents()
        .into_iter()
        .partition(|file| file.starts_with(root().join("docs/theory")));
    for (what, files, most) in [("theory", proofs, 32_200), ("all else", others, 31_500)] {
        let words: usize = files
            .iter()
            .map(|file| by_hand(&std::fs::read_to_string(file).unwrap()))
            .map(|text| text.split_whitespace().count())
            .sum();
        assert!(words <= most, "{what}: {words} words");
    }
    let (index, contents) = (read("docs/README.md"), read("docs/SUMMARY.md"));
    let mut found = Vec::new();
    files_below(&root().join("docs"), &[".md"], &mut found);
    for document in found {
        let name = document.strip_prefix(root().join("docs")).unwrap();
        let name = name.to_str().unwrap().replace('\\', "/");
        let link = format!("]({name})");
        let of_itself = ["README.md", "SUMMARY.md"].contains(&name.as_str());
        assert!(of_itself || index.contains(&link), "docs/README.md: {name}");
        assert!(
            name == "SUMMARY.md" || contents.contains(&link),
            "docs/SUMMARY.md: {name}"
        );
    }
    assert_eq!(by_hand("a <!-- x -->b<!-- end of x --> c"), "a  c");
}

#[test]
fn links_of_the_documents_lead_to_a_file_and_a_heading() {
    let mut faults = Vec::new();
    let mut links = 0;
    for document in documents().into_iter().chain(measurements()) {
        let text = std::fs::read_to_string(&document).unwrap();
        for line in prose(&text) {
            for link in between(line, "](", ')') {
                links += 1;
                faults.extend(fault(&document, &text, link));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(links > 20, "{links}");
    let readme = root().join("README.md");
    let text = "# Draft laws\n[x](#draft-laws)";
    assert_eq!(fault(&readme, text, "#draft-laws"), None);
    assert_eq!(
        fault(&readme, text, "docs/reference/log-format.md#tensors"),
        None
    );
    assert!(fault(&readme, text, "#speed").is_some());
    assert!(fault(&readme, text, "docs/none").is_some());
    assert!(fault(&readme, text, "docs/reference/log-format.md#none").is_some());
}

/// Documents name files of the repository, and sources name documents.
#[test]
fn files_that_documents_and_sources_name_exist() {
    const FOLDERS: &str =
        "src/ crates/ docs/ tests/ benches/ scripts/ problems/ examples/ reports/";
    let is_path = |name: &str| {
        FOLDERS.split(' ').any(|folder| name.starts_with(folder))
            && !name.contains(|letter: char| " <*{".contains(letter))
    };
    let mut named: Vec<(PathBuf, String)> = Vec::new();
    for document in documents() {
        // Paths in models/README.md are from its own folder.
        if document.ends_with("models/README.md") {
            continue;
        }
        let text = std::fs::read_to_string(&document).unwrap();
        for line in prose(&text) {
            // Every second piece is between two backticks.
            let quoted = line.split('`').skip(1).step_by(2);
            let paths = quoted.filter(|name| is_path(name)).map(str::to_owned);
            named.extend(paths.map(|path| (document.clone(), path)));
        }
    }
    let mut sources = Vec::new();
    files_below(&root().join("src"), &[".rs"], &mut sources);
    files_below(&root().join("crates"), &[".rs"], &mut sources);
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        let name = |rest: &str| Some(format!("docs/{}.md", rest.split_once(".md")?.0));
        let is_name = |path: &String| !path.contains(|letter: char| " \n\"{".contains(letter));
        let paths = text.split("docs/").skip(1).filter_map(name).filter(is_name);
        named.extend(paths.map(|path| (source.clone(), path)));
    }
    let gone = |(_, path): &&(PathBuf, String)| !root().join(path).exists();
    let faults: Vec<String> = (named.iter().filter(gone))
        .map(|(place, path)| format!("{}: no file {path}", place.display()))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(named.len() > 30, "{}", named.len());
}

/// Tells whether the crate has what a path such as `row::Row` or `LevelPlan::law` names: the
/// files of its modules, and its other names somewhere in them.
fn is_in_the_crate(path: &str) -> bool {
    let mut names = path.split("::").peekable();
    let room = names.peek().copied().unwrap_or("");
    let members = std::fs::read_dir(root().join("crates")).unwrap();
    // `report` is one room, with a part of the name of each other.
    let members = members.map(|member| member.unwrap().path().join("src"));
    let mut members = members.filter(|source| !source.ends_with("report/src"));
    let has = |source: &PathBuf| {
        source.join(room).is_dir() || source.join(format!("{room}.rs")).is_file()
    };
    let mut place = members.find(has).unwrap_or_else(|| {
        let own = root().join("src");
        if has(&own) { own } else { PathBuf::new() }
    });
    while let Some(name) = names.peek() {
        let (folder, file) = (place.join(name), place.join(format!("{name}.rs")));
        place = match (folder.is_dir(), file.is_file()) {
            (true, _) => folder,
            (false, true) => file,
            (false, false) => break,
        };
        names.next();
    }
    let mut files = vec![place.clone()];
    if place.as_os_str().is_empty() {
        files.clear();
        files_below(&root().join("src"), &[".rs"], &mut files);
        files_below(&root().join("crates"), &[".rs"], &mut files);
    } else if place.is_dir() {
        files.clear();
        files_below(&place, &[".rs"], &mut files);
    }
    // The names that the tests here make up are in this file.
    files.retain(|file| !file.ends_with("src/documents.rs"));
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap());
    let text = texts.collect::<Vec<_>>().join("\n");
    let of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    names.all(|name| {
        text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            !before.ends_with(of_a_name) && !after.starts_with(of_a_name)
        })
    })
}

#[test]
fn items_that_documents_name_exist() {
    let is_path = |quoted: &&str| {
        let letters = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        quoted.contains("::") && quoted.chars().all(letters)
    };
    let mut named = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for line in prose(&text) {
            for path in line.split('`').skip(1).step_by(2).filter(is_path) {
                named += 1;
                assert!(is_in_the_crate(path), "{}: no {path}", document.display());
            }
        }
    }
    assert!(named > 5, "{named}");
    for gone in ["row::Rowing", "rowing::Row", "scheme::LevelPlan"] {
        assert!(!is_in_the_crate(gone), "{gone}");
    }
}

/// Keys of all objects of a JSON value, but of those whose keys are free.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    const FREE: [&str; 3] = ["definitions", "quantiles", "metadata"];
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                if !FREE.contains(&key.as_str()) {
                    keys(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn the_reference_names_every_field_of_json() {
    let text = json::tables(json::PRINTED);
    let known: BTreeSet<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(|quoted| quoted.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
        .collect();
    let report = root().join("reports/demo/report.json");
    let mut printed = vec![std::fs::read_to_string(report).unwrap()];
    let mut found = BTreeSet::new();
    for file in [
        "without-replacement/two-laws-sequential.toml",
        "golden-blocks/block-v2-l2-k2-4.toml",
    ] {
        let text = std::fs::read_to_string(root().join("problems").join(file)).unwrap();
        match parse_toml(&text).unwrap() {
            AnyProblem::Single(problem) => {
                let solution = solve(&problem, &Limits::default());
                printed.push(serde_json::to_string(&solution).unwrap());
                printed.push(serde_json::to_string(&verify(&problem)).unwrap());
            }
            AnyProblem::Block(problem) => {
                let evaluation = block(&problem, problem.drafts());
                printed.push(serde_json::to_string(&evaluation).unwrap());
            }
        }
    }
    for line in printed {
        keys(&serde_json::from_str(&line).unwrap(), &mut found);
    }
    let missing: Vec<&String> = (found.iter())
        .filter(|key| !known.contains(key.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "not in the reference of JSON: {missing:?}"
    );
    assert!(found.len() > 60, "{}", found.len());
}
