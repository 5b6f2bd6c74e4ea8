//! The claim about drafts behind rejected tokens.

use super::Finding;
use super::claim::claims;
use super::family::{Family, whole};
use super::text::{Along, Pair, Rule, drafted, enumerate, golden, rules};
use specgap_core::rounds::{ChainRule, DraftLength, Drafted, drafted_rounds, replay};
use specgap_number::distribution::{Rational, format_rational};
use specgap_number::number::Number;

claims! {
    holds "rollout-drafts" by unbiased,
        "with rollouts of the draft at every M-th position of a text, the first drawn evenly \
        from M, draft tokens are, in expectation, the sum over all s of w_s l_s plus M times the \
        sum over rollouts of w_s (n_s - l_s): n_s is drafted on the rollout from s, l_s along the \
        text, and w_s is the probability given the text that a round starts at s",
        "ours; for every rule that decides on what the drafter knows and forgets earlier rounds",
        "On random models whose rows depend on the whole prefix, the mean over texts, first \
        positions and all rollouts together, against the drafts of the whole random process of \
        drafting, verifying and correcting, in fractions. Proof: given the text, which fixes w_s and \
        l_s, a position has a rollout with probability 1/M, and its tokens do not depend on what the \
        text goes on with; and drafts are the sum of w_s E[n_s] (replay).";
}

/// E[drafts by rollouts], over texts, first positions and rollouts.
fn by_rollouts(pair: &Pair, verifier: ChainRule, rule: &Rule, every: usize) -> Rational {
    let tokens = pair.tokens();
    let spacing = whole(every);
    let mut mean = Rational::zero();
    for (text, weight) in &pair.texts() {
        let along = Along { pair, rule, text };
        let Some(found) = replay(verifier, &pair.ratios(text), &along) else {
            continue;
        };
        let on_text = |start: usize| length(along.along(start, tokens - start - 1, rule.first));
        for first in 0..every {
            // All rollouts from these starts together, with their probability.
            let mut together = vec![(Vec::new(), weight.over(&spacing))];
            for start in (first..tokens).step_by(every) {
                let one = drafted(pair, rule, &text[..start], rule.first, tokens - start - 1);
                together = together
                    .iter()
                    .flat_map(|(known, weight): &(Vec<(usize, Drafted)>, Rational)| {
                        one.iter().map(move |(rollout, share)| {
                            let next = (start, length(rollout.len()));
                            ([&known[..], &[next]].concat(), weight * share)
                        })
                    })
                    .collect();
            }
            for (rollouts, weight) in together {
                let rounds = drafted_rounds(&found.starts, on_text, rollouts, &spacing);
                mean += weight * rounds.drafts();
            }
        }
    }
    mean
}

fn length(tokens: usize) -> Drafted {
    Drafted {
        tokens,
        stopped: false,
    }
}

fn unbiased(finding: &mut Finding) {
    let mut family = Family::new(907);
    let rules = rules();
    for index in 0..6 {
        let pair = Pair::random(&mut family, 2, 4);
        let every = index % 3 + 1;
        for rule in rules.iter().filter(|rule| rule.forgets()) {
            for verifier in [ChainRule::TOKEN, ChainRule::BLOCK] {
                let found = by_rollouts(&pair, verifier, rule, every);
                let process = enumerate(&pair, verifier, rule).drafts;
                finding.add("comparisons with enumeration", 1);
                finding.same(found, process, || {
                    format!("{}, {verifier}, every {every}", rule.name)
                });
            }
        }
    }
    if let Some(rule) = rules.iter().find(|rule| rule.name.contains("product of q")) {
        let found = by_rollouts(&golden(), ChainRule::TOKEN, rule, 3);
        let drafts = format!("drafts {}", format_rational(&found));
        finding.text("product of q, token, every 3", drafts);
    }
}
