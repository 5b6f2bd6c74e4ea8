//! Are rollouts read as they were written, and refused where they do not fit the log?

use crate::log::{f64s, i64s, safetensors};
use crate::says::Says;
use specgap::log::{
    HeadValues, Layout, Log, LogWriter, Metadata, Position, Rollout, RolloutRecord, Row,
};
use std::path::Path;
use std::sync::Arc;

fn record() -> RolloutRecord {
    RolloutRecord {
        version: 1,
        tokens: 2,
        every: 2,
        inclusion_probability: 0.5,
        paths: 1,
        temperature: 1.0,
        target: true,
    }
}

/// Rows of two tokens: q(0) = 1/2, 3/4, 1/2, 3/4, ...
fn position(number: usize) -> (Position<'static>, f64) {
    const EVEN: [f32; 2] = [0.0, 0.0];
    const TILTED: [f32; 2] = [1.098_612_3, 0.0];
    let (draft, q) = if number.is_multiple_of(2) {
        (&EVEN, 0.5)
    } else {
        (&TILTED, 0.75)
    };
    let position = Position {
        prompt_id: 0,
        position: number as i64,
        token: 0,
        target: &EVEN,
        draft,
    };
    (position, q)
}

#[test]
fn what_was_written_is_read_across_shards_and_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let metadata = Metadata {
        rollouts: Some(record()),
        ..Metadata::default()
    };
    let layout = Layout {
        // A shard for every third position.
        shard_bytes: 24,
        ..Layout::new(2)
    };
    let mut writer = LogWriter::create(&path, metadata, layout).unwrap();
    let mut expected = Vec::new();
    for commit in 0..2 {
        for number in 7 * commit..7 * (commit + 1) {
            assert_eq!(writer.positions(), number);
            writer.append(&position(number).0).unwrap();
        }
        // In no order, of any shard of the commit.
        for number in [7 * commit + 6, 7 * commit, 7 * commit + 3] {
            let (_, q) = position(number);
            let x = number as f64 / 100.0;
            let tokens = [0, (number % 2) as u32];
            let rollout = Rollout {
                position: number,
                tokens: &tokens,
                q: &[q, 0.25 + x],
                argmax: &[0, 1],
                top1: &[q, 0.9],
                entropy: &[0.1, x],
                margin: &[0.0, x],
                acceptance: &[],
                target_p: &[0.5, x],
                overlap: &[1.0, 1.0 - x],
                head_overlap: &[x, 1.0],
            };
            writer.append_rollout(&rollout).unwrap();
            expected.push((number, tokens, q, x));
        }
        writer.commit().unwrap();
    }
    let late = writer.append_rollout(&Rollout {
        position: 13,
        tokens: &[0],
        q: &[0.5],
        ..Rollout::default()
    });
    let late = late.unwrap_err().to_string();
    assert!(late.contains("since the last commit"), "{late}");
    let log = Log::open(&path).unwrap();
    assert!(log.spans(usize::MAX).len() > 2, "several shards");
    assert_eq!(log.ignored_tensors(), [""; 0]);
    let rollouts = log.rollouts().unwrap().unwrap();
    assert_eq!(rollouts.record(), Some(&record()));
    assert_eq!((rollouts.len(), rollouts.max_tokens()), (6, 2));
    let mut row = Row::default();
    for (index, (rollout, (number, tokens, q, x))) in rollouts.iter().zip(&expected).enumerate() {
        assert_eq!(rollout.position, *number);
        assert_eq!(rollouts.at(*number), Some(index));
        assert_eq!(rollout.tokens, tokens);
        assert_eq!(rollout.q, [*q, 0.25 + x]);
        assert_eq!(rollout.argmax, [0, 1]);
        assert_eq!(rollout.top1, [*q, 0.9]);
        assert_eq!(rollout.entropy, [0.1, *x]);
        assert_eq!(rollout.margin, [0.0, *x]);
        assert_eq!(rollout.acceptance, [0.0; 0]);
        assert_eq!(rollout.target_p, [0.5, *x]);
        assert_eq!(rollout.overlap, [1.0, 1.0 - x]);
        assert_eq!(rollout.head_overlap, [*x, 1.0]);
        log.read(*number, &mut row).unwrap();
        rollouts.check_row(index, &row, &log).unwrap();
        // The row beside it has another law.
        log.read(number ^ 1, &mut row).unwrap();
        let error = rollouts.check_row(index, &row, &log).unwrap_err();
        let error = error.to_string();
        for word in [
            "rollout_q: row ",
            "column 0",
            "another position",
            "⟨rollouts⟩",
        ] {
            assert!(error.contains(word), "{error}");
        }
    }
    assert_eq!(rollouts.at(1), None);
}

#[test]
fn several_paths_of_a_position_are_read_where_the_log_says_how_many() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, paths: usize| {
        let path = folder.path().join(name);
        let rollouts = RolloutRecord {
            version: 2,
            paths,
            ..record()
        };
        let metadata = Metadata {
            rollouts: Some(rollouts),
            ..Metadata::default()
        };
        let mut writer = LogWriter::create(&path, metadata, Layout::new(2)).unwrap();
        for number in 0..3 {
            writer.append(&position(number).0).unwrap();
        }
        for (number, second) in [(2, 0), (0, 1), (2, 1), (2, 0)] {
            let rollout = Rollout {
                position: number,
                tokens: &[0, second],
                q: &[0.5, 0.25],
                ..Rollout::default()
            };
            writer.append_rollout(&rollout).unwrap();
        }
        writer.commit().unwrap();
        Log::open(&path).unwrap().rollouts()
    };
    let rollouts = write("several", 3).unwrap().unwrap();
    assert_eq!(rollouts.paths_at(2), [0, 2, 3]);
    assert_eq!((rollouts.at(2), rollouts.at(1)), (Some(0), None));
    assert_eq!(rollouts.paths_at(1), [0; 0]);
    let anchors: Vec<_> = rollouts.anchors().collect();
    assert_eq!(anchors, [(0, &[1][..]), (2, &[0, 2, 3])]);
    let error = write("more", 2).unwrap_err().to_string();
    for word in [
        "row 3",
        "is 2, where 2 other rollouts start",
        "rollouts.paths",
    ] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_log_without_rollouts_has_none() {
    let row = f64s(&[0.0; 2]);
    let bytes = safetensors(&[
        ("target_logits", "F64", &[1, 2], row.clone()),
        ("draft_logits", "F64", &[1, 2], row),
    ]);
    let log = Log::from_bytes(Path::new("a.safetensors"), Arc::from(bytes)).unwrap();
    assert!(!log.has_rollouts() && log.rollouts().unwrap().is_none());
}

/// What heads predict along the text, where they predict anything.
#[test]
fn values_of_heads_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut writer = LogWriter::create(&path, Metadata::default(), Layout::new(2)).unwrap();
    let head = |acceptance, overlap| HeadValues {
        acceptance,
        overlap,
    };
    let nowhere = writer.set_head(&head(Some(0.5), None)).unwrap_err();
    assert!(nowhere.to_string().contains("no position"), "{nowhere}");
    // The last is a text of one token, in a file of its own.
    let values = [
        head(Some(0.25), Some(1.0)),
        head(None, Some(0.5)),
        head(None, Some(0.75)),
    ];
    for (number, values) in values.iter().enumerate() {
        if number == 2 {
            writer.commit().unwrap();
        }
        writer.append(&position(number).0).unwrap();
        writer.set_head(values).unwrap();
    }
    let wrong = writer.set_head(&head(None, Some(1.5))).unwrap_err();
    assert!(
        wrong
            .to_string()
            .contains("head_overlap: row 2, column 0: is 1.5"),
        "{wrong}"
    );
    writer.commit().unwrap();
    let log = Log::open(&path).unwrap();
    assert!(log.has_head_acceptance() && log.has_head_overlap());
    assert_eq!(log.ignored_tensors(), [""; 0]);
    let mut row = Row::default();
    for (number, values) in values.iter().enumerate() {
        log.read(number, &mut row).unwrap();
        assert_eq!(head(row.head_acceptance, row.head_overlap), *values);
    }
    // A log without, and one with what is no probability.
    let row = f64s(&[0.0; 2]);
    for (values, says) in [(&[-0.5][..], "is -0.5"), (&[f64::NAN], "is NaN"), (&[], "")] {
        let mut tensors: Vec<(&str, &str, &[usize], Vec<u8>)> = vec![
            ("target_logits", "F64", &[1, 2], row.clone()),
            ("draft_logits", "F64", &[1, 2], row.clone()),
        ];
        if !values.is_empty() {
            tensors.push(("head_acceptance", "F64", &[1], f64s(values)));
        }
        let bytes = Arc::from(safetensors(&tensors));
        let log = Log::from_bytes(Path::new("a.safetensors"), bytes).unwrap();
        assert_eq!(log.has_head_acceptance(), !values.is_empty());
        let read = log.read(0, &mut Row::default());
        match read {
            Ok(()) => assert!(values.is_empty()),
            Err(error) => {
                let error = error.to_string();
                error.says("head_acceptance: row 0, column 0");
                assert!(error.contains(says) && error.contains("[0, 1]"), "{error}");
            }
        }
    }
}

#[test]
fn rollouts_that_do_not_fit_are_refused_by_tensor_and_entry() {
    type Named = (&'static str, &'static str, Vec<usize>, Vec<u8>);
    let good = || -> Vec<Named> {
        vec![
            ("rollout_position", "I64", vec![2], i64s(&[2, 0])),
            (
                "rollout_token",
                "I64",
                vec![2, 3],
                i64s(&[0, 1, 2, 2, 1, -1]),
            ),
            (
                "rollout_q",
                "F64",
                vec![2, 3],
                f64s(&[0.5, 1.0, 0.25, 0.5, 0.5, 0.0]),
            ),
            ("rollout_entropy", "F64", vec![2, 3], f64s(&[1.0; 6])),
            ("rollout_margin", "F64", vec![2, 3], f64s(&[0.5; 6])),
        ]
    };
    let open = |tensors: &[Named]| {
        let row = f64s(&[0.0; 9]);
        let mut all: Vec<(&str, &str, &[usize], Vec<u8>)> = vec![
            ("target_logits", "F64", &[3, 3], row.clone()),
            ("draft_logits", "F64", &[3, 3], row),
        ];
        for (name, dtype, shape, bytes) in tensors {
            all.push((name, dtype, shape, bytes.clone()));
        }
        let bytes = Arc::from(safetensors(&all));
        let log = Log::from_bytes(Path::new("a.safetensors"), bytes).unwrap();
        log.rollouts()
    };
    let rollouts = open(&good()).unwrap().unwrap();
    let second = rollouts.get(1).unwrap();
    // -1 at the end is an unused place.
    assert_eq!((second.position, second.tokens), (0, &[2, 1][..]));
    assert_eq!((second.q, second.margin), (&[0.5, 0.5][..], &[0.5; 2][..]));
    assert_eq!(rollouts.record(), None);

    let refuse = |tensors: &[Named], says: &[&str]| {
        let error = open(tensors).unwrap_err().to_string();
        for word in [&["a.safetensors: ", "⟨rollouts⟩"], says].concat() {
            assert!(error.contains(word), "{error}\nshould contain {word}");
        }
    };
    let with = |place: usize, bytes: Vec<u8>| {
        let mut tensors = good();
        tensors[place].3 = bytes;
        tensors
    };
    refuse(
        &with(0, i64s(&[2, 3])),
        &["rollout_position: row 1, column 0: is 3", "it has 3"],
    );
    refuse(
        &with(0, i64s(&[-1, 0])),
        &["rollout_position: row 0, column 0: is -1"],
    );
    refuse(
        &with(0, i64s(&[1, 1])),
        &["rollout_position: row 1, column 0: is 1", "another rollout"],
    );
    for (tokens, place) in [
        ([0, 1, 3, 0, 0, 0], "row 0, column 2: token 3"),
        ([0, 1, 2, -1, 0, 0], "row 1, column 0: token -1"),
        ([0, 1, 2, 0, -1, 0], "row 1, column 2: token 0"),
    ] {
        refuse(&with(1, i64s(&tokens)), &["rollout_token: ", place]);
    }
    for (q, place) in [
        ([0.5, 0.0, 0.5, 0.5, 0.5, 0.5], "row 0, column 1: is 0"),
        ([0.5, 0.5, 1.5, 0.5, 0.5, 0.5], "row 0, column 2: is 1.5"),
        (
            [0.5, 0.5, 0.5, f64::NAN, 0.5, 0.5],
            "row 1, column 0: is NaN",
        ),
    ] {
        refuse(&with(2, f64s(&q)), &["rollout_q: ", place, "(0, 1]"]);
    }
    refuse(
        &with(3, f64s(&[1.0, 1.2, 1.0, 1.0, 1.0, 1.0])),
        &["rollout_entropy: row 0, column 1: is 1.2", "ln V"],
    );
    refuse(
        &with(4, f64s(&[0.5, -0.1, 0.5, 0.5, 0.5, 0.5])),
        &["rollout_margin: row 0, column 1: is -0.1"],
    );
    for (name, tensors) in [
        ("rollout_position", &good()[1..]),
        ("rollout_token", &[good().remove(0), good().remove(2)][..]),
    ] {
        refuse(tensors, &[name, "is missing"]);
    }
    let mut tensors = good();
    tensors[2] = ("rollout_q", "F64", vec![2, 2], f64s(&[0.5; 4]));
    refuse(&tensors, &["rollout_q: is f64 of shape [2, 2]", "M = 2"]);
    let mut tensors = good();
    tensors[1] = ("rollout_token", "F64", vec![2, 3], f64s(&[0.0; 6]));
    refuse(&tensors, &["rollout_token: is f64", "i64 or i32"]);
    let mut tensors = good();
    tensors[3] = ("rollout_entropy", "U8", vec![2, 3], vec![0; 6]);
    refuse(&tensors, &["rollout_entropy: has entries of type U8"]);
}

#[test]
fn a_record_that_says_nothing_sensible_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (bent, says)) in [
        (
            RolloutRecord {
                version: 3,
                ..record()
            },
            "of version 3; this version of specgap reads 1 to 2",
        ),
        (
            RolloutRecord {
                paths: 4,
                ..record()
            },
            "of version 1 with paths 4",
        ),
        (
            RolloutRecord {
                version: 2,
                paths: 0,
                ..record()
            },
            "with paths 0",
        ),
        (
            RolloutRecord {
                inclusion_probability: 0.0,
                ..record()
            },
            "inclusion_probability 0; it must be in (0, 1]",
        ),
        (
            RolloutRecord {
                temperature: -1.0,
                ..record()
            },
            "temperature -1; it must be finite",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(number.to_string());
        let metadata = Metadata {
            rollouts: Some(bent),
            ..Metadata::default()
        };
        let mut writer = LogWriter::create(&path, metadata, Layout::new(2)).unwrap();
        writer.append(&position(0).0).unwrap();
        let rollout = Rollout {
            tokens: &[0],
            q: &[0.5],
            ..Rollout::default()
        };
        writer.append_rollout(&rollout).unwrap();
        writer.commit().unwrap();
        let log = Log::open(&path).unwrap();
        let error = log.rollouts().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
