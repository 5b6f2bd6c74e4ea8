//! The arrays of a file of calls.

use super::arrays::{floats, floats32, integers};
use super::calls::{CHOICES, Call, DRAFTS, Expect, REQUESTS, RequestLaws};
use specgap_log::log::RawTensor;

/// What each array is, with M calls, R requests, K drafts, V tokens of the target, D of the draft
/// and U choices of uniform numbers.
pub(super) const WORDS: [(&str, &str); 18] = [
    (
        "target_logits",
        "f32 [M, R, K+1, V]: the target's logits at each draft and behind them",
    ),
    (
        "allowed",
        "i64 [M, R, K+1, V]: 0 for tokens that a mask takes from the target, and not from the draft",
    ),
    (
        "temperature",
        "f64 [M, R]: the target's; 0 is its likeliest allowed token",
    ),
    (
        "draft_rows",
        "f32 [M, R, K, D]: q as drafts were drawn from it, over the draft's ids",
    ),
    (
        "draft_bits",
        "i64 [M]: bits of the numbers that q was stored in",
    ),
    (
        "d2t",
        "i64 [M, D]: the target's id of each of the draft's; q of a token is the sum of theirs",
    ),
    (
        "draft_ids",
        "i64 [M, R, K]: the drafted tokens, as the draft's ids",
    ),
    (
        "draft_tokens",
        "i64 [M, R, K]: the same as the target's ids",
    ),
    (
        "counts",
        "i64 [M, R]: drafts of each request; what stands behind them is padding",
    ),
    (
        "verified",
        "i64 [M, R]: how many of these are verified, from the first on",
    ),
    (
        "expect",
        "i64 [M, R]: 0 for the exact law below; 1 to refuse, or a first token of one of `first_law`; 2 to refuse, or any token. A kernel refuses by token -1, or by raising an error",
    ),
    (
        "request_accepted_law",
        "f64 [M, R, K+1]: probability that k drafts are accepted",
    ),
    (
        "request_next_law",
        "f64 [M, R, K+1, V]: law of the next token where k drafts are accepted, 0 where that cannot be",
    ),
    (
        "first_law",
        "f64 [M, R, 2, V]: where `expect` is 1, laws of the first token of which one has to hold: p, and where q has a sum the rule with q over it",
    ),
    (
        "request_coins",
        "f64 [M, U, R, K]: uniform numbers that keep draft k if below its probability; 1 - 2^-24 and 1 are among them, and a draft that is always kept is kept there too",
    ),
    (
        "request_coins_accepted",
        "i64 [M, U, R]: drafts that are accepted then; -1 where rounding may decide",
    ),
    (
        "request_final_coin",
        "f64 [M, U, R]: a uniform number for the next token, by the inverse of the distribution function in order of id; 1 is among them",
    ),
    (
        "request_final_token",
        "i64 [M, U, R]: the token that comes out then; -1 for any of positive probability",
    ),
];

/// Arrays of calls of one size.
#[derive(Default)]
pub(super) struct CallArrays {
    calls: usize,
    logits: Vec<f32>,
    allowed: Vec<i64>,
    temperature: Vec<f64>,
    draft: Vec<f32>,
    bits: Vec<i64>,
    map: Vec<i64>,
    ids: Vec<i64>,
    tokens: Vec<i64>,
    counts: Vec<i64>,
    verified: Vec<i64>,
    expect: Vec<i64>,
    accepted: Vec<f64>,
    next: Vec<f64>,
    first: Vec<f64>,
    coins: Vec<f64>,
    coins_accepted: Vec<i64>,
    final_coin: Vec<f64>,
    final_token: Vec<i64>,
}

impl CallArrays {
    pub(super) fn push(&mut self, call: &Call) {
        self.calls += 1;
        self.bits.push(call.draft_bits);
        self.map.extend(call.map.iter().map(|token| *token as i64));
        let laws: Vec<RequestLaws> = (call.requests.iter())
            .map(|one| one.laws(&call.map))
            .collect();
        for (one, laws) in call.requests.iter().zip(&laws) {
            self.logits.extend(one.logits.iter().flatten());
            let allowed = one.allowed.iter().flatten();
            self.allowed.extend(allowed.map(|may| i64::from(*may)));
            self.temperature.push(one.temperature);
            self.draft.extend(one.draft.iter().flatten());
            self.ids.extend(&one.draft_ids);
            self.tokens.extend(&one.drafts);
            self.counts.push(one.count as i64);
            self.verified.push(one.verified as i64);
            self.expect.push(one.expect as i64);
            self.accepted.extend(&laws.accepted);
            self.next.extend(laws.next.iter().flatten());
            self.first.extend(laws.first.iter().flatten());
        }
        for choice in 0..CHOICES {
            for (one, laws) in call.requests.iter().zip(&laws) {
                let coins = laws.coins(choice);
                self.coins.extend(&coins.tests);
                let is_law = one.expect == Expect::Law;
                self.coins_accepted
                    .push(if is_law { coins.accepted } else { -1 });
                self.final_coin.push(coins.last);
                self.final_token.push(coins.token);
            }
        }
    }

    pub(super) fn finish(self, vocabulary: usize, draft_vocabulary: usize) -> Vec<RawTensor> {
        let (m, r, k, u) = (self.calls, REQUESTS, DRAFTS, CHOICES);
        let (v, d) = (vocabulary, draft_vocabulary);
        vec![
            floats32("target_logits", vec![m, r, k + 1, v], &self.logits),
            integers("allowed", vec![m, r, k + 1, v], &self.allowed),
            floats("temperature", vec![m, r], &self.temperature),
            floats32("draft_rows", vec![m, r, k, d], &self.draft),
            integers("draft_bits", vec![m], &self.bits),
            integers("d2t", vec![m, d], &self.map),
            integers("draft_ids", vec![m, r, k], &self.ids),
            integers("draft_tokens", vec![m, r, k], &self.tokens),
            integers("counts", vec![m, r], &self.counts),
            integers("verified", vec![m, r], &self.verified),
            integers("expect", vec![m, r], &self.expect),
            floats("request_accepted_law", vec![m, r, k + 1], &self.accepted),
            floats("request_next_law", vec![m, r, k + 1, v], &self.next),
            floats("first_law", vec![m, r, 2, v], &self.first),
            floats("request_coins", vec![m, u, r, k], &self.coins),
            integers(
                "request_coins_accepted",
                vec![m, u, r],
                &self.coins_accepted,
            ),
            floats("request_final_coin", vec![m, u, r], &self.final_coin),
            integers("request_final_token", vec![m, u, r], &self.final_token),
        ]
    }
}
