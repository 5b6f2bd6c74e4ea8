//! Rules that have no law at one position alone, or one by a plan; what they do is in
//! [`crate::verifier`], `specgap_exact::block` and the decoder.

use super::{Drafts, IID, Kept, RuleEntry, Shared, Vectors, Verifies};
use crate::scheme::SchemeName;
use specgap_plan::Levels;

pub static BLOCK: RuleEntry = RuleEntry {
    name: "block",
    words: "verify a chain x ~ q as a block: the longest accepted prefix wins",
    survival: Some(Kept::Prefixes),
    needs_full_rows: Some("a block is accepted by sums of (r p - q)+ over all tokens"),
    audited: true,
    decoded: true,
    ..RuleEntry::named(Verifies::Chain, IID)
};

pub static GREEDY_BLOCK: RuleEntry = RuleEntry {
    name: "greedy-block",
    words: "verify a chain as greedily as one round can; the next round's target is changed",
    survival: Some(Kept::MostPrefixes),
    changes_target: true,
    ..RuleEntry::named(Verifies::Chain, IID)
};

pub(super) static CARRIED: RuleEntry = RuleEntry {
    name: "carried",
    words: "keep a draft x ~ q with min(1, p/(d q)), d the chance given the text that one stands \
            there, else draw from (p - d q)+; lossless as text",
    needs_full_rows: Some("its numbers come from q/p at every token of the text"),
    audited: true,
    decoded: true,
    vectors: Vectors::of(&[1, 3], 6),
    ..RuleEntry::named(Verifies::Chain, IID)
};

pub(super) static CARRIED_BLOCK: RuleEntry = RuleEntry {
    name: "carried-block",
    words: "verify a chain from its end by what rounds of each age have drafted and kept of the \
            text; lossless as text",
    decoded: true,
    vectors: Vectors::of(&[1, 3], 7),
    ..RuleEntry::named(Verifies::Chain, IID)
};

pub(super) static NAIVE_TREE: RuleEntry = RuleEntry {
    name: "naive-tree",
    words: "keep the first draft with min(1, p/q), else draw from (p - q)+ and look whether \
            that is another draft",
    ..RuleEntry::named(Verifies::Siblings, IID)
};

pub(super) static GREEDY: RuleEntry = RuleEntry {
    name: "greedy",
    words: "maximal coupling of p with the law of the last draft",
    ..RuleEntry::named(Verifies::Siblings, Drafts::Drawn(SchemeName::GREEDY))
};

pub(super) static SHARED_GUMBEL: RuleEntry = RuleEntry {
    name: "shared-gumbel",
    aliases: &["shared-noise"],
    words: "draft and target have their tokens from one noise: keep the target's own if it is a \
            draft; lossless for any q, whose row the verifier needs not",
    vectors: Vectors::of(&[1, 3], 8),
    ..RuleEntry::named(
        Verifies::Siblings,
        Drafts::Drawn(SchemeName::WITHOUT_REPLACEMENT),
    )
};

pub(super) static GLS: RuleEntry = RuleEntry {
    name: "gls",
    aliases: &["several-noises"],
    words: "each draft has its token from a noise of its own, the target from all of them: keep the \
            target's own if it is a draft; lossless for any q",
    ..RuleEntry::named(Verifies::Siblings, IID)
};

pub(super) static LEVEL: RuleEntry = RuleEntry {
    name: "level",
    words: "reject by falling level of what is left of p over what is left of q, equal tokens \
            together: alpha* of i.i.d. drafts",
    ..RuleEntry::named(Verifies::Siblings, IID)
};

pub(super) static OPTIMAL: RuleEntry = RuleEntry {
    name: "optimal",
    words: "a plan that attains alpha*, from a flow or by level",
    ..RuleEntry::named(Verifies::Siblings, Drafts::Any)
};

pub(super) static IMPORTANCE: RuleEntry = RuleEntry {
    name: "importance",
    words: "select one of n i.i.d. drafts by a plan, keep it with min(1, p/s), s its law, else draw \
            from (p - s)+",
    ..RuleEntry::named(Verifies::Siblings, IID)
};

pub(super) static SPECTR_RRS: RuleEntry = RuleEntry {
    name: "spectr-rrs",
    words: "recursive rejection at each position of several chains, among those that agree so far",
    shared: Some(Shared::Rejected),
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static SPECTR_K_SEQ: RuleEntry = RuleEntry {
    name: "spectr-k-seq",
    words: "k-seq at each position of several chains, among those that agree so far",
    shared: Some(Shared::OneFactor),
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static SPECTR_OPTIMAL: RuleEntry = RuleEntry {
    name: "spectr-optimal",
    aliases: &["spectr-plan"],
    words: "an optimal plan at each position of several chains, among those that agree so far",
    shared: Some(Shared::Selected(Kept::Tokens)),
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static TRAVERSAL: RuleEntry = RuleEntry {
    name: "traversal",
    words: "verify a tree from its leaves to its root",
    decoded: true,
    from_leaves: Some(Levels::ONE),
    ..RuleEntry::named(Verifies::Tree, Drafts::Any)
};

pub(super) static TRAVERSAL_4: RuleEntry = RuleEntry {
    name: "traversal-4",
    words: "verify a tree from its leaves to its root, by passes at the levels of level-4 at the \
            root",
    decoded: true,
    from_leaves: Some(Levels::FOUR),
    ..RuleEntry::named(Verifies::Tree, Drafts::Any)
};

pub(super) static SELECT_GREEDY_BLOCK: RuleEntry = RuleEntry {
    name: "select-greedy-block",
    words: "select one of several paths as evenly against p as possible; verify it as \
            greedy-block does, later rounds carry the change",
    shared: Some(Shared::Selected(Kept::MostPrefixes)),
    changes_target: true,
    decoded: true,
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static SELECT_BLOCK: RuleEntry = RuleEntry {
    name: "select-block",
    words: "select one of several paths as evenly against p as possible; verify it as block \
            does",
    shared: Some(Shared::Selected(Kept::Prefixes)),
    decoded: true,
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static GBV: RuleEntry = RuleEntry {
    name: "gbv",
    aliases: &["greedy-multi-path-block"],
    words: "take the path that is last in an order by p/q; verify it as block does",
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static BLOCK_OPTIMAL: RuleEntry = RuleEntry {
    name: "block-optimal",
    words: "the most accepted tokens of a round that any rule gives, by a linear program",
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static SPECTR_GBV: RuleEntry = RuleEntry {
    name: "spectr-gbv",
    words: "greedy block verification with several drafts; refuted for two or more",
    ..RuleEntry::named(Verifies::Paths, IID)
};

pub(super) static TEXT: RuleEntry = RuleEntry {
    name: "text",
    words: "nothing is claimed but that what comes out follows p; needs no drafts",
    audited: true,
    ..RuleEntry::named(Verifies::Text, Drafts::Any)
};
