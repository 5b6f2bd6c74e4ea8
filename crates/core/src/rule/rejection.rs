//! Rejection draft by draft: `token`, `rrs`, `rrs-wo`.

use super::step::{InTurn, Step, entry, normalise, ratio};
use super::{Drafts, IID, Kept, RuleEntry, Vectors, Verifies};
use crate::scheme::SchemeName;

/// With r_1 = p and q_k the law of draft k given the ones before it, draft k is kept with
/// min(1, r_k(x_k)/q_k(x_k)), and r_(k+1) is proportional to (r_k - q_k)+.
#[derive(Debug)]
struct Rejection(
    /// How drafts are drawn.
    SchemeName,
);

impl Step for Rejection {
    fn in_turn(&self, p: &[f64], q: &[f64], drafts: &[u32]) -> InTurn {
        let mut residual = p.to_vec();
        let (mut offered, mut next) = (Vec::new(), Vec::new());
        let mut ratios = Vec::with_capacity(drafts.len());
        let drafting = self.0.drafting(q, drafts.len());
        for (place, &token) in drafts.iter().enumerate() {
            drafting.next(&drafts[..place], &mut offered);
            if !normalise(&mut offered) {
                // Such a draft cannot be.
                ratios.resize(drafts.len(), 0.0);
                break;
            }
            ratios.push(ratio(entry(&residual, token), entry(&offered, token)));
            next.clear();
            next.extend(residual.iter().zip(&offered).map(|(p, q)| (p - q).max(0.0)));
            // If a draft is refused with probability 0 (up to rounding), whatever comes after
            // keeps its law, so that not even a rounding error can put out a token of
            // probability 0.
            if normalise(&mut next) {
                std::mem::swap(&mut residual, &mut next);
            }
        }
        InTurn { ratios, residual }
    }
}

const SUMS: &str = "what is left of p after a rejection is a sum over all tokens";

pub static TOKEN: RuleEntry = RuleEntry {
    name: "token",
    aliases: &["single", "chain", "sampled"],
    words: "keep a draft x ~ q with min(1, p/q), else draw from (p - q)+",
    step: Some(&Rejection(SchemeName::WITH_REPLACEMENT)),
    survival: Some(Kept::Tokens),
    audited: true,
    decoded: true,
    vectors: Vectors::of(&[1, 3], 0),
    ..RuleEntry::named(Verifies::Chain, IID)
};

pub(super) static RRS: RuleEntry = RuleEntry {
    name: "rrs",
    words: "keep i.i.d. drafts in turn with min(1, r/q), where r is what the ones before leave of \
            p; at last draw from r",
    step: Some(&Rejection(SchemeName::WITH_REPLACEMENT)),
    needs_full_rows: Some(SUMS),
    audited: true,
    decoded: true,
    vectors: Vectors::of(&[2, 3], 2),
    ..RuleEntry::named(Verifies::Siblings, IID)
};

pub(super) static RRS_WO: RuleEntry = RuleEntry {
    name: "rrs-wo",
    words: "rrs for drafts without replacement: each is tested against q without the ones before",
    step: Some(&Rejection(SchemeName::WITHOUT_REPLACEMENT)),
    needs_full_rows: Some(SUMS),
    audited: true,
    decoded: true,
    vectors: Vectors::of(&[2, 3], 3),
    ..RuleEntry::named(
        Verifies::Siblings,
        Drafts::Drawn(SchemeName::WITHOUT_REPLACEMENT),
    )
};
