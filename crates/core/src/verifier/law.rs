//! The law of a verifier's output, by summing its rule over all tuples.

use super::rule::{ConditionalLaw, OutputLaw, Verifier};
use crate::scheme::{DraftScheme, Probability};
use num_traits::Signed;
use specgap_number::distribution::{Rational, Target, round_nearest};
use specgap_number::number::{Number, RunningSum};
use std::sync::Arc;

/// An arithmetic in which verifiers give their laws: `f64`, or an exact [`Rational`].
pub trait Arithmetic: Number {
    /// Law of the output given the tuple; `None` where the rule rests on rounded numbers
    /// and this arithmetic is exact.
    fn conditional(verifier: &dyn Verifier, tuple: &[u32]) -> Option<ConditionalLaw<Self>>;
}

impl Arithmetic for f64 {
    fn conditional(verifier: &dyn Verifier, tuple: &[u32]) -> Option<ConditionalLaw<Self>> {
        Some(verifier.conditional(tuple))
    }
}

impl Arithmetic for Rational {
    fn conditional(verifier: &dyn Verifier, tuple: &[u32]) -> Option<ConditionalLaw<Self>> {
        verifier.conditional_exact(tuple)
    }
}

/// How far an output law is from p.
#[derive(Clone, Debug, PartialEq)]
pub struct TotalVariation {
    /// Half the sum of |output - p|, in [0, 1].
    pub value: f64,
    /// The same, exactly, where both laws are exact.
    pub exact: Option<Rational>,
    /// The token with the largest difference; `None` if there is no difference.
    pub worst_token: Option<usize>,
    /// output - p at that token.
    pub worst_difference: f64,
}

/// Sums of one subtree of tuples: those that share a prefix.
struct Level<M: Number> {
    output: Vec<M::Sum>,
    algorithmic: M::Sum,
    membership: M::Sum,
    used: bool,
}

impl<M: Number> Level<M> {
    fn new(vocab: usize) -> Self {
        Self {
            output: vec![M::Sum::default(); vocab],
            algorithmic: M::Sum::default(),
            membership: M::Sum::default(),
            used: false,
        }
    }
}

/// Adds up tuples. Tuples that share a prefix are summed before they meet others:
/// for a rule that is lossless step by step these partial sums are simple
/// fractions, while a flat sum would pile up every denominator on the way.
struct Accumulator<M: Number> {
    vocab: usize,
    levels: Vec<Level<M>>,
    previous: Vec<u32>,
    /// Rejected mass that waits for one residual, and the level it belongs to.
    pending: Option<(Arc<[M]>, M::Sum, usize)>,
}

impl<M: Number> Accumulator<M> {
    fn new(vocab: usize) -> Self {
        Self {
            vocab,
            levels: vec![Level::new(vocab)],
            previous: Vec::new(),
            pending: None,
        }
    }

    fn add(&mut self, tuple: &[u32], mass: &M, law: &ConditionalLaw<M>) {
        let pending = self.pending.as_ref();
        if !pending.is_some_and(|(residual, ..)| Arc::ptr_eq(residual, &law.residual)) {
            self.flush();
        }
        let pairs = self.previous.iter().zip(tuple);
        let shared = pairs.take_while(|(before, now)| before == now).count();
        // All but the last token make the subtree.
        let depth = tuple.len().saturating_sub(1);
        self.fold(shared.min(depth));
        while self.levels.len() <= depth {
            self.levels.push(Level::new(self.vocab));
        }
        self.previous.clear();
        self.previous.extend_from_slice(tuple);

        let level = &mut self.levels[depth];
        level.used = true;
        for (&token, accepted) in tuple.iter().zip(&law.accepted) {
            if accepted.is_nil() {
                continue;
            }
            let share = mass.times(accepted);
            level.output[token as usize].add(&share);
            level.algorithmic.add(&share);
            level.membership.add(&share);
        }
        if law.rejected.is_nil() {
            return;
        }
        let share = mass.times(&law.rejected);
        for (position, &token) in tuple.iter().enumerate() {
            let hit = &law.residual[token as usize];
            if !hit.is_nil() && !tuple[..position].contains(&token) {
                level.membership.add(&share.times(hit));
            }
        }
        let none = || (law.residual.clone(), M::Sum::default(), depth);
        self.pending.get_or_insert_with(none).1.add(&share);
    }

    /// Spreads the waiting mass over its residual.
    fn flush(&mut self) {
        if let Some((residual, mass, depth)) = self.pending.take() {
            let mass = mass.value();
            let level = &mut self.levels[depth];
            level.used = true;
            for (sum, share) in level.output.iter_mut().zip(residual.iter()) {
                if !share.is_nil() {
                    sum.add(&mass.times(share));
                }
            }
        }
    }

    /// Closes all subtrees deeper than `depth`.
    fn fold(&mut self, depth: usize) {
        for index in (depth + 1..self.levels.len()).rev() {
            let (upper, lower) = self.levels.split_at_mut(index);
            let (Some(parent), Some(child)) = (upper.last_mut(), lower.first_mut()) else {
                return;
            };
            if !std::mem::take(&mut child.used) {
                continue;
            }
            parent.used = true;
            let own = [&mut parent.algorithmic, &mut parent.membership].into_iter();
            let parts = [&mut child.algorithmic, &mut child.membership].into_iter();
            let all = own
                .chain(&mut parent.output)
                .zip(parts.chain(&mut child.output));
            all.for_each(|(sum, part)| sum.merge(&std::mem::take(part)));
        }
    }

    fn finish(mut self) -> OutputLaw<M> {
        self.flush();
        self.fold(0);
        let level = &self.levels[0];
        OutputLaw {
            output: level.output.iter().map(RunningSum::value).collect(),
            algorithmic: level.algorithmic.value(),
            membership: level.membership.value(),
        }
    }
}

/// Law of a verifier's output under a draft scheme, in `f64`: the sum over all
/// tuples of D(X) times the conditional law. Rules that look at A(X) alone are
/// summed over sets.
///
/// The scheme is an argument so that a rule can be run on drafts that it was not
/// made for; it need not be the one that the verifier was built with.
///
/// # Complexity
/// One conditional law a tuple; see [`DraftScheme::tuple_count`].
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::{WithReplacement, WithoutReplacement};
/// use specgap_core::verifier::{Rrs, output_law, total_variation};
/// let q = Draft::new(&[0.5, 0.25, 0.125, 0.125])?;
/// let scheme = WithReplacement::new(q.clone(), 2);
/// let problem = Problem::new("mismatch", Target::new(&[0.125, 0.125, 0.25, 0.5])?, scheme)?;
/// let rrs = Rrs::new(&problem)?;
/// let right = output_law(&rrs, problem.scheme());
/// assert!(total_variation(&right, problem.target()).value < 1e-15);
/// let wrong = output_law(&rrs, &WithoutReplacement::new(q, 2));
/// assert!(total_variation(&wrong, problem.target()).value > 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn output_law(verifier: &dyn Verifier, scheme: &dyn DraftScheme) -> OutputLaw<f64> {
    let none = || Accumulator::new(scheme.vocab()).finish();
    summed(verifier, scheme).unwrap_or_else(none)
}

/// The same in exact rationals; `None` if the rule rests on rounded numbers.
pub fn output_law_exact(
    verifier: &dyn Verifier,
    scheme: &dyn DraftScheme,
) -> Option<OutputLaw<Rational>> {
    summed(verifier, scheme)
}

fn summed<M: Arithmetic + Probability>(
    verifier: &dyn Verifier,
    scheme: &dyn DraftScheme,
) -> Option<OutputLaw<M>> {
    let mut sums = Some(Accumulator::new(scheme.vocab()));
    let mut add = |tuple: &[u32], mass: &M| match (M::conditional(verifier, tuple), &mut sums) {
        (Some(law), Some(sums)) => sums.add(tuple, mass, &law),
        (Some(_), None) => {}
        (None, _) => sums = None,
    };
    if verifier.depends_on_set_only() {
        M::sets(scheme, &mut |set, mass| add(set, &mass));
    } else {
        M::tuples(scheme, &mut add);
    }
    sums.map(Accumulator::finish)
}

/// Total variation between an output law and p in `f64`.
pub fn total_variation(law: &OutputLaw<f64>, target: &Target) -> TotalVariation {
    let (sum, worst_token, worst_difference) = differences(&law.output, target);
    TotalVariation {
        value: 0.5 * sum,
        exact: None,
        worst_token,
        worst_difference,
    }
}

/// Total variation between an output law and p, exactly.
pub fn total_variation_exact(law: &OutputLaw<Rational>, target: &Target) -> TotalVariation {
    let (sum, worst_token, worst) = differences(&law.output, target);
    let half = sum / Rational::from_integer(2.into());
    TotalVariation {
        value: round_nearest(&half),
        exact: Some(half),
        worst_token,
        worst_difference: round_nearest(&worst),
    }
}

/// The sum of |output - p|, and the token with the largest difference, with it.
fn differences<M: Number + Signed>(output: &[M], target: &Target) -> (M, Option<usize>, M) {
    let (mut sum, mut worst) = (M::Sum::default(), (None, <M as Number>::zero()));
    for (token, (out, p)) in output.iter().zip(&M::row(target)).enumerate() {
        let difference = out.minus(p);
        sum.add(&difference.abs());
        if difference.abs() > worst.1.abs() {
            worst = (Some(token), difference);
        }
    }
    (sum.value(), worst.0, worst.1)
}
