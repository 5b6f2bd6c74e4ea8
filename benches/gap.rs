//! Throughput of `specgap gap` against the least that any report must do: read the
//! rows, and turn them into p and q by one softmax each.
//!
//!     cargo bench --bench gap                         a generated log of full f16 rows
//!     cargo bench --bench gap -- LOG...               logs of one's own
//!     cargo bench --bench gap -- --threads 1 LOG
//!     cargo bench --bench gap -- --part plan          lines with this word, or the line of this name
//!
//! Lines with `rrs-wo` are the fast way with its audit, as reports take it, unless they say
//! that it is enclosed. The level plan is solved where reports do, at audited positions, unless
//! a line says that it is at every one; laws are measured where reports do. Plans of sequential
//! draws, which reports leave out unless they are asked for, are of few positions of which
//! none is audited, so that the line is about the solves.
//!
//! Every line is a run over all positions on the same threads, the best of as many as fit
//! a second and of three at least: positions a second, and the limit's time as a share of the
//! run's. The limit comes first, so that peak memory, which only grows, can be told apart.
//!
//! `SPECGAP_WRITE_RESULTS=1` writes the lines to `benches/results.json`, if they are all
//! lines of the generated log.

mod results;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use results::{Row, peak};
use specgap::distribution::Softmax;
use specgap::gap::{Settings, SlowRates, SolvedPlans, measure};
use specgap::log::{Layout, Log, LogWriter, Metadata, Position};
use specgap::scheme::SchemeName;
use specgap::verifier::VerifierName;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

const VOCAB: usize = 49_152;
/// As many as a small capture has: some positions are audited in every log, however short, and a
/// log of a hundred would be mostly audit.
const GENERATED: usize = 1024;
const DRAFTS: [usize; 3] = [2, 3, 4];

/// The least that any report must do.
const LIMIT: &str = "reading and one softmax each";

/// Full rows, Zipf-like with noise that p and q share and noise that they do not.
fn generate(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut noise = || (0..12).map(|_| random.random::<f32>()).sum::<f32>() - 6.0;
    let mut writer = LogWriter::create(path, Metadata::default(), Layout::new(VOCAB))?;
    let (mut target, mut draft) = (vec![0.0f32; VOCAB], vec![0.0f32; VOCAB]);
    for n in 0..GENERATED {
        for (rank, (p, q)) in target.iter_mut().zip(&mut draft).enumerate() {
            let shared = -1.6 * ((rank + 1) as f32).ln() + noise();
            (*p, *q) = (shared + 0.4 * noise(), shared + 0.6 * noise());
        }
        writer.append(&Position {
            prompt_id: (n / 16) as i64,
            position: (n % 16) as i64,
            token: 0,
            target: &target,
            draft: &draft,
        })?;
    }
    Ok(writer.commit()?)
}

/// Reads every row and takes its softmax once, for target and draft.
fn limit(logs: &[Log], temperature: f64) -> Result<(), Box<dyn Error>> {
    let rule = Softmax { temperature };
    for log in logs {
        let spans = log.spans(8);
        spans
            .par_iter()
            .map_init(
                || (specgap::log::Row::default(), Vec::new()),
                |(row, out), span| {
                    let chunk = log.chunk(span).map_err(|error| error.to_string())?;
                    for position in chunk.positions() {
                        chunk
                            .read(position, row)
                            .map_err(|error| error.to_string())?;
                        for logits in [&row.target, &row.draft] {
                            rule.fill(logits, out).map_err(|error| error.to_string())?;
                            black_box(&out);
                        }
                    }
                    Ok::<(), String>(())
                },
            )
            .collect::<Result<(), String>>()?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut threads, mut paths, mut part) = (0, Vec::new(), String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo adds it.
            "--bench" => {}
            "--threads" => threads = arguments.next().ok_or("--threads N")?.parse()?,
            "--part" => part = arguments.next().ok_or("--part WORD")?,
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()?;
    let scratch = std::env::temp_dir().join(format!("specgap-bench-gap-{}", std::process::id()));
    let writing = results::wanted() && paths.is_empty() && part.is_empty();
    if paths.is_empty() {
        generate(&scratch)?;
        paths.push(scratch.clone());
    }
    let logs = paths
        .iter()
        .map(|path| Log::open(path))
        .collect::<Result<Vec<_>, _>>()?;
    let positions: usize = logs.iter().map(Log::positions).sum();
    println!(
        "{positions} positions, V = {}, {} tokens a row, T = 1, n = {DRAFTS:?}, {} threads",
        logs[0].vocabulary(),
        logs[0].listed(),
        rayon::current_num_threads()
    );
    println!(
        "| what | s | positions/s | share of the limit | ms a position and thread | peak memory so far |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut least = f64::INFINITY;
    let mut rows = Vec::new();
    let mut line =
        |what: &str, positions: usize, run: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
            // One run alone would be compared with the best of many.
            let mut seconds = f64::INFINITY;
            let (mut spent, mut runs) = (0.0, 0);
            while runs < 3 || spent < 1.0 {
                let start = Instant::now();
                run()?;
                let own = start.elapsed().as_secs_f64();
                seconds = seconds.min(own);
                spent += own;
                runs += 1;
            }
            let each = seconds / positions as f64;
            least = least.min(each);
            println!(
                "| {what} | {seconds:.3} | {:.1} | {:.1}% | {:.2} | {} |",
                positions as f64 / seconds,
                100.0 * least / each,
                1e3 * seconds * rayon::current_num_threads() as f64 / positions as f64,
                peak()
            );
            let (speed, ratio) = (1.0 / each, least / each);
            rows.push(Row::share(what, "positions/s", speed, LIMIT, ratio));
            Ok::<(), Box<dyn Error>>(())
        };
    // The first pass also warms the page cache.
    limit(&logs, 1.0)?;
    line(LIMIT, positions, &mut || limit(&logs, 1.0))?;
    let iid = [SchemeName::WITH_REPLACEMENT];
    let closed = [
        SchemeName::WITH_REPLACEMENT,
        SchemeName::DISTINCT_CONDITIONED,
        SchemeName::GREEDY,
        SchemeName::HUB,
    ];
    let rules = [
        VerifierName::RRS,
        VerifierName::K_SEQ,
        VerifierName::GREEDY,
        VerifierName::SPECHUB,
    ];
    let (everything, all) = (Settings::schemes(), Settings::verifiers());
    let level = [VerifierName::LEVEL];
    let sequential = [SchemeName::WITHOUT_REPLACEMENT];
    // What has a fast way and a slow one is measured both ways, in one run.
    let slow = "rrs-wo enclosed";
    let every_plan = "at every position";
    let parts: [(&str, &[SchemeName], &[VerifierName]); 11] = [
        ("alpha* with replacement", &iid, &[]),
        ("alpha* of all schemes but sequential draws", &closed, &[]),
        ("the same with rrs, k-seq, greedy, spechub", &closed, &rules),
        (
            "sequential draws: alpha* and naive",
            &sequential,
            &[VerifierName::EXACT_MATCH],
        ),
        (
            "sequential draws: alpha* and rrs-wo",
            &sequential,
            &[VerifierName::RRS_WO],
        ),
        (
            "sequential draws: alpha* and rrs-wo enclosed",
            &sequential,
            &[VerifierName::RRS_WO],
        ),
        ("with replacement: alpha* and the level plan", &iid, &level),
        (
            "with replacement: alpha* and the level plan at every position",
            &iid,
            &level,
        ),
        ("everything", &everything, &all),
        ("everything, plans at every position", &everything, &all),
        ("everything, rrs-wo enclosed", &everything, &all),
    ];
    let is_one = parts.iter().any(|one| one.0 == part);
    for (what, schemes, verifiers) in parts {
        if !what.contains(&part) || is_one && what != part {
            continue;
        }
        let mut settings = Settings::new(&[1.0], &DRAFTS, 0)?;
        settings.schemes = schemes.to_vec();
        settings.verifiers = verifiers.to_vec();
        if what.ends_with(slow) {
            settings.rrs_wo = SlowRates::Enclosed;
        }
        if what.ends_with(every_plan) {
            settings.plans = SolvedPlans::Every;
        }
        line(what, positions, &mut || {
            measure(&logs, &settings, "", &|_| {})?;
            Ok(())
        })?;
    }
    if writing {
        let remark = format!(
            "{positions} positions of full f16 rows, V = {}, T = 1, n = {DRAFTS:?}, \
             {} threads, peak memory {}",
            results::thousands(VOCAB),
            rayon::current_num_threads(),
            peak()
        );
        results::write("gap", None, Some(remark), rows)?;
    }
    drop(logs);
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch)?;
    }
    Ok(())
}
