//! What a plan emits, against the law that it claims.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Target};
use specgap::plan::LevelPlan;

/// The sampler against the law: 8 bins of tokens, Pearson's statistic below the 1 - 1e-6
/// quantile of chi-squared with 7 degrees of freedom (41.3), and the acceptance within 5
/// standard deviations. `tuple` makes the drafts of one run from single draws of q. Fixed
/// seed.
pub fn follows_the_law(
    plan: &LevelPlan,
    p: &Target,
    q: &Draft,
    runs: u32,
    tuple: impl Fn(&mut dyn FnMut() -> u32) -> Vec<u32>,
) {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut sums = Vec::new();
    let mut total = 0.0;
    for mass in q.probabilities() {
        total += mass;
        sums.push(total);
    }
    let bin = |token: usize| (token as f64).ln_1p().floor().clamp(0.0, 7.0) as usize;
    let mut expected = [0.0; 8];
    for (token, mass) in p.probabilities().iter().enumerate() {
        expected[bin(token)] += mass;
    }
    let (mut counts, mut accepted) = ([0.0; 8], 0.0);
    for _ in 0..runs {
        let tuple = tuple(&mut || {
            let point = rng.random::<f64>() * total;
            sums.partition_point(|&sum| sum <= point) as u32
        });
        let emission = plan.emit(&tuple, &mut rng);
        counts[bin(emission.token as usize)] += 1.0;
        if let Some(slot) = emission.accepted {
            assert_eq!(tuple[slot], emission.token);
            accepted += 1.0;
        }
    }
    let runs = f64::from(runs);
    let statistic: f64 = counts
        .iter()
        .zip(&expected)
        .map(|(count, share)| (count - runs * share).powi(2) / (runs * share))
        .sum();
    assert!(statistic < 41.3, "{statistic}: {counts:?} {expected:?}");
    let rate = plan.acceptance_rate().value();
    let deviation = (rate * (1.0 - rate) / runs).sqrt();
    assert!((accepted / runs - rate).abs() < 5.0 * deviation);
}
