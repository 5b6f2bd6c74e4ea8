//! The rules whose kernels are tested.

use std::fmt;
use std::str::FromStr;

/// A verification rule whose kernel is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A chain of drafts drawn from q, each kept with min(1, p/q).
    Chain,
    /// A chain of drafts that stand for one-hot rows, each kept with p.
    OneHot,
    /// Several i.i.d. drafts for one position, rejected in turn.
    Rrs,
    /// Several distinct drafts for one position, rejected in turn.
    RrsWo,
    /// Several drafts for one position; the target is drawn from, and the draft that it
    /// hits is accepted.
    TargetOnly,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Chain,
        Self::OneHot,
        Self::Rrs,
        Self::RrsWo,
        Self::TargetOnly,
    ];

    /// Its name on the command line, in file names and in the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::OneHot => "one-hot",
            Self::Rrs => "rrs",
            Self::RrsWo => "rrs-wo",
            Self::TargetOnly => "target-only",
        }
    }

    /// What it does.
    pub fn words(self) -> &'static str {
        match self {
            Self::Chain => {
                "draft k of a chain is kept with min(1, p/q); at the first that is not, the next \
                 token is drawn from (p - q)+, and behind the last from the target"
            }
            Self::OneHot => {
                "draft k of a chain is kept with p(x), as if q were one-hot; at the first that is \
                 not, the next token is drawn from p without x"
            }
            Self::Rrs => {
                "i.i.d. drafts for one position, each kept with min(1, r/q) where r is what the \
                 drafts before it leave of p; then a token is drawn from what is left"
            }
            Self::RrsWo => {
                "the same for drafts without replacement: q is renormalised without the drafts \
                 before"
            }
            Self::TargetOnly => {
                "a token is drawn from the target; it is accepted if it is among the drafts"
            }
        }
    }

    /// Whether drafts follow one another, and are not alternatives.
    pub fn is_chain(self) -> bool {
        matches!(self, Self::Chain | Self::OneHot)
    }

    /// Numbers of drafts that there are vectors of.
    pub(super) fn drafts(self) -> &'static [usize] {
        match self {
            Self::Chain | Self::OneHot => &[1, 3],
            Self::Rrs | Self::RrsWo => &[2, 3],
            Self::TargetOnly => &[2, 4],
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        let known = all.find(|rule| crate::rule_name::is_same(rule.as_str(), text));
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("{text:?} is no rule; there are {names}")
        })
    }
}
