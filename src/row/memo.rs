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
/// use specgap::row::{Rows, Workspace};
/// struct Seen(usize);
/// let mut workspace = Workspace::new();
/// let mut row = workspace.load(Rows { target: &[0.5, 0.5], draft: &[0.75, 0.25] }, 2)?;
/// for round in 1..=3 {
///     let mut seen = row.memo().take::<Seen>().unwrap_or(Box::new(Seen(0)));
///     seen.0 += 1;
///     assert_eq!(seen.0, round);
///     row.memo().keep(seen);
/// }
/// # Ok::<(), specgap::row::RowError>(())
/// ```
#[derive(Debug, Default)]
pub struct Memo {
    /// Tokens by falling q, as far as they were asked for.
    pub(super) heaviest: Vec<usize>,
    kept: Vec<Box<dyn Any>>,
}

impl Memo {
    /// Takes out the value of a type, if one was kept.
    pub fn take<T: Any>(&mut self) -> Option<Box<T>> {
        let at = self.kept.iter().position(|value| value.is::<T>())?;
        self.kept.swap_remove(at).downcast().ok()
    }

    /// Keeps a value until it is taken, in place of any other of its type.
    pub fn keep<T: Any>(&mut self, value: Box<T>) {
        self.kept.retain(|other| !other.is::<T>());
        self.kept.push(value);
    }
}
