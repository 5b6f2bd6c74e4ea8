use super::*;
use crate::problem::Problem;
use crate::scheme::MadeOf;
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

/// What comes out, given the drafts.
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
        let (Some(step), Drafts::Drawn(_) | Drafts::Any) = (rule.entry().step, rule.entry().drafts)
        else {
            continue;
        };
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
                        || rule.entry().drafts == Drafts::Drawn(law);
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
                for (place, &token) in tuple.iter().enumerate() {
                    law.next_draft(&q, &tuple[..place], tuple.len(), &mut weights);
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
