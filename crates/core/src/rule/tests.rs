use super::*;
use crate::problem::Problem;
use crate::scheme::{DraftScheme, MadeOf, Straddle, Stratified};
use crate::verifier::{ConditionalLaw, VERIFIERS, verifier};
use specgap_number::distribution::{Draft, Target};

#[test]
fn a_name_is_of_one_rule() {
    let mut all: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    all.extend(RULES.iter().flat_map(|rule| rule.aliases));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(RULES.iter().all(|rule| !rule.words.is_empty()));
    for (name, rule) in [
        ("chain", RuleName::TOKEN),
        ("single", RuleName::TOKEN),
        ("sampled", RuleName::TOKEN),
        ("naive", RuleName::EXACT_MATCH),
        ("target-only", RuleName::EXACT_MATCH),
        ("strict", RuleName::EXACT_MATCH),
    ] {
        assert_eq!(name.parse(), Ok(rule));
    }
    assert!("x".parse::<RuleName>().is_err());
    // And in files of earlier versions.
    for (was, is) in [
        ("naive", "exact-match"),
        ("top/naive", "top/exact-match"),
        ("rrs", "rrs"),
        ("with-replacement/x", "with-replacement/x"),
        ("threshold:0.9", "threshold:0.9"),
    ] {
        assert_eq!(written(was.to_owned()), is);
    }
}

/// Returns what comes out, given the drafts.
fn output(law: &ConditionalLaw<f64>, tuple: &[u32]) -> Vec<f64> {
    let mut out: Vec<f64> = law.residual.iter().map(|x| law.rejected * x).collect();
    for (&token, mass) in tuple.iter().zip(&law.accepted) {
        out[token as usize] += mass;
    }
    out
}

fn in_turn(step: &dyn Step, p: &[f64], q: &[f64], tuple: &[u32]) -> ConditionalLaw<f64> {
    let step = step.in_turn(p, q, tuple);
    let mut alive = 1.0;
    let accepted = (step.keeps())
        .map(|keep| {
            let mass = alive * keep;
            alive *= 1.0 - keep;
            mass
        })
        .collect();
    let total: f64 = step.residual.iter().sum();
    let residual: Vec<f64> = step.residual.iter().map(|x| x / total).collect();
    ConditionalLaw {
        accepted,
        rejected: alive,
        residual: residual.into(),
    }
}

/// Every law on a row against the exact law of the verifier of that name, which shares nothing
/// with it: each draft's share and the output, for every tuple of every law under which the rule
/// is lossless.
#[test]
fn laws_on_a_row_are_those_in_fractions() {
    let rows: [([f64; 4], [f64; 4]); 5] = [
        ([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.6, 0.1]),
        ([0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]),
        ([0.0, 0.5, 0.0, 0.5], [0.5, 0.0, 0.25, 0.25]),
        ([1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]),
        ([0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.125, 0.875]),
    ];
    let mut checked = 0;
    for rule in RuleName::ALL {
        if rule.entry().step.is_none() || rule.entry().drafts == Drafts::Likeliest {
            continue;
        }
        let own = VERIFIERS.iter().find(|entry| entry.rule == rule).unwrap();
        for law in SchemeName::ALL {
            let MadeOf::OneDraft(made) = law.entry().made_of else {
                continue;
            };
            for (p, q) in rows {
                for drafts in 1..=3 {
                    let scheme = made(Draft::new(&q).unwrap(), drafts);
                    // One pass over strata, and passes over drafts of other laws, are other
                    // rules of those names.
                    let is_own = ![RuleName::RRS, RuleName::LEVEL_4].contains(&rule)
                        || rule.laws().any(|other| other == law);
                    let step = rule.step_of(law).or(rule.entry().step).unwrap();
                    if !own.lossless.holds(law, scheme.drafts()) || !is_own {
                        continue;
                    }
                    let target = Target::new(&p).unwrap();
                    let problem = Problem::from_law("row", target, scheme.clone()).unwrap();
                    let exact = verifier(rule.as_str().parse().unwrap(), &problem).unwrap();
                    scheme.for_each_tuple(&mut |tuple, mass| {
                        if mass < 1e-12 || (rule == RuleName::TOKEN && !rule_is_fit(law)) {
                            return;
                        }
                        let mine = in_turn(step, &p, &q, tuple);
                        let other = exact.conditional(tuple);
                        for (x, y) in output(&mine, tuple).iter().zip(output(&other, tuple)) {
                            assert!((x - y).abs() < 1e-12, "{rule} {law} {tuple:?} {x} {y}");
                        }
                        for (x, y) in mine.accepted.iter().zip(&other.accepted) {
                            assert!((x - y).abs() < 1e-12, "{rule} {law} {tuple:?} {x} {y}");
                        }
                        checked += 1;
                    });
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}

/// Loops over levels inside one over strata, written out by the law of each draft given that all
/// are refused so far: one pass.
#[test]
fn levels_inside_a_loop_over_strata_are_one_pass() {
    let rows: [([f64; 5], [f64; 5]); 2] = [
        ([0.3, 0.3, 0.2, 0.15, 0.05], [0.1, 0.25, 0.25, 0.2, 0.2]),
        ([0.0, 0.1, 0.5, 0.2, 0.2], [0.3, 0.25, 0.2, 0.15, 0.1]),
    ];
    let mut checked = 0;
    for (p, q) in rows {
        for straddle in [Straddle::Once, Straddle::Independent] {
            for drafts in [2, 3] {
                let law = Stratified::new(Draft::new(&q).unwrap(), drafts, straddle);
                let strata = law.strata();
                let all = strata.strata();
                let mut alive: Vec<Vec<f64>> = all.iter().map(|own| vec![1.0; own.len()]).collect();
                let mut left = p;
                for j in (0..all.len()).rev() {
                    for level in [0.8, 0.5, 0.2, 0.0] {
                        let offered = strata.weighed(j, |at, place| &alive[at][place]);
                        for ((share, mass), alive) in all[j].iter().zip(offered).zip(&mut alive[j])
                        {
                            let wanted = (left[share.token] - level * mass) / (1.0 - level);
                            let given = wanted.clamp(0.0, mass);
                            left[share.token] -= given;
                            *alive *= if mass > 0.0 { 1.0 - given / mass } else { 1.0 };
                        }
                    }
                }
                let sure = law.certain().len();
                law.for_each_tuple(&mut |tuple, _| {
                    let found = in_turn(&LevelStep::one(straddle), &p, &q, tuple);
                    let mut refused = 1.0;
                    for (j, own) in all.iter().enumerate().rev() {
                        let token = tuple[sure + j] as usize;
                        let place = own.iter().position(|share| share.token == token).unwrap();
                        let kept = refused * (1.0 - alive[j][place]);
                        assert!((found.accepted[sure + j] - kept).abs() < 1e-12);
                        refused *= alive[j][place];
                    }
                    checked += 1;
                });
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Of one draft every law that draws it from q is q.
fn rule_is_fit(law: SchemeName) -> bool {
    law == SchemeName::WITH_REPLACEMENT || law == SchemeName::WITHOUT_REPLACEMENT
}

/// Drafts that are drawn one after another by weights have the tuple law of their scheme.
#[test]
fn next_drafts_make_the_tuples_of_their_law() {
    let q = [0.5, 0.125, 0.25, 0.125];
    let mut laws = 0;
    for law in SchemeName::ALL {
        let (Some(_), MadeOf::OneDraft(made)) = (law.entry().next_draft, law.entry().made_of)
        else {
            continue;
        };
        laws += 1;
        for drafts in 1..=3 {
            let scheme = made(Draft::new(&q).unwrap(), drafts);
            let mut total = 0.0;
            scheme.for_each_tuple(&mut |tuple, mass| {
                let (mut chance, mut weights) = (1.0, Vec::new());
                let drafting = law.drafting(&q, tuple.len());
                for (place, &token) in tuple.iter().enumerate() {
                    drafting.next(&tuple[..place], &mut weights);
                    chance *= weights[token as usize] / weights.iter().sum::<f64>();
                }
                assert!(
                    (chance - mass).abs() < 1e-15,
                    "{law} {tuple:?} {chance} {mass}"
                );
                total += chance;
            });
            assert!((total - 1.0).abs() < 1e-15, "{law} {drafts}");
        }
    }
    assert!(laws >= 5, "{laws}");
}
