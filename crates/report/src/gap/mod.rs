//! The page of `specgap gap`, from a [`GapReport`].
//!
//! [`page`] alone decides what stands on it and in which order. Every number stands with
//! how it came about: exact, enclosed (rounding and all that was left out are within the
//! width), Monte Carlo, or truncated (rows that list only some tokens are another
//! distribution than full rows). Means are shown rounded; all digits are behind them in
//! the page, and in `report.json`.
//!
//! Names of draft laws and verifiers are shown as the report has them, in its order.
//!
//! # Example
//! ```no_run
//! use specgap_measure::GapReport;
//! use specgap_report::gap::page;
//!
//! let report: GapReport = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! let page = page(&report);
//! std::fs::write("report.html", page.html()?)?;
//! std::fs::write("report.md", page.markdown())?;
//! for figure in page.figures() {
//!     std::fs::write(figure.svg_file(), figure.svg()?)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod certainty;
pub(super) mod cuts;
mod figures;
mod finding;
mod first;
mod own;
mod provenance;
mod redrafted;
mod select;
mod summary;
mod tables;
mod tokens;

use crate::sections::{self, of_all, of_table, section, shown};
use cuts::served;
use specgap_measure::GapReport;
use specgap_page::table::Table;
use specgap_page::words::{counted, temperature, words};
use specgap_page::{Block, Choice, Page, Panel, Section};

/// The report as a page.
pub fn page(report: &GapReport) -> Page {
    let sections = [
        verifiers(report),
        losses(report),
        one_draft(report),
        redrafted::section(report),
        acceptance(report),
        gaps(report),
        of_table(
            "comparisons | Comparisons | Which verifiers the log tells apart.",
            tables::comparisons(report),
        ),
        own::laws(report),
        own::section(report),
        of_table(
            "formula | The published formula without replacement | How far the published optimum \
             is from that of the drafts that are drawn.",
            tables::formula(report),
        ),
        of_table(
            "plans | Optimal plans | How near the plans that were solved come to the optimum, and \
             to p.",
            tables::plans(report),
        ),
        of_table(
            "audits | Audit of estimates | Whether the rates that were computed the fast way are \
             right.",
            tables::audits(report),
        ),
        rounds(report),
        blocks(report),
        draft_paths(report),
        of_table(
            "overlap | Overlap | How alike target and draft are: what a single draft is accepted \
             with.",
            tables::overlap(report),
        ),
        details(report),
        tokens::section(report),
        definitions(report),
        provenance::section(report),
        distributions(report),
        sections::left_out("What was not computed, and why.", &report.left_out),
        Some(made_by(report)),
    ];
    Page {
        title: title(report),
        subtitle: summary::subtitle(report),
        lead: lead(report),
        sections: sections.into_iter().flatten().collect(),
        next: super::advice::after_gap(report),
        papers: Vec::new(),
    }
}

/// Says what is found, unless the text was not drawn from the rows; else what it is about.
fn title(report: &GapReport) -> String {
    let is_drawn = summary::not_drawn(report).next().is_none();
    let found = finding::title(report).filter(|_| is_drawn);
    found.unwrap_or_else(|| summary::title(report))
}

/// The main numbers in a few lines, one picture of them, and what has to be known to read
/// them right.
fn lead(report: &GapReport) -> Vec<Block> {
    let Some((at, n)) = select::headline(report) else {
        return vec![Block::Paragraph(format!(
            "Over {}, no cell of temperature, drafts and scheme was evaluated.",
            summary::extent(report)
        ))];
    };
    let cautions = (summary::cautions(report, at).into_iter()).map(Block::Caution);
    let not_drawn: Vec<Block> = summary::not_drawn(report).map(Block::Caution).collect();
    let wrong = (summary::first_cautions(report).into_iter()).map(Block::Caution);
    if !not_drawn.is_empty() {
        return not_drawn.into_iter().chain(wrong).chain(cautions).collect();
    }
    let (verdict, changes, facts) = first::lines(report, at, n);
    let verdict = verdict.or_else(|| finding::of_place(report, at, n));
    let over = Block::Paragraph(format!(
        "Over {}, at temperature {}{} with {} a position{}.",
        summary::extent(report),
        temperature(at),
        summary::why(report, at),
        counted(n, "draft"),
        served(report.served, &select::temperatures(report)),
    ));
    let mut blocks: Vec<Block> = verdict.map(Block::Paragraph).into_iter().collect();
    blocks.extend(wrong);
    blocks.extend(changes.map(Block::Table));
    blocks.extend([over, Block::Facts(facts)]);
    blocks.extend(choice(report));
    blocks.extend(each_place(report, |at, n| {
        Some(figures::losses(report, at, n)?.into())
    }));
    blocks.extend(cautions);
    blocks
}

/// Lists what a reader may choose between: temperatures and numbers of drafts, if several.
fn choice(report: &GapReport) -> Option<Block> {
    let first = select::headline(report)?;
    let (temperatures, drafts) = (select::temperatures(report), select::drafts(report));
    let choice = |name: &str, options: Vec<String>, first: Option<usize>| Choice {
        name: name.to_owned(),
        options,
        first: first.unwrap_or(0),
    };
    let all = vec![
        choice(
            "T",
            temperatures.iter().map(|&at| temperature(at)).collect(),
            temperatures.iter().position(|&at| at == first.0),
        ),
        choice(
            "drafts",
            drafts.iter().map(usize::to_string).collect(),
            drafts.iter().position(|&n| n == first.1),
        ),
    ];
    let several = all.iter().any(|choice| choice.options.len() > 1);
    several.then_some(Block::Choice(all))
}

/// A block for every place, of which a page shows the one that is chosen.
fn each_place(
    report: &GapReport,
    block: impl Fn(f64, usize) -> Option<Block>,
) -> impl Iterator<Item = Block> {
    let (temperatures, drafts) = (select::temperatures(report), select::drafts(report));
    let first = select::headline(report);
    let places = select::places(report).into_iter();
    let made: Vec<Block> = places
        .filter_map(|(at, n)| {
            let at_t = temperatures.iter().position(|&other| other == at)?;
            let at_n = drafts.iter().position(|&other| other == n)?;
            Some(Block::Panel(Panel {
                label: select::place(at, n),
                at: vec![at_t, at_n],
                first: first == Some((at, n)),
                blocks: vec![block(at, n)?],
            }))
        })
        .collect();
    made.into_iter()
}

/// Every verifier where the first lines speak of, a line each.
fn verifiers(report: &GapReport) -> Option<Section> {
    select::headline(report)?;
    Some(shown(
        "verifiers | Every rule in a line | What each accepts and loses, in percent of all positions.",
        each_place(report, |at, n| {
            Some(tables::in_a_line(report, at, n).into())
        }),
    ))
}

/// Shows how the loss grows, how it is spread, and how alike the models are.
fn losses(report: &GapReport) -> Option<Section> {
    let figures = figures::losses_by_drafts(report);
    let figures = figures.into_iter().chain(figures::gaps(report));
    of_all(
        "loss | Where the loss is | By the number of drafts, by position, and what it rests on.",
        figures.chain(figures::overlap(report)).collect(),
    )
}

/// Says what tokens that rows do not list do to all numbers.
fn details(report: &GapReport) -> Option<Section> {
    let (at, _) = select::headline(report)?;
    let text = summary::truncation(report, at)?;
    Some(section(
        "details | What the rows leave open | What tokens that rows do not list do to every number.",
        [Block::Paragraph(text)],
    ))
}

fn acceptance(report: &GapReport) -> Option<Section> {
    (!report.cells.is_empty()).then(|| {
        section(
            "acceptance | Acceptance | How often the output is one of the drafts, under the most that is \
             possible.",
            tables::acceptance(report),
        )
        .with(figures::acceptance(report))
    })
}

fn gaps(report: &GapReport) -> Option<Section> {
    of_table(
        "gap | Gap to the optimum | What each verifier misses of its optimum, position by position.",
        (!report.cells.is_empty()).then(|| tables::gaps(report)),
    )
}

fn one_draft(report: &GapReport) -> Option<Section> {
    let engines = folded("The names and settings of engines", tables::engines());
    let section = of_table(
        "one-draft | One draft: one-hot, token or exact-match | Which of the three ways of engines \
         accepts most on this pair of models.",
        tables::one_draft(report),
    );
    section.map(|section| section.with([engines]))
}

fn folded(summary: &str, table: Table) -> Block {
    Block::Details {
        summary: summary.to_owned(),
        blocks: vec![table.into()],
    }
}

/// Shows what the text tells of whole rounds, and which commands tell the rest.
fn rounds(report: &GapReport) -> Option<Section> {
    let logs = words(report.logs.iter().map(|log| log.name.as_str()));
    let ask = |what: &str, command: &str| {
        let command = format!("specgap {command} {logs} --cost-ratio 0.1");
        [Block::paragraph(what), Block::Command(command)]
    };
    let commands = [
        ask(
            "How many tokens to draft, by which rule, and how much faster that is at the cost of a draft \
             step, here 0.1 of a target step:",
            "length",
        ),
        ask("Which tree of drafts to verify instead of a chain:", "tree"),
    ];
    // Rows in memory are in no command's reach.
    let commands = (commands.concat().into_iter()).filter(|_| !report.command.is_empty());
    let section = of_all(
        "rounds | Rounds along the text | What a round of several drafts accepts, by three verifiers of \
         a chain.",
        tables::rounds(report),
    );
    section.map(|section| section.with(commands))
}

/// Shows what a log's draft paths could give.
fn draft_paths(report: &GapReport) -> Option<Section> {
    let paths = report.draft_paths.as_ref()?;
    let logs = report.logs.iter().map(|log| log.name.as_str());
    Some(super::draft_paths::section(paths, logs))
}

fn blocks(report: &GapReport) -> Option<Section> {
    let tables = [tables::blocks(report), tables::lemma(report)];
    let tables: Vec<Table> = tables.into_iter().flatten().collect();
    let how = Block::paragraph(
        "Estimated along the text that was sampled, at the temperature it was sampled at; no other \
         temperature can be estimated from it. An average over sampled blocks: its error is the \
         interval's.",
    );
    let section = section(
        "blocks | Blocks | How many tokens of a whole drafted block are accepted, along the text.",
        [how],
    );
    (!tables.is_empty()).then(|| section.with(tables))
}

fn definitions(report: &GapReport) -> Option<Section> {
    let mut words: Vec<(String, String)> = report.definitions.clone().into_iter().collect();
    // What a kind means is told below, of those that the report has.
    words.retain(|(word, _)| !super::certainty::is_kind(word));
    words.extend(certainty::definitions(report));
    if report.served.is_some() {
        words.push(("as served".to_owned(), summary::SERVED.to_owned()));
    }
    let purpose = "What every word and number on this page means.";
    (!words.is_empty()).then(|| sections::definitions(purpose, words))
}

fn distributions(report: &GapReport) -> Option<Section> {
    (!report.cells.is_empty()).then(|| {
        section(
            "distributions | Distributions over positions | Every cell in full.",
            [
                folded("Quantiles in every cell", tables::quantiles(report)),
                folded("Histograms in every cell", tables::histograms(report)),
            ],
        )
    })
}

fn made_by(report: &GapReport) -> Section {
    let words = format!(
        "{}, seed {}, report schema {}.",
        report.tool, report.seed, report.schema
    );
    specgap_page::made_by(&report.command, words)
}
