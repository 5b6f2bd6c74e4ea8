//! Logged rows of real models: N positions of one (target, draft) pair.
//!
//! A log is a `.safetensors` file, an `.npz` file, or a directory of shards of
//! either with one `log.json`. It has, as f16, bf16, f32 or f64 (no bf16 in
//! `.npz`, which has none):
//!
//! | tensor | shape | meaning |
//! | --- | --- | --- |
//! | `target_logits`, or `target_probs`, or `target_logprobs` | \[N, V\] | the target's row p on a prefix |
//! | `draft_logits`, or `draft_probs`, or `draft_logprobs` | \[N, V\] | the draft's row q on the same prefix |
//!
//! and, where it has them, as i64 or i32:
//!
//! | tensor | shape | meaning |
//! | --- | --- | --- |
//! | `prompt_id` | \[N\] | which prompt the position belongs to |
//! | `position` | \[N\] | its index in the generated text, from 0 |
//! | `token` | \[N\] | the token drawn from the target there |
//! | `drafts` | \[N, n\] | tokens that were drafted there |
//! | `output` | \[N\] | the token that a verifier put out there |
//! | `accepted` | \[N\] | drafts accepted in the round that starts there, -1 where none does |
//! | `round` | \[N\] | how far into its round it is, from 0 |
//! | `batch_size` | \[N\] | sequences that the engine verified together there |
//! | `seed` | \[N\] | the seed of the request's own random numbers, -1 for the engine's stream |
//!
//! and as floating point `head_acceptance` \[N\] and `head_overlap` \[N\], what heads on the
//! draft model predict there.
//!
//! # Top-heavy rows
//!
//! A log can list some tokens of each position instead of all V: then
//! `token_ids` \[N, K\] (i32) has their ids, -1 in unused places at the end,
//! rows are \[N, K\], and `target_rest` and `draft_rest` \[N, T\] (f64) the mass
//! of all tokens that are not listed, at each of the metadata's
//! `rest_temperatures`. Whatever happens in the rest, at most the target's rest
//! mass can be accepted there, so that the optimum of n drafts with replacement
//! is known to within it. Without rest masses, a row is one of a sampler that
//! draws from the listed tokens alone, which commutes with its temperature.
//!
//! # Rollouts
//!
//! A file may also have rollouts, [`Rollouts`]: what the draft model writes on its own
//! behind some of the prefixes, as `rollout_position` \[M\], the numbers of the positions
//! that they start at, `rollout_token` \[M, K\], `rollout_q` \[M, K\], and more.
//!
//! # What is checked
//!
//! Headers against files when a log is opened, every entry when its row is
//! read. -inf logits are legal (masked tokens). NaN, +inf, a row of only -inf,
//! unequal V, negative or non-normalisable probabilities, truncated files and
//! lying headers are a [`LogError`] with file, tensor, row and column. So are rows
//! that are called logits and are something else, where they are measured or written
//! ([`FormGuard`]).

mod allowed;
mod beside;
mod by_depth;
mod chunk;
mod contents;
mod cut_order;
mod digest;
mod draft_logs;
mod encoded;
mod engine;
mod error;
mod forms;
mod groups;
mod hash;
mod identity;
mod joined;
mod labels;
mod mask;
mod metadata;
mod npy;
mod npz;
mod open;
mod reader;
mod rollout_tensors;
mod rollouts;
mod row;
mod safetensors;
mod shard;
mod shared;
mod source;
mod sub_vocabulary;
mod tensor;
mod tool;
mod whole;
mod writer;

pub(crate) use beside::SCORED;
pub use chunk::Chunk;
pub(crate) use chunk::NEXT_TO_NOTHING;
pub use cut_order::CutOrder;
pub use digest::FileDigest;
pub use draft_logs::{DraftLogs, SharedPosition};
pub(crate) use encoded::filled;
pub use engine::EngineRecord;
pub use error::LogError;
pub use forms::MissingMass;
pub use groups::Groups;
pub use identity::{LogIdentity, ShardIdentity};
pub use labels::Label;
#[cfg(feature = "schema")]
#[doc(hidden)]
pub use metadata::Index;
pub use metadata::{
    Drafter, FileIdentity, Metadata, MissingRounds, PromptRecord, RolloutRecord, RowsFrom,
    Sampling, UnlistedTokens,
};
pub use reader::{Log, Span};
pub use rollouts::{Rollout, Rollouts};
pub use row::{Row, RowKind};
pub use source::HeldBytes;
pub(crate) use specgap_entries::Scratch;
pub use specgap_entries::{Dtype, Form, FormGuard};
pub use tensor::HeldTensor;
pub(crate) use tensor::Tensor;
pub use tool::{tool, version};
pub use whole::{RawTensor, WholeLog, npz, tensors};
pub use writer::{Container, HeadValues, KeptTokens, Layout, ListedPosition, LogWriter, Position};
