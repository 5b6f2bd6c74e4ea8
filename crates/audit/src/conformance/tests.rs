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
                    for &inside in situation.places(rule, false) {
                        let vector = situation.vector(rule, vocabulary, drafts, inside, 0);
                        let laws = Laws::new(rule, &vector, true).unwrap();
                        check(rule, situation, vector, laws);
                    }
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
    if rule == RuleName::LEVEL_4 {
        return by_level(&p[0], &q[0], &vector.drafts);
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

/// `level-4` of drafts of strata, with every tuple that can be drafted and the part of it that no
/// pass has accepted.
fn by_level(p: &[f64], q: &[f64], drafts: &[u32]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let mut order: Vec<usize> = (0..q.len()).filter(|&x| q[x] > 0.0).collect();
    order.sort_by(|&a, &b| q[b].total_cmp(&q[a]).then(a.cmp(&b)));
    let mut sure = Vec::new();
    let rest = |order: &[usize]| order.iter().rev().map(|&x| q[x]).sum::<f64>();
    while sure.len() + 1 < drafts.len()
        && (drafts.len() - sure.len()) as f64 * q[order[0]] >= rest(&order) * (1.0 - 1e-14)
    {
        sure.push(order.remove(0));
    }
    let (count, rest) = (drafts.len() - sure.len(), rest(&order));
    // What each token has of each stratum.
    let mut strata = vec![Vec::new(); count];
    let mut begin = 0.0;
    for x in order {
        let end = begin + count as f64 * q[x] / rest;
        for (j, stratum) in strata.iter_mut().enumerate() {
            let cut = if j + 1 < count {
                j as f64 + 1.0
            } else {
                f64::INFINITY
            };
            let share = f64::min(end, cut) - f64::max(begin, j as f64);
            if share > 1e-13 || (share > 0.0 && q[x] * 1e6 < rest) {
                stratum.push((x, share));
            }
        }
        begin = end;
    }
    let share = |j: usize, x: usize| {
        let found = strata[j].iter().find(|one| one.0 == x);
        found.map_or(0.0, |one| one.1)
    };
    let mut tuples = vec![(Vec::new(), 1.0)];
    for (j, stratum) in strata.iter().enumerate() {
        let over = (stratum.iter()).find(|one| j > 0 && share(j - 1, one.0) > 0.0);
        let mut next = Vec::new();
        for (tuple, mass) in tuples {
            for &(x, own) in stratum {
                let given = match over {
                    None => own,
                    Some(&(token, behind)) => {
                        let chance = behind / (1.0 - share(j - 1, token));
                        let was = tuple.last() == Some(&token);
                        match (x == token, was) {
                            (true, true) => 0.0,
                            (true, false) => chance,
                            (false, true) => own / (1.0 - behind),
                            (false, false) => (1.0 - chance) * own / (1.0 - behind),
                        }
                    }
                };
                if given > 0.0 {
                    let mut longer = tuple.clone();
                    longer.push(x);
                    next.push((longer, mass * given));
                }
            }
        }
        tuples = next;
    }
    let drawn: Vec<usize> = drafts.iter().map(|&x| x as usize).collect();
    let (mut left, mut alive) = (p.to_vec(), 1.0);
    let mut accepted = vec![0.0; drafts.len()];
    for level in [0.8, 0.5, 0.2, 0.0] {
        for j in (0..count).rev() {
            let mut mass = vec![0.0; q.len()];
            for (tuple, share) in &tuples {
                mass[tuple[j]] += share;
            }
            let kept: Vec<f64> = (left.iter().zip(&mass))
                .map(|(left, mass)| ((left - level * mass) / (1.0 - level)).clamp(0.0, *mass))
                .collect();
            let refused = |x: usize| match mass[x] > 0.0 {
                true => 1.0 - kept[x] / mass[x],
                false => 1.0,
            };
            for (tuple, share) in &mut tuples {
                *share *= refused(tuple[j]);
            }
            let own = refused(drawn[sure.len() + j]);
            accepted[sure.len() + j] += alive * (1.0 - own);
            alive *= own;
            for (left, kept) in left.iter_mut().zip(kept) {
                *left = (*left - kept).max(0.0);
            }
        }
    }
    let total: f64 = left.iter().sum();
    let last = |x: usize| match total > 1e-14 {
        true => alive * left[x] / total,
        false => 0.0,
    };
    let mut output: Vec<f64> = (0..q.len()).map(last).collect();
    for (accepted, &x) in accepted.iter_mut().zip(&sure) {
        *accepted = last(x);
    }
    for (accepted, &x) in accepted.iter().zip(&drawn).skip(sure.len()) {
        output[x] += accepted;
    }
    accepted.push(1.0 - accepted.iter().sum::<f64>());
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
        // Of strata the token of the situation is drafted where it first can be.
        let last = u32::try_from(vector.target[0].len() - 1).unwrap();
        let place = vector.drafts.iter().position(|&x| x == last);
        let place = place.filter(|_| rule == RuleName::LEVEL_4).unwrap_or(0);
        let token = vector.drafts[place] as usize;
        let (p, q) = (vector.target[0][token], vector.draft[0][token]);
        let keeps = laws.keeps[place];
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
            Situation::Close if rule != RuleName::LEVEL_4 => assert!(keeps > 0.5 && keeps < 1.0),
            _ => {}
        }
        if rule.tests_drafts() && rule.entry().drafts.are_distinct() {
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
        let mut vector = situation.vector(RuleName::RRS, 6, 2, false, 1);
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
