//! Rules that have no law at one position alone, or one by a plan; what they do is in
//! [`crate::verifier`], `specgap_exact::block` and the decoder.

use super::{Drafts, RuleEntry, RuleName, Vectors, Verifies};
use crate::scheme::SchemeName;

const IID: Drafts = Drafts::Drawn(SchemeName::WITH_REPLACEMENT);

/// A constant and its entry a rule.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $entry:expr;)*) => {
        $(pub(super) static $name: RuleEntry = $entry;)*
        impl RuleName {
            $($(#[$doc])* pub const $name: Self = Self(&$name);)*
        }
    };
}

rules! {
    /// Block verification of one chain (Sun et al. 2024).
    BLOCK = RuleEntry {
        name: "block",
        words: "verify a chain x ~ q as a block: the longest accepted prefix wins",
        needs_full_rows: Some("a block is accepted by sums of (r p - q)+ over all tokens"),
        audited: true,
        decoded: true,
        ..RuleEntry::named(Verifies::Chain, IID)
    };
    /// Greedy block verification: as many as one round can take.
    GREEDY_BLOCK = RuleEntry {
        name: "greedy-block",
        words: "verify a chain as greedily as one round can; the next round's target is changed",
        ..RuleEntry::named(Verifies::Chain, IID)
    };
    /// One chain by token, with what the rounds before did not need.
    CARRIED = RuleEntry {
        name: "carried",
        words: "keep a draft x ~ q with min(1, p/(d q)), d the chance given the text that one stands \
                there, else draw from (p - d q)+; lossless as text",
        needs_full_rows: Some("its numbers come from q/p at every token of the text"),
        audited: true,
        decoded: true,
        vectors: Some(Vectors {
            drafts: &[1, 3],
            stream: 6,
        }),
        ..RuleEntry::named(Verifies::Chain, IID)
    };
    /// The same by block.
    CARRIED_BLOCK = RuleEntry {
        name: "carried-block",
        words: "verify a chain from its end by what rounds of each age have drafted and kept of the \
                text; lossless as text",
        decoded: true,
        vectors: Some(Vectors {
            drafts: &[1, 3],
            stream: 7,
        }),
        ..RuleEntry::named(Verifies::Chain, IID)
    };
    /// Rejection of the first draft alone.
    NAIVE_TREE = RuleEntry {
        name: "naive-tree",
        words: "keep the first draft with min(1, p/q), else draw from (p - q)+ and look whether \
                that is another draft",
        ..RuleEntry::named(Verifies::Siblings, IID)
    };
    /// The rule of greedy drafts.
    GREEDY = RuleEntry {
        name: "greedy",
        words: "maximal coupling of p with the law of the last draft",
        ..RuleEntry::named(Verifies::Siblings, Drafts::Drawn(SchemeName::GREEDY))
    };
    /// The limit of many levels: the optimum of i.i.d. drafts.
    LEVEL = RuleEntry {
        name: "level",
        words: "reject by falling level of what is left of p over what is left of q, equal tokens \
                together: alpha* of i.i.d. drafts",
        ..RuleEntry::named(Verifies::Siblings, IID)
    };
    /// A plan that attains alpha*.
    OPTIMAL = RuleEntry {
        name: "optimal",
        words: "a plan that attains alpha*, from a flow or by level",
        ..RuleEntry::named(Verifies::Siblings, Drafts::Any)
    };
    /// SpecTr of chains with k-seq.
    SPECTR_K_SEQ = RuleEntry {
        name: "spectr-k-seq",
        words: "k-seq at each position of several chains, among those that agree so far",
        ..RuleEntry::named(Verifies::Paths, IID)
    };
    /// SpecTr of chains with an optimal plan.
    SPECTR_OPTIMAL = RuleEntry {
        name: "spectr-optimal",
        words: "an optimal plan at each position of several chains, among those that agree so far",
        ..RuleEntry::named(Verifies::Paths, IID)
    };
    /// From the leaves to the root.
    TRAVERSAL = RuleEntry {
        name: "traversal",
        words: "verify a tree from its leaves to its root",
        decoded: true,
        ..RuleEntry::named(Verifies::Tree, Drafts::Any)
    };
    /// A selected path, verified by greedy blocks.
    SELECT_GREEDY_BLOCK = RuleEntry {
        name: "select-greedy-block",
        words: "select one of several paths as evenly against p as possible; verify it as \
                greedy-block does, later rounds carry the change",
        decoded: true,
        ..RuleEntry::named(Verifies::Paths, IID)
    };
    /// A selected path, verified as a block.
    SELECT_BLOCK = RuleEntry {
        name: "select-block",
        words: "select one of several paths as evenly against p as possible; verify it as block \
                does",
        decoded: true,
        ..RuleEntry::named(Verifies::Paths, IID)
    };
    /// Paths by codes, by recursive rejection at every prefix.
    CODED_RRS = RuleEntry {
        name: "coded-rrs",
        words: "verify paths that a code each writes, one from every part of [0, 1), by recursive \
                rejection at every prefix, each with the law that is left to its code",
        decoded: true,
        ..RuleEntry::named(Verifies::Paths, Drafts::Codes)
    };
    /// Paths by codes, by passes at four levels at every prefix.
    CODED_LEVEL_4 = RuleEntry {
        name: "coded-level-4",
        words: "verify paths that a code each writes, as coded-rrs, by passes at the levels of \
                level-4 over all that are at a prefix",
        decoded: true,
        ..RuleEntry::named(Verifies::Paths, Drafts::Codes)
    };
    /// The optimum of a block, by a linear program.
    BLOCK_OPTIMAL = RuleEntry {
        name: "block-optimal",
        words: "the most accepted tokens of a round that any rule gives, by a linear program",
        ..RuleEntry::named(Verifies::Paths, IID)
    };
    /// A published rule that is refuted.
    SPECTR_GBV = RuleEntry {
        name: "spectr-gbv",
        words: "greedy block verification with several drafts; refuted for two or more",
        ..RuleEntry::named(Verifies::Paths, IID)
    };
    /// No rule: outputs alone.
    TEXT = RuleEntry {
        name: "text",
        words: "nothing is claimed but that what comes out follows p; needs no drafts",
        audited: true,
        ..RuleEntry::named(Verifies::Text, Drafts::Any)
    };
}
