//! Texts in JSON and TOML read into types, and JSON written of them.

// A refusal is made once a file, and says where in it.
#![allow(clippy::result_large_err)]

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

/// Why a text cannot be read.
#[derive(Debug)]
pub struct Refused<E> {
    /// Field and entry, as `draft.q[3]`; `.` is the whole text.
    pub path: String,
    /// What is wrong, without the place in the text.
    pub message: String,
    /// The format's error, which names that place.
    pub error: E,
}

impl<E: fmt::Display> fmt::Display for Refused<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path != "." {
            write!(f, "{}: ", self.path)?;
        }
        self.error.fmt(f)
    }
}

/// Reads JSON that has nothing behind it, or says in plain words what is wrong and where: `shards[0].file:
/// is missing`.
pub fn plain_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let (value, rest) = json(text).map_err(|refused| {
        let Refused {
            path,
            message,
            error,
        } = refused;
        if !error.is_data() {
            return format!("is no JSON: {error}");
        }
        let missing = message.strip_prefix("missing field `");
        let missing = missing.and_then(|rest| rest.strip_suffix('`'));
        match (path.as_str(), missing) {
            (".", Some(field)) => format!("{field}: is missing"),
            (path, Some(field)) => format!("{path}.{field}: is missing"),
            (".", None) => message,
            (path, None) => format!("{path}: {message}"),
        }
    })?;
    rest.map_err(|error| format!("is no JSON: {error}"))?;
    Ok(value)
}

/// Reads JSON, and nothing behind it.
pub fn whole_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let (value, rest) = json(text).map_err(|refused| refused.error)?;
    rest.map(|()| value)
}

/// What a text in JSON says, and whether nothing follows it; or why it cannot be read.
pub type InJson<T> = Result<(T, Result<(), serde_json::Error>), Refused<serde_json::Error>>;

/// Reads JSON in which no key stands twice in one object, and whether nothing follows it.
pub fn json<T: DeserializeOwned>(text: &str) -> InJson<T> {
    let (value, _) = last_of_keys(text)?;
    let (Once, rest) = last_of_keys(text)?;
    Ok((value, rest))
}

/// Reads JSON, and whether nothing follows it. Of a key that stands twice in a map the last is read.
pub fn last_of_keys<T: DeserializeOwned>(text: &str) -> InJson<T> {
    let mut document = serde_json::Deserializer::from_str(text);
    let value = read(&mut document, |error| {
        let text = error.to_string();
        let placed = text.rsplit_once(" at line ");
        placed
            .map_or(text.as_str(), |(message, _)| message)
            .to_owned()
    })?;
    Ok((value, document.end()))
}

/// Any value whose objects have no key twice.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

macro_rules! any {
    ($($visit:ident($($of:ty)?))*) => {$(
        fn $visit<E>(self $(, _: $of)?) -> Result<Self, E> {
            Ok(self)
        }
    )*};
}

impl<'de> Visitor<'de> for Once {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    any! { visit_unit() visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str) }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Self>()?;
            if let Some(twice) = keys.replace(key) {
                return Err(A::Error::custom(format!("key {twice:?} is there twice")));
            }
        }
        Ok(self)
    }
}

/// Reads TOML.
pub fn toml<T: DeserializeOwned>(text: &str) -> Result<T, Refused<toml::de::Error>> {
    let message = |error: &toml::de::Error| error.message().to_owned();
    let document = toml::Deserializer::parse(text).map_err(|error| Refused {
        path: ".".to_owned(),
        message: message(&error),
        error,
    })?;
    read(document, message)
}

fn read<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    document: D,
    message: impl Fn(&D::Error) -> String,
) -> Result<T, Refused<D::Error>> {
    serde_path_to_error::deserialize(document).map_err(|error| Refused {
        path: error.path().to_string(),
        message: message(error.inner()),
        error: error.into_inner(),
    })
}

/// A value as JSON on one line.
pub fn line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    text(written(value, None)?)
}

/// A value as JSON with an entry a line.
pub fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    text(written(value, Some(PrettyFormatter::new()))?)
}

fn text(bytes: Vec<u8>) -> Result<String, serde_json::Error> {
    String::from_utf8(bytes).map_err(serde_json::Error::custom)
}

fn written<T: Serialize>(
    value: &T,
    pretty: Option<PrettyFormatter<'static>>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(
        &mut bytes,
        Layout(pretty),
    ))?;
    Ok(bytes)
}

/// On one line, or with an entry a line: chosen when it runs, so that a type's writing is compiled
/// once.
struct Layout(Option<PrettyFormatter<'static>>);

macro_rules! laid_out {
    ($($name:ident($($first:ident)?))*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, to: &mut W $(, $first: bool)?) -> io::Result<()> {
            match &mut self.0 {
                Some(pretty) => pretty.$name(to $(, $first)?),
                None => CompactFormatter.$name(to $(, $first)?),
            }
        }
    )*};
}

impl Formatter for Layout {
    laid_out! {
        begin_array() end_array() begin_array_value(first) end_array_value()
        begin_object() end_object() begin_object_key(first) begin_object_value() end_object_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[allow(dead_code)] // only what is refused is looked at
    struct Row {
        q: Vec<u8>,
    }

    #[test]
    fn plain_words_name_the_field() {
        for (text, words) in [
            ("{}", "q: is missing"),
            (
                "{\"q\": [1, 300]}",
                "q[1]: invalid value: integer `300`, expected u8",
            ),
            ("{\"q\": [1]", "is no JSON: EOF while parsing an object"),
            ("{\"q\": [1]} 2", "is no JSON: trailing characters"),
        ] {
            let said = plain_json::<Row>(text).unwrap_err();
            assert!(said.starts_with(words), "{said}");
        }
    }

    #[test]
    fn a_refusal_names_the_entry_and_the_place() {
        let refused = json::<Row>("{\n\"q\": [1, 300]}").unwrap_err();
        assert_eq!(refused.path, "q[1]");
        assert_eq!(refused.message, "invalid value: integer `300`, expected u8");
        let shown = format!("q[1]: {} at line 2 column 12", refused.message);
        assert_eq!(refused.to_string(), shown);
        let refused = toml::<Row>("q = [1, 300]").unwrap_err();
        assert_eq!(refused.path, "q[1]");
        assert_eq!(refused.message, "invalid value: integer `300`, expected u8");
        assert!(
            refused.to_string().contains("line 1, column 9"),
            "{refused}"
        );
        // A text that cannot be read at all, and one with something behind it.
        assert_eq!(toml::<Row>("q = [").unwrap_err().path, ".");
        assert!(json::<Row>("{\"q\": []} 1").unwrap().1.is_err());
        assert!(whole_json::<Row>("{\"q\": []} 1").is_err());
    }
}
