//! Files of JSON: one object, one object a line, or arrays of objects.

use super::error::{Fault, ImportError};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use specgap_base::files::{DOCUMENT, read_lines};
use specgap_base::typed;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// A record of a file: the text of one JSON object, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub path: PathBuf,
    pub record: usize,
    pub line: usize,
}

impl Place {
    pub(super) fn refuse(&self, fault: Fault) -> ImportError {
        ImportError::Field {
            path: self.path.clone(),
            record: self.record,
            line: self.line,
            field: fault.field,
            message: fault.message,
        }
    }
}

/// Reads all records of a file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<(Place, T)>, ImportError> {
    let text = read_lines(path, DOCUMENT)
        .map_err(|source| ImportError::File(path.to_owned(), "cannot be read", source))?;
    let records = split(&text).map_err(|message| ImportError::input(path, message))?;
    if records.is_empty() {
        return Err(ImportError::input(
            path,
            "has no records; it is to hold the engine's responses, one JSON object each",
        ));
    }
    let mut all = Vec::with_capacity(records.len());
    for (record, (line, text)) in records.into_iter().enumerate() {
        let place = Place {
            path: path.to_owned(),
            record,
            line,
        };
        let (value, _) = typed::last_of_keys(&text).map_err(|refused| {
            let field = match refused.path {
                root if root == "." => "the record".to_owned(),
                field => field,
            };
            // Without line and column, which are within the record.
            place.refuse(Fault::new(field, refused.message))
        })?;
        all.push((place, value));
    }
    Ok(all)
}

/// The objects of a text, each with the line that it begins at: objects one after the
/// other, or in arrays. Python's `-Infinity` and `NaN`, which JSON does not have, become
/// texts that [`LogProb`] reads.
fn split(text: &str) -> Result<Vec<(usize, Cow<'_, str>)>, String> {
    let bytes = text.as_bytes();
    let mut records = Vec::new();
    let mut line = 1;
    let mut arrays = 0usize;
    // Whether a value may stand here, and whether a comma may.
    let (mut value, mut comma) = (true, false);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => line += 1,
            b' ' | b'\t' | b'\r' => {}
            b'[' if value => {
                arrays += 1;
                comma = false;
            }
            b']' if arrays > 0 => {
                arrays -= 1;
                (value, comma) = (arrays == 0, arrays > 0);
            }
            b',' if comma => (value, comma) = (true, false),
            b'{' if value => {
                let (end, foreign) = object_end(bytes, at).ok_or_else(|| {
                    format!(
                        "record {} (line {line}): the file ends inside it; it was cut",
                        records.len()
                    )
                })?;
                let object = text.get(at..end).unwrap_or_default();
                let clean = if foreign {
                    Cow::Owned(without_foreign(object))
                } else {
                    Cow::Borrowed(object)
                };
                records.push((line, clean));
                line += bytes.get(at..end).map_or(0, |object| {
                    object.iter().filter(|&&byte| byte == b'\n').count()
                });
                at = end;
                (value, comma) = (arrays == 0, arrays > 0);
                continue;
            }
            _ => {
                return Err(format!(
                    "line {line}: {:?} stands where a JSON object begins; the file is to hold the \
                     engine's responses, one JSON object each",
                    text.get(at..)
                        .and_then(|rest| rest.chars().next())
                        .unwrap_or_default()
                ));
            }
        }
        at += 1;
    }
    if arrays > 0 {
        return Err("ends inside a JSON array; it was cut".to_owned());
    }
    Ok(records)
}

/// Finds where the object that begins at `start` ends, and whether `NaN` or `Infinity` may be
/// in it.
fn object_end(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut depth, mut within, mut escaped, mut foreign) = (0usize, false, false, false);
    for (at, &byte) in bytes.iter().enumerate().skip(start) {
        if within {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => within = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => within = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((at + 1, foreign));
                }
            }
            b'N' | b'I' => foreign = true,
            _ => {}
        }
    }
    None
}

/// Puts `NaN`, `Infinity` and `-Infinity` that stand outside texts into quotes.
fn without_foreign(object: &str) -> String {
    let mut clean = String::with_capacity(object.len() + 16);
    let mut rest = object;
    let (mut within, mut escaped) = (false, false);
    while let Some(next) = rest.chars().next() {
        if !within
            && let Some(word) = ["NaN", "-Infinity", "Infinity"]
                .into_iter()
                .find(|word| rest.starts_with(word))
        {
            clean.push('"');
            clean.push_str(word);
            clean.push('"');
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        match next {
            _ if escaped => escaped = false,
            '\\' if within => escaped = true,
            '"' => within = !within,
            _ => {}
        }
        clean.push(next);
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
    }
    clean
}

/// At most this much above 0 are logarithms of probabilities that were rounded.
const ABOVE_ZERO: f64 = 1e-3;
/// Engines write -9999 or the lowest number of their type for the logarithm of 0.
const ZERO_BELOW: f64 = -9000.0;

/// The logarithm of a probability: at most 0, -inf for 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogProb(pub f64);

impl LogProb {
    /// A logarithm from a number in a file.
    pub(super) fn new(value: f64) -> Result<Self, String> {
        if value.is_nan() || value > ABOVE_ZERO {
            return Err(format!(
                "is {value}; logarithms of probabilities are at most 0, so these are logits or \
                 damaged; ask the engine for logprobs"
            ));
        }
        Ok(Self(if value <= ZERO_BELOW {
            f64::NEG_INFINITY
        } else {
            value.min(0.0)
        }))
    }
}

impl<'de> Deserialize<'de> for LogProb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LogProbVisitor)
    }
}

struct LogProbVisitor;

impl Visitor<'_> for LogProbVisitor {
    type Value = LogProb;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the logarithm of a probability")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<LogProb, E> {
        LogProb::new(value).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<LogProb, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<LogProb, E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<LogProb, E> {
        match value {
            "-Infinity" => Ok(LogProb(f64::NEG_INFINITY)),
            "NaN" => self.visit_f64(f64::NAN),
            "Infinity" => self.visit_f64(f64::INFINITY),
            other => Err(E::invalid_type(serde::de::Unexpected::Str(other), &self)),
        }
    }
}

/// A JSON object as it is written: in its order, and with keys that are there twice.
#[derive(Clone, Debug)]
pub(super) struct Entries<T>(pub Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Entries<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one entry a token")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Each(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Result<Vec<(usize, String)>, String> {
        Ok(split(text)?
            .into_iter()
            .map(|(line, text)| (line, text.into_owned()))
            .collect())
    }

    #[test]
    fn records_are_lines_arrays_or_one_object() {
        let own = |line: usize, text: &str| (line, text.to_owned());
        assert_eq!(texts("").unwrap(), []);
        assert_eq!(
            texts("{\"a\":1}\n\n{\"b\":\"}{\\\"\"}\n").unwrap(),
            [own(1, "{\"a\":1}"), own(3, "{\"b\":\"}{\\\"\"}")]
        );
        assert_eq!(
            texts("[\n{},\n[{}]]\n{}").unwrap(),
            [own(2, "{}"), own(3, "{}"), own(4, "{}")]
        );
        assert_eq!(texts("{\n}\n{}").unwrap(), [own(1, "{\n}"), own(3, "{}")]);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in [
            "{", "[", "[{}", "]", ",", "[,]", "[{},,{}]", "[{} {}]", "{}}", "{},{}", "1", "é",
        ] {
            assert!(split(text).is_err(), "{text}");
        }
        assert!(split("{\"a\": [1, 2").unwrap_err().contains("cut"));
    }

    #[test]
    fn python_writes_numbers_that_json_does_not_have() {
        let clean = texts("{\"a\": [-Infinity, NaN, Infinity], \"NaN\": \"-Infinity \\\" NaN\"}");
        assert_eq!(
            clean.unwrap()[0].1,
            "{\"a\": [\"-Infinity\", \"NaN\", \"Infinity\"], \"NaN\": \"-Infinity \\\" NaN\"}"
        );
    }

    #[test]
    fn logarithms_of_probabilities_are_at_most_zero() {
        let read = |text: &str| serde_json::from_str::<LogProb>(text);
        assert_eq!(read("-1.5").unwrap().0, -1.5);
        assert_eq!(read("0").unwrap().0, 0.0);
        assert_eq!(read("1e-6").unwrap().0, 0.0);
        for zero in ["-9999", "-3.4028234663852886e38", "\"-Infinity\""] {
            assert_eq!(read(zero).unwrap().0, f64::NEG_INFINITY);
        }
        for bad in ["0.5", "7", "\"NaN\"", "\"Infinity\"", "null", "\"x\"", "[]"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
