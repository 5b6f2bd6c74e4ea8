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

fn report(what: &str, p: &Target, q: &Draft, n: usize) {
    let t = Instant::now();
    let plan = SequentialPlan::solve(p, q, n, &SequentialSettings::default()).unwrap();
    let ms = t.elapsed().as_secs_f64() * 1e3;
    let problem = match Problem::new("x", p.clone(), WithoutReplacement::new(q.clone(), n)) { Ok(x) => x, Err(e) => { println!("{what}: {e}"); return; } };
    let best = flow::solve(&problem).optimum().rate.value;
    let (acc, l1) = enumerate(&plan, &problem, p.probabilities());
    let law = plan.law(p, q);
    let up = plan.optimal_acceptance_rate().upper;
    let bad = l1 > 1e-10 || law.l1_error > 1e-10 || (acc - best).abs() > 1e-10 || up < best || plan.status().as_str() != "optimal" || ms > 500.0;
    println!("{}V={} n={n} flow {best:.9} enum acc-flow {:+.1e} l1 {:.1e} law l1 {:.1e} acc {:+.1e} its {} short {:.1e} upper {:+.1e} {} {ms:.1}ms {}",
        if bad { "BAD " } else { "" }, p.vocab(), acc - best, l1, law.l1_error, law.acceptance_rate - best, plan.iterations(), plan.shortfall(), plan.optimal_acceptance_rate().value - best, plan.status().as_str(), &what[..what.len().min(if bad {300} else {20})]);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mode = args.first().map(String::as_str).unwrap_or("small");
    let num = |k: usize, d: f64| args.get(k).map_or(d, |x| x.parse().unwrap());
    if mode == "adv" {
        let tiny = 1e-15;
        let cases: Vec<(&str, Vec<f64>, Vec<f64>)> = vec![
        ("equal", vec![0.5, 0.3, 0.2], vec![0.5, 0.3, 0.2]),
        ("uniform", vec![1.0; 6], vec![1.0; 6]),
        ("disjoint", vec![1.0, 1.0, 0.0, 0.0], vec![0.0, 0.0, 1.0, 1.0]),
        ("disjoint3", vec![1.0, 1.0, 0.0, 0.0,0.0], vec![0.0, 0.0, 1.0, 1.0,0.5]),
        ("one-hot target", vec![0.0, 1.0, 0.0,0.0], vec![0.5, 0.25, 0.25,0.1]),
        ("one-hot draft", vec![0.5, 0.25, 0.25], vec![0.0, 1.0, 0.0]),
        ("both one-hot, same", vec![0.0, 1.0], vec![0.0, 1.0]),
        ("both one-hot, different", vec![0.0, 1.0], vec![1.0, 0.0]),
        ("ladder", vec![1.0, 3.0, 5.0, 7.0], vec![1.0; 4]),
        ("ladder wo n=2", vec![0.0, 1.0, 2.0, 3.0], vec![1.0; 4]),
        ("near ladder wo n=2", vec![0.0, 1.0+1e-9, 2.0-2e-9, 3.0], vec![1.0; 4]),
        ("near ladder6 wo n=2", vec![0.0, 1.0+1e-6, 2.0-2e-6, 3.0], vec![1.0; 4]),
        ("ladder wo n=2, 6", vec![0.0, 1.0, 2.0, 3.0,4.0,5.0], vec![1.0; 6]),
        ("ladder wo n=3", vec![0.0, 0.0, 1.0, 3.0, 6.0,10.0], vec![1.0; 6]),
        ("tiny masses", vec![1.0, tiny, tiny, 0.5], vec![tiny, 1.0, tiny, 0.5]),
        ("equal but tiny", vec![1.0, tiny,tiny], vec![1.0, tiny,tiny]),
        ("tiny against zero", vec![1.0, tiny, 0.0], vec![1.0, 0.0, tiny]),
        ("300 decades", vec![1.0, 1e-100, 1e-200, 1e-300], vec![1e-300, 1e-200, 1e-100, 1.0]),
        ("subnormal", vec![1.0, 5e-324, 0.5], vec![5e-324, 0.5, 1.0]),
        ("subnormal4", vec![1.0, 5e-324, 0.5,0.1], vec![5e-324, 1e-320, 1.0,1e-310]),
        ("dust", vec![1.0, tiny, tiny], vec![1.0, 2.0 * tiny, tiny]),
        ("no overlap but dust", vec![1.0, tiny, 0.0,0.0], vec![0.0, tiny, 1.0,0.3]),
        ("peaked", vec![0.3, 0.3, 0.2,0.2,1e-4], vec![0.999, 1e-3, 1e-6,1e-9,1e-8]),
        ("peaked eq", vec![0.999, 1e-3, 1e-6,1e-9,1e-8], vec![0.999, 1e-3, 1e-6,1e-9,1e-8]),
        ];
        for (what, p, q) in cases {
            let sc = |r: &[f64]| { let t: f64 = r.iter().sum(); r.iter().map(|x| x / t).collect::<Vec<_>>() };
            let (p, q) = (Target::new(&sc(&p)).unwrap(), Draft::new(&sc(&q)).unwrap());
            for n in [1, 2, 3, 4, 8] { report(what, &p, &q, n); }
        }
        return;
    }
    if mode == "rand" {
        let mut rng = ChaCha8Rng::seed_from_u64(num(1, 1.0) as u64);
        let count = num(2, 300.0) as usize;
        for k in 0..count {
            let v = rng.random_range(1..9usize);
            let n = rng.random_range(1..6usize);
            let mut row = || loop {
                let r: Vec<f64> = (0..v).map(|_| match rng.random_range(0..6) { 0..3 => rng.random_range(0..5) as f64, 3..5 => rng.random::<f64>(), _ => 10f64.powi(rng.random_range(-16..1)) }).collect();
                let t: f64 = r.iter().sum();
                if t > 1e-3 { return r.iter().map(|x| x / t).collect::<Vec<_>>(); }
            };
            let (p, q) = (row(), row());
            report(&format!("rand {k} {p:?} {q:?}"), &Target::new(&p).unwrap(), &Draft::new(&q).unwrap(), n);
        }
        return;
    }
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
