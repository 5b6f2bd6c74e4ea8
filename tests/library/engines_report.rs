//! Are the tables of `reports/engines/report.md` those of the results beside it? The scripts of
//! `scripts/engines` write the results; with `SPECGAP_WRITE_DOCUMENTS=1` this writes the tables.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What an engine did in one mode, and what the audit says of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trial {
    engine: String,
    version: String,
    mode: String,
    settings: String,
    pair: String,
    date: String,
    prompts: usize,
    tokens: usize,
    failed: usize,
    seconds: f64,
    accepted_per_round: Option<f64>,
    surprise: f64,
    entropy: f64,
    conclusion: String,
    expected: String,
    log10_e_value: f64,
    script: String,
    /// What a hook recorded, if there is one.
    rounds: Option<Rounds>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rounds {
    rule: String,
    positions: usize,
    conclusion: String,
    log10_e_value: f64,
}

/// Ways to draft, replayed over the same texts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    date: String,
    prompts: usize,
    tokens: usize,
    ways: Vec<Way>,
    script: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    name: String,
    tree: String,
    law: String,
    verifier: String,
    /// A value and half of its interval.
    tokens_per_call: [f64; 2],
    /// What each way with strata gives more.
    changes: BTreeMap<String, [f64; 2]>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/engines")
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All trials of a pair, engine by engine.
fn trials(pair: &str) -> Vec<Trial> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder().join("results"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(pair)
        })
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|path| read::<Vec<Trial>>(path))
        .collect()
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.iter().map(|&cell| cell.to_owned()).collect());
    text.push_str(&line(head.iter().map(|_| "---".to_owned()).collect()));
    for row in rows {
        assert_eq!(row.len(), head.len());
        text.push_str(&line(row));
    }
    text
}

fn evidence(log10: f64) -> String {
    format!("1e{log10:.1}")
}

/// A line for each mode of a pair.
fn modes(pair: &str) -> String {
    let head = [
        "engine",
        "mode",
        "settings",
        "tokens",
        "requests that fail",
        "tokens/s",
        "accepted drafts a round",
        "surprise, entropy",
        "its own rounds",
        "conclusion",
        "evidence",
    ];
    table(
        &head,
        trials(pair).into_iter().map(|one| {
            assert_eq!(one.pair, pair);
            let rounds = one.rounds.map_or("–".to_owned(), |rounds| {
                let evidence = evidence(rounds.log10_e_value);
                format!(
                    "{} of {}, `{}`: {evidence}",
                    rounds.conclusion, rounds.positions, rounds.rule
                )
            });
            vec![
                format!("{} {}", one.engine, one.version),
                one.mode,
                one.settings,
                one.tokens.to_string(),
                format!("{} of {}", one.failed, one.prompts),
                format!("{:.1}", one.tokens as f64 / one.seconds),
                one.accepted_per_round
                    .map_or("–".to_owned(), |mean| format!("{mean:.2}")),
                format!("{:.2}, {:.2}", one.surprise, one.entropy),
                rounds,
                one.conclusion,
                evidence(one.log10_e_value),
            ]
        }),
    )
}

/// A line for each engine: what was found of it on any pair.
fn engines() -> String {
    let mut all: BTreeMap<String, Vec<Trial>> = BTreeMap::new();
    for one in trials("real").into_iter().chain(trials("fixture")) {
        all.entry(one.engine.clone()).or_default().push(one);
    }
    table(
        &[
            "engine",
            "last run",
            "without speculation",
            "with it",
            "command",
        ],
        all.into_iter().map(|(engine, trials)| {
            let verdicts = |plain: bool| {
                let mut by_conclusion: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
                for one in trials.iter().filter(|one| (one.mode == "plain") == plain) {
                    let modes = by_conclusion.entry(&one.conclusion).or_default();
                    if !modes.contains(&one.mode.as_str()) {
                        modes.push(&one.mode);
                    }
                }
                let said = by_conclusion.iter().rev().map(|(conclusion, modes)| {
                    let shown = match *conclusion {
                        "lossy" => "**lossy**",
                        other => other,
                    };
                    match plain {
                        true => shown.to_owned(),
                        false => format!("{shown}: {}", modes.join("; ")),
                    }
                });
                said.collect::<Vec<_>>().join(". ")
            };
            let last = trials.iter().map(|one| &one.date).max().unwrap();
            vec![
                format!("{engine} {}", trials[0].version),
                last.clone(),
                verdicts(true),
                verdicts(false),
                format!("`{}`", trials[0].script),
            ]
        }),
    )
}

/// A line for each way to draft.
fn defaults() -> String {
    let found: Defaults = read(&folder().join("results/defaults.json"));
    assert!(folder().join("../..").join(&found.script).exists());
    let both = |[value, half]: [f64; 2]| format!("{value:.3} ± {half:.3}");
    let strata: Vec<&Way> = found
        .ways
        .iter()
        .filter(|way| way.law == "stratified")
        .collect();
    let head: Vec<String> = ["drafts", "replayed as", "tokens per call"]
        .map(str::to_owned)
        .into_iter()
        .chain(
            strata
                .iter()
                .map(|way| format!("change by {} (`{}`)", way.name, way.tree)),
        )
        .collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let rows = found.ways.iter().map(|way| {
        let change = |to: &&Way| match way.changes.get(&to.name) {
            Some(&[value, half]) => format!("{value:+.3} ± {half:.3}"),
            None => "–".to_owned(),
        };
        let mut cells = vec![
            way.name.clone(),
            format!("`{}`, `{}`, `{}`", way.tree, way.law, way.verifier),
            both(way.tokens_per_call),
        ];
        cells.extend(strata.iter().map(change));
        cells
    });
    format!(
        "{}\n{} tokens of {} prompts, {}.\n",
        table(&head, rows),
        found.tokens,
        found.prompts,
        found.date
    )
}

#[test]
fn tables_are_those_of_the_results() {
    let path = folder().join("report.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let mut written = found.clone();
    for (name, inside) in [
        ("engines", engines()),
        ("real pair", modes("real")),
        ("fixture pair", modes("fixture")),
        ("defaults", defaults()),
    ] {
        let (open, close) = (
            format!("<!-- {name} -->\n"),
            format!("<!-- end of {name} -->"),
        );
        let start = written.find(&open).expect("the opening mark") + open.len();
        let end = start + written[start..].find(&close).expect("the closing mark");
        written = format!("{}\n{inside}\n{}", &written[..start], &written[end..]);
    }
    if std::env::var_os("SPECGAP_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, written).unwrap();
        return;
    }
    assert!(
        found == written,
        "{} does not say what its results say; write it by SPECGAP_WRITE_DOCUMENTS=1",
        path.display()
    );
}

/// Engines do what is expected of them, only a mode that is meant to fail fails, and every
/// engine has its control.
#[test]
fn results_are_what_scripts_expect() {
    for pair in ["real", "fixture"] {
        let trials = trials(pair);
        assert!(!trials.is_empty());
        for one in &trials {
            let got = match one.conclusion.as_str() {
                "lossy" => "lossy",
                _ if one.failed > 0 => "failing",
                other => other,
            };
            let name = format!("{} {} on the {pair} pair", one.engine, one.mode);
            assert!(
                one.expected.split(" or ").any(|expected| expected == got),
                "{name}: {got}, not {}",
                one.expected
            );
            // Evidence above 1e6 is what the conclusion rests on.
            assert_eq!(
                one.conclusion == "lossy",
                one.log10_e_value > 6.0,
                "{name}: {}",
                one.log10_e_value
            );
            let control = trials
                .iter()
                .find(|other| other.engine == one.engine && other.mode == "plain");
            let control = control.unwrap_or_else(|| panic!("{name} has no control"));
            let honest = ["as-claimed", "undecided"].contains(&control.conclusion.as_str());
            assert!(honest, "{name}: {}", control.conclusion);
            let script = folder().join("../..").join(&one.script);
            assert!(script.exists(), "{name}: {}", script.display());
        }
    }
}
