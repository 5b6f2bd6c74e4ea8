//! What an engine does with several drafts for one position.

use super::engine::{Change, Corrects, Engine, Keeps, Position, change, normalise};
use super::rule::{Drafts, Rule};

/// The law of the next of several drafts, given those before; `None` where nothing is
/// claimed, or every token was drafted.
pub(super) fn next_draft(
    rule: Rule,
    engine: &Engine,
    at: &Position<'_>,
    earlier: &[usize],
) -> Option<Vec<f64>> {
    let drawn = engine.draws_as.unwrap_or(rule).drafts();
    let likeliest = engine.likeliest || (drawn == Drafts::Likeliest && !engine.draws);
    if drawn == Drafts::Any && !engine.draws && !engine.likeliest {
        return None;
    }
    let mut law = if likeliest {
        at.q.to_vec()
    } else {
        change(at.q, engine.draft, at)
    };
    if likeliest || drawn == Drafts::Distinct {
        for &token in earlier {
            if let Some(mass) = law.get_mut(token) {
                *mass = 0.0;
            }
        }
        if !normalise(&mut law) {
            return None;
        }
    }
    if likeliest {
        law = change(&law, Change::Argmax, at);
    }
    Some(law)
}

/// What is made of drafts.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    /// The distinct drafts.
    pub tokens: Vec<usize>,
    /// P(each comes out as a draft that is kept), and at last P(none is).
    pub law: Vec<f64>,
    /// The law of what comes out where none is.
    pub correction: Vec<f64>,
}

/// What an engine makes of drafts. O(nV), for k-seq 60 times that.
pub(super) fn decide(
    rule: Rule,
    engine: &Engine,
    at: &Position<'_>,
    drafts: &[usize],
) -> Decisions {
    let rule = engine.tests_as.unwrap_or(rule);
    let p = change(at.p, engine.target, at);
    let q = change(at.q, engine.ratio, at);
    let mut tokens: Vec<usize> = drafts.to_vec();
    tokens.sort_unstable();
    tokens.dedup();
    let mut law = vec![0.0; tokens.len() + 1];
    let get = |row: &[f64], token: usize| row.get(token).copied().unwrap_or(0.0);
    let mut left = p.clone();
    let mut alive = 1.0;
    let mut add = |token: usize, mass: f64| {
        if let Ok(place) = tokens.binary_search(&token)
            && let Some(slot) = law.get_mut(place)
        {
            *slot += mass;
        }
    };
    let scale = match engine.keeps {
        Keeps::Over(factor) => factor,
        _ => 1.0,
    };
    let one_by_one = match (engine.keeps, rule) {
        (Keeps::Always | Keeps::IfLikeliest, _) => true,
        (Keeps::Ratio, _) => true,
        (Keeps::Target, _) => false,
        (_, Rule::OneHot | Rule::ExactMatch | Rule::Threshold(_) | Rule::Text) => false,
        _ => true,
    };
    if one_by_one {
        let factor = if rule == Rule::KSeq {
            k_seq_factor(&p, &q, drafts.len())
        } else {
            1.0
        };
        let mut offered = q.clone();
        let best = at.likeliest(&p);
        for (index, &token) in drafts.iter().enumerate() {
            if rule == Rule::RrsWo && index > 0 {
                let before = drafts.get(index - 1).copied().unwrap_or(usize::MAX);
                if let Some(mass) = offered.get_mut(before) {
                    *mass = 0.0;
                }
                if !normalise(&mut offered) {
                    break;
                }
            }
            let wanted = get(if rule == Rule::KSeq { &p } else { &left }, token) / factor / scale;
            let offer = get(&offered, token);
            let keep = match engine.keeps {
                Keeps::Always => 1.0,
                Keeps::IfLikeliest => f64::from(u8::from(token == best)),
                _ if wanted <= 0.0 => 0.0,
                _ if wanted >= offer => 1.0,
                _ => wanted / offer,
            };
            add(token, alive * keep);
            alive *= 1.0 - keep;
            if rule != Rule::KSeq {
                let mut next: Vec<f64> = left
                    .iter()
                    .zip(&offered)
                    .map(|(p, q)| (p - q).max(0.0))
                    .collect();
                if normalise(&mut next) {
                    left = next;
                }
            }
        }
        if rule == Rule::KSeq {
            let taken: Vec<f64> = p
                .iter()
                .zip(&q)
                .map(|(p, q)| (p / factor).min(*q))
                .collect();
            let miss = 1.0 - taken.iter().sum::<f64>();
            let share: f64 = (0..drafts.len()).map(|k| miss.powi(k as i32)).sum();
            for (left, taken) in left.iter_mut().zip(&taken) {
                *left = (*left - share * taken).max(0.0);
            }
            // At the root what p > rho q leaves is all there is: rounding is not.
            for (left, (p, q)) in left.iter_mut().zip(p.iter().zip(&q)) {
                if *p <= factor * q * (1.0 + 1e-12) {
                    *left = 0.0;
                }
            }
            if !normalise(&mut left) {
                left.clone_from(&p);
            }
        }
    } else {
        let factor = match (engine.keeps, rule) {
            (Keeps::Target, _) => 1.0,
            (_, Rule::Threshold(factor)) => factor,
            _ => 1.0,
        } * scale;
        let (mut covered, mut seen) = (0.0f64, Vec::new());
        for &token in drafts {
            if seen.contains(&token) {
                continue;
            }
            seen.push(token);
            let next = covered + get(&p, token);
            let gained = (next / factor).min(1.0) - (covered / factor).min(1.0);
            add(token, gained);
            alive -= gained;
            covered = next;
            if let Some(mass) = left.get_mut(token) {
                *mass = 0.0;
            }
        }
        if !normalise(&mut left) {
            left.clone_from(&p);
        }
    }
    let correction = match engine.corrects {
        Corrects::Rule => left,
        Corrects::Target => p,
        Corrects::Draft => q,
        Corrects::Residual | Corrects::OwnNoise => {
            let mut first: Vec<f64> = p.iter().zip(&q).map(|(p, q)| (p - q).max(0.0)).collect();
            if !normalise(&mut first) {
                first.clone_from(&p);
            }
            first
        }
        Corrects::OffDraft => {
            let mut off = p.clone();
            for &token in &tokens {
                if let Some(mass) = off.get_mut(token) {
                    *mass = 0.0;
                }
            }
            if !normalise(&mut off) {
                off.clone_from(&p);
            }
            off
        }
    };
    if let Some(none) = law.last_mut() {
        *none = alive.max(0.0);
    }
    Decisions {
        tokens,
        law,
        correction,
    }
}

/// The smallest rho in [1, n] with rho >= (1 - (1-b)^n)/b, b = sum of min(p/rho, q). The
/// quotient is summed as powers of 1-b: where p = q, rho b is 1 for every rho, and b alone
/// would not tell them apart.
fn k_seq_factor(p: &[f64], q: &[f64], drafts: usize) -> f64 {
    let fits = |factor: f64| {
        let b: f64 = p.iter().zip(q).map(|(p, q)| (p / factor).min(*q)).sum();
        let share: f64 = (0..drafts).map(|k| (1.0 - b).powi(k as i32)).sum();
        b <= 0.0 || share <= factor
    };
    let (mut low, mut high) = (1.0, drafts.max(1) as f64);
    if fits(low) {
        return low;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Draft, Target};
    use crate::problem::Problem;
    use crate::scheme::{WithReplacement, WithoutReplacement};
    use crate::verifier::{KSeq, Rrs, RrsWo, Verifier};

    const P: [f64; 4] = [0.4, 0.3, 0.2, 0.1];
    const Q: [f64; 4] = [0.1, 0.2, 0.6, 0.1];

    fn at() -> Position<'static> {
        Position {
            p: &P,
            q: &Q,
            rest: false,
            reach: 1.0,
        }
    }

    /// The law of the output given drafts, from the verifiers of the tables.
    fn expected(verifier: &dyn Verifier, tuple: &[u32]) -> Vec<f64> {
        let law = verifier.conditional(tuple);
        let mut out = vec![0.0; 4];
        for (token, mass) in tuple.iter().zip(&law.accepted) {
            out[*token as usize] += mass;
        }
        for (out, mass) in out.iter_mut().zip(law.residual.iter()) {
            *out += law.rejected * mass;
        }
        out
    }

    #[test]
    fn decisions_are_those_of_the_verifiers() {
        let p = || Target::new(&P).unwrap();
        let q = || Draft::new(&Q).unwrap();
        let iid = Problem::new("iid", p(), WithReplacement::new(q(), 2)).unwrap();
        let sequential = Problem::new("seq", p(), WithoutReplacement::new(q(), 2)).unwrap();
        let rrs = Rrs::new(&iid).unwrap();
        let k_seq = KSeq::new(&iid).unwrap();
        let rrs_wo = RrsWo::new(&sequential).unwrap();
        let all: [(Rule, &dyn Verifier); 3] = [
            (Rule::Rrs, &rrs),
            (Rule::KSeq, &k_seq),
            (Rule::RrsWo, &rrs_wo),
        ];
        for (rule, verifier) in all {
            for a in 0..4u32 {
                for b in 0..4u32 {
                    if rule == Rule::RrsWo && a == b {
                        continue;
                    }
                    let found = decide(rule, &Engine::HONEST, &at(), &[a as usize, b as usize]);
                    let mut out = [0.0; 4];
                    for (token, mass) in found.tokens.iter().zip(&found.law) {
                        out[*token] += mass;
                    }
                    for (out, mass) in out.iter_mut().zip(&found.correction) {
                        *out += found.law.last().unwrap() * mass;
                    }
                    for (x, y) in out.iter().zip(expected(verifier, &[a, b])) {
                        assert!((x - y).abs() < 1e-12, "{rule} {a} {b} {x} {y}");
                    }
                }
            }
        }
    }

    /// What comes out as each token, and as a draft that is kept.
    fn found(rule: Rule, engine: &Engine, at: &Position<'_>, drafts: &[usize]) -> Vec<f64> {
        let found = decide(rule, engine, at, drafts);
        let mut kept = vec![0.0; at.p.len() + 1];
        for (token, mass) in found.tokens.iter().zip(&found.law) {
            kept[*token] += mass;
        }
        kept[at.p.len()] = *found.law.last().unwrap();
        assert_eq!(found.law.len(), found.tokens.len() + 1);
        assert!((found.law.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        assert!((found.correction.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        kept
    }

    fn near(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len()
            && found
                .iter()
                .zip(expected)
                .all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// P(each is kept), P(none is), by hand.
    #[test]
    fn what_engines_keep_of_several_drafts() {
        let honest = Engine::HONEST;
        let keeps = |keeps| Engine { keeps, ..honest };
        let tests_as = Engine {
            tests_as: Some(Rule::RrsWo),
            ..honest
        };
        let argmax = Engine {
            target: Change::Argmax,
            ..honest
        };
        let top = Engine {
            ratio: Change::Top(1),
            ..honest
        };
        type Case = (Rule, Engine, &'static [usize], [f64; 5]);
        let cases: [Case; 26] = [
            // 2 is kept with 1/3; then (p - q)+ is (3, 1, 0, 0)/4.
            (Rule::Rrs, honest, &[2, 0], [2. / 3., 0., 1. / 3., 0., 0.]),
            (Rule::Rrs, honest, &[2, 2], [0., 0., 1. / 3., 0., 2. / 3.]),
            (Rule::Rrs, honest, &[2, 3], [0., 0., 1. / 3., 0., 2. / 3.]),
            (Rule::Rrs, honest, &[3, 2], [0., 0., 0., 1., 0.]),
            (Rule::Rrs, honest, &[], [0., 0., 0., 0., 1.]),
            (
                Rule::Rrs,
                keeps(Keeps::Always),
                &[2, 0],
                [0., 0., 1., 0., 0.],
            ),
            (
                Rule::OneHot,
                keeps(Keeps::Always),
                &[2, 0],
                [0., 0., 1., 0., 0.],
            ),
            (
                Rule::Rrs,
                keeps(Keeps::IfLikeliest),
                &[2, 0],
                [1., 0., 0., 0., 0.],
            ),
            (
                Rule::OneHot,
                keeps(Keeps::IfLikeliest),
                &[2, 1],
                [0., 0., 0., 0., 1.],
            ),
            // 0.2/0.8 over 0.6, then (p - q)+ over 0.8 is above q.
            (
                Rule::Rrs,
                keeps(Keeps::Over(0.8)),
                &[2, 0],
                [7. / 12., 0., 5. / 12., 0., 0.],
            ),
            (
                Rule::Rrs,
                keeps(Keeps::Target),
                &[2, 0, 2],
                [0.4, 0., 0.2, 0., 0.4],
            ),
            (
                Rule::OneHot,
                keeps(Keeps::Ratio),
                &[2, 0],
                [2. / 3., 0., 1. / 3., 0., 0.],
            ),
            (Rule::OneHot, honest, &[2, 0], [0.4, 0., 0.2, 0., 0.4]),
            (
                Rule::Threshold(0.8),
                honest,
                &[2, 0],
                [0.5, 0., 0.25, 0., 0.25],
            ),
            (
                Rule::Threshold(0.5),
                honest,
                &[2, 0],
                [0.6, 0., 0.4, 0., 0.],
            ),
            (
                Rule::Threshold(0.5),
                honest,
                &[2, 0, 1],
                [0.6, 0., 0.4, 0., 0.],
            ),
            (
                Rule::Threshold(0.8),
                keeps(Keeps::Over(0.5)),
                &[2, 3],
                [0., 0., 0.5, 0.25, 0.25],
            ),
            (
                Rule::Threshold(0.5),
                keeps(Keeps::Target),
                &[2, 0],
                [0.4, 0., 0.2, 0., 0.4],
            ),
            // rho = 1.5: 2 is kept with 2/9, 3 with 2/3, 0 always.
            (Rule::KSeq, honest, &[2, 0], [7. / 9., 0., 2. / 9., 0., 0.]),
            (
                Rule::KSeq,
                honest,
                &[2, 3],
                [0., 0., 2. / 9., 14. / 27., 7. / 27.],
            ),
            (
                Rule::KSeq,
                honest,
                &[2, 2],
                [0., 0., 32. / 81., 0., 49. / 81.],
            ),
            // Behind 2, q is (1, 2, 0, 1)/4.
            (
                Rule::RrsWo,
                honest,
                &[2, 1],
                [0., 1. / 3., 1. / 3., 0., 1. / 3.],
            ),
            (
                Rule::Rrs,
                tests_as,
                &[2, 1],
                [0., 1. / 3., 1. / 3., 0., 1. / 3.],
            ),
            (
                Rule::RrsWo,
                honest,
                &[2, 1, 0],
                [1. / 3., 1. / 3., 1. / 3., 0., 0.],
            ),
            (Rule::Rrs, argmax, &[2, 0], [1., 0., 0., 0., 0.]),
            (Rule::Rrs, top, &[2, 0], [0.8, 0., 0.2, 0., 0.]),
        ];
        for (rule, engine, drafts, expected) in cases {
            let found = found(rule, &engine, &at(), drafts);
            assert!(
                near(&found, &expected),
                "{rule} {engine:?} {drafts:?}: {found:?}"
            );
        }
        // Where q has nothing left, later drafts are not tested.
        let alone = Position {
            q: &[0.0, 0.0, 1.0, 0.0],
            ..at()
        };
        let kept = found(Rule::RrsWo, &honest, &alone, &[2, 0]);
        assert!(near(&kept, &[0.0, 0.0, 0.2, 0.0, 0.8]), "{kept:?}");
    }

    #[test]
    fn what_engines_put_out_where_no_draft_is_kept() {
        let honest = Engine::HONEST;
        let corrects = |corrects| Engine { corrects, ..honest };
        let of = |rule: Rule, engine: &Engine, at: &Position<'_>, drafts: &[usize]| {
            decide(rule, engine, at, drafts).correction
        };
        type Case = (Rule, Corrects, &'static [usize], [f64; 4]);
        let cases: [Case; 12] = [
            (Rule::Rrs, Corrects::Rule, &[2], [0.75, 0.25, 0., 0.]),
            (
                Rule::Rrs,
                Corrects::Rule,
                &[2, 2],
                [13. / 14., 1. / 14., 0., 0.],
            ),
            (Rule::RrsWo, Corrects::Rule, &[2, 1], [1., 0., 0., 0.]),
            (Rule::KSeq, Corrects::Rule, &[2, 3], [1., 0., 0., 0.]),
            (Rule::OneHot, Corrects::Rule, &[2, 0], [0., 0.75, 0., 0.25]),
            (Rule::OneHot, Corrects::Rule, &[2, 0, 1, 3], P),
            (Rule::Rrs, Corrects::Target, &[2, 2], P),
            (Rule::Rrs, Corrects::Draft, &[2, 2], Q),
            (Rule::Rrs, Corrects::Residual, &[2, 2], [0.75, 0.25, 0., 0.]),
            (
                Rule::OneHot,
                Corrects::OwnNoise,
                &[2, 0],
                [0.75, 0.25, 0., 0.],
            ),
            (Rule::Rrs, Corrects::OffDraft, &[2, 0], [0., 0.75, 0., 0.25]),
            (Rule::Rrs, Corrects::OffDraft, &[2, 0, 1, 3], P),
        ];
        for (rule, how, drafts, expected) in cases {
            let found = of(rule, &corrects(how), &at(), drafts);
            assert!(
                near(&found, &expected),
                "{rule} {how:?} {drafts:?}: {found:?}"
            );
        }
        // Of equal rows nothing is left, and p stands in for it.
        let same = Position { q: &P, ..at() };
        for rule in [Rule::Rrs, Rule::KSeq] {
            assert!(near(&of(rule, &honest, &same, &[2, 0]), &P), "{rule}");
        }
        assert!(near(
            &of(Rule::Rrs, &corrects(Corrects::Residual), &same, &[2]),
            &P
        ));
        // k-seq, p = (1/2, 1/2, 0) and q = (1/4, 0, 3/4): b = 1/4 and rho = 7/4. What is left
        // of p is (1/2 - 7/16, 1/2, 0).
        let wide = Position {
            p: &[0.5, 0.5, 0.0],
            q: &[0.25, 0.0, 0.75],
            ..at()
        };
        let left = of(Rule::KSeq, &honest, &wide, &[2, 2]);
        assert!(near(&left, &[1. / 9., 8. / 9., 0.]), "{left:?}");
    }

    #[test]
    fn the_factor_of_k_seq_is_the_root() {
        for (p, q, drafts, expected) in [
            (&P[..], &Q[..], 2, 1.5),
            (&P, &Q, 1, 1.0),
            (&P, &P, 3, 1.0),
            (&P, &P, 16, 1.0),
            (&[0.7, 0.2, 0.1], &[0.7, 0.2, 0.1], 16, 1.0),
            // b = 1/2 up to rho = 2: rho/2 = 1 - 2^-n.
            (&[1.0, 0.0], &[0.5, 0.5], 2, 1.5),
            (&[1.0, 0.0], &[0.5, 0.5], 3, 1.75),
            // Where nothing meets, b = 0 and any factor fits.
            (&[1.0, 0.0], &[0.0, 1.0], 3, 1.0),
        ] {
            let found = k_seq_factor(p, q, drafts);
            assert!(
                (found - expected).abs() < 1e-12,
                "{drafts} {found} {expected}"
            );
        }
    }

    #[test]
    fn the_law_of_the_next_draft() {
        let honest = Engine::HONEST;
        let draws = Engine {
            draws: true,
            ..honest
        };
        let likeliest = Engine {
            likeliest: true,
            ..honest
        };
        let as_rule = |rule| Engine {
            draws_as: Some(rule),
            ..honest
        };
        let top = Engine {
            draft: Change::Top(2),
            ..honest
        };
        let all: &[usize] = &[0, 1, 2, 3];
        type Case<'a> = (Rule, Engine, &'a [usize], Option<[f64; 4]>);
        let cases: [Case<'_>; 20] = [
            (Rule::Rrs, honest, &[], Some(Q)),
            (Rule::Rrs, honest, &[2, 2], Some(Q)),
            (Rule::KSeq, honest, &[2], Some(Q)),
            (Rule::Rrs, top, &[2], Some([0., 0.25, 0.75, 0.])),
            (Rule::RrsWo, honest, &[], Some(Q)),
            (Rule::RrsWo, honest, &[2], Some([0.25, 0.5, 0., 0.25])),
            (Rule::RrsWo, honest, &[2, 1], Some([0.5, 0., 0., 0.5])),
            (Rule::RrsWo, honest, all, None),
            (Rule::RrsWo, top, &[1], Some([0., 0., 1., 0.])),
            (
                Rule::Rrs,
                as_rule(Rule::RrsWo),
                &[2],
                Some([0.25, 0.5, 0., 0.25]),
            ),
            (Rule::RrsWo, as_rule(Rule::Rrs), &[2], Some(Q)),
            (Rule::OneHot, honest, &[], Some([0., 0., 1., 0.])),
            (Rule::OneHot, honest, &[2], Some([0., 1., 0., 0.])),
            (Rule::OneHot, honest, all, None),
            (Rule::OneHot, draws, &[2], Some(Q)),
            (Rule::Rrs, likeliest, &[2], Some([0., 1., 0., 0.])),
            (Rule::ExactMatch, honest, &[], None),
            (Rule::ExactMatch, draws, &[2], Some(Q)),
            (Rule::ExactMatch, likeliest, &[], Some([0., 0., 1., 0.])),
            (Rule::ExactMatch, likeliest, &[2], Some([0., 1., 0., 0.])),
        ];
        for (rule, engine, earlier, expected) in cases {
            let found = next_draft(rule, &engine, &at(), earlier);
            assert_eq!(found.is_some(), expected.is_some(), "{rule} {earlier:?}");
            if let (Some(found), Some(expected)) = (found, expected) {
                assert!(near(&found, &expected), "{rule} {earlier:?}: {found:?}");
            }
        }
    }

    #[test]
    fn several_exact_matches_put_out_p() {
        let found = decide(Rule::ExactMatch, &Engine::HONEST, &at(), &[2, 0, 2]);
        assert_eq!(found.tokens, [0, 2]);
        assert!((found.law[0] - 0.4).abs() < 1e-15 && (found.law[1] - 0.2).abs() < 1e-15);
        assert!((found.correction[1] - 0.75).abs() < 1e-15 && found.correction[0] == 0.0);
    }
}
