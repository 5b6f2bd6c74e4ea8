//! A rule that a problem file tabulates: one that somebody else's program follows.

use specgap_number::distribution::Output;
use std::collections::BTreeMap;

/// What a rule puts out, drafts by drafts: `[rule]` of a problem file. `specgap verify` sums
/// it over the law of the drafts and says whether the result is p.
///
/// # Example
/// ```
/// use specgap_exact::evaluate::{Evaluated, verify};
/// let text = r#"
/// schema = 1
/// name = "always the draft"
/// target = [0.5, 0.5]
/// drafts = 1
/// draft = { scheme = "with-replacement", q = [0.75, 0.25] }
/// [rule]
/// name = "keeps every draft"
/// outputs = { "0" = [1, 0], "1" = [0, 1] }
/// "#;
/// let problem = specgap_core::problem::parse_toml(text)?;
/// let verified = verify(problem.single().ok_or("a block problem")?);
/// assert_eq!(verified.rule.as_ref().map(|rule| rule.total_variation.value), Some(0.25));
/// assert!(!verified.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// The law of the output given the drafts, in the order in which they are drawn. Every
    /// tuple of positive probability is there: of fewer than n tokens, or none, where the law
    /// draws so few.
    pub outputs: BTreeMap<Vec<u32>, Output>,
}
