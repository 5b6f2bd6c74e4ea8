//! What `capture` and `decode` share: the models, the prompts, and the law of the text.

use crate::capture::{
    CaptureError, ChatTemplate, Device, EncodedPrompt, Model, Placed, Placement, Prompt, Runtime,
    Sampling, Stop, TextCodec, check_lengths, read_prompts,
};
use crate::cli::options::{Common, Format, Kept, Ordered};
use crate::cli::output::CliError;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Two models, a tokenizer, prompts, and how text is drawn.
#[derive(Args, Debug)]
pub(super) struct ModelArgs {
    /// The target model, an ONNX graph with a key-value cache.
    #[arg(long, value_name = "FILE")]
    pub target: PathBuf,
    /// The draft model, of the same vocabulary. capture takes several, each after a --draft
    /// of its own.
    #[arg(long, value_name = "FILE", required = true)]
    pub draft: Vec<PathBuf>,
    /// The tokenizer of both, a tokenizer.json.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: PathBuf,
    /// Prompts, one JSON object a line: {"id": "a", "prompt": "text"}.
    #[arg(long, value_name = "FILE")]
    pub prompts: PathBuf,
    /// Temperature of both models, at which the text is drawn.
    ///
    /// 0 takes the likeliest token. Logged rows are raw logits whatever it is.
    #[arg(long, default_value_t = 1.0, value_name = "T")]
    pub temperature: f64,
    /// Sample from the K most probable tokens of a row (top-k).
    #[arg(long, value_name = "K")]
    pub top_k: Option<usize>,
    /// Sample from the fewest most probable tokens with a mass of P, behind top-k (top-p).
    #[arg(long, value_name = "P")]
    pub top_p: Option<f64>,
    #[command(flatten)]
    pub ordered: Ordered,
    /// Most tokens to generate a prompt.
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub max_tokens: u32,
    /// Template around a prompt.
    #[arg(long, value_enum, default_value_t = ChatTemplate::None)]
    pub chat: ChatTemplate,
    /// Token that ends a text.
    ///
    /// By its text or id; may be given more than once. By default the end-of-text tokens that the
    /// tokenizer has.
    #[arg(long, value_name = "TOKEN")]
    pub stop: Vec<String>,
    /// Generate --max-tokens tokens whatever they are.
    #[arg(long, conflicts_with = "stop")]
    pub no_stop: bool,
    #[command(flatten)]
    pub kept: Kept,
    /// Where the models run. auto takes CUDA if it can be had, and says which
    /// it was.
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    pub device: Device,
    /// The ONNX Runtime library, or its folder. By default what the variables
    /// SPECGAP_ONNXRUNTIME and ORT_DYLIB_PATH name.
    #[arg(long, value_name = "PATH")]
    pub onnxruntime: Option<PathBuf>,
}

/// What [`ModelArgs::open`] opened.
pub(super) struct Opened {
    pub runtime: Runtime,
    pub target: Model,
    pub draft: Model,
    /// Drafts behind the first.
    pub others: Vec<Model>,
    /// Watched before the device is said: whoever has read that line may interrupt.
    pub interrupt: Interrupt,
}

impl ModelArgs {
    /// The law of the text.
    pub fn sampling(&self) -> Result<Sampling, CaptureError> {
        let sampling = Sampling::new(self.temperature, self.top_k, self.top_p);
        match sampling {
            Ok(sampling) => Ok(sampling.ordered(self.ordered.cut_order)),
            Err(error) => Err(CaptureError::Setting(format!("--{error}"))),
        }
    }

    /// Refuses a draft that is given twice.
    pub fn refuse_repetition(&self) -> Result<(), CaptureError> {
        for (number, path) in self.draft.iter().enumerate() {
            if self.draft.iter().take(number).any(|before| before == path) {
                return Err(CaptureError::Setting(format!(
                    "--draft {}: is given twice",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// Refuses more than one draft, for commands that take one.
    pub fn refuse_several(&self, command: &str) -> Result<(), CaptureError> {
        if self.draft.len() < 2 {
            return Ok(());
        }
        Err(CaptureError::Setting(format!(
            "--draft: {command} runs one draft, and {} were given; capture takes several",
            self.draft.len()
        )))
    }

    /// Reads prompts and codec: what is quick to refuse, before what is slow to load.
    pub fn read(&self) -> Result<(Vec<Prompt>, TextCodec), CaptureError> {
        let stop = match (self.no_stop, self.stop.as_slice()) {
            (true, _) => Stop::Never,
            (false, []) => Stop::EndOfText,
            (false, tokens) => Stop::Tokens(tokens.to_vec()),
        };
        let prompts = read_prompts(&self.prompts)?;
        let codec = TextCodec::read(&self.tokenizer, self.chat, &stop)?;
        Ok((prompts, codec))
    }

    /// Refuses prompts that a model has no room for, and says what may take long or go beyond it.
    /// `rolled` tokens of a rollout are run behind a text.
    pub fn check_lengths<'a>(
        &self,
        prompts: &[EncodedPrompt],
        graphs: impl IntoIterator<Item = &'a Model>,
        rolled: usize,
        common: &Common,
    ) -> Result<(), CaptureError> {
        let graphs = graphs.into_iter().map(Model::context);
        let notes = check_lengths(prompts, graphs, [self.max_tokens as usize, rolled])?;
        if !common.quiet {
            notes
                .iter()
                .for_each(|note| crate::cli::colour::tell(&crate::page::visible(note.clone())));
        }
        Ok(())
    }

    /// Loads the runtime and both models, and runs `more` while that is shown.
    pub fn open<T>(
        &self,
        common: &Common,
        more: impl FnOnce() -> Result<T, CaptureError>,
    ) -> Result<(Opened, T), CaptureError> {
        let loading = spinner("loading the models", shown(common));
        let runtime = Runtime::load(self.onnxruntime.as_deref(), usize::from(common.threads))?;
        let target = Model::open(&runtime, &self.target, self.device)?;
        // One device for both: what the target got is asked for.
        let device = match target.placement().device {
            Placed::Cpu => Device::Cpu,
            Placed::Cuda => Device::Cuda,
        };
        let mut drafts = (self.draft.iter())
            .map(|path| Model::open(&runtime, path, device))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let draft = drafts
            .next()
            .ok_or_else(|| CaptureError::Setting("--draft: name a draft model".to_owned()))?;
        let others = drafts.collect();
        let more = more()?;
        loading.finish_and_clear();
        let interrupt = Interrupt::watch();
        if !common.quiet {
            say_device(&target, &draft, &runtime, common.verbose > 0);
        }
        let opened = Opened {
            runtime,
            target,
            draft,
            others,
            interrupt,
        };
        Ok((opened, more))
    }
}

/// Tells whether progress is for somebody to see.
pub(super) fn shown(common: &Common) -> bool {
    common.format == Format::Text && !common.quiet
}

/// Whether Ctrl-C or SIGTERM came; a second one ends the program at once.
pub(super) struct Interrupt {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Looks out for both from now on.
    pub fn watch() -> Self {
        use signal_hook::flag;
        let interrupt = Self {
            flag: Arc::default(),
            signal: Arc::default(),
        };
        for number in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // Without handlers, the first signal does; what is on the disk is whole either way.
            let set = interrupt.flag.clone();
            let _ = flag::register_conditional_shutdown(number, 128 + number, set.clone());
            let which = usize::try_from(number).unwrap_or_default();
            let _ = flag::register_usize(number, interrupt.signal.clone(), which);
            let _ = flag::register(number, set);
        }
        interrupt
    }

    /// Set once it came.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Makes the error that says so, with the exit code that a shell expects then.
    pub fn error(&self, message: String) -> CliError {
        let signal = u8::try_from(self.signal.load(Ordering::Relaxed)).unwrap_or_default();
        CliError::Interrupted(message, signal)
    }
}

/// The command that is running, as a shell would take it.
pub(super) fn command_line() -> String {
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
    crate::cli::colour::tell(&format!(
        "device: {} (target: {}; draft: {})",
        of_target.device.provider(),
        nodes(of_target),
        nodes(of_draft)
    ));
    if let Some(why) = &of_target.refused {
        crate::cli::colour::tell(&format!("CUDA is not used: {why}"));
    }
    if verbose {
        crate::cli::colour::tell(&format!(
            "ONNX Runtime {} from {}",
            runtime.version(),
            runtime.library().display()
        ));
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

/// A bar over tokens.
pub(super) fn progress(verb: &str, tokens: usize, shown: bool) -> ProgressBar {
    if !shown || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(tokens as u64);
    let template = format!(
        "{verb} [{{bar:32}}] {{pos}}/{{len}} tokens, {{per_sec}}, {{elapsed}} (left {{eta}})"
    );
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> ").with_key(
            "per_sec",
            |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = write!(out, "{:.1} tokens/s", state.per_sec());
            },
        ));
    }
    bar
}
