//! What no row may hold, and sums over a row.

/// The place of the first entry that is NaN or +inf, and the largest entry if there is none.
///
/// One pass in eight lanes, so that it is no longer than reading the row.
///
/// # Errors
/// That place.
pub fn first_not_legal(entries: &[f64]) -> Result<f64, usize> {
    let mut largest = [f64::NEG_INFINITY; 8];
    let mut bad = [false; 8];
    let (chunks, rest) = entries.as_chunks::<8>();
    for chunk in chunks {
        for lane in 0..8 {
            let x = chunk[lane];
            bad[lane] |= x.is_nan();
            largest[lane] = if x > largest[lane] { x } else { largest[lane] };
        }
    }
    let bad = bad.contains(&true) || rest.iter().any(|x| x.is_nan());
    let largest = largest
        .into_iter()
        .chain(rest.iter().copied())
        .fold(f64::NEG_INFINITY, f64::max);
    if !bad && largest < f64::INFINITY {
        return Ok(largest);
    }
    let not_legal = |x: &f64| x.is_nan() || *x == f64::INFINITY;
    Err(entries.iter().position(not_legal).unwrap_or(0))
}

/// The place of the first entry below 0.
pub fn first_negative(entries: &[f64]) -> Option<usize> {
    entries.iter().position(|&x| x < 0.0)
}

/// The sum of the entries, from first to last.
pub fn sum(entries: &[f64]) -> f64 {
    entries.iter().sum()
}

/// The sum of their exponentials, from first to last.
pub fn sum_of_exp(entries: &[f64]) -> f64 {
    entries.iter().map(|&x| x.exp()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_wherever_they_stand() {
        for length in [1, 7, 8, 9, 40] {
            let row: Vec<f64> = (0..length).map(|x| -f64::from(x)).collect();
            assert_eq!(first_not_legal(&row), Ok(0.0));
            assert_eq!(first_negative(&row), (length > 1).then_some(1));
            for place in 0..row.len() {
                for x in [f64::NAN, f64::INFINITY] {
                    let mut row = row.clone();
                    row[place] = x;
                    assert_eq!(first_not_legal(&row), Err(place));
                }
            }
        }
        assert_eq!(first_not_legal(&[]), Ok(f64::NEG_INFINITY));
        assert_eq!(first_negative(&[0.0, -0.0, 1.0]), None);
        assert_eq!(sum(&[0.5, 0.25]), 0.75);
        assert_eq!(sum_of_exp(&[0.0, f64::NEG_INFINITY]), 1.0);
    }
}
