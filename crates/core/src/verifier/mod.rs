//! Verifiers: rules that map (p, the draft law, X) to a law of the output token.
//!
//! A verifier is *lossless* when its output, averaged over X ~ D, has exactly the
//! law p. Every verifier here is lossless under the draft schemes that its
//! constructor takes, and refuses all others.
//!
//! [`VERIFIERS`] is the list of all; each file ends in its entry.
//!
//! # Two acceptances
//! *Algorithmic* acceptance is the probability that the rule accepts a draft.
//! *Membership* acceptance is P(output in A(X)); it also counts a residual draw
//! that happens to equal a draft, it is what alpha* bounds, and it is never below
//! the algorithmic one. For every rule of this module with its own parameters
//! the two are equal; each file says why. They differ for [`KSeq`] with a factor
//! above its best one.
//!
//! # Exactness
//! Each rule is written once over an arithmetic and runs both in `f64` and in
//! exact rationals. [`output_law_exact`] sums a rule over all tuples and so
//! proves, or refutes, losslessness with tolerance 0.

mod exact_match;
mod gls;
mod greedy;
mod importance;
mod k_seq;
mod law;
mod level;
mod naive_tree;
mod optimal;
mod residual;
mod row_rule;
mod rrs;
mod rrs_wo;
mod rule;
mod shared_gumbel;
mod spechub;
mod table;
mod token;
mod token_rule;

pub use exact_match::ExactMatch;
pub use gls::Gls;
pub use greedy::GreedyVerifier;
pub use importance::Importance;
pub use k_seq::KSeq;
pub use law::{
    Arithmetic, TotalVariation, output_law, output_law_exact, total_variation,
    total_variation_exact,
};
pub use level::{Level, MOST_EXACT_STRATA, Staged};
pub use naive_tree::NaiveTree;
pub use optimal::Optimal;
pub use row_rule::{RowAnswer, RowRate, RowRule, RowRuleError, SolvedPlan};
pub use rrs::Rrs;
pub use rrs_wo::RrsWo;
pub use rule::any_of;
pub use rule::{
    Acceptance, Build, ConditionalLaw, Entry, Lossless, OutputLaw, Verifier, VerifierError,
    VerifierName,
};
use rule::{draft_of, draw, draw_from, happens, looked_up, refused, sequential, taken};
pub use shared_gumbel::SharedGumbel;
pub use spechub::SpecHub;
pub use table::{UnknownVerifier, VERIFIERS, rate_of_rows, verifier};
pub use token::Token;
pub use token_rule::TokenRule;

pub use specgap_plan::Verdict;
pub use specgap_row::RejectionBudget as RrsWoSettings;

#[cfg(test)]
mod tests;
