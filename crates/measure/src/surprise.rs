//! Whether a text looks drawn from the target's rows that are logged with it.
//!
//! -ln of what a row gives its token, less the mean of that over the row, has the mean 0 given
//! all tokens before it, if the token was drawn from the row. Of a row that lists some tokens
//! the test takes those by themselves that are listed whichever token came out, and all others
//! as one. An engine lists the text's own token because it came out: taken by itself, it would
//! make honest text look wrong.

use super::data::Surprise;
use super::tally::ExactSum;
use serde::{Deserialize, Serialize};
use specgap_base::side_by_side;
use specgap_entries::Moments;
use specgap_log::log::{Log, LogError, Row, RowKind, Span};
use specgap_row::Unlisted;
use specgap_sampling::Lists;

/// Positions that one task takes.
const SPAN: usize = 64;

/// Which tokens of a row are listed whichever came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Singles {
    /// All: rows are complete.
    All,
    /// As many of the most probable.
    Top(usize),
}

impl Singles {
    /// The singles of a log's target. Where it does not say how many tokens of a list are the most
    /// probable ones, those of the shortest list but one, or half of it if both models score
    /// the tokens of both lists: one may be the text's own.
    ///
    /// # Errors
    /// Rows that are refused.
    pub fn new(log: &Log, lists: Option<&Lists>) -> Result<Self, LogError> {
        let Some(lists) = lists else {
            return Ok(Self::All);
        };
        if let Some([target, _]) = lists.tops() {
            return Ok(Self::Top(target));
        }
        let shortest = |span: &Span| -> Result<usize, LogError> {
            let chunk = log.chunk(span)?;
            let mut row = Row::default();
            let mut least = usize::MAX;
            for number in chunk.positions() {
                chunk.read(number, &mut row)?;
                least = least.min(row.target.iter().filter(|x| !x.is_nan()).count());
            }
            Ok(least)
        };
        let spans = log.spans(SPAN);
        let shortest = side_by_side::each_or_stop(&spans, shortest)?;
        let shortest = shortest.into_iter().min().unwrap_or(usize::MAX);
        Ok(Self::Top(match log.has_own_lists() {
            _ if shortest >= log.vocabulary() => shortest,
            true => shortest.saturating_sub(1),
            false => shortest / 2,
        }))
    }
}

/// A token of a text under its row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surprised {
    /// -ln of its probability, or of that of all tokens that count as one with it.
    observed: f64,
    /// What that is on average, and its variance.
    expected: f64,
    variance: f64,
    /// Bounds on the first less the second, where the mass of unlisted tokens is not known.
    difference: [f64; 2],
}

impl Surprised {
    /// The surprise of a position's sampled token. `shares` are those of the target's listed tokens
    /// at a temperature, `rule` that temperature over the one of the rows. `None` where nothing can
    /// be told: no token, or a row that lists none whichever came out.
    pub fn new(
        singles: Singles,
        row: &Row,
        shares: &[f64],
        rule: f64,
        unlisted: Unlisted,
    ) -> Option<Self> {
        let token = u32::try_from(row.token?).ok()?;
        let place = match row.token_ids.is_empty() {
            true => Some(token as usize).filter(|&place| place < shares.len()),
            false => row.token_ids.iter().position(|&id| id == token),
        };
        let share = place.map_or(0.0, |place| shares[place]);
        let top = match singles {
            Singles::Top(top) if unlisted != Unlisted::NONE => top,
            _ => {
                let logarithms = row.target_kind != RowKind::Probabilities;
                let of_row = Moments::new(&row.target, logarithms, rule, shares);
                let observed = surprise_of(share);
                return Some(Self {
                    observed,
                    expected: of_row.mean,
                    variance: of_row.variance,
                    difference: [observed - of_row.mean; 2],
                });
            }
        };
        if top == 0 {
            return None;
        }
        let listed = specgap_entries::descending(shares, &row.token_ids);
        let (alone, others) = listed.split_at(top.min(listed.len()));
        let is_alone = place.is_some_and(|place| alone.contains(&place));
        let mut sums = [0.0; 3];
        for share in alone.iter().map(|&place| shares[place]) {
            let log = share.max(f64::MIN_POSITIVE).ln();
            for (sum, power) in sums.iter_mut().zip([1.0, log, log * log]) {
                *sum += share * power;
            }
        }
        let others: f64 = others.iter().map(|&place| shares[place]).sum();
        let at = |rest: f64| {
            let kept = 1.0 - rest;
            let (ln_kept, together) = (kept.max(f64::MIN_POSITIVE).ln(), others * kept + rest);
            let of_rest = surprise_of(together);
            let [mass, first, second] = sums.map(|sum| kept * sum);
            let mean = -(first + mass * ln_kept) + together * of_rest;
            let square = second + 2.0 * ln_kept * first + mass * ln_kept * ln_kept;
            let variance = square + together * of_rest * of_rest - mean * mean;
            let observed = match is_alone {
                true => surprise_of(share * kept),
                false => of_rest,
            };
            (observed, mean, variance.max(0.0))
        };
        let (observed, expected, variance) = at(unlisted.middle());
        let here = observed - expected;
        let mut difference = [here; 2];
        if !unlisted.is_known() {
            for rest in unlisted.mass {
                let (observed, expected, _) = at(rest);
                difference[0] = difference[0].min(observed - expected);
                difference[1] = difference[1].max(observed - expected);
            }
        }
        Some(Self {
            observed,
            expected,
            variance,
            difference,
        })
    }
}

/// -ln of a probability; of 0, more than any other's.
fn surprise_of(probability: f64) -> f64 {
    -probability.max(f64::MIN_POSITIVE).ln()
}

/// Sums over positions, whatever their order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Surprises {
    /// Positions that can be told of.
    pub(super) positions: u64,
    /// Of what is observed, expected, its variance, and both bounds on the difference.
    pub(super) sums: [ExactSum; 5],
}

impl Surprises {
    /// Counts one token.
    pub fn add(&mut self, one: &Surprised) {
        let [least, most] = one.difference;
        let terms = [one.observed, one.expected, one.variance, least, most];
        self.positions += 1;
        for (sum, term) in self.sums.iter_mut().zip(terms) {
            sum.add(term);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.positions = self.positions.saturating_add(other.positions);
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            sum.merge(more);
        }
    }

    /// Returns what they say of the text.
    pub fn surprise(&self) -> Surprise {
        let [observed, expected, variance, least, most] = self.sums.map(ExactSum::value);
        if self.positions == 0 {
            return Surprise::default();
        }
        // What unlisted mass leaves open speaks for the text.
        let off = 0.0f64.clamp(least.min(most), most.max(least));
        let z = match variance > 0.0 {
            true => off / variance.sqrt(),
            false => 0.0,
        };
        let count = self.positions as f64;
        Surprise {
            observed: observed / count,
            expected: expected / count,
            z: Some(z),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    const V: usize = 400;
    const POSITIONS: usize = 4_000;

    /// Log-probabilities of a row, some flat and some peaked.
    fn row_of(rng: &mut SmallRng) -> Vec<f64> {
        let sharp = rng.random_range(0.5..4.0);
        let logits: Vec<f64> = (0..V)
            .map(|_| -sharp * rng.random_range(f64::MIN_POSITIVE..1.0f64).ln())
            .collect();
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        logits.iter().map(|x| x - sum.ln()).collect()
    }

    fn drawn(rng: &mut SmallRng, row: &[f64]) -> usize {
        let mut left: f64 = rng.random();
        let at = row.iter().position(|x| {
            left -= x.exp();
            left < 0.0
        });
        at.unwrap_or(V - 1)
    }

    /// Rows of a target and a draft, each with its order, and a text.
    struct Made {
        rows: Vec<(Vec<f64>, Vec<usize>)>,
        drafts: Vec<(Vec<f64>, Vec<usize>)>,
        text: Vec<usize>,
    }

    impl Made {
        fn new() -> Self {
            let mut rng = SmallRng::seed_from_u64(0);
            let mut ordered = || {
                let row = row_of(&mut rng);
                let mut order: Vec<usize> = (0..V).collect();
                order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                (row, order)
            };
            let rows: Vec<_> = (0..POSITIONS).map(|_| ordered()).collect();
            let drafts = (0..POSITIONS).map(|_| ordered()).collect();
            let text = rows.iter().map(|(row, _)| drawn(&mut rng, row)).collect();
            Self { rows, drafts, text }
        }
    }

    /// How a list is made of a row and its token.
    #[derive(Clone, Copy, Debug)]
    enum Cut {
        Full,
        /// The most probable and the text's own.
        Own(usize),
        /// The same, and as many of the draft's with its own token.
        Joined(usize),
    }

    /// z of a text, each token drawn from the row that is `late` positions before its own.
    fn z(made: &Made, cut: Cut, singles: impl Fn(&[usize]) -> Singles, late: usize) -> Option<f64> {
        let Made { rows, drafts, text } = made;
        let list = |at: usize, token: usize| {
            let mut ids = match cut {
                Cut::Full => return Vec::new(),
                Cut::Own(count) => rows[at].1[..count].to_vec(),
                Cut::Joined(count) => [&rows[at].1[..count], &drafts[at].1[..count]].concat(),
            };
            ids.push(token);
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let tokens: Vec<usize> = (0..POSITIONS)
            .map(|at| text[(at + POSITIONS - late) % POSITIONS])
            .collect();
        let lists: Vec<Vec<usize>> = (0..POSITIONS).map(|at| list(at, tokens[at])).collect();
        let lengths: Vec<usize> = lists.iter().map(Vec::len).collect();
        let singles = singles(&lengths);
        let mut all = Surprises::default();
        for (((row, _), &token), ids) in rows.iter().zip(&tokens).zip(lists) {
            let mut logged = Row::default();
            logged.token = Some(token as i64);
            logged.target_kind = RowKind::LogProbabilities;
            logged.token_ids = ids.iter().map(|&id| id as u32).collect();
            logged.target = ids.iter().map(|&id| row[id]).collect();
            let mut unlisted = Unlisted::NONE;
            if ids.is_empty() {
                logged.target.clone_from(row);
            } else {
                let rest: f64 = (0..V)
                    .filter(|id| ids.binary_search(id).is_err())
                    .map(|id| row[id].exp())
                    .sum();
                unlisted = Unlisted {
                    mass: [rest; 2],
                    largest: f64::INFINITY,
                };
            }
            let listed: f64 = logged.target.iter().map(|x| x.exp()).sum();
            let shares: Vec<f64> = logged.target.iter().map(|x| x.exp() / listed).collect();
            let one = Surprised::new(singles, &logged, &shares, 1.0, unlisted);
            one.iter().for_each(|one| all.add(one));
        }
        all.surprise().z
    }

    /// Honest text cut in each way has a small z, and text that is one position late a large
    /// one, with the tokens that are promised or as the lists' lengths tell.
    #[test]
    fn honest_text_is_told_from_shifted_text_however_rows_are_cut() {
        let made = Made::new();
        let z = |cut, singles: &dyn Fn(&[usize]) -> Singles, late| z(&made, cut, singles, late);
        let told = |count: usize| move |_: &[usize]| Singles::Top(count);
        let all = |_: &[usize]| Singles::All;
        let shortest = |lengths: &[usize]| lengths.iter().copied().min().unwrap();
        let own = |lengths: &[usize]| Singles::Top(shortest(lengths).saturating_sub(1));
        let half = |lengths: &[usize]| Singles::Top(shortest(lengths) / 2);
        for (cut, singles) in [
            (Cut::Full, &all as &dyn Fn(&[usize]) -> Singles),
            (Cut::Own(200), &told(200)),
            (Cut::Own(64), &told(64)),
            (Cut::Own(64), &own),
            (Cut::Own(20), &told(20)),
            (Cut::Own(20), &own),
            (Cut::Joined(20), &told(20)),
            (Cut::Joined(20), &half),
            (Cut::Own(1), &told(1)),
        ] {
            let [honest, shifted] = [0, 1].map(|late| z(cut, singles, late).unwrap());
            assert!(honest.abs() < 4.0, "{cut:?}: {honest}");
            assert!(shifted > 20.0, "{cut:?}: {shifted}");
        }
        // Nothing but the text's own token is listed.
        for late in [0, 1] {
            assert_eq!(z(Cut::Own(0), &told(0), late), None);
            assert_eq!(z(Cut::Own(0), &own, late), None);
            assert_eq!(z(Cut::Own(0), &half, late), None);
        }
    }

    /// p = (1/2, 1/4, 1/8 and 1/8 that are not listed), the first two by themselves.
    #[test]
    fn a_list_by_hand() {
        let shares = [4.0 / 7.0, 2.0 / 7.0, 1.0 / 7.0];
        let with = |token: i64, mass: [f64; 2]| {
            let mut row = Row::default();
            row.token = Some(token);
            row.token_ids = vec![5, 3, 9];
            row.target = shares.map(f64::ln).to_vec();
            let unlisted = Unlisted {
                mass,
                largest: f64::INFINITY,
            };
            Surprised::new(Singles::Top(2), &row, &shares, 1.0, unlisted).unwrap()
        };
        let half = 2f64.ln();
        // 9 is listed because it came out, and 0 is not: both count as the rest of 1/4.
        for (token, observed) in [(5, 1.0), (3, 2.0), (9, 2.0), (0, 2.0)] {
            let found = with(token, [0.125; 2]);
            assert!((found.observed - observed * half).abs() < 1e-14, "{token}");
            assert!((found.expected - 1.5 * half).abs() < 1e-14);
            assert!((found.variance - 0.25 * half * half).abs() < 1e-14);
        }
        // An open mass of the rest leaves the difference open, and then z is what is left.
        let found = with(5, [0.0, 0.5]);
        assert!(found.difference[0] < found.difference[1]);
        let mut all = Surprises::default();
        all.add(&found);
        assert_eq!(all.surprise().z, Some(0.0));
        assert_eq!(Surprises::default().surprise().z, None);
    }
}
