//! Hugging Face transformers: arrays of rows, as `.npz` or `.safetensors`.
//!
//! Three shapes. `logits` or `scores` of `generate(..., output_logits=True,
//! output_scores=True)`, stacked, of each model by itself; and what goes into and comes out
//! of `generation.utils._speculative_sampling`, call by call, under the names of its
//! arguments.

use super::error::ImportError;
use super::options::Request;
use crate::log::{FormGuard, LogError, RawTensor, Scratch, Tensor, filled, tensors};
use specgap_base::sorted::Map;
use std::path::{Path, PathBuf};

/// The rows of one file, or of one pair of files.
#[derive(Debug)]
pub(super) struct Shard {
    pub positions: usize,
    pub vocabulary: usize,
    pub tensors: Vec<RawTensor>,
    /// Texts in it.
    pub texts: i64,
    /// What the logits were divided by.
    pub temperature_applied: f64,
    /// Rounds, drafts and accepted drafts, where they were recorded.
    pub rounds: [u64; 3],
}

/// A file of arrays, and what is taken from it.
struct Arrays {
    path: PathBuf,
    /// All that the file has, taken or not.
    names: Vec<String>,
    tensors: Map<String, Tensor>,
    unreadable: Map<String, String>,
}

impl Arrays {
    fn open(path: &Path) -> Result<Self, ImportError> {
        let (tensors, unreadable) = tensors(path)?;
        Ok(Self {
            path: path.to_owned(),
            names: tensors.keys().cloned().collect(),
            tensors,
            unreadable,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name) || self.unreadable.contains_key(name)
    }

    fn refuse(&self, name: &str, message: impl Into<String>) -> ImportError {
        LogError::tensor(&self.path, name, message).into()
    }

    fn take(&mut self, name: &str) -> Result<Tensor, ImportError> {
        if let Some(dtype) = self.unreadable.get(name) {
            return Err(self.refuse(
                name,
                format!("has entries of type {dtype}, which is not read; save another type"),
            ));
        }
        self.tensors.remove(name).ok_or_else(|| {
            let has = match self.names.is_empty() {
                true => "no arrays".to_owned(),
                false => self.names.join(", "),
            };
            self.refuse(name, format!("is missing; the file has {has}"))
        })
    }

    /// Rows \[N, V\]; axes of length 1 between the two are left out.
    fn rows(&mut self, name: &str) -> Result<Tensor, ImportError> {
        let tensor = self.take(name)?;
        let between = tensor.shape.get(1..tensor.shape.len().saturating_sub(1));
        let is_rows = tensor.dtype.is_float()
            && tensor.shape.len() >= 2
            && between.is_some_and(|axes| axes.iter().all(|&length| length == 1))
            && tensor.columns() > 0;
        if !is_rows {
            return Err(self.refuse(
                name,
                format!(
                    "is {} of shape {:?}; it must be floating point of shape [N, V], or [N, 1, V] \
                     of one sequence",
                    tensor.dtype, tensor.shape
                ),
            ));
        }
        Ok(tensor)
    }

    /// All integers of a tensor, in order.
    fn integers(&mut self, name: &str) -> Result<Vec<i64>, ImportError> {
        let tensor = self.take(name)?;
        if tensor.dtype.is_float() {
            return Err(self.refuse(name, format!("is {}; it must be i64 or i32", tensor.dtype)));
        }
        if tensor.shape.is_empty() {
            return Err(self.refuse(name, "is a single number; it must be a list"));
        }
        let mut all = Vec::new();
        let window = tensor.window(0..tensor.rows())?;
        for row in 0..tensor.rows() {
            all.extend(window.integers(row));
        }
        Ok(all)
    }
}

/// The first `vocabulary` entries of some rows, as they are in the file, all checked.
fn copy(
    name: &'static str,
    path: &Path,
    tensor: &Tensor,
    rows: impl ExactSizeIterator<Item = Option<usize>>,
    vocabulary: usize,
) -> Result<RawTensor, ImportError> {
    let (shape, mut data) = (vec![rows.len(), vocabulary], Vec::new());
    let (mut scratch, mut floats) = (Scratch::default(), Vec::new());
    let kept = vocabulary * tensor.dtype.size();
    let mut guard = FormGuard::new(tensor.dtype);
    let looked_at: Vec<usize> = FormGuard::rows(rows.len()).collect();
    for (number, row) in rows.enumerate() {
        let Some(row) = row else {
            // Bits that are all set are no number of any type.
            data.resize(data.len() + kept, 0xff);
            continue;
        };
        let window = tensor.window(row..row + 1)?;
        window.floats(row, vocabulary, &mut scratch, &mut floats);
        if let Some(column) = floats
            .iter()
            .position(|x| x.is_nan() || *x == f64::INFINITY)
        {
            let message = format!(
                "is {}; logits are finite, or -inf for tokens that cannot be drawn",
                floats.get(column).copied().unwrap_or(f64::NAN)
            );
            return Err(LogError::entry(path, &tensor.name, row, column, message).into());
        }
        if floats.iter().all(|&x| x == f64::NEG_INFINITY) {
            let message = "is -inf at every token, which leaves nothing to draw";
            return Err(LogError::row(path, &tensor.name, row, message).into());
        }
        if looked_at.binary_search(&number).is_ok() {
            guard.look(row, &floats, 0.0);
        }
        data.extend(window.bytes().get(..kept).unwrap_or_default());
    }
    if let Some((form, row)) = guard.found() {
        let message = form.refusal("save logits, or");
        return Err(LogError::row(path, &tensor.name, row, message).into());
    }
    Ok(RawTensor {
        name,
        dtype: tensor.dtype,
        shape,
        data,
    })
}

/// V of both models' rows.
fn width(
    path: &Path,
    target: &Tensor,
    draft: &Tensor,
    wanted: Option<usize>,
) -> Result<usize, ImportError> {
    let (of_target, of_draft) = (target.columns(), draft.columns());
    let refuse = |message: String| Err(LogError::tensor(path, &draft.name, message).into());
    match wanted {
        None if of_target != of_draft => refuse(format!(
            "has V = {of_draft} where the target's rows have {of_target}; if they differ by \
             padding alone, ⟨vocab N⟩ keeps the first N tokens of both"
        )),
        Some(wanted) if wanted > of_target.min(of_draft) => refuse(format!(
            "has V = {of_draft}, and the target's rows {of_target}, so ⟨vocab {wanted}⟩ keeps \
             nothing more; give at most {}",
            of_target.min(of_draft)
        )),
        Some(wanted) => Ok(wanted),
        None => Ok(of_target),
    }
}

fn check_tokens(
    path: &Path,
    name: &str,
    tokens: &[i64],
    vocabulary: usize,
) -> Result<(), ImportError> {
    let within = |id: i64| usize::try_from(id).is_ok_and(|id| id < vocabulary);
    match tokens.iter().position(|&id| !within(id)) {
        None => Ok(()),
        Some(entry) => Err(LogError::row(
            path,
            name,
            entry,
            format!(
                "token {} is outside the vocabulary of {vocabulary}",
                tokens.get(entry).copied().unwrap_or_default()
            ),
        )
        .into()),
    }
}

/// Rows of each model from a file of its own.
pub(super) fn two_files(
    target_path: &Path,
    draft_path: &Path,
    request: &Request,
    text: i64,
) -> Result<Shard, ImportError> {
    let (mut target, mut draft) = (Arrays::open(target_path)?, Arrays::open(draft_path)?);
    let (target_name, draft_name) = (rows_name(&target)?, rows_name(&draft)?);
    if target_name != draft_name {
        return Err(draft.refuse(
            draft_name,
            format!(
                "is what the draft's file has, and {target_name} what the target's has: one is \
                 divided by the temperature and the other is not; save the same of both"
            ),
        ));
    }
    let (p, q) = (target.rows(target_name)?, draft.rows(draft_name)?);
    let positions = p.rows();
    if q.rows() != positions {
        return Err(draft.refuse(
            draft_name,
            format!(
                "has {} rows where the target's has {positions}; score the same tokens with both",
                q.rows()
            ),
        ));
    }
    if positions == 0 {
        return Err(target.refuse(target_name, "has no rows"));
    }
    let vocabulary = width(draft_path, &p, &q, request.vocabulary)?;
    let mut tokens: Option<Vec<i64>> = None;
    for arrays in [&mut target, &mut draft] {
        if !arrays.has("sequences") {
            continue;
        }
        let mut ids = arrays.integers("sequences")?;
        let Some(skip) = ids.len().checked_sub(positions) else {
            return Err(arrays.refuse(
                "sequences",
                format!("has {} tokens and there are {positions} rows", ids.len()),
            ));
        };
        ids.drain(..skip);
        check_tokens(&arrays.path, "sequences", &ids, vocabulary)?;
        match &tokens {
            None => tokens = Some(ids),
            Some(before) if *before == ids => {}
            Some(_) => {
                return Err(arrays.refuse(
                    "sequences",
                    "ends with other tokens than the target's; score the same ids with both",
                ));
            }
        }
    }
    let all = || (0..positions).map(Some);
    let mut tensors = vec![
        copy("target_logits", target_path, &p, all(), vocabulary)?,
        copy("draft_logits", draft_path, &q, all(), vocabulary)?,
        RawTensor::integers("prompt_id", &vec![text; positions]),
        RawTensor::integers("position", &(0..positions as i64).collect::<Vec<_>>()),
    ];
    if let Some(tokens) = tokens {
        tensors.push(RawTensor::integers("token", &tokens));
    }
    Ok(Shard {
        positions,
        vocabulary,
        tensors,
        texts: 1,
        temperature_applied: match target_name {
            "scores" => request.divisor(),
            _ => 1.0,
        },
        rounds: [0; 3],
    })
}

fn rows_name(arrays: &Arrays) -> Result<&'static str, ImportError> {
    match (arrays.has("logits"), arrays.has("scores")) {
        (true, false) => Ok("logits"),
        (false, true) => Ok("scores"),
        (true, true) => Err(arrays.refuse(
            "scores",
            "is there beside logits; keep one of them: logits are raw, scores are what is drawn \
             from",
        )),
        (false, false) => Err(arrays.refuse(
            "logits",
            "is missing, and so is scores; stack out.logits of generate(..., \
             return_dict_in_generate=True, output_logits=True)",
        )),
    }
}

/// Rows from calls of `_speculative_sampling`, one after the other.
///
/// A call with K candidates of which m match has the target's rows on K + 1 prefixes, of
/// which the first m + 1 are of the text and are logged, and the draft's rows on the first K.
pub(super) fn recorded(
    path: &Path,
    request: &Request,
    first_text: i64,
) -> Result<Shard, ImportError> {
    let mut arrays = Arrays::open(path)?;
    let (p, q) = (arrays.rows("new_logits")?, arrays.rows("candidate_logits")?);
    let lengths = arrays.integers("candidate_length")?;
    let candidates = arrays.integers("candidate_input_ids")?;
    let matches = arrays.integers("n_matches")?;
    let valid = arrays.integers("valid_tokens")?;
    let texts = if arrays.has("prompt_id") {
        arrays.integers("prompt_id")?
    } else {
        vec![0; lengths.len()]
    };
    let seeds = match arrays.has("seed") {
        true => arrays.integers("seed")?,
        false => Vec::new(),
    };
    let of_seeds = if seeds.is_empty() {
        lengths.len()
    } else {
        seeds.len()
    };
    for (name, count) in [
        ("n_matches", matches.len()),
        ("prompt_id", texts.len()),
        ("seed", of_seeds),
    ] {
        if count != lengths.len() {
            return Err(arrays.refuse(
                name,
                format!("has {count} entries and candidate_length {}", lengths.len()),
            ));
        }
    }
    let vocabulary = width(path, &p, &q, request.vocabulary)?;
    check_tokens(path, "candidate_input_ids", &candidates, vocabulary)?;
    check_tokens(path, "valid_tokens", &valid, vocabulary)?;
    // Of each logged position its text, its place there, the token, the drafts that were accepted,
    // the place in its round and the seed; the drafts.
    let (mut taken, mut drafts) = (Vec::<[i64; 6]>::new(), Vec::<&[i64]>::new());
    let (mut p_rows, mut q_rows) = (Vec::new(), Vec::new());
    let (mut at_p, mut at_q, mut at_valid) = (0usize, 0usize, 0usize);
    let (mut text, mut index, mut last) = (first_text, 0i64, None);
    let mut rounds = [0u64; 3];
    for (call, ((&length, &matched), &prompt)) in
        lengths.iter().zip(&matches).zip(&texts).enumerate()
    {
        let refuse = |name: &str, message: String| -> ImportError {
            LogError::row(path, name, call, message).into()
        };
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length > 0 && length <= candidates.len())
            .ok_or_else(|| {
                refuse(
                    "candidate_length",
                    format!("{length} is no number of candidates"),
                )
            })?;
        let matched = usize::try_from(matched)
            .ok()
            .filter(|&matched| matched <= length)
            .ok_or_else(|| {
                refuse(
                    "n_matches",
                    format!("{matched} is not between 0 and the {length} candidates"),
                )
            })?;
        if last.replace(prompt).is_some_and(|before| before != prompt) {
            text += 1;
            index = 0;
        }
        let drafted = candidates.get(at_q..at_q + length);
        let put_out = valid.get(at_valid..at_valid + matched + 1);
        let (Some(drafted), Some(put_out)) = (drafted, put_out) else {
            return Err(refuse(
                "candidate_length",
                "candidate_input_ids or valid_tokens ends within this call".to_owned(),
            ));
        };
        if let Some(place) = drafted
            .iter()
            .zip(put_out)
            .take(matched)
            .position(|(a, b)| a != b)
        {
            return Err(refuse(
                "valid_tokens",
                format!("token {place} of the call is not the candidate that matched"),
            ));
        }
        for place in 0..=matched {
            p_rows.push(Some(at_p + place));
            q_rows.push((place < length).then_some(at_q + place));
            let first = place == 0;
            let accepted = if first { matched as i64 } else { -1 };
            let output = put_out.get(place).copied().unwrap_or(-1);
            let place = place as i64;
            let seed = seeds.get(call).copied().unwrap_or(-1);
            taken.push([text, index + place, output, accepted, place, seed]);
            // A round's chain stands at its first position.
            drafts.push(if first { drafted } else { &[] });
        }
        rounds[0] += 1;
        rounds[1] += length as u64;
        rounds[2] += matched as u64;
        index += matched as i64 + 1;
        at_p += length + 1;
        at_q += length;
        at_valid += matched + 1;
    }
    for (name, has, used) in [
        ("new_logits", p.rows(), at_p),
        ("candidate_logits", q.rows(), at_q),
        ("candidate_input_ids", candidates.len(), at_q),
        ("valid_tokens", valid.len(), at_valid),
    ] {
        if has != used {
            return Err(arrays.refuse(
                name,
                format!("has {has} entries where the calls take {used}; record whole calls"),
            ));
        }
    }
    let positions = p_rows.len();
    if positions == 0 {
        return Err(arrays.refuse("candidate_length", "has no calls"));
    }
    let has_draft: Vec<i64> = q_rows.iter().map(|row| i64::from(row.is_some())).collect();
    let mut tensors = vec![
        RawTensor::integers("draft_row", &has_draft),
        copy("target_logits", path, &p, p_rows.into_iter(), vocabulary)?,
        copy("draft_logits", path, &q, q_rows.into_iter(), vocabulary)?,
        chains(&drafts),
    ];
    for (name, at) in [
        ("prompt_id", 0),
        ("position", 1),
        ("token", 2),
        ("output", 2),
        ("accepted", 3),
        ("round", 4),
        ("seed", 5),
    ] {
        if name == "seed" && seeds.is_empty() {
            continue;
        }
        let column: Vec<i64> = taken.iter().map(|one| one[at]).collect();
        tensors.push(RawTensor::integers(name, &column));
    }
    Ok(Shard {
        positions,
        vocabulary,
        tensors,
        texts: text - first_text + 1,
        // What is drawn from: after the temperature.
        temperature_applied: request.divisor(),
        rounds,
    })
}

/// Lists of unequal length, filled up with -1.
fn chains(lists: &[&[i64]]) -> RawTensor {
    let (width, ids) = filled(lists, -1);
    RawTensor {
        shape: vec![lists.len(), width],
        ..RawTensor::integers("drafts", &ids)
    }
}
