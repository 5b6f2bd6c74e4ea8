use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::optimum::flow;
use specgap::plan::*;
use specgap::problem::Problem;
use specgap::scheme::WithoutReplacement;
use std::time::Instant;

fn generated(vocab: usize, seed: u64, t: f64) -> (Target, Draft) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let (a, b): (Vec<f64>, Vec<f64>) = (1..=vocab)
        .map(|rank| {
            let shared = -1.6 * (rank as f64).ln() + noise();
            (shared + 0.4 * noise(), shared + 0.6 * noise())
        })
        .unzip();
    let rule = Softmax { temperature: t, ..Softmax::default() };
    (Target::from_logits(&a, &rule).unwrap(), Draft::from_logits(&b, &rule).unwrap())
}

fn enumerate(plan: &SequentialPlan, problem: &Problem, p: &[f64]) -> (f64, f64) {
    let law = problem.scheme().set_law();
    let mut out = vec![0.0; p.len()];
    let mut rej = 0.0;
    for (set, &mass) in law.sets.iter().zip(&law.probabilities) {
        let a = plan.accepted(set);
        let mut total = 0.0;
        for (x, a) in set.iter().zip(&a) {
            out[*x as usize] += mass * a;
            total += a;
        }
        rej += mass * (1.0 - total);
    }
    let acc: f64 = out.iter().sum();
    for (o, r) in out.iter_mut().zip(plan.residual().iter()) { *o += rej * r; }
    (acc, out.iter().zip(p).map(|(a, b)| (a - b).abs()).sum())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mode = args.first().map(String::as_str).unwrap_or("small");
    let num = |k: usize, d: f64| args.get(k).map_or(d, |x| x.parse().unwrap());
    if mode == "small" {
        for vocab in [4usize, 6, 10, 30] {
            for n in 2..=4 {
                if vocab <= n { continue; }
                for seed in 0..3 {
                    let (p, q) = generated(vocab, seed, 1.0);
                    let t = Instant::now();
                    let plan = SequentialPlan::solve(&p, &q, n, &SequentialSettings::default()).unwrap();
                    let ms = t.elapsed().as_secs_f64() * 1e3;
                    let problem = Problem::new("x", p.clone(), WithoutReplacement::new(q.clone(), n)).unwrap();
                    let best = flow::solve(&problem).optimum().rate.value;
                    let (acc, l1) = enumerate(&plan, &problem, p.probabilities());
                    let law = plan.law(&p, &q);
                    println!("V={vocab} n={n} flow {best:.12} plan-flow {:+.1e} enum acc-flow {:+.1e} l1 {:.1e} law l1 {:.1e} acc {:+.1e} its {} short {:.1e} upper {:+.1e} {} {ms:.1}ms",
                        plan.acceptance_rate().value - best, acc - best, l1, law.l1_error, law.acceptance_rate - best, plan.iterations(), plan.shortfall(), plan.optimal_acceptance_rate().value - best, plan.status().as_str());
                }
            }
        }
    } else {
        let v = num(1, 49152.0) as usize;
        let n = num(2, 2.0) as usize;
        let temp = num(3, 1.0);
        let seed = num(4, 1.0) as u64;
        let (p, q) = generated(v, seed, temp);
        let t = Instant::now();
        let plan = SequentialPlan::solve(&p, &q, n, &SequentialSettings::default()).unwrap();
        let ms = t.elapsed().as_secs_f64() * 1e3;
        println!("V={v} n={n} T={temp} acc {:.12} short {:.1e} its {} groups {} {} {ms:.1} ms", plan.acceptance_rate().value, plan.shortfall(), plan.iterations(), plan.groups(), plan.status().as_str());
        let t = Instant::now();
        let law = plan.law(&p, &q);
        println!("  law l1 {:.1e} acc diff {:+.1e}  {:.1} ms", law.l1_error, law.acceptance_rate - plan.acceptance_rate().value, t.elapsed().as_secs_f64() * 1e3);
    }
}
