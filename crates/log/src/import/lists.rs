//! What both models say along one text, put together.

use super::error::{Fault, ImportError};
use super::json::{LogProb, Place};
use std::collections::{HashMap, HashSet};

/// A list is over 1 by this much at most: its entries are rounded, and engines compute in
/// f32.
const SUM_TOLERANCE: f64 = 1e-4;
/// How far below 1 the list of a sampler may sum: what a float loses.
const SAMPLER_TOLERANCE: f64 = 2e-3;

/// Some tokens of one model's row, with their log-probabilities.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    /// No token twice.
    pub entries: Listed,
    /// No token that is not listed has a larger log-probability.
    pub largest_unlisted: f64,
    /// How many of the entries are the most probable tokens of the row, for certain.
    pub most_probable: usize,
}

impl List {
    /// A list of the most probable tokens and, maybe, the text's own `token`.
    ///
    /// The text's token is listed even where it is not among the most probable, so that
    /// it says nothing of the others where it is the least.
    pub(super) fn top(entries: Listed, token: u32) -> Result<Self, String> {
        let mut list = Self {
            entries: Vec::with_capacity(entries.len()),
            largest_unlisted: 0.0,
            most_probable: 0,
        };
        let mut seen: HashMap<u32, f64> = HashMap::with_capacity(entries.len());
        for (id, value) in entries {
            match seen.insert(id, value) {
                None => list.entries.push((id, value)),
                Some(before) if before == value => {}
                Some(before) => {
                    return Err(format!(
                        "token {id} is listed twice, with {before} and with {value}"
                    ));
                }
            }
        }
        let sum = list.sum();
        if sum > 1.0 + SUM_TOLERANCE {
            return Err(format!(
                "the list's probabilities sum to {sum:.6}, which is more than 1; these are no \
                 logprobs of one row"
            ));
        }
        if sum <= 0.0 {
            return Err("lists no token of positive probability".to_owned());
        }
        let least = |entries: &mut dyn Iterator<Item = &(u32, f64)>| {
            entries.map(|&(_, value)| value).fold(0.0, f64::min)
        };
        let own = list.entries.iter().find(|(id, _)| *id == token);
        let others = least(&mut list.entries.iter().filter(|(id, _)| *id != token));
        (list.largest_unlisted, list.most_probable) = match own {
            Some(&(_, value)) if list.entries.len() > 1 && value <= others => {
                (others, list.entries.len() - 1)
            }
            _ => (least(&mut list.entries.iter()), list.entries.len()),
        };
        Ok(list)
    }

    /// Adds tokens that were asked for by id, which need not be among the most probable.
    pub(super) fn add(&mut self, entries: Listed) -> Result<(), String> {
        let known: HashMap<u32, f64> = self.entries.iter().copied().collect();
        let mut added = HashSet::new();
        for (id, value) in entries {
            // Engines compute the two lists from the same row, but may round them apart.
            match known.get(&id) {
                Some(before) if (before - value).abs() > 1e-3 => {
                    return Err(format!(
                        "token {id} has {value} here and {before} among the most probable"
                    ));
                }
                Some(_) => {}
                None if added.insert(id) => self.entries.push((id, value)),
                None => {}
            }
        }
        let sum = self.sum();
        if sum > 1.0 + SUM_TOLERANCE {
            return Err(format!(
                "with these the list's probabilities sum to {sum:.6}, which is more than 1"
            ));
        }
        Ok(())
    }

    /// The mass of the listed tokens.
    pub(super) fn sum(&self) -> f64 {
        self.entries.iter().map(|(_, value)| value.exp()).sum()
    }

    /// The mass of the others.
    pub(super) fn rest(&self) -> f64 {
        (1.0 - self.sum()).clamp(0.0, 1.0)
    }
}

/// Tokens that a position lists, with their logarithms.
pub(super) type Listed = Vec<(u32, f64)>;

/// Entries by their tokens' ids, which `id` finds; `field` names the place of one that it refuses.
pub(super) fn listed<T>(
    entries: impl IntoIterator<Item = (T, LogProb)>,
    mut id: impl FnMut(T) -> Result<u32, String>,
    field: impl Fn(usize) -> String,
) -> Result<Listed, Fault> {
    let each = entries.into_iter().enumerate();
    each.map(|(at, (token, value))| {
        let id = id(token).map_err(|message| Fault::new(field(at), message))?;
        Ok((id, value.0))
    })
    .collect()
}

/// How far apart two logarithms may be that are of one number: what half precision rounds.
const APART: f64 = 1e-2;

/// The text's token at a position and the list there, in which that token stands where what is
/// said of it is known.
pub(super) fn row(
    token: u32,
    mut entries: Listed,
    own: Option<LogProb>,
    field: impl FnOnce() -> String,
) -> Result<(u32, List), Fault> {
    let in_list = entries.iter().find(|(listed, _)| *listed == token);
    match (own, in_list) {
        (Some(own), Some(&(_, value))) if (own.0 - value).abs() > APART * own.0.abs().max(1.0) => {
            let message = format!(
                "has {value} of token {token}, and the text's own entry {}; both are to be of one \
                 response, at one temperature",
                own.0
            );
            return Err(Fault::new(field(), message));
        }
        (Some(own), None) => entries.push((token, own.0)),
        _ => {}
    }
    let list = List::top(entries, token).map_err(|message| Fault::new(field(), message))?;
    Ok((token, list))
}

/// Refuses ids that are not those of the rows, which `of` names.
pub(super) fn check_ids(
    field: &str,
    ids: &[i64],
    rows: &[(u32, List)],
    of: &str,
) -> Result<(), Fault> {
    if ids.len() != rows.len() {
        let (has, wanted) = (ids.len(), rows.len());
        let message = format!("has {has} tokens, and {of} {wanted}; export the response whole");
        return Err(Fault::new(field, message));
    }
    let mut pairs = ids.iter().zip(rows).enumerate();
    match pairs.find(|(_, (id, (token, _)))| **id != i64::from(*token)) {
        None => Ok(()),
        Some((index, (id, (token, _)))) => Err(Fault::new(
            format!("{field}[{index}]"),
            format!("is {id} where {of} has token {token}"),
        )),
    }
}

/// How a row was scored: while the text was written, or as a part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// One row for each token that was generated.
    Generated,
    /// Rows for the last tokens of a prompt of this many.
    Prompt {
        /// Tokens of the prompt.
        length: usize,
    },
}

/// One text as one model scored it.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub origin: Origin,
    /// The text's token and the list at each position, to the text's end.
    pub rows: Vec<(u32, List)>,
    /// The field that names the tokens.
    pub token_field: &'static str,
    /// What the rows' logits were divided by.
    pub temperature_applied: f64,
    /// Whether unlisted tokens cannot be drawn: the list is the sampler's.
    pub sampler: bool,
    /// The model's name, if the record says it.
    pub model: Option<String>,
    /// What the engine counted of its speculation.
    pub counts: Counts,
}

const OF_ONE: &str = "; both are to be of one response, or left out";

/// What engines count of their speculation, over all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub drafted: u64,
    pub accepted: u64,
    pub steps: u64,
}

impl Counts {
    /// Refuses counts that cannot be of one run. `fields` are drafted, accepted and steps.
    pub(super) fn check(self, fields: [&str; 3]) -> Result<(), Fault> {
        let Self {
            drafted,
            accepted,
            steps,
        } = self;
        let [of_drafted, of_accepted, of_steps] = fields;
        if accepted > drafted {
            let message = format!("is {accepted}, and {of_drafted} only {drafted}");
            return Err(Fault::new(of_accepted, message + OF_ONE));
        }
        if steps == 0 && drafted > 0 {
            let message = format!("is 0, and {of_drafted} {drafted}");
            return Err(Fault::new(of_steps, message + OF_ONE));
        }
        Ok(())
    }

    /// Files may say anything; what no counter holds stays at its end.
    pub(super) fn add(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.drafted, other.drafted),
            (&mut self.accepted, other.accepted),
            (&mut self.steps, other.steps),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Both models at one position.
#[derive(Clone, Debug)]
pub(super) struct Position {
    pub token: u32,
    /// The target's and the draft's.
    pub lists: [List; 2],
}

/// Rows of both models along one text. They have to be of the same tokens. Of the tokens of the prompt
/// there is what the records say, and what is asked for where they do not.
pub(super) fn pair(
    target: (&Place, Text),
    draft: (&Place, Text),
    [said, asked]: [Option<usize>; 2],
) -> Result<Vec<Position>, ImportError> {
    let ((target_place, target), (draft_place, draft)) = (target, draft);
    let of_draft = |field: String, message: String| draft_place.refuse(Fault::new(field, message));
    let of_target =
        |field: String, message: String| target_place.refuse(Fault::new(field, message));
    if target.temperature_applied != draft.temperature_applied {
        return Err(of_draft(
            draft.token_field.to_owned(),
            format!(
                "the draft's rows were divided by temperature {} and the target's by {}; score \
                 both alike, or export both at temperature 1",
                draft.temperature_applied, target.temperature_applied
            ),
        ));
    }
    // A text that one model wrote and the other scored begins where it has to.
    let begins = |length: usize, count: usize| match said {
        Some(said)
            if length
                .checked_sub(count)
                .is_some_and(|prompt| prompt != said) =>
        {
            let message = format!(
                "is {said}, and of the {length} tokens that were scored the last {count} are the text; \
                 say {}, or leave it out",
                length - count
            );
            Err(of_target("prompt_length".to_owned(), message))
        }
        _ => Ok(count),
    };
    let count = match (target.origin, draft.origin) {
        (Origin::Generated, Origin::Generated) => {
            if target.rows.len() != draft.rows.len() {
                return Err(of_draft(
                    draft.token_field.to_owned(),
                    format!(
                        "has {} tokens where the target's text has {}; let the draft score the \
                         target's text instead of writing its own",
                        draft.rows.len(),
                        target.rows.len()
                    ),
                ));
            }
            target.rows.len()
        }
        (Origin::Generated, Origin::Prompt { length }) => begins(length, target.rows.len())?,
        (Origin::Prompt { length }, Origin::Generated) => begins(length, draft.rows.len())?,
        (Origin::Prompt { length }, Origin::Prompt { length: other }) => {
            if length != other {
                return Err(of_draft(
                    draft.token_field.to_owned(),
                    format!(
                        "has {other} tokens where the target scored {length}; score the same ids \
                         with both"
                    ),
                ));
            }
            let Some(prompt) = said.or(asked) else {
                return Err(of_target(
                    target.token_field.to_owned(),
                    "nothing says where the text begins that follows the prompt; give \
                     ⟨prompt-tokens N⟩, or add a field \"prompt_length\" to each record"
                        .to_owned(),
                ));
            };
            length
                .checked_sub(prompt)
                .filter(|&left| left > 0)
                .ok_or_else(|| {
                    of_target(
                        target.token_field.to_owned(),
                        format!(
                            "has {length} tokens, so that a prompt of {prompt} leaves no text \
                             behind it"
                        ),
                    )
                })?
        }
    };
    for (text, place, other) in [
        (&target, target_place, "draft"),
        (&draft, draft_place, "target"),
    ] {
        if text.rows.len() < count {
            return Err(place.refuse(Fault::new(
                text.token_field,
                format!(
                    "has rows of {} tokens where the text, by the {other}'s record, has {count}; \
                     score the whole text",
                    text.rows.len()
                ),
            )));
        }
    }
    let skip = |text: &Text| text.rows.len() - count;
    let (skip_target, skip_draft) = (skip(&target), skip(&draft));
    // Where the first row's token stands among the tokens that the field names.
    let at = |text: &Text, skip: usize| match text.origin {
        Origin::Generated => skip,
        Origin::Prompt { length } => length - text.rows.len() + skip,
    };
    let target_ids = (target.token_field, at(&target, skip_target));
    let draft_ids = (draft.token_field, at(&draft, skip_draft));
    let named = |(field, first): (&str, usize), index: usize| format!("{field}[{}]", first + index);
    let rows = target.rows.into_iter().skip(skip_target);
    let others = draft.rows.into_iter().skip(skip_draft);
    let mut positions = Vec::with_capacity(count);
    for (index, ((token, row), (other_token, other))) in rows.zip(others).enumerate() {
        if token != other_token {
            return Err(of_draft(
                named(draft_ids, index),
                format!(
                    "is token {other_token} where the target's {} is {token}; score the same ids \
                     with both",
                    named(target_ids, index)
                ),
            ));
        }
        for (of_sampler, place, list, ids) in [
            (target.sampler, target_place, &row, target_ids),
            (draft.sampler, draft_place, &other, draft_ids),
        ] {
            let rest = list.rest();
            if of_sampler && rest > SAMPLER_TOLERANCE {
                return Err(place.refuse(Fault::new(
                    named(ids, index),
                    format!(
                        "its list of {} tokens leaves {rest:.4} out, so it is not all that the \
                         sampler keeps; ask for more logprobs, or for those before the sampler \
                         truncates",
                        list.entries.len()
                    ),
                )));
            }
        }
        let lists = [row, other];
        positions.push(Position { token, lists });
    }
    Ok(positions)
}

/// Tokens by number: as the engine gives it, or, where it gives texts alone, in order of
/// first appearance.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    /// V, if it is known.
    size: Option<usize>,
    by_text: HashMap<String, u32>,
    texts: Vec<String>,
    numbered: bool,
}

impl Vocabulary {
    pub(super) fn new(size: Option<usize>) -> Self {
        Self {
            size,
            ..Self::default()
        }
    }

    /// The texts of tokens, if these were named by text.
    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// A token by its number.
    pub(super) fn number(&mut self, id: i64) -> Result<u32, String> {
        self.numbered = true;
        self.within(id)
    }

    fn within(&self, id: i64) -> Result<u32, String> {
        let number = u32::try_from(id)
            .ok()
            .filter(|&number| i32::try_from(number).is_ok())
            .ok_or_else(|| format!("{id} is no token id"))?;
        match self.size {
            Some(size) if number as usize >= size => Err(format!(
                "token {id} is outside the vocabulary of {size}; ⟨vocab⟩ is the number of tokens \
                 of the model, padding included"
            )),
            _ => Ok(number),
        }
    }

    /// A token by what vLLM writes for it: `token_id:N`, or its text.
    pub(super) fn written(&mut self, token: &str) -> Result<u32, String> {
        if let Some(number) = token.strip_prefix("token_id:")
            && let Ok(id) = number.parse()
        {
            return self.number(id);
        }
        if self.numbered {
            return Err(format!(
                "{token:?} is a text where other tokens are numbers; {CURE}"
            ));
        }
        if token.contains(char::REPLACEMENT_CHARACTER) || token.is_empty() {
            return Err(format!(
                "{token:?} can be the text of several tokens, which collide; {CURE}"
            ));
        }
        if let Some(&id) = self.by_text.get(token) {
            return Ok(id);
        }
        let id = self.within(self.texts.len() as i64)?;
        self.by_text.insert(token.to_owned(), id);
        self.texts.push(token.to_owned());
        Ok(id)
    }

    /// Refuses texts where numbers came after them.
    pub(super) fn check_mixed(&self) -> Result<(), String> {
        if self.numbered && !self.texts.is_empty() {
            return Err(format!(
                "some tokens are texts and others are numbers; {CURE}"
            ));
        }
        Ok(())
    }
}

/// What to do about tokens that are named by their text.
pub(super) const CURE: &str = "start the server with --return-tokens-as-token-ids, or send \
     \"return_tokens_as_token_ids\": true";

/// Refuses a list in which a text stands twice.
pub(super) fn refuse_collision<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<(), (usize, String)> {
    let mut seen = HashSet::new();
    for (index, text) in texts.enumerate() {
        if !text.starts_with("token_id:") && !seen.insert(text) {
            return Err((
                index,
                format!("{text:?} is the text of two tokens of one list, which collide; {CURE}"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_end_at_their_largest() {
        let mut counts = Counts::default();
        for drafted in [7, u64::MAX, 1] {
            counts.add(Counts {
                drafted,
                accepted: drafted,
                steps: drafted.min(2),
            });
        }
        let sums = [counts.drafted, counts.accepted, counts.steps];
        assert_eq!(sums, [u64::MAX, u64::MAX, 5]);
    }

    #[test]
    fn the_texts_own_token_does_not_bound_the_others() {
        let entries = |last: f64| vec![(7, -1.0), (1, -2.0), (9, last)];
        // 9 may be in the list only because the text has it.
        assert_eq!(List::top(entries(-8.0), 9).unwrap().largest_unlisted, -2.0);
        assert_eq!(List::top(entries(-8.0), 7).unwrap().largest_unlisted, -8.0);
        assert_eq!(List::top(entries(-1.5), 9).unwrap().largest_unlisted, -2.0);
        assert_eq!(
            List::top(vec![(3, -0.5)], 3).unwrap().largest_unlisted,
            -0.5
        );
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        for (entries, word) in [
            (vec![], "positive"),
            (vec![(1, f64::NEG_INFINITY)], "positive"),
            (vec![(1, -0.1), (2, -0.1)], "more than 1"),
            (vec![(1, -1.0), (1, -2.0)], "twice"),
        ] {
            let error = List::top(entries, 0).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let same = List::top(vec![(1, -1.0), (1, -1.0)], 0).unwrap();
        assert_eq!(same.entries, [(1, -1.0)]);
    }

    #[test]
    fn texts_get_numbers_and_do_not_mix_with_them() {
        let mut vocabulary = Vocabulary::new(Some(2));
        for (text, id) in [(" a", 0), ("b", 1), (" a", 0)] {
            assert_eq!(vocabulary.written(text), Ok(id));
        }
        let refused = |found: Result<u32, String>, why: &str| {
            let said = found.unwrap_err();
            assert!(said.contains(why), "{said}");
        };
        refused(vocabulary.written("c"), "vocabulary of 2");
        refused(vocabulary.written("\u{fffd}"), "collide");
        assert!(vocabulary.check_mixed().is_ok());
        assert_eq!(vocabulary.written("token_id:1"), Ok(1));
        assert!(vocabulary.check_mixed().is_err());
        refused(vocabulary.number(-1), "no token id");
        refused(vocabulary.number(2), "vocabulary of 2");
        let mut numbers = Vocabulary::new(None);
        assert_eq!(numbers.number(40_000), Ok(40_000));
        refused(numbers.number(1 << 31), "no token id");
        refused(numbers.written("x"), "return_tokens");
    }
}
