//! The `specgap` program: the command line of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(specgap::cli::main(std::env::args_os()))
}
