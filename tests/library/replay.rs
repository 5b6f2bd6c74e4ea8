//! Do rounds replayed along text give what an independent implementation of the same
//! definitions gives? The values are from one in another language, over four texts of a
//! Markov pair: row t of the models predicts the token behind t, and each text starts behind
//! token 0.

use crate::log::{f64s, i64s, safetensors_that_say};
use specgap::log::Log;
use specgap::replay::{
    Drafts, LengthReport, LengthSettings, Policy, ReplayError, Texts, Timings, length_changes,
    measure_lengths,
};
use specgap::rounds::{ChainRule, FixedLength, accepted_lengths, replay};
use specgap::sampling::Cuts;
use std::path::Path;

#[rustfmt::skip]
pub(crate) const TARGET: [[f64; 5]; 5] = [
    [0.12844470012143927, 0.2492203503440701, 0.4576053020915713, 0.06089468842821435, 0.10383495901470514],
    [0.09320735147250618, 0.18613771741034724, 0.16175124676338531, 0.01412241572510382, 0.5447812686286574],
    [0.09244200349505137, 0.011831037090130829, 0.8866986277125971, 0.00547818593548999, 0.0035501457667306683],
    [0.40748337001475576, 0.10654125949644445, 0.39656434946759844, 0.00031443715250108575, 0.08909658386870024],
    [0.3541616499197277, 0.20773465217347561, 0.19321242263949953, 0.22578114999221408, 0.019110125275083066],
];
#[rustfmt::skip]
pub(crate) const DRAFT: [[f64; 5]; 5] = [
    [0.10146038237664444, 0.1375405478957458, 0.6421029348380958, 0.054796260508458955, 0.06409987438105517],
    [0.15053104203370335, 0.28480053743842143, 0.08905690759737704, 0.1603084274461765, 0.31530308548432173],
    [0.06886266774597245, 0.08664225719506437, 0.4883682167896971, 0.25542927756842976, 0.10069758070083631],
    [0.22422860588575283, 0.13340716987046577, 0.22263111388612328, 0.15985840941712318, 0.259874700940535],
    [0.22739555807931425, 0.13182836365229766, 0.2998149789583358, 0.1705447760857508, 0.1704163232243015],
];
pub(crate) const TEXTS: [[usize; 14]; 4] = [
    [1, 4, 3, 0, 2, 3, 0, 2, 2, 2, 2, 2, 2, 2],
    [2, 2, 2, 2, 0, 1, 4, 1, 4, 2, 2, 2, 2, 2],
    [2, 2, 2, 2, 0, 2, 2, 2, 2, 2, 2, 2, 4, 2],
    [1, 4, 3, 4, 0, 2, 2, 2, 0, 2, 2, 0, 2, 2],
];
/// K, the verifier, E[tau] over starts with K tokens left, and calls and drafts in all.
#[rustfmt::skip]
const LENGTHS: [(usize, ChainRule, f64, Option<[f64; 2]>); 12] = [
    (1, ChainRule::TOKEN, 0.6814005013975372, Some([34.12499114194077, 31.846419952805256])),
    (1, ChainRule::BLOCK, 0.6814005013975372, Some([34.12499114194077, 31.846419952805256])),
    (1, ChainRule::GREEDY_BLOCK, 0.6814005013975372, None),
    (2, ChainRule::TOKEN, 1.1435055839326902, Some([27.09708364861465, 49.51804266660174])),
    (2, ChainRule::BLOCK, 1.1947740489380019, Some([26.543569288399368, 48.279206984741464])),
    (2, ChainRule::GREEDY_BLOCK, 1.2424857693335123, None),
    (3, ChainRule::TOKEN, 1.4376782668037966, Some([24.323404503615798, 63.230238551849666])),
    (3, ChainRule::BLOCK, 1.5596129138912997, Some([23.46219464596227, 60.52825079209139])),
    (3, ChainRule::GREEDY_BLOCK, 1.6794164254708148, None),
    (5, ChainRule::TOKEN, 1.8301506089670938, Some([21.880376744883968, 88.05528326936258])),
    (5, ChainRule::BLOCK, 2.180746497227734, Some([20.17499623452325, 80.84340295472487])),
    (5, ChainRule::GREEDY_BLOCK, 2.489268006441818, None),
];

pub(crate) fn ratios(text: &[usize]) -> Vec<f64> {
    let before = std::iter::once(&0).chain(text);
    let pairs = before.zip(text);
    pairs
        .map(|(&before, &token)| DRAFT[before][token] / TARGET[before][token])
        .collect()
}

pub(crate) fn near(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error < 1e-12, "{what}: {found}, expected {expected}");
}

#[test]
fn the_engine_gives_the_other_implementations_values() {
    for (length, verifier, expected, counts) in LENGTHS {
        let what = format!("K = {length}, {verifier}");
        let (mut sum, mut starts) = (0.0, 0);
        let mut found = [0.0, 0.0];
        for text in &TEXTS {
            let ratios = ratios(text);
            let (here, count) = accepted_lengths(verifier, &ratios, length)[length - 1];
            sum += here;
            starts += count;
            if let Some(replayed) = replay(verifier, &ratios, &FixedLength(length)) {
                found[0] += replayed.calls;
                found[1] += replayed.drafts_set_at_start();
            }
        }
        near(sum / starts as f64, expected, &what);
        match counts {
            Some([calls, drafts]) => {
                near(found[0], calls, &what);
                near(found[1], drafts, &what);
            }
            None => assert!(!verifier.has_rounds()),
        }
    }
}

/// A safetensors file of rows as f64 probabilities.
fn file(texts: &[&[usize]], metadata: &str, changes: impl Fn(&mut Tensors)) -> Vec<u8> {
    let mut tensors = Tensors::default();
    for (prompt, text) in texts.iter().enumerate() {
        let mut before = 0;
        for (position, &token) in text.iter().enumerate() {
            tensors.target.extend(TARGET[before]);
            tensors.draft.extend(DRAFT[before]);
            tensors.prompt.push(prompt as i64);
            tensors.position.push(position as i64);
            tensors.token.push(token as i64);
            before = token;
        }
    }
    changes(&mut tensors);
    tensors.bytes(metadata)
}

#[derive(Default)]
struct Tensors {
    target: Vec<f64>,
    draft: Vec<f64>,
    prompt: Vec<i64>,
    position: Vec<i64>,
    token: Vec<i64>,
}

impl Tensors {
    fn bytes(&self, metadata: &str) -> Vec<u8> {
        let n = self.target.len() / 5;
        let (rows, numbers) = ([n, 5], [n]);
        let ids = [
            ("prompt_id", &self.prompt),
            ("position", &self.position),
            ("token", &self.token),
        ];
        let ids = ids.into_iter().filter(|(_, ids)| !ids.is_empty());
        let mut all = vec![
            ("target_probs", "F64", &rows[..], f64s(&self.target)),
            ("draft_probs", "F64", &rows[..], f64s(&self.draft)),
        ];
        all.extend(ids.map(|(name, ids)| (name, "I64", &numbers[..], i64s(ids))));
        safetensors_that_say(Some(metadata), &all)
    }
}

const DRAWN: &str = r#"{"sampling": {"temperature": 1.0}}"#;

fn log(metadata: &str, changes: impl Fn(&mut Tensors)) -> Log {
    let texts: Vec<&[usize]> = TEXTS.iter().map(|text| &text[..]).collect();
    let bytes = file(&texts, metadata, changes);
    Log::from_bytes(Path::new("markov.safetensors"), bytes.into()).unwrap()
}

pub(crate) fn report(settings: &LengthSettings) -> LengthReport {
    measure_lengths(&[log(DRAWN, |_| {})], settings, "specgap length", &|_| {}).unwrap()
}

#[test]
fn the_report_of_a_log_has_the_same_values() {
    let settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        policies: [1, 2, 3, 5].map(Policy::fixed).to_vec(),
        ..LengthSettings::default()
    };
    let report = report(&settings);
    assert_eq!(
        (report.of.positions, report.of.texts, report.of.clusters),
        (56, 4, 4)
    );
    for (length, verifier, expected, counts) in LENGTHS {
        let what = format!("K = {length}, {verifier}");
        let row = report.results.iter().find(|row| {
            row.verifier == verifier.as_str() && row.parameter.to_string() == length.to_string()
        });
        let row = row.unwrap_or_else(|| panic!("{what} is missing"));
        near(row.expected_accepted_length.unwrap().mean, expected, &what);
        let Some([calls, drafts]) = counts else {
            assert!(row.tokens_per_call.is_none() && row.speedup.is_none());
            continue;
        };
        near(row.tokens_per_call.unwrap().mean, 56.0 / calls, &what);
        near(row.verification_rate.unwrap().mean, calls / 56.0, &what);
        near(
            row.discard_rate.unwrap().mean,
            (drafts + calls - 56.0) / 56.0,
            &what,
        );
        near(
            row.speedup.unwrap().mean,
            56.0 / (0.125 * drafts + calls),
            &what,
        );
        near(
            row.break_even_cost_ratio.unwrap().mean,
            (56.0 - calls) / drafts,
            &what,
        );
    }
}

/// What no policy passes lies on the right side of every policy.
#[test]
fn bounds_bound() {
    let settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.1).unwrap()),
        ..LengthSettings::default()
    };
    let report = report(&settings);
    let rejected: f64 = TEXTS
        .iter()
        .flat_map(|text| ratios(text))
        .map(|ratio| 1.0 - ratio.min(1.0))
        .sum();
    let oracle = &report.bounds.oracle;
    near(oracle.verification_rate.mean, rejected / 56.0, "oracle");
    let rate = rejected / 56.0;
    near(
        oracle.speedup.unwrap().mean,
        1.0 / (0.1 + 0.9 * rate),
        "oracle's speed",
    );
    let to_the_end = report.bounds.oracle_to_the_end.verification_rate.mean;
    let blind = report.bounds.coin_blind.as_ref().unwrap();
    assert!(to_the_end > rate && blind.verification_rate.mean > to_the_end);
    assert!(blind.speedup.unwrap().mean < oracle.speedup.unwrap().mean);
    let blind_block = report.bounds.coin_blind_block.as_ref().unwrap();
    let mut policies = 0;
    for row in report
        .results
        .iter()
        .filter(|row| row.verifier != "greedy-block" && row.drafts == Drafts::Sampled)
    {
        let calls = row.verification_rate.unwrap().mean;
        let fixed = row.policy == "fixed" || row.policy == "schedule";
        assert_eq!(row.discard_rate.is_some(), fixed, "{}", row.policy);
        assert_eq!(row.speedup.is_some(), fixed, "{}", row.policy);
        assert_eq!(row.speedup_at_most.is_some(), !fixed, "{}", row.policy);
        let token = row.verifier == "token";
        if token {
            assert!(calls >= to_the_end, "{}: {calls}", row.policy);
        }
        if fixed {
            let most = if token { blind } else { blind_block };
            let speed = row.speedup.unwrap().mean;
            assert!(
                speed <= most.speedup.unwrap().mean,
                "{}: {speed}",
                row.policy
            );
        }
        policies += 1;
    }
    assert!(policies > 50, "{policies}");
    // The curve by cost falls, and held-out prompts are the other half.
    for pair in report.by_cost.windows(2) {
        assert!(pair[0].cost_ratio < pair[1].cost_ratio);
        assert!(pair[0].oracle.mean > pair[1].oracle.mean);
    }
    let chosen = &report.by_cost[0].chosen;
    let names: Vec<&str> = chosen.iter().map(|one| one.verifier.as_str()).collect();
    assert_eq!(names, ["token", "block", "token", "token"]);
    assert!(
        chosen
            .iter()
            .all(|one| one.chosen_on == 2 && one.reported_on == 2)
    );
}

/// A pass that takes longer for more tokens, and its error in the interval.
#[test]
fn timings_enter_by_their_table_and_their_errors() {
    let with = |error: f64| {
        let text = format!(
            "schema = 1\ntarget_step = {{ seconds = 2.0 }}\n\
             draft_step = {{ seconds = 0.25, standard_error = {error} }}\n\
             overhead = {{ seconds = 0.5 }}\n\
             verify = [{{ tokens = 1, seconds = 2.0 }}, {{ tokens = 3, seconds = 3.0 }}]\n"
        );
        let timings = Timings::parse(&text, false).unwrap();
        let policies = [1, 2, 3].map(Policy::fixed).to_vec();
        report(&LengthSettings {
            timings: Some(timings),
            policies,
            verifiers: vec![ChainRule::TOKEN],
            ..LengthSettings::default()
        })
    };
    let (sure, unsure) = (with(0.0), with(0.05));
    // By hand for K = 2: rounds of 2, of 1 and of 0 drafts.
    let mut counts = [0.0; 3];
    for text in &TEXTS {
        let found = replay(ChainRule::TOKEN, &ratios(text), &FixedLength(2)).unwrap();
        counts
            .iter_mut()
            .zip(&found.rounds)
            .for_each(|(sum, count)| *sum += count);
    }
    let time = counts[0] * 2.5 + counts[1] * 3.25 + counts[2] * 4.0;
    let speeds = [&sure, &unsure].map(|report| report.results[1].speedup.unwrap());
    near(speeds[0].mean, 112.0 / time, "speed");
    assert_eq!(speeds[0].mean, speeds[1].mean);
    let widths = speeds.map(|speed| speed.ci95[1] - speed.ci95[0]);
    assert!(widths[1] > widths[0] * 1.001, "{widths:?}");
    // Three drafts are a pass of four tokens, beyond the table.
    assert!(sure.results[2].speedup.is_none());
    assert!(
        sure.left_out
            .iter()
            .any(|line| line.starts_with("speed of lengths 3:"))
    );
}

#[test]
fn text_that_is_not_what_the_identities_need_is_refused() {
    let refused = |metadata: &str, temperature: Option<f64>, changes: fn(&mut Tensors)| {
        let read = Texts::read(&[log(metadata, changes)], temperature, &|_| {});
        match read {
            Err(error @ (ReplayError::Log(..) | ReplayError::Position(..))) => error.to_string(),
            other => panic!("{metadata}: {other:?}"),
        }
    };
    for (metadata, temperature, changes, words) in [
        (
            "{}",
            None,
            (|_| {}) as fn(&mut Tensors),
            "say so with ⟨temperature T⟩",
        ),
        (
            DRAWN,
            Some(0.7),
            |_| {},
            "drawn at temperature 1, and ⟨temperature⟩ asks for 0.7",
        ),
        (
            DRAWN,
            Some(-1.0),
            |_| {},
            "⟨temperature -1⟩ is out of range",
        ),
        (
            r#"{"sampling": {"temperature": 0.0}}"#,
            None,
            |_| {},
            "temperature 0, the most probable",
        ),
        (
            r#"{"sampling": {"temperature": 1.0, "top_p": 0.9}}"#,
            None,
            |_| {},
            "drawn from it at temperature 1 with top-p 0.9",
        ),
        (
            r#"{"sampling": {"temperature": 1.0, "top_k": 1}}"#,
            None,
            |_| {},
            "drawn from it at temperature 1 with top-k 1",
        ),
        (
            DRAWN,
            None,
            |tensors| tensors.token.clear(),
            "has no tensor token",
        ),
        (
            DRAWN,
            None,
            |tensors| tensors.prompt.clear(),
            "has no tensor prompt_id",
        ),
        (
            DRAWN,
            None,
            |tensors| tensors.position.clear(),
            "position 0: has no index in its text",
        ),
        (
            DRAWN,
            None,
            |tensors| tensors.token[5] = -1,
            "position 5: has no sampled token",
        ),
        (
            DRAWN,
            None,
            |tensors| tensors.position[3] = 7,
            "position 3: its index in the text",
        ),
        (
            DRAWN,
            None,
            |tensors| {
                // All of the row's mass on token 0; the text has token 4.
                tensors.target[5..10].copy_from_slice(&[1.0, 0.0, 0.0, 0.0, 0.0]);
            },
            "position 1: the target gives probability 0 to token 4",
        ),
    ] {
        let message = refused(metadata, temperature, changes);
        assert!(message.starts_with("markov.safetensors: "), "{message}");
        assert!(message.contains(words), "{message}\nwithout: {words}");
    }
    // What the log does not say, the caller may.
    let said = Texts::read(&[log("{}", |_| {})], Some(1.0), &|_| {}).unwrap();
    assert_eq!(
        said,
        Texts::read(&[log(DRAWN, |_| {})], None, &|_| {}).unwrap()
    );
    // A token that the draft never writes is rejected, and nothing else happens.
    let never = log(DRAWN, |tensors| {
        tensors.draft[5..10].copy_from_slice(&[1.0, 0.0, 0.0, 0.0, 0.0])
    });
    let texts = Texts::read(&[never], None, &|_| {}).unwrap();
    assert_eq!(texts.texts[0].ratios[1], 0.0);
}

/// Features of a position, and whether the text is surprising.
#[test]
fn places_say_what_policies_and_checks_ask_for() {
    let texts = Texts::read(&[log(DRAWN, |_| {})], None, &|_| {}).unwrap();
    let place = texts.texts[0].places[1];
    // Behind token 1 comes 4.
    near(place.draft, DRAFT[1][4], "q(y)");
    near(place.ratio, DRAFT[1][4] / TARGET[1][4], "r");
    near(place.top, 0.31530308548432173, "top");
    let entropy: f64 = DRAFT[1].iter().map(|q| -q * q.ln()).sum();
    near(place.entropy, entropy, "entropy");
    let overlap: f64 = TARGET[1].iter().zip(DRAFT[1]).map(|(p, q)| p.min(q)).sum();
    near(place.overlap, overlap, "overlap");
    let report = report(&LengthSettings::default());
    assert!(
        report.surprise.z.unwrap().abs() < 4.0,
        "{:?}",
        report.surprise
    );
    // Text of another law: always the least likely token.
    let odd = log(DRAWN, |tensors| {
        for (token, row) in tensors.token.iter_mut().zip(tensors.target.chunks(5)) {
            let least = (0..5).min_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            *token = least as i64;
        }
    });
    let odd = measure_lengths(
        &[odd],
        &LengthSettings::default(),
        "specgap length",
        &|_| {},
    )
    .unwrap();
    assert!(odd.surprise.z.unwrap() > 4.0, "{:?}", odd.surprise);
}

/// Rows that list some tokens only: where a token of the text is not listed, bounds.
#[test]
fn tokens_that_rows_do_not_list_are_between_bounds() {
    use specgap::log::{Dtype, KeptTokens, Layout, LogWriter, Metadata, Position, Sampling};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let metadata = Metadata {
        sampling: Some(Sampling {
            temperature: 1.0,
            ..Sampling::default()
        }),
        ..Metadata::default()
    };
    let write = |path: &Path, tokens: KeptTokens| {
        let layout = Layout {
            dtype: Dtype::F32,
            tokens,
            ..Layout::new(5)
        };
        let mut writer = LogWriter::create(path, metadata.clone(), layout).unwrap();
        for (prompt, text) in TEXTS.iter().enumerate() {
            let mut before = 0;
            for (position, &token) in text.iter().enumerate() {
                let [target, draft] =
                    [TARGET[before], DRAFT[before]].map(|row| row.map(|mass| mass.ln() as f32));
                writer
                    .append(&Position {
                        prompt_id: prompt as i64,
                        position: position as i64,
                        token: token as i64,
                        target: &target,
                        draft: &draft,
                    })
                    .unwrap();
                before = token;
            }
        }
        writer.commit().unwrap();
    };
    write(
        &path,
        KeptTokens::Top {
            count: 2,
            rest_temperatures: vec![1.0],
        },
    );
    let full = report(&LengthSettings::default());
    let cut = measure_lengths(
        &[Log::open(&path).unwrap()],
        &LengthSettings::default(),
        "",
        &|_| {},
    )
    .unwrap();
    assert!(
        full.of.unlisted == 0 && cut.of.unlisted > 0,
        "{}",
        cut.of.unlisted
    );
    let mut bounded = 0;
    for (whole, part) in full.results.iter().zip(&cut.results) {
        let what = format!("{} {} {}", part.policy, part.parameter, part.verifier);
        for (whole, part) in [
            (
                whole.expected_accepted_length,
                part.expected_accepted_length,
            ),
            (whole.verification_rate, part.verification_rate),
            (whole.discard_rate, part.discard_rate),
            (whole.tokens_per_call, part.tokens_per_call),
        ] {
            let (Some(whole), Some(part)) = (whole, part) else {
                continue;
            };
            assert!(whole.truncation.is_none());
            if let Some([low, high]) = part.truncation {
                bounded += 1;
                let slack = 1e-6;
                assert!(
                    low - slack <= whole.mean && whole.mean <= high + slack,
                    "{what}"
                );
                assert!(low <= part.mean && part.mean <= high, "{what}");
            }
        }
    }
    assert!(bounded > 40, "{bounded}");
    let [low, high] = cut.bounds.oracle.verification_rate.truncation.unwrap();
    let whole = full.bounds.oracle.verification_rate.mean;
    assert!(low <= whole + 1e-6 && whole <= high + 1e-6);
}

/// How often a token is drafted by the noise that gave it.
fn by_one_noise(p: &[f64], q: &[f64], token: usize) -> f64 {
    let scale = p[token] / q[token];
    let larger = p.iter().zip(q).map(|(p, q)| p.max(q * scale));
    if q[token] > 0.0 {
        1.0 / larger.sum::<f64>()
    } else {
        0.0
    }
}

/// One-hot drafts are kept where the text's token is the draft's likeliest, exact matches with
/// q(y), whatever else; each with its own best length, set against the others prompt by prompt.
#[test]
fn every_kind_of_drafts_has_its_own_coin() {
    let settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        policies: [1, 2, 3, 5].map(Policy::fixed).to_vec(),
        drafts: Drafts::ALL.to_vec(),
        ..LengthSettings::default()
    };
    let found = report(&settings);
    let coin = |drafts: Drafts, before: usize, token: usize| {
        let row = DRAFT[before];
        match drafts {
            Drafts::Sampled => row[token] / TARGET[before][token],
            Drafts::OneHot => f64::from(u8::from(row.iter().all(|&q| q <= row[token]))),
            Drafts::ExactMatch => row[token],
            Drafts::SharedGumbel => by_one_noise(&TARGET[before], &row, token),
        }
    };
    for drafts in Drafts::ALL {
        for length in [1, 2, 3, 5] {
            let what = format!("{drafts}, K = {length}");
            let (mut calls, mut drafted, mut accepted) = (0.0, 0.0, 0.0);
            for text in &TEXTS {
                let before = std::iter::once(&0).chain(text);
                let coins: Vec<f64> = (before.zip(text))
                    .map(|(&before, &token)| coin(drafts, before, token))
                    .collect();
                let replayed = replay(ChainRule::TOKEN, &coins, &FixedLength(length)).unwrap();
                calls += replayed.calls;
                drafted += replayed.drafts_set_at_start();
                for start in 0..coins.len() {
                    let mut product = 1.0;
                    for coin in coins[start..].iter().take(length) {
                        product *= coin.min(1.0);
                        accepted += product;
                    }
                }
            }
            let row = found.results.iter().find(|row| {
                row.drafts == drafts
                    && row.verifier == "token"
                    && row.parameter.to_string() == length.to_string()
            });
            let row = row.unwrap_or_else(|| panic!("{what} is missing"));
            near(row.tokens_per_call.unwrap().mean, 56.0 / calls, &what);
            let speed = 56.0 / (0.125 * drafted + calls);
            near(row.speedup.unwrap().mean, speed, &what);
            let everywhere = row.accepted_from_everywhere.unwrap().mean;
            near(everywhere, accepted / 56.0, &what);
        }
    }
    let at = found.at_cost.as_ref().unwrap();
    let ways: Vec<(Drafts, &str)> = (at.chosen.iter())
        .map(|one| (one.drafts, one.verifier.as_str()))
        .collect();
    let expected = [
        (Drafts::Sampled, "token"),
        (Drafts::Sampled, "block"),
        (Drafts::OneHot, "token"),
        (Drafts::ExactMatch, "token"),
        (Drafts::SharedGumbel, "token"),
    ];
    assert_eq!(ways, expected);
    assert_eq!(at.paired.len(), 10);
    for pair in &at.paired {
        let speed = |drafts: Drafts, verifier: &str| {
            let mut all = at.chosen.iter();
            let one = all.find(|one| one.drafts == drafts && one.verifier == verifier);
            one.unwrap().speedup.mean
        };
        let difference =
            speed(pair.drafts, &pair.verifier) - speed(pair.over_drafts, &pair.over_verifier);
        near(pair.speedup.mean, difference, "paired");
    }
    // E[tau] from the same starts never falls with K, whatever drafts and verifier.
    for rows in found.results.chunks(4) {
        let values = rows
            .iter()
            .map(|row| row.accepted_from_everywhere.unwrap().mean);
        assert!(values.is_sorted(), "{rows:?}");
    }
    let only = LengthSettings {
        drafts: vec![Drafts::ExactMatch],
        ..settings
    };
    let kinds: Vec<Drafts> = (report(&only).results.iter())
        .map(|row| row.drafts)
        .collect();
    assert_eq!(kinds, [Drafts::ExactMatch; 4]);
}

/// What is left of a row behind a top-k, a top-p and a min-p, by a sort of its own.
fn cut_row(row: &[f64; 5], cuts: Cuts) -> [f64; 5] {
    let mut order: Vec<usize> = (0..5).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
    order.truncate(cuts.top_k.unwrap_or(5));
    let kept: f64 = order.iter().map(|&token| row[token]).sum();
    if let Some(p) = cuts.top_p {
        let mut sum = 0.0;
        let enough = order.iter().position(|&token| {
            sum += row[token];
            sum >= p * kept
        });
        order.truncate(enough.unwrap() + 1);
    }
    if let Some(share) = cuts.min_p {
        let largest = row[order[0]];
        order.retain(|&token| row[token] >= share * largest);
    }
    let total: f64 = order.iter().map(|&token| row[token]).sum();
    let mut cut = [0.0; 5];
    for &token in &order {
        cut[token] = row[token] / total;
    }
    cut
}

/// Drafts from a cut row are those of the renormalised row, which the target's row never sees.
#[test]
fn drafts_of_cut_rows_have_the_coins_of_the_renormalised_row() {
    let cuts = |top_k, top_p, min_p| Cuts {
        top_k,
        top_p,
        min_p,
        cut_order: None,
    };
    let settings = |draft_cuts| LengthSettings {
        policies: [1, 2, 3, 5].map(Policy::fixed).to_vec(),
        verifiers: vec![ChainRule::TOKEN, ChainRule::BLOCK],
        drafts: Drafts::ALL.to_vec(),
        draft_cuts,
        ..LengthSettings::default()
    };
    let all = [
        cuts(Some(2), None, None),
        cuts(Some(1), None, None),
        cuts(None, Some(0.6), None),
        cuts(None, None, Some(0.5)),
        cuts(Some(4), Some(0.9), Some(0.4)),
    ];
    for draft_cuts in all {
        let found = report(&settings(draft_cuts));
        assert_eq!(found.draft_cuts, Some(draft_cuts));
        assert!(found.definitions.contains_key("draft cut"));
        for row in &found.results {
            let what = format!("{draft_cuts:?}, {}, {}", row.drafts, row.verifier);
            let verifier: ChainRule = row.verifier.parse().unwrap();
            let length: usize = row.parameter.to_string().parse().unwrap();
            let calls: f64 = (TEXTS.iter())
                .map(|text| {
                    let before = std::iter::once(&0).chain(text);
                    let coin = |(&before, &token): (&usize, &usize)| {
                        let q = cut_row(&DRAFT[before], draft_cuts);
                        match row.drafts {
                            Drafts::Sampled => q[token] / TARGET[before][token],
                            Drafts::OneHot => f64::from(u8::from(q.iter().all(|x| *x <= q[token]))),
                            Drafts::ExactMatch => q[token],
                            Drafts::SharedGumbel => by_one_noise(&TARGET[before], &q, token),
                        }
                    };
                    let coins: Vec<f64> = before.zip(text).map(coin).collect();
                    replay(verifier, &coins, &FixedLength(length))
                        .unwrap()
                        .calls
                })
                .sum();
            near(row.tokens_per_call.unwrap().mean, 56.0 / calls, &what);
        }
        if draft_cuts.top_k == Some(1) {
            // A row of one token is that token for certain, however it is drawn and kept.
            let of = |drafts: Drafts| {
                let rows = (found.results.iter())
                    .filter(move |row| row.drafts == drafts && row.verifier == "token");
                rows.map(|row| row.tokens_per_call).collect::<Vec<_>>()
            };
            assert_eq!(of(Drafts::Sampled), of(Drafts::OneHot));
            assert_eq!(of(Drafts::ExactMatch), of(Drafts::OneHot));
        }
    }
    // What keeps every token changes no bit.
    let whole = report(&settings(Cuts::default()));
    let kept = report(&settings(cuts(None, Some(1.0), Some(0.0))));
    assert_eq!((whole.draft_cuts, kept.draft_cuts), (None, None));
    assert_eq!(whole, kept);
    let five = report(&settings(cuts(Some(5), None, None)));
    for (one, other) in five.results.iter().zip(&whole.results) {
        near(
            one.tokens_per_call.unwrap().mean,
            other.tokens_per_call.unwrap().mean,
            "top-k 5 of 5",
        );
    }
    let refused = measure_lengths(
        &[log(DRAWN, |_| {})],
        &settings(cuts(Some(0), None, None)),
        "",
        &|_| {},
    );
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("⟨draft-top-k 0⟩"), "{message}");
}

/// Two numbers a token give what full rows of the same text give.
#[test]
fn two_numbers_a_token_are_a_whole_log() {
    use serde_json::Value;
    use specgap::import::open_tokens;
    use specgap::report::length::page;
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, columns: usize| {
        let names = "prompt,position,logp,logq,hit,p_hit,max_q,overlap";
        let mut text = names.split(',').take(columns).collect::<Vec<_>>().join(",");
        for (prompt, tokens) in TEXTS.iter().enumerate() {
            let mut before = 0;
            for (position, &token) in tokens.iter().enumerate() {
                let (p, q) = (TARGET[before], DRAFT[before]);
                let likeliest = (0..5).max_by(|&a, &b| q[a].total_cmp(&q[b])).unwrap();
                let overlap: f64 = p.iter().zip(q).map(|(p, q)| p.min(q)).sum();
                let line = format!(
                    "p{prompt},{position},{},{},{},{},{},{overlap}",
                    p[token].ln(),
                    q[token].ln(),
                    u8::from(likeliest == token),
                    p[likeliest],
                    q[likeliest],
                );
                text.push('\n');
                text.push_str(&line.split(',').take(columns).collect::<Vec<_>>().join(","));
                before = token;
            }
        }
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        open_tokens(&path, None).unwrap()
    };
    let settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        ..LengthSettings::default()
    };
    let full = report(&settings);
    let found = |log: Log| measure_lengths(&[log], &settings, "specgap length", &|_| {}).unwrap();
    fn alike(one: &Value, other: &Value, what: &str) {
        match (one, other) {
            (Value::Number(a), Value::Number(b)) => {
                near(a.as_f64().unwrap(), b.as_f64().unwrap(), what);
            }
            (Value::Array(a), Value::Array(b)) => {
                assert_eq!(a.len(), b.len(), "{what}");
                a.iter().zip(b).for_each(|(a, b)| alike(a, b, what));
            }
            (Value::Object(a), Value::Object(b)) => {
                assert!(a.keys().eq(b.keys()), "{what}: {a:?} {b:?}");
                for (name, value) in a {
                    // Which policies there are is another thing.
                    if name != "on_front" {
                        alike(value, &b[name], &format!("{what}, {name}"));
                    }
                }
            }
            _ => assert_eq!(one, other, "{what}"),
        }
    }
    for (name, columns) in [("two.csv", 4), ("hit.csv", 5), ("all.csv", 8)] {
        let tokens = found(written(name, columns));
        assert_eq!(tokens.surprise.z, None);
        let mut families = std::collections::BTreeSet::new();
        for row in &tokens.results {
            let of_full = full.results.iter().find(|other| {
                other.policy == row.policy
                    && other.parameter == row.parameter
                    && (other.drafts, &other.verifier) == (row.drafts, &row.verifier)
            });
            let what = format!("{name}, {} {}, {}", row.policy, row.parameter, row.verifier);
            let mut of_full = serde_json::to_value(of_full.unwrap()).unwrap();
            let row_of = serde_json::to_value(row).unwrap();
            if row_of.get("expected_accepted_length_by_means").is_none() {
                let fields = of_full.as_object_mut().unwrap();
                fields.remove("expected_accepted_length_by_means");
            }
            alike(&row_of, &of_full, &what);
            families.insert(format!("{} {}", row.drafts, row.policy));
        }
        let has = |name: &str| families.contains(name);
        // Without a hit nothing is known of one-hot drafts, and that is said.
        assert_eq!(has("one-hot fixed"), columns > 4, "{families:?}");
        let said = tokens
            .left_out
            .iter()
            .any(|line| line.starts_with("one-hot drafts: "));
        assert_eq!(said, columns == 4);
        assert!(has("exact-match fixed") && has("sampled cumulative"));
        assert!(!has("sampled svip") && has("sampled p-min") == (columns == 8));
        let bounds = |report: &LengthReport| serde_json::to_value(&report.bounds).unwrap();
        alike(&bounds(&tokens), &bounds(&full), name);
        if columns == 8 {
            let at = |report: &LengthReport| serde_json::to_value(&report.by_cost[2].chosen);
            assert_eq!(
                at(&tokens).unwrap().as_array().unwrap().len(),
                at(&full).unwrap().as_array().unwrap().len()
            );
            // Digit for digit, as it is printed.
            let printed = |report: &LengthReport| {
                let text = page(report).text(200, true);
                let from = text.find("\nWhat to set, by cost").unwrap();
                let to = text.find("\nPolicies that stop by themselves").unwrap();
                text[from..to].to_owned()
            };
            assert_eq!(printed(&tokens), printed(&full));
        }
        let asked = LengthSettings {
            drafts: vec![Drafts::OneHot],
            ..settings.clone()
        };
        let asked = measure_lengths(&[written(name, columns)], &asked, "specgap length", &|_| {});
        match asked {
            Ok(_) => assert!(columns > 4),
            Err(error) => {
                assert!(
                    columns == 4 && error.to_string().contains("a column hit"),
                    "{error}"
                );
            }
        }
    }
}

/// E[tau] with the last coin by its mean: the same on average over many texts, and narrower.
#[test]
fn the_last_coin_by_its_mean_has_less_scatter() {
    let row = report(&LengthSettings::default());
    let mut narrower = 0;
    let mut rows = 0;
    for row in row
        .results
        .iter()
        .filter(|row| row.drafts == Drafts::Sampled)
    {
        let Some(by_means) = row.expected_accepted_length_by_means else {
            let has = row.expected_accepted_length.is_some();
            assert!(row.verifier != "token" || !has, "{row:?}");
            continue;
        };
        let width = |ci: [f64; 2]| ci[1] - ci[0];
        rows += 1;
        let coins = row.expected_accepted_length.unwrap();
        narrower += usize::from(width(by_means.ci95) < width(coins.ci95));
    }
    assert!(rows > 8 && 2 * narrower > rows, "{narrower} of {rows}");
}

/// `gap` tells a single draft's acceptance by the text's tokens too, at the text's temperature
/// alone, and whether the text looks drawn from its rows.
#[test]
fn gap_has_the_acceptance_along_the_text() {
    use specgap::gap::{Settings as GapSettings, measure as gap};
    let settings = GapSettings::new(&[1.0, 0.5], &[2], 0).unwrap();
    let found = gap(&[log(DRAWN, |_| {})], &settings, "specgap gap", &|_| {}).unwrap();
    let accepted: f64 = (TEXTS.iter())
        .flat_map(|text| ratios(text))
        .map(|ratio| ratio.min(1.0))
        .sum();
    let at = |temperature: f64| {
        let mut rows = found.overlap.iter();
        rows.find(|row| row.temperature == temperature)
            .unwrap()
            .along_text
    };
    let along = at(1.0).unwrap();
    near(along.mean, accepted / 56.0, "along the text");
    assert!(along.truncation.is_none() && along.ci95[0] < along.mean);
    assert!(at(0.5).is_none());
    let of_text = report(&LengthSettings::default()).surprise;
    let here = found.logs[0].surprise.unwrap();
    near(here.z.unwrap(), of_text.z.unwrap(), "z");
    let untold = gap(&[log("{}", |_| {})], &settings, "specgap gap", &|_| {}).unwrap();
    assert!(untold.logs[0].surprise.is_none());
}

/// A text is held against rows that are cut in the order that is asked for, where its log says none.
#[test]
fn gap_holds_a_text_against_rows_in_the_order_that_is_asked_for() {
    use specgap::gap::{Settings as GapSettings, measure as gap};
    use specgap::sampling::Cuts;
    let z = |asked: Option<&str>, said: &str| {
        let cuts = Cuts {
            top_p: Some(0.8),
            cut_order: asked.map(|order| order.parse().unwrap()),
            ..Cuts::default()
        };
        let settings = GapSettings::new(&[0.5], &[2], 0).unwrap().served(cuts);
        let sampling = format!(r#"{{"sampling": {{"temperature": 0.5, "top_p": 0.8{said}}}}}"#);
        let found = gap(
            &[log(&sampling, |_| {})],
            &settings.unwrap(),
            "specgap gap",
            &|_| {},
        );
        let found = found.unwrap();
        (
            found.logs[0].surprise.unwrap().z,
            found.overlap[0].along_text,
        )
    };
    let last = r#", "cut_order": "llama.cpp""#;
    let (found, along) = z(Some("llama.cpp"), "");
    assert_eq!((found, along), z(Some("llama.cpp"), last));
    assert!(along.is_some());
    assert_eq!(z(None, ""), z(Some("transformers"), ""));
    assert_ne!(z(None, "").0, found);
    // How it was drawn is not changed by what is asked for.
    assert_eq!(z(None, last).0, found);
    assert_eq!(z(Some("transformers"), last), (found, None));
}

/// A text is held against the rows that it was drawn from, min-p and all.
#[test]
fn gap_holds_a_text_against_the_tokens_that_min_p_keeps() {
    use specgap::gap::{Settings as GapSettings, measure as gap};
    let settings = GapSettings::new(&[1.0], &[2], 0).unwrap();
    let z = |metadata: &str| {
        let likeliest = log(metadata, |tensors| {
            for (token, row) in tensors.token.iter_mut().zip(tensors.target.chunks(5)) {
                let most = (0..5).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
                *token = most as i64;
            }
        });
        let found = gap(&[likeliest], &settings, "specgap gap", &|_| {}).unwrap();
        found.logs[0].surprise.unwrap().z
    };
    // Of the whole rows such a text is not; of rows cut to their likeliest token it is.
    let whole = z(DRAWN).unwrap();
    assert!(whole < -3.0, "{whole}");
    let cut = z(r#"{"sampling": {"temperature": 1.0, "min_p": 1.0}}"#);
    assert_eq!(cut, Some(0.0));
}

/// The first sentence is the best of what needs nothing new, and ranks nothing that its paired
/// interval does not tell apart; what a head adds comes behind it, with whether it is worth it.
#[test]
fn the_first_sentence_ranks_only_what_is_told_apart() {
    use specgap::replay::{ChosenPolicy, Parameter, RolloutsRead};
    use specgap::report::length::page;
    use specgap::statistics::Estimate;
    let settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        ..LengthSettings::default()
    };
    let mut made = report(&settings);
    made.rollouts = Some(RolloutsRead {
        rollouts: 9,
        tokens: 4,
        inclusion_probability: vec![0.25],
        target: false,
    });
    let estimate = |mean: f64, half: f64| Estimate {
        mean,
        ci95: [mean - half, mean + half],
        truncation: None,
        between: None,
    };
    let at = made.at_cost.as_mut().unwrap();
    for (one, (speed, length)) in
        at.chosen
            .iter_mut()
            .zip([(1.43, 2), (1.46, 3), (1.3, 1), (1.2, 1)])
    {
        one.speedup = estimate(speed, 0.08);
        one.parameter = length;
    }
    for pair in &mut at.paired {
        let is = |drafts, verifier: &str| pair.drafts == drafts && pair.verifier == verifier;
        pair.speedup = match () {
            () if is(Drafts::Sampled, "block") => estimate(0.03, 0.04),
            () if is(Drafts::OneHot, "token") => estimate(-0.13, 0.05),
            () => estimate(-0.23, 0.05),
        };
    }
    at.policies = [
        ("cumulative", 1.44, 0.010, 0.005),
        ("specdec-late", 1.46, 0.03, 0.01),
    ]
    .map(|(policy, speed, more, half)| ChosenPolicy {
        policy: policy.to_owned(),
        parameter: Parameter::Threshold(0.5),
        verifier: "token".to_owned(),
        chosen_on: 2,
        speedup_where_chosen: 2.0,
        reported_on: 2,
        speedup: estimate(speed, 0.08),
        over_fixed: estimate(more, half),
    })
    .to_vec();
    let said = |made: &LengthReport| {
        let advice = length_changes(made);
        let made = LengthReport {
            advice,
            ..made.clone()
        };
        let text = page(&made).text(10_000, true).replace("\n    ", " ");
        text.split("\nWhat to set, by cost")
            .next()
            .unwrap()
            .to_owned()
    };
    let text = said(&made);
    for words in [
        "Draft 2 tokens a round with token verification: 1.43 ± 0.08 times",
        "Block against token verification at c = 0.125, each at its own best length, 3 and 2: no \
         difference shown, 0.03 ± 0.04.",
        "One-hot drafts, the default of vLLM, llama.cpp and TensorRT-LLM, at c = 0.125: 1 token a \
         round, 1.30 ± 0.08 times. Sampled drafts kept with min(1, p/q)",
        "with 2 tokens: 0.13 ± 0.05 more.",
        "needs no head adds to that speed-up: at c = 0.125 cumulative at 0.5, 0.010 ± 0.005 more \
         than 2 tokens (less than 1%: not worth it)",
        "trained head that stops drafting adds to that speed-up: at c = 0.125 specdec-late at 0.5, \
         0.030 ± 0.010 more than 2 tokens (worth it)",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    // Told apart, but not worth a change; then worth it.
    for (more, expected) in [(0.010, "token"), (0.030, "block")] {
        let at = made.at_cost.as_mut().unwrap();
        at.paired[0].speedup = estimate(more, 0.005);
        let text = said(&made);
        let words = format!("a round with {expected} verification: ");
        let first = text
            .lines()
            .find(|line| line.contains("Draft ") && line.contains("a round with"));
        assert!(first.unwrap().contains(&words), "{text}");
    }
}
