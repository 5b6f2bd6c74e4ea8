//! What the replay expects of a decoder's rounds, given the texts that it wrote.

use crate::capture::{CaptureError, Decoded, Decoder, EncodedPrompt, Law, Shape};
use crate::distribution::Rows;
use crate::replay::{
    CarriedAlong, CountMoments, Moments, SelectedAlong, TreeAlong, moments_of_chain,
};
use crate::rounds::ChainRule;
use crate::row::Workspace;
use crate::rule::{RULES, RuleName, Verifies};
use crate::scheme::SchemeName;
use crate::verifier::any_of;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;

/// Says why nothing is expected of a rule's rounds given a text, where that is so.
pub(super) fn refused(rule: RuleName, law: SchemeName) -> Option<String> {
    let why = match rule.entry() {
        entry if entry.from_leaves.is_some() && law.entry().children.is_none() => format!(
            "what {rule} keeps of {law} children does not follow from the text alone, as one is \
             drawn given those before it"
        ),
        entry if entry.changes_target => format!(
            "{rule} changes the target of later rounds, and by how much does not follow from the \
             text alone"
        ),
        _ => return None,
    };
    let others = RULES.iter().filter(|entry| {
        let follows = matches!(
            entry.verifies,
            Verifies::Siblings | Verifies::Paths | Verifies::Tree
        );
        entry.decoded && follows && !entry.changes_target
    });
    let others = any_of(&others.map(|entry| entry.name).collect::<Vec<_>>());
    Some(format!(
        "--predict: {why}; leave --predict out, or predict {others}"
    ))
}

/// What is drafted, as the replay names it: a tree as the decoder has it, or K and L of paths.
#[derive(Clone, Debug)]
pub(super) enum Drafted {
    Chain(usize),
    Tree,
    Paths([usize; 2]),
}

/// Predicts a text's rounds; nothing of a text with a token that the target's run
/// over the whole text gives no probability, as at ties of logits.
pub(super) fn of_text(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    drafted: &Drafted,
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    match drafted {
        Drafted::Chain(length) => {
            let along = match decoder.settings().rule {
                rule if rule == RuleName::CARRIED => CarriedAlong::by_token(*length),
                rule if rule == RuleName::CARRIED_BLOCK => CarriedAlong::by_block(*length),
                _ => return of_chain(decoder, prompt, text, *length, interrupt),
            };
            of_carried(decoder, prompt, text, along, interrupt)
        }
        Drafted::Tree => {
            let shape = decoder.settings().drafts.clone();
            of_tree(decoder, prompt, text, &shape, interrupt)
        }
        Drafted::Paths([paths, length]) => {
            let mut along = SelectedAlong::new(*paths).map_err(CaptureError::Setting)?;
            let mut workspace = Workspace::new();
            let is_known = by_rows(decoder, prompt, text, interrupt, |_, rows, token, _| {
                along.take(&mut workspace, rows, token)
            })?;
            Ok(is_known.then(|| along.spread(*length)))
        }
    }
}

/// Tells whether the target gives every token of a text a probability. `take` is given each
/// position with both laws as rows, its token, and whether this and all tokens before it have one.
fn by_rows(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    interrupt: &AtomicBool,
    mut take: impl FnMut(usize, Rows<'_>, usize, bool) -> Result<(), String>,
) -> Result<bool, CaptureError> {
    let (mut target, mut draft, mut is_known) = (Vec::new(), Vec::new(), true);
    let mut see = |position: usize, p: &Law, q: &Law| {
        let token = text.tokens[position] as usize;
        is_known &= p.probability(token) > 0.0;
        target.clear();
        target.extend(p.probabilities());
        draft.clear();
        draft.extend(q.probabilities());
        let rows = Rows {
            target: &target,
            draft: &draft,
        };
        take(position, rows, token, is_known)
    };
    decoder.laws_along(prompt, &text.tokens, interrupt, &mut see)?;
    Ok(is_known)
}

fn of_chain(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    length: usize,
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    let mut ratios = Vec::with_capacity(text.tokens.len());
    let mut see = |position: usize, p: &Law, q: &Law| {
        let token = text.tokens[position] as usize;
        ratios.push(q.probability(token) / p.probability(token));
        Ok(())
    };
    decoder.laws_along(prompt, &text.tokens, interrupt, &mut see)?;
    let refused = CaptureError::Setting;
    let rule = decoder.settings().rule;
    let verifier: ChainRule = rule.as_str().parse().map_err(refused)?;
    let is_known = ratios.iter().all(|ratio: &f64| ratio.is_finite());
    Ok(is_known
        .then(|| moments_of_chain(verifier, &ratios, length))
        .flatten())
}

fn of_carried(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    mut along: CarriedAlong<f64>,
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    let most = decoder.settings().max_tokens;
    let take = |position: usize, rows: Rows<'_>, token, is_known| {
        if is_known {
            let drafted = position + 1 < most;
            along.take(drafted.then_some((rows.target, rows.draft)), token);
        }
        Ok(())
    };
    let is_known = by_rows(decoder, prompt, text, interrupt, take)?;
    Ok(is_known.then(|| along.spread()))
}

fn of_tree(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    shape: &Shape,
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    let Some((tree, law)) = shape.tree() else {
        return Ok(None);
    };
    let settings = decoder.settings();
    let mut along =
        TreeAlong::new((settings.rule, law), tree, settings.seed).map_err(CaptureError::Setting)?;
    let take = |_, rows: Rows<'_>, token, is_known| match is_known {
        true => along.take(rows, token),
        false => Ok(()),
    };
    let is_known = by_rows(decoder, prompt, text, interrupt, take)?;
    Ok(is_known.then(|| along.spread()))
}

/// A text's expectations.
pub(super) fn object(spread: &CountMoments<f64>) -> Value {
    let of = |moments: &Moments<f64>| {
        json!({
            "mean": moments.mean,
            "sd": moments.variance.sqrt(),
        })
    };
    json!({
        "calls": of(&spread.calls),
        "draft_tokens_in_text": spread.drafts.as_ref().map(of),
    })
}

/// Counts of all texts of which something is expected, against what is.
pub(super) fn totals<'a>(
    texts: impl Iterator<Item = (&'a Decoded, &'a CountMoments<f64>)> + Clone,
) -> Value {
    type Of = fn(&CountMoments<f64>) -> Option<&Moments<f64>>;
    let against = |count: fn(&Decoded) -> usize, of: Of| {
        let each = texts
            .clone()
            .map(|(text, spread)| Some((count(text), of(spread)?)));
        // Of all texts, or of none.
        let each: Vec<(usize, &Moments<f64>)> = each.collect::<Option<_>>()?;
        let counted: usize = each.iter().map(|one| one.0).sum();
        let mean: f64 = each.iter().map(|one| one.1.mean).sum();
        let variance: f64 = each.iter().map(|one| one.1.variance).sum();
        let sd = variance.sqrt();
        Some(json!({
            "counted": counted,
            "mean": mean,
            "sd": sd,
            "z": (sd > 0.0).then(|| (counted as f64 - mean) / sd),
        }))
    };
    json!({
        "texts": texts.clone().count(),
        "calls": against(|text| text.rounds.len(), |spread| Some(&spread.calls)),
        "draft_tokens_in_text": against(Decoded::drafts_in_text, |spread| spread.drafts.as_ref()),
    })
}

/// Puts them in words, a line.
pub(super) fn in_words(totals: &Value) -> String {
    let one = |what: &str, numbers: &Value| {
        let counted = &numbers["counted"];
        let [Some(mean), Some(sd)] = ["mean", "sd"].map(|name| numbers[name].as_f64()) else {
            return format!("{counted} {what}, and no number of what is expected came out");
        };
        let z = match numbers["z"].as_f64() {
            Some(z) => format!("z = {z:+.2}"),
            None => "no chance in it".to_owned(),
        };
        format!("{counted} {what}, {mean:.1} expected (sd {sd:.1}; {z})")
    };
    let calls = one("target calls", &totals["calls"]);
    let drafts = match &totals["draft_tokens_in_text"] {
        Value::Null => "how many drafts does not follow from a text".to_owned(),
        drafts => one("drafts in the text", drafts),
    };
    format!(
        "given these texts: {calls}; {drafts}. |z| > 3 comes once in 370 runs of a decoder that is right"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_none_is_not_put_as_0() {
        let mut totals = json!({
            "calls": {"counted": 8, "mean": f64::NAN, "sd": f64::NAN, "z": null},
            "draft_tokens_in_text": {"counted": 5, "mean": 5.0, "sd": 0.0, "z": null},
        });
        let words = in_words(&totals);
        assert!(words.contains("8 target calls, and no number"), "{words}");
        assert!(
            words.contains("5 drafts in the text, 5.0 expected (sd 0.0; no chance"),
            "{words}"
        );
        totals["calls"] = json!({"counted": 8, "mean": 7.51, "sd": 1.02, "z": 0.48});
        assert!(in_words(&totals).contains("8 target calls, 7.5 expected (sd 1.0; z = +0.48)"));
    }
}
