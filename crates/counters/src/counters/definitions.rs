//! What words mean, here and in the tools that count.

use serde::Serialize;
use specgap_base::glossary;
use std::collections::BTreeMap;

/// Says what the words of the report mean, each number with its formula.
#[must_use]
pub fn counters_definitions() -> BTreeMap<String, String> {
    glossary::of("counters")
}

/// A number as a tool defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ToolDefinition {
    /// The tool.
    pub tool: &'static str,
    /// What it calls the number.
    pub name: &'static str,
    /// What that is, with d rounds with drafts, t drafted and a accepted tokens.
    pub is: &'static str,
    /// The acceptance length with the bonus token, of that number.
    pub acceptance_length: &'static str,
}

/// Lists what tools call an acceptance rate or length, and how each becomes the other.
///
/// d are rounds with drafts, t are drafted and a are accepted tokens; x is the number itself, and
/// K = t/d.
#[must_use]
pub fn tool_definitions() -> &'static [ToolDefinition] {
    &TOOLS
}

const fn one(
    tool: &'static str,
    name: &'static str,
    is: &'static str,
    acceptance_length: &'static str,
) -> ToolDefinition {
    ToolDefinition {
        tool,
        name,
        is,
        acceptance_length,
    }
}

const TOOLS: [ToolDefinition; 21] = [
    one("vLLM", "mean acceptance length", "1 + a/d", "x"),
    one("vLLM", "draft acceptance rate", "a/t, log in %", "1 + K x"),
    one(
        "vLLM",
        "per-position acceptance rate",
        "a_i/d",
        "1 + sum of x_i",
    ),
    one("vllm bench serve", "acceptance_length", "1 + a/d", "x"),
    one(
        "vllm bench serve",
        "acceptance_rate",
        "100 a/t",
        "1 + K x/100",
    ),
    one("speculators", "acceptance_length", "1 + a/d", "x"),
    one(
        "aiperf",
        "acceptance length",
        "mean over requests of 1 + a/d",
        "not known",
    ),
    one("aiperf", "token-weighted", "1 + a/d", "x"),
    one(
        "aiperf",
        "accepted per verified",
        "(a + d)/(t + d)",
        "(1 + K) x",
    ),
    one("llama.cpp", "draft acceptance (rate)", "a/t", "1 + K x"),
    one("llama.cpp", "mean len", "1 + a/d", "x"),
    one(
        "SGLang",
        "spec_accept_length of /metrics",
        "1 + a/d of the last moments",
        "not of a run",
    ),
    one(
        "SGLang",
        "spec_accept_length of meta_info, accept_length",
        "tokens/d",
        "x, but for cut ends",
    ),
    one("SGLang", "spec_accept_rate", "a/t", "1 + K x"),
    one("TensorRT-LLM", "acceptanceLength", "1 + a/d", "x"),
    one("TensorRT-LLM", "forced accepted tokens", "a/d", "1 + x"),
    one(
        "llama.cpp, mlx-vlm",
        "draft_n_accepted / draft_n",
        "a/t",
        "1 + K x",
    ),
    one("ATOM", "average_tokens_per_forward", "1 + a/d", "x"),
    one("omlx", "tokens_per_round", "1 + a/d", "x"),
    one(
        "MAX",
        "acceptance_rate_per_position",
        "mean over batches of 100 a_i/d",
        "1 + sum of x_i/100, over batches",
    ),
    one("papers", "E[tau]", "a/d", "1 + x"),
];
