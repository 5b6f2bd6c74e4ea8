//! One tier: who competes, what each wants, and the bounds on its weights.
//!
//! In the *inner* tier, of H, tuples may be rejected. In the *outer* one, of all other
//! tokens, theta = log w <= 0, and a token that stands at 0 and wants more is held there.

use super::arrivals::TERMS;
use super::emission::{Emitted, base};
use super::race::{Class, Race};
use super::times::Times;
use multiversion::multiversion;
use specgap_number::distribution::{compensated_sum, ln_normal};
use specgap_number::quadrature::Resolution;
use specgap_number::scratch::{Entry, Scratch};

/// Range of log w. In the outer tier the nodes in s reach down to the least weight;
/// few tokens can afford many.
const FLOOR_OUTER: f64 = -64.0;
const FLOOR_OUTER_FEW: f64 = -250.0;
const FEW: usize = 64;
pub(super) const FLOOR_INNER: f64 = -600.0;
pub(super) const CEILING: f64 = 90.0;

/// Largest coordinate.
const FARTHEST: f64 = 60.0;

/// Tokens or groups: heavy tokens first, then the classes in order.
#[derive(Clone, Debug)]
pub(super) struct Items {
    pub(super) classes: Vec<Class>,
    pub(super) wanted: Scratch<f64>,
    /// Emission at weight 0 and at infinite weight.
    pub(super) low: Scratch<f64>,
    pub(super) up: Scratch<f64>,
    /// Coordinate of what is wanted.
    pub(super) goal: Scratch<f64>,
}

/// One tier, ready to be solved.
#[derive(Clone, Debug)]
pub(super) struct Tier<'a> {
    pub(super) times: &'a Times,
    pub(super) race: Race,
    /// Token of every item.
    pub(super) tokens: Scratch<u32>,
    pub(super) items: Items,
    /// q of every item.
    pub(super) mass: Scratch<f64>,
    /// Probability of the tier's tuples, by the same integral; in the outer tier, of
    /// all tuples.
    pub(super) total: f64,
}

/// The coordinate log((value - low)/(up - value)), in which log w is nearly linear.
#[inline(always)]
pub(super) fn coordinate(value: f64, low: f64, up: f64) -> f64 {
    let (below, above) = (value - low, up - value);
    let below = if below > 1e-300 { below } else { 1e-300 };
    let above = if above > 1e-300 { above } else { 1e-300 };
    let odds = ln_normal(below / above);
    let odds = if odds > -FARTHEST { odds } else { -FARTHEST };
    if odds < FARTHEST { odds } else { FARTHEST }
}

#[multiversion(targets = "simd")]
fn coordinates(values: &[f64], low: &[f64], up: &[f64], odds: &mut [f64]) {
    let rows = values.iter().zip(low).zip(up);
    for (odds, ((value, low), up)) in odds.iter_mut().zip(rows) {
        *odds = coordinate(*value, *low, *up);
    }
}

/// The order in which values rise, equal ones as they come: by cells first, as many as
/// values, and then within each.
fn ascending(values: &[f64]) -> Scratch<u32> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = values.len() as f64 / (most - least).max(1e-9);
    let cell = |value: f64| ((value - least) * scale) as usize;
    let mut ends = Scratch::filled(values.len() + 2, 0u32);
    for &value in values {
        ends[cell(value) + 1] += 1;
    }
    let mut before = 0;
    for end in ends.iter_mut() {
        before += *end;
        *end = before;
    }
    // Each cell's place moves on from its start to its end.
    let mut order = Scratch::filled(values.len(), 0u32);
    for (item, &value) in (0u32..).zip(values) {
        let place = &mut ends[cell(value)];
        order[*place as usize] = item;
        *place += 1;
    }
    let mut start = 0;
    for &end in &ends {
        let own = &mut order[start..end as usize];
        if own.len() > 1 {
            own.sort_unstable_by(|&a, &b| {
                let (first, second) = (values[a as usize], values[b as usize]);
                first.total_cmp(&second).then(a.cmp(&b))
            });
        }
        start = end as usize;
    }
    order
}

impl<'a> Tier<'a> {
    /// Competitors `players`, drafted others `present`, and the mass of those that
    /// must not be drafted.
    pub(super) fn new(
        times: &'a Times,
        drafts: usize,
        reject: f64,
        rows: (&[f64], &[f64]),
        players: &[u32],
        present: &[f64],
        absent: f64,
    ) -> Self {
        let (target, draft) = rows;
        let q_of = |token: u32| draft[token as usize];
        let mut heavy: Vec<u32> = Vec::new();
        let mut sizes = [0; TERMS + 1];
        let needed: Scratch<u32> = (players.iter())
            .map(|&token| {
                let terms = times.terms(q_of(token)).unwrap_or(0);
                sizes[terms] += 1;
                terms as u32
            })
            .collect();
        let mut by_terms = sizes.map(Scratch::with_capacity);
        for (&token, &terms) in players.iter().zip(&needed) {
            match terms {
                0 => heavy.push(token),
                _ => by_terms[terms as usize].push(token),
            }
        }
        let light = compensated_sum(by_terms.iter().flatten().map(|&token| q_of(token)));
        let base = base(times, drafts, present, absent);
        let heavy_mass: Vec<f64> = heavy.iter().map(|&token| q_of(token)).collect();
        let race = Race::new(times, drafts, reject, heavy_mass, light, base);
        let scaled = |tokens: &[u32]| -> Scratch<f64> {
            tokens.iter().map(|&t| q_of(t) * times.scale).collect()
        };
        let classes: Vec<Class> = (by_terms.iter().enumerate())
            .filter(|(_, tokens)| !tokens.is_empty())
            .map(|(terms, tokens)| Class::new(terms, scaled(tokens)))
            .collect();
        let (up, total) = race.drafted(times, &classes, true);
        let low = if reject > 0.0 {
            Scratch::filled(up.len(), 0.0)
        } else {
            race.drafted(times, &classes, false).0
        };
        let mut tokens = Scratch::with_capacity(players.len());
        for own in [&heavy[..]]
            .into_iter()
            .chain(by_terms.iter().map(|own| &own[..]))
        {
            tokens.extend_from_slice(own);
        }
        let wanted: Scratch<f64> = tokens.iter().map(|&t| target[t as usize]).collect();
        let mut goal = Scratch::filled(tokens.len(), 0.0);
        coordinates(&wanted, &low, &up, &mut goal);
        let mut tier = Self {
            times,
            mass: tokens.iter().map(|&token| q_of(token)).collect(),
            race,
            tokens,
            items: Items {
                classes,
                wanted,
                low,
                up,
                goal,
            },
            total,
        };
        tier.sort();
        tier
    }

    /// Light tokens of a class by where the target lies between its bounds.
    fn sort(&mut self) {
        fn arrange<T: Entry>(order: &[u32], values: &mut [T]) {
            let sorted: Scratch<T> = order.iter().map(|&item| values[item as usize]).collect();
            values.copy_from_slice(&sorted);
        }
        let mut start = self.race.heavy.len();
        let Items {
            classes,
            wanted,
            low,
            up,
            goal,
        } = &mut self.items;
        for class in classes {
            let own = start..start + class.len();
            start = own.end;
            let order = ascending(&goal[own.clone()]);
            arrange(&order, &mut self.tokens[own.clone()]);
            for values in [
                &mut self.mass,
                &mut *wanted,
                &mut *low,
                &mut *up,
                &mut *goal,
            ] {
                arrange(&order, &mut values[own.clone()]);
            }
            for moments in &mut class.moments {
                arrange(&order, moments);
            }
        }
    }

    pub(super) fn outer(&self) -> bool {
        self.race.reject == 0.0
    }

    fn floor(&self) -> f64 {
        if !self.outer() {
            FLOOR_INNER
        } else if self.tokens.len() <= FEW {
            FLOOR_OUTER_FEW
        } else {
            FLOOR_OUTER
        }
    }

    pub(super) fn emission(
        &self,
        items: &Items,
        theta: &[f64],
        resolution: Resolution,
        couple: bool,
    ) -> Emitted {
        self.race
            .emission(self.times, &items.classes, theta, resolution, couple)
    }

    /// Whether an item stays at a bound that it pushes against.
    pub(super) fn held(&self, theta: f64, lacking: f64) -> bool {
        (self.outer() && theta >= 0.0 && lacking > 0.0)
            || (theta <= self.floor() && lacking < 0.0)
            || (!self.outer() && theta >= CEILING && lacking > 0.0)
    }

    /// Sum of |wanted - emitted| over the items that are not held.
    pub(super) fn residual(&self, items: &Items, theta: &[f64], emitted: &Emitted) -> f64 {
        let terms = items.wanted.iter().zip(&emitted.value).zip(theta);
        terms
            .filter(|((wanted, value), theta)| !self.held(**theta, *wanted - *value))
            .map(|((wanted, value), _)| (wanted - value).abs())
            .sum()
    }

    pub(super) fn bounded(&self, theta: &mut [f64]) {
        if self.outer() {
            for theta in theta.iter_mut() {
                *theta = theta.min(0.0);
            }
            let most = theta.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for theta in theta.iter_mut() {
                *theta = (*theta - most).max(self.floor());
            }
        } else {
            for theta in theta.iter_mut() {
                *theta = theta.clamp(FLOOR_INNER, CEILING);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn cells_sort_as_sorting_does() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for count in [0usize, 1, 2, 3, 50, 2000] {
            for kinds in [1, 3, 1_000_000] {
                let values: Vec<f64> = (0..count)
                    .map(|_| match rng.random_range(0..kinds) {
                        0 => 7.25,
                        1 => 7.25 + 1e-14,
                        2 => -FARTHEST,
                        _ => rng.random_range(-FARTHEST..FARTHEST),
                    })
                    .collect();
                let mut sorted: Vec<u32> = (0..count as u32).collect();
                sorted.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
                assert_eq!(ascending(&values)[..], sorted[..]);
            }
        }
    }

    /// A weight of which nothing is left in `f64` has no integral to be in: nothing is emitted.
    #[test]
    fn a_weight_of_zero_emits_nothing_at_all() {
        let rows = ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2]);
        let times = Times::new(&rows.1, 2);
        let tier = Tier::new(&times, 2, 0.0, (&rows.0, &rows.1), &[0, 1, 2], &[], 0.0);
        let emitted = |theta: &[f64]| {
            let emitted = tier.emission(&tier.items, theta, Resolution::Fine, false);
            emitted.value.iter().sum::<f64>()
        };
        assert!((emitted(&[0.0, -1.0, -2.0]) - 1.0).abs() < 1e-12);
        assert_eq!(emitted(&[0.0, -1.0, -1000.0]), 0.0);
    }

    #[test]
    fn the_coordinate_is_the_logarithm_of_odds() {
        for value in [0.1f64, 0.3, 0.500000001, 0.899999] {
            let direct = ((value - 0.1) / (0.9 - value)).ln().max(-FARTHEST);
            assert!((coordinate(value, 0.1, 0.9) - direct).abs() < 1e-14 * direct.abs().max(1.0));
        }
        assert_eq!(coordinate(0.9, 0.1, 0.9), FARTHEST);
        assert_eq!(coordinate(0.0, 0.0, 0.9), -FARTHEST);
        assert_eq!(coordinate(1.0, 0.0, 0.9), FARTHEST);
    }
}
