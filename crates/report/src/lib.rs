//! Results as people and programs read them: pure functions from a result to
//! text. Nothing here computes.
//!
//! A report becomes a [`Page`](specgap_page::Page). Each report has one place that decides what stands on its page
//! and in which order.

mod advice;
pub mod audit;
pub mod block;
mod cautions;
mod certainty;
pub mod check;
pub mod cite;
mod columns;
pub mod compare;
pub mod counters;
mod draft_paths;
pub mod drafter;
mod files;
mod fractions;
pub mod gap;
mod junit;
pub mod length;
pub mod paths;
mod pictures;
mod points;
mod positions;
pub mod problems;
pub mod relaxed;
mod replayed;
mod sections;
pub mod solve;
pub mod tree;
pub mod verify;

pub use cautions::strange_words;
pub use fractions::exact_or_decimal;
pub use positions::CsvTable;

pub use specgap_exact::evaluate::JSON_SCHEMA;
