//! Sequential draws along the chain.

use super::buckets::{Buckets, ROUNDING};
use super::chords::Prefixes;
use super::race::{Race, Rule};
use crate::distribution::Rows;

/// Q(H) by the race of the tokens' clocks.
pub(super) struct Sequential<'a> {
    race: &'a mut Race,
    rule: Rule,
    rounding: f64,
}

impl<'a> Sequential<'a> {
    pub(super) fn new(race: &'a mut Race, buckets: &Buckets, rows: Rows<'_>, draws: usize) -> Self {
        race.prepare(buckets, rows);
        let rule = race.rule(draws);
        Self {
            race,
            rule,
            rounding: 0.0,
        }
    }
}

impl Prefixes for Sequential<'_> {
    fn mass(&self, link: usize) -> f64 {
        self.race.mass(link)
    }

    fn inside(&mut self, link: usize, more: &[f64], rest: &[f64]) -> f64 {
        let (inside, rounding) = self.race.inside(&self.rule, link, more, rest);
        self.rounding = self.rounding.max(rounding);
        inside
    }

    fn error(&self) -> f64 {
        self.rule.error + self.rounding + 300.0 * ROUNDING
    }
}
