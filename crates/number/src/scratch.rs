//! Working rows whose memory a thread uses again.
//!
//! Memory that was just allocated is cleared by the system page by page when it is first touched.
//! For rows of a vocabulary, of which a plan takes dozens, that is a good part of all it costs. So
//! a row that is dropped stays with its thread and is the next one's memory. A thread keeps no more
//! rows than it had in use at one time.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// Rows of fewer bytes are allocated as any other.
const LEAST: usize = 1 << 14;

/// Rows of a type that a thread keeps at most.
const MOST: usize = 64;

type Kept<T> = LocalKey<RefCell<Vec<Vec<T>>>>;

/// Numbers of which threads keep rows.
pub trait Entry: Copy + 'static {
    #[doc(hidden)]
    fn kept() -> &'static Kept<Self>;
}

macro_rules! entry {
    ($($entry:ty),*) => {$(
        impl Entry for $entry {
            fn kept() -> &'static Kept<Self> {
                thread_local! {
                    static KEPT: RefCell<Vec<Vec<$entry>>> = const { RefCell::new(Vec::new()) };
                }
                &KEPT
            }
        }
    )*};
}

entry!(f64, u32, u16, (f64, u32));

/// A row in memory that its thread uses again.
pub struct Scratch<T: Entry>(Vec<T>);

impl<T: Entry> Scratch<T> {
    /// An empty row with room for `len` entries.
    pub fn with_capacity(len: usize) -> Self {
        let mut row = Self::taken(len);
        row.clear();
        row
    }

    /// A row to write to, of `len` entries that may be any.
    pub fn of_any(len: usize) -> Self
    where
        T: Default,
    {
        let mut row = Self::taken(len);
        row.resize(len, T::default());
        row
    }

    fn taken(len: usize) -> Self {
        if len * size_of::<T>() < LEAST {
            return Self(Vec::with_capacity(len));
        }
        let kept = T::kept().try_with(|kept| {
            let mut kept = kept.try_borrow_mut().ok()?;
            let fits = kept.iter().rposition(|row| row.capacity() >= len);
            fits.map(|place| kept.swap_remove(place))
                .or_else(|| kept.pop())
        });
        let mut row = kept.ok().flatten().unwrap_or_default();
        row.reserve_exact(len.saturating_sub(row.len()));
        Self(row)
    }

    /// `len` times `entry`.
    pub fn filled(len: usize, entry: T) -> Self {
        let mut row = Self::with_capacity(len);
        row.0.resize(len, entry);
        row
    }

    /// A copy of `entries`.
    pub fn copied(entries: &[T]) -> Self {
        let mut row = Self::with_capacity(entries.len());
        row.0.extend_from_slice(entries);
        row
    }
}

impl<T: Entry> Drop for Scratch<T> {
    fn drop(&mut self) {
        let row = std::mem::take(&mut self.0);
        if row.capacity() * size_of::<T>() < LEAST {
            return;
        }
        // A thread that ends keeps nothing.
        let _ = T::kept().try_with(|kept| {
            if let Ok(mut kept) = kept.try_borrow_mut()
                && kept.len() < MOST
            {
                kept.push(row);
            }
        });
    }
}

impl<T: Entry> FromIterator<T> for Scratch<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let mut row = Self::with_capacity(entries.size_hint().0);
        row.0.extend(entries);
        row
    }
}

impl<T: Entry> Extend<T> for Scratch<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl<'a, T: Entry> IntoIterator for &'a Scratch<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Entry> Deref for Scratch<T> {
    type Target = Vec<T>;

    #[inline]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Entry> DerefMut for Scratch<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Entry> Clone for Scratch<T> {
    fn clone(&self) -> Self {
        Self::copied(&self.0)
    }
}

impl<T: Entry + fmt::Debug> fmt::Debug for Scratch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = 5000;

    fn kept() -> usize {
        u32::kept().with(|kept| kept.borrow().len())
    }

    #[test]
    fn memory_is_used_again_and_what_was_in_it_is_gone() {
        let first = Scratch::filled(LONG, 7u32);
        let place = first.as_ptr();
        drop(first);
        assert_eq!(kept(), 1);
        let again: Scratch<u32> = (0..LONG as u32).collect();
        assert_eq!((again.as_ptr(), again.len(), kept()), (place, LONG, 0));
        assert!(again.iter().copied().eq(0..LONG as u32));
        drop(again);
        let filled = Scratch::filled(LONG - 1, 0u32);
        assert_eq!((filled.as_ptr(), filled.len()), (place, LONG - 1));
        assert!(filled.iter().all(|&entry| entry == 0));
        drop(filled);
        // Where all are written to, what was there is not cleared first.
        let mut filled: Scratch<u32> = Scratch::of_any(LONG);
        assert_eq!((filled.as_ptr(), filled.len()), (place, LONG));
        filled.fill(0);
        // A copy has its own.
        let copy = filled.clone();
        assert_ne!(copy.as_ptr(), place);
        assert_eq!(copy[..], filled[..]);
        drop((copy, filled));
        assert_eq!(kept(), 2);
    }

    #[test]
    fn short_rows_and_too_many_are_not_kept() {
        drop(Scratch::filled(LEAST / 4 - 1, 1u32));
        assert_eq!(kept(), 0);
        let many: Vec<_> = (0..MOST + 3).map(|_| Scratch::filled(LONG, 1u32)).collect();
        drop(many);
        assert_eq!(kept(), MOST);
    }

    #[test]
    fn a_row_that_fits_goes_before_the_last_one() {
        let rows = [LONG, 2 * LONG, LONG].map(|len| Scratch::filled(len, 1u32));
        let long = rows[1].as_ptr();
        drop(rows);
        assert_eq!(Scratch::filled(2 * LONG, 3u32).as_ptr(), long);
        // Where none does, one grows.
        let longer = Scratch::filled(3 * LONG, 4u32);
        assert_eq!((longer.len(), kept()), (3 * LONG, 2));
        assert!(longer.iter().all(|&entry| entry == 4));
    }
}
