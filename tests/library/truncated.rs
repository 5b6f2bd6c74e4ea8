//! Logs that list some tokens only: what of the full rows' numbers is left open, and what is
//! refused.

use specgap::distribution::Softmax;
use specgap::gap::{GapReport, Settings, measure};
use specgap::known::Kind;
use specgap::log::{KeptTokens, Log, Row};
use specgap::replay;
use specgap::rule::RuleName;
use specgap::sampling::Cuts;
use specgap::scheme::SchemeName;
use specgap::statistics::Estimate;
use specgap::tree::DraftTree;
use specgap::verifier::VerifierName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::log::safetensors;
use crate::made_log::{rows, write};

/// The example that cuts a log to lists and puts the reports beside each other.
#[allow(dead_code)]
#[path = "../../benches/list_lengths.rs"]
mod list_lengths;

/// Lists of one position: ids and entries of the target and of the draft.
type Lists = [(Vec<i64>, Vec<f64>); 2];

/// Writes lists as a log, of its own for each model or of tokens that both score.
fn write_lists(path: &Path, kind: &str, positions: &[Lists], metadata: serde_json::Value) {
    let own = positions.iter().any(|[target, draft]| target.0 != draft.0);
    let mut tensors: Vec<(String, &str, Vec<usize>, Vec<u8>)> = Vec::new();
    for (model, name) in ["target", "draft"].into_iter().enumerate() {
        let lists = || positions.iter().map(|lists| &lists[model]);
        let width = lists().map(|list| list.0.len()).max().unwrap_or(0);
        let shape = vec![positions.len(), width];
        let ids = lists().flat_map(|(ids, _)| {
            let unused = std::iter::repeat_n(-1, width - ids.len());
            ids.iter().copied().chain(unused)
        });
        let ids: Vec<u8> = ids.flat_map(i64::to_le_bytes).collect();
        let entries = lists().flat_map(|(_, entries)| {
            let unused = std::iter::repeat_n(0.0, width - entries.len());
            entries.iter().copied().chain(unused)
        });
        let entries = entries.flat_map(f64::to_le_bytes).collect();
        tensors.push((format!("{name}_{kind}"), "F64", shape.clone(), entries));
        if own {
            tensors.push((format!("{name}_token_ids"), "I64", shape, ids));
        } else if model == 0 {
            tensors.push(("token_ids".to_owned(), "I64", shape, ids));
        }
    }
    let prompts = (0..positions.len() as i64).flat_map(|at| (at / 5).to_le_bytes());
    let shape = vec![positions.len()];
    tensors.push(("prompt_id".to_owned(), "I64", shape, prompts.collect()));
    let tensors: Vec<(&str, &str, &[usize], Vec<u8>)> = tensors
        .iter()
        .map(|(name, kind, shape, bytes)| (name.as_str(), *kind, shape.as_slice(), bytes.clone()))
        .collect();
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("rows.safetensors"), safetensors(&tensors)).unwrap();
    let index = serde_json::json!({
        "schema": 1,
        "metadata": metadata,
        "shards": [{"file": "rows.safetensors", "positions": positions.len()}],
    });
    std::fs::write(path.join("log.json"), index.to_string()).unwrap();
}

/// The ids of the k largest entries.
fn top(row: &[f64], k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    order.truncate(k);
    order
}

/// The k most probable tokens of each row, as it would be logged: a list for each model, or
/// the tokens of both lists scored by both.
fn cut(target: &[f64], draft: &[f64], ids: &[i64], k: usize, union: bool) -> Lists {
    let mut lists = [top(target, k), top(draft, k)];
    if union {
        let [of_target, of_draft] = &mut lists;
        of_target.extend(
            of_draft
                .iter()
                .filter(|i| !of_target.contains(i))
                .copied()
                .collect::<Vec<_>>(),
        );
        *of_draft = of_target.clone();
    }
    let [of_target, of_draft] = lists;
    [(of_target, target), (of_draft, draft)].map(|(list, row)| {
        let entries = list.iter().map(|&i| row[i].ln()).collect();
        (list.iter().map(|&i| ids[i]).collect(), entries)
    })
}

fn report_at(path: &Path, settings: &Settings) -> GapReport {
    let logs = [Log::open(path).unwrap()];
    measure(&logs, settings, "", &|_| ()).unwrap()
}

fn refusal(path: &Path) -> String {
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let log = match Log::open(path) {
        Ok(log) => log,
        Err(error) => return error.to_string(),
    };
    match measure(&[log], &settings, "", &|_| ()) {
        Ok(_) => panic!("{} was measured", path.display()),
        Err(error) => error.to_string(),
    }
}

/// Every rate of a report by its name.
fn rates(report: &GapReport) -> BTreeMap<String, (Estimate, Kind)> {
    let mut rates = BTreeMap::new();
    for row in &report.overlap {
        rates.insert(
            format!("overlap {}", row.temperature),
            (row.estimate, row.kind),
        );
    }
    for cell in &report.cells {
        let name = format!("{} {} {}", cell.temperature, cell.drafts, cell.scheme);
        let best = &cell.optimal_acceptance_rate;
        rates.insert(name.clone(), (best.estimate, best.kind));
        for row in &cell.verifiers {
            rates.insert(format!("{name} {}", row.name), (row.acceptance, row.kind));
            rates.insert(
                format!("{name} {} gap", row.name),
                (row.gap.estimate, row.kind),
            );
        }
    }
    rates
}

/// Full rows of a small vocabulary, cut to lists of log-probabilities: every number of the
/// full rows is between the bounds, at the temperature of the lists and at others.
#[test]
fn lists_of_log_probabilities_hold_the_full_rows() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(40);
    let full = folder.path().join("full");
    write(&full, &rows, KeptTokens::All);
    let asked = |temperatures: &[f64]| {
        let mut settings = Settings::new(temperatures, &[1, 2, 3], 3).unwrap();
        let of_noise = [VerifierName::SHARED_GUMBEL, VerifierName::GLS];
        settings.verifiers.extend(of_noise);
        settings
    };
    let settings = asked(&[0.7, 1.0, 1.5]);
    let expected = rates(&report_at(&full, &settings));
    // The same as served: what a cut leaves, and greedy decoding.
    let served = |top_k: Option<usize>, top_p: Option<f64>, min_p: Option<f64>| {
        let settings = asked(&[0.0, 0.7, 1.0, 1.5]);
        let cuts = Cuts {
            top_k,
            top_p,
            min_p,
            cut_order: None,
        };
        let settings = settings.served(cuts).unwrap();
        let expected = rates(&report_at(&full, &settings));
        (settings, expected)
    };
    let served = [
        served(Some(2), None, None),
        served(Some(3), Some(0.8), None),
        served(None, Some(0.5), None),
        served(None, Some(0.9), None),
        served(None, Some(0.99), Some(0.05)),
        served(None, None, Some(0.2)),
    ];
    let (mut told, mut open) = (0, 0);
    let ids: Vec<i64> = (0..rows[0].0.len() as i64).collect();
    let law = |row: &[f32]| {
        let mut out = Vec::new();
        Softmax::default().fill(row, &mut out).unwrap();
        out
    };
    let mut widths = BTreeMap::new();
    for (k, union) in [(3, false), (3, true), (4, false), (4, true)] {
        let positions: Vec<Lists> = rows
            .iter()
            .map(|(target, draft)| cut(&law(target), &law(draft), &ids, k, union))
            .collect();
        let path = folder.path().join(format!("{k}-{union}"));
        let metadata = serde_json::json!({"vocabulary": ids.len(), "top": k});
        write_lists(&path, "logprobs", &positions, metadata);
        assert_eq!(Log::open(&path).unwrap().has_own_lists(), !union);
        let found = rates(&report_at(&path, &settings));
        assert_eq!(
            expected.keys().collect::<Vec<_>>(),
            found.keys().collect::<Vec<_>>()
        );
        for (name, (full, _)) in &expected {
            let (part, kind) = &found[name];
            assert_eq!(*kind, Kind::Truncated);
            let [lower, upper] = part.truncation.unwrap();
            assert!(
                lower - 1e-6 <= full.mean && full.mean <= upper + 1e-6,
                "{k} {union} {name}: {} is outside [{lower}, {upper}]",
                full.mean
            );
            assert!(lower <= part.mean && part.mean <= upper);
            *widths.entry((k, union)).or_insert(0.0) += upper - lower;
        }
        for (settings, expected) in &served {
            let found = rates(&report_at(&path, settings));
            assert_eq!(
                expected.keys().collect::<Vec<_>>(),
                found.keys().collect::<Vec<_>>()
            );
            for (name, (full, kind)) in expected {
                let (part, _) = &found[name];
                let [lower, upper] = part.truncation.unwrap_or([part.mean; 2]);
                let room = 1e-6 + 5e-2 * f64::from(*kind == Kind::MonteCarlo);
                assert!(
                    lower - room <= full.mean && full.mean <= upper + room,
                    "{k} {union} {name} {:?}: {} is outside [{lower}, {upper}]",
                    settings.cuts,
                    full.mean
                );
                let is_told = upper - lower < 1e-9;
                // Every row is whole where the last token that is kept is listed.
                assert!(
                    is_told || !name.starts_with("0 ") && settings.cuts.top_k.is_none(),
                    "{k} {union} {name} {:?}: [{lower}, {upper}]",
                    settings.cuts
                );
                told += usize::from(is_told);
                open += usize::from(!is_told);
            }
        }
        // What the two most probable tokens accept is known where both rows list them.
        if union {
            let (best, _) = found["1 2 top"];
            let [lower, upper] = best.truncation.unwrap();
            assert!(upper - lower < 1e-9, "{best:?}");
        }
    }
    assert!(told > 1_000 && open > 200, "{told} {open}");
    assert!(widths[&(3, true)] < widths[&(3, false)]);
    assert!(widths[&(4, true)] < widths[&(3, true)]);
}

/// The example's table: reports of one log's lists beside that of the log, the numbers of which
/// lie within the bounds of each.
#[test]
fn reports_of_cut_logs_stand_beside_that_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full");
    write(&full, &rows(30), KeptTokens::All);
    let log = Log::open(&full).unwrap();
    let made = list_lengths::cut(&log, folder.path(), &[3, 4]).unwrap();
    let names: Vec<_> = made.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["top-3", "top-3-union", "top-4", "top-4-union"]);
    assert!(Log::open(&made[0]).unwrap().has_own_lists());
    assert!(!Log::open(&made[1]).unwrap().has_own_lists());
    let settings = Settings::new(&[1.0], &[1, 2], 3).unwrap();
    let paths = [&full, &made[3], &made[0]];
    let reports = paths.map(|path| report_at(path, &settings));
    let table = list_lengths::table(&reports);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0],
        "| T | drafts | number | full rows (6) | 4, both score both | 3, each its own |"
    );
    let number = |text: &str| -> f64 { text.trim().parse().unwrap() };
    let (mut seen, mut open) = (0, 0);
    for line in lines[2..].iter().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let (mean, _) = cells[3].split_once(" ± ").unwrap();
        let mut widths = Vec::new();
        for cell in &cells[4..] {
            let (low, rest) = cell.split_once(" to ").unwrap();
            let (high, _) = rest.split_once(" (").unwrap();
            assert!(number(low) - 1e-3 <= number(mean), "{line}");
            assert!(number(mean) <= number(high) + 1e-3, "{line}");
            widths.push(number(high) - number(low));
        }
        open += usize::from(widths[0] + 0.1 < widths[1]);
        seen += 1;
    }
    assert!(seen > 15 && open > 5, "{table}");
    for words in [
        "**full rows (6).**",
        "Nothing is left open by the rows.",
        "**3, each its own.** At T = 1 the better single draft",
        "The lists are too short for temperature 1.0",
        "pairs of draft laws apart with 2 drafts",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    // What a log does not have cannot be cut from it, and nothing is written over.
    let message = |log: &Log, out: &str, length: usize| {
        let made = list_lengths::cut(log, &folder.path().join(out), &[length]);
        made.unwrap_err().to_string()
    };
    assert!(message(&log, "longer", 7).contains("7 tokens"));
    assert!(!folder.path().join("longer").exists());
    assert!(message(&log, "", 3).contains("top-3"));
    let own = Log::open(&made[0]).unwrap();
    assert!(message(&own, "own", 2).contains("have to be full"));
}

/// Without a mass of the others, lists are never made laws of their own, unless the log says
/// that nothing else is drawn.
#[test]
fn lists_are_renormalised_only_where_the_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let lists = |scale: f64| -> Vec<Lists> {
        let entries = |row: &[f64]| row.iter().map(|x| (scale * x).ln()).collect::<Vec<_>>();
        let ids = vec![3, 1, 4];
        vec![[
            (ids.clone(), entries(&[0.5, 0.25, 0.25])),
            (ids, entries(&[0.25, 0.25, 0.5])),
        ]]
    };
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let plain = serde_json::json!({"vocabulary": 9});
    let never = serde_json::json!({"vocabulary": 9, "unlisted": "never-drawn"});
    write_lists(&path("logits"), "logits", &lists(1.0), plain.clone());
    let error = refusal(&path("logits"));
    for part in [
        "target_logits",
        "target_logprobs",
        "target_rest",
        "never-drawn",
    ] {
        assert!(error.contains(part), "{error}");
    }
    write_lists(&path("never"), "logits", &lists(1.0), never.clone());
    let settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let never_drawn = report_at(&path("never"), &settings);
    assert_eq!(never_drawn.overlap[0].kind, Kind::Enclosed);
    assert!((never_drawn.overlap[0].estimate.mean - 0.75).abs() < 1e-12);
    // 0.4 of either row is not listed, or the listed tokens are all that there is.
    write_lists(&path("logprobs"), "logprobs", &lists(0.6), plain);
    let open = report_at(&path("logprobs"), &settings);
    let [lower, upper] = open.overlap[0].estimate.truncation.unwrap();
    assert!((lower - 0.45).abs() < 1e-9 && (upper - 0.85).abs() < 1e-9);
    write_lists(&path("cut"), "logprobs", &lists(0.6), never);
    let cut = report_at(&path("cut"), &settings);
    assert!((cut.overlap[0].estimate.mean - 0.75).abs() < 1e-12);
    let wrong = serde_json::json!({"vocabulary": 9, "unlisted": "rare"});
    write_lists(&path("wrong"), "logprobs", &lists(0.6), wrong);
    assert!(refusal(&path("wrong")).contains("never-drawn"));
}

/// Lists of their own have ids each, which go with their rows.
#[test]
fn ids_of_lists_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let floats = |row: &[f64]| {
        row.iter()
            .flat_map(|x| x.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let ids = |row: &[i64]| {
        row.iter()
            .flat_map(|x| x.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let rows = [
        ("target_probs", "F64", &[1, 2][..], floats(&[0.5, 0.25])),
        (
            "draft_probs",
            "F64",
            &[1, 3][..],
            floats(&[0.5, 0.25, 0.125]),
        ),
    ];
    let refused = |tensors: &[(&str, &str, &[usize], Vec<u8>)], parts: &[&str]| {
        let mut all = rows.to_vec();
        all.extend(tensors.iter().cloned());
        std::fs::write(&path, safetensors(&all)).unwrap();
        let error = refusal(&path);
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    };
    let target = ("target_token_ids", "I64", &[1, 2][..], ids(&[0, 1]));
    let draft = ("draft_token_ids", "I64", &[1, 3][..], ids(&[2, 1, 0]));
    refused(
        std::slice::from_ref(&target),
        &["draft_token_ids", "missing"],
    );
    refused(
        std::slice::from_ref(&draft),
        &["target_token_ids", "missing"],
    );
    let short = ("draft_token_ids", "I64", &[1, 2][..], ids(&[2, 1]));
    refused(
        &[target.clone(), short],
        &["draft_probs", "3 columns", "draft_token_ids has 2"],
    );
    let both = ("token_ids", "I64", &[1, 2][..], ids(&[0, 1]));
    refused(
        &[target.clone(), draft.clone(), both],
        &["target_token_ids", "keep one"],
    );
    // The metadata does not say V.
    refused(&[target, draft], &["vocabulary"]);
}

/// What lists leave open on the shipped log: the table of docs/guide/engines.md, which lists
/// of the same rows make, cut to fewer tokens. Longer lists leave less open, and their bounds
/// lie within those of shorter ones.
#[test]
fn the_shipped_log_cut_to_lists_makes_the_table_of_the_documentation() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shipped = root.join("models/logs/smollm2-demo");
    let log = Log::open(&shipped).unwrap();
    let column = log
        .metadata()
        .rest_temperatures
        .iter()
        .position(|&t| t == 1.0)
        .unwrap();
    let mut row = Row::default();
    let mut rows = Vec::new();
    for number in 0..log.positions() {
        log.read(number, &mut row).unwrap();
        let law = |logits: &[f64], rest: f64| {
            let mut out = Vec::new();
            Softmax::default().fill(logits, &mut out).unwrap();
            out.iter_mut().for_each(|x| *x *= 1.0 - rest);
            out
        };
        let target = law(&row.target, row.target_rest[column]);
        let draft = law(&row.draft, row.draft_rest[column]);
        let ids: Vec<i64> = row.token_ids.iter().map(|&id| i64::from(id)).collect();
        rows.push((target, draft, ids));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut colder = Settings::new(&[0.7], &[1], 0).unwrap();
    colder.schemes = vec![SchemeName::TOP];
    colder.verifiers.clear();
    let mut settings = Settings::new(&[1.0], &[4], 0).unwrap();
    // Sequential draws take most of the time.
    settings.schemes = vec![
        SchemeName::WITH_REPLACEMENT,
        SchemeName::GREEDY,
        SchemeName::TOP,
    ];
    settings
        .verifiers
        .retain(|name| ["rrs", "k-seq"].contains(&name.as_str()));
    let columns = [
        "overlap 0.7",
        "overlap 1",
        "1 4 with-replacement",
        "1 4 greedy",
        "1 4 top",
        "1 4 with-replacement rrs",
    ];
    let mut table = String::from(
        "| lists | single draft, T = 0.7 | single draft | i.i.d. α* | greedy α* | top α* | rrs |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut found = BTreeMap::new();
    let mut line = |name: &str, path: &Path| {
        let mut all = rates(&report_at(path, &settings));
        all.extend(rates(&report_at(path, &colder)));
        let bounds = columns.map(|column| all[column].0.truncation.unwrap());
        let cells = bounds.map(|[low, high]| {
            let text = format!("{low:.3} to {high:.3} ({:.3})", high - low);
            text.replace("0.", ".")
        });
        table += &format!("| {name} | {} |\n", cells.join(" | "));
        found.insert(name.to_owned(), bounds);
    };
    for (k, union) in [
        (20, false),
        (20, true),
        (64, true),
        (256, false),
        (256, true),
    ] {
        let positions: Vec<Lists> = rows
            .iter()
            .map(|(target, draft, ids)| cut(target, draft, ids, k, union))
            .collect();
        let name = format!(
            "{k}, {}",
            if union {
                "both score both"
            } else {
                "each its own"
            }
        );
        let path = folder.path().join(&name);
        let metadata = serde_json::json!({"vocabulary": log.vocabulary(), "top": k});
        write_lists(&path, "logprobs", &positions, metadata);
        line(&name, &path);
    }
    line("1,024, both score both, as shipped", &shipped);
    for (longer, shorter) in [
        ("20, both score both", "20, each its own"),
        ("64, both score both", "20, both score both"),
        ("256, each its own", "20, each its own"),
        ("256, both score both", "64, both score both"),
        ("1,024, both score both, as shipped", "256, both score both"),
    ] {
        for (at, name) in columns
            .iter()
            .enumerate()
            .filter(|(at, _)| ![3, 5].contains(at))
        {
            let ([low, high], [least, most]) = (found[longer][at], found[shorter][at]);
            assert!(
                least <= low + 1e-3 && high <= most + 1e-3,
                "{name}: {longer} [{low}, {high}], {shorter} [{least}, {most}]"
            );
        }
    }
    // Short lists are called so, with what to ask for; long ones are not.
    let lead = |name: &str| {
        let report = report_at(&folder.path().join(name), &settings);
        specgap::report::gap::page(&report).markdown()
    };
    let short = lead("20, each its own");
    for part in [
        "too short for temperature 1.0",
        "log the 256 most probable",
        "tokens of both lists",
    ] {
        assert!(short.contains(part), "{part}");
    }
    assert!(!lead("256, both score both").contains("too short"));
    let docs = std::fs::read_to_string(root.join("docs/guide/engines.md")).unwrap();
    let marked = docs.split("<!-- widths -->\n").nth(1).unwrap_or_default();
    assert_eq!(
        marked.split("<!-- end of widths -->").next(),
        Some(&*table),
        "\n{table}"
    );
}

/// A list that ends within a tie of the heaviest tokens does not say which of them is drafted,
/// and nor do bounds along a text.
#[test]
fn trees_of_the_heaviest_tokens_leave_ties_at_the_end_of_a_list_open() {
    let folder = tempfile::tempdir().unwrap();
    let measured = |name: &str, ids: &[i64], target: &[f64], draft: &[f64]| {
        let path = folder.path().join(name);
        let ids: Vec<u8> = ids
            .repeat(2)
            .iter()
            .flat_map(|id| id.to_le_bytes())
            .collect();
        let probs = |row: &[f64]| -> Vec<u8> {
            let rows = row.repeat(2);
            rows.iter().flat_map(|p| p.to_le_bytes()).collect()
        };
        let integers =
            |of: [i64; 2]| -> Vec<u8> { of.iter().flat_map(|x| x.to_le_bytes()).collect() };
        let (shape, one) = ([2, target.len()], [2]);
        let tensors: [(&str, &str, &[usize], Vec<u8>); 6] = [
            ("target_probs", "F64", &shape, probs(target)),
            ("draft_probs", "F64", &shape, probs(draft)),
            ("token_ids", "I64", &shape, ids),
            ("prompt_id", "I64", &one, integers([0, 0])),
            ("position", "I64", &one, integers([0, 1])),
            ("token", "I64", &one, integers([3, 3])),
        ];
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("rows.safetensors"), safetensors(&tensors)).unwrap();
        let index = serde_json::json!({
            "schema": 1,
            "metadata": {"vocabulary": 5, "top": 1, "sampling": {"temperature": 1.0}},
            "shards": [{"file": "rows.safetensors", "positions": 2}],
        });
        std::fs::write(path.join("log.json"), index.to_string()).unwrap();
        let settings = replay::TreeSettings {
            trees: vec![replay::NamedTree {
                name: "chain-1".to_owned(),
                tree: DraftTree::named("chain-1").unwrap(),
            }],
            schemes: vec![SchemeName::TOP],
            verifiers: vec![RuleName::EXACT_MATCH],
            limits: replay::Limits {
                budget: 2,
                depth: 1,
                branch: 1,
            },
            timings: None,
            temperature: None,
            slot_values: false,
            price: false,
            engine: None,
            seed: 1,
            parts: replay::Parts::Whole,
        };
        let logs = [Log::open(&path).unwrap()];
        let report = replay::measure_trees(&logs, &settings, "", &|_| ()).unwrap();
        report.results[0].tokens_per_call
    };
    // Tokens 1 and 3 tie, and 1 is drafted. The list has 3, which is the only one that is promised.
    let (p, q) = (
        [0.25, 0.125, 0.125, 0.25, 0.25],
        [0.125, 0.375, 0.0625, 0.375, 0.0625],
    );
    let full = measured("full", &[0, 1, 2, 3, 4], &p, &q);
    let of = |row: &[f64; 5]| [row[3], row[0]];
    let cut = measured("cut", &[3, 0], &of(&p), &of(&q));
    let [low, high] = cut.truncation.unwrap();
    assert!(
        low <= full.mean && full.mean <= high,
        "{} is outside [{low}, {high}]",
        full.mean
    );
}

/// Texts with their rows in full, and cut to lists: what full rows give along a text is
/// between the bounds, of draft lengths and of trees.
#[test]
fn rounds_along_a_text_hold_those_of_the_full_rows() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(60);
    let (full, cut) = (folder.path().join("full"), folder.path().join("cut"));
    write(&full, &rows, KeptTokens::All);
    let kept = KeptTokens::Top {
        count: 3,
        rest_temperatures: vec![1.0],
    };
    write(&cut, &rows, kept);
    let [full, cut] = [full, cut].map(|path| [Log::open(&path).unwrap()]);
    let trees = |logs: &[Log]| {
        let tree = |name: &str| replay::NamedTree {
            name: name.to_owned(),
            tree: DraftTree::named(name).unwrap(),
        };
        let settings = replay::TreeSettings {
            trees: vec![tree("chain-2"), tree("2x2")],
            schemes: vec![
                SchemeName::WITH_REPLACEMENT,
                SchemeName::TOP,
                SchemeName::WITHOUT_REPLACEMENT,
                SchemeName::STRATIFIED,
                SchemeName::STRATIFIED_INDEPENDENT,
            ],
            verifiers: vec![
                RuleName::RRS,
                RuleName::NAIVE_TREE,
                RuleName::EXACT_MATCH,
                RuleName::TRAVERSAL,
            ],
            limits: replay::Limits {
                budget: 4,
                depth: 2,
                branch: 2,
            },
            timings: None,
            temperature: None,
            slot_values: false,
            price: false,
            engine: None,
            seed: 1,
            parts: replay::Parts::Whole,
        };
        replay::measure_trees(logs, &settings, "", &|_| ()).unwrap()
    };
    let (whole, part) = (trees(&full), trees(&cut));
    let mut bounded = 0;
    for (whole, part) in whole.results.iter().zip(&part.results) {
        let name = format!("{} {} {}", part.tree, part.scheme, part.verifier);
        let pairs = [
            (
                whole.expected_accepted_length.unwrap(),
                part.expected_accepted_length.unwrap(),
            ),
            (whole.tokens_per_call, part.tokens_per_call),
        ];
        for (whole, part) in pairs {
            assert!(whole.truncation.is_none());
            // Laws without bounds of their own have those of any where a list lacks tokens.
            let [low, high] = part.truncation.unwrap();
            assert!(!name.contains("without") || high - low > 0.1, "{name}");
            bounded += 1;
            assert!(
                low - 1e-6 <= whole.mean && whole.mean <= high + 1e-6,
                "{name}: {} is outside [{low}, {high}]",
                whole.mean
            );
            assert!(
                low - 1e-9 <= part.mean && part.mean <= high + 1e-9,
                "{name}"
            );
            assert!(high > low);
        }
    }
    assert!(bounded >= 28, "{bounded}");
    for (whole, part) in whole.dynamic.iter().zip(&part.dynamic) {
        let of = |one: &replay::ThresholdTree| {
            [one.expected_accepted_length.unwrap(), one.tokens_per_call]
        };
        for (whole, part) in of(whole).into_iter().zip(of(part)) {
            let [low, high] = part.truncation.unwrap();
            let holds = |mean: f64| low - 1e-6 <= mean && mean <= high + 1e-6;
            assert!(whole.truncation.is_none() && holds(whole.mean) && holds(part.mean));
        }
    }
    let told = part
        .results
        .iter()
        .filter(|one| one.verifier == "traversal");
    let widths = told.map(|one| one.tokens_per_call.truncation.unwrap());
    let widths: Vec<f64> = widths.map(|[low, high]| high - low).collect();
    assert!(
        widths.len() == 6 && widths.iter().all(|&width| width < 1.0),
        "{widths:?}"
    );
    let line = part
        .left_out
        .iter()
        .find(|line| line.starts_with("bounds of what full rows"));
    assert!(
        line.unwrap()
            .contains("exact-match on without-replacement drafts")
    );
    let missing = |report: &replay::TreeReport| {
        report
            .left_out
            .iter()
            .any(|line| line.starts_with("bounds"))
    };
    assert!(!missing(&whole));
}

/// A difference of which the lists do not tell the sign is no finding, whichever table it
/// stands in.
#[test]
fn differences_that_lists_leave_open_have_no_p_value() {
    let folder = tempfile::tempdir().unwrap();
    let law = |row: &[f32]| {
        let mut out = Vec::new();
        Softmax::default().fill(row, &mut out).unwrap();
        out
    };
    let settings = Settings::new(&[1.0], &[2, 3], 3).unwrap();
    let mut open = [0, 0];
    for count in [10, 20, 40] {
        let rows = rows(count);
        let ids: Vec<i64> = (0..rows[0].0.len() as i64).collect();
        let positions: Vec<Lists> = rows
            .iter()
            .map(|(target, draft)| cut(&law(target), &law(draft), &ids, 3, false))
            .collect();
        let path = folder.path().join(format!("lists-{count}"));
        let metadata = serde_json::json!({"vocabulary": ids.len(), "top": 3});
        write_lists(&path, "logprobs", &positions, metadata);
        let report = report_at(&path, &settings);
        let one_draft = report.one_draft.iter().flat_map(|one| &one.differences);
        let of_one = one_draft.map(|one| (0, one));
        for (table, one) in of_one.chain(report.comparisons.iter().map(|one| (1, one))) {
            let [lower, upper] = one.difference.truncation.unwrap();
            if lower < 0.0 && upper > 0.0 {
                open[table] += 1;
                assert_eq!((one.p_value, one.p_holm), (1.0, 1.0), "{one:?}");
            }
        }
    }
    assert!(open.into_iter().all(|open| open > 0), "{open:?}");
}
