//! The type of a tensor's entries, and entries as numbers.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a tensor's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// Signed 32-bit integers.
    I32,
    /// Signed 64-bit integers.
    I64,
    /// Bytes, or truth values of a byte each: of `allowed` alone.
    U8,
}

impl Dtype {
    /// Bytes of one entry.
    pub fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
            Self::U8 => 1,
        }
    }

    /// Tells whether entries are floating point.
    pub fn is_float(self) -> bool {
        !matches!(self, Self::I32 | Self::I64 | Self::U8)
    }

    /// Returns how far the sum of a row of probabilities of this type may be from 1.
    ///
    /// Rounding alone moves it by up to half a unit of each entry, and entries
    /// below the smallest subnormal number vanish: 2e-3 at V = 49,152 in f16.
    pub fn sum_tolerance(self) -> f64 {
        match self {
            Self::F64 => 1e-6,
            Self::F32 => 1e-4,
            _ => 2e-2,
        }
    }

    /// The most that rounding to the type moves a number of size at most 1: relative to the
    /// number, and where that is less, by itself.
    pub fn rounding(self) -> [f64; 2] {
        match self {
            Self::F16 => [2f64.powi(-11), 2f64.powi(-25)],
            Self::Bf16 => [2f64.powi(-8), 0.0],
            Self::F32 => [2f64.powi(-24), 0.0],
            _ => [2f64.powi(-53), 0.0],
        }
    }

    /// Reads little-endian entries as numbers, exactly; -0 is 0, so that equal tokens compare equal.
    pub fn read(self, bytes: &[u8], scratch: &mut Scratch, out: &mut Vec<f64>) {
        out.clear();
        match self {
            Self::F64 => out.extend(entries::<8>(bytes).map(|b| f64::from_le_bytes(b) + 0.0)),
            Self::F32 => {
                out.extend(entries::<4>(bytes).map(|b| f64::from(f32::from_le_bytes(b)) + 0.0));
            }
            Self::F16 => {
                scratch.f16.clear();
                scratch
                    .f16
                    .extend(entries::<2>(bytes).map(f16::from_le_bytes));
                scratch.f32.resize(scratch.f16.len(), 0.0);
                scratch.f16.convert_to_f32_slice(&mut scratch.f32);
                out.extend(scratch.f32.iter().map(|&x| f64::from(x) + 0.0));
            }
            Self::Bf16 => {
                scratch.bf16.clear();
                scratch
                    .bf16
                    .extend(entries::<2>(bytes).map(bf16::from_le_bytes));
                scratch.f32.resize(scratch.bf16.len(), 0.0);
                scratch.bf16.convert_to_f32_slice(&mut scratch.f32);
                out.extend(scratch.f32.iter().map(|&x| f64::from(x) + 0.0));
            }
            Self::I32 | Self::I64 | Self::U8 => {
                out.extend(self.integers(bytes).map(|x| x as f64));
            }
        }
    }

    /// Little-endian entries as whole numbers.
    pub fn integers(self, bytes: &[u8]) -> impl Iterator<Item = i64> + use<'_> {
        bytes.chunks_exact(self.size()).map(|chunk| match *chunk {
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            [a] => i64::from(a),
            // Chunks are exact.
            _ => 0,
        })
    }
}

fn entries<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
        })
    }
}

/// Room for half-precision rows, which are widened in two steps.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    f16: Vec<f16>,
    bf16: Vec<bf16>,
    f32: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_zero_is_read_as_zero() {
        let halves = [0x00, 0x80, 0x00, 0xc0];
        for (dtype, bytes) in [
            (
                Dtype::F64,
                [(-0f64).to_le_bytes(), (-2f64).to_le_bytes()].concat(),
            ),
            (
                Dtype::F32,
                [(-0f32).to_le_bytes(), (-2f32).to_le_bytes()].concat(),
            ),
            (Dtype::F16, halves.to_vec()),
            (Dtype::Bf16, halves.to_vec()),
        ] {
            let mut out = Vec::new();
            dtype.read(&bytes, &mut Scratch::default(), &mut out);
            assert_eq!(out, [0.0, -2.0]);
            assert!(out[0].is_sign_positive(), "{dtype}");
        }
    }
}
