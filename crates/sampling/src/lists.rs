//! Rows as probabilities at a temperature, and what is known of the tokens that they do not
//! list.
//!
//! A list of the most probable tokens of a softmax is no law of its own, and is never made
//! one unless the log says that other tokens are never drawn. The mass of the others is
//! logged, or is what listed probabilities lack to 1. That is a number at one temperature;
//! at others it is between bounds (`docs/theory/truncated-rows.md`).

use specgap_log::log::{Dtype, Log, Row, RowKind, UnlistedTokens};
use specgap_number::distribution::{DistributionError, Softmax, compensated_sum};
use specgap_row::Unlisted;
use std::borrow::Cow;

/// Whose row it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The target, p.
    Target = 0,
    /// The draft, q.
    Draft = 1,
}

impl Model {
    /// Returns its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Draft => "draft",
        }
    }
}

/// What a log's rows leave out, and where that is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists {
    /// Of the target and of the draft.
    told: [Told; 2],
    /// The metadata's `rest_temperatures`.
    temperatures: Vec<f64>,
    /// Rows are raw logits over this.
    applied: f64,
    vocabulary: usize,
    /// Of the target's rows and of the draft's.
    dtypes: [Dtype; 2],
    /// How many tokens of each list are the most probable ones, if the log says so.
    tops: Option<[usize; 2]>,
}

/// Where the mass of unlisted tokens is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    /// In a tensor, at `rest_temperatures`.
    AtTemperatures,
    /// By the listed probabilities, which lack as much to 1.
    BySum,
}

/// The mass of unlisted tokens at some temperature.
struct Known {
    temperature: f64,
    rest: f64,
    /// How far it may be from what the full row's was, as it is a difference.
    error: f64,
}

/// Rounding of sums over a row, relatively.
const ROUNDING: f64 = 1e-12;

impl Lists {
    /// `None` for rows that are complete.
    ///
    /// # Errors
    /// Lists of logits without the mass of the others, which they do not tell; and a log
    /// that gives a mass to tokens that it says are never drawn.
    pub fn new(log: &Log) -> Result<Option<Self>, String> {
        if !log.is_top_heavy() {
            return Ok(None);
        }
        let metadata = log.metadata();
        let has_rests = (log.has_rests()).map(|has| has && !metadata.rest_temperatures.is_empty());
        let name = log.path().display();
        if metadata.unlisted == Some(UnlistedTokens::NeverDrawn) {
            let Some(model) = model_of(has_rests, true) else {
                return Ok(None);
            };
            return Err(format!(
                "{name}: metadata: unlisted is \"never-drawn\", and {model}_rest gives these \
                 tokens a mass; remove one of the two"
            ));
        }
        let kinds: [RowKind; 2] = log.kinds().into();
        let is_told = [0, 1].map(|model| has_rests[model] || kinds[model] != RowKind::Logits);
        if let Some(model) = model_of(is_told, false) {
            return Err(format!(
                "{name}: {model}_logits lists some tokens alone, and logits do not tell the mass \
                 of the others; log {model}_logprobs of the full softmax in their place, or add \
                 {model}_rest with rest_temperatures to the metadata. If the sampler draws from \
                 the listed tokens alone, say so in the metadata: \"unlisted\": \"never-drawn\""
            ));
        }
        Ok(Some(Self {
            told: has_rests.map(|has| {
                if has {
                    Told::AtTemperatures
                } else {
                    Told::BySum
                }
            }),
            temperatures: metadata.rest_temperatures.clone(),
            applied: metadata.applied(),
            vocabulary: log.vocabulary(),
            dtypes: log.dtypes().into(),
            tops: metadata.tops(),
        }))
    }

    /// The lists of rows whose mass is told at temperatures.
    #[cfg(test)]
    pub(crate) fn made(
        temperatures: Vec<f64>,
        vocabulary: usize,
        tops: Option<[usize; 2]>,
    ) -> Self {
        Self {
            told: [Told::AtTemperatures; 2],
            temperatures,
            applied: 1.0,
            vocabulary,
            dtypes: [Dtype::F64; 2],
            tops,
        }
    }

    /// V.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Returns how many tokens of each list are the most probable ones, if the log says so.
    pub fn tops(&self) -> Option<[usize; 2]> {
        self.tops
    }

    /// Counts a row's listed tokens that are the most probable of all, where it lists so many,
    /// `both` of them being listed for either row. A list of its own ends with the least of the
    /// most probable; of tokens of two lists, at least half are of either.
    pub(crate) fn top(&self, model: Model, own: usize, both: bool) -> usize {
        let sorted = if both { own.div_ceil(2) } else { own };
        let most = self.tops.map_or(sorted, |tops| tops[model as usize]);
        if own >= self.vocabulary {
            own
        } else {
            most.min(own)
        }
    }

    /// Returns what is known of the tokens that a position's rows do not list, at a temperature.
    pub fn unlisted(&self, row: &Row, temperature: f64) -> [Unlisted; 2] {
        [Model::Target, Model::Draft].map(|model| self.unlisted_of(row, model, temperature))
    }

    /// Returns what is known of those that one row does not list.
    pub(crate) fn unlisted_of(&self, row: &Row, model: Model, temperature: f64) -> Unlisted {
        let (entries, kind, rests) = match model {
            Model::Target => (&row.target, row.target_kind, &row.target_rest),
            Model::Draft => (&row.draft, row.draft_kind, &row.draft_rest),
        };
        let logarithm = |&x: &f64| match kind {
            RowKind::Probabilities => x.ln(),
            _ => x,
        };
        let own: Cow<'_, [f64]> = match kind == RowKind::Probabilities || has_nan(entries) {
            true => (entries.iter().filter(|x| !x.is_nan()).map(logarithm)).collect(),
            false => entries.into(),
        };
        let both = entries.len() == own.len();
        let top = self.top(model, own.len(), both);
        let known: Vec<Known> = match self.told[model as usize] {
            Told::AtTemperatures => (self.temperatures.iter().zip(rests))
                .map(|(&temperature, &rest)| Known {
                    temperature,
                    rest,
                    error: 0.0,
                })
                .collect(),
            Told::BySum => {
                return self.at(&own, &[self.by_sum(entries, kind, model)], top, temperature);
            }
        };
        self.at(&own, &known, top, temperature)
    }

    /// Returns what listed probabilities lack to 1. Each is rounded, and so is the logarithm of
    /// each: what they lack is known to within the sum of these roundings.
    fn by_sum(&self, entries: &[f64], kind: RowKind, model: Model) -> Known {
        let own = entries.iter().copied().filter(|x| !x.is_nan());
        let masses = own.map(|x| match kind {
            RowKind::Probabilities => x,
            _ => x.exp(),
        });
        let [relative, absolute] = self.dtypes[model as usize].rounding();
        let rounding = |p: f64| match p > 0.0 {
            true => p * relative * (4.0 - p.ln()) + absolute,
            false => absolute,
        };
        let mut error = 0.0;
        let sum = compensated_sum(masses.inspect(|&p| error += rounding(p)));
        Known {
            temperature: self.applied,
            rest: (1.0 - sum).max(0.0),
            error,
        }
    }

    /// Returns what is known at a temperature of the tokens that a list leaves out, `top` of which
    /// are the most probable of all, given the mass of the others at some temperatures.
    fn at(&self, list: &[f64], known: &[Known], top: usize, temperature: f64) -> Unlisted {
        let others = self.vocabulary.saturating_sub(list.len()) as f64;
        let highest = list.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = |temperature: f64| {
            let over = self.applied / temperature;
            list.iter().map(move |x| (over * (x - highest)).exp())
        };
        let limit = largest(list, top).map(|x| x - highest);
        let whole: f64 = weights(temperature).sum();
        let largest = weight(limit, self.applied / temperature) / whole;
        if others == 0.0 {
            return Unlisted::NONE;
        }
        let (mut least, mut most) = (0.0f64, 1.0f64);
        for one in known {
            if one.temperature == temperature {
                return Unlisted {
                    mass: [one.rest, one.rest],
                    largest,
                };
            }
            let there: f64 = weights(one.temperature).sum();
            let power = one.temperature / temperature;
            // Shares of the others, spread evenly and on as few tokens as can be.
            let spread = |rest: f64| {
                // Their sum in units of the listed weights, and the largest of them.
                let sum = there * rest / (1.0 - rest);
                let each = weight(limit, self.applied / one.temperature).min(sum);
                // Sum of x^r over tokens that sum to `sum`, none above `each`.
                let even = sum.powf(power) * others.powf(1.0 - power);
                let heaped = if each > 0.0 {
                    sum * each.powf(power - 1.0)
                } else {
                    0.0
                };
                [even, heaped].map(|sum| match sum.is_finite() {
                    true => sum / (whole + sum),
                    false => 1.0,
                })
            };
            // Both rise with the rest.
            let [low, high] = [one.rest - one.error, one.rest + one.error];
            if low < 1.0 {
                let [even, heaped] = spread(low.max(0.0));
                least = least.max(even.min(heaped) * (1.0 - ROUNDING));
            }
            if high < 1.0 {
                let [even, heaped] = spread(high);
                most = most.min(even.max(heaped) * (1.0 + ROUNDING));
            }
        }
        // Masses at several temperatures that no row has.
        let (least, most) = (least.min(most), most.max(least));
        Unlisted {
            mass: [least, most.min(1.0)],
            largest,
        }
    }
}

/// `target` or `draft`, the first of which this is said.
fn model_of(said: [bool; 2], wanted: bool) -> Option<&'static str> {
    let named = ["target", "draft"].into_iter().zip(said);
    named
        .filter(|&(_, said)| said == wanted)
        .map(|(name, _)| name)
        .next()
}

/// The most that an unlisted token weighs; infinite if nothing is known.
fn weight(limit: Option<f64>, over: f64) -> f64 {
    limit.map_or(f64::INFINITY, |x| (x * over).exp())
}

/// The k-th largest entry; the least of fewer. `None` for k = 0.
fn largest(row: &[f64], k: usize) -> Option<f64> {
    let last = k.min(row.len()).checked_sub(1)?;
    let mut row = row.to_vec();
    let (_, value, _) = row.select_nth_unstable_by(last, |a, b| b.total_cmp(a));
    Some(*value)
}

/// Tells whether any entry is NaN, many of them at a time.
fn has_nan(row: &[f64]) -> bool {
    let any = |chunk: &[f64]| chunk.iter().fold(false, |any, x| any | x.is_nan());
    row.chunks(256).any(any)
}

/// A logged row as probabilities at a temperature; of a list, the shares of the listed
/// tokens, and NaN where the row does not list one.
pub fn probabilities(
    row: &[f64],
    kind: RowKind,
    rule: &Softmax,
    logits: &mut Vec<f64>,
    out: &mut Vec<f64>,
) -> Result<(), DistributionError> {
    if has_nan(row) {
        let own: Vec<f64> = row.iter().copied().filter(|x| !x.is_nan()).collect();
        let mut shares = Vec::with_capacity(own.len());
        probabilities(&own, kind, rule, logits, &mut shares)?;
        let mut shares = shares.into_iter();
        out.clear();
        out.extend(row.iter().map(|x| match x.is_nan() {
            true => f64::NAN,
            false => shares.next().unwrap_or(f64::NAN),
        }));
        return Ok(());
    }
    if kind != RowKind::Probabilities {
        return rule.fill(row, out);
    }
    if rule.temperature == 1.0 {
        // As they are, but for what their type rounded.
        let total = compensated_sum(row.iter().copied());
        out.clear();
        out.extend(row.iter().map(|x| x / total));
        return Ok(());
    }
    logits.clear();
    logits.extend(row.iter().map(|x| x.ln()));
    rule.fill(logits, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// The mass of unlisted tokens of full rows at other temperatures is within the bounds,
    /// which rows of equal tokens, and of tokens at the limit, reach.
    #[test]
    fn masses_at_other_temperatures_are_bounded() {
        let mut rng = SmallRng::seed_from_u64(3);
        let (mut narrow, mut checked) = (0, 0);
        for round in 0..400 {
            let vocabulary = rng.random_range(6..60usize);
            let listed = rng.random_range(2..vocabulary);
            let sharp = [0.0, 0.5, 2.0, 5.0][round % 4];
            let mut logits: Vec<f64> = (0..vocabulary)
                .map(|_| sharp * rng.random_range(-1.0..1.0))
                .collect();
            logits.sort_by(|a, b| b.total_cmp(a));
            let rest = |temperature: f64| {
                let weights: Vec<f64> = logits.iter().map(|x| (x / temperature).exp()).collect();
                weights[listed..].iter().sum::<f64>() / weights.iter().sum::<f64>()
            };
            let lists = Lists::made(vec![1.0], vocabulary, None);
            let list = &logits[..listed];
            let one = |temperature: f64| Known {
                temperature,
                rest: rest(temperature),
                error: 0.0,
            };
            for temperature in [0.3, 0.7, 0.9, 1.0, 1.4, 3.0] {
                let full = rest(temperature);
                let found = lists.at(list, &[one(1.0)], listed, temperature);
                let [low, high] = found.mass;
                assert!(
                    low - 1e-12 <= full && full <= high + 1e-12,
                    "{full} {found:?}"
                );
                let weights: f64 = list.iter().map(|x| (x / temperature).exp()).sum();
                let next = (logits[listed] / temperature).exp() / weights;
                assert!(next <= found.largest * (1.0 + 1e-12));
                if sharp == 0.0 {
                    // All tokens are equal: both ends are the mass.
                    assert!(high - low < 1e-11, "{found:?}");
                }
                // A second temperature only tells more.
                let both = lists.at(list, &[one(1.0), one(0.5)], listed, temperature);
                assert!(both.mass[0] >= low && both.mass[1] <= high);
                assert!(both.mass[0] - 1e-12 <= full && full <= both.mass[1] + 1e-12);
                checked += 1;
                narrow += usize::from(high - low < 0.5);
            }
        }
        assert!(narrow * 10 > checked * 9, "{narrow} of {checked}");
    }
}
