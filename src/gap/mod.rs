//! The gap of every verifier to its optimum, over logged rows.

mod data;

pub use data::{
    BlockEstimate, Cell, Comparison, Estimate, FormulaError, Gap, GapReport, HISTOGRAM_EDGES,
    LogSummary, Optimum, OverlapRow, RestMass, SCHEMA, Strip, StripText, StripToken, VerifierRow,
};
