//! Upper bounds from many contexts: limits fitted on half of the prompts, reported on the
//! other, both ways.

use crate::gap::{Clustered, Estimate};

/// The most contexts that limits are fitted on: more cost time and move them little.
const MOST_FITTED: usize = 4000;

/// Contexts of a group below which it takes the limits of all groups.
const FEW: usize = 40;

/// Limits that are tried: 64, 64/sqrt 2, and so on down to 2^-10, then 0.
const LIMITS: usize = 34;

/// The limit of a number: rising numbers, falling limits.
fn limit(index: usize) -> f64 {
    if index + 1 >= LIMITS {
        0.0
    } else {
        (6.0 - 0.5 * index as f64).exp2()
    }
}

/// How many of the limits a prefix is inside of: those with a smaller number.
fn code(weight: f64) -> u8 {
    // LIMITS is far below 256.
    (0..LIMITS)
        .take_while(|&index| weight <= limit(index))
        .count() as u8
}

/// One path, as far as a token did not end it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Drawn {
    /// By prefix: how many limits it is inside of, and what it counts: p/q on draft paths,
    /// q/p on texts.
    prefixes: Vec<(u8, f64)>,
}

impl Drawn {
    /// A path that the draft wrote, from p/q of its prefixes.
    pub(super) fn by_draft(weights: &[f64]) -> Self {
        let prefixes = weights.iter().map(|&w| (code(w), w));
        Self {
            prefixes: prefixes.collect(),
        }
    }

    /// A text, from q/p of its prefixes.
    pub(super) fn by_target(ratios: &[f64]) -> Self {
        let prefixes = ratios.iter().map(|&r| (code(1.0 / r), r));
        Self {
            prefixes: prefixes.collect(),
        }
    }
}

/// A context and the paths that were drawn from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Context {
    /// Its prompt.
    pub cluster: usize,
    /// What is known of it before anything is drawn sorts contexts into groups, each of
    /// which has limits of its own.
    pub group: usize,
    /// The paths.
    pub paths: Vec<Drawn>,
}

/// How a bound is made of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// K of a context's draft paths at a time: the mean is J.
    Several,
    /// One draft path at a time: the mean lies above J.
    PooledDrafts,
    /// One text at a time: the mean lies above J.
    PooledTexts,
}

/// Sums of a statistic by prompt, with the number of contexts: a ratio of sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ByPrompt {
    pub sums: Vec<(f64, f64)>,
}

impl ByPrompt {
    pub(super) fn new(clusters: usize) -> Self {
        Self {
            sums: vec![(0.0, 0.0); clusters],
        }
    }

    pub(super) fn add(&mut self, cluster: usize, value: f64) {
        if let Some(sum) = self.sums.get_mut(cluster) {
            sum.0 += value;
            sum.1 += 1.0;
        }
    }

    fn there(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        self.sums.iter().copied().filter(|&(_, count)| count > 0.0)
    }

    pub(super) fn estimate(&self) -> Estimate {
        Clustered::new(self.there()).estimate()
    }

    /// The mean of this minus that of another over the same prompts, of as many contexts or
    /// not, with its interval.
    ///
    /// The error is that of the difference of the two linearised ratios, prompt by prompt.
    pub(super) fn minus(&self, other: &Self) -> Estimate {
        let total = |by: &Self| by.sums.iter().map(|one| one.1).sum::<f64>().max(1.0);
        let mean = |by: &Self| by.sums.iter().map(|one| one.0).sum::<f64>() / total(by);
        let parts = [self, other].map(|by| (mean(by), total(by)));
        let [(a, m), (b, n)] = parts;
        let both = self.sums.iter().zip(&other.sums);
        let both = both.filter(|(one, two)| one.1 > 0.0 || two.1 > 0.0);
        // Each prompt's part of the difference, as if all had one context.
        let parts: Vec<(f64, f64)> = both
            .map(|(one, two)| ((one.0 - a * one.1) / m - (two.0 - b * two.1) / n, 1.0))
            .collect();
        let prompts = parts.len() as f64;
        let spread = Clustered::new(parts.iter().copied()).estimate();
        let half = prompts * (spread.ci95[1] - spread.mean);
        Estimate {
            mean: a - b,
            ci95: [a - b - half, a - b + half],
            truncation: None,
        }
    }
}

/// Some contexts, and what is asked of them.
struct Bound<'a> {
    contexts: Vec<&'a Context>,
    form: Form,
    drafts: usize,
    length: usize,
}

impl Bound<'_> {
    /// What a context says of limits: the inside, and by j what is outside.
    fn terms(&self, context: &Context, chosen: &[usize], outside: &mut [f64]) -> f64 {
        outside.fill(0.0);
        let mut inside = 0.0;
        for path in &context.paths {
            let mut out = 0;
            for (&(code, value), &chosen) in path.prefixes.iter().zip(chosen) {
                if chosen < usize::from(code) {
                    inside += if self.form == Form::PooledTexts {
                        1.0
                    } else {
                        value
                    };
                } else {
                    if let Some(outside) = outside.get_mut(out) {
                        *outside += if self.form == Form::PooledTexts {
                            value
                        } else {
                            1.0
                        };
                    }
                    out += 1;
                }
            }
        }
        let paths = context.paths.len() as f64;
        if self.form == Form::Several {
            for outside in outside {
                // Paths with fewer than j prefixes outside.
                let fewer = paths - *outside;
                let all = (0..self.drafts).map(|i| i as f64);
                let all = all.map(|i| ((fewer - i) / (paths - i)).max(0.0));
                *outside = 1.0 - all.product::<f64>();
            }
        } else {
            outside.iter_mut().for_each(|mass| *mass /= paths);
        }
        inside / paths
    }

    /// Means of what contexts say.
    fn means(&self, chosen: &[usize]) -> (f64, Vec<f64>) {
        let mut outside = vec![0.0; self.length];
        let (mut inside, mut sums) = (0.0, vec![0.0; self.length]);
        for context in &self.contexts {
            inside += self.terms(context, chosen, &mut outside);
            for (sum, one) in sums.iter_mut().zip(&outside) {
                *sum += one;
            }
        }
        let count = self.contexts.len().max(1) as f64;
        sums.iter_mut().for_each(|sum| *sum /= count);
        (inside / count, sums)
    }

    /// What q(out >= j) counts for, its slope and its curvature.
    fn outer(&self, mass: f64) -> [f64; 3] {
        if self.form == Form::Several {
            return [mass, 1.0, 0.0];
        }
        let (k, few) = (self.drafts as f64, (1.0 - mass).clamp(0.0, 1.0));
        let power = |exponent: f64| few.powf(exponent.max(0.0));
        [
            1.0 - power(k),
            k * power(k - 1.0),
            if self.drafts > 1 {
                k * (k - 1.0) * power(k - 2.0)
            } else {
                0.0
            },
        ]
    }

    fn value(&self, chosen: &[usize]) -> f64 {
        let (inside, outside) = self.means(chosen);
        inside + outside.iter().map(|&mass| self.outer(mass)[0]).sum::<f64>()
    }

    /// Limits that make the bound small: one after the other is moved while that helps. A
    /// better choice may exist; the bound is one for any.
    fn fitted(&self, start: &[usize]) -> (Vec<usize>, f64) {
        let mut chosen = start.to_vec();
        let mut best = self.value(&chosen);
        // Values are finitely many and fall; the limit guards against rounding.
        for _ in 0..12 {
            let before = best;
            for place in 0..chosen.len() {
                for step in [-8i32, -4, -2, -1, 1, 2, 4, 8] {
                    let Some(&now) = chosen.get(place) else {
                        continue;
                    };
                    let moved = (now as i32 + step).clamp(0, self.last()) as usize;
                    if let Some(one) = chosen.get_mut(place) {
                        *one = moved;
                    }
                    let value = self.value(&chosen);
                    if value < best {
                        best = value;
                    } else if let Some(one) = chosen.get_mut(place) {
                        *one = now;
                    }
                }
            }
            if best >= before {
                break;
            }
        }
        (chosen, best)
    }

    /// The last limit to try. Texts bound what is outside by the limit alone, so that a very
    /// small one makes a mean of rare large numbers.
    fn last(&self) -> i32 {
        match self.form {
            Form::PooledTexts => 24,
            _ => LIMITS as i32 - 1,
        }
    }

    /// The best of some starts.
    fn fitted_anew(&self) -> Vec<usize> {
        // Limits of 1, of K, and of 1/8.
        let of_drafts = (12.0 - 2.0 * (self.drafts as f64).log2()).round().max(0.0) as usize;
        let starts = [12, of_drafts, 18].map(|index| vec![index; self.length]);
        let fitted = starts.iter().map(|start| self.fitted(start));
        let least = fitted.min_by(|one, other| one.1.total_cmp(&other.1));
        least.map_or_else(Vec::new, |(chosen, _)| chosen)
    }

    /// Adds what each context adds to the bound, linearised, at limits that were chosen
    /// without these contexts.
    fn report(&self, chosen: &[usize], into: &mut ByPrompt) {
        let (_, means) = self.means(chosen);
        let raised = self.bias(chosen, &means);
        let mut outside = vec![0.0; self.length];
        for context in &self.contexts {
            let inside = self.terms(context, chosen, &mut outside);
            let linear = outside.iter().zip(&means).map(|(&one, &mean)| {
                let [value, slope, _] = self.outer(mean);
                value + slope * (one - mean)
            });
            into.add(context.cluster, inside + linear.sum::<f64>() + raised);
        }
    }

    /// How far the pooled form lies too low on average, to second order: half of the curvature
    /// times the variance of each mean, which is taken over prompts.
    fn bias(&self, chosen: &[usize], means: &[f64]) -> f64 {
        if self.form == Form::Several || self.drafts < 2 {
            return 0.0;
        }
        let clusters = self.contexts.iter().map(|context| context.cluster + 1);
        let clusters = clusters.max().unwrap_or(0);
        let mut sums = vec![ByPrompt::new(clusters); self.length];
        let mut outside = vec![0.0; self.length];
        for context in &self.contexts {
            self.terms(context, chosen, &mut outside);
            for (sum, &one) in sums.iter_mut().zip(&outside) {
                sum.add(context.cluster, one);
            }
        }
        let parts = sums.iter().zip(means).map(|(sum, &mean)| {
            let error = Clustered::new(sum.there()).error;
            0.5 * self.outer(mean)[2] * error * error
        });
        parts.sum()
    }
}

/// An upper bound of the mean optimum of K paths over contexts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CrossFitted {
    /// What each prompt adds.
    pub by_prompt: ByPrompt,
    /// For each half of the prompts and each group of contexts: the limits that were used,
    /// one a length.
    pub limits: Vec<Vec<f64>>,
}

/// J, or the pooled bound above it, of `drafts` paths of `length` tokens. Limits are fitted on
/// the prompts of even numbers for those of odd numbers, and the other way round. `None` where
/// one half has no context, or a context fewer paths than the form needs.
pub(super) fn cross_fitted(
    contexts: &[Context],
    clusters: usize,
    form: Form,
    drafts: usize,
    length: usize,
) -> Option<CrossFitted> {
    let least = if form == Form::Several { drafts } else { 1 };
    if drafts == 0 || contexts.iter().any(|one| one.paths.len() < least) {
        return None;
    }
    let groups = contexts.iter().map(|one| one.group + 1).max()?;
    let bound = |contexts| Bound {
        contexts,
        form,
        drafts,
        length,
    };
    let mut result = CrossFitted {
        by_prompt: ByPrompt::new(clusters),
        limits: Vec::new(),
    };
    for half in 0..2 {
        let (own, other): (Vec<&Context>, Vec<&Context>) =
            contexts.iter().partition(|one| one.cluster % 2 == half);
        if own.is_empty() || other.is_empty() {
            return None;
        }
        let every = other.len().div_ceil(MOST_FITTED);
        let fitted_on: Vec<&Context> = other.iter().copied().step_by(every).collect();
        let of_all = bound(fitted_on.clone()).fitted_anew();
        for group in 0..groups {
            let within = |one: &&Context| one.group == group;
            let reported: Vec<&Context> = own.iter().copied().filter(within).collect();
            if reported.is_empty() {
                continue;
            }
            let known: Vec<&Context> = fitted_on.iter().copied().filter(within).collect();
            let chosen = if known.len() < FEW {
                of_all.clone()
            } else {
                bound(known).fitted(&of_all).0
            };
            bound(reported).report(&chosen, &mut result.by_prompt);
            result
                .limits
                .push(chosen.iter().map(|&index| limit(index)).collect());
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::super::bounds::{sets_bound, sets_of_text};
    use super::*;

    #[test]
    fn contexts_say_what_the_exact_forms_say() {
        let paths = [vec![2.5, 0.3, 0.7], vec![0.5, 1.9], vec![1.0, 4.0, 1e-9]];
        let drawn = paths.each_ref().map(|path| Drawn::by_draft(path)).to_vec();
        let context = Context {
            paths: drawn,
            ..Context::default()
        };
        let mut outside = [0.0; 3];
        for chosen in [[12, 12, 12], [9, 14, 33], [0, 33, 20], [10, 11, 2]] {
            let limits = chosen.map(limit);
            for drafts in 1..=3 {
                let bound = Bound {
                    contexts: vec![&context],
                    form: Form::Several,
                    drafts,
                    length: 3,
                };
                let exact = sets_bound(&paths, &limits, drafts).unwrap();
                assert!((bound.value(&chosen) - exact).abs() < 1e-12, "{chosen:?}");
            }
            let ratios = [0.5, 2.0, 1.5];
            let context = Context {
                paths: vec![Drawn::by_target(&ratios)],
                ..Context::default()
            };
            let bound = Bound {
                contexts: vec![&context],
                form: Form::PooledTexts,
                drafts: 2,
                length: 3,
            };
            let inside = bound.terms(&context, &chosen, &mut outside);
            assert_eq!((inside, outside.to_vec()), sets_of_text(&ratios, &limits));
        }
    }

    #[test]
    fn a_difference_of_means_over_the_same_prompts_is_paired() {
        let (mut one, mut two) = (ByPrompt::new(4), ByPrompt::new(4));
        for (cluster, value) in [(0, 1.0), (0, 2.0), (1, 4.0), (2, 3.0), (3, 7.0)] {
            one.add(cluster, value);
            two.add(cluster, value - 0.5);
        }
        let apart = one.minus(&two);
        assert!((apart.mean - 0.5).abs() < 1e-12 && apart.ci95[1] - apart.ci95[0] < 1e-9);
        // Against a constant, the error is that of the mean itself.
        let mut none = ByPrompt::new(4);
        for cluster in [0, 0, 1, 2, 3] {
            none.add(cluster, 0.0);
        }
        let (alone, apart) = (one.estimate(), one.minus(&none));
        for (a, b) in alone.ci95.iter().zip(&apart.ci95) {
            assert!((a - b).abs() < 1e-12, "{alone:?} {apart:?}");
        }
    }
}
