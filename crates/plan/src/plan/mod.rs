//! Optimal plans: which output each draft tuple leads to.
//!
//! A plan that lists sets ends near V = 2000. A [`TokenPlan`] has one weight a token, at any
//! V: for any number of i.i.d. drafts, and for up to [`MOST_SEQUENTIAL_DRAFTS`] sequential
//! draws without replacement.

mod families;
mod iid;
mod level;
mod log_bins;
mod measurement;
mod selection;
mod sequential;
mod thinning;
mod token_plan;

pub use iid::Rising;
pub use level::{Home, Straddle, Straddler, Strata};
pub use level::{LevelPasses, LevelPlan, Levels, RatioOrder};
pub use level::{ListedRates, ListedRows, listed_rates};
pub use level::{SYMMETRIC_LEVELS, SymmetricPasses};
pub use measurement::{PlanMeasurement, measure};
pub use selection::{RatioBins, Selection, even_selection};
pub use thinning::{PlanLaw, Verdict};
pub use token_plan::Attained;
pub use token_plan::{
    Draws, MOST_SEQUENTIAL_DRAFTS, PlanError, PlanSettings, PlanStatus, TokenPlan,
};

#[cfg(test)]
mod steps_tests;
#[cfg(test)]
mod tests;
