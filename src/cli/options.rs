//! Options that several commands have, each stated once.

use super::colour::plain;
use super::host::{Bar, Host};
use super::output::{
    CliError, page_files, progress, read_document, remove_earlier, write_together,
};
use super::overwrites::Touched;
use super::recorded::{Recorded, file_name};
use crate::log::{Log, LogError};
use crate::page::paper::{FigureFormat, Files, PaperTables};
use crate::page::{Page, is_of_a_page, visible};
use crate::replay::Timings;
use crate::rule::{RuleEntry, RuleName};
use crate::sampling::{CutOrder, Cuts};
use crate::scheme::EngineName;
use crate::whole::Given;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What these options stand under in the help of a command.
pub(super) const OF_ALL: &str = "Options of every command";

/// Options of every command.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Text for people, or JSON, one object a line.
    #[arg(long, value_enum, default_value_t = Format::Text, global = true, help_heading = OF_ALL)]
    pub(super) format: Format,
    /// Worker threads; 0 takes one a core.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024), global = true, help_heading = OF_ALL)]
    pub(super) threads: u16,
    /// Seed of everything that is random.
    #[arg(long, default_value_t = 0, global = true, help_heading = OF_ALL)]
    pub(super) seed: u64,
    /// More detail: all tables, what words mean, problem files that are passed over.
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = OF_ALL)]
    pub(super) verbose: u8,
    /// Only what is wrong, and the last line where a command has one.
    #[arg(short, long, global = true, help_heading = OF_ALL, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// The program that runs the command inside itself; none on a command line.
    #[arg(skip)]
    pub(super) host: Option<Host>,
    /// The command line, for parts of it.
    #[arg(skip)]
    pub(super) typed: Vec<String>,
}

impl Common {
    /// Opens a log, or takes the one that the host has of this name.
    pub(super) fn open(&self, path: &Path, vocabulary: Option<usize>) -> Result<Log, LogError> {
        let lent = self.host.as_ref().and_then(|host| host.lent(path));
        lent.map_or_else(|| Log::open_with(path, vocabulary), Ok)
    }

    /// The progress of work over `total` positions.
    pub(super) fn progress(&self, total: usize) -> Bar {
        match &self.host {
            Some(host) => {
                host.begin(total);
                Bar::Host(host.clone())
            }
            None => {
                let people = self.format == Format::Text && !self.quiet;
                Bar::Terminal(progress(total, people, "positions"))
            }
        }
    }
}

/// Output formats.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A number, or a range of them with both ends: `3`, `2-4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts(Vec<usize>);

impl Counts {
    /// The most numbers of a range.
    const MOST: usize = 4096;

    /// All of several, in the order that they were given.
    pub(super) fn all(given: &[Self]) -> Vec<usize> {
        given.iter().flat_map(|counts| counts.0.clone()).collect()
    }

    /// Reads options that take numbers up to `most`.
    pub(super) fn up_to(text: &str, most: usize) -> Result<Self, String> {
        let counts: Self = text.parse()?;
        match counts.0.iter().find(|&&n| n == 0 || n > most) {
            Some(n) => Err(format!("{n} is not in 1..={most}")),
            None => Ok(counts),
        }
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "is a number or a range such as 2-4; several are separated by commas: 2-4,8".to_owned()
        };
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let Some((first, last)) = text.split_once('-') else {
            return Ok(Self(vec![number(text)?]));
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{first} is above {last}; a range ascends"));
        }
        if last - first >= Self::MOST {
            return Err(format!("is a range of more than {} numbers", Self::MOST));
        }
        Ok(Self((first..=last).collect()))
    }
}

/// The problems of `solve`, `verify` and `block`.
#[derive(Args, Debug)]
pub(super) struct Problems {
    /// Problem files (.toml, .json) or folders of them.
    #[arg(required = true, value_name = "PROBLEM")]
    pub(super) problems: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) folder: Folder,
}

/// Where a report goes.
#[derive(Args, Clone, Debug)]
pub(super) struct Folder {
    /// Write report.html, report.md, report.json and the plots here.
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Also write every picture for a paper: without its title, as SVG, as PDF with its font
    /// inside, or as TeX for pgfplots, and the numbers that it draws as CSV beside it.
    #[arg(
        long,
        value_name = "svg,pdf,tex",
        value_enum,
        value_delimiter = ',',
        requires = "out"
    )]
    figures: Vec<FigureKind>,
    /// Also write tables for a paper: for LaTeX with booktabs, each as narrow as a page, or as CSV
    /// with all digits and intervals in columns of their own. All, or those that are named:
    /// latex=acceptance,comparisons,csv
    #[arg(long, value_name = "latex,csv", requires = "out", value_parser = tables)]
    table: Option<TablesAsked>,
    /// Digits behind the point in tables for LaTeX; percents have two fewer [default: as on the
    /// page].
    #[arg(long, value_name = "D", requires = "table", value_parser = clap::value_parser!(u8).range(0..=15))]
    digits: Option<u8>,
    /// Columns of tables for a paper, by the names on the page, such as T = 1.0 or n = 3; tables
    /// without one of them keep all.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "table"
    )]
    columns: Vec<String>,
}

/// Formats of pictures for papers.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum FigureKind {
    /// Lines and letters.
    Svg,
    /// A page with its font inside, as LaTeX takes it.
    Pdf,
    /// An axis of pgfplots, in the paper's own font.
    #[value(alias = "pgf")]
    Tex,
}

/// Tables for papers: for each format none, all (an empty list) or those of some names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TablesAsked {
    latex: Option<Vec<String>>,
    csv: Option<Vec<String>>,
}

/// Formats, each with the names of tables behind it or without any.
fn tables(text: &str) -> Result<TablesAsked, String> {
    let mut asked = TablesAsked::default();
    let mut last = None;
    for word in text.split(',') {
        let (format, name) = match (word.split_once('='), word, last) {
            (Some((format, name)), _, _) => (format, Some(name)),
            (None, "latex" | "csv", _) | (None, _, None) => (word, None),
            (None, _, Some(last)) => (last, Some(word)),
        };
        let names = match format {
            "latex" => asked.latex.get_or_insert_default(),
            "csv" => asked.csv.get_or_insert_default(),
            _ => {
                return Err(format!(
                    "{word} is no format; give latex, csv or both, each with tables if not all are \
                     wanted: latex=acceptance,comparisons"
                ));
            }
        };
        names.extend(name.map(str::to_owned));
        last = name.map(|_| format);
    }
    Ok(asked)
}

impl Folder {
    /// The files of a report, and those for papers that are asked for.
    pub(super) fn files(&self, page: &Page, data: &impl Serialize) -> Result<Files, CliError> {
        let mut files = Vec::new();
        if !self.figures.is_empty() {
            let format = |kind: &FigureKind| match kind {
                FigureKind::Svg => FigureFormat::Svg,
                FigureKind::Pdf => FigureFormat::Pdf,
                FigureKind::Tex => FigureFormat::Tex,
            };
            let formats: Vec<FigureFormat> = self.figures.iter().map(format).collect();
            let drawn = page.paper_figures(&formats);
            files.extend(drawn.map_err(|error| CliError::internal(error.to_string()))?);
        }
        let asked = |names: &Vec<String>| PaperTables {
            tables: names.clone(),
            columns: self.columns.clone(),
            digits: self.digits.map(usize::from),
        };
        let TablesAsked { latex, csv } = self.table.clone().unwrap_or_default();
        files.extend(
            latex
                .iter()
                .flat_map(|names| page.paper_latex(&asked(names))),
        );
        files.extend(csv.iter().flat_map(|names| page.paper_csv(&asked(names))));
        files.extend(page_files(page, data)?);
        Ok(files)
    }

    /// Writes files into the folder, and says which tables were asked for and are not among them.
    pub(super) fn write(&self, out: &Path, files: &Files) -> Result<(), CliError> {
        write_together(out, files)?;
        remove_earlier(out, files);
        self.tell_missing(files);
        Ok(())
    }

    fn tell_missing(&self, files: &Files) {
        let TablesAsked { latex, csv } = self.table.clone().unwrap_or_default();
        for (names, ending) in [(latex, "tex"), (csv, "csv")] {
            for name in names.unwrap_or_default() {
                let file = format!("table-{name}.{ending}");
                let is_it = |(path, _): &(String, _)| path.rsplit('/').next() == Some(&file);
                if !files.iter().any(is_it) {
                    super::colour::note(&format!(
                        "no table is called {}; --table {} writes all",
                        visible(name),
                        if ending == "tex" { "latex" } else { ending }
                    ));
                }
            }
        }
    }
}

/// What `gap` and `merge` make of a summary.
#[derive(Args, Debug)]
pub(super) struct Results {
    #[command(flatten)]
    pub(super) folder: Folder,
    /// Exit with 1 if a result is not as in this file.
    ///
    /// If a number of this report.json is missing or left its interval.
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// With --baseline: how far a number may be from the baseline's, instead of its interval;
    /// reports of one log are the same to the bit, so that 1e-9 is enough for these.
    #[arg(long = "within", alias = "tolerance", value_name = "X", requires = "baseline", allow_negative_numbers = true, value_parser = tolerance)]
    pub(super) tolerance: Option<f64>,
    /// Write what was checked as JUnit XML.
    ///
    /// With --baseline: a test case for each of its numbers.
    #[arg(long, value_name = "FILE", requires = "baseline")]
    pub(super) junit: Option<PathBuf>,
    /// Write what is read, before any report, for `specgap merge`.
    ///
    /// Without --out no report is made.
    #[arg(long, value_name = "FILE")]
    pub(super) partial: Option<PathBuf>,
    /// Count several logs of one pair of models together, as one.
    #[arg(long)]
    pub(super) pool: bool,
    #[command(flatten)]
    costs: Costs,
    #[command(flatten)]
    drafting: Drafting,
}

impl Results {
    /// Returns what the report says beside what is measured.
    pub(super) fn given(&self, common: &Common) -> Result<Given, CliError> {
        let cost = self.costs.cost_ratio.as_ref();
        if let Some(cost) = cost.filter(|_| !common.quiet) {
            warn_of_cost(cost);
        }
        let timings = self.costs.timings.as_deref();
        let read = |path: &Path| Ok::<_, CliError>((path.to_owned(), read_timings(path)?));
        Ok(Given {
            engine: self.drafting.engine,
            cost_ratio: cost.map(|cost| cost.text.clone()),
            timings: timings.map(read).transpose()?,
        })
    }

    /// Says that the summary is written, and whether that is all that was asked for.
    pub(super) fn summary_is_all(
        &self,
        path: &Path,
        positions: usize,
        common: &Common,
    ) -> Result<bool, CliError> {
        if common.format == Format::Text {
            let path = path.display();
            writeln!(plain(), "summary of {positions} positions: {path}")?;
        }
        Ok(self.folder.out.is_none() && self.baseline.is_none())
    }

    /// Refuses what is of summaries of gap alone.
    pub(super) fn refuse_of_gap(&self, incomplete: bool) -> Result<(), CliError> {
        for (is_given, name) in [
            (self.baseline.is_some(), "⟨baseline⟩"),
            (self.partial.is_some(), "⟨partial⟩"),
            (self.pool, "⟨pool⟩"),
            (self.costs.cost_ratio.is_some(), "⟨cost-ratio⟩"),
            (self.costs.timings.is_some(), "⟨timings⟩"),
            (self.drafting.engine.is_some(), "⟨engine⟩"),
            (incomplete, "⟨incomplete⟩"),
        ] {
            if is_given {
                return Err(CliError::missing(format!(
                    "{name}: is for parts of gap; parts of other commands have their options with them"
                )));
            }
        }
        Ok(())
    }

    /// The baseline that is read, and all that is written.
    pub(super) fn touched<'a>(&'a self, touched: Touched<'a>) -> Touched<'a> {
        touched
            .and_reading(&self.baseline)
            .and_reading(&self.costs.timings)
            .writing("⟨partial⟩", self.partial.as_deref())
            .writing("⟨junit⟩", self.junit.as_deref())
            .folder(self.folder.out.as_deref(), is_of_a_page)
    }
}

/// What drafting and verifying cost, as a ratio or measured.
#[derive(Args, Debug)]
pub(super) struct Costs {
    /// Time of a draft step over that of a target step; a verifying pass then costs a target
    /// step, however many tokens it verifies.
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = cost_ratio)]
    pub(super) cost_ratio: Option<Cost>,
    /// Measured times, as TOML or JSON (docs/reference/problem-files.md). The files of `specgap
    /// decode --timing`.
    #[arg(
        long,
        alias = "costs",
        value_name = "FILE",
        conflicts_with = "cost_ratio"
    )]
    pub(super) timings: Option<PathBuf>,
}

impl Costs {
    /// The file of measured times, if one is given.
    pub(super) fn file(&self) -> Option<&Path> {
        self.timings.as_deref()
    }

    pub(super) fn timings(&self) -> Result<Option<Timings>, CliError> {
        match (&self.cost_ratio, &self.timings) {
            (Some(cost), _) => Ok(Some(cost.timings.clone())),
            (None, Some(path)) => read_timings(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Records them as they were given.
    pub(super) fn record(&self, command: &mut Recorded) {
        command
            .option(
                "cost-ratio",
                self.cost_ratio.as_ref().map(|cost| &cost.text),
            )
            .option("timings", self.timings.as_deref().map(file_name));
    }
}

/// A cost ratio as it was given, and the times that it stands for.
#[derive(Clone, Debug)]
pub(super) struct Cost {
    pub(super) text: String,
    pub(super) timings: Timings,
}

/// Says where no acceptance pays: one position gives at most two tokens for the time of a target
/// step and a draft step.
fn warn_of_cost(cost: &Cost) {
    let ratio: f64 = cost.text.parse().unwrap_or(0.0);
    if ratio >= 1.0 {
        super::colour::warning(&format!(
            "do not draft at this cost: with --cost-ratio {} a draft step takes {} times as \
             long as a target step, so that even a draft that is always accepted does not pay",
            cost.text, cost.text
        ));
    }
}

/// The engine that advice starts from.
#[derive(Args, Debug)]
pub(super) struct Drafting {
    #[arg(long, value_name = "NAME", value_parser = EngineName::from_str, help = engine_help())]
    pub(super) engine: Option<EngineName>,
}

fn engine_help() -> String {
    let names: Vec<String> = EngineName::all().map(EngineName::word).collect();
    format!(
        "The engine whose default drafts and rule advice starts from: {} [default: the one that the \
         log names; without one, each kind of engine is spoken of]",
        names.join(", ")
    )
}

impl Drafting {
    /// Records it as it was given.
    pub(super) fn record(&self, command: &mut Recorded) {
        command.option("engine", self.engine.map(EngineName::word));
    }
}

/// Reads one of the rules that a command has, by any of its names.
pub(super) fn rule_parser(
    wanted: fn(&RuleEntry) -> bool,
) -> impl TypedValueParser<Value = RuleName> {
    let own = RuleName::ALL.map(RuleName::entry).into_iter();
    let value = |rule: &RuleEntry| {
        let value = PossibleValue::new(rule.name).help(rule.words);
        value.aliases(rule.aliases)
    };
    PossibleValuesParser::new(own.filter(|rule| wanted(rule)).map(value))
        .try_map(|name| RuleName::from_str(&name))
}

pub(super) fn cost_ratio(text: &str) -> Result<Cost, String> {
    let ratio: f64 = text
        .parse()
        .map_err(|_| "is a draft step's time over a target step's, such as 0.1".to_owned())?;
    Ok(Cost {
        text: text.to_owned(),
        timings: Timings::cost_ratio(ratio)?,
    })
}

/// A file of times, as TOML or JSON.
pub(super) fn read_timings(path: &Path) -> Result<Timings, CliError> {
    let text = read_document(path)?;
    let json = path.extension().is_some_and(|ending| ending == "json");
    Timings::parse(&text, json).map_err(|message| CliError::input(path, message))
}

fn tolerance(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| "is a number from 0 on, such as 1e-9".to_owned())
}

/// In which order rows are cut.
#[derive(Args, Debug)]
pub(super) struct Ordered {
    /// Order of top-k, top-p, min-p and the temperature: k,p,m; joint; k,p,m,T; or the tool.
    ///
    /// Any order of k, p and m, with ,T behind it where the temperature comes last; joint is p,k,m,
    /// the nucleus of the whole row met with the top-k. transformers, vllm, sglang, sglang-verifier,
    /// llama.cpp and mlx-lm stand for theirs. What the log says [default: k,p,m].
    #[arg(long, value_name = "ORDER")]
    pub(super) cut_order: Option<CutOrder>,
}

/// What is drafted of the draft's row, where the target's stays as it is.
#[derive(Args, Debug)]
pub(super) struct DraftCuts {
    /// Draft from the K most probable tokens of the draft's row; the target's stays as it is.
    ///
    /// Takes the place of --top-k, --top-p and --min-p for the draft. llama.cpp's default is 10.
    #[arg(long, value_name = "K")]
    pub(super) draft_top_k: Option<usize>,
    /// Draft from the fewest most probable tokens with a mass of P, behind --draft-top-k; 1 keeps
    /// the whole row.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(super) draft_top_p: Option<f64>,
    /// Draft from the tokens with at least P times the largest probability, behind --draft-top-p.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(super) draft_min_p: Option<f64>,
}

impl DraftCuts {
    pub(super) fn cuts(&self, ordered: &Ordered) -> Cuts {
        Cuts {
            top_k: self.draft_top_k,
            top_p: self.draft_top_p,
            min_p: self.draft_min_p,
            cut_order: ordered.cut_order,
        }
    }
}

/// Which tokens of a row are read from logs, and which `capture` writes.
#[derive(Args, Debug)]
pub(super) struct Kept {
    /// Tokens of the vocabulary.
    ///
    /// Where models differ by padding, the first N tokens of every row are kept.
    #[arg(long, value_name = "N")]
    pub(super) vocab: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_behind_their_format() {
        let list = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        let asked = |latex, csv| Ok(TablesAsked { latex, csv });
        assert_eq!(tables("latex"), asked(list(&[]), None));
        assert_eq!(tables("csv,latex"), asked(list(&[]), list(&[])));
        assert_eq!(
            tables("latex=acceptance,comparisons,csv"),
            asked(list(&["acceptance", "comparisons"]), list(&[]))
        );
        for wrong in [
            "",
            "acceptance",
            "latex,acceptance",
            "tex=a",
            "latex=a,html=b",
        ] {
            assert!(
                tables(wrong).unwrap_err().contains("is no format"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_range_has_both_ends() {
        let read = |text: &str| text.parse::<Counts>().map(|counts| counts.0);
        assert_eq!(read("3"), Ok(vec![3]));
        assert_eq!(read("2-4"), Ok(vec![2, 3, 4]));
        assert_eq!(read("4-4"), Ok(vec![4]));
        assert!(read("4-2").unwrap_err().contains("ascends"));
        for wrong in ["", "-", "2-", "-3", "a-b", "2-3-4", "2.5"] {
            assert!(read(wrong).unwrap_err().contains("2-4,8"), "{wrong}");
        }
        assert!(read("0-18446744073709551615").is_err());
        let given = [Counts(vec![2, 3]), Counts(vec![8])];
        assert_eq!(Counts::all(&given), [2, 3, 8]);
        assert!(
            Counts::up_to("60-65", 64)
                .unwrap_err()
                .contains("65 is not in 1..=64")
        );
        assert!(Counts::up_to("0", 64).is_err());
    }
}
