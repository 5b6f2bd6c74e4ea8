//! The formats by name.

use specgap_base::{names, read_by_name};

/// Who reads a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// vLLM's synthetic rejection sampling.
    Vllm,
    /// SGLang's simulated acceptance.
    Sglang,
    /// TensorRT-LLM's forced acceptance.
    TensorrtLlm,
    /// llama.cpp's synthetic acceptance.
    LlamaCpp,
    /// NVIDIA Model-Optimizer's `speculation_profile.json`.
    ModelOptimizer,
    /// InferenceX's golden acceptance lengths.
    Inferencex,
    /// A table for a model card.
    Card,
}

names! {
    Format:
    Vllm "vllm",
    Sglang "sglang",
    TensorrtLlm "tensorrt-llm",
    LlamaCpp "llama.cpp",
    ModelOptimizer "model-optimizer",
    Inferencex "inferencex",
    Card "card",
}

read_by_name!(Format, |name, all| {
    format!("{name} is no format of a profile; there are {all}")
});

/// Tells whether a profile may have a file of this name.
///
/// ```
/// use specgap_counters::profile::is_of_a_profile;
/// assert!(is_of_a_profile("vllm-k4.json") && is_of_a_profile("card.md"));
/// assert!(!is_of_a_profile("vllm.json") && !is_of_a_profile("log.json"));
/// ```
pub fn is_of_a_profile(name: &str) -> bool {
    let numbered = |format: Format, ending: &str| {
        let number = name.strip_prefix(format.as_str());
        let number = number.and_then(|rest| rest.strip_prefix("-k")?.strip_suffix(ending));
        number.is_some_and(|k| !k.is_empty() && k.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let environments = [Format::Sglang, Format::TensorrtLlm, Format::LlamaCpp];
    matches!(
        name,
        "speculation_profile.json" | "inferencex.yaml" | "card.md"
    ) || numbered(Format::Vllm, ".json")
        || environments
            .into_iter()
            .any(|format| numbered(format, ".env"))
}
