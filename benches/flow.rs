//! Maximum flow on merged sets against what one would use without specgap.
//!
//!     cargo bench --bench flow                        ours alone
//!     SPECGAP_PYTHON=.venv/bin/python cargo bench --bench flow -- --budget-seconds 120
//!
//! The second form needs `pip install -r benches/requirements.txt` in that
//! Python; a library that it lacks is listed as unavailable. Both sides solve
//! the same instances in the same run: softmax of normal logits, the draft's
//! those of the target plus noise, fixed seed. Compared is the solve alone, the
//! model already in memory: theirs on what they take (64-bit integers, floats),
//! ours on 128-bit integers, capacities rounded to 2^-120. Beside it stand the
//! time to build our model from the two rows, and the whole exact solution in
//! unbounded integers (build and solve) where that is what `specgap solve` runs.
//!
//! `SPECGAP_WRITE_RESULTS=1` writes the rows to `benches/results.json`.

mod python;
mod results;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use results::{Row, Span};
use specgap::certify;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::optimum::{ScaledInstance, flow};
use specgap::problem::Problem;
use specgap::scheme::WithReplacement;
use std::collections::BTreeMap;
use std::time::Instant;

const INSTANCES: [(usize, usize); 5] = [(100, 2), (200, 2), (500, 2), (100, 3), (2000, 2)];
const REPEATS: usize = 3;

/// A standard normal draw, by Box and Muller.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random_range(0.0..1.0)).cos()
}

fn instance(vocab: usize, drafts: usize) -> Problem {
    let mut random = ChaCha8Rng::seed_from_u64(vocab as u64 * 64 + drafts as u64);
    let target: Vec<f64> = (0..vocab).map(|_| 2.0 * normal(&mut random)).collect();
    let draft: Vec<f64> = target
        .iter()
        .map(|logit| 0.8 * logit + 0.8 * normal(&mut random))
        .collect();
    let rule = Softmax::default();
    let p = Target::from_logits(&target, &rule).expect("finite logits");
    let q = Draft::from_logits(&draft, &rule).expect("finite logits");
    Problem::new(
        format!("V={vocab} n={drafts}"),
        p,
        WithReplacement::new(q, drafts),
    )
    .expect("one vocabulary")
}

struct Ours {
    build: f64,
    flow: f64,
    whole: f64,
    check: f64,
    value: f64,
    width: f64,
    exact: bool,
    /// Peak memory of the process after this problem, in MiB.
    memory: Option<f64>,
}

fn measure(problem: &Problem) -> Ours {
    let mut ours = Ours {
        build: f64::INFINITY,
        flow: f64::INFINITY,
        whole: f64::INFINITY,
        check: f64::INFINITY,
        value: 0.0,
        width: 0.0,
        exact: false,
        memory: None,
    };
    let lap = |started: Instant| started.elapsed().as_secs_f64();
    for _ in 0..REPEATS {
        let started = Instant::now();
        let rounded = ScaledInstance::rounded(problem);
        ours.build = ours.build.min(lap(started));
        let started = Instant::now();
        let rounded_flow = flow::maximum_flow(&rounded);
        ours.flow = ours.flow.min(lap(started));
        drop((rounded, rounded_flow));

        let started = Instant::now();
        let solved = flow::solve(problem);
        ours.whole = ours.whole.min(lap(started));
        let subset = solved.optimum().subset.unwrap_or_default();
        let plan = solved.into_plan();
        let started = Instant::now();
        let proved = certify::optimum(problem, &plan, &subset).expect("a valid certificate");
        ours.check = ours.check.min(lap(started));
        let rate = proved.get();
        (ours.value, ours.width, ours.exact) =
            (rate.value(), rate.width(), rate.rational().is_some());
    }
    ours.memory = peak_memory();
    ours
}

/// Peak resident memory of this process in MiB, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

type Baseline = BTreeMap<(String, String), (String, Option<f64>, Option<f64>)>;

/// Runs the Python baselines on the same instances. `None` if there is no Python.
fn baselines(problems: &[(Problem, Ours)], arguments: &[String]) -> Option<(String, Baseline)> {
    let input: Vec<serde_json::Value> = problems
        .iter()
        .map(|(problem, ours)| {
            let law = problem.scheme().set_law();
            serde_json::json!({
                "name": problem.name(),
                "target": problem.target().probabilities(),
                "sets": law.sets.iter().collect::<Vec<_>>(),
                "capacities": law.probabilities,
                "expected": ours.value,
            })
        })
        .collect();
    let report = python::run("flow_baseline.py", arguments, &input)?;
    let versions = format!("Python {}, {}", report["python"], report["packages"]).replace('"', "");
    let mut table = Baseline::new();
    for problem in report["problems"].as_array()? {
        for (baseline, record) in problem["baselines"].as_object()? {
            let key = (problem["name"].as_str()?.to_owned(), baseline.clone());
            let status = record["status"].as_str()?.to_owned();
            table.insert(
                key,
                (
                    status,
                    record["solve_seconds"].as_f64(),
                    record["difference"].as_f64(),
                ),
            );
        }
    }
    Some((versions, table))
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    println!(
        "| instance | sets | build | flow | as `solve` runs it | certificate | value | memory so far |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut measured = Vec::new();
    for (vocab, drafts) in INSTANCES {
        let problem = instance(vocab, drafts);
        let ours = measure(&problem);
        let kind = if ours.exact {
            "exact".to_owned()
        } else {
            format!("width {:.0e}", ours.width)
        };
        let memory = ours
            .memory
            .map_or("unknown".to_owned(), |mib| format!("{mib:.0} MiB"));
        println!(
            "| {} | {} | {:.4} s | {:.4} s | {:.4} s | {:.4} s | {:.12} ({kind}) | {memory} |",
            problem.name(),
            problem.scheme().set_count(),
            ours.build,
            ours.flow,
            ours.whole,
            ours.check,
            ours.value
        );
        measured.push((problem, ours));
    }
    let Some((versions, table)) = baselines(&measured, &arguments) else {
        println!("\nNo baselines: set SPECGAP_PYTHON to a Python with benches/requirements.txt.");
        if results::wanted() {
            println!("Nothing is written: rows without baselines are of no use.");
        }
        return;
    };
    println!("\n{versions}\n");
    println!(
        "| instance | baseline | status | seconds | seconds / specgap's flow | value - specgap's |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (problem, ours) in &measured {
        for ((name, baseline), (status, seconds, difference)) in &table {
            if name != problem.name() {
                continue;
            }
            let seconds_text = seconds.map_or(String::new(), |s| format!("{s:.4}"));
            let ratio = seconds.map_or(String::new(), |s| format!("{:.2}x", s / ours.flow));
            let difference = difference.map_or(String::new(), |d| format!("{d:.1e}"));
            println!(
                "| {name} | {baseline} | {status} | {seconds_text} | {ratio} | {difference} |"
            );
        }
    }
    if results::wanted() {
        let remark = "i.i.d. drafts of softmax rows; the time of the solve alone".to_owned();
        results::write(
            "flow",
            Some(versions),
            Some(remark),
            rows(&measured, &table),
        )
        .expect("benches/results.json can be written");
    }
}

/// What is written down: the flow alone beside each baseline, then the whole solution.
fn rows(measured: &[(Problem, Ours)], table: &Baseline) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |problem: &Problem, way: &str, seconds: f64| Row {
        row: format!(
            "V = {}, n = {}, {} sets",
            results::thousands(problem.vocab()),
            problem.drafts(),
            results::thousands(problem.scheme().set_count() as usize)
        ),
        way: format!("specgap, {way}"),
        unit: "s".to_owned(),
        ours: Span(seconds, seconds),
        baseline: None,
        theirs: None,
        ratio: None,
        note: None,
    };
    for (problem, ours) in measured {
        for ((name, baseline), (status, seconds, _)) in table {
            if name == problem.name() {
                let ratio = seconds.map(|seconds| ours.flow / seconds);
                rows.push(Row {
                    baseline: Some(baseline.clone()),
                    theirs: seconds.map(|seconds| Span(seconds, seconds)),
                    ratio: ratio.map(|ratio| Span(ratio, ratio)),
                    note: seconds.is_none().then(|| status.clone()),
                    ..row(problem, "the flow alone", ours.flow)
                });
            }
        }
    }
    for (problem, ours) in measured {
        let kind = match ours.exact {
            true => "exact".to_owned(),
            false => format!("enclosed, {:.0e} wide", ours.width),
        };
        let memory = ours
            .memory
            .map_or(String::new(), |mib| format!("; {mib:.0} MiB"));
        rows.push(Row {
            note: Some(format!("({kind}{memory})")),
            ..row(problem, "set-up and flow as `solve` runs it", ours.whole)
        });
    }
    rows
}
