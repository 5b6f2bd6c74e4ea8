//! What a server counted, against the rows of a log: does the rule accept so many drafts?
//!
//! Given a text, a token y of it was accepted with probability min(1, q(y)/p(y)) if a round
//! reached it, under token verification. So rounds along a text are a renewal process whose law
//! follows from the text and its rows, and no draft has to be in the log. With r the mean
//! accepted drafts of a round, accepted - r rounds has mean 0 and a variance that follows too.

use crate::audit::beside::{Counts, CountsReport, PlaceCount};
use crate::audit::data::Settings;
use crate::audit::evidence::order::Order;
use crate::audit::evidence::rows::Pair;
use crate::audit::evidence::steps::{Steps, follows};
use crate::audit::evidence::surprise::Z95;
use crate::audit::model::engine::{Position, get};
use crate::audit::model::rule::Rule;
use crate::audit::outcome::Outcome;
use crate::audit::verdict::claim::stop_tokens;
use crate::audit::verdict::opened::Opened;
use crate::audit::{AuditError, refused_at};
use specgap_base::side_by_side;
use specgap_core::rounds::{ChainRule, Survival};
use specgap_log::log::Log;
use statrs::distribution::{ContinuousCDF, Normal};

/// Fewer rounds than these are not near a normal law.
const LEAST_ROUNDS: f64 = 30.0;

/// Counts are whole numbers: no standard deviation is smaller.
const LEAST_SPREAD: f64 = 0.5;

/// Positions that one task takes.
const SPAN: usize = 16;

/// Rounds that drafted less than this share of K drafts each were shorter.
const WHOLE: f64 = 0.98;

/// q/p at each token of a text, from and to.
type Text = Vec<[f64; 2]>;

/// Expected numbers of one text's rounds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Walked {
    rounds: f64,
    accepted: f64,
    /// By i, rounds that accept i drafts at least, from i = 1.
    reached: Vec<f64>,
}

/// Rounds of K drafts along a text.
struct Walk<'a> {
    verifier: ChainRule,
    ratios: &'a [f64],
    /// q/p behind the end of the text.
    beyond: f64,
    drafts: usize,
    /// Tokens before the first round.
    first: usize,
}

impl Walk<'_> {
    /// P(i drafts are accepted) for i from 0 to K, of a round that starts behind so many tokens.
    fn reached(&self, start: usize) -> Vec<f64> {
        let mut survival = Survival::new(self.verifier);
        let mut reached = vec![1.0];
        for at in start..start + self.drafts {
            survival.take(&self.ratios.get(at).copied().unwrap_or(self.beyond));
            reached.push(*survival.reached());
        }
        reached
    }

    /// Returns the probability of each number of accepted drafts.
    fn accepted(&self, start: usize) -> Vec<f64> {
        let reached = self.reached(start);
        let next = reached.iter().skip(1).chain([&0.0]);
        let each = reached.iter().zip(next);
        each.map(|(reached, next)| (reached - next).max(0.0))
            .collect()
    }

    /// Expected rounds, forwards. O(N K).
    fn means(&self) -> Walked {
        let mut starts = vec![0.0; self.ratios.len()];
        if let Some(first) = starts.get_mut(self.first) {
            *first = 1.0;
        }
        let mut found = Walked {
            reached: vec![0.0; self.drafts],
            ..Walked::default()
        };
        for start in self.first..self.ratios.len() {
            let weight = starts.get(start).copied().unwrap_or(0.0);
            found.rounds += weight;
            let reached = self.reached(start);
            for (sum, reached) in found.reached.iter_mut().zip(reached.iter().skip(1)) {
                *sum += weight * reached;
            }
            for (accepted, chance) in self.accepted(start).into_iter().enumerate() {
                if let Some(next) = starts.get_mut(start + accepted + 1) {
                    *next += weight * chance;
                }
            }
        }
        found.accepted = found.reached.iter().sum();
        found
    }

    /// Mean and variance of accepted - r rounds, backwards. O(N K).
    fn moments(&self, rate: f64) -> [f64; 2] {
        let mut behind = vec![[0.0; 2]; self.ratios.len() + self.drafts + 1];
        for start in (self.first..self.ratios.len()).rev() {
            let mut own = [0.0; 2];
            for (number, chance) in self.accepted(start).into_iter().enumerate() {
                let gain = number as f64 - rate;
                let [mean, square] = behind.get(start + number + 1).copied().unwrap_or_default();
                own[0] += chance * (gain + mean);
                own[1] += chance * (gain * gain + 2.0 * gain * mean + square);
            }
            if let Some(slot) = behind.get_mut(start) {
                *slot = own;
            }
        }
        let [mean, square] = behind.get(self.first).copied().unwrap_or_default();
        [mean, (square - mean * mean).max(0.0)]
    }
}

/// What all texts give, at one end of what their rows leave open.
struct Side {
    rate: f64,
    rounds: f64,
    reached: Vec<f64>,
    /// Of accepted - r rounds: variance given the texts, and the sum of squared means of texts.
    variance: [f64; 2],
}

fn side(texts: &[Text], verifier: ChainRule, drafts: usize, first: usize, end: usize) -> Side {
    let ratios = (texts.iter()).map(|text| text.iter().map(|ends| ends[end]).collect());
    let ratios: Vec<Vec<f64>> = ratios.collect();
    let walks: Vec<Walk<'_>> = (ratios.iter())
        .map(|ratios| Walk {
            verifier,
            ratios,
            beyond: end as f64,
            drafts,
            first,
        })
        .collect();
    let means = side_by_side::each(&walks, Walk::means);
    let sum = |of: fn(&Walked) -> f64| means.iter().map(of).sum::<f64>();
    let (rounds, accepted) = (sum(|one| one.rounds), sum(|one| one.accepted));
    let rate = accepted / rounds.max(f64::MIN_POSITIVE);
    let mut reached = vec![0.0; drafts];
    for one in &means {
        for (sum, own) in reached.iter_mut().zip(&one.reached) {
            *sum += own;
        }
    }
    let moments = side_by_side::each(&walks, |walk| walk.moments(rate));
    Side {
        rate,
        rounds,
        reached,
        variance: [
            moments.iter().map(|[_, variance]| variance).sum(),
            moments.iter().map(|[mean, _]| mean * mean).sum(),
        ],
    }
}

fn verifier_of(rule: Rule) -> Result<ChainRule, AuditError> {
    // A coin of a greedy draft is 0 or 1.
    let is_greedy = rule == Rule::ONE_HOT;
    let of = if is_greedy { Rule::TOKEN } else { rule };
    of.to_string().parse().map_err(|_| {
        AuditError::Log(format!(
            "⟨counters⟩: what {rule} accepts does not follow from a text and its rows alone; name \
             token (sampled drafts), block, or one-hot (greedy drafts, an exact match included)"
        ))
    })
}

/// q/p at the token of each text.
fn texts_of(log: &Log, settings: &Settings) -> Result<Vec<Text>, AuditError> {
    let rule = settings.rule;
    let (order, records) = Order::records(log, Rule::TEXT)?;
    let stop = stop_tokens(log, settings);
    let steps = Steps::from_records(&records, Rule::TEXT, false, &stop)
        .map_err(|(index, message)| refused_at(log, order.at(index), message))?;
    let mut opened = Opened::new(log, settings, rule, Some(steps))?;
    // Given a text, what its own tokens have of p and q is known, why ever they are listed.
    opened.tops = [usize::MAX; 2];
    let most = match rule == Rule::BLOCK {
        true => f64::INFINITY,
        false => 1.0,
    };
    let parts = side_by_side::each_or_stop(&log.spans(SPAN), |span| {
        let mut found = Vec::with_capacity(span.positions().len());
        opened.rows(span, &mut |index, pair| {
            let token = records.get(index).and_then(|record| record.output);
            let token = token.and_then(|id| u32::try_from(id).ok());
            found.push(token.map(|token| ratio(rule, pair, token, most)));
            Ok(())
        })?;
        Ok::<_, AuditError>(found)
    })?;
    let ratios = parts.concat();
    if !ratios.iter().flatten().any(|[low, high]| low == high) {
        return Err(AuditError::Log(format!(
            "{}: has no row of the draft at any token of its texts; acceptance follows from p and q \
             there: log draft_logits too",
            log.path().display()
        )));
    }
    let mut texts: Vec<Text> = Vec::new();
    let mut before: Option<usize> = None;
    for (index, ratio) in ratios.into_iter().enumerate() {
        let Some(ratio) = ratio else {
            // Such as the row behind a text's last token.
            continue;
        };
        let text = |at: usize| opened.requests.text.get(at);
        let place = |at: usize| records.get(at).and_then(|record| record.position);
        let own = before.filter(|at| text(*at) == text(index));
        match (own, texts.last_mut()) {
            (Some(at), Some(open)) => {
                if at + 1 != index || !follows(place(at), place(index)) {
                    let words = "does not follow the token before it: counters are of whole texts; \
                                 log a row for each token";
                    return Err(opened.refused(index, words.to_owned()));
                }
                open.push(ratio);
            }
            _ => texts.push(vec![ratio]),
        }
        before = Some(index);
    }
    Ok(texts)
}

/// q/p of a token, from and to. For one-hot drafts 1 where the token is the draft, and 0 elsewhere.
fn ratio(rule: Rule, pair: &Pair, token: u32, most: f64) -> [f64; 2] {
    let place = pair.place(token);
    let at: Position<'_> = pair.position();
    if pair.lacks_draft {
        return [0.0, most];
    }
    if rule == Rule::ONE_HOT {
        let hit = f64::from(u8::from(place == at.likeliest(at.q)));
        return [hit, hit];
    }
    let (p, q) = (get(at.p, place), get(at.q, place));
    if at.is_rest(place) || p <= 0.0 {
        return [0.0, most];
    }
    [q / p, q / p]
}

/// Tests whether a server's accepted drafts are those of `settings.rule` on the texts of a log,
/// which needs its tokens and both rows, and no drafts.
///
/// # Formula
/// With E\[R\] and E\[A\] the expected rounds and accepted drafts of K-draft rounds along all texts,
/// given the texts, r = E\[A\]/E\[R\]: the count A of R rounds is held against r R. The standard
/// deviation of A - r R given the texts follows from the rows; where the server's rounds are of
/// other texts, differences between texts are added, of the log's and of the server's.
///
/// # Exactness
/// r and the variance given the texts are sums. Interval and level take the normal law, an
/// estimate; the tolerance moves each coin by as much at most.
///
/// # Errors
/// Rules whose acceptance does not follow from a text; logs without tokens or rows of the draft;
/// texts with gaps; no rounds.
///
/// # Complexity
/// O(N (V + K)).
pub fn audit_counts(
    log: &Log,
    settings: &Settings,
    counts: &Counts,
) -> Result<CountsReport, AuditError> {
    let verifier = verifier_of(settings.rule)?;
    if !(counts.rounds >= 1.0 && counts.length > 0) {
        return Err(AuditError::Log(format!(
            "{}: counts {} rounds of {} drafts; without a drafted round there is nothing to test",
            counts.files, counts.rounds, counts.length
        )));
    }
    let texts = texts_of(log, settings)?;
    let (drafts, number) = (counts.length, texts.len() as f64);
    let tokens: usize = texts.iter().map(Vec::len).sum();
    // Every round puts out what it accepted and one token; a text may begin with one that no round
    // put out, and its last round may go beyond its end.
    let left = tokens as f64 - counts.rounds - counts.accepted;
    let same = left <= number && left >= -(drafts as f64) * number;
    let first = usize::from(same && left >= 0.5 * number);
    let sides = [0, 1].map(|end| side(&texts, verifier, drafts, first, end));
    let scale = |side: &Side| counts.rounds / side.rounds.max(f64::MIN_POSITIVE);
    let spread = |side: &Side| {
        let ([given, between], scale) = (side.variance, scale(side));
        let variance = match same {
            true => given * scale,
            false => (given + between) * scale + between * scale * scale * number / (number - 1.0),
        };
        variance.sqrt().max(LEAST_SPREAD)
    };
    let rates = [sides[0].rate, sides[1].rate];
    let expected =
        [rates[0].min(rates[1]), rates[0].max(rates[1])].map(|rate| rate * counts.rounds);
    let spread = spread(&sides[0]).max(spread(&sides[1]));
    let slack = settings.tolerance * counts.rounds * drafts as f64;
    let shorter =
        (counts.drafted).is_some_and(|drafted| drafted < WHOLE * counts.rounds * drafts as f64);
    let above = counts.accepted - expected[1] - slack;
    let below = expected[0] - slack - counts.accepted;
    let beyond = above.max(if shorter { 0.0 } else { below }).max(0.0);
    let z = beyond / spread;
    let limit = Normal::standard().inverse_cdf(1.0 - 0.5 * settings.alpha);
    let testable = counts.rounds >= LEAST_ROUNDS && (same || number >= 2.0) && spread.is_finite();
    let verdict = match (testable, z > limit) {
        (false, _) => Outcome::NotTestable,
        (true, true) => Outcome::Refuted,
        (true, false) => Outcome::Consistent,
    };
    let (spread, z) = match spread.is_finite() {
        true => (spread, z),
        false => (counts.accepted.max(counts.rounds), 0.0),
    };
    let half = Z95 * spread + slack;
    let places = (counts.reached.iter().zip(1..))
        .take(drafts)
        .map(|(count, place)| PlaceCount {
            place,
            counted: count / counts.rounds,
            expected: sides[0].reached.get(place - 1).copied().unwrap_or(0.0)
                / sides[0].rounds.max(f64::MIN_POSITIVE),
        });
    Ok(CountsReport {
        files: counts.files.clone(),
        rule: settings.rule.to_string(),
        length: drafts,
        rounds: counts.rounds,
        accepted: counts.accepted,
        tokens,
        texts: texts.len(),
        same_texts: same,
        expected,
        ci95: [(expected[0] - half).max(0.0), expected[1] + half],
        z,
        verdict,
        places: places.collect(),
        cannot_tell: cannot_tell(counts, same, shorter, testable),
    })
}

fn cannot_tell(counts: &Counts, same: bool, shorter: bool, testable: bool) -> Vec<String> {
    let outputs =
        "whether what comes out follows p: the target law above says that, of the log's tokens";
    let which = "which drafts were accepted: too many at one place and too few at another add up \
                 to the right number";
    let whose = match same {
        true => {
            "whose rounds these are: accepted drafts and rounds add up to the log's tokens, and are \
             taken for those of its texts"
        }
        false => {
            "whether the server's texts are like the log's: accepted drafts and rounds do not add \
             up to its tokens, so that differences between texts are in the interval"
        }
    };
    let mut all = [outputs, which, whose].map(str::to_owned).to_vec();
    if shorter {
        all.push(format!(
            "whether too few drafts were accepted: {} drafted tokens in {} rounds are fewer than {} \
             each, and what was not drafted is not accepted",
            counts.drafted.unwrap_or(0.0),
            counts.rounds,
            counts.length
        ));
    } else if counts.drafted.is_none() {
        all.push(format!(
            "whether all rounds had {} drafts: drafted tokens are not counted",
            counts.length
        ));
    }
    if !testable {
        all.push(format!(
            "anything yet: it takes {LEAST_ROUNDS} rounds, and two texts where they are not the log's"
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways that rounds may go along a text: probability, rounds, and accepted drafts.
    fn ways(walk: &Walk<'_>, start: usize, all: &mut Vec<[f64; 3]>, so_far: [f64; 3]) {
        if start >= walk.ratios.len() {
            all.push(so_far);
            return;
        }
        let [chance, rounds, accepted] = so_far;
        let mut left = chance;
        for number in 0..=walk.drafts {
            let coin = match walk.ratios.get(start + number) {
                _ if number == walk.drafts => 0.0,
                Some(ratio) => ratio.min(1.0),
                None => walk.beyond,
            };
            let own = [left * (1.0 - coin), rounds + 1.0, accepted + number as f64];
            ways(walk, start + number + 1, all, own);
            left *= coin;
        }
    }

    #[test]
    fn rounds_along_a_text_are_those_of_all_ways() {
        let ratios = [0.5, 2.0, 0.25, 0.9, 0.0, 0.7, 1.0];
        for (drafts, first, beyond) in [(1, 0, 0.0), (2, 0, 1.0), (3, 1, 0.0), (4, 1, 1.0)] {
            let walk = Walk {
                verifier: ChainRule::TOKEN,
                ratios: &ratios,
                beyond,
                drafts,
                first,
            };
            let mut all = Vec::new();
            ways(&walk, first, &mut all, [1.0, 0.0, 0.0]);
            let mean = |of: &dyn Fn(&[f64; 3]) -> f64| -> f64 {
                all.iter().map(|way| way[0] * of(way)).sum()
            };
            assert!((mean(&|_| 1.0) - 1.0).abs() < 1e-12);
            let found = walk.means();
            for (at, found) in [(1, found.rounds), (2, found.accepted)] {
                let mean = mean(&|way| way[at]);
                assert!((found - mean).abs() < 1e-12, "{drafts}");
            }
            let rate = 0.8;
            let off = |way: &[f64; 3]| way[2] - rate * way[1];
            let center = mean(&off);
            let [own, variance] = walk.moments(rate);
            assert!((own - center).abs() < 1e-12);
            assert!((variance - mean(&|way| (off(way) - center).powi(2))).abs() < 1e-12);
        }
    }
}
