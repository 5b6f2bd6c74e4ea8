//! What no lossless verifier of a decoder's trees could keep of them, in rounds that start with the
//! target's own law.

use crate::capture::{CaptureError, Decoded, Decoder, EncodedPrompt, Law};
use crate::replay::{DraftedTree, tree_bound};
use crate::rule::RuleName;
use crate::statistics::Estimate;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// The trees of a text's rounds, each with the text behind its start. Rounds that could draft
/// nothing are left out; and all of a text with a token that the target's run over the whole
/// text gives no probability, as at ties of logits.
pub(super) fn of_text(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    interrupt: &AtomicBool,
) -> Result<Vec<DraftedTree>, CaptureError> {
    let (mut ratios, mut overlaps) = (Vec::new(), Vec::new());
    let mut see = |position: usize, p: &Law, q: &Law| {
        let token = text.tokens[position] as usize;
        ratios.push(q.probability(token) / p.probability(token));
        let both = p.probabilities().zip(q.probabilities());
        overlaps.push(both.map(|(p, q)| p.min(q)).sum::<f64>());
        Ok(())
    };
    decoder.laws_along(prompt, &text.tokens, interrupt, &mut see)?;
    if !ratios.iter().all(|ratio: &f64| ratio.is_finite()) {
        return Ok(Vec::new());
    }
    let trees = text.rounds.iter().filter_map(|round| {
        let tree = round.tree.as_ref().filter(|tree| tree.levels > 0)?;
        let behind = ratios.get(round.start..)?;
        Some(DraftedTree {
            prompt: text.prompt,
            overlap: overlaps.get(round.start).copied()?,
            ratios: behind.iter().take(tree.levels).copied().collect(),
            parents: tree.parents.clone(),
            weights: tree.weights.clone(),
            accepted: tree.expected.iter().map(|&(_, mean)| mean).collect(),
        })
    });
    Ok(trees.collect())
}

/// The rules that settle the trees.
fn rules<'a>(texts: impl Iterator<Item = &'a Decoded>) -> Vec<RuleName> {
    let mut rounds = texts.flat_map(|text| &text.rounds);
    let first = rounds.find_map(|round| round.tree.as_ref());
    first.map_or_else(Vec::new, |tree| {
        tree.expected.iter().map(|&(rule, _)| rule).collect()
    })
}

/// Returns the bound as `decode.json` has it.
pub(super) fn object<'a>(trees: &[DraftedTree], texts: impl Iterator<Item = &'a Decoded>) -> Value {
    let estimate = |one: &Estimate| json!({"mean": one.mean, "ci95": one.ci95});
    let bound = tree_bound(trees);
    let prompts: BTreeSet<usize> = trees.iter().map(|tree| tree.prompt).collect();
    let rules = rules(texts);
    json!({
        "contexts": trees.len(),
        "prompts": prompts.len(),
        "upper_bound": bound.as_ref().map(|bound| estimate(&bound.upper_bound)),
        "limits": bound.as_ref().map(|bound| &bound.limits),
        "verifiers": bound.as_ref().map_or_else(Vec::new, |bound| {
            let each = rules.iter().zip(&bound.accepted);
            each.map(|(rule, [accepted, below])| json!({
                "verifier": rule.as_str(),
                "expected_accepted_length": estimate(accepted),
                "below_upper_bound": estimate(below),
            }))
            .collect()
        }),
    })
}

/// Puts that in words: what is possible, then verifier by verifier.
pub(super) fn in_words(bound: &Value) -> Vec<String> {
    let plus_minus = |value: &Value| {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let half = (number(&value["ci95"][1]) - number(&value["ci95"][0])) / 2.0;
        format!("{:.3} ± {half:.3}", number(&value["mean"]))
    };
    let upper = &bound["upper_bound"];
    if !upper.is_object() {
        return vec![
            "bound: none from these texts; limits are fitted on half of the prompts and reported on \
             the others: decode at least two prompts of two tokens"
                .to_owned(),
        ];
    }
    let mut lines = vec![format!(
        "in rounds that start with the target's own law no lossless verifier of trees drafted so keeps \
         more than {} on average, at the {} contexts of {} prompts that rounds drafted from (95%, over prompts)",
        plus_minus(upper),
        bound["contexts"],
        bound["prompts"]
    )];
    let verifiers = bound["verifiers"].as_array();
    for one in verifiers.into_iter().flatten() {
        let mean = &one["expected_accepted_length"];
        let share = mean["mean"].as_f64().zip(upper["mean"].as_f64());
        let share = share.filter(|&(_, upper)| upper > 0.0);
        lines.push(format!(
            "  {} keeps {} of the same trees, {} below that{}",
            one["verifier"].as_str().unwrap_or(""),
            plus_minus(mean),
            plus_minus(&one["below_upper_bound"]),
            share.map_or_else(String::new, |(mean, upper)| format!(
                ": at least {:.0}% of what is possible",
                100.0 * (mean / upper).min(1.0)
            ))
        ));
    }
    lines
}
