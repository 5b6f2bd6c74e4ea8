//! vLLM: what `--speculative-config` is completed with, a file a length.

use super::data::{Profile, ProfileError, marginal};
use serde::Serialize;

/// The fields of vLLM's `SpeculativeConfig` that make acceptance synthetic. It refuses fields that
/// it does not have, so that nothing says here where the numbers come from.
#[derive(Serialize)]
struct Config {
    num_speculative_tokens: usize,
    rejection_sample_method: &'static str,
    /// P(the first i + 1 drafts are all accepted): as many as tokens, in \[0, 1\], never rising.
    synthetic_acceptance_rates: Vec<f64>,
}

pub(super) fn files(profile: &Profile) -> Result<Vec<(String, Vec<u8>)>, ProfileError> {
    let each = profile.curves.iter().map(|curve| {
        let config = Config {
            num_speculative_tokens: curve.length,
            rejection_sample_method: "synthetic",
            synthetic_acceptance_rates: marginal(curve),
        };
        let line = specgap_base::typed::line(&config);
        let line = line.map_err(|error| ProfileError::Json(error.to_string()))?;
        let name = format!("vllm-k{}.json", curve.length);
        Ok((name, format!("{line}\n").into_bytes()))
    });
    each.collect()
}
