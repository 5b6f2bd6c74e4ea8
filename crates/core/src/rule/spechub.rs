//! `spechub`: the optimal plan of pairs that hold the draft's likeliest token.

use super::step::{InTurn, Step, entry};
use super::{Drafts, RuleEntry, Verifies};
use crate::scheme::SchemeName;

/// With the hub a and d(x) = q(a) q(x)/(1 - q(a)): the pair (x, a) gives min(p, q) to x, (a, x)
/// gives min(max(p - q, 0), d) to x, and of what is left in any pair the same share goes to a
/// (Sun et al. 2024, "SpecHub: Provable acceleration to multi-draft speculative decoding").
#[derive(Debug)]
struct SpecHub;

impl Step for SpecHub {
    fn in_turn(&self, p: &[f64], q: &[f64], drafts: &[u32]) -> InTurn {
        let hub = crate::scheme::likeliest(q);
        let heavy = entry(q, hub);
        let without = |token: usize| token != hub as usize;
        let others: f64 = (q.iter().enumerate())
            .filter(|&(token, _)| without(token))
            .map(|(_, mass)| mass)
            .sum();
        let second = |mass: f64| {
            if others > 0.0 {
                heavy * mass / others
            } else {
                0.0
            }
        };
        let (mut unused, mut lacking) = (0.0, Vec::with_capacity(p.len()));
        for (token, (&p, &q)) in p.iter().zip(q).enumerate() {
            if !without(token) {
                lacking.push(0.0);
                continue;
            }
            let after = (p - q).max(0.0);
            unused += (q - p).max(0.0) + (second(q) - after).max(0.0);
            lacking.push((after - second(q)).max(0.0));
        }
        if others <= 0.0 {
            unused = 1.0;
        }
        let left: f64 = lacking.iter().sum();
        let share = if left <= 0.0 || unused <= 0.0 {
            1.0
        } else {
            (entry(p, hub) / unused).min(1.0)
        };
        let keep = |wanted: f64, drawn: f64| {
            if drawn > 0.0 {
                (wanted / drawn).min(1.0)
            } else {
                0.0
            }
        };
        // How often the pair gives its own output to the other token, which is asked first.
        let other = drafts.iter().position(|&draft| draft != hub);
        let kept = other.map_or(0.0, |place| {
            let token = drafts.get(place).copied().unwrap_or(0);
            let (p, q) = (entry(p, token), entry(q, token));
            match place {
                0 => keep(p, q),
                _ => keep((p - q).max(0.0), second(q)),
            }
        });
        let mut ratios = match other {
            Some(0) => vec![kept, share],
            Some(_) => {
                let hub = (1.0 - kept) * share;
                vec![hub, keep(kept, 1.0 - hub)]
            }
            None => vec![share],
        };
        ratios.truncate(drafts.len());
        // Nothing lacks where all is accepted, up to rounding; p is then as good.
        let residual = if left > 0.0 { lacking } else { p.to_vec() };
        InTurn { ratios, residual }
    }
}

pub(super) static SPECHUB: RuleEntry = RuleEntry {
    name: "spechub",
    words: "fill every other token from its pairs first, then the hub",
    step: Some(&SpecHub),
    decoded: true,
    ..RuleEntry::named(Verifies::Siblings, Drafts::Drawn(SchemeName::HUB))
};
