//! Engines, honest and not, played on rows: what minimum N, the negative control and the
//! simulations come from.
//!
//! A player drafts, accepts and corrects on the rows in their order, whatever it put out before:
//! as if both models answered by the place in the text alone.

use crate::audit::evidence::steps::Step;
use crate::audit::model::engine::{Engine, Laws, Position, get};
use crate::audit::model::multi_draft::{decide, drawn_from, next_draft, tested};
use crate::audit::model::rule::Rule;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_core::rounds::Carry;

/// An engine in the middle of a text.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    pub rule: Rule,
    pub engine: Engine,
    /// Drafts a round, or a position if they are alternatives.
    drafts: usize,
    siblings: bool,
    pub random: ChaCha8Rng,
    pub depth: usize,
    pub reach: f64,
    /// What the rule that carries knows of the text so far.
    carry: Option<Carry<f64>>,
}

impl Player {
    pub(crate) fn new(
        rule: Rule,
        engine: &Engine,
        drafts: usize,
        siblings: bool,
        seed: u64,
    ) -> Self {
        let mut engine = *engine;
        // Exact match claims nothing of its drafts; a player has to draft something.
        engine.draws |= rule == Rule::EXACT_MATCH;
        Self {
            rule,
            engine,
            drafts: drafts.max(1),
            siblings,
            random: ChaCha8Rng::seed_from_u64(seed),
            depth: 0,
            reach: 1.0,
            carry: (rule == Rule::CARRIED).then(|| Carry::new(drafts.max(1))),
        }
    }

    /// Begins a text.
    pub(crate) fn begin(&mut self) {
        self.carry = self.carry.as_ref().map(|_| Carry::new(self.drafts));
        self.begin_round();
    }

    fn begin_round(&mut self) {
        (self.depth, self.reach) = (0, 1.0);
    }

    /// A position, with what it remembers of those before.
    fn here<'a>(&self, at: &Position<'a>) -> Position<'a> {
        Position {
            reach: self.reach,
            stands: self.carry.as_ref().map_or(1.0, Carry::standing),
            ..*at
        }
    }

    /// Plays a position.
    pub(crate) fn step(&mut self, at: &Position<'_>) -> Step {
        if self.siblings {
            return self.several(at);
        }
        let step = self.one(at);
        if let Some(carry) = &mut self.carry {
            carry.pass(&ratio(at, step.output));
        }
        step
    }

    fn one(&mut self, at: &Position<'_>) -> Step {
        let laws = Laws::new(self.rule, &self.engine, &self.here(at));
        let undrafted = self.depth >= self.drafts
            || (laws.dropped > 0.0 && self.random.random::<f64>() < laws.dropped);
        let law = match &laws.draft {
            Some(law) if !undrafted => law,
            _ => {
                self.begin_round();
                return Step {
                    drafts: Vec::new(),
                    accepted: false,
                    output: draw(&laws.bonus, self.random.random()),
                };
            }
        };
        let draft = draw(law, self.random.random());
        let accepted = self.random.random::<f64>() < laws.keep(draft);
        let output = if accepted {
            self.depth += 1;
            if self.rule == Rule::BLOCK {
                self.reach = laws.ratio(draft);
            }
            draft
        } else {
            self.begin_round();
            draw(&laws.correction(draft), self.random.random())
        };
        Step {
            drafts: vec![draft],
            accepted,
            output,
        }
    }

    fn several(&mut self, at: &Position<'_>) -> Step {
        let mut drafts = Vec::with_capacity(self.drafts);
        if let Some((law, row)) = drawn_from(self.rule, &self.engine, at) {
            let drafting = law.drafting(&row, self.drafts);
            while drafts.len() < self.drafts
                && let Some(law) = next_draft(&drafting, &drafts)
            {
                drafts.push(draw(&law, self.random.random()));
            }
        }
        let tested = tested(self.rule, &self.engine, at, &drafts);
        let found = decide(self.rule, &self.engine, at, &drafts, &tested);
        let place = draw(&found.law, self.random.random());
        let kept = found.tokens.get(place).copied();
        let output = kept.unwrap_or_else(|| draw(&found.correction, self.random.random()));
        Step {
            drafts,
            accepted: kept.is_some(),
            output,
        }
    }
}

/// q/p of a token of the text; 0 where p is 0, which is no text of the target.
pub(crate) fn ratio(at: &Position<'_>, token: usize) -> f64 {
    let (p, q) = (get(at.p, token), get(at.q, token));
    if p > 0.0 { q / p } else { 0.0 }
}

/// The outcome that a uniform number in [0, 1) falls on.
pub(crate) fn draw(law: &[f64], uniform: f64) -> usize {
    let total: f64 = law.iter().sum();
    let wanted = uniform * total;
    let mut sum = 0.0;
    let mut last = 0;
    for (place, mass) in law.iter().enumerate() {
        if *mass > 0.0 {
            sum += mass;
            last = place;
            if wanted < sum {
                return place;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::model::engine::engine;

    fn step_of(drafts: &[usize], accepted: bool, output: usize) -> Step {
        Step {
            drafts: drafts.to_vec(),
            accepted,
            output,
        }
    }

    #[test]
    fn draws_follow_their_law() {
        let law = [0.25, 0.0, 0.75];
        assert_eq!(draw(&law, 0.0), 0);
        assert_eq!(draw(&law, 0.25), 2);
        assert_eq!(draw(&law, 0.999_999), 2);
        // Whatever it sums to; and rounding at the end stays with what has mass.
        assert_eq!(draw(&[0.5, 0.0, 1.5], 0.249), 0);
        assert_eq!(draw(&[0.5, 0.0, 1.5], 0.25), 2);
        assert_eq!(draw(&[0.0, 1.0], 0.0), 1);
        assert_eq!(draw(&[0.5, 0.5, 0.0], 1.0), 1);
        assert_eq!(draw(&[0.0, 0.0], 0.5), 0);
    }

    /// Rows that leave nothing to chance.
    #[test]
    fn players_go_through_rounds() {
        let (sure, other) = ([1.0, 0.0], [0.0, 1.0]);
        let mut player = Player::new(Rule::TOKEN, &Engine::HONEST, 2, false, 1);
        let mut play = |p: &[f64], q: &[f64]| {
            let at = Position::new(p, q);
            let step = player.step(&at);
            (step.drafts, step.accepted, step.output, player.depth)
        };
        assert_eq!(play(&sure, &sure), (vec![0], true, 0, 1));
        assert_eq!(play(&sure, &sure), (vec![0], true, 0, 2));
        // Two drafts are all: the token behind them has none.
        assert_eq!(play(&other, &sure), (vec![], false, 1, 0));
        assert_eq!(play(&sure, &sure), (vec![0], true, 0, 1));
        assert_eq!(play(&other, &sure), (vec![0], false, 1, 0));
        // No drafts at all are one.
        let none = Player::new(Rule::TOKEN, &Engine::HONEST, 0, false, 1);
        assert_eq!(none.drafts, 1);
        // Exact match claims nothing of its drafts, and a player draws them.
        let mut player = Player::new(Rule::EXACT_MATCH, &Engine::HONEST, 1, false, 1);
        let at = Position::new(&other, &sure);
        let step = player.step(&at);
        assert_eq!(step, step_of(&[0], false, 1));
        // All drafts are dropped, or none.
        for (least, drafts) in [(0.9, 0), (0.1, 1)] {
            let engine = engine!(drops: Some(least));
            let half = [0.5, 0.5];
            let at = Position::new(&half, &half);
            let mut player = Player::new(Rule::TOKEN, &engine, 4, false, 1);
            for _ in 0..4 {
                let step = player.step(&at);
                assert_eq!(step.drafts.len(), drafts, "{least}");
            }
        }
    }

    /// A block is reached with r p/q of what it was, and a new round with all.
    #[test]
    fn a_block_remembers_how_it_was_reached() {
        let (p, q) = ([0.5, 0.5], [1.0, 0.0]);
        let at = Position::new(&p, &q);
        let mut player = Player::new(Rule::BLOCK, &Engine::HONEST, 9, false, 5);
        let mut deepest = 0;
        for _ in 0..60 {
            let before = player.depth;
            let step = player.step(&at);
            if step.accepted {
                assert_eq!((player.depth, step.output), (before + 1, 0));
                assert_eq!(player.reach, 0.5f64.powi(player.depth as i32));
            } else {
                assert_eq!((player.depth, player.reach), (0, 1.0));
            }
            deepest = deepest.max(player.depth);
        }
        assert!(deepest >= 2, "{deepest}");
    }

    #[test]
    fn players_of_several_drafts_take_one() {
        let (p, q) = ([0.0, 0.0, 1.0], [0.25, 0.25, 0.5]);
        let at = Position::new(&p, &q);
        let mut player = Player::new(Rule::RRS_WO, &Engine::HONEST, 3, true, 5);
        for _ in 0..5 {
            let mut step = player.step(&at);
            step.drafts.sort_unstable();
            assert_eq!(step, step_of(&[0, 1, 2], true, 2));
        }
        // More drafts than tokens are the tokens; and none that is kept is no acceptance.
        let mut player = Player::new(Rule::RRS_WO, &Engine::HONEST, 5, true, 5);
        assert_eq!(player.step(&at).drafts.len(), 3);
        let at = Position::new(&[0.0, 1.0], &[1.0, 0.0]);
        let mut player = Player::new(Rule::RRS, &Engine::HONEST, 2, true, 5);
        let step = player.step(&at);
        assert_eq!(step, step_of(&[0, 0], false, 1));
    }
}
