//! `specgap gap`: logged rows to a report.

use super::colour;
use super::host::{Host, MadeReport};
use super::options::{Common, Counts, DraftCuts, Folder, Format, Kept, Ordered, Results};
use super::output::{
    CliError, Verdict, check_folder, progress, read_document, stage, unwritten, write_whole,
};
use super::overwrites::Touched;
use super::parts::part;
use super::printed::{self, deliver, print_report};
use super::table::Table;
use crate::gap::{
    self, GapError, GapReport, Pairing, Part, PositionSink, Settings, SlowRates, SolvedPlans,
    Summary,
};
use crate::log::Log;
use crate::page::visible;
use crate::report;
use crate::sampling::Cuts;
use crate::scheme::SchemeName;
use crate::typed;
use crate::verifier::VerifierName;
use crate::whole::{Asked, Given};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

/// Arguments of `specgap gap`.
#[derive(Args, Debug)]
#[command(after_long_help = definitions())]
pub struct GapArgs {
    /// Logs: .safetensors or .npz files, or directories with a log.json. Several are
    /// measured each by itself and compared; each one's report is in a folder of its name.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    results: Results,
    /// Depths of a round whose rows are measured, of logs that have a row of the draft for each
    /// depth [default: 1]. Several are measured each by itself and compared.
    #[arg(
        long,
        value_name = "D,...",
        value_delimiter = ',',
        conflicts_with = "pool"
    )]
    depth: Vec<Counts>,
    /// Refuse logs that are not of the same text as the first, so that every difference is of
    /// the same positions: drafts of one capture.
    #[arg(long, conflicts_with = "pool")]
    paired: bool,
    /// Read the I-th of K parts alone, for `specgap merge`.
    ///
    /// Parts are stretches of equal length of every log's positions.
    #[arg(long, value_name = "I/K", value_parser = part, requires = "partial", conflicts_with_all = ["out", "baseline"])]
    shard: Option<Part>,
    /// Write a row for each position, temperature and number of drafts: comma-separated, or
    /// Parquet if the name ends in .parquet.
    #[arg(long, value_name = "FILE")]
    positions: Option<PathBuf>,
}

impl GapArgs {
    /// Reads what is asked, as far as no log is open.
    fn asked(&self, common: &Common) -> Result<Asked, CliError> {
        let asked = Asked {
            depths: Counts::all(&self.depth).into_iter().collect(),
            paired: self.paired,
            given: self.results.given(common)?,
            ..self.measure.asked(common)?
        };
        asked.given.costs(&asked.settings.drafts)?;
        Ok(asked)
    }

    fn part(&self) -> Part {
        self.shard.unwrap_or(Part::WHOLE)
    }
}

/// The options of a command line of `gap`, for a program that has the logs itself.
#[derive(Debug)]
pub struct GapOptions {
    pub(super) args: Box<GapArgs>,
    pub(super) common: Common,
}

impl GapOptions {
    /// Reads what is asked of logs.
    ///
    /// # Errors
    /// Settings out of range; files of times that cannot be read, or lack some.
    pub fn asked(&self) -> Result<Asked, CliError> {
        self.args.asked(&self.common)
    }

    /// The report of a summary, compared with a baseline if one is named.
    ///
    /// # Errors
    /// As [`GapOptions::asked`]; files that cannot be read or written.
    pub fn report(&self, summary: &Summary) -> Result<MadeReport, CliError> {
        let results = &self.args.results;
        let (given, baseline) = (results.given(&self.common)?, read_baseline(results)?);
        let verdict = finish(summary, &given, baseline.as_ref(), results, &self.common)?;
        let made = self.common.host.as_ref().and_then(Host::made);
        let made = made.ok_or_else(|| CliError::internal("gap made no report"))?;
        Ok(MadeReport {
            ok: verdict == Verdict::Agrees,
            ..made
        })
    }
}

/// What to measure; shared with `specgap demo`.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Numbers of drafts, 1 to 64; 2-4 is 2,3,4.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "2-4"
    )]
    drafts: Vec<Counts>,
    /// Temperature of both models, at which the text is drawn.
    ///
    /// Each is measured; at 0 both draw their most probable token [default: the one at which the
    /// log's text was sampled, with its cuts; 0.7,1.0 if it does not say].
    #[arg(
        long,
        value_name = "T,...",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    temperature: Vec<f64>,
    /// Draft laws to take, instead of the usual ones.
    ///
    /// All but stratified-independent if not given.
    #[arg(long = "laws", alias = "schemes", value_name = "NAME,...", value_delimiter = ',', value_parser = schemes())]
    schemes: Vec<SchemeName>,
    /// Verifiers to take, instead of the usual ones.
    #[arg(
        long,
        alias = "rules",
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = verifiers(),
        long_help = verifiers_help()
    )]
    verifiers: Vec<VerifierName>,
    /// Sample from the K most probable tokens of a row (top-k).
    ///
    /// Of both models, behind the temperature.
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
    /// The draft's temperature, with the target's left as it is.
    ///
    /// Measured again at each: what another one would give, without a capture.
    #[arg(
        long,
        value_name = "T,...",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    draft_temperature: Vec<f64>,
    #[command(flatten)]
    draft: DraftCuts,
    /// Where the plans of i.i.d. drafts, by rule level, are solved. That they accept alpha* is a
    /// theorem, so that a plan is a check: at some positions, or at every one.
    #[arg(long, value_name = "WHERE", default_value = SolvedPlans::default().as_str(), value_parser = solved_plans())]
    plans: SolvedPlans,
    /// How rrs-wo is computed from three drafts on: fast, an estimate that is checked at some
    /// positions against the enclosure, or enclosed at every position.
    #[arg(long, value_name = "HOW", default_value = SlowRates::default().as_str(), value_parser = slow_rates())]
    rrs_wo: SlowRates,
    /// Length L of the blocks whose bounds are estimated from sampled text.
    #[arg(long, value_name = "L", default_value_t = Settings::BLOCK_LENGTH as u16, value_parser = clap::value_parser!(u16).range(1..=64))]
    block_length: u16,
    /// Put the time of the optimal plans' solves into the report, which then
    /// differs from run to run.
    #[arg(long = "solve-times", alias = "timing")]
    timing: bool,
}

/// The schemes of a log's drafts, with their words.
pub(super) fn schemes() -> impl TypedValueParser<Value = SchemeName> {
    PossibleValuesParser::new(
        Settings::all_schemes()
            .into_iter()
            .map(|scheme| PossibleValue::new(scheme.as_str()).help(scheme.law())),
    )
    .try_map(|name| SchemeName::from_str(&name))
}

/// All verifiers, with their words.
pub(super) fn verifiers() -> impl TypedValueParser<Value = VerifierName> {
    PossibleValuesParser::new(VerifierName::ALL.map(|name| {
        let words = format!("{}; for {}", name.words(), name.draft_schemes());
        let value = PossibleValue::new(name.as_str()).help(words);
        value.aliases(name.entry().rule.entry().aliases)
    }))
    .try_map(|name| VerifierName::from_str(&name))
}

fn slow_rates() -> impl TypedValueParser<Value = SlowRates> {
    PossibleValuesParser::new([
        PossibleValue::new(SlowRates::Fast.as_str())
            .help("Gauss rules, or a mean with controls above 6 drafts: an audited estimate"),
        PossibleValue::new(SlowRates::Enclosed.as_str())
            .help("rigorous bounds, or a Monte Carlo interval above 4 drafts"),
    ])
    .try_map(|word| SlowRates::from_str(&word))
}

fn solved_plans() -> impl TypedValueParser<Value = SolvedPlans> {
    PossibleValuesParser::new([
        PossibleValue::new(SolvedPlans::Audited.as_str())
            .help("where fast rates are audited; optimal accepts alpha*, with its enclosure"),
        PossibleValue::new(SolvedPlans::Every.as_str())
            .help("at every position; optimal accepts what its plans do"),
    ])
    .try_map(|word| SolvedPlans::from_str(&word))
}

fn verifiers_help() -> String {
    let usual = Settings::verifiers();
    let others: Vec<&str> = VerifierName::ALL
        .into_iter()
        .filter(|name| !usual.contains(name))
        .map(VerifierName::as_str)
        .collect();
    let but = if others.is_empty() {
        String::new()
    } else {
        format!(" but {}", others.join(", "))
    };
    format!("Verifiers to take, instead of the usual ones. All{but} if not given")
}

impl MeasureArgs {
    fn asked(&self, common: &Common) -> Result<Asked, CliError> {
        // Until logs are open that say theirs.
        let temperatures = match self.temperature.as_slice() {
            [] => Settings::usual_temperatures(&[]),
            asked => asked.to_vec(),
        };
        let mut settings = Settings::new(&temperatures, &Counts::all(&self.drafts), common.seed)?;
        settings.block_length = usize::from(self.block_length);
        settings.timing = self.timing;
        settings.plans = self.plans;
        settings.rrs_wo = self.rrs_wo;
        if !self.schemes.is_empty() {
            settings.schemes.clone_from(&self.schemes);
        }
        if !self.verifiers.is_empty() {
            settings.verifiers.clone_from(&self.verifiers);
        }
        let cuts = Cuts {
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            cut_order: self.ordered.cut_order,
        };
        let own = self.draft.cuts(&self.ordered);
        let is_asked = own.words().next().is_some();
        let own = is_asked.then_some(own);
        Ok(Asked {
            settings: (settings.served(cuts)?).redrafted(&self.draft_temperature, own)?,
            at_their_own: self.temperature.is_empty(),
            depths: BTreeSet::new(),
            paired: false,
            given: Given::default(),
        })
    }
}

pub(super) fn run(args: &GapArgs, common: &Common) -> Result<Verdict, CliError> {
    // Everything that can be refused is, before the long part.
    (args.results.touched(Touched::reading(&args.logs)))
        .writing("⟨positions⟩", args.positions.as_deref())
        .check()?;
    let baseline = read_baseline(&args.results)?;
    refuse_repetition(&args.logs)?;
    let mut asked = args.asked(common)?;
    let logs = args
        .logs
        .iter()
        .map(|path| Log::open_with(path, args.kept.vocab))
        .collect::<Result<Vec<_>, _>>()
        .map_err(GapError::from)?;
    let logs = asked.of_logs(logs, args.part())?;
    let pooled = args.results.pool || logs.len() == 1;
    if let Some(out) = args.results.folder.out.as_deref().filter(|_| !pooled) {
        let names: Vec<String> = logs.iter().map(Log::name).collect();
        for folder in gap::folders(&names) {
            check_folder(&out.join(folder))?;
        }
    }
    for (given, option) in [
        (args.results.baseline.is_some(), "⟨baseline⟩"),
        (args.results.partial.is_some(), "⟨partial⟩"),
    ] {
        if given && !pooled {
            return Err(CliError::missing(format!(
                "{option} is about one pair of models: name one log, or count several of one \
                     pair together with ⟨pool⟩"
            )));
        }
    }
    let mut table = (args.positions.as_deref())
        .map(|path| Table::create(path, &asked.settings))
        .transpose()?;
    let mut partial = args.results.partial.as_deref().map(stage).transpose()?;
    let (summaries, pairings) =
        summarise(&logs, pooled, &asked, args.part(), table.as_mut(), common)?;
    if let Some(table) = table {
        table.finish()?;
        if asked.settings.redraws() && common.host.is_none() {
            let words = "--positions: its rows are of the draft's row as it is; the report alone has what is \
                accepted with the draft at another temperature or cut";
            colour::note(words);
        }
    }
    if let (Some(file), Some(path), [summary]) =
        (&mut partial, &args.results.partial, &summaries[..])
    {
        let text = summary.to_file()?;
        write!(file, "{text}").map_err(|source| unwritten(path, source))?;
    }
    if let (Some(file), Some(path)) = (partial, &args.results.partial) {
        (file.finish().and_then(crate::files::Staged::rename))
            .map_err(|source| unwritten(path, source))?;
        let positions = summaries.iter().map(Summary::positions).sum();
        if args.results.summary_is_all(path, positions, common)? {
            return Ok(Verdict::Agrees);
        }
    }
    let [summary] = &summaries[..] else {
        return compare_logs(&summaries, &pairings, &asked, &args.results.folder, common);
    };
    finish(
        summary,
        &asked.given,
        baseline.as_ref(),
        &args.results,
        common,
    )
}

/// Makes the report of a summary, compares it with a baseline and delivers it.
pub(super) fn finish(
    summary: &Summary,
    given: &Given,
    baseline: Option<&GapReport>,
    results: &Results,
    common: &Common,
) -> Result<Verdict, CliError> {
    let report = given.report(summary)?;
    let verdict = compare(&report, baseline, results, common)?;
    let page = report::gap::page(&report);
    deliver(&report, &page, Vec::new(), &results.folder, common)?;
    Ok(verdict)
}

/// Measures logs, together or each by itself, with a progress bar and a line on how long it
/// took.
fn summarise(
    logs: &[Log],
    together: bool,
    asked: &Asked,
    part: Part,
    table: Option<&mut Table>,
    common: &Common,
) -> Result<(Vec<Summary>, Vec<Pairing>), CliError> {
    let total = logs.iter().map(|log| part.of(log.positions()).len()).sum();
    let people = common.format == Format::Text && !common.quiet;
    let bar = progress(total, people, "positions");
    let start = Instant::now();
    let done = |done: usize| bar.inc(done as u64);
    let table = table.map(|table| table as &mut dyn PositionSink);
    let measured = if together {
        (vec![asked.summarise(logs, part, table, &done)?], Vec::new())
    } else {
        asked.summarise_each(logs, part, table, &done)?
    };
    bar.finish_and_clear();
    if people {
        let seconds = start.elapsed().as_secs_f64();
        colour::tell(&format!(
            "{} in {seconds:.1} s: {:.1} a second on {}",
            crate::page::counted(total, "position"),
            total as f64 / seconds.max(1e-9),
            crate::page::counted(rayon::current_num_threads(), "thread")
        ));
    }
    Ok(measured)
}

/// The report of one log; `command` goes into it, with the options.
pub(super) fn measure(
    log: Log,
    args: &MeasureArgs,
    command: &str,
    common: &Common,
) -> Result<GapReport, CliError> {
    let mut asked = args.asked(common)?;
    let logs = asked.of_logs(vec![log], Part::WHOLE)?;
    let (summaries, _) = summarise(&logs, true, &asked, Part::WHOLE, None, common)?;
    let command = format!("{command}{}", asked.settings.options());
    let report = |summary: &Summary| summary.report(&command);
    (summaries.first().map(report)).ok_or_else(|| CliError::internal("no summary of a log"))
}

/// Several logs side by side, each with a report of its own.
fn compare_logs(
    summaries: &[Summary],
    pairings: &[Pairing],
    asked: &Asked,
    folder: &Folder,
    common: &Common,
) -> Result<Verdict, CliError> {
    let comparison = asked.comparison(summaries, pairings);
    let page = report::compare::page(&comparison);
    if let Some(out) = &folder.out {
        // All at once, the page of all logs last.
        let mut files = Vec::new();
        for (log, summary) in comparison.logs.iter().zip(summaries) {
            let report = asked.given.report(summary)?;
            let own = folder.files(&report::gap::page(&report), &report)?;
            for (name, contents) in own {
                files.push((format!("{}/{name}", log.folder), contents));
            }
        }
        files.extend(folder.files(&page, &comparison)?);
        folder.write(out, &files)?;
    }
    print_report(&comparison, &page, folder.out.as_deref(), common)?;
    Ok(Verdict::Agrees)
}

/// A log that is named twice would count twice, and narrow every interval.
pub(super) fn refuse_repetition(logs: &[PathBuf]) -> Result<(), CliError> {
    let mut seen = Vec::new();
    for path in logs {
        // What cannot be found is refused when it is opened.
        let Ok(place) = path.canonicalize() else {
            continue;
        };
        if seen.contains(&place) {
            return Err(CliError::input(
                path,
                "is named twice; its positions would count twice",
            ));
        }
        seen.push(place);
    }
    Ok(())
}

/// Says what the report's words mean, for `--help`.
pub(super) fn definitions() -> String {
    printed::definitions(gap::definitions(Settings::BLOCK_LENGTH))
}

/// The report of `--baseline`, if it is given.
pub(super) fn read_baseline(results: &Results) -> Result<Option<GapReport>, CliError> {
    let Some(path) = results.baseline.as_deref() else {
        return Ok(None);
    };
    let text = read_document(path)?;
    let refused = |message: String| CliError::input(path, message);
    // Before the fields, which another version may have named otherwise.
    let document: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| refused(format!("is no report.json of specgap gap: {error}")))?;
    match document.get("schema").map(serde_json::Value::as_u64) {
        Some(Some(schema)) if schema == u64::from(gap::SCHEMA) => {}
        Some(Some(schema)) => {
            return Err(refused(format!(
                "schema is {schema}; this version of specgap compares with {}",
                gap::SCHEMA
            )));
        }
        _ => {
            return Err(refused(
                "is no report.json of specgap gap: schema is not a number".to_owned(),
            ));
        }
    }
    let (report, _): (GapReport, _) = typed::json(&text).map_err(|found| {
        refused(format!(
            "is no report.json of specgap gap: {}: {}",
            found.path, found.message
        ))
    })?;
    if report.cells.is_empty() {
        return Err(refused(
            "cells is empty: there is nothing to compare with".to_owned(),
        ));
    }
    Ok(Some(report))
}

/// Compares a report with a baseline, if one is given, says what got worse, and writes what is asked
/// for.
fn compare(
    report: &GapReport,
    baseline: Option<&GapReport>,
    results: &Results,
    common: &Common,
) -> Result<Verdict, CliError> {
    let (Some(path), Some(baseline)) = (&results.baseline, baseline) else {
        return Ok(Verdict::Agrees);
    };
    if report.served.map(Cuts::told) != baseline.served.map(Cuts::told) {
        let words = |cuts: Option<Cuts>| match cuts.map(Cuts::options) {
            Some(options) => format!("with{options}"),
            None => "from whole rows".to_owned(),
        };
        return Err(CliError::input(
            path,
            format!(
                "was measured {}, and this report {}; give the same options",
                words(baseline.served),
                words(report.served)
            ),
        ));
    }
    let numbers = gap::against(report, baseline, results.tolerance);
    if let Some(path) = &results.junit {
        write_whole(path, report::check::junit_of_numbers(&numbers).as_bytes())?;
    }
    let mut worse = 0;
    for number in numbers.iter().filter(|number| !number.holds()) {
        worse += 1;
        let told = visible(report::check::told(number));
        match &common.host {
            Some(host) => host.regressed(told),
            None => colour::regression(&told),
        }
    }
    if worse == 0 && common.host.is_none() {
        let how = match results.tolerance {
            Some(tolerance) => format!("within {tolerance:e}"),
            None => "in its interval".to_owned(),
        };
        let path = path.display();
        colour::tell(&format!("baseline {path}: every number is {how}"));
    }
    Ok(Verdict::of(worse == 0))
}
