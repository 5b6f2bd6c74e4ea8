//! Other rows in the place of p or q: tempered, cut, mixed, penalised, shifted.

use super::view::{CELLS, SHORT, View, cell, middle, total};
use crate::audit::model::engine::get;

/// The window of penalties that count what came otherwise than as a draft that was kept.
pub(crate) const UNDRAFTED: usize = 0;

/// A change of a row, by its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// At this many times the claimed temperature; 0 is greedy.
    Temperature(f64),
    /// Of the row as it is claimed, cut to so many tokens.
    TopK(usize),
    TopP(f64),
    MinP(f64),
    /// Tokens below this probability are lost.
    Floor(f64),
    /// Another order of the claimed cuts, by its place among all orders.
    Order(usize),
    /// A claimed cut that is not made: 0 none of them, 1 top-k, 2 top-p, 3 min-p.
    Uncut(u8),
    /// w p + (1 - w) q.
    Ensemble(f64),
    /// Tokens of a part of the ids, part `at` of `of`, times a factor.
    Range {
        of: u8,
        at: u8,
        factor: f64,
    },
    /// Tokens that came out in the window before have b less on their logits, before the temperature
    /// (frequency: as often as they came).
    Presence {
        b: f64,
        window: usize,
    },
    Frequency {
        b: f64,
        window: usize,
    },
    /// Logits of tokens that came out before are divided (above 0) or multiplied by this.
    Repetition(f64),
    /// What would repeat so many tokens is never drawn.
    NoRepeat(usize),
    /// Tokens that came before behind the token before come so many times as often there.
    Again(f64),
    /// Penalties that the row has and the engine does not: of the tokens of this round so far, or of
    /// every draft that was ever kept.
    Lag {
        b: f64,
        counts: bool,
        ever: bool,
    },
    /// The row of the place before.
    Before,
    /// Each token by how often it came so far, over how often it should have; so much is
    /// added to both.
    Learnt(f64),
    /// What should have come so often, and never did, never comes.
    Unseen(f64),
    /// All tokens alike.
    Uniform,
    /// The tokens that p has: of the draft's row, masked as the target's.
    Allowed,
}

/// A changed row, ready to be asked.
pub(crate) enum Changed<'a> {
    /// By the cell of a probability.
    Tilted {
        view: &'a View<'a>,
        weights: Vec<f64>,
        rest: f64,
    },
    /// Tokens of at least this probability.
    Cut {
        view: &'a View<'a>,
        least: f64,
        kept: usize,
        mass: f64,
    },
    Mixed {
        p: &'a [f64],
        q: &'a [f64],
        weight: f64,
    },
    /// Some tokens times a factor each; all over `norm`.
    Scaled {
        row: &'a [f64],
        factors: Vec<(usize, f64)>,
        norm: f64,
        lost: f64,
    },
    Range {
        row: &'a [f64],
        from: usize,
        to: usize,
        factor: f64,
        norm: f64,
        inside: f64,
    },
    Whole(&'a [f64]),
    Owned(Vec<f64>),
    /// Few tokens, by place; sorted.
    Few(Vec<(usize, f64)>),
    Flat(usize),
}

impl Changed<'_> {
    /// Returns what it gives a token.
    pub(crate) fn at(&self, place: usize) -> f64 {
        let of = |tokens: &[(usize, f64)]| {
            let found = tokens.binary_search_by_key(&place, |one| one.0);
            found.ok().and_then(|at| tokens.get(at)).map(|one| one.1)
        };
        match self {
            Self::Tilted { view, rest, .. } if view.is_rest(place) => *rest,
            Self::Tilted { view, weights, .. } => {
                let x = view.at(place);
                x * get(weights, cell(x))
            }
            Self::Cut {
                view, least, mass, ..
            } => {
                let x = view.at(place);
                match x >= *least && !view.is_rest(place) {
                    true => x / mass,
                    false => 0.0,
                }
            }
            Self::Mixed { p, q, weight } => weight * get(p, place) + (1.0 - weight) * get(q, place),
            Self::Scaled {
                row, factors, norm, ..
            } => get(row, place) * of(factors).unwrap_or(1.0) / norm,
            Self::Range {
                row,
                from,
                to,
                factor,
                norm,
                ..
            } => {
                let inside = (*from..*to).contains(&place);
                get(row, place) * if inside { *factor } else { 1.0 } / norm
            }
            Self::Whole(row) => get(row, place),
            Self::Owned(row) => get(row, place),
            Self::Few(tokens) => of(tokens).unwrap_or(0.0),
            Self::Flat(size) => match place < *size {
                true => 1.0 / *size as f64,
                false => 0.0,
            },
        }
    }

    /// The sum over the first `size` tokens of f(what it gives it, what another row has of it), where
    /// f is 0 at 0 mass. O(V), or what is left of a cut.
    pub(crate) fn sum<T: Copy + Default>(
        &self,
        other: &[T],
        size: usize,
        f: impl Fn(f64, T) -> f64,
    ) -> f64 {
        let size = size.min(other.len());
        let its = |other: &[T], place: usize| other.get(place).copied().unwrap_or_default();
        let other = other.get(..size).unwrap_or(other);
        // What kind of row it is, is asked once a row and not once a token.
        match self {
            Self::Cut {
                view, kept, mass, ..
            } => {
                let kept = view.order().iter().take(*kept);
                let kept = kept.map(|&token| token as usize);
                kept.map(|place| f(view.at(place) / mass, its(other, place)))
                    .sum()
            }
            Self::Few(tokens) => {
                let all = tokens.iter().filter(|(place, _)| *place < size);
                all.map(|(place, x)| f(*x, its(other, *place))).sum()
            }
            Self::Scaled {
                row, factors, norm, ..
            } => {
                let over = 1.0 / norm;
                let row = row.get(..size).unwrap_or(row);
                let plain = |place: usize| f(get(row, place) * over, its(other, place));
                let plain = total(row.len(), plain);
                let own = factors.iter().filter(|(place, _)| *place < size);
                own.fold(plain, |sum, (place, factor)| {
                    let (x, other) = (get(row, *place) * over, its(other, *place));
                    sum - f(x, other) + f(x * factor, other)
                })
            }
            Self::Tilted { view, weights, .. } if view.row.len() >= size => {
                let row = view.row.get(..size).unwrap_or(view.row);
                total(size, |place| {
                    let x = get(row, place);
                    f(x * get(weights, cell(x)), its(other, place))
                })
            }
            Self::Range {
                row,
                from,
                to,
                factor,
                norm,
                ..
            } => {
                let row = row.get(..size).unwrap_or(row);
                total(size, |place| {
                    let inside = place >= *from && place < *to;
                    let own = if inside { *factor } else { 1.0 };
                    f(get(row, place) * own / norm, its(other, place))
                })
            }
            Self::Mixed { p, q, weight } => total(size, |place| {
                let x = weight * get(p, place) + (1.0 - weight) * get(q, place);
                f(x, its(other, place))
            }),
            Self::Whole(row) => total(size, |place| f(get(row, place), its(other, place))),
            Self::Owned(row) => total(size, |place| f(get(row, place), its(other, place))),
            _ => total(size, |place| f(self.at(place), its(other, place))),
        }
    }

    /// Returns how much is moved from the row at most: total variation, or a bound of it.
    pub(crate) fn moved(&self, row: &[f64]) -> f64 {
        match self {
            Self::Cut { mass, .. } => (1.0 - mass).max(0.0),
            Self::Scaled { lost, .. } => lost.abs().min(1.0),
            Self::Range {
                factor,
                norm,
                inside,
                ..
            } => (inside * (factor / norm - 1.0)).abs(),
            Self::Tilted {
                view,
                weights,
                rest,
            } => {
                let masses = view.masses().iter().zip(weights);
                let listed = masses.map(|(mass, weight)| mass * (weight - 1.0).max(0.0));
                listed.sum::<f64>() + (rest - view.unlisted()).max(0.0)
            }
            Self::Few(tokens) => {
                let moved = |(place, x): &(usize, f64)| (x - get(row, *place)).max(0.0);
                tokens.iter().map(moved).sum()
            }
            _ => total(row.len(), |place| {
                (self.at(place) - get(row, place)).max(0.0)
            }),
        }
    }

    /// Lists what it gives each of `size` tokens.
    pub(crate) fn row(&self, size: usize) -> Vec<f64> {
        (0..size).map(|place| self.at(place)).collect()
    }
}

/// A row at another temperature, by cells: an exact law that is within a sixteenth of an octave of
/// the true one.
///
/// Short rows are raised to their power exactly.
pub(crate) fn tilted<'a>(view: &'a View<'a>, factor: f64) -> Changed<'a> {
    if view.row.len() <= SHORT && !view.rest {
        let largest = view.largest();
        let power = |x: &f64| (x / largest).powf(1.0 / factor);
        let mut row: Vec<f64> = view.row.iter().map(power).collect();
        return match specgap_core::rule::normalise(&mut row) {
            true => Changed::Owned(row),
            false => Changed::Whole(view.row),
        };
    }
    let power = 1.0 / factor - 1.0;
    let top = view.largest().ln();
    let mut weights: Vec<f64> = vec![0.0; CELLS];
    let mut all = 0.0;
    let mut last = 0;
    for (place, (weight, mass)) in weights.iter_mut().zip(view.masses()).enumerate() {
        if *mass > 0.0 {
            *weight = (power * (middle(place) - top)).exp();
            all += *mass * *weight;
            last = place;
        }
    }
    let own = view.unlisted();
    // Unlisted tokens are lighter than those that are listed.
    let rest = own * (power * (middle(last) - 2f64.ln() - top)).exp();
    all += rest;
    if !(all > 0.0 && all.is_finite()) {
        return Changed::Whole(view.row);
    }
    weights.iter_mut().for_each(|weight| *weight /= all);
    Changed::Tilted {
        view,
        weights,
        rest: rest / all,
    }
}

/// The tokens of a row that have at least this probability; `None` where that is all of it.
pub(crate) fn cut<'a>(view: &'a View<'a>, least: Option<f64>) -> Option<Changed<'a>> {
    let least = least?;
    let (kept, mass) = view.down_to(least);
    // Where the last token in order is kept, what lies beyond is not known to be cut.
    let cuts = kept > 0 && kept < view.order().len() && mass < 1.0 - 1e-9;
    cuts.then_some(Changed::Cut {
        view,
        least,
        kept,
        mass,
    })
}

/// Tokens of a row times factors; `None` where nothing changes or nothing is left.
pub(crate) fn scaled<'a>(row: &'a [f64], mut factors: Vec<(usize, f64)>) -> Option<Changed<'a>> {
    factors.sort_unstable_by_key(|one| one.0);
    factors.dedup_by_key(|one| one.0);
    let gained = |(place, factor): &(usize, f64)| get(row, *place) * (factor - 1.0);
    let gained: f64 = factors.iter().map(gained).sum();
    let mut norm = 1.0 + gained;
    if norm < 0.5 {
        // What is left of a row that is scaled away keeps its digits.
        let mut plain = row.to_vec();
        for (place, factor) in &factors {
            if let Some(x) = plain.get_mut(*place) {
                *x *= factor;
            }
        }
        norm = total(plain.len(), |place| get(&plain, place));
    }
    (norm > 1e-9 && gained.abs() > 1e-12).then_some(Changed::Scaled {
        row,
        factors,
        norm,
        lost: gained / norm.min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tilted row against its definition.
    #[test]
    fn tilts_are_powers() {
        let row = [0.4, 0.25, 0.17, 0.1, 0.05, 0.02, 0.0099, 0.0001];
        let view = View::new(&row, false);
        for factor in [0.3, 0.7, 1.4, 2.5, 3.0] {
            let tilt = tilted(&view, factor);
            let powers = row.map(|x| x.powf(1.0 / factor));
            let sum: f64 = powers.iter().sum();
            let mut total = 0.0;
            for (place, power) in powers.iter().enumerate() {
                let (found, power) = (tilt.at(place), power / sum);
                total += found;
                let off = (found / power - 1.0).abs();
                assert!(off < 0.1, "{factor} {place}: {found} {power}");
            }
            assert!((total - 1.0).abs() < 1e-12);
        }
    }
}
