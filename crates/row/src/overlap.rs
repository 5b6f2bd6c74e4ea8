//! What one draft is accepted with, and the error of what rejection leaves.

use super::scan::Row;
use multiversion::multiversion;
use specgap_number::distribution::split_sum;
use specgap_number::known::Known;

/// The sum of min(p, q) over two rows of which the entries sum to at most 1.
///
/// ```
/// assert_eq!(specgap_row::common(&[0.5, 0.5], &[0.75, 0.25]), 0.75);
/// ```
#[multiversion(targets = "simd")]
pub fn common(p: &[f64], q: &[f64]) -> f64 {
    split_sum(p, q, f64::min)
}

/// The sum of p over the tokens that q has.
///
/// ```
/// assert_eq!(specgap_row::covered(&[0.5, 0.25, 0.25], &[0.5, 0.0, 0.5]), 0.75);
/// ```
#[multiversion(targets = "simd")]
pub fn covered(p: &[f64], q: &[f64]) -> f64 {
    split_sum(p, q, |p, q| if q > 0.0 { p } else { 0.0 })
}

impl Row<'_> {
    /// The sum of min(p, q), which is 1 - M(1): what one draft is accepted with, however it is
    /// verified. O(m), m tokens a bucket.
    ///
    /// # Example
    /// ```
    /// use specgap_row::{Rows, Workspace};
    /// let mut workspace = Workspace::new();
    /// let mut row = workspace.load(Rows { target: &[0.5, 0.5], draft: &[0.75, 0.25] }, 1)?;
    /// assert_eq!(row.overlap().value(), 0.75);
    /// # Ok::<(), specgap_row::RowError>(())
    /// ```
    pub fn overlap(&mut self) -> Known {
        Known::rate_within(1.0 - self.residual_mass(1.0), residual_error(1))
    }
}

/// M(L) is within 8 epsilon (1 + L) with L <= n, and a rate of n drafts adds up n such
/// errors at most.
pub fn residual_error(drafts: usize) -> f64 {
    let n = drafts as f64;
    8.0 * f64::EPSILON * (n + 1.0) * (n + 1.0)
}
