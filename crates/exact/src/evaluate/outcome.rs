//! How one method, verifier or solver ended on a problem.

/// An answer, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<A> {
    /// An answer whose own conditions hold, by construction or as recomputed.
    Done(A),
    /// A solver's answer whose recomputed conditions fail. It is shown, and does not
    /// count.
    Imprecise(A),
    /// Tried, and no answer; with the reason.
    Failed(String),
    /// Not tried, with the reason.
    Skipped(String),
}

/// What reports call an answer of some kind, and its absence.
pub trait Reported {
    /// The status of an answer that counts.
    const DONE: &'static str;
    /// The status of a failure.
    const FAILED: &'static str = "failed";
}

/// A number that is computed is simply there.
impl Reported for specgap_number::known::Known {
    const DONE: &'static str = "ok";
}

impl<A> Outcome<A> {
    /// The answer, if it counts.
    pub fn done(&self) -> Option<&A> {
        match self {
            Self::Done(answer) => Some(answer),
            _ => None,
        }
    }

    /// The answer, whether or not it counts.
    pub fn shown(&self) -> Option<&A> {
        match self {
            Self::Done(answer) | Self::Imprecise(answer) => Some(answer),
            _ => None,
        }
    }

    /// Says why there is no answer.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) | Self::Skipped(reason) => Some(reason),
            _ => None,
        }
    }
}

impl<A: Reported> Outcome<A> {
    /// The status in one word, as in JSON.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Done(_) => A::DONE,
            Self::Imprecise(_) => "imprecise",
            Self::Failed(_) => A::FAILED,
            Self::Skipped(_) => "skipped",
        }
    }
}
