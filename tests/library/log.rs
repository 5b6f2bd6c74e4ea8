//! Logs: what is written is read, what NumPy wrote is read, and what is wrong
//! is named.

use crate::says::Says;
use proptest::prelude::*;
use specgap::log::{
    Container, DraftLogs, Dtype, KeptTokens, Layout, Log, LogError, LogWriter, Metadata, Position,
    PromptRecord, Row, RowKind, SharedPosition,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MASKED: f32 = f32::NEG_INFINITY;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/logs")
        .join(name)
}

/// Rows with ties, masked tokens and numbers that f16 rounds.
fn rows(count: usize, vocabulary: usize) -> Vec<(Vec<f32>, Vec<f32>)> {
    let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 37.0 - 9.0;
    (0..count)
        .map(|n| {
            let mut target: Vec<f32> = (0..vocabulary).map(|i| value(n * 31 + i)).collect();
            let draft = (0..vocabulary).map(|i| value(n * 17 + 3 * i + 1)).collect();
            target[n % vocabulary] = MASKED;
            (target, draft)
        })
        .collect()
}

fn write(directory: &Path, layout: Layout, rows: &[(Vec<f32>, Vec<f32>)]) {
    let mut writer = LogWriter::create(directory, Metadata::default(), layout).unwrap();
    for (n, (target, draft)) in rows.iter().enumerate() {
        writer.append(&position(n, target, draft)).unwrap();
    }
    writer.commit().unwrap();
}

fn position<'a>(n: usize, target: &'a [f32], draft: &'a [f32]) -> Position<'a> {
    Position {
        prompt_id: (n / 3) as i64,
        position: (n % 3) as i64,
        token: (n % 5) as i64,
        target,
        draft,
    }
}

/// A row as a log of this type holds it: half types shifted to a largest entry
/// of 0.
fn held(row: &[f32], dtype: Dtype) -> Vec<f64> {
    let largest = row.iter().copied().fold(MASKED, f32::max);
    row.iter()
        .map(|&x| match dtype {
            Dtype::F16 => half::f16::from_f32(x - largest).to_f64(),
            Dtype::Bf16 => half::bf16::from_f32(x - largest).to_f64(),
            _ => f64::from(x),
        })
        .collect()
}

#[test]
fn what_is_written_is_read_in_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let vocabulary = 40;
    let rows = rows(11, vocabulary);
    let mut made = 0;
    for container in [Container::Safetensors, Container::Npz] {
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64] {
            if container == Container::Npz && dtype == Dtype::Bf16 {
                continue;
            }
            for top in [None, Some(4), Some(1000)] {
                let path = folder.path().join(made.to_string());
                made += 1;
                let layout = Layout {
                    dtype,
                    container,
                    // Two or three positions a shard.
                    shard_bytes: 200,
                    tokens: top.map_or(KeptTokens::All, |count| KeptTokens::Top {
                        count,
                        rest_temperatures: vec![1.0, 0.5],
                    }),
                    ..Layout::new(vocabulary)
                };
                write(&path, layout, &rows);
                let log = Log::open(&path).unwrap();
                assert_eq!(log.positions(), 11);
                assert_eq!(log.vocabulary(), vocabulary);
                assert_eq!(log.is_top_heavy(), top.is_some());
                assert_eq!(log.kinds(), (RowKind::Logits, RowKind::Logits));
                assert_eq!(log.dtypes(), (dtype, dtype));
                assert!(log.spans(usize::MAX).len() > 1, "several shards");
                let mut row = Row::default();
                let mut seen = 0;
                for span in log.spans(2) {
                    let chunk = log.chunk(&span).unwrap();
                    for n in chunk.positions() {
                        assert_eq!(n, seen);
                        seen += 1;
                        chunk.read(n, &mut row).unwrap();
                        let (target, draft) = &rows[n];
                        if let Some(count) = top {
                            assert_eq!(row.token_ids, top_union(target, draft, count));
                            assert_eq!(row.target_rest.len(), 2);
                        } else {
                            assert_eq!(row.target.len(), vocabulary);
                        }
                        let (target, draft) = (held(target, dtype), held(draft, dtype));
                        for place in 0..row.target.len() {
                            let id = row.token_at(place) as usize;
                            assert_eq!(row.target[place], target[id]);
                            assert_eq!(row.draft[place], draft[id]);
                        }
                        assert_eq!(row.prompt_id, Some((n / 3) as i64));
                        assert_eq!(row.position, Some((n % 3) as i64));
                        assert_eq!(row.token, Some((n % 5) as i64));
                    }
                }
                assert_eq!(seen, 11);
                log.read(7, &mut row).unwrap();
                assert_eq!(row.position, Some(1));
                assert!(log.read(11, &mut row).is_err());
            }
        }
    }
}

/// The reference: a full sort.
fn top_union(target: &[f32], draft: &[f32], count: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::new();
    for row in [target, draft] {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
        ids.extend(
            order
                .into_iter()
                .take(count)
                .filter(|&i| row[i] > MASKED)
                .map(|i| i as u32),
        );
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[test]
fn the_mass_of_the_rest_is_that_of_the_full_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let rows = rows(4, 60);
    let temperatures = [0.25, 1.0, 1.7];
    let layout = Layout {
        tokens: KeptTokens::Top {
            count: 5,
            rest_temperatures: temperatures.to_vec(),
        },
        ..Layout::new(60)
    };
    write(&path, layout, &rows);
    let log = Log::open(&path).unwrap();
    assert_eq!(log.metadata().rest_temperatures, temperatures);
    let mut row = Row::default();
    for (n, (target, draft)) in rows.iter().enumerate() {
        log.read(n, &mut row).unwrap();
        for (full, rest) in [(target, &row.target_rest), (draft, &row.draft_rest)] {
            for (&t, &rest) in temperatures.iter().zip(rest) {
                let mass = |x: f32| (f64::from(x) / t).exp();
                let all: f64 = full.iter().map(|&x| mass(x)).sum();
                let kept: f64 = row.token_ids.iter().map(|&i| mass(full[i as usize])).sum();
                assert!((rest - (1.0 - kept / all)).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn numpy_archives_are_read_to_the_bit() {
    let values: HashMap<String, Vec<Vec<Option<f64>>>> =
        serde_json::from_str(&std::fs::read_to_string(fixture("numpy-values.json")).unwrap())
            .unwrap();
    for name in ["numpy-stored.npz", "numpy-compressed.npz"] {
        let log = Log::open(&fixture(name)).unwrap();
        assert_eq!((log.positions(), log.vocabulary()), (5, 6));
        assert_eq!(log.dtypes(), (Dtype::F32, Dtype::F16));
        assert!(log.has_prompts() && log.has_tokens());
        let mut row = Row::default();
        for n in 0..5 {
            log.read(n, &mut row).unwrap();
            for (ours, theirs) in [
                (&row.target, &values["target"]),
                (&row.draft, &values["draft"]),
            ] {
                let theirs: Vec<f64> = theirs[n]
                    .iter()
                    .map(|x| x.unwrap_or(f64::NEG_INFINITY))
                    .collect();
                assert_eq!(*ours, theirs);
            }
        }
        assert_eq!(row.prompt_id, Some(1));
        assert_eq!(row.token, Some(3));
    }
    let log = Log::open(&fixture("unknown-tensor.npz")).unwrap();
    assert_eq!(log.ignored_tensors(), ["notes"]);
    let log = Log::open(&fixture("probabilities.npz")).unwrap();
    assert_eq!(
        log.kinds(),
        (RowKind::Probabilities, RowKind::LogProbabilities)
    );
    log.read(2, &mut Row::default()).unwrap();
}

#[test]
fn a_writer_that_dies_loses_what_it_did_not_commit_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let rows = rows(9, 20);
    let layout = Layout {
        shard_bytes: 100,
        ..Layout::new(20)
    };
    let mut writer = LogWriter::create(&path, Metadata::default(), layout.clone()).unwrap();
    for (n, (target, draft)) in rows.iter().enumerate().take(4) {
        writer.append(&position(n, target, draft)).unwrap();
    }
    writer.commit().unwrap();
    for (n, (target, draft)) in rows.iter().enumerate().skip(4) {
        writer.append(&position(n, target, draft)).unwrap();
    }
    // A second writer has to wait.
    let second = LogWriter::resume(&path, layout.clone()).unwrap_err();
    assert!(second.to_string().contains("another process"), "{second}");
    let uncommitted = std::fs::read_dir(&path).unwrap().count();
    drop(writer);
    std::fs::write(path.join(".writing-half"), b"half a shard").unwrap();

    assert_eq!(Log::open(&path).unwrap().positions(), 4);
    let mut writer = LogWriter::resume(&path, layout.clone()).unwrap();
    assert_eq!(writer.committed(), 4);
    assert!(std::fs::read_dir(&path).unwrap().count() < uncommitted);
    for (n, (target, draft)) in rows.iter().enumerate().skip(4) {
        writer.append(&position(n, target, draft)).unwrap();
    }
    writer.commit().unwrap();
    drop(writer);

    let log = Log::open(&path).unwrap();
    assert_eq!(log.positions(), 9);
    let mut row = Row::default();
    for (n, (target, _)) in rows.iter().enumerate() {
        log.read(n, &mut row).unwrap();
        assert_eq!(row.target, held(target, Dtype::F16));
    }
    let other = LogWriter::resume(&path, Layout::new(21)).unwrap_err();
    other.to_string().says("vocabulary of 20, not 21");
    let again = LogWriter::create(&path, Metadata::default(), layout).unwrap_err();
    assert!(again.to_string().contains("holds a log already"), "{again}");
}

/// Many small commits leave few files, which hold what was appended; a writer that was killed
/// at any commit and goes on leaves the same files.
#[test]
fn small_shards_are_joined_and_hold_the_same_rows() {
    const COMMITS: usize = 70;
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(COMMITS, 40);
    let layout = Layout {
        tokens: KeptTokens::Top {
            count: 3,
            rest_temperatures: vec![0.7, 1.0],
        },
        ..Layout::new(40)
    };
    let append = |writer: &mut LogWriter, n: usize| {
        let (target, draft) = &rows[n];
        writer.append(&position(n, target, draft)).unwrap();
        if n % 5 == 1 {
            let values = specgap::log::HeadValues {
                acceptance: Some(n as f64 / 100.0),
                overlap: None,
            };
            writer.set_head(&values).unwrap();
        }
        if n % 7 == 2 {
            let rollout = specgap::log::Rollout {
                position: n,
                tokens: &[1, 2],
                q: &[0.5, 1.0 / (n as f64)],
                ..specgap::log::Rollout::default()
            };
            writer.append_rollout(&rollout).unwrap();
        }
        writer.commit().unwrap();
    };
    let files = |path: &Path| -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with(".lock"))
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect();
        files.sort();
        files
    };
    let whole = folder.path().join("whole");
    let mut writer = LogWriter::create(&whole, Metadata::default(), layout.clone()).unwrap();
    for n in 0..COMMITS {
        append(&mut writer, n);
    }
    drop(writer);
    let stopped = folder.path().join("stopped");
    drop(LogWriter::create(&stopped, Metadata::default(), layout.clone()).unwrap());
    for n in 0..COMMITS {
        let mut writer = LogWriter::resume(&stopped, layout.clone()).unwrap();
        assert_eq!(writer.committed(), n);
        append(&mut writer, n);
    }
    let written = files(&whole);
    assert!(written.len() <= 17, "{} files", written.len());
    assert_eq!(files(&stopped), written);

    // The same in one commit, which joins nothing.
    let once = folder.path().join("once");
    write(&once, layout, &rows);
    let (log, plain) = (Log::open(&whole).unwrap(), Log::open(&once).unwrap());
    assert_eq!(log.positions(), COMMITS);
    let (mut row, mut other) = (Row::default(), Row::default());
    for n in 0..COMMITS {
        log.read(n, &mut row).unwrap();
        plain.read(n, &mut other).unwrap();
        assert_eq!(row.target, other.target, "{n}");
        assert_eq!(row.draft, other.draft, "{n}");
        assert_eq!(row.token_ids, other.token_ids, "{n}");
        assert_eq!(row.target_rest, other.target_rest, "{n}");
        assert_eq!(row.draft_rest, other.draft_rest, "{n}");
        assert_eq!(
            (row.prompt_id, row.position, row.token),
            (other.prompt_id, other.position, other.token)
        );
        assert_eq!(
            row.head_acceptance,
            (n % 5 == 1).then_some(n as f64 / 100.0)
        );
        assert_eq!(row.head_overlap, None);
    }
    let rollouts = log.rollouts().unwrap().unwrap();
    let starts: Vec<usize> = (0..COMMITS).filter(|n| n % 7 == 2).collect();
    assert_eq!(rollouts.len(), starts.len());
}

/// Another process shortens a file while its rows are read: an error, and no signal.
#[test]
fn a_log_that_is_shortened_while_it_is_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, Layout::new(20_000), &rows(8, 20_000));
    let log = Log::open(&path).unwrap();
    let span = &log.spans(4)[0];
    let chunk = log.chunk(span).unwrap();
    let shard = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "safetensors"))
        .unwrap();
    let file = std::fs::File::options().write(true).open(&shard).unwrap();
    file.set_len(5_000).unwrap();
    // What a span has read is there; what it has not is missed by name.
    chunk.read(3, &mut Row::default()).unwrap();
    let error = log.chunk(span).unwrap_err().to_string();
    assert!(error.contains("safetensors: has 5000 bytes"), "{error}");
    assert!(error.contains("shortened while it was read"), "{error}");
}

#[test]
fn an_index_is_not_read_before_the_lock_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let rows = rows(2, 20);
    let layout = Layout::new(20);
    let mut writer = LogWriter::create(&path, Metadata::default(), layout.clone()).unwrap();
    writer.append(&position(0, &rows[0].0, &rows[0].1)).unwrap();
    writer.commit().unwrap();
    // What another process is about to replace says nothing: whoever asks for the log
    // now has to be told to wait before it is looked at.
    let index = path.join("log.json");
    let whole = std::fs::read(&index).unwrap();
    std::fs::write(&index, b"{").unwrap();
    let early = LogWriter::resume(&path, layout.clone()).unwrap_err();
    assert!(early.to_string().contains("another process"), "{early}");
    std::fs::write(&index, whole).unwrap();
    drop(writer);
    assert_eq!(LogWriter::resume(&path, layout).unwrap().committed(), 1);

    // A folder without a log is left as it is.
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let none = LogWriter::resume(&empty, Layout::new(20)).unwrap_err();
    assert!(none.to_string().contains("has no log.json"), "{none}");
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn a_shard_that_is_listed_twice_is_refused_with_both_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let layout = Layout {
        shard_bytes: 1,
        ..Layout::new(20)
    };
    write(&path, layout.clone(), &rows(3, 20));
    assert_eq!(Log::open(&path).unwrap().positions(), 3);
    let index = path.join("log.json");
    let text = std::fs::read_to_string(&index).unwrap();
    let twice = text.replace("shard-00002", "shard-00000");
    assert_ne!(text, twice);
    std::fs::write(&index, twice).unwrap();
    let opened = Log::open(&path).unwrap_err().to_string();
    assert!(opened.contains("log.json: entries 0 and 2"), "{opened}");
    assert!(opened.contains("\"shard-00000.safetensors\""), "{opened}");
    // Going on with it would remove the shard that is listed no longer.
    let resumed = LogWriter::resume(&path, layout).unwrap_err().to_string();
    assert!(resumed.contains("entries 0 and 2"), "{resumed}");
    assert!(path.join("shard-00002.safetensors").exists());
}

#[test]
fn rows_that_cannot_be_written_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::create(
        &folder.path().join("log"),
        Metadata::default(),
        Layout::new(3),
    )
    .unwrap();
    let fine = [0.0, 1.0, 2.0];
    for (target, draft, expected) in [
        (
            &[0.0, f32::NAN, 0.0][..],
            &fine[..],
            "target_logits: row 0, column 1: is NaN",
        ),
        (
            &fine,
            &[0.0, 0.0, f32::INFINITY],
            "draft_logits: row 0, column 2: is inf",
        ),
        (
            &[MASKED; 3],
            &fine,
            "target_logits: row 0: is -inf at every token",
        ),
        (
            &fine,
            &fine[..2],
            "draft_logits: row 0: has 2 entries; the vocabulary has 3",
        ),
    ] {
        let error = writer.append(&position(0, target, draft)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    // Large logits are shifted; a mask below the type's range is a mask.
    writer
        .append(&position(0, &[7e4, -1e30, 0.0], &fine))
        .unwrap();
    writer.commit().unwrap();
}

/// A safetensors file from (name, type, shape, bytes).
pub(crate) fn safetensors(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    safetensors_that_say(None, tensors)
}

/// The same with what the file says of itself.
pub(crate) fn safetensors_that_say(
    metadata: Option<&str>,
    tensors: &[(&str, &str, &[usize], Vec<u8>)],
) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    if let Some(metadata) = metadata {
        let said = serde_json::json!({ "specgap": metadata });
        header.insert("__metadata__".to_owned(), said);
    }
    let mut data = Vec::<u8>::new();
    for (name, dtype, shape, bytes) in tensors {
        header.insert(
            (*name).to_owned(),
            serde_json::json!({
                "dtype": dtype, "shape": shape, "data_offsets": [data.len(), data.len() + bytes.len()]
            }),
        );
        data.extend(bytes);
    }
    let mut text = serde_json::to_vec(&header).unwrap();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend(text);
    file.extend(data);
    file
}

pub(crate) fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

pub(crate) fn f64s(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

pub(crate) fn i64s(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Opens and reads everything; the first error.
fn read_all(name: &str, bytes: Vec<u8>) -> Result<usize, LogError> {
    let log = Log::from_bytes(Path::new(name), Arc::from(bytes))?;
    let mut row = Row::default();
    for span in log.spans(3) {
        let chunk = log.chunk(&span)?;
        for n in chunk.positions() {
            chunk.read(n, &mut row)?;
        }
    }
    Ok(log.positions())
}

#[test]
fn every_malformed_log_is_refused_with_its_place() {
    let fine = f32s(&[0.0, 1.0, 2.0, 3.0]);
    let draft = ("draft_logits", "F32", &[2, 2][..], fine.clone());
    let target = ("target_logits", "F32", &[2, 2][..], fine.clone());
    let pair = |tensor| safetensors(&[tensor, draft.clone()]);
    let with = |tensor| safetensors(&[target.clone(), draft.clone(), tensor]);
    let probabilities = |values: &[f32]| pair(("target_probs", "F32", &[2, 2], f32s(values)));
    let whole = with(("token", "I64", &[2], i64s(&[0, -1])));
    assert_eq!(read_all("x.safetensors", whole.clone()).unwrap(), 2);

    let mut lying = whole.clone();
    lying[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let logits = |values: &[f32]| pair(("target_logits", "F32", &[2, 2], f32s(values)));
    let nan = f32::NAN;
    for (bytes, expected) in [
        (
            whole[..whole.len() - 1].to_vec(),
            "x.safetensors: is not a whole safetensors file",
        ),
        (whole[..5].to_vec(), "is not a whole safetensors file"),
        (Vec::new(), "is not a whole safetensors file"),
        (lying, "is not a whole safetensors file"),
        (
            logits(&[0.0, 0.0, 0.0, nan]),
            "target_logits: row 1, column 1: is NaN",
        ),
        (
            logits(&[0.0, f32::INFINITY, 0.0, 0.0]),
            "target_logits: row 0, column 1: is +inf",
        ),
        (
            logits(&[0.0, 0.0, MASKED, MASKED]),
            "target_logits: row 1: is -inf at every token",
        ),
        (
            probabilities(&[0.5, 0.5, -0.25, 1.25]),
            "target_probs: row 1, column 0: is -0.25",
        ),
        (
            probabilities(&[0.5, 0.6, 0.5, 0.5]),
            "target_probs: row 0: sums to 1.1",
        ),
        (
            probabilities(&[0.0, 0.0, 0.5, 0.5]),
            "target_probs: row 0: sums to 0",
        ),
        (
            probabilities(&[0.5, 0.5, 0.5, nan]),
            "target_probs: row 1, column 1: is NaN",
        ),
        (
            pair((
                "target_logprobs",
                "F32",
                &[2, 2],
                f32s(&[0.0, 0.0, -1.0, -1.0]),
            )),
            "target_logprobs: row 0: sums to 2",
        ),
        (
            pair(("target_logits", "F32", &[2, 3], f32s(&[0.0; 6]))),
            "draft_logits: has V = 2 but target_logits has V = 3",
        ),
        (
            pair(("target_logits", "F32", &[1, 2], f32s(&[0.0; 2]))),
            "draft_logits: has 2 rows but target_logits has 1",
        ),
        (
            pair(("target_logits", "F32", &[4], fine.clone())),
            "of shape [N, V]",
        ),
        (
            pair(("target_logits", "I32", &[2, 2], fine.clone())),
            "rows are floating point",
        ),
        (
            pair(("target_logits", "U8", &[2, 2], vec![0; 4])),
            "target_logits: has entries of type U8",
        ),
        (
            pair(("target_logit", "F32", &[2, 2], fine.clone())),
            "target_logits: is missing, and so are target_probs and target_logprobs; the file has \
             draft_logits, target_logit",
        ),
        (
            safetensors(std::slice::from_ref(&target)),
            "draft_logits: is missing, and so are draft_probs and draft_logprobs; the file has \
             target_logits",
        ),
        (
            safetensors(&[]),
            "target_logits: is missing, and so are target_probs and target_logprobs; the file has \
             no tensors",
        ),
        (
            with(("target_probs", "F32", &[2, 2], fine.clone())),
            "target_probs: is a second form of the target's rows",
        ),
        (
            with(("token", "I64", &[2], i64s(&[0, 2]))),
            "token: row 1, column 0: token 2 is outside",
        ),
        (with(("token", "I64", &[1], i64s(&[0]))), "with N = 2"),
        (
            with(("prompt_id", "F32", &[2], f32s(&[0.0; 2]))),
            "prompt_id: is f32",
        ),
        (
            with(("token_ids", "I64", &[2, 2], i64s(&[0, 1, 0, 1]))),
            "does not say the vocabulary",
        ),
        (
            with(("target_rest", "F64", &[2, 1], vec![0; 16])),
            "token_ids: is missing although the mass",
        ),
        (
            safetensors(&[
                ("target_logits", "F32", &[0, 2], vec![]),
                ("draft_logits", "F32", &[0, 2], vec![]),
            ]),
            "has no positions",
        ),
        (
            safetensors(&[
                ("target_logits", "F32", &[2, 0], vec![]),
                ("draft_logits", "F32", &[2, 0], vec![]),
            ]),
            "has an empty vocabulary",
        ),
    ] {
        let error = read_all("x.safetensors", bytes).unwrap_err().to_string();
        error.says(expected);
        assert!(error.starts_with("x.safetensors: "), "{error}");
    }

    for (name, expected) in [
        (
            "fortran-order.npz",
            "target_logits: is in Fortran (column-major) order",
        ),
        (
            "big-endian.npz",
            "target_logits: has entries of type NumPy's >f4",
        ),
        ("numpy-values.json", "is no log"),
        ("missing.npz", "cannot be opened"),
        ("", "has no log.json"),
    ] {
        let error = Log::open(&fixture(name)).unwrap_err().to_string();
        error.says(expected);
    }
    let stored = std::fs::read(fixture("numpy-stored.npz")).unwrap();
    for cut in [0, 3, 100, stored.len() / 2, stored.len() - 1] {
        let error = read_all("x.npz", stored[..cut].to_vec())
            .unwrap_err()
            .to_string();
        assert!(error.contains("is not a whole .npz archive"), "{error}");
    }
    // A header that claims more rows than its member has.
    let at = stored.windows(6).position(|w| w == b"(5, 6)").unwrap();
    let mut lying = stored.clone();
    lying[at..at + 6].copy_from_slice(b"(9, 6)");
    let error = read_all("x.npz", lying).unwrap_err().to_string();
    assert!(error.contains("the header is wrong"), "{error}");
}

#[test]
fn a_top_heavy_row_lists_each_token_once_and_within_the_vocabulary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for (ids, rest, expected) in [
        ([0i32, 2, 1, -1], [0.5; 2], None),
        (
            [0, 2, 1, 1],
            [0.5; 2],
            Some("token_ids: row 1, column 1: token 1 is listed twice"),
        ),
        (
            [0, 3, 1, 0],
            [0.5; 2],
            Some("token_ids: row 0, column 1: token 3 is outside"),
        ),
        (
            [-1, 2, 1, 0],
            [0.5; 2],
            Some("row 0, column 1: token 2 stands after an unused place"),
        ),
        (
            [-1, -1, 1, 0],
            [0.5; 2],
            Some("token_ids: row 0: lists no tokens"),
        ),
        (
            [0, 2, 1, -1],
            [0.5, 1.5],
            Some("target_rest: row 1, column 0: 1.5 is no mass"),
        ),
    ] {
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        let row = f32s(&[0.0; 4]);
        std::fs::write(
            path.join("a.safetensors"),
            safetensors(&[
                ("target_logits", "F32", &[2, 2], row.clone()),
                ("draft_logits", "F32", &[2, 2], row),
                (
                    "token_ids",
                    "I32",
                    &[2, 2],
                    ids.iter().flat_map(|x| x.to_le_bytes()).collect(),
                ),
                (
                    "target_rest",
                    "F64",
                    &[2, 1],
                    rest.iter().flat_map(|x: &f64| x.to_le_bytes()).collect(),
                ),
            ]),
        )
        .unwrap();
        let index = |file: &str, positions: usize, schema: usize| {
            serde_json::json!({
                "schema": schema,
                "metadata": {"vocabulary": 3, "rest_temperatures": [1.0]},
                "shards": [{"file": file, "positions": positions}]
            })
            .to_string()
        };
        std::fs::write(path.join("log.json"), index("a.safetensors", 2, 1)).unwrap();
        let result = Log::open(&path).and_then(|log| {
            let mut row = Row::default();
            log.read(0, &mut row)?;
            log.read(1, &mut row)
        });
        match (expected, result) {
            (None, result) => result.unwrap(),
            (Some(expected), result) => {
                let error = result.unwrap_err().to_string();
                error.says(expected);
            }
        }
        for (text, expected) in [
            (
                index("a.safetensors", 3, 1),
                "has 2 positions where log.json says 3",
            ),
            (index("../a.safetensors", 2, 1), "is not a plain file name"),
            (index("b.safetensors", 2, 1), "cannot be opened"),
            (index("a.safetensors", 2, 2), "schema is 2"),
            ("{".to_owned(), "log.json: is no JSON"),
            (
                r#"{"schema": 1, "shards": []}"#.to_owned(),
                "log.json: metadata: is missing; docs/reference/log-format.md",
            ),
            (
                r#"{"metadata": {}, "shards": []}"#.to_owned(),
                "log.json: schema: is missing",
            ),
            (
                r#"{"schema": 1, "metadata": {}, "shards": [{"positions": 2}]}"#.to_owned(),
                "log.json: shards[0].file: is missing",
            ),
            (
                r#"{"schema": 1, "metadata": {"target": "x"}, "shards": []}"#.to_owned(),
                "log.json: metadata.target: invalid type: string \"x\", expected an object with the name",
            ),
        ] {
            std::fs::write(path.join("log.json"), text).unwrap();
            let error = Log::open(&path).unwrap_err().to_string();
            error.says(expected);
        }
    }
}

/// A header that is wrong about one tensor names it, and its field.
#[test]
fn headers_name_the_tensor_that_is_wrong() {
    let row = f32s(&[0.0; 4]);
    let whole = safetensors_that_say(
        Some("{}"),
        &[
            ("target_logits", "F32", &[2, 2], row.clone()),
            ("draft_logits", "F32", &[2, 2], row),
            ("token", "I64", &[2], i64s(&[0, 1])),
        ],
    );
    let length = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&whole[8..8 + length]).unwrap();
    for (place, value, words) in [
        (
            "/token",
            "3",
            "its header: token: invalid type: integer `3`",
        ),
        (
            "/token/shape",
            "[7]",
            "its header: token: its data_offsets are 32 to 48, and its shape [7] of I64 takes 56 bytes",
        ),
        (
            "/token/shape",
            "[-1]",
            "its header: token.shape[0]: invalid value",
        ),
        (
            "/token/dtype",
            "\"X9\"",
            "its header: token.dtype: unknown variant `X9`",
        ),
        (
            "/token/data_offsets",
            "[32, 40]",
            "its header: token: its data_offsets are 32 to 40",
        ),
        (
            "/token",
            r#"{"dtype": "I64", "data_offsets": [32, 48]}"#,
            "its header: token.shape: is missing",
        ),
        (
            "/token",
            r#"{"dtype": "I64", "shape": [1], "data_offsets": [32, 40]}"#,
            "its header: token ends at byte 40 of the 48",
        ),
        (
            "/__metadata__",
            "3",
            "its header: __metadata__: invalid type",
        ),
        (
            "/__metadata__/specgap",
            r#""{\"sampling\": {}}""#,
            "x.safetensors: its metadata: sampling.temperature: is missing",
        ),
    ] {
        let mut changed = header.clone();
        *changed.pointer_mut(place).unwrap() = serde_json::from_str(value).unwrap();
        let text = serde_json::to_vec(&changed).unwrap();
        let mut file = (text.len() as u64).to_le_bytes().to_vec();
        file.extend(&text);
        file.extend(&whole[8 + length..]);
        let error = read_all("x.safetensors", file).unwrap_err().to_string();
        assert!(error.contains(words), "{error} lacks {words}");
    }
}

/// Shards are of one text, or of none.
#[test]
fn shards_of_which_one_says_less_of_the_text_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let row = f32s(&[0.0; 4]);
    let whole = [
        ("target_logits", "F32", &[2, 2][..], row.clone()),
        ("draft_logits", "F32", &[2, 2], row),
        ("prompt_id", "I64", &[2], i64s(&[0, 0])),
        ("position", "I64", &[2], i64s(&[0, 1])),
        ("token", "I64", &[2], i64s(&[0, 1])),
    ];
    let index = serde_json::json!({"schema": 1, "metadata": {}, "shards": [
        {"file": "a.safetensors", "positions": 2}, {"file": "b.safetensors", "positions": 2}]});
    std::fs::write(path.join("log.json"), index.to_string()).unwrap();
    for lacks in ["prompt_id", "position", "token"] {
        let less: Vec<_> = whole.iter().filter(|one| one.0 != lacks).cloned().collect();
        for (a, b, file) in [(&whole[..], &less[..], "b"), (&less, &whole, "a")] {
            std::fs::write(path.join("a.safetensors"), safetensors(a)).unwrap();
            std::fs::write(path.join("b.safetensors"), safetensors(b)).unwrap();
            let error = Log::open(path).unwrap_err().to_string();
            let words = format!("{file}.safetensors: {lacks}: is missing, and ");
            assert!(error.contains(&words), "{error}");
        }
        std::fs::write(path.join("b.safetensors"), safetensors(&less)).unwrap();
        std::fs::write(path.join("a.safetensors"), safetensors(&less)).unwrap();
        assert_eq!(Log::open(path).unwrap().positions(), 4);
    }
}

#[test]
fn padding_is_cut_when_asked_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("padded.safetensors");
    std::fs::write(
        &path,
        safetensors(&[
            ("target_logits", "F32", &[1, 3], f32s(&[1.0, 2.0, 3.0])),
            ("draft_logits", "F32", &[1, 4], f32s(&[1.0, 2.0, 3.0, 4.0])),
        ]),
    )
    .unwrap();
    assert!(Log::open(&path).is_err());
    let log = Log::open_with(&path, Some(3)).unwrap();
    assert_eq!(log.vocabulary(), 3);
    let mut row = Row::default();
    log.read(0, &mut row).unwrap();
    assert_eq!(row.draft, [1.0, 2.0, 3.0]);
    for wrong in [0, 4] {
        assert!(Log::open_with(&path, Some(wrong)).is_err());
    }
}

/// A log of each form, as bytes.
fn whole_files() -> Vec<(&'static str, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(3, 5);
    let mut files = Vec::new();
    for (name, container) in [
        ("x.safetensors", Container::Safetensors),
        ("x.npz", Container::Npz),
    ] {
        let path = folder.path().join(name);
        let layout = Layout {
            container,
            ..Layout::new(5)
        };
        write(&path, layout, &rows);
        let shard = format!("shard-00000{}", &name[1..]);
        files.push((name, std::fs::read(path.join(shard)).unwrap()));
    }
    files.push((
        "x.npz",
        std::fs::read(fixture("numpy-compressed.npz")).unwrap(),
    ));
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Damaged files are read or refused; they never panic.
    #[test]
    fn damage_is_refused_or_harmless(
        file in 0usize..3,
        cut in any::<prop::sample::Index>(),
        shorten in prop::bool::weighted(0.2),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        use std::sync::LazyLock;
        static FILES: LazyLock<Vec<(&'static str, Vec<u8>)>> = LazyLock::new(whole_files);
        let (name, bytes) = &FILES[file];
        let mut bytes = bytes.clone();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if shorten {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(error) = read_all(name, bytes) {
            prop_assert!(error.to_string().starts_with(name));
        }
    }

    /// Any f32 rows come back as the log's type rounds them.
    #[test]
    fn any_finite_rows_come_back(
        rows in prop::collection::vec(prop::collection::vec(-6e4f32..6e4, 7), 2..6),
        dtype in prop::sample::select(vec![Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let pairs: Vec<_> = rows.iter().map(|row| {
            let mut draft = row.clone();
            draft.reverse();
            (row.clone(), draft)
        }).collect();
        write(&path, Layout { dtype, ..Layout::new(7) }, &pairs);
        let log = Log::open(&path).unwrap();
        let mut row = Row::default();
        for (n, (target, _)) in pairs.iter().enumerate() {
            log.read(n, &mut row).unwrap();
            prop_assert_eq!(&row.target, &held(target, dtype));
        }
    }
}

/// A log is known by what it holds: not by its container or its names, but by any of its
/// integers, by what it says of itself, and by its rows, wherever in them a number differs.
#[test]
fn a_copy_is_known_for_one_and_another_log_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let vocabulary = 3000;
    let rows = rows(7, vocabulary);
    let mut made = 0;
    let mut digest = |container: Container, rows: &[(Vec<f32>, Vec<f32>)], note: &str, off: i64| {
        made += 1;
        let path = folder.path().join(made.to_string());
        let layout = Layout {
            dtype: Dtype::F32,
            container,
            ..Layout::new(vocabulary)
        };
        let metadata = Metadata {
            command: Some(note.to_owned()),
            ..Metadata::default()
        };
        let mut writer = LogWriter::create(&path, metadata, layout).unwrap();
        for (n, (target, draft)) in rows.iter().enumerate() {
            let mut place = position(n, target, draft);
            place.token += if n == 5 { off } else { 0 };
            writer.append(&place).unwrap();
        }
        writer.commit().unwrap();
        Log::open(&path).unwrap().identity().unwrap().digest
    };
    let first = digest(Container::Safetensors, &rows, "a", 0);
    assert_eq!(first, digest(Container::Safetensors, &rows, "a", 0));
    assert_eq!(first, digest(Container::Npz, &rows, "a", 0));
    assert_ne!(first, digest(Container::Safetensors, &rows, "b", 0));
    assert_ne!(first, digest(Container::Safetensors, &rows, "a", 1));
    assert_ne!(first, digest(Container::Safetensors, &rows[..6], "a", 0));
    for token in [1, 1499, 2998] {
        for row in [0, 3, 6] {
            let mut other = rows.clone();
            other[row].1[token] += 0.25;
            assert_ne!(first, digest(Container::Safetensors, &other, "a", 0));
        }
    }
}

/// Rows of a target and of three drafts at some positions.
fn rows_of_drafts(count: usize, vocabulary: usize) -> Vec<(Vec<f32>, [Vec<f32>; 3])> {
    let others = rows(2 * count, vocabulary);
    let each = rows(count, vocabulary).into_iter().enumerate();
    each.map(|(n, (target, draft))| {
        let other = |at: usize| others[at].1.iter().map(|x| x * 1.5).collect();
        (target, [draft, other(n + 1), other(n + count)])
    })
    .collect()
}

fn folders(around: &Path) -> Vec<PathBuf> {
    ["a", "b", "c"].map(|name| around.join(name)).to_vec()
}

/// Appends positions and commits them, with a prompt of each.
fn append_drafts(
    logs: &mut DraftLogs,
    rows: &[(Vec<f32>, [Vec<f32>; 3])],
    range: std::ops::Range<usize>,
) {
    for n in range.clone() {
        let (target, drafts) = &rows[n];
        let drafts = drafts.each_ref().map(Vec::as_slice);
        let at = position(n, target, drafts[0]);
        logs.append(&SharedPosition {
            prompt_id: at.prompt_id,
            position: at.position,
            token: at.token,
            seed: (n % 3) as i64,
            target,
            drafts: &drafts,
        })
        .unwrap();
    }
    for metadata in logs.metadata_mut() {
        metadata.prompts.push(PromptRecord {
            id: range.start as i64,
            name: format!("from {}", range.start),
            positions: range.len(),
        });
    }
    logs.commit().unwrap();
}

fn open_drafts(around: &Path, layout: &Layout) -> Result<DraftLogs, LogError> {
    DraftLogs::open(&folders(around), vec![Metadata::default(); 3], layout, 1)
}

/// Target, draft, token ids, rest masses, and where the row is.
type Told = (
    Vec<f64>,
    Vec<f64>,
    Vec<u32>,
    [Vec<f64>; 2],
    [Option<i64>; 3],
);

/// Every number of a log.
fn entries(path: &Path) -> Vec<Told> {
    let log = Log::open(path).unwrap();
    let mut row = Row::default();
    (0..log.positions())
        .map(|n| {
            log.read(n, &mut row).unwrap();
            (
                row.target.clone(),
                row.draft.clone(),
                row.token_ids.clone(),
                [row.target_rest.clone(), row.draft_rest.clone()],
                [row.prompt_id, row.position, row.token],
            )
        })
        .collect()
}

#[test]
fn logs_of_several_drafts_read_as_a_log_of_each() {
    let rows = rows_of_drafts(11, 13);
    let top = KeptTokens::Top {
        count: 3,
        rest_temperatures: vec![0.7, 1.0],
    };
    for (tokens, container) in [
        (KeptTokens::All, Container::Safetensors),
        (KeptTokens::All, Container::Npz),
        (top, Container::Safetensors),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // A shard has three positions or so.
        let layout = Layout {
            tokens,
            container,
            dtype: Dtype::F32,
            shard_bytes: 3 * 2 * 4 * 8,
            ..Layout::new(13)
        };
        let around = folder.path().join("capture");
        let mut logs = open_drafts(&around, &layout).unwrap();
        append_drafts(&mut logs, &rows, 0..7);
        append_drafts(&mut logs, &rows, 7..11);
        drop(logs);
        // The folder around them may move.
        let moved = folder.path().join("moved");
        std::fs::rename(&around, &moved).unwrap();
        let mut lists = Vec::new();
        for path in folders(&moved) {
            let records = Log::open(&path).unwrap().engine_records().unwrap();
            let seeds = records.iter().map(|one| one.seed);
            assert!(seeds.eq((0..11).map(|n| Some(n % 3))));
        }
        for (number, path) in folders(&moved).iter().enumerate() {
            let found = entries(path);
            assert_eq!(found.len(), 11);
            for (n, (target, draft, ids, rests, labels)) in found.iter().enumerate() {
                let (own_target, drafts) = &rows[n];
                let places: Vec<usize> = match ids.is_empty() {
                    true => (0..13).collect(),
                    false => ids.iter().map(|&id| id as usize).collect(),
                };
                let wide = |row: &[f32]| -> Vec<f64> {
                    places.iter().map(|&at| f64::from(row[at])).collect()
                };
                assert_eq!(target, &wide(own_target));
                assert_eq!(draft, &wide(&drafts[number]));
                let at = position(n, own_target, own_target);
                let own = [at.prompt_id, at.position, at.token];
                assert_eq!(*labels, own.map(Some));
                if let KeptTokens::Top { .. } = layout.tokens {
                    assert!(rests.iter().all(|rest| rest.len() == 2));
                    let mut all: Vec<u32> = [own_target]
                        .into_iter()
                        .chain(drafts)
                        .flat_map(|row| top_union(row, row, 3))
                        .collect();
                    all.sort_unstable();
                    all.dedup();
                    assert_eq!(ids, &all);
                }
            }
            lists.push(
                found
                    .into_iter()
                    .map(|one| (one.0, one.3[0].clone()))
                    .collect::<Vec<_>>(),
            );
            // What the first log has is not in the others.
            let text = std::fs::read_to_string(path.join("log.json")).unwrap();
            assert_eq!(text.contains("\"../a/shard-00000"), number > 0, "{text}");
            if container == Container::Safetensors {
                let shard = std::fs::read(path.join("shard-00000.safetensors")).unwrap();
                let has = |name: &str| {
                    shard
                        .windows(name.len())
                        .any(|part| part == name.as_bytes())
                };
                assert_eq!(has("target_logits"), number == 0);
                assert_eq!(has("\"token\""), number == 0);
                assert!(has("draft_logits"));
            }
        }
        // Target rows and their rests are the same in all.
        assert!(lists.iter().all(|list| *list == lists[0]));
    }
}

#[test]
fn target_rows_that_are_gone_or_others_are_refused() {
    let rows = rows_of_drafts(4, 9);
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(9)
    };
    let folder = tempfile::tempdir().unwrap();
    let around = folder.path();
    append_drafts(&mut open_drafts(around, &layout).unwrap(), &rows, 0..4);
    let follower = around.join("b");
    let shared = around.join("a/shard-00000.safetensors");
    let whole = std::fs::read(&shared).unwrap();
    let index = std::fs::read_to_string(follower.join("log.json")).unwrap();
    let refused = |says: &[&str]| {
        let error = Log::open(&follower).unwrap_err().to_string();
        for what in says {
            assert!(error.contains(what), "{what}: {error}");
        }
    };

    // Other rows of the same size: another token at one position.
    let mut other = whole.clone();
    let mut changed = rows.clone();
    changed[2].0[4] += 1.0;
    changed[0].0[4] += 1.0;
    let elsewhere = tempfile::tempdir().unwrap();
    append_drafts(
        &mut open_drafts(elsewhere.path(), &layout).unwrap(),
        &changed,
        0..4,
    );
    let replaced = std::fs::read(elsewhere.path().join("a/shard-00000.safetensors")).unwrap();
    assert_eq!(replaced.len(), whole.len());
    std::fs::write(&shared, replaced).unwrap();
    refused(&["shard-00000.safetensors", "has other rows than it had"]);
    other.push(0);
    std::fs::write(&shared, &other).unwrap();
    refused(&["bytes, and had"]);
    std::fs::remove_file(&shared).unwrap();
    refused(&[
        "../a/shard-00000.safetensors",
        "which is not there",
        "side by side",
    ]);
    std::fs::write(&shared, &whole).unwrap();
    assert!(Log::open(&follower).is_ok());

    // A log points to no place but a log beside it.
    for name in [
        "../../a/shard.safetensors",
        "shard-00000.safetensors",
        "/a/b",
        "../a/../b",
        "..",
    ] {
        let text = index.replace("../a/shard-00000.safetensors", name);
        std::fs::write(follower.join("log.json"), text).unwrap();
        refused(&[name, "is not ../LOG/FILE"]);
    }
    // A shard that has the target's rows itself.
    let text = index.replace("\"file\": \"shard", "\"file\": \"own");
    std::fs::write(follower.join("log.json"), text).unwrap();
    std::fs::write(follower.join("own-00000.safetensors"), &whole).unwrap();
    refused(&["own-00000.safetensors", "target_logits", "keep one of them"]);
}

#[test]
fn drafts_that_a_kill_left_a_commit_apart_go_on_together() {
    let rows = rows_of_drafts(9, 7);
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(7)
    };
    let folder = tempfile::tempdir().unwrap();
    let (killed, whole) = (folder.path().join("killed"), folder.path().join("whole"));
    for around in [&killed, &whole] {
        append_drafts(&mut open_drafts(around, &layout).unwrap(), &rows, 0..3);
    }
    let before = std::fs::read(killed.join("c/log.json")).unwrap();
    append_drafts(&mut open_drafts(&killed, &layout).unwrap(), &rows, 3..6);
    // The last log's index was not replaced.
    std::fs::write(killed.join("c/log.json"), &before).unwrap();
    assert_eq!(Log::open(&killed.join("a")).unwrap().positions(), 6);
    assert_eq!(Log::open(&killed.join("c")).unwrap().positions(), 3);

    let mut logs = open_drafts(&killed, &layout).unwrap();
    for writer in logs.writers() {
        assert_eq!(
            (writer.committed(), writer.metadata().prompts.len()),
            (3, 1)
        );
    }
    append_drafts(&mut logs, &rows, 3..6);
    drop(logs);
    append_drafts(&mut open_drafts(&whole, &layout).unwrap(), &rows, 3..6);
    for name in ["a", "b", "c"] {
        assert_eq!(entries(&killed.join(name)), entries(&whole.join(name)));
        let index = |around: &Path| std::fs::read(around.join(name).join("log.json")).unwrap();
        assert_eq!(index(&killed), index(&whole));
    }

    // A log that lacks more than a commit is none of these.
    append_drafts(&mut open_drafts(&killed, &layout).unwrap(), &rows, 6..9);
    std::fs::remove_dir_all(killed.join("b")).unwrap();
    let error = open_drafts(&killed, &layout).unwrap_err().to_string();
    error.says("has 0 prompts where a log beside it has 3");
    assert_eq!(Log::open(&killed.join("a")).unwrap().positions(), 9);
}

#[test]
fn metadata_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(5)
    };
    write(&path, layout, &rows(6, 5));
    let file = path.join("log.json");
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let prompt = |id: i64, positions: u64| serde_json::json!({"id": id, "name": "a", "positions": positions});
    let with = |name: &str, value: serde_json::Value| {
        let mut index = index.clone();
        index["metadata"][name] = value;
        std::fs::write(&file, index.to_string()).unwrap();
        Log::open(&path)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let sampling = |temperature: f64, top_p: f64| serde_json::json!({"temperature": temperature, "top_p": top_p});
    assert_eq!(
        with("prompts", serde_json::json!([prompt(0, 5), prompt(1, 1)])),
        Ok(())
    );
    assert_eq!(with("sampling", sampling(0.0, 1.0)), Ok(()));
    for (name, value, words) in [
        (
            "sampling",
            sampling(-5.0, 1.0),
            "sampling.temperature is -5",
        ),
        ("sampling", sampling(1.0, 1.5), "sampling.top_p is 1.5"),
        (
            "rest_temperatures",
            serde_json::json!([0.0]),
            "rest_temperatures has 0",
        ),
        (
            "prompts",
            serde_json::json!([prompt(0, 1 << 62)]),
            "more positions than its 6",
        ),
        (
            "prompts",
            serde_json::json!([prompt(0, 5), prompt(1, 2)]),
            "more positions than its 6",
        ),
        (
            "prompts",
            serde_json::json!([prompt(0, u64::MAX), prompt(1, 2)]),
            "more positions than its 6",
        ),
        (
            "prompts",
            serde_json::json!([prompt(3, 1), prompt(0, 1), prompt(3, 1)]),
            "prompts 0 and 2 both have the id 3",
        ),
    ] {
        let error = with(name, value).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_header_of_more_tensors_than_any_model_has_is_refused_in_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.safetensors");
    let write = |count: usize| {
        let entry = |n: usize| {
            format!("\"t{n}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}")
        };
        let entries: Vec<String> = (0..count).map(entry).collect();
        let header = format!("{{{}}}", entries.join(","));
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.into_bytes());
        std::fs::write(&path, bytes).unwrap();
        Log::open(&path).unwrap_err().to_string()
    };
    let error = write(1000);
    assert!(
        error.contains("and 970 more") && error.len() < 600,
        "{error}"
    );
    let error = write(40_000);
    assert!(
        error.contains("more than 32768 tensors") && error.len() < 400,
        "{error}"
    );
}
