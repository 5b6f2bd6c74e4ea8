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

/// Where a row stands in its text: (prompt, index, token).
pub type Place = (i64, i64, i64);

/// Writes rows as a log: prompts of five positions, the last one shorter, and tokens
/// drawn at temperature 1, not those that are masked.
pub fn write(path: &Path, rows: &[Pair], tokens: KeptTokens) {
    let layout = Layout {
        dtype: Dtype::F32,
        tokens,
        ..Layout::new(V)
    };
    let place = |n: usize| ((n / 5) as i64, (n % 5) as i64, ((n + 1) % V) as i64);
    write_at(path, rows, layout, place);
}

/// Writes rows as a log in some layout, the n-th at a place of its own.
pub fn write_at(path: &Path, rows: &[Pair], layout: Layout, place: impl Fn(usize) -> Place) {
    let metadata = Metadata {
        sampling: Some(Sampling {
            temperature: 1.0,
            ..Sampling::default()
        }),
        token_text: (0..V as i64).map(|i| (i, format!("<{i}>"))).collect(),
        ..Metadata::default()
    };
    let mut writer = LogWriter::create(path, metadata, layout).unwrap();
    for (n, (target, draft)) in rows.iter().enumerate() {
        let (prompt_id, position, token) = place(n);
        writer
            .append(&Position {
                prompt_id,
                position,
                token,
                target,
                draft,
            })
            .unwrap();
    }
    writer.commit().unwrap();
}

/// A token of each target row, drawn from it at temperature 1.
#[allow(dead_code)] // by one of the programs
pub fn drawn(rows: &[Pair]) -> Vec<i64> {
    let mut state = 7u64;
    let draw = |(target, _): &Pair| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let weights: Vec<f64> = target.iter().map(|&x| f64::from(x).exp()).collect();
        let mut left = (state >> 11) as f64 / (1u64 << 53) as f64 * weights.iter().sum::<f64>();
        let found = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        found.unwrap() as i64
    };
    rows.iter().map(draw).collect()
}

/// As [`write`], with all tokens listed and a text that was drawn from the rows.
#[allow(dead_code)] // by one of the programs
pub fn write_drawn(path: &Path, rows: &[Pair]) {
    let layout = Layout {
        dtype: Dtype::F32,
        tokens: KeptTokens::All,
        ..Layout::new(V)
    };
    let tokens = drawn(rows);
    write_at(path, rows, layout, |n| {
        ((n / 5) as i64, (n % 5) as i64, tokens[n])
    });
}
