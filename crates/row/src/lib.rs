//! Questions to one row of p and q at any vocabulary: scans, overlaps, rates, with bounds.
//!
//! It knows no law or rule by its name, and no file: laws and rules ask it, by numbers.

pub mod row;
