//! The page of `specgap tree`, from a [`TreeReport`].
//!
//! [`page`] alone decides what stands on it and in which order: which tree to set and what it
//! buys, every tree that was asked for, and how far levels are from independent.
//!
//! # Example
//! ```no_run
//! use specgap_report::tree::page;
//! use specgap_replay::replay::TreeReport;
//!
//! let report: TreeReport = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! std::fs::write("report.html", page(&report).html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod drawing;
mod lead;
mod priced;
mod tables;

pub use lead::advised;

use super::replayed;
use crate::sections::{first_shown, of_table, section, shown};
use specgap_base::typed;
use specgap_core::tree::DraftTree;
use specgap_page::{Block, Page, Section};
use specgap_replay::replay::TreeReport;

/// The report as a page.
pub fn page(report: &TreeReport) -> Page {
    let advises = !report.of.is_off(&report.surprise);
    let sections = [
        what_to_set(report).filter(|_| advises),
        by_law(report).filter(|_| advises),
        by_budget(report).filter(|_| advises),
        Some(trees(report)),
        priced::section(report).filter(|_| advises),
        equal_nodes(report).filter(|_| advises),
        deterministic(report),
        slot_values(report),
        independence(report),
        Some(replayed::definitions(&report.definitions)),
        Some(replayed::provenance(
            &report.of.logs,
            Some(&report.surprise),
        )),
        Some(left_out(report)),
        Some(replayed::made_by(&report.of, report.schema)),
    ];
    Page {
        title: lead::title(report),
        subtitle: replayed::subtitle(&report.of),
        lead: lead::lead(report),
        sections: first_shown(sections.into_iter().flatten().collect()),
        next: super::advice::after_trees(report),
        papers: Vec::new(),
    }
    .picture_first()
}

fn what_to_set(report: &TreeReport) -> Option<Section> {
    let best = report.best.first()?;
    let named = lead::named(report).and_then(|one| report.trees.get(&one.tree));
    let picture = named.is_none().then(|| drawing::figure(best));
    let letters = [
        drawing::in_letters(named.unwrap_or(&best.paths)),
        Block::Details {
            summary: "The tree as engines read it".to_owned(),
            blocks: exports(named.unwrap_or(&best.paths)),
        },
    ];
    let words = "what-to-set | What to set | The tree that the verdict names, child by child.";
    Some(shown(words, picture).with(letters))
}

fn by_law(report: &TreeReport) -> Option<Section> {
    let best = report.best.first()?;
    let picture = lead::named(report).map(|_| drawing::figure(best));
    let section = section(
        "best-trees | The best tree by draft law and verifier | The best tree of each draft law and \
         verifier, made for half of the prompts.",
        picture,
    );
    Some(section.with([tables::best(report)]))
}

fn by_budget(report: &TreeReport) -> Option<Section> {
    of_table(
        "by-budget | What a larger tree buys | The best tree of each number of tokens.",
        report.best.first().map(tables::by_budget),
    )
}

/// A tree as engines read it: EAGLE's list of paths, and Sequoia's growmap.
///
/// # Errors
/// None that paths of a tree can have.
pub fn as_engines_read(paths: &[Vec<usize>]) -> serde_json::Result<[String; 2]> {
    let growmap = DraftTree::new(paths.to_vec()).map(|tree| tree.sequoia());
    Ok([typed::line(&paths)?, typed::line(&growmap.ok())?])
}

fn exports(paths: &[Vec<usize>]) -> Vec<Block> {
    let [eagle, sequoia] = as_engines_read(paths).unwrap_or_default();
    vec![
        Block::paragraph("EAGLE's and Medusa's list of paths:"),
        Block::Command(eagle),
        Block::paragraph("Sequoia's growmap:"),
        Block::Command(sequoia),
    ]
}

fn trees(report: &TreeReport) -> Section {
    let how = Block::paragraph(
        "E[τ] is an average over all positions. Rounds of a decoder start where rounds ended, so \
         that tokens per call is what it sees: replayed from each text's first token. “If \
         independent” is what mean rates alone would predict for the same tree.",
    );
    section(
        "trees | Trees | Every tree with every draft law and verifier that it fits, over all prompts.",
        [how],
    )
    .with(tables::results(report))
}

fn equal_nodes(report: &TreeReport) -> Option<Section> {
    let how = Block::paragraph(
        "A stratum of the draft is drafted once at every node, and how often each is accepted can be \
         estimated before a text: by depth, number of children and slot, on half of the prompts. The \
         tree of largest E[τ] at these rates has larger subtrees below slots that are accepted more.",
    );
    let section = section(
        "equal-nodes | Stratified drafts by slot | The best tree of stratified drafts beside trees of \
         Sequoia and EAGLE with as many tokens, on the prompts that chose none of them.",
        [how],
    );
    (!report.equal_nodes.is_empty()).then(|| section.with(tables::equal_nodes(report)))
}

fn deterministic(report: &TreeReport) -> Option<Section> {
    let how = Block::paragraph(
        "A deterministic tree has no drawn tokens: the target draws its own, and the round follows \
         it as long as it is in the tree. Static ones have the draft's most probable tokens as \
         children, the same shape everywhere (Medusa, EAGLE-1): they stand above as \
         law “top” with “exact-match”. Dynamic ones have, at each start, every node whose product of q \
         reaches a threshold: EAGLE-2's and OPT-Tree's choice with a limit on the product in place \
         of one on the number of nodes, which a log of text cannot follow.",
    );
    let section = section(
        "dynamic | Deterministic trees that follow the text | What a tree accepts that is wide where \
         the draft is unsure and deep where it is sure.",
        [how],
    );
    Some(section.with([tables::dynamic(report)?]))
}

fn slot_values(report: &TreeReport) -> Option<Section> {
    let how = Block::paragraph(
        "Accepting a child is worth 1 and what is accepted below it. So the rule that accepts most at \
         a node need not be the one that its tree wants: value counts children by what they lead to.",
    );
    let section = shown(
        "slot-values | Accepting most is not worth most | What each verifier makes of a root whose \
         children are worth different amounts.",
        [how],
    );
    Some(section.with([tables::slot_values(report)?]))
}

fn independence(report: &TreeReport) -> Option<Section> {
    if report.independence.is_empty() {
        return None;
    }
    let how = Block::paragraph(
        "Sequoia's program takes depths for independent: one vector of rates for all of them. Text \
         is easy or hard for stretches, so that what is accepted at one position tells of the \
         next. A deep tree is then worth more, and a wide one less, than such a vector says.",
    );
    let section = section(
        "independence | Are depths independent? | Neighbouring positions, and what a prediction that \
         takes them for independent is worth.",
        [how],
    );
    let tables = [Some(tables::independence(report)), tables::sequoia(report)];
    Some(section.with(tables.into_iter().flatten()))
}

fn left_out(report: &TreeReport) -> Section {
    let list = Block::List(report.left_out.clone());
    section("left-out | Left out | What is not here, and why.", [list])
}
