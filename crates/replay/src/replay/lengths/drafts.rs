//! What a round drafts, where tokens are sampled, and how a draft is kept.

use serde::{Deserialize, Serialize};
use specgap_base::{names, read_by_name};

/// What is drafted at each place of a chain, and what keeps it.
///
/// Given the text y ~ p each has a coin of its own at the text's token:
///
/// | drafts | rule | coin |
/// | --- | --- | --- |
/// | sampled | token by token, or as a block | min(1, q(y)/p(y)), or running minima |
/// | one-hot | rejection or exact match, which are the same | 1 where y is q's likeliest token |
/// | exact-match | the target's own draw has to be the draft | q(y) |
/// | shared-gumbel | the same, where draft and target draw by one noise | 1 / sum of max(p, q p(y)/q(y)) |
///
/// ```
/// use specgap_replay::replay::Drafts;
/// assert_eq!("one-hot".parse::<Drafts>().unwrap(), Drafts::OneHot);
/// assert!("greedy".parse::<Drafts>().unwrap_err().contains("one-hot"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Drafts {
    /// Drawn from q, and kept with min(1, p/q).
    #[default]
    Sampled,
    /// The likeliest token of q.
    OneHot,
    /// Drawn from q, and kept if the target draws the same token.
    ExactMatch,
    /// The same where both draw by one noise.
    SharedGumbel,
}

names! {
    Drafts,
    /// Returns what they are, and what keeps them.
    rule:
    Sampled "sampled"
        "drafts drawn from q and kept with min(1, p/q), token by token or as a block: the \
        coin at the text's token y is min(1, q(y)/p(y))";
    OneHot "one-hot"
        "the likeliest token of q is drafted (of equal ones that with the lowest id), and \
        kept if the target draws it, which is also what rejection of a one-hot draft does: \
        the coin at the text's token y is 1 if y is that token, else 0. It does not depend \
        on the draft's temperature";
    ExactMatch "exact-match"
        "drafts drawn from q and kept if the target draws the same token: the coin at the \
        text's token y is q(y)";
    SharedGumbel "shared-gumbel"
        "draft and target draw by one noise, and the draft is kept if both have the same \
        token: the coin at the text's token y is 1 / sum of max(p, q p(y)/q(y)) \
        (docs/theory/shared-noise.md)";
}

read_by_name!(Drafts, |name, all| {
    format!("{name} is no kind of drafts; there are {all}")
});
