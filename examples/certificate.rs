//! A proof of alpha* that anyone can check: it is made, sent as JSON, and checked without a solver.
//!
//!     cargo run --example certificate

use specgap::certify::Certificate;
use specgap::distribution::{Draft, Target};
use specgap::evaluate::{Limits, solve};
use specgap::problem::Problem;
use specgap::scheme::WithReplacement;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let p = Target::new(&[0.5, 0.5])?;
    let q = Draft::new(&[0.75, 0.25])?;
    let problem = Problem::new("two tokens", p, WithReplacement::new(q, 2))?;

    let proof = solve(&problem, &Limits::default()).proof;
    let plan = proof.plan.ok_or("no exact plan")?;
    let certificate = Certificate::new(&problem, &plan, &proof.subset)?;
    let sent = serde_json::to_string_pretty(&certificate)?;
    println!("{sent}");

    let received: Certificate = serde_json::from_str(&sent)?;
    let proved = received.check(&problem)?;
    println!("proved: alpha* = {}", proved.get().value());

    let mut forged = received;
    forged.optimal_acceptance_rate = "1".to_owned();
    if let Err(error) = forged.check(&problem) {
        println!("refused: {error}");
    }
    Ok(())
}
