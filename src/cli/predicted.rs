//! What the replay expects of a decoder's rounds, given the texts that it wrote.

use crate::capture::{CaptureError, Decoded, Decoder, EncodedPrompt, Law, Shape, children_of_rule};
use crate::distribution::Rows;
use crate::plan::{Levels, OfferedRows};
use crate::replay::{
    CarriedAlong, CountMoments, Moments, SelectedAlong, moments_from_leaves, moments_of_chain,
    moments_of_tree,
};
use crate::rounds::{ChainRule, ChildShares, TextToken, kept_from_leaves};
use crate::row::Workspace;
use crate::rule::{RULES, RuleName, Verifies};
use crate::scheme::SchemeName;
use crate::tree::DraftTree;
use crate::verifier::{UnknownVerifier, VerifierName, any_of};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
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

/// What is drafted, as the replay names it: the tree, or K and L of paths.
#[derive(Clone, Debug)]
pub(super) enum Drafted {
    Chain(usize),
    Tree(DraftTree),
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
        Drafted::Tree(tree) => match decoder.settings().rule.entry().from_leaves {
            Some(levels) => of_leaves(decoder, prompt, text, (tree, levels), interrupt),
            None => of_tree(decoder, prompt, text, tree, interrupt),
        },
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

/// Of a tree that is verified from its leaves. Rows are held as far as it is deep.
fn of_leaves(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    (tree, levels): (&DraftTree, Levels<'_>),
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    let law = match &decoder.settings().drafts {
        Shape::Tree(_, law) => *law,
        _ => children_of_rule(decoder.settings().rule),
    };
    let shape = tree.shape();
    let Some(children) = law.entry().children else {
        return Ok(None);
    };
    let counts: BTreeSet<usize> = shape.children.iter().copied().filter(|&n| n > 0).collect();
    type Here = (Vec<(usize, OfferedRows)>, u32, [f64; 2]);
    let mut ahead: VecDeque<Here> = VecDeque::new();
    let (mut kept, mut reach) = (Vec::new(), vec![0.0; shape.parent.len()]);
    let mut start = |ahead: &mut VecDeque<Here>| {
        let along: Vec<TextToken<'_>> = (ahead.iter())
            .map(|(rows, token, at)| TextToken {
                rows,
                token: *token,
                at: *at,
            })
            .collect();
        kept.push(kept_from_leaves(&shape, levels, &along, &mut reach));
        ahead.pop_front();
    };
    let take = |_, rows: Rows<'_>, token: usize, is_known| {
        if is_known {
            let both = (rows.target, rows.draft);
            let of = |&n: &usize| (n, OfferedRows::of_rows(both, children, n));
            let at = [rows.target[token], rows.draft[token]];
            ahead.push_back((counts.iter().map(of).collect(), token as u32, at));
            if ahead.len() == shape.levels() {
                start(&mut ahead);
            }
        }
        Ok(())
    };
    let is_known = by_rows(decoder, prompt, text, interrupt, take)?;
    while !ahead.is_empty() {
        start(&mut ahead);
    }
    Ok(is_known.then(|| moments_from_leaves(&shape, &kept)))
}

fn of_tree(
    decoder: &mut Decoder,
    prompt: &EncodedPrompt,
    text: &Decoded,
    tree: &DraftTree,
    interrupt: &AtomicBool,
) -> Result<Option<CountMoments<f64>>, CaptureError> {
    let refused = CaptureError::Setting;
    let rule = decoder.settings().rule;
    let law = match &decoder.settings().drafts {
        Shape::Tree(_, law) => *law,
        Shape::Chain(_) => children_of_rule(rule),
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
