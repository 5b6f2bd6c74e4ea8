//! Upper bounds from many contexts: limits fitted on half of the prompts, reported on the
//! other, both ways.

use super::means::ByPrompt;
use specgap_statistics::{Clustered, half_of};

/// The most contexts that limits are fitted on: more cost time and move them little.
const MOST_FITTED: usize = 4000;

/// Contexts of a group below which it takes the limits of all groups.
const FEW: usize = 40;

/// Limits that are tried: 64, 64/sqrt 2, and so on down to 2^-10, then 0.
const LIMITS: usize = 34;

/// The limit of a number: rising numbers, falling limits.
fn limit(index: usize) -> f64 {
    match index + 1 >= LIMITS {
        true => 0.0,
        false => (6.0 - 0.5 * index as f64).exp2(),
    }
}

/// Returns how many of the limits a prefix is inside of: those with a smaller number.
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
    /// The tree that was drafted, where there is one; its text is the one path.
    pub tree: DrawnNodes,
}

/// The nodes of a tree that was drafted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DrawnNodes {
    /// Of each node behind the root: its parent, before it, and how many limits it is inside of.
    nodes: Vec<(usize, u8)>,
}

impl DrawnNodes {
    /// From parents and p/q of all nodes, the root, which is the first, among them.
    pub(super) fn new(parents: &[usize], weights: &[f64]) -> Self {
        let nodes = parents.iter().zip(weights).skip(1);
        Self {
            nodes: nodes.map(|(&parent, &w)| (parent, code(w))).collect(),
        }
    }

    /// The most nodes of a path that are outside, given the limits by depth.
    fn outside(&self, chosen: &[usize], scratch: &mut Vec<(usize, usize)>) -> usize {
        // Depth of each node, and how many up to it are outside.
        scratch.clear();
        scratch.push((0, 0));
        let mut most = 0;
        for &(parent, code) in &self.nodes {
            let (depth, before) = scratch.get(parent).copied().unwrap_or((0, 0));
            let limit = chosen.get(depth).copied();
            let is_out = limit.is_some_and(|limit| limit >= usize::from(code));
            let out = before + usize::from(is_out);
            scratch.push((depth + 1, out));
            most = most.max(out);
        }
        most
    }
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
    /// A drafted tree and a text of each context: the mean is J.
    Trees,
}

impl Form {
    /// Returns it as reports call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Several => "several paths",
            Self::PooledDrafts => "pooled paths",
            Self::PooledTexts => "pooled text",
            Self::Trees => "drafted trees",
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
    /// Returns what a context says of limits: the inside, and by j what is outside.
    fn terms(&self, context: &Context, chosen: &[usize], outside: &mut [f64]) -> f64 {
        outside.fill(0.0);
        let mut inside = 0.0;
        if self.form == Form::Trees {
            if let Some(first) = outside.first_mut() {
                *first = context.tree.outside(chosen, &mut Vec::new()) as f64;
            }
            let text = context.paths.iter().flat_map(|path| &path.prefixes);
            let within = text
                .zip(chosen)
                .filter(|((code, _), chosen)| **chosen < usize::from(*code));
            return within.count() as f64;
        }
        for path in &context.paths {
            let mut out = 0;
            for (&(code, value), &chosen) in path.prefixes.iter().zip(chosen) {
                let [within, beyond] = match self.form {
                    Form::PooledTexts => [1.0, value],
                    _ => [value, 1.0],
                };
                if chosen < usize::from(code) {
                    inside += within;
                } else {
                    if let Some(outside) = outside.get_mut(out) {
                        *outside += beyond;
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

    /// Returns what q(out >= j) counts for, its slope and its curvature.
    fn outer(&self, mass: f64) -> [f64; 3] {
        if matches!(self.form, Form::Several | Form::Trees) {
            return [mass, 1.0, 0.0];
        }
        let (k, few) = (self.drafts as f64, (1.0 - mass).clamp(0.0, 1.0));
        let power = |exponent: f64| few.powf(exponent.max(0.0));
        [
            1.0 - power(k),
            k * power(k - 1.0),
            match self.drafts > 1 {
                true => k * (k - 1.0) * power(k - 2.0),
                false => 0.0,
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
                    let now = chosen[place];
                    chosen[place] = (now as i32 + step).clamp(0, self.last()) as usize;
                    let value = self.value(&chosen);
                    if value < best {
                        best = value;
                    } else {
                        chosen[place] = now;
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

    /// Returns how far the pooled form lies too low on average, to second order: half of the
    /// curvature times the variance of each mean, which is taken over prompts.
    fn bias(&self, chosen: &[usize], means: &[f64]) -> f64 {
        if matches!(self.form, Form::Several | Form::Trees) || self.drafts < 2 {
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
/// one half of the prompts for the other, and the other way round. `None` where
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
    // Of those that have contexts.
    let mut halves = vec![None; clusters];
    for context in contexts {
        if let Some(half) = halves.get_mut(context.cluster) {
            *half = Some(0);
        }
    }
    for (rank, half) in halves.iter_mut().flatten().enumerate() {
        *half = half_of(rank);
    }
    for half in 0..2 {
        let is_own = |one: &&Context| halves.get(one.cluster) == Some(&Some(half));
        let (own, other): (Vec<&Context>, Vec<&Context>) = contexts.iter().partition(is_own);
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
            let chosen = match known.len() < FEW {
                true => of_all.clone(),
                false => bound(known).fitted(&of_all).0,
            };
            bound(reported).report(&chosen, &mut result.by_prompt);
            let limits = chosen.iter().map(|&index| limit(index));
            result.limits.push(limits.collect());
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::super::bounds::{
        lower_bound_of_draft, lower_bound_of_text, sets_bound, sets_of_text,
    };
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::problem::BlockProblem;
    use specgap_core::tree::TokenTree;
    use specgap_exact::block::lemma_5_1;
    use specgap_exact::block::level_sets::path_optimum;
    use specgap_number::distribution::{Draft, Target};

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

    /// A chain over V tokens: rows of p and q by the last token.
    struct Chain {
        target: Vec<Vec<f64>>,
        draft: Vec<Vec<f64>>,
    }

    impl Chain {
        fn new(rng: &mut ChaCha8Rng, vocab: usize) -> Self {
            let row = |weights: Vec<f64>| {
                let sum: f64 = weights.iter().sum();
                weights.iter().map(|w| w / sum).collect::<Vec<f64>>()
            };
            let (mut target, mut draft) = (Vec::new(), Vec::new());
            for _ in 0..vocab {
                let mut normal = || (0..4).map(|_| rng.random::<f64>() - 0.5).sum::<f64>() * 1.73;
                let own: Vec<f64> = (0..vocab).map(|_| 2.0 * normal()).collect();
                let noisy: Vec<f64> = own.iter().map(|x| (x + normal()).exp()).collect();
                target.push(row(own.iter().map(|x| x.exp()).collect()));
                draft.push(row(noisy));
            }
            Self { target, draft }
        }

        fn problem(&self, length: usize) -> BlockProblem {
            let made = BlockProblem::by_prefix("chain", self.target.len(), length, |prefix| {
                let last = prefix.last().map_or(0, |&token| token as usize);
                let last = (prefix.len() < length).then_some(last);
                let target = last.map(|last| Target::new(&self.target[last]).unwrap());
                let draft = last.map(|last| Draft::new(&self.draft[last]).unwrap());
                (target, draft)
            });
            made.unwrap()
        }

        /// p/q of the prefixes of a path that the draft writes; q/p of a text of the target.
        fn drawn(&self, rng: &mut ChaCha8Rng, length: usize, by_target: bool) -> Vec<f64> {
            let (mut last, mut joint) = (0, 1.0);
            (0..length)
                .map(|_| {
                    let (p, q) = (&self.target[last], &self.draft[last]);
                    let (own, other) = if by_target { (p, q) } else { (q, p) };
                    let mut left: f64 = rng.random();
                    let token = own.iter().position(|mass| {
                        left -= mass;
                        left < 0.0
                    });
                    last = token.unwrap_or(own.len() - 1);
                    joint *= other[last] / own[last];
                    joint
                })
                .collect()
        }
    }

    /// V = 20, L = 4, K = 2: does the interval of J lie above the optimum, and that of Lemma
    /// 5.1's value hold it?
    ///
    /// An upper end that lies above the optimum with probability 97.5% does in 58.5 of 60 runs on
    /// average, and one that does so in 57 has 95%; a bound should err upwards. Two-sided coverage
    /// of 95% is below 50 of 60 with probability below 1e-3.
    #[test]
    fn intervals_cover_the_optimum() {
        const LENGTH: usize = 4;
        const DRAFTS: usize = 2;
        const RUNS: u64 = 60;
        const PROMPTS: usize = 50;
        let chain = Chain::new(&mut ChaCha8Rng::seed_from_u64(20), 20);
        let tree = TokenTree::<f64>::new(&chain.problem(LENGTH));
        // Enough boxes to know it to 0.02; the upper end is the harder one to cover.
        let optimum = path_optimum(&tree, DRAFTS, 3e7);
        let truth = optimum.upper;
        assert!(truth - optimum.lower < 0.02, "{}", truth - optimum.lower);
        let lemma = lemma_5_1(&tree, DRAFTS);
        let mut above = [0usize; 4];
        let (mut held, mut bias) = (0, [0.0; 4]);
        for run in 0..RUNS {
            let mut rng = ChaCha8Rng::seed_from_u64(1000 + run);
            let mut paths = Vec::new();
            let mut texts = Vec::new();
            let mut lower = ByPrompt::new(PROMPTS);
            let mut along = ByPrompt::new(PROMPTS);
            for cluster in 0..PROMPTS {
                let drawn: Vec<Vec<f64>> = (0..4)
                    .map(|_| chain.drawn(&mut rng, LENGTH, false))
                    .collect();
                for path in &drawn {
                    lower.add(cluster, lower_bound_of_draft(path, DRAFTS));
                }
                paths.push(Context {
                    cluster,
                    group: 0,
                    paths: drawn.iter().map(|path| Drawn::by_draft(path)).collect(),
                    ..Context::default()
                });
                for _ in 0..4 {
                    let text = chain.drawn(&mut rng, LENGTH, true);
                    along.add(cluster, lower_bound_of_text(&text, DRAFTS));
                    texts.push(Context {
                        cluster,
                        group: 0,
                        paths: vec![Drawn::by_target(&text)],
                        ..Context::default()
                    });
                }
            }
            let forms = [Form::Several, Form::PooledDrafts, Form::PooledTexts];
            for (index, form) in forms.into_iter().enumerate() {
                let contexts = match form {
                    Form::PooledTexts => &texts,
                    _ => &paths,
                };
                let bound = cross_fitted(contexts, PROMPTS, form, DRAFTS, LENGTH).unwrap();
                let bound = bound.by_prompt.mean();
                if form == Form::Several {
                    // The lower bound by the text in place of that by the paths.
                    let moved = bound.minus(&lower.mean()).plus(&along.mean()).estimate();
                    above[3] += usize::from(moved.ci95[1] >= truth);
                    bias[3] += (moved.mean - truth) / RUNS as f64;
                }
                let bound = bound.estimate();
                above[index] += usize::from(bound.ci95[1] >= truth);
                bias[index] += (bound.mean - truth) / RUNS as f64;
            }
            let [low, high] = lower.mean().estimate().ci95;
            held += usize::from((low..=high).contains(&lemma));
            assert!(low <= truth + 0.2);
        }
        for (above, bias) in above.into_iter().zip(bias) {
            assert!(above >= 57, "{above} of {RUNS} upper limits, bias {bias}");
            // Noise of 60 runs of 200 paths each: about 0.015.
            assert!(bias > -0.04 && bias < 0.1, "{bias}");
        }
        assert!(held >= 50, "{held} of {RUNS} intervals hold {lemma}");
    }

    #[test]
    fn a_difference_of_means_over_the_same_prompts_is_paired() {
        let (mut one, mut two) = (ByPrompt::new(5), ByPrompt::new(5));
        let mut sums = vec![(0.0, 0.0); 4];
        for (cluster, value) in [(0, 1.0), (0, 2.0), (1, 4.0), (2, 3.0), (3, 7.0)] {
            one.add(cluster, value);
            two.add(cluster, value - 0.5);
            sums[cluster].0 += value;
            sums[cluster].1 += 1.0;
        }
        let apart = one.mean().minus(&two.mean()).estimate();
        assert!((apart.mean - 0.5).abs() < 1e-12 && apart.ci95[1] - apart.ci95[0] < 1e-9);
        // Alone, it is the ratio of sums; prompts without contexts do not count.
        let alone = one.mean().estimate();
        let known = Clustered::new(sums.into_iter()).estimate();
        let twice = one.mean().plus(&one.mean()).estimate();
        for (a, b) in alone.ci95.iter().zip(&known.ci95) {
            assert!((a - b).abs() < 1e-12, "{alone:?} {known:?}");
        }
        for (a, b) in alone.ci95.iter().zip(&twice.ci95) {
            assert!((2.0 * a - b).abs() < 1e-12, "{alone:?} {twice:?}");
        }
    }
}
