//! What each child of a node gets, position by position of a text.

/// A(k | y_t; n) for the positions t of a text, and for some numbers n of children.
///
/// # Example
/// ```
/// use specgap_core::rounds::ChildShares;
/// // Two positions, and the shares of two children at each; a single child gets what the
/// // first of two gets.
/// let shares = ChildShares::new(2, true, [(2, vec![0.5, 0.25, 0.75, 0.0])]);
/// assert_eq!(shares.at(1, 2), [0.75, 0.0]);
/// assert_eq!(shares.at(0, 1)[0], 0.5);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ChildShares<T> {
    length: usize,
    nested: bool,
    /// By n, rising: n numbers a position.
    tables: Vec<(usize, Vec<T>)>,
    /// The same at depths 2, 3, ... of a tree, where the draft's rows depend on where a round
    /// begins; else nothing.
    deeper: Vec<Self>,
}

impl<T> ChildShares<T> {
    /// Makes one from n and n numbers a position, by rising n. If `nested`, A(k | y; n) is the same for
    /// all n > k, and tables of many children answer for fewer.
    pub fn new(
        length: usize,
        nested: bool,
        tables: impl IntoIterator<Item = (usize, Vec<T>)>,
    ) -> Self {
        let tables = tables.into_iter().collect();
        Self {
            length,
            nested,
            tables,
            deeper: Vec::new(),
        }
    }

    /// With other shares at each depth of a tree from 2 on, by position too: of drafts whose rows
    /// depend on where their round began. Trees are then no deeper than these.
    ///
    /// # Example
    /// ```
    /// use specgap_core::rounds::ChildShares;
    /// let one = |shares: [f64; 2]| ChildShares::new(2, true, [(1, shares.to_vec())]);
    /// let both = one([0.5, 0.25]).with_deeper(vec![one([0.0, 0.75])]);
    /// // A round that starts at position 0: its first draft, and the one behind.
    /// assert_eq!((both.behind(0, 0, 1), both.behind(0, 1, 1)), (&[0.5][..], &[0.75][..]));
    /// ```
    #[must_use]
    pub fn with_deeper(mut self, deeper: Vec<Self>) -> Self {
        self.deeper = deeper;
        self
    }

    /// Returns whether they depend on where a round begins.
    pub fn is_by_start(&self) -> bool {
        !self.deeper.is_empty()
    }

    /// The shares of the children of a node with `children` of them that stands `depth` levels
    /// below the root of a round which starts at a position.
    pub fn behind(&self, start: usize, depth: usize, children: usize) -> &[T] {
        match depth.checked_sub(1) {
            Some(below) if self.is_by_start() => {
                (self.deeper.get(below)).map_or(&[], |shares| shares.at(start + depth, children))
            }
            _ => self.at(start + depth, children),
        }
    }

    /// Positions.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns whether numbers of children share a table.
    pub fn is_nested(&self) -> bool {
        self.nested
    }

    /// The shares of the children of a node with `children` of them, at a position: at least
    /// as many numbers, or none where they are not known.
    pub fn at(&self, position: usize, children: usize) -> &[T] {
        let fits = |&&(n, _): &&(usize, Vec<T>)| {
            if self.nested {
                n >= children
            } else {
                n == children
            }
        };
        let row = self.tables.iter().find(fits).and_then(|(n, table)| {
            let start = position.checked_mul(*n)?;
            table.get(start..start.checked_add(*n)?)
        });
        row.unwrap_or(&[])
    }
}
