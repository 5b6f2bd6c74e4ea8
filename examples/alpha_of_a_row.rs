//! How much can be accepted at one position, and what known rules accept of it.
//!
//!     cargo run --example alpha_of_a_row

use specgap::distribution::{Draft, Target};
use specgap::evaluate::{Limits, solve};
use specgap::problem::Problem;
use specgap::scheme::WithReplacement;
use specgap::verifier::{VerifierName, verifier};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The target's next-token probabilities, and the draft model's.
    let p = Target::new(&[0.5, 0.3, 0.15, 0.05])?;
    let q = Draft::new(&[0.2, 0.2, 0.3, 0.3])?;
    for drafts in 1..=3 {
        let law = WithReplacement::new(q.clone(), drafts);
        let problem = Problem::new("a row", p.clone(), law)?;
        let best = solve(&problem, &Limits::default()).optimal_acceptance_rate;
        println!(
            "{drafts} drafts: no rule accepts more than {:.6}",
            best.value()
        );
        for name in [VerifierName::RRS, VerifierName::K_SEQ] {
            let accepts = verifier(name, &problem)?.acceptance().algorithmic;
            let lost = best.value() - accepts.value();
            println!("  {name}: {:.6}, {lost:.6} less", accepts.value());
        }
    }
    Ok(())
}
