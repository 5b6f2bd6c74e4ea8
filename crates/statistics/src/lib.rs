//! Means over positions that come in clusters, what can be said of them, and what may be advised.
//!
//! It knows no row and no log: what is summed is for others.

pub mod advice;
pub mod curve;
mod halves;
pub mod statistics;

pub use halves::half_of;
pub use statistics::{Clustered, Estimate, holm};
