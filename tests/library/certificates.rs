//! Are wrong certificates refused? Every fixture but `valid.json` was broken on
//! purpose, each in one way.

use crate::rows::{fractions, normalised};
use proptest::prelude::*;
use specgap::certify::{self, Certificate, CertificateError, PlanEntry};
use specgap::coupling::{Coupling, PlanMasses, Rounding, TransportPlan};
use specgap::distribution::{
    Draft, Rational, Target, exact_value, format_rational, parse_rational,
};
use specgap::lp::{Direction, LinearProgram, Masses, Relation, Row};
use specgap::optimum::flow;
use specgap::problem::{AnyProblem, Problem, parse_toml, read};
use specgap::scheme::{
    DistinctConditioned, DraftScheme, ExactSetLaw, PrefixScan, SchemeName, SetFamily, SetLaw,
    WithReplacement, WithoutReplacement,
};
use std::path::Path;

fn problem(path: &str) -> Problem {
    match read(Path::new(path)).unwrap().remove(0).1 {
        AnyProblem::Single(problem) => problem,
        AnyProblem::Block(_) => panic!("{path} is a block problem"),
    }
}

#[test]
fn every_corrupted_fixture_is_rejected_and_the_valid_one_is_not() {
    let problem = problem("problems/without-replacement/two-laws-sequential.toml");
    let mut rejected = 0;
    for entry in std::fs::read_dir("tests/fixtures/certificates").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let certificate: Certificate = serde_json::from_str(&text).unwrap();
        let checked = certificate.check(&problem);
        if path.file_stem().unwrap() == "valid" {
            assert_eq!(checked.unwrap().get().value(), 11.0 / 14.0);
        } else {
            assert!(checked.is_err(), "{} proves {:?}", path.display(), checked);
            rejected += 1;
        }
    }
    assert!(rejected >= 22, "{rejected} corrupted fixtures");
}

/// Entries that would change nothing that is added up, beside a certificate that is right.
#[test]
fn what_does_not_belong_in_a_plan_is_refused_even_where_it_changes_nothing() {
    let problem = problem("problems/without-replacement/two-laws-sequential.toml");
    let text = std::fs::read_to_string("tests/fixtures/certificates/valid.json").unwrap();
    let valid: Certificate = serde_json::from_str(&text).unwrap();
    assert_eq!(valid.plan.len(), 4);
    let with = |set: &[u32], token: u32, mass: &str| {
        let mut certificate = valid.clone();
        certificate.plan.push(PlanEntry {
            set: set.to_vec(),
            token,
            mass: mass.to_owned(),
        });
        certificate.check(&problem)
    };
    assert!(with(&[0, 1], 0, "0").is_ok());
    for mass in ["0", "1/100"] {
        assert!(matches!(
            with(&[0, 1], 2, mass),
            Err(CertificateError::NotAMember(4, 2, _))
        ));
    }
    assert!(matches!(
        with(&[0, 1], 0, "-1/100"),
        Err(CertificateError::Negative(0, _))
    ));
    assert!(matches!(
        with(&[0, 1], 0, "1/0"),
        Err(CertificateError::Mass(4, _))
    ));
}

/// A set that is filled to its probability in `f64`, which may be above the exact one by more
/// than the rounding of the plan's sum, and by more than that.
#[test]
fn a_rounded_plan_keeps_within_the_exact_law() {
    let mut above = 0;
    for drafts in [1, 2, 17, 60] {
        let problem = Problem::new(
            "rounded up",
            Target::from_rationals(fractions(&[99, 1])).unwrap(),
            WithReplacement::new(Draft::from_rationals(fractions(&[4, 1])).unwrap(), drafts),
        )
        .unwrap();
        let float = problem.scheme().set_probability(&[0]);
        let exact = problem.scheme().set_probability_exact(&[0]);
        for ulps in [0.0, 10.0, 100.0, 1e4] {
            let mass = float * (1.0 + ulps * f64::EPSILON);
            above += usize::from(exact_value(mass * (1.0 - 1.8e-15)).unwrap() > exact);
            let filled = plan(&[&[0]], &[(mass * 2f64.powi(100)) as u128], GRID);
            let proved = certify::optimum(&problem, &filled, &[]).unwrap();
            let lower = proved.get().lower();
            assert!(
                exact_value(lower).unwrap() <= exact,
                "{drafts} {ulps}: {lower}"
            );
            assert!(lower > float * (1.0 - 1e-11), "{drafts} {ulps}: {lower}");
        }
    }
    // Without any allowance for the law these would prove too much.
    assert!(above >= 13, "{above}");
    // All of p out of one set.
    let problem = Problem::new(
        "whole",
        Target::new(&[1.0, 0.0]).unwrap(),
        WithReplacement::new(Draft::new(&[1.0, 0.0]).unwrap(), 1),
    )
    .unwrap();
    let proved = certify::optimum(&problem, &plan(&[&[0]], &[UNIT], GRID), &[]).unwrap();
    assert!(proved.get().lower() > 1.0 - 1e-13, "{:?}", proved.get());
    // A plan that accepts nothing proves nothing.
    let proved = certify::optimum(&problem, &plan(&[&[0]], &[0], GRID), &[]).unwrap();
    assert_eq!(proved.get().lower(), 0.0);
}

#[test]
fn a_certificate_of_one_law_does_not_prove_the_other() {
    let sequential = problem("problems/without-replacement/two-laws-sequential.toml");
    let solved = flow::solve(&sequential);
    let subset = solved.optimum().subset.unwrap();
    let plan = solved.into_plan();
    let conditioned = Problem::new(
        "two-laws-sequential",
        sequential.target().clone(),
        DistinctConditioned::new(sequential.scheme().draft().unwrap().clone(), 2),
    )
    .unwrap();
    let certificate = Certificate::new(&sequential, &plan, &subset).unwrap();
    assert!(certificate.check(&sequential).is_ok());
    assert!(certificate.check(&conditioned).is_err());
}

#[test]
fn a_coupling_with_a_wrong_marginal_is_rejected() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let plan = flow::solve(&problem).into_plan();
    let good = Coupling::extend(&problem, &plan);
    assert_eq!(
        format_rational(certify::coupling(&problem, &good).unwrap().get()),
        "15/16"
    );
    let hair = parse_rational("1/1000000000000000000000000").unwrap();
    // p's marginal off, D's marginal off, and a negative entry.
    let mut moved = good.clone();
    moved.mass[[0, 0]] += &hair;
    assert!(matches!(
        certify::coupling(&problem, &moved),
        Err(CertificateError::TargetMarginal(0, _, _))
    ));
    // Between two tuples, both of which have as much: p is as it was.
    let has_room = |&column: &usize| good.mass[[1, column]] > hair;
    let columns: Vec<usize> = (0..good.tuples.len()).filter(has_room).collect();
    let mut moved = good.clone();
    moved.mass[[1, columns[0]]] += &hair;
    moved.mass[[1, columns[1]]] -= &hair;
    assert!(matches!(
        certify::coupling(&problem, &moved),
        Err(CertificateError::DraftMarginal(..))
    ));
    let mut moved = good.clone();
    let all = moved.mass[[0, 0]].clone() + &hair;
    moved.mass[[0, 0]] -= &all;
    moved.mass[[1, 0]] += &all;
    assert!(matches!(
        certify::coupling(&problem, &moved),
        Err(CertificateError::Negative(0, _))
    ));
}

#[test]
fn negative_entries_that_cancel_in_both_marginals_are_rejected() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let mut coupling = Coupling::extend(&problem, &flow::solve(&problem).into_plan());
    let one = parse_rational("1").unwrap();
    for (cell, up) in [
        ([0, 0], true),
        ([0, 1], false),
        ([1, 0], false),
        ([1, 1], true),
    ] {
        if up {
            coupling.mass[cell] += &one;
        } else {
            coupling.mass[cell] -= &one;
        }
    }
    assert!(matches!(
        certify::coupling(&problem, &coupling),
        Err(CertificateError::Negative(..))
    ));
}

#[test]
fn a_set_that_a_plan_lists_twice_is_rejected() {
    let text = "schema = 1\nname = \"twice\"\ntarget = [1.0, 0.0]\ndrafts = 1\n\
                [draft]\nscheme = \"with-replacement\"\nq = [0.5, 0.5]\n";
    let AnyProblem::Single(problem) = parse_toml(text).unwrap() else {
        panic!("a single-step problem")
    };
    let plan = |times: usize| {
        let mut sets = SetFamily::new();
        for _ in 0..times {
            sets.push([0]);
        }
        TransportPlan {
            accepted: PlanMasses::Native(vec![1; times]),
            sets,
            total: 2u32.into(),
            rounding: Rounding::None,
        }
    };
    let once = certify::optimum(&problem, &plan(1), &[1]).unwrap();
    assert_eq!(once.get().lower(), 0.5);
    // Each of the two keeps within P(A(X) = {0}) = 1/2; both together do not.
    assert!(matches!(
        certify::optimum(&problem, &plan(2), &[]),
        Err(CertificateError::DuplicateSet(set)) if set == [0]
    ));
}

/// i.i.d. drafts that are said to lie inside any subset; the probabilities of tuples in `f64`
/// are times a number.
#[derive(Debug)]
struct EverythingInside(WithReplacement, f64);

impl DraftScheme for EverythingInside {
    fn name(&self) -> SchemeName {
        self.0.name()
    }
    fn vocab(&self) -> usize {
        self.0.vocab()
    }
    fn drafts(&self) -> usize {
        self.0.drafts()
    }
    fn draft(&self) -> Option<&Draft> {
        self.0.draft()
    }
    fn tuple_count(&self) -> f64 {
        self.0.tuple_count()
    }
    fn for_each_tuple(&self, visit: &mut dyn FnMut(&[u32], f64)) {
        self.0
            .for_each_tuple(&mut |tuple, probability| visit(tuple, probability * self.1));
    }
    fn for_each_tuple_exact(&self, visit: &mut dyn FnMut(&[u32], &Rational)) {
        self.0.for_each_tuple_exact(visit);
    }
    fn set_count(&self) -> f64 {
        self.0.set_count()
    }
    fn set_law(&self) -> SetLaw {
        self.0.set_law()
    }
    fn exact_bits(&self) -> f64 {
        self.0.exact_bits()
    }
    fn exact_set_law(&self) -> ExactSetLaw {
        self.0.exact_set_law()
    }
    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        PrefixScan {
            inside: vec![1.0; order.len()],
            ..self.0.prefix_scan(order)
        }
    }
    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        vec![parse_rational("1").unwrap(); order.len()]
    }
    fn has_sort_theorem(&self) -> bool {
        self.0.has_sort_theorem()
    }
    fn set_probability(&self, set: &[u32]) -> f64 {
        self.0.set_probability(set)
    }
    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.0.set_probability_exact(set)
    }
}

/// A valid plan cannot accept more than a subset allows, so one that does means that
/// the two were derived from different laws: no number comes of it.
#[test]
fn a_plan_above_its_cut_is_a_contradiction() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let plan = flow::solve(&problem).into_plan();
    let draft = problem.scheme().draft().unwrap().clone();
    let lying = Problem::new(
        "lying",
        problem.target().clone(),
        EverythingInside(WithReplacement::new(draft, 2), 1.0),
    )
    .unwrap();
    assert!(certify::optimum(&problem, &plan, &[0]).is_ok());
    assert!(matches!(
        certify::optimum(&lying, &plan, &[0]),
        Err(CertificateError::Contradiction(..))
    ));
}

/// Two tokens, p = (1/2, 1/2), and one draft of q = (3/4, 1/4): alpha* = 3/4.
fn one_draft() -> Problem {
    let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25]).unwrap(), 1);
    Problem::new("one", Target::new(&[0.5, 0.5]).unwrap(), scheme).unwrap()
}

const UNIT: u128 = 1 << 100;
const GRID: Rounding = Rounding::Grid {
    feasible_share: 1.0,
    absolute_error: 1e-15,
};

/// A plan that accepts these masses, in units of 2^-100, out of these sets.
fn plan(sets: &[&[u32]], accepted: &[u128], rounding: Rounding) -> TransportPlan {
    let mut family = SetFamily::new();
    for set in sets {
        family.push(set.iter().copied());
    }
    TransportPlan {
        sets: family,
        accepted: PlanMasses::Native(accepted.to_vec()),
        total: UNIT.into(),
        rounding,
    }
}

/// What a file cannot say and a caller of the library can: each is refused for what it is.
#[test]
fn broken_plans_are_refused_by_their_own_reason() {
    let problem = one_draft();
    let (half, quarter) = (UNIT / 2, UNIT / 4);
    let good = plan(&[&[0], &[1]], &[half, quarter], Rounding::None);
    assert_eq!(
        certify::optimum(&problem, &good, &[0])
            .unwrap()
            .get()
            .value(),
        0.75
    );
    let refusal = |plan: &TransportPlan| certify::optimum(&problem, plan, &[0]).unwrap_err();
    assert!(matches!(
        refusal(&plan(&[&[0], &[1]], &[half], Rounding::None)),
        CertificateError::Entries(1, 2)
    ));
    assert!(matches!(
        refusal(&TransportPlan {
            total: 0u32.into(),
            ..good.clone()
        }),
        CertificateError::ZeroUnit
    ));
    // Sets that are not drawn, of which nothing is taken, are wrong all the same.
    assert!(matches!(
        refusal(&plan(
            &[&[0], &[1], &[2]],
            &[half, quarter, 0],
            Rounding::None
        )),
        CertificateError::Token("plan", 2, 2)
    ));
    for (pair, second) in [(&[1, 0][..], 0), (&[1, 1], 1)] {
        let CertificateError::Order(place, first, found) =
            refusal(&plan(&[&[0], pair], &[half, 0, 0], Rounding::None))
        else {
            panic!("{pair:?} is out of order");
        };
        assert_eq!((place.as_str(), first, found), ("plan: set 1", 1, second));
    }
    assert!(matches!(
        refusal(&plan(&[&[0], &[1]], &[half, quarter + 1,], Rounding::None)),
        CertificateError::SetOverdrawn(..)
    ));
    assert!(matches!(
        refusal(&plan(&[&[0], &[1]], &[half + 1, quarter], Rounding::None)),
        CertificateError::TokenOverdrawn(..)
    ));
    assert!(matches!(
        Certificate::new(
            &problem,
            &TransportPlan {
                rounding: GRID,
                ..good
            },
            &[0]
        ),
        Err(CertificateError::NotExact)
    ));
}

/// 21 tokens of a law that has no short cut for so large a set.
#[test]
fn a_set_that_would_take_too_long_to_check_is_refused() {
    let row = normalised(&[1.0; 24]);
    let scheme = WithReplacement::new(Draft::new(&row).unwrap(), 30);
    let problem = Problem::new("large", Target::new(&row).unwrap(), scheme).unwrap();
    let set: Vec<u32> = (0..21).collect();
    for rounding in [Rounding::None, GRID] {
        assert!(matches!(
            certify::optimum(&problem, &plan(&[&set], &[0; 21], rounding), &[]),
            Err(CertificateError::SetTooLarge(_, 21, 20))
        ));
        let fits = plan(&[&set[..20]], &[0; 20], rounding);
        assert!(certify::optimum(&problem, &fits, &[]).is_ok());
    }
}

/// A rounded plan that takes a hair more than there is proves no more than there is.
#[test]
fn a_rounded_plan_never_proves_more_than_the_optimum() {
    let problem = one_draft();
    let hair = |mass: u128| mass + mass / 2_000_000_000;
    for masses in [
        [UNIT / 2, hair(UNIT / 4)],
        [hair(UNIT / 2), UNIT / 4],
        [hair(UNIT / 2), hair(UNIT / 4)],
    ] {
        // The empty subset says no more than 1, so that nothing contradicts it.
        let rounded = plan(&[&[0], &[1]], &masses, GRID);
        let proved = certify::optimum(&problem, &rounded, &[]).unwrap();
        assert!(proved.get().lower() <= 0.75, "{:?}", proved.get());
        assert!(proved.get().lower() > 0.75 - 1e-8);
    }
    // More than a hair is no rounding, of a set or of a token.
    let much = |mass: u128| mass + mass / 100_000_000;
    let set = plan(&[&[0], &[1]], &[UNIT / 2, much(UNIT / 4)], GRID);
    assert!(matches!(
        certify::optimum(&problem, &set, &[]),
        Err(CertificateError::SetOverdrawn(..))
    ));
    let token = plan(&[&[0], &[1]], &[much(UNIT / 2), UNIT / 4], GRID);
    assert!(matches!(
        certify::optimum(&problem, &token, &[]),
        Err(CertificateError::TokenOverdrawn(..))
    ));
}

/// In `f64` too: a plan above its cut, and a law that is no number.
#[test]
fn a_rounded_plan_of_a_law_that_lies_proves_nothing() {
    let lying = |factor: f64| {
        let draft = Draft::new(&[0.75, 0.25]).unwrap();
        let scheme = EverythingInside(WithReplacement::new(draft, 1), factor);
        Problem::new("lying", Target::new(&[0.5, 0.5]).unwrap(), scheme).unwrap()
    };
    let rounded = plan(&[&[0], &[1]], &[UNIT / 2, UNIT / 4], GRID);
    assert!(matches!(
        certify::optimum(&lying(1.0), &rounded, &[0]),
        Err(CertificateError::Contradiction(..))
    ));
    for nonsense in [f64::NAN, f64::INFINITY] {
        assert!(matches!(
            certify::optimum(&lying(nonsense), &rounded, &[]),
            Err(CertificateError::SetOverdrawn(..))
        ));
    }
}

/// A coupling of another shape, in either direction, and marginals in `f64`.
#[test]
fn couplings_of_another_shape_or_law_are_noticed() {
    let problem = one_draft();
    let solved = flow::solve(&problem).into_plan();
    let good = Coupling::extend(&problem, &solved);
    assert!(certify::coupling(&problem, &good).is_ok());
    let wider = Problem::new(
        "wider",
        Target::new(&[0.5, 0.25, 0.25]).unwrap(),
        WithReplacement::new(Draft::new(&[0.75, 0.25, 0.0]).unwrap(), 1),
    )
    .unwrap();
    assert!(matches!(
        certify::coupling(&wider, &good),
        Err(CertificateError::Entries(2, 3))
    ));
    // Of two drafts: as many rows as before, and twice the columns.
    let twice = |p: &[f64], q: &[f64]| {
        let scheme = WithReplacement::new(Draft::new(q).unwrap(), 2);
        Problem::new("two drafts", Target::new(p).unwrap(), scheme).unwrap()
    };
    let two = twice(&[0.5, 0.5], &[0.75, 0.25]);
    let pairs = Coupling::extend(&two, &flow::solve(&two).into_plan());
    assert!(certify::coupling(&two, &pairs).is_ok());
    assert!(matches!(
        certify::coupling(&twice(&[0.5, 0.25, 0.25], &[0.75, 0.25, 0.0]), &pairs),
        Err(CertificateError::Entries(2, 3))
    ));
    let mut fewer = pairs.clone();
    fewer.tuples.pop();
    assert!(matches!(
        certify::coupling(&two, &fewer),
        Err(CertificateError::Entries(4, 3))
    ));
    let mut fewer = good.clone();
    fewer.tuples.pop();
    assert!(matches!(
        certify::coupling(&problem, &fewer),
        Err(CertificateError::Entries(2, 1))
    ));
    let float = Coupling::extend_float(&problem, []);
    // From token to token within a draft: p is off. From draft to draft: D is.
    for [from, to] in [[[0, 0], [1, 0]], [[0, 0], [0, 1]]] {
        let mut moved = float.clone();
        moved.mass[from] -= 0.01;
        moved.mass[to] += 0.01;
        let off = certify::coupling_float(&problem, &moved).0;
        assert!((off - 0.01).abs() < 1e-15, "{off}");
    }
    // Negative, and right in every sum.
    let mut cancelling = float;
    for (cell, sign) in [([0, 0], 1.0), ([0, 1], -1.0), ([1, 0], -1.0), ([1, 1], 1.0)] {
        cancelling.mass[cell] += sign;
    }
    assert!(certify::coupling_float(&problem, &cancelling).0 > 0.5);
}

#[test]
fn an_upper_bound_in_floating_point_is_above_the_exact_one() {
    let row = |seed: u64| -> Vec<f64> {
        let raw: Vec<f64> = (0..60u64)
            .map(|i| 1.0 / (1.0 + ((i * 40_503 + seed * 977 * (i + 1)) % 1009) as f64))
            .collect();
        let total: f64 = raw.iter().sum();
        raw.iter().map(|x| x / total).collect()
    };
    let mut below = 0;
    for seed in 0..40 {
        let problem = Problem::new(
            "wide",
            Target::new(&row(seed)).unwrap(),
            WithReplacement::new(Draft::new(&row(seed + 100)).unwrap(), 3),
        )
        .unwrap();
        let subset: Vec<usize> = (0..60)
            .filter(|token| !(token + seed as usize).is_multiple_of(3))
            .collect();
        let exact = certify::upper_bound(&problem, &subset)
            .unwrap()
            .into_inner();
        let (estimate, upper) = certify::upper_bound_float(&problem, &subset)
            .unwrap()
            .into_inner();
        assert!(exact_value(upper).unwrap() >= exact, "{seed}: {upper}");
        assert!(upper - estimate < 1e-13, "{seed}");
        below += usize::from(exact_value(estimate).unwrap() < exact);
    }
    // The estimate alone is no bound.
    assert!(below >= 5, "{below}");
}

#[test]
fn a_coupling_with_a_nan_has_no_small_error() {
    let problem = problem("problems/spectr/bernoulli-quarter-half-n2.toml");
    let mut coupling = Coupling::extend_float(&problem, []);
    assert!(certify::coupling_float(&problem, &coupling).0 < 1e-15);
    coupling.mass[[0, 0]] = f64::NAN;
    assert_eq!(
        certify::coupling_float(&problem, &coupling).0,
        f64::INFINITY
    );
}

#[test]
fn a_rounded_plan_is_scaled_by_a_hair_and_not_by_more() {
    let row = |seed: u64| -> Vec<f64> {
        let raw: Vec<f64> = (0..60u64)
            .map(|i| 1.0 + ((i * i * 7 + seed * i) % 23) as f64)
            .collect();
        normalised(&raw)
    };
    let draft = Draft::new(&row(3)).unwrap();
    let problem = Problem::new(
        "rounded",
        Target::new(&row(11)).unwrap(),
        WithoutReplacement::new(draft, 3),
    )
    .unwrap();
    let solved = flow::solve(&problem);
    let subset = solved.optimum().subset.unwrap();
    let plan = solved.into_plan();
    assert!(
        matches!(plan.accepted, PlanMasses::Native(_)),
        "too large for exact arithmetic"
    );
    let proved = certify::optimum(&problem, &plan, &subset).unwrap();
    assert!(proved.get().width() < 1e-12, "{:?}", proved.get());

    let PlanMasses::Native(mut masses) = plan.accepted.clone() else {
        return;
    };
    let largest = (0..masses.len())
        .max_by_key(|&entry| masses[entry])
        .unwrap();
    masses[largest] += masses[largest] / 1000;
    let corrupted = TransportPlan {
        accepted: PlanMasses::Native(masses),
        ..plan
    };
    assert!(certify::optimum(&problem, &corrupted, &subset).is_err());
}

#[test]
fn residuals_of_programs_by_hand() {
    use Direction::{Maximise, Minimise};
    use Relation::{AtLeast, AtMost, Equal};
    // c x under 2 x <= 1, = 1 or >= 1, answered by x and by m for the row: the worst of the
    // row's and of x's violation, that of the signs of m and of c - 2 m, and |c x - m|.
    for (direction, relation, c, x, m, expected) in [
        (Maximise, AtMost, 3.0, 0.5, 1.5, [0.0, 0.0, 0.0]),
        (Maximise, AtMost, 3.0, 0.75, 1.5, [0.5, 0.0, 0.75]),
        (Maximise, AtMost, 3.0, 0.25, 1.5, [0.0, 0.0, 0.75]),
        (Maximise, AtMost, 3.0, -0.25, 1.5, [0.25, 0.0, 2.25]),
        (Maximise, AtMost, 3.0, 0.5, 1.0, [0.0, 1.0, 0.5]),
        (Maximise, AtMost, 3.0, 0.5, 2.0, [0.0, 0.0, 0.5]),
        (Maximise, AtMost, -3.0, 0.5, -1.0, [0.0, 1.0, 0.5]),
        (Maximise, AtLeast, -3.0, 0.5, -1.5, [0.0, 0.0, 0.0]),
        (Maximise, AtLeast, -3.0, 0.25, -1.5, [0.5, 0.0, 0.75]),
        (Maximise, AtLeast, -3.0, 0.5, 1.0, [0.0, 1.0, 2.5]),
        (Maximise, Equal, 3.0, 0.25, 1.5, [0.5, 0.0, 0.75]),
        (Maximise, Equal, 3.0, 0.75, 1.5, [0.5, 0.0, 0.75]),
        (Maximise, Equal, -3.0, 0.5, -1.5, [0.0, 0.0, 0.0]),
        (Minimise, AtLeast, 3.0, 0.5, 1.5, [0.0, 0.0, 0.0]),
        (Minimise, AtLeast, 3.0, 0.5, 2.0, [0.0, 1.0, 0.5]),
        (Minimise, AtLeast, 3.0, 0.5, 1.0, [0.0, 0.0, 0.5]),
        (Minimise, AtLeast, 3.0, 0.5, -1.0, [0.0, 1.0, 2.5]),
        (Minimise, AtMost, 3.0, 0.5, 1.0, [0.0, 1.0, 0.5]),
        (Minimise, AtMost, -3.0, 0.5, -1.5, [0.0, 0.0, 0.0]),
        (Minimise, Equal, 3.0, 0.5, -1.0, [0.0, 0.0, 2.5]),
        (
            Maximise,
            AtMost,
            3.0,
            f64::NAN,
            1.5,
            [f64::INFINITY, 0.0, f64::INFINITY],
        ),
        (
            Maximise,
            AtMost,
            3.0,
            0.5,
            f64::NAN,
            [0.0, f64::INFINITY, f64::INFINITY],
        ),
    ] {
        let terms = vec![(0, 2.0)];
        let program = program(direction, vec![c], vec![(terms, relation, 1.0)]);
        let found = certify::residuals(&program, &[x], &[m]).unwrap();
        let found = [
            found.primal_infeasibility,
            found.dual_infeasibility,
            found.duality_gap,
        ];
        assert_eq!(found, expected, "{direction:?} {relation:?} {c} {x} {m}");
        for (x, m) in [(&[][..], &[m][..]), (&[x], &[]), (&[], &[])] {
            assert!(certify::residuals(&program, x, m).is_none());
        }
    }
    // 2 x + 3 y, x + y <= 4, x >= 1, x - y = 1: x = 5/2, y = 3/2, worth 5/2, 0 and -1/2.
    let rows = vec![
        (vec![(0, 1.0), (1, 1.0)], AtMost, 4.0),
        (vec![(0, 1.0)], AtLeast, 1.0),
        (vec![(0, 1.0), (1, -1.0)], Equal, 1.0),
    ];
    let program = program(Maximise, vec![2.0, 3.0], rows);
    let found = certify::residuals(&program, &[2.5, 1.5], &[2.5, 0.0, -0.5]).unwrap();
    assert_eq!(found.primal_infeasibility, 0.0);
    assert_eq!((found.dual_infeasibility, found.duality_gap), (0.0, 0.0));
    let off = certify::residuals(&program, &[2.5, 1.5], &[2.5, 0.0, -0.25]).unwrap();
    assert_eq!((off.dual_infeasibility, off.duality_gap), (0.25, 0.25));
}

/// Terms, and what their sum is compared with.
type Constraint = (Vec<(usize, f64)>, Relation, f64);

fn program(direction: Direction, objective: Vec<f64>, rows: Vec<Constraint>) -> LinearProgram {
    let rows = rows.into_iter().map(|(terms, relation, bound)| Row {
        terms,
        relation,
        bound,
    });
    LinearProgram {
        direction,
        masses: Masses::Bounds,
        objective,
        rows: rows.collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any single change of a plan's mass, or of the subset, is noticed: the
    /// certificate then proves something else, or nothing.
    #[test]
    fn mutated_certificates_prove_nothing(
        p in prop::collection::vec(1u32..50, 4),
        q in prop::collection::vec(1u32..50, 4),
        entry in any::<prop::sample::Index>(),
        up in any::<bool>(),
        token in 0usize..4,
    ) {
        let problem = Problem::new(
            "random",
            Target::from_rationals(fractions(&p)).unwrap(),
            WithReplacement::new(Draft::from_rationals(fractions(&q)).unwrap(), 2),
        ).unwrap();
        let solved = flow::solve(&problem);
        let subset = solved.optimum().subset.unwrap();
        let good = Certificate::new(&problem, &solved.into_plan(), &subset).unwrap();
        let proved = good.check(&problem).unwrap();
        let truth = proved.get().rational().cloned().unwrap();

        let mut bad = good.clone();
        let part = &mut bad.plan[entry.index(good.plan.len())];
        let mass = parse_rational(&part.mass).unwrap();
        let hair = parse_rational("1/1000000000").unwrap();
        part.mass = format_rational(&if up { mass + hair } else { mass - hair });
        prop_assert!(bad.check(&problem).is_err());

        // Toggling a token of H either gives another minimiser or is refused.
        let mut bad = good.clone();
        match bad.subset.binary_search(&token) {
            Ok(place) => { bad.subset.remove(place); }
            Err(place) => bad.subset.insert(place, token),
        }
        match bad.check(&problem) {
            Ok(other) => prop_assert_eq!(other.get().rational(), Some(&truth)),
            Err(_) => {
                let bound = certify::upper_bound(&problem, &bad.subset).unwrap();
                prop_assert!(*bound.get() > truth);
            }
        }
    }
}
