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

pub use best::{NoMethod, best, on_row, row_question};
pub use instance::{Capacity, Instance, ScaledInstance};

use specgap_number::known::Known;

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

/// A problem of i.i.d. drafts.
#[cfg(test)]
pub(crate) fn iid(p: &[f64], q: &[f64], drafts: usize) -> crate::problem::Problem {
    use specgap_number::distribution::{Draft, Target};
    let law = crate::scheme::WithReplacement::new(Draft::new(q).unwrap(), drafts);
    crate::problem::Problem::new("small", Target::new(p).unwrap(), law).unwrap()
}

/// Fractions as they are written.
#[cfg(test)]
pub(crate) fn fractions(texts: &[&str]) -> Vec<specgap_number::distribution::Rational> {
    let parse = |text: &&str| specgap_number::distribution::parse_rational(text).unwrap();
    texts.iter().map(parse).collect()
}

/// Equal entries, which sum to 1, and one more of 2^-`bits`: fractions of about as many bits.
#[cfg(test)]
pub(crate) fn row_of_bits(vocab: usize, light: usize, bits: i32) -> Vec<f64> {
    let mut row = vec![1.0 / (vocab - 1) as f64; vocab];
    row[light] = 2f64.powi(-bits);
    row
}

/// The next number below `below` of a stream that is the same on every machine.
#[cfg(test)]
pub(crate) fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    (*state >> 33) % below
}
