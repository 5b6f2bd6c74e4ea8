//! Positions that two logs have in common, and what their numbers differ by there.

use super::metric::Metric;
use super::settings::Part;
use super::summary::Measured;
use super::tally::{ExactSum, Tally};
use serde::{Deserialize, Serialize};
use specgap_base::sorted::Map;
use specgap_log::log::{Label, Log, LogError};
use specgap_number::known::Kind;
use specgap_statistics::{Clustered, Estimate};

/// Positions of the smaller log per position in common, at most: else what the logs have in
/// common is too little to speak for them.
const MOST_PER_SHARED: usize = 2;

/// The positions at which a log holds the same text as the first one, and sums over them.
///
/// Two positions are one if they have the same prompt, the same index and the same token,
/// and so have all that the logs hold of this prompt before them: then both models read the
/// same prefix. Where a text parts from the other's, everything after it is another.
#[derive(Clone, Debug)]
pub struct Pairing {
    /// The first log's, and the other's.
    sides: [Side; 2],
    /// Why the two are not compared position by position; `None` if they are.
    unpaired: Option<String>,
}

/// One log's part of a pairing.
#[derive(Clone, Debug, Default)]
struct Side {
    /// By position number: whether the other log has it.
    shared: Vec<bool>,
    /// Where each prompt's sums lie.
    places: Map<i64, usize>,
    sizes: Vec<u64>,
    tallies: Map<Metric, Tally>,
}

impl Pairing {
    /// Pairs two logs, of which `part` is measured. Reads no row.
    ///
    /// # Errors
    /// Prompts, positions or tokens that cannot be read.
    pub fn new(first: &Log, other: &Log, part: Part) -> Result<Self, LogError> {
        let logs = [first, other];
        let unpaired = |why: String| Self {
            sides: Default::default(),
            unpaired: Some(why),
        };
        let mut texts = Vec::with_capacity(2);
        for log in logs {
            let Some(text) = by_prompt(&log.labels()?) else {
                return Ok(unpaired(format!(
                    "{} does not say of which prompt, index and token its positions are \
                     (prompt_id, position, token)",
                    log.name()
                )));
            };
            texts.push(text);
        }
        let measured = logs.map(|log| part.of(log.positions()));
        let rows = [first.draft_rows()?, other.draft_rows()?];
        let mut shared = logs.map(|log| vec![false; log.positions()]);
        let mut count = 0;
        for (prompt, text) in &texts[0] {
            let Some(other) = texts[1].get(prompt) else {
                continue;
            };
            if named_apart(logs, *prompt) {
                continue;
            }
            for numbers in common_beginning(text, other) {
                let has_row = |(rows, n): (&Vec<bool>, usize)| rows.get(n) == Some(&true);
                let is_measured = (measured.iter().zip(numbers)).all(|(m, n)| m.contains(&n))
                    && rows.iter().zip(numbers).all(has_row);
                if is_measured {
                    count += 1;
                    for (all, number) in shared.iter_mut().zip(numbers) {
                        all[number] = true;
                    }
                }
            }
        }
        let [a, b] = measured.map(|range| range.len());
        if count * MOST_PER_SHARED < a.min(b) || count == 0 {
            return Ok(unpaired(format!(
                "{count} of the {a} positions of {} are of the same text as one of the {b} of {}",
                first.name(),
                other.name()
            )));
        }
        Ok(Self {
            sides: shared.map(|shared| Side {
                shared,
                ..Side::default()
            }),
            unpaired: None,
        })
    }

    /// Adds a position of the first log, 0, or of the other, 1.
    pub(super) fn add(&mut self, side: usize, measured: &Measured) {
        self.sides[side].add(measured);
    }

    /// Returns why the two logs are not compared position by position; `None` if they are.
    pub fn unpaired(&self) -> Option<&str> {
        self.unpaired.as_deref()
    }

    /// Positions that both logs have.
    pub fn positions(&self) -> usize {
        self.sides[0].sizes.iter().sum::<u64>() as usize
    }

    /// Prompts with such positions.
    pub fn prompts(&self) -> usize {
        self.sides[0].places.len()
    }

    /// The other log's number minus the first one's; `None` if they are not paired, or one
    /// has no such number.
    ///
    /// The interval is that of a mean of differences, by prompt: S_c is the difference of
    /// the two sums over the m_c shared positions of prompt c.
    pub(super) fn difference(&self, metric: Metric) -> Option<LogDifference> {
        if self.unpaired.is_some() {
            return None;
        }
        let [first, other] = &self.sides;
        let (a, b) = (first.tallies.get(&metric)?, other.tallies.get(&metric)?);
        let mut total = ExactSum::default();
        let mut clusters = Vec::with_capacity(first.places.len());
        for (prompt, &at) in &first.places {
            let own = a.sum(at);
            let theirs = other.places.get(prompt).map(|&at| b.sum(at));
            let difference = theirs.unwrap_or_default().minus(own);
            total.merge(difference);
            let size = first.sizes.get(at).copied().unwrap_or(0);
            clusters.push((difference.value(), size as f64));
        }
        let count = self.positions() as f64;
        let mean = |sum: ExactSum| sum.value() / count;
        let of_means = Clustered::with_total(total.value(), clusters.iter().copied());
        let bounds = [mean(b.lower.minus(a.upper)), mean(b.upper.minus(a.lower))];
        Some(LogDifference::new(
            metric,
            [a, b],
            of_means.estimate(),
            bounds,
            true,
        ))
    }
}

impl Side {
    fn add(&mut self, measured: &Measured) {
        let shared = self.shared.get(measured.number).copied().unwrap_or(false);
        let Some(prompt) = measured.prompt.filter(|_| shared) else {
            return;
        };
        let next = self.sizes.len();
        let place = *self.places.at_or(prompt, || next);
        if place == next {
            self.sizes.push(0);
        }
        if let Some(size) = self.sizes.get_mut(place) {
            *size += 1;
        }
        for (&metric, answer) in &measured.answers {
            if metric.is_rate() {
                self.tallies.at(metric).add(place, answer);
            }
        }
    }
}

/// (index in the text, token, position number) of the positions of a prompt.
type Text = Vec<(i64, i64, usize)>;

/// The texts, in the order of their indices; `None` if any position says less.
fn by_prompt(labels: &[Label]) -> Option<Map<i64, Text>> {
    let mut texts: Map<i64, Text> = Map::new();
    for (number, label) in labels.iter().enumerate() {
        let place = (label.position?, label.token?, number);
        texts.at(label.prompt?).push(place);
    }
    texts.values_mut().for_each(|text| text.sort_unstable());
    Some(texts)
}

/// Position numbers of two texts as far as these are one. An index that is there twice
/// ends it, and so does a position without a token.
fn common_beginning<'a>(
    first: &'a [(i64, i64, usize)],
    other: &'a [(i64, i64, usize)],
) -> impl Iterator<Item = [usize; 2]> + 'a {
    let is_once = |text: &[(i64, i64, usize)], at: usize| {
        let index = |at: usize| text.get(at).map(|place| place.0);
        index(at) != index(at + 1)
    };
    (0..)
        .zip(first.iter().zip(other))
        .take_while(move |(at, (one, two))| {
            (one.0, one.1) == (two.0, two.1)
                && one.1 >= 0
                && is_once(first, *at)
                && is_once(other, *at)
        })
        .map(|(_, (one, two))| [one.2, two.2])
}

/// Returns whether the logs give a prompt of one number two names.
fn named_apart(logs: [&Log; 2], prompt: i64) -> bool {
    let [one, two] = logs.map(|log| {
        let records = &log.metadata().prompts;
        let record = records.iter().find(|record| record.id == prompt);
        record.map(|record| &record.name)
    });
    one.is_some() && two.is_some() && one != two
}

/// A log's number minus that of the first log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogDifference {
    /// The mean and its interval: of the positions that both have if it is paired, else of
    /// each log's own.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The one of the two kinds that promises less.
    pub kind: Kind,
    /// The widest enclosures of the two numbers, added up.
    pub width_max: f64,
    /// Whether it is a mean of differences at the same positions.
    pub paired: bool,
}

impl LogDifference {
    /// A log's number beside the first one's, with the difference of their means and its bounds.
    pub(super) fn new(
        metric: Metric,
        [first, own]: [&Tally; 2],
        difference: Estimate,
        bounds: [f64; 2],
        paired: bool,
    ) -> Self {
        let kind = match [first.kind(), own.kind()] {
            kinds if kinds.contains(&Kind::Truncated) => Kind::Truncated,
            [first, own] => first.joined(own),
        };
        let is_loose = first.is_loose(metric) || own.is_loose(metric);
        Self {
            estimate: Estimate {
                truncation: (kind == Kind::Truncated).then_some(bounds),
                between: is_loose.then_some(bounds),
                ..difference
            },
            kind,
            width_max: first.widest + own.widest,
            paired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::Answers;
    use crate::metric::Temperature;
    use specgap_number::known::{Kind, Known};

    fn numbers(first: &[(i64, i64)], other: &[(i64, i64)]) -> Vec<[usize; 2]> {
        let text = |places: &[(i64, i64)]| -> Text {
            let numbered = places.iter().zip(10..);
            numbered.map(|(&(at, token), n)| (at, token, n)).collect()
        };
        common_beginning(&text(first), &text(other)).collect()
    }

    /// The mean over shared positions of the other log's overlap minus the first one's, and of
    /// what both may be off by as their rows list some tokens only.
    #[test]
    fn differences_of_truncated_rows_by_hand() {
        let metric = Metric::Overlap {
            temperature: Temperature(1.0),
        };
        let side = Side {
            shared: vec![true, true, false, true, true],
            ..Side::default()
        };
        let mut pairing = Pairing {
            sides: [side.clone(), side],
            unpaired: None,
        };
        let of = |number: usize, value: f64, [below, above]: [f64; 2]| {
            let mut answers = Answers::default();
            let range = [value - below, value + above];
            answers.insert(
                metric,
                Known::truncated(&Known::rate_within(value, below / 64.0), range),
            );
            Measured {
                number,
                prompt: Some(number as i64 / 4),
                answers,
                ..Measured::default()
            }
        };
        // The third position counts on neither side.
        for (number, value) in [(0, 0.25), (1, 0.5), (2, 0.125), (3, 0.75), (4, 0.5)] {
            pairing.add(0, &of(number, value, [0.125, 0.0625]));
            pairing.add(1, &of(number, value + 0.125, [0.03125, 0.25]));
        }
        assert_eq!((pairing.positions(), pairing.prompts()), (4, 2));
        let found = pairing.difference(metric).unwrap();
        assert_eq!(found.kind, Kind::Truncated);
        assert!((found.estimate.mean - 0.125).abs() < 1e-15, "{found:?}");
        let [lower, upper] = found.estimate.truncation.unwrap();
        assert!(
            (lower - (0.125 - 0.03125 - 0.0625)).abs() < 1e-15,
            "{found:?}"
        );
        assert!((upper - (0.125 + 0.25 + 0.125)).abs() < 1e-15, "{found:?}");
        // Twice what a number is off by on its own completion.
        let width = 2.0 * (0.125 + 0.03125) / 64.0;
        assert!((found.width_max - width).abs() < 1e-15, "{found:?}");
        // A number that neither has, and logs of other texts.
        let other = Metric::Overlap {
            temperature: Temperature(0.5),
        };
        assert!(pairing.difference(other).is_none());
        pairing.unpaired = Some("other texts".to_owned());
        assert!(pairing.difference(metric).is_none());
    }

    #[test]
    fn texts_are_one_until_they_part() {
        let text = [(0, 5), (1, 7), (2, 5)];
        assert_eq!(numbers(&text, &text), [[10, 10], [11, 11], [12, 12]]);
        // Another token, and what comes after it.
        assert_eq!(numbers(&text, &[(0, 5), (1, 8), (2, 5)]), [[10, 10]]);
        // A position that one of them lacks.
        assert_eq!(numbers(&text, &[(0, 5), (2, 5)]), [[10, 10]]);
        assert!(numbers(&text, &text[1..]).is_empty());
        // One that ends sooner.
        assert_eq!(numbers(&text, &text[..2]).len(), 2);
        // Thinned alike.
        assert_eq!(numbers(&[(3, 1), (9, 2)], &[(3, 1), (9, 2)]).len(), 2);
        // An index that is there twice.
        assert_eq!(numbers(&[(0, 5), (1, 7), (1, 7)], &text), [[10, 10]]);
        // Token 0 is a token, and -1 is none.
        assert_eq!(numbers(&[(0, 0), (1, 5)], &[(0, 0), (1, 5)]).len(), 2);
        assert!(numbers(&[(0, -1), (1, 5)], &[(0, -1), (1, 5)]).is_empty());
    }

    #[test]
    fn labels_that_lack_anything_make_no_texts() {
        let label = Label {
            prompt: Some(1),
            position: Some(0),
            token: Some(3),
        };
        assert_eq!(by_prompt(&[label]).unwrap()[&1], [(0, 3, 0)]);
        let changes: [fn(&mut Label); 3] = [
            |label| label.prompt = None,
            |label| label.position = None,
            |label| label.token = None,
        ];
        for change in changes {
            let mut lacking = label;
            change(&mut lacking);
            assert!(by_prompt(&[label, lacking]).is_none());
        }
    }
}
