//! Subsets of a given size, in colexicographic order, and their ranks.

/// Visits all k-subsets of `0..count`, each ascending, in colexicographic order:
/// the order of [`Ranking::rank`].
pub(crate) fn for_each_combination(count: usize, size: usize, mut visit: impl FnMut(&[usize])) {
    if size > count {
        return;
    }
    let mut chosen: Vec<usize> = (0..size).collect();
    loop {
        visit(&chosen);
        // The lowest element that can move up; everything below it restarts.
        let Some(moving) =
            (0..size).find(|&i| chosen[i] + 1 < chosen.get(i + 1).copied().unwrap_or(count))
        else {
            return;
        };
        chosen[moving] += 1;
        for (index, element) in chosen[..moving].iter_mut().enumerate() {
            *element = index;
        }
    }
}

/// Binomial coefficients up to a size, for ranking subsets.
pub(crate) struct Ranking {
    table: Vec<Vec<usize>>,
}

impl Ranking {
    /// For subsets of at most `size` elements of `0..count`.
    pub(crate) fn new(count: usize, size: usize) -> Self {
        let mut table = vec![vec![0usize; count + 1]; size + 1];
        table[0].fill(1);
        for k in 1..=size {
            for n in 1..=count {
                table[k][n] = table[k][n - 1].saturating_add(table[k - 1][n - 1]);
            }
        }
        Self { table }
    }

    /// C(count, size).
    pub fn choose(&self, count: usize, size: usize) -> usize {
        self.table[size][count]
    }

    /// Position of an ascending subset among those of its size.
    pub(crate) fn rank(&self, subset: impl Iterator<Item = usize>) -> usize {
        subset
            .enumerate()
            .map(|(index, element)| self.table[index + 1][element])
            .sum()
    }
}

/// C(count, size) as an `f64`, for deciding what can be enumerated.
pub fn choose(count: usize, size: usize) -> f64 {
    if size > count {
        return 0.0;
    }
    (0..size).fold(1.0, |value, i| value * (count - i) as f64 / (i + 1) as f64)
}

/// Sum over the sizes 1..=largest of C(count, size) times a cost.
pub(crate) fn over_subsets(count: usize, largest: usize, cost: impl Fn(usize) -> f64) -> f64 {
    (1..=largest.min(count))
        .map(|size| choose(count, size) * cost(size))
        .sum()
}

/// Steps that counting the surjections of n draws onto a set takes.
pub(crate) fn surjection_cost(size: usize, drafts: usize) -> f64 {
    2f64.powi(size as i32) * (size * drafts) as f64
}

/// count (count-1) ... (count-size+1) as an `f64`.
pub(crate) fn falling_factorial(count: usize, size: usize) -> f64 {
    (0..size).map(|i| count.saturating_sub(i) as f64).product()
}
