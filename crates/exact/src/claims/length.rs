//! Claims about how many tokens to draft.

use super::Finding;
use super::claim::claims;
use super::family::Family;
use super::scores::is_in;

claims! {
    holds "specdec-time" by time,
        "time = t_d N + t_d N_discarded + (t_t - t_d) N_target for any sequence of \
        candidate lengths",
        "SpecDec++, Lemma 3.1 and Theorem 4.2",
        "Random accept patterns and candidate lengths are replayed; draft calls, \
        target calls and discarded tokens are counted one by one and both sides compared.";
    holds "specdec-oracle" by oracle,
        "under greedy decoding, stopping just before each disagreement discards nothing \
        and needs one target call a disagreement and one more, and no policy needs fewer calls",
        "SpecDec++, Theorem 4.1",
        "All patterns of up to 12 tokens: the oracle is replayed and compared with the \
        fewest calls of any policy by dynamic programming. If the last token is itself a \
        disagreement the one more call is not needed; the theorem's count is for the other case, \
        and the check asks for the exact one in both.";
}

/// One round from a position: candidates `length`, accepted up to the first
/// disagreement, then one token of the target. Returns (next position,
/// discarded), the text ending at `end`.
fn round(disagrees: &[bool], position: usize, length: usize) -> (usize, usize) {
    let candidates = length.min(disagrees.len() - position);
    let accepted = (0..candidates)
        .take_while(|offset| !disagrees[position + offset])
        .count();
    // The corrected token, or the bonus token if all were accepted.
    (position + accepted + 1, candidates - accepted)
}

fn time(finding: &mut Finding) {
    let mut family = Family::new(601);
    finding.count("texts", 500);
    for _ in 0..500 {
        let tokens = family.between(1, 40);
        let share = family.unit();
        let disagrees: Vec<bool> = (0..tokens).map(|_| family.unit() < share).collect();
        let (mut position, mut target, mut draft, mut discarded, mut produced) = (0, 0, 0, 0, 0);
        while position < tokens {
            // No policy drafts beyond the text: its last token needs no candidate after it.
            let length = family.between(0, 6).min(tokens - position - 1);
            let (next, lost) = round(&disagrees, position, length);
            target += 1;
            draft += length;
            discarded += lost;
            produced += next - position;
            position = next;
        }
        // Whole numbers stand for the times, so that equality is exact.
        let (t_d, t_t) = (family.between(1, 50), family.between(51, 900));
        let left = t_d * draft + t_t * target;
        let right = t_d * produced + t_d * discarded + (t_t - t_d) * target;
        finding.require(produced == tokens && left == right, || {
            format!("{disagrees:?}: {left} and {right}")
        });
    }
}

fn oracle(finding: &mut Finding) {
    for tokens in 1usize..=12 {
        for pattern in 0usize..1 << tokens {
            let disagrees: Vec<bool> = (0..tokens).map(|t| is_in(pattern, t)).collect();
            let disagreements = pattern.count_ones() as usize;
            let expected = disagreements + usize::from(!disagrees[tokens - 1]);

            let (mut position, mut calls, mut discarded) = (0, 0, 0);
            while position < tokens {
                let ahead = disagrees[position..].iter();
                let agreeing = ahead.take_while(|&&disagrees| !disagrees).count();
                let (next, lost) = round(&disagrees, position, agreeing);
                position = next;
                calls += 1;
                discarded += lost;
            }
            finding.add("patterns", 1);
            finding.require(calls == expected && discarded == 0, || {
                format!("{disagrees:?}: {calls} calls, {discarded} discarded")
            });

            // Fewest calls from every position, over all candidate lengths.
            let mut fewest = vec![0usize; tokens + 2];
            for start in (0..tokens).rev() {
                let next = (0..=tokens - start).map(|length| round(&disagrees, start, length).0);
                let calls = next.map(|next| fewest[next.min(tokens)]);
                fewest[start] = 1 + calls.min().unwrap_or(0);
            }
            finding.same(calls, fewest[0], || format!("{disagrees:?}, calls"));
        }
    }
}
