//! Plans by level with one number a token, and the selection of one of several paths.
//!
//! It knows no problem and no draft law: it takes rows and numbers of drafts.
//!
//! A plan that lists sets ends near V = 2000. A [`LevelPlan`] has one number a token, at any V,
//! for any number of i.i.d. drafts; [`LevelPasses`] are for stratified drafts.

mod error;
mod level;
mod selection;
mod thinning;

pub use error::PlanError;
pub use level::{
    Asked, AskedBetween, Children, Drafted, Offered, OfferedBetween, OfferedLists, OfferedRows,
    Offers,
};
pub use level::{
    ClockPasses, Falling, Interiors, LevelPasses, LevelPlan, LevelRates, Levels, RatioOrder,
};
pub use level::{Heaviest, Home, SURE_BITS, Straddle, Straddler, Strata};
pub use level::{ListedRates, ListedRows, listed_rates};
pub use level::{SYMMETRIC_LEVELS, SymmetricPasses};
pub use selection::{RatioBins, Selection, even_selection};
pub use thinning::{PlanLaw, Verdict};

#[cfg(test)]
mod tests;
