//! Panics of third-party solvers, contained and silent.

use std::cell::Cell;
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Makes the panic message of a thread that runs a third-party solver silent:
/// the panic is caught and becomes a status. Every other panic is reported as
/// before. A program calls this once; a library's caller need not.
pub fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                previous(info);
            }
        }));
    });
}

/// Runs a closure whose panics are caught by the caller and are no news.
pub fn quiet_panics<T>(run: impl FnOnce() -> T) -> T {
    let before = QUIET.replace(true);
    let result = run();
    QUIET.set(before);
    result
}
