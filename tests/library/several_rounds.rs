//! What no lossless rule of one path passes over several rounds: are its numbers those of an
//! independent implementation, and do logs that are shipped keep the order of rules?

use crate::replay::{DRAFT, TARGET, TEXTS, near, ratios, report};
use specgap::log::Log;
use specgap::replay::{
    Drafts, LengthReport, LengthSettings, Parameter, Policy, PolicyResult, Texts, measure_lengths,
};
use specgap::rounds::{
    ChainRule, FixedLength, carried_starts, fewest_calls, fewest_calls_unlimited, fewest_starts,
    greedy_block_starts, oracle_calls_to_the_end, replay,
};
use specgap::rule::RuleName;
use std::path::{Path, PathBuf};

/// K, and in all four texts the fewest calls and those of the rules that carry by token and by
/// block, from another language; 14 is no limit.
const CALLS: [(usize, f64, f64, f64); 5] = [
    (1, 32.62514758254079, 32.62514758254079, 32.62514758254079),
    (2, 25.475248546265505, 25.73970957595888, 25.418291509687734),
    (3, 22.70994181446444, 23.181551748969714, 22.65155989833526),
    (5, 19.27424622049391, 21.30207994434545, 19.54791986653581),
    (
        14,
        15.552357229144587,
        20.493886027770337,
        15.586853959899802,
    ),
];

#[test]
fn the_fewest_calls_are_the_other_implementations() {
    for (most, fewest, carried, _) in CALLS {
        let sum = |of: &dyn Fn(&[f64]) -> f64| TEXTS.iter().map(|text| of(&ratios(text))).sum();
        near(sum(&|r| fewest_calls(r, most)), fewest, "fewest");
        near(
            sum(&|r| carried_starts(r, most).iter().sum()),
            carried,
            "carried",
        );
        if most == 14 {
            near(sum(&fewest_calls_unlimited), fewest, "no limit");
        }
    }
}

#[test]
fn the_report_replays_carried_block_where_it_is_asked_for() {
    let asked = |is_asked| LengthSettings {
        policies: CALLS.map(|(most, ..)| Policy::fixed(most)).to_vec(),
        linked: match is_asked {
            true => vec![RuleName::CARRIED, RuleName::CARRIED_BLOCK],
            false => Vec::new(),
        },
        ..LengthSettings::default()
    };
    let made = report(&asked(true));
    let bounds = serde_json::to_value(&made.bounds).unwrap();
    let by_length = bounds["several_rounds"].as_array().unwrap();
    assert_eq!(by_length.len(), CALLS.len());
    for (row, (most, fewest, ..)) in by_length.iter().zip(CALLS) {
        assert_eq!(row["length"], most);
        near(
            row["tokens_per_call"]["mean"].as_f64().unwrap(),
            56.0 / fewest,
            "several rounds",
        );
        assert!(row["tokens_per_call"]["ci95"].is_array());
    }
    for (row, (most, _, _, calls)) in made.bounds.fewest_calls.iter().zip(CALLS) {
        assert_eq!(row.most, Some(most as u64));
        let last = row.above.last().unwrap();
        assert_eq!(last.rule, "carried-block");
        near(last.tokens_per_call.mean, 56.0 / calls, "carried-block");
        let fewest = row.verification_rate.mean * 56.0;
        near(last.more_calls.mean, calls / fewest - 1.0, "more calls");
    }
    // Its rows of results have what a round of them costs beside calls.
    for (most, _, carried, carried_block) in CALLS {
        for (rule, calls) in [("carried", carried), ("carried-block", carried_block)] {
            let is_it = |row: &&PolicyResult| {
                row.verifier == rule && row.parameter == Parameter::Count(most as u64)
            };
            let row = made.results.iter().find(is_it).unwrap();
            near(row.tokens_per_call.unwrap().mean, 56.0 / calls, rule);
            near(row.verification_rate.unwrap().mean, calls / 56.0, rule);
            assert!(
                row.discard_rate.unwrap().mean >= 0.0 && row.expected_accepted_length.is_none()
            );
        }
    }
    let without = report(&asked(false));
    assert!(
        without
            .results
            .iter()
            .all(|row| !row.verifier.starts_with("carried"))
    );
    assert!(
        without
            .left_out
            .iter()
            .all(|line| !line.contains("carried-block"))
    );
    assert_eq!(without.bounds.fewest_calls[0].above.len(), 3);
    // Rows that list some tokens do not tell it, and the report says so.
    let log = Log::open(&root().join("models/logs/smollm2-demo")).unwrap();
    let listed = measure_lengths(&[log], &asked(true), "", &|_| ()).unwrap();
    assert_eq!(listed.bounds.fewest_calls[0].above.len(), 3);
    assert!(
        listed
            .left_out
            .iter()
            .any(|line| line.starts_with("carried-block: "))
    );
}

#[test]
fn the_report_replays_greedy_block_where_it_is_asked_for() {
    let asked = |is_asked| LengthSettings {
        policies: CALLS.map(|(most, ..)| Policy::fixed(most)).to_vec(),
        linked: match is_asked {
            true => vec![RuleName::GREEDY_BLOCK],
            false => Vec::new(),
        },
        ..LengthSettings::default()
    };
    let made = report(&asked(true));
    let calls_of = |row: &specgap::replay::FewestCalls, rule: &str| {
        let one = row.above.iter().find(|one| one.rule == rule).unwrap();
        56.0 / one.tokens_per_call.mean
    };
    for row in made
        .bounds
        .fewest_calls
        .iter()
        .filter(|row| row.most.is_some())
    {
        let most = row.most.unwrap() as usize;
        let calls = calls_of(row, "greedy-block");
        if most == 1 {
            // One draft is verified by itself, and nothing of its span is left.
            near(calls, calls_of(row, "token"), "one draft");
            let of = |rule: &str| {
                let mut rows = made
                    .results
                    .iter()
                    .filter(|one| one.drafts == Drafts::Sampled);
                let one =
                    rows.find(|one| one.verifier == rule && one.parameter == Parameter::Count(1));
                one.unwrap().discard_rate.unwrap().mean
            };
            near(of("greedy-block"), of("token"), "what one draft leaves");
        }
        if most <= 2 {
            // So few histories that none is left out; from three on some are drawn.
            let all = |text: &[usize; 14]| -> f64 {
                let before = std::iter::once(&0).chain(text);
                let rows: Vec<(&[f64], &[f64], usize)> = (before.zip(text))
                    .map(|(&before, &token)| (&TARGET[before][..], &DRAFT[before][..], token))
                    .collect();
                greedy_block_starts(&rows, most, &mut |_| ()).iter().sum()
            };
            near(calls, TEXTS.iter().map(all).sum(), "greedy-block");
        }
        // A call for each text, and no more than tokens.
        assert!((4.0..56.0).contains(&calls), "{calls}");
    }
    let says = |report: &LengthReport, start: &str| {
        let mut lines = report.left_out.iter();
        lines.any(|line| line.starts_with(start))
    };
    assert!(!says(&made, "calls of greedy-block: "));
    assert!(says(&report(&asked(false)), "calls of greedy-block: "));
    let log = Log::open(&root().join("models/logs/smollm2-demo")).unwrap();
    let listed = measure_lengths(&[log], &asked(true), "", &|_| ()).unwrap();
    assert!(says(&listed, "greedy-block: "));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn calls(verifier: ChainRule, ratios: &[f64], most: usize) -> f64 {
    replay(verifier, ratios, &FixedLength(most)).unwrap().calls
}

/// Ratios of the texts of every shipped log that has text.
fn shipped() -> Vec<(PathBuf, Vec<Vec<f64>>)> {
    let mut paths: Vec<PathBuf> = ["models/logs", "tests/fixtures/logs"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let texts = paths.into_iter().filter_map(|path| {
        let log = Log::open(&path).ok()?;
        let texts = Texts::read(&[log], None, &|_| ()).ok()?;
        let of =
            |text: &specgap::replay::Text| text.places.iter().map(|place| place.ratio).collect();
        Some((path, texts.texts.iter().map(of).collect()))
    });
    let mut all: Vec<(PathBuf, Vec<Vec<f64>>)> = texts.collect();
    all.push((
        "made".into(),
        TEXTS.iter().map(|text| ratios(text)).collect(),
    ));
    all
}

/// Text by text block verification makes at most as many calls as token verification with as
/// many drafts, and with drafts as long as the text the fewest of all.
#[test]
fn calls_of_shipped_logs_are_ordered_text_by_text() {
    let (mut logs, mut texts, mut strictly) = (0, 0, 0);
    for (path, all) in shipped() {
        logs += 1;
        for ratios in all {
            texts += 1;
            let tolerance = 1e-9;
            for most in 1..=ratios.len() {
                let [token, block] = [ChainRule::TOKEN, ChainRule::BLOCK]
                    .map(|verifier| calls(verifier, &ratios, most));
                assert!(
                    block <= token + tolerance,
                    "{}: {block}, {token}",
                    path.display()
                );
                strictly += usize::from(block < token - tolerance);
                let carried = carried_starts(&ratios, most);
                assert!(carried.iter().all(|start| (0.0..=1.0).contains(start)));
            }
            let unlimited = fewest_calls_unlimited(&ratios);
            let long = calls(ChainRule::BLOCK, &ratios, ratios.len());
            near(long, unlimited, "long blocks");
            near(fewest_calls(&ratios, ratios.len()), unlimited, "two forms");
            assert!(unlimited <= oracle_calls_to_the_end(&ratios) + tolerance);
            assert_eq!(fewest_starts(&ratios, 3).len(), ratios.len());
        }
    }
    assert!(
        logs >= 2 && texts >= 20 && strictly >= 100,
        "{logs}, {texts}, {strictly}"
    );
}

/// Whatever is chosen in a shipped report, sums over texts keep the order too.
#[test]
fn a_shipped_report_has_block_below_token_verification() {
    let report: LengthReport = crate::pages::shipped("length");
    let rate = |verifier: &str, count: u64| {
        let mut rows = report.results.iter();
        let row = rows.find(|row| {
            row.policy == "fixed"
                && row.verifier == verifier
                && row.drafts == specgap::replay::Drafts::Sampled
                && row.parameter == Parameter::Count(count)
        })?;
        Some(row.verification_rate?.mean)
    };
    let mut compared = 0;
    for count in 1..=16 {
        let rates = (rate("token", count), rate("block", count));
        if let (Some(token), Some(block)) = rates {
            assert!(block <= token + 1e-12, "{count}: {block}, {token}");
            compared += 1;
        }
    }
    assert!(compared > 3, "{compared}");
}

/// The report has the numbers of the formula, and the gaps are of the same texts.
#[test]
fn the_report_has_the_ceiling_of_one_path() {
    let log = Log::open(&root().join("models/logs/smollm2-demo")).unwrap();
    let texts = Texts::read(std::slice::from_ref(&log), None, &|_| ()).unwrap();
    let settings = LengthSettings {
        policies: [1, 4].map(Policy::fixed).to_vec(),
        ..LengthSettings::default()
    };
    let report = measure_lengths(&[log], &settings, "", &|_| ()).unwrap();
    let rows = &report.bounds.fewest_calls;
    assert_eq!(
        rows.iter().map(|row| row.most).collect::<Vec<_>>(),
        [Some(1), Some(4), None]
    );
    let tokens = report.of.positions as f64;
    for row in rows {
        let each = texts.texts.iter().map(|text| {
            let ratios: Vec<f64> = text.places.iter().map(|place| place.ratio).collect();
            match row.most {
                Some(most) => fewest_calls(&ratios, most as usize),
                None => fewest_calls_unlimited(&ratios),
            }
        });
        let sum: f64 = each.sum();
        near(row.verification_rate.mean, sum / tokens, "fewest calls");
        near(row.tokens_per_call.mean, tokens / sum, "tokens per call");
        // Three tokens of the text are not listed.
        let [low, high] = row.verification_rate.truncation.unwrap();
        assert!(low <= row.verification_rate.mean && row.verification_rate.mean <= high);
        let names: Vec<&str> = row.above.iter().map(|one| one.rule.as_str()).collect();
        match row.most {
            None => assert!(names.is_empty()),
            Some(most) => {
                assert_eq!(names, ["token", "block", "carried"]);
                for one in &row.above {
                    let share = row.tokens_per_call.mean / one.tokens_per_call.mean - 1.0;
                    near(one.more_calls.mean, share, &one.rule);
                }
                // One carried draft is the optimum.
                assert_eq!(row.above[2].more_calls.mean.abs() < 1e-12, most == 1);
            }
        }
    }
    assert!(rows[0].verification_rate.mean > rows[1].verification_rate.mean);
    assert!(rows[1].verification_rate.mean > rows[2].verification_rate.mean);
}
