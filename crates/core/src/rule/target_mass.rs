//! Rules that look at p alone: `exact-match`, `one-hot`, `threshold`.

use super::step::{InTurn, Step, entry, normalise, ratio};
use super::{Drafts, RuleEntry, Vectors, Verifies};

/// A draft is the output with probability p(x)/A, and A = 1 is a draw from p: the draft that it
/// hits is accepted. With A < 1 drafts are accepted more often than p has them.
#[derive(Debug)]
pub struct TargetMass {
    /// A, above 0 and at most 1.
    pub over: f64,
}

impl Step for TargetMass {
    fn in_turn(&self, p: &[f64], _: &[f64], drafts: &[u32]) -> InTurn {
        let mut residual = p.to_vec();
        let (mut covered, mut alive) = (0.0f64, 1.0);
        let mut ratios = Vec::with_capacity(drafts.len());
        for (place, &token) in drafts.iter().enumerate() {
            if drafts[..place].contains(&token) {
                ratios.push(0.0);
                continue;
            }
            let next = covered + entry(p, token);
            let gained = (next / self.over).min(1.0) - (covered / self.over).min(1.0);
            ratios.push(ratio(gained, alive));
            alive -= gained;
            covered = next;
            if let Some(mass) = residual.get_mut(token as usize) {
                *mass = 0.0;
            }
        }
        if !normalise(&mut residual) {
            residual.copy_from_slice(p);
        }
        InTurn { ratios, residual }
    }
}

pub(super) static EXACT_MATCH: RuleEntry = RuleEntry {
    name: "exact-match",
    aliases: &["naive", "target-only", "strict"],
    words: "draw y ~ p whatever the drafts are; a draft that equals y is accepted",
    step: Some(&TargetMass { over: 1.0 }),
    audited: true,
    vectors: Vectors::of(&[2, 4], 4),
    ..RuleEntry::named(Verifies::Siblings, Drafts::Any)
};

pub(super) static ONE_HOT: RuleEntry = RuleEntry {
    name: "one-hot",
    words: "keep the likeliest token x of q with p(x), as if q were one-hot, else draw from p \
            without x",
    step: Some(&TargetMass { over: 1.0 }),
    audited: true,
    vectors: Vectors::of(&[1, 3], 1),
    ..RuleEntry::named(Verifies::Chain, Drafts::Likeliest)
};

pub(super) static THRESHOLD: RuleEntry = RuleEntry {
    name: "threshold:A",
    words: "keep the likeliest token x of q with min(1, p(x)/A); lossy by design if A < 1",
    step: Some(&TargetMass { over: 1.0 }),
    audited: true,
    ..RuleEntry::named(Verifies::Chain, Drafts::Likeliest)
};
