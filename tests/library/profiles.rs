//! Do the curves of a log say what its rounds do where they start, and is a paired difference worth
//! what the documents say?

use crate::replay::{TEXTS, near, ratios, report};
use specgap::log::Log;
use specgap::replay::{Drafts, LengthReport, LengthSettings, Policy, RoundStarts, measure_lengths};
use specgap::rounds::ChainRule;
use specgap::statistics::Clustered;
use std::path::Path;

fn settings(lengths: &[usize]) -> LengthSettings {
    LengthSettings {
        policies: lengths
            .iter()
            .map(|&length| Policy::fixed(length))
            .collect(),
        round_starts: true,
        ..LengthSettings::default()
    }
}

fn of<'a>(report: &'a LengthReport, name: &str) -> &'a RoundStarts {
    let found = report.round_starts.iter().find(|one| one.name() == name);
    found.unwrap_or_else(|| panic!("{name} is missing"))
}

/// A decoder that is run along a text for every outcome of all its coins: how many of its rounds
/// have `length` tokens ahead, and how many of these accept at least 1, 2, ... drafts.
fn by_all_coins(coins: &[f64], length: usize) -> Vec<f64> {
    let mut sums = vec![0.0; length + 1];
    for outcome in 0..1u32 << coins.len() {
        let up = |place: usize| outcome >> place & 1 == 1;
        let chance = |(place, &coin): (usize, &f64)| if up(place) { coin } else { 1.0 - coin };
        let weight: f64 = coins.iter().enumerate().map(chance).product();
        let mut start = 0;
        while weight > 0.0 && start + length <= coins.len() {
            let accepted = (0..length).take_while(|i| up(start + i)).count();
            for sum in &mut sums[..=accepted] {
                *sum += weight;
            }
            // The accepted drafts, and a token of the target's own.
            start += accepted + 1;
        }
    }
    sums
}

/// S_i over round starts, its interval over prompts, and what a round puts out, against a decoder
/// that is run for every outcome of its coins.
#[test]
fn curves_are_those_of_a_decoder_that_is_run() {
    let lengths = [1, 2, 3, 5];
    let report = report(&settings(&lengths));
    // The likeliest token of each of the draft's rows.
    let hits = |text: &[usize]| -> Vec<f64> {
        let likeliest = [2, 4, 2, 4, 2];
        let before = std::iter::once(&0).chain(text);
        let pairs = before.zip(text);
        pairs
            .map(|(&before, &token)| f64::from(u8::from(likeliest[before] == token)))
            .collect()
    };
    let sampled = |text: &[usize]| -> Vec<f64> {
        ratios(text)
            .into_iter()
            .map(|ratio| ratio.min(1.0))
            .collect()
    };
    type CoinsOf<'a> = &'a dyn Fn(&[usize]) -> Vec<f64>;
    for (name, coins) in [("sampled-token", &sampled as CoinsOf), ("one-hot", &hits)] {
        let way = of(&report, name);
        assert_eq!(way.curves.len(), lengths.len());
        for (curve, length) in way.curves.iter().zip(lengths) {
            assert_eq!(curve.length, length);
            let sums: Vec<Vec<f64>> = (TEXTS.iter())
                .map(|text| by_all_coins(&coins(text), length))
                .collect();
            let share =
                |i: usize| Clustered::new(sums.iter().map(move |sum| (sum[i], sum[0]))).estimate();
            for (i, found) in (1..).zip(&curve.marginal) {
                let what = format!("{name}, K = {length}, i = {i}");
                near(found.mean, share(i).mean, &what);
                near(found.ci95[1], share(i).ci95[1], &what);
            }
            let rounds: f64 = sums.iter().map(|sum| sum[0]).sum();
            let put_out: f64 = sums.iter().flatten().sum::<f64>() / rounds;
            near(curve.acceptance_length.mean, put_out, name);
            let exactly = curve.histogram.as_ref().unwrap();
            near(exactly.iter().sum(), 1.0, name);
            near(exactly[length], share(length).mean, name);
            assert_eq!(curve.rounds, Some(rounds.round() as u64));
        }
        let more: Vec<[usize; 2]> = (way.longer.iter())
            .map(|one| [one.length, one.over])
            .collect();
        assert_eq!(more, [[2, 1], [3, 2], [5, 3]]);
    }
    let names: Vec<String> = report.round_starts.iter().map(RoundStarts::name).collect();
    assert_eq!(
        names,
        ["sampled-token", "sampled-block", "one-hot", "exact-match"]
    );
    // Block verification starts as often where every round is one draft.
    let [token, block] = ["sampled-token", "sampled-block"].map(|name| of(&report, name));
    assert_eq!(token.curves[0], block.curves[0]);
    assert!(token.curves[3].acceptance_length.mean < block.curves[3].acceptance_length.mean);
}

/// Nothing of a report changes where nobody asks, and lengths that no text has room for are none.
#[test]
fn curves_are_there_where_they_are_asked_for() {
    let asked = LengthSettings {
        drafts: vec![Drafts::Sampled],
        verifiers: vec![ChainRule::TOKEN],
        ..settings(&[2, 14, 15])
    };
    let with = report(&asked);
    let found: Vec<usize> = of(&with, "sampled-token")
        .curves
        .iter()
        .map(|one| one.length)
        .collect();
    assert_eq!(found, [2, 14]);
    let without = report(&LengthSettings {
        round_starts: false,
        ..asked
    });
    let bare = LengthReport {
        round_starts: Vec::new(),
        ..with
    };
    assert_eq!(bare, without);
    let text = serde_json::to_string(&without).unwrap();
    assert!(!text.contains("round_starts"));
}

/// What docs/reference/profiles.md says of one log against two runs.
#[test]
fn one_log_is_worth_what_the_guide_says() {
    let log = "models/logs/smollm2-by-depth/eagle-kl.safetensors";
    let log = Log::open(Path::new(log)).unwrap();
    let asked = LengthSettings {
        drafts: vec![Drafts::Sampled],
        verifiers: vec![ChainRule::TOKEN],
        ..settings(&[1, 2, 3, 4])
    };
    let report = measure_lengths(&[log], &asked, "specgap length", &|_| {}).unwrap();
    let guide = std::fs::read_to_string("docs/reference/profiles.md").unwrap();
    let longer = &of(&report, "sampled-token").longer;
    let last = longer.last().unwrap();
    assert_eq!([last.length, last.over], [4, 3]);
    let half = (last.acceptance_length.ci95[1] - last.acceptance_length.ci95[0]) / 2.0;
    let times = last.error_of_two_runs.unwrap();
    for said in [
        format!("{:.4} ± {half:.4}", last.acceptance_length.mean),
        format!("{times:.1} times"),
        format!("{:.0} times as many prompts", times * times),
    ] {
        assert!(
            guide.contains(&said),
            "{said} is not in the guide; {longer:?}"
        );
    }
}
