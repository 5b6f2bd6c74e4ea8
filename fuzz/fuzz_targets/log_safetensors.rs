//! Any bytes as a `.safetensors` log: read to the end or refused, never a panic.
#![no_main]

mod read;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read::as_log("fuzz.safetensors", bytes));
