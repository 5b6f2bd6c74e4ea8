//! Whether a text is, token for token, the one that the target wrote alone.

use crate::audit::data::{AuditReport, Conclusion, HardCheck};
use crate::audit::{AuditError, refused_at};
use specgap_log::log::Log;
use std::collections::{BTreeMap, BTreeSet};

/// The hard check's name.
pub const PLAIN_TEXT: &str = "plain-text";

/// Tokens by prompt and position, each with its place in the log.
type Tokens = BTreeMap<(i64, i64), (usize, i64)>;

fn tokens(log: &Log) -> Result<Tokens, AuditError> {
    let has_output = log.engine_tensors().contains(&"output");
    let mut tokens = Tokens::new();
    let records = log.engine_records()?.into_iter();
    for (place, (record, label)) in records.zip(log.labels()?).enumerate() {
        let (Some(prompt), Some(position)) = (record.prompt, record.position) else {
            let message =
                "lacks prompt_id or position, by which its tokens are found in the other log";
            return Err(refused_at(log, place, message.to_owned()));
        };
        let token = if has_output {
            record.output
        } else {
            label.token
        };
        let Some(token) = token.filter(|token| *token >= 0) else {
            continue;
        };
        if tokens.insert((prompt, position), (place, token)).is_some() {
            let message = format!(
                "prompt {prompt} has position {position} twice; give each text a prompt_id of its own"
            );
            return Err(refused_at(log, place, message));
        }
    }
    Ok(tokens)
}

/// Holds a log's text against that of another log, by prompt and position: where draft and target
/// share the noise of a seed, or nothing is drawn, an engine writes what the target writes alone.
/// A text counts once, at its first difference, as what follows has another prefix. O(N log N); no
/// row is read.
///
/// # Errors
/// Logs without prompts and positions, with two tokens at one, or with none at one in common.
pub fn held_to_plain(log: &Log, plain: &Log) -> Result<HardCheck, AuditError> {
    let (own, other) = (tokens(log)?, tokens(plain)?);
    let (mut differ, mut first) = (BTreeSet::new(), None);
    let (mut compared, mut texts) = (0, BTreeSet::new());
    for (&(prompt, position), &(place, token)) in &own {
        let Some(&(_, wanted)) = other.get(&(prompt, position)) else {
            continue;
        };
        compared += 1;
        texts.insert(prompt);
        if token != wanted && differ.insert(prompt) && first.is_none() {
            first = Some((
                place,
                format!("prompt {prompt}, position {position}: {token} for {wanted}"),
            ));
        }
    }
    if compared == 0 {
        return Err(AuditError::Log(format!(
            "{}: ⟨plain⟩: {} has no token at a prompt and position of this log; write both from the \
             same prompts, in the same order",
            log.path().display(),
            plain.path().display()
        )));
    }
    let most = own.len().max(other.len());
    let found = first
        .as_ref()
        .map_or_else(String::new, |(_, words)| format!("; {words}"));
    Ok(HardCheck {
        name: PLAIN_TEXT.to_owned(),
        violations: differ.len() as u64,
        first_position: first.map(|(place, _)| place),
        words: format!(
            "a text is another one than {} has: {compared} of {most} tokens compared, {} texts{found}",
            plain.name(),
            texts.len()
        ),
    })
}

impl AuditReport {
    /// Adds whether texts are those of the target alone. One that is not refutes that claim; whether
    /// outputs follow p, the rest of the report says.
    #[must_use]
    pub fn with_plain(mut self, check: HardCheck) -> Self {
        if check.violations > 0 {
            self.ok = false;
            if self.conclusion != Conclusion::Lossy {
                self.conclusion = Conclusion::NotTheRule;
            }
        }
        self.hard_checks.push(check);
        self.notes.push(
            "plain-text: equality shows that the engine writes what the target writes alone with the same \
             numbers. That this follows p, the audit of the text shows and not the equality."
                .to_owned(),
        );
        self
    }
}
