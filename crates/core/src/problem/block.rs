//! Block problems: target and draft conditionals on a token tree.

use super::ExpectedValue;
use specgap_number::distribution::{Distribution, Draft, Target, token_id};
use std::collections::BTreeMap;
use std::ops::Deref;

/// Largest number of tokens a block problem may have in its deepest layer.
pub const MAX_BLOCK_LEAVES: f64 = 1e6;

/// Why conditionals do not make a block problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockProblemError {
    /// An empty vocabulary or block: `vocab` or `length`.
    #[error("{0} is 0; it must be at least 1")]
    Zero(&'static str),
    /// Too deep or too wide to enumerate: V; L.
    #[error("vocab {0} and length {1} make more than a million blocks; take a smaller tree")]
    TooLarge(usize, usize),
    /// A prefix without a conditional: `target` or `draft`; the prefix as written in files;
    /// prefixes shorter than this are needed.
    #[error("{0}: no entry for prefix \"{1}\"; give one for every prefix of fewer than {2} tokens")]
    Missing(&'static str, String, usize),
    /// A prefix that is too long or not over the vocabulary.
    #[error(
        "{field}: prefix \"{prefix}\" is not a prefix of at most {longest} tokens in 0..{vocab} joined by single spaces"
    )]
    Prefix {
        /// `target` or `draft`.
        field: &'static str,
        /// The prefix as written in the file.
        prefix: String,
        /// Longest prefix allowed.
        longest: usize,
        /// V.
        vocab: usize,
    },
    /// A conditional over another vocabulary.
    #[error("{field}: prefix \"{prefix}\" has {entries} entries; vocab is {vocab}")]
    Vocabulary {
        /// `target` or `draft`.
        field: &'static str,
        /// The prefix as written in files.
        prefix: String,
        /// Length of the row.
        entries: usize,
        /// V.
        vocab: usize,
    },
    /// K out of range.
    #[error("drafts is {0}; it must be in 1..=64")]
    Drafts(usize),
}

/// Next-token distributions by prefix. Prefixes are token ids; files join them
/// with single spaces, with "" for the root.
#[derive(Clone, Debug)]
pub struct Conditionals<D> {
    rows: BTreeMap<Vec<u32>, D>,
}

impl<D: Deref<Target = Distribution>> Conditionals<D> {
    /// The conditional after a prefix.
    pub fn get(&self, prefix: &[u32]) -> Option<&D> {
        self.rows.get(prefix)
    }

    /// All prefixes and their conditionals, in lexicographic order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u32], &D)> {
        self.rows
            .iter()
            .map(|(prefix, row)| (prefix.as_slice(), row))
    }

    fn read(
        field: &'static str,
        rows: BTreeMap<String, D>,
        vocab: usize,
        needed: usize,
        longest: usize,
    ) -> Result<Self, BlockProblemError> {
        let mut parsed = BTreeMap::new();
        for (text, row) in rows {
            let Some(prefix) = parse_prefix(&text, vocab).filter(|prefix| prefix.len() <= longest)
            else {
                return Err(BlockProblemError::Prefix {
                    field,
                    prefix: text,
                    longest,
                    vocab,
                });
            };
            if row.vocab() != vocab {
                let entries = row.vocab();
                return Err(BlockProblemError::Vocabulary {
                    field,
                    prefix: text,
                    entries,
                    vocab,
                });
            }
            parsed.insert(prefix, row);
        }
        let conditionals = Self { rows: parsed };
        let mut layer = vec![Vec::new()];
        for _ in 0..needed {
            if let Some(prefix) = layer
                .iter()
                .find(|prefix| conditionals.get(prefix).is_none())
            {
                let prefix = write_prefix(prefix);
                return Err(BlockProblemError::Missing(field, prefix, needed));
            }
            layer = one_longer(&layer, vocab);
        }
        Ok(conditionals)
    }
}

fn parse_prefix(text: &str, vocab: usize) -> Option<Vec<u32>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(' ')
        .map(|part| {
            let token: u32 = part.parse().ok()?;
            ((token as usize) < vocab && part == token.to_string()).then_some(token)
        })
        .collect()
}

pub(super) fn write_prefix(prefix: &[u32]) -> String {
    let words: Vec<String> = prefix.iter().map(u32::to_string).collect();
    words.join(" ")
}

/// Each of these prefixes with each token behind it.
fn one_longer(prefixes: &[Vec<u32>], vocab: usize) -> Vec<Vec<u32>> {
    let longer = prefixes.iter().flat_map(|prefix| {
        let tokens = 0..token_id(vocab);
        tokens.map(move |token| [prefix.as_slice(), &[token]].concat())
    });
    longer.collect()
}

/// Tells whether a tree is neither empty nor enormous.
fn fits(vocab: usize, length: usize) -> Result<(), BlockProblemError> {
    for (field, value) in [("vocab", vocab), ("length", length)] {
        if value == 0 {
            return Err(BlockProblemError::Zero(field));
        }
    }
    if length > 64 || (vocab as f64).powi(length as i32) > MAX_BLOCK_LEAVES {
        return Err(BlockProblemError::TooLarge(vocab, length));
    }
    Ok(())
}

/// K drafts of L tokens on a token tree.
///
/// The draft conditionals reach prefixes of fewer than L tokens; the target
/// conditionals may also give the next token after a whole block.
#[derive(Clone, Debug)]
pub struct BlockProblem {
    name: String,
    vocab: usize,
    length: usize,
    drafts: usize,
    target: Conditionals<Target>,
    draft: Conditionals<Draft>,
    expected: Option<Box<BlockExpected>>,
}

/// What a problem file expects of a block problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockExpected {
    /// Optimum of the block LP: the largest `E[tau]` of any coupling.
    pub block_lp: Option<ExpectedValue>,
    /// Sum over depths of the single-step optimum on prefixes.
    pub per_depth_bound: Option<ExpectedValue>,
    /// The value in Lemma 5.1 of SpecTr-GBV.
    pub lemma_5_1: Option<ExpectedValue>,
    /// SpecTr-GBV's own `E[tau]` and undefined mass.
    pub spectr_gbv: Option<SpecTrGbvExpected>,
    /// Largest absolute difference.
    pub tolerance: Option<ExpectedValue>,
    /// Where the values come from.
    pub source: Option<String>,
}

/// Expected results of SpecTr-GBV on a block problem.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecTrGbvExpected {
    /// `E[tau]`.
    pub expected_accepted_length: ExpectedValue,
    /// Probability that the algorithm as printed divides 0 by 0.
    pub undefined_mass: Option<ExpectedValue>,
}

impl BlockProblem {
    /// Makes one from conditionals keyed by prefixes as files write them.
    ///
    /// # Errors
    /// Missing or malformed prefixes, rows of another length, an empty or an
    /// enormous tree, K outside 1..=64.
    pub fn new(
        name: String,
        vocab: usize,
        length: usize,
        drafts: usize,
        target: BTreeMap<String, Target>,
        draft: BTreeMap<String, Draft>,
        expected: Option<BlockExpected>,
    ) -> Result<Self, BlockProblemError> {
        fits(vocab, length)?;
        if drafts == 0 || drafts > super::MAX_DRAFTS {
            return Err(BlockProblemError::Drafts(drafts));
        }
        let target = Conditionals::read("target", target, vocab, length, length)?;
        let draft = Conditionals::read("draft", draft, vocab, length, length)?;
        Ok(Self {
            name,
            vocab,
            length,
            drafts,
            target,
            draft,
            expected: expected.map(Box::new),
        })
    }

    /// One draft, with the rows behind each prefix of at most `length` tokens, short prefixes
    /// first. Behind whole blocks there is no draft, and no target if it is not known.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    ///
    /// # Example
    /// ```
    /// use specgap_core::problem::BlockProblem;
    /// use specgap_number::distribution::{Draft, Target};
    /// let (p, q) = (Target::new(&[0.25, 0.75])?, Draft::new(&[0.5, 0.5])?);
    /// let coins = BlockProblem::by_prefix("coins", 2, 3, |prefix| match prefix.len() {
    ///     3 => (None, None),
    ///     _ => (Some(p.clone()), Some(q.clone())),
    /// })?;
    /// assert_eq!(coins.target().iter().count(), 1 + 2 + 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_prefix(
        name: &str,
        vocab: usize,
        length: usize,
        mut rows: impl FnMut(&[u32]) -> (Option<Target>, Option<Draft>),
    ) -> Result<Self, BlockProblemError> {
        fits(vocab, length)?;
        let (mut target, mut draft) = (BTreeMap::new(), BTreeMap::new());
        let mut layer: Vec<Vec<u32>> = vec![Vec::new()];
        for depth in 0..=length {
            for prefix in &layer {
                let (p, q) = rows(prefix);
                target.extend(p.map(|row| (write_prefix(prefix), row)));
                draft.extend(q.map(|row| (write_prefix(prefix), row)));
            }
            if depth < length {
                layer = one_longer(&layer, vocab);
            }
        }
        Self::new(name.to_owned(), vocab, length, 1, target, draft, None)
    }

    /// The problem's name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Vocabulary size V.
    pub fn vocab(&self) -> usize {
        self.vocab
    }
    /// Block length L.
    pub fn length(&self) -> usize {
        self.length
    }
    /// Number of drafts K that the file asks for.
    pub fn drafts(&self) -> usize {
        self.drafts
    }
    /// p(. | prefix).
    pub fn target(&self) -> &Conditionals<Target> {
        &self.target
    }
    /// q(. | prefix).
    pub fn draft(&self) -> &Conditionals<Draft> {
        &self.draft
    }
    /// Returns what the file expects.
    pub fn expected(&self) -> Option<&BlockExpected> {
        self.expected.as_deref()
    }
}
