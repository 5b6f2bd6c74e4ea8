//! A log that is opened for an audit: its steps and requests, its rows, how far blocks are reached.

use crate::audit::data::{Claimed, Settings};
use crate::audit::evidence::order::Order;
use crate::audit::evidence::play::ratio;
use crate::audit::evidence::requests::{Place, Requests};
use crate::audit::evidence::rows::{Pair, Reader, tops};
use crate::audit::evidence::steps::{Happened, Steps, follows};
use crate::audit::model::engine::{Engine, Laws, Position, get};
use crate::audit::model::rule::Rule;
use crate::audit::verdict::claim::{check_settings, claimed_of, stop_tokens};
use crate::audit::{AuditError, refused_at};
use specgap_base::side_by_side;
use specgap_core::rounds::Carry;
use specgap_core::rule::Drafts;
use specgap_log::log::{EngineRecord, Log, Span};

/// Positions that one task takes.
const SPAN: usize = 16;

/// A log, opened for an audit: settled settings, and what was done at each position.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub log: &'a Log,
    pub claimed: Claimed,
    pub steps: Steps,
    pub requests: Requests,
    pub rule: Rule,
    /// All that is said of positions is in this order.
    pub order: Order,
    /// How many listed tokens stand alone: see [`tops`].
    pub tops: [usize; 2],
    /// Block verification: `reach` at each position.
    reach: Vec<f64>,
    /// The rule that carries: `stands` at each position.
    stands: Vec<f64>,
    /// The index of each position in its text.
    places: Vec<Option<i64>>,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(
        log: &'a Log,
        settings: &Settings,
        rule: Rule,
        steps: Option<Steps>,
    ) -> Result<Self, AuditError> {
        check_settings(settings)?;
        let claimed = claimed_of(log, settings)?;
        if log.is_top_heavy()
            && let Some(why) = rule.needs_full_rows()
        {
            return Err(AuditError::Log(format!(
                "{}: rows list some tokens only, and {rule} cannot be audited on them: {why}; log \
                 full rows, or audit the draft law and the outputs with ⟨rule token⟩",
                log.path().display()
            )));
        }
        (log.refuse_other_forms()).map_err(|error| AuditError::Log(error.to_string()))?;
        let tops = tops(log)?;
        Reader::new(log, &claimed, rule, tops)?;
        let (order, records) = Order::records(log, rule)?;
        let steps = match steps {
            Some(steps) => steps,
            None => Steps::read(log, rule, (&order, &records), &stop_tokens(log, settings))?,
        };
        let places = records.iter().map(|record| Place {
            prompt: record.prompt,
            position: record.position,
            seed: record.seed,
        });
        let requests = Requests::new(places, settings.seeds);
        let mut opened = Self {
            log,
            claimed,
            steps,
            requests,
            rule,
            order,
            tops,
            reach: Vec::new(),
            stands: Vec::new(),
            places: records.iter().map(|record| record.position).collect(),
        };
        if rule == Rule::BLOCK {
            opened.reach = opened.reaches()?;
        }
        if rule == Rule::CARRIED {
            opened.stands = opened.standing(&records)?;
        }
        Ok(opened)
    }

    /// Returns for each position P(a draft stands there | the text so far) under `carried`.
    ///
    /// It takes every token of a text from its first on, rounds of one length, and the row of the
    /// draft wherever a draft may stand. The last token of a text alone may go without a draft.
    fn standing(&self, records: &[EngineRecord]) -> Result<Vec<f64>, AuditError> {
        let refused = |index, message: &str| Err(self.refused(index, message.to_owned()));
        if self.steps.cut + self.steps.without_bonus > 0 {
            return Err(AuditError::Log(format!(
                "{}: rounds lack the rows of tokens behind whole chains, and carried follows from \
                 q/p at every token of the text: log those rows, or audit the text with ⟨rule text⟩",
                self.log.path().display()
            )));
        }
        let ratios = self.at_steps(&|step, pair| {
            let found = ratio(&pair.position(), pair.place(step.output));
            (!pair.lacks_draft).then_some(found)
        })?;
        let mut carry = Carry::new(self.steps.most);
        let mut stands = Vec::with_capacity(records.len());
        for (index, (step, found)) in self.steps.at.iter().zip(ratios).enumerate() {
            let text = |at: Option<usize>| at.and_then(|at| records.get(at));
            let here = text(Some(index));
            let of_here =
                |other: &&EngineRecord| Some(other.prompt) == here.map(|here| here.prompt);
            let before = text(index.checked_sub(1)).filter(of_here);
            let is_last = text(Some(index + 1)).filter(of_here).is_none();
            if before.is_none() {
                carry = Carry::new(self.steps.most);
            }
            let Some(step) = step else {
                if before.is_none() {
                    return refused(
                        index,
                        "begins a text and no round: carried follows from the text from its first \
                         token on; log whole texts, or audit with ⟨rule text⟩",
                    );
                }
                // Behind a rejection, which a hard check counts.
                stands.push(1.0);
                continue;
            };
            if let (Some(before), Some(here)) = (before, here)
                && !follows(before.position, here.position)
            {
                return refused(
                    index,
                    "does not follow the position before it: carried follows from every token of \
                     the text; log all of them, or audit with ⟨rule text⟩",
                );
            }
            // No draft stands at the last token of a text, which nobody drafts beyond.
            let short = step.drafts.is_empty() && (step.depth < self.steps.most || is_last);
            if short && !is_last {
                let words = format!(
                    "is behind {} accepted drafts and has none, where rounds have {}: carried is \
                     audited for rounds of one length; the last token of a text alone may go \
                     without; audit with ⟨rule text⟩",
                    step.depth, self.steps.most
                );
                return refused(index, &words);
            }
            let standing = if short { 0.0 } else { carry.standing() };
            if found.is_none() && standing > 0.0 {
                return refused(
                    index,
                    "has no row of the draft (draft_row is 0), and under carried the token behind a \
                     whole chain is drawn from (p - d q)+: log the row, or audit with ⟨rule text⟩",
                );
            }
            stands.push(standing);
            carry.pass(&if short { 0.0 } else { found.unwrap_or(0.0) });
        }
        Ok(stands)
    }

    /// Returns for each position P(the prefix of its round is accepted | it was drafted).
    fn reaches(&self) -> Result<Vec<f64>, AuditError> {
        let ratios = self.at_steps(&|step, pair| {
            let draft = step.drafts.first().filter(|_| step.accepted)?;
            let place = pair.place(*draft);
            let (p, q) = (get(&pair.p, place), get(&pair.q, place));
            (q > 0.0).then(|| p / q)
        })?;
        let mut reach = 1.0;
        let reaches = ratios.into_iter().zip(&self.steps.at).map(|(ratio, step)| {
            if step.as_ref().is_none_or(|step| step.depth == 0) {
                reach = 1.0;
            }
            let here = reach;
            reach = (reach * ratio.unwrap_or(1.0)).min(1.0);
            here
        });
        Ok(reaches.collect())
    }

    /// A number of each position that has a step, from its rows.
    fn at_steps(
        &self,
        of: &(dyn Fn(&Happened, &Pair) -> Option<f64> + Sync),
    ) -> Result<Vec<Option<f64>>, AuditError> {
        let parts = side_by_side::each_or_stop(&self.log.spans(SPAN), |span| {
            let mut numbers = Vec::with_capacity(span.positions().len());
            self.rows(span, &mut |index, pair| {
                let step = self.steps.at.get(index).and_then(Option::as_ref);
                numbers.push(step.and_then(|step| of(step, pair)));
                Ok(())
            })?;
            Ok::<_, AuditError>(numbers)
        })?;
        Ok(parts.concat())
    }

    /// Block verification: `reach` at a position; 1 for other rules.
    pub(crate) fn reach_at(&self, index: usize) -> f64 {
        self.reach.get(index).copied().unwrap_or(1.0)
    }

    /// The rule that carries: `stands` at a position; 1 for other rules.
    pub(crate) fn stands_at(&self, index: usize) -> f64 {
        self.stands.get(index).copied().unwrap_or(1.0)
    }

    /// Tokens that earlier rounds of the text drew so far into a round, as drafts and otherwise,
    /// by their places in a row.
    pub(crate) fn earlier(&self, index: usize, depth: usize, pair: &Pair) -> [Vec<usize>; 2] {
        /// So many positions back, and so many rounds.
        const BACK: usize = 64;
        const ROUNDS: usize = 4;
        let all = self.steps.siblings || self.rule.drafts() == Drafts::Any;
        let text = self.requests.text.get(index);
        let mut found = [Vec::new(), Vec::new()];
        let earlier = (index.saturating_sub(BACK)..index)
            .rev()
            .filter(|at| self.requests.text.get(*at) == text)
            .filter_map(|at| self.steps.at.get(at)?.as_ref())
            .filter(|step| step.depth == depth);
        for step in earlier.take(ROUNDS) {
            let [drafts, tokens] = &mut found;
            drafts.extend(step.drafts.first().map(|&id| pair.place(id)));
            tokens.extend((all || !step.accepted).then(|| pair.place(step.output)));
        }
        found.map(|places| pair.listed_once(places))
    }

    /// Reads rows in order.
    pub(crate) fn reader(&self) -> Result<Reader<'_>, AuditError> {
        let mut reader = Reader::new(self.log, &self.claimed, self.rule, self.tops)?;
        reader.order = Some(&self.order);
        Ok(reader)
    }

    pub(crate) fn refused(&self, index: usize, message: String) -> AuditError {
        refused_at(self.log, self.order.at(index), message)
    }

    /// Every row of a span.
    pub(crate) fn rows(
        &self,
        span: &Span,
        each: &mut dyn FnMut(usize, &Pair) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let chunk = self.log.chunk(span)?;
        let mut reader = self.reader()?;
        let mut pair = Pair::default();
        for index in chunk.positions() {
            reader.read(&chunk, index, &mut pair)?;
            each(index, &pair)?;
        }
        Ok(())
    }

    /// Some rows, spread evenly over the log, with their position numbers.
    pub(crate) fn for_each_row(
        &self,
        rows: usize,
        mut each: impl FnMut(usize, &Pair),
    ) -> Result<(), AuditError> {
        let mut reader = self.reader()?;
        let mut pair = Pair::default();
        for number in 0..rows {
            let index = number * self.log.positions() / rows;
            for span in self.log.spans_of(index..index + 1, 1) {
                reader.read(&self.log.chunk(&span)?, index, &mut pair)?;
                if !pair.lacks_draft {
                    each(index, &pair);
                }
            }
        }
        Ok(())
    }

    /// Returns how far a rule that is lossy by design moves what comes out of a draft.
    pub(crate) fn lossy_by(&self, index: usize, pair: &Pair) -> Option<f64> {
        let at = Position {
            reach: self.reach_at(index),
            stands: self.stands_at(index),
            ..pair.position()
        };
        output_tv(self.rule, &at)
    }

    /// The index of a position in its text.
    pub(crate) fn place(&self, index: usize) -> Option<i64> {
        self.places.get(index).copied().flatten()
    }
}

/// Total variation between p and what a rule puts out.
fn output_tv(rule: Rule, at: &Position<'_>) -> Option<f64> {
    let out = Laws::new(rule, &Engine::HONEST, at).of_text(at.stands)?;
    let apart = out.iter().zip(at.p).map(|(a, b)| (a - b).abs());
    Some(0.5 * apart.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::tests::log;

    /// r = min(1, r p/q) along a round, and 1 where one begins.
    #[test]
    fn how_blocks_are_reached() {
        let row = ([0.5, 0.25, 0.25], [0.8, 0.1, 0.1]);
        let rows = [row; 7];
        let records = [
            ([0, 0], 2, 0),
            ([-1, -1], -1, 0),
            ([-1, -1], -1, 1),
            ([0, 1], 2, 0),
            ([-1, -1], -1, 1),
            ([-1, -1], -1, 2),
            ([1, 1], 0, 2),
        ];
        let log = log(&rows, &records);
        let opened = Opened::new(&log, &Settings::new(Rule::BLOCK), Rule::BLOCK, None).unwrap();
        let r = 0.625;
        let expected = [1.0, r, r * r, 1.0, r, 1.0, 1.0];
        assert_eq!(opened.reach.len(), expected.len());
        for (found, expected) in opened.reach.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{:?}", opened.reach);
        }
        // Other rules do not look.
        let single = Opened::new(&log, &Settings::new(Rule::TOKEN), Rule::TOKEN, None).unwrap();
        assert!(single.reach.is_empty());
        // Rows are spread evenly.
        let all = [0, 1, 2, 3, 4, 5, 6];
        for expected in [&[0][..], &[0, 3], &[0, 2, 4], &all] {
            let mut seen = Vec::new();
            let found = single.for_each_row(expected.len(), |index, pair| {
                seen.push(index);
                assert!((pair.p[0] - 0.5).abs() < 1e-6 && (pair.q[0] - 0.8).abs() < 1e-6);
            });
            assert!(found.is_ok() && seen == expected, "{seen:?}");
        }
    }

    #[test]
    fn how_far_outputs_are_from_the_target() {
        let at = Position::new(&[0.5, 0.3, 0.2], &[0.2, 0.2, 0.6]);
        // 2 is kept with 0.2/0.5, and replaced by p without it: 0.2 more than it should.
        let off = output_tv(Rule::threshold(0.5).unwrap(), &at).unwrap();
        assert!((off - 0.2).abs() < 1e-15, "{off}");
        assert!(output_tv(Rule::TOKEN, &at).unwrap() < 1e-15);
        assert_eq!(output_tv(Rule::EXACT_MATCH, &at), None);
    }
}
