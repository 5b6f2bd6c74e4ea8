//! Hashes of tensors: what tells logs apart that nobody forged.

use super::error::LogError;
use super::tensor::Tensor;
use sha2::{Digest, Sha256};

/// Rows of integers that are mapped at a time.
const ROWS: usize = 1 << 16;

/// Adds rows of a tensor, as they are in the file.
pub(super) fn update(
    hash: &mut Sha256,
    tensor: Option<&Tensor>,
    rows: std::ops::Range<usize>,
) -> Result<(), LogError> {
    let Some(tensor) = tensor else {
        hash.update([0]);
        return Ok(());
    };
    hash.update([1]);
    hash.update(tensor.dtype.to_string());
    hash.update((tensor.columns() as u64).to_le_bytes());
    for first in rows.clone().step_by(ROWS) {
        let end = rows.end.min(first + ROWS);
        let window = tensor.window(first..end)?;
        hash.update(folded(window.bytes()));
    }
    Ok(())
}

/// Bytes as 256 bits: four lanes, each a chain of the steps of xxHash64 (Collet 2012), and
/// at last the length.
///
/// Every step is one-to-one in the lane and in the word, so that bytes that differ in one
/// word never fold to the same; others do by chance, with probability 2^-64 or so a lane.
/// Not safe against forgery. O(bytes), at the speed of memory.
fn folded(bytes: &[u8]) -> [u8; 32] {
    const ODD: [u64; 2] = [0x9e37_79b1_85eb_ca87, 0xc2b2_ae3d_27d4_eb4f];
    let step = |lane: u64, word: u64| {
        lane.wrapping_add(word.wrapping_mul(ODD[1]))
            .rotate_left(31)
            .wrapping_mul(ODD[0])
    };
    let mut lanes = [1u64, 2, 3, 4];
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut take = |block: &[u8; 32]| {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = step(*lane, u64::from_le_bytes(*word));
        }
    };
    blocks.iter().for_each(&mut take);
    let mut last = [0; 32];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    take(&last);
    let mut out = [0; 32];
    for (to, lane) in out.as_chunks_mut::<8>().0.iter_mut().zip(lanes) {
        *to = step(lane, bytes.len() as u64).to_le_bytes();
    }
    out
}

pub(super) fn hexadecimal(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::folded;
    use std::collections::HashSet;

    /// Any byte, any length, and any two words that change places.
    #[test]
    fn bytes_that_differ_fold_apart() {
        let bytes: Vec<u8> = (1..=200u8).collect();
        let mut seen = HashSet::new();
        for end in 0..=bytes.len() {
            assert!(seen.insert(folded(&bytes[..end])));
        }
        // Zeros at the end count, though the last block is filled with zeros.
        for zeros in 1..70 {
            assert!(seen.insert(folded(&vec![0; zeros])));
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert!(seen.insert(folded(&other)), "{at}, {bit}");
            }
        }
        for (a, b) in [(0, 1), (0, 4), (3, 7), (5, 24)] {
            let mut other = bytes.clone();
            for k in 0..8 {
                other.swap(8 * a + k, 8 * b + k);
            }
            assert!(seen.insert(folded(&other)), "{a}, {b}");
        }
        assert_eq!(folded(&bytes), folded(&bytes.clone()));
    }
}
