//! Draft laws with verifiers, and what rows are asked for them.

use super::super::asked::{Slot, Slots};
use super::grow::Limits;
use super::settings::TreeSettings;
use specgap_core::rounds::ChildShares;
use specgap_core::scheme::SchemeName;
use specgap_core::tree::Shape;
use specgap_core::verifier::{TokenRule, VerifierName};
use specgap_row::row::MAX_DRAFTS;
use std::collections::BTreeSet;

/// A draft law with a verifier.
pub(super) struct Pair {
    pub(super) scheme: SchemeName,
    pub(super) verifier: VerifierName,
    pub(super) rule: TokenRule,
    /// The most children that a node of a growing tree may have; 0 if none can grow.
    pub(super) branch: usize,
    /// Numbers of children that some tree has, rising.
    pub(super) children: BTreeSet<usize>,
    /// Those that rows are asked for, with what they get: what the most children get answers for
    /// fewer, where it can.
    pub(super) asked: Vec<(usize, Slot)>,
}

impl Pair {
    pub(super) fn fits(&self, children: usize) -> bool {
        (1..=MAX_DRAFTS).contains(&children)
            && self.scheme.fits(children)
            && self.verifier.is_lossless(self.scheme, children)
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

/// alpha* of 1, .., n drafts of a law.
pub(super) struct OptimaOf {
    pub(super) scheme: SchemeName,
    pub(super) optimum: specgap_row::row::Answer,
    pub(super) drafts: usize,
    pub(super) slot: Slot,
}

/// What is asked of every position.
pub(super) struct Plan {
    pub(super) pairs: Vec<Pair>,
    pub(super) bounds: Vec<OptimaOf>,
    pub(super) slots: Slots,
    pub(super) left_out: Vec<String>,
}

impl Plan {
    pub(super) fn new(settings: &TreeSettings) -> Self {
        let mut plan = Self {
            pairs: Vec::new(),
            bounds: Vec::new(),
            slots: Slots::default(),
            left_out: Vec::new(),
        };
        let shapes: Vec<(&str, Shape)> = settings
            .trees
            .iter()
            .map(|tree| (tree.name.as_str(), tree.tree.shape()))
            .collect();
        for &scheme in &settings.schemes {
            for &verifier in &settings.verifiers {
                if scheme.entry().on_row.is_none() || !verifier.is_lossless(scheme, 1) {
                    continue;
                }
                match verifier.token_rule(scheme) {
                    Ok(rule) => plan.add(scheme, verifier, rule, settings.limits, &shapes),
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

    /// Asks for what no rule passes at roots with the target's own law.
    pub(super) fn ask_optima(&mut self, shapes: &[(&str, Shape)]) {
        for scheme in SchemeName::ALL
            .into_iter()
            .filter(|law| law.entry().prefixed)
        {
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

    pub(super) fn add(
        &mut self,
        scheme: SchemeName,
        verifier: VerifierName,
        rule: TokenRule,
        limits: Limits,
        shapes: &[(&str, Shape)],
    ) {
        let mut pair = Pair {
            scheme,
            verifier,
            rule,
            branch: 0,
            children: BTreeSet::new(),
            asked: Vec::new(),
        };
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
            Some(&most) if rule.nested => vec![most],
            _ => pair.children.iter().copied().collect(),
        };
        let asked = asked.into_iter();
        pair.asked = asked.map(|n| (n, self.slots.numbers(n))).collect();
        if !pair.asked.is_empty() {
            self.pairs.push(pair);
        }
    }
}

/// What the children of nodes get, text by text.
pub(super) struct Shares {
    pub(super) texts: Vec<ChildShares<f64>>,
    /// At least and at most, where rows list some tokens only and that is known.
    pub(super) bounds: Option<[Vec<ChildShares<f64>>; 2]>,
}
