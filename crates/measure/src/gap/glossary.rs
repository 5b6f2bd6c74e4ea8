//! What the words of a report mean.

use super::metric::{rules, schemes};
use specgap_core::rounds::ChainVerifier;
use specgap_core::scheme::drafted_by;
use std::collections::BTreeMap;

/// What the words of a report mean, for blocks of some length.
pub fn definitions(block_length: usize) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        (
            "position",
            "a prefix of a text; the target gives the law p of the next token there, the draft the \
             law q",
        ),
        (
            "temperature",
            "both models' logits are divided by it before the softmax. A token whose logit, divided, \
             is more than 690 below the largest of its row counts as one that is never drawn",
        ),
        (
            "acceptance",
            "P(the output token is one of the n drafts) at a position, over the drafts and the \
             verifier's own randomness (membership acceptance); then averaged over positions",
        ),
        (
            "optimal acceptance rate",
            "alpha*: the most that can be accepted at a position where the verifier's output, given \
             the text before it, has the target's own law p: the maximum over couplings of p and the \
             law of the drafts; then averaged over positions. A decoder that carries something from \
             round to round can accept more over a text and still write the target's text \
             (docs/theory/text-replay.md)",
        ),
        (
            "gap",
            "alpha* minus acceptance at the same position, for the same scheme of drawing drafts",
        ),
        (
            "overlap",
            "sum over tokens of min(p, q): what one draft's verifier accepts, 1 - total variation",
        ),
        (
            "95% interval",
            "Student's t over prompts (or positions, where the log names no prompts), by the \
             linearised variance of a ratio of sums",
        ),
        (
            "p-value",
            "of a comparison: two-sided, paired over positions, clustered like the interval",
        ),
        (
            "Holm",
            "p-value corrected for reading all comparisons of this report together",
        ),
        (
            "quantile",
            "value that this share of the positions does not exceed, to 1/16384",
        ),
        (
            "enclosed",
            "computed with bounds on rounding and truncation; the widest enclosure of any position \
             is given. The bounds are proved or counted, each as docs/reference/certainty.md says. Intervals \
             are about positions that were not logged, not about rounding",
        ),
        (
            "estimate",
            "a number whose error is estimated and not proven: an average over what was sampled, \
             whose error is the interval's; or a rate by a fast rule, with the width of where it \
             is thought to be",
        ),
        (
            "audit",
            "a fast rate is computed the slow way too at some positions, which are the same \
             however often a log is measured: how far the two are apart there, and whether the \
             fast one is within the slow one's bounds",
        ),
        (
            "optimal plan",
            "a coupling that attains alpha* and whose output law is p. That level is one for i.i.d. \
             drafts is a theorem (docs/theory/level-rule.md), so that it accepts alpha*, and its plans \
             are solved as a check: at the audited positions, or at all with --plans every, which \
             takes acceptance from the solve. Where plans are audited, acceptance and law are measured \
             by a second integral",
        ),
        (
            "published formula",
            "the optimum of drafts that are i.i.d. given that all differ, which is published as that \
             of sequential draws without replacement; the difference is its error there",
        ),
        (
            "top-heavy rows",
            "rows list the most probable tokens; of all others only the mass is known, or bounds of \
             it. Where the log says that the others are never drawn, the listed tokens are \
             renormalised instead",
        ),
        (
            "truncated",
            "a number of rows that list some tokens only; the truncation, beside the mean, holds \
             the mean over the full rows of the same positions, whatever their other tokens are. \
             The mean itself is the middle of the truncation, and its interval that of such \
             middles. Where it is wider than ±, half that interval, it stands alone, as a to b",
        ),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .collect();
    for scheme in schemes() {
        let engines = drafted_by(scheme.as_str());
        let engines = match engines.is_empty() {
            true => String::new(),
            false => format!("; drafted so by {}", engines.join(", ")),
        };
        all.insert(
            format!("scheme {scheme}"),
            format!("{}{engines}", scheme.law()),
        );
    }
    for ((_, name), _) in rules() {
        all.insert(
            format!("verifier {}", name.as_str()),
            format!("{}; for {}", name.words(), name.draft_schemes()),
        );
    }
    for (word, meaning) in [
        (
            "E[tau]",
            "accepted drafts of a round, the target's own token not counted, over every position \
             of the sampled text; where fewer tokens are left than a round drafts, it drafts these"
                .to_owned(),
        ),
        (
            "tokens per target call",
            "N / E[rounds], rounds replayed from each text's first token; a round with `left` \
             tokens to go drafts at most left - 1"
                .to_owned(),
        ),
    ] {
        all.insert(word.to_owned(), meaning);
    }
    for verifier in ChainVerifier::ALL {
        all.insert(
            format!("chain {verifier}"),
            format!(
                "verifier of a chain of drafts with P(tau >= i) = {}, r_j = q(y)/p(y) at the j-th \
                 token y of the sampled text, R_i = r_1 ... r_i and R_0 = 1",
                verifier.formula()
            ),
        );
    }
    all.insert(
        "block-optimum".to_owned(),
        format!(
            "expected number of the {block_length} tokens of one drafted block that the best block \
             verifier accepts, the corrected or bonus token not counted: sum over t of E min(1, q/p \
             of the first t tokens) over text sampled from the target"
        ),
    );
    all.insert(
        "lemma-5.1".to_owned(),
        "SpecTr-GBV's value for K blocks: sum over t of E [1 - (1 - min(1, q/p of the first t \
         tokens))^K]; for K >= 2 it is not an upper bound, see the claims"
            .to_owned(),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::Softmax;

    /// What a report says of tokens far below the largest is what the softmax does.
    #[test]
    fn the_range_of_the_softmax_is_named() {
        let mut row = Vec::new();
        let softmax = Softmax {
            temperature: 2.0,
            ..Softmax::default()
        };
        softmax
            .fill(&[0.0f64, -2.0 * 689.9, -2.0 * 690.1], &mut row)
            .unwrap();
        assert!(row[1] > 0.0 && row[2] == 0.0, "{row:?}");
        assert!(definitions(8)["temperature"].contains("more than 690 below"));
    }
}
