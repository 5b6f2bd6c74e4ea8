//! Which tokens a mask lets the target draw: of a grammar, of banned words, of a request's own choice.

use super::beside::Beside;
use super::error::LogError;
use super::mask::{BITS, is_packed};
use super::reader::Log;
use super::row::{Row, RowKind};

impl Log {
    /// Tells whether any file has masks.
    pub fn has_masks(&self) -> bool {
        self.any_has(Beside::Allowed)
    }

    /// Refuses masks beside rows that list some tokens only.
    ///
    /// # Errors
    /// Such rows: how much of the others' mass the masks leave is not known.
    pub fn refuse_masked_lists(&self) -> Result<(), LogError> {
        match self.has_masks() && self.is_top_heavy() {
            false => Ok(()),
            true => Err(LogError::format(
                self.path(),
                "rows list some tokens only, and how much of the others' mass allowed leaves is not \
                 known; log full rows, or rows as they were sampled from and no masks",
            )),
        }
    }

    /// Takes the tokens that a position's mask forbids out of the target's full row, and not out of
    /// the draft's, which is what drafts were drawn from. O(V).
    ///
    /// # Errors
    /// As [`Log::allowed`]; a mask that leaves no token with mass.
    pub fn mask_target(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        if !self.has_masks() || !row.token_ids.is_empty() {
            return Ok(());
        }
        let mut allowed = Vec::new();
        self.allowed(index, &mut allowed)?;
        let none = match row.target_kind {
            RowKind::Probabilities => 0.0,
            _ => f64::NEG_INFINITY,
        };
        for (entry, allowed) in row.target.iter_mut().zip(&allowed) {
            if !allowed {
                *entry = none;
            }
        }
        match row.target.iter().any(|entry| *entry > none) {
            true => Ok(()),
            false => Err(LogError::format(
                self.path(),
                format!(
                    "position {index}: allowed masks every token that the target's row gives mass; \
                     compare the mask with the text before this position: masks that are off by one \
                     do this"
                ),
            )),
        }
    }

    /// Reads which tokens the mask of a position allows, one truth value a token of the vocabulary;
    /// `out` is empty where its file has no masks. O(V).
    ///
    /// # Errors
    /// A file that was shortened since the log was opened, or cannot be read; entries other than 0
    /// and 1; a mask that allows no token. Each names file, tensor, row and column.
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{Dtype, HeldTensor, Log, Metadata};
    /// let row: Vec<u8> = [0.5f32, 0.25, 0.25].iter().flat_map(|x| x.to_le_bytes()).collect();
    /// let tensors = vec![
    ///     HeldTensor::new("target_probs", Dtype::F32, &[1, 3], row.clone()),
    ///     HeldTensor::new("draft_probs", Dtype::F32, &[1, 3], row),
    ///     // Bits: the first and the third.
    ///     HeldTensor::new("allowed", Dtype::I32, &[1, 1], 0b101i32.to_le_bytes()),
    /// ];
    /// let log = Log::held("mine".as_ref(), Metadata::default(), tensors, None)?;
    /// let mut allowed = Vec::new();
    /// log.allowed(0, &mut allowed)?;
    /// assert_eq!(allowed, [true, false, true]);
    /// # Ok::<(), specgap_log::log::LogError>(())
    /// ```
    pub fn allowed(&self, index: usize, out: &mut Vec<bool>) -> Result<(), LogError> {
        out.clear();
        let (shard, row) = self.place(index);
        let Some(shard) = self.shards.get(shard) else {
            return Ok(());
        };
        let Some(tensor) = &shard.beside[Beside::Allowed] else {
            return Ok(());
        };
        let entry = |column: usize, message: String| tensor.refused(row, column, message);
        let window = tensor.window(row..row + 1)?;
        let tokens = self.vocabulary();
        if is_packed(tensor, shard.target.columns()) {
            let bits = window.integers(row).flat_map(|word| {
                // Of a negative number the lowest 32 bits are those of the file.
                (0..BITS).map(move |bit| word >> bit & 1 == 1)
            });
            out.extend(bits.take(tokens));
        } else {
            for (column, value) in window.integers(row).take(tokens).enumerate() {
                match value {
                    0 | 1 => out.push(value == 1),
                    _ => {
                        let message = "1 where a token is allowed, and 0 where it is masked";
                        return Err(entry(column, format!("is {value}; it is {message}")));
                    }
                }
            }
        }
        if out.contains(&true) {
            Ok(())
        } else {
            Err(entry(
                0,
                format!(
                    "allows none of {tokens} tokens, and a target draws one; a position without a \
                     mask has 1 everywhere"
                ),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::beside::ALLOWED;
    use super::super::metadata::Metadata;
    use super::super::tensor::HeldTensor;
    use super::*;
    use specgap_entries::Dtype;

    /// Two positions of 40 tokens, and a mask.
    fn masked(dtype: Dtype, columns: usize, entries: Vec<u8>) -> Result<Log, LogError> {
        let logits = (0..80u8).map(|x| f32::from(x % 7));
        let rows: Vec<u8> = logits.flat_map(f32::to_le_bytes).collect();
        let tensors = vec![
            HeldTensor::new("target_logits", Dtype::F32, &[2, 40], rows.clone()),
            HeldTensor::new("draft_logits", Dtype::F32, &[2, 40], rows),
            HeldTensor::new(ALLOWED, dtype, &[2, columns], entries),
        ];
        Log::held("masked".as_ref(), Metadata::default(), tensors, None)
    }

    /// Token t of position i is allowed.
    fn is_allowed(i: usize, t: usize) -> bool {
        (t * t + i).is_multiple_of(3) || t == 39
    }

    #[test]
    fn masks_are_the_same_in_every_form() {
        let each = || (0..2).flat_map(|i| (0..40).map(move |t| is_allowed(i, t)));
        let bytes: Vec<u8> = each().map(u8::from).collect();
        let numbers: Vec<u8> = each().flat_map(|x| i32::from(x).to_le_bytes()).collect();
        let long: Vec<u8> = each().flat_map(|x| i64::from(x).to_le_bytes()).collect();
        let mut bits = Vec::new();
        for i in 0..2 {
            for word in 0..2 {
                let held = (0..32).filter(|bit| {
                    let t = word * 32 + bit;
                    // Bits beyond the vocabulary are nothing.
                    t >= 40 || is_allowed(i, t)
                });
                bits.extend(held.fold(0u32, |sum, bit| sum | 1 << bit).to_le_bytes());
            }
        }
        for (dtype, columns, entries) in [
            (Dtype::U8, 40, bytes),
            (Dtype::I32, 40, numbers),
            (Dtype::I64, 40, long),
            (Dtype::I32, 2, bits),
        ] {
            let log = masked(dtype, columns, entries).unwrap();
            assert!(log.has_masks() && log.ignored_tensors().is_empty());
            for i in 0..2 {
                let mut found = vec![true; 3];
                log.allowed(i, &mut found).unwrap();
                let expected: Vec<bool> = (0..40).map(|t| is_allowed(i, t)).collect();
                assert_eq!(found, expected, "{dtype} {columns} {i}");
            }
        }
    }

    #[test]
    fn masks_that_are_none_are_refused() {
        let mut two = vec![1u8; 80];
        two[43] = 2;
        let none = [[1u8; 40], [0; 40]].concat();
        let shape = ["masked: allowed: is", "[N, 40]", "[N, 2]"];
        let entry = [
            "row 1",
            "column 3",
            "is 2; it is 1 where a token is allowed",
        ];
        for (dtype, columns, entries, words) in [
            (Dtype::U8, 2, vec![1; 4], &shape[..]),
            (Dtype::I64, 2, vec![1; 32], &shape),
            (Dtype::I32, 3, vec![1; 24], &shape),
            (
                Dtype::F32,
                40,
                vec![0; 320],
                &["allowed", "f32", "u8, bool, i64 or i32"],
            ),
            (Dtype::U8, 40, two, &entry),
            (Dtype::U8, 40, none, &["allows none of 40 tokens"]),
        ] {
            let read = masked(dtype, columns, entries).and_then(|log| {
                let mut out = Vec::new();
                // The first mask is one.
                log.allowed(0, &mut out).unwrap();
                log.allowed(1, &mut out)
            });
            let found = read.unwrap_err().to_string();
            for word in words {
                assert!(found.contains(word), "{found}");
            }
        }
    }
}
