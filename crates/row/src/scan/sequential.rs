//! Sequential draws along the chain.

use super::buckets::{Buckets, ROUNDING};
use super::chords::Prefixes;
use super::race::{Race, Rule};
use specgap_number::distribution::Rows;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the rule, the largest rounding of what was asked, and that of P.
    #[test]
    fn every_part_of_the_error_counts() {
        let (target, draft) = ([0.0625, 0.0625, 0.375, 0.5], [0.375, 0.25, 0.25, 0.125]);
        let rows = Rows::new(&target, &draft);
        let (mut buckets, mut race) = (Buckets::default(), Race::default());
        buckets.load(rows).unwrap();
        let mut chain = Sequential::new(&mut race, &buckets, rows, 3);
        let of_rule = chain.rule.error;
        assert!(of_rule > 1e-13);
        assert_eq!(chain.error(), of_rule + 300.0 * ROUNDING);
        let last = buckets.links().len() - 1;
        let (inside, rounding) = chain.race.inside(&chain.rule, last, &[], &[]);
        assert!(rounding > 1000.0 * ROUNDING);
        assert_eq!(chain.inside(last, &[], &[]), inside);
        assert_eq!(chain.error(), of_rule + rounding + 300.0 * ROUNDING);
        // Where nothing is rounded the largest so far stays.
        assert_eq!(chain.inside(0, &[], &[]), 0.0);
        assert_eq!(chain.error(), of_rule + rounding + 300.0 * ROUNDING);
        assert_eq!(chain.mass(0), chain.race.mass(0));
    }
}
