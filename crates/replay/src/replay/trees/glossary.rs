//! What the words of the report on trees mean.

use specgap_core::scheme::SchemeName;
use specgap_core::verifier::VerifierName;
use std::collections::BTreeMap;

/// What the words of the report mean, each metric with its formula.
pub fn tree_definitions() -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        (
            "text",
            "what the target wrote for a prompt: tokens y, each drawn from the target's row; both \
             models' rows p and q are logged at every one of its positions",
        ),
        (
            "tree",
            "which children are drafted at each node, as a list of paths of child ranks from the \
             root, the last token that is certain: [0] is its first child, [0, 1] the second child \
             of that. The children of a node are drawn by a draft law from q at its prefix, child \
             0 first",
        ),
        (
            "draft tokens",
            "nodes of a tree, the root not counted: what one target call verifies beside its own \
             token",
        ),
        (
            "A(k | y; n)",
            "P(the output is y, and it came through child k of n) / p(y), for the text's token y: \
             the share of a node's n children that child k gets",
        ),
        (
            "tau",
            "drafts that are accepted in a round, the target's own token not counted",
        ),
        (
            "expected accepted length",
            "E[tau]: sum over nodes (k_1, .., k_d) of the mean of the product over j of A(k_j | \
             y_(s+j); children of its parent), over every start s at which the tree's depth is \
             left of the text. Rounds of a decoder do not start at every position alike; what a \
             decoder sees is tokens per call",
        ),
        (
            "target calls",
            "rounds, in expectation given the text, replayed from its first token to its last; a \
             round with `left` tokens to go drafts the tree's first left - 1 levels",
        ),
        ("tokens per call", "N / E[target calls], a ratio of sums over texts"),
        (
            "speed-up",
            "t_0 N / E[sum over rounds of (t_d levels + t_v(draft tokens + 1) + t_o)]: time of the \
             target alone over time with the tree; a level is one draft step, however many tokens \
             it has. With a cost ratio c alone: t_0 = t_v = 1, t_d = c, t_o = 0, so that a wide tree \
             looks as cheap as a narrow one; give --timings to count it. Queues, memory and batches \
             are not in it",
        ),
        (
            "if independent",
            "E[tau] of the same tree if every level were accepted independently at the mean shares \
             of all positions: what Sequoia's positional vector predicts",
        ),
        (
            "gain",
            "what a node adds to E[tau], on the prompts that choose: the mean of its path's product, \
             and what its siblings gain or lose by it where their shares depend on their number",
        ),
        (
            "dynamic tree",
            "at each start the tree of every node whose product of q, from the round's start on, is \
             at least a threshold. The target draws its token, and the round follows it through the \
             tree. A node's ancestors have larger products, so that tau is the number of the text's \
             next tokens whose products reach the threshold: no row off the text is needed. Its \
             draft tokens are counted on rollouts: the mean, over what the draft draws, of the sum \
             over levels of 1/Q where the product Q of the first tokens reaches the threshold",
        ),
        (
            "slot value",
            "v_k = 1 + E[tau below child k]: what accepting child k of a root is worth. A rule's value \
             is the mean of the sum over k of v_k A(k | y; n). Of i.i.d. and sequential drafts no rule \
             has more than the sum over j of (v_j - v_(j+1)) times alpha* of j drafts, since the first \
             j slots are j drafts; a rule that accepts most need not be worth most",
        ),
        (
            "static deterministic tree",
            "a tree whose children are the most probable tokens of q, the first child the most \
             probable (law top): Medusa's and EAGLE-1's. The target draws its \
             token, and the round follows it (verifier exact-match)",
        ),
        (
            "best tree",
            "the node of largest gain is added again and again, up to the budget, on every other \
             prompt (the first, third, ...). That is the best tree of its size for rules whose \
             shares do not depend on the number of siblings (all but k-seq, greedy and spechub, and \
             naive on their drafts); for these it is a good one. All numbers are from the other prompts, which had no \
             say in it. With times, the quickest of the trees on the way is taken",
        ),
        (
            "Sequoia's tree",
            "the tree of its dynamic program within the same limits, from the positional vector of \
             the prompts that choose. Predicted: its E[tau] if levels were independent, at the mean \
             shares of the prompts that report; exact over predicted is 1 if they were",
        ),
        (
            "reached",
            "mean probability that a round gets to a node: its contribution to E[tau]",
        ),
        (
            "correlation",
            "of the share that is accepted at all (the sum of A over a node's children) at \
             neighbouring positions of a text; within prompts, after each prompt's own mean is \
             taken out",
        ),
        (
            "by level",
            "share of rounds that accept a child at a level, of those that got to it, with as many \
             children at every node: the same at all levels if levels were independent",
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
            "sampled",
            "children from the third on of rrs-wo: unbiased means over 64 rejected paths at each \
             position. Each enters a product once, so that means stay unbiased; their noise is in \
             the interval",
        ),
        (
            "not listed",
            "of rows that list some tokens only, all others count as one token. Numbers are exact \
             for that coarser vocabulary; full rows would give others, and no bounds are known",
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
    .collect();
    for verifier in VerifierName::ALL {
        all.insert(
            verifier.as_str().to_owned(),
            format!("verifier: {}", verifier.words()),
        );
    }
    for scheme in SchemeName::ALL {
        all.insert(
            scheme.as_str().to_owned(),
            format!("drafts: {}", scheme.law()),
        );
    }
    all
}
