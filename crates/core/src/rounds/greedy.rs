//! Rounds of greedy block verification along a text, each of which changes the target of the next.

use super::survival::scaled;
use specgap_number::number::{Number, RunningSum};
use std::collections::VecDeque;

/// What a round that ended before its span did owes to the rest of it.
///
/// Behind tokens z of the span the target's next token is drawn in proportion to
/// (p(x|z) - h q(x|z))+, where h = q(z)/p(z) from the round's start on.
#[derive(Clone, Debug, PartialEq)]
struct Change<T> {
    /// Tokens of the text in front of which the span ends.
    end: usize,
    /// h.
    ratio: T,
}

/// Rounds that start in front of the same token with the same history.
#[derive(Clone, Debug)]
struct History<T> {
    weight: T,
    /// The first of the rounds first.
    changes: Vec<Change<T>>,
}

/// For every token of a text, the probability that a round of greedy block verification starts in
/// front of it, with at most `most` drafts a round, each round's change of the target carried to
/// the next; `rows` has p, q and the token of each place.
///
/// The change depends on where all rounds before began, as far as their spans touch, so that there
/// are as many histories as ways to cut the text. In front of each token `thin` is told their
/// probabilities, more than one, and may set some to 0 and raise others. If their means stay, so
/// do the means of the result.
///
/// # Formula
/// In a round that starts at s with a target of law p, h_i = q/p over its first i tokens:
/// P(tau >= i | the first i) = min(1, h_i), and that it stops there, if it has come so far, is what
/// sum over x of min(p(x), h_i q(x)) lacks to min(1, h_i). Behind a token all stops before it are
/// scaled to 1 - min(1, h_i) together, since the same change is behind all of them.
///
/// # Exactness
/// Exact in rationals, given the text, where nothing is thinned out.
///
/// # Complexity
/// O(V K) for a round of a history, as much again for each change that it carries.
///
/// # Source
/// Sun et al., Block verification; its replay along a text is this project's.
///
/// # Example
/// ```
/// use specgap_core::rounds::greedy_block_starts;
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// let rows = [(&p[..], &q[..], 1); 3];
/// assert_eq!(greedy_block_starts(&rows, 1, &mut |_| ()), [1.0, 0.5, 0.75]);
/// // Given both tokens the first round kept neither with 3/4. The next one has (1/4, 3/4) for p.
/// assert_eq!(greedy_block_starts(&rows, 2, &mut |_| ()), [1.0, 0.75, 0.5]);
/// ```
pub fn greedy_block_starts<T: Number>(
    rows: &[(&[T], &[T], usize)],
    most: usize,
    thin: &mut dyn FnMut(&mut [T]),
) -> Vec<T> {
    let mut coming: VecDeque<Vec<History<T>>> = VecDeque::from([vec![History {
        weight: T::one(),
        changes: Vec::new(),
    }]]);
    let mut starts = Vec::with_capacity(rows.len());
    for start in 0..rows.len() {
        let mut here = coming.pop_front().unwrap_or_default();
        starts.push(T::total(here.iter().map(|one| &one.weight)));
        if here.len() > 1 {
            let mut weights: Vec<T> = here.iter().map(|one| one.weight.clone()).collect();
            thin(&mut weights);
            for (one, weight) in here.iter_mut().zip(weights) {
                one.weight = weight;
            }
        }
        // The last token of a text is not drafted.
        let end = (start + most).min(rows.len() - 1);
        for history in here.iter().filter(|one| !one.weight.is_nil()) {
            for (tokens, next) in behind(rows, start..end, history).into_iter().enumerate() {
                while coming.len() <= tokens {
                    coming.push_back(Vec::new());
                }
                // Where nothing is owed any more histories do not differ.
                let same = (coming[tokens].iter_mut())
                    .find(|other| other.changes.is_empty() && next.changes.is_empty());
                match same {
                    Some(other) => other.weight.gain(&next.weight),
                    None if next.weight.is_nil() => {}
                    None => coming[tokens].push(next),
                }
            }
        }
    }
    starts
}

/// The rounds behind a round of this span, by kept drafts.
fn behind<T: Number>(
    rows: &[(&[T], &[T], usize)],
    span: std::ops::Range<usize>,
    history: &History<T>,
) -> Vec<History<T>> {
    let one = T::one();
    let mut changes = history.changes.clone();
    let mut ratio = one.clone();
    let mut reached = one.clone();
    let mut ends: Vec<History<T>> = Vec::with_capacity(span.len() + 1);
    let mut law = Vec::new();
    for here in span.clone() {
        let (p, q, token) = rows[here];
        changes.retain(|change| change.end > here);
        let changed = !changes.is_empty();
        if changed {
            law.clear();
            law.extend_from_slice(p);
        }
        for change in &mut changes {
            let behind = ratio_behind(&change.ratio, q.get(token), law.get(token));
            owed(&mut law, q, &change.ratio);
            change.ratio = behind;
        }
        let p = if changed { &law[..] } else { p };
        let mut goes_on = T::Sum::default();
        for (p, q) in p.iter().zip(q) {
            goes_on.add(&p.smaller(&ratio.times(q)));
        }
        // Rounding alone can bring it above.
        let goes_on = goes_on.value().smaller(&reached);
        let stops = reached.excess_over(&goes_on);
        ratio = ratio_behind(&ratio, q.get(token), p.get(token));
        reached = ratio.smaller(&one);
        ends.push(History {
            weight: stops,
            changes: changes.clone(),
        });
        let (before, after) = (goes_on.complement(), reached.complement());
        for end in &mut ends {
            end.weight = match before.is_nil() {
                true => T::zero(),
                false => end.weight.times(&after.over(&before)),
            };
        }
        // What is owed behind the next token, which a round that stops here writes freely.
        if let Some(end) = ends.last_mut() {
            end.changes.push(Change {
                end: span.end,
                ratio: ratio.clone(),
            });
            end.changes.retain(|change| change.end > here + 1);
        }
    }
    let kept = T::total(ends.iter().map(|end| &end.weight)).complement();
    ends.push(History {
        weight: kept,
        changes: Vec::new(),
    });
    for end in &mut ends {
        end.weight = end.weight.times(&history.weight);
    }
    ends
}

/// The target's next token as a change has it: (p - h q)+, normalised.
fn owed<T: Number>(law: &mut [T], q: &[T], ratio: &T) {
    let left = |p: &T, q: &T| p.excess_over(&ratio.times(q));
    let mut sum = T::Sum::default();
    for (p, q) in law.iter().zip(q) {
        sum.add(&left(p, q));
    }
    let sum = sum.value();
    // Nothing is left only where no text gets to but by rounding.
    if sum.is_nil() {
        return;
    }
    for (p, q) in law.iter_mut().zip(q) {
        *p = left(p, q).over(&sum);
    }
}

fn ratio_behind<T: Number>(ratio: &T, q: Option<&T>, p: Option<&T>) -> T {
    match (q, p) {
        (Some(q), Some(p)) if !p.is_nil() => scaled(ratio, &q.over(p)),
        _ => T::zero(),
    }
}

/// Sets probabilities to 0 until at most `keep` are left, and raises the smaller ones that stay so
/// that each keeps its mean over `uniform`, a number of [0, 1).
///
/// # Formula
/// With c such that sum of min(1, w/c) is `keep`, those of at least c stay as they are; of the
/// others one stays for every c of their running sum, counted from `uniform`, and becomes c.
///
/// # Source
/// Fearnhead and Clifford 2003.
///
/// # Example
/// ```
/// use specgap_core::rounds::thin;
/// let mut weights = [0.5, 0.125, 0.125, 0.25];
/// thin(&mut weights, 3, 0.5);
/// assert_eq!(weights, [0.5, 0.25, 0.0, 0.25]);
/// ```
pub fn thin(weights: &mut [f64], keep: usize, uniform: f64) {
    let positive = weights.iter().filter(|&&weight| weight > 0.0).count();
    if positive <= keep {
        return;
    }
    let mut falling = weights.to_vec();
    falling.sort_by(|a, b| b.total_cmp(a));
    // The largest stay whole as long as they are above what an equal part of the rest is.
    let mut rest: f64 = falling.iter().sum();
    let mut slots = keep;
    for weight in falling {
        if slots == 0 || weight * (slots as f64) < rest {
            break;
        }
        rest -= weight;
        slots -= 1;
    }
    let part = rest / slots.max(1) as f64;
    let mut sum = uniform * part;
    for weight in weights.iter_mut().filter(|weight| **weight < part) {
        sum += *weight;
        *weight = if sum >= part {
            sum -= part;
            part
        } else {
            0.0
        };
    }
}
