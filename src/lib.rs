//! specgap
#![forbid(unsafe_code)]
#![deny(missing_docs)]
pub mod distribution;
pub mod lp;
pub mod optimum;
mod panics;
pub mod problem;
pub mod scheme;
pub use panics::install_panic_hook;
use panics::quiet_panics;
