//! What a log says of where it comes from.

use super::words::{count, counted, temperature};
use crate::gap::LogSummary;
use crate::log::{FileIdentity, Sampling};

/// One line of a log's provenance.
pub(super) struct Fact {
    pub name: String,
    pub value: String,
    /// The whole of a value that is shown shortened.
    pub full: Option<String>,
}

impl Fact {
    fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            full: None,
        }
    }
}

/// Digits of a hash that are shown.
const SHORT_HASH: usize = 12;

/// Everything that is known of a log.
pub(super) fn facts(log: &LogSummary) -> Vec<Fact> {
    let metadata = &log.metadata;
    let mut facts = Vec::new();
    for (name, identity) in [
        ("target model", &metadata.target),
        ("draft model", &metadata.draft),
        ("tokenizer", &metadata.tokenizer),
    ] {
        if let Some(identity) = identity {
            facts.push(file(name, identity));
        }
    }
    if let Some(runtime) = &metadata.runtime {
        facts.push(Fact::new("runtime", runtime));
    }
    if let Some(how) = &metadata.sampling {
        facts.push(Fact::new("tokens sampled", sampling(how)));
    }
    if metadata.temperature_applied != 1.0 {
        let applied = temperature(metadata.temperature_applied);
        facts.push(Fact::new("logged rows divided by temperature", applied));
    }
    let rows = match log.rows.as_str() {
        "full" => format!("full, {} tokens", count(log.vocabulary)),
        "top-heavy" => format!(
            "top-heavy, at most {} of {} tokens listed",
            count(log.listed),
            count(log.vocabulary)
        ),
        other => format!("{other}, {} tokens", count(log.vocabulary)),
    };
    facts.push(Fact::new("rows", rows));
    let [target, draft] = &log.dtypes;
    let types = if target == draft {
        target.clone()
    } else {
        format!("{target} (target), {draft} (draft)")
    };
    facts.push(Fact::new("entries", types));
    let mut positions = counted(log.positions, "position");
    if !metadata.prompts.is_empty() {
        positions.push_str(&format!(
            ", {}",
            counted(metadata.prompts.len(), "complete prompt")
        ));
    }
    facts.push(Fact::new("size", positions));
    if let Some(tool) = &metadata.tool {
        facts.push(Fact::new("written by", tool));
    }
    if let Some(command) = &metadata.command {
        facts.push(Fact::new("command", command));
    }
    for (name, value) in &metadata.extra {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        facts.push(Fact::new(name, value));
    }
    if !log.ignored_tensors.is_empty() {
        facts.push(Fact::new(
            "tensors not used",
            log.ignored_tensors.join(", "),
        ));
    }
    facts
}

fn file(name: &str, identity: &FileIdentity) -> Fact {
    let Some(hash) = &identity.sha256 else {
        return Fact::new(name, &identity.name);
    };
    let short: String = hash.chars().take(SHORT_HASH).collect();
    let ellipsis = if hash.chars().count() > SHORT_HASH {
        "…"
    } else {
        ""
    };
    Fact {
        name: name.to_owned(),
        value: format!("{}, sha256 {short}{ellipsis}", identity.name),
        full: Some(format!("{}, sha256 {hash}", identity.name)),
    }
}

fn sampling(sampling: &Sampling) -> String {
    let mut parts = vec![format!("temperature {}", temperature(sampling.temperature))];
    if let Some(k) = sampling.top_k {
        parts.push(format!("top-k {k}"));
    }
    if let Some(p) = sampling.top_p {
        parts.push(format!("top-p {p}"));
    }
    parts.push(format!("seed {}", sampling.seed));
    if let Some(most) = sampling.max_tokens {
        parts.push(format!("at most {} a prompt", counted(most, "token")));
    }
    if let Some(chat) = &sampling.chat {
        parts.push(format!("prompt template {chat}"));
    }
    parts.join(", ")
}
