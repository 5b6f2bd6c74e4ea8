//! Enclosures of rrs-wo against exact integers, on rows that are hard on `f64`.

use super::{RrsWo, RrsWoSettings};
use crate::problem::Problem;
use crate::scheme::WithoutReplacement;
use crate::scheme::tests::normalised;
use crate::verifier::Verifier;
use num_bigint::{BigInt, BigUint};
use num_traits::Zero;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Rational, Target, exact_value, round_nearest};
use specgap_number::known::{Kind, Known};
use specgap_row::{Rows, Workspace};

/// Probabilities as multiples of 2^-256. Everything before a division is exact, and of
/// these there are fewer than [`DIVISIONS`], rounded down.
const UNIT: u32 = 256;
const DIVISIONS: u32 = 4096;

/// P(the next `draws` drafts are all rejected), from the rule's definition: the residual
/// as a row of integers up to a factor, and q without the tokens of `gone`.
fn all_rejected(residual: &[BigUint], draft: &[BigUint], gone: u32, draws: usize) -> BigUint {
    let left = |token: usize| gone >> token & 1 == 0;
    let others = (0..draft.len()).filter(|&token| left(token));
    let rest: BigUint = others.map(|token| &draft[token]).sum();
    // The tuple ends with the support.
    if draws == 0 || rest.is_zero() {
        return BigUint::from(1u32) << UNIT;
    }
    let mass: BigUint = residual.iter().sum();
    if mass.is_zero() {
        return BigUint::zero();
    }
    let mut wanted = vec![BigUint::zero(); draft.len()];
    let mut refused = vec![BigUint::zero(); draft.len()];
    for token in 0..draft.len() {
        let has = &residual[token] * &rest;
        let drawn = left(token).then(|| &mass * &draft[token]);
        let offered = drawn.unwrap_or_default();
        if has > offered {
            wanted[token] = has - offered;
        } else {
            refused[token] = offered - has;
        }
    }
    let sum = if draws == 1 {
        wanted.iter().sum::<BigUint>() << UNIT
    } else {
        let some = (0..draft.len()).filter(|&token| !refused[token].is_zero());
        let each = some.map(|token| {
            let after = all_rejected(&wanted, draft, gone | 1 << token, draws - 1);
            &refused[token] * after
        });
        each.sum()
    };
    sum / (mass * rest)
}

fn problem(target: &[f64], draft: &[f64], drafts: usize) -> Option<Problem> {
    let scheme = WithoutReplacement::new(Draft::new(draft).ok()?, drafts);
    Problem::new("row", Target::new(target).ok()?, scheme).ok()
}

/// The acceptance rate in units of 2^-256, at most [`DIVISIONS`] above its value.
fn truth(problem: &Problem) -> BigInt {
    let draft = &problem.scheme().draft().unwrap().exact().weights;
    let target = &problem.target().exact().weights;
    let rejected = all_rejected(target, draft, 0, problem.drafts());
    (BigInt::from(1) << UNIT) - BigInt::from(rejected)
}

/// Tells whether [lower, upper] holds a rate.
fn holds(lower: f64, upper: f64, truth: &BigInt) -> bool {
    let scaled = |bound: f64| {
        let bound = exact_value(bound).unwrap();
        (bound.numer() << UNIT) / bound.denom()
    };
    scaled(lower) <= *truth && scaled(upper) + BigInt::from(DIVISIONS) >= *truth
}

/// p and q of a few tokens that lie many decades apart, with zeros, ties, near ties, and
/// p next to a multiple of q.
fn extreme_rows(rng: &mut ChaCha8Rng) -> (Vec<f64>, Vec<f64>) {
    let vocab = rng.random_range(2..=6usize);
    let span = [3, 9, 13, 18, 24, 40, 120, 300, 320][rng.random_range(0..9usize)];
    let round = rng.random_bool(0.4);
    let entry = |rng: &mut ChaCha8Rng| {
        let decade = 10f64.powi(-rng.random_range(0..=span));
        decade
            * if round {
                1.0
            } else {
                rng.random_range(0.5..5.0)
            }
    };
    let mut draft: Vec<f64> = (0..vocab).map(|_| entry(rng)).collect();
    let mut target: Vec<f64> = (0..vocab).map(|_| entry(rng)).collect();
    for token in 1..vocab {
        let before = rng.random_range(0..token);
        match rng.random_range(0..12) {
            0 => draft[token] = draft[before],
            1 => draft[token] = draft[before] * (1.0 + 1e-15 * rng.random_range(0.0..8.0)),
            2 => draft[token] = draft[before] * (1.0 - 1e-9 * rng.random::<f64>()),
            3 => draft[token] = 0.0,
            _ => {}
        }
    }
    let scale = 10f64.powi(rng.random_range(-18..=18));
    for token in 0..vocab {
        match rng.random_range(0..14) {
            0 => target[token] = draft[token] * scale,
            1 => target[token] = draft[token] * scale * (1.0 + 1e-14 * rng.random::<f64>()),
            2 => target[token] = 0.0,
            3 => target[token] = 1.0,
            _ => {}
        }
    }
    let (heavy, wanted) = (rng.random_range(0..vocab), rng.random_range(0..vocab));
    draft[heavy] = 1.0;
    target[wanted] = target[wanted].max(1e-3);
    (normalised(&target), normalised(&draft))
}

/// How many enclosures were looked at, how many were wider than was asked, and how many
/// rates were sampled instead.
#[derive(Debug, Default)]
struct Hunted {
    enclosures: usize,
    wide: usize,
    sampled: usize,
}

/// Every way to an enclosure, on `rows` random pairs.
fn hunt(rows: usize, seed: u64) -> Hunted {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut workspace = Workspace::new();
    let mut hunted = Hunted::default();
    for trial in 0..rows {
        let (target, draft) = extreme_rows(&mut rng);
        let drafts = rng.random_range(1..=4usize.min(target.len()));
        let tried = RrsWoSettings {
            width: [1e-2, 1e-6, 1e-9, 1e-13][trial % 4],
            work_limit: [3, 12, 60, 1_000_000][trial / 4 % 4],
            ..RrsWoSettings::default()
        };
        let Some(problem) = problem(&target, &draft, drafts) else {
            continue;
        };
        let truth = truth(&problem);
        let rule = RrsWo::new(&problem).unwrap();
        let mut check = |way: &str, rate: &Known, width: f64| {
            if rate.kind() == Kind::MonteCarlo {
                hunted.sampled += 1;
                return;
            }
            let (lower, upper) = (rate.lower(), rate.upper());
            assert!(
                holds(lower, upper, &truth),
                "trial {trial}, {way}: [{lower:?}, {upper:?}] misses {}\np = {target:?}\nq = \
                 {draft:?}\nn = {drafts}, {tried:?}",
                exact_value(2f64.powi(-200)).map_or(f64::NAN, |unit| {
                    round_nearest(&(unit * Rational::from(&truth >> 56u32)))
                }),
            );
            hunted.enclosures += 1;
            hunted.wide += usize::from(upper - lower > width);
        };
        let settings = RrsWoSettings::default();
        check("acceptance", &rule.acceptance().membership, settings.width);
        let (lower, upper) = rule.enclosure(&tried);
        check("enclosure", &Known::rate(lower, lower, upper), 1.0);
        let mut row = workspace.load(Rows::new(&target, &draft), drafts).unwrap();
        let rate = row.accepted_in_turn(drafts, &settings);
        check("row", &rate, settings.width);
    }
    hunted
}

#[test]
fn enclosures_hold_the_truth_on_extreme_rows() {
    for seed in 0..4 {
        let hunted = hunt(1_500, seed);
        assert!(hunted.enclosures >= 4_000, "{hunted:?}");
        assert_eq!((hunted.wide, hunted.sampled), (0, 0), "{hunted:?}");
    }
}

/// `SPECGAP_HUNT=1000000 cargo test --release --lib rrs_wo -- --ignored`, some ten
/// minutes; `SPECGAP_HUNT_SEED` for another million.
#[test]
#[ignore = "a hunt of minutes"]
fn hunt_for_a_wrong_enclosure() {
    let number = |name: &str, otherwise: u64| {
        let text = std::env::var(name).ok();
        text.map_or(otherwise, |text| text.parse().unwrap())
    };
    let rows = number("SPECGAP_HUNT", 100_000);
    let hunted = hunt(rows as usize, number("SPECGAP_HUNT_SEED", 1_000));
    println!("{rows} rows: {hunted:?}");
}

/// 10^-x, divided by their sum.
fn decades(exponents: &[i32]) -> Vec<f64> {
    let row = exponents.iter().map(|&x| 10f64.powi(-x));
    normalised(&row.collect::<Vec<f64>>())
}

#[test]
fn what_a_heavy_token_leaves_is_not_lost_in_its_rounding() {
    // Token 4 is rejected first, and 1e-11 of q is left: the others' weights are 1e11
    // times sums that it is not to be subtracted from.
    let (target, draft) = (decades(&[0, 11, 11, 16, 6]), decades(&[11, 18, 18, 16, 0]));
    let problem = problem(&target, &draft, 3).unwrap();
    let truth = truth(&problem);
    let rule = RrsWo::new(&problem).unwrap();
    for width in [1e-2, 1e-6, 1e-12] {
        let (lower, upper) = rule.enclosure(&RrsWoSettings {
            width,
            ..RrsWoSettings::default()
        });
        assert!(holds(lower, upper, &truth), "[{lower:?}, {upper:?}]");
        assert!(upper - lower <= width.max(5e-12), "[{lower:?}, {upper:?}]");
    }
    let exact = rule.acceptance().membership;
    assert!((1.0 - exact.value() - 4e-12).abs() < 2e-12, "{exact:?}");
}

#[test]
fn denormal_rests_are_summed_without_their_reciprocal() {
    let target = [1.0 / 7.0; 7];
    let draft = [5e-324, 1.0, 2.2e-308, 1e-310, 2.2e-308, 1e-310, 0.0];
    let case = problem(&target, &draft, 4).unwrap();
    let rate = RrsWo::new(&case).unwrap().acceptance().membership;
    assert!(rate.width() < 1e-10, "{rate:?}");
    assert!(holds(rate.lower(), rate.upper(), &truth(&case)), "{rate:?}");
    // Dividing by the sum would round 1e-322 to one of 20 numbers.
    let sum = 1.0 + 9e-7;
    let draft = [sum, 1e-322, 3e-322, 7e-322, 0.0];
    let case = problem(&[0.25, 0.25, 0.25, 0.25, 0.0], &draft, 3).unwrap();
    let rate = RrsWo::new(&case).unwrap().acceptance().membership;
    assert!(rate.width() < 1e-10, "{rate:?}");
    assert!(holds(rate.lower(), rate.upper(), &truth(&case)), "{rate:?}");
}

/// Groups stay undivided where the work ends early; bounds have to hold all the same.
#[test]
fn undivided_groups_of_nearly_equal_tokens_are_bounded() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut widest: f64 = 0.0;
    for trial in 0..400 {
        let vocab = rng.random_range(4..=7usize);
        let spread = [0.0, 0.02, 0.3, 2.0][trial % 4];
        let mut row = |spread: f64| {
            let row = (0..vocab).map(|_| (spread * rng.random_range(-1.0..1.0f64)).exp());
            normalised(&row.collect::<Vec<f64>>())
        };
        let (target, draft) = (row(1.5), row(spread));
        let drafts = 3 + trial / 4 % 2;
        let problem = problem(&target, &draft, drafts).unwrap();
        let truth = truth(&problem);
        let rule = RrsWo::new(&problem).unwrap();
        for work_limit in [1, 2, 4, 6, 9, 13, 20, 40, 80, 200] {
            let (lower, upper) = rule.enclosure(&RrsWoSettings {
                work_limit,
                width: 1e-9,
                ..RrsWoSettings::default()
            });
            widest = widest.max(upper - lower);
            assert!(
                holds(lower, upper, &truth),
                "{trial}, {work_limit}: [{lower:?}, {upper:?}]\n{target:?}\n{draft:?} {drafts}"
            );
        }
    }
    assert!(widest > 1e-3, "nothing was left undivided: {widest}");
}
