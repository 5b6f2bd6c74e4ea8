//! Several logs side by side: differences at the same positions where logs hold the same
//! text, with the interval of a mean of differences; else those of two means, and words
//! that say so.

use specgap::gap::{
    Columns, ComparedRate, LogComparison, LogDifference, Part, Settings, summarise, summarise_each,
};
use specgap::known::Kind;
use specgap::log::{Dtype, KeptTokens, Layout, Log};
use specgap::report::CsvTable;
use specgap::report::compare::page;
use std::path::Path;

use crate::made_log::{Pair, Place, V, rows, write_at};

/// t(0.975) with 3 degrees of freedom.
const T3: f64 = 3.182_446_305_284_263;

/// Prompts of 3 to 6 positions in turn, five of them at most.
fn place(n: usize) -> Place {
    let ends = [0, 3, 7, 12, 18, 21];
    let prompt = ends.iter().rposition(|&end| end <= n).unwrap();
    (
        prompt as i64,
        (n - ends[prompt]) as i64,
        ((n + 1) % V) as i64,
    )
}

fn log(folder: &Path, name: &str, rows: &[Pair], place: impl Fn(usize) -> Place) -> Log {
    let path = folder.join(name);
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(V)
    };
    write_at(&path, rows, layout, place);
    Log::open(&path).unwrap()
}

fn settings() -> Settings {
    Settings::new(&[1.0], &[2], 0).unwrap()
}

fn compare(logs: &[Log]) -> LogComparison {
    let settings = settings();
    let (each, pairings) = summarise_each(logs, &settings, Part::WHOLE, None, &|_| ()).unwrap();
    LogComparison::new(&each, &pairings, &settings.options())
}

/// The acceptance of `rrs` at every position.
fn rrs(log: &Log) -> Vec<f64> {
    let settings = settings();
    let columns = Columns::new(&settings);
    let mut table = CsvTable::new(Vec::new(), &columns).unwrap();
    let log = std::slice::from_ref(log);
    summarise(log, &settings, Part::WHOLE, Some(&mut table), &|_| ()).unwrap();
    let text = String::from_utf8(table.finish().unwrap()).unwrap();
    let mut lines = text.lines();
    let mut names = lines.next().unwrap().split(',');
    let column = names
        .position(|name| name == "with-replacement/rrs")
        .unwrap();
    let entry = |line: &str| line.split(',').nth(column).unwrap().parse().unwrap();
    lines.map(entry).collect()
}

fn of_rrs(comparison: &LogComparison, log: usize) -> &LogDifference {
    rrs_of_several(comparison).differences[log]
        .as_ref()
        .unwrap()
}

/// The row of rrs where there is more than one draft.
fn rrs_of_several(comparison: &LogComparison) -> &ComparedRate {
    let is_rrs = |rate: &&ComparedRate| {
        rate.verifier.as_deref() == Some("rrs") && rate.drafts.is_some_and(|drafts| drafts > 1)
    };
    comparison.rates.iter().find(is_rrs).unwrap()
}

fn texts(comparison: &LogComparison) -> [String; 3] {
    let page = page(comparison);
    let html = page.html().unwrap().replace('\u{a0}', " ");
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    [
        html,
        page.markdown().replace('\\', ""),
        page.text(100, false),
    ]
    .map(words)
}

#[test]
fn one_draft_is_there_though_two_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, from: usize| log(folder.path(), name, &rows(60)[from..from + 18], place);
    let comparison = compare(&[of("a", 0), of("b", 20), of("c", 40)]);
    let overlap = &comparison.rates[0];
    let one = |verifier: &str| {
        let is_it = |rate: &&ComparedRate| {
            (rate.drafts, rate.verifier.as_deref()) == (Some(1), Some(verifier))
                && rate.scheme.as_deref() == Some("with-replacement")
        };
        comparison.rates.iter().find(is_it).unwrap()
    };
    for log in 0..3 {
        let mean = |rate: &ComparedRate| rate.estimates[log].as_ref().unwrap().estimate.mean;
        assert!((mean(one("rrs")) - mean(overlap)).abs() < 1e-9);
        assert!(mean(one("exact-match")) < mean(overlap));
    }
}

#[test]
fn logs_of_the_same_text_are_compared_position_by_position() {
    let folder = tempfile::tempdir().unwrap();
    let first = log(folder.path(), "first", &rows(18), place);
    // The same text under other rows, and a prompt more.
    let second = log(folder.path(), "second", &rows(60)[39..], place);
    let values = [&first, &second].map(rrs);
    let logs = [first, second];
    let comparison = compare(&logs);
    assert!(comparison.paired);
    let against = comparison.logs[1].against_first.as_ref().unwrap();
    assert_eq!((against.positions, against.prompts), (18, 4));
    assert_eq!(comparison.logs[0].against_first, None);

    // By hand: S_c and m_c of four prompts.
    let mut sums = [[0.0f64; 2]; 4];
    for n in 0..18 {
        let sum = &mut sums[place(n).0 as usize];
        sum[0] += values[1][n] - values[0][n];
        sum[1] += 1.0;
    }
    let mean = sums.iter().map(|sum| sum[0]).sum::<f64>() / 18.0;
    let squares: f64 = (sums.iter())
        .map(|[s, m]| (s - mean * m) * (s - mean * m))
        .sum();
    let half = T3 * (4.0 / 3.0 * squares).sqrt() / 18.0;
    let found = of_rrs(&comparison, 1);
    assert!(found.paired && found.kind == Kind::Enclosed);
    assert!(
        (found.estimate.mean - mean).abs() < 1e-12,
        "{found:?} {mean}"
    );
    let [low, high] = found.estimate.ci95;
    assert!((low - (mean - half)).abs() < 1e-9, "{found:?} {half}");
    assert!((high - (mean + half)).abs() < 1e-9);
    assert!(found.width_max > 0.0 && found.width_max < 1e-10);
    // Means are over all of a log's positions, of which the last prompt is one's own.
    let all = values[1].iter().sum::<f64>() / 21.0;
    let rates = comparison.rates.iter();
    let own = rrs_of_several(&comparison).estimates[1].as_ref().unwrap();
    assert!((own.estimate.mean - all).abs() < 1e-12);
    assert!(rates.clone().all(|rate| rate.differences[0].is_none()));
    assert_eq!(comparison.rates[0].what, "overlap");

    let number = format!("{:.1} ± {:.1}", 100.0 * mean.abs(), 100.0 * half);
    for text in texts(&comparison) {
        assert!(text.contains("second and first are paired"), "{text}");
        assert!(text.contains("over 18 positions of 4 prompts"), "{text}");
        assert!(!text.contains("not paired:"), "{text}");
        assert!(text.contains(&number), "{number}: {text}");
    }
    let [html, markdown, _] = texts(&comparison);
    assert!(html.contains("<dt>paired difference</dt>") && html.contains("<dt>enclosed, w</dt>"));
    assert!(html.contains("<dt>verifier rrs</dt>") && !html.contains("<dt>block-optimum</dt>"));
    assert!(html.contains("<a href=\"./second/report.html\">"));
    assert!(markdown.contains("(./second/report.md)"));
}

#[test]
fn what_all_prompts_share_cancels_in_a_pair() {
    let folder = tempfile::tempdir().unwrap();
    let first = log(folder.path(), "first", &rows(18), place);
    let same = log(folder.path(), "same", &rows(18), place);
    // The same rows, but another text.
    let apart = |n: usize| (place(n).0, place(n).1, ((n + 2) % V) as i64);
    let other = log(folder.path(), "other", &rows(18), apart);
    let comparison = compare(&[first, same, other]);
    let paired = of_rrs(&comparison, 1);
    assert!(paired.paired);
    assert_eq!(
        (paired.estimate.mean, paired.estimate.ci95),
        (0.0, [0.0, 0.0])
    );
    let unpaired = of_rrs(&comparison, 2);
    assert!(!unpaired.paired && !comparison.paired);
    assert_eq!(unpaired.estimate.mean, 0.0);
    // Two equal squared errors: by Welch, twice the 3 degrees of freedom.
    let own = rrs_of_several(&comparison).estimates[0].as_ref().unwrap();
    let own = own.estimate;
    let error = 0.5 * (own.ci95[1] - own.ci95[0]) / T3;
    let half = 2.446_911_851_144_969 * 2f64.sqrt() * error;
    assert!(
        (unpaired.estimate.ci95[1] - half).abs() < 1e-9,
        "{unpaired:?} {half}"
    );
    let why = "0 of the 18 positions of first are of the same text as one of the 18 of other";
    for text in texts(&comparison) {
        let said = format!("other and first are not paired: {why}");
        assert!(text.contains(&said), "{text}");
        assert!(text.contains("same and first are paired"), "{text}");
    }
    assert_eq!(
        comparison.logs[2]
            .against_first
            .as_ref()
            .unwrap()
            .why
            .as_deref(),
        Some(why)
    );
}

#[test]
fn logs_that_loop_or_are_parallel_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |token: fn(usize) -> usize| {
        move |n: usize| ((n / 20) as i64, (n % 20) as i64, (token(n) % V) as i64)
    };
    // One text of twenty equal tokens and one that never repeats three times; two of the latter.
    let looping = at(|n| if n < 20 { 2 } else { n * n / 7 });
    let plain = at(|n| n * n / 7);
    let logs = [
        log(folder.path(), "first", &rows(40), looping),
        log(folder.path(), "second", &rows(40), looping),
    ];
    let both = compare(&logs);
    assert_eq!(both.logs[1].repetition.unwrap().looping_positions, 20);
    let loops = "The text loops: 50.0% of all positions";
    for text in texts(&both) {
        assert_eq!(text.matches(loops).count(), 1, "{text}");
        assert!(!text.contains("first and second: The text loops"), "{text}");
        assert!(!text.contains("drafter is parallel"), "{text}");
    }

    let index = folder.path().join("second/log.json");
    let json = std::fs::read_to_string(&index).unwrap();
    let said = "\"drafter\": \"parallel\", \"sampling\"";
    std::fs::write(&index, json.replace("\"sampling\"", said)).unwrap();
    let second = Log::open(&folder.path().join("second")).unwrap();
    let other = log(folder.path(), "other", &rows(40), plain);
    let [first, _] = logs;
    let comparison = compare(&[first, second, other]);
    assert_eq!(comparison.logs[2].repetition, None);
    for text in texts(&comparison) {
        let words = format!("first and second: {loops}");
        assert!(text.contains(&words), "{text}");
        assert!(text.contains("second: The drafter is parallel"), "{text}");
    }
    // A comparison that was written before this was known is read as one without.
    let mut json = serde_json::to_value(&both).unwrap();
    json["logs"][0]
        .as_object_mut()
        .unwrap()
        .remove("repetition");
    let read: LogComparison = serde_json::from_value(json).unwrap();
    assert_eq!(
        (read.logs[0].repetition, read.logs[0].parallel),
        (None, false)
    );
}

#[test]
fn texts_that_part_are_paired_until_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let first = log(folder.path(), "first", &rows(18), place);
    // Prompt 3 parts at its third position; the rest is the same.
    let parted = |n: usize| {
        let (prompt, position, token) = place(n);
        let other = prompt == 3 && position == 2;
        (
            prompt,
            position,
            if other { (token + 1) % V as i64 } else { token },
        )
    };
    let second = log(folder.path(), "second", &rows(18), parted);
    let comparison = compare(&[first, second]);
    let against = comparison.logs[1].against_first.as_ref().unwrap();
    assert_eq!((against.positions, against.prompts), (14, 4));
    assert_eq!(of_rrs(&comparison, 1).estimate.mean, 0.0);

    // Two parts of the positions have in common what both measure.
    let logs = ["first", "second"].map(|name| Log::open(&folder.path().join(name)).unwrap());
    let part = Part { index: 1, count: 2 };
    let (each, pairings) = summarise_each(&logs, &settings(), part, None, &|_| ()).unwrap();
    assert_eq!((each.len(), pairings.len()), (2, 1));
    assert_eq!((pairings[0].positions(), pairings[0].prompts()), (9, 3));
    // Of a shorter text, of which a part is shorter too: what one of them measures is not enough.
    let short = log(folder.path(), "short", &rows(12), place);
    let logs = [logs.into_iter().next().unwrap(), short];
    let (_, pairings) = summarise_each(&logs, &settings(), part, None, &|_| ()).unwrap();
    assert_eq!((pairings[0].positions(), pairings[0].prompts()), (6, 2));
}

/// Names of prompts, if both logs have them, and whatever a log does not say.
#[test]
fn positions_are_the_same_only_where_the_logs_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/logs");
    let probabilities = Log::open(&fixture.join("probabilities.npz")).unwrap();
    assert!(!probabilities.has_prompts());
    let named = |name: &str, prompt: &str| {
        let made = log(folder.path(), name, &rows(18), place);
        let place = made.path().join("log.json");
        let text = std::fs::read_to_string(&place).unwrap();
        let mut index: serde_json::Value = serde_json::from_str(&text).unwrap();
        let prompts = (0..4).map(|id| {
            let name = if id == 2 {
                prompt.to_owned()
            } else {
                id.to_string()
            };
            serde_json::json!({ "id": id, "name": name, "positions": 3 })
        });
        index["metadata"]["prompts"] = prompts.collect();
        std::fs::write(&place, index.to_string()).unwrap();
        Log::open(made.path()).unwrap()
    };
    let comparison = compare(&[named("a", "ode"), named("b", "elegy")]);
    let against = comparison.logs[1].against_first.as_ref().unwrap();
    // All but the five positions of the prompt that is another.
    assert_eq!(
        (against.paired, against.positions, against.prompts),
        (true, 13, 3)
    );
    let comparison = compare(&[named("c", "ode"), probabilities]);
    let against = comparison.logs[1].against_first.as_ref().unwrap();
    let why = against.why.as_deref().unwrap();
    assert!(why.starts_with("probabilities.npz does not say"), "{why}");
}

/// Bounds of truncated rows are those of a difference, and the difference is called so.
#[test]
fn differences_of_truncated_rows_have_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let full = log(folder.path(), "full", &rows(18), place);
    let path = folder.path().join("cut");
    let layout = Layout {
        dtype: Dtype::F32,
        tokens: KeptTokens::Top {
            count: 3,
            rest_temperatures: vec![1.0],
        },
        ..Layout::new(V)
    };
    write_at(&path, &rows(18), layout, place);
    let cut = Log::open(&path).unwrap();
    let comparison = compare(&[full, cut]);
    for rate in &comparison.rates {
        let difference = rate.differences[1].as_ref().unwrap();
        assert_eq!(difference.kind, Kind::Truncated);
        let [lower, upper] = difference.estimate.truncation.unwrap();
        // The full rows of both are the same: their difference is 0.
        assert!(lower <= 1e-6 && upper >= -1e-6, "{rate:?}");
        let mean = difference.estimate.mean;
        assert!(lower <= mean && mean <= upper, "{rate:?}");
    }
    for text in texts(&comparison) {
        assert!(
            text.contains("bounds of what full rows would give") && text.contains("truncated, "),
            "{text}"
        );
    }
}
