//! From capital to verdicts.

use crate::audit::data::{FlaggedGroup, PartReport, Suspect};
use crate::audit::evidence::bets::{SCORE_STAKES, log_sum};
use crate::audit::evidence::book::{Book, Part};
use crate::audit::evidence::judge::Judge;
use crate::audit::evidence::requests::{Family, Group, Settled};
use crate::audit::outcome::Outcome;
use specgap_base::sorted::Map;
use specgap_core::rule::Drafts;

/// Evidence below this is not listed.
const LISTED: f64 = 2.0;

/// Families of which there is more than one group: the others say nothing new.
pub(crate) fn families<T>(groups: &Map<Group, T>) -> Vec<Family> {
    let many = |family: &Family| groups.keys().filter(|(one, _)| one == family).count() > 1;
    Family::ALL.into_iter().filter(many).collect()
}

/// The verdict on a part of a log.
pub(crate) fn judged(
    judge: &Judge,
    one: Part,
    settled: &Settled,
    groups: &Map<Group, Settled>,
    alpha: f64,
) -> PartReport {
    let untestable = |of: Part, limit: Option<f64>| {
        let (steps, counted) = (settled.total.steps[of.index()], settled.counted[of.index()]);
        let reason = if of == Part::DraftLaw && judge.rule.drafts() == Drafts::Any {
            format!("{} claims nothing of how drafts are drawn", judge.rule)
        } else if limit.is_some() {
            return None;
        } else if steps == 0 {
            "the log has no step of this kind".to_owned()
        } else if settled.price > 0.0 {
            format!(
                "{counted} steps of one text are too few to tell whatever departure from the \
                 claim, where e-values of texts are averaged and not multiplied"
            )
        } else {
            format!("{steps} steps are too few to tell whatever departure from the claim")
        };
        Some(reason)
    };
    part(&judge.book, one, settled, groups, alpha, &untestable)
}

/// The verdict on a part. `untestable` says, given the smallest departure that would have been
/// found, why it cannot be tested.
pub(crate) fn part(
    book: &Book,
    part: Part,
    settled: &Settled,
    groups: &Map<Group, Settled>,
    alpha: f64,
    untestable: &dyn Fn(Part, Option<f64>) -> Option<String>,
) -> PartReport {
    let total = &settled.total;
    let mut flagged = Vec::new();
    for family in families(groups) {
        let of: Vec<(i64, u64, f64)> = (groups.iter())
            .filter(|((one, _), _)| *one == family)
            .map(|((_, group), settled)| {
                let tally = &settled.total;
                let steps = tally.steps[part.index()];
                (*group, steps, book.log_capital(part, tally))
            })
            .filter(|(_, steps, _)| *steps > 0)
            .collect();
        let logs: Vec<f64> = of.iter().map(|(.., log)| *log).collect();
        for index in e_bh(&logs, alpha) {
            if let Some(&(group, steps, log)) = of.get(index) {
                flagged.push(FlaggedGroup {
                    family: family.name().to_owned(),
                    group,
                    steps,
                    log10_e_value: log / std::f64::consts::LN_10,
                });
            }
        }
    }
    let evidence = book.of(part).map(|one| Suspect {
        name: one.name.to_owned(),
        words: one.words.to_owned(),
        cure: one.cure.to_owned(),
        log10_e_value: book.log_of(one, total) / std::f64::consts::LN_10,
        is_bug: one.is_bug,
    });
    let scores = book.of(part).filter(|one| one.is_score);
    let share = scores.map(|one| one.weight).fold(1.0, f64::min);
    let counted = settled.counted[part.index()];
    let limit = smallest_tv(share, book.tolerance, counted, alpha, settled.price);
    Capital {
        part: part.name(),
        steps: total.steps[part.index()],
        log: book.log_capital(part, total),
        limit,
        evidence: evidence.collect(),
        groups: flagged,
        untestable: untestable(part, limit),
    }
    .verdict(alpha)
}

/// What bets on a part have come to.
pub(crate) struct Capital {
    /// Its name in reports.
    pub part: &'static str,
    pub steps: u64,
    /// The logarithm of the e-value.
    pub log: f64,
    /// The smallest departure that would have been found.
    pub limit: Option<f64>,
    /// Everything that was bet on.
    pub evidence: Vec<Suspect>,
    /// Groups that fail by themselves.
    pub groups: Vec<FlaggedGroup>,
    /// Why the part cannot be tested, unless it is refuted all the same.
    pub untestable: Option<String>,
}

impl Capital {
    /// The verdict at a level.
    pub(crate) fn verdict(self, alpha: f64) -> PartReport {
        let refuted = self.log >= -alpha.ln() || !self.groups.is_empty();
        let reason = self.untestable.filter(|_| !refuted);
        let verdict = match (refuted, &reason) {
            (true, _) => Outcome::Refuted,
            (false, Some(_)) => Outcome::NotTestable,
            (false, None) => Outcome::Consistent,
        };
        let mut evidence = self.evidence;
        evidence.retain(|one| one.log10_e_value >= LISTED);
        evidence.sort_by(|a, b| b.log10_e_value.total_cmp(&a.log10_e_value));
        let strongest = evidence.first().filter(|_| refuted);
        PartReport {
            part: self.part.to_owned(),
            verdict,
            steps: self.steps,
            e_value: self.log.min(300.0 * std::f64::consts::LN_10).exp(),
            log10_e_value: self.log / std::f64::consts::LN_10,
            smallest_tv_excluded: self.limit,
            suspect: strongest.map(|one| one.name.clone()),
            evidence,
            groups: self.groups,
            reason,
        }
    }
}

/// e-BH (Wang and Ramdas 2022): the largest k for which k e-values are at least K/(k alpha);
/// which ones these are. Under any dependence, at most a share alpha of what is named is
/// named wrongly, on average.
pub(crate) fn e_bh(logs: &[f64], alpha: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by(|&a, &b| logs[b].total_cmp(&logs[a]).then(a.cmp(&b)));
    let all = logs.len() as f64;
    let enough = |k: usize| {
        let least = order.get(k - 1).and_then(|&index| logs.get(index));
        least.is_some_and(|log| *log >= (all / (k as f64 * alpha)).ln())
    };
    let keep = (1..=order.len()).rev().find(|&k| enough(k)).unwrap_or(0);
    let mut named: Vec<usize> = order.into_iter().take(keep).collect();
    named.sort_unstable();
    named
}

/// The smallest departure that a part's scores find with probability 99% in so many steps.
///
/// A score that is an indicator of mean 1/2 (the hardest, since its variance is the largest)
/// and whose mean an engine moves by t hits S times of N. The capital of the score's stakes
/// reaches 1/alpha from S = s on, which is computed; and P(S < s) <= exp(-N kl(s/N, 1/2 + t))
/// is at most 1% from some t on (Chernoff).
///
/// `share` is the weight of the score in the part's capital, and `price` the logarithm of what
/// the capital of these steps is divided by: a mean over texts is at least the largest over their
/// number.
pub(crate) fn smallest_tv(
    share: f64,
    tolerance: f64,
    steps: u64,
    alpha: f64,
    price: f64,
) -> Option<f64> {
    if steps == 0 {
        return None;
    }
    let n = steps as f64;
    let weight = share.ln() - (SCORE_STAKES.len() as f64).ln() - price;
    let capital = |hits: f64| {
        let log = |stake: f64| {
            hits * (0.5 * stake).ln_1p() + (n - hits) * (-0.5 * stake).ln_1p()
                - n * (tolerance * stake.abs()).ln_1p()
        };
        weight + log_sum(SCORE_STAKES.iter().map(|&stake| log(stake)))
    };
    // The capital rises with hits above one half. Where all of them are too few, so is what is
    // left below: a share of 1 is found of no mean.
    let (mut low, mut high) = (steps.div_ceil(2), steps);
    while low < high {
        let middle = low + (high - low) / 2;
        if capital(middle as f64) >= -alpha.ln() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let share = low as f64 / n;
    let divergence = |mean: f64| {
        let term = |a: f64, b: f64| a * (a / b).ln();
        term(share, mean) + term(1.0 - share, 1.0 - mean)
    };
    // A share of 1 is above all means, so that no logarithm of 0 is taken.
    let found = |t: f64| 0.5 + t > share && n * divergence(0.5 + t) >= 100f64.ln();
    let most = 0.5 - 1e-12;
    if !found(most) {
        return None;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if found(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::evidence::book::Tally;
    use crate::audit::model::rule::Rule;
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn e_bh_names_what_the_definition_says() {
        let logs = |values: &[f64]| values.iter().map(|x: &f64| x.ln()).collect::<Vec<_>>();
        // K = 4, alpha = 0.1: thresholds 40, 20, 13.3, 10.
        assert!(e_bh(&logs(&[39.0, 1.0, 1.0, 1.0]), 0.1).is_empty());
        assert_eq!(e_bh(&logs(&[1.0, 41.0, 1.0, 1.0]), 0.1), [1]);
        assert_eq!(e_bh(&logs(&[25.0, 1.0, 21.0, 1.0]), 0.1), [0, 2]);
        assert_eq!(e_bh(&logs(&[11.0, 12.0, 13.0, 14.0]), 0.1), [0, 1, 2, 3]);
    }

    #[test]
    fn the_smallest_departure_has_the_power_that_is_said() {
        let share = 0.2 / 3.0;
        assert_eq!(smallest_tv(share, 0.002, 5, 1e-6, 0.0), None);
        let mut before = 0.5;
        for steps in [200u64, 2_000, 20_000, 200_000] {
            let t = smallest_tv(share, 0.002, steps, 1e-6, 0.0).unwrap();
            assert!(t < before && t > 0.002, "{steps} {t}");
            before = t;
            // Hits that are needed, again by going up one by one.
            let n = steps as f64;
            let log = |hits: u64| {
                let s = hits as f64;
                let terms = SCORE_STAKES.map(|stake| {
                    s * (0.5 * stake).ln_1p() + (n - s) * (-0.5 * stake).ln_1p()
                        - n * (0.002 * stake.abs()).ln_1p()
                });
                log_sum(terms.into_iter()) + (share / 14.0).ln()
            };
            let needed = (steps / 2..=steps)
                .find(|&hits| log(hits) >= 1e6f64.ln())
                .unwrap();
            // Chernoff's bound is 1% exactly there.
            let (s, mean) = (needed as f64 / n, 0.5 + t);
            let divergence = s * (s / mean).ln() + (1.0 - s) * ((1.0 - s) / (1.0 - mean)).ln();
            assert!(
                (n * divergence - 100f64.ln()).abs() < 1e-6 && mean > s,
                "{steps}"
            );
            let law = Binomial::new(0.5 + t, steps).unwrap();
            assert!(
                law.cdf(needed - 1) <= 0.01,
                "{steps}: {}",
                law.cdf(needed - 1)
            );
        }
        assert!(before < 0.015, "{before}");
    }

    /// From how many steps on a departure can be found at all: all hits have to be enough, and
    /// to be seen with probability 99% the engine's chance of them is to be near 1.
    #[test]
    fn few_steps_find_nothing() {
        assert_eq!(smallest_tv(1.0, 0.0, 0, 0.5, 0.0), None);
        for (share, tolerance, alpha) in [(1.0, 0.0, 0.3), (0.1, 0.0, 1e-3), (0.1, 0.2, 1e-3)] {
            let all = |steps: u64| {
                let term = |stake: f64| (1.0 + 0.5 * stake) / (1.0 + tolerance * stake.abs());
                let terms = SCORE_STAKES.map(|stake| term(stake).powi(steps as i32));
                share * terms.iter().sum::<f64>() / 14.0
            };
            let first = (1..400).find(|&steps| all(steps) >= 1.0 / alpha).unwrap();
            for steps in 1..first {
                assert_eq!(
                    smallest_tv(share, tolerance, steps, alpha, 0.0),
                    None,
                    "{steps}"
                );
            }
            // All of `first` steps are hits with (1/2 + t)^first, which is 99% for no t < 1/2
            // that Chernoff's bound knows; with more steps fewer hits are enough.
            let found = (first..4 * first)
                .find_map(|steps| Some((steps, smallest_tv(share, tolerance, steps, alpha, 0.0)?)));
            let (_, t) = found.unwrap();
            assert!(t > 0.2 && t < 0.5, "{t}");
        }
    }

    fn tally(judge: &Judge, steps: [u64; 4], component: usize, log: f64) -> Tally {
        let mut tally = Tally::new(&judge.book);
        tally.steps = steps;
        let one = &judge.book.components[component];
        tally.logs[one.first..one.first + one.stakes()].fill(log);
        tally
    }

    #[test]
    fn capital_is_a_mean_and_verdicts_follow_from_it() {
        let judge = Judge::new(Rule::TOKEN, 0.002);
        let index = judge
            .book
            .components
            .iter()
            .position(|one| one.name == "argmax-drafts")
            .unwrap();
        let weight = judge.book.components[index].weight;
        let found = |part_of: Part, log: f64, steps: u64, alpha: f64| {
            let total = Settled::whole(tally(&judge, [steps; 4], index, log));
            judged(&judge, part_of, &total, &Map::new(), alpha)
        };
        // All stakes of one bet hold e^log each, and all others what they began with.
        let log = 30.0;
        let report = found(Part::DraftLaw, log, 5_000, 1e-6);
        let capital = weight * log.exp() + 1.0 - weight;
        assert!((report.e_value / capital - 1.0).abs() < 1e-12);
        assert!((report.log10_e_value - capital.log10()).abs() < 1e-12);
        assert_eq!(report.part, "draft-law");
        assert_eq!(report.steps, 5_000);
        assert_eq!(report.verdict, Outcome::Refuted);
        assert_eq!(report.suspect.as_deref(), Some("argmax-drafts"));
        assert_eq!(report.reason, None);
        let names: Vec<_> = report.evidence.iter().map(|one| &one.name).collect();
        assert_eq!(names, ["argmax-drafts"]);
        let one = &report.evidence[0];
        assert!((one.log10_e_value - log / std::f64::consts::LN_10).abs() < 1e-12 && one.is_bug);
        // A part knows nothing of the bets of another.
        let other = found(Part::Acceptance, log, 5_000, 1e-6);
        assert!(other.log10_e_value.abs() < 1e-12 && other.evidence.is_empty());
        assert_eq!((other.verdict, other.suspect), (Outcome::Consistent, None));
        let share = 0.2 / 3.0;
        assert_eq!(
            report.smallest_tv_excluded,
            smallest_tv(share, 0.002, 5_000, 1e-6, 0.0)
        );
        assert_eq!(
            other.smallest_tv_excluded,
            smallest_tv(0.2, 0.002, 5_000, 1e-6, 0.0)
        );
        // Too little to refute, and enough to be listed; then neither.
        for (log10, listed) in [(2.01, 1), (1.99, 0)] {
            let weak = found(Part::DraftLaw, log10 * std::f64::consts::LN_10, 5_000, 1e-6);
            assert_eq!(weak.verdict, Outcome::Consistent);
            assert_eq!((weak.evidence.len(), weak.suspect), (listed, None));
        }
        // Few steps say nothing, but what is refuted is refuted.
        for (steps, reason) in [(0, "no step of this kind"), (3, "3 steps are too few")] {
            let few = found(Part::DraftLaw, 0.0, steps, 1e-6);
            assert_eq!(few.verdict, Outcome::NotTestable);
            assert!(few.reason.unwrap().contains(reason));
            let refuted = found(Part::DraftLaw, log, steps, 1e-6);
            assert_eq!((refuted.verdict, refuted.reason), (Outcome::Refuted, None));
        }
        // The capital is reported up to 1e300, and its logarithm beyond.
        let endless = found(Part::DraftLaw, 2_000.0, 5_000, 1e-6);
        assert!((endless.e_value / 1e300 - 1.0).abs() < 1e-12);
        assert!(endless.log10_e_value > 800.0);
        let any = Judge::new(Rule::EXACT_MATCH, 0.002);
        let total = Settled::whole(Tally {
            steps: [5_000; 4],
            ..Tally::new(&any.book)
        });
        let nothing = judged(&any, Part::DraftLaw, &total, &Map::new(), 1e-6);
        assert_eq!(nothing.verdict, Outcome::NotTestable);
        assert!(nothing.reason.unwrap().contains("claims nothing"));
    }

    #[test]
    fn a_verdict_is_at_its_level() {
        let at = |log: f64, alpha: f64| {
            let capital = Capital {
                part: Part::TargetLaw.name(),
                steps: 9,
                log,
                limit: Some(0.25),
                evidence: Vec::new(),
                groups: Vec::new(),
                untestable: None,
            };
            capital.verdict(alpha).verdict
        };
        let level = -f64::ln(0.05);
        assert_eq!(at(level, 0.05), Outcome::Refuted);
        assert_eq!(at(level - 1e-12, 0.05), Outcome::Consistent);
    }

    #[test]
    fn groups_are_named_by_family() {
        let judge = Judge::new(Rule::TOKEN, 0.002);
        let quiet = |steps| {
            Settled::whole(Tally {
                steps,
                ..Tally::new(&judge.book)
            })
        };
        let loud = Settled::whole(tally(&judge, [40; 4], 0, 60.0));
        let mut groups = Map::from([
            // One group of a family says nothing that the whole does not.
            ((Family::Depth, 0), loud.clone()),
            ((Family::Prompt, 3), quiet([9; 4])),
            ((Family::Prompt, 5), loud),
            // Without a step in the part it is none of its groups.
            ((Family::Prompt, 7), quiet([0; 4])),
        ]);
        assert_eq!(families(&groups), [Family::Prompt]);
        let found = judged(&judge, Part::DraftLaw, &quiet([49; 4]), &groups, 1e-6);
        let names: Vec<_> = (found.groups.iter())
            .map(|one| (one.family.as_str(), one.group, one.steps))
            .collect();
        assert_eq!(names, [("prompt", 5, 40)]);
        let weight = judge.book.components[0].weight;
        let log10 = (weight * 60f64.exp() + 1.0 - weight).log10();
        assert!((found.groups[0].log10_e_value - log10).abs() < 1e-12);
        // A group alone refutes.
        assert_eq!(found.verdict, Outcome::Refuted);
        assert!(found.log10_e_value.abs() < 1e-12);
        groups.insert((Family::Depth, 1), quiet([9; 4]));
        groups.insert((Family::BatchSize, 8), quiet([9; 4]));
        assert_eq!(families(&groups), [Family::Depth, Family::Prompt]);
        assert_eq!(
            Family::ALL.map(Family::name),
            ["depth", "prompt", "batch-size"]
        );
    }
}
