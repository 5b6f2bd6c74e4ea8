//! Means over positions that come in clusters, what can be said of them, and what may be advised.
//!
//! It knows no row and no log: what is summed is for others.

pub mod advice;
pub mod curve;
pub mod statistics;

pub use statistics::{Clustered, Estimate, holm};
