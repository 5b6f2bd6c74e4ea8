//! Two models run by ONNX Runtime: rows logged, texts decoded live.
//!
//! Only this member knows ONNX Runtime and tokenizers; everything else builds without.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod capture;
