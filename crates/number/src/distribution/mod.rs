//! Distributions over the vocabulary: [`Target`] is always p, [`Draft`] always q.
//!
//! A distribution has two faces. [`Distribution::probabilities`] is the row in
//! `f64`, normalised, every entry within [`PROBABILITY_RELATIVE_ERROR`] of the
//! truth. [`Distribution::exact`] is the same row as integer weights over their
//! sum, with no rounding at all: an `f64` input is the dyadic rational that it
//! is, a fraction from a problem file stays that fraction, and normalising
//! divides by the exact sum.

mod by_ratio;
mod exponential;
mod logits;
mod lowest_terms;
mod rational;
mod sum;

pub use by_ratio::by_rising_ratio;
pub use by_ratio::{RatioCut, Rows};
pub use exponential::{exp_nonpositive, wait_and_ring};
pub use logits::Softmax;
pub(crate) use lowest_terms::{difference, product, quotient, sum};
pub use rational::integer_weights;
pub use rational::{
    MAX_DECIMAL_EXPONENT, MAX_NUMBER_CHARACTERS, ParseRationalError, Rational, exact_value,
    format_rational, parse_rational, ratio, round_down, round_nearest, round_up,
};
pub use sum::{LANES, SplitSum, UnitSum, Wide, for_lanes, running_sums, split_sum, split_sums};
pub use sum::{TwoFloat, compensated_sum};

use multiversion::multiversion;
use num_bigint::{BigInt, BigUint};
use num_traits::float::FloatCore;
use num_traits::{One, Signed, Zero};
use std::ops::Deref;
use std::sync::OnceLock;

/// How far from 1 the entries may sum to and still be normalised instead of
/// refused.
pub const NORMALISATION_TOLERANCE: f64 = 1e-6;

/// Bound on the relative error of every entry of
/// [`Distribution::probabilities`]: the rounding of the sum and of one division.
/// (Entries below 1e-307 also carry an absolute error of 5e-324.)
pub const PROBABILITY_RELATIVE_ERROR: f64 = 1.25 * f64::EPSILON;

/// Probabilities from here on have all their digits after any division by what is left of
/// a row, and a reciprocal in range.
pub const LEAST_PROPORTION: f64 = 1e-280;

/// A row of fractions below that is multiplied by 2 to this.
const PROPORTION_BITS: u32 = 900;

/// The token as the `u32` that tuples and sets hold.
///
/// Vocabularies are checked to fit when a problem is built.
pub fn token_id(token: usize) -> u32 {
    u32::try_from(token).unwrap_or(u32::MAX)
}

/// Why numbers are not a distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// No entries.
    #[error("the vocabulary is empty; give at least one entry")]
    Empty,
    /// An entry that is NaN or infinite: position, from 0; what stands there.
    #[error("entry {0} is {1}; probabilities must be finite")]
    NotFinite(usize, f64),
    /// An entry below zero: position, from 0; what stands there, as text: it may be a fraction.
    #[error("entry {0} is {1}; probabilities must be >= 0")]
    Negative(usize, String),
    /// The entries do not sum to one.
    #[error(
        "the {entries} entries sum to {sum}; they must sum to 1 within {NORMALISATION_TOLERANCE:e}"
    )]
    Sum {
        /// How many entries.
        entries: usize,
        /// Their sum.
        sum: f64,
    },
    /// A logit that is NaN or +inf: position, from 0; what stands there.
    #[error("entry {0} is {1}; logits must be finite or -inf")]
    Logit(usize, f64),
    /// A row of logits with only -inf.
    #[error("every logit is -inf; at least one token must be allowed")]
    AllMasked,
    /// A softmax setting out of range: name of the setting; what it was set to; what it may be.
    #[error("{0} is {1}; it must be {2}")]
    Setting(&'static str, f64, &'static str),
}

/// A row of probabilities as integers: entry i has probability
/// `weights[i] / total`, exactly, and `total` is the sum of the weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactWeights {
    /// Numerators, one a token.
    pub weights: Vec<BigUint>,
    /// Common denominator, equal to the sum of the numerators.
    pub total: BigUint,
}

impl ExactWeights {
    /// Probability of token `token` as a reduced fraction.
    pub fn probability(&self, token: usize) -> Rational {
        ratio(&self.weights[token], &self.total)
    }

    /// Probability of a set of distinct tokens, exactly.
    pub fn mass(&self, tokens: &[usize]) -> Rational {
        let sum: BigUint = tokens.iter().map(|&token| &self.weights[token]).sum();
        ratio(&sum, &self.total)
    }
}

/// Asked this way round, a sum that overflowed to NaN is not.
fn is_near_one(sum: f64) -> bool {
    (sum - 1.0).abs() <= NORMALISATION_TOLERANCE
}

/// Tells whether all entries are finite and at least 0.
#[multiversion(targets = "simd")]
fn are_masses(values: &[f64]) -> bool {
    let is_mass = |value: f64| (0.0..f64::INFINITY).contains(&value);
    (values.iter()).fold(true, |all, &value| all & is_mass(value))
}

/// The error of the first entry that is no mass.
fn refuse_entry(values: &[f64]) -> Result<(), DistributionError> {
    for (index, &value) in values.iter().enumerate() {
        if !value.is_finite() {
            return Err(DistributionError::NotFinite(index, value));
        }
        if value < 0.0 {
            return Err(DistributionError::Negative(index, value.to_string()));
        }
    }
    Ok(())
}

/// Sum of a row whose entries are at most about 1.
#[multiversion(targets = "simd")]
pub fn split_total(values: &[f64]) -> f64 {
    split_sum(values, values, |value, _| value)
}

#[derive(Clone, Debug)]
enum Origin {
    Float(Vec<f64>),
    Rational(Vec<Rational>),
}

/// A validated probability distribution over tokens `0..V`.
///
/// Built only through [`Target`] and [`Draft`], so that a function that needs
/// p cannot be handed q.
#[derive(Clone, Debug)]
pub struct Distribution {
    probabilities: Vec<f64>,
    origin: Origin,
    exact: OnceLock<ExactWeights>,
}

impl Distribution {
    fn from_floats(values: &[f64]) -> Result<Self, DistributionError> {
        if values.is_empty() {
            return Err(DistributionError::Empty);
        }
        if !are_masses(values) {
            refuse_entry(values)?;
        }
        // Entries that sum to about 1 are at most that, as a split sum wants them.
        let mut sum = split_total(values);
        if !is_near_one(sum) {
            sum = compensated_sum(values.iter().copied());
        }
        if !is_near_one(sum) {
            return Err(DistributionError::Sum {
                entries: values.len(),
                // Finite entries >= 0 make no other NaN than an overflow.
                sum: if sum.is_nan() { f64::INFINITY } else { sum },
            });
        }
        // Adding 0.0 turns -0.0 into 0.0.
        let values: Vec<f64> = values.iter().map(|&value| value + 0.0).collect();
        let probabilities = values.iter().map(|&value| value / sum).collect();
        Ok(Self {
            probabilities,
            origin: Origin::Float(values),
            exact: OnceLock::new(),
        })
    }

    fn from_rationals(values: Vec<Rational>) -> Result<Self, DistributionError> {
        if values.is_empty() {
            return Err(DistributionError::Empty);
        }
        for (index, value) in values.iter().enumerate() {
            if value.is_negative() {
                return Err(DistributionError::Negative(index, format_rational(value)));
            }
        }
        let (weights, total) = integer_weights(&values);
        // The sum of the entries is total / common denominator.
        let sum: Rational = values.iter().sum();
        let tolerance = Rational::new(BigInt::one(), BigInt::from(1_000_000));
        if (&sum - Rational::one()).abs() > tolerance {
            return Err(DistributionError::Sum {
                entries: values.len(),
                sum: round_nearest(&sum),
            });
        }
        let probabilities = weights
            .iter()
            .map(|weight| round_nearest(&ratio(weight, &total)))
            .collect();
        let exact = OnceLock::from(ExactWeights { weights, total });
        Ok(Self {
            probabilities,
            origin: Origin::Rational(values),
            exact,
        })
    }

    /// The normalised row, `V` entries in [0, 1], each within
    /// [`PROBABILITY_RELATIVE_ERROR`] of the exact value.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The vocabulary size V.
    pub fn vocab(&self) -> usize {
        self.probabilities.len()
    }

    /// The row as exact integer weights; made on the first call, O(V) big-integer
    /// operations.
    pub fn exact(&self) -> &ExactWeights {
        self.exact.get_or_init(|| match &self.origin {
            Origin::Float(values) => dyadic_weights(values),
            Origin::Rational(values) => {
                let (weights, total) = integer_weights(values);
                ExactWeights { weights, total }
            }
        })
    }

    /// True if every entry was given as a fraction.
    pub fn is_rational(&self) -> bool {
        matches!(self.origin, Origin::Rational(_))
    }

    /// Tokens of probability above zero, ascending.
    pub fn support(&self) -> Vec<usize> {
        (0..self.vocab())
            .filter(|&token| self.is_positive(token))
            .collect()
    }

    /// True if the token has a probability above zero, decided on the input
    /// and not on a rounded quotient.
    pub fn is_positive(&self, token: usize) -> bool {
        match &self.origin {
            Origin::Float(values) => values[token] > 0.0,
            Origin::Rational(values) => values[token].is_positive(),
        }
    }

    /// Bits that one exact numerator may take: the size of the common
    /// denominator. Cheap; used to decide whether exact arithmetic is affordable.
    pub fn exact_bits(&self) -> u64 {
        match &self.origin {
            Origin::Float(values) => {
                let (mut low, mut high) = (i64::MAX, i64::MIN);
                for &value in values.iter().filter(|&&value| value > 0.0) {
                    let (mantissa, exponent) = decode(value);
                    low = low.min(exponent + i64::from(mantissa.trailing_zeros()));
                    high = high.max(exponent + 64 - i64::from(mantissa.leading_zeros()));
                }
                u64::try_from(high.saturating_sub(low)).unwrap_or(0) + 1
            }
            Origin::Rational(_) => self.exact().total.bits(),
        }
    }

    /// The distribution given that only some tokens can be drawn, exactly; `None` if they
    /// have no mass.
    pub(crate) fn restricted(&self, keep: impl Fn(usize) -> bool) -> Option<Self> {
        if !(0..self.vocab()).any(|token| keep(token) && self.is_positive(token)) {
            return None;
        }
        match &self.origin {
            // What is left is divided by its sum wherever it is used, so it needs none of 1.
            Origin::Float(values) => {
                let kept: Vec<f64> = (0..values.len())
                    .map(|token| if keep(token) { values[token] } else { 0.0 })
                    .collect();
                let sum = compensated_sum(kept.iter().copied());
                Some(Self {
                    probabilities: kept.iter().map(|&value| value / sum).collect(),
                    origin: Origin::Float(kept),
                    exact: OnceLock::new(),
                })
            }
            Origin::Rational(_) => {
                let exact = self.exact();
                Self::from_weights(
                    (0..self.vocab())
                        .map(|token| {
                            if keep(token) {
                                exact.weights[token].clone()
                            } else {
                                BigUint::zero()
                            }
                        })
                        .collect(),
                )
            }
        }
    }

    /// Whole-number weights over their sum; `None` if that is zero.
    pub(crate) fn from_weights(weights: Vec<BigUint>) -> Option<Self> {
        let total: BigUint = weights.iter().sum();
        if total.is_zero() {
            return None;
        }
        let values: Vec<Rational> = weights.iter().map(|weight| ratio(weight, &total)).collect();
        Some(Self {
            probabilities: values.iter().map(round_nearest).collect(),
            origin: Origin::Rational(values),
            exact: OnceLock::from(ExactWeights { weights, total }),
        })
    }
}

/// A row up to a factor, for laws that draw from what is left of it: every entry above
/// zero is within [`PROBABILITY_RELATIVE_ERROR`], relative, whatever little the others
/// leave. The probabilities themselves, unless they reach down to where `f64` holds fewer
/// digits.
#[derive(Clone, Debug)]
pub struct Proportions {
    raised: Option<Vec<f64>>,
    is_faithful: bool,
}

impl Proportions {
    /// O(V).
    pub fn of(distribution: &Distribution) -> Self {
        let positive =
            || (0..distribution.vocab()).filter(|&token| distribution.is_positive(token));
        let holds = |row: &[f64]| positive().all(|token| row[token] >= LEAST_PROPORTION);
        if holds(&distribution.probabilities) {
            return Self {
                raised: None,
                is_faithful: true,
            };
        }
        match &distribution.origin {
            // What was given has all its digits before it is divided by its sum.
            Origin::Float(values) => Self {
                raised: Some(values.clone()),
                is_faithful: true,
            },
            Origin::Rational(_) => {
                let exact = distribution.exact();
                let raised = |weight: &BigUint| {
                    round_nearest(&ratio(&(weight << PROPORTION_BITS), &exact.total))
                };
                let row: Vec<f64> = exact.weights.iter().map(raised).collect();
                Self {
                    is_faithful: holds(&row),
                    raised: Some(row),
                }
            }
        }
    }

    /// The row; `distribution` is the one that this was made of.
    pub fn row<'a>(&'a self, distribution: &'a Distribution) -> &'a [f64] {
        (self.raised.as_deref()).unwrap_or(&distribution.probabilities)
    }

    /// False where no factor brings the row into the range of `f64`.
    pub fn is_faithful(&self) -> bool {
        self.is_faithful
    }

    /// A bound on the error of what is derived from the row: none if it has not all digits.
    pub fn vouched(&self, error: f64) -> f64 {
        if self.is_faithful {
            error
        } else {
            f64::INFINITY
        }
    }
}

/// mantissa * 2^exponent of a positive finite `f64`.
fn decode(value: f64) -> (u64, i64) {
    let (mantissa, exponent, _) = value.integer_decode();
    (mantissa, i64::from(exponent))
}

fn dyadic_weights(values: &[f64]) -> ExactWeights {
    let lowest = values
        .iter()
        .filter(|&&value| value > 0.0)
        .map(|&value| {
            let (mantissa, exponent) = decode(value);
            exponent + i64::from(mantissa.trailing_zeros())
        })
        .min()
        .unwrap_or(0);
    let weights: Vec<BigUint> = values
        .iter()
        .map(|&value| {
            if value == 0.0 {
                return BigUint::zero();
            }
            let (mantissa, exponent) = decode(value);
            let shift = exponent - lowest;
            if shift >= 0 {
                BigUint::from(mantissa) << shift.unsigned_abs()
            } else {
                BigUint::from(mantissa >> shift.unsigned_abs())
            }
        })
        .collect();
    let total = weights.iter().sum();
    ExactWeights { weights, total }
}

macro_rules! distribution_role {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Distribution);

        impl $name {
            /// Makes one from `V` probabilities that sum to 1 within
            /// [`NORMALISATION_TOLERANCE`]; they are normalised.
            ///
            /// # Errors
            /// Empty input, an entry that is negative, NaN or infinite, or a sum
            /// out of tolerance. O(V).
            pub fn new(values: &[f64]) -> Result<Self, DistributionError> {
                Distribution::from_floats(values).map(Self)
            }

            /// Makes one from `V` exact fractions that sum to 1 within
            /// [`NORMALISATION_TOLERANCE`]; they are normalised exactly.
            ///
            /// # Errors
            /// As for [`Self::new`].
            pub fn from_rationals(values: Vec<Rational>) -> Result<Self, DistributionError> {
                Distribution::from_rationals(values).map(Self)
            }

            /// Makes one from a row of `V` logits.
            ///
            /// # Errors
            /// Those of [`Softmax::probabilities`].
            pub fn from_logits(logits: &[f64], rule: &Softmax) -> Result<Self, DistributionError> {
                Self::new(&rule.probabilities(logits)?)
            }
        }

        impl Deref for $name {
            type Target = Distribution;
            fn deref(&self) -> &Distribution {
                &self.0
            }
        }
    };
}

distribution_role! {
    /// The target model's next-token distribution p.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::{Softmax, Target};
    /// let p = Target::from_logits(&[1.0, 1.0, f64::NEG_INFINITY], &Softmax::default())?;
    /// assert_eq!(p.probabilities(), [0.5, 0.5, 0.0]);
    /// assert_eq!(p.exact().total, 2u32.into());
    /// # Ok::<(), specgap_number::distribution::DistributionError>(())
    /// ```
    Target
}

distribution_role! {
    /// The draft model's next-token distribution q.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::Draft;
    /// let error = Draft::new(&[0.5, -0.5, 1.0]).unwrap_err();
    /// assert_eq!(error.to_string(), "entry 1 is -0.5; probabilities must be >= 0");
    /// ```
    Draft
}

impl Draft {
    /// q given that only some tokens can be drawn, renormalised exactly; `None` if they
    /// have no mass.
    ///
    /// # Example
    /// ```
    /// use specgap_number::distribution::Draft;
    /// let q = Draft::new(&[0.5, 0.25, 0.25])?;
    /// let rest = q.restricted(|token| token != 0).unwrap();
    /// assert_eq!(rest.probabilities(), [0.0, 0.5, 0.5]);
    /// assert!(q.restricted(|_| false).is_none());
    /// # Ok::<(), specgap_number::distribution::DistributionError>(())
    /// ```
    pub fn restricted(&self, keep: impl Fn(usize) -> bool) -> Option<Self> {
        self.0.restricted(keep).map(Self)
    }

    /// Whole-number weights over their sum; `None` if that is zero.
    pub fn from_weights(weights: Vec<BigUint>) -> Option<Self> {
        Distribution::from_weights(weights).map(Self)
    }
}

distribution_role! {
    /// The law of a rule's output, given its drafts.
    Output
}

distribution_role! {
    /// The probabilities of a list of draft tuples; "tokens" are positions in
    /// that list.
    TupleProbabilities
}

/// The `count` tokens of largest mass above zero, falling, the first of equals first;
/// fewer if there are fewer. O(V) unless the row rises.
#[multiversion(targets = "simd")]
pub fn heaviest(row: &[f64], count: usize) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(count + 1);
    if count == 0 {
        return best;
    }
    let mut least = 0.0;
    for (start, chunk) in (0..).step_by(LANES).zip(row.chunks(LANES)) {
        // Without a branch first: most chunks hold none.
        if !chunk.iter().fold(false, |any, &mass| any | (mass > least)) {
            continue;
        }
        for (token, &mass) in (start..).zip(chunk) {
            if mass > least {
                let at = best.partition_point(|&other| row[other] >= mass);
                best.insert(at, token);
                best.truncate(count);
                if best.len() == count {
                    least = best.last().map_or(0.0, |&last| row[last]);
                }
            }
        }
    }
    best
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn normalises_exactly() {
        let p = Target::new(&[0.1, 0.2, 0.7]).unwrap();
        let exact = p.exact();
        let sum: Rational = (0..3).map(|token| exact.probability(token)).sum();
        assert_eq!(sum, Rational::one());
        assert_ne!(exact.probability(0), parse_rational("1/10").unwrap());
        let q = Draft::from_rationals(
            ["1/3", "1/3", "1/3"]
                .iter()
                .map(|t| parse_rational(t).unwrap())
                .collect(),
        )
        .unwrap();
        assert_eq!(q.exact().total, 3u32.into());
    }

    #[test]
    fn proportions_keep_their_digits() {
        let row = |draft: &Draft| {
            let proportions = Proportions::of(draft);
            assert!(proportions.is_faithful());
            assert_eq!(proportions.vouched(1e-15), 1e-15);
            proportions.row(draft).to_vec()
        };
        // An ordinary row is taken as it is.
        let plain = Draft::new(&[0.1, 0.9, 0.0]).unwrap();
        assert_eq!(row(&plain), plain.probabilities());
        // 1e-320 has 11 bits, which a division by 1 + 9e-7 would round.
        let denormal = row(&Draft::new(&[1.0 + 9e-7, 1e-320, 3e-320, 0.0]).unwrap());
        assert_eq!(denormal[2] / denormal[1], 3e-320 / 1e-320);
        assert_eq!(denormal[3], 0.0);
        // Fractions below f64 are raised; what then still is below it is not vouched for.
        let draft = |small: &str| {
            let rest = parse_rational("1").unwrap() - parse_rational(small).unwrap();
            Draft::from_rationals(vec![rest, parse_rational(small).unwrap()]).unwrap()
        };
        let tiny = draft("1e-400");
        assert_eq!(tiny.probabilities()[1], 0.0);
        let raised = row(&tiny);
        let quotient = exact_value(raised[1]).unwrap() / exact_value(raised[0]).unwrap();
        let off = quotient / parse_rational("1e-400").unwrap() - Rational::one();
        assert!(round_nearest(&off).abs() < 1e-15);
        let far = Proportions::of(&draft(&format!("1/1{}", "0".repeat(900))));
        assert!(!far.is_faithful());
        assert_eq!(far.vouched(1e-15), f64::INFINITY);
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        // The sum in two words is inf - inf, and no comparison with NaN holds.
        for row in [[1e308, 1e308], [f64::MAX, f64::MAX], [1e308, 0.5]] {
            assert!(
                matches!(
                    Target::new(&row),
                    Err(DistributionError::Sum { entries: 2, sum }) if sum > 1e307
                ),
                "{row:?}"
            );
        }
        let error = Draft::new(&[1e308, 1e308]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the 2 entries sum to inf; they must sum to 1 within 1e-6"
        );
    }

    #[test]
    fn the_tolerance_has_two_sides() {
        assert!(Target::new(&[0.5, 0.5 + 0.9e-6]).is_ok());
        assert!(matches!(
            Target::new(&[0.5, 0.6]),
            Err(DistributionError::Sum { .. })
        ));
        assert!(matches!(Target::new(&[]), Err(DistributionError::Empty)));
        let short = vec![
            parse_rational("1/2").unwrap(),
            parse_rational("0.499998").unwrap(),
        ];
        assert!(matches!(
            Target::from_rationals(short),
            Err(DistributionError::Sum { .. })
        ));
    }

    #[test]
    fn subnormal_and_large_mix_exactly() {
        let p = Target::new(&[1.0, f64::from_bits(1), 0.0]).unwrap();
        assert_eq!(p.exact().weights[1], BigUint::one());
        assert_eq!(p.exact().weights[0], BigUint::one() << 1074u32);
        assert_eq!(p.exact_bits(), 1076);
        assert_eq!(p.support(), [0, 1]);
    }

    proptest! {
        #[test]
        fn floats_stay_within_the_stated_error(raw in prop::collection::vec(0.0f64..1.0, 1..40)) {
            let total: f64 = raw.iter().sum();
            prop_assume!(total > 0.0);
            let row: Vec<f64> = raw.iter().map(|x| x / total).collect();
            let p = Target::new(&row).unwrap();
            for (token, &value) in p.probabilities().iter().enumerate() {
                let exact = p.exact().probability(token);
                let error = (exact_value(value).unwrap() - &exact).abs();
                let bound = exact * exact_value(PROBABILITY_RELATIVE_ERROR).unwrap();
                prop_assert!(error <= bound);
            }
        }
    }
}
