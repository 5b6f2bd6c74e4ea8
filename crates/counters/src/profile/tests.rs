//! Each file read back by the rules of the code that reads it.

use super::*;
use serde_json::Value;
use specgap_statistics::Estimate;
use specgap_statistics::curve::Curve;
use std::collections::BTreeMap;

fn estimate(mean: f64) -> Estimate {
    Estimate::plus_minus(mean, 0.01)
}

/// A round of `length` drafts of which each is accepted with 3/4, 2/4, 3/4, 2/4, ...
fn curve(length: usize) -> Curve {
    let mut reached = 1.0;
    let shares = (0..length).map(|i| {
        reached *= if i % 2 == 0 { 0.75 } else { 0.5 };
        reached
    });
    let shares: Vec<f64> = shares.collect();
    let all = [1.0].iter().chain(&shares);
    let next = shares.iter().chain(&[0.0]);
    Curve {
        length,
        marginal: shares.iter().map(|&share| estimate(share)).collect(),
        acceptance_length: estimate(1.0 + shares.iter().sum::<f64>()),
        histogram: Some(all.zip(next).map(|(here, next)| here - next).collect()),
        rounds: Some(1000),
    }
}

fn source() -> Source {
    Source {
        target: Some("org/target\n- model".to_owned()),
        draft: Some("draft|small".to_owned()),
        drafts: Some("one-hot".to_owned()),
        verifier: Some("token".to_owned()),
        temperature: Some(0.7),
        prompts: Some(40),
        positions: Some(1866),
        kind: "estimates, exact given the text".to_owned(),
        command: "specgap length log --profile card".to_owned(),
        tool: "specgap 0.1.0".to_owned(),
    }
}

fn profile() -> Profile {
    // In any order.
    Profile::new([4, 1, 2, 3].map(curve).to_vec(), source()).unwrap()
}

fn files(format: Format) -> BTreeMap<String, String> {
    let files = texts(&profile(), format);
    assert!(files.keys().all(|name| is_of_a_profile(name)), "{files:?}");
    files
}

/// The files of a profile, by name.
fn texts(profile: &Profile, format: Format) -> BTreeMap<String, String> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (profile.files(format).unwrap().into_iter())
        .map(|(name, bytes)| (name, text(bytes)))
        .collect()
}

/// Returns what all who take rates refuse: vLLM's `_resolve_synthetic_acceptance_rates` and llama.cpp's
/// `common_speculative_synth_rates_resolve`.
fn taken(rates: &[f64], tokens: usize) {
    assert_eq!(rates.len(), tokens);
    assert!(rates.iter().all(|rate| (0.0..=1.0).contains(rate)));
    assert!(rates.windows(2).all(|pair| pair[1] <= pair[0]), "{rates:?}");
}

/// The mean length of rounds that are drawn by the conditional rates that both make of them.
fn drawn(rates: &[f64]) -> f64 {
    let (mut before, mut reached, mut mean) = (1.0, 1.0, 1.0);
    for &rate in rates {
        let conditional = if before == 0.0 { 0.0 } else { rate / before };
        reached *= conditional;
        mean += reached;
        before = rate;
    }
    mean
}

fn same(found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs();
    assert!(off <= tolerance, "{found}, not {expected}");
}

#[test]
fn vllm_takes_a_file_a_length() {
    let files = files(Format::Vllm);
    assert_eq!(files.len(), 4);
    for length in 1..=4usize {
        let text = &files[&format!("vllm-k{length}.json")];
        let config: BTreeMap<String, Value> = serde_json::from_str(text).unwrap();
        // `SpeculativeConfig` has no other fields of what is written here.
        let names = [
            "num_speculative_tokens",
            "rejection_sample_method",
            "synthetic_acceptance_rates",
        ];
        assert!(config.keys().eq(names), "{config:?}");
        assert_eq!(config[names[0]], length);
        assert_eq!(config[names[1]], "synthetic");
        let rates: Vec<f64> = serde_json::from_value(config[names[2]].clone()).unwrap();
        taken(&rates, length);
        same(drawn(&rates), curve(length).acceptance_length.mean, 1e-5);
    }
}

/// Lines as `docker run --env-file` reads them.
fn variables(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once('=').unwrap()).collect()
}

#[test]
fn llama_cpp_takes_as_many_rates_as_drafts() {
    for (length, text) in (1..=4usize).zip(files(Format::LlamaCpp).values()) {
        let set = variables(text);
        assert_eq!(set["LLAMA_ARG_SPEC_DRAFT_N_MAX"], length.to_string());
        let rates = set["LLAMA_ARG_SPEC_SYNTH_RATES"].split(',');
        let rates: Vec<f64> = rates.map(|rate| rate.parse().unwrap()).collect();
        taken(&rates, length);
        same(drawn(&rates), curve(length).acceptance_length.mean, 1e-5);
        assert_eq!(set.len(), 2);
    }
}

#[test]
fn sglang_draws_the_mean_with_the_bonus_token() {
    for (length, text) in (1..=4usize).zip(files(Format::Sglang).values()) {
        let set = variables(text);
        // The only method whose mean is the number, and the only tokens that are real ones.
        assert_eq!(set["SGLANG_SIMULATE_ACC_METHOD"], "match-expected");
        assert_eq!(set["SGLANG_SIMULATE_ACC_TOKEN_MODE"], "real-draft-token");
        let mean: f64 = set["SGLANG_SIMULATE_ACC_LEN"].parse().unwrap();
        // `_sample_simulated_acc_len`, with one more than the steps as the most.
        let most = length as f64 + 1.0;
        let mean = mean.min(most).max(1.0);
        let lower = mean.floor();
        let upper = if lower < most { lower + 1.0 } else { lower };
        let weight = mean - lower;
        let expected = (1.0 - weight) * lower + weight * upper;
        same(expected, curve(length).acceptance_length.mean, 1e-4);
        assert_eq!(set.len(), 3);
    }
}

#[test]
fn tensorrt_llm_draws_the_mean_without_it() {
    for (length, text) in (1..=4usize).zip(files(Format::TensorrtLlm).values()) {
        let set = variables(text);
        let forced = set["TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"];
        let forced: f64 = forced.parse().unwrap();
        // `get_force_num_accepted_tokens_float`: whole ones always, the rest as a probability.
        assert!(forced != 0.0 && forced <= length as f64);
        let always = forced.trunc().min(length as f64);
        let put_out = 1.0 + always + forced.fract();
        same(put_out, curve(length).acceptance_length.mean, 1e-4);
    }
}

/// `_process_lengths` and `build_profile`, from the histogram alone.
#[test]
fn model_optimizer_finds_what_follows_from_the_histogram() {
    let files = files(Format::ModelOptimizer);
    let text = &files["speculation_profile.json"];
    let value: Value = serde_json::from_str(text).unwrap();
    let length = value["num_speculative_tokens"].as_u64().unwrap() as usize;
    assert_eq!(length, 4);
    let histogram: BTreeMap<usize, f64> =
        serde_json::from_value(value["acceptance_length_histogram"].clone()).unwrap();
    let all: f64 = histogram.values().sum();
    same(all, 1000.0, 1e-3);
    let (mut running, mut before) = (all, 1.0);
    let mut found = BTreeMap::new();
    for (put_out, rounds) in &histogram {
        let joint = running / all;
        found.insert(*put_out, (joint / before, joint));
        before = joint;
        running -= rounds;
    }
    let rates = |field: &str| -> Vec<f64> { serde_json::from_value(value[field].clone()).unwrap() };
    let conditional = rates("conditional_accept_rates");
    let marginal = rates("marginal_accept_rates");
    taken(&marginal, length);
    assert_eq!(conditional.len(), length);
    for i in 0..length {
        // Lengths count the bonus token and drafts do not: off by two.
        let (given, joint) = found.get(&(i + 2)).copied().unwrap_or((0.0, 0.0));
        same(conditional[i], given, 1e-5);
        same(marginal[i], joint, 1e-5);
    }
    let tokens = histogram.iter().map(|(n, rounds)| *n as f64 * rounds);
    let mean = tokens.sum::<f64>() / all;
    same(value["mean_accept_length"].as_f64().unwrap(), mean, 1e-5);
    let checks = &value["validation"];
    assert_eq!(checks["mean_consistency"]["passed"], true);
    assert_eq!(checks["marginal_monotonicity"]["passed"], true);
    let of_two = value["accept_length_by_k"]["2"].as_f64().unwrap();
    same(of_two, 2.125, 1e-6);
    let conditions = &value["measurement_conditions"];
    assert_eq!(conditions["drafts"], "one-hot");
    assert_eq!(conditions["temperature"], 0.7);
    assert_eq!(conditions["accept_length_by_k_plus_minus"]["4"], 0.01);
    assert_eq!(value["verification_method"], "longest_prefix");
    assert_eq!(value["schema_version"], "1.0");
    assert_eq!(value["measured"], true);
}

/// `golden_length`: one model, a mode, whole numbers of tokens, a mean in [1, tokens + 1].
#[test]
fn inferencex_finds_one_model_and_one_mode() {
    let files = files(Format::Inferencex);
    let text = &files["inferencex.yaml"];
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let level = |spaces: usize| {
        let depth = |line: &&str| line.len() - line.trim_start().len() == spaces;
        lines.clone().filter(depth).collect::<Vec<&str>>()
    };
    assert_eq!(level(0), ["\"org/target - model\":"]);
    assert_eq!(level(2), ["  thinking_off:"]);
    let values: BTreeMap<u64, f64> = (level(4).into_iter())
        .map(|line| {
            let (tokens, value) = line.trim().split_once(": ").unwrap();
            (tokens.parse().unwrap(), value.parse().unwrap())
        })
        .collect();
    assert_eq!(values.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    for (tokens, value) in values {
        assert!((1.0..=tokens as f64 + 1.0).contains(&value));
        let mean = curve(tokens as usize).acceptance_length.mean;
        same(value, mean, 0.005 + 1e-9);
    }
}

#[test]
fn a_card_has_every_number_with_its_interval() {
    let files = files(Format::Card);
    let card = &files["card.md"];
    for words in [
        "|2|2.125 ± 0.010|0.750 ± 0.010, 0.375 ± 0.010|0.750, 0.500|",
        "over prompts",
        "- target org/target - model, draft draft\\|small\n",
        "one-hot drafts, token verification, temperature 0.7",
    ] {
        assert!(card.contains(words), "{card}");
    }
    // Where bounds are wider than the interval they stand alone.
    let card = |curve: Curve| {
        let profile = Profile::new(vec![curve], source()).unwrap();
        texts(&profile, Format::Card).remove("card.md").unwrap()
    };
    let mut open = curve(1);
    open.acceptance_length.truncation = Some([1.5, 1.9]);
    open.marginal[0].ci95 = [0.75, 0.75];
    let text = card(open);
    assert!(text.contains("|1|1.500 to 1.900|0.750|0.750|"), "{text}");
    let mut open = curve(2);
    open.marginal[0].truncation = Some([0.7, 0.8]);
    let text = card(open);
    let row = "|2|2.125 ± 0.010|0.700 to 0.800, 0.375 ± 0.010|–, –|";
    assert!(text.contains(row), "{text}");
}

/// No draft is ever accepted, and all are: ends of every range.
#[test]
fn ends_are_taken_too() {
    for mean in [0.0, 1.0] {
        let length = 3;
        let all = Curve {
            length,
            // Sums that are off in the last digit.
            marginal: [0.0, 1e-12, -1e-12].map(|off| estimate(mean + off)).into(),
            acceptance_length: estimate(1.0 + 3.0 * mean + 1e-12),
            histogram: None,
            rounds: None,
        };
        let profile = Profile::new(vec![all], Source::default()).unwrap();
        let file = |format| texts(&profile, format).into_values().next().unwrap();
        let config: Value = serde_json::from_str(&file(Format::Vllm)).unwrap();
        let rates = config["synthetic_acceptance_rates"].clone();
        taken(&serde_json::from_value::<Vec<f64>>(rates).unwrap(), length);
        let value: Value = serde_json::from_str(&file(Format::ModelOptimizer)).unwrap();
        assert_eq!(value["acceptance_length_histogram"], Value::Null);
        let last = value["conditional_accept_rates"][2].as_f64().unwrap();
        assert_eq!(last, mean);
        assert!(file(Format::Inferencex).contains(&format!("    3: {:.2}\n", 1.0 + 3.0 * mean)));
        let (sglang, mean) = (file(Format::Sglang), 1.0 + 3.0 * mean);
        let set = variables(&sglang);
        assert_eq!(set["SGLANG_SIMULATE_ACC_LEN"], mean.to_string());
    }
}

#[test]
fn what_no_rounds_can_have_is_refused() {
    assert_eq!(Profile::new(Vec::new(), source()), Err(ProfileError::Empty));
    let refused = |change: &dyn Fn(&mut Curve), words: &str| {
        let mut wrong = curve(2);
        change(&mut wrong);
        let found = Profile::new(vec![curve(1), wrong], source());
        let error = found.unwrap_err().to_string();
        assert!(error.contains("K = ") && error.contains(words), "{error}");
    };
    refused(&|curve| curve.marginal[1].mean = 0.8, "S_2 is 0.8");
    refused(&|curve| curve.marginal[0].mean = f64::NAN, "S_1 is NaN");
    refused(&|curve| curve.marginal[0].mean = 1.5, "S_1 is 1.5");
    refused(&|curve| _ = curve.marginal.pop(), "has 1 shares");
    refused(&|curve| curve.acceptance_length.mean = 3.5, "length is 3.5");
    refused(&|wrong| *wrong = curve(1), "K = 1: is there twice");
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
}
