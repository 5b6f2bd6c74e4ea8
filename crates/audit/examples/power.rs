//! How often an audit at a level of 1% finds bugs of public issues in logs of a few hundred to a few
//! thousand positions, and how often it accuses honest engines:
//! `cargo run -p specgap-audit --example power -- [LOG|SEED] [RUNS] [POSITIONS,...]`.
//!
//! Engines are simulated on the log's rows, or on rows that are made up from a seed, 3 drafts a round, at
//! the usual tolerance. A bug is played at a share of the steps: all of them, or some, where requests
//! differ or the bug is weaker than the table's.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_audit::audit::{BugName, Outcome, Part, Rule, Settings, Simulator};
use specgap_log::log::{Dtype, HeldTensor, Log, LogError, Metadata};
use std::sync::Arc;

/// Rule, bug, and the share of steps that have it.
const CASES: [(Rule, &str, f64); 13] = [
    // Drafts are argmax where draws are claimed, in a tenth of the requests' steps.
    (Rule::TOKEN, "argmax-drafts", 0.1),
    (Rule::TOKEN, "top-50-drafts", 1.0),
    (Rule::TOKEN, "top-10-drafts", 0.25),
    (Rule::TOKEN, "own-noise-correction", 1.0),
    (Rule::TOKEN, "temperature-ignored", 0.05),
    (Rule::ONE_HOT, "lenient-acceptance", 1.0),
    (Rule::TOKEN, "lenient-acceptance", 1.0),
    (Rule::TOKEN, "correction-from-q", 0.05),
    (Rule::TOKEN, "correction-off-the-draft-only", 0.25),
    // q is not a number at some steps, and the test keeps everything.
    (Rule::TOKEN, "accepts-everything", 0.05),
    (Rule::TOKEN, "ensemble", 0.5),
    (Rule::TOKEN, "target-sharper", 0.25),
    // Of a text alone.
    (Rule::TEXT, "target-flatter", 0.25),
];

fn simulator(rule: Rule, bug: Option<BugName>) -> Simulator {
    let settings = Settings {
        alpha: 0.01,
        ..Settings::new(rule)
    };
    Simulator {
        bug,
        ..Simulator::new(settings)
    }
}

/// Rows of 100 tokens whose mass falls as a power of their rank, .8 to 3, and drafts whose logits are off
/// by noise of .3 to 1.5.
fn made(seed: u64) -> Result<Log, LogError> {
    const ROWS: usize = 150;
    const TOKENS: usize = 100;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut target, mut draft) = (Vec::new(), Vec::new());
    for _ in 0..ROWS {
        let power = 0.8 + 2.2 * random.random::<f64>();
        let off = 0.3 + 1.2 * random.random::<f64>();
        for rank in 1..=TOKENS {
            let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            let logit = 0.5 * normal() - power * (rank as f64).ln();
            target.extend(logit.to_le_bytes());
            draft.extend((logit + off * normal()).to_le_bytes());
        }
    }
    let held = |name: &str, entries: Vec<u8>| HeldTensor {
        name: name.to_owned(),
        dtype: Dtype::F64,
        shape: vec![ROWS, TOKENS],
        entries: Arc::new(entries),
    };
    let tensors = vec![held("target_logits", target), held("draft_logits", draft)];
    Log::held("made".as_ref(), Metadata::default(), tensors, None)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let log = arguments.next().unwrap_or_else(|| "2".to_owned());
    let log = match log.parse() {
        Ok(seed) => made(seed)?,
        Err(_) => Log::open(log.as_ref())?,
    };
    let runs: usize = arguments.next().map_or(Ok(100), |runs| runs.parse())?;
    let sizes = arguments.next().unwrap_or_else(|| "300,1000".to_owned());
    let sizes: Vec<usize> = (sizes.split(',').map(str::parse)).collect::<Result<_, _>>()?;
    println!(
        "of {runs} runs, refuted at 1%, by part {:?}",
        Part::ALL.map(Part::name)
    );
    for (rule, bug, share) in CASES {
        print!("{rule}, {bug}, {:3.0}% of steps:", 100.0 * share);
        for &positions in &sizes {
            let bug = Some(bug.parse()?);
            let all = simulator(rule, bug).runs_at_a_share(&log, runs, positions, share)?;
            let any = all
                .iter()
                .filter(|run| run.verdicts.contains(&Outcome::Refuted))
                .count();
            let parts = Part::ALL.map(|part| {
                let refuted = |run: &&specgap_audit::audit::SimulatedRun| {
                    run.verdicts.get(part as usize) == Some(&Outcome::Refuted)
                };
                all.iter().filter(refuted).count()
            });
            print!("  {positions}: {any} {parts:?}");
        }
        println!();
    }
    // At 5% a part, so at most 20% are promised.
    for rule in [Rule::TOKEN, Rule::ONE_HOT, Rule::EXACT_MATCH, Rule::TEXT] {
        for tolerance in [0.0, Settings::TOLERANCE] {
            let mut simulator = simulator(rule, None);
            (simulator.settings.alpha, simulator.settings.tolerance) = (0.05, tolerance);
            let all = simulator.runs(&log, 10 * runs, 300)?;
            let accused = all
                .iter()
                .filter(|run| run.verdicts.contains(&Outcome::Refuted));
            println!(
                "{rule}, tolerance {tolerance}: {} of {} honest runs of 300 positions accused at 5%",
                accused.count(),
                all.len()
            );
        }
    }
    Ok(())
}
