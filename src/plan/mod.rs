//! Optimal plans: which output each draft tuple leads to.
//!
//! A [`TransportPlan`] says how much of each *set* of draft tokens is accepted as
//! which token. It leaves p_res of the target and D_res of the sets unused, of
//! equal total mass, and [`Coupling::extend`] joins those independently:
//!
//! ```text
//! C[i, X] = S[X, i] + p_res(i) D_res(X) / mass
//! ```
//!
//! which is a coupling of p and D with the same acceptance (SpecHub, Theorem 1).
//!
//! A plan that lists sets ends near V = 2000. A [`TokenPlan`] has one weight a token, at any
//! V: for any number of i.i.d. drafts, and for up to [`MOST_SEQUENTIAL_DRAFTS`] sequential
//! draws without replacement.

mod families;
mod iid;
mod log_bins;
mod measurement;
mod selection;
mod sequential;
mod thinning;
mod token_plan;
mod transport;

pub(crate) use iid::Rising;
pub use measurement::{PlanMeasurement, measure};
pub use selection::{RatioBins, Selection, even_selection};
pub use thinning::{PlanLaw, Verdict};
pub(crate) use token_plan::Attained;
pub use token_plan::{
    Draws, MOST_SEQUENTIAL_DRAFTS, PlanError, PlanSettings, PlanStatus, TokenPlan,
};
pub(crate) use transport::distinct;
pub use transport::{Coupling, PlanMasses, Rounding, TransportPlan};

#[cfg(test)]
mod steps_tests;
#[cfg(test)]
mod tests;
