//! Two numbers a token: what both models give the tokens of a text, and nothing else of their
//! rows.
//!
//! A line for each token, with the columns `prompt`, `position`, `logp` and `logq`, and where
//! they are known `hit`, `p_hit`, `max_q`, `overlap`, `token` and `group` (`docs/reference/log-format.md`).
//! It is a whole log for draft lengths. Of a draft whose rows depend on where a round began there
//! are `logq_2`, `hit_2` and so on too: what a round that begins at the line drafts second, ...

use super::error::ImportError;
use super::options::Request;
use super::write::{Imported, named};
use crate::log::{
    Dtype, Groups, HeldTensor, Log, Metadata, NEXT_TO_NOTHING as NOTHING, RawTensor, SCORED,
    Sampling, WholeLog,
};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde_json::Value;
use specgap_base::csv::fields;
use specgap_base::files::{DOCUMENT, Lines};
#[cfg(feature = "parquet")]
use specgap_base::side_by_side;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
#[cfg(feature = "parquet")]
use std::sync::{Mutex, PoisonError};

/// Columns that have to be there.
const NEEDED: [&str; 4] = ["prompt", "position", "logp", "logq"];
/// How far a logarithm may be above 0, and how far apart two columns may be that say the same:
/// what half precision rounds.
const ABOVE: f64 = 1e-6;
const APART: f64 = 1e-2;
/// Most depths of a table: no drafter has as many.
const MOST_DEPTHS: usize = 64;
/// V where nobody says it.
const MANY: usize = i32::MAX as usize;

/// Tells whether a file is one of tokens, by its name.
pub fn is_tokens(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("csv" | "jsonl" | "parquet"))
}

/// Opens a file of tokens as a log of lists that have the text's own token alone. The text was
/// drawn, and both models' probabilities are, at a temperature: 1 if not given.
///
/// # Errors
/// Files that cannot be read; columns that are missing; entries that are no logarithms of
/// probabilities, that are out of order or contradict one another. Each names the file, the
/// line and the column, and says what to do.
///
/// # Example
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("text.csv");
/// std::fs::write(&path, "prompt,position,logp,logq\na,0,-0.5,-1.25\na,1,-2,-0.5\n")?;
/// let log = specgap_log::import::open_tokens(&path, None)?;
/// assert_eq!((log.positions(), log.listed()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_tokens(path: &Path, temperature: Option<f64>) -> Result<Log, ImportError> {
    let tokens = Tokens::read(path, usize::MAX, &mut |_| Ok(()))?;
    let mut metadata = Metadata {
        runtime: Some("tokens".to_owned()),
        ..Metadata::default()
    };
    tokens.describe(&mut metadata, temperature.unwrap_or(1.0), None);
    let held = tokens
        .tensors(0, &metadata.groups)
        .into_iter()
        .map(|one| HeldTensor::new(one.name, one.dtype, &one.shape, one.data));
    Ok(Log::held(path, metadata, held.collect(), None)?)
}

/// Writes files of tokens as a log, each in shards of so many lines as memory holds.
pub(super) fn write(request: &Request, log: &mut WholeLog) -> Result<Imported, ImportError> {
    let (mut positions, mut texts) = (0, 0);
    for path in &request.joint {
        let mut shard = |tokens: &Tokens| {
            let metadata = log.metadata_mut();
            let before = metadata.vocabulary;
            tokens.describe(metadata, request.temperature, request.vocabulary);
            metadata.vocabulary = metadata.vocabulary.max(before);
            let groups = metadata.groups.clone();
            log.shard(tokens.logp.len(), &tokens.tensors(texts, &groups))?;
            positions += tokens.logp.len();
            Ok(())
        };
        let last = Tokens::read(path, PART, &mut shard)?;
        shard(&last)?;
        texts += last.prompts.len() as i64;
    }
    let metadata = log.metadata_mut();
    metadata.target = named(request.target_name.as_ref());
    metadata.draft = named(request.draft_name.as_ref());
    Ok(Imported {
        engine: request.engine.as_str().to_owned(),
        positions,
        texts: usize::try_from(texts).unwrap_or(0),
        vocabulary: metadata.vocabulary.unwrap_or(MANY),
        listed: 1,
        rows: "own tokens".to_owned(),
        temperature_applied: request.temperature,
        unlisted: None,
        same_tokens: positions,
        engine_acceptance: None,
    })
}

/// Lines of a table that are read at a time.
const PART: usize = 1 << 18;

/// What is done with a part of a file.
type TakePart<'a> = dyn FnMut(&Tokens) -> Result<(), ImportError> + 'a;

/// The columns of a part of a file, and what is known of the parts before it.
#[derive(Debug, Default)]
struct Tokens {
    /// Prompts by number, in order of their first lines.
    prompt: Vec<i64>,
    prompts: HashMap<u64, usize>,
    /// Of each prompt the last line of its text, and its position.
    ends: Vec<Option<(usize, i64)>>,
    /// Of each prompt the entry of its group.
    grouped: Vec<u64>,
    /// Which columns the first part has.
    columns: Option<(Vec<OfDepth>, [Option<usize>; 2])>,
    position: Vec<i64>,
    token: Vec<i64>,
    logp: Vec<f64>,
    /// The line of the text's next token; none where nothing is drafted behind the first.
    next: Vec<Option<usize>>,
    /// By depth, from 1: what a round that begins at each line drafts so far.
    said: Vec<SaidOf>,
    /// Which of [`SCORED`] are there.
    scored: [bool; 4],
    has_tokens: bool,
    /// The names of groups, in order of their first lines.
    groups: Vec<String>,
    /// The group of each prompt, by the prompt's number; empty without such a column.
    of_prompt: Vec<usize>,
}

/// What is said of a token that is drafted: ln q, and those of [`SCORED`] that are there.
#[derive(Clone, Copy, Debug)]
struct Said {
    logq: f64,
    scored: [Option<f64>; 4],
}

/// The same of all lines; where no round drafts so far, and of columns that are not there, no numbers.
#[derive(Debug, Default)]
struct SaidOf {
    logq: Vec<f64>,
    scored: [Vec<f64>; 4],
}

/// Where the draft's columns of a depth are.
#[derive(Clone, Debug, PartialEq)]
struct OfDepth {
    logq: usize,
    scored: [Option<usize>; 4],
}

/// An entry as a file has it.
enum Cell<'a> {
    Text(&'a str),
    Number(f64),
    Missing,
}

/// Bits of numbers that are none, where an entry is missing, and where it is a text; its place among
/// the column's texts is in the lower half.
const MISSING: u64 = 0x7ff8_0001 << 32;
const TEXT: u64 = 0x7ff8_0002 << 32;

/// The entries of a column, a number each; none of a column of which nothing is read.
#[derive(Default)]
struct Column {
    is_read: bool,
    /// Whether the first part has none of it.
    is_late: bool,
    entries: Vec<f64>,
    /// Each once.
    texts: Vec<String>,
    places: HashMap<String, usize>,
}

impl Column {
    fn push(&mut self, cell: &Cell<'_>) {
        let entry = match *cell {
            Cell::Number(x) if x.is_nan() => f64::NAN,
            Cell::Number(x) => x,
            Cell::Missing => f64::from_bits(MISSING),
            Cell::Text(text) => {
                let known = self.places.get(text).copied();
                let place = known.unwrap_or_else(|| {
                    self.texts.push(text.to_owned());
                    self.places.insert(text.to_owned(), self.texts.len() - 1);
                    self.texts.len() - 1
                });
                f64::from_bits(TEXT | place as u64 & 0xffff_ffff)
            }
        };
        self.entries.push(entry);
    }

    /// An entry, the same of all that are alike.
    fn bits(&self, record: usize) -> u64 {
        self.entries.get(record).map_or(MISSING, |x| x.to_bits())
    }

    fn cell(&self, record: usize) -> Cell<'_> {
        match self.bits(record) {
            MISSING => Cell::Missing,
            bits if bits & TEXT == TEXT && bits >> 63 == 0 => {
                let text = self.texts.get(bits as u32 as usize);
                text.map_or(Cell::Missing, |text| Cell::Text(text))
            }
            bits => Cell::Number(f64::from_bits(bits)),
        }
    }
}

/// The columns of a file.
#[derive(Default)]
struct Table {
    names: Vec<String>,
    columns: Vec<Column>,
    records: usize,
    /// Records of the parts before.
    before: usize,
    /// The line of the first record, from 1, and those of records in front of which there are empty ones.
    first: usize,
    lines: Vec<(usize, usize)>,
}

impl Table {
    /// Adds a column of a file that names all of them first.
    fn add_new(&mut self, path: &Path, name: &str) -> Result<bool, ImportError> {
        let is_there = self.column(name).is_some();
        match self.add(name) {
            true if is_there => {
                let message = format!("has two columns {name}; leave one of them out");
                Err(ImportError::input(path, message))
            }
            is_read => Ok(is_read),
        }
    }

    /// Adds a column, by whose name it follows whether anything is read of it.
    fn add(&mut self, name: &str) -> bool {
        let depth = |(_, depth): &(&str, &str)| depth.parse::<u32>().is_ok();
        let plain = name
            .rsplit_once('_')
            .filter(depth)
            .map_or(name, |(plain, _)| plain);
        let mut known = NEEDED.iter().chain(&SCORED).chain(&["token", "group"]);
        let is_read = known.any(|known| *known == plain);
        self.names.push(name.to_owned());
        self.columns.push(Column {
            is_read,
            is_late: self.before > 0,
            ..Column::default()
        });
        is_read
    }

    /// Begins a record, which stands on a line.
    fn begin(&mut self, line: usize) {
        if self.line(self.records) != line {
            self.lines.push((self.records, line));
        }
        self.records += 1;
    }

    /// Forgets the records, as they were read.
    fn end_part(&mut self) {
        self.first = self.line(self.records);
        self.lines.clear();
        self.before += std::mem::take(&mut self.records);
        self.columns
            .iter_mut()
            .for_each(|column| column.entries.clear());
    }

    /// The line of a record.
    fn line(&self, record: usize) -> usize {
        let gaps = self.lines.partition_point(|&(first, _)| first <= record);
        let last = gaps.checked_sub(1).and_then(|last| self.lines.get(last));
        last.map_or(self.first + record, |&(first, line)| line + record - first)
    }

    /// Puts an entry of the last record into a column.
    fn put(&mut self, column: usize, cell: &Cell<'_>) {
        let column = self.columns.get_mut(column).filter(|column| column.is_read);
        let Some(column) = column else {
            return;
        };
        while column.entries.len() + 1 < self.records {
            column.push(&Cell::Missing);
        }
        column.push(cell);
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }

    /// The draft's columns: `logq` and its like, and of a draft whose rows depend on where a
    /// round began `logq_2`, `logq_3`, .. and theirs.
    fn by_depth(&self) -> Vec<OfDepth> {
        let at = |depth: usize| {
            let name = |name: &str| match depth {
                1 => name.to_owned(),
                _ => format!("{name}_{depth}"),
            };
            Some(OfDepth {
                logq: self.column(&name("logq"))?,
                scored: SCORED.map(|one| self.column(&name(one))),
            })
        };
        // One more than there may be tells that there are too many.
        (1..=MOST_DEPTHS + 1).map_while(at).collect()
    }
}

/// A table as it is read.
struct Reading<'a> {
    path: &'a Path,
    table: &'a Table,
}

impl Reading<'_> {
    fn refused(&self, record: usize, column: usize, message: String) -> ImportError {
        ImportError::Field {
            path: self.path.to_owned(),
            record: self.table.before + record,
            line: self.table.line(record),
            field: self.table.names.get(column).cloned().unwrap_or_default(),
            message,
        }
    }

    fn cell(&self, record: usize, column: usize) -> Cell<'_> {
        let column = self.table.columns.get(column);
        column.map_or(Cell::Missing, |column| column.cell(record))
    }

    fn bits(&self, record: usize, column: usize) -> u64 {
        let column = self.table.columns.get(column);
        column.map_or(MISSING, |column| column.bits(record))
    }

    fn number(&self, record: usize, column: usize) -> Result<f64, ImportError> {
        match self.cell(record, column) {
            Cell::Number(x) => Ok(x),
            Cell::Text(text) => Err(self.refused(record, column, format!("{text:?} is no number"))),
            Cell::Missing => Err(self.refused(
                record,
                column,
                "is missing; a column has an entry in every line".to_owned(),
            )),
        }
    }

    /// Reads what a prompt or a group is called.
    fn name(&self, record: usize, column: usize, missing: &str) -> Result<String, ImportError> {
        match self.cell(record, column) {
            Cell::Text(text) => Ok(text.to_owned()),
            Cell::Number(x) => Ok(x.to_string()),
            Cell::Missing => Err(self.refused(record, column, missing.to_owned())),
        }
    }

    fn whole(&self, record: usize, column: usize) -> Result<i64, ImportError> {
        let x = self.number(record, column)?;
        let fits = x.fract() == 0.0 && (0.0..9e15).contains(&x);
        match fits {
            true => Ok(x as i64),
            false => Err(self.refused(record, column, format!("{x} is no whole number from 0 on"))),
        }
    }

    fn token(&self, record: usize, column: usize) -> Result<i64, ImportError> {
        let token = self.whole(record, column)?;
        if token >= MANY as i64 {
            return Err(self.refused(record, column, format!("{token} is no token's id")));
        }
        Ok(token)
    }

    /// Refuses columns that lines have and none of the parts before them.
    fn late(&self) -> ImportError {
        let mut columns = self.table.columns.iter();
        let late = columns.position(|column| column.is_late && column.is_read);
        let message = "is missing in all lines before these; a column has an entry in every line";
        self.refused(0, late.unwrap_or(usize::MAX), message.to_owned())
    }

    /// Refuses columns of a depth behind one that is not there.
    fn refuse_gaps(&self, depths: usize) -> Result<(), ImportError> {
        let behind = |name: &&String| {
            let depth = name
                .strip_prefix("logq_")
                .and_then(|rest| rest.parse().ok());
            depth.is_some_and(|depth: usize| depth > depths)
        };
        if depths > MOST_DEPTHS {
            return Err(ImportError::input(
                self.path,
                format!("has columns of {depths} depths; keep the first {MOST_DEPTHS} at most"),
            ));
        }
        match self.table.names.iter().find(behind) {
            Some(name) => Err(ImportError::input(
                self.path,
                format!(
                    "has a column {name} and none logq_{}; depths count from 1, as logq, logq_2, \
                     logq_3",
                    depths + 1
                ),
            )),
            None => Ok(()),
        }
    }

    /// Reads what a line says of a token that the target gives e^`logp`.
    fn said(&self, record: usize, columns: &OfDepth, logp: f64) -> Result<Said, ImportError> {
        let q = self.number(record, columns.logq)?;
        if q > ABOVE || q.is_nan() {
            return Err(self.refused(record, columns.logq, not_a_logarithm(q)));
        }
        let logq = q.clamp(NOTHING, 0.0);
        let mut scored = [None; 4];
        for (value, column) in scored.iter_mut().zip(columns.scored) {
            let Some(column) = column else { continue };
            let x = match self.cell(record, column) {
                Cell::Text(text) if text.eq_ignore_ascii_case("true") => 1.0,
                Cell::Text(text) if text.eq_ignore_ascii_case("false") => 0.0,
                _ => self.number(record, column)?,
            };
            if !(-ABOVE..=1.0 + ABOVE).contains(&x) {
                return Err(self.refused(record, column, format!("{x} is not in [0, 1]")));
            }
            *value = Some(x.clamp(0.0, 1.0));
        }
        let [hit, p_hit, max_q, overlap] = scored;
        let [hit_at, p_hit_at, max_q_at, overlap_at] =
            columns.scored.map(|column| column.unwrap_or(usize::MAX));
        if let Some(hit) = hit.filter(|&hit| hit != 0.0 && hit != 1.0) {
            return Err(self.refused(
                record,
                hit_at,
                format!("{hit} is neither 0 nor 1: 1 where the token is the draft's likeliest"),
            ));
        }
        let (mass_p, mass_q) = (logp.exp(), logq.exp());
        let is_hit = hit == Some(1.0);
        let is_miss = hit == Some(0.0);
        let beside = |column: usize, other: &str, x: f64| {
            let message =
                format!("{x} contradicts {other} of the line; all columns are of one token");
            Err(self.refused(record, column, message))
        };
        // What has more than half of the mass is the likeliest.
        if is_miss && mass_q > 0.5 + APART {
            return beside(hit_at, "logq", 0.0);
        }
        if let Some(x) = max_q
            && (x < mass_q - APART
                || is_hit && (x - mass_q).abs() > APART
                || is_miss && x + mass_q > 1.0 + APART)
        {
            return beside(max_q_at, "logq", x);
        }
        if let Some(x) = p_hit
            && (is_hit && (x - mass_p).abs() > APART || is_miss && x + mass_p > 1.0 + APART)
        {
            return beside(p_hit_at, "logp", x);
        }
        if let Some(x) = overlap
            && (x < mass_p.min(mass_q) - APART || x > 1.0 - (mass_p - mass_q).abs() + APART)
        {
            return beside(overlap_at, "logp and logq", x);
        }
        Ok(Said { logq, scored })
    }
}

impl Tokens {
    /// Reads a file: parts of so many lines are handed over, and the last is returned.
    fn read(path: &Path, most: usize, take: &mut TakePart<'_>) -> Result<Self, ImportError> {
        let mut tokens = Self::default();
        let mut part = |table: &mut Table| {
            // What a round drafts at a line is told of the lines behind it too.
            if table.records < most || table.column("logq_2").is_some() {
                return Ok(());
            }
            tokens.read_part(path, table)?;
            table.end_part();
            take(&tokens)?;
            tokens.end_part();
            Ok(())
        };
        let ending = path.extension().and_then(|ending| ending.to_str());
        let table = match ending {
            Some("csv") => csv(path, &mut part)?,
            Some("jsonl") => jsonl(path, &mut part)?,
            Some("parquet") => parquet(path, &mut part)?,
            _ => {
                return Err(ImportError::input(
                    path,
                    "is no file of tokens: these end in .csv, .jsonl or .parquet",
                ));
            }
        };
        tokens.read_part(path, &table)?;
        Ok(tokens)
    }

    /// Forgets the lines, and keeps what is known of prompts and groups.
    fn end_part(&mut self) {
        *self = Self {
            prompts: std::mem::take(&mut self.prompts),
            ends: std::mem::take(&mut self.ends),
            grouped: std::mem::take(&mut self.grouped),
            columns: self.columns.take(),
            has_tokens: self.has_tokens,
            scored: self.scored,
            groups: std::mem::take(&mut self.groups),
            of_prompt: std::mem::take(&mut self.of_prompt),
            ..Self::default()
        };
    }

    fn read_part(&mut self, path: &Path, table: &Table) -> Result<(), ImportError> {
        let reading = Reading { path, table };
        if let Some(missing) = NEEDED.iter().find(|name| table.column(name).is_none()) {
            return Err(ImportError::input(
                path,
                format!(
                    "has no column {missing}; it has {}. A line is a token of the text, with {}, \
                     and if they are known {} and token (docs/reference/log-format.md)",
                    table.names.join(", "),
                    NEEDED.join(", "),
                    SCORED.join(", ")
                ),
            ));
        }
        let [prompt, position, logp, _] =
            NEEDED.map(|name| table.column(name).unwrap_or(usize::MAX));
        let by_depth = table.by_depth();
        reading.refuse_gaps(by_depth.len())?;
        let own = table.column("token");
        let group = table.column("group");
        let columns = (by_depth, [own, group]);
        match &self.columns {
            Some(before) if *before != columns => return Err(reading.late()),
            _ => self.columns = Some(columns.clone()),
        }
        let by_depth = columns.0;
        self.has_tokens = own.is_some();
        self.scored = by_depth[0].scored.map(|column| column.is_some());
        let mut last = (MISSING, 0);
        for record in 0..table.records {
            let name = reading.bits(record, prompt);
            if name != last.0 {
                reading.name(record, prompt, "is missing")?;
                let count = self.prompts.len();
                last = (name, *self.prompts.entry(name).or_insert(count));
                self.ends.resize(self.prompts.len(), None);
            } else if name == MISSING {
                reading.name(record, prompt, "is missing")?;
            }
            let at = last.1;
            let id = at as i64;
            if let Some(column) = group {
                let own = reading.bits(record, column);
                if self.grouped.get(at) != Some(&own) {
                    self.take_group(&reading, (record, column), id)?;
                    self.grouped.resize(self.prompts.len(), own);
                }
            }
            let here = reading.whole(record, position)?;
            let before = self.ends[at];
            let wanted = before.map_or(0, |(_, last)| last + 1);
            if here != wanted && here != 0 {
                return Err(reading.refused(
                    record,
                    position,
                    format!(
                        "is {here}, where {wanted} is expected: positions of a prompt's text count \
                         from 0 on by one, a line each, and in order"
                    ),
                ));
            }
            if let Some((before, _)) = before.filter(|_| here > 0 && by_depth.len() > 1) {
                self.next[before] = Some(record);
            }
            self.ends[at] = Some((record, here));
            let p = reading.number(record, logp)?;
            if p == f64::NEG_INFINITY {
                let message = "is -inf: the target never draws this token, and the text is drawn from it; \
                               log ln p as it was before anything was cut";
                return Err(reading.refused(record, logp, message.to_owned()));
            }
            if p > ABOVE || p.is_nan() {
                return Err(reading.refused(record, logp, not_a_logarithm(p)));
            }
            let token = own.map(|column| reading.token(record, column));
            self.token.push(token.transpose()?.unwrap_or(0));
            self.prompt.push(id);
            self.position.push(here);
            self.logp.push(p.clamp(NOTHING, 0.0));
            if by_depth.len() > 1 {
                self.next.push(None);
            }
        }
        if self.logp.is_empty() {
            return Err(ImportError::input(path, "has no line of a token"));
        }
        for (ahead, columns) in by_depth.iter().enumerate() {
            let mut all = SaidOf::default();
            for record in 0..self.logp.len() {
                // What lies behind a text's end is not read.
                let said = match self.ahead(record, ahead) {
                    Some(at) => Some(reading.said(record, columns, self.logp[at])?),
                    None => None,
                };
                all.logq.push(said.map_or(f64::NAN, |said| said.logq));
                for (at, scored) in all.scored.iter_mut().enumerate() {
                    if self.scored[at] {
                        let value = said.and_then(|said| said.scored[at]);
                        scored.push(value.unwrap_or(f64::NAN));
                    }
                }
            }
            self.said.push(all);
        }
        Ok(())
    }

    /// Takes the group that a line gives its prompt, which is the same in all of the prompt's lines.
    fn take_group(
        &mut self,
        reading: &Reading<'_>,
        (record, column): (usize, usize),
        prompt: i64,
    ) -> Result<(), ImportError> {
        let missing = "is missing; name the group of every line, or leave the column out";
        let name = reading.name(record, column, missing)?;
        let known = self.groups.iter().position(|other| *other == name);
        let before = usize::try_from(prompt).ok();
        let before = before.and_then(|prompt| self.of_prompt.get(prompt).copied());
        if let Some(before) = before.filter(|&before| Some(before) != known) {
            let before = self.groups.get(before).map_or("", String::as_str);
            return Err(reading.refused(
                record,
                column,
                format!(
                    "is {name:?}, and {before:?} at an earlier line of the prompt; a prompt is of \
                     one group: give prompts of several groups other names"
                ),
            ));
        }
        if known.is_none() && self.groups.len() == Groups::MOST {
            return Err(reading.refused(record, column, Groups::too_many()));
        }
        if before.is_none() {
            // Prompts are numbered as they come.
            self.of_prompt.push(known.unwrap_or(self.groups.len()));
        }
        if known.is_none() {
            self.groups.push(name);
        }
        Ok(())
    }

    /// The line of the token that stands so many behind a line's own in its text.
    fn ahead(&self, record: usize, tokens: usize) -> Option<usize> {
        (0..tokens).try_fold(record, |at, _| self.next.get(at).copied().flatten())
    }

    /// Says how the rows came about. A log has nothing but the text's own tokens, so that none
    /// of them is known to be the most probable.
    fn describe(&self, metadata: &mut Metadata, temperature: f64, vocabulary: Option<usize>) {
        let largest = self.token.iter().copied().max().unwrap_or(0);
        let least = usize::try_from(largest).unwrap_or(0) + 2;
        metadata.vocabulary = Some(match self.has_tokens {
            true => vocabulary.unwrap_or(least).max(least),
            false => vocabulary.unwrap_or(MANY),
        });
        metadata.temperature_applied = Some(match temperature > 0.0 {
            true => temperature,
            false => 1.0,
        });
        let sampling = metadata.sampling.get_or_insert_with(Sampling::default);
        sampling.temperature = temperature;
        metadata.extra.insert("top".to_owned(), 0.into());
        for name in &self.groups {
            if !metadata.groups.contains(name) {
                metadata.groups.push(name.clone());
            }
        }
    }

    /// The tensors, prompts counting from `first` on, and groups by their places among `groups`.
    fn tensors(&self, first: i64, groups: &[String]) -> Vec<RawTensor> {
        let (count, depths) = (self.logp.len(), self.said.len());
        let floats = |name: &'static str, shape: Vec<usize>, values: &[f64]| RawTensor {
            name,
            dtype: Dtype::F64,
            shape,
            data: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        let ids = |name: &'static str, shape: Vec<usize>, ids: &[i64]| RawTensor {
            shape,
            ..RawTensor::integers(name, ids)
        };
        // Of each line what is said of it depth by depth.
        let said = |of: &dyn Fn(&SaidOf) -> &[f64], none: f64| -> Vec<f64> {
            let columns: Vec<&[f64]> = self.said.iter().map(of).collect();
            let all = (0..count).flat_map(|line| columns.iter().map(move |all| all[line]));
            all.map(|x| if x.is_nan() { none } else { x }).collect()
        };
        let drafted = (0..count).flat_map(|line| {
            let token = |at: usize| self.token.get(at).copied();
            (0..depths).map(move |ahead| self.ahead(line, ahead).and_then(token).unwrap_or(-1))
        });
        let logq = said(&|all| &all.logq, NOTHING);
        let drafted: Vec<i64> = drafted.collect();
        let of_depths = |last: &[usize]| match depths {
            1 => [&[count][..], last].concat(),
            _ => [&[count, depths][..], last].concat(),
        };
        let prompts: Vec<i64> = self.prompt.iter().map(|id| first + id).collect();
        let mut tensors = vec![
            floats("target_logprobs", vec![count, 1], &self.logp),
            floats("draft_logprobs", of_depths(&[1]), &logq),
            ids("target_token_ids", vec![count, 1], &self.token),
            ids("draft_token_ids", of_depths(&[1]), &drafted),
            RawTensor::integers("prompt_id", &prompts),
            RawTensor::integers("position", &self.position),
            RawTensor::integers("token", &self.token),
        ];
        if !self.groups.is_empty() {
            let named = |prompt: &i64| {
                let group = self.of_prompt.get(usize::try_from(*prompt).ok()?)?;
                let name = self.groups.get(*group)?;
                groups.iter().position(|other| other == name)
            };
            let numbers: Vec<i64> = (self.prompt.iter())
                .map(|prompt| named(prompt).map_or(-1, |at| at as i64))
                .collect();
            tensors.push(RawTensor::integers("group", &numbers));
        }
        for (at, name) in SCORED.into_iter().enumerate() {
            if self.scored[at] {
                let values = said(&|all| &all.scored[at], -1.0);
                tensors.push(floats(name, of_depths(&[]), &values));
            }
        }
        tensors
    }
}

fn not_a_logarithm(x: f64) -> String {
    format!(
        "{x} is no natural logarithm of a probability, which is at most 0; write ln of what the \
         model gives the token, not the probability itself"
    )
}

/// Hands over the lines of a file that are not empty, each with its number, from 1.
fn each_line(
    path: &Path,
    mut take: impl FnMut(usize, &str) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let refused = |error| ImportError::input(path, format!("cannot be read: {error}"));
    let mut lines = Lines::open(path, DOCUMENT).map_err(refused)?;
    while let Some((number, line)) = lines.next_line().map_err(refused)? {
        if !line.trim_ascii().is_empty() {
            take(number, line)?;
        }
    }
    Ok(())
}

/// A text of a table as a cell.
fn parsed(text: &str) -> Cell<'_> {
    // A number as a rule, with nothing around it.
    match text.parse().or_else(|_| text.trim().parse()) {
        Ok(x) => Cell::Number(x),
        Err(_) => match text.trim() {
            "" => Cell::Missing,
            text => Cell::Text(text),
        },
    }
}

/// Takes the records of a table that are enough for a part.
type Part<'a> = dyn FnMut(&mut Table) -> Result<(), ImportError> + 'a;

/// Comma-separated values, with names in the first line.
fn csv(path: &Path, part: &mut Part<'_>) -> Result<Table, ImportError> {
    let mut table = Table::default();
    each_line(path, |number, line| {
        if table.names.is_empty() {
            table.first = number + 1;
            return fields(line).try_for_each(|name| table.add_new(path, name.trim()).map(|_| ()));
        }
        part(&mut table)?;
        table.begin(number);
        let mut count = 0;
        for field in fields(line) {
            table.put(count, &parsed(&field));
            count += 1;
        }
        if count == table.names.len() {
            return Ok(());
        }
        Err(ImportError::input(
            path,
            format!(
                "line {number} has {count} entries where the first line names {} columns; quote entries \
                 that have a comma in them",
                table.names.len()
            ),
        ))
    })?;
    match table.names.is_empty() {
        true => Err(ImportError::input(path, "is empty")),
        false => Ok(table),
    }
}

/// An object a line; columns are the fields of all of them.
fn jsonl(path: &Path, part: &mut Part<'_>) -> Result<Table, ImportError> {
    let mut table = Table {
        first: 1,
        ..Table::default()
    };
    each_line(path, |number, line| {
        part(&mut table)?;
        table.begin(number);
        let mut text = serde_json::Deserializer::from_str(line);
        let read = text.deserialize_map(Fields(&mut table));
        read.and_then(|()| text.end()).map_err(|error| {
            ImportError::input(path, format!("line {number} is no JSON object: {error}"))
        })
    })?;
    Ok(table)
}

/// What the fields of a line's object are put into.
struct Fields<'a>(&'a mut Table);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(at) = fields.next_key_seed(Name(self.0))? {
            if self.0.columns[at].entries.len() == self.0.records {
                let name = &self.0.names[at];
                return Err(A::Error::custom(format!("key {name:?} is there twice")));
            }
            self.0.put_value(at, fields.next_value()?);
        }
        Ok(())
    }
}

/// Where the column of a name is found, or made.
struct Name<'a>(&'a mut Table);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<usize, D::Error> {
        name.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<usize, E> {
        Ok(self.0.place(name))
    }
}

impl Table {
    /// The column of a name, which is added where there is none.
    fn place(&mut self, name: &str) -> usize {
        self.column(name).unwrap_or_else(|| {
            self.add(name);
            self.names.len() - 1
        })
    }

    fn put_value(&mut self, at: usize, value: Value) {
        match value {
            Value::Null => self.put(at, &Cell::Missing),
            Value::Number(x) => self.put(at, &x.as_f64().map_or(Cell::Missing, Cell::Number)),
            Value::Bool(is) => self.put(at, &Cell::Number(f64::from(u8::from(is)))),
            Value::String(text) => self.put(at, &parsed(&text)),
            // A list is depth by depth.
            Value::Array(all) if all.len() <= MOST_DEPTHS => {
                for (depth, value) in (1..).zip(all) {
                    let at = match depth {
                        1 => at,
                        _ => self.place(&format!("{}_{depth}", self.names[at])),
                    };
                    match value {
                        Value::Array(_) => self.put(at, &Cell::Text(&value.to_string())),
                        value => self.put_value(at, value),
                    }
                }
            }
            other => self.put(at, &Cell::Text(&other.to_string())),
        }
    }
}

/// The columns of a row group side by side, so many lines at a time.
#[cfg(feature = "parquet")]
fn parquet(path: &Path, part: &mut Part<'_>) -> Result<Table, ImportError> {
    use ::parquet::basic::{ConvertedType, Type};
    use ::parquet::errors::ParquetError;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    let refused = |error: ParquetError| {
        ImportError::input(
            path,
            format!(
                "cannot be read: {error}. Columns may be compressed with snappy, zstd, gzip or lz4; or write it \
                 as .csv"
            ),
        )
    };
    // Each column by a file of its own: readers of one would move each other.
    let open = || -> Result<_, ImportError> {
        let file = std::fs::File::open(path)
            .map_err(|error| ImportError::input(path, format!("cannot be read: {error}")))?;
        SerializedFileReader::new(file).map_err(refused)
    };
    let reader = open()?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut table = Table {
        first: 1,
        ..Table::default()
    };
    // A leaf may be a part of a list, which is no column of numbers.
    for leaf in schema.columns() {
        let name = leaf.path().string();
        let plain = name.split('.').next().unwrap_or(&name);
        let is_number = leaf.converted_type() != ConvertedType::DECIMAL
            && !matches!(
                leaf.physical_type(),
                Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY
            );
        let is_known = table.add_new(path, plain)?;
        if is_known && (leaf.max_rep_level() > 0 || plain != name || !is_number) {
            return Err(ImportError::input(
                path,
                format!(
                    "has a column {plain} of another type than numbers or texts, one a line; of several depths \
                     write {plain}, {plain}_2, {plain}_3, and of decimals and half precision floats"
                ),
            ));
        }
    }
    let all = 0..table.columns.len();
    let files = all.filter(|&at| table.columns[at].is_read);
    let files = files.map(|at| Ok((at, open()?)));
    let files: Vec<_> = files.collect::<Result<_, ImportError>>()?;
    for group in 0..reader.num_row_groups() {
        let rows = reader.metadata().row_group(group).num_rows();
        let mut left = usize::try_from(rows).unwrap_or(0);
        let columns = files.iter().map(|(at, file)| -> Result<_, ParquetError> {
            let reader = file.get_row_group(group)?.get_column_reader(*at)?;
            let leaf = schema.column(*at);
            let open = (reader, leaf.max_def_level(), leaf.converted_type());
            Ok((*at, open))
        });
        let mut columns: Vec<_> = columns.collect::<Result<_, _>>().map_err(refused)?;
        while left > 0 {
            part(&mut table)?;
            let count = left.min(PART);
            let pieces = columns.into_iter().map(|(at, open)| {
                let column = std::mem::take(&mut table.columns[at]);
                Mutex::new((at, open, column))
            });
            let pieces: Vec<_> = pieces.collect();
            let read = side_by_side::each_or_stop(&pieces, |piece| {
                let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
                let (_, (reader, levels, of), column) = &mut *piece;
                column.put_records(reader, (*levels, *of), count)
            });
            columns = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let (at, open, column) = piece.into_inner().unwrap_or_else(PoisonError::into_inner);
                table.columns[at] = column;
                columns.push((at, open));
            }
            read.map_err(refused)?;
            table.records += count;
            left -= count;
        }
    }
    Ok(table)
}

#[cfg(feature = "parquet")]
impl Column {
    /// Puts so many entries of a file's column behind the others.
    fn put_records(
        &mut self,
        reader: &mut ::parquet::column::reader::ColumnReader,
        (levels, of): (i16, ::parquet::basic::ConvertedType),
        count: usize,
    ) -> Result<(), ::parquet::errors::ParquetError> {
        use ::parquet::basic::ConvertedType as Of;
        use ::parquet::column::reader::ColumnReader as From;
        use ::parquet::errors::ParquetError;
        // Entries of one type, of which those that are missing are no values.
        macro_rules! put {
            ($reader:expr, $value:pat => $cell:expr) => {{
                let (mut there, mut values) = (Vec::new(), Vec::new());
                let read = $reader
                    .read_records(count, Some(&mut there), None, &mut values)?
                    .0;
                there.resize(read, levels);
                let mut values = values.iter();
                for level in there {
                    match (level == levels).then(|| values.next()).flatten() {
                        Some($value) => self.push(&$cell),
                        None => self.push(&Cell::Missing),
                    }
                }
                read
            }};
        }
        let read = match reader {
            From::BoolColumnReader(one) => put!(one, &is => Cell::Number(f64::from(u8::from(is)))),
            From::Int32ColumnReader(one) if of == Of::UINT_32 => {
                put!(one, &x => Cell::Number(f64::from(x.cast_unsigned())))
            }
            From::Int32ColumnReader(one) => put!(one, &x => Cell::Number(f64::from(x))),
            From::Int64ColumnReader(one) if of == Of::UINT_64 => {
                put!(one, &x => Cell::Number(x.cast_unsigned() as f64))
            }
            From::Int64ColumnReader(one) => put!(one, &x => Cell::Number(x as f64)),
            From::FloatColumnReader(one) => put!(one, &x => Cell::Number(f64::from(x))),
            From::DoubleColumnReader(one) => put!(one, &x => Cell::Number(x)),
            From::ByteArrayColumnReader(one) => {
                put!(one, bytes => parsed(&String::from_utf8_lossy(bytes.data())))
            }
            From::Int96ColumnReader(_) | From::FixedLenByteArrayColumnReader(_) => {
                return Err(ParquetError::General(
                    "a column is of no number nor text".to_owned(),
                ));
            }
        };
        match read == count {
            true => Ok(()),
            false => Err(ParquetError::EOF(format!(
                "a column has {read} of {count} lines"
            ))),
        }
    }
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: &mut Part<'_>) -> Result<Table, ImportError> {
    Err(ImportError::input(
        path,
        "is Parquet, which this build of specgap does not read: build it with the feature parquet, \
         or write the same columns as .csv or .jsonl",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "parquet")]
    use std::sync::Arc;

    fn refused(name: &str, text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        open_tokens(&path, None).unwrap_err().to_string()
    }

    /// Returns what lines say of the first draft of a round.
    fn of_first(tokens: &Tokens) -> &SaidOf {
        &tokens.said[0]
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line_and_column() {
        // `$` is the head of a table, and `\n` the end of a line.
        let cases = r#"
            $ -> no line of a token
            prompt,position,logp\na,0,-1\n -> no column logq | prompt, position, logp
            $\na,0,0.7,-1\n -> (line 2): logp | not the probability itself
            $\na,0,-1,0.3\n -> (line 2): logq | at most 0
            $\na,0,-inf,-1\n -> (line 2): logp | is -inf: the target never draws
            $\na,0,nan,-1\n -> (line 2): logp | NaN
            $\na,0,-1,nan\n -> (line 2): logq | NaN
            $\na,0,-1,x\n -> (line 2): logq | "x" is no number
            $\na,0,-1,\n -> (line 2): logq | is missing
            $\na,0,-1\n -> line 2 has 3 entries | 4 columns
            $\na,1,-1,-1\n -> (line 2): position | 0 is expected
            $\na,0,-1,-1\na,2,-1,-1\n -> (line 3): position | 1 is expected
            $\n\n\na,0,-1,-1\nb,0,-1,-1\n\na,2,-1,-1\n -> record 2 (line 7): position | 1 is expected
            $\na,0,-1,-1\nb,1,-1,-1\n -> (line 3): position | 0 is expected
            $\na,0.5,-1,-1\n -> (line 2): position | whole number
            $,hit,max_q\na,0,-1,-1,0,0.9\n -> (line 2): max_q | contradicts logq
            $,hit,p_hit\na,0,-1,-1,0,0.9\n -> (line 2): p_hit | contradicts logp
            $,hit\na,0,-1,-0.3,0\n -> (line 2): hit | 0 contradicts logq
            $,overlap\na,0,-1,-9,0.9\n -> (line 2): overlap | contradicts
            $,logp\na,0,-1,-1,-1\n -> two columns logp
            $,hit\na,0,-1,-1,0.5\n -> (line 2): hit | neither 0 nor 1
            $,overlap\na,0,-1,-1,1.5\n -> (line 2): overlap | [0, 1]
            $,hit,max_q\na,0,-1,-1,1,0.9\n -> (line 2): max_q | contradicts logq
            $,max_q\na,0,-1,-0.1,0.2\n -> (line 2): max_q | contradicts logq
            $,hit,p_hit\na,0,-1,-1,1,0.9\n -> (line 2): p_hit | contradicts logp
            $,overlap\na,0,-0.1,-0.1,0.2\n -> (line 2): overlap | contradicts
            $,token\na,0,-1,-1,9e12\n -> (line 2): token | no token's id
        "#;
        for case in cases.trim().lines() {
            let (text, words) = case.trim().split_once(" -> ").unwrap();
            let text = text.replace('$', "prompt,position,logp,logq");
            let error = refused("tokens.csv", &text.replace("\\n", "\n"));
            for word in words.split(" | ") {
                assert!(error.contains(word), "{text:?}: {error}");
            }
        }
        assert!(refused("tokens.csv", "").contains("is empty"));
        assert!(refused("tokens.jsonl", "{\"prompt\": 1}\n[]\n").contains("line 2 is no JSON"));
        let twice = "{\"prompt\": 1, \"logq\": -1, \"logq\": -2}\n";
        assert!(
            refused("tokens.jsonl", twice).contains("line 1")
                && refused("tokens.jsonl", twice).contains("\"logq\" is there twice")
        );
        assert!(refused("tokens.parquet", "no such").contains("tokens.parquet"));
    }

    #[test]
    fn a_group_is_of_a_prompt_and_has_a_name() {
        let head = "prompt,position,logp,logq,group";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let text = format!(
            "{head}\na,0,-1,-1,code\nb,0,-1,-1,\"chat, long\"\na,1,-1,-1,code\nc,0,-1,-1,3\n"
        );
        std::fs::write(&path, text).unwrap();
        let groups = open_tokens(&path, None).unwrap().groups().unwrap().unwrap();
        assert_eq!(groups.names, ["code", "chat, long", "3"]);
        assert_eq!(groups.of, [0, 1, 0, 2].map(Some));
        for (lines, words) in [
            (
                "a,0,-1,-1,code\na,1,-1,-1,chat\n",
                ["(line 3): group", "a prompt is of one group"],
            ),
            ("a,0,-1,-1,\n", ["(line 2): group", "leave the column out"]),
        ] {
            let error = refused("tokens.csv", &format!("{head}\n{lines}"));
            for word in words {
                assert!(error.contains(word), "{error}");
            }
        }
    }

    #[test]
    fn files_of_either_kind_hold_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let csv = "\u{feff}prompt,position,logp,logq,hit,note\n\"a, b\",0,-0.5,-inf,true,x\n\n\
                   7,0,0.0000001,-1.5e0,0,\n\"a, b\",1,-2,-0.25,1,\"\"\"\"\n";
        let jsonl = "{\"prompt\": \"a, b\", \"position\": 0, \"logp\": -0.5, \"logq\": \"-inf\", \
                     \"hit\": true}\n{\"position\": 0, \"prompt\": 7, \"logp\": 0, \"logq\": -1.5e0, \
                     \"hit\": 0}\n{\"prompt\": \"a, b\", \"position\": 1, \"logp\": -2, \
                     \"logq\": -0.25, \"hit\": 1}\n";
        for (name, text) in [("a.csv", csv), ("a.jsonl", jsonl)] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let tokens = Tokens::read(&path, usize::MAX, &mut |_| Ok(())).unwrap();
            assert_eq!(tokens.prompt, [0, 1, 0]);
            assert_eq!(tokens.position, [0, 0, 1]);
            assert_eq!(tokens.logp, [-0.5, 0.0, -2.0]);
            assert_eq!(of_first(&tokens).logq, [NOTHING, -1.5, -0.25]);
            assert_eq!(of_first(&tokens).scored[0], [1.0, 0.0, 1.0]);
            assert_eq!(tokens.scored, [true, false, false, false]);
            let log = open_tokens(&path, Some(0.6)).unwrap();
            let mut row = crate::log::Row::default();
            log.read(0, &mut row).unwrap();
            assert_eq!(
                (row.hit, row.overlap, row.target[0]),
                (Some(1.0), None, -0.5)
            );
            assert_eq!(log.metadata().temperature_applied, Some(0.6));
        }
    }

    /// Parts of any size say together what one says, and refuse what it refuses.
    #[test]
    fn a_table_is_the_same_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let all_of = |path: &Path, most: usize| -> Result<Vec<Vec<u8>>, ImportError> {
            let mut all: Vec<Vec<u8>> = Vec::new();
            let mut take = |tokens: &Tokens| {
                let groups = ["x", "y", "z"].map(str::to_owned);
                let tensors = tokens.tensors(5, &groups);
                all.resize(tensors.len(), Vec::new());
                for (all, one) in all.iter_mut().zip(tensors) {
                    all.extend(one.data);
                }
                Ok(())
            };
            let last = Tokens::read(path, most, &mut take)?;
            take(&last)?;
            Ok(all)
        };
        let lines: Vec<String> = (0..40)
            .map(|line| {
                let (prompt, position) = ([line % 2, line / 20][line / 20], line % 20 / 2);
                let position = if line < 20 { position } else { line - 20 };
                let group = ["x", "y"][prompt % 2];
                let gap = if line % 7 == 3 { "\n\n" } else { "\n" };
                format!(
                    "p{}_{prompt},{position},-{line}.5,-1,1,{group}{gap}",
                    line / 20
                )
            })
            .collect();
        let path = folder.path().join("a.csv");
        let head = "prompt,position,logp,logq,hit,group\n";
        std::fs::write(&path, format!("{head}{}", lines.concat())).unwrap();
        let whole = all_of(&path, usize::MAX).unwrap();
        assert_eq!((whole.len(), whole[0].len()), (9, 40 * 8));
        for most in [1, 2, 3, 7, 39, 40] {
            assert_eq!(all_of(&path, most).unwrap(), whole, "{most}");
        }
        // What is wrong is told of the same record and line.
        let wrong = lines.concat().replace("p1_1,15,", "p1_1,16,");
        std::fs::write(&path, format!("{head}{wrong}")).unwrap();
        let error = |most: usize| all_of(&path, most).unwrap_err().to_string();
        assert!(
            error(usize::MAX).contains("record 35 (line 42): position"),
            "{}",
            error(9)
        );
        assert_eq!(error(4), error(usize::MAX));
        // A field that lines have and none of the parts before them.
        let path = folder.path().join("a.jsonl");
        let line = |position: usize, more: &str| {
            format!("{{\"prompt\":0,\"position\":{position},\"logp\":-1,\"logq\":-1{more}}}\n")
        };
        let text = [line(0, ""), line(1, ""), line(2, ",\"hit\":1")].concat();
        std::fs::write(&path, text).unwrap();
        let error = |most: usize| all_of(&path, most).unwrap_err().to_string();
        assert!(
            error(9).contains("(line 1): hit: is missing"),
            "{}",
            error(9)
        );
        assert!(
            error(2).contains("(line 3): hit: is missing in all lines before"),
            "{}",
            error(2)
        );
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_holds_the_same() {
        use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
        use ::parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
        use ::parquet::file::properties::WriterProperties;
        use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
        use ::parquet::schema::parser::parse_message_type;
        fn column<T: DataType>(
            group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
            values: &[T::T],
            there: Option<&[i16]>,
        ) {
            let mut column = group.next_column().unwrap().unwrap();
            let typed = column.typed::<T>();
            typed.write_batch(values, there, None).unwrap();
            column.close().unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let schema = "message tokens { REQUIRED BYTE_ARRAY prompt (UTF8); REQUIRED INT64 position; \
                      REQUIRED DOUBLE logp; OPTIONAL DOUBLE logq; OPTIONAL BOOLEAN hit; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        // Two row groups that are alike but for their prompts.
        let write = |there: &[i16], packed: Compression| {
            let file = std::fs::File::create(&path).unwrap();
            let packed = WriterProperties::builder().set_compression(packed);
            let packed = Arc::new(packed.build());
            let mut out = SerializedFileWriter::new(file, Arc::clone(&schema), packed).unwrap();
            for names in [["a", "a", "b"], ["c", "c", "d"]] {
                let mut group = out.next_row_group().unwrap();
                let prompts = names.map(|name| name.as_bytes().to_vec().into());
                column::<ByteArrayType>(&mut group, &prompts, None);
                column::<Int64Type>(&mut group, &[0, 1, 0], None);
                column::<DoubleType>(&mut group, &[-0.5, -0.25, -1.0], None);
                let values = &[-1.0, -0.75, -0.125][..there.iter().sum::<i16>() as usize];
                column::<DoubleType>(&mut group, values, Some(there));
                column::<BoolType>(&mut group, &[true, false, true], Some(&[1; 3]));
                group.close().unwrap();
            }
            out.close().unwrap();
        };
        for packed in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(ZstdLevel::default()),
            Compression::GZIP(GzipLevel::default()),
            Compression::LZ4_RAW,
        ] {
            write(&[1, 1, 1], packed);
            let tokens = Tokens::read(&path, usize::MAX, &mut |_| Ok(())).unwrap();
            assert_eq!(tokens.prompt, [0, 0, 1, 2, 2, 3]);
            assert_eq!(tokens.position, [0, 1, 0, 0, 1, 0]);
            assert_eq!(tokens.logp, [-0.5, -0.25, -1.0].repeat(2));
            let of_first = of_first(&tokens);
            assert_eq!(of_first.logq, [-1.0, -0.75, -0.125].repeat(2));
            assert_eq!(of_first.scored[0], [1.0, 0.0, 1.0].repeat(2));
            let mut before = Vec::new();
            let mut take = |tokens: &Tokens| {
                before.extend_from_slice(&tokens.prompt);
                Ok(())
            };
            let last = Tokens::read(&path, 2, &mut take).unwrap();
            assert_eq!((before, last.prompt), (vec![0, 0, 1], vec![2, 2, 3]));
        }
        write(&[1, 0, 1], Compression::SNAPPY);
        let error = Tokens::read(&path, usize::MAX, &mut |_| Ok(()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("(line 2): logq: is missing"), "{error}");
        // A list is no column, and a decimal no float.
        for (kind, word) in [
            (
                "REQUIRED group logq (LIST) { REPEATED group list { REQUIRED DOUBLE element; } }",
                "logq_2",
            ),
            (
                "REQUIRED INT64 logq (DECIMAL(9, 3))",
                "decimals and half precision floats",
            ),
        ] {
            let kind = if kind.ends_with('}') {
                kind.to_owned()
            } else {
                format!("{kind};")
            };
            let schema = format!("message tokens {{ REQUIRED INT64 prompt; {kind} }}");
            let schema = Arc::new(parse_message_type(&schema).unwrap());
            let file = std::fs::File::create(&path).unwrap();
            let out = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
            out.close().unwrap();
            let error = Tokens::read(&path, 9, &mut |_| Ok(()))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("has a column logq") && error.contains(word),
                "{error}"
            );
        }
    }
}
