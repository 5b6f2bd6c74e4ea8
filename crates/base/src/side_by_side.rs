//! Work on all cores, whose results come in order.
//!
//! What hands work to threads is compiled once, and not once for every kind of result.

use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns what the work gives for each piece.
pub fn each<P: Sync, T: Send>(pieces: &[P], work: impl Fn(&P) -> T + Sync) -> Vec<T> {
    each_number(pieces.len(), |number| work(&pieces[number]))
}

/// Returns what the work gives for each number below `count`.
pub fn each_number<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let found: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    run(count, &|number| {
        let result = work(number);
        if let Ok(mut place) = found[number].lock() {
            *place = Some(result);
        }
    });
    let mut results = Vec::with_capacity(count);
    for place in found {
        // A place is poisoned or empty only where the work panicked, and then `run` did too.
        results.extend(place.into_inner().ok().flatten());
    }
    results
}

/// Returns what the work gives for each piece, or the error of the first piece that has one,
/// whatever came first in time. What stands behind a piece that failed is not begun after it.
///
/// # Errors
/// Those of the work.
pub fn each_or_stop<P: Sync, T: Send, E: Send>(
    pieces: &[P],
    work: impl Fn(&P) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let failed = AtomicUsize::new(usize::MAX);
    let found = each_number(pieces.len(), |number| {
        if number > failed.load(Ordering::Relaxed) {
            return None;
        }
        let result = work(&pieces[number]);
        if result.is_err() {
            failed.fetch_min(number, Ordering::Relaxed);
        }
        Some(result)
    });
    let mut results = Vec::with_capacity(found.len());
    for result in found.into_iter().flatten() {
        results.push(result?);
    }
    Ok(results)
}

fn run(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_errors_come_out() {
        assert_eq!(each_number(100, |n| n * n)[99], 9801);
        let even = |n: &usize| {
            if n.is_multiple_of(2) {
                Ok(n / 2)
            } else {
                Err(*n)
            }
        };
        assert_eq!(each_or_stop(&[2, 4, 6], even), Ok(vec![1, 2, 3]));
        assert_eq!(each_or_stop(&[2, 5, 6], even), Err(5));
        assert!(each(&[] as &[u8], |_| ()).is_empty());
        // The first piece's error, though pieces behind it failed long before it was begun.
        let pieces: Vec<usize> = (0..200).collect();
        let slow_first = |&n: &usize| match n {
            0 => {
                std::thread::sleep(std::time::Duration::from_millis(30));
                Ok(n)
            }
            3 | 100.. => Err(n),
            _ => Ok(n),
        };
        assert_eq!(each_or_stop(&pieces, slow_first), Err(3));
    }
}
