//! What several draft paths could give, as a summary carries it.

use super::data::DraftPaths;
use super::summary::{HeldPaths, Summary};

impl HeldPaths {
    /// Merges parts, whichever comes first.
    pub(super) fn merged(own: Option<Self>, other: Option<&Self>) -> Option<Self> {
        match (own, other) {
            (Some(_), Some(_)) => Some(Self {
                logs: 0,
                found: None,
                why: None,
            }),
            (own, other) => own.or_else(|| other.cloned()),
        }
    }
}

impl Summary {
    /// Lets the report say what several draft paths of the whole logs could give, or why that is not
    /// told: for the first part of these logs, since no part has all of their texts.
    pub fn hold_paths(&mut self, told: Result<Option<DraftPaths>, String>) {
        let (found, why) = match told {
            Ok(found) => (found, None),
            Err(why) => (None, Some(why)),
        };
        if self.have_paths() || found.is_some() || why.is_some() {
            self.paths = Some(HeldPaths {
                logs: self.logs.len(),
                found,
                why,
            });
        }
    }

    /// Returns whether any log says that it has several draft paths with what the target gives
    /// them.
    fn have_paths(&self) -> bool {
        self.logs.values().any(|log| {
            let drawn = log.summary.metadata.rollouts.as_ref();
            drawn.is_some_and(|drawn| drawn.paths > 1 && drawn.target)
        })
    }

    /// Returns what several draft paths could give, or what the report says instead.
    pub(super) fn draft_paths(&self) -> (Option<DraftPaths>, Option<String>) {
        let left_out = |why: &str| Some(format!("what several draft paths could give: {why}"));
        match &self.paths {
            Some(held) if held.logs == self.logs.len() => {
                (held.found.clone(), held.why.as_deref().and_then(left_out))
            }
            None if !self.have_paths() => (None, None),
            _ => {
                let why = format!(
                    "it is in the first part of a log, and of several logs in one that is of all \
                     of them; run specgap paths {}",
                    self.logs().join(" ")
                );
                (None, left_out(&why))
            }
        }
    }
}
