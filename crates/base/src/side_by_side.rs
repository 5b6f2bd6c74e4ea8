//! Work on all cores, whose results come in order.
//!
//! What hands work to threads is compiled once, and not once for every kind of result.

use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the work gives for each piece.
pub fn each<P: Sync, T: Send>(pieces: &[P], work: impl Fn(&P) -> T + Sync) -> Vec<T> {
    each_number(pieces.len(), |number| work(&pieces[number]))
}

/// What the work gives for each number below `count`.
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

/// What the work gives for each piece, or an error of one of them; none is begun after it.
///
/// # Errors
/// Those of the work.
pub fn each_or_stop<P: Sync, T: Send, E: Send>(
    pieces: &[P],
    work: impl Fn(&P) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let stopped = AtomicBool::new(false);
    let found = each(pieces, |piece| {
        if stopped.load(Ordering::Relaxed) {
            return None;
        }
        let result = work(piece);
        if result.is_err() {
            stopped.store(true, Ordering::Relaxed);
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
    }
}
