//! Sequential draws that a clock may stop.

use crate::scheme::combinations::{Ranking, falling_factorial, for_each_combination, over_subsets};
use crate::scheme::{DraftScheme, WithoutReplacement, choose, race};
use specgap_number::distribution::{Draft, Rational, token_id};
use specgap_number::number::{Number, RunningSum};

/// Q of nothing, Q along a chain, and a bound on the error of every entry.
pub(super) struct Chain<M> {
    pub(super) empty: M,
    pub(super) inside: Vec<M>,
    pub(super) error: f64,
}

/// At most `draws` sequential draws from q, in a race with a clock of rate `stop`, q having
/// rate 1 in all. Before each draw drafting ends with probability
/// `stop / (stop + q of what is left)`, so that nothing may be drafted at all.
#[derive(Clone, Debug)]
pub(super) struct Stopped {
    pub(super) draft: Draft,
    pub(super) draws: usize,
    stop: Rational,
    stop_float: f64,
    support: Vec<usize>,
    /// q and the clock, as one row of V + 1 tokens that are drawn without it.
    race: Option<WithoutReplacement>,
}

impl Stopped {
    /// `draws` and `stop` above 0.
    pub(super) fn new(draft: Draft, draws: usize, stop: Rational) -> Self {
        let stop_float = stop.to_f64();
        let whole = 1.0 + stop_float;
        let row = draft.probabilities().iter().chain([&stop_float]);
        let row: Vec<f64> = row.map(|mass| mass / whole).collect();
        let race = Draft::new(&row).ok();
        Self {
            draws,
            stop,
            stop_float,
            race: race.map(|row| WithoutReplacement::new(row, draws)),
            support: draft.support(),
            draft,
        }
    }

    /// The most that can be drawn.
    fn most(&self) -> usize {
        self.draws.min(self.support.len())
    }

    fn rate<M: Rate>(&self) -> M {
        M::of(&self.stop, self.stop_float)
    }

    /// q of the support without the tokens at `drawn`, ascending places of the support.
    fn left<M: Number>(row: &[M], support: &[usize], drawn: &[usize]) -> M {
        let mut sum = M::Sum::default();
        let mut next = 0;
        for (place, &token) in support.iter().enumerate() {
            if drawn.get(next) == Some(&place) {
                next += 1;
            } else {
                sum.add(&row[token]);
            }
        }
        sum.value()
    }

    /// Every set that can be drafted, by growing subsets.
    pub(super) fn sets<M: Rate>(&self, visit: &mut dyn FnMut(&[u32], M)) {
        let (row, stop) = (M::row(&self.draft), self.rate::<M>());
        let draws = self.draws.min(self.support.len());
        let ranking = Ranking::new(self.support.len(), draws);
        let mut level = vec![M::one()];
        let mut tokens: Vec<u32> = Vec::with_capacity(draws);
        for size in 0..=draws {
            // What reaches each subset of this size: goes on from it, or ends there.
            let mut share = Vec::with_capacity(level.len());
            let mut index = 0;
            for_each_combination(self.support.len(), size, |subset| {
                let reached = &level[index];
                index += 1;
                let (ends, on) = if size == draws {
                    (reached.clone(), M::zero())
                } else {
                    let whole = stop.plus(&Self::left(&row, &self.support, subset));
                    let on = reached.over(&whole);
                    (on.times(&stop), on)
                };
                share.push(on);
                tokens.clear();
                tokens.extend(subset.iter().map(|&place| token_id(self.support[place])));
                visit(&tokens, ends);
            });
            if size == draws {
                return;
            }
            let mut next = Vec::with_capacity(ranking.choose(self.support.len(), size + 1));
            for_each_combination(self.support.len(), size + 1, |subset| {
                let mut mass = M::Sum::default();
                for &place in subset {
                    let before = subset.iter().copied().filter(|other| *other != place);
                    let from = &share[ranking.rank(before)];
                    mass.add(&from.times(&row[self.support[place]]));
                }
                next.push(mass.value());
            });
            level = next;
        }
    }

    /// Every tuple, those that end early included.
    pub(super) fn tuples<M: Rate>(&self, visit: &mut dyn FnMut(&[u32], &M)) {
        struct Walk<'a, M> {
            stopped: &'a Stopped,
            row: Vec<M>,
            stop: M,
            drawn: Vec<usize>,
            tuple: Vec<u32>,
        }
        fn descend<M: Rate>(walk: &mut Walk<'_, M>, mass: &M, visit: &mut dyn FnMut(&[u32], &M)) {
            let support = &walk.stopped.support;
            if walk.drawn.len() == walk.stopped.draws.min(support.len()) {
                visit(&walk.tuple, mass);
                return;
            }
            let mut sorted = walk.drawn.clone();
            sorted.sort_unstable();
            let whole = (walk.stop).plus(&Stopped::left(&walk.row, support, &sorted));
            let on = mass.over(&whole);
            visit(&walk.tuple, &on.times(&walk.stop));
            for place in (0..support.len()).filter(|place| !sorted.contains(place)) {
                let token = support[place];
                walk.drawn.push(place);
                walk.tuple.push(token_id(token));
                let next = on.times(&walk.row[token]);
                descend(walk, &next, visit);
                walk.drawn.pop();
                walk.tuple.pop();
            }
        }
        let mut walk = Walk {
            stopped: self,
            row: M::row(&self.draft),
            stop: self.rate::<M>(),
            drawn: Vec::new(),
            tuple: Vec::new(),
        };
        descend(&mut walk, &M::one(), visit);
    }

    /// P(just `set` is drafted), summed over the orders of the set.
    pub(super) fn set_mass<M: Rate>(&self, set: &[u32]) -> M {
        let place = |&token: &u32| self.support.binary_search(&(token as usize)).ok();
        let places: Option<Vec<usize>> = set.iter().map(place).collect();
        let draws = self.most();
        let Some(places) = places.filter(|places| places.len() <= draws) else {
            return M::zero();
        };
        let (row, stop) = (M::row(&self.draft), self.rate::<M>());
        let mut reached = vec![M::zero(); 1 << places.len()];
        reached[0] = M::one();
        for mask in 0..reached.len() {
            let drawn = (0..places.len()).filter(|bit| mask >> bit & 1 == 1);
            let drawn: Vec<usize> = drawn.map(|bit| places[bit]).collect();
            let whole = stop.plus(&Self::left(&row, &self.support, &drawn));
            let on = reached[mask].over(&whole);
            if mask + 1 == reached.len() {
                return if drawn.len() == draws {
                    reached[mask].clone()
                } else {
                    on.times(&stop)
                };
            }
            for bit in (0..places.len()).filter(|bit| mask >> bit & 1 == 0) {
                let gain = on.times(&row[self.support[places[bit]]]);
                reached[mask | 1 << bit].gain(&gain);
            }
        }
        M::zero()
    }

    /// Q of nothing, and of the prefixes of `order`, exactly.
    pub(super) fn scan_exact(&self, order: &[usize]) -> (Rational, Vec<Rational>) {
        let mut place = vec![usize::MAX; self.draft.vocab()];
        for (position, &token) in order.iter().enumerate() {
            place[token] = position;
        }
        let mut empty = Rational::zero();
        let mut gained = vec![Rational::zero(); order.len()];
        self.sets(&mut |set, mass: Rational| {
            let places = set.iter().map(|&token| place[token as usize]);
            match places.max() {
                None => empty.gain(&mass),
                Some(usize::MAX) => {}
                Some(last) => gained[last].gain(&mass),
            }
        });
        let mut held = empty.clone();
        let inside = gained.iter().map(|gain| {
            held.gain(gain);
            held.clone()
        });
        (empty, inside.collect())
    }

    /// The same in `f64`, with a bound on the error.
    ///
    /// Let s = 1 - q(H), and A = P(n clocks of H ring before any outside, the stop included):
    /// that is Q of sequential draws from q and the stop. Else the first ring outside comes
    /// first, and it is the stop's with probability `stop / (stop + s)`, whatever its time.
    /// So Q(H) = A + (1 - A) stop/(stop + s).
    pub(super) fn scan(&self, order: &[usize]) -> Chain<f64> {
        let empty = self.stop_float / (1.0 + self.stop_float);
        let Some(race) = &self.race else {
            // No row: the rate leaves the range of f64.
            return Chain {
                empty,
                inside: vec![0.0; order.len()],
                error: 1.0,
            };
        };
        let scan = race.prefix_scan(order);
        let outside = race::outside_masses(self.draft.probabilities(), order);
        let inside = scan.inside.iter().zip(outside).map(|(&all, outside)| {
            let stopped = self.stop_float / (self.stop_float + outside);
            (all + (1.0 - all) * stopped).clamp(0.0, 1.0)
        });
        // The row of V + 1 is rounded once more: Q moves by at most n TV.
        let rounded = 4.0 * (self.draws as f64 + 2.0) * f64::EPSILON;
        Chain {
            empty,
            inside: inside.collect(),
            error: scan.absolute_error + rounded,
        }
    }

    pub(super) fn tuple_count(&self) -> f64 {
        let support = self.support.len();
        (0..=self.most())
            .map(|size| falling_factorial(support, size))
            .sum()
    }

    pub(super) fn set_count(&self) -> f64 {
        let support = self.support.len();
        (0..=self.most()).map(|size| choose(support, size)).sum()
    }

    pub(super) fn law_cost(&self) -> f64 {
        let support = self.support.len();
        over_subsets(support, self.draws, |size| (size * size + support) as f64) + 1.0
    }

    pub(super) fn exact_bits(&self) -> f64 {
        let support = self.support.len();
        let denominators: f64 = (0..self.most()).map(|size| choose(support, size)).sum();
        let bits = self.draft.exact_bits() + self.stop.denom().bits() + self.stop.numer().bits();
        bits as f64 * (denominators + 1.0)
    }

    pub(super) fn relative_error(&self) -> f64 {
        let n = self.draws as f64;
        2.0 * (n + 2.0) * (n + 8.0) * f64::EPSILON
    }
}

/// A rate that is known as a fraction and as the nearest `f64`.
pub(super) trait Rate: Number {
    fn of(exact: &Rational, float: f64) -> Self;
}

impl Rate for f64 {
    fn of(_: &Rational, float: f64) -> Self {
        float
    }
}

impl Rate for Rational {
    fn of(exact: &Rational, _: f64) -> Self {
        exact.clone()
    }
}
