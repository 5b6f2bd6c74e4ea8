//! Suspects that learn from the past, and numbers that come again.
//!
//! They are told of positions in the order of the log. What each says of an outcome follows from
//! what came before.

use super::factor::Factor;
use super::view::{common, ratio};
use crate::audit::evidence::bets::log_sum;
use serde::{Deserialize, Serialize};
use specgap_base::sorted::Map;
use std::collections::BTreeMap;

/// What is drawn: what stands in the same place of a round is drawn with one number, if numbers
/// come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Drawn {
    Draft,
    Coin,
    Token,
}

/// What an outcome says of its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Number {
    pub drawn: Drawn,
    /// Which of several for one position.
    pub nth: usize,
    /// Where it lies, with tokens in the row's order and by falling mass; coins have one cell.
    pub cells: [Option<[f64; 2]>; 2],
    /// Of tokens that earlier rounds of the text, and earlier texts, drew there: whether it is one
    /// of them, and their mass.
    pub again: [Option<(bool, f64)>; 2],
    /// Of tokens that the first texts drew there: which text, whether it is the one, and its mass.
    pub first: Vec<(usize, bool, f64)>,
}

/// A position, as far as the past has a say in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub text: usize,
    /// Which round of its text, and how far into the round.
    pub round: usize,
    pub depth: usize,
    /// p(x), q(x), the chance of being kept, and the half-width of that.
    pub acceptance: Option<[f64; 4]>,
    /// The chances of being kept if the target draws with the draft's numbers, by [`Shared`](super::family::Shared).
    pub shared: [f64; 3],
    pub kept: bool,
    /// Its prefix may have been refused, as one of a block.
    pub within_block: bool,
    /// It is the last of its text.
    pub ends: bool,
    /// e to the entropy of p.
    pub spread: f64,
    /// Of a rejected draft: where what replaced it lies by falling p, under each law.
    pub replaced: Option<[[f64; 2]; REPLACE]>,
    /// Behind a draft that was kept: the cells of the token that came without one.
    pub bonus: Option<[[f64; 2]; 2]>,
    /// The cell of what came out in p by falling mass, and of the draft in its law.
    pub output: Option<[f64; 2]>,
    pub draft: Option<[f64; 2]>,
    pub numbers: Vec<Number>,
    /// ln of what other passes of the models make of it, by size of noise.
    pub noise: Vec<f64>,
    /// The token before, where rows are whole; and tokens that are likely to follow it, with their p.
    pub before: Option<usize>,
    pub next: Vec<(usize, f64)>,
    pub token: usize,
    /// ln of how likely what happened with the draft is as claimed.
    pub claimed: f64,
}

/// Sizes of noise that are looked for where nothing says whose the rows are.
pub(crate) const NOISES: [f64; 3] = [0.01, 0.03, 0.1];

/// A threshold of acceptance, as the past leaves it open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// The largest value that was refused, and the smallest that was kept.
    pub refused: f64,
    pub kept: f64,
    pub log: f64,
}

impl Default for Threshold {
    fn default() -> Self {
        Self {
            refused: 0.0,
            kept: f64::INFINITY,
            log: 0.0,
        }
    }
}

/// How often a threshold is taken to be missed.
const MISSES: f64 = 0.002;

/// Where it is looked for.
const LEAST: f64 = 0.02;
const MOST: f64 = 10.0;

impl Threshold {
    fn look(&mut self, value: f64, (kept, within_block): (bool, bool), [keep, width]: [f64; 2]) {
        // The threshold is anywhere between what was refused and what was kept, by its logarithm.
        let (low, high) = (self.refused.max(LEAST), self.kept.min(MOST));
        let own = match (value >= self.kept, value <= self.refused) {
            (true, false) => 1.0 - MISSES,
            (false, true) => MISSES,
            (false, false) if low < high => {
                let share = (value.clamp(low, high) / low).ln() / (high / low).ln();
                share.clamp(MISSES, 1.0 - MISSES)
            }
            _ => keep,
        };
        let factor = Factor::of_acceptance(kept, own, [keep, width]);
        // What another prefix of a block explains tells nothing.
        if own != keep && !(within_block && factor.is_of_the_excluded()) {
            self.log += factor.ratio.ln() - factor.price.ln_1p();
        }
        match kept {
            true => self.kept = self.kept.min(value),
            false => self.refused = self.refused.max(value),
        }
    }

    /// Tells whether what is left of it is a threshold, and no law of another kind.
    pub(crate) fn is_one(&self) -> bool {
        self.kept.is_finite() && self.refused > 0.0 && self.refused <= self.kept * (1.0 + 1e-9)
    }
}

/// Shares that are looked for of refused drafts that are kept: each 5% above the one before.
const ANYWAY: usize = 120;
const ANYWAY_LEAST: f64 = 0.003;

/// Drafts that the rule refuses and the engine keeps: ln of what each share of them says.
#[derive(Clone, Debug)]
pub(crate) struct Anyway([f64; ANYWAY]);

impl Default for Anyway {
    fn default() -> Self {
        Self([0.0; ANYWAY])
    }
}

impl Anyway {
    fn share(place: usize) -> f64 {
        ANYWAY_LEAST * (0.99 / ANYWAY_LEAST).powf(place as f64 / (ANYWAY - 1) as f64)
    }

    fn look(&mut self, kept: bool, [keep, width]: [f64; 2]) {
        for (place, log) in self.0.iter_mut().enumerate() {
            let own = keep + (1.0 - keep) * Self::share(place);
            let factor = Factor::of_acceptance(kept, own, [keep, width]);
            *log += factor.ratio.ln() - factor.price.ln_1p();
        }
    }

    /// ln of the mean over shares.
    pub(crate) fn log(&self) -> f64 {
        log_sum(self.0.iter().copied()) - (ANYWAY as f64).ln()
    }

    /// Returns the likeliest share, between what it lies, and ln of what it says. Sizes with a twentieth of the mean
    /// likelihood are in the range, and the neighbours of these.
    pub(crate) fn best(&self) -> (f64, [f64; 2], f64) {
        let least = self.log() - 20f64.ln();
        let fit = || (0..ANYWAY).filter(|place| self.0[*place] >= least);
        let (low, high) = (fit().min().unwrap_or(0), fit().max().unwrap_or(0));
        let place = (0..ANYWAY).max_by(|a, b| self.0[*a].total_cmp(&self.0[*b]));
        let place = place.unwrap_or(0);
        let rounded = |place: usize| (Self::share(place) * 1e4).round() / 1e4;
        let range = [low.saturating_sub(1), (high + 1).min(ANYWAY - 1)];
        (rounded(place), range.map(rounded), self.0[place])
    }
}

/// Cells of p's own order that outputs are counted in.
const CELLS: usize = 8;

/// Returns the share of an interval that lies in each cell.
fn spread([low, high]: [f64; 2]) -> [f64; CELLS] {
    let (own, each) = ((high - low).max(1e-300), 1.0 / CELLS as f64);
    std::array::from_fn(|place| {
        let from = place as f64 * each;
        common([low, high], [from, from + each]) / own
    })
}

/// Outcomes by rank: counts of the past, and ln of what they foretell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rank {
    cells: [f64; CELLS],
    pub log: f64,
}

impl Rank {
    fn look(&mut self, cell: [f64; 2]) {
        let total: f64 = self.cells.iter().sum();
        let each = 1.0 / CELLS as f64;
        let mut chance = 0.0;
        let parts = spread(cell);
        for (part, count) in parts.iter().zip(self.cells) {
            let height = (count + 16.0) / (total + 16.0 * CELLS as f64) / each;
            chance += part * height;
        }
        if chance > 0.0 {
            self.log += chance.ln();
        }
        for (count, part) in self.cells.iter_mut().zip(parts) {
            *count += part;
        }
    }
}

/// Pairs of tokens that should have come so often and never did, never come; and what is staked on that.
const NEVER: [(f64, f64); 2] = [(3.0, 0.7), (8.0, 0.95)];

/// A token of less probability makes no pair, nor more pairs than this.
pub(crate) const LIKELY: f64 = 0.02;
const MOST_PAIRS: usize = 1 << 18;

/// Pairs of tokens: how often each should have come, if it never did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    never: BTreeMap<(usize, usize), f64>,
    logs: [f64; NEVER.len()],
    /// How often each token came before another.
    before: BTreeMap<usize, f64>,
}

impl Pairs {
    fn look(&mut self, before: usize, next: &[(usize, f64)], token: usize) {
        let never = |token: usize| self.never.get(&(before, token)).copied().unwrap_or(0.0);
        for (log, (least, stake)) in self.logs.iter_mut().zip(NEVER) {
            let banned = next.iter().filter(|(token, _)| never(*token) >= least);
            let lost: f64 = banned.map(|(_, p)| p).sum();
            let gain = if never(token) >= least {
                0.0
            } else {
                1.0 / (1.0 - lost).max(1e-9)
            };
            if lost > 0.0 {
                *log += (1.0 - stake + stake * gain).ln();
            }
        }
        for (other, p) in next {
            let is_room = self.never.len() < MOST_PAIRS;
            match self.never.get_mut(&(before, *other)) {
                Some(sum) => *sum += p,
                None if is_room => drop(self.never.insert((before, *other), *p)),
                None => {}
            }
        }
        self.never.insert((before, token), f64::NEG_INFINITY);
        *self.before.entry(before).or_default() += 1.0;
    }

    /// Tells whether no pair was looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// ln of the mean of what is staked.
    pub(crate) fn log(&self) -> f64 {
        log_sum(self.logs.into_iter()) - (NEVER.len() as f64).ln()
    }

    /// Counts pairs that should have come and never did, and how often all of them should.
    pub(crate) fn banned(&self) -> (usize, f64) {
        let all = self.never.values().filter(|sum| **sum >= NEVER[0].0);
        all.fold((0, 0.0), |(count, expected), sum| {
            (count + 1, expected + sum)
        })
    }

    /// The entropy of tokens that came before another.
    pub(crate) fn entropy(&self) -> f64 {
        let all: f64 = self.before.values().sum();
        let shares = self.before.values().map(|count| count / all);
        -shares.map(|share| share * share.ln()).sum::<f64>()
    }
}

/// Stakes of a law of numbers.
const STAKES: [f64; 3] = [1.0, 0.5, 0.1];

/// What tokens that came before there gain.
const GAINS: [f64; 3] = [1.0, 8.0, 60.0];

/// Kinds: cells by id, by mass, and tokens that come again, of drafts and tokens; and coins.
pub(crate) const KINDS: [&str; 7] = [
    "drafts, with tokens in the row's order",
    "drafts, with tokens by falling probability",
    "drafts that come again",
    "tokens, in the row's order",
    "tokens, by falling probability",
    "tokens that come again",
    "coins of acceptance",
];

/// From how many steps on a kind of number was compared, and from what on it speaks, in nats.
const COMPARED: u64 = 20;
const SPEAKS: f64 = 3.0;

/// No set is shorter: sums over many tokens are known to about 1e-12.
const SHORTEST: f64 = 1.0 / 1024.0;

/// Text, round, place in it, kind.
type Place = (usize, usize, usize, usize);

/// Laws of one scope: rounds of a text, or texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// By place and kind: what the cells have in common, and how many more were in it than were not, up to three.
    common: Map<Place, ([f64; 2], u8)>,
    /// ln of capital by kind and stake; of tokens that come again by gain.
    pub logs: [[f64; STAKES.len()]; KINDS.len()],
    /// Of drafts, tokens and coins: how many were compared.
    pub steps: [u64; 3],
}

impl Scope {
    fn look(&mut self, place: (usize, usize, usize), number: &Number, again: Option<(bool, f64)>) {
        let (text, round, depth) = place;
        let first = match number.drawn {
            Drawn::Draft => 0,
            Drawn::Token => 3,
            Drawn::Coin => 6,
        };
        for (order, cell) in number.cells.iter().enumerate() {
            let Some([low, high]) = *cell else { continue };
            let kind = first + order;
            let key = (text, round, depth, kind);
            let known = self.common.get(&key).copied();
            let both = known.map(|([from, to], _)| [from.max(low), to.min(high)]);
            let left = both.filter(|[from, to]| to > from);
            let cell = known.map(|(cell, _)| cell);
            self.common.insert(
                key,
                match (known, left) {
                    (Some((_, times)), Some(left)) => (wide(left, cell), (times + 1).min(3)),
                    // A text that draws with numbers of its own says nothing of the others.
                    (Some((known, times @ 1..)), None) => (known, times - 1),
                    _ => (wide([low, high], cell), 0),
                },
            );
            let Some(known) = cell else { continue };
            if let Some(steps) = self.steps.get_mut(first / 3).filter(|_| order == 0) {
                *steps += 1;
            }
            let shared = common(known, [low, high]);
            let ratio = shared / ((high - low).max(1e-300) * (known[1] - known[0]).max(1e-300));
            if let Some(logs) = self.logs.get_mut(kind) {
                for (log, stake) in logs.iter_mut().zip(STAKES) {
                    *log += (1.0 + stake * (ratio - 1.0)).max(0.0).ln() - 1e-8;
                }
            }
        }
        if let (Some((hit, mass)), true) = (again, first < 6)
            && mass > 1e-6
            && mass < 1.0 - 1e-9
            && let Some(logs) = self.logs.get_mut(first + 2)
        {
            for (log, gain) in logs.iter_mut().zip(GAINS) {
                let own = if hit { 1.0 + gain } else { 1.0 };
                *log += (own / (1.0 + gain * mass)).ln() - 1e-8;
            }
        }
    }

    /// The largest: of each kind by itself, and of all of them together. Where drafts, coins and
    /// tokens were all compared, numbers of one kind alone that come again are a law of it, and no
    /// generator.
    pub(crate) fn largest(&self) -> (f64, &'static str) {
        let mut of_class = [0.0f64; 3];
        let mut kind = "";
        for (number, (logs, name)) in self.logs.iter().zip(KINDS).enumerate() {
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if let Some(own) = of_class.get_mut(number / 3)
                && most > *own
            {
                *own = most;
                kind = name;
            }
        }
        let compared = self.steps.iter().filter(|steps| **steps >= COMPARED);
        let speak = of_class.iter().filter(|log| **log > SPEAKS);
        match compared.count() < 2 || speak.count() > 1 {
            true => (of_class.iter().sum(), kind),
            false => (0.0, ""),
        }
    }

    /// ln of the mixture of all kinds: an e-value against fresh numbers.
    pub(crate) fn mixture(&self) -> f64 {
        let count = (KINDS.len() * STAKES.len()) as f64;
        log_sum(self.logs.iter().flatten().copied()) - count.ln()
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

/// Laws of what replaces a draft: as claimed, p without the draft, p, the residual, and what the target draws
/// with the draft's numbers, by [`Shared`](super::family::Shared).
pub(crate) const REPLACE: usize = 7;

/// Shares of steps at which another law replaces drafts.
pub(crate) const OTHERS: [f64; 5] = [1.0, 0.5, 0.15, 0.04, 0.01];

/// What replaced drafts, by its rank in p under a mixture of the claimed law and another: eight
/// cells by law and share, even if it is the law.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Replaced {
    cells: [[[f64; CELLS]; OTHERS.len()]; REPLACE],
}

/// Chi-square of 7 degrees of freedom is above this with probability 1e-4.
const UNEVEN: f64 = 29.878;

impl Replaced {
    /// `keeps` has what each law keeps the draft with, `cells` where its correction lies.
    fn look(&mut self, keeps: [f64; REPLACE], cells: [[f64; 2]; REPLACE]) {
        for (law, sums) in self.cells.iter_mut().enumerate() {
            for (share, sums) in OTHERS.iter().zip(sums) {
                let own = (1.0 - share) * (1.0 - keeps[0]);
                let other = share * (1.0 - keeps[law]);
                if own + other <= 0.0 {
                    continue;
                }
                let weight = other / (own + other);
                let mixed = |end: usize| (1.0 - weight) * cells[0][end] + weight * cells[law][end];
                let [low, high] = [mixed(0), mixed(1)];
                if high - low <= 1e-12 {
                    continue;
                }
                for (sum, part) in sums.iter_mut().zip(spread([low, high])) {
                    *sum += part;
                }
            }
        }
    }

    /// Tells whether they fall evenly under this law, one of [`REPLACE`], at this share.
    pub(crate) fn fits(&self, law: usize, share: f64) -> bool {
        let place = OTHERS.iter().position(|own| *own == share).unwrap_or(0);
        let cells = self.cells.get(law).and_then(|all| all.get(place));
        let Some(cells) = cells else { return true };
        let mean = cells.iter().sum::<f64>() / CELLS as f64;
        let misfits = cells.iter().map(|sum| (sum - mean).powi(2) / mean);
        mean < 5.0 || misfits.sum::<f64>() < UNEVEN
    }
}

/// A draft that was kept: where its coin lies and, by id and by mass, the number that drew it.
#[derive(Clone, Copy, Debug)]
struct KeptDraft {
    text: usize,
    depth: usize,
    coin: [f64; 2],
    draft: [Option<[f64; 2]>; 2],
}

impl Fact {
    fn kept_draft(&self) -> Option<KeptDraft> {
        let [_, _, keep, _] = self.acceptance.filter(|_| self.kept)?;
        Some(KeptDraft {
            text: self.text,
            depth: self.depth,
            coin: [0.0, keep],
            draft: self.draft_cells(),
        })
    }

    /// Returns where the coin of a draft lies, as far as it says.
    fn coin(&self) -> Option<[f64; 2]> {
        self.cells_of(Drawn::Coin)[0]
    }

    fn draft_cells(&self) -> [Option<[f64; 2]>; 2] {
        self.cells_of(Drawn::Draft)
    }

    fn cells_of(&self, drawn: Drawn) -> [Option<[f64; 2]>; 2] {
        let mut numbers = self.numbers.iter();
        let found = numbers.find(|number| number.drawn == drawn);
        found.map_or([None; 2], |number| number.cells)
    }
}

/// A number of a kept draft that is drawn with once more behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reuse {
    from: Drawn,
    pub to: Drawn,
    pub name: &'static str,
    pub words: &'static str,
}

/// What stands for a number: tokens by id or by falling mass, and the number itself or one minus it.
pub(crate) const ORDERS: [&str; 4] = [
    "by id",
    "by falling mass",
    "by id, one minus it",
    "by falling mass, one minus it",
];

/// Names of laws; which number draws again, and what; and words.
macro_rules! reused {
    ($($name:literal $from:ident draws $to:ident $words:literal;)+) => {
        [$(Reuse {
            from: Drawn::$from,
            to: Drawn::$to,
            name: $name,
            words: $words,
        }),+]
    };
}

pub(crate) const REUSED: [Reuse; 6] = reused! {
    "bonus-reuses-the-coin" Coin draws Token
        "the token behind a whole chain is drawn with the coin of the last draft";
    "bonus-reuses-the-drafts-number" Draft draws Token
        "the token behind a whole chain is drawn with the number of the last draft";
    "draft-reuses-the-coin" Coin draws Draft
        "a draft is drawn with the coin that kept the one before it";
    "draft-reuses-the-drafts-number" Draft draws Draft
        "a draft is drawn with the number of the one before it";
    "coin-reuses-the-coin" Coin draws Coin
        "a draft is tested with the coin that kept the one before it";
    "coin-is-an-earlier-drafts-number" Draft draws Coin
        "a draft is tested with the number that drew the one before it";
};

impl Reuse {
    /// ln of what the law says of a position over the claim, by [`ORDERS`]; none where it says
    /// nothing.
    fn look(&self, before: &KeptDraft, fact: &Fact) -> [Option<f64>; ORDERS.len()] {
        let from = match self.from {
            Drawn::Coin => [Some(before.coin); 2],
            _ => before.draft,
        };
        let to = match self.to {
            Drawn::Draft => fact.draft_cells(),
            Drawn::Token => fact.bonus.map_or([None; 2], |cells| cells.map(Some)),
            Drawn::Coin => [fact.coin(); 2],
        };
        std::array::from_fn(|order| {
            let (mut from, to) = (from[order % 2]?, to[order % 2]?);
            if order >= 2 {
                from = [1.0 - from[1], 1.0 - from[0]];
            }
            let [known, own] = [from, to].map(|[low, high]| high - low);
            let tells = known > 1e-9 && known < 1.0 && own > 0.0;
            tells.then(|| (common(from, to) / known / own).ln())
        })
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    pub replaced: Replaced,
    /// Of p/q, of p, and of p times e to the entropy of its row.
    pub thresholds: [Threshold; 3],
    pub anyway: Anyway,
    /// By rank: of outputs, and of drafts.
    pub ranks: [Rank; 2],
    /// ln of each of [`REUSED`], by [`ORDERS`].
    pub reused: [[f64; ORDERS.len()]; REUSED.len()],
    last: Option<KeptDraft>,
    pub rounds: Scope,
    pub texts: Scope,
    pub pairs: Pairs,
    pub claimed: f64,
    pub noise: [f64; NOISES.len()],
}

impl Sequence {
    /// ln of what each reuse of a number says of all of the log.
    pub(crate) fn reused(&self) -> impl Iterator<Item = f64> + Clone {
        self.reused.into_iter().flatten()
    }

    /// Those that draw what is named.
    pub(crate) fn reused_for(&self, drawn: Drawn) -> Vec<f64> {
        let all = REUSED.iter().zip(self.reused);
        all.filter(|(one, _)| one.to == drawn)
            .flat_map(|(_, logs)| logs)
            .collect()
    }

    pub(crate) fn look(&mut self, fact: &Fact) {
        self.claimed += fact.claimed;
        if let Some(found) = fact.acceptance {
            let [p, q, keep, width] = found;
            if let Some(cells) = fact.replaced {
                let [by_id, by_mass, clocks] = fact.shared;
                let keeps = [keep, p, 0.0, ratio(p, q), by_id, by_mass, clocks];
                self.replaced.look(keeps, cells);
            }
            let happened = (fact.kept, fact.within_block);
            if !fact.within_block {
                self.anyway.look(fact.kept, [keep, width]);
            }
            let [of_ratio, of_p, typical] = &mut self.thresholds;
            if q > 0.0 {
                of_ratio.look(p / q, happened, [keep, width]);
            }
            of_p.look(p, happened, [keep, width]);
            typical.look(p * fact.spread, happened, [keep, width]);
        }
        for (rank, cell) in self.ranks.iter_mut().zip([fact.output, fact.draft]) {
            if let Some(cell) = cell {
                rank.look(cell);
            }
        }
        if let Some(before) = self.last.take()
            && (before.text, before.depth + 1) == (fact.text, fact.depth)
        {
            for (logs, one) in self.reused.iter_mut().zip(REUSED) {
                for (log, more) in logs.iter_mut().zip(one.look(&before, fact)) {
                    *log += more.unwrap_or(0.0);
                }
            }
        }
        self.last = fact.kept_draft();
        for number in &fact.numbers {
            let depth = fact.depth + number.nth;
            let of_text = (fact.text, usize::MAX, depth);
            self.rounds.look(of_text, number, number.again[0]);
            let of_round = (usize::MAX, fact.round, depth);
            self.texts.look(of_round, number, number.again[1]);
        }
        if let Some(before) = fact.before {
            self.pairs.look(before, &fact.next, fact.token);
        }
        for (sum, log) in self.noise.iter_mut().zip(&fact.noise) {
            *sum += log;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_learnt() {
        let mut one = Threshold::default();
        for (value, kept) in [(0.2, false), (0.8, true)] {
            one.look(value, (kept, false), [0.5, 0.0]);
        }
        // By its logarithm the threshold lies below .2 with ln 10/ln 500, and below .8 with
        // ln 4/ln 50 of what is left.
        let first = (1.0 - 10f64.ln() / 500f64.ln()) / 0.5;
        let second = (4f64.ln() / 50f64.ln()) / 0.5;
        assert!((one.log - (first * second).ln()).abs() < 1e-12);
        let before = one.log;
        for (value, kept) in [(0.9, true), (0.1, false), (0.85, true)] {
            one.look(value, (kept, false), [0.5, 0.0]);
        }
        assert!((one.log - before - 3.0 * ((1.0 - MISSES) / 0.5).ln()).abs() < 1e-12);
        assert!(one.is_one() && one.refused == 0.2 && one.kept == 0.8);
        one.look(0.5, (true, false), [0.5, 0.0]);
        one.look(0.6, (false, false), [0.5, 0.0]);
        assert!(!one.is_one());
    }

    fn coin(low: f64, high: f64) -> Number {
        Number {
            drawn: Drawn::Coin,
            nth: 0,
            cells: [Some([low, high]), None],
            again: [None; 2],
            first: Vec::new(),
        }
    }

    /// Looks at positions, one behind the other.
    fn after(facts: &[&Fact]) -> Sequence {
        let mut sequence = Sequence::default();
        facts.iter().for_each(|fact| sequence.look(fact));
        sequence
    }

    #[test]
    fn a_number_drawn_with_twice_is_found_by_what_it_was() {
        let number = |drawn, cells: [[f64; 2]; 2]| Number {
            drawn,
            nth: 0,
            cells: cells.map(Some),
            again: [None; 2],
            first: Vec::new(),
        };
        let first = Fact {
            acceptance: Some([0.2, 0.5, 0.4, 0.0]),
            kept: true,
            numbers: vec![number(Drawn::Draft, [[0.25, 0.75], [0.0, 0.5]])],
            ..Fact::default()
        };
        let behind = Fact {
            depth: 1,
            bonus: Some([[0.2, 0.6], [0.7, 0.9]]),
            ..Fact::default()
        };
        let [of_coin, of_draft, others @ ..] = after(&[&first, &behind]).reused;
        // Of the coin's [0, .4) half lies in [.2, .6), which has .4 of all numbers.
        assert!((of_coin[0] - (0.5f64 / 0.4).ln()).abs() < 1e-12);
        assert_eq!(of_coin[1], f64::NEG_INFINITY);
        // One minus it is in [.6, 1), of which [.7, .9) is a half.
        assert!((of_coin[3] - (0.5f64 / 0.2).ln()).abs() < 1e-12);
        // Of the draft's [.25, .75) .35 lies in [.2, .6); by mass it had [0, .5).
        assert!((of_draft[0] - (0.7f64 / 0.4).ln()).abs() < 1e-12);
        assert_eq!(of_draft[1], f64::NEG_INFINITY);
        assert!(others.iter().flatten().all(|log| *log == 0.0));
        // A second draft and its coin.
        let second = Fact {
            depth: 1,
            numbers: vec![
                number(Drawn::Draft, [[0.0, 0.3], [0.5, 0.8]]),
                coin(0.1, 1.0),
            ],
            ..Fact::default()
        };
        let [.., by_coin, by_draft, coins, earlier] = after(&[&first, &second]).reused;
        assert!((by_coin[0] - (0.75f64 / 0.3).ln()).abs() < 1e-12);
        assert!((by_draft[0] - (0.1f64 / 0.3).ln()).abs() < 1e-12);
        assert_eq!(by_draft[1], f64::NEG_INFINITY);
        assert!((coins[0] - (0.75f64 / 0.9).ln()).abs() < 1e-12);
        assert!((earlier[0] - (1.0f64 / 0.9).ln()).abs() < 1e-12);
        // What stands in another text, or behind a draft that was refused, says nothing.
        let other = Fact {
            text: 1,
            ..behind.clone()
        };
        let refused = Fact {
            kept: false,
            ..first.clone()
        };
        let all = after(&[&first, &other, &refused, &behind]);
        assert!(all.reused().all(|log| log == 0.0));
    }

    #[test]
    fn cells_that_come_again_win_and_others_lose() {
        let mut scope = Scope::default();
        scope.look((0, 0, 0), &coin(0.0, 0.5), None);
        scope.look((0, 0, 0), &coin(0.25, 1.0), None);
        // A third of [.25, 1) is in [0, .5): .25/(.75 .5).
        assert!((scope.logs[6][0] - (0.25f64 / 0.375).ln()).abs() < 1e-6);
        scope.look((0, 0, 0), &coin(0.0, 0.3), None);
        let after = (0.25f64 / 0.375).ln() + (0.05f64 / (0.3 * 0.25)).ln();
        assert!((scope.logs[6][0] - after).abs() < 1e-6);
        // Another place has numbers of its own.
        scope.look((0, 0, 1), &coin(0.5, 1.0), None);
        assert_eq!(scope.steps, [0, 0, 2]);
    }
}
