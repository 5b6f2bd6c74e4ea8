//! The probability that n sequential drafts are all rejected, from the rule's definition.
//!
//! Residuals are differences of numbers that may be nearly equal, so that what is left of
//! p at a step may have no digits. But then it is as rarely reached: with mass M before a
//! step and M' after it, M' is off by a few epsilon of M, a path goes on with probability
//! M'/M, and what it adds is off by a few epsilon in all, once a step.

use specgap_number::distribution::compensated_sum;

/// `wanted` is the residual of p, `left` is q up to a factor without the tokens that were
/// drawn. All steps: O(V) for each tuple of rejected tokens but its last.
pub(super) fn all_rejected(wanted: &[f64], left: &[f64], draws: usize) -> f64 {
    let rest = compensated_sum(left.iter().copied());
    // The tuple ends with the support.
    if draws == 0 || rest <= 0.0 {
        return 1.0;
    }
    let mass = compensated_sum(wanted.iter().copied());
    if mass <= 0.0 {
        return 0.0;
    }
    // 1 over what is left may overflow; q over what is left does not.
    let offered: Vec<f64> = left.iter().map(|q| mass * (q / rest)).collect();
    let next: Vec<f64> = (wanted.iter().zip(&offered))
        .map(|(wanted, offered)| (wanted - offered).max(0.0))
        .collect();
    if draws == 1 {
        return (compensated_sum(next) / mass).min(1.0);
    }
    let mut others = left.to_vec();
    let mut terms = Vec::new();
    for (token, (&wanted, &offered)) in wanted.iter().zip(&offered).enumerate() {
        let refused = offered - wanted;
        if refused > 0.0 {
            others[token] = 0.0;
            terms.push(refused * all_rejected(&next, &others, draws - 1));
            others[token] = left[token];
        }
    }
    (compensated_sum(terms) / mass).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::all_rejected;

    /// Every order of draws, each with the chain of its steps.
    #[test]
    fn small_rows_by_hand() {
        let (p, q) = ([0.25, 0.25, 0.5], [0.5, 0.25, 0.25]);
        assert_eq!(all_rejected(&p, &q, 1), 0.25);
        // Only token 0 is rejected; then q is (0, 1/2, 1/2) and p is (0, 0, 1).
        assert_eq!(all_rejected(&p, &q, 2), 0.125);
        // The third draft is what is wanted.
        assert_eq!(all_rejected(&p, &q, 3), 0.0);
        // Nothing is wanted any more: nothing is rejected.
        assert_eq!(all_rejected(&[0.0; 3], &q, 2), 0.0);
        // q up to a factor, and next to nothing of it left after the first draw.
        let tiny = [1.0, 3e-320, 1e-320];
        let rejected = all_rejected(&[0.0, 0.5, 0.5], &tiny, 2);
        assert!((rejected - 0.25).abs() < 1e-3, "{rejected}");
        assert_eq!(all_rejected(&[0.0, 0.5, 0.5], &[1.0, 0.0, 0.0], 2), 1.0);
    }
}
