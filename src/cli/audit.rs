//! `specgap audit`: whether an engine samples what it claims.

use super::counters::counted;
use super::options::{Common, DraftCuts, Folder, Format, Kept, Ordered};
use super::output::{CliError, Verdict, write_whole};
use super::overwrites::Touched;
use super::parts::Parted;
use super::printed::{self, print_report};
use super::recorded::{Recorded, file_name};
use crate::audit::{
    AuditReport, Claimed, Conclusion, Counts, CountsReport, Evidence, Records, Rule, Seeds,
    Settings, audit_counts, audit_read, audit_records, claimed_of, held_to_plain, negative_control,
};
use crate::files::read_lines;
use crate::gap::Part;
use crate::log::{FileDigest, Log};
use crate::page::is_of_a_page;
use crate::report::audit as report;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Arguments of `specgap audit`.
#[derive(Args, Debug)]
#[command(after_long_help = printed::definitions(report::definitions()))]
pub(super) struct AuditArgs {
    /// A log with the tensors drafts, output and accepted, or with output or token alone; or a
    /// .csv file of records (docs/reference/audit.md).
    ///
    /// Exit code 0: as claimed, or lossless by another rule (a warning); 1: lossy, or not the
    /// rule; 4: undecided, with what would decide.
    #[arg(value_name = "LOG")]
    log: PathBuf,
    #[arg(long, value_name = "RULE", value_parser = Rule::from_str, help = rule_names(), long_help = rules())]
    rule: Option<Rule>,
    /// The draft law, where the verifier leaves it open.
    ///
    /// level-4 is of stratified drafts (a token across a cut at most once) and of
    /// stratified-independent ones. The rule's first law, if not given.
    #[arg(long = "law", alias = "scheme", value_name = "LAW")]
    scheme: Option<String>,
    /// Whether each request drew random numbers of its own (fresh), or any two may have drawn the
    /// same (shared); what the log says, if not given, and shared where it does not.
    #[arg(long, value_name = "fresh|shared", value_parser = Seeds::from_str)]
    seeds: Option<Seeds>,
    /// The noise of another pass of the models on each logit, as a standard deviation: what the
    /// engine's rows may differ from the log's.
    ///
    /// 0 where the log says that its rows are the engine's (rows_from), and 0.1 where it does not.
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Of records: how much the mean of a score may differ before it counts.
    #[arg(long, value_name = "EPS", default_value_t = Settings::TOLERANCE, allow_negative_numbers = true)]
    tolerance: f64,
    /// What has to be excluded before anything is as claimed: a total variation of a step's
    /// outputs from p. Else the verdict is undecided.
    #[arg(long, value_name = "TV", default_value_t = Settings::EXCLUDE, allow_negative_numbers = true)]
    exclude: f64,
    /// Fail a lossless rule that is not the claimed one, too.
    #[arg(long)]
    strict: bool,
    /// The probability with which an honest engine is refuted, at most.
    #[arg(long, value_name = "A", default_value_t = Settings::ALPHA, allow_negative_numbers = true)]
    alpha: f64,
    /// What a server counted of its rounds (docs/guide/counters.md), held against the acceptance
    /// that --rule has on the log's texts and rows; needs no drafts in the log. Given twice: what
    /// was counted between the two.
    #[arg(long, value_name = "FILE")]
    counters: Vec<PathBuf>,
    /// A log with the text that the target wrote alone with the same seeds: every token has to be
    /// the same, by prompt_id and position.
    ///
    /// As where draft and target share their noise (docs/theory/shared-noise.md), or at temperature
    /// 0. It says nothing of p: audit that text too.
    #[arg(long, value_name = "LOG")]
    plain: Option<PathBuf>,
    /// Write what was checked as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a Markdown block to paste into an issue; - prints it.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also tamper with the log in every listed way: each has to be refused, or the exit code
    /// is 1.
    #[arg(long)]
    negative_control: bool,
    /// Temperature of both models, at which the text is drawn.
    ///
    /// Where the log does not say. The draft may have one of its own.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// The draft's temperature, with the target's left as it is.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    draft_temperature: Option<f64>,
    /// Sample from the K most probable tokens of a row (top-k).
    ///
    /// As the engine does.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Sample from the fewest most probable tokens with a mass of P, behind top-k (top-p).
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f64>,
    /// Sample from the tokens with at least P times the largest probability, behind top-p (min-p).
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f64>,
    #[command(flatten)]
    ordered: Ordered,
    /// The draft's row is cut by top-k, top-p and min-p too.
    #[arg(long, conflicts_with_all = ["draft_top_k", "draft_top_p", "draft_min_p"])]
    draft_cut: bool,
    #[command(flatten)]
    draft: DraftCuts,
    /// The log's masks (`allowed`) are the draft's too, and not the target's alone.
    #[arg(long)]
    draft_mask: bool,
    /// Token that ends a text.
    ///
    /// By their ids, beside those in the log's metadata.
    #[arg(long, value_name = "TOKEN,...", value_delimiter = ',')]
    stop: Vec<u32>,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    pub(super) parted: Parted,
    #[command(flatten)]
    pub(super) folder: Folder,
}

/// The most bytes of a line of records.
const LONGEST_RECORD: u64 = 1 << 16;

fn rule_names() -> String {
    let names: Vec<&str> = Rule::entries().map(|rule| rule.name).collect();
    format!(
        "What the engine says that it does, one of {}; text, if the log has no drafts",
        names.join(", ")
    )
}

fn rules() -> String {
    let mut help =
        "What the engine says that it does; text, if the log has no drafts:\n".to_owned();
    for rule in Rule::entries() {
        help.push_str(&format!("- {}: {}\n", rule.name, rule.words));
    }
    help
}

impl AuditArgs {
    /// The rule that is named, or that a log without drafts leaves.
    fn rule(&self, has_drafts: bool) -> Result<Rule, CliError> {
        let refused = |why: &str| Err(CliError::input(&self.log, why));
        match (self.rule, &self.scheme) {
            // The rule is of what was counted, and the text alone can be audited beside it.
            (Some(_), None) if !self.counters.is_empty() && !has_drafts => Ok(Rule::TEXT),
            (Some(rule), None) => Ok(rule),
            (Some(rule), Some(law)) => rule
                .under(law)
                .map_err(|message| CliError::input(&self.log, format!("⟨law⟩: {message}"))),
            (None, Some(_)) => refused(
                "⟨law⟩ says how the drafts of a rule are drawn: name the rule by \
                 ⟨rule⟩, such as ⟨rule level-4⟩",
            ),
            (None, None) if !self.counters.is_empty() => refused(
                "⟨counters⟩ is held against a rule: say by ⟨rule⟩ what the server says \
                 that it does with its drafts: token, block or one-hot",
            ),
            (None, None) if !has_drafts => Ok(Rule::TEXT),
            (None, None) => refused(
                "has drafts: say by ⟨rule⟩ what the engine says that it does with them, \
                 such as ⟨rule token⟩, or ⟨rule text⟩ to audit what came out alone",
            ),
        }
    }

    fn settings(
        &self,
        rule: Rule,
        log: Option<&Log>,
        common: &Common,
    ) -> Result<Settings, CliError> {
        let mut settings = Settings {
            tolerance: self.tolerance,
            noise: self.noise,
            exclude: self.exclude,
            strict: self.strict,
            alpha: self.alpha,
            stop: self.stop.clone(),
            seed: common.seed,
            seeds: self.seeds,
            ..Settings::new(rule)
        };
        let asked = self.temperature.is_some()
            || self.draft_temperature.is_some()
            || self.top_k.is_some()
            || self.top_p.is_some()
            || self.min_p.is_some()
            || self.ordered.cut_order.is_some()
            || self.draft_cut
            || !self.draft.cuts(&self.ordered).keep_all()
            || self.draft_mask;
        if let Some(log) = log
            && asked
        {
            // What the command line says goes before what the log says.
            let said = match (self.temperature, claimed_of(log, &settings)) {
                (_, Ok(said)) => said,
                // Such as a log of greedy text: the temperature that is given stands.
                (Some(temperature), Err(_)) => Claimed::at(temperature),
                (None, Err(error)) => return Err(error.into()),
            };
            let temperature = self.temperature.unwrap_or(said.temperature);
            settings.claimed = Some(Claimed {
                temperature,
                draft_temperature: self.draft_temperature.unwrap_or(temperature),
                top_k: self.top_k.or(said.top_k),
                top_p: self.top_p.or(said.top_p),
                min_p: self.min_p.or(said.min_p),
                cut_order: self.ordered.cut_order.or(said.cut_order),
                draft_cut: self.draft_cut,
                draft_top_k: self.draft.draft_top_k,
                draft_top_p: self.draft.draft_top_p,
                draft_min_p: self.draft.draft_min_p,
                draft_mask: self.draft_mask,
            });
        } else if asked {
            return Err(CliError::input(
                &self.log,
                "is a file of records, whose p and q are what the engine sampled from; \
                 ⟨temperature⟩, ⟨top-k⟩ and the like are for logs of rows",
            ));
        }
        Ok(settings)
    }

    /// Holds what a server counted against the rows.
    fn counted(&self, log: &Log, settings: &Settings) -> Result<Option<CountsReport>, CliError> {
        let (Some(rule), false) = (self.rule, self.counters.is_empty()) else {
            return Ok(None);
        };
        let counted = counted(&self.counters, None, &[])?;
        let Some(length) = counted.length else {
            return Err(CliError::input(
                self.counters.first().cloned().unwrap_or_default(),
                "does not tell how many tokens a round drafts, which acceptance follows \
                 from; count by place, as GET /metrics of vLLM or llama.cpp's server does",
            ));
        };
        let total = counted.total();
        let names: Vec<String> = self.counters.iter().map(|path| file_name(path)).collect();
        let counts = Counts {
            files: names.join(", "),
            rounds: total.rounds,
            drafted: total.drafted,
            accepted: total.accepted,
            length,
            reached: total.reached.unwrap_or_default(),
        };
        let settings = Settings {
            rule,
            ..settings.clone()
        };
        Ok(Some(audit_counts(log, &settings, &counts)?))
    }

    /// The command that makes the report.
    fn command(&self) -> String {
        let mut command = Recorded::new("audit", std::slice::from_ref(&self.log));
        let changed = |value: f64, usual: f64| (value != usual).then_some(value);
        command
            .option("rule", self.rule)
            .option("law", self.scheme.as_ref())
            .option("seeds", self.seeds)
            .number("noise", self.noise)
            .number("tolerance", changed(self.tolerance, Settings::TOLERANCE))
            .number("exclude", changed(self.exclude, Settings::EXCLUDE))
            .flag("strict", self.strict)
            .number("alpha", changed(self.alpha, Settings::ALPHA))
            .number("temperature", self.temperature)
            .number("draft-temperature", self.draft_temperature)
            .option("top-k", self.top_k)
            .number("top-p", self.top_p)
            .number("min-p", self.min_p)
            .option("cut-order", self.ordered.cut_order)
            .list("stop", &self.stop)
            .option("vocab", self.kept.vocab)
            .flag("draft-cut", self.draft_cut)
            .option("draft-top-k", self.draft.draft_top_k)
            .number("draft-top-p", self.draft.draft_top_p)
            .number("draft-min-p", self.draft.draft_min_p)
            .flag("draft-mask", self.draft_mask)
            .flag("negative-control", self.negative_control);
        command.option("plain", self.plain.as_deref().map(file_name));
        for file in &self.counters {
            command.option("counters", Some(file_name(file)));
        }
        command.into_line()
    }
}

pub(super) fn run(args: &AuditArgs, common: &Common) -> Result<Verdict, CliError> {
    let markdown = (args.markdown.as_deref()).filter(|path| *path != Path::new("-"));
    (args.parted.touched(Touched::reading([&args.log])))
        .and_reading(&args.counters)
        .and_reading(&args.plain)
        .writing("⟨junit⟩", args.junit.as_deref())
        .writing("⟨markdown⟩", markdown)
        .folder(args.folder.out.as_deref(), is_of_a_page)
        .check()?;
    let records = args
        .log
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let command = args.command();
    let made = if records {
        let text = read_lines(&args.log, LONGEST_RECORD)
            .map_err(|source| CliError::unread(&args.log, source))?;
        let refused = |why| {
            Err(CliError::input(
                &args.log,
                format!("is a file of records{why}"),
            ))
        };
        if !args.counters.is_empty() {
            return refused("; ⟨counters⟩ is held against the rows of a log");
        }
        if args.parted.is_a_part() {
            return refused(", which have no rows to read in parts; leave ⟨partial⟩ out");
        }
        if args.plain.is_some() {
            return refused(", without tokens; ⟨plain⟩ is for logs of rows");
        }
        if args.negative_control {
            return refused("; a negative control plays engines on rows, so log rows for it");
        }
        let records = Records::parse(&args.log, &text)?;
        let has_drafts = records.records.iter().any(|record| record.draft.is_some());
        let settings = args.settings(args.rule(has_drafts)?, None, common)?;
        AuditReport {
            files: vec![FileDigest::of_bytes(&args.log, text.as_bytes())],
            ..audit_records(&records, &settings, &command)?
        }
    } else {
        let log =
            (common.open(&args.log, args.kept.vocab)).map_err(crate::audit::AuditError::from)?;
        let rule = args.rule(log.engine_tensors().contains(&"drafts"))?;
        let settings = args.settings(rule, Some(&log), common)?;
        let parted = &args.parted;
        let bar = common.progress(log.positions());
        let read = |part: Part| {
            let positions = part.of(log.positions());
            Ok(Evidence::read(&log, &settings, positions, &|done| {
                bar.inc(done)
            })?)
        };
        if parted.keep(read, &command, common)? {
            bar.finish_and_clear();
            return Ok(Verdict::Agrees);
        }
        let found = audit_read(&log, &settings, parted.evidence(), &command, &|done| {
            bar.inc(done)
        })?;
        bar.finish_and_clear();
        let found = if args.negative_control {
            found.with_control(negative_control(&log, &settings)?)
        } else {
            found
        };
        let found = match &args.plain {
            Some(path) => {
                let plain =
                    (common.open(path, args.kept.vocab)).map_err(crate::audit::AuditError::from)?;
                found.with_plain(held_to_plain(&log, &plain)?)
            }
            None => found,
        };
        match args.counted(&log, &settings)? {
            Some(counts) => found.with_counts(counts),
            None => found,
        }
    };
    let page = report::page(&made);
    if let Some(folder) = &args.folder.out {
        args.folder
            .write(folder, &args.folder.files(&page, &made)?)?;
    }
    if let Some(path) = &args.junit {
        write_whole(path, report::junit(&made).as_bytes())?;
    }
    let block = report::issue(&made);
    if let Some(path) = markdown {
        write_whole(path, block.as_bytes())?;
    }
    if common.quiet && common.format == Format::Text {
        writeln!(super::colour::plain(), "{}", report::conclusion(&made))?;
    }
    print_report(&made, &page, args.folder.out.as_deref(), common)?;
    if args.markdown.is_some() && markdown.is_none() && common.format == Format::Text {
        write!(super::colour::plain(), "\n{block}")?;
    }
    Ok(match (made.ok, made.conclusion) {
        (true, Conclusion::Undecided) => Verdict::Undecided,
        (ok, _) => Verdict::of(ok),
    })
}
