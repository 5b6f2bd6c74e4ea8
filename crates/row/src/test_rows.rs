//! Rows of tests.

use specgap_log::log::{Log, Row};
use std::path::Path;

/// Of every so many positions of the shipped log the tokens that are listed, p and q each over
/// their sum, with the masses that are not.
pub(crate) fn listed(step: usize, temperature: f64) -> Vec<[(Vec<f64>, f64); 2]> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let log = Log::open(&root.join("models/logs/smollm2-demo")).unwrap();
    let mut known = log.metadata().rest_temperatures.iter();
    let at = known.position(|&known| known == temperature).unwrap();
    let of = |logits: &[f64], rests: &[f64]| {
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = logits.iter().map(|x| ((x - most) / temperature).exp());
        (normalised(weights.collect()), rests[at])
    };
    let mut row = Row::default();
    let positions = (0..log.positions()).step_by(step).map(|index| {
        log.read(index, &mut row).unwrap();
        [
            of(&row.target, &row.target_rest),
            of(&row.draft, &row.draft_rest),
        ]
    });
    positions.collect()
}

/// The row divided by its sum.
pub(crate) fn normalised(mut row: Vec<f64>) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
    row
}
