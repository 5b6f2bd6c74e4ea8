//! Exact rationals: reading them from text, from `f64`, and rounding them back
//! with a direction.

use super::lowest_terms;
use num_bigint::{BigInt, BigUint, Sign};
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// An exact rational number of unbounded size.
pub type Rational = BigRational;

/// The longest number text that is read, in characters. A longer one is refused
/// before any arithmetic, so that a file cannot ask for gigabytes of digits.
pub const MAX_NUMBER_CHARACTERS: usize = 4096;

/// The largest decimal exponent that is read, in magnitude.
pub const MAX_DECIMAL_EXPONENT: i64 = 400;

/// Why a text is not an exact number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseRationalError {
    /// Neither an integer, nor a decimal, nor a fraction.
    #[error(
        "\"{0}\" is not a number; write a fraction such as \"1/3\" or a decimal such as \"0.25\""
    )]
    Malformed(String),
    /// A fraction over zero.
    #[error("\"{0}\" divides by zero")]
    ZeroDenominator(String),
    /// Longer than [`MAX_NUMBER_CHARACTERS`] or with an exponent beyond [`MAX_DECIMAL_EXPONENT`]:
    /// how long the text is; its first characters.
    #[error(
        "a number of {0} characters starting \"{1}\" is too large; at most {MAX_NUMBER_CHARACTERS} characters and exponents within {MAX_DECIMAL_EXPONENT} are read"
    )]
    TooLarge(usize, String),
}

/// Reads an integer, a decimal (with optional exponent) or a fraction of two
/// integers, exactly: `"0.1"` is 1/10 and not the nearest `f64`.
///
/// # Errors
/// [`ParseRationalError`] says what is wrong with the text.
///
/// # Example
/// ```
/// use specgap_number::distribution::{format_rational, parse_rational};
/// assert_eq!(format_rational(&parse_rational("6/8")?), "3/4");
/// assert_eq!(format_rational(&parse_rational("2.5e-1")?), "1/4");
/// assert!(parse_rational("1/0").is_err() && parse_rational("1/2.0").is_err());
/// # Ok::<(), specgap_number::distribution::ParseRationalError>(())
/// ```
pub fn parse_rational(text: &str) -> Result<Rational, ParseRationalError> {
    let trimmed = text.trim();
    let too_large = || {
        ParseRationalError::TooLarge(trimmed.chars().count(), trimmed.chars().take(24).collect())
    };
    if trimmed.len() > MAX_NUMBER_CHARACTERS {
        return Err(too_large());
    }
    let malformed = || ParseRationalError::Malformed(trimmed.to_owned());
    let part = |part: &str| match parse_decimal(part.trim()) {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(too_large()),
        None => Err(malformed()),
    };
    match trimmed.split_once('/') {
        None => part(trimmed),
        Some((numerator, denominator)) => {
            if denominator.contains(['.', 'e', 'E']) || numerator.contains(['.', 'e', 'E']) {
                return Err(malformed());
            }
            let (numerator, denominator) = (part(numerator)?, part(denominator)?);
            if denominator.is_zero() {
                return Err(ParseRationalError::ZeroDenominator(trimmed.to_owned()));
            }
            Ok(numerator / denominator)
        }
    }
}

/// `None`: malformed. `Some(None)`: the exponent is out of range.
fn parse_decimal(text: &str) -> Option<Option<Rational>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            (mantissa, exponent.parse::<i64>().unwrap_or(i64::MAX))
        }
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if exponent
        .checked_abs()
        .is_none_or(|e| e > MAX_DECIMAL_EXPONENT)
    {
        return Some(None);
    }
    let magnitude = BigInt::parse_bytes(all.as_bytes(), 10)?;
    let scale = exponent - i64::try_from(fraction.len()).ok()?;
    let power = BigInt::from(10).pow(u32::try_from(scale.unsigned_abs()).ok()?);
    let value = if scale >= 0 {
        Rational::from_integer(magnitude * power)
    } else {
        Rational::new(magnitude, power)
    };
    Some(Some(if negative { -value } else { value }))
}

/// The value as `numerator/denominator`, or as an integer.
pub fn format_rational(value: &Rational) -> String {
    if value.is_integer() {
        value.numer().to_string()
    } else {
        value.to_string()
    }
}

/// The dyadic rational that an `f64` is. `None` for NaN and infinities.
///
/// # Example
/// ```
/// use specgap_number::distribution::{exact_value, format_rational};
/// assert_eq!(format_rational(&exact_value(0.375).unwrap()), "3/8");
/// assert!(exact_value(f64::NAN).is_none());
/// ```
pub fn exact_value(value: f64) -> Option<Rational> {
    Rational::from_float(value)
}

/// A ratio of integer weights as a rational; the denominator is not 0.
pub fn ratio(numerator: &BigUint, denominator: &BigUint) -> Rational {
    lowest_terms::fraction(&numerator.clone().into(), &denominator.clone().into())
}

/// The largest `f64` that is at most `value`.
///
/// # Example
/// ```
/// use specgap_number::distribution::{parse_rational, round_down, round_up};
/// let third = parse_rational("1/3").unwrap();
/// assert!(round_down(&third) < round_up(&third));
/// assert_eq!(round_up(&third), round_down(&third).next_up());
/// let half = parse_rational("1/2").unwrap();
/// assert_eq!((round_down(&half), round_up(&half)), (0.5, 0.5));
/// ```
pub fn round_down(value: &Rational) -> f64 {
    if value.is_negative() {
        return -round_up(&-value.clone());
    }
    let (down, _) = truncate(value);
    down
}

/// The smallest `f64` that is at least `value`.
pub fn round_up(value: &Rational) -> f64 {
    if value.is_negative() {
        return -round_down(&-value.clone());
    }
    let (down, inexact) = truncate(value);
    if inexact { down.next_up() } else { down }
}

/// An `f64` nearest to `value` (ties towards the smaller).
pub fn round_nearest(value: &Rational) -> f64 {
    let (down, up) = (round_down(value), round_up(value));
    if down == up || up.is_infinite() {
        return down;
    }
    let (Some(below), Some(above)) = (exact_value(down), exact_value(up)) else {
        return down;
    };
    if &above - value < value - &below {
        up
    } else {
        down
    }
}

/// The `f64` below a non-negative rational, and whether bits were cut off.
fn truncate(value: &Rational) -> (f64, bool) {
    let (Sign::Plus, numerator) = value.numer().clone().into_parts() else {
        return (0.0, false);
    };
    let denominator = value.denom().magnitude();
    // A quotient of 54 to 55 bits holds every mantissa and one guard bit.
    let shift = 54 + denominator.bits() as i64 - numerator.bits() as i64;
    let (scaled, divisor) = if shift >= 0 {
        (numerator << shift.unsigned_abs(), denominator.clone())
    } else {
        (numerator, denominator << shift.unsigned_abs())
    };
    let quotient = &scaled / &divisor;
    let mut inexact = &quotient * &divisor != scaled;
    let mut mantissa = quotient.to_u64().unwrap_or(u64::MAX);
    let mut exponent = -shift;
    // Cut to 53 bits, or to what a subnormal holds.
    let mut excess = 64 - i64::from(mantissa.leading_zeros()) - 53;
    excess = excess.max(-1074 - exponent).max(0);
    if excess >= 64 {
        return (0.0, true);
    }
    inexact |= mantissa & ((1u64 << excess) - 1) != 0;
    mantissa >>= excess;
    exponent += excess;
    if exponent > 971 {
        return (f64::MAX, true);
    }
    (scale_by_power_of_two(mantissa as f64, exponent), inexact)
}

fn scale_by_power_of_two(mut value: f64, mut exponent: i64) -> f64 {
    while exponent < -1000 {
        value *= 2f64.powi(-500);
        exponent += 500;
    }
    // The product is exact: the mantissa was cut to what the result can hold.
    value * 2f64.powi(i32::try_from(exponent).unwrap_or(1023))
}

/// Integer weights with a common denominator 1/`total`, from non-negative
/// rationals that need not sum to one.
pub fn integer_weights(values: &[Rational]) -> (Vec<BigUint>, BigUint) {
    let mut common = BigInt::one();
    for value in values {
        if !(&common % value.denom()).is_zero() {
            common = num_integer::Integer::lcm(&common, value.denom());
        }
    }
    let weights: Vec<BigUint> = values
        .iter()
        .map(|value| {
            (value.numer() * (&common / value.denom()))
                .magnitude()
                .clone()
        })
        .collect();
    let total = weights.iter().sum();
    (weights, total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_not_a_number() {
        for text in [
            "", "/", "1/", "/2", "a/b", "1/2/3", "0x10", "1e", "--1", "1.2.3", "nan", "inf",
        ] {
            assert!(
                matches!(parse_rational(text), Err(ParseRationalError::Malformed(_))),
                "{text}"
            );
        }
        assert!(matches!(
            parse_rational("3/0"),
            Err(ParseRationalError::ZeroDenominator(_))
        ));
        assert!(matches!(
            parse_rational("1e999999999"),
            Err(ParseRationalError::TooLarge(..))
        ));
        assert!(matches!(
            parse_rational(&"9".repeat(5000)),
            Err(ParseRationalError::TooLarge(5000, _))
        ));
    }

    #[test]
    fn subnormals_round_in_their_own_grid() {
        let tiny = Rational::new(BigInt::one(), BigInt::from(3) << 1074usize);
        assert_eq!(round_down(&tiny), 0.0);
        assert_eq!(round_up(&tiny), f64::from_bits(1));
        let edge = exact_value(f64::from_bits(3)).unwrap();
        assert_eq!(
            (round_down(&edge), round_up(&edge)),
            (f64::from_bits(3), f64::from_bits(3))
        );
    }

    proptest! {
        #[test]
        fn every_f64_survives_the_round_trip(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let exact = exact_value(value).unwrap();
            prop_assert_eq!(round_down(&exact), value);
            prop_assert_eq!(round_up(&exact), value);
        }

        #[test]
        fn rounding_brackets_the_fraction(a in 1u64.., b in 1u64..) {
            let value = Rational::new(a.into(), b.into());
            let (down, up) = (round_down(&value), round_up(&value));
            prop_assert!(exact_value(down).unwrap() <= value && value <= exact_value(up).unwrap());
            prop_assert!(up == down || up == down.next_up());
            let nearest = round_nearest(&value);
            prop_assert!(nearest == down || nearest == up);
        }
    }
}
