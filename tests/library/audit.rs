//! Does an audit find every bug of its table, blame the right part, and leave honest engines
//! alone? Engines are simulated on the rows of the shipped log. Seeds are fixed.

#[path = "../engine_log/mod.rs"]
mod engine_log;

use engine_log::{at_places, shipped, small, without_bonus, write};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use specgap::audit::{
    AuditError, AuditReport, BugName, Conclusion, Outcome, Rule, Settings, SimulatedLog, Simulator,
    audit, negative_control,
};
use specgap::log::{Dtype, Layout, Log, LogWriter, Metadata, Position, Sampling};
use std::path::Path;
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn log() -> Log {
    Log::from_bytes(Path::new("small.safetensors"), small().into()).unwrap()
}

fn real() -> Log {
    Log::from_bytes(Path::new("real.safetensors"), shipped(root()).into()).unwrap()
}

pub fn engine(rule: Rule, bug: Option<&str>) -> Simulator {
    Simulator {
        bug: bug.map(|bug| bug.parse::<BugName>().unwrap()),
        ..Simulator::new(Settings::new(rule))
    }
}

/// Rows with an engine's rounds as a log, in a folder that has to stay. Names of tensors can be left
/// out.
fn played(file: &[u8], made: &SimulatedLog, without: &[&str]) -> (TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.safetensors");
    write(file, made, &path, without);
    let log = Log::open(&path).unwrap();
    (folder, log)
}

/// The log of a simulated engine.
pub fn with_log<T>(simulator: &Simulator, ask: impl FnOnce(&Log) -> T) -> T {
    let (_folder, log) = played(&small(), &simulator.log(&log()).unwrap(), &[]);
    ask(&log)
}

/// The same, audited.
pub fn audited(simulator: &Simulator, settings: &Settings) -> AuditReport {
    with_log(simulator, |log| {
        audit(log, settings, "specgap audit", &|_| {}).unwrap()
    })
}

/// Logs without rows of tokens behind whole chains, as recorded from transformers: nothing is
/// missing from the text, which goes on one place further. Where rows are dropped and the places
/// closed up, a token is wasted behind each whole chain, which favours none.
#[test]
fn rows_that_a_log_lacks_and_tokens_that_are_wasted_raise_no_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let simulator = engine(Rule::TOKEN, None);
    let made = simulator.log(&log()).unwrap();
    let (file, made) = without_bonus(&small(), &made);
    let audited = |file: &[u8], made: &SimulatedLog, name: &str| {
        let path = folder.path().join(name);
        write(file, made, &path, &[]);
        let log = Log::open(&path).unwrap();
        let report = audit(&log, &simulator.settings, "specgap audit", &|_| {}).unwrap();
        (log, report)
    };
    let missing = |report: &AuditReport| {
        let found = report.hard_checks.iter();
        let mut found = found.filter(|check| check.name == "tokens-missing");
        found.next().unwrap().violations
    };
    let (log, honest) = audited(&file, &made, "honest.safetensors");
    assert!(honest.ok, "{honest:#?}");
    assert!(honest.hard_checks.iter().all(|check| check.violations == 0));
    let note = honest
        .notes
        .iter()
        .find(|note| note.contains("lack the rows"));
    assert!(note.is_some(), "{:?}", honest.notes);
    // What the negative control takes out of it is found.
    let control = negative_control(&log, &simulator.settings).unwrap();
    for name in [
        "tokens-missing",
        "text-after-its-end",
        "accepted-after-rejection",
    ] {
        let one = control.iter().find(|one| one.name == name).unwrap();
        assert_eq!(one.refuted, Some(true), "{one:?}");
    }
    // The same rows, with each text's places closed up.
    let closed = at_places(&file, |row, prompts| {
        let text = prompts[..row].iter().rev();
        text.take_while(|prompt| **prompt == prompts[row]).count() as i64
    });
    // All of them: the engine wastes the token behind each whole chain, and favours none.
    let (_, wasteful) = audited(&closed, &made, "closed.safetensors");
    assert_eq!(missing(&wasteful), 0);
    assert!(wasteful.ok, "{wasteful:#?}");
    let told = |note: &&String| note.contains("not biased by it");
    assert!(wasteful.notes.iter().any(|note| told(&note)));
    // Some of them: every second text is closed up.
    let some = at_places(&file, |row, prompts| {
        let text = prompts[..row].iter().rev();
        let place = text.take_while(|prompt| **prompt == prompts[row]).count() as i64;
        // Far enough for what a round lacks.
        if prompts[row] % 2 == 0 {
            place
        } else {
            10 * place
        }
    });
    let (_, mixed) = audited(&some, &made, "some.safetensors");
    assert!(missing(&mixed) == 0 && mixed.ok, "{mixed:#?}");
    assert!(mixed.notes.iter().any(|note| told(&note)));
}

/// Rules that need all tokens are not asked of rows that list some.
#[test]
fn lists_of_tokens_are_asked_for_another_rule_too() {
    let mut exact = engine(Rule::EXACT_MATCH, None);
    // The first run in which no text goes on behind a token that ends it.
    exact.settings.seed = 203;
    let rows = real();
    assert!(rows.is_top_heavy());
    let (_folder, log) = played(&shipped(root()), &exact.log(&rows).unwrap(), &[]);
    let settings = Settings::new(Rule::TOKEN);
    // So few tokens refute no other rule, and exclude no loss under it either.
    let report = audit(&log, &settings, "specgap audit", &|_| {}).unwrap();
    assert_eq!(report.conclusion, Conclusion::NotTheRule, "{report:#?}");
    assert_eq!(report.fits, None);
    let lax = Settings {
        exclude: 0.9,
        ..settings
    };
    let report = audit(&log, &lax, "specgap audit", &|_| {}).unwrap();
    assert_eq!(report.fits.as_deref(), Some("exact-match"), "{report:#?}");
}

#[test]
fn exact_match_is_lossless_and_not_the_rule_that_was_named() {
    let settings = Settings::new(Rule::TOKEN);
    let exact = engine(Rule::EXACT_MATCH, None);
    let report = audited(&exact, &settings);
    assert_eq!(report.conclusion, Conclusion::LosslessOther, "{report:#?}");
    assert_eq!(report.fits.as_deref(), Some("exact-match"));
    assert!(report.ok);
    let strict = Settings {
        strict: true,
        ..settings.clone()
    };
    assert!(!audited(&exact, &strict).ok);
    let right = audited(&exact, &exact.settings);
    assert!(right.ok, "{right:#?}");
    assert_eq!(right.parts[0].verdict, Outcome::NotTestable);
    // Drafts that are sampled where argmax is claimed: lossless as well.
    let sampled = engine(Rule::ONE_HOT, Some("sampled-drafts"));
    let report = audited(&sampled, &sampled.settings);
    assert_eq!(report.fits.as_deref(), Some("exact-match"), "{report:#?}");
}

#[test]
fn a_report_has_what_the_contract_names() {
    let simulator = engine(Rule::TOKEN, Some("argmax-drafts"));
    let report = audited(&simulator, &simulator.settings);
    assert_eq!(report.conclusion, Conclusion::Lossy);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        (&json["schema"], &json["rule"]),
        (&1.into(), &"token".into())
    );
    assert_eq!(json["parts"][0]["part"], "draft-law");
    assert_eq!(json["parts"][0]["verdict"], "refuted");
    assert_eq!(json["conclusion"], "lossy");
    assert_eq!(json["cause"]["name"], "draft-likeliest");
    assert!(json["cause"]["log_ratio_to_next"].as_f64().unwrap() >= 7.0);
    assert_eq!(json["looked_at"], 120);
    assert_eq!(json["hard_checks"][0]["violations"], 0);
    assert_eq!(json["positions"], 120);
    assert_eq!(json["ok"], false);
    // A function of the log: the same to the bit.
    assert_eq!(audited(&simulator, &simulator.settings), report);
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(
        threads.install(|| audited(&simulator, &simulator.settings)),
        report
    );
}

#[test]
fn cuts_that_are_dropped_are_a_hard_failure() {
    // min-p is claimed, and outputs are drawn from all of p.
    let simulator = engine(Rule::ONE_HOT, None);
    let claimed = specgap::audit::Claimed {
        min_p: Some(0.05),
        ..specgap::audit::Claimed::at(1.0)
    };
    let settings = Settings {
        claimed: Some(claimed),
        ..simulator.settings.clone()
    };
    let report = audited(&simulator, &settings);
    let check = report
        .hard_checks
        .iter()
        .find(|one| one.name == "outside-claimed-cut")
        .unwrap();
    assert!(check.violations > 2, "{check:?}");
    assert_eq!(report.conclusion, Conclusion::Lossy);
    let cause = report.cause.unwrap();
    assert_eq!(
        (cause.name.as_str(), &cause.fit["cut"]),
        ("cut-missing", &"all".into())
    );
    // Who cuts as claimed passes.
    let honest = Simulator {
        settings: settings.clone(),
        ..simulator
    };
    let report = audited(&honest, &settings);
    assert!(report.ok, "{report:#?}");
}

#[test]
fn groups_that_fail_are_named() {
    // Half of the prompts are served by an engine that drafts the likeliest token.
    let mut made = engine(Rule::TOKEN, None).log(&log()).unwrap();
    let wrong = engine(Rule::TOKEN, Some("argmax-drafts"))
        .log(&log())
        .unwrap();
    for (record, wrong) in made.records.iter_mut().zip(wrong.records) {
        let size = if record.prompt.unwrap() % 2 == 0 {
            8
        } else {
            1
        };
        if size == 8 {
            *record = wrong;
        }
        record.batch_size = Some(size);
    }
    let (_folder, log) = played(&small(), &made, &[]);
    let report = audit(&log, &Settings::new(Rule::TOKEN), "", &|_| {}).unwrap();
    assert!(!report.ok);
    let groups: Vec<_> = report.parts.iter().flat_map(|part| &part.groups).collect();
    let of = |family: &str| -> Vec<i64> {
        let own = groups.iter().filter(|group| group.family == family);
        own.map(|group| group.group).collect()
    };
    assert_eq!(of("batch-size"), [8]);
    assert!(of("prompt").iter().all(|prompt| prompt % 2 == 0));
}

#[test]
fn what_cannot_be_audited_is_refused_in_words() {
    let refusal = |file: &[u8], made: &SimulatedLog, without: &[&str], rule: Rule| {
        let (_folder, log) = played(file, made, without);
        let audited = audit(&log, &Settings::new(rule), "", &|_| {});
        audited.unwrap_err().to_string()
    };
    let made = engine(Rule::TOKEN, None).log(&log()).unwrap();
    let message = |rule: Rule, without: &[&str]| refusal(&small(), &made, without, rule);
    let of_lists = engine(Rule::ONE_HOT, None).log(&real()).unwrap();
    let cut = |rule: Rule| refusal(&shipped(root()), &of_lists, &[], rule);
    assert!(cut(Rule::BLOCK).contains("log full rows"));
    assert!(cut(Rule::RRS).contains("log full rows"));
    assert!(message(Rule::TOKEN, &["drafts"]).contains("no tensor drafts"));
    assert!(message(Rule::TOKEN, &["output"]).contains("no tensor output"));
    assert!(message(Rule::TOKEN, &["accepted"]).contains("round but no accepted"));
    let alone = message(Rule::TOKEN, &["accepted", "round"]);
    assert!(alone.contains("add accepted"), "{alone}");
    let no_engine = audit(&log(), &Settings::new(Rule::TOKEN), "", &|_| {});
    assert!(matches!(no_engine, Err(AuditError::Log(_))));
}

/// The law of a token where a sampler does one step after the other: `k`, `p`, `m`, and `T`, the
/// temperature; `j` is a top-k and a nucleus of the whole row that both have to keep.
fn drawn_by(steps: &str, logits: &[f64]) -> Vec<f64> {
    let mut row: Vec<f64> = logits.iter().map(|x| x.exp()).collect();
    for step in steps.chars() {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
        let before: Vec<(f64, usize)> = (row.iter())
            .map(|x| {
                let above = row.iter().filter(|y| *y > x);
                (above.clone().sum(), above.count())
            })
            .collect();
        let largest = row.iter().copied().fold(0.0, f64::max);
        for (x, (mass, rank)) in row.iter_mut().zip(before) {
            let is_kept = match step {
                'k' => rank < 20,
                'p' => mass < 0.9,
                'j' => rank < 20 && mass < 0.9,
                'm' => *x >= 0.05 * largest,
                _ => {
                    *x = x.powf(1.0 / 0.7);
                    true
                }
            };
            *x *= f64::from(u8::from(is_kept));
        }
    }
    row
}

/// Plain text of samplers that cut in an order of their own is what they claim in that order, and
/// not in the default one; a log that says the order needs no option.
#[test]
fn honest_samplers_of_every_order_are_honest_by_it_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = SmallRng::seed_from_u64(3);
    let tools = ["transformers", "sglang", "llama.cpp", "mlx-lm"];
    for (steps, tool) in ["Tkpm", "Tj", "kpmT", "pmkT"].into_iter().zip(tools) {
        let has_min_p = steps.contains('m');
        let sampling = Sampling {
            temperature: 0.7,
            top_k: Some(20),
            top_p: Some(0.9),
            min_p: has_min_p.then_some(0.05),
            cut_order: Some(tool.parse().unwrap()),
            ..Sampling::default()
        };
        let metadata = Metadata {
            sampling: Some(sampling),
            ..Metadata::default()
        };
        let layout = Layout {
            dtype: Dtype::F64,
            ..Layout::new(80)
        };
        let path = folder.path().join(tool);
        let mut writer = LogWriter::create(&path, metadata, layout).unwrap();
        for n in 0..600 {
            let spread =
                |_| 4.0 * (rng.random::<f32>() + rng.random::<f32>() - rng.random::<f32>());
            let target: Vec<f32> = (0..80).map(spread).collect();
            let logits: Vec<f64> = target.iter().map(|&x| f64::from(x)).collect();
            let law = drawn_by(steps, &logits);
            let mut left = rng.random::<f64>() * law.iter().sum::<f64>();
            let drawn = law.iter().position(|x| {
                left -= x;
                left < 0.0
            });
            let position = Position {
                prompt_id: n / 50,
                position: n % 50,
                token: drawn.unwrap() as i64,
                target: &target,
                draft: &target,
            };
            writer.append(&position).unwrap();
        }
        writer.commit().unwrap();
        let log = Log::open(&path).unwrap();
        let outside = |order: Option<&str>| {
            let mut settings = Settings::new(Rule::TEXT);
            let said = specgap::audit::claimed_of(&log, &settings).unwrap();
            settings.claimed = order.map(|order| specgap::audit::Claimed {
                cut_order: Some(order.parse().unwrap()),
                ..said
            });
            let report = audit(&log, &settings, "specgap audit", &|_| {}).unwrap();
            let checks = report.hard_checks.iter();
            (report.ok, checks.map(|check| check.violations).sum::<u64>())
        };
        assert_eq!(outside(None), (true, 0), "{tool}");
        if tool != "transformers" {
            let (is_ok, broken) = outside(Some("transformers"));
            assert!(!is_ok && broken > 0, "{tool}");
        }
    }
}
