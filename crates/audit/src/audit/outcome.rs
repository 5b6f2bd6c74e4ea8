//! How a test came out.

use serde::{Deserialize, Serialize};

/// How a part came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing was found against it.
    Consistent,
    /// It is not what is claimed, beyond the tolerance, at level alpha.
    Refuted,
    /// The log does not tell, or too few steps do.
    NotTestable,
}
