//! Whether rounds of one text draw with the same random numbers again.
//!
//! An engine that seeds its generator at the start of every round repeats its uniform numbers:
//! the first draft of each round comes from one number, and so does each coin. Given the rows, an
//! outcome o of law c that is drawn by the inverse of the distribution function says that the
//! number lies in a cell of length c(o). If numbers are fresh, o has the law c whatever came out
//! before, so for any set J of [0, 1) that follows from the past
//!
//! ```text
//! E_c |cell(o) and J| / (c(o) |J|)  =  sum over o of |cell(o) and J| / |J|  =  1
//! ```
//!
//! and that ratio is a bet. J is what the cells of earlier rounds have in common. Engines that
//! draw by a race of exponential clocks have no cells; if their clocks come again, so do tokens: for
//! the set W of tokens that earlier rounds drew there, 1/c(W) where o is one of them and 0 where
//! it is not is a bet too. Coins have cells whatever the sampler is.

use super::bets::log_sum;
use super::book::Tally;
use super::judge::Step;
use crate::audit::model::engine::{Engine, Laws, Position, get};
use crate::audit::model::rule::Rule;
use specgap_base::sorted::Map;
use specgap_core::rule::Drafts;

/// What is drawn, and how far into its round. What stands in one place of a round is drawn with
/// one number, if numbers come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stream {
    Draft(usize),
    Coin(usize),
    Token(usize),
}

/// In which order the tokens stand on [0, 1), or that tokens come again.
pub(crate) const KINDS: [&str; 4] = [
    "cells of tokens in the row's order",
    "cells of tokens by falling probability",
    "tokens that come again",
    "coins of acceptance",
];

/// What one draw says of its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Told {
    /// It lies between these.
    Cell { kind: usize, low: f64, high: f64 },
    /// Whether the token is one that was drawn there before, and what the law gives these.
    Again { hit: bool, mass: f64 },
}

/// Parts of the capital that are staked.
const STAKES: [f64; 3] = [0.5, 0.1, 0.02];

/// Where ratios are cut.
const CAPS: [f64; 3] = [4.0, 64.0, 1024.0];

/// Capitals of one text: a kind, a stake and a cap each.
pub(crate) const LOGS: usize = KINDS.len() * STAKES.len() * CAPS.len();

/// No set J is shorter: sums over many tokens are known to about 1e-12.
const SHORTEST: f64 = 1.0 / 1024.0;

/// What sums may be off by, relatively: paid at every step.
const ROUNDING: f64 = 1e-8;

/// The cells of an outcome: in the row's order, and by falling probability. O(V).
fn cells(law: &[f64], outcome: usize) -> [[f64; 2]; 2] {
    let own = get(law, outcome);
    let (mut before, mut above) = (0.0, 0.0);
    for (place, x) in law.iter().enumerate() {
        if place < outcome {
            before += x;
        }
        if *x > own || (*x == own && place < outcome) {
            above += x;
        }
    }
    [[before, before + own], [above, above + own]]
}

/// What a token says of the number that it was drawn with.
fn of_token(law: &[f64], outcome: usize, earlier: &[usize]) -> Vec<Told> {
    if get(law, outcome) <= 0.0 {
        return Vec::new();
    }
    let mut told: Vec<Told> = (0..)
        .zip(cells(law, outcome))
        .map(|(kind, [low, high])| Told::Cell { kind, low, high })
        .collect();
    if !earlier.is_empty() {
        told.push(Told::Again {
            hit: earlier.contains(&outcome),
            mass: earlier.iter().map(|&place| get(law, place)).sum(),
        });
    }
    told
}

/// A coin that is kept with this probability.
fn of_coin(keep: f64, accepted: bool) -> Vec<Told> {
    let [low, high] = match accepted {
        true => [0.0, keep],
        false => [keep, 1.0],
    };
    let is_open = keep > 0.0 && keep < 1.0;
    let told = Told::Cell { kind: 3, low, high };
    is_open.then_some(told).into_iter().collect()
}

/// By what was drawn, what it says of its number.
pub(crate) type Drawn = Vec<(Stream, Vec<Told>)>;

/// What a step says of the numbers that it was drawn with. `earlier` has the places of tokens
/// that earlier rounds of the text drew as drafts, and as tokens of their own, so far into a
/// round. O(V).
pub(crate) fn told(
    rule: Rule,
    siblings: bool,
    at: &Position<'_>,
    step: &Step,
    depth: usize,
    earlier: &[Vec<usize>; 2],
) -> Drawn {
    let [drafted, drawn] = earlier;
    if siblings || rule.drafts() == Drafts::Any {
        // Whatever was drafted, what comes out follows p.
        return match rule.is_lossless() {
            true => vec![(Stream::Token(depth), of_token(at.p, step.output, drawn))],
            false => Vec::new(),
        };
    }
    let laws = Laws::new(rule, &Engine::HONEST, at);
    let Some(&draft) = step.drafts.first() else {
        let told = of_token(&laws.bonus, step.output, drawn);
        return vec![(Stream::Token(depth), told)];
    };
    let mut all = Vec::new();
    if let (Some(law), Drafts::Drawn(_)) = (&laws.draft, rule.drafts()) {
        all.push((Stream::Draft(depth), of_token(law, draft, drafted)));
    }
    if at.is_rest(draft) {
        return all;
    }
    let coin = of_coin(laws.keep(draft), step.accepted);
    all.push((Stream::Coin(depth), coin));
    if !step.accepted && !at.is_rest(step.output) {
        let law = laws.listed_correction(draft, at);
        all.push((Stream::Token(depth), of_token(&law, step.output, drawn)));
    }
    all
}

/// Bets on one text.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    tolerance: f64,
    /// By stream and kind, what its cells have in common.
    common: Map<(Stream, usize), [f64; 2]>,
    pub tally: Tally,
}

impl Rounds {
    pub(crate) fn new(tolerance: f64) -> Self {
        Self {
            tolerance,
            common: Map::new(),
            tally: Tally::of(LOGS),
        }
    }

    /// Goes on by what a step says.
    pub(crate) fn go_on(&mut self, told: &[(Stream, Vec<Told>)]) {
        for (stream, all) in told {
            let mut was_bet = false;
            for one in all {
                was_bet |= self.one(*stream, *one);
            }
            self.tally.steps[0] += u64::from(was_bet);
        }
    }

    fn one(&mut self, stream: Stream, told: Told) -> bool {
        let (kind, ratio, most) = match told {
            Told::Again { hit, mass } => {
                if !(mass > SHORTEST.powi(2) && mass < 1.0 - 1e-9) {
                    return false;
                }
                (2, if hit { 1.0 / mass } else { 0.0 }, 1.0 / mass)
            }
            Told::Cell { kind, low, high } => {
                let known = self.common.get(&(stream, kind)).copied();
                let both = known.map(|[from, to]| [from.max(low), to.min(high)]);
                let left = both.filter(|[from, to]| to > from);
                self.common
                    .insert((stream, kind), wide(left.unwrap_or([low, high]), known));
                let Some([from, to]) = known else {
                    return false;
                };
                let length = (to - from).max(f64::MIN_POSITIVE);
                let shared = left.map_or(0.0, |[from, to]| to - from);
                let own = (high - low).max(f64::MIN_POSITIVE);
                (kind, shared / (own * length), 1.0 / length)
            }
        };
        self.play(kind, ratio, most);
        true
    }

    /// A ratio of mean 1 at most, and at most `most`.
    fn play(&mut self, kind: usize, ratio: f64, most: f64) {
        let each = STAKES.len() * CAPS.len();
        let slots = self.tally.logs.iter_mut().skip(kind * each).take(each);
        let grid = STAKES
            .iter()
            .flat_map(|stake| CAPS.iter().map(move |cap| (stake, cap)));
        for (slot, (stake, cap)) in slots.zip(grid) {
            let range = stake * cap.min(most);
            *slot += (stake * (ratio.min(*cap) - 1.0)).ln_1p()
                - (self.tolerance * range).ln_1p()
                - ROUNDING;
        }
    }
}

/// A set that is not shorter than [`SHORTEST`]: what was known before, or what is around it.
fn wide(found: [f64; 2], known: Option<[f64; 2]>) -> [f64; 2] {
    let [from, to] = found;
    if to - from >= SHORTEST {
        return found;
    }
    let inside = known.filter(|[low, high]| *low <= from && to <= *high);
    inside.unwrap_or_else(|| {
        let low = (0.5 * (from + to) - 0.5 * SHORTEST).clamp(0.0, 1.0 - SHORTEST);
        [low, low + SHORTEST]
    })
}

/// ln of the capital of all kinds, and of each.
pub(crate) fn capitals(tally: &Tally) -> (f64, [f64; KINDS.len()]) {
    let each = STAKES.len() * CAPS.len();
    let mut kinds = [0.0; KINDS.len()];
    for (log, own) in kinds.iter_mut().zip(tally.logs.chunks(each)) {
        *log = log_sum(own.iter().copied()) - (each as f64).ln();
    }
    let all = log_sum(kinds.iter().copied()) - (KINDS.len() as f64).ln();
    (all, kinds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::evidence::play::draw;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const LAW: [f64; 4] = [0.5, 0.125, 0.25, 0.125];

    #[test]
    fn cells_by_hand() {
        assert_eq!(cells(&LAW, 0), [[0.0, 0.5]; 2]);
        assert_eq!(cells(&LAW, 1), [[0.5, 0.625], [0.75, 0.875]]);
        assert_eq!(cells(&LAW, 2), [[0.625, 0.875], [0.5, 0.75]]);
        assert_eq!(cells(&LAW, 3), [[0.875, 1.0]; 2]);
        assert!(of_token(&[1.0, 0.0], 1, &[]).is_empty());
        let told = of_token(&LAW, 2, &[2, 0]);
        let again = Told::Again {
            hit: true,
            mass: 0.75,
        };
        assert_eq!(told.last(), Some(&again));
        let cell = |low, high| vec![Told::Cell { kind: 3, low, high }];
        assert_eq!(of_coin(0.25, true), cell(0.0, 0.25));
        assert_eq!(of_coin(0.25, false), cell(0.25, 1.0));
        assert!(of_coin(1.0, true).is_empty() && of_coin(0.0, false).is_empty());
    }

    /// The capital's mean after one step over the claimed law is 1 at most, and over the worst law
    /// within the tolerance too, whatever was drawn before.
    #[test]
    fn bets_are_fair_whatever_came_before() {
        for tolerance in [0.0, 0.002, 0.05] {
            for before in 0..4 {
                let first = Stream::Draft(0);
                let mut rounds = Rounds::new(tolerance);
                rounds.go_on(&[(first, of_token(&LAW, before, &[]))]);
                rounds.go_on(&[(first, of_token(&LAW, before, &[before]))]);
                let begun = rounds.tally.logs.clone();
                let after: Vec<Vec<f64>> = (0..4)
                    .map(|outcome| {
                        let mut next = rounds.clone();
                        next.go_on(&[(first, of_token(&LAW, outcome, &[before]))]);
                        let logs = next.tally.logs.iter().zip(&begun);
                        logs.map(|(after, before)| (after - before).exp()).collect()
                    })
                    .collect();
                for slot in 0..LOGS {
                    let mean = |law: [f64; 4]| -> f64 {
                        law.iter()
                            .zip(&after)
                            .map(|(mass, to)| mass * to[slot])
                            .sum()
                    };
                    let fair = mean(LAW);
                    assert!(fair <= 1.0 + 1e-12, "{tolerance} {before} {slot}: {fair}");
                    for (from, to) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
                        let mut law = LAW;
                        law[from] -= tolerance;
                        law[to] += tolerance;
                        assert!(mean(law) <= 1.0 + 1e-12, "{tolerance} {before} {slot}");
                    }
                }
            }
        }
    }

    fn law(random: &mut ChaCha8Rng) -> Vec<f64> {
        let mut law: Vec<f64> = (0..12).map(|_| random.random::<f64>().powi(4)).collect();
        specgap_core::rule::normalise(&mut law);
        law
    }

    /// Who draws: by cells in the row's order, by cells of falling probability, or by a race.
    fn outcome(kind: usize, law: &[f64], numbers: &mut ChaCha8Rng) -> usize {
        let by = |order: &[usize], numbers: &mut ChaCha8Rng| {
            let sorted: Vec<f64> = order.iter().map(|&place| law[place]).collect();
            order[draw(&sorted, numbers.random())]
        };
        let mut order: Vec<usize> = (0..law.len()).collect();
        match kind {
            0 => by(&order, numbers),
            1 => {
                order.sort_by(|&a, &b| law[b].total_cmp(&law[a]).then(a.cmp(&b)));
                by(&order, numbers)
            }
            _ => {
                let clocks: Vec<f64> = (law.iter())
                    .map(|mass| -(1.0 - numbers.random::<f64>()).ln() / mass)
                    .collect();
                (0..law.len())
                    .min_by(|&a, &b| clocks[a].total_cmp(&clocks[b]))
                    .unwrap()
            }
        }
    }

    /// ln of the capital of so many rounds of one draft each, on rows of their own.
    fn played(kind: usize, rounds: usize, reset: bool, seed: u64) -> (f64, [f64; 4]) {
        let mut rows = ChaCha8Rng::seed_from_u64(seed);
        let mut numbers = ChaCha8Rng::seed_from_u64(seed + 1_000_000);
        let mut found = Rounds::new(0.002);
        let mut earlier: Vec<usize> = Vec::new();
        for _ in 0..rounds {
            if reset {
                numbers.set_word_pos(0);
            }
            let law = law(&mut rows);
            let drawn = outcome(kind, &law, &mut numbers);
            let mut known: Vec<usize> = earlier.iter().rev().take(4).copied().collect();
            known.sort_unstable();
            known.dedup();
            let keep: f64 = rows.random();
            let accepted = numbers.random::<f64>() < keep;
            found.go_on(&[
                (Stream::Draft(0), of_token(&law, drawn, &known)),
                (Stream::Coin(0), of_coin(keep, accepted)),
            ]);
            earlier.push(drawn);
        }
        assert_eq!(found.tally.steps[0], 2 * rounds as u64 - 2);
        capitals(&found.tally)
    }

    /// 3,000 honest texts of 60 rounds: capital reaches 20 in at most 5% of them (150, and 213 with
    /// five standard deviations), and 1e4 in none (expected at most .3). Seeds fixed.
    #[test]
    fn honest_generators_hold_the_level() {
        let (mut twenty, mut many) = (0, 0);
        for text in 0..3000u64 {
            let (log, _) = played(text as usize % 3, 60, false, 7 * text);
            twenty += u32::from(log >= 20f64.ln());
            many += u32::from(log >= 1e4f64.ln());
        }
        assert!(twenty <= 150 && many == 0, "{twenty} {many}");
    }

    /// Every sampler with a generator that is reset is found within 40 rounds by 1e6, 20 of 20, by
    /// what it repeats; a race within 800 rounds, by its tokens alone.
    #[test]
    fn generators_that_are_reset_are_found() {
        for seed in 0..20 {
            for kind in [0, 1] {
                let (log, kinds) = played(kind, 40, true, 100 + seed);
                assert!(log > 1e6f64.ln(), "{kind} {seed}: {log}");
                assert!(kinds[kind] > 1e6f64.ln(), "{kind} {seed}: {kinds:?}");
            }
            let (_, kinds) = played(2, 800, true, 100 + seed);
            assert!(kinds[2] > 1e6f64.ln(), "{seed}: {kinds:?}");
        }
    }
}
