//! Whole runs of simulated engines, and rounds that are tampered with.

use crate::audit::data::{Claimed, Settings};
use crate::audit::evidence::order::Order;
use crate::audit::evidence::play::Player;
use crate::audit::evidence::rows::{Pair, Reader, tops};
use crate::audit::evidence::steps::{Check, Step, Steps, follows};
use crate::audit::model::bugs::{BUGS, Bug};
use crate::audit::model::engine::{Engine, Position};
use crate::audit::verdict::claim::claimed_of;
use crate::audit::verdict::opened::Opened;
use crate::audit::{AuditError, refused_at};
use specgap_log::log::{EngineRecord, Log};
use std::collections::BTreeSet;
use std::str::FromStr;

/// The name of a bug of the table.
///
/// ```
/// use specgap_audit::audit::BugName;
/// assert!("argmax-drafts".parse::<BugName>().is_ok());
/// assert!(BugName::all().count() > 20 && "nonsense".parse::<BugName>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BugName(&'static Bug);

impl BugName {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        BUGS.iter().map(Self)
    }

    /// The name, as options and reports have it.
    pub fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Says in words what the engine does.
    pub fn words(self) -> &'static str {
        self.0.words
    }
}

impl FromStr for BugName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all()
            .find(|one| one.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no bug of the table"))
    }
}

/// Plays engines on the rows of a log.
///
/// An engine answers by the place in the text, whatever it put out before: an engine of two
/// models that are the log's rows. What it does at a position then follows the laws of an
/// engine there, which is all that an audit rests on.
#[derive(Clone, Debug)]
pub struct Simulator {
    /// What is audited.
    pub settings: Settings,
    /// The rule that the engine follows; what is audited, if `None`.
    pub follows: Option<crate::audit::Rule>,
    /// What the engine does wrong.
    pub bug: Option<BugName>,
    /// Drafts a round, or a position.
    pub drafts: usize,
    /// The drafts are alternatives for one position.
    pub siblings: bool,
    /// The noise of another forward pass: the engine's logits differ from the log's by normal
    /// numbers of this standard deviation.
    pub noise: f64,
}

/// What a simulated engine did at each position of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedLog {
    /// One a position: `drafts`, `accepted`, `round` and `output` as a log has them.
    pub records: Vec<EngineRecord>,
}

impl Simulator {
    /// An engine that does what is audited, with three drafts a round.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            follows: None,
            bug: None,
            drafts: 3,
            siblings: false,
            noise: 0.0,
        }
    }

    /// Rows as another forward pass has them.
    fn noisy(&self, pair: &Pair, player: &mut Player) -> [Vec<f64>; 2] {
        use rand::Rng;
        let mut rows = [pair.p.clone(), pair.q.clone()];
        if self.noise > 0.0 {
            for x in rows.iter_mut().flatten() {
                let (a, b) = (player.random.random(), player.random.random());
                *x *= (self.noise * normal_of(a, b)).exp();
            }
            for row in &mut rows {
                specgap_core::rule::normalise(row);
            }
        }
        rows
    }

    /// The settings at which engines are simulated along a log.
    fn claimed(&self, log: &Log) -> Result<Claimed, AuditError> {
        if log.may_lack_drafts() {
            return Err(AuditError::Log(format!(
                "{}: has positions without a row of the draft (draft_row is 0), where no engine \
                 can be simulated; name a log with all rows",
                log.path().display()
            )));
        }
        claimed_of(log, &self.settings)
    }

    /// Plays the engine along the log, and returns what it does as the log would have it.
    ///
    /// # Errors
    /// As [`crate::audit::audit`], but for what engines did.
    pub fn log(&self, log: &Log) -> Result<SimulatedLog, AuditError> {
        let claimed = self.claimed(log)?;
        let follows = self.follows.unwrap_or(self.settings.rule);
        let engine = self.bug.map_or(Engine::HONEST, |bug| bug.0.engine);
        let seed = self.settings.seed;
        let mut player = Player::new(follows, &engine, self.drafts, self.siblings, seed);
        let order = Order::of(&log.engine_records()?);
        let order = order.map_err(|(index, words)| refused_at(log, index, words))?;
        let labels = order.sorted(log.labels()?);
        let mut reader = Reader::new(log, &claimed, self.settings.rule, tops(log)?)?;
        reader.order = Some(&order);
        let mut pair = Pair::default();
        let mut records: Vec<EngineRecord> = Vec::with_capacity(log.positions());
        // Drafts of the round so far, and where it began.
        let mut round: Option<usize> = None;
        for span in log.spans(64) {
            let chunk = log.chunk(&span)?;
            for index in chunk.positions() {
                reader.read(&chunk, index, &mut pair)?;
                let label = labels.get(index).copied().unwrap_or_default();
                let last = records.last();
                if last.is_some_and(|last| last.prompt != label.prompt) {
                    player.begin();
                    round = None;
                }
                let [p, q] = self.noisy(&pair, &mut player);
                let at = Position {
                    p: &p,
                    q: &q,
                    ..pair.position()
                };
                let step = player.step(&at);
                let id = |place: usize| id_of(reader.row(), &pair, place, log.vocabulary());
                let width = self.drafts.max(1);
                let mut record = EngineRecord {
                    prompt: label.prompt,
                    position: label.position,
                    drafts: vec![-1; width],
                    output: Some(id(step.output)),
                    accepted: Some(-1),
                    round: Some(0),
                    batch_size: None,
                    // A player draws from one stream, text after text.
                    seed: Some(-1),
                };
                let so_far = (&mut records[..], &mut round);
                write_round(so_far, &mut record, &step, self.siblings, &id);
                records.push(record);
                if self.siblings || !step.accepted {
                    round = None;
                }
            }
        }
        let records = order.back(records);
        Ok(SimulatedLog { records })
    }
}

/// A normal number from two uniform ones in [0, 1) (Box and Muller).
fn normal_of(a: f64, b: f64) -> f64 {
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// Notes a step in the record of its position, and in that of its round's first one.
fn write_round(
    (records, round): (&mut [EngineRecord], &mut Option<usize>),
    record: &mut EngineRecord,
    step: &Step,
    siblings: bool,
    id: &dyn Fn(usize) -> i64,
) {
    let here = records.len();
    let begins = round.is_none();
    let first = *round.get_or_insert(here);
    let depth = here - first;
    record.round = i64::try_from(depth).ok();
    if begins {
        record.accepted = Some(0);
    }
    if siblings {
        for (slot, &draft) in record.drafts.iter_mut().zip(&step.drafts) {
            *slot = id(draft);
        }
    }
    let start = match begins {
        true => Some(record),
        false => records.get_mut(first),
    };
    let Some(start) = start else { return };
    if step.accepted {
        start.accepted = start.accepted.map(|count| count + 1);
    }
    if !siblings
        && let (Some(slot), &[draft]) = (start.drafts.get_mut(depth), step.drafts.as_slice())
    {
        *slot = id(draft);
    }
}

/// The id of a place; of what is not listed, the first id that is not.
fn id_of(row: &specgap_log::log::Row, pair: &Pair, place: usize, vocabulary: usize) -> i64 {
    if pair.is_rest(place) {
        let listed: BTreeSet<u32> = row.token_ids.iter().copied().collect();
        let free = (0u32..).take(vocabulary).find(|id| !listed.contains(id));
        return i64::from(free.unwrap_or(0));
    }
    pair.token(place).map_or(0, i64::from)
}

/// A change to a log's rounds.
type Change = dyn Fn(&mut Vec<EngineRecord>) -> bool;
/// A hard check, what was done, and whether it was found; or why it was not done.
type TamperedRound = (Check, &'static str, Result<bool, String>);
/// A hard check, what was done, and the rounds after it; `None` where it cannot be done.
type Tampered = (Check, &'static str, Option<Vec<EngineRecord>>);

/// Tells whether a position belongs to a round that began before it.
fn in_a_round(records: &[EngineRecord], at: usize) -> bool {
    let here = records.get(at).and_then(|record| record.prompt);
    let before = records.get(..at).unwrap_or_default().iter().rev();
    before
        .take_while(|record| record.prompt == here)
        .any(|record| record.accepted.is_some_and(|count| count >= 0))
}

/// Tells whether a position holds the token behind a whole chain, which an engine may leave out.
fn is_bonus(records: &[EngineRecord], at: usize) -> bool {
    let begun = records.get(..at).unwrap_or_default();
    let count = |record: &EngineRecord| usize::try_from(record.accepted.unwrap_or(-1)).ok();
    let start = begun.iter().rposition(|record| count(record).is_some());
    let round = start.and_then(|start| Some((start, records.get(start)?)));
    round.is_some_and(|(start, record)| {
        let drafts = record.drafts.iter().filter(|id| **id >= 0).count();
        count(record) == Some(drafts) && at - start == drafts
    })
}

/// Moves the text from `at` on to where the record before `at` was: what is left of that text
/// then has no gap there.
fn close_up(records: &mut [EngineRecord], at: usize) {
    let place = |at: usize| records.get(at).and_then(|record| record.position);
    let (Some(last), Some(next)) = (at.checked_sub(1).and_then(place), place(at)) else {
        return;
    };
    let prompt = records.get(at).and_then(|record| record.prompt);
    let text = records.iter_mut().skip(at);
    for record in text.take_while(|record| record.prompt == prompt) {
        record.position = record.position.map(|here| here - (next - last));
    }
}

/// A log's rounds, each broken in one way, and whether the order of tokens alone shows it.
pub(crate) fn tampered_rounds(
    opened: &Opened<'_>,
    stop: &BTreeSet<u32>,
) -> Result<Vec<TamperedRound>, AuditError> {
    let is_text = opened.rule == crate::audit::Rule::TEXT;
    let (order, records) = Order::records(opened.log, opened.rule)?;
    let has_rounds = !is_text && opened.log.engine_tensors().contains(&"accepted");
    let siblings = opened.steps.siblings;
    let mut results = Vec::new();
    for (check, words, changed) in tampered(&records, siblings, stop, opened.log.vocabulary()) {
        if is_text && check != Check::AfterEnd {
            continue;
        }
        let Some(changed) = changed else {
            let reason = match check == Check::AfterEnd && stop.is_empty() {
                true => "no token is known that ends texts; name them with ⟨stop⟩",
                false => "the log has no round that this can be done to",
            };
            results.push((check, words, Err(reason.to_owned())));
            continue;
        };
        let steps = Steps::from_records(&changed, opened.rule, has_rounds, stop)
            .map_err(|(position, message)| refused_at(opened.log, order.at(position), message))?;
        results.push((check, words, Ok(steps.checks.of(check).violations > 0)));
    }
    Ok(results)
}

/// Rounds, each broken in one way.
fn tampered(
    records: &[EngineRecord],
    siblings: bool,
    stop: &BTreeSet<u32>,
    vocabulary: usize,
) -> Vec<Tampered> {
    use Check::{AfterEnd, AfterRejection, Missing, NotEmitted};
    let ends = stop.first().map(|id| i64::from(*id));
    let other = i64::try_from(vocabulary).unwrap_or(i64::MAX);
    let starts = |record: &EngineRecord| record.accepted.is_some_and(|count| count >= 0);
    let goes_on = move |records: &mut Vec<EngineRecord>| {
        // Unless the log says how far into its round a position is, the chain has to have the room.
        let fits = |i: usize| {
            let drafts = records[i - 1].drafts.iter().filter(|&&x| x >= 0).count();
            let most = (i + drafts + 1).min(records.len());
            let next = (i + 1..most).find(|&next| starts(&records[next]));
            siblings
                || records[i].round.is_some()
                || next.is_some_and(|next| records[next].prompt == records[i].prompt)
        };
        let at = (1..records.len()).find(|&i| {
            starts(&records[i])
                && records[i - 1].accepted == Some(0)
                && records[i].prompt == records[i - 1].prompt
                && fits(i)
        });
        let Some(at) = at else { return false };
        records[at].accepted = Some(-1);
        if !siblings {
            // A chain stands where its round begins.
            records[at].drafts.fill(-1);
        }
        records[at].round = records[at].round.map(|_| 1);
        let behind = records.iter_mut().skip(at + 1);
        for (depth, record) in (2..).zip(behind.take_while(|record| !starts(record))) {
            record.round = record.round.map(|_| depth);
        }
        true
    };
    let emits_another = move |records: &mut Vec<EngineRecord>| {
        let keeps = |record: &&mut EngineRecord| record.accepted.is_some_and(|count| count > 0);
        let Some(record) = records.iter_mut().find(keeps) else {
            return false;
        };
        let used: Vec<i64> = record.drafts.clone();
        let output = (0..other).find(|id| !used.contains(id));
        record.output = output.or(record.output);
        output.is_some()
    };
    let misses = move |records: &mut Vec<EngineRecord>| {
        let at = (1..records.len()).find(|&i| {
            !siblings
                && starts(&records[i])
                && !starts(&records[i - 1])
                && records[i].prompt == records[i - 1].prompt
                && in_a_round(records, i - 1)
                && (!is_bonus(records, i - 1) || i < 2 || !starts(&records[i - 2]))
        });
        let Some(at) = at else { return false };
        // The token behind a whole chain alone is no loss.
        let lost = 1 + usize::from(is_bonus(records, at - 1));
        for end in (0..lost).map(|gone| at - gone) {
            close_up(records, end);
            records.remove(end - 1);
        }
        true
    };
    let ends_inside = move |records: &mut Vec<EngineRecord>| {
        let Some(end) = ends else { return false };
        let at = (1..records.len()).find(|&i| {
            records[i].prompt == records[i - 1].prompt
                && follows(records[i - 1].position, records[i].position)
        });
        let Some(at) = at else { return false };
        records[at - 1].output = Some(end);
        true
    };
    let missing =
        "a round's last token is taken out, and one before the token behind a whole chain";
    let ended = "a text goes on behind a token that ends texts";
    let all: [(Check, &'static str, &Change); 4] = [
        (
            AfterRejection,
            "a round goes on behind its rejection",
            &goes_on,
        ),
        (
            NotEmitted,
            "an accepted draft does not come out",
            &emits_another,
        ),
        (Missing, missing, &misses),
        (AfterEnd, ended, &ends_inside),
    ];
    let each = all.into_iter().map(|(check, words, change)| {
        let mut changed = records.to_vec();
        let done = change(&mut changed);
        (check, words, done.then_some(changed))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_are_those_of_their_angle_and_radius() {
        assert_eq!(normal_of(0.0, 0.3), 0.0);
        let one = 1.0 - f64::exp(-0.5);
        for (b, expected) in [(0.0, 1.0), (0.125, 0.5f64.sqrt()), (0.25, 0.0), (0.5, -1.0)] {
            assert!((normal_of(one, b) - expected).abs() < 1e-15, "{b}");
        }
        assert!((normal_of(1.0 - f64::exp(-2.0), 0.5) + 2.0).abs() < 1e-15);
    }

    #[test]
    fn what_is_not_listed_is_put_out_as_the_first_such_token() {
        let mut pair = Pair::made([0.25; 4], [0.25; 4], [0.25; 4], 0.25, true);
        let mut row = specgap_log::log::Row::default();
        let mut ids = |row: &specgap_log::log::Row, vocabulary: usize| {
            pair.gather(row.token_ids.iter().copied(), [usize::MAX; 2]);
            [0, 1, 2, 3].map(|place| id_of(row, &pair, place, vocabulary))
        };
        row.token_ids.extend([4, 0, 1]);
        assert_eq!(ids(&row, 9), [4, 0, 1, 2]);
        row.token_ids = vec![4, 3, 1];
        assert_eq!(ids(&row, 9), [4, 3, 1, 0]);
        row.token_ids = vec![2, 0, 1];
        assert_eq!(ids(&row, 4), [2, 0, 1, 3]);
        // All are listed: what has no place cannot come out, and has some id.
        assert_eq!(ids(&row, 3), [2, 0, 1, 0]);
        row.token_ids.clear();
        pair.rest = false;
        let all = [0, 1, 2, 3].map(|place| id_of(&row, &pair, place, 4));
        assert_eq!(all, [0, 1, 2, 3]);
    }

    fn record(prompt: i64, position: i64, accepted: i64) -> EngineRecord {
        EngineRecord {
            prompt: Some(prompt),
            position: Some(position),
            accepted: Some(accepted),
            ..EngineRecord::default()
        }
    }

    #[test]
    fn rounds_of_a_text_and_its_places() {
        let records = [
            record(0, 3, -1),
            record(0, 4, 0),
            record(0, 5, -1),
            record(1, 7, -1),
            record(1, 8, 2),
            record(1, 11, -1),
            record(2, 0, 0),
        ];
        let inside = [0, 1, 2, 3, 4, 5, 6].map(|at| in_a_round(&records, at));
        assert_eq!(inside, [false, false, true, false, false, true, false]);
        let places = |at: usize| {
            let mut moved = records.to_vec();
            close_up(&mut moved, at);
            moved
                .iter()
                .map(|one| one.position.unwrap())
                .collect::<Vec<_>>()
        };
        // To the place of the one before, and what is behind it in its text with it.
        assert_eq!(places(1), [3, 3, 4, 7, 8, 11, 0]);
        assert_eq!(places(5), [3, 4, 5, 7, 8, 8, 0]);
        assert_eq!(places(4), [3, 4, 5, 7, 7, 10, 0]);
        assert_eq!(places(0), [3, 4, 5, 7, 8, 11, 0]);
    }

    /// Two chains of a text, one with a rejection, and what each change makes of them.
    #[test]
    fn rounds_are_broken_where_they_can_be() {
        let with =
            |accepted: i64, drafts: [i64; 2], output: i64, at: i64, round: i64| EngineRecord {
                drafts: drafts.to_vec(),
                output: Some(output),
                round: Some(round),
                ..record(0, at, accepted)
            };
        let records = [
            with(0, [1, 2], 3, 0, 0),
            with(2, [0, 2], 0, 1, 0),
            with(-1, [-1, -1], 2, 2, 1),
            with(-1, [-1, -1], 1, 3, 2),
            with(0, [2, 1], 0, 4, 0),
        ];
        let stop = BTreeSet::from([7, 9]);
        let all = |siblings: bool, stop: &BTreeSet<u32>| tampered(&records, siblings, stop, 8);
        let [goes_on, emits, misses, ends] = <[_; 4]>::try_from(all(false, &stop)).unwrap();
        assert_eq!(goes_on.0, Check::AfterRejection);
        let mut expected = records.to_vec();
        // The second round is one of the first now, with all that is behind it.
        for (depth, record) in (1..).zip(&mut expected[1..4]) {
            record.round = Some(depth);
        }
        expected[1].accepted = Some(-1);
        expected[1].drafts = vec![-1, -1];
        assert_eq!(goes_on.2.as_ref(), Some(&expected));
        assert_eq!(emits.0, Check::NotEmitted);
        let mut expected = records.to_vec();
        expected[1].output = Some(1);
        assert_eq!(emits.2.as_ref(), Some(&expected));
        assert_eq!(misses.0, Check::Missing);
        let mut expected = records.to_vec();
        expected.truncate(2);
        expected.push(EngineRecord {
            position: Some(2),
            ..records[4].clone()
        });
        assert_eq!(misses.2.as_ref(), Some(&expected));
        assert_eq!(ends.0, Check::AfterEnd);
        let mut expected = records.to_vec();
        expected[0].output = Some(7);
        assert_eq!(ends.2.as_ref(), Some(&expected));
        // Alternatives stand at their own positions, and no chain can lack its end.
        let [goes_on, _, misses, ends] = <[_; 4]>::try_from(all(true, &BTreeSet::new())).unwrap();
        assert_eq!(goes_on.2.unwrap()[1].drafts, [0, 2]);
        assert!(misses.2.is_none() && ends.2.is_none());
        // One that goes on behind what was kept breaks nothing: it has to be behind a rejection.
        let kept = [1, 1, 0, 0].map(|accepted| with(accepted, [1, 2], 1, 0, 0));
        let all = tampered(&kept, true, &stop, 8);
        let found: Vec<_> = all[0].2.iter().flatten().map(|one| one.accepted).collect();
        assert_eq!(found, [1, 1, 0, -1].map(Some));
        // Nor is there a round to go on where none stands behind a rejection.
        let none = [0, -1, 1].map(|accepted| with(accepted, [1, 2], 1, 0, 0));
        assert!(tampered(&none, true, &stop, 8)[0].2.is_none());
        // Where every round is a text of its own, or nothing was accepted, little can be done.
        let alone: Vec<EngineRecord> = (0..3)
            .map(|text| EngineRecord {
                drafts: vec![1, 2],
                output: Some(3),
                ..record(text, 0, 0)
            })
            .collect();
        let none = tampered(&alone, false, &stop, 8);
        assert!(none.iter().all(|(.., changed)| changed.is_none()));
        // Nor where the text jumps, for what ends it.
        let jumps = [with(0, [1, 2], 3, 0, 0), with(0, [1, 2], 3, 5, 0)];
        let [goes_on, emits, misses, ends] =
            <[_; 4]>::try_from(tampered(&jumps, false, &stop, 8)).unwrap();
        assert!(goes_on.2.is_some() && emits.2.is_none());
        assert!(misses.2.is_none() && ends.2.is_none());
        // All tokens were drafted: none is left that could come out instead.
        let full = tampered(&records[1..], false, &stop, 1);
        assert!(full[1].2.is_none());
    }

    #[test]
    fn names_of_bugs_are_those_of_the_table() {
        let all: Vec<&str> = BugName::all().map(BugName::as_str).collect();
        assert_eq!(all.len(), BUGS.len());
        let name: BugName = "correction-from-q".parse().unwrap();
        assert_eq!(name.as_str(), "correction-from-q");
        assert_eq!(name.words(), "the correction is drawn from q");
        let corrects = crate::audit::model::engine::Corrects::Draft;
        assert_eq!(name.0.engine.corrects, corrects);
        let message = "correction".parse::<BugName>().unwrap_err();
        assert!(message.contains("\"correction\" is no bug"), "{message}");
    }
}
