//! What an engine does with several drafts for one position.

use crate::audit::model::engine::{Corrects, Engine, Keeps, Position};
use crate::audit::model::engine::{change, get, or_else};
use crate::audit::model::rule::Rule;
use specgap_core::rule::{Drafts, InTurn, LevelStep, Step, TargetMass, normalise};
use specgap_core::scheme::{Drafting, SchemeName, Straddle};
use specgap_number::distribution::token_id;

/// The law and the row that an engine draws drafts from; `None` where nothing is claimed.
pub(crate) fn drawn_from(
    rule: Rule,
    engine: &Engine,
    at: &Position<'_>,
) -> Option<(SchemeName, Vec<f64>)> {
    let drawn = engine.draws_as.unwrap_or(rule).drafts();
    let likeliest = engine.likeliest || (drawn == Drafts::Likeliest && !engine.draws);
    let law = match drawn {
        _ if likeliest => SchemeName::TOP,
        Drafts::Drawn(law) => law,
        // What is claimed of nothing; a simulated engine draws by itself.
        Drafts::Any if !engine.draws => return None,
        Drafts::Likeliest | Drafts::Any => SchemeName::WITH_REPLACEMENT,
    };
    let row = if likeliest {
        let mut listed = at.q.to_vec();
        if let Some(rest) = listed.last_mut().filter(|_| at.rest) {
            *rest = 0.0;
        }
        listed
    } else {
        change(at.q, engine.draft, at)
    };
    Some((law, row))
}

/// The law of the next draft, given those before; `None` where every token was drafted.
pub(crate) fn next_draft(drafting: &Drafting<'_>, earlier: &[usize]) -> Option<Vec<f64>> {
    let before: Vec<u32> = earlier.iter().map(|&token| token_id(token)).collect();
    let mut weights = Vec::new();
    drafting.next(&before, &mut weights);
    normalise(&mut weights).then_some(weights)
}

/// What is made of drafts.
#[derive(Clone, Debug)]
pub(crate) struct Decisions {
    /// The distinct drafts.
    pub tokens: Vec<usize>,
    /// P(each comes out as a draft that is kept), and at last P(none is).
    pub law: Vec<f64>,
    /// The law of what comes out where none is.
    pub correction: Vec<f64>,
}

/// The distinct drafts, and with what each comes out as one that is kept, and at last that none is,
/// where each in turn is kept with this.
pub(crate) fn kept_as(
    drafts: &[usize],
    keeps: impl Iterator<Item = f64>,
) -> (Vec<usize>, Vec<f64>) {
    let mut tokens: Vec<usize> = drafts.to_vec();
    tokens.sort_unstable();
    tokens.dedup();
    let mut law = vec![0.0; tokens.len() + 1];
    let mut alive = 1.0;
    for (token, keep) in drafts.iter().zip(keeps) {
        if let Ok(place) = tokens.binary_search(token)
            && let Some(slot) = law.get_mut(place)
        {
            *slot += alive * keep;
        }
        alive *= 1.0 - keep;
    }
    if let Some(none) = law.last_mut() {
        *none = alive.max(0.0);
    }
    (tokens, law)
}

impl Decisions {
    /// Lets a correction that is one of the drafts look like a draft that was kept.
    pub(crate) fn by_output(&mut self) {
        let Some((none, kept)) = self.law.split_last_mut() else {
            return;
        };
        let mut hits = 0.0;
        for (slot, &token) in kept.iter_mut().zip(&self.tokens) {
            if let Some(mass) = self.correction.get_mut(token).filter(|mass| **mass > 0.0) {
                *slot += *none * *mass;
                hits += std::mem::take(mass);
            }
        }
        if hits > 0.0 {
            *none *= (1.0 - hits).max(0.0);
            specgap_core::rule::normalise(&mut self.correction);
        }
    }
}

/// Returns what an engine wants of drafts over what is offered, one after another. O(nV), for k-seq
/// 60 times that.
pub(crate) fn tested(rule: Rule, engine: &Engine, at: &Position<'_>, drafts: &[usize]) -> InTurn {
    let rule = engine.tests_as.unwrap_or(rule);
    let p = change(at.p, engine.target, at);
    let q = change(at.q, engine.ratio, at);
    let tuple: Vec<u32> = drafts.iter().map(|&token| token_id(token)).collect();
    let by = |step: &dyn Step| step.in_turn(&p, &q, &tuple);
    let independent = Drafts::Drawn(SchemeName::STRATIFIED_INDEPENDENT);
    match engine.keeps {
        // One pass over strata.
        _ if engine.levels_inside && rule.drafts() == independent => {
            by(&LevelStep::one(Straddle::Independent))
        }
        _ if engine.levels_inside => by(&LevelStep::one(Straddle::Once)),
        Keeps::Target => by(&TargetMass { over: 1.0 }),
        _ if rule.tests_drafts() => rule.with_step(1.0, by),
        // One that always or never looks at q tests drafts in turn, whatever it claims.
        Keeps::Always | Keeps::IfLikeliest | Keeps::Ratio => Rule::RRS.with_step(1.0, by),
        Keeps::Over(factor) => rule.with_step(factor, by),
        Keeps::Rule => rule.with_step(1.0, by),
    }
}

/// Returns what an engine makes of drafts that it has [`tested`]. O(nV).
pub(crate) fn decide(
    rule: Rule,
    engine: &Engine,
    at: &Position<'_>,
    drafts: &[usize],
    InTurn { ratios, residual }: &InTurn,
) -> Decisions {
    let rule = engine.tests_as.unwrap_or(rule);
    let p = change(at.p, engine.target, at);
    let q = change(at.q, engine.ratio, at);
    // Where a rule that tests in turn is scaled, its ratios are.
    let scale = match engine.keeps {
        Keeps::Over(factor) if rule.tests_drafts() => factor,
        _ => 1.0,
    };
    let best = at.likeliest(&p);
    let in_turn = drafts.iter().zip(ratios);
    let keeps = in_turn.map(|(&token, &ratio)| match engine.keeps {
        Keeps::Always => 1.0,
        Keeps::IfLikeliest => f64::from(u8::from(token == best)),
        // Of p itself, whatever was refused before.
        Keeps::Ratio if rule.tests_drafts() => {
            (get(&p, token) / get(&q, token).max(1e-300)).min(1.0)
        }
        _ => (ratio / scale).min(1.0),
    });
    let (tokens, law) = kept_as(drafts, keeps);
    let correction = match engine.corrects {
        Corrects::Rule => residual.clone(),
        Corrects::Target => p,
        Corrects::Draft => q,
        Corrects::Residual | Corrects::OwnNoise => {
            let first = p.iter().zip(&q).map(|(p, q)| (p - q).max(0.0));
            or_else(first.collect(), &p)
        }
        Corrects::OffDraft => {
            let mut off = p.clone();
            for &token in &tokens {
                if let Some(mass) = off.get_mut(token) {
                    *mass = 0.0;
                }
            }
            or_else(off, &p)
        }
    };
    Decisions {
        tokens,
        law,
        correction,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::model::engine::{Change, engine};

    /// The law of the next of so many drafts.
    fn next_law(
        rule: Rule,
        engine: &Engine,
        at: &Position<'_>,
        count: usize,
        earlier: &[usize],
    ) -> Option<Vec<f64>> {
        let (law, row) = drawn_from(rule, engine, at)?;
        next_draft(&law.drafting(&row, count), earlier)
    }

    fn decided(rule: Rule, engine: &Engine, at: &Position<'_>, drafts: &[usize]) -> Decisions {
        decide(rule, engine, at, drafts, &tested(rule, engine, at, drafts))
    }

    use specgap_core::problem::Problem;
    use specgap_core::scheme::{WithReplacement, WithoutReplacement};
    use specgap_core::verifier::{KSeq, Rrs, RrsWo, Verifier};
    use specgap_number::distribution::{Draft, Target};

    const P: [f64; 4] = [0.4, 0.3, 0.2, 0.1];
    const Q: [f64; 4] = [0.1, 0.2, 0.6, 0.1];

    fn at() -> Position<'static> {
        Position::new(&P, &Q)
    }

    /// What is kept as each token, that nothing is, and what then comes out: by the verifiers of the
    /// tables.
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
            (Rule::RRS, &rrs),
            (Rule::K_SEQ, &k_seq),
            (Rule::RRS_WO, &rrs_wo),
        ];
        let tuples = (0..16u32).map(|both| [both / 4, both % 4]);
        for (rule, verifier) in all {
            // Drafts without replacement are distinct.
            let distinct = |[a, b]: &[u32; 2]| rule != Rule::RRS_WO || a != b;
            for tuple in tuples.clone().filter(distinct) {
                let law = verifier.conditional(&tuple);
                let mut expected = [0.0; 5];
                for (token, mass) in tuple.iter().zip(&law.accepted) {
                    expected[*token as usize] += mass;
                }
                expected[4] = law.rejected;
                let drafts = tuple.map(|token| token as usize);
                let kept = found(rule, &Engine::HONEST, &at(), &drafts);
                assert!(near(&kept, &expected), "{rule} {tuple:?}: {kept:?}");
                if law.rejected > 1e-9 {
                    let left = decided(rule, &Engine::HONEST, &at(), &drafts).correction;
                    assert!(near(&left, &law.residual), "{rule} {tuple:?}: {left:?}");
                }
            }
        }
    }

    /// Returns what comes out as each token, and as a draft that is kept.
    fn found(rule: Rule, engine: &Engine, at: &Position<'_>, drafts: &[usize]) -> Vec<f64> {
        let found = decided(rule, engine, at, drafts);
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
        let mut pairs = found.iter().zip(expected);
        found.len() == expected.len() && pairs.all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// P(each is kept), P(none is), by hand.
    #[test]
    fn what_engines_keep_of_several_drafts() {
        let honest = Engine::HONEST;
        let keeps = |keeps| engine!(keeps: keeps);
        let tests_as = engine!(tests_as: Some(Rule::RRS_WO));
        let argmax = engine!(target: Change::Argmax);
        let top = engine!(ratio: Change::Top(1));
        type Case = (Rule, Engine, &'static [usize], [f64; 5]);
        let (all, best) = (keeps(Keeps::Always), keeps(Keeps::IfLikeliest));
        let [over, by_half] = [0.8, 0.5].map(|over| keeps(Keeps::Over(over)));
        let by_p = keeps(Keeps::Target);
        let [wide, half] = [0.8, 0.5].map(|over| Rule::threshold(over).unwrap());
        let (third, first) = (1. / 3., 7. / 12.);
        let thirds = [third, third, third, 0., 0.];
        let of_two = [2. / 3., 0., third, 0., 0.];
        let of_p = [0.4, 0., 0.2, 0., 0.4];
        let (rrs, one_hot) = (Rule::RRS, Rule::ONE_HOT);
        let cases: [Case; 19] = [
            (rrs, honest, &[], [0., 0., 0., 0., 1.]),
            (rrs, all, &[2, 0], [0., 0., 1., 0., 0.]),
            (one_hot, all, &[2, 0], [0., 0., 1., 0., 0.]),
            (rrs, best, &[2, 0], [1., 0., 0., 0., 0.]),
            (one_hot, best, &[2, 1], [0., 0., 0., 0., 1.]),
            // 0.2/0.8 over 0.6, then (p - q)+ over 0.8 is above q.
            (rrs, over, &[2, 0], [first, 0., 1. - first, 0., 0.]),
            (rrs, by_p, &[2, 0, 2], of_p),
            (one_hot, keeps(Keeps::Ratio), &[2, 0], of_two),
            (one_hot, honest, &[2, 0], of_p),
            (Rule::EXACT_MATCH, honest, &[2, 0, 2], of_p),
            (wide, honest, &[2, 0], [0.5, 0., 0.25, 0., 0.25]),
            (half, honest, &[2, 0], [0.6, 0., 0.4, 0., 0.]),
            (half, honest, &[2, 0, 1], [0.6, 0., 0.4, 0., 0.]),
            (wide, by_half, &[2, 3], [0., 0., 0.5, 0.25, 0.25]),
            (half, by_p, &[2, 0], of_p),
            // Behind 2, q is (1, 2, 0, 1)/4.
            (rrs, tests_as, &[2, 1], [0., third, third, 0., third]),
            (Rule::RRS_WO, honest, &[2, 1, 0], thirds),
            (rrs, argmax, &[2, 0], [1., 0., 0., 0., 0.]),
            (rrs, top, &[2, 0], [0.8, 0., 0.2, 0., 0.]),
        ];
        for (rule, engine, drafts, expected) in cases {
            let found = found(rule, &engine, &at(), drafts);
            let case = (rule, engine, drafts);
            assert!(near(&found, &expected), "{case:?}: {found:?}");
        }
        // Where q has nothing left, later drafts are not tested.
        let alone = Position {
            q: &[0.0, 0.0, 1.0, 0.0],
            ..at()
        };
        let kept = found(Rule::RRS_WO, &honest, &alone, &[2, 0]);
        assert!(near(&kept, &[0.0, 0.0, 0.2, 0.0, 0.8]), "{kept:?}");
    }

    #[test]
    fn what_engines_put_out_where_no_draft_is_kept() {
        let honest = Engine::HONEST;
        let corrects = |corrects| engine!(corrects: corrects);
        let of = |rule: Rule, engine: &Engine, at: &Position<'_>, drafts: &[usize]| {
            decided(rule, engine, at, drafts).correction
        };
        type Case = (Rule, Corrects, &'static [usize], [f64; 4]);
        let (rrs, one_hot) = (Rule::RRS, Rule::ONE_HOT);
        let (left, off) = ([0.75, 0.25, 0., 0.], [0., 0.75, 0., 0.25]);
        let cases: [Case; 10] = [
            (rrs, Corrects::Rule, &[2], left),
            (one_hot, Corrects::Rule, &[2, 0], off),
            (Rule::EXACT_MATCH, Corrects::Rule, &[2, 0, 2], off),
            (one_hot, Corrects::Rule, &[2, 0, 1, 3], P),
            (rrs, Corrects::Target, &[2, 2], P),
            (rrs, Corrects::Draft, &[2, 2], Q),
            (rrs, Corrects::Residual, &[2, 2], left),
            (one_hot, Corrects::OwnNoise, &[2, 0], left),
            (rrs, Corrects::OffDraft, &[2, 0], off),
            (rrs, Corrects::OffDraft, &[2, 0, 1, 3], P),
        ];
        for (rule, how, drafts, expected) in cases {
            let found = of(rule, &corrects(how), &at(), drafts);
            let case = (rule, how, drafts);
            assert!(near(&found, &expected), "{case:?}: {found:?}");
        }
        // Of equal rows nothing is left, and p stands in for it.
        let same = Position { q: &P, ..at() };
        for rule in [Rule::RRS, Rule::K_SEQ] {
            assert!(near(&of(rule, &honest, &same, &[2, 0]), &P), "{rule}");
        }
        let residual = corrects(Corrects::Residual);
        assert!(near(&of(Rule::RRS, &residual, &same, &[2]), &P));
    }

    /// A correction from p hits a draft with its p: it looks as if the draft was kept.
    #[test]
    fn what_came_out_alone_tells_what_was_kept() {
        let engine = engine!(corrects: Corrects::Target);
        let position = at();
        let told = decided(Rule::RRS, &engine, &position, &[2, 0]);
        let mut seen = told.clone();
        seen.by_output();
        let none = told.law[2];
        for (place, token) in [(0, 0), (1, 2)] {
            let expected = told.law[place] + none * P[token];
            assert!((seen.law[place] - expected).abs() < 1e-12);
            assert_eq!(seen.correction[token], 0.0);
        }
        assert!((seen.law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let left = P[1] + P[3];
        assert!((seen.law[2] - none * left).abs() < 1e-12);
        assert!((seen.correction[1] - P[1] / left).abs() < 1e-12);
    }

    #[test]
    fn the_law_of_the_next_draft() {
        let honest = Engine::HONEST;
        let draws = engine!(draws: true);
        let likeliest = engine!(likeliest: true);
        let of = |rule| engine!(draws_as: Some(rule));
        let [iid, distinct] = [Rule::RRS, Rule::RRS_WO].map(of);
        let top = engine!(draft: Change::Top(2));
        let all: &[usize] = &[0, 1, 2, 3];
        type Case<'a> = (Rule, Engine, &'a [usize], Option<[f64; 4]>);
        let cases: [Case<'_>; 20] = [
            (Rule::RRS, honest, &[], Some(Q)),
            (Rule::RRS, honest, &[2, 2], Some(Q)),
            (Rule::K_SEQ, honest, &[2], Some(Q)),
            (Rule::RRS, top, &[2], Some([0., 0.25, 0.75, 0.])),
            (Rule::RRS_WO, honest, &[], Some(Q)),
            (Rule::RRS_WO, honest, &[2], Some([0.25, 0.5, 0., 0.25])),
            (Rule::RRS_WO, honest, &[2, 1], Some([0.5, 0., 0., 0.5])),
            (Rule::RRS_WO, honest, all, None),
            (Rule::RRS_WO, top, &[1], Some([0., 0., 1., 0.])),
            (Rule::RRS, distinct, &[2], Some([0.25, 0.5, 0., 0.25])),
            (Rule::RRS_WO, iid, &[2], Some(Q)),
            (Rule::ONE_HOT, honest, &[], Some([0., 0., 1., 0.])),
            (Rule::ONE_HOT, honest, &[2], Some([0., 1., 0., 0.])),
            (Rule::ONE_HOT, honest, all, None),
            (Rule::ONE_HOT, draws, &[2], Some(Q)),
            (Rule::RRS, likeliest, &[2], Some([0., 1., 0., 0.])),
            (Rule::EXACT_MATCH, honest, &[], None),
            (Rule::EXACT_MATCH, draws, &[2], Some(Q)),
            (Rule::EXACT_MATCH, likeliest, &[], Some([0., 0., 1., 0.])),
            (Rule::EXACT_MATCH, likeliest, &[2], Some([0., 1., 0., 0.])),
        ];
        for (rule, engine, earlier, expected) in cases {
            let found = next_law(rule, &engine, &at(), earlier.len() + 1, earlier);
            assert_eq!(found.is_some(), expected.is_some(), "{rule} {earlier:?}");
            if let (Some(found), Some(expected)) = (found, expected) {
                assert!(near(&found, &expected), "{rule} {earlier:?}: {found:?}");
            }
        }
    }

    /// By hand: quarters in two strata, (0, 1) and (2, 3).
    #[test]
    fn drafts_of_strata_and_what_is_kept_of_them() {
        let p = [0.5, 0.25, 0.25, 0.0];
        let at = Position::new(&p, &[0.25; 4]);
        let honest = Engine::HONEST;
        let law = |engine, count, earlier: &[usize]| {
            next_law(Rule::LEVEL_4, engine, &at, count, earlier).unwrap()
        };
        assert!(near(&law(&honest, 2, &[]), &[0.5, 0.5, 0.0, 0.0]));
        assert!(near(&law(&honest, 2, &[1]), &[0.0, 0.0, 0.5, 0.5]));
        // Of three strata of 4/3 tokens, token 1 has 1/4 of the first and 1/2 of the second.
        assert!(near(&law(&honest, 3, &[]), &[0.75, 0.25, 0.0, 0.0]));
        assert!(near(&law(&honest, 3, &[1]), &[0.0, 0.0, 1.0, 0.0]));
        let rest = 1.0 / 3.0;
        assert!(near(&law(&honest, 3, &[0]), &[0.0, 2.0 * rest, rest, 0.0]));
        let iid = engine!(draws_as: Some(Rule::RRS));
        assert!(near(&law(&iid, 2, &[1]), &[0.25; 4]));
        // Level .8: of the second stratum 2, whose ratio is .5, and 3 give nothing; in the first
        // 0, of ratio 1, is used up and 1 waits. At the end 2 and 1 are as often asked as owed.
        let kept = found(Rule::LEVEL_4, &honest, &at, &[0, 3]);
        assert!(near(&kept, &[1.0, 0.0, 0.0, 0.0, 0.0]), "{kept:?}");
        // One that cannot be of its stratum is refused.
        let kept = found(Rule::LEVEL_4, &honest, &at, &[3, 0]);
        assert!(near(&kept, &[0.0, 0.0, 0.0, 0.0, 1.0]), "{kept:?}");
        // Recursive rejection keeps all of token 0 where it is first.
        let wrong = engine!(tests_as: Some(Rule::RRS));
        let kept = found(Rule::LEVEL_4, &wrong, &at, &[3, 0]);
        assert!(near(&kept, &[1.0, 0.0, 0.0, 0.0, 0.0]), "{kept:?}");
    }
}
