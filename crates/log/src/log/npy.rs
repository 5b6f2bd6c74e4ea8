//! The header of an `.npy` array.
//!
//! Three keys of a Python literal. The libraries that read it multiply shapes
//! without looking and allocate what a header says, so that a header that lies
//! takes the program down; this reads the subset that plain arrays have, and
//! refuses the rest.

use std::io::Read;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Real headers of plain arrays have 64 to 192 bytes.
const LONGEST: usize = 1 << 16;

/// What an `.npy` header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NpyHeader {
    /// NumPy's type, such as `<f4`.
    pub descr: String,
    /// Column-major.
    pub fortran_order: bool,
    pub shape: Vec<u64>,
    /// Bytes of the header, up to the first entry.
    pub length: u64,
}

impl NpyHeader {
    /// Reads as many bytes as the header has and not one more.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let mut take = |bytes: &mut [u8]| {
            reader
                .read_exact(bytes)
                .map_err(|error| format!("it ends early or cannot be unpacked ({error})"))
        };
        let mut start = [0; 8];
        take(&mut start)?;
        let (magic, version) = start.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err("it does not begin with NumPy's magic bytes".to_owned());
        }
        let (text_length, prefix) = match version.first() {
            Some(1) => {
                let mut length = [0; 2];
                take(&mut length)?;
                (usize::from(u16::from_le_bytes(length)), 10)
            }
            Some(2 | 3) => {
                let mut length = [0; 4];
                take(&mut length)?;
                (u32::from_le_bytes(length) as usize, 12)
            }
            other => return Err(format!("version {other:?} is none of 1, 2 and 3")),
        };
        if text_length > LONGEST {
            return Err(format!(
                "it claims {text_length} bytes, more than {LONGEST}"
            ));
        }
        let mut text = vec![0; text_length];
        take(&mut text)?;
        let text = std::str::from_utf8(&text).map_err(|_| "it is no text".to_owned())?;
        let mut header = parse(text).ok_or_else(|| {
            format!(
                "{:?} is not a literal of 'descr', 'fortran_order' and 'shape' of a plain array",
                text.trim_end()
            )
        })?;
        header.length = (prefix + text_length) as u64;
        Ok(header)
    }

    /// The bytes of a version 1 header, padded so that entries begin at a
    /// multiple of 64 bytes.
    pub(super) fn bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
        let shape = match shape {
            [one] => format!("({one},)"),
            many => format!(
                "({})",
                many.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        };
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let padded = (10 + text.len() + 1).next_multiple_of(64);
        while 10 + text.len() + 1 < padded {
            text.push(' ');
        }
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        // At most 20 digits a dimension: far below 65,536.
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }
}

fn parse(text: &str) -> Option<NpyHeader> {
    let mut rest = text.trim().strip_prefix('{')?.trim_start();
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    loop {
        if let Some(end) = rest.strip_prefix('}') {
            if !end.is_empty() {
                return None;
            }
            break;
        }
        let (key, after) = quoted(rest)?;
        rest = after.trim_start().strip_prefix(':')?.trim_start();
        let repeated = match key {
            "descr" => {
                let (value, after) = quoted(rest)?;
                rest = after;
                descr.replace(value.to_owned()).is_some()
            }
            "fortran_order" => {
                let value = rest.starts_with("True");
                rest = rest
                    .strip_prefix("True")
                    .or_else(|| rest.strip_prefix("False"))?;
                fortran_order.replace(value).is_some()
            }
            "shape" => {
                let (inside, after) = rest.strip_prefix('(')?.split_once(')')?;
                rest = after;
                let mut lengths = Vec::new();
                let mut entries = inside.split(',').map(str::trim).peekable();
                while let Some(entry) = entries.next() {
                    // One empty entry after the last comma.
                    if entry.is_empty() && entries.peek().is_none() {
                        break;
                    }
                    // NumPy 1 on Python 2 wrote 3L.
                    lengths.push(entry.trim_end_matches('L').parse().ok()?);
                }
                shape.replace(lengths).is_some()
            }
            _ => return None,
        };
        if repeated {
            return None;
        }
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
    Some(NpyHeader {
        descr: descr?,
        fortran_order: fortran_order?,
        shape: shape?,
        length: 0,
    })
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (inside, after) = text.get(1..)?.split_once(quote)?;
    // No escapes: none of ours nor of plain types has one.
    (!inside.contains('\\')).then_some((inside, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for shape in [vec![], vec![7], vec![3, 49_152], vec![0, 5]] {
            let mut bytes = NpyHeader::bytes("<f2", &shape);
            assert_eq!(bytes.len() % 64, 0);
            let length = bytes.len() as u64;
            bytes.extend([1, 2, 3]);
            let mut reader = bytes.as_slice();
            let header = NpyHeader::read(&mut reader).unwrap();
            assert_eq!(header.descr, "<f2");
            assert!(!header.fortran_order);
            assert_eq!(
                header.shape,
                shape.iter().map(|&n| n as u64).collect::<Vec<_>>()
            );
            assert_eq!(header.length, length);
            assert_eq!(reader, [1, 2, 3]);
        }
    }

    #[test]
    fn headers_of_other_shapes_are_refused() {
        let with = |text: &str| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([1, 0]);
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
            NpyHeader::read(&mut bytes.as_slice())
        };
        assert!(with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n").is_ok());
        assert!(with("{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}").is_ok());
        for text in [
            "",
            "{}",
            "{'descr': '<f4'}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999999)}",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
            "{'descr': '<f4', 'fortran_order': Fals, 'shape': (2,)}",
            "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)",
        ] {
            assert!(with(text).is_err(), "{text}");
        }
        assert!(NpyHeader::read(&mut &b"\x93NUMPY"[..]).is_err());
        assert!(NpyHeader::read(&mut &b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..]).is_err());
        assert!(NpyHeader::read(&mut &b"PK\x03\x04\x02\x00\xff\xff\xff\xff"[..]).is_err());
    }
}
