//! Results as JSON: each result writes its own object.

use serde::ser::{Serialize, SerializeMap, Serializer};
use specgap_number::distribution::format_rational;
use specgap_number::known::Known;

/// Version of the JSON that commands print.
pub const JSON_SCHEMA: u32 = 1;

/// An object whose fields are written one by one.
pub(super) struct Object<M>(M);

impl<M: SerializeMap> Object<M> {
    /// An empty object.
    pub(super) fn begin<S: Serializer<SerializeMap = M>>(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }

    /// A field; `None` is null.
    pub(super) fn put<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        self.0.serialize_entry(name, value)
    }

    /// A field that is left out where there is nothing to say.
    pub(super) fn put_some<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<T>,
    ) -> Result<(), M::Error> {
        match value {
            Some(value) => self.put(name, &value),
            None => Ok(()),
        }
    }

    /// The whole object.
    pub(super) fn end(self) -> Result<M::Ok, M::Error> {
        self.0.end()
    }
}

/// A rate with its bounds, and its fraction if it is exact.
pub(super) struct Rate<'a>(pub(super) &'a Known);

impl Serialize for Rate<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("value", &self.0.value())?;
        object.put("lower", &self.0.lower())?;
        object.put("upper", &self.0.upper())?;
        object.put("exact", &fraction(self.0))?;
        object.end()
    }
}

/// The fraction of an exact number.
pub(super) fn fraction(number: &Known) -> Option<String> {
    number.rational().map(format_rational)
}

/// A problem of a folder that a command does not take.
#[derive(Clone, Copy, Debug)]
pub struct NotTaken<'a> {
    /// The problem's name.
    pub problem: &'a str,
    /// Why.
    pub reason: &'a str,
}

impl Serialize for NotTaken<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(serializer)?;
        object.put("schema", &JSON_SCHEMA)?;
        object.put("problem", self.problem)?;
        object.put("status", "skipped")?;
        object.put("reason", self.reason)?;
        object.end()
    }
}
