//! `specgap capture`, and what it says where the program cannot run models.

#[cfg(not(feature = "onnx"))]
pub(super) use super::without_models::Arguments as CaptureArgs;
#[cfg(feature = "onnx")]
pub(super) use with_models::{CaptureArgs, run};

#[cfg(not(feature = "onnx"))]
pub(super) fn run(
    _: &CaptureArgs,
    _: &super::options::Common,
) -> Result<super::output::Verdict, super::output::CliError> {
    super::without_models::refuse("capture")
}

#[cfg(feature = "onnx")]
mod with_models {
    use crate::capture::{
        Capture, CaptureError, Event, LogSink, Model, Provenance, RolloutPlan, Runtime, Settings,
        Tally,
    };
    use crate::cli::models::{ModelArgs, Opened, command_line, progress, shown};
    use crate::cli::options::{Common, Format};
    use crate::cli::output::{CliError, Verdict};
    use crate::log::{Dtype, KeptTokens, Layout};
    use clap::Args;
    use std::io::{self, Write};
    use std::path::PathBuf;

    /// Arguments of `specgap capture`.
    #[derive(Args, Debug)]
    #[command(
        after_long_help = "Models are ONNX graphs with inputs input_ids, attention_mask, position_ids \
        (optional) and past_key_values.N.key and .value, and outputs logits and present.N.key and .value. \
        The same command again continues a capture that was stopped."
    )]
    pub(crate) struct CaptureArgs {
        #[command(flatten)]
        models: ModelArgs,
        /// The log, a folder. One that an interrupted capture left is continued.
        #[arg(long, value_name = "LOG")]
        out: PathBuf,
        /// Prompts that run together.
        #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
        batch: u16,
        /// Type of the logged rows.
        #[arg(long, value_enum, default_value_t = RowType::F16)]
        dtype: RowType,
        /// Log only the K heaviest tokens of both rows, and the mass of the rest.
        #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
        top: Option<u32>,
        /// Temperatures at which the mass of the rest is logged, with --top.
        #[arg(long, value_name = "T", value_delimiter = ',', default_values_t = [0.7, 1.0], requires = "top", allow_negative_numbers = true, value_parser = above_0)]
        rest_temperatures: Vec<f64>,
        /// From some positions, let the draft write K tokens on its own, and log them.
        #[arg(long, visible_alias = "path-length", value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1024))]
        rollouts: Option<u16>,
        /// A rollout starts at every M-th position of a text, the first of them drawn
        /// evenly from 0..M.
        #[arg(long, default_value_t = 4, value_name = "M", requires = "rollouts", value_parser = clap::value_parser!(u32).range(1..))]
        every: u32,
        /// Draft paths that start at one place.
        ///
        /// Draw N rollouts at each of their positions, i.i.d. from the draft, and run the target over
        /// them: `specgap paths` reads these.
        #[arg(long, value_name = "N", requires = "rollouts", value_parser = clap::value_parser!(u16).range(1..=1024))]
        paths: Option<u16>,
        /// Run the target over the rollouts too, and log p of their tokens and the
        /// overlap with q.
        #[arg(long, requires = "rollouts")]
        rollout_target: bool,
    }

    /// Types of logged rows.
    #[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
    enum RowType {
        /// 2 bytes, 11 bits of precision.
        F16,
        /// 2 bytes, 8 bits of precision, the range of f32.
        Bf16,
        /// 4 bytes, 24 bits of precision.
        F32,
    }

    impl RowType {
        fn dtype(self) -> Dtype {
            match self {
                Self::F16 => Dtype::F16,
                Self::Bf16 => Dtype::Bf16,
                Self::F32 => Dtype::F32,
            }
        }
    }

    fn above_0(text: &str) -> Result<f64, String> {
        let value: Option<f64> = text.parse().ok();
        value
            .filter(|value| value.is_finite() && *value > 0.0)
            .ok_or_else(|| "is a number above 0, such as 0.7".to_owned())
    }

    fn layout(args: &CaptureArgs, vocabulary: usize, depths: usize) -> Layout {
        let tokens = match args.top {
            None => KeptTokens::All,
            Some(count) => KeptTokens::Top {
                count: count as usize,
                rest_temperatures: args.rest_temperatures.clone(),
            },
        };
        Layout {
            dtype: args.dtype.dtype(),
            tokens,
            depths,
            ..Layout::new(vocabulary)
        }
    }

    pub(crate) fn run(args: &CaptureArgs, common: &Common) -> Result<Verdict, CliError> {
        let models = &args.models;
        let sampling = models.sampling()?;
        let settings = Settings {
            sampling,
            seed: common.seed,
            max_tokens: models.max_tokens as usize,
            batch: usize::from(args.batch),
            vocabulary: models.kept.vocab,
            rollouts: args.rollouts.map(|tokens| RolloutPlan {
                tokens: usize::from(tokens),
                every: args.every as usize,
                paths: args.paths.map_or(1, usize::from),
                target: args.rollout_target || args.paths.is_some(),
            }),
        };
        models.refuse_repetition()?;
        settings.admit_drafts(models.draft.len())?;
        let (prompts, codec) = models.read()?;
        if args.rollouts.is_some() && sampling.cuts().is_some() && !common.quiet {
            crate::cli::colour::warning(
                "rollouts and draft paths are drawn from the draft's whole row, which --top-k and \
                 --top-p cut: length, tree and paths will not read them; leave the cuts out, or the \
                 rollouts",
            );
        }
        let (opened, provenance) = models.open(common, || {
            let read = Provenance::read(
                &models.target,
                &models.draft,
                &models.tokenizer,
                &models.prompts,
            )?;
            Ok(read.with_command(command_line()))
        })?;
        let Opened {
            runtime,
            target,
            draft,
            others,
            interrupt,
        } = opened;
        let mut capture = Capture::new(target, draft, codec, settings)?.with_drafts(others)?;
        let encoded = capture.codec().encode(&prompts, capture.vocabulary())?;
        let graphs = std::iter::once(capture.target()).chain(capture.drafts());
        let rolled = args.rollouts.map_or(0, |tokens| {
            let heads = capture.draft().heads();
            usize::from(tokens) - usize::from(!(heads.acceptance || heads.overlap))
        });
        models.check_lengths(&encoded, graphs, rolled, common)?;
        let layout = layout(args, capture.vocabulary(), capture.draft().depths());
        let mut sink = LogSink::open(&args.out, &capture, &runtime, &provenance, layout)?;
        sink.plan(encoded.len());
        let done = sink.done().clone();
        let before = done.len();
        let left = encoded.len() - before.min(encoded.len());
        let positions = left.saturating_mul(models.max_tokens as usize);
        if !common.quiet {
            if before > 0 {
                crate::cli::colour::tell(&format!(
                    "continuing: {before} of {} prompts are in the log",
                    encoded.len()
                ));
            }
            let limit = sink.bytes_of(positions);
            if let Some(free) = sink.free_space().filter(|&free| free < limit) {
                crate::cli::colour::warning(&format!(
                    "{} may grow by {}, and its disk has {} free; --top K writes less",
                    args.out.display(),
                    bytes(limit),
                    bytes(free)
                ));
            }
        }
        let tokens = capture.settings().most_tokens(left);
        let bar = progress("capturing", tokens, shown(common));
        let outcome = capture.run(
            &encoded,
            &|batch| batch.iter().all(|prompt| done.contains(&prompt.index)),
            &mut sink,
            interrupt.flag(),
            &mut |event| match event {
                Event::Tokens(tokens) | Event::Rollout(tokens) => bar.inc(tokens as u64),
                Event::Batch { saved, .. } => bar.dec_length(saved as u64),
            },
        );
        bar.finish_and_clear();
        let tally = match outcome {
            Err(CaptureError::Interrupted) => {
                return Err(interrupt.error(format!(
                    "{}: interrupted; {} of {} prompts are in it; the same command again continues",
                    args.out.display(),
                    sink.done().len(),
                    encoded.len(),
                )));
            }
            outcome => outcome?,
        };
        let written = Written {
            prompts: encoded.len(),
            before,
            tally: &tally,
            folders: sink.folders(),
        };
        report(args, common, &capture, &runtime, &written)?;
        Ok(Verdict::Agrees)
    }

    /// Bytes for people.
    fn bytes(count: u64) -> String {
        indicatif::BinaryBytes(count).to_string()
    }

    /// What is in the logs now.
    struct Written<'a> {
        prompts: usize,
        /// Of these, prompts that were in the log when the command began.
        before: usize,
        tally: &'a Tally,
        /// One log a draft.
        folders: &'a [PathBuf],
    }

    fn report(
        args: &CaptureArgs,
        common: &Common,
        capture: &Capture,
        runtime: &Runtime,
        written: &Written<'_>,
    ) -> io::Result<()> {
        let Written {
            prompts,
            before,
            tally,
            folders,
        } = *written;
        let seconds = tally.seconds.total();
        let rate = if seconds > 0.0 {
            tally.positions as f64 / seconds
        } else {
            0.0
        };
        let placement = |model: &Model| {
            let placement = model.placement();
            serde_json::json!({
                "provider": placement.device.provider(),
                "nodes": placement.nodes,
                "cuda_refused": placement.refused,
            })
        };
        let mut out = crate::cli::colour::plain();
        match common.format {
            Format::Json => {
                let mut object = serde_json::json!({
                    "schema": 1,
                    "log": args.out.display().to_string(),
                    "vocabulary": capture.vocabulary(),
                    "prompts": prompts,
                    "prompts_before": before,
                    "positions": tally.positions,
                    "rollouts": tally.rollouts,
                    "prompt_tokens": tally.prompt_tokens,
                    "tokens_per_second": rate,
                    "seconds": {
                        "target": tally.seconds.target,
                        "draft": tally.seconds.draft,
                        "other": tally.seconds.other,
                    },
                    "runtime": runtime.version(),
                    "target": placement(capture.target()),
                    "draft": placement(capture.draft()),
                });
                if folders.len() > 1
                    && let Some(fields) = object.as_object_mut()
                {
                    let drafts = folders.iter().zip(capture.drafts());
                    let drafts = drafts.zip(capture.seconds_of_drafts());
                    let drafts: Vec<_> = drafts
                        .map(|((folder, draft), seconds)| {
                            serde_json::json!({
                                "log": folder.display().to_string(),
                                "seconds": seconds,
                                "ran_on": placement(draft),
                            })
                        })
                        .collect();
                    fields.insert("drafts".to_owned(), drafts.into());
                }
                writeln!(out, "{object}")
            }
            Format::Text => {
                let rolled = match tally.rollouts {
                    0 => String::new(),
                    rollouts => format!(" and {rollouts} rollouts"),
                };
                writeln!(
                    out,
                    "{}: {prompts} prompts, {} of them before; {} positions of V = {}{rolled} in {seconds:.1} s, \
                     {rate:.1} tokens/s (target {:.1} s, draft {:.1} s, drawing and writing {:.1} s), on {}",
                    args.out.display(),
                    before,
                    tally.positions,
                    capture.vocabulary(),
                    tally.seconds.target,
                    tally.seconds.draft,
                    tally.seconds.other,
                    capture.target().placement().device.provider(),
                )?;
                if folders.len() > 1 {
                    writeln!(out, "one log a draft, with the target's rows in the first:")?;
                    for (folder, seconds) in folders.iter().zip(capture.seconds_of_drafts()) {
                        let folder = folder.display();
                        writeln!(out, "  {folder}: {seconds:.1} s in the draft's graph")?;
                    }
                    let names: Vec<String> = (folders.iter())
                        .map(|folder| folder.display().to_string())
                        .collect();
                    writeln!(
                        out,
                        "compare them: specgap gap {} --paired --out report",
                        names.join(" ")
                    )?;
                }
                Ok(())
            }
        }
    }
}
