//! The arrays of a file of calls.

use super::arrays::Arrays;
use super::calls::{CHOICES, Call, DRAFTS, Expect, REQUESTS, Request, RequestLaws};
use specgap_base::pairs;

/// What each array is, with M calls, R requests, K drafts, V tokens of the target, D of the draft
/// and U choices of uniform numbers.
pub(super) const WORDS: [(&str, &str); 18] = pairs! {
    "target_logits" "f32 [M, R, K+1, V]: the target's logits at each draft and behind them";
    "allowed"
        "i64 [M, R, K+1, V]: 0 for tokens that a mask takes from the target, and not from the draft";
    "temperature" "f64 [M, R]: the target's; 0 is its likeliest allowed token";
    "draft_rows" "f32 [M, R, K, D]: q as drafts were drawn from it, over the draft's ids";
    "draft_bits" "i64 [M]: bits of the numbers that q was stored in";
    "d2t" "i64 [M, D]: the target's id of each of the draft's; q of a token is the sum of theirs";
    "draft_ids" "i64 [M, R, K]: the drafted tokens, as the draft's ids";
    "draft_tokens" "i64 [M, R, K]: the same as the target's ids";
    "counts" "i64 [M, R]: drafts of each request; what stands behind them is padding";
    "verified" "i64 [M, R]: how many of these are verified, from the first on";
    "expect"
        "i64 [M, R]: 0 for the exact law below; 1 to refuse, or a first token of one of `first_law`; 2 to refuse, or any token. A kernel refuses by token -1, or by raising an error";
    "request_accepted_law" "f64 [M, R, K+1]: probability that k drafts are accepted";
    "request_next_law"
        "f64 [M, R, K+1, V]: law of the next token where k drafts are accepted, 0 where that cannot be";
    "first_law"
        "f64 [M, R, 2, V]: where `expect` is 1, laws of the first token of which one has to hold: p, and where q has a sum the rule with q over it";
    "request_coins"
        "f64 [M, U, R, K]: uniform numbers that keep draft k if below its probability; 1 - 2^-24 and 1 are among them, and a draft that is always kept is kept there too";
    "request_coins_accepted"
        "i64 [M, U, R]: drafts that are accepted then; -1 where rounding may decide";
    "request_final_coin"
        "f64 [M, U, R]: a uniform number for the next token, by the inverse of the distribution function in order of id; 1 is among them";
    "request_final_token"
        "i64 [M, U, R]: the token that comes out then; -1 for any of positive probability";
};

impl Arrays {
    /// A call of several requests, with what each has to come to.
    pub(super) fn push_call(&mut self, call: &Call) {
        let all = &call.requests;
        let laws: Vec<RequestLaws> = all.iter().map(|one| one.laws(&call.map)).collect();
        let (r, k, u, d) = (REQUESTS, DRAFTS, CHOICES, call.map.len());
        let v = all.first().map_or(0, |one| one.logits[0].len());
        let each = |of: fn(&Request) -> i64| all.iter().map(of);
        let logits = all.iter().flat_map(|one| one.logits.iter().flatten());
        self.put("target_logits", &[r, k + 1, v], logits);
        let allowed = all.iter().flat_map(|one| one.allowed.iter().flatten());
        let allowed = allowed.map(|may| i64::from(*may));
        self.put("allowed", &[r, k + 1, v], allowed);
        let temperatures = all.iter().map(|one| &one.temperature);
        self.put("temperature", &[r], temperatures);
        let rows = all.iter().flat_map(|one| one.draft.iter().flatten());
        self.put("draft_rows", &[r, k, d], rows);
        self.put("draft_bits", &[], [call.draft_bits]);
        self.put("d2t", &[d], call.map.iter().map(|token| *token as i64));
        let ids = all.iter().flat_map(|one| one.draft_ids.iter().copied());
        self.put("draft_ids", &[r, k], ids);
        let tokens = all.iter().flat_map(|one| one.drafts.iter().copied());
        self.put("draft_tokens", &[r, k], tokens);
        self.put("counts", &[r], each(|one| one.count as i64));
        self.put("verified", &[r], each(|one| one.verified as i64));
        self.put("expect", &[r], each(|one| one.expect as i64));
        let accepted = laws.iter().flat_map(|one| &one.accepted);
        self.put("request_accepted_law", &[r, k + 1], accepted);
        let next = laws.iter().flat_map(|one| one.next.iter().flatten());
        self.put("request_next_law", &[r, k + 1, v], next);
        let first = laws.iter().flat_map(|one| one.first.iter().flatten());
        self.put("first_law", &[r, 2, v], first);
        let mut coins = Vec::with_capacity(u * r);
        for choice in 0..u {
            for (one, laws) in all.iter().zip(&laws) {
                let mut own = laws.coins(choice);
                if one.expect != Expect::Law {
                    own.accepted = -1;
                }
                coins.push(own);
            }
        }
        let tests = coins.iter().flat_map(|one| &one.tests);
        self.put("request_coins", &[u, r, k], tests);
        let accepted = coins.iter().map(|one| one.accepted);
        self.put("request_coins_accepted", &[u, r], accepted);
        let last = coins.iter().map(|one| &one.last);
        self.put("request_final_coin", &[u, r], last);
        let tokens = coins.iter().map(|one| one.token);
        self.put("request_final_token", &[u, r], tokens);
    }
}
