//! Logs with what an engine did: the rows of a log, and the tensors of its rounds.

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

/// Writes the shipped log's rows with an engine's rounds, as one file. Names of tensors can be
/// left out.
pub fn write(root: &Path, made: &SimulatedLog, path: &Path, without: &[&str]) {
    let shard = std::fs::read(root.join(SHIPPED).join("shard-00000.safetensors")).unwrap();
    let index = std::fs::read_to_string(root.join(SHIPPED).join("log.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let rows = SafeTensors::deserialize(&shard).unwrap();
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
    let mut tensors: Vec<(String, TensorView<'_>)> = rows
        .iter()
        .map(|(name, view)| (name.to_owned(), view))
        .collect();
    for (name, shape, data) in [
        ("drafts", vec![n, width], &drafts),
        ("output", vec![n], &output),
        ("accepted", vec![n], &accepted),
        ("round", vec![n], &round),
        ("batch_size", vec![n], &batch),
    ] {
        if !without.contains(&name) {
            let view = TensorView::new(Dtype::I64, shape, data).unwrap();
            tensors.push((name.to_owned(), view));
        }
    }
    let metadata = HashMap::from([("specgap".to_owned(), index["metadata"].to_string())]);
    let file = safetensors::serialize(tensors, Some(metadata)).unwrap();
    std::fs::write(path, file).unwrap();
}
