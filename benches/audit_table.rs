//! How many positions of a log an audit takes to find each bug, and how many honest engines it
//! accuses: `cargo bench --bench audit_table -- [LOG] [RUNS]`.
//!
//! Engines are simulated on the log's rows, 3 drafts a round, at alpha 1e-6, without tolerance
//! and with the usual one. Also: how often honest engines are accused at alpha 0.05, and what a text
//! takes to convict by itself, one of 20 whose e-values are averaged (the mean is at least the
//! largest over 20).

use specgap::audit::{BugName, Outcome, Part, Rule, Settings, Simulator, claimed_of};
use specgap::log::Log;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        // Cargo adds it.
        .filter(|argument| argument != "--bench");
    let log = arguments
        .next()
        .unwrap_or_else(|| "models/logs/smollm2-demo".to_owned());
    let runs: usize = arguments.next().map_or(Ok(1000), |runs| runs.parse())?;
    let log = Log::open(log.as_ref())?;
    let engine = |rule: Rule, bug: Option<BugName>, tolerance: f64| Simulator {
        bug,
        ..Simulator::new(Settings {
            tolerance,
            ..Settings::new(rule)
        })
    };
    println!(
        "claimed: {:?}",
        claimed_of(&log, &Settings::new(Rule::TOKEN))?
    );
    println!(
        "{} positions, {runs} honest runs of as many:",
        log.positions()
    );
    for rule in [Rule::TOKEN, Rule::ONE_HOT, Rule::EXACT_MATCH] {
        let all = engine(rule, None, Settings::TOLERANCE).runs(&log, runs, log.positions())?;
        let alarms = all
            .iter()
            .filter(|run| run.verdicts.contains(&Outcome::Refuted))
            .count();
        println!("  {rule}: {alarms} alarms");
    }
    for tolerance in [0.0, Settings::TOLERANCE] {
        let mut simulator = engine(Rule::TOKEN, None, tolerance);
        simulator.settings.alpha = 0.05;
        let all = simulator.runs(&log, runs, 60)?;
        let alarms = all
            .iter()
            .filter(|run| run.verdicts.contains(&Outcome::Refuted));
        println!(
            "at alpha 0.05, tolerance {tolerance}: {} of {runs} honest runs of 60 positions accused",
            alarms.count()
        );
    }
    for (rule, bug) in [
        (Rule::TOKEN, "argmax-drafts"),
        (Rule::TOKEN, "top-50-drafts"),
        (Rule::TOKEN, "temperature-ignored"),
    ] {
        for texts in [1.0, 20.0, 200.0] {
            let mut simulator = engine(rule, Some(bug.parse()?), Settings::TOLERANCE);
            simulator.settings.alpha /= texts;
            let found = |positions: usize| -> Result<bool, specgap::audit::AuditError> {
                let all = simulator.runs(&log, 20, positions)?;
                let refuted =
                    |run: &&specgap::audit::SimulatedRun| run.verdicts.contains(&Outcome::Refuted);
                Ok(all.iter().filter(refuted).count() == 20)
            };
            let mut positions = 10;
            while !found(positions)? && positions < 2_000 {
                positions += positions / 8 + 1;
            }
            println!("{bug}: {positions} positions of one of {texts} texts, 20 of 20 runs");
        }
    }
    for (rule, bug, positions) in [
        (Rule::TOKEN, "argmax-drafts", 40),
        (Rule::TOKEN, "top-50-drafts", 325),
        (Rule::TOKEN, "own-noise-correction", 32_000),
        (Rule::TOKEN, "temperature-ignored", 60),
        (Rule::ONE_HOT, "lenient-acceptance", 9_600),
    ] {
        for tolerance in [0.0, Settings::TOLERANCE] {
            let all = engine(rule, Some(bug.parse()?), tolerance).runs(&log, 20, positions)?;
            let found = Part::ALL.map(|part| {
                let refuted = |run: &&specgap::audit::SimulatedRun| {
                    run.verdicts.get(part as usize) == Some(&Outcome::Refuted)
                };
                all.iter().filter(refuted).count()
            });
            println!(
                "{bug}, tolerance {tolerance}: of 20 runs of {positions} positions, refuted by part {found:?}"
            );
        }
    }
    Ok(())
}
