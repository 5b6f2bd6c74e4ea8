//! Rows and pairs of rows that more than one question is asked of.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Rational, Softmax, Target, parse_rational};

/// Weights over their sum.
pub fn normalised(raw: &[f64]) -> Vec<f64> {
    let total: f64 = raw.iter().sum();
    raw.iter().map(|x| x / total).collect()
}

/// Whole numbers over their sum, exactly.
pub fn fractions(row: &[u32]) -> Vec<Rational> {
    let total: u32 = row.iter().sum();
    row.iter()
        .map(|x| parse_rational(&format!("{x}/{total}")).unwrap())
        .collect()
}

/// Two rows of weights as target and draft.
pub fn rows(p: &[f64], q: &[f64]) -> (Target, Draft) {
    (
        Target::new(&normalised(p)).unwrap(),
        Draft::new(&normalised(q)).unwrap(),
    )
}

/// Logits that fall with the logarithm of the rank by `slope`, with noise that both
/// rows share and noise of each row's own, of these sizes.
pub fn ranked_logits(vocab: usize, slope: f64, own: [f64; 2], seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    (1..=vocab)
        .map(|rank| {
            let shared = -slope * (rank as f64).ln() + noise();
            (shared + own[0] * noise(), shared + own[1] * noise())
        })
        .unzip()
}

/// Logits as target and draft at a temperature.
pub fn softmax((target, draft): &(Vec<f64>, Vec<f64>), temperature: f64) -> (Target, Draft) {
    let rule = Softmax { temperature };
    (
        Target::from_logits(target, &rule).unwrap(),
        Draft::from_logits(draft, &rule).unwrap(),
    )
}

/// Logits shaped like those of a language model.
pub fn model_logits(vocab: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    ranked_logits(vocab, 1.6, [0.4, 0.6], seed)
}

/// Rows shaped like those of a language model at a temperature.
pub fn model_rows(vocab: usize, temperature: f64, seed: u64) -> (Target, Draft) {
    softmax(&model_logits(vocab, seed), temperature)
}

/// Integer weights make ties common; powers of ten make ranges wide.
pub fn row(vocab: usize) -> impl Strategy<Value = Vec<f64>> {
    let entry = prop_oneof![
        3 => (0u32..5).prop_map(f64::from),
        2 => (0.0f64..1.0).prop_map(|x| x),
        1 => (-16i32..1).prop_map(|e| 10f64.powi(e)),
    ];
    prop::collection::vec(entry, vocab)
        .prop_filter("some mass", |row| row.iter().sum::<f64>() > 1e-3)
}
