//! The engine that advice starts from.

use super::Change;
use serde::{Deserialize, Serialize};
use specgap_core::scheme::{ENGINES, EngineName};

/// An engine whose defaults are what is done now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Assumed {
    /// Its name in the table of engines.
    pub engine: String,
    /// How it is known.
    pub known_by: KnownBy,
}

/// How it is known which engine drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KnownBy {
    /// It was asked for.
    Option,
    /// The logs say so.
    Log,
}

impl Assumed {
    /// The engine that was asked for, or else the one that all logs name as what ran their models.
    ///
    /// # Example
    /// ```
    /// use specgap_statistics::advice::{Assumed, KnownBy};
    ///
    /// let told = |runtimes: &[&str]| Assumed::of(None, runtimes.iter().map(|one| Some(*one)));
    /// assert_eq!(told(&["vllm", "vLLM 0.33.0"]).unwrap().known_by, KnownBy::Log);
    /// assert_eq!(told(&["vllm", "sglang"]), None);
    /// assert_eq!(told(&["ONNX Runtime"]), None);
    /// ```
    #[must_use]
    pub fn of<'a>(
        asked: Option<EngineName>,
        mut runtimes: impl Iterator<Item = Option<&'a str>>,
    ) -> Option<Self> {
        let named = |runtime: Option<&str>| -> Option<EngineName> {
            runtime?.split_whitespace().next()?.parse().ok()
        };
        let (engine, known_by) = match asked {
            Some(engine) => (engine, KnownBy::Option),
            None => {
                let first = named(runtimes.next()?)?;
                let alike = runtimes.all(|runtime| named(runtime) == Some(first));
                (alike.then_some(first)?, KnownBy::Log)
            }
        };
        Some(Self {
            engine: engine.as_str().to_owned(),
            known_by,
        })
    }

    /// Finds its place in the table of engines; none of a report whose engine is no longer there.
    #[must_use]
    pub fn name(&self) -> Option<EngineName> {
        self.engine.parse().ok()
    }

    /// Tells whether a change is from what it does unless told otherwise.
    #[must_use]
    pub fn starts(&self, change: &Change) -> bool {
        change.engines.contains(&self.engine)
    }
}

/// The settings by which some engines keep a sampled draft with min(1, p/q), each behind its name.
///
/// # Example
/// ```
/// use specgap_statistics::advice::settings_of;
///
/// let told = settings_of(&["vLLM".to_owned(), "EAGLE".to_owned()]);
/// assert_eq!(told, ["vLLM: draft_sample_method \"probabilistic\""]);
/// ```
#[must_use]
pub fn settings_of(engines: &[String]) -> Vec<String> {
    let told = ENGINES.iter().filter(|engine| {
        let is_theirs = engines.iter().any(|name| name == engine.name);
        let keeps = engine.here.is_some_and(|here| here.verifier == "token");
        is_theirs && keeps && !engine.is_default
    });
    told.map(|engine| format!("{}: {}", engine.name, engine.setting))
        .collect()
}
