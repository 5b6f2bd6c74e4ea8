//! The proof that goes with an optimum, as data and in words.

use super::tolerances::WIDEST_CERTIFIED;
use specgap_base::names;
use specgap_core::coupling::TransportPlan;
use specgap_core::problem::Problem;
use specgap_number::distribution::{Rational, compensated_sum, format_rational, round_nearest};
use specgap_number::known::Known;

/// What the answer rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A plan and a subset that meet, checked in exact arithmetic.
    FlowEqualsCut,
    /// A plan and a subset on rounded capacities, checked with an enclosure.
    FlowMeetsCut,
    /// A subset for the upper bound; the lower bound is a method's own
    /// enclosure (a theorem about the ratio scan, a formula, or the Lovász
    /// bound), since the problem is too large for a flow.
    Subset,
}

names!(Basis:
    FlowEqualsCut "flow equals cut, exactly",
    FlowMeetsCut "flow and cut on capacities rounded to 2^-120, enclosed",
    Subset "subset above, theorem below",
);

/// The proof that goes with the answer.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What it rests on.
    pub basis: Basis,
    /// H, ascending.
    pub subset: Vec<usize>,
    /// P(H).
    pub target_mass: f64,
    /// Q(H).
    pub inside: f64,
    /// P(H) and Q(H) as fractions, if the answer is exact.
    pub exact: Option<(Rational, Rational)>,
    /// The plan, where a flow made one.
    pub plan: Option<TransportPlan>,
}

impl Proof {
    /// P(H) and Q(H) of a subset, exactly where the answer is.
    pub(super) fn new(
        problem: &Problem,
        basis: Basis,
        subset: Vec<usize>,
        plan: Option<TransportPlan>,
        rate: &Known,
    ) -> Self {
        let exact = rate.rational().is_some().then(|| {
            (
                problem.target().exact().mass(&subset),
                problem.scheme().inside_exact(&subset),
            )
        });
        let (target_mass, inside) = match &exact {
            Some((p, q)) => (round_nearest(p), round_nearest(q)),
            None => {
                let row = problem.target().probabilities();
                let mass = subset.iter().map(|&token| row[token]);
                (compensated_sum(mass), problem.scheme().inside(&subset))
            }
        };
        Self {
            basis,
            subset,
            target_mass,
            inside,
            exact,
            plan,
        }
    }
}

/// A proof in words, of the optimum `rate` with n drafts; 0 where draws have different
/// numbers of drafts.
pub(super) fn statement(proof: &Proof, rate: &Known, drafts: usize) -> String {
    let number = |value: f64, exact: Option<&Rational>| match exact {
        Some(exact) if format_rational(exact).len() <= 24 => format_rational(exact),
        _ => format!("{value}"),
    };
    let p = number(proof.target_mass, proof.exact.as_ref().map(|(p, _)| p));
    let q = number(proof.inside, proof.exact.as_ref().map(|(_, q)| q));
    let rejected = match &proof.exact {
        Some((p, q)) => number(proof.inside - proof.target_mass, Some(&(q - p))),
        None => format!("{}", proof.inside - proof.target_mass),
    };
    let drafts = match drafts {
        1 => "The draft lies".to_owned(),
        0 => "All drafts lie".to_owned(),
        n => format!("All {n} drafts lie"),
    };
    let above = if proof.subset.is_empty() && proof.inside > 0.0 {
        format!(
            "Nothing is drafted with probability Q({{}}) = {q}, and then nothing can be accepted. So \
             every verifier rejects at least {rejected}."
        )
    } else if proof.subset.is_empty()
        && proof.basis == Basis::Subset
        && rate.width() > WIDEST_CERTIFIED
    {
        "No method that tells a set of tokens fits this problem: nothing but 1 is known to bound it.".to_owned()
    } else if proof.subset.is_empty() {
        "No set of tokens is drafted more often than the target can absorb, so nothing forces a \
         rejection."
            .to_owned()
    } else {
        format!(
            "{drafts} in H = {} with probability Q(H) = {q}; then only tokens of H can be accepted, \
             and the target has room for P(H) = {p} of them. So every verifier rejects at least \
             Q(H) - P(H) = {rejected}.",
            set(&proof.subset)
        )
    };
    let below = match proof.basis {
        Basis::FlowEqualsCut if rate.rational().is_some() => format!(
            "A plan that accepts {} was checked entry by entry in exact arithmetic: flow = cut.",
            number(rate.value(), rate.rational())
        ),
        Basis::FlowEqualsCut => "The plan and the subset do not meet.".to_owned(),
        Basis::FlowMeetsCut if rate.rational().is_some() => {
            "The value is exact by a theorem or formula; a plan was checked entry by entry to \
             come within rounding of it."
                .to_owned()
        }
        Basis::FlowMeetsCut => format!(
            "A plan that accepts at least {} was checked entry by entry; rounding is in the bounds.",
            rate.lower()
        ),
        Basis::Subset => format!(
            "The problem is too large for a plan; that at least {} can be accepted follows from \
             a method's own bound.",
            rate.lower()
        ),
    };
    format!("{above} {below}")
}

/// A set of tokens, cut short in the middle if it is long.
fn set(tokens: &[usize]) -> String {
    let list = |tokens: &[usize]| {
        let tokens: Vec<String> = tokens.iter().map(usize::to_string).collect();
        tokens.join(", ")
    };
    let count = tokens.len();
    if count <= 16 {
        return format!("{{{}}}", list(tokens));
    }
    let [head, tail] = [&tokens[..8], &tokens[count - 4..]].map(list);
    format!("{{{head}, ..., {tail}}} ({count} tokens)")
}
