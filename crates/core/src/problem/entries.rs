//! Entries of a file as numbers and distributions.

use super::tables::Number;
use super::{FieldError, MAX_VOCAB};
use specgap_number::distribution::{DistributionError, Rational};

pub(super) fn in_range(
    field: &str,
    value: i64,
    low: usize,
    high: usize,
) -> Result<usize, FieldError> {
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
pub(super) fn distribution<D>(
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
