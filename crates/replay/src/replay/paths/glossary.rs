//! What the words of a report on several paths mean.

use std::collections::BTreeMap;

/// What the words of the report mean, each metric with its formula.
pub fn paths_definitions() -> BTreeMap<String, String> {
    [
        (
            "path",
            "L tokens that the draft writes on its own, each from its row after those before it. K \
             paths are K such runs from one context, independent of each other",
        ),
        (
            "tau",
            "drafts that are accepted in a round, the target's own token not counted: at most the \
             longest prefix of the target's next L tokens that some path shares",
        ),
        (
            "expected accepted length",
            "E[tau] of a round, averaged over every position of the text from which L tokens may be \
             written. Rounds of a decoder do not start at every position alike",
        ),
        (
            "tokens per call",
            "N / E[target calls], rounds of K paths of L tokens replayed from each text's first token \
             to its last; a round with `left` tokens to go drafts at most left - 1. None for greedy \
             blocks, which change the next round's target",
        ),
        (
            "R_l",
            "q(x^l)/p(x^l), the draft's probability of a path's first l tokens over the target's",
        ),
        (
            "upper bound",
            "J = sum over l of P(y^l in H_l) + E[most prefixes of one of K paths that are not in \
             their H_l]. In a round that starts with the target's own law no lossless verifier of K \
             i.i.d. paths has a larger E[tau], whatever the sets H_l are \
             (docs/theory/block-optimum.md), and some sets give the optimum. Over a text, rounds that \
             carry something can pass it (docs/theory/text-replay.md). Here x^l is in \
             H_l if p(x^l)/q(x^l) is up to a limit. Limits are fitted on every other prompt and \
             reported on the others, both ways: an ill fitted limit makes the bound wider, never \
             wrong",
        ),
        (
            "several paths",
            "an upper bound from K of a context's logged draft paths at a time, all choices of K \
             averaged: without bias. The paths tell how far it lies above the lower bound, and the \
             text tells the lower bound: the sum has the same mean as the paths' own, and moves \
             with the verifiers' numbers, which come from the text",
        ),
        (
            "pooled paths",
            "an upper bound from one draft path at a time; q(out >= j) is averaged over contexts \
             before 1 - (1 - q)^K is taken of it, which makes it larger, not smaller. Contexts of \
             like overlap are averaged apart. What sampling takes off on average is added, to \
             second order",
        ),
        (
            "pooled text",
            "the same from the text alone: q(out >= j) is the mean of R at its j-th prefix outside",
        ),
        (
            "lower bound",
            "sum over l of E_p[1 - (1 - min(1, R_l))^K], the value of Lemma 5.1 of SpecTr-GBV: the \
             best verifier of K paths has at least this (docs/theory/block-optimum.md). Also what every \
             verifier here accepts is a lower bound of what the best one does",
        ),
        ("token", "one path, token by token: accepted with min(1, p/q)"),
        ("block", "one path, by block verification of Sun et al."),
        (
            "greedy-block",
            "one path, as many tokens as one round can take: E[tau] = sum over l of E_p[min(1, \
             R_l)], the optimum of one path. The next round's target is changed",
        ),
        (
            "spectr-k-seq",
            "K paths, level by level: k-seq accepts one of the tokens after the prefix so far, and \
             paths that have it go on (SpecTr)",
        ),
        (
            "spectr-rrs",
            "the same with recursive rejection at each level",
        ),
        (
            "spectr-plan",
            "the same with a plan that accepts nearly alpha* at each level: the token of \
             select-block's selection, kept with min(1, p/s)",
        ),
        (
            "select-block",
            "one of K paths is selected level by level, as evenly against p as possible \
             (docs/theory/paths.md), and verified by block verification as a draft of the selected path's \
             law s: E[tau] = sum over l of E_p[min over j <= l of s(y^j)/p(y^j), 1]. Later targets \
             stay as they are",
        ),
        (
            "select-greedy-block",
            "the same, verified by greedy blocks: E[tau] = sum over l of E_p[min(1, s(y^l)/p(y^l))]. \
             The next round's target is changed",
        ),
        (
            "of what is possible",
            "E[tau] over the upper bound: the best verifier gets at least as large a share of the \
             optimum",
        ),
        (
            "95% interval",
            "Student's t over prompts, of a ratio of sums over prompts (the clustered delta \
             method); differences are paired by prompt. It is about texts and paths that were not \
             drawn, not about an upper bound being above the optimum",
        ),
        (
            "surprise",
            "mean of -ln p(y) over the text, beside the mean entropy of p; tokens that a row lists \
             whichever came out count by themselves, all others as one. z is the difference in \
             standard errors: a standard normal if the text was drawn from these rows",
        ),
    ]
    .into_iter()
    .map(|(word, meaning)| (word.to_owned(), meaning.to_owned()))
    .collect()
}
