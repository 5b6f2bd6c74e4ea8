//! Problems, draft laws, verification rules, optima and certificates: the library alone.
//!
//! It knows no log, no report, no program, and needs neither ONNX nor a plotting library.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod certify;
pub mod coupling;
#[doc(hidden)]
pub mod entry_name;
pub mod lp;
pub mod optimum;
pub mod problem;
pub mod rounds;
pub mod rule;
pub mod scheme;
pub mod tree;
pub mod verifier;
