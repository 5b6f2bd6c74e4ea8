//! A live speculative decoder: one prompt at a time, one chain of drafts a round.
//!
//! Both models keep their caches over the rounds. After a round that kept tau of K drafts,
//! columns of the others are rolled back. Wall-clock times of every part are kept, so that
//! what is predicted of a round can be held against one.

use super::model::{Logits, Model, common_vocabulary};
use super::rollouts::cut;
use super::rounds::{Rule, settle};
use super::sampling::{Law, Sampler, Sampling, random_numbers};
use super::tokens::{EncodedPrompt, TextCodec};
use super::{BROKEN, CaptureError};
use rand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// 256 MiB in f32.
const PREFILL_LOGITS: usize = 1 << 26;

/// How to decode.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeSettings {
    /// The law of the text, p. The draft's law q has its temperature and is not cut.
    pub sampling: Sampling,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Most tokens a prompt, at least 1.
    pub max_tokens: usize,
    /// K: drafts a round. A round with `left` tokens to go has at most `left` - 1: its own
    /// token is the last.
    pub drafts: usize,
    /// Which drafts are kept.
    pub rule: Rule,
    /// Keep only the first N logits of a row.
    pub vocabulary: Option<usize>,
}

/// One round: one run of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Round {
    /// Tokens of the text before it.
    pub start: usize,
    /// Tokens that the draft drew.
    pub drafted: usize,
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
    /// draw, which is the smaller of a round's drafts and the tokens to go less 1.
    pub fn drafts_in_text(&self) -> usize {
        let drafts = self.rounds.iter().map(|round| {
            let left = self.tokens.len().saturating_sub(round.start);
            round.drafted.min(left.saturating_sub(1))
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
    /// [`DecodeSettings::vocabulary`]; [`CaptureError::Setting`] for a length of 0.
    pub fn new(
        target: Model,
        draft: Model,
        codec: TextCodec,
        settings: DecodeSettings,
    ) -> Result<Self, CaptureError> {
        if settings.max_tokens == 0 {
            return Err(CaptureError::Setting {
                message: "max-tokens 0: must be >= 1".to_owned(),
            });
        }
        let vocabulary = common_vocabulary(&target, &draft, settings.vocabulary)?;
        Ok(Self {
            target,
            draft,
            codec: Arc::new(codec),
            settings,
            vocabulary,
            times: StepTimes::default(),
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

    /// How it decodes.
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
        prefill(&mut self.target, &all).map_err(|say| failed(&self.target, prompt, 0, say))?;
        prefill(&mut self.draft, &all).map_err(|say| failed(&self.draft, prompt, 0, say))?;
        decoded.prompt_seconds = begun.elapsed().as_secs_f64();
        while !decoded.stopped && decoded.tokens.len() < self.settings.max_tokens {
            if interrupt.load(Ordering::Relaxed) {
                return Err(CaptureError::Interrupted);
            }
            let round = self.round(prompt, &mut decoded, &mut all, &mut uniform)?;
            decoded.seconds += round.draft_seconds + round.verify_seconds + round.other_seconds;
            decoded.rounds.push(round);
            watch(round.tokens);
        }
        self.target.clear();
        self.draft.clear();
        Ok(decoded)
    }

    /// One round behind `all`, of which both models have all but the last token, the draft
    /// perhaps one less.
    fn round(
        &mut self,
        prompt: &EncodedPrompt,
        decoded: &mut Decoded,
        all: &mut Vec<i64>,
        uniform: &mut dyn FnMut() -> f64,
    ) -> Result<Round, CaptureError> {
        let begun = Instant::now();
        let start = decoded.tokens.len();
        let left = self.settings.max_tokens - start;
        let drafted = self.settings.drafts.min(left.saturating_sub(1));
        let uncut = self.settings.sampling.uncut();
        let mut drafts: Vec<u32> = Vec::with_capacity(drafted);
        let mut round = Round {
            start,
            drafted,
            ..Round::default()
        };
        self.q.resize_with(drafted, Law::default);
        for law in &mut self.q {
            let stepping = Instant::now();
            let new = match drafts.last() {
                None => all.get(self.draft.length()..).unwrap_or(&[]).to_vec(),
                Some(&last) => vec![i64::from(last)],
            };
            let logits = feed(&mut self.draft, &new)
                .map_err(|say| failed(&self.draft, prompt, start, say))?;
            let broken = |say| broken(&self.draft, prompt, start + drafts.len(), say);
            let row = cut(logits.last(0, &mut self.row), self.vocabulary).map_err(broken)?;
            law.set(row, &uncut)
                .ok_or_else(|| broken(BROKEN.to_owned()))?;
            drafts.push(law.draw(uniform()) as u32);
            let seconds = stepping.elapsed().as_secs_f64();
            self.times.draft.push(seconds);
            round.draft_seconds += seconds;
        }
        let verifying = Instant::now();
        let mut new = all.get(self.target.length()..).unwrap_or(&[]).to_vec();
        new.extend(drafts.iter().map(|&token| i64::from(token)));
        self.verify(prompt, start, &new, drafted + 1)?;
        round.verify_seconds = verifying.elapsed().as_secs_f64();
        let of_length = self.times.verify.entry(drafted + 1).or_default();
        of_length.push(round.verify_seconds);

        let laws = [&self.p[..], &self.q];
        let settled = settle(
            self.settings.rule,
            laws,
            &drafts,
            uniform,
            &mut self.scratch,
        )
        .ok_or_else(|| broken(&self.target, prompt, start, BROKEN.to_owned()))?;
        let before = all.len();
        let kept = drafts.iter().copied().take(settled.accepted);
        for token in kept.chain([settled.token as u32]) {
            decoded.tokens.push(token);
            all.push(i64::from(token));
            round.tokens += 1;
            decoded.stopped = self.codec.is_stop(token);
            if decoded.stopped {
                break;
            }
        }
        round.accepted = settled.accepted.min(round.tokens);
        // What was kept of the drafts stays in the caches; the round's own token is run by
        // the next one.
        let kept = before + settled.accepted;
        (self.target.roll_back(kept)).map_err(|say| failed(&self.target, prompt, start, say))?;
        (self.draft.roll_back(kept)).map_err(|say| failed(&self.draft, prompt, start, say))?;
        round.other_seconds =
            begun.elapsed().as_secs_f64() - round.draft_seconds - round.verify_seconds;
        self.times.other.push(round.other_seconds);
        Ok(round)
    }

    /// Runs the target and takes the laws behind its last `laws` tokens.
    fn verify(
        &mut self,
        prompt: &EncodedPrompt,
        start: usize,
        new: &[i64],
        laws: usize,
    ) -> Result<(), CaptureError> {
        let logits =
            feed(&mut self.target, new).map_err(|say| failed(&self.target, prompt, start, say))?;
        self.p.resize_with(laws, Law::default);
        let first = new.len().saturating_sub(laws);
        for (place, law) in self.p.iter_mut().enumerate() {
            let broken = |say| broken(&self.target, prompt, start + place, say);
            let row = cut(logits.row(0, first + place, &mut self.row), self.vocabulary)
                .map_err(broken)?;
            law.set(row, &self.settings.sampling)
                .ok_or_else(|| broken(BROKEN.to_owned()))?;
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
        prefill(&mut self.target, &all).map_err(|say| failed(&self.target, prompt, 0, say))?;
        decoded.prompt_seconds = begun.elapsed().as_secs_f64();
        while !decoded.stopped && decoded.tokens.len() < self.settings.max_tokens {
            if interrupt.load(Ordering::Relaxed) {
                return Err(CaptureError::Interrupted);
            }
            let stepping = Instant::now();
            let position = decoded.tokens.len();
            let new = all.get(self.target.length()..).unwrap_or(&[]).to_vec();
            let logits = feed(&mut self.target, &new)
                .map_err(|say| failed(&self.target, prompt, position, say))?;
            let broken = |say| broken(&self.target, prompt, position, say);
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
            for tokens in lengths(self.settings.drafts + 1) {
                if interrupt.load(Ordering::Relaxed) {
                    return Err(CaptureError::Interrupted);
                }
                let Some(new) = all.get(middle..middle + tokens) else {
                    continue;
                };
                (self.target.roll_back(middle))
                    .map_err(|say| failed(&self.target, prompt, 0, say))?;
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
            model
                .start(1)
                .map_err(|say| failed(model, prompt, 0, say))?;
        }
        Ok(Decoded {
            prompt: prompt.index,
            id: prompt.id.clone(),
            prompt_tokens: prompt.tokens.len(),
            ..Decoded::default()
        })
    }
}

/// Lengths that are timed: all up to 16, then doubling, and the longest.
fn lengths(longest: usize) -> impl Iterator<Item = usize> {
    let doubling = std::iter::successors(Some(32usize), |length| length.checked_mul(2));
    (1..=longest.min(16))
        .chain(doubling.take_while(move |&length| length < longest))
        .chain((longest > 16).then_some(longest))
}

/// Runs a prompt but for its last token, which the first round runs.
fn prefill(model: &mut Model, prompt: &[i64]) -> Result<(), String> {
    let piece = (PREFILL_LOGITS / model.vocabulary().max(1)).max(1);
    let before = prompt.len().saturating_sub(1);
    for tokens in prompt.get(..before).unwrap_or(&[]).chunks(piece) {
        feed(model, tokens)?;
    }
    Ok(())
}

/// Runs tokens of the one sequence behind those in the cache.
fn feed(model: &mut Model, tokens: &[i64]) -> Result<Logits, String> {
    let begin = model.length();
    let end = begin + tokens.len();
    let positions: Vec<i64> = (begin..end).map(|position| position as i64).collect();
    model.run(tokens, &vec![1; end], &positions)
}

fn failed(model: &Model, prompt: &EncodedPrompt, position: usize, message: String) -> CaptureError {
    CaptureError::Run {
        path: model.path().to_owned(),
        first: prompt.id.clone(),
        last: prompt.id.clone(),
        position,
        message,
    }
}

fn broken(model: &Model, prompt: &EncodedPrompt, position: usize, message: String) -> CaptureError {
    CaptureError::Logits {
        path: model.path().to_owned(),
        id: prompt.id.clone(),
        position,
        message,
    }
}
