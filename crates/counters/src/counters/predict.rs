//! From counts to acceptance lengths of every draft length.

use super::best::{self, Settings};
use super::counted::{Counted, Rounds};
use super::data::{
    AtLength, COUNTERS_SCHEMA, CountersReport, GroupCounts, Kind, Note, Served, TokensARound,
};
use super::notes::ENOUGH;
use super::runs::Runs;
use super::{changes, definitions, notes, steps};
use specgap_statistics::curve::Curve;
use specgap_statistics::statistics::NORMAL_95;
use specgap_statistics::{Clustered, Estimate};

/// What ranges allow for coins that depend on where the round started: on the shipped heads the truth was up
/// to .41% outside of them.
const HEADS: f64 = 0.01;

/// The longest length that is asked for by default.
const UP_TO: usize = 8;

/// Up to this share of K that is not drafted, rates still go on beyond K.
const HARDLY_SHORT: f64 = 0.01;

/// Reports what counts say of every draft length.
///
/// # Formula
/// A round of K drafts that accepts j of them puts out j + 1 tokens. Rounds of k drafts need
/// `ceil((j + 1)/(k + 1))` for the same tokens, and of a wholly accepted round (j = K) the last may go on
/// in the next. So `AL(k) = tokens / calls(k)` with calls between two ends, which meet where k + 1
/// divides K + 1; the mean takes rounds as independent of each other, and the coin behind a wholly
/// accepted one as likely as the last (`S_K / S_(K - 1)`). The range also holds
/// `1 + S_1 + .. + S_k`, which is the truth where coins depend on the place within a round alone, and is
/// 1% wider at both ends, for coins that depend on where the round started. Where
/// every round of every request is listed, rounds of k <= K drafts are replayed instead.
///
/// # Exactness
/// Counted lengths are counts by counts. Intervals are over requests (Student's t, clustered), and over
/// rounds where requests are not told apart; ranges are of models, and no intervals.
#[must_use]
pub fn predict(counted: &Counted, settings: &Settings) -> CountersReport {
    let mut sorted = counted.clone();
    if sorted.by_request {
        sorted.sort();
    }
    let counted = &sorted;
    let total = counted.total();
    let sums = Sums::new(counted, &total);
    let mut lengths = sums.lengths(settings);
    if let Some(costs) = &settings.costs {
        for at in &mut lengths {
            at.speedup = costs.speedup(at.length, at.acceptance_length.mean);
        }
    }
    let supported: &[AtLength] = if sums.are_enough() { &lengths } else { &[] };
    let costs = settings.costs.as_ref();
    let best = costs.and_then(|costs| best::best(supported, costs));
    let advice = changes::changes(&lengths, best.as_ref(), counted.length);
    let (by_batch, list) = best::by_batch(supported, &settings.by_batch);
    let by_cost = match (&settings.costs, settings.by_batch.is_empty()) {
        (None, true) => best::by_cost(supported),
        _ => Vec::new(),
    };
    let mut notes = notes::notes(counted, &total, sums.short());
    notes.extend(settings.cost_source.clone());
    notes.extend(sums.left_out(settings));
    CountersReport {
        schema: COUNTERS_SCHEMA,
        command: settings.command.clone(),
        source: counted.source,
        length: counted.length,
        notes,
        served: sums.served(),
        curve: sums.curve(),
        groups: groups(counted, settings),
        lengths,
        advice,
        best,
        by_cost,
        by_batch,
        num_speculative_tokens_per_batch_size: list,
        unknown: notes::unknown(),
        definitions: definitions::counters_definitions(),
    }
}

/// Every group by itself, and against the requests of all others.
fn groups(counted: &Counted, settings: &Settings) -> Vec<GroupCounts> {
    let names = counted.group_names();
    let each = names.iter().map(|name| {
        let own = counted.of_group(name, true);
        let more = (names.len() > 1).then(|| {
            let others = counted.of_group(name, false);
            tokens_a_round(&own).minus_among(&tokens_a_round(&others), names.len())
        });
        let alone = Settings {
            by_batch: Vec::new(),
            ..settings.clone()
        };
        let found = predict(&own, &alone);
        GroupCounts {
            group: (*name).to_owned(),
            served: found.served,
            curve: found.curve,
            lengths: found.lengths,
            best: found.best,
            is_told: more.as_ref().is_some_and(|more| more.side().is_some()),
            more,
        }
    });
    each.collect()
}

/// Accepted drafts and the bonus token by rounds, over requests.
fn tokens_a_round(counted: &Counted) -> Clustered {
    let of = |one: &Rounds| (one.rounds + one.accepted, one.rounds);
    Clustered::new(counted.clusters.iter().map(of))
}

/// Rounds that accept at least i drafts; all of them for i = 0.
fn reached(one: &Rounds, place: usize) -> f64 {
    let Some(before) = place.checked_sub(1) else {
        return one.rounds;
    };
    let reached = one.reached.as_ref().and_then(|all| all.get(before));
    reached.copied().unwrap_or(0.0)
}

/// Rounds that accept exactly i drafts.
fn exactly(one: &Rounds, place: usize) -> f64 {
    reached(one, place) - reached(one, place + 1)
}

/// Counts with their sums.
struct Sums<'a> {
    counted: &'a Counted,
    total: &'a Rounds,
    /// Where K and places are known.
    runs: Option<Runs>,
}

impl<'a> Sums<'a> {
    fn new(counted: &'a Counted, total: &'a Rounds) -> Self {
        let length = counted.length.filter(|_| total.reached.is_some());
        let untried =
            |length: usize, drafted: f64| (length as f64 * total.rounds - drafted).max(0.0);
        let texts = counted.clusters.len();
        let texts = if counted.by_request { texts } else { 0 };
        let runs = length.map(|length| Runs {
            exactly: (0..=length).map(|place| exactly(total, place)).collect(),
            untried: total
                .drafted
                .map_or(0.0, |drafted| untried(length, drafted)),
            texts: texts as f64,
        });
        Self {
            counted,
            total,
            runs,
        }
    }

    /// The share of K that rounds do not draft.
    fn short(&self) -> f64 {
        let (Some(length), Some(drafted)) = (self.counted.length, self.total.drafted) else {
            return 0.0;
        };
        (1.0 - drafted / (length as f64 * self.total.rounds)).max(0.0)
    }

    /// Whether there are rounds enough to advise of.
    fn are_enough(&self) -> bool {
        !self.counted.rates_alone && self.total.rounds >= ENOUGH
    }

    /// Whether rates may be taken on beyond K.
    fn goes_beyond(&self, length: usize) -> bool {
        self.are_enough() && self.short() <= HARDLY_SHORT && reached(self.total, length) >= ENOUGH
    }

    /// Says what was asked for and too few events support.
    fn left_out(&self, settings: &Settings) -> Option<Note> {
        let may_go = self.runs.is_some() && self.are_enough() && self.short() <= HARDLY_SHORT;
        let length = self.counted.length.filter(|&length| {
            may_go && length < settings.up_to.unwrap_or(UP_TO) && !self.goes_beyond(length)
        });
        let is_enough = self.are_enough() || self.counted.rates_alone;
        let beyond = length.map(|length| (length, reached(self.total, length)));
        notes::left_out((self.total.rounds, is_enough), beyond)
    }

    /// A mean that moves by `moves[j]` with a round that accepts j, with its interval.
    fn estimate(&self, mean: f64, moves: &[f64]) -> Estimate {
        if self.counted.has_requests() {
            let pair = |one: &Rounds| {
                let by = moves.iter().enumerate();
                let moved: f64 = by.map(|(place, by)| by * exactly(one, place)).sum();
                (mean * one.rounds + moved, one.rounds)
            };
            let all = Clustered::new(self.counted.clusters.iter().map(pair)).estimate();
            return Estimate::plus_minus(mean, half(&all));
        }
        if self.counted.rates_alone {
            return Estimate::plus_minus(mean, 0.0);
        }
        let squares: f64 = (moves.iter().enumerate())
            .map(|(place, by)| exactly(self.total, place) * by * by)
            .sum();
        Estimate::plus_minus(mean, NORMAL_95 * squares.sqrt() / self.total.rounds)
    }

    /// The share of rounds times what each accepts, with its interval.
    fn mean_of(&self, runs: &Runs, of: impl Fn(usize) -> f64) -> Estimate {
        let each: Vec<f64> = (0..runs.exactly.len()).map(of).collect();
        let pairs = each.iter().zip(&runs.exactly);
        let sum: f64 = pairs.map(|(by, count)| by * count).sum();
        self.estimate(sum / self.total.rounds, &runs.centred(each))
    }

    /// Tokens a round of those that ran.
    fn ran(&self) -> Estimate {
        if self.counted.has_requests() {
            return tokens_a_round(self.counted).estimate();
        }
        let mean = 1.0 + self.total.accepted / self.total.rounds;
        match (&self.runs, self.counted.length) {
            (Some(runs), _) => {
                let of = self.mean_of(runs, |accepted| (accepted + 1) as f64);
                Estimate::plus_minus(mean, half(&of))
            }
            // Of numbers from 0 to K with a mean none spread more than 0 and K themselves.
            (None, Some(length)) => {
                let most = (mean - 1.0) * (length as f64 + 1.0 - mean).max(0.0);
                Estimate::plus_minus(mean, NORMAL_95 * (most / self.total.rounds).sqrt())
            }
            (None, None) => Estimate::plus_minus(mean, 0.0),
        }
    }

    fn served(&self) -> Served {
        let total = self.total;
        Served {
            rounds: (!self.counted.rates_alone).then_some(total.rounds),
            requests: (self.counted.by_request).then_some(self.counted.clusters.len()),
            acceptance_length: self.ran(),
            accepted_per_round: total.accepted / total.rounds,
            acceptance_rate: (total.drafted.filter(|&drafted| drafted > 0.0))
                .map(|drafted| total.accepted / drafted),
            drafted_per_round: total.drafted.map(|drafted| drafted / total.rounds),
        }
    }

    fn curve(&self) -> Option<Curve> {
        let (runs, length) = (self.runs.as_ref()?, self.counted.length?);
        let at_least =
            |place: usize| self.mean_of(runs, |accepted| f64::from(u8::from(accepted >= place)));
        let rounds = self.total.rounds;
        Some(Curve {
            length,
            marginal: (1..=length).map(at_least).collect(),
            acceptance_length: self.mean_of(runs, |accepted| (accepted + 1) as f64),
            histogram: Some(runs.exactly.iter().map(|count| count / rounds).collect()),
            rounds: (rounds.fract() == 0.0 && !self.counted.rates_alone).then_some(rounds as u64),
        })
    }

    fn lengths(&self, settings: &Settings) -> Vec<AtLength> {
        let Some(longest) = self.counted.length else {
            return Vec::new();
        };
        let ran = at(longest, self.ran(), None, Kind::Counted);
        let Some(runs) = &self.runs else {
            // Every round drafted K tokens, or K would not be known.
            return vec![ran];
        };
        let whole = self.mean_of(runs, |accepted| (accepted + 1) as f64);
        let ran = match self.short() * longest as f64 {
            short if short <= HARDLY_SHORT => at(longest, whole, None, Kind::Counted),
            _ => self.by_runs(runs, longest),
        };
        if !self.are_enough() {
            return vec![ran];
        }
        let listed = self.counted.clusters.iter().all(|one| one.steps.is_some());
        let up_to = match self.goes_beyond(longest) {
            true => settings.up_to.unwrap_or(UP_TO).max(longest),
            false => longest,
        };
        (1..=up_to)
            .map(|length| match length {
                length if listed && length <= longest => self.replayed(length, longest, whole),
                length if length == longest => ran.clone(),
                length => self.by_runs(runs, length),
            })
            .collect()
    }

    /// What runs of accepted tokens tell.
    fn by_runs(&self, runs: &Runs, length: usize) -> AtLength {
        let found = runs.expected(length);
        let [low, high] = runs.ends(length);
        let (low, high) = (low * (1.0 - HEADS), high * (1.0 + HEADS));
        let (low, high) = (low.max(1.0), high.min((length + 1) as f64));
        let mean = self.estimate(found.mean, &found.moves);
        let mean = Estimate::plus_minus(found.mean.clamp(low, high), half(&mean));
        let kind = match length > self.counted.length.unwrap_or(length) {
            true => Kind::Extrapolated,
            false => Kind::Runs,
        };
        at(length, mean, Some([low, high]), kind)
    }

    /// Rounds of `length` drafts along every request: coins that nobody threw come up as often as those of
    /// the last places. Between what these leave open, and how a text is cut in its last round.
    fn replayed(&self, length: usize, longest: usize, whole: Estimate) -> AtLength {
        let steps = || (self.counted.clusters.iter()).filter_map(|one| one.steps.as_ref());
        if length == longest && steps().all(|one| steps::ran(one, length)) {
            return at(length, whole, None, Kind::Counted);
        }
        let (low, high): (Vec<_>, Vec<_>) =
            steps().map(|one| steps::ends(one, length).into()).unzip();
        let range = [(low, false), (high, true)].map(|(all, most)| {
            let [tokens, rounds] = sum_of(steps::extreme(&all, most).into_iter());
            tokens / rounds
        });
        let thrown: Vec<[f64; 2]> = steps().map(|one| steps::last_coins(one)).collect();
        let [up, all] = sum_of(thrown.iter().copied());
        let chance = if all > 0.0 { up / all } else { 0.0 };
        let along = |chance: f64| steps().map(move |one| steps::expected(one, length, chance));
        let own: Vec<[f64; 2]> = along(chance).collect();
        let [_, rounds] = sum_of(own.iter().copied());
        let ends = [(chance - STEP).max(0.0), (chance + STEP).min(1.0)];
        let [low, high] = ends.map(|chance| {
            let [tokens, rounds] = sum_of(along(chance));
            tokens / rounds
        });
        let slope = (high - low) / (ends[1] - ends[0]);
        // The chance is of the same requests, and moves the mean with each of them.
        let by_chance = if all > 0.0 { slope * rounds / all } else { 0.0 };
        let pairs = own.iter().zip(&thrown);
        let pairs = pairs.map(|([tokens, rounds], [up, all])| {
            (tokens + by_chance * (up - chance * all), *rounds)
        });
        let mean = Clustered::new(pairs).estimate();
        at(length, mean, Some(range), Kind::Replayed)
    }
}

/// How far a chance is moved to see what moves with it.
const STEP: f64 = 1e-4;

fn sum_of(pairs: impl Iterator<Item = [f64; 2]>) -> [f64; 2] {
    pairs.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
}

/// Half of a 95% interval.
fn half(one: &Estimate) -> f64 {
    (one.ci95[1] - one.ci95[0]) / 2.0
}

fn at(length: usize, tokens: Estimate, range: Option<[f64; 2]>, kind: Kind) -> AtLength {
    AtLength {
        length,
        acceptance_rate: (tokens.mean - 1.0) / length as f64,
        acceptance_length: TokensARound {
            mean: tokens.mean,
            ci95: tokens.ci95,
            range,
        },
        kind,
        speedup: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::best::Costs;
    use super::super::counted::{Source, Step};
    use super::*;

    fn counted(clusters: Vec<Rounds>, length: usize) -> Counted {
        let by_request = clusters.len() > 1;
        Counted {
            length: Some(length),
            by_request,
            ..Counted::of(Source::VllmRequests, clusters)
        }
    }

    fn rounds(reached: &[f64], rounds: f64, drafted: f64) -> Rounds {
        let (accepted, reached) = (reached.iter().sum(), reached.to_vec());
        Rounds::new(rounds, Some(drafted), accepted, Some(reached))
    }

    /// Run lengths by hand: 30 rounds of 3 that accept all, 20 that accept 1, 50 that accept none.
    #[test]
    fn runs_of_accepted_tokens_bound_every_length() {
        let all = counted(vec![rounds(&[50.0, 30.0, 30.0], 100.0, 300.0)], 3);
        let report = predict(&all, &Settings::default());
        let ends = |length: usize| {
            let [low, high] = report.lengths[length - 1].acceptance_length.ends();
            [low / (1.0 - HEADS), high / (1.0 + HEADS)].map(|end| (end * 1e9).round() / 1e9)
        };
        let digits = |ends: [f64; 2]| ends.map(|end| (end * 1e9).round() / 1e9);
        let tokens = 30.0 * 4.0 + 20.0 * 2.0 + 50.0;
        // 4 tokens are two rounds of one draft, whatever follows: K + 1 = 2 (k + 1). Coins by place give 1.5.
        assert_eq!(report.lengths[0].kind, Kind::Runs);
        assert_eq!(ends(1), digits([1.5, tokens / 130.0]));
        assert!((report.lengths[0].acceptance_length.mean - tokens / 130.0).abs() < 1e-12);
        // Of rounds of two 4 tokens take two, or one and what the next leaves room for.
        assert_eq!(ends(2), digits([tokens / 130.0, tokens / 100.0]));
        assert_eq!(report.lengths[2].kind, Kind::Counted);
        assert_eq!(report.lengths[2].acceptance_length.range, None);
        // Beyond K: all coins behind whole rounds fail, or all come up.
        assert_eq!(ends(4), digits([tokens / 100.0, tokens / 70.0]));
        assert_eq!(report.lengths.len(), 8);
    }

    #[test]
    fn short_rounds_leave_more_open() {
        // 20 of 100 rounds drafted 1 of 3, and 12 of these accepted it.
        let all = counted(vec![rounds(&[70.0, 40.0, 35.0], 100.0, 260.0)], 3);
        let whole = counted(vec![rounds(&[70.0, 40.0, 35.0], 100.0, 300.0)], 3);
        let [short, whole] = [all, whole].map(|all| predict(&all, &Settings::default()));
        // Nothing is told beyond K of rounds that were cut, and K itself did not run.
        assert_eq!(short.lengths.len(), 3);
        assert_eq!(short.lengths[2].kind, Kind::Runs);
        for (short, whole) in short.lengths.iter().zip(&whole.lengths).take(2) {
            let [low, high] = short.acceptance_length.ends();
            let [least, most] = whole.acceptance_length.ends();
            assert!(low <= least && most <= high, "{short:?} {whole:?}");
        }
        // All that is untried may have been accepted.
        let [low, high] = short.lengths[2].acceptance_length.ends();
        assert!((low - 2.45 * (1.0 - HEADS)).abs() < 1e-12, "{low}");
        assert!(high >= 2.45 + 0.4, "{high}");
        assert!(short.notes.iter().any(|note| note.name == "short-rounds"));
    }

    /// Few rounds tell no other length, and no length is advised of them.
    #[test]
    fn few_events_tell_nothing() {
        let settings = Settings {
            costs: Some(Costs::ratio(0.05)),
            ..Settings::default()
        };
        let of = |histogram: &[f64]| {
            let length = histogram.len() - 1;
            let total: f64 = histogram.iter().sum();
            let all = Rounds::of_histogram(histogram, Some(total * length as f64));
            predict(&counted(vec![all], length), &settings)
        };
        let ten = of(&[9.0, 0.0, 0.0, 1.0]);
        assert_eq!((ten.lengths.len(), ten.lengths[0].length), (1, 3));
        assert!(ten.best.is_none() && ten.by_cost.is_empty());
        assert_eq!(ten.notes.last().unwrap().name, "few-rounds");
        // 43 rounds of which 3 accept all: nothing beyond.
        let some = of(&[39.0, 1.0, 0.0, 3.0]);
        assert_eq!(some.lengths.len(), 3);
        assert!(some.best.unwrap().length <= 3);
        assert_eq!(some.notes.last().unwrap().name, "few-whole-rounds");
        // Lengths 5 and 6 are as quick to .1%: the least of them.
        let tie = of(&[6000.0, 4190.0, 2940.0, 2060.0, 1440.0, 3370.0]);
        assert_eq!(tie.best.unwrap().length, 5);
        assert!(tie.advice.is_empty());
    }

    /// The estimate is that of independent rounds, and its derivative that of small changes.
    #[test]
    fn expected_tokens_move_as_they_say() {
        let runs = |exactly: &[f64]| Runs {
            exactly: exactly.to_vec(),
            untried: 0.0,
            texts: 0.0,
        };
        let counts = [900.0, 500.0, 300.0, 150.0, 400.0];
        let all: f64 = counts.iter().sum();
        for length in [1, 2, 3, 4, 6, 9] {
            let found = runs(&counts).expected(length);
            for place in 0..counts.len() {
                let [more, less] = [0.5, -0.5].map(|by| {
                    let mut moved = counts;
                    moved[place] += by;
                    runs(&moved).expected(length).mean
                });
                let (slope, said) = (more - less, found.moves[place] / all);
                let case = (length, place, slope, said);
                assert!((slope - said).abs() < 1e-6, "{case:?}");
            }
            let [low, high] = runs(&counts).ends(length);
            assert!(low <= found.mean && found.mean <= high, "{length}");
        }
        // Rounds of K are what ran.
        let mean = runs(&counts).expected(4).mean;
        assert!((mean - (900.0 + 1000.0 + 900.0 + 600.0 + 2000.0) / all).abs() < 1e-12);
    }

    /// A group's numbers are those of its requests by themselves, and none depends on their order.
    #[test]
    fn groups_are_counted_by_themselves_and_in_any_order() {
        let one = |at: usize, group: &str| {
            let size = 40.0 + (at * 7 % 5) as f64;
            let first = size - 3.0 - (at * 5 % 4) as f64 - if group == "chat" { 15.0 } else { 0.0 };
            let second = first - 2.0 - (at % 3) as f64;
            let counts = rounds(&[first, second], size, 2.0 * size);
            (counts, Some(group.to_owned()))
        };
        let all = (0..24).map(|at| one(at, if at % 3 == 0 { "chat" } else { "code" }));
        let all: Vec<_> = all.collect();
        let settings = Settings {
            costs: Some(Costs::ratio(0.05)),
            ..Settings::default()
        };
        let report = |all: &[(Rounds, Option<String>)]| {
            let (clusters, groups) = all.iter().cloned().unzip();
            let counted = Counted {
                groups,
                ..counted(clusters, 2)
            };
            predict(&counted, &settings)
        };
        let whole = report(&all);
        let names: Vec<&str> = whole.groups.iter().map(|one| one.group.as_str()).collect();
        assert_eq!(names, ["chat", "code"]);
        for group in &whole.groups {
            let own: Vec<_> = (all.iter())
                .filter(|(_, name)| name.as_ref() == Some(&group.group))
                .cloned()
                .collect();
            let alone = report(&own);
            assert_eq!((&alone.served, &alone.curve), (&group.served, &group.curve));
            assert_eq!((&alone.lengths, &alone.best), (&group.lengths, &group.best));
            assert!(group.is_told, "{:?}", group.more);
        }
        let more = |at: usize| whole.groups[at].more.unwrap().mean;
        assert!(more(0) < 0.0 && (more(0) + more(1)).abs() < 1e-15);
        // 7 and 24 have no common divisor.
        let shuffled: Vec<_> = (0..24).map(|at| all[at * 7 % 24].clone()).collect();
        assert_eq!(report(&shuffled), whole);
        // Equal groups are not told apart.
        let same: Vec<_> = (all.iter().enumerate())
            .map(|(at, (one, _))| (one.clone(), Some(["a", "b"][at % 2].to_owned())))
            .collect();
        assert!(report(&same).groups.iter().all(|group| !group.is_told));
    }

    /// The interval beyond K is that of its own definition, moved request by request.
    #[test]
    fn intervals_beyond_k_are_those_of_small_changes() {
        let clusters: Vec<Rounds> = (0..12)
            .map(|at| {
                let size = 50.0 + f64::from(at * 7 % 5) * 10.0;
                let first = size * (0.6 + f64::from(at * 5 % 7) * 0.04);
                let second = first * (0.7 + f64::from(at * 3 % 4) * 0.05);
                rounds(&[first, second], size, 2.0 * size)
            })
            .collect();
        let all = counted(clusters.clone(), 2);
        let report = predict(&all, &Settings::default());
        // Jackknife: each request left out once.
        let n = clusters.len();
        for length in [3, 5, 8] {
            let left = (0..n).map(|out| {
                let mut some = clusters.clone();
                some.remove(out);
                let found = predict(&counted(some, 2), &Settings::default());
                found.lengths[length - 1].acceptance_length.mean
            });
            let left: Vec<f64> = left.collect();
            let mean = left.iter().sum::<f64>() / n as f64;
            let squares: f64 = left.iter().map(|one| (one - mean).powi(2)).sum();
            let error = (squares * (n as f64 - 1.0) / n as f64).sqrt();
            let at = &report.lengths[length - 1].acceptance_length;
            // t(0.975) of 11 degrees of freedom.
            let found = half(&at.estimate()) / 2.200_985_2;
            let off = found / error - 1.0;
            assert!(off.abs() < 0.05, "{length}: {found} {error}");
        }
    }

    #[test]
    fn listed_rounds_are_replayed() {
        let steps = |all: &[(usize, usize)]| {
            let step = |&(drafted, accepted): &(usize, usize)| Step { drafted, accepted };
            Rounds::of_steps(all.iter().map(step).collect())
        };
        // Ten times each, or no other length is told.
        let both = [steps(&[(2, 2), (2, 2), (2, 0)]), steps(&[(2, 1), (2, 2)])];
        let clusters: Vec<Rounds> = (0..20).map(|at| both[at % 2].clone()).collect();
        let report = predict(&counted(clusters, 2), &Settings::default());
        // 7 tokens in 4 or 5 rounds of one. Of the other, 1 0 1 1 ?, the text may end at each of the
        // last three: (1 0) (1 ..), 3 tokens of 2 rounds at least; (1 0) (1 1) (? ..), 6 of 3 at most.
        let one = &report.lengths[0];
        assert_eq!(one.kind, Kind::Replayed);
        assert_eq!(one.acceptance_length.ends(), [10.0 / 7.0, 13.0 / 7.0]);
        let two = &report.lengths[1];
        assert_eq!(two.kind, Kind::Counted);
        assert_eq!(two.acceptance_length.mean, 12.0 / 5.0);
        assert_eq!(report.served.acceptance_length.mean, 12.0 / 5.0);
        assert!(report.notes.iter().any(|note| note.name == "replayed"));
    }

    /// Coins that come up seven times in ten, along requests whose every round is listed: shorter rounds
    /// put out 1 + a + .. + a^k on average, and intervals hold that as often as they say.
    #[test]
    fn replayed_lengths_have_the_mean_of_their_coins() {
        let mut state = 11u64;
        let mut is_up = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1);
            (state >> 33) % 10 < 7
        };
        for (longest, tokens) in [(2, 100), (5, 30), (7, 12)] {
            let mut held = vec![0; longest];
            for _ in 0..60 {
                let requests = (0..150).map(|_| {
                    let (mut at, mut steps) = (0, Vec::new());
                    while at < tokens {
                        let accepted = (0..longest).take_while(|_| is_up()).count();
                        at += accepted + 1;
                        steps.push(Step {
                            drafted: longest,
                            accepted,
                        });
                    }
                    Rounds::of_steps(steps)
                });
                let report = predict(&counted(requests.collect(), longest), &Settings::default());
                for (at, held) in report.lengths.iter().zip(&mut held) {
                    let truth: f64 = (0..=at.length).map(|i| 0.7f64.powi(i as i32)).sum();
                    let found = &at.acceptance_length;
                    *held += usize::from(found.ci95[0] <= truth && truth <= found.ci95[1]);
                    if let Some([low, high]) = found.range {
                        assert!(low <= found.mean && found.mean <= high, "{found:?}");
                    }
                }
            }
            // 57 of 60 on average.
            assert!(held.iter().all(|&held| held >= 51), "{longest}: {held:?}");
        }
    }

    #[test]
    fn the_best_length_by_batch() {
        let all = counted(vec![rounds(&[800.0, 600.0, 480.0], 1000.0, 3000.0)], 3);
        let table = |verify: f64| Costs {
            target_step: 1.0,
            rounds: (0..=8).map(|k| 1.0 + f64::from(k) * verify).collect(),
        };
        let by_batch = [(1, 0.05), (8, 0.4), (16, 0.4), (64, 2.0)];
        let by_batch = by_batch
            .map(|(batch, verify)| (batch, table(verify)))
            .to_vec();
        let settings = Settings {
            by_batch,
            ..Settings::default()
        };
        let report = predict(&all, &settings);
        let lengths: Vec<usize> = report.by_batch.iter().map(|at| at.best.length).collect();
        // At 0.4: 1.8/1.4 = 1.286, 2.4/1.8 = 1.333, 2.88/2.2 = 1.309.
        assert_eq!(lengths, [6, 2, 2, 0]);
        let list = report.num_speculative_tokens_per_batch_size;
        assert_eq!(list, [[1, 7, 6], [8, 63, 2], [64, 64, 0]]);
    }

    #[test]
    fn counts_without_places_are_of_the_length_that_ran() {
        let plain = Rounds::new(1000.0, Some(3000.0), 1660.0, None);
        let all = counted(vec![plain], 3);
        let report = predict(&all, &Settings::default());
        assert_eq!(report.lengths.len(), 1);
        let one = &report.lengths[0];
        assert_eq!((one.length, one.kind), (3, Kind::Counted));
        assert_eq!(report.curve, None);
        let unknown = Counted {
            length: None,
            ..all
        };
        let report = predict(&unknown, &Settings::default());
        assert!(report.lengths.is_empty() && report.by_cost.is_empty());
        assert!((report.served.acceptance_length.mean - 2.66).abs() < 1e-12);
    }
}
