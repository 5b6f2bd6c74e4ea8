//! Drafts that score some of the target's tokens alone.

use super::contents::Contents;
use super::error::LogError;
use super::tensor::Tensor;
use std::collections::HashMap;
use std::path::Path;

/// The tensor that says which tokens they are.
pub(super) const D2T: &str = "d2t";

/// The target's tokens that the entries of the draft's rows are about, in the order of these.
///
/// q is 0 at all others. Nothing is cut from p: what a draft cannot draw is never accepted.
#[derive(Clone, Debug)]
pub(super) struct SubVocabulary {
    ids: Vec<u32>,
}

impl SubVocabulary {
    /// Takes `d2t` of a file: token i of the draft is the target's i + d2t\[i\].
    ///
    /// # Errors
    /// Numbers that are not whole, not as many as the draft's rows are wide, or lead to a token
    /// below 0 or twice to the same.
    pub(super) fn take(
        path: &Path,
        contents: &mut Contents,
        draft: &Tensor,
    ) -> Result<Option<Self>, LogError> {
        let refused = |message: String| Err(LogError::tensor(path, D2T, message));
        if let Some(dtype) = contents.unreadable.get(D2T) {
            return refused(format!(
                "has entries of type {dtype}; it is i64 or i32 of shape [Vd]"
            ));
        }
        let Some(tensor) = contents.tensors.remove(D2T) else {
            return Ok(None);
        };
        if tensor.dtype.is_float() || tensor.shape.len() != 1 {
            return refused(format!(
                "is {} of shape {:?}; it is i64 or i32 of shape [Vd]: token i of the draft is \
                 token i + d2t[i] of the target",
                tensor.dtype, tensor.shape
            ));
        }
        if tensor.rows() != draft.columns() {
            return refused(format!(
                "has {} entries but {} has {} columns; there is one for each token of the draft",
                tensor.rows(),
                draft.name,
                draft.columns()
            ));
        }
        let window = tensor.window(0..tensor.rows())?;
        let mut ids = Vec::with_capacity(tensor.rows());
        let mut seen = HashMap::with_capacity(tensor.rows());
        for row in 0..tensor.rows() {
            let offset = window.integers(row).next().unwrap_or(0);
            let token = i64::try_from(row).unwrap_or(i64::MAX).checked_add(offset);
            let entry = |message: String| Err(LogError::entry(path, D2T, row, 0, message));
            let Some(token) = token.and_then(|token| u32::try_from(token).ok()) else {
                return entry(format!(
                    "{offset} leads to no token of the target: token i of the draft is token i + \
                     d2t[i]; if these are the target's ids themselves, subtract 0, 1, 2, ..."
                ));
            };
            if let Some(first) = seen.insert(token, row) {
                return entry(format!(
                    "leads to token {token} of the target, as entry {first} does; if these are the \
                     target's ids themselves, subtract 0, 1, 2, ..., and if two tokens of the \
                     draft are one of the target, add their probabilities first"
                ));
            }
            ids.push(token);
        }
        Ok(Some(Self { ids }))
    }

    /// Counts the draft's tokens.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The tokens, in the order of the draft's rows.
    pub(super) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Refuses tokens that the target does not have.
    pub(super) fn within(&self, path: &Path, vocabulary: usize) -> Result<(), LogError> {
        let outside = |&id: &u32| id as usize >= vocabulary;
        match self.ids.iter().position(outside) {
            None => Ok(()),
            Some(row) => Err(LogError::entry(
                path,
                D2T,
                row,
                0,
                format!(
                    "leads to token {}, but the target's rows have V = {vocabulary}",
                    self.ids[row]
                ),
            )),
        }
    }

    /// Makes a row of the draft one over the target's first `vocabulary` tokens, with `absent` at
    /// all others; `own` is room for it.
    pub(super) fn spread(
        &self,
        draft: &mut Vec<f64>,
        vocabulary: usize,
        absent: f64,
        own: &mut Vec<f64>,
    ) {
        std::mem::swap(draft, own);
        draft.clear();
        draft.resize(vocabulary, absent);
        for (&id, &entry) in self.ids.iter().zip(own.iter()) {
            // Behind what `--vocab` keeps there is nothing to put it in.
            if let Some(place) = draft.get_mut(id as usize) {
                *place = entry;
            }
        }
    }
}
