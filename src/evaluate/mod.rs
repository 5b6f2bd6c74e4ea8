//! A problem is answered by every method that fits.

mod names;

pub use names::{UnknownName, check_names};
