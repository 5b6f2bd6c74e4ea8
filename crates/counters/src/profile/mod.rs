//! Acceptance of every draft length, as the files that other tools read.
//!
//! One writer a format, each after the code that reads it; docs/reference/profiles.md names the commits.
//! Every file has one number where specgap has an interval. `card` has both.
//!
//! | format | files | what the reader takes |
//! | --- | --- | --- |
//! | `vllm` | `vllm-k4.json` | S_1..S_K: marginal, in \[0, 1\], falling, K of them |
//! | `llama.cpp` | `llama.cpp-k4.env` | the same |
//! | `sglang` | `sglang-k4.env` | the mean with the bonus token, in \[1, K + 1\] |
//! | `tensorrt-llm` | `tensorrt-llm-k4.env` | the mean without it, in \[0, K\] |
//! | `model-optimizer` | `speculation_profile.json` | S_i and S_i/S_(i-1) at the longest K, the mean at each K |
//! | `inferencex` | `inferencex.yaml` | the mean at each K, two decimals |
//! | `card` | `card.md` | for people: all of it with ± |

mod card;
mod data;
mod environment;
mod format;
mod inferencex;
mod model_optimizer;
mod vllm;

pub use data::{Profile, ProfileError, Source};
pub use format::{Format, is_of_a_profile};

impl Profile {
    /// The files of a format, by name.
    ///
    /// # Errors
    /// Numbers that JSON does not have.
    pub fn files(&self, format: Format) -> Result<Vec<(String, Vec<u8>)>, ProfileError> {
        match format {
            Format::Vllm => vllm::files(self),
            Format::Sglang | Format::TensorrtLlm | Format::LlamaCpp => {
                Ok(environment::files(self, format))
            }
            Format::ModelOptimizer => model_optimizer::files(self),
            Format::Inferencex => Ok(vec![inferencex::file(self)]),
            Format::Card => Ok(vec![card::file(self)]),
        }
    }
}

#[cfg(test)]
mod tests;
