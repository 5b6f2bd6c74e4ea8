//! Each width of an enclosure, and each refusal by its words.

use super::*;
use crate::optimum::iid;
use crate::scheme::SetFamily;
use specgap_number::distribution::parse_rational;

const EPSILON: f64 = f64::EPSILON;

const GRID: Rounding = Rounding::Grid {
    feasible_share: 1.0,
    absolute_error: 1e-15,
};

/// Masses in units of 1/total.
fn plan(sets: &[&[u32]], masses: &[u128], total: BigUint, rounding: Rounding) -> TransportPlan {
    let mut family = SetFamily::new();
    for set in sets {
        family.push(set.iter().copied());
    }
    TransportPlan {
        sets: family,
        accepted: PlanMasses::Native(masses.to_vec()),
        total,
        rounding,
    }
}

fn power_of_two(exponent: u32) -> BigUint {
    BigUint::one() << exponent
}

/// What is said of an upper bound: the scan's own error, 5/4 epsilon of each p, and the
/// rounding of two sums of numbers below 2.
#[test]
fn an_upper_bound_is_as_wide_as_its_errors() {
    for drafts in [1, 2, 5] {
        let problem = iid(&[0.5, 0.25, 0.25], &[0.25, 0.5, 0.25], drafts);
        let scan = problem.scheme().prefix_scan(&[0, 2]);
        let (value, upper) = upper_bound_float(&problem, &[0, 2]).unwrap().into_inner();
        let expected = 0.75f64 - 0.5f64.powi(drafts as i32) + 1.0;
        assert!((value - expected).abs() < 1e-15, "{drafts}: {value}");
        let exact = upper_bound(&problem, &[0, 2]).unwrap().into_inner();
        assert_eq!(round_up(&exact), expected);
        let width = upper - value - scan.absolute_error;
        assert!(
            (width - 3.25 * EPSILON).abs() <= 1.1 * EPSILON,
            "{drafts}: {width}"
        );
        // Below 1 sums are finer.
        let problem = iid(&[0.5, 0.25, 0.25], &[0.25, 0.5, 0.25], 1);
        let scan = problem.scheme().prefix_scan(&[1]);
        let (value, upper) = upper_bound_float(&problem, &[1]).unwrap().into_inner();
        let width = upper - value - scan.absolute_error;
        assert!(
            value == 0.75 && (width - 3.25 * EPSILON).abs() <= 0.6 * EPSILON,
            "{width}"
        );
        // Nothing in the set: nothing is known but that rates are at most 1.
        let (value, upper) = upper_bound_float(&problem, &[]).unwrap().into_inner();
        assert!(value == 1.0 && upper > 1.0 && upper < 1.0 + 1e-14);
        assert_eq!(
            upper_bound(&problem, &[]).unwrap().into_inner(),
            Rational::one()
        );
    }
}

#[test]
fn subsets_are_ascending_and_of_the_vocabulary() {
    let problem = iid(&[0.5, 0.25, 0.25], &[0.25, 0.5, 0.25], 2);
    for (subset, words) in [
        (&[3][..], "subset: token 3 is not in 0..3"),
        (&[0, 7], "subset: token 7 is not in 0..3"),
        (
            &[1, 0],
            "subset: token 0 follows 1; tokens must be strictly ascending",
        ),
        (
            &[0, 2, 2],
            "subset: token 2 follows 2; tokens must be strictly ascending",
        ),
    ] {
        assert_eq!(
            upper_bound(&problem, subset).unwrap_err().to_string(),
            words
        );
        assert_eq!(
            upper_bound_float(&problem, subset).unwrap_err().to_string(),
            words
        );
        for rounding in [Rounding::None, GRID] {
            let empty = plan(&[], &[], BigUint::one(), rounding);
            assert_eq!(
                optimum(&problem, &empty, subset).unwrap_err().to_string(),
                words
            );
        }
    }
    assert!(upper_bound(&problem, &[0, 1, 2]).is_ok());
}

/// A set that is filled to its probability is scaled by what the law may be off: the scheme's
/// own bound, four roundings, and where tuples are added up eight a draft. Then eight for the
/// plan's sum.
#[test]
fn a_rounded_plan_is_scaled_by_what_the_law_may_be_off() {
    for (drafts, probability, by_tuples) in [(1, 0.75, 8.0), (2, 0.5625, 16.0), (60, 0.0, 0.0)] {
        let problem = iid(&[0.9, 0.1], &[0.75, 0.25], drafts);
        let probability = if by_tuples > 0.0 {
            probability
        } else {
            problem.scheme().set_probability(&[0])
        };
        let rounding = problem.scheme().set_probability_error() + (4.0 + by_tuples) * EPSILON;
        // To the last of 2^-100 of it, and as exactly as f64 has it.
        let total = power_of_two(100);
        let mass = (probability * 2f64.powi(100)) as u128;
        let filled = plan(&[&[0]], &[mass], total, GRID);
        let lower = optimum(&problem, &filled, &[]).unwrap().get().lower();
        let lost = 1.0 - lower / probability;
        let expected = rounding + 8.0 * EPSILON;
        assert!(
            (lost - expected).abs() <= 1.5 * EPSILON,
            "{drafts}: {lost} {expected}"
        );
    }
}

/// A token that is filled to p is scaled by 5/4 + 4 epsilon, and the sum by 8.
#[test]
fn a_rounded_plan_is_scaled_by_what_the_target_may_be_off() {
    let problem = iid(&[0.75, 0.25], &[0.875, 0.125], 1);
    let filled = plan(&[&[0]], &[3], 4u32.into(), GRID);
    let lower = optimum(&problem, &filled, &[]).unwrap().get().lower();
    let within = 0.75 * (1.0 - 1.25 * EPSILON - 4.0 * EPSILON);
    let expected = 0.75 * (within / 0.75) * (1.0 - 8.0 * EPSILON);
    assert!(
        (lower - expected).abs() <= 0.25 * EPSILON,
        "{lower} {expected}"
    );
    // What is not filled is not scaled but for the sum.
    let half = plan(&[&[0]], &[2], 4u32.into(), GRID);
    let lower = optimum(&problem, &half, &[]).unwrap().get().lower();
    assert_eq!(lower, 0.5 * (1.0 - 8.0 * EPSILON));
}

/// Where masses leave the range of `f64`, 1e-290 is allowed for each set and each token.
#[test]
fn a_rounded_plan_allows_for_underflow() {
    let tiny = iid(&[0.5, 0.5], &[1.0, 1e-287], 1);
    let unit = BigUint::from(10u32).pow(288);
    let found = rounded_plan(&tiny, &plan(&[&[1]], &[1], unit, GRID)).unwrap();
    let lost = 1e-288 - found;
    assert!((lost / 3e-290 - 1.0).abs() < 1e-6, "{lost:e}");
    // In f64 the second token's square is 0, and the plan takes 1e-288 of it: no rounding of
    // such a size is refused, and what is taken from the first token counts in full.
    let gone = iid(&[0.5, 0.5], &[1.0, 1e-200], 2);
    assert_eq!(gone.scheme().set_probability(&[1]), 0.0);
    let mut both = plan(&[&[0], &[1]], &[0, 0], BigUint::from(10u32).pow(300), GRID);
    let quarter = BigUint::from(10u32).pow(300) / 4u32;
    both.accepted = PlanMasses::Big(vec![quarter.clone(), BigUint::from(10u32).pow(9)]);
    let found = rounded_plan(&gone, &both).unwrap();
    assert!(
        (found - 0.25 * (1.0 - 8.0 * EPSILON)).abs() < 0.1 * EPSILON,
        "{found}"
    );
    // A thousand times as much is.
    both.accepted = PlanMasses::Big(vec![quarter, BigUint::from(10u32).pow(12)]);
    assert!(matches!(
        rounded_plan(&gone, &both),
        Err(CertificateError::SetOverdrawn(set, _, _)) if set == [1]
    ));
}

/// What is above a capacity by as little as underflow is no rounding of the plan, however
/// large its share; and a set that is not of the law has nothing to give.
#[test]
fn a_rounded_plan_is_refused_for_more_than_underflow() {
    let tiny = iid(&[0.5, 0.5], &[1.0, 1e-287], 1);
    let unit = BigUint::from(10u32).pow(295);
    let with = |mass: u128| rounded_plan(&tiny, &plan(&[&[1]], &[mass], unit.clone(), GRID));
    // 1e-287, and 5e-291 more; then 5e-290.
    let found = with(100_050_000).unwrap();
    assert!((found - 1e-287).abs() < 4e-290, "{found:e}");
    assert!(matches!(
        with(100_500_000),
        Err(CertificateError::SetOverdrawn(..))
    ));
    let problem = iid(&[0.5, 0.5], &[0.75, 0.25], 1);
    let never = plan(&[&[0, 1]], &[1, 0], 4u32.into(), GRID);
    let message = optimum(&problem, &never, &[]).unwrap_err().to_string();
    assert_eq!(
        message,
        "plan: set [0, 1] is used for 0.25; its probability is 0"
    );
}

/// Up to a share of 1e-9 above what there is is rounding.
#[test]
fn what_is_scaled_and_what_is_refused() {
    let problem = iid(&[0.5, 0.5], &[0.75, 0.25], 1);
    let total = BigUint::from(10u32).pow(12);
    let billion = 250_000_000_000u128;
    let with = |more: u128| {
        let filled = plan(&[&[1]], &[billion + more], total.clone(), GRID);
        optimum(&problem, &filled, &[])
    };
    let scaled = with(200).unwrap();
    assert!((scaled.get().lower() - 0.25).abs() < 1e-14);
    let message = with(300).unwrap_err().to_string();
    assert!(
        message.starts_with("plan: set [1] is used for 0.2500000003") && message.ends_with("0.25"),
        "{message}"
    );
    let token = plan(&[&[0]], &[2 * (billion + 300)], total, GRID);
    let message = optimum(&problem, &token, &[]).unwrap_err().to_string();
    assert!(
        message.starts_with("plan: token 0 is accepted with probability 0.5000000006"),
        "{message}"
    );
}

/// In fractions to the last unit, and by their words.
#[test]
fn exact_plans_are_refused_by_a_unit() {
    let problem = iid(&[0.5, 0.5], &[0.75, 0.25], 1);
    let refused = |sets: &[&[u32]], masses: &[u128]| {
        let plan = plan(sets, masses, 100u32.into(), Rounding::None);
        optimum(&problem, &plan, &[0]).map(|proved| proved.get().rational().cloned())
    };
    let value = refused(&[&[0], &[1]], &[50, 25]).unwrap();
    assert_eq!(value, parse_rational("3/4").ok());
    // Less is no optimum, and no error.
    assert_eq!(refused(&[&[0], &[1]], &[50, 24]).unwrap(), None);
    type Plan<'a> = (&'a [&'a [u32]], &'a [u128], &'a str);
    let all: [Plan<'_>; 7] = [
        (
            &[&[0], &[1]],
            &[50, 26],
            "plan: set [1] is used for 13/50; its probability is 1/4",
        ),
        (
            &[&[0], &[1]],
            &[51, 25],
            "plan: token 0 is accepted with probability 51/100; the target gives it 1/2",
        ),
        (
            &[&[0, 1]],
            &[1, 0],
            "plan: set [0, 1] is used for 1/100; its probability is 0",
        ),
        (&[&[0], &[1]], &[50], "1 masses for 2 entries"),
        (
            &[&[0], &[0]],
            &[25, 25],
            "plan: set [0] stands twice; merge its entries",
        ),
        (&[&[0], &[2]], &[50, 0], "plan: token 2 is not in 0..2"),
        (
            &[&[1, 0]],
            &[0, 0],
            "plan: set 0: token 0 follows 1; tokens must be strictly ascending",
        ),
    ];
    for (sets, masses, words) in all {
        assert_eq!(refused(sets, masses).unwrap_err().to_string(), words);
    }
    let nothing = plan(&[&[0]], &[0], BigUint::zero(), Rounding::None);
    let message = optimum(&problem, &nothing, &[]).unwrap_err().to_string();
    assert_eq!(message, "plan: the unit of mass is 1/0");
}

#[test]
fn certificates_are_refused_in_words() {
    let problem = iid(&[0.5, 0.5], &[0.75, 0.25], 1);
    let entry = |token: u32, mass: &str| PlanEntry {
        set: vec![token],
        token,
        mass: mass.to_owned(),
    };
    let good = Certificate {
        schema: 1,
        problem: "small".to_owned(),
        optimal_acceptance_rate: "3/4".to_owned(),
        subset: vec![0],
        plan: vec![entry(0, "1/4"), entry(1, "1/4"), entry(0, "1/4")],
    };
    // Entries of one token out of one set are added up.
    assert_eq!(
        good.check(&problem).unwrap().get().rational(),
        parse_rational("3/4").ok().as_ref()
    );
    let said = |change: &dyn Fn(&mut Certificate)| {
        let mut broken = good.clone();
        change(&mut broken);
        broken.check(&problem).unwrap_err().to_string()
    };
    type Broken<'a> = (&'a dyn Fn(&mut Certificate), &'a str);
    let all: [Broken<'_>; 8] = [
        (&|c| c.schema = 2, "schema is 2; this build reads schema 1"),
        (
            &|c| c.problem = "other".to_owned(),
            "problem is \"other\"; the problem file is \"small\"",
        ),
        (
            &|c| c.plan[1].token = 0,
            "plan: entry 1: token 0 is not in its set [1]; only drafted tokens are accepted",
        ),
        (
            &|c| c.plan[2].mass = "-1/4".to_owned(),
            "token 0: mass -1/4 is negative",
        ),
        (
            &|c| c.optimal_acceptance_rate = "2/3".to_owned(),
            "optimal_acceptance_rate is claimed to be 2/3; the certificate proves 3/4",
        ),
        (
            &|c| c.optimal_acceptance_rate = "much".to_owned(),
            "optimal_acceptance_rate is claimed to be much; the certificate proves no such number",
        ),
        (
            &|c| c.subset = vec![1],
            "optimal_acceptance_rate is claimed to be 3/4; the certificate proves [0.75, 1]",
        ),
        (
            &|c| c.plan[1].mass = "1/8".to_owned(),
            "optimal_acceptance_rate is claimed to be 3/4; the certificate proves [0.625, 0.75]",
        ),
    ];
    for (change, words) in all {
        assert_eq!(said(change), words);
    }
    assert!(said(&|c| c.plan[0].mass = "a".to_owned()).starts_with("plan: entry 0: "));
}

#[test]
fn couplings_are_refused_in_words() {
    let problem = iid(&[0.5, 0.5], &[0.75, 0.25], 1);
    let fraction = |text: &str| parse_rational(text).unwrap();
    let of = |masses: [[&str; 2]; 2], tuples: &[&[u32]]| Coupling {
        tuples: tuples.iter().map(|tuple| tuple.to_vec()).collect(),
        mass: ndarray::arr2(&masses.map(|row| row.map(fraction))),
    };
    let tuples: &[&[u32]] = &[&[0], &[1]];
    let good = of([["1/2", "0"], ["1/4", "1/4"]], tuples);
    assert_eq!(
        coupling(&problem, &good).unwrap().into_inner(),
        fraction("3/4")
    );
    for (masses, tuples, words) in [
        (
            [["5/8", "-1/8"], ["1/8", "3/8"]],
            tuples,
            "token 0: mass -1/8 is negative",
        ),
        (
            [["1/2", "1/8"], ["1/4", "1/8"]],
            tuples,
            "coupling: token 0 is output with probability 5/8; the target gives it 1/2",
        ),
        (
            [["1/2", "0"], ["1/4", "1/4"]],
            &[&[0]],
            "2 masses for 1 entries",
        ),
    ] {
        let message = coupling(&problem, &of(masses, tuples))
            .unwrap_err()
            .to_string();
        assert_eq!(message, words);
    }
    // Of the law of drafts; a tuple that is not of it at all has none of another's mass.
    for (masses, tuples) in [
        ([["1/2", "0"], ["1/8", "3/8"]], tuples),
        ([["1/2", "0"], ["1/4", "1/4"]], &[&[0], &[0]]),
    ] {
        assert!(matches!(
            coupling(&problem, &of(masses, tuples)),
            Err(CertificateError::DraftMarginal(..))
        ));
    }
    // In f64: the largest of all errors, and what is accepted.
    let float = |mass: [[f64; 2]; 2]| {
        let tuples = vec![vec![0], vec![1]];
        let mass = ndarray::arr2(&mass);
        coupling_float(&problem, &Coupling { tuples, mass })
    };
    for (mass, expected) in [
        ([[0.5, 0.0], [0.25, 0.25]], (0.0, 0.75)),
        ([[0.5, 0.0], [0.125, 0.375]], (0.125, 0.875)),
        ([[0.25, 0.25], [0.5, 0.0]], (0.0, 0.25)),
        ([[0.75, 0.0], [0.0, 0.25]], (0.25, 1.0)),
        ([[0.5, 0.0], [0.25, 0.0]], (0.25, 0.5)),
        ([[1.0, -0.5], [-0.25, 0.75]], (0.5, 1.75)),
    ] {
        assert_eq!(float(mass), expected, "{mass:?}");
    }
    assert_eq!(float([[f64::NAN, 0.0], [0.25, 0.25]]).0, f64::INFINITY);
    // One token short of more than each of the others has too much.
    let row = [0.5, 0.25, 0.25];
    let same = iid(&row, &row, 1);
    let tuples = vec![vec![0], vec![1], vec![2]];
    let mass = ndarray::arr2(&[[0.25, 0.0, 0.0], [0.125, 0.25, 0.0], [0.125, 0.0, 0.25]]);
    let found = coupling_float(&same, &Coupling { tuples, mass });
    assert_eq!(found, (0.25, 0.75));
}

#[test]
fn distances_are_rounded_up() {
    let fraction = |text: &str| parse_rational(text).unwrap();
    assert_eq!(distance(0.5, &fraction("1/2")), 0.0);
    assert_eq!(distance(0.5, &fraction("1/4")), 0.25);
    assert_eq!(distance(0.25, &fraction("1/2")), 0.25);
    assert_eq!(distance(f64::NAN, &fraction("1/2")), f64::INFINITY);
    let third = distance(1.0 / 3.0, &fraction("1/3"));
    let truth = (exact_value(1.0 / 3.0).unwrap() - fraction("1/3")).abs();
    assert!(third > 0.0 && exact_value(third).unwrap() >= truth);
}

/// The plan proves 1 by itself, but a certificate names a subset whose bound is the claim too.
/// Numbers are written as fractions of whole numbers.
#[test]
fn both_bounds_of_a_certificate_are_the_claim() {
    let problem = iid(&[0.5, 0.5], &[0.5, 0.5], 2);
    let entry = |set: &[u32], token, mass: &str| PlanEntry {
        set: set.to_vec(),
        token,
        mass: mass.to_owned(),
    };
    let certificate = |subset: &[usize], half: &str| Certificate {
        schema: 1,
        problem: "small".to_owned(),
        optimal_acceptance_rate: "1".to_owned(),
        subset: subset.to_vec(),
        plan: vec![
            entry(&[0], 0, "1/4"),
            entry(&[0, 1], 0, "1/4"),
            entry(&[0, 1], 1, "1/4"),
            entry(&[1], 1, half),
        ],
    };
    for subset in [&[][..], &[0, 1]] {
        assert!(certificate(subset, "1/4").check(&problem).is_ok());
    }
    for subset in [&[0], &[1]] {
        let error = certificate(subset, "1/4").check(&problem).unwrap_err();
        assert_eq!(
            error.to_string(),
            "subset: 1 + P(H) - Q(H) is 5/4; it must be 1, the rate that is claimed"
        );
    }
    for mass in ["1/4.0", "1.0/4", "1e0/4", "1/4e0"] {
        let error = certificate(&[], mass).check(&problem).unwrap_err();
        assert!(error.to_string().contains("is not a number"), "{error}");
    }
    assert!(certificate(&[], "0.25").check(&problem).is_ok());
}
