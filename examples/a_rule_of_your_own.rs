//! A verification rule of your own: is it lossless, and what does it leave on the table?
//!
//!     cargo run --example a_rule_of_your_own
//!
//! The rule is a law: the probability of each output, given the drafts. All pairs of drafts are
//! listed, so nothing here is simulated.

use specgap::distribution::{Draft, Target};
use specgap::evaluate::{Limits, solve};
use specgap::problem::Problem;
use specgap::scheme::WithReplacement;

const P: [f64; 3] = [0.6, 0.3, 0.1];
const Q: [f64; 3] = [0.2, 0.3, 0.5];

/// Looks at the first draft alone: accepted with min(1, p/q), else a token of the residual.
fn output(drafts: [usize; 2]) -> [f64; 3] {
    let accepted = (P[drafts[0]] / Q[drafts[0]]).min(1.0);
    let left: f64 = P.iter().zip(Q).map(|(p, q)| (p - q).max(0.0)).sum();
    let mut law = [0, 1, 2].map(|token| (1.0 - accepted) * (P[token] - Q[token]).max(0.0) / left);
    law[drafts[0]] += accepted;
    law
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut law, mut among) = ([0.0; 3], 0.0);
    for (first, second) in (0..3).flat_map(|first| (0..3).map(move |second| (first, second))) {
        let given = output([first, second]);
        for token in 0..3 {
            let mass = Q[first] * Q[second] * given[token];
            law[token] += mass;
            among += if token == first || token == second {
                mass
            } else {
                0.0
            };
        }
    }
    println!("it puts out {law:.6?}, the target is {P:?}");
    let drafts = WithReplacement::new(Draft::new(&Q)?, 2);
    let problem = Problem::new("mine", Target::new(&P)?, drafts)?;
    let best = solve(&problem, &Limits::default())
        .optimal_acceptance_rate
        .value();
    println!("its output is a draft in {among:.6} of all rounds; {best:.6} is possible");
    Ok(())
}
