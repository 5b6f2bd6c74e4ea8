//! `specgap decode`, and what it says where the program cannot run models.

#[cfg(not(feature = "onnx"))]
pub(super) use super::without_models::Arguments as DecodeArgs;
#[cfg(feature = "onnx")]
pub(super) use with_models::{DecodeArgs, run};

#[cfg(not(feature = "onnx"))]
pub(super) fn run(
    _: &DecodeArgs,
    _: &super::options::Common,
) -> Result<super::output::Verdict, super::output::CliError> {
    super::without_models::refuse("decode")
}

#[cfg(feature = "onnx")]
mod with_models {
    use crate::capture::{
        CaptureError, DecodeSettings, Decoded, Decoder, EncodedPrompt, Round, Runtime, Shape,
        StepTimes, Timing, children_of_rule,
    };
    use crate::cli::bound;
    use crate::cli::models::{ModelArgs, Opened, command_line, progress, shown};
    use crate::cli::options::{Common, Format, rule_parser};
    use crate::cli::output::{CliError, Verdict, json_file, read_document, write_together};
    use crate::cli::overwrites::Touched;
    use crate::cli::predicted::{self, Drafted};
    use crate::cli::recorded::file_name;
    use crate::cli::tree::named;
    use crate::page::visible;
    use crate::replay::{
        CountMoments, DraftedTree, Measured, TIMINGS_SCHEMA, Timings, VerifyingPass,
    };
    use crate::rule::RuleName;
    use crate::sampling::Cuts;
    use crate::scheme::SchemeName;
    use crate::tree::{DraftTree, NAMES, Price};
    use crate::verifier::any_of;
    use clap::Args;
    use serde_json::{Value, json};
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;

    /// Arguments of `specgap decode`.
    #[derive(Args, Debug)]
    #[command(
        after_long_help = "The text has the target's law whatever the draft is. Models are as for \
        specgap capture."
    )]
    pub(crate) struct DecodeArgs {
        #[command(flatten)]
        models: ModelArgs,
        /// Tokens of a draft path.
        ///
        /// A chain is one path. A round with n tokens to go drafts at most n - 1.
        #[arg(long, default_value_t = 4, value_name = "K", value_parser = clap::value_parser!(u16).range(0..=1024))]
        length: u16,
        /// Draft paths that start at one place.
        ///
        /// Of --length tokens each.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
        paths: Option<u16>,
        #[arg(long, alias = "topology", value_name = "TREE", conflicts_with_all = ["length", "paths"], help = tree_help())]
        tree: Option<String>,
        /// Which drafts are kept: token (the default), block, carried or carried-block of a chain;
        /// rrs (the default), rrs-wo, level-4, spechub, traversal or traversal-4 (the default of a price) of a
        /// tree; select-block (the default), select-greedy-block, traversal or traversal-4 of paths.
        #[arg(long, alias = "rule", value_name = "VERIFIER", value_parser = rule_parser(|rule| rule.decoded))]
        verifier: Option<RuleName>,
        /// The draft law, where the verifier leaves it open.
        ///
        /// How a tree's children are drawn: with-replacement, without-replacement, hub, stratified or
        /// stratified-independent; as the verifier needs it, if not given.
        #[arg(long = "law", alias = "scheme", value_name = "LAW", value_parser = child_law)]
        scheme: Option<SchemeName>,
        /// Time the target alone too, on the same prompts, and its passes by their
        /// tokens; with --out, write timings.json.
        #[arg(long, conflicts_with_all = ["tree", "paths"])]
        timing: bool,
        /// Run both models over each text once more, and hold its rounds against what the
        /// replay expects of them, given the text.
        #[arg(long)]
        predict: bool,
        /// Say what no lossless verifier of the same trees or paths could keep in rounds that start
        /// with the target's own law, and what each that is known keeps of them. Runs both models over each text once more.
        #[arg(long)]
        bound: bool,
        /// Write decode.json, the rounds of every prompt, here.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    }

    fn tree_help() -> String {
        format!(
            "Draft a tree instead: a file with a list of paths of child ranks, [[0],[1],[0,0]]; a \
             price, which shapes a tree by the draft's rows: best-tree.price.json of specgap tree \
             --price; or a name: {NAMES}"
        )
    }

    /// A price and the law of its drafts, where a file has an object as prices do.
    fn price(name: &str) -> Result<Option<(Price, SchemeName)>, CliError> {
        let path = Path::new(name);
        if !path.exists() {
            return Ok(None);
        }
        let contents = read_document(path)?;
        if !contents.trim_start().starts_with('{') {
            return Ok(None);
        }
        let input = |message: String| CliError::input(path, message);
        let price = Price::from_json(&contents).map_err(input)?;
        let strata = [SchemeName::STRATIFIED, SchemeName::STRATIFIED_INDEPENDENT];
        let law = strata.into_iter().find(|law| law.as_str() == price.law);
        let law = law.ok_or_else(|| {
            let names = any_of(&strata.map(SchemeName::as_str));
            input(format!("law: {}: prices are of {names}", price.law))
        })?;
        Ok(Some((price, law)))
    }

    fn child_law(text: &str) -> Result<SchemeName, String> {
        let mut drawn = (SchemeName::ALL.into_iter()).filter(|law| law.entry().child_by_child);
        let names: Vec<&str> = drawn.clone().map(SchemeName::as_str).collect();
        let law = text.parse().ok();
        (drawn.find(|one| Some(*one) == law)).ok_or_else(|| format!("is {}", any_of(&names)))
    }

    /// What is drafted, the rule, and what the file says of both.
    struct Plan {
        shape: Shape,
        rule: RuleName,
        drafted: Drafted,
        /// The tree's name.
        tree: Option<String>,
    }

    impl DecodeArgs {
        fn plan(&self) -> Result<Plan, CliError> {
            let refused = |why: &str| CliError::from(CaptureError::Setting(why.to_owned()));
            let usual = match (&self.tree, self.paths) {
                (Some(_), _) => RuleName::RRS,
                (None, Some(_)) => RuleName::SELECT_BLOCK,
                (None, None) => RuleName::TOKEN,
            };
            let price = self.tree.as_deref().map(price).transpose()?.flatten();
            let usual = price.as_ref().map_or(usual, |_| RuleName::TRAVERSAL_4);
            let rule = self.verifier.unwrap_or(usual);
            let law = self.scheme.unwrap_or_else(|| match &price {
                Some((_, law)) => *law,
                None => children_of_rule(rule),
            });
            let length = usize::from(self.length);
            let (shape, drafted, tree) = match (&self.tree, self.paths) {
                (Some(name), _) => {
                    let (shape, name) = match price {
                        Some((_, own)) if own != law => {
                            return Err(refused(&format!(
                                "--law {law}: {name} is a price of {own} drafts, as all prices are \
                                 of strata: leave --law out"
                            )));
                        }
                        Some((price, _)) => {
                            let name = file_name(Path::new(name));
                            (Shape::Priced(Box::new(price), law), name)
                        }
                        None => {
                            let named = named("--tree", name)?;
                            (Shape::Tree(named.tree.shape(), law), named.name)
                        }
                    };
                    (shape, Drafted::Tree, Some(name))
                }
                (None, Some(paths)) => {
                    if length == 0 {
                        return Err(refused(
                            "paths of 0 tokens: --length must be >= 1 with --paths",
                        ));
                    }
                    let tree = DraftTree::of_paths(paths.into(), length)
                        .map_err(|error| refused(&error.to_string()))?;
                    let shape = Shape::Tree(tree.shape(), law);
                    let drafted = if rule == RuleName::SELECT_BLOCK {
                        Drafted::Paths([paths.into(), length])
                    } else {
                        Drafted::Tree
                    };
                    (shape, drafted, None)
                }
                (None, None) => (Shape::Chain(length), Drafted::Chain(length), None),
            };
            if self.scheme.is_some() && matches!(shape, Shape::Chain(_)) {
                return Err(refused(
                    "--law says how a node's children are drawn; a chain has one: leave it out",
                ));
            }
            if self.bound && matches!(shape, Shape::Chain(_)) {
                return Err(refused(
                    "--bound is about trees and several paths; what one path could give is \
                     greedy-block's number of specgap length: give --tree or --paths, or leave it out",
                ));
            }
            if self.bound && rule == RuleName::SELECT_GREEDY_BLOCK {
                return Err(refused(
                    "--bound is about rounds that begin with the target's own law; those of \
                     select-greedy-block begin with what the rounds before changed it to: give \
                     --verifier select-block, whose paths it also says select-greedy-block's number \
                     of, or leave --bound out",
                ));
            }
            if let Some(message) = predicted::refused(rule, law).filter(|_| self.predict) {
                return Err(refused(&message));
            }
            Ok(Plan {
                shape,
                rule,
                drafted,
                tree,
            })
        }
    }

    /// What is written into `--out`.
    const OWN_FILES: [&str; 2] = ["decode.json", "timings.json"];

    /// Passes of each length that are timed a prompt.
    const PASSES: usize = 3;

    pub(crate) fn run(args: &DecodeArgs, common: &Common) -> Result<Verdict, CliError> {
        let models = &args.models;
        let plan = args.plan()?;
        let settings = DecodeSettings {
            sampling: models.sampling()?,
            seed: common.seed,
            max_tokens: models.max_tokens as usize,
            drafts: plan.shape.clone(),
            rule: plan.rule,
            note_trees: args.bound,
            vocabulary: models.kept.vocab,
        };
        if args.timing && (args.length == 0 || models.max_tokens < 2) {
            return Err(CaptureError::Setting(
                "--timing times drafts: it needs --length and --max-tokens of 1 and 2 \
                          at least"
                    .to_owned(),
            )
            .into());
        }
        let files = [&models.target, &models.tokenizer, &models.prompts];
        // Where this is a name, there is no such file.
        let tree = args.tree.iter().map(PathBuf::from);
        (Touched::reading(files.into_iter().chain(&models.draft)).and_reading(tree))
            .folder(args.out.as_deref(), |name| OWN_FILES.contains(&name))
            .check()?;
        models.refuse_several("decode")?;
        let (prompts, codec) = models.read()?;
        let (opened, ()) = models.open(common, || Ok(()))?;
        let Opened {
            runtime,
            target,
            draft,
            interrupt,
            ..
        } = opened;
        let mut decoder = Decoder::new(target, draft, codec, settings)?;
        let encoded = decoder.codec().encode(&prompts, decoder.vocabulary())?;
        models.check_lengths(&encoded, [decoder.target(), decoder.draft()], 0, common)?;
        let ways = if args.timing { 2 } else { 1 };
        let tokens = encoded.len().saturating_mul(models.max_tokens as usize);
        let bar = progress("decoding", tokens.saturating_mul(ways), shown(common));
        let mut watch = |tokens, saved| {
            bar.inc(tokens as u64);
            bar.dec_length(saved as u64);
        };
        let flag = interrupt.flag();
        let texts = decode_all(args, &plan, &mut decoder, &encoded, flag, &mut watch);
        bar.finish_and_clear();
        let texts = match texts {
            Err(CaptureError::Interrupted) => {
                return Err(interrupt.error(
                    "interrupted; nothing was written, as times of a part are not those of the \
                     whole; the same command again begins anew"
                        .to_owned(),
                ));
            }
            texts => texts?,
        };
        let timings = if args.timing {
            timings(decoder.times())
        } else {
            None
        };
        let object = object(
            args,
            &plan,
            common,
            &decoder,
            &runtime,
            &texts,
            timings.as_ref(),
        );
        if let Some(out) = &args.out {
            let mut files = vec![(OWN_FILES[0].to_owned(), json_file(&object)?)];
            if let Some(timings) = &timings {
                files.push((OWN_FILES[1].to_owned(), json_file(timings)?));
            }
            write_together(out, &files)?;
        }
        let mut out = crate::cli::colour::plain();
        match common.format {
            Format::Json => writeln!(out, "{object}")?,
            Format::Text => print(&mut out, common, &plan, &decoder, &texts, &object)?,
        }
        Ok(Verdict::Agrees)
    }

    /// Makes what `length --timings` reads: medians of all steps. Nothing if some kind of step was
    /// never run, as where every text is one token.
    fn timings(times: &StepTimes) -> Option<Timings> {
        let measured = |seconds: &[f64]| {
            Timing::of(seconds).map(|timing| Measured {
                seconds: timing.median,
                standard_error: timing.standard_error,
            })
        };
        let passes = times.verify.iter().map(|(&tokens, seconds)| {
            measured(seconds).map(|time| VerifyingPass {
                tokens,
                seconds: time.seconds,
                standard_error: time.standard_error,
            })
        });
        Some(Timings {
            schema: TIMINGS_SCHEMA,
            target_step: measured(&times.target_alone)?,
            draft_step: measured(&times.draft)?,
            verify: passes.collect::<Option<_>>()?,
            overhead: measured(&times.other)?,
            rules: Vec::new(),
        })
    }

    /// A prompt's text in rounds, with what was expected of them and the target's own text
    /// where these were asked for.
    struct Texts {
        rounds: Decoded,
        expected: Option<CountMoments<f64>>,
        alone: Option<Decoded>,
        trees: Vec<DraftedTree>,
    }

    fn decode_all(
        args: &DecodeArgs,
        plan: &Plan,
        decoder: &mut Decoder,
        prompts: &[EncodedPrompt],
        interrupt: &AtomicBool,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Texts>, CaptureError> {
        let most = args.models.max_tokens as usize;
        let mut texts = Vec::with_capacity(prompts.len());
        for prompt in prompts {
            // One after the other, so that what slows the machine slows both.
            let rounds = decoder.decode(prompt, interrupt, &mut |tokens| watch(tokens, 0))?;
            watch(0, most - rounds.tokens.len());
            let expected = if args.predict {
                predicted::of_text(decoder, prompt, &rounds, &plan.drafted, interrupt)?
            } else {
                None
            };
            let alone = if args.timing {
                let alone =
                    decoder.alone(prompt, PASSES, interrupt, &mut |tokens| watch(tokens, 0))?;
                watch(0, most - alone.tokens.len());
                Some(alone)
            } else {
                None
            };
            let trees = if args.bound {
                bound::of_text(decoder, prompt, &rounds, interrupt)?
            } else {
                Vec::new()
            };
            texts.push(Texts {
                rounds,
                expected,
                alone,
                trees,
            });
        }
        Ok(texts)
    }

    fn object(
        args: &DecodeArgs,
        plan: &Plan,
        common: &Common,
        decoder: &Decoder,
        runtime: &Runtime,
        texts: &[Texts],
        timings: Option<&Timings>,
    ) -> Value {
        let of_prompt = |texts: &Texts| {
            let Texts {
                rounds: text,
                expected,
                alone,
                ..
            } = texts;
            let sum = |part: fn(&Round) -> f64| -> f64 { text.rounds.iter().map(part).sum() };
            let rounds: Vec<_> = text
                .rounds
                .iter()
                .map(|round| {
                    json!({
                        "start": round.start,
                        "drafted": round.drafted(),
                        "accepted": round.accepted,
                        "tokens": round.tokens,
                    })
                })
                .collect();
            json!({
                "prompt": text.prompt,
                "id": text.id,
                "prompt_tokens": text.prompt_tokens,
                "tokens": text.tokens.len(),
                "stopped": text.stopped,
                "calls": text.rounds.len(),
                "draft_tokens": drafted(text),
                "draft_tokens_in_text": text.drafts_in_text(),
                "accepted": accepted(text),
                "predicted": expected.as_ref().map(predicted::object),
                "seconds": {
                    "all": text.seconds,
                    "draft": sum(|round| round.draft_seconds),
                    "verify": sum(|round| round.verify_seconds),
                    "other": sum(|round| round.other_seconds),
                    "prompt": text.prompt_seconds,
                },
                "alone": alone.as_ref().map(|alone| json!({
                    "tokens": alone.tokens.len(),
                    "seconds": alone.seconds,
                })),
                "text": decoder.codec().decode(&text.tokens),
                "token_ids": text.tokens,
                "rounds": rounds,
            })
        };
        let sampling = decoder.settings().sampling;
        let count = |part: fn(&Decoded) -> usize| -> usize {
            texts.iter().map(|texts| part(&texts.rounds)).sum()
        };
        let tokens = count(|text| text.tokens.len());
        let calls = count(|text| text.rounds.len());
        let seconds: f64 = texts.iter().map(|texts| texts.rounds.seconds).sum();
        let alone: Vec<_> = texts
            .iter()
            .filter_map(|texts| texts.alone.as_ref())
            .collect();
        let tokens_alone: usize = alone.iter().map(|alone| alone.tokens.len()).sum();
        let seconds_alone: f64 = alone.iter().map(|alone| alone.seconds).sum();
        let speed = ratio(tokens as f64, seconds);
        let speed_alone = ratio(tokens_alone as f64, seconds_alone);
        let drafts = count(drafted);
        json!({
            "schema": 1,
            "tool": crate::log::tool(),
            "command": command_line(),
            "target": file_name(&args.models.target),
            "draft": args.models.draft.first().map(|draft| file_name(draft)),
            "runtime": format!("ONNX Runtime {}", runtime.version()),
            "provider": decoder.target().placement().device.provider(),
            "temperature": sampling.temperature(),
            "top_k": sampling.top_k(),
            "top_p": sampling.top_p(),
            "cut_order": sampling.cuts().map(Cuts::order),
            "seed": common.seed,
            "max_tokens": args.models.max_tokens,
            "length": plan.tree.is_none().then_some(args.length),
            "tree": plan.tree,
            "verifier": decoder.settings().rule.as_str(),
            "paths": args.paths,
            "scheme": plan.shape.tree().map(|(_, law)| law.as_str()),
            "totals": {
                "prompts": texts.len(),
                "tokens": tokens,
                "calls": calls,
                "draft_tokens": drafts,
                "draft_tokens_in_text": count(Decoded::drafts_in_text),
                "accepted": count(accepted),
                "tokens_per_call": ratio(tokens as f64, calls as f64),
                "verification_rate": ratio(calls as f64, tokens as f64),
                "discard_rate": ratio((drafts + calls) as f64 - tokens as f64, tokens as f64),
                "seconds": seconds,
                "tokens_per_second": speed,
            },
            "predicted": args.predict.then(|| {
                predicted::totals(texts.iter().filter_map(|texts| {
                    Some((&texts.rounds, texts.expected.as_ref()?))
                }))
            }),
            "bound": args.bound.then(|| {
                let trees: Vec<_> = texts.iter().flat_map(|texts| texts.trees.clone()).collect();
                bound::object(&trees, texts.iter().map(|texts| &texts.rounds))
            }),
            "alone": args.timing.then(|| json!({
                "tokens": tokens_alone,
                "seconds": seconds_alone,
                "tokens_per_second": speed_alone,
            })),
            "speedup": speed.zip(speed_alone).map(|(speed, alone)| speed / alone),
            "timings": timings,
            "prompts": texts.iter().map(of_prompt).collect::<Vec<_>>(),
        })
    }

    fn drafted(text: &Decoded) -> usize {
        text.rounds.iter().map(Round::drafted).sum()
    }

    fn accepted(text: &Decoded) -> usize {
        text.rounds.iter().map(|round| round.accepted).sum()
    }

    fn ratio(above: f64, below: f64) -> Option<f64> {
        (below > 0.0).then(|| above / below)
    }

    fn print(
        out: &mut impl Write,
        common: &Common,
        plan: &Plan,
        decoder: &Decoder,
        texts: &[Texts],
        object: &Value,
    ) -> io::Result<()> {
        if !common.quiet {
            for Texts { rounds: text, .. } in texts {
                writeln!(out, "[{}]", visible(text.id.clone()))?;
                writeln!(out, "{}", visible(decoder.codec().decode(&text.tokens)))?;
            }
        }
        let totals = &object["totals"];
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        writeln!(
            out,
            "{} prompts, {} tokens in {} target calls ({:.3} a call), {} drafts of which {} kept \
             (verifier {}, {}); {:.1} tokens/s on {}{}",
            totals["prompts"],
            totals["tokens"],
            totals["calls"],
            number(&totals["tokens_per_call"]),
            totals["draft_tokens"],
            totals["accepted"],
            decoder.settings().rule.as_str(),
            match (&plan.tree, object["paths"].as_u64(), &object["length"]) {
                (Some(tree), ..) => format!("tree {tree}"),
                (None, Some(paths), length) => format!("{paths} paths of {length}"),
                (None, None, length) => format!("length {length}"),
            },
            number(&totals["tokens_per_second"]),
            decoder.target().placement().device.provider(),
            match object["speedup"].as_f64() {
                Some(speedup) => format!(
                    ", {speedup:.3} times the target alone ({:.1} tokens/s)",
                    number(&object["alone"]["tokens_per_second"])
                ),
                None => String::new(),
            }
        )?;
        if object["bound"].is_object() {
            for line in bound::in_words(&object["bound"]) {
                writeln!(out, "{line}")?;
            }
        }
        if object["predicted"].is_object() {
            writeln!(out, "{}", predicted::in_words(&object["predicted"]))?;
        }
        Ok(())
    }
}
