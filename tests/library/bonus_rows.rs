//! Logs of engines that verify chains: the token behind drafts that were all accepted has a row
//! of the target and none of the draft. What the log does not know is bounded or left out.

use crate::made_log::V;
use crate::says::Says;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use specgap::audit::{Conclusion, Rule, audit};
use specgap::gap::{Part, Settings, Summary, summarise};
use specgap::log::{
    Dtype, EngineRecord, KeptTokens, Layout, Log, LogWriter, Metadata, Position, Row, Sampling,
};
use std::path::Path;

const K: usize = 2;

/// A position of an engine's text.
struct Logged {
    place: (i64, i64, i64),
    rows: [Vec<f32>; 2],
    record: EngineRecord,
    bonus: bool,
}

fn softmax(row: &[f32]) -> Vec<f64> {
    let weights: Vec<f64> = row.iter().map(|&x| f64::from(x).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|x| x / sum).collect()
}

fn drawn(rng: &mut SmallRng, weights: &[f64]) -> usize {
    let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
    let stop = weights.iter().position(|w| {
        left -= w;
        left < 0.0
    });
    stop.unwrap_or(weights.iter().rposition(|&w| w > 0.0).unwrap())
}

/// Texts of an honest engine that drafts chains of K tokens.
fn texts(count: usize) -> Vec<Logged> {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut all = Vec::new();
    for prompt in 0..count as i64 {
        let mut position = 0;
        for _ in 0..6 {
            let rows: Vec<[Vec<f32>; 2]> = (0..=K)
                .map(|_| {
                    let base: [f32; V] = std::array::from_fn(|_| rng.random_range(-2.0..2.0));
                    let target = base.map(|x| x + rng.random_range(-0.5..0.5)).to_vec();
                    [target, base.to_vec()]
                })
                .collect();
            let laws: Vec<[Vec<f64>; 2]> = (rows.iter())
                .map(|rows| rows.each_ref().map(|row| softmax(row)))
                .collect();
            let drafts: Vec<usize> = (laws[..K].iter())
                .map(|[_, q]| drawn(&mut rng, q))
                .collect();
            let mut accepted = 0;
            let mut out = Vec::new();
            for ([p, q], &x) in laws.iter().zip(&drafts) {
                if rng.random::<f64>() * q[x] < p[x] {
                    accepted += 1;
                    out.push(x);
                } else {
                    let rest: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p - q).max(0.0)).collect();
                    out.push(drawn(&mut rng, &rest));
                    break;
                }
            }
            if accepted == K {
                out.push(drawn(&mut rng, &laws[K][0]));
            }
            for (depth, (&token, rows)) in out.iter().zip(rows).enumerate() {
                let chain = drafts.iter().map(|&x| x as i64).collect();
                all.push(Logged {
                    place: (prompt, position, token as i64),
                    rows,
                    record: EngineRecord {
                        drafts: if depth == 0 { chain } else { Vec::new() },
                        accepted: Some(if depth == 0 { accepted as i64 } else { -1 }),
                        output: Some(token as i64),
                        round: Some(depth as i64),
                        ..EngineRecord::default()
                    },
                    bonus: depth == K,
                });
                position += 1;
            }
        }
    }
    all
}

/// Writes positions; `draft` says which have a row of the draft.
fn write<'a>(
    path: &Path,
    all: impl Iterator<Item = &'a Logged>,
    layout: Layout,
    commit_every: usize,
    draft: impl Fn(&Logged) -> bool,
) -> Log {
    let metadata = Metadata {
        sampling: Some(Sampling {
            temperature: 1.0,
            ..Sampling::default()
        }),
        ..Metadata::default()
    };
    let mut writer = LogWriter::create(path, metadata, layout).unwrap();
    for (number, one) in all.enumerate() {
        let (prompt_id, position, token) = one.place;
        let rows = Position {
            prompt_id,
            position,
            token,
            target: &one.rows[0],
            draft: if draft(one) { &one.rows[1] } else { &[] },
        };
        writer.append(&rows).unwrap();
        writer.set_engine(&one.record).unwrap();
        if number % commit_every == commit_every - 1 {
            writer.commit().unwrap();
        }
    }
    writer.commit().unwrap();
    Log::open(path).unwrap()
}

fn layout() -> Layout {
    Layout {
        dtype: Dtype::F32,
        ..Layout::new(V)
    }
}

#[test]
fn rows_that_the_draft_lacks_are_written_joined_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let all = texts(8);
    let lists = KeptTokens::Top {
        count: 3,
        rest_temperatures: vec![1.0],
    };
    for (name, tokens) in [("full", KeptTokens::All), ("lists", lists)] {
        let layout = Layout { tokens, ..layout() };
        // Many small shards, some without any such row, become one.
        let log = write(&folder.path().join(name), all.iter(), layout, 1, |one| {
            !one.bonus
        });
        assert!(log.may_lack_drafts());
        let mut row = Row::default();
        for (number, one) in all.iter().enumerate() {
            log.read(number, &mut row).unwrap();
            assert_eq!(row.lacks_draft, one.bonus, "{name} {number}");
            assert_eq!(row.draft.iter().all(|x| x.is_nan()), one.bonus);
            assert_eq!(row.draft.iter().any(|x| x.is_nan()), one.bonus);
            assert!(row.target.iter().all(|x| x.is_finite()));
        }
    }
}

#[test]
fn a_gap_leaves_them_out_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let all = texts(12);
    let lacking = write(
        &folder.path().join("log"),
        all.iter(),
        layout(),
        50,
        |one| !one.bonus,
    );
    let others = all.iter().filter(|one| !one.bonus);
    let without = write(&folder.path().join("without"), others, layout(), 50, |_| {
        true
    });
    let settings = Settings::new(&[1.0], &[1, 2], 3).unwrap();
    let found = |log: &Log, part: Part| {
        summarise(std::slice::from_ref(log), &settings, part, None, &|_| ()).unwrap()
    };
    let part = |index| found(&lacking, Part { index, count: 3 });
    let whole = found(&lacking, Part::WHOLE).report("");
    let bonus = all.iter().filter(|one| one.bonus).count();
    assert!(bonus > 10);
    assert_eq!(whole.positions, all.len() - bonus);
    let expected = found(&without, Part::WHOLE).report("");
    assert_eq!(whole.cells, expected.cells);
    assert_eq!(whole.one_draft, expected.one_draft);
    assert_eq!(whole.logs[0].without_draft, bonus);
    let line = format!("{bonus} of {} positions are left out", all.len());
    assert!(format!("{:?}", specgap::report::gap::page(&whole)).contains(&line));
    // In parts, and through files.
    let mut merged = part(3);
    for other in [part(1), part(2)] {
        let text = other.to_json().unwrap();
        let read = Summary::from_json(&text).unwrap();
        merged.merge(&read).unwrap();
    }
    assert!(merged.missing().is_empty());
    assert_eq!(merged.report(""), whole);
    // Where there is no row of the draft at all, there is no report.
    let none = write(
        &folder.path().join("none"),
        all.iter(),
        layout(),
        50,
        |_| false,
    );
    let error = summarise(&[none], &settings, Part::WHOLE, None, &|_| ()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("nor has any other position"), "{error}");
}

#[test]
fn draft_lengths_are_bounded_along_whole_texts() {
    let folder = tempfile::tempdir().unwrap();
    let all = texts(12);
    let settings = specgap::replay::LengthSettings::default();
    let found = |name: &str, has_draft: fn(&Logged) -> bool| {
        let log = write(
            &folder.path().join(name),
            all.iter(),
            layout(),
            50,
            has_draft,
        );
        specgap::replay::measure_lengths(&[log], &settings, "", &|_| ()).unwrap()
    };
    let known = found("known", |_| true);
    let lacking = found("lacking", |one| !one.bonus);
    assert_eq!(lacking.of.positions, all.len());
    assert_eq!(known.acceptance.truncation, None);
    let inside = |known: f64, bounds: Option<[f64; 2]>, what: &str| {
        let [low, high] = bounds.unwrap_or_else(|| panic!("{what} has no bounds"));
        assert!(
            low < known && known < high,
            "{what}: {known} in [{low}, {high}]"
        );
    };
    inside(
        known.acceptance.mean,
        lacking.acceptance.truncation,
        "acceptance",
    );
    let mut compared = 0;
    for other in &lacking.results {
        let same = known.results.iter().find(|one| {
            (&one.policy, one.parameter, one.drafts, &one.verifier)
                == (
                    &other.policy,
                    other.parameter,
                    other.drafts,
                    &other.verifier,
                )
        });
        let (Some(known), Some(found)) = (
            same.and_then(|one| one.tokens_per_call.as_ref()),
            &other.tokens_per_call,
        ) else {
            continue;
        };
        let what = format!(
            "{} {} {:?} {}",
            other.policy, other.parameter, other.drafts, other.verifier
        );
        inside(known.mean, found.truncation, &what);
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
    let of_others = |one: &specgap::replay::PolicyResult| {
        one.verifier != "token" || one.policy != "fixed" || one.tokens_per_call.is_none()
    };
    assert!(!lacking.results.iter().any(of_others));
    assert!(lacking.by_cost.is_empty());
    let told = |line: &String| line.contains("positions the log has no row of the draft");
    assert!(lacking.left_out.iter().any(told), "{:?}", lacking.left_out);
    // Nothing but a chain is bounded by so little.
    let log = Log::open(&folder.path().join("lacking")).unwrap();
    let error =
        specgap::replay::measure_trees(&[log], &crate::trees::settings(&["2x2"]), "", &|_| ());
    let message = error.unwrap_err().to_string();
    assert!(message.contains("draft_row is 0"), "{message}");
}

#[test]
fn an_audit_uses_the_target_and_refuses_drafts_of_unknown_rows() {
    let folder = tempfile::tempdir().unwrap();
    let all = texts(40);
    let found = |name: &str, has_draft: fn(&Logged) -> bool| {
        let log = write(
            &folder.path().join(name),
            all.iter(),
            layout(),
            50,
            has_draft,
        );
        let settings = specgap::audit::Settings::new(Rule::TOKEN);
        audit(&log, &settings, "", &|_| ())
    };
    let known = found("known", |_| true).unwrap();
    let lacking = found("lacking", |one| !one.bonus).unwrap();
    assert_eq!(known.conclusion, Conclusion::Undecided);
    assert_eq!(lacking.conclusion, known.conclusion);
    assert_eq!(lacking.hard_checks, known.hard_checks);
    assert!(known.hard_checks.iter().all(|check| check.violations == 0));
    // Of drafts and acceptance nothing is lost but the row of the place before, which one suspect
    // asks for.
    for (one, other) in lacking.parts.iter().zip(&known.parts) {
        assert_eq!(one.verdict, other.verdict);
        assert!((one.log10_e_value - other.log10_e_value).abs() < 0.05);
    }
    assert!(
        lacking
            .parts
            .iter()
            .zip(&known.parts)
            .all(|(one, other)| one.steps == other.steps)
    );
    let message = found("drafted", |one| one.record.round != Some(0))
        .unwrap_err()
        .to_string();
    message.says("no row of the draft (draft_row is 0)");
}

#[test]
fn a_flag_that_is_none_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, texts(1).iter(), layout(), 50, |one| !one.bonus);
    let file = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "safetensors"))
        .unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let start = header["draft_row"]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[8 + length + start] = 2;
    let log = Log::from_bytes(Path::new("changed.safetensors"), bytes.into()).unwrap();
    let message = log.read(0, &mut Row::default()).unwrap_err().to_string();
    assert!(
        message.contains("draft_row") && message.contains("is 2; it is 1 where"),
        "{message}"
    );
}
