//! Long work that whoever waits for it may stop.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// What unwinds where work is stopped.
#[derive(Clone, Copy, Debug)]
pub struct Stopped;

/// The flag that was watched before.
struct Before(Option<Arc<AtomicBool>>);

impl Drop for Before {
    fn drop(&mut self) {
        let before = self.0.take();
        FLAG.with_borrow_mut(|flag| *flag = before);
    }
}

/// Runs something on this thread that unwinds with [`Stopped`], at its next [`look`], once the flag is
/// set.
///
/// # Example
/// ```
/// use specgap_core::stop::{Stopped, look, watched};
/// use std::panic::catch_unwind;
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// let flag = Arc::new(AtomicBool::new(false));
/// let run = || watched(&flag, || { look(); flag.store(true, Ordering::Relaxed); look(); });
/// assert!(catch_unwind(run).unwrap_err().is::<Stopped>());
/// look(); // nobody watches
/// ```
pub fn watched<T>(flag: &Arc<AtomicBool>, run: impl FnOnce() -> T) -> T {
    let _before = Before(FLAG.replace(Some(Arc::clone(flag))));
    run()
}

/// Unwinds if this thread's work shall stop.
pub fn look() {
    let stops = |flag: &Option<Arc<AtomicBool>>| {
        flag.as_ref()
            .is_some_and(|flag| flag.load(Ordering::Relaxed))
    };
    if FLAG.with_borrow(stops) {
        resume_unwind(Box::new(Stopped));
    }
}
