//! An import's rows, as the tensors of a log.

use super::error::ImportError;
use super::hf;
use super::lists::{Listed, Position, Vocabulary};
use super::options::Request;
use super::texts::Texts;
use crate::log::{Dtype, FileIdentity, RawTensor, WholeLog, filled};
use serde::Serialize;
use specgap_base::sorted::Map;
use std::path::Path;

/// What an import made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Imported {
    /// Where from.
    pub engine: String,
    /// N.
    pub positions: usize,
    /// Texts.
    pub texts: usize,
    /// V.
    pub vocabulary: usize,
    /// The most tokens that a position lists: V for full rows.
    pub listed: usize,
    /// What is said of tokens that are not listed: `full rows`, `not listed` (they have
    /// the mass that is missing), `never-drawn` (the sampler truncates) or `own tokens` (only
    /// the text's own are listed).
    pub rows: String,
    /// The log's rows are raw logits over this.
    pub temperature_applied: f64,
    /// Mass that the lists leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Unlisted>,
    /// Positions at which the two models list the same tokens.
    pub same_tokens: usize,
    /// Draft tokens that the engine accepted over those that it verified, if it counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_acceptance: Option<f64>,
}

/// Mass that lists leave out, at the temperature of the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unlisted {
    /// Mean over positions, of the target.
    pub target_mean: f64,
    /// The most at any position, of the target.
    pub target_max: f64,
    /// Mean over positions, of the draft.
    pub draft_mean: f64,
    /// The most at any position, of the draft.
    pub draft_max: f64,
}

/// A model that is known by name alone.
pub(super) fn named(name: Option<&String>) -> Option<FileIdentity> {
    name.map(|name| FileIdentity {
        name: name.clone(),
        sha256: None,
    })
}

/// Positions of a shard.
const SHARD: usize = 8192;

/// Arrays of Hugging Face: full rows, a shard each file.
pub(super) fn arrays(request: &Request, log: &mut WholeLog) -> Result<Imported, ImportError> {
    let files: Vec<(&Path, Option<&Path>)> = if request.joint.is_empty() {
        if request.target.len() != request.draft.len() {
            return Err(ImportError::Options(format!(
                "⟨target⟩ has {} files and ⟨draft⟩ {}; the n-th of one is to be of the same text \
                 as the n-th of the other",
                request.target.len(),
                request.draft.len()
            )));
        }
        let pairs = request.target.iter().zip(&request.draft);
        pairs
            .map(|(target, draft)| (target.as_path(), Some(draft.as_path())))
            .collect()
    } else {
        request
            .joint
            .iter()
            .map(|path| (path.as_path(), None))
            .collect()
    };
    let (mut positions, mut texts, mut rounds) = (0, 0i64, [0u64; 3]);
    let mut alike: Option<(usize, f64)> = None;
    for (path, draft) in files {
        let shard = match draft {
            Some(draft) => hf::two_files(path, draft, request, texts)?,
            None => hf::recorded(path, request, texts)?,
        };
        let this = (shard.vocabulary, shard.temperature_applied);
        if let Some(before) = alike.filter(|&before| before != this) {
            return Err(ImportError::input(
                path,
                format!(
                    "has V = {} and temperature {} where the files before it have {} and {}",
                    this.0, this.1, before.0, before.1
                ),
            ));
        }
        alike = Some(this);
        log.shard(shard.positions, &shard.tensors)?;
        positions += shard.positions;
        texts += shard.texts;
        for (sum, one) in rounds.iter_mut().zip(shard.rounds) {
            *sum += one;
        }
    }
    let (vocabulary, temperature_applied) = alike.unwrap_or((0, 1.0));
    let metadata = log.metadata_mut();
    metadata.vocabulary = Some(vocabulary);
    metadata.temperature_applied = Some(temperature_applied);
    let [_, drafted, accepted] = rounds;
    Ok(Imported {
        engine: request.engine.as_str().to_owned(),
        positions,
        texts: usize::try_from(texts).unwrap_or(0),
        vocabulary,
        listed: vocabulary,
        rows: "full rows".to_owned(),
        temperature_applied,
        unlisted: None,
        same_tokens: positions,
        engine_acceptance: (drafted > 0).then(|| accepted as f64 / drafted as f64),
    })
}

/// Lists of tokens, as they are.
pub(super) fn lists(
    request: &Request,
    texts: Texts,
    vocabulary: &Vocabulary,
    log: &mut WholeLog,
) -> Result<Imported, ImportError> {
    let [of_target, of_draft] = texts.sampler;
    if of_target != of_draft {
        return Err(ImportError::Options(
            "one model's lists are after its sampler truncates and the other's are before; export \
             both alike"
                .to_owned(),
        ));
    }
    let never_drawn = of_target;
    let positions = || texts.all.iter().flat_map(|(_, _, positions)| positions);
    let count = positions().count();
    let complete = |position: &Position, size: usize| {
        let mut lists = position.lists.iter();
        lists.all(|list| list.entries.len() == size)
    };
    let size = match request.vocabulary {
        Some(size) => size,
        // Texts alone: there may be any number of others.
        None => {
            let first = positions().next();
            let listed = first.map_or(0, |position| position.lists[0].entries.len());
            let largest = positions()
                .flat_map(|position| position.lists[0].entries.iter())
                .map(|&(id, _)| id as usize + 1)
                .max();
            // A list that has every id from 0 on has all of them.
            if largest == Some(listed) && positions().all(|position| complete(position, listed)) {
                listed
            } else {
                return Err(ImportError::Options(
                    "⟨vocab N⟩ is missing: the lists do not say how many tokens the models have \
                     (\"vocab_size\" in a model's config.json, padding included)"
                        .to_owned(),
                ));
            }
        }
    };
    let full =
        vocabulary.texts().is_empty() && positions().all(|position| complete(position, size));
    let (mut same_tokens, mut listed) = (0, 0);
    let (mut means, mut most, mut tops) = ([0.0; 2], [0.0f64; 2], [usize::MAX; 2]);
    let mut alone = [true; 2];
    for position in positions() {
        for (model, list) in position.lists.iter().enumerate() {
            let rest = list.rest();
            means[model] += rest / count as f64;
            most[model] = most[model].max(rest);
            tops[model] = tops[model].min(list.most_probable);
            alone[model] &= list.entries.len() == 1;
        }
        let ids = union(position).len();
        listed = listed.max(ids);
        same_tokens += usize::from(complete(position, ids));
    }
    // The text's own token alone, which is listed because it came out.
    for (top, alone) in tops.iter_mut().zip(alone) {
        if alone {
            *top = 0;
        }
    }
    let metadata = log.metadata_mut();
    metadata.vocabulary = Some(size);
    metadata.temperature_applied = Some(texts.temperature_applied.unwrap_or(1.0));
    let [target, draft] = &texts.models;
    metadata.target = metadata.target.take().or_else(|| named(target.as_ref()));
    metadata.draft = metadata.draft.take().or_else(|| named(draft.as_ref()));
    metadata.token_text = (0..).zip(vocabulary.texts().iter().cloned()).collect();
    if never_drawn {
        metadata
            .extra
            .insert("unlisted".to_owned(), "never-drawn".into());
    } else if !full {
        let [target, draft] = tops;
        let tops = serde_json::json!({ "target": target, "draft": draft });
        metadata.extra.insert("top".to_owned(), tops);
    }
    let form = match (full, never_drawn, same_tokens == count) {
        (true, ..) => Form::Full,
        (false, true, _) => Form::NeverDrawn,
        (false, false, true) => Form::Common,
        (false, false, false) => Form::Own,
    };
    let mut rows = Vec::new();
    for (prompt, first, positions) in texts.all {
        for (index, position) in positions.into_iter().enumerate() {
            rows.push((prompt, first.saturating_add(index as i64), position));
            if rows.len() == SHARD {
                shard(&rows, form, log)?;
                rows.clear();
            }
        }
    }
    if !rows.is_empty() {
        shard(&rows, form, log)?;
    }
    let temperature_applied = log.metadata_mut().applied();
    let counts = texts.counts;
    Ok(Imported {
        engine: request.engine.as_str().to_owned(),
        positions: count,
        texts: texts.count,
        vocabulary: size,
        listed,
        rows: match (full, never_drawn) {
            (true, _) => "full rows",
            (false, true) => "never-drawn",
            (false, false) => "not listed",
        }
        .to_owned(),
        temperature_applied,
        unlisted: (!full && !never_drawn).then_some(Unlisted {
            target_mean: means[0],
            target_max: most[0],
            draft_mean: means[1],
            draft_max: most[1],
        }),
        same_tokens,
        engine_acceptance: (counts.drafted > 0)
            .then(|| counts.accepted as f64 / counts.drafted as f64),
    })
}

/// The tokens of both lists, ascending, each with what either says of it.
fn union(position: &Position) -> Map<u32, [Option<f64>; 2]> {
    let mut tokens: Map<u32, [Option<f64>; 2]> = Map::new();
    for (model, list) in position.lists.iter().enumerate() {
        for &(id, value) in &list.entries {
            if let Some(slot) = tokens.at(id).get_mut(model) {
                *slot = Some(value);
            }
        }
    }
    tokens
}

/// How lists are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// All V tokens, in order.
    Full,
    /// The tokens of either list under one set of ids; those that one does not list cannot
    /// be drawn.
    NeverDrawn,
    /// Both list the same tokens, under one set of ids.
    Common,
    /// Each lists tokens of its own.
    Own,
}

/// Writes positions as a shard.
fn shard(rows: &[(i64, i64, Position)], form: Form, log: &mut WholeLog) -> Result<(), ImportError> {
    // Ids and log-probabilities of each position, by ascending id.
    let mut lists: [Vec<Listed>; 2] = Default::default();
    for (_, _, position) in rows {
        let tokens = (form == Form::NeverDrawn).then(|| union(position));
        for (model, (all, list)) in lists.iter_mut().zip(&position.lists).enumerate() {
            let value = |said: &[Option<f64>; 2]| said[model].unwrap_or(f64::NEG_INFINITY);
            all.push(match &tokens {
                Some(tokens) => tokens.iter().map(|(&id, said)| (id, value(said))).collect(),
                None => {
                    let mut entries = list.entries.clone();
                    entries.sort_unstable_by_key(|&(id, _)| id);
                    entries
                }
            });
        }
    }
    let [target, draft] = &lists;
    let mut tensors = vec![
        values("target_logprobs", target),
        values("draft_logprobs", draft),
    ];
    match form {
        Form::Full => {}
        Form::NeverDrawn | Form::Common => tensors.push(ids("token_ids", target)),
        Form::Own => {
            tensors.push(ids("target_token_ids", target));
            tensors.push(ids("draft_token_ids", draft));
        }
    }
    let column =
        |value: fn(&(i64, i64, Position)) -> i64| rows.iter().map(value).collect::<Vec<_>>();
    for (name, values) in [
        ("prompt_id", column(|row| row.0)),
        ("position", column(|row| row.1)),
        ("token", column(|row| i64::from(row.2.token))),
    ] {
        tensors.push(RawTensor::integers(name, &values));
    }
    log.shard(rows.len(), &tensors)?;
    Ok(())
}

/// Lists of unequal length, filled up at the end.
fn tensor(
    name: &'static str,
    dtype: Dtype,
    lists: &[Listed],
    entry: impl Fn(&(u32, f64)) -> [u8; 4],
    unused: [u8; 4],
) -> RawTensor {
    let rows = lists.iter().map(|list| list.iter().map(&entry).collect());
    let (width, entries) = filled(&rows.collect::<Vec<Vec<_>>>(), unused);
    RawTensor {
        name,
        dtype,
        shape: vec![lists.len(), width],
        data: entries.into_flattened(),
    }
}

fn values(name: &'static str, lists: &[Listed]) -> RawTensor {
    let entry = |&(_, value): &(u32, f64)| (value as f32).to_le_bytes();
    tensor(
        name,
        Dtype::F32,
        lists,
        entry,
        f32::NEG_INFINITY.to_le_bytes(),
    )
}

fn ids(name: &'static str, lists: &[Listed]) -> RawTensor {
    let entry = |&(id, _): &(u32, f64)| id.cast_signed().to_le_bytes();
    tensor(name, Dtype::I32, lists, entry, (-1i32).to_le_bytes())
}
