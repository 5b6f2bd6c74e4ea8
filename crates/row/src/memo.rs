//! What is kept of a row between the questions that are asked of it.

use std::any::Any;

/// What was computed for one row and serves further questions: other numbers of drafts,
/// other rules. It is gone with the row.
///
/// The tokens of largest q are kept here, and one value of any type that a rule cares to
/// [`Memo::keep`].
///
/// # Example
/// ```
/// use specgap_row::{Rows, Workspace};
/// struct Seen(usize);
/// let mut workspace = Workspace::new();
/// let mut row = workspace.load(Rows { target: &[0.5, 0.5], draft: &[0.75, 0.25] }, 2)?;
/// for round in 1..=3 {
///     let mut seen = row.memo().take::<Seen>().unwrap_or(Box::new(Seen(0)));
///     seen.0 += 1;
///     assert_eq!(seen.0, round);
///     row.memo().keep(seen);
/// }
/// # Ok::<(), specgap_row::RowError>(())
/// ```
#[derive(Debug, Default)]
pub struct Memo {
    /// Tokens by falling q, as far as they were asked for.
    pub(super) heaviest: Vec<usize>,
    /// How often a draw from p is among n independent drafts, n from 0 on; empty until asked for.
    pub(super) hits: Vec<f64>,
    /// Sums over all tokens but some of the heaviest, by how many.
    pub(super) stars: Vec<(usize, Star)>,
    /// Sum of q over all tokens but those of `heaviest`.
    pub(super) light: Option<f64>,
    kept: Vec<Box<dyn Any + Send>>,
    /// What was kept for earlier rows, for its memory.
    spare: Vec<Box<dyn Any + Send>>,
}

/// Sums over all tokens but the heaviest few of the draft, which are drafts anyway.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Star {
    /// p of these.
    pub held: f64,
    /// q of the others, by whose share of that the last draft is drawn.
    pub rest: f64,
    /// Sum of min(p, share).
    pub overlap: f64,
    /// Sum of (share - p)+.
    pub excess: f64,
    /// Sum of p times the share.
    pub drawn: f64,
}

/// A workspace's copy has a memo of its own.
impl Clone for Memo {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Memo {
    /// Forgets everything about the last row.
    pub(super) fn forget(&mut self) {
        self.heaviest.clear();
        self.hits.clear();
        self.stars.clear();
        self.light = None;
        while let Some(value) = self.kept.pop() {
            self.keep_spare(value);
        }
    }

    fn keep_spare(&mut self, value: Box<dyn Any + Send>) {
        let kind = (*value).type_id();
        self.spare.retain(|other| (**other).type_id() != kind);
        self.spare.push(value);
    }

    /// Takes out the value of a type, if one was kept.
    pub fn take<T: Any + Send>(&mut self) -> Option<Box<T>> {
        taken(&mut self.kept)
    }

    /// Takes out a value that was kept for an earlier row, to be filled anew: it says nothing of
    /// this one, and has the memory that it once took.
    pub(super) fn take_spare<T: Any + Send>(&mut self) -> Option<Box<T>> {
        taken(&mut self.spare)
    }

    /// Keeps a value until it is taken, in place of any other of its type.
    pub fn keep<T: Any + Send>(&mut self, value: Box<T>) {
        self.kept.retain(|other| !other.is::<T>());
        self.kept.push(value);
    }
}

fn taken<T: Any + Send>(values: &mut Vec<Box<dyn Any + Send>>) -> Option<Box<T>> {
    let at = values.iter().position(|value| value.is::<T>())?;
    values.swap_remove(at).downcast().ok()
}
