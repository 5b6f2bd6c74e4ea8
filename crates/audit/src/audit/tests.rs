//! Simulated engines and the negative control on logs of a few rows.

mod beside;
mod lists;
mod masks;

use super::{
    AuditReport, Cause, Claimed, Conclusion, Evidence, HardCheck, Part, Rule, Seeds, Settings,
    Simulator, audit, audit_read, negative_control,
};
use crate::audit::evidence::play::draw;
use crate::audit::evidence::steps::Step;
use crate::audit::verdict::opened::Opened;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::{Dtype, TensorView};
use specgap_log::log::{EngineRecord, Log};

/// A log of these rows, and of what an engine did.
pub(crate) fn log(rows: &[([f32; 3], [f32; 3])], records: &[([i64; 2], i64, i64)]) -> Log {
    log_of(rows, records, PLAIN)
}

/// The same with metadata of its own.
pub(crate) fn log_of(
    rows: &[([f32; 3], [f32; 3])],
    records: &[([i64; 2], i64, i64)],
    metadata: &str,
) -> Log {
    let logits = |row: &dyn Fn(usize) -> [f32; 3]| -> Vec<u8> {
        let all = (0..rows.len()).flat_map(row);
        all.flat_map(|p| p.ln().max(-1000.0).to_le_bytes())
            .collect()
    };
    let drafts = records.iter().flat_map(|(drafts, ..)| *drafts);
    let accepted = records.iter().map(|(_, accepted, _)| *accepted);
    let output = records.iter().map(|(.., output)| *output);
    let mut tensors = rounds_of(2, drafts, accepted, output);
    tensors.push(("target_logits", Dtype::F32, 3, logits(&|at| rows[at].0)));
    tensors.push(("draft_logits", Dtype::F32, 3, logits(&|at| rows[at].1)));
    held(rows.len(), &tensors, metadata)
}

const ROW: ([f32; 3], [f32; 3]) = ([0.5, 0.25, 0.25], [0.75, 0.125, 0.125]);

/// A chain of two that is kept whole, and one whose first draft is rejected.
const ROUNDS: [([i64; 2], i64, i64); 4] = [
    ([0, 0], 2, 0),
    ([-1, -1], -1, 0),
    ([-1, -1], -1, 1),
    ([0, 1], 0, 2),
];

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
    let made = simulator(Rule::TOKEN, None).log(&log).unwrap();
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
    let mut siblings = simulator(Rule::RRS, None);
    siblings.siblings = true;
    let made = siblings.log(&log).unwrap();
    for (record, (p, q)) in made.records.iter().zip(rows) {
        let (x, y) = if q == zero { (0, 0) } else { (2, 2) };
        assert_eq!(record.drafts, [x, y]);
        assert_eq!(record.accepted, Some(i64::from(p == q)));
        assert_eq!(record.round, Some(0));
        assert_eq!(record.output, Some(if p == zero { 0 } else { 2 }));
    }
    // A bug, and a rule that is followed and not the one that is audited.
    let wrong = simulator(Rule::TOKEN, Some("correction-from-p"));
    let wrong = wrong.log(&log).unwrap();
    assert_eq!(wrong.records[4].output, Some(2));
    let mut other = simulator(Rule::TOKEN, None);
    other.follows = Some(Rule::ONE_HOT);
    assert_eq!(other.log(&log).unwrap().records[0].drafts, [0, 2]);
}

/// Tensors by name: type, columns (0 of a vector) and bytes.
type Tensor = (&'static str, Dtype, usize, Vec<u8>);
type Tensors = Vec<Tensor>;

/// A log of these tensors.
fn held(rows: usize, tensors: &Tensors, metadata: &str) -> Log {
    let views = tensors.iter().map(|(name, kind, columns, data)| {
        let shape = match columns {
            0 => vec![rows],
            _ => vec![rows, *columns],
        };
        (*name, TensorView::new(*kind, shape, data).unwrap())
    });
    let metadata = std::collections::HashMap::from([("specgap".to_owned(), metadata.to_owned())]);
    let bytes = safetensors::serialize(views, Some(metadata)).unwrap();
    Log::from_bytes("made.safetensors".as_ref(), bytes.into()).unwrap()
}

fn floats(rows: &[Vec<f64>]) -> Vec<u8> {
    let all = rows.iter().flatten();
    all.flat_map(|x| x.to_le_bytes()).collect()
}

fn whole(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// Logits of both models.
fn both(target: &[Vec<f64>], draft: &[Vec<f64>]) -> Tensors {
    let tokens = target[0].len();
    vec![
        ("target_logits", Dtype::F64, tokens, floats(target)),
        ("draft_logits", Dtype::F64, tokens, floats(draft)),
    ]
}

/// Labels of texts of one length.
fn labels(texts: usize, length: usize) -> Tensors {
    let numbers = || 0..(texts * length) as i64;
    let length = length as i64;
    let prompts = whole(numbers().map(|at| at / length));
    let places = whole(numbers().map(|at| at % length));
    vec![
        ("prompt_id", Dtype::I64, 0, prompts),
        ("position", Dtype::I64, 0, places),
    ]
}

/// Returns what an engine did, with so many drafts a position.
fn rounds_of(
    width: usize,
    drafts: impl IntoIterator<Item = i64>,
    accepted: impl IntoIterator<Item = i64>,
    output: impl IntoIterator<Item = i64>,
) -> Tensors {
    vec![
        ("drafts", Dtype::I64, width, whole(drafts)),
        ("accepted", Dtype::I64, 0, whole(accepted)),
        ("output", Dtype::I64, 0, whole(output)),
    ]
}

/// The same, as a simulated engine did it.
fn played(records: &[EngineRecord]) -> Tensors {
    let one = |of: fn(&EngineRecord) -> Option<i64>| {
        records.iter().map(move |record| of(record).unwrap_or(-1))
    };
    let drafts = records.iter().flat_map(|record| record.drafts.clone());
    let (accepted, output) = (one(|record| record.accepted), one(|record| record.output));
    rounds_of(records[0].drafts.len(), drafts, accepted, output)
}

/// Logits of `rows` rows over `tokens` tokens.
fn logits(rows: usize, tokens: usize, spread: f64, random: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let mut normal = || {
        let (a, b): (f64, f64) = (random.random(), random.random());
        spread * (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    };
    let rows = (0..rows).map(|_| (0..tokens).map(|_| normal()).collect());
    rows.collect()
}

/// Logits of two models, of which the second is the first with noise.
fn near_rows(
    rows: usize,
    tokens: usize,
    spread: f64,
    random: &mut ChaCha8Rng,
) -> [Vec<Vec<f64>>; 2] {
    let target = logits(rows, tokens, 1.5, random);
    let noise = logits(rows, tokens, spread, random);
    let pairs = target.iter().zip(&noise);
    let draft = pairs.map(|(row, noise)| row.iter().zip(noise).map(|(x, y)| x + y).collect());
    let draft = draft.collect();
    [target, draft]
}

fn softmax(row: &[f64], temperature: f64) -> Vec<f64> {
    let weights: Vec<f64> = row.iter().map(|x| (x / temperature).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|x| x / total).collect()
}

const PLAIN: &str =
    r#"{"temperature_applied": 1.0, "sampling": {"temperature": 1.0}, "rows_from": "engine-raw"}"#;

/// A log of `texts` texts of `length` positions each, of an engine that drafts two tokens; one
/// stream of random numbers, or the same numbers for each text.
fn engine_log(
    rule: Rule,
    texts: usize,
    length: usize,
    shared: Option<u64>,
    bug: Option<&str>,
    logged: bool,
) -> Log {
    let mut random = ChaCha8Rng::seed_from_u64(77);
    let (mut target, mut draft) = (Vec::new(), Vec::new());
    for _ in 0..texts {
        let [base, other] = near_rows(length, 6, 0.8, &mut random);
        target.push(base);
        draft.push(other);
    }
    let tensors = |from: usize, to: usize| -> Tensors {
        let mut all = both(&target[from..to].concat(), &draft[from..to].concat());
        all.extend(labels(to - from, length));
        all
    };
    let play = |from: usize, to: usize, seed: u64| {
        let mut simulator = simulator(rule, bug);
        simulator.siblings = rule.needs_siblings();
        simulator.settings.seed = seed;
        let log = held((to - from) * length, &tensors(from, to), PLAIN);
        simulator.log(&log).unwrap().records
    };
    let mut records: Vec<EngineRecord> = match shared {
        Some(seed) => (0..texts)
            .flat_map(|text| play(text, text + 1, seed))
            .collect(),
        None => play(0, texts, 5),
    };
    for record in records.iter_mut().filter(|_| shared.is_some()) {
        record.seed = shared.and_then(|seed| i64::try_from(seed).ok());
    }
    let mut all = tensors(0, texts);
    all.extend(played(&records));
    if logged {
        let seeds = records.iter().map(|record| record.seed.unwrap_or(-1));
        all.push(("seed", Dtype::I64, 0, whole(seeds)));
    }
    held(texts * length, &all, PLAIN)
}

fn settings(rule: Rule, seeds: Option<Seeds>) -> Settings {
    Settings {
        seeds,
        ..Settings::new(rule)
    }
}

fn audited(log: &Log, settings: &Settings) -> AuditReport {
    audit(log, settings, "", &|_| {}).unwrap()
}

/// The cause that an audit names.
fn cause(report: AuditReport) -> Cause {
    let (rule, suspects) = (report.rule, report.suspects);
    let cause = report.cause;
    cause.unwrap_or_else(|| panic!("{rule}: {suspects:?}"))
}

/// Shows that a log is refused in these words.
fn refused(log: &Log, settings: &Settings, words: &[&str]) {
    let found = audit(log, settings, "", &|_| {});
    let message = found.unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{message}");
    }
}

/// Tells whether one of several remarks has these words.
fn is_said(remarks: &[String], words: &str) -> bool {
    remarks.iter().any(|one| one.contains(words))
}

/// The hard check of a name; `None` if it was not made.
fn hard_check<'a>(report: &'a AuditReport, name: &str) -> Option<&'a HardCheck> {
    report.hard_checks.iter().find(|one| one.name == name)
}

/// How a text's rows are logged.
const FORMS: [&str; 6] = [
    "target_logits",
    "target_probs",
    "target_logprobs",
    "token_ids",
    "target_token_ids",
    "output",
];

/// Two texts that were drawn at a temperature, in one of these forms. `off`: the rows are those of
/// so many places before.
fn text_log(form: &'static str, temperature: f64, off: usize) -> Log {
    let (length, tokens, listed) = (400, 12, 4);
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let rows = logits(2 * length, tokens, 1.5, &mut random);
    let output = (rows.iter()).map(|row| draw(&softmax(row, temperature), random.random()));
    let output: Vec<usize> = output.collect();
    let shifted = (0..rows.len()).map(|at| &rows[at.saturating_sub(off)]);
    let shifted: Vec<&Vec<f64>> = shifted.collect();
    let laws: Vec<Vec<f64>> = shifted.iter().map(|row| softmax(row, 1.0)).collect();
    let logs = |laws: &[Vec<f64>]| -> Vec<Vec<f64>> {
        let each = laws.iter();
        each.map(|law| law.iter().map(|x| x.ln()).collect())
            .collect()
    };
    let mut all: Tensors = Vec::new();
    let mut metadata = r#""temperature_applied": 1.0, "sampling": {"temperature": 1.0}"#.to_owned();
    match form {
        "target_probs" => {
            for name in [form, "draft_probs"] {
                all.push((name, Dtype::F64, tokens, floats(&laws)));
            }
        }
        "token_ids" | "target_token_ids" => {
            // The likeliest, and the text's own, as servers list them.
            let own = form == "target_token_ids";
            let (mut ids, mut values) = (Vec::new(), Vec::new());
            for (law, y) in laws.iter().zip(&output) {
                let mut order: Vec<usize> = (0..tokens).collect();
                order.sort_by(|&a, &b| law[b].total_cmp(&law[a]));
                order.truncate(listed);
                if own && !order.contains(y) {
                    order.push(*y);
                }
                let none = listed + usize::from(own) - order.len();
                let listed = order.iter().map(|&id| law[id].ln());
                let all = listed.chain(vec![f64::NEG_INFINITY; none]);
                values.push(all.collect::<Vec<f64>>());
                ids.extend(order.into_iter().map(|id| id as i64));
                ids.extend(vec![-1; none]);
            }
            let width = listed + usize::from(own);
            for name in ["target_logprobs", "draft_logprobs"] {
                all.push((name, Dtype::F64, width, floats(&values)));
            }
            let names: &[&str] = match own {
                true => &["target_token_ids", "draft_token_ids"],
                false => &["token_ids"],
            };
            for name in names {
                all.push((name, Dtype::I64, width, whole(ids.iter().copied())));
            }
            metadata.push_str(r#", "vocabulary": 12, "top": 4"#);
        }
        "target_logprobs" => {
            for name in [form, "draft_logprobs"] {
                all.push((name, Dtype::F64, tokens, floats(&logs(&laws))));
            }
        }
        _ => {
            let rows: Vec<Vec<f64>> = shifted.into_iter().cloned().collect();
            all.extend(both(&rows, &rows));
        }
    }
    let name = if form == "output" { "output" } else { "token" };
    let output = output.iter().map(|y| *y as i64);
    all.push((name, Dtype::I64, 0, whole(output)));
    all.extend(labels(2, length));
    held(2 * length, &all, &format!("{{{metadata}}}"))
}

#[test]
fn a_text_without_drafts_is_audited_for_the_law_of_the_target() {
    let fresh = settings(Rule::TEXT, Some(Seeds::Fresh));
    for form in FORMS {
        for (temperature, off, refuted) in [
            (1.0, 0, false),
            (1.0, 1, true),
            (0.6, 0, true),
            (1.6, 0, true),
        ] {
            let log = text_log(form, temperature, off);
            let report = audited(&log, &fresh);
            // One verdict, once.
            let parts: Vec<&str> = report.parts.iter().map(|one| one.part.as_str()).collect();
            assert_eq!(parts, ["target-law"], "{form}");
            let expected = match refuted {
                true => Conclusion::Lossy,
                false => Conclusion::Undecided,
            };
            let case = (form, temperature, off, report.parts[0].log10_e_value);
            assert_eq!(report.conclusion, expected, "{case:?}");
            let found = (report.ok, report.rounds, report.not_audited);
            assert_eq!(found, (!refuted, 0, 0));
            for word in ["missing", "accepted", "draft"] {
                let mut checks = report.hard_checks.iter();
                assert!(checks.all(|one| !one.name.contains(word)));
            }
        }
    }
    // What it says of suspects is about the target.
    let cold = audited(&text_log("output", 0.6, 0), &fresh);
    assert_eq!(cause(cold).name, "temperature");
    // At its own temperature it is as claimed, but of lists nothing is known there.
    let at = Settings {
        claimed: Some(Claimed::at(0.6)),
        ..fresh.clone()
    };
    assert!(audited(&text_log("output", 0.6, 0), &at).ok);
    let words = ["not known at temperature 0.6"];
    refused(&text_log("token_ids", 0.6, 0), &at, &words);
    let log = text_log("target_logits", 1.0, 0);
    let control = negative_control(&log, &fresh).unwrap();
    let names: Vec<&str> = control.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["target-zero", "text-after-its-end"]);
    // Rounds need drafts, and a text its tokens.
    refused(&log, &settings(Rule::TOKEN, None), &["⟨rule text⟩"]);
}

/// One draft a position and a row each, accepted or not, and no row for the token behind an
/// accepted one: how many people would write it.
#[test]
fn a_form_without_tokens_behind_whole_chains_is_no_bias() {
    let rows = 1_200;
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let target = logits(rows, 6, 1.5, &mut random);
    let draft = logits(rows, 6, 1.5, &mut random);
    let (mut drafts, mut accepted, mut output) = (Vec::new(), Vec::new(), Vec::new());
    for (p, q) in target.iter().zip(&draft) {
        let step = rejection(&[softmax(p, 1.0), softmax(q, 1.0)], 0.0, &mut random);
        drafts.push(step.drafts[0] as i64);
        accepted.push(i64::from(step.accepted));
        output.push(step.output as i64);
    }
    let with = |drafts: &[i64], accepted: &[i64], output: &[i64], more: Tensors| {
        let [drafts, accepted, output] = [drafts, accepted, output].map(<[i64]>::to_vec);
        let mut all = both(&target, &draft);
        all.extend(rounds_of(1, drafts, accepted, output));
        all.extend(more);
        let log = held(rows, &all, PLAIN);
        audit(&log, &settings(Rule::TOKEN, None), "", &|_| {})
    };
    let of = |accepted: &[i64], output: &[i64], more| with(&drafts, accepted, output, more);
    let count = accepted.iter().take(rows - 1).sum::<i64>();
    let report = of(&accepted, &output, Vec::new()).unwrap();
    assert!(report.ok && count > 300, "{report:#?}");
    let note = format!("in all {count} rounds whose drafts were all accepted");
    let told = report.notes.iter().find(|one| one.contains(&note)).unwrap();
    let is_whole = told.contains("not biased") && told.contains("position");
    assert!(is_whole, "{told}");
    // With places that follow each other it is a waste, and no bias either.
    let places = ("position", Dtype::I64, 0, whole(0..rows as i64));
    assert!(of(&accepted, &output, vec![places]).unwrap().ok);
    // Where one round has its token, those that lack theirs waste one, and bias nothing.
    let mut some = accepted.clone();
    let whole_round = (0..rows).find(|&at| accepted[at] == 1).unwrap();
    some[whole_round + 1] = -1;
    let mut none = drafts.clone();
    none[whole_round + 1] = -1;
    let report = with(&none, &some, &output, Vec::new()).unwrap();
    let missing = hard_check(&report, "tokens-missing");
    assert_eq!(missing.unwrap().violations, 0);
    assert!(report.ok);
    let note = format!("in {} rounds whose drafts were all accepted", count - 1);
    assert!(is_said(&report.notes, &note), "{:?}", report.notes);
    // What no round does right is the form of the log, and is refused with the cure.
    let shifted: Vec<i64> = output.iter().map(|y| (y + 1) % 6).collect();
    let long = (0..rows).map(|at| if at % 3 == 0 { 0 } else { -1 });
    let long: Vec<i64> = long.collect();
    for (accepted, output, words) in [
        (&accepted, &shifted, "output [N] is the token that came out"),
        (&long, &output, "accepted + 1 positions"),
    ] {
        let message = of(accepted, output, Vec::new()).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

/// A recorder that lost rounds says so, and that is no clean bill.
#[test]
fn rounds_that_a_recorder_lost_fail_a_check() {
    let with = |more: &str| {
        let metadata =
            format!(r#"{{"temperature_applied": 1.0, "sampling": {{"temperature": 1.0}}{more}}}"#);
        let log = log_of(&[ROW; 4], &ROUNDS, &metadata);
        audited(&log, &Settings::new(Rule::TOKEN))
    };
    assert!(with("").ok);
    assert_eq!(with("").rows_from, None);
    let lost = with(
        r#", "rows_from": "engine-raw",
           "lost_rounds": {"count": 7, "reasons": {"row N: is inf": 7}}"#,
    );
    let check = hard_check(&lost, "lost-rounds").unwrap();
    assert_eq!(check.violations, 7);
    assert_eq!(lost.conclusion, Conclusion::Undecided);
    assert!(check.words.contains("7: row N: is inf"), "{}", check.words);
    assert_eq!(lost.rows_from, Some(specgap_log::log::RowsFrom::EngineRaw));
    let none = with(r#", "lost_rounds": {"count": 0}, "not_comparable": {"count": 3}"#);
    assert!(none.ok && none.not_comparable.unwrap().count == 3);
}

/// Rows of two models that are near to each other, and tensors of what an engine did.
fn flat_log(rows: usize, more: Tensors) -> Log {
    let tokens = 7;
    let mut random = ChaCha8Rng::seed_from_u64(41);
    let target = logits(rows, tokens, 0.7, &mut random);
    let draft = logits(rows, tokens, 0.5, &mut random);
    let mut tensors = both(&target, &draft);
    tensors.extend(more);
    held(rows, &tensors, PLAIN)
}

const BOTH_FORMS: [Rule; 2] = [Rule::LEVEL_4, Rule::LEVEL_4_INDEPENDENT];

/// A log of each form, audited as each: what fits is named, by the law and the rule.
#[test]
fn a_log_says_which_form_of_strata_it_fits() {
    let rows = 2_400;
    let alone = flat_log(rows, Vec::new());
    for own in BOTH_FORMS {
        let records = of_strata(own, own, None).log(&alone).unwrap().records;
        let log = flat_log(rows, played(&records));
        for claimed in BOTH_FORMS {
            let found = audited(&log, &settings(claimed, Some(Seeds::Fresh)));
            let repeated = hard_check(&found, "draft-repeated").unwrap();
            let twice = own == Rule::LEVEL_4_INDEPENDENT && claimed == Rule::LEVEL_4;
            assert_eq!(repeated.violations > 0, twice, "{own} as {claimed}");
            assert_eq!(found.rule, claimed.to_string());
            if own == claimed {
                assert!(found.ok, "{own}: {found:#?}");
            } else {
                assert_eq!(found.conclusion, Conclusion::LosslessOther);
                assert_eq!(found.fits.as_deref(), Some(&*own.to_string()));
            }
        }
    }
}

/// How the engine below differs from the rule that carries.
#[derive(Clone, Copy, PartialEq)]
enum Off {
    Nothing,
    /// It takes d for 1.
    Carry,
    /// The token behind a whole chain comes from p.
    Bonus,
}

const OF_A_TEXT: usize = 20;

/// A log of texts that an engine wrote with two drafts a round, by the definition and not by the
/// audit's laws. The last token of a text is not drafted.
fn carried_log(texts: usize, off: Off) -> Log {
    let (tokens, most, rows) = (7, 2, texts * OF_A_TEXT);
    let mut random = ChaCha8Rng::seed_from_u64(19);
    let target = logits(rows, tokens, 0.9, &mut random);
    let draft = logits(rows, tokens, 0.6, &mut random);
    let mut drafts = vec![vec![-1i64; most]; rows];
    let (mut accepted, mut output) = (vec![-1i64; rows], vec![-1i64; rows]);
    let mut draw = |law: &[f64]| {
        let mut left = random.random::<f64>() * law.iter().sum::<f64>();
        let past = |mass: &f64| {
            left -= mass;
            left < 0.0
        };
        law.iter().position(past).unwrap_or(law.len() - 1)
    };
    for first in (0..rows).step_by(OF_A_TEXT) {
        let end = first + OF_A_TEXT;
        // w_j: the round that runs has kept j drafts, given the text so far.
        let mut shares = vec![0.0; most + 1];
        shares[0] = 1.0;
        let mut at = first;
        while at < end {
            let begin = at;
            let many = most.min(end - 1 - begin);
            for (place, slot) in drafts[begin][..many].iter_mut().enumerate() {
                *slot = draw(&softmax(&draft[begin + place], 1.0)) as i64;
            }
            accepted[begin] = 0;
            loop {
                let (p, q) = (softmax(&target[at], 1.0), softmax(&draft[at], 1.0));
                let known: f64 = shares[..most].iter().sum();
                let known = if at + 1 == end { 0.0 } else { known };
                let stands = if off == Off::Carry { 1.0 } else { known };
                let left = |stands: f64| -> Vec<f64> {
                    let both = p.iter().zip(&q);
                    both.map(|(p, q)| (p - stands * q).max(0.0)).collect()
                };
                let kept = at - begin;
                let token = if kept < many {
                    let x = drafts[begin][kept] as usize;
                    let keep = (p[x] / (stands * q[x])).min(1.0);
                    if draw(&[keep, 1.0 - keep]) == 0 {
                        accepted[begin] += 1;
                        x
                    } else {
                        draw(&left(stands))
                    }
                } else if off != Off::Nothing || known == 0.0 {
                    draw(&p)
                } else {
                    draw(&left(stands))
                };
                output[at] = token as i64;
                let mass = (known * q[token] / p[token]).min(1.0);
                let grown: Vec<f64> = match known > 0.0 {
                    true => shares[..most].iter().map(|w| w / known * mass).collect(),
                    false => vec![0.0; most],
                };
                shares = std::iter::once(1.0 - mass).chain(grown).collect();
                at += 1;
                if at == end || accepted[begin] as usize != at - begin {
                    break;
                }
            }
        }
    }
    let mut tensors = both(&target, &draft);
    tensors.extend(labels(texts, OF_A_TEXT));
    tensors.extend(rounds_of(most, drafts.concat(), accepted, output));
    held(rows, &tensors, PLAIN)
}

/// An engine that carries passes, and is told from one that verifies token by token.
#[test]
fn an_engine_that_carries_is_audited_by_what_it_carries() {
    let of = |log: &Log, rule: Rule| audited(log, &settings(rule, Some(Seeds::Fresh)));
    let honest = carried_log(400, Off::Nothing);
    for rule in [Rule::CARRIED, Rule::TEXT] {
        let found = of(&honest, rule);
        assert!(found.ok, "{found:#?}");
    }
    // It is lossless, and not the rule that it is like.
    let token = of(&honest, Rule::TOKEN);
    assert_eq!(token.conclusion, Conclusion::LosslessOther);
    assert_eq!(token.fits.as_deref(), Some("carried"));
    // One that forgets what it carries is that rule.
    let forgets = of(&carried_log(400, Off::Carry), Rule::CARRIED);
    assert_eq!(forgets.fits.as_deref(), Some("token"));
    assert_eq!(forgets.cause.unwrap().name, "carries-nothing");
    // One that draws from p behind a whole chain is lossy, and is told so there first.
    let bonus = of(&carried_log(1_000, Off::Bonus), Rule::CARRIED);
    let correction = &bonus.parts[Part::Correction.index()];
    assert!(correction.is_refuted(), "{bonus:#?}");
    assert_eq!(bonus.cause.as_ref().unwrap().name, "bonus-from-p");
    assert_ne!(bonus.conclusion, Conclusion::LosslessOther);
}

/// What a log lacks for the numbers that are carried is named.
#[test]
fn carried_needs_every_token_of_whole_texts() {
    let rows = [([0.5, 0.25, 0.25], [0.75, 0.125, 0.125]); 6];
    let with = |records: &[([i64; 2], i64, i64)]| {
        let log = log(&rows[..records.len()], records);
        let found = Opened::new(&log, &Settings::new(Rule::CARRIED), Rule::CARRIED, None);
        found.map(|_| ()).map_err(|error| error.to_string())
    };
    let (chain, end) = (([0, 0], 2, 0), ([-1, -1], -1, 0));
    for last in [[0, -1], [-1, -1]] {
        assert_eq!(with(&[chain, end, end, (last, 0, 0)]), Ok(()));
    }
    for (records, message) in [
        // The text begins inside a round.
        (vec![end, chain, end, end], "begins a text and no round"),
        // A round that drafts less: inside the text it is refused.
        (
            vec![([0, -1], 1, 0), end, chain, end],
            "is behind 1 accepted drafts and has none",
        ),
        // Two whole chains without the tokens behind them.
        ([chain, end].repeat(3), "behind whole chains"),
    ] {
        let found = with(&records).unwrap_err();
        assert!(found.contains(message), "{found}");
    }
}

/// A step of rejection sampling on rows of its own, at which a share of drafts is kept whatever
/// their probability, as where q is NaN and the test is `not (u > p/q)`.
fn rejection([p, q]: &[Vec<f64>; 2], share: f64, random: &mut ChaCha8Rng) -> Step {
    let x = draw(q, random.random());
    let broken = random.random::<f64>() < share;
    let accepted = broken || random.random::<f64>() < p[x] / q[x];
    let left: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p - q).max(0.0)).collect();
    let output = match accepted {
        true => x,
        false => draw(&left, random.random()),
    };
    Step {
        drafts: vec![x],
        accepted,
        output,
    }
}

fn simulator(rule: Rule, bug: Option<&str>) -> Simulator {
    Simulator {
        bug: bug.map(|bug| bug.parse().unwrap()),
        drafts: 2,
        ..Simulator::new(Settings {
            seed: 9,
            ..Settings::new(rule)
        })
    }
}

fn of_strata(rule: Rule, follows: Rule, bug: Option<&str>) -> Simulator {
    Simulator {
        follows: Some(follows),
        siblings: true,
        drafts: 3,
        ..simulator(rule, bug)
    }
}

/// Rows of two models and what an engine did on them; the rows are the engine's own.
fn simulated(simulator: &Simulator, rows: usize, spread: f64) -> Log {
    let mut random = ChaCha8Rng::seed_from_u64(simulator.settings.seed ^ 77);
    let target = logits(rows, 7, spread, &mut random);
    let draft = logits(rows, 7, 0.7 * spread, &mut random);
    let mut all = both(&target, &draft);
    let records = simulator.log(&held(rows, &all, PLAIN)).unwrap().records;
    all.extend(played(&records));
    held(rows, &all, PLAIN)
}

/// Of 240 honest engines of 200 steps, at a level of 5%: 12 are expected at most, and 24 and more
/// come with probability .1%. Noise on every logit that is stated changes nothing.
#[test]
fn honest_engines_are_accused_no_more_often_than_promised() {
    let rules = [Rule::TOKEN, Rule::ONE_HOT, Rule::EXACT_MATCH, Rule::BLOCK];
    for noise in [0.0, 0.1] {
        let mut accused = 0;
        for (number, rule) in rules.into_iter().enumerate() {
            for seed in 0..30 {
                let mut engine = simulator(rule, None);
                engine.noise = noise;
                engine.settings.seed = 1000 * number as u64 + seed;
                let log = simulated(&engine, 200, 1.2);
                let mut settings = Settings::new(rule);
                settings.alpha = 0.05;
                settings.noise = Some(noise);
                let report = audited(&log, &settings);
                accused += u32::from(!report.ok);
            }
        }
        assert!(accused < 24, "{noise}: {accused}");
    }
}

/// A broken engine is refuted, by the name of what it does.
#[test]
fn broken_engines_are_named() {
    let ratio = ["token", "accepts-with-ratio"];
    for (rule, bug, names) in [
        (Rule::TOKEN, "argmax-drafts", &["draft-likeliest"][..]),
        (Rule::TOKEN, "flatter-drafts", &["draft-temperature"]),
        (Rule::TOKEN, "accepts-everything", &["accepts-everything"]),
        (Rule::TOKEN, "correction-from-q", &["correction-from-q"]),
        (Rule::TOKEN, "correction-from-p", &["correction-from-p"]),
        (Rule::TOKEN, "target-sharper", &["temperature"]),
        (Rule::TOKEN, "ensemble", &["ensemble"]),
        (Rule::TOKEN, "exact-match", &["exact-match"]),
        (Rule::ONE_HOT, "rejection-sampling", &ratio),
        (Rule::BLOCK, "target-flatter", &["temperature"]),
    ] {
        let log = simulated(&simulator(rule, Some(bug)), 3000, 1.5);
        let report = audited(&log, &Settings::new(rule));
        let lossless = bug == "exact-match";
        assert_eq!(report.ok, lossless, "{rule} {bug}");
        let other = report.conclusion == Conclusion::LosslessOther;
        assert_eq!(other, lossless, "{rule} {bug}");
        let cause = cause(report);
        let name = cause.name.as_str();
        assert!(names.contains(&name), "{rule} {bug}: {cause:?}");
        assert!(cause.log_ratio_to_next >= 7.0);
    }
    let sharper = simulated(&simulator(Rule::TOKEN, Some("target-sharper")), 3000, 1.5);
    let cause = cause(audited(&sharper, &Settings::new(Rule::TOKEN)));
    let factor = cause.fit["factor"].as_f64().unwrap();
    assert!((factor - 0.7).abs() < 0.05, "{cause:?}");
}

/// An engine that verifies token by token is that, and not block verification that accepts less; a short log of
/// block verification is not called a bug of token verification: the rule is named by its likelihood. What is broken
/// is none of both.
#[test]
fn token_and_block_verification_are_known_where_the_other_was_named() {
    for (own, named, rows) in [
        (Rule::TOKEN, Rule::BLOCK, 20_000),
        (Rule::BLOCK, Rule::TOKEN, 1000),
    ] {
        let mut engine = simulator(own, None);
        engine.drafts = 5;
        let report = audited(&simulated(&engine, rows, 1.0), &Settings::new(named));
        assert_eq!(report.conclusion, Conclusion::LosslessOther);
        assert_eq!(report.fits, Some(own.to_string()));
        assert_eq!(cause(report).name, own.to_string());
    }
}

/// A rule that lets outputs differ from p is as claimed where it is kept to. Where it is not, no lossless rule is named
/// unless it holds against an audit by its own name.
#[test]
fn a_lossy_claim_is_kept_to_or_not() {
    let [half, much] = [0.5, 0.8].map(|over| Rule::threshold(over).unwrap());
    let sampled = Some("sampled-drafts");
    for (own, bug, named, fits) in [
        (half, None, half, ""),
        (much, None, much, ""),
        (half, sampled, half, "none"),
        (much, sampled, half, "none"),
        (Rule::EXACT_MATCH, None, half, "exact-match"),
        (Rule::ONE_HOT, None, half, "one-hot"),
        (Rule::BLOCK, None, half, "block"),
        (Rule::BLOCK, None, Rule::ONE_HOT, "block"),
    ] {
        let mut engine = simulator(own, bug);
        engine.drafts = 4;
        let report = audited(&simulated(&engine, 10_000, 1.5), &Settings::new(named));
        let conclusion = match fits {
            "" => Conclusion::AsClaimed,
            "none" => Conclusion::NotTheRule,
            _ => Conclusion::LosslessOther,
        };
        let words = format!("{own} {bug:?} as {named}: {:?}", report.open);
        assert_eq!(report.conclusion, conclusion, "{words}");
        let found = report.fits.as_deref().unwrap_or_default();
        assert!(found == fits || fits == "none", "{words}: {found}");
        let name = report.cause.map_or(String::new(), |cause| cause.name);
        assert!(
            name == fits || name.parse::<Rule>().is_err(),
            "{words}: {name}"
        );
        let mut parts = report.parts.iter();
        let is_refuted = parts.any(|part| part.part == "target-law" && part.is_refuted());
        assert!(!is_refuted, "{words}");
    }
}

/// Draft and target have their tokens from one noise, and the target is at another temperature, or none: no rule is
/// known that keeps so many drafts, and none is the cause.
#[test]
fn one_noise_of_several_drafts_is_no_bug_of_another_rule() {
    for temperature in [1.0, 0.7] {
        let mut random = ChaCha8Rng::seed_from_u64(45);
        let [target, draft] = near_rows(4000, 12, 1.0, &mut random);
        let (mut drafts, mut output) = (Vec::new(), Vec::new());
        for (row, q) in target.iter().zip(&draft) {
            let noise: Vec<f64> = row.iter().map(|_| -random.random::<f64>().ln()).collect();
            let first = |law: &[f64]| -> Vec<i64> {
                let mut order: Vec<usize> = (0..12).collect();
                order.sort_by(|a, b| (noise[*a] / law[*a]).total_cmp(&(noise[*b] / law[*b])));
                order.into_iter().map(|token| token as i64).collect()
            };
            drafts.extend_from_slice(&first(&softmax(q, 1.0))[..2]);
            output.push(first(&softmax(row, temperature))[0]);
        }
        let mut all = both(&target, &draft);
        all.extend(labels(40, 100));
        all.push(("drafts", Dtype::I64, 2, whole(drafts)));
        all.push(("output", Dtype::I64, 0, whole(output)));
        let log = held(4000, &all, PLAIN);
        for rule in [Rule::RRS_WO, Rule::EXACT_MATCH] {
            let report = audited(&log, &Settings::new(rule));
            let is_lossy = report.conclusion == Conclusion::Lossy;
            assert_eq!(is_lossy, temperature < 1.0, "{rule}");
            let name = report.cause.map(|cause| cause.name);
            if is_lossy || rule == Rule::RRS_WO {
                assert_eq!(name.as_deref(), is_lossy.then_some("temperature"), "{rule}");
            }
        }
    }
}

/// Two things are wrong: the engine, and the temperature at which it is audited. What does not lose
/// anything is no cause of a loss.
#[test]
fn no_lossless_law_is_the_cause_of_what_is_lossy() {
    for bug in [
        "correction-from-q",
        "correction-from-p",
        "accepts-everything",
    ] {
        let log = simulated(&simulator(Rule::TOKEN, Some(bug)), 3000, 1.5);
        for temperature in [0.6, 0.8, 1.25, 1.6] {
            let mut settings = Settings::new(Rule::TOKEN);
            settings.claimed = Some(Claimed::at(temperature));
            let report = audited(&log, &settings);
            assert_eq!(report.conclusion, Conclusion::Lossy, "{bug} {temperature}");
            let is_lossless = |cause: &Cause| cause.cure.starts_with("nothing is lost");
            let cause = report.cause.filter(is_lossless);
            assert!(cause.is_none(), "{bug} {temperature}: {cause:?}");
        }
    }
}

/// Rounds of one drafted token of an engine that is wrong in one way, or in none.
fn wrong_in_one_way(how: &str, rows: usize) -> Log {
    let mut random = ChaCha8Rng::seed_from_u64(41);
    let [target, mut draft] = near_rows(rows, 12, 1.0, &mut random);
    let (mut drafts, mut accepted, mut output) = (vec![], vec![], vec![]);
    let kept = |row: &[f64], is: &dyn Fn(usize) -> bool| -> Vec<f64> {
        let kept = row.iter().enumerate();
        kept.map(|(token, x)| if is(token) { *x } else { 0.0 })
            .collect()
    };
    let best = |row: &[f64]| {
        let all = 0..row.len();
        all.max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap()
    };
    let (mut is_behind, mut late) = (false, std::collections::BTreeSet::new());
    let texts = if how == "lag" { rows / 10 } else { 1 };
    for (row, q) in target.iter().zip(&draft) {
        if output.len() % (rows / texts) == 0 {
            late.clear();
        }
        let [mut p, mut q] = [row, q].map(|row| softmax(row, 1.0));
        let largest = p[best(&p)];
        let size = |what: &str| how.strip_prefix(what).map(|size| size.parse().unwrap());
        if let Some(banned) = size("banned ") {
            p = kept(&p, &|token| token as f64 != banned);
        } else if let Some(size) = size("min-p ") {
            p = kept(&p, &|token| p[token] >= size * largest);
        } else if let Some(size) = size("both at min-p ") {
            let most = q[best(&q)];
            p = kept(&p, &|token| p[token] >= size * largest);
            q = kept(&q, &|token| q[token] >= size * most);
            let sum: f64 = q.iter().sum();
            q.iter_mut().for_each(|x| *x /= sum);
        } else if let Some(size) = size("top-k ") {
            let above = |token: usize| p.iter().filter(|x| **x > p[token]).count() as f64;
            p = kept(&p, &|token| above(token) < size);
        } else if how == "lag" {
            late.iter().for_each(|token: &usize| p[*token] *= 0.3);
        } else if how == "pairs" {
            let before = output.last().copied().unwrap_or_default() as usize;
            let number = |token: usize| (12 * before + token).wrapping_mul(40_503) >> 4;
            p = kept(&p, &|token| number(token) % 10 > 2);
        }
        let sum: f64 = p.iter().sum();
        p.iter_mut().for_each(|x| *x /= sum);
        let own = |row: &[f64], random: &mut ChaCha8Rng| draw(row, random.random()) as i64;
        if std::mem::take(&mut is_behind) {
            drafts.push(-1);
            accepted.push(-1);
            output.push(own(if how == "bonus" { &q } else { &p }, &mut random));
            late.extend(output.last().map(|token| *token as usize));
            continue;
        }
        let some = kept(&q, &|token| token % 2 == 0);
        let (drawn, all) = match how {
            "undrafted" => (&some, some.iter().sum()),
            _ => (&q, 1.0),
        };
        let x = draw(drawn, all * random.random::<f64>());
        is_behind = random.random::<f64>() < p[x] / q[x]
            || (how == "keeps" && random.random::<f64>() < 0.25);
        let left: Vec<f64> = p.iter().zip(&q).map(|(p, q)| (p - q).max(0.0)).collect();
        drafts.push(x as i64);
        accepted.push(i64::from(is_behind));
        output.push(match (is_behind, how) {
            (true, _) => x as i64,
            (false, "likeliest") => best(&left) as i64,
            (false, _) => own(&left, &mut random),
        });
        late.extend((!is_behind).then(|| output[output.len() - 1] as usize));
    }
    if how == "zero" {
        let at = (0..rows).find(|at| drafts[*at] >= 0).unwrap();
        draft[at][drafts[at] as usize] = f64::NEG_INFINITY;
    }
    let mut all = both(&target, &draft);
    all.extend(labels(texts, rows / texts));
    all.extend(rounds_of(1, drafts, accepted, output));
    held(rows, &all, PLAIN)
}

/// What is wrong is named with its size: a banned token by its id, a share by what it lies between, a cut at the size
/// that people write.
#[test]
fn sizes_are_those_of_what_is_wrong() {
    let audit = |how: &str| audited(&wrong_in_one_way(how, 6000), &Settings::new(Rule::TOKEN));
    let nothing = audit("nothing");
    assert_eq!(nothing.conclusion, Conclusion::AsClaimed);
    // Pairs of tokens are many: their bans are excluded from a larger share on.
    let least = nothing.parts[3].smallest_tv_excluded;
    assert!(
        least.is_some_and(|least| least > 0.05 && least < 0.3),
        "{least:?}"
    );
    let undrafted = audit("undrafted");
    assert!(undrafted.parts[0].is_refuted());
    assert_eq!(undrafted.cause.unwrap().name, "draft-banned");
    let cause = |how: &str, name: &str| {
        let report = audit(how);
        assert_eq!(report.conclusion, Conclusion::Lossy, "{how}");
        let cause = cause(report);
        assert_eq!(cause.name, name, "{how}: {cause:?}");
        cause.fit
    };
    // 3 is an eighth of the ids by itself.
    for banned in [1, 3] {
        let fit = cause(&format!("banned {banned}"), "token-banned");
        assert_eq!(fit["token"], banned);
    }
    let within = |fit: &serde_json::Map<String, serde_json::Value>, name: &str, truth: f64| {
        let [low, high] = [0, 1].map(|end| fit[&format!("{name}_range")][end].as_f64().unwrap());
        assert!(low <= truth && truth <= high && high < 2.0 * low, "{fit:?}");
    };
    assert_eq!(cause("bonus", "bonus-from-q")["weight"], 0.0);
    within(&cause("lag", "penalty-lag"), "penalty", 1.2);
    cause("likeliest", "correction-likeliest");
    assert!(cause("pairs", "pair-bias")["never"].as_u64().unwrap() > 20);
    within(&cause("keeps", "accepts-more"), "share", 0.25);
    for size in [0.15, 0.17] {
        let fit = cause(&format!("min-p {size}"), "target-cut");
        within(&fit, "min_p", size);
    }
    assert_eq!(cause("top-k 7", "target-cut")["top_k"], 7);
    // One draft of probability 0 is a finding, and tells no law.
    let zero = audit("zero");
    assert_eq!(zero.conclusion, Conclusion::NotTheRule);
    assert_eq!(hard_check(&zero, "draft-zero").unwrap().violations, 1);
    assert!(zero.cause.is_none(), "{:?}", zero.cause);
}

/// Where rows are cut and nobody says whether the draft's are, both are tried, and the report says which it took.
#[test]
fn a_draft_that_is_cut_as_the_target_is_needs_no_word() {
    let report = |how: &str, claim: &dyn Fn(&mut Claimed)| {
        let mut settings = Settings::new(Rule::TOKEN);
        let mut claimed = Claimed {
            min_p: Some(0.2),
            ..Claimed::at(1.0)
        };
        claim(&mut claimed);
        settings.claimed = Some(claimed);
        audited(&wrong_in_one_way(how, 3000), &settings)
    };
    let cut = |report: &AuditReport| report.claimed.as_ref().unwrap().draft_cut;
    let found = report("both at min-p 0.2", &|_| {});
    assert!(found.conclusion.stands() && cut(&found));
    assert!(
        is_said(&found.notes, "Say --draft-cut"),
        "{:?}",
        found.notes
    );
    let said = report("both at min-p 0.2", &|claimed| {
        claimed.draft_min_p = Some(0.2)
    });
    assert!(said.conclusion.stands() && !cut(&said));
    assert!(!is_said(&said.notes, "--draft-cut"));
    // A draft that is whole is one, and a wrong size of its own cut is no other.
    let whole = report("min-p 0.2", &|_| {});
    assert!(whole.conclusion.stands() && !cut(&whole));
    let wrong = report("both at min-p 0.2", &|claimed| {
        claimed.draft_min_p = Some(0.05)
    });
    assert!(!wrong.conclusion.stands() && !cut(&wrong));
}

/// Rounds of one drafted token of a target that draws with the numbers that drew the draft.
fn shared_log(numbers: &str, rows: usize) -> Log {
    let mut random = ChaCha8Rng::seed_from_u64(43);
    let [target, draft] = near_rows(rows, 12, 1.0, &mut random);
    let (mut drafts, mut accepted, mut output) = (vec![], vec![], vec![]);
    let mut is_behind = false;
    for rows in target.iter().zip(&draft) {
        let [p, q] = [rows.0, rows.1].map(|row| softmax(row, 1.0));
        let clocks: Vec<f64> = p.iter().map(|_| -random.random::<f64>().ln()).collect();
        let number = random.random();
        let drawn = |row: &[f64]| {
            let mut order: Vec<usize> = (0..row.len()).collect();
            match numbers {
                "clocks" => {
                    let first = |a: &usize, b: &usize| {
                        (clocks[*a] / row[*a]).total_cmp(&(clocks[*b] / row[*b]))
                    };
                    return order.into_iter().min_by(first).unwrap();
                }
                "by mass" => order.sort_by(|a, b| row[*b].total_cmp(&row[*a])),
                _ => {}
            }
            let sorted: Vec<f64> = order.iter().map(|token| row[*token]).collect();
            order[draw(&sorted, number)]
        };
        let [x, y] = [&q, &p].map(|row| drawn(row) as i64);
        let is_drafted = !std::mem::replace(&mut is_behind, false);
        is_behind = is_drafted && x == y;
        drafts.push(if is_drafted { x } else { -1 });
        accepted.push(if is_drafted { i64::from(is_behind) } else { -1 });
        output.push(y);
    }
    let mut all = both(&target, &draft);
    all.extend(labels(1, rows));
    all.extend(rounds_of(1, drafts, accepted, output));
    held(rows, &all, PLAIN)
}

/// A target that draws with the draft's numbers loses nothing, whichever rule is named: no law that keeps
/// drafts too often is its cause.
#[test]
fn numbers_that_target_and_draft_share_lose_nothing() {
    for (numbers, words) in [
        ("by id", "by id"),
        ("by mass", "by falling mass"),
        ("clocks", "a clock a token"),
    ] {
        for rule in [Rule::TOKEN, Rule::EXACT_MATCH] {
            let report = audited(&shared_log(numbers, 3000), &Settings::new(rule));
            assert_eq!(
                report.conclusion,
                Conclusion::LosslessOther,
                "{numbers} {rule}"
            );
            let cause = cause(report);
            assert_eq!(cause.name, "exact-match-with-shared-numbers", "{cause:?}");
            let said = cause.fit["numbers"].as_str().unwrap();
            assert!(said.ends_with(words), "{numbers}: {said}");
        }
    }
}

/// A sampler keeps some of equal tokens at the end of a cut, by an order of its own: that is no loss, and no
/// banned token.
#[test]
fn which_of_equal_tokens_a_cut_keeps_is_not_held_against_anybody() {
    let rows = 2000;
    let mut random = ChaCha8Rng::seed_from_u64(44);
    let mut output = Vec::new();
    let mut target = Vec::new();
    for number in 0..rows {
        let p = match number % 3 {
            0 => [0.5, 0.2, 0.2, 0.1],
            _ => [0.5, 0.25, 0.15, 0.1],
        };
        // The fewest with .65 of it: in both rows two.
        output.push(i64::from(random.random::<f64>() >= p[0] / (p[0] + p[1])));
        target.push(p.map(f64::ln).to_vec());
    }
    let mut all = vec![("target_logits", Dtype::F64, 4, floats(&target))];
    all.extend(labels(1, rows));
    all.push(("output", Dtype::I64, 0, whole(output)));
    let settings = Settings {
        claimed: Some(Claimed {
            top_p: Some(0.65),
            ..Claimed::at(1.0)
        }),
        ..Settings::new(Rule::TEXT)
    };
    let report = audited(&held(rows, &all, PLAIN), &settings);
    assert_eq!(
        report.conclusion,
        Conclusion::Undecided,
        "{:?}",
        report.cause
    );
    assert_eq!(report.looked_at, rows - rows.div_ceil(3));
    assert!(is_said(
        &report.open,
        "equal tokens stand at the end of a cut"
    ));
}

/// Each tampered log is refused, or it is said why not.
#[test]
fn the_negative_control_plays_every_bug() {
    let log = simulated(&simulator(Rule::TOKEN, None), 1500, 1.5);
    let mut settings = Settings::new(Rule::TOKEN);
    settings.stop = vec![2];
    let all = negative_control(&log, &settings).unwrap();
    assert!(all.len() > 20);
    for one in &all {
        assert!(one.refuted != Some(false), "{one:?}");
        assert_eq!(one.refuted.is_none(), one.reason.is_some(), "{one:?}");
    }
    for name in ["accepts-everything", "argmax-drafts", "correction-from-q"] {
        let one = all.iter().find(|one| one.name == name).unwrap();
        assert_eq!(one.refuted, Some(true), "{name}");
    }
}

/// Honest requests with one seed: nothing is accused, and that they share numbers is told.
#[test]
fn honest_requests_that_share_numbers_are_not_accused() {
    let mut told = 0;
    for seed in 0..8 {
        let log = engine_log(Rule::TOKEN, 60, 8, Some(seed), None, false);
        let report = audited(&log, &Settings::new(Rule::TOKEN));
        assert!(report.ok, "{seed} {report:#?}");
        assert_eq!(report.conclusion, Conclusion::Undecided);
        let cause = report.cause;
        told += usize::from(cause.is_some_and(|cause| cause.name == "shared-stream"));
        // Seeds that are logged, and equal, are no news; so are those that are said to be.
        let shared = settings(Rule::TOKEN, Some(Seeds::Shared));
        let logged = engine_log(Rule::TOKEN, 60, 8, Some(seed), None, true);
        for report in [
            audited(&logged, &settings(Rule::TOKEN, None)),
            audited(&log, &shared),
        ] {
            assert!(report.ok);
            assert_eq!(report.conclusion, Conclusion::Undecided);
            assert!(report.cause.is_none(), "{:?}", report.cause);
            let open = &report.open;
            assert!(!is_said(open, "log seed [N]"), "{open:?}");
            assert!(is_said(open, "one text counts"), "{open:?}");
            assert!(report.parts.iter().all(|part| !part.is_refuted()));
        }
        // Numbers that are said to be each request's own are not.
        let fresh = audited(&log, &settings(Rule::TOKEN, Some(Seeds::Fresh)));
        assert!(!fresh.ok, "{seed}");
    }
    assert!(told >= 6, "{told}");
}

/// Without a word on seeds bugs are found, and a short log decides nothing.
#[test]
fn bugs_are_found_whatever_is_known_of_seeds() {
    for bug in ["argmax-drafts", "accepts-everything", "correction-from-p"] {
        for seeds in [None, Some(Seeds::Shared), Some(Seeds::Fresh)] {
            let log = engine_log(Rule::TOKEN, 100, 8, None, Some(bug), false);
            assert!(!audited(&log, &settings(Rule::TOKEN, seeds)).ok, "{bug}");
        }
    }
    let short = engine_log(Rule::TOKEN, 20, 8, None, None, false);
    let short = audited(&short, &settings(Rule::TOKEN, None));
    assert_eq!((short.conclusion, short.ok), (Conclusion::Undecided, true));
    let wanted = short.tokens_wanted;
    assert!(wanted.is_some_and(|more| more > 100), "{:?}", short.open);
}

/// Exact match asks nothing of the draft's row: a log without it, as drafters have that look n-grams up,
/// tells the same of the rest, and the claim of another rule is refused.
#[test]
fn exact_match_needs_no_row_of_the_draft() {
    for bug in [None, Some("correction-from-p")] {
        let mut random = ChaCha8Rng::seed_from_u64(31);
        let [target, draft] = near_rows(1500, 7, 0.8, &mut random);
        let mut whole = both(&target, &draft);
        whole.extend(labels(10, 150));
        let made = held(1500, &whole, PLAIN);
        let made = simulator(Rule::EXACT_MATCH, bug).log(&made).unwrap();
        whole.extend(played(&made.records));
        let has_row = |one: &Tensor| one.0 != "draft_logits";
        let lacking: Tensors = whole.iter().filter(|one| has_row(one)).cloned().collect();
        let [known, lacking] = [whole, lacking].map(|all| held(1500, &all, PLAIN));
        let own = settings(Rule::EXACT_MATCH, Some(Seeds::Fresh));
        let [one, other] = [&known, &lacking].map(|log| audited(log, &own));
        assert_eq!(one.conclusion, other.conclusion);
        let names = |report: &AuditReport| report.cause.as_ref().map(|cause| cause.name.clone());
        assert_eq!(names(&one), bug.map(str::to_owned));
        assert_eq!(names(&other), names(&one));
        for (one, other) in one.parts.iter().zip(&other.parts) {
            assert_eq!((one.verdict, one.steps), (other.verdict, other.steps));
        }
        let text = |log: &Log| audited(log, &settings(Rule::TEXT, Some(Seeds::Fresh)));
        assert_eq!(text(&lacking).conclusion, text(&known).conclusion);
        refused(
            &lacking,
            &settings(Rule::TOKEN, None),
            &["position 0", "no row of the draft"],
        );
    }
}

/// One text in ten draws with the same numbers, and nothing says which; or texts are too short to show it.
#[test]
fn texts_of_which_some_share_numbers_accuse_nobody() {
    for (texts, length, every, clocks) in [
        (1000, 12, 10, false),
        (1000, 12, 10, true),
        (2000, 3, 4, false),
    ] {
        let mut random = ChaCha8Rng::seed_from_u64(9);
        let contexts = logits(12, 12, 0.7, &mut random);
        let mut numbers =
            |size: usize| -> Vec<f64> { (0..size).map(|_| random.random::<f64>()).collect() };
        let shared: Vec<Vec<f64>> = (0..length).map(|_| numbers(12)).collect();
        let (mut rows, mut output) = (Vec::new(), Vec::new());
        for text in 0..texts {
            let mut token = (numbers(1)[0] * 12.0) as usize;
            for place in &shared {
                let own = numbers(12);
                let drawn = if text % every == 0 { place } else { &own };
                let masses: Vec<f64> = contexts[token].iter().map(|x| x.exp()).collect();
                let all: f64 = masses.iter().sum();
                rows.push(contexts[token].clone());
                token = match clocks {
                    true => {
                        let rings = drawn.iter().zip(&masses).map(|(u, p)| -u.ln() / p);
                        let rings = rings.enumerate();
                        rings.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
                    }
                    false => {
                        let mut left = drawn[0] * all;
                        let passed = |p: &&f64| {
                            left -= **p;
                            left >= 0.0
                        };
                        masses.iter().take_while(passed).count().min(11)
                    }
                };
                output.push(token as i64);
            }
        }
        let mut all: Tensors = vec![("target_logits", Dtype::F64, 12, floats(&rows))];
        all.extend(labels(texts, length));
        all.push(("output", Dtype::I64, 0, whole(output)));
        let log = held(texts * length, &all, PLAIN);
        let open = audited(&log, &settings(Rule::TEXT, None));
        assert_eq!(open.conclusion, Conclusion::Undecided, "{:?}", open.cause);
        let said = open.open.iter().any(|one| one.contains("log seed [N]"));
        assert!(said, "{:?}", open.open);
        // Were these numbers each text's own, it would be another law.
        let fresh = audited(&log, &settings(Rule::TEXT, Some(Seeds::Fresh)));
        assert_eq!(fresh.conclusion, Conclusion::Lossy, "{length} {clocks}");
    }
}

/// Requests of one token that share a seed, as the log says or not, draw by one noise, or several drafts and a coin:
/// all say the same.
#[test]
fn short_texts_of_one_seed_accuse_nobody() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let contexts = logits(12, 12, 1.3, &mut random);
    let noise: Vec<f64> = (0..12)
        .map(|_| -(-random.random::<f64>().max(1e-300).ln()).ln())
        .collect();
    let rows: Vec<Vec<f64>> = (0..2000)
        .map(|_| contexts[random.random_range(0..12usize)].clone())
        .collect();
    let best = |row: &Vec<f64>| {
        let scores = row.iter().zip(&noise).map(|(x, g)| x + g).enumerate();
        let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(0, |(token, _)| token as i64)
    };
    let output: Vec<i64> = rows.iter().map(best).collect();
    let mut all: Tensors = vec![("target_logits", Dtype::F64, 12, floats(&rows))];
    all.extend(labels(2000, 1));
    all.push(("output", Dtype::I64, 0, whole(output)));
    let unsaid = held(2000, &all, PLAIN);
    all.push(("seed", Dtype::I64, 0, whole(vec![7; 2000])));
    let several = engine_log(Rule::RRS, 600, 1, Some(3), None, false);
    for (log, rule) in [
        (held(2000, &all, PLAIN), Rule::TEXT),
        (unsaid, Rule::TEXT),
        (several, Rule::RRS),
    ] {
        let report = audited(&log, &settings(rule, None));
        assert_eq!(
            report.conclusion,
            Conclusion::Undecided,
            "{:?}",
            report.cause
        );
    }
}

/// The rows of a log in another order.
fn in_order(rows: usize, all: &Tensors, order: &[usize]) -> Log {
    let moved = all.iter().map(|(name, kind, width, data)| {
        let each: Vec<&[u8]> = data.chunks(data.len() / rows).collect();
        let data = order.iter().flat_map(|at| each[*at].to_vec());
        (*name, *kind, *width, data.collect())
    });
    held(rows, &moved.collect(), PLAIN)
}

/// What an audit says is the same to the bit whether texts stand one after the other, in turn, backwards or mixed; in
/// parts too. Rows are named by their place in the log.
#[test]
fn texts_are_read_in_their_order_wherever_rows_stand() {
    const TEXTS: usize = 10;
    const ROWS: usize = 600;
    let own: Vec<usize> = (0..ROWS).collect();
    let turns: Vec<usize> = (own.iter())
        .map(|at| at % TEXTS * (ROWS / TEXTS) + at / TEXTS)
        .collect();
    let mixed: Vec<usize> = (own.iter())
        .map(|at| at % TEXTS * (ROWS / TEXTS) + at / TEXTS * 7 % (ROWS / TEXTS))
        .collect();
    let back: Vec<usize> = (0..TEXTS)
        .flat_map(|text| own[text * 60..][..60].iter().rev().copied())
        .collect();
    for (rule, bug) in [
        (Rule::TOKEN, None),
        (Rule::TOKEN, Some("correction-from-p")),
        (Rule::BLOCK, None),
    ] {
        let mut random = ChaCha8Rng::seed_from_u64(12);
        let [target, draft] = near_rows(ROWS, 7, 0.8, &mut random);
        let mut all = both(&target, &draft);
        all.extend(labels(TEXTS, ROWS / TEXTS));
        let made = simulator(rule, bug).log(&held(ROWS, &all, PLAIN)).unwrap();
        let turned = simulator(rule, bug)
            .log(&in_order(ROWS, &all, &turns))
            .unwrap();
        assert!(
            turns
                .iter()
                .zip(&turned.records)
                .all(|(at, one)| *one == made.records[*at])
        );
        let mut records = made.records;
        let wrong = (ROWS / 2..ROWS)
            .find(|&at| records[at].accepted > Some(0))
            .unwrap();
        let drafts = records[wrong].drafts.clone();
        records[wrong].output = (0..7).find(|id| !drafts.contains(id));
        all.extend(played(&records));
        for named in [rule, Rule::TEXT] {
            let settings = settings(named, Some(Seeds::Fresh));
            let of = |order: &[usize]| {
                let log = in_order(ROWS, &all, order);
                let mut found = Evidence::read(&log, &settings, 0..200, &|_| {}).unwrap();
                found.append(Evidence::read(&log, &settings, 200..ROWS, &|_| {}).unwrap());
                audit_read(&log, &settings, Some(&found), "", &|_| {}).unwrap()
            };
            let report = of(&own);
            assert_eq!(report.looked_at, ROWS);
            for order in [&turns, &mixed, &back] {
                let other = of(order);
                assert_eq!(
                    (other.conclusion, &other.parts),
                    (report.conclusion, &report.parts)
                );
                assert_eq!(
                    (&other.capital, &other.cause),
                    (&report.capital, &report.cause)
                );
                assert_eq!(other.excluded, report.excluded);
                let first = hard_check(&other, "accepted-not-emitted");
                let first = first.and_then(|check| check.first_position);
                assert_eq!(first.map(|at| order[at]), (named == rule).then_some(wrong));
            }
        }
        if rule == Rule::BLOCK {
            let played = [&own, &turns].map(|order| {
                let log = in_order(ROWS, &all, order);
                let control = negative_control(&log, &settings(rule, None)).unwrap();
                control
                    .into_iter()
                    .map(|one| (one.name, one.by))
                    .collect::<Vec<_>>()
            });
            assert_eq!(played[0], played[1]);
        }
    }
}

/// Several drafts of one position and of no other are alternatives, as what was accepted shows. A log that says of
/// rounds, by what came out, that they kept what they did not loses no token of its text by that.
#[test]
fn what_a_round_says_of_itself_chooses_no_sample() {
    let rows = 3_000;
    let mut random = ChaCha8Rng::seed_from_u64(8);
    let [target, draft] = near_rows(rows, 12, 0.8, &mut random);
    let (mut drafts, mut accepted, mut output) = (Vec::new(), Vec::new(), Vec::new());
    for (p, q) in target.iter().zip(&draft) {
        let y = draw(&softmax(p, 1.0), random.random()) as i64;
        let mut likeliest: Vec<i64> = (0..12).collect();
        likeliest.sort_by(|a, b| q[*b as usize].total_cmp(&q[*a as usize]));
        let is_behind = accepted.last() == Some(&1);
        let two = if is_behind {
            [-1; 2]
        } else {
            [likeliest[0], likeliest[1]]
        };
        accepted.push(match is_behind {
            true => -1,
            false => i64::from(two.contains(&y)),
        });
        drafts.extend(two);
        output.push(y);
    }
    let mut all = both(&target, &draft);
    all.extend(rounds_of(2, drafts, accepted, output.clone()));
    let tree = held(rows, &all, PLAIN);
    for rule in [Rule::EXACT_MATCH, Rule::ONE_HOT] {
        let report = audited(&tree, &settings(rule, Some(Seeds::Fresh)));
        assert!(
            report.conclusion.stands() && report.looked_at == rows,
            "{rule}: {report:#?}"
        );
        assert!(report.hard_checks.iter().all(|check| check.violations == 0));
    }
    refused(
        &tree,
        &settings(Rule::TOKEN, None),
        &["has 2 drafts for one position", "accepted"],
    );
    // A chain, of whose rounds with a token of the likeliest half nothing is said that is so.
    let mut all = both(&target, &draft);
    let mut records = simulator(Rule::EXACT_MATCH, None)
        .log(&held(rows, &all, PLAIN))
        .unwrap()
        .records;
    for (record, p) in records.iter_mut().zip(&target) {
        let y = record.output.unwrap();
        let is_likely = p.iter().filter(|x| **x > p[y as usize]).count() < 6;
        if record.accepted == Some(0) && is_likely && !record.drafts.contains(&y) {
            record.accepted = Some(1);
        }
    }
    all.extend(played(&records));
    let report = audited(
        &held(rows, &all, PLAIN),
        &settings(Rule::EXACT_MATCH, Some(Seeds::Fresh)),
    );
    assert!(
        hard_check(&report, "accepted-not-emitted")
            .unwrap()
            .violations
            > 300
    );
    assert_eq!(
        (report.conclusion, report.looked_at),
        (Conclusion::NotTheRule, rows)
    );
}
