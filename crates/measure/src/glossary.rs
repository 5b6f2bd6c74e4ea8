//! What the words of a report mean.

use super::metric::{rules, schemes};
use specgap_base::glossary;
use specgap_core::rounds::ChainRule;
use specgap_core::scheme::drafted_by;
use std::collections::BTreeMap;

/// Returns what the words of a report mean, for blocks of some length.
pub fn definitions(block_length: usize) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = glossary::of("gap");
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
    for verifier in ChainRule::all() {
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
        let softmax = Softmax { temperature: 2.0 };
        softmax
            .fill(&[0.0f64, -2.0 * 689.9, -2.0 * 690.1], &mut row)
            .unwrap();
        assert!(row[1] > 0.0 && row[2] == 0.0, "{row:?}");
        assert!(definitions(8)["temperature"].contains("more than 690 below"));
    }
}
