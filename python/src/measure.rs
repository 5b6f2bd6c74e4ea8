//! Reports of logs: `gap` by the library, other commands by their own command line.

use crate::errors::{bug, of_host, raised, refused};
use crate::laws::RowLaw;
use crate::logs::Log;
use crate::watch::watched;
use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use specgap::cli::{CliError, GapOptions, HostError, MadeReport};
use specgap::gap::{
    self, ColumnKind, Columns, DraftsOf, Entry, GapError, OwnLaw, OwnRate, OwnRow, OwnRule, Part,
    PositionSink, Settings, Summary as Sums,
};
use specgap::log::Log as Rows;
use specgap::page::paper::{FigureFormat, Files, PaperTables};
use specgap::page::table::Table as PaperTable;
use specgap::page::{Page, visible};
use specgap::problem;
use specgap::report;
use specgap::sampling::{CutOrder, Cuts};
use specgap::scheme::{DraftScheme, SchemeName};
use specgap::statistics::Clustered;
use specgap::whole::Asked;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A report: data, page, and the files that it is written as.
#[pyclass(frozen, module = "specgap._native")]
struct Made {
    report: MadeReport,
    /// Reports of several logs, each in a folder of its name.
    each: Vec<(String, MadeReport)>,
}

impl Made {
    fn alone(report: MadeReport) -> Self {
        Self {
            report,
            each: Vec::new(),
        }
    }
}

fn drawn<E: std::fmt::Display>(error: E) -> PyErr {
    bug(&error.to_string())
}

/// What a paper gets of a report, besides its page.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Paper {
    figures: Vec<String>,
    /// Tables by name, all if none is named.
    latex: Option<Vec<String>>,
    csv: Option<Vec<String>>,
    columns: Vec<String>,
    digits: Option<usize>,
}

impl Paper {
    fn tables(&self, names: &[String]) -> PaperTables {
        PaperTables {
            tables: names.to_vec(),
            columns: self.columns.clone(),
            digits: self.digits,
        }
    }

    fn files(&self, made: &MadeReport) -> PyResult<Files> {
        let mut files = made.beside.clone();
        let page = &made.page;
        if !self.figures.is_empty() {
            let formats = self.figures.iter().map(|name| format(name));
            let formats = formats.collect::<PyResult<Vec<_>>>()?;
            files.extend(page.paper_figures(&formats).map_err(drawn)?);
        }
        files.extend((self.latex.iter()).flat_map(|names| page.paper_latex(&self.tables(names))));
        files.extend((self.csv.iter()).flat_map(|names| page.paper_csv(&self.tables(names))));
        files.extend(page.files(made.json.clone()).map_err(drawn)?);
        Ok(files)
    }
}

fn format(name: &str) -> PyResult<FigureFormat> {
    match name {
        "svg" => Ok(FigureFormat::Svg),
        "pdf" => Ok(FigureFormat::Pdf),
        "tex" => Ok(FigureFormat::Tex),
        other => Err(refused(format!(
            "figures: {other:?} is no format; give svg, pdf, tex or png"
        ))),
    }
}

fn unknown<'a>(what: &str, name: &str, there: impl Iterator<Item = &'a str>) -> PyErr {
    let there: Vec<&str> = there.collect();
    refused(format!(
        "{what}: there is no {name:?}; this report has {}",
        there.join(", ")
    ))
}

#[pymethods]
impl Made {
    #[getter]
    fn ok(&self) -> bool {
        self.report.ok
    }

    /// Numbers that are worse than the baseline's, in words.
    #[getter]
    fn regressions(&self) -> Vec<String> {
        self.report.regressions.clone()
    }

    /// The data, as `--format json` prints it.
    #[getter]
    fn json<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.report.json)
    }

    /// The page, with its pictures in it.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.report.page.html()).map_err(drawn)
    }

    fn markdown(&self) -> String {
        self.report.page.markdown()
    }

    fn text(&self, width: u16, whole: bool) -> String {
        self.report.page.text(width, whole)
    }

    /// Title, cautions, verdict and lines of its first screen.
    fn lead(&self) -> (String, Vec<String>, String, Vec<String>) {
        let page = &self.report.page;
        let (cautions, verdict, lines) = page.opening();
        (visible(page.title.clone()), cautions, verdict, lines)
    }

    /// Name, caption and columns of every table.
    fn tables(&self) -> Vec<(String, String, Vec<String>)> {
        let tables = self.report.page.tables().into_iter();
        let said = |table: &PaperTable| {
            let names = table.flat_names();
            (table.id.clone(), table.caption.clone(), names)
        };
        tables.map(said).collect()
    }

    /// A table as LaTeX, in its parts, and as comma-separated values.
    fn table(
        &self,
        name: &str,
        columns: Vec<String>,
        digits: Option<usize>,
    ) -> PyResult<(Vec<String>, String)> {
        let tables = self.report.page.tables();
        let Some(&table) = tables.iter().find(|table| table.id == name) else {
            let there = tables.iter().map(|table| table.id.as_str());
            return Err(unknown("table", name, there));
        };
        let mut chosen = table.clone();
        if !columns.is_empty() {
            let names = table.flat_names();
            for column in &columns {
                if table.choose(std::slice::from_ref(column)).is_none() {
                    let there = names.iter().map(String::as_str);
                    return Err(unknown("columns", column, there));
                }
            }
            chosen = table.choose(&columns).unwrap_or(chosen);
        }
        Ok((chosen.latex(digits), chosen.csv()))
    }

    /// Name and title of every picture.
    fn figures(&self) -> Vec<(String, String)> {
        let figures = self.report.page.figures().into_iter();
        figures
            .map(|figure| (figure.name.clone(), figure.title.clone()))
            .collect()
    }

    /// A picture without its title: `svg`, `pdf` or `tex`, or `csv` of what is drawn.
    fn figure<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        kind: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let figures = self.report.page.figures();
        let Some(figure) = figures.iter().find(|figure| figure.name == name) else {
            let there = figures.iter().map(|figure| figure.name.as_str());
            return Err(unknown("figure", name, there));
        };
        let canvas = figure.canvas.untitled();
        let bytes = match kind {
            "csv" => canvas.data().as_bytes().to_vec(),
            other => match format(other)? {
                FigureFormat::Svg => (canvas.svg(&figure.title, &figure.alt))
                    .map_err(drawn)?
                    .into_bytes(),
                FigureFormat::Pdf => canvas.pdf(&figure.title, &figure.alt).map_err(drawn)?,
                FigureFormat::Tex => canvas.tex().as_bytes().to_vec(),
            },
        };
        Ok(PyBytes::new(py, &bytes))
    }

    /// All files, by name: those that `--out` writes, and those for a paper.
    fn files<'py>(
        &self,
        py: Python<'py>,
        paper: Paper,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
        let files = py.detach(|| {
            let mut files = Vec::new();
            for (folder, made) in &self.each {
                let own = paper.files(made)?.into_iter();
                files.extend(own.map(|(name, bytes)| (format!("{folder}/{name}"), bytes)));
            }
            files.extend(paper.files(&self.report)?);
            PyResult::Ok(files)
        })?;
        Ok(files
            .into_iter()
            .map(|(name, bytes)| (name, PyBytes::new(py, &bytes)))
            .collect())
    }
}

fn made(data: &impl serde::Serialize, page: Page) -> Result<MadeReport, HostError> {
    let json = serde_json::to_vec_pretty(data).map_err(CliError::from)?;
    Ok(of_json(json, page))
}

fn of_json(json: Vec<u8>, page: Page) -> MadeReport {
    MadeReport {
        ok: true,
        json,
        page,
        beside: Vec::new(),
        regressions: Vec::new(),
    }
}

/// Columns of a table of positions, whole.
#[derive(Debug)]
enum Column {
    Text(Vec<String>),
    Integer(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
}

impl Table {
    fn new(settings: &Settings) -> Self {
        let names = Columns::new(settings).names();
        let empty = |kind: &ColumnKind| match kind {
            ColumnKind::Text => Column::Text(Vec::new()),
            ColumnKind::Integer => Column::Integer(Vec::new()),
            ColumnKind::Number => Column::Number(Vec::new()),
        };
        let columns = names.iter().map(|(_, kind)| empty(kind)).collect();
        Self {
            names: names.into_iter().map(|(name, _)| name).collect(),
            columns,
        }
    }

    /// Each column: its entries, and where there are none.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        fn there<T>(entries: &[Option<T>]) -> Vec<bool> {
            entries.iter().map(Option::is_none).collect()
        }
        let dict = PyDict::new(py);
        for (name, column) in self.names.iter().zip(&self.columns) {
            match column {
                Column::Text(entries) => {
                    let none: Option<Bound<'py, PyArray1<bool>>> = None;
                    dict.set_item(name, (entries, none))?;
                }
                Column::Integer(entries) => {
                    let values: Vec<i64> = entries.iter().map(|x| x.unwrap_or(0)).collect();
                    dict.set_item(name, (values.to_pyarray(py), there(entries).to_pyarray(py)))?;
                }
                Column::Number(entries) => {
                    let values: Vec<f64> = entries.iter().map(|x| x.unwrap_or(f64::NAN)).collect();
                    dict.set_item(name, (values.to_pyarray(py), there(entries).to_pyarray(py)))?;
                }
            }
        }
        Ok(dict)
    }
}

impl PositionSink for Table {
    fn row(&mut self, entries: &[Entry<'_>]) -> io::Result<()> {
        for (column, entry) in self.columns.iter_mut().zip(entries) {
            match (column, *entry) {
                (Column::Text(all), Entry::Text(text)) => all.push(text.to_owned()),
                (Column::Integer(all), Entry::Integer(x)) => all.push(x),
                (Column::Number(all), Entry::Number(x)) => all.push(x),
                _ => return Err(io::Error::other("an entry is not of its column's kind")),
            }
        }
        Ok(())
    }
}

/// What to measure: options of `specgap gap`, and what no command line can name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Given {
    options: Vec<OsString>,
    schemes: Option<Vec<String>>,
    verifiers: Option<Vec<String>>,
    own: Vec<Own>,
    laws: Vec<GivenLaw>,
}

/// A draft law of the caller's own: name, words, what it is made as (of a law that can only be drawn
/// from, nothing), a digest if there is one, rules that are not measured under it with the reason,
/// and by number of drafts the law, with a function of the position's number and its q that returns
/// the rows it draws from, or the law there, if these are none of the log's.
#[derive(FromPyObject)]
struct GivenLaw(
    String,
    String,
    Option<String>,
    Option<String>,
    Vec<(String, String)>,
    Vec<(usize, Py<RowLaw>, Option<Py<PyAny>>)>,
);

/// A law of one number of drafts, and where its rows are from.
struct Numbered {
    drafts: usize,
    law: problem::RowLaw,
    rows: Option<Py<PyAny>>,
}

impl Numbered {
    fn on(&self, row: OwnRow<'_>) -> Result<Arc<dyn DraftScheme>, String> {
        if let Some(function) = &self.rows {
            return Python::attach(|py| {
                let answer = function
                    .bind(py)
                    .call1((row.position, row.draft.to_pyarray(py)))?;
                if let Ok(law) = answer.cast::<RowLaw>() {
                    let law = law.get().law().on(row.draft.len(), &[]);
                    return law.map_err(raised);
                }
                let rows: PyReadonlyArray2<'_, f64> = answer.extract()?;
                let rows: Vec<Vec<f64>> = (rows.as_array().rows().into_iter())
                    .map(|row| row.to_vec())
                    .collect();
                self.law.on(row.draft.len(), &rows).map_err(raised)
            })
            .map_err(|error: PyErr| error.to_string());
        }
        let rows = match self.law.takes(0) {
            true => Vec::new(),
            false => vec![row.draft.to_vec()],
        };
        let law = self.law.on(row.draft.len(), &rows);
        law.map_err(|error| error.to_string())
    }
}

impl GivenLaw {
    fn law(&self, py: Python<'_>) -> PyResult<OwnLaw> {
        let Self(name, words, made, digest, without, numbered) = self;
        let law = match made {
            None => OwnLaw::sampled(name),
            Some(made) => {
                let made: SchemeName = made.parse().map_err(raised)?;
                let one = |(drafts, law, rows): &(usize, Py<RowLaw>, Option<Py<PyAny>>)| Numbered {
                    drafts: *drafts,
                    law: law.get().law().clone(),
                    rows: rows.as_ref().map(|rows| rows.clone_ref(py)),
                };
                let all: Vec<Numbered> = numbered.iter().map(one).collect();
                let numbers: Vec<usize> = all.iter().map(|one| one.drafts).collect();
                OwnLaw::new(name, made, &numbers, move |row: OwnRow<'_>| {
                    let own = all.iter().find(|one| one.drafts == row.drafts);
                    own.ok_or("it has no such number of drafts")?.on(row)
                })
            }
        };
        let law = law.map_err(raised)?.words(words);
        let law = match digest {
            Some(digest) => law.digest(digest),
            None => law,
        };
        let without = without.iter();
        Ok(without.fold(law, |law, (rule, why)| law.without(rule, why)))
    }
}

/// A rule of the caller's own: name, words, law of its drafts by name, digest if there is one, whether
/// what it accepts is a mean over draws, and the function that is called with p, q, n, the position's number and a seed, and returns membership
/// acceptance, and algorithmic acceptance and total variation or None.
#[derive(FromPyObject)]
struct Own(String, String, String, Option<String>, bool, Py<PyAny>);

/// What the function of an own rule raised, at the first position of those where any did.
type Raised = Arc<Mutex<Option<(usize, PyErr)>>>;

impl Own {
    fn rule(&self, py: Python<'_>, laws: &[OwnLaw], raised_at: &Raised) -> PyResult<OwnRule> {
        let Self(name, words, scheme, digest, drawn, function) = self;
        let (function, slot) = (function.clone_ref(py), Arc::clone(raised_at));
        let rate = move |row: OwnRow<'_>| {
            Python::attach(|py| {
                let answer = called(py, &function, row);
                answer.map_err(|error| {
                    let words = error.to_string();
                    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    if slot.as_ref().is_none_or(|(first, _)| row.position < *first) {
                        *slot = Some((row.position, error));
                    }
                    words
                })
            })
        };
        let drafts: DraftsOf = match laws.iter().find(|law| law.name() == scheme) {
            Some(law) => law.into(),
            None => {
                let scheme: SchemeName = scheme.parse().map_err(raised)?;
                scheme.into()
            }
        };
        let rule = OwnRule::new(name, drafts, rate).map_err(raised)?;
        let rule = rule.words(words);
        let rule = if *drawn { rule.drawn() } else { rule };
        Ok(match digest {
            Some(digest) => rule.digest(digest),
            None => rule,
        })
    }
}

fn called(py: Python<'_>, function: &Py<PyAny>, row: OwnRow<'_>) -> PyResult<OwnRate> {
    // Arrays of its own: it may write to them.
    let (target, draft) = (row.target.to_pyarray(py), row.draft.to_pyarray(py));
    let given = (target, draft, row.drafts, row.position, row.seed);
    let answer = function.bind(py).call1(given)?;
    // What is drawn says how far off that leaves it.
    let ((membership, algorithmic, total_variation), noise) = match answer.len()? {
        3 => (answer.extract()?, None),
        _ => {
            let (membership, algorithmic, total_variation, noise) = answer.extract()?;
            ((membership, algorithmic, total_variation), noise)
        }
    };
    Ok(OwnRate {
        membership,
        algorithmic,
        total_variation,
        noise,
    })
}

/// An error, with what a function of the caller's raised as its cause.
fn caused(py: Python<'_>, error: PyErr, raised_at: &Raised) -> PyErr {
    let mut slot = raised_at.lock().unwrap_or_else(PoisonError::into_inner);
    match slot.take() {
        // Ctrl-C and exits are no errors of a rule.
        Some((_, cause)) if !cause.is_instance_of::<PyException>(py) => cause,
        cause => {
            error.set_cause(py, cause.map(|(_, cause)| cause));
            error
        }
    }
}

impl Given {
    fn asked(&self, py: Python<'_>, raised_at: &Raised) -> PyResult<Asked> {
        let mut asked = options(&self.options)?.asked().map_err(raised)?;
        let settings = &mut asked.settings;
        if let Some(names) = &self.schemes {
            let known = Settings::all_schemes();
            for name in names {
                let scheme = name.parse().map_err(raised)?;
                if !known.contains(&scheme) {
                    return Err(refused(format!(
                        "schemes: a log cannot hold {scheme} drafts"
                    )));
                }
            }
            settings.schemes = parsed(names)?;
        }
        if let Some(names) = &self.verifiers {
            settings.verifiers = parsed(names)?;
        }
        let laws = self.laws.iter().map(|law| law.law(py));
        settings.own_laws = laws.collect::<PyResult<Vec<_>>>()?;
        let laws = &settings.own_laws;
        let own = self.own.iter().map(|own| own.rule(py, laws, raised_at));
        settings.own_rules = own.collect::<PyResult<_>>()?;
        Ok(asked)
    }
}

fn options(options: &[OsString]) -> PyResult<GapOptions> {
    GapOptions::parse(options).map_err(|error| of_host(&error))
}

fn parsed<T: std::str::FromStr>(names: &[String]) -> PyResult<Vec<T>>
where
    T::Err: std::error::Error + 'static,
{
    let one = |name: &String| name.parse().map_err(raised);
    names.iter().map(one).collect()
}

fn opened(logs: &[PyRef<'_, Log>]) -> PyResult<Vec<Rows>> {
    logs.iter().map(|log| log.opened()).collect()
}

fn failed(error: GapError) -> HostError {
    HostError::Command(error.into())
}

/// What is kept of some positions: merges with that of others into the report of all.
#[pyclass(frozen, module = "specgap._native")]
struct Summary {
    sums: Arc<Sums>,
}

#[pymethods]
impl Summary {
    /// Measures one of `count` parts, counted from 1, of the positions of logs of one pair.
    /// Also gives the table of positions, if that is asked for.
    #[staticmethod]
    #[pyo3(signature = (logs, asked, index, count, table, threads, progress))]
    #[allow(clippy::too_many_arguments)]
    fn measure<'py>(
        py: Python<'py>,
        logs: Vec<PyRef<'py, Log>>,
        asked: Given,
        index: usize,
        count: usize,
        table: bool,
        threads: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Self, Option<Bound<'py, PyDict>>)> {
        if index == 0 || index > count {
            return Err(refused(format!(
                "part {index} of {count}: parts are counted from 1 to their number"
            )));
        }
        let raised_at = Raised::default();
        let mut asked = asked.asked(py, &raised_at)?;
        let part = Part { index, count };
        let logs = asked.of_logs(opened(&logs)?, part).map_err(raised)?;
        let (sums, table) = watched(py, threads, progress.as_ref(), |host| {
            host.begin(logs.iter().map(|log| part.of(log.positions()).len()).sum());
            host.watch(|| {
                let mut table = table.then(|| Table::new(&asked.settings));
                let sink = table.as_mut().map(|table| table as &mut dyn PositionSink);
                let step = |done: usize| host.step(done);
                let sums = asked.summarise(&logs, part, sink, &step).map_err(failed)?;
                Ok::<_, HostError>((sums, table))
            })
        })
        .map_err(|error| caused(py, error, &raised_at))?;
        let table = table.map(|table| table.arrays(py)).transpose()?;
        Ok((
            Self {
                sums: Arc::new(sums),
            },
            table,
        ))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let text =
            std::str::from_utf8(bytes).map_err(|error| refused(format!("summary: {error}")))?;
        let sums = py.detach(|| Sums::from_json(text)).map_err(raised)?;
        Ok(Self {
            sums: Arc::new(sums),
        })
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let text = py.detach(|| self.sums.to_json()).map_err(raised)?;
        Ok(PyBytes::new(py, text.as_bytes()))
    }

    /// Both together. Neither changes.
    fn merged(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let sums = py.detach(|| {
            let mut sums = Sums::clone(&self.sums);
            sums.merge(&other.sums).map(|()| sums)
        });
        Ok(Self {
            sums: Arc::new(sums.map_err(raised)?),
        })
    }

    #[getter]
    fn positions(&self) -> usize {
        self.sums.positions()
    }

    #[getter]
    fn logs(&self) -> Vec<String> {
        self.sums.logs().into_iter().map(str::to_owned).collect()
    }

    /// Positions that are in no part, in words.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.sums.missing()
    }

    /// The report, by the options of `specgap gap` that are not about what is measured.
    fn report(&self, py: Python<'_>, given: Vec<OsString>) -> PyResult<Made> {
        let options = options(&given)?;
        watched(py, 0, None, |_| Ok(options.report(&self.sums)?)).map(Made::alone)
    }
}

/// Several logs, each by itself, side by side.
#[pyfunction]
fn compare(
    py: Python<'_>,
    logs: Vec<PyRef<'_, Log>>,
    asked: Given,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Made> {
    let raised_at = Raised::default();
    let options = options(&asked.options)?;
    let mut asked = asked.asked(py, &raised_at)?;
    let logs = asked.of_logs(opened(&logs)?, Part::WHOLE);
    let logs = logs.map_err(raised)?;
    let (report, each) = watched(py, threads, progress.as_ref(), |host| {
        host.begin(logs.iter().map(Rows::positions).sum());
        host.watch(|| {
            let step = |done: usize| host.step(done);
            let (summaries, pairings) =
                (asked.summarise_each(&logs, Part::WHOLE, None, &step)).map_err(failed)?;
            let comparison = asked.comparison(&summaries, &pairings);
            let each = comparison.logs.iter().zip(&summaries);
            let each = each.map(|(log, sums)| Ok((log.folder.clone(), options.report(sums)?)));
            let each = each.collect::<Result<Vec<_>, HostError>>()?;
            Ok::<_, HostError>((made(&comparison, report::compare::page(&comparison))?, each))
        })
    })
    .map_err(|error| caused(py, error, &raised_at))?;
    Ok(Made { report, each })
}

/// A command that ends in a report, by the arguments of its command line. Logs in memory are
/// lent to it.
#[pyfunction]
#[pyo3(signature = (args, lent, threads, progress))]
fn command(
    py: Python<'_>,
    args: Vec<OsString>,
    lent: Vec<PyRef<'_, Log>>,
    threads: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Made> {
    let lent = opened(&lent)?;
    let report = watched(py, threads, progress.as_ref(), |host| {
        for log in lent {
            host.lend(log);
        }
        host.report(args)
    });
    report.map(Made::alone)
}

/// A command with `--partial`, which writes what it reads of its logs.
#[pyfunction]
fn keep(
    py: Python<'_>,
    args: Vec<OsString>,
    lent: Vec<PyRef<'_, Log>>,
    threads: usize,
) -> PyResult<()> {
    let lent = opened(&lent)?;
    watched(py, threads, None, |host| {
        for log in lent {
            host.lend(log);
        }
        host.keep(args)
    })
}

/// The page of a drafter's report, of its JSON.
#[pyfunction]
fn drafter(json: &str) -> PyResult<Made> {
    let report = serde_json::from_str(json).map_err(|error| bug(&error.to_string()))?;
    let page = report::drafter::page(&report);
    Ok(Made::alone(of_json(json.as_bytes().to_vec(), page)))
}

fn parsed_order(order: &str) -> PyResult<CutOrder> {
    let parsed = order.parse();
    parsed.map_err(|why: String| refused(format!("cut_order: {why}")))
}

/// The one name of all orders that keep the same of every row with these cuts.
#[pyfunction]
fn cut_order(
    order: &str,
    temperature: f64,
    top_k: Option<usize>,
    top_p: Option<f64>,
) -> PyResult<String> {
    let cuts = Cuts {
        top_k,
        top_p,
        min_p: None,
        cut_order: Some(parsed_order(order)?),
    };
    Ok(cuts.at(temperature).order().to_string())
}

/// BibTeX of specgap, and of the papers of a report's rules and laws.
#[pyfunction]
fn cite(report: Option<&str>) -> PyResult<String> {
    let data = report.map(serde_json::from_str).transpose();
    let data = data.map_err(|error| refused(format!("is no report.json: {error}")))?;
    Ok(report::cite::bibtex(data.as_ref()))
}

/// The temperatures that are measured of logs, and what is kept of rows, where neither is asked for.
#[pyfunction]
fn usual_serving<'py>(
    py: Python<'py>,
    logs: Vec<PyRef<'_, Log>>,
) -> PyResult<(Vec<f64>, Bound<'py, PyDict>)> {
    let logs = opened(&logs)?;
    let cuts = Settings::usual_cuts(&logs);
    let kept = PyDict::new(py);
    kept.set_item("top_k", cuts.top_k)?;
    kept.set_item("top_p", cuts.top_p)?;
    kept.set_item("min_p", cuts.min_p)?;
    kept.set_item("cut_order", cuts.cut_order.map(|order| order.to_string()))?;
    Ok((Settings::usual_temperatures(&logs), kept))
}

/// Rows of p, of q, and their tokens' ids, none where rows have all tokens.
type Shown<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Option<Bound<'py, PyArray2<i64>>>,
);

/// Positions of a log as rules see them, by the options of `specgap gap`: NaN where the draft has no
/// row, 0 and -1 behind the tokens of a short list.
#[pyfunction]
fn served<'py>(
    py: Python<'py>,
    log: PyRef<'_, Log>,
    options: Vec<OsString>,
    start: usize,
    stop: usize,
) -> PyResult<Shown<'py>> {
    let mut asked = self::options(&options)?.asked().map_err(raised)?;
    let logs = asked.of_logs(vec![log.opened()?], Part::WHOLE);
    let logs = logs.map_err(raised)?;
    let Some(log) = logs.first() else {
        return Err(bug("a log that was opened"));
    };
    let (count, width) = (stop.saturating_sub(start), log.listed());
    let mut rows = [vec![0.0; count * width], vec![0.0; count * width]];
    let mut ids = vec![-1i64; count * width];
    let mut at = 0;
    let found = py.detach(|| {
        gap::shown(log, &asked.settings, start..stop, |row, p, q| {
            for (into, of) in rows.iter_mut().zip([p, q]) {
                match into.get_mut(at..at + of.len()) {
                    Some(into) if !of.is_empty() => into.copy_from_slice(of),
                    _ => into[at..at + width].fill(f64::NAN),
                }
            }
            for (into, &of) in ids[at..].iter_mut().zip(&row.token_ids) {
                *into = i64::from(of);
            }
            at += width;
        })
    });
    found.map_err(raised)?;
    let array = |of: Vec<f64>| Array2::from_shape_vec((count, width), of);
    let [p, q] = rows.map(array);
    let [p, q] = [p, q].map(|one| one.map_err(|error| refused(error.to_string())));
    let ids = match ids.iter().all(|&id| id < 0) {
        true => None,
        false => Some(Array2::from_shape_vec((count, width), ids)),
    };
    let ids = ids
        .transpose()
        .map_err(|error| refused(error.to_string()))?;
    let ids = ids.map(|ids| ids.to_pyarray(py));
    Ok((p?.to_pyarray(py), q?.to_pyarray(py), ids))
}

/// The mean over positions and its interval of 95%, as reports have them: of a number and a
/// cluster each.
#[pyfunction]
fn clustered(values: Vec<f64>, clusters: Vec<i64>) -> PyResult<(f64, f64, f64)> {
    if values.len() != clusters.len() {
        return Err(bug("a cluster for each number"));
    }
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (value, cluster) in values.iter().zip(clusters) {
        let (sum, size) = sums.entry(cluster).or_default();
        (*sum, *size) = (*sum + value, *size + 1.0);
    }
    Ok(interval(sums.values().copied()))
}

/// A ratio of two sums over clusters and its interval of 95%, as reports have them: of both sums
/// of each cluster.
#[pyfunction]
fn clustered_sums(sums: Vec<f64>, sizes: Vec<f64>) -> PyResult<(f64, f64, f64)> {
    if sums.len() != sizes.len() {
        return Err(bug("a size for each sum"));
    }
    Ok(interval(sums.into_iter().zip(sizes)))
}

/// Returns what is strange about a draft's rows, if anything is, in the words of reports: of the overlap at its
/// own positions and at others, coverage, and how many positions, by prompt.
#[pyfunction]
fn strange_draft(prompts: Vec<[f64; 4]>) -> Option<String> {
    report::strange_words(&gap::DraftFit::new(&prompts)?)
}

fn interval(clusters: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64, f64) {
    let found = Clustered::new(clusters).estimate();
    (found.mean, found.ci95[0], found.ci95[1])
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Made>()?;
    module.add_class::<Summary>()?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(keep, module)?)?;
    module.add_function(wrap_pyfunction!(cite, module)?)?;
    module.add_function(wrap_pyfunction!(drafter, module)?)?;
    module.add_function(wrap_pyfunction!(cut_order, module)?)?;
    module.add_function(wrap_pyfunction!(served, module)?)?;
    module.add_function(wrap_pyfunction!(usual_serving, module)?)?;
    module.add_function(wrap_pyfunction!(clustered, module)?)?;
    module.add_function(wrap_pyfunction!(clustered_sums, module)?)?;
    module.add_function(wrap_pyfunction!(strange_draft, module)?)
}
