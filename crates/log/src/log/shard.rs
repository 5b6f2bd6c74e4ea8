//! One file of a log: its tensors, and whether they go together.

use super::beside::{Beside, Columns};
use super::contents::Contents;
use super::error::LogError;
use super::mask;
use super::metadata::Metadata;
use super::rollout_tensors::{HeldRollouts, names};
use super::row::RowKind;
use super::sub_vocabulary::SubVocabulary;
use super::tensor::{RowWindow, Tensor};
use std::ops::Range;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Shard {
    /// The draft's file; tensors know theirs.
    pub path: PathBuf,
    pub positions: usize,
    pub target: Tensor,
    pub target_kind: RowKind,
    /// Of each position the rows of all its depths, one after the other.
    pub draft: Tensor,
    pub draft_kind: RowKind,
    /// K: rows of the draft that a position has, one for each depth of a round that starts there.
    pub depths: usize,
    /// The tokens that the draft's rows are about, where these are not all.
    pub sub_vocabulary: Option<SubVocabulary>,
    pub beside: Columns<Tensor>,
    /// A text with the target's rows alone, which stand where the draft's would.
    pub is_text: bool,
    pub rollouts: HeldRollouts,
}

/// What the draft says at some positions.
#[derive(Debug)]
pub(super) struct Drafted<'a> {
    pub(super) rows: RowWindow<'a>,
    pub(super) beside: Columns<RowWindow<'a>>,
}

impl Shard {
    /// Reads what the draft says in some rows of its tensors.
    pub(super) fn drafted(&self, rows: Range<usize>) -> Result<Drafted<'_>, LogError> {
        Ok(Drafted {
            rows: self.draft.window(rows.clone())?,
            beside: Columns::of(|one| {
                let tensor = self.beside[one].as_ref().filter(|_| one.is_of_draft());
                let window = tensor.map(|tensor| tensor.window(rows.clone()));
                window.transpose()
            })?,
        })
    }

    /// Tells the integers of a tensor by row and column, where the file has it.
    pub(super) fn integers(
        &self,
        one: Beside,
        mut see: impl FnMut(&Tensor, [usize; 2], i64) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let Some(tensor) = &self.beside[one] else {
            return Ok(());
        };
        let window = tensor.window(0..self.positions)?;
        for row in 0..self.positions {
            for (column, value) in window.integers(row).enumerate() {
                see(tensor, [row, column], value)?;
            }
        }
        Ok(())
    }

    pub(super) fn new(
        path: &Path,
        mut contents: Contents,
    ) -> Result<(Self, Vec<String>), LogError> {
        let refused = |name: &str, message: String| Err(LogError::tensor(path, name, message));
        let held = contents.names();
        let (target, target_kind) = rows_of(path, &mut contents, "target", &held)?;
        let is_text = is_text(&contents);
        let (mut draft, draft_kind) = match is_text {
            true => (target.clone(), target_kind),
            false => rows_of(path, &mut contents, "draft", &held)?,
        };
        let positions = target.rows();
        let depths = depths_of(path, &draft)?;
        let of_depths = |tensor: Tensor| match depths {
            Some(_) => tensor.by_depth(),
            None => tensor,
        };
        if draft.rows() != positions {
            return refused(
                &draft.name,
                format!(
                    "has {} rows but {} has {positions}; rows are pairs",
                    draft.rows(),
                    target.name
                ),
            );
        }
        draft = of_depths(draft);
        let mut beside = Columns::of(|one| {
            let tensor = take(path, &mut contents, one, (positions, depths))?;
            Ok(match one.is_of_draft() {
                true => tensor.map(of_depths),
                false => tensor,
            })
        })?;
        let sub_vocabulary = SubVocabulary::take(path, &mut contents, &draft)?;
        if is_text {
            beside[Beside::DraftRest] = beside[Beside::TargetRest].clone();
        }
        mask::check(path, &beside, target.columns())?;
        let token_ids = beside[Beside::TokenIds].as_ref();
        let own_ids = match Beside::OWN_IDS.map(|one| beside[one].as_ref()) {
            [None, None] => None,
            [Some(target), Some(draft)] => Some([target, draft]),
            [Some(_), None] => return Err(without_the_other(path, "draft")),
            [None, Some(_)] => return Err(without_the_other(path, "target")),
        };
        if let (Some(both), Some([target, _])) = (token_ids, own_ids) {
            return refused(
                &target.name,
                format!(
                    "is there beside {}, which lists the tokens of both rows; keep one of the two",
                    both.name
                ),
            );
        }
        let lists = match (token_ids, own_ids) {
            (Some(both), _) => vec![(&target, both), (&draft, both)],
            (None, Some([of_target, of_draft])) => vec![(&target, of_target), (&draft, of_draft)],
            (None, None) => Vec::new(),
        };
        for &(tensor, ids) in &lists {
            if tensor.columns() != ids.columns() {
                return refused(
                    &tensor.name,
                    format!(
                        "has {} columns but {} has {}; in a top-heavy log each column of a row \
                         belongs to the token id in the same place",
                        tensor.columns(),
                        ids.name,
                        ids.columns()
                    ),
                );
            }
        }
        if let (Some(_), Some((draft, ids))) = (&sub_vocabulary, lists.last()) {
            return refused(
                &draft.name,
                format!(
                    "lists the tokens of {}, and the file has d2t too; lists have the target's own \
                     ids, so leave d2t out",
                    ids.name
                ),
            );
        }
        // Else each column has its token.
        if lists.is_empty() && Beside::RESTS.iter().any(|one| beside[*one].is_some()) {
            return refused(
                "token_ids",
                "is missing although the mass of unlisted tokens is given".to_owned(),
            );
        }
        let rollouts = rollouts(&mut contents);
        let ignored = contents
            .tensors
            .into_keys()
            .chain(contents.unreadable.into_keys())
            .collect();
        Ok((
            Self {
                path: path.to_owned(),
                positions,
                target,
                target_kind,
                draft,
                draft_kind,
                depths: depths.unwrap_or(1),
                sub_vocabulary,
                beside,
                is_text,
                rollouts,
            },
            ignored,
        ))
    }

    /// V, after `--vocab`.
    pub(super) fn vocabulary(
        &self,
        metadata: &Metadata,
        wanted: Option<usize>,
    ) -> Result<usize, LogError> {
        let of_tensor =
            |name: &str, message: String| Err(LogError::tensor(&self.path, name, message));
        let refused = |message: String| Err(LogError::format(&self.path, message));
        let width = if self.is_top_heavy() {
            metadata.vocabulary.ok_or_else(|| {
                LogError::format(
                    &self.path,
                    "lists token_ids, but the metadata does not say the vocabulary; write \"vocabulary\", the number of tokens that the models know",
                )
            })?
        } else {
            let (target, draft) = match &self.sub_vocabulary {
                Some(some) => {
                    some.within(&self.path, self.target.columns())?;
                    (self.target.columns(), self.target.columns())
                }
                None => (self.target.columns(), self.draft.columns()),
            };
            if target != draft && wanted.is_none() {
                return of_tensor(
                    &self.draft.name,
                    format!(
                        "has V = {draft} but {} has V = {target}; if they differ by padding \
                         alone, ⟨vocab N⟩ keeps the first N tokens of both",
                        self.target.name
                    ),
                );
            }
            let width = target.min(draft);
            if let Some(said) = metadata
                .vocabulary
                .filter(|&said| wanted.is_none() && said != width)
            {
                return of_tensor(
                    &self.target.name,
                    format!("has V = {width} but the metadata says {said}; ⟨vocab N⟩ settles it"),
                );
            }
            width
        };
        if width == 0 {
            return of_tensor(&self.target.name, "has an empty vocabulary".to_owned());
        }
        if u32::try_from(width).is_err() {
            return refused(format!("V = {width} is more than 2^32 - 1"));
        }
        match wanted {
            None => Ok(width),
            Some(wanted) if wanted <= width => Ok(wanted),
            Some(wanted) => refused(format!(
                "has V = {width}, so ⟨vocab {wanted}⟩ keeps nothing more; give at most {width}"
            )),
        }
    }

    pub(super) fn is_top_heavy(&self) -> bool {
        self.beside[Beside::TokenIds].is_some() || self.has_own_lists()
    }

    pub(super) fn has_own_lists(&self) -> bool {
        Beside::OWN_IDS
            .iter()
            .all(|one| self.beside[*one].is_some())
    }

    pub(super) fn columns(&self, vocabulary: usize) -> usize {
        if self.has_own_lists() {
            self.target.columns().max(self.draft.columns())
        } else if self.is_top_heavy() {
            self.target.columns()
        } else {
            vocabulary
        }
    }
}

/// K, of the draft's rows of shape [N, K, V]; `None` where they have no depths.
fn depths_of(path: &Path, draft: &Tensor) -> Result<Option<usize>, LogError> {
    match draft.shape[..] {
        [_, 0, _] => Err(LogError::tensor(
            path,
            &draft.name,
            "has no depth: its shape is [N, K, V], K from 1 on".to_owned(),
        )),
        [_, depths, _] => Ok(Some(depths)),
        _ => Ok(None),
    }
}

/// Takes what a file has of rollouts.
fn rollouts(contents: &mut Contents) -> HeldRollouts {
    let mut held = HeldRollouts::default();
    for name in names() {
        held.tensors.extend(contents.tensors.remove_entry(name));
        held.unreadable
            .extend(contents.unreadable.remove_entry(name));
    }
    held
}

/// Tells whether a file has what came out and the target's rows, and no row of a draft.
fn is_text(contents: &Contents) -> bool {
    let has = |name: &str| contents.tensors.contains_key(name);
    let of_draft = |name: &String| name.starts_with("draft") && name != "drafts";
    let names = contents.tensors.keys().chain(contents.unreadable.keys());
    (has("output") || has("token")) && !names.into_iter().any(of_draft)
}

/// One row has a list of its own.
fn without_the_other(path: &Path, model: &str) -> LogError {
    LogError::tensor(
        path,
        &format!("{model}_token_ids"),
        "is missing; where target and draft have lists of their own, both have their ids",
    )
}

/// Finds a model's rows under one of their three names; `held` names what the file has.
fn rows_of(
    path: &Path,
    contents: &mut Contents,
    model: &str,
    held: &str,
) -> Result<(Tensor, RowKind), LogError> {
    let refused = |name: &str, message: String| Err(LogError::tensor(path, name, message));
    let mut found = None;
    for kind in RowKind::ALL {
        let name = format!("{model}_{}", kind.suffix());
        if let Some(dtype) = contents.unreadable.get(&name) {
            return refused(
                &name,
                format!(
                    "has entries of type {dtype}; rows are f16, bf16, f32 or f64, little-endian"
                ),
            );
        }
        if let Some(tensor) = contents.tensors.remove(&name) {
            if found.is_some() {
                return refused(
                    &name,
                    format!("is a second form of the {model}'s rows; keep one of them"),
                );
            }
            found = Some((tensor, kind));
        }
    }
    let Some((tensor, kind)) = found else {
        return refused(
            &format!("{model}_logits"),
            format!(
                "is missing, and so are {model}_probs and {model}_logprobs; the file has {held}. Call the {model}'s rows so"
            ),
        );
    };
    let of_draft = model == "draft";
    let dimensions = tensor.shape.len();
    if !(dimensions == 2 || dimensions == 3 && of_draft) || !tensor.dtype.is_float() {
        return refused(
            &tensor.name,
            format!(
                "is {} of shape {:?}; rows are floating point of shape [N, V]{}",
                tensor.dtype,
                tensor.shape,
                match of_draft {
                    true => ", or [N, K, V] with a row for each depth",
                    false => "",
                }
            ),
        );
    }
    Ok((tensor, kind))
}

/// Takes an optional tensor and checks its type and shape.
fn take(
    path: &Path,
    contents: &mut Contents,
    one: Beside,
    (positions, depths): (usize, Option<usize>),
) -> Result<Option<Tensor>, LogError> {
    let (_, name, mut dimensions, float) = Beside::ALL[one as usize];
    let depths = depths.filter(|_| one.is_of_draft());
    let by_depth = depths.is_some();
    if by_depth {
        dimensions += 1;
    }
    let wanted = match (float, one) {
        (true, _) => "f64 (or another float) ",
        (_, Beside::Allowed) => "u8, bool, i64 or i32 ",
        _ => "i64 or i32 ",
    };
    let shape = match (by_depth, dimensions) {
        (true, 2) => "[N, K]",
        (true, _) => "[N, K, ...]",
        (false, 1) => "[N]",
        (false, _) => "[N, ...]",
    };
    let refused = |message: String| Err(LogError::tensor(path, name, message));
    if let Some(dtype) = contents.unreadable.get(name) {
        return refused(format!(
            "has entries of type {dtype}; it must be {wanted}of shape {shape}"
        ));
    }
    let Some(tensor) = contents.tensors.remove(name) else {
        return Ok(None);
    };
    if tensor.dtype.is_float() != float
        || tensor.shape.len() != dimensions
        || tensor.rows() != positions
        || depths.is_some_and(|depths| tensor.shape.get(1) != Some(&depths))
    {
        let of_rows = match depths {
            Some(depths) => format!(" and K = {depths}, as the draft's rows"),
            None => String::new(),
        };
        return refused(format!(
            "is {} of shape {:?}; it must be {wanted}of shape {shape} with N = {positions}{of_rows}",
            tensor.dtype, tensor.shape
        ));
    }
    Ok(Some(tensor))
}
