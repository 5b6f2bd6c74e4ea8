//! Draft sampling schemes: the law D(X) of the draft tuple X = (x_1..x_n).
//!
//! A scheme knows four things about its law: its tuples one by one, the law of
//! the *set* A(X) of distinct tokens (which is all that the optimum depends on),
//! `Q(H) = P(every draft lies in H)`, and Q along a chain of growing H. Each in
//! `f64` with a stated error, and exactly.
//!
//! [`LAWS`] is the list of all laws; each file ends in its entry.
//!
//! `without-replacement` and `distinct-conditioned` are **different laws**. The
//! first is n draws one after another (Hu et al., eq. 6; the Plackett-Luce law), the
//! second is the law whose Q is the ratio of elementary symmetric polynomials
//! that the same paper uses to compute the optimum (sec. 4.2.2). For
//! q = (.5, .3, .2) and n = 2 the pair {0,1} has probability 0.514286 under the
//! first and 0.483871 under the second. Neither stands in for the other here.
//!
//! **Small supports.** A scheme whose drafts are distinct returns the whole
//! support of q when that holds fewer than n tokens; tuples are then shorter
//! than n.

mod combinations;
mod composed;
mod distinct_conditioned;
mod engines;
mod explicit;
mod explicit_error;
mod greedy;
mod hub;
mod law;
mod product;
mod race;
mod score;
mod set_law;
mod strata_rows;
mod stratified;
mod surjection;
mod table;
mod top;
mod with_replacement;
mod without_replacement;

pub use composed::{
    Composed, Composition, CompositionError, CompositionFault, Draws, MOST_LEVELS, MOST_PARTS,
    most_probable, nucleus,
};
pub use distinct_conditioned::DistinctConditioned;
pub use engines::{ENGINES, Engine, EngineName, Here};
pub use explicit::Explicit;
pub use explicit_error::ExplicitError;
pub use greedy::Greedy;
pub use hub::Hub;
pub use law::{
    DraftScheme, Drafting, LARGEST_CHECKED_SET, Law, MadeOf, NextDraft, OnRow, PartsToLaw,
    PrefixScan, SchemeName, TuplesToLaw,
};
pub use product::Product;
pub use score::{Score, Scores, Term};
pub use set_law::{ExactSetLaw, SetFamily, SetLaw, UNDERFLOW};
pub use stratified::{Share, Straddle, Strata, Stratified};
pub use table::{LAWS, UnknownScheme};
pub use top::Top;
pub use with_replacement::WithReplacement;
pub use without_replacement::WithoutReplacement;

pub use combinations::choose;
pub use engines::{drafted_by, engines_with};
pub(crate) use law::{Probability, likeliest};
use law::{only_likeliest, without};
use set_law::set_of;
pub(crate) use strata_rows::{given, limit, listed, ordered, passes};

use specgap_number::distribution::token_id;

#[cfg(test)]
mod by_hand_tests;
#[cfg(test)]
pub(crate) mod tests;
