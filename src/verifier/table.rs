//! What the rest of the crate asks of a verifier by its name.

use super::{RowRule, RrsWoSettings, TokenRule, VERIFIERS, Verifier, VerifierError};
use crate::entry_name::entry_name;
use crate::problem::Problem;
use crate::scheme::SchemeName;
use std::fmt;

/// One verifier in the table [`VERIFIERS`].
///
/// `verify`, `gap`, the claims that go through all rules, reports, help texts and
/// error messages take what they need from here: a verifier is added by its file and its
/// line in the table.
#[derive(Debug)]
pub struct Entry {
    /// The name in problem files, options and reports.
    pub name: &'static str,
    /// The rule in one line.
    pub words: &'static str,
    /// Its acceptance, as a formula or in words.
    pub acceptance: &'static str,
    /// The drafts under which it is lossless.
    pub lossless: Lossless,
    /// Builds it for a problem; the settings are the budget of rates that may take
    /// simulation.
    pub build: Build,
    /// Its rate on a row of a log whose drafts have this law; `None` if none is
    /// computed. Asked only for laws under which it is lossless.
    pub on_row: fn(SchemeName) -> Option<RowRule>,
    /// Which draft a known output comes through, for drafts of this law; or why that is not
    /// computed. Asked only for laws under which it is lossless.
    pub at_token: fn(SchemeName) -> Result<TokenRule, &'static str>,
    /// Whether it accepts as much as any lossless rule could, alpha*, whatever the rows, from
    /// drafts of this law.
    pub attains: fn(SchemeName) -> bool,
    /// Verifiers that a gap report compares it with at the same positions.
    pub compared_with: &'static [VerifierName],
    /// Whether a gap report measures it where no verifiers are named.
    pub by_default: bool,
}

/// A problem to a rule that is lossless for it.
pub type Build = fn(&Problem, &RrsWoSettings) -> Result<Box<dyn Verifier>, VerifierError>;

/// The drafts under which a rule is lossless.
#[derive(Clone, Copy, Debug)]
pub enum Lossless {
    /// Those of some laws.
    Under(&'static [SchemeName]),
    /// One draft, n = 1, of any law.
    OneDraft,
    /// All.
    Always,
}

impl Lossless {
    /// Whether n drafts of a law are among them.
    pub fn holds(self, scheme: SchemeName, drafts: usize) -> bool {
        match self {
            Self::Under(schemes) => schemes.contains(&scheme),
            Self::OneDraft => drafts == 1,
            Self::Always => true,
        }
    }
}

impl fmt::Display for Lossless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Under(schemes) => {
                let names: Vec<&str> = schemes.iter().map(|scheme| scheme.as_str()).collect();
                write!(f, "{} drafts", names.join(" and "))
            }
            Self::OneDraft => f.write_str("one draft (n = 1) of any scheme"),
            Self::Always => f.write_str("all drafts"),
        }
    }
}

/// A verifier by its name: a handle to its entry in [`VERIFIERS`].
///
/// Handles compare, sort and hash by name.
///
/// # Example
/// ```
/// use specgap::scheme::SchemeName;
/// use specgap::verifier::VerifierName;
/// let rule: VerifierName = "rrs".parse()?;
/// assert_eq!(rule, VerifierName::RRS);
/// assert!(rule.is_lossless(SchemeName::WITH_REPLACEMENT, 3));
/// assert!(!rule.is_lossless(SchemeName::GREEDY, 3));
/// # Ok::<(), specgap::verifier::UnknownVerifier>(())
/// ```
#[derive(Clone, Copy)]
pub struct VerifierName(pub(super) &'static Entry);

impl VerifierName {
    /// The rule in one line, for reports.
    pub fn rule(self) -> &'static str {
        self.0.words
    }

    /// The draft schemes under which the rule is lossless, for reports.
    pub fn draft_schemes(self) -> String {
        self.0.lossless.to_string()
    }

    /// Whether the rule is lossless for n drafts of a law.
    pub fn is_lossless(self, scheme: SchemeName, drafts: usize) -> bool {
        self.0.lossless.holds(scheme, drafts)
    }

    /// How its rate is computed at a row of a log with drafts of a law, if it is.
    pub fn on_row(self, scheme: SchemeName) -> Option<RowRule> {
        scheme.entry().on_row.as_ref()?;
        // One draft is some number of drafts of any law.
        self.is_lossless(scheme, 1).then_some(())?;
        (self.0.on_row)(scheme)
    }

    /// Which of the drafts of a law a known output comes through, if that is computed.
    pub fn at_token(self, scheme: SchemeName) -> Option<TokenRule> {
        self.token_rule(scheme).ok()
    }

    /// The same, or why it is not computed.
    ///
    /// # Errors
    /// The rule is not lossless for these drafts, a log cannot hold them, or nobody knows
    /// which draft an output came through.
    pub fn token_rule(self, scheme: SchemeName) -> Result<TokenRule, &'static str> {
        if scheme.entry().on_row.is_none() {
            return Err("a log cannot hold such drafts");
        }
        if !self.is_lossless(scheme, 1) {
            return Err("the rule is not lossless for these drafts");
        }
        (self.0.at_token)(scheme)
    }

    /// Verifiers that were made for the drafts of a law, or else those that take all.
    pub(crate) fn made_for(scheme: SchemeName) -> Vec<Self> {
        let with = |wanted: fn(Lossless, SchemeName) -> bool| -> Vec<Self> {
            Self::ALL
                .into_iter()
                .filter(|name| wanted(name.0.lossless, scheme))
                .collect()
        };
        let own = with(
            |lossless, scheme| matches!(lossless, Lossless::Under(schemes) if schemes.contains(&scheme)),
        );
        if own.is_empty() {
            with(|lossless, _| matches!(lossless, Lossless::Always))
        } else {
            own
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn any_of(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

entry_name!(VerifierName of Entry in VERIFIERS; "verifier", UnknownVerifier);
