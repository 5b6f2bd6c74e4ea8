//! Every tolerance of this room. Exact numbers have none.
//!
//! # What a problem file expects
//!
//! | field | tolerance if the file states none | a number that is not exact |
//! | --- | --- | --- |
//! | `optimal_acceptance_rate` | 1e-9 | refuses a tolerance of 0, which asks for equal fractions |
//! | `acceptance_rate.*` | 1e-9 | is allowed [`Standard::floor`], 1e-12: some rules have irrational parameters |
//! | of block problems | 1e-7 | is held to the tolerance as it is |

/// What a plain float may be off, as the value of a linear program or a law in `f64`.
pub const FLOAT_TOLERANCE: f64 = 1e-9;

/// Largest residual of an optimality condition of a linear program whose answer counts.
pub const PROGRAM_TOLERANCE: f64 = 1e-9;

/// Widest certified enclosure that says anything: a wider one is a complaint.
pub const WIDEST_CERTIFIED: f64 = 1e-6;

/// Largest total variation at which a rule summed in `f64` counts as lossless:
/// above the rounding of the largest sums that are done (3e6 terms), below any
/// known error of a rule.
pub const LOSSLESS_TOLERANCE: f64 = 1e-11;

/// Largest total variation at which the law of a block's output counts as lossless: its sums are
/// shorter than those of a step.
pub const LOSSLESS_BLOCK_TOLERANCE: f64 = 1e-12;

/// How closely a number must meet what a problem file expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard {
    /// Tolerance where the file states none.
    pub default: f64,
    /// Least tolerance of a number that is not exact; `None` if it cannot meet a
    /// tolerance of 0 at all.
    pub floor: Option<f64>,
}

impl Standard {
    /// Of alpha*.
    pub const OPTIMUM: Self = Self {
        default: 1e-9,
        floor: None,
    };
    /// Of a verifier's membership acceptance.
    pub const ACCEPTANCE: Self = Self {
        default: 1e-9,
        floor: Some(1e-12),
    };
    /// Of a number of a block problem.
    pub const BLOCK: Self = Self {
        default: 1e-7,
        floor: Some(0.0),
    };
}
