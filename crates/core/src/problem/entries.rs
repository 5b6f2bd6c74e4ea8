//! Entries of a file as numbers and distributions, and what is wrong with them.

use super::{FieldError, MAX_VOCAB};
use specgap_number::distribution::{DistributionError, Rational};
use specgap_tables::Number;
use std::borrow::Cow;

pub(super) fn missing(
    field: impl Into<Cow<'static, str>>,
    cure: impl Into<Cow<'static, str>>,
) -> FieldError {
    let (field, cure) = (field.into(), cure.into());
    FieldError::Missing(field, cure)
}

/// Returns what a field says that has to be there.
pub(super) fn needed<T>(
    value: Option<T>,
    field: impl Into<Cow<'static, str>>,
    cure: impl Into<Cow<'static, str>>,
) -> Result<T, FieldError> {
    value.ok_or_else(|| missing(field, cure))
}

pub(super) fn unexpected(
    field: impl Into<Cow<'static, str>>,
    cure: impl Into<String>,
) -> FieldError {
    let (field, cure) = (field.into(), cure.into());
    FieldError::Unexpected(field, cure)
}

/// Refuses the first of these fields that is there.
pub(super) fn refuse<const N: usize>(
    fields: [(&'static str, bool); N],
    cure: &str,
) -> Result<(), FieldError> {
    match fields.into_iter().find(|(_, is_there)| *is_there) {
        Some((field, _)) => Err(unexpected(field, cure)),
        None => Ok(()),
    }
}

pub(super) fn out_of_range(
    field: impl Into<String>,
    value: impl ToString,
    limit: impl Into<String>,
) -> FieldError {
    wrong_number(field, value, format!("in {}", limit.into()))
}

/// Refuses a number of which one value fits.
pub(super) fn wrong_number(
    field: impl Into<String>,
    value: impl ToString,
    wanted: impl Into<String>,
) -> FieldError {
    FieldError::Range(field.into(), value.to_string(), wanted.into())
}

/// Refuses a list that has not `wanted` entries, which is `number`.
pub(super) fn same_length(
    field: &str,
    entries: usize,
    wanted: usize,
    number: &str,
) -> Result<(), FieldError> {
    if entries == wanted {
        return Ok(());
    }
    let field = format!("number of entries of {field}");
    Err(wrong_number(field, entries, format!("{wanted}, {number}")))
}

/// Refuses a list that is longer than any vocabulary, `fewest` entries being enough.
pub(super) fn of_tokens(field: &str, entries: usize, fewest: usize) -> Result<(), FieldError> {
    if entries <= MAX_VOCAB {
        return Ok(());
    }
    let field = format!("number of entries of {field}");
    Err(out_of_range(
        field,
        entries,
        format!("{fewest}..={MAX_VOCAB}"),
    ))
}

/// Reads the entries of a list, each by the name of its field.
pub(super) fn each<T, U>(
    field: &str,
    list: impl IntoIterator<Item = T>,
    one: impl Fn(&str, T) -> Result<U, FieldError>,
) -> Result<Vec<U>, FieldError> {
    let list = list.into_iter().enumerate();
    list.map(|(index, entry)| one(&format!("{field}[{index}]"), entry))
        .collect()
}

pub(super) fn in_range(
    field: &str,
    value: i64,
    low: usize,
    high: usize,
) -> Result<usize, FieldError> {
    let whole = usize::try_from(value).ok();
    whole
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| match low == high {
            true => wrong_number(field, value, low.to_string()),
            false => out_of_range(field, value, format!("{low}..={high}")),
        })
}

/// A single number, exactly.
pub(super) fn rational(field: &str, number: &Number) -> Result<Rational, FieldError> {
    match number.rational() {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err(out_of_range(field, number, "the range of finite numbers")),
        Err(source) => Err(FieldError::Value(field.to_owned(), source)),
    }
}

/// Floats stay floats; as soon as one entry is text, all are taken exactly.
pub(super) fn distribution<D>(
    field: &str,
    numbers: &[Number],
    floats: impl Fn(&[f64]) -> Result<D, DistributionError>,
    rationals: impl Fn(Vec<Rational>) -> Result<D, DistributionError>,
) -> Result<D, FieldError> {
    let wrong = |source| FieldError::Distribution(field.to_owned(), source);
    of_tokens(field, numbers.len(), 1)?;
    let float = |number: &Number| match number {
        Number::Float(value) => Some(*value),
        Number::Text(_) => None,
    };
    if let Some(row) = numbers.iter().map(float).collect::<Option<Vec<f64>>>() {
        return floats(&row).map_err(wrong);
    }
    let exact = |(index, number): (usize, &Number)| match (number.rational(), number) {
        (Ok(Some(value)), _) => Ok(value),
        (Ok(None), Number::Float(value)) => Err(wrong(DistributionError::NotFinite(index, *value))),
        (Ok(None), Number::Text(_)) => Ok(Rational::default()),
        (Err(source), _) => Err(FieldError::Value(format!("{field}: entry {index}"), source)),
    };
    let row: Result<_, _> = numbers.iter().enumerate().map(exact).collect();
    rationals(row?).map_err(wrong)
}
