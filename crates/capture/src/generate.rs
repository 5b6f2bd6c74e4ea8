//! The loop: the target writes, the draft is asked about the same prefixes.

use super::model::{Logits, Model, common_vocabulary, cut};
use super::rollouts::{DrawnRollout, Rolling, RolloutPlan, Text};
use super::sampling::{Sampler, Sampling, is_law};
use super::tokens::{EncodedPrompt, TextCodec};
use super::{BROKEN, CaptureError, PREFILL_LOGITS, go_on};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How to generate. Everything but [`Self::batch`] decides what is generated; the
/// batch can change logits in their last digits, as the runtime orders sums by
/// shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The law of the next token.
    pub sampling: Sampling,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Most tokens to generate a prompt, at least 1.
    pub max_tokens: usize,
    /// Prompts that run together, at least 1. Prompts are batched in the order of
    /// the file, so that a batch is the same on every run.
    pub batch: usize,
    /// Keep only the first N logits of a row: needed where V differs between the
    /// models by padding.
    pub vocabulary: Option<usize>,
    /// What the draft writes on its own from some positions, if anything.
    pub rollouts: Option<RolloutPlan>,
}

impl Settings {
    /// Tells whether so many drafts can be asked together.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Setting`] if there are rollouts, which are one draft's.
    pub fn admit_drafts(&self, drafts: usize) -> Result<(), CaptureError> {
        if self.rollouts.is_none() || drafts < 2 {
            return Ok(());
        }
        Err(CaptureError::Setting(format!(
            "⟨rollouts⟩ are of one draft, and {drafts} were given: capture the drafts one by \
                 one; with the same ⟨seed⟩ the text is the same"
        )))
    }

    /// The most tokens that so many prompts write, those of rollouts included.
    pub fn most_tokens(&self, prompts: usize) -> usize {
        let of_rollouts = self.rollouts.map_or(0, |plan| {
            plan.most(self.max_tokens).saturating_mul(plan.tokens)
        });
        prompts.saturating_mul(self.max_tokens.saturating_add(of_rollouts))
    }
}

/// One position: the prefix is the prompt and the tokens generated before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// The prompt's number in its file, from 0.
    pub prompt: usize,
    /// Tokens generated before, from 0.
    pub position: usize,
    /// The token that was drawn from the target here.
    pub token: u32,
    /// The target's logits, V numbers, at temperature 1.
    pub target: &'a [f32],
    /// The draft's logits after the same prefix, V numbers, at temperature 1; of a draft that writes
    /// K tokens at once K V, depth by depth.
    pub draft: &'a [f32],
    /// The acceptance of `token` that a head of the draft predicts once the draft has read
    /// it: none without the head, and none of a text's last token, which it does not read.
    pub head_acceptance: Option<f64>,
    /// Sum of min(p, q) here, as a head of the draft predicts it from the prefix.
    pub head_overlap: Option<f64>,
    /// What the other drafts say here, in the order of [`Capture::with_drafts`].
    pub others: &'a [OtherDraft<'a>],
}

/// What one more draft says at a position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherDraft<'a> {
    /// Its logits after the same prefix, V numbers, at temperature 1.
    pub draft: &'a [f32],
    /// The acceptance of the token that its head predicts, where it has one:
    /// [`Row::head_acceptance`].
    pub head_acceptance: Option<f64>,
    /// The overlap that its head predicts from the prefix, where it has one:
    /// [`Row::head_overlap`].
    pub head_overlap: Option<f64>,
}

/// A finished prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// The prompt's number in its file, from 0.
    pub prompt: usize,
    /// The prompt's name.
    pub id: String,
    /// Tokens of the prompt, template included.
    pub prompt_tokens: usize,
    /// The tokens drawn, a stop token included.
    pub tokens: Vec<u32>,
    /// Whether a stop token ended it, not the limit.
    pub stopped: bool,
}

/// Why a sink stops a capture.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// Where rows go. Rows of a batch come position by position, its prompts
/// interleaved; nothing counts before the batch is committed.
///
/// # Example
///
/// ```
/// use specgap_capture::{Generation, Row, RowSink, SinkError};
///
/// /// Acceptance of a single draft token, sum of min(p, q), straight from the models.
/// #[derive(Default)]
/// struct Overlap(Vec<f64>);
///
/// fn softmax(logits: &[f32]) -> Vec<f64> {
///     let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
///     let weights: Vec<f64> = logits.iter().map(|&l| f64::from(l - top).exp()).collect();
///     let total: f64 = weights.iter().sum();
///     weights.iter().map(|weight| weight / total).collect()
/// }
///
/// impl RowSink for Overlap {
///     fn append(&mut self, row: &Row<'_>) -> Result<(), SinkError> {
///         let (p, q) = (softmax(row.target), softmax(row.draft));
///         self.0.push(p.iter().zip(&q).map(|(p, q)| p.min(*q)).sum());
///         Ok(())
///     }
///     fn commit(&mut self, _: &[Generation]) -> Result<(), SinkError> {
///         Ok(())
///     }
/// }
///
/// let mut sink = Overlap::default();
/// sink.append(&Row {
///     prompt: 0,
///     position: 0,
///     token: 0,
///     target: &[0.0, 0.0],
///     draft: &[0.0, 0.0],
///     head_acceptance: None,
///     head_overlap: None,
///     others: &[],
/// })?;
/// assert_eq!(sink.0, [1.0]);
/// # Ok::<(), SinkError>(())
/// ```
pub trait RowSink {
    /// A batch of these prompts begins, of at most so many positions together.
    ///
    /// # Errors
    ///
    /// Whatever will keep it from being stored; the capture stops.
    fn begin(&mut self, _prompts: &[EncodedPrompt], _positions: usize) -> Result<(), SinkError> {
        Ok(())
    }

    /// Takes a row.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being stored; the capture stops.
    fn append(&mut self, row: &Row<'_>) -> Result<(), SinkError>;

    /// Takes a rollout. They come behind the rows of a batch, before it is committed, and
    /// only where [`Settings::rollouts`] asks for them.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being stored; the capture stops.
    fn append_rollout(&mut self, _rollout: &DrawnRollout) -> Result<(), SinkError> {
        Ok(())
    }

    /// The rows since the last commit are all rows of these prompts.
    ///
    /// # Errors
    ///
    /// Whatever keeps them from being stored; the capture stops.
    fn commit(&mut self, finished: &[Generation]) -> Result<(), SinkError>;
}

/// What [`Capture::run`] reports as it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// One more token of each of so many prompts.
    Tokens(usize),
    /// A rollout of so many tokens.
    Rollout(usize),
    /// So many prompts were committed, and wrote so many tokens less than they might.
    Batch {
        /// Prompts.
        prompts: usize,
        /// Tokens that stop tokens saved, those of rollouts included.
        saved: usize,
    },
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Prompts committed.
    pub prompts: usize,
    /// Positions committed.
    pub positions: usize,
    /// Rollouts committed.
    pub rollouts: usize,
    /// Prompt tokens run, padding left out.
    pub prompt_tokens: usize,
    /// Where the time went.
    pub seconds: Seconds,
}

/// Wall-clock seconds of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// In the target's graph.
    pub target: f64,
    /// In the draft's graph, or in those of all drafts.
    pub draft: f64,
    /// Everything else: drawing tokens, and the sink.
    pub other: f64,
}

impl Seconds {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.target + self.draft + self.other
    }
}

/// A target and its draft, or several, over one vocabulary, ready to run.
pub struct Capture {
    target: Model,
    /// The first one first; there is one.
    drafts: Vec<Model>,
    /// Seconds in the graph of each draft.
    seconds_of_drafts: Vec<f64>,
    codec: Arc<TextCodec>,
    settings: Settings,
    vocabulary: usize,
    prefill_logits: usize,
}

impl Capture {
    /// Checks that the parts fit.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Vocabulary`] if the models' V differ, or are below
    /// [`Settings::vocabulary`]; [`CaptureError::Setting`] for a batch or a length
    /// of 0.
    pub fn new(
        target: Model,
        draft: Model,
        codec: TextCodec,
        settings: Settings,
    ) -> Result<Self, CaptureError> {
        let plan = settings.rollouts;
        for (name, value) in [
            ("batch", settings.batch),
            ("max-tokens", settings.max_tokens),
            ("rollouts", plan.map_or(1, |plan| plan.tokens)),
            ("every", plan.map_or(1, |plan| plan.every)),
            ("paths", plan.map_or(1, |plan| plan.paths)),
        ] {
            if value == 0 {
                return Err(CaptureError::Setting(format!("{name} 0: must be >= 1")));
            }
        }
        let vocabulary = common_vocabulary(&target, &draft, settings.vocabulary)?;
        let drafts = vec![draft];
        check_depths(&target, &drafts, plan.is_some())?;
        Ok(Self {
            target,
            drafts,
            seconds_of_drafts: vec![0.0],
            codec: Arc::new(codec),
            settings,
            vocabulary,
            prefill_logits: PREFILL_LOGITS,
        })
    }

    /// Adds drafts that are asked about the same prefixes. The text does not depend on the
    /// drafts, so that every one of them gets the rows that it would have got alone.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Vocabulary`] if their V does not fit; [`CaptureError::Setting`] if
    /// there are rollouts, which are one draft's.
    pub fn with_drafts(mut self, others: Vec<Model>) -> Result<Self, CaptureError> {
        self.settings.admit_drafts(1 + others.len())?;
        for draft in &others {
            let kept = self.settings.vocabulary;
            let vocabulary = common_vocabulary(&self.target, draft, kept)?;
            debug_assert_eq!(vocabulary, self.vocabulary);
        }
        self.drafts.truncate(1);
        self.drafts.extend(others);
        let rollouts = self.settings.rollouts.is_some();
        check_depths(&self.target, &self.drafts, rollouts)?;
        self.seconds_of_drafts = vec![0.0; self.drafts.len()];
        Ok(self)
    }

    /// Sets how many logits one run over prompts may yield, 2^26 unless told
    /// otherwise. Prompts that yield more go through in pieces, of one token each at
    /// least, so that memory does not grow with their length.
    #[must_use]
    pub fn with_prefill_logits(mut self, logits: usize) -> Self {
        self.prefill_logits = logits;
        self
    }

    /// V of the rows.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The target model.
    pub fn target(&self) -> &Model {
        &self.target
    }

    /// The draft model; of several, the first.
    pub fn draft(&self) -> &Model {
        &self.drafts[0]
    }

    /// All drafts, the first one first.
    pub fn drafts(&self) -> impl Iterator<Item = &Model> {
        self.drafts.iter()
    }

    /// Seconds in the graph of each draft, over all runs so far; rollouts are left out.
    pub fn seconds_of_drafts(&self) -> &[f64] {
        &self.seconds_of_drafts
    }

    /// The tokenizer.
    pub fn codec(&self) -> &Arc<TextCodec> {
        &self.codec
    }

    /// Returns how it generates.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs all batches of `prompts` except those that `done` says are done, and
    /// hands every position to `sink`. Stops early, between two tokens, once
    /// `interrupt` is set.
    ///
    /// Memory: the caches of all models, and one row of logits a prompt of the batch and model, two if the
    /// draft has a head that predicts acceptance; over prompts, 256 MiB of logits at most, or one token of each. Rollouts: both caches
    /// again, and 256 MiB of logits of each model at most, or those of one rollout.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Run`] if a graph fails, [`CaptureError::Logits`] if a row
    /// holds NaN or nothing finite, [`CaptureError::Sink`] if the sink fails,
    /// [`CaptureError::Interrupted`]. What was committed before stays.
    pub fn run(
        &mut self,
        prompts: &[EncodedPrompt],
        done: &dyn Fn(&[EncodedPrompt]) -> bool,
        sink: &mut dyn RowSink,
        interrupt: &AtomicBool,
        watch: &mut dyn FnMut(Event),
    ) -> Result<Tally, CaptureError> {
        let mut tally = Tally::default();
        for batch in prompts.chunks(self.settings.batch) {
            if done(batch) {
                continue;
            }
            let started = std::time::Instant::now();
            sink.begin(batch, batch.len().saturating_mul(self.settings.max_tokens))
                .map_err(CaptureError::Sink)?;
            let before = tally.seconds;
            let mut rollouts = 0;
            let finished = self.run_batch(
                batch,
                sink,
                interrupt,
                &mut |event| {
                    rollouts += usize::from(matches!(event, Event::Rollout(_)));
                    watch(event);
                },
                &mut tally.seconds,
            )?;
            sink.commit(&finished).map_err(CaptureError::Sink)?;
            let positions: usize = finished.iter().map(|done| done.tokens.len()).sum();
            tally.prompts += finished.len();
            tally.positions += positions;
            tally.rollouts += rollouts;
            tally.prompt_tokens += finished
                .iter()
                .map(|done| done.prompt_tokens)
                .sum::<usize>();
            let in_graphs = tally.seconds.total() - before.total();
            tally.seconds.other += started.elapsed().as_secs_f64() - in_graphs;
            let most = self.settings.most_tokens(finished.len());
            let tokens = self.settings.rollouts.map_or(0, |plan| plan.tokens);
            watch(Event::Batch {
                prompts: finished.len(),
                saved: most.saturating_sub(positions + rollouts * tokens),
            });
        }
        Ok(tally)
    }

    fn run_batch(
        &mut self,
        prompts: &[EncodedPrompt],
        sink: &mut dyn RowSink,
        interrupt: &AtomicBool,
        watch: &mut dyn FnMut(Event),
        seconds: &mut Seconds,
    ) -> Result<Vec<Generation>, CaptureError> {
        let Settings {
            sampling,
            seed,
            max_tokens,
            ..
        } = self.settings;
        let check = || go_on(interrupt);
        let context = Context::new(prompts);
        let mut samplers: Vec<_> = prompts
            .iter()
            .map(|prompt| Sampler::new(seed, &prompt.id))
            .collect();
        let mut generations: Vec<_> = prompts
            .iter()
            .map(|prompt| Generation {
                prompt: prompt.index,
                id: prompt.id.clone(),
                prompt_tokens: prompt.tokens.len(),
                tokens: Vec::new(),
                stopped: false,
            })
            .collect();
        let mut drawn = vec![0i64; prompts.len()];
        let mut held: Vec<Option<HeldRow>> = prompts.iter().map(|_| None).collect();
        let mut of_target = Vec::new();
        let mut of_drafts: Vec<Vec<f32>> = vec![Vec::new(); self.drafts.len()];
        for model in std::iter::once(&mut self.target).chain(&mut self.drafts) {
            model
                .start(prompts.len())
                .map_err(|message| context.failed(model, 0, message))?;
        }
        let reads_on = self.drafts().any(|draft| draft.heads().acceptance);
        for position in 0..max_tokens {
            if position > 0 {
                check()?;
            }
            let widest = self.drafts().map(Model::vocabulary).max().unwrap_or(0);
            let piece = self.target.vocabulary().max(widest) * prompts.len();
            let piece = (self.prefill_logits / piece.max(1)).max(1);
            let run = |model: &mut Model, seconds: &mut f64| {
                if position == 0 {
                    context.prefill(model, piece, &check, seconds)
                } else {
                    context.step(model, &drawn, position, seconds)
                }
            };
            let target = run(&mut self.target, &mut seconds.target)?;
            let mut drafted = Vec::with_capacity(self.drafts.len());
            for (model, of_draft) in self.drafts.iter_mut().zip(&mut self.seconds_of_drafts) {
                let mut own = 0.0;
                drafted.push(run(model, &mut own)?);
                seconds.draft += own;
                *of_draft += own;
            }
            // What a head says of the tokens before is known now.
            for (sequence, held) in held.iter_mut().enumerate() {
                if let Some(held) = held.take() {
                    let acceptances = drafted.iter().zip(&self.drafts).map(|(logits, model)| {
                        let broken = |say| context.broken(model, sequence, position, say);
                        logits.acceptance(sequence).map_err(broken)
                    });
                    held.append_to(&acceptances.collect::<Result<Vec<_>, _>>()?, sink)?;
                }
            }
            let mut active = 0;
            for (sequence, generation) in generations.iter_mut().enumerate() {
                drawn[sequence] = 0;
                if generation.stopped {
                    continue;
                }
                let broken = |model: &Model, message: String| {
                    context.broken(model, sequence, position, message)
                };
                let target = cut(target.last(sequence, &mut of_target), self.vocabulary)
                    .map_err(|message| broken(&self.target, message))?;
                let token = samplers[sequence]
                    .draw(target, &sampling)
                    .ok_or_else(|| broken(&self.target, BROKEN.to_owned()))?
                    as u32;
                let mut asked = Vec::with_capacity(drafted.len());
                let each = drafted.iter().zip(&self.drafts).zip(&mut of_drafts);
                for ((logits, model), scratch) in each {
                    let broken = |message| broken(model, message);
                    let head_overlap = logits.overlap(sequence).map_err(broken)?;
                    let draft = logits.last_depths(sequence, self.vocabulary, scratch);
                    let draft = draft.map_err(broken)?;
                    if !draft.chunks(self.vocabulary.max(1)).all(is_law) {
                        return Err(broken(BROKEN.to_owned()));
                    }
                    asked.push(OtherDraft {
                        draft,
                        head_acceptance: None,
                        head_overlap,
                    });
                }
                let place = (generation.prompt, position, token);
                let row = row_of(place, target, &asked);
                generation.tokens.push(token);
                generation.stopped = self.codec.is_stop(token);
                if reads_on && !generation.stopped && position + 1 < max_tokens {
                    held[sequence] = Some(HeldRow::new(place, target, &asked));
                } else {
                    sink.append(&row).map_err(CaptureError::Sink)?;
                }
                drawn[sequence] = i64::from(token);
                active += usize::from(!generation.stopped);
                watch(Event::Tokens(1));
            }
            if active == 0 {
                break;
            }
        }
        if let Some(plan) = self.settings.rollouts {
            let texts: Vec<_> = prompts
                .iter()
                .zip(&generations)
                .map(|(prompt, generation)| Text {
                    prompt,
                    tokens: &generation.tokens,
                })
                .collect();
            // The logits of a group are held until the target has answered.
            let logits = if plan.target {
                plan.tokens.saturating_mul(self.target.vocabulary())
            } else {
                1
            };
            let rolling = Rolling {
                plan,
                sampling,
                seed,
                vocabulary: self.vocabulary,
                texts: &texts,
                padded: context.padded,
                together: (self.prefill_logits / logits).clamp(1, self.settings.batch),
                check: &check,
            };
            rolling.run(
                [&mut self.target, &mut self.drafts[0]],
                [&mut seconds.target, &mut seconds.draft],
                &mut |rollout| {
                    sink.append_rollout(rollout).map_err(CaptureError::Sink)?;
                    watch(Event::Rollout(rollout.tokens.len()));
                    Ok(())
                },
            )?;
        }
        self.target.clear();
        self.drafts.iter_mut().for_each(Model::clear);
        Ok(generations)
    }
}

/// Refuses graphs that give several rows behind each token and do not go together.
fn check_depths(target: &Model, drafts: &[Model], rollouts: bool) -> Result<(), CaptureError> {
    let depths: Vec<usize> = drafts.iter().map(Model::depths).collect();
    let first = depths.first().copied().unwrap_or(1);
    let refused = |message| Err(CaptureError::Setting(message));
    if target.depths() > 1 {
        return refused(format!(
            "target: its graph gives {} rows behind each token; a target gives one",
            target.depths()
        ));
    }
    if depths.iter().any(|&other| other != first) {
        return refused(format!(
            "draft: their graphs give {} rows behind each token; drafts of one capture give as many \
             each: capture these one by one",
            depths
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    if first > 1 && rollouts {
        return refused(format!(
            "rollouts: the draft's graph gives {first} rows behind each token, so that it writes a \
             round at once and nothing on its own; leave ⟨rollouts⟩ out"
        ));
    }
    Ok(())
}

/// The row at a prompt's position with its token; there is one draft at least.
fn row_of<'a>(
    (prompt, position, token): (usize, usize, u32),
    target: &'a [f32],
    drafts: &'a [OtherDraft<'a>],
) -> Row<'a> {
    let first = &drafts[0];
    Row {
        prompt,
        position,
        token,
        target,
        draft: first.draft,
        head_acceptance: first.head_acceptance,
        head_overlap: first.head_overlap,
        others: &drafts[1..],
    }
}

/// A row whose token the drafts have not read yet.
struct HeldRow {
    /// The prompt, the position and the token.
    place: (usize, usize, u32),
    target: Vec<f32>,
    /// Of each draft its row, and the overlap that its head predicts.
    drafts: Vec<(Vec<f32>, Option<f64>)>,
}

impl HeldRow {
    fn new(place: (usize, usize, u32), target: &[f32], drafts: &[OtherDraft<'_>]) -> Self {
        let held = |one: &OtherDraft<'_>| (one.draft.to_vec(), one.head_overlap);
        Self {
            place,
            target: target.to_vec(),
            drafts: drafts.iter().map(held).collect(),
        }
    }

    /// With what the head of each draft says of the token, which it has read.
    fn append_to(
        &self,
        acceptances: &[Option<f64>],
        sink: &mut dyn RowSink,
    ) -> Result<(), CaptureError> {
        let drafts: Vec<_> = (self.drafts.iter().zip(acceptances))
            .map(|((draft, head_overlap), &head_acceptance)| OtherDraft {
                draft,
                head_acceptance,
                head_overlap: *head_overlap,
            })
            .collect();
        let row = row_of(self.place, &self.target, &drafts);
        sink.append(&row).map_err(CaptureError::Sink)
    }
}

/// What both models are run on: prompts padded on the left to one length, then
/// the tokens drawn, one a prompt and position.
struct Context<'a> {
    prompts: &'a [EncodedPrompt],
    /// Columns of the longest prompt.
    padded: usize,
}

impl<'a> Context<'a> {
    fn new(prompts: &'a [EncodedPrompt]) -> Self {
        let padded = prompts.iter().map(|prompt| prompt.tokens.len()).max();
        Self {
            prompts,
            padded: padded.unwrap_or(0),
        }
    }

    fn failed(&self, model: &Model, position: usize, message: String) -> CaptureError {
        let [first, last] = [self.prompts.first(), self.prompts.last()];
        model.failed([id_of(first), id_of(last)], position, message)
    }

    /// Returns what a model says of a sequence is no law, or no probability.
    fn broken(
        &self,
        model: &Model,
        sequence: usize,
        position: usize,
        message: String,
    ) -> CaptureError {
        model.broken(id_of(self.prompts.get(sequence)), position, message)
    }

    /// The mask of all columns before `end`.
    fn mask(&self, end: usize) -> Vec<i64> {
        let mut mask = Vec::with_capacity(self.prompts.len() * end);
        for prompt in self.prompts {
            let padding = self.padded - prompt.tokens.len();
            mask.extend((0..end).map(|column| i64::from(column >= padding)));
        }
        mask
    }

    /// Runs the prompts, at most `piece` columns at a time.
    fn prefill(
        &self,
        model: &mut Model,
        piece: usize,
        check: &dyn Fn() -> Result<(), CaptureError>,
        seconds: &mut f64,
    ) -> Result<Logits, CaptureError> {
        let mut begin = 0;
        loop {
            check()?;
            let end = self.padded.min(begin + piece);
            let (mut ids, mut positions) = (Vec::new(), Vec::new());
            for prompt in self.prompts {
                let padding = self.padded - prompt.tokens.len();
                for column in begin..end {
                    let at = column.checked_sub(padding);
                    ids.push(at.map_or(0, |at| i64::from(prompt.tokens[at])));
                    positions.push(at.unwrap_or(0) as i64);
                }
            }
            let logits = model
                .run_timed(&ids, &self.mask(end), &positions, seconds)
                .map_err(|message| self.failed(model, 0, message))?;
            if end == self.padded {
                return Ok(logits);
            }
            begin = end;
        }
    }

    /// Runs the tokens in front of a position.
    fn step(
        &self,
        model: &mut Model,
        tokens: &[i64],
        position: usize,
        seconds: &mut f64,
    ) -> Result<Logits, CaptureError> {
        let end = self.padded + position;
        let positions: Vec<_> = self
            .prompts
            .iter()
            .map(|prompt| (prompt.tokens.len() + position - 1) as i64)
            .collect();
        model
            .run_timed(tokens, &self.mask(end), &positions, seconds)
            .map_err(|message| self.failed(model, position, message))
    }
}

fn id_of(prompt: Option<&EncodedPrompt>) -> &str {
    prompt.map_or("", |prompt| &prompt.id)
}
