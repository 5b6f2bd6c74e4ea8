//! All verifiers.

use super::rule::{Entry, Lossless, Verifier, VerifierError, VerifierName};
use super::{exact_match, greedy, k_seq, level, naive_tree, optimal, rrs, rrs_wo, spechub, token};
use crate::entry_name::entry_table;
use crate::problem::Problem;
use crate::scheme::SchemeName;
use specgap_row::row::RejectionBudget as RrsWoSettings;

/// Every verifier, in the order of reports.
pub const VERIFIERS: &[&Entry] = &[
    &token::ENTRY,
    &rrs::ENTRY,
    &rrs_wo::ENTRY,
    &level::LIMIT,
    &level::FOUR_LEVELS,
    &k_seq::ENTRY,
    &naive_tree::ENTRY,
    &spechub::ENTRY,
    &greedy::ENTRY,
    &optimal::ENTRY,
    &exact_match::ENTRY,
];

entry_table!(VerifierName of VERIFIERS; "verifier", UnknownVerifier);

impl VerifierName {
    /// Verifiers that were made for the drafts of a law, or else those that take all.
    pub(crate) fn made_for(scheme: SchemeName) -> Vec<Self> {
        let with = |wanted: fn(Lossless, SchemeName) -> bool| -> Vec<Self> {
            Self::ALL
                .into_iter()
                .filter(|name| wanted(name.0.lossless, scheme))
                .collect()
        };
        let own = with(
            |lossless, scheme| matches!(lossless, Lossless::Under(schemes) if schemes.contains(&scheme)),
        );
        if own.is_empty() {
            with(|lossless, _| matches!(lossless, Lossless::Always))
        } else {
            own
        }
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
