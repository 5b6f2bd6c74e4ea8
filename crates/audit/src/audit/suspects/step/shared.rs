//! A target that draws with the numbers that drew the draft.

use super::{Here, Told};
use crate::audit::model::engine::{get, race};
use crate::audit::suspects::family::{Shared, shares_numbers};
use crate::audit::suspects::view::{View, by_id, common, total};
use specgap_core::rule::normalise;

/// The share of steps that follow the claim all the same: rows that are off by rounding move the ends of
/// cells, and what lies beyond one is not impossible.
const OFF: f64 = 0.02;

impl Here<'_> {
    /// Returns how often the draft is kept if the target draws with its numbers, by [`Shared`]. O(V) at first.
    pub(crate) fn shared(&self) -> &[f64; 3] {
        self.made.shared.get_or_init(|| {
            let draft = self.draft().filter(|x| self.q.at(*x) > 0.0);
            let Some(x) = draft.filter(|_| shares_numbers(self.rule)) else {
                return [0.0; 3];
            };
            let (p, q) = (self.p.row, self.q.row);
            let own = self.q.at(x);
            let by_id = common(by_id(p, x), by_id(q, x)) / own;
            let by_mass = match [&self.p, &self.q].map(|row| place_of(row, x)) {
                [Some(p), Some(q)] => common(p, q) / own,
                _ => 0.0,
            };
            let until = own / self.p.at(x);
            let before = |place| (until * self.p.at(place) - self.q.at(place)).max(0.0);
            let clocks = match until.is_finite() {
                true => 1.0 / (1.0 + total(p.len(), before)),
                false => 0.0,
            };
            [by_id, by_mass, clocks].map(|keep| keep.min(1.0))
        })
    }

    pub(super) fn shares(&self, numbers: Shared) -> Told {
        let mut told = Told::NOTHING;
        let draft = self.draft().filter(|_| self.is_plain() && !self.p.rest);
        if draft.is_none_or(|x| self.q.at(x) <= 0.0) {
            return told;
        }
        let mixed = |claim: f64, own: f64| OFF * claim + (1.0 - OFF) * own;
        let keep = self.shared()[numbers as usize];
        self.accept(&mut told, mixed(self.known.keep, keep));
        if !self.kept {
            let law = &self.instead()[numbers as usize];
            told.rule[2] =
                self.on_correction(|place| mixed(self.correction(place), get(law, place)));
        }
        told
    }

    /// Returns the laws of the target's token, given that it is another than the draft, by [`Shared`].
    ///
    /// O(V) and a sort, at first.
    pub(super) fn instead(&self) -> &[Vec<f64>; 3] {
        self.made.instead.get_or_init(|| {
            let Some(x) = self.draft().filter(|_| shares_numbers(self.rule)) else {
                return [const { Vec::new() }; 3];
            };
            let (p, q) = (self.p.row, self.q.row);
            let common_with = |drawn: [f64; 2], order: &mut dyn Iterator<Item = usize>| {
                let mut law = vec![0.0; p.len()];
                let mut below = 0.0;
                for place in order {
                    let end = below + self.p.at(place);
                    if let Some(one) = law.get_mut(place) {
                        *one = common([below, end], drawn);
                    }
                    below = end;
                }
                law
            };
            let mut order = self.p.order().iter().map(|place| *place as usize);
            let mut laws = [
                common_with(by_id(q, x), &mut (0..p.len())),
                common_with(place_of(&self.q, x).unwrap_or_default(), &mut order),
                race(p, q, self.q.at(x) / self.p.at(x)),
            ];
            for law in &mut laws {
                if let Some(one) = law.get_mut(x) {
                    *one = 0.0;
                }
                normalise(law);
            }
            laws
        })
    }
}

/// Where the numbers lie that draw a token by falling mass, if it is among the heaviest.
fn place_of(row: &View<'_>, place: usize) -> Option<[f64; 2]> {
    let mut below = 0.0;
    for &other in row.order() {
        let own = row.at(other as usize);
        if other as usize == place {
            return Some([below, below + own]);
        }
        below += own;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// The law of the target's token given the draft x, itself included.
    fn given(p: &[f64], q: &[f64], x: usize) -> Vec<f64> {
        let until = q[x] / p[x];
        let mut law = race(p, q, until);
        let before = p.iter().zip(q).map(|(p, q)| (until * p - q).max(0.0));
        law[x] = if p[x] > 0.0 {
            1.0 / (1.0 + before.sum::<f64>())
        } else {
            0.0
        };
        law
    }

    /// Whatever is drafted, something comes out; and what comes out follows p.
    #[test]
    fn clocks_have_the_rows_as_margins() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        for _ in 0..300 {
            let size = random.random_range(2..9);
            let [p, q] = [(); 2].map(|()| {
                let is_zero = |random: &mut ChaCha8Rng| random.random_range(0..5) == 0;
                let mass = |random: &mut ChaCha8Rng| match is_zero(random) {
                    true => 0.0,
                    false => random.random::<f64>().powi(4),
                };
                let mut row: Vec<f64> = (0..size).map(|_| mass(&mut random)).collect();
                row[random.random_range(0..size)] += 0.1;
                specgap_core::rule::normalise(&mut row);
                row
            });
            let mut sums = vec![0.0; size];
            for x in (0..size).filter(|x| q[*x] > 0.0) {
                let law = given(&p, &q, x);
                let all: f64 = law.iter().sum();
                assert!((all - 1.0).abs() < 1e-12, "{p:?} {q:?} {x}: {all}");
                for (sum, more) in sums.iter_mut().zip(law) {
                    *sum += q[x] * more;
                }
            }
            for (sum, own) in sums.iter().zip(&p) {
                assert!((sum - own).abs() < 1e-12, "{p:?} {q:?}: {sums:?}");
            }
        }
    }

    /// As often as clocks that are run say.
    #[test]
    fn clocks_are_those_that_run() {
        const RUNS: usize = 200_000;
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let [p, q] = [[0.5, 0.25, 0.15, 0.1], [0.1, 0.3, 0.2, 0.4]];
        let mut counts = [[0usize; 4]; 4];
        for _ in 0..RUNS {
            let clocks = [(); 4].map(|()| -random.random::<f64>().ln());
            let first = |row: [f64; 4]| {
                let by = |place: &usize| clocks[*place] / row[*place];
                (0..4).min_by(|a, b| by(a).total_cmp(&by(b))).unwrap()
            };
            counts[first(q)][first(p)] += 1;
        }
        for (x, row) in counts.iter().enumerate() {
            let law = given(&p, &q, x);
            for (count, law) in row.iter().zip(law) {
                let expected = q[x] * law;
                let off = *count as f64 / RUNS as f64 - expected;
                let spread = (expected * (1.0 - expected) / RUNS as f64).sqrt();
                assert!(off.abs() <= 5.0 * spread + 1e-9, "{x}: {off}, {expected}");
            }
        }
    }
}
