//! An audit of a log, what it takes, and its negative control.

use crate::audit::data::{
    AuditReport, Claimed, Conclusion, HardCheck, PartReport, RequestsReport, Settings,
};
use crate::audit::evidence::book::Part;
use crate::audit::evidence::play::ratio;
use crate::audit::evidence::requests::{Place, Requests};
use crate::audit::evidence::rows::{Pair, Reader};
use crate::audit::evidence::steps::{Count, Happened, Step, Steps, follows, records_of};
use crate::audit::model::engine::{Engine, Laws, Position, get};
use crate::audit::model::rule::Rule;
use crate::audit::outcome::Outcome;
use crate::audit::{AuditError, refused_at};
use specgap_base::side_by_side;
use specgap_core::rounds::Carry;
use specgap_core::rule::Drafts;
use specgap_log::log::{EngineRecord, Log, Span};
use std::collections::BTreeSet;

/// Positions that one task takes.
const SPAN: usize = 16;

/// The normal quantile of a power of 99%.
const POWER: f64 = 2.326_347_874_040_841;

/// The hard check of masks.
pub(crate) const MASKED: &str = "not-allowed";

/// What row by row checks find.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RowChecks {
    pub target_zero: Count,
    pub outside: Count,
    draft_zero: Count,
    repeated: Count,
    /// A token that the log's mask forbids.
    pub masked: Count,
    /// Any row had a mask.
    has_masks: bool,
}

impl RowChecks {
    pub(crate) fn add(&mut self, other: Self) {
        self.target_zero.add(other.target_zero);
        self.outside.add(other.outside);
        self.draft_zero.add(other.draft_zero);
        self.repeated.add(other.repeated);
        self.masked.add(other.masked);
        self.has_masks |= other.has_masks;
    }

    /// Looks at one step.
    pub(crate) fn look(
        &mut self,
        rule: Rule,
        pair: &Pair,
        step: &Step,
        tolerance: f64,
        index: usize,
    ) {
        self.has_masks |= !pair.allowed.is_empty();
        if pair.is_masked(step.output) {
            self.masked.found(index);
        }
        if get(&pair.whole, step.output) <= 0.0 {
            self.target_zero.found(index);
        } else if pair.is_outside(step.output, tolerance) {
            self.outside.found(index);
        }
        let claims = rule.drafts() != Drafts::Any;
        if claims && step.drafts.iter().any(|&x| get(&pair.q, x) <= 0.0) {
            self.draft_zero.found(index);
        }
        if rule.drafts().are_distinct() {
            let mut drafts = step.drafts.clone();
            drafts.sort_unstable();
            // Tokens that are not listed stand in one place and may differ.
            let twice = |&[a, b]: &[usize; 2]| a == b && !(pair.rest && a + 1 == pair.p.len());
            if drafts.array_windows().any(twice) {
                self.repeated.found(index);
            }
        }
    }

    pub(crate) fn list(self, steps: &Steps, claimed_cut: bool) -> Vec<HardCheck> {
        let structure = &steps.checks;
        let mut all = vec![
            self.target_zero.check(
                "target-zero",
                "a token came out that the target gives probability 0 (u <= 0 accepts one)",
            ),
            self.draft_zero.check(
                "draft-zero",
                "a token was drafted that the draft gives probability 0",
            ),
            self.repeated.check(
                REPEATED,
                "a token was drafted twice for one position, where drafts are distinct",
            ),
            structure.not_emitted.check(
                "accepted-not-emitted",
                "a draft was accepted and another token came out",
            ),
            structure.after_rejection.check(
                "accepted-after-rejection",
                "a round went on behind its rejection",
            ),
            structure.missing.check(
                "tokens-missing",
                "a round put out fewer tokens than it accepted, and one more",
            ),
            structure.after_end.check(
                "text-after-its-end",
                "a text went on behind a token that ends texts",
            ),
        ];
        if claimed_cut {
            let outside = self.outside.check(
                "outside-claimed-cut",
                "a token came out that top-k, top-p or min-p leaves out",
            );
            all.insert(1, outside);
        }
        if self.has_masks {
            let words = "a token came out that `allowed` masks";
            all.insert(1, self.masked.check(MASKED, words));
        }
        all
    }
}

/// A log, opened for an audit: settled settings, and what was done at each position.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub log: &'a Log,
    pub claimed: Claimed,
    pub steps: Steps,
    pub requests: Requests,
    pub rule: Rule,
    /// Block verification: `reach` at each position.
    reach: Vec<f64>,
    /// The rule that carries: `stands` at each position.
    stands: Vec<f64>,
    /// The index of each position in its text.
    places: Vec<Option<i64>>,
}

/// How a log says that it was sampled.
///
/// # Errors
/// A temperature of 0 or out of range, cuts out of range.
pub fn claimed_of(log: &Log, settings: &Settings) -> Result<Claimed, AuditError> {
    let claimed = match (&settings.claimed, &log.metadata().sampling) {
        (Some(claimed), _) => claimed.clone(),
        (None, Some(sampling)) => Claimed {
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            cut_order: sampling.cut_order,
            ..Claimed::at(sampling.temperature)
        },
        (None, None) => Claimed::at(1.0),
    };
    let refused = |message: String| AuditError::Log(format!("{}: {message}", log.path().display()));
    for (name, t) in [
        ("temperature", claimed.temperature),
        ("draft temperature", claimed.draft_temperature),
    ] {
        if t == 0.0 {
            return Err(refused(format!(
                "the {name} is 0: a greedy engine has no law to test; compare its tokens with the \
                 rows' likeliest"
            )));
        }
        if !(t.is_finite() && t > 0.0) {
            return Err(refused(format!(
                "the {name} is {t}; it is finite and above 0"
            )));
        }
    }
    for (name, k) in [
        ("top-k", claimed.top_k),
        ("draft top-k", claimed.draft_top_k),
    ] {
        if k == Some(0) {
            return Err(refused(format!("{name} is 0; it is at least 1")));
        }
    }
    for (name, share) in [("top-p", claimed.top_p), ("min-p", claimed.min_p)] {
        if let Some(share) = share
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(refused(format!(
                "{name} is {share}; it is above 0 and at most 1"
            )));
        }
    }
    Ok(claimed)
}

fn check_settings(settings: &Settings) -> Result<(), AuditError> {
    if !(settings.tolerance >= 0.0 && settings.tolerance < 0.5) {
        return Err(AuditError::Log(format!(
            "⟨tolerance {}⟩ is out of range; it is at least 0 and below 0.5",
            settings.tolerance
        )));
    }
    let noise = settings.noise.unwrap_or(0.0);
    if !(0.0..=2.0).contains(&noise) {
        return Err(AuditError::Log(format!(
            "⟨noise {noise}⟩ is out of range; it is at least 0 and at most 2"
        )));
    }
    if !(settings.exclude > 0.0 && settings.exclude <= 1.0) {
        return Err(AuditError::Log(format!(
            "⟨exclude {}⟩ is out of range; it is above 0 and at most 1",
            settings.exclude
        )));
    }
    if !(settings.alpha > 0.0 && settings.alpha < 1.0) {
        return Err(AuditError::Log(format!(
            "⟨alpha {}⟩ is out of range; it is above 0 and below 1",
            settings.alpha
        )));
    }
    Ok(())
}

/// Tokens that end texts, from the metadata and the settings.
pub(crate) fn stop_tokens(log: &Log, settings: &Settings) -> BTreeSet<u32> {
    let noted = log.metadata().extra.get("stop_tokens");
    let noted = noted.and_then(serde_json::Value::as_array);
    let ids = noted
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_u64);
    ids.filter_map(|id| u32::try_from(id).ok())
        .chain(settings.stop.iter().copied())
        .collect()
}

impl<'a> Opened<'a> {
    pub(crate) fn new(
        log: &'a Log,
        settings: &Settings,
        rule: Rule,
        steps: Option<Steps>,
    ) -> Result<Self, AuditError> {
        check_settings(settings)?;
        let claimed = claimed_of(log, settings)?;
        if log.is_top_heavy()
            && let Some(why) = rule.needs_full_rows()
        {
            return Err(AuditError::Log(format!(
                "{}: rows list some tokens only, and {rule} cannot be audited on them: {why}; log \
                 full rows, or audit the draft law and the outputs with ⟨rule token⟩",
                log.path().display()
            )));
        }
        (log.refuse_other_forms()).map_err(|error| AuditError::Log(error.to_string()))?;
        Reader::new(log, &claimed, rule)?;
        let steps = match steps {
            Some(steps) => steps,
            None => Steps::read(log, rule, &stop_tokens(log, settings))?,
        };
        let records = records_of(log, rule)?;
        let places = records.iter().map(|record| Place {
            prompt: record.prompt,
            position: record.position,
            seed: record.seed,
        });
        let requests = Requests::new(places, settings.seeds);
        let mut opened = Self {
            log,
            claimed,
            steps,
            requests,
            rule,
            reach: Vec::new(),
            stands: Vec::new(),
            places: records.iter().map(|record| record.position).collect(),
        };
        if rule == Rule::BLOCK {
            opened.reach = opened.reaches()?;
        }
        if rule == Rule::CARRIED {
            opened.stands = opened.standing(&records)?;
        }
        Ok(opened)
    }

    /// For each position, P(a draft stands there | the text so far) under `carried`.
    ///
    /// It takes every token of a text from its first on, rounds of one length, and the row of the
    /// draft wherever a draft may stand. The last token of a text alone may go without a draft.
    fn standing(&self, records: &[EngineRecord]) -> Result<Vec<f64>, AuditError> {
        let refused = |index, message: &str| Err(refused_at(self.log, index, message.to_owned()));
        if self.steps.cut + self.steps.without_bonus > 0 {
            return Err(AuditError::Log(format!(
                "{}: rounds lack the rows of tokens behind whole chains, and carried follows from \
                 q/p at every token of the text: log those rows, or audit the text with ⟨rule text⟩",
                self.log.path().display()
            )));
        }
        let ratios = self.at_steps(&|step, pair| {
            let found = ratio(&pair.position(), pair.place(step.output));
            (!pair.lacks_draft).then_some(found)
        })?;
        let mut carry = Carry::new(self.steps.most);
        let mut stands = Vec::with_capacity(records.len());
        for (index, (step, found)) in self.steps.at.iter().zip(ratios).enumerate() {
            let text = |at: Option<usize>| at.and_then(|at| records.get(at));
            let here = text(Some(index));
            let of_here =
                |other: &&EngineRecord| Some(other.prompt) == here.map(|here| here.prompt);
            let before = text(index.checked_sub(1)).filter(of_here);
            let is_last = text(Some(index + 1)).filter(of_here).is_none();
            if before.is_none() {
                carry = Carry::new(self.steps.most);
            }
            let Some(step) = step else {
                if before.is_none() {
                    return refused(
                        index,
                        "begins a text and no round: carried follows from the text from its first \
                         token on; log whole texts, or audit with ⟨rule text⟩",
                    );
                }
                // Behind a rejection, which a hard check counts.
                stands.push(1.0);
                continue;
            };
            if let (Some(before), Some(here)) = (before, here)
                && !follows(before.position, here.position)
            {
                return refused(
                    index,
                    "does not follow the position before it: carried follows from every token of \
                     the text; log all of them, or audit with ⟨rule text⟩",
                );
            }
            // No draft stands at the last token of a text, which nobody drafts beyond.
            let short = step.drafts.is_empty() && (step.depth < self.steps.most || is_last);
            if short && !is_last {
                return Err(refused_at(
                    self.log,
                    index,
                    format!(
                        "is behind {} accepted drafts and has none, where rounds have {}: carried \
                         is audited for rounds of one length; the last token of a text alone may go \
                         without; audit with ⟨rule text⟩",
                        step.depth, self.steps.most
                    ),
                ));
            }
            let standing = if short { 0.0 } else { carry.standing() };
            if found.is_none() && standing > 0.0 {
                return refused(
                    index,
                    "has no row of the draft (draft_row is 0), and under carried the token behind a \
                     whole chain is drawn from (p - d q)+: log the row, or audit with ⟨rule text⟩",
                );
            }
            stands.push(standing);
            carry.pass(&if short { 0.0 } else { found.unwrap_or(0.0) });
        }
        Ok(stands)
    }

    /// For each position, P(the prefix of its round is accepted | it was drafted).
    fn reaches(&self) -> Result<Vec<f64>, AuditError> {
        let ratios = self.at_steps(&|step, pair| {
            let draft = step.drafts.first().filter(|_| step.accepted)?;
            let place = pair.place(*draft);
            let (p, q) = (get(&pair.p, place), get(&pair.q, place));
            (q > 0.0).then(|| p / q)
        })?;
        let mut reach = 1.0;
        Ok(ratios
            .into_iter()
            .map(|ratio| ratio.unwrap_or(1.0))
            .zip(&self.steps.at)
            .map(|(ratio, step)| {
                let depth = step.as_ref().map_or(0, |step| step.depth);
                if depth == 0 {
                    reach = 1.0;
                }
                let here = reach;
                reach = (reach * ratio).min(1.0);
                here
            })
            .collect())
    }

    /// A number of each position that has a step, from its rows.
    fn at_steps(
        &self,
        of: &(dyn Fn(&Happened, &Pair) -> Option<f64> + Sync),
    ) -> Result<Vec<Option<f64>>, AuditError> {
        let parts = side_by_side::each_or_stop(&self.log.spans(SPAN), |span| {
            let mut numbers = Vec::with_capacity(span.positions().len());
            self.rows(span, &mut |index, pair| {
                let step = self.steps.at.get(index).and_then(Option::as_ref);
                numbers.push(step.and_then(|step| of(step, pair)));
                Ok(())
            })?;
            Ok::<_, AuditError>(numbers)
        })?;
        Ok(parts.concat())
    }

    /// Block verification: `reach` at a position; 1 for other rules.
    pub(crate) fn reach_at(&self, index: usize) -> f64 {
        self.reach.get(index).copied().unwrap_or(1.0)
    }

    /// The rule that carries: `stands` at a position; 1 for other rules.
    pub(crate) fn stands_at(&self, index: usize) -> f64 {
        self.stands.get(index).copied().unwrap_or(1.0)
    }

    /// Tokens that earlier rounds of the text drew so far into a round, as drafts and otherwise,
    /// by their places in a row.
    pub(crate) fn earlier(&self, index: usize, depth: usize, pair: &Pair) -> [Vec<usize>; 2] {
        /// So many positions back, and so many rounds.
        const BACK: usize = 64;
        const ROUNDS: usize = 4;
        let all = self.steps.siblings || self.rule.drafts() == Drafts::Any;
        let text = self.requests.text.get(index);
        let mut found = [Vec::new(), Vec::new()];
        let earlier = (index.saturating_sub(BACK)..index)
            .rev()
            .filter(|at| self.requests.text.get(*at) == text)
            .filter_map(|at| self.steps.at.get(at)?.as_ref())
            .filter(|step| step.depth == depth);
        for step in earlier.take(ROUNDS) {
            let [drafts, tokens] = &mut found;
            drafts.extend(step.drafts.first().map(|&id| pair.place(id)));
            tokens.extend((all || !step.accepted).then(|| pair.place(step.output)));
        }
        let at = pair.position();
        for places in &mut found {
            places.retain(|place| !at.is_rest(*place));
            places.sort_unstable();
            places.dedup();
        }
        found
    }

    /// Every row of a span.
    pub(crate) fn rows(
        &self,
        span: &Span,
        each: &mut dyn FnMut(usize, &Pair) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let chunk = self.log.chunk(span)?;
        let mut reader = Reader::new(self.log, &self.claimed, self.rule)?;
        let mut pair = Pair::default();
        for index in chunk.positions() {
            reader.read(&chunk, index, &mut pair)?;
            each(index, &pair)?;
        }
        Ok(())
    }

    /// Some rows, spread evenly over the log, with their position numbers.
    pub(crate) fn for_each_row(
        &self,
        rows: usize,
        mut each: impl FnMut(usize, &Pair),
    ) -> Result<(), AuditError> {
        let mut reader = Reader::new(self.log, &self.claimed, self.rule)?;
        let mut pair = Pair::default();
        for number in 0..rows {
            let index = number * self.log.positions() / rows;
            for span in self.log.spans_of(index..index + 1, 1) {
                reader.read(&self.log.chunk(&span)?, index, &mut pair)?;
                if !pair.lacks_draft {
                    each(index, &pair);
                }
            }
        }
        Ok(())
    }

    /// How far a rule that is lossy by design moves what comes out of a draft.
    pub(crate) fn lossy_by(&self, index: usize, pair: &Pair) -> Option<f64> {
        let at = Position {
            reach: self.reach_at(index),
            stands: self.stands_at(index),
            ..pair.position()
        };
        output_tv(self.rule, &Engine::HONEST, &at)
    }

    /// The index of a position in its text.
    pub(crate) fn place(&self, index: usize) -> Option<i64> {
        self.places.get(index).copied().flatten()
    }
}

pub(crate) fn drafted_nowhere() -> String {
    "has a draft that was verified, and no row of the draft (draft_row is 0): what it was drawn \
     from is not known; log the row"
        .to_owned()
}

/// Total variation between p and what an engine puts out.
fn output_tv(rule: Rule, engine: &Engine, at: &Position<'_>) -> Option<f64> {
    let out = Laws::new(rule, engine, at).of_text(at.stands)?;
    let apart = out.iter().zip(at.p).map(|(a, b)| (a - b).abs());
    Some(0.5 * apart.sum::<f64>())
}

/// Rounds that a recorder says that it lost.
pub(crate) fn lost(log: &Log) -> Option<HardCheck> {
    let lost = log.metadata().lost_rounds.as_ref()?;
    let reasons: Vec<String> = (lost.reasons.iter())
        .map(|(reason, count)| format!("{count}: {reason}"))
        .collect();
    let why = match reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", reasons.join("; ")),
    };
    Some(HardCheck {
        name: "lost-rounds".to_owned(),
        violations: lost.count,
        first_position: None,
        words: format!("a round could not be recorded, and is not in the log{why}"),
    })
}

/// What an audit takes for granted of random numbers, in words.
pub(crate) fn of_requests(requests: &RequestsReport) -> Vec<String> {
    let mut notes = Vec::new();
    if requests.averaged > 0 {
        let why = match requests.seeds.as_str() {
            "unknown" => {
                "nothing says whether they drew random numbers of their own. If they did, say \
                 --seeds fresh, or log seed [N] (docs/reference/log-format.md): much less text is then enough"
            }
            "shared" => "--seeds shared says so",
            _ => "their logged seeds are equal",
        };
        notes.push(format!(
            "e-values of {} texts are averaged and not multiplied, because they may share random \
             numbers: {why}",
            requests.averaged
        ));
    }
    if requests.repeated > 0 {
        notes.push(format!(
            "{} texts repeat another one's tokens or ranks, which draws of their own would do with \
             probability below 1e-6: requests share random numbers, or are not sampled",
            requests.repeated
        ));
    }
    notes
}

pub(crate) fn notes(opened: &Opened<'_>, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    if settings.claimed.is_none() && opened.log.metadata().sampling.is_none() {
        notes.push(
            "the log does not say how it was sampled: temperature 1, no cuts; say so with \
             --temperature, --top-k, --top-p, --min-p"
                .to_owned(),
        );
    }
    let is_text = opened.rule == Rule::TEXT;
    if opened.log.is_top_heavy() {
        let how = match is_text {
            true => {
                "p is tested with all others as one token, which is a law that is known exactly"
            }
            false => {
                "draft and output laws are tested with all others as one token, acceptance where \
                 the draft is listed, corrections given that they are listed; each of these laws is \
                 known exactly"
            }
        };
        notes.push(format!("rows list some tokens only: {how}"));
    }
    if !is_text && !opened.log.engine_tensors().contains(&"accepted") {
        notes.push(
            "the log has no tensor accepted: every position is a round of its own, and a draft \
             counts as accepted where it is the output"
                .to_owned(),
        );
    }
    if opened.steps.without_bonus > 0 {
        let all = if opened.steps.never_bonus { "all " } else { "" };
        notes.push(format!(
            "in {all}{} rounds whose drafts were all accepted the token behind them is missing. \
             Where the log leaves it out, give each row its position in the text, or log that \
             token in a row with accepted -1. Where the engine puts out none, a token a round is \
             wasted; what comes out is not biased by it",
            opened.steps.without_bonus
        ));
    }
    let cut = opened.steps.cut;
    if cut > 0 {
        notes.push(format!(
            "{cut} of {} rounds lack the rows of their last tokens, which are in the text by \
             position: such tokens (with transformers, the one behind a whole chain) are not \
             audited",
            opened.steps.rounds
        ));
    }
    notes
}

fn verdict_of(report: &AuditReport, part: Part) -> Outcome {
    let found = report.parts.iter().find(|one| one.part == part.name());
    found.map_or(Outcome::NotTestable, |one| one.verdict)
}

/// The check that no token is drafted twice, where drafts are distinct.
const REPEATED: &str = "draft-repeated";

/// What parts and checks of records say together.
pub(crate) fn conclude(report: &mut AuditReport, rule: Rule, exclude: f64) {
    let broken = |names: &[&str]| {
        let all = report.hard_checks.iter();
        all.filter(|check| names.contains(&check.name.as_str()))
            .any(|check| check.violations > 0)
    };
    let any_check = report.hard_checks.iter().any(|check| check.violations > 0);
    let any_part = report.parts.iter().any(PartReport::is_refuted);
    let off = verdict_of(report, Part::TargetLaw) == Outcome::Refuted && report.fits.is_none();
    let lossy = off || broken(&["target-zero", "text-after-its-end"]);
    // What was tested has to have been able to fail.
    let tested = report
        .parts
        .iter()
        .filter(|one| one.verdict != Outcome::NotTestable);
    let largest = tested
        .map(|one| one.smallest_tv_excluded.unwrap_or(1.0))
        .fold(f64::NEG_INFINITY, f64::max);
    report.conclusion = if lossy && rule.is_lossless() {
        Conclusion::Lossy
    } else if any_part || any_check {
        match report.fits.is_some() {
            true => Conclusion::LosslessOther,
            false => Conclusion::NotTheRule,
        }
    } else if largest > exclude || largest < 0.0 {
        report.open.push(match largest < 0.0 {
            true => "the records are too few to tell anything: log more".to_owned(),
            false => format!(
                "a departure of {largest:.3} in total variation would not have been found, and {exclude} is asked for: log more"
            ),
        });
        Conclusion::Undecided
    } else {
        Conclusion::AsClaimed
    };
    report.ok = !any_part && !any_check;
}

/// The least n with n m - z sqrt(n v) at least what is wanted.
pub(crate) fn positions_for(mean: f64, square: f64, wanted: f64) -> Option<u64> {
    // Growth that small takes more positions than anybody logs, and is not told from none.
    let least = 1e-7;
    let spread = (square - mean * mean).max(0.0).sqrt();
    if mean <= least || mean.is_nan() {
        return None;
    }
    let root = (POWER * spread + (POWER * POWER * spread * spread + 4.0 * mean * wanted).sqrt())
        / (2.0 * mean);
    let positions = (root * root).ceil();
    (positions < 1e12).then_some(positions as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::tests::log;
    use crate::audit::verdict::records::tests::named;
    use crate::audit::{audit, audit_records};

    #[test]
    fn what_no_engine_may_do_is_counted_at_its_place() {
        // Token 1 is cut by the sampler, token 2 has no probability, token 3 is no draft's.
        let made = |least: f64, rest: bool| {
            let (p, q) = ([0.75, 0.0, 0.0, 0.25], [0.5, 0.5, 0.0, 0.0]);
            Pair::made(p, q, [0.6, 0.2, 0.0, 0.2], least, rest)
        };
        // As near as rounding to what is kept; and tokens that are not listed stand in one place.
        let (pair, near, rest) = (made(0.3, false), made(0.21, false), made(0.3, true));
        let (token, distinct) = (Rule::TOKEN, Rule::RRS_WO);
        for (pair, tolerance, rule, drafts, output, expected) in [
            (&pair, 0.0, token, &[0][..], 0, [0; 4]),
            (&pair, 0.0, token, &[0], 3, [0; 4]),
            (&pair, 0.0, token, &[0], 2, [1, 0, 0, 0]),
            (&pair, 0.0, token, &[0], 9, [1, 0, 0, 0]),
            (&pair, 0.0, token, &[0], 1, [0, 1, 0, 0]),
            (&pair, 0.0, token, &[3], 0, [0, 0, 1, 0]),
            // One count for a step, however many of its drafts are impossible.
            (&pair, 0.0, Rule::RRS, &[3, 2, 0], 0, [0, 0, 1, 0]),
            (&pair, 0.0, Rule::RRS, &[0, 1, 0], 0, [0; 4]),
            (&pair, 0.0, distinct, &[0, 1], 0, [0; 4]),
            (&pair, 0.0, distinct, &[0, 1, 0], 0, [0, 0, 0, 1]),
            (&pair, 0.0, Rule::EXACT_MATCH, &[3, 3], 0, [0; 4]),
            (&near, 0.0, token, &[0], 1, [0, 1, 0, 0]),
            (&near, 0.1, token, &[0], 1, [0; 4]),
            (&rest, 0.0, distinct, &[3, 3], 0, [0, 0, 1, 0]),
            (&rest, 0.0, distinct, &[1, 1], 0, [0, 0, 0, 1]),
        ] {
            let step = Step {
                drafts: drafts.to_vec(),
                accepted: false,
                output,
            };
            let mut found = RowChecks::default();
            found.look(rule, pair, &step, tolerance, 7);
            let counts = [
                found.target_zero,
                found.outside,
                found.draft_zero,
                found.repeated,
            ];
            let counts = counts.map(|count| (count.violations, count.first));
            let expected = expected.map(|many| (many, (many > 0).then_some(7)));
            assert_eq!(counts, expected, "{rule} {drafts:?} {output} {tolerance}");
        }
    }

    #[test]
    fn what_row_checks_find_adds_up() {
        let mut one = RowChecks::default();
        one.target_zero.found(5);
        one.repeated.found(9);
        let mut other = RowChecks::default();
        other.target_zero.found(3);
        other.outside.found(1);
        other.draft_zero.found(2);
        one.add(other);
        let listed = |cut: bool| -> Vec<(String, u64, Option<usize>)> {
            let checks = one.list(&Steps::default(), cut);
            let each = checks.into_iter();
            each.map(|one| (one.name, one.violations, one.first_position))
                .collect()
        };
        let named = |name: &str, violations, first| (name.to_owned(), violations, first);
        let mut expected = vec![
            named("target-zero", 2, Some(3)),
            named("draft-zero", 1, Some(2)),
            named("draft-repeated", 1, Some(9)),
            named("accepted-not-emitted", 0, None),
            named("accepted-after-rejection", 0, None),
            named("tokens-missing", 0, None),
            named("text-after-its-end", 0, None),
        ];
        assert_eq!(listed(false), expected);
        expected.insert(1, named("outside-claimed-cut", 1, Some(1)));
        assert_eq!(listed(true), expected);
    }

    /// r = min(1, r p/q) along a round, and 1 where one begins.
    #[test]
    fn how_blocks_are_reached() {
        let row = ([0.5, 0.25, 0.25], [0.8, 0.1, 0.1]);
        let rows = [row; 7];
        let records = [
            ([0, 0], 2, 0),
            ([-1, -1], -1, 0),
            ([-1, -1], -1, 1),
            ([0, 1], 2, 0),
            ([-1, -1], -1, 1),
            ([-1, -1], -1, 2),
            ([1, 1], 0, 2),
        ];
        let log = log(&rows, &records);
        let opened = Opened::new(&log, &Settings::new(Rule::BLOCK), Rule::BLOCK, None).unwrap();
        let r = 0.625;
        let expected = [1.0, r, r * r, 1.0, r, 1.0, 1.0];
        assert_eq!(opened.reach.len(), expected.len());
        for (found, expected) in opened.reach.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{:?}", opened.reach);
        }
        // Other rules do not look.
        let single = Opened::new(&log, &Settings::new(Rule::TOKEN), Rule::TOKEN, None).unwrap();
        assert!(single.reach.is_empty());
        // Rows are spread evenly.
        for (rows, expected) in [
            (1, vec![0]),
            (2, vec![0, 3]),
            (3, vec![0, 2, 4]),
            (7, (0..7).collect()),
        ] {
            let mut seen = Vec::new();
            single
                .for_each_row(rows, |index, pair| {
                    seen.push(index);
                    assert!((pair.p[0] - 0.5).abs() < 1e-6 && (pair.q[0] - 0.8).abs() < 1e-6);
                })
                .unwrap();
            assert_eq!(seen, expected);
        }
    }

    /// How a log says that it was sampled, and what is out of range.
    #[test]
    fn what_is_claimed_of_a_log() {
        let log = log(&[([0.5, 0.25, 0.25], [0.8, 0.1, 0.1])], &[([0, 0], 0, 1)]);
        let with = |change: &dyn Fn(&mut Claimed)| {
            let mut claimed = Claimed::at(0.7);
            change(&mut claimed);
            let settings = Settings {
                claimed: Some(claimed),
                ..Settings::new(Rule::TOKEN)
            };
            claimed_of(&log, &settings).map_err(|error| error.to_string())
        };
        assert_eq!(with(&|_| {}).unwrap(), Claimed::at(0.7));
        let noted = claimed_of(&log, &Settings::new(Rule::TOKEN)).unwrap();
        assert_eq!(noted, Claimed::at(1.0));
        for share in [1.0, 1e-9] {
            assert!(with(&|c| (c.top_p, c.min_p) = (Some(share), Some(share))).is_ok());
        }
        assert!(with(&|c| c.top_k = Some(1)).is_ok());
        type Change = fn(&mut Claimed, f64);
        let temperature: Change = |claimed, t| claimed.temperature = t;
        let of_draft: Change = |claimed, t| claimed.draft_temperature = t;
        let top_k: Change = |claimed, _| claimed.top_k = Some(0);
        let draft_top_k: Change = |claimed, _| claimed.draft_top_k = Some(0);
        let top_p: Change = |claimed, share| claimed.top_p = Some(share);
        let min_p: Change = |claimed, share| claimed.min_p = Some(share);
        for (change, value, words) in [
            (temperature, 0.0, "the temperature is 0: a greedy engine"),
            (of_draft, 0.0, "the draft temperature is 0: a greedy"),
            (temperature, -1.0, "the temperature is -1; it is finite"),
            (
                temperature,
                f64::NAN,
                "the temperature is NaN; it is finite",
            ),
            (of_draft, f64::INFINITY, "the draft temperature is inf; it"),
            (top_k, 0.0, "top-k is 0; it is at least 1"),
            (draft_top_k, 0.0, "draft top-k is 0; it is at least 1"),
            (top_p, 0.0, "top-p is 0; it is above 0"),
            (top_p, 1.5, "top-p is 1.5; it is above 0"),
            (min_p, 0.0, "min-p is 0; it is above 0 and at most 1"),
            (min_p, 1.0000001, "min-p is 1.0000001; it is"),
            (min_p, f64::NAN, "min-p is NaN; it is above 0"),
        ] {
            let message = with(&|claimed| change(claimed, value)).unwrap_err();
            let is_named = message.contains(words) && message.contains("made.safetensors");
            assert!(is_named, "{message}");
        }
    }

    /// The root of n m - z sqrt(n v) = wanted, rounded up.
    #[test]
    fn positions_that_are_needed() {
        assert_eq!(positions_for(0.5, 0.25, 8.0), Some(16));
        assert_eq!(positions_for(0.5, 0.25, 8.1), Some(17));
        // Up to a million millions, and no more.
        let mean = 2f64.powi(-20);
        let most = |positions: f64| positions_for(mean, mean * mean, positions * mean);
        assert_eq!(most(999_998_000_001.0), Some(999_998_000_001));
        assert_eq!(most(1e12), None);
        for (mean, square, wanted) in [(0.1, 0.5, 15.0), (0.01, 0.09, 20.0), (2.0, 5.0, 7.0)] {
            let spread = f64::sqrt(square - mean * mean);
            let enough = |n: f64| n * mean - 2.326_347_874_040_841 * spread * n.sqrt() >= wanted;
            let n = positions_for(mean, square, wanted).unwrap() as f64;
            assert!(
                enough(n) && !enough(n - 1.0),
                "{mean} {square} {wanted}: {n}"
            );
        }
        // Less spread than none is rounding, and no growth takes for ever.
        assert_eq!(positions_for(0.5, 0.2499, 8.0), Some(16));
        for mean in [0.0, -0.1, 1e-7, f64::NAN] {
            assert_eq!(positions_for(mean, 1.0, 10.0), None, "{mean}");
        }
        assert_eq!(positions_for(2e-7, 1.0, 10.0), None);
        assert!(positions_for(2e-7, 0.0, 10.0).is_some_and(|n| n >= 50_000_000));
    }

    fn report(verdicts: [Outcome; 4], broken: Option<&str>) -> AuditReport {
        let settings = Settings::new(Rule::TOKEN);
        let mut report = audit_records(&named(Vec::new()), &settings, "").unwrap();
        for (part, verdict) in report.parts.iter_mut().zip(verdicts) {
            part.verdict = verdict;
        }
        report.hard_checks = RowChecks::default().list(&Steps::default(), true);
        for check in &mut report.hard_checks {
            check.violations = u64::from(Some(check.name.as_str()) == broken);
        }
        report
    }

    #[test]
    fn what_parts_and_checks_say_together() {
        use Conclusion::{AsClaimed, Lossy, NotTheRule, Undecided};
        use Outcome::{Consistent as C, NotTestable as N, Refuted as R};
        let another = Conclusion::LosslessOther;
        let lossy = Rule::threshold(0.5).unwrap();
        let token = Rule::TOKEN;
        let cut = Some("outside-claimed-cut");
        let (zero, undrafted) = (Some("target-zero"), Some("draft-zero"));
        let ended = Some("text-after-its-end");
        for (rule, verdicts, broken, fits, expected) in [
            (token, [C; 4], None, false, AsClaimed),
            (token, [N; 4], None, false, Undecided),
            (token, [N, N, N, C], None, false, AsClaimed),
            (token, [R, C, C, C], None, false, NotTheRule),
            (token, [C, C, R, C], None, true, another),
            // What comes out is off given how rounds went, and not given the text.
            (token, [R, R, C, R], None, true, another),
            (token, [R, R, C, R], None, false, Lossy),
            (token, [C; 4], cut, true, another),
            (lossy, [C, C, C, R], None, false, NotTheRule),
            (lossy, [R, C, C, N], None, false, NotTheRule),
            (lossy, [C; 4], None, false, AsClaimed),
            (token, [C; 4], zero, false, Lossy),
            (token, [N; 4], cut, false, NotTheRule),
            (token, [C; 4], ended, false, Lossy),
            (token, [C; 4], undrafted, false, NotTheRule),
            (lossy, [C; 4], zero, false, NotTheRule),
        ] {
            let mut report = report(verdicts, broken);
            report.fits = fits.then(|| "one-hot".to_owned());
            let tested = report.parts.iter_mut().filter(|one| one.verdict == C);
            tested.for_each(|one| one.smallest_tv_excluded = Some(0.04));
            conclude(&mut report, rule, 0.05);
            assert_eq!(
                report.conclusion, expected,
                "{rule} {verdicts:?} {broken:?}"
            );
            let fine = !verdicts.contains(&R) && broken.is_none();
            assert_eq!(report.ok, fine, "{rule} {verdicts:?} {broken:?}");
        }
        // What is excluded has to be below what is asked for.
        let mut report = report([C; 4], None);
        report
            .parts
            .iter_mut()
            .for_each(|one| one.smallest_tv_excluded = Some(0.06));
        conclude(&mut report, token, 0.05);
        assert_eq!((report.conclusion, report.ok), (Undecided, true));
        assert!(
            report.open.iter().any(|one| one.contains("0.06")),
            "{:?}",
            report.open
        );
    }

    /// One position of a rule that is lossy, and what is noted of it.
    #[test]
    fn a_report_says_how_lossy_a_rule_is_and_what_it_took_for_granted() {
        let rows = [([0.5, 0.25, 0.25], [0.8, 0.1, 0.1])];
        let log = log(&rows, &[([0, -1], 1, 0)]);
        let of = |rule: Rule| audit(&log, &Settings::new(rule), "", &|_| {}).unwrap();
        // Token 0 is kept with 0.8, and comes out with that: 0.3 more than it should.
        let lossy = of(Rule::threshold(0.625).unwrap()).lossy_by_design.unwrap();
        assert!((lossy - 0.3).abs() < 1e-6, "{lossy}");
        assert_eq!(of(Rule::TOKEN).lossy_by_design, None);
        assert!(of(Rule::TOKEN).notes.is_empty());
        let silent = crate::audit::tests::log_of(&rows, &[([0, -1], 1, 0)], "{}");
        let mut settings = Settings::new(Rule::TOKEN);
        let note = "the log does not say how it was sampled";
        let notes = |settings: &Settings| audit(&silent, settings, "", &|_| {}).unwrap().notes;
        assert!(matches!(&notes(&settings)[..], [one] if one.starts_with(note)));
        settings.claimed = Some(Claimed::at(1.0));
        assert!(notes(&settings).is_empty());
    }

    #[test]
    fn how_far_outputs_are_from_the_target() {
        let at = Position::new(&[0.5, 0.3, 0.2], &[0.2, 0.2, 0.6]);
        // 2 is kept with 0.2/0.5, and replaced by p without it: 0.2 more than it should.
        let off = output_tv(Rule::threshold(0.5).unwrap(), &Engine::HONEST, &at).unwrap();
        assert!((off - 0.2).abs() < 1e-15, "{off}");
        assert!(output_tv(Rule::TOKEN, &Engine::HONEST, &at).unwrap() < 1e-15);
        assert_eq!(output_tv(Rule::EXACT_MATCH, &Engine::HONEST, &at), None);
    }

    #[test]
    fn levels_and_tolerances_out_of_range_are_refused() {
        for (tolerance, alpha, fits) in [
            (0.0, 0.01, true),
            (0.499, 0.999, true),
            (0.5, 0.01, false),
            (-1e-9, 0.01, false),
            (f64::NAN, 0.01, false),
            (0.0, 0.0, false),
            (0.0, 1.0, false),
            (0.0, -0.5, false),
            (0.0, 2.0, false),
            (0.0, f64::NAN, false),
        ] {
            let settings = Settings {
                tolerance,
                alpha,
                ..Settings::new(Rule::TOKEN)
            };
            let found = check_settings(&settings);
            assert_eq!(found.is_ok(), fits, "{tolerance} {alpha}");
            let found = audit_records(&named(Vec::new()), &settings, "");
            assert_eq!(found.is_ok(), fits, "{tolerance} {alpha}");
        }
    }
}
