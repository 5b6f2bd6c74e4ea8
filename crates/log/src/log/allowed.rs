//! Which tokens a mask lets the target draw: of a grammar, of banned words, of a request's own choice.

use super::beside::Beside;
use super::error::LogError;
use super::mask::{BITS, is_packed};
use super::reader::Log;

impl Log {
    /// Whether any file has masks.
    pub fn has_masks(&self) -> bool {
        let has = |shard: &super::reader::Shard| shard.beside[Beside::Allowed].is_some();
        self.shards.iter().any(has)
    }

    /// Which tokens the mask of a position allows, one truth value a token of the vocabulary; `out`
    /// is empty where its file has no masks. O(V).
    ///
    /// # Errors
    /// A file that was shortened since the log was opened, or cannot be read; entries other than 0
    /// and 1; a mask that allows no token. Each names file, tensor, row and column.
    ///
    /// # Example
    /// ```
    /// use specgap_log::log::{Dtype, HeldTensor, Log, Metadata};
    /// use std::sync::Arc;
    /// let held = |name: &str, dtype, shape: Vec<usize>, entries: Vec<u8>| HeldTensor {
    ///     name: name.to_owned(), dtype, shape, entries: Arc::new(entries),
    /// };
    /// let row: Vec<u8> = [0.5f32, 0.25, 0.25].iter().flat_map(|x| x.to_le_bytes()).collect();
    /// let tensors = vec![
    ///     held("target_probs", Dtype::F32, vec![1, 3], row.clone()),
    ///     held("draft_probs", Dtype::F32, vec![1, 3], row),
    ///     // Bits: the first and the third.
    ///     held("allowed", Dtype::I32, vec![1, 1], 0b101i32.to_le_bytes().to_vec()),
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
    use specgap_entries::entries::Dtype;
    use std::sync::Arc;

    /// Two positions of 40 tokens, and a mask.
    fn masked(dtype: Dtype, columns: usize, entries: Vec<u8>) -> Result<Log, LogError> {
        let held = |name: &str, dtype, columns, entries: Vec<u8>| HeldTensor {
            name: name.to_owned(),
            dtype,
            shape: vec![2, columns],
            entries: Arc::new(entries),
        };
        let rows = || {
            let logits = (0..80u8).map(|x| f32::from(x % 7));
            logits.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()
        };
        let tensors = vec![
            held("target_logits", Dtype::F32, 40, rows()),
            held("draft_logits", Dtype::F32, 40, rows()),
            held(ALLOWED, dtype, columns, entries),
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
        let message = |found: Result<Log, LogError>| found.unwrap_err().to_string();
        for (dtype, columns) in [(Dtype::U8, 2), (Dtype::I64, 2), (Dtype::I32, 3)] {
            let found = message(masked(dtype, columns, vec![1; 2 * columns * dtype.size()]));
            assert!(found.contains("masked: allowed: is"), "{found}");
            assert!(
                found.contains("[N, 40]") && found.contains("[N, 2]"),
                "{found}"
            );
        }
        let found = message(masked(Dtype::F32, 40, vec![0; 320]));
        assert!(
            found.contains("allowed") && found.contains("f32"),
            "{found}"
        );
        let mut out = Vec::new();
        let mut entries = vec![1u8; 80];
        entries[43] = 2;
        let log = masked(Dtype::U8, 40, entries).unwrap();
        assert!(log.allowed(0, &mut out).is_ok());
        let found = log.allowed(1, &mut out).unwrap_err().to_string();
        assert!(
            found.contains("row 1") && found.contains("column 3"),
            "{found}"
        );
        assert!(
            found.contains("is 2; it is 1 where a token is allowed"),
            "{found}"
        );
        let mut entries = vec![1u8; 80];
        entries[40..].fill(0);
        let log = masked(Dtype::U8, 40, entries).unwrap();
        let found = log.allowed(1, &mut out).unwrap_err().to_string();
        assert!(found.contains("allows none of 40 tokens"), "{found}");
    }
}
