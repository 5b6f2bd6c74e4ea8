//! What has to be known of a log before its numbers are read, on pages of one log and of several.

use specgap_base::once::each_once;
use specgap_log::log::MissingMass;
use specgap_measure::{DraftFit, OfDepth, Repetition, Surprise};
use specgap_page::words::{count, counted, percent};
use specgap_statistics::advice::NOT_DRAWN;

/// A z that text drawn from its rows hardly has; none has [`NOT_DRAWN`].
const SURPRISING: f64 = 4.0;

/// Says that the text is not drawn from its rows: this comes first, and nothing is advised.
pub(super) fn not_drawn(surprise: Option<&Surprise>) -> Option<String> {
    let z = surprise?.not_drawn()?;
    Some(format!(
        "The text was not drawn from these rows: its surprise is {:.1} standard errors off (z = \
         {z:.1}). Text of another temperature, of another model or of a person, tokens that are \
         one row late, or a target and a draft that are swapped make every number here wrong, so \
         that nothing is advised.",
        z.abs()
    ))
}

/// Says that the draft's rows are of other positions: this comes first too, and nothing is advised.
pub(super) fn strange_draft(fit: Option<&DraftFit>) -> Option<String> {
    let words = strange_words(fit?)?;
    let rest = words.strip_prefix("the").unwrap_or(&words);
    Some(format!("The{rest}, so that nothing is advised."))
}

/// Says what is strange about a draft's rows.
pub fn strange_words(fit: &DraftFit) -> Option<String> {
    let share = |x: f64| format!("{x:.3}").replacen("0.", ".", 1);
    if let Some(off) = fit.misplaced() {
        let more = fit.beside?[usize::from(off > 0)];
        let (beside, late) = match off {
            1 => ("next position", "late"),
            _ => ("position before", "early"),
        };
        return Some(format!(
            "the draft's rows are one position {late}: the target's row overlaps the draft's row of \
             the {beside} by {}, and that of its own by {}. Log the row that a draft is drawn \
             from. Every number here is of the wrong rows",
            share(fit.own + more.mean),
            share(fit.own)
        ));
    }
    fit.knows_nothing().then(|| {
        let half = (fit.gain.ci95[1] - fit.gain.ci95[0]) / 2.0;
        format!(
            "the draft knows nothing of its position: its rows overlap the target's by {} there, and \
             by {} at other positions ({} ± {} more, {} looked at). A wrong \
             map of ids (d2t), hidden states or rows of other positions, or another tokenizer do that",
            share(fit.own),
            share(fit.other),
            share(fit.gain.mean),
            share(half),
            counted(fit.positions, "position"),
        )
    })
}

/// Says that masks count, of logs that have some.
pub(super) fn masked(is_masked: bool) -> Option<String> {
    is_masked.then(|| {
        "The log's masks (allowed) are applied to the target's rows, and not to the draft's."
            .to_owned()
    })
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

/// Logs that hold fewer prompts than they will: of each, how many of how many.
pub(super) fn unfinished(logs: impl Iterator<Item = Option<[usize; 2]>>) -> Option<String> {
    let all: Vec<[usize; 2]> = logs.flatten().collect();
    let [done, planned] = [0, 1].map(|at| all.iter().map(|log| log[at]).sum::<usize>());
    (done < planned).then(|| {
        format!(
            "The capture did not finish: {done} of {} are in the log, and all numbers are of these \
             alone. The command that began it continues it.",
            counted(planned, "prompt")
        )
    })
}

/// Lists that leave out much, where the log does not say how much: of each log, the mass.
pub(super) fn missing(logs: impl Iterator<Item = Option<MissingMass>>) -> Option<String> {
    let large = logs.flatten().filter(MissingMass::is_large);
    let worst = large.max_by(|a, b| a.target.max(a.draft).total_cmp(&b.target.max(b.draft)))?;
    let base = worst.base_2.map_or_else(String::new, |left| {
        format!(
            " Base 2? As logarithms to base 2 they would leave out {} only: if they are, multiply \
             them by ln 2 = 0.6931472.",
            percent(left)
        )
    });
    Some(format!(
        "The lists leave out much: on average {} of the target's mass and {} of the draft's, in the \
         {} looked at.{base}",
        percent(worst.target),
        percent(worst.draft),
        counted(worst.rows, "row"),
    ))
}

/// Positions at which there is nothing to compare: of each log how many, and of how many.
pub(super) fn without_draft(logs: impl Iterator<Item = (usize, usize)>) -> Option<String> {
    let (lacking, all) = logs.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    (lacking > 0).then(|| {
        format!(
            "{} of {} positions are left out: the draft has no row there, as behind drafts that \
             were all accepted. Drafts do better at such places than elsewhere, so that acceptance over \
             the whole text is likely higher. To have it, score the texts that came out with both models \
             (docs/guide/engines.md).",
            count(lacking),
            count(all)
        )
    })
}

/// Drafts whose rows depend on where their round began, of which one depth is measured.
pub(super) fn at_depth(depths: impl Iterator<Item = OfDepth>) -> Option<String> {
    let all = each_once(depths);
    let [OfDepth { depth, of }] = all[..] else {
        return None;
    };
    let which = match depth {
        1 => "the row for a round's first token".to_owned(),
        _ => format!(
            "the row for token {depth} of a round, and the first {} of each text are left out",
            counted(depth - 1, "position")
        ),
    };
    Some(format!(
        "The draft has a row for each of {of} depths, which depend on where a round began. These \
         numbers are of depth {depth}: {which}. --depth measures others; specgap length puts the \
         depths together."
    ))
}

/// Indices that stand twice in a text.
pub(super) fn repeated(positions: usize) -> Option<String> {
    (positions > 0).then(|| {
        format!(
            "{} in the same prompt: two logs in one, or prompts with one number. Intervals and \
             what is said of whole texts may be wrong.",
            match positions {
                1 => "1 position has an index that stands before it already".to_owned(),
                more => format!("{more} positions have an index that stands before them already"),
            }
        )
    })
}
