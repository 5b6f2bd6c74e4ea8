//! All rules.

use super::{RuleEntry, RuleName, k_seq, level, named, rejection, spechub, target_mass};
use crate::entry_name::entry_table;

entry_table! {
    /// Every rule: of chains, of siblings, of paths and trees, of none.
    pub const RULES: [RuleEntry] as RuleName; "rule", UnknownRule;
    /// min(1, p/q), draft by draft of a chain (Leviathan et al. 2023, Algorithm 1); "token
    /// verification" since Sun et al. 2024.
    TOKEN = rejection::TOKEN;
    /// A greedy draft taken for a one-hot law.
    ONE_HOT = target_mass::ONE_HOT;
    /// Typical acceptance by a threshold on p.
    THRESHOLD = target_mass::THRESHOLD;
    /// Block verification of one chain (Sun et al. 2024).
    BLOCK = named::BLOCK;
    /// Greedy block verification: as many as one round can take.
    GREEDY_BLOCK = named::GREEDY_BLOCK;
    /// One chain by token, with what the rounds before did not need.
    CARRIED = named::CARRIED;
    /// The same by block.
    CARRIED_BLOCK = named::CARRIED_BLOCK;
    /// Recursive rejection of i.i.d. drafts.
    RRS = rejection::RRS;
    /// Recursive rejection of drafts without replacement.
    RRS_WO = rejection::RRS_WO;
    /// The tokens of least E/q and of least E/p, of one noise E.
    SHARED_GUMBEL = named::SHARED_GUMBEL;
    /// The tokens of least E^k/q, one of each noise, and of least E^k/p of all.
    GLS = named::GLS;
    /// The limit of many levels: the optimum of i.i.d. drafts.
    LEVEL = named::LEVEL;
    /// Passes at four levels.
    LEVEL_4 = level::LEVEL_4;
    /// SpecTr's rule of one factor.
    K_SEQ = k_seq::K_SEQ;
    /// Rejection of the first draft alone.
    NAIVE_TREE = named::NAIVE_TREE;
    /// SpecHub's plan.
    SPECHUB = spechub::SPECHUB;
    /// The rule of greedy drafts.
    GREEDY = named::GREEDY;
    /// A plan that attains alpha*.
    OPTIMAL = named::OPTIMAL;
    /// One draft selected by weights, verified as the only one (Khisti et al. 2024).
    IMPORTANCE = named::IMPORTANCE;
    /// A draw from p, accepted if it is a draft.
    EXACT_MATCH = target_mass::EXACT_MATCH;
    /// SpecTr of chains with recursive rejection.
    SPECTR_RRS = named::SPECTR_RRS;
    /// SpecTr of chains with k-seq.
    SPECTR_K_SEQ = named::SPECTR_K_SEQ;
    /// SpecTr of chains with an optimal plan.
    SPECTR_OPTIMAL = named::SPECTR_OPTIMAL;
    /// From the leaves to the root.
    TRAVERSAL = named::TRAVERSAL;
    /// From the leaves to the root, by passes at four levels there.
    TRAVERSAL_4 = named::TRAVERSAL_4;
    /// A selected path, verified as a block.
    SELECT_BLOCK = named::SELECT_BLOCK;
    /// A selected path, verified by greedy blocks.
    SELECT_GREEDY_BLOCK = named::SELECT_GREEDY_BLOCK;
    /// The last path in an order by p/q, verified as a block (Thomas, Pal 2026).
    GBV = named::GBV;
    /// The optimum of a block, by a linear program.
    BLOCK_OPTIMAL = named::BLOCK_OPTIMAL;
    /// A published rule that is refuted.
    SPECTR_GBV = named::SPECTR_GBV;
    /// No rule: outputs alone.
    TEXT = named::TEXT;
}
