//! Claims about slot weights: one weight a token, in tiers, attains alpha* of any law of drafts.

use super::Finding;
use super::claim::claims;
use super::family::{Family, fractions, optimum, overlap, part, whole};
use super::scores::{is_in, mask_of, mass, minimisers, values};
use num_traits::Signed;
use specgap_core::problem::Problem;
use specgap_core::scheme::{Composed, Composition};
use specgap_number::distribution::{
    Rational, Target, exact_value, format_rational, round_nearest, round_up,
};
use specgap_number::number::Number;
use std::sync::Arc;

claims! {
    holds "slot-weights" by weights_exist,
        "for every law of the drafts a rule by one weight a token, in tiers, attains alpha*: \
        one of the drafts in the highest tier that was drafted is put out, with probability \
        proportional to its weight; in the lowest tier a slot of weight 1 rejects",
        "ours; docs/theory/plans.md, section 2",
        "Proof: the tiers are the steps of a maximal chain of minimisers of F = P - Q. In \
        each, log weights minimise a convex function whose gradient is what is put out less p. \
        How it grows in the long run is a sum over level sets D of F(H - D) - F(H), H the tier's \
        end, or of F(H + E) - F(H) outside; all are above 0, as no minimiser is missing from the \
        chain, so that the minimum exists. Checked in fractions on random laws of sets, some \
        of which may draft nothing: the lattice of minimisers, each of these inequalities, \
        and the growth by its definition in random directions. Weights are real numbers. \
        Where p was made from rational ones, in several tiers, they attain alpha* of the maximum \
        flow exactly. For all other p they are enclosed: rational weights near them, what \
        they put out cut to p in fractions, fall short of alpha* by no more than the shortfall given.";
    refuted "slot-weights-one-tier" of one_tier,
        in ["refuted/slot-weights-one-tier.toml"]
        "one positive weight a token attains alpha* without tiers: inside some minimiser of \
        P - Q against a slot that rejects, outside it against the other drafts alone",
        "a natural reading of slot-weights",
        "Wrong: two i.i.d. drafts from q = (1/2, 1/2), and p = (1/4, 3/4). The minimisers \
        are the empty set, {0} and {0, 1}, alpha* is 1, and token 0 alone is drafted with 1/4. \
        With the empty set token 0 comes out of mixed drafts as well, more often than p has \
        it, whatever its weight; with {0} or {0, 1} the slot rejects at times. Tiers are the limit \
        of weights that run to 0: token 1 wherever it is drafted.";
}

/// A law of the set of drafted tokens: how likely each set is, by mask, the empty one among them.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    pub(super) vocab: usize,
    mass: Vec<Rational>,
}

impl Sets {
    /// A few sets, not the empty one alone, with small whole weights: ties are common.
    pub(super) fn random(family: &mut Family, vocab: usize) -> Self {
        let mut weights = vec![0u64; 1 << vocab];
        weights[family.between(1, (1 << vocab) - 1)] = family.between(1, 6) as u64;
        for _ in 0..family.between(1, 6) {
            weights[family.below(1 << vocab)] += family.between(1, 6) as u64;
        }
        Self {
            vocab,
            mass: fractions(&weights),
        }
    }

    /// Q by mask.
    pub(super) fn inside(&self) -> Vec<Rational> {
        let within = |set: usize| (0..=set).filter(move |drafted| drafted & !set == 0);
        (0..self.mass.len())
            .map(|set| within(set).map(|drafted| &self.mass[drafted]).sum())
            .collect()
    }

    /// The problem of this law and a target: a mixture of lists of tokens.
    pub(super) fn problem(&self, p: &[Rational]) -> Option<Problem> {
        let drafted = self.mass.iter().enumerate();
        let parts = drafted
            .filter(|(_, mass)| !mass.is_nil())
            .map(|(set, mass)| {
                let tokens = (0..self.vocab).filter(|&token| is_in(set, token));
                (mass.clone(), Composition::Fixed(tokens.collect()))
            });
        let law = Composed::new(self.vocab, Composition::Mixture(parts.collect())).ok()?;
        let target = Target::from_rationals(p.to_vec()).ok()?;
        Problem::from_law("sets", target, Arc::new(law)).ok()
    }

    /// The sets that are drafted at times.
    fn drafted<T>(&self, number: impl Fn(&Rational) -> T) -> Vec<(usize, T)> {
        let all = self.mass.iter().enumerate();
        all.filter(|(_, mass)| !mass.is_nil())
            .map(|(set, mass)| (set, number(mass)))
            .collect()
    }
}

/// Returns how often each token is put out as a draft by its weight in its tier; tier 0 has the
/// slot that rejects.
fn put_out<T: Number>(sets: &[(usize, T)], tiers: &[usize], weights: &[T]) -> Vec<T> {
    let mut out: Vec<T> = weights.iter().map(|_| T::zero()).collect();
    for (set, mass) in sets {
        let drafted = || (0..tiers.len()).filter(|&token| is_in(*set, token));
        let Some(tier) = drafted().map(|token| tiers[token]).max() else {
            continue;
        };
        let competing = || drafted().filter(|&token| tiers[token] == tier);
        let slot = if tier == 0 { T::one() } else { T::zero() };
        let total = competing().fold(slot, |sum, token| sum.plus(&weights[token]));
        if !total.is_nil() {
            for token in competing() {
                out[token].gain(&mass.times(&weights[token]).over(&total));
            }
        }
    }
    out
}

/// A maximal chain of a lattice of sets, from the smallest to the largest.
fn maximal_chain(lattice: &[usize]) -> Vec<usize> {
    let mut last = lattice.iter().fold(usize::MAX, |all, set| all & set);
    let mut chain = vec![last];
    let above = |last: usize| {
        lattice
            .iter()
            .filter(move |&&set| set != last && set & last == last)
    };
    while let Some(&next) = above(last).min_by_key(|set| set.count_ones()) {
        chain.push(next);
        last = next;
    }
    chain
}

/// The tier of each token: 0 in the first set of the chain, one more in each step, the last
/// outside of all.
fn tiers_of(chain: &[usize], vocab: usize) -> Vec<usize> {
    let tier = |token| chain.iter().position(|&set| is_in(set, token));
    (0..vocab)
        .map(|token| tier(token).unwrap_or(chain.len()))
        .collect()
}

/// A law, p, and what is accepted at most, where that is known.
type Planted = (Sets, Vec<Rational>, Option<Rational>);

/// A problem whose optimal weights are known: p is what rational weights put out, and outside of
/// all minimisers, where the weight is the largest, something more.
fn planted(family: &mut Family, vocab: usize) -> Option<Planted> {
    let sets = Sets::random(family, vocab);
    let outside = family.between(1, 4);
    let tiers: Vec<usize> = (0..vocab).map(|_| family.below(outside + 1)).collect();
    let weights = tiers.iter().map(|&tier| match tier == outside {
        true => part(1, family.between(1, 3)),
        false => part(family.between(1, 5), family.between(1, 3)),
    });
    let weights: Vec<Rational> = weights.collect();
    let mut p = put_out(&sets.drafted(Rational::clone), &tiers, &weights);
    let accepted = Rational::total(&p);
    let rest = accepted.complement();
    let largest = |&token: &usize| tiers[token] == outside && weights[token] == Rational::one();
    let free: Vec<usize> = (0..vocab).filter(largest).collect();
    if free.is_empty() && !rest.is_nil() {
        return None;
    }
    let shares: Vec<u64> = free.iter().map(|_| family.between(1, 4) as u64).collect();
    if !rest.is_nil() {
        for (&token, share) in free.iter().zip(fractions(&shares)) {
            p[token] += &rest * share;
        }
    }
    Some((sets, p, Some(accepted)))
}

/// P - Q by mask.
fn difference(p: &[Rational], q: &[Rational]) -> Vec<Rational> {
    let sets = q.iter().enumerate();
    sets.map(|(set, q)| mass(p, set) - q).collect()
}

/// Non-empty subsets of a set.
fn parts(set: usize) -> impl Iterator<Item = usize> {
    (1..=set).filter(move |part| part & !set == 0)
}

/// Checks in fractions what the proof rests on: how many inequalities, and the first that fails.
fn inequalities(f: &[Rational], chain: &[usize]) -> (u64, Option<String>) {
    let (mut count, mut violation) = (0, None);
    let mut strict = |end: usize, other: usize| {
        count += 1;
        if f[other] <= f[end] && violation.is_none() {
            violation = Some(format!("F({other:b}) is not above F({end:b})"));
        }
    };
    for (place, &end) in chain.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| chain[place]);
        let tier = end & !before.unwrap_or(0);
        // Inside the first set all of it may be taken away; from a tier, not the whole.
        for part in parts(tier).filter(|&part| before.is_none() || part != tier) {
            strict(end, end & !part);
        }
    }
    let last = chain.last().copied().unwrap_or_default();
    for part in parts(!last & (f.len() - 1)) {
        strict(last, last | part);
    }
    (count, violation)
}

/// Returns how the function of a tier grows in the long run in a direction, by its definition and
/// as the sum over level sets.
fn growth(
    (sets, p, f): (&[(usize, Rational)], &[Rational], &[Rational]),
    (chain, place): (&[usize], usize),
    direction: &[i64],
) -> [Rational; 2] {
    let tiers = tiers_of(chain, p.len());
    let tokens: Vec<usize> = (0..p.len())
        .filter(|&token| tiers[token] == place)
        .collect();
    let mut growth = Rational::zero();
    for (set, mass) in sets {
        let drafted = || (0..p.len()).filter(|&token| is_in(*set, token));
        if drafted().map(|token| tiers[token]).max() != Some(place) {
            continue;
        }
        let entries = drafted().filter(|&token| tiers[token] == place);
        let slot = (place == 0).then_some(0);
        let largest = entries.map(|token| direction[token]).chain(slot).max();
        growth += mass * whole(largest.unwrap_or(0));
    }
    for &token in &tokens {
        growth -= &p[token] * whole(direction[token]);
    }
    let level = |keep: &dyn Fn(i64) -> bool| {
        mask_of((tokens.iter().copied()).filter(|&token| keep(direction[token])))
    };
    let most = direction.iter().map(|entry| entry.abs()).max().unwrap_or(0);
    let mut levels = Rational::zero();
    for t in 0..most {
        let (above, below) = (level(&|entry| entry > t), level(&|entry| entry < -t));
        if let Some(&end) = chain.get(place) {
            levels += &f[end & !above] - &f[end];
            if place == 0 {
                levels += mass(p, below);
            }
        } else if let Some(&last) = chain.last() {
            levels += &f[last | below] - &f[last];
        }
    }
    [growth, levels]
}

/// A direction that the proof of a tier asks about, 0 on all other tokens: at least 0 with an
/// entry 0 in a tier between, at most 0 outside; `None` if there is none but 0.
fn direction(
    family: &mut Family,
    p: &[Rational],
    tiers: &[usize],
    (place, outside): (usize, usize),
) -> Option<Vec<i64>> {
    let mut direction: Vec<i64> = (0..p.len())
        .map(|token| match tiers[token] == place && !p[token].is_nil() {
            true => family.below(7) as i64 - 3,
            false => 0,
        })
        .collect();
    let tier = || (0..p.len()).filter(|&token| tiers[token] == place);
    let least = tier().map(|token| direction[token]).min()?;
    for token in tier() {
        if place == outside {
            direction[token] = -direction[token].abs();
        } else if place > 0 {
            direction[token] -= least;
        }
    }
    let is_some = direction.iter().any(|&entry| entry != 0);
    is_some.then_some(direction)
}

/// Weights near the optimal ones: each is multiplied by p over what its token puts out, and
/// outside of all minimisers it stays at most 1. Each step lowers the convex function of its tier.
fn near(sets: &Sets, p: &[Rational], chain: &[usize], alpha: f64) -> Vec<Rational> {
    let drafted = sets.drafted(Rational::to_f64);
    let tiers = tiers_of(chain, p.len());
    let p: Vec<f64> = p.iter().map(Rational::to_f64).collect();
    let mut weights: Vec<f64> = p.iter().map(|&p| f64::from(u8::from(p > 0.0))).collect();
    for _ in 0..MOST_STEPS {
        let out = put_out(&drafted, &tiers, &weights);
        let kept: f64 = out.iter().zip(&p).map(|(out, p)| out.min(*p)).sum();
        if kept >= alpha - CLOSE / 4.0 {
            break;
        }
        for token in (0..p.len()).filter(|&token| out[token] > 0.0) {
            weights[token] *= p[token] / out[token];
            if tiers[token] == chain.len() {
                weights[token] = weights[token].min(1.0);
            }
        }
    }
    let exact = weights.into_iter().map(exact_value);
    exact.map(Option::unwrap_or_default).collect()
}

/// Steps of [`near`].
const MOST_STEPS: usize = 4000;

/// Weights that fall short of alpha* by no more enclose it.
const CLOSE: f64 = 1e-9;

/// One problem: its lattice, chain and inequalities, and weights that enclose its optimum.
fn check_one(
    finding: &mut Finding,
    family: &mut Family,
    shortfall: &mut Rational,
    (sets, p, accepted): (&Sets, &[Rational], Option<Rational>),
) {
    let q = sets.inside();
    let (least, lattice) = minimisers(p, &q);
    let alpha = least + Rational::one();
    let flow = sets.problem(p).map(|problem| optimum(&problem));
    finding.equal(flow.as_ref(), Some(&alpha));
    let is_planted = accepted.is_some();
    finding.equal(&accepted.unwrap_or_else(|| alpha.clone()), &alpha);
    let holds = |set: usize| lattice.contains(&set);
    let closed = |one: &usize| (lattice.iter()).all(|set| holds(one | set) && holds(one & set));
    let is_lattice = lattice.iter().all(closed);
    finding.require(is_lattice, || format!("no lattice, {lattice:?}"));
    let chain = maximal_chain(&lattice);
    let f = difference(p, &q);
    let (count, violation) = inequalities(&f, &chain);
    finding.require(violation.is_none(), || format!("{violation:?}"));
    finding.add("laws of sets", 1);
    finding.tally(KINDS[0], !q[0].is_nil());
    finding.add(KINDS[1], chain.len() as u64 - 1);
    finding.add("strict inequalities", count);
    finding.add("directions", 0);
    finding.tally(KINDS[2], is_planted);
    let (tiers, drafted) = (tiers_of(&chain, p.len()), sets.drafted(Rational::clone));
    for place in 0..=chain.len() {
        for _ in 0..3 {
            let Some(way) = direction(family, p, &tiers, (place, chain.len())) else {
                continue;
            };
            let [growth, levels] = growth((&drafted, p, &f), (&chain, place), &way);
            finding.add("directions", 1);
            finding.same(&growth, &levels, || format!("in {way:?}"));
            let grows = growth.is_positive();
            finding.require(grows, || format!("grows by {growth} in {way:?}"));
        }
    }
    let weights = near(sets, p, &chain, alpha.to_f64());
    let short = &alpha - overlap(&put_out(&drafted, &tiers, &weights), p);
    let is_close = !short.is_negative() && round_up(&short) <= CLOSE;
    finding.require(is_close, || {
        format!("{alpha}, short by {}", round_up(&short))
    });
    *shortfall = shortfall.clone().max(short);
}

/// Kinds of which there have to be some.
const KINDS: [&str; 3] = [
    "that may draft nothing",
    "tiers beyond the first",
    "rational weights that are optimal",
];

fn weights_exist(finding: &mut Finding) {
    let mut family = Family::new(1601);
    let mut shortfall = Rational::zero();
    for index in 0..PROBLEMS {
        let vocab = 2 + index % 4;
        let made = match index % 2 {
            0 => Some((Sets::random(&mut family, vocab), family.row(vocab), None)),
            _ => (0..100).find_map(|_| planted(&mut family, vocab)),
        };
        let Some((sets, p, accepted)) = made else {
            continue;
        };
        let name = || format!("{sets:?}, p = {p:?}");
        finding.about(name, |finding| {
            check_one(finding, &mut family, &mut shortfall, (&sets, &p, accepted));
            Some(())
        });
    }
    let shortfall = round_nearest(&shortfall);
    finding.number("largest shortfall of weights nearby", shortfall);
    finding.enough(&KINDS, 30);
}

/// Laws of sets that are looked at.
const PROBLEMS: usize = 600;

fn one_tier(finding: &mut Finding, [problem]: [Problem; 1]) {
    let (p, q) = (Rational::row(problem.target()), values(problem.scheme()));
    let (_, lattice) = minimisers(&p, &q);
    finding.count("minimisers", lattice.len() as u64);
    let alpha = finding.optimum("alpha*", &problem);
    let law = problem.scheme().exact_set_law();
    let listed = law.sets.iter().zip(&law.weights).map(|(set, weight)| {
        let set = mask_of(set.iter().map(|&token| token as usize));
        (set, Rational::fraction(weight, &law.total))
    });
    let sets: Vec<(usize, Rational)> = listed.collect();
    let mut best = Rational::zero();
    let powers = [-30, -3, 0, 3, 30].map(|exponent| exact_value(2f64.powi(exponent)));
    let powers = powers.map(Option::unwrap_or_default);
    for held in lattice {
        let tiers = [0, 1].map(|token| usize::from(!is_in(held, token)));
        for (a, b) in powers
            .iter()
            .flat_map(|a| powers.iter().map(move |b| (a, b)))
        {
            let out = put_out(&sets, &tiers, &[a.clone(), b.clone()]);
            best = best.max(overlap(&out, &p));
        }
    }
    let short = &alpha - &best;
    let name = "least shortfall of 75 choices of weights";
    finding.number(name, round_nearest(&short));
    // Token 1 first, wherever it is drafted.
    let tiers = put_out(&sets, &[1, 2], &[Rational::one(), Rational::one()]);
    finding.require(tiers == p, || format!("with tiers {tiers:?} is put out"));
    finding.require(short.is_nil(), || {
        let short = format_rational(&short);
        format!("weights of one tier fall short of {alpha} by {short}")
    });
}

#[cfg(test)]
mod tests {
    use super::super::family::fraction;
    use super::*;

    /// Two i.i.d. drafts of two even tokens and p = (1/4, 3/4), by hand: three minimisers, two
    /// tiers of one token each; and a chain that lacks the one in the middle is noticed.
    #[test]
    fn a_chain_with_a_gap_is_noticed() {
        let mass = ["0", "1/4", "1/4", "1/2"].map(fraction).to_vec();
        let (sets, p) = (Sets { vocab: 2, mass }, ["1/4", "3/4"].map(fraction));
        let q = sets.inside();
        assert_eq!(q, ["0", "1/4", "1/4", "1"].map(fraction));
        let (least, lattice) = minimisers(&p, &q);
        assert_eq!((least, &lattice[..]), (fraction("0"), &[0, 1, 3][..]));
        assert_eq!(maximal_chain(&lattice), [0, 1, 3]);
        assert_eq!(tiers_of(&[0, 1, 3], 2), [1, 2]);
        let f = difference(&p, &q);
        assert_eq!(inequalities(&f, &[0, 1, 3]), (0, None));
        let (count, violation) = inequalities(&f, &[0, 3]);
        assert!(count == 2 && violation.is_some(), "{violation:?}");
        // A smallest minimiser that is not the smallest, and a largest that is not the largest.
        assert!(inequalities(&f, &[1, 3]).1.is_some() && inequalities(&f, &[0, 1]).1.is_some());
        assert_eq!(
            inequalities(&f, &[0, 1]).1.unwrap(),
            "F(11) is not above F(1)"
        );
        // In a tier of both tokens weights would run off: nothing grows where token 1 gains.
        let drafted = sets.drafted(Rational::clone);
        let still = growth((&drafted, &p, &f), (&[0, 3], 1), &[0, 1]);
        assert_eq!(still, ["0", "0"].map(fraction));
    }
}
