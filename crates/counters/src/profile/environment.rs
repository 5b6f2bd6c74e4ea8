//! Engines that take variables of the environment: a file a length, for `set -a; . FILE` or
//! `docker run --env-file FILE`.

use super::data::{Profile, marginal, rounded};
use super::format::Format;
use specgap_statistics::curve::Curve;

pub(super) fn files(profile: &Profile, format: Format) -> Vec<(String, Vec<u8>)> {
    let comments = profile
        .source
        .lines()
        .into_iter()
        .map(|line| format!("# {line}\n"));
    let comments: Vec<String> = comments.collect();
    let each = profile.curves.iter().map(|curve| {
        let mut text = format!(
            "# K = {}; for benchmarks: what is put out is no text of the target's\n",
            curve.length
        );
        text.extend(comments.iter().map(String::as_str));
        text.push_str(&variables(curve, format));
        let name = format!("{format}-k{}.env", curve.length);
        (name, text.into_bytes())
    });
    each.collect()
}

fn variables(curve: &Curve, format: Format) -> String {
    let longest = curve.length as f64 + 1.0;
    let mean = rounded(curve.acceptance_length.mean, 4).clamp(1.0, longest);
    match format {
        Format::LlamaCpp => {
            let rates: Vec<String> = marginal(curve).iter().map(f64::to_string).collect();
            format!(
                "LLAMA_ARG_SPEC_DRAFT_N_MAX={}\nLLAMA_ARG_SPEC_SYNTH_RATES={}\n",
                curve.length,
                rates.join(",")
            )
        }
        // Without the bonus token. It takes 0 for "not forced".
        Format::TensorrtLlm => format!(
            "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS={}\n",
            rounded(mean - 1.0, 4)
        ),
        _ => format!(
            "SGLANG_SIMULATE_ACC_LEN={mean}\nSGLANG_SIMULATE_ACC_METHOD=match-expected\n\
             SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token\n"
        ),
    }
}
