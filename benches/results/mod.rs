//! What benches measured: `benches/results.json`, from which README's tables are made.
//!
//! With `SPECGAP_WRITE_RESULTS=1` in the environment a bench puts its rows into that file
//! in place of those that it put there before; rows of other benches stay.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub schema: u32,
    /// By the name of the bench.
    pub benches: BTreeMap<String, Run>,
}

/// One run of a bench.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Year, month and day of the run, in UTC.
    pub date: String,
    /// The processor and how many threads it ran at once.
    pub machine: String,
    /// Versions of the programs that are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// What a reader of the numbers should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    pub rows: Vec<Row>,
}

/// One number of specgap's, beside that of one baseline if there is one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What is computed, of what size. Rows of one name differ in what follows.
    pub row: String,
    /// Which of specgap's ways was timed.
    pub way: String,
    /// The unit of `ours` and `theirs`.
    pub unit: String,
    pub ours: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs: Option<Span>,
    /// `ours` over `theirs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Span>,
    /// What stands in the place of a number, or explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Row {
    /// A speed of specgap's as a share of a limit's.
    // Not all benches have one.
    #[allow(dead_code)]
    pub fn share(what: &str, unit: &str, speed: f64, limit: &str, share: f64) -> Self {
        Self {
            row: what.to_owned(),
            way: "specgap".to_owned(),
            unit: unit.to_owned(),
            ours: Span(speed, speed),
            baseline: Some(limit.to_owned()),
            theirs: None,
            ratio: Some(Span(share, share)),
            note: None,
        }
    }
}

/// The least and the greatest of some measurements; twice the same of a single one.
#[derive(Serialize, Deserialize, Clone, Copy)]
pub struct Span(pub f64, pub f64);

#[cfg_attr(test, allow(dead_code))]
impl Span {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let none = Self(f64::INFINITY, f64::NEG_INFINITY);
        let wider = |span: Self, value: f64| Self(span.0.min(value), span.1.max(value));
        values.into_iter().fold(none, wider)
    }
}

/// A whole number with commas.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Where the file is.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/results.json")
}

/// Reads the file.
pub fn read() -> std::io::Result<Results> {
    Ok(serde_json::from_slice(&std::fs::read(path())?)?)
}

/// Whether the rows of this run are to be written.
#[cfg_attr(test, allow(dead_code))]
pub fn wanted() -> bool {
    std::env::var_os("SPECGAP_WRITE_RESULTS").is_some()
}

/// Puts the rows of `bench` into the file.
#[cfg_attr(test, allow(dead_code))]
pub fn write(
    bench: &str,
    software: Option<String>,
    remark: Option<String>,
    rows: Vec<Row>,
) -> std::io::Result<()> {
    let mut results = read()?;
    let run = Run {
        date: today(),
        machine: machine(),
        software,
        remark,
        rows,
    };
    results.benches.insert(bench.to_owned(), run);
    let text = serde_json::to_string_pretty(&results)?;
    std::fs::write(path(), text + "\n")?;
    println!(
        "\nWritten to benches/results.json; SPECGAP_WRITE_DOCUMENTS=1 cargo test --lib documents\n\
         puts it into docs/project/speed.md."
    );
    Ok(())
}

/// Peak resident memory in MiB; Linux says it.
// Not all benches tell it.
#[allow(dead_code)]
pub fn peak() -> String {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
            let kibibytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(format!("{:.0} MiB", kibibytes / 1024.0))
        })
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The processor in words, without the name of the host; Linux says it.
fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let of = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = of("model name").unwrap_or_else(|| "unknown processor".to_owned());
    let flags = of("flags").unwrap_or_default();
    let wide = match flags.split(' ').any(|flag| flag == "avx512f") {
        true => " with AVX-512",
        false => "",
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}{wide}, {threads} hardware threads")
}

/// Today's date, from the days since 1970-01-01 in the Gregorian calendar.
fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

fn date(mut days: u64) -> (u64, u64, u64) {
    let leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn days_are_counted_as_the_calendar_does() {
        assert_eq!(super::date(0), (1970, 1, 1));
        assert_eq!(super::date(11_016), (2000, 2, 29));
        assert_eq!(super::date(20_778), (2026, 11, 21));
    }
}
