//! What an engine does at a position with one draft: as a rule claims, or with a known bug.
//!
//! A position is a row p of the target, a row q of the draft, for block verification the
//! probability `reach` with which the prefix drafted so far is accepted, and for the rule that
//! carries the probability `stands` that a draft stands there. An [`Engine`] says how
//! it differs from the rule; on a position it becomes [`Laws`]: the law of the drafted token,
//! the probability that a token is kept, the law of what replaces it, and so the law of what
//! comes out.

use crate::audit::model::rule::Rule;
use specgap_core::rule::{Drafts, normalise};
use specgap_sampling::Cut;

/// The rows of a position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position<'a> {
    /// p, as it is claimed to be sampled.
    pub p: &'a [f64],
    /// q, likewise.
    pub q: &'a [f64],
    /// The last entry of both stands for all tokens that the rows do not list.
    pub rest: bool,
    /// Block verification: P(the prefix is accepted | it was drafted).
    pub reach: f64,
    /// The rule that carries: P(a draft stands here | the text so far).
    pub stands: f64,
}

impl<'a> Position<'a> {
    /// A position with rows that list all tokens, where a round begins.
    pub(crate) const fn new(p: &'a [f64], q: &'a [f64]) -> Self {
        Self {
            p,
            q,
            rest: false,
            reach: 1.0,
            stands: 1.0,
        }
    }

    /// The entries that are tokens.
    fn tokens(&self) -> usize {
        self.p.len() - usize::from(self.rest)
    }

    /// Tells whether an entry stands for unlisted tokens.
    pub(crate) fn is_rest(&self, place: usize) -> bool {
        self.rest && place + 1 == self.p.len()
    }

    pub(crate) fn likeliest(&self, row: &[f64]) -> usize {
        let mut best = 0;
        for (place, x) in row.iter().enumerate().take(self.tokens()) {
            if *x > row[best] {
                best = place;
            }
        }
        best
    }
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// None.
    Same,
    /// All mass on the likeliest token.
    Argmax,
    /// Its k likeliest tokens.
    Top(usize),
    /// The fewest likeliest tokens that hold this much.
    TopP(f64),
    /// Of p: w p + (1 - w) q.
    Mixed(f64),
    /// Another temperature, that many times the claimed one.
    Temperature(f64),
    /// Tokens of at least this probability.
    AtLeast(f64),
}

/// How drafts are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keeps {
    /// As the rule says.
    Rule,
    /// min(1, p/q).
    Ratio,
    /// p(x).
    Target,
    /// The rule's probability over this, at most 1.
    Over(f64),
    /// Always.
    Always,
    /// If x is the target's likeliest token.
    IfLikeliest,
}

/// What replaces a rejected draft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Corrects {
    /// As the rule says.
    Rule,
    /// (p - q)+.
    Residual,
    /// p without the draft.
    OffDraft,
    /// p.
    Target,
    /// q.
    Draft,
    /// (p - q)+, with the exponential clocks that drew the draft from q.
    OwnNoise,
}

/// What an engine does with the number that the rule `carried` carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Carries {
    /// As the rule says.
    Rule,
    /// It takes a draft to stand everywhere.
    Nothing,
    /// As the rule says, but behind a whole chain it draws from all of p.
    ButBehindChains,
}

/// An engine, by what it does otherwise than the rule says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Engine {
    /// Of p, wherever it is used.
    pub target: Change,
    /// Of q, where drafts are drawn.
    pub draft: Change,
    /// Of q, where drafts are tested.
    pub ratio: Change,
    pub keeps: Keeps,
    pub corrects: Corrects,
    /// Drafts are drawn, for rules that claim the likeliest token.
    pub draws: bool,
    /// The likeliest token is drafted, whatever the rule claims.
    pub likeliest: bool,
    /// A draft below this probability is dropped once it is drawn, and p asked instead.
    pub drops: Option<f64>,
    /// Several drafts for one position: drawn as this rule draws them.
    pub draws_as: Option<Rule>,
    /// Several drafts for one position: verified as this rule verifies them.
    pub tests_as: Option<Rule>,
    /// Levels run inside a loop over strata.
    pub levels_inside: bool,
    pub carries: Carries,
}

impl Engine {
    /// As the rule says.
    pub(crate) const HONEST: Self = Self {
        target: Change::Same,
        draft: Change::Same,
        ratio: Change::Same,
        keeps: Keeps::Rule,
        corrects: Corrects::Rule,
        draws: false,
        likeliest: false,
        drops: None,
        draws_as: None,
        tests_as: None,
        levels_inside: false,
        carries: Carries::Rule,
    };

    /// Tells whether its drafts have the claimed law.
    pub(crate) fn draws_as_claimed(&self) -> bool {
        let drawn = (self.draft, self.draws_as, self.draws, self.likeliest);
        drawn == (Change::Same, None, false, false)
    }

    /// Tells whether its drafts are wanted, and offered, as claimed.
    pub(crate) fn tests_as_claimed(&self) -> bool {
        let tested = (self.target, self.ratio, self.tests_as, self.levels_inside);
        tested == (Change::Same, Change::Same, None, false) && self.keeps == Keeps::Rule
    }
}

/// An engine, by what it does otherwise than its rule says.
macro_rules! engine {
    ($($field:ident: $value:expr),*) => {{
        let mut engine = $crate::audit::model::engine::Engine::HONEST;
        $(engine.$field = $value;)*
        engine
    }};
}
pub(crate) use engine;

/// What an engine does at a position.
#[derive(Clone, Debug)]
pub(crate) struct Laws {
    /// The law of the draft where there is one; `None` where nothing is claimed.
    pub draft: Option<Vec<f64>>,
    /// P(the draft that was drawn is dropped).
    pub dropped: f64,
    /// The law of a token without a draft.
    pub bonus: Vec<f64>,
    wanted: Vec<f64>,
    offered: Vec<f64>,
    keeps: Keeping,
    /// The law of a correction, or what is divided by what is left without the draft.
    correction: Vec<f64>,
    off_draft: bool,
}

#[derive(Clone, Copy, Debug)]
enum Keeping {
    /// min(1, wanted/offered), and with a block's h.
    Ratio {
        block: Option<f64>,
    },
    /// min(1, wanted/A).
    Over(f64),
    Always,
    Only(usize),
}

impl Laws {
    /// The laws of an engine that claims a rule, at a position. O(V log V).
    pub(crate) fn new(rule: Rule, engine: &Engine, at: &Position<'_>) -> Self {
        let p = change(at.p, engine.target, at);
        let tested = change(at.q, engine.ratio, at);
        let block = rule == Rule::BLOCK;
        let carries = rule == Rule::CARRIED && engine.carries != Carries::Nothing;
        let stands = if carries { at.stands } else { 1.0 };
        let reach = if block { at.reach } else { 1.0 };
        // What may come of drafts: q, or as much of it as a draft stands.
        let offered: Vec<f64> = tested.iter().map(|q| stands * q).collect();
        let wanted = p.iter().map(|x| x * reach);
        let over = wanted.clone().zip(&offered);
        let over: Vec<f64> = over.map(|(p, q)| (p - q).max(0.0)).collect();
        let bonus = match engine.carries {
            Carries::Rule if rule == Rule::CARRIED => or_else(over.clone(), &p),
            _ => p.clone(),
        };
        // Of one draft every rule that tests it makes rejection sampling.
        let base = if block {
            let mass: f64 = over.iter().sum();
            let spent = mass + (1.0 - at.reach);
            let stop = if spent > 0.0 { mass / spent } else { 1.0 };
            Keeping::Ratio { block: Some(stop) }
        } else if rule.tests_drafts() {
            Keeping::Ratio { block: None }
        } else {
            Keeping::Over(rule.over())
        };
        let (keeps, scale) = match engine.keeps {
            Keeps::Rule => (base, 1.0),
            Keeps::Ratio => (Keeping::Ratio { block: None }, 1.0),
            Keeps::Target => (Keeping::Over(1.0), 1.0),
            Keeps::Over(factor) => (base, factor),
            Keeps::Always => (Keeping::Always, 1.0),
            Keeps::IfLikeliest => (Keeping::Only(at.likeliest(&p)), 1.0),
        };
        // min(1, keep/scale) is keep with `wanted` over scale.
        let wanted = wanted.map(|x| x / scale).collect();
        let corrects = match engine.corrects {
            Corrects::Rule if rule.tests_drafts() => Corrects::Residual,
            Corrects::Rule => Corrects::OffDraft,
            other => other,
        };
        let off_draft = corrects == Corrects::OffDraft;
        let correction = match corrects {
            Corrects::Residual => over,
            Corrects::OwnNoise => own_noise(&over, &tested),
            Corrects::OffDraft | Corrects::Target | Corrects::Rule => p.clone(),
            Corrects::Draft => tested.clone(),
        };
        // If nothing is left, nothing is ever rejected, up to rounding.
        let correction = or_else(correction, &p);
        let mut laws = Self {
            draft: None,
            dropped: 0.0,
            bonus,
            wanted,
            offered,
            keeps,
            correction,
            off_draft,
        };
        laws.draft = laws.drafted(rule, engine, at);
        if let Some(least) = engine.drops {
            laws.dropped = at.q.iter().filter(|q| **q < least).sum();
        }
        laws
    }

    fn drafted(&self, rule: Rule, engine: &Engine, at: &Position<'_>) -> Option<Vec<f64>> {
        let sampled = match rule.drafts() {
            Drafts::Drawn(_) => true,
            Drafts::Likeliest => engine.draws,
            // What is claimed of nothing; a simulated engine needs something.
            Drafts::Any if engine.likeliest => false,
            Drafts::Any if engine.draws => true,
            Drafts::Any => return None,
        };
        let shape = match engine.draft {
            Change::Same if !sampled || engine.likeliest => Change::Argmax,
            other => other,
        };
        let mut law = change(at.q, shape, at);
        if let Some(least) = engine.drops {
            law = change(at.q, Change::AtLeast(least), at);
        }
        if rule == Rule::BLOCK && at.reach < 1.0 {
            // That the prefix before it was accepted says something of the draft behind it.
            for (place, x) in law.iter_mut().enumerate() {
                let ratio = self.ratio(place);
                let stop = match self.keeps {
                    Keeping::Ratio { block: Some(stop) } => stop,
                    _ => 0.0,
                };
                *x *= ratio + (1.0 - ratio) * stop;
            }
            normalise(&mut law);
        }
        Some(law)
    }

    /// min(1, wanted/offered).
    pub(crate) fn ratio(&self, place: usize) -> f64 {
        let (wanted, offered) = (get(&self.wanted, place), get(&self.offered, place));
        if wanted <= 0.0 {
            0.0
        } else if wanted >= offered {
            1.0
        } else {
            wanted / offered
        }
    }

    /// P(a drafted token is kept).
    pub(crate) fn keep(&self, place: usize) -> f64 {
        match self.keeps {
            Keeping::Ratio { block } => {
                let ratio = self.ratio(place);
                match block {
                    Some(stop) if ratio > 0.0 => ratio / (ratio + (1.0 - ratio) * stop),
                    _ => ratio,
                }
            }
            Keeping::Over(factor) => (get(&self.wanted, place) / factor).min(1.0),
            Keeping::Always => 1.0,
            Keeping::Only(token) => f64::from(u8::from(token == place)),
        }
    }

    /// The law of what replaces a rejected draft, where what the rows do not list is one
    /// token.
    pub(crate) fn correction(&self, draft: usize) -> Vec<f64> {
        let mut law = self.correction.clone();
        if self.off_draft {
            if let Some(mass) = law.get_mut(draft) {
                *mass = 0.0;
            }
            return or_else(law, &self.bonus);
        }
        law
    }

    /// The law of what comes out given the text alone, if a draft stands with this probability.
    pub(crate) fn of_text(&self, stands: f64) -> Option<Vec<f64>> {
        let mut law = self.output()?;
        for (out, alone) in law.iter_mut().zip(&self.bonus) {
            *out = stands * *out + (1.0 - stands) * alone;
        }
        Some(law)
    }

    /// The law of what comes out; `None` where nothing is known of the draft.
    pub(crate) fn output(&self) -> Option<Vec<f64>> {
        let draft = self.draft.as_ref()?;
        let kept = (draft.iter().enumerate()).map(|(place, mass)| mass * self.keep(place));
        let mut kept: Vec<f64> = kept.collect();
        // Rejected mass, and for what leaves the draft out also over what is left without it.
        let (mut rejected, mut weighted) = (0.0, 0.0);
        let mut own = vec![0.0; if self.off_draft { draft.len() } else { 0 }];
        for (place, (mass, kept)) in draft.iter().zip(&kept).enumerate() {
            let lost = mass - kept;
            rejected += lost;
            if self.off_draft {
                let left = 1.0 - self.correction[place];
                let share = if left > 0.0 { lost / left } else { 0.0 };
                weighted += share;
                own[place] = share;
            }
        }
        for (place, out) in kept.iter_mut().enumerate() {
            let mass = self.correction[place];
            *out += match self.off_draft {
                true => mass * (weighted - own[place]).max(0.0),
                false => mass * rejected,
            };
            *out = (1.0 - self.dropped) * *out + self.dropped * self.bonus[place];
        }
        normalise(&mut kept);
        Some(kept)
    }
}

/// The mass of a place; none outside of the row.
#[inline]
pub(crate) fn get(row: &[f64], place: usize) -> f64 {
    row.get(place).copied().unwrap_or(0.0)
}

/// A row, normalised; another one if nothing is left of it.
pub(crate) fn or_else(mut row: Vec<f64>, other: &[f64]) -> Vec<f64> {
    match normalise(&mut row) {
        true => row,
        false => other.to_vec(),
    }
}

/// Leaves what a cut keeps of a row. Where what is not listed would be needed, nothing is cut.
fn cut(row: &mut [f64], cut: Cut, at: &Position<'_>) {
    let listed = row.get(..at.tokens()).unwrap_or(row);
    let falling = |a: &f64, b: &f64| b.total_cmp(a);
    // No token below this is kept.
    let least = match cut {
        Cut::TopK(count) if count < listed.len() => {
            let mut all = listed.to_vec();
            let (_, least, _) = all.select_nth_unstable_by(count.saturating_sub(1), falling);
            *least
        }
        // All such tokens hold less than is left out.
        Cut::TopP(held) => (1.0 - held) / row.len().max(1) as f64,
        _ => 0.0,
    };
    let mut places: Vec<usize> = (0..listed.len()).filter(|&x| listed[x] >= least).collect();
    places.sort_by(|&a, &b| falling(&listed[a], &listed[b]));
    let others = (row.iter().enumerate()).filter(|&(x, mass)| x >= listed.len() || *mass < least);
    let beyond = others.map(|one| one.1).sum();
    if let Some(kept) = cut.keep(places.len(), beyond, |rank| listed[places[rank]]) {
        let kept: Vec<_> = places.drain(..kept).map(|x| (x, row[x])).collect();
        row.fill(0.0);
        kept.into_iter().for_each(|(x, mass)| row[x] = mass);
    }
}

/// A changed row, normalised.
pub(crate) fn change(row: &[f64], change: Change, at: &Position<'_>) -> Vec<f64> {
    let mut out = row.to_vec();
    match change {
        Change::Same => return out,
        Change::Argmax => {
            out.fill(0.0);
            if let Some(one) = out.get_mut(at.likeliest(row)) {
                *one = 1.0;
            }
            return out;
        }
        Change::Top(count) => cut(&mut out, Cut::TopK(count), at),
        Change::TopP(held) => cut(&mut out, Cut::TopP(held), at),
        Change::Mixed(own) => {
            for (x, q) in out.iter_mut().zip(at.q) {
                *x = own * *x + (1.0 - own) * q;
            }
        }
        Change::Temperature(factor) => {
            for x in out.iter_mut().filter(|x| **x > 0.0) {
                *x = (x.ln() / factor).exp();
            }
        }
        Change::AtLeast(least) => {
            let light = out.iter_mut().filter(|x| **x < least);
            light.for_each(|x| *x = 0.0);
        }
    }
    or_else(out, row)
}

/// The law of a draw from `residual` by the same exponential clocks that drew x from q, given
/// that x was rejected (so that the residual of x is 0).
///
/// # Formula
/// Clock i rings at E_i/q_i, with E_i ~ Exp(1); x is the first, at time v ~ Exp(1), which is
/// independent of x. The draw from the residual is the smallest E_i/res_i. Given v, E_i - q_i v
/// is again Exp(1), so that clock i of the second draw has not rung at u with probability
/// exp(-(res_i u - q_i v)+). With u = v s and F(s) = sum of (res_i s - q_i)+, the mean over v
/// of P(y = i) is
///
/// ```text
/// res_i times the integral of ds/(1 + F(s))^2 over s > q_i/res_i
/// ```
///
/// F is a line A s - B between two ratios, where the integral is the difference of
/// -1/(A (1 + A s - B)).
pub(crate) fn own_noise(residual: &[f64], q: &[f64]) -> Vec<f64> {
    let mut scaled = residual.to_vec();
    normalise(&mut scaled);
    race(&scaled, q, f64::INFINITY)
}

/// The same integral to `until` at most, of p in place of the residual: the law of a draw from p by the
/// clocks that drew x from q, where it is another than x, if `until` is q(x)/p(x).
pub(crate) fn race(p: &[f64], q: &[f64], until: f64) -> Vec<f64> {
    let mut law = vec![0.0; p.len()];
    let clocks = (0..).zip(p).zip(q).filter(|((_, mass), _)| **mass > 0.0);
    let clocks = clocks.map(|((place, &mass), &q)| (q / mass, place, mass, q));
    let clocks = clocks.filter(|(start, ..)| *start < until);
    let mut order: Vec<(f64, usize, f64, f64)> = clocks.collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut slope, mut offset) = (0.0, 0.0);
    let mut pieces = Vec::with_capacity(order.len());
    for (index, &(start, _, mass, q)) in order.iter().enumerate() {
        slope += mass;
        offset += q;
        let below = |s: f64| 1.0 / (slope * (1.0 + (slope * s - offset).max(0.0)));
        let end = order.get(index + 1).map_or(until, |&(end, ..)| end);
        let end = if end.is_finite() { below(end) } else { 0.0 };
        pieces.push((below(start) - end).max(0.0));
    }
    let mut behind = 0.0;
    for (&(_, place, mass, _), piece) in order.iter().zip(&pieces).rev() {
        behind += piece;
        law[place] = mass * behind;
    }
    law
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    const P: [f64; 5] = [0.4, 0.3, 0.2, 0.1, 0.0];
    const Q: [f64; 5] = [0.1, 0.15, 0.5, 0.05, 0.2];

    fn at(reach: f64) -> Position<'static> {
        Position {
            reach,
            ..Position::new(&P, &Q)
        }
    }

    #[test]
    fn honest_engines_put_out_p() {
        let draws = engine!(draws: true);
        for (rule, engine) in [
            (Rule::TOKEN, Engine::HONEST),
            (Rule::ONE_HOT, Engine::HONEST),
            (Rule::ONE_HOT, draws),
            (Rule::EXACT_MATCH, draws),
            (Rule::threshold(1.0).unwrap(), Engine::HONEST),
        ] {
            let out = Laws::new(rule, &engine, &at(1.0)).output().unwrap();
            for (out, p) in out.iter().zip(P) {
                assert!((out - p).abs() < 1e-15, "{rule} {out} {p}");
            }
        }
        // Given that a prefix was accepted, a block's next token follows p too.
        for reach in [1.0, 0.7, 0.2] {
            let laws = Laws::new(Rule::BLOCK, &Engine::HONEST, &at(reach));
            for (out, p) in laws.output().unwrap().iter().zip(P) {
                assert!((out - p).abs() < 1e-15, "{reach} {out} {p}");
            }
        }
    }

    #[test]
    fn a_block_reaches_a_token_as_often_as_its_definition_says() {
        // P(x drafted and prefix + x accepted | prefix accepted) = q min(1, r p/q)/r.
        let reach = 0.4;
        let laws = Laws::new(Rule::BLOCK, &Engine::HONEST, &at(reach));
        let draft = laws.draft.clone().unwrap();
        for place in 0..5 {
            let expected = (reach * P[place]).min(Q[place]) / reach;
            assert!((draft[place] * laws.keep(place) - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn the_law_of_reused_noise_is_what_clocks_do() {
        let residual: Vec<f64> = P.iter().zip(Q).map(|(p, q)| (p - q).max(0.0)).collect();
        let law = own_noise(&residual, &Q);
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{law:?}");
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let (mut counts, mut rejected) = ([0u32; 5], 0u32);
        for _ in 0..400_000 {
            let clocks: Vec<f64> = (0..5).map(|_| -random.random::<f64>().ln()).collect();
            let first = |row: &[f64]| {
                let rings = |i: usize| clocks[i] / row[i];
                let all = (0..5).filter(|&i| row[i] > 0.0);
                all.min_by(|&a, &b| rings(a).total_cmp(&rings(b))).unwrap()
            };
            let x = first(&Q);
            if random.random::<f64>() >= P[x] / Q[x] {
                rejected += 1;
                counts[first(&residual)] += 1;
            }
        }
        for (place, law) in law.iter().enumerate() {
            let seen = f64::from(counts[place]) / f64::from(rejected);
            let error = (law * (1.0 - law) / f64::from(rejected)).sqrt();
            assert!((seen - law).abs() <= 5.0 * error, "{place} {seen} {law}");
        }
    }

    fn near(found: &[f64], expected: &[f64]) -> bool {
        let pairs = found.iter().zip(expected);
        found.len() == expected.len() && pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-14)
    }

    #[test]
    fn rows_are_changed_as_said() {
        use Change::{Argmax, AtLeast, Same, Temperature, Top, TopP};
        let position = |rest| Position { rest, ..at(1.0) };
        let of = |row: &[f64], how, rest| change(row, how, &position(rest));
        let quarters = [0.25; 4];
        let mostly_rest = [0.1, 0.2, 0.1, 0.1, 0.5];
        let top_4 = [2. / 19., 3. / 19., 10. / 19., 0., 4. / 19.];
        let at_least = [0., 3. / 17., 10. / 17., 0., 4. / 17.];
        type Case<'a> = (&'a [f64], Change, bool, &'a [f64]);
        let cases: [Case<'_>; 18] = [
            (&Q, Same, true, &Q),
            (&Q, Argmax, false, &[0., 0., 1., 0., 0.]),
            // What is not listed is no token.
            (&mostly_rest, Argmax, true, &[0., 1., 0., 0., 0.]),
            (&mostly_rest, Argmax, false, &[0., 0., 0., 0., 1.]),
            (&Q, Top(1), false, &[0., 0., 1., 0., 0.]),
            (&Q, Top(2), false, &[0., 0., 5. / 7., 0., 2. / 7.]),
            (&Q, Top(4), false, &top_4),
            (&Q, Top(5), false, &Q),
            (&Q, Top(50), false, &Q),
            (&Q, Top(2), true, &[0., 3. / 13., 10. / 13., 0., 0.]),
            (&Q, Top(50), true, &[0.125, 0.1875, 0.625, 0.0625, 0.]),
            // Of equal tokens the first; where what is not listed would be needed, all.
            (&quarters, Top(2), false, &[0.5, 0.5, 0., 0.]),
            (&Q, TopP(0.8), false, &at_least),
            (&Q, TopP(0.9), true, &Q),
            (&[0.25, 0.75, 0.], Temperature(0.5), false, &[0.1, 0.9, 0.]),
            (&[0.1, 0.9, 0.], Temperature(2.), false, &[0.25, 0.75, 0.]),
            (&Q, AtLeast(0.15), false, &at_least),
            // Nothing would be left.
            (&Q, AtLeast(0.9), false, &Q),
        ];
        for (row, how, rest, expected) in cases {
            let found = of(row, how, rest);
            assert!(near(&found, expected), "{how:?} {rest}: {found:?}");
        }
        let mut none = [0.0, 0.0];
        assert!(!normalise(&mut none) && none == [0.0, 0.0]);
        let mut endless = [1.0, f64::INFINITY];
        assert!(!normalise(&mut endless) && endless[0] == 1.0);
        let mut row = [1.0, 3.0];
        assert!(normalise(&mut row) && row == [0.25, 0.75]);
    }

    #[test]
    fn the_likeliest_is_a_listed_token_and_of_equals_the_first() {
        let row = [0.1, 0.3, 0.3, 0.2, 0.9];
        let with = |rest| Position { rest, ..at(1.0) };
        assert_eq!(with(false).likeliest(&row), 4);
        assert_eq!(with(true).likeliest(&row), 1);
        assert_eq!(with(false).likeliest(&[0.0; 5]), 0);
        let is_rest = |rest| [0, 3, 4, 5].map(|place| with(rest).is_rest(place));
        assert_eq!(is_rest(true), [false, false, true, false]);
        assert_eq!(is_rest(false), [false; 4]);
    }

    /// The law of the draft, P(each is kept), what replaces token 2, and P(it is dropped).
    #[test]
    fn what_engines_do_with_one_draft() {
        let honest = Engine::HONEST;
        let keeps = |keeps| engine!(keeps: keeps);
        let corrects = |corrects| engine!(corrects: corrects);
        let left = [0.6, 0.3, 0., 0.1, 0.];
        let off = [0.5, 0.375, 0., 0.125, 0.];
        let ratio = [1., 1., 0.4, 1., 0.];
        let (one, two) = ([1., 0., 0., 0., 0.], [0., 0., 1., 0., 0.]);
        let (drawn, likeliest) = (Some(Q), Some(two));
        let (argmax, draws) = (engine!(likeliest: true), engine!(draws: true));
        let top = engine!(draft: Change::Top(2));
        let of_top = Some([0., 0., 5. / 7., 0., 2. / 7.]);
        let drops = engine!(drops: Some(0.15));
        let of_kept = Some([0., 3. / 17., 10. / 17., 0., 4. / 17.]);
        let tests_top = engine!(ratio: Change::Top(2));
        let by_top = [1., 1., 0.28, 1., 0.];
        let (over, all) = (keeps(Keeps::Over(0.8)), keeps(Keeps::Always));
        let eased = [1., 1., 0.5, 1., 0.];
        let [by_p, best] = [Keeps::Target, Keeps::IfLikeliest].map(keeps);
        let by_ratio = keeps(Keeps::Ratio);
        let target = engine!(target: Change::Argmax);
        let [from_q, from_p] = [Corrects::Draft, Corrects::Target].map(corrects);
        let off_draft = corrects(Corrects::OffDraft);
        let residual = corrects(Corrects::Residual);
        let [token, one_hot, exact] = [Rule::TOKEN, Rule::ONE_HOT, Rule::EXACT_MATCH];
        let half = Rule::threshold(0.3).unwrap();
        let of_half = [1., 1., 5. / 6., 5. / 12., 0.];
        type Case = (Rule, Engine, Option<[f64; 5]>, [f64; 5], [f64; 5]);
        let cases: [Case; 23] = [
            (token, honest, drawn, ratio, left),
            (Rule::RRS, honest, drawn, ratio, left),
            (Rule::BLOCK, honest, drawn, ratio, left),
            (token, argmax, likeliest, ratio, left),
            (token, top, of_top, ratio, left),
            (token, drops, of_kept, ratio, left),
            (token, over, drawn, eased, left),
            (token, all, drawn, [1.; 5], left),
            (token, best, drawn, one, left),
            (token, by_p, drawn, P, left),
            (token, tests_top, drawn, by_top, off),
            (token, target, drawn, one, one),
            (token, from_q, drawn, ratio, Q),
            (token, from_p, drawn, ratio, P),
            (token, off_draft, drawn, ratio, off),
            (one_hot, honest, likeliest, P, off),
            (one_hot, draws, drawn, P, off),
            (one_hot, by_ratio, likeliest, ratio, off),
            (one_hot, residual, likeliest, P, left),
            (exact, honest, None, P, off),
            (exact, argmax, likeliest, P, off),
            (exact, draws, drawn, P, off),
            (half, over, likeliest, of_half, off),
        ];
        for (rule, engine, draft, keep, correction) in cases {
            let laws = Laws::new(rule, &engine, &at(1.0));
            let known = [laws.draft.is_some(), laws.output().is_some()];
            assert_eq!(known, [draft.is_some(); 2], "{rule} {engine:?}");
            if let (Some(found), Some(draft)) = (&laws.draft, draft) {
                assert!(near(found, &draft), "{rule} {engine:?}: {found:?}");
            }
            let kept = [0, 1, 2, 3, 4].map(|place| laws.keep(place));
            assert!(near(&kept, &keep), "{rule} {engine:?}: {kept:?}");
            let found = laws.correction(2);
            assert!(near(&found, &correction), "{rule} {engine:?}: {found:?}");
            let dropped = if engine == drops { 0.15 } else { 0.0 };
            assert!((laws.dropped - dropped).abs() < 1e-15, "{rule} {engine:?}");
        }
        // A block whose prefix is accepted with 1/2: min(1, p/(2 q)) is the ratio, and where a
        // token is not reached the block stops there with h = 0.1/(0.1 + 0.5).
        let laws = Laws::new(Rule::BLOCK, &honest, &at(0.5));
        let kept = [0, 1, 2, 3, 4].map(|place| laws.keep(place));
        assert!(near(&kept, &[1., 1., 0.6, 1., 0.]), "{kept:?}");
        let ratios = [0, 1, 2, 3, 4].map(|place| laws.ratio(place));
        assert!(near(&ratios, &[1., 1., 0.2, 1., 0.]), "{ratios:?}");
        let draft = laws.draft.clone().unwrap();
        let expected = [0.2, 0.3, 1. / 3., 0.1, 1. / 15.];
        assert!(near(&draft, &expected), "{draft:?}");
        assert!(near(&laws.correction(2), &one));
        // What neither row has is never kept.
        let absent = Position {
            p: &[1.0, 0.0],
            q: &[1.0, 0.0],
            ..at(1.0)
        };
        assert_eq!(Laws::new(Rule::TOKEN, &honest, &absent).ratio(1), 0.0);
        // Equal rows: everything is kept, and nothing is left.
        let same = Position { q: &P, ..at(1.0) };
        let laws = Laws::new(Rule::BLOCK, &honest, &same);
        assert_eq!([0, 1, 2, 3].map(|place| laws.keep(place)), [1.0; 4]);
        assert!(near(&laws.correction(0), &P));
        // All of p on the draft: p is what stands in for nothing.
        let alone = Position {
            p: &[1.0, 0.0],
            q: &[0.5, 0.5],
            ..at(1.0)
        };
        let laws = Laws::new(Rule::ONE_HOT, &honest, &alone);
        assert_eq!(laws.correction(0), [1.0, 0.0]);
    }

    /// What comes out, summed over all that can happen, for all bugs.
    #[test]
    fn outputs_are_sums_over_drafts() {
        let mut known = 0;
        for rule in [
            Rule::TOKEN,
            Rule::BLOCK,
            Rule::ONE_HOT,
            Rule::EXACT_MATCH,
            Rule::threshold(0.6).unwrap(),
        ] {
            for bug in crate::audit::model::bugs::BUGS {
                for reach in [1.0, 0.4] {
                    let laws = Laws::new(rule, &bug.engine, &at(reach));
                    let Some(out) = laws.output() else { continue };
                    let draft = laws.draft.clone().unwrap();
                    let mut sum = [0.0; 5];
                    for x in 0..5 {
                        let keep = laws.keep(x);
                        sum[x] += draft[x] * keep;
                        for (sum, mass) in sum.iter_mut().zip(laws.correction(x)) {
                            *sum += draft[x] * (1.0 - keep) * mass;
                        }
                    }
                    for (sum, bonus) in sum.iter_mut().zip(&laws.bonus) {
                        *sum = (1.0 - laws.dropped) * *sum + laws.dropped * bonus;
                    }
                    assert!(near(&out, &sum), "{rule} {}: {out:?} {sum:?}", bug.name);
                    known += 1;
                }
            }
        }
        assert!(known > 150, "{known}");
    }

    /// No row has it: no engine keeps it unless it keeps all.
    #[test]
    fn a_token_beyond_the_rows_is_not_kept() {
        for rule in [
            Rule::TOKEN,
            Rule::BLOCK,
            Rule::ONE_HOT,
            Rule::threshold(0.5).unwrap(),
        ] {
            let laws = Laws::new(rule, &Engine::HONEST, &at(0.5));
            assert_eq!((laws.keep(5), laws.ratio(5)), (0.0, 0.0), "{rule}");
        }
    }

    /// F by hand: 1 + F is 0.9 + 0.6 s from 1/6 to 3/4, and 0.6 + s behind. So what is behind
    /// 3/4 is 1/1.35, and before it (1 - 1/1.35)/0.6.
    #[test]
    fn the_law_of_reused_noise_by_hand() {
        let law = own_noise(&[0.3, 0.2, 0.0], &[0.1, 0.3, 0.6]);
        assert!(near(&law, &[19. / 27., 8. / 27., 0.]), "{law:?}");
        // Two that begin at once: as if they were one, and shared by the residual.
        let law = own_noise(&[0.25, 0.25, 0.0], &[0.2, 0.2, 0.6]);
        assert!(near(&law, &[0.5, 0.5, 0.]), "{law:?}");
        // The draft never drew the first: its clock runs from 0 on.
        let law = own_noise(&[0.5, 0.5, 0.0], &[0.0, 0.5, 0.5]);
        assert!(near(&law, &[2. / 3., 1. / 3., 0.]), "{law:?}");
        assert_eq!(own_noise(&[0.0, 0.0], &[0.5, 0.5]), [0.0, 0.0]);
    }
}
