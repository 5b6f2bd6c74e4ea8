//! Reading logs a span at a time, and adding up what their positions answer.

use super::pairing::Pairing;
use super::position::{Task, Workspace, evaluate};
use super::positions::{Columns, PositionSink};
use super::settings::{Part, Settings};
use super::summary::{Measured, Summary, drawn_with};
use super::surprise::Singles;
use super::{GapError, GapReport, coverage};
use rayon::prelude::*;
use specgap_log::log::{Log, Span};
use specgap_sampling::Lists;

/// Positions that one task takes: as many as list so many tokens, but a few at least.
const LISTED: usize = 1 << 17;
const SPAN: [usize; 2] = [2, 16];

/// Positions a thread that are measured between two looks at their results.
const HELD: usize = 256;

/// Measures all positions of some logs of one pair of models, together. `command` goes into
/// the report, and `progress` is told of positions as they are done.
///
/// # Errors
/// As [`summarise`].
pub fn measure(
    logs: &[Log],
    settings: &Settings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<GapReport, GapError> {
    Ok(summarise(logs, settings, Part::WHOLE, None, progress)?.report(command))
}

/// Measures some of the positions of logs of one pair of models, for a report of its own or
/// together with others. `table` gets every position's numbers, in order, and `progress` is
/// told of positions as they are done.
///
/// The result is the same to the bit on any number of threads.
///
/// # Errors
/// Logs whose rows are refused (file, tensor, row and column are named), rows that list
/// fewer tokens than there are distinct drafts, logs of other models or that are one log
/// twice, rows that are called logits and are not, settings that leave nothing to
/// measure, and a table that cannot be written.
pub fn summarise(
    logs: &[Log],
    settings: &Settings,
    part: Part,
    table: Option<&mut dyn PositionSink>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Summary, GapError> {
    let sinks = Sinks {
        table,
        each: &mut |_| (),
    };
    summarise_into(logs, settings, part, sinks, progress)
}

/// Measures logs each by itself, of one pair of models or of several; and at the positions
/// that a later log has in common with the first, what they differ by.
///
/// # Errors
/// As [`summarise`], of each log.
pub fn summarise_each(
    logs: &[Log],
    settings: &Settings,
    part: Part,
    mut table: Option<&mut dyn PositionSink>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(Vec<Summary>, Vec<Pairing>), GapError> {
    let Some((first, others)) = logs.split_first() else {
        return Ok(Default::default());
    };
    let mut pairings = others
        .iter()
        .map(|other| Pairing::new(first, other, part))
        .collect::<Result<Vec<_>, _>>()?;
    let mut summaries = Vec::with_capacity(logs.len());
    for (index, log) in logs.iter().enumerate() {
        let sinks = Sinks {
            table: match &mut table {
                Some(table) => Some(&mut **table),
                None => None,
            },
            each: &mut |measured| match index.checked_sub(1) {
                None => pairings.iter_mut().for_each(|one| one.add(0, measured)),
                Some(other) => {
                    (pairings.get_mut(other).into_iter()).for_each(|one| one.add(1, measured))
                }
            },
        };
        let log = std::slice::from_ref(log);
        summaries.push(summarise_into(log, settings, part, sinks, progress)?);
    }
    Ok((summaries, pairings))
}

/// Where positions go, in order, besides the summary.
struct Sinks<'a, 'b> {
    table: Option<&'a mut (dyn PositionSink + 'b)>,
    each: &'a mut dyn FnMut(&Measured),
}

fn summarise_into(
    logs: &[Log],
    settings: &Settings,
    part: Part,
    mut sinks: Sinks<'_, '_>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Summary, GapError> {
    // Everything that can be refused is, before the long part.
    coverage::left_out(settings)?;
    let (mut summary, keys) = Summary::new(logs, settings)?;
    let tasks = logs
        .iter()
        .zip(&keys)
        .map(|(log, key)| {
            log.refuse_texts()?;
            log.refuse_other_forms()?;
            log.refuse_masked_lists()?;
            let lists = Lists::new(log).map_err(GapError::Settings)?;
            let drawn = match drawn_with(log, settings) {
                Some((temperature, cuts)) => {
                    Some((temperature, cuts, Singles::new(log, lists.as_ref())?))
                }
                None => None,
            };
            Ok(Task {
                log,
                settings,
                asked: settings.asked(),
                asked_again: settings.asked_again(),
                lists,
                drawn,
                sampled_at: summary.sampled_at(key),
            })
        })
        .collect::<Result<Vec<_>, GapError>>()?;
    let columns = Columns::new(settings);
    // Files are hashed while their rows are measured.
    let mut digests = Ok(Vec::new());
    rayon::in_place_scope(|scope| {
        scope.spawn(|_| {
            let files = logs.iter();
            let files = files.map(|log| log.digests(&part.of(log.positions())));
            digests = files.collect::<Result<Vec<_>, _>>();
        });
        for (task, key) in tasks.iter().zip(&keys) {
            let span = (LISTED / task.log.listed().max(1)).clamp(SPAN[0], SPAN[1]);
            let spans = task.log.spans_of(part.of(task.log.positions()), span);
            let mut add = |results: Vec<Result<Vec<Measured>, GapError>>| -> Result<(), GapError> {
                for result in results {
                    for measured in result? {
                        summary.add(key, task.log.metadata(), &measured);
                        if measured.lacks_draft {
                            continue;
                        }
                        (sinks.each)(&measured);
                        if let Some(table) = &mut sinks.table {
                            columns
                                .rows(&key.name, task.log.metadata(), &measured, *table)
                                .map_err(GapError::Table)?;
                        }
                    }
                }
                Ok(())
            };
            // Results are added up, in order, while the next are computed.
            let mut ready = Vec::new();
            for batch in spans.chunks(rayon::current_num_threads().max(1) * HELD / span) {
                let mut next = Vec::new();
                let added = rayon::in_place_scope(|scope| {
                    scope.spawn(|_| {
                        let results =
                            batch
                                .par_iter()
                                .map_init(Workspace::default, |workspace, span| {
                                    // Who watches may stop the work before any row.
                                    let watched = || progress(0);
                                    let result = measure_span(task, span, workspace, &watched);
                                    progress(span.positions().len());
                                    result
                                });
                        next = results.collect();
                    });
                    add(std::mem::take(&mut ready))
                });
                added?;
                ready = next;
            }
            add(ready)?;
        }
        Ok::<_, GapError>(())
    })?;
    for (key, files) in keys.iter().zip(digests?) {
        summary.add_files(key, files);
    }
    if let ([log, ..], Part::WHOLE, 0) = (logs, part, summary.positions()) {
        let why = match log.depth() {
            1 => NO_DRAFT.to_owned(),
            depth => format!(
                "has no row of the draft at depth {depth}, nor has any other position: no text with such rows is \
                 {depth} tokens long; ask for ⟨depth {}⟩, or log longer texts",
                depth - 1
            ),
        };
        return Err(GapError::Position(log.path().to_owned(), 0, why));
    }
    Ok(summary)
}

/// Of a log all of whose positions are left out.
const NO_DRAFT: &str = "has no row of the draft, nor has any other position (draft_row is 0), so that \
    there is nothing to compare; score the text with both models (docs/guide/engines.md)";

fn measure_span(
    task: &Task<'_>,
    span: &Span,
    workspace: &mut Workspace,
    watched: &dyn Fn(),
) -> Result<Vec<Measured>, GapError> {
    let chunk = task.log.chunk(span)?;
    chunk
        .positions()
        .map(|number| {
            watched();
            chunk.read(number, &mut workspace.row)?;
            if workspace.row.lacks_draft {
                return Ok(Measured {
                    number,
                    lacks_draft: true,
                    ..Measured::default()
                });
            }
            task.log.mask_target(number, &mut workspace.row)?;
            evaluate(task, number, workspace)?;
            let row = &workspace.row;
            let rest = row.target_rest.iter().zip(&row.draft_rest);
            // JSON has no infinity; the exponential of the least f64 is 0 too.
            let ratio = workspace.log_ratio.map(|ratio| ratio.max(f64::MIN));
            Ok(Measured {
                number,
                prompt: row.prompt_id,
                position: row.position,
                token: row.token,
                rest: rest.map(|(&target, &draft)| [target, draft]).collect(),
                text: (row.position)
                    .filter(|_| task.sampled_at.is_some())
                    .map(|position| (position, ratio)),
                unlisted: (row.position)
                    .zip(workspace.unlisted_ratio)
                    .map(|(position, ratio)| (position, ratio.max(f64::MIN))),
                surprised: workspace.surprised,
                lacks_draft: false,
                answers: std::mem::take(&mut workspace.answers),
            })
        })
        .collect()
}
