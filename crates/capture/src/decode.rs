//! A live speculative decoder: one prompt at a time, a chain or a tree of drafts a round.
//!
//! Both models keep their caches over the rounds. After a round that kept tau of K drafts,
//! columns of the others are rolled back. Wall-clock times of every part are kept, so that
//! what is predicted of a round can be held against one.

use super::carried::TextCarry;
use super::model::{Cache, Logits, Model, Stretch, common_vocabulary, cut};
use super::rounds::{Settled, settle};
use super::sampling::{Law, Sampler, Sampling, random_numbers};
use super::tokens::{EncodedPrompt, TextCodec};
use super::tree::{Carried, Drawing, Node, ancestry, ends, refused, room, settle_tree, weights};
use super::{BROKEN, CaptureError, PREFILL_LOGITS, go_on};
use rand::Rng;
use specgap_core::rule::{RuleName, Verifies};
use specgap_core::scheme::SchemeName;
use specgap_core::tree::{Price, Shape as TreeShape, Shaped};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// What is drafted a round. A round with `left` tokens to go drafts at most `left` - 1 deep:
/// its own token is the last.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// So many tokens, one behind the other.
    Chain(usize),
    /// A tree, or several paths. The target runs over its paths side by side, as
    /// graphs with a causal mask can: its outcome is a decoder's, its time is not.
    Tree(TreeShape, SchemeName),
    /// A tree that the draft's rows shape, at one price for all nodes; of at most 256 paths.
    Priced(Box<Price>, SchemeName),
}

impl Shape {
    /// The tree and the law of its children; none of a chain.
    pub fn tree(&self) -> Option<(Shaped<'_>, SchemeName)> {
        match self {
            Self::Chain(_) => None,
            Self::Tree(tree, law) => Some((Shaped::One(tree), *law)),
            Self::Priced(price, law) => Some((Shaped::Priced(price), *law)),
        }
    }

    /// The most tokens of a path.
    pub fn levels(&self) -> usize {
        match self {
            Self::Chain(length) => *length,
            Self::Tree(tree, _) => tree.levels(),
            Self::Priced(price, _) => price.levels,
        }
    }
}

/// How to decode.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeSettings {
    /// The law of the text, p. The draft's law q has its temperature and is not cut.
    pub sampling: Sampling,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Most tokens a prompt, at least 1.
    pub max_tokens: usize,
    /// What is drafted a round.
    pub drafts: Shape,
    /// Which drafts are kept: one of chains or one of trees.
    pub rule: RuleName,
    /// Note what each tree was, as a bound on every verifier of it needs ([`DrawnTree`]). The
    /// target's law is then computed at every node.
    pub note_trees: bool,
    /// Keep only the first N logits of a row.
    pub vocabulary: Option<usize>,
}

/// One round: one run of the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Tokens of the text before it.
    pub start: usize,
    /// Tokens that the draft drew, by their depth.
    pub by_depth: Vec<usize>,
    /// Of these, those that are in the text.
    pub accepted: usize,
    /// Tokens that it added to the text: `accepted` and one more, or less where a draft
    /// that ends the text was kept.
    pub tokens: usize,
    /// Wall-clock seconds in the draft's steps, drawing included.
    pub draft_seconds: f64,
    /// In the target's run, its laws included.
    pub verify_seconds: f64,
    /// Everything else: the rule, and rolling back.
    pub other_seconds: f64,
    /// Its tree, where [`DecodeSettings::note_trees`] says so.
    pub tree: Option<DrawnTree>,
}

/// What was drafted in a round, as both models see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnTree {
    /// Levels that the round could draft.
    pub levels: usize,
    /// The parent of each node, behind which it stands; the root, the first node, is its own.
    /// Nodes behind a token that ends the text are left out.
    pub parents: Vec<usize>,
    /// p/q of each node's prefix; the root's is 1.
    pub weights: Vec<f64>,
    /// What each rule that settles such trees keeps of it in expectation, over its own
    /// chances.
    pub expected: Vec<(RuleName, f64)>,
}

impl Round {
    /// Tokens that the draft drew.
    pub fn drafted(&self) -> usize {
        self.by_depth.iter().sum()
    }
}

/// A text, and the rounds that it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The prompt's number in its file, from 0.
    pub prompt: usize,
    /// The prompt's name.
    pub id: String,
    /// Tokens of the prompt, template included.
    pub prompt_tokens: usize,
    /// The text, a stop token included.
    pub tokens: Vec<u32>,
    /// Whether a stop token ended it, not the limit.
    pub stopped: bool,
    /// Its rounds. Empty of a text that the target wrote alone.
    pub rounds: Vec<Round>,
    /// Wall-clock seconds from the prompt's last token on: those of the rounds, or of the
    /// target alone.
    pub seconds: f64,
    /// Seconds of the prompt before its last token, in both models.
    pub prompt_seconds: f64,
}

impl Decoded {
    /// Drafts that lie within the text: what a decoder that knew the text's length would
    /// draw, which goes no deeper in a round than the tokens to go less 1.
    pub fn drafts_in_text(&self) -> usize {
        let drafts = self.rounds.iter().map(|round| {
            let left = self.tokens.len().saturating_sub(round.start);
            round
                .by_depth
                .iter()
                .take(left.saturating_sub(1))
                .sum::<usize>()
        });
        drafts.sum()
    }
}

/// Times of single steps, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTimes {
    /// Steps of the target that decodes alone.
    pub target_alone: Vec<f64>,
    /// Steps of the draft in rounds.
    pub draft: Vec<f64>,
    /// Runs of the target over so many tokens.
    pub verify: BTreeMap<usize, Vec<f64>>,
    /// What rounds take beside these.
    pub other: Vec<f64>,
}

/// A target and a draft that decode together.
pub struct Decoder {
    target: Model,
    draft: Model,
    codec: Arc<TextCodec>,
    settings: DecodeSettings,
    vocabulary: usize,
    times: StepTimes,
    /// What rounds so far change of the target.
    carried: Carried,
    /// What a rule of chains keeps from token to token, if it does.
    carry: Option<TextCarry>,
    p: Vec<Law>,
    q: Vec<Law>,
    scratch: Vec<f64>,
    row: Vec<f32>,
}

impl Decoder {
    /// Checks that the parts fit.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Vocabulary`] if the models' V differ, or are below
    /// [`DecodeSettings::vocabulary`]; [`CaptureError::Setting`] for a length of 0, a
    /// rule that does not go with the shape, a tree of more than 256 paths.
    pub fn new(
        target: Model,
        draft: Model,
        codec: TextCodec,
        settings: DecodeSettings,
    ) -> Result<Self, CaptureError> {
        if settings.max_tokens == 0 {
            return Err(CaptureError::Setting(
                "max-tokens 0: must be >= 1".to_owned(),
            ));
        }
        let rule = settings.rule;
        let message = match settings.drafts.tree() {
            None if rule.entry().verifies != Verifies::Chain => Some(format!(
                "verifier {rule} settles trees, not chains; give ⟨tree⟩, or ⟨paths⟩, or verifier \
                 token, block, carried or carried-block"
            )),
            None => None,
            Some((tree, law)) => refused(tree, law, rule),
        };
        if let Some(message) = message {
            return Err(CaptureError::Setting(message));
        }
        if let Some(model) = [&target, &draft]
            .into_iter()
            .find(|model| model.depths() > 1)
        {
            return Err(CaptureError::Setting(format!(
                "{}: its graph gives {} rows behind each token; a decoder drafts token by token, \
                     with graphs that give one (specgap capture takes such drafts)",
                model.path().display(),
                model.depths()
            )));
        }
        let vocabulary = common_vocabulary(&target, &draft, settings.vocabulary)?;
        Ok(Self {
            target,
            draft,
            codec: Arc::new(codec),
            settings,
            vocabulary,
            times: StepTimes::default(),
            carried: Carried::default(),
            carry: None,
            p: Vec::new(),
            q: Vec::new(),
            scratch: Vec::new(),
            row: Vec::new(),
        })
    }

    /// V of the laws.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The target model.
    pub fn target(&self) -> &Model {
        &self.target
    }

    /// The draft model.
    pub fn draft(&self) -> &Model {
        &self.draft
    }

    /// The tokenizer.
    pub fn codec(&self) -> &Arc<TextCodec> {
        &self.codec
    }

    /// Returns how it decodes.
    pub fn settings(&self) -> &DecodeSettings {
        &self.settings
    }

    /// The times of all steps so far.
    pub fn times(&self) -> &StepTimes {
        &self.times
    }

    /// Writes a text in rounds. Its law is the target's, whatever the draft is.
    ///
    /// `watch` is told of tokens. Stops early, between two rounds, once `interrupt` is set.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Run`] if a graph fails, [`CaptureError::Logits`] if a row holds NaN
    /// or nothing finite, [`CaptureError::Interrupted`].
    pub fn decode(
        &mut self,
        prompt: &EncodedPrompt,
        interrupt: &AtomicBool,
        watch: &mut dyn FnMut(usize),
    ) -> Result<Decoded, CaptureError> {
        let mut decoded = self.begin(prompt)?;
        let mut random = random_numbers(self.settings.seed, &prompt.id, Some(("rounds", 0)));
        let mut uniform = || random.random();
        let mut all: Vec<i64> = prompt.tokens.iter().map(|&token| token.into()).collect();
        let begun = Instant::now();
        prefill(&mut self.target, prompt, &all)?;
        prefill(&mut self.draft, prompt, &all)?;
        decoded.prompt_seconds = begun.elapsed().as_secs_f64();
        self.carried = Carried::default();
        self.carry = match self.settings.drafts {
            Shape::Chain(most) => TextCarry::of(self.settings.rule, most),
            _ => None,
        };
        let drafts = self.settings.drafts.clone();
        while !decoded.stopped && decoded.tokens.len() < self.settings.max_tokens {
            go_on(interrupt)?;
            let round = match (drafts.tree(), &drafts) {
                (Some((tree, law)), _) => {
                    let drawing = Drawing { tree, law };
                    self.tree(drawing, prompt, &mut decoded, &mut all, &mut uniform)?
                }
                (None, drafts) => {
                    let most = drafts.levels();
                    self.chain(most, prompt, &mut decoded, &mut all, &mut uniform)?
                }
            };
            decoded.seconds += round.draft_seconds + round.verify_seconds + round.other_seconds;
            watch(round.tokens);
            decoded.rounds.push(round);
        }
        self.target.clear();
        self.draft.clear();
        Ok(decoded)
    }

    /// One round behind `all`, of which both models have all but the last token, the draft
    /// perhaps one less.
    fn chain(
        &mut self,
        most: usize,
        prompt: &EncodedPrompt,
        decoded: &mut Decoded,
        all: &mut Vec<i64>,
        mut uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Round, CaptureError> {
        let begun = Instant::now();
        let start = decoded.tokens.len();
        let left = self.settings.max_tokens - start;
        let drafted = most.min(left.saturating_sub(1));
        let mut drafts: Vec<u32> = Vec::with_capacity(drafted);
        let mut round = Round {
            start,
            by_depth: vec![1; drafted],
            ..Round::default()
        };
        self.q.clear();
        while drafts.len() < drafted {
            let stepping = Instant::now();
            let new = match drafts.last() {
                None => all.get(self.draft.length()..).unwrap_or(&[]).to_vec(),
                Some(&last) => vec![i64::from(last)],
            };
            let law = self.draft_law(prompt, start + drafts.len(), &new)?;
            drafts.push(law.draw(uniform()) as u32);
            self.q.push(law);
            self.drafted_since(stepping, &mut round);
        }
        let verifying = Instant::now();
        let mut new = all.get(self.target.length()..).unwrap_or(&[]).to_vec();
        new.extend(drafts.iter().map(|&token| i64::from(token)));
        self.verify(prompt, start, &new, drafted + 1)?;
        round.verify_seconds = verifying.elapsed().as_secs_f64();
        let of_length = self.times.verify.entry(drafted + 1).or_default();
        of_length.push(round.verify_seconds);

        let settled = match self.carry.take() {
            None => settle(
                self.settings.rule,
                [&self.p, &self.q],
                &drafts,
                &mut uniform,
                &mut self.scratch,
            ),
            Some(mut carry) => {
                let accepted = carry.keep([&self.p, &self.q], &drafts, &mut uniform);
                // Behind a chain that was kept the draft runs once more, unless the next token
                // is the last: the rule goes on with its row.
                let asks = accepted == Some(most) && most + 1 < left;
                if let Some(&last) = drafts.last().filter(|_| asks) {
                    let stepping = Instant::now();
                    let law = self.draft_law(prompt, start + most, &[i64::from(last)])?;
                    self.q.push(law);
                    self.drafted_since(stepping, &mut round);
                }
                let settled = accepted.and_then(|accepted| {
                    let (p, q) = (self.p.get(accepted)?, self.q.get(accepted));
                    let token = carry.end(p, q, &mut uniform, &mut self.scratch);
                    Some(Settled { accepted, token })
                });
                self.carry = Some(carry);
                settled
            }
        };
        let settled =
            settled.ok_or_else(|| self.target.broken(&prompt.id, start, BROKEN.to_owned()))?;
        let before = all.len();
        let kept = drafts.iter().copied().take(settled.accepted);
        self.write(kept.chain([settled.token as u32]), decoded, all, &mut round);
        // What was kept of the drafts stays in the caches; the round's own token is run by
        // the next one.
        let kept = before + settled.accepted;
        for model in [&mut self.target, &mut self.draft] {
            asked(model, (prompt, start), |model| model.roll_back(kept))?;
        }
        round.other_seconds =
            begun.elapsed().as_secs_f64() - round.draft_seconds - round.verify_seconds;
        self.times.other.push(round.other_seconds);
        Ok(round)
    }

    /// The draft's law behind these tokens, which it runs behind those that it has.
    fn draft_law(
        &mut self,
        prompt: &EncodedPrompt,
        position: usize,
        new: &[i64],
    ) -> Result<Law, CaptureError> {
        let logits = feed(&mut self.draft, (prompt, position), new)?;
        let row = logits.last(0, &mut self.row);
        let mut law = Law::default();
        law.read(row, self.vocabulary, &self.settings.sampling.uncut())
            .map_err(|say| self.draft.broken(&prompt.id, position, say))?;
        Ok(law)
    }

    /// Notes a step of the draft.
    fn drafted_since(&mut self, stepping: Instant, round: &mut Round) {
        let seconds = stepping.elapsed().as_secs_f64();
        self.times.draft.push(seconds);
        round.draft_seconds += seconds;
    }

    /// Writes a round's tokens, the last of which is its own, up to one that ends the text.
    fn write(
        &self,
        tokens: impl Iterator<Item = u32>,
        decoded: &mut Decoded,
        all: &mut Vec<i64>,
        round: &mut Round,
    ) {
        let mut tokens = tokens.peekable();
        while let Some(token) = tokens.next() {
            decoded.tokens.push(token);
            all.push(i64::from(token));
            round.tokens += 1;
            round.accepted += usize::from(tokens.peek().is_some());
            decoded.stopped = self.codec.is_stop(token);
            if decoded.stopped {
                break;
            }
        }
    }

    /// One round of a tree behind `all`, of which the draft has all but the last token or less,
    /// and the target all but the last.
    fn tree(
        &mut self,
        drawing: Drawing<'_>,
        prompt: &EncodedPrompt,
        decoded: &mut Decoded,
        all: &mut Vec<i64>,
        mut uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Round, CaptureError> {
        let begun = Instant::now();
        let start = decoded.tokens.len();
        let left = self.settings.max_tokens - start;
        let levels = drawing.tree.levels().min(left.saturating_sub(1));
        let law = drawing.law;
        let rule = (self.settings.rule, law);
        let mut round = Round {
            start,
            ..Round::default()
        };
        let stepping = Instant::now();
        let nodes = self.drafted_tree((drawing, levels), prompt, start, all, uniform)?;
        for node in nodes.iter().skip(1) {
            round
                .by_depth
                .resize(round.by_depth.len().max(node.depth), 0);
            if let Some(drafted) = round.by_depth.get_mut(node.depth - 1) {
                *drafted += 1;
            }
        }
        round.draft_seconds = stepping.elapsed().as_secs_f64();

        let verifying = Instant::now();
        // Every node without children ends a path.
        let paths: Vec<usize> = nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.children.is_empty())
            .map(|(index, _)| index)
            .collect();
        let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        // A path on which each node lies.
        let mut path_of = vec![0; nodes.len()];
        let new = all.get(self.target.length()..).unwrap_or(&[]).to_vec();
        let mut ids = Vec::new();
        for (number, &path) in paths.iter().enumerate() {
            let nodes_of = ancestry(&nodes, path);
            nodes_of.iter().for_each(|&node| path_of[node] = number);
            ids.extend(&new);
            ids.extend(nodes_of.iter().map(|&node| nodes[node].token));
            // Shorter paths are filled up; nothing before sees what stands behind.
            let last = ids.last().copied().unwrap_or(0);
            ids.extend(std::iter::repeat_n(last, deepest - nodes_of.len()));
        }
        let at = (prompt, start);
        let cache = asked(&mut self.target, at, Model::take)?;
        let length = cache.length();
        let copies = vec![Stretch::whole(0, length); paths.len()];
        asked(&mut self.target, at, |model| model.branch(&cache, &copies))?;
        let logits = run_together(&mut self.target, at, &ids, paths.len())?;
        round.verify_seconds = verifying.elapsed().as_secs_f64();

        let Self {
            target: model,
            row,
            settings,
            vocabulary,
            carried,
            ..
        } = &mut *self;
        let mut known: Vec<Option<Law>> = vec![None; nodes.len()];
        let mut p = |node: usize| -> Result<Law, CaptureError> {
            if let Some(law) = &known[node] {
                return Ok(law.clone());
            }
            let depth = nodes[node].depth;
            let place = new.len() - 1 + depth;
            let logits = logits.row(path_of[node], place, row);
            let mut law = Law::default();
            law.read(logits, *vocabulary, &settings.sampling)
                .map_err(|say| model.broken(&prompt.id, start + depth, say))?;
            known[node] = Some(law.clone());
            Ok(law)
        };
        let (here, token) = settle_tree(rule, &nodes, &mut p, carried, &mut uniform)?;
        if settings.note_trees {
            let of_rules = drawing.rules().into_iter().map(|rule| {
                let ends = ends((rule, law), &nodes, &mut p)?;
                Ok((rule, ends))
            });
            let of_rules = of_rules.collect::<Result<Vec<_>, CaptureError>>()?;
            let weights = weights(&nodes, &mut p)?;
            let is_end =
                |token: i64| u32::try_from(token).is_ok_and(|token| self.codec.is_stop(token));
            round.tree = Some(noted(levels, &nodes, &weights, &of_rules, &is_end));
        }
        let kept = ancestry(&nodes, here);
        let mut kept: Vec<u32> = kept.iter().map(|&node| nodes[node].token as u32).collect();
        // The target goes on behind the path that was kept, as far as it was.
        let cache = asked(&mut self.target, at, Model::take)?;
        let path = [Stretch::whole(
            path_of[here],
            length + new.len() + kept.len(),
        )];
        asked(&mut self.target, at, |model| model.branch(&cache, &path))?;
        kept.push(token as u32);
        self.write(kept.into_iter(), decoded, all, &mut round);
        round.other_seconds =
            begun.elapsed().as_secs_f64() - round.draft_seconds - round.verify_seconds;
        Ok(round)
    }

    /// Draws a tree, level by level; the root is its first node. The draft's cache is then
    /// that of all tokens of the text.
    fn drafted_tree(
        &mut self,
        (drawing, levels): (Drawing<'_>, usize),
        prompt: &EncodedPrompt,
        start: usize,
        all: &[i64],
        mut uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Vec<Node>, CaptureError> {
        let mut nodes = vec![Node::root()];
        if levels == 0 {
            return Ok(nodes);
        }
        let uncut = self.settings.sampling.uncut();
        let at = (prompt, start);
        let new = all.get(self.draft.length()..).unwrap_or(&[]).to_vec();
        let mut logits = feed(&mut self.draft, at, &new)?;
        let text = asked(&mut self.draft, at, Model::take)?;
        // The caches of a level's nodes, one sequence each, with the nodes.
        let (mut caches, mut level): (Option<Cache>, Vec<usize>) = (None, vec![0]);
        for depth in 1..=levels {
            let mut below = Vec::new();
            for (sequence, &parent) in level.iter().enumerate() {
                let row = logits.last(sequence, &mut self.row);
                let mut q = Law::default();
                q.read(row, self.vocabulary, &uncut)
                    .map_err(|say| self.draft.broken(&prompt.id, start + depth - 1, say))?;
                let place = (&nodes[parent], room(&nodes));
                let drawn = drawing.below(place, &q, &mut uniform, &mut self.scratch);
                nodes[parent].law = (!drawn.is_empty()).then_some(q);
                for node in drawn {
                    let index = nodes.len();
                    nodes[parent].children.push(index);
                    if drawing.goes_on(&node) {
                        below.push((sequence, index));
                    }
                    nodes.push(Node { parent, ..node });
                }
            }
            if below.is_empty() {
                break;
            }
            if depth < levels {
                let from = caches.as_ref().unwrap_or(&text);
                let copies: Vec<_> = below
                    .iter()
                    .map(|&(sequence, _)| Stretch::whole(sequence, from.length()))
                    .collect();
                asked(&mut self.draft, at, |model| model.branch(from, &copies))?;
                let ids: Vec<i64> = below.iter().map(|&(_, node)| nodes[node].token).collect();
                logits = run_together(&mut self.draft, at, &ids, below.len())?;
                caches = Some(asked(&mut self.draft, at, Model::take)?);
            }
            level = below.into_iter().map(|(_, node)| node).collect();
        }
        self.draft.put(text);
        Ok(nodes)
    }

    /// Runs the target and takes the laws behind its last `laws` tokens.
    fn verify(
        &mut self,
        prompt: &EncodedPrompt,
        start: usize,
        new: &[i64],
        laws: usize,
    ) -> Result<(), CaptureError> {
        let logits = feed(&mut self.target, (prompt, start), new)?;
        self.p.resize_with(laws, Law::default);
        let first = new.len().saturating_sub(laws);
        for (place, law) in self.p.iter_mut().enumerate() {
            let row = logits.row(0, first + place, &mut self.row);
            law.read(row, self.vocabulary, &self.settings.sampling)
                .map_err(|say| self.target.broken(&prompt.id, start + place, say))?;
        }
        Ok(())
    }

    /// Lets the target write alone, a token a step: the text that a capture with the same
    /// seed logs. Times of its steps are kept.
    ///
    /// With `passes`, the target is then run over 1, 2, ... tokens of the text, from its
    /// middle, which is rolled back each time; `passes` rounds of all lengths up to K + 1.
    /// The first of them is not counted.
    ///
    /// # Errors
    ///
    /// As [`Self::decode`].
    pub fn alone(
        &mut self,
        prompt: &EncodedPrompt,
        passes: usize,
        interrupt: &AtomicBool,
        watch: &mut dyn FnMut(usize),
    ) -> Result<Decoded, CaptureError> {
        let mut decoded = self.begin(prompt)?;
        let mut sampler = Sampler::new(self.settings.seed, &prompt.id);
        let mut all: Vec<i64> = prompt.tokens.iter().map(|&token| token.into()).collect();
        let begun = Instant::now();
        prefill(&mut self.target, prompt, &all)?;
        decoded.prompt_seconds = begun.elapsed().as_secs_f64();
        while !decoded.stopped && decoded.tokens.len() < self.settings.max_tokens {
            go_on(interrupt)?;
            let stepping = Instant::now();
            let position = decoded.tokens.len();
            let new = all.get(self.target.length()..).unwrap_or(&[]).to_vec();
            let logits = feed(&mut self.target, (prompt, position), &new)?;
            let broken = |say| self.target.broken(&prompt.id, position, say);
            let row = cut(logits.last(0, &mut self.row), self.vocabulary).map_err(broken)?;
            let token = sampler
                .draw(row, &self.settings.sampling)
                .ok_or_else(|| broken(BROKEN.to_owned()))? as u32;
            decoded.tokens.push(token);
            all.push(i64::from(token));
            decoded.stopped = self.codec.is_stop(token);
            let seconds = stepping.elapsed().as_secs_f64();
            self.times.target_alone.push(seconds);
            decoded.seconds += seconds;
            watch(1);
        }
        if passes > 0 {
            self.time_passes(prompt, &all, decoded.tokens.len(), passes, interrupt)?;
        }
        self.target.clear();
        Ok(decoded)
    }

    /// The laws of both models along a text that it wrote: `see` is told each position of the
    /// text, with p, the law that its token was drawn from, and q.
    ///
    /// Both models run over prompt and text, some tokens at a time.
    ///
    /// # Errors
    ///
    /// As [`Self::decode`]; also what `see` says, as [`CaptureError::Logits`].
    pub fn laws_along(
        &mut self,
        prompt: &EncodedPrompt,
        text: &[u32],
        interrupt: &AtomicBool,
        see: &mut dyn FnMut(usize, &Law, &Law) -> Result<(), String>,
    ) -> Result<(), CaptureError> {
        self.begin(prompt)?;
        let all: Vec<i64> = prompt
            .tokens
            .iter()
            .chain(text)
            .map(|&t| t.into())
            .collect();
        let before = &all[..prompt.tokens.len()];
        prefill(&mut self.target, prompt, before)?;
        prefill(&mut self.draft, prompt, before)?;
        let piece = (PREFILL_LOGITS / self.vocabulary.max(1)).clamp(1, 64);
        let uncut = self.settings.sampling.uncut();
        let (mut p, mut q) = (Law::default(), Law::default());
        // The first is the prompt's last token, the last is the text's last but one.
        let first = before.len().saturating_sub(1);
        let fed = all.get(first..first + text.len()).unwrap_or(&[]);
        for (number, tokens) in fed.chunks(piece).enumerate() {
            go_on(interrupt)?;
            let begin = number * piece;
            let target = feed(&mut self.target, (prompt, begin), tokens)?;
            let draft = feed(&mut self.draft, (prompt, begin), tokens)?;
            for place in 0..tokens.len() {
                let position = begin + place;
                let wrong = |model: &Model, say| model.broken(&prompt.id, position, say);
                let row = target.row(0, place, &mut self.row);
                p.read(row, self.vocabulary, &self.settings.sampling)
                    .map_err(|say| wrong(&self.target, say))?;
                let row = draft.row(0, place, &mut self.row);
                q.read(row, self.vocabulary, &uncut)
                    .map_err(|say| wrong(&self.draft, say))?;
                see(position, &p, &q).map_err(|say| wrong(&self.target, say))?;
            }
        }
        self.target.clear();
        self.draft.clear();
        Ok(())
    }

    fn time_passes(
        &mut self,
        prompt: &EncodedPrompt,
        all: &[i64],
        text: usize,
        passes: usize,
        interrupt: &AtomicBool,
    ) -> Result<(), CaptureError> {
        let middle = all.len() - text + text / 2;
        // The caches hold all but the last token.
        let middle = middle.min(all.len().saturating_sub(1));
        for pass in 0..=passes {
            let longest = match &self.settings.drafts {
                Shape::Chain(drafts) => drafts + 1,
                // Its paths side by side are no pass over so many tokens.
                _ => 1,
            };
            for tokens in lengths(longest) {
                go_on(interrupt)?;
                let Some(new) = all.get(middle..middle + tokens) else {
                    continue;
                };
                asked(&mut self.target, (prompt, 0), |model| {
                    model.roll_back(middle)
                })?;
                let verifying = Instant::now();
                self.verify(prompt, 0, new, tokens)?;
                let seconds = verifying.elapsed().as_secs_f64();
                if pass > 0 {
                    self.times.verify.entry(tokens).or_default().push(seconds);
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, prompt: &EncodedPrompt) -> Result<Decoded, CaptureError> {
        for model in [&mut self.target, &mut self.draft] {
            asked(model, (prompt, 0), |model| model.start(1))?;
        }
        Ok(Decoded {
            prompt: prompt.index,
            id: prompt.id.clone(),
            prompt_tokens: prompt.tokens.len(),
            ..Decoded::default()
        })
    }
}

/// Returns what is noted of a tree: nothing counts behind a token that ends the text.
fn noted(
    levels: usize,
    nodes: &[Node],
    weights: &[f64],
    ends: &[(RuleName, Vec<f64>)],
    is_end: &dyn Fn(i64) -> bool,
) -> DrawnTree {
    // The number of each node among those that count, and how deep it is; of the others, those
    // of the last that does before it.
    let (mut numbers, mut depths) = (vec![0; nodes.len()], vec![0usize; nodes.len()]);
    let mut noted = DrawnTree {
        levels,
        parents: vec![0],
        weights: vec![1.0],
        expected: Vec::new(),
    };
    for (index, node) in nodes.iter().enumerate().skip(1) {
        let parent = node.parent;
        let counts = depths[parent] == nodes[parent].depth;
        if counts && (parent == 0 || !is_end(nodes[parent].token)) {
            numbers[index] = noted.parents.len();
            depths[index] = node.depth;
            noted.parents.push(numbers[parent]);
            noted.weights.push(weights[index]);
        } else {
            numbers[index] = numbers[parent];
            depths[index] = depths[parent];
        }
    }
    let expected = ends.iter().map(|(rule, ends)| {
        let each = ends.iter().zip(&depths);
        (
            *rule,
            each.map(|(chance, &depth)| chance * depth as f64).sum(),
        )
    });
    noted.expected = expected.collect();
    noted
}

/// Lengths that are timed: all up to 16, then doubling, and the longest.
fn lengths(longest: usize) -> impl Iterator<Item = usize> {
    let doubling = std::iter::successors(Some(32usize), |length| length.checked_mul(2));
    (1..=longest.min(16))
        .chain(doubling.take_while(move |&length| length < longest))
        .chain((longest > 16).then_some(longest))
}

/// Runs a prompt but for its last token, which the first round runs.
fn prefill(model: &mut Model, prompt: &EncodedPrompt, tokens: &[i64]) -> Result<(), CaptureError> {
    let piece = (PREFILL_LOGITS / model.vocabulary().max(1)).max(1);
    let before = tokens.len().saturating_sub(1);
    for tokens in tokens.get(..before).unwrap_or(&[]).chunks(piece) {
        feed(model, (prompt, 0), tokens)?;
    }
    Ok(())
}

/// A prompt, and a position of its text: where a model is asked something.
type At<'a> = (&'a EncodedPrompt, usize);

/// Runs tokens of the one sequence behind those in the cache.
fn feed(model: &mut Model, at: At<'_>, tokens: &[i64]) -> Result<Logits, CaptureError> {
    run_together(model, at, tokens, 1)
}

/// Runs as many tokens of each sequence behind those in the cache, none of them padded.
fn run_together(
    model: &mut Model,
    at: At<'_>,
    ids: &[i64],
    sequences: usize,
) -> Result<Logits, CaptureError> {
    let begin = model.length();
    let end = begin + ids.len() / sequences.max(1);
    let positions = (begin..end).map(|position| position as i64);
    let positions: Vec<i64> = std::iter::repeat_n(positions, sequences)
        .flatten()
        .collect();
    asked(model, at, |model| {
        model.run(ids, &vec![1; end * sequences], &positions)
    })
}

/// Returns what a model gives, or that it failed.
fn asked<T>(
    model: &mut Model,
    (prompt, position): At<'_>,
    ask: impl FnOnce(&mut Model) -> Result<T, String>,
) -> Result<T, CaptureError> {
    ask(model).map_err(|say| model.failed([&prompt.id, &prompt.id], position, say))
}
