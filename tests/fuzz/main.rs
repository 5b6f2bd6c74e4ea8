//! Broken input for every reader, and random rows for every rule, in one process.
//!
//! ```text
//! cargo test --release --test fuzz -- --runs 10000000            each reader, and as many rows
//! cargo test --release --test fuzz -- --seconds 60 --only npz    one reader, a minute
//! ```
//!
//! `--seed N` begins another sequence, `--first K` skips its first K inputs: after an input that
//! ends the process, the last line that was printed says where to go on. A reader may refuse an
//! input; it may not panic, and it may not take seconds. What a reader takes goes on to what is
//! made of it. Exit code 1 if anything failed; inputs that did are kept below `target/fuzz`.

mod break_input;
mod readers;
mod rows;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A reader, or the rules on a row: what happens to an input that a generator gives.
pub trait Target {
    /// For messages and `--only`.
    fn name(&self) -> String;

    /// Makes an input. The same numbers make the same input.
    fn input(&mut self, rng: &mut ChaCha8Rng) -> Vec<u8>;

    /// Whether the input was taken; or what is wrong with what was made of it.
    fn run(&mut self, input: &[u8]) -> Result<bool, String>;
}

/// Inputs that take longer are failures.
const SLOW: Duration = Duration::from_secs(10);

struct Options {
    runs: u64,
    seconds: Option<f64>,
    seed: u64,
    first: u64,
    only: String,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        runs: 2000,
        seconds: None,
        seed: 0,
        first: 0,
        only: String::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or(format!("{word}: its value is missing"))?;
        let number = || {
            value
                .parse()
                .map_err(|_| format!("{word} {value}: no number"))
        };
        match word.as_str() {
            "--runs" => options.runs = number()?,
            "--seed" => options.seed = number()?,
            "--first" => options.first = number()?,
            "--only" => options.only = value,
            "--seconds" => {
                let seconds = value
                    .parse()
                    .map_err(|_| format!("{word} {value}: no time"))?;
                (options.seconds, options.runs) = (Some(seconds), u64::MAX);
            }
            _ => {
                return Err(format!(
                    "{word}: there are --runs, --seconds, --seed, --first, --only"
                ));
            }
        }
    }
    Ok(options)
}

/// Numbers for one input of a target.
fn numbers(seed: u64, target: usize, run: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(target as u64).to_le_bytes());
    key[16..24].copy_from_slice(&run.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

fn keep(name: &str, seed: u64, run: u64, input: &[u8]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../fuzz");
    let path = folder.join(format!("{}-{seed}-{run}", name.replace(' ', "-")));
    let _ = std::fs::create_dir_all(&folder);
    let _ = std::fs::write(&path, input);
    path
}

/// What a panic said, and where.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("  {panic}");
    }));
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    quiet_panics();
    let folder = tempfile::tempdir().unwrap();
    let mut targets = readers::all(folder.path());
    targets.extend(rows::all());
    let chosen = targets
        .iter()
        .filter(|one| one.name().contains(&options.only))
        .count();
    let mut failed = 0u64;
    for (number, target) in targets.iter_mut().enumerate() {
        let name = target.name();
        if !name.contains(&options.only) {
            continue;
        }
        let start = Instant::now();
        let limit = options.seconds.map(|all| all / chosen as f64);
        let (mut taken, mut refused, mut failures) = (0u64, 0u64, 0u64);
        let mut said = Instant::now();
        for run in options.first..options.first.saturating_add(options.runs) {
            if limit.is_some_and(|limit| start.elapsed().as_secs_f64() > limit) || failures >= 20 {
                break;
            }
            if said.elapsed() > Duration::from_secs(60) {
                said = Instant::now();
                println!(
                    "{name}: at run {run}, {taken} taken, {refused} refused, {failures} failed"
                );
            }
            let mut rng = numbers(options.seed, number, run);
            let input = target.input(&mut rng);
            let before = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| target.run(&input)));
            let outcome = match outcome {
                Ok(outcome) if before.elapsed() < SLOW => outcome,
                Ok(_) => Err(format!("took {:.1} s", before.elapsed().as_secs_f64())),
                Err(_) => Err("panicked".to_owned()),
            };
            match outcome {
                Ok(true) => taken += 1,
                Ok(false) => refused += 1,
                Err(message) => {
                    failures += 1;
                    let kept = keep(&name, options.seed, run, &input);
                    println!("error: {name}, seed {}, run {run}: {message}", options.seed);
                    println!("    kept as {}", kept.display());
                }
            }
        }
        failed += failures;
        println!(
            "{name}: {} runs in {:.0} s: {taken} taken, {refused} refused, {failures} failed",
            taken + refused + failures,
            start.elapsed().as_secs_f64()
        );
    }
    ExitCode::from(u8::from(failed > 0))
}
