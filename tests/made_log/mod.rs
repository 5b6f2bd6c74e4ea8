//! A small log, made where a test needs one.

use specgap::log::{Dtype, KeptTokens, Layout, LogWriter, Metadata, Position, Sampling};
use std::path::Path;

/// Tokens of the vocabulary.
pub const V: usize = 6;

/// Target and draft logits of one position.
pub type Pair = (Vec<f32>, Vec<f32>);

/// Logits that f32 holds; every third target token is masked once.
pub fn rows(count: usize) -> Vec<Pair> {
    let value = |i: usize| ((i * 7919 + 13) % 1009) as f32 / 256.0 - 2.0;
    (0..count)
        .map(|n| {
            let mut target: Vec<f32> = (0..V).map(|i| value(n * 31 + i)).collect();
            let draft: Vec<f32> = (0..V).map(|i| value(n * 17 + 3 * i + 1)).collect();
            if n % 3 == 0 {
                target[n % V] = f32::NEG_INFINITY;
            }
            (target, draft)
        })
        .collect()
}

/// Writes rows as a log: prompts of five positions, tokens drawn at temperature 1.
pub fn write(path: &Path, rows: &[Pair], tokens: KeptTokens) {
    let metadata = Metadata {
        sampling: Some(Sampling {
            temperature: 1.0,
            ..Sampling::default()
        }),
        token_text: (0..V as i64).map(|i| (i, format!("<{i}>"))).collect(),
        ..Metadata::default()
    };
    let layout = Layout {
        dtype: Dtype::F32,
        tokens,
        ..Layout::new(V)
    };
    let mut writer = LogWriter::create(path, metadata, layout).unwrap();
    for (n, (target, draft)) in rows.iter().enumerate() {
        writer
            .append(&Position {
                // Prompts of 5 positions, the last one shorter.
                prompt_id: (n / 5) as i64,
                position: (n % 5) as i64,
                // Not the token that is masked.
                token: ((n + 1) % V) as i64,
                target,
                draft,
            })
            .unwrap();
    }
    writer.commit().unwrap();
}
