//! Sequential draws along the chain.

use super::buckets::{Buckets, Link, ROUNDING};
use super::minimum::Chain;
use super::race::{Race, Rule};
use crate::distribution::Rows;

/// Q(H) by the race of the tokens' clocks.
pub(super) struct Sequential<'a> {
    race: &'a mut Race,
    rule: Rule,
    quadrature: f64,
    rounding: f64,
    /// Tokens of the walk that were passed.
    walked: usize,
}

impl<'a> Sequential<'a> {
    pub(super) fn new(
        race: &'a mut Race,
        buckets: &mut Buckets,
        rows: Rows<'_>,
        draws: usize,
    ) -> Self {
        race.prepare(buckets, rows);
        let rule = race.rule(draws);
        let (quadrature, rounding) = race.prefixes(draws);
        Self {
            race,
            rule,
            quadrature: match draws {
                // A closed form.
                ..=2 => 0.0,
                _ => quadrature.max(rule.error),
            },
            rounding,
            walked: 0,
        }
    }
}

impl Chain for Sequential<'_> {
    fn at_end(&self, index: usize, _x: f64) -> f64 {
        self.race.at_end(index)
    }

    fn mass(&self, index: usize, _link: &Link) -> f64 {
        self.race.mass(index)
    }

    fn enter(
        &mut self,
        index: usize,
        masses: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator + Clone,
    ) {
        let rounding = self.race.tokens(&self.rule, index, masses);
        self.rounding = self.rounding.max(rounding);
        self.walked = 0;
    }

    fn step(&mut self, _q: f64, _x: f64) -> f64 {
        let inside = self.race.at_token(self.walked);
        self.walked += 1;
        inside
    }

    fn error(&self) -> f64 {
        self.quadrature + self.rounding + 300.0 * ROUNDING
    }
}
