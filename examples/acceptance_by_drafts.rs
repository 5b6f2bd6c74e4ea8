//! The picture of the README: how far known verifiers are from the optimum as
//! drafts are added, on one pair of distributions.
//!
//!     cargo run --release --example acceptance_by_drafts -- reports/acceptance-by-drafts.svg
//!
//! The pair is a member of the toy family of SpecHub's appendix D: standard
//! normal logits u, v over 50 tokens, p = softmax(u/T) and
//! q = softmax((s u + (1-s) v)/T) with T = 0.5 and s = 0.5. Every optimum is a
//! certified maximum flow, enclosed to better than 1e-12; every verifier's rate is
//! exact or enclosed, none is simulated.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::certify;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::optimum::flow;
use specgap::page::plot::{Axis, Line, LinePlot, Point, Stroke};
use specgap::problem::Problem;
use specgap::scheme::{WithReplacement, WithoutReplacement};
use specgap::verifier::{VerifierName, verifier};

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

fn optimum(problem: &Problem) -> Result<f64, Box<dyn std::error::Error>> {
    let solved = flow::solve(problem);
    let subset = solved.optimum().subset.unwrap_or_default();
    let proved = certify::optimum(problem, &solved.into_plan(), &subset)?;
    assert!(proved.get().width() < 1e-12);
    Ok(proved.get().value())
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

    // Colours are those of the draft laws in the reports of logs.
    let mut lines = [
        ("optimum, without replacement", 1, Stroke::Solid),
        ("rrs-wo", 1, Stroke::Dashed(0)),
        ("optimum, with replacement", 0, Stroke::Solid),
        ("k-seq", 0, Stroke::Dashed(1)),
        ("rrs", 0, Stroke::Dashed(0)),
    ]
    .map(|(label, hue, stroke)| Line {
        label: label.to_owned(),
        hue,
        stroke,
        points: Vec::new(),
    });
    for n in DRAFTS {
        let with = Problem::new("iid", p.clone(), WithReplacement::new(q.clone(), n))?;
        let without = Problem::new(
            "sequential",
            p.clone(),
            WithoutReplacement::new(q.clone(), n),
        )?;
        let rate = |problem: &Problem, name| -> Result<f64, Box<dyn std::error::Error>> {
            Ok(verifier(name, problem)?.acceptance().membership.value())
        };
        let rates = [
            optimum(&without)?,
            rate(&without, VerifierName::RRS_WO)?,
            optimum(&with)?,
            rate(&with, VerifierName::K_SEQ)?,
            rate(&with, VerifierName::RRS)?,
        ];
        for (line, rate) in lines.iter_mut().zip(rates) {
            println!("n = {n}  {:28} {rate:.9}", line.label);
            line.points.push(Point::new(n as f64, rate));
        }
    }
    let title = "Acceptance of known verifiers (dashed) and the optimum";
    let plot = LinePlot {
        title: title.to_owned(),
        x: Axis {
            label: "drafts n".to_owned(),
            stops: DRAFTS.map(|n| (n as f64, n.to_string())).collect(),
            log: false,
        },
        y_label: "acceptance rate".to_owned(),
        lines: lines.into(),
        ..LinePlot::default()
    };
    let alt = "Two optima rise with the number of drafts; the verifiers of each stay below it.";
    std::fs::write(&path, plot.draw().svg(title, alt)?)?;
    println!("{path}");
    Ok(())
}
