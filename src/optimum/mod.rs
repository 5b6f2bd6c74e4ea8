//! The optimal acceptance rate alpha*, one file per algorithm.
//!
//! Everything rests on one identity (Hu et al., eq. 8):
//!
//! ```text
//! alpha* = 1 + min over subsets H of [ P(H) - Q(H) ]
//! ```
//!
//! with `P(H)` the target's mass of H and `Q(H)` the probability that every
//! draft lies in H. The minimum is a minimum cut, and the flow that meets it is
//! an optimal plan.

mod best;
pub mod closed_form;
mod costs;
pub mod enumeration;
pub mod flow;
mod instance;
pub mod ratio_scan;
pub mod submodular;
pub mod thresholds;

pub use best::{NoMethod, best};
pub use instance::{Capacity, Instance, ScaledInstance};

use crate::known::Known;

/// What an algorithm found: alpha* and a subset that proves its upper bound.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// alpha*.
    pub rate: Known,
    /// A minimiser H of P - Q, ascending, where the algorithm yields one.
    pub subset: Option<Vec<usize>>,
    /// Anything a reader must know about the result.
    pub note: Option<String>,
}
