//! Does an audit find every bug of its table, blame the right part, and leave honest engines
//! alone? Engines are simulated on the rows of the shipped log. Seeds are fixed.

#[path = "../engine_log/mod.rs"]
mod engine_log;

use engine_log::{at_places, shipped, small, without_bonus, write};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use specgap::audit::{
    AuditError, AuditReport, BugName, Conclusion, Outcome, Part, Rule, Settings, SimulatedLog,
    SimulatedRun, Simulator, audit, negative_control, plan,
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

/// How many of the runs refute each part.
fn refuted(runs: &[SimulatedRun]) -> [usize; 4] {
    let count = |part: usize| {
        let refuted = |run: &&SimulatedRun| run.verdicts[part] == Outcome::Refuted;
        runs.iter().filter(refuted).count()
    };
    [0, 1, 2, 3].map(count)
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
    assert_eq!(honest.conclusion, Conclusion::AsClaimed, "{honest:#?}");
    assert!(honest.hard_checks.iter().all(|check| check.violations == 0));
    let note = honest
        .notes
        .iter()
        .find(|note| note.contains("lack the rows"));
    assert!(note.is_some(), "{:?}", honest.notes);
    // What the negative control takes out of it is found.
    let planned = plan(&log, &simulator.settings).unwrap();
    let control = negative_control(&log, &simulator.settings, &planned).unwrap();
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

#[test]
fn a_thousand_honest_runs_raise_no_alarm() {
    // Each fails a part with probability 1e-6 at most.
    let runs = engine(Rule::TOKEN, None).runs(&log(), 1_000, 60).unwrap();
    assert_eq!(refuted(&runs), [0; 4]);
    // And e-values are at most 1 on average: 1,000 of them above 20 on average would be a
    // chance of one in twenty (Markov).
    for part in 0..4 {
        let e: f64 = runs
            .iter()
            .map(|run| 10f64.powf(run.log10_e_values[part]))
            .sum();
        assert!(e / 1e3 < 20.0, "{part}: {e}");
    }
    for rule in [
        Rule::ONE_HOT,
        Rule::EXACT_MATCH,
        Rule::threshold(0.9).unwrap(),
    ] {
        let runs = engine(rule, None).runs(&log(), 50, 120).unwrap();
        assert_eq!(refuted(&runs), [0; 4], "{rule}");
    }
}

#[test]
fn several_drafts_and_blocks_that_are_honest_pass_and_bugs_in_them_are_found() {
    for rule in [Rule::RRS, Rule::RRS_WO] {
        let honest = Simulator {
            siblings: true,
            drafts: 2,
            ..engine(rule, None)
        };
        assert_eq!(
            refuted(&honest.runs(&log(), 1, 120).unwrap()),
            [0; 4],
            "{rule}"
        );
    }
    for drafts in [2, 4] {
        let of_strata = |bug, follows| Simulator {
            siblings: true,
            drafts,
            follows,
            ..engine(Rule::LEVEL_4, bug)
        };
        let play = |simulator: Simulator, positions| {
            let runs = simulator.runs(&log(), 1, positions).unwrap();
            (refuted(&runs), runs[0].suspects.clone())
        };
        assert_eq!(play(of_strata(None, None), 240).0, [0; 4], "{drafts}");
        // Drafts of another law under the right rule, the right drafts under another rule, and
        // recursive rejection of i.i.d. drafts that is called level-4.
        let (parts, who) = play(of_strata(Some("drafts-from-all-of-q"), None), 240);
        assert_eq!(parts[..2], [1, 0], "{drafts} {parts:?}");
        assert_eq!(who[0].as_deref(), Some("drafts-from-all-of-q"));
        let wrong = of_strata(Some("strata-verified-as-all-of-q"), None);
        let (parts, who) = play(wrong, 2_400);
        assert_eq!(parts[..2], [0, 1], "{drafts} {parts:?}");
        assert_eq!(who[1].as_deref(), Some("strata-verified-as-all-of-q"));
        let (parts, _) = play(of_strata(None, Some(Rule::RRS)), 240);
        assert_eq!(parts[0], 1, "{drafts} {parts:?}");
    }
    let block = engine(Rule::BLOCK, None).runs(&log(), 1, 120).unwrap();
    assert_eq!(refuted(&block), [0; 4]);
    let wrong = Simulator {
        siblings: true,
        drafts: 2,
        ..engine(Rule::RRS, Some("accepts-everything"))
    };
    let runs = wrong.runs(&log(), 1, 240).unwrap();
    assert_eq!(refuted(&runs)[1], 1, "{runs:?}");
    assert_eq!(runs[0].suspects[1].as_deref(), Some("accepts-everything"));
}

#[test]
fn honest_engines_pass_with_the_noise_of_another_pass() {
    let noisy = Simulator {
        noise: 0.1,
        ..engine(Rule::TOKEN, None)
    };
    let runs = noisy.runs(&log(), 3, 120).unwrap();
    assert_eq!(refuted(&runs), [0; 4]);
}

#[test]
fn drafts_of_the_shipped_rows_are_told_within_40_tokens() {
    let runs = engine(Rule::TOKEN, Some("argmax-drafts"))
        .runs(&real(), 1, 60)
        .unwrap();
    assert_eq!(refuted(&runs)[0], 1, "{runs:?}");
    assert_eq!(runs[0].suspects[0].as_deref(), Some("argmax-drafts"));
}

#[test]
fn bugs_are_found_and_the_right_part_is_blamed() {
    // Bug, rule, positions, the part that has to be refuted, and parts that must not be.
    let table = "
        argmax-drafts token 120 draft-law acceptance correction
        top-50-drafts token 600 draft-law acceptance correction
        prune-after-draw token 600 draft-law acceptance
        sampled-drafts one-hot 120 draft-law acceptance correction
        lenient-acceptance one-hot 36000 acceptance draft-law correction
        correction-from-q token 240 correction draft-law acceptance
        temperature-ignored token 120 target-law draft-law
        own-noise-correction token 24000 correction draft-law acceptance";
    let part_of = |name: &str| {
        Part::ALL
            .iter()
            .position(|part| part.name() == name)
            .unwrap()
    };
    for line in table.trim().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [bug, rule, positions, part, innocent @ ..] = &words[..] else {
            panic!("{line}");
        };
        let (part, engine) = (part_of(part), engine(rule.parse().unwrap(), Some(bug)));
        let runs = engine.runs(&log(), 2, positions.parse().unwrap()).unwrap();
        let found = refuted(&runs);
        assert_eq!(found[part], 2, "{bug}: {found:?} {runs:#?}");
        for one in innocent {
            assert_eq!(found[part_of(one)], 0, "{bug}: {one} is innocent");
        }
        for run in &runs {
            assert_eq!(run.suspects[part].as_deref(), Some(*bug), "{runs:#?}");
        }
    }
}

#[test]
fn bf16_drafts_are_harmless() {
    let runs = engine(Rule::TOKEN, Some("bf16-drafts"))
        .runs(&log(), 2, 2_400)
        .unwrap();
    assert_eq!(refuted(&runs), [0; 4]);
}

/// Rules that need all tokens are not asked of rows that list some.
#[test]
fn lists_of_tokens_are_asked_for_another_rule_too() {
    let exact = engine(Rule::EXACT_MATCH, None);
    let rows = real();
    assert!(rows.is_top_heavy());
    let (_folder, log) = played(&shipped(root()), &exact.log(&rows).unwrap(), &[]);
    let settings = Settings::new(Rule::TOKEN);
    let report = audit(&log, &settings, "specgap audit", &|_| {}).unwrap();
    assert_eq!(report.fits.as_deref(), Some("exact-match"), "{report:#?}");
}

#[test]
fn exact_match_is_lossless_and_not_the_rule_that_was_named() {
    let settings = Settings::new(Rule::TOKEN);
    let exact = engine(Rule::EXACT_MATCH, None);
    let report = audited(&exact, &settings);
    assert_eq!(
        report.conclusion,
        Conclusion::LosslessAnotherRule,
        "{report:#?}"
    );
    assert_eq!(report.fits.as_deref(), Some("exact-match"));
    assert!(!report.ok);
    let right = audited(&exact, &exact.settings);
    assert!(
        right.ok && right.conclusion == Conclusion::AsClaimed,
        "{right:#?}"
    );
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
    assert_eq!(json["parts"][0]["suspect"], "argmax-drafts");
    assert_eq!(json["hard_checks"][0]["violations"], 0);
    assert_eq!(json["positions"], 120);
    assert!(json["parts"][1]["smallest_tv_excluded"].is_f64());
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
fn minimum_n_is_known_before_and_the_negative_control_is_refused() {
    let simulator = engine(Rule::TOKEN, None);
    let (_folder, log) = played(&small(), &simulator.log(&log()).unwrap(), &[]);
    // What is too weak for this log would be played for long: not here.
    let settings = Settings {
        alpha: 1e-3,
        tolerance: 0.0,
        ..simulator.settings.clone()
    };
    let planned = plan(&log, &settings).unwrap();
    let of = |bug: &str| {
        planned
            .minimum
            .iter()
            .find(|one| one.bug == bug)
            .unwrap()
            .clone()
    };
    let argmax = of("argmax-drafts");
    assert_eq!(argmax.part.as_deref(), Some("draft-law"));
    assert!(argmax.positions.unwrap() < argmax.positions_by_output.unwrap());
    assert!((argmax.output_tv.unwrap() - 0.5).abs() < 0.05, "{argmax:?}");
    assert_eq!(of("bf16-drafts").positions, None);
    let control = negative_control(&log, &settings, &planned).unwrap();
    for one in &control {
        let harmless = one.name == "bf16-drafts" || one.name == "target-zero";
        assert_eq!(
            one.refuted,
            if harmless { None } else { Some(true) },
            "{one:?}"
        );
    }
    let checks = [
        "accepted-after-rejection",
        "accepted-not-emitted",
        "tokens-missing",
        "text-after-its-end",
    ];
    for name in checks {
        assert!(control.iter().any(|one| one.name == name), "{name}");
    }
    // A simulated bug is refuted by what it does and not by checks that it passes.
    for bug in &planned.minimum {
        let found = control.iter().find(|one| one.name == bug.bug).unwrap();
        let by = found.by.iter();
        let passed: Vec<_> = by.filter(|name| checks.contains(&name.as_str())).collect();
        assert!(passed.is_empty(), "{found:?}");
    }
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
    let draft = &report.parts[0];
    assert_eq!(draft.verdict, Outcome::Refuted);
    let sizes: Vec<i64> = draft
        .groups
        .iter()
        .filter(|group| group.family == "batch-size")
        .map(|group| group.group)
        .collect();
    assert_eq!(sizes, [8]);
    assert!(
        draft
            .groups
            .iter()
            .filter(|group| group.family == "prompt")
            .all(|group| group.group % 2 == 0)
    );
    assert!(report.false_alarm > 1e-6 && report.false_alarm <= 1.7e-5);
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
