//! Sums, products and quotients of rationals in lowest terms.
//!
//! Nearly all the time of exact arithmetic goes into common divisors. These are found by
//! Lehmer's method here (Knuth, The Art of Computer Programming 2, 4.5.2, algorithm L),
//! and fewer are looked for than by the operators of [`Rational`] (4.5.1). Values are the
//! same: a rational has one form in lowest terms.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_rational::BigRational as Rational;
use num_traits::{One, Signed, Zero};

/// Bits of a leading part, so that sums of two fit an `i64`.
const LEADING: u64 = 62;
/// Quotients and cofactors below this have products that fit an `i64`.
const SHORT: u64 = 1 << 31;

/// The greatest common divisor; of a number and 0, the number.
///
/// Quotients of Euclid's algorithm come from the leading bits, as long as these decide
/// them: some 30 bits go in one pass over the digits. O(bits^2).
pub(super) fn common_divisor(a: &BigUint, b: &BigUint) -> BigUint {
    if let Some(shared) = with_binary(a, b).or_else(|| with_binary(b, a)) {
        return shared;
    }
    let (mut a, mut b) = if a >= b {
        (a.clone(), b.clone())
    } else {
        (b.clone(), a.clone())
    };
    while b.bits() > u64::from(u64::BITS) {
        (a, b) = match Steps::of(&a, &b) {
            Some(steps) => (steps.first.of(&a, &b), steps.second.of(&a, &b)),
            None => {
                let rest = &a % &b;
                (b, rest)
            }
        };
    }
    if b.is_zero() {
        return a;
    }
    let (small, rest) = (lowest(&b), lowest(&(a % &b)));
    small.gcd(&rest).into()
}

/// The greatest common divisor where `short` is a power of two times what fits 64 bits, as
/// denominators are that come from floats. One pass over the digits.
fn with_binary(short: &BigUint, other: &BigUint) -> Option<BigUint> {
    let zeros = short.trailing_zeros()?;
    if short.bits() - zeros > u64::from(u64::BITS) {
        return None;
    }
    let odd = lowest(&(short >> zeros));
    let Some(others) = other.trailing_zeros() else {
        return Some(short.clone());
    };
    let shared = odd.gcd(&lowest(&(other % odd)));
    Some(BigUint::from(shared) << zeros.min(others))
}

/// The lowest 64 bits.
fn lowest(number: &BigUint) -> u64 {
    number.iter_u64_digits().next().unwrap_or_default()
}

/// a x + b y, where one of the factors may be negative and the sum is not.
#[derive(Clone, Copy)]
struct Combination {
    a: i64,
    b: i64,
}

impl Combination {
    fn of(self, a: &BigUint, b: &BigUint) -> BigUint {
        let (x, y) = (a * self.a.unsigned_abs(), b * self.b.unsigned_abs());
        match (self.a < 0, self.b < 0) {
            (false, false) => x + y,
            (false, true) => x - y,
            _ => y - x,
        }
    }
}

/// Several steps of Euclid's algorithm: two successive remainders by what they are of
/// the numbers before.
struct Steps {
    first: Combination,
    second: Combination,
}

impl Steps {
    /// The steps that the leading bits decide, where a >= b > 2^64; `None` if not even
    /// the first.
    fn of(a: &BigUint, b: &BigUint) -> Option<Self> {
        let shift = a.bits() - LEADING;
        let leading = |number: &BigUint| i64::try_from(lowest(&(number >> shift))).ok();
        let (mut x, mut y) = (leading(a)?, leading(b)?);
        let mut first = Combination { a: 1, b: 0 };
        let mut second = Combination { a: 0, b: 1 };
        let short = |factor: i64| factor.unsigned_abs() < SHORT;
        while short(second.a) && short(second.b) && y + second.a != 0 && y + second.b != 0 {
            // The whole numbers' quotient lies between these two.
            let quotient = (x + first.a) / (y + second.a);
            if quotient != (x + first.b) / (y + second.b) || !short(quotient) {
                break;
            }
            (x, y) = (y, x - quotient * y);
            let next = Combination {
                a: first.a - quotient * second.a,
                b: first.b - quotient * second.b,
            };
            (first, second) = (second, next);
        }
        (first.b != 0).then_some(Self { first, second })
    }
}

/// The quotient by a divisor.
fn divided(number: &BigInt, divisor: &BigUint) -> BigInt {
    if divisor.is_one() {
        number.clone()
    } else {
        BigInt::from_biguint(number.sign(), number.magnitude() / divisor)
    }
}

fn divisor(a: &BigInt, b: &BigInt) -> BigUint {
    common_divisor(a.magnitude(), b.magnitude())
}

/// A fraction in lowest terms; the denominator is above 0.
pub(super) fn fraction(numerator: &BigInt, denominator: &BigInt) -> Rational {
    let shared = divisor(numerator, denominator);
    Rational::new_raw(divided(numerator, &shared), divided(denominator, &shared))
}

/// a + b.
pub(crate) fn sum(a: &Rational, b: &Rational) -> Rational {
    if a.is_zero() {
        return b.clone();
    }
    if b.is_zero() {
        return a.clone();
    }
    if a.denom() == b.denom() {
        return fraction(&(a.numer() + b.numer()), a.denom());
    }
    let shared = divisor(a.denom(), b.denom());
    let (left, right) = (divided(a.denom(), &shared), divided(b.denom(), &shared));
    let top = a.numer() * &right + b.numer() * &left;
    // What still cancels divides what the denominators share.
    let again = common_divisor(top.magnitude(), &shared);
    Rational::new_raw(divided(&top, &again), left * divided(b.denom(), &again))
}

/// a - b.
pub(crate) fn difference(a: &Rational, b: &Rational) -> Rational {
    sum(a, &-b)
}

/// a b.
pub(crate) fn product(a: &Rational, b: &Rational) -> Rational {
    scaled(a, b.numer(), b.denom())
}

/// a / b; b is not 0.
pub(crate) fn quotient(a: &Rational, b: &Rational) -> Rational {
    debug_assert!(!b.is_zero(), "division by zero");
    if b.is_negative() {
        scaled(a, &-b.denom(), &-b.numer())
    } else {
        scaled(a, b.denom(), b.numer())
    }
}

/// a times a fraction in lowest terms; its denominator is above 0.
fn scaled(a: &Rational, numerator: &BigInt, denominator: &BigInt) -> Rational {
    let (up, down) = (
        divisor(a.numer(), denominator),
        divisor(numerator, a.denom()),
    );
    Rational::new_raw(
        divided(a.numer(), &up) * divided(numerator, &down),
        divided(a.denom(), &down) * divided(denominator, &up),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(digits: &[u32]) -> BigUint {
        BigUint::new(digits.to_vec())
    }

    /// Numbers of up to 800 bits, many of them with long runs of equal digits.
    fn any_number() -> impl Strategy<Value = BigUint> {
        let digit = prop_oneof![3 => any::<u32>(), 1 => Just(0), 1 => Just(u32::MAX), 1 => 0u32..3];
        prop::collection::vec(digit, 0..25).prop_map(|digits| number(&digits))
    }

    fn any_rational() -> impl Strategy<Value = Rational> {
        (any_number(), any_number(), any::<bool>()).prop_map(
            |(numerator, denominator, negative)| {
                let value = Rational::new(numerator.into(), (denominator + 1u32).into());
                if negative { -value } else { value }
            },
        )
    }

    /// Quotients of 1 only, the longest way that Euclid's algorithm can take.
    #[test]
    fn successive_fibonacci_numbers_share_nothing() {
        let (mut a, mut b) = (BigUint::one(), BigUint::one());
        for _ in 0..3000 {
            (a, b) = (&a + &b, a);
        }
        assert!(common_divisor(&a, &b).is_one());
        let factor = number(&[7, 0, 0, 0, 9]);
        assert_eq!(common_divisor(&(&b * &factor), &(&a * &factor)), factor);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn divisors_are_those_of_the_library(
            a in any_number(), b in any_number(), c in any_number(), shift in 0u64..200,
            odd in any::<u64>(),
        ) {
            let binary = BigUint::from(odd) << shift;
            prop_assert_eq!(common_divisor(&(&a * 3u32), &binary), (&a * 3u32).gcd(&binary));
            prop_assert_eq!(common_divisor(&binary, &(&b << 9)), (&b << 9u32).gcd(&binary));
            for (a, b) in [(&a * &c, &b * &c), (a.clone() << shift, b.clone()), (a.clone(), &a * &c)] {
                prop_assert_eq!(common_divisor(&a, &b), a.gcd(&b));
                prop_assert_eq!(common_divisor(&b, &a), a.gcd(&b));
            }
        }

        #[test]
        fn results_are_those_of_the_operators(a in any_rational(), b in any_rational(), c in any_rational()) {
            // Shared denominators, and results that cancel.
            for (a, b) in [(&a, &b), (&(&a * &c), &(&b * &c)), (&a, &-&a), (&a, &a), (&(&a + &c), &-&c)] {
                let exact = [
                    (sum(a, b), a + b),
                    (difference(a, b), a - b),
                    (product(a, b), a * b),
                ];
                for (ours, theirs) in exact {
                    // Parts, too: equality of rationals does not need lowest terms.
                    prop_assert_eq!((ours.numer(), ours.denom()), (theirs.numer(), theirs.denom()));
                }
                if !b.is_zero() {
                    let (ours, theirs) = (quotient(a, b), a / b);
                    prop_assert_eq!((ours.numer(), ours.denom()), (theirs.numer(), theirs.denom()));
                }
            }
        }
    }
}
