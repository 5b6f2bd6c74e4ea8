//! What has to be known of a log before its numbers are read, on pages of one log and of several.

use super::text::{counted, percent};
use crate::gap::{Repetition, Surprise};

/// A z that text drawn from its rows hardly has, and one that none has.
const SURPRISING: f64 = 4.0;
const NOT_DRAWN: f64 = 6.0;

/// Where the text is not drawn from its rows: then this comes first, and nothing is advised.
pub(super) fn not_drawn(surprise: Option<&Surprise>) -> Option<String> {
    let z = surprise?.z.filter(|z| z.abs() > NOT_DRAWN)?;
    Some(format!(
        "The text was not drawn from these rows: its surprise is {:.1} standard errors off (z = \
         {z:.1}). Text of another temperature, of another model or of a person, tokens that are \
         one row late, or a target and a draft that are swapped make every number here wrong, so \
         that nothing is advised.",
        z.abs()
    ))
}

/// A caution where the text hardly comes from its rows, or where nothing tells.
pub(super) fn surprise(surprise: &Surprise) -> Option<String> {
    let Some(z) = surprise.z else {
        return Some(
            "Nothing checks that the text was drawn from these rows: they list its own tokens \
             alone."
                .to_owned(),
        );
    };
    (SURPRISING..=NOT_DRAWN).contains(&z.abs()).then(|| {
        format!(
            "The text hardly looks drawn from these rows: its surprise is {:.1} standard errors off \
             (z = {z:.1}). Text of another temperature, of another model or of a person makes every \
             number here wrong.",
            z.abs()
        )
    })
}

/// Share of the positions in loops from which on a reader is told.
const MANY_LOOPING: f64 = 0.02;

/// Texts that repeat themselves, of logs with their positions.
pub(super) fn looping(logs: impl Iterator<Item = (usize, Option<Repetition>)>) -> Option<String> {
    let (mut logged, mut all) = (0, Repetition::default());
    for (positions, one) in logs {
        let one = one.unwrap_or_default();
        logged += positions;
        all.texts += one.texts;
        all.looping_texts += one.looping_texts;
        all.looping_positions += one.looping_positions;
    }
    let share = all.looping_positions as f64 / logged.max(1) as f64;
    (share >= MANY_LOOPING).then(|| {
        format!(
            "The text loops: {} of all positions lie in stretches that have the same piece three \
             times or more, in {} of {}. A loop is easy to draft: rates on text that does not loop \
             are likely lower. A higher sampling temperature, other prompts or fewer tokens a prompt \
             avoid it.",
            percent(share),
            all.looping_texts,
            counted(all.texts, "text"),
        )
    })
}

/// A draft whose rows tell no joint law.
pub(super) fn parallel(is_parallel: bool) -> Option<String> {
    is_parallel.then(|| {
        "The drafter is parallel, as the log says: it writes all tokens of a round in one pass, \
         and each of its rows is the law of a token whatever the round's other drafts are. Rates \
         of single positions are right. What speaks of several positions (blocks, rounds along \
         the text) takes the rows for laws given the tokens before, which this drafter does not \
         have: read it as of a drafter that draws from these rows one after the other."
            .to_owned()
    })
}
