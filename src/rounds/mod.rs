//! Rounds of a decoder along a text, of which q/p is known at each token.
//!
//! [`Survival`] is the probability that drafts are accepted, [`replay()`] the renewal of
//! rounds; what the texts are, and what policies draft, is for others
//! ([`crate::text`]). Proofs are in `docs/theory/text-replay.md`.

mod replay;
mod survival;

pub(crate) use replay::weighted;
pub use replay::{DraftLength, FixedLength, Replay, RoundEnd, replay};
pub use survival::{
    ChainVerifier, Survival, accepted_everywhere, accepted_lengths, accepted_lengths_by_means,
};
