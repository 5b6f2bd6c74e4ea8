//! Parts of a measurement: however positions are dealt and in whatever order parts are
//! merged, the result is that of all at once, to the byte. And what does not belong
//! together is refused.

use crate::says::Says;
use proptest::prelude::*;
use specgap::gap::{Columns, GapError, Part, Settings, Summary, measure, summarise};
use specgap::known::Kind;
use specgap::log::{Dtype, KeptTokens, Layout, Log};
use specgap::report::CsvTable;
use std::collections::BTreeMap;
use std::path::Path;

use crate::made_log::{V, rows, write, write_at};

fn settings() -> Settings {
    Settings::new(&[0.7, 1.0], &[1, 2, 3], 3).unwrap()
}

fn part(logs: &[Log], index: usize, count: usize) -> Summary {
    summarise(logs, &settings(), Part { index, count }, None, &|_| ()).unwrap()
}

fn json(summary: &Summary) -> String {
    serde_json::to_string(&summary.report("specgap gap log")).unwrap()
}

/// Writes rows whose prompts take turns, as a batch of prompts is captured.
fn write_in_turns(path: &Path, count: usize, first: usize) {
    let layout = Layout {
        dtype: Dtype::F32,
        // Some rows a shard.
        shard_bytes: 7 * 2 * V * 4,
        ..Layout::new(V)
    };
    write_at(path, &rows(first + count)[first..], layout, |n| {
        let token = (first + n + 1) % V;
        (((n * 5) % 8) as i64, (n / 8) as i64, token as i64)
    });
}

#[test]
fn parts_in_any_order_are_the_whole_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write_in_turns(&path, 61, 0);
    let logs = [Log::open(&path).unwrap()];
    let whole = part(&logs, 1, 1);
    let report = json(&whole);
    assert_eq!(
        report,
        serde_json::to_string(&measure(&logs, &settings(), "specgap gap log", &|_| ()).unwrap())
            .unwrap()
    );
    // The strip has the texts of lowest number, in order, though they take turns.
    let strip = whole.report("").strip.unwrap();
    assert_eq!(strip.texts.len(), 6);
    assert!(!whole.report("").blocks.is_empty());
    // Rounds are replayed from whole texts, which the parts have pieces of.
    assert_eq!(whole.report("").rounds[0].texts, 8);
    for count in [2, 3, 7, 100] {
        let parts: Vec<Summary> = (1..=count).map(|index| part(&logs, index, count)).collect();
        assert_eq!(parts.iter().map(Summary::positions).sum::<usize>(), 61);
        for start in [0, count / 2] {
            let mut merged = parts[start].clone();
            // Not the first: backwards, each through its file.
            for step in 1..count {
                let other = &parts[(start + count - step) % count];
                let other = Summary::from_json(&other.to_json().unwrap()).unwrap();
                merged.merge(&other).unwrap();
            }
            assert!(merged.missing().is_empty());
            assert_eq!(json(&merged), report, "{count} parts from {start}");
            assert_eq!(merged.to_json().unwrap(), whole.to_json().unwrap());
        }
    }
    // A part alone says what is missing.
    let first = part(&logs, 1, 3);
    let missing = first.missing();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].starts_with("positions 20 to 60 of log (61 in all)"));
    assert!(first.report("").left_out.contains(&missing[0]));
}

#[test]
fn logs_of_one_pair_merge_as_they_pool() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["b", "a"].map(|name| folder.path().join(name));
    write_in_turns(&paths[0], 20, 0);
    write_in_turns(&paths[1], 17, 20);
    let logs = paths.each_ref().map(|path| Log::open(path).unwrap());
    let whole = part(&logs, 1, 1);
    // Prompts of the two logs are two, though they have one number.
    assert_eq!(whole.report("").clusters, 16);
    let [b, a] = logs;
    let other_order = part(&[a, b], 1, 1);
    assert_eq!(json(&whole), json(&other_order));
    let log = |at: usize| [Log::open(&paths[at]).unwrap()];
    let mut merged = part(&log(1), 2, 2);
    for other in [part(&log(0), 1, 1), part(&log(1), 1, 2)] {
        merged.merge(&other).unwrap();
    }
    assert_eq!(json(&merged), json(&whole));
}

#[test]
fn positions_without_prompts_are_units_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/logs");
    let path = folder.path().join("log.npz");
    std::fs::copy(fixture.join("numpy-stored.npz"), &path).unwrap();
    let logs = [Log::open(&path).unwrap()];
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let part =
        |index, count| summarise(&logs, &settings, Part { index, count }, None, &|_| ()).unwrap();
    let whole = part(1, 1);
    let mut merged = part(2, 2);
    merged.merge(&part(1, 2)).unwrap();
    assert_eq!(merged.to_json().unwrap(), whole.to_json().unwrap());
}

fn refusal(one: &Summary, other: &Summary) -> String {
    let mut merged = one.clone();
    let before = merged.to_json().unwrap();
    let error = merged.merge(other).unwrap_err();
    assert!(matches!(error, GapError::Parts(_)));
    assert_eq!(merged.to_json().unwrap(), before, "something was added");
    error.to_string()
}

#[test]
fn parts_that_do_not_belong_together_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write_in_turns(&path, 30, 0);
    let open = |name: &str| [Log::open(&folder.path().join(name)).unwrap()];
    let logs = open("log");
    let first = part(&logs, 1, 2);
    let twice = refusal(&first, &part(&logs, 1, 3));
    twice.says("positions 0 to 9 of log are in another part");

    let measured = |settings: &Settings| {
        summarise(&logs, settings, Part { index: 2, count: 2 }, None, &|_| ()).unwrap()
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Settings));
    let changes: [Change<'_>; 7] = [
        ("⟨drafts", &|s| s.drafts = vec![2]),
        ("⟨temperature", &|s| s.temperatures = vec![1.0]),
        ("⟨seed", &|s| s.seed = 4),
        ("⟨block-length", &|s| s.block_length = 4),
        ("⟨laws", &|s| s.schemes.truncate(1)),
        ("⟨verifiers", &|s| s.verifiers.truncate(2)),
        ("⟨solve-times", &|s| s.timing = true),
    ];
    for (option, change) in changes {
        let mut settings = settings();
        change(&mut settings);
        let words = refusal(&first, &measured(&settings));
        assert!(
            words.contains(option) && words.contains("same options"),
            "{words}"
        );
    }

    // A copy is known for one, and so is the log once it has grown.
    let copy = folder.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let words = refusal(&first, &part(&open("copy"), 2, 2));
    assert!(words.contains("copy is log under another name"), "{words}");
    let index = std::fs::read_to_string(copy.join("log.json")).unwrap();
    let mut index: serde_json::Value = serde_json::from_str(&index).unwrap();
    index["shards"].as_array_mut().unwrap().pop();
    std::fs::write(copy.join("log.json"), index.to_string()).unwrap();
    let words = refusal(&first, &part(&open("copy"), 2, 2));
    assert!(words.contains("copy has rows of log"), "{words}");

    // Another vocabulary, and other models.
    let cut = [Log::open_with(&path, Some(V)).unwrap()];
    let words = refusal(&first, &part(&cut, 2, 2));
    assert!(words.contains("⟨vocab"), "{words}");
    write_in_turns(&folder.path().join("other"), 30, 100);
    let rename = |name: &str| {
        let place = folder.path().join("other/log.json");
        let mut index: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&place).unwrap()).unwrap();
        index["metadata"]["target"] = serde_json::json!({ "name": name });
        std::fs::write(&place, index.to_string()).unwrap();
    };
    rename("big.onnx");
    let words = refusal(&first, &part(&open("other"), 1, 1));
    assert!(
        words.contains("big.onnx") && words.contains("one pair of models"),
        "{words}"
    );

    // Parts of one version only.
    let text = part(&logs, 2, 2).to_json().unwrap();
    let version = concat!("specgap ", env!("CARGO_PKG_VERSION"));
    let older = Summary::from_json(&text.replace(version, "specgap 0.0.9")).unwrap();
    let words = refusal(&first, &older);
    assert!(
        words.contains("specgap 0.0.9") && words.contains("one version"),
        "{words}"
    );
}

#[test]
fn a_damaged_summary_is_refused_wherever_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, &rows(10), KeptTokens::All);
    let logs = [Log::open(&path).unwrap()];
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let part = Part { index: 1, count: 2 };
    let text = summarise(&logs, &settings, part, None, &|_| ())
        .unwrap()
        .to_json()
        .unwrap();
    assert!(Summary::from_json(&text).is_ok());
    for end in (0..text.len()).step_by(97) {
        assert!(Summary::from_json(&text[..end]).is_err(), "{end}");
    }
    for (old, new, words) in [
        (
            "\"schema\":1,\"tool\"",
            "\"schema\":2,\"tool\"",
            "schema is 2",
        ),
        ("specgap summary", "specgap report", "is no whole summary"),
        ("\"measured\":[[0,4]]", "\"measured\":[[0,5]]", "clusters"),
        ("\"measured\":[[0,4]]", "\"measured\":[[4,0]]", "measured"),
        ("\"measured\":[[0,4]]", "\"measured\":[[0,40]]", "measured"),
        (
            "\"positions\":5,",
            "\"positions\":18446744073709551615,",
            "log log",
        ),
        ("\"about\":\"overlap\"", "\"about\":\"luck\"", "luck"),
        ("\"histogram\":[", "\"histogram\":[1,", "histogram"),
        ("\"bins\":[[", "\"bins\":[[1,7],[", "count"),
        ("\"sums\":[", "\"sums\":[0,", "sums"),
        // 0.2 becomes 10.2, above the highest.
        ("\"lowest\":", "\"lowest\":1", "lowest: is 1"),
        ("\"drafts\":[2]", "\"drafts\":[0]", "settings"),
        (
            "\"temperature\":1.0,\"sums\"",
            "\"temperature\":0.9,\"sums\"",
            "settings",
        ),
        ("\"kept\":null", "\"keep\":null", "keep"),
    ] {
        assert!(text.contains(old), "{old}");
        let error = Summary::from_json(&text.replacen(old, new, 1)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(words), "{new}: {error}");
    }
}

/// Where a field of the n-th tally stands: a number, or a list of them.
fn field(text: &str, tally: usize, name: &str) -> std::ops::Range<usize> {
    let (start, _) = text.match_indices("{\"about\":").nth(tally).unwrap();
    let name = format!("\"{name}\":");
    let start = start + text[start..].find(&name).unwrap() + name.len();
    let (start, end) = match text[start..].starts_with('[') {
        true => (start + 1, ']'),
        false => (start, ','),
    };
    let length = text[start..].find([end, '}']).unwrap();
    start..start + length
}

#[test]
fn a_summary_that_contradicts_itself_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let tokens = KeptTokens::Top {
        count: 4,
        rest_temperatures: vec![1.0],
    };
    write(&path, &rows(23), tokens);
    let logs = [Log::open(&path).unwrap()];
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let text = (summarise(&logs, &settings, Part::WHOLE, None, &|_| ()).unwrap())
        .to_json()
        .unwrap();
    Summary::from_json(&text).unwrap();
    let tallies = text.matches("{\"about\":").count();
    assert!(tallies > 20, "{tallies}");
    let (mut equal, mut open) = (0, 0);
    for tally in 0..tallies {
        let is = |name: &str| &text[field(&text, tally, name)];
        let refused = |name: &str, value: String, words: &str| {
            let mut changed = text.clone();
            changed.replace_range(field(&text, tally, name), &value);
            let Err(error) = Summary::from_json(&changed) else {
                panic!("{tally}, {name}: {value} is accepted");
            };
            let error = error.to_string();
            assert!(error.contains(words), "{tally}, {name}: {error}");
        };
        let sums: Vec<i128> = is("sums")
            .split(',')
            .map(|sum| sum.parse().unwrap())
            .collect();
        let list = |sums: &[i128]| {
            let sums: Vec<String> = sums.iter().map(ToString::to_string).collect();
            sums.join(",")
        };
        if sums.iter().any(|&sum| sum != 0) {
            let thousand: Vec<i128> = sums.iter().map(|sum| sum * 1000).collect();
            refused("sums", list(&thousand), "sums");
        }
        // One unit beyond what the extremes allow.
        if is("lowest") == is("highest") {
            equal += 1;
            let mut more = sums.clone();
            more[0] += 1;
            refused("sums", list(&more), "sums");
        }
        // Beyond the last bin nothing tells one number from another.
        if is("highest").parse::<f64>().unwrap() < 0.9 {
            refused("highest", "1e3".to_owned(), "");
        }
        refused("lowest", "-1e3".to_owned(), "");
        let upper: i128 = text[field(&text, tally, "lower")].parse().unwrap();
        refused("lower", (upper + (1 << 100)).to_string(), "lower, upper");
        refused("widest", "-1.0".to_owned(), "widest");
        if is("truncated") != "0" {
            open += 1;
            // What lists leave open of 23 rates.
            refused("lower", (-(24i128 << 80)).to_string(), "23 rates");
            refused("upper", (24i128 << 80).to_string(), "23 rates");
            refused("truncated", "0".to_owned(), "truncated");
        }
    }
    assert!(equal > 0 && open > 20, "{equal}, {open}");
    let name = "\"target_sum\":";
    let start = text.find(name).unwrap() + name.len();
    let error = Summary::from_json(&text.replacen(name, "\"target_sum\":9", 1)).unwrap_err();
    assert!(text[start..].starts_with(|c: char| c.is_ascii_digit()));
    assert!(error.to_string().contains("rest: the sum"), "{error}");
}

#[test]
fn parts_have_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, &rows(20), KeptTokens::All);
    let logs = [Log::open(&path).unwrap()];
    let settings = Settings::new(&[0.7, 1.0], &[2], 0).unwrap();
    let part = |index: usize| {
        let part = Part { index, count: 2 };
        let summary = summarise(&logs, &settings, part, None, &|_| ()).unwrap();
        summary.to_json().unwrap()
    };
    let (first, second) = (part(1), part(2));
    let merge = |second: &str| {
        let mut all = Summary::from_json(&first).unwrap();
        let other = Summary::from_json(second).unwrap();
        all.merge(&other).map_err(|error| error.to_string())
    };
    merge(&second).unwrap();
    let (start, _) = second.match_indices("{\"about\":").next().unwrap();
    let (end, _) = second.match_indices("{\"about\":").nth(1).unwrap();
    let error = merge(&format!("{}{}", &second[..start], &second[end..])).unwrap_err();
    assert!(error.contains("are in the other part"), "{error}");
}

/// Every number of a position by its column, from the table.
fn table(log: &Log, settings: &Settings) -> Vec<BTreeMap<String, String>> {
    let columns = Columns::new(settings);
    let mut table = CsvTable::new(Vec::new(), &columns).unwrap();
    let logs = std::slice::from_ref(log);
    summarise(logs, settings, Part::WHOLE, Some(&mut table), &|_| ()).unwrap();
    let text = String::from_utf8(table.finish().unwrap()).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines
        .map(|line| {
            let entries: Vec<&str> = line.split(',').collect();
            assert_eq!(entries.len(), names.len());
            let pairs = names.iter().zip(&entries);
            pairs
                .map(|(name, entry)| (name.to_string(), entry.to_string()))
                .collect()
        })
        .collect()
}

#[test]
fn the_table_has_every_position_and_averages_to_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, &rows(23), KeptTokens::All);
    let log = Log::open(&path).unwrap();
    let settings = settings();
    let rows = table(&log, &settings);
    assert_eq!(rows.len(), 23 * 2 * 3);
    assert_eq!(rows[0]["log"], "log");
    assert_eq!(
        (rows[7]["number"].as_str(), rows[7]["prompt_id"].as_str()),
        ("1", "0")
    );
    assert_eq!(rows[7]["token"], "2");
    // What is not measured is empty: a hub has two drafts, full rows have no rest.
    assert_eq!(rows[0]["drafts"], "1");
    assert_eq!(rows[0]["hub/spechub"], "");
    assert_ne!(rows[1]["hub/spechub"], "");
    assert_eq!(rows[0]["target_rest"], "");
    let report = measure(&[log], &settings, "", &|_| ()).unwrap();
    let number = |row: &BTreeMap<String, String>, name: &str| row[name].parse::<f64>().unwrap();
    let mut seen = 0;
    for cell in &report.cells {
        let here: Vec<_> = rows
            .iter()
            .filter(|row| {
                number(row, "temperature") == cell.temperature
                    && row["drafts"] == cell.drafts.to_string()
            })
            .collect();
        assert_eq!(here.len(), 23);
        let mean = |name: &str| here.iter().map(|row| number(row, name)).sum::<f64>() / 23.0;
        let best = mean(&format!("{}/optimum", cell.scheme));
        assert!((best - cell.optimal_acceptance_rate.estimate.mean).abs() < 1e-12);
        for verifier in &cell.verifiers {
            let name = format!("{}/{}", cell.scheme, verifier.name);
            assert!(
                (mean(&name) - verifier.acceptance.mean).abs() < 1e-12,
                "{name}"
            );
            for row in &here {
                let (lower, upper) = (format!("{name}/lower"), format!("{name}/upper"));
                assert!(number(row, &lower) <= number(row, &name));
                assert!(number(row, &name) <= number(row, &upper));
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// A log of the same rows cut to lists of the most probable tokens says of every number
/// where the full rows' is, position by position and in the mean; and never that it is
/// enclosed.
#[test]
fn lists_of_the_most_probable_tokens_hold_the_full_rows() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(60);
    let settings = settings();
    let full = folder.path().join("full");
    write(&full, &rows, KeptTokens::All);
    let full = Log::open(&full).unwrap();
    let expected = table(&full, &settings);
    let complete = measure(&[full], &settings, "", &|_| ()).unwrap();
    assert!(
        complete
            .overlap
            .iter()
            .all(|row| row.estimate.truncation.is_none())
    );
    for count in [2, 3] {
        let top = folder.path().join(format!("top-{count}"));
        let rest_temperatures = vec![0.7, 1.0];
        write(
            &top,
            &rows,
            KeptTokens::Top {
                count,
                rest_temperatures,
            },
        );
        let top = Log::open(&top).unwrap();
        // Two lists of two may have two tokens in common, which are too few for three drafts.
        let settings = match count {
            2 => Settings::new(&[0.7, 1.0], &[1, 2], 3).unwrap(),
            _ => settings.clone(),
        };
        let found = table(&top, &settings);
        let mut checked = 0;
        for row in &found {
            let same = |other: &&BTreeMap<String, String>| {
                ["number", "temperature", "drafts"]
                    .iter()
                    .all(|key| other[*key] == row[*key])
            };
            let full = expected.iter().find(same).unwrap();
            for (name, value) in full {
                let Some(lower) = row.get(&format!("{name}/lower")) else {
                    continue;
                };
                if value.is_empty() {
                    assert!(lower.is_empty());
                    continue;
                }
                let number = |text: &str| text.parse::<f64>().unwrap();
                let (lower, upper) = (number(lower), number(&row[&format!("{name}/upper")]));
                // Rows are f32, and rests were computed before.
                let room = 1e-6 + number(&full[&format!("{name}/upper")]) - number(value);
                let value = number(value);
                assert!(
                    lower - room <= value && value <= upper + room,
                    "{name}: {value} is outside [{lower}, {upper}] at {row:?}"
                );
                checked += 1;
            }
        }
        assert!(checked > 1000, "{checked}");
        let report = measure(&[top], &settings, "", &|_| ()).unwrap();
        for cell in &report.cells {
            let best = &cell.optimal_acceptance_rate;
            assert_eq!(best.kind, Kind::Truncated);
            let whole = (complete.cells.iter())
                .find(|one| {
                    (one.temperature, one.drafts, &one.scheme)
                        == (cell.temperature, cell.drafts, &cell.scheme)
                })
                .unwrap();
            let [lower, upper] = best.estimate.truncation.unwrap();
            let full = whole.optimal_acceptance_rate.estimate.mean;
            assert!(lower - 1e-6 <= full && full <= upper + 1e-6, "{cell:?}");
            for (row, full) in cell.verifiers.iter().zip(&whole.verifiers) {
                assert_eq!((row.kind, &row.name), (Kind::Truncated, &full.name));
                for (cut, full) in [
                    (row.acceptance, full.acceptance),
                    (row.gap.estimate, full.gap.estimate),
                ] {
                    let [lower, upper] = cut.truncation.unwrap();
                    let room = 1e-6 + row.width_max;
                    assert!(
                        lower - room <= full.mean && full.mean <= upper + room,
                        "{row:?}"
                    );
                }
            }
        }
        let json = serde_json::to_value(&report).unwrap();
        assert!(!json["cells"].to_string().contains("enclosed"));
        assert!(json["overlap"][0]["truncation"][1].is_f64());
    }
}

#[test]
fn rows_of_probabilities_are_no_logits() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let attempt = |name: &str, rows: &[(Vec<f32>, Vec<f32>)]| {
        let path = folder.path().join(name);
        // A writer of logs refuses such rows itself, so that they are put in afterwards.
        let honest = &self::rows(rows.len());
        write(&path, honest, KeptTokens::All);
        let shard = path.join("shard-00000.safetensors");
        let mut bytes = std::fs::read(&shard).unwrap();
        let of = |row: &[f32]| -> Vec<u8> { row.iter().flat_map(|x| x.to_le_bytes()).collect() };
        for (old, new) in honest.iter().zip(rows) {
            for (old, new) in [(of(&old.0), of(&new.0)), (of(&old.1), of(&new.1))] {
                let mut windows = bytes.windows(old.len());
                let at = windows.position(|window| window == old).unwrap();
                bytes[at..at + new.len()].copy_from_slice(&new);
            }
        }
        std::fs::write(&shard, bytes).unwrap();
        let logs = [Log::open(&path).unwrap()];
        measure(&logs, &settings, "", &|_| ()).map_err(|error| error.to_string())
    };
    let softmax = |row: &[f32]| -> Vec<f32> {
        let sum: f32 = row.iter().map(|x| x.exp()).sum();
        row.iter().map(|x| x.exp() / sum).collect()
    };
    let logits = rows(9);
    let both: Vec<_> = logits
        .iter()
        .map(|(p, q)| (softmax(p), softmax(q)))
        .collect();
    let error = attempt("both", &both).unwrap_err();
    assert!(
        error.contains("both: target_logits") && error.contains("target_probs"),
        "{error}"
    );
    let draft: Vec<_> = logits
        .iter()
        .map(|(p, q)| (p.clone(), softmax(q)))
        .collect();
    let error = attempt("draft", &draft).unwrap_err();
    assert!(
        error.contains("draft_logits") && error.contains("logarithms"),
        "{error}"
    );
    // One row of logits among them, and the log is one of logits.
    let mut mixed = both.clone();
    mixed[4] = logits[4].clone();
    assert!(attempt("mixed", &mixed).is_ok());
    // One row alone is enough in f32; equal entries are uniform either way.
    assert!(attempt("one", &both[..1]).unwrap_err().contains("row 0"));
    let even = vec![(vec![1.0 / 6.0; V], vec![1.0 / 6.0; V]); 4];
    assert!(attempt("even", &even).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Any deal of positions into parts by cutting anywhere, merged in any order.
    #[test]
    fn any_partition_merges_to_the_whole(count in 1usize..9, order in any::<u64>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        write_in_turns(&path, 25, 7);
        let logs = [Log::open(&path).unwrap()];
        let settings = Settings::new(&[1.0], &[2], 0).unwrap();
        let part = |index, count| {
            summarise(&logs, &settings, Part { index, count }, None, &|_| ()).unwrap()
        };
        let mut parts: Vec<Summary> = (1..=count).map(|index| part(index, count)).collect();
        let mut left = order;
        let mut merged: Option<Summary> = None;
        while !parts.is_empty() {
            let next = parts.swap_remove(left as usize % parts.len());
            left = left.rotate_right(7) ^ 0x9e37;
            match &mut merged {
                None => merged = Some(next),
                Some(merged) => merged.merge(&next).unwrap(),
            }
        }
        prop_assert_eq!(
            merged.unwrap().to_json().unwrap(),
            part(1, 1).to_json().unwrap()
        );
    }
}

/// What the test of the text sums up is of positions that are measured, and merges like the
/// rest.
#[test]
fn surprises_are_of_the_positions_that_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, &rows(10), KeptTokens::All);
    let logs = [Log::open(&path).unwrap()];
    let whole = part(&logs, 1, 1).to_json().unwrap();
    let at = whole.find("\"surprises\":[10,").unwrap();
    let more = format!("{}\"surprises\":[11,{}", &whole[..at], &whole[at + 16..]);
    let error = Summary::from_json(&more).unwrap_err().to_string();
    error.says("surprises: are of more than the 10 positions");
    let report = Summary::from_json(&whole).unwrap().report("");
    assert!(report.logs[0].surprise.unwrap().z.is_some());
}
