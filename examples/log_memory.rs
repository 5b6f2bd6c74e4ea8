//! Writes a log of any size and reads all of it, and prints the peak memory.
//!
//! ```text
//! cargo run --release --example log_memory -- DIRECTORY [POSITIONS] [V]
//! ```
//!
//! 24,000 positions at V = 49,152 make 4.7 GB of f16 rows. The directory is
//! left behind.

use specgap::log::{Layout, Log, LogWriter, Metadata, Position, Row};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Peak resident memory in MiB; Linux says it.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes / 1024.0)
}

fn report(what: &str, positions: usize, bytes: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what}: {positions} positions, {:.2} GB, {seconds:.1} s, {:.2} GB/s, peak memory {}",
        bytes as f64 / 1e9,
        bytes as f64 / 1e9 / seconds,
        peak().map_or("unknown".to_owned(), |mib| format!("{mib:.0} MiB"))
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("name a directory to write")?;
    let number = |index: usize, default: usize| {
        arguments
            .get(index)
            .map_or(Ok(default), |text| text.parse())
    };
    let positions = number(1, 24_000)?;
    let vocabulary = number(2, 49_152)?;
    let path = Path::new(directory);

    let start = Instant::now();
    let mut writer = LogWriter::create(path, Metadata::default(), Layout::new(vocabulary))?;
    let mut state = 1u32;
    let mut row = vec![0.0f32; vocabulary];
    for n in 0..positions {
        for x in &mut row {
            // An ordinary linear congruence; only the size matters here.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *x = (state >> 8) as f32 / 1e6 - 8.0;
        }
        let at = n as i64;
        writer.append(&Position {
            prompt_id: at / 64,
            position: at % 64,
            token: at % vocabulary as i64,
            target: &row,
            draft: &row,
        })?;
        if n % 256 == 255 {
            writer.commit()?;
        }
    }
    writer.commit()?;
    drop(writer);
    let bytes = positions * vocabulary * 4;
    report("write", positions, bytes, start);

    let start = Instant::now();
    let log = Log::open(path)?;
    let mut read = Row::default();
    let mut largest = f64::NEG_INFINITY;
    for span in log.spans(64) {
        let chunk = log.chunk(&span)?;
        for position in chunk.positions() {
            chunk.read(position, &mut read)?;
            largest = read.target.iter().copied().fold(largest, f64::max);
        }
    }
    report("read and check", log.positions(), bytes, start);
    println!("largest logit {largest}");
    Ok(())
}
