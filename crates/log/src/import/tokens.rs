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
use crate::log::{Dtype, Groups, HeldTensor, Log, Metadata, RawTensor, SCORED, Sampling, WholeLog};
use specgap_base::csv::fields;
use specgap_base::files::{DOCUMENT, read_lines};
use specgap_base::sorted::Map;
use std::collections::HashMap;
use std::path::Path;

/// Columns that have to be there.
const NEEDED: [&str; 4] = ["prompt", "position", "logp", "logq"];
/// How far a logarithm may be above 0, and how far apart two columns may be that say the same:
/// what half precision rounds.
const ABOVE: f64 = 1e-6;
const APART: f64 = 1e-2;
/// ln of what a draft gives a token that it cannot draw: its exponential is next to nothing, and
/// a list of it is still a row.
const NOTHING: f64 = -700.0;
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
    let tokens = Tokens::read(path)?;
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

/// Writes files of tokens as a log, a shard each.
pub(super) fn write(request: &Request, log: &mut WholeLog) -> Result<Imported, ImportError> {
    let (mut positions, mut texts) = (0, 0);
    for path in &request.joint {
        let tokens = Tokens::read(path)?;
        let metadata = log.metadata_mut();
        let before = metadata.vocabulary;
        tokens.describe(metadata, request.temperature, request.vocabulary);
        metadata.vocabulary = metadata.vocabulary.max(before);
        let groups = metadata.groups.clone();
        log.shard(tokens.logp.len(), &tokens.tensors(texts, &groups))?;
        positions += tokens.logp.len();
        texts += tokens.prompts as i64;
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

/// The columns of a file.
#[derive(Debug, Default)]
struct Tokens {
    /// Prompts by number, in order of their first lines.
    prompt: Vec<i64>,
    prompts: usize,
    position: Vec<i64>,
    token: Vec<i64>,
    logp: Vec<f64>,
    /// The line of the text's next token.
    next: Vec<Option<usize>>,
    /// By depth, from 1, and line: what a round that begins there drafts so far.
    said: Vec<Vec<Option<Said>>>,
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

/// Where the draft's columns of a depth are.
struct OfDepth {
    logq: usize,
    scored: [Option<usize>; 4],
}

/// An entry as a file has it.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Text(String),
    Number(f64),
    Missing,
}

/// Lines of a file, each with its number, from 1.
struct Table {
    names: Vec<String>,
    lines: Vec<(usize, Vec<Cell>)>,
}

impl Table {
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
            record,
            line: self.table.lines.get(record).map_or(0, |(line, _)| *line),
            field: self.table.names.get(column).cloned().unwrap_or_default(),
            message,
        }
    }

    fn cell(&self, record: usize, column: usize) -> &Cell {
        let line = self.table.lines.get(record);
        line.and_then(|(_, cells)| cells.get(column))
            .unwrap_or(&Cell::Missing)
    }

    fn number(&self, record: usize, column: usize) -> Result<f64, ImportError> {
        match self.cell(record, column) {
            Cell::Number(x) => Ok(*x),
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
            Cell::Text(text) => Ok(text.clone()),
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
        let beside = |column: usize, other: &str, x: f64| {
            let message =
                format!("{x} contradicts {other} of the line; all columns are of one token");
            Err(self.refused(record, column, message))
        };
        if let Some(x) = max_q
            && (x < mass_q - APART || is_hit && (x - mass_q).abs() > APART)
        {
            return beside(max_q_at, "logq", x);
        }
        if let Some(x) = p_hit
            && is_hit
            && (x - mass_p).abs() > APART
        {
            return beside(p_hit_at, "logp", x);
        }
        if let Some(x) = overlap
            && x < mass_p.min(mass_q) - APART
        {
            return beside(overlap_at, "logp and logq", x);
        }
        Ok(Said { logq, scored })
    }
}

impl Tokens {
    fn read(path: &Path) -> Result<Self, ImportError> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let table = match ending {
            Some("csv") => csv(path, &text(path)?)?,
            Some("jsonl") => jsonl(path, &text(path)?)?,
            Some("parquet") => parquet(path)?,
            _ => {
                return Err(ImportError::input(
                    path,
                    "is no file of tokens: these end in .csv, .jsonl or .parquet",
                ));
            }
        };
        Self::new(path, &table)
    }

    fn new(path: &Path, table: &Table) -> Result<Self, ImportError> {
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
        let mut tokens = Self {
            has_tokens: own.is_some(),
            scored: by_depth[0].scored.map(|column| column.is_some()),
            ..Self::default()
        };
        let mut prompts: HashMap<String, i64> = HashMap::new();
        // The last line of each prompt's text, and its position.
        let mut ends: Map<i64, (usize, i64)> = Map::new();
        for record in 0..table.lines.len() {
            let name = reading.name(record, prompt, "is missing")?;
            let count = prompts.len() as i64;
            let id = *prompts.entry(name).or_insert(count);
            if let Some(column) = group {
                tokens.take_group(&reading, (record, column), id)?;
            }
            let here = reading.whole(record, position)?;
            let before = ends.get(&id).copied();
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
            if let Some((before, _)) = before.filter(|_| here > 0) {
                tokens.next[before] = Some(record);
            }
            ends.insert(id, (record, here));
            let p = reading.number(record, logp)?;
            if p > ABOVE || !p.is_finite() {
                return Err(reading.refused(record, logp, not_a_logarithm(p)));
            }
            let token = own.map(|column| reading.token(record, column));
            tokens.token.push(token.transpose()?.unwrap_or(0));
            tokens.prompt.push(id);
            tokens.position.push(here);
            tokens.logp.push(p.clamp(NOTHING, 0.0));
            tokens.next.push(None);
        }
        if tokens.logp.is_empty() {
            return Err(ImportError::input(path, "has no line of a token"));
        }
        tokens.prompts = prompts.len();
        for (ahead, columns) in by_depth.iter().enumerate() {
            let lines = 0..tokens.logp.len();
            let said = lines.map(|record| match tokens.ahead(record, ahead) {
                Some(at) => reading.said(record, columns, tokens.logp[at]).map(Some),
                // What lies behind a text's end is not read.
                None => Ok(None),
            });
            let said = said.collect::<Result<_, _>>()?;
            tokens.said.push(said);
        }
        Ok(tokens)
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
        let said = || (0..count).flat_map(|line| self.said.iter().map(move |all| all[line]));
        let drafted = (0..count).flat_map(|line| {
            let token = |at: usize| self.token.get(at).copied();
            (0..depths).map(move |ahead| self.ahead(line, ahead).and_then(token).unwrap_or(-1))
        });
        let logq = said().map(|said| said.map_or(NOTHING, |said| said.logq));
        let (logq, drafted): (Vec<f64>, Vec<i64>) = (logq.collect(), drafted.collect());
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
                let value = |said: Option<Said>| said.and_then(|said| said.scored[at]);
                let values: Vec<f64> = said().map(|one| value(one).unwrap_or(-1.0)).collect();
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

fn text(path: &Path) -> Result<String, ImportError> {
    let read = read_lines(path, DOCUMENT);
    read.map_err(|error| ImportError::input(path, format!("cannot be read: {error}")))
}

/// A text of a table as a cell.
fn parsed(text: &str) -> Cell {
    match text.trim() {
        "" => Cell::Missing,
        text => match text.parse() {
            Ok(x) => Cell::Number(x),
            Err(_) => Cell::Text(text.to_owned()),
        },
    }
}

/// Comma-separated values, with names in the first line.
fn csv(path: &Path, text: &str) -> Result<Table, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let (_, names) = lines
        .next()
        .ok_or_else(|| ImportError::input(path, "is empty"))?;
    let names: Vec<String> = fields(names)
        .into_iter()
        .map(|name| name.trim().to_owned())
        .collect();
    let lines = lines.map(|(number, line)| {
        let cells: Vec<Cell> = fields(line).iter().map(|cell| parsed(cell)).collect();
        if cells.len() == names.len() {
            return Ok((number, cells));
        }
        Err(ImportError::input(
            path,
            format!(
                "line {number} has {} entries where the first line names {} columns; quote entries \
                 that have a comma in them",
                cells.len(),
                names.len()
            ),
        ))
    });
    let lines = lines.collect::<Result<_, _>>()?;
    Ok(Table { names, lines })
}

/// An object a line; columns are the fields of all of them.
fn jsonl(path: &Path, text: &str) -> Result<Table, ImportError> {
    let mut names: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    let text = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in text {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line)
            .map_err(|error| {
                ImportError::input(path, format!("line {number} is no JSON object: {error}"))
            })?;
        let mut cells = vec![Cell::Missing; names.len()];
        // A list is depth by depth.
        let fields = object.into_iter().flat_map(|(name, value)| match value {
            serde_json::Value::Array(all) if all.len() <= MOST_DEPTHS => (1..)
                .zip(all)
                .map(|(depth, value)| match depth {
                    1 => (name.clone(), value),
                    _ => (format!("{name}_{depth}"), value),
                })
                .collect::<Vec<_>>(),
            value => vec![(name, value)],
        });
        for (name, value) in fields {
            let at = names.iter().position(|other| *other == name);
            let at = at.unwrap_or_else(|| {
                names.push(name);
                cells.push(Cell::Missing);
                names.len() - 1
            });
            cells[at] = match value {
                serde_json::Value::Null => Cell::Missing,
                serde_json::Value::Number(x) => x.as_f64().map_or(Cell::Missing, Cell::Number),
                serde_json::Value::Bool(is) => Cell::Number(f64::from(u8::from(is))),
                serde_json::Value::String(text) => parsed(&text),
                other => Cell::Text(other.to_string()),
            };
        }
        lines.push((number, cells));
    }
    Ok(Table { names, lines })
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path) -> Result<Table, ImportError> {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    let refused = |error: ::parquet::errors::ParquetError| {
        ImportError::input(
            path,
            format!(
                "cannot be read: {error}. Compressed files are not read: write it without \
                 compression (pandas: to_parquet(..., compression=None)), or as .csv"
            ),
        )
    };
    let file = std::fs::File::open(path)
        .map_err(|error| ImportError::input(path, format!("cannot be read: {error}")))?;
    let reader = SerializedFileReader::new(file).map_err(refused)?;
    let fields = reader.metadata().file_metadata().schema().get_fields();
    let names = fields.iter().map(|field| field.name().to_owned()).collect();
    let mut lines = Vec::new();
    for (number, row) in (1..).zip(reader.get_row_iter(None).map_err(refused)?) {
        let row = row.map_err(refused)?;
        let cells = row.get_column_iter().map(|(_, field)| match field {
            Field::Null => Cell::Missing,
            Field::Bool(is) => Cell::Number(f64::from(u8::from(*is))),
            Field::Byte(x) => Cell::Number(f64::from(*x)),
            Field::Short(x) => Cell::Number(f64::from(*x)),
            Field::Int(x) => Cell::Number(f64::from(*x)),
            Field::Long(x) => Cell::Number(*x as f64),
            Field::UByte(x) => Cell::Number(f64::from(*x)),
            Field::UShort(x) => Cell::Number(f64::from(*x)),
            Field::UInt(x) => Cell::Number(f64::from(*x)),
            Field::ULong(x) => Cell::Number(*x as f64),
            Field::Float(x) => Cell::Number(f64::from(*x)),
            Field::Double(x) => Cell::Number(*x),
            Field::Str(text) => parsed(text),
            Field::Bytes(bytes) => parsed(&String::from_utf8_lossy(bytes.data())),
            other => Cell::Text(other.to_string()),
        });
        lines.push((number, cells.collect()));
    }
    Ok(Table { names, lines })
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path) -> Result<Table, ImportError> {
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
    fn of_first<T>(tokens: &Tokens, what: impl Fn(Said) -> T) -> Vec<T> {
        tokens.said[0]
            .iter()
            .map(|said| what(said.unwrap()))
            .collect()
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line_and_column() {
        // `$` is the head of a table, and `\n` the end of a line.
        let cases = r#"
            $ -> no line of a token
            prompt,position,logp\na,0,-1\n -> no column logq | prompt, position, logp
            $\na,0,0.7,-1\n -> (line 2): logp | not the probability itself
            $\na,0,-1,0.3\n -> (line 2): logq | at most 0
            $\na,0,-inf,-1\n -> (line 2): logp | -inf
            $\na,0,nan,-1\n -> (line 2): logp | NaN
            $\na,0,-1,nan\n -> (line 2): logq | NaN
            $\na,0,-1,x\n -> (line 2): logq | "x" is no number
            $\na,0,-1,\n -> (line 2): logq | is missing
            $\na,0,-1\n -> line 2 has 3 entries | 4 columns
            $\na,1,-1,-1\n -> (line 2): position | 0 is expected
            $\na,0,-1,-1\na,2,-1,-1\n -> (line 3): position | 1 is expected
            $\na,0,-1,-1\nb,1,-1,-1\n -> (line 3): position | 0 is expected
            $\na,0.5,-1,-1\n -> (line 2): position | whole number
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
                   7,0,0.0000001,-1e-3,0,\n\"a, b\",1,-2,-0.25,1,\"\"\"\"\n";
        let jsonl = "{\"prompt\": \"a, b\", \"position\": 0, \"logp\": -0.5, \"logq\": \"-inf\", \
                     \"hit\": true}\n{\"position\": 0, \"prompt\": 7, \"logp\": 0, \"logq\": -1e-3, \
                     \"hit\": 0}\n{\"prompt\": \"a, b\", \"position\": 1, \"logp\": -2, \
                     \"logq\": -0.25, \"hit\": 1}\n";
        for (name, text) in [("a.csv", csv), ("a.jsonl", jsonl)] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let tokens = Tokens::read(&path).unwrap();
            assert_eq!(tokens.prompt, [0, 1, 0]);
            assert_eq!(tokens.position, [0, 0, 1]);
            assert_eq!(tokens.logp, [-0.5, 0.0, -2.0]);
            assert_eq!(of_first(&tokens, |said| said.logq), [NOTHING, -1e-3, -0.25]);
            let hits = of_first(&tokens, |said| said.scored[0]);
            assert_eq!(hits, [1.0, 0.0, 1.0].map(Some));
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

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_holds_the_same() {
        use ::parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
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
                      REQUIRED DOUBLE logp; OPTIONAL DOUBLE logq; }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let write = |there: &[i16]| {
            let file = std::fs::File::create(&path).unwrap();
            let mut out =
                SerializedFileWriter::new(file, Arc::clone(&schema), Arc::default()).unwrap();
            let mut group = out.next_row_group().unwrap();
            let prompts = ["a", "a", "b"].map(|name| name.as_bytes().to_vec().into());
            column::<ByteArrayType>(&mut group, &prompts, None);
            column::<Int64Type>(&mut group, &[0, 1, 0], None);
            column::<DoubleType>(&mut group, &[-0.5, -0.25, -1.0], None);
            let values = &[-1.0, -0.75, -0.125][..there.iter().sum::<i16>() as usize];
            column::<DoubleType>(&mut group, values, Some(there));
            group.close().unwrap();
            out.close().unwrap();
        };
        write(&[1, 1, 1]);
        let tokens = Tokens::read(&path).unwrap();
        assert_eq!(
            (tokens.prompt.clone(), tokens.position.clone()),
            (vec![0, 0, 1], vec![0, 1, 0])
        );
        assert_eq!(tokens.logp, [-0.5, -0.25, -1.0]);
        assert_eq!(of_first(&tokens, |said| said.logq), [-1.0, -0.75, -0.125]);
        write(&[1, 0, 1]);
        let error = Tokens::read(&path).unwrap_err().to_string();
        assert!(error.contains("(line 2): logq: is missing"), "{error}");
    }
}
