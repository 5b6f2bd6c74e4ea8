//! Which requests may have drawn the same random numbers, and what their bets come to together.
//!
//! Within a request every bet is fair given the past. Capital of requests that draw numbers of
//! their own is multiplied. Of requests that may share numbers one can foretell another, and a
//! product of their bets proves nothing; their mean is an e-value however they depend.

use crate::audit::data::{RequestsReport, Seeds};
use crate::audit::evidence::bets::log_sum;
use crate::audit::evidence::book::Tally;
use crate::audit::model::engine::get;
use serde::{Deserialize, Serialize};
use specgap_base::names;
use specgap_base::sorted::Map;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a group of steps has in common: a family and which of it.
pub(crate) type Group = (Family, i64);

/// How steps are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Family {
    Depth,
    Prompt,
    BatchSize,
}

names!(Family: Depth "depth", Prompt "prompt", BatchSize "batch-size");

/// What a text is told by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub prompt: Option<i64>,
    pub position: Option<i64>,
    pub seed: Option<i64>,
}

/// The requests of a log. Unit 0 stands for all whose numbers are their own; each of the others is
/// a unit of a class that may share numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// By position, the text.
    pub text: Vec<usize>,
    /// By text, its unit.
    unit: Vec<usize>,
    /// By class, its units.
    classes: Vec<Range<usize>>,
    /// What the classes rest on.
    pub basis: &'static str,
}

impl Requests {
    pub(crate) fn new(places: impl Iterator<Item = Place>, said: Option<Seeds>) -> Self {
        let mut open = Map::<Option<i64>, (usize, Place)>::new();
        let mut seeds: Vec<Option<i64>> = Vec::new();
        let mut requests = Self::default();
        for place in places {
            let goes_on = open.get(&place.prompt).filter(|(_, before)| {
                let forward = match (before.position, place.position) {
                    (Some(before), Some(here)) => before < here,
                    _ => true,
                };
                forward && before.seed == place.seed
            });
            let text = match goes_on {
                Some(&(text, _)) => text,
                None => {
                    seeds.push(place.seed);
                    seeds.len() - 1
                }
            };
            open.insert(place.prompt, (text, place));
            requests.text.push(text);
        }
        let known = seeds.iter().all(Option::is_some);
        requests.basis = match said {
            Some(Seeds::Fresh) => "fresh",
            Some(Seeds::Shared) => "shared",
            None if known && !seeds.is_empty() => "log",
            None => "unknown",
        };
        // Texts by what they share; `None` for numbers that are nobody else's.
        let shared = |seed: &Option<i64>| match (said, known) {
            (Some(Seeds::Fresh), _) => None,
            (Some(Seeds::Shared), _) | (None, false) => Some(0),
            (None, true) => seed.filter(|seed| *seed >= 0),
        };
        let mut members = Map::<i64, Vec<usize>>::new();
        for (text, seed) in seeds.iter().enumerate() {
            if let Some(class) = shared(seed) {
                members.at(class).push(text);
            }
        }
        requests.unit = vec![0; seeds.len()];
        let mut units = 1;
        for texts in members.into_values().filter(|texts| texts.len() > 1) {
            let class = units..units + texts.len();
            units = class.end;
            for (text, own) in texts.into_iter().zip(class.clone()) {
                requests.unit[text] = own;
            }
            requests.classes.push(class);
        }
        requests
    }

    /// Counts the texts.
    pub(crate) fn texts(&self) -> usize {
        self.unit.len()
    }

    /// Returns the share of texts whose numbers are their own, where of those that are said to share theirs one counts.
    pub(crate) fn alone(&self) -> f64 {
        let texts = self.texts().max(1);
        let shared = match self.basis {
            "unknown" => 0,
            _ => self.averaged() - self.classes.len(),
        };
        (texts - shared) as f64 / texts as f64
    }

    /// Counts the texts of the largest class that is said to share its numbers; 1 where none is.
    pub(crate) fn together(&self) -> usize {
        let classes = self.classes.iter().filter(|_| self.basis != "unknown");
        classes.map(Range::len).max().unwrap_or(1)
    }

    /// Tells whether any may share its numbers with others.
    pub(crate) fn may_share(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Counts those that may share their numbers with others.
    pub(crate) fn averaged(&self) -> usize {
        self.classes.iter().map(Range::len).sum()
    }

    /// Reports how they were put together; `repeated` of them repeat others.
    pub(crate) fn report(&self, repeated: usize) -> RequestsReport {
        let averaged = self.averaged();
        RequestsReport {
            texts: self.texts(),
            fresh: self.texts() - averaged,
            averaged,
            seeds: self.basis.to_owned(),
            repeated,
        }
    }

    /// The unit of a position.
    pub(crate) fn unit_at(&self, position: usize) -> usize {
        let text = self.text.get(position);
        let unit = text.and_then(|text| self.unit.get(*text));
        unit.copied().unwrap_or(0)
    }

    /// Settles what bets have come to, from the tallies of units.
    pub(crate) fn settle(&self, logs: usize, units: &Map<usize, Tally>) -> Settled {
        let mut total = Tally::new(logs);
        let mut counted = [0u64; 4];
        if let Some(own) = units.get(&0) {
            total.add(own);
            counted = own.steps;
        }
        let mut price = 0.0;
        for members in &self.classes {
            let size = members.len();
            let tallies: Vec<&Tally> = members
                .clone()
                .filter_map(|unit| units.get(&unit))
                .collect();
            // A text without a step has what it began with.
            let idle = (size.saturating_sub(tallies.len()) as f64).ln();
            let share = (size as f64).ln();
            price += share;
            for (place, log) in total.logs.iter_mut().enumerate() {
                let own = tallies.iter().map(|tally| get(&tally.logs, place));
                *log += log_sum(own.chain([idle])) - share;
            }
            for (part, counted) in counted.iter_mut().enumerate() {
                let steps = tallies.iter().filter_map(|tally| tally.steps.get(part));
                *counted += steps.max().copied().unwrap_or(0);
            }
            for tally in tallies {
                for (sum, steps) in total.steps.iter_mut().zip(tally.steps) {
                    *sum += steps;
                }
            }
        }
        Settled {
            total,
            counted,
            price,
        }
    }
}

/// Capital of all units, and what it could have come to.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub total: Tally,
    /// Steps of the longest text of each class, and all that are multiplied.
    pub counted: [u64; 4],
    /// ln of what such a text's capital is divided by.
    pub price: f64,
}

/// Texts that repeat others, where independent draws would with a probability below the level: two
/// that begin alike, over all pairs, or any number that are the same from end to end. `tokens` is, by text, its tokens with ln of the probability of each.
pub(crate) fn repeated(tokens: &[Vec<(u32, f64)>]) -> usize {
    /// The probability that any independent texts are taken for a repetition.
    const LEVEL: f64 = 1e-6;
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    let ids = |text: usize| tokens.get(text).into_iter().flatten().map(|(id, _)| *id);
    order.sort_by(|&a, &b| ids(a).cmp(ids(b)));
    let pairs = 0.5 * tokens.len() as f64 * (tokens.len() as f64 - 1.0);
    let least = (0.5 * LEVEL / pairs.max(1.0)).ln();
    let all = (tokens.len() as f64).ln();
    let mut found = BTreeSet::new();
    for same in order.chunk_by(|&a, &b| ids(a).eq(ids(b))) {
        // Of all sets of so many texts, each but the first draws what the first did.
        let chances = same.iter().filter_map(|text| tokens.get(*text));
        let chances = chances.map(|text| text.iter().map(|(_, chance)| chance).sum::<f64>());
        let chance = chances.fold(f64::NEG_INFINITY, f64::max);
        let many = same.len() as f64;
        if many > 1.0 && many * all + (many - 1.0) * chance <= (0.5 * LEVEL).ln() - all {
            found.extend(same.iter().copied());
        }
    }
    for &[a, b] in order.array_windows() {
        let (Some(first), Some(second)) = (tokens.get(a), tokens.get(b)) else {
            continue;
        };
        let same = first.iter().zip(second).take_while(|(x, y)| x.0 == y.0);
        // Given one text, the other draws the same with its own probabilities. The likelier of
        // the two, so that the order does not matter.
        let chance = same.fold([0.0; 2], |[p, q], (x, y)| [p + x.1, q + y.1]);
        if chance[0].max(chance[1]) <= least {
            found.extend([a, b]);
        }
    }
    found.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(prompt: i64, position: i64, seed: Option<i64>) -> Place {
        Place {
            prompt: Some(prompt),
            position: Some(position),
            seed,
        }
    }

    #[test]
    fn texts_begin_with_a_prompt_a_seed_or_an_earlier_place() {
        // Two texts of one prompt, and rows of two prompts in turn.
        let places = [
            (0, 0),
            (0, 1),
            (0, 0),
            (0, 1),
            (1, 0),
            (2, 0),
            (1, 1),
            (2, 3),
        ];
        let of = |seeds: [i64; 8]| {
            let all = places.iter().zip(seeds);
            let all = all.map(|(&(prompt, at), seed)| place(prompt, at, Some(seed)));
            Requests::new(all, None).text
        };
        assert_eq!(of([4; 8]), [0, 0, 1, 1, 2, 3, 2, 3]);
        assert_eq!(of([4, 5, 4, 4, 4, 4, 4, 4]), [0, 1, 2, 2, 3, 4, 3, 4]);
        // Without places a prompt is one text.
        let bare = [0, 0, 1, 0].map(|prompt| Place {
            prompt: Some(prompt),
            ..Place::default()
        });
        assert_eq!(Requests::new(bare.into_iter(), None).text, [0, 0, 1, 0]);
    }

    #[test]
    fn what_may_be_shared_is_said_or_logged() {
        let (fresh, shared) = (Some(Seeds::Fresh), Some(Seeds::Shared));
        let some = |seeds: [i64; 4]| seeds.map(Some).to_vec();
        let (none, all) = (&[0; 4][..], &[1, 2, 3, 4][..]);
        for (seeds, said, units, averaged, basis) in [
            (some([-1; 4]), None, none, 0, "log"),
            (some([5, 6, 7, 8]), None, none, 0, "log"),
            (some([5, 6, 5, 6]), None, &[1, 3, 2, 4], 4, "log"),
            (some([5, -1, 5, 6]), None, &[1, 0, 2, 0], 2, "log"),
            // What is not known may be anybody's.
            (
                vec![Some(5), None, Some(6), Some(-1)],
                None,
                all,
                4,
                "unknown",
            ),
            (vec![None; 4], None, all, 4, "unknown"),
            (vec![None; 4], fresh, none, 0, "fresh"),
            (some([5; 4]), fresh, none, 0, "fresh"),
            (some([-1; 4]), shared, all, 4, "shared"),
            // One text shares with nobody.
            (vec![None], None, &[0], 0, "unknown"),
            (vec![], None, &[], 0, "unknown"),
        ] {
            let places = (0..).zip(&seeds);
            let places = places.map(|(prompt, seed)| place(prompt, 0, *seed));
            let found = Requests::new(places, said);
            let own: Vec<usize> = (0..seeds.len()).map(|at| found.unit_at(at)).collect();
            assert_eq!(own, units, "{seeds:?} {said:?}");
            assert_eq!((found.averaged(), found.basis), (averaged, basis));
        }
        for said in [Seeds::Fresh, Seeds::Shared] {
            assert_eq!(said.to_string().parse(), Ok(said));
        }
        assert!("own".parse::<Seeds>().is_err());
    }

    /// Unit 0 is multiplied, each class is a mean, and who has no step has what it began with.
    #[test]
    fn means_and_products_by_hand() {
        let seeds = [-1, 5, 5, 5, 6, 6, -1].map(Some);
        let places = (0..)
            .zip(seeds)
            .map(|(prompt, seed)| place(prompt, 0, seed));
        let requests = Requests::new(places, None);
        let tally = |steps: u64, capital: f64| Tally {
            steps: [0, 0, 0, steps],
            logs: vec![capital.ln()],
        };
        let units = Map::from([
            (0, tally(9, 2.0)),
            (1, tally(4, 10.0)),
            (2, tally(7, 0.1)),
            (4, tally(3, 8.0)),
            (5, tally(5, 2.0)),
        ]);
        let found = requests.settle(1, &units);
        let expected: f64 = 2.0 * (10.0 + 0.1 + 1.0) / 3.0 * 5.0;
        assert!((found.total.logs[0] - expected.ln()).abs() < 1e-14);
        assert_eq!(found.total.steps, [0, 0, 0, 28]);
        assert_eq!(found.counted, [0, 0, 0, 9 + 7 + 5]);
        assert!((found.price - 6f64.ln()).abs() < 1e-15);
        let own = Map::from([(2, tally(7, 0.1))]);
        let found = requests.settle(1, &own);
        assert!((found.total.logs[0] - (2.1f64 / 3.0).ln()).abs() < 1e-15);
    }

    #[test]
    fn texts_that_repeat() {
        let half = 0.5f64.ln();
        let text = |tokens: &[u32]| -> Vec<(u32, f64)> {
            tokens.iter().map(|token| (*token, half)).collect()
        };
        let long: Vec<u32> = (0..30).collect();
        let mut other = long.clone();
        other[25] = 77;
        let mut early = long.clone();
        early[10] = 77;
        // 2^-25 is below 1e-6 over six pairs, 2^-10 is not.
        let all = [text(&long), text(&early), text(&other), text(&[5, 6])];
        assert_eq!(repeated(&all), 2);
        assert_eq!(repeated(&all[1..]), 0);
        // Each of many short texts says little, and all together much.
        assert_eq!(repeated(&vec![text(&long[..8]); 2]), 0);
        assert_eq!(repeated(&vec![text(&long[..8]); 100]), 100);
        // What is certain repeats without need of an explanation.
        let sure: Vec<(u32, f64)> = long.iter().map(|token| (*token, 0.0)).collect();
        assert_eq!(repeated(&[sure.clone(), sure]), 0);
        assert_eq!(repeated(&[]), 0);
    }
}
