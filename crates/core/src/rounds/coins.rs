//! What drafts are accepted by, along a text.

use specgap_number::number::Number;

/// The ratios q/p, or other coins, of the tokens that a round meets along a text.
///
/// Where the draft's rows depend on the text alone, that is one number a token: a slice, of which
/// a round that starts behind s tokens meets those from s on. Drafts that look at where their
/// round began (EAGLE, multi-token prediction) have other rows from each start: [`ByStart`].
///
/// ```
/// use specgap_core::rounds::{ByStart, Coins};
/// let alone = [0.5, 1.0, 0.25];
/// assert_eq!((alone.tokens(), alone.ahead(1)), (3, &[1.0, 0.25][..]));
/// let by_start = ByStart(vec![vec![0.5, 0.75], vec![1.0, 0.5], vec![0.25]]);
/// assert_eq!((by_start.tokens(), by_start.ahead(1)), (3, &[1.0, 0.5][..]));
/// ```
pub trait Coins<T> {
    /// N, the tokens of the text.
    fn tokens(&self) -> usize;

    /// Those of the first, second, ... token behind `start`, as many as may be drafted there, or
    /// more.
    fn ahead(&self, start: usize) -> &[T];
}

impl<T, S: AsRef<[T]> + ?Sized> Coins<T> for S {
    fn tokens(&self) -> usize {
        self.as_ref().len()
    }

    fn ahead(&self, start: usize) -> &[T] {
        self.as_ref().get(start..).unwrap_or(&[])
    }
}

/// Coins by start and depth: entry j of row s is that of token s + j in a round that starts
/// behind s tokens. A round drafts no more than its row has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByStart<T>(pub Vec<Vec<T>>);

impl<T> Coins<T> for ByStart<T> {
    fn tokens(&self) -> usize {
        self.0.len()
    }

    fn ahead(&self, start: usize) -> &[T] {
        self.0.get(start).map_or(&[], Vec::as_slice)
    }
}

impl<T: Number> ByStart<T> {
    /// Target calls that no policy with token verification passes, also one who knows the text
    /// and all coins: those of tokens that every round's draft of them is rejected at.
    ///
    /// # Formula
    /// `sum over t of product over j of (1 - min(1, r_(t-j, j)))`: coins of different rounds are
    /// drawn apart, and a token that no coin accepts is the target's, who puts out one a call.
    ///
    /// # Example
    /// ```
    /// use specgap_core::rounds::ByStart;
    /// // Token 1 is the target's if both rounds' drafts of it are rejected.
    /// let coins = ByStart(vec![vec![0.5, 0.75], vec![0.5]]);
    /// assert_eq!(coins.oracle_calls(), 0.5 + 0.25 * 0.5);
    /// ```
    pub fn oracle_calls(&self) -> T {
        T::total(&self.rejected())
    }

    /// The same of texts whose last token is always the target's.
    pub fn oracle_calls_to_the_end(&self) -> T {
        let mut rejected = self.rejected();
        if let Some(last) = rejected.last_mut() {
            *last = T::one();
        }
        T::total(&rejected)
    }

    /// For each token, the probability that every coin rejects it.
    fn rejected(&self) -> Vec<T> {
        let mut all = vec![T::one(); self.0.len()];
        for (start, row) in self.0.iter().enumerate() {
            for (one, ratio) in all.iter_mut().skip(start).zip(row) {
                *one = one.times(&T::one().excess_over(ratio));
            }
        }
        all
    }
}
