//! Do rounds replayed along text give what an independent implementation of the same
//! definitions gives? The values are from one in another language, over four texts of a
//! Markov pair: row t of the models predicts the token behind t, and each text starts behind
//! token 0.

use specgap::log::Log;
use specgap::text::{
    ChainVerifier, FixedLength, LengthReport, Policy, Settings, TextError, Texts, Timings,
    accepted_lengths, measure, replay,
};
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
const LENGTHS: [(usize, ChainVerifier, f64, Option<[f64; 2]>); 12] = [
    (1, ChainVerifier::Token, 0.6814005013975372, Some([34.12499114194077, 31.846419952805256])),
    (1, ChainVerifier::Block, 0.6814005013975372, Some([34.12499114194077, 31.846419952805256])),
    (1, ChainVerifier::GreedyBlock, 0.6814005013975372, None),
    (2, ChainVerifier::Token, 1.1435055839326902, Some([27.09708364861465, 49.51804266660174])),
    (2, ChainVerifier::Block, 1.1947740489380019, Some([26.543569288399368, 48.279206984741464])),
    (2, ChainVerifier::GreedyBlock, 1.2424857693335123, None),
    (3, ChainVerifier::Token, 1.4376782668037966, Some([24.323404503615798, 63.230238551849666])),
    (3, ChainVerifier::Block, 1.5596129138912997, Some([23.46219464596227, 60.52825079209139])),
    (3, ChainVerifier::GreedyBlock, 1.6794164254708148, None),
    (5, ChainVerifier::Token, 1.8301506089670938, Some([21.880376744883968, 88.05528326936258])),
    (5, ChainVerifier::Block, 2.180746497227734, Some([20.17499623452325, 80.84340295472487])),
    (5, ChainVerifier::GreedyBlock, 2.489268006441818, None),
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
        let (mut header, mut data) = (serde_json::Map::new(), Vec::<u8>::new());
        let n = self.target.len() / 5;
        for (name, rows) in [("target_probs", &self.target), ("draft_probs", &self.draft)] {
            let start = data.len();
            data.extend(rows.iter().flat_map(|x| x.to_le_bytes()));
            let entry = serde_json::json!({
                "dtype": "F64", "shape": [n, 5], "data_offsets": [start, data.len()]
            });
            header.insert(name.to_owned(), entry);
        }
        for (name, ids) in [
            ("prompt_id", &self.prompt),
            ("position", &self.position),
            ("token", &self.token),
        ] {
            if ids.is_empty() {
                continue;
            }
            let start = data.len();
            data.extend(ids.iter().flat_map(|x| x.to_le_bytes()));
            let entry = serde_json::json!({
                "dtype": "I64", "shape": [n], "data_offsets": [start, data.len()]
            });
            header.insert(name.to_owned(), entry);
        }
        header.insert(
            "__metadata__".to_owned(),
            serde_json::json!({ "specgap": metadata }),
        );
        let header = serde_json::to_vec(&header).unwrap();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(data);
        bytes
    }
}

const DRAWN: &str = r#"{"sampling": {"temperature": 1.0}}"#;

fn log(metadata: &str, changes: impl Fn(&mut Tensors)) -> Log {
    let texts: Vec<&[usize]> = TEXTS.iter().map(|text| &text[..]).collect();
    let bytes = file(&texts, metadata, changes);
    Log::from_bytes(Path::new("markov.safetensors"), bytes.into()).unwrap()
}

pub(crate) fn report(settings: &Settings) -> LengthReport {
    measure(&[log(DRAWN, |_| {})], settings, "specgap length", &|_| {}).unwrap()
}

#[test]
fn the_report_of_a_log_has_the_same_values() {
    let settings = Settings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        policies: [1, 2, 3, 5].map(Policy::fixed).to_vec(),
        ..Settings::default()
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
    let settings = Settings {
        timings: Some(Timings::cost_ratio(0.1).unwrap()),
        ..Settings::default()
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
        .filter(|row| row.verifier != "greedy-block")
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
    assert_eq!(names, ["token", "block"]);
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
        report(&Settings {
            timings: Some(timings),
            policies,
            verifiers: vec![ChainVerifier::Token],
            ..Settings::default()
        })
    };
    let (sure, unsure) = (with(0.0), with(0.05));
    // By hand for K = 2: rounds of 2, of 1 and of 0 drafts.
    let mut counts = [0.0; 3];
    for text in &TEXTS {
        let found = replay(ChainVerifier::Token, &ratios(text), &FixedLength(2)).unwrap();
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
            Err(error @ (TextError::Log { .. } | TextError::Position { .. })) => error.to_string(),
            other => panic!("{metadata}: {other:?}"),
        }
    };
    for (metadata, temperature, changes, words) in [
        (
            "{}",
            None,
            (|_| {}) as fn(&mut Tensors),
            "say so with --temperature T",
        ),
        (
            DRAWN,
            Some(0.7),
            |_| {},
            "drawn at temperature 1, and --temperature asks for 0.7",
        ),
        (
            DRAWN,
            Some(-1.0),
            |_| {},
            "--temperature -1 is out of range",
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
            "drawn with top-p 0.9, not from the rows",
        ),
        (
            r#"{"sampling": {"temperature": 1.0, "top_k": 40}}"#,
            None,
            |_| {},
            "without --top-k and --top-p",
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
    let report = report(&Settings::default());
    assert!(report.surprise.z.abs() < 4.0, "{:?}", report.surprise);
    // Text of another law: always the least likely token.
    let odd = log(DRAWN, |tensors| {
        for (token, row) in tensors.token.iter_mut().zip(tensors.target.chunks(5)) {
            let least = (0..5).min_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            *token = least as i64;
        }
    });
    let odd = measure(&[odd], &Settings::default(), "specgap length", &|_| {}).unwrap();
    assert!(odd.surprise.z > 4.0, "{:?}", odd.surprise);
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
    let full = report(&Settings::default());
    let cut = measure(
        &[Log::open(&path).unwrap()],
        &Settings::default(),
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
