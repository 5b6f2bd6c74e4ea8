//! Throughput of `specgap length` against reading the two numbers of each token.
//!
//!     cargo bench --bench text            a generated table of 200,000 tokens
//!     cargo bench --bench text -- 1000000
//!
//! Every line is the best of three runs on one thread: tokens a second, and the time of reading as a
//! share of the run's. Peak memory only grows, so that each line's is the most until then.
//!
//! `SPECGAP_WRITE_RESULTS=1` writes the lines to `benches/results.json`, if they are of the table as
//! it comes.

mod results;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use results::{Row, peak};
use specgap::import::open_tokens;
use specgap::log::Log;
use specgap::replay::{LengthSettings, Policy, Texts, measure_lengths};
use specgap::rounds::ChainRule;
use std::error::Error;
use std::fmt::Write;
use std::time::Instant;

const TOKENS: usize = 200_000;
const TEXT: usize = 200;
const LIMIT: &str = "reading the log";

/// Texts of 200 tokens, each drawn from p of eight, of which q gives min(p, q) some .84 in all.
fn generate(tokens: usize) -> Result<String, std::fmt::Error> {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut table = "prompt,position,logp,logq\n".to_owned();
    for n in 0..tokens {
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let logits = [(); 8].map(|()| 3.0 * normal());
        let near = logits.map(|logit| logit + 0.8 * normal());
        let sums = [logits, near].map(|row| row.map(f64::exp).iter().sum::<f64>());
        let mut left = random.random::<f64>() * sums[0];
        let passed = |logit: &&f64| {
            left -= logit.exp();
            left >= 0.0
        };
        let token = logits.iter().take_while(passed).count().min(7);
        writeln!(
            table,
            "{},{},{:.6},{:.6}",
            n / TEXT,
            n % TEXT,
            logits[token] - sums[0].ln(),
            near[token] - sums[1].ln()
        )?;
    }
    Ok(table)
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = std::env::args().skip(1).find(|word| word != "--bench");
    let tokens = asked.as_ref().map_or(Ok(TOKENS), |word| word.parse())?;
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()?;
    let folder = tempfile::tempdir()?;
    let table = folder.path().join("tokens.csv");
    std::fs::write(&table, generate(tokens)?)?;
    let log = open_tokens(&table, None)?;
    println!("| what | s | tokens/s | share of the limit | peak memory so far |");
    println!("| --- | --- | --- | --- | --- |");
    let (mut least, mut rows) = (f64::INFINITY, Vec::new());
    let mut line = |what: &str, run: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
        let mut seconds = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            run()?;
            seconds = seconds.min(start.elapsed().as_secs_f64());
        }
        // The first line's.
        least = if least.is_finite() { least } else { seconds };
        let (speed, ratio) = (tokens as f64 / seconds, least / seconds);
        println!(
            "| {what} | {seconds:.3} | {speed:.0} | {:.1}% | {} |",
            100.0 * ratio,
            peak()
        );
        rows.push(Row::share(what, "tokens/s", speed, LIMIT, ratio));
        Ok::<(), Box<dyn Error>>(())
    };
    let logs: [Log; 1] = [log];
    line(LIMIT, &mut || {
        Texts::read(&logs, None, &|_| {})?;
        Ok(())
    })?;
    let one = LengthSettings {
        policies: vec![Policy::fixed(4)],
        verifiers: vec![ChainRule::TOKEN],
        ..LengthSettings::default()
    };
    for (what, settings) in [
        ("length: 4 drafts, token verification", one),
        ("length as it comes", LengthSettings::default()),
    ] {
        line(what, &mut || {
            measure_lengths(&logs, &settings, "", &|_| {})?;
            Ok(())
        })?;
    }
    line("opening the table of numbers as text", &mut || {
        open_tokens(&table, None)?;
        Ok(())
    })?;
    if results::wanted() && asked.is_none() {
        let remark = format!(
            "{} tokens in texts of {TEXT}, two numbers each, one thread, peak memory {}",
            results::thousands(tokens),
            peak()
        );
        results::write("text", None, Some(remark), rows)?;
    }
    Ok(())
}
