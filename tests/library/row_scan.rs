//! Does the scan by buckets find what the exact scan over sorted tokens finds?

use crate::rows::normalised;
use num_bigint::BigInt;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Rational, Softmax, Target, exact_value};
use specgap::optimum::{flow, ratio_scan};
use specgap::problem::Problem;
use specgap::row::{RowError, Rows, ScannedRate, Workspace};
use specgap::scheme::{DistinctConditioned, DraftScheme, WithReplacement, WithoutReplacement};

/// The exact optimum by the sorted scan in rationals, or its enclosure where the
/// numbers are too long.
fn check(p: &[f64], q: &[f64], scheme: impl DraftScheme + 'static, found: &ScannedRate) {
    let name = format!("{} n={} V={}", scheme.name(), scheme.drafts(), p.len());
    let target = Target::new(p).unwrap();
    let cut = found.subset.tokens(Rows {
        target: p,
        draft: q,
    });
    let exactly = exact_affordable(&target, &scheme);
    let one = Rational::from_integer(1.into());
    if exactly {
        let bound = &one + target.exact().mass(&cut) - scheme.inside_exact(&cut);
        let upper = exact_value(found.rate.upper()).unwrap();
        assert!(
            bound <= upper,
            "{name}: the subset proves {bound}, not {upper}"
        );
        let problem = Problem::new("scan", target, scheme).unwrap();
        let optimum = ratio_scan::solve(&problem).unwrap();
        let truth = optimum.rate.rational().cloned().expect("the exact scan");
        assert!(
            truth >= exact_value(found.rate.lower()).unwrap(),
            "{name}: {truth} {found:?}"
        );
        assert!(truth <= upper, "{name}: {truth} {found:?}");
    } else {
        let problem = Problem::new("scan", target, scheme).unwrap();
        let optimum = ratio_scan::solve(&problem).unwrap();
        let slack = optimum.rate.width();
        assert!(
            (optimum.rate.value() - found.rate.value()).abs() <= slack + 1e-12,
            "{name}: {optimum:?} {found:?}"
        );
    }
    assert!(found.rate.width() <= 1e-12, "{name}: {found:?}");
}

/// Sequential draws: the best prefix by the sorted scan (exact on few tokens), the
/// subset's own value, and the optimum by maximum flow.
fn check_without(p: &[f64], q: &[f64], n: usize, found: &ScannedRate) {
    let name = format!("without-replacement n={n} V={}", p.len());
    let scheme = WithoutReplacement::new(Draft::new(q).unwrap(), n);
    if scheme.set_count() > 1e4 && (n > 2 || p.len() < 1000) {
        return;
    }
    let target = Target::new(p).unwrap();
    let width = if n == 2 { 1e-12 } else { 1e-10 };
    assert!(n > 8 || found.rate.width() <= width, "{name}: {found:?}");
    let cut = found.subset.tokens(Rows {
        target: p,
        draft: q,
    });
    if scheme.exact_bits() < 2e4 {
        let one = Rational::from_integer(1.into());
        let bound = one + target.exact().mass(&cut) - scheme.inside_exact(&cut);
        // `upper` is cut at 1, so its distance says nothing about the other side.
        let (low, high) = (found.rate.value() - 1e-10, found.rate.upper());
        assert!(
            exact_value(low).unwrap() <= bound,
            "{name}: {bound} {found:?}"
        );
        assert!(
            bound <= exact_value(high).unwrap(),
            "{name}: {bound} {found:?}"
        );
    } else {
        let held: f64 = cut.iter().map(|&token| target.probabilities()[token]).sum();
        let bound = 1.0 + held - scheme.inside(&cut);
        assert!(
            (bound - found.rate.value()).abs() <= 1e-10,
            "{name}: {bound} {found:?}"
        );
    }
    let exact = p.len() <= 9 && p.len() as f64 * scheme.set_count() <= 100.0;
    let problem = Problem::new("sequential", target, scheme).unwrap();
    let best = ratio_scan::solve(&problem).unwrap().rate.value();
    assert!(
        (best - found.rate.value()).abs() <= 1e-10,
        "{name}: {best} {found:?}"
    );
    if exact {
        let optimum = flow::solve(&problem).optimum().rate;
        assert!(
            found.rate.lower() <= optimum.upper(),
            "{name}: {optimum:?} {found:?}"
        );
        assert!(
            found.rate.upper() >= optimum.lower(),
            "{name}: {optimum:?} {found:?}"
        );
    }
}

fn exact_affordable(target: &Target, scheme: &dyn DraftScheme) -> bool {
    target.vocab() as f64 * (scheme.exact_bits() + target.exact_bits() as f64) <= 2.0e6
}

fn check_all(p: &[f64], q: &[f64], counts: impl IntoIterator<Item = usize>) {
    let draft = Draft::new(q).unwrap();
    let mut scan = Workspace::new();
    let rows = Rows {
        target: p,
        draft: q,
    };
    for n in counts {
        let mut position = scan.load(rows, n.max(8)).unwrap();
        let found = position.with_replacement(n).unwrap();
        check(p, q, WithReplacement::new(draft.clone(), n), &found);
        if n <= p.len() {
            let found = position.distinct_conditioned(n).unwrap();
            check(p, q, DistinctConditioned::new(draft.clone(), n), &found);
            check_without(p, q, n, &position.without_replacement(n).unwrap());
        }
    }
}

#[test]
fn every_number_of_drafts() {
    let p = normalised(&[5.0, 1.0, 3.0, 0.0, 2.0, 1e-9, 4.0]);
    let q = normalised(&[1.0, 2.0, 3.0, 1.0, 0.0, 1e-9, 1.0]);
    check_all(&p, &q, 1..=64);
}

#[test]
fn adversarial_rows() {
    let spread: Vec<f64> = (0..12).map(|i| 10f64.powi(-25 * i)).collect();
    let tower: Vec<f64> = (0..12).map(|i| 10f64.powi(-i)).collect();
    let mut turned = tower.clone();
    turned.reverse();
    let even = vec![1.0; 12];
    let hot = |i: usize| {
        let mut row = vec![0.0; 12];
        row[i] = 1.0;
        row
    };
    let nearly = |i: usize, rest: f64| {
        let mut row = vec![rest; 12];
        row[i] = 1.0;
        row
    };
    let rows = [
        spread,
        tower,
        turned,
        even,
        hot(0),
        hot(7),
        nearly(3, 1e-15),
        nearly(3, 1e-300),
        nearly(4, 1e-40),
        vec![
            0.0, 1.0, 0.0, 1.0, 1e-300, 2.0, 0.0, 0.0, 1.0, 1e-8, 1e-16, 3.0,
        ],
    ];
    for p in &rows {
        for q in &rows {
            check_all(&normalised(p), &normalised(q), [1, 2, 3, 5, 8]);
        }
    }
    check_all(&[1.0], &[1.0], [1, 2, 64]);
    check_all(&[-0.0, 1.0], &[1.0, -0.0], [1, 2]);
}

#[test]
fn real_vocabularies() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut normal = move || {
        let radius = (-2.0 * random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.random_range(0.0..1.0)).cos()
    };
    for (vocab, width, noise, temperature) in [
        (49_152, 2.0, 0.8, 1.0),
        (49_152, 3.0, 0.01, 1.0),
        (49_152, 4.0, 1.0, 0.3),
        (49_152, 2.0, 0.0, 1.0),
        (30_000, 4.0, 1.0, 0.05),
    ] {
        let target: Vec<f32> = (0..vocab).map(|_| (width * normal()) as f32).collect();
        let draft: Vec<f32> = target
            .iter()
            .map(|&logit| logit + (noise * normal()) as f32)
            .collect();
        let softmax = Softmax { temperature };
        let (mut p, mut q) = (Vec::new(), Vec::new());
        softmax.fill(&target, &mut p).unwrap();
        softmax.fill(&draft, &mut q).unwrap();
        check_all(&p, &q, [1, 2, 3, 5, 8]);
    }
}

#[test]
fn light_tokens_beside_heavy_ones() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for (vocab, heavy, tail) in [
        (600, 0, 1.0),
        (1500, 1, 1e-12),
        (1500, 1, 1e-9),
        (1500, 4, 0.1),
        (5000, 30, 0.5),
    ] {
        let mut q: Vec<f64> = (0..vocab)
            .map(|_| tail / vocab as f64 * random.random_range(0.9..1.1))
            .collect();
        for token in 0..heavy {
            q[17 * token] = (1.0 - tail) / heavy as f64;
        }
        q[5] = 1e-300;
        let p: Vec<f64> = q
            .iter()
            .map(|x| x * random.random_range(-0.7f64..0.7).exp())
            .collect();
        check_all(&normalised(&p), &normalised(&q), [2, 5, 8, 9]);
    }
}

#[test]
fn what_cannot_be_scanned_is_refused() {
    let mut scan = Workspace::new();
    let mut refused = |target: &[f64], draft: &[f64], drafts: usize| {
        scan.load(Rows { target, draft }, drafts).unwrap_err()
    };
    assert_eq!(
        refused(&[0.5, -0.5, 1.0], &[1.0, 0.0, 0.0], 2).to_string(),
        "target: entry 1 is -0.5; probabilities must be >= 0"
    );
    assert_eq!(
        refused(&[1.0, 0.0], &[1.0, f64::NAN], 2).to_string(),
        "draft: entry 1 is NaN; probabilities must be finite"
    );
    for bad in [f64::INFINITY, 3.0, f64::NAN, 0.5] {
        let error = refused(&[1.0, 0.0], &[0.0, bad], 2);
        assert!(matches!(error, RowError::Draft(_)), "{bad}: {error}");
    }
    assert!(matches!(refused(&[], &[], 2), RowError::Target(_)));
    assert!(matches!(
        refused(&[1.0], &[0.5, 0.5], 2),
        RowError::Lengths(..)
    ));
    assert!(matches!(refused(&[1.0], &[1.0], 0), RowError::Drafts(..)));
    assert!(matches!(refused(&[1.0], &[1.0], 65), RowError::Drafts(..)));
    let rows = Rows {
        target: &[1.0],
        draft: &[1.0],
    };
    let mut position = scan.load(rows, 3).unwrap();
    assert!(position.with_replacement(4).is_err());
    assert!(position.distinct_conditioned(0).is_err());
}

/// Weights over 300 decades, with zeros and repeated values.
fn wild_row(vocab: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(
        prop_oneof![
            2 => 0.0f64..1.0,
            1 => Just(0.0),
            1 => (1u32..5).prop_map(f64::from),
            1 => (-300.0f64..0.0).prop_map(|e| 10f64.powf(e)),
            1 => (-16.0f64..0.0).prop_map(|e| 10f64.powf(e)),
        ],
        vocab,
    )
    .prop_filter("some mass", |row| row.iter().sum::<f64>() > 1e-3)
}

fn wild_rows() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (1usize..24).prop_flat_map(|vocab| (wild_row(vocab), wild_row(vocab)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// A few of the rows below, in a second.
    #[test]
    fn the_enclosure_holds_the_exact_optimum_of_a_few_rows(
        (p, q) in wild_rows(),
        n in 1usize..=6,
    ) {
        check_all(&normalised(&p), &normalised(&q), [n]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_enclosure_holds_the_exact_optimum((p, q) in wild_rows(), n in 1usize..=12) {
        check_all(&normalised(&p), &normalised(&q), [n]);
    }

    #[test]
    fn nearly_equal_rows(
        p in prop::collection::vec(0.1f64..1.0, 2..200),
        seed in any::<u64>(),
        n in 1usize..=8,
    ) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let q: Vec<f64> = p.iter().map(|x| x * random.random_range(0.99..1.01)).collect();
        check_all(&normalised(&p), &normalised(&q), [n]);
    }
}

/// p and q of so many tokens: flat, peaked, with ties, with zeros, over many decades, with a
/// token above 1/2 in either or both.
fn kind_of_row(random: &mut ChaCha8Rng, kind: usize, vocab: usize) -> [Vec<f64>; 2] {
    let mut p = Vec::new();
    let mut q = Vec::new();
    for token in 0..vocab {
        let [shared, own]: [f64; 2] = random.random();
        let (x, y) = match kind {
            0 => (1.0 + 0.1 * shared, 1.0 + 0.1 * own),
            1 => ((8.0 * shared).exp(), (8.0 * shared + own).exp()),
            2 => ((3.0 * shared).floor() + 1.0, (3.0 * own).floor() + 1.0),
            3 => ((5.0 * shared).floor(), (5.0 * own).floor()),
            4 => (10f64.powf(-30.0 * shared), 10f64.powf(-30.0 * own)),
            5 if token == 3 => (2.0 * vocab as f64, 9.0 * vocab as f64),
            5 => (shared, shared * own),
            6 if token == 1 => (1e-3, 1e6 * vocab as f64),
            6 => (own, shared + own),
            _ => ((6.0 * shared).exp(), (6.0 * own).exp()),
        };
        p.push(x);
        q.push(y);
    }
    [normalised(&p), normalised(&q)]
}

/// The sorted scan asks for Q at every prefix, by another integral or by elimination.
#[test]
fn a_few_prefixes_say_what_all_of_them_do() {
    let mut random = ChaCha8Rng::seed_from_u64(37);
    let mut scan = Workspace::new();
    for trial in 0..48 {
        let vocab = [18, 40, 120][trial / 8 % 3];
        let [p, q] = kind_of_row(&mut random, trial % 8, vocab);
        let rows = Rows {
            target: &p,
            draft: &q,
        };
        let mut position = scan.load(rows, 16).unwrap();
        for n in [2, 3, 4, 5, 8, 12, 16] {
            let found = position.without_replacement(n).unwrap();
            let scheme = WithoutReplacement::new(Draft::new(&q).unwrap(), n);
            let problem = Problem::new("all", Target::new(&p).unwrap(), scheme).unwrap();
            let all = ratio_scan::solve(&problem).unwrap().rate;
            assert!(
                all.lower() <= found.rate.upper() && found.rate.lower() <= all.upper(),
                "kind {} V={vocab} n={n}: {all:?} {found:?}",
                trial % 8
            );
            assert!(
                (all.value() - found.rate.value()).abs() <= 1e-11,
                "kind {} V={vocab} n={n}: {all:?} {found:?}",
                trial % 8
            );
            let width = if n == 2 { 1e-12 } else { 4e-11 };
            assert!(n > 8 || found.rate.width() < width, "{found:?}");
        }
    }
}

/// Bits after the point of the numbers below. An `f64` is one of them.
const FRACTION: u64 = 1600;

/// A non-negative `f64` in units of 2^-1074.
fn weight(value: f64) -> BigInt {
    let bits = value.to_bits();
    let (exponent, mantissa) = (bits >> 52, bits & ((1 << 52) - 1));
    match exponent {
        0 => BigInt::from(mantissa),
        _ => BigInt::from(mantissa | 1 << 52) << (exponent - 1),
    }
}

fn fixed(value: f64) -> BigInt {
    weight(value) << (FRACTION - 1074)
}

/// For every subset, by its bits, the sum of what all of its subsets are given.
fn over_subsets(mut given: Vec<BigInt>, vocab: usize) -> Vec<BigInt> {
    for token in 0..vocab {
        for mask in 0..given.len() {
            if mask >> token & 1 == 1 {
                let without = given[mask ^ 1 << token].clone();
                given[mask] += without;
            }
        }
    }
    given
}

/// Q of every subset under the three laws, rounded down by less than [`SLACK`] units.
fn all_insides(q: &[f64], n: usize) -> [Vec<BigInt>; 3] {
    let vocab = q.len();
    let weights: Vec<BigInt> = q.iter().map(|&x| weight(x)).collect();
    let zero = || vec![BigInt::ZERO; 1 << vocab];
    let mut singles = zero();
    for (token, weight) in weights.iter().enumerate() {
        singles[1 << token] = weight.clone();
    }
    let mass = over_subsets(singles, vocab);
    let whole = (1usize << vocab) - 1;
    let draws = n.min(q.iter().filter(|&&x| x > 0.0).count());
    let one = BigInt::from(1) << FRACTION;

    let independent = mass
        .iter()
        .map(|held| (held.pow(n as u32) << FRACTION) / mass[whole].pow(n as u32))
        .collect();

    let (mut reached, mut products) = (zero(), zero());
    (reached[0], products[0]) = (one, BigInt::from(1));
    let (mut drawn, mut distinct) = (zero(), zero());
    for mask in 0..=whole {
        let size = mask.count_ones() as usize;
        if size == draws {
            drawn[mask] = reached[mask].clone();
            distinct[mask] = products[mask].clone();
            continue;
        }
        if size > draws || reached[mask] == BigInt::ZERO && products[mask] == BigInt::ZERO {
            continue;
        }
        let left = &mass[whole] - &mass[mask];
        for token in (0..vocab).filter(|token| mask >> token & 1 == 0) {
            if weights[token] != BigInt::ZERO {
                let next = mask | 1 << token;
                let gain = &reached[mask] * &weights[token] / &left;
                reached[next] += gain;
                products[next] = &products[mask] * &weights[token];
            }
        }
    }
    let distinct = over_subsets(distinct, vocab);
    let conditioned = distinct
        .iter()
        .map(|held| (held << FRACTION) / &distinct[whole])
        .collect();
    [independent, conditioned, over_subsets(drawn, vocab)]
}

/// Every division above drops less than a unit, and no more than that of a unit lost is
/// lost again on the way to a Q; there are at most V 2^V divisions.
const SLACK: u64 = 1 << 20;

/// alpha* by trying all subsets: within a few units of 2^-1600.
fn by_all_subsets(p: &[f64], inside: &[BigInt]) -> (BigInt, BigInt) {
    let weights: Vec<BigInt> = p.iter().map(|&x| weight(x)).collect();
    let total: BigInt = weights.iter().sum();
    let one = BigInt::from(1) << FRACTION;
    let least = (0..inside.len())
        .map(|mask| {
            let held = (0..p.len()).filter(|token| mask >> token & 1 == 1);
            let held: BigInt = held.map(|token| &weights[token]).sum();
            (held << FRACTION) / &total - &inside[mask]
        })
        .min()
        .unwrap();
    let lower = &one + &least - SLACK;
    let upper = &one + least + SLACK;
    (lower.max(BigInt::ZERO), upper.min(one))
}

/// The three enclosures hold alpha*; returns them.
fn check_by_subsets(p: &[f64], q: &[f64], n: usize) -> [ScannedRate; 3] {
    let mut scan = Workspace::new();
    let rows = Rows {
        target: p,
        draft: q,
    };
    let mut position = scan.load(rows, n).unwrap();
    let found = [
        position.with_replacement(n).unwrap(),
        position.distinct_conditioned(n).unwrap(),
        position.without_replacement(n).unwrap(),
    ];
    for (found, inside) in found.iter().zip(all_insides(q, n)) {
        let (lower, upper) = by_all_subsets(p, &inside);
        assert!(
            fixed(found.rate.lower()) <= lower && upper <= fixed(found.rate.upper()),
            "n = {n}, p = {p:?}, q = {q:?}: {found:?}, not {}",
            specgap::distribution::round_nearest(&Rational::new(
                lower,
                BigInt::from(1) << FRACTION
            ))
        );
    }
    found
}

/// Rows that are meant to break an enclosure: over 300 decades and beyond, almost equal
/// ratios, ratios that rounding makes equal or swaps, next to nothing outside a prefix.
fn extreme_rows(random: &mut ChaCha8Rng, kind: usize) -> [Vec<f64>; 2] {
    let vocab = random.random_range(2..=7);
    let decades = |random: &mut ChaCha8Rng, span: f64| 10f64.powf(-span * random.random::<f64>());
    let tail = |random: &mut ChaCha8Rng| f64::from_bits(random.random_range(1..1 << 54));
    let mut p: Vec<f64> = (0..vocab).map(|_| decades(random, 2.0)).collect();
    let mut q = p.clone();
    for token in 0..vocab {
        match kind {
            0 => {
                p[token] = decades(random, 300.0);
                q[token] = decades(random, 300.0);
            }
            1 => {
                p[token] = 10f64.powi(-random.random_range(0..20));
                q[token] = 10f64.powi(-random.random_range(0..20));
            }
            2 => q[token] *= 1.0 + decades(random, 16.0),
            3 => q[token] *= 1.0 + 0.06 * random.random::<f64>(),
            4 => q[token] = decades(random, 14.0),
            5 => q[token] = if token == 0 { 1.0 } else { tail(random) },
            6 => {
                q[token] = if token < 2 {
                    1.0
                } else {
                    5e-324 * f64::from(random.random_range(1..6))
                }
            }
            _ => {
                q[token] = if token < 3 {
                    decades(random, 300.0)
                } else {
                    tail(random)
                }
            }
        }
    }
    if random.random_range(0..4) == 0 {
        p[random.random_range(0..vocab)] = 0.0;
        q[random.random_range(0..vocab)] = 0.0;
    }
    if random.random_range(0..4) == 0 {
        let twin = random.random_range(0..vocab);
        (p[0], q[0]) = (p[twin], q[twin]);
    }
    p[vocab - 1] = p[vocab - 1].max(decades(random, 3.0));
    let heavy = random.random_range(0..vocab.min(2));
    q[heavy] = q[heavy].max(0.1);
    [normalised(&p), normalised(&q)]
}

/// Enclosures of so many pairs of extreme rows against the best of all subsets.
fn extreme_trials(seed: u64, trials: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut worst = [0.0f64; 3];
    for trial in 0..trials {
        let [p, q] = extreme_rows(&mut random, trial % 8);
        let n = random.random_range(1..=6);
        let found = check_by_subsets(&p, &q, n);
        if trial % 8 < 5 {
            for (worst, found) in worst.iter_mut().zip(&found) {
                *worst = worst.max(found.rate.width());
            }
        }
    }
    // Where nothing is subnormal, they are narrow too.
    assert!(worst.iter().all(|&width| width < 1e-11), "{worst:?}");
}

#[test]
fn enclosures_hold_the_best_of_all_subsets_on_extreme_rows() {
    extreme_trials(29, 12_000);
}

/// The same in a second.
#[test]
fn enclosures_hold_the_best_of_all_subsets_on_some_extreme_rows() {
    extreme_trials(30, 160);
}

/// Tokens 1 and 2 have ratios 5/3 and 5/2 of the least positive number, and rounded ones of
/// 2: sorted by id, the wrong one comes first. H = {0, 2} has P = 0.4 and Q = 1/2.
#[test]
fn ratios_that_rounding_makes_equal_are_not_trusted() {
    let least = f64::from_bits(1);
    let found = check_by_subsets(&[0.0, 0.6, 0.4], &[1.0, least, least], 2);
    assert!(found[1].rate.lower() <= 0.9 && found[2].rate.lower() <= 0.9);
    // With replacement they do not matter, and the enclosure knows.
    assert!(found[0].rate.width() < 1e-13);
    // Nor do they cost anything where the draws are others.
    let (p, q) = ([0.3, 0.1, 0.6], [0.5, 0.5, 1e-303]);
    for found in check_by_subsets(&p, &q, 2) {
        assert!(found.rate.width() < 1e-12, "{found:?}");
    }
}

/// Without the last token, what lies outside would ring beyond the range of f64, and the
/// second and third drafts ring later than it takes to be sure that they do before.
#[test]
fn prefixes_that_the_race_passes_over_count() {
    let p = [0.0, 1e-5, 2e-5, 4e-4, 1.0 - 4.3e-4];
    let q = [1.0, 1e-288, 1e-288, 4e-305, 0.0];
    let [_, _, found] = check_by_subsets(&p, &q, 3);
    // alpha* = P({1, 2}); the best prefix with a known Q is all that is drafted.
    assert!((found.rate.lower() - 3e-5).abs() < 1e-11, "{found:?}");
    assert!((found.rate.upper() - 4.3e-4).abs() < 1e-11, "{found:?}");
    // The same at the end of a bucket: tokens 1 and 2 have q/p near 1.
    let p = [0.0, 1e-288, 2e-288, 4e-4, 1.0 - 4e-4];
    let [_, _, found] = check_by_subsets(&p, &q, 3);
    assert!(found.rate.lower() < 1e-11, "{found:?}");
    // With three tokens that ring in time it is known: Q = 1.
    let (p, q) = (
        [0.0, 0.0, 1e-5, 4e-4, 1.0 - 4.1e-4],
        [0.5, 0.25, 0.25, 4e-305, 0.0],
    );
    let [_, _, found] = check_by_subsets(&p, &q, 3);
    assert!(
        (found.rate.value() - 1e-5).abs() < 1e-11 && found.rate.width() < 1e-11,
        "{found:?}"
    );
    // And with fewer tokens than draws: Q = 0.
    let (p, q) = ([1.0 - 2e-6, 1e-6, 1e-6], [1.0, 1e-306, 1e-306]);
    let [_, _, found] = check_by_subsets(&p, &q, 3);
    assert!(found.rate.width() < 1e-11, "{found:?}");
}

/// The odds of the first token, 1 to 4e-310, are beyond the range of f64.
#[test]
fn odds_beyond_the_range_are_no_special_case() {
    let [_, _, found] = check_by_subsets(&[0.0, 0.3, 0.7], &[1.0, 1e-310, 3e-310], 2);
    assert!((found.rate.upper() - 0.95).abs() < 1e-11, "{found:?}");
}

/// e_0..e_n of every prefix, in the order given.
fn symmetric_polynomials(weights: &[BigInt], n: usize) -> Vec<BigInt> {
    let mut sums = vec![BigInt::ZERO; n + 1];
    sums[0] = BigInt::from(1);
    let mut prefixes = Vec::new();
    for weight in weights {
        for degree in (1..=n).rev() {
            let more = &sums[degree - 1] * weight;
            sums[degree] += more;
        }
        prefixes.push(sums[n].clone());
    }
    prefixes
}

/// alpha* of distinct draws by the best prefix, in integers: within a few units of 2^-1600.
fn distinct_in_integers(p: &[f64], q: &[f64], n: usize) -> (BigInt, BigInt) {
    let all: Vec<(BigInt, BigInt)> = p
        .iter()
        .zip(q)
        .map(|(&p, &q)| (weight(p), weight(q)))
        .collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| (&all[b].1 * &all[a].0).cmp(&(&all[a].1 * &all[b].0)));
    let drafted: Vec<BigInt> = order.iter().map(|&token| all[token].1.clone()).collect();
    let draws = n.min(drafted.iter().filter(|&q| *q != BigInt::ZERO).count());
    let insides = symmetric_polynomials(&drafted, draws);
    let whole = insides[insides.len() - 1].clone();
    let total: BigInt = all.iter().map(|(p, _)| p).sum();
    let one = BigInt::from(1) << FRACTION;
    let (mut held, mut least) = (BigInt::ZERO, BigInt::ZERO);
    for (&token, inside) in order.iter().zip(&insides) {
        held += &all[token].0;
        let difference = (&held << FRACTION) / &total - (inside << FRACTION) / &whole;
        least = least.min(difference);
    }
    let upper: BigInt = &one + &least + 2;
    (&one + &least - 2, upper.min(one))
}

#[test]
fn many_distinct_draws_from_extreme_rows() {
    let mut random = ChaCha8Rng::seed_from_u64(31);
    let vocab = 100;
    let with_one = |rest: f64| {
        let mut row = vec![rest; vocab];
        row[40] = 1.0;
        row
    };
    let decades = |each: f64| -> Vec<f64> {
        (0..vocab)
            .map(|token| 10f64.powf(-each * token as f64))
            .collect()
    };
    let drafts = [
        vec![1.0; vocab],
        with_one(1e-3),
        with_one(1e-17),
        with_one(1e-300),
        with_one(5e-324),
        decades(0.1),
        decades(1.0),
        decades(3.0),
        decades(3.2),
    ];
    let mut scan = Workspace::new();
    for q in &drafts {
        let q = normalised(q);
        for spread in [1e-12, 0.01, 1.0, 30.0] {
            let tilted: Vec<f64> = q
                .iter()
                .map(|q| q * (spread * random.random_range(-1.0f64..1.0)).exp())
                .collect();
            let mut turned = tilted.clone();
            turned.reverse();
            for p in [tilted, turned] {
                let p = normalised(&p);
                let (target, draft) = (&p[..], &q[..]);
                for n in [2, 8, 33, 64] {
                    let mut position = scan.load(Rows { target, draft }, n).unwrap();
                    let found = position.distinct_conditioned(n).unwrap();
                    let (lower, upper) = distinct_in_integers(&p, &q, n);
                    assert!(
                        fixed(found.rate.lower()) <= lower && upper <= fixed(found.rate.upper()),
                        "n = {n}, p = {p:?}, q = {q:?}: {found:?}"
                    );
                    // The order of ratios below 2^-1000 is not trusted.
                    if q.iter().all(|&q| q > 1e-301) {
                        assert!(found.rate.width() < 1e-11, "n = {n}, {found:?}");
                    }
                }
            }
        }
    }
}

/// A bucket of light tokens on which Q rises from 0 to 1, and whose mass comes out some
/// 1e-12 too large when it is summed token by token. P - Q is least after the first half of
/// them, and looks as if the line of the least slope could not fall that far.
#[test]
fn light_masses_that_round_one_way_pass_nothing_over() {
    let unit = f64::EPSILON / 2.0;
    let edge = 1.125 * 2f64.powi(-39);
    let light = 63_983;
    let mut q = vec![edge * (1.0 - 10_000.0 * unit) / light as f64; light + 1];
    q[0] = 1.0;
    let dip = 9900.0 * unit;
    let p: Vec<f64> = (0..=light)
        .map(|token| match token {
            0 => 0.0,
            _ if token <= light / 2 => (1.0 - dip) / light as f64,
            _ => (1.0 + dip) / light as f64,
        })
        .collect();
    let rows = Rows {
        target: &p,
        draft: &q,
    };
    let mut scan = Workspace::new();
    let mut position = scan.load(rows, 2).unwrap();
    let found = position.distinct_conditioned(2).unwrap();
    let (lower, upper) = distinct_in_integers(&p, &q, 2);
    assert!(fixed(found.rate.lower()) <= lower, "{found:?}");
    assert!(upper <= fixed(found.rate.upper()), "{found:?}");
    assert!(upper < fixed(1.0 - 2000.0 * unit));
}
