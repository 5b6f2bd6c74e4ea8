//! Rows of a log as probabilities: temperature, lists, truncation.
//!
//! It knows no rule and no report.
//!
//! Logged rows as a sampler has them: probabilities at a temperature, cut to the tokens that
//! it keeps, and what is known of the tokens that a row does not list.

mod cuts;
mod lists;
mod served;

pub use cuts::{Cut, Cuts};
pub use lists::{Lists, Model, probabilities};
pub use served::{Logged, Room, Serving};
pub use specgap_log::log::CutOrder;
