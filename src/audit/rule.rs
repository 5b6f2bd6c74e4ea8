//! The rules that an engine can claim.

use std::fmt;
use std::str::FromStr;

/// What an engine says that it does with its drafts.
///
/// ```
/// use specgap::audit::Rule;
/// assert_eq!("threshold:0.9".parse(), Ok(Rule::Threshold(0.9)));
/// assert!("threshold:2".parse::<Rule>().is_err());
/// assert!(!Rule::Threshold(0.9).is_lossless() && Rule::ExactMatch.is_lossless());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// x ~ q, kept with min(1, p/q), else a draw from (p - q)+: speculative sampling.
    Single,
    /// n i.i.d. drafts for one position, rejected in turn.
    Rrs,
    /// n sequential draws without replacement for one position, rejected in turn.
    RrsWo,
    /// n i.i.d. drafts for one position, each kept with min(1, p/(rho q)).
    KSeq,
    /// A chain x ~ q that is kept or refused as a block.
    Block,
    /// The likeliest tokens of q, taken for one-hot drafts: kept with p(x).
    OneHot,
    /// Any draft: the target draws its own token, and a draft that equals it is kept.
    ExactMatch,
    /// The likeliest tokens of q, kept with min(1, p(x)/A): lossy by design if A < 1.
    Threshold(f64),
    /// Nothing but what comes out: it follows p, however it came about.
    Text,
}

/// What drafts are claimed to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drafts {
    /// Drawn from q, each by itself.
    Sampled,
    /// Drawn from q without those before.
    Distinct,
    /// The likeliest of q.
    Likeliest,
    /// Nothing is claimed.
    Any,
}

impl Rule {
    /// Names, with what each says.
    pub const WORDS: [(&'static str, &'static str); 9] = [
        (
            "single",
            "x ~ q, kept with min(1, p/q), else a draw from (p - q)+",
        ),
        (
            "rrs",
            "n i.i.d. drafts for one position, rejected in turn against what is left of p",
        ),
        (
            "rrs-wo",
            "the same with drafts drawn without replacement, and q without those before",
        ),
        (
            "k-seq",
            "n i.i.d. drafts for one position, each kept with min(1, p/(rho q))",
        ),
        (
            "block",
            "a chain x ~ q verified as a block, the longest accepted prefix wins",
        ),
        (
            "one-hot",
            "the likeliest token of q, kept with p(x), else a draw from p without x",
        ),
        (
            "exact-match",
            "any draft; the target draws y ~ p, and a draft that equals y is kept",
        ),
        (
            "threshold:A",
            "the likeliest token of q, kept with min(1, p(x)/A); lossy by design if A < 1",
        ),
        (
            "text",
            "nothing is claimed but that what comes out follows p; needs no drafts",
        ),
    ];

    /// Whether outputs of the rule follow p.
    pub fn is_lossless(self) -> bool {
        !matches!(self, Self::Threshold(factor) if factor < 1.0)
    }

    pub(super) fn drafts(self) -> Drafts {
        match self {
            Self::Single | Self::Rrs | Self::KSeq | Self::Block => Drafts::Sampled,
            Self::RrsWo => Drafts::Distinct,
            Self::OneHot | Self::Threshold(_) => Drafts::Likeliest,
            Self::ExactMatch | Self::Text => Drafts::Any,
        }
    }

    /// Whether the columns of `drafts` are always alternatives for one position.
    pub(super) fn needs_siblings(self) -> bool {
        matches!(self, Self::Rrs | Self::RrsWo | Self::KSeq)
    }

    /// Why rows that list some tokens only cannot be audited.
    pub(super) fn needs_full_rows(self) -> Option<&'static str> {
        match self {
            Self::Block => Some("a block is accepted by sums of (r p - q)+ over all tokens"),
            Self::Rrs | Self::RrsWo | Self::KSeq => {
                Some("what is left of p after a rejection is a sum over all tokens")
            }
            _ => None,
        }
    }

    /// What it says.
    pub fn words(self) -> &'static str {
        let name = self.to_string();
        let name = name.split(':').next().unwrap_or_default();
        let known = |(one, _): &&(&str, &str)| one.split(':').next() == Some(name);
        Self::WORDS
            .iter()
            .find(known)
            .map_or("", |(_, words)| words)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Rrs => "rrs",
            Self::RrsWo => "rrs-wo",
            Self::KSeq => "k-seq",
            Self::Block => "block",
            Self::OneHot => "one-hot",
            Self::ExactMatch => "exact-match",
            Self::Text => "text",
            Self::Threshold(factor) => return write!(f, "threshold:{factor:?}"),
        })
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::WORDS.iter().map(|(name, _)| *name);
        let own = names().find(|name| crate::rule_name::is_same(name, text));
        Ok(match own.unwrap_or(text) {
            "single" => Self::Single,
            "rrs" => Self::Rrs,
            "rrs-wo" => Self::RrsWo,
            "k-seq" => Self::KSeq,
            "block" => Self::Block,
            "one-hot" => Self::OneHot,
            "exact-match" => Self::ExactMatch,
            "text" => Self::Text,
            _ => {
                let Some(factor) = text.strip_prefix("threshold:") else {
                    let names: Vec<&str> = names().collect();
                    return Err(format!("{text:?} is no rule; one of {}", names.join(", ")));
                };
                let factor: f64 = factor
                    .parse()
                    .map_err(|_| format!("{factor:?} is no number; write threshold:0.9"))?;
                if !(factor > 0.0 && factor <= 1.0) {
                    return Err(format!(
                        "the threshold is {factor}; it is above 0 and at most 1"
                    ));
                }
                Self::Threshold(factor)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Rule {
        /// One of each kind.
        pub(in crate::audit) const ALL: [Self; 9] = [
            Self::Single,
            Self::Rrs,
            Self::RrsWo,
            Self::KSeq,
            Self::Block,
            Self::OneHot,
            Self::ExactMatch,
            Self::Threshold(0.9),
            Self::Text,
        ];
    }

    #[test]
    fn each_rule_has_its_own_words() {
        assert_eq!(Rule::ALL.len(), Rule::WORDS.len());
        for rule in Rule::ALL {
            let name = rule.to_string();
            let name = name.split(':').next().unwrap();
            let own = (Rule::WORDS.iter()).filter(|(of, _)| of.split(':').next() == Some(name));
            let own: Vec<&str> = own.map(|(_, words)| *words).collect();
            assert_eq!(own, [rule.words()], "{rule}");
        }
    }
}
