//! Listed tokens in order, and what two rows have in common.

/// The places that a row lists, the largest entry first, and of equal ones that with the lowest id.
/// `ids` are those of the tokens, or empty if these are their places.
///
/// ```
/// let order = specgap_entries::descending(&[0.2, f64::NAN, 0.4, 0.4], &[4, 3, 2, 1]);
/// assert_eq!(order, [3, 2, 0]);
/// ```
pub fn descending(entries: &[f64], ids: &[u32]) -> Vec<usize> {
    let id = |place: usize| ids.get(place).map_or(place, |&id| id as usize);
    let mut places: Vec<usize> = (0..entries.len())
        .filter(|&place| !entries[place].is_nan())
        .collect();
    places.sort_unstable_by(|&a, &b| {
        let by_entry = entries[b].total_cmp(&entries[a]);
        by_entry.then(id(a).cmp(&id(b)))
    });
    places
}

/// The sum of min(s p, t q) over tokens that both rows list, for two factors s and t.
pub fn common(p: &[f64], q: &[f64], [s, t]: [f64; 2]) -> f64 {
    let mut sum = 0.0;
    for (p, q) in p.iter().zip(q) {
        if !p.is_nan() && !q.is_nan() {
            sum += (p * s).min(q * t);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_is_the_smaller_of_both() {
        let (p, q) = ([0.5, 0.5, f64::NAN], [0.25, 0.75, 0.5]);
        assert_eq!(common(&p, &q, [1.0, 1.0]), 0.75);
        assert_eq!(common(&p, &q, [0.5, 1.0]), 0.5);
        assert_eq!(common(&[], &q, [1.0, 1.0]), 0.0);
    }

    #[test]
    fn an_order_is_by_entry_then_by_id() {
        assert_eq!(descending(&[0.0, 0.5, 0.5], &[]), [1, 2, 0]);
        assert!(descending(&[f64::NAN], &[]).is_empty());
    }
}
