//! Every scheme against its own definition: tuples, sets, Q and scans are four
//! derivations of one law.

use super::*;
use num_traits::One;
use num_traits::Signed;
use proptest::prelude::*;
use specgap_number::distribution::{
    Draft, Rational, TupleProbabilities, exact_value, round_nearest,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn normalised(raw: &[f64]) -> Vec<f64> {
    let total: f64 = raw.iter().sum();
    raw.iter().map(|x| x / total).collect()
}

/// Every law of the table that has n drafts.
pub(crate) fn all_schemes(raw: &[f64], second: &[f64], drafts: usize) -> Vec<Arc<dyn DraftScheme>> {
    let row = |j: usize| law_row(if j.is_multiple_of(2) { raw } else { second });
    let rows: Vec<Draft> = (0..drafts).map(row).collect();
    let vocab = raw.len() as u32;
    let tuple = |start: u32| -> Vec<u32> {
        let tokens = (0..drafts as u32).map(|j| (start * 3 + j * j) % vocab);
        tokens.collect()
    };
    let tuples: Vec<Vec<u32>> = (0..vocab).map(tuple).collect();
    let law = TupleProbabilities::new(&normalised(second)).unwrap();
    let made = |name: SchemeName| match name.entry().made_of {
        MadeOf::OneDraft(make) => make(law_row(raw), drafts),
        MadeOf::EachDraft(make) => make(rows.clone()).unwrap(),
        MadeOf::Tuples(make) => make(raw.len(), drafts, tuples.clone(), law.clone()).unwrap(),
        MadeOf::Parts(make) => {
            make(raw.len(), a_composition(&rows[0], &law_row(second), drafts)).unwrap()
        }
    };
    let names = SchemeName::ALL.into_iter().filter(|name| name.fits(drafts));
    names.map(made).collect()
}

fn law_row(raw: &[f64]) -> Draft {
    Draft::new(&normalised(raw)).unwrap()
}

/// q in proportion to these.
pub(crate) fn weights(row: &[u32]) -> Draft {
    Draft::from_weights(row.iter().map(|&weight| weight.into()).collect()).unwrap()
}

pub(crate) fn draws_of(draft: &Draft, count: usize, how: Draws) -> Composition {
    Composition::Draws {
        draft: draft.clone(),
        count,
        how,
    }
}

/// A law of n drafts with some of everything.
pub(super) fn a_composition(q: &Draft, other: &Draft, drafts: usize) -> Composition {
    let third = || Rational::new(1.into(), 3.into());
    let draws = draws_of;
    let vocab = q.vocab();
    let last = Composition::Mixture(vec![
        (third(), draws(q, 1, Draws::Stopped(third()))),
        (third() + third(), draws(other, 1, Draws::Independent)),
    ]);
    let pair = draws(q, 2.min(vocab), Draws::Sequential);
    let mut parts = match drafts {
        1 => return last,
        2 => vec![draws(other, 1, Draws::Distinct)],
        3 if vocab > 1 => vec![pair],
        _ => vec![
            Composition::Fixed(vec![vocab - 1; drafts - 2]),
            draws(other, 1, Draws::Stopped(third())),
        ],
    };
    parts.push(last);
    Composition::Union(parts)
}

#[test]
fn every_law_is_built_by_its_entry() {
    let (raw, second) = ([5.0, 3.0, 2.0], [1.0, 1.0, 1.0]);
    for drafts in 1..=3 {
        let mut names: Vec<&str> = Vec::new();
        for scheme in all_schemes(&raw, &second, drafts) {
            assert_eq!(scheme.drafts(), drafts, "{}", scheme.name());
            names.push(scheme.name().as_str());
        }
        let all = SchemeName::ALL.into_iter().filter(|name| name.fits(drafts));
        let expected: Vec<&str> = all.map(SchemeName::as_str).collect();
        assert_eq!(names, expected);
    }
    for name in SchemeName::ALL {
        assert_eq!(name.as_str().parse(), Ok(name));
    }
    let error = "with".parse::<SchemeName>().unwrap_err().to_string();
    for name in SchemeName::ALL {
        assert!(error.contains(name.as_str()), "{error}");
    }
}

fn merged_tuples<M: Probability>(scheme: &dyn DraftScheme) -> BTreeMap<Vec<u32>, M> {
    let mut merged: BTreeMap<Vec<u32>, M> = BTreeMap::new();
    M::tuples(scheme, &mut |tuple, probability| {
        let set = merged.entry(set_of(tuple.iter().copied()));
        set.or_insert_with(M::zero).gain(probability);
    });
    merged
}

/// Returns what routes are chosen by: tuples, sets and bits are no fewer than there are, and counts are
/// exact where a law draws from one row without strata; fixed drafts are in every set.
fn check_counts(scheme: &dyn DraftScheme, merged: &BTreeMap<Vec<u32>, Rational>) {
    let name = scheme.name();
    let mut listed = 0.0;
    scheme.for_each_tuple_exact(&mut |_, _| listed += 1.0);
    let found = [listed, merged.len() as f64];
    let said = [scheme.tuple_count(), scheme.set_count()];
    let no_fewer = found.iter().zip(&said).all(|(found, said)| found <= said);
    let strata = [SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT];
    let bounds = scheme.draft().is_none() || strata.contains(&name);
    let is_exact = found == said || bounds;
    assert!(no_fewer && is_exact, "{name}: {found:?} {said:?}");
    let bits = merged.values().map(|mass| mass.denom().bits()).max();
    let enough = 1.25 * scheme.exact_bits() + 16.0;
    assert!(bits.unwrap_or(0) as f64 <= enough, "{name}");
    let sets = || merged.keys();
    let in_all = |token: &&u32| sets().all(|set| set.contains(token));
    let first = sets().next().into_iter().flatten();
    let sure = first.filter(in_all).count();
    let shortest = sets().map(Vec::len).min().unwrap_or(0);
    let fixed = scheme.fixed_drafts().unwrap_or(0).min(shortest);
    assert!(sure >= fixed, "{name}: {fixed} of {sure}");
}

fn close(value: f64, exact: &Rational, relative: f64) -> bool {
    let error = (exact_value(value).unwrap() - exact).abs();
    error <= exact.abs() * exact_value(relative).unwrap() + exact_value(UNDERFLOW).unwrap()
}

pub(super) fn check(scheme: &dyn DraftScheme) {
    let name = scheme.name();
    let merged: BTreeMap<_, Rational> = merged_tuples(scheme);
    let sum: Rational = merged.values().sum();
    assert!(sum == Rational::one(), "{name}: tuples sum to one");
    check_counts(scheme, &merged);

    let exact = scheme.exact_set_law();
    let total: num_bigint::BigUint = exact.weights.iter().sum();
    assert_eq!(total, exact.total, "{name}");
    let sets = [exact.sets.len(), merged.len()];
    assert_eq!(sets[0], sets[1], "{name}: no set is listed twice");
    let law = scheme.set_law();
    // The f64 law may lack a set whose probability underflows, and no other.
    let masses = law.probabilities.iter().copied();
    let floats: BTreeMap<&[u32], f64> = law.sets.iter().zip(masses).collect();
    let is_known = law.sets.iter().all(|set| merged.contains_key(set));
    assert!(is_known, "{name}: no set is invented");
    for (index, set) in exact.sets.iter().enumerate() {
        let truth = &merged[set];
        let weight = specgap_number::distribution::ratio(&exact.weights[index], &exact.total);
        assert_eq!(&weight, truth, "{name}: {set:?}");
        assert_eq!(&scheme.set_probability_exact(set), truth, "{name}: {set:?}");
        let float = floats.get(set).copied().unwrap_or(0.0);
        assert!(close(float, truth, law.relative_error), "{name}: {set:?}");
        let direct = scheme.set_probability(set);
        let is_close = close(direct, truth, scheme.set_probability_error());
        assert!(is_close, "{name}: {set:?} {direct}");
    }

    let float: BTreeMap<Vec<u32>, f64> = merged_tuples(scheme);
    for (set, truth) in &merged {
        assert!(close(float[set], truth, 1e-12), "{name}: {set:?}");
    }

    // Q along a scrambled chain against summation over the tuples.
    let vocab = scheme.vocab();
    let mut order: Vec<usize> = (0..vocab).rev().collect();
    order.rotate_left(vocab / 2);
    let scan = scheme.prefix_scan(&order);
    let exact_scan = scheme.prefix_scan_exact(&order);
    for length in 1..=order.len() {
        let subset = &order[..length];
        let holds = |set: &Vec<u32>| set.iter().all(|&x| subset.contains(&(x as usize)));
        let inside = merged.iter().filter(|(set, _)| holds(set));
        let truth: Rational = inside.map(|(_, mass)| mass).sum();
        assert_eq!(exact_scan[length - 1], truth, "{name}: Q of {subset:?}");
        let error = (scan.inside[length - 1] - round_nearest(&truth)).abs();
        let most = scan.absolute_error + f64::EPSILON;
        assert!(error <= most, "{name}: Q of {subset:?}: {error}");
        assert_eq!(scheme.inside_exact(subset), truth);
    }
}

#[test]
fn four_derivations_agree_on_fixed_rows() {
    let rows: [(&[f64], &[f64]); 5] = [
        (&[5.0, 3.0, 2.0], &[1.0, 1.0, 1.0]),
        (&[0.0, 3.0, 2.0, 0.0, 4.0], &[1.0, 0.0, 7.0, 2.0, 2.0]),
        (&[1.0], &[1.0]),
        (&[0.0, 1.0, 0.0], &[0.0, 0.0, 1.0]),
        (
            &[1.0, 1e-15, 1e-200, 1e-9, 1.0, 1.0],
            &[1e-300, 1.0, 1e-12, 1e-9, 0.0, 2.0],
        ),
    ];
    for (raw, second) in rows {
        for drafts in 1..=4 {
            for scheme in all_schemes(raw, second, drafts) {
                check(scheme.as_ref());
            }
        }
    }
}

#[test]
fn symmetric_polynomials_survive_a_range_of_300_decades() {
    let raw: Vec<f64> = (0..9).map(|i| 10f64.powi(-37 * ((i * 5) % 9))).collect();
    let q = Draft::new(&normalised(&raw)).unwrap();
    for drafts in [2, 5, 7] {
        let scheme = DistinctConditioned::new(q.clone(), drafts);
        let order: Vec<usize> = (0..9).rev().collect();
        let scan = scheme.prefix_scan(&order);
        for (found, truth) in scan.inside.iter().zip(scheme.prefix_scan_exact(&order)) {
            let is_close = close(*found, &truth, 1e-13);
            assert!(is_close, "n = {drafts}: {found} {truth}");
        }
        assert_eq!(scan.inside.last(), Some(&1.0));
    }
}

#[test]
fn the_race_integral_matches_enumeration() {
    let raws: [Vec<f64>; 4] = [
        (0..14).map(|i| 1.0 + (i * i % 7) as f64).collect(),
        (0..14).map(|i| (-2.0 * f64::from(i)).exp()).collect(),
        (0..12).map(|i| if i == 3 { 1.0 } else { 1e-15 }).collect(),
        (0..12).map(|i| 10f64.powi(-25 * (i % 12))).collect(),
    ];
    for raw in raws {
        let q = Draft::new(&normalised(&raw)).unwrap();
        for drafts in 3..=5 {
            let scheme = WithoutReplacement::new(q.clone(), drafts);
            let mut order: Vec<usize> = (0..raw.len()).rev().collect();
            order.swap(0, 5);
            let enumerated = scheme.prefix_scan(&order);
            let race = race::scan(q.probabilities(), drafts, &order);
            assert!(race.absolute_error < 1e-11, "{}", race.absolute_error);
            for (a, b) in enumerated.inside.iter().zip(&race.inside) {
                assert!((a - b).abs() <= race.absolute_error + 1e-14, "{a} {b}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn four_derivations_agree(
        raw in prop::collection::vec(0.0f64..1.0, 2..6),
        exponent in 0.0f64..30.0,
        drafts in 1usize..4,
    ) {
        let peaked: Vec<f64> = raw.iter().map(|x| (-exponent * x).exp()).collect();
        let second: Vec<f64> = raw.iter().rev().map(|x| x + 1e-3).collect();
        for scheme in all_schemes(&peaked, &second, drafts) {
            check(scheme.as_ref());
        }
    }
}

#[test]
fn a_name_that_is_none_is_told_what_may_be_meant() {
    let meant = |text: &str| SchemeName::nearest(text).map(SchemeName::as_str);
    for (text, name) in [
        ("wr", "with-replacement"),
        ("without_replacement", "without-replacement"),
        ("Wihtout-Replacement", "without-replacement"),
        ("wor", "without-replacement"),
        ("gumbel_topk", "without-replacement"),
        ("hubb", "hub"),
    ] {
        assert_eq!(meant(text), Some(name), "{text}");
    }
    assert_eq!((meant("zz"), meant("")), (None, None));
    for (alias, law) in [
        ("iid", SchemeName::WITH_REPLACEMENT),
        ("sequential", SchemeName::WITHOUT_REPLACEMENT),
    ] {
        assert_eq!(alias.parse(), Ok(law));
    }
    let error = "wr".parse::<SchemeName>().unwrap_err().to_string();
    assert!(error.starts_with("\"wr\" is not a draft scheme; choose one of with-replacement, "));
    let meant = "; did you mean with-replacement?";
    assert!(error.ends_with(meant), "{error}");
}
