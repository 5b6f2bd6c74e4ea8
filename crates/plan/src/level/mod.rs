//! Plans by level: what is left of the target over what is left of the draft, largest first.
//!
//! A token's survival falls from 1. The tokens with the largest ratio of target left to draft
//! left run, and equal ones stay equal, until nothing is left to run: [`LevelPlan`] is that
//! rule for i.i.d. drafts in closed form, and it reaches alpha\*. `docs/theory/` has the proof.

mod audit;
mod cells;
mod clocks;
mod cut;
mod iid;
mod interiors;
mod lists;
mod offers;
mod passes;
mod rates;
mod strata;
mod sweep;
mod symmetric;
mod trace;

pub use clocks::ClockPasses;
pub use cut::{ListedRates, ListedRows, listed_rates};
pub use iid::{LevelPlan, RatioOrder};
pub use interiors::{Falling, Interiors};
pub use lists::{AskedBetween, OfferedBetween, OfferedLists};
pub use offers::{Asked, Children, Drafted, Offered, OfferedRows, Offers};
pub use passes::{LevelPasses, Levels};
pub use rates::LevelRates;
pub use strata::{Heaviest, Home, SURE_BITS, Straddle, Straddler, Strata};
pub use symmetric::{SYMMETRIC_LEVELS, SymmetricPasses};

#[cfg(test)]
mod clocks_tests;
#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod iid_tests;
#[cfg(test)]
mod passes_tests;
#[cfg(test)]
mod symmetric_tests;
