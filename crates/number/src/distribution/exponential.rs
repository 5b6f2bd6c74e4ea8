//! An exponential that the compiler can vectorise.

/// Arguments below this give 0 from [`exp_nonpositive`]: an e^-690 = 2e-300 stays
/// a normal number when it is divided by a sum over any vocabulary.
pub(super) const LOWEST: f64 = -690.0;

/// 1/log 2; log 2 in two words, the first with 21 trailing zeros, so that its
/// product with an integer below 2^21 is exact.
const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// ln 2 but for its last bits: its product with an integer below 2^21 is exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// What [`LN_2_HIGH`] lacks of ln 2.
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 1.5 * 2^52: adding it rounds to an integer, which then stands in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// e^x for x <= 0; 0 below `LOWEST`.
///
/// x = k log 2 + r with |r| <= 0.3466, and e^r by its Taylor polynomial of degree
/// 13. The remainder is below 0.3466^14/14! = 4.2e-18 relative; Horner's scheme
/// in that range adds at most 1.6 units of 2^-53, and r carries at most
/// 2^-53 * 0.35 + 2^-63. In all the relative error stays below 2^-52.
///
/// No branch and no table: a loop over it runs in vector registers.
#[inline(always)]
pub fn exp_nonpositive(x: f64) -> f64 {
    // Not f64::max, whose care for NaN costs a comparison.
    let bounded = if x > LOWEST { x } else { LOWEST };
    let (power, less_one) = exp_parts(bounded);
    let value = (1.0 + less_one) * power;
    if x >= LOWEST { value } else { 0.0 }
}

/// e^-y and 1 - e^-y for y >= 0, each within 10 units of 2^-53 of itself (1 and 0 of e^-y
/// beyond -`LOWEST` aside).
///
/// Up to y = 0.3465, where the power of two is 1, 1 - e^-y is the Taylor polynomial less its
/// first term. From there on it is above 0.29, and a difference from 1 loses little.
#[inline(always)]
pub fn wait_and_ring(y: f64) -> (f64, f64) {
    let bounded = if -y > LOWEST { -y } else { LOWEST };
    let (power, less_one) = exp_parts(bounded);
    let waits = (1.0 + less_one) * power;
    let waits = if -y >= LOWEST { waits } else { 0.0 };
    let rings = if power == 1.0 { -less_one } else { 1.0 - waits };
    (waits, rings)
}

/// e^x as a power of two times one more than the second number, which is e^r - 1.
#[inline(always)]
fn exp_parts(bounded: f64) -> (f64, f64) {
    let shifted = bounded * LOG2_E + ROUNDER;
    let whole = shifted - ROUNDER;
    let r = (bounded - whole * LN_2_HIGH) - whole * LN_2_LOW;
    let r2 = r * r;
    let r4 = r2 * r2;
    // Terms of degree 2 to 13 by Estrin's scheme, all small beside 1 + r.
    let a = 1.0 / 2.0 + r * (1.0 / 6.0);
    let b = 1.0 / 24.0 + r * (1.0 / 120.0);
    let c = 1.0 / 720.0 + r * (1.0 / 5_040.0);
    let d = 1.0 / 40_320.0 + r * (1.0 / 362_880.0);
    let e = 1.0 / 3_628_800.0 + r * (1.0 / 39_916_800.0);
    let f = 1.0 / 479_001_600.0 + r * (1.0 / 6_227_020_800.0);
    let low = a + r2 * b;
    let middle = c + r2 * d;
    let high = e + r2 * f;
    let tail = r2 * (low + r4 * (middle + r4 * high));
    // 2^whole: the integer sits in the low bits of `shifted`.
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (scale, r + tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_and_specials() {
        assert_eq!(exp_nonpositive(0.0), 1.0);
        assert_eq!(exp_nonpositive(-0.0), 1.0);
        assert_eq!(exp_nonpositive(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp_nonpositive(-1e300), 0.0);
        assert!(exp_nonpositive(LOWEST) > f64::MIN_POSITIVE);
        assert_eq!(wait_and_ring(0.0), (1.0, 0.0));
        assert_eq!(wait_and_ring(5e-324), (1.0, 5e-324));
        assert_eq!(wait_and_ring(1e306), (0.0, 1.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        // The library's exponential is itself good to one unit in the last place.
        #[test]
        fn agrees_with_the_library(x in LOWEST..0.0f64) {
            let (ours, theirs) = (exp_nonpositive(x), x.exp());
            prop_assert!((ours - theirs).abs() <= 2.0 * f64::EPSILON * theirs, "{x}: {ours} {theirs}");
        }

        #[test]
        fn waiting_and_ringing_keep_their_digits(exponent in -700.0..7.0f64) {
            let y = exponent.exp();
            let (waits, rings) = wait_and_ring(y);
            let (waits_true, rings_true) = ((-y).exp(), -(-y).exp_m1());
            let bound = 5.0 * f64::EPSILON;
            prop_assert!((rings - rings_true).abs() <= bound * rings_true, "{y}: {rings}");
            prop_assert!(
                (waits - waits_true).abs() <= bound * waits_true || y > 690.0 && waits == 0.0,
                "{y}: {waits}"
            );
        }
    }
}
