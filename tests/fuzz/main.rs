//! Broken input for every reader, and random rows for every rule, in one process.
//!
//! ```text
//! cargo test --release --test fuzz -- --runs 10000000            each reader, and as many rows
//! cargo test --release --test fuzz -- --seconds 60 --only npz    one reader, a minute
//! cargo test --release --test fuzz -- --runs 20 --write FOLDER   inputs as files, for fuzz.py
//! ```
//!
//! `--only` takes a name or, where none is like it, a part of names. `--seed N` begins another
//! sequence, `--first K` skips its first K inputs: after an input that
//! ends the process, the last line that was printed says where to go on. A reader may refuse an
//! input; it may not panic, and it may not take seconds. What a reader takes goes on to what is
//! made of it. Exit code 1 if anything failed; inputs that did are kept below `target/fuzz`.
//! `--write` reads nothing: input K of a reader becomes `FOLDER/READER/K`.

mod break_input;
mod readers;
mod rows;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
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

    /// Whether what inputs are made of is good.
    fn sound(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Inputs that take longer are failures.
    fn limit(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// What else there is to say of all that was run.
    fn summary(&self) -> String {
        String::new()
    }
}

struct Options {
    runs: u64,
    seconds: Option<f64>,
    seed: u64,
    first: u64,
    only: String,
    write: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        runs: 2000,
        seconds: None,
        seed: 0,
        first: 0,
        only: String::new(),
        write: None,
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
            "--write" => options.write = Some(value.into()),
            "--seconds" => {
                let seconds = value
                    .parse()
                    .map_err(|_| format!("{word} {value}: no time"))?;
                (options.seconds, options.runs) = (Some(seconds), u64::MAX);
            }
            _ => {
                return Err(format!(
                    "{word}: there are --runs, --seconds, --seed, --first, --only, --write"
                ));
            }
        }
    }
    if options.write.is_some() && options.seconds.is_some() {
        return Err("--write: takes --runs and no --seconds".to_owned());
    }
    Ok(options)
}

impl Options {
    /// Whether a target is asked for, of all there are.
    fn chooses(&self, name: &str, all: &[String]) -> bool {
        if all.contains(&self.only) {
            return name == self.only;
        }
        name.contains(&self.only)
    }
}

/// Where readers find files that go with their inputs: in memory, where the system has a folder there.
/// Importers write what they made and sync it, which a disk takes milliseconds for.
fn folder() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

/// Inputs as files; none is read.
fn write(
    target: &mut dyn Target,
    number: usize,
    folder: &Path,
    options: &Options,
) -> std::io::Result<()> {
    let folder = folder.join(target.name());
    std::fs::create_dir_all(&folder)?;
    for run in options.first..options.first.saturating_add(options.runs) {
        let input = target.input(&mut numbers(options.seed, number, run));
        std::fs::write(folder.join(run.to_string()), input)?;
    }
    Ok(())
}

/// Numbers for one input of a target.
fn numbers(seed: u64, target: usize, run: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(target as u64).to_le_bytes());
    key[16..24].copy_from_slice(&run.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// Seconds of a processor that this thread had, where the system says so: beside other work, those
/// of a clock say little of what an input costs.
fn processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

/// Runs an input. A panic is a failure.
fn attempt(target: &mut dyn Target, input: &[u8]) -> Result<bool, String> {
    catch_unwind(AssertUnwindSafe(|| target.run(input))).unwrap_or(Err("panicked".to_owned()))
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
    let folder = folder().unwrap();
    let mut targets = readers::all(folder.path());
    targets.extend(rows::all());
    let names: Vec<String> = targets.iter().map(|target| target.name()).collect();
    let chosen = (names.iter())
        .filter(|name| options.chooses(name, &names))
        .count();
    if chosen == 0 {
        eprintln!(
            "error: --only {}: there are {}",
            options.only,
            names.join(", ")
        );
        return ExitCode::from(2);
    }
    let mut failed = 0u64;
    for (number, target) in targets.iter_mut().enumerate() {
        let name = target.name();
        if !options.chooses(&name, &names) {
            continue;
        }
        if let Some(folder) = &options.write {
            if let Err(error) = write(&mut **target, number, folder, &options) {
                eprintln!("error: --write {}: {error}", folder.display());
                return ExitCode::from(2);
            }
            continue;
        }
        if let Err(message) = target.sound() {
            println!("error: {name}: {message}");
            failed += 1;
            continue;
        }
        let (start, began) = (Instant::now(), processor());
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
            let mut outcome = attempt(&mut **target, &input);
            if before.elapsed() >= target.limit() {
                // Other work may have had the processor meanwhile. What it takes of that decides.
                let (again, began) = (Instant::now(), processor());
                outcome = outcome.and(attempt(&mut **target, &input));
                let seconds = match (began, processor()) {
                    (Some(began), Some(ended)) => ended - began,
                    _ => again.elapsed().as_secs_f64(),
                };
                if seconds >= target.limit().as_secs_f64() {
                    outcome = Err(format!("took {seconds:.1} s"));
                }
            }
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
        let runs = taken + refused + failures;
        println!(
            "{name}: {runs} runs in {:.0} s: {taken} taken, {refused} refused, {failures} failed",
            start.elapsed().as_secs_f64()
        );
        if let (Some(began), Some(ended), true) = (began, processor(), runs > 0) {
            let each = 1e6 * (ended - began) / runs as f64;
            println!("    {each:.1} microseconds of a processor each");
        }
        print!("{}", target.summary());
    }
    ExitCode::from(u8::from(failed > 0))
}
