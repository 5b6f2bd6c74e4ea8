//! What engines draft, and how they verify it, in their words and in those of this crate.
//!
//! Read in the versions that are named, and not run: vLLM, SGLang and transformers in their
//! packages, the others in their repositories and documentation (EAGLE's of February 2026).

use std::fmt;
use std::str::FromStr;

/// A setting of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// The engine.
    pub name: &'static str,
    /// The version that was read, or where.
    pub version: &'static str,
    /// The option and its value.
    pub setting: &'static str,
    /// Whether it is so unless somebody sets it, where tokens are sampled.
    pub is_default: bool,
    /// What is drafted where tokens are sampled.
    pub drafts: &'static str,
    /// What becomes of a draft.
    pub verified: &'static str,
    /// This project's law and verifier for it, if there are such.
    pub here: Option<Here>,
}

/// What a setting of an engine is called in this crate.
#[derive(Clone, Copy, Debug)]
pub struct Here {
    /// The draft law.
    pub law: &'static str,
    /// Whether there is one draft.
    pub one: bool,
    /// The verifier, or `overlap` and `strict`, which one draft is accepted with.
    pub verifier: &'static str,
}

/// The likeliest token, kept where the target draws it, as it is kept with p.
const LIKELIEST: Here = Here {
    law: "top",
    one: true,
    verifier: "exact-match",
};

/// The same of several, in a tree.
const LIKELIEST_TREE: Here = Here {
    one: false,
    ..LIKELIEST
};

/// A draw from q, kept with min(1, p/q).
const SAMPLED: Here = Here {
    law: "with-replacement",
    one: true,
    verifier: "token",
};

/// A draw from q, kept where the target draws it.
const SAMPLED_MATCHED: Here = Here {
    verifier: "exact-match",
    ..SAMPLED
};

/// Engines and their versions, with the settings of each: whether it is so by default, what is drafted
/// and what becomes of it.
macro_rules! engines {
    (@default) => { true };
    (@other) => { false };
    ($($name:literal $version:literal {
        $($when:ident $setting:literal, $drafts:literal, $verified:literal => $here:expr;)+
    })+) => {
        /// Settings of engines.
        pub const ENGINES: &[Engine] = &[$($(Engine {
            name: $name,
            version: $version,
            setting: $setting,
            is_default: engines!(@$when),
            drafts: $drafts,
            verified: $verified,
            here: $here,
        }),+),+];
    };
}

engines! {
    "vLLM" "0.33.0" {
        default "draft_sample_method \"greedy\", the default",
            "the likeliest token, as one-hot", "kept with p" => Some(LIKELIEST);
        other "draft_sample_method \"probabilistic\"",
            "sampled", "kept with min(1, p/q)" => Some(SAMPLED);
        other "rejection_sample_method \"block\"",
            "as above", "the block at once" => None;
        other "rejection_sample_method \"fly\", \"synthetic\"",
            "as above", "lossy by design" => None;
    }
    "SGLang" "0.5.23" {
        default "the default",
            "the likeliest tokens, a tree",
            "the target's draw is looked up among them" => Some(LIKELIEST_TREE);
        other "--speculative-use-rejection-sampling, with --speculative-eagle-topk 1",
            "sampled", "kept with min(1, p/q)" => Some(SAMPLED);
        other "--speculative-accept-threshold-single, -acc below 1",
            "the likeliest tokens, a tree", "lossy by design" => None;
    }
    "transformers" "5.23.0" {
        default "do_sample=True",
            "sampled", "kept with min(1, p/q)" => Some(SAMPLED);
        other "assistant_ensemble_weight",
            "sampled", "lossy by design" => None;
    }
    "EAGLE" "its repository" {
        default "no setting",
            "the likeliest tokens, a tree",
            "kept with p, one after another" => Some(LIKELIEST_TREE);
    }
    "llama.cpp" "b11413" {
        default "--spec-draft-sampling greedy, the default",
            "the likeliest token", "kept if the target's draw is the same" => Some(LIKELIEST);
        other "--spec-draft-sampling probabilistic, of draft models and MTP heads",
            "sampled", "kept with min(1, p/q)" => Some(SAMPLED);
    }
    "mlx-lm" "0.32.0" {
        default "no setting",
            "sampled, by the target's own sampler",
            "kept if the target's draw is the same" => Some(SAMPLED_MATCHED);
        other "sampler=specgap.mlx.Sampler(\"token\")",
            "sampled", "kept with min(1, p/q)" => Some(SAMPLED);
    }
    "TensorRT-LLM" "1.3.0rc29" {
        default "use_rejection_sampling=False, the default; argmax drafters",
            "the likeliest token", "kept if the target's draw is the same" => Some(LIKELIEST);
        default "use_rejection_sampling=False, the default; drafters that sample",
            "sampled", "kept if the target's draw is the same" => Some(SAMPLED_MATCHED);
        other "use_rejection_sampling=True",
            "sampled", "kept with min(1, p/q)" => Some(SAMPLED);
    }
}

/// An engine of [`ENGINES`], by its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineName(&'static str);

impl EngineName {
    /// Every engine once, in the order of [`ENGINES`].
    ///
    /// # Example
    /// ```
    /// use specgap_core::scheme::EngineName;
    ///
    /// assert_eq!(EngineName::all().next().map(EngineName::as_str), Some("vLLM"));
    /// assert_eq!("llama-cpp".parse::<EngineName>()?.as_str(), "llama.cpp");
    /// assert!("vlm".parse::<EngineName>().is_err());
    /// # Ok::<(), String>(())
    /// ```
    pub fn all() -> impl Iterator<Item = Self> {
        let is_first = |&(at, engine): &(usize, &Engine)| {
            let mut before = ENGINES.iter().take(at);
            !before.any(|other| other.name == engine.name)
        };
        let first = ENGINES.iter().enumerate().filter(is_first);
        first.map(|(_, engine)| Self(engine.name))
    }

    /// Returns its name as the engine writes it: `vLLM`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns its name as options have it: `vllm`.
    #[must_use]
    pub fn word(self) -> String {
        self.0.to_lowercase()
    }

    /// Returns what it does where tokens are sampled and nothing is set: one row of [`ENGINES`], or
    /// one for each kind of drafter.
    pub fn defaults(self) -> impl Iterator<Item = &'static Engine> {
        let is_own = move |engine: &&Engine| engine.name == self.0 && engine.is_default;
        ENGINES.iter().filter(is_own)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl FromStr for EngineName {
    type Err = String;

    /// In letters of either case, with any sign between the words of a name.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |name: &str| name.to_lowercase().replace(['.', '_'], "-");
        let mut all = Self::all();
        all.find(|one| plain(one.0) == plain(text)).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::as_str).collect();
            format!(
                "{text:?} is no engine that is known here; there are {}",
                names.join(", ")
            )
        })
    }
}

/// The engines that draw their drafts by a law, each once, with `n = 1` where that is all.
pub fn drafted_by(law: &str) -> Vec<String> {
    let mut all: Vec<(&str, bool)> = Vec::new();
    for engine in ENGINES {
        let Some(here) = engine.here.filter(|here| here.law == law) else {
            continue;
        };
        match all.iter_mut().find(|(name, _)| *name == engine.name) {
            Some((_, one)) => *one &= here.one,
            None => all.push((engine.name, here.one)),
        }
    }
    let words = all.into_iter().map(|(name, one)| match one {
        true => format!("{name} (n = 1)"),
        false => name.to_owned(),
    });
    words.collect()
}

/// The engines that do something of a kind unless they are told otherwise, and those of the
/// others that can be told to; each once.
pub fn engines_with(is_so: impl Fn(Here) -> bool) -> [Vec<&'static str>; 2] {
    let mut names = [Vec::new(), Vec::new()];
    for is_default in [true, false] {
        let fitting = ENGINES
            .iter()
            .filter(|engine| engine.is_default == is_default && engine.here.is_some_and(&is_so));
        for engine in fitting {
            if !names.iter().flatten().any(|name| *name == engine.name) {
                names[usize::from(!is_default)].push(engine.name);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_has_a_name_and_a_default() {
        let names: Vec<&str> = EngineName::all().map(EngineName::as_str).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
        for engine in ENGINES {
            let name: EngineName = engine.name.to_lowercase().parse().unwrap();
            assert_eq!(name.as_str(), engine.name);
            assert!(name.defaults().all(|row| row.here.is_some()));
            assert!(name.defaults().next().is_some(), "{name}");
        }
        // One for each kind of its drafters.
        let both: Vec<&str> = ("tensorrt-llm".parse::<EngineName>().unwrap().defaults())
            .filter_map(|row| Some(row.here?.law))
            .collect();
        assert_eq!(both, ["top", "with-replacement"]);
    }

    #[test]
    fn engines_are_told_by_law_each_once() {
        let top = engines_with(|here| here.law == "top" && here.one);
        assert_eq!(top, [vec!["vLLM", "llama.cpp", "TensorRT-LLM"], vec![]]);
        let trees = engines_with(|here| here.law == "top" && !here.one);
        assert_eq!(trees, [vec!["SGLang", "EAGLE"], vec![]]);
        let all = drafted_by("top");
        for name in ["vLLM (n = 1)", "SGLang", "EAGLE", "llama.cpp (n = 1)"] {
            assert!(all.contains(&name.to_owned()), "{all:?}");
        }
        let sampled = engines_with(|here| here.verifier == "token");
        let told = vec!["vLLM", "SGLang", "llama.cpp", "mlx-lm", "TensorRT-LLM"];
        assert_eq!(sampled, [vec!["transformers"], told]);
        for engine in ENGINES {
            let says_so = engine.setting.contains("the default") || engine.setting == "no setting";
            assert!(engine.is_default || !says_so, "{engine:?}");
        }
        assert!(drafted_by("hub").is_empty());
    }
}
