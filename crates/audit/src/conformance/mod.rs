//! Test vectors for the kernels of inference engines.
//!
//! A vector is what a verification kernel is given: the target's rows, the draft's rows and
//! the drafted tokens. Beside it stands what the kernel has to do: the exact law of what it
//! puts out given these drafts; and, for kernels that are functions of uniform numbers,
//! numbers at which there is one right answer. Rows are f32, as kernels get them, and the
//! laws are those of these very numbers over their sum.
//!
//! The vectors are the situations in which kernels go wrong ([`Situation`]): equal rows, a
//! token of probability zero that was drafted, 0/0, one-hot rows, residuals of 1e-15,
//! duplicate siblings, and vocabularies up to 262,144. Whole calls of several requests
//! ([`CallSituation`]) have what servers put around these rows: padding, temperatures, masks, maps of
//! the draft's vocabulary, and rows that broke on the way.
//!
//! `scripts/conformance/harness.py` runs a kernel over them.
//!
//! # Example
//! ```
//! use specgap_audit::conformance::{Settings, vectors};
//! use specgap_core::rule::RuleName;
//! let settings = Settings { vocabularies: vec![2, 5], rules: vec![RuleName::TOKEN], seed: 0 };
//! let files = vectors(&settings)?;
//! assert_eq!(files[0].0, "manifest.json");
//! assert!(files.iter().any(|(name, _)| name == "token-v5-k1.npz"));
//! # Ok::<(), specgap_audit::conformance::ConformanceError>(())
//! ```

mod arrays;
mod call_arrays;
mod calls;
mod carried_laws;
mod carry;
mod coins;
mod laws;
mod noise;
mod rows;
mod situation;

pub use calls::CallSituation;
pub use situation::Situation;

use arrays::Arrays;
use laws::Laws;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use situation::Vector;
use specgap_base::typed;
use specgap_core::rule::RuleName;
use specgap_log::log::{RawTensor, npz};
use std::error::Error;

/// Largest vocabulary of a vector.
pub const LARGEST_VOCABULARY: usize = 1 << 20;

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// A vocabulary that is too small or too large.
    #[error("⟨vocab {0}⟩: vocabularies are from 2 to {LARGEST_VOCABULARY}")]
    Vocabulary(usize),
    /// Nothing is asked for.
    #[error("{0} names nothing")]
    Nothing(&'static str),
    /// What cannot happen did.
    #[error("{0}")]
    Internal(String),
}

/// Which vectors are made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Vocabularies.
    pub vocabularies: Vec<usize>,
    /// Rules.
    pub rules: Vec<RuleName>,
    /// Seed of the rows.
    pub seed: u64,
}

impl Settings {
    /// Vocabularies that there are vectors of if none are named.
    pub const VOCABULARIES: [usize; 6] = [2, 3, 17, 1024, 32_000, 262_144];
}

/// Rules that there are vectors of, in the order of the table of rules.
pub fn rules() -> Vec<RuleName> {
    let all = RuleName::ALL.into_iter();
    all.filter(|rule| rule.entry().vectors.is_some()).collect()
}

/// The rule whose vectors are of one noise.
const NOISE: RuleName = RuleName::SHARED_GUMBEL;
/// Up to this V, laws are computed in exact fractions and rounded once, where they can be.
const EXACT: usize = 1024;
/// From this V on, there is one number of drafts and few situations.
const LARGE: usize = 20_000;

/// What `manifest.json` says.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// 1.
    schema: u32,
    /// What made it.
    tool: String,
    /// Of the rows.
    seed: u64,
    /// What is tested.
    rules: Vec<Named>,
    /// Which rows and drafts there are, and why.
    situations: Vec<Named>,
    /// The arrays of a file: type, shape and what each is.
    arrays: Vec<Named>,
    /// The files.
    files: Vec<File>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Named {
    /// Its name.
    name: &'static str,
    /// What it is.
    words: &'static str,
}

fn named(all: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<Named> {
    all.map(|(name, words)| Named { name, words }).collect()
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct File {
    /// Its name.
    file: String,
    /// `rounds` of one request; `noise`, of which drafts and output are functions, or `calls` of
    /// several requests, which have arrays of their own.
    kind: &'static str,
    /// The rule whose laws it has.
    rule: &'static str,
    /// V.
    vocabulary: usize,
    /// Drafts of a vector.
    drafts: usize,
    /// How the laws were computed.
    arithmetic: &'static str,
    /// The situation of each vector.
    situations: Vec<&'static str>,
}

/// All files: the manifest first, then one a rule, vocabulary and number of drafts.
///
/// # Errors
/// Vocabularies out of range; settings that name nothing.
pub fn vectors(settings: &Settings) -> Result<Vec<(String, Vec<u8>)>, ConformanceError> {
    if settings.rules.is_empty() {
        return Err(ConformanceError::Nothing("⟨verifiers⟩"));
    }
    if settings.vocabularies.is_empty() {
        return Err(ConformanceError::Nothing("⟨vocab⟩"));
    }
    let wrong = |&&v: &&usize| !(2..=LARGEST_VOCABULARY).contains(&v);
    if let Some(&vocabulary) = settings.vocabularies.iter().find(wrong) {
        return Err(ConformanceError::Vocabulary(vocabulary));
    }
    let mut made = Files::default();
    for &rule in &settings.rules {
        let numbers = rule.entry().vectors;
        let numbers = numbers.map_or(&[][..], |vectors| vectors.drafts);
        for &vocabulary in &settings.vocabularies {
            // Of large ones there is one number of drafts.
            let few = vocabulary >= LARGE;
            let most = if few { 1 } else { numbers.len() };
            for &drafts in numbers.iter().take(most) {
                let name = format!("{rule}-v{vocabulary}-k{drafts}.npz");
                if made.has(&name) {
                    continue;
                }
                let (situations, tensors, exact) = file(rule, vocabulary, drafts, settings.seed)?;
                if situations.is_empty() {
                    continue;
                }
                let file = File {
                    file: name,
                    kind: if rule == NOISE { "noise" } else { "rounds" },
                    rule: rule.as_str(),
                    vocabulary,
                    drafts,
                    arithmetic: if exact { "exact" } else { "f64" },
                    situations,
                };
                made.add(file, &tensors)?;
            }
        }
    }
    if settings.rules.contains(&RuleName::TOKEN) {
        for &vocabulary in &settings.vocabularies {
            calls(vocabulary, settings.seed, &mut made)?;
        }
    }
    let Files { mut files, listed } = made;
    let situations = Situation::ALL
        .map(|one| (one.as_str(), one.words()))
        .into_iter();
    let of_calls = CallSituation::ALL.map(|one| (one.as_str(), one.words()));
    let manifest = Manifest {
        schema: 1,
        tool: specgap_log::log::tool(),
        seed: settings.seed,
        rules: named(settings.rules.iter().map(|one| (one.as_str(), one.words()))),
        situations: named(situations.chain(of_calls)),
        arrays: named(arrays::WORDS.into_iter().chain(call_arrays::WORDS)),
        files: listed,
    };
    let mut text =
        typed::pretty(&manifest).map_err(|error| ConformanceError::Internal(error.to_string()))?;
    text.push('\n');
    files.insert(0, ("manifest.json".to_owned(), text.into_bytes()));
    Ok(files)
}

/// Files, and what the manifest says of them.
#[derive(Default)]
struct Files {
    files: Vec<(String, Vec<u8>)>,
    listed: Vec<File>,
}

impl Files {
    fn has(&self, name: &str) -> bool {
        self.listed.iter().any(|file| file.file == name)
    }

    fn add(&mut self, file: File, tensors: &[RawTensor]) -> Result<(), ConformanceError> {
        let bytes = npz(tensors)
            .map_err(|error| ConformanceError::Internal(format!("{}: {error}", file.file)))?;
        self.files.push((file.file.clone(), bytes));
        self.listed.push(file);
        Ok(())
    }
}

/// The vectors of one file, the situation of each, and whether all their laws are exact.
fn file(
    rule: RuleName,
    vocabulary: usize,
    drafts: usize,
    seed: u64,
) -> Result<(Vec<&'static str>, Vec<RawTensor>, bool), ConformanceError> {
    let mut arrays = Arrays::default();
    let (mut situations, mut exact) = (Vec::new(), true);
    let few = vocabulary >= LARGE;
    for situation in Situation::of(rule, vocabulary, drafts, few) {
        for &inside in situation.places(rule, few) {
            let vector = situation.vector(rule, vocabulary, drafts, inside, seed);
            if rule == NOISE {
                situations.push(situation.as_str());
                let mut random = ChaCha8Rng::seed_from_u64(seed ^ (vocabulary * drafts) as u64);
                random.set_stream(situation as u64);
                noise::push(&mut arrays, &vector, drafts, few, &mut random);
                continue;
            }
            let laws = laws_of(rule, &vector, vocabulary <= EXACT)
                .map_err(|error| ConformanceError::Internal(format!("{rule}: {error}")))?;
            exact &= laws.exact;
            situations.push(situation.as_str());
            arrays.push(rule, &vector, &laws);
        }
    }
    Ok((situations, arrays.finish(), exact))
}

/// The smallest vocabulary that calls have room in.
const CALLS_FROM: usize = 8;

/// Files of calls: those of the target's vocabulary, and those of a smaller one of the draft.
fn calls(vocabulary: usize, seed: u64, made: &mut Files) -> Result<(), ConformanceError> {
    if !(CALLS_FROM..=EXACT).contains(&vocabulary) {
        return Ok(());
    }
    for smaller in [false, true] {
        let mapped = if smaller { "mapped-" } else { "" };
        let name = format!("token-calls-{mapped}v{vocabulary}.npz");
        if made.has(&name) {
            continue;
        }
        let (mut arrays, mut situations) = (Arrays::default(), Vec::new());
        for situation in CallSituation::ALL {
            if (situation.draft_vocabulary(vocabulary) < vocabulary) == smaller {
                let mut random = ChaCha8Rng::seed_from_u64(
                    seed ^ ((vocabulary as u64) << 24) ^ (0xca11 << 8) ^ situation as u64,
                );
                arrays.push_call(&situation.call(vocabulary, &mut random));
                situations.push(situation.as_str());
            }
        }
        let file = File {
            file: name,
            kind: "calls",
            rule: RuleName::TOKEN.as_str(),
            vocabulary,
            drafts: calls::DRAFTS,
            arithmetic: "f64",
            situations,
        };
        made.add(file, &arrays.finish())?;
    }
    Ok(())
}

/// The laws of a rule on a vector; in fractions that are rounded once, or in `f64`.
fn laws_of(rule: RuleName, vector: &Vector, exact: bool) -> Result<Laws, Box<dyn Error>> {
    match carry::width(rule, vector.drafts.len()) {
        0 => Laws::new(rule, vector, exact),
        _ => carried_laws::laws(rule, vector, exact),
    }
}

#[cfg(test)]
mod tests;
