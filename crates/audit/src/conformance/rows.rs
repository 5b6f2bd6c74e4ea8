//! Rows that are made up, and draws from them.

use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// A softmax of normal numbers.
pub(super) fn row(vocabulary: usize, scale: f64, random: &mut ChaCha8Rng) -> Vec<f32> {
    normalised(
        (0..vocabulary)
            .map(|_| (scale * normal(random)).exp())
            .collect(),
    )
}

/// A row with every logit moved.
pub(super) fn near(row: &[f32], scale: f64, random: &mut ChaCha8Rng) -> Vec<f32> {
    let moved = row
        .iter()
        .map(|&x| f64::from(x) * (scale * normal(random)).exp());
    normalised(moved.collect())
}

/// A standard normal number, by Box and Muller.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

pub(super) fn normalised(weights: Vec<f64>) -> Vec<f32> {
    let total: f64 = weights.iter().sum();
    weights.iter().map(|x| (x / total) as f32).collect()
}

pub(super) fn one_hot(vocabulary: usize, token: usize) -> Vec<f32> {
    let mut row = vec![0.0; vocabulary];
    if let Some(entry) = row.get_mut(token) {
        *entry = 1.0;
    }
    row
}

/// A token drawn from a row.
pub(super) fn draw(row: &[f32], random: &mut ChaCha8Rng) -> usize {
    let total: f64 = row.iter().map(|&x| f64::from(x)).sum();
    let mut left = random.random::<f64>() * total;
    let mut held = 0;
    for (token, &x) in row.iter().enumerate() {
        if x > 0.0 {
            held = token;
            left -= f64::from(x);
            if left <= 0.0 {
                break;
            }
        }
    }
    held
}

/// The place of the largest value, the first among equals.
pub(super) fn most(count: usize, value: impl Fn(usize) -> f64) -> usize {
    let best = (0..count).max_by(|&a, &b| value(a).total_cmp(&value(b)).then(b.cmp(&a)));
    best.unwrap_or(0)
}

pub(super) fn wide(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}
