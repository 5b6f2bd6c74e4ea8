//! Problem files: TOML, or JSON with the same fields.
//!
//! Everything is checked here, once, and every complaint names the file, the
//! field, the entry and the limit.

use super::{
    AnyProblem, BlockExpected, BlockProblem, BlockProblemError, MAX_DRAFTS, MAX_VOCAB, Problem,
    ProblemError, SpecTrGbvExpected,
};
use crate::distribution::{
    DistributionError, Draft, ParseRationalError, Rational, Target, TupleProbabilities,
    exact_value, parse_rational, round_nearest,
};
use crate::scheme::{DraftScheme, ExplicitError, MadeOf, SchemeName, TuplesToLaw, UnknownScheme};
use crate::verifier::{UnknownVerifier, VerifierName};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The version of the problem file format that this build reads.
pub const SCHEMA: i64 = 1;

/// Largest problem file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Why a problem file is refused. The message names the file; its source names
/// the field, the entry and the limit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemFileError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML or JSON by its name.
    #[error("{path}: problem files end in .toml or .json")]
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than any problem.
    #[error("{path}: {bytes} bytes; problem files are at most {MAX_FILE_BYTES} bytes")]
    Size {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// A directory without problem files.
    #[error("{path}: no .toml or .json problem file in this folder")]
    NoProblems {
        /// The folder.
        path: PathBuf,
    },
    /// The contents are refused.
    #[error("{path}: {source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Field, entry and limit.
        source: FieldError,
    },
}

/// What is wrong inside a problem file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Not TOML or JSON, an unknown field, or a value of the wrong kind.
    #[error("{0}")]
    Syntax(String),
    /// Another format version.
    #[error("schema is {0}; this build reads schema {SCHEMA}")]
    Schema(i64),
    /// A field that is needed and not there.
    #[error("{field} is missing; {cure}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What to do.
        cure: Cow<'static, str>,
    },
    /// A field that does not belong.
    #[error("{field} does not belong here; {cure}")]
    Unexpected {
        /// The field.
        field: &'static str,
        /// What to do.
        cure: String,
    },
    /// A whole number out of range.
    #[error("{field} is {value}; it must be in {limit}")]
    Range {
        /// The field.
        field: String,
        /// What it is.
        value: String,
        /// What it may be.
        limit: String,
    },
    /// A list with nothing in it.
    #[error("{field}: the list is empty; give at least one entry")]
    Empty {
        /// The field.
        field: String,
    },
    /// An entry that is not a number.
    #[error("{field}: entry {index}: {source}")]
    Number {
        /// The field.
        field: String,
        /// Position, from 0.
        index: usize,
        /// What is wrong with it.
        source: ParseRationalError,
    },
    /// A single value that is not a number.
    #[error("{field}: {source}")]
    Value {
        /// The field.
        field: String,
        /// What is wrong with it.
        source: ParseRationalError,
    },
    /// Entries that are not a distribution.
    #[error("{field}: {source}")]
    Distribution {
        /// The field.
        field: String,
        /// What is wrong with them.
        source: DistributionError,
    },
    /// A scheme that does not exist.
    #[error("draft.scheme: {0}")]
    Scheme(#[from] UnknownScheme),
    /// Tuples that do not make a law.
    #[error("draft.tuples: {0}")]
    Explicit(#[from] ExplicitError),
    /// Parts that do not fit together.
    #[error("{0}")]
    Problem(#[from] ProblemError),
    /// A token tree that is not one.
    #[error("block: {0}")]
    Block(#[from] BlockProblemError),
    /// An acceptance rate for a verifier that does not exist.
    #[error("expected.acceptance_rate: {0}")]
    Verifier(#[from] UnknownVerifier),
}

/// A number as it stands in a file: a float, an integer, or text that is an
/// exact fraction or decimal.
#[derive(Clone, Debug, PartialEq)]
enum Number {
    Float(f64),
    Text(String),
}

impl Number {
    fn rational(&self) -> Result<Option<Rational>, ParseRationalError> {
        match self {
            Self::Float(value) => Ok(exact_value(*value)),
            Self::Text(text) => parse_rational(text).map(Some),
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
#[serde(deny_unknown_fields)]
struct File {
    schema: Option<i64>,
    name: Option<String>,
    target: Option<Vec<Number>>,
    drafts: Option<i64>,
    draft: Option<DraftTable>,
    block: Option<BlockTable>,
    expected: Option<ExpectedTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DraftTable {
    scheme: Option<String>,
    q: Option<Vec<Number>>,
    qs: Option<Vec<Vec<Number>>>,
    tuples: Option<Vec<Vec<i64>>>,
    probabilities: Option<Vec<Number>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockTable {
    vocab: i64,
    length: i64,
    target: BTreeMap<String, Vec<Number>>,
    draft: BTreeMap<String, Vec<Number>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedTable {
    optimal_acceptance_rate: Option<Number>,
    tolerance: Option<Number>,
    source: Option<String>,
    #[serde(default)]
    acceptance_rate: BTreeMap<String, Number>,
    block_lp: Option<f64>,
    per_depth_bound: Option<f64>,
    lemma_5_1: Option<f64>,
    spectr_gbv: Option<SpecTrGbvExpected>,
}

/// A value that a problem file expects: exact, as a rational, and rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedValue {
    /// The value, exactly as written.
    pub exact: Rational,
    /// The value, rounded.
    pub value: f64,
}

/// What a problem file expects of a single-step problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// alpha*.
    pub optimal_acceptance_rate: Option<ExpectedValue>,
    /// Membership acceptance by verifier name.
    pub acceptance_rate: BTreeMap<String, ExpectedValue>,
    /// Largest absolute difference; 0 asks for equality of exact rationals.
    pub tolerance: Option<ExpectedValue>,
    /// Where the values come from.
    pub source: Option<String>,
}

/// Reads one problem file, or every `.toml` and `.json` file below a folder in
/// the order of their paths.
///
/// # Errors
/// [`ProblemFileError`]; the first file that is refused stops the reading.
pub fn read(path: &Path) -> Result<Vec<(PathBuf, AnyProblem)>, ProblemFileError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ProblemFileError::Io { path, source }
    };
    let metadata = std::fs::metadata(path).map_err(io(path))?;
    if metadata.is_dir() {
        let mut files = Vec::new();
        collect(path, &mut files).map_err(io(path))?;
        files.sort();
        if files.is_empty() {
            return Err(ProblemFileError::NoProblems {
                path: path.to_owned(),
            });
        }
        return files
            .into_iter()
            .map(|file| Ok((file.clone(), read_file(&file)?)))
            .collect();
    }
    Ok(vec![(path.to_owned(), read_file(path)?)])
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // Links to folders are not followed: they may run in circles.
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if extension(&path).is_some() && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

enum Syntax {
    Toml,
    Json,
}

fn extension(path: &Path) -> Option<Syntax> {
    match path.extension()?.to_str()? {
        "toml" => Some(Syntax::Toml),
        "json" => Some(Syntax::Json),
        _ => None,
    }
}

fn read_file(path: &Path) -> Result<AnyProblem, ProblemFileError> {
    let path_owned = || path.to_owned();
    let syntax =
        extension(path).ok_or_else(|| ProblemFileError::Extension { path: path_owned() })?;
    let io = |source| ProblemFileError::Io {
        path: path_owned(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(io)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(ProblemFileError::Size {
            path: path_owned(),
            bytes,
        });
    }
    let text = std::fs::read_to_string(path).map_err(io)?;
    let parsed = match syntax {
        Syntax::Toml => parse_toml(&text),
        Syntax::Json => parse_json(&text),
    };
    parsed.map_err(|source| ProblemFileError::Invalid {
        path: path_owned(),
        source,
    })
}

/// Reads a problem from TOML text.
///
/// # Errors
/// [`FieldError`] names field, entry and limit.
///
/// # Example
/// ```
/// use specgap::problem::{AnyProblem, parse_toml};
/// let text = r#"
///     schema = 1
///     name = "bernoulli"
///     target = ["1/2", "1/2"]
///     drafts = 2
///     [draft]
///     scheme = "with-replacement"
///     q = ["3/4", "1/4"]
/// "#;
/// let AnyProblem::Single(problem) = parse_toml(text)? else { unreachable!() };
/// assert_eq!(problem.vocab(), 2);
/// let error = parse_toml(&text.replace("drafts = 2", "drafts = 65")).unwrap_err();
/// assert_eq!(error.to_string(), "drafts is 65; it must be in 1..=64");
/// # Ok::<(), specgap::problem::FieldError>(())
/// ```
pub fn parse_toml(text: &str) -> Result<AnyProblem, FieldError> {
    let message = |error: &toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = &text.as_bytes()[..at];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = at
            - before
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |p| p + 1)
            + 1;
        format!(
            "line {line}, column {column}: {}",
            flatten(&error.message())
        )
    };
    let deserializer =
        toml::Deserializer::parse(text).map_err(|error| FieldError::Syntax(message(&error)))?;
    build(deserialize(deserializer, message)?)
}

/// Reads a problem from JSON text.
///
/// # Errors
/// [`FieldError`] names field, entry and limit.
pub fn parse_json(text: &str) -> Result<AnyProblem, FieldError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let file = deserialize(&mut deserializer, flatten)?;
    deserializer
        .end()
        .map_err(|error| FieldError::Syntax(flatten(&error)))?;
    build(file)
}

fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
    message: impl Fn(&D::Error) -> String,
) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = message(error.inner());
        FieldError::Syntax(if path == "." {
            message
        } else {
            format!("{path}: {message}")
        })
    })
}

/// A parser's message on one line.
fn flatten(error: &impl fmt::Display) -> String {
    error
        .to_string()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn missing(field: &'static str, cure: &'static str) -> FieldError {
    FieldError::Missing {
        field,
        cure: cure.into(),
    }
}

fn build(file: File) -> Result<AnyProblem, FieldError> {
    let schema = file
        .schema
        .ok_or_else(|| missing("schema", "write schema = 1"))?;
    if schema != SCHEMA {
        return Err(FieldError::Schema(schema));
    }
    let name = file
        .name
        .ok_or_else(|| missing("name", "give the problem a name"))?;
    if name.trim().is_empty() {
        return Err(missing("name", "give the problem a name that is not empty"));
    }
    if let Some(block) = file.block {
        for (field, present) in [
            ("target", file.target.is_some()),
            ("draft", file.draft.is_some()),
        ] {
            if present {
                let cure = "a block problem has block.target and block.draft instead".to_owned();
                return Err(FieldError::Unexpected { field, cure });
            }
        }
        return build_block(name, file.drafts, block, file.expected).map(AnyProblem::Block);
    }
    let target = file
        .target
        .ok_or_else(|| missing("target", "list the target's probabilities"))?;
    let drafts = file
        .drafts
        .ok_or_else(|| missing("drafts", "give the number of draft tokens"))?;
    let drafts = in_range("drafts", drafts, 1, MAX_DRAFTS)?;
    let draft = file
        .draft
        .ok_or_else(|| missing("draft", "add a [draft] table with scheme and q"))?;
    let target = distribution("target", &target, Target::new, Target::from_rationals)?;
    let scheme = build_scheme(draft, target.vocab(), drafts)?;
    let expected = file.expected.map(build_expected).transpose()?;
    Ok(AnyProblem::Single(Problem::from_parts(
        name, target, scheme, expected,
    )?))
}

fn in_range(field: &str, value: i64, low: usize, high: usize) -> Result<usize, FieldError> {
    usize::try_from(value)
        .ok()
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| FieldError::Range {
            field: field.to_owned(),
            value: value.to_string(),
            limit: format!("{low}..={high}"),
        })
}

/// Floats stay floats; as soon as one entry is text, all are taken exactly.
fn distribution<D>(
    field: &str,
    numbers: &[Number],
    floats: impl Fn(&[f64]) -> Result<D, DistributionError>,
    rationals: impl Fn(Vec<Rational>) -> Result<D, DistributionError>,
) -> Result<D, FieldError> {
    let wrong = |source| FieldError::Distribution {
        field: field.to_owned(),
        source,
    };
    if numbers.len() > MAX_VOCAB {
        return Err(FieldError::Range {
            field: format!("number of entries of {field}"),
            value: numbers.len().to_string(),
            limit: format!("1..={MAX_VOCAB}"),
        });
    }
    if let Some(row) = numbers
        .iter()
        .map(|number| match number {
            Number::Float(value) => Some(*value),
            Number::Text(_) => None,
        })
        .collect::<Option<Vec<f64>>>()
    {
        return floats(&row).map_err(wrong);
    }
    let row = numbers
        .iter()
        .enumerate()
        .map(|(index, number)| match number.rational() {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                let Number::Float(value) = *number else {
                    return Ok(Rational::default());
                };
                Err(wrong(DistributionError::NotFinite { index, value }))
            }
            Err(source) => Err(FieldError::Number {
                field: field.to_owned(),
                index,
                source,
            }),
        })
        .collect::<Result<Vec<_>, _>>()?;
    rationals(row).map_err(wrong)
}

fn build_scheme(
    table: DraftTable,
    vocab: usize,
    drafts: usize,
) -> Result<Arc<dyn DraftScheme>, FieldError> {
    let text = table.scheme.ok_or_else(|| FieldError::Missing {
        field: "draft.scheme",
        cure: format!("name one of {}", SchemeName::list()).into(),
    })?;
    let name: SchemeName = text.parse()?;
    let made_of = name.entry().made_of;
    let wanted = made_of.fields();
    for (field, present) in [
        ("draft.q", table.q.is_some()),
        ("draft.qs", table.qs.is_some()),
        ("draft.tuples", table.tuples.is_some()),
        ("draft.probabilities", table.probabilities.is_some()),
    ] {
        if present && !wanted.contains(&field) {
            let cure = format!("scheme {name} is given by {}", wanted.join(" and "));
            return Err(FieldError::Unexpected { field, cure });
        }
    }
    let same_vocab = |field: &str, entries: usize| {
        if entries == vocab {
            return Ok(());
        }
        Err(FieldError::Range {
            field: format!("number of entries of {field}"),
            value: entries.to_string(),
            limit: format!("{vocab}..={vocab}, the length of target"),
        })
    };
    match made_of {
        MadeOf::OneDraft(make) => {
            let row = table
                .q
                .ok_or_else(|| missing("draft.q", "list the draft's probabilities"))?;
            same_vocab("draft.q", row.len())?;
            let draft = distribution("draft.q", &row, Draft::new, Draft::from_rationals)?;
            if drafts > vocab && name.draws_distinct_tokens() {
                return Err(ProblemError::MoreDraftsThanTokens {
                    drafts,
                    vocab,
                    scheme: name,
                }
                .into());
            }
            if let Some(only) = name.entry().only.filter(|&only| only != drafts) {
                return Err(FieldError::Range {
                    field: "drafts".to_owned(),
                    value: drafts.to_string(),
                    limit: format!("{only}..={only} for scheme {name}"),
                });
            }
            Ok(make(draft, drafts))
        }
        MadeOf::EachDraft(make) => {
            let rows = table
                .qs
                .ok_or_else(|| missing("draft.qs", "list one distribution a draft"))?;
            if rows.len() != drafts {
                return Err(FieldError::Range {
                    field: "number of distributions in draft.qs".to_owned(),
                    value: rows.len().to_string(),
                    limit: format!("{drafts}..={drafts}, the number of drafts"),
                });
            }
            let rows = rows
                .iter()
                .enumerate()
                .map(|(index, row)| {
                    let field = format!("draft.qs[{index}]");
                    same_vocab(&field, row.len())?;
                    distribution(&field, row, Draft::new, Draft::from_rationals)
                })
                .collect::<Result<Vec<_>, _>>()?;
            make(rows).ok_or(FieldError::Empty {
                field: "draft.qs".to_owned(),
            })
        }
        MadeOf::Tuples(make) => {
            build_tuples(make, table.tuples, table.probabilities, vocab, drafts)
        }
    }
}

fn build_tuples(
    make: TuplesToLaw,
    tuples: Option<Vec<Vec<i64>>>,
    probabilities: Option<Vec<Number>>,
    vocab: usize,
    drafts: usize,
) -> Result<Arc<dyn DraftScheme>, FieldError> {
    let tuples = tuples.ok_or_else(|| missing("draft.tuples", "list the draft tuples"))?;
    let probabilities = probabilities
        .ok_or_else(|| missing("draft.probabilities", "list one probability a tuple"))?;
    let tuples = tuples
        .into_iter()
        .enumerate()
        .map(|(index, tuple)| {
            tuple
                .into_iter()
                .map(|token| {
                    u32::try_from(token)
                        .ok()
                        .filter(|&id| (id as usize) < vocab)
                        .ok_or(ExplicitError::OutOfRange {
                            index,
                            token,
                            vocab,
                        })
                })
                .collect::<Result<Vec<u32>, _>>()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let law = distribution(
        "draft.probabilities",
        &probabilities,
        TupleProbabilities::new,
        TupleProbabilities::from_rationals,
    )?;
    Ok(make(vocab, drafts, tuples, law)?)
}

fn expected_value(field: &str, number: &Number) -> Result<ExpectedValue, FieldError> {
    match number.rational() {
        Ok(Some(exact)) => Ok(ExpectedValue {
            value: round_nearest(&exact),
            exact,
        }),
        Ok(None) => {
            let Number::Float(value) = number else {
                return Err(FieldError::Empty {
                    field: field.to_owned(),
                });
            };
            Err(FieldError::Range {
                field: field.to_owned(),
                value: value.to_string(),
                limit: "the range of finite numbers".to_owned(),
            })
        }
        Err(source) => Err(FieldError::Value {
            field: field.to_owned(),
            source,
        }),
    }
}

fn rate(field: &str, number: &Number) -> Result<ExpectedValue, FieldError> {
    let value = expected_value(field, number)?;
    let (zero, one) = (
        Rational::from_integer(0.into()),
        Rational::from_integer(1.into()),
    );
    // A rate from another floating-point program may exceed 1 by rounding.
    if value.exact < zero || (value.exact > one && value.value > 1.0 + 1e-9) {
        return Err(FieldError::Range {
            field: field.to_owned(),
            value: value.value.to_string(),
            limit: "[0, 1]".to_owned(),
        });
    }
    Ok(value)
}

fn tolerance(number: Option<&Number>) -> Result<Option<ExpectedValue>, FieldError> {
    let Some(number) = number else {
        return Ok(None);
    };
    let value = expected_value("expected.tolerance", number)?;
    if value.value < 0.0 {
        return Err(FieldError::Range {
            field: "expected.tolerance".to_owned(),
            value: value.value.to_string(),
            limit: "[0, inf)".to_owned(),
        });
    }
    Ok(Some(value))
}

fn build_expected(table: ExpectedTable) -> Result<Expected, FieldError> {
    for (field, present) in [
        ("expected.block_lp", table.block_lp.is_some()),
        ("expected.per_depth_bound", table.per_depth_bound.is_some()),
        ("expected.lemma_5_1", table.lemma_5_1.is_some()),
        ("expected.spectr_gbv", table.spectr_gbv.is_some()),
    ] {
        if present {
            let cure = "it is expected of block problems only".to_owned();
            return Err(FieldError::Unexpected { field, cure });
        }
    }
    let mut acceptance_rate = BTreeMap::new();
    for (verifier, number) in &table.acceptance_rate {
        verifier.parse::<VerifierName>()?;
        let value = rate(&format!("expected.acceptance_rate.{verifier}"), number)?;
        acceptance_rate.insert(verifier.clone(), value);
    }
    Ok(Expected {
        optimal_acceptance_rate: table
            .optimal_acceptance_rate
            .map(|number| rate("expected.optimal_acceptance_rate", &number))
            .transpose()?,
        acceptance_rate,
        tolerance: tolerance(table.tolerance.as_ref())?,
        source: table.source,
    })
}

fn build_block(
    name: String,
    drafts: Option<i64>,
    table: BlockTable,
    expected: Option<ExpectedTable>,
) -> Result<BlockProblem, FieldError> {
    let drafts = in_range("drafts", drafts.unwrap_or(1), 1, MAX_DRAFTS)?;
    let vocab = in_range("block.vocab", table.vocab, 1, MAX_VOCAB)?;
    let length = in_range("block.length", table.length, 1, 64)?;
    let rows = |side: &str, rows: BTreeMap<String, Vec<Number>>| {
        rows.into_iter()
            .map(move |(prefix, row)| (format!("block.{side}.\"{prefix}\""), prefix, row))
            .collect::<Vec<_>>()
    };
    let target = rows("target", table.target)
        .into_iter()
        .map(|(field, prefix, row)| {
            Ok((
                prefix,
                distribution(&field, &row, Target::new, Target::from_rationals)?,
            ))
        })
        .collect::<Result<BTreeMap<_, _>, FieldError>>()?;
    let draft = rows("draft", table.draft)
        .into_iter()
        .map(|(field, prefix, row)| {
            Ok((
                prefix,
                distribution(&field, &row, Draft::new, Draft::from_rationals)?,
            ))
        })
        .collect::<Result<BTreeMap<_, _>, FieldError>>()?;
    let expected = expected
        .map(|table| {
            for (field, present) in [
                (
                    "expected.optimal_acceptance_rate",
                    table.optimal_acceptance_rate.is_some(),
                ),
                (
                    "expected.acceptance_rate",
                    !table.acceptance_rate.is_empty(),
                ),
            ] {
                if present {
                    let cure = "it is expected of single-step problems only".to_owned();
                    return Err(FieldError::Unexpected { field, cure });
                }
            }
            let gbv = table.spectr_gbv;
            for (field, value) in [
                ("expected.block_lp", table.block_lp),
                ("expected.per_depth_bound", table.per_depth_bound),
                ("expected.lemma_5_1", table.lemma_5_1),
                (
                    "expected.spectr_gbv.expected_accepted_length",
                    gbv.map(|gbv| gbv.expected_accepted_length),
                ),
                (
                    "expected.spectr_gbv.undefined_mass",
                    gbv.and_then(|gbv| gbv.undefined_mass),
                ),
            ] {
                // No value is within any tolerance of NaN.
                if let Some(value) = value.filter(|value| !value.is_finite()) {
                    return Err(FieldError::Range {
                        field: field.to_owned(),
                        value: value.to_string(),
                        limit: "the range of finite numbers".to_owned(),
                    });
                }
            }
            Ok(BlockExpected {
                block_lp: table.block_lp,
                per_depth_bound: table.per_depth_bound,
                lemma_5_1: table.lemma_5_1,
                spectr_gbv: table.spectr_gbv,
                tolerance: tolerance(table.tolerance.as_ref())?.map(|value| value.value),
                source: table.source,
            })
        })
        .transpose()?;
    Ok(BlockProblem::new(
        name, vocab, length, drafts, target, draft, expected,
    )?)
}
