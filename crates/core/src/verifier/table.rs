//! All verifiers.

use super::rule::{Entry, Lossless, Verifier, VerifierError, VerifierName};
use super::{
    exact_match, gls, greedy, importance, k_seq, level, naive_tree, optimal, rrs, rrs_wo,
    shared_gumbel, spechub, token,
};
use crate::entry_name::entry_table;
use crate::optimum::on_row;
use crate::problem::Problem;
use crate::scheme::SchemeName;
use specgap_number::known::Known;
use specgap_row::RejectionBudget as RrsWoSettings;

entry_table! {
    /// Every verifier, in the order of reports.
    pub const VERIFIERS: [Entry] as VerifierName; "verifier", UnknownVerifier;
    /// [`Token`](super::Token)
    TOKEN = token::ENTRY;
    /// [`Rrs`](super::Rrs)
    RRS = rrs::ENTRY;
    /// [`RrsWo`](super::RrsWo)
    RRS_WO = rrs_wo::ENTRY;
    /// [`SharedGumbel`](super::SharedGumbel)
    SHARED_GUMBEL = shared_gumbel::ENTRY;
    /// [`Gls`](super::Gls)
    GLS = gls::ENTRY;
    /// [`Level`](super::Level): the limit of many levels.
    LEVEL = level::LIMIT;
    /// [`Staged`](super::Staged): passes at four levels.
    LEVEL_4 = level::FOUR_LEVELS;
    /// [`KSeq`](super::KSeq)
    K_SEQ = k_seq::ENTRY;
    /// [`NaiveTree`](super::NaiveTree)
    NAIVE_TREE = naive_tree::ENTRY;
    /// [`SpecHub`](super::SpecHub)
    SPECHUB = spechub::ENTRY;
    /// [`GreedyVerifier`](super::GreedyVerifier)
    GREEDY = greedy::ENTRY;
    /// [`Optimal`](super::Optimal)
    OPTIMAL = optimal::ENTRY;
    /// [`Importance`](super::Importance)
    IMPORTANCE = importance::ENTRY;
    /// [`ExactMatch`](super::ExactMatch)
    EXACT_MATCH = exact_match::ENTRY;
}

impl VerifierName {
    /// Verifiers that were made for the drafts of a law, or else those that take all.
    pub(crate) fn made_for(scheme: SchemeName) -> Vec<Self> {
        let (mut own, mut all) = (Vec::new(), Vec::new());
        for name in Self::ALL {
            match name.0.lossless {
                Lossless::Under(schemes) if schemes.contains(&scheme) => own.push(name),
                Lossless::Always => all.push(name),
                _ => {}
            }
        }
        if own.is_empty() { all } else { own }
    }
}

/// The verifier of that name for a problem.
///
/// # Errors
/// The problem's draft scheme is not one for which the verifier is lossless, or
/// the verifier's plan would be too large.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// use specgap_core::verifier::{VerifierName, verifier};
/// let scheme = WithReplacement::new(Draft::new(&[0.5, 0.5])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.25, 0.75])?, scheme)?;
/// let rrs = verifier(VerifierName::RRS, &problem)?;
/// assert_eq!(rrs.acceptance().membership.value(), 0.875);
/// assert!(verifier(VerifierName::RRS_WO, &problem).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verifier(name: VerifierName, problem: &Problem) -> Result<Box<dyn Verifier>, VerifierError> {
    (name.entry().build)(problem, &RrsWoSettings::default())
}

/// Returns what a rule accepts of a pair of rows, P(its output is a draft), whatever the law of the
/// drafts: of `optimal` it is alpha*.
///
/// # Exactness
/// Enclosed, or Monte Carlo. Rows are rounded: each step of a rule at most doubles what its
/// residual is off by, so that 8 epsilon 2^n is added to a rate that is exact of the rounded rows.
///
/// # Errors
/// The rule is not lossless for these drafts, or its rate is not known for so many of them.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::Product;
/// use specgap_core::verifier::{VerifierName, rate_of_rows};
/// let rows = vec![Draft::new(&[0.5, 0.5])?, Draft::new(&[0.75, 0.25])?];
/// let problem = Problem::new("two", Target::new(&[0.25, 0.75])?, Product::new(rows).unwrap())?;
/// let rate = rate_of_rows(VerifierName::RRS, &problem, &Default::default())?;
/// assert!((rate.value() - 0.8125).abs() < 1e-15);
/// assert!(rate_of_rows(VerifierName::K_SEQ, &problem, &Default::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rate_of_rows(
    name: VerifierName,
    problem: &Problem,
    settings: &RrsWoSettings,
) -> Result<Known, VerifierError> {
    let unknown = || VerifierError::TooMany(name, problem.scheme().tuple_count());
    if name == VerifierName::OPTIMAL {
        return Ok(on_row(problem).map_err(|_| unknown())?.rate);
    }
    let rate = (name.entry().build)(problem, settings)?
        .acceptance()
        .membership;
    if rate.width() >= 1.0 {
        return Err(unknown());
    }
    if rate.rational().is_some() {
        let error = 8.0 * f64::EPSILON * 2f64.powf(problem.drafts() as f64);
        return Ok(Known::rate_within(rate.value(), error));
    }
    Ok(rate)
}
