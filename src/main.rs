//! The `specgap` program: parse, call, print, exit.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

use clap::Parser;
use specgap::cli::{Cli, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Exit code of a bug.
const INTERNAL_ERROR: u8 = 3;

fn main() -> ExitCode {
    specgap::install_panic_hook();
    let cli = Cli::parse();
    catch_unwind(AssertUnwindSafe(|| run(cli))).unwrap_or_else(|_| {
        eprintln!("error: internal error; this is a bug, please report it with the input");
        ExitCode::from(INTERNAL_ERROR)
    })
}
