//! The tensors of rollouts, by name, before anybody asks what they mean.

use super::tensor::Tensor;
use std::collections::BTreeMap;

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

/// All tensors of rollouts that are known.
pub(super) const NAMES: [&str; 11] = [
    POSITION,
    TOKEN,
    ARGMAX,
    Q,
    TOP1,
    ENTROPY,
    MARGIN,
    ACCEPTANCE,
    TARGET_P,
    OVERLAP,
    HEAD_OVERLAP,
];

/// The rollouts' tensors of a file, not looked at yet.
#[derive(Debug, Default)]
pub(super) struct HeldRollouts {
    pub tensors: BTreeMap<String, Tensor>,
    pub unreadable: BTreeMap<String, String>,
}

impl HeldRollouts {
    pub(super) fn is_empty(&self) -> bool {
        self.tensors.is_empty() && self.unreadable.is_empty()
    }
}
