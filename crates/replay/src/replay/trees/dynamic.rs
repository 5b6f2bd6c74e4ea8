//! Trees that follow the text: every node that the draft thinks likely enough.

use super::super::between::{RoundBounds, replay_between_with};
use super::super::measured::{ratio, within};
use super::super::read::{Text, Texts};
use super::super::timings::Timings;
use super::data::ThresholdTree;
use specgap_base::side_by_side;
use specgap_number::number::Number;

/// Least products of q whose trees are shown.
pub(super) const THRESHOLDS: [f64; 6] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01];

/// Returns how many drafts a round accepts along a text, given q at its tokens from the round's start
/// on, if the tree has every node whose product of q is at least `threshold`.
///
/// The target draws the next token itself and the round follows it as long as it is in the
/// tree. Products fall along a path, so that a node's ancestors are in the tree with it. No row
/// off the text is asked for.
///
/// # Example
/// ```
/// use specgap_replay::replay::threshold_accepted;
/// // Products 1/2, 1/4, 1/16.
/// assert_eq!(threshold_accepted(&[0.5, 0.5, 0.25], &0.2, 8), 2);
/// assert_eq!(threshold_accepted(&[0.5, 0.5, 0.25], &0.2, 1), 1);
/// ```
pub fn threshold_accepted<T: Number>(q: &[T], threshold: &T, levels: usize) -> usize {
    products(q, levels)
        .take_while(|product| product >= threshold)
        .count()
}

/// An unbiased count of the nodes of that tree, from one rollout of the draft.
///
/// # Formula
/// With Q_d the product of q over the rollout's first d tokens, the sum over d of 1/Q_d where
/// Q_d is at least `threshold`. The rollout's first d tokens are x with probability Q(x), so
/// that the mean of the d-th term is the sum over x with Q(x) >= threshold of Q(x)/Q(x): how
/// many nodes the level has. It is at most `levels`/`threshold`.
///
/// # Example
/// ```
/// use specgap_replay::replay::threshold_nodes;
/// // One level, q = (3/4, 1/4), threshold 1/2: the tree is the first token alone. The rollouts
/// // (0) and (1), with their probabilities, count 3/4 4/3 + 1/4 0 = 1.
/// let mean = 0.75 * threshold_nodes(&[0.75], &0.5, 1) + 0.25 * threshold_nodes(&[0.25], &0.5, 1);
/// assert_eq!(mean, 1.0);
/// ```
pub fn threshold_nodes<T: Number>(q: &[T], threshold: &T, levels: usize) -> T {
    let mut nodes = T::zero();
    for product in products(q, levels).take_while(|product| product >= threshold) {
        nodes.gain(&T::one().over(&product));
    }
    nodes
}

fn products<T: Number>(q: &[T], levels: usize) -> impl Iterator<Item = T> {
    q.iter().take(levels).scan(T::one(), |product, q| {
        *product = product.times(q);
        Some(product.clone())
    })
}

/// What one prompt's texts add.
#[derive(Clone, Debug, Default)]
struct Sums {
    calls: f64,
    /// Drafts accepted over starts with all levels left, and such starts.
    accepted: (f64, f64),
    /// Nodes on rollouts behind starts of rounds, and such rollouts.
    nodes: (f64, f64),
    /// Levels that rounds have room for.
    levels: f64,
}

impl Sums {
    fn of(text: &Text, threshold: f64, levels: usize) -> Self {
        let length = text.places.len();
        let accepted = |start: usize, room: usize| {
            let ahead = text.ahead(start).iter().take(room);
            let q: Vec<f64> = ahead.map(|place| place.draft).collect();
            threshold_accepted(&q, &threshold, room)
        };
        let mut sums = Self::default();
        for start in 0..length {
            if length - start >= levels {
                sums.accepted.0 += accepted(start, levels) as f64;
                sums.accepted.1 += 1.0;
            }
        }
        // Given the text nothing is random: rounds start where they start.
        let mut rollouts = text.rollouts.iter().peekable();
        let mut start = 0;
        while start < length {
            let room = levels.min(length - start - 1);
            sums.calls += 1.0;
            sums.levels += room as f64;
            while let Some(rollout) = rollouts.next_if(|rollout| rollout.start <= start) {
                if rollout.start == start {
                    let q: Vec<f64> = rollout.places.iter().map(|place| place.draft).collect();
                    sums.nodes.0 += threshold_nodes(&q, &threshold, room);
                    sums.nodes.1 += 1.0;
                }
            }
            start += accepted(start, room) + 1;
        }
        sums
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.levels += other.levels;
        for (sum, more) in [
            (&mut self.accepted, other.accepted),
            (&mut self.nodes, other.nodes),
        ] {
            sum.0 += more.0;
            sum.1 += more.1;
        }
    }
}

/// Bounds of the rounds along a text, `times` by their levels, whatever q of its tokens is that rows do not list.
fn bounds(text: &Text, threshold: f64, levels: usize, times: &[f64]) -> RoundBounds {
    replay_between_with(levels, text.places.len(), times, |start, room| {
        [0, 1].map(|end| {
            let ahead = text.ahead(start).iter().take(room);
            let q: Vec<f64> = ahead.map(|place| place.draft_bounds[end]).collect();
            let accepted = threshold_accepted(&q, &threshold, room);
            let reached = |level: usize| f64::from(u8::from(level <= accepted));
            (0..=room).map(reached).collect()
        })
    })
}

/// The trees of all thresholds, of at most so many levels. Where there are rollouts, of no more
/// than they have tokens.
pub(super) fn threshold_trees(
    texts: &Texts,
    tokens: &[f64],
    levels: usize,
    timings: Option<&Timings>,
) -> Vec<ThresholdTree> {
    let levels = levels.min(texts.rollout_tokens().unwrap_or(levels));
    (THRESHOLDS.into_iter())
        .map(|threshold| {
            let found: Vec<Sums> =
                side_by_side::each(&texts.texts, |text| Sums::of(text, threshold, levels));
            let sums = texts.by_prompt(&found, Sums::add);
            let ratio = |of: &dyn Fn(&Sums, f64) -> (f64, f64)| {
                let prompts = sums.iter().zip(tokens);
                ratio(prompts.map(|(sums, &tokens)| of(sums, tokens)))
            };
            // A round takes its levels' draft steps at most, and a pass that costs the same
            // for all trees.
            let slowest = timings.filter(|timings| timings.is_flat());
            let cost = slowest.and_then(|timings| {
                let seconds = [timings.verifying(1)?, timings.draft_step.seconds];
                Some(seconds.map(|one| one / timings.target_step.seconds))
            });
            let open = (!texts.are_whole()).then(|| {
                let [pass, step] = cost.unwrap_or_default();
                let time = |level| pass + level as f64 * step;
                let times: Vec<f64> = (0..=levels).map(time).collect();
                let of = |text: &Text| bounds(text, threshold, levels, &times);
                let found = side_by_side::each(&texts.texts, of);
                let mut all = RoundBounds::default();
                found.into_iter().for_each(|one| all.add(one));
                all
            });
            let all: f64 = tokens.iter().sum();
            let within = |estimate, of: &dyn Fn(&RoundBounds, usize) -> f64| {
                within(estimate, open.map(|open| [0, 1].map(|end| of(&open, end))))
            };
            ThresholdTree {
                threshold,
                levels,
                expected_accepted_length: ratio(&|sums, _| sums.accepted)
                    .map(|one| within(one, &|open, end| open.accepted[end] / open.whole)),
                tokens_per_call: within(
                    ratio(&|sums, tokens| (tokens, sums.calls)).unwrap_or_default(),
                    &|open, end| all / open.calls[1 - end],
                ),
                nodes_per_round: ratio(&|sums, _| sums.nodes),
                speedup_at_least: cost.and_then(|[pass, step]| {
                    let speed =
                        ratio(&|sums, tokens| (tokens, sums.calls * pass + sums.levels * step))?;
                    Some(within(speed, &|open, end| all / open.time[1 - end]))
                }),
            }
        })
        .collect()
}
