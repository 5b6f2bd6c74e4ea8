//! The forms in which a log may hold masks, and which are refused.

use super::beside::{ALLOWED, Beside, Columns};
use super::error::LogError;
use super::tensor::Tensor;
use specgap_entries::Dtype;
use std::path::Path;

/// Bits of an entry of a mask that is packed, as xgrammar's and so vLLM's and SGLang's are.
pub(super) const BITS: usize = 32;

/// Tells whether a mask has a bit for each of so many tokens, and not an entry.
pub(super) fn is_packed(tensor: &Tensor, tokens: usize) -> bool {
    tensor.dtype == Dtype::I32
        && tensor.columns() == tokens.div_ceil(BITS)
        && tensor.columns() != tokens
}

/// Refuses a mask that is not one of rows of so many tokens. Of lists an audit refuses it.
pub(super) fn check(path: &Path, beside: &Columns<Tensor>, tokens: usize) -> Result<(), LogError> {
    let (Some(tensor), None) = (&beside[Beside::Allowed], &beside[Beside::TokenIds]) else {
        return Ok(());
    };
    if tensor.columns() == tokens || is_packed(tensor, tokens) {
        return Ok(());
    }
    Err(LogError::tensor(
        path,
        ALLOWED,
        format!(
            "is {} of shape {:?}; it has 1 (allowed) or 0 (masked) for each of the {tokens} tokens \
             of a row, as u8, bool or i32 of shape [N, {tokens}], or bits of i32 of shape [N, {}], the \
             lowest first",
            tensor.dtype,
            tensor.shape,
            tokens.div_ceil(BITS)
        ),
    ))
}
