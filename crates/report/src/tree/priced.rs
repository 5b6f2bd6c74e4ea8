//! Trees at one price for all nodes.

use crate::columns::table;
use crate::length::numbers::{decimals, entry, maybe, plus_minus};
use crate::sections::shown;
use specgap_page::table::Table;
use specgap_page::{Block, Section};
use specgap_replay::replay::{AtPrice, PricedBy, PricedTrees, TreeReport};

pub(super) fn section(report: &TreeReport) -> Option<Section> {
    let priced = report.priced.as_ref()?;
    let how = Block::paragraph(
        "A node gets the children that bring most: each counts its chance to be accepted, by what the \
         draft's rows on the way to it say, less the price, and what lies ahead of it. A drafter takes \
         best-tree.price.json and specgap.rules.children; which node is next does not matter, as long \
         as none is dropped.",
    );
    let what = what_to_do(priced).map(Block::Paragraph);
    let section = shown(
        "one-price | One price for all nodes | Trees of stratified drafts that are wide and deep where \
         the draft's rows say it pays.",
        what,
    );
    Some(section.with([how]).with([table(priced)]))
}

/// The trees at the price that a drafter reads, with the rule that makes most of them.
fn chosen(priced: &PricedTrees) -> Option<(&AtPrice, &PricedBy)> {
    let mut all = priced.at.iter();
    let at = all.find(|one| one.price.total_cmp(&priced.price.price).is_eq())?;
    let tokens = |one: &&PricedBy| one.tokens_per_call.mean;
    let by = (at.by.iter()).max_by(|a, b| tokens(a).total_cmp(&tokens(b)))?;
    Some((at, by))
}

fn what_to_do(priced: &PricedTrees) -> Option<String> {
    let (at, by) = chosen(priced)?;
    let one_shape = by.beside.first()?;
    let more = plus_minus(&one_shape.more, 2);
    let nodes = format!("{} draft tokens a call", plus_minus(&at.nodes, 1));
    let tokens = plus_minus(&by.tokens_per_call, 2);
    let price = decimals(at.price, 4);
    Some(match one_shape.more.side() {
        Some(std::cmp::Ordering::Greater) => format!(
            "Shape trees by the rows, at a price of {price} accepted tokens for each draft token: {tokens} \
             tokens for each target call with {} at {nodes}, {more} more than the best trees of one \
             shape with as many.",
            by.verifier
        ),
        _ => format!(
            "Keep one shape. At a price of {price} accepted tokens for each draft token trees have \
             {nodes} and {} makes {tokens} tokens for each target call of them, {more} more than of the \
             best trees of one shape with as many; these prompts do not tell it to be more.",
            by.verifier
        ),
    })
}

fn table(priced: &PricedTrees) -> Table {
    let prices = || priced.at.iter().enumerate();
    let all = || {
        prices().flat_map(|(place, at)| (0..).zip(&at.by).map(move |(n, by)| (place, n, at, by)))
    };
    let timed = priced.at.iter().any(|at| at.speedup.is_some());
    let has_most = (priced.at.iter()).any(|at| at.most_accepted_length.is_some());
    let is_chosen = |at: &AtPrice| at.price.total_cmp(&priced.price.price).is_eq();
    let more = |by: &PricedBy, name: &str| {
        let other = by.beside.iter().find(|other| other.trees == name);
        maybe(other.map(|other| &other.more), 3)
    };
    let rows = table! {
        "one-price", "One price beside other trees", (_, n, at, by) in all(), bold is_chosen(at);
        "verifier" => &by.verifier,
        "#E[τ]" => maybe(by.expected_accepted_length.as_ref(), 3),
        "#any rule at most" if has_most => maybe(at.most_accepted_length.as_ref(), 3),
        "#tokens per call" => entry(&by.tokens_per_call, 3),
        "#more than one shape" => more(by, "one shape"),
        "#more than sequoia" => more(by, "sequoia"),
        "#more than likeliest" => more(by, "likeliest"),
        "#speed-up" if timed => maybe(at.speedup.as_ref().filter(|_| n == 0), 2),
    };
    let titles = all().map(|(place, _, at, _)| {
        let (price, nodes) = (decimals(at.price, 4), plus_minus(&at.nodes, 1));
        (place, format!("price {price}: {nodes} draft tokens a call"))
    });
    rows.grouped(titles, true).note(format!(
        "Fitted on {} prompts, measured on the {} others, paired by prompt, with 95% intervals. All have \
         as many draft tokens in the mean: of one shape and Sequoia's two sizes in turn; likeliest: \
         every token whose product of q reaches a threshold that is fitted as the price is. Draft \
         tokens are counted by nodes along the text.",
        priced.chosen_on, priced.reported_on
    ))
}
