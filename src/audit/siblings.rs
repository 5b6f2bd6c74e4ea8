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
        (_, Rule::OneHot | Rule::ExactMatch | Rule::Threshold(_)) => false,
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

/// The smallest rho in [1, n] with rho b >= 1 - (1-b)^n, b = sum of min(p/rho, q).
fn k_seq_factor(p: &[f64], q: &[f64], drafts: usize) -> f64 {
    let fits = |factor: f64| {
        let b: f64 = p.iter().zip(q).map(|(p, q)| (p / factor).min(*q)).sum();
        factor * b >= 1.0 - (1.0 - b).powi(drafts as i32)
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

    #[test]
    fn several_exact_matches_put_out_p() {
        let found = decide(Rule::ExactMatch, &Engine::HONEST, &at(), &[2, 0, 2]);
        assert_eq!(found.tokens, [0, 2]);
        assert!((found.law[0] - 0.4).abs() < 1e-15 && (found.law[1] - 0.2).abs() < 1e-15);
        assert!((found.correction[1] - 0.75).abs() < 1e-15 && found.correction[0] == 0.0);
    }
}
