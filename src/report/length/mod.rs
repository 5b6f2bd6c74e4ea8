//! The page of `specgap length`, from a [`LengthReport`].
//!
//! [`page`] alone decides what stands on it and in which order. What to set comes first,
//! then what it buys, then everything it follows from.
//!
//! # Example
//! ```no_run
//! use specgap::report::length::page;
//! use specgap::text::LengthReport;
//!
//! let report: LengthReport = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! std::fs::write("report.html", page(&report).html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod figures;
mod lead;
pub(super) mod numbers;
mod tables;

use super::page::{Block, Fact, Page, Section};
use super::text::{count, temperature};
use crate::text::{LengthReport, TextLog};

/// The report as a page.
pub fn page(report: &LengthReport) -> Page {
    let sections = [
        Some(what_to_set(report)),
        fixed(report),
        policies(report),
        Some(bounds(report)),
        Some(checks(report)),
        Some(definitions(report)),
        Some(provenance(report)),
        left_out(report),
        Some(made_by(report)),
    ];
    Page {
        title: lead::title(report),
        subtitle: lead::subtitle(report),
        lead: lead::lead(report),
        sections: sections.into_iter().flatten().collect(),
    }
}

fn what_to_set(report: &LengthReport) -> Section {
    let figures = figures::speed(report).into_iter().map(Block::Figure);
    Section {
        main: true,
        ..Section::new(
            "what-to-set",
            "What to set, by cost",
            "The best fixed length for each cost of a draft step, and how far it is from what is \
             possible.",
            std::iter::once(Block::Table(tables::by_cost(report))).chain(figures),
        )
    }
}

fn fixed(report: &LengthReport) -> Option<Section> {
    let tables = tables::fixed(report);
    if tables.is_empty() {
        return None;
    }
    let figures = figures::lengths(report).into_iter().map(Block::Figure);
    let how = Block::Paragraph(
        "E[τ] is an average over all positions. Rounds of a decoder start where rounds ended, so \
         that tokens per call is what it sees: replayed from each text's first token."
            .to_owned(),
    );
    let tables = tables.into_iter().map(Block::Table);
    Some(Section {
        main: true,
        ..Section::new(
            "fixed",
            "Fixed lengths",
            "A round of K drafts: what it accepts, what it costs and what it throws away.",
            std::iter::once(how).chain(tables).chain(figures),
        )
    })
}

fn policies(report: &LengthReport) -> Option<Section> {
    let tables = tables::policies(report);
    if tables.is_empty() {
        return None;
    }
    let how = Block::Paragraph(format!(
        "Policies that set a length as they go, with at most {} tokens a round. Target calls \
         follow from the text. Drafts behind a rejected token are not in this log, so that \
         discards are at least, and speed-ups at most, what stands here; a policy whose speed-up \
         is below a fixed length's even so is not worth a second look.",
        count(report.max_length)
    ));
    let tables = tables.into_iter().map(Block::Table);
    Some(Section::new(
        "policies",
        "Policies that stop by themselves",
        "Confidence, entropy and other rules: what the text alone tells of them.",
        std::iter::once(how).chain(tables),
    ))
}

fn bounds(report: &LengthReport) -> Section {
    let figure = figures::rates(report).into_iter().map(Block::Figure);
    Section::new(
        "bounds",
        "Bounds",
        "What no choice of lengths can pass.",
        std::iter::once(Block::Table(tables::bounds(report))).chain(figure),
    )
}

fn checks(report: &LengthReport) -> Section {
    let surprise = &report.surprise;
    let drawn = format!(
        "The text's tokens surprise by {:.4} nats on average, where their rows expect {:.4}: z = \
         {:.2}. For text drawn from these rows z is a standard normal.",
        surprise.observed, surprise.expected, surprise.z
    );
    Section::new(
        "checks",
        "Checks",
        "Whether the text is what the identities need, and whether a bound that rules rest on \
         holds.",
        [
            Block::Paragraph(drawn),
            Block::Table(tables::entropy(report)),
        ],
    )
}

fn definitions(report: &LengthReport) -> Section {
    let words = report.definitions.iter();
    let words = words.map(|(word, meaning)| (word.clone(), meaning.clone()));
    Section::new(
        "definitions",
        "Definitions",
        "What every word and number on this page means.",
        [Block::Definitions(words.collect())],
    )
}

fn provenance(report: &LengthReport) -> Section {
    let mut blocks = Vec::new();
    for log in &report.logs {
        blocks.push(Block::Heading(log.name.clone()));
        blocks.push(Block::Facts(facts(log)));
    }
    Section::new(
        "provenance",
        "Where the text comes from",
        "Models, text and rows of every log, as the log says.",
        blocks,
    )
}

pub(super) fn facts(log: &TextLog) -> Vec<Fact> {
    let metadata = &log.metadata;
    let mut facts = Vec::new();
    for (name, identity) in [
        ("target model", &metadata.target),
        ("draft model", &metadata.draft),
        ("tokenizer", &metadata.tokenizer),
    ] {
        if let Some(identity) = identity {
            facts.push(Fact {
                full: identity
                    .sha256
                    .as_ref()
                    .map(|hash| format!("{}, SHA-256 {hash}", identity.name)),
                ..Fact::new(name, &identity.name)
            });
        }
    }
    facts.push(Fact::new("positions", count(log.positions)));
    let rows = if log.listed < log.vocabulary {
        format!(
            "at most {} of {} tokens listed",
            count(log.listed),
            count(log.vocabulary)
        )
    } else {
        format!("full, {} tokens", count(log.vocabulary))
    };
    facts.push(Fact::new("rows", rows));
    if let Some(sampling) = &metadata.sampling {
        facts.push(Fact::new(
            "tokens sampled",
            format!(
                "temperature {}, seed {}",
                temperature(sampling.temperature),
                sampling.seed
            ),
        ));
    }
    facts.extend(
        metadata
            .command
            .as_ref()
            .map(|command| Fact::new("made by", command)),
    );
    facts
}

fn left_out(report: &LengthReport) -> Option<Section> {
    (!report.left_out.is_empty()).then(|| Section {
        main: true,
        ..Section::new(
            "left-out",
            "Left out",
            "What this log cannot tell, and what would.",
            [Block::List(report.left_out.clone())],
        )
    })
}

fn made_by(report: &LengthReport) -> Section {
    Section::new(
        "made-by",
        "Made by",
        "",
        [
            Block::Command(report.command.clone()),
            Block::Paragraph(format!("{}, report schema {}.", report.tool, report.schema)),
        ],
    )
}
