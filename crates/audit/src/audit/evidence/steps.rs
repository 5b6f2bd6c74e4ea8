//! From what a log says of rounds to what was done at each position.

use crate::audit::data::HardCheck;
use crate::audit::evidence::order::Order;
use crate::audit::model::rule::Rule;
use crate::audit::{AuditError, refused_at};
use serde::{Deserialize, Serialize};
use specgap_base::named;
use specgap_log::log::{EngineRecord, Log};
use std::collections::BTreeSet;

/// What an engine did at a position, and where it stands. Tokens are ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    pub drafts: Vec<u32>,
    pub accepted: bool,
    pub output: u32,
    /// How far into its round.
    pub depth: usize,
    pub prompt: Option<i64>,
    pub batch: Option<i64>,
}

/// What an engine did at a position. Tokens are places in the row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub drafts: Vec<usize>,
    /// A draft was kept; meaningless without drafts.
    pub accepted: bool,
    pub output: usize,
}

/// The steps of a log, by position; positions outside any round have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    pub at: Vec<Option<Happened>>,
    /// By position, what came out where no round is.
    pub outside: Vec<Option<u32>>,
    /// The columns of `drafts` are alternatives for one position.
    pub siblings: bool,
    /// No column says what was accepted: a draft that came out was.
    pub by_output: bool,
    pub rounds: usize,
    /// Rounds whose last tokens have no row: the next round begins further behind.
    pub cut: usize,
    /// Rounds of which all drafts were accepted, and which put out no token more: a form of log, or
    /// a waste. What comes out next is drawn anew; where one is put out at some of these rounds,
    /// its law is tested like any other.
    pub without_bonus: usize,
    /// No round with all drafts accepted has a token behind them.
    pub never_bonus: bool,
    /// The most drafts that a round, or a position, has.
    pub most: usize,
    /// What the order of tokens alone shows.
    pub checks: Checks,
}

named! {
    /// What may never happen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Check {
        TargetZero "target-zero"
            "a token came out that the target gives probability 0 (u <= 0 accepts one)";
        Masked "not-allowed" "a token came out that `allowed` masks";
        Outside "outside-claimed-cut" "a token came out that top-k, top-p or min-p leaves out";
        DraftZero "draft-zero" "a token was drafted that the draft gives probability 0";
        Repeated "draft-repeated"
            "a token was drafted twice for one position, where drafts are distinct";
        NotEmitted "accepted-not-emitted" "a draft was accepted and another token came out";
        AfterRejection "accepted-after-rejection" "a round went on behind its rejection";
        Missing "tokens-missing" "a round put out fewer tokens than it accepted, and one more";
        AfterEnd "text-after-its-end" "a text went on behind a token that ends texts";
    }
}

/// How often each [`Check`] failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checks {
    counts: [Count; Check::ALL.len()],
    /// Any row had a mask.
    pub has_masks: bool,
}

impl Checks {
    pub(crate) fn found(&mut self, check: Check, position: usize) {
        self.counts[check as usize].found(position);
    }

    pub(crate) fn of(&self, check: Check) -> Count {
        self.counts[check as usize]
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (own, more) in self.counts.iter_mut().zip(other.counts) {
            own.add(more);
        }
        self.has_masks |= other.has_masks;
    }

    /// Lists those that are made: of cuts and masks where there are any.
    pub(crate) fn list(&self, claimed_cut: bool) -> Vec<HardCheck> {
        let is_made = |check: &Check| match check {
            Check::Masked => self.has_masks,
            Check::Outside => claimed_cut,
            _ => true,
        };
        let made = Check::ALL.into_iter().filter(is_made);
        made.map(|check| self.of(check).check(check.as_str(), check.words()))
            .collect()
    }
}

/// How often, and where first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub violations: u64,
    pub first: Option<usize>,
}

impl Count {
    pub(crate) fn found(&mut self, position: usize) {
        self.violations += 1;
        self.first = Some(self.first.map_or(position, |first| first.min(position)));
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.violations += other.violations;
        self.first = self.first.into_iter().chain(other.first).min();
    }

    pub(crate) fn check(self, name: &'static str, words: &'static str) -> HardCheck {
        HardCheck {
            name: name.to_owned(),
            violations: self.violations,
            first_position: self.first,
            words: words.to_owned(),
        }
    }
}

impl Steps {
    /// Reads the rounds of a log, whose records are in order.
    pub(crate) fn read(
        log: &Log,
        rule: Rule,
        (order, records): (&Order, &[EngineRecord]),
        stop: &BTreeSet<u32>,
    ) -> Result<Self, AuditError> {
        let held = log.engine_tensors();
        let refused = |(index, message)| refused_at(log, order.at(index), message);
        if rule == Rule::TEXT {
            return Self::from_records(records, rule, false, stop).map_err(refused);
        }
        for (name, what) in [
            ("drafts", "the tokens that were drafted"),
            ("output", "the token that came out at each position"),
        ] {
            if !held.contains(&name) {
                return Err(AuditError::Log(format!(
                    "{}: has no tensor {name}, {what}; an audit of rounds needs drafts [N, n], \
                     output [N] and, for rounds of several tokens, accepted [N] \
                     (docs/reference/log-format.md). A text without them is audited for the target's law: \
                     ⟨rule text⟩",
                    log.path().display()
                )));
            }
        }
        let has_rounds = held.contains(&"accepted");
        if held.contains(&"round") && !has_rounds {
            return Err(AuditError::Log(format!(
                "{}: has round but no accepted; add accepted [N]: how many drafts were accepted in \
                 the round that starts there, -1 where none does",
                log.path().display()
            )));
        }
        Self::from_records(records, rule, has_rounds, stop).map_err(refused)
    }

    pub(crate) fn from_records(
        records: &[EngineRecord],
        rule: Rule,
        has_rounds: bool,
        stop: &BTreeSet<u32>,
    ) -> Result<Self, (usize, String)> {
        let mut steps = Self {
            at: vec![None; records.len()],
            outside: vec![None; records.len()],
            ..Self::default()
        };
        steps.siblings = rule.needs_siblings() || !has_rounds || are_alternatives(records);
        steps.by_output = !has_rounds;
        let mut round: Option<Round> = None;
        let mut form = Form::default();
        for (index, record) in records.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|i| records.get(i));
            let same_text = before.is_some_and(|before| before.prompt == record.prompt);
            if !same_text {
                // The end of a text may cut its last round.
                round = None;
            }
            if same_text
                && let Some(before) = before
                && let Some(ended) = token(before.output)
                && stop.contains(&ended)
                && follows(before.position, record.position)
            {
                steps.checks.found(Check::AfterEnd, index);
            }
            let drafts = (record.drafts.iter()).filter_map(|&x| u32::try_from(x).ok());
            let drafts: Vec<u32> = drafts.collect();
            let hit = token(record.output).is_some_and(|y| drafts.contains(&y));
            let accepted = match has_rounds {
                true => record.accepted.filter(|accepted| *accepted >= 0),
                false => Some(i64::from(hit)),
            };
            if let Some(accepted) = accepted {
                if let (Some(open), Some(before)) = (&round, before)
                    && !steps.siblings
                    && open.next <= open.accepted
                {
                    // Where the text goes on too soon, the round put out too little. Where it
                    // goes on as far behind as it should, the log lacks rows, such as that of
                    // the token behind a whole chain, to which the draft gave no row.
                    let lacks = open.accepted - open.next + 1;
                    if !goes_on_within(lacks, before.position, record.position) {
                        steps.cut += 1;
                        form.with_bonus += usize::from(open.is_whole());
                    } else if lacks == 1 && open.accepted == open.chain.len() {
                        form.bonus.found(index);
                    } else {
                        steps.checks.found(Check::Missing, index);
                    }
                } else if round.as_ref().is_some_and(Round::is_whole) {
                    form.with_bonus += 1;
                }
                let accepted = usize::try_from(accepted).unwrap_or(usize::MAX);
                if !steps.siblings && accepted > drafts.len() {
                    let has = drafts.len();
                    let words = format!("accepted is {accepted}, but the round has {has} drafts");
                    return Err((index, words));
                }
                steps.rounds += 1;
                round = Some(Round {
                    accepted,
                    chain: drafts.clone(),
                    next: 0,
                    is_broken: false,
                });
            }
            let Some(open) = &mut round else {
                if let Some(slot) = steps.outside.get_mut(index) {
                    *slot = token(record.output);
                }
                continue;
            };
            let depth = open.next;
            open.next += 1;
            if let Some(said) = record.round.filter(|said| *said >= 0)
                && usize::try_from(said) != Ok(depth)
            {
                let words = format!(
                    "round is {said}, but the round began {depth} positions before; round counts \
                     from 0 at the position where accepted is not -1"
                );
                return Err((index, words));
            }
            if depth > open.accepted {
                // A round has room for its chain and one token. What is behind the last round of a
                // text, or more than fits before the next one, was not recorded: no round is there.
                let said = record.round.is_some_and(|said| said >= 0);
                let latest = index - depth + open.chain.len() + 1;
                let surely = said || steps.siblings;
                let next = (!surely).then(|| begins_next(records, index)).flatten();
                let gone_on = surely || next.is_some_and(|next| next <= latest);
                if depth == open.accepted + 1 && (gone_on || next.is_none()) {
                    form.gone_on.found(index);
                }
                if gone_on {
                    steps.checks.found(Check::AfterRejection, index);
                } else {
                    round = None;
                    if let Some(slot) = steps.outside.get_mut(index) {
                        *slot = token(record.output);
                    }
                }
                continue;
            }
            let Some(output) = token(record.output) else {
                if rule == Rule::TEXT {
                    continue;
                }
                let words = "output is -1 inside a round; it is the token that came out there";
                return Err((index, words.to_owned()));
            };
            let kept = depth < open.accepted;
            let drafts = match steps.siblings {
                true => drafts,
                false => open.chain.get(depth).copied().into_iter().collect(),
            };
            if steps.siblings && kept && drafts.is_empty() {
                let words = "a draft was accepted there, but drafts has none";
                return Err((index, words.to_owned()));
            }
            form.kept += usize::from(kept);
            if kept && !drafts.contains(&output) {
                steps.checks.found(Check::NotEmitted, index);
                open.is_broken = true;
            }
            if open.is_broken {
                // What came out is of the text all the same: no sample is chosen by it.
                if let Some(slot) = steps.outside.get_mut(index) {
                    *slot = Some(output);
                }
                continue;
            }
            let most = if steps.siblings { &drafts } else { &open.chain };
            steps.most = steps.most.max(most.len());
            if let Some(slot) = steps.at.get_mut(index) {
                *slot = Some(Happened {
                    drafts,
                    accepted: kept,
                    output,
                    depth,
                    prompt: record.prompt,
                    batch: record.batch_size.filter(|size| *size >= 0),
                });
            }
        }
        if rule == Rule::TEXT {
            steps.rounds = 0;
        }
        form.settle(&mut steps)?;
        let single = rule.has_chains() && rule.tests_drafts();
        let several = |step: &Option<Happened>| {
            let drafts = step.as_ref().map(|step| &step.drafts);
            drafts.is_some_and(|drafts| drafts.len() > 1)
        };
        if single && let Some(index) = steps.at.iter().position(several) {
            let words = format!(
                "has {} drafts for one position, and {rule} takes one: drafts are alternatives without \
                 accepted [N], behind a round's first position, and where another than the first came \
                 out as the one accepted; add accepted, or name rrs, rrs-wo, level-4 or k-seq",
                steps.most
            );
            return Err((index, words));
        }
        if steps.most <= 1 && !rule.needs_siblings() {
            steps.siblings = false;
        }
        Ok(steps)
    }
}

/// Tells whether drafts can only be alternatives: such are behind a round's first position; or another than the first
/// came out as the one that was kept, and one did wherever one was kept.
fn are_alternatives(records: &[EngineRecord]) -> bool {
    let (mut another, mut any) = (false, true);
    let mut depth = None;
    for (index, record) in records.iter().enumerate() {
        depth = match record.accepted {
            Some(0..) => Some(0usize),
            _ if index > 0 && records[index - 1].prompt != record.prompt => None,
            _ => depth.map(|depth| depth + 1),
        };
        if depth > Some(0) && record.drafts.iter().any(|&x| x >= 0) {
            return true;
        }
        if let Some(count @ 1..) = record.accepted {
            let nth = (record.drafts.iter()).position(|&x| Some(x) == record.output);
            another |= nth > Some(0);
            any &= count == 1 && nth.is_some();
        }
    }
    another && any
}

struct Round {
    accepted: usize,
    chain: Vec<u32>,
    next: usize,
    /// Another token came out than a draft that was accepted.
    is_broken: bool,
}

impl Round {
    /// All of its drafts were accepted.
    fn is_whole(&self) -> bool {
        self.accepted > 0 && self.accepted == self.chain.len()
    }
}

/// What every round of a log does alike: how the log is written, rather than what an engine did
/// wrong now and then.
#[derive(Default)]
struct Form {
    /// Whole chains behind which the next round begins at once.
    bonus: Count,
    /// Whole chains with the token behind them.
    with_bonus: usize,
    /// Drafts that were accepted.
    kept: usize,
    /// Rounds that go on behind their rejection, or may do so at the end of a text.
    gone_on: Count,
}

impl Form {
    /// From how many on, all of them are no accident.
    const MANY: u64 = 5;

    fn settle(self, steps: &mut Steps) -> Result<(), (usize, String)> {
        steps.without_bonus = usize::try_from(self.bonus.violations).unwrap_or(usize::MAX);
        steps.never_bonus = self.with_bonus == 0;
        let all = |count: Count, of: usize| {
            let is_all = count.violations >= Self::MANY && count.violations == of as u64;
            count.first.filter(|_| is_all)
        };
        if let Some(first) = all(steps.checks.of(Check::NotEmitted), self.kept) {
            let words = format!(
                "none of the {} accepted drafts is the output of its position: output [N] is the \
                 token that came out at the position itself, and the columns of drafts are those \
                 of the position where the round starts and of the next ones",
                self.kept
            );
            return Err((first, words));
        }
        if let Some(first) = all(self.gone_on, steps.rounds) {
            let words = format!(
                "each of the {} rounds goes on behind its rejection: a round has accepted + 1 \
                 positions, the accepted drafts and one token more; leave the rows of other drafts \
                 out",
                steps.rounds
            );
            return Err((first, words));
        }
        Ok(())
    }
}

fn token(id: Option<i64>) -> Option<u32> {
    id.and_then(|id| u32::try_from(id).ok())
}

/// Tells whether one index of a text comes after another, as far as they are known.
pub(crate) fn follows(before: Option<i64>, after: Option<i64>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.checked_add(1) == Some(after),
        _ => true,
    }
}

/// Where the next round of a text begins behind a position of it.
fn begins_next(records: &[EngineRecord], index: usize) -> Option<usize> {
    let text = records.get(index)?.prompt;
    let behind = (records.iter().enumerate()).skip(index + 1);
    behind
        .take_while(|(_, record)| record.prompt == text)
        .find(|(_, record)| record.accepted.is_some_and(|accepted| accepted >= 0))
        .map(|(at, _)| at)
}

/// Tells whether fewer than so many tokens fit between two indices of a text, as far as they are
/// known. An index that is not behind the other begins another text.
fn goes_on_within(tokens: usize, before: Option<i64>, after: Option<i64>) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return true;
    };
    let between = after.checked_sub(before).map(|apart| apart - 1);
    between.is_some_and(|between| {
        between >= 0 && usize::try_from(between).is_ok_and(|between| between < tokens)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(accepted: i64, drafts: &[i64], output: i64) -> EngineRecord {
        EngineRecord {
            prompt: Some(0),
            drafts: drafts.to_vec(),
            output: Some(output),
            accepted: Some(accepted),
            ..EngineRecord::default()
        }
    }

    fn read(records: &[EngineRecord], rule: Rule) -> Result<Steps, (usize, String)> {
        Steps::from_records(records, rule, true, &BTreeSet::from([9]))
    }

    /// Records by how many of their drafts were accepted, which is empty within rounds, the drafts, and
    /// what came out.
    fn records(text: &str) -> Vec<EngineRecord> {
        let each = text.split(' ').map(|one| {
            let (accepted, rest) = one.split_once('[').unwrap();
            let (drafts, output) = rest.split_once(']').unwrap();
            let drafts = drafts.split(',').filter(|id| !id.is_empty());
            let drafts: Vec<i64> = drafts.map(|id| id.parse().unwrap()).collect();
            record(
                accepted.parse().unwrap_or(-1),
                &drafts,
                output.parse().unwrap(),
            )
        });
        each.collect()
    }

    fn read_text(text: &str) -> Steps {
        read(&records(text), Rule::TOKEN).unwrap()
    }

    impl Steps {
        fn violations(&self, check: Check) -> u64 {
            self.checks.of(check).violations
        }
    }

    /// Shows that records are refused at a position, in these words.
    fn refused(records: &[EngineRecord], rule: Rule, at: usize, words: &str) {
        let (position, message) = read(records, rule).unwrap_err();
        assert_eq!(position, at, "{message}");
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn a_chain_is_taken_apart() {
        let steps = read_text("1[4,5,6]4 []7 2[1,2]1 []2 []3");
        let all = steps.at.iter().flatten();
        let all = all.map(|step| (step.drafts.clone(), step.accepted, step.depth));
        let all: Vec<(Vec<u32>, bool, usize)> = all.collect();
        let expected = [
            (vec![4], true, 0),
            (vec![5], false, 1),
            (vec![1], true, 0),
            (vec![2], true, 1),
            // The bonus.
            (vec![], false, 2),
        ];
        assert_eq!(all, expected);
        assert_eq!((steps.rounds, steps.siblings), (2, false));
        assert_eq!(steps.checks, Checks::default());
    }

    /// A record says how far its round is, from 0 on, or -1 where that is not known.
    #[test]
    fn a_round_that_says_another_place_is_refused() {
        let read_with = |at: usize, said: Option<i64>| {
            let mut records = [record(1, &[4, 5], 4), record(-1, &[-1, -1], 7)];
            records[at].round = said;
            read(&records, Rule::TOKEN).map(|_| ())
        };
        for said in [None, Some(-1), Some(1)] {
            assert_eq!(read_with(1, said), Ok(()), "{said:?}");
        }
        for (at, said) in [(1, 0), (1, 2), (0, 1)] {
            let (index, why) = read_with(at, Some(said)).unwrap_err();
            assert_eq!(index, at);
            let words = format!("round is {said}, but the round began {at} positions before");
            assert!(why.starts_with(&words), "{why}");
        }
    }

    #[test]
    fn broken_rounds_are_counted() {
        // A round goes on behind the rejection; a draft was accepted, and another token came out; the
        // token behind the accepted one is missing; and behind the end of the text.
        let mut records = records("0[4,5]7 []5 1[4,5]3 0[4,5]9 0[4,5]1");
        let checks = read(&records, Rule::TOKEN).unwrap().checks;
        let count = |first| Count {
            violations: 1,
            first: Some(first),
        };
        assert_eq!(checks.of(Check::AfterRejection), count(1));
        assert_eq!(checks.of(Check::NotEmitted), count(2));
        assert_eq!(checks.of(Check::Missing), count(3));
        assert_eq!(checks.of(Check::AfterEnd), count(4));
        records[0] = record(3, &[4, 5], 4);
        refused(&records, Rule::TOKEN, 0, "accepted is 3");
    }

    /// A recorder that stops, or misses rounds, accuses no engine: tokens behind are in no round.
    #[test]
    fn what_was_not_recorded_is_outside_of_rounds() {
        let none = record(-1, &[-1, -1], 5);
        let first = record(0, &[4, 5], 7);
        for behind in [1, 2, 3, 20] {
            let mut records = vec![none.clone(); behind + 1];
            records[0] = first.clone();
            let steps = read(&records, Rule::TOKEN).unwrap();
            assert_eq!(steps.checks, Checks::default());
            assert_eq!(steps.outside.iter().flatten().count(), behind);
            // Before the next round there is room for two tokens behind the rejection.
            records.push(first.clone());
            let steps = read(&records, Rule::TOKEN).unwrap();
            let found = if behind <= 2 { behind } else { 0 };
            assert_eq!(steps.violations(Check::AfterRejection), found as u64);
            assert_eq!(steps.outside.iter().flatten().count(), behind - found);
            // Where the log says that it is one round, it is.
            for (depth, record) in (0..).zip(&mut records[..=behind]) {
                record.round = Some(depth);
            }
            let steps = read(&records, Rule::TOKEN).unwrap();
            assert_eq!(steps.violations(Check::AfterRejection), behind as u64);
        }
        // Rounds that are texts, each with a row of a draft that was rejected: the way it is written.
        let mut texts = vec![[first, none]; 6].concat();
        for (record, place) in texts.iter_mut().zip(0..) {
            record.prompt = Some(place / 2);
        }
        refused(&texts, Rule::TOKEN, 1, "goes on behind its rejection");
    }

    /// The same records, at these places of their text.
    fn placed(records: &[EngineRecord], places: &[i64]) -> Vec<EngineRecord> {
        let at = |(record, place): (&EngineRecord, &i64)| EngineRecord {
            position: Some(*place),
            ..record.clone()
        };
        records.iter().zip(places).map(at).collect()
    }

    #[test]
    fn rows_that_a_log_lacks_are_not_tokens_that_an_engine_lost() {
        // Two whole chains of two, without the rows of the tokens behind them.
        let records = records("2[4,5]4 []5 2[6,7]6 []7 0[1,2]3");
        let steps = read(&placed(&records, &[10, 11, 13, 14, 16]), Rule::TOKEN).unwrap();
        assert_eq!((steps.checks, steps.cut), (Checks::default(), 2));
        assert_eq!((steps.rounds, steps.at.iter().flatten().count()), (3, 5));
        // The text goes on at once: the second round puts out no token behind its chain, which is
        // a waste, and breaks nothing.
        let steps = read(&placed(&records, &[10, 11, 13, 14, 15]), Rule::TOKEN).unwrap();
        assert_eq!((steps.violations(Check::Missing), steps.cut), (0, 1));
        assert_eq!((steps.without_bonus, steps.never_bonus), (1, false));
        // A round that has one row of three, and place for two.
        let short = [records[0].clone(), records[4].clone()];
        for (place, lost) in [(11, 1), (12, 1), (13, 0), (20, 0), (10, 0), (0, 0)] {
            let steps = read(&placed(&short, &[10, place]), Rule::TOKEN).unwrap();
            assert_eq!(steps.violations(Check::Missing), lost, "{place}");
            assert_eq!(steps.cut as u64, 1 - lost, "{place}");
        }
        // Without places every row is taken to follow the one before.
        let steps = read(&records, Rule::TOKEN).unwrap();
        // All of them lack theirs: that favours no token.
        let counts = (steps.violations(Check::Missing), steps.cut);
        assert_eq!((counts, steps.without_bonus), ((0, 0), 2));
        assert!(steps.never_bonus);
    }

    #[test]
    fn drafts_behind_the_first_position_are_alternatives() {
        let records = records("1[4,5]5 [1,2]7 0[1,2]3");
        let steps = read(&records, Rule::ONE_HOT).unwrap();
        assert!(steps.siblings);
        let second = steps.at[1].clone().unwrap();
        assert_eq!(second.drafts, [1, 2]);
        assert_eq!((second.accepted, second.depth), (false, 1));
        let (_, message) = read(&records, Rule::TOKEN).unwrap_err();
        assert!(message.contains("takes one"), "{message}");
    }

    #[test]
    fn counts_keep_the_first() {
        let mut count = Count::default();
        for position in [5, 3, 8] {
            count.found(position);
        }
        assert_eq!((count.violations, count.first), (3, Some(3)));
        let at = |violations, first| Count { violations, first };
        for (mut one, other, sum) in [
            (at(1, Some(4)), at(2, Some(2)), at(3, Some(2))),
            (at(0, None), at(2, Some(2)), at(2, Some(2))),
            (at(1, Some(4)), at(0, None), at(1, Some(4))),
            (at(0, None), at(0, None), at(0, None)),
        ] {
            one.add(other);
            assert_eq!(one, sum);
        }
    }

    /// Where a text ends its last round may be cut, and rows before a round belong to none.
    #[test]
    fn texts_end_rounds() {
        // First the middle of a round that began before the log.
        let mut records = records("[]8 2[4,5]4 []5 []1 0[4,5]2");
        for record in &mut records[2..] {
            record.prompt = Some(1);
        }
        let steps = read(&records, Rule::TOKEN).unwrap();
        let held: Vec<bool> = steps.at.iter().map(Option::is_some).collect();
        assert_eq!(held, [false, true, false, false, true]);
        assert_eq!((steps.rounds, steps.cut, steps.most), (2, 0, 2));
        assert_eq!(steps.checks, Checks::default());
        let last = steps.at[4].clone().unwrap();
        assert_eq!((last.prompt, last.depth, last.output), (Some(1), 0, 2));
        // A token that ends texts ends its own alone.
        records[1].output = Some(9);
        records[1].drafts[0] = 9;
        let steps = read(&records, Rule::TOKEN).unwrap();
        assert_eq!(steps.checks.of(Check::AfterEnd), Count::default());
        records[3].output = Some(9);
        let steps = read(&records, Rule::TOKEN).unwrap();
        assert_eq!((steps.violations(Check::AfterEnd), steps.rounds), (1, 2));
        // Nor where the text goes on elsewhere: rows between are not in the log.
        for (place, position) in [(3, 7), (4, 9)] {
            records[place].position = Some(position);
        }
        let steps = read(&records, Rule::TOKEN).unwrap();
        assert_eq!(steps.checks.of(Check::AfterEnd), Count::default());
    }

    /// Without tensor `accepted` each position is a round, and a draft that came out was kept.
    #[test]
    fn positions_without_rounds() {
        let none = |drafts: &[i64], output: i64| EngineRecord {
            accepted: None,
            batch_size: Some(drafts.len() as i64 - 2),
            ..record(0, drafts, output)
        };
        let read = |records: &[EngineRecord], rule| {
            Steps::from_records(records, rule, false, &BTreeSet::new())
        };
        let records = [(&[4][..], 4), (&[5], 7), (&[-1], 3), (&[4, 5, 6], 6)];
        let records = records.map(|(drafts, output)| none(drafts, output));
        let steps = read(&records, Rule::RRS).unwrap();
        assert!(steps.siblings);
        assert_eq!((steps.rounds, steps.most), (4, 3));
        let all: Vec<_> = (steps.at.iter().flatten())
            .map(|step| (step.drafts.len(), step.accepted, step.depth, step.batch))
            .collect();
        let expected = [
            (1, true, 0, None),
            (1, false, 0, None),
            (0, false, 0, None),
            (3, true, 0, Some(1)),
        ];
        assert_eq!(all, expected);
        // One draft a position is no choice, but for rules of several.
        assert!(!read(&records[..3], Rule::TOKEN).unwrap().siblings);
        assert!(read(&records[..3], Rule::K_SEQ).unwrap().siblings);
        for rule in [Rule::TOKEN, Rule::BLOCK] {
            let (position, message) = read(&records, rule).unwrap_err();
            assert_eq!(position, 3);
            assert!(message.contains("has 3 drafts"), "{message}");
        }
        assert!(read(&records, Rule::EXACT_MATCH).unwrap().siblings);
    }

    #[test]
    fn accepted_drafts_have_to_be_there() {
        assert!(read(&records("2[4,5]4 []5"), Rule::TOKEN).is_ok());
        let (token, short) = (Rule::TOKEN, "accepted is 2, but the round has 1");
        refused(&records("2[4,-1]4"), token, 0, short);
        refused(&records("0[1]2 1[-1]4"), Rule::RRS, 1, "drafts has none");
        refused(&records("0[1]-1"), token, 0, "output is -1");
        // Drafts that no column names, and a batch of none.
        let one = EngineRecord {
            batch_size: Some(0),
            ..record(0, &[-1, -1], 3)
        };
        let steps = read(&[one], Rule::TOKEN).unwrap();
        let step = steps.at[0].clone().unwrap();
        assert_eq!((step.drafts.len(), step.batch), (0, Some(0)));
        assert_eq!((steps.most, steps.siblings), (0, false));
    }
}
