//! From what servers count to acceptance lengths of every draft length.
//!
//! A server counts how many of its rounds of K drafts accept at least i of them, for every i. Rounds of k
//! drafts would start at other places; what follows for them is told with the range that the counts
//! leave open, which is one number where k + 1 divides K + 1. Where each round of each request is
//! listed, almost every coin is known, and rounds of k drafts are replayed along the same text.
//!
//! [`count()`] reads files of tools, and [`predict()`] says what follows.
//!
//! # Example
//! ```
//! use specgap_counters::counters::{Costs, Kind, Settings, Text, count, predict};
//! let text = r#"{"metrics": {"speculative_decoding": {"acceptance_histogram": [39, 1, 0, 3],
//!     "num_spec_steps": 43, "num_accepted_draft_tokens": 10, "num_draft_tokens": 129,
//!     "num_spec_tokens": 3}}}"#;
//! let counted = count(&[Text { name: "response.json", text }], None, &[])?;
//! let settings = Settings { costs: Some(Costs::ratio(0.05)), up_to: Some(3), ..Settings::default() };
//! let report = predict(&counted, &settings);
//! let lengths = &report.lengths;
//! assert_eq!((lengths[2].length, lengths[2].kind), (3, Kind::Counted));
//! assert!((lengths[2].acceptance_length.mean - (1.0 + 10.0 / 43.0)).abs() < 1e-12);
//! // With three drafts at 5% each a round takes 1.15 steps, and with two 1.1: its range holds what is quicker.
//! let best = report.best.unwrap();
//! assert_eq!((best.length, best.kind), (2, Kind::Runs));
//! # Ok::<(), specgap_counters::counters::CountersError>(())
//! ```

mod best;
mod changes;
mod counted;
mod data;
mod definitions;
mod notes;
mod predict;
mod readers;
mod runs;
mod steps;

pub use best::{Costs, Settings, cost_of_throughput};
pub use counted::{Counted, CountersError, MOST_DRAFTS, Rounds, Source, Step};
pub use data::{
    AtBatch, AtCost, AtLength, Best, COUNTERS_SCHEMA, CountersReport, GroupCounts, Kind, Note,
    Served, TokensARound,
};
pub use definitions::{ToolDefinition, counters_definitions, tool_definitions};
pub use predict::predict;
pub use readers::{Text, count, throughput};
