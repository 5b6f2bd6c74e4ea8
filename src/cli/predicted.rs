//! What the replay expects of a decoder's rounds, given the texts that it wrote.

use crate::capture::{CaptureError, Decoded, Decoder, EncodedPrompt, Law, Shape, children_of_rule};
use crate::distribution::Rows;
use crate::replay::{
    CarriedAlong, CodedAlong, CountMoments, Moments, SelectedAlong, moments_of_chain,
    moments_of_tree,
};
use crate::rounds::{ChainRule, ChildShares};
use crate::row::Workspace;
use crate::rule::{RULES, RuleName, Verifies};
use crate::tree::DraftTree;
use crate::verifier::{UnknownVerifier, VerifierName, any_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// Says why nothing is expected of a rule's rounds given a text, where that is so.
pub(super) fn refused(rule: RuleName) -> Option<String> {
    let why = match rule.entry() {
        entry if entry.verifies == Verifies::Tree => {
            format!("rounds of {rule} are not predicted; specgap tree replays them")
        }
        entry if entry.changes_target => format!(
            "{rule} changes the target of later rounds, and by how much does not follow from the \
             text alone"
        ),
        _ => return None,
    };
    let others = RULES.iter().filter(|entry| {
        let follows = matches!(entry.verifies, Verifies::Siblings | Verifies::Paths);
        entry.decoded && follows && !entry.changes_target
    });
    let others = any_of(&others.map(|entry| entry.name).collect::<Vec<_>>());
    Some(format!(
        "--predict: {why}; leave --predict out, or predict {others}"
    ))
}

/// What is drafted, as the replay names it: the tree, or K and L of paths, independent or by codes.
#[derive(Clone, Debug)]
pub(super) enum Drafted {
    Chain(usize),
    Tree(DraftTree),
    Paths([usize; 2]),
    Coded([usize; 2]),
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
        Drafted::Tree(tree) => of_tree(decoder, prompt, text, tree, interrupt),
        Drafted::Paths([paths, length]) => {
            let mut along =
                SelectedAlong::new(*paths).map_err(|message| CaptureError::Setting { message })?;
            let mut workspace = Workspace::new();
            let is_known = by_rows(decoder, prompt, text, interrupt, |_, rows, token, _| {
                along.take(&mut workspace, rows, token)
            })?;
            Ok(is_known.then(|| along.spread(*length)))
        }
        Drafted::Coded([paths, length]) => {
            let mut along = CodedAlong::new(decoder.settings().rule, *paths, *length)
                .map_err(|message| CaptureError::Setting { message })?;
            let is_known = by_rows(decoder, prompt, text, interrupt, |_, rows, token, _| {
                along.take(rows, token);
                Ok(())
            })?;
            Ok(is_known.then(|| along.spread()))
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
    let refused = |message: String| CaptureError::Setting { message };
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
    tree: &DraftTree,
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    let refused = |message: String| CaptureError::Setting { message };
    let rule = decoder.settings().rule;
    let law = match &decoder.settings().drafts {
        Shape::Tree(_, law) => *law,
        Shape::Chain(_) | Shape::Coded(_) => children_of_rule(rule),
    };
    let name: VerifierName =
        (rule.as_str().parse()).map_err(|error: UnknownVerifier| refused(error.to_string()))?;
    let rule = name
        .at_token(law)
        .ok_or_else(|| refused(format!("{name} does not know children by their rank")))?;
    let shape = tree.shape();
    // Numbers of children that any node has.
    let counts: BTreeSet<usize> = shape.children.iter().copied().filter(|&n| n > 0).collect();
    let seed = decoder.settings().seed;
    let mut workspace = Workspace::new();
    let most = counts.last().copied().unwrap_or(1);
    let mut tables: Vec<Vec<f64>> = vec![Vec::new(); counts.len()];
    let take = |position: usize, rows: Rows<'_>, token, _| {
        let mut row = (workspace.load(rows, most)).map_err(|error| error.to_string())?;
        for (&count, table) in counts.iter().zip(&mut tables) {
            let shares = rule
                .shares(&mut row, token, count, seed ^ position as u64)
                .map_err(|error| error.to_string())?;
            table.extend(shares);
        }
        Ok(())
    };
    let is_known = by_rows(decoder, prompt, text, interrupt, take)?;
    let tables = counts.iter().copied().zip(tables);
    let shares = ChildShares::new(text.tokens.len(), false, tables);
    // Nodes of the last level have no children to ask for.
    Ok(is_known.then(|| moments_of_tree(&shape, &shares)))
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
        "draft_tokens_in_text": of(&spread.drafts),
    })
}

/// Counts of all texts of which something is expected, against what is.
pub(super) fn totals<'a>(
    texts: impl Iterator<Item = (&'a Decoded, &'a CountMoments<f64>)> + Clone,
) -> Value {
    let against = |count: fn(&Decoded) -> usize, of: fn(&CountMoments<f64>) -> &Moments<f64>| {
        let counted: usize = texts.clone().map(|(text, _)| count(text)).sum();
        let mean: f64 = texts.clone().map(|(_, spread)| of(spread).mean).sum();
        let variance: f64 = texts.clone().map(|(_, spread)| of(spread).variance).sum();
        let sd = variance.sqrt();
        json!({
            "counted": counted,
            "mean": mean,
            "sd": sd,
            "z": (sd > 0.0).then(|| (counted as f64 - mean) / sd),
        })
    };
    json!({
        "texts": texts.clone().count(),
        "calls": against(|text| text.rounds.len(), |spread| &spread.calls),
        "draft_tokens_in_text": against(Decoded::drafts_in_text, |spread| &spread.drafts),
    })
}

/// Puts them in words, a line.
pub(super) fn in_words(totals: &Value) -> String {
    let one = |what: &str, numbers: &Value| {
        let number = |name: &str| numbers[name].as_f64().unwrap_or(0.0);
        let z = match numbers["z"].as_f64() {
            Some(z) => format!("z = {z:+.2}"),
            None => "no chance in it".to_owned(),
        };
        format!(
            "{:.0} {what}, {:.1} expected (sd {:.1}; {z})",
            number("counted"),
            number("mean"),
            number("sd")
        )
    };
    format!(
        "given these texts: {}; {}. |z| > 3 comes once in 370 runs of a decoder that is right",
        one("target calls", &totals["calls"]),
        one("drafts in the text", &totals["draft_tokens_in_text"])
    )
}
