//! The picture of the README: how the optimum grows with the number of drafts,
//! under four draft laws, on one pair of distributions.
//!
//!     cargo run --release --example acceptance_by_drafts -- reports/acceptance-by-drafts.svg
//!
//! The pair is a member of the toy family of SpecHub's appendix D: standard
//! normal logits u, v over 50 tokens, p = softmax(u/T) and
//! q = softmax((s u + (1-s) v)/T) with T = 0.5 and s = 0.5. Every point is a
//! maximum flow, enclosed to better than 1e-12.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::certify;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::optimum::flow;
use specgap::problem::Problem;
use specgap::report::plot::{LinePlot, Series};
use specgap::scheme::{DistinctConditioned, Greedy, WithReplacement, WithoutReplacement};

const VOCAB: usize = 50;
const TEMPERATURE: f64 = 0.5;
const SIMILARITY: f64 = 0.5;
const DRAFTS: std::ops::RangeInclusive<usize> = 1..=4;

fn normals(random: &mut ChaCha8Rng) -> Vec<f64> {
    (0..VOCAB)
        .map(|_| {
            let radius = (-2.0 * random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
            radius * (std::f64::consts::TAU * random.random_range(0.0..1.0)).cos()
        })
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: acceptance_by_drafts OUT.svg")?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (u, v) = (normals(&mut random), normals(&mut random));
    let mixed: Vec<f64> = u
        .iter()
        .zip(&v)
        .map(|(u, v)| SIMILARITY * u + (1.0 - SIMILARITY) * v)
        .collect();
    let rule = Softmax {
        temperature: TEMPERATURE,
        ..Softmax::default()
    };
    let p = Target::from_logits(&u, &rule)?;
    let q = Draft::from_logits(&mixed, &rule)?;

    let build = |scheme: &str, n: usize| match scheme {
        "with replacement" => Problem::new(scheme, p.clone(), WithReplacement::new(q.clone(), n)),
        "without replacement" => {
            Problem::new(scheme, p.clone(), WithoutReplacement::new(q.clone(), n))
        }
        "distinct, conditioned" => {
            Problem::new(scheme, p.clone(), DistinctConditioned::new(q.clone(), n))
        }
        _ => Problem::new(scheme, p.clone(), Greedy::new(q.clone(), n)),
    };
    let mut series = Vec::new();
    for scheme in [
        "greedy",
        "distinct, conditioned",
        "without replacement",
        "with replacement",
    ] {
        let mut points = Vec::new();
        for n in DRAFTS {
            let problem = build(scheme, n)?;
            let solved = flow::solve(&problem);
            let subset = solved.optimum().subset.unwrap_or_default();
            let proved = certify::optimum(&problem, &solved.into_plan(), &subset)?;
            println!(
                "{scheme:22} n = {n}: {:.12} (width {:.0e})",
                proved.get().value,
                proved.get().width()
            );
            points.push((n as f64, proved.get().value));
        }
        let dashed = scheme.starts_with("distinct");
        series.push(Series {
            label: scheme.to_owned(),
            points,
            dashed,
        });
    }
    let plot = LinePlot {
        title: "Optimal acceptance rate by draft law".into(),
        x_label: "drafts n".into(),
        y_label: "alpha*".into(),
        series,
    };
    std::fs::write(&path, plot.svg(760, 420)?)?;
    println!("{path}");
    Ok(())
}
