//! Drawing the next token from a row of logits.

use super::BROKEN;
use super::model::cut;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use specgap_sampling::{Cut, CutOrder, Cuts};

/// The law of the next token, given the target's logits l:
///
/// ```text
/// temperature T > 0:  P(i) proportional to exp(l_i / T) over the tokens kept
/// temperature 0:      the token with the largest l_i, the lowest id among equals
/// ```
///
/// Kept are the `top_k` heaviest tokens (the lowest ids among equals), and of
/// those the fewest heaviest ones that hold at least `top_p` of their mass; or what another
/// order of the cuts and the temperature keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    temperature: f64,
    cuts: Cuts,
}

/// Why a sampling setting is refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingError {
    /// The temperature is not a finite number of at least 0.
    #[error("temperature {0}: must be a finite number >= 0 (0 takes the likeliest token)")]
    Temperature(f64),
    /// `top_k` is 0.
    #[error("top-k 0: must be >= 1; leave it out to keep every token")]
    TopK,
    /// `top_p` is outside (0, 1].
    #[error("top-p {0}: must be in (0, 1]; leave it out to keep every token")]
    TopP(f64),
}

impl Sampling {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// [`SamplingError`] says which setting is outside its range.
    ///
    /// # Example
    ///
    /// ```
    /// use specgap_capture::{Sampler, Sampling};
    ///
    /// let greedy = Sampling::new(0.0, None, None)?;
    /// let mut sampler = Sampler::new(7, "first prompt");
    /// assert_eq!(sampler.draw(&[0.0, 2.0, 1.0], &greedy), Some(1));
    /// assert!(Sampling::new(f64::NAN, None, None).is_err());
    /// # Ok::<(), specgap_capture::SamplingError>(())
    /// ```
    pub fn new(
        temperature: f64,
        top_k: Option<usize>,
        top_p: Option<f64>,
    ) -> Result<Self, SamplingError> {
        if !temperature.is_finite() || temperature < 0.0 {
            return Err(SamplingError::Temperature(temperature));
        }
        if top_k == Some(0) {
            return Err(SamplingError::TopK);
        }
        match top_p {
            Some(p) if !(p > 0.0 && p <= 1.0) => Err(SamplingError::TopP(p)),
            _ => Ok(Self {
                temperature,
                cuts: Cuts {
                    top_k,
                    top_p,
                    ..Cuts::default()
                },
            }),
        }
    }

    /// The same with the cuts and the temperature in an order.
    #[must_use]
    pub fn ordered(mut self, order: Option<CutOrder>) -> Self {
        self.cuts.cut_order = order;
        self
    }

    /// The same temperature, with every token kept: the law of drafts.
    #[must_use]
    pub fn uncut(self) -> Self {
        Self {
            temperature: self.temperature,
            cuts: Cuts::default(),
        }
    }

    /// T.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// The number of heaviest tokens kept, if limited.
    pub fn top_k(&self) -> Option<usize> {
        self.cuts.top_k
    }

    /// The mass of heaviest tokens kept, if limited.
    pub fn top_p(&self) -> Option<f64> {
        self.cuts.top_p
    }

    /// Returns what is kept, unless it is every token.
    pub fn cuts(&self) -> Option<Cuts> {
        Some(self.cuts).filter(|cuts| !cuts.keep_all())
    }
}

/// The law of one token: the row of logits that [`Sampling`] makes a distribution of.
/// A workspace, to be used for one row after the other.
///
/// # Example
///
/// ```
/// use specgap_capture::{Law, Sampling};
///
/// let mut law = Law::default();
/// let sampling = Sampling::new(1.0, Some(2), None)?;
/// law.set(&[0.0, 3f32.ln(), f32::NEG_INFINITY, -9.0], &sampling);
/// assert!((law.probability(1) - 0.75).abs() < 1e-7);
/// assert_eq!(law.probability(3), 0.0);
/// assert_eq!((law.draw(0.2), law.draw(0.3)), (0, 1));
/// # Ok::<(), specgap_capture::SamplingError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Law {
    weights: Vec<f64>,
    total: f64,
    largest: usize,
    order: Vec<usize>,
}

impl Law {
    /// Takes a row of logits. Minus infinity is a masked token. `None`, and no law, if
    /// there is nothing to draw from: no logits, only minus infinity, or any NaN or plus
    /// infinity.
    ///
    /// Time O(V), or O(V log V) in the worst case with `top_p`.
    pub fn set(&mut self, logits: &[f32], sampling: &Sampling) -> Option<()> {
        self.weights.clear();
        self.total = 0.0;
        self.largest = largest(logits)?;
        if sampling.temperature == 0.0 {
            self.weights.resize(logits.len(), 0.0);
            self.weights[self.largest] = 1.0;
            self.total = 1.0;
            return Some(());
        }
        let top = f64::from(logits[self.largest]);
        self.weights.extend(
            logits
                .iter()
                .map(|&logit| ((f64::from(logit) - top) / sampling.temperature).exp()),
        );
        keep(&mut self.weights, &mut self.order, sampling);
        self.total = self.weights.iter().sum();
        Some(())
    }

    /// Takes the first V logits of a row that a graph gave, and returns them; what is wrong with
    /// it, in words.
    pub(super) fn read<'a>(
        &mut self,
        row: Result<&'a [f32], String>,
        vocabulary: usize,
        sampling: &Sampling,
    ) -> Result<&'a [f32], String> {
        let row = cut(row, vocabulary)?;
        self.set(row, sampling).ok_or_else(|| BROKEN.to_owned())?;
        Ok(row)
    }

    /// The law that is proportional to some weights, none of them negative. `None` if all
    /// are 0.
    pub(super) fn of_weights(weights: Vec<f64>) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let heaviest = weights
            .iter()
            .enumerate()
            .reduce(|best, one| if one.1 > best.1 { one } else { best });
        let largest = heaviest?.0;
        (total > 0.0).then_some(Self {
            weights,
            total,
            largest,
            order: Vec::new(),
        })
    }

    /// The token at which the cumulated mass first exceeds u, a number in [0, 1).
    pub fn draw(&self, u: f64) -> usize {
        at(&self.weights, u * self.total).unwrap_or(self.largest)
    }

    /// The token with the largest logit, the lowest id among equals.
    pub fn likeliest(&self) -> usize {
        self.largest
    }

    /// The probability of a token; 0 of one that is not in the vocabulary.
    pub fn probability(&self, token: usize) -> f64 {
        self.weights
            .get(token)
            .map_or(0.0, |weight| weight / self.total)
    }

    /// Returns what a stopping rule sees of the law.
    ///
    /// Time O(V).
    pub fn features(&self) -> Features {
        let (mut first, mut second, mut heat) = (0.0f64, 0.0f64, 0.0);
        for &weight in &self.weights {
            if weight > 0.0 {
                heat -= weight * weight.ln();
            }
            second = second.max(weight.min(first));
            first = first.max(weight);
        }
        Features {
            top1: first / self.total,
            margin: (first - second) / self.total,
            // Rounding may leave -1e-17 of a law with one token.
            entropy: (self.total.ln() + heat / self.total).max(0.0),
        }
    }

    /// All V probabilities. They sum to 1 but for rounding.
    pub fn probabilities(&self) -> impl Iterator<Item = f64> + '_ {
        self.weights.iter().map(|weight| weight / self.total)
    }
}

/// What a stopping rule sees of a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Features {
    /// The largest probability.
    pub top1: f64,
    /// The largest probability less the second largest.
    pub margin: f64,
    /// -sum of p ln p, in nats.
    pub entropy: f64,
}

/// The first entry at which the cumulated weights exceed `mass`, or the last one that is
/// not 0 where rounding leaves something of it; none if all are 0.
pub(super) fn at(weights: &[f64], mass: f64) -> Option<usize> {
    let mut left = mass;
    let mut last = None;
    for (token, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            if left < weight {
                return Some(token);
            }
            left -= weight;
            last = Some(token);
        }
    }
    last
}

/// Random numbers for one purpose at one place of one prompt: the text, the places of
/// rollouts, a rollout, a decoder's rounds. They depend on seed, prompt id, purpose and
/// number alone, so that neither the batch that a prompt runs in nor an interruption
/// changes them.
pub(super) fn random_numbers(
    seed: u64,
    prompt_id: &str,
    purpose: Option<(&str, u64)>,
) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(hash_of(seed, prompt_id, purpose))
}

/// Returns what a log says of the random numbers of a prompt's text: the lowest 63 bits of their seed.
pub(super) fn seed_of_text(seed: u64, prompt_id: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = hash_of(seed, prompt_id, None);
    i64::from_le_bytes([a, b, c, d, e, f, g, h]) & i64::MAX
}

fn hash_of(seed: u64, prompt_id: &str, purpose: Option<(&str, u64)>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(prompt_id.as_bytes());
    if let Some((purpose, number)) = purpose {
        // No text holds this byte, so that no other id begins like this one.
        hash.update([0xff]);
        hash.update(number.to_le_bytes());
        hash.update(purpose);
    }
    hash.finalize().into()
}

/// The random numbers of one prompt's text. They depend on the seed and the prompt's id
/// alone, one number a token, so that neither the batch that a prompt runs in nor
/// an interruption changes them.
#[derive(Clone, Debug)]
pub struct Sampler {
    random: ChaCha8Rng,
    law: Law,
}

impl Sampler {
    /// A generator seeded with SHA-256 of the seed and the id.
    pub fn new(seed: u64, prompt_id: &str) -> Self {
        Self {
            random: random_numbers(seed, prompt_id, None),
            law: Law::default(),
        }
    }

    /// Draws a token id from logits, by inversion: one uniform number u, and the
    /// first token at which the cumulated mass exceeds u. `None` where [`Law::set`] has
    /// no law.
    ///
    /// Time O(V), or O(V log V) in the worst case with `top_p`.
    pub fn draw(&mut self, logits: &[f32], sampling: &Sampling) -> Option<usize> {
        // Drawn first: a token costs one number, whatever the settings are.
        let u: f64 = self.random.random();
        self.law.set(logits, sampling)?;
        Some(self.law.draw(u))
    }
}

/// Tells whether softmax of the row is a distribution.
pub(super) fn is_law(row: &[f32]) -> bool {
    largest(row).is_some()
}

/// The largest entry, the first among equals; none of a row that holds NaN or
/// plus infinity, or nothing but minus infinity.
fn largest(logits: &[f32]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (token, &logit) in logits.iter().enumerate() {
        if logit.is_nan() || logit == f32::INFINITY {
            return None;
        }
        if logit > best.map_or(f32::NEG_INFINITY, |best| logits[best]) {
            best = Some(token);
        }
    }
    best
}

/// Sets the weights of tokens that the cuts leave out to 0.
fn keep(weights: &mut [f64], order: &mut Vec<usize>, sampling: &Sampling) {
    let t = sampling.temperature;
    let cuts = sampling.cuts.at(t);
    let k = cuts.top_k.unwrap_or(usize::MAX).min(weights.len());
    if k == weights.len() && cuts.top_p.is_none() {
        return;
    }
    order.clear();
    order.extend(0..weights.len());
    let heavier = |&a: &usize, &b: &usize| weights[b].total_cmp(&weights[a]).then(a.cmp(&b));
    // A top-p needs the tokens in order: all, or those of a top-k before it.
    let mut ranked = order.len();
    if let Some(Cut::TopK(_)) = cuts.in_order().next()
        && k < ranked
    {
        order.select_nth_unstable_by(k, heavier);
        ranked = k;
    }
    if cuts.top_p.is_some() {
        order[..ranked].sort_unstable_by(heavier);
    }
    let is_last = cuts.order().temperature_last();
    let mut keep = order.len();
    for cut in cuts.in_order() {
        let weight = |rank: usize| match is_last {
            true => weights[order[rank]].powf(t),
            false => weights[order[rank]],
        };
        keep = cut.keep(keep, 0.0, weight).unwrap_or(keep);
    }
    for &token in order.iter().skip(keep) {
        weights[token] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five standard deviations of a binomial count: false alarms below 1e-5 in all, and the seed
    /// is fixed. Of equal entries those with low ids are kept.
    #[test]
    fn draws_follow_the_softmax_of_what_is_kept() {
        let powers = [0.0, 2f32.ln(), 4f32.ln(), f32::NEG_INFINITY, -1.0];
        let ties = [1.0, 3.0, 3.0, 3.0, 0.0];
        let e = std::f64::consts::E;
        // In `ties` the three heavy tokens hold 0.31 each.
        for (logits, temperature, top_k, top_p, weights) in [
            (powers, 1.0, None, None, [1.0, 2.0, 4.0, 0.0, 1.0 / e]),
            (
                powers,
                0.5,
                None,
                None,
                [1.0, 4.0, 16.0, 0.0, 1.0 / (e * e)],
            ),
            (ties, 1.0, Some(2), None, [0.0, 1.0, 1.0, 0.0, 0.0]),
            (ties, 1.0, None, Some(0.6), [0.0, 1.0, 1.0, 0.0, 0.0]),
            (ties, 1.0, None, Some(1e-9), [0.0, 1.0, 0.0, 0.0, 0.0]),
            (
                ties,
                1.0,
                Some(9),
                Some(1.0),
                [e, e * e * e, e * e * e, e * e * e, 1.0],
            ),
        ] {
            let sampling = Sampling::new(temperature, top_k, top_p).unwrap();
            let (mut sampler, mut counts) = (Sampler::new(1, "counts"), [0.0; 5]);
            let draws = 20_000;
            for _ in 0..draws {
                counts[sampler.draw(&logits, &sampling).unwrap()] += 1.0;
            }
            for (count, weight) in counts.into_iter().zip(weights) {
                let p = weight / weights.iter().sum::<f64>();
                let deviation = (f64::from(draws) * p * (1.0 - p)).sqrt();
                let apart: f64 = count - f64::from(draws) * p;
                assert!(apart.abs() <= 5.0 * deviation, "{sampling:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn nothing_is_drawn_from_broken_rows() {
        let mut sampler = Sampler::new(0, "");
        for temperature in [0.0, 1.0] {
            let sampling = Sampling::new(temperature, None, None).unwrap();
            for row in [
                &[][..],
                &[f32::NEG_INFINITY],
                &[0.0, f32::NAN],
                &[0.0, f32::INFINITY],
            ] {
                assert_eq!(sampler.draw(row, &sampling), None, "{row:?}");
            }
            assert_eq!(
                sampler.draw(&[f32::NEG_INFINITY, f32::MIN], &sampling),
                Some(1)
            );
        }
    }

    #[test]
    fn extreme_logits_and_temperatures_draw_something() {
        let mut sampler = Sampler::new(0, "");
        for temperature in [f64::MIN_POSITIVE, 1e-300, 1e300, f64::MAX] {
            let sampling = Sampling::new(temperature, Some(3), Some(0.5)).unwrap();
            for row in [&[f32::MAX, f32::MIN, 0.0][..], &[-0.0, 0.0], &[1e-45, 0.0]] {
                assert!(
                    sampler.draw(row, &sampling).is_some(),
                    "{temperature} {row:?}"
                );
            }
        }
    }

    #[test]
    fn the_numbers_depend_on_seed_and_id_alone() {
        let logits = [0.0; 1000];
        let sampling = Sampling::new(1.0, None, None).unwrap();
        let draw = |seed, id| Sampler::new(seed, id).draw(&logits, &sampling);
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
    }

    #[test]
    fn settings_outside_their_range_are_refused() {
        for temperature in [f64::NAN, -0.1, f64::INFINITY] {
            assert!(matches!(
                Sampling::new(temperature, None, None),
                Err(SamplingError::Temperature(_))
            ));
        }
        assert_eq!(Sampling::new(1.0, Some(0), None), Err(SamplingError::TopK));
        for p in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(matches!(
                Sampling::new(1.0, None, Some(p)),
                Err(SamplingError::TopP(_))
            ));
        }
    }
}
