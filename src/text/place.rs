//! A position of a text.

/// What is known of the tokens that a position's rows do not list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// There are none.
    #[default]
    None,
    /// Their masses, and that none is heavier than a listed one. Both rows list the same.
    Known {
        /// How many tokens that are listed have more of q than any that is not.
        heaviest: usize,
    },
    /// Less than that.
    Open,
}

/// What is known of a position of a text: of the token y that was put out there, and of the
/// two rows that predict it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// q(y)/p(y).
    pub ratio: f64,
    /// q(y).
    pub draft: f64,
    /// The largest probability of q.
    pub top: f64,
    /// The entropy of q in nats.
    pub entropy: f64,
    /// sum of min(p, q).
    pub overlap: f64,
    /// The probability that a head predicts for y to be accepted, if the log has it.
    pub head_acceptance: Option<f64>,
    /// The overlap that a head predicts, if the log has it.
    pub head_overlap: Option<f64>,
    /// Both rows list y.
    pub listed: bool,
    /// Bounds on q(y)/p(y), whatever the tokens are that the rows do not list.
    pub ratio_bounds: [f64; 2],
    /// -ln p(y).
    pub surprise: f64,
    /// What -ln p(y) is on average over y ~ p, and its variance.
    pub expected_surprise: [f64; 2],
    /// What the two rows do not list of p and q.
    pub unlisted: [f64; 2],
    /// What is known of the tokens that the rows do not list.
    pub rest: Rest,
}
