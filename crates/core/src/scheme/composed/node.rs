//! Laws in normal form, and everything that is computed of them.
//!
//! Conditioning and merging are moved down to the draws that they change: both go through
//! unions and mixtures, and turn all but some draws into draws of the same kind.

use super::algebra::{
    Composition, CompositionError, CompositionFault, Draws, MOST_LEVELS, MOST_PARTS,
};
use super::stopped::{Chain, Rate, Stopped};
use crate::scheme::{
    DistinctConditioned, DraftScheme, LARGEST_CHECKED_SET, Probability, WithReplacement,
    WithoutReplacement, set_of,
};
use num_bigint::BigUint;
use num_traits::Signed;
use specgap_number::distribution::{Draft, Rational, format_rational, round_nearest, token_id};
use specgap_number::number::{Number, RunningSum};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Masses by set, each set ascending.
pub(super) type Sets<M> = BTreeMap<Vec<u32>, M>;

#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Leaf),
    Union(Vec<Self>),
    /// Weights sum to 1.
    Mixture(Vec<(Share, Self)>),
}

/// A number as a fraction and as the nearest `f64`.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) exact: Rational,
    pub(super) float: f64,
}

impl Share {
    fn of(exact: Rational) -> Self {
        let float = round_nearest(&exact);
        Self { exact, float }
    }

    fn value<M: Arithmetic>(&self) -> M {
        M::of(&self.exact, self.float)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Leaf {
    /// Ascending.
    Fixed(Vec<usize>),
    /// Chances below 1 and what is left of them to 1; tokens of chance 0 do not count.
    Poisson(Vec<(Share, Share)>),
    Drawn(Box<Drawn>),
}

#[derive(Clone, Debug)]
pub(super) enum Base {
    Law(Arc<dyn DraftScheme>),
    Stopped(Box<Stopped>),
}

/// Draws, the tokens that they are conditioned to avoid, and what tokens they count as.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) base: Base,
    /// The row of the base, over its own vocabulary.
    pub(super) draft: Draft,
    /// Number of draws, and how they are drawn: one draft is an independent one.
    pub(super) draws: usize,
    pub(super) how: Draws,
    /// Of sequential draws: by token of the base, whether it is avoided; `None` if none is.
    avoided: Option<Vec<bool>>,
    kept: OnceLock<Share>,
    /// Tokens of the base by token; `None` if they are the same.
    groups: Option<Groups>,
    /// What sorts it: mass by token of this vocabulary, none on avoided tokens.
    pub(super) score: Draft,
}

#[derive(Clone, Debug)]
struct Groups {
    into: Vec<usize>,
    members: Vec<Vec<usize>>,
}

/// What laws are computed in; both are wanted of the laws that are composed.
pub(super) trait Arithmetic: Rate + Probability {
    fn chain(base: &Base, order: &[usize]) -> Chain<Self>;
}

impl Arithmetic for f64 {
    fn chain(base: &Base, order: &[usize]) -> Chain<Self> {
        let law = match base {
            Base::Law(law) => law,
            Base::Stopped(law) => return law.scan(order),
        };
        let scan = law.prefix_scan(order);
        Chain {
            empty: law.nothing(),
            inside: scan.inside,
            error: scan.absolute_error,
        }
    }
}

impl Arithmetic for Rational {
    fn chain(base: &Base, order: &[usize]) -> Chain<Self> {
        let (empty, inside) = match base {
            Base::Law(law) => (law.nothing_exact(), law.prefix_scan_exact(order)),
            Base::Stopped(law) => law.scan_exact(order),
        };
        Chain {
            empty,
            inside,
            error: 0.0,
        }
    }
}

impl Base {
    /// Returns what either kind of law says of itself.
    fn says<T>(&self, law: impl Fn(&dyn DraftScheme) -> T, stopped: impl Fn(&Stopped) -> T) -> T {
        match self {
            Self::Law(base) => law(base.as_ref()),
            Self::Stopped(base) => stopped(base),
        }
    }
}

impl Drawn {
    fn is_avoided(&self, token: u32) -> bool {
        (self.avoided.as_ref()).is_some_and(|avoided| avoided[token as usize])
    }

    fn image(&self, token: u32) -> u32 {
        (self.groups.as_ref()).map_or(token, |groups| token_id(groups.into[token as usize]))
    }

    /// P(no avoided token is drawn).
    fn kept(&self) -> &Share {
        self.kept.get_or_init(|| {
            if self.avoided.is_none() {
                return Share::of(Rational::one());
            }
            // Sums of positive terms, so that a small probability keeps its digits.
            let mut exact = Rational::zero();
            self.base_sets(&mut |set, mass: Rational| {
                if !set.iter().any(|&token| self.is_avoided(token)) {
                    exact.gain(&mass);
                }
            });
            Share::of(exact)
        })
    }

    /// Operations that listing the base's sets takes.
    fn law_cost(&self) -> f64 {
        self.base.says(|law| law.set_law_cost(), Stopped::law_cost)
    }

    fn base_sets<M: Arithmetic>(&self, visit: &mut dyn FnMut(&[u32], M)) {
        match &self.base {
            Base::Law(law) => M::sets(law.as_ref(), visit),
            Base::Stopped(law) => law.sets(visit),
        }
    }

    fn tuples<M: Arithmetic>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        let kept: M = self.kept().value();
        let mut image = Vec::new();
        let mut visit = |tuple: &[u32], mass: &M| {
            if tuple.iter().any(|&token| self.is_avoided(token)) || mass.is_nil() {
                return;
            }
            image.clear();
            image.extend(tuple.iter().map(|&token| self.image(token)));
            match &self.avoided {
                None => visit(&image, mass),
                Some(_) => visit(&image, &mass.over(&kept)),
            }
        };
        match &self.base {
            Base::Law(law) => M::tuples(law.as_ref(), &mut visit),
            Base::Stopped(law) => law.tuples(&mut visit),
        }
    }

    fn sets<M: Arithmetic>(&self) -> Sets<M> {
        let kept: M = self.kept().value();
        let mut sums: BTreeMap<Vec<u32>, M::Sum> = BTreeMap::new();
        self.base_sets(&mut |set, mass: M| {
            if set.iter().any(|&token| self.is_avoided(token)) || mass.is_nil() {
                return;
            }
            let image = set_of(set.iter().map(|&token| self.image(token)));
            sums.entry(image).or_default().add(&mass);
        });
        let share = |mass: M| match &self.avoided {
            None => mass,
            Some(_) => mass.over(&kept),
        };
        let sums = sums.into_iter();
        sums.map(|(set, sum)| (set, share(sum.value()))).collect()
    }

    /// P(just `set`), from the base's definition.
    fn set_mass<M: Arithmetic>(&self, set: &[u32]) -> M {
        let base_mass = |fine: &[u32]| {
            if fine.iter().any(|&token| self.is_avoided(token)) {
                return M::zero();
            }
            match &self.base {
                Base::Law(law) => M::set_mass(law.as_ref(), fine),
                Base::Stopped(law) => law.set_mass(fine),
            }
        };
        let mass = match &self.groups {
            None => base_mass(set),
            Some(groups) => {
                // Every choice of some members of each group.
                let members = |&token: &u32| &groups.members[token as usize][..];
                let members: Vec<&[usize]> = set.iter().map(members).collect();
                let mut sum = M::Sum::default();
                let mut chosen = Vec::new();
                choices(&members, self.draws, &mut chosen, &mut |fine| {
                    sum.add(&base_mass(&set_of(fine.iter().copied())));
                });
                sum.value()
            }
        };
        match &self.avoided {
            None => mass,
            Some(_) => mass.over(&self.kept().value()),
        }
    }

    fn chain<M: Arithmetic>(&self, order: &[usize]) -> Chain<M> {
        let fine = |&token: &usize| -> Vec<usize> {
            let all = match &self.groups {
                None => vec![token],
                Some(groups) => groups.members[token].clone(),
            };
            let kept = |&token: &usize| !self.is_avoided(token_id(token));
            all.into_iter().filter(kept).collect()
        };
        let fine: Vec<Vec<usize>> = order.iter().map(fine).collect();
        let flat: Vec<usize> = fine.iter().flatten().copied().collect();
        let chain = M::chain(&self.base, &flat);
        let mut held = 0;
        let kept: M = self.kept().value();
        let share = |mass: &M| match &self.avoided {
            None => mass.clone(),
            Some(_) => mass.over(&kept).smaller(&M::one()),
        };
        let inside = fine.iter().map(|tokens| {
            held += tokens.len();
            share(match held {
                0 => &chain.empty,
                _ => &chain.inside[held - 1],
            })
        });
        let inside = inside.collect();
        let error = match &self.avoided {
            None => chain.error,
            Some(_) => chain.error / kept.to_f64() + 4.0 * f64::EPSILON,
        };
        Chain {
            empty: share(&chain.empty),
            inside,
            error,
        }
    }

    /// Sets of the base that [`Self::set_mass`] goes through, at most, for one set.
    fn choices(&self) -> f64 {
        self.groups.as_ref().map_or(1.0, |groups| {
            let largest = groups.members.iter().map(Vec::len).max().unwrap_or(1);
            2f64.powi(largest.min(1000) as i32)
                .powi(self.draws.min(64) as i32)
        })
    }
}

/// All ways to take at least one member of each group, at most `most` in all.
fn choices(groups: &[&[usize]], most: usize, chosen: &mut Vec<u32>, visit: &mut dyn FnMut(&[u32])) {
    let Some((group, rest)) = groups.split_first() else {
        visit(chosen);
        return;
    };
    fn members(
        group: &[usize],
        rest: &[&[usize]],
        taken: bool,
        most: usize,
        chosen: &mut Vec<u32>,
        visit: &mut dyn FnMut(&[u32]),
    ) {
        if taken {
            choices(rest, most, chosen, visit);
        }
        if chosen.len() == most {
            return;
        }
        for (index, &member) in group.iter().enumerate() {
            chosen.push(token_id(member));
            members(&group[index + 1..], rest, true, most, chosen, visit);
            chosen.pop();
        }
    }
    members(group, rest, false, most, chosen, visit);
}

impl Leaf {
    fn tuples<M: Arithmetic>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        match self {
            Self::Fixed(tokens) => {
                let tuple: Vec<u32> = tokens.iter().copied().map(token_id).collect();
                visit(&tuple, &M::one());
            }
            Self::Poisson(chances) => {
                poisson_sets(chances, 0, &mut Vec::new(), &M::one(), visit);
            }
            Self::Drawn(drawn) => drawn.tuples(visit),
        }
    }

    fn sets<M: Arithmetic>(&self) -> Sets<M> {
        match self {
            Self::Drawn(drawn) => drawn.sets(),
            _ => {
                let mut sets = Sets::new();
                self.tuples(&mut |tuple, mass: &M| {
                    sets.insert(tuple.to_vec(), mass.clone());
                });
                sets
            }
        }
    }

    fn set_mass<M: Arithmetic>(&self, set: &[u32]) -> M {
        match self {
            Self::Fixed(tokens) => {
                let tokens = tokens.iter().map(|&token| token_id(token));
                let same = tokens.eq(set.iter().copied());
                if same { M::one() } else { M::zero() }
            }
            Self::Poisson(chances) => {
                let mut mass = M::one();
                for (token, (chance, missed)) in chances.iter().enumerate() {
                    let drafted = set.binary_search(&token_id(token)).is_ok();
                    let factor = if drafted { chance } else { missed };
                    mass = mass.times(&factor.value());
                }
                mass
            }
            Self::Drawn(drawn) => drawn.set_mass(set),
        }
    }

    fn chain<M: Arithmetic>(&self, order: &[usize]) -> Chain<M> {
        match self {
            Self::Fixed(tokens) => {
                let mut missing = tokens.len();
                let held = |missing: usize| if missing == 0 { M::one() } else { M::zero() };
                let empty = held(missing);
                let inside = order.iter().map(|token| {
                    missing -= usize::from(tokens.binary_search(token).is_ok());
                    held(missing)
                });
                Chain {
                    inside: inside.collect(),
                    empty,
                    error: 0.0,
                }
            }
            Self::Poisson(chances) => {
                let mut listed = vec![false; chances.len()];
                for &token in order {
                    listed[token] = true;
                }
                // The chance to miss all tokens outside, from the far end.
                let unlisted = chances.iter().zip(&listed).filter(|(_, listed)| !**listed);
                let mut missed =
                    unlisted.fold(M::one(), |all, ((_, miss), _)| all.times(&miss.value()));
                let mut inside = vec![M::zero(); order.len()];
                for (position, &token) in order.iter().enumerate().rev() {
                    inside[position] = missed.clone();
                    missed = missed.times(&chances[token].1.value());
                }
                let count = chances.len() as f64;
                let rounding = if M::EXACT { 0.0 } else { 2.0 * f64::EPSILON };
                Chain {
                    empty: missed,
                    inside,
                    error: count * rounding,
                }
            }
            Self::Drawn(drawn) => drawn.chain(order),
        }
    }
}

fn poisson_sets<M: Arithmetic>(
    chances: &[(Share, Share)],
    token: usize,
    set: &mut Vec<u32>,
    mass: &M,
    visit: &mut dyn FnMut(&[u32], &M),
) {
    let next = (token..chances.len()).find(|&token| !chances[token].0.exact.is_nil());
    let Some(token) = next else {
        visit(set, mass);
        return;
    };
    let (chance, missed) = &chances[token];
    poisson_sets(chances, token + 1, set, &mass.times(&missed.value()), visit);
    set.push(token_id(token));
    poisson_sets(chances, token + 1, set, &mass.times(&chance.value()), visit);
    set.pop();
}

impl Node {
    pub(super) fn tuples<M: Arithmetic>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        fn union<M: Arithmetic>(
            parts: &[Node],
            tuple: &mut Vec<u32>,
            mass: &M,
            visit: &mut dyn FnMut(&[u32], &M),
        ) {
            let Some((first, rest)) = parts.split_first() else {
                visit(tuple, mass);
                return;
            };
            let length = tuple.len();
            first.tuples(&mut |part, share: &M| {
                tuple.truncate(length);
                tuple.extend_from_slice(part);
                union(rest, tuple, &mass.times(share), visit);
            });
            tuple.truncate(length);
        }
        match self {
            Self::Leaf(leaf) => leaf.tuples(visit),
            Self::Union(parts) => union(parts, &mut Vec::new(), &M::one(), visit),
            Self::Mixture(parts) => {
                for (weight, part) in parts {
                    let weight = weight.value::<M>();
                    part.tuples(&mut |tuple, mass: &M| visit(tuple, &weight.times(mass)));
                }
            }
        }
    }

    /// The law of the set, by merging the laws of the parts.
    pub(super) fn sets<M: Arithmetic>(&self) -> Sets<M> {
        let summed = |sums: BTreeMap<Vec<u32>, M::Sum>| -> Sets<M> {
            let sums = sums.into_iter();
            sums.map(|(set, sum)| (set, sum.value())).collect()
        };
        match self {
            Self::Leaf(leaf) => leaf.sets(),
            Self::Union(parts) => {
                let mut all: Sets<M> = Sets::from([(Vec::new(), M::one())]);
                for part in parts {
                    let part = part.sets::<M>();
                    let mut sums: BTreeMap<Vec<u32>, M::Sum> = BTreeMap::new();
                    for (set, mass) in &all {
                        for (more, share) in &part {
                            let joined = set_of(set.iter().chain(more).copied());
                            sums.entry(joined).or_default().add(&mass.times(share));
                        }
                    }
                    all = summed(sums);
                }
                all
            }
            Self::Mixture(parts) => {
                let mut sums: BTreeMap<Vec<u32>, M::Sum> = BTreeMap::new();
                for (weight, part) in parts {
                    let weight = weight.value::<M>();
                    for (set, mass) in part.sets::<M>() {
                        sums.entry(set).or_default().add(&weight.times(&mass));
                    }
                }
                summed(sums)
            }
        }
    }

    /// P(just `set`), part by part over the subsets of the set.
    pub(super) fn set_mass<M: Arithmetic>(&self, set: &[u32]) -> M {
        match self {
            Self::Leaf(leaf) => leaf.set_mass(set),
            Self::Union(parts) => {
                let size = 1usize << set.len();
                let mut reached = vec![M::zero(); size];
                reached[0] = M::one();
                for part in parts {
                    let mass = |mask: usize| -> M {
                        let bits = (0..set.len()).filter(|bit| mask >> bit & 1 == 1);
                        part.set_mass(&bits.map(|bit| set[bit]).collect::<Vec<u32>>())
                    };
                    let masses: Vec<M> = (0..size).map(mass).collect();
                    let mut sums = vec![M::Sum::default(); size];
                    let some = |all: &[M]| -> Vec<(usize, M)> {
                        let all = all.iter().cloned().enumerate();
                        all.filter(|(_, mass)| !mass.is_nil()).collect()
                    };
                    let masses = some(&masses);
                    for (held, mass) in some(&reached) {
                        for (more, share) in &masses {
                            sums[held | more].add(&mass.times(share));
                        }
                    }
                    reached = sums.iter().map(RunningSum::value).collect();
                }
                reached.pop().unwrap_or_else(M::zero)
            }
            Self::Mixture(parts) => {
                let mut sum = M::Sum::default();
                for (weight, part) in parts {
                    sum.add(&weight.value::<M>().times(&part.set_mass(set)));
                }
                sum.value()
            }
        }
    }

    /// Q of nothing and along a chain.
    pub(super) fn chain<M: Arithmetic>(&self, order: &[usize]) -> Chain<M> {
        let each = |chain: &mut Chain<M>, other: &Chain<M>, join: &dyn Fn(&M, &M) -> M| {
            chain.empty = join(&chain.empty, &other.empty);
            for (a, b) in chain.inside.iter_mut().zip(&other.inside) {
                *a = join(a, b);
            }
        };
        let all = |value: M| Chain {
            empty: value.clone(),
            inside: vec![value; order.len()],
            error: 0.0,
        };
        match self {
            Self::Leaf(leaf) => leaf.chain(order),
            Self::Union(parts) => {
                let mut product = all(M::one());
                for part in parts {
                    let chain = part.chain::<M>(order);
                    each(&mut product, &chain, &|a, b| a.times(b));
                    product.error += chain.error + if M::EXACT { 0.0 } else { f64::EPSILON };
                }
                product
            }
            Self::Mixture(parts) => {
                let mut sum = all(M::zero());
                for (weight, part) in parts {
                    let chain = part.chain::<M>(order);
                    let share = weight.value::<M>();
                    each(&mut sum, &chain, &|a, b| a.plus(&b.times(&share)));
                    let rounding = if M::EXACT { 0.0 } else { 2.0 * f64::EPSILON };
                    sum.error += weight.float * chain.error + rounding;
                }
                sum
            }
        }
    }

    /// Visits every leaf.
    pub(super) fn leaves<'a>(&'a self, visit: &mut dyn FnMut(&'a Leaf)) {
        match self {
            Self::Leaf(leaf) => visit(leaf),
            Self::Union(parts) => parts.iter().for_each(|part| part.leaves(visit)),
            Self::Mixture(parts) => parts.iter().for_each(|(_, part)| part.leaves(visit)),
        }
    }

    /// Tokens that every draw is known to hold, ascending.
    pub(super) fn forced(&self) -> Vec<usize> {
        match self {
            Self::Leaf(Leaf::Fixed(tokens)) => tokens.clone(),
            Self::Leaf(Leaf::Drawn(drawn)) => {
                let support = drawn.score.support();
                // A law that does not stop drafts something.
                if support.len() == 1 && matches!(drawn.base, Base::Law(_)) {
                    support
                } else {
                    Vec::new()
                }
            }
            Self::Leaf(Leaf::Poisson(_)) => Vec::new(),
            Self::Union(parts) => set_of(parts.iter().flat_map(Self::forced)),
            Self::Mixture(parts) => {
                let mut parts = parts.iter().map(|(_, part)| part.forced());
                let mut common = parts.next().unwrap_or_default();
                for part in parts {
                    common.retain(|token| part.binary_search(token).is_ok());
                }
                common
            }
        }
    }

    pub(super) fn tuple_count(&self) -> f64 {
        self.count(|base| base.says(|law| law.tuple_count(), Stopped::tuple_count))
    }

    pub(super) fn set_count(&self) -> f64 {
        self.count(|base| base.says(|law| law.set_count(), Stopped::set_count))
    }

    /// Counts something that draws have, as many as `drawn` says.
    fn count(&self, drawn: fn(&Base) -> f64) -> f64 {
        match self {
            Self::Leaf(Leaf::Fixed(_)) => 1.0,
            Self::Leaf(Leaf::Poisson(chances)) => {
                let some = (chances.iter()).filter(|(chance, _)| !chance.exact.is_nil());
                2f64.powi(some.count().min(1000) as i32)
            }
            Self::Leaf(Leaf::Drawn(leaf)) => drawn(&leaf.base),
            Self::Union(parts) => parts.iter().map(|part| part.count(drawn)).product(),
            Self::Mixture(parts) => parts.iter().map(|(_, part)| part.count(drawn)).sum(),
        }
    }

    /// Operations of [`Self::sets`].
    pub(super) fn law_cost(&self, drafts: usize) -> f64 {
        match self {
            Self::Leaf(Leaf::Drawn(drawn)) => drawn.law_cost() + self.set_count() * drafts as f64,
            Self::Leaf(_) => self.set_count() * drafts as f64,
            // Every prefix of the parts is merged with the next part.
            Self::Union(parts) => {
                let merged = 2.0 * self.set_count() * (drafts + 8) as f64;
                merged + parts.iter().map(|part| part.law_cost(drafts)).sum::<f64>()
            }
            Self::Mixture(parts) => {
                let own = |(_, part): &(Share, Self)| part.law_cost(drafts);
                parts.iter().map(own).sum::<f64>() + self.set_count() * drafts as f64
            }
        }
    }

    /// Operations of [`Self::set_mass`] for a set of `size` tokens.
    pub(super) fn check_cost(&self, size: usize) -> f64 {
        if size > LARGEST_CHECKED_SET {
            return f64::INFINITY;
        }
        match self {
            Self::Leaf(Leaf::Fixed(tokens)) => tokens.len() as f64 + 1.0,
            Self::Leaf(Leaf::Poisson(chances)) => chances.len() as f64,
            Self::Leaf(Leaf::Drawn(drawn)) => {
                let own = 2f64.powi(size as i32) * (size * size + 1) as f64;
                let each = match &drawn.base {
                    Base::Law(_) => own * drawn.draws as f64,
                    Base::Stopped(law) => own * law.draft.vocab() as f64,
                };
                each * drawn.choices()
            }
            Self::Union(parts) => {
                let subsets = 2f64.powi(size as i32);
                let each = |part: &Self| subsets * part.check_cost(size);
                let joined = parts.len() as f64 * subsets * subsets;
                joined + parts.iter().map(each).sum::<f64>()
            }
            Self::Mixture(parts) => parts.iter().map(|(_, part)| part.check_cost(size)).sum(),
        }
    }

    /// Operations that an exact chain takes beyond one a token.
    pub(super) fn exact_chain_cost(&self) -> f64 {
        let mut cost = 0.0;
        self.leaves(&mut |leaf| {
            let Leaf::Drawn(drawn) = leaf else { return };
            let base = &drawn.base;
            cost += base.says(|law| law.exact_scan_cost(), Stopped::law_cost);
            if drawn.avoided.is_some() {
                cost += drawn.law_cost();
            }
        });
        cost
    }

    pub(super) fn exact_bits(&self) -> f64 {
        match self {
            Self::Leaf(Leaf::Fixed(_)) => 1.0,
            Self::Leaf(Leaf::Poisson(chances)) => {
                let bits = |(chance, _): &(Share, Share)| chance.exact.denom().bits() as f64;
                chances.iter().map(bits).sum::<f64>() + 1.0
            }
            Self::Leaf(Leaf::Drawn(drawn)) => {
                let base = &drawn.base;
                let own = base.says(|law| law.exact_bits(), Stopped::exact_bits);
                own * if drawn.avoided.is_some() { 2.0 } else { 1.0 }
            }
            Self::Union(parts) => parts.iter().map(Self::exact_bits).sum(),
            Self::Mixture(parts) => parts
                .iter()
                .map(|(weight, part)| weight.exact.denom().bits() as f64 + part.exact_bits())
                .sum(),
        }
    }

    /// Returns whether exact laws are sums of fractions with many denominators.
    pub(super) fn adds_fractions(&self) -> bool {
        let mut adds = matches!(self, Self::Mixture(_));
        self.leaves(&mut |leaf| {
            if let Leaf::Drawn(drawn) = leaf {
                adds |= drawn.base.says(|law| law.adds_fractions(), |_| true);
            }
        });
        adds
    }

    /// Bound on the relative error of masses in `f64`.
    pub(super) fn relative_error(&self) -> f64 {
        match self {
            Self::Leaf(Leaf::Fixed(_)) => 0.0,
            Self::Leaf(Leaf::Poisson(chances)) => 2.0 * (chances.len() + 1) as f64 * f64::EPSILON,
            Self::Leaf(Leaf::Drawn(drawn)) => {
                let base = &drawn.base;
                let own = base.says(|law| law.set_probability_error(), Stopped::relative_error);
                own + 4.0 * f64::EPSILON
            }
            Self::Union(parts) => parts
                .iter()
                .map(|part| part.relative_error() + 4.0 * f64::EPSILON)
                .sum(),
            Self::Mixture(parts) => {
                let errors = parts.iter().map(|(_, part)| part.relative_error());
                errors.fold(0.0, f64::max) + 4.0 * f64::EPSILON
            }
        }
    }
}

// ------------------------------------------------------------------ normal form

/// Puts a law over `vocab` tokens into normal form.
pub fn normalise(vocab: usize, law: Composition) -> Result<Node, CompositionError> {
    if law.most() == 0 {
        return Err(CompositionFault::Nothing.into());
    }
    build(vocab, law, 0)
}

fn build(vocab: usize, law: Composition, level: usize) -> Result<Node, CompositionError> {
    if level > MOST_LEVELS {
        return Err(CompositionFault::Levels.into());
    }
    let check = |tokens: &[usize]| {
        let unknown = tokens.iter().find(|&&token| token >= vocab);
        unknown.map_or(Ok(()), |&token| Err(CompositionFault::Token(token, vocab)))
    };
    let within = |index: usize, part: Composition| {
        build(vocab, part, level + 1).map_err(|error| error.within(&format!("of[{index}]")))
    };
    let counted = |parts: usize| match parts {
        1..=MOST_PARTS => Ok(()),
        _ => Err(CompositionFault::Parts(parts)),
    };
    match law {
        Composition::Fixed(tokens) => {
            check(&tokens)?;
            Ok(Node::Leaf(Leaf::Fixed(set_of(tokens))))
        }
        Composition::Draws { draft, count, how } => draws(vocab, draft, count, how),
        Composition::Poisson(chances) => poisson(vocab, chances),
        Composition::Union(parts) => {
            counted(parts.len())?;
            let parts = parts.into_iter().enumerate();
            let parts = parts.map(|(index, part)| within(index, part));
            Ok(Node::Union(parts.collect::<Result<_, _>>()?))
        }
        Composition::Mixture(parts) => {
            counted(parts.len())?;
            for (index, (weight, _)) in parts.iter().enumerate() {
                if !weight.is_positive() {
                    return Err(value(format!("weights[{index}]"), weight, "above 0"));
                }
            }
            let total: Rational = parts.iter().map(|(weight, _)| weight).sum();
            let parts = parts
                .into_iter()
                .enumerate()
                .map(|(index, (weight, part))| {
                    Ok((Share::of(weight / &total), within(index, part)?))
                });
            let parts: Result<_, CompositionError> = parts.collect();
            Ok(Node::Mixture(parts?))
        }
        Composition::Avoiding(tokens, law) => {
            check(&tokens)?;
            let mut avoided = vec![false; vocab];
            for token in tokens {
                avoided[token] = true;
            }
            let law = within(0, *law)?;
            let (law, _) = avoiding(law, &avoided)?.ok_or(CompositionFault::Impossible)?;
            Ok(law)
        }
        Composition::Merged { into, law } => {
            check(&into)?;
            let law = build(into.len(), *law, level + 1).map_err(|error| error.within("of[0]"))?;
            Ok(merged(law, &into, vocab))
        }
    }
}

/// Says that a number is none of those that it may be.
fn value(name: String, is: &Rational, wanted: &'static str) -> CompositionError {
    CompositionFault::Value(name, format_rational(is), wanted).into()
}

fn poisson(vocab: usize, chances: Vec<Rational>) -> Result<Node, CompositionError> {
    if chances.len() != vocab {
        return Err(CompositionFault::Vocabulary("chances", chances.len(), vocab).into());
    }
    for (token, chance) in chances.iter().enumerate() {
        if chance.is_negative() || *chance > Rational::one() {
            return Err(value(format!("chances[{token}]"), chance, "in [0, 1]"));
        }
    }
    // A chance of 1 has no finite hazard: these tokens stand apart.
    let is_sure = |token: &usize| chances[*token] == Rational::one();
    let sure: Vec<usize> = (0..vocab).filter(is_sure).collect();
    let rest = chances.into_iter().map(|chance| {
        let chance = Some(chance).filter(|chance| *chance != Rational::one());
        let chance = chance.unwrap_or_default();
        let missed = Rational::one() - &chance;
        (Share::of(chance), Share::of(missed))
    });
    let rest = Node::Leaf(Leaf::Poisson(rest.collect()));
    Ok(match sure.is_empty() {
        true => rest,
        false => Node::Union(vec![Node::Leaf(Leaf::Fixed(sure)), rest]),
    })
}

fn draws(vocab: usize, draft: Draft, count: usize, how: Draws) -> Result<Node, CompositionError> {
    if draft.vocab() != vocab {
        return Err(CompositionFault::Vocabulary("q", draft.vocab(), vocab).into());
    }
    let limit = match how {
        Draws::Independent => usize::MAX,
        _ => vocab,
    };
    if count == 0 || count > limit {
        let limit = limit.min(specgap_row::MAX_DRAFTS);
        return Err(CompositionFault::Count(count, limit).into());
    }
    if let Draws::Stopped(rate) = &how
        && !(1e-9..=1e9).contains(&round_nearest(rate))
    {
        return Err(value("stop".to_owned(), rate, "in [1e-9, 1e9]"));
    }
    Ok(Node::Leaf(drawn(draft, count, how)))
}

/// Draws of one law, or the tokens that they always are.
fn drawn(draft: Draft, count: usize, how: Draws) -> Leaf {
    let support = draft.support();
    let stopped = matches!(how, Draws::Stopped(_));
    if !stopped && (support.len() == 1 || (support.len() <= count && how != Draws::Independent)) {
        return Leaf::Fixed(support);
    }
    let own = draft.clone();
    let how = if count > 1 || stopped {
        how
    } else {
        Draws::Independent
    };
    let base = match &how {
        Draws::Stopped(rate) => Base::Stopped(Box::new(Stopped::new(own, count, rate.clone()))),
        Draws::Sequential => Base::Law(Arc::new(WithoutReplacement::new(own, count))),
        Draws::Distinct => Base::Law(Arc::new(DistinctConditioned::new(own, count))),
        Draws::Independent => Base::Law(Arc::new(WithReplacement::new(own, count))),
    };
    Leaf::Drawn(Box::new(Drawn {
        base,
        score: draft.clone(),
        draft,
        draws: count,
        how,
        avoided: None,
        kept: OnceLock::new(),
        groups: None,
    }))
}

/// A law given that it drafts no avoided token, and how likely that is; `None` if it is
/// impossible.
type Avoiding<T> = Result<Option<(T, Rational)>, CompositionFault>;

fn avoiding(node: Node, avoided: &[bool]) -> Avoiding<Node> {
    match node {
        Node::Union(parts) => {
            let mut chance = Rational::one();
            let mut kept = Vec::with_capacity(parts.len());
            for part in parts {
                let Some((part, share)) = avoiding(part, avoided)? else {
                    return Ok(None);
                };
                chance = chance.times(&share);
                kept.push(part);
            }
            Ok(Some((Node::Union(kept), chance)))
        }
        Node::Mixture(parts) => {
            let mut kept = Vec::with_capacity(parts.len());
            for (weight, part) in parts {
                if let Some((part, share)) = avoiding(part, avoided)? {
                    kept.push((weight.exact.times(&share), part));
                }
            }
            let total: Rational = kept.iter().map(|(weight, _)| weight).sum();
            if total.is_nil() {
                return Ok(None);
            }
            let parts = (kept.into_iter()).map(|(w, part)| (Share::of(w / &total), part));
            Ok(Some((Node::Mixture(parts.collect()), total)))
        }
        Node::Leaf(leaf) => {
            let kept = leaf_avoiding(leaf, avoided)?;
            Ok(kept.map(|(leaf, chance)| (Node::Leaf(leaf), chance)))
        }
    }
}

fn leaf_avoiding(leaf: Leaf, avoided: &[bool]) -> Avoiding<Leaf> {
    Ok(match leaf {
        Leaf::Fixed(tokens) => {
            let possible = !tokens.iter().any(|&token| avoided[token]);
            possible.then(|| (Leaf::Fixed(tokens), Rational::one()))
        }
        Leaf::Poisson(chances) => {
            let mut all = Rational::one();
            let mut chances = chances;
            for ((chance, missed), _) in chances.iter_mut().zip(avoided).filter(|(_, out)| **out) {
                all = all.times(&missed.exact);
                *chance = Share::of(Rational::zero());
                *missed = Share::of(Rational::one());
            }
            Some((Leaf::Poisson(chances), all))
        }
        Leaf::Drawn(drawn) => return drawn_avoiding(*drawn, avoided),
    })
}

/// The largest law of sequential draws that is conditioned, in operations to list its sets.
const LARGEST_CONDITIONED: f64 = 2.0e6;

fn drawn_avoiding(mut drawn: Drawn, avoided: &[bool]) -> Avoiding<Leaf> {
    let is_out = |token| drawn.is_avoided(token) || avoided[drawn.image(token) as usize];
    let all: Vec<bool> = (0..drawn.draft.vocab()).map(token_id).map(is_out).collect();
    let kept: Vec<usize> = (0..all.len()).filter(|&token| !all[token]).collect();
    if !(0..all.len()).any(|token| all[token] && drawn.draft.is_positive(token)) {
        return Ok(Some((Leaf::Drawn(Box::new(drawn)), Rational::one())));
    }
    // Independent draws that avoid tokens are draws of the same law from the others.
    if let (Draws::Independent | Draws::Distinct, Base::Law(law)) = (&drawn.how, &drawn.base) {
        let chance = law.inside_exact(&kept);
        let Some(rest) = drawn.draft.restricted(|token| !all[token]) else {
            return Ok(None);
        };
        if chance.is_nil() {
            return Ok(None);
        }
        let leaf = self::drawn(rest, drawn.draws, drawn.how);
        return Ok(Some(match drawn.groups {
            None => (leaf, chance),
            Some(groups) => (
                leaf_merged(leaf, &groups.into, groups.members.len()),
                chance,
            ),
        }));
    }
    if drawn.law_cost() > LARGEST_CONDITIONED {
        let vocab = drawn.draft.vocab();
        return Err(CompositionFault::Conditioned(vocab, drawn.draws));
    }
    let before = drawn.kept().exact.clone();
    drawn.avoided = Some(all);
    drawn.kept = OnceLock::new();
    let chance = drawn.kept().exact.clone();
    if chance.is_nil() {
        return Ok(None);
    }
    let chance = chance.over(&before);
    match drawn.score.restricted(|token| !avoided[token]) {
        Some(score) => drawn.score = score,
        // Only the empty draw is left.
        None => return Ok(Some((Leaf::Fixed(Vec::new()), chance))),
    }
    Ok(Some((Leaf::Drawn(Box::new(drawn)), chance)))
}

fn merged(node: Node, into: &[usize], vocab: usize) -> Node {
    match node {
        Node::Union(parts) => {
            let parts = parts.into_iter().map(|part| merged(part, into, vocab));
            Node::Union(parts.collect())
        }
        Node::Mixture(parts) => {
            let parts = parts.into_iter();
            let parts = parts.map(|(weight, part)| (weight, merged(part, into, vocab)));
            Node::Mixture(parts.collect())
        }
        Node::Leaf(leaf) => Node::Leaf(leaf_merged(leaf, into, vocab)),
    }
}

fn leaf_merged(leaf: Leaf, into: &[usize], vocab: usize) -> Leaf {
    match leaf {
        Leaf::Fixed(tokens) => Leaf::Fixed(set_of(tokens.into_iter().map(|token| into[token]))),
        Leaf::Poisson(chances) => {
            let mut missed = vec![Rational::one(); vocab];
            for (token, (_, miss)) in chances.iter().enumerate() {
                missed[into[token]] = missed[into[token]].times(&miss.exact);
            }
            let both = |miss: Rational| (Share::of(Rational::one() - &miss), Share::of(miss));
            Leaf::Poisson(missed.into_iter().map(both).collect())
        }
        Leaf::Drawn(mut drawn) => {
            let weights = |row: &Draft| {
                let exact = row.exact();
                let mut weights = vec![BigUint::default(); vocab];
                for (token, weight) in exact.weights.iter().enumerate() {
                    weights[into[token]] += weight;
                }
                weights
            };
            if let Some(score) = Draft::from_weights(weights(&drawn.score)) {
                drawn.score = score;
            }
            if drawn.how == Draws::Independent {
                let row = drawn.score.clone();
                return self::drawn(row, drawn.draws, Draws::Independent);
            }
            let image = |token| into[drawn.image(token_id(token)) as usize];
            let into: Vec<usize> = (0..drawn.draft.vocab()).map(image).collect();
            let mut members = vec![Vec::new(); vocab];
            for (token, &image) in into.iter().enumerate() {
                members[image].push(token);
            }
            drawn.groups = Some(Groups { into, members });
            Leaf::Drawn(drawn)
        }
    }
}
