//! Laws that are composed of others.

mod algebra;
mod node;
mod stopped;
mod truncated;

pub use algebra::{
    Composition, CompositionError, CompositionFault, Draws, MOST_LEVELS, MOST_PARTS,
};
pub use truncated::{most_probable, nucleus};

use super::law::{of_draft, tuples_in_both};
use super::score::{Score, Scores, Term, mass_outside, proportional};
use super::{DraftScheme, ExactSetLaw, Law, MadeOf, PrefixScan, SchemeName, SetFamily, SetLaw};
use node::{Drawn, Leaf, Node};
use num_bigint::BigUint;
use specgap_number::distribution::{Draft, Rational};
use specgap_number::number::Number;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A law made of parts: unions, mixtures, forced tokens, stopped races, conditioning,
/// merging ([`Composition`]).
///
/// A draw may have fewer than n drafts, and none. Then no verifier accepts anything, and
/// Q of the empty set is the probability of that.
#[derive(Clone, Debug)]
pub struct Composed {
    vocab: usize,
    drafts: usize,
    root: Node,
    forced: Vec<usize>,
    scores: Vec<Kept>,
    polynomial: Option<Vec<Term>>,
}

/// A score that the law owns.
#[derive(Clone, Debug)]
enum Kept {
    Mass(Draft),
    Chance(Vec<Rational>),
}

impl Kept {
    fn score(&self) -> Score<'_> {
        match self {
            Self::Mass(draft) => Score::Mass(draft),
            Self::Chance(chances) => Score::Chance(chances),
        }
    }
}

impl Composed {
    /// A law over `vocab` tokens.
    ///
    /// # Errors
    /// Which part is wrong, and how.
    pub fn new(vocab: usize, law: Composition) -> Result<Self, CompositionError> {
        let drafts = law.most();
        let root = node::normalise(vocab, law)?;
        let forced = root.forced();
        let scores = distinct_scores(vocab, &root, &forced);
        let is_two = scores.len() == 2;
        let polynomial = is_two
            .then(|| polynomial(&root, &forced, &scores))
            .flatten();
        Ok(Self {
            vocab,
            drafts,
            root,
            forced,
            scores,
            polynomial,
        })
    }

    fn tuples<M: node::Arithmetic>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        self.root.tuples(&mut |tuple, mass: &M| {
            if !mass.is_nil() {
                visit(tuple, mass);
            }
        });
    }

    fn set_law_of<M: node::Arithmetic>(&self) -> (SetFamily, Vec<M>) {
        let sets = self.root.sets::<M>().into_iter();
        sets.filter(|(_, mass)| !mass.is_nil()).unzip()
    }
}

/// Returns what a leaf is convex in, outside the forced tokens; `None` where it is constant there.
fn leaf_score(vocab: usize, leaf: &Leaf, forced: &[usize]) -> Option<Kept> {
    let free = |token: usize| forced.binary_search(&token).is_err();
    match leaf {
        // 0 until all tokens are there: convex in any weights on just these.
        Leaf::Fixed(tokens) => {
            let mut weights = vec![BigUint::default(); vocab];
            for &token in tokens.iter().filter(|&&token| free(token)) {
                weights[token] = BigUint::from(1u32);
            }
            Draft::from_weights(weights).map(Kept::Mass)
        }
        Leaf::Poisson(chances) => {
            let each = chances.iter().enumerate();
            let chance = |(token, (chance, _)): (usize, &(node::Share, _))| match free(token) {
                true => chance.exact.clone(),
                false => Rational::zero(),
            };
            let chances: Vec<Rational> = each.map(chance).collect();
            (chances.iter().any(|chance| !chance.is_nil())).then_some(Kept::Chance(chances))
        }
        Leaf::Drawn(drawn) => {
            let any = (0..vocab).any(|token| free(token) && drawn.score.is_positive(token));
            any.then(|| Kept::Mass(drawn.score.clone()))
        }
    }
}

/// Returns whether what is convex in one of two scores is convex in the other, outside the forced
/// tokens.
fn same_score(a: &Kept, b: &Kept, forced: &[usize]) -> bool {
    match (a, b) {
        (Kept::Mass(a), Kept::Mass(b)) => {
            proportional(a, b, |token| forced.binary_search(&token).is_err())
        }
        (Kept::Chance(a), Kept::Chance(b)) => a == b,
        _ => false,
    }
}

fn distinct_scores(vocab: usize, root: &Node, forced: &[usize]) -> Vec<Kept> {
    let free = |token: &usize| forced.binary_search(token).is_err();
    let mut scores: Vec<Kept> = Vec::new();
    let mut lists: Vec<Kept> = Vec::new();
    root.leaves(&mut |leaf| {
        let Some(score) = leaf_score(vocab, leaf, forced) else {
            return;
        };
        // Lists of tokens come last: any score on just these tokens will do for them.
        let into = match leaf {
            Leaf::Fixed(_) => &mut lists,
            _ => &mut scores,
        };
        if !into.iter().any(|known| same_score(known, &score, forced)) {
            into.push(score);
        }
    });
    for list in lists {
        if !scores.iter().any(|score| serves(score, &list, &free)) {
            scores.push(list);
        }
    }
    scores
}

/// Returns whether a list of tokens, as weights, is convex in a score: if that has the same tokens.
fn serves(score: &Kept, list: &Kept, free: &dyn Fn(&usize) -> bool) -> bool {
    let Kept::Mass(list) = list else {
        return false;
    };
    let mut free = (0..list.vocab()).filter(|token| free(token));
    free.all(|token| score.score().is_positive(token) == list.is_positive(token))
}

type Polynomial = BTreeMap<Vec<usize>, Rational>;

/// Q outside the forced tokens as a polynomial of the masses of two scores, where it is one.
fn polynomial(root: &Node, forced: &[usize], scores: &[Kept]) -> Option<Vec<Term>> {
    fn of(node: &Node, forced: &[usize], scores: &[Kept]) -> Option<Polynomial> {
        match node {
            Node::Leaf(leaf) => leaf_polynomial(leaf, forced, scores),
            Node::Union(parts) => {
                let mut product = Polynomial::from([(vec![0; scores.len()], Rational::one())]);
                for part in parts {
                    product = times(&product, &of(part, forced, scores)?);
                }
                Some(product)
            }
            Node::Mixture(parts) => {
                let mut sum = Polynomial::new();
                for (weight, part) in parts {
                    for (powers, coefficient) in of(part, forced, scores)? {
                        let term = coefficient.times(&weight.exact);
                        sum.entry(powers).or_insert_with(Rational::zero).gain(&term);
                    }
                }
                Some(sum)
            }
        }
    }
    let terms = of(root, forced, scores)?.into_iter();
    let terms = terms.map(|(powers, coefficient)| Term {
        coefficient,
        powers,
    });
    Some(terms.filter(|term| !term.coefficient.is_nil()).collect())
}

fn times(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut product = Polynomial::new();
    for (left, x) in a {
        for (right, y) in b {
            let powers = left.iter().zip(right).map(|(a, b)| a + b).collect();
            let entry = product.entry(powers).or_insert_with(Rational::zero);
            entry.gain(&x.times(y));
        }
    }
    product
}

fn leaf_polynomial(leaf: &Leaf, forced: &[usize], scores: &[Kept]) -> Option<Polynomial> {
    let free = |token: &usize| forced.binary_search(token).is_err();
    let constant = || Polynomial::from([(vec![0; scores.len()], Rational::one())]);
    // inside + slope x, x being the mass of the score with that number.
    let line = |index: usize, inside: Rational, slope: Rational| {
        let mut powers = vec![0; scores.len()];
        let mut line = Polynomial::from([(powers.clone(), inside)]);
        powers[index] = 1;
        line.insert(powers, slope);
        line.retain(|_, coefficient| !coefficient.is_nil());
        line
    };
    match leaf {
        Leaf::Fixed(tokens) => {
            let rest: Vec<usize> = tokens.iter().copied().filter(free).collect();
            match rest.as_slice() {
                [] => Some(constant()),
                [token] => {
                    // The score that has mass on this token alone.
                    let index = scores.iter().position(|score| match score {
                        Kept::Mass(draft) => (0..draft.vocab())
                            .filter(free)
                            .all(|other| draft.is_positive(other) == (other == *token)),
                        Kept::Chance(_) => false,
                    })?;
                    let Kept::Mass(draft) = &scores[index] else {
                        return None;
                    };
                    let slope = draft.exact().probability(*token).recip();
                    Some(line(index, Rational::zero(), slope))
                }
                _ => None,
            }
        }
        Leaf::Poisson(_) => None,
        Leaf::Drawn(drawn) if drawn.how == Draws::Independent => {
            let Drawn { score, draws, .. } = drawn.as_ref();
            let outside = mass_outside(score, forced);
            if outside.is_nil() {
                return Some(constant());
            }
            let own = Kept::Mass(score.clone());
            let index = (scores.iter()).position(|known| same_score(known, &own, forced))?;
            let Kept::Mass(draft) = &scores[index] else {
                return None;
            };
            let slope = outside.over(&mass_outside(draft, forced));
            let line = line(index, Rational::one() - outside, slope);
            let mut power = constant();
            for _ in 0..*draws {
                power = times(&power, &line);
            }
            Some(power)
        }
        Leaf::Drawn(_) => None,
    }
}

impl DraftScheme for Composed {
    of_draft!(self, SchemeName::COMPOSED, self.vocab, self.drafts, None);

    fn nothing(&self) -> f64 {
        self.root.chain::<f64>(&[]).empty
    }
    fn nothing_exact(&self) -> Rational {
        self.root.chain::<Rational>(&[]).empty
    }

    fn scores(&self) -> Option<Scores<'_>> {
        Some(Scores {
            forced: self.forced.clone(),
            distinct: self.scores.iter().map(Kept::score).collect(),
            polynomial: self.polynomial.clone(),
        })
    }

    fn tuple_count(&self) -> f64 {
        self.root.tuple_count()
    }
    tuples_in_both!(self, tuples());
    fn set_count(&self) -> f64 {
        self.root.set_count()
    }

    fn set_law(&self) -> SetLaw {
        SetLaw::of(self.set_law_of(), self.root.relative_error())
    }

    fn set_law_cost(&self) -> f64 {
        self.root.law_cost(self.drafts)
    }

    fn set_check_cost(&self) -> f64 {
        let size = self.drafts.min(self.vocab);
        self.set_count() * self.root.check_cost(size)
    }

    fn exact_scan_cost(&self) -> f64 {
        self.root.exact_chain_cost()
    }

    fn adds_fractions(&self) -> bool {
        self.root.adds_fractions()
    }

    fn exact_bits(&self) -> f64 {
        self.root.exact_bits()
    }

    fn exact_set_law(&self) -> ExactSetLaw {
        ExactSetLaw::from_probabilities(self.set_law_of())
    }

    fn prefix_scan(&self, order: &[usize]) -> PrefixScan {
        let chain = self.root.chain::<f64>(order);
        let inside = chain.inside.iter().map(|mass| mass.clamp(0.0, 1.0));
        PrefixScan {
            inside: inside.collect(),
            absolute_error: chain.error + f64::EPSILON,
        }
    }

    fn prefix_scan_exact(&self, order: &[usize]) -> Vec<Rational> {
        self.root.chain::<Rational>(order).inside
    }

    fn set_probability(&self, set: &[u32]) -> f64 {
        self.root.set_mass(set)
    }

    fn set_probability_error(&self) -> f64 {
        self.root.relative_error()
    }

    fn set_probability_exact(&self, set: &[u32]) -> Rational {
        self.root.set_mass(set)
    }
}

/// [`Composed`] in the table of laws.
pub const LAW: Law = Law {
    name: "composed",
    words: "forced tokens, unions, mixtures, stopped races, conditioned and merged draws, \
        composed of one another; a draw may have fewer than n drafts",
    inside: "products and sums of the parts' Q",
    made_of: MadeOf::Parts(|vocab, law| Ok(Arc::new(Composed::new(vocab, law)?))),
    hue: 7,
    ..Law::NONE
};

#[cfg(test)]
mod tests;
