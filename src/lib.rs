//! specgap
#![forbid(unsafe_code)]
#![deny(missing_docs)]
pub mod certify;
pub mod cli;
pub mod distribution;
pub mod enclosure;
pub mod lp;
pub mod optimum;
mod panics;
pub mod plan;
pub mod problem;
pub mod report;
pub mod scheme;
pub mod solve;
pub use panics::install_panic_hook;
use panics::quiet_panics;
