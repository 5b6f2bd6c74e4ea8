//! Does the program keep its contract: output, files, exit codes, messages? One
//! module a command, and one for bad input.

mod bad_input;
mod block;
mod check;
mod gap;
mod import;
mod length;
mod solve;
mod tree;
mod verify;

#[path = "../made_log/mod.rs"]
mod made_log;
#[path = "../run/mod.rs"]
mod run;
