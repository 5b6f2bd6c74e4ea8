//! A live decoder's trees along the text that it wrote, row by row.

use super::super::moments::{CountMoments, moments_of_tree, spread};
use super::from_leaves::{Here, Trees};
use super::priced::{along_text, children_along};
use specgap_core::rounds::{ChildShares, TextToken, kept_from_leaves};
use specgap_core::rule::RuleName;
use specgap_core::scheme::SchemeName;
use specgap_core::tree::{PricedRow, Shape, Shaped};
use specgap_core::verifier::{TokenRule, VerifierName};
use specgap_number::distribution::Rows;
use specgap_plan::Levels;
use specgap_row::Workspace;
use std::collections::VecDeque;

/// Rounds of trees along a text, for every rule of a tree that is settled from its root or from its
/// leaves, and for trees of one shape or at one price.
///
/// # Complexity
/// O(V) a position for each number of children. Rows are held as far as the tree is deep.
///
/// # Example
/// ```
/// use specgap_core::{rule::RuleName, scheme::SchemeName, tree::{DraftTree, Shaped}};
/// use specgap_number::distribution::Rows;
/// use specgap_replay::replay::TreeAlong;
///
/// let tree = DraftTree::new(vec![vec![0]])?.shape();
/// let drafts = (RuleName::RRS, SchemeName::WITH_REPLACEMENT);
/// let mut along = TreeAlong::new(drafts, Shaped::One(&tree), 0)?;
/// for token in [0, 1] {
///     along.take(Rows { target: &[0.5, 0.5], draft: &[0.25, 0.75] }, token)?;
/// }
/// // The first token is drafted and kept with .25 of its .5: one call or two.
/// assert_eq!(along.spread().calls.mean, 1.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TreeAlong<'a> {
    tree: Shaped<'a>,
    asks: Asks,
    /// By position, where trees have a price.
    priced: Vec<PricedRow>,
}

/// What a rule needs of rows.
enum Asks {
    FromRoot {
        rule: TokenRule,
        seed: u64,
        scan: Box<Workspace>,
        /// Positions, and by number of children what these get.
        length: usize,
        tables: Vec<(usize, Vec<f64>)>,
    },
    FromLeaves {
        levels: Levels<'static>,
        trees: Trees<'static>,
        ahead: VecDeque<Here>,
        /// By start, m_0, m_1, ..
        kept: Vec<Vec<f64>>,
    },
}

impl<'a> TreeAlong<'a> {
    /// Of a rule and the law of a node's children; the seed is of rules with a mean over random draws.
    ///
    /// # Errors
    /// What does not follow from a text, in words.
    pub fn new(
        (rule, law): (RuleName, SchemeName),
        tree: Shaped<'a>,
        seed: u64,
    ) -> Result<Self, String> {
        let asks = match rule.entry().from_leaves {
            Some(_) if law.entry().children.is_none() => {
                return Err(format!(
                    "{rule} of {law} children is not known along a text"
                ));
            }
            Some(levels) => Asks::FromLeaves {
                levels,
                trees: Trees::of_law(law, tree.counts(), tree.levels()),
                ahead: VecDeque::new(),
                kept: Vec::new(),
            },
            None => {
                let name = rule.as_str().parse::<VerifierName>();
                let name = name.map_err(|error| error.to_string())?;
                let rule = name.at_token(law);
                let tables = tree.counts().into_iter().map(|count| (count, Vec::new()));
                Asks::FromRoot {
                    rule: rule
                        .ok_or_else(|| format!("{name} does not know children by their rank"))?,
                    seed,
                    scan: Box::default(),
                    length: 0,
                    tables: tables.collect(),
                }
            }
        };
        Ok(Self {
            tree,
            asks,
            priced: Vec::new(),
        })
    }

    /// The text's next position: its rows and its token.
    ///
    /// # Errors
    /// Rows that are refused, in words.
    pub fn take(&mut self, rows: Rows<'_>, token: usize) -> Result<(), String> {
        if let Shaped::Priced(price) = self.tree {
            let (p, q) = (rows.target, rows.draft);
            self.priced.push(PricedRow::of(p, q, token, price.heaviest));
        }
        match &mut self.asks {
            Asks::FromRoot {
                rule,
                seed,
                scan,
                length,
                tables,
            } => {
                let most = tables.last().map_or(1, |one| one.0);
                let mut row = scan.load(rows, most).map_err(|error| error.to_string())?;
                for (count, table) in tables.iter_mut() {
                    let shares = rule.shares(&mut row, token, *count, *seed ^ *length as u64);
                    table.extend(shares.map_err(|error| error.to_string())?);
                }
                *length += 1;
            }
            Asks::FromLeaves { trees, ahead, .. } => {
                ahead.push_back(trees.here(rows, token, None)?);
                if ahead.len() == self.tree.levels() {
                    self.start();
                }
            }
        }
        Ok(())
    }

    /// The round from the first position that is held; of trees from their leaves.
    fn start(&mut self) {
        let Asks::FromLeaves {
            levels,
            ahead,
            kept,
            ..
        } = &mut self.asks
        else {
            return;
        };
        let text: Vec<TextToken<'_>> = ahead.iter().map(|here| here.token(0)).collect();
        let keep = |shape: &Shape| {
            let mut reach = vec![0.0; shape.parent.len()];
            kept_from_leaves(shape, *levels, &text, &mut reach)
        };
        kept.push(match self.tree {
            Shaped::One(shape) => keep(shape),
            Shaped::Priced(price) => {
                let rows = self.priced.get(kept.len()..).unwrap_or(&[]);
                let counts = children_along(price, price.price, rows).map(|one| one.0);
                keep(&along_text(&counts.collect::<Vec<_>>(), &text))
            }
        });
        ahead.pop_front();
    }

    /// Mean and variance of calls and drafts, given the text, as
    /// [`moments_of_chain`](super::super::moments_of_chain) has them for a chain. How many are drafted
    /// at a price does not follow from the text.
    pub fn spread(mut self) -> CountMoments<f64> {
        while matches!(&self.asks, Asks::FromLeaves { ahead, .. } if !ahead.is_empty()) {
            self.start();
        }
        let tree = self.tree;
        let of_calls = |length: usize, survival: &dyn Fn(usize) -> Vec<f64>| {
            let mut moments = spread(length, |start, left| {
                let levels = tree.levels().min(left);
                let reached = survival(start).into_iter().take(levels).collect();
                match tree {
                    Shaped::One(shape) => (reached, shape.nodes_to(levels)),
                    Shaped::Priced(_) => (reached, 0),
                }
            });
            moments.drafts = moments.drafts.filter(|_| matches!(tree, Shaped::One(_)));
            moments
        };
        match self.asks {
            Asks::FromLeaves { kept, .. } => of_calls(kept.len(), &|start| {
                kept[start].iter().skip(1).copied().collect()
            }),
            Asks::FromRoot { length, tables, .. } => {
                let shares = ChildShares::new(length, false, tables);
                match tree {
                    Shaped::One(shape) => moments_of_tree(shape, &shares),
                    Shaped::Priced(price) => of_calls(length, &|start| {
                        let counts = children_along(price, price.price, &self.priced[start..]);
                        let mut kept = 1.0;
                        let each = counts.enumerate().map(|(depth, (count, _))| {
                            kept *= shares
                                .at(start + depth, count)
                                .iter()
                                .take(count)
                                .sum::<f64>();
                            kept
                        });
                        each.collect()
                    }),
                }
            }
        }
    }
}
