//! Long work: on threads of its own, while the caller's thread shows its progress and answers
//! to Ctrl-C.

use crate::errors::{bug, of_host, refused};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use specgap::cli::{Host, HostError};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is said where something cannot happen and did.
pub(crate) const BUG: &str = "internal error; this is a bug, please report it with the input";

/// How often the caller's thread looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A pool, and the process and number of threads that it was made for.
type Kept = Option<(u32, usize, Arc<ThreadPool>)>;

/// The pool that was used last. A process that was forked has none of its parent's threads,
/// so that the pool is also known by its process.
static POOL: Mutex<Kept> = Mutex::new(None);

/// A pool of this many threads; 0 is one a core.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((of, count, pool)) = &*kept
        && (*of, *count) == (process, threads)
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| refused(format!("threads: {error}")))?;
    let pool = Arc::new(pool);
    if let Some((of, _, old)) = kept.replace((process, threads, Arc::clone(&pool)))
        && of != process
    {
        // Its threads are the parent's, and would be waited for.
        std::mem::forget(old);
    }
    Ok(pool)
}

/// Runs a job in the pool. `progress`, if given, is called with the positions that are done
/// and, once known, all of them; if it or a signal raises, the job is stopped.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Host) -> Result<T, HostError> + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let host = Host::new();
    let mut raised = None;
    let ended = std::thread::scope(|scope| {
        let (done, finished) = channel();
        let own = &host;
        let worker = scope.spawn(move || {
            let result = pool.install(|| job(own));
            // Nobody listens if the caller's thread panicked.
            let _ = done.send(());
            result
        });
        // A receiver is not shared between threads; it is lent to the one that waits.
        let finished = Mutex::new(finished);
        loop {
            let waited = py.detach(|| {
                let finished = finished.lock().unwrap_or_else(PoisonError::into_inner);
                finished.recv_timeout(BETWEEN_LOOKS)
            });
            if waited != Err(RecvTimeoutError::Timeout) {
                break;
            }
            let looked = py.check_signals().and_then(|()| show(progress, &host));
            if let (None, Err(error)) = (&raised, looked) {
                host.cancel();
                raised = Some(error);
            }
        }
        py.detach(|| worker.join())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let result = ended.map_err(|_| bug(BUG))?;
    let value = result.map_err(|error| of_host(&error))?;
    show(progress, &host)?;
    Ok(value)
}

fn show(progress: Option<&Bound<'_, PyAny>>, host: &Host) -> PyResult<()> {
    if let Some(progress) = progress {
        progress.call1(host.progress())?;
    }
    Ok(())
}
