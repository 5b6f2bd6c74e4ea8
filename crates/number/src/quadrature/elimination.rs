//! Linear systems behind Newton's steps.

use multiversion::multiversion;

/// Potentials on a graph: solves `(diagonal of sums + leaks - edges) x = right`.
///
/// `edges` is a square matrix, non-negative, of which the lower triangle is read and
/// destroyed; `leaks` says how strongly each node is tied to 0. Elimination from the last
/// node to the first adds and never subtracts, so that the potentials are right even where
/// nodes are hardly connected. A node that is tied to nothing stays at 0, and so does one
/// whose potential leaves the range of `f64`.
///
/// `None` if an edge or a leak is not finite. O(nodes^3).
pub fn laplacian(edges: &mut [f64], leaks: &mut [f64], right: &mut [f64]) -> Option<Vec<f64>> {
    let count = leaks.len();
    let mut diagonal = vec![0.0; count];
    for k in (0..count).rev() {
        let (upper, lower) = edges.split_at_mut(k * count);
        let row = &lower[..k];
        let total = row.iter().sum::<f64>() + leaks[k];
        if !total.is_finite() {
            return None;
        }
        diagonal[k] = total;
        if total <= 0.0 {
            continue;
        }
        for i in 0..k {
            let share = row[i] / total;
            if share == 0.0 {
                continue;
            }
            add_scaled(share, row, &mut upper[i * count..i * count + i]);
            leaks[i] += share * leaks[k];
            right[i] += share * right[k];
        }
    }
    let mut potentials = vec![0.0; count];
    for k in 0..count {
        if diagonal[k] > 0.0 {
            let row = &edges[k * count..k * count + k];
            let pull: f64 = row.iter().zip(&potentials).map(|(a, b)| a * b).sum();
            let value = (right[k] + pull) / diagonal[k];
            potentials[k] = if value.is_finite() { value } else { 0.0 };
        }
    }
    Some(potentials)
}

#[multiversion(targets = "simd")]
fn add_scaled(share: f64, row: &[f64], sums: &mut [f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += share * value;
    }
}

/// Gaussian elimination with row pivots, in place; `None` if singular.
pub fn dense(matrix: &mut [f64], right: &mut [f64]) -> Option<()> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size).fold(column, |best, row| {
            let entry = |row: usize| matrix[row * size + column].abs();
            if entry(row) > entry(best) { row } else { best }
        });
        let value = matrix[pivot * size + column];
        if !value.is_finite() || value == 0.0 {
            return None;
        }
        if pivot != column {
            for k in 0..size {
                matrix.swap(pivot * size + k, column * size + k);
            }
            right.swap(pivot, column);
        }
        for row in column + 1..size {
            let factor = matrix[row * size + column] / value;
            if factor == 0.0 {
                continue;
            }
            let (upper, lower) = matrix.split_at_mut(row * size);
            let top = &upper[column * size + column..(column + 1) * size];
            for (entry, above) in lower[column..size].iter_mut().zip(top) {
                *entry -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let mut sum = right[row];
        for column in row + 1..size {
            sum -= matrix[row * size + column] * right[column];
        }
        right[row] = sum / matrix[row * size + row];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// A graph's Laplacian by both eliminations.
    #[test]
    fn two_eliminations_agree() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for count in [1usize, 2, 7, 30] {
            let mut edges = vec![0.0; count * count];
            let mut leaks: Vec<f64> = (0..count).map(|_| rng.random()).collect();
            let mut right: Vec<f64> = (0..count).map(|_| rng.random::<f64>() - 0.5).collect();
            let mut matrix = vec![0.0; count * count];
            for i in 0..count {
                matrix[i * count + i] += leaks[i];
                for j in 0..i {
                    let edge: f64 = rng.random();
                    edges[i * count + j] = edge;
                    matrix[i * count + j] = -edge;
                    matrix[j * count + i] = -edge;
                    matrix[i * count + i] += edge;
                    matrix[j * count + j] += edge;
                }
            }
            let mut solution = right.clone();
            dense(&mut matrix, &mut solution).unwrap();
            let potentials = laplacian(&mut edges, &mut leaks, &mut right).unwrap();
            for (a, b) in potentials.iter().zip(&solution) {
                assert!((a - b).abs() < 1e-11 * b.abs().max(1.0), "{a} {b}");
            }
        }
    }

    #[test]
    fn what_is_tied_to_nothing_stays_and_what_is_no_number_is_refused() {
        let (mut edges, mut leaks, mut right) = ([0.0; 4], [0.0, 2.0], [1.0, 1.0]);
        let potentials = laplacian(&mut edges, &mut leaks, &mut right);
        assert_eq!(potentials, Some(vec![0.0, 0.5]));
        let (mut edges, mut leaks) = ([0.0, 0.0, f64::INFINITY, 0.0], [1.0, 1.0]);
        assert_eq!(laplacian(&mut edges, &mut leaks, &mut right), None);
        assert_eq!(dense(&mut [0.0; 4], &mut [1.0; 2]), None);
    }
}
