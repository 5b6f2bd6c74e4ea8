//! Draft laws with verifiers, and what rows are asked for them.

use super::super::asked::{Slot, Slots};
use super::grow::Limits;
use super::settings::TreeSettings;
use specgap_core::rounds::ChildShares;
use specgap_core::rule::RuleName;
use specgap_core::scheme::SchemeName;
use specgap_core::tree::Shape;
use specgap_core::verifier::{TokenRule, VerifierName, any_of};
use specgap_plan::Levels;
use specgap_row::MAX_DRAFTS;
use std::collections::BTreeSet;

/// A draft law with a verifier.
pub(super) struct Pair {
    pub(super) scheme: SchemeName,
    pub(super) verifier: RuleName,
    /// What it does at a node. Of a rule from the leaves, the rule of the same drafts by which its
    /// trees are grown.
    pub(super) at_node: VerifierName,
    pub(super) rule: TokenRule,
    /// Of a rule from the leaves, its levels at the root.
    pub(super) levels: Option<Levels<'static>>,
    /// The most children that a node of a growing tree may have; 0 if none can grow.
    pub(super) branch: usize,
    /// Numbers of children that some tree has, rising.
    pub(super) children: BTreeSet<usize>,
    /// Those that rows are asked for, with what they get: what the most children get answers for
    /// fewer, where it can.
    pub(super) asked: Vec<(usize, Slot)>,
    /// Whether rows are asked for it, or for another pair with the same answers.
    pub(super) asks: bool,
}

impl Pair {
    fn new(
        (scheme, verifier): (SchemeName, RuleName),
        (at_node, rule): (VerifierName, TokenRule),
    ) -> Self {
        Self {
            scheme,
            verifier,
            at_node,
            rule,
            levels: verifier.entry().from_leaves,
            branch: 0,
            children: BTreeSet::new(),
            asked: Vec::new(),
            asks: true,
        }
    }

    pub(super) fn fits(&self, children: usize) -> bool {
        (1..=MAX_DRAFTS).contains(&children)
            && self.scheme.fits(children)
            && self.at_node.is_lossless(self.scheme, children)
    }

    pub(super) fn takes(&self, shape: &Shape) -> bool {
        let parents = shape.children.iter().filter(|&&children| children > 0);
        parents.into_iter().all(|&children| self.fits(children))
    }

    pub(super) fn kind(&self, shape: &Shape) -> String {
        let most = shape.children.iter().copied().max().unwrap_or(0);
        let is_sampled = self.rule.sampled_from.is_some_and(|from| most > from);
        let more = if is_sampled { ", sampled" } else { "" };
        format!("estimate{more}")
    }

    pub(super) fn name(&self) -> String {
        format!("{} on {} drafts", self.verifier, self.scheme)
    }
}

/// Returns what a rule does with a node's children of a law; `None` where it does not take them, or a log
/// cannot hold them.
fn at_node(scheme: SchemeName, rule: RuleName) -> Option<VerifierName> {
    scheme.entry().on_row.as_ref()?;
    let takes = |one: &VerifierName| one.is_lossless(scheme, 1);
    if rule.entry().from_leaves.is_some() {
        scheme.entry().children?;
        let grown_by = [VerifierName::RRS, VerifierName::LEVEL_4];
        return (grown_by.into_iter()).find(|one| one.at_token(scheme).is_some());
    }
    let own = (VerifierName::ALL.into_iter()).find(|one| one.entry().rule == rule);
    own.filter(takes)
}

/// alpha* of 1, .., n drafts of a law.
pub(super) struct OptimaOf {
    pub(super) scheme: SchemeName,
    pub(super) optimum: specgap_row::Answer,
    pub(super) drafts: usize,
    pub(super) slot: Slot,
}

/// What is asked of every position.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) pairs: Vec<Pair>,
    pub(super) bounds: Vec<OptimaOf>,
    pub(super) slots: Slots,
    pub(super) left_out: Vec<String>,
}

impl Plan {
    pub(super) fn new(settings: &TreeSettings) -> Self {
        let mut plan = Self::default();
        let trees = settings.trees.iter();
        let shapes: Vec<(&str, Shape)> = trees
            .map(|tree| (tree.name.as_str(), tree.tree.shape()))
            .collect();
        for &scheme in &settings.schemes {
            for &verifier in &settings.verifiers {
                let Some(at_node) = at_node(scheme, verifier) else {
                    continue;
                };
                match at_node.token_rule(scheme) {
                    Ok(rule) => {
                        let pair = Pair::new((scheme, verifier), (at_node, rule));
                        plan.add(pair, settings.limits, &shapes);
                    }
                    Err(why) => plan
                        .left_out
                        .push(format!("{verifier} on {scheme} drafts: {why}")),
                }
            }
        }
        if settings.slot_values {
            plan.ask_optima(&shapes);
        }
        plan
    }

    /// Says why no pair is left, where none is: also of verifiers that take none of the laws.
    pub(super) fn why_none(&self, settings: &TreeSettings) -> Vec<String> {
        let taken = |rule: RuleName, scheme: SchemeName| at_node(scheme, rule).is_some();
        let refused = settings.verifiers.iter().filter_map(|&rule| {
            let mut asked = settings.schemes.iter();
            if asked.any(|&scheme| taken(rule, scheme)) {
                return None;
            }
            let laws = SchemeName::ALL.into_iter().filter(|&law| taken(rule, law));
            let laws: Vec<&str> = laws.map(SchemeName::as_str).collect();
            let own = (VerifierName::ALL.into_iter()).find(|one| one.entry().rule == rule);
            let why = match own.map(|one| one.entry().lossless) {
                Some(lossless) => format!("it is lossless for {lossless} only"),
                None => "it takes no such children".to_owned(),
            };
            Some(format!(
                "{rule}: {why}, so ask for ⟨laws {}⟩",
                any_of(&laws)
            ))
        });
        self.left_out.iter().cloned().chain(refused).collect()
    }

    /// Asks for what no rule passes at roots with the target's own law.
    pub(super) fn ask_optima(&mut self, shapes: &[(&str, Shape)]) {
        for scheme in (SchemeName::ALL.into_iter()).filter(|law| law.entry().prefixed) {
            let pairs = self.pairs.iter().filter(|pair| pair.scheme == scheme);
            let roots = pairs.flat_map(|pair| {
                let fitting = shapes.iter().filter(|(_, shape)| pair.takes(shape));
                fitting.filter_map(|(_, shape)| shape.children.first().copied())
            });
            let (Some(drafts), Some(on_row)) =
                (roots.max().filter(|&most| most > 1), &scheme.entry().on_row)
            else {
                continue;
            };
            self.bounds.push(OptimaOf {
                scheme,
                optimum: on_row.optimum.full,
                drafts,
                slot: self.slots.numbers(drafts),
            });
        }
    }

    pub(super) fn add(&mut self, mut pair: Pair, limits: Limits, shapes: &[(&str, Shape)]) {
        let grows: Vec<usize> = (1..=limits.branch).filter(|&n| pair.fits(n)).collect();
        pair.branch = grows.last().copied().unwrap_or(0);
        let (fitting, others): (Vec<_>, Vec<_>) =
            shapes.iter().partition(|(_, shape)| pair.takes(shape));
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
            self.left_out.push(format!(
                "{}: {}, where some node has a number of children that it does not take",
                pair.name(),
                names.join(", ")
            ));
        }
        let counts = fitting.iter().flat_map(|(_, shape)| &shape.children);
        pair.children = counts.copied().filter(|&children| children > 0).collect();
        pair.children.extend(grows);
        let asked = match pair.children.last() {
            Some(&most) if pair.rule.nested => vec![most],
            _ => pair.children.iter().copied().collect(),
        };
        let mut known = self.pairs.iter();
        let same = |one: &&Pair| (one.scheme, one.at_node) == (pair.scheme, pair.at_node);
        match known.find(same) {
            // The same answers.
            Some(known) => (pair.asked, pair.asks) = (known.asked.clone(), false),
            None => {
                let asked = asked.into_iter();
                pair.asked = asked.map(|n| (n, self.slots.numbers(n))).collect();
            }
        }
        if !pair.asked.is_empty() {
            self.pairs.push(pair);
        }
    }
}

/// What the children of nodes get, text by text.
pub(super) struct Shares {
    pub(super) texts: Vec<ChildShares<f64>>,
    /// The pair's place in the plan, of a rule from the leaves: its rounds do not follow from these.
    pub(super) from_leaves: Option<usize>,
    /// The pair with whose rounds it is read what no rule passes on these drafts.
    pub(super) most: Option<usize>,
    /// At least and at most, where rows list some tokens only and that is known.
    pub(super) bounds: Option<[Vec<ChildShares<f64>>; 2]>,
}
