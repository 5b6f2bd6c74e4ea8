//! The optimal plan by slot weights, measured: the tables of
//! `reports/optimal-plan/report.md`.
//!
//!     cargo run --release --example optimal_plan_table
//!     cargo run --release --example optimal_plan_table -- --rows ROWS.f32 --vocab 49152
//!     cargo run --release --example optimal_plan_table -- --sequential [--log LOG]
//!     SPECGAP_PYTHON=.venv/bin/python cargo run --release --example optimal_plan_table
//!
//! The first form generates rows shaped like those of a language model (fixed
//! seeds). With `--rows`, logits are read from a file of little-endian `f32`,
//! [positions, 2, V], the target's row before the draft's. With `--sequential`, only
//! the tables for sequential draws are printed; for rows of a log, if `--log` names
//! one, what a row does not list being spread evenly over the other tokens. With `SPECGAP_PYTHON`,
//! SciPy's HiGHS solves the membership program of the same truncations in the same
//! run, through `benches/flow_baseline.py`.

#[path = "../benches/python/mod.rs"]
mod python;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::log::{Log, Row};
use specgap::optimum::flow;
use specgap::plan::{PlanSettings, PlanStatus, TokenPlan};
use specgap::problem::Problem;
use specgap::row::{Rows as ScanRows, Workspace, sequential_subset};
use specgap::scheme::{WithReplacement, WithoutReplacement};
use std::error::Error;
use std::io::Write;
use std::time::Instant;

const VOCAB: usize = 49_152;
const DRAFTS: [usize; 4] = [2, 3, 4, 8];
const TEMPERATURES: [f64; 5] = [0.1, 0.3, 0.6, 1.0, 1.5];

type Rows = (Vec<f64>, Vec<f64>);

/// Zipf-like logits with noise that p and q share and noise that they do not.
fn generated(vocab: usize, seed: u64) -> Rows {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut noise = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    (1..=vocab)
        .map(|rank| {
            let shared = -1.6 * (rank as f64).ln() + noise();
            (shared + 0.4 * noise(), shared + 0.6 * noise())
        })
        .unzip()
}

fn read(path: &str, vocab: usize) -> Result<Vec<Rows>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let values: Vec<f64> = bytes
        .chunks_exact(4)
        .map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
        .collect();
    Ok(values
        .chunks_exact(2 * vocab)
        .map(|pair| (pair[..vocab].to_vec(), pair[vocab..].to_vec()))
        .collect())
}

fn distributions(rows: &Rows, temperature: f64) -> Result<(Target, Draft), Box<dyn Error>> {
    let rule = Softmax {
        temperature,
        ..Softmax::default()
    };
    Ok((
        Target::from_logits(&rows.0, &rule)?,
        Draft::from_logits(&rows.1, &rule)?,
    ))
}

/// Seconds of processor time of this thread where the system tells (Linux), else
/// of the clock: other work on the machine does not count.
fn seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| Some(1e-9 * text.split_whitespace().next()?.parse::<f64>().ok()?))
        .unwrap_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64())
}

/// What one call takes, in milliseconds: the mean of at least three calls and 60
/// ms, since the system counts processor time in ticks.
fn repeated<T>(mut call: impl FnMut() -> T) -> (T, f64) {
    let started = seconds();
    let mut count = 0.0;
    loop {
        let result = call();
        count += 1.0;
        let total = seconds() - started;
        if (count >= 3.0 && total >= 0.06) || total >= 5.0 {
            return (result, 1e3 * total / count);
        }
    }
}

fn timed(p: &Target, q: &Draft, n: usize) -> Result<(TokenPlan, f64), Box<dyn Error>> {
    let settings = PlanSettings::default();
    let (plan, ms) = repeated(|| TokenPlan::iid(p, q, n, &settings));
    Ok((plan?, ms))
}

fn full_vocabulary(positions: &[Rows]) -> Result<(), Box<dyn Error>> {
    println!(
        "| T | n | rows | alpha*, mean | largest shortfall | largest L1 error | iterations | groups | tiers | ms, median | ms, most |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for temperature in TEMPERATURES {
        for drafts in DRAFTS {
            let (mut alpha, mut short, mut l1) = (0.0, 0.0f64, 0.0f64);
            let (mut iterations, mut groups, mut tiers) = (0, 0, 0);
            let mut times = Vec::new();
            for rows in positions {
                let (p, q) = distributions(rows, temperature)?;
                let (plan, ms) = timed(&p, &q, drafts)?;
                let law = plan.law(&p, &q);
                let best = plan.optimal_acceptance_rate().value();
                alpha += best / positions.len() as f64;
                short = short.max((best - law.acceptance_rate).abs());
                l1 = l1.max(law.l1_error);
                iterations = iterations.max(plan.iterations());
                groups = groups.max(plan.groups());
                tiers = tiers.max(plan.tiers());
                times.push(ms);
            }
            times.sort_by(f64::total_cmp);
            println!(
                "| {temperature} | {drafts} | {} | {alpha:.9} | {short:.1e} | {l1:.1e} | {iterations} | {groups} | {tiers} | {:.1} | {:.1} |",
                times.len(),
                times[times.len() / 2],
                times[times.len() - 1]
            );
            std::io::stdout().flush()?;
        }
    }
    Ok(())
}

fn against_flow() -> Result<(), Box<dyn Error>> {
    println!(
        "\n| V | n | alpha* by flow | plan - flow | L1 error | iterations | plan, ms | flow, ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (vocab, drafts) in [(10, 4), (50, 2), (50, 3), (50, 4), (200, 2), (1000, 2)] {
        let (p, q) = distributions(&generated(vocab, vocab as u64), 1.0)?;
        let (plan, ms) = timed(&p, &q, drafts)?;
        let law = plan.law(&p, &q);
        let problem = Problem::new("small", p, WithReplacement::new(q, drafts))?;
        let (exact, flow_ms) = repeated(|| flow::solve(&problem).optimum().rate);
        println!(
            "| {vocab} | {drafts} | {:.12} | {:.1e} | {:.1e} | {} | {ms:.2} | {flow_ms:.1} |",
            exact.value(),
            law.acceptance_rate - exact.value(),
            law.l1_error,
            plan.iterations()
        );
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// q cut to its k heaviest tokens, and p on those and one more token for the rest.
fn truncated(p: &Target, q: &Draft, k: usize) -> Result<(Target, Draft), Box<dyn Error>> {
    let (p, q) = (p.probabilities(), q.probabilities());
    let mut order: Vec<usize> = (0..q.len()).collect();
    order.sort_by(|&a, &b| q[b].total_cmp(&q[a]));
    order.truncate(k);
    let held: f64 = order.iter().map(|&token| q[token]).sum();
    let kept: f64 = order.iter().map(|&token| p[token]).sum();
    let mut draft: Vec<f64> = order.iter().map(|&token| q[token] / held).collect();
    let mut target: Vec<f64> = order.iter().map(|&token| p[token]).collect();
    draft.push(0.0);
    target.push((1.0 - kept).max(0.0));
    Ok((Target::new(&target)?, Draft::new(&draft)?))
}

fn truncations(rows: &Rows) -> Result<(), Box<dyn Error>> {
    let (p, q) = distributions(rows, 1.0)?;
    let mut instances = Vec::new();
    println!("\n| n | k | acceptance | loss against full q | flow, ms | plan, ms |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (drafts, cuts) in [
        (2, [10usize, 30, 100, 300].as_slice()),
        (3, &[10, 30, 100]),
        (4, &[10, 30]),
    ] {
        let (plan, ms) = timed(&p, &q, drafts)?;
        let full = plan.acceptance_rate().value();
        for &k in cuts {
            let (p, q) = truncated(&p, &q, k)?;
            let (plan, ms) = timed(&p, &q, drafts)?;
            let problem = Problem::new(
                format!("k={k} n={drafts}"),
                p,
                WithReplacement::new(q, drafts),
            )?;
            let (best, flow_ms) = repeated(|| flow::solve(&problem).optimum().rate);
            println!(
                "| {drafts} | {k} | {:.9} (plan: {:+.0e}) | {:.2e} | {flow_ms:.1} | {ms:.2} |",
                best.value(),
                plan.acceptance_rate().value() - best.value(),
                full - best.value()
            );
            std::io::stdout().flush()?;
            instances.push((problem, best.value()));
        }
        println!(
            "| {drafts} | all {} | {full:.9} | 0 | too many sets | {ms:.1} |",
            p.vocab()
        );
    }
    linear_programs(&instances)
}

fn linear_programs(instances: &[(Problem, f64)]) -> Result<(), Box<dyn Error>> {
    let input: Vec<serde_json::Value> = instances
        .iter()
        .map(|(problem, value)| {
            let law = problem.scheme().set_law();
            serde_json::json!({
                "name": problem.name(),
                "target": problem.target().probabilities(),
                "sets": law.sets.iter().collect::<Vec<_>>(),
                "capacities": law.probabilities,
                "expected": value,
            })
        })
        .collect();
    let arguments = ["--budget-seconds", "60"].map(str::to_owned);
    let Some(report) = python::run("flow_baseline.py", &arguments, &input) else {
        println!("\nNo linear programs: set SPECGAP_PYTHON to a Python with SciPy.");
        return Ok(());
    };
    println!("\n| instance | baseline | status | solve, s | value - flow |");
    println!("| --- | --- | --- | --- | --- |");
    for problem in report["problems"].as_array().into_iter().flatten() {
        for (baseline, record) in problem["baselines"].as_object().into_iter().flatten() {
            println!(
                "| {} | {baseline} | {} | {} | {} |",
                problem["name"], record["status"], record["solve_seconds"], record["difference"]
            );
        }
    }
    Ok(())
}

fn growth() -> Result<(), Box<dyn Error>> {
    println!("\n| V | n = 2, ms | n = 3 | n = 4 | n = 8 | n = 32 |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for vocab in [1000, 4000, 16_000, 49_152, 128_000, 262_144] {
        let (p, q) = distributions(&generated(vocab, 3), 1.0)?;
        let mut line = format!("| {vocab} |");
        for drafts in [2, 3, 4, 8, 32] {
            let (plan, ms) = timed(&p, &q, drafts)?;
            line += &format!(" {ms:.1} ({}) |", plan.status().as_str());
        }
        println!("{line}");
    }
    println!("\n| stop at | n = 3: iterations | shortfall | ms |\n| --- | --- | --- | --- |");
    let (p, q) = distributions(&generated(VOCAB, 3), 1.0)?;
    for exponent in [4, 6, 8, 10, 12, 14] {
        let goal = 10f64.powi(-exponent);
        let settings = PlanSettings {
            residual: goal,
            grouping: (10.0 * goal).min(1e-7),
            ..PlanSettings::default()
        };
        let (plan, ms) = repeated(|| TokenPlan::iid(&p, &q, 3, &settings));
        let plan = plan?;
        println!(
            "| {goal:.0e} | {} | {:.1e} | {ms:.1} |",
            plan.iterations(),
            plan.shortfall()
        );
    }
    Ok(())
}

fn timed_sequential(p: &Target, q: &Draft, n: usize) -> Result<(TokenPlan, f64), Box<dyn Error>> {
    let settings = PlanSettings::default();
    let solve = || -> Result<TokenPlan, Box<dyn Error>> {
        let subset = sequential_subset(p, q, n)?;
        Ok(TokenPlan::sequential(p, q, n, subset, &settings)?)
    };
    let started = seconds();
    let plan = solve()?;
    let once = 1e3 * (seconds() - started);
    if once > 30.0 {
        return Ok((plan, once));
    }
    let (plan, ms) = repeated(solve);
    Ok((plan?, ms))
}

/// Positions of a top-heavy log, evenly spaced, at the temperature of one of its
/// rests.
fn logged(log: &Log, column: usize, count: usize) -> Result<Vec<(Target, Draft)>, Box<dyn Error>> {
    let temperature = log.metadata().rest_temperatures[column];
    let rule = Softmax {
        temperature,
        ..Softmax::default()
    };
    let mut row = Row::default();
    (0..count)
        .map(|k| {
            log.read(k * log.positions() / count, &mut row)?;
            let side = |logits: &[f64], rest: f64| -> Result<Vec<f64>, Box<dyn Error>> {
                let mut out = Vec::new();
                rule.fill(logits, &mut out)?;
                for mass in &mut out {
                    *mass *= 1.0 - rest;
                }
                let others = log.vocabulary() - out.len();
                out.extend(std::iter::repeat_n(rest / others as f64, others));
                Ok(out)
            };
            let target = side(&row.target, row.target_rest[column])?;
            let draft = side(&row.draft, row.draft_rest[column])?;
            Ok((Target::new(&target)?, Draft::new(&draft)?))
        })
        .collect()
}

fn sequential(temperature: f64, positions: &[(Target, Draft)]) -> Result<(), Box<dyn Error>> {
    for drafts in [2, 3, 4] {
        let (mut alpha, mut before, mut width) = (0.0, 0.0f64, 0.0f64);
        let (mut short, mut l1, mut iterations, mut failed) = (0.0f64, 0.0f64, 0, 0);
        let mut times = Vec::new();
        for (p, q) in positions {
            let (plan, ms) = timed_sequential(p, q, drafts)?;
            let law = plan.law(p, q);
            let best = plan.optimal_acceptance_rate();
            let rows = ScanRows {
                target: p.probabilities(),
                draft: q.probabilities(),
            };
            let scanned = Workspace::new()
                .load(rows, drafts)?
                .without_replacement(drafts)?
                .rate;
            alpha += best.value() / positions.len() as f64;
            before = before.max(scanned.width());
            width = width.max(best.width());
            short = short.max((best.value() - law.acceptance_rate).abs());
            l1 = l1.max(law.l1_error);
            iterations = iterations.max(plan.iterations());
            failed += usize::from(plan.status() != PlanStatus::Optimal);
            times.push(ms);
        }
        times.sort_by(f64::total_cmp);
        println!(
            "| {temperature} | {drafts} | {} | {alpha:.9} | {before:.1e} | {width:.1e} | {short:.1e} | {l1:.1e} | {iterations} | {failed} | {:.0} | {:.0} |",
            times.len(),
            times[times.len() / 2],
            times[times.len() - 1]
        );
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn sequential_tables(log: Option<&String>) -> Result<(), Box<dyn Error>> {
    println!(
        "| T | n | rows | alpha*, mean | width by scan | width by plan | shortfall | L1 error | iterations | short | ms, median | ms, most |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    if let Some(path) = log {
        let log = Log::open(std::path::Path::new(path))?;
        for (column, &temperature) in log.metadata().rest_temperatures.iter().enumerate() {
            sequential(temperature, &logged(&log, column, 12)?)?;
        }
        return Ok(());
    }
    for temperature in TEMPERATURES {
        let positions: Result<Vec<_>, _> = (1..=4)
            .map(|seed| distributions(&generated(VOCAB, seed), temperature))
            .collect();
        sequential(temperature, &positions?)?;
    }
    println!(
        "\n| V | n | alpha* by flow | plan - flow | L1 error | iterations | plan, ms | flow, ms |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (vocab, drafts) in [(10, 4), (50, 2), (50, 3), (50, 4), (200, 2), (1000, 2)] {
        let (p, q) = distributions(&generated(vocab, vocab as u64), 1.0)?;
        let (plan, ms) = timed_sequential(&p, &q, drafts)?;
        let law = plan.law(&p, &q);
        let problem = Problem::new("small", p, WithoutReplacement::new(q, drafts))?;
        let (exact, flow_ms) = repeated(|| flow::solve(&problem).optimum().rate);
        println!(
            "| {vocab} | {drafts} | {:.12} | {:.1e} | {:.1e} | {} | {ms:.1} | {flow_ms:.1} |",
            exact.value(),
            law.acceptance_rate - exact.value(),
            law.l1_error,
            plan.iterations()
        );
    }
    println!("\n| V | n = 2, ms | n = 3 | n = 4 | n = 6 | n = 8 |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for vocab in [1000, 4000, 16_000, 49_152, 128_000] {
        let (p, q) = distributions(&generated(vocab, 3), 1.0)?;
        let mut line = format!("| {vocab} |");
        for drafts in [2, 3, 4, 6, 8] {
            let (plan, ms) = timed_sequential(&p, &q, drafts)?;
            line += &format!(" {ms:.0} ({}) |", plan.status().as_str());
        }
        println!("{line}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    if arguments.iter().any(|argument| argument == "--sequential") {
        return sequential_tables(option("--log"));
    }
    let vocab = option("--vocab").map_or(Ok(VOCAB), |text| text.parse())?;
    let positions = match option("--rows") {
        Some(path) => read(path, vocab)?,
        None => (1..=4).map(|seed| generated(VOCAB, seed)).collect(),
    };
    let first = positions
        .first()
        .ok_or("the file has no complete pair of rows")?;
    full_vocabulary(&positions)?;
    truncations(first)?;
    if option("--rows").is_none() {
        against_flow()?;
        growth()?;
    }
    Ok(())
}
