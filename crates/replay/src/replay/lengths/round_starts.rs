//! How far rounds of a fixed length get where they start: what other tools take as a profile.

use super::super::measured::within;
use super::super::moments::reached;
use super::super::read::Text;
use super::coins::{TextCoins, Unlisted, coins};
use super::data::{Longer, RoundStarts};
use super::drafts::Drafts;
use super::measure::{Measurement, over_starts};
use super::outcome::Way;
use specgap_core::rounds::floats::replay_each;
use specgap_core::rounds::{ChainRule, Coins, FixedLength, FromStarts, reached_from_starts};
use specgap_core::rule::Kept;
use specgap_statistics::curve::{Curve, exactly};
use specgap_statistics::{Clustered, Estimate};

/// Rounds of one length of every text.
struct AtLength {
    length: usize,
    texts: Vec<FromStarts<f64>>,
}

/// Bounds on what is reached from a start, and on how likely it is.
type Between = ([Vec<f64>; 2], [f64; 2]);

impl Measurement<'_> {
    /// For each way whose rounds are replayed, S_i = P(tau >= i) over round starts at each fixed
    /// length that is asked for. Lengths that no text has room for are left out.
    pub(super) fn round_starts(&self) -> Vec<RoundStarts> {
        let ways = self.ways().into_iter();
        let replayed = ways.filter(|(_, verifier)| verifier.has_rounds());
        let all = replayed.map(|way| self.round_starts_of(way));
        all.filter(|one| !one.curves.is_empty()).collect()
    }

    fn round_starts_of(&self, way: Way) -> RoundStarts {
        let mut found = RoundStarts {
            drafts: way.0,
            verifier: way.1.as_str().to_owned(),
            curves: Vec::new(),
            longer: Vec::new(),
        };
        let mut before: Option<AtLength> = None;
        for length in self.lengths() {
            let Some(here) = self.at_length(way, length) else {
                continue;
            };
            let Some(curve) = self.curve(way, &here) else {
                continue;
            };
            if let (Some(shorter), Some(over)) = (&before, found.curves.last()) {
                found.longer.push(self.longer(&here, shorter, &curve, over));
            }
            found.curves.push(curve);
            before = Some(here);
        }
        found
    }

    fn at_length(&self, (drafts, verifier): Way, length: usize) -> Option<AtLength> {
        let texts = self.texts.each(|text| {
            let coins = coins(text, drafts, Unlisted::Whole);
            let replayed = replay_each(verifier, &coins, &[&FixedLength(length)])?.pop()?;
            let starts = &replayed.starts;
            Some(reached_from_starts(verifier, &coins, starts, length))
        });
        Some(AtLength {
            length,
            texts: texts.into_iter().collect::<Option<_>>()?,
        })
    }

    /// A sum over the rounds of every text, divided by their number, by prompts.
    fn over_rounds(
        &self,
        here: &AtLength,
        of: impl Fn(&FromStarts<f64>) -> f64,
    ) -> Option<Estimate> {
        let texts = self.texts.texts.iter().zip(&here.texts);
        let sums = texts.map(|(text, rounds)| (text.cluster, of(rounds), rounds.rounds));
        over_starts(self.texts.clusters, sums)
    }

    fn curve(&self, way: Way, here: &AtLength) -> Option<Curve> {
        let length = here.length;
        let bounds = self.is_open(way.0).then(|| self.bounds_at(way, length));
        let within = |estimate: Estimate, at: usize| {
            within(
                estimate,
                bounds.as_ref().and_then(|all| all.get(at).copied()),
            )
        };
        let mut marginal = Vec::with_capacity(length);
        for i in 0..length {
            let share = self.over_rounds(here, |rounds| rounds.reached[i])?;
            marginal.push(within(share, i));
        }
        let put_out = self.over_rounds(here, put_out)?;
        let rounds: f64 = here.texts.iter().map(|text| text.rounds).sum();
        Some(Curve {
            length,
            histogram: Some(exactly(&marginal)),
            rounds: Some(rounds.round() as u64),
            acceptance_length: within(put_out, length),
            marginal,
        })
    }

    /// Returns what a longer round puts out more, paired by prompt: prompts whose texts are too
    /// short for the longer rounds have no say.
    fn longer(&self, here: &AtLength, shorter: &AtLength, curve: &Curve, over: &Curve) -> Longer {
        let mut sums = vec![[(0.0, 0.0); 2]; self.texts.clusters];
        let both = here.texts.iter().zip(&shorter.texts);
        for (text, (one, other)) in self.texts.texts.iter().zip(both) {
            for (sum, rounds) in sums[text.cluster].iter_mut().zip([one, other]) {
                sum.0 += put_out(rounds);
                sum.1 += rounds.rounds;
            }
        }
        sums.retain(|[one, _]| one.1 > 0.0);
        let side = |at: usize| Clustered::new(sums.iter().map(move |both| both[at]));
        let paired = Clustered::difference(sums.iter().map(|both| (both[0], both[1])));
        let apart = side(0).error.hypot(side(1).error);
        let mut more = paired.estimate();
        if let (Some([low, high]), Some([least, most])) = (
            curve.acceptance_length.truncation,
            over.acceptance_length.truncation,
        ) {
            more.truncation = Some([low - most, high - least]);
        }
        Longer {
            length: here.length,
            over: shorter.length,
            acceptance_length: more,
            error_of_two_runs: (paired.error > 0.0).then(|| apart / paired.error),
        }
    }

    /// Bounds on S_1 to S_K and, last, on what a round puts out, whatever rows do not list.
    fn bounds_at(&self, (drafts, verifier): Way, length: usize) -> Vec<[f64; 2]> {
        let of = |text: &Text| {
            let ends = [Unlisted::Rejected, Unlisted::Accepted].map(|end| coins(text, drafts, end));
            (starts_between(verifier, &ends, length), ends)
        };
        let all: Vec<(Vec<[f64; 2]>, [TextCoins; 2])> = self.texts.each(of);
        let mut starts: Vec<Between> = Vec::new();
        for (weights, ends) in &all {
            for (start, &weight) in weights.iter().enumerate() {
                let rows = ends.each_ref().map(|coins| coins.ahead(start));
                if rows[0].len() >= length {
                    starts.push((
                        rows.map(|row| reached(verifier, row.iter().take(length))),
                        weight,
                    ));
                }
            }
        }
        let one = |i: usize| mean_between(&starts, |row| row[i]);
        let last = mean_between(&starts, |row| 1.0 + row.iter().sum::<f64>());
        (0..length).map(one).chain([last]).collect()
    }
}

/// Tokens that the rounds of a text put out, with the target's own.
fn put_out(rounds: &FromStarts<f64>) -> f64 {
    rounds.rounds + rounds.reached.iter().sum::<f64>()
}

/// Bounds on the probability that a round starts behind each number of tokens, by bounds on the
/// coins: every step of the renewal at its ends.
fn starts_between(verifier: ChainRule, ends: &[TextCoins; 2], length: usize) -> Vec<[f64; 2]> {
    let tokens = ends[0].tokens();
    let mut starts = vec![[0.0f64, 0.0]; tokens];
    if let Some(first) = starts.first_mut() {
        *first = [1.0, 1.0];
    }
    for start in 0..tokens {
        let weight = [starts[start][0], starts[start][1].min(1.0)];
        starts[start] = weight;
        let rows = ends.each_ref().map(|coins| coins.ahead(start));
        let most = length.min(tokens - start - 1).min(rows[0].len());
        let [low, high] = rows.map(|row| reached(verifier, row.iter().take(most)));
        let mut before = [1.0, 1.0];
        for i in 0..=most {
            let here = match low.get(i).zip(high.get(i)) {
                Some((&low, &high)) => [low, high],
                // Behind the last draft a round ends whatever comes.
                None => [0.0, 0.0],
            };
            let step = match verifier.kept() {
                Kept::Tokens if i < most => {
                    let [low, high] = rows.map(|row| row[i].min(1.0f64));
                    [before[0] * (1.0 - high), before[1] * (1.0 - low)]
                }
                _ => [(before[0] - here[1]).max(0.0), before[1] - here[0]],
            };
            if let Some(next) = starts.get_mut(start + i + 1) {
                next[0] += weight[0] * step[0];
                next[1] += weight[1] * step[1];
            }
            before = here;
        }
    }
    starts
}

/// Bounds on a mean over starts whose weights lie between bounds too.
fn mean_between(starts: &[Between], of: impl Fn(&[f64]) -> f64) -> [f64; 2] {
    let end = |at: usize, sign: f64| {
        let with = |(rows, weight): &Between| (sign * of(&rows[at]), *weight);
        let values: Vec<(f64, [f64; 2])> = starts.iter().map(with).collect();
        sign * least_mean(values)
    };
    [end(0, 1.0), end(1, -1.0)]
}

/// The least mean of some numbers, each with a weight that may lie anywhere between two: the
/// smallest numbers with the most weight, as long as they are below the mean.
fn least_mean(mut values: Vec<(f64, [f64; 2])>) -> f64 {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut sum: f64 = values.iter().map(|(value, [low, _])| value * low).sum();
    let mut total: f64 = values.iter().map(|(_, [low, _])| low).sum();
    for (value, [low, high]) in values {
        if total > 0.0 && value * total >= sum {
            break;
        }
        sum += value * (high - low);
        total += high - low;
    }
    if total > 0.0 { sum / total } else { 0.0 }
}

impl RoundStarts {
    /// The way in one word, as a folder is named: `sampled-token`, `sampled-block`, `one-hot`,
    /// `exact-match`.
    pub fn name(&self) -> String {
        match self.drafts {
            Drafts::Sampled => format!("{}-{}", self.drafts, self.verifier),
            _ => self.drafts.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_core::rounds::replay;

    #[test]
    fn the_least_mean_of_weights_between_bounds() {
        // 1 with weight 1 to 3, 5 with weight 1 to 2: 1 * 3 + 5 over 4, and 1 + 10 over 3.
        let values = vec![(5.0, [1.0, 2.0]), (1.0, [1.0, 3.0])];
        assert_eq!(least_mean(values.clone()), 2.0);
        let turned = values.iter().map(|(value, weight)| (-value, *weight));
        assert_eq!(-least_mean(turned.collect()), 11.0 / 3.0);
        assert_eq!(least_mean(Vec::new()), 0.0);
    }

    /// Whatever the open coin is, starts and shares lie between the bounds, and where nothing is
    /// open the bounds meet the replay.
    #[test]
    fn bounds_hold_every_coin_between() {
        let at = |open: f64| vec![0.5, open, 0.75, 0.25, 1.0, 0.5, 0.125];
        let length = 2;
        for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
            let ends = [at(0.25), at(0.875)].map(TextCoins::ByToken);
            let starts = starts_between(verifier, &ends, length);
            for open in [0.25, 0.4, 0.625, 0.875] {
                let coins = at(open);
                let found = replay(verifier, &coins, &FixedLength(length)).unwrap();
                for (exact, [low, high]) in found.starts.iter().zip(&starts) {
                    let holds = low - 1e-12 <= *exact && *exact <= high + 1e-12;
                    assert!(holds, "{verifier} {open}: {low} {exact} {high}");
                }
            }
            let shut = [at(0.5), at(0.5)].map(TextCoins::ByToken);
            let exact = replay(verifier, &at(0.5), &FixedLength(length)).unwrap();
            let starts = starts_between(verifier, &shut, length);
            for (exact, [low, high]) in exact.starts.iter().zip(&starts) {
                assert!((low - exact).abs() < 1e-12 && (high - exact).abs() < 1e-12);
            }
        }
    }
}
