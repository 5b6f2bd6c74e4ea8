//! The rules that an engine can claim: those of the table of all rules that are audited.

use specgap_core::rule::{Drafts, RULES, RuleEntry, RuleName, Step, TargetMass, Verifies};
use specgap_core::scheme::SchemeName;
use std::fmt;
use std::str::FromStr;

/// What an engine says that it does with its drafts.
///
/// A rule names how its drafts are drawn. Where it verifies drafts of another law too, that law
/// stands before its name: `stratified-independent/level-4`.
///
/// ```
/// use specgap_audit::audit::Rule;
/// assert_eq!("threshold:0.9".parse(), Rule::threshold(0.9));
/// assert!("threshold:2".parse::<Rule>().is_err());
/// assert!(!Rule::threshold(0.9)?.is_lossless() && Rule::EXACT_MATCH.is_lossless());
/// let independent = Rule::LEVEL_4.under("stratified-independent")?;
/// assert_eq!(independent.to_string(), "stratified-independent/level-4");
/// assert_eq!("stratified-independent/level-4".parse(), Ok(independent));
/// assert!(Rule::RRS.under("stratified").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    name: RuleName,
    /// A of `threshold:A`; 1 of the others.
    over: f64,
    /// How drafts are drawn, where it is not the rule's first law.
    law: Option<SchemeName>,
}

impl Rule {
    /// x ~ q, kept with min(1, p/q), else a draw from (p - q)+: speculative sampling.
    pub const TOKEN: Self = Self::of(RuleName::TOKEN);
    /// n i.i.d. drafts for one position, rejected in turn.
    pub const RRS: Self = Self::of(RuleName::RRS);
    /// n sequential draws without replacement for one position, rejected in turn.
    pub const RRS_WO: Self = Self::of(RuleName::RRS_WO);
    /// n stratified drafts for one position, none twice, rejected by falling level.
    pub const LEVEL_4: Self = Self::of(RuleName::LEVEL_4);
    /// The same with strata that are drawn from independently: a token across a cut may come
    /// twice.
    pub const LEVEL_4_INDEPENDENT: Self = Self {
        law: Some(SchemeName::STRATIFIED_INDEPENDENT),
        ..Self::LEVEL_4
    };
    /// n i.i.d. drafts for one position, each kept with min(1, p/(rho q)).
    pub const K_SEQ: Self = Self::of(RuleName::K_SEQ);
    /// A chain x ~ q that is kept or refused as a block.
    pub const BLOCK: Self = Self::of(RuleName::BLOCK);
    /// A chain x ~ q, each token kept with min(1, p/(d q)), d the chance that a draft stands.
    pub const CARRIED: Self = Self::of(RuleName::CARRIED);
    /// The likeliest tokens of q, taken for one-hot drafts: kept with p(x).
    pub const ONE_HOT: Self = Self::of(RuleName::ONE_HOT);
    /// Any draft: the target draws its own token, and a draft that equals it is kept.
    pub const EXACT_MATCH: Self = Self::of(RuleName::EXACT_MATCH);
    /// Nothing but what comes out: it follows p, however it came about.
    pub const TEXT: Self = Self::of(RuleName::TEXT);

    const fn of(name: RuleName) -> Self {
        Self {
            name,
            over: 1.0,
            law: None,
        }
    }

    /// Returns the rule with drafts that are drawn by this law, by its name.
    ///
    /// # Errors
    /// The rule does not verify such drafts; the message names those that it does.
    pub fn under(self, law: &str) -> Result<Self, String> {
        let laws: Vec<SchemeName> = self.name.laws().collect();
        let Some(place) = laws.iter().position(|own| own.as_str() == law) else {
            let names: Vec<&str> = laws.iter().map(|own| own.as_str()).collect();
            return Err(if names.is_empty() {
                format!("{self} does not look at how drafts are drawn: leave the law {law:?} out")
            } else {
                format!(
                    "{self} is not for drafts by the law {law:?}; it is for {}",
                    names.join(" or ")
                )
            });
        };
        let law = laws.get(place).copied().filter(|_| place > 0);
        Ok(Self { law, ..self })
    }

    /// Each rule that can be audited and has no parameter, with each law of its drafts.
    pub(crate) fn with_laws() -> impl Iterator<Item = Self> {
        let rules = Self::entries().filter_map(|entry| entry.name.parse::<Self>().ok());
        rules.flat_map(|rule| {
            let others = rule.name.laws().skip(1);
            let others = others.map(move |law| Self {
                law: Some(law),
                ..rule
            });
            std::iter::once(rule).chain(others)
        })
    }

    /// The likeliest tokens of q, kept with min(1, p(x)/A): lossy by design if A < 1.
    ///
    /// # Errors
    /// A is not above 0 and at most 1.
    pub fn threshold(over: f64) -> Result<Self, String> {
        if over > 0.0 && over <= 1.0 {
            let name = RuleName::THRESHOLD;
            Ok(Self {
                over,
                ..Self::of(name)
            })
        } else {
            Err(format!(
                "the threshold is {over}; it is above 0 and at most 1"
            ))
        }
    }

    /// Rules that can be audited, in the order of help texts.
    pub fn entries() -> impl Iterator<Item = &'static RuleEntry> {
        RULES.iter().copied().filter(|entry| entry.audited)
    }

    /// Tells whether outputs of the rule follow p.
    pub fn is_lossless(self) -> bool {
        self.over >= 1.0
    }

    /// Returns what p is divided by, where drafts are kept by p alone.
    pub(crate) fn over(self) -> f64 {
        self.over
    }

    pub(crate) fn is_threshold(self) -> bool {
        self.name == RuleName::THRESHOLD
    }

    pub(crate) fn drafts(self) -> Drafts {
        self.law.map_or(self.name.entry().drafts, Drafts::Drawn)
    }

    /// Tells whether it compares p and q of a draft; else it looks at p alone.
    pub(crate) fn tests_drafts(self) -> bool {
        self.name.tests_drafts()
    }

    /// Tells whether the columns of `drafts` are always alternatives for one position.
    pub(crate) fn needs_siblings(self) -> bool {
        self.name.needs_siblings()
    }

    /// Tells whether the columns of `drafts` may be alternatives for one position.
    pub(crate) fn has_siblings(self) -> bool {
        self.name.entry().verifies == Verifies::Siblings || self.drafts() == Drafts::Likeliest
    }

    /// Tells whether the columns of `drafts` may follow one another.
    pub(crate) fn has_chains(self) -> bool {
        self != Self::TEXT && !self.needs_siblings()
    }

    /// Asks its law on a row; `scale` divides what it keeps drafts with where it looks at p alone.
    pub(crate) fn with_step<T>(self, scale: f64, ask: impl FnOnce(&dyn Step) -> T) -> T {
        let over = self.over * scale;
        let step = match self.law {
            Some(law) => self.name.step_of(law),
            None => self.name.entry().step,
        };
        match step {
            Some(step) if self.tests_drafts() => ask(step),
            _ => ask(&TargetMass { over }),
        }
    }

    /// Says why rows that list some tokens only cannot be audited.
    pub(crate) fn needs_full_rows(self) -> Option<&'static str> {
        self.name.entry().needs_full_rows
    }

    /// Says in words what it does.
    pub fn words(self) -> &'static str {
        self.name.words()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_threshold() {
            write!(f, "threshold:{:?}", self.over)
        } else if let Some(law) = self.law {
            write!(f, "{law}/{}", self.name)
        } else {
            f.write_str(self.name.as_str())
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(over) = text.strip_prefix("threshold:") {
            let over = over.parse();
            return Self::threshold(
                over.map_err(|_| format!("{text:?} has no number; write threshold:0.9"))?,
            );
        }
        if let Some((law, rule)) = text.split_once('/') {
            return rule.parse::<Self>()?.under(law);
        }
        match text.parse::<RuleName>() {
            Ok(name) if name.entry().audited && name != RuleName::THRESHOLD => Ok(Self::of(name)),
            _ => {
                let names: Vec<&str> = Self::entries().map(|entry| entry.name).collect();
                Err(format!("{text:?} is no rule; one of {}", names.join(", ")))
            }
        }
    }
}

#[cfg(test)]
impl Rule {
    /// One of each kind.
    pub(crate) fn all() -> Vec<Self> {
        let parsed = |entry: &RuleEntry| entry.name.replace(":A", ":0.9").parse().unwrap();
        let mut all: Vec<Self> = Self::entries().map(parsed).collect();
        all.push(Self::LEVEL_4_INDEPENDENT);
        all
    }
}
