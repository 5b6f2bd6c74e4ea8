//! Exact optimal-transport analysis of multi-draft speculative decoding.
//!
//! # The problem
//!
//! A draft model proposes n tokens X = (x_1..x_n) with law D, built from its
//! next-token distribution q. A *verifier* outputs a token whose law, averaged
//! over X, must be exactly the target model's p, and is the better the more often
//! that token is one of the drafts. Which verifier accepts most is an optimal
//! transport problem:
//!
//! ```text
//! alpha* = max over couplings pi of (p, D) of  P_pi( i in {x_1..x_n} )
//!        = 1 + min over token sets H of [ P(H) - Q(H) ],
//!
//!          P(H) = sum of p over H,   Q(H) = P_D( x_1..x_n all lie in H )
//! ```
//!
//! It is an optimum of one position, or of one round, that starts with the target's own law.
//! Whole texts of the target's law can be written with more accepted drafts, by rounds that
//! carry something from one to the next (`docs/theory/text-replay.md`).
//!
//! The left side is a linear program with V^(n+1) variables; the right side is a
//! minimum cut. This crate computes both, makes them meet, and checks the proof
//! with a module that contains no solver.
//!
//! # The flow of data
//!
//! ```text
//! Problem -> solvers and verifiers -> certificates -> report
//! models -> capture -> Log -> gap -> Summary -> report
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`distribution`] | p and q, as `f64` and as exact rationals; softmax |
//! | [`known`] | a number and how well it is known |
//! | [`number`] | `f64` or rational, for laws that are written once |
//! | [`scheme`] | the laws of X built from q, one file each, and their table |
//! | [`problem`] | validated problems and their files |
//! | [`lp`] | the problem as linear programs, HiGHS and minilp |
//! | [`optimum`] | alpha* by flow, enumeration, ratio scan, formula, submodular minimisation, and the scan of logged rows |
//! | [`coupling`] | plans that list sets, and full couplings, as data |
//! | [`plan`] | optimal plans with one weight a token |
//! | [`rule`] | every verification rule by its name, and its law on a row |
//! | [`verifier`] | rules that verify drafts, one file each, and their table: laws, samplers, acceptance rates |
//! | [`certify`] | recomputes every claim; imports no solver |
//! | [`tree`], [`block`] | token trees; block verifiers, bounds and optima |
//! | [`evaluate`] | every method and verifier on one problem, their agreement, and the result as JSON |
//! | [`rounds`] | rounds of a decoder along a text: acceptance, renewal, bounds |
//! | [`decoder`] | a round of a decoder on rows, as an engine runs it: drafts, and a tree verified |
//! | [`claims`] | the ledger of theorems |
//! | [`log`] | logged rows, read a span at a time |
//! | `capture` | feature `onnx`: running two models and logging their rows |
//! | [`sampling`] | logged rows as probabilities at a temperature, cut as a sampler cuts them |
//! | [`advice`] | what a report may advise: changes from what an engine does now |
//! | [`statistics`] | means over positions that come in clusters |
//! | [`gap`] | measurements of a log: summaries that merge, and the report as data |
//! | [`audit`] | whether an engine samples what it claims |
//! | [`replay`] | rounds of a decoder replayed along logged text: draft lengths, policies, bounds |
//! | [`whole`] | gap reports with all that is asked of them |
//! | [`report`] | what each result says, as a page or as text |
//! | [`page`] | a page as data, as text, Markdown, HTML, and plots |
//! | [`cli`] | the program |
//!
//! # Glossary
//!
//! | symbol | code | meaning |
//! | --- | --- | --- |
//! | p | [`distribution::Target`] | target distribution over tokens `0..V` |
//! | q | [`distribution::Draft`] | draft model's distribution |
//! | n | `drafts` | draft tokens a step |
//! | X, A(X) | `tuple`, `set` | the draft tokens; their distinct tokens |
//! | D | [`scheme::DraftScheme`] | law of X |
//! | pi | [`coupling::Coupling`] | joint law of output and X |
//! | alpha | `acceptance_rate` | P(output in A(X)) of a verifier |
//! | alpha* | `optimal_acceptance_rate` | its maximum over verifiers |
//! | H | `subset` | a token set; a minimiser of P - Q certifies alpha* |
//!
//! # Exactness
//!
//! A value is *exact* if it is a rational computed in rational or integer
//! arithmetic, with flow = cut at tolerance 0. Otherwise it is *enclosed*: an
//! interval with rounding accounted for. Answers of floating-point solvers are
//! shown with recomputed optimality conditions and are never called exact.
//!
//! # Example
//!
//! ```
//! use specgap::distribution::{Draft, Target};
//! use specgap::problem::Problem;
//! use specgap::scheme::WithReplacement;
//! use specgap::evaluate::{Limits, solve};
//!
//! let p = Target::new(&[0.5, 0.5])?;
//! let q = Draft::new(&[0.75, 0.25])?;
//! let problem = Problem::new("two tokens", p, WithReplacement::new(q, 2))?;
//! let solution = solve(&problem, &Limits::default());
//! assert_eq!(solution.optimal_acceptance_rate.value(), 15.0 / 16.0);
//! assert_eq!(solution.proof.subset, [0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// No input may panic; clippy.toml lets tests do so.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![deny(clippy::unreachable, clippy::todo, clippy::unimplemented)]

pub mod cli;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod schemas;

pub use specgap_audit::{audit, conformance};
pub use specgap_base::panics::install_panic_hook;
#[cfg(feature = "onnx")]
pub use specgap_capture as capture;
pub use specgap_core::{
    certify, coupling, decoder, lp, optimum, problem, rounds, rule, scheme, stop, tree, verifier,
};
pub use specgap_counters::{counters, profile};
pub use specgap_exact::{block, claims, evaluate};
pub use specgap_log::{import, log};
pub use specgap_measure as gap;
pub use specgap_number::{distribution, known, number};
pub use specgap_page as page;
pub use specgap_plan as plan;
pub use specgap_replay::{replay, whole};
pub use specgap_report as report;
pub use specgap_row as row;
pub use specgap_sampling as sampling;
pub use specgap_statistics::{advice, curve, statistics};

use specgap_base::{files, glossary, once, setting, side_by_side, sorted, typed};
