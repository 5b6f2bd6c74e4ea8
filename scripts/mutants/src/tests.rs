//! Runs the tests: once each to see what they reach, then for each mutant those that reach it.

use crate::Fallible;
use crate::compile::{Program, Tree};
use crate::find::Mutant;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A test that takes longer than this without a mutant is not used.
const SLOWEST: f64 = 40.0;

/// How mutants are tried.
pub struct How {
    /// Tests that run side by side.
    pub jobs: usize,
    /// Seconds that tests that pass may take for one mutant; what is left is not run.
    pub budget: f64,
    /// Parts of the names of tests; none for all.
    pub names: Vec<String>,
}

#[derive(Clone)]
struct Test {
    program: PathBuf,
    name: String,
    label: String,
    seconds: f64,
    reaches: BTreeSet<u32>,
}

#[derive(PartialEq)]
enum Ending {
    Passed,
    Failed,
    TookTooLong,
}

/// Runs one test in a process of its own, with its memory and files bounded.
fn run_test(
    tree: &Tree,
    test: &Test,
    variable: (&str, &str),
    limit: Duration,
) -> Fallible<(Ending, f64)> {
    let start = Instant::now();
    let mut child = Command::new("sh")
        .args([
            "-c",
            "ulimit -v 8000000; ulimit -f 4000000; exec \"$0\" \"$@\"",
        ])
        .arg(&test.program)
        .args(["--exact", &test.name, "--test-threads=1"])
        .current_dir(tree.folder())
        .env("CARGO_MANIFEST_DIR", tree.folder())
        .env("INSTA_UPDATE", "no")
        .env("RAYON_NUM_THREADS", "1")
        .env_remove("MUTANT")
        .env_remove("MUTANTS_REACHED")
        .env(variable.0, variable.1)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let mut pause = Duration::from_millis(1);
    let ending = loop {
        if let Some(status) = child.try_wait()? {
            break if status.success() {
                Ending::Passed
            } else {
                Ending::Failed
            };
        }
        if start.elapsed() > limit {
            break Ending::TookTooLong;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    if ending == Ending::TookTooLong {
        // The group is this test's own: it and what it started.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        child.wait()?;
    }
    Ok((ending, start.elapsed().as_secs_f64()))
}

/// The tests that pass without a mutant, each with what it reaches.
fn record(tree: &Tree, programs: &[Program], how: &How) -> Fallible<Vec<Test>> {
    let mut tests = Vec::new();
    for program in programs {
        let list = Command::new(&program.path)
            .args(["--list", "--format", "terse"])
            .current_dir(tree.folder())
            .output()?;
        for line in String::from_utf8_lossy(&list.stdout).lines() {
            let Some(name) = line.strip_suffix(": test") else {
                continue;
            };
            if how.names.is_empty() || how.names.iter().any(|part| name.contains(part)) {
                tests.push(Test {
                    program: program.path.clone(),
                    name: name.to_owned(),
                    label: format!("{}:{name}", program.name),
                    seconds: 0.0,
                    reaches: BTreeSet::new(),
                });
            }
        }
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let folder = tree.work().join("reached");
    std::fs::create_dir_all(&folder)?;
    parallel(how.jobs, || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(test) = tests.get(index) else {
                return Ok(());
            };
            let file = folder.join(index.to_string());
            let _ = std::fs::remove_file(&file);
            let limit = Duration::from_secs_f64(SLOWEST);
            let variable = ("MUTANTS_REACHED", &*file.to_string_lossy());
            let (ending, seconds) = run_test(tree, test, variable, limit)?;
            if ending != Ending::Passed {
                let why = match ending {
                    Ending::Failed => "fails without a mutant",
                    _ => "is slow",
                };
                println!("not used, as it {why}: {}", test.label);
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let mut test = test.clone();
            test.seconds = seconds;
            test.reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
            done.lock().map_err(|_| "a thread failed")?.push(test);
        }
    })?;
    Ok(done.into_inner()?)
}

fn parallel(jobs: usize, work: impl Fn() -> Fallible<()> + Sync) -> Fallible<()> {
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                if let Err(error) = work()
                    && let Ok(mut failed) = failed.lock()
                {
                    *failed = Some(error.to_string());
                }
            });
        }
    });
    match failed.into_inner()? {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// How many times earlier than its duration says a test is tried: those beside the source first.
fn nearness(test: &Test, file: &str) -> f64 {
    let module = file
        .split_once("src/")
        .map_or(file, |(_, rest)| rest)
        .trim_end_matches(".rs")
        .trim_end_matches("/mod")
        .replace('/', "::");
    let folder = module.rsplit_once("::").map_or("", |(folder, _)| folder);
    let name = test.label.strip_prefix("unit:").unwrap_or_default();
    if name.starts_with(&module) {
        10.0
    } else if !folder.is_empty() && name.starts_with(folder) {
        3.0
    } else {
        1.0
    }
}

/// Tries the mutants, numbered from 1, in the order given, and appends what came of each to
/// `outcomes`.
pub fn run(
    tree: &Tree,
    programs: &[Program],
    mutants: &[&Mutant],
    order: &[usize],
    how: &How,
    outcomes: &Path,
) -> Fallible<()> {
    let start = Instant::now();
    let tests = record(tree, programs, how)?;
    println!(
        "{} tests pass without a mutant, in {:.0} s together",
        tests.len(),
        tests.iter().map(|test| test.seconds).sum::<f64>()
    );
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(outcomes)?;
    let file = Mutex::new(file);
    // How often a test caught a mutant of a file: such a test is tried earlier.
    let catches: Mutex<BTreeMap<(String, String), usize>> = Mutex::new(BTreeMap::new());
    let next = AtomicUsize::new(0);
    parallel(how.jobs, || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&place) = order.get(index) else {
                return Ok(());
            };
            let (mutant, number) = (mutants[place], place as u32 + 1);
            let mut reaching: Vec<(f64, &Test)> = {
                let catches = catches.lock().map_err(|_| "a thread failed")?;
                let reaching = tests.iter().filter(|test| test.reaches.contains(&number));
                reaching
                    .map(|test| {
                        let key = (mutant.file.clone(), test.label.clone());
                        let caught = catches.get(&key).copied().unwrap_or(0);
                        let sooner = (1 + caught) as f64 * nearness(test, &mutant.file);
                        ((test.seconds + 0.02) / sooner, test)
                    })
                    .collect()
            };
            reaching.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut outcome = match reaching.len() {
                0 => "unreached".to_owned(),
                number => format!("survived {number} tests"),
            };
            let mut spent = 0.0;
            for (run, (_, test)) in reaching.iter().enumerate() {
                if spent > how.budget {
                    outcome = format!("survived {run} of {} tests, its time", reaching.len());
                    break;
                }
                let limit = Duration::from_secs_f64(10.0 + 10.0 * test.seconds);
                let text = number.to_string();
                let (ending, seconds) = run_test(tree, test, ("MUTANT", &text), limit)?;
                spent += seconds;
                if ending != Ending::Passed {
                    let how = match ending {
                        Ending::Failed => "caught by",
                        _ => "caught as it takes too long:",
                    };
                    outcome = format!("{how} {}", test.label);
                    let mut catches = catches.lock().map_err(|_| "a thread failed")?;
                    let key = (mutant.file.clone(), test.label.clone());
                    *catches.entry(key).or_insert(0) += 1;
                    break;
                }
            }
            let mut file = file.lock().map_err(|_| "a thread failed")?;
            writeln!(file, "{outcome}\t{}", mutant.key)?;
            if (index + 1) % 50 == 0 {
                let seconds = start.elapsed().as_secs();
                println!("{} of {} after {seconds} s", index + 1, mutants.len());
            }
        }
    })
}
