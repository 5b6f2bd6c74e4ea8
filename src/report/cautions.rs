//! What has to be known of a log before its numbers are read, on pages of one log and of several.

use super::text::{counted, percent};
use crate::gap::Repetition;

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
