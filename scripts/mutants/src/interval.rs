//! The exact (Clopper-Pearson) interval of a share.

/// The 95% interval of a share of which `hits` of `trials` were seen.
pub fn binomial(hits: usize, trials: usize) -> [f64; 2] {
    if trials == 0 {
        return [0.0, 1.0];
    }
    let bisect = |too_low: &dyn Fn(f64) -> bool| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if too_low(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    };
    let low = match hits {
        0 => 0.0,
        // The share at which as many hits or more have a chance of 2.5%.
        _ => bisect(&|share| 1.0 - at_most(hits - 1, trials, share) < 0.025),
    };
    let high = if hits == trials {
        1.0
    } else {
        bisect(&|share| at_most(hits, trials, share) > 0.025)
    };
    [low, high]
}

/// The chance of at most so many hits.
fn at_most(hits: usize, trials: usize, share: f64) -> f64 {
    let mut log = trials as f64 * (1.0 - share).ln();
    let mut sum = log.exp();
    for k in 1..=hits {
        log += ((trials - k + 1) as f64 / k as f64).ln() + (share / (1.0 - share)).ln();
        sum += log.exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn textbook_intervals() {
        // 0 of n: 1 - 0.025^(1/n). 8 of 10: 0.4439 to 0.9748.
        let [low, high] = super::binomial(0, 20);
        assert_eq!(low, 0.0);
        assert!((high - (1.0 - 0.025f64.powf(0.05))).abs() < 1e-12);
        let [low, high] = super::binomial(8, 10);
        assert!((low - 0.4439).abs() < 1e-4 && (high - 0.9748).abs() < 1e-4);
    }
}
