//! What verifiers get along texts.

use super::super::asked::Slot;
use super::super::moments;
use super::super::read::Text;
use super::bounds::lower_bound_of_text;
use super::by_agreement::reached;
use super::contexts::Start;
use super::means::ByPrompt;
use super::measure::Measurement;
use specgap_base::side_by_side;
use specgap_core::rounds::ChainRule;
use specgap_core::rule::{Kept, RuleName, Shared};

/// What the texts say of one K.
pub(super) struct AlongTexts {
    pub(super) drafts: usize,
    /// In the order of reports.
    pub(super) verifiers: Vec<VerifierAlong>,
    /// The lower bound, block by block.
    pub(super) lower: ByPrompt,
}

/// What the texts say of a verifier.
pub(super) struct VerifierAlong {
    pub(super) rule: RuleName,
    /// E[tau], block by block.
    pub(super) accepted: ByPrompt,
    /// Tokens over rounds, text by text.
    pub(super) rounds: ByPrompt,
}

impl AlongTexts {
    pub(super) fn verifier(&self, rule: RuleName) -> Option<&VerifierAlong> {
        self.verifiers.iter().find(|one| one.rule == rule)
    }
}

/// What one text says of every verifier, for one K.
struct Along {
    blocks: Vec<Block>,
    /// Rounds of the whole text.
    calls: Vec<f64>,
}

/// E[tau] of every verifier at a block, and the lower bound.
struct Block {
    accepted: Vec<f64>,
    lower: f64,
}

/// Rounds that a text of `all` tokens takes in expectation, `reached(start)` being
/// P(tau >= i given the text) of a round that begins there, i = 1, 2, ... A round with `left`
/// tokens to go drafts `left` - 1 at most, and its last token is the target's own.
pub(super) fn calls<'r>(all: usize, reached: impl Fn(usize) -> &'r [f64]) -> f64 {
    let mut begins = vec![0.0; all + 1];
    let mut calls = 0.0;
    begins[0] = 1.0;
    for start in 0..all {
        let here = begins[start];
        calls += here;
        let (mut before, mut behind) = (1.0, start + 1);
        for &reached in reached(start).iter().take(all - start - 1) {
            begins[behind] += here * (before - reached);
            before = reached;
            behind += 1;
        }
        begins[behind] += here * before;
    }
    calls
}

impl Measurement<'_> {
    /// All texts, where their blocks start.
    pub(super) fn along_texts(&self, starts: &[Vec<Start<'_>>], drafts: usize) -> AlongTexts {
        let (texts, clusters) = (&self.texts.texts, self.texts.clusters);
        let along: Vec<Along> = side_by_side::each_number(texts.len().min(starts.len()), |text| {
            self.along(&texts[text], &starts[text], drafts)
        });
        let rules = self.rules.iter();
        let mut all = AlongTexts {
            drafts,
            verifiers: rules
                .map(|&rule| VerifierAlong {
                    rule,
                    accepted: ByPrompt::new(clusters),
                    rounds: ByPrompt::new(clusters),
                })
                .collect(),
            lower: ByPrompt::new(clusters),
        };
        for (text, along) in texts.iter().zip(&along) {
            for block in &along.blocks {
                for (one, &accepted) in all.verifiers.iter_mut().zip(&block.accepted) {
                    one.accepted.add(text.cluster, accepted);
                }
                all.lower.add(text.cluster, block.lower);
            }
            let tokens = text.places.len() as f64;
            for (one, &calls) in all.verifiers.iter_mut().zip(&along.calls) {
                one.rounds.add_ratio(text.cluster, tokens, calls);
            }
        }
        all
    }

    /// P(tau >= i) of every verifier given a stretch of text, i = 1, 2, ..
    fn survivals(&self, text: &Text, start: &Start<'_>, drafts: usize) -> Vec<Vec<f64>> {
        let single = |verifier| {
            let ratios = start.places.iter().map(|place| &place.ratio);
            moments::reached(verifier, ratios)
        };
        let tables = &self.asked.tables;
        let of = |slot: &Slot, selects: bool| {
            let rows = 0..start.places.len();
            let rows = rows.filter_map(|depth| text.asked_at(start.begin, depth));
            reached(rows.map(|answers| slot.of(answers)), drafts, selects)
        };
        let selected = of(&tables.selected, true);
        let [by_block, by_greedy_block] = &selected.selected;
        let shared = self.rules.iter().filter_map(|rule| rule.entry().shared);
        let by_level = shared.map(|shared| match shared {
            Shared::Rejected => of(&tables.rrs.1, false).by_token,
            Shared::OneFactor => of(&tables.k_seq.1, false).by_token,
            Shared::Selected(Kept::Tokens) => selected.by_token.clone(),
            Shared::Selected(Kept::Prefixes) => by_block.clone(),
            Shared::Selected(Kept::MostPrefixes) => by_greedy_block.clone(),
        });
        let of_one = ChainRule::all().map(single);
        of_one.chain(by_level).collect()
    }

    /// E[tau] of every verifier at every block of a text with the lower bound, and the rounds
    /// that the whole text takes, for one K.
    fn along(&self, text: &Text, starts: &[Start<'_>], drafts: usize) -> Along {
        let all = text.places.len();
        let length = self.contexts.length;
        let stretches =
            (0..all).filter_map(|begin| Start::new(text, begin, length.min(all - begin)));
        let survivals: Vec<Vec<Vec<f64>>> = stretches
            .map(|stretch| self.survivals(text, &stretch, drafts))
            .collect();
        let blocks = starts.iter().filter_map(|start| {
            // A block is as long as the stretch that begins where it does.
            let survivals = survivals.get(start.begin)?;
            let accepted = survivals.iter().map(|reached| reached.iter().sum());
            Some(Block {
                accepted: accepted.collect(),
                lower: lower_bound_of_text(&start.ratios(), drafts),
            })
        });
        let calls = |verifier: usize| {
            let reached = |start: usize| -> &[f64] {
                let here = survivals.get(start).and_then(|all| all.get(verifier));
                here.map_or(&[], Vec::as_slice)
            };
            calls(all, reached)
        };
        Along {
            blocks: blocks.collect(),
            calls: (0..self.rules.len()).map(calls).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contexts::Contexts;
    use super::super::measure::{Asked, rules};
    use super::*;
    use crate::replay::read::{Reading, Texts};
    use specgap_log::log::Log;
    use specgap_number::distribution::Rows;
    use specgap_row::Workspace;

    /// Theorem 3 of docs/theory/several-rounds.md on a shipped log: given the text, rules of several
    /// paths that accept each token at least as often as token verification make no more calls.
    #[test]
    fn several_paths_make_no_more_calls_text_by_text() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../models/logs/smollm2-demo"
        );
        let logs = [Log::open(folder.as_ref()).unwrap()];
        let asked = Asked::new(4).unwrap();
        let question = |scan: &mut Workspace, rows: Rows<'_>, token: usize, _: u64| {
            asked.ask(scan, rows, token)
        };
        let texts = Texts::read_with(&logs, None, &Reading::asking(&question), &|_| {}).unwrap();
        let rules = rules();
        let of = |name: &str| rules.iter().position(|one| one.as_str() == name).unwrap();
        let (mut seen, mut fewer) = (0, 0);
        for length in [1, 2, 4] {
            let measurement = Measurement {
                rules: rules.clone(),
                texts: &texts,
                asked: &asked,
                drafts: vec![1, 2, 3, 4],
                contexts: Contexts::new(&logs, vec![None], &texts, length).unwrap(),
            };
            let starts = measurement.contexts.starts();
            for (text, starts) in texts.texts.iter().zip(&starts) {
                for drafts in 1..=4 {
                    let calls = measurement.along(text, starts, drafts).calls;
                    let token = calls[of("token")];
                    for name in ["block", "spectr-rrs", "spectr-k-seq"] {
                        let own = calls[of(name)];
                        assert!(
                            own <= token + 1e-9,
                            "{name}, {drafts}, {length}: {own} {token}"
                        );
                        seen += 1;
                        fewer += usize::from(own < token - 1e-9);
                    }
                }
            }
        }
        assert!(
            seen == 20 * 3 * 4 * 3 && fewer > seen / 2,
            "{fewer} of {seen}"
        );
    }
}
