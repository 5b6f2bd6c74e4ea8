//! The command line: one file a command, over the options and the output that they share.

mod audit;
mod batch;
mod block;
#[cfg(feature = "onnx")]
mod bound;
mod capture;
mod certify;
mod check;
mod cite;
mod colour;
mod completions;
pub(crate) mod conformance;
mod counters;
mod decode;
mod demo;
mod explain;
mod gap;
mod help;
mod host;
mod import;
mod length;
mod meant;
mod merge;
#[cfg(feature = "onnx")]
mod models;
mod options;
mod output;
mod overwrites;
mod parts;
mod paths;
#[cfg(feature = "onnx")]
mod predicted;
mod printed;
mod profile;
mod recorded;
mod relaxed;
pub(crate) mod schema;
mod solve;
mod table;
mod texts;
mod tree;
mod verify;
#[cfg(not(feature = "onnx"))]
mod without_models;

use crate::page::visible;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use gap::GapOptions;
pub use host::{Host, HostError, MadeReport};
pub use options::{Common, Format};
pub use output::{CliError, Verdict};

/// Exact optimal-transport analysis of multi-draft speculative decoding.
#[derive(Parser, Debug)]
#[command(name = "specgap", version = crate::log::version(), about, long_about = None)]
#[command(
    after_help = "Exit codes: 0 everything is as expected; 1 something disagrees, got worse than a \
    baseline, or is not as expected; 2 bad usage or bad input; 3 internal error (a bug); 4 undecided: nothing \
    is wrong, and the log of an audit is too short to tell; 130 and 143 stopped by Ctrl-C and by SIGTERM."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// What help says of commands that run models, in a build that cannot.
#[cfg(not(feature = "onnx"))]
const NO_MODELS: &str = "This build cannot run models. In a copy of the repository, install one that \
    can:\n\n    cargo install --path . --features onnx\n\nIts options: docs/reference/commands.md.";

#[derive(Subcommand, Debug)]
enum Command {
    /// The report of a shipped log; nothing to install.
    Demo(demo::DemoArgs),
    /// Every verifier against the optimum, on logged rows.
    Gap(Box<gap::GapArgs>),
    /// How many tokens to draft, by logged text.
    Length(length::LengthArgs),
    /// Which tree of drafts to verify, by logged text.
    Tree(tree::TreeArgs),
    /// What several draft paths could give, by logged text and paths.
    Paths(paths::PathsArgs),
    /// Rules that are not lossless: what they accept, and what they do to the law.
    Relaxed(relaxed::RelaxedArgs),
    /// Every draft length from what a server counts: which one to set.
    Counters(Box<counters::CountersArgs>),
    /// Run two ONNX models over prompts and log their rows.
    #[cfg_attr(
        not(feature = "onnx"),
        command(
            about = "Run two ONNX models over prompts and log their rows (not in this build)",
            after_help = NO_MODELS
        )
    )]
    Capture(capture::CaptureArgs),
    /// Exports of vLLM, SGLang, llama.cpp, transformers to a log.
    Import(import::ImportArgs),
    /// Decode prompts with two ONNX models, counting and timing rounds.
    #[cfg_attr(
        not(feature = "onnx"),
        command(
            about = "Decode prompts with two ONNX models (not in this build)",
            after_help = NO_MODELS
        )
    )]
    Decode(decode::DecodeArgs),
    /// One report of parts that were measured anywhere.
    Merge(merge::MergeArgs),
    /// Whether an engine samples what it claims, by a log of its rounds.
    Audit(audit::AuditArgs),
    /// Test vectors for a verification kernel.
    Conformance(conformance::ConformanceArgs),
    /// The optimum by every method, with its certificate.
    Solve(solve::SolveArgs),
    /// Every verifier: exact acceptance, gap to the optimum, losslessness.
    Verify(verify::VerifyArgs),
    /// Blocks of draft tokens: optimum, bounds, every verifier's law.
    Block(block::BlockArgs),
    /// Check a certificate of an optimum, or bound it without one.
    Certify(certify::CertifyArgs),
    /// The ledger of claims and a folder of problems.
    Check(check::CheckArgs),
    /// What a word of a report or a table means.
    Explain(explain::ExplainArgs),
    /// BibTeX of specgap, and of what a report uses.
    Cite(cite::CiteArgs),
    /// JSON Schemas of files that are read and written.
    Schema(schema::SchemaArgs),
    /// A script by which your shell completes commands.
    Completions(completions::CompletionsArgs),
}

/// Exit code of a bug.
const INTERNAL_ERROR: u8 = 3;

/// The program: parses the arguments, of which the first is its name, runs the command, and
/// returns the exit code. Everything is printed, help and errors too.
///
/// ```
/// assert_eq!(specgap::cli::main(["specgap", "solve", "no-such-file.toml"]), 2);
/// ```
pub fn main<I>(args: I) -> u8
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    crate::install_panic_hook();
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let cli = match parsed(&args) {
        Ok(cli) => cli.with_typed(&args),
        Err(message) => {
            if message.kind() == ErrorKind::DisplayHelp
                && let Some(short) = help::asked_short(&args, program())
            {
                let _ = write!(anstream::stdout(), "{short}");
                return 0;
            }
            // Nobody is left to tell if it cannot be printed.
            let _ = message.print();
            if let Some(name) = meant_by(&message) {
                colour::tip(&format!("a similar value exists: '{name}'"));
            }
            return u8::try_from(message.exit_code()).unwrap_or(INTERNAL_ERROR);
        }
    };
    catch_unwind(AssertUnwindSafe(|| run(cli))).unwrap_or_else(|_| {
        colour::error("internal error; this is a bug, please report it with the input");
        INTERNAL_ERROR
    })
}

/// The command line, with its options below headings and an example for each command.
pub(crate) fn program() -> clap::Command {
    help::arranged(Cli::command())
}

fn parsed(args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut matches = program().try_get_matches_from(args)?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// Guesses what a refused value is meant to be, of the names that the refusal lists.
fn meant_by(refusal: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(value)) = refusal.get(ContextKind::InvalidValue) else {
        return None;
    };
    let listed = refusal.source()?.to_string();
    meant::listed(value, &listed).map(str::to_owned)
}

/// Runs the command line and returns the exit code; everything is printed.
pub fn run(cli: Cli) -> u8 {
    start_threads(usize::from(cli.common.threads), cli.common.quiet);
    let outcome = match &cli.command {
        Command::Solve(args) => solve::run(args, &cli.common),
        Command::Verify(args) => verify::run(args, &cli.common),
        Command::Block(args) => block::run(args, &cli.common),
        Command::Capture(args) => capture::run(args, &cli.common),
        Command::Import(args) => import::run(args, &cli.common),
        Command::Decode(args) => decode::run(args, &cli.common),
        Command::Check(args) => check::run(args, &cli.common),
        Command::Cite(args) => cite::run(args, &cli.common),
        Command::Conformance(args) => conformance::run(args, &cli.common),
        Command::Counters(args) => counters::run(args, &cli.common),
        Command::Demo(args) => demo::run(args, &cli.common),
        Command::Explain(args) => explain::run(args, &cli.common),
        Command::Gap(args) => gap::run(args, &cli.common),
        Command::Length(args) => length::run(args, &cli.common),
        Command::Paths(args) => paths::run(args, &cli.common),
        Command::Relaxed(args) => relaxed::run(args, &cli.common),
        Command::Tree(args) => tree::run(args, &cli.common),
        Command::Audit(args) => audit::run(args, &cli.common),
        Command::Merge(args) => merged(args, &cli.common),
        Command::Certify(args) => certify::run(args, &cli.common),
        Command::Schema(args) => schema::run(args, &cli.common),
        Command::Completions(args) => completions::run(args, &mut program()),
    };
    match outcome {
        Ok(Verdict::Agrees) => 0,
        Ok(Verdict::Disagrees) => 1,
        Ok(Verdict::Undecided) => 4,
        Err(error) => {
            let message = error.to_string();
            let meant = meant::path(&message);
            colour::error(&visible(brief(message)));
            if let Some(path) = meant {
                let path = visible(path.display().to_string());
                colour::tip(&format!("a similar path exists: '{path}'"));
            }
            error.exit_code()
        }
    }
}

/// Makes the report of parts: of summaries of `gap`, or by running the command that wrote them.
fn merged(args: &merge::MergeArgs, common: &Common) -> Result<Verdict, CliError> {
    let Some(parts::Together { typed, parted }) = args.together()? else {
        return merge::run(args, common);
    };
    let cli = parsed(&typed).map_err(|error| CliError::missing(error.to_string()))?;
    let common = Common {
        seed: cli.common.seed,
        ..common.clone()
    };
    let folder = args.folder().clone();
    match cli.command {
        Command::Length(mut args) => {
            (args.parted, args.texts.folder) = (parted, folder);
            length::run(&args, &common)
        }
        Command::Tree(mut args) => {
            (args.parted, args.texts.folder) = (parted, folder);
            tree::run(&args, &common)
        }
        Command::Audit(mut args) => {
            (args.parted, args.folder) = (parted, folder);
            audit::run(&args, &common)
        }
        Command::Counters(mut args) => {
            (args.parted, args.folder) = (parted, folder);
            counters::run(&args, &common)
        }
        _ => Err(CliError::missing("this command is not merged")),
    }
}

impl Cli {
    /// Keeps the command as it was typed.
    fn with_typed(mut self, args: &[OsString]) -> Self {
        let words = args.iter().map(|word| word.to_string_lossy().into_owned());
        self.common.typed = words.collect();
        self
    }
}

/// Starts worker threads: so many, or one a core. Where the system starts fewer, as in a container
/// with a limit, as many as it does, of which this thread is one.
fn start_threads(wanted: usize, quiet: bool) {
    let global = rayon::ThreadPoolBuilder::new()
        .num_threads(wanted)
        .build_global();
    // Without a cause, there is a pool already, which then serves.
    let Some(why) = global.err().filter(|error| error.source().is_some()) else {
        return;
    };
    let most = match wanted {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        wanted => wanted,
    };
    // Threads that did start for it are ending, and still count.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let threads = 1 + startable(most.saturating_sub(1), &|work| {
        std::thread::Builder::new().spawn(work)
    });
    // One attempt: a pool that could not be built stays the pool of the thread that asked for it.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread()
        .build();
    // It serves this thread until the program ends.
    std::mem::forget(pool);
    if !quiet && threads < most {
        colour::note(&format!(
            "{most} threads cannot be started ({why}); {} will do",
            crate::page::counted(threads, "thread")
        ));
    }
}

/// Counts the threads of `most` that can be started at once.
fn startable(
    most: usize,
    spawn: &dyn Fn(Box<dyn FnOnce() + Send>) -> std::io::Result<std::thread::JoinHandle<()>>,
) -> usize {
    let wait = std::sync::Arc::new(std::sync::Mutex::new(()));
    let all_are_there = wait.lock();
    let started: Vec<_> = (0..most)
        .map_while(|_| {
            let wait = std::sync::Arc::clone(&wait);
            spawn(Box::new(move || drop(wait.lock()))).ok()
        })
        .collect();
    drop(all_are_there);
    let count = started.len();
    for one in started {
        let _ = one.join();
    }
    count
}

/// A message that can be read, whatever it quotes: one of many thousand characters keeps its
/// beginning, which names the file, and its end, which has the cure.
fn brief(message: String) -> String {
    const MOST: usize = 2000;
    const ENDS: [usize; 2] = [1200, 400];
    let length = message.chars().count();
    if length <= MOST {
        return message;
    }
    let first: String = message.chars().take(ENDS[0]).collect();
    let last: String = message.chars().skip(length - ENDS[1]).collect();
    format!(
        "{first} [... {} more characters ...] {last}",
        length - ENDS[0] - ENDS[1]
    )
}

impl GapOptions {
    /// Reads the options, which stand behind no name of a command.
    ///
    /// # Errors
    /// Options that `gap` does not take, or not with these values.
    ///
    /// # Example
    /// ```
    /// use specgap::cli::GapOptions;
    /// let asked = GapOptions::parse(["--drafts=2-3", "--temperature=1"])?.asked()?;
    /// assert_eq!(asked.settings.options(), " --drafts 2,3 --temperature 1.0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse<I>(options: I) -> Result<Self, HostError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let around = |words: [&str; 2]| words.map(OsString::from).into_iter();
        let args = around(["specgap", "gap"]).chain(options.into_iter().map(Into::into));
        // The logs are at hand, whatever they are called.
        let args = args.chain(around(["--", "LOG"]));
        let mut cli = Cli::try_parse_from(args).map_err(HostError::Usage)?;
        cli.common.host = Some(Host::new());
        match cli.command {
            Command::Gap(args) => Ok(Self {
                args,
                common: cli.common,
            }),
            _ => Err(CliError::internal("gap is another command").into()),
        }
    }
}

impl Host {
    /// Runs a command that ends in a report, `length`, `tree`, `paths`, `relaxed` or `audit`, by its
    /// arguments, and takes the report. Nothing is printed; what options write is written.
    ///
    /// # Errors
    /// Those of the command, and of arguments that it does not take.
    pub fn report<I>(&self, args: I) -> Result<MadeReport, HostError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let verdict = self.run(args)?;
        let mut made = self
            .made()
            .ok_or_else(|| CliError::internal("a command made no report"))?;
        made.ok = verdict != Verdict::Disagrees;
        Ok(made)
    }

    /// Runs such a command with `--partial`, which writes what it reads of its logs; `merge` of all parts ends in
    /// a report.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn keep<I>(&self, args: I) -> Result<(), HostError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        self.run(args).map(|_| ())
    }

    fn run<I>(&self, args: I) -> Result<Verdict, HostError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let name = OsString::from("specgap");
        let args: Vec<OsString> = std::iter::once(name)
            .chain(args.into_iter().map(Into::into))
            .collect();
        let mut cli = Cli::try_parse_from(&args)
            .map_err(HostError::Usage)?
            .with_typed(&args);
        cli.common.format = Format::Json;
        cli.common.host = Some(self.clone());
        let common = &cli.common;
        self.watch(|| match &cli.command {
            Command::Length(args) => length::run(args, common),
            Command::Tree(args) => tree::run(args, common),
            Command::Paths(args) => paths::run(args, common),
            Command::Relaxed(args) => relaxed::run(args, common),
            Command::Audit(args) => audit::run(args, common),
            Command::Merge(args) => merged(args, common),
            _ => Err(CliError::missing(
                "this command hands over no report; run it as a program",
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_threads_serve_where_not_all_can_be_started() {
        // A thread that has ended does not make room for another before all were tried.
        for (most, limit, expected) in [(8, 8, 8), (8, 3, 3), (0, 3, 0), (8, 0, 0)] {
            let running = std::sync::atomic::AtomicUsize::new(0);
            let spawn = |work: Box<dyn FnOnce() + Send>| {
                if running.fetch_add(1, std::sync::atomic::Ordering::SeqCst) >= limit {
                    return Err(std::io::ErrorKind::WouldBlock.into());
                }
                std::thread::Builder::new().spawn(work)
            };
            assert_eq!(startable(most, &spawn), expected);
        }
        // The thread that asks is enough, and works through the pool by itself.
        let alone = std::thread::spawn(|| {
            let build = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .use_current_thread();
            std::mem::forget(build.build().unwrap());
            use rayon::prelude::*;
            let sum: usize = (0..1000usize).into_par_iter().sum();
            (sum, rayon::current_num_threads())
        });
        assert_eq!(alone.join().unwrap(), (499_500, 1));
    }
}
