//! The bets of one position: every bug and every score, on what the engine did there.

use super::bets::{Bet, ShareBet};
use super::book::{Book, Component, Part, Tally};
use crate::audit::model::bugs::{Bug, bugs_of};
use crate::audit::model::engine::{Change, Engine, Laws, Position, change, get};
use crate::audit::model::multi_draft::{Tested, drawn_from, next_draft};
use crate::audit::model::rule::Rule;
use specgap_base::sorted::Map;
use specgap_core::rule::Drafts;
use specgap_core::scheme::SchemeName;
use std::borrow::Cow;
use std::sync::Arc;

/// What an engine did at a position. Tokens are places in the row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub drafts: Vec<usize>,
    /// A draft was kept; meaningless without drafts.
    pub accepted: bool,
    pub output: usize,
}

/// A score: a number in [0, 1] whose mean under the claim is known.
#[derive(Clone, Copy, Debug)]
enum Score {
    DraftInQ,
    DraftInRatio,
    DraftBest,
    Kept,
    CorrectionInP,
    CorrectionInRatio,
    OutputInP,
    OutputInRatio,
    OutputBest,
}

/// Part, name and words of each score, in the order of [`Score`].
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

/// The share that is staked on a share of broken steps, where there are bugs to bet on at all.
const SHARE_SHARE: f64 = 0.1;

/// What a broken step does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    /// Any token, each alike.
    Even,
    /// The likeliest one.
    Likeliest,
    /// Draws from q.
    Draft,
    /// Keeps every draft.
    Keeps,
    /// Keeps none.
    Rejects,
}

/// Part, what broken steps do, name, words and cure of each bet on a share of steps.
const SHARES: [(Part, Broken, &str, &str, &str); 9] = [
    (
        Part::DraftLaw,
        Broken::Even,
        "some-drafts-are-anything",
        "a share of drafts does not come from q: unlikely tokens are drafted too often",
        "look for steps whose q is of another position, is not finite, or was not written",
    ),
    (
        Part::DraftLaw,
        Broken::Likeliest,
        "some-drafts-are-likeliest",
        "a share of drafts is the likeliest token of q, where others are drawn from it",
        "look for requests that are drafted greedily",
    ),
    (
        Part::Acceptance,
        Broken::Keeps,
        "some-drafts-always-kept",
        "a share of drafts is kept whatever its probability",
        "look for steps whose p/q is not a number, whose q is zero, or whose row is of another \
         position: a comparison with NaN is false",
    ),
    (
        Part::Acceptance,
        Broken::Rejects,
        "some-drafts-never-kept",
        "a share of drafts is rejected whatever its probability",
        "look for steps whose p/q is not a number, or whose token is masked",
    ),
    (
        Part::Correction,
        Broken::Even,
        "some-corrections-are-anything",
        "a share of corrections follows no row: unlikely tokens come out too often",
        "look for residuals that are all zero, and for what is drawn then",
    ),
    (
        Part::Correction,
        Broken::Draft,
        "some-corrections-from-q",
        "a share of corrections is drawn from q",
        "look for steps whose p was not ready or is of another position",
    ),
    (
        Part::TargetLaw,
        Broken::Even,
        "some-outputs-are-anything",
        "a share of outputs follows no row: unlikely tokens come out too often",
        "look for steps whose rows are not finite or of another position",
    ),
    (
        Part::TargetLaw,
        Broken::Draft,
        "some-outputs-from-q",
        "a share of outputs is drawn from q",
        "look for steps at which every draft is kept, and for an ensemble with the draft",
    ),
    (
        Part::TargetLaw,
        Broken::Likeliest,
        "some-outputs-are-likeliest",
        "a share of outputs is the likeliest token of p, where others are drawn from it",
        "look for steps that are sampled at temperature 0",
    ),
];

/// Bets for one rule and tolerance.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    pub rule: Rule,
    pub book: Book,
    pub bugs: Vec<&'static Bug>,
    /// By bug and part, the component.
    of_bug: Vec<[Option<usize>; 4]>,
    of_score: [usize; SCORES.len()],
    /// By bet on a share, the component; `None` where a part has no bug to bet on.
    of_share: [Option<usize>; SHARES.len()],
}

/// What engines did at a position, and what the rule claims of it.
struct Here<'a> {
    at: &'a Position<'a>,
    steps: &'a [&'a Step],
    honest: Laws,
    /// The law of the draft, where it is a draw from all of q.
    draft: Option<Vec<f64>>,
    /// The law of what comes out where there is a draft.
    output: Cow<'a, [f64]>,
    /// What counts as the likeliest draft.
    near: Vec<usize>,
    /// By step, the law of a correction; `None` where none was drawn, or none is known.
    corrected: Vec<Option<Arc<Claim>>>,
    /// Bets that a share of drafts comes from elsewhere.
    draft_shares: Vec<Shared>,
    /// The same of what comes out: where there is a draft, and where there is none.
    output_shares: [Vec<Shared>; 2],
}

/// A law that is claimed, and the bets that a share of outcomes comes from another one.
#[derive(Debug)]
struct Claim {
    law: Vec<f64>,
    shares: Vec<Shared>,
}

/// A bet that a share of outcomes comes from a broken law, which is told from one law alone.
#[derive(Clone, Copy, Debug)]
struct Shared {
    /// Its component.
    place: usize,
    broken: Broken,
    bet: ShareBet,
    /// The likeliest outcome.
    best: usize,
}

impl Shared {
    /// What the claim and the broken law give an outcome.
    fn masses(&self, at: &Position<'_>, claimed: &[f64], outcome: usize) -> [f64; 2] {
        let own = get(claimed, outcome);
        match self.broken {
            Broken::Draft => [own, get(at.q, outcome)],
            Broken::Even => [own, 1.0 / claimed.len().max(1) as f64],
            Broken::Keeps | Broken::Rejects => {
                let kept = (self.broken == Broken::Keeps) == (outcome == 0);
                [own, one_if(kept)]
            }
            // One outcome against all others.
            Broken::Likeliest => {
                let mass = get(claimed, self.best);
                match outcome == self.best {
                    true => [mass, 1.0],
                    false => [(1.0 - mass).max(0.0), 0.0],
                }
            }
        }
    }
}

impl<'a> Here<'a> {
    fn new(judge: &Judge, at: &'a Position<'a>, steps: &'a [&'a Step]) -> Self {
        let rule = judge.rule;
        let honest = Laws::new(rule, &Engine::HONEST, at);
        let output = match rule.is_lossless() {
            true => None,
            false => honest.output(),
        };
        let is_drawn = rule.drafts() == Drafts::Drawn(SchemeName::WITH_REPLACEMENT);
        let claim = |law: Vec<f64>| {
            let shares = judge.share_bets(at, Part::Correction, &law);
            Arc::new(Claim { law, shares })
        };
        let mut known: Map<usize, Arc<Claim>> = Map::new();
        let mut corrected = |step: &&Step| {
            let draft = step.drafts.first().copied();
            let key = match draft {
                // Of a text alone nothing is said but the target's law.
                None if rule == Rule::TEXT => return None,
                None => usize::MAX,
                Some(x) if step.accepted || at.is_rest(x) || at.is_rest(step.output) => {
                    return None;
                }
                // By the draft where it matters.
                Some(_) if honest.one_correction() => usize::MAX - 1,
                Some(x) => x,
            };
            let law = known.at_or(key, || claim(honest.behind(draft, at)));
            Some(Arc::clone(law))
        };
        let draft = honest.draft.clone().filter(|_| is_drawn);
        let output = output.map_or(Cow::Borrowed(at.p), Cow::Owned);
        let is_any = |drafted: bool| steps.iter().any(|step| step.drafts.is_empty() != drafted);
        let shares = |part, law: &[f64], needed: bool| match needed {
            true => judge.share_bets(at, part, law),
            false => Vec::new(),
        };
        Self {
            at,
            steps,
            draft_shares: shares(
                Part::DraftLaw,
                draft.as_deref().unwrap_or_default(),
                draft.is_some() && is_any(true),
            ),
            output_shares: [
                shares(Part::TargetLaw, &output, is_any(true)),
                shares(Part::TargetLaw, at.p, is_any(false)),
            ],
            draft,
            output,
            near: near(at),
            corrected: steps.iter().map(&mut corrected).collect(),
            honest,
        }
    }
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
        let mut book = Book::new(tolerance);
        let of_bug = (bugs.iter())
            .map(|bug| {
                Part::ALL.map(|part| {
                    let (weight, total) = (bug.weights[part.index()], totals[part.index()]);
                    let component = Component {
                        part,
                        name: bug.name,
                        words: bug.words,
                        cure: bug.cure,
                        weight: (1.0 - SCORE_SHARE - SHARE_SHARE) * weight / total,
                        is_bug: true,
                        is_score: false,
                        is_share: false,
                        first: 0,
                    };
                    (weight > 0.0).then(|| book.push(component))
                })
            })
            .collect();
        let of_score = SCORES.map(|(part, name, words)| {
            let beside = SCORES.iter().filter(|(other, ..)| *other == part).count();
            let share = match totals[part.index()] > 0.0 {
                true => SCORE_SHARE,
                false => 1.0,
            };
            book.push(Component {
                part,
                name,
                words,
                cure: "no bug of the table fits better; compare the engine's rows with the log's",
                weight: share / beside as f64,
                is_bug: false,
                is_score: true,
                is_share: false,
                first: 0,
            })
        });
        let of_share = SHARES.map(|(part, _, name, words, cure)| {
            let beside = SHARES.iter().filter(|(other, ..)| *other == part).count();
            let component = Component {
                part,
                name,
                words,
                cure,
                weight: SHARE_SHARE / beside as f64,
                is_bug: true,
                is_score: false,
                is_share: true,
                first: 0,
            };
            (totals[part.index()] > 0.0).then(|| book.push(component))
        });
        Self {
            rule,
            book,
            bugs,
            of_bug,
            of_score,
            of_share,
        }
    }

    /// The bets that a share of a part's outcomes comes from other laws than this one: those that
    /// grow. O(V).
    fn share_bets(&self, at: &Position<'_>, part: Part, claimed: &[f64]) -> Vec<Shared> {
        let mut even = Vec::new();
        let mut found = Vec::new();
        for ((of, broken, ..), place) in SHARES.iter().zip(self.of_share) {
            let Some(place) = place.filter(|_| *of == part) else {
                continue;
            };
            let best = at.likeliest(claimed);
            let tolerance = self.book.tolerance;
            let bet = match broken {
                Broken::Draft => ShareBet::new(claimed, at.q, tolerance),
                Broken::Even => {
                    even.resize(claimed.len(), 1.0 / claimed.len().max(1) as f64);
                    ShareBet::new(claimed, &even, tolerance)
                }
                Broken::Keeps => ShareBet::new(claimed, &[1.0, 0.0], tolerance),
                Broken::Rejects => ShareBet::new(claimed, &[0.0, 1.0], tolerance),
                Broken::Likeliest => {
                    let mass = get(claimed, best);
                    ShareBet::new(&[mass, (1.0 - mass).max(0.0)], &[1.0, 0.0], tolerance)
                }
            };
            found.extend(bet.map(|bet| Shared {
                place,
                broken: *broken,
                bet,
                best,
            }));
        }
        found
    }

    /// What these bets make of an outcome.
    fn shares(
        &self,
        tally: &mut Tally,
        at: &Position<'_>,
        bets: &[Shared],
        claimed: &[f64],
        outcome: usize,
    ) {
        for one in bets {
            if let Some(component) = self.component(Some(one.place)) {
                let masses = one.masses(at, claimed, outcome);
                self.book.share(tally, component, &one.bet, masses);
            }
        }
    }

    /// The same of whether a draft is kept.
    fn kept_shares(&self, tally: &mut Tally, at: &Position<'_>, keep: f64, accepted: bool) {
        let claimed = [keep, 1.0 - keep];
        let bets = self.share_bets(at, Part::Acceptance, &claimed);
        self.shares(tally, at, &bets, &claimed, usize::from(!accepted));
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
        // Engines that are played often do the same, and win the same by it.
        let mut distinct: Vec<&Step> = steps.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let mut own = vec![Tally::new(&self.book); distinct.len()];
        if siblings {
            for (step, tally) in distinct.iter().zip(&mut own) {
                self.several(at, step, tally);
            }
        } else {
            self.chains(at, &distinct, &mut own);
        }
        for (step, tally) in steps.iter().zip(tallies) {
            let place = distinct.binary_search(step).ok();
            if let Some(own) = place.and_then(|place| own.get(place)) {
                tally.add(own);
            }
        }
    }

    /// Steps with one draft each, or none.
    fn chains(&self, at: &Position<'_>, steps: &[&Step], tallies: &mut [Tally]) {
        let here = Here::new(self, at, steps);
        for ((step, tally), correction) in
            (steps.iter().zip(tallies.iter_mut())).zip(&here.corrected)
        {
            self.scores(&here, step, correction.as_deref(), tally);
        }
        for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
            let laws = Laws::new(self.rule, &bug.engine, at);
            let [draft, kept, corrected, output] = places.map(|place| self.component(place));
            if let Some(one) = draft {
                self.on_drafts(one, &here, &laws, tallies);
            }
            if let Some(one) = kept {
                for (step, tally) in steps.iter().zip(tallies.iter_mut()) {
                    let draft = step.drafts.first().filter(|x| !at.is_rest(**x));
                    if let Some(&x) = draft {
                        let [claimed, wrong] = [&here.honest, &laws].map(|laws| laws.keep(x));
                        let two = [&[claimed, 1.0 - claimed][..], &[wrong, 1.0 - wrong]];
                        self.book
                            .against(tally, one, two, usize::from(!step.accepted));
                    }
                }
            }
            if let Some(one) = corrected {
                self.on_corrections(one, &here, &laws, tallies);
            }
            if let Some(one) = output {
                self.on_outputs(one, (bug, &laws), &here, tallies);
            }
        }
    }

    /// The scores of a step with one draft, or none.
    fn scores(&self, here: &Here<'_>, step: &Step, correction: Option<&Claim>, tally: &mut Tally) {
        let at = here.at;
        if let Some(&draft) = step.drafts.first() {
            if self.rule.drafts() != Drafts::Any {
                tally.steps[0] += 1;
            }
            if let Some(law) = &here.draft {
                self.draft(tally, at, (law, &here.draft_shares), draft);
                let best = at.likeliest(at.q);
                self.score(
                    tally,
                    Score::DraftBest,
                    one_if(draft == best),
                    get(law, best),
                );
            } else if self.rule.drafts() == Drafts::Likeliest {
                let hit = one_if(here.near.contains(&draft));
                self.score(tally, Score::DraftBest, hit, 1.0);
            }
            if !at.is_rest(draft) {
                tally.steps[1] += 1;
                let keep = here.honest.keep(draft);
                self.score(tally, Score::Kept, one_if(step.accepted), keep);
                self.kept_shares(tally, at, keep, step.accepted);
            }
        }
        if let Some(claim) = correction {
            self.correction(tally, at, (&claim.law, &claim.shares), step.output);
        }
        let [drafted, alone] = &here.output_shares;
        let claim: (&[f64], &[Shared]) = match step.drafts.is_empty() {
            true => (at.p, alone),
            false => (&here.output, drafted),
        };
        self.output(tally, at, claim, step.output);
    }

    fn correction(
        &self,
        tally: &mut Tally,
        at: &Position<'_>,
        (law, shares): (&[f64], &[Shared]),
        output: usize,
    ) {
        tally.steps[2] += 1;
        let scores = [Score::CorrectionInP, Score::CorrectionInRatio];
        self.ranks(tally, scores, law, [at.p, at.q], output);
        self.shares(tally, at, shares, law, output);
    }

    fn output(
        &self,
        tally: &mut Tally,
        at: &Position<'_>,
        (law, shares): (&[f64], &[Shared]),
        output: usize,
    ) {
        tally.steps[3] += 1;
        self.ranks(
            tally,
            [Score::OutputInP, Score::OutputInRatio],
            law,
            [at.p, at.q],
            output,
        );
        let best = at.likeliest(at.p);
        self.score(
            tally,
            Score::OutputBest,
            one_if(output == best),
            get(law, best),
        );
        self.shares(tally, at, shares, law, output);
    }

    /// The rank of an outcome in the order of a row, and in that of another one over it.
    fn ranks(
        &self,
        tally: &mut Tally,
        [own, other]: [Score; 2],
        law: &[f64],
        [row, over]: [&[f64]; 2],
        outcome: usize,
    ) {
        self.score(tally, own, rank(law, |i| row[i], outcome), 0.5);
        self.score(
            tally,
            other,
            rank(law, |i| ratio(over[i], row[i]), outcome),
            0.5,
        );
    }

    fn on_drafts(&self, one: &Component, here: &Here<'_>, laws: &Laws, tallies: &mut [Tally]) {
        let Some(wrong) = laws.draft.as_deref() else {
            return;
        };
        if let Some(claimed) = &here.draft {
            let first = |step: &Step| step.drafts.first().copied();
            self.on_all(one, [claimed, wrong], here, tallies, first);
        } else if self.rule.drafts() == Drafts::Likeliest {
            let hit: f64 = here.near.iter().map(|&i| get(wrong, i)).sum();
            let two = [&[1.0, 0.0][..], &[hit, (1.0 - hit).max(0.0)]];
            let misses = |step: &Step| {
                let draft = step.drafts.first();
                draft.map(|x| usize::from(!here.near.contains(x)))
            };
            self.on_all(one, two, here, tallies, misses);
        }
    }

    fn on_corrections(&self, one: &Component, here: &Here<'_>, laws: &Laws, tallies: &mut [Tally]) {
        let mut known: Map<usize, Option<(Vec<f64>, Bet)>> = Map::new();
        let is_one = here.honest.one_correction() && laws.one_correction();
        let parts = here
            .steps
            .iter()
            .zip(tallies.iter_mut())
            .zip(&here.corrected);
        for ((step, tally), claimed) in parts {
            let Some(claimed) = claimed.as_deref().map(|claim| &claim.law) else {
                continue;
            };
            let draft = step.drafts.first().copied();
            let key = match draft {
                None => usize::MAX,
                Some(_) if is_one => usize::MAX - 1,
                Some(draft) => draft,
            };
            let bet = known.at_or(key, || {
                let wrong = laws.behind(draft, here.at);
                Bet::new(claimed, &wrong, self.book.tolerance).map(|bet| (wrong, bet))
            });
            if let Some((wrong, bet)) = bet {
                let gain = bet.gain_on([claimed, wrong], step.output);
                self.book.play(tally, one, gain, bet.range);
            }
        }
    }

    fn on_outputs(
        &self,
        one: &Component,
        (bug, laws): (&Bug, &Laws),
        here: &Here<'_>,
        tallies: &mut [Tally],
    ) {
        if self.rule == Rule::CARRIED {
            // p is claimed given the text alone: no bet may know whether a draft stood there.
            if let Some(out) = laws.of_text(here.at.stands) {
                self.on_all(one, [here.at.p, &out], here, tallies, |step| {
                    Some(step.output)
                });
            }
            return;
        }
        // Where nothing is claimed of drafts, the law of outputs follows from p alone.
        let out = laws.output();
        let out = match (&out, self.rule.drafts()) {
            (None, Drafts::Any) => Some(laws.bonus.as_slice()),
            _ => out.as_deref(),
        };
        if let Some(out) = out {
            let drafted = |step: &Step| (!step.drafts.is_empty()).then_some(step.output);
            self.on_all(one, [&here.output, out], here, tallies, drafted);
        }
        let alone = match bug.engine.drops {
            Some(_) => out,
            None => Some(laws.bonus.as_slice()),
        };
        if let Some(alone) = alone {
            let undrafted = |step: &Step| step.drafts.is_empty().then_some(step.output);
            self.on_all(one, [here.at.p, alone], here, tallies, undrafted);
        }
    }

    /// One bet, on what each step has as its outcome.
    fn on_all(
        &self,
        one: &Component,
        laws: [&[f64]; 2],
        here: &Here<'_>,
        tallies: &mut [Tally],
        outcome: impl Fn(&Step) -> Option<usize>,
    ) {
        let Some(bet) = Bet::new(laws[0], laws[1], self.book.tolerance) else {
            return;
        };
        for (step, tally) in here.steps.iter().zip(tallies) {
            if let Some(outcome) = outcome(step) {
                let gain = bet.gain_on(laws, outcome);
                self.book.play(tally, one, gain, bet.range);
            }
        }
    }

    /// Several drafts for one position.
    fn several(&self, at: &Position<'_>, step: &Step, tally: &mut Tally) {
        let (y, drafts) = (step.output, step.drafts.as_slice());
        let is_drafted = !drafts.is_empty();
        if is_drafted && self.rule.drafts() != Drafts::Any {
            tally.steps[0] += 1;
            self.drafts(at, drafts, tally);
        }
        let tested = Tested::new(self.rule, &Engine::HONEST, at, drafts);
        let claimed = tested.decide(&Engine::HONEST);
        let kept = match step.accepted {
            true => claimed.tokens.binary_search(&y).ok(),
            false => Some(claimed.tokens.len()),
        };
        let kept = kept.filter(|_| is_drafted);
        if kept.is_some() {
            tally.steps[1] += 1;
            let none = claimed.law.last().copied().unwrap_or(0.0);
            self.score(tally, Score::Kept, one_if(step.accepted), 1.0 - none);
            self.kept_shares(tally, at, 1.0 - none, step.accepted);
        }
        let replaced = match is_drafted {
            true => (!step.accepted).then_some(claimed.correction.as_slice()),
            false => Some(at.p),
        };
        if let Some(law) = replaced {
            let shares = self.share_bets(at, Part::Correction, law);
            self.correction(tally, at, (law, &shares), y);
        }
        let shares = self.share_bets(at, Part::TargetLaw, at.p);
        self.output(tally, at, (at.p, &shares), y);
        for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
            let [_, of_kept, of_replaced, of_output] = places.map(|place| self.component(place));
            let (on_kept, on_replaced) = (kept.zip(of_kept), replaced.zip(of_replaced));
            if on_kept.is_some() || on_replaced.is_some() {
                let wrong = tested.decide(&bug.engine);
                if let Some((kept, one)) = on_kept {
                    self.book
                        .against(tally, one, [&claimed.law, &wrong.law], kept);
                }
                if let Some((law, one)) = on_replaced {
                    self.book.against(tally, one, [law, &wrong.correction], y);
                }
            }
            if let Some(one) = of_output.filter(|_| bug.engine.target != Change::Same) {
                let wrong = change(at.p, bug.engine.target, at);
                self.book.against(tally, one, [at.p, &wrong], y);
            }
        }
    }

    /// A draft that is a draw from a law, and the bets on where a share of drafts comes from.
    fn draft(
        &self,
        tally: &mut Tally,
        at: &Position<'_>,
        (law, shares): (&[f64], &[Shared]),
        draft: usize,
    ) {
        let scores = [Score::DraftInQ, Score::DraftInRatio];
        self.ranks(tally, scores, law, [at.q, at.p], draft);
        self.shares(tally, at, shares, law, draft);
    }

    /// Several drafts, each given those before it. A log says how many drafts there are by their
    /// number alone; where a law drafts fewer as q has no more tokens, it is the law of so many.
    fn drafts(&self, at: &Position<'_>, drafts: &[usize], tally: &mut Tally) {
        let claimed = self.laws_of(&Engine::HONEST, at, drafts);
        let are_drawn = matches!(self.rule.drafts(), Drafts::Drawn(_));
        for (law, &draft) in claimed.iter().zip(drafts) {
            let Some(law) = law else { continue };
            if are_drawn {
                let shares = self.share_bets(at, Part::DraftLaw, law);
                self.draft(tally, at, (law, &shares), draft);
            } else {
                let least = NEAR * get(at.q, at.likeliest(law));
                let hit = one_if(get(at.q, draft) >= least);
                self.score(tally, Score::DraftBest, hit, 1.0);
            }
        }
        if !are_drawn {
            return;
        }
        for (bug, places) in self.bugs.iter().zip(&self.of_bug) {
            let Some(one) = self.component(places[0]) else {
                continue;
            };
            let wrong = self.laws_of(&bug.engine, at, drafts);
            for ((law, wrong), &draft) in claimed.iter().zip(&wrong).zip(drafts) {
                if let (Some(law), Some(wrong)) = (law, wrong) {
                    self.book.against(tally, one, [law, wrong], draft);
                }
            }
        }
    }

    /// The law of each draft, given those before it; `None` where an engine has none.
    fn laws_of(
        &self,
        engine: &Engine,
        at: &Position<'_>,
        drafts: &[usize],
    ) -> Vec<Option<Vec<f64>>> {
        let Some((law, row)) = drawn_from(self.rule, engine, at) else {
            return vec![None; drafts.len()];
        };
        let drafting = law.drafting(&row, drafts.len());
        (0..drafts.len())
            .map(|k| next_draft(&drafting, &drafts[..k]))
            .collect()
    }

    fn component(&self, place: Option<usize>) -> Option<&Component> {
        place.and_then(|place| self.book.components.get(place))
    }

    fn score(&self, tally: &mut Tally, score: Score, value: f64, mean: f64) {
        if let Some(one) = self.component(self.of_score.get(score as usize).copied()) {
            self.book.score(tally, one, value, mean);
        }
    }
}

fn one_if(hit: bool) -> f64 {
    f64::from(u8::from(hit))
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

    /// Capital of 1 before the first bet: bugs share seven tenths by their weights, bets on shares a
    /// tenth and scores a fifth evenly.
    #[test]
    fn weights_of_a_part_sum_to_one() {
        for rule in Rule::all() {
            let judge = Judge::new(rule, 0.0);
            let empty = Tally::new(&judge.book);
            for part in Part::ALL {
                let total: f64 = judge.book.of(part).map(|one| one.weight).sum();
                assert!((total - 1.0).abs() < 1e-12, "{rule} {part:?}: {total}");
                assert!(judge.book.log_capital(part, &empty).abs() < 1e-12);
            }
        }
        let judge = Judge::new(Rule::TOKEN, 0.0);
        let weight = |name: &str, part| {
            let mut of = judge.book.of(part);
            of.find(|one| one.name == name).unwrap().weight
        };
        for part in Part::ALL {
            let weights = judge.bugs.iter().map(|bug| bug.weights[part.index()]);
            let total: f64 = weights.clone().sum();
            for (bug, own) in judge.bugs.iter().zip(weights).filter(|(_, own)| *own > 0.0) {
                let found = weight(bug.name, part);
                assert!((found - 0.7 * own / total).abs() < 1e-15, "{}", bug.name);
            }
        }
        for (name, part, expected) in [
            ("accepted", Part::Acceptance, 0.2),
            ("rank-in-p", Part::Correction, 0.1),
            ("argmax-of-p", Part::TargetLaw, 0.2 / 3.0),
            ("some-outputs-from-q", Part::TargetLaw, 0.1 / 3.0),
            ("some-drafts-always-kept", Part::Acceptance, 0.05),
        ] {
            assert!((weight(name, part) - expected).abs() < 1e-15, "{name}");
        }
        // Where nothing is bet on bugs, scores have all.
        let exact = Judge::new(Rule::EXACT_MATCH, 0.0);
        for one in exact.book.of(Part::DraftLaw) {
            assert!(one.is_score && (one.weight - 1.0 / 3.0).abs() < 1e-15);
        }
    }

    fn tallied(judge: &Judge, at: &Position<'_>, siblings: bool, step: &Step) -> Tally {
        let mut tally = [Tally::new(&judge.book)];
        judge.judge(at, siblings, &[step], &mut tally);
        let [tally] = tally;
        tally
    }

    fn step(drafts: &[usize], accepted: bool, output: usize) -> Step {
        Step {
            drafts: drafts.to_vec(),
            accepted,
            output,
        }
    }

    const P: [f64; 5] = [0.35, 0.25, 0.2, 0.15, 0.05];
    const Q: [f64; 5] = [0.1, 0.05, 0.45, 0.3, 0.1];
    const AT: Position<'static> = Position::new(&P, &Q);
    const MANY: Position<'static> = Position::new(&[0.35, 0.25, 0.2, 0.2], &[0.1, 0.05, 0.5, 0.35]);

    /// Rules, each at a position and with whether several are drafted there. Those that remember the
    /// text are in the middle of it.
    fn everywhere() -> impl Iterator<Item = (Rule, Position<'static>, bool)> {
        let block = Position { reach: 0.6, ..AT };
        let carried = Position { stands: 0.7, ..AT };
        let of_one = [
            (Rule::TOKEN, AT),
            (Rule::BLOCK, block),
            (Rule::CARRIED, carried),
            (Rule::ONE_HOT, AT),
            (Rule::EXACT_MATCH, AT),
            (Rule::threshold(0.8).unwrap(), AT),
        ];
        let of_several = [
            Rule::RRS,
            Rule::RRS_WO,
            Rule::LEVEL_4,
            Rule::LEVEL_4_INDEPENDENT,
            Rule::K_SEQ,
            Rule::ONE_HOT,
        ];
        let of_one = of_one.into_iter().map(|(rule, at)| (rule, at, false));
        of_one.chain(of_several.map(|rule| (rule, MANY, true)))
    }

    /// All the ways a step of an engine can go, with their probabilities.
    fn ways(rule: Rule, engine: &Engine, at: &Position<'_>, siblings: bool) -> Vec<(f64, Step)> {
        let mut all = match siblings {
            true => ways_of_two(rule, engine, at),
            false => ways_of_one(rule, engine, at),
        };
        all.retain(|(mass, _)| *mass > 0.0);
        let total: f64 = all.iter().map(|(mass, _)| mass).sum();
        assert!((total - 1.0).abs() < 1e-12, "{rule} {engine:?}: {total}");
        all
    }

    fn ways_of_one(rule: Rule, engine: &Engine, at: &Position<'_>) -> Vec<(f64, Step)> {
        let mut engine = *engine;
        engine.draws |= rule == Rule::EXACT_MATCH;
        let laws = Laws::new(rule, &engine, at);
        // Where the rule carries, a draft stands with some probability, and the text alone does
        // not say where.
        let drafted = at.stands * (1.0 - laws.dropped);
        let alone = laws.bonus.iter().enumerate();
        let mut all: Vec<(f64, Step)> = alone
            .map(|(y, mass)| ((1.0 - drafted) * mass, step(&[], false, y)))
            .collect();
        for (x, q) in laws.draft.clone().unwrap().into_iter().enumerate() {
            let keep = laws.keep(x);
            all.push((drafted * q * keep, step(&[x], true, x)));
            for (y, mass) in laws.correction(x).into_iter().enumerate() {
                all.push((drafted * q * (1.0 - keep) * mass, step(&[x], false, y)));
            }
        }
        all
    }

    fn ways_of_two(rule: Rule, engine: &Engine, at: &Position<'_>) -> Vec<(f64, Step)> {
        let (law, row) = drawn_from(rule, engine, at).unwrap();
        let drafting = law.drafting(&row, 2);
        let next = |earlier: &[usize]| {
            let law = next_draft(&drafting, earlier).unwrap().into_iter();
            law.enumerate().filter(|(_, mass)| *mass > 0.0)
        };
        let mut all = Vec::new();
        for (a, first) in next(&[]) {
            for (b, second) in next(&[a]) {
                let mass = first * second;
                let found = Tested::new(rule, engine, at, &[a, b]).decide(engine);
                for (&token, chance) in found.tokens.iter().zip(&found.law) {
                    all.push((mass * chance, step(&[a, b], true, token)));
                }
                let none = mass * found.law.last().unwrap();
                for (y, chance) in found.correction.iter().enumerate() {
                    all.push((none * chance, step(&[a, b], false, y)));
                }
            }
        }
        all
    }

    /// The steps of each part; and where a step is none of a part, nothing is bet there.
    #[test]
    fn a_step_is_one_of_the_parts_that_it_tells_of() {
        let listed = Position { rest: true, ..AT };
        for (rule, at, step, steps) in [
            (Rule::TOKEN, AT, step(&[2], true, 2), [1, 1, 0, 1]),
            (Rule::TOKEN, AT, step(&[2], false, 1), [1; 4]),
            (Rule::TOKEN, AT, step(&[], false, 0), [0, 0, 1, 1]),
            // What is not listed: as a draft it is no acceptance, as an output no correction.
            (Rule::TOKEN, listed, step(&[4], false, 0), [1, 0, 0, 1]),
            (Rule::TOKEN, listed, step(&[2], false, 4), [1, 1, 0, 1]),
            (Rule::ONE_HOT, AT, step(&[3], true, 3), [1, 1, 0, 1]),
            // Exact match claims nothing of drafts.
            (Rule::EXACT_MATCH, AT, step(&[3], true, 3), [0, 1, 0, 1]),
            (Rule::RRS, MANY, step(&[2, 3], true, 2), [1, 1, 0, 1]),
            (Rule::RRS, MANY, step(&[2, 3], false, 1), [1; 4]),
            // No draft came out.
            (Rule::RRS, MANY, step(&[2, 3], true, 0), [1, 0, 0, 1]),
            (Rule::RRS, MANY, step(&[], false, 0), [0, 0, 1, 1]),
            (
                Rule::EXACT_MATCH,
                MANY,
                step(&[2, 3], true, 2),
                [0, 1, 0, 1],
            ),
        ] {
            let judge = Judge::new(rule, 0.002);
            let tally = tallied(&judge, &at, at.p.len() == MANY.p.len(), &step);
            assert_eq!(tally.steps, steps, "{rule} {step:?}");
            for part in Part::ALL
                .into_iter()
                .filter(|part| steps[part.index()] == 0)
            {
                for one in judge.book.of(part) {
                    let logs = &tally.logs[one.first..one.first + one.stakes()];
                    assert!(
                        logs.iter().all(|log| *log == 0.0),
                        "{rule} {step:?} {}",
                        one.name
                    );
                }
            }
        }
    }

    /// Capital that is bet on a bug grows where an engine has it, over all the ways that a step of
    /// it can go. Cuts to the ten likeliest tokens leave rows of five as they are.
    #[test]
    fn every_bet_wins_if_the_engine_has_the_bug() {
        let mut grown = [[0; 4]; 2];
        for (rule, at, siblings) in everywhere() {
            let judge = Judge::new(rule, if siblings { 0.002 } else { 0.0 });
            for (bug, places) in judge.bugs.iter().zip(&judge.of_bug) {
                let (mut mean, mut is_played) = ([0.0; 4], [false; 4]);
                for (mass, step) in ways(rule, &bug.engine, &at, siblings) {
                    let logs = tallied(&judge, &at, siblings, &step).logs;
                    for (part, place) in places.iter().enumerate() {
                        let first = place.map(|place| judge.book.components[place].first);
                        let log = first.map_or(0.0, |first| logs[first]);
                        mean[part] += mass * log;
                        is_played[part] |= log != 0.0;
                    }
                }
                for (part, grown) in grown[usize::from(siblings)].iter_mut().enumerate() {
                    let grows = mean[part] > 0.0;
                    assert_eq!(
                        grows, is_played[part],
                        "{rule} {} {part}: {mean:?}",
                        bug.name
                    );
                    *grown += u32::from(grows);
                }
            }
        }
        // Bets that are made, by part: of one draft, and of several.
        assert_eq!(grown, [[20, 52, 52, 79], [27, 46, 45, 24]]);
    }

    #[test]
    fn near_the_likeliest_and_ratios() {
        let q = [0.5, 0.45, 0.449, 0.5];
        let at = |rest| Position {
            rest,
            ..Position::new(&q, &q)
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
    fn every_bet_is_fair_under_the_rule() {
        // The test of tests: the capital of every component after one position has mean 1
        // (up to what is paid for rounding) if the rule is followed and nothing is tolerated,
        // and at most 1 with a tolerance.
        for (rule, at, siblings) in everywhere() {
            for (tolerance, rest) in [(0.0, false), (0.002, false), (0.0, true)] {
                if rest && (siblings || rule.needs_full_rows().is_some()) {
                    continue;
                }
                let at = Position { rest, ..at };
                let judge = Judge::new(rule, tolerance);
                let mut mean = vec![0.0; judge.book.logs];
                for (mass, step) in ways(rule, &Engine::HONEST, &at, siblings) {
                    let tally = tallied(&judge, &at, siblings, &step);
                    for (mean, log) in mean.iter_mut().zip(&tally.logs) {
                        *mean += mass * log.exp();
                    }
                }
                for (place, mean) in mean.into_iter().enumerate() {
                    let fair = tolerance > 0.0 || mean > 1.0 - 1e-7;
                    assert!(
                        mean <= 1.0 + 1e-12 && fair,
                        "{rule} {tolerance} {rest} {place} {mean}"
                    );
                }
            }
        }
    }

    /// The capital of a part is an e-process: from 1, its mean after one position and after two is 1 at
    /// most, whatever came out first. All ways are gone through, so that nothing is left to chance.
    #[test]
    fn the_capital_of_a_part_has_mean_one_at_most_after_every_position() {
        let second = Position::new(&[0.05, 0.5, 0.15, 0.2, 0.1], &[0.3, 0.25, 0.05, 0.15, 0.25]);
        for rule in [Rule::TOKEN, Rule::ONE_HOT, Rule::EXACT_MATCH] {
            for tolerance in [0.0, 0.002] {
                let judge = Judge::new(rule, tolerance);
                let of = |at: &Position<'_>| -> Vec<(f64, Tally)> {
                    let all = ways(rule, &Engine::HONEST, at, false).into_iter();
                    all.map(|(mass, step)| (mass, tallied(&judge, at, false, &step)))
                        .collect()
                };
                let (first, then) = (of(&AT), of(&second));
                for part in Part::ALL {
                    let mut means = [0.0; 2];
                    for (mass, tally) in &first {
                        let here = judge.book.log_capital(part, tally).exp();
                        let mut next = 0.0;
                        for (chance, other) in &then {
                            let mut both = tally.clone();
                            both.add(other);
                            next += chance * judge.book.log_capital(part, &both).exp();
                        }
                        // Given what came out first.
                        assert!(next <= here + 1e-12, "{rule} {part:?} {next} {here}");
                        means[0] += mass * here;
                        means[1] += mass * next;
                    }
                    for mean in means {
                        assert!(mean <= 1.0 + 1e-12, "{rule} {part:?} {mean}");
                        // What is paid for rounding, and no more where nothing is tolerated.
                        assert!(
                            tolerance > 0.0 || mean > 1.0 - 1e-7,
                            "{rule} {part:?} {mean}"
                        );
                    }
                }
            }
        }
    }
}
