//! What a way to alpha* may cost.

/// Returns whether each cost is within its limit. What is no number is not.
pub(super) fn are_within<const N: usize>(costs: [f64; N], limits: [f64; N]) -> bool {
    costs.iter().zip(limits).all(|(&cost, limit)| cost <= limit)
}

#[cfg(test)]
mod tests {
    use super::are_within;

    #[test]
    fn every_cost_is_within_its_own_limit() {
        let limits = [2.0, 8.0];
        assert!(are_within([2.0, 8.0], limits));
        assert!(are_within([0.0, 1.0], limits));
        assert!(!are_within([2.5, 8.0], limits));
        assert!(!are_within([2.0, 8.5], limits));
        assert!(!are_within([8.0, 2.0], limits));
        assert!(!are_within([f64::NAN, 2.0], limits));
        assert!(!are_within([1.0, f64::INFINITY], limits));
    }
}
