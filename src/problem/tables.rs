//! What a problem file says, field by field, before anything is made of it.

use crate::distribution::{ParseRationalError, Rational, exact_value, parse_rational};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The version of the problem file format that this build reads.
pub const SCHEMA: i64 = 1;

/// A number as it stands in a file: a float, an integer, or text that is an
/// exact fraction or decimal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    Float(f64),
    Text(String),
}

impl Number {
    pub(super) fn rational(&self) -> Result<Option<Rational>, ParseRationalError> {
        match self {
            Self::Float(value) => Ok(exact_value(*value)),
            Self::Text(text) => parse_rational(text).map(Some),
        }
    }
}

/// As files write it.
#[cfg(test)]
impl schemars::JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number, or a fraction or decimal as text, such as \"1/3\".",
            "type": ["number", "string"]
        })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a fraction as text such as \"1/3\"")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Float(value))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Text(value.to_string()))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Text(value.to_string()))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
                Ok(Number::Text(value.to_owned()))
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(super) schema: Option<i64>,
    pub(super) name: Option<String>,
    pub(super) target: Option<Vec<Number>>,
    pub(super) drafts: Option<i64>,
    pub(super) draft: Option<DraftTable>,
    pub(super) block: Option<BlockTable>,
    pub(super) expected: Option<ExpectedTable>,
    pub(super) rule: Option<RuleTable>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTable {
    pub(super) name: Option<String>,
    pub(super) outputs: BTreeMap<String, Vec<Number>>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct DraftTable {
    pub(super) scheme: Option<String>,
    pub(super) q: Option<Vec<Number>>,
    pub(super) qs: Option<Vec<Vec<Number>>>,
    pub(super) tuples: Option<Vec<Vec<i64>>>,
    pub(super) probabilities: Option<Vec<Number>>,
    pub(super) law: Option<LawTable>,
}

/// A part of a composed law.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct LawTable {
    pub(super) law: Option<String>,
    pub(super) q: Option<Vec<Number>>,
    pub(super) drafts: Option<i64>,
    pub(super) top_k: Option<i64>,
    pub(super) top_p: Option<Number>,
    pub(super) avoid: Option<Vec<i64>>,
    pub(super) avoid_top: Option<i64>,
    pub(super) stop: Option<Number>,
    pub(super) tokens: Option<Vec<i64>>,
    pub(super) chances: Option<Vec<Number>>,
    pub(super) of: Option<Vec<Self>>,
    pub(super) weights: Option<Vec<Number>>,
    pub(super) into: Option<Vec<i64>>,
}

impl LawTable {
    /// Names of the fields that are given, `law` apart.
    pub(super) fn present(&self) -> impl Iterator<Item = &'static str> + use<> {
        [
            ("q", self.q.is_some()),
            ("drafts", self.drafts.is_some()),
            ("top_k", self.top_k.is_some()),
            ("top_p", self.top_p.is_some()),
            ("avoid", self.avoid.is_some()),
            ("avoid_top", self.avoid_top.is_some()),
            ("stop", self.stop.is_some()),
            ("tokens", self.tokens.is_some()),
            ("chances", self.chances.is_some()),
            ("of", self.of.is_some()),
            ("weights", self.weights.is_some()),
            ("into", self.into.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, present)| present.then_some(name))
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct BlockTable {
    pub(super) vocab: i64,
    pub(super) length: i64,
    pub(super) target: BTreeMap<String, Vec<Number>>,
    pub(super) draft: BTreeMap<String, Vec<Number>>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedTable {
    pub(super) optimal_acceptance_rate: Option<Number>,
    pub(super) tolerance: Option<Number>,
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) acceptance_rate: BTreeMap<String, Number>,
    pub(super) block_lp: Option<Number>,
    pub(super) per_depth_bound: Option<Number>,
    pub(super) lemma_5_1: Option<Number>,
    pub(super) spectr_gbv: Option<SpecTrGbvTable>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct SpecTrGbvTable {
    pub(super) expected_accepted_length: Number,
    pub(super) undefined_mass: Option<Number>,
}
