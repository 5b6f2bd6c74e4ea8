//! One price for all nodes: how many children each gets, from its row and its chance to be kept.

use super::topology::Shape;
use serde::{Deserialize, Serialize};

/// The version of a price's file.
pub const PRICE_SCHEMA: u32 = 1;

/// Rows that what is ahead is a mean over, at most.
const MOST_ROWS: usize = 2048;
/// log2 of the least price.
pub const LEAST_PRICE: i32 = -10;
/// Steps of a node's worth, in prices, to each doubling.
const STEPS: i32 = 6;

/// How an engine's drafter shapes its trees at one price for every node, depth, row and request: a
/// node gets the children that are worth most, each at its chance to be accepted, less the price, and
/// with what lies ahead of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// [`PRICE_SCHEMA`].
    pub schema: u32,
    /// The law of a node's children.
    pub law: String,
    /// lambda: accepted tokens that one more draft token has to bring. The rest holds at any price
    /// from 2^-10 to 1.
    pub price: f64,
    /// The most levels of a tree.
    pub levels: usize,
    /// The most children of a node.
    pub children: usize,
    /// Largest probabilities of a row that are told apart.
    pub heaviest: usize,
    /// Rising probabilities.
    pub q: Vec<f64>,
    /// Rising factors c: how likely a token is drafted, over its q. That of a draft of a stratum is the
    /// number of strata over their mass, that of a sure token 1/q.
    pub factor: Vec<f64>,
    /// By q, then factor: the mean of min(p/q, c) over tokens of such a q. A draft is accepted with that
    /// over c.
    pub ratio: Vec<Vec<f64>>,
    /// The same of all tokens that are not told apart, by factor: the mean under q.
    pub rest: Vec<f64>,
    /// Worths of a node: its chance to be accepted, in prices.
    pub worth: Vec<f64>,
    /// By levels left behind a node, and worth: what lies ahead of it, in prices.
    pub ahead: Vec<Vec<f64>>,
}

/// What of a position's rows decides on children there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PricedRow {
    /// The largest q, falling.
    pub heaviest: Vec<f64>,
    /// p of these.
    pub target: Vec<f64>,
    /// q of all others together.
    pub left: f64,
    /// By factor: sum of min(p, c q) of all others.
    pub rest: Vec<f64>,
    /// The text's token among the heaviest; their number where it is none of them.
    pub token: usize,
}

/// Counts the sure tokens among a node's children and the drafts of strata; with the factor of these.
pub fn cut(heaviest: &[f64], children: usize) -> (usize, usize, f64) {
    let (mut sure, mut left) = (0, 1.0);
    while sure + 1 < children {
        match heaviest.get(sure) {
            // A token of a whole stratum is sure in spite of rounding.
            Some(&q)
                if q > 0.0 && (children - sure) as f64 * q >= left * (1.0 - 2f64.powi(-40)) =>
            {
                left -= q;
                sure += 1;
            }
            _ => break,
        }
    }
    let strata = if left > 1e-9 { children - sure } else { 0 };
    (sure, strata, strata as f64 / left.max(1e-9))
}

/// Finds so many of the heaviest tokens, heaviest first and of like ones the lowest first. O(V).
pub fn heaviest(q: &[f64], count: usize) -> Vec<usize> {
    let mut ids: Vec<usize> = Vec::with_capacity(count + 1);
    for (id, &mass) in q.iter().enumerate() {
        if ids.len() < count || ids.last().is_some_and(|&last| q[last] < mass) {
            ids.insert(ids.partition_point(|&other| q[other] >= mass), id);
            ids.truncate(count);
        }
    }
    ids
}

/// How a round's tree is shaped.
#[derive(Clone, Copy, Debug)]
pub enum Shaped<'a> {
    /// The same in every round.
    One(&'a Shape),
    /// By the draft's rows, at one price for all nodes.
    Priced(&'a Price),
}

impl Shaped<'_> {
    /// Its most levels below the root.
    pub fn levels(self) -> usize {
        match self {
            Self::One(shape) => shape.levels(),
            Self::Priced(price) => price.levels,
        }
    }

    /// Numbers of children that nodes may have, but for none; rising.
    pub fn counts(self) -> Vec<usize> {
        let mut counts = match self {
            Self::One(shape) => shape.children.clone(),
            Self::Priced(price) => (1..=price.children).collect(),
        };
        counts.sort_unstable();
        counts.dedup();
        counts.retain(|&count| count > 0);
        counts
    }
}

impl PricedRow {
    /// Reads both rows and the text's token, and tells so many of the heaviest apart. O(V).
    pub fn of(p: &[f64], q: &[f64], token: usize, count: usize) -> Self {
        let ids = heaviest(q, count);
        let at = |row: &[f64]| ids.iter().map(|&id| row[id]).collect::<Vec<f64>>();
        let (heaviest, target) = (at(q), at(p));
        let rest = powers(0, -LEAST_PRICE, 1).into_iter().map(|c| {
            let all: f64 = p.iter().zip(q).map(|(p, q)| p.min(c * q)).sum();
            let own = target.iter().zip(&heaviest).map(|(p, q)| p.min(c * q));
            (all - own.sum::<f64>()).max(0.0)
        });
        Self {
            rest: rest.collect(),
            left: (q.iter().sum::<f64>() - heaviest.iter().sum::<f64>()).max(0.0),
            token: ids.iter().position(|&id| id == token).unwrap_or(ids.len()),
            target,
            heaviest,
        }
    }
}

/// Powers of two, so many to a doubling.
fn powers(from: i32, to: i32, each: i32) -> Vec<f64> {
    let steps = from * each..=to * each;
    steps
        .map(|step| 2f64.powf(f64::from(step) / f64::from(each)))
        .collect()
}

/// The place of x among rising ones, and how far it is on the way to the next.
fn place(at: &[f64], x: f64) -> (usize, f64) {
    let above = at.partition_point(|&one| one < x).clamp(1, at.len() - 1);
    let share = (x - at[above - 1]) / (at[above] - at[above - 1]);
    (above - 1, share.clamp(0.0, 1.0))
}

/// Reads values at rising places by straight lines, flat beyond.
fn lines(at: &[f64], values: &[f64], x: f64) -> f64 {
    let (below, share) = place(at, x);
    values[below] + share * (values[below + 1] - values[below])
}

impl Price {
    /// Fits what rows say of the chances of drafts, and what lies ahead of nodes; the price is 1.
    ///
    /// # Formula
    /// With r levels left behind a node of worth u = v/lambda, the mean over rows
    ///
    /// ```text
    /// G_r(u) = mean of max over n of the mean over drafts of
    ///          sum over children j of u a_j - 1 + G_(r-1)(u a_j),   G_0 = 0,
    /// ```
    ///
    /// so that Gamma(v) = lambda G(v/lambda): one table for all prices.
    pub fn fit(law: &str, rows: &[&PricedRow], levels: usize, children: usize) -> Self {
        let (q, factor) = (powers(LEAST_PRICE, 0, 2), powers(0, -LEAST_PRICE, 1));
        let mut sums = vec![(vec![0.0; factor.len()], 0.0); q.len()];
        let mut rest = (vec![0.0; factor.len()], f64::MIN_POSITIVE);
        for row in rows {
            for (&mass, &p) in row.heaviest.iter().zip(&row.target) {
                if mass <= 0.0 {
                    continue;
                }
                let (place, share) = place(&q, mass);
                for (place, share) in [(place, 1.0 - share), (place + 1, share)] {
                    for (sum, c) in sums[place].0.iter_mut().zip(&factor) {
                        *sum += share * c.min(p / mass);
                    }
                    sums[place].1 += share;
                }
            }
            rest.0
                .iter_mut()
                .zip(&row.rest)
                .for_each(|(sum, one)| *sum += one);
            rest.1 += row.left;
        }
        // Where there is nothing, as at the mass above, or else below.
        let known =
            |at: usize| (sums[at..].iter().chain(sums[..at].iter().rev())).find(|one| one.1 > 0.0);
        let ratio = (0..q.len()).map(|at| {
            let (sums, count) = known(at).unwrap_or(&sums[at]);
            sums.iter()
                .map(|sum| sum / count.max(f64::MIN_POSITIVE))
                .collect()
        });
        let ratio: Vec<Vec<f64>> = ratio.collect();
        let worth = powers(0, -LEAST_PRICE, STEPS);
        let mut price = Self {
            schema: PRICE_SCHEMA,
            law: law.to_owned(),
            price: 1.0,
            levels,
            children,
            heaviest: rows.iter().map(|row| row.heaviest.len()).max().unwrap_or(0),
            q,
            factor,
            ratio,
            rest: rest.0.iter().map(|sum| sum / rest.1).collect(),
            ahead: Vec::new(),
            worth,
        };
        price.look_ahead(rows.iter().map(|row| row.heaviest.as_slice()));
        price
    }

    /// Finds what lies ahead of nodes where rows are like these, each by its largest q.
    fn look_ahead<'a>(&mut self, rows: impl ExactSizeIterator<Item = &'a [f64]>) {
        let step = rows.len().div_ceil(MOST_ROWS).max(1);
        let rows: Vec<&[f64]> = rows.step_by(step).collect();
        self.ahead = vec![vec![0.0; self.worth.len()]];
        for left in 1..self.levels {
            let mean = |&worth: &f64| {
                let each = rows.iter().map(|row| self.best(row, worth, left).1);
                each.sum::<f64>() / rows.len().max(1) as f64
            };
            let next = self.worth.iter().map(mean).collect();
            self.ahead.push(next);
        }
    }

    /// Reads a price's file.
    ///
    /// # Errors
    /// In words: what is no such file, or has tables that do not fit each other.
    ///
    /// # Example
    /// ```
    /// use specgap_core::tree::Price;
    /// let missing = Price::from_json("[[0], [1]]").unwrap_err();
    /// assert!(missing.contains("best-tree.price.json"), "{missing}");
    /// ```
    #[cfg(feature = "files")]
    pub fn from_json(text: &str) -> Result<Self, String> {
        let cure = "give best-tree.price.json, as specgap tree writes it at a price";
        let price: Self =
            serde_json::from_str(text).map_err(|error| format!("is no price: {error}; {cure}"))?;
        let rises = |row: &[f64]| row.len() > 1 && row.windows(2).all(|pair| pair[0] < pair[1]);
        let fits = |row: &Vec<f64>, to: &[f64]| {
            row.len() == to.len() && row.iter().all(|&one| one.is_finite() && one >= 0.0)
        };
        let checks = [
            ("schema", price.schema == PRICE_SCHEMA),
            (
                "price",
                (2f64.powi(LEAST_PRICE)..=1.0).contains(&price.price),
            ),
            ("levels", (1..=64).contains(&price.levels)),
            ("children", (1..=64).contains(&price.children)),
            ("heaviest", (1..=4096).contains(&price.heaviest)),
            ("q", rises(&price.q)),
            ("factor", rises(&price.factor)),
            ("worth", rises(&price.worth)),
            (
                "ratio",
                price.ratio.len() == price.q.len()
                    && price.ratio.iter().all(|row| fits(row, &price.factor)),
            ),
            ("rest", fits(&price.rest, &price.factor)),
            (
                "ahead",
                price.ahead.len() >= price.levels
                    && price.ahead.iter().all(|row| fits(row, &price.worth)),
            ),
        ];
        match checks.into_iter().find(|check| !check.1) {
            Some((field, _)) => Err(format!("{field}: is not what a price has; {cure}")),
            None => Ok(price),
        }
    }

    /// The same at another price.
    pub fn at(&self, price: f64) -> Self {
        Self {
            price,
            ..self.clone()
        }
    }

    /// Returns how likely a draft is accepted where its parent was: of a token with such a q that is drafted
    /// `factor` times as often, or of none that is told apart.
    fn accepted(&self, q: Option<f64>, factor: f64) -> f64 {
        let of = |row: &[f64]| lines(&self.factor, row, factor);
        let ratio = match q {
            Some(q) => {
                let (row, share) = place(&self.q, q);
                of(&self.ratio[row]) * (1.0 - share) + of(&self.ratio[row + 1]) * share
            }
            None => of(&self.rest),
        };
        (ratio / factor.max(1.0)).min(1.0)
    }

    /// The number of children with most value at a row with `left` levels to go, and that, in prices.
    fn best(&self, heaviest: &[f64], worth: f64, left: usize) -> (usize, f64) {
        let ahead = left.checked_sub(1).and_then(|below| self.ahead.get(below));
        // What brings less than the price has nothing ahead of it that brings more.
        let Some(ahead) = ahead.filter(|_| worth > 1.0) else {
            return (0, 0.0);
        };
        let value = |chance: f64| match worth * chance {
            worth if worth > 1.0 => worth - 1.0 + lines(&self.worth, ahead, worth),
            worth => worth - 1.0,
        };
        let others = 1.0 - heaviest.iter().sum::<f64>();
        let mut best = (0, 0.0);
        for children in 1..=self.children {
            let (sure, strata, factor) = cut(heaviest, children);
            let mut all = 0.0;
            for (rank, &q) in heaviest.iter().enumerate() {
                all += match rank < sure {
                    true => value(self.accepted(Some(q), 1.0 / q)),
                    false if strata > 0 => factor * q * value(self.accepted(Some(q), factor)),
                    false => 0.0,
                };
            }
            if strata > 0 {
                all += factor * others.max(0.0) * value(self.accepted(None, factor));
            }
            if all > best.1 {
                best = (children, all);
            }
        }
        best
    }

    /// Returns how many children a node gets: `q` has the largest probabilities of its row, falling, as many as
    /// it may have children; `depth` is its number of levels below the root, and `chance` how likely it
    /// is to be accepted, by what its drafter knows.
    ///
    /// # Example
    /// ```
    /// use specgap_core::tree::Price;
    /// let price = Price {
    ///     price: 0.3,
    ///     levels: 1,
    ///     children: 2,
    ///     q: vec![0.5, 1.0],
    ///     factor: vec![1.0, 2.0],
    ///     // A sure token of .8 is accepted with .6, a draft of the rest with .4.
    ///     ratio: vec![vec![0.75; 2]; 2],
    ///     rest: vec![0.4, 0.4],
    ///     worth: vec![1.0, 2.0],
    ///     ahead: vec![vec![0.0; 2]],
    ///     ..Price::default()
    /// };
    /// assert_eq!(price.children(&[0.8], 0, 1.0), 1);
    /// // One is drafted from the whole row; two are a sure token and a draft of the rest.
    /// assert_eq!(price.children(&[0.8], 1, 1.0), 0);
    /// ```
    pub fn children(&self, q: &[f64], depth: usize, chance: f64) -> usize {
        self.children_at(self.price, q, depth, chance)
    }

    /// The same at another price.
    pub fn children_at(&self, price: f64, q: &[f64], depth: usize, chance: f64) -> usize {
        let left = self.levels.saturating_sub(depth);
        self.best(q, chance / price, left).0
    }

    /// Returns how likely the child is accepted whose token has such a place among the heaviest.
    pub fn chance(&self, heaviest: &[f64], place: usize, children: usize) -> f64 {
        let (sure, _, factor) = cut(heaviest, children);
        match heaviest.get(place) {
            Some(&q) if place < sure => self.accepted(Some(q), 1.0 / q),
            q => self.accepted(q.copied(), factor),
        }
    }

    /// Returns how likely the target takes a token of such a q.
    pub fn likely(&self, q: f64) -> f64 {
        self.accepted(Some(q), 1.0 / q.max(f64::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chances of 2^-1/2, 2^-1 and 2^-2 for q of 1/2, of 1/4 and for all others, whatever the factor:
    /// worths stay where the table has them.
    fn toy(levels: usize) -> Price {
        let factor = powers(0, 10, 1);
        let of = |chance: f64| factor.iter().map(|c| c * chance).collect::<Vec<f64>>();
        let mut price = Price {
            price: 1.0,
            levels,
            children: 2,
            q: vec![0.25, 0.5],
            ratio: vec![of(0.5), of(0.5f64.sqrt())],
            rest: of(0.25),
            factor: factor.clone(),
            worth: powers(0, 10, 6),
            ..Price::default()
        };
        price.look_ahead(ROWS.iter().map(|row| row.as_slice()));
        price
    }

    const ROWS: [[f64; 2]; 2] = [[0.5, 0.25], [0.25, 0.25]];

    /// Drafts of a node by token: how many in the mean, and their chance.
    fn drafts(row: [f64; 2], children: usize) -> Vec<(f64, f64)> {
        let chance = |q: f64| if q == 0.5 { 0.5f64.sqrt() } else { 0.5 };
        let rest = 1.0 - row[0] - row[1];
        match (children, row[0] == 0.5) {
            (0, _) => Vec::new(),
            // The first is sure, and one is drafted from the other half.
            (2, true) => vec![(1.0, chance(0.5)), (0.5, 0.5), (0.5, 0.25)],
            (n, _) => {
                let n = n as f64;
                vec![
                    (n * row[0], chance(row[0])),
                    (n * row[1], 0.5),
                    (n * rest, 0.25),
                ]
            }
        }
    }

    /// Every assignment of numbers of children to prefixes of up to one token, of which each has one
    /// of two rows.
    #[test]
    fn what_lies_ahead_is_that_of_the_best_of_all_shapes_by_prefix() {
        let price = toy(3);
        let worths = [1.0, 2f64.powf(1.5), 4.0, 16.0, 256.0];
        for (worth, root) in worths
            .into_iter()
            .flat_map(|worth| ROWS.map(|row| (worth, row)))
        {
            let mut most = 0.0f64;
            for children in 0..=2 {
                let below = drafts(root, children);
                let states: Vec<(f64, f64, [f64; 2])> = below
                    .iter()
                    .flat_map(|&(count, chance)| ROWS.map(|row| (count / 2.0, chance, row)))
                    .collect();
                for shape in 0..3usize.pow(states.len() as u32) {
                    let mut value = 0.0;
                    for (place, &(count, chance, row)) in states.iter().enumerate() {
                        let own = drafts(row, shape / 3usize.pow(place as u32) % 3);
                        let leaves = own
                            .iter()
                            .map(|(more, next)| more * (worth * chance * next - 1.0));
                        value += count * (worth * chance - 1.0 + leaves.sum::<f64>());
                    }
                    most = most.max(value);
                }
            }
            let found = price.best(&root, worth, 2).1;
            assert!(
                (found - most).abs() < 1e-12 * most.max(1.0),
                "{worth}: {found} {most}"
            );
        }
    }

    #[test]
    fn more_is_drafted_the_less_it_has_to_bring_and_the_likelier_a_node_is_kept() {
        let price = toy(4);
        for row in ROWS {
            let at = |lambda: f64, chance: f64| price.at(lambda).children(&row, 0, chance);
            let steps: Vec<f64> = (0..40)
                .map(|step| 2f64.powf(-f64::from(step) / 8.0))
                .collect();
            for pair in steps.windows(2) {
                assert!(at(pair[0], 1.0) <= at(pair[1], 1.0));
                assert!(at(0.05, pair[0]) >= at(0.05, pair[1]));
            }
            assert_eq!((at(1.0, 1.0), at(0.03, 1.0)), (0, 2));
            assert_eq!(price.at(0.01).children(&row, 4, 1.0), 0);
        }
    }

    /// By hand: q = (1/2, 1/4, 1/8, 1/8), of which two are told apart.
    #[test]
    fn chances_are_those_of_the_rows() {
        let (p, q) = ([0.25, 0.5, 0.25, 0.0], [0.5, 0.25, 0.125, 0.125]);
        let row = PricedRow::of(&p, &q, 2, 2);
        assert_eq!(
            (row.heaviest.as_slice(), row.target.as_slice()),
            (&q[..2], &p[..2])
        );
        assert_eq!((row.left, row.token), (0.25, 2));
        assert_eq!(row.rest[..2], [0.125, 0.25]);
        let price = Price::fit("stratified", &[&row], 2, 2);
        // One draft of the whole row: min(p/q, 1).
        let of = |token, children| price.chance(&q[..2], token, children);
        assert_eq!([0, 1, 2, 3].map(|token| of(token, 1)), [0.5, 1.0, 0.5, 0.5]);
        // A sure token, and a draft of the other half: p, and min(p/q, 2)/2.
        assert_eq!([0, 1, 2].map(|token| of(token, 2)), [0.25, 1.0, 0.5]);
        assert_eq!(price.likely(0.25), 0.5);
    }
}
