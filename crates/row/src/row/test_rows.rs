//! Rows of tests.

/// The row divided by its sum.
pub(crate) fn normalised(mut row: Vec<f64>) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
    row
}
