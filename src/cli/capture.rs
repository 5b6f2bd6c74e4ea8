//! `specgap capture`, and what it says where the program cannot run models.

#[cfg(feature = "onnx")]
pub(super) use with_models::{CaptureArgs, run};
#[cfg(not(feature = "onnx"))]
pub(super) use without_models::{CaptureArgs, run};

#[cfg(not(feature = "onnx"))]
mod without_models {
    use crate::cli::{CliError, Common, Verdict};
    use clap::Args;
    use std::ffi::OsString;

    /// This build cannot run models.
    #[derive(Args, Debug)]
    pub(in crate::cli) struct CaptureArgs {
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            hide = true,
            value_name = "ARGUMENT"
        )]
        _ignored: Vec<OsString>,
    }

    pub(in crate::cli) fn run(_: &CaptureArgs, _: &Common) -> Result<Verdict, CliError> {
        Err(CliError::Missing {
            message: "capture runs ONNX models, which this build cannot; \
                      build it with: cargo build --release --features onnx"
                .to_owned(),
        })
    }
}

#[cfg(feature = "onnx")]
mod with_models {
    use crate::capture::{
        Capture, CaptureError, ChatTemplate, Device, Event, LogSink, Model, Placed, Placement,
        Provenance, RolloutPlan, Runtime, Sampling, Settings, Stop, Tally, TextCodec, read_prompts,
    };
    use crate::cli::output::CliError;
    use crate::cli::{Common, Format, Verdict};
    use crate::log::{Dtype, KeptTokens, Layout};
    use clap::Args;
    use indicatif::{ProgressBar, ProgressStyle};
    use std::io::{self, IsTerminal, Write};
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// Arguments of `specgap capture`.
    #[derive(Args, Debug)]
    #[command(
        after_help = "Models are ONNX graphs with inputs input_ids, attention_mask, position_ids \
        (optional) and past_key_values.N.key and .value, and outputs logits and present.N.key and .value. \
        The same command again continues a capture that was stopped."
    )]
    pub(in crate::cli) struct CaptureArgs {
        /// The target model, an ONNX graph with a key-value cache.
        #[arg(long, value_name = "FILE")]
        target: PathBuf,
        /// The draft model, of the same vocabulary.
        #[arg(long, value_name = "FILE")]
        draft: PathBuf,
        /// The tokenizer of both, a tokenizer.json.
        #[arg(long, value_name = "FILE")]
        tokenizer: PathBuf,
        /// Prompts, one JSON object a line: {"id": "a", "prompt": "text"}.
        #[arg(long, value_name = "FILE")]
        prompts: PathBuf,
        /// The log, a folder. One that an interrupted capture left is continued.
        #[arg(long, value_name = "LOG")]
        out: PathBuf,
        /// Temperature the target's tokens are drawn at; 0 takes the likeliest.
        /// Logged rows are raw logits whatever it is.
        #[arg(long, default_value_t = 1.0, value_name = "T")]
        temperature: f64,
        /// Draw from the K likeliest tokens only.
        #[arg(long, value_name = "K")]
        top_k: Option<usize>,
        /// Draw from the fewest likeliest tokens that hold this mass.
        #[arg(long, value_name = "P")]
        top_p: Option<f64>,
        /// Most tokens to generate a prompt.
        #[arg(long, default_value_t = 128, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
        max_tokens: u32,
        /// Prompts that run together.
        #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
        batch: u16,
        /// Template around a prompt.
        #[arg(long, value_enum, default_value_t = ChatTemplate::None)]
        chat: ChatTemplate,
        /// Token that ends a text, by its text or id; may be given more than once.
        /// By default the end-of-text tokens that the tokenizer has.
        #[arg(long, value_name = "TOKEN")]
        stop: Vec<String>,
        /// Generate --max-tokens tokens whatever they are.
        #[arg(long, conflicts_with = "stop")]
        no_stop: bool,
        /// Keep the first N logits of a row, for models whose vocabularies differ
        /// by padding.
        #[arg(long, value_name = "N")]
        vocab: Option<usize>,
        /// Type of the logged rows.
        #[arg(long, value_enum, default_value_t = RowType::F16)]
        dtype: RowType,
        /// Log only the K heaviest tokens of both rows, and the mass of the rest.
        #[arg(long, value_name = "K")]
        top: Option<usize>,
        /// Temperatures at which the mass of the rest is logged, with --top.
        #[arg(long, value_name = "T", value_delimiter = ',', default_values_t = [0.7, 1.0], requires = "top")]
        rest_temperatures: Vec<f64>,
        /// From some positions, let the draft write K tokens on its own, and log them.
        #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1024))]
        rollouts: Option<u16>,
        /// A rollout starts at every M-th position of a text, the first of them drawn
        /// evenly from 0..M.
        #[arg(long, default_value_t = 4, value_name = "M", requires = "rollouts", value_parser = clap::value_parser!(u32).range(1..))]
        every: u32,
        /// Run the target over the rollouts too, and log p of their tokens and the
        /// overlap with q.
        #[arg(long, requires = "rollouts")]
        rollout_target: bool,
        /// Where the models run. auto takes CUDA if it can be had, and says which
        /// it was.
        #[arg(long, value_enum, default_value_t = Device::Auto)]
        device: Device,
        /// The ONNX Runtime library, or its folder. By default what the variables
        /// SPECGAP_ONNXRUNTIME and ORT_DYLIB_PATH name.
        #[arg(long, value_name = "PATH")]
        onnxruntime: Option<PathBuf>,
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

    fn layout(args: &CaptureArgs, vocabulary: usize) -> Layout {
        let tokens = match args.top {
            None => KeptTokens::All,
            Some(count) => KeptTokens::Top {
                count,
                rest_temperatures: args.rest_temperatures.clone(),
            },
        };
        Layout {
            dtype: args.dtype.dtype(),
            tokens,
            ..Layout::new(vocabulary)
        }
    }

    pub(in crate::cli) fn run(args: &CaptureArgs, common: &Common) -> Result<Verdict, CliError> {
        // What is quick to refuse comes before what is slow to load.
        let sampling =
            Sampling::new(args.temperature, args.top_k, args.top_p).map_err(|error| {
                CaptureError::Setting {
                    message: format!("--{error}"),
                }
            })?;
        let stop = match (args.no_stop, args.stop.as_slice()) {
            (true, _) => Stop::Never,
            (false, []) => Stop::EndOfText,
            (false, tokens) => Stop::Tokens(tokens.to_vec()),
        };
        let settings = Settings {
            sampling,
            seed: common.seed,
            max_tokens: args.max_tokens as usize,
            batch: usize::from(args.batch),
            vocabulary: args.vocab,
            rollouts: args.rollouts.map(|tokens| RolloutPlan {
                tokens: usize::from(tokens),
                every: args.every as usize,
                target: args.rollout_target,
            }),
        };
        let prompts = read_prompts(&args.prompts)?;
        let codec = TextCodec::read(&args.tokenizer, args.chat, &stop)?;
        let shown = common.format == Format::Text && !common.quiet;
        let loading = spinner("loading the models", shown);
        let runtime = Runtime::load(args.onnxruntime.as_deref(), usize::from(common.threads))?;
        let target = Model::open(&runtime, &args.target, args.device)?;
        // One device for both: what the target got is asked for.
        let device = match target.placement().device {
            Placed::Cpu => Device::Cpu,
            Placed::Cuda => Device::Cuda,
        };
        let draft = Model::open(&runtime, &args.draft, device)?;
        let provenance =
            Provenance::read(&args.target, &args.draft, &args.tokenizer, &args.prompts)?
                .with_command(command_line());
        loading.finish_and_clear();
        if !common.quiet {
            say_device(&target, &draft, &runtime, common.verbose > 0);
        }
        let mut capture = Capture::new(target, draft, codec, settings)?;
        let encoded = capture.codec().encode(&prompts, capture.vocabulary())?;
        let layout = layout(args, capture.vocabulary());
        let mut sink = LogSink::open(&args.out, &capture, &runtime, &provenance, layout)?;
        let done = sink.done().clone();
        let before = done.len();
        let left = encoded.len() - before.min(encoded.len());
        let positions = left.saturating_mul(args.max_tokens as usize);
        if !common.quiet {
            if before > 0 {
                eprintln!(
                    "continuing: {before} of {} prompts are in the log",
                    encoded.len()
                );
            }
            let limit = sink.bytes_of(positions);
            if let Some(free) = sink.free_space().filter(|&free| free < limit) {
                eprintln!(
                    "warning: {} may grow by {}, and its disk has {} free; --top K writes less",
                    args.out.display(),
                    bytes(limit),
                    bytes(free)
                );
            }
        }
        let interrupt = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A second signal ends the program at once. Without handlers, the
            // first does; the log is whole either way.
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, 130, interrupt.clone());
            let _ = signal_hook::flag::register(signal, interrupt.clone());
        }
        let tokens = capture.settings().most_tokens(left);
        let bar = progress(tokens, common.format == Format::Text && !common.quiet);
        let outcome = capture.run(
            &encoded,
            &|batch| batch.iter().all(|prompt| done.contains(&prompt.index)),
            &mut sink,
            &interrupt,
            &mut |event| match event {
                Event::Tokens(tokens) | Event::Rollout(tokens) => bar.inc(tokens as u64),
                Event::Batch { saved, .. } => bar.dec_length(saved as u64),
            },
        );
        bar.finish_and_clear();
        let tally = match outcome {
            Err(CaptureError::Interrupted) => {
                return Err(CliError::Input {
                    path: args.out.clone(),
                    message: format!(
                        "interrupted; {} of {} prompts are in it; the same command again continues",
                        sink.done().len(),
                        encoded.len(),
                    ),
                });
            }
            outcome => outcome?,
        };
        report(
            args,
            common,
            &capture,
            &runtime,
            encoded.len(),
            before,
            &tally,
        )?;
        Ok(Verdict::Agrees)
    }

    fn command_line() -> String {
        let quote = |word: String| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                word
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        };
        let words: Vec<_> = std::iter::once("specgap".to_owned())
            .chain(
                std::env::args_os()
                    .skip(1)
                    .map(|word| quote(word.to_string_lossy().into_owned())),
            )
            .collect();
        words.join(" ")
    }

    fn nodes(placement: &Placement) -> String {
        let counts: Vec<_> = placement
            .nodes
            .iter()
            .map(|(provider, count)| format!("{count} nodes on {provider}"))
            .collect();
        if counts.is_empty() {
            format!("{} (not profiled)", placement.device.provider())
        } else {
            counts.join(", ")
        }
    }

    fn say_device(target: &Model, draft: &Model, runtime: &Runtime, verbose: bool) {
        let (of_target, of_draft) = (target.placement(), draft.placement());
        eprintln!(
            "device: {} (target: {}; draft: {})",
            of_target.device.provider(),
            nodes(of_target),
            nodes(of_draft)
        );
        if let Some(why) = &of_target.refused {
            eprintln!("CUDA is not used: {why}");
        }
        if verbose {
            eprintln!(
                "ONNX Runtime {} from {}",
                runtime.version(),
                runtime.library().display()
            );
        }
    }

    fn spinner(what: &'static str, shown: bool) -> ProgressBar {
        if !shown || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner().with_message(what);
        spinner.enable_steady_tick(std::time::Duration::from_millis(100));
        spinner
    }

    fn progress(tokens: usize, shown: bool) -> ProgressBar {
        if !shown || !io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(tokens as u64);
        if let Ok(style) = ProgressStyle::with_template(
            "capturing [{bar:32}] {pos}/{len} tokens, {per_sec}, {elapsed} (left {eta})",
        ) {
            bar.set_style(style.progress_chars("=> ").with_key(
                "per_sec",
                |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                    let _ = write!(out, "{:.1} tokens/s", state.per_sec());
                },
            ));
        }
        bar
    }

    /// Bytes for people.
    fn bytes(count: u64) -> String {
        indicatif::BinaryBytes(count).to_string()
    }

    fn report(
        args: &CaptureArgs,
        common: &Common,
        capture: &Capture,
        runtime: &Runtime,
        prompts: usize,
        before: usize,
        tally: &Tally,
    ) -> io::Result<()> {
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
        let mut out = io::stdout().lock();
        match common.format {
            Format::Json => {
                let object = serde_json::json!({
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
                )
            }
        }
    }
}
