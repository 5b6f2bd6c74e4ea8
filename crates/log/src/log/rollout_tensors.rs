//! The tensors of rollouts, by name, before anybody asks what they mean.

use super::tensor::Tensor;
use specgap_base::sorted::Map;

pub(super) const POSITION: &str = "rollout_position";
pub(super) const TOKEN: &str = "rollout_token";
pub(super) const ARGMAX: &str = "rollout_argmax";
pub(super) const Q: &str = "rollout_q";
pub(super) const TOP1: &str = "rollout_top1";
pub(super) const ENTROPY: &str = "rollout_entropy";
pub(super) const MARGIN: &str = "rollout_margin";
pub(super) const ACCEPTANCE: &str = "rollout_acceptance";
pub(super) const TARGET_P: &str = "rollout_target_p";
pub(super) const OVERLAP: &str = "rollout_overlap";
pub(super) const HEAD_OVERLAP: &str = "rollout_head_overlap";

/// Tensors of ids, [M, K].
pub(super) const IDS: [&str; 2] = [TOKEN, ARGMAX];

/// Tensors of numbers, [M, K].
pub(super) const FLOATS: [&str; 8] = [
    Q,
    TOP1,
    ENTROPY,
    MARGIN,
    ACCEPTANCE,
    TARGET_P,
    OVERLAP,
    HEAD_OVERLAP,
];

/// All tensors of rollouts that are known.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    [POSITION].into_iter().chain(IDS).chain(FLOATS)
}

/// The rollouts' tensors of a file, not looked at yet.
#[derive(Debug, Default)]
pub(super) struct HeldRollouts {
    pub tensors: Map<String, Tensor>,
    pub unreadable: Map<String, String>,
}

impl HeldRollouts {
    pub(super) fn is_empty(&self) -> bool {
        self.tensors.is_empty() && self.unreadable.is_empty()
    }
}
