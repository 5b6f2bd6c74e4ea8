//! Files of tools, each told by what is in it, to what was counted.

mod aiperf;
mod forms;
mod json;
mod llama_cpp_log;
mod omlx_log;
mod prometheus;
mod read;
mod requests;
mod speculators;
mod vllm_bench;
mod vllm_log;

pub use json::throughput;
pub use read::Text;

use super::counted::{Counted, CountersError, Source};

/// Tells which tool a file is of, by what is in it.
fn told(file: &Text<'_>) -> Result<Source, CountersError> {
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    if json::is_it(text) {
        return forms::told(file);
    }
    // Logs may quote anything, so that their own line decides.
    type Is = fn(&str) -> bool;
    let known: [(Source, Is); 5] = [
        (Source::Speculators, speculators::is_it),
        (Source::LlamaCppLog, llama_cpp_log::is_it),
        (Source::VllmLog, vllm_log::is_it),
        (Source::OmlxLog, omlx_log::is_it),
        (Source::Prometheus, prometheus::is_it),
    ];
    if let Some((source, _)) = known.into_iter().find(|(_, is_it)| is_it(text)) {
        return Ok(source);
    }
    let names = Source::ALL.map(|source| format!("{} ({})", source.words(), source));
    Err(file.refused(format!(
        "has no counts of speculative decoding that are known here; these are read: {}",
        names.join("; ")
    )))
}

/// Reads files of one tool, checks them, and says what was counted.
///
/// Each file is told by what is in it, or all are of the tool that `from` names. `chosen` are labels
/// of Prometheus, or columns of a table, with the one value that counts.
///
/// # Errors
/// A file that is of no tool, or of another than the first; counts that contradict themselves
/// (accepted above drafted, a place above the one before it), and files without the number of drafts:
/// each names the file, the field and the cure.
///
/// # Example
/// ```
/// use specgap_counters::counters::{Text, count};
/// let text = "vllm:spec_decode_num_drafts_total{engine=\"0\"} 43\n\
///     vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 129\n\
///     vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 10\n";
/// let counted = count(&[Text { name: "metrics.txt", text }], None, &[])?;
/// assert_eq!((counted.length, counted.total().accepted), (Some(3), 10.0));
/// # Ok::<(), specgap_counters::counters::CountersError>(())
/// ```
pub fn count(
    files: &[Text<'_>],
    from: Option<Source>,
    chosen: &[(String, String)],
) -> Result<Counted, CountersError> {
    let Some(first) = files.first() else {
        return Err(CountersError::Together("no file is given".to_owned()));
    };
    let source = from.map_or_else(|| told(first), Ok)?;
    for file in files.iter().skip(1).filter(|_| from.is_none()) {
        let other = told(file)?;
        if other != source {
            return Err(CountersError::Together(format!(
                "{} is of {source} and {} of {other}; give files of one tool",
                first.name, file.name
            )));
        }
    }
    let chooses = [Source::Prometheus, Source::Speculators, Source::LlamaCppLog];
    if !chosen.is_empty() && !chooses.contains(&source) {
        return Err(CountersError::Together(format!(
            "⟨where⟩ chooses labels of Prometheus, columns of a table, or the drafter of a log of \
             llama.cpp; {} is of {source}",
            first.name
        )));
    }
    let read = match source {
        Source::Prometheus => prometheus::read(files, chosen),
        Source::VllmBench => vllm_bench::read(files),
        Source::Aiperf => aiperf::read(files),
        Source::LlamaCppLog => llama_cpp_log::read(files, chosen),
        Source::Speculators => speculators::read(files, chosen),
        Source::VllmLog => vllm_log::read(files),
        Source::OmlxLog => omlx_log::read(files),
        _ => forms::read(files, source),
    };
    checked(read?, files)
}

/// Checks what was read, and finds K.
fn checked(mut read: Counted, files: &[Text<'_>]) -> Result<Counted, CountersError> {
    for (one, number) in read.clusters.iter().zip(1..) {
        let named = |message: String| match read.clusters.len() {
            1 => message,
            _ => format!("entry {number}: {message}"),
        };
        let checked = one.check().map_err(named);
        checked.map_err(|message| read::refused(files, message))?;
    }
    let empty = read.clusters.iter().filter(|one| one.rounds == 0.0).count();
    let mut counts = read.clusters.iter().map(|one| one.rounds > 0.0);
    read.groups.retain(|_| counts.next() == Some(true));
    read.clusters.retain(|one| one.rounds > 0.0);
    if read.clusters.is_empty() {
        return Err(read::refused(
            files,
            "no round with drafts is counted; let the server decode with drafts first",
        ));
    }
    if empty > 0 {
        let words =
            format!("{empty} of the entries have no round with drafts, and count for nothing.");
        read.note("no-rounds", words);
    }
    let total = read.total();
    let drafted = total.drafted.map(|drafted| drafted / total.rounds);
    let places = total.reached.as_ref().map(Vec::len);
    // The drafts of a round, rounded up; by rates that were rounded they may be slightly off.
    let around = drafted.map(|drafted| (drafted - 1e-9).ceil() as usize);
    let least = places.unwrap_or(0).max(around.unwrap_or(0));
    let is_whole =
        |around: &usize| drafted.is_some_and(|drafted| (drafted - *around as f64).abs() < 1e-9);
    let length = match read.length.or(places) {
        Some(length) => Some(length.max(least)),
        None => around.filter(is_whole),
    };
    read.length = length.map(|length| length.max(1));
    let length = read.length.unwrap_or(0);
    for one in &mut read.clusters {
        if let Some(reached) = &mut one.reached {
            reached.resize(length, 0.0);
        }
    }
    let places = total.reached.as_ref().map(|reached| reached.iter().sum());
    // Other tools write when all is counted; what rates of theirs add up to is rounded.
    let is_read_on = read.source == Source::Prometheus;
    let torn = |places: &f64| is_read_on && (places - total.accepted).abs() > 0.5;
    if let Some(places) = places.filter(torn) {
        for one in &mut read.clusters {
            if let Some(reached) = &one.reached {
                one.accepted = reached.iter().sum();
            }
        }
        let words = format!(
            "The places add up to {places} accepted drafts, and {} are counted in all: the server counted \
             on while it was read. All numbers are from the places.",
            total.accepted
        );
        read.note("torn", words);
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
