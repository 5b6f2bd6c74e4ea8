//! Entries of a row, one a token: their type, what they may be, sums and moments over them.

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
