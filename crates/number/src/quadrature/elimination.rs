//! Gaussian elimination.

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

    /// Times the solution it is the right side again.
    #[test]
    fn solutions_solve_the_system() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for count in [1usize, 2, 7, 30] {
            let matrix: Vec<f64> = (0..count * count)
                .map(|_| rng.random::<f64>() - 0.5)
                .collect();
            let right: Vec<f64> = (0..count).map(|_| rng.random::<f64>() - 0.5).collect();
            let mut solution = right.clone();
            dense(&mut matrix.clone(), &mut solution).unwrap();
            let size = solution.iter().fold(1.0f64, |most, x| most.max(x.abs()));
            for (row, right) in matrix.chunks(count).zip(&right) {
                let product: f64 = row.iter().zip(&solution).map(|(a, x)| a * x).sum();
                assert!((product - right).abs() < 1e-12 * size, "{product} {right}");
            }
        }
    }

    #[test]
    fn singular_systems_are_refused_and_pivots_found() {
        assert_eq!(dense(&mut [0.0; 4], &mut [1.0; 2]), None);
        let mut right = [3.0, 2.0];
        assert_eq!(dense(&mut [0.0, 1.0, 2.0, 0.0], &mut right), Some(()));
        assert_eq!(right, [1.0, 3.0]);
    }
}
