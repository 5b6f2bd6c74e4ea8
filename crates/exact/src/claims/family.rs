//! Families of small problems in exact fractions, from fixed seeds.

use super::Finding;
pub(super) use super::claim::optimum;
use num_bigint::BigInt;
use num_traits::Signed;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_core::problem::Problem;
use specgap_core::scheme::{Composition, DraftScheme, Draws, MadeOf, SchemeName};
use specgap_number::distribution::{Draft, Rational, Target, TupleProbabilities, parse_rational};
use specgap_number::number::Number;

/// A stream of random problems.
pub(super) struct Family {
    random: ChaCha8Rng,
}

impl Family {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.random.random_range(0..limit)
    }

    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        self.random.random_range(low..=high)
    }

    pub(super) fn unit(&mut self) -> f64 {
        self.random.random_range(0.0..1.0)
    }

    /// A standard normal draw, by Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Whole-number weights, one in six of them zero and some much heavier than
    /// others; never all zero.
    pub(super) fn weights(&mut self, vocab: usize) -> Vec<u64> {
        loop {
            let row: Vec<u64> = (0..vocab)
                .map(|_| match self.below(6) {
                    0 => 0,
                    1 => self.random.random_range(1..1000),
                    _ => self.random.random_range(1..30),
                })
                .collect();
            if row.iter().any(|&weight| weight > 0) {
                return row;
            }
        }
    }

    /// Weights over their sum.
    pub(super) fn row(&mut self, vocab: usize) -> Vec<Rational> {
        fractions(&self.weights(vocab))
    }

    /// A target's row and a draft's.
    pub(super) fn rows(&mut self, vocab: usize) -> [Vec<Rational>; 2] {
        [self.row(vocab), self.row(vocab)]
    }

    /// Draws weights that are all above zero.
    pub(super) fn positive_weights(&mut self, vocab: usize) -> Vec<u64> {
        (0..vocab)
            .map(|_| self.random.random_range(1..40))
            .collect()
    }

    /// A problem of a scheme; `None` if V, n and the scheme do not go together.
    pub(super) fn problem(
        &mut self,
        scheme: SchemeName,
        vocab: usize,
        drafts: usize,
    ) -> Option<Problem> {
        let (p, q) = (self.weights(vocab), self.weights(vocab));
        let target = Target::from_rationals(fractions(&p)).ok()?;
        if !scheme.fits(drafts) {
            return None;
        }
        let law = match scheme.entry().made_of {
            MadeOf::OneDraft(make) => make(Draft::from_rationals(fractions(&q)).ok()?, drafts),
            MadeOf::EachDraft(make) => make(
                (0..drafts)
                    .map(|_| Draft::from_rationals(self.row(vocab)).ok())
                    .collect::<Option<Vec<_>>>()?,
            )?,
            MadeOf::Tuples(make) => {
                let count = self.between(2, 8);
                let tuples = (0..count)
                    .map(|_| (0..drafts).map(|_| self.below(vocab) as u32).collect())
                    .collect();
                let law = TupleProbabilities::from_rationals(self.row(count)).ok()?;
                make(vocab, drafts, tuples, law).ok()?
            }
            MadeOf::Parts(make) => {
                let rows = [q, self.weights(vocab)];
                make(vocab, self.composition(vocab, drafts, 2, &rows)?).ok()?
            }
        };
        Problem::from_law("random", target, law).ok()
    }

    /// A law of at most `drafts` drafts, composed of parts that draw from one of `rows`,
    /// nested at most `levels` deep.
    pub(super) fn composition(
        &mut self,
        vocab: usize,
        drafts: usize,
        levels: usize,
        rows: &[Vec<u64>],
    ) -> Option<Composition> {
        let drafts = drafts.max(1);
        let kinds = if levels == 0 { 6 } else { 11 };
        Some(match self.below(kinds) {
            0 => Composition::Fixed((0..drafts).map(|_| self.below(vocab)).collect()),
            1 => {
                let mut left = drafts;
                let chances = (0..vocab).map(|_| {
                    let part = self.below(6);
                    if part == 0 || left == 0 {
                        return Rational::default();
                    }
                    left -= 1;
                    Rational::new(part.into(), 5.into())
                });
                Composition::Poisson(chances.collect())
            }
            kind @ 2..=5 => {
                let row = &rows[self.below(rows.len())];
                let count = drafts.min(vocab);
                Composition::Draws {
                    draft: Draft::from_rationals(fractions(row)).ok()?,
                    count,
                    how: match kind {
                        2 => Draws::Independent,
                        3 => Draws::Sequential,
                        4 => Draws::Distinct,
                        _ => Draws::Stopped(self.chance()),
                    },
                }
            }
            6 | 7 => {
                let first = self.between(1, drafts);
                let mut parts = vec![self.composition(vocab, first, levels - 1, rows)?];
                if drafts > first {
                    parts.push(self.composition(vocab, drafts - first, levels - 1, rows)?);
                }
                Composition::Union(parts)
            }
            8 => {
                let parts = (0..self.between(1, 3)).map(|_| {
                    let fewer = self.between(1, drafts);
                    let law = self.composition(vocab, fewer, levels - 1, rows)?;
                    Some((self.chance(), law))
                });
                Composition::Mixture(parts.collect::<Option<_>>()?)
            }
            9 => {
                let avoided = vec![self.below(vocab)];
                let law = self.composition(vocab, drafts, levels - 1, rows)?;
                Composition::Avoiding(avoided, Box::new(law))
            }
            _ => {
                // Two tokens more, which count as one of the others each.
                let into = (0..vocab).chain([self.below(vocab), self.below(vocab)]);
                let into: Vec<usize> = into.collect();
                let mut rows = rows.to_vec();
                for row in &mut rows {
                    row.extend([(); 2].map(|()| self.between(0, 9) as u64));
                }
                let law = self.composition(vocab + 2, drafts, levels - 1, &rows)?;
                Composition::Merged {
                    into,
                    law: Box::new(law),
                }
            }
        })
    }

    /// A fraction in (0, 1).
    fn chance(&mut self) -> Rational {
        part(self.between(1, 5), 6)
    }

    /// `count` problems of every scheme with V and n up to the limits.
    pub(super) fn of_all_schemes(
        &mut self,
        count: usize,
        vocab: usize,
        drafts: usize,
    ) -> Vec<Problem> {
        let schemes = SchemeName::ALL.into_iter();
        schemes
            .flat_map(|scheme| self.problems(scheme, count, vocab, drafts))
            .collect()
    }

    /// `count` problems of a scheme with V and n up to the limits.
    pub(super) fn problems(
        &mut self,
        scheme: SchemeName,
        count: usize,
        vocab: usize,
        drafts: usize,
    ) -> Vec<Problem> {
        many(count, || {
            let vocab = self.between(2, vocab);
            let drafts = match scheme.entry().only {
                Some(only) => only,
                None => self.between(1, drafts.min(vocab)),
            };
            self.problem(scheme, vocab, drafts)
        })
    }
}

/// `count` problems, each of as many tries as it takes.
pub(super) fn many(count: usize, one: impl FnMut() -> Option<Problem>) -> Vec<Problem> {
    std::iter::repeat_with(one).flatten().take(count).collect()
}

/// Weights over their sum.
pub(super) fn fractions(weights: &[u64]) -> Vec<Rational> {
    let total: u64 = weights.iter().sum();
    weights.iter().map(|&weight| part(weight, total)).collect()
}

/// A whole number.
pub(super) fn whole(number: impl Into<BigInt>) -> Rational {
    Rational::from_integer(number.into())
}

/// The entries of a row that are above 0, with their tokens.
pub(super) fn positive(row: &[Rational]) -> impl Iterator<Item = (usize, &Rational)> {
    row.iter()
        .enumerate()
        .filter(|(_, mass)| mass.is_positive())
}

/// A quotient of whole numbers.
pub(super) fn part(of: impl Into<BigInt>, all: impl Into<BigInt>) -> Rational {
    Rational::new(of.into(), all.into())
}

/// 1/2.
pub(super) fn half() -> Rational {
    part(1, 2)
}

/// The sum of min(p, q).
pub(super) fn overlap(p: &[Rational], q: &[Rational]) -> Rational {
    p.iter().zip(q).map(|(p, q)| p.smaller(q)).sum()
}

/// The sum of (p - q)+.
pub(super) fn excess(p: &[Rational], q: &[Rational]) -> Rational {
    p.iter().zip(q).map(|(p, q)| p.excess_over(q)).sum()
}

/// A fraction that stands in the source.
pub(super) fn fraction(text: &str) -> Rational {
    parse_rational(text).unwrap_or_default()
}

/// A problem of one law of drafts from q.
pub(super) fn drafting<S: DraftScheme + 'static>(
    p: Vec<Rational>,
    q: Vec<Rational>,
    law: impl FnOnce(Draft) -> S,
) -> Option<Problem> {
    let target = Target::from_rationals(p).ok()?;
    let draft = Draft::from_rationals(q).ok()?;
    Problem::new("random", target, law(draft)).ok()
}

/// A problem of so many drafts that a scheme draws from q.
pub(super) fn drawing(
    scheme: SchemeName,
    p: Vec<Rational>,
    q: Vec<Rational>,
    drafts: usize,
) -> Option<Problem> {
    let MadeOf::OneDraft(law) = scheme.entry().made_of else {
        return None;
    };
    let target = Target::from_rationals(p).ok()?;
    let draft = Draft::from_rationals(q).ok()?;
    Problem::from_law("random", target, law(draft, drafts)).ok()
}

/// p and q of a problem of one row of drafts.
pub(super) fn rows(problem: &Problem) -> Option<[Vec<Rational>; 2]> {
    let draft = problem.scheme().draft()?;
    Some([Rational::row(problem.target()), Rational::row(draft)])
}

/// Puts the same target under another law of the same q.
pub(super) fn under<S: DraftScheme + 'static>(
    problem: &Problem,
    law: impl Fn(Draft, usize) -> S,
) -> Option<Problem> {
    let draft = problem.scheme().draft()?.clone();
    let law = law(draft, problem.drafts());
    Problem::new("random", problem.target().clone(), law).ok()
}

/// Checks problems one by one, and counts them under a name.
pub(super) fn each(
    finding: &mut Finding,
    name: &'static str,
    problems: &[Problem],
    check: impl FnMut(&mut Finding, &Problem) -> Option<()>,
) {
    finding.count(name, problems.len() as u64);
    over(finding, problems, check);
}

/// Checks problems one by one, as [`Finding::about`] does.
pub(super) fn over(
    finding: &mut Finding,
    problems: &[Problem],
    mut check: impl FnMut(&mut Finding, &Problem) -> Option<()>,
) {
    for problem in problems {
        finding.about(|| describe(problem), |finding| check(finding, problem));
    }
}

/// A problem in one line, for violations.
pub(super) fn describe(problem: &Problem) -> String {
    let row = |distribution: &specgap_number::distribution::Distribution| {
        let exact = distribution.exact();
        let weights: Vec<String> = exact.weights.iter().map(ToString::to_string).collect();
        format!("({})/{}", weights.join(", "), exact.total)
    };
    let draft = problem
        .scheme()
        .draft()
        .map_or_else(String::new, |q| format!(", q = {}", row(q)));
    format!(
        "{}, n = {}, p = {}{draft}",
        problem.scheme().name(),
        problem.drafts(),
        row(problem.target())
    )
}

/// All subsets of `0..vocab`, each ascending.
pub(super) fn subsets(vocab: usize) -> impl Iterator<Item = Vec<usize>> {
    (0usize..1 << vocab)
        .map(move |mask| (0..vocab).filter(|token| mask >> token & 1 == 1).collect())
}
