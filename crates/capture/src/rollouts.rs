//! Rollouts: the draft writes on its own behind some prefixes of a text.
//!
//! Where they start is a systematic sample of each prompt's positions: every M-th, the
//! first one drawn evenly from 0..M, so that each position is included with probability
//! 1/M. Their prefixes are read off the caches that the text left, so that no prefix is
//! run again; many rollouts run together, of whatever prompts and lengths.

use super::CaptureError;
use super::model::{Cache, Logits, Model, Stretch};
use super::sampling::{Law, Sampling, random_numbers};
use super::tokens::EncodedPrompt;
use rand::Rng;
use std::ops::Range;

/// Which rollouts a capture draws: at some positions one, or several that are independent
/// of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutPlan {
    /// K: tokens of each, at least 1.
    pub tokens: usize,
    /// M: one starts at every M-th position of a prompt, at least 1.
    pub every: usize,
    /// How many start at such a position, at least 1: draft paths, i.i.d. from q. The first
    /// of them is the one that there would be alone.
    pub paths: usize,
    /// Whether the target is run over them.
    pub target: bool,
}

impl RolloutPlan {
    /// The positions of a prompt's text at which rollouts start: o, o + M, o + 2M and so
    /// on below `length`, o being drawn evenly from 0..M by the seed and the prompt's id.
    ///
    /// # Example
    ///
    /// ```
    /// use specgap_capture::RolloutPlan;
    ///
    /// let plan = RolloutPlan { tokens: 4, every: 3, paths: 1, target: false };
    /// let starts: Vec<usize> = plan.starts(7, "first prompt", 9).collect();
    /// assert_eq!(starts.len(), 3);
    /// assert!(starts[0] < 3 && starts[1] == starts[0] + 3);
    /// ```
    pub fn starts(
        &self,
        seed: u64,
        prompt_id: &str,
        length: usize,
    ) -> impl Iterator<Item = usize> + use<> {
        let every = self.every.max(1);
        let first =
            random_numbers(seed, prompt_id, Some(("starts of rollouts", 0))).random_range(0..every);
        (first..length).step_by(every)
    }

    /// The most rollouts that a text of so many tokens has.
    pub(super) fn most(&self, length: usize) -> usize {
        length
            .div_ceil(self.every.max(1))
            .saturating_mul(self.paths)
    }
}

/// A rollout as it was drawn. Each list has an entry a token; q and p are the laws of the
/// draft and the target, given the prefix and the tokens of the rollout before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnRollout {
    /// The prompt's number in its file, from 0.
    pub prompt: usize,
    /// Tokens of the text before it, from 0.
    pub position: usize,
    /// The tokens, drawn from q.
    pub tokens: Vec<u32>,
    /// q(token): softmax of the draft's logits at the temperature, nothing cut.
    pub q: Vec<f64>,
    /// The token with the largest q.
    pub argmax: Vec<u32>,
    /// The largest q.
    pub top1: Vec<f64>,
    /// -sum q ln q.
    pub entropy: Vec<f64>,
    /// The largest q less the second largest.
    pub margin: Vec<f64>,
    /// p(token), p being the law that the text is drawn from; empty without the target.
    pub target_p: Vec<f64>,
    /// Sum of min(p, q); empty without the target.
    pub overlap: Vec<f64>,
    /// The acceptance of the token that a head predicts once the draft has read it; empty
    /// without the head.
    pub head_acceptance: Vec<f64>,
    /// The overlap that a head predicts before the token is drawn; empty without the head.
    pub head_overlap: Vec<f64>,
}

/// One prompt's text, behind whose prefixes rollouts start.
pub(super) struct Text<'a> {
    pub prompt: &'a EncodedPrompt,
    pub tokens: &'a [u32],
}

/// What rollouts of a batch are drawn with.
pub(super) struct Rolling<'a> {
    pub plan: RolloutPlan,
    /// The law of the text.
    pub sampling: Sampling,
    pub seed: u64,
    pub vocabulary: usize,
    pub texts: &'a [Text<'a>],
    /// The column behind the prompts, in the caches of both models.
    pub padded: usize,
    /// The most rollouts that run together.
    pub together: usize,
    pub check: &'a dyn Fn() -> Result<(), CaptureError>,
}

/// Where a rollout starts.
struct Start<'a> {
    text: &'a Text<'a>,
    sequence: usize,
    position: usize,
    /// Which of the paths of its position, from 0.
    path: usize,
}

impl Start<'_> {
    /// Tokens of the prefix that are in the cache: all but the last.
    fn cached(&self) -> usize {
        self.text.prompt.tokens.len() + self.position - 1
    }

    /// The last token of the prefix.
    fn last(&self) -> i64 {
        let before = self.position.checked_sub(1);
        before
            .and_then(|before| self.text.tokens.get(before))
            .or(self.text.prompt.tokens.last())
            .map_or(0, |&token| i64::from(token))
    }

    fn stretch(&self, padded: usize) -> Stretch {
        let begin = padded - self.text.prompt.tokens.len();
        Stretch {
            sequence: self.sequence,
            columns: begin..begin + self.cached(),
        }
    }
}

impl Rolling<'_> {
    /// Draws all rollouts behind the texts that are in the models' caches, in order of
    /// position, then prompt. The caches are gone afterwards.
    ///
    /// `seconds` are those in the target's and in the draft's graph.
    pub(super) fn run(
        &self,
        [target, draft]: [&mut Model; 2],
        [of_target, of_draft]: [&mut f64; 2],
        each: &mut dyn FnMut(&DrawnRollout) -> Result<(), CaptureError>,
    ) -> Result<(), CaptureError> {
        let mut starts: Vec<_> = self
            .texts
            .iter()
            .enumerate()
            .flat_map(|(sequence, text)| {
                let (id, length) = (&text.prompt.id, text.tokens.len());
                let starts = self.plan.starts(self.seed, id, length);
                starts.flat_map(move |position| {
                    (0..self.plan.paths).map(move |path| Start {
                        text,
                        sequence,
                        position,
                        path,
                    })
                })
            })
            .collect();
        // Prefixes of much the same length need little padding.
        starts.sort_by_key(|start| (start.position, start.sequence, start.path));
        let cache = draft
            .take()
            .map_err(|message| self.failed(draft, &starts, message))?;
        let targets = if self.plan.target {
            let taken = target.take();
            Some(taken.map_err(|message| self.failed(target, &starts, message))?)
        } else {
            None
        };
        for group in starts.chunks(self.together.max(1)) {
            let mut rows = Vec::new();
            let kept = targets.is_some().then_some(&mut rows);
            let mut rollouts = self.drafted(draft, &cache, group, kept, of_draft)?;
            if let Some(targets) = &targets {
                self.judge(target, targets, group, &rows, &mut rollouts, of_target)?;
            }
            for rollout in &rollouts {
                each(rollout)?;
            }
        }
        Ok(())
    }

    /// Draws the rollouts of a group; `kept` takes the draft's logits, rollout by rollout
    /// within each step.
    fn drafted(
        &self,
        draft: &mut Model,
        cache: &Cache,
        group: &[Start<'_>],
        mut kept: Option<&mut Vec<f32>>,
        seconds: &mut f64,
    ) -> Result<Vec<DrawnRollout>, CaptureError> {
        let law_of_drafts = self.sampling.uncut();
        let longest = self.branch(draft, cache, group)?;
        let mut rollouts: Vec<_> = group
            .iter()
            .map(|start| DrawnRollout {
                prompt: start.text.prompt.index,
                position: start.position,
                ..DrawnRollout::default()
            })
            .collect();
        let mut random: Vec<_> = group
            .iter()
            .map(|start| {
                let purpose = match start.path {
                    0 => "rollout".to_owned(),
                    path => format!("rollout, path {path}"),
                };
                let place = (purpose.as_str(), start.position as u64);
                random_numbers(self.seed, &start.text.prompt.id, Some(place))
            })
            .collect();
        let mut ids: Vec<i64> = group.iter().map(Start::last).collect();
        let (mut law, mut scratch) = (Law::default(), Vec::new());
        // What a head says of the last token is known once that is read.
        let more = usize::from(draft.heads().acceptance);
        for step in 0..self.plan.tokens + more {
            (self.check)()?;
            let logits = self.forward(draft, group, longest, step..step + 1, &ids, seconds)?;
            for (place, rollout) in rollouts.iter_mut().enumerate() {
                let Some(start) = group.get(place) else {
                    continue;
                };
                let broken = |message| self.broken(draft, start, step, message);
                if step > 0 {
                    let accepted = logits.acceptance(place).map_err(broken)?;
                    rollout.head_acceptance.extend(accepted);
                }
                if step == self.plan.tokens {
                    continue;
                }
                let predicted = logits.overlap(place).map_err(broken)?;
                rollout.head_overlap.extend(predicted);
                let row = logits.last(place, &mut scratch);
                let row = law.read(row, self.vocabulary, &law_of_drafts);
                let row = row.map_err(broken)?;
                if let Some(kept) = &mut kept {
                    kept.extend(row);
                }
                let u = random.get_mut(place).map_or(0.0, Rng::random);
                let token = law.draw(u);
                let seen = law.features();
                rollout.tokens.push(token as u32);
                rollout.q.push(law.probability(token));
                rollout.argmax.push(law.likeliest() as u32);
                rollout.top1.push(seen.top1);
                rollout.entropy.push(seen.entropy);
                rollout.margin.push(seen.margin);
                if let Some(id) = ids.get_mut(place) {
                    *id = token as i64;
                }
            }
        }
        draft.clear();
        Ok(rollouts)
    }

    /// Runs the target over the rollouts of a group. `rows` are the draft's logits.
    fn judge(
        &self,
        target: &mut Model,
        cache: &Cache,
        group: &[Start<'_>],
        rows: &[f32],
        rollouts: &mut [DrawnRollout],
        seconds: &mut f64,
    ) -> Result<(), CaptureError> {
        (self.check)()?;
        let law_of_drafts = self.sampling.uncut();
        let longest = self.branch(target, cache, group)?;
        let k = self.plan.tokens;
        let ids: Vec<i64> = group
            .iter()
            .zip(&*rollouts)
            .flat_map(|(start, rollout)| {
                // The last token has nothing behind it that is asked for.
                let drafted = rollout.tokens.iter().map(|&token| i64::from(token));
                std::iter::once(start.last()).chain(drafted).take(k)
            })
            .collect();
        let logits = self.forward(target, group, longest, 0..k, &ids, seconds)?;
        let (mut p, mut q, mut scratch) = (Law::default(), Law::default(), Vec::new());
        for (place, (start, rollout)) in group.iter().zip(rollouts).enumerate() {
            for step in 0..k {
                let broken = |message| self.broken(target, start, step, message);
                let row = logits.row(place, step, &mut scratch);
                p.read(row, self.vocabulary, &self.sampling)
                    .map_err(broken)?;
                let begin = (step * group.len() + place) * self.vocabulary;
                let drafted = rows.get(begin..begin + self.vocabulary).unwrap_or(&[]);
                q.set(drafted, &law_of_drafts)
                    .ok_or_else(|| broken("lacks the draft's".to_owned()))?;
                let token = rollout.tokens.get(step).map_or(0, |&token| token as usize);
                rollout.target_p.push(p.probability(token));
                let overlap: f64 = p
                    .probabilities()
                    .zip(q.probabilities())
                    .map(|(p, q)| p.min(q))
                    .sum();
                // Rounding may leave a sum of 1 + 1e-16.
                rollout.overlap.push(overlap.min(1.0));
            }
        }
        target.clear();
        Ok(())
    }

    /// Puts the prefixes of a group, less their last tokens, into a model's cache; the
    /// columns of the longest.
    fn branch(
        &self,
        model: &mut Model,
        cache: &Cache,
        group: &[Start<'_>],
    ) -> Result<usize, CaptureError> {
        let stretches: Vec<_> = group
            .iter()
            .map(|start| start.stretch(self.padded))
            .collect();
        model
            .branch(cache, &stretches)
            .map_err(|message| self.failed(model, group, message))?;
        Ok(model.length())
    }

    /// Runs the tokens of some steps of a group: its last prefix tokens are step 0.
    fn forward(
        &self,
        model: &mut Model,
        group: &[Start<'_>],
        longest: usize,
        steps: Range<usize>,
        ids: &[i64],
        seconds: &mut f64,
    ) -> Result<Logits, CaptureError> {
        let (mut mask, mut positions) = (Vec::new(), Vec::new());
        for start in group {
            let padding = longest - start.cached().min(longest);
            mask.extend((0..longest + steps.end).map(|column| i64::from(column >= padding)));
            positions.extend(steps.clone().map(|step| (start.cached() + step) as i64));
        }
        model
            .run_timed(ids, &mask, &positions, seconds)
            .map_err(|message| self.failed(model, group, message))
    }

    fn failed(&self, model: &Model, group: &[Start<'_>], message: String) -> CaptureError {
        let ends = [group.first(), group.last()];
        let ids = ends.map(|start| start.map_or("", |start| &start.text.prompt.id));
        let position = group.first().map_or(0, |start| start.position);
        let message = format!(
            "in rollouts of {} tokens, which go that far behind the text: {message}",
            self.plan.tokens
        );
        model.failed(ids, position, message)
    }

    fn broken(
        &self,
        model: &Model,
        start: &Start<'_>,
        step: usize,
        message: String,
    ) -> CaptureError {
        let message = format!("after {step} tokens of a rollout {message}");
        model.broken(&start.text.prompt.id, start.position, message)
    }
}
