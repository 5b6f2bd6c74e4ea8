//! One tier: who competes, what each wants, and the bounds on its weights.
//!
//! In the *inner* tier, of H, tuples may be rejected. In the *outer* one, of all other
//! tokens, theta = log w <= 0, and a token that stands at 0 and wants more is held there.

use super::arrivals::TERMS;
use super::emission::{Emitted, base};
use super::race::{Class, Race};
use super::times::Times;
use crate::distribution::compensated_sum;
use crate::quadrature::Resolution;

/// Range of log w. In the outer tier the nodes in s reach down to the least weight;
/// few tokens can afford many.
const FLOOR_OUTER: f64 = -64.0;
const FLOOR_OUTER_FEW: f64 = -250.0;
const FEW: usize = 64;
pub(super) const FLOOR_INNER: f64 = -600.0;
pub(super) const CEILING: f64 = 90.0;

/// Tokens or groups: heavy tokens first, then the classes in order.
#[derive(Clone, Debug)]
pub(super) struct Items {
    pub(super) classes: Vec<Class>,
    pub(super) wanted: Vec<f64>,
    /// Emission at weight 0 and at infinite weight.
    pub(super) low: Vec<f64>,
    pub(super) up: Vec<f64>,
}

/// One tier, ready to be solved.
#[derive(Clone, Debug)]
pub(super) struct Tier<'a> {
    pub(super) times: &'a Times,
    pub(super) race: Race,
    /// Token of every item.
    pub(super) tokens: Vec<u32>,
    pub(super) items: Items,
    /// q of every item.
    pub(super) mass: Vec<f64>,
    /// Coordinate of every item.
    pub(super) at: Vec<f64>,
    /// Probability of the tier's tuples, by the same integral; in the outer tier, of
    /// all tuples.
    pub(super) total: f64,
}

/// The coordinate log((value - low)/(up - value)), in which log w is nearly linear.
pub(super) fn coordinate(value: f64, low: f64, up: f64) -> f64 {
    let (below, above) = ((value - low).max(1e-300), (up - value).max(1e-300));
    (below / above).ln().clamp(-60.0, 60.0)
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
        let mut by_terms: Vec<Vec<u32>> = vec![Vec::new(); TERMS + 1];
        for &token in players {
            match times.terms(q_of(token)) {
                Some(terms) => by_terms[terms].push(token),
                None => heavy.push(token),
            }
        }
        let light = compensated_sum(by_terms.iter().flatten().map(|&token| q_of(token)));
        let base = base(times, drafts, present, absent);
        let heavy_mass: Vec<f64> = heavy.iter().map(|&token| q_of(token)).collect();
        let race = Race::new(times, drafts, reject, heavy_mass, light, base);
        let classes_of = |by_terms: &[Vec<u32>]| -> Vec<Class> {
            let used = by_terms
                .iter()
                .enumerate()
                .filter(|(_, tokens)| !tokens.is_empty());
            used.map(|(terms, tokens)| Class {
                terms,
                moments: {
                    let scaled: Vec<f64> = tokens
                        .iter()
                        .map(|&token| q_of(token) * times.scale)
                        .collect();
                    let mut moments = vec![scaled.clone()];
                    for k in 1..terms {
                        let power = moments[k - 1].iter().zip(&scaled);
                        moments.push(power.map(|(power, q)| power * q).collect());
                    }
                    moments
                },
            })
            .collect()
        };
        let list = |by_terms: &[Vec<u32>]| -> Vec<u32> {
            heavy
                .iter()
                .chain(by_terms.iter().flatten())
                .copied()
                .collect()
        };
        let bounds = |classes: &[Class]| -> (Vec<f64>, Vec<f64>, f64) {
            let (up, total) = race.drafted(times, classes, true);
            let low = if reject > 0.0 {
                vec![0.0; up.len()]
            } else {
                race.drafted(times, classes, false).0
            };
            (low, up, total)
        };
        // Sorted within each class by where the target lies between its bounds.
        let classes = classes_of(&by_terms);
        let (low, up, _) = bounds(&classes);
        let mut start = heavy.len();
        for tokens in by_terms.iter_mut().filter(|tokens| !tokens.is_empty()) {
            let mut keyed: Vec<(f64, u32)> = tokens
                .iter()
                .enumerate()
                .map(|(item, &token)| {
                    let item = start + item;
                    (
                        coordinate(target[token as usize], low[item], up[item]),
                        token,
                    )
                })
                .collect();
            keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            start += tokens.len();
            *tokens = keyed.into_iter().map(|(_, token)| token).collect();
        }
        let classes = classes_of(&by_terms);
        let (low, up, total) = bounds(&classes);
        let tokens = list(&by_terms);
        let wanted: Vec<f64> = tokens.iter().map(|&token| target[token as usize]).collect();
        let at = (0..tokens.len())
            .map(|item| coordinate(wanted[item], low[item], up[item]))
            .collect();
        Self {
            times,
            mass: tokens.iter().map(|&token| q_of(token)).collect(),
            race,
            tokens,
            items: Items {
                classes,
                wanted,
                low,
                up,
            },
            at,
            total,
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
        let weights: Vec<f64> = theta.iter().map(|theta| theta.exp()).collect();
        self.race
            .emission(self.times, &items.classes, &weights, resolution, couple)
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
