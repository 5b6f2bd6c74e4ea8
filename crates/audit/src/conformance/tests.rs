use super::laws::Laws;
use super::situation::Situation;
use super::*;

/// Every vector of these sizes.
fn each(
    vocabularies: &[usize],
    mut check: impl FnMut(RuleName, Situation, situation::Vector, Laws),
) {
    for rule in rules() {
        for &vocabulary in vocabularies {
            for &drafts in rule.entry().vectors.unwrap().drafts {
                for situation in Situation::of(rule, vocabulary, drafts, false) {
                    let vector = situation.vector(rule, vocabulary, drafts, 0);
                    let laws = Laws::new(rule, &vector, true).unwrap();
                    check(rule, situation, vector, laws);
                }
            }
        }
    }
}

fn normal(row: &[f32]) -> Vec<f64> {
    let total: f64 = row.iter().map(|&x| f64::from(x)).sum();
    row.iter().map(|&x| f64::from(x) / total).collect()
}

/// The laws again, from the rules' words, without the verifiers.
fn derived(rule: RuleName, vector: &situation::Vector) -> (Vec<f64>, Vec<Vec<f64>>) {
    let p: Vec<Vec<f64>> = vector.target.iter().map(|row| normal(row)).collect();
    let q: Vec<Vec<f64>> = vector.draft.iter().map(|row| normal(row)).collect();
    let positive = |p: &[f64], q: &[f64]| -> Vec<f64> {
        // Exactly equal rows leave nothing, whatever their sums round to.
        let left: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p - q).max(0.0)).collect();
        let total: f64 = left.iter().sum();
        left.iter()
            .map(|x| if total > 0.0 { x / total } else { 0.0 })
            .collect()
    };
    let keep = |p: f64, q: f64| match (p, q) {
        (0.0, _) => 0.0,
        (p, q) if p >= q => 1.0,
        (p, q) => p / q,
    };
    if rule.is_chain() {
        let (mut reached, mut accepted, mut next) = (1.0, Vec::new(), Vec::new());
        for (k, &token) in vector.drafts.iter().enumerate() {
            let kept = keep(p[k][token as usize], q[k][token as usize]);
            accepted.push(reached * (1.0 - kept));
            next.push(positive(&p[k], &q[k]));
            reached *= kept;
        }
        accepted.push(reached);
        next.push(p[vector.drafts.len()].clone());
        return (accepted, next);
    }
    if rule == RuleName::EXACT_MATCH {
        let mut accepted: Vec<f64> = Vec::new();
        for (k, token) in vector.drafts.iter().enumerate() {
            let again = vector.drafts[..k].contains(token);
            accepted.push(if again { 0.0 } else { p[0][*token as usize] });
        }
        accepted.push(1.0 - accepted.iter().sum::<f64>());
        return (accepted, vec![p[0].clone()]);
    }
    let (mut r, mut row, mut reached) = (p[0].clone(), q[0].clone(), 1.0);
    let (mut accepted, mut output) = (Vec::new(), vec![0.0; p[0].len()]);
    for &token in &vector.drafts {
        let kept = keep(r[token as usize], row[token as usize]);
        accepted.push(reached * kept);
        output[token as usize] += reached * kept;
        reached *= 1.0 - kept;
        r = positive(&r, &row);
        if rule == RuleName::RRS_WO {
            row[token as usize] = 0.0;
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= total);
        }
    }
    accepted.push(reached);
    output
        .iter_mut()
        .zip(&r)
        .for_each(|(out, r)| *out += reached * r);
    (accepted, vec![output])
}

#[test]
fn laws_are_those_that_the_words_say() {
    let mut checked = 0;
    each(&[2, 3, 5, 8, 40], |rule, situation, vector, laws| {
        let sum: f64 = laws.accepted.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{rule} {situation:?}");
        if !vector.possible {
            return;
        }
        let (accepted, next) = derived(rule, &vector);
        for (k, (mine, other)) in laws.accepted.iter().zip(&accepted).enumerate() {
            assert!(
                (mine - other).abs() < 1e-12,
                "{rule} {situation:?} {k}: {mine} {other}"
            );
        }
        assert_eq!(laws.accepted.len(), accepted.len());
        for (k, (mine, other)) in laws.next.iter().zip(&next).enumerate() {
            // Residuals of rows that differ by rounding alone have no law to speak of.
            if rule.is_chain() && laws.accepted[k] < 1e-9 {
                continue;
            }
            for (token, (x, y)) in mine.iter().zip(other).enumerate() {
                assert!(
                    (x - y).abs() < 1e-6,
                    "{rule} {situation:?} {k} {token}: {x} {y}"
                );
            }
        }
        checked += 1;
    });
    assert!(checked > 200, "{checked}");
}

#[test]
fn situations_are_what_they_say() {
    let mut seen = std::collections::HashSet::new();
    each(&[8, 17], |rule, situation, vector, laws| {
        seen.insert(situation);
        let token = vector.drafts[0] as usize;
        let (p, q) = (vector.target[0][token], vector.draft[0][token]);
        let keeps = laws.keeps[0];
        match situation {
            Situation::Equal if rule == RuleName::TOKEN => assert_eq!(keeps, 1.0),
            Situation::Disjoint | Situation::ZeroTarget => assert_eq!((p, keeps), (0.0, 0.0)),
            Situation::ZeroDraft => assert!(p > 0.0 && q == 0.0 && !vector.possible),
            Situation::ZeroOverZero => assert!(p == 0.0 && q == 0.0 && !vector.possible),
            Situation::TinyResidual if rule == RuleName::TOKEN => {
                // Rejected half of the time, and then token 0 comes out for certain.
                assert_eq!((keeps, laws.next[0][0]), (0.5, 1.0));
            }
            Situation::Duplicate => assert_eq!(vector.drafts[0], vector.drafts[1]),
            Situation::Close => assert!(keeps > 0.5 && keeps < 1.0),
            _ => {}
        }
        if rule == RuleName::RRS_WO {
            let mut distinct = vector.drafts.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), vector.drafts.len());
        }
    });
    assert_eq!(seen.len(), Situation::ALL.len());
}

#[test]
fn the_law_of_all_drafts_is_the_targets() {
    // Summed over all drafts with their probability, the output has law p.
    for situation in [Situation::Random, Situation::Close, Situation::TinyResidual] {
        let mut vector = situation.vector(RuleName::RRS, 6, 2, 1);
        let (p, q) = (normal(&vector.target[0]), normal(&vector.draft[0]));
        let mut total = [0.0; 6];
        for a in 0..6 {
            for b in 0..6 {
                vector.drafts = vec![a, b];
                let laws = Laws::new(RuleName::RRS, &vector, true).unwrap();
                let mass = q[a as usize] * q[b as usize];
                for (sum, x) in total.iter_mut().zip(&laws.next[0]) {
                    *sum += mass * x;
                }
            }
        }
        for (x, y) in total.iter().zip(&p) {
            assert!((x - y).abs() < 1e-12, "{situation:?}: {x} {y}");
        }
    }
}

#[test]
fn files_are_the_same_for_the_same_seed() {
    let settings = |seed: u64| Settings {
        vocabularies: vec![2, 7],
        rules: rules(),
        seed,
    };
    let one = vectors(&settings(3)).unwrap();
    assert_eq!(one, vectors(&settings(3)).unwrap());
    assert_ne!(one, vectors(&settings(4)).unwrap());
    let wrong = Settings {
        vocabularies: vec![1],
        ..settings(0)
    };
    assert!(
        vectors(&wrong)
            .unwrap_err()
            .to_string()
            .contains("from 2 to")
    );
}
