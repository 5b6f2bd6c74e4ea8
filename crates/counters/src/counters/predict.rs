//! From counts to acceptance lengths of every draft length.

use super::best::{self, PREFIX_ERROR, Settings};
use super::counted::{Counted, Rounds};
use super::data::{AtLength, COUNTERS_SCHEMA, CountersReport, GroupCounts, Kind, Served};
use super::{changes, definitions, notes, steps};
use specgap_statistics::curve::Curve;
use specgap_statistics::{Clustered, Estimate};

/// How far lengths up to 8 that counters of rounds of 3 drafts predict were off on six drafts, with
/// the last conditional rate held.
const EXTRAPOLATION_ERROR: [f64; 2] = [-0.0075, 0.0075];

/// The lengths of those measurements.
const MEASURED_TO: usize = 8;
const MEASURED_FROM: usize = 3;

/// Up to this share of K that is not drafted, rates still go on beyond K.
const HARDLY_SHORT: f64 = 0.01;

/// What short rounds leave out is told as a bracket from this share of a length on: below, it is
/// small beside the stated error.
const LEFT_OUT: f64 = 0.0025;

/// A bracket this near its middle, as a share, is no more open than the stated error.
const SHUT: f64 = 1e-9;

/// Reports what counts say of every draft length.
///
/// # Formula
/// With S_i the share of rounds that accept at least i drafts: `AL(k) = 1 + S_1 + .. + S_k` for k <= K,
/// and beyond `AL(k) = AL(K) + S_K (h + h^2 + .. + h^(k - K))` with `h = S_K / S_(K - 1)`. Where
/// every round of every request is listed, rounds of k <= K drafts are replayed instead, between two
/// ends. Where rounds of `d < K` drafts on average leave places untried, the upper end adds
/// `(K - d)(k - 1)/(K - 1)`: what they leave out at most, if all of it were accepted.
///
/// # Exactness
/// Counted lengths are counts by counts. The others have a stated error or two ends; intervals are
/// over requests (Student's t, clustered).
#[must_use]
pub fn predict(counted: &Counted, settings: &Settings) -> CountersReport {
    let mut sorted = counted.clone();
    if sorted.by_request {
        sorted.sort();
    }
    let counted = &sorted;
    let total = counted.total();
    let served = served(counted, &total);
    let mut lengths = lengths(counted, &total, settings);
    if let Some(costs) = &settings.costs {
        for at in &mut lengths {
            at.speedup = costs.speedup(at.length, at.acceptance_length.mean);
        }
    }
    let best = settings
        .costs
        .as_ref()
        .and_then(|costs| best::best(&lengths, costs));
    let advice = changes::changes(&lengths, best.as_ref(), counted.length);
    let (by_batch, list) = best::by_batch(&lengths, &settings.by_batch);
    let by_cost = match (&settings.costs, settings.by_batch.is_empty()) {
        (None, true) => best::by_cost(&lengths),
        _ => Vec::new(),
    };
    CountersReport {
        schema: COUNTERS_SCHEMA,
        command: settings.command.clone(),
        source: counted.source,
        length: counted.length,
        notes: notes::notes(counted, &total, short_share(counted, &total)),
        served,
        curve: curve(counted, &total),
        lengths,
        groups: groups(counted, settings),
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
        let found = predict(
            &Counted {
                groups: Vec::new(),
                ..own
            },
            &alone,
        );
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

/// A ratio of sums over requests.
fn ratio(counted: &Counted, of: impl Fn(&Rounds) -> (f64, f64) + Clone) -> Estimate {
    Clustered::new(counted.clusters.iter().map(of)).estimate()
}

/// Accepted drafts and the bonus token by rounds, over requests.
fn tokens_a_round(counted: &Counted) -> Clustered {
    let of = |one: &Rounds| (one.rounds + one.accepted, one.rounds);
    Clustered::new(counted.clusters.iter().map(of))
}

fn served(counted: &Counted, total: &Rounds) -> Served {
    Served {
        rounds: total.rounds,
        requests: counted.by_request.then_some(counted.clusters.len()),
        acceptance_length: tokens_a_round(counted).estimate(),
        accepted_per_round: total.accepted / total.rounds,
        acceptance_rate: (total.drafted.filter(|&drafted| drafted > 0.0))
            .map(|drafted| total.accepted / drafted),
        drafted_per_round: total.drafted.map(|drafted| drafted / total.rounds),
    }
}

/// Rounds that accept at least i drafts; all of them for i = 0.
fn reached(one: &Rounds, place: usize) -> f64 {
    let Some(before) = place.checked_sub(1) else {
        return one.rounds;
    };
    let reached = one.reached.as_ref();
    reached
        .and_then(|all| all.get(before))
        .copied()
        .unwrap_or(0.0)
}

/// The share of K that rounds do not draft.
fn short_share(counted: &Counted, total: &Rounds) -> f64 {
    let (Some(length), Some(drafted)) = (counted.length, total.drafted) else {
        return 0.0;
    };
    (1.0 - drafted / (length as f64 * total.rounds)).max(0.0)
}

fn curve(counted: &Counted, total: &Rounds) -> Option<Curve> {
    let length = counted.length?;
    total.reached.as_ref()?;
    let marginal =
        (1..=length).map(|place| ratio(counted, |one| (reached(one, place), one.rounds)));
    let exactly = |count: usize| {
        let above = if count < length {
            reached(total, count + 1)
        } else {
            0.0
        };
        (reached(total, count) - above) / total.rounds
    };
    Some(Curve {
        length,
        marginal: marginal.collect(),
        acceptance_length: by_places(counted, length),
        histogram: Some((0..=length).map(exactly).collect()),
        rounds: (total.rounds.fract() == 0.0).then_some(total.rounds as u64),
    })
}

/// 1 + S_1 + .. + S_k.
fn by_places(counted: &Counted, length: usize) -> Estimate {
    ratio(counted, |one| {
        let tokens: f64 = (0..=length).map(|place| reached(one, place)).sum();
        (tokens, one.rounds)
    })
}

fn lengths(counted: &Counted, total: &Rounds, settings: &Settings) -> Vec<AtLength> {
    let Some(longest) = counted.length else {
        return Vec::new();
    };
    if total.reached.is_none() {
        // Every round drafted K tokens, or K would not be known.
        let mean = tokens_a_round(counted).estimate();
        return vec![at(longest, mean, Kind::Counted, None)];
    }
    let all_steps = counted.clusters.iter().all(|one| one.steps.is_some());
    let short = short_share(counted, total);
    let up_to = settings.up_to.unwrap_or(MEASURED_TO).max(longest);
    let mut all: Vec<AtLength> = (1..=longest)
        .map(|length| match all_steps {
            true => replayed(counted, length, longest),
            false => from_places(counted, length, longest, short),
        })
        .collect();
    if short <= HARDLY_SHORT {
        all.extend((longest + 1..=up_to).map(|length| beyond(counted, total, length, longest)));
    }
    all
}

fn at(length: usize, mean: Estimate, kind: Kind, stated_error: Option<[f64; 2]>) -> AtLength {
    AtLength {
        length,
        acceptance_rate: (mean.mean - 1.0) / length as f64,
        acceptance_length: mean,
        kind,
        stated_error,
        speedup: None,
    }
}

/// A length between two ends, or the one number where they meet.
fn between(length: usize, [low, high]: [Estimate; 2], met: (Kind, Option<[f64; 2]>)) -> AtLength {
    if high.mean - low.mean <= SHUT * high.mean {
        return at(length, low, met.0, met.1);
    }
    let mean = f64::midpoint(low.mean, high.mean);
    let half = |one: &Estimate| (one.ci95[1] - one.ci95[0]) / 2.0;
    let half = half(&low).max(half(&high));
    let open = Estimate {
        between: Some([low.mean, high.mean]),
        ..Estimate::plus_minus(mean, half)
    };
    at(length, open, Kind::Bracket, None)
}

/// Rounds of `length` drafts along every request, between what unknown coins leave open, and how a
/// text is cut in its last round.
fn replayed(counted: &Counted, length: usize, longest: usize) -> AtLength {
    let steps = || counted.clusters.iter().filter_map(|one| one.steps.as_ref());
    if length == longest && steps().all(|one| steps::ran(one, length)) {
        return at(length, by_places(counted, length), Kind::Counted, None);
    }
    let (low, high): (Vec<_>, Vec<_>) = steps().map(|one| steps::ends(one, length).into()).unzip();
    let ends = [(low, false), (high, true)].map(|(all, most)| {
        let pairs = steps::extreme(&all, most).into_iter();
        Clustered::new(pairs.map(|[tokens, rounds]| (tokens, rounds))).estimate()
    });
    between(length, ends, (Kind::Bracket, None))
}

/// 1 + S_1 + .. + S_k, with what short rounds leave out as an upper end.
fn from_places(counted: &Counted, length: usize, longest: usize, short: f64) -> AtLength {
    let low = by_places(counted, length);
    let met = if length == longest {
        (Kind::Counted, None)
    } else {
        let measured = longest <= MEASURED_TO;
        (Kind::Prefix, measured.then_some(PREFIX_ERROR))
    };
    let missing = short * longest as f64;
    let share = (length - 1) as f64 / (longest.max(2) - 1) as f64;
    let more = (missing * share).min(length as f64 + 1.0 - low.mean);
    if more <= LEFT_OUT * low.mean {
        return at(length, low, met.0, met.1);
    }
    let high = Estimate {
        mean: low.mean + more,
        ci95: low.ci95.map(|end| end + more),
        ..low
    };
    between(length, [low, high], met)
}

/// Beyond K with the last conditional rate held.
fn beyond(counted: &Counted, total: &Rounds, length: usize, longest: usize) -> AtLength {
    let [before, last] = [longest - 1, longest].map(|place| reached(total, place) / total.rounds);
    let held = if before > 0.0 { last / before } else { 0.0 };
    // h + h^2 + .. + h^m, and how fast it changes with h.
    let (mut sum, mut slope, mut power) = (0.0, 0.0, 1.0);
    for step in 1..=length - longest {
        slope += step as f64 * power;
        power *= held;
        sum += power;
    }
    let mean = by_places(counted, longest).mean + last * sum;
    // Linearised: sums of a request with the same rounds below them.
    let of_last = sum
        + if before > 0.0 {
            last * slope / before
        } else {
            0.0
        };
    let of_before = if before > 0.0 {
        last * slope * held / before
    } else {
        0.0
    };
    let error = ratio(counted, |one| {
        let tokens: f64 = (0..=longest).map(|place| reached(one, place)).sum();
        let moved = of_last * reached(one, longest) - of_before * reached(one, longest - 1);
        (tokens + moved, one.rounds)
    });
    let half = (error.ci95[1] - error.ci95[0]) / 2.0;
    let estimate = Estimate::plus_minus(mean, half);
    let measured = longest >= MEASURED_FROM && length <= MEASURED_TO;
    at(
        length,
        estimate,
        Kind::Extrapolated,
        measured.then_some(EXTRAPOLATION_ERROR),
    )
}

#[cfg(test)]
mod tests {
    use super::super::best::Costs;
    use super::super::counted::{Source, Step};
    use super::*;

    fn counted(clusters: Vec<Rounds>, length: usize) -> Counted {
        Counted {
            source: Source::VllmRequests,
            length: Some(length),
            by_request: clusters.len() > 1,
            clusters,
            groups: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn rounds(reached: &[f64], rounds: f64, drafted: f64) -> Rounds {
        Rounds {
            rounds,
            drafted: Some(drafted),
            accepted: reached.iter().sum(),
            reached: Some(reached.to_vec()),
            steps: None,
        }
    }

    #[test]
    fn short_rounds_leave_a_bracket() {
        // 20 of 100 rounds drafted 1 of 3, and 12 of these accepted it.
        let all = counted(vec![rounds(&[70.0, 40.0, 25.0], 100.0, 260.0)], 3);
        let report = predict(&all, &Settings::default());
        assert_eq!(report.lengths.len(), 3);
        assert_eq!(report.lengths[0].kind, Kind::Prefix);
        let ends = |at: &AtLength| at.acceptance_length.between.unwrap();
        for (at, [low, high]) in report.lengths[1..].iter().zip([[2.1, 2.3], [2.35, 2.75]]) {
            assert_eq!(at.kind, Kind::Bracket);
            let [found_low, found_high] = ends(at);
            assert!(
                (found_low - low).abs() < 1e-12 && (found_high - high).abs() < 1e-12,
                "{at:?}"
            );
        }
        assert!(report.notes.iter().any(|note| note.name == "short-rounds"));
    }

    /// A group's numbers are those of its requests by themselves, and none depends on their order.
    #[test]
    fn groups_are_counted_by_themselves_and_in_any_order() {
        let one = |at: usize, group: &str| {
            let size = 40.0 + (at * 7 % 5) as f64;
            let first = size - 3.0 - (at * 5 % 4) as f64 - if group == "chat" { 15.0 } else { 0.0 };
            let second = first - 2.0 - (at % 3) as f64;
            (
                rounds(&[first, second], size, 2.0 * size),
                Some(group.to_owned()),
            )
        };
        let all: Vec<_> = (0..24)
            .map(|at| one(at, if at % 3 == 0 { "chat" } else { "code" }))
            .collect();
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
            let of = |all: &Counted| {
                predict(all, &Settings::default()).lengths[length - 1]
                    .acceptance_length
                    .mean
            };
            let left: Vec<f64> = (0..n)
                .map(|out| {
                    let mut some = clusters.clone();
                    some.remove(out);
                    of(&counted(some, 2))
                })
                .collect();
            let mean = left.iter().sum::<f64>() / n as f64;
            let squares: f64 = left.iter().map(|one| (one - mean).powi(2)).sum();
            let error = (squares * (n as f64 - 1.0) / n as f64).sqrt();
            let at = &report.lengths[length - 1].acceptance_length;
            // t(0.975) of 11 degrees of freedom.
            let found = (at.ci95[1] - at.ci95[0]) / 2.0 / 2.200_985_2;
            assert!(
                (found / error - 1.0).abs() < 0.05,
                "{length}: {found} {error}"
            );
        }
    }

    #[test]
    fn listed_rounds_are_replayed() {
        let steps = |all: &[(usize, usize)]| {
            let step = |&(drafted, accepted): &(usize, usize)| Step { drafted, accepted };
            Rounds::of_steps(all.iter().map(step).collect())
        };
        let clusters = vec![steps(&[(2, 2), (2, 2), (2, 0)]), steps(&[(2, 1), (2, 2)])];
        let report = predict(&counted(clusters, 2), &Settings::default());
        // 7 tokens in 4 or 5 rounds of one. Of the other, 1 0 1 1 ?, the text may end at each of the
        // last three: (1 0) (1 ..), 3 tokens of 2 rounds at least; (1 0) (1 1) (? ..), 6 of 3 at most.
        let one = &report.lengths[0];
        assert_eq!(one.kind, Kind::Bracket);
        assert_eq!(
            one.acceptance_length.between,
            Some([10.0 / 7.0, 13.0 / 7.0])
        );
        let two = &report.lengths[1];
        assert_eq!(
            (two.kind, two.acceptance_length.mean),
            (Kind::Counted, 12.0 / 5.0)
        );
        assert_eq!(report.served.acceptance_length.mean, 12.0 / 5.0);
        assert!(report.notes.iter().any(|note| note.name == "replayed"));
    }

    #[test]
    fn the_best_length_by_batch() {
        let all = counted(vec![rounds(&[800.0, 600.0, 480.0], 1000.0, 3000.0)], 3);
        let table = |verify: f64| Costs {
            target_step: 1.0,
            rounds: (0..=8).map(|k| 1.0 + f64::from(k) * verify).collect(),
        };
        let by_batch = vec![
            (1, table(0.05)),
            (8, table(0.4)),
            (16, table(0.4)),
            (64, table(2.0)),
        ];
        let settings = Settings {
            by_batch,
            ..Settings::default()
        };
        let report = predict(&all, &settings);
        let lengths: Vec<usize> = report.by_batch.iter().map(|at| at.best.length).collect();
        // At 0.4: 1.8/1.4 = 1.286, 2.4/1.8 = 1.333, 2.88/2.2 = 1.309.
        assert_eq!(lengths, [8, 2, 2, 0]);
        let list = report.num_speculative_tokens_per_batch_size;
        assert_eq!(list, [[1, 7, 8], [8, 63, 2], [64, 64, 0]]);
    }

    #[test]
    fn counts_without_places_are_of_the_length_that_ran() {
        let mut plain = rounds(&[], 1000.0, 3000.0);
        plain.accepted = 1660.0;
        plain.reached = None;
        let all = Counted {
            clusters: vec![plain],
            ..counted(Vec::new(), 3)
        };
        let report = predict(&all, &Settings::default());
        assert_eq!(report.lengths.len(), 1);
        assert_eq!(
            (report.lengths[0].length, report.lengths[0].kind),
            (3, Kind::Counted)
        );
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
