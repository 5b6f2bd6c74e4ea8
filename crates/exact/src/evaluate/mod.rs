//! A problem is answered by every method that fits, and the result is its own JSON.
//!
//! | function | asks | result |
//! | --- | --- | --- |
//! | [`solve`] | alpha* by every method; [`specgap_core::certify`] recomputes the answer | [`Solution`] |
//! | [`verify`] | what every verifier accepts, and whether it is lossless | [`Verification`] |
//! | [`enclose`] | alpha* from one run of the level rule; its set is checked in fractions | [`Enclosure`] |
//! | [`block`] | the block optimum, bounds, and every block verifier's law | [`BlockEvaluation`] |
//!
//! They share one [`Outcome`] of a method, one [`Agreement`] between numbers, one
//! [`Expectation`] of the problem file, and one word for all is well:
//! [`Evaluated::is_ok`].

mod agreement;
mod block;
mod direct;
mod enclosure;
mod evaluated;
mod expectation;
mod json;
mod method;
mod names;
mod outcome;
mod programs;
mod proof;
mod rule;
mod solve;
mod summed;
mod tolerances;
mod verify;

pub use agreement::Agreement;
pub use block::{BlockEvaluation, BlockLaw, BlockVerification, OptimumMethod, block};
pub use enclosure::{Enclosure, EnclosureError, enclose};
pub use evaluated::Evaluated;
pub use expectation::Expectation;
#[cfg(feature = "schema")]
pub use json::{Block, Solve, Verify};
pub use json::{JSON_SCHEMA, NotTaken};
pub use method::{Answer, Limits, Method, MethodRun};
pub use names::{UnknownName, check_names};
pub use outcome::{Outcome, Reported};
pub use proof::{Basis, Proof};
pub use rule::RuleVerification;
pub use solve::{SiblingLaw, Solution, solve};
pub use tolerances::{
    FLOAT_TOLERANCE, LOSSLESS_BLOCK_TOLERANCE, LOSSLESS_TOLERANCE, PROGRAM_TOLERANCE, Standard,
    WIDEST_CERTIFIED,
};
pub use verify::{Assessment, Measured, Verification, verify, verify_with};
