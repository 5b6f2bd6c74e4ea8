//! Texts in JSON and TOML read into types, and JSON written of them.
//!
//! A text becomes a tree first, and the tree a type. So a type's reading is compiled once, and not
//! once for each format. What is refused is looked up in the text again, so that the reader of a
//! format says in its own words where it stands.

// A refusal is made once a file, and says where in it.
#![allow(clippy::result_large_err)]

use serde::Serialize;
use serde::de::value::StringDeserializer;
use serde::de::{
    Deserialize as _, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _,
    Expected, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::collections::BTreeMap;
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

/// Reads JSON, and nothing behind it.
pub fn whole_json<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let (value, rest) = json(text).map_err(|refused| refused.error)?;
    rest.map(|()| value)
}

/// Reads JSON, and whether nothing follows it.
pub fn json<T: DeserializeOwned>(
    text: &str,
) -> Result<(T, Result<(), serde_json::Error>), Refused<serde_json::Error>> {
    let (node, rest) = json_tree(text)?;
    let value = T::deserialize(Reader::new(node, Format::Json)).map_err(|fault: Fault| {
        let mut error = fault.place_in(&mut serde_json::Deserializer::from_str(text), Format::Json);
        if fault.spot() == Spot::Bracket {
            // The place is right, and the words are about the search for it.
            let (line, column) = (error.line(), error.column());
            error = serde_json::Error::custom(format_args!(
                "{} at line {line} column {column}",
                fault.0.message
            ));
        }
        fault.refused(error)
    })?;
    Ok((value, rest))
}

/// Reads TOML.
pub fn toml<T: DeserializeOwned>(text: &str) -> Result<T, Refused<toml::de::Error>> {
    let node = toml_tree(text)?;
    T::deserialize(Reader::new(node, Format::Toml)).map_err(|mut fault: Fault| {
        if let Some(message) = fault.0.toml_message.take() {
            fault.0.message = message;
        }
        let error = match toml::Deserializer::parse(text) {
            Ok(document) => fault.place_in(document, Format::Toml),
            Err(error) => error,
        };
        fault.refused(error)
    })
}

/// Words with what they mean, from a text in which each word is a line, and what it means the
/// lines behind it that begin with blanks.
///
/// ```
/// let words = specgap_base::typed::glossary("p\n    the law\n    of the target\n");
/// assert_eq!(words["p"], "the law of the target");
/// ```
pub fn glossary(text: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::<String, String>::new();
    let mut word = "";
    for line in text.lines() {
        if !line.starts_with(' ') {
            word = line;
            continue;
        }
        let meaning = words.entry(word.to_owned()).or_default();
        if !meaning.is_empty() {
            meaning.push(' ');
        }
        meaning.push_str(line.trim());
    }
    words
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
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
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

type Rest = Result<(), serde_json::Error>;

fn json_tree(text: &str) -> Result<(Node, Rest), Refused<serde_json::Error>> {
    let mut document = serde_json::Deserializer::from_str(text);
    let node = tree(&mut document)?;
    Ok((node, document.end()))
}

fn toml_tree(text: &str) -> Result<Node, Refused<toml::de::Error>> {
    let document = toml::Deserializer::parse(text).map_err(|error| Refused {
        path: ".".to_owned(),
        message: error.message().to_owned(),
        error,
    })?;
    tree(document)
}

fn tree<'de, D: Deserializer<'de>>(document: D) -> Result<Node, Refused<D::Error>> {
    serde_path_to_error::deserialize(document).map_err(|error| Refused {
        path: error.path().to_string(),
        message: error.inner().to_string(),
        error: error.into_inner(),
    })
}

/// What a text says, before it is a type.
#[derive(Debug)]
enum Node {
    Null,
    Truth(bool),
    Natural(u64),
    Negative(i64),
    Wide(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl<'de> serde::Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Grow)
    }
}

struct Grow;

impl<'de> Visitor<'de> for Grow {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Truth(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Natural(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::Negative(value), Node::Natural))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Wide(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = list.next_element()? {
            all.push(entry);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = table.next_entry()? {
            all.push(entry);
        }
        Ok(Node::Table(all))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Toml,
}

/// A step from the whole to its part.
#[derive(Debug)]
enum Step {
    Entry(usize),
    Field(String),
    Variant(String),
}

/// Where in a value an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spot {
    /// The value, of which something was read.
    Value,
    /// The bracket that it begins with: it is of another kind.
    Bracket,
    /// Behind the value, as it was read whole and then refused.
    Behind,
    /// All of it was read, and something lacks.
    End,
    /// The key that the path ends with.
    Key,
    /// The name of a variant.
    Variant,
    /// Behind so many entries of a list: there are more.
    Entries(usize),
}

/// Why a tree is not of a type; the path leads from the part to the whole.
#[derive(Debug)]
struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    message: String,
    /// As serde itself writes the number, where serde_json writes it shorter.
    toml_message: Option<String>,
    path: Vec<Step>,
    spot: Option<Spot>,
}

impl Fault {
    fn found(what: &str, found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let shown = Found(found);
        let mut fault = Self::custom(format_args!("invalid {what}: {shown}, expected {expected}"));
        if matches!(found, Unexpected::Float(_)) {
            fault.0.toml_message = Some(format!("invalid {what}: {found}, expected {expected}"));
        }
        fault
    }

    fn below(mut self, step: Step) -> Self {
        self.0.path.push(step);
        self
    }

    fn at(mut self, spot: Spot) -> Self {
        if self.0.path.is_empty() {
            self.0.spot.get_or_insert(spot);
        }
        self
    }

    #[cold]
    fn in_value(self) -> Self {
        self.at(Spot::Value)
    }

    fn refused<E>(self, error: E) -> Refused<E> {
        Refused {
            path: self.shown(),
            message: self.0.message,
            error,
        }
    }

    fn shown(&self) -> String {
        let mut shown = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Entry(entry) => shown.push_str(&format!("[{entry}]")),
                Step::Field(name) | Step::Variant(name) => {
                    if !shown.is_empty() {
                        shown.push('.');
                    }
                    shown.push_str(name);
                }
            }
        }
        if shown.is_empty() {
            shown.push('.');
        }
        shown
    }

    fn spot(&self) -> Spot {
        self.0.spot.unwrap_or(Spot::Behind)
    }

    /// The format's error with this message at this place of the text.
    fn place_in<'de, D: Deserializer<'de>>(&self, document: D, format: Format) -> D::Error {
        let find = Find {
            path: &self.0.path,
            spot: self.spot(),
            message: &self.0.message,
            format,
        };
        match find.deserialize(document) {
            Ok(()) => D::Error::custom(&self.0.message),
            Err(error) => error,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Box::new(Inner {
            message: message.to_string(),
            toml_message: None,
            path: Vec::new(),
            spot: None,
        }))
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::found("type", found, expected)
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::found("value", found, expected)
    }
}

/// What was found, in serde_json's words: TOML has no null.
struct Found<'a>(Unexpected<'a>);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            Unexpected::Float(value) => match serde_json::Number::from_f64(value) {
                Some(value) => write!(f, "floating point `{value}`"),
                None => self.0.fmt(f),
            },
            other => other.fmt(f),
        }
    }
}

/// Goes down a path and fails there.
#[derive(Clone, Copy)]
struct Find<'a> {
    /// From the part to the whole.
    path: &'a [Step],
    spot: Spot,
    message: &'a str,
    format: Format,
}

impl<'de> DeserializeSeed<'de> for Find<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // The reader of TOML names the whole value in any case.
        if self.path.is_empty() && self.format == Format::Json {
            match self.spot {
                Spot::Bracket => return deserializer.deserialize_bool(self),
                Spot::Behind => return IgnoredAny::deserialize(deserializer).map(|_| ()),
                Spot::Variant => return deserializer.deserialize_enum("", &[], self),
                Spot::Value | Spot::End | Spot::Key | Spot::Entries(_) => {}
            }
        }
        deserializer.deserialize_any(self)
    }
}

impl Find<'_> {
    fn fail<E: serde::de::Error>(self) -> Result<(), E> {
        Err(E::custom(self.message))
    }
}

impl<'de> Visitor<'de> for Find<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.fail()
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.fail()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.fail()
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.fail()
    }

    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<(), E> {
        self.fail()
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.fail()
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        self.fail()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if let Some((Step::Entry(entry), path)) = self.path.split_last() {
            for _ in 0..*entry {
                list.next_element::<IgnoredAny>()?;
            }
            list.next_element_seed(Self { path, ..self })?;
        } else if let Spot::Entries(read) = self.spot {
            for _ in 0..read {
                list.next_element::<IgnoredAny>()?;
            }
            // The format's reader refuses the others by itself.
            return Ok(());
        } else if self.spot == Spot::End {
            while list.next_element::<IgnoredAny>()?.is_some() {}
        }
        self.fail()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<(), A::Error> {
        if let Some((Step::Field(name) | Step::Variant(name), path)) = self.path.split_last() {
            let is_key = path.is_empty() && self.spot == Spot::Key;
            let refused = is_key.then_some(self.message);
            while let Some(found) = table.next_key_seed(FindKey {
                name: Some(name),
                refused,
            })? {
                if found {
                    table.next_value_seed(Self { path, ..self })?;
                } else {
                    table.next_value::<IgnoredAny>()?;
                }
            }
        } else if self.spot == Spot::End {
            while table.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        }
        self.fail()
    }

    fn visit_enum<A: EnumAccess<'de>>(self, choice: A) -> Result<(), A::Error> {
        let (name, refused) = (None, Some(self.message));
        choice.variant_seed(FindKey { name, refused })?;
        self.fail()
    }
}

/// Whether a key is this one, or any; with a message, it is refused.
struct FindKey<'a> {
    name: Option<&'a str>,
    refused: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for FindKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FindKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<bool, E> {
        match self.refused {
            Some(message) if self.name.is_none_or(|name| name == key) => Err(E::custom(message)),
            _ => Ok(self.name.is_none_or(|name| name == key)),
        }
    }
}

/// A part of a tree that a type is read from.
struct Reader {
    node: Node,
    format: Format,
}

impl Reader {
    fn new(node: Node, format: Format) -> Self {
        Self { node, format }
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Node::List(entries) = self.node else {
            return Err(self.unexpected(&visitor));
        };
        let mut list = List::new(entries, self.format);
        match visitor.visit_seq(&mut list) {
            Ok(value) => list.end().map(|()| value),
            Err(fault) => Err(fault.at(list.spot())),
        }
    }

    fn table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Node::Table(entries) = self.node else {
            return Err(self.unexpected(&visitor));
        };
        let mut table = Table::new(entries, self.format);
        let read = visitor.visit_map(&mut table);
        read.map_err(|fault| fault.at(table.spot()))
    }

    fn truth<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Node::Truth(value) = self.node else {
            return Err(self.unexpected(&visitor));
        };
        visitor.visit_bool(value).map_err(Fault::in_value)
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Node::Text(value) = self.node else {
            return Err(self.unexpected(&visitor));
        };
        visitor.visit_string(value).map_err(Fault::in_value)
    }

    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match self.node {
            Node::Natural(value) => visitor.visit_u64(value),
            Node::Negative(value) => visitor.visit_i64(value),
            _ => return Err(self.unexpected(&visitor)),
        };
        read.map_err(Fault::in_value)
    }

    fn float<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match self.node {
            Node::Float(value) => visitor.visit_f64(value),
            Node::Natural(value) => visitor.visit_u64(value),
            Node::Negative(value) => visitor.visit_i64(value),
            _ => return Err(self.unexpected(&visitor)),
        };
        read.map_err(Fault::in_value)
    }

    /// What is found where another kind is expected.
    #[cold]
    fn unexpected(self, expected: &dyn Expected) -> Fault {
        let wide;
        let (found, spot) = match &self.node {
            Node::Null => (Unexpected::Unit, Spot::Value),
            Node::Truth(value) => (Unexpected::Bool(*value), Spot::Value),
            Node::Natural(value) => (Unexpected::Unsigned(*value), Spot::Value),
            Node::Negative(value) => (Unexpected::Signed(*value), Spot::Value),
            Node::Wide(value) => {
                wide = format!("integer `{value}` as i128");
                (Unexpected::Other(&wide), Spot::Value)
            }
            Node::Float(value) => (Unexpected::Float(*value), Spot::Value),
            Node::Text(value) => (Unexpected::Str(value), Spot::Value),
            Node::List(_) => (Unexpected::Seq, Spot::Bracket),
            Node::Table(_) => (Unexpected::Map, Spot::Bracket),
        };
        Fault::invalid_type(found, expected).at(spot)
    }
}

/// By the kind that a type asks for, so that the code which reads it has no branch for others.
macro_rules! asked_for {
    ($($kind:ident: $($name:ident)*;)*) => {$($(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.$kind(visitor)
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match self.node {
            Node::Null => visitor.visit_unit(),
            Node::Truth(_) => return self.truth(visitor),
            Node::Natural(_) | Node::Negative(_) => return self.integer(visitor),
            Node::Wide(value) => visitor.visit_i128(value),
            Node::Float(_) => return self.float(visitor),
            Node::Text(_) => return self.text(visitor),
            Node::List(_) => return self.list(visitor),
            Node::Table(_) => return self.table(visitor),
        };
        read.map_err(Fault::in_value)
    }

    asked_for! {
        truth: deserialize_bool;
        integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64;
        float: deserialize_f32 deserialize_f64;
        text: deserialize_str deserialize_string;
        list: deserialize_seq;
        table: deserialize_map;
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.list(visitor)
    }

    /// Fields go by name: a list of them is refused.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.table(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node {
            Node::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (name, node) = match self.node {
            Node::Text(name) => (name, None),
            Node::Table(mut entries) if entries.len() == 1 => match entries.pop() {
                Some((name, node)) => (name, Some(node)),
                None => (String::new(), None),
            },
            _ if self.format == Format::Json => {
                return Err(Fault::custom("expected value").at(Spot::Variant));
            }
            _ => return Err(Fault::custom("wanted string or table")),
        };
        visitor.visit_enum(Variant {
            name,
            node,
            format: self.format,
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct identifier
    }
}

struct List {
    entries: std::vec::IntoIter<Node>,
    next: usize,
    ended: bool,
    format: Format,
}

impl List {
    fn new(entries: Vec<Node>, format: Format) -> Self {
        Self {
            entries: entries.into_iter(),
            next: 0,
            ended: false,
            format,
        }
    }

    fn entry(&mut self) -> Option<Reader> {
        let node = self.entries.next();
        match node {
            Some(_) => self.next += 1,
            None => self.ended = true,
        }
        node.map(|node| Reader::new(node, self.format))
    }

    /// Where an error is that no entry has.
    fn spot(&self) -> Spot {
        match (self.ended, self.next) {
            (true, _) => Spot::End,
            (_, 0) => Spot::Bracket,
            _ => Spot::Value,
        }
    }

    fn end(&self) -> Result<(), Fault> {
        if self.format == Format::Json && self.entries.len() > 0 {
            let fault = Fault::custom("trailing characters");
            return Err(fault.at(Spot::Entries(self.next)));
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut List {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(entry) = self.entry() else {
            return Ok(None);
        };
        match seed.deserialize(entry) {
            Ok(value) => Ok(Some(value)),
            Err(fault) => Err(fault.below(Step::Entry(self.next - 1))),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

struct Table {
    entries: std::vec::IntoIter<(String, Node)>,
    name: String,
    value: Option<Node>,
    begun: bool,
    ended: bool,
    format: Format,
}

impl Table {
    fn new(entries: Vec<(String, Node)>, format: Format) -> Self {
        Self {
            entries: entries.into_iter(),
            name: String::new(),
            value: None,
            begun: false,
            ended: false,
            format,
        }
    }

    fn name(&mut self) -> Option<&str> {
        self.begun = true;
        let Some((name, node)) = self.entries.next() else {
            self.ended = true;
            return None;
        };
        self.name = name;
        self.value = Some(node);
        Some(&self.name)
    }

    fn value(&mut self) -> Result<Reader, Fault> {
        match self.value.take() {
            Some(node) => Ok(Reader::new(node, self.format)),
            None => Err(Fault::custom("a value was asked for before its key")),
        }
    }

    /// A fault of the field that was read last.
    #[cold]
    fn below(&mut self, fault: Fault) -> Fault {
        fault.below(Step::Field(std::mem::take(&mut self.name)))
    }

    /// Where an error is that no field has.
    fn spot(&self) -> Spot {
        match (self.ended, self.begun) {
            (true, _) => Spot::End,
            (_, false) => Spot::Bracket,
            _ => Spot::Value,
        }
    }
}

impl<'de> MapAccess<'de> for &mut Table {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(name) = self.name() else {
            return Ok(None);
        };
        match seed.deserialize(Key(name)) {
            Ok(key) => Ok(Some(key)),
            Err(fault) => Err(self.below(fault.at(Spot::Key))),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let value = self.value()?;
        seed.deserialize(value).map_err(|fault| self.below(fault))
    }
}

/// A field's name, from which numbers are read too.
struct Key<'a>(&'a str);

impl Key<'_> {
    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match (self.0.parse(), self.0.parse()) {
            (Ok(value), _) => visitor.visit_u64(value),
            (_, Ok(value)) => visitor.visit_i64(value),
            _ => Err(Fault::custom(
                "invalid value: expected key to be a number in quotes",
            )),
        }
    }
}

macro_rules! number_keys {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.number(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.0)
    }

    number_keys! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Variant {
    name: String,
    node: Option<Node>,
    format: Format,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let name: StringDeserializer<Fault> = self.name.clone().into_deserializer();
        match seed.deserialize(name) {
            Ok(value) => Ok((value, self)),
            Err(fault) => Err(fault.at(Spot::Variant)),
        }
    }
}

impl Variant {
    fn inside(self) -> Result<(String, Reader), Fault> {
        match self.node {
            Some(node) => Ok((self.name, Reader::new(node, self.format))),
            None => Err(Fault::invalid_type(
                Unexpected::UnitVariant,
                &"newtype variant",
            )),
        }
    }
}

impl<'de> VariantAccess<'de> for Variant {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.node {
            None | Some(Node::Null) => Ok(()),
            Some(_) => Err(Fault::invalid_type(
                Unexpected::NewtypeVariant,
                &"unit variant",
            )),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        let (name, reader) = self.inside()?;
        seed.deserialize(reader)
            .map_err(|fault| fault.below(Step::Variant(name)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        let (name, reader) = self.inside()?;
        reader
            .list(visitor)
            .map_err(|fault| fault.below(Step::Variant(name)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (name, reader) = self.inside()?;
        reader
            .table(visitor)
            .map_err(|fault| fault.below(Step::Variant(name)))
    }
}

#[cfg(test)]
mod tests;
