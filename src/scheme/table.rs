//! What the rest of the crate asks of a draft law by its name.

use super::{DraftScheme, ExplicitError, LAWS};
use crate::distribution::{Draft, TupleProbabilities};
use crate::entry_name::entry_name;
use crate::row::Question;
use std::sync::Arc;

/// One draft law in the table [`LAWS`].
///
/// Reading of problem files, random problems of the claims, reports, colours, help
/// texts and error messages take what they need from here: a law is added by its file
/// and its line in the table.
#[derive(Debug)]
pub struct Law {
    /// The name in problem files, options and reports.
    pub name: &'static str,
    /// The law in one line.
    pub words: &'static str,
    /// Q(H) = P(all drafts in H), as a formula in words.
    pub inside: &'static str,
    /// Engines and methods that draft so; empty if none is known.
    pub engines: &'static str,
    /// Whether all drafts of a tuple are different by construction, so that n may not
    /// exceed V.
    pub distinct: bool,
    /// The only number of drafts that there is; `None` if any will do.
    pub only: Option<usize>,
    /// What the law is made of.
    pub made_of: MadeOf,
    /// Where it is proved that sorting by q/p finds the optimal subset; `None` where it
    /// does not.
    pub sort_theorem: Option<&'static str>,
    /// How rows of a log are answered; `None` if a log cannot hold such drafts.
    pub on_row: Option<OnRow>,
    /// Its colour in plots, the same in all: a number of the palette.
    pub hue: usize,
}

/// Builds a law from its numbers; by this a problem file's `[draft]` becomes one.
#[derive(Clone, Copy, Debug)]
pub enum MadeOf {
    /// From one draft distribution, `draft.q`, and n.
    OneDraft(fn(Draft, usize) -> Arc<dyn DraftScheme>),
    /// From a distribution a draft, `draft.qs`; `None` if there are none or they are of
    /// different lengths.
    EachDraft(fn(Vec<Draft>) -> Option<Arc<dyn DraftScheme>>),
    /// From V, n, and `draft.tuples` with their `draft.probabilities`.
    Tuples(TuplesToLaw),
}

/// V, n, tuples and their probabilities to a law.
pub type TuplesToLaw = fn(
    usize,
    usize,
    Vec<Vec<u32>>,
    TupleProbabilities,
) -> Result<Arc<dyn DraftScheme>, ExplicitError>;

impl MadeOf {
    /// The fields of `[draft]` that it reads, `scheme` apart.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::OneDraft(_) => &["draft.q"],
            Self::EachDraft(_) => &["draft.qs"],
            Self::Tuples(_) => &["draft.tuples", "draft.probabilities"],
        }
    }
}

/// What a law answers about one row of a log.
#[derive(Debug)]
pub struct OnRow {
    /// alpha* of n drafts.
    pub optimum: Question,
    /// Why that is the optimum, for reports.
    pub status: &'static str,
    /// How often a draw from p is among the drafts, the sum of p_i P(i in A(X)): what
    /// `naive` accepts. `None` if it is not computed.
    pub hits: Option<Question>,
}

/// A draft law by its name: a handle to its entry in [`LAWS`].
///
/// Handles compare, sort and hash by name.
///
/// # Example
/// ```
/// use specgap::scheme::SchemeName;
/// let law: SchemeName = "hub".parse()?;
/// assert_eq!(law, SchemeName::HUB);
/// assert!(law.fits(2) && !law.fits(3));
/// # Ok::<(), specgap::scheme::UnknownScheme>(())
/// ```
#[derive(Clone, Copy)]
pub struct SchemeName(pub(super) &'static Law);

impl SchemeName {
    /// The law in one line, for reports.
    pub fn law(self) -> &'static str {
        self.0.words
    }

    /// True if all drafts of a tuple are different by construction, so that
    /// n may not exceed V.
    pub fn draws_distinct_tokens(self) -> bool {
        self.0.distinct
    }

    /// Whether the law has n drafts.
    pub fn fits(self, drafts: usize) -> bool {
        self.0.only.is_none_or(|only| only == drafts)
    }
}

entry_name!(SchemeName of Law in LAWS; "draft scheme", UnknownScheme);
