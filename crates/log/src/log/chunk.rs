//! Reading rows, each entry checked.

use super::beside::{Beside, Columns, DRAFT_ROW};
use super::error::{LogError, outside};
use super::metadata::UnlistedTokens;
use super::reader::{Log, Span};
use super::row::{Row, RowKind};
use super::shard::{Drafted, Shard};
use super::tensor::RowWindow;
use specgap_entries::{self as entries, Dtype, Form};
use std::ops::Range;

/// The rows of a [`Span`], as they are in the file.
#[derive(Debug)]
pub struct Chunk<'a> {
    pub(super) log: &'a Log,
    pub(super) shard: &'a Shard,
    pub(super) span: Span,
    pub(super) target: RowWindow<'a>,
    pub(super) beside: Columns<RowWindow<'a>>,
    /// What the draft says; where it has a row for each depth, that is fetched row by row.
    pub(super) drafted: Option<Drafted<'a>>,
}

impl Log {
    /// Reads the rows of a span.
    ///
    /// # Errors
    ///
    /// If a file was shortened or replaced since it was opened, or cannot be read.
    pub fn chunk(&self, span: &Span) -> Result<Chunk<'_>, LogError> {
        let shard = self
            .shards
            .get(span.shard)
            .filter(|shard| span.rows.end <= shard.positions)
            .ok_or_else(|| LogError::format(&self.path, "is not the log that this span is of"))?;
        Ok(Chunk {
            log: self,
            shard,
            span: span.clone(),
            target: shard.target.window(span.rows.clone())?,
            beside: Columns::of(|one| {
                let wanted = !one.is_apart() && !one.is_of_draft();
                let tensor = shard.beside[one].as_ref().filter(|_| wanted);
                let window = tensor.map(|tensor| tensor.window(span.rows.clone()));
                window.transpose()
            })?,
            drafted: match shard.depths {
                1 if self.ahead == 0 => Some(shard.drafted(span.rows.clone())?),
                _ => None,
            },
        })
    }

    /// Reads one position.
    ///
    /// # Errors
    ///
    /// As [`Log::chunk`] and [`Chunk::read`]; also if there is no such position.
    pub fn read(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        if index >= self.positions() {
            return Err(LogError::format(
                &self.path,
                format!("has {} positions, none of number {index}", self.positions()),
            ));
        }
        let (shard, place) = self.place(index);
        let span = Span {
            shard,
            rows: place..place + 1,
            first: index,
        };
        self.chunk(&span)?.read(index, row)
    }
}

impl Chunk<'_> {
    /// The numbers of its positions in the log.
    pub fn positions(&self) -> Range<usize> {
        self.span.positions()
    }

    /// Reads the position with this number in the log, and checks every entry.
    ///
    /// # Errors
    ///
    /// NaN, +inf, a row of only -inf, negative probabilities, probabilities
    /// that do not sum to 1 (within 1e-6 for f64, 1e-4 for f32, 2e-2 for the
    /// half types; what is within is for the reader to normalise), token ids
    /// that repeat or lie outside the vocabulary. Each names file, tensor, row
    /// and column. Also if the chunk does not hold the position.
    pub fn read(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        let read = self.read_rows(index, row);
        read.map_err(|error| error.at_depth_of(self.shard.depths))
    }

    fn read_rows(&self, index: usize, row: &mut Row) -> Result<(), LogError> {
        if !self.positions().contains(&index) {
            return Err(LogError::format(
                &self.shard.path,
                format!("position {index} is outside {:?}", self.positions()),
            ));
        }
        let shard = self.shard;
        let number = index - self.span.first + self.span.rows.start;
        let vocabulary = self.log.vocabulary;
        // The draft's row, where there is one, and its number in its window's tensor.
        let found = match &self.drafted {
            Some(_) => None,
            None => self.log.drafted_at(index)?,
        };
        let (drafted, of_draft) = match (&self.drafted, &found) {
            (Some(drafted), _) => (Some(drafted), number),
            (None, Some((drafted, row))) => (Some(drafted), *row),
            (None, None) => (None, 0),
        };
        let said = |one: Beside| drafted.and_then(|drafted| drafted.beside[one].as_ref());
        let Row {
            token_ids,
            sorted,
            own_ids,
            ..
        } = &mut *row;
        token_ids.clear();
        let own = &self.beside[Beside::TargetTokenIds];
        let listed = match (&self.beside[Beside::TokenIds], own) {
            (Some(window), _) => {
                self.read_ids(window, number, token_ids, sorted)?;
                [token_ids.len(); 2]
            }
            (None, Some(of_target)) => {
                own_ids.iter_mut().for_each(Vec::clear);
                let [target_ids, draft_ids] = &mut *own_ids;
                self.read_ids(of_target, number, target_ids, sorted)?;
                if let Some(window) = said(Beside::DraftTokenIds) {
                    self.read_ids(window, of_draft, draft_ids, sorted)?;
                }
                own_ids.each_ref().map(Vec::len)
            }
            (None, None) => match &shard.sub_vocabulary {
                Some(some) => [vocabulary, some.len()],
                None => [vocabulary; 2],
            },
        };
        let Row {
            target,
            draft,
            scratch,
            ..
        } = row;
        self.target.floats(number, listed[0], scratch, target);
        row.target_kind = shard.target_kind;
        row.draft_kind = shard.draft_kind;
        let full = !shard.is_top_heavy();
        check(&self.target, shard.target_kind, number, target, full)?;
        row.lacks_draft = drafted.is_none() || self.lacks_draft(number)?;
        draft.clear();
        if let Some(drafted) = drafted {
            (drafted.rows).floats(of_draft, listed[1], scratch, draft);
        }
        if !row.lacks_draft
            && let Some(drafted) = drafted
        {
            if !full {
                self.put_next_to_nothing(shard.draft_kind, draft);
            }
            check(&drafted.rows, shard.draft_kind, of_draft, draft, full)?;
            if let Some(some) = &shard.sub_vocabulary {
                let absent = match shard.draft_kind {
                    RowKind::Probabilities => 0.0,
                    RowKind::Logits | RowKind::LogProbabilities => f64::NEG_INFINITY,
                };
                some.spread(draft, vocabulary, absent, &mut row.head);
            }
        } else {
            let width = match (&shard.sub_vocabulary, drafted) {
                (None, Some(_)) => draft.len(),
                // A list of no token.
                (None, None) if shard.has_own_lists() => 0,
                _ => vocabulary,
            };
            draft.clear();
            draft.resize(width, f64::NAN);
        }
        if shard.has_own_lists() {
            let absent = |kind| match (self.log.metadata.unlisted, kind) {
                (None, _) => f64::NAN,
                (Some(UnlistedTokens::NeverDrawn), RowKind::Probabilities) => 0.0,
                (Some(UnlistedTokens::NeverDrawn), _) => f64::NEG_INFINITY,
            };
            row.join_lists([absent(shard.target_kind), absent(shard.draft_kind)]);
        }
        row.sort_list();
        let rests = Beside::RESTS.map(|one| match one.is_of_draft() {
            true => (said(one), of_draft),
            false => (self.beside[one].as_ref(), number),
        });
        self.read_rests(rests, row)?;
        let scored = Beside::SCORED.map(|one| (said(one), of_draft));
        let [hit, p_hit, max_q, overlap] =
            scored.map(|(window, number)| self.head(window, number, row));
        (row.hit, row.p_hit, row.max_q, row.overlap) = (hit?, p_hit?, max_q?, overlap?);
        self.read_beside(number, row)
    }

    /// Reads the mass that rows do not list, of the target and of the draft.
    fn read_rests(
        &self,
        rests: [(Option<&RowWindow<'_>>, usize); 2],
        row: &mut Row,
    ) -> Result<(), LogError> {
        for ((one, (window, number)), out) in
            (Beside::RESTS.into_iter().zip(rests)).zip([&mut row.target_rest, &mut row.draft_rest])
        {
            out.clear();
            let Some(window) = window else {
                // Where there is no row, all of its mass is elsewhere.
                if self.shard.beside[one].is_some() {
                    out.resize(self.log.metadata.rest_temperatures.len(), 1.0);
                }
                continue;
            };
            window.floats(number, window.tensor.columns(), &mut row.scratch, out);
            if let Some(column) = out.iter().position(|x| !(0.0..=1.0).contains(x)) {
                let message = format!("{} is no mass; it must be in [0, 1]", out[column]);
                return Err(window.tensor.refused(number, column, message));
            }
        }
        Ok(())
    }

    /// Reads what is said of a position beside its rows.
    fn read_beside(&self, number: usize, row: &mut Row) -> Result<(), LogError> {
        let one = |of: Beside| {
            let window = self.beside[of].as_ref();
            window.and_then(|window| window.integers(number).next())
        };
        row.prompt_id = one(Beside::PromptId);
        row.position = one(Beside::Position);
        row.token = one(Beside::Token);
        row.output = one(Beside::Output);
        row.covered = self.head(self.beside[Beside::Coverage].as_ref(), number, row)?;
        let heads = Beside::HEADS.map(|one| (self.beside[one].as_ref(), number));
        let [acceptance, overlap] = heads.map(|(window, number)| self.head(window, number, row));
        (row.head_acceptance, row.head_overlap) = (acceptance?, overlap?);
        row.drafts.clear();
        if let Some(window) = &self.beside[Beside::Drafts] {
            row.drafts.extend(window.integers(number));
        }
        for of in [Beside::Token, Beside::Output, Beside::Drafts] {
            let Some(window) = &self.beside[of] else {
                continue;
            };
            for (column, id) in window.integers(number).enumerate() {
                let within = usize::try_from(id).is_ok_and(|id| id < self.log.vocabulary);
                if !within && id != -1 {
                    let message = outside(id, self.log.vocabulary);
                    return Err(window.tensor.refused(number, column, message));
                }
            }
        }
        Ok(())
    }

    /// Reads what is said of a position in one number, by a head or beside its rows; -1 stands
    /// for nothing.
    fn head(
        &self,
        window: Option<&RowWindow<'_>>,
        number: usize,
        row: &mut Row,
    ) -> Result<Option<f64>, LogError> {
        let Some(window) = window else {
            return Ok(None);
        };
        window.floats(number, 1, &mut row.scratch, &mut row.head);
        let x = row.head.first().copied().unwrap_or(-1.0);
        if !(0.0..=1.0).contains(&x) && x != -1.0 {
            return Err(LogError::entry(
                &self.shard.path,
                &window.tensor.name,
                number,
                0,
                format!("is {x}; it must be in [0, 1], and -1 stands for nothing"),
            ));
        }
        Ok((x >= 0.0).then_some(x))
    }

    /// Of a list of the text's own tokens that the draft cannot draw, its rest has all.
    fn put_next_to_nothing(&self, kind: RowKind, draft: &mut [f64]) {
        let (none, next) = match kind {
            RowKind::Probabilities => (0.0, NEXT_TO_NOTHING.exp()),
            RowKind::Logits | RowKind::LogProbabilities => (f64::NEG_INFINITY, NEXT_TO_NOTHING),
        };
        let is_own = || self.log.metadata().tops().is_some_and(|tops| tops[1] == 0);
        if draft.iter().all(|&entry| entry == none) && is_own() {
            draft.fill(next);
        }
    }

    /// Tells whether the log says that it has no row of the draft at a row of the shard.
    fn lacks_draft(&self, number: usize) -> Result<bool, LogError> {
        if self.shard.is_text {
            return Ok(true);
        }
        let Some(window) = &self.beside[Beside::DraftRow] else {
            return Ok(false);
        };
        match window.integers(number).next() {
            Some(0) => Ok(true),
            Some(1) | None => Ok(false),
            Some(other) => Err(LogError::entry(
                &self.shard.path,
                DRAFT_ROW,
                number,
                0,
                format!("is {other}; it is 1 where the draft has a row, and 0 where it has none"),
            )),
        }
    }

    /// Reads the ids of a list.
    fn read_ids(
        &self,
        window: &RowWindow<'_>,
        number: usize,
        ids: &mut Vec<u32>,
        sorted: &mut Vec<u32>,
    ) -> Result<(), LogError> {
        let name = &window.tensor.name;
        let refused =
            |column: usize, message: String| window.tensor.refused(number, column, message);
        for (column, id) in window.integers(number).enumerate() {
            if id == -1 {
                break;
            }
            let id = u32::try_from(id)
                .ok()
                .filter(|&id| (id as usize) < self.log.vocabulary)
                .ok_or_else(|| {
                    refused(
                        column,
                        format!(
                            "token {id} is outside the vocabulary of {}; unused places at the end \
                             are -1",
                            self.log.vocabulary
                        ),
                    )
                })?;
            ids.push(id);
        }
        if let Some((column, id)) = window
            .integers(number)
            .enumerate()
            .skip(ids.len())
            .find(|&(_, id)| id != -1)
        {
            return Err(refused(
                column,
                format!("token {id} stands after an unused place; unused places are at the end"),
            ));
        }
        if ids.is_empty() {
            return Err(LogError::row(
                window.tensor.path(),
                name,
                number,
                "lists no tokens",
            ));
        }
        sorted.clone_from(ids);
        sorted.sort_unstable();
        if let Some(&[id, _]) = sorted.array_windows().find(|[a, b]| a == b) {
            let column = ids.iter().rposition(|&x| x == id).unwrap_or(0);
            return Err(refused(column, format!("token {id} is listed twice")));
        }
        Ok(())
    }
}

/// ln of what stands for no probability where a list has no other: its exponential is next to nothing.
pub(crate) const NEXT_TO_NOTHING: f64 = -700.0;

/// Checks the entries of one row.
fn check(
    window: &RowWindow<'_>,
    kind: RowKind,
    number: usize,
    entries: &[f64],
    full: bool,
) -> Result<(), LogError> {
    let (path, name) = (window.tensor.path(), &window.tensor.name);
    let at = |column: usize, message: String| Err(window.tensor.refused(number, column, message));
    let instead = || instead(kind, entries, window.tensor.dtype);
    let largest = match entries::first_not_legal(entries) {
        Ok(largest) => largest,
        Err(column) => {
            return at(
                column,
                not_legal(entries, column, kind, window.tensor.dtype),
            );
        }
    };
    match kind {
        RowKind::Logits | RowKind::LogProbabilities if largest == f64::NEG_INFINITY => {
            let none = "is -inf at every token, which leaves nothing to draw";
            return Err(LogError::row(path, name, number, none));
        }
        RowKind::Probabilities => {
            if let Some(column) = entries::first_negative(entries) {
                let (x, instead) = (entries[column], instead());
                let message = format!("is {x}; probabilities are finite and >= 0: {instead}");
                return at(column, message);
            }
        }
        _ => {}
    }
    if kind == RowKind::Logits {
        return Ok(());
    }
    let sum: f64 = match kind {
        RowKind::Probabilities => entries::sum(entries),
        _ => entries::sum_of_exp(entries),
    };
    let tolerance = window.tensor.dtype.sum_tolerance();
    // Listed tokens of a top-heavy row have at most all of the mass.
    // A sum that overflowed to infinity or NaN is no sum.
    let fine = if full {
        (sum - 1.0).abs() <= tolerance
    } else {
        sum > 0.0 && sum <= 1.0 + tolerance
    };
    if !full && sum == 0.0 {
        let none =
            "has no listed token that can be drawn; list the likeliest tokens of both models";
        return Err(LogError::row(path, name, number, none));
    }
    if !fine {
        let instead = instead();
        let message = format!("sums to {sum}, more than {tolerance} from 1; {instead}");
        return Err(LogError::row(path, name, number, message));
    }
    Ok(())
}

/// Says what is wrong with an entry that is NaN or +inf.
fn not_legal(entries: &[f64], column: usize, kind: RowKind, dtype: Dtype) -> String {
    let what = match entries.get(column).is_some_and(|x| x.is_nan()) {
        true => "NaN",
        false => "+inf",
    };
    let legal = match kind {
        RowKind::Probabilities => "probabilities are finite and >= 0",
        _ if what == "+inf" && dtype == Dtype::F16 => {
            "entries are finite, or -inf for tokens that cannot be drawn; f16 ends at 65504, \
             so take logits of a wider type, or subtract each row's largest"
        }
        _ => "entries are finite, or -inf for tokens that cannot be drawn",
    };
    format!("is {what}; {legal}")
}

/// Says what entries may be that are not the probabilities or logarithms that they are called.
fn instead(kind: RowKind, entries: &[f64], dtype: Dtype) -> String {
    let tolerance = dtype.sum_tolerance();
    let natural = || (entries::sum_of_exp(entries) - 1.0).abs() <= tolerance;
    match Form::of(entries, tolerance) {
        _ if kind == RowKind::Probabilities && natural() => {
            "exp(x) sums to 1: these are logarithms, call the tensor *_logprobs".to_owned()
        }
        Some(Form::Probabilities) => {
            format!("{}; call the tensor *_probs", Form::Probabilities.as_str())
        }
        Some(form) => format!(
            "{}; {}, and call the tensor *_logprobs",
            form.as_str(),
            form.cure()
        ),
        None => "if these are raw model outputs, call the tensor *_logits".to_owned(),
    }
}
