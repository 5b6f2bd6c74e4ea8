//! Does the program keep its contract: output, files, exit codes, messages? One
//! module a command, and one for bad input.

mod audit;
mod bad_input;
mod block;
mod check;
mod conformance;
mod counters;
mod files;
mod gap;
mod import;
mod length;
mod parts;
mod paths;
mod relaxed;
mod schema;
mod shells;
mod solve;
mod terminal;
mod tree;
mod verify;

#[path = "../engine_log/mod.rs"]
mod engine_log;
#[path = "../made_log/mod.rs"]
mod made_log;
#[path = "../made_paths/mod.rs"]
mod made_paths;
#[path = "../run/mod.rs"]
mod run;
#[path = "../says/mod.rs"]
mod says;
