//! Calls as servers make them: several requests at once, each with drafts, a temperature and a
//! mask of its own, buffers that are longer than what is in them, and rows that broke on the way.
//!
//! Laws are written here from the definition: p is the softmax of what is allowed over the
//! temperature, q of a token is the sum over the draft's ids that stand for it, a draft is kept with
//! min(1, p/q), and (p - q)+ replaces it.

use super::coins::{ALMOST_ONE, Coins, ROUNDING};
use super::rows::{draw, near, one_hot, row};
use rand_chacha::ChaCha8Rng;
use specgap_base::named;

/// Requests of a call.
pub(super) const REQUESTS: usize = 4;
/// Room for drafts of a request.
pub(super) const DRAFTS: usize = 3;

named! {
    /// What is special about a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum CallSituation {
        Ragged "ragged" "requests have 0, 1, 2 and 3 drafts; behind them stand -1 and rows of zeros";
        StalePadding "stale-padding"
            "requests have 0, 1, 2 and 3 drafts; behind them stand tokens and rows of other \
            positions, which nothing may read";
        NanDraft "nan-draft"
            "q has NaN at one token, or everywhere: refuse, or put out p whatever was drafted";
        InfiniteDraft "infinite-draft"
            "q is infinite at one token, drafted or not: refuse, or put out p whatever was \
            drafted";
        ZeroDraftRow "zero-draft-row" "q is zero everywhere: refuse, or put out p whatever was drafted";
        HalfDraft "half-draft"
            "q sums to 1/2: refuse, put out p whatever was drafted, or take q over its sum";
        DoubleDraft "double-draft"
            "q sums to 2: refuse, put out p whatever was drafted, or take q over its sum";
        NanTarget "nan-target"
            "the target's logits have NaN at one token, or everywhere: refuse, or put out a \
            token of the vocabulary; the other requests keep their laws";
        TargetMask "target-mask"
            "half of the tokens are not allowed to the target, and the draft's row knows \
            nothing of it; one draft is such a token";
        Temperatures "temperatures"
            "the target's temperature is 0.5, 1, 2 and 0 (the likeliest token); q is what \
            drafts were drawn from";
        HalfPrecision "f16-draft"
            "q has values of binary16 that sum to 1, and the target's logits need binary32";
        BrainPrecision "bf16-draft"
            "q has values of bfloat16 that sum to 1, and the target's logits need binary32";
        Budget "budget"
            "of 3 drafts only 0, 1, 2 and 3 are verified: behind j that are kept the token \
            comes from row j";
        Map "map" "the draft's vocabulary is half of the target's, by a map of ids";
        ManyToOne "many-to-one"
            "two of the draft's ids stand for one token: its q is the sum of theirs";
        Alike "alike"
            "all requests have the same rows and drafts, and each draws for itself: none may \
            come out as another one does";
    }
}

/// What a kernel has to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// Put out tokens by the exact law.
    Law = 0,
    /// Refuse, or put out a first token of law p whatever was drafted, as q says nothing.
    Target = 1,
    /// Refuse, or put out a token of the vocabulary.
    AnyToken = 2,
}

/// One request of a call.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// At each draft and behind them.
    pub logits: Vec<Vec<f32>>,
    pub allowed: Vec<Vec<bool>>,
    pub temperature: f64,
    /// q at each draft, over the draft's ids.
    pub draft: Vec<Vec<f32>>,
    pub draft_ids: Vec<i64>,
    /// The same as ids of the target.
    pub drafts: Vec<i64>,
    /// Drafts that there are.
    pub count: usize,
    /// Those that are verified.
    pub verified: usize,
    pub expect: Expect,
}

/// What a kernel is given.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The target's id of each of the draft's.
    pub map: Vec<usize>,
    pub draft_bits: i64,
    pub requests: Vec<Request>,
}

/// What a request has to come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestLaws {
    /// p/q of each draft that is verified.
    pub ratios: Vec<f64>,
    pub accepted: Vec<f64>,
    pub next: Vec<Vec<f64>>,
    /// Laws of the first token of which one is enough.
    pub first: [Vec<f64>; 2],
}

impl CallSituation {
    /// The draft's vocabulary.
    pub(super) fn draft_vocabulary(self, vocabulary: usize) -> usize {
        match self {
            Self::Map => vocabulary / 2,
            _ => vocabulary,
        }
    }

    /// The call of this situation.
    pub(super) fn call(self, vocabulary: usize, random: &mut ChaCha8Rng) -> Call {
        let size = self.draft_vocabulary(vocabulary);
        let map: Vec<usize> = match self {
            // Neither the identity nor in order.
            Self::Map => (0..size).map(|id| vocabulary - 1 - 2 * id).collect(),
            Self::ManyToOne => (0..size).map(|id| (id / 2 * 3) % vocabulary).collect(),
            _ => (0..size).collect(),
        };
        let alike = (self == Self::Alike).then(|| random.clone());
        let requests = (0..REQUESTS).map(|at| {
            if let Some(first) = &alike {
                *random = first.clone();
            }
            let temperature = match (self, at) {
                (Self::Temperatures, 0) => 0.5,
                (Self::Temperatures, 2) => 2.0,
                (Self::Temperatures, 3) => 0.0,
                _ => 1.0,
            };
            let mut one = Request::ordinary(vocabulary, temperature, &map, random);
            self.change(at, &mut one, &map, random);
            one
        });
        Call {
            requests: requests.collect(),
            draft_bits: match self {
                Self::HalfPrecision | Self::BrainPrecision => 16,
                _ => 32,
            },
            map,
        }
    }

    /// Makes an ordinary request what it is here.
    fn change(self, at: usize, one: &mut Request, map: &[usize], random: &mut ChaCha8Rng) {
        let vocabulary = one.logits.first().map_or(0, Vec::len);
        match self {
            Self::Ragged | Self::StalePadding => {
                one.count = at;
                one.verified = at;
                let pads = self == Self::Ragged;
                for k in (at..DRAFTS).filter(|_| pads) {
                    (one.drafts[k], one.draft_ids[k]) = (-1, -1);
                    one.draft[k].fill(0.0);
                }
            }
            Self::NanDraft
            | Self::InfiniteDraft
            | Self::ZeroDraftRow
            | Self::HalfDraft
            | Self::DoubleDraft => self.break_draft(at, one, map),
            Self::NanTarget if at == 1 || at == 2 => {
                one.expect = Expect::AnyToken;
                match at {
                    1 => one.logits[0][vocabulary / 2] = f32::NAN,
                    _ => one.logits[0].fill(f32::NAN),
                }
            }
            Self::TargetMask => {
                // The last tokens are never allowed, so that no draw may end there.
                for (k, allowed) in one.allowed.iter_mut().enumerate() {
                    for (token, may) in allowed.iter_mut().enumerate() {
                        *may = (token + k + at).is_multiple_of(2) && token + 2 < vocabulary;
                    }
                }
                if at == 2 {
                    one.draft_token(0, vocabulary - 1, map);
                }
            }
            Self::HalfPrecision | Self::BrainPrecision => {
                let (steps, far) = match self == Self::HalfPrecision {
                    true => (2048, 200.0),
                    false => (256, 24.0),
                };
                for k in 0..DRAFTS {
                    one.draft[k] = in_steps(&one.draft[k], steps);
                    let id = draw(&one.draft[k], random);
                    one.draft_token(k, id, map);
                }
                // In 16 bits numbers of this size are apart by 1/8.
                one.logits.iter_mut().flatten().for_each(|x| *x += far);
            }
            Self::Budget => one.verified = at,
            _ => {}
        }
    }

    fn break_draft(self, at: usize, one: &mut Request, map: &[usize]) {
        if at != 1 && at != 2 {
            return;
        }
        one.expect = Expect::Target;
        // A draft that q has more of than p.
        let p = one.target(0);
        let excess = |id: usize| f64::from(one.draft[0][id]) - p[id];
        let ids = 0..map.len();
        let id = ids.max_by(|&a, &b| excess(a).total_cmp(&excess(b)));
        let id = id.unwrap_or(0);
        one.draft_token(0, id, map);
        let q = &mut one.draft[0];
        let other = (id + 1) % q.len();
        match (self, at) {
            (Self::NanDraft, 1) => q[other] = f32::NAN,
            (Self::NanDraft, _) => q.fill(f32::NAN),
            (Self::InfiniteDraft, 1) => q[other] = f32::INFINITY,
            (Self::InfiniteDraft, _) => q[id] = f32::INFINITY,
            (Self::ZeroDraftRow, _) => q.fill(0.0),
            (Self::HalfDraft, _) => q.iter_mut().for_each(|x| *x *= 0.5),
            _ => q.iter_mut().for_each(|x| *x *= 2.0),
        }
    }
}

impl Request {
    fn ordinary(
        vocabulary: usize,
        temperature: f64,
        map: &[usize],
        random: &mut ChaCha8Rng,
    ) -> Self {
        let rows = (0..=DRAFTS).map(|_| row(vocabulary, 2.0, random));
        let logits = rows.map(|p| p.iter().map(|x| x.ln()).collect()).collect();
        let mut one = Self {
            logits,
            allowed: vec![vec![true; vocabulary]; DRAFTS + 1],
            temperature,
            draft: Vec::with_capacity(DRAFTS),
            draft_ids: vec![-1; DRAFTS],
            drafts: vec![-1; DRAFTS],
            count: DRAFTS,
            verified: DRAFTS,
            expect: Expect::Law,
        };
        let identity =
            map.iter().enumerate().all(|(id, token)| id == *token) && map.len() == vocabulary;
        for k in 0..DRAFTS {
            let q = match identity {
                // A greedy request has drafts of its own row at temperature 1.
                true if temperature > 0.0 => {
                    let p: Vec<f32> = one.target(k).iter().map(|x| *x as f32).collect();
                    near(&p, 0.7, random)
                }
                _ => row(map.len(), 2.0, random),
            };
            let id = draw(&q, random);
            one.draft.push(q);
            one.draft_token(k, id, map);
        }
        one
    }

    fn draft_token(&mut self, k: usize, id: usize, map: &[usize]) {
        self.draft_ids[k] = id as i64;
        self.drafts[k] = map.get(id).map_or(-1, |token| *token as i64);
    }

    /// p at a place: the softmax over what is allowed; at temperature 0 its likeliest token.
    pub(super) fn target(&self, at: usize) -> Vec<f64> {
        let (logits, allowed) = (&self.logits[at], &self.allowed[at]);
        let held = |token: &usize| allowed.get(*token).copied().unwrap_or(false);
        let value = |token: usize| f64::from(logits[token]);
        let ids = (0..logits.len()).filter(held);
        let best = ids.max_by(|&a, &b| value(a).total_cmp(&value(b)).then(b.cmp(&a)));
        let best = best.unwrap_or(0);
        if self.temperature <= 0.0 {
            let row = one_hot(logits.len(), best);
            return row.into_iter().map(f64::from).collect();
        }
        let weight = |token: usize| match held(&token) {
            true => ((value(token) - value(best)) / self.temperature).exp(),
            false => 0.0,
        };
        shares((0..logits.len()).map(weight).collect())
    }

    /// q at a place over the target's ids, over its sum.
    fn offered(&self, at: usize, map: &[usize]) -> Vec<f64> {
        let mut q = vec![0.0; self.logits[at].len()];
        for (x, &token) in self.draft[at].iter().zip(map) {
            q[token] += f64::from(*x);
        }
        shares(q)
    }

    /// Returns what has to come of it.
    pub(super) fn laws(&self, map: &[usize]) -> RequestLaws {
        let size = self.logits[0].len();
        let mut laws = RequestLaws {
            ratios: Vec::new(),
            accepted: vec![0.0; DRAFTS + 1],
            next: vec![vec![0.0; size]; DRAFTS + 1],
            first: [vec![0.0; size], vec![0.0; size]],
        };
        match self.expect {
            Expect::AnyToken => {}
            Expect::Target => {
                let p = self.target(0);
                let q = self.offered(0, map);
                laws.first = [p.clone(), p.clone()];
                // Over a sum that is a number, q is a law that drafts can have been drawn from.
                if q.iter().all(|x| x.is_finite()) && q.iter().sum::<f64>() > 0.5 {
                    let token = self.drafts[0] as usize;
                    let keep = (p[token] / q[token]).min(1.0);
                    laws.first[1] = residual(&p, &q);
                    let first = laws.first[1].iter_mut();
                    first.for_each(|mass| *mass *= 1.0 - keep);
                    laws.first[1][token] += keep;
                }
            }
            Expect::Law => {
                let mut reached = 1.0;
                for k in 0..self.verified {
                    let (p, q) = (self.target(k), self.offered(k, map));
                    let token = self.drafts[k] as usize;
                    let positive = Some(p[token]).filter(|p| *p > 0.0);
                    let ratio = positive.map_or(0.0, |p| p / q[token]);
                    let keep = ratio.min(1.0);
                    laws.ratios.push(ratio);
                    laws.accepted[k] = reached * (1.0 - keep);
                    if keep < 1.0 {
                        laws.next[k] = residual(&p, &q);
                    }
                    reached *= keep;
                }
                laws.accepted[self.verified] = reached;
                laws.next[self.verified] = self.target(self.verified);
            }
        }
        laws
    }
}

fn shares(mut row: Vec<f64>) -> Vec<f64> {
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= total);
    row
}

/// (p - q)+ over its sum.
fn residual(p: &[f64], q: &[f64]) -> Vec<f64> {
    shares(p.iter().zip(q).map(|(p, q)| (p - q).max(0.0)).collect())
}

/// A row in whole steps of 1/n, which sums to 1.
fn in_steps(row: &[f32], steps: u32) -> Vec<f32> {
    let n = f64::from(steps);
    let mut counts: Vec<u32> = row.iter().map(|x| (f64::from(*x) * n) as u32).collect();
    let left = steps - counts.iter().sum::<u32>().min(steps);
    let most = (0..counts.len()).max_by_key(|&id| counts[id]);
    if let Some(count) = most.and_then(|id| counts.get_mut(id)) {
        *count += left;
    }
    let shares = counts.into_iter().map(|count| f64::from(count) / n);
    shares.map(|share| share as f32).collect()
}

/// Choices that a call has.
pub(super) const CHOICES: usize = 6;

impl RequestLaws {
    /// The numbers of a choice: all kept; nearly 1; 1, which f32 rounds some hashes to; 0; the
    /// second draft rejected; the first.
    pub(super) fn coins(&self, choice: usize) -> Coins {
        let keep = |k: usize| self.ratios.get(k).map_or(0.5, |ratio| ratio.min(1.0));
        let test = |k: usize| match choice {
            1 => ALMOST_ONE,
            2 => 1.0,
            3 => 0.0,
            4 if k == 1 => 0.5 * (1.0 + keep(k)),
            5 if k == 0 => 0.5 * (1.0 + keep(k)),
            _ => 0.5 * keep(k),
        };
        let tests: Vec<f64> = (0..DRAFTS).map(test).collect();
        let accepted = self.outcome(&tests);
        let law = usize::try_from(accepted).ok();
        let law = law.and_then(|accepted| self.next.get(accepted));
        let (last, token) = match (choice, law) {
            (1, _) => (ALMOST_ONE, -1),
            (2, _) => (1.0, -1),
            (3, Some(law)) => {
                let first = law.iter().position(|x| *x > 0.0);
                (0.0, first.map_or(-1, |token| token as i64))
            }
            (_, Some(law)) => {
                let best = (0..law.len()).max_by(|&a, &b| law[a].total_cmp(&law[b]));
                let best = best.unwrap_or(0);
                let before: f64 = law.iter().take(best).sum();
                (before + 0.5 * law[best], best as i64)
            }
            _ => (0.5, -1),
        };
        Coins {
            tests,
            accepted,
            last,
            token,
        }
    }

    fn outcome(&self, tests: &[f64]) -> i64 {
        if self.accepted.iter().all(|x| *x <= 0.0) {
            return -1;
        }
        for (k, (ratio, test)) in self.ratios.iter().zip(tests).enumerate() {
            let surely_kept = *ratio >= 1.0 + ROUNDING || *test < ratio * (1.0 - ROUNDING);
            if *ratio > 0.0 && surely_kept {
                continue;
            }
            let surely_rejected = *ratio <= 0.0 || *test > ratio * (1.0 + ROUNDING);
            return if surely_rejected { k as i64 } else { -1 };
        }
        self.ratios.len() as i64
    }
}
