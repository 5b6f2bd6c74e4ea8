//! What the words of the report mean.

use super::drafts::Drafts;
use super::policy::FAMILIES;
use specgap_core::rounds::ChainVerifier;
use std::collections::BTreeMap;

/// What the words of the report mean, each metric with its formula.
pub fn length_definitions() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        (
            "text",
            "what the target wrote for a prompt: tokens y, each drawn from the target's row; both \
             models' rows p and q are logged at every one of its positions",
        ),
        (
            "r",
            "q(y)/p(y) at a position, y being the text's token there; R_i is the product of i \
             of them from a round's start on, R_0 = 1",
        ),
        (
            "round",
            "the draft writes some tokens, the target checks them all in one call, and adds one of \
             its own: in place of the first that is rejected, or behind them all",
        ),
        (
            "tau",
            "drafts that are accepted in a round, the target's own token not counted",
        ),
        (
            "expected accepted length",
            "E[tau] of a round with K drafts, averaged over every position at which K tokens of the \
             text are left, and, where pages print it, over every position, with K drafts or as \
             many as are left: these starts are the same for every K. Rounds of a decoder do not \
             start at every position alike; what a decoder sees is tokens per call",
        ),
        (
            "target calls",
            "rounds, in expectation given the text, replayed from its first token to its last; a \
             round with `left` tokens to go drafts at most left - 1",
        ),
        ("tokens per call", "N / E[target calls], a ratio of sums over texts"),
        (
            "verification rate",
            "E[target calls] / N, a ratio of sums over texts",
        ),
        (
            "discard rate",
            "(E[draft tokens] + E[target calls] - N) / N: drafts that come to nothing, for each \
             token of the text",
        ),
        (
            "discard rate, at least",
            "the same with the drafts up to the first rejection of each round alone, where the log \
             does not tell what is drafted behind it",
        ),
        (
            "speed-up",
            "t_0 N / E[sum over rounds of (t_d n + t_v(n + 1) + t_o)] for rounds of n drafts: time \
             of the target alone over time with drafts. t_0 is a step of the target alone, t_d a \
             draft step, t_v(n + 1) a verifying pass of n + 1 tokens, t_o the rest of a round. With \
             a cost ratio c alone: t_0 = t_v = 1, t_d = c, t_o = 0. Queues, memory and batches are \
             not in it",
        ),
        (
            "speed-up, at most",
            "the same if nothing were drafted after a rejected token",
        ),
        (
            "cost ratio",
            "c = t_d / t_0: time of a draft step over that of a target step",
        ),
        (
            "break-even cost ratio",
            "the cost ratio at which the speed-up is 1; with t_v = t_0 it is the share of drafts \
             that are accepted",
        ),
        (
            "oracle",
            "sum over tokens of 1 - min(1, r): no policy with token verification makes fewer calls \
             in expectation, whatever it knows, and none discards fewer than none. Its speed-up is \
             the most that any choice of draft lengths can give with token verification",
        ),
        (
            "oracle to the end",
            "the calls of one who stops just before each rejection: 1 + sum over tokens but the \
             last, which is always the target's own",
        ),
        (
            "coin-blind",
            "the quickest lengths for one who knows the text but neither the coins nor the drafts \
             of the round, by backward induction. It bounds policies that set a length when a \
             round begins, such as fixed ones; policies that look at drafted tokens can pass it",
        ),
        (
            "chosen length",
            "the fixed length that is quickest on every other prompt (the first, third, ...); its \
             speed-up is that on the other prompts, which had no say in it",
        ),
        (
            "95% interval",
            "Student's t over prompts. A number is a ratio of sums over prompts, S = sum of a_c / \
             sum of b_c; its standard error is sqrt(C/(C-1) sum of (a_c - S b_c)^2) / sum of b_c \
             (the clustered delta method), C prompts. Errors of measured times are added in squares",
        ),
        (
            "estimate",
            "exact given the text, which is itself a sample: the interval is about texts that were \
             not drawn",
        ),
        (
            "entropy bound",
            "sum of min(p, q) >= 1 - sqrt(gamma H(q)), which svip and adaedl take for granted; the \
             share of positions at which it fails",
        ),
        (
            "surprise",
            "mean of -ln p(y) over the text, beside the mean entropy of p; tokens that a row lists \
             whichever came out count by themselves, all others as one. z is the difference in \
             standard errors: a standard normal if the text was drawn from these rows",
        ),
        (
            "in [a, b]",
            "of rows that list some tokens only: bounds of the full rows' number, from no token of \
             the text that is not listed being accepted to all of them",
        ),
    ]
    .into_iter()
    .map(|(word, meaning)| (word.to_owned(), meaning.to_owned()))
    .collect();
    for verifier in ChainVerifier::ALL {
        let meaning = format!("verifier with P(tau >= i) = {}", verifier.formula());
        all.insert(verifier.as_str().to_owned(), meaning);
    }
    for drafts in Drafts::ALL {
        all.insert(format!("{drafts} drafts"), drafts.rule().to_owned());
    }
    for family in &FAMILIES {
        let meaning = format!("{}; decided on {}", family.rule, family.decided_on.as_str());
        all.insert(family.name.to_owned(), meaning);
    }
    all
}
