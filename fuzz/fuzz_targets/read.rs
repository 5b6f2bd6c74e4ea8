//! What every target does with its bytes.

use specgap::log::{Log, Row};
use std::path::Path;
use std::sync::Arc;

/// Opens bytes as the log of a file of this name and reads its first spans.
pub fn as_log(name: &str, bytes: &[u8]) {
    let Ok(log) = Log::from_bytes(Path::new(name), Arc::from(bytes)) else {
        return;
    };
    let mut row = Row::default();
    for span in log.spans(8).into_iter().take(16) {
        let Ok(chunk) = log.chunk(&span) else {
            continue;
        };
        for position in chunk.positions() {
            let _ = chunk.read(position, &mut row);
        }
    }
}
