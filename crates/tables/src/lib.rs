//! What problem files say, field by field, as TOML and JSON are read into it.
//!
//! It knows no problem, no law and no limit: `core` makes those of it. Reading two formats into
//! these types is much code that runs once a file, so this member is compiled without optimisation.
#![doc(hidden)]
// A refusal is made once a file, and says where in it.
#![allow(clippy::result_large_err)]

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use specgap_base::typed::{self, InJson, Refused};
use specgap_number::distribution::{ParseRationalError, Rational, exact_value, parse_rational};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Reads a problem file in TOML.
pub fn file_in_toml(text: &str) -> Result<File, Refused<toml::de::Error>> {
    typed::toml(text)
}

/// Reads a problem file in JSON.
pub fn file_in_json(text: &str) -> InJson<File> {
    fields_in_json(text)
}

/// Reads the table `draft` of a problem file in JSON.
pub fn draft_in_json(text: &str) -> InJson<DraftTable> {
    fields_in_json(text)
}

fn fields_in_json<T: DeserializeOwned>(text: &str) -> InJson<T> {
    typed::json(text).map(|(Fields(table), rest)| (table, rest))
}

/// A table by the names of its fields. By itself a type is read from a list of values too, which
/// nobody means.
struct Fields<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ByName<T> {
            type Value = Fields<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with named fields")
            }
            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Fields<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Fields)
            }
        }
        deserializer.deserialize_map(ByName(PhantomData))
    }
}

/// A field that is such a table, or is not there.
fn fields<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let table = Option::<Fields<T>>::deserialize(deserializer)?;
    Ok(table.map(|Fields(table)| table))
}

/// A number as it stands in a file: a float, an integer, or text that is an
/// exact fraction or decimal.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    Float(f64),
    Text(String),
}

impl Number {
    pub fn rational(&self) -> Result<Option<Rational>, ParseRationalError> {
        match self {
            Self::Float(value) => Ok(exact_value(*value)),
            Self::Text(text) => parse_rational(text).map(Some),
        }
    }
}

/// As files write it.
#[cfg(feature = "schema")]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
/// A problem file, as it is written.
pub struct File {
    /// 1.
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub schema: Option<i64>,
    /// Names the problem in output and certificates.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: Option<String>,
    /// p, a list of V numbers.
    pub target: Option<Vec<Number>>,
    /// n, from 1 to 64; of a block problem K.
    pub drafts: Option<i64>,
    /// The draft law.
    #[serde(default, deserialize_with = "fields")]
    pub draft: Option<DraftTable>,
    /// A token tree, in place of `target` and `draft`.
    #[serde(default, deserialize_with = "fields")]
    pub block: Option<BlockTable>,
    /// What is expected, and where that comes from.
    #[serde(default, deserialize_with = "fields")]
    pub expected: Option<ExpectedTable>,
    /// A rule of another program, which `verify` sums.
    #[serde(default, deserialize_with = "fields")]
    pub rule: Option<RuleTable>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// What the rule is called.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name: Option<String>,
    /// For every tuple that can be drawn (token ids in the order of the draws, joined by spaces;
    /// `""` where none is drawn) the law of the output given it, V numbers.
    pub outputs: BTreeMap<String, Vec<Number>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DraftTable {
    pub scheme: Option<String>,
    /// q, for all schemes but `product` and `explicit`; under `composed` that of every part
    /// without one.
    pub q: Option<Vec<Number>>,
    /// For `product`: n lists of V numbers.
    pub qs: Option<Vec<Vec<Number>>>,
    /// For `explicit`: the tuples of drafts; equal ones add up.
    pub tuples: Option<Vec<Vec<i64>>>,
    /// For `explicit`: the probability of each tuple.
    pub probabilities: Option<Vec<Number>>,
    /// For `composed`: what the law is made of.
    #[serde(default, deserialize_with = "fields")]
    pub law: Option<LawTable>,
    /// For `stratified`: whether a token across the cut between two strata is drafted at most
    /// `once`, as it is if this is absent, or the strata are `independent`.
    pub straddle: Option<String>,
}

/// A part of a composed law.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LawTable {
    /// The kind of this part.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub law: Option<String>,
    /// q of this part; `draft.q` if absent. Laws inside `merged` give their own.
    pub q: Option<Vec<Number>>,
    /// How many this part drafts.
    pub drafts: Option<i64>,
    /// Keep this many of the most probable tokens.
    pub top_k: Option<i64>,
    /// Of these, keep the fewest of the most probable that hold at least this share.
    pub top_p: Option<Number>,
    /// Tokens that are taken out.
    pub avoid: Option<Vec<i64>>,
    /// This many of the most probable that are left are taken out too.
    pub avoid_top: Option<i64>,
    /// The rate of a clock that ends a race of draws, in [1e-9, 1e9]; q has rate 1 in all.
    pub stop: Option<Number>,
    /// The tokens of `fixed` and `avoiding`.
    pub tokens: Option<Vec<i64>>,
    /// Of `poisson`: the chance of each token.
    pub chances: Option<Vec<Number>>,
    /// The laws that this one is made of.
    pub of: Option<Vec<Self>>,
    /// Of `mixture`: weights, divided by their sum.
    pub weights: Option<Vec<Number>>,
    /// Of `merged`: what each token counts as.
    pub into: Option<Vec<i64>>,
}

impl LawTable {
    /// Names of the fields that are given, `law` apart.
    pub fn present(&self) -> impl Iterator<Item = &'static str> + use<> {
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BlockTable {
    /// V.
    pub vocab: i64,
    /// L, the tokens of a block.
    pub length: i64,
    /// By prefix (token ids joined by single spaces, `""` for the root): the conditional law of
    /// the target.
    pub target: BTreeMap<String, Vec<Number>>,
    /// The same of the draft.
    pub draft: BTreeMap<String, Vec<Number>>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExpectedTable {
    /// What alpha* should be.
    pub optimal_acceptance_rate: Option<Number>,
    /// The largest difference; 0 asks for equal fractions. 1e-9 if absent, of block problems
    /// 1e-7.
    pub tolerance: Option<Number>,
    /// Where the expectation comes from.
    pub source: Option<String>,
    /// By verifier: its membership acceptance.
    #[serde(default)]
    pub acceptance_rate: BTreeMap<String, Number>,
    /// Of a block problem: the optimum.
    pub block_lp: Option<Number>,
    /// Of a block problem: the per-depth bound.
    pub per_depth_bound: Option<Number>,
    /// Of a block problem: the value of Lemma 5.1.
    pub lemma_5_1: Option<Number>,
    /// Of a block problem: what SpecTr-GBV comes to.
    #[serde(default, deserialize_with = "fields")]
    pub spectr_gbv: Option<SpecTrGbvTable>,
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SpecTrGbvTable {
    /// Its E\[tau\].
    pub expected_accepted_length: Number,
    /// Probability that its output's law is 0/0.
    pub undefined_mass: Option<Number>,
}
