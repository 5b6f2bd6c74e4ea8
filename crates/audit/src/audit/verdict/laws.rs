//! A log, step by step, held against the claim and every suspect.

use crate::audit::AuditError;
use crate::audit::data::Settings;
use crate::audit::evidence::bets::log_sum;
use crate::audit::evidence::requests::{Family as Grouping, Group};
use crate::audit::evidence::rows::{Pair, orders_of};
use crate::audit::evidence::steps::{Checks, Happened, Step, follows};
use crate::audit::evidence::surprise;
use crate::audit::model::engine::get;
use crate::audit::model::rule::Rule;
use crate::audit::suspects::capital::Tally;
use crate::audit::suspects::factor::IMPOSSIBLE;
use crate::audit::suspects::family::Families;
use crate::audit::suspects::sequence::{Drawn, Fact, LIKELY, NOISES, Number, Sequence};
use crate::audit::suspects::some_texts::{FIRST, SomeTexts};
use crate::audit::suspects::step::{Changes, Here, Known, Made, Noise, Past};
use crate::audit::suspects::view::{View, by_id, by_mass};
use crate::audit::verdict::notes::drafted_nowhere;
use crate::audit::verdict::opened::Opened;
use serde::{Deserialize, Serialize};
use specgap_base::side_by_side;
use specgap_base::sorted::Map;
use specgap_core::rule::Drafts;
use specgap_log::log::{FileDigest, Log, RowsFrom, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions that one task takes. Sums are made by task, so that they do not depend on threads.
const SPAN: usize = 16;

/// Positions between two looks at how often tokens came: at least, and at most.
const BATCH: [usize; 2] = [128, 4096];

/// How many earlier texts are looked at for tokens that come again, at most.
const TEXTS: usize = 64;

/// Probabilities below this add nothing to what a token should have come to.
const SMALL: f64 = 1e-7;

/// Sums over positions in units of 2^-32, so that they do not depend on their order.
#[derive(Debug, Default)]
struct Sums(Vec<AtomicU64>);

impl Sums {
    const UNIT: f64 = 4_294_967_296.0;

    fn new(size: usize) -> Self {
        Self((0..size).map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, place: usize, x: f64) {
        if let Some(sum) = self.0.get(place) {
            sum.fetch_add((x * Self::UNIT).round() as u64, Ordering::Relaxed);
        }
    }

    fn units(&self) -> Vec<u64> {
        self.0
            .iter()
            .map(|sum| sum.load(Ordering::Relaxed))
            .collect()
    }

    fn values(units: &[u64]) -> Vec<f64> {
        units.iter().map(|sum| *sum as f64 / Self::UNIT).collect()
    }
}

/// What the rows of a stretch of a log say, kept for an audit of all of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// By the first position of a span.
    spans: BTreeMap<usize, Part>,
    /// By token, in units of 2^-32: how surely it would have come by now.
    odds: Vec<u64>,
    /// What the log's files were, by their place in it.
    files: BTreeMap<usize, FileDigest>,
}

impl Evidence {
    /// Reads a stretch of the log's positions, and of what is before it p alone. Settings are those of the
    /// audit that follows.
    ///
    /// # Errors
    /// As [`audit`](super::whole::audit), at these positions.
    pub fn read(
        log: &Log,
        settings: &Settings,
        positions: Range<usize>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, AuditError> {
        let opened = Opened::new(log, settings, settings.rule, None)?;
        let asked = Asked::new(&opened, settings, Asked::families(&opened));
        let mut spans = BTreeMap::new();
        let odds = asked.each(&positions, progress, |first, part| {
            spans.insert(first, part);
        })?;
        let files = log.digests(&positions)?.into_iter().collect();
        Ok(Self { spans, odds, files })
    }

    /// Takes that of another stretch.
    pub fn append(&mut self, other: Self) {
        self.spans.extend(other.spans);
        self.files.extend(other.files);
        self.odds.resize(self.odds.len().max(other.odds.len()), 0);
        for (own, more) in self.odds.iter_mut().zip(other.odds) {
            *own = own.saturating_add(more);
        }
    }

    /// Refuses what was read of another log.
    pub(crate) fn check(&self, log: &Log) -> Result<(), AuditError> {
        let files = log.digests(&(0..log.positions()))?;
        Ok(log.refuse_other_parts(&files, &self.files)?)
    }
}

/// Tokens that a row adds to what should have come, with their probabilities.
fn likely(p: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    p.iter().copied().enumerate().filter(|(_, p)| *p > SMALL)
}

/// What a log shows.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub families: Families,
    pub tally: Tally,
    pub sequence: Sequence,
    /// Where texts may share numbers.
    some_texts: Option<SomeTexts>,
    /// By token: ln of the capital of "it never comes"; none of tokens that came.
    pub never: Vec<f64>,
    pub checks: Checks,
    /// Sum of total variations between p and a lossy rule's output, and how many.
    pub lossy: (f64, u64),
    /// In the order of positions.
    pub surprises: Vec<surprise::Told>,
    /// Positions whose token was held against its row.
    pub looked: usize,
    /// The sum of what p gives tokens that do not stand alone there.
    unlisted: f64,
    /// Positions at which equal tokens stand at the end of a cut.
    pub tied: usize,
    pub noise: Noise,
    /// Other passes of the models are among what may explain it.
    pub noises: bool,
    /// Texts may share numbers.
    pub shares: bool,
    /// The share of texts whose numbers are their own, or stand for those of all that share them.
    pub alone: f64,
    /// How many texts there are, and how many at most are said to share their numbers.
    pub texts: [usize; 2],
}

impl Found {
    /// The largest of what laws of texts that share numbers say: of all texts, or of some.
    pub(crate) fn texts_share(&self) -> (f64, &'static str) {
        let some = self.some_texts.as_ref().map(SomeTexts::largest);
        let all = self.sequence.texts.largest();
        some.filter(|some| some.0 > all.0).unwrap_or(all)
    }

    /// ln of their mean: an e-value against fresh numbers.
    pub(crate) fn texts_shared(&self) -> f64 {
        let some = self.some_texts.as_ref().map_or(0.0, SomeTexts::mixture);
        log_sum([self.sequence.texts.mixture(), some].into_iter()) - 2f64.ln()
    }

    /// What a departure may move unseen, in total variation of a step: where others are one outcome, no more than p
    /// gives them.
    pub(crate) fn hidden(&self) -> f64 {
        self.unlisted / self.looked.max(1) as f64
    }

    /// Tells whether texts may share numbers, and nothing says that they do.
    pub(crate) fn may_share_unsaid(&self) -> bool {
        self.shares && !self.shares_said()
    }

    /// Tells whether the log or the options say that texts share numbers.
    pub(crate) fn shares_said(&self) -> bool {
        self.alone < 1.0
    }
}

/// How a text goes: for each position, which text, which step and round of it.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    text: usize,
    step: usize,
    round: usize,
}

/// What stands before each position, of the log's records alone.
struct Course<'a> {
    opened: &'a Opened<'a>,
    at: Vec<At>,
    texts: Vec<Text>,
    /// By round and place in it, positions of all texts.
    places: Map<(usize, usize), Vec<usize>>,
}

/// The tokens of a text.
#[derive(Clone, Debug, Default)]
struct Text {
    /// As they came out, with the positions of their rows.
    tokens: Vec<(usize, u32)>,
    /// By token, the steps at which it came; and at which as a draft that was kept.
    came: [Map<u32, Vec<usize>>; 2],
    /// What came behind one token, and behind two, with its step: by those, and in order of steps.
    behind: Vec<(Option<u32>, u32, usize, u32)>,
}

impl Text {
    fn push(&mut self, index: usize, token: u32, is_kept: bool) {
        let step = self.tokens.len();
        let mut tail = self.tokens.iter().rev().map(|(_, token)| *token);
        if let Some(one) = tail.next() {
            self.behind.push((None, one, step, token));
            let two = tail.next();
            self.behind
                .extend(two.map(|two| (Some(two), one, step, token)));
        }
        self.tokens.push((index, token));
        let [all, kept] = &mut self.came;
        all.at(token).push(step);
        if is_kept {
            kept.at(token).push(step);
        }
    }

    /// What came behind these tokens before a step.
    fn behind(&self, two: Option<u32>, one: u32, step: usize) -> impl Iterator<Item = u32> {
        let from = self.behind.partition_point(|at| *at < (two, one, 0, 0));
        let to = (self.behind).partition_point(|at| *at < (two, one, step, 0));
        self.behind[from..to].iter().map(|at| at.3)
    }

    /// How often each token came before a step; and as a draft that was kept.
    fn counts(&self, step: usize) -> [Map<u32, u32>; 2] {
        [0, 1].map(|which| {
            let all = self.came[which].iter().filter_map(|(token, steps)| {
                let count = steps.partition_point(|own| *own < step);
                (count > 0).then_some((*token, count as u32))
            });
            all.collect()
        })
    }
}

impl<'a> Course<'a> {
    fn new(opened: &'a Opened<'a>) -> Self {
        let mut texts = vec![Text::default(); opened.requests.texts()];
        let mut rounds = vec![0usize; texts.len()];
        let mut at = Vec::with_capacity(opened.steps.at.len());
        let mut places = Map::<(usize, usize), Vec<usize>>::new();
        for (index, step) in opened.steps.at.iter().enumerate() {
            let text = opened.requests.text.get(index).copied().unwrap_or(0);
            let tokens = texts.get(text).map_or(0, |text: &Text| text.tokens.len());
            if let (Some(step), Some(round)) = (step, rounds.get_mut(text)) {
                *round += usize::from(step.depth == 0);
                places.at((*round, step.depth)).push(index);
            }
            at.push(At {
                text,
                step: tokens,
                round: rounds.get(text).copied().unwrap_or(0),
            });
            let outside = opened.steps.outside.get(index).copied().flatten();
            let token = step.as_ref().map(|step| step.output).or(outside);
            if let (Some(token), Some(text)) = (token, texts.get_mut(text)) {
                let is_kept = step.as_ref().is_some_and(|step| step.accepted);
                text.push(index, token, is_kept);
            }
        }
        texts
            .iter_mut()
            .for_each(|text| text.behind.sort_unstable());
        Self {
            opened,
            at,
            texts,
            places,
        }
    }

    fn at(&self, index: usize) -> At {
        self.at.get(index).copied().unwrap_or_default()
    }

    /// The token before, where its place in a row is its id.
    fn before(&self, at: At) -> Option<usize> {
        let step = at
            .step
            .checked_sub(1)
            .filter(|_| !self.opened.log.is_top_heavy());
        let (_, token) = self.texts.get(at.text)?.tokens.get(step?)?;
        usize::try_from(*token).ok()
    }

    /// Tokens before a position in its text. O(distinct tokens of the text).
    fn past(&self, index: usize, pair: &Pair, depth: usize) -> Past {
        let (at, none) = (self.at(index), Text::default());
        let text = self.texts.get(at.text).unwrap_or(&none);
        let before = text.tokens.get(..at.step).unwrap_or(&text.tokens);
        let [all, kept] = text.counts(at.step);
        let is_listed = |place: usize| !pair.is_rest(place);
        let placed = |seen: &Map<u32, u32>| -> Vec<(usize, u32)> {
            let all = seen.iter();
            let all = all.map(|(token, count)| (pair.place(*token), *count));
            all.filter(|(place, _)| is_listed(*place)).collect()
        };
        let last = |n: usize| {
            let mut seen = Map::<u32, u32>::new();
            let from = before.len().saturating_sub(n);
            for (_, token) in before.get(from..).unwrap_or_default() {
                *seen.at(*token) += 1;
            }
            seen
        };
        let mut past = Past {
            seen: [
                placed(&all),
                placed(&last(64)),
                placed(&last(10)),
                Vec::new(),
            ],
            ..Past::default()
        };
        let mut tail = before.iter().rev().map(|(_, token)| *token);
        if let Some(one) = tail.next() {
            let [last, again, twice] = &mut past.banned;
            last.push(pair.place(one));
            let places = |two| text.behind(two, one, at.step).map(|next| pair.place(next));
            again.extend(places(None));
            if let Some(two) = tail.next() {
                twice.extend(places(Some(two)));
            }
            // A token that does not stand alone is no ban of all that do not.
            past.banned = past.banned.map(|places| pair.listed_once(places));
        }
        let otherwise = all.iter().filter_map(|(token, count)| {
            let left = count - kept.get(token).copied().unwrap_or(0);
            (left > 0).then_some((*token, left))
        });
        past.seen[3] = placed(&otherwise.collect());
        let late = |own: &Map<u32, u32>| {
            let own = own.iter().map(|(token, count)| {
                let came_otherwise = all.get(token) > Some(count);
                (pair.place(*token), *count, came_otherwise)
            });
            own.filter(|(place, ..)| is_listed(*place)).collect()
        };
        past.late = [late(&last(depth)), late(&kept)];
        past
    }

    /// Drafts and tokens of the same place in earlier rounds of the text, and in earlier texts, by
    /// their places in a row.
    fn earlier(&self, index: usize, happened: &Happened, pair: &Pair) -> [Earlier; 2] {
        let [drafts, tokens] = self.opened.earlier(index, happened.depth, pair);
        let at = self.at(index);
        let others = self.places.get(&(at.round, happened.depth));
        let others = others.map_or(&[][..], Vec::as_slice);
        let here = others.partition_point(|other| *other < index);
        let mut of_texts = [Vec::new(), Vec::new()];
        let mut first = [Vec::new(), Vec::new()];
        let is_open = self.opened.requests.may_share();
        for other in others.get(..here).unwrap_or_default().iter().take(TEXTS) {
            let Some(step) = self.opened.steps.at.get(*other).and_then(Option::as_ref) else {
                continue;
            };
            let text = self.at(*other).text;
            if text == at.text {
                continue;
            }
            let is_drawn = step.drafts.is_empty() || !step.accepted;
            let is_drawn = is_drawn || self.opened.rule.drafts() == Drafts::Any;
            let drawn = [
                step.drafts.first().copied(),
                is_drawn.then_some(step.output),
            ];
            for (which, id) in drawn.into_iter().enumerate() {
                let Some(place) = id.map(|id| pair.place(id)) else {
                    continue;
                };
                of_texts[which].push(place);
                let is_first = is_open && text < FIRST && !pair.is_rest(place);
                first[which].extend(is_first.then_some((text, place)));
            }
        }
        let [others_drafts, others_tokens] = of_texts.map(|places| pair.listed_once(places));
        let [first_drafts, first_tokens] = first;
        [
            Earlier {
                places: [drafts, others_drafts],
                first: first_drafts,
            },
            Earlier {
                places: [tokens, others_tokens],
                first: first_tokens,
            },
        ]
    }

    /// Tells whether it is the last position of its text.
    fn ends(&self, at: At) -> bool {
        let text = self.texts.get(at.text);
        text.is_some_and(|text| text.tokens.len() <= at.step + 1)
    }
}

/// What was drawn at the same place before, by places in a row: in rounds of the text, and in texts before it; and
/// in the first texts, by their number.
#[derive(Default)]
struct Earlier {
    places: [Vec<usize>; 2],
    first: Vec<(usize, usize)>,
}

/// The cells of an outcome by id, and by falling mass, with what is not listed at the end of either.
fn cells(law: &[f64], outcome: usize, rest: bool) -> [[f64; 2]; 2] {
    let listed = law.get(..law.len() - usize::from(rest)).unwrap_or(law);
    let by_id = by_id(law, outcome);
    let is_listed = outcome < listed.len();
    [
        by_id,
        if is_listed {
            by_mass(listed, outcome)
        } else {
            by_id
        },
    ]
}

/// Returns what is drawn, with its law: cells of its number, and whether it came before. `rest` says that the last
/// outcome is all that is not listed. It is looked at like any other: bets on an outcome have the mean 1 over all of
/// them, and more over those that are listed.
fn number(
    drawn: Drawn,
    (law, rest): (&[f64], bool),
    outcome: usize,
    earlier: &Earlier,
) -> Option<Number> {
    let own = get(law, outcome);
    let [by_id, by_mass] = cells(law, outcome, rest);
    // What is hardly drawn tells little.
    let first = earlier.first.iter();
    let first = first.map(|&(text, place)| (text, place == outcome, get(law, place)));
    let first = first.filter(|(.., mass)| *mass >= LIKELY);
    (own > 0.0).then(|| Number {
        drawn,
        nth: 0,
        cells: [Some(by_id), (drawn != Drawn::Coin).then_some(by_mass)],
        again: earlier.places.each_ref().map(|places| {
            let mass = places.iter().map(|&place| get(law, place)).sum();
            (!places.is_empty()).then(|| (places.contains(&outcome), mass))
        }),
        first: first.collect(),
    })
}

/// What is asked of a log.
pub(crate) struct Asked<'a> {
    opened: &'a Opened<'a>,
    noise: Noise,
    noises: bool,
    families: Families,
}

impl Found {
    /// All suspects along a log, of whose rows all may have been read.
    pub(crate) fn of(
        opened: &Opened<'_>,
        settings: &Settings,
        read: Option<&Evidence>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, AuditError> {
        Asked::new(opened, settings, Asked::families(opened)).found_in(read, progress)
    }
}

impl<'a> Asked<'a> {
    pub(crate) fn new(opened: &'a Opened<'a>, settings: &Settings, families: Families) -> Self {
        let (from, said) = (opened.log.metadata().rows_from, settings.noise);
        let own = matches!(from, Some(RowsFrom::EngineRaw | RowsFrom::EngineProcessed));
        let noise = Noise {
            sigma: said.unwrap_or(if own { 0.0 } else { Settings::NOISE }),
            stated: said.is_some() || from == Some(RowsFrom::Scoring),
        };
        Self {
            opened,
            noise,
            noises: settings.noise.is_none() && !own,
            families,
        }
    }

    /// All suspects of what a log claims.
    fn families(opened: &Opened<'_>) -> Families {
        let claimed = &opened.claimed;
        let shares = [claimed.top_p, claimed.min_p].into_iter().flatten();
        let cuts = shares.count() + usize::from(claimed.top_k.is_some());
        let orders = orders_of(claimed).len();
        Families::of(opened.rule, cuts, orders, opened.steps.siblings)
    }

    /// Goes through the log. O(N V) for each suspect that asks whole rows.
    pub(crate) fn found(self, progress: &(dyn Fn(usize) + Sync)) -> Result<Found, AuditError> {
        self.found_in(None, progress)
    }

    fn found_in(
        self,
        read: Option<&Evidence>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Found, AuditError> {
        let log = self.opened.log;
        let mut found = Found {
            tally: Tally::new(&self.families),
            noise: self.noise,
            noises: self.noises,
            shares: self.opened.requests.may_share(),
            alone: self.opened.requests.alone(),
            texts: [
                self.opened.requests.texts(),
                self.opened.requests.together(),
            ],
            ..Found::default()
        };
        found.some_texts = found.shares.then(SomeTexts::default);
        let mut came = BTreeSet::<usize>::new();
        let mut fold = |part: &Part| {
            found.tally.add(&part.tally);
            found.checks.add(part.checks);
            found.lossy.0 += part.lossy.0;
            found.lossy.1 += part.lossy.1;
            found.surprises.extend(&part.surprises);
            found.looked += part.looked;
            found.unlisted += part.unlisted;
            found.tied += part.tied;
            for fact in &part.facts {
                found.sequence.look(fact);
                if let Some(some) = &mut found.some_texts {
                    some.look(fact);
                }
            }
            came.extend(&part.tokens);
        };
        let all = 0..log.positions();
        let never = match read {
            Some(read) => {
                read.spans.values().for_each(fold);
                Sums::values(&read.odds)
            }
            None => Sums::values(&self.each(&all, progress, |_, part| fold(&part))?),
        };
        found.never = never;
        if let Some(some) = &mut found.some_texts {
            some.close_all();
        }
        for token in came {
            if let Some(never) = found.never.get_mut(token) {
                *never = f64::NEG_INFINITY;
            }
        }
        found.families = self.families;
        Ok(found)
    }

    /// Hands over what each span of some positions shows, in order; of those before them it adds up p. Returns the
    /// odds of tokens there.
    fn each(
        &self,
        positions: &Range<usize>,
        progress: &(dyn Fn(usize) + Sync),
        mut visit: impl FnMut(usize, Part),
    ) -> Result<Vec<u64>, AuditError> {
        let log = self.opened.log;
        let course = Course::new(self.opened);
        let size = log.vocabulary();
        let sums = [0; 3].map(|_| Sums::new(size));
        let mut came = [0; 2].map(|_| vec![0.0; size]);
        let mut expected = came.clone();
        let mut done = 0;
        while done < positions.end {
            let batch = (done / 4).clamp(BATCH[0], BATCH[1]);
            let batch = batch.min(log.positions() - done);
            let mut spans = log.spans_of(done..done + batch, SPAN);
            spans.retain(|span| span.positions().start < positions.end);
            let parts: Vec<Part> = side_by_side::each_or_stop(&spans, |span| {
                if span.positions().start < positions.start {
                    return self.before(span, &sums);
                }
                let part = self.span(&course, span, &sums, [&came, &expected])?;
                progress(span.positions().len());
                Ok::<_, AuditError>(part)
            })?;
            for (span, part) in spans.iter().zip(parts) {
                for (counts, tokens) in came.iter_mut().zip([&part.tokens, &part.drafts]) {
                    for token in tokens {
                        if let Some(count) = counts.get_mut(*token) {
                            *count += 1.0;
                        }
                    }
                }
                let first = span.positions().start;
                if first >= positions.start {
                    visit(first, part);
                }
            }
            let [masses, drafted, _] = &sums;
            expected = [masses, drafted].map(|sums| Sums::values(&sums.units()));
            done += batch;
        }
        let [.., odds] = &sums;
        Ok(odds.units())
    }

    fn span(
        &self,
        course: &Course<'_>,
        span: &Span,
        sums: &[Sums; 3],
        came: [&[Vec<f64>; 2]; 2],
    ) -> Result<Part, AuditError> {
        let opened = self.opened;
        let mut part = Part {
            tally: Tally::new(&self.families),
            positions: span.positions().len(),
            ..Part::default()
        };
        let mut reader = opened.reader()?;
        let mut before = Pair::default();
        let first = span.positions().start;
        let is_next = |index: usize| {
            let text = |index: usize| opened.requests.text.get(index).copied();
            index > 0
                && text(index - 1) == text(index)
                && follows(opened.place(index - 1), opened.place(index))
        };
        let mut has_before = is_next(first);
        if has_before {
            for one in opened.log.spans_of(first - 1..first, 1) {
                reader.read(&opened.log.chunk(&one)?, first - 1, &mut before)?;
            }
        }
        let chunk = opened.log.chunk(span)?;
        let mut pair = Pair::default();
        for index in chunk.positions() {
            reader.read(&chunk, index, &mut pair)?;
            has_before = if index > first {
                is_next(index)
            } else {
                has_before
            };
            let q: &[f64] = if before.lacks_draft { &[] } else { &before.q };
            let known = has_before && before.p.len() == pair.p.len() && !pair.rest;
            let rows = known.then_some([before.p.as_slice(), q]);
            self.one(course, index, (&pair, rows), came, sums, &mut part)?;
            std::mem::swap(&mut before, &mut pair);
        }
        part.tally.settle();
        Ok(part)
    }

    fn one(
        &self,
        course: &Course<'_>,
        index: usize,
        (pair, before): (&Pair, Option<[&[f64]; 2]>),
        [came, expected]: [&[Vec<f64>; 2]; 2],
        sums: &[Sums; 3],
        part: &mut Part,
    ) -> Result<(), AuditError> {
        let opened = self.opened;
        let Some(output) = self.output_at(index) else {
            return Ok(());
        };
        let happened = opened.steps.at.get(index).and_then(Option::as_ref);
        let is_outside = happened.is_none();
        let ids = happened.map_or(&[][..], |step| step.drafts.as_slice());
        let needs_draft = opened.steps.siblings || opened.rule.drafts() != Drafts::Any;
        if pair.lacks_draft && needs_draft && !ids.is_empty() {
            return Err(opened.refused(index, drafted_nowhere()));
        }
        let step = Step {
            drafts: ids.iter().map(|&id| pair.place(id)).collect(),
            accepted: happened.is_some_and(|step| step.accepted),
            output: pair.place(output),
        };
        let depth = happened.map_or(0, |step| step.depth);
        (part.checks).look(opened.rule, pair, &step, self.noise.sigma, index);
        if pair.tied {
            // Which of equal tokens a sampler keeps is not known: nothing is held against such a row.
            part.tied += 1;
            self.sum(index, pair, sums, part);
            return Ok(());
        }
        part.looked += 1;
        let told = surprise::Told::new(&pair.p, step.output);
        part.surprises.push(told);
        if let (Some(step), true) = (happened, !opened.rule.is_lossless())
            && !opened.steps.siblings
            && !step.drafts.is_empty()
            && let Some(off) = opened.lossy_by(index, pair)
        {
            part.lossy.0 += off;
            part.lossy.1 += 1;
        }
        let past = course.past(index, pair, depth);
        let here = Here {
            rule: opened.rule,
            claimed: &opened.claimed,
            noise: self.noise,
            p: View::new(&pair.p, pair.rest),
            q: View::new(&pair.q, pair.rest),
            whole: &pair.whole,
            least: pair.least,
            logits: &pair.logits,
            reach: opened.reach_at(index),
            stands: opened.stands_at(index),
            drafts: &step.drafts,
            siblings: opened.steps.siblings,
            by_output: opened.steps.by_output,
            kept: step.accepted,
            output: step.output,
            outside: is_outside,
            lacks_draft: pair.lacks_draft,
            before,
            past: &past,
            came: [0, 1].map(|which| {
                let known = !came[which].is_empty() && !pair.rest;
                known.then(|| [came[which].as_slice(), &expected[which]])
            }),
            known: Known::default(),
            made: Made::default(),
        };
        let here = here.settle();
        part.unlisted += here.p.unlisted();
        let at = course.at(index);
        self.count(&here, part);
        let mut groups: Vec<Group> = Vec::new();
        if let Some(step) = happened {
            groups.push((Grouping::Depth, i64::try_from(depth).unwrap_or(i64::MAX)));
            groups.extend(step.prompt.map(|prompt| (Grouping::Prompt, prompt)));
            groups.extend(step.batch.map(|size| (Grouping::BatchSize, size)));
        }
        let changes = Changes::new(&self.families);
        part.tally
            .look(&self.families.suspects, &groups, here.tested(), |suspect| {
                here.told(suspect, &changes)
            });
        part.facts.push(Fact {
            spread: told.entropy.exp(),
            before: course
                .before(at)
                .filter(|_| self.opened.rule.is_lossless() && !pair.rest),
            next: likely(&pair.p).filter(|(_, p)| *p >= LIKELY).collect(),
            token: step.output,
            ..self.fact(course, (index, at), &here, happened, pair)
        });
        self.sum(index, pair, sums, part);
        let [.., odds] = sums;
        let add = |token: usize, p: f64| odds.add(token, -(-p.min(1.0 - 1e-9)).ln_1p());
        match pair.rest {
            false => likely(&pair.p).for_each(|(place, p)| add(place, p)),
            true => pair.alone().for_each(|(token, p)| add(token, p)),
        }
        Ok(())
    }

    /// The token that came out at a position, if it is held against its row.
    fn output_at(&self, index: usize) -> Option<u32> {
        let steps = &self.opened.steps;
        let happened = steps.at.get(index).and_then(Option::as_ref);
        let outside = steps.outside.get(index).copied().flatten();
        let outside = outside.filter(|_| self.opened.rule.is_lossless());
        happened.map(|step| step.output).or(outside)
    }

    /// Adds up p and q: how often each token should have come, or been drafted; and which came and was.
    fn sum(&self, index: usize, pair: &Pair, [masses, drafted, _]: &[Sums; 3], part: &mut Part) {
        let Some(output) = self.output_at(index) else {
            return;
        };
        if pair.rest {
            part.tokens.push(output as usize);
            return;
        }
        likely(&pair.p).for_each(|(place, p)| masses.add(place, p));
        part.tokens.push(pair.place(output));
        let happened = self.opened.steps.at.get(index).and_then(Option::as_ref);
        let draft = happened.and_then(|step| step.drafts.first());
        // In the middle of a block the law of a draft is none of its row alone.
        let is_asked = self.families.learn_drafts() && self.opened.reach_at(index) >= 1.0;
        if let Some(draft) = draft.filter(|_| is_asked) {
            likely(&pair.q).for_each(|(place, q)| drafted.add(place, q));
            part.drafts.push(pair.place(*draft));
        }
    }

    /// Adds up positions that another stretch is of.
    fn before(&self, span: &Span, sums: &[Sums; 3]) -> Result<Part, AuditError> {
        let mut part = Part::default();
        if !sums[0].0.is_empty() {
            self.opened.rows(span, &mut |index, pair| {
                self.sum(index, pair, sums, &mut part);
                Ok(())
            })?;
        }
        Ok(part)
    }

    fn count(&self, here: &Here<'_>, part: &mut Part) {
        let steps = &mut part.tally.steps;
        steps[4] += 1;
        if here.outside {
            return;
        }
        if here.drafts.is_empty() {
            steps[3] += 1;
            return;
        }
        if self.opened.rule.drafts() != Drafts::Any {
            steps[0] += 1;
        }
        steps[1] += u64::from(here.siblings || here.acceptance().is_some());
        steps[2] += u64::from(!here.kept);
    }

    fn fact(
        &self,
        course: &Course<'_>,
        (index, at): (usize, At),
        here: &Here<'_>,
        happened: Option<&Happened>,
        pair: &Pair,
    ) -> Fact {
        let mut fact = Fact {
            text: at.text,
            round: at.round,
            depth: happened.map_or(0, |step| step.depth),
            kept: here.kept,
            within_block: here.is_within_block(),
            ends: course.ends(at),
            ..Fact::default()
        };
        let y = here.output;
        if get(&pair.p, y) > 0.0 && self.opened.rule.is_lossless() {
            fact.output = Some(by_mass(&pair.p, y));
        }
        let Some(happened) = happened else {
            return fact;
        };
        let [of_drafts, of_tokens] = course.earlier(index, happened, pair);
        let none = Earlier::default();
        let (rule, rest) = (self.opened.rule, pair.rest);
        for (drawn, nth, law, outcome) in here.drawn() {
            let earlier = if nth == 0 && drawn == Drawn::Draft {
                &of_drafts
            } else {
                &none
            };
            let number = number(drawn, (law, rest && drawn != Drawn::Coin), outcome, earlier);
            fact.numbers
                .extend(number.map(|number| Number { nth, ..number }));
        }
        if here.siblings || rule.drafts() == Drafts::Any {
            if rule.drafts() == Drafts::Any {
                fact.numbers
                    .extend(number(Drawn::Token, (&pair.p, rest), y, &of_tokens));
            }
            if rule.drafts() == Drafts::Any && !here.siblings {
                fact.acceptance = here.acceptance();
                fact.replaced = here.replaced();
                if !pair.lacks_draft {
                    fact.shared = *here.shared();
                }
            }
            return fact;
        }
        let Some(&draft) = here.drafts.first() else {
            let law = here.law_alone();
            fact.numbers
                .extend(number(Drawn::Token, (&law, rest), y, &of_tokens));
            if rule != Rule::CARRIED && fact.depth > 0 && get(&pair.p, y) > 0.0 {
                fact.bonus = Some(cells(&pair.p, y, rest));
            }
            return fact;
        };
        fact.acceptance = here.acceptance();
        fact.shared = *here.shared();
        fact.replaced = here.replaced();
        // What is excluded counts as it does for suspects.
        let log = |chance: f64| chance.max(1.0 / IMPOSSIBLE).ln();
        if let Some(law) = here.law_of_drafts() {
            fact.claimed += log(get(&law, draft));
            fact.draft = (get(&law, draft) > 0.0).then(|| by_mass(&law, draft));
            fact.numbers
                .extend(number(Drawn::Draft, (&law, rest), draft, &of_drafts));
        }
        if let Some([_, _, keep, _]) = fact.acceptance {
            let (law, kept) = ([keep, 1.0 - keep], usize::from(!here.kept));
            fact.claimed += log(law[kept]);
            let coin = number(Drawn::Coin, (&law, false), kept, &none);
            fact.numbers
                .extend(coin.filter(|_| keep > 0.0 && keep < 1.0));
        }
        if !here.kept && fact.acceptance.is_some() && here.knows_correction() {
            let law = here.law_of_corrections();
            let rest = law.len() > here.listed();
            fact.claimed += log(get(&law, y));
            fact.numbers
                .extend(number(Drawn::Token, (&law, rest), y, &of_tokens));
        }
        if self.noises {
            let log = |ratio: f64| ratio.max(1e-12).ln();
            let logs = NOISES.map(|sigma| here.noisy(sigma).map(log).iter().sum());
            fact.noise = logs.to_vec();
        }
        fact
    }
}

/// What some positions show.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Part {
    positions: usize,
    tally: Tally,
    checks: Checks,
    lossy: (f64, u64),
    surprises: Vec<surprise::Told>,
    facts: Vec<Fact>,
    tokens: Vec<usize>,
    drafts: Vec<usize>,
    looked: usize,
    unlisted: f64,
    tied: usize,
}
