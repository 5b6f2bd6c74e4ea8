//! Policies: when to stop drafting.

use super::super::position::TextPosition;
use super::super::rollouts::{RolledOut, RolloutList};
use super::coins::{OfPlace, TextCoins};
use specgap_base::names;
use specgap_core::rounds::{DraftLength, Drafted, FixedLength, Lengths, Schedule, Stop, StopBy};
use std::fmt;
use std::str::FromStr;

/// What a policy is decided on, and so what a log must have for its draft tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedOn {
    /// Nothing but earlier rounds: the length is set when a round begins.
    EarlierRounds,
    /// The draft's row, before a token is drawn from it.
    DraftRow,
    /// The tokens drafted in this round, after each is drawn.
    DraftedTokens,
    /// The overlap of both rows, before a token is drawn: what a head that predicts the
    /// overlap would know if it were never wrong.
    BothRows,
    /// p/q of the tokens drafted in this round, after each is drawn: what a head that
    /// predicts acceptance would know if it were never wrong.
    TrueAcceptance,
    /// What a head predicts for the tokens drafted in this round, once the draft has read
    /// each.
    AcceptanceHead,
    /// The same of all tokens but the one that was drawn last, which is not read yet.
    LaggedAcceptanceHead,
    /// The overlap that a head predicts, before a token is drawn.
    OverlapHead,
}

names! {
    DecidedOn:
    EarlierRounds "earlier rounds",
    DraftRow "draft's row",
    DraftedTokens "drafted tokens",
    BothRows "both rows",
    TrueAcceptance "both models at the drafted tokens",
    AcceptanceHead "acceptance head, read before it decides",
    LaggedAcceptanceHead "acceptance head, one token late",
    OverlapHead "overlap head",
}

/// A family of policies: its entry in the table.
#[derive(Debug)]
pub struct Family {
    /// The name, as in options and files.
    pub name: &'static str,
    /// The rule, with x for the parameter.
    pub rule: &'static str,
    /// What it is decided on.
    pub decided_on: DecidedOn,
    /// What rollouts have to tell it beside the probabilities of their tokens.
    pub list: Option<RolloutList>,
    /// Parameters that are replayed if none are named.
    pub parameters: &'static [f64],
    /// Whether the parameter is a number of tokens.
    pub counts: bool,
    /// When it stops by itself; `None` if the length is set when a round begins.
    stop: Option<StopRule>,
}

/// When a family stops: by which number of each token, how these are read, and whether the token at
/// which it stops was drawn, and is kept.
#[derive(Clone, Copy, Debug)]
struct StopRule {
    value: OfPlace<f64>,
    by: StopBy,
    keeps: bool,
}

/// Stops before a token is drawn.
const fn before(value: OfPlace<f64>, by: StopBy) -> Option<StopRule> {
    let keeps = false;
    Some(StopRule { value, by, keeps })
}

/// Stops after a token, which is kept.
const fn after(value: OfPlace<f64>, by: StopBy) -> Option<StopRule> {
    let keeps = true;
    Some(StopRule { value, by, keeps })
}

/// The factor in SVIP's and AdaEDL's bound 1 - sqrt(gamma H(q)) on the overlap.
pub const SVIP_GAMMA: f64 = 0.15;
/// AdaEDL's own.
pub const ADAEDL_GAMMA: f64 = 0.2;

/// A head that says nothing sees no danger.
fn head_acceptance(place: &TextPosition) -> f64 {
    place.head_acceptance.unwrap_or(1.0)
}

/// Name, what it is decided on, what rollouts have to tell, usual parameters, when it stops, and the
/// rule.
macro_rules! families {
    (@count) => { true };
    (@threshold) => { false };
    ($($kind:ident $name:literal by $on:expr, $list:expr, $usual:expr, $stop:expr, $rule:literal;)+) => {
        /// All families, in the order of reports.
        pub static FAMILIES: &[Family] = &[$(Family {
            name: $name,
            rule: $rule,
            decided_on: $on,
            list: $list,
            parameters: $usual,
            counts: families!(@$kind),
            stop: $stop,
        }),+];
    };
}

families! {
    count "fixed" by DecidedOn::EarlierRounds, None,
        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0], None,
        "draft x tokens every round";
    count "schedule" by DecidedOn::EarlierRounds, None,
        &[5.0], None,
        "draft x tokens in the first round, then 2 more after a round whose drafts were all \
        accepted, else 1 fewer, at least 1 (transformers' schedule)";
    threshold "confidence" by DecidedOn::DraftedTokens, None,
        &[0.1, 0.2, 0.3, 0.4, 0.6, 0.8], after(|place| place.draft, StopBy::Below),
        "stop after a drafted token with q < x, which is kept (transformers' dynamic length, \
        vLLM's)";
    threshold "p-min" by DecidedOn::DraftRow, Some(RolloutList::Top),
        &[0.1, 0.2, 0.3, 0.5, 0.75], before(|place| place.top, StopBy::Below),
        "stop before drawing if the largest probability of q is below x (llama.cpp)";
    threshold "svip" by DecidedOn::DraftRow, Some(RolloutList::Entropy),
        &[0.2, 0.3, 0.5, 0.7, 0.9],
        before(|place| (SVIP_GAMMA * place.entropy).sqrt(), StopBy::Above),
        "stop before drawing if sqrt(0.15 H(q)) > x, H in nats (SVIP)";
    threshold "adaedl" by DecidedOn::DraftRow, Some(RolloutList::Entropy),
        &[0.1, 0.3, 0.5],
        before(|place| 1.0 - (ADAEDL_GAMMA * place.entropy).sqrt(), StopBy::Below),
        "stop before drawing if 1 - sqrt(0.2 H(q)) < x (AdaEDL with its threshold held; it \
        is svip with another number)";
    threshold "cumulative" by DecidedOn::DraftedTokens, None,
        &[0.02, 0.05, 0.1, 0.2, 0.3, 0.5], after(|place| place.draft, StopBy::ProductBelow),
        "stop after a drafted token that takes the product of q over the round's tokens \
        below x";
    threshold "overlap" by DecidedOn::BothRows, Some(RolloutList::Overlap),
        &[0.05, 0.1, 0.2, 0.4, 0.6], before(|place| place.overlap, StopBy::ProductBelow),
        "stop before drawing if the product of the round's overlaps, sum of min(p, q), falls \
        below x: the most that a head which predicts the overlap can know";
    threshold "perfect" by DecidedOn::TrueAcceptance, Some(RolloutList::TargetP),
        &[0.1, 0.3, 0.5, 0.7, 0.9],
        after(|place| (1.0 / place.ratio).min(1.0), StopBy::ProductBelow),
        "stop after a drafted token that takes the product of min(1, p/q) over the round's \
        tokens below x: SpecDec++ with 1 - x for its threshold and a head without error";
    threshold "specdec" by DecidedOn::AcceptanceHead, Some(RolloutList::HeadAcceptance),
        &[0.1, 0.3, 0.5, 0.7, 0.9], after(head_acceptance, StopBy::RiskAbove),
        "stop after a drafted token that takes 1 - the product of predicted acceptances over \
        the round's tokens above x (SpecDec++ as its paper has it: the draft reads the token \
        before it decides, and a row that makes it stop is not drawn from)";
    threshold "specdec-late" by DecidedOn::LaggedAcceptanceHead, Some(RolloutList::HeadAcceptance),
        &[0.1, 0.3, 0.5, 0.7, 0.9], after(head_acceptance, StopBy::RiskBefore),
        "the same one token late: the product leaves out the token that was drawn last \
        (SpecDec++ as its code has it)";
    threshold "overlap-head" by DecidedOn::OverlapHead, Some(RolloutList::HeadOverlap),
        &[0.05, 0.1, 0.2, 0.4, 0.6],
        before(|place| place.head_overlap.unwrap_or(1.0), StopBy::ProductBelow),
        "stop before drawing if the product of the overlaps that a head predicts for the \
        round's laws falls below x";
}

/// A family with its parameter.
///
/// ```
/// use specgap_replay::replay::Policy;
/// let policy: Policy = "confidence=0.4".parse()?;
/// assert_eq!(policy.to_string(), "confidence=0.4");
/// assert!("confidence".parse::<Policy>().is_err());
/// assert!("fixed=0.5".parse::<Policy>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The family.
    pub family: &'static Family,
    /// The parameter x of its rule.
    pub parameter: f64,
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.family.name == other.family.name && self.parameter == other.parameter
    }
}

impl Family {
    /// Finds a family by its name.
    ///
    /// # Errors
    /// Lists the names.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        (FAMILIES.iter())
            .find(|family| family.name == name)
            .ok_or_else(|| {
                let all: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
                format!("{name} is no policy; there are {}", all.join(", "))
            })
    }

    /// The family with a parameter.
    ///
    /// # Errors
    /// Parameters out of range: lengths are 1 to 1024, thresholds within 0 and 10.
    pub fn with(&'static self, parameter: f64) -> Result<Policy, String> {
        let (within, range) = match self.counts {
            true => (1.0..=1024.0, "a whole number from 1 to 1024"),
            false => (0.0..=10.0, "from 0 to 10"),
        };
        let is_odd = self.counts && parameter.fract() != 0.0;
        if is_odd || !within.contains(&parameter) {
            return Err(format!(
                "{}={parameter} is out of range; its number is {range}",
                self.name
            ));
        }
        Ok(Policy {
            family: self,
            parameter,
        })
    }

    /// The family with each of its usual parameters.
    pub fn usual(&'static self) -> impl Iterator<Item = Policy> {
        self.parameters.iter().map(move |&parameter| Policy {
            family: self,
            parameter,
        })
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no policy; write NAME=NUMBER, such as confidence=0.4");
        let (name, number) = text.split_once('=').ok_or_else(wrong)?;
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Family::named(name)?.with(number)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}={}", self.family.name, self.parameter))
    }
}

impl Policy {
    /// K tokens every round.
    pub fn fixed(length: usize) -> Self {
        Self {
            family: &FAMILIES[0],
            parameter: length as f64,
        }
    }

    /// Returns whether the log's text alone tells what is drafted after a rejected token.
    pub fn is_set_at_start(self) -> bool {
        self.family.decided_on == DecidedOn::EarlierRounds
    }

    /// Returns whether the row that makes it stop costs a draft step of which no token comes.
    pub fn stops_before_drawing(self) -> bool {
        matches!(
            self.family.decided_on,
            DecidedOn::DraftRow
                | DecidedOn::BothRows
                | DecidedOn::AcceptanceHead
                | DecidedOn::OverlapHead
        )
    }

    /// When it stops by itself, and by which number of each token.
    fn stop(self) -> Option<(OfPlace<f64>, Stop)> {
        let rule = self.family.stop?;
        let stop = Stop {
            by: rule.by,
            limit: self.parameter,
            keeps: rule.keeps,
        };
        Some((rule.value, stop))
    }
}

impl Family {
    /// Returns whether it decides on what a head predicts, of which most logs say nothing.
    pub fn needs_head(&self) -> bool {
        matches!(
            self.list,
            Some(RolloutList::HeadAcceptance | RolloutList::HeadOverlap)
        )
    }
}

/// A policy bound to a text; lengths that are not set by it are at most `most`.
#[derive(Clone, Debug)]
pub struct AlongText<'a> {
    policy: Policy,
    most: usize,
    lengths: LengthsAlong,
    tokens: usize,
    by_start: &'a [Vec<TextPosition>],
}

#[derive(Clone, Debug)]
enum LengthsAlong {
    Fixed(FixedLength),
    Schedule(Schedule),
    Stopping(Lengths),
}

/// The numbers by which a family stops, of one text: the same for all its parameters.
#[derive(Clone, Debug)]
pub(super) struct StopValues {
    family: &'static str,
    values: TextCoins,
}

impl<'a> AlongText<'a> {
    /// A policy along the positions of a text, or along those that it meets behind each start
    /// where that depends on the start.
    pub fn new(
        policy: Policy,
        places: &[TextPosition],
        by_start: &'a [Vec<TextPosition>],
        most: usize,
    ) -> Self {
        Self::with(policy, places, by_start, most, &mut None)
    }

    /// The same with the numbers of another parameter of its family, or kept for one.
    pub(super) fn with(
        policy: Policy,
        places: &[TextPosition],
        by_start: &'a [Vec<TextPosition>],
        most: usize,
        known: &mut Option<StopValues>,
    ) -> Self {
        let family = policy.family.name;
        let lengths = match policy.stop() {
            None if family == "schedule" => {
                LengthsAlong::Schedule(Schedule(policy.parameter as usize))
            }
            None => LengthsAlong::Fixed(FixedLength(policy.parameter as usize)),
            Some((value, stop)) => {
                let read = || StopValues {
                    family,
                    values: TextCoins::of(places, by_start, value),
                };
                let known = match known {
                    Some(known) if known.family == family => known,
                    _ => known.insert(read()),
                };
                LengthsAlong::Stopping(Lengths::of(stop, &known.values, most))
            }
        };
        Self {
            policy,
            most,
            lengths,
            tokens: places.len(),
            by_start,
        }
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What decides each round.
    pub fn lengths(&self) -> &dyn DraftLength {
        match &self.lengths {
            LengthsAlong::Fixed(lengths) => lengths,
            LengthsAlong::Schedule(lengths) => lengths,
            LengthsAlong::Stopping(lengths) => lengths,
        }
    }

    /// Returns what is drafted from a start if it draws the text's own tokens, by policies without
    /// memory.
    pub fn drafted(&self, start: usize) -> Drafted {
        match &self.lengths {
            LengthsAlong::Stopping(lengths) => lengths.0.get(start).copied().unwrap_or_default(),
            _ => Drafted {
                tokens: self.lengths().along(start, self.room(start), 0),
                stopped: false,
            },
        }
    }

    /// How many tokens may be drafted from a start.
    fn room(&self, start: usize) -> usize {
        let left = self.tokens.saturating_sub(start + 1);
        let row = self.by_start.get(start);
        row.map_or(left, |row| left.min(row.len()))
    }

    /// Returns what is drafted on a rollout. `Err` where the rollout ends before the policy does:
    /// the least that is drafted, and the most.
    ///
    /// # Errors
    /// As said.
    pub fn drafted_on(&self, rollout: &RolledOut) -> Result<Drafted, [Drafted; 2]> {
        let room = self.room(rollout.start);
        let (found, most) = match self.policy.stop() {
            Some((value, stop)) => {
                let values: Vec<f64> = rollout.places.iter().map(value).collect();
                let most = room.min(self.most);
                (stop.drafted(&values, most), most)
            }
            None => (self.drafted(rollout.start), room),
        };
        if found.stopped || found.tokens >= most {
            return Ok(found);
        }
        let longest = Drafted {
            tokens: most,
            stopped: false,
        };
        Err([found, longest])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is drafted from the first of some places, of which `most` may be.
    fn drafted(policy: &str, places: &[TextPosition], most: usize) -> Drafted {
        let places: Vec<_> = (places.iter())
            .chain(&[TextPosition::default(); 9])
            .copied()
            .collect();
        AlongText::new(policy.parse().unwrap(), &places, &[], most).drafted(0)
    }

    fn length(policy: &str, places: &[TextPosition]) -> usize {
        drafted(policy, places, 3).tokens
    }

    #[test]
    fn every_family_by_hand() {
        let place = |draft, top, entropy, overlap, ratio| TextPosition {
            ratio,
            draft,
            top,
            entropy,
            overlap,
            ..TextPosition::default()
        };
        let places = [
            place(0.8, 0.8, 0.4, 0.9, 0.5),
            place(0.5, 0.6, 0.9, 0.7, 1.25),
            place(0.1, 0.3, 2.0, 0.4, 4.0),
            place(0.9, 0.9, 0.1, 0.9, 1.0),
        ];
        for (policy, expected) in [
            ("fixed=7", 7),
            ("fixed=2", 2),
            // Kept, and the most is 3.
            ("confidence=0.6", 2),
            ("confidence=0.05", 3),
            ("confidence=0.9", 1),
            ("p-min=0.5", 2),
            ("p-min=0.85", 0),
            // sqrt(.15 H) = .245, .367, .548.
            ("svip=0.3", 1),
            ("svip=0.2", 0),
            ("svip=0.5", 2),
            // 1 - sqrt(.2 H) = .717, .576, .368.
            ("adaedl=0.6", 1),
            ("adaedl=0.5", 2),
            // .8, .4, .04.
            ("cumulative=0.5", 2),
            ("cumulative=0.9", 1),
            // .9, .63, .252.
            ("overlap=0.7", 1),
            ("overlap=0.6", 2),
            // 1, .8, .2.
            ("perfect=0.9", 2),
            ("perfect=0.5", 3),
        ] {
            assert_eq!(length(policy, &places), expected, "{policy}");
        }
        let schedule = AlongText::new("schedule=5".parse().unwrap(), &places, &[], 3);
        assert_eq!(schedule.lengths().first(), 5);
        assert_eq!(schedule.lengths().along(0, 10, 4), 4);
    }

    /// Predicted acceptances .8, .5, .9, .1: products .8, .4, .36, .036.
    #[test]
    fn heads_decide_with_the_token_that_was_read_or_one_late() {
        let places = [(0.8, 0.9), (0.5, 0.5), (0.9, 0.5), (0.1, 1.0)].map(|(accepted, common)| {
            TextPosition {
                head_acceptance: Some(accepted),
                head_overlap: Some(common),
                ..TextPosition::default()
            }
        });
        let drafted = |policy: &str, most: usize| drafted(policy, &places, most);
        for (policy, most, tokens, stopped) in [
            ("specdec=0.1", 4, 1, true),
            ("specdec=0.5", 4, 2, true),
            ("specdec=0.63", 4, 3, true),
            // Nobody asks behind the last that may be drafted.
            ("specdec=0.5", 2, 2, false),
            ("specdec=0.99", 4, 4, false),
            // Late: .2 is known when the second token is drawn.
            ("specdec-late=0.1", 4, 2, true),
            ("specdec-late=0.5", 4, 3, true),
            ("specdec-late=0.5", 3, 3, false),
            ("specdec-late=0.63", 5, 4, true),
            // .9, .45, .225, .225.
            ("overlap-head=0.95", 4, 0, true),
            ("overlap-head=0.5", 4, 1, true),
            ("overlap-head=0.3", 4, 2, true),
            ("overlap-head=0.2", 4, 4, false),
        ] {
            let expected = Drafted { tokens, stopped };
            assert_eq!(drafted(policy, most), expected, "{policy}, {most}");
        }
        // The code pays no step for what it does not read.
        let unused = ["specdec=0.5", "specdec-late=0.5", "overlap-head=0.5"]
            .map(|policy| policy.parse::<Policy>().unwrap().stops_before_drawing());
        assert_eq!(unused, [true, false, true]);
    }

    #[test]
    fn svip_and_adaedl_are_one_family() {
        for step in 1..60 {
            let place = TextPosition {
                entropy: f64::from(step) * 0.13,
                ..TextPosition::default()
            };
            let held = 0.41;
            let same = (1.0 - held) * (SVIP_GAMMA / ADAEDL_GAMMA).sqrt();
            let one = length(&format!("adaedl={held}"), &[place]);
            assert_eq!(one, length(&format!("svip={same}"), &[place]), "{step}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        for (text, word) in [
            ("nothing=1", "there are fixed"),
            ("fixed", "NAME=NUMBER"),
            ("fixed=x", "NAME=NUMBER"),
            ("fixed=0", "1 to 1024"),
            ("fixed=2.5", "1 to 1024"),
            ("svip=-1", "0 to 10"),
            ("svip=nan", "0 to 10"),
        ] {
            let error = text.parse::<Policy>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert_eq!(Policy::fixed(4), "fixed=4".parse().unwrap());
    }
}
