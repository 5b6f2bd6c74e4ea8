//! What reports on replayed text say alike.

use super::files::with_models;
use super::gap::cuts::served;
use super::sections::section;
use super::{cautions, sections};
use specgap_measure::Surprise;
use specgap_page::words::{count, counted, temperature};
use specgap_page::{Block, Fact, Section};
use specgap_replay::replay::{MeasuredTexts, TextLog};
use specgap_statistics::statistics::Estimate;
use std::collections::BTreeMap;

/// Prompts below which an interval is rough.
pub(super) const FEW: usize = 10;

/// Says how much text of which models it is.
pub(super) fn subtitle(of: &MeasuredTexts) -> String {
    let extent = format!(
        "{} of {}, temperature {}{}",
        counted(of.positions, "position"),
        counted(of.clusters, "prompt"),
        temperature(of.temperature),
        served(of.cuts, &[of.temperature])
    );
    with_models(extent, of.logs.iter().map(|log| &log.metadata))
}

/// Says what a page is about and, if the text and the draft are those of the rows, what it finds.
pub(super) fn title(
    about: &str,
    of: &MeasuredTexts,
    surprise: &Surprise,
    finding: Option<String>,
) -> String {
    let names: Vec<&str> = of.logs.iter().map(|log| log.name.as_str()).collect();
    let name = format!("{about}: {}", names.join(", "));
    match finding.filter(|_| !of.is_off(surprise)) {
        Some(finding) => format!("{name}, {finding}"),
        None => name,
    }
}

/// Says, behind a speed-up, that its interval holds 1.
pub(super) fn unsure(speedup: &Estimate) -> &'static str {
    match speedup.ci95[0] <= 1.0 {
        true => " (the interval holds 1: these prompts do not show a gain)",
        false => "",
    }
}

/// A caution where prompts are few; half of them choose `what`.
pub(super) fn few_prompts(clusters: usize, what: &str) -> Option<String> {
    match clusters {
        0 | 1 => Some("There is one prompt only, so that no interval can be given.".to_owned()),
        few if few < 2 * FEW => Some(format!(
            "There are {few} prompts, half of which choose a {what} and half report on it. An \
             interval from fewer than {FEW} is rough: its true level may be far from 95%."
        )),
        _ => None,
    }
}

/// The first lines of a page: what it says, and what has to be known of it; where the text or
/// the draft is not that of the rows, that alone.
pub(super) fn lead(
    of: &MeasuredTexts,
    surprise: &Surprise,
    says: impl FnOnce() -> Vec<Block>,
    cautions: impl IntoIterator<Item = Option<String>>,
) -> Vec<Block> {
    let logs = || of.logs.iter();
    let strange = logs().filter_map(|log| cautions::strange_draft(log.fit.as_ref()));
    let off: Vec<String> = (cautions::not_drawn(Some(surprise)).into_iter())
        .chain(strange)
        .collect();
    let says = if off.is_empty() { says() } else { Vec::new() };
    let before = [
        cautions::unfinished(logs().map(|log| log.metadata.unfinished())),
        cautions::masked(logs().any(|log| log.masked)),
    ];
    let first = off.into_iter().chain(before.into_iter().flatten());
    let last = cautions.into_iter().flatten();
    let first = first.map(Block::Caution).chain(says);
    first.chain(last.map(Block::Caution)).collect()
}

/// Says what the surprise of the text tells.
pub(super) fn drawn(surprise: &Surprise) -> String {
    match surprise.z {
        Some(z) => format!(
            "The text's tokens surprise by {:.4} nats on average, where their rows expect {:.4}: z \
             = {z:.2}. For text drawn from these rows z is a standard normal.",
            surprise.observed, surprise.expected
        ),
        None => {
            "Rows list the text's own tokens alone, so that nothing tells whether the text was \
                 drawn from them."
                .to_owned()
        }
    }
}

pub(super) fn definitions(words: &BTreeMap<String, String>) -> Section {
    let words = words.clone().into_iter().collect();
    sections::definitions("What every word and number on this page means.", words)
}

/// Every log's facts, and what the surprise of the text says unless the page says it elsewhere.
pub(super) fn provenance(logs: &[TextLog], surprise: Option<&Surprise>) -> Section {
    let logs = logs.iter();
    let logs = logs.flat_map(|log| [Block::Heading(log.name.clone()), Block::Facts(facts(log))]);
    section(
        "provenance | Where the text comes from | Models, text and rows of every log, as the log says.",
        logs,
    )
    .with(surprise.map(|surprise| Block::Paragraph(drawn(surprise))))
}

fn facts(log: &TextLog) -> Vec<Fact> {
    let metadata = &log.metadata;
    let models = [
        ("target model", &metadata.target),
        ("draft model", &metadata.draft),
        ("tokenizer", &metadata.tokenizer),
    ];
    let models = models.into_iter().filter_map(|(name, identity)| {
        let identity = identity.as_ref()?;
        let hash = identity.sha256.as_ref();
        Some(Fact {
            full: hash.map(|hash| format!("{}, SHA-256 {hash}", identity.name)),
            ..Fact::new(name, &identity.name)
        })
    });
    let (listed, all) = (count(log.listed), count(log.vocabulary));
    let rows = if log.listed == 1 && metadata.tops() == Some([0; 2]) {
        "the text's own tokens alone".to_owned()
    } else if log.listed < log.vocabulary {
        format!("at most {listed} of {all} tokens listed")
    } else {
        format!("full, {all} tokens")
    };
    let sampled = metadata.sampling.as_ref().map(|sampling| {
        let seed = sampling.seed.map(|seed| format!(", seed {seed}"));
        let (t, seed) = (temperature(sampling.temperature), seed.unwrap_or_default());
        Fact::new("tokens sampled", format!("temperature {t}{seed}"))
    });
    let made = metadata.command.as_ref();
    models
        .chain([
            Fact::new("positions", count(log.positions)),
            Fact::new("rows", rows),
        ])
        .chain(sampled)
        .chain(crate::files::files(&log.files))
        .chain(made.map(|command| Fact::new("made by", command)))
        .collect()
}

/// Lists what logs cannot tell.
pub(super) fn left_out(lines: &[String]) -> Option<Section> {
    sections::left_out("What this log cannot tell, and what would.", lines)
}

pub(super) fn made_by(of: &MeasuredTexts, schema: u32) -> Section {
    specgap_page::made_by(&of.command, format!("{}, report schema {schema}.", of.tool))
}
