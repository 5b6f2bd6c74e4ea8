//! The best tree of stratified drafts beside the trees of Sequoia and EAGLE with as many nodes.

use super::data::{BesideTree, EqualNodes};
use super::grow::Limits;
use super::measure::Measurement;
use super::outcome::{Along, Half, REFERENCE};
use super::pairs::{Pair, Shares};
use super::siblings::SlotRates;
use specgap_core::scheme::SchemeName;
use specgap_core::tree::DraftTree;
use specgap_statistics::Estimate;
use std::collections::BTreeSet;

/// The name of Sequoia's trees in reports.
const SEQUOIA: &str = "sequoia";

/// A tree with a draft law and a verifier.
struct Entrant {
    name: String,
    scheme: SchemeName,
    verifier: String,
    tree: DraftTree,
    /// On the prompts that choose.
    worth: f64,
    promised: f64,
    accepted: Option<Estimate>,
    tokens_per_call: Estimate,
    along: Along,
}

/// Trees of some number of nodes, by name the best; that of stratified drafts by slots has none.
pub(super) struct AtNodes {
    nodes: usize,
    best: Vec<Entrant>,
}

fn is_stratified(scheme: SchemeName) -> bool {
    [SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT].contains(&scheme)
}

impl AtNodes {
    fn take(&mut self, entrant: Entrant) {
        // The same shape of stratified drafts stands apart.
        let key = |one: &Entrant| (one.name.clone(), is_stratified(one.scheme));
        match self.best.iter_mut().find(|one| key(one) == key(&entrant)) {
            Some(other) if other.worth >= entrant.worth => {}
            Some(other) => *other = entrant,
            None => self.best.push(entrant),
        }
    }
}

impl Measurement<'_> {
    /// The numbers of nodes at which trees are compared: the budget, and that of EAGLE's tree
    /// where it was named.
    pub(super) fn at_nodes(&self) -> Vec<AtNodes> {
        let stratified = self.settings.schemes.iter().any(|&law| is_stratified(law));
        if !stratified || self.texts.clusters < 2 {
            return Vec::new();
        }
        let named = self.settings.trees.iter();
        let named = named.filter(|tree| tree.name == REFERENCE);
        let mut all: BTreeSet<usize> = named.map(|tree| tree.tree.len()).collect();
        all.insert(self.settings.limits.budget);
        let empty = |nodes| AtNodes {
            nodes,
            best: Vec::new(),
        };
        all.into_iter().map(empty).collect()
    }

    /// Trees of a draft law and verifier, fitted on the prompts that choose.
    pub(super) fn enter(&self, pair: &Pair, shares: &Shares, all: &mut [AtNodes]) {
        for at in all {
            let limits = Limits {
                budget: at.nodes,
                branch: pair.branch,
                ..self.settings.limits
            };
            let mut trees: Vec<(String, DraftTree, f64)> = Vec::new();
            if pair.branch > 0 {
                let fitted = if is_stratified(pair.scheme) {
                    let rates = SlotRates::new(self.choosing(shares), limits);
                    let best = rates.best_tree(limits).ok();
                    best.map(|(tree, value)| (String::new(), tree, value))
                } else {
                    let best = self.of_sequoia(shares, limits);
                    best.map(|(_, tree, promised)| (SEQUOIA.to_owned(), tree, promised))
                };
                trees.extend(fitted);
            }
            for named in &self.settings.trees {
                if named.tree.len() == at.nodes && named.name == REFERENCE {
                    trees.push((named.name.clone(), named.tree.clone(), 0.0));
                }
            }
            for (name, tree, promised) in trees {
                let shape = tree.shape();
                if tree.is_empty() || !pair.takes(&shape) {
                    continue;
                }
                let group = self.group(shares, &shape);
                at.take(Entrant {
                    name,
                    scheme: pair.scheme,
                    verifier: pair.verifier.to_string(),
                    worth: group.tokens_per_call(Half::Chooses).mean,
                    promised,
                    accepted: group.accepted(Half::Reports),
                    tokens_per_call: group.tokens_per_call(Half::Reports),
                    along: group.along(self.settings.timings.as_ref()),
                    tree,
                });
            }
        }
    }

    /// Returns what the report says of them.
    pub(super) fn compared(all: Vec<AtNodes>) -> Vec<EqualNodes> {
        let of = |at: AtNodes| {
            let mut others = at.best;
            let slots = others.iter().position(|one| one.name.is_empty())?;
            let slots = others.remove(slots);
            others.sort_by(|a, b| b.worth.total_cmp(&a.worth));
            let beside = others.into_iter().map(|one| BesideTree {
                more: slots.along.minus(&one.along),
                tree: one.name,
                nodes: one.tree.len(),
                scheme: one.scheme.to_string(),
                verifier: one.verifier,
                tokens_per_call: one.tokens_per_call,
            });
            Some(EqualNodes {
                budget: at.nodes,
                beside: beside.collect(),
                nodes: slots.tree.len(),
                depth: slots.tree.depth(),
                scheme: slots.scheme.to_string(),
                verifier: slots.verifier,
                promised: slots.promised,
                expected_accepted_length: slots.accepted,
                tokens_per_call: slots.tokens_per_call,
                paths: slots.tree.paths().to_vec(),
            })
        };
        all.into_iter().filter_map(of).collect()
    }
}
