//! Where a log comes from.

use super::cut_order::CutOrder;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A file that took part, by its name and contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(expecting = "an object with the name of a file, and its sha256 if known")]
pub struct FileIdentity {
    /// The name, without its folders.
    pub name: String,
    /// SHA-256 of its bytes, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How the logged `token`s were drawn from the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(expecting = "an object with the temperature")]
pub struct Sampling {
    /// The temperature; 0 is the most probable token.
    pub temperature: f64,
    /// Only the k most probable tokens, if given; 0 and -1, as engines write it, are none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "top_k"
    )]
    pub top_k: Option<usize>,
    /// Only the smallest set of most probable tokens with this mass, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Of these, only those of at least this share of the largest probability, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// In which order these and the temperature were applied, if it is told: `k,p,m` where it is
    /// not, the temperature, top-k, top-p and min-p, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_order: Option<CutOrder>,
    /// The seed of the generator, if told; -1 is none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "seed"
    )]
    pub seed: Option<u64>,
    /// The most tokens that one prompt was continued by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// The template around a prompt: `chatml` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
}

fn top_k<'de, D: Deserializer<'de>>(input: D) -> Result<Option<usize>, D::Error> {
    told(
        input,
        &[0, -1],
        "top_k is a number of tokens, or 0 or -1 for all of them",
    )
}

fn seed<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    told(
        input,
        &[-1],
        "a seed is 0 or more, or -1 where none was set",
    )
}

/// Reads a number that is not there where it has one of the values that stand for `none`.
fn told<'de, D: Deserializer<'de>, T: TryFrom<i128>>(
    input: D,
    none: &[i128],
    rule: &str,
) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(input)? else {
        return Ok(None);
    };
    let whole = (number.as_i64().map(i128::from)).or(number.as_u64().map(i128::from));
    if whole.is_some_and(|whole| none.contains(&whole)) {
        return Ok(None);
    }
    let read = whole.and_then(|whole| T::try_from(whole).ok());
    let refused = || serde::de::Error::custom(format!("{rule}; this is {number}"));
    read.map(Some).ok_or_else(refused)
}

/// The name and the hash, of which a precision keeps that many digits.
///
/// ```
/// use specgap_log::log::FileIdentity;
/// let file = FileIdentity { name: "big.onnx".into(), sha256: Some("0123456789ab".into()) };
/// assert_eq!(file.to_string(), "big.onnx, sha256 0123456789ab");
/// assert_eq!(format!("{file:.4}"), "big.onnx, sha256 0123…");
/// ```
impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let Some(hash) = &self.sha256 else {
            return Ok(());
        };
        match f.precision() {
            Some(digits) if hash.chars().count() > digits => {
                write!(f, ", sha256 {hash:.digits$}…")
            }
            _ => write!(f, ", sha256 {hash}"),
        }
    }
}

/// All of it in one line.
///
/// ```
/// use specgap_log::log::Sampling;
/// let drawn = Sampling { temperature: 1.0, top_k: Some(40), seed: Some(7), ..Sampling::default() };
/// assert_eq!(drawn.to_string(), "temperature 1.0, top-k 40, seed 7");
/// ```
impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "temperature {:?}", self.temperature)?;
        if let Some(k) = self.top_k {
            write!(f, ", top-k {k}")?;
        }
        if let Some(p) = self.top_p {
            write!(f, ", top-p {p}")?;
        }
        if let Some(p) = self.min_p {
            write!(f, ", min-p {p}")?;
        }
        let cuts = [
            self.top_k.is_some(),
            self.top_p.is_some(),
            self.min_p.is_some(),
        ];
        if let Some(order) = self.cut_order.filter(|_| cuts.contains(&true)) {
            write!(f, ", cut in the order {order}")?;
        }
        if let Some(seed) = self.seed {
            write!(f, ", seed {seed}")?;
        }
        match self.max_tokens {
            None => {}
            Some(1) => f.write_str(", at most 1 token a prompt")?,
            Some(most) => write!(f, ", at most {most} tokens a prompt")?,
        }
        match self.chat.as_deref() {
            None => Ok(()),
            // A template was not added; the prompts may have been written in one.
            Some("none") => f.write_str(", prompts as their file has them, no template added"),
            Some(chat) => write!(f, ", prompts put into the {chat} template"),
        }
    }
}

/// A prompt that was continued to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptRecord {
    /// What `prompt_id` says at its positions.
    pub id: i64,
    /// The prompt's name in the file of prompts.
    pub name: String,
    /// Positions logged for it.
    pub positions: usize,
}

/// How the log's rollouts were drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolloutRecord {
    /// The version of the tensors and of this: 1, or 2 where several start at a position.
    pub version: u32,
    /// K: tokens of each.
    pub tokens: usize,
    /// M: a rollout starts at every M-th position of a prompt, the first of them drawn
    /// evenly from the prompt's first M positions.
    pub every: usize,
    /// The probability that one starts at a position, the same for all: 1/M. What is
    /// summed over rollouts and divided by it is, in expectation, the sum over positions.
    pub inclusion_probability: f64,
    /// How many start at such a position, i.i.d. from q given the prefix: draft paths.
    #[serde(default = "one_path", skip_serializing_if = "is_one_path")]
    pub paths: usize,
    /// The temperature of q, which is softmax of the draft's logits over it; nothing is
    /// cut by top-k or top-p. 0 is the draft's likeliest token.
    pub temperature: f64,
    /// Whether the target was run over them.
    #[serde(default)]
    pub target: bool,
}

/// What a log says of the tokens that its rows do not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnlistedTokens {
    /// The sampler cuts them off: the listed tokens are all that can be drawn, and their
    /// probabilities are those of the list, renormalised.
    NeverDrawn,
}

/// Whose the target's rows of an engine's log are: what an audit takes for p follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RowsFrom {
    /// The engine's, behind its own temperature and truncation: what it takes for p.
    EngineProcessed,
    /// The engine's raw logits; p follows from them and from what the request asks for.
    EngineRaw,
    /// A pass of the target over the finished text, apart from what sampled it.
    Scoring,
}

/// Rounds of an engine that a log lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingRounds {
    /// How many.
    pub count: u64,
    /// How many for each reason.
    #[serde(default)]
    pub reasons: BTreeMap<String, u64>,
}

/// How a draft model comes to the tokens of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Drafter {
    /// One after the other: each row is the law given all tokens before it.
    Sequential,
    /// All in one pass: each row is the law of its token alone, whatever the other drafts of
    /// the round are, so that the rows tell no joint law.
    Parallel,
}

fn one_path() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_one_path(paths: &usize) -> bool {
    *paths == 1
}

/// What a log says of itself. All of it is optional on reading; `capture`
/// fills in everything it knows.
///
/// ```
/// let metadata: specgap_log::log::Metadata =
///     serde_json::from_str(r#"{"target": {"name": "big.onnx"}, "note": "mine"}"#).unwrap();
/// assert_eq!((metadata.temperature_applied, metadata.applied()), (None, 1.0));
/// assert_eq!(metadata.extra["note"], "mine");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metadata {
    /// The program that wrote it, with its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The command that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The target model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<FileIdentity>,
    /// The draft model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<FileIdentity>,
    /// The tokenizer that both share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<FileIdentity>,
    /// The runtime and the provider that ran the models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The temperature t that the rows were already divided by: a row l in the
    /// log is l_raw / t. 1 for raw logits, and where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_applied: Option<f64>,
    /// How `token` was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// V. Needed where rows are top-heavy, checked where they are full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// The temperatures of the columns of `target_rest` and `draft_rest`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest_temperatures: Vec<f64>,
    /// What the tokens are that top-heavy rows do not list; if absent, tokens of a full
    /// softmax, of which the rows list the most probable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<UnlistedTokens>,
    /// Whether the draft reads its own drafts, if it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drafter: Option<Drafter>,
    /// Whose the target's rows are, where an engine's doings are logged beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_from: Option<RowsFrom>,
    /// Rounds that could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_rounds: Option<MissingRounds>,
    /// Rounds that were left out because p does not follow from their rows and the sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_comparable: Option<MissingRounds>,
    /// How the rollouts were drawn, where the log has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollouts: Option<RolloutRecord>,
    /// How many prompts the log will have once it is finished, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_prompts: Option<usize>,
    /// The prompts that are in the log as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptRecord>,
    /// The names of the numbers in the tensor `group`, from 0 on: chat, code, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What the logged tokens look like, by id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub token_text: BTreeMap<i64, String>,
    /// Whatever else was noted.
    #[serde(flatten)]
    pub extra: BTreeMap<String, serde_json::Value>,
}

impl Metadata {
    /// The temperature that the rows were already divided by.
    pub fn applied(&self) -> f64 {
        self.temperature_applied.unwrap_or(1.0)
    }

    /// Counts the prompts that an unfinished log has as a whole, and those that it will have.
    ///
    /// ```
    /// use specgap_log::log::Metadata;
    /// let told = |text: &str| serde_json::from_str::<Metadata>(text).unwrap().unfinished();
    /// assert_eq!(told(r#"{"planned_prompts": 20}"#), Some([0, 20]));
    /// assert_eq!(told("{}"), None);
    /// ```
    pub fn unfinished(&self) -> Option<[usize; 2]> {
        let (done, planned) = (self.prompts.len(), self.planned_prompts?);
        (done < planned).then_some([done, planned])
    }

    /// Tells whether the draft writes all tokens of a round in one pass, so that its rows tell no
    /// joint law of them.
    ///
    /// ```
    /// use specgap_log::log::Metadata;
    /// let metadata: Metadata = serde_json::from_str(r#"{"drafter": "parallel"}"#).unwrap();
    /// assert!(metadata.is_parallel() && !Metadata::default().is_parallel());
    /// ```
    pub fn is_parallel(&self) -> bool {
        self.drafter == Some(Drafter::Parallel)
    }

    /// Counts the listed tokens that are the most probable of the target and of the draft,
    /// as `top` says: one number for both, or `target` and `draft`, of which 0 promises
    /// nothing.
    ///
    /// ```
    /// use specgap_log::log::Metadata;
    /// let tops = |text: &str| serde_json::from_str::<Metadata>(text).unwrap().tops();
    /// assert_eq!(tops(r#"{"top": 20}"#), Some([20, 20]));
    /// assert_eq!(tops(r#"{"top": {"target": 20, "draft": 0}}"#), Some([20, 0]));
    /// assert_eq!(tops("{}"), None);
    /// ```
    pub fn tops(&self) -> Option<[usize; 2]> {
        let top = self.extra.get("top")?;
        let count = |value: &serde_json::Value| usize::try_from(value.as_u64()?).ok();
        match count(top) {
            Some(both) => Some([both, both]),
            None => Some([count(top.get("target")?)?, count(top.get("draft")?)?]),
        }
    }
}

/// What every version of `log.json` has.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Version {
    pub schema: u64,
}

/// `log.json` of a sharded log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// 1.
    pub schema: u32,
    /// What the log says of itself.
    pub metadata: Metadata,
    /// The files, in order; no file twice.
    pub shards: Vec<ShardEntry>,
}

/// One complete shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// Its name in the folder.
    pub file: String,
    /// How many positions it has.
    pub positions: usize,
    /// Where the target's rows are, if not in `file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SharedShard>,
}

/// A shard of another log, of which a shard takes the target's rows and what is said of
/// positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharedShard {
    /// `../LOG/FILE`: a file of a log in the same folder.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// A hash of what is taken from it, as [`super::shared::digest`] makes it.
    pub digest: String,
}

/// The name of the index in a sharded log, and of its copy inside an `.npz`.
pub(crate) const INDEX_NAME: &str = "log.json";
/// The key of the metadata in a safetensors header.
pub(crate) const METADATA_KEY: &str = "specgap";
/// The version of the index.
pub(crate) const SCHEMA: u32 = 1;

#[cfg(test)]
mod tests {
    use super::Sampling;

    #[test]
    fn what_engines_write_for_none_is_none() {
        let read = |more: &str| {
            serde_json::from_str::<Sampling>(&format!("{{\"temperature\": 1.0{more}}}"))
                .map(|one| (one.top_k, one.seed))
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(""), Ok((None, None)));
        assert_eq!(read(", \"top_k\": 0, \"seed\": -1"), Ok((None, None)));
        assert_eq!(read(", \"top_k\": -1, \"seed\": null"), Ok((None, None)));
        let most = ", \"top_k\": 50, \"seed\": 18446744073709551615";
        assert_eq!(read(most), Ok((Some(50), Some(u64::MAX))));
        for (more, words) in [
            (", \"top_k\": -2", "top_k is a number of tokens"),
            (", \"top_k\": 1.5", "this is 1.5"),
            (
                ", \"seed\": -2",
                "a seed is 0 or more, or -1 where none was set; this is -2",
            ),
        ] {
            let said = read(more).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }
}
