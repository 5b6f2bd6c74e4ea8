//! The laws that an engine may follow in place of the claimed one, and what each has won.
//!
//! A suspect is a law of what an engine does next, with a parameter. Its capital is the likelihood
//! ratio of that law to the claim, multiplied along the log: 1 on average while the claim is true,
//! whatever the suspect is. Verdict, cause, size and what would have been found are read from the
//! same capitals (`docs/theory/audit.md`).
//!
//! | file | what it is |
//! | --- | --- |
//! | `view` | a row in the forms that suspects ask it in |
//! | `target` | other rows in the place of p or q |
//! | `family` | all suspects: names, sizes, words |
//! | `factor` | a law over the claim at one outcome, with what noise could add |
//! | `step` | a step of the log: what each suspect says of it, over what is claimed |
//! | `capital` | the sums along a log |
//! | `sequence` | suspects that learn from the past, and numbers that come again |
//! | `some_texts` | numbers that come again in some texts of many |
//!
//! Nothing here knows a level, a verdict or a report.

pub(super) mod capital;
pub(super) mod factor;
pub(super) mod family;
pub(super) mod sequence;
pub(super) mod some_texts;
pub(super) mod step;
pub(super) mod target;
pub(super) mod view;
