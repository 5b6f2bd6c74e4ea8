//! Simulated engines and the negative control on logs of a few rows.

use super::bugs::BUGS;
use super::engine::{Engine, Position};
use super::judge::{Judge, Tally};
use super::play::Player;
use super::verdict::part;
use super::{
    MinimumN, Part, Plan, Rule, Settings, SimulatedRun, Simulator, Tampering, negative_control,
};
use crate::log::Log;
use std::collections::BTreeMap;

/// A log of these rows, and of what an engine did.
pub(super) fn log(rows: &[([f32; 3], [f32; 3])], records: &[([i64; 2], i64, i64)]) -> Log {
    let metadata = r#"{"temperature_applied": 1.0, "sampling": {"temperature": 1.0}}"#;
    log_of(rows, records, metadata)
}

/// The same with metadata of its own.
pub(super) fn log_of(
    rows: &[([f32; 3], [f32; 3])],
    records: &[([i64; 2], i64, i64)],
    metadata: &str,
) -> Log {
    use safetensors::tensor::{Dtype, TensorView};
    let floats = |row: &dyn Fn(usize) -> [f32; 3]| -> Vec<u8> {
        let all = (0..rows.len()).flat_map(row);
        all.flat_map(|p| p.ln().max(-1000.0).to_le_bytes())
            .collect()
    };
    let (p, q) = (floats(&|at| rows[at].0), floats(&|at| rows[at].1));
    let whole = |all: &mut dyn Iterator<Item = i64>| -> Vec<u8> {
        all.flat_map(i64::to_le_bytes).collect()
    };
    let drafts = whole(&mut records.iter().flat_map(|(drafts, ..)| *drafts));
    let accepted = whole(&mut records.iter().map(|(_, accepted, _)| *accepted));
    let output = whole(&mut records.iter().map(|(.., output)| *output));
    let n = rows.len();
    let of = |kind, shape: &[usize], data| TensorView::new(kind, shape.to_vec(), data).unwrap();
    let tensors = vec![
        ("target_logits", of(Dtype::F32, &[n, 3], &p)),
        ("draft_logits", of(Dtype::F32, &[n, 3], &q)),
        ("drafts", of(Dtype::I64, &[n, 2], &drafts)),
        ("accepted", of(Dtype::I64, &[n], &accepted)),
        ("output", of(Dtype::I64, &[n], &output)),
    ];
    let metadata = std::collections::HashMap::from([("specgap".to_owned(), metadata.to_owned())]);
    let bytes = safetensors::serialize(tensors, Some(metadata)).unwrap();
    Log::from_bytes("made.safetensors".as_ref(), bytes.into()).unwrap()
}

const ROW: ([f32; 3], [f32; 3]) = ([0.5, 0.25, 0.25], [0.75, 0.125, 0.125]);

/// A chain of two that is kept whole, and one whose first draft is rejected.
const ROUNDS: [([i64; 2], i64, i64); 4] = [
    ([0, 0], 2, 0),
    ([-1, -1], -1, 0),
    ([-1, -1], -1, 1),
    ([0, 1], 0, 2),
];

fn simulator(rule: Rule, bug: Option<&str>) -> Simulator {
    Simulator {
        settings: Settings {
            tolerance: 0.0,
            seed: 9,
            ..Settings::new(rule)
        },
        follows: None,
        bug: bug.map(|bug| bug.parse().unwrap()),
        drafts: 2,
        siblings: false,
        noise: 0.0,
    }
}

/// Rows that leave nothing to chance: what an engine did is known.
#[test]
fn a_simulated_log_is_what_the_engine_did() {
    let (zero, two) = ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]);
    let rows = [
        (zero, zero),
        (two, two),
        (zero, two),
        (zero, zero),
        (two, zero),
    ];
    let none = ([-1, -1], -1, 0);
    let log = log(&rows, &[none; 5]);
    let made = simulator(Rule::Single, None).log(&log).unwrap();
    let found: Vec<_> = (made.records.iter())
        .map(|one| (one.drafts.clone(), one.accepted, one.round, one.output))
        .collect();
    let expected = [
        (vec![0, 2], Some(2), Some(0), Some(0)),
        (vec![-1, -1], Some(-1), Some(1), Some(2)),
        // The token behind the chain.
        (vec![-1, -1], Some(-1), Some(2), Some(0)),
        (vec![0, 0], Some(1), Some(0), Some(0)),
        (vec![-1, -1], Some(-1), Some(1), Some(2)),
    ];
    assert_eq!(found, expected);
    // Alternatives: one position a round, and as many drafts.
    let siblings = Simulator {
        siblings: true,
        ..simulator(Rule::Rrs, None)
    };
    let made = siblings.log(&log).unwrap();
    for (record, (p, q)) in made.records.iter().zip(rows) {
        let (x, y) = if q == zero { (0, 0) } else { (2, 2) };
        assert_eq!(record.drafts, [x, y]);
        assert_eq!(
            (record.accepted, record.round),
            (Some(i64::from(p == q)), Some(0))
        );
        assert_eq!(record.output, Some(if p == zero { 0 } else { 2 }));
    }
    // A bug, and a rule that is followed and not the one that is audited.
    let wrong = simulator(Rule::Single, Some("correction-from-p"))
        .log(&log)
        .unwrap();
    assert_eq!(wrong.records[4].output, Some(2));
    let other = Simulator {
        follows: Some(Rule::OneHot),
        ..simulator(Rule::Single, None)
    };
    assert_eq!(other.log(&log).unwrap().records[0].drafts, [0, 2]);
}

/// Runs that go around the log: which engine plays on which row, and with what it begins.
#[test]
fn runs_are_engines_on_rows_of_their_own() {
    let rows: Vec<_> = (1..8u8)
        .map(|k| {
            let x = f32::from(k) / 16.0;
            (
                [x, 0.5 - x / 2.0, 0.5 - x / 2.0],
                [0.5, x / 2.0, 0.5 - x / 2.0],
            )
        })
        .collect();
    let none = ([-1, -1], -1, 0);
    let log = log(&rows, &vec![none; rows.len()]);
    for (rule, bug, siblings) in [
        (Rule::Single, Some("lenient-acceptance"), false),
        (Rule::Block, None, false),
        (Rule::Rrs, Some("correction-from-q"), true),
    ] {
        let simulator = Simulator {
            siblings,
            ..simulator(rule, bug)
        };
        let judge = Judge::new(rule, 0.0);
        let engine = bug.map_or(Engine::HONEST, |name| {
            BUGS.iter().find(|bug| bug.name == name).unwrap().engine
        });
        for positions in [3, 7, 17] {
            let found = simulator.runs(&log, 3, positions).unwrap();
            assert_eq!(found.len(), 3);
            let copies = positions.div_ceil(7);
            for (run, found) in found.iter().enumerate() {
                let mut total = Tally::new(&judge);
                for copy in 0..copies {
                    let number = run * copies + copy;
                    let mut player = Player::new(rule, &engine, 2, siblings, 9, number as u64);
                    if rule == Rule::Single {
                        player.depth = number % 3;
                    }
                    let first = run * 7919 % 7;
                    for (index, (p, q)) in rows.iter().enumerate() {
                        // The last copy plays on what is left of the positions, from the
                        // run's first row on.
                        let place = (index + 7 - first) % 7;
                        if copy * 7 + place >= positions {
                            continue;
                        }
                        let exact = |row: &[f32; 3]| {
                            let logits = row.map(|x| f64::from(x.ln()));
                            let total: f64 = logits.iter().map(|x| x.exp()).sum();
                            logits.map(|x| x.exp() / total)
                        };
                        let (p, q) = (exact(p), exact(q));
                        let at = Position {
                            p: &p,
                            q: &q,
                            rest: false,
                            reach: 1.0,
                        };
                        let reach = player.reach;
                        let start = player.laws(&at);
                        let step = player.step(&at, &start);
                        let at = Position { reach, ..at };
                        judge.judge(&at, siblings, &[&step], std::slice::from_mut(&mut total));
                    }
                }
                for one in Part::ALL {
                    let expected = part(&judge, one, &total, &BTreeMap::new(), 1e-6);
                    let log10 = found.log10_e_values[one.index()];
                    assert!(
                        (log10 - expected.log10_e_value).abs() < 1e-9,
                        "{rule} {positions} {run} {}: {log10}",
                        one.name()
                    );
                    assert_eq!(found.verdicts[one.index()], expected.verdict);
                    assert_eq!(found.suspects[one.index()], expected.suspect);
                }
            }
        }
    }
    // Noise of another pass: the same seed gives the same, and noise something else.
    let noisy = |noise: f64| -> Vec<SimulatedRun> {
        let simulator = Simulator {
            noise,
            ..simulator(Rule::Single, None)
        };
        simulator.runs(&log, 2, 40).unwrap()
    };
    assert_eq!(noisy(0.5), noisy(0.5));
    assert_ne!(noisy(0.5), noisy(0.0));
}

fn minimum(bug: &str, positions: Option<u64>, output_tv: Option<f64>) -> MinimumN {
    MinimumN {
        bug: bug.to_owned(),
        words: format!("words of {bug}"),
        part: None,
        positions,
        positions_by_output: None,
        output_tv,
    }
}

#[test]
fn the_negative_control_says_what_it_played_and_why_not() {
    let rows = [ROW, ROW, ROW, ([0.5, 0.5, 0.0], [0.75, 0.125, 0.125])];
    let log = log(&rows, &ROUNDS);
    let settings = Settings {
        tolerance: 0.0,
        alpha: 0.01,
        stop: vec![2],
        ..Settings::new(Rule::Single)
    };
    let plan = Plan {
        positions: 300,
        rows: 4,
        minimum: vec![
            minimum("accepts-everything", Some(300), None),
            minimum("argmax-drafts", Some(301), None),
            minimum("bf16-drafts", None, Some(1e-4)),
            minimum("correction-from-p", None, None),
            minimum("exact-match", Some(400_001), None),
            // Played too seldom to be seen.
            minimum("target-flatter", Some(1), None),
        ],
    };
    let all = negative_control(&log, &settings, &plan).unwrap();
    let of = |name: &str| -> &Tampering { all.iter().find(|one| one.name == name).unwrap() };
    // Half as many more than are needed, and 50, in whole turns of four rows.
    for (name, positions, enough, by) in [
        ("accepts-everything", 500, true, "acceptance"),
        ("argmax-drafts", 504, false, "draft-law"),
    ] {
        let one = of(name);
        assert_eq!(one.positions, positions, "{one:?}");
        assert_eq!(
            (one.refuted, one.own_positions_enough),
            (Some(true), enough),
            "{one:?}"
        );
        assert!(
            one.by.iter().any(|part| part == by) && one.reason.is_none(),
            "{one:?}"
        );
        assert_eq!(one.words, format!("words of {name}"));
    }
    for (name, reason) in [
        (
            "bf16-drafts",
            "harmless at this size: it moves outputs by 1.0e-4",
        ),
        ("correction-from-p", "within the tolerance on these rows"),
        ("exact-match", "takes about 600051 positions"),
    ] {
        let one = of(name);
        assert!(
            one.reason.as_deref().unwrap().starts_with(reason),
            "{one:?}"
        );
        assert_eq!((one.refuted, one.positions), (None, 0));
        assert!(one.by.is_empty() && !one.own_positions_enough, "{one:?}");
    }
    let weak = of("target-flatter");
    assert_eq!(
        (weak.refuted, weak.positions),
        (Some(false), 52),
        "{weak:?}"
    );
    assert!(weak.own_positions_enough && weak.by.is_empty());
    // What no engine may do, done once.
    for name in [
        "target-zero",
        "accepted-after-rejection",
        "accepted-not-emitted",
        "text-after-its-end",
    ] {
        let one = of(name);
        let found = name != "accepted-after-rejection";
        assert_eq!(one.refuted, found.then_some(true), "{one:?}");
        assert_eq!(one.own_positions_enough, found);
        assert_eq!((one.positions, one.by.len()), (1, usize::from(found)));
        assert_eq!(one.reason.is_none(), found);
    }
    assert!(all.iter().all(|one| one.name != "outside-claimed-cut"));
    // Nothing is impossible at these rows, and no token ends texts; with a cut, what is left
    // out is not to come out.
    let log = self::log(&[ROW; 4], &ROUNDS);
    let nothing = Plan {
        minimum: Vec::new(),
        ..plan
    };
    let cut = Settings {
        claimed: Some(super::Claimed {
            top_k: Some(1),
            ..super::Claimed::at(1.0)
        }),
        stop: Vec::new(),
        ..settings
    };
    let all = negative_control(&log, &cut, &nothing).unwrap();
    let of = |name: &str| -> &Tampering { all.iter().find(|one| one.name == name).unwrap() };
    assert_eq!(of("outside-claimed-cut").refuted, Some(true));
    assert!(
        of("target-zero")
            .reason
            .as_deref()
            .unwrap()
            .contains("no token of these rows")
    );
    assert!(
        of("text-after-its-end")
            .reason
            .as_deref()
            .unwrap()
            .contains("--stop")
    );
    assert_eq!(of("target-zero").refuted, None);
}
