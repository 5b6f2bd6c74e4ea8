//! Loops over all entries of a logged row: their types, what they may be, what is summed over them.
//!
//! It knows no file, no model and no rule. A row has as many entries as the vocabulary has tokens,
//! so this member is compiled for speed in every profile, and those around it need not be: a loop
//! over a row belongs here or into `number`.
//!
//! An entry belongs to a token.

mod dtype;
mod faults;
mod guard;
mod likeliest;
mod moments;
mod order;

pub use dtype::{Dtype, Scratch};
pub use faults::{first_negative, first_not_legal, sum, sum_of_exp};
pub use guard::{Form, FormGuard};
pub use likeliest::Likeliest;
pub use moments::Moments;
pub use order::{common, descending};
