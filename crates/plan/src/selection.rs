//! Selecting one of m i.i.d. drafts so that its law is as even as it can be against p.
//!
//! Whoever verifies one selected draft accepts it by its own law s: the closer s is to p, the
//! more is accepted. A law can be selected from m i.i.d. drafts if and only if
//! s(G) >= q(G)^m for every set G of tokens. Among all of these there is one, s*, that makes
//!
//! ```text
//! sum over y of p(y) f(s(y)/p(y))
//! ```
//!
//! the least for **every** convex f at once; in particular sum of min(c p, s) the largest for
//! every c. With tokens in the order of falling q/p, s*/p is the slope of the least concave
//! function above the points (p(first k), q(first k)^m): `docs/theory/paths.md` has the proof. For
//! c = 1 the sum is alpha*; what other plans that attain alpha* leave open, s* settles.
//!
//! At full vocabulary tokens stand in bins by q/p, four an octave, and tokens of a bin share
//! s/q instead of s/p.

use rand::{Rng, RngCore};
use specgap_number::number::{Number, RunningSum};

/// Bins an octave of q/p.
const PER_OCTAVE: f64 = 4.0;

/// Octaves to either side of q/p = 1 that have bins of their own.
const OCTAVES: f64 = 24.0;

/// Steps of the trapezoidal rule in log s. Its error is about e^(-pi^2/step) relative, 2e-11.
const STEP: f64 = 0.4;

/// Rounds of scaling the weights of a tier.
const ROUNDS: usize = 60;

/// Sum of |wanted - selected| over a tier's bins at which its weights are good enough; what
/// they select is known whatever they are.
const CLOSE: f64 = 1e-4;

/// The law of a draft selected from m i.i.d. draws of q that makes the sum of
/// p f(s/p) least for every convex f; tokens that q never gives have 0.
/// Exact in rationals. O(V log V) comparisons.
///
/// # Example
/// ```
/// use specgap_plan::even_selection;
/// // q/p = 3/2 and 1/2. The first alone: q^2/p = 9/8 > 1, so it keeps what it must.
/// assert_eq!(even_selection(&[0.5, 0.5], &[0.75, 0.25], 2), [0.5625, 0.4375]);
/// // One draft leaves no choice.
/// assert_eq!(even_selection(&[0.5, 0.5], &[0.75, 0.25], 1), [0.75, 0.25]);
/// ```
pub fn even_selection<T: Number>(target: &[T], draft: &[T], drafts: usize) -> Vec<T> {
    let rows = || target.iter().zip(draft);
    let mut order: Vec<usize> = (0..draft.len()).filter(|&i| !draft[i].is_nil()).collect();
    // Falling q/p; infinite where p is 0. Rounded quotients are in order, rounded products are not.
    let ratios: Vec<Option<T>> = rows()
        .map(|(p, q)| (!p.is_nil()).then(|| q.over(p)))
        .map(|ratio| ratio.filter(|ratio| ratio >= &T::zero()))
        .collect();
    let falling = |a: &Option<T>, b: &Option<T>| match (a, b) {
        (Some(a), Some(b)) => b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal),
        _ => a.is_some().cmp(&b.is_some()),
    };
    order.sort_by(|&a, &b| falling(&ratios[a], &ratios[b]).then(a.cmp(&b)));
    let masses = order.iter().map(|&i| (target[i].clone(), draft[i].clone()));
    let tiers = envelope(masses, drafts);
    let mut law: Vec<T> = rows().map(|_| T::zero()).collect();
    for tier in tiers {
        let tokens = order.get(tier.first..tier.end).unwrap_or(&[]);
        let share = |token: usize| {
            if tier.target.is_nil() {
                // p has nothing here, and how it is shared does not matter.
                draft[token].over(&tier.draft)
            } else {
                target[token].over(&tier.target)
            }
        };
        for &token in tokens {
            law[token] = tier.gained.times(&share(token));
        }
    }
    law
}

/// Neighbours in the order of falling q/p between which s*/p does not change.
#[derive(Clone, Debug)]
struct Tier<T> {
    first: usize,
    end: usize,
    /// P and q of them.
    target: T,
    draft: T,
    /// What of the draws has its last token, in this order, among them.
    gained: T,
}

/// The pieces of the least concave function above the points (P(first k), q(first k)^m).
fn envelope<T: Number>(masses: impl Iterator<Item = (T, T)>, drafts: usize) -> Vec<Tier<T>> {
    let mut tiers: Vec<Tier<T>> = Vec::new();
    let mut before = T::Sum::default();
    for (index, (p, q)) in masses.enumerate() {
        let low = before.value();
        before.add(&q);
        let high = before.value();
        // high^m - low^m without a difference.
        let gained = (0..drafts).fold(T::zero(), |sum, i| {
            sum.plus(&low.power(i).times(&high.power(drafts - 1 - i)))
        });
        let mut tier = Tier {
            first: index,
            end: index + 1,
            target: p,
            gained: q.times(&gained),
            draft: q,
        };
        // A slope that rises makes one piece of two.
        while let Some(last) = tiers.last()
            && last.gained.times(&tier.target) <= tier.gained.times(&last.target)
        {
            tier = Tier {
                first: last.first,
                end: tier.end,
                target: last.target.plus(&tier.target),
                draft: last.draft.plus(&tier.draft),
                gained: last.gained.plus(&tier.gained),
            };
            tiers.pop();
        }
        tiers.push(tier);
    }
    tiers
}

/// The tokens of a pair of rows in bins by q/p, from the largest on.
#[derive(Clone, Debug)]
pub struct RatioBins {
    /// By token; [`NONE`] where q is 0.
    bin: Vec<u16>,
    /// p and q of each bin.
    masses: Vec<[f64; 2]>,
}

const NONE: u16 = u16::MAX;

impl RatioBins {
    /// Bins rows of one vocabulary; entries of 0 or above, in any scale. O(V).
    pub fn new(target: &[f64], draft: &[f64]) -> Self {
        let total = |row: &[f64]| row.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let (all_p, all_q) = (total(target), total(draft));
        let most = (2.0 * OCTAVES * PER_OCTAVE) as usize + 1;
        let mut numbers = vec![NONE; draft.len()];
        let mut sums = vec![[0.0; 2]; most + 2];
        for ((&p, &q), number) in target.iter().zip(draft).zip(&mut numbers) {
            if q <= 0.0 {
                continue;
            }
            let place = if p <= 0.0 {
                0
            } else {
                let octaves = ((q / all_q) / (p / all_p)).log2();
                let octaves = octaves.clamp(-OCTAVES, OCTAVES);
                1 + ((OCTAVES - octaves) * PER_OCTAVE).round() as usize
            };
            // There are far fewer bins than 2^16.
            *number = place as u16;
            if let Some(sum) = sums.get_mut(place) {
                sum[0] += p / all_p;
                sum[1] += q / all_q;
            }
        }
        // Without those that are empty.
        let mut names = vec![NONE; sums.len()];
        let mut masses = Vec::new();
        for (name, sum) in names.iter_mut().zip(&sums) {
            if sum[1] > 0.0 {
                *name = masses.len() as u16;
                masses.push(*sum);
            }
        }
        for number in &mut numbers {
            *number = names.get(usize::from(*number)).copied().unwrap_or(NONE);
        }
        Self {
            bin: numbers,
            masses,
        }
    }

    fn bin_of(&self, token: usize) -> Option<usize> {
        let bin = self.bin.get(token).copied()?;
        (bin != NONE).then_some(usize::from(bin))
    }
}

/// How one of m i.i.d. drafts is selected: the draft in the lowest tier decides, of several
/// there one is drawn by the weights of their bins.
///
/// # Exactness
/// The law of the selected draft is known to about 1e-10, whatever the weights are. Weights
/// are chosen so that it is close to [`even_selection`]'s.
///
/// # Complexity
/// Made in O(bins) for each of some tens of rounds and a hundred nodes of an integral;
/// [`Self::select`] is O(m).
///
/// # Example
/// ```
/// use specgap_plan::{RatioBins, Selection};
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// let bins = RatioBins::new(&p, &q);
/// let selection = Selection::new(&bins, 2);
/// // Token 1 is selected unless both drafts are token 0.
/// assert!((selection.probability(&bins, 1, q[1]) - 7.0 / 16.0).abs() < 1e-9);
/// // Once it is the only one that has it, once both have it.
/// let shares = selection.by_copies(&bins, 1, q[1]);
/// assert!((shares[0] - 6.0 / 16.0).abs() < 1e-9 && (shares[1] - 1.0 / 16.0).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    drafts: usize,
    /// By bin.
    places: Vec<Place>,
    tiers: Vec<Integral>,
}

/// What is known of a bin.
#[derive(Clone, Copy, Debug)]
struct Place {
    tier: usize,
    weight: f64,
    /// s/q of its tokens.
    factor: f64,
}

/// A tier's draws at the nodes of an integral over s.
#[derive(Clone, Debug, Default)]
struct Integral {
    /// s and its part of the rule, s * step.
    nodes: Vec<(f64, f64)>,
    /// q of earlier tiers and sum over the tier of q e^(-sw).
    others: Vec<f64>,
}

impl Integral {
    /// The integral for weights and masses of a tier's bins, behind bins of a mass; with s/q of
    /// each bin, for so many drafts.
    fn new(before: f64, bins: &[(f64, f64)], drafts: usize) -> (Self, Vec<f64>) {
        let least = bins.iter().map(|b| b.0).fold(f64::INFINITY, f64::min);
        let most = bins.iter().map(|b| b.0).fold(0.0, f64::max);
        let low = -most.ln() - 26.0;
        let high = -least.ln() + 4.0;
        let count = ((high - low) / STEP).ceil().clamp(1.0, 4000.0) as usize;
        let mut integral = Self::default();
        let mut sums = vec![0.0; bins.len()];
        let mut decays = vec![0.0; bins.len()];
        let power = drafts as i32 - 1;
        for k in 0..=count {
            let s = (low + STEP * k as f64).exp();
            let mut others = before;
            for (decay, &(weight, q)) in decays.iter_mut().zip(bins) {
                *decay = (-s * weight).exp();
                others += q * *decay;
            }
            let step = STEP * s;
            let rest = step * others.powi(power);
            for (sum, decay) in sums.iter_mut().zip(&decays) {
                *sum += rest * decay;
            }
            integral.nodes.push((s, step));
            integral.others.push(others);
        }
        for (sum, &(weight, _)) in sums.iter_mut().zip(bins) {
            *sum *= drafts as f64 * weight;
        }
        (integral, sums)
    }

    /// P(a token of this q and weight is selected, and `copies` of m draws have it).
    fn share(&self, drafts: usize, copies: usize, q: f64, weight: f64) -> f64 {
        let (n, k) = (drafts as i32, copies as i32);
        let ways = (0..copies).fold(1.0, |ways, i| ways * (drafts - i) as f64 / (i + 1) as f64);
        let own = weight * f64::from(k);
        let sum: f64 = self
            .nodes
            .iter()
            .zip(&self.others)
            .map(|(&(s, step), &others)| {
                let rest = (others - q * (-s * weight).exp()).max(0.0);
                step * (-s * own).exp() * rest.powi(n - k)
            })
            .sum();
        ways * q.powi(k) * own * sum
    }
}

impl Selection {
    /// The selection for `drafts` i.i.d. draws, at least 1.
    pub fn new(bins: &RatioBins, drafts: usize) -> Self {
        let drafts = drafts.max(1);
        let masses = bins.masses.iter().map(|&[p, q]| (p, q));
        let tiers = envelope(masses, drafts);
        let mut places = Vec::with_capacity(bins.masses.len());
        let mut integrals = Vec::with_capacity(tiers.len());
        let mut before = 0.0;
        for (number, tier) in tiers.iter().enumerate() {
            let own = bins.masses.get(tier.first..tier.end).unwrap_or(&[]);
            let share = |[p, q]: &[f64; 2]| match tier.target > 0.0 {
                true => p / tier.target,
                false => q / tier.draft,
            };
            let wanted: Vec<f64> = own.iter().map(|bin| tier.gained * share(bin)).collect();
            let (integral, bins) = weights(before, own, &wanted, drafts);
            places.extend(bins.into_iter().map(|(weight, factor)| Place {
                tier: number,
                weight,
                factor,
            }));
            integrals.push(integral);
            before += tier.draft;
        }
        Self {
            drafts,
            places,
            tiers: integrals,
        }
    }

    /// m.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    /// Probability that the selected draft is a token, whose q is given with it.
    pub fn probability(&self, bins: &RatioBins, token: usize, q: f64) -> f64 {
        self.place(bins, token)
            .map_or(0.0, |place| q * place.factor)
    }

    fn place(&self, bins: &RatioBins, token: usize) -> Option<&Place> {
        bins.bin_of(token).and_then(|bin| self.places.get(bin))
    }

    /// Probability that the selected draft is a token, by how many of the drafts are that token,
    /// 1..m.
    pub fn by_copies(&self, bins: &RatioBins, token: usize, q: f64) -> Vec<f64> {
        let place = self.place(bins, token);
        let integral = place.and_then(|place| self.tiers.get(place.tier));
        let (Some(place), Some(integral)) = (place, integral) else {
            return vec![0.0; self.drafts];
        };
        (1..=self.drafts)
            .map(|copies| integral.share(self.drafts, copies, q, place.weight))
            .collect()
    }

    /// Drafts that may be selected, as slot and weight; of those without a bin, which q never
    /// gives, all.
    fn competing(&self, bins: &RatioBins, drafts: &[u32]) -> Vec<(usize, f64)> {
        let places = drafts.iter().map(|&token| self.place(bins, token as usize));
        let places: Vec<Option<&Place>> = places.collect();
        let last = places.iter().flatten().map(|place| place.tier).max();
        let competing = places.iter().enumerate().filter_map(|(slot, place)| {
            let weight = match (place, last) {
                (Some(place), Some(last)) => (place.tier == last).then_some(place.weight),
                (None, None) => Some(1.0),
                _ => None,
            };
            weight.map(|weight| (slot, weight))
        });
        competing.collect()
    }

    /// The probability that each of some drafts is selected.
    pub fn shares(&self, bins: &RatioBins, drafts: &[u32]) -> Vec<f64> {
        let mut shares = vec![0.0; drafts.len()];
        let competing = self.competing(bins, drafts);
        let total: f64 = competing.iter().map(|&(_, weight)| weight).sum();
        for (slot, weight) in competing {
            if let Some(share) = shares.get_mut(slot) {
                *share = weight / total;
            }
        }
        shares
    }

    /// Selects one of some drafts, and says which; 0 of none.
    pub fn select(&self, bins: &RatioBins, drafts: &[u32], rng: &mut dyn RngCore) -> usize {
        let competing = self.competing(bins, drafts);
        let total: f64 = competing.iter().map(|&(_, weight)| weight).sum();
        let mut left = rng.random::<f64>() * total;
        let mut chosen = 0;
        for (slot, weight) in competing {
            chosen = slot;
            if left < weight {
                break;
            }
            left -= weight;
        }
        chosen
    }
}

/// Weights of a tier's bins that select as much of each as is wanted, nearly, with s/q.
///
/// Scaling: a weight that selects too little is raised by what is missing, all at once.
fn weights(
    before: f64,
    own: &[[f64; 2]],
    wanted: &[f64],
    drafts: usize,
) -> (Integral, Vec<(f64, f64)>) {
    let bins = own.iter().zip(wanted);
    let mut bins: Vec<(f64, f64)> = bins.map(|([_, q], wanted)| (wanted / q, *q)).collect();
    let alone = own.len() < 2 || drafts < 2;
    // A bin that should never be selected is so all the same where there is nothing else.
    let scale = |bins: &mut [(f64, f64)]| {
        let most = bins.iter().map(|bin| bin.0).fold(0.0, f64::max);
        for (weight, _) in bins {
            *weight = if most > 0.0 {
                (*weight / most).max(1e-9)
            } else {
                1.0
            };
        }
    };
    if alone {
        bins.iter_mut().for_each(|bin| bin.0 = 1.0);
    }
    scale(&mut bins);
    let (mut integral, mut factors) = Integral::new(before, &bins, drafts);
    for _ in 0..if alone { 0 } else { ROUNDS } {
        let selected = bins.iter().zip(&factors).map(|((_, q), factor)| q * factor);
        let selected: Vec<f64> = selected.collect();
        let off = selected.iter().zip(wanted).map(|(s, w)| (s - w).abs());
        if off.sum::<f64>() <= CLOSE {
            break;
        }
        for (((weight, _), selected), wanted) in bins.iter_mut().zip(&selected).zip(wanted) {
            if *selected > 0.0 {
                *weight *= wanted / selected;
            }
        }
        scale(&mut bins);
        (integral, factors) = Integral::new(before, &bins, drafts);
    }
    let bins = bins.iter().zip(factors);
    (
        integral,
        bins.map(|(bin, factor)| (bin.0, factor)).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios that differ by rounding alone have an order still, and so have the smallest numbers.
    #[test]
    fn floats_of_nearly_one_ratio_are_in_order() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(8);
        for scale in [1.0, 1e-160, 1e-305] {
            let p: Vec<f64> = (0..4_000).map(|_| scale * random.random::<f64>()).collect();
            let q: Vec<f64> = p.iter().map(|p| p * 0.7).collect();
            let law = even_selection(&p, &q, 3);
            assert!(law.iter().all(|mass| *mass >= 0.0), "{scale}");
        }
    }
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use specgap_number::distribution::{Rational, ratio};

    fn random_row(rng: &mut ChaCha8Rng, vocab: usize) -> Vec<Rational> {
        let mut weights: Vec<u32> = (0..vocab).map(|_| rng.random_range(0..7)).collect();
        weights[rng.random_range(0..vocab)] += 1;
        let sum: u32 = weights.iter().sum();
        let row = weights.iter().map(|&w| ratio(&w.into(), &sum.into()));
        row.collect()
    }

    fn floats(row: &[Rational]) -> Vec<f64> {
        row.iter().map(Number::to_f64).collect()
    }

    /// What is never drafted stands in no bin, whatever it has of p.
    #[test]
    fn bins_hold_what_is_drafted() {
        let bins = RatioBins::new(&[0.25, 0.5, 0.25, 0.0], &[0.5, 0.0, 0.25, 0.25]);
        assert_eq!(bins.bin[1], NONE);
        for token in [0, 2, 3] {
            assert_ne!(bins.bin[token], NONE, "{token}");
        }
        let masses = bins.masses.iter();
        let sums = masses.fold([0.0; 2], |[p, q], own| [p + own[0], q + own[1]]);
        assert_eq!(sums, [0.5, 1.0]);
    }

    /// What has to stay in every set of tokens, and the sum of min(c p, s) of any selectable
    /// law: at most the least over G of c P(G) + 1 - q(G)^m, which is attained.
    #[test]
    fn the_even_law_can_be_selected_and_is_best_at_every_scale() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let scales = ["1/5", "1/2", "1", "3/2", "4"];
        let scales = scales.map(|c| specgap_number::distribution::parse_rational(c).unwrap());
        for round in 0..300 {
            let vocab = 1 + round % 5;
            let drafts = 1 + round % 4;
            let (p, q) = (random_row(&mut rng, vocab), random_row(&mut rng, vocab));
            let law = even_selection(&p, &q, drafts);
            assert_eq!(law.iter().sum::<Rational>(), Rational::one());
            let of = |row: &[Rational], set: usize| -> Rational {
                let tokens = (0..vocab).filter(|i| set >> i & 1 == 1);
                tokens.map(|i| row[i].clone()).sum()
            };
            for set in 0..1 << vocab {
                assert!(
                    of(&law, set) >= of(&q, set).power(drafts),
                    "{p:?} {q:?} {law:?}"
                );
            }
            for c in &scales {
                let kept: Rational = (law.iter().zip(&p))
                    .map(|(s, p)| s.smaller(&c.times(p)))
                    .sum();
                let bounds = (0..1usize << vocab).map(|set| {
                    let outside = of(&q, set).power(drafts).complement();
                    c.times(&of(&p, set)).plus(&outside)
                });
                assert_eq!(Some(kept), bounds.min(), "{p:?} {q:?} {c}");
            }
        }
    }

    #[test]
    fn what_is_selected_is_what_the_integrals_say() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut several = 0;
        for round in 0..120 {
            let (vocab, drafts) = (2 + round % 4, 1 + round % 4);
            let (p, q) = (random_row(&mut rng, vocab), random_row(&mut rng, vocab));
            let even = floats(&even_selection(&p, &q, drafts));
            let (p, q) = (floats(&p), floats(&q));
            let bins = RatioBins::new(&p, &q);
            let selection = Selection::new(&bins, drafts);
            several += usize::from(selection.tiers.len() < bins.masses.len());
            // Every tuple of drafts.
            let mut copies = vec![vec![0.0; drafts]; vocab];
            for tuple in 0..vocab.pow(drafts as u32) {
                let tokens: Vec<u32> = (0..drafts)
                    .map(|place| (tuple / vocab.pow(place as u32) % vocab) as u32)
                    .collect();
                let chance: f64 = tokens.iter().map(|&token| q[token as usize]).product();
                if chance == 0.0 {
                    continue;
                }
                let shares = selection.shares(&bins, &tokens);
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                for (share, &token) in shares.iter().zip(&tokens) {
                    let count = tokens.iter().filter(|&&other| other == token).count();
                    copies[token as usize][count - 1] += chance * share;
                }
            }
            for token in 0..vocab {
                let by_copies = selection.by_copies(&bins, token, q[token]);
                for (a, b) in by_copies.iter().zip(&copies[token]) {
                    assert!(
                        (a - b).abs() < 1e-9,
                        "{p:?} {q:?}: {by_copies:?} {copies:?}"
                    );
                }
                let selected = selection.probability(&bins, token, q[token]);
                let sum: f64 = by_copies.iter().sum();
                assert!((selected - sum).abs() < 1e-9);
                // Two tokens whose q/p differ by less than 19% may share a bin.
                assert!((selected - even[token]).abs() < 0.04, "{selected} {even:?}");
            }
        }
        assert!(several > 20, "{several} with a tier of several bins");
    }

    #[test]
    fn the_sampler_selects_by_the_shares() {
        let (p, q) = ([0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]);
        let bins = RatioBins::new(&p, &q);
        let selection = Selection::new(&bins, 3);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for tuple in [[0, 1, 2], [0, 0, 1], [1, 1, 1], [3, 0, 3]] {
            const DRAWS: usize = 20_000;
            let mut counts = [0usize; 3];
            for _ in 0..DRAWS {
                counts[selection.select(&bins, &tuple, &mut rng)] += 1;
            }
            for (&count, share) in counts.iter().zip(selection.shares(&bins, &tuple)) {
                // Five standard deviations: false once in some 10^5 runs of other seeds.
                let sd = (share * (1.0 - share) / DRAWS as f64).sqrt();
                assert!((count as f64 / DRAWS as f64 - share).abs() <= 5.0 * sd + 1e-12);
            }
        }
        assert_eq!(selection.select(&bins, &[], &mut rng), 0);
    }

    #[test]
    fn rows_with_nothing_in_common_have_a_selection() {
        let bins = RatioBins::new(&[0.0, 1.0, 0.0], &[0.5, 0.0, 0.5]);
        for drafts in 1..=3 {
            let selection = Selection::new(&bins, drafts);
            let sum: f64 = [(0, 0.5), (1, 0.0), (2, 0.5)]
                .map(|(token, q)| selection.probability(&bins, token, q))
                .iter()
                .sum();
            assert!((sum - 1.0).abs() < 1e-9);
        }
        let zero = Rational::zero();
        let half = ratio(&1u32.into(), &2u32.into());
        let law = even_selection(
            &[zero.clone(), Rational::one(), zero.clone()],
            &[half.clone(), zero.clone(), half.clone()],
            2,
        );
        assert_eq!(law, [half.clone(), zero, half]);
    }
}
