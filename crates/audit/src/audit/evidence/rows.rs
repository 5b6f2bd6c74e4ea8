//! Rows of a log as the laws that an engine claims to draw from.

use crate::audit::data::Claimed;
use crate::audit::evidence::order::Order;
use crate::audit::model::engine::{Position, get};
use crate::audit::model::rule::Rule;
use crate::audit::{AuditError, refused_at};
use specgap_log::log::{Log, Row, RowKind, UnlistedTokens};
use specgap_number::distribution::Softmax;
use specgap_sampling::{Cut, Cuts, Lists, probabilities};
use std::collections::BTreeMap;

/// A token that the sampler should have cut is forgiven if it is this near to the last one that is
/// kept, in nats for each unit of noise: two passes of a model may order them otherwise.
const SLACK: f64 = 3.0 * std::f64::consts::SQRT_2;

/// A position's rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pair {
    /// p as it is sampled from.
    pub p: Vec<f64>,
    /// q as drafts are drawn from.
    pub q: Vec<f64>,
    /// p before top-k, top-p and min-p.
    pub whole: Vec<f64>,
    /// The smallest probability of `whole` that is kept.
    pub least: f64,
    /// The last entry stands for all tokens that are not listed.
    pub rest: bool,
    /// Equal tokens stand at the end of a cut, and a sampler may keep some of them alone.
    pub tied: bool,
    /// The log has no row of the draft; q is p, for nothing is drafted there.
    pub lacks_draft: bool,
    /// What the log's mask allows; empty where it has none.
    pub allowed: Vec<bool>,
    /// Raw logits of the target; empty where the log has none, or lists some tokens only.
    pub logits: Vec<f64>,
    places: BTreeMap<u32, usize>,
}

impl Pair {
    /// Rows of which `whole` was cut to p, with all tokens in their places.
    #[cfg(test)]
    pub(crate) fn made(p: [f64; 4], q: [f64; 4], whole: [f64; 4], least: f64, rest: bool) -> Self {
        let [p, q, whole] = [p, q, whole].map(Vec::from);
        Self {
            p,
            q,
            whole,
            least,
            rest,
            ..Self::default()
        }
    }

    /// These rows, where a round begins.
    pub(crate) fn position(&self) -> Position<'_> {
        Position {
            rest: self.rest,
            ..Position::new(&self.p, &self.q)
        }
    }

    /// Finds where a token stands.
    pub(crate) fn place(&self, token: u32) -> usize {
        if !self.rest && self.places.is_empty() {
            return token as usize;
        }
        (self.places.get(&token).copied()).unwrap_or(self.p.len().saturating_sub(1))
    }

    /// The token of a place, where one stands alone.
    pub(crate) fn token(&self, place: usize) -> Option<u32> {
        if !self.rest {
            return u32::try_from(place).ok();
        }
        let mut places = self.places.iter();
        places.find(|(_, own)| **own == place).map(|(id, _)| *id)
    }

    /// The tokens of a list that stand alone, with their p.
    pub(crate) fn alone(&self) -> impl Iterator<Item = (usize, f64)> {
        let places = self.places.iter();
        places.map(|(id, place)| (*id as usize, get(&self.p, *place)))
    }

    /// Lets those listed tokens alone stand alone that are the `tops` likeliest of p, or of q, and adds the others to
    /// the last entry: what is listed because it was drafted, or came out, would tell what was. Equals of the last
    /// stand alone too.
    pub(crate) fn gather(&mut self, ids: impl Iterator<Item = u32>, tops: [usize; 2]) {
        let end = |row: &[f64], top: usize| {
            let listed = row.split_last().map_or(&[][..], |(_, listed)| listed);
            match (top.checked_sub(1), listed.len() > top) {
                (None, _) => f64::INFINITY,
                (_, false) => 0.0,
                (Some(last), true) => {
                    let mut falling = listed.to_vec();
                    falling.sort_unstable_by(|a, b| b.total_cmp(a));
                    get(&falling, last)
                }
            }
        };
        let ends = [end(&self.p, tops[0]), end(&self.q, tops[1])];
        self.places.clear();
        let mut others = [0.0; 2];
        let mut kept: Vec<[f64; 2]> = Vec::new();
        for ((id, p), q) in ids.zip(&self.p).zip(&self.q) {
            if *p >= ends[0] || *q >= ends[1] {
                self.places.insert(id, kept.len());
                kept.push([*p, *q]);
            } else {
                others = [others[0] + p, others[1] + q];
            }
        }
        for (model, row) in [&mut self.p, &mut self.q].into_iter().enumerate() {
            let mass = row.last().copied().unwrap_or(0.0);
            row.clear();
            row.extend(kept.iter().map(|both| both[model]));
            row.push(mass + others[model]);
        }
        self.rest = true;
    }

    /// Tells whether a place stands for tokens that are not listed.
    pub(crate) fn is_rest(&self, place: usize) -> bool {
        self.position().is_rest(place)
    }

    /// The listed of some places, in order and each once.
    pub(crate) fn listed_once(&self, mut places: Vec<usize>) -> Vec<usize> {
        places.retain(|place| !self.is_rest(*place));
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Tells whether the log's mask forbids a token.
    pub(crate) fn is_masked(&self, place: usize) -> bool {
        self.allowed.get(place).is_some_and(|allowed| !allowed)
    }

    /// Takes masked tokens out of p, and of q if it is masked too.
    fn mask(&mut self, both: bool) -> Result<(), String> {
        if self.allowed.is_empty() {
            return Ok(());
        }
        let of_draft = both || self.lacks_draft;
        let rows = [("target", &mut self.p), ("draft", &mut self.q)];
        for (model, row) in rows.into_iter().take(1 + usize::from(of_draft)) {
            for (x, allowed) in row.iter_mut().zip(&self.allowed) {
                if !allowed {
                    *x = 0.0;
                }
            }
            // Rows whose mass is elsewhere have no law to be held against.
            if !specgap_core::rule::normalise(row) {
                return Err(format!(
                    "allowed masks every token that the {model}'s row gives mass; compare the mask \
                     with the text before this position: masks that are off by one do this"
                ));
            }
        }
        Ok(())
    }

    /// Tells whether a token is outside of what top-k, top-p and min-p keep, beyond rounding.
    pub(crate) fn is_outside(&self, place: usize, noise: f64) -> bool {
        let slack = (-SLACK * noise).exp();
        let whole = get(&self.whole, place);
        get(&self.p, place) <= 0.0 && whole > 0.0 && whole < slack * self.least
    }
}

/// How many listed tokens of p and of q are the likeliest whatever came out, as the log says it. Where it says
/// nothing, half of the shortest list is: of one list for both models half is of either.
pub(crate) fn tops(log: &Log) -> Result<[usize; 2], AuditError> {
    let said = log.metadata();
    if !log.is_top_heavy() || said.unlisted == Some(UnlistedTokens::NeverDrawn) {
        return Ok([usize::MAX; 2]);
    }
    let own = log.has_own_lists().then_some([usize::MAX; 2]);
    if let Some(tops) = said.tops().or(own) {
        return Ok(tops);
    }
    let (mut row, mut least) = (Row::default(), usize::MAX);
    for span in log.spans(64) {
        let chunk = log.chunk(&span)?;
        for index in chunk.positions() {
            chunk.read(index, &mut row)?;
            least = least.min(row.token_ids.len());
        }
    }
    Ok([least / 2; 2])
}

/// Reads rows at the claimed settings.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    log: &'a Log,
    claimed: &'a Claimed,
    tops: [usize; 2],
    rest: Option<usize>,
    /// A text alone is audited by the target's rows, whatever they list.
    text: Option<Option<Lists>>,
    /// Positions are numbered in this order, or as the log has them.
    pub order: Option<&'a Order>,
    row: Row,
    logits: Vec<f64>,
}

impl<'a> Reader<'a> {
    /// The row that was read last.
    pub(crate) fn row(&self) -> &Row {
        &self.row
    }

    /// `tops` are those of [`tops`].
    pub(crate) fn new(
        log: &'a Log,
        claimed: &'a Claimed,
        rule: Rule,
        tops: [usize; 2],
    ) -> Result<Self, AuditError> {
        if log.has_masks() && log.is_top_heavy() {
            return Err(AuditError::Log(format!(
                "{}: rows list some tokens only, and how much of the others' mass allowed leaves is \
                 not known; log full rows, or rows as they were sampled from and no masks",
                log.path().display()
            )));
        }
        let mut reader = Self {
            log,
            claimed,
            tops,
            rest: None,
            text: None,
            order: None,
            row: Row::default(),
            logits: Vec::new(),
        };
        if rule == Rule::TEXT {
            // The message names the log.
            reader.text = Some(Lists::new(log).map_err(AuditError::Log)?);
            return Ok(reader);
        }
        if log.has_own_lists() {
            return Err(AuditError::Log(format!(
                "{}: target and draft list tokens of their own, so that p or q of many is known \
                 between bounds only, and a bet on a guess proves nothing; log full rows, or one \
                 list for both with the mass of the others",
                log.path().display()
            )));
        }
        let known = &log.metadata().rest_temperatures;
        if log.is_top_heavy() {
            let wanted = claimed.temperature;
            reader.rest = known.iter().position(|t| *t == wanted);
            if claimed.draft_temperature != wanted || reader.rest.is_none() {
                return Err(AuditError::Log(format!(
                    "{}: rows list some tokens only, with the mass of the others at temperatures \
                     {known:?}, and the audit is at {:?} (target, draft): what is not listed \
                     would be guessed; log full rows, or the rest masses at one temperature for \
                     both",
                    log.path().display(),
                    [wanted, claimed.draft_temperature]
                )));
            }
        }
        Ok(reader)
    }

    /// One position. O(V), with top-k, top-p or min-p O(V log V).
    pub(crate) fn read(
        &mut self,
        chunk: &specgap_log::log::Chunk<'_>,
        index: usize,
        pair: &mut Pair,
    ) -> Result<(), AuditError> {
        let index = match self.order.filter(|order| !order.is_own()) {
            None => {
                chunk.read(index, &mut self.row)?;
                index
            }
            Some(order) => {
                self.log.read(order.at(index), &mut self.row)?;
                order.at(index)
            }
        };
        pair.lacks_draft = self.row.lacks_draft;
        if let Some(lists) = &self.text
            && !self.row.token_ids.is_empty()
        {
            return (self.listed(lists.as_ref(), pair))
                .and_then(|()| finish(pair, self.claimed))
                .map_err(|message| refused_at(self.log, index, message));
        }
        let row = &self.row;
        let (draft, draft_kind, draft_rest) = match row.lacks_draft {
            false => (&row.draft, row.draft_kind, &row.draft_rest),
            true => (&row.target, row.target_kind, &row.target_rest),
        };
        let applied = self.log.metadata().applied();
        let refused = |error: specgap_number::distribution::DistributionError| {
            refused_at(self.log, index, error.to_string())
        };
        let (claimed, target_kind) = (self.claimed, row.target_kind);
        let temperatures = [claimed.temperature, claimed.draft_temperature];
        let rows = [
            (&row.target, target_kind, &mut pair.p),
            (draft, draft_kind, &mut pair.q),
        ];
        for ((entries, kind, out), temperature) in rows.into_iter().zip(temperatures) {
            let rule = Softmax {
                temperature: temperature / applied,
            };
            probabilities(entries, kind, &rule, &mut self.logits, out).map_err(refused)?;
        }
        pair.logits.clear();
        if row.target_kind == RowKind::Logits && row.token_ids.is_empty() {
            pair.logits.extend(&row.target);
        }
        pair.places.clear();
        pair.rest = !row.token_ids.is_empty();
        if pair.rest {
            for (out, rest) in [(&mut pair.p, &row.target_rest), (&mut pair.q, draft_rest)] {
                let Some(mass) = self.rest.and_then(|column| rest.get(column)).copied() else {
                    return Err(refused_at(
                        self.log,
                        index,
                        "lists some tokens only, without the mass of the others; log full rows, or \
                         target_rest and draft_rest"
                            .to_owned(),
                    ));
                };
                out.iter_mut().for_each(|x| *x *= 1.0 - mass);
                out.push(mass);
            }
            let [target, draft] = self.tops;
            let tops = match row.token_ids.len() >= self.log.vocabulary() {
                true => [usize::MAX; 2],
                false => [target, if row.lacks_draft { target } else { draft }],
            };
            pair.gather(row.token_ids.iter().copied(), tops);
        }
        self.log.allowed(index, &mut pair.allowed)?;
        (pair
            .mask(claimed.draft_mask)
            .and_then(|()| finish(pair, claimed)))
        .map_err(|message| refused_at(self.log, index, message))
    }

    /// The target's list, and all other tokens as one.
    fn listed(&self, lists: Option<&Lists>, pair: &mut Pair) -> Result<(), String> {
        let row = &self.row;
        let rule = Softmax {
            temperature: self.claimed.temperature / self.log.metadata().applied(),
        };
        let (entries, kind) = (&row.target, row.target_kind);
        let mut shares = Vec::new();
        probabilities(entries, kind, &rule, &mut Vec::new(), &mut shares)
            .map_err(|error| error.to_string())?;
        let mass = match lists {
            None => 0.0,
            Some(lists) => {
                let [target, _] = lists.unlisted(row, self.claimed.temperature);
                if !target.is_known() {
                    return Err(format!(
                        "lists some tokens only, and the mass of the others is not known at \
                         temperature {:?}: log it in target_rest with rest_temperatures, or list \
                         log probabilities at that temperature",
                        self.claimed.temperature
                    ));
                }
                target.middle()
            }
        };
        let own = row.token_ids.iter().zip(&shares);
        let own = own.filter(|(_, share)| !share.is_nan());
        pair.p.clear();
        pair.p
            .extend(own.clone().map(|(_, share)| share * (1.0 - mass)));
        let all = pair.p.len() >= self.log.vocabulary();
        pair.p.push(mass);
        pair.q.clone_from(&pair.p);
        let top = if all { usize::MAX } else { self.tops[0] };
        pair.gather(own.map(|(id, _)| *id), [top; 2]);
        Ok(())
    }
}

/// Cuts rows that are read as it is claimed.
fn finish(pair: &mut Pair, claimed: &Claimed) -> Result<(), String> {
    pair.whole.clone_from(&pair.p);
    pair.tied = false;
    if claimed.cuts() {
        pair.tied = cut(&mut pair.p, claimed, pair.rest)?;
    }
    if let Some(own) = claimed.of_draft() {
        pair.tied |= cut(&mut pair.q, &own, pair.rest)?;
    }
    let kept = pair.whole.iter().zip(&pair.p).filter(|(_, p)| **p > 0.0);
    pair.least = kept.fold(f64::INFINITY, |least, (whole, _)| least.min(*whole));
    Ok(())
}

/// Keeps what the claimed cuts keep, in their order, and renormalises; tells whether fewer of the
/// tokens that are as likely as the last would do. Ties at an end are all kept. The row is at the
/// claimed temperature; its last entry may stand for what is not listed.
pub(crate) fn cut(row: &mut [f64], claimed: &Claimed, rest: bool) -> Result<bool, String> {
    let t = claimed.temperature;
    let cuts = claimed.kept().at(t);
    let (own, last) = row.split_at(row.len() - usize::from(rest));
    let mut sorted = own.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let outside = last.first().copied().unwrap_or(0.0);
    // At the temperature of the cuts: a row at 1 is one at t to the power of t.
    let is_last = cuts.order().temperature_last();
    let weights: Vec<f64> = match is_last {
        true => sorted.iter().map(|x| x.powf(t)).collect(),
        false => sorted.clone(),
    };
    let mut keep = sorted.len();
    let mut beyond = rest;
    // A top-p that needs more tokens than are listed, unless a later cut does not.
    let mut lacking = None;
    for cut in cuts.in_order() {
        let outside = match (beyond, is_last && outside > 0.0) {
            (false, _) => 0.0,
            (true, false) => outside,
            // What many tokens have at another temperature is not known.
            (true, true) => f64::NAN,
        };
        let kept = cut.keep(keep, outside, |rank| {
            weights.get(rank).copied().unwrap_or(0.0)
        });
        keep = match (cut, kept) {
            (Cut::TopK(k), _) if beyond && k > keep => {
                return Err(format!(
                    "top-k {k} needs more tokens than the {keep} that are listed"
                ));
            }
            (Cut::TopP(p), None) if outside.is_nan() => {
                return Err(format!(
                    "top-p {p} comes before the temperature, and what others than the listed \
                     tokens have at temperature 1 is not known; log full rows"
                ));
            }
            (Cut::TopP(p), None) => {
                lacking = Some(format!("top-p {p} needs more tokens than are listed"));
                continue;
            }
            (Cut::MinP(share), Some(kept)) if beyond && kept == keep => {
                return Err(format!("min-p {share} needs more tokens than are listed"));
            }
            (_, kept) => kept.unwrap_or(keep),
        };
        (beyond, lacking) = (false, None);
    }
    if let Some(lacking) = lacking {
        return Err(lacking);
    }
    let least = sorted.get(keep.saturating_sub(1)).copied().unwrap_or(0.0);
    let is_tied = least > 0.0 && sorted.get(keep) == Some(&least);
    row.iter_mut()
        .filter(|x| **x < least)
        .for_each(|x| *x = 0.0);
    if rest
        && !beyond
        && let Some(last) = row.last_mut()
    {
        *last = 0.0;
    }
    specgap_core::rule::normalise(row);
    Ok(is_tied)
}

/// Lists the claim in each other order of its cuts that can keep other tokens; none if the order of
/// its cuts does not matter.
pub(crate) fn orders_of(claimed: &Claimed) -> Vec<Claimed> {
    let others = claimed.kept().others(claimed.temperature);
    let claim = |cuts: Cuts| Claimed {
        cut_order: cuts.cut_order,
        ..claimed.clone()
    };
    others.map(claim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    use safetensors::tensor::{Dtype, TensorView};

    /// One position of two tokens of nine, three to one in the target and one to four in the
    /// draft, with what the others hold at two temperatures.
    fn lists(applied: f64, tensors: &[&str]) -> Log {
        let floats = |all: [f64; 2]| all.map(f64::to_le_bytes).concat();
        let ids: Vec<u8> = [1i32, 4].map(i32::to_le_bytes).concat();
        let (p, q) = (floats([3f64.ln(), 0.0]), floats([0.0, 4f64.ln()]));
        let (p_rest, q_rest) = (floats([0.2, 0.1]), floats([0.5, 0.375]));
        let all: Vec<_> = [
            ("token_ids", Dtype::I32, &ids),
            ("target_logits", Dtype::F64, &p),
            ("draft_logits", Dtype::F64, &q),
            ("target_rest", Dtype::F64, &p_rest),
            ("draft_rest", Dtype::F64, &q_rest),
        ]
        .into_iter()
        .filter(|(name, ..)| !name.ends_with("_rest") || tensors.contains(name))
        .map(|(name, kind, data)| (name, TensorView::new(kind, vec![1, 2], data).unwrap()))
        .collect();
        let metadata = format!(
            r#"{{"temperature_applied": {applied}, "rest_temperatures": [1.0, 0.5], "vocabulary": 9}}"#
        );
        let metadata = std::collections::HashMap::from([("specgap".to_owned(), metadata)]);
        let bytes = safetensors::serialize(all, Some(metadata)).unwrap();
        Log::from_bytes("lists.safetensors".as_ref(), bytes.into()).unwrap()
    }

    const BOTH: [&str; 2] = ["target_rest", "draft_rest"];

    /// The first position at these settings.
    fn read(log: &Log, claimed: &Claimed) -> Result<Pair, String> {
        let words = |error: AuditError| error.to_string();
        let mut reader = Reader::new(log, claimed, Rule::TOKEN, [2; 2]).map_err(words)?;
        let mut pair = Pair::default();
        let chunk = log.chunk(&log.spans_of(0..1, 1)[0]).unwrap();
        reader.read(&chunk, 0, &mut pair).map_err(words)?;
        Ok(pair)
    }

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (x, y) in found.iter().zip(expected) {
            assert!((x - y).abs() < 1e-6, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn lists_are_read_with_what_they_leave_out() {
        let log = lists(1.0, &BOTH);
        let pair = read(&log, &Claimed::at(1.0)).unwrap();
        near(&pair.p, &[0.6, 0.2, 0.2]);
        near(&pair.q, &[0.1, 0.4, 0.5]);
        assert_eq!(pair.whole, pair.p);
        assert!(pair.rest && pair.least == pair.p[1]);
        assert_eq!([1, 4, 0].map(|token| pair.place(token)), [0, 1, 2]);
        // Squares, and the second column.
        let pair = read(&log, &Claimed::at(0.5)).unwrap();
        near(&pair.p, &[0.81, 0.09, 0.1]);
        near(&pair.q, &[0.625 / 17.0, 10.0 / 17.0, 0.375]);
        // A log of logits that were divided by 1/2 has the squares already.
        let pair = read(&lists(0.5, &BOTH), &Claimed::at(0.5)).unwrap();
        near(&pair.p, &[0.675, 0.225, 0.1]);
        // The target alone is cut, or both.
        let mut cut = Claimed::at(1.0);
        cut.top_k = Some(1);
        let pair = read(&log, &cut).unwrap();
        near(&pair.p, &[1.0, 0.0, 0.0]);
        near(&pair.whole, &[0.6, 0.2, 0.2]);
        near(&pair.q, &[0.1, 0.4, 0.5]);
        assert_eq!(pair.least, pair.whole[0]);
        cut.draft_cut = true;
        near(&read(&log, &cut).unwrap().q, &[0.0, 1.0, 0.0]);
        // More than is listed.
        cut.top_k = Some(3);
        let message = read(&log, &cut).unwrap_err();
        assert!(message.contains("top-k 3 needs more tokens"), "{message}");
    }

    #[test]
    fn what_lists_leave_out_is_not_guessed() {
        let log = lists(1.0, &BOTH);
        for (target, draft) in [(1.0, 0.5), (0.5, 1.0), (0.7, 0.7)] {
            let mut claimed = Claimed::at(target);
            claimed.draft_temperature = draft;
            let message = read(&log, &claimed).unwrap_err();
            let named = format!("[1.0, 0.5], and the audit is at {:?}", [target, draft]);
            assert!(message.contains(&named), "{message}");
            assert!(message.contains("lists.safetensors"), "{message}");
        }
        for one in BOTH {
            let message = read(&lists(1.0, &[one]), &Claimed::at(1.0)).unwrap_err();
            let words = "without the mass of the others";
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn full_rows_are_read_at_two_temperatures() {
        let rows = [([0.5, 0.375, 0.125], [0.25, 0.25, 0.5])];
        let log = crate::audit::tests::log(&rows, &[([-1, -1], -1, 0)]);
        let mut claimed = Claimed::at(1.0);
        claimed.draft_temperature = 0.5;
        let pair = read(&log, &claimed).unwrap();
        near(&pair.p, &[0.5, 0.375, 0.125]);
        near(&pair.q, &[1.0 / 6.0, 1.0 / 6.0, 2.0 / 3.0]);
        assert!(!pair.rest && pair.places.is_empty());
        assert!((pair.least - 0.125).abs() < 1e-6);
        let cut = Claimed {
            top_p: Some(0.6),
            ..claimed.clone()
        };
        let pair = read(&log, &cut).unwrap();
        near(&pair.p, &[4.0 / 7.0, 3.0 / 7.0, 0.0]);
        near(&pair.q, &[1.0 / 6.0, 1.0 / 6.0, 2.0 / 3.0]);
        assert!((pair.least - 0.375).abs() < 1e-6);
        let both = Claimed {
            draft_cut: true,
            ..cut
        };
        near(&read(&log, &both).unwrap().q, &[0.0, 0.0, 1.0]);
        // The draft's row alone, behind its own temperature.
        let drafts = Claimed {
            draft_top_k: Some(1),
            ..claimed
        };
        let pair = read(&log, &drafts).unwrap();
        near(&pair.p, &[0.5, 0.375, 0.125]);
        near(&pair.q, &[0.0, 0.0, 1.0]);
    }

    #[test]
    fn cuts_are_those_of_samplers() {
        let row = [0.05, 0.4, 0.3, 0.15, 0.1];
        let cut_by = |top_k, top_p, min_p, rest| {
            let claimed = Claimed {
                top_k,
                top_p,
                min_p,
                ..Claimed::at(1.0)
            };
            let mut out = row;
            cut(&mut out, &claimed, rest).map(|_| out)
        };
        for (top_k, top_p, min_p, kept) in [
            (Some(2), None, None, &[1, 2][..]),
            (None, Some(0.7), None, &[1, 2]),
            (None, Some(0.71), None, &[1, 2, 3]),
            (None, None, Some(0.3), &[1, 2, 3]),
            (Some(4), Some(0.8), Some(0.5), &[1, 2]),
            // An end itself is kept.
            (None, None, Some(0.25), &[1, 2, 3, 4]),
            (None, None, Some(0.2501), &[1, 2, 3]),
            (None, Some(1.0), None, &[0, 1, 2, 3, 4]),
            (Some(9), None, None, &[0, 1, 2, 3, 4]),
            (Some(1), None, None, &[1]),
            (None, Some(1e-9), None, &[1]),
            // Top-p of what top-k left: half of 0.7 is in the first.
            (Some(2), Some(0.5), None, &[1]),
        ] {
            let out = cut_by(top_k, top_p, min_p, false).unwrap();
            let found: Vec<usize> = (0..5).filter(|&i| out[i] > 0.0).collect();
            assert_eq!(found, kept, "{top_k:?} {top_p:?} {min_p:?}");
            assert!((out.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // The last entry is what is not listed.
        assert_eq!(cut_by(Some(4), None, None, true).unwrap()[4], 0.0);
        assert!(cut_by(Some(5), None, None, true).is_err());
        assert!(cut_by(None, Some(0.95), None, true).is_err());
        // A token that is not listed may be as likely as the last one that is, 0.05, and no
        // likelier: min-p keeps none of them above 0.05/0.4.
        assert!(cut_by(None, None, Some(0.125), true).is_err());
        let out = cut_by(None, None, Some(0.13), true).unwrap();
        assert_eq!((out[0], out[4]), (0.0, 0.0));
        assert!(out[3] > 0.17 && (out.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // 0.86 of all, what is not listed included, takes the four.
        let out = cut_by(None, Some(0.86), None, true).unwrap();
        assert!(out[0] > 0.0 && out[4] == 0.0);
        // Equals of an end are kept with it.
        let mut equal = [0.25; 4];
        let mut two = Claimed::at(1.0);
        two.top_k = Some(2);
        assert!(cut(&mut equal, &two, false).unwrap());
        assert_eq!(equal, [0.25; 4]);
        two.top_k = Some(4);
        assert!(!cut(&mut equal, &two, false).unwrap());
        // Without a cut the rest stays.
        let out = cut_by(None, None, None, true).unwrap();
        assert!((out[4] - 0.1).abs() < 1e-15);
        // Behind a top-k nothing that is not listed is kept.
        let out = cut_by(Some(3), None, Some(0.1), true).unwrap();
        assert_eq!((out[0], out[4]), (0.0, 0.0));
    }

    /// Each order by what it says, step by step, on a row of which nothing is left out.
    #[test]
    fn claims_are_cut_in_their_order() {
        let row: [f64; 5] = [0.05, 0.4, 0.3, 0.15, 0.1];
        let at = |temperature: f64| {
            let weights = row.map(|x| x.powf(1.0 / temperature));
            let sum: f64 = weights.iter().sum();
            weights.map(|x| x / sum)
        };
        let claimed = |order: &str, temperature: f64| Claimed {
            top_k: Some(3),
            top_p: Some(0.8),
            min_p: Some(0.3),
            cut_order: Some(order.parse().unwrap()),
            ..Claimed::at(temperature)
        };
        let kept = |order: &str, temperature: f64, rest: bool| {
            let mut row = at(temperature);
            cut(&mut row, &claimed(order, temperature), rest).ok()?;
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            Some((0..5).filter(|&i| row[i] > 0.0).collect::<Vec<usize>>())
        };
        let two = Some(vec![1, 2]);
        let three = Some(vec![1, 2, 3]);
        // 0.7 of all is not 0.8; it is of the three first's 0.85.
        assert_eq!(kept("joint", 1.0, false), three);
        assert_eq!(kept("k,p,m", 1.0, false), two);
        assert_eq!(kept("m,p,k", 1.0, false), two);
        assert_eq!(kept("joint,T", 2.0, false), three);
        assert_eq!(kept("k,p,m,T", 2.0, false), two);
        assert_eq!(kept("k,p,m", 2.0, false), three);
        // The law is that of the temperature either way.
        let mut out = at(2.0);
        cut(&mut out, &claimed("llama.cpp", 2.0), false).unwrap();
        let [_, first, second, ..] = row.map(f64::sqrt);
        let both = first + second;
        near(&out, &[0.0, first / both, second / both, 0.0, 0.0]);
        // What is not listed counts where the top-p comes first, and is not known elsewhere.
        assert_eq!(kept("joint", 1.0, true), three);
        assert_eq!(kept("k,p,m,T", 2.0, true), two);
        assert_eq!(kept("joint,T", 2.0, true), None);
        // Without a rest at all, nothing is missing.
        let mut listed = [0.5, 0.3, 0.2, 0.0];
        assert!(cut(&mut listed, &claimed("joint,T", 2.0), true).is_ok());
    }

    #[test]
    fn other_orders_are_those_that_can_differ() {
        let others = |top_k, top_p, order: &str, temperature| {
            let claimed = Claimed {
                top_k,
                top_p,
                cut_order: (!order.is_empty()).then(|| order.parse().unwrap()),
                draft_cut: true,
                ..Claimed::at(temperature)
            };
            let orders = orders_of(&claimed).into_iter().map(|one| {
                assert!(one.draft_cut && one.top_k == top_k && one.temperature == temperature);
                one.cut_order.unwrap().to_string()
            });
            orders.collect::<Vec<_>>()
        };
        assert_eq!(others(Some(2), None, "", 0.7), [""; 0]);
        assert_eq!(others(Some(2), Some(0.9), "", 1.0), ["joint"]);
        assert_eq!(others(Some(2), Some(0.9), "sglang", 1.0), ["k,p,m"]);
        assert_eq!(others(None, Some(0.9), "vllm", 0.7), ["k,p,m,T"]);
        let three = ["k,p,m,T", "joint", "joint,T"];
        assert_eq!(others(Some(2), Some(0.9), "", 0.7), three);
    }

    #[test]
    fn what_is_outside_of_a_cut() {
        let (p, q) = ([0.75, 0.0, 0.0, 0.25], [0.25; 4]);
        let outside = |least: f64, tolerance: f64| {
            let pair = Pair::made(p, q, [0.6, 0.2, 0.0, 0.2], least, false);
            [0, 1, 2, 3, 9].map(|place| pair.is_outside(place, tolerance))
        };
        let only = |second: bool| [false, second, false, false, false];
        assert_eq!(outside(0.3, 0.0), only(true));
        // As likely as the last that is kept.
        assert_eq!(outside(0.2, 0.0), only(false));
        // A quarter of a nat is forgiven: exp(-1/4) is 0.7788.
        const NOISE: f64 = 0.25 / SLACK;
        assert_eq!(outside(0.2569, NOISE), only(true));
        assert_eq!(outside(0.2567, NOISE), only(false));
        let mut pair = Pair::made(p, q, p, 0.25, false);
        assert_eq!(pair.place(2), 2);
        pair.rest = true;
        pair.places = BTreeMap::from([(7, 0), (3, 1), (5, 2)]);
        assert_eq!([7, 3, 5, 4].map(|token| pair.place(token)), [0, 1, 2, 3]);
    }
}
