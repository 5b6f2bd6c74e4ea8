//! Are drafts behind rejected tokens those of rollouts, in expectation and in a report?

use crate::replay::{DRAFT, TARGET, TEXTS, ratios};
use crate::says::Says;
use specgap::log::{
    Dtype, HeadValues, Layout, Log, LogWriter, Metadata, Position, Rollout, RolloutRecord, Sampling,
};
use specgap::replay::{
    AlongText, LengthReport, LengthSettings, Policy, PolicyResult, ReplayError, RolledOut,
    TextPosition, Timings, measure_lengths,
};
use specgap::rounds::{ChainRule, drafted_rounds, replay};
use std::path::Path;

/// p = (1/2, 1/2), q = (3/4, 1/4) at every prefix.
const COIN: [f64; 2] = [0.75, 0.25];

fn coin(token: usize) -> TextPosition {
    TextPosition {
        ratio: COIN[token] / 0.5,
        draft: COIN[token],
        top: 0.75,
        overlap: 0.75,
        ..TextPosition::default()
    }
}

/// Six tokens, every text, both first positions and all rollouts: fractions with powers of
/// two, which `f64` adds up without an error.
#[test]
fn all_rollouts_together_give_the_golden_drafts() {
    let policy: Policy = "cumulative=0.5".parse().unwrap();
    let every = 2;
    let (mut calls, mut drafts) = (0.0, 0.0);
    for text in 0..64 {
        let places: Vec<TextPosition> = (0..6).map(|t| coin(text >> t & 1)).collect();
        let ratios: Vec<f64> = places.iter().map(|place| place.ratio).collect();
        let along = AlongText::new(policy, &places, &[], 3);
        let found = replay(ChainRule::TOKEN, &ratios, along.lengths()).unwrap();
        calls += found.calls / 64.0;
        for first in 0..every {
            // Three starts, a rollout of three tokens behind each.
            for all in 0..512 {
                let mut chance = 1.0;
                let rollouts: Vec<_> = (first..6)
                    .step_by(every)
                    .enumerate()
                    .map(|(index, start)| {
                        let tokens = [0, 1, 2].map(|t| all >> (3 * index + t) & 1);
                        chance *= tokens.iter().map(|&token| COIN[token]).product::<f64>();
                        let rollout = RolledOut {
                            start,
                            places: tokens.map(coin).to_vec(),
                        };
                        (start, along.drafted_on(&rollout).unwrap())
                    })
                    .collect();
                let on_text = |start| along.drafted(start);
                let rounds = drafted_rounds(&found.starts, on_text, rollouts, &2.0);
                assert_eq!(rounds.rounds.iter().sum::<f64>(), found.calls);
                drafts += chance / 2.0 * rounds.drafts() / 64.0;
            }
        }
    }
    assert_eq!((calls, drafts), (3045.0 / 1024.0, 1301.0 / 256.0));
}

/// Rows of the log are logarithms of type f32.
fn near(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error < 1e-6, "{what}: {found}, expected {expected}");
}

/// How a log's rollouts are made.
#[derive(Clone)]
pub(crate) struct Made {
    tokens: usize,
    every: usize,
    paths: usize,
    /// Which of the paths are written.
    written: std::ops::Range<usize>,
    chance: f64,
    temperature: f64,
    target: bool,
    entropy: bool,
    head: bool,
    record: bool,
}

pub(crate) const WHOLE: Made = Made {
    tokens: 4,
    every: 1,
    paths: 1,
    written: 0..1,
    chance: 1.0,
    temperature: 1.0,
    target: true,
    entropy: true,
    head: true,
    record: true,
};

/// The tokens of a rollout: any will do.
pub(crate) fn rollout_tokens(prompt: usize, start: usize, most: usize) -> Vec<usize> {
    (0..most)
        .map(|t| (prompt + 2 * start + 3 * t) % 5)
        .collect()
}

/// What a head would say of a token behind another.
fn said(before: usize, token: usize) -> f64 {
    (TARGET[before][token] / DRAFT[before][token]).min(1.0) * 0.9
}

fn overlap(before: usize) -> f64 {
    TARGET[before]
        .iter()
        .zip(DRAFT[before])
        .map(|(p, q)| p.min(q))
        .sum()
}

fn entropy(before: usize) -> f64 {
    DRAFT[before].iter().map(|q| -q * q.ln()).sum()
}

fn top(before: usize) -> f64 {
    DRAFT[before].iter().copied().fold(0.0, f64::max)
}

/// What is seen of a token behind another.
fn place(before: usize, token: usize) -> TextPosition {
    TextPosition {
        ratio: DRAFT[before][token] / TARGET[before][token],
        draft: DRAFT[before][token],
        top: top(before),
        entropy: entropy(before),
        overlap: overlap(before),
        head_acceptance: Some(said(before, token)),
        head_overlap: Some(overlap(before) / 2.0),
        ..TextPosition::default()
    }
}

fn behind(before: usize, tokens: &[usize]) -> Vec<(usize, usize)> {
    let befores = std::iter::once(before).chain(tokens.iter().copied());
    befores.zip(tokens.iter().copied()).collect()
}

pub(crate) fn write(path: &Path, made: &Made) {
    let metadata = Metadata {
        sampling: Some(Sampling {
            temperature: 1.0,
            ..Sampling::default()
        }),
        rollouts: made.record.then_some(RolloutRecord {
            version: 2,
            tokens: made.tokens,
            every: made.every,
            paths: made.paths,
            inclusion_probability: made.chance,
            temperature: made.temperature,
            target: made.target,
        }),
        command: Some("specgap capture --prompts p.txt".to_owned()),
        ..Metadata::default()
    };
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(5)
    };
    let mut writer = LogWriter::create(path, metadata, layout).unwrap();
    for (prompt, text) in TEXTS.iter().enumerate() {
        for (position, (before, token)) in behind(0, text).into_iter().enumerate() {
            let [target, draft] =
                [TARGET[before], DRAFT[before]].map(|row| row.map(|mass| mass.ln() as f32));
            let number = writer.positions();
            writer
                .append(&Position {
                    prompt_id: prompt as i64,
                    position: position as i64,
                    token: token as i64,
                    target: &target,
                    draft: &draft,
                })
                .unwrap();
            if made.head {
                let last = position + 1 == text.len();
                writer
                    .set_head(&HeadValues {
                        // Nobody reads the last token.
                        acceptance: (!last).then(|| said(before, token)),
                        overlap: Some(overlap(before) / 2.0),
                    })
                    .unwrap();
            }
            if position % made.every != 0 {
                continue;
            }
            for path in made.written.clone() {
                let tokens = rollout_tokens(prompt + path, position, made.tokens);
                let pairs = behind(before, &tokens);
                let list = |of: &dyn Fn(usize, usize) -> f64, there: bool| -> Vec<f64> {
                    let pairs = pairs.iter().filter(|_| there);
                    pairs.map(|&(before, token)| of(before, token)).collect()
                };
                let ids: Vec<u32> = tokens.iter().map(|&token| token as u32).collect();
                writer
                    .append_rollout(&Rollout {
                        position: number,
                        tokens: &ids,
                        q: &list(&|before, token| DRAFT[before][token], true),
                        argmax: &[],
                        top1: &list(&|before, _| top(before), true),
                        entropy: &list(&|before, _| entropy(before), made.entropy),
                        margin: &[],
                        acceptance: &list(&said, made.head),
                        target_p: &list(&|before, token| TARGET[before][token], made.target),
                        overlap: &list(&|before, _| overlap(before), made.target),
                        head_overlap: &list(&|before, _| overlap(before) / 2.0, made.head),
                    })
                    .unwrap();
            }
        }
    }
    writer.commit().unwrap();
}

fn settings(policies: &[&str]) -> LengthSettings {
    LengthSettings {
        policies: policies
            .iter()
            .map(|policy| policy.parse().unwrap())
            .collect(),
        verifiers: vec![ChainRule::TOKEN, ChainRule::BLOCK],
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        ..LengthSettings::default()
    }
}

fn measured(made: Made, settings: &LengthSettings) -> Result<LengthReport, ReplayError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, &made);
    measure_lengths(
        &[Log::open(&path).unwrap()],
        settings,
        "specgap length",
        &|_| {},
    )
}

fn of<'a>(report: &'a LengthReport, policy: &str, verifier: &str) -> &'a PolicyResult {
    let mut rows = report.results.iter();
    rows.find(|row| {
        format!("{}={}", row.policy, row.parameter) == policy && row.verifier == verifier
    })
    .unwrap_or_else(|| panic!("{policy}, {verifier} is missing"))
}

const EACH: [&str; 12] = [
    "fixed=3",
    "schedule=5",
    "confidence=0.2",
    "p-min=0.5",
    "svip=0.4",
    "adaedl=0.3",
    "cumulative=0.1",
    "overlap=0.5",
    "perfect=0.5",
    "specdec=0.4",
    "specdec-late=0.4",
    "overlap-head=0.1",
];

/// With a rollout at every position, by hand: w_s times what is drafted on each.
#[test]
fn a_report_adds_up_what_is_drafted_on_rollouts() {
    let report = measured(WHOLE, &settings(&EACH)).unwrap();
    assert_eq!(report.max_length, 4, "as long as the rollouts");
    let read = report.rollouts.as_ref().unwrap();
    assert_eq!((read.rollouts, read.tokens, read.target), (56, 4, true));
    let mut differ = 0;
    for name in EACH.iter().skip(2) {
        let policy: Policy = name.parse().unwrap();
        for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
            let what = format!("{name}, {verifier}");
            let (mut calls, mut drafts, mut unused, mut seen) = (0.0, 0.0, 0.0, 0.0);
            for (prompt, text) in TEXTS.iter().enumerate() {
                let pairs = behind(0, text);
                let places: Vec<TextPosition> = pairs.iter().map(|&(a, b)| place(a, b)).collect();
                let along = AlongText::new(policy, &places, &[], 4);
                let found = replay(verifier, &ratios(text), along.lengths()).unwrap();
                calls += found.calls;
                seen += found.drafts_at_least();
                for (start, weight) in found.starts.iter().enumerate() {
                    let tokens = rollout_tokens(prompt, start, 4);
                    let rollout = behind(pairs[start].0, &tokens);
                    let drafted = along
                        .drafted_on(&RolledOut {
                            start,
                            places: rollout.iter().map(|&(a, b)| place(a, b)).collect(),
                        })
                        .unwrap();
                    drafts += weight * drafted.tokens as f64;
                    unused += weight * f64::from(drafted.stopped);
                }
            }
            let row = of(&report, name, verifier.as_str());
            assert_eq!(row.kind, "estimate, rollouts", "{what}");
            let discards = (drafts + calls - 56.0) / 56.0;
            near(row.discard_rate.unwrap().mean, discards, &what);
            near(row.verification_rate.unwrap().mean, calls / 56.0, &what);
            let steps = if policy.stops_before_drawing() {
                drafts + unused
            } else {
                drafts
            };
            near(
                row.speedup.unwrap().mean,
                56.0 / (0.125 * steps + calls),
                &what,
            );
            near(
                row.break_even_cost_ratio.unwrap().mean,
                (56.0 - calls) / steps,
                &what,
            );
            assert!(row.discard_rate_at_least.is_none() && row.speedup_at_most.is_none());
            differ += usize::from((seen - drafts).abs() > 0.1);
        }
    }
    assert!(differ > 15, "{differ}");
    // Every family was chosen on one half, and is held against the fixed length.
    let chosen = &report.at_cost.as_ref().unwrap().policies;
    assert_eq!(chosen.len(), 2 * (EACH.len() - 1));
    for one in chosen {
        assert_eq!((one.chosen_on, one.reported_on), (2, 2));
        let fixed = &report.at_cost.as_ref().unwrap().chosen;
        let fixed = fixed
            .iter()
            .find(|fixed| fixed.verifier == one.verifier)
            .unwrap();
        let gain = one.speedup.mean - fixed.speedup.mean;
        near(one.over_fixed.mean, gain, &one.policy);
    }
    // The front: what it has nobody passes, and what it lacks somebody does.
    for row in &report.results {
        let rates = |row: &PolicyResult| {
            [
                row.discard_rate.unwrap().mean,
                row.verification_rate.unwrap().mean,
            ]
        };
        let passed = report.results.iter().any(|other| {
            let (a, b) = (rates(other), rates(row));
            (other.drafts, &other.verifier) == (row.drafts, &row.verifier)
                && a != b
                && a[0] <= b[0]
                && a[1] <= b[1]
        });
        assert_eq!(
            row.on_front,
            Some(!passed),
            "{} {}",
            row.policy,
            row.verifier
        );
    }
}

/// Several rollouts behind one position count as their mean.
#[test]
fn paths_that_start_together_count_as_their_mean() {
    let settings = settings(&["confidence=0.2", "svip=0.4", "specdec=0.4"]);
    let of = |paths, written| {
        let made = Made {
            paths,
            written,
            ..WHOLE
        };
        measured(made, &settings).unwrap()
    };
    let [both, first, second] = [of(2, 0..2), of(1, 0..1), of(1, 1..2)];
    assert_eq!(both.rollouts.as_ref().unwrap().rollouts, 112);
    let mut differ = 0;
    for (index, row) in both.results.iter().enumerate() {
        let [one, other] =
            [&first, &second].map(|report| report.results[index].discard_rate.unwrap().mean);
        let mean = row.discard_rate.unwrap().mean;
        near(mean, (one + other) / 2.0, &row.policy);
        differ += usize::from((one - other).abs() > 1e-3);
    }
    assert!(differ > 2, "{differ}");
}

/// Lists that are missing, and rollouts that end too early.
#[test]
fn what_rollouts_do_not_tell_stays_a_bound() {
    let names = ["fixed=2", "confidence=0.2", "svip=0.4", "perfect=0.5"];
    let without = Made {
        target: false,
        entropy: false,
        head: false,
        ..WHOLE
    };
    let report = measured(without, &settings(&names)).unwrap();
    assert!(
        of(&report, "confidence=0.2", "token")
            .discard_rate
            .is_some()
    );
    for (name, tensor) in [("svip", "rollout_entropy"), ("perfect", "rollout_target_p")] {
        let row = report
            .results
            .iter()
            .find(|row| row.policy == name)
            .unwrap();
        assert!(row.discard_rate.is_none() && row.discard_rate_at_least.is_some());
        assert_eq!(row.kind, "estimate");
        let mut lines = report.left_out.iter();
        assert!(
            lines.any(|line| line.contains(&format!("of {name}: ")) && line.contains(tensor)),
            "{:?}",
            report.left_out
        );
    }
    let cure = "specgap capture --prompts p.txt --rollouts 4 --every 4 --rollout-target";
    report.left_out.says(cure);

    // Rollouts of two tokens, and policies of up to four.
    let long = LengthSettings {
        max_length: Some(4),
        ..settings(&names)
    };
    let whole = measured(WHOLE, &long).unwrap();
    let short = measured(Made { tokens: 2, ..WHOLE }, &long).unwrap();
    let mut between = 0;
    for row in &short.results {
        let name = format!("{}={}", row.policy, row.parameter);
        let Some(low) = row.discard_rate_at_least else {
            assert!(row.discard_rate.is_some(), "{name}");
            continue;
        };
        let high = row.discard_rate_at_most.unwrap().mean;
        assert!(row.discard_rate.is_none() && low.mean < high, "{name}");
        let known = of(&whole, &name, &row.verifier);
        let discards = known.discard_rate.unwrap().mean;
        assert!(
            low.mean - 1e-9 <= discards && discards <= high + 1e-9,
            "{name}"
        );
        let fastest = row.speedup_at_most.unwrap().mean;
        assert!(known.speedup.unwrap().mean <= fastest + 1e-9, "{name}");
        between += 1;
    }
    assert!(between >= 4, "{between}");
    let says = "rollouts of 2 tokens end before these policies do, which may draft 4; ask for \
                --max-length 2";
    short.left_out.says(says);
    // Asked for no more than they have, they tell all.
    let asked = LengthSettings {
        max_length: None,
        ..long
    };
    let short = measured(Made { tokens: 2, ..WHOLE }, &asked).unwrap();
    assert_eq!(short.max_length, 2);
    assert!(short.results.iter().all(|row| row.discard_rate.is_some()));
}

#[test]
fn rollouts_and_heads_that_do_not_fit_are_refused() {
    let every = |made: Made| Made { every: 2, ..made };
    for (made, policies, words) in [
        (
            Made {
                temperature: 0.7,
                ..WHOLE
            },
            &["fixed=2"][..],
            &["drawn at temperature 0.7 and its text at 1", "⟨rollouts⟩"][..],
        ),
        (
            Made {
                chance: 0.25,
                ..WHOLE
            },
            &["fixed=2"],
            &["rollouts at 56 positions", "0.25", "14 on average"],
        ),
        (
            Made { paths: 2, ..WHOLE },
            &["fixed=2"],
            &[
                "has 1 rollout at position 0",
                "metadata.rollouts.paths says 2",
            ],
        ),
        (
            every(WHOLE),
            &["fixed=2"],
            &[
                "rollouts at 28 positions",
                "at 56 on average",
                "inclusion_probability",
            ],
        ),
        (
            every(Made {
                record: false,
                ..WHOLE
            }),
            &["fixed=2"],
            &["28 rollouts at 56 positions", "metadata.rollouts"],
        ),
        (
            Made {
                head: false,
                ..WHOLE
            },
            &["specdec=0.5"],
            &["has nothing of the tensor head_acceptance", "⟨policies⟩"],
        ),
        (
            Made {
                head: false,
                ..WHOLE
            },
            &["overlap-head=0.5"],
            &["has nothing of the tensor head_overlap"],
        ),
    ] {
        let error = measured(made, &settings(policies)).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error}\nwithout: {word}");
        }
    }
    // One everywhere needs no record.
    let plain = Made {
        record: false,
        ..WHOLE
    };
    assert!(measured(plain, &settings(&["confidence=0.4"])).is_ok());
}

/// The page says what was chosen and what is missing.
#[test]
fn the_page_has_fronts_and_the_command_that_logs_rollouts() {
    let names = ["fixed=1", "fixed=3", "svip=0.4", "svip=0.7", "perfect=0.5"];
    let with = measured(WHOLE, &settings(&names)).unwrap();
    let page = specgap::report::length::page(&with);
    let text = page.markdown();
    for words in [
        "from 56 rollouts of the draft, of 4 tokens each",
        "Each policy at its best, token verification",
        "Each policy at its best, block verification",
        "What a rule that stops by itself and needs no head adds to that speed-up: at c = \
         0.125 svip at ",
        "policies-token.svg",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    // A rule that looks at the target is a bound, not advice.
    assert!(!text.contains("perfect at 0.5"), "{text}");
    assert!(with.needs.is_none() && !text.contains("needs rollouts"));

    let without = crate::replay::report(&settings(&names));
    let needs = "specgap capture ... --rollouts 16 --every 4 --rollout-target";
    assert_eq!(without.needs.as_deref(), Some(needs));
    let page = specgap::report::length::page(&without);
    let text = page.markdown();
    for words in [
        "svip (draft's row; needs rollouts)",
        needs,
        "needs rollouts of the draft",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("Each policy at its best"));
}
