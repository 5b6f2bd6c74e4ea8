//! Commands that another program runs inside itself, such as the Python package: it watches
//! their progress, may stop them, and takes their report as data instead of reading a terminal.

use super::output::CliError;
use crate::log::Log;
use crate::page::Page;
use crate::stop::{self, Stopped};
use crate::typed;
use indicatif::ProgressBar;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A program that runs commands inside itself; clones are the same one.
///
/// # Example
/// ```
/// use specgap::cli::Host;
/// let log = concat!(env!("CARGO_MANIFEST_DIR"), "/models/logs/smollm2-demo");
/// let made = Host::new().report(["length", log, "--lengths", "2", "--policies", "fixed"])?;
/// assert!(made.ok && made.page.markdown().contains("verifier"));
/// assert!(Host::new().report(["length", log, "--lengths", "many"]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Host(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bar: ProgressBar,
    cancelled: Arc<AtomicBool>,
    made: Mutex<Option<MadeReport>>,
    regressions: Mutex<Vec<String>>,
    logs: Mutex<Vec<Log>>,
}

/// A report that a command made.
#[derive(Clone, Debug)]
pub struct MadeReport {
    /// Whether the command's exit code would be 0.
    pub ok: bool,
    /// The data, as `--format json` prints it, indented.
    pub json: Vec<u8>,
    /// The report as a page, for people.
    pub page: Page,
    /// Further files that `--out` writes, by name.
    pub beside: Vec<(String, Vec<u8>)>,
    /// Numbers that are worse than the baseline's, in words.
    pub regressions: Vec<String>,
}

/// Why a host has no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// An option that the command does not take, or not with this value.
    #[error("{0}")]
    Usage(clap::Error),
    /// The command failed.
    #[error(transparent)]
    Command(#[from] CliError),
    /// [`Host::cancel`] was called.
    #[error("cancelled")]
    Cancelled,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// A host that has run nothing yet.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            bar: ProgressBar::hidden(),
            cancelled: Arc::default(),
            made: Mutex::new(None),
            regressions: Mutex::default(),
            logs: Mutex::new(Vec::new()),
        }))
    }

    /// A log that is in memory. The next command that opens its path is given it.
    pub fn lend(&self, log: Log) {
        self.lock(&self.0.logs).push(log);
    }

    /// Positions done, and all of them once that is known.
    pub fn progress(&self) -> (u64, Option<u64>) {
        (self.0.bar.position(), self.0.bar.length())
    }

    /// Says how many positions there are.
    pub fn begin(&self, total: usize) {
        self.0.bar.set_length(total as u64);
    }

    /// Says that some are done. Does not return if the host has cancelled: call it within
    /// [`Self::watch`].
    pub fn step(&self, done: usize) {
        if self.0.cancelled.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
        self.0.bar.inc(done as u64);
    }

    /// Stops what runs, at its next [`Self::step`] or [`stop::look`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Runs something that calls [`Self::step`], or on this thread [`stop::look`].
    ///
    /// # Errors
    /// [`HostError::Cancelled`]; and what the closure returns.
    pub fn watch<T, E>(&self, run: impl FnOnce() -> Result<T, E>) -> Result<T, HostError>
    where
        HostError: From<E>,
    {
        match catch_unwind(AssertUnwindSafe(|| stop::watched(&self.0.cancelled, run))) {
            Ok(result) => Ok(result?),
            Err(payload) if is_cancelled(&*payload) => Err(HostError::Cancelled),
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Returns what was taken last, and forgets it.
    pub(super) fn made(&self) -> Option<MadeReport> {
        self.lock(&self.0.made).take()
    }

    /// Takes what is worse than in a baseline.
    pub(super) fn regressed(&self, told: String) {
        self.lock(&self.0.regressions).push(told);
    }

    /// Takes what would be printed.
    pub(super) fn take(
        &self,
        data: &impl serde::Serialize,
        page: &Page,
        beside: Vec<(String, Vec<u8>)>,
    ) -> Result<(), CliError> {
        *self.lock(&self.0.made) = Some(MadeReport {
            ok: true,
            json: typed::pretty(data)?.into_bytes(),
            page: page.clone(),
            beside,
            regressions: std::mem::take(&mut *self.lock(&self.0.regressions)),
        });
        Ok(())
    }

    /// The log of this path, if one is lent.
    pub(super) fn lent(&self, path: &Path) -> Option<Log> {
        let mut logs = self.lock(&self.0.logs);
        let at = logs.iter().position(|log| log.path() == path)?;
        Some(logs.swap_remove(at))
    }

    fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> std::sync::MutexGuard<'a, T> {
        // What is in it is replaced as a whole.
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_cancelled(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Stopped>()
}

/// The progress of a command: on a terminal, or to its host.
pub(super) enum Bar {
    Terminal(ProgressBar),
    Host(Host),
}

impl Bar {
    pub(super) fn inc(&self, done: usize) {
        match self {
            Self::Terminal(bar) => bar.inc(done as u64),
            Self::Host(host) => host.step(done),
        }
    }

    pub(super) fn finish_and_clear(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}
