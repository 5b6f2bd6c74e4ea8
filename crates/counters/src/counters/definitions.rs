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
    TOOLS
}

/// By tool: names, what each is, and the acceptance length of it.
macro_rules! definitions {
    ($($tool:literal { $($name:literal $is:literal $length:literal;)+ })+) => {
        &[$($(ToolDefinition {
            tool: $tool,
            name: $name,
            is: $is,
            acceptance_length: $length,
        }),+),+]
    };
}

const TOOLS: &[ToolDefinition] = definitions! {
    "vLLM" {
        "mean acceptance length" "1 + a/d" "x";
        "draft acceptance rate" "a/t, log in %" "1 + K x";
        "per-position acceptance rate" "a_i/d" "1 + sum of x_i";
    }
    "vllm bench serve" {
        "acceptance_length" "1 + a/d" "x";
        "acceptance_rate" "100 a/t" "1 + K x/100";
    }
    "speculators" { "acceptance_length" "1 + a/d" "x"; }
    "aiperf" {
        "acceptance length" "mean over requests of 1 + a/d" "not known";
        "token-weighted" "1 + a/d" "x";
        "accepted per verified" "(a + d)/(t + d)" "(1 + K) x";
    }
    "llama.cpp" {
        "draft acceptance (rate)" "a/t" "1 + K x";
        "mean len" "1 + a/d" "x";
    }
    "SGLang" {
        "spec_accept_length of /metrics" "1 + a/d of the last moments" "not of a run";
        "spec_accept_length of meta_info, accept_length" "tokens/d" "x, but for cut ends";
        "spec_accept_rate" "a/t" "1 + K x";
    }
    "TensorRT-LLM" {
        "acceptanceLength" "1 + a/d" "x";
        "forced accepted tokens" "a/d" "1 + x";
    }
    "llama.cpp, mlx-vlm" { "draft_n_accepted / draft_n" "a/t" "1 + K x"; }
    "ATOM" { "average_tokens_per_forward" "1 + a/d" "x"; }
    "omlx" { "tokens_per_round" "1 + a/d" "x"; }
    "MAX" {
        "acceptance_rate_per_position" "mean over batches of 100 a_i/d"
            "1 + sum of x_i/100, over batches";
    }
    "papers" { "E[tau]" "a/d" "1 + x"; }
};
