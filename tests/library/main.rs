//! Does the library keep its promises? One module a question.

mod advice;
mod audit;
mod blocks;
mod bonus_rows;
mod by_depth;
mod certificates;
mod counters;
mod engines;
mod engines_report;
mod formulations;
mod gap;
mod gap_compare;
mod gap_merge;
mod gap_report;
mod groups;
mod imports;
mod log;
mod long_functions;
mod optimal_plan;
mod pages;
mod papers;
mod paths;
mod peaked;
mod profiles;
mod recorded;
mod redrafted;
mod replay;
mod replay_rollouts;
mod rollouts;
mod rooms;
mod row_scan;
mod rows;
mod rule_names;
mod sampler;
mod sequential_plan;
mod settings;
mod several_rounds;
mod shipped_problems;
mod solve_report;
mod trees;
mod truncated;
mod verifiers;
mod verify_large;

#[path = "../made_log/mod.rs"]
mod made_log;
#[path = "../made_paths/mod.rs"]
mod made_paths;
#[path = "../says/mod.rs"]
mod says;
