//! The plan at full vocabulary, measured.
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::plan::{SlotWeightPlan, SlotWeightSettings};
use std::time::Instant;

fn rows(vocab: usize, temperature: f64, seed: u64) -> (Target, Draft) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let (mut target, mut draft) = (Vec::new(), Vec::new());
    for rank in 1..=vocab {
        let shared = -1.1 * (rank as f64).ln() + noise();
        target.push((shared + 0.5 * noise()) / temperature);
        draft.push((shared + 0.7 * noise()) / temperature);
    }
    let rule = Softmax::default();
    (
        Target::from_logits(&target, &rule).unwrap(),
        Draft::from_logits(&draft, &rule).unwrap(),
    )
}

fn main() {
    for vocab in [2000, 49_152] {
        for temperature in [0.1, 0.3, 0.6, 1.0, 1.5] {
            let (p, q) = rows(vocab, temperature, 1);
            for drafts in [2, 3, 4, 8] {
                let started = Instant::now();
                let plan =
                    SlotWeightPlan::solve(&p, &q, drafts, &SlotWeightSettings::default()).unwrap();
                let seconds = started.elapsed().as_secs_f64();
                let law = plan.law(&p, &q);
                println!(
                    "V {vocab} T {temperature} n {drafts} alpha* {:.12} short {:.1e} law-acc diff {:.1e} L1 {:.1e} it {} groups {} levels {} {} {:.1} ms",
                    plan.optimal_acceptance_rate().value,
                    plan.optimal_acceptance_rate().value - plan.acceptance_rate().value,
                    law.acceptance_rate - plan.acceptance_rate().value,
                    law.l1_error,
                    plan.iterations(),
                    plan.groups(),
                    plan.levels(),
                    plan.status().as_str(),
                    1e3 * seconds
                );
            }
        }
    }
}
