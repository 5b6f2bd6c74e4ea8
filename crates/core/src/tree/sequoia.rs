//! The best topology for a budget, by dynamic programming.

use super::topology::{AcceptanceRates, DraftTree, MAX_NODES, TopologyError};

/// Largest budget * budget * depth * branch of [`best_topology`].
pub const MAX_WORK: f64 = 4e9;

/// Limits of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyLimits {
    /// Most draft tokens; the root is not counted (Sequoia counts it).
    pub budget: usize,
    /// Longest path; the root is not counted (Sequoia counts it).
    pub depth: usize,
    /// Most children of a node.
    pub branch: usize,
}

/// Why there is no best topology.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SequoiaError {
    /// Too much work.
    #[error(
        "budget {budget}, depth {depth} and branch {branch} take {work:.1e} steps; at most \
         {MAX_WORK:.0e} are taken"
    )]
    TooLarge {
        /// Budget.
        budget: usize,
        /// Depth.
        depth: usize,
        /// Branch.
        branch: usize,
        /// budget^2 * depth * branch.
        work: f64,
    },
    /// The topology is refused; a budget above [`MAX_NODES`].
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// The topology with the largest expected number of accepted tokens, and that
/// number (bonus excluded).
///
/// # Formula
/// With a_d(j) the rate of rank j below depth d, G_d(m) the best value below an
/// accepted node of depth d with at most m tokens, and H_d(j, m) the same with
/// ranks j and up only:
///
/// ```text
/// H_d(j, m) = max(0, max over 1 <= s <= m of a_d(j) (1 + G_{d+1}(s - 1)) + H_d(j + 1, m - s))
/// G_d(m) = H_d(0, m),   G_depth(m) = 0
/// ```
///
/// This is Sequoia's T(m, l, b) without the root, with rates that may depend on
/// the depth. Nodes that add nothing are not drafted.
///
/// # Complexity
/// O(budget^2 * depth * branch) time, O(budget * depth * branch) memory.
///
/// # Errors
/// A budget above [`MAX_NODES`], or more than [`MAX_WORK`] steps.
///
/// # Source
/// Chen et al., "Sequoia" (arXiv 2402.12374), section 3.1.
///
/// # Example
/// ```
/// use specgap_core::tree::{AcceptanceRates, TopologyLimits, best_topology};
/// let rates = AcceptanceRates::new(vec![vec![0.6, 0.3]])?;
/// let limits = TopologyLimits { budget: 3, depth: 4, branch: 2 };
/// let (tree, value) = best_topology(&rates, limits)?;
/// // 0.6 + 0.36 + 0.3; a third token on the chain would add 0.216 only.
/// assert_eq!(tree.paths(), [vec![0], vec![1], vec![0, 0]]);
/// assert!((value - 1.26).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn best_topology(
    rates: &AcceptanceRates,
    limits: TopologyLimits,
) -> Result<(DraftTree, f64), SequoiaError> {
    let budget = limits.budget;
    // A path or a family of more nodes than the budget cannot be filled.
    let depth = limits.depth.min(budget);
    let branch = limits.branch.min(budget).min(rates.ranks());
    if budget > MAX_NODES {
        return Err(TopologyError::TooLarge(budget).into());
    }
    let work = (budget as f64).powi(2) * depth as f64 * branch as f64;
    if work > MAX_WORK {
        return Err(SequoiaError::TooLarge {
            budget,
            depth,
            branch,
            work,
        });
    }
    let mut below = vec![0.0; budget + 1];
    // Tokens given to the child of a rank, by depth from the deepest, rank, m.
    let mut shares: Vec<Vec<Vec<usize>>> = Vec::with_capacity(depth);
    for parent in (0..depth).rev() {
        let mut rest = vec![0.0; budget + 1];
        let mut given = vec![vec![0; budget + 1]; branch];
        for rank in (0..branch).rev() {
            let rate = rates.rate(parent, rank);
            let mut best = vec![0.0f64; budget + 1];
            for tokens in 1..=budget {
                for share in 1..=tokens {
                    let value = rate * (1.0 + below[share - 1]) + rest[tokens - share];
                    if value > best[tokens] {
                        best[tokens] = value;
                        given[rank][tokens] = share;
                    }
                }
            }
            rest = best;
        }
        below = rest;
        shares.push(given);
    }
    shares.reverse();

    let mut paths = Vec::new();
    let mut open = vec![(Vec::new(), budget)];
    while let Some((path, tokens)) = open.pop() {
        let Some(given) = shares.get(path.len()) else {
            continue;
        };
        let mut left = tokens;
        for (rank, given) in given.iter().enumerate() {
            let share = given[left];
            if share == 0 {
                break;
            }
            let mut child: Vec<usize> = path.clone();
            child.push(rank);
            paths.push(child.clone());
            open.push((child, share - 1));
            left -= share;
        }
    }
    Ok((DraftTree::new(paths)?, below[budget]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The best value of any topology within the limits, by trying all.
    fn exhaustive(rates: &AcceptanceRates, limits: TopologyLimits) -> f64 {
        fn trees(depth: usize, branch: usize, budget: usize) -> Vec<Vec<Vec<usize>>> {
            // Every prefix-closed set of paths, grown one path at a time.
            let mut all: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
            let mut layer = all.clone();
            for _ in 0..budget {
                let mut next: Vec<Vec<Vec<usize>>> = Vec::new();
                for tree in &layer {
                    let parents = std::iter::once(Vec::new()).chain(tree.iter().cloned());
                    for parent in parents.filter(|parent| parent.len() < depth) {
                        let children = tree
                            .iter()
                            .filter(|path| {
                                path.len() == parent.len() + 1 && path.starts_with(&parent)
                            })
                            .count();
                        if children < branch {
                            let mut grown = tree.clone();
                            grown.push([parent.as_slice(), &[children]].concat());
                            grown.sort();
                            if !next.contains(&grown) {
                                next.push(grown);
                            }
                        }
                    }
                }
                all.extend(next.iter().cloned());
                layer = next;
            }
            all
        }
        trees(limits.depth, limits.branch, limits.budget)
            .into_iter()
            .map(|paths| {
                DraftTree::new(paths)
                    .unwrap()
                    .expected_accepted_length(rates)
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn nothing_beats_the_dynamic_program() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for case in 0..40 {
            let by_depth = (0..1 + case % 3)
                .map(|_| {
                    let mut rates: Vec<f64> = (0..3).map(|_| rng.random_range(0.0..1.0)).collect();
                    // Not always falling: a worse rank may be worth more.
                    let total: f64 = rates.iter().sum::<f64>() + rng.random_range(0.0..1.0);
                    rates.iter_mut().for_each(|rate| *rate /= total);
                    rates
                })
                .collect();
            let rates = AcceptanceRates::new(by_depth).unwrap();
            let limits = TopologyLimits {
                budget: 1 + case % 5,
                depth: 1 + case % 3,
                branch: 1 + case % 4,
            };
            let (tree, value) = best_topology(&rates, limits).unwrap();
            assert!(tree.len() <= limits.budget && tree.depth() <= limits.depth);
            assert!((tree.expected_accepted_length(&rates) - value).abs() <= 1e-14);
            assert!(
                (exhaustive(&rates, limits) - value).abs() <= 1e-14,
                "case {case}"
            );
        }
    }

    #[test]
    fn limits_are_kept_and_named() {
        let rates = AcceptanceRates::new(vec![vec![0.5, 0.0, 0.5]]).unwrap();
        let limits = |budget, depth, branch| TopologyLimits {
            budget,
            depth,
            branch,
        };
        assert!(best_topology(&rates, limits(0, 5, 5)).unwrap().0.is_empty());
        assert!(best_topology(&rates, limits(5, 0, 5)).unwrap().0.is_empty());
        let (chain, value) = best_topology(&rates, limits(3, 9, 1)).unwrap();
        assert_eq!(chain.paths(), [vec![0], vec![0, 0], vec![0, 0, 0]]);
        assert_eq!(value, 0.875);
        let (full, value) = best_topology(&rates, limits(64, 1, 3)).unwrap();
        assert_eq!((full.len(), value), (3, 1.0));
        assert!(matches!(
            best_topology(&rates, limits(4000, 4000, 100)),
            Err(SequoiaError::TooLarge { .. })
        ));
        assert!(matches!(
            best_topology(&rates, limits(usize::MAX, 1, 1)),
            Err(SequoiaError::Topology(_))
        ));
    }
}
