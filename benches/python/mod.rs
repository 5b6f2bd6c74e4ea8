//! Baselines in Python: a script of `benches/`, run on instances given as JSON.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `benches/SCRIPT` by the Python that `SPECGAP_PYTHON` names: `input` goes
/// to its standard input, and what it prints is returned. `None` if there is no
/// Python, or with a line on standard error if it fails.
pub fn run(script: &str, arguments: &[String], input: &[Value]) -> Option<Value> {
    let python = std::env::var("SPECGAP_PYTHON").ok()?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("benches")
        .join(script);
    let answer = || -> std::io::Result<Value> {
        let mut child = Command::new(&python)
            .arg(&path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let text = serde_json::to_vec(input)?;
        let pipe = child.stdin.take();
        // The script may answer before it has read everything.
        let writer = std::thread::spawn(move || pipe.map_or(Ok(()), |mut p| p.write_all(&text)));
        let output = child.wait_with_output()?;
        // What it printed says more than a pipe that it closed.
        let _ = writer.join();
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    answer()
        .map_err(|error| eprintln!("{python} {}: {error}", path.display()))
        .ok()
}
