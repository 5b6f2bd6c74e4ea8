//! The verifiers that a problem file names.

use specgap_core::problem::AnyProblem;
use specgap_core::verifier::{UnknownVerifier, VerifierName};

/// A problem file expects a rate of a verifier that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected.acceptance_rate: {0}")]
pub struct UnknownName(#[from] UnknownVerifier);

/// Refuses a problem that names a verifier which does not exist.
///
/// A problem keeps the names of its file as text, since it knows no verifier. Commands
/// ask this of every problem that they read, before anything is solved.
///
/// # Errors
/// The first name, in alphabetical order, that is not in
/// [`VERIFIERS`](specgap_core::verifier::VERIFIERS).
///
/// # Example
/// ```
/// use specgap_exact::evaluate::check_names;
/// use specgap_core::problem::parse_toml;
/// let text = r#"
///     schema = 1
///     name = "coin"
///     target = [0.5, 0.5]
///     drafts = 2
///     [draft]
///     scheme = "with-replacement"
///     q = [0.75, 0.25]
///     [expected.acceptance_rate]
///     rrs = 0.875
/// "#;
/// assert!(check_names(&parse_toml(text)?).is_ok());
/// let error = check_names(&parse_toml(&text.replace("rrs", "rrr"))?).unwrap_err();
/// assert!(error.to_string().starts_with("expected.acceptance_rate: \"rrr\" is not a verifier"));
/// # Ok::<(), specgap_core::problem::FieldError>(())
/// ```
pub fn check_names(problem: &AnyProblem) -> Result<(), UnknownName> {
    let expected = problem.single().and_then(|problem| problem.expected());
    for name in expected.iter().flat_map(|e| e.acceptance_rate.keys()) {
        name.parse::<VerifierName>()?;
    }
    Ok(())
}
