//! Any bytes as a `.npz` log: read to the end or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use specgap::log::{Log, Row};
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let Ok(log) = Log::from_bytes(Path::new("fuzz.npz"), Arc::from(bytes)) else {
        return;
    };
    let mut row = Row::default();
    for span in log.spans(8).into_iter().take(16) {
        let Ok(chunk) = log.chunk(&span) else { continue };
        for position in chunk.positions() {
            let _ = chunk.read(position, &mut row);
        }
    }
});
