//! Logs with what an engine did: the rows of a log, and the tensors of its rounds.

// Two programs have it, and not all of it is for both.
#![allow(dead_code)]

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use specgap::audit::SimulatedLog;
use std::collections::HashMap;
use std::path::Path;

/// The rows of the log that the repository ships: 400 positions of real models.
pub const SHIPPED: &str = "models/logs/smollm2-demo";

/// Bytes of integers, as a file has them.
fn bytes(values: impl Iterator<Item = i64>) -> Vec<u8> {
    values.flat_map(i64::to_le_bytes).collect()
}

/// A small log of 120 positions.
pub fn small() -> Vec<u8> {
    made(120)
}

/// A log of so many positions over 120 tokens, of rows as models have them: some peaked, the
/// draft's like the target's.
pub fn made(rows: usize) -> Vec<u8> {
    let tokens = 120usize;
    let mut state = 12345u64;
    let mut normal = || {
        let mut uniform = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()
    };
    let (mut target, mut draft) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let sharpness = 1.0 + normal().abs();
        for token in 0..tokens {
            let x = sharpness * normal();
            let y = 0.6 * x + 0.9 * normal();
            // The last ends texts. No engine draws it: a text that went on would be a bug.
            let [x, y] = if token + 1 == tokens {
                [-60.0; 2]
            } else {
                [x, y]
            };
            target.extend((x as f32).to_le_bytes());
            draft.extend((y as f32).to_le_bytes());
        }
    }
    let prompts = bytes((0..rows).map(|row| (row / 20) as i64));
    let positions = bytes((0..rows).map(|row| (row % 20) as i64));
    let view = |shape, data| TensorView::new(Dtype::F32, shape, data).unwrap();
    let one = |data| TensorView::new(Dtype::I64, vec![rows], data).unwrap();
    let tensors = vec![
        ("target_logits", view(vec![rows, tokens], &target)),
        ("draft_logits", view(vec![rows, tokens], &draft)),
        ("prompt_id", one(&prompts)),
        ("position", one(&positions)),
    ];
    let metadata = r#"{"temperature_applied": 1.0, "stop_tokens": [119],
        "sampling": {"temperature": 1.0}}"#;
    let metadata = HashMap::from([("specgap".to_owned(), metadata.to_owned())]);
    safetensors::serialize(tensors, Some(metadata)).unwrap()
}

/// The rows of the shipped log, as one file.
pub fn shipped(root: &Path) -> Vec<u8> {
    let shard = std::fs::read(root.join(SHIPPED).join("shard-00000.safetensors")).unwrap();
    let index = std::fs::read_to_string(root.join(SHIPPED).join("log.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let metadata = HashMap::from([("specgap".to_owned(), index["metadata"].to_string())]);
    let rows = SafeTensors::deserialize(&shard).unwrap();
    safetensors::serialize(rows.iter(), Some(metadata)).unwrap()
}

/// The rows and rounds without those of tokens behind a whole chain, as a log has them that was
/// recorded where the draft gives such tokens no row (transformers).
pub fn without_bonus(file: &[u8], made: &SimulatedLog) -> (Vec<u8>, SimulatedLog) {
    let (mut kept, mut accepted) = (Vec::new(), 0);
    for (row, record) in made.records.iter().enumerate() {
        if let Some(count @ 0..) = record.accepted {
            accepted = count;
        }
        let width = record.drafts.len() as i64;
        if !(accepted == width && record.round == Some(width)) {
            kept.push(row);
        }
    }
    assert!(
        kept.len() < made.records.len(),
        "no chain was accepted whole"
    );
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let rows = SafeTensors::deserialize(file).unwrap();
    let parts: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = (rows.iter())
        .map(|(name, view)| {
            let each = view.data().len() / view.shape()[0];
            let taken = kept
                .iter()
                .flat_map(|row| &view.data()[row * each..(row + 1) * each]);
            let mut shape = view.shape().to_vec();
            shape[0] = kept.len();
            (
                name.to_owned(),
                view.dtype(),
                shape,
                taken.copied().collect(),
            )
        })
        .collect();
    let views = parts.iter().map(|(name, dtype, shape, data)| {
        (name, TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    let file = safetensors::serialize(views, header.metadata().clone()).unwrap();
    let records = kept.iter().map(|&row| made.records[row].clone()).collect();
    (file, SimulatedLog { records })
}

/// The same rows with other places in their texts, which follow from the row and all prompts.
pub fn at_places(file: &[u8], place: impl Fn(usize, &[i64]) -> i64) -> Vec<u8> {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let rows = SafeTensors::deserialize(file).unwrap();
    let prompts = rows.tensor("prompt_id").unwrap();
    let prompts: Vec<i64> = (prompts.data().chunks_exact(8))
        .map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let places = bytes((0..prompts.len()).map(|row| place(row, &prompts)));
    let views = rows.iter().map(|(name, view)| match name {
        "position" => {
            let view = TensorView::new(Dtype::I64, view.shape().to_vec(), &places).unwrap();
            (name, view)
        }
        _ => (name, view),
    });
    safetensors::serialize(views, header.metadata().clone()).unwrap()
}

/// Writes a log's rows with an engine's rounds, as one file. Names of tensors can be left out.
pub fn write(file: &[u8], made: &SimulatedLog, path: &Path, without: &[&str]) {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let metadata = header.metadata().clone();
    let rows = SafeTensors::deserialize(file).unwrap();
    let n = made.records.len();
    let width = made.records[0].drafts.len();
    let one = |of: &dyn Fn(&specgap::log::EngineRecord) -> Option<i64>| {
        bytes(made.records.iter().map(|record| of(record).unwrap_or(-1)))
    };
    let drafts = bytes(made.records.iter().flat_map(|record| record.drafts.clone()));
    let output = one(&|record| record.output);
    let accepted = one(&|record| record.accepted);
    let round = one(&|record| record.round);
    let batch = one(&|record| record.batch_size);
    let seed = one(&|record| record.seed);
    let mut tensors: Vec<(String, TensorView<'_>)> = rows
        .iter()
        .filter(|(name, _)| !without.contains(name))
        .map(|(name, view)| (name.to_owned(), view))
        .collect();
    for (name, shape, data) in [
        ("drafts", vec![n, width], &drafts),
        ("output", vec![n], &output),
        ("accepted", vec![n], &accepted),
        ("round", vec![n], &round),
        ("batch_size", vec![n], &batch),
        ("seed", vec![n], &seed),
    ] {
        if !without.contains(&name) {
            let view = TensorView::new(Dtype::I64, shape, data).unwrap();
            tensors.push((name.to_owned(), view));
        }
    }
    let file = safetensors::serialize(tensors, metadata).unwrap();
    std::fs::write(path, file).unwrap();
}
