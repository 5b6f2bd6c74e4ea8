//! One position of a log.

use specgap_entries::Scratch;
use std::collections::HashMap;

/// What the entries of the rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// Natural logarithms up to a constant of the row: `*_logits`.
    #[default]
    Logits,
    /// Probabilities: `*_probs`.
    Probabilities,
    /// Natural logarithms of probabilities: `*_logprobs`.
    LogProbabilities,
}

impl RowKind {
    pub(super) const ALL: [Self; 3] = [Self::Logits, Self::Probabilities, Self::LogProbabilities];

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Logits => "logits",
            Self::Probabilities => "probs",
            Self::LogProbabilities => "logprobs",
        }
    }
}

/// One position of a log.
///
/// `target` and `draft` have one entry for each listed token: all V of a full
/// row, or those of a top-heavy row, whose ids are in `token_ids`. Both are in order of
/// token id, whatever the order in the file: of equal tokens the first is the one with the
/// lowest id. Entries are what the file holds, exactly, as `f64`; -0 is 0. Where target and draft
/// have lists of their own, the tokens are those of either, and an entry is NaN where its
/// row does not list the token, or none of its mass where the log says that unlisted tokens
/// are never drawn.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The target's row.
    pub target: Vec<f64>,
    /// The draft's row; NaN throughout where the log has none.
    pub draft: Vec<f64>,
    /// Whether the log has no row of the draft here (`draft_row` is 0): behind drafts that were
    /// all accepted an engine takes one more token from the target alone.
    pub lacks_draft: bool,
    /// What the target's entries are.
    pub target_kind: RowKind,
    /// What the draft's entries are.
    pub draft_kind: RowKind,
    /// Ids of the listed tokens; empty for a full row.
    pub token_ids: Vec<u32>,
    /// Target mass of the tokens that are not listed, for each of the
    /// metadata's `rest_temperatures`; empty for a full row.
    pub target_rest: Vec<f64>,
    /// Draft mass of the tokens that are not listed, for each of `rest_temperatures`.
    pub draft_rest: Vec<f64>,
    /// Which prompt it belongs to.
    pub prompt_id: Option<i64>,
    /// Its index in the generated text, from 0.
    pub position: Option<i64>,
    /// The token that was drawn from the target there.
    pub token: Option<i64>,
    /// Tokens that were drafted there.
    pub drafts: Vec<i64>,
    /// The token that a verifier put out there.
    pub output: Option<i64>,
    /// The probability of acceptance that a head predicts for `token`, from what the draft
    /// knows once it has read it.
    pub head_acceptance: Option<f64>,
    /// The overlap of both rows that a head predicts from what the draft knows.
    pub head_overlap: Option<f64>,
    /// 1 if `token` is the draft's likeliest, else 0, where the log says so beside its rows.
    pub hit: Option<f64>,
    /// The target's probability of the draft's likeliest token, said likewise.
    pub p_hit: Option<f64>,
    /// The draft's largest probability, said likewise.
    pub max_q: Option<f64>,
    /// Sum of min(p, q), said likewise.
    pub overlap: Option<f64>,
    /// The target's mass on tokens that the draft can draw, said likewise.
    pub covered: Option<f64>,
    pub(super) scratch: Scratch,
    pub(super) head: Vec<f64>,
    pub(super) sorted: Vec<u32>,
    pub(super) own_ids: [Vec<u32>; 2],
}

impl Row {
    /// Puts the listed tokens in order of their ids.
    pub(super) fn sort_list(&mut self) {
        if self.token_ids.is_sorted() {
            return;
        }
        let entries = self.target.iter().zip(&self.draft);
        let mut tokens: Vec<(u32, f64, f64)> = (self.token_ids.iter().zip(entries))
            .map(|(&id, (&p, &q))| (id, p, q))
            .collect();
        tokens.sort_unstable_by_key(|&(id, ..)| id);
        self.token_ids.clear();
        self.target.clear();
        self.draft.clear();
        for (id, p, q) in tokens {
            self.token_ids.push(id);
            self.target.push(p);
            self.draft.push(q);
        }
    }

    /// Puts two lists together: the tokens of the target's, then those that the draft's alone
    /// has. A row has `absent` for tokens that it does not list.
    pub(super) fn join_lists(&mut self, absent: [f64; 2]) {
        let [of_target, of_draft] = &self.own_ids;
        self.token_ids.clone_from(of_target);
        if of_draft == of_target {
            return;
        }
        self.sorted.clone_from(of_target);
        self.sorted.sort_unstable();
        let alone = |id: &u32| self.sorted.binary_search(id).is_err();
        self.token_ids
            .extend(of_draft.iter().copied().filter(alone));
        let own: HashMap<u32, f64> = of_draft.iter().copied().zip(self.draft.drain(..)).collect();
        let entry = |id: &u32| own.get(id).copied().unwrap_or(absent[1]);
        self.draft.extend(self.token_ids.iter().map(entry));
        self.target.resize(self.token_ids.len(), absent[0]);
    }

    /// The id of the token at a place in `target` and `draft`.
    pub fn token_at(&self, place: usize) -> u32 {
        self.token_ids
            .get(place)
            .copied()
            .unwrap_or(u32::try_from(place).unwrap_or(u32::MAX))
    }
}
