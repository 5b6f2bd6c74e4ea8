//! What several draft paths could give, and what verifiers get of it, from one log.

mod agreeing;
mod bounds;
mod fitted;

pub use bounds::{
    accepted_of_draft, lower_bound_of_draft, lower_bound_of_text, sets_bound, sets_of_text,
};
