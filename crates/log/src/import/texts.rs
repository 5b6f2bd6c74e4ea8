//! Records of both models, put together text by text.

use super::error::{Fault, ImportError};
use super::json::{self, Place};
use super::lists::{Counts, Position, Text, Vocabulary, pair};
use super::options::Request;
use serde::de::DeserializeOwned;
use specgap_base::sorted::Map;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A record of an engine whose exports are JSON.
pub(super) trait Record: DeserializeOwned + Sized {
    /// Two responses in one record, if that is what it is.
    fn both(&mut self) -> (Option<Box<Self>>, Option<Box<Self>>);

    /// Returns what was added to the record: whose text it is, where its first row stands there,
    /// its token, and how many tokens of it are the prompt.
    fn place(&self) -> InText;

    /// The text, as its model scored it.
    fn text(
        self,
        token: Option<i64>,
        request: &Request,
        vocabulary: &mut Vocabulary,
    ) -> Result<Text, Fault>;
}

/// A prompt, a position, a token and the tokens of the prompt, as far as they are said.
pub(super) type InText = [Option<i64>; 4];

/// What is said under these names.
const NAMES: [&str; 4] = ["prompt_id", "position", "token", "prompt_length"];

/// Returns what either of two records of one text says.
///
/// # Errors
/// Both say it, and not the same.
fn or(one: InText, other: InText) -> Result<InText, Fault> {
    let mut both = one;
    for ((said, other), name) in both.iter_mut().zip(other).zip(NAMES) {
        if let (Some(said), Some(other)) = (&said, other)
            && *said != other
        {
            let message = format!(
                "is {other}, and {said} in the record beside it of the same text; say it once, or alike"
            );
            return Err(Fault::new(name, message));
        }
        *said = said.or(other);
    }
    Ok(both)
}

/// A count as a number that may be said.
pub(super) fn said(count: Option<usize>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

/// The texts of an export, each with the number of its prompt and the index of its first
/// row.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub all: Vec<(i64, i64, Vec<Position>)>,
    pub count: usize,
    /// By prompt, the places that records had of its last text.
    places: Map<i64, BTreeSet<i64>>,
    /// What the target's and the draft's records say of themselves.
    pub models: [Option<String>; 2],
    pub counts: Counts,
    pub temperature_applied: Option<f64>,
    pub sampler: [bool; 2],
}

impl Texts {
    /// Takes a record's places in the text of its prompt; at 0 again another text begins, but for
    /// records of one token each.
    fn take(
        &mut self,
        (prompt, first): (i64, i64),
        positions: Vec<Position>,
        is_step: bool,
    ) -> Result<(), Fault> {
        let places = self.places.at(prompt);
        if places.is_empty() || first == 0 && !is_step && places.contains(&0) {
            places.clear();
            self.count += 1;
        }
        for index in 0..positions.len() {
            let position = first.saturating_add(index as i64);
            if !places.insert(position) {
                let message = format!(
                    "two records are of position {position} of prompt {prompt}; give records of parts \
                     of a text the \"position\" of their first row, and each text a \"prompt_id\" of its own"
                );
                return Err(Fault::new("position", message));
            }
        }
        self.all.push((prompt, first, positions));
        Ok(())
    }
}

/// All records of some files.
fn records<R: Record>(paths: &[PathBuf]) -> Result<Vec<(Place, R)>, ImportError> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(json::read(path)?);
    }
    Ok(all)
}

/// A text's record of the target and that of the draft, each with its place.
type Pair<R> = (InText, (Place, R), (Place, R));

/// Reads the files of a request.
pub(super) fn read<R: Record>(
    request: &Request,
    vocabulary: &mut Vocabulary,
) -> Result<Texts, ImportError> {
    let mut pairs: Vec<Pair<R>> = Vec::new();
    if request.joint.is_empty() {
        let targets = records::<R>(&request.target)?;
        let drafts = records::<R>(&request.draft)?;
        if targets.len() != drafts.len() {
            return Err(ImportError::Options(format!(
                "⟨target⟩ has {} records and ⟨draft⟩ {}; the n-th of one is to be of the same \
                 text as the n-th of the other",
                targets.len(),
                drafts.len()
            )));
        }
        for (mut target, mut draft) in targets.into_iter().zip(drafts) {
            for (place, record) in [&mut target, &mut draft] {
                if let (Some(_), _) | (_, Some(_)) = record.both() {
                    return Err(place.refuse(Fault::new(
                        "target",
                        "is there: this record is of both models; name its file without ⟨target⟩ \
                         and ⟨draft⟩",
                    )));
                }
            }
            let place = or(target.1.place(), draft.1.place());
            let place = place.map_err(|fault| draft.0.refuse(fault))?;
            pairs.push((place, target, draft));
        }
    } else {
        for (place, mut record) in records::<R>(&request.joint)? {
            let outer = record.place();
            let (target, draft) = match record.both() {
                (Some(target), Some(draft)) => (*target, *draft),
                (target, _) => {
                    let missing = if target.is_some() { "draft" } else { "target" };
                    return Err(place.refuse(Fault::new(
                        missing,
                        "is missing; a record of both models is {\"target\": RESPONSE, \"draft\": \
                         RESPONSE}, and files of one model each go behind ⟨target⟩ and ⟨draft⟩",
                    )));
                }
            };
            let inner = or(outer, target.place()).and_then(|both| or(both, draft.place()));
            let inner = inner.map_err(|fault| place.refuse(fault))?;
            pairs.push((inner, (place.clone(), target), (place, draft)));
        }
    }
    let joint = !request.joint.is_empty();
    let mut texts = Texts::default();
    for (number, (place, target, draft)) in pairs.into_iter().enumerate() {
        let [prompt, position, token, prompt_length] = place;
        let mut scored = |(at, record): (Place, R), model: &str| {
            let text = record
                .text(token, request, vocabulary)
                .map_err(|mut fault| {
                    if joint {
                        fault.field = format!("{model}.{}", fault.field);
                    }
                    at.refuse(fault)
                })?;
            Ok::<_, ImportError>((at, text))
        };
        let (target_place, mut target) = scored(target, "target")?;
        let (draft_place, mut draft) = scored(draft, "draft")?;
        for (model, text) in [&mut target, &mut draft].into_iter().enumerate() {
            let slot = &mut texts.models[model];
            match (&slot, text.model.take()) {
                (None, name) => *slot = name,
                (Some(before), Some(name)) if *before != name => {
                    let place = [&target_place, &draft_place][model];
                    return Err(place.refuse(Fault::new(
                        "model",
                        format!("is {name:?} where records before it are of {before:?}"),
                    )));
                }
                _ => {}
            }
            texts.counts.add(text.counts);
            texts.sampler[model] |= text.sampler;
        }
        if texts
            .temperature_applied
            .is_some_and(|before| before != target.temperature_applied)
        {
            return Err(target_place.refuse(Fault::new(
                target.token_field,
                format!(
                    "rows are divided by temperature {} and those of records before it are not; \
                     import them as logs of their own",
                    target.temperature_applied
                ),
            )));
        }
        texts.temperature_applied = Some(target.temperature_applied);
        let positions = pair(
            (&target_place, target),
            (&draft_place, draft),
            [
                prompt_length.and_then(|length| usize::try_from(length).ok()),
                request.prompt_tokens,
            ],
        )?;
        if positions.is_empty() {
            return Err(target_place.refuse(Fault::new("the record", "has no tokens")));
        }
        let prompt = prompt.unwrap_or(number as i64);
        let place = (prompt, position.unwrap_or(0));
        let taken = texts.take(place, positions, token.is_some());
        taken.map_err(|fault| target_place.refuse(fault))?;
    }
    Ok(texts)
}
