//! What a root's children are worth, and what each rule makes of that.

use super::data::{SlotRule, SlotValues};
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::VerifierName;
use specgap_statistics::{Clustered, Estimate};

/// An upper bound of the sum of v_k P(output through slot k), from alpha* of j = 1..n drafts.
///
/// # Formula
/// With v' the least falling sequence above v and v'_(n+1) = 0, it is the sum over j of
/// (v'_j - v'_(j+1)) alpha*_j: that much of the value is what the first j slots accept, and
/// these are j drafts.
pub(super) fn most_value(values: &[f64], optima: &[f64]) -> f64 {
    let mut above = values.to_vec();
    for slot in (1..above.len()).rev() {
        above[slot - 1] = above[slot - 1].max(above[slot]);
    }
    let next = above.iter().skip(1).copied().chain([0.0]);
    let layers = above.iter().zip(next).zip(optima);
    layers
        .map(|((here, next), optimum)| (here - next) * optimum)
        .sum()
}

/// A verifier, and of every position the prompt and the shares of all children of a root.
pub(super) type RootShares<'a> = (VerifierName, Vec<(usize, &'a [f64])>);

/// Returns what the rules of one law make of a root whose slots have these values.
pub(super) fn slot_values(
    tree: &str,
    scheme: SchemeName,
    (values, values_by): (Vec<f64>, String),
    rules: &[RootShares<'_>],
    optima: &[(usize, &[f64])],
    clusters: usize,
) -> SlotValues {
    let children = values.len();
    let rules = rules.iter().map(|(verifier, rows)| {
        let mean = |of: &dyn Fn(&[f64]) -> f64| mean(rows, clusters, of);
        SlotRule {
            verifier: verifier.to_string(),
            accepted: mean(&|shares| shares.iter().take(children).sum()),
            value: mean(&|shares| shares.iter().zip(&values).map(|(a, v)| a * v).sum()),
        }
    });
    let bounded = optima.first().is_some_and(|(_, all)| all.len() >= children);
    let bound = |of: &dyn Fn(&[f64]) -> f64| bounded.then(|| mean(optima, clusters, of));
    SlotValues {
        tree: tree.to_owned(),
        scheme: scheme.to_string(),
        rules: rules.collect(),
        most_accepted: bound(&|all| all.get(children - 1).copied().unwrap_or(1.0)),
        most_value: bound(&|all| most_value(&values, all)),
        values,
        values_by,
    }
}

/// A mean over positions, clustered by prompt.
fn mean(rows: &[(usize, &[f64])], clusters: usize, of: &dyn Fn(&[f64]) -> f64) -> Estimate {
    let mut sums = vec![(0.0, 0.0); clusters];
    for (cluster, row) in rows {
        sums[*cluster].0 += of(row);
        sums[*cluster].1 += 1.0;
    }
    Clustered::new(sums.into_iter()).estimate()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_bound_the_value() {
        // v = (3, 1), p = (.5, .3, .2), q = (.2, .3, .5): alpha* of one and two drafts is .7
        // and .86, and the most value 2.2.
        let bound = most_value(&[3.0, 1.0], &[0.7, 0.86]);
        assert!((bound - (2.0 * 0.7 + 0.86)).abs() < 1e-15 && bound > 2.2);
        // All slots alike: acceptance.
        assert_eq!(most_value(&[1.0, 1.0], &[0.7, 0.86]), 0.86);
        // A later slot that is worth more: as if all before it were.
        assert_eq!(most_value(&[1.0, 3.0], &[0.7, 0.86]), 3.0 * 0.86);
    }
}
