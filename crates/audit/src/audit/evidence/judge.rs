//! The bets of one position: every bug and every score, on what the engine did there.

use crate::audit::evidence::bets::{Bet, SCORE_STAKES, STAKES, log_step, log_sum};
use crate::audit::model::bugs::{Bug, bugs_of};
use crate::audit::model::engine::{Engine, Laws, Position};
use crate::audit::model::multi_draft::{decide, next_draft};
use crate::audit::model::rule::Rule;
use specgap_base::sorted::Map;
use specgap_core::rule::Drafts;
use specgap_core::scheme::SchemeName;
use std::sync::Arc;

/// The parts of a verdict, in the order of all arrays over parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Drafts follow the law that is claimed of them.
    DraftLaw,
    /// Drafts are kept as the rule says.
    Acceptance,
    /// What replaces a rejected draft, and what follows an accepted chain, is drawn as the
    /// rule says.
    Correction,
    /// What comes out follows p (of a lossy rule, the law that the rule gives).
    TargetLaw,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::DraftLaw,
        Self::Acceptance,
        Self::Correction,
        Self::TargetLaw,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::DraftLaw => "draft-law",
            Self::Acceptance => "acceptance",
            Self::Correction => "correction",
            Self::TargetLaw => "target-law",
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// What an engine did at a position. Tokens are places in the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub drafts: Vec<usize>,
    /// A draft was kept; meaningless without drafts.
    pub accepted: bool,
    pub output: usize,
}

/// One thing that is bet on in a part.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub part: usize,
    pub name: &'static str,
    pub words: &'static str,
    pub cure: &'static str,
    /// Weight in the mixture of the part; those of a part sum to 1.
    pub weight: f64,
    /// Where its logarithms begin, and how many stakes there are.
    pub first: usize,
    pub stakes: usize,
    pub is_bug: bool,
}

/// Capital as logarithms, one a component and stake, and steps a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub steps: [u64; 4],
    pub logs: Vec<f64>,
}

impl Tally {
    pub(crate) fn new(judge: &Judge) -> Self {
        Self {
            steps: [0; 4],
            logs: vec![0.0; judge.logs],
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            *mine += theirs;
        }
        for (mine, theirs) in self.logs.iter_mut().zip(&other.logs) {
            *mine += theirs;
        }
    }
}

/// Scores, and their weight in each part.
const SCORES: [(Part, &str, &str); 9] = [
    (
        Part::DraftLaw,
        "rank-in-q",
        "drafts are likelier, or less likely, under q than draws from it",
    ),
    (
        Part::DraftLaw,
        "rank-in-p/q",
        "drafts lean to, or away from, what the target likes",
    ),
    (
        Part::DraftLaw,
        "argmax-of-q",
        "drafts are q's likeliest token too often, or too seldom",
    ),
    (
        Part::Acceptance,
        "accepted",
        "drafts are kept too often, or too seldom",
    ),
    (
        Part::Correction,
        "rank-in-p",
        "corrections are likelier, or less likely, under p than they should",
    ),
    (
        Part::Correction,
        "rank-in-q/p",
        "corrections lean to, or away from, what the draft likes",
    ),
    (
        Part::TargetLaw,
        "rank-in-p",
        "outputs are likelier, or less likely, under p than draws from it",
    ),
    (
        Part::TargetLaw,
        "rank-in-q/p",
        "outputs lean to, or away from, what the draft likes",
    ),
    (
        Part::TargetLaw,
        "argmax-of-p",
        "outputs are p's likeliest token too often, or too seldom",
    ),
];

/// The share of a part's capital that is staked on scores.
pub(crate) const SCORE_SHARE: f64 = 0.2;

/// Bets for one rule and tolerance.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    pub rule: Rule,
    pub tolerance: f64,
    pub components: Vec<Component>,
    pub bugs: Vec<&'static Bug>,
    /// By bug and part, the component.
    of_bug: Vec<[Option<usize>; 4]>,
    of_score: [usize; SCORES.len()],
    pub logs: usize,
}

impl Judge {
    pub(crate) fn new(rule: Rule, tolerance: f64) -> Self {
        let bugs: Vec<&'static Bug> = bugs_of(rule).collect();
        let mut totals = [0.0; 4];
        for bug in &bugs {
            for (total, weight) in totals.iter_mut().zip(bug.weights) {
                *total += weight;
            }
        }
        let mut components = Vec::new();
        let mut logs = 0;
        let mut push = |component: Component| {
            logs += component.stakes;
            components.push(component);
            components.len() - 1
        };
        let mut first = 0;
        let mut of_bug = Vec::new();
        for bug in &bugs {
            let mut places = [None; 4];
            for (part, (weight, total)) in bug.weights.iter().zip(totals).enumerate() {
                if *weight > 0.0 {
                    let place = push(Component {
                        part,
                        name: bug.name,
                        words: bug.words,
                        cure: bug.cure,
                        weight: (1.0 - SCORE_SHARE) * weight / total,
                        first,
                        stakes: STAKES.len(),
                        is_bug: true,
                    });
                    first += STAKES.len();
                    if let Some(slot) = places.get_mut(part) {
                        *slot = Some(place);
                    }
                }
            }
            of_bug.push(places);
        }
        let of_score = SCORES.map(|(part, name, words)| {
            let beside = SCORES.iter().filter(|(other, ..)| *other == part).count();
            let share = match totals.get(part.index()) {
                Some(total) if *total > 0.0 => SCORE_SHARE,
                _ => 1.0,
            };
            let place = push(Component {
                part: part.index(),
                name,
                words,
                cure: "no bug of the table fits better; compare the engine's rows with the log's",
                weight: share / beside as f64,
                first,
                stakes: SCORE_STAKES.len(),
                is_bug: false,
            });
            first += SCORE_STAKES.len();
            place
        });
        Self {
            rule,
            tolerance,
            components,
            bugs,
            of_bug,
            of_score,
            logs,
        }
    }

    /// ln of the capital of a part.
    pub(crate) fn log_capital(&self, part: Part, tally: &Tally) -> f64 {
        let parts: Vec<f64> = self
            .components
            .iter()
            .filter(|one| one.part == part.index())
            .map(|one| one.weight.ln() + self.log_of(one, tally))
            .collect();
        log_sum(parts.iter().copied())
    }

    /// ln of the capital of a component.
    pub(crate) fn log_of(&self, component: &Component, tally: &Tally) -> f64 {
        let logs = tally
            .logs
            .get(component.first..component.first + component.stakes);
        let logs = logs.unwrap_or_default();
        if component.is_bug {
            let terms = logs.iter().zip(STAKES);
            log_sum(terms.map(|(log, (_, weight))| log + weight.ln()))
        } else {
            let share = (SCORE_STAKES.len() as f64).ln();
            log_sum(logs.iter().map(|log| log - share))
        }
    }

    /// The bets on what engines did at one position, each into its tally. `siblings` says
    /// that drafts are alternatives for this position.
    pub(crate) fn judge(
        &self,
        at: &Position<'_>,
        siblings: bool,
        steps: &[&Step],
        tallies: &mut [Tally],
    ) {
        if siblings {
            for (step, tally) in steps.iter().zip(tallies.iter_mut()) {
                self.several(at, step, tally);
            }
            return;
        }
        let honest = Laws::new(self.rule, &Engine::HONEST, at);
        let claimed_output = if self.rule.is_lossless() {
            None
        } else {
            honest.output()
        };
        let claimed_output = claimed_output.as_deref().unwrap_or(at.p);
        let likeliest_draft = at.likeliest(at.q);
        let near = near(at);
        let drafts_exact = self.rule.drafts() == Drafts::Drawn(SchemeName::WITH_REPLACEMENT);
        let claimed_draft = honest.draft.as_deref().filter(|_| drafts_exact);

        // What is claimed of corrections, by the draft where it matters.
        let mut corrections: Map<usize, Arc<Vec<f64>>> = Map::new();
        let mut claimed_correction = |step: &Step| -> Option<Arc<Vec<f64>>> {
            let draft = step.drafts.first().copied()?;
            let key = if honest.one_correction() {
                usize::MAX
            } else {
                draft
            };
            let law = corrections.at_or(key, || Arc::new(honest.listed_correction(draft, at)));
            Some(Arc::clone(law))
        };
        let corrected: Vec<Option<Arc<Vec<f64>>>> = steps
            .iter()
            .map(|step| {
                let Some(&draft) = step.drafts.first() else {
                    // Of a text alone nothing is said but the target's law.
                    return (self.rule != Rule::TEXT).then(|| Arc::new(at.p.to_vec()));
                };
                if step.accepted || at.is_rest(draft) || at.is_rest(step.output) {
                    None
                } else {
                    claimed_correction(step)
                }
            })
            .collect();
        for (step, (tally, correction)) in steps.iter().zip(tallies.iter_mut().zip(&corrected)) {
            if let Some(&draft) = step.drafts.first() {
                if self.rule.drafts() != Drafts::Any {
                    tally.steps[0] += 1;
                }
                if let Some(claimed) = claimed_draft {
                    self.score(tally, 0, rank(claimed, |i| at.q[i], draft), 0.5);
                    self.score(
                        tally,
                        1,
                        rank(claimed, |i| ratio(at.p[i], at.q[i]), draft),
                        0.5,
                    );
                    let mean = get(claimed, likeliest_draft);
                    let hit = f64::from(u8::from(draft == likeliest_draft));
                    self.score(tally, 2, hit, mean);
                } else if self.rule.drafts() == Drafts::Likeliest {
                    let hit = f64::from(u8::from(near.contains(&draft)));
                    self.score(tally, 2, hit, 1.0);
                }
                if !at.is_rest(draft) {
                    tally.steps[1] += 1;
                    let hit = f64::from(u8::from(step.accepted));
                    self.score(tally, 3, hit, honest.keep(draft));
                }
            }
            if let Some(claimed) = correction {
                tally.steps[2] += 1;
                let (y, law) = (step.output, claimed.as_slice());
                self.score(tally, 4, rank(law, |i| at.p[i], y), 0.5);
                self.score(tally, 5, rank(law, |i| ratio(at.q[i], at.p[i]), y), 0.5);
            }
            tally.steps[3] += 1;
            let law = if step.drafts.is_empty() {
                at.p
            } else {
                claimed_output
            };
            let best = at.likeliest(at.p);
            self.score(tally, 6, rank(law, |i| at.p[i], step.output), 0.5);
            self.score(
                tally,
                7,
                rank(law, |i| ratio(at.q[i], at.p[i]), step.output),
                0.5,
            );
            let hit = f64::from(u8::from(step.output == best));
            self.score(tally, 8, hit, get(law, best));
        }

        for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
            let laws = Laws::new(self.rule, &bug.engine, at);
            if places[0].is_some() {
                let bet = match (claimed_draft, laws.draft.as_deref()) {
                    (Some(claimed), Some(wrong)) => {
                        Bet::new(claimed, wrong, self.tolerance).map(|bet| (bet, claimed, wrong))
                    }
                    _ => None,
                };
                if let Some((bet, claimed, wrong)) = bet {
                    for (step, tally) in steps.iter().zip(tallies.iter_mut()) {
                        if let Some(&x) = step.drafts.first() {
                            let gain = bet.gain(get(claimed, x), get(wrong, x));
                            self.play(tally, places[0], gain, bet.range);
                        }
                    }
                } else if self.rule.drafts() == Drafts::Likeliest
                    && let Some(wrong) = laws.draft.as_deref()
                {
                    let hit: f64 = near.iter().map(|&i| get(wrong, i)).sum();
                    let (claimed, wrong) = ([1.0, 0.0], [hit, (1.0 - hit).max(0.0)]);
                    if let Some(bet) = Bet::new(&claimed, &wrong, self.tolerance) {
                        for (step, tally) in steps.iter().zip(tallies.iter_mut()) {
                            if let Some(x) = step.drafts.first() {
                                let place = usize::from(!near.contains(x));
                                let gain = bet.gain(claimed[place], wrong[place]);
                                self.play(tally, places[0], gain, bet.range);
                            }
                        }
                    }
                }
            }
            if places[1].is_some() {
                for (step, tally) in steps.iter().zip(tallies.iter_mut()) {
                    let Some(&x) = step.drafts.first().filter(|x| !at.is_rest(**x)) else {
                        continue;
                    };
                    let (claimed, wrong) = (honest.keep(x), laws.keep(x));
                    let (claimed, wrong) = ([claimed, 1.0 - claimed], [wrong, 1.0 - wrong]);
                    if let Some(bet) = Bet::new(&claimed, &wrong, self.tolerance) {
                        let place = usize::from(!step.accepted);
                        let gain = bet.gain(claimed[place], wrong[place]);
                        self.play(tally, places[1], gain, bet.range);
                    }
                }
            }
            if places[2].is_some() {
                let mut known: Map<usize, Option<(Vec<f64>, Bet)>> = Map::new();
                let one = honest.one_correction() && laws.one_correction();
                let parts = steps.iter().zip(tallies.iter_mut()).zip(&corrected);
                for ((step, tally), claimed) in parts {
                    let Some(claimed) = claimed else { continue };
                    let key = match step.drafts.first() {
                        None => usize::MAX,
                        Some(_) if one => usize::MAX - 1,
                        Some(&draft) => draft,
                    };
                    let bet = known.at_or(key, || {
                        let wrong = match step.drafts.first() {
                            None => laws.bonus.clone(),
                            Some(&draft) => laws.listed_correction(draft, at),
                        };
                        Bet::new(claimed, &wrong, self.tolerance).map(|bet| (wrong, bet))
                    });
                    if let Some((wrong, bet)) = bet {
                        let y = step.output;
                        let gain = bet.gain(get(claimed, y), get(wrong, y));
                        self.play(tally, places[2], gain, bet.range);
                    }
                }
            }
            if places[3].is_some() {
                // Where nothing is claimed of drafts, the law of outputs follows from p alone.
                let out = laws.output();
                let out = match (&out, self.rule.drafts()) {
                    (None, Drafts::Any) => Some(laws.bonus.as_slice()),
                    _ => out.as_deref(),
                };
                let drafted =
                    out.and_then(|out| Some((out, Bet::new(claimed_output, out, self.tolerance)?)));
                let undrafted = if bug.engine.drops.is_some() {
                    out.and_then(|out| Some((out, Bet::new(at.p, out, self.tolerance)?)))
                } else {
                    let out = laws.bonus.as_slice();
                    Bet::new(at.p, out, self.tolerance).map(|bet| (out, bet))
                };
                for (step, tally) in steps.iter().zip(tallies.iter_mut()) {
                    let (law, bet) = if step.drafts.is_empty() {
                        (at.p, &undrafted)
                    } else {
                        (claimed_output, &drafted)
                    };
                    if let Some((out, bet)) = bet {
                        let y = step.output;
                        let gain = bet.gain(get(law, y), get(out, y));
                        self.play(tally, places[3], gain, bet.range);
                    }
                }
            }
        }
    }

    /// Several drafts for one position.
    fn several(&self, at: &Position<'_>, step: &Step, tally: &mut Tally) {
        let honest = Engine::HONEST;
        let sampled = matches!(self.rule.drafts(), Drafts::Drawn(_));
        let y = step.output;
        if !step.drafts.is_empty() && self.rule.drafts() != Drafts::Any {
            tally.steps[0] += 1;
            for (k, &x) in step.drafts.iter().enumerate() {
                let earlier = step.drafts.get(..k).unwrap_or_default();
                let Some(claimed) = next_draft(self.rule, &honest, at, earlier) else {
                    continue;
                };
                if sampled {
                    self.score(tally, 0, rank(&claimed, |i| at.q[i], x), 0.5);
                    self.score(
                        tally,
                        1,
                        rank(&claimed, |i| ratio(at.p[i], at.q[i]), x),
                        0.5,
                    );
                } else {
                    let best = at.likeliest(&claimed);
                    let hit = get(at.q, x) >= NEAR * get(at.q, best);
                    self.score(tally, 2, f64::from(u8::from(hit)), 1.0);
                }
                for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
                    if places[0].is_some()
                        && sampled
                        && let Some(wrong) = next_draft(self.rule, &bug.engine, at, earlier)
                        && let Some(bet) = Bet::new(&claimed, &wrong, self.tolerance)
                    {
                        let gain = bet.gain(get(&claimed, x), get(&wrong, x));
                        self.play(tally, places[0], gain, bet.range);
                    }
                }
            }
        }
        let claimed = decide(self.rule, &honest, at, &step.drafts);
        let place = if step.accepted {
            claimed.tokens.binary_search(&y).ok()
        } else {
            Some(claimed.tokens.len())
        };
        let drafted = !step.drafts.is_empty();
        if drafted && let Some(place) = place {
            tally.steps[1] += 1;
            let none = claimed.law.last().copied().unwrap_or(0.0);
            let hit = f64::from(u8::from(step.accepted));
            self.score(tally, 3, hit, 1.0 - none);
            for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
                if places[1].is_some() {
                    let wrong = decide(self.rule, &bug.engine, at, &step.drafts);
                    if let Some(bet) = Bet::new(&claimed.law, &wrong.law, self.tolerance) {
                        let gain = bet.gain(get(&claimed.law, place), get(&wrong.law, place));
                        self.play(tally, places[1], gain, bet.range);
                    }
                }
            }
        }
        if !drafted || !step.accepted {
            tally.steps[2] += 1;
            let law = if drafted {
                claimed.correction.as_slice()
            } else {
                at.p
            };
            self.score(tally, 4, rank(law, |i| at.p[i], y), 0.5);
            self.score(tally, 5, rank(law, |i| ratio(at.q[i], at.p[i]), y), 0.5);
            for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
                if places[2].is_some() {
                    let wrong = decide(self.rule, &bug.engine, at, &step.drafts);
                    if let Some(bet) = Bet::new(law, &wrong.correction, self.tolerance) {
                        let gain = bet.gain(get(law, y), get(&wrong.correction, y));
                        self.play(tally, places[2], gain, bet.range);
                    }
                }
            }
        }
        tally.steps[3] += 1;
        self.score(tally, 6, rank(at.p, |i| at.p[i], y), 0.5);
        self.score(tally, 7, rank(at.p, |i| ratio(at.q[i], at.p[i]), y), 0.5);
        let best = at.likeliest(at.p);
        self.score(tally, 8, f64::from(u8::from(y == best)), get(at.p, best));
        for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
            if places[3].is_some() && bug.engine.target != crate::audit::model::engine::Change::Same
            {
                let wrong = crate::audit::model::engine::change(at.p, bug.engine.target, at);
                if let Some(bet) = Bet::new(at.p, &wrong, self.tolerance) {
                    let gain = bet.gain(get(at.p, y), get(&wrong, y));
                    self.play(tally, places[3], gain, bet.range);
                }
            }
        }
    }

    fn play(&self, tally: &mut Tally, component: Option<usize>, gain: f64, range: f64) {
        let component = component.and_then(|place| self.components.get(place));
        let Some(component) = component else { return };
        let slots = tally
            .logs
            .get_mut(component.first..component.first + component.stakes);
        for (slot, (stake, _)) in slots.unwrap_or_default().iter_mut().zip(STAKES) {
            *slot += log_step(gain, range, stake, self.tolerance);
        }
    }

    /// A score in [0, 1] with its mean under the claim.
    fn score(&self, tally: &mut Tally, score: usize, value: f64, mean: f64) {
        let component = self
            .of_score
            .get(score)
            .and_then(|place| self.components.get(*place));
        let Some(component) = component else { return };
        let slots = tally
            .logs
            .get_mut(component.first..component.first + component.stakes);
        for (slot, stake) in slots.unwrap_or_default().iter_mut().zip(SCORE_STAKES) {
            *slot += log_step(
                stake * (value - mean),
                1.0,
                1.0,
                self.tolerance * stake.abs(),
            );
        }
    }
}

/// A token counts as the likeliest from this share of the largest probability on: two
/// passes of a model may differ in who is first of two near equals.
const NEAR: f64 = 0.9;

fn near(at: &Position<'_>) -> Vec<usize> {
    let largest = get(at.q, at.likeliest(at.q));
    (0..at.q.len())
        .filter(|&i| !at.is_rest(i) && get(at.q, i) >= NEAR * largest)
        .collect()
}

fn get(law: &[f64], place: usize) -> f64 {
    law.get(place).copied().unwrap_or(0.0)
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 {
        a / b
    } else if a > 0.0 {
        f64::INFINITY
    } else {
        0.0
    }
}

/// The share of a law above an outcome in the order of a key, and half of its equals': a
/// score in [0, 1] whose mean under the law is 1/2 exactly.
fn rank(law: &[f64], key: impl Fn(usize) -> f64, outcome: usize) -> f64 {
    let own = key(outcome);
    let (mut above, mut equal) = (0.0, 0.0);
    for (place, mass) in law.iter().enumerate() {
        if *mass > 0.0 {
            let other = key(place);
            if other > own {
                above += mass;
            } else if other == own {
                equal += mass;
            }
        }
    }
    (above + 0.5 * equal).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_a_part_sum_to_one() {
        for rule in [
            "token",
            "rrs",
            "rrs-wo",
            "k-seq",
            "block",
            "one-hot",
            "exact-match",
        ] {
            let judge = Judge::new(rule.parse().unwrap(), 0.0);
            for part in Part::ALL {
                let total: f64 = judge
                    .components
                    .iter()
                    .filter(|one| one.part == part.index())
                    .map(|one| one.weight)
                    .sum();
                assert!(
                    (total - 1.0).abs() < 1e-12,
                    "{rule} {}: {total}",
                    part.name()
                );
            }
            let empty = Tally::new(&judge);
            assert!(judge.log_capital(Part::TargetLaw, &empty).abs() < 1e-12);
        }
    }

    #[test]
    fn capital_is_the_weighted_mean_of_stakes() {
        let judge = Judge::new(Rule::TOKEN, 0.0);
        let mut tally = Tally::new(&judge);
        let bug = judge.components.iter().find(|one| one.is_bug).unwrap();
        let score = judge.components.iter().find(|one| !one.is_bug).unwrap();
        tally.logs[bug.first..bug.first + 3].copy_from_slice(&[2, 4, 8].map(|x| f64::ln(x.into())));
        tally.logs[score.first..score.first + 14].fill(0.0);
        tally.logs[score.first] = 15f64.ln();
        assert!((judge.log_of(bug, &tally) - 2.8f64.ln()).abs() < 1e-14);
        assert!((judge.log_of(score, &tally) - 2f64.ln()).abs() < 1e-14);
        assert_eq!((bug.part, score.part), (0, 0));
        let expected = 1.0 + 1.8 * bug.weight + score.weight;
        let found = judge.log_capital(Part::DraftLaw, &tally);
        assert!((found - expected.ln()).abs() < 1e-14, "{found}");
        assert!(judge.log_capital(Part::Acceptance, &tally).abs() < 1e-14);
        let mut twice = tally.clone();
        twice.steps = [1, 2, 3, 4];
        twice.add(&tally);
        tally.steps = [1; 4];
        twice.add(&tally);
        assert_eq!(twice.steps, [2, 3, 4, 5]);
        assert!((twice.logs[bug.first] - 3.0 * 2f64.ln()).abs() < 1e-15);
        // Bugs share four fifths by their weights, and scores the rest evenly.
        let of = |name: &str, part: usize| {
            let mut all = judge.components.iter();
            all.find(|one| one.name == name && one.part == part)
                .unwrap()
        };
        for part in 0..4 {
            let total: f64 = judge.bugs.iter().map(|bug| bug.weights[part]).sum();
            for bug in judge.bugs.iter().filter(|bug| bug.weights[part] > 0.0) {
                let expected = 0.8 * bug.weights[part] / total;
                assert!(
                    (of(bug.name, part).weight - expected).abs() < 1e-15,
                    "{}",
                    bug.name
                );
            }
        }
        assert!((of("accepted", 1).weight - 0.2).abs() < 1e-15);
        assert!((of("rank-in-p", 2).weight - 0.1).abs() < 1e-15);
        assert!((of("argmax-of-p", 3).weight - 0.2 / 3.0).abs() < 1e-15);
        // Where nothing is bet on bugs, scores have all.
        let exact = Judge::new(Rule::EXACT_MATCH, 0.0);
        let scores = exact.components.iter().filter(|one| one.part == 0);
        for one in scores {
            assert!(!one.is_bug && (one.weight - 1.0 / 3.0).abs() < 1e-15);
        }
        // Every component has logarithms of its own.
        let mut next = 0;
        for one in &judge.components {
            assert_eq!(one.first, next);
            next += one.stakes;
        }
        assert_eq!(judge.logs, next);
    }

    /// Values and means of the scores that a step is given; those that are not listed are not
    /// played.
    fn scores(
        judge: &Judge,
        at: &Position<'_>,
        siblings: bool,
        step: &Step,
        steps: [u64; 4],
        played: &[(usize, f64, f64)],
    ) {
        let mut tally = [Tally::new(judge)];
        judge.judge(at, siblings, &[step], &mut tally);
        let [tally] = tally;
        assert_eq!(tally.steps, steps, "{step:?}");
        for score in 0..SCORES.len() {
            let component = &judge.components[judge.of_score[score]];
            let logs = &tally.logs[component.first..component.first + 14];
            for (log, stake) in logs.iter().zip(SCORE_STAKES) {
                let turns = played.iter().filter(|(one, ..)| *one == score);
                let expected: f64 = turns
                    .map(|(_, value, mean)| {
                        let gain = 1.0 + stake * (value - mean);
                        (gain / (1.0 + judge.tolerance * stake.abs())).ln() - 1e-9
                    })
                    .sum();
                assert!(
                    (log - expected).abs() < 1e-13,
                    "{step:?} {score} {stake}: {log} {expected}"
                );
            }
        }
    }

    fn step(drafts: &[usize], accepted: bool, output: usize) -> Step {
        Step {
            drafts: drafts.to_vec(),
            accepted,
            output,
        }
    }

    #[test]
    fn scores_of_one_draft_by_hand() {
        let p = [0.35, 0.25, 0.2, 0.15, 0.05];
        let q = [0.1, 0.05, 0.45, 0.3, 0.1];
        let at = |rest| Position {
            p: &p,
            q: &q,
            rest,
            reach: 1.0,
        };
        let judge = Judge::new(Rule::TOKEN, 0.002);
        let drafted = [(0, 0.225, 0.5), (1, 0.775, 0.5), (2, 1.0, 0.45)];
        let with = |more: &[(usize, f64, f64)]| [&drafted[..], more].concat();
        let keep = 4.0 / 9.0;
        scores(
            &judge,
            &at(false),
            false,
            &step(&[2], true, 2),
            [1, 1, 0, 1],
            &with(&[(3, 1.0, keep), (6, 0.7, 0.5), (7, 0.1, 0.5), (8, 0.0, 0.35)]),
        );
        // (p - q)+ is (5, 4, 0, 0, 0)/9.
        let rank = 7.0 / 9.0;
        let out = [(6, 0.475, 0.5), (7, 0.875, 0.5), (8, 0.0, 0.35)];
        let more = [
            (3, 0.0, keep),
            (4, rank, 0.5),
            (5, rank, 0.5),
            out[0],
            out[1],
            out[2],
        ];
        scores(
            &judge,
            &at(false),
            false,
            &step(&[2], false, 1),
            [1, 1, 1, 1],
            &with(&more),
        );
        let undrafted = [
            (4, 0.175, 0.5),
            (5, 0.575, 0.5),
            (6, 0.175, 0.5),
            (7, 0.575, 0.5),
            (8, 1.0, 0.35),
        ];
        scores(
            &judge,
            &at(false),
            false,
            &step(&[], false, 0),
            [0, 0, 1, 1],
            &undrafted,
        );
        // What is not listed: as a draft it is no acceptance; and as an output no correction.
        let last = [(0, 0.85, 0.5), (1, 0.35, 0.5), (2, 0.0, 0.45)];
        let out = [(6, 0.175, 0.5), (7, 0.575, 0.5), (8, 1.0, 0.35)];
        let all = [&last[..], &out[..]].concat();
        scores(
            &judge,
            &at(true),
            false,
            &step(&[4], false, 0),
            [1, 0, 0, 1],
            &all,
        );
        let out = [
            (3, 0.0, keep),
            (6, 0.975, 0.5),
            (7, 0.3, 0.5),
            (8, 0.0, 0.35),
        ];
        scores(
            &judge,
            &at(true),
            false,
            &step(&[2], false, 4),
            [1, 1, 0, 1],
            &with(&out),
        );
        // Drafts that are claimed to be the likeliest, or nearly: 0.45 is, and 0.3 is not.
        let judge = Judge::new(Rule::ONE_HOT, 0.002);
        let out = [(6, 0.7, 0.5), (7, 0.1, 0.5), (8, 0.0, 0.35)];
        let all = [&[(2, 1.0, 1.0), (3, 1.0, 0.2)][..], &out].concat();
        scores(
            &judge,
            &at(false),
            false,
            &step(&[2], true, 2),
            [1, 1, 0, 1],
            &all,
        );
        let out = [(6, 0.875, 0.5), (7, 0.3, 0.5), (8, 0.0, 0.35)];
        let all = [&[(2, 0.0, 1.0), (3, 1.0, 0.15)][..], &out].concat();
        scores(
            &judge,
            &at(false),
            false,
            &step(&[3], true, 3),
            [1, 1, 0, 1],
            &all,
        );
        // Exact match claims nothing of drafts.
        let judge = Judge::new(Rule::EXACT_MATCH, 0.002);
        let all = [&[(3, 1.0, 0.15)][..], &out].concat();
        scores(
            &judge,
            &at(false),
            false,
            &step(&[3], true, 3),
            [0, 1, 0, 1],
            &all,
        );
        // What a lossy rule puts out: 2 with 0.2/0.5, else p without it.
        let judge = Judge::new(Rule::threshold(0.5).unwrap(), 0.002);
        let out = [(6, 0.6 * 0.75 + 0.2, 0.5), (7, 0.2, 0.5), (8, 0.0, 0.2625)];
        let all = [&[(2, 1.0, 1.0), (3, 1.0, 0.4)][..], &out].concat();
        scores(
            &judge,
            &at(false),
            false,
            &step(&[2], true, 2),
            [1, 1, 0, 1],
            &all,
        );
        scores(
            &judge,
            &at(false),
            false,
            &step(&[], false, 0),
            [0, 0, 1, 1],
            &undrafted,
        );
    }

    #[test]
    fn scores_of_several_drafts_by_hand() {
        let p = [0.35, 0.25, 0.2, 0.2];
        let q = [0.1, 0.05, 0.5, 0.35];
        let at = Position {
            p: &p,
            q: &q,
            rest: false,
            reach: 1.0,
        };
        let judge = Judge::new(Rule::RRS, 0.002);
        // Of 2, then of 3: it is kept with 0.4, and 3 is not what is left.
        let drafted = [
            (0, 0.25, 0.5),
            (1, 0.75, 0.5),
            (0, 0.675, 0.5),
            (1, 0.325, 0.5),
        ];
        let out = [(6, 0.8, 0.5), (7, 0.1, 0.5), (8, 0.0, 0.35)];
        let all = [&drafted[..], &[(3, 1.0, 0.4)], &out].concat();
        scores(
            &judge,
            &at,
            true,
            &step(&[2, 3], true, 2),
            [1, 1, 0, 1],
            &all,
        );
        // What is left is (5, 4, 0, 0)/9, then (41, 35.5, 0, 0)/76.5.
        let rank = (41.0 + 17.75) / 76.5;
        let out = [(6, 0.475, 0.5), (7, 0.875, 0.5), (8, 0.0, 0.35)];
        let more = [(3, 0.0, 0.4), (4, rank, 0.5), (5, rank, 0.5)];
        let all = [&drafted[..], &more, &out].concat();
        scores(
            &judge,
            &at,
            true,
            &step(&[2, 3], false, 1),
            [1, 1, 1, 1],
            &all,
        );
        // No draft that came out.
        let out = [(6, 0.175, 0.5), (7, 0.575, 0.5), (8, 1.0, 0.35)];
        let all = [&drafted[..], &out].concat();
        scores(
            &judge,
            &at,
            true,
            &step(&[2, 3], true, 0),
            [1, 0, 0, 1],
            &all,
        );
        let all = [&[(4, 0.175, 0.5), (5, 0.575, 0.5)][..], &out].concat();
        scores(&judge, &at, true, &step(&[], false, 0), [0, 0, 1, 1], &all);
        // The likeliest, and then the likeliest of the others.
        let judge = Judge::new(Rule::ONE_HOT, 0.002);
        for (drafts, hit, keep) in [([2, 3], 1.0, 0.4), ([2, 0], 0.0, 0.55)] {
            let out = [(6, 0.8, 0.5), (7, 0.1, 0.5), (8, 0.0, 0.35)];
            let all = [&[(2, 1.0, 1.0), (2, hit, 1.0), (3, 1.0, keep)][..], &out].concat();
            scores(
                &judge,
                &at,
                true,
                &step(&drafts, true, 2),
                [1, 1, 0, 1],
                &all,
            );
        }
        let judge = Judge::new(Rule::EXACT_MATCH, 0.002);
        let out = [(6, 0.8, 0.5), (7, 0.1, 0.5), (8, 0.0, 0.35)];
        let all = [&[(3, 1.0, 0.4)][..], &out].concat();
        scores(
            &judge,
            &at,
            true,
            &step(&[2, 3], true, 2),
            [0, 1, 0, 1],
            &all,
        );
    }

    /// Capital that is bet on a bug grows where an engine has it, by what the bet promises.
    #[test]
    fn every_bet_wins_if_the_engine_has_the_bug() {
        let p = [0.35, 0.25, 0.2, 0.15, 0.05];
        let q = [0.1, 0.05, 0.45, 0.3, 0.1];
        for rule in [
            Rule::TOKEN,
            Rule::BLOCK,
            Rule::ONE_HOT,
            Rule::EXACT_MATCH,
            Rule::threshold(0.8).unwrap(),
        ] {
            let at = Position {
                p: &p,
                q: &q,
                rest: false,
                reach: if rule == Rule::BLOCK { 0.6 } else { 1.0 },
            };
            let judge = Judge::new(rule, 0.0);
            let honest = Laws::new(rule, &Engine::HONEST, &at);
            for (bug, places) in judge.bugs.iter().zip(&judge.of_bug) {
                let laws = Laws::new(rule, &bug.engine, &at);
                let log = |step: Step, part: usize| {
                    let mut tally = [Tally::new(&judge)];
                    judge.judge(&at, false, &[&step], &mut tally);
                    let component = &judge.components[places[part].unwrap()];
                    tally[0].logs[component.first]
                };
                let grows = |claimed: &[f64], wrong: &[f64], logs: Vec<f64>, what: &str| {
                    // What the bet gives each outcome, weighed by the bug's law.
                    let bet = Bet::new(claimed, wrong, 0.0);
                    let mut mean = 0.0;
                    for ((claimed, wrong), log) in claimed.iter().zip(wrong).zip(logs) {
                        let gain = bet.map_or(0.0, |bet| bet.gain(*claimed, *wrong));
                        let rounding = if bet.is_some() { 1e-9 } else { 0.0 };
                        let expected = (1.0 + gain).ln() - rounding;
                        assert!(
                            *wrong <= 0.0 || (log - expected).abs() < 1e-12,
                            "{rule} {} {what}: {log} {expected}",
                            bug.name
                        );
                        if *wrong > 0.0 {
                            mean += wrong * log;
                        }
                    }
                    assert!(mean > 0.0 || bet.is_none(), "{rule} {} {what}", bug.name);
                };
                let all = 0..p.len();
                if places[0].is_some()
                    && rule.drafts() == Drafts::Drawn(SchemeName::WITH_REPLACEMENT)
                    && let (Some(claimed), Some(wrong)) = (&honest.draft, &laws.draft)
                {
                    let logs = all.clone().map(|x| log(step(&[x], false, 0), 0)).collect();
                    grows(claimed, wrong, logs, "drafts");
                }
                if places[0].is_some()
                    && rule.drafts() == Drafts::Likeliest
                    && let Some(wrong) = &laws.draft
                {
                    let wrong = [wrong[2], 1.0 - wrong[2]];
                    let logs = [2, 0].map(|x| log(step(&[x], false, 1), 0)).to_vec();
                    grows(&[1.0, 0.0], &wrong, logs, "drafts");
                }
                if places[1].is_some() {
                    for x in all.clone() {
                        let both = |keep: f64| [keep, 1.0 - keep];
                        let logs = [true, false]
                            .map(|kept| log(step(&[x], kept, x), 1))
                            .to_vec();
                        grows(&both(honest.keep(x)), &both(laws.keep(x)), logs, "kept");
                    }
                }
                if places[2].is_some() {
                    let logs = all.clone().map(|y| log(step(&[2], false, y), 2)).collect();
                    grows(
                        &honest.correction(2),
                        &laws.correction(2),
                        logs,
                        "corrected",
                    );
                    let logs = all.clone().map(|y| log(step(&[], false, y), 2)).collect();
                    grows(&p, &laws.bonus, logs, "undrafted");
                }
                if places[3].is_some() {
                    let claimed = if rule.is_threshold() {
                        honest.output().unwrap()
                    } else {
                        p.to_vec()
                    };
                    let out = laws.output().unwrap_or(laws.bonus.clone());
                    let logs = all.clone().map(|y| log(step(&[2], true, y), 3)).collect();
                    grows(&claimed, &out, logs, "out");
                    let alone = match bug.engine.drops {
                        Some(_) => &out,
                        None => &laws.bonus,
                    };
                    let logs = all.clone().map(|y| log(step(&[], false, y), 3)).collect();
                    grows(&p, alone, logs, "out alone");
                }
            }
        }
    }

    /// The same for several drafts.
    #[test]
    fn every_bet_on_several_drafts_wins_if_the_engine_has_the_bug() {
        let p = [0.35, 0.25, 0.2, 0.2];
        let q = [0.1, 0.05, 0.5, 0.35];
        let at = Position {
            p: &p,
            q: &q,
            rest: false,
            reach: 1.0,
        };
        for rule in [Rule::RRS, Rule::RRS_WO, Rule::K_SEQ, Rule::ONE_HOT] {
            let judge = Judge::new(rule, 0.002);
            let honest = Engine::HONEST;
            for (bug, places) in judge.bugs.iter().zip(&judge.of_bug) {
                let log = |step: &Step, part: usize| {
                    let mut tally = [Tally::new(&judge)];
                    judge.judge(&at, true, &[step], &mut tally);
                    let place = places[part];
                    place.map_or(0.0, |place| tally[0].logs[judge.components[place].first])
                };
                let expected = |claimed: &[f64], wrong: &[f64], outcome: usize| {
                    Bet::new(claimed, wrong, 0.002).map_or(0.0, |bet| {
                        let gain = bet.gain(claimed[outcome], wrong[outcome]);
                        ((1.0 + gain) / (1.0 + 0.002 * bet.range)).ln() - 1e-9
                    })
                };
                let check = |step: &Step| {
                    let (claimed, wrong) = (
                        decide(rule, &honest, &at, &step.drafts),
                        decide(rule, &bug.engine, &at, &step.drafts),
                    );
                    let mut sums = [0.0; 4];
                    for (k, &x) in step.drafts.iter().enumerate() {
                        let law = |engine| next_draft(rule, engine, &at, &step.drafts[..k]);
                        if let (Some(claimed), Some(wrong)) = (law(&honest), law(&bug.engine))
                            && rule != Rule::ONE_HOT
                        {
                            sums[0] += expected(&claimed, &wrong, x);
                        }
                    }
                    let place = match claimed.tokens.binary_search(&step.output) {
                        Ok(place) if step.accepted => place,
                        _ => claimed.tokens.len(),
                    };
                    sums[1] = expected(&claimed.law, &wrong.law, place);
                    if !step.accepted {
                        sums[2] = expected(&claimed.correction, &wrong.correction, step.output);
                    }
                    let target = crate::audit::model::engine::change(&p, bug.engine.target, &at);
                    sums[3] = expected(&p, &target, step.output);
                    for (part, sum) in sums.into_iter().enumerate() {
                        let sum = if places[part].is_some() { sum } else { 0.0 };
                        let found = log(step, part);
                        assert!(
                            (found - sum).abs() < 1e-12,
                            "{rule} {} {part} {step:?}: {found} {sum}",
                            bug.name
                        );
                    }
                };
                for drafts in [[2, 3], [3, 2], [2, 0]] {
                    check(&step(&drafts, true, 2));
                    check(&step(&drafts, false, 1));
                }
            }
            // Without a draft the token follows p, whatever the bug.
            let mut tally = [Tally::new(&judge)];
            judge.judge(&at, true, &[&step(&[], false, 0)], &mut tally);
            for one in judge
                .components
                .iter()
                .filter(|one| one.is_bug && one.part < 2)
            {
                assert_eq!(tally[0].logs[one.first], 0.0);
            }
        }
    }

    #[test]
    fn near_the_likeliest_and_ratios() {
        let q = [0.5, 0.45, 0.449, 0.5];
        let at = |rest| Position {
            p: &q,
            q: &q,
            rest,
            reach: 1.0,
        };
        assert_eq!(near(&at(false)), [0, 1, 3]);
        assert_eq!(near(&at(true)), [0, 1]);
        assert_eq!(ratio(1.0, 4.0), 0.25);
        assert_eq!(ratio(1.0, 0.0), f64::INFINITY);
        assert_eq!(ratio(0.0, 0.0), 0.0);
        assert_eq!(ratio(0.0, 2.0), 0.0);
        let law = [0.2, 0.3, 0.5, 0.0];
        let key = |i: usize| [1.0, 2.0, 1.0, 9.0][i];
        let ranks = [0, 1, 2, 3].map(|i| rank(&law, key, i));
        for (rank, expected) in ranks.into_iter().zip([0.65, 0.15, 0.65, 0.0]) {
            assert!((rank - expected).abs() < 1e-15, "{rank}");
        }
        // Rounding does not lift it above 1.
        assert_eq!(rank(&[0.7, 0.7], |i| -(i as f64), 1), 1.0);
    }

    #[test]
    fn ranks_have_mean_one_half() {
        let law = [0.2, 0.3, 0.5, 0.0];
        let key = |i: usize| [1.0, 2.0, 1.0, 9.0][i];
        let mean: f64 = (0..4).map(|i| law[i] * rank(&law, key, i)).sum();
        assert!((mean - 0.5).abs() < 1e-15);
    }

    /// All the ways a step can go under the rule, with their probabilities.
    fn outcomes(rule: Rule, at: &Position<'_>) -> Vec<(f64, Step)> {
        let draws = Engine {
            draws: rule == Rule::EXACT_MATCH,
            ..Engine::HONEST
        };
        let laws = Laws::new(rule, &draws, at);
        let mut all = Vec::new();
        for (x, q) in laws.draft.clone().unwrap().into_iter().enumerate() {
            let keep = laws.keep(x);
            let step = |accepted, output| Step {
                drafts: vec![x],
                accepted,
                output,
            };
            all.push((q * keep, step(true, x)));
            for (y, mass) in laws.correction(x).into_iter().enumerate() {
                all.push((q * (1.0 - keep) * mass, step(false, y)));
            }
        }
        all.retain(|(mass, _)| *mass > 0.0);
        all
    }

    #[test]
    fn every_bet_is_fair_under_the_rule() {
        // The test of tests: the capital of every component after one position has mean 1
        // (up to what is paid for rounding) if the rule is followed and nothing is tolerated,
        // and at most 1 with a tolerance.
        let p = [0.35, 0.25, 0.2, 0.15, 0.05];
        let q = [0.1, 0.05, 0.45, 0.3, 0.1];
        for rule in [
            Rule::TOKEN,
            Rule::BLOCK,
            Rule::ONE_HOT,
            Rule::EXACT_MATCH,
            Rule::threshold(0.8).unwrap(),
        ] {
            for (tolerance, rest) in [(0.0, false), (0.002, false), (0.0, true)] {
                if rest && rule.needs_full_rows().is_some() {
                    continue;
                }
                let reach = if rule == Rule::BLOCK { 0.6 } else { 1.0 };
                let at = Position {
                    p: &p,
                    q: &q,
                    rest,
                    reach,
                };
                let judge = Judge::new(rule, tolerance);
                let mut mean = vec![0.0; judge.logs];
                let mut total = 0.0;
                for (mass, step) in outcomes(rule, &at) {
                    let mut tally = [Tally::new(&judge)];
                    judge.judge(&at, false, &[&step], &mut tally);
                    for (mean, log) in mean.iter_mut().zip(&tally[0].logs) {
                        *mean += mass * log.exp();
                    }
                    total += mass;
                }
                assert!((total - 1.0).abs() < 1e-12);
                for (place, mean) in mean.into_iter().enumerate() {
                    let fair = if tolerance == 0.0 {
                        1.0 - mean < 1e-7
                    } else {
                        true
                    };
                    assert!(
                        mean <= 1.0 + 1e-12 && fair,
                        "{rule} {tolerance} {rest} {place} {mean}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_bet_on_several_drafts_is_fair_under_the_rule() {
        let p = [0.35, 0.25, 0.2, 0.2];
        let q = [0.1, 0.05, 0.5, 0.35];
        let at = Position {
            p: &p,
            q: &q,
            rest: false,
            reach: 1.0,
        };
        for rule in [Rule::RRS, Rule::RRS_WO, Rule::K_SEQ, Rule::ONE_HOT] {
            let judge = Judge::new(rule, 0.0);
            let mut mean = vec![0.0; judge.logs];
            let honest = Engine::HONEST;
            let first = next_draft(rule, &honest, &at, &[]).unwrap();
            for (a, mass_a) in first.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                let second = next_draft(rule, &honest, &at, &[a]).unwrap();
                for (b, mass_b) in second.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                    let found = decide(rule, &honest, &at, &[a, b]);
                    let mut play = |mass: f64, accepted: bool, output: usize| {
                        let step = Step {
                            drafts: vec![a, b],
                            accepted,
                            output,
                        };
                        let mut tally = [Tally::new(&judge)];
                        judge.judge(&at, true, &[&step], &mut tally);
                        for (mean, log) in mean.iter_mut().zip(&tally[0].logs) {
                            *mean += mass_a * mass_b * mass * log.exp();
                        }
                    };
                    for (token, mass) in found.tokens.iter().zip(&found.law) {
                        if *mass > 0.0 {
                            play(*mass, true, *token);
                        }
                    }
                    let none = found.law.last().unwrap();
                    for (y, mass) in found.correction.iter().enumerate() {
                        if none * mass > 0.0 {
                            play(none * mass, false, y);
                        }
                    }
                }
            }
            for (place, mean) in mean.into_iter().enumerate() {
                assert!(
                    mean <= 1.0 + 1e-11 && mean > 1.0 - 1e-7,
                    "{rule} {place} {mean}"
                );
            }
        }
    }
}
