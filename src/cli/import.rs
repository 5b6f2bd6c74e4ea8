//! `specgap import`: exports of inference engines to a log.

use super::colour::plain;
use super::options::{Common, Format, Ordered};
use super::output::{CliError, Verdict};
use super::recorded::{Recorded, file_name};
use crate::import::{Engine, Imported, LogprobsMode, Request, import};
use crate::page::counted;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `specgap import`.
#[derive(Args, Debug)]
#[command(after_long_help = "docs/guide/engines.md says what to ask each engine for.")]
pub struct ImportArgs {
    /// Files with the rows of both models: records {"target": RESPONSE, "draft": RESPONSE};
    /// of hf, recorded calls; of tokens, tables.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Which program wrote the files.
    #[arg(long, value_name = "PROGRAM", value_parser = engines())]
    from: Engine,
    /// Files with the target's rows.
    #[arg(long = "target-rows", alias = "target", value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    target: Vec<PathBuf>,
    /// Files with the draft's rows of the same texts, in the same order.
    #[arg(long = "draft-rows", alias = "draft", value_name = "FILE", num_args = 1.., value_delimiter = ',')]
    draft: Vec<PathBuf>,
    /// The log: a folder that is made.
    #[arg(long, value_name = "LOG")]
    out: PathBuf,
    /// Tokens of the vocabulary.
    ///
    /// Padding included: "vocab_size" in config.json. Of hf, the first N tokens of every row are
    /// kept.
    #[arg(long, value_name = "N")]
    vocab: Option<usize>,
    /// Temperature of both models, at which the text is drawn.
    ///
    /// That of the requests.
    #[arg(
        long,
        value_name = "T",
        allow_negative_numbers = true,
        default_value_t = 1.0
    )]
    temperature: f64,
    /// Sample from the K most probable tokens of a row (top-k).
    ///
    /// As the requests did.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Sample from the fewest most probable tokens with a mass of P, behind top-k (top-p).
    ///
    /// As the requests did.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f64>,
    #[command(flatten)]
    ordered: Ordered,
    /// vllm: what the server's --logprobs-mode was, raw_logprobs or processed_logprobs.
    #[arg(long, value_name = "MODE", value_parser = LogprobsMode::from_str, default_value = "raw_logprobs")]
    logprobs_mode: LogprobsMode,
    /// sglang: the server ran with SGLANG_RETURN_ORIGINAL_LOGPROB.
    #[arg(long)]
    original_logprobs: bool,
    /// Tokens of each prompt, where both models scored prompt and text as one and the
    /// records have no "prompt_length".
    #[arg(long, value_name = "N")]
    prompt_tokens: Option<usize>,
    /// The target's name; otherwise what the records say.
    #[arg(long, value_name = "NAME")]
    target_name: Option<String>,
    /// The draft's name; otherwise what the records say.
    #[arg(long, value_name = "NAME")]
    draft_name: Option<String>,
}

/// All engines, with what their exports are.
fn engines() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(
        Engine::ALL.map(|engine| PossibleValue::new(engine.as_str()).help(engine.rule())),
    )
    .try_map(|name| Engine::from_str(&name))
}

pub(super) fn run(args: &ImportArgs, common: &Common) -> Result<Verdict, CliError> {
    let request = Request {
        joint: args.files.clone(),
        target: args.target.clone(),
        draft: args.draft.clone(),
        vocabulary: args.vocab,
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        cut_order: args.ordered.cut_order,
        logprobs_mode: args.logprobs_mode,
        original_logprobs: args.original_logprobs,
        prompt_tokens: args.prompt_tokens,
        target_name: args.target_name.clone(),
        draft_name: args.draft_name.clone(),
        ..Request::new(args.from)
    };
    let made = import(&request, &args.out, &command(args))?;
    match common.format {
        Format::Json => {
            let mut line = serde_json::to_value(&made)?;
            if let Some(fields) = line.as_object_mut() {
                fields.insert("schema".to_owned(), 1.into());
            }
            writeln!(plain(), "{line}")?;
        }
        Format::Text => print(&mut plain(), &made, args)?,
    }
    Ok(Verdict::Agrees)
}

/// The command, without the folders of its files.
fn command(args: &ImportArgs) -> String {
    let name = |path: &PathBuf| format!(" {}", file_name(path));
    let names = |paths: &[PathBuf]| paths.iter().map(name).collect::<String>();
    let mut text = format!("specgap import --from {}{}", args.from, names(&args.files));
    for (option, files) in [("--target", &args.target), ("--draft", &args.draft)] {
        if !files.is_empty() {
            text.push_str(&format!(" {option}{}", names(files)));
        }
    }
    let mut command = Recorded::from_start(text);
    let mode = (args.logprobs_mode == LogprobsMode::Processed).then_some("processed_logprobs");
    command
        .option("vocab", args.vocab)
        .option("temperature", Some(args.temperature))
        .option("top-k", args.top_k)
        .option("top-p", args.top_p)
        .option("cut-order", args.ordered.cut_order)
        .option("logprobs-mode", mode)
        .flag("original-logprobs", args.original_logprobs)
        .option("prompt-tokens", args.prompt_tokens);
    command.into_line()
}

/// Prints what was made, and what to do with it.
fn print(out: &mut impl Write, made: &Imported, args: &ImportArgs) -> io::Result<()> {
    let temperature = made.temperature_applied;
    writeln!(
        out,
        "{} of {} from {}",
        counted(made.positions, "position"),
        counted(made.texts, "text"),
        made.engine
    )?;
    match made.rows.as_str() {
        "full rows" => writeln!(out, "rows list all {} tokens", made.vocabulary)?,
        "own tokens" => writeln!(
            out,
            "what both models give the text's own tokens, and no rows"
        )?,
        "never-drawn" => writeln!(
            out,
            "rows list at most {} of {} tokens; the others are never drawn, because the sampler \
             truncates",
            made.listed, made.vocabulary
        )?,
        _ => writeln!(
            out,
            "rows list at most {} of {} tokens",
            made.listed, made.vocabulary
        )?,
    }
    if temperature == 1.0 {
        writeln!(out, "rows are at temperature 1")?;
    } else {
        writeln!(out, "rows are divided by temperature {temperature} already")?;
    }
    if let Some(unlisted) = made.unlisted {
        writeln!(
            out,
            "not listed: on average {:.4} of the target's mass and {:.4} of the draft's, at most \
             {:.4} and {:.4}",
            unlisted.target_mean, unlisted.draft_mean, unlisted.target_max, unlisted.draft_max
        )?;
        writeln!(
            out,
            "both models list the same tokens at {} of {} positions",
            made.same_tokens, made.positions
        )?;
        if unlisted.target_mean.max(unlisted.draft_mean) > 0.01 {
            writeln!(
                out,
                "specgap length asks for nothing but the text's own tokens, and is whole; numbers of \
                 gap, tree and paths come with bounds, which the missing mass makes wide: for \
                 these ask the engine for more tokens"
            )?;
        }
    }
    if let Some(share) = made.engine_acceptance {
        writeln!(
            out,
            "the engine accepted {share:.4} of the tokens that it drafted"
        )?;
    }
    let log = args.out.display();
    writeln!(out, "log: {log}")?;
    match made.rows.as_str() {
        "own tokens" => writeln!(out, "next: specgap length {log} --cost-ratio 0.1")?,
        _ => writeln!(
            out,
            "next: specgap gap {log} --temperature {temperature} --out report"
        )?,
    }
    Ok(())
}
